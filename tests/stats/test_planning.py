"""Planning against statsmodels; savings of variance by simulation and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.power import TTestPower

from recsys.errors import InputError
from recsys.stats.adjustment import covariate_adjusted, post_stratified
from recsys.stats.effects import minimal_effect, power, users_needed

ORACLE = TTestPower()


@pytest.mark.parametrize(
    ("effect", "n", "alpha"), [(0.2, 100, 0.05), (0.05, 2000, 0.01), (0.5, 12, 0.1), (0.0, 50, 0.05)]
)
def test_power_is_statsmodels(effect, n, alpha) -> None:
    assert power(effect, n, alpha=alpha) == pytest.approx(ORACLE.power(effect, n, alpha), rel=1e-9)
    one = ORACLE.power(effect, n, alpha, alternative="larger")
    assert power(effect, n, alpha=alpha, alternative="greater") == pytest.approx(one, rel=1e-9)
    assert power(-effect, n, alpha=alpha, alternative="less") == pytest.approx(one, rel=1e-9)


def test_standard_deviation_only_scales() -> None:
    assert power(0.02, 100, sd=0.1) == pytest.approx(power(0.2, 100))
    assert minimal_effect(100, sd=0.1) == pytest.approx(0.1 * minimal_effect(100))
    assert users_needed(0.02, sd=0.1) == users_needed(0.2)


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_minimal_effect_has_the_power_it_promises(alternative) -> None:
    for n in (10, 500, 1_000_000):
        effect = minimal_effect(n, power=0.9, alternative=alternative)
        assert power(effect, n, alternative=alternative) == pytest.approx(0.9, abs=1e-9)
    assert minimal_effect(50, alternative="less") == pytest.approx(minimal_effect(50, alternative="greater"))


@pytest.mark.parametrize("effect", [0.5, 0.11, 0.01])
def test_users_needed_is_the_smallest_number(effect) -> None:
    n = users_needed(effect, power=0.85)
    assert power(effect, n) >= 0.85 > power(effect, n - 1)


def test_covariates_save_variance_where_their_mean_is_known() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(3, 1, size=400)
    y = 0.8 * x + 0.6 * rng.normal(size=400)
    result = covariate_adjusted(y, x, 3.0)
    fit = OLS(y, np.column_stack([np.ones(400), x - 3.0])).fit()
    assert result.estimate.value == pytest.approx(fit.params[0], rel=1e-10)
    assert result.variance_saved == pytest.approx(0.64, abs=0.08)
    assert result.coefficients == pytest.approx(fit.params[1:])
    assert result.estimate.interval.high - result.estimate.interval.low < 0.7 * (
        result.plain.interval.high - result.plain.interval.low
    )
    nothing = covariate_adjusted(y, x, x.mean())
    assert nothing.estimate.value == pytest.approx(y.mean())


def test_covariate_adjustment_covers() -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(400):
        x = rng.normal(size=(100, 2))
        y = x @ [0.5, -0.5] + rng.normal(size=100) + 1
        interval = covariate_adjusted(y, x, [0.0, 0.0]).estimate.interval
        hits += 1.0 in interval
    assert 0.92 <= hits / 400 <= 0.98


def test_post_stratification_by_hand() -> None:
    y = [1.0, 3.0, 10.0, 14.0, 12.0]
    result = post_stratified(y, ["low", "low", "high", "high", "high"], {"low": 0.7, "high": 0.3})
    assert result.estimate.value == pytest.approx(0.7 * 2 + 0.3 * 12)
    assert result.estimate.standard_error == pytest.approx(np.sqrt(0.49 * 2 / 2 + 0.09 * 4 / 3))
    assert result.variance_saved > 0.5


def test_refusals() -> None:
    with pytest.raises(InputError, match="no number"):
        users_needed(0.0)
    with pytest.raises(InputError, match="no number"):
        users_needed(-0.1, alternative="greater")
    with pytest.raises(InputError, match="power"):
        minimal_effect(10, power=1.0)
    with pytest.raises(InputError, match="at least 2"):
        power(0.1, 1)
    with pytest.raises(InputError, match="add up"):
        post_stratified([1.0, 2.0], ["a", "a"], {"a": 0.5})
    with pytest.raises(InputError, match="do not match"):
        post_stratified([1.0, 2.0], ["a", "a"], {"b": 1.0})
    with pytest.raises(InputError, match="fewer than 2"):
        post_stratified([1.0, 2.0, 3.0], ["a", "a", "b"], {"a": 0.5, "b": 0.5})
    with pytest.raises(InputError, match="one mean per covariate"):
        covariate_adjusted([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], [1.0, 2.0])
    with pytest.raises(InputError, match="too few"):
        covariate_adjusted([1.0, 2.0, 3.0], [1.0, 2.0, 4.0], 2.0)


def test_covariates_of_another_length_are_an_error():
    with pytest.raises(InputError, match="one row per value"):
        covariate_adjusted([1.0, 2.0, 3.0, 4.0], [1.0, 2.0], 0.0)


@pytest.mark.parametrize(
    ("effect", "n", "expected"),
    [(0.3, 1000, 1.0), (10.0, 1000, 1.0), (1e200, 100, 1.0), (0.3, 10**7, 1.0)],
)
def test_huge_effects_have_full_power(effect, n, expected) -> None:
    """The tail on the other side is empty, for which libraries return NaN."""
    assert power(effect, n) == pytest.approx(expected, abs=1e-9)
    assert power(effect, n, alternative="less") == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("effect", "alpha"), [(0.1, 1e-12), (0.1, 1e-8), (0.01, 1e-4), (0.001, 1e-8)])
def test_small_levels_need_what_the_normal_formula_says(effect, alpha) -> None:
    normal = ((stats.norm.isf(alpha / 2) + stats.norm.ppf(0.8)) / effect) ** 2
    n = users_needed(effect, alpha=alpha)
    assert normal < n < 1.01 * normal
    assert power(effect, n - 1, alpha=alpha) < 0.8 <= power(effect, n, alpha=alpha)


def test_two_users_detect_only_huge_effects() -> None:
    assert power(minimal_effect(2), 2) == pytest.approx(0.8)
    assert minimal_effect(2) == pytest.approx(11.55, abs=0.01)
    with pytest.raises(InputError, match="not a number: nan"):
        power(float("nan"), 100)


VALUES = [1.0, 2.0, 3.0, 4.0]
HALVES = {"a": 0.5, "b": 0.5}


@pytest.mark.parametrize(
    ("values", "strata", "shares", "says"),
    [
        (VALUES, ["a", "b", "a"], HALVES, r"4 values and 3 strata\. Pass one label per value"),
        (VALUES, ["a", 1, "a", 1], {"a": 0.5, 1: 0.5}, r"int and str.*Make them one type"),
        (VALUES, ["a", None, "a", "b"], HALVES, r"hold None\. A stratum is a text or a number.*\[row 1\]"),
        (VALUES, [0.0, 1.0, math.nan, 0.0], HALVES, r"hold nan\. .*\[row 2\]"),
        (VALUES, [["a"]] * 4, HALVES, "A stratum is a text or a number"),
        (VALUES, {1: "a"}, HALVES, "strata came as dict"),
        (VALUES, 3, HALVES, "strata came as int"),
        (VALUES, ["a", "b"] * 2, [0.5, 0.5], r"shares came as list\. Pass \{stratum: share\}"),
        (["x"] * 4, ["a", "b"] * 2, HALVES, "values must hold numbers"),
    ],
)
def test_strata_that_cannot_be_used_say_what_to_type(values, strata, shares, says) -> None:
    with pytest.raises(InputError, match=says):
        post_stratified(values, strata, shares)


@pytest.mark.parametrize(
    ("covariates", "means", "says"),
    [
        ([1.0, 2.0, 3.0], [0.0], r"shape \(3,\)\. Pass one row per value"),
        (["a", "b", "c", "d"], [0.0], "covariates must hold numbers.*Texts are for strata"),
        ([[1.0], [2.0, 3.0], [4.0], [4.0]], [0.0], "covariates must hold numbers"),
        ([1.0, 2.0, 4.0, 4.0], "x", "population_means must hold numbers"),
        ([1.0, 2.0, 4.0, 4.0], [1.0, 2.0], "one mean per covariate"),
        ([1.0, 2.0, 4.0, 4.0], [math.nan], "must be finite"),
    ],
)
def test_covariates_that_cannot_be_used_say_what_to_type(covariates, means, says) -> None:
    with pytest.raises(InputError, match=says):
        covariate_adjusted(VALUES, covariates, means)


def test_labels_of_any_container_are_the_same_strata() -> None:
    result = post_stratified(VALUES, ["a", "b", "a", "b"], HALVES).estimate
    for strata in (np.array(["a", "b"] * 2), np.array(["a", "b"] * 2, dtype=object), tuple("abab")):
        assert post_stratified(VALUES, strata, HALVES).estimate == result
    assert post_stratified(VALUES, [0, 1, 0, 1], {0: 0.5, 1: 0.5}).estimate == result
