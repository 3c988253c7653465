"""The range of every metric holds its values whatever the lists are, and lists that reach it exist."""

from __future__ import annotations

import math
import pickle
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recsys
from recsys.metrics.ranges import metric_range
from recsys.metrics.registry import METRICS, Request
from worlds.lists import known_of, list_frame, truth_frame, worlds

pytestmark = pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")

OPEN = sorted(n for n, m in METRICS.items() if not np.isfinite(m.bounds).all() and m.kind != "catalogue")
VARIANTS = {
    "ild": ["euclidean", "bounded_euclidean", "jaccard", "hamming"],
    "miscalibration": ["js", "hellinger"],
}
CUT_OFF = [name for name in OPEN if "candidates" not in METRICS[name].needs]


def names_at(k: int) -> list[str]:
    columns = {
        "value": "of=price",
        "shown_value": "of=price",
        "kinds": "by=kind",
        "miscalibration": "by=kind",
    }
    names = [f"{name}({columns[name]})" if name in columns else name for name in CUT_OFF]
    names += [f"ild(distance={one})" for one in VARIANTS["ild"]]
    names += [f"miscalibration(by=kind, divergence={one})" for one in VARIANTS["miscalibration"]]
    names += ["miscalibration(by=kind, alpha=0.3)", "novelty(over=events)", "average_popularity(over=users)"]
    names += ["dcg(gain=exp2)", "dcg(gain=binary, discount=reciprocal)", "nnrbp(alpha=0.9, beta=0.9)"]
    uncut = ["count", "utility", *(f"count(what={what})" for what in ("relevant", "not_relevant"))]
    uncut += ["utility(missed=-2, rest=1)"]
    return [f"{name}@{k}" for name in names if name not in uncut] + uncut


def assert_within(result: recsys.Evaluation) -> None:
    for name, (low, high) in result.ranges.items():
        assert math.isfinite(low), name
        assert math.isfinite(high) or "nrbp" in name or "_ndcg" in name or "nerr" in name, name
        values = result.values_of(name)
        values = values[~np.isnan(values)]
        slack = 1e-9 * (1 + abs(low) + (high if math.isfinite(high) else 0.0))
        assert (values >= low - slack).all(), (name, low, values)
        assert (values <= high + slack).all(), (name, high, values)


def test_every_metric_without_declared_bounds_says_how_to_find_them() -> None:
    assert OPEN
    for name in OPEN:
        assert METRICS[name].attainable.range is not None, f"{name} declares an infinite bound and no range="


@given(
    world=worlds(),
    duplicates=st.sampled_from(["first", "all", "collapse"]),
    relevant_from=st.sampled_from([None, 2.0]),
)
def test_values_lie_in_the_range(world, duplicates, relevant_from) -> None:
    lists, truth = (list_frame(world), truth_frame(world)) if world.scored else (world.lists, world.truth)
    if world.scored and (len(lists) == 0 or len(truth) == 0):
        return
    rules = {"duplicates": duplicates, "relevant_from": relevant_from, "no_truth": "zero", "ties": "by_id"}
    keywords = known_of(world).keywords()
    assert_within(recsys.evaluate(lists, truth, names_at(world.k), conventions=rules, **keywords))


@given(world=worlds(scored=True, repeats=False), ties=st.sampled_from(["expected", "best", "worst"]))
def test_every_order_of_ties_lies_in_the_range(world, ties) -> None:
    lists, truth = list_frame(world), truth_frame(world)
    if len(lists) and len(truth):
        names = ["hits", f"hits@{world.k}", "dcg(gain=exp2)", f"dcg@{world.k}"]
        assert_within(recsys.evaluate(lists, truth, names, conventions={"ties": ties}))


@given(world=worlds(scored=False), duplicates=st.sampled_from(["first", "all", "collapse"]))
def test_item_weights_widen_it(world, duplicates) -> None:
    names = ["hits", "dcg(gain=exp2)", f"hits@{world.k}", f"dcg@{world.k}"]
    result = recsys.evaluate(
        world.lists,
        world.truth,
        names,
        item_weights=world.item_weights,
        conventions={"duplicates": duplicates},
    )
    assert_within(result)


@given(world=worlds(complete=True, repeats=False, one_sided=False))
def test_average_rank_ends_at_the_last_candidate(world) -> None:
    lists, truth = (list_frame(world), truth_frame(world)) if world.scored else (world.lists, world.truth)
    result = recsys.evaluate(lists, truth, ["average_rank"], full_ranking=True)
    assert result.ranges["average_rank"] == (1.0, len(world.catalogue))
    assert_within(result)


@pytest.mark.parametrize("discount", ["log2", [0.5, 1.0, 0.25]])
@pytest.mark.parametrize("gain", ["grade", "exp2"])
def test_the_best_lists_reach_the_bounds_of_sums(gain, discount) -> None:
    truth = {1: {"a": 1.0, "b": 2.0, "c": 0.0}, 2: {"c": 3.0}, 3: {"a": 1.0, "d": 1.0, "b": 1.0, "c": 1.0}}
    options = {"items": {"price": {"a": 1.0, "b": -2.0, "c": 4.0}}}
    rules = {"gain": gain, "discount": discount}
    names = ["dcg@3", "hits@3", "value@3", "shown_value@3"]
    reached = dict.fromkeys(names, -math.inf)
    for order in permutations("abcd", 3):
        lists = {user: list(order) for user in truth}
        result = recsys.evaluate(lists, truth, names, conventions=rules, **options)
        for name in names:
            reached[name] = max(reached[name], float(np.nanmax(result.values_of(name))))
    for name in names:
        assert reached[name] == pytest.approx(result.ranges[name][1], rel=1e-12), name
    assert result.ranges["value@3"][0] == -2.0


def test_the_length_of_the_lists_and_the_number_of_relevant_items_limit_it() -> None:
    truth = {u: {u: 1.0, u + 1: 1.0} for u in range(5)}
    short = recsys.evaluate({u: [u] for u in truth}, truth, ["hits", "dcg@10"])
    assert short.ranges == {"hits": (0.0, 1.0), "dcg@10": (0.0, 1.0)}
    long = recsys.evaluate({u: [7, 8, 9, u] for u in truth}, truth, ["hits", "hits@1"])
    assert long.ranges == {"hits": (0.0, 2.0), "hits@1": (0.0, 1.0)}
    ranked = recsys.evaluate(recsys.Scores(np.eye(6)), truth, ["average_rank"], seen={})
    assert ranked.ranges == {"average_rank": (1.0, 6.0)}


def test_a_function_as_distance_and_a_gain_without_a_grade_have_none() -> None:
    request = Request.of("ild@2", distance=lambda a, b: float(a @ b))
    vectors = {"a": [1.0, 0.0], "b": [0.0, 9.0]}
    result = recsys.evaluate({1: ["a", "b"]}, {1: {"a": 1.0}}, [request], embeddings=vectors)
    assert result.ranges[str(request)] == (0.0, math.inf)
    rules = {"gain": {1.0: 2.0}}
    result = recsys.evaluate({1: ["a"]}, {1: {"a": 1.0, "b": 3.0}}, ["dcg@1"], conventions=rules)
    assert result.ranges == {"dcg@1": (0.0, math.inf)}
    assert metric_range(Request.parse("dcg@1")) == (0.0, math.inf)


def test_it_stays_with_the_result(tmp_path) -> None:
    truth = {1: {"a": 1.0, "b": 2.0}, 2: {"c": 4.0}}
    whole = recsys.evaluate({1: ["a"], 2: ["x"]}, truth, ["dcg@3", "ndcg@3", "coverage@3"], catalogue=9)
    assert whole.ranges == {"dcg@3": (0.0, 4.0), "ndcg@3": (0.0, 1.0)}
    whole.save(tmp_path / "a.json")
    assert recsys.load(tmp_path / "a.json").ranges == whole.ranges
    assert pickle.loads(pickle.dumps(whole)).ranges == whole.ranges  # noqa: S301 - our own bytes
    parts = [
        recsys.evaluate({u: lists}, {u: truth[u]}, ["dcg@3", "ndcg@3", "coverage@3"], catalogue=9)
        for u, lists in ((1, ["a"]), (2, ["x"]))
    ]
    assert parts[0].ranges["dcg@3"] == (0.0, 2.0)
    assert parts[0].merge(parts[1]).ranges == whole.ranges
    batches = recsys.Evaluator(["dcg@3", "ndcg@3", "coverage@3"], catalogue=9)
    batches.update({1: ["a"]}, {1: truth[1]}).update({2: ["x"]}, {2: truth[2]})
    assert batches.result().ranges == whole.ranges


def test_the_range_of_a_distance_or_of_a_popularity_is_what_the_data_allow():
    vectors, train = {"a": [3.0, 4.0], "b": [0.0, 1.0]}, {1: ["a", "b"], 2: ["a"]}
    names = ["ild(distance=euclidean)@2", "ild(distance=hamming)@2", "ild@2", "ild(distance=jaccard)@2"]
    names += ["average_popularity(over=events)@2", "average_popularity(over=users)@2"]
    lists = {1: ["a", "b"]}
    result = recsys.evaluate(lists, {1: ["a"]}, names, embeddings=vectors, train=train)
    assert [*result.ranges.values()] == [(0, 10), (0, 2), (0, 2), (0, 1), (0, 2), (0, 1)]
