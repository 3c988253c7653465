"""Bounds of metrics about the items shown, compared with every possible list, and their building blocks."""

from __future__ import annotations

import math
import tracemalloc
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest

import recsys
from recsys.evaluation.bounds import best_and_floor
from recsys.evaluation.bounds.candidate_pool import CandidatePool, random_lists
from recsys.evaluation.bounds.even_exposure import most_even_counts
from recsys.inputs import read_interactions, read_lists
from recsys.metrics.registry import METRICS, Request
from recsys.ranks.ranked_truth import match_truth
from recsys.records.arrays import Context, Ids
from worlds.bounds import metrics_at, small_world, try_all


@pytest.mark.parametrize(("seed", "n_users", "n_items", "k"), [
    (0, 2, 5, 2), (1, 3, 4, 2), (2, 2, 4, 3), (3, 2, 5, 2), (4, 3, 4, 2), (5, 2, 4, 3),
])  # fmt: skip
def test_every_metric_against_all_the_lists_there_are(seed, n_users, n_items, k, monkeypatch):
    # Few draws: many draws would find the best lists of such small worlds by chance.
    monkeypatch.setattr(best_and_floor, "_MAX_DRAWS", 4)
    world = small_world(seed, n_users, n_items, k)
    asked = metrics_at(k)
    tried = try_all(world, asked)
    shown = {u: world.lists(u)[-1] for u in world.users}
    bounds = world.evaluate(shown, asked).bounds()
    for name in asked:
        found, true = bounds[name], tried[name]
        sign = -1 if Request.parse(name).metric.better == "lower" else 1
        if math.isnan(true.best):
            assert math.isnan(found.best), name
            assert found.why, name
            continue
        assert found.best_how in ("exact", "found"), name
        if found.best_how == "exact":
            assert found.best == pytest.approx(true.best, abs=1e-9), name
        assert sign * (found.best - true.best) <= 1e-9, name
        assert sign * (found.best - found.value) >= -1e-9, name
        if found.floor_how == "exact":
            assert found.floor == pytest.approx(true.mean, abs=1e-9), name
            assert sign * (true.best - found.floor) >= -1e-9, name
        else:
            assert sign * (found.best - found.floor) >= -1e-9, name


@pytest.mark.parametrize("seed", [0, 1])
def test_a_drawn_floor_lies_within_its_error_of_the_mean_of_all_lists(seed):
    world = small_world(seed, 2, 4, 2)
    asked = metrics_at(2)
    tried = try_all(world, asked)
    bounds = world.evaluate({u: world.lists(u)[0] for u in world.users}, asked).bounds()
    drawn = [name for name in asked if bounds[name].floor_how == "drawn"]
    assert len(drawn) > 20
    for name in drawn:
        assert abs(bounds[name].floor - tried[name].mean) <= 4.5 * bounds[name].floor_error + 1e-12, name


def test_the_value_of_items_against_all_the_lists_there_are():
    items, truth, seen = [*"abcde"], {1: {"a", "b", "c"}, 2: {"c", "d"}}, {1: ["a"], 2: []}
    price = {"a": 9.0, "b": -2.0, "c": 4.0, "d": 1.0}
    asked = ["value@2", "shown_value@2"]
    orders = {u: list(permutations([i for i in items if i not in seen[u]], 2)) for u in truth}
    known = {"seen": seen, "items": {"price": price}, "catalogue": items}
    runs = [recsys.evaluate({u: list(orders[u][turn % len(orders[u])]) for u in truth}, truth, asked, **known)
            for turn in range(20)]  # fmt: skip
    bounds = runs[0].bounds()
    for name in asked:
        columns = np.array([run.values_of(name) for run in runs])
        best = [columns[: len(orders[u]), at].max() for at, u in enumerate(truth)]
        assert bounds[name].best == np.mean(best)
        assert bounds[name].best_how == "exact"
    assert bounds["value@2"].floor == pytest.approx((1 / 2 * (4 - 2) + 2 / 5 * (4 + 1)) / 2)


NEEDS: dict[str, Any] = {
    "train": {u: [(u * 3 + j) % 12 for j in range(3)] for u in range(8)},
    "items": {"kind": {i: ["x", "y|z", "z"][i % 3] for i in range(12)}},
    "embeddings": np.random.default_rng(0).normal(size=(12, 4)),
    "reference": [1, 4, 7],
    "intents": "kind",
}


def whole_registry(k: int) -> list[str]:
    """Every metric without a cut-off and with one, if it may have one."""
    values = {name: f"{name}(of=price)" for name in ("value", "shown_value")}
    grouped = ("miscalibration", "kinds", "exposure_gap", "exposure_ratio", "awrf")
    kinds = {n: f"{n}(by=kind)" for n in grouped}
    named = {name: (values | kinds).get(name, name) for name in METRICS}
    plain = [named[n] for n, m in METRICS.items() if m.at_k != "required"]
    return plain + [f"{named[n]}@{k}" for n, m in METRICS.items() if m.at_k != "never"]


@pytest.mark.parametrize("given", ["factors", "ids", "number", "found", "eligible", "complete"])
def test_every_metric_has_both_limits_or_a_reason(given):
    rng = np.random.default_rng(3)
    truth = {u: {int(i): 1.0 + u % 2 for i in rng.choice(12, 3, replace=False)} for u in range(8)}
    needs = NEEDS | {"items": NEEDS["items"] | {"price": {i: i - 3.5 for i in range(12)}}}
    asked = whole_registry(3)
    if given not in ("factors", "complete"):
        asked = [a for a in asked if "candidates" not in Request.parse(a).metric.needs]
    if given in ("found", "eligible"):
        asked = [a for a in asked if "catalogue" not in Request.parse(a).metric.needs]
    lists: Any = {u: rng.permutation(12)[: 12 if given == "complete" else 5].tolist() for u in range(8)}
    if given == "factors":
        lists = recsys.Factors(rng.normal(size=(8, 3)), rng.normal(size=(12, 3)))
    options: dict[str, Any] = {
        "ids": {"catalogue": range(12), "seen": {u: [u] for u in range(8)}},
        "number": {"catalogue": 20},
        "eligible": {"eligible": {u: range(u, 12) for u in range(8)}, "exclude": [11]},
        "complete": {"full_ranking": True, "catalogue": range(12)},
    }.get(given, {})
    bounds = recsys.evaluate(lists, truth, asked, **needs, **options).bounds()
    assert len(bounds) == len({str(Request.parse(a)) for a in asked})
    for name, row in bounds.items():
        assert math.isfinite(row.floor), (name, row)
        assert math.isfinite(row.best), (name, row)
        assert (row.floor_how in ("exact", "drawn"), row.best_how in ("exact", "found"), row.why) == (
            True,
            True,
            "",
        )
        sign = -1 if Request.parse(name).metric.better == "lower" else 1
        assert sign * (row.best - row.floor) >= -1e-9 - 5 * row.floor_error, (name, row)


def pool_of(users: list[int], *, seen: Any = None, eligible: Any = None) -> CandidatePool:
    judged = match_truth(
        read_lists({u: [0, 1, 2] for u in users}), read_interactions({u: [0] for u in users})
    )
    read = [None if one is None else read_interactions(one) for one in (seen, eligible)]
    return CandidatePool(judged, Context(catalogue=Ids(np.arange(6)), n_items=6, eligible=read[1]), read[0])


def lists_of(pool: CandidatePool, turn: int) -> dict[Any, list[Any]]:
    lists = random_lists(pool, pool.n_shown(3), turn)
    ends, names = lists.indptr.tolist(), pool.items.values[lists.codes].tolist()
    return {u: names[ends[at] : ends[at + 1]] for at, u in enumerate(pool.judged.cases.values.tolist())}


@pytest.mark.parametrize("how", ["seen", "eligible"])
def test_random_lists_are_as_likely_as_each_other_and_hang_on_the_id_alone(how):
    users = list(range(400))
    barred = {u: [u % 6] for u in users}
    known = (
        {"seen": barred}
        if how == "seen"
        else {"eligible": {u: [i for i in range(6) if i != u % 6] for u in users}}
    )
    pool = pool_of(users, **known)
    all_lists = [lists_of(pool, turn) for turn in range(30)]
    some = lists_of(pool_of(users[100:110], **known), 7)
    assert some == {u: all_lists[7][u] for u in users[100:110]}
    counts: dict[tuple[int, ...], int] = {}
    for lists in all_lists:
        for u, items in lists.items():
            assert u % 6 not in items
            order = tuple((i - u) % 6 for i in items)  # the barred item is 0 for everybody
            counts[order] = counts.get(order, 0) + 1
    expected = 400 * 30 / 60
    assert len(counts) == 60
    # Chi-squared with 59 degrees of freedom exceeds 109 once in 10,000 times.
    assert sum((n - expected) ** 2 / expected for n in counts.values()) < 109


def test_diverse_lists_come_near_the_best_and_do_not_claim_to_be_it():
    missing = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        vectors = rng.normal(size=(14, 3))
        known = {"embeddings": vectors, "catalogue": range(14)}
        asked = "ild@5"
        row = recsys.evaluate({0: range(5)}, {0: [1]}, asked, **known).bounds()[asked]
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        apart = 1.0 - unit @ unit.T
        true = max(apart[np.ix_(c, c)].sum() / 20 for c in combinations(range(14), 5))
        assert row.best_how == "found"
        assert row.best <= true + 1e-9
        missing.append((true - row.best) / (true - apart.sum() / (14 * 13)))
    assert max(missing) > 1e-6  # some of them are not the best, so none may be called exact
    assert np.mean(missing) < 0.05


def test_the_most_even_numbers_are_the_most_even():
    for caps, total in product(product(range(4), repeat=3), range(10)):
        if total > sum(caps):
            continue
        fits = [c for c in product(*(range(cap + 1) for cap in caps)) if sum(c) == total]
        squares = min(sum(x * x for x in c) for c in fits)
        lists = most_even_counts(np.array(caps), total)
        assert lists.sum() == total
        assert (lists <= np.sort(caps)).all()
        assert int((lists**2).sum()) == squares


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_spread_more_evenly_than_the_best_whatever_is_eligible(seed):
    rng = np.random.default_rng(seed)
    n_users, n_items = int(rng.integers(2, 5)), 6
    eligible = {u: rng.choice(n_items, rng.integers(1, 5), replace=False).tolist() for u in range(n_users)}
    lists = {u: eligible[u][:2] for u in eligible}
    asked = ["coverage@2", "gini@2", "entropy@2", "valid@2"]
    known = {"catalogue": range(n_items), "eligible": eligible}
    bounds = recsys.evaluate(lists, {u: [0] for u in lists}, asked, **known).bounds()
    choices = product(*(combinations(e, min(2, len(e))) for e in eligible.values()))
    counts = {tuple(sorted(np.bincount(sum(one, ()), minlength=n_items).tolist())) for one in choices}
    best = {
        "coverage@2": max(sum(x > 0 for x in c) / n_items for c in counts),
        "gini@2": min(
            sum((2 * i - n_items - 1) * x for i, x in enumerate(c, 1)) / (n_items * sum(c)) for c in counts
        ),
        "entropy@2": max(-sum(x / sum(c) * math.log2(x / sum(c)) for x in c if x) for c in counts),
    }
    for name, value in best.items():
        assert bounds[name].best == pytest.approx(value, abs=1e-12), name
        assert bounds[name].best_how == "exact", name


def test_memory_stays_far_below_users_by_items():
    rng = np.random.default_rng(0)
    n_users, n_items = 4_000, 20_000
    seen = {u: rng.integers(0, n_items, 20).tolist() for u in range(n_users)}
    lists = {u: rng.integers(0, n_items, 10).tolist() for u in range(n_users)}
    asked = ["gini@10", "novelty@10", "coverage@10", "ild@10", "alignment@10", "overlap@10", "kinds@10"]
    result = recsys.evaluate(
        lists, {u: [u] for u in range(n_users)}, asked, seen=seen, train=seen, catalogue=range(n_items),
        embeddings=rng.normal(size=(n_items, 8)), reference=[1, 2, 3],
        items={"kind": {i: "abc"[i % 3] for i in range(n_items)}},
    )  # fmt: skip
    tracemalloc.start()
    result.bounds()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n_users * n_items * 8 / 3  # a table of one float64 per pair would be 640 MB


def test_every_metric_of_shown_items_builds_its_best_lists_but_those_where_none_are_known():
    about_lists = {n for n, m in METRICS.items() if "lists" in m.needs or m.kind == "catalogue"}
    built = {n for n, m in METRICS.items() if m.attainable.best_lists or m.shown.best_lists}
    assert about_lists - built == {"awrf", "ils", "ee_d", "ee_r", "ee_l", "epc", "popularity_lift"}
    assert built <= about_lists


def test_the_floor_of_a_number_of_items_is_that_of_their_share():
    lists, truth = {1: [*"ab"], 2: [*"cb"]}, {1: {"a": 1}, 2: {"c": 1}}
    asked = ["coverage@2", "distinct_items@2"]
    bounds = recsys.evaluate(lists, truth, asked, catalogue=[*"abcdefgh"]).bounds()
    assert bounds["distinct_items@2"].floor_how == "exact"
    assert bounds["distinct_items@2"].floor == pytest.approx(8 * bounds["coverage@2"].floor)
