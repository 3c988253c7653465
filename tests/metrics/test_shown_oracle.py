"""The metrics about the items shown against their oracle, and against what was published elsewhere."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recsys
from oracles import shown as oracle_shown
from oracles.ranking import Request, parameters_to_try
from recsys.conventions.decisions import Conventions
from recsys.conventions.presets import PRESETS
from recsys.metrics.registry import METRICS
from recsys.metrics.registry import Request as EngineRequest
from worlds.lists import World, known_of, list_frame, truth_frame, worlds

pytestmark = pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")

EXAMPLES = settings.default.max_examples
# Parameters worth trying besides what the registry says. Nothing need be here.
MORE_PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "unexpectedness": [{"missing": "zero"}],
    "novelty": [{"cold": "drop"}, {"cold": "zero"}, {"cold": "drop", "over": "events"}],
    "surprisal": [{"over": "k"}],
    "average_popularity": [{"over": "users"}, {"over": "events"}],
    "epc": [
        {"relevance": "no"}, {"weight": "none"}, {"relevance": "no", "weight": "geometric", "p": 0.5},
        {"users": 8.0},
    ],
    "ils": [{"missing": "zero"}],
    "ee_d": [{}, {"weight": "log2"}, {"by": "kind", "p": 0.8}],
    "ee_r": [{}, {"weight": "log2_max2"}, {"by": "kind", "weight": "reciprocal"}],
    "ee_l": [{}, {"weight": "none"}, {"by": "kind", "p": 0.8}],
    "awrf": [
        {"by": "kind", "target": "train"}, {"by": "kind", "target": "equal", "distance": "js"},
        {"by": "kind", "target": "a:1|b:3", "distance": "hellinger", "weight": "log2"},
    ],
    "tail_share": [{"head": 0.5}],
    "ild": [
        {"distance": "euclidean"}, {"distance": "bounded_euclidean"}, {"distance": "jaccard"},
        {"distance": "hamming"}, {"missing": "zero"},
    ],
    "serendipity": [{"expected": "own"}],
    "overlap": [{"over": "union"}],
    "rbo": [{"p": 0.5}, {"form": "sum"}],
    "miscalibration": [
        {"by": "kind", "divergence": "js"}, {"by": "kind", "divergence": "hellinger"},
        {"by": "kind", "alpha": 0.2},
    ],
    "user_coverage": [{"least": 3.0}],
    "alpha_dcg": [{"alpha": 0.25}],
    "alpha_ndcg": [{"alpha": 0.25}],
    "nrbp": [{"beta": 0.75}],
    "gini": [{"corrected": "yes"}, {"weight": "log2"}, {"weight": "geometric", "p": 0.5}],
    "entropy": [{"base": 4.0}, {"weight": "log2"}],
    "cold_coverage": [{"below": 2.0}, {"below": 1.0}],
    "exposure_gap": [{"by": "kind", "merit": "train"}, {"by": "kind", "merit": "equal", "weight": "none"}],
    "exposure_ratio": [{"by": "kind", "merit": "equal", "weight": "reciprocal"}],
}  # fmt: skip
# Weights of places are kept in whole units of 2^-36, so that parts add up exactly.
IN_UNITS = frozenset(n for n, m in METRICS.items() if m.shown.exposure != "none" or "weight" in m.params)


def requests_of(name: str, k: int) -> list[Request]:
    cuts = (k,) if METRICS[name].at_k == "required" else (None, k)
    parameters = [*parameters_to_try(name), *MORE_PARAMETERS.get(name, [])]
    return [Request(name, cut, params) for params in parameters for cut in cuts]


def all_requests(world: World) -> list[Request]:
    return [r for name in sorted(oracle_shown.NAMES) for r in requests_of(name, world.k)]


def cases_with_rows(world: World) -> World:
    """The world as tables show it: a case without rows on either side is not in it."""
    if not world.scored:
        return world
    lists = {case: entries for case, entries in world.lists.items() if entries}
    return replace(world, lists=lists, truth={c: t for c, t in world.truth.items() if t})


def assert_agrees(world: World, requests: list[Request], rules: Conventions, known: Any) -> None:
    lists, truth = (list_frame(world), truth_frame(world)) if world.scored else (world.lists, world.truth)
    if world.scored and (len(lists) == 0 or len(truth) == 0):
        return
    if known.catalogue is None:
        requests = [r for r in requests if "catalogue" not in METRICS[r.name].needs]
    rows_world = cases_with_rows(world)
    result = recsys.evaluate(lists, truth, [str(r) for r in requests], conventions=rules, **known.keywords())
    ids = result.per_case.ids.tolist()
    for request in requests:
        overall, per_case = oracle_shown.evaluate(rows_world.lists, rows_world.truth, request, rules, known)
        near = {
            "rel_tol": 1e-9,
            "abs_tol": 1e-9 if request.name in IN_UNITS else 1e-7 if "euclid" in str(request) else 1e-12,
        }
        ours = result[str(request)]
        assert math.isnan(ours) if overall is None else math.isclose(ours, overall, **near), (
            str(request),
            ours,
            overall,
        )
        if request.name in oracle_shown.CATALOGUE:
            continue
        values = dict(zip(ids, result.values_of(str(request)).tolist(), strict=True))
        assert sorted(values) == sorted(per_case)
        for case, value in per_case.items():
            same = math.isnan(values[case]) if value is None else math.isclose(values[case], value, **near)
            assert same, (str(request), case, values[case], value)


@settings(max_examples=EXAMPLES * 2)
@given(
    world=worlds(), given_catalogue=st.booleans(), duplicates=st.sampled_from(["first", "all", "collapse"])
)
def test_every_metric_agrees_with_its_oracle(world, given_catalogue, duplicates):
    known = known_of(world)
    if given_catalogue:
        known = replace(known, catalogue=sorted(world.catalogue))
    requests = all_requests(world)
    if duplicates == "all":  # counting repeats takes these above what they may be
        requests = [r for r in requests if METRICS[r.name].population == "listed"]
        requests = [r for r in requests if r.name not in ("overlap", "average_overlap", "rbo")]
    assert_agrees(world, requests, Conventions(duplicates=duplicates), known)


@pytest.mark.parametrize("ties", ["by_id", "by_id_desc", "given"])
@settings(max_examples=EXAMPLES // 2)
@given(world=worlds(scored=True))
def test_equal_scores_are_shown_in_the_order_asked_for(ties, world):
    assert_agrees(world, all_requests(world), Conventions(ties=ties), known_of(world))


@settings(max_examples=EXAMPLES // 2)
@given(
    world=worlds(),
    no_truth=st.sampled_from(["skip", "zero", "unjudged"]),
    no_list=st.sampled_from(["empty", "skip"]),
    relevant_from=st.sampled_from([None, 2.0]),
    judged_only=st.sampled_from(["no", "yes"]),
)
def test_who_is_in_the_mean(world, no_truth, no_list, relevant_from, judged_only):
    rules = Conventions(
        no_truth=no_truth, no_list=no_list, relevant_from=relevant_from, judged_only=judged_only
    )
    assert_agrees(world, all_requests(world), rules, known_of(world))


def test_the_oracle_knows_every_metric_about_the_items_shown():
    about_lists = {name for name, metric in METRICS.items() if "lists" in metric.needs}
    assert about_lists == oracle_shown.NAMES
    listed = {n for n in oracle_shown.PER_CASE if METRICS[n].population == "listed"}
    assert listed == set(oracle_shown.PER_CASE) - oracle_shown.ABOUT_TRUTH
    assert {n for n, m in METRICS.items() if m.kind == "catalogue"} == set(oracle_shown.CATALOGUE)


# ndeval's own example, as published with pyndeval, to its four places.
NDEVAL = {
    "err_ia@5": 0.3933, "err_ia@10": 0.3907, "err_ia@20": 0.3907, "nerr_ia@5": 0.8297, "nerr_ia@10": 0.8297,
    "nerr_ia@20": 0.8297, "alpha_dcg@5": 0.4052, "alpha_dcg@10": 0.3998, "alpha_dcg@20": 0.3997,
    "alpha_ndcg@5": 0.7868, "alpha_ndcg@10": 0.7868, "alpha_ndcg@20": 0.7868, "nrbp": 0.3906, "nnrbp": 0.8620,
    "map_ia": 0.5, "p_ia@5": 0.2, "p_ia@10": 0.1, "p_ia@20": 0.05, "strec@5": 0.6666, "strec@20": 0.6666,
}  # fmt: skip


def test_the_intent_aware_metrics_are_those_of_ndeval():
    lists = {0: [("A", 9.3), ("D", 8.4), ("E", 8.1), ("B", 7.6)]}
    intents = {0: {"A": ["a"], "B": ["b"], "D": ["b"], "C": ["c"]}}
    result = recsys.evaluate(lists, {0: [*"ABCD"]}, list(NDEVAL), intents=intents)
    for request, published in NDEVAL.items():
        assert result[request] == pytest.approx(published, abs=1e-4), request


def test_serendipity_of_rectools():
    # the example in its documentation
    lists = {"u1": ["i1", "i2"], "u2": ["i2", "i3"], "u3": ["i3"], "u4": ["i2", "i3"]}
    truth = {"u1": ["i1", "i2"], "u2": ["i2", "i3"], "u3": ["i2"], "u4": ["i2"]}
    train = {"u1": ["i1", "i2"], "u2": ["i1", "i2"], "u3": ["i1"]}
    asked = {"train": train, "catalogue": ["i1", "i2", "i3", "i4"]}
    names = ["popularity_serendipity@1", "popularity_serendipity@2"]
    per_user = recsys.evaluate(lists, truth, names, **asked).per_user
    assert per_user[names[0]].tolist() == [0.0, 0.25, 0.0, 0.25]
    assert per_user[names[1]].tolist() == [0.0, 0.5, 0.0, 0.125]


def test_rank_biased_overlap_of_the_paper():
    # Webber, Moffat & Zobel (2010), table 1: <a b c d e f g> and <z c a v w x y> with p = 0.9.
    asked = {
        "reference": {1: [*"zcavwxy"]},
        "metrics": ["average_overlap@1", "average_overlap@7", "overlap@3"],
    }
    result = recsys.evaluate({1: [*"abcdefg"]}, {1: {"a"}}, **asked)
    agreement = [0, 0, 2 / 3, 2 / 4, 2 / 5, 2 / 6, 2 / 7]
    assert result["overlap@3"] == pytest.approx(2 / 3)
    assert result["average_overlap@1"] == 0
    assert result["average_overlap@7"] == pytest.approx(np.mean(agreement))
    same = recsys.evaluate({1: [*"abc"]}, {1: {"a"}}, "rbo(p=0.9)", reference={1: [*"abc"]})
    assert same["rbo"] == pytest.approx(1.0)
    apart = recsys.evaluate({1: [*"abc"]}, {1: {"a"}}, "rbo", reference={1: [*"xyz"]})
    assert apart["rbo"] == 0.0


def test_calibration_of_two_kinds():
    # Steck's example: the user had 70 items of one kind and 30 of another, only the first kind is shown.
    kinds = {i: "romance" if i < 70 else "action" for i in range(100)}
    asked = {"train": {1: range(100)}, "items": {"genre": kinds}}
    names = ["calibration_kl@10", "calibration_js@10", "calibration_hellinger@10"]
    result = recsys.evaluate({1: list(range(10))}, {1: {0}}, names, **asked)
    q = (0.99 + 0.01 * 0.7, 0.01 * 0.3)
    assert result["calibration_kl@10"] == pytest.approx(
        0.7 * math.log(0.7 / q[0]) + 0.3 * math.log(0.3 / q[1])
    )
    assert result["calibration_hellinger@10"] == pytest.approx(math.sqrt(1 - math.sqrt(0.7)))
    fair = recsys.evaluate({1: [*range(7), 97, 98, 99]}, {1: {0}}, names, **asked)
    assert [round(v, 12) for v in fair.values()] == [0, 0, 0]


def test_a_function_of_two_vectors_may_be_the_distance():
    vectors = {1: [0.0, 0.0], 2: [3.0, 4.0], 3: [0.0, 1.0]}

    def manhattan(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.abs(a - b).sum())

    asked = EngineRequest.of("ild@3", distance=manhattan)
    result = recsys.evaluate({1: [1, 2, 3]}, {1: {1}}, [asked], embeddings=vectors)
    assert result[str(asked)] == pytest.approx((7 + 1 + 6) / 3)
    assert str(asked) == "ild(distance=manhattan)@3"


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_presets_leave_no_metric_behind(preset):
    requests = [str(r) for r in all_requests(WORLD) if METRICS[r.name].tied.ties != "refuse"]
    about = known_of(WORLD).keywords()
    result = recsys.evaluate(WORLD.lists, WORLD.truth, requests, conventions=preset, **about)
    assert all(math.isfinite(v) for v in result.values())


WORLD = World(
    {1: ["a", "b", "c"], 2: ["d", "a"], 3: ["c", "e", "b", "a"]},
    {1: {"a": 1.0}, 2: {"b": 1.0}, 3: {"e": 1.0, "c": 1.0}},
    3, "abcdef", dict.fromkeys((1, 2, 3), 1.0), dict.fromkeys("abcdef", 1.0), {},
)  # fmt: skip


@pytest.mark.parametrize("name", ["overlap", "average_overlap", "rbo"])
def test_uncut_overlap_of_a_group_reaches_as_deep_as_its_last_item(name):
    lists, reference = {1: [1, 2, 3, 5, 7]}, {1: [7]}
    groups = {"item": [1, 2, 3, 5, 7], "kind": ["a", "a", "a", "b", "b"]}
    result = recsys.evaluate(
        lists, {1: {3}}, name, reference=reference, items=pd.DataFrame(groups), by="kind"
    )
    assert result.by["b"][name] == result[name] > 0.0
    assert result.by["a"][name] == 0.0


def test_a_list_whose_ranks_are_kept_is_as_long_as_its_last_rank():
    """As if the empty places held items that nobody else shows, and beyond k too."""
    ranks = {"a": 1, "b": 2, "c": 6}
    rows = pd.DataFrame({"user": 1, "item": [*ranks, "a"], "rank": [*ranks.values(), 9]})
    filled = {1: ["a", "b", "n1", "n2", "n3", "c", "n4", "n5", "a"]}
    for reference in ([*"axc"], [*"xyza"], ["b"]):
        for metric in ("rbo(p=0.5)", "rbo(p=0.5)@4", "rbo(form=sum)@4", "average_overlap", "overlap"):
            kept, whole = (
                recsys.evaluate(
                    lists, {1: {"a"}}, metric, reference={1: reference}, conventions={"rank_gaps": "kept"}
                )
                for lists in (rows, filled)
            )
            assert dict(kept) == dict(whole)
