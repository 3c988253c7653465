"""Intervals for one number: means, ratios, clustered means and any statistic the caller brings.

An estimate is a ratio of sums over units (see `bootstrap`), so one function serves a mean, a weighted mean,
a ratio metric (clicks per view, by the delta method) and a clustered mean, by formula or bootstrap. For
catalogue metrics see `group_jackknife`.

No formula and no bootstrap knows of values that happened not to be drawn. Where the range of the values is
known the interval is therefore Gaffke's (see `gaffke`), unless another method is asked for; and also
then where few units differ, or few weigh nearly everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError, came_as, check_choice
from recsys.kernels.exact_sums import exact_sum
from recsys.records.arrays import Float
from recsys.records.checks import to_floats
from recsys.stats.bootstrap import (
    Rng,
    Units,
    bca_limits,
    check_resamples,
    collapse,
    has_spread,
    seed_from_rng,
    unit_keys,
)
from recsys.stats.mean_inference import Method, infer_mean
from recsys.stats.pairing import check_per_case, pair
from recsys.stats.results import (
    Estimate,
    Interval,
    SmallSampleWarning,
    ZeroVarianceWarning,
    caution,
    check_confidence,
    clip_interval,
)
from recsys.stats.samples import Sample


def mean_interval(
    values: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike | None = None,
    ids: npt.ArrayLike | None = None,
    method: Method = "gaffke",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    rng: Rng = 0,
    bounds: tuple[float, float] | None = None,
) -> Estimate:
    """Interval of a mean over cases (NaN: excluded); cluster-robust if clusters are given.

    `bounds` are the least and the greatest value a case can have: the interval then allows for values that
    were not seen. Zeros and ones need none. Without them it is that of t, and equal values have none.

    >>> mean_interval([1.0, 2.0, 3.0, 4.0]).interval.low.__round__(4)
    0.4457
    >>> never = mean_interval([0] * 300, bounds=(0, 1)).interval
    >>> never.low, round(never.high, 4), never.method
    (0.0, 0.0122, 'Clopper-Pearson')
    """
    array = _float_vector(values)
    limits = None if bounds is None else check_bounds(bounds)
    if bounds is None and set(np.unique(array[~np.isnan(array)]).tolist()) == {0.0, 1.0}:
        limits = (0.0, 1.0)
    keys = unit_keys(np.arange(len(array)) if ids is None else np.asarray(ids))
    labels = None if clusters is None else check_per_case(clusters, len(array), "clusters")
    units = collapse(array[None, :], labels, keys=keys)
    return infer_mean(
        units, method=method, confidence=confidence, n_resamples=n_resamples, rng=rng, bounds=limits
    ).estimate


def check_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    """The least and the greatest value as floats; an error unless the first is below the second."""
    pair_of = to_floats(bounds, "bounds", "Pass the least and the greatest value: (0, 1).")
    if pair_of.shape != (2,) or not pair_of[0] < pair_of[1]:
        raise InputError(f"bounds={bounds!r} are not a least and a greatest value.", hint="Try (0, 1).")
    return float(pair_of[0]), float(pair_of[1])


def ratio_interval(
    numerator: npt.ArrayLike,
    denominator: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike | None = None,
    method: Method = "normal",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    rng: Rng = 0,
    bounds: tuple[float, float] | None = None,
) -> Estimate:
    """Interval of sum(numerator) / sum(denominator): delta method with `normal` or `t`, or a bootstrap.

    `bounds` are the least and the greatest ratio of a unit; they are needed where few units differ.
    """
    units = ratio_units(numerator, denominator, clusters)
    limits = None if bounds is None else check_bounds(bounds)
    return infer_mean(
        units, method=method, confidence=confidence, n_resamples=n_resamples, rng=rng, bounds=limits
    ).estimate


def ratio_units(
    numerator: npt.ArrayLike, denominator: npt.ArrayLike, clusters: npt.ArrayLike | None = None
) -> Units:
    """Units whose estimate is a ratio of sums."""
    numerators, denominators = _float_vector(numerator), _float_vector(denominator)
    if len(numerators) != len(denominators):
        raise InputError(
            f"numerator and denominator differ in length: {len(numerators)} and {len(denominators)}."
        )
    if np.isnan(numerators).any() or np.isnan(denominators).any():
        raise InputError("a ratio needs both parts for every case, got NaN.", hint="Leave such cases out.")
    if not denominators.sum() != 0:
        raise InputError("the denominators add up to zero, so the ratio is not defined.")
    keys = unit_keys(np.arange(len(numerators)))
    labels = None if clusters is None else check_per_case(clusters, len(numerators), "clusters")
    sums = collapse(np.stack([numerators, denominators]), labels, keys=keys)
    return Units(sums.keys, sums.totals[:1], sums.totals[1:])


def ratio_difference(first: Units, second: Units, *, confidence: float = 0.95) -> Estimate:
    """Difference of two ratios over the same, paired units, by the delta method."""
    if len(first.keys) != len(second.keys) or not np.array_equal(first.keys, second.keys):
        raise InputError("the two ratios are over different units.", hint="Pair them by id first.")
    of_first, of_second = (units.residuals[0] / units.weights[0].sum() for units in (first, second))
    influence = of_first - of_second
    value = float(first.estimates()[0] - second.estimates()[0])
    sample = Sample.of(value + influence * len(influence))
    return replace(infer_mean(sample, method="t", confidence=confidence).estimate, value=value)


def delta_values(
    first: Float, second: Float, combine: Callable[[float, float], float], weights: Float | None = None
) -> Float:
    """One value per case: their mean is combine(mean of first, mean of second), their s / sqrt(n) its error.

    The delta method: a case's influence on the combination follows from its influence on the two means. NaN
    stays NaN.

    >>> delta_values(np.array([1.0, 0.0]), np.array([2.0, 2.0]), lambda a, b: a / b).round(6).tolist()
    [0.5, 0.0]
    """
    present = ~(np.isnan(first) | np.isnan(second))
    case_weights = present.astype(np.float64) if weights is None else present * weights
    total = exact_sum(case_weights)
    means = [
        float(exact_sum(np.where(present, term, 0.0) * case_weights) / total) if total else math.nan
        for term in (first, second)
    ]
    fixed = [bool((term[present] == mean).all()) for term, mean in zip((first, second), means, strict=True)]
    return np.where(present, Combination.at(combine, means, fixed).values(first, second), np.nan)


class Combination(NamedTuple):
    """The combination of two means, and how much it changes with each."""

    value: float
    means: Sequence[float]
    slopes: Sequence[float]

    @staticmethod
    def at(
        combine: Callable[[float, float], float], means: Sequence[float], fixed: Sequence[bool]
    ) -> Combination:
        """`fixed`: which of the means no case moves."""
        return Combination(combine(*means), means, slopes_of(combine, means, fixed))

    def values(self, first: Float, second: Float) -> Float:
        """One value per case, from its two terms."""
        influence: Float = self.slopes[0] * (first - self.means[0]) + self.slopes[1] * (
            second - self.means[1]
        )
        return self.value + influence


def slopes_of(
    combine: Callable[[float, float], float], means: Sequence[float], fixed: Sequence[bool]
) -> list[float]:
    """How much the combination of two means changes with each; 0 for one that no case moves.

    Such a mean may be the end of its range.
    """
    slopes = [0.0, 0.0]
    for j in (j for j in range(2) if not fixed[j]):
        step = 1e-6 * (abs(means[j]) or 1e-3)
        up, down = list(means), list(means)
        up[j] += step
        down[j] -= step
        slopes[j] = (combine(*up) - combine(*down)) / (2.0 * step)
    return slopes


def _float_vector(values: npt.ArrayLike) -> Float:
    array = to_floats(values, "values")
    if array.ndim != 1:
        raise InputError(f"values must be one-dimensional, got shape {array.shape}.")
    return array


def statistic_interval(
    sample: npt.ArrayLike,
    statistic: Callable[[Any], float],
    *,
    method: str = "percentile",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    rng: Rng = 0,
    bounds: tuple[float, float] | None = None,
) -> Estimate:
    """Bootstrap interval of `statistic(sample)` over units drawn with replacement, clipped to `bounds`.

    A sample of equal values says nothing about other values: its interval is as wide as the bounds.
    """
    check_choice("bootstrap interval", method, ("percentile", "bca"))
    if not callable(statistic):
        raise came_as("statistic", statistic, hint="Pass a function.")
    check_confidence(confidence)
    check_resamples(n_resamples)
    limits = (-math.inf, math.inf) if bounds is None else check_bounds(bounds)
    d = pair(sample)
    values = d.first
    observed, n, notes = check_not_nan(statistic(values)), len(values), d.notes
    if n < 3:
        notes += (caution(SmallSampleWarning, "few_units", n=n, noun="unit", so="little"),)
    elif not has_spread(values):
        notes += (caution(ZeroVarianceWarning, "no_spread"),)
    elif (n_rare := Sample.of(values).n_rare) is not None:
        facts = {"n_differing": n_rare, "n": n, "noun": "unit"}
        notes += (caution(SmallSampleWarning, "rare_values", **facts, so="too_narrow"),)
    stream = np.random.default_rng(seed_from_rng(rng))
    resampled = np.array([float(statistic(values[stream.integers(0, n, n)])) for _ in range(n_resamples)])
    if not has_spread(values):
        low, high = -math.inf, math.inf
    elif method == "bca":
        # The acceleration (how the spread changes with the statistic), by leaving out single units.
        without = np.array([float(statistic(np.delete(values, i))) for i in range(n)])
        influence = without.mean() - without
        square = float((influence**2).sum())
        acceleration = float((influence**3).sum() / (6.0 * square**1.5)) if square > 0 else 0.0
        low, high = bca_limits(resampled, observed, acceleration, confidence)
    else:
        tail = (1.0 - confidence) / 2.0
        low, high = map(float, np.quantile(resampled, [tail, 1.0 - tail]))
    error = float(resampled.std(ddof=1)) if n_resamples > 1 else 0.0
    return clip_interval(Estimate(observed, error, Interval(low, high, confidence, method), n, notes), limits)


def check_not_nan(value: float) -> float:
    """Refuse a NaN: no draw would exceed it, so it would look significant."""
    if math.isnan(value):
        raise InputError("the statistic of the sample is NaN.", hint="Return a number for every sample.")
    return float(value)
