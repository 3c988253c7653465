"""Every metric of the package on a few users: numbers of other programs where there are some, else by hand.

Elliot 0.3.1 gave the numbers of EFD, ACLT, REO, PopREO, RSP, PopRSP and bias disparity for TRAIN, TRUTH and
LISTS at cut-off 2, with items 10, 12 and 14 in one group and a head of 0.6.
"""

import math

import numpy as np
import pytest
import recsys_more_metrics

import recsys

TRAIN = {1: [10, 11, 12], 2: [10, 13], 3: [10, 11], 4: [11, 14, 10]}
TRUTH = {1: [13, 14], 2: [11, 12], 3: [15, 13], 4: [12]}
LISTS = {1: [13, 15, 14], 2: [11, 14, 12], 3: [13, 12, 14], 4: [13, 12, 15]}
ITEMS = {"maker": {10: "a", 11: "b", 12: "a", 13: "b", 14: "a", 15: "b"}}
CONTEXT = {"train": TRAIN, "items": ITEMS, "catalogue": [10, 11, 12, 13, 14, 15]}


def value(request, lists=LISTS, truth=TRUTH, **context):
    return recsys.evaluate(lists, truth, [request], **(context or CONTEXT))[request]


@pytest.mark.parametrize(
    ("request_", "number"),
    [
        ("efd@2", 1.605943639707363),
        ("aclt(head=0.6)@2", 1.75),  # Elliot: 1.5, as an item nobody had (15) is neither head nor tail there
        ("opportunity(by=maker, group=a)@2", 1 / 3),
        ("opportunity(by=maker, group=b)@2", 0.75),
        ("rsp(by=maker)@2", 1 / 9),
        ("pop_rsp(head=0.6)@2", 0.2),
        ("bias_disparity(by=maker, group=a)@2", -0.375),
        ("bias_disparity(by=maker, group=b)@2", 0.5625),
        ("bias_disparity(by=maker)@2", 0.5625),
    ],
)
def test_elliot(request_, number):
    assert value(request_) == pytest.approx(number, abs=1e-12)


def test_equal_opportunity_is_that_of_elliot():
    asked = [f"opportunity(by=maker, group={group})@2" for group in "ab"]
    result = recsys.evaluate(LISTS, TRUTH, asked, **CONTEXT)
    assert recsys_more_metrics.equal_opportunity(result) == pytest.approx(0.38461538461538464, abs=1e-12)
    truth = {user: [i for i in items if i != 15] for user, items in TRUTH.items()}  # in no part, in Elliot
    asked = [f"pop_opportunity(part={part}, head=0.6)@2" for part in ("head", "tail")]
    result = recsys.evaluate(LISTS, truth, asked, **CONTEXT)
    assert recsys_more_metrics.equal_opportunity(result, "pop_opportunity") == pytest.approx(0.25, abs=1e-12)


def test_half_life_utility_divides_the_sums():
    lists, truth = {1: [5, 6, 7], 2: [6]}, {1: {5: 3, 7: 1}, 2: {5: 2}}
    half = 0.5 ** (1 / 4)
    best = 3 + half + 2
    assert value("half_life_utility", lists, truth, catalogue=9) == pytest.approx((3 + half**2) / best)
    assert value("r_score(neutral=1)", lists, truth, catalogue=9) == pytest.approx(2 / 3)
    assert value("half_life_utility(half_life=2)@1", lists, truth, catalogue=9) == pytest.approx(3 / 5)


def test_ndpm_counts_pairs():
    truth = {1: {"a": 3, "b": 2, "c": 1}}
    scored = {1: [("a", 1.0), ("b", 1.0), ("c", 0.0)]}
    assert value("ndpm", {1: ["a", "b", "c"]}, truth, catalogue=3) == 0.0
    assert value("ndpm", {1: ["c", "b", "a"]}, truth, catalogue=3) == 1.0
    assert value("ndpm", {1: ["b", "a", "c"]}, truth, catalogue=3) == pytest.approx(1 / 3)
    # b and c are not listed: one pair of three is left equal.
    assert value("ndpm", {1: ["a"]}, truth, catalogue=3) == pytest.approx(1 / 6)
    rules = {"ties": "expected"}
    assert value("ndpm", scored, truth, conventions=rules) == pytest.approx(1 / 6)
    assert math.isnan(value("ndpm", {1: ["a"]}, {1: {"a": 1, "b": 1}}, catalogue=3))


def test_least_item_promoted():
    reference = {1: ["a", "b", "c", "d", "e"], 2: ["a", "b", "c"]}
    lists = {1: ["e", "a"], 2: ["b", "a"]}
    result = recsys.evaluate(lists, {1: ["a"]}, ["lip@2"], reference=reference)
    assert result.values_of("lip@2").tolist() == [2.0, 0.0]  # e stood at place 5: index 4, two below place 3
    result = recsys.evaluate({3: ["a"]}, {3: ["a"]}, ["lip@2"], reference=reference)
    assert math.isnan(result["lip@2"])


def test_user_popularity_deviation():
    train = {user: ["a", "b"] if user < 3 else ["a"] for user in range(6)} | {6: ["a", "c"]}
    # a has 7 of 10 events and is the head, c has the last of them; b lies between.
    same = recsys.evaluate({0: ["a", "b"]}, {0: ["b"]}, ["upd@2"], train=train)
    far = recsys.evaluate({0: ["c"]}, {0: ["b"]}, ["upd@1"], train=train)
    half = recsys.evaluate({0: ["a"]}, {0: ["b"]}, ["upd@1"], train=train)
    assert (same["upd@2"], far["upd@1"]) == (0.0, 1.0)
    # (1/2, 1/2) and (1, 0), their middle (3/4, 1/4)
    by_hand = (0.5 * np.log2(0.5 / 0.75) + 0.5 * np.log2(0.5 / 0.25) + np.log2(1 / 0.75)) / 2
    assert half["upd@1"] == pytest.approx(by_hand)
    assert math.isnan(recsys.evaluate({9: ["a"]}, {9: ["b"]}, ["upd@1"], train=train)["upd@1"])


def test_item_mad_is_the_difference_of_what_an_item_gets():
    # The three items of group a are shown 3 times, those of group b 5 times, to four users.
    assert value("item_mad(by=maker)@2") == pytest.approx((5 / 3 - 3 / 3) / 4)


def test_user_mad_is_the_difference_between_groups_of_users():
    groups = {1: "young", 2: "young", 3: "middle", 4: "old"}
    result = recsys.evaluate(LISTS, TRUTH, ["recall@2", "mrr"], by=groups)
    # recall@2: 1/2 and 1/2 of the young, 1/2 of the middle, 1 of the old
    assert recsys_more_metrics.user_mad(result, "recall@2") == pytest.approx((0 + 1 / 2 + 1 / 2) / 3)
    assert recsys_more_metrics.user_mad(result, "mrr") == pytest.approx((0 + 1 / 2 + 1 / 2) / 3)
    one = recsys.evaluate(LISTS, TRUTH, ["mrr"], by=dict.fromkeys(LISTS, "all"))
    assert recsys_more_metrics.user_mad(one, "mrr") == 0.0
    with pytest.raises(recsys.errors.InputError, match="by="):
        recsys_more_metrics.user_mad(recsys.evaluate(LISTS, TRUTH, ["mrr"]), "mrr")


def test_parts_merge_into_the_whole():
    asked = ["efd@2", "half_life_utility@2", "rsp(by=maker)@2", "opportunity(by=maker, group=a)@2"]
    evaluator = recsys.Evaluator(asked, **CONTEXT)
    for users in ((1, 2), (3, 4)):
        evaluator.update({u: LISTS[u] for u in users}, {u: TRUTH[u] for u in users})
    whole = recsys.evaluate(LISTS, TRUTH, asked, **CONTEXT)
    assert dict(evaluator.result()) == pytest.approx(dict(whole), abs=1e-12)
