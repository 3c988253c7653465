"""Metrics of whole rankings and of the cut as a classifier, as a user meets them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import recsys

LISTS = {1: [3, 4, 5, 6, 7], 2: [5, 4, 3], 3: [7, 3]}
TRUTH = {1: {3: 9.0, 5: 1.0, 7: 2.0}, 2: {4: 2.0}, 3: {3: 4.0}}


def percentiles(user):
    """(how far down, grade) of each relevant item."""
    places = {item: at for at, item in enumerate(LISTS[user])}
    return [(places[item] / (len(places) - 1), grade) for item, grade in TRUTH[user].items()]


def test_the_percentile_rank_of_hu_koren_and_volinsky_pools_and_weighs_by_grade():
    everything = [pair for user in LISTS for pair in percentiles(user)]
    theirs = sum(down * grade for down, grade in everything) / sum(grade for _, grade in everything)
    result = recsys.evaluate(LISTS, TRUTH, ["expected_percentile_rank"], full_ranking=True)
    assert result["mpr"] == result["expected_percentile_rank"] == pytest.approx(theirs, rel=1e-12)
    for user, value in zip(LISTS, result.values_of("mpr"), strict=True):
        pairs = percentiles(user)
        own = sum(down * grade for down, grade in pairs) / sum(grade for _, grade in pairs)
        assert value == pytest.approx(own, rel=1e-12)


def test_percentile_and_average_rank_can_be_pooled():
    downs = {user: [down for down, _ in percentiles(user)] for user in LISTS}
    macro = recsys.evaluate(LISTS, TRUTH, ["percentile_rank"], full_ranking=True)
    pooled = recsys.evaluate(
        LISTS,
        TRUTH,
        ["percentile_rank", "average_rank"],
        full_ranking=True,
        conventions={"average": "pooled"},
    )
    assert macro["percentile_rank"] == pytest.approx(np.mean([np.mean(d) for d in downs.values()]), rel=1e-12)
    assert pooled["percentile_rank"] == pytest.approx(np.mean(np.concatenate([*downs.values()])), rel=1e-12)
    assert pooled["average_rank"] == pytest.approx((1 + 3 + 5 + 2 + 2) / 5, rel=1e-12)
    asked = recsys.evaluate(LISTS, TRUTH, ["percentile_rank(average=pooled)"], full_ranking=True)
    assert list(asked.values()) == [pooled["percentile_rank"]]


def test_without_grades_and_pooled_both_percentile_ranks_agree():
    truth = {user: set(grades) for user, grades in TRUTH.items()}
    asked = ["percentile_rank(average=pooled)", "expected_percentile_rank"]
    one, other = recsys.evaluate(LISTS, truth, asked, full_ranking=True).values()
    assert one == pytest.approx(other, rel=1e-12)


@pytest.mark.parametrize("shown", [[], [1], [1, 2, 3]])
def test_accuracy_and_mcc_of_any_list_are_what_their_formula_gives(shown):
    relevant, size, k = {3}, 10, 3
    tp, fp = len(relevant & set(shown)), len(set(shown) - relevant)
    fn = len(relevant) - tp
    tn = size - tp - fp - fn
    spread = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    expected = {
        f"accuracy@{k}": (tp + tn) / size,
        f"mcc@{k}": (tp * tn - fp * fn) / spread if spread else 0.0,
    }
    result = recsys.evaluate({1: shown, 2: [3]}, {1: relevant, 2: relevant}, [*expected], catalogue=size)
    for name, value in expected.items():
        assert recsys.score_list(shown, relevant, name, catalogue=size) == pytest.approx(value, rel=1e-12)
        assert result.values_of(name)[0] == pytest.approx(value, rel=1e-12)


def test_a_user_without_a_list_is_right_about_what_is_not_relevant():
    assert recsys.score_list([], {3}, "accuracy@5", catalogue=10) == 0.9
    assert recsys.score_list([1], {3}, "accuracy@5", catalogue=10) == 0.8
    skipped = recsys.evaluate(
        {1: [], 2: [3]}, {1: {3}, 2: {3}}, "accuracy@5", catalogue=10, conventions={"no_list": "skip"}
    )
    assert np.isnan(skipped.values_of("accuracy@5")[0])
