"""Bootstrap and permutation of a statistic that the caller brings as a function of the sample.

Means and ratios have a faster way in `bootstrap`; the limits come from the same functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError, UnknownNameError
from recsys.stats.alignment import Differences
from recsys.stats.bootstrap import bca_limits
from recsys.stats.inference_results import (
    Alternative,
    Estimate,
    Interval,
    TestResult,
    check_alternative,
    check_confidence,
)
from recsys.stats.paired_samples import pair
from recsys.stats.resampling import Rng, bernoulli_signs, check_resamples, seed_from_rng
from recsys.stats.statistics_warnings import ZeroVarianceWarning, caution, caution_small_sample
from recsys.stats.tests import at_least_as_extreme, has_spread
from recsys.types import Bool, Float

METHODS = ("percentile", "bca")


def statistic_interval(
    sample: npt.ArrayLike,
    statistic: Callable[[Any], float],
    *,
    method: str = "percentile",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    rng: Rng = 0,
) -> Estimate:
    """Bootstrap interval of `statistic(sample)` over units drawn with replacement."""
    if method not in METHODS:
        raise UnknownNameError("bootstrap interval", method, METHODS)
    check_confidence(confidence)
    check_resamples(n_resamples)
    d = pair(sample)
    values = d.first
    observed, n, notes = _check_not_nan(statistic(values)), len(values), d.notes
    if n < 3:
        notes += (caution_small_sample(n, "an interval means little here"),)
    elif not has_spread(values):
        notes += (caution(ZeroVarianceWarning, "every unit has the same value: zero variance"),)
    stream = np.random.default_rng(seed_from_rng(rng))
    resampled = np.array([float(statistic(values[stream.integers(0, n, n)])) for _ in range(n_resamples)])
    if n < 2:
        low, high = -math.inf, math.inf
    elif method == "bca":
        low, high = bca_limits(resampled, observed, _bca_acceleration(values, statistic), confidence)
    else:
        tail = (1.0 - confidence) / 2.0
        low, high = map(float, np.quantile(resampled, [tail, 1.0 - tail]))
    error = float(resampled.std(ddof=1)) if n_resamples > 1 else 0.0
    return Estimate(observed, error, Interval(low, high, confidence, method), n, notes)


def _check_not_nan(value: float) -> float:
    """Refuse a NaN: no draw would exceed it, so it would look significant."""
    if math.isnan(value):
        raise InputError("the statistic of the sample is NaN.", hint="Return a number for every sample.")
    return float(value)


def _bca_acceleration(values: Float, statistic: Callable[[Any], float]) -> float:
    """The acceleration of BCa (how the spread changes with the statistic), by leaving out single units."""
    without = np.array([float(statistic(np.delete(values, i))) for i in range(len(values))])
    influence = without.mean() - without
    square = float((influence**2).sum())
    return float((influence**3).sum() / (6.0 * square**1.5)) if square > 0 else 0.0


def statistic_permutation(
    differences: Differences,
    statistic: Callable[[Any, Any], float],
    *,
    alternative: Alternative = "two-sided",
    n_resamples: int = 10_000,
    rng: Rng = 0,
) -> TestResult:
    """Swap the two sides of random pairs and call `statistic(first, second)` again; all swaps if few.

    A two-sided test uses the distance from zero, so the statistic should change sign when the sides swap.
    """
    check_alternative(alternative)
    check_resamples(n_resamples)
    d, n = differences, len(differences.first)
    notes = d.notes
    if n < 3:
        notes += (caution_small_sample(n, "no test can say much here"),)
    observed = _check_not_nan(statistic(d.first, d.second))
    exact = n < 31 and 1 << n <= n_resamples
    swaps: Iterator[Bool]
    if exact:
        swaps = (bits.astype(bool) for bits in bernoulli_signs(n))
    else:
        stream = np.random.default_rng(seed_from_rng(rng))
        swaps = (stream.random((1, n)) < 0.5 for _ in range(n_resamples))
    permuted = np.array(
        [
            float(statistic(np.where(swap, d.second, d.first), np.where(swap, d.first, d.second)))
            for block in swaps
            for swap in block
        ]
    )
    count = np.count_nonzero(at_least_as_extreme(permuted, observed, 1e-12 * abs(observed), alternative))
    p = count / len(permuted) if exact else (1.0 + count) / (1.0 + len(permuted))
    name = "paired permutation (exact)" if exact else f"paired permutation ({n_resamples} draws)"
    return TestResult(name, float(d.values.mean()), observed, float(p), n, alternative, notes=notes)
