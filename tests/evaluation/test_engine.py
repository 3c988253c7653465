"""The engine against the oracle: every metric, every preset, every tie rule, every container.

Cases and items are counted the same way on both sides, so ratios of whole numbers must be equal to the last
bit; whatever is summed from logarithms or powers must agree to 12 digits.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

import recsys
from oracles import ranking as oracle
from oracles import shown as oracle_shown
from oracles.ranking import RefusedError, Request
from recsys.conventions.decisions import DECISIONS, Conventions
from recsys.conventions.presets import PRESETS
from recsys.errors import DuplicateError, RecsysError
from recsys.metrics.registry import METRICS
from worlds.lists import World, list_frame, truth_frame, worlds

# These tests compare how ties are broken, so a warning about ties adds nothing.
pytestmark = pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")

EXACT = frozenset(
    {
        "precision",
        "recall",
        "capped_recall",
        "hit",
        "hits",
        "mrr",
        "r_precision",
        "judged",
        "accuracy",
        "average_rank",
        "iprec",
        "set_precision",
        "set_recall",
        "set_map",
        "set_relative_precision",
    }
)
# Worth trying besides what the registry says: parameters of a metric's own, and pairs. Nothing need be here.
MORE_PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "precision": [{"over": "list"}, {"relevant_from": 2}],
    "recall": [{"over": "min"}, {"recall_over": "min", "relevant_from": 0.5}],
    "f": [{"beta": 2}, {"beta": 0.5, "precision_over": "list"}],
    "hit": [{"relevant_from": 1}],
    "mrr": [{"relevant_from": 1.5}],
    "map": [{"over": "relevant"}],
    "gmap": [{"eps": 0.001}, {"over": "relevant"}],
    "ndcg": [{"ideal": "all", "discount": "reciprocal"}, {"discount": "log2_max2", "relevant_from": 2}],
    "rbp": [{"p": 0.5}, {"p": 0.95}],
    "err": [{"max_grade": 5}, {"relevant_from": 1}],
    "bpref": [{"relevant_from": 2}],
    "average_rank": [{"relevant_from": 1}],
    "gauc": [{"weight": "relevant"}],
    "count": [{"what": "relevant"}, {"what": "not_relevant"}],
    "utility": [{"a": 2.0, "b": 0.0, "missed": -1.0, "rest": 0.5}],
    "r_precision_at": [{"multiple": 0.4}, {"multiple": 2.0}],
    "iprec": [{"recall": 0}, {"recall": 0.35}, {"recall": 1, "relevant_from": 2}],
    "set_f": [{"beta": 2}],
    "compat": [{"p": 0.5}, {"over": "weights"}],
    "inst": [{"target": 0.5}, {"target": 2, "min_grade": 1, "max_grade": 5}, {"depth": 3}],
    "bpm": [{"target": 0.5}, {"target": 2, "min_grade": 1, "max_grade": 5}],
    "sdcg": [{"min_grade": 1, "max_grade": 5}],
    "graded_rbp": [{"p": 0.5}],
}
WHOLE = oracle.NEED_CANDIDATES
ON_LISTS = sorted(oracle.NAMES - oracle.NEED_CANDIDATES - oracle.NEED_CATALOGUE)
EXAMPLES = settings.default.max_examples


def requests_of(name: str, k: int) -> list[Request]:
    cuts = {"optional": (None, k), "required": (k,), "never": (None,)}[METRICS[name].at_k]
    parameters = [*oracle.parameters_to_try(name), *MORE_PARAMETERS.get(name, [])]
    return [Request(name, cut, params) for params in parameters for cut in cuts]


OPEN_TIES = ("expected", "best", "worst")


def settled(world: World, ties: str) -> bool:
    """No judged item that is listed twice shares its score: the open tie rules refuse such a list."""
    if not world.scored or ties not in OPEN_TIES:
        return True
    for case, entries in world.lists.items():
        items, scores = Counter(i for i, _ in entries), Counter(s for _, s in entries)
        if any(items[i] > 1 and scores[s] > 1 and i in world.truth.get(case, {}) for i, s in entries):
            return False
    return True


def everything(world: World, names: list[str]) -> list[Request]:
    return [request for name in names for request in requests_of(name, world.k)]


def has_repeats(world: World) -> bool:
    items = [[entry[0] if world.scored else entry for entry in entries] for entries in world.lists.values()]
    return any(len(set(one)) < len(one) for one in items)


def containers_of(world: World) -> tuple[Any, Any]:
    """The world as users usually pass it: tables if there are scores, dicts if there are none."""
    if world.scored:
        return list_frame(world), truth_frame(world)
    return dict(world.lists), dict(world.truth)


def visible(world: World) -> World:
    """The part of the world that a frame can express: a case without rows on either side is not in it."""
    lists = {case: entries for case, entries in world.lists.items() if entries}
    truth = {case: wanted for case, wanted in world.truth.items() if wanted}
    return replace(world, lists=lists, truth=truth)


def same(got: float, wanted: float | None, *, exact: bool) -> bool:
    if wanted is None:
        return math.isnan(got)
    return got == wanted if exact else math.isclose(got, wanted, rel_tol=1e-12, abs_tol=1e-15)


def assert_agrees(world: World, requests: list[Request], conventions: Conventions, **context: Any) -> None:
    """The engine, given all requests at once, equals the oracle for every request and case."""
    lists, truth = containers_of(world)
    world = visible(world) if world.scored else world
    told = {"n_items" if isinstance(v, int) and n == "catalogue" else n: v for n, v in context.items()}
    answers = {request: ask_oracle(world, request, conventions, told) for request in requests}
    wanted = {request: answer for request, answer in answers.items() if answer is not None}
    for request in set(requests) - set(wanted):
        with pytest.raises(RecsysError):
            recsys.evaluate(lists, truth, metrics=str(request), conventions=conventions, **context)
    if not wanted:
        return
    result = recsys.evaluate(
        lists, truth, metrics=[str(r) for r in wanted], conventions=conventions, **context
    )
    ids = result.per_case.ids.tolist()
    for request, (overall, per_case) in wanted.items():
        rules = oracle.request_conventions(request.name, request.params, conventions)[0]
        exact = request.name in EXACT and rules.ties != "expected" and context.get("item_weights") is None
        got = dict(zip(ids, result.values_of(str(request)).tolist(), strict=True))
        assert sorted(got) == sorted(per_case)
        for case, value in per_case.items():
            assert same(got[case], value, exact=exact), (str(request), case, got[case], value)
        assert same(result[str(request)], overall, exact=False), (str(request), result[str(request)], overall)


def ask_oracle(world: World, request: Request, conventions: Conventions, told: dict[str, Any]) -> Any:
    """The value of the oracle; None if it refuses, or if counting repeats leaves the metric's range."""
    low, high = METRICS[request.name].bounds
    try:
        overall, per_case = oracle.evaluate(world.lists, world.truth, request, conventions, **told)
    except RefusedError:
        return None
    inside = [value is None or low - 1e-9 <= value <= high + 1e-9 for value in per_case.values()]
    return (overall, per_case) if all(inside) else None


def test_the_oracle_knows_every_metric_and_every_alias():
    assert sorted(METRICS) == sorted(oracle.NAMES | oracle_shown.NAMES)
    aliases = {alias: name for name, metric in METRICS.items() for alias in metric.aliases}
    assert aliases.items() >= oracle.ALIASES.items()


@pytest.mark.parametrize("name", ON_LISTS)
@settings(max_examples=EXAMPLES // 4)
@given(world=worlds())
def test_each_metric_on_lists(name, world):
    assert_agrees(world, requests_of(name, world.k), Conventions())


@pytest.mark.parametrize("preset", sorted(PRESETS))
@settings(max_examples=EXAMPLES // 8)
@given(world=worlds())
def test_each_preset(preset, world):
    conventions = Conventions.named(preset)
    for metric in (*METRICS, ""):
        assume(settled(world, conventions.for_metric(metric).ties))
    assert_agrees(world, everything(world, ON_LISTS), conventions)


@pytest.mark.parametrize("ties", sorted(DECISIONS["ties"]))
@settings(max_examples=EXAMPLES // 5)
@given(world=worlds(scored=True, repeats=False))
def test_each_tie_rule(ties, world):
    assert_agrees(world, everything(world, ON_LISTS), Conventions(ties=ties))


@pytest.mark.parametrize("ties", ["by_id", "by_id_desc", "given", "expected"])
@settings(max_examples=EXAMPLES // 5)
@given(world=worlds(scored=True), duplicates=st.sampled_from(["first", "all", "collapse"]))
def test_tie_rules_with_repeats(ties, world, duplicates):
    assume(duplicates == "collapse" or settled(world, ties))
    assert_agrees(world, everything(world, ON_LISTS), Conventions(ties=ties, duplicates=duplicates))


@pytest.mark.parametrize("ties", sorted(DECISIONS["ties"]))
@settings(max_examples=EXAMPLES // 5)
@given(world=worlds(repeats=False, complete=True))
def test_whole_rankings(ties, world):
    assert_agrees(world, everything(world, sorted(WHOLE)), Conventions(ties=ties), full_ranking=True)


@settings(max_examples=EXAMPLES // 2)
@given(world=worlds(repeats=False), by_count=st.booleans())
def test_with_a_catalogue(world, by_count):
    names = ["accuracy", "mcc", "recall", "ndcg", "bpref"]
    catalogue: Any = len(world.item_weights) + 5 if by_count else sorted(world.item_weights)
    assert_agrees(world, everything(world, names), Conventions(), catalogue=catalogue)


@settings(max_examples=EXAMPLES // 2)
@given(world=worlds(), rule=st.sampled_from(["miss", "drop"]))
def test_items_outside_the_catalogue(world, rule):
    conventions = Conventions(unknown_items=rule)
    assert_agrees(world, everything(world, ON_LISTS), conventions, catalogue=sorted(world.catalogue))


@st.composite
def conventions_of_any_kind(draw: st.DrawFn) -> Conventions:
    """Any combination of decisions, except those that raise errors."""
    picked = {
        name: draw(st.sampled_from(sorted(set(choices) - {"error"}))) for name, choices in DECISIONS.items()
    }
    picked["relevant_from"] = draw(st.sampled_from([None, 0.0, 1.0, 2.0]))
    picked["max_grade"] = draw(st.sampled_from([None, 4.0, 6.0]))
    if draw(st.integers(0, 4)) == 0:
        picked["gain"] = {0: 0, 0.1: 0.1, 0.5: 1, 1: 1, 1.5: 2, 2: 2, 2.25: 2.5, 3: 4, 4: 8}
    if draw(st.integers(0, 4)) == 0:
        picked["discount"] = [1, 0.75, 0.5, 0.5, 0.25]
    return Conventions(**picked)


@settings(max_examples=EXAMPLES)
@given(world=worlds(), conventions=conventions_of_any_kind())
def test_any_conventions(world, conventions):
    assume(settled(world, conventions.ties))
    event(conventions.ties)
    assert_agrees(world, everything(world, ON_LISTS), conventions)


def test_uncut_precision_over_min_takes_the_length_of_the_list_for_k():
    value = recsys.evaluate({1: ["a"]}, {1: {"a", "b"}}, "precision(over=min)")["precision(over=min)"]
    assert value == 1.0


def test_a_geometric_mean_is_weighed_by_case():
    lists, truth = {1: ["a"], 2: ["b"]}, {1: {"a"}, 2: {"a", "b"}}
    value = recsys.evaluate(lists, truth, "gmap", case_weights={1: 3, 2: 1})["gmap"]
    assert value == pytest.approx(0.5**0.25, rel=1e-12)


@settings(max_examples=EXAMPLES // 2)
@given(world=worlds(), average=st.sampled_from(["macro", "pooled"]))
def test_case_weights(world, average):
    requests = everything(world, ["precision", "recall", "capped_recall", "judged", "ndcg", "map", "f"])
    assert_agrees(world, requests, Conventions(average=average), case_weights=dict(world.case_weights))


@settings(max_examples=EXAMPLES // 2)
@given(world=worlds(complete=True, repeats=False))
def test_case_weights_of_whole_rankings(world):
    weights = dict(world.case_weights)
    assert_agrees(
        world, everything(world, sorted(WHOLE)), Conventions(), full_ranking=True, case_weights=weights
    )


@settings(max_examples=EXAMPLES // 2)
@given(world=worlds(repeats=False), ties=st.sampled_from(["by_id", "given", "expected"]))
def test_item_weights(world, ties):
    requests = [Request(name, k) for name in ("hits", "recall", "dcg", "ndcg") for k in (None, world.k)]
    requests += [Request("ndcg", world.k, {"gain": "exp2"}), Request("ndcg", world.k, {"ideal": "list"})]
    assert_agrees(world, requests, Conventions(ties=ties), item_weights=dict(world.item_weights))


def numbered(world: World) -> World:
    """The same world with cases 0, 1, 2, … and items 0, 1, 2, … in the order of their old ids."""
    cases = {case: at for at, case in enumerate(world.cases)}
    items = {item: at for at, item in enumerate(sorted(world.item_weights))}

    def entry(one: Any) -> Any:
        return (items[one[0]], one[1]) if world.scored else items[one]

    return World(
        {cases[case]: [entry(one) for one in world.lists.get(case, [])] for case in world.cases},
        {cases[c]: {items[i]: g for i, g in world.truth.get(c, {}).items()} for c in world.cases},
        world.k,
        sorted(items[i] for i in world.catalogue),
        {cases[case]: world.case_weights[case] for case in world.cases},
        {items[i]: w for i, w in world.item_weights.items()},
        {},
        world.scored,
    )


def padded(world: World) -> np.ndarray:
    width = max(1, *(len(entries) for entries in world.lists.values()))
    return np.array([[*entries, *[-1] * (width - len(entries))] for entries in world.lists.values()])


def sparse_truth(world: World) -> sp.csr_matrix:
    rows = world.truth_rows()
    shape = (len(world.cases), len(world.item_weights))
    grades = [grade for *_, grade in rows]
    return sp.csr_matrix((grades, ([c for c, *_ in rows], [i for _, i, _ in rows])), shape=shape)


def sparse_lists(world: World) -> sp.csr_matrix:
    rows = world.list_rows()
    shape = (len(world.cases), len(world.item_weights))
    scores = [score for *_, score in rows]
    return sp.csr_matrix((scores, ([c for c, *_ in rows], [i for _, i, _ in rows])), shape=shape)


def extension_types(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.convert_dtypes()


def in_chunks(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table.slice(0, 1), table.slice(1)])


FRAMES = {
    "pandas": lambda frame: frame,
    "pandas, other index": lambda frame: frame.set_index(np.arange(len(frame))[::-1]),
    "pandas, extension types": extension_types,
    "pandas, arrow types": lambda frame: pa.Table.from_pandas(frame).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_pandas,
    "polars, lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "arrow, in chunks": lambda frame: in_chunks(pa.Table.from_pandas(frame, preserve_index=False)),
}


def assert_same_numbers(world: World, lists: Any, truth: Any, expected: Any, *, all_cases: bool) -> None:
    result = recsys.evaluate(lists, truth, metrics=[str(r) for r in everything(world, ON_LISTS)])
    assert [repr(v) for v in result.values()] == [repr(v) for v in expected.values()]
    at = {case: row for row, case in enumerate(result.per_case.ids.tolist())}
    ids = expected.per_case.ids.tolist()
    assert set(at) <= set(ids)
    assert set(at) == set(ids) or not all_cases
    rows = [row for row, case in enumerate(ids) if case in at]
    for request, column in expected.per_case.columns.items():
        got = result.per_case.columns[request][[at[ids[row]] for row in rows]]
        np.testing.assert_array_equal(got, column[rows], err_msg=request)


@pytest.fixture(scope="module")
def as_dicts():
    def run(world: World) -> Any:
        """The numbers that every other container must give too; other tests compare them with the oracle."""
        metrics = [str(r) for r in everything(world, ON_LISTS)]
        return recsys.evaluate(dict(world.lists), dict(world.truth), metrics=metrics)

    return run


def nonempty(world: World) -> bool:
    return any(world.lists.values()) and any(world.truth.values())


@settings(max_examples=EXAMPLES // 2)
@given(world=worlds(scored=True).filter(nonempty))
def test_pairs_in_a_dict_agree_with_the_oracle(world):
    result = recsys.evaluate(dict(world.lists), dict(world.truth), metrics=["ndcg", f"map@{world.k}"])
    for request in (Request("ndcg"), Request("map", world.k)):
        overall, _ = oracle.evaluate(world.lists, world.truth, request, Conventions())
        assert same(result[str(request)], overall, exact=False)


@pytest.mark.parametrize("kind", sorted(FRAMES))
@settings(max_examples=EXAMPLES // 10)
@given(world=worlds().filter(nonempty))
def test_frames_give_the_numbers_of_dicts(kind, world, as_dicts):
    lists, truth = FRAMES[kind](list_frame(world)), FRAMES[kind](truth_frame(world))
    assert_same_numbers(world, lists, truth, as_dicts(world), all_cases=False)


@settings(max_examples=EXAMPLES // 5)
@given(world=worlds(grades="binary").filter(nonempty))
def test_sets_and_lists_are_binary_truths(world, as_dicts):
    expected = as_dicts(world)
    for kind in (set, frozenset, list, tuple):
        truth = {case: kind(wanted) for case, wanted in world.truth.items()}
        assert_same_numbers(world, dict(world.lists), truth, expected, all_cases=True)
    assert_same_numbers(
        world, dict(world.lists), truth_frame(world)[["user", "item"]], expected, all_cases=False
    )


@settings(max_examples=EXAMPLES // 5)
@given(world=worlds(scored=False).filter(nonempty).map(numbered))
def test_sequences_and_arrays_number_their_cases(world, as_dicts):
    expected = as_dicts(world)
    rows = list(world.lists.values())
    truth = list(world.truth.values())
    assert_same_numbers(world, rows, truth, expected, all_cases=True)
    assert_same_numbers(world, [tuple(row) for row in rows], sparse_truth(world), expected, all_cases=True)
    assert_same_numbers(
        world, [np.array(row, dtype=np.int32) for row in rows], truth, expected, all_cases=True
    )
    assert_same_numbers(world, padded(world), truth, expected, all_cases=True)


@settings(max_examples=EXAMPLES // 5)
@given(world=worlds(scored=True, repeats=False).filter(nonempty).map(numbered))
def test_dicts_of_scores_and_matrices(world, as_dicts):
    expected = as_dicts(world)
    scores = {case: dict(entries) for case, entries in world.lists.items()}
    assert_same_numbers(world, scores, dict(world.truth), expected, all_cases=True)
    for kind in (sp.csr_matrix, sp.csr_array, sp.coo_matrix, sp.csc_matrix):
        lists, truth = kind(sparse_lists(world)), kind(sparse_truth(world))
        assert_same_numbers(world, lists, truth, expected, all_cases=True)


@settings(max_examples=EXAMPLES // 3)
@given(world=worlds(), ties=st.sampled_from(sorted(DECISIONS["ties"])))
def test_one_list_alone(world, ties):
    assume(settled(world, ties))
    for case in (case for case in world.lists if world.truth.get(case)):
        alone = replace(world, lists={case: world.lists[case]}, truth={case: world.truth[case]})
        for request in everything(world, ON_LISTS):
            refused = {"expected": oracle.NO_EXPECTATION, "best": oracle.NO_ORDER, "worst": oracle.NO_ORDER}
            if request.name in refused.get(ties, ()):
                continue
            wanted, _ = oracle.evaluate(alone.lists, alone.truth, request, Conventions(ties=ties))
            got = recsys.score_list(
                world.lists[case], world.truth[case], str(request), conventions={"ties": ties}
            )
            assert same(got, 0.0 if wanted is None else wanted, exact=False), (str(request), got, wanted)


def test_one_list_without_truth_is_worth_nothing():
    for listed in ([], [1], [(1, 0.5)]):
        assert recsys.score_list(listed, set(), "ndcg@3") == 0
        assert recsys.score_list(listed, {}, "ndcg@3") == 0
        assert recsys.score_list(listed, {1: 0}, "ndcg@3") == 0


def test_the_geometric_mean_of_one_list_does_not_depend_on_how_it_is_written():
    for listed in ([1], [(1, 0.5)]):
        assert recsys.score_list(listed, {1}, "gmap") == 1
        assert recsys.score_list(listed, {2}, "gmap") == pytest.approx(1e-5)


def test_a_table_of_grades_below_one_has_its_own_highest_grade():
    value = recsys.evaluate({1: ["a"]}, {1: {"a": 0.5}}, "err")["err"]
    assert value == pytest.approx((2**0.5 - 1) / 2**0.5, rel=1e-12)


@pytest.mark.parametrize("ties", ["expected", "best", "worst"])
def test_an_item_tied_with_its_own_repeat_is_refused(ties):
    for entries in ([("a", 1.0), ("a", 1.0)], [("a", 2.0), ("a", 1.0), ("x", 1.0)]):
        with pytest.raises(DuplicateError, match="item 'a' more than once, with a tied score"):
            recsys.evaluate({1: entries}, {1: {"a"}}, "mrr", conventions={"ties": ties})
    harmless = {1: [("a", 1.0), ("x", 0.5), ("x", 0.5)]}
    assert recsys.evaluate(harmless, {1: {"a"}}, "mrr", conventions={"ties": ties})["mrr"] == 1.0


@settings(max_examples=EXAMPLES // 2)
@given(world=worlds(scored=True).filter(has_repeats))
def test_no_order_of_ties_beats_the_best_or_falls_below_the_worst(world):
    assume(settled(world, "best"))
    asked = [f"{name}@{world.k}" for name in ("hits", "dcg", "map", "mrr", "rbp")]
    values = {
        ties: recsys.evaluate(dict(world.lists), dict(world.truth), asked, conventions={"ties": ties})
        for ties in DECISIONS["ties"]
    }
    for request in asked:
        best, worst = values["best"].values_of(request), values["worst"].values_of(request)
        for ties, result in values.items():
            column = result.values_of(request)
            assert not (column > best * (1 + 1e-12)).any(), (request, ties)
            assert not (column < worst * (1 - 1e-12)).any(), (request, ties)


@pytest.mark.parametrize("name", sorted(oracle.NAMES))
def test_what_the_oracle_refuses_the_engine_refuses(name):
    world = World(
        {1: [("a", 1.0), ("b", 1.0)]}, {1: {"a": 1}}, 3, "ab", {1: 1.0}, {"a": 1.0, "b": 1.0}, {}, scored=True
    )
    situations: list[tuple[Conventions, dict[str, Any]]] = [
        (Conventions(), {}),
        (Conventions(), {"full_ranking": True}),
        (Conventions(), {"catalogue": 9}),
        (Conventions(ties="expected"), {"full_ranking": True, "catalogue": 9}),
        (Conventions(), {"full_ranking": True, "catalogue": 9, "item_weights": dict(world.item_weights)}),
    ]
    refused = 0
    for conventions, context in situations:
        told = {"n_items" if n == "catalogue" else n: v for n, v in context.items()}
        for request in requests_of(name, 3):
            try:
                oracle.evaluate(world.lists, world.truth, request, conventions, **told)
            except RefusedError:
                refused += 1
                with pytest.raises(RecsysError):
                    recsys.evaluate(
                        dict(world.lists),
                        dict(world.truth),
                        metrics=[str(request)],
                        conventions=conventions,
                        **context,
                    )
            else:
                recsys.evaluate(
                    dict(world.lists),
                    dict(world.truth),
                    metrics=[str(request)],
                    conventions=conventions,
                    **context,
                )
    assert bool(refused) == (name not in oracle.WEIGHABLE - {"recall"})
