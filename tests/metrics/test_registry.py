"""What must hold for every registered metric; the tests walk the registry, so a new one is tested at once."""

from __future__ import annotations

import gc
import itertools
import math
import re
import sys
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recsys
from recsys.cli.reference_verbs import all_metrics
from recsys.conventions.decisions import DECISIONS, Conventions
from recsys.conventions.presets import PRESETS
from recsys.errors import ConventionError, CutoffError, RecsysError
from recsys.evaluation import engine
from recsys.evaluation.bounds.best_lists import builder_of
from recsys.metrics.readings import Reading
from recsys.metrics.registry import (
    _ALIASES,
    METRICS,
    SETS,
    Request,
    lookup,
    lookup_rating,
    metric_set,
    set_requests,
)
from recsys.metrics.traits import Additivity
from recsys.ranks.ranked_truth import MatchedTruth
from recsys.records.arrays import Lists
from worlds.lists import World, known_of, list_frame, truth_frame, worlds

# These tests compare ways of breaking ties, so a warning about ties is expected.
pytestmark = pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")

EXAMPLES = settings.default.max_examples
ABOUT_ALL_LISTS = {name for name, metric in METRICS.items() if metric.kind == "catalogue"}
NO_TIE_ORDER = {name for name, metric in METRICS.items() if metric.tied.tie_order == "unknown"}
NO_TIE_EXPECTATION = [name for name, metric in METRICS.items() if metric.tied.ties == "refuse"]


def requests(names: list[str] | None = None, k: int = 3) -> list[str]:
    """Every metric with its default parameters, without and with a cut-off where it may have one."""
    out = []
    for name in sorted(METRICS if names is None else names):
        if METRICS[name].at_k != "required":
            out.append(name)
        if METRICS[name].at_k != "never":
            out.append(f"{name}@{k}")
    return out


def evaluate(world: World, metrics: list[str] | None = None, **options: Any) -> Any:
    return recsys.evaluate(
        list_frame(world) if world.scored else dict(world.lists),
        truth_frame(world) if world.scored else dict(world.truth),
        **{"metrics": metrics or requests(k=world.k), **needs_of(world), **options},
    )


def needs_of(world: World) -> dict[str, Any]:
    """Everything that some metric needs; items have one column, so that it need not be named."""
    known = known_of(world)
    labels = {item: [len(kind), 1] for item, kind in known.kinds.items()}
    items = {"worth": {item: float(one[0]) for item, one in labels.items()}}
    return {**known.keywords(), "items": items, "intents": "worth", "full_ranking": True, "catalogue": 1100}


def assert_near(one: Any, other: Any) -> None:
    """Equal up to the last digits: sums over items are added in the order of their ids."""
    assert list(one) == list(other)
    np.testing.assert_allclose(list(one.values()), list(other.values()), rtol=1e-12, atol=1e-12)
    for request, column in one.per_case.columns.items():
        np.testing.assert_allclose(column, other.per_case.columns[request], rtol=1e-12, atol=1e-12)


def assert_equal(one: Any, other: Any) -> None:
    """The same cases, requests and numbers, to the last bit."""
    assert list(one) == list(other)
    assert [repr(v) for v in one.values()] == [repr(v) for v in other.values()]
    np.testing.assert_array_equal(one.per_case.ids, other.per_case.ids)
    for request, column in one.per_case.columns.items():
        np.testing.assert_array_equal(column, other.per_case.columns[request], err_msg=request)


def nonempty(world: World) -> bool:
    return any(world.lists.values()) and any(world.truth.values())


whole_worlds = worlds(repeats=False, complete=True).filter(nonempty)


@settings(max_examples=EXAMPLES // 2)
@given(world=whole_worlds, preset=st.sampled_from(["default", *sorted(PRESETS)]))
def test_every_value_is_within_its_bounds(world, preset):
    conventions = Conventions.of(preset)
    names = [n for n in METRICS if conventions.ties != "expected" or n not in NO_TIE_EXPECTATION]
    result = evaluate(world, requests(names, world.k), conventions=conventions)
    for request, value in result.items():
        low, high = METRICS[Request.parse(request).metric.name].bounds
        assert math.isnan(value) or low <= value <= high, request
        if Request.parse(request).metric.kind == "catalogue":
            continue
        column = result.per_case.columns[request]
        inside = column[~np.isnan(column)]
        assert ((inside >= low) & (inside <= high)).all(), request


@settings(max_examples=EXAMPLES // 2)
@given(world=whole_worlds, data=st.data())
def test_the_order_of_cases_and_rows_does_not_matter(world, data):
    lists, truth = list_frame(world), truth_frame(world)
    order = data.draw(st.permutations(range(len(lists))))
    order_of_truth = data.draw(st.permutations(range(len(truth))))
    asked = {"metrics": requests(k=world.k), **needs_of(world)}
    assert_equal(
        recsys.evaluate(lists, truth, **asked),
        recsys.evaluate(lists.iloc[order], truth.iloc[order_of_truth], **asked),
    )
    plain = World(
        dict(reversed(list(world.lists.items()))),
        {case: dict(reversed(list(t.items()))) for case, t in reversed(list(world.truth.items()))},
        *(world.k, world.catalogue, world.case_weights, world.item_weights, world.clusters, world.scored),
    )
    assert_equal(evaluate(world), evaluate(plain))


def relabelled(world: World, names: dict[Any, Any]) -> World:
    lists = {
        case: [(names[e[0]], e[1]) if world.scored else names[e] for e in entries]
        for case, entries in world.lists.items()
    }
    truth = {case: {names[i]: g for i, g in wanted.items()} for case, wanted in world.truth.items()}
    weights = {names[i]: w for i, w in world.item_weights.items()}
    catalogue = [names[i] for i in world.catalogue]
    return World(lists, truth, world.k, catalogue, world.case_weights, weights, world.clusters, world.scored)


@settings(max_examples=EXAMPLES // 2)
@given(world=whole_worlds, text=st.booleans())
def test_new_names_in_the_same_order_change_nothing(world, text):
    old = sorted(world.item_weights)
    names = {item: f"é{at:03d}" if text else at * 1000 - 2000 for at, item in enumerate(old)}
    for ties in ("by_id", "by_id_desc"):
        assert_equal(
            evaluate(world, conventions={"ties": ties}),
            evaluate(relabelled(world, names), conventions={"ties": ties}),
        )


@settings(max_examples=EXAMPLES // 2)
@given(world=worlds(repeats=False, complete=True, scored=False).filter(nonempty), data=st.data())
def test_any_new_names_change_nothing_where_nothing_is_tied(world, data):
    old = sorted(world.item_weights)
    names = dict(zip(old, data.draw(st.permutations(range(len(old)))), strict=True))
    asked = requests([name for name in METRICS if name not in GREEDY], world.k)
    assert_near(evaluate(world, asked), evaluate(relabelled(world, names), asked))


# Of equally good items the greedily best list takes the one with the last id, as ndeval does.
GREEDY = {"alpha_ndcg", "nerr_ia", "nnrbp"}


def split_into_parts(world: World, part_of: dict[Any, int]) -> list[tuple[dict[Any, Any], dict[Any, Any]]]:
    """Lists and truths by part; a case without one gets an empty one, so that a part may hold it alone."""
    return [
        (
            {case: world.lists.get(case, []) for case in world.cases if part_of[case] == number},
            {case: world.truth.get(case, {}) for case in world.cases if part_of[case] == number},
        )
        for number in sorted(set(part_of.values()))
    ]


@pytest.mark.parametrize("average", ["macro", "pooled"])
@settings(max_examples=EXAMPLES // 2)
@given(world=whole_worlds, data=st.data())
def test_parts_merge_into_the_whole(average, world, data):
    asked = {
        "metrics": requests(k=world.k),
        "conventions": Conventions(average=average, max_grade=5),
        **needs_of(world),
    }
    (everything,) = split_into_parts(world, dict.fromkeys(world.cases, 0))
    parts = split_into_parts(world, {case: data.draw(st.integers(0, 3)) for case in world.cases})
    whole = recsys.evaluate(*everything, **asked)
    pieces = [recsys.evaluate(*part, **asked) for part in parts]
    assert_equal(whole, pieces[0].merge(*pieces[1:]))
    reversed_merge = pieces[-1]
    for piece in pieces[-2::-1]:
        reversed_merge = reversed_merge.merge(piece)
    assert_equal(whole, reversed_merge)
    assert whole.counts == reversed_merge.counts


@settings(max_examples=EXAMPLES // 2)
@given(world=worlds(), data=st.data())
def test_batches_stream_into_the_whole(world, data):
    whole_ranking = {name for name, metric in METRICS.items() if "candidates" in metric.needs}
    asked = requests([name for name in METRICS if name not in whole_ranking], world.k)
    conventions, known = Conventions(max_grade=5), {**needs_of(world), "full_ranking": False}
    (everything,) = split_into_parts(world, dict.fromkeys(world.cases, 0))
    parts = split_into_parts(world, {case: data.draw(st.integers(0, 3)) for case in world.cases})
    one, other = (recsys.Evaluator(asked, conventions=conventions, **known) for _ in range(2))
    for number, part in enumerate(parts):
        (one if number % 2 else other).update(*part)
    whole = recsys.evaluate(*everything, metrics=asked, conventions=conventions, **known)
    assert_equal(whole, one.merge(other).result())


@given(world=worlds(), data=st.data())
@settings(max_examples=EXAMPLES // 2)
def test_weights_and_clusters_stay_with_their_cases(world, data):
    asked = {"metrics": "recall@2, ndcg", "conventions": Conventions(average="pooled")}
    asked |= {"case_weights": dict(world.case_weights), "clusters": dict(world.clusters)}
    (everything,) = split_into_parts(world, dict.fromkeys(world.cases, 0))
    parts = split_into_parts(world, {case: data.draw(st.integers(0, 3)) for case in world.cases})
    whole = recsys.evaluate(*everything, **asked)
    pieces = [recsys.evaluate(*part, **asked) for part in parts]
    merged = pieces[0].merge(*pieces[1:])
    assert_equal(whole, merged)
    for result in (whole, merged):
        assert result.per_case.clusters.tolist() == [world.clusters[case] for case in world.cases]
        assert result.per_case.weights.tolist() == [world.case_weights[case] for case in world.cases]


GROWING = "cold_coverage coverage dcg distinct_items err graded_rbp hit hits mrr rbp recall subtopic_recall"


@pytest.mark.parametrize("name", GROWING.split())
@settings(max_examples=EXAMPLES // 4)
@given(world=worlds(repeats=False).filter(nonempty), ties=st.sampled_from(["by_id", "expected"]))
def test_curves_grow_with_k(name, world, ties):
    if ties == "expected" and name in NO_TIE_EXPECTATION:
        return
    cuts = [f"{name}@{k}" for k in range(1, 9)]
    whole = "candidates" in METRICS[name].needs
    result = evaluate(world, cuts, full_ranking=whole, conventions={"ties": ties})
    if METRICS[name].kind == "catalogue":
        values = [result[cut] for cut in cuts]
        assert values == sorted(values)
        return
    for earlier, later in itertools.pairwise(cuts):
        low, high = result.per_case.columns[earlier], result.per_case.columns[later]
        assert (np.isnan(low) == np.isnan(high)).all()
        assert not (low > high * (1 + 1e-14)).any(), (earlier, later)


@pytest.mark.parametrize("text", ["none", "None", "NONE", " none "])
def test_a_decision_that_may_be_none_is_asked_for_by_name(text):
    request = Request.parse(f"ndcg(relevant_from={text})@10")
    assert dict(request.params) == {"relevant_from": None}
    assert str(request) == "ndcg(relevant_from=none)@10"
    assert Request.parse(str(request)) == request
    assert request.conventions(Conventions(relevant_from=4)).relevant_from is None
    lists, truth = {1: ["a", "b"]}, {1: {"a": 1, "b": 5}}
    result = recsys.evaluate(lists, truth, ["ndcg@2", str(request)], conventions={"relevant_from": 4})
    assert result[str(request)] == recsys.evaluate(lists, truth, "ndcg@2")["ndcg@2"] < 1
    assert result["ndcg@2"] != result[str(request)]
    assert dict(Request.parse(f"err(max_grade={text})@10").params) == {"max_grade": None}


def test_none_is_a_word_where_a_parameter_knows_it():
    assert dict(Request.parse("average_popularity(over=users)@2").params) == {"over": "users"}
    assert Request.parse("gini(weight=none)@2").own_params["weight"] == "none"


@pytest.mark.parametrize("name", sorted(METRICS))
def test_requests_are_read_as_they_are_written(name):
    metric = METRICS[name]
    cut = "" if metric.at_k == "never" else "@7"
    written = [f"{name}{cut}", f" {name.upper()} {cut.replace('@', ' @ ')} "]
    written += [f"{alias}{cut}" for alias in metric.aliases]
    written += [
        f"{name}({c}={choice}){cut}" for c in metric.conventions if c in DECISIONS for choice in DECISIONS[c]
    ]
    if "relevant_from" in metric.reads:
        written += [f"{name}(relevant_from={x}){cut}" for x in ("2", "0.1", "1e-07", "3.3333333333333335")]
    for text in written:
        request = Request.parse(text)
        assert request.metric is metric
        assert Request.parse(str(request)) == request
        assert str(Request.parse(str(request))) == str(request)
    assert Request.parse(written[0]) == Request.parse(written[1])


def test_the_registry_says_what_it_should_of_every_metric():
    for name, metric in METRICS.items():
        assert metric.name == name == name.lower()
        assert metric.meaning.endswith(".")
        assert metric.formula
        assert metric.reference
        assert metric.better in ("higher", "lower")
        assert metric.bounds[0] < metric.bounds[1]
        assert set(metric.reads) <= {*DECISIONS, "relevant_from", "max_grade"}


# Every decision makes a difference somewhere in here: ties across a cut, repeats, short and
# empty lists, cases without truth, grades of 0, 1, 2 and 4, more relevant items than places.
LISTS = {
    "both": [("d", 3.0), ("a", 2.0), ("b", 2.0), ("c", 2.0), ("e", 1.0)],
    "long": [("h", 5.0), ("g", 4.0), ("f", 3.0), ("e", 2.0), ("d", 1.0)],
    "short": [("b", 1.0)],
    "twice": [("a", 5.0), ("a", 4.0), ("x", 3.0), ("b", 2.0)],
    "no truth": [("a", 2.0), ("c", 1.0)],
    "tied": [("c", 1.0), ("b", 1.0), ("a", 1.0)],
    "low": [("y", 9.0), ("x", 8.0), ("c", 7.0), ("z", 6.0)],
    "disliked": [("a", 2.0), ("b", 1.0)],
}
TRUTH = {
    "both": {"c": 2, "e": 1, "d": 0, "new": 1},
    "long": {"a": 1, "b": 2, "c": 1, "d": 4, "e": 1, "f": 1},
    "short": {"b": 1, "c": 2, "d": 1},
    "twice": {"a": 1, "b": 2, "c": 1},
    "no list": {"a": 1, "b": 1},
    "tied": {"a": 2, "b": 1},
    "low": {"c": 2, "y": 0, "x": 0},
    "disliked": {"a": 0},
}
SEEN = {"both": ["c"], "low": ["x"]}
CATALOGUE = [*"abcdefghuvwxyz"]
CASES = dict.fromkeys([*LISTS, *TRUTH], 1.0)
PLAIN = World(LISTS, TRUTH, 3, CATALOGUE, CASES, dict.fromkeys([*CATALOGUE, "new"], 1.0), {}, scored=True)


@cache
def numbers(name: str | None = None, choice: Any = None) -> dict[str, float]:
    """Every metric of the fixture, with one decision changed; what is refused is left out."""
    conventions = Conventions() if name is None else Conventions().but(**{name: choice})
    asked = [*requests(k=3), *requests(k=1), "ndcg(gain=binary)@3"]
    context = {"catalogue": CATALOGUE, "full_ranking": True, "seen": SEEN, "conventions": conventions}
    try:
        return dict(evaluate(PLAIN, asked, **context))
    except RecsysError:
        pass
    values: dict[str, float] = {}
    for request in asked:
        with suppress(RecsysError):
            values |= evaluate(PLAIN, [request], **context)
    return values


CHOICES = [
    (name, choice)
    for name, choices in DECISIONS.items()
    for choice in choices
    if choice != "error" and choice != getattr(Conventions(), name)
    if name not in ("negative_grades", "rank_gaps")  # neither is here; see test_negative_grades, test_rows
]
CHOICES += [("relevant_from", 2.0), ("max_grade", 7.0)]


def moved_by(name: str, choice: Any) -> set[str]:
    before, after = numbers(), numbers(name, choice)
    return {request for request, value in after.items() if repr(value) != repr(before[request])}


@pytest.mark.parametrize(("name", "choice"), CHOICES)
def test_every_convention_moves_a_number_and_only_of_metrics_that_read_it(name, choice):
    moved = moved_by(name, choice)
    assert moved, f"{name}={choice} changes nothing"
    assert [r for r in moved if name not in Request.parse(r).metric.reads] == []


@pytest.mark.parametrize("name", sorted(METRICS))
def test_a_metric_reads_the_conventions_it_declares(name):
    metric = METRICS[name]
    for convention in metric.conventions:
        moved = set().union(*(moved_by(*choice) for choice in CHOICES if choice[0] == convention))
        assert any(Request.parse(r).metric is metric for r in moved), (
            f"{name} declares {convention} and ignores it"
        )


def test_the_fixture_is_refused_only_where_it_must_be():
    assert len(numbers()) == len({*requests(k=3), *requests(k=1), "ndcg(gain=binary)@3"})
    refused = {c: set(numbers()) - set(numbers(*c)) for c in CHOICES}
    assert {c: {Request.parse(r).metric.name for r in gone} for c, gone in refused.items() if gone} == {
        ("ideal", "k"): {"ndcg"},
        ("ties", "expected"): set(NO_TIE_EXPECTATION),
        ("ties", "best"): NO_TIE_ORDER,
        ("ties", "worst"): NO_TIE_ORDER,
    }


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    world=worlds(),
    preset=st.sampled_from(["default", *sorted(PRESETS)]),
    size=st.integers(1, 3),
    average=st.sampled_from(["macro", "pooled"]),
    no_truth=st.sampled_from(["skip", "zero", "error"]),
)
def test_blocks_of_cases_give_the_same_bits_and_the_same_words(world, preset, size, average, no_truth):
    conventions = Conventions.of(preset).but(average=average, no_truth=no_truth)
    names = [n for n in METRICS if conventions.ties != "expected" or n not in NO_TIE_EXPECTATION]

    def run() -> Any:
        try:
            return evaluate(world, requests(names, world.k), conventions=conventions)
        except RecsysError as error:
            return type(error), str(error)

    fills: list[tuple[int, set[bool]]] = []
    fill = engine._Columns._fill

    def record_fill(self: Any, some: Any, readings: Any, start: int) -> None:
        fills.append((start, {bool(asked.request.metric.needs) for asked in some}))
        fill(self, some, readings, start)

    whole = run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_BLOCK_CASES", size)
        patch.setattr(engine._Columns, "_fill", record_fill)
        in_blocks = run()
    if isinstance(whole, tuple):
        assert in_blocks == whole
        return
    assert_equal(in_blocks, whole)
    assert in_blocks.counts == whole.counts
    if whole.counts["cases"] > size:
        starts = range(0, whole.counts["cases"], size)
        assert fills == [*((start, {False}) for start in starts), (0, {True})]


def test_a_metric_that_says_too_little_of_its_needs_still_gets_all_cases(monkeypatch):
    lists, truth = {1: [3, 5], 2: [5], 3: [7, 3, 5]}, {1: [3], 2: [3], 3: [5]}
    monkeypatch.setitem(METRICS, "length", replace(METRICS["hits"], name="length", body=_length))
    whole = recsys.evaluate(lists, truth, ["length"])
    monkeypatch.setattr("recsys.evaluation.engine._BLOCK_CASES", 1)
    assert_equal(recsys.evaluate(lists, truth, ["length"]), whole)
    assert whole.per_case.columns["length"].tolist() == [2, 1, 3]


def _length(reading: Any, _k: int | None, _conventions: Conventions) -> Any:
    return reading.n_places(None).astype(float)


def _living_objects() -> dict[int, Any]:
    """Every living object that a call makes of lists; type(), because some objects warn about __class__."""
    kinds = Reading | Lists | MatchedTruth
    return {id(thing): thing for thing in gc.get_objects() if issubclass(type(thing), kinds)}


def test_a_call_leaves_no_lists_behind_for_the_garbage_collector():
    gc.collect()
    gc.disable()
    try:
        before = _living_objects()
        recsys.evaluate(
            {1: [3, 5], 2: [5, 3]}, {1: [3], 2: [3]}, ["recall@2", "ild@2"], embeddings={3: [1], 5: [2]}
        )
        left = [thing for key, thing in _living_objects().items() if key not in before]
    finally:
        gc.enable()
    assert left == []


PLUGIN = """
import numpy as np
from recsys.metrics import metric
from recsys.metrics.registry import SETS, shown_metric


def alphabetical(task):
    from recsys.evaluation.bounds.candidate_pool import BestLists

    return [BestLists(task.lists(), proven=True)]


@metric(
    "doubled_hits", formula="2 hits(k)", reference="a plug-in", bounds=(0.0, np.inf), aliases=("dh",),
    additive=True, sum_over_places=True,
)
def doubled_hits(h, k, c):
    \"\"\"Twice the hits.\"\"\"
    return 2.0 * h.count(k)


SETS["default"].append("doubled_hits@10")


@shown_metric(
    "early_letters", formula="", reference="a plug-in", bounds=(-np.inf, 0.0), best_lists=alphabetical
)
def early_letters(h, k, c):
    \"\"\"How early in the alphabet the first item stands.\"\"\"
    entries = h.shown(1)
    return -np.bincount(entries.case, weights=entries.item * 1.0, minlength=h.n_cases)
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """A package beside ours that names a module with metrics as an entry point."""
    (tmp_path / "metrics_of_a_plugin.py").write_text(PLUGIN, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("theirs", "metrics_of_a_plugin", "recsys.metrics")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry] * (group == entry.group))
    monkeypatch.setattr(METRICS, "_plugins_loaded", False)
    held = [(known, dict(known)) for known in (METRICS, _ALIASES)]
    monkeypatch.setitem(SETS, "default", [*SETS["default"]])
    yield
    for known, before in held:
        known.clear()
        known.update(before)
    sys.modules.pop("metrics_of_a_plugin", None)


@pytest.mark.usefixtures("plugin")
def test_a_plugin_is_found_by_name_by_alias_and_in_the_list():
    assert "doubled_hits" not in METRICS
    assert recsys.evaluate({1: [3, 5]}, {1: [3]}, ["dh@2"]) == {"doubled_hits@2": 2.0}
    assert {"doubled_hits", "early_letters"} <= {row["name"] for row in all_metrics()}


@pytest.mark.usefixtures("plugin")
def test_what_a_plugin_declares_is_known_everywhere():
    METRICS.load_plugins()
    lists, truth = {1: ["c", "a"], 2: ["b", "d"]}, {1: {"a": 1}, 2: {"d": 1}}
    result = recsys.evaluate(lists, truth, catalogue=[*"abcde"])
    assert list(result)[-1] == "doubled_hits@10"
    debiased = recsys.debias.evaluate(lists, truth, "dh@2", propensities=dict.fromkeys("abcde", 0.5))
    assert debiased["doubled_hits@2", "snips"].value == 2.0
    bounds = recsys.evaluate(lists, truth, ["dh@5", "early_letters@1"], catalogue=[*"abcde"]).bounds()
    assert bounds["doubled_hits@5"].floor_how == "exact"  # cut at the end of the lists: 2/5 of 2
    assert bounds["doubled_hits@5"].floor == pytest.approx(0.8)
    assert (bounds["early_letters@1"].best, bounds["early_letters@1"].best_how) == (0.0, "exact")


MEMBERS = {
    "audit": "precision recall ndcg map mrr hit",
    "bench": "ndcg recall hit mrr coverage novelty",
    "candidates": "hit ndcg mrr auc",
    "clicks": "log_loss normalised_entropy ece mce auc gauc user_auc",
    "curves": "recall precision",
    "default": "precision recall ndcg map hit mrr",
    "popularity": "recall ndcg",
    "ratings": "mse rmse mae r2 explained_variance bias user_rmse user_mae",
    "sampling": "ndcg hit",
}


def test_what_is_measured_where_no_metric_is_named():
    assert set(SETS) == set(MEMBERS)
    for name, members in MEMBERS.items():
        find = lookup_rating if name in ("ratings", "clicks") else lookup
        requests = [Request.parse(request, find) for request in set_requests(name)]
        assert [request.metric.name for request in requests] == members.split()
        assert name in ("ratings", "clicks") or [r.metric for r in requests] == metric_set(name)
    assert (set_requests("default")[-1], set_requests("default", 5)[-1]) == ("mrr", "mrr@5")


def moved_between(before, after, **conventions):
    """The metrics whose value on small lists moves between two functions of the grades of a case."""
    plain = [n for n, m in METRICS.items() if m.kind != "catalogue" and not set(m.needs) - {"candidates"}]
    names = [n if METRICS[n].at_k == "never" else f"{n}@4" for n in plain] + ["count(what=not_relevant)"]
    rules = {"max_grade": 4, **conventions}
    random, moved = Random(0), set()
    for _ in range(40):
        items = random.sample("abcdefgh", 8)
        grades = {item: random.choice([0, 0, 1, 2]) for item in items if random.random() < 0.8}
        if any(grades.values()):
            one, other = (
                recsys.evaluate({1: items}, {1: change(grades)}, names, full_ranking=True, conventions=rules)
                for change in (before, after)
            )
            moved |= {n for n in names if not np.array_equal(one[n], other[n], equal_nan=True)}
    return {Request.parse(name).metric.name for name in moved}


def test_metrics_that_read_more_of_the_judgements_than_what_is_relevant_declare_it():
    def relevant(grades):
        return {item: grade for item, grade in grades.items() if grade > 0}

    def pooled(grades):
        return {item: grade or -1 for item, grade in grades.items()}

    assert moved_between(dict, relevant) == {n for n, m in METRICS.items() if m.truth.reads_judgements}
    unjudged = moved_between(pooled, relevant, negative_grades="unjudged")
    assert unjudged == {n for n, m in METRICS.items() if m.truth.reads_pool}


def test_the_parameter_over_stands_for_the_only_divisor_among_the_conventions():
    divisors = {"precision_over", "recall_over", "ap_over", "accuracy_over", "gini_over"}
    for name, metric in METRICS.items():
        own = divisors & set(metric.conventions)
        assert metric.over == (own.pop() if len(own) == 1 else "")
        for choice in DECISIONS.get(metric.over, ()):
            request = Request.parse(f"{name}(over={choice})" + ("@3" if metric.at_k == "required" else ""))
            assert dict(request.params) == {metric.over: choice}


@pytest.mark.parametrize("name", sorted(METRICS))
def test_what_other_rooms_are_told_of_a_metric_can_be_read(name):
    metric = METRICS[name]
    builder = builder_of(Request.parse(f"{name}@3" if metric.at_k == "required" else name))
    assert (builder is None) == (not metric.attainable.best_lists and not metric.shown.best_lists)
    assert not (metric.attainable.best_lists and metric.shown.best_lists)
    assert not metric.additivity.additive or metric.additivity.not_additive == Additivity().not_additive
    assert metric.shown.which_items is None or metric.shown.counts_items
    assert not metric.over or metric.over in metric.conventions


@pytest.mark.parametrize("name", ["mrr", "hit_rate"])
def test_a_name_is_given_once(name):
    def again(h, k, c):
        del h, k, c
        return 0.0

    with pytest.raises(ConventionError, match=f"a metric called {name!r} is registered already"):
        recsys.metric("one_more", formula="0", reference="none", aliases=[name])(again)
    assert "one_more" not in METRICS


@pytest.mark.parametrize("cut", ["10", "all", "", b"10", "5,10"])
def test_a_cut_off_that_is_text_is_shown_whole(cut):
    with pytest.raises(CutoffError, match=f"the cut-off k={re.escape(repr(cut))} is not a whole number"):
        recsys.evaluate({"u": ["a"]}, {"u": {"a"}}, ["ndcg"], k=cut)
