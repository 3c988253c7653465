"""Wilcoxon and sign tests against SciPy, statsmodels and plain enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from recsys.errors import InputError
from recsys.stats.effects import rank_biserial
from recsys.stats.pairing import pair
from recsys.stats.rank_tests import sign_test, signed_rank_sums, wilcoxon

# The method had another name before SciPy 1.15.
ASYMPTOTIC = "asymptotic" if "asymptotic" in (stats.wilcoxon.__doc__ or "") else "approx"
ALTERNATIVES = ["two-sided", "greater", "less"]
EXACT = {"rtol": 1e-10, "atol": 1e-14}


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_wilcoxon_exact_is_scipys_without_ties(sides, alternative) -> None:
    ours = wilcoxon(pair(*sides), alternative=alternative)
    theirs = stats.wilcoxon(*sides, alternative=alternative, method="exact")
    np.testing.assert_allclose(ours.p_value, theirs.pvalue, **EXACT)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_wilcoxon_exact_with_ties_is_the_enumeration(alternative) -> None:
    d = np.array([0.1, 0.1, -0.2, 0.2, 0.3, 0.0, 0.3, -0.1, 0.5, 0.0, 0.5])
    moved = d[d != 0]
    ranks = stats.rankdata(np.abs(moved))
    sums = np.array([ranks @ np.array(kept) for kept in itertools.product([0, 1], repeat=len(moved))])
    plus = ranks[moved > 0].sum()
    upper, lower = np.mean(sums >= plus - 1e-9), np.mean(sums <= plus + 1e-9)
    expected = {"greater": upper, "less": lower, "two-sided": min(1, 2 * min(upper, lower))}[alternative]
    assert wilcoxon(d, alternative=alternative, method="exact").p_value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_wilcoxon_normal_is_scipys_with_ties_and_zeros(alternative) -> None:
    d = np.random.default_rng(4).choice([-0.5, -0.2, 0.0, 0.2, 0.5, 1.0], size=120)
    ours = wilcoxon(d, alternative=alternative, method="normal")
    theirs = stats.wilcoxon(
        d, alternative=alternative, method=ASYMPTOTIC, correction=True, zero_method="wilcox"
    )
    np.testing.assert_allclose(ours.p_value, theirs.pvalue, **EXACT)


def test_sign_is_statsmodels_and_the_dead_zone_makes_ties(sides) -> None:
    from statsmodels.stats.descriptivestats import sign_test as oracle

    d = sides[0] - sides[1]
    np.testing.assert_allclose(sign_test(d).p_value, oracle(d)[1], **EXACT)
    still = np.where(np.abs(d) <= 0.4, 0.0, d)
    zoned = sign_test(d, dead_zone=0.4)
    assert zoned.n == np.count_nonzero(still)
    assert zoned.n < 40
    np.testing.assert_allclose(zoned.p_value, oracle(still)[1], **EXACT)
    assert sign_test(np.array([0.1, -0.1, 0.05]), dead_zone=0.2).p_value == 1.0


def test_ties_up_to_rounding_are_ties() -> None:
    """Tenths are not exact in binary: 0.3 - 0.1 and 0.8 - 0.6 differ in the last bit, 3 - 1 and 8 - 6 not."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 11, 400), rng.integers(0, 11, 400)
    for method in ("normal", "exact"):
        whole, tenths = wilcoxon(pair(a, b), method=method), wilcoxon(pair(a / 10, b / 10), method=method)
        assert (tenths.statistic, tenths.p_value, tenths.n) == (whole.statistic, whole.p_value, whole.n)
    assert signed_rank_sums(pair(a / 10, b / 10)) == signed_rank_sums(pair(a, b))
    assert rank_biserial(pair(a / 10, b / 10)).value == rank_biserial(pair(a, b)).value


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_wilcoxon_compares_differences_as_they_are_when_asked_to(alternative) -> None:
    """Tenths tie only up to rounding: SciPy takes them for different sizes, and so do we with 0."""
    rng = np.random.default_rng(7)
    a, b = rng.integers(0, 10, 60) / 10, rng.integers(0, 10, 60) / 10
    d = a - b
    assert len(np.unique(np.abs(d))) > len(np.unique(np.abs(d).round(9)))
    exact = wilcoxon(d, alternative=alternative, method="normal", equal_within=0)
    theirs = stats.wilcoxon(d, alternative=alternative, method=ASYMPTOTIC, correction=True)
    assert exact.p_value == pytest.approx(float(theirs.pvalue), rel=1e-12)
    assert exact.p_value != wilcoxon(d, alternative=alternative, method="normal").p_value
    plus, minus = signed_rank_sums(d, equal_within=0)
    assert theirs.statistic == (min(plus, minus) if alternative == "two-sided" else plus)
    assert rank_biserial(d, equal_within=0).value == pytest.approx((plus - minus) / (plus + minus))
    # Rounded differences tie in SciPy as well, and its p is then ours.
    rounded = stats.wilcoxon(d.round(9), alternative=alternative, method=ASYMPTOTIC, correction=True)
    assert wilcoxon(d, alternative=alternative, method="normal").p_value == pytest.approx(
        float(rounded.pvalue), rel=1e-12
    )


@pytest.mark.parametrize("share", [-1e-9, 1.0, math.nan, "none", None])
def test_a_tolerance_that_is_no_share_is_refused(share) -> None:
    with pytest.raises(InputError, match="equal_within="):
        wilcoxon([0.1, 0.2, -0.4], equal_within=share)
