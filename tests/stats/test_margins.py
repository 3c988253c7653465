"""Equivalence, non-inferiority and the Bayesian comparison against statsmodels and their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.weightstats import ttost_paired

from recsys.errors import InputError
from recsys.stats.margins import bayes_paired, equivalence, non_inferiority
from recsys.stats.pairing import pair
from recsys.stats.results import (
    ZeroVarianceWarning,
)


@pytest.fixture
def close_sides() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    a = rng.normal(size=50)
    return a + 0.1, a + 0.5 * rng.normal(size=50)


def test_tost_is_statsmodels(close_sides) -> None:
    p, low, high = ttost_paired(*close_sides, -0.3, 0.25)
    ours = equivalence(pair(*close_sides), (-0.3, 0.25))
    np.testing.assert_allclose(
        [ours.p_value, ours.p_above_low, ours.p_below_high], [p, low[1], high[1]], rtol=1e-10
    )


def test_tost_rejects_exactly_when_its_interval_fits(close_sides) -> None:
    wide = equivalence(pair(*close_sides), 1.0).interval
    assert wide.confidence == pytest.approx(0.9)
    edge = max(abs(wide.low), abs(wide.high))
    assert (
        equivalence(pair(*close_sides), edge * 1.001).p_value
        < 0.05
        < equivalence(pair(*close_sides), edge * 0.999).p_value
    )


def test_non_inferiority_is_the_shifted_t_test(close_sides) -> None:
    ours = non_inferiority(pair(*close_sides), 0.1)
    theirs = stats.ttest_rel(close_sides[0] + 0.1, close_sides[1], alternative="greater")
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-10)
    assert ours.interval.high == math.inf
    assert (ours.interval.low > -0.1) == (ours.p_value < 0.05)


def test_posterior_mirrors_the_t_test(close_sides) -> None:
    ours = bayes_paired(pair(*close_sides))
    one_sided = stats.ttest_rel(*close_sides, alternative="greater")
    assert ours.p_worse == pytest.approx(one_sided.pvalue, rel=1e-10)
    assert ours.p_equal == 0.0
    limits = stats.ttest_rel(*close_sides).confidence_interval()
    np.testing.assert_allclose([ours.interval.low, ours.interval.high], list(limits), rtol=1e-10)


def test_posterior_of_the_rope_is_the_area_between(close_sides) -> None:
    ours = bayes_paired(pair(*close_sides), (-0.05, 0.2))
    d = close_sides[0] - close_sides[1]
    law = stats.t(49, d.mean(), stats.sem(d))
    assert ours.p_equal == pytest.approx(law.cdf(0.2) - law.cdf(-0.05), rel=1e-9)
    assert ours.p_worse + ours.p_equal + ours.p_better == pytest.approx(1)


def test_correlated_folds_widen_the_posterior() -> None:
    folds = np.array([0.02, 0.03, 0.01, 0.025, 0.015])
    plain, wide = bayes_paired(folds), bayes_paired(folds, correlation=0.2)
    assert wide.scale / plain.scale == pytest.approx(math.sqrt((1 / 5 + 0.2 / 0.8) / (1 / 5)))
    assert wide.p_better < plain.p_better


def test_margins_without_spread_need_the_range_of_the_differences() -> None:
    """Six users with a gain of 0.1 say nothing about a seventh, who may lose as much as the range allows."""
    with pytest.warns(ZeroVarianceWarning):
        assert math.isnan(equivalence(np.full(6, 0.1), 0.2).p_value)
    with pytest.warns(ZeroVarianceWarning):
        assert math.isnan(non_inferiority(np.full(300, 0.1), 0.2).p_value)
    with pytest.warns(ZeroVarianceWarning):
        both = equivalence(np.full(6, 0.1), 0.2, bounds=(-1, 1))
    # An exponential share of the unseen user outweighs the six others.
    assert both.p_above_low == pytest.approx((1 + 0.3 / 0.8) ** -6)
    assert both.p_below_high == pytest.approx((1 + 0.1 / 0.8) ** -6)
    with pytest.warns(ZeroVarianceWarning):
        assert non_inferiority(np.full(300, 0.1), 0.2, bounds=(-1, 1)).p_value < 1e-9
    with pytest.warns(ZeroVarianceWarning):
        assert equivalence(np.full(6, 0.2), 0.2, bounds=(-1, 1)).p_value == 1.0
    with pytest.warns(ZeroVarianceWarning):
        assert bayes_paired(np.full(6, 0.1), 0.05).p_better == 1.0


def test_margins_that_cannot_be_are_refused() -> None:
    d = [0.1, 0.2, 0.4]
    with pytest.raises(InputError, match="lower to a higher"):
        equivalence(d, (0.1, -0.1))
    with pytest.raises(InputError, match="positive"):
        non_inferiority(d, -0.1)
    with pytest.raises(InputError, match="ROPE"):
        bayes_paired(d, (0.2, 0.1))
    with pytest.raises(InputError, match="correlation"):
        bayes_paired(d, correlation=1.0)
