"""A result without its rows says what the rows would say: means to the last bit, errors and quantiles."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recsys
from recsys.conventions.decisions import Conventions
from recsys.errors import FileError, MergeError, NoRowsError, NotDefinedError
from recsys.evaluation import engine
from recsys.evaluation.engine import merge, without_rows
from recsys.evaluation.files.result_files import fingerprint, pack, unpack
from recsys.evaluation.in_pieces.pieces import PieceResult, join_pieces, result_of
from recsys.evaluation.origin import StoredOrigin
from recsys.evaluation.results import Evaluation
from recsys.metrics.registry import parse_all
from recsys.records.arrays import Partial, PerCase
from recsys.stats import samples
from recsys.stats import sums as sums_module
from worlds.lists import World, list_frame, truth_frame, worlds

# Skew, rare values and ties are what these worlds are made of.
pytestmark = pytest.mark.filterwarnings("ignore::recsys.errors.RecsysWarning")

EXAMPLES = settings.default.max_examples
RULES = Conventions.of({"average": "pooled", "f1_of": "means"})
PLAIN, RATIO, DERIVED = "recall@5", "precision@5", "f1@5"
REQUESTS = parse_all([PLAIN, RATIO, DERIVED], None)
SIX = [f"{name}@10" for name in ("recall", "ndcg", "map", "mrr", "hit", "precision")]
LEVELS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


def result(partial: Partial) -> Evaluation:
    return Evaluation(partial, REQUESTS, RULES)


@st.composite
def cases(draw: st.DrawFn, *, largest: int = 60) -> Partial:
    """Cases of a plain metric, a ratio and a derived one: rare, equal or any values, gaps, weights, users."""
    n = draw(st.integers(1, largest))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    levels = draw(st.sampled_from([(0.0, 1.0), (0.0, 0.1, 1 / 3, 0.5, 1.0), (0.25,), None]))

    def column() -> Any:
        values = rng.random(n) if levels is None else rng.choice(levels, n)
        few = draw(st.integers(0, n))  # users that differ from the rest
        values[rng.permutation(n)[few:]] = values[0]
        return values

    gaps = rng.random(n) < draw(st.sampled_from([0.0, 0.0, 0.3, 1.0]))
    first, second = column(), 1.0 + np.round(4 * column())
    plain = np.where(gaps, np.nan, column())
    weights = {
        "none": None,
        "even": np.full(n, 2.5),
        "uneven": 0.1 + rng.random(n),
        "whole": rng.integers(1, 4, n).astype(float),
        "some are 0": np.append(1.0, rng.integers(0, 3, n - 1).astype(float)),
    }[draw(st.sampled_from(["none", "none", "even", "uneven", "whole", "some are 0"]))]
    ids = np.sort(rng.choice(10**6, n, replace=False))
    clusters = draw(st.sampled_from([None, None, rng.integers(0, max(1, n // 2), n)]))
    if draw(st.booleans()):
        ids, clusters = (
            None if a is None else np.array([f"u{v:07}" for v in a.tolist()], dtype=object)
            for a in (ids, clusters)
        )
    terms = {
        RATIO: (np.where(gaps, np.nan, first), np.where(gaps, np.nan, second)),
        DERIVED: (np.where(gaps, np.nan, first), np.where(gaps, np.nan, second / 5)),
    }
    quotients = {name: a / b for name, (a, b) in terms.items()}
    return Partial(PerCase(ids, {PLAIN: plain, **quotients}, clusters, weights), terms, {"cases": n})


def take(partial: Partial, which: Any) -> Partial:
    rows = partial.rows
    some = PerCase(
        rows.ids[which],
        {name: values[which] for name, values in rows.columns.items()},
        None if rows.clusters is None else rows.clusters[which],
        None if rows.weights is None else rows.weights[which],
    )
    terms = {name: (a[which], b[which]) for name, (a, b) in partial.terms.items()}
    return Partial(some, terms, {"cases": len(some)})


def assert_same_summary(small: Evaluation, whole: Evaluation, *, exact_notes: bool = True) -> None:
    """Means and quantiles to the last bit; standard errors and intervals up to rounding; the same notes."""
    assert [value.hex() for value in small.values()] == [value.hex() for value in whole.values()]
    assert small.n_cases == whole.n_cases
    assert small.counts == whole.counts
    assert_same_intervals(small, whole, exact_notes=exact_notes)
    assert repr(small.quantiles(LEVELS)) == repr(whole.quantiles(LEVELS))


def assert_same_intervals(
    small: Evaluation, whole: Evaluation, *, method: Any = "t", exact_notes: bool = True
) -> None:
    found, expected = small.intervals(0.9, method=method), whole.intervals(0.9, method=method)
    for name in whole:
        one, other = found[name], expected[name]
        assert (one.n, one.interval.method) == (other.n, other.interval.method), name
        assert one.standard_error == pytest.approx(other.standard_error, rel=1e-12, abs=1e-16, nan_ok=True), (
            name
        )
        for end in ("low", "high"):
            mine, theirs = getattr(one.interval, end), getattr(other.interval, end)
            assert mine == pytest.approx(theirs, rel=1e-9, abs=1e-9, nan_ok=True), (name, end)
        if exact_notes:  # their numbers as they are shown: sums of floats differ in the last digit
            assert [*map(str, one.notes)] == [*map(str, other.notes)], name


@settings(max_examples=EXAMPLES)
@given(partial=cases())
def test_sums_say_what_the_rows_say(partial):
    small, whole = result(without_rows(partial)), result(partial)
    assert_same_summary(small, whole)
    if len(partial.rows) % 4 == 0:
        assert_same_intervals(small, whole, method="normal")


@settings(max_examples=EXAMPLES // 2)
@given(partial=cases(largest=30), data=st.data())
def test_pieces_of_users_in_any_cut_and_order_add_up_to_all(partial, data):
    rows = partial.rows
    users = rows.ids if rows.clusters is None else rows.clusters
    names = np.unique(users)
    n_pieces = data.draw(st.integers(1, 6))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    piece = rng.integers(0, n_pieces, len(names))[np.searchsorted(names, users)]
    pieces = [without_rows(take(partial, piece == number)) for number in rng.permutation(n_pieces)]
    merged = merge(pieces)
    if data.draw(st.booleans()) and len(pieces) > 2:  # sums of sums
        merged = merge([merge(pieces[:2]), merge(pieces[2:])])
    assert_same_summary(result(merged), result(partial))
    whole = without_rows(partial)
    for name, sums in merged.sums.items():
        assert sums.totals == whole.sums[name].totals, name


@settings(max_examples=EXAMPLES // 5)
@given(world=worlds(repeats=False))
def test_groups_weights_and_clusters_of_an_evaluation_need_no_rows(world):
    lists, truth = list_frame(world), truth_frame(world)
    if not len(lists) or not len(truth) or not set(lists["user"]) & set(truth["user"]):
        return
    groups = {user: "ab"[at % 2] for at, user in enumerate(world.cases)}
    for more in ({}, {"case_weights": world.case_weights}, {"clusters": world.clusters}):
        for by in (groups, "popularity"):
            train = {"train": {user: list(world.catalogue) for user in world.cases}} if by != groups else {}
            whole = recsys.evaluate(
                lists, truth, ["recall@3", "ndcg@3", "mrr", "coverage@2"], by=by, **more, **train
            )
            small = Evaluation(
                without_rows(whole.partial),
                whole.requests,
                whole.conventions,
                origin=StoredOrigin(ranges=whole.ranges),
            )
            assert_same_summary(small, whole)
            assert repr(small.by) == repr(whole.by)
            assert small.by_sizes == whole.by_sizes
            # The heading says users: these sums do not know whose cases they are.
            assert str(small).splitlines()[1:6] == str(whole).splitlines()[1:6]


@pytest.mark.parametrize(
    "values",
    [[0.0] * 50, [1.0] * 50, [0.0] * 48 + [1.0, 0.5], [0.0] * 30 + [1.0], [0.5], [np.nan] * 4, []],
    ids=["all 0", "all 1", "two differ", "one differs", "one user", "nobody in the mean", "nobody"],
)
@pytest.mark.parametrize("weights", [None, 1.5])
def test_columns_where_no_usual_interval_holds(values, weights):
    column = np.array(values, dtype=float)
    n = len(column)
    ones = np.where(np.isnan(column), np.nan, 1.0)
    even = None if weights is None else np.full(n, weights)
    rows = PerCase(np.arange(n), {PLAIN: column, RATIO: column, DERIVED: column}, None, even)
    terms = {RATIO: (column, ones), DERIVED: (column, ones)}
    partial = Partial(rows, terms, {"cases": n})
    assert_same_summary(result(without_rows(partial)), result(partial))


@settings(max_examples=EXAMPLES // 2)
@given(partial=cases(largest=300), data=st.data())
def test_beyond_the_histogram_the_sums_give_t_and_kept_values_all(partial, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n = len(partial.rows)
    if n < 30 or partial.rows.clusters is not None:
        return
    values = rng.random(n)
    terms = {RATIO: (values, 1.0 + rng.random(n)), DERIVED: (values, rng.random(n))}
    columns = {PLAIN: values, RATIO: values, DERIVED: values}
    weights = None if partial.rows.weights is None else 0.5 + rng.random(n)
    partial = replace(partial, per_case=replace(partial.rows, columns=columns, weights=weights), terms=terms)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums_module, "_LARGEST_SHARE", 0.2)
        patch.setattr(sums_module, "histogram_of", lambda *_: None)
        sums, whole = without_rows(partial), result(partial)
        small = result(sums)
        assert [value.hex() for value in small.values()] == [value.hex() for value in whole.values()]
        assert small.n_cases == whole.n_cases
        largest = 0.0 if weights is None else weights.max() / weights.sum()
        for method in ("t", "normal"):
            found, expected = small.intervals(method=method), whole.intervals(method=method)
            for name in whole:
                error, own = expected[name].standard_error, found[name].standard_error
                most = error / (1.0 - largest) if method == "t" else error
                assert error * (1.0 - 1e-12) <= own <= most * (1.0 + 1e-12), (name, method)
                assert found[name].n == n
        with pytest.raises(NoRowsError, match="distinct values"):
            small.quantiles()
    # A folder of values per user has both.
    kept = result(replace(sums, per_case=partial.per_case, terms=partial.terms))
    for method in ("gaffke", "t", "normal"):
        assert repr(kept.intervals(method=method)) == repr(whole.intervals(method=method))
    assert kept.quantiles(LEVELS) == whole.quantiles(LEVELS)


@pytest.mark.parametrize("weights", [None, "even", "uneven"])
def test_a_histogram_that_grows_too_large_is_left_behind(monkeypatch, weights):
    monkeypatch.setattr(sums_module, "MOST_DISTINCT", 4)
    monkeypatch.setattr(samples, "MOST_DISTINCT", 4)
    rng = np.random.default_rng(3)
    n = 4000
    values = rng.integers(0, 6, n) / 5
    chosen = {None: None, "even": np.full(n, 3.0), "uneven": 0.5 + rng.random(n)}[weights]
    ones = np.ones(n)
    partial = Partial(
        PerCase(np.arange(n), {PLAIN: values, RATIO: values, DERIVED: values}, None, chosen),
        {RATIO: (values, ones), DERIVED: (values, ones)},
        {"cases": n},
    )
    parts = [take(partial, (values <= 0.5) == low) for low in (True, False)]
    small = merge([without_rows(part) for part in parts])
    assert small.sums[PLAIN].units is None
    found, expected = result(small).intervals(method="t"), result(partial).intervals(method="t")
    for name in (PLAIN, RATIO, DERIVED):
        error = expected[name].standard_error
        most = 1.001 if weights == "uneven" else 1.0 + 1e-12
        assert error * (1.0 - 1e-12) <= found[name].standard_error <= error * most
        assert "is not known without the values per user" in str(found[name].notes[0])
    with pytest.raises(NoRowsError, match="more than 4 distinct values"):
        result(small).quantiles()


def test_one_user_that_weighs_too_much_is_refused_where_the_values_were_not_counted(monkeypatch):
    monkeypatch.setattr(sums_module, "histogram_of", lambda *_: None)
    n = 500
    weights = np.append(np.ones(n - 1), 50.0)
    column = np.linspace(0, 1, n)
    rows = PerCase(np.arange(n), {PLAIN: column}, None, weights)
    small = Evaluation(without_rows(Partial(rows, {}, {})), parse_all([PLAIN], None), RULES)
    with pytest.raises(NoRowsError, match="one user weighs more than a thousandth"):
        small.intervals()


def evaluated(**more: Any) -> Evaluation:
    rng = np.random.default_rng(0)
    lists = {user: rng.permutation(60)[:10].tolist() for user in range(300)}
    truth = {user: {int(i): 1.0 for i in rng.integers(0, 40, 4)} for user in range(300)}
    return recsys.evaluate(lists, truth, **({"metrics": SIX} | more))


def without(whole: Evaluation, **options: Any) -> Evaluation:
    return Evaluation(
        without_rows(whole.partial, **options),
        whole.requests,
        whole.conventions,
        origin=StoredOrigin(facts=whole.facts, asked=whole.asked, ranges=whole.ranges),
    )


def test_what_only_rows_can_say_is_refused_with_the_reason():
    whole = evaluated()
    small = without(whole)
    for method in ("percentile", "bca", "studentised"):
        with pytest.raises(NoRowsError, match=f"method='{method}' needs the values per user.*per_user="):
            small.intervals(method=method)
    for question in (
        lambda: small.per_case,
        lambda: small.per_user,
        lambda: small.values_of("recall@10"),
        lambda: small.per_user_frame("arrow"),
    ):
        with pytest.raises(NoRowsError, match="values per user"):
            question()
    with pytest.raises(NoRowsError, match="gmap"):
        without(evaluated(metrics=["gmap@10", "recall@10"]))
    grouped = without(evaluated(by={user: user % 3 for user in range(300)}))
    with pytest.raises(NoRowsError, match="who is in which group"):
        _ = grouped.group_masks
    assert grouped.gaps()["recall@10"].best in (0, 1, 2)
    assert issubclass(NoRowsError, NotDefinedError)


def test_users_whose_cases_lie_in_several_pieces_have_no_interval():
    whole = evaluated(clusters={case: case // 3 for case in range(300)})
    known, unknown = without(whole), without(whole, whole_users=False)
    assert [v.hex() for v in unknown.values()] == [v.hex() for v in whole.values()]
    assert repr(unknown.quantiles(LEVELS)) == repr(whole.quantiles(LEVELS))
    assert_same_intervals(known, whole)
    with pytest.raises(NoRowsError, match="cases lie in several pieces"):
        unknown.intervals()


def test_parts_of_different_kinds_do_not_add_up():
    plain = without_rows(evaluated().partial)
    for more in (
        {"case_weights": dict.fromkeys(range(300), 2.0)},
        {"clusters": dict.fromkeys(range(300), 1)},
    ):
        with pytest.raises(MergeError, match="weights, clusters or terms"):
            merge([plain, without_rows(evaluated(**more).partial)])
    with pytest.raises(MergeError, match="different metrics"):
        merge([plain, without_rows(evaluated(metrics=["recall@10"]).partial)])


def batches(n_batches: int, metrics: Sequence[str] = SIX, **more: Any) -> tuple[list[PieceResult], Any]:
    rng = np.random.default_rng(0)
    evaluator = recsys.Evaluator(metrics, **more)
    pieces = []
    for _ in range(n_batches):
        start = 2000 * len(pieces)
        lists = {user: rng.permutation(60)[:10].tolist() for user in range(start, start + 2000)}
        truth = {user: {int(i): 1.0 for i in rng.integers(0, 40, 6)} for user in lists}
        pieces.append(PieceResult.of(evaluator.measured(lists, truth)))
    return pieces, evaluator


def test_a_piece_crosses_processes_in_few_bytes():
    pieces, evaluator = batches(2)
    for piece in pieces:
        without_histograms = {n: replace(s, values=None, units=None) for n, s in piece.partial.sums.items()}
        sums_only = replace(piece, partial=replace(piece.partial, sums=without_histograms))
        assert len(sums_only.to_bytes()) <= 1_000
        assert len(pickle.dumps(sums_only.to_bytes())) <= 1_100
    sent = [PieceResult.from_bytes(piece.to_bytes()) for piece in pieces]
    one = result_of(join_pieces(pieces), evaluator.inputs, evaluator.conventions)
    other = result_of(join_pieces(sent[::-1]), evaluator.inputs, evaluator.conventions)
    assert json.loads(one.to_json())["sha256"] == json.loads(other.to_json())["sha256"]
    assert repr(one.intervals().to_frame().to_dict()) == repr(other.intervals().to_frame().to_dict())
    again = unpack(json.loads(json.dumps(pack(pieces[0].partial))))
    assert pack(again) == pack(pieces[0].partial)


def test_a_result_without_rows_is_saved_and_opened(tmp_path):
    whole = evaluated(metrics=[*SIX, "coverage@10"], by={user: user % 2 for user in range(300)})
    small = without(whole)
    small.save(tmp_path / "small.json", commit="1f3a")
    opened = recsys.load(tmp_path / "small.json")
    assert_same_summary(opened, whole)
    assert opened.by == whole.by
    assert opened.run["commit"] == "1f3a"
    assert opened == small == whole
    assert json.loads(opened.to_json())["sha256"] == json.loads(whole.to_json())["sha256"]
    assert pickle.loads(pickle.dumps(small)) == small  # noqa: S301
    document = json.loads((tmp_path / "small.json").read_text())
    assert document["format"] == 2
    document["result"]["metrics"][0]["value"] += 0.01
    document["sha256"] = fingerprint(document["result"])
    (tmp_path / "changed.json").write_text(json.dumps(document))
    with pytest.raises(FileError, match="or their sums, do not give the result"):
        recsys.load(tmp_path / "changed.json")


def test_a_file_of_another_format_is_refused(tmp_path):
    evaluated(metrics=["recall@10", "coverage@10"]).save(tmp_path / "now.json")
    document = json.loads((tmp_path / "now.json").read_text())
    for other in (1, 3, None, "2"):
        document["format"] = other
        (tmp_path / "other.json").write_text(json.dumps(document))
        with pytest.raises(FileError, match="reads format 2"):
            recsys.load(tmp_path / "other.json")


def test_the_engine_needs_rows_for_a_mask():
    small = without_rows(evaluated().partial)
    with pytest.raises(NoRowsError):
        engine.summarise(small, parse_all(SIX, None), np.ones(300, dtype=bool))
    assert math.isfinite(engine.summarise(small, parse_all(SIX, None))["recall@10"])


def test_a_world_of_one_case_needs_no_rows():
    world = World({1: [2]}, {1: {2: 1.0}}, 1, [2], {1: 1.0}, {2: 1.0}, {1: 1})
    whole = recsys.evaluate(list_frame(world), truth_frame(world), ["hit@1"])
    assert dict(without(whole)) == {"hit@1": 1.0}
