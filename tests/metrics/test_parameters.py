"""The values that parameters of metrics may have: the last one that is allowed, and the first that is not."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

import recsys
from recsys.errors import ConventionError, RecsysError
from recsys.kernels.exact_sums import geometric_weights
from recsys.metrics.traits import quotient
from recsys.metrics.weights import (
    _log2_table,
    discount_weights,
    gains,
    graded_shares,
    running_weights,
)
from recsys.records.arrays import MAX_IDS

LISTS = {1: ["a", "b", "c"], 2: ["c", "a"]}
TRUTH = {1: {"a": 1.0, "c": 1.0}, 2: {"b": 1.0}}
KNOWN = {
    "train": {1: ["b"], 2: ["b", "c"], 3: ["a", "b"]},
    "catalogue": ["a", "b", "c", "d"],
    "items": {"maker": {"a": "x", "b": "y", "c": "x", "d": "y"}},
    "reference": ["b", "a"],
}


def value(request: str, **options: object) -> float:
    return recsys.evaluate(LISTS, TRUTH, request, **{**KNOWN, **options})[request]


@pytest.mark.parametrize(
    ("allowed", "refused"),
    [
        ("f(beta=1e-09)@2", "f(beta=0)@2"),
        ("gmap(eps=1e-09)", "gmap(eps=0)"),
        ("rbp(p=0.001)", "rbp(p=0)"),
        ("rbp(p=0.999)", "rbp(p=1)"),
        ("graded_rbp(p=0.999)", "graded_rbp(p=1)"),
        ("iprec(recall=0)", "iprec(recall=-0.001)"),
        ("iprec(recall=1)", "iprec(recall=1.001)"),
        ("set_f(beta=1e-09)", "set_f(beta=0)"),
        ("compat(p=0.001)", "compat(p=0)"),
        ("compat(p=0.999)", "compat(p=1)"),
        ("compat(over=weights)", "compat(over=list)"),
        ("inst(target=0.25)", "inst(target=0.249)"),
        ("inst(depth=1)", "inst(depth=0)"),
        ("inst(depth=2)", "inst(depth=1.5)"),
        ("bpm(target=0.001)@2", "bpm(target=0)@2"),
        ("r_precision_at(multiple=0)", "r_precision_at(multiple=-0.001)"),
        ("count(what=listed)", "count(what=shown)"),
        ("sdcg(min_grade=0.999)@2", "sdcg(min_grade=1)@2"),
        ("surprisal(over=list)@2", "surprisal(over=users)@2"),
        ("average_popularity(over=events)@2", "average_popularity(over=items)@2"),
        ("epc(relevance=no)@2", "epc(relevance=maybe)@2"),
        ("popularity_serendipity(over=list)@2", "popularity_serendipity(over=users)@2"),
        ("tail_share(head=0.001)@2", "tail_share(head=0)@2"),
        ("rbo(p=0.001)@2", "rbo(p=0)@2"),
        ("awrf(weight=geometric,p=0.001)@2", "awrf(weight=geometric,p=0)@2"),
        ("awrf(distance=js)@2", "awrf(distance=chi)@2"),
        ("awrf(target=x:0|y:1)@2", "awrf(target=x:0|y:0)@2"),
        ("awrf(target=y:1)@2", "awrf(target=y:-1)@2"),
        ("awrf(target=x:1|y:3)@2", "awrf(target=z:1)@2"),
        ("awrf(target=x:0.5|y:0.5)@2", "awrf(target=x)@2"),
    ],
)
def test_the_last_value_that_is_allowed_and_the_first_that_is_refused(allowed, refused):
    assert math.isfinite(value(allowed))
    with pytest.raises(RecsysError):
        value(refused)


@pytest.mark.parametrize("request_", ["sdcg@16777217", "ndcg(ideal=k)@16777217", "compat@16777217"])
def test_an_ideal_list_of_millions_of_places_is_refused(request_):
    with pytest.raises(ConventionError):
        value(request_)


def test_a_grade_above_the_highest_one_is_refused_and_the_highest_one_is_not():
    assert recsys.score_list(["a"], {"a": 2}, "err(max_grade=2)") == 0.75
    with pytest.raises(ConventionError):
        recsys.score_list(["a"], {"a": 3}, "err(max_grade=1)")
    with pytest.raises(
        ConventionError
    ):  # the item stands beyond the cut-off, and its grade is wrong all the same
        recsys.score_list(["b", "a"], {"a": 3}, "err(max_grade=1)@1")


def test_shares_of_a_grade_end_at_the_least_and_the_highest():
    assert graded_shares(np.array([0.0, 1.0, 2.0, 4.0, 9.0]), 1.0, 4.0).tolist() == [0, 0, 1 / 3, 1, 1]
    assert graded_shares(np.array([0.5, 2.0]), 0.0, None).tolist() == [0.5, 1.0]
    assert graded_shares(np.zeros(0), 2.0, 1.0).tolist() == []
    with pytest.raises(ConventionError):
        graded_shares(np.array([1.0]), 2.0, 2.0)


def test_gains_of_grades_in_every_form():
    grades = np.array([0.0, 0.5, 1.0, 3.0])
    assert gains("grade", grades).tolist() == [0.0, 0.5, 1.0, 3.0]
    assert gains("binary", grades).tolist() == [1.0, 1.0, 1.0, 1.0]
    assert gains("exp2", grades).tolist() == [0.0, math.sqrt(2) - 1, 1.0, 7.0]
    assert gains("exp2", grades[[0, 2, 3]]).tolist() == [0.0, 1.0, 7.0]
    assert gains("exp2_next", grades).tolist() == [1.0, 2 * math.sqrt(2) - 1, 3.0, 15.0]
    assert gains("exp2_next", grades[[0, 2, 3]]).tolist() == [1.0, 3.0, 15.0]
    assert gains({0: 5, 0.5: 4, 1: 3, 3: 2}, grades).tolist() == [5.0, 4.0, 3.0, 2.0]
    assert gains(lambda g: g * 10, grades).tolist() == [0.0, 5.0, 10.0, 30.0]
    with pytest.raises(ConventionError, match="no entry for grade 3"):
        gains({0: 5, 0.5: 4, 1: 3}, grades)


@pytest.mark.parametrize("power", [998.0, 999.0, 999.5, 1000.0])
def test_gains_of_large_grades(power):
    assert gains("exp2", np.array([power]))[0] == pytest.approx(2.0**power, rel=1e-15)


def test_a_gain_past_the_largest_number_is_refused():
    with pytest.raises(ConventionError, match="overflows"):
        gains("exp2", np.array([1001.0]))
    with pytest.raises(ConventionError, match="overflows"):
        gains("exp2_next", np.array([1000.0]))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda n: n[:-1],
        lambda n: -n,
        lambda n: n * math.inf,
        lambda n: n * math.nan,
        lambda _: "far",
        lambda n: n[:, None],
    ],
)
def test_a_function_must_give_a_finite_number_of_at_least_0_per_place_and_per_grade(wrong):
    with pytest.raises(ConventionError):
        discount_weights(wrong, 3)
    with pytest.raises(ConventionError):
        gains(wrong, np.array([1.0, 2.0, 3.0]))
    assert discount_weights(lambda n: n * 0, 3).tolist() == [0.0, 0.0, 0.0]


def test_weights_of_places_in_every_form():
    assert discount_weights("log2", 3).tolist() == [1.0, 1 / math.log2(3), 0.5]
    assert discount_weights("log2_max2", 3).tolist() == [1.0, 1.0, 1 / math.log2(3)]
    assert discount_weights("reciprocal", 4).tolist() == [1.0, 1 / 2, 1 / 3, 1 / 4]
    assert discount_weights((1, 0.5), 4).tolist() == [1.0, 0.5, 0.0, 0.0]
    assert discount_weights((1, 0.5, 0.25), 2).tolist() == [1.0, 0.5]
    assert discount_weights(lambda n: 1 / n, 3).tolist() == [1.0, 1 / 2, 1 / 3]
    assert running_weights((1, 0.5), 3).tolist() == [0.0, 1.0, 1.5, 1.5]
    assert running_weights("reciprocal", 2).tolist() == [0.0, 1.0, 1.5]
    assert geometric_weights(0.5, 4).tolist() == [1.0, 0.5, 0.25, 0.125]
    assert geometric_weights(1e-200, 4).tolist() == [1.0, 1e-200, 0.0, 0.0]


@pytest.mark.parametrize("places", [1, 62, 63, 64, 65, 1000, 5000])
def test_weights_are_the_correctly_rounded_logarithms(places):
    got = discount_weights("log2", places)
    assert len(got) == places
    with localcontext() as context:
        context.prec = 60
        for place in {1, places // 2 + 1, max(1, places - 1), places}:
            exact = Decimal(place + 1).ln() / Decimal(2).ln()
            assert got[place - 1] == 1.0 / float(exact)
    assert not got.flags.writeable


def test_logarithms_are_known_far_beyond_a_float():
    """To 2^-95 of their size, so that only a few must be worked out again before they are rounded."""
    high, low = _log2_table(9)
    with localcontext() as context:
        context.prec = 60
        for n in (2, 3, 7, 63, 64, 65, 100, 127, 129, 255, 257, 300, 511):
            exact = Decimal(n).ln() / Decimal(2).ln()
            assert abs(Decimal(high[n]) + Decimal(low[n]) - exact) <= exact / 2**95


def test_a_threshold_is_any_number_far_from_infinity():
    assert recsys.Conventions(relevant_from=9e299).relevant_from == 9e299
    with pytest.raises(ConventionError):
        recsys.Conventions(relevant_from=1e300)


def test_a_ratio_of_nothing_is_nothing_and_codes_fit_their_type():
    assert quotient(0.0, 0.0) == 0.0
    assert np.iinfo(np.int32).max == MAX_IDS
