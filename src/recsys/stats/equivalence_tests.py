"""Tests of equivalence and non-inferiority, and the Bayesian probabilities of worse, equal and better.

Equivalence and non-inferiority need a margin that was chosen before looking at the data; the Bayesian
comparison needs a region of practical equivalence (ROPE). All work on units, so clusters are respected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError
from recsys.stats.inference_results import (
    Alternative,
    Estimate,
    Interval,
    check_confidence,
    t_interval,
    t_ratio,
    t_tail,
)
from recsys.stats.paired_tests import spread_notes, t_statistic
from recsys.stats.pairing import Differences, as_differences
from recsys.types import Float


@dataclass(frozen=True)
class EquivalenceResult:
    """Two one-sided tests; `p_value` is the larger p, and `interval` must lie inside the margin."""

    method: str
    difference: float
    margin: tuple[float, float]
    p_value: float
    p_above_low: float
    p_below_high: float
    interval: Interval
    n: int
    notes: tuple[str, ...] = ()


def _mean_and_error(differences: Differences | npt.ArrayLike) -> tuple[Float, float, float, tuple[str, ...]]:
    d = as_differences(differences)
    values = d.units().linearised()
    notes = d.notes + spread_notes(values)
    mean, error, _ = t_statistic(values)
    return values, mean, error, notes


def _one_sided_p(mean: float, bound: float, error: float, df: float, alternative: Alternative) -> float:
    if math.isnan(error):
        return math.nan
    if error == 0 and math.isclose(mean, bound, rel_tol=1e-12):
        return 1.0  # every unit lies exactly on the bound: no evidence for either side
    return t_tail(t_ratio(mean - bound, error), df, alternative)


def equivalence(
    differences: Differences | npt.ArrayLike, margin: float | tuple[float, float], *, confidence: float = 0.95
) -> EquivalenceResult:
    """TOST of whether the mean difference lies inside the margin; its interval has confidence 1 - 2 alpha."""
    values, mean, error, notes = _mean_and_error(differences)
    estimate = Estimate(mean, error, t_interval(mean, error, len(values) - 1, confidence), len(values), notes)
    return equivalence_from_estimate(estimate, len(values) - 1, margin, confidence=confidence)


def equivalence_from_estimate(
    estimate: Estimate, df: float, margin: float | tuple[float, float], *, confidence: float = 0.95
) -> EquivalenceResult:
    """TOST of any estimate with a t distribution."""
    low, high = margin if isinstance(margin, Sequence) else (-margin, margin)
    if not low < high:
        raise InputError(f"the margin must run from a lower to a higher value, got {(low, high)}.")
    check_confidence(confidence)
    mean, error = estimate.value, estimate.standard_error
    p_above_low = _one_sided_p(mean, low, error, df, "greater")
    p_below_high = _one_sided_p(mean, high, error, df, "less")
    interval_confidence = max(1e-9, 2.0 * confidence - 1.0)
    interval = t_interval(mean, error, df, interval_confidence, "two-sided")
    p = math.nan if math.isnan(p_above_low) else max(p_above_low, p_below_high)
    return EquivalenceResult(
        "TOST", mean, (low, high), p, p_above_low, p_below_high, interval, estimate.n, estimate.notes
    )


def non_inferiority(
    differences: Differences | npt.ArrayLike, margin: float, *, confidence: float = 0.95
) -> EquivalenceResult:
    """Test whether the first side is worse by less than the margin (positive, in the metric's units)."""
    if not margin > 0:
        raise InputError(f"the margin of non-inferiority must be positive, got {margin!r}.")
    values, mean, error, notes = _mean_and_error(differences)
    df = len(values) - 1
    p = _one_sided_p(mean, -margin, error, df, "greater")
    interval = t_interval(mean, error, df, confidence, "greater")
    return EquivalenceResult(
        "non-inferiority", mean, (-margin, math.inf), p, p, 0.0, interval, len(values), notes
    )


@dataclass(frozen=True)
class BayesResult:
    """Posterior of the mean difference: the probabilities of worse, practically equal and better."""

    difference: float
    scale: float
    df: float
    rope: tuple[float, float]
    p_worse: float
    p_equal: float
    p_better: float
    interval: Interval
    n: int
    notes: tuple[str, ...] = ()


def bayes_paired(
    differences: Differences | npt.ArrayLike,
    rope: float | tuple[float, float] = 0.0,
    *,
    confidence: float = 0.95,
    correlation: float = 0.0,
) -> BayesResult:
    """Posterior under the flat (Jeffreys) prior: Student's t around the mean difference.

    `correlation` widens it for dependent units: for results of k-fold cross-validation, the test share.
    """
    if not 0.0 <= correlation < 1.0:
        raise InputError(f"correlation must be in [0, 1), got {correlation!r}.")
    values, mean, error, notes = _mean_and_error(differences)
    n = len(values)
    scale = error * math.sqrt(1.0 + n * correlation / (1.0 - correlation))
    estimate = Estimate(mean, scale, t_interval(mean, scale, n - 1, confidence), n, notes)
    return bayes_from_estimate(estimate, n - 1, rope, confidence=confidence)


def bayes_from_estimate(
    estimate: Estimate, df: float, rope: float | tuple[float, float], *, confidence: float = 0.95
) -> BayesResult:
    """The posterior of any estimate with a t distribution."""
    from scipy.special import stdtr

    low, high = rope if isinstance(rope, Sequence) else (-rope, rope)
    if not low <= high:
        raise InputError(f"the ROPE must run from a lower to a higher value, got {(low, high)}.")
    mean, scale = estimate.value, estimate.standard_error
    interval = t_interval(mean, scale, df, confidence, "two-sided")
    if math.isnan(scale):
        worse = better = math.nan
    elif scale > 0:
        worse = float(stdtr(df, (low - mean) / scale))
        better = float(stdtr(df, (mean - high) / scale))
    else:
        worse, better = float(mean < low), float(mean > high)
    equal = math.nan if math.isnan(scale) else float(np.clip(1.0 - worse - better, 0.0, 1.0))
    return BayesResult(
        mean, scale, float(df), (low, high), worse, equal, better, interval, estimate.n, estimate.notes
    )
