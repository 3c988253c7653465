"""Margins of one paired comparison: equivalence, non-inferiority, and the probability of worse and better.

Equivalence and non-inferiority need a margin that was chosen before looking at the data: both ends are tested
one-sided, and p is the larger of the two (TOST, Schuirmann 1987). The Bayesian comparison needs a region of
practical equivalence (ROPE); its posterior of the mean is t with the degrees of freedom of the error, around
the mean difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError
from recsys.records.checks import is_number, to_floats
from recsys.records.facts import Note
from recsys.stats.gaffke import METHOD
from recsys.stats.intervals import check_bounds
from recsys.stats.mean_inference import (
    bounded_mean_test,
    spread_notes,
)
from recsys.stats.pairing import Differences, Paired, as_differences, as_paired
from recsys.stats.results import (
    Alternative,
    Estimate,
    Interval,
    check_confidence,
    t_interval,
    t_ratio,
    t_tail,
)
from recsys.stats.samples import Sample


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
    notes: tuple[Note, ...] = ()


def difference_estimate(differences: Paired | npt.ArrayLike, confidence: float = 0.95) -> Estimate:
    """The mean difference over units with its t interval."""
    d = as_paired(differences)
    sample = d.sample
    interval = t_interval(sample.mean, sample.error, sample.df, confidence)
    return Estimate(sample.mean, sample.error, interval, sample.n, d.notes + spread_notes(sample))


def _one_sided_p(mean: float, bound: float, error: float, df: float, alternative: Alternative) -> float:
    if not error > 0:  # nothing says how far others may be
        return 0.0 if math.isinf(bound) else math.nan
    return t_tail(t_ratio(mean - bound, error), df, alternative)


def equivalence(
    differences: Differences | npt.ArrayLike,
    margin: float | tuple[float, float],
    *,
    confidence: float = 0.95,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> EquivalenceResult:
    """TOST of whether the mean difference lies inside the margin; its interval has confidence 1 - 2 alpha.

    `bounds` are the least and the greatest difference, so that the test allows for differences that were not
    seen (see `bounded_mean_test`). Without them it is that of t, and where fewer than 20 units differ nothing
    is shown.

    >>> ties = np.repeat([0.0, 1.0, -1.0], [1997, 2, 1])
    >>> equivalence(ties, 0.01, bounds=(-1, 1)).p_value < 0.001, equivalence(ties, 0.01).p_value
    (True, nan)
    """
    d = as_differences(differences)
    estimate = difference_estimate(d, confidence)
    seen = d.sample, check_bounds(bounds)
    return equivalence_from_estimate(estimate, d.sample.df, margin, confidence=confidence, seen=seen)


def equivalence_from_estimate(
    estimate: Estimate,
    df: float,
    margin: float | tuple[float, float],
    *,
    confidence: float = 0.95,
    seen: tuple[Sample, tuple[float, float]] | None = None,
) -> EquivalenceResult:
    """TOST of any estimate with a t distribution.

    Where the units that were `seen` and the ends of their range are given, it allows for those that were not.
    """
    low, high = _two_ends(margin, "the margin")
    if not low < high:
        raise InputError(f"the margin must run from a lower to a higher value, got {(low, high)}.")
    check_confidence(confidence)
    mean, error, notes = estimate.value, estimate.standard_error, dict.fromkeys(estimate.notes)
    sides: tuple[tuple[float, Literal["greater", "less"]], ...] = (low, "greater"), (high, "less")
    p_values = [_one_sided_p(mean, end, error, df, side) for end, side in sides]
    interval = t_interval(mean, error, df, max(1e-9, 2.0 * confidence - 1.0), "two-sided")
    ends = [interval.low, interval.high]
    for at, (end, side) in enumerate(sides):
        if seen is None or math.isinf(end):
            continue
        test = bounded_mean_test(seen[0], end, seen[1], side, confidence=confidence)
        if test is not None:
            p_values[at], notes = test.p_value, notes | dict.fromkeys(test.notes)
            ends[at] = test.interval.low if at == 0 else test.interval.high
            if math.isinf(sides[1 - at][0]):
                ends[1 - at] = sides[1 - at][0]
            interval = replace(interval, low=ends[0], high=ends[1], method=METHOD)
    p = math.nan if math.isnan(sum(p_values)) else max(p_values)
    return EquivalenceResult(
        "TOST", mean, (low, high), p, p_values[0], p_values[1], interval, estimate.n, tuple(notes)
    )


def _two_ends(given: Any, what: str) -> tuple[float, float]:
    """Both ends of a range that came as two numbers, or as the distance of either end from zero."""
    hint = "Pass one number, or a lower and a higher one."
    ends = to_floats(given, what, hint)
    if ends.shape not in ((), (2,)):
        raise InputError(f"{what} came with shape {ends.shape}.", hint=hint)
    return (float(ends[0]), float(ends[1])) if ends.ndim else (-float(ends), float(ends))


def non_inferiority(
    differences: Differences | npt.ArrayLike,
    margin: float,
    *,
    confidence: float = 0.95,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> EquivalenceResult:
    """Test whether the first side is worse by less than the margin (positive, in the metric's units).

    `bounds` as in `equivalence`.
    """
    if not (is_number(margin) and margin > 0):
        raise InputError(f"the margin of non-inferiority must be positive, got {margin!r}.")
    d = as_differences(differences)
    found = equivalence(d, (-margin, math.inf), confidence=confidence, bounds=bounds)
    interval = replace(found.interval, confidence=confidence)
    if interval.method != METHOD:
        interval = t_interval(found.difference, d.sample.error, d.sample.df, confidence, "greater")
    p, method = found.p_above_low, "non-inferiority"
    return replace(found, method=method, p_value=p, p_below_high=0.0, interval=interval)


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
    notes: tuple[Note, ...] = ()


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
    if not (is_number(correlation) and 0.0 <= correlation < 1.0):
        raise InputError(f"correlation must be in [0, 1), got {correlation!r}.")
    d = as_differences(differences)
    estimate = difference_estimate(d, confidence)
    scale = estimate.standard_error * math.sqrt(1.0 + estimate.n * correlation / (1.0 - correlation))
    df = d.sample.df
    return bayes_from_estimate(replace(estimate, standard_error=scale), df, rope, confidence=confidence)


def bayes_from_estimate(
    estimate: Estimate, df: float, rope: float | tuple[float, float], *, confidence: float = 0.95
) -> BayesResult:
    """The posterior of any estimate with a t distribution."""
    from scipy.special import stdtr

    low, high = _two_ends(rope, "the ROPE")
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
