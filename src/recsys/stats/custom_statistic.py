"""Bootstrap and permutation of a statistic the caller brings, which can only be called again and again.

Means and ratios have their own, faster way in `bootstrap`; the limits are made by the same functions.
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
from recsys.stats.resampling import Rng, bernoulli_signs, check_resamples, seed_of
from recsys.stats.statistics_warnings import ZeroVarianceWarning, caution, too_few
from recsys.stats.tests import beyond, has_spread
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
    seen, n, notes = _defined(statistic(values)), len(values), d.notes
    if n < 3:
        notes += (too_few(n, "an interval means little here"),)
    elif not has_spread(values):
        notes += (caution(ZeroVarianceWarning, "every unit has the same value: zero variance"),)
    stream = np.random.default_rng(seed_of(rng))
    drawn = np.array([float(statistic(values[stream.integers(0, n, n)])) for _ in range(n_resamples)])
    if n < 2:
        low, high = -math.inf, math.inf
    elif method == "bca":
        low, high = bca_limits(drawn, seen, _acceleration(values, statistic), confidence)
    else:
        tail = (1.0 - confidence) / 2.0
        low, high = map(float, np.quantile(drawn, [tail, 1.0 - tail]))
    error = float(drawn.std(ddof=1)) if n_resamples > 1 else 0.0
    return Estimate(seen, error, Interval(low, high, confidence, method), n, notes)


def _defined(value: float) -> float:
    """A statistic that is NaN would be beaten by no draw, and so pass for significant."""
    if math.isnan(value):
        raise InputError("the statistic of the sample is NaN.", hint="Return a number for every sample.")
    return float(value)


def _acceleration(values: Float, statistic: Callable[[Any], float]) -> float:
    """How the spread moves with the statistic, from leaving out one unit at a time."""
    without = np.array([float(statistic(np.delete(values, i))) for i in range(len(values))])
    pull = without.mean() - without
    square = float((pull**2).sum())
    return float((pull**3).sum() / (6.0 * square**1.5)) if square > 0 else 0.0


def statistic_permutation(
    differences: Differences,
    statistic: Callable[[Any, Any], float],
    *,
    alternative: Alternative = "two-sided",
    n_resamples: int = 10_000,
    rng: Rng = 0,
) -> TestResult:
    """Swap the two sides of each pair and call `statistic(first, second)` again; all swaps if few.

    Two-sided, what counts is the distance from zero: the statistic should change sign when the sides do.
    """
    check_alternative(alternative)
    check_resamples(n_resamples)
    d, n = differences, len(differences.first)
    notes = d.notes
    if n < 3:
        notes += (too_few(n, "no test can say much here"),)
    seen = _defined(statistic(d.first, d.second))
    exact = n < 31 and 1 << n <= n_resamples
    swaps = _every_swap(n) if exact else _drawn_swaps(n, n_resamples, seed_of(rng))
    drawn = np.array(
        [
            float(statistic(np.where(s, d.second, d.first), np.where(s, d.first, d.second)))
            for block in swaps
            for s in block
        ]
    )
    count = np.count_nonzero(beyond(drawn, seen, 1e-12 * abs(seen), alternative))
    p = count / len(drawn) if exact else (1.0 + count) / (1.0 + len(drawn))
    name = "paired permutation (exact)" if exact else f"paired permutation ({n_resamples} draws)"
    return TestResult(name, float(d.values.mean()), seen, float(p), n, alternative, notes=notes)


def _every_swap(n: int) -> Iterator[Bool]:
    return (bits.astype(bool) for bits in bernoulli_signs(n))


def _drawn_swaps(n: int, n_resamples: int, seed: int) -> Iterator[Bool]:
    stream = np.random.default_rng(seed)
    return (stream.random((1, n)) < 0.5 for _ in range(n_resamples))
