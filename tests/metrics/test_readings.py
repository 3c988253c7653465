"""What every metric reads: sums that pass the largest number are an error, never a user less in the mean."""

from __future__ import annotations

import numpy as np
import pytest

import recsys
from recsys.errors import ConventionError, InputError
from recsys.kernels.exact_sums import exact_mean, exact_sum

HUGE = {"a": 1e308, "b": 1.7e308}
LISTS = {1: ["a", "b", "c"], 2: ["a"]}
GRADES = {1: HUGE, 2: {"a": 1.0}}
BINARY = {1: {"a", "b"}, 2: {"a"}}


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize(
    ("metric", "truth", "known"),
    [
        ("dcg@3", GRADES, {}),
        ("ndcg@3", GRADES, {}),
        ("ndcg@3", BINARY, {"item_weights": {**HUGE, "c": 1.0}}),
        ("recall@3", BINARY, {"item_weights": {**HUGE, "c": 1.0}}),
        ("hits@3", BINARY, {"item_weights": {**HUGE, "c": 1.0}}),
        ("mpr", GRADES, {"full_ranking": True}),
        ("value@3", BINARY, {"items": {"price": HUGE}}),
        ("shown_value@3", BINARY, {"items": {"price": HUGE}}),
        ("average_popularity@3", BINARY, {"popularity": HUGE}),
        ("miscalibration@3", BINARY, {"train": {1: HUGE}, "items": {"kind": dict.fromkeys("abc", "x")}}),
    ],
)
def test_sums_past_the_largest_number_are_refused(metric, truth, known):
    with pytest.raises(InputError, match=r"1\.8e308"):
        recsys.evaluate(LISTS, truth, metric, **known)


@pytest.mark.parametrize("metric", ["dcg@3", "ndcg@3"])
def test_one_list_is_refused_in_the_same_words(metric):
    with pytest.raises(InputError, match=r"1\.8e308"):
        recsys.score_list(["a", "b"], HUGE, metric)


def test_grades_just_below_are_fine():
    half = {item: grade / 2 for item, grade in HUGE.items()}
    assert recsys.score_list(["b", "a"], half, "ndcg@3") == 1.0
    assert recsys.evaluate({1: ["b", "a"]}, {1: half}, "ndcg@3")["ndcg@3"] == 1.0


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("n", [3, 100])
def test_exact_sums_are_of_finite_values(n, bad):
    values = np.ones(n)
    values[1] = bad
    for add in (exact_sum, exact_mean):
        with pytest.raises(InputError, match="not a finite number"):
            add(values)


def test_the_mean_of_the_largest_numbers_is_exact():
    largest = np.finfo(np.float64).max
    assert exact_mean(np.full(20, largest)) == largest


@pytest.mark.parametrize("discount", [(0.2, 1.0, 0.5), lambda places: places / 10])
def test_ndcg_refuses_a_discount_under_which_its_ideal_list_is_none(discount):
    rules = {"discount": discount}
    with pytest.raises(ConventionError, match="the discount rises with the place"):
        recsys.evaluate({1: ["x", "a", "b"]}, {1: {"a": 1, "b": 2}}, "ndcg@3", conventions=rules)
    with pytest.raises(ConventionError, match="the discount rises with the place"):
        recsys.score_list(["x", "a", "b"], {"a": 1, "b": 2}, "ndcg@3", conventions=rules)
    assert recsys.score_list(["x", "a", "b"], {"a": 1, "b": 2}, "dcg@3", conventions=rules) > 0


def test_ndcg_takes_any_discount_that_does_not_rise():
    for discount in ((1.0, 1.0, 0.5), (1, 0.5), lambda places: 1 / places**2):
        value = recsys.score_list(["b", "a"], {"a": 1, "b": 2}, "ndcg@3", conventions={"discount": discount})
        assert value == 1.0
