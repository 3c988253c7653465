"""Intervals for one number: means, ratios, clustered means and any statistic the caller brings.

An estimate is a ratio of sums over units (see `resampling`), so one function serves a mean, a weighted mean,
a ratio metric (clicks per view, by the delta method) and a clustered mean, by formula or bootstrap. For
catalogue metrics see `group_jackknife`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError
from recsys.stats.inference_results import (
    Estimate,
    Interval,
    ZeroVarianceWarning,
    caution,
    caution_small_sample,
    check_choice,
    check_confidence,
    t_interval,
    to_floats,
)
from recsys.stats.pairing import check_per_case, pair
from recsys.stats.resampling import (
    Resampler,
    Rng,
    Units,
    bca_limits,
    check_resamples,
    collapse,
    has_spread,
    replicate,
    seed_from_rng,
    unit_keys,
)
from recsys.types import Float

Method = Literal["t", "normal", "studentised", "bca", "percentile"]
METHODS = ("t", "normal", "studentised", "bca", "percentile")


def units_interval(
    units: Units,
    *,
    method: Method = "t",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    rng: Rng = 0,
) -> Estimate:
    """Estimate and interval of the first row of `units`."""
    check_choice("interval method", method, METHODS)
    n = int(units.n_units()[0])
    if n == 0:
        raise InputError("there is nothing to estimate: every case is excluded (NaN).")
    value, error = float(units.estimates()[0]), float(units.standard_errors()[0])
    notes: tuple[str, ...] = ()
    if n < 3:
        notes += (caution_small_sample(n, "an interval means little here"),)
    elif error == 0:
        notes += (caution(ZeroVarianceWarning, "every unit has the same value: zero variance"),)
    if method in ("t", "normal"):
        interval = t_interval(value, error, n - 1 if method == "t" else math.inf, confidence)
    else:
        replicates = replicate(units, Resampler(units.keys, n_resamples, seed_from_rng(rng)))
        low, high = replicates.limits(method, confidence)[0]
        interval = Interval(float(low), float(high), confidence, method)
    return Estimate(value, error, interval, n, notes)


def mean_interval(
    values: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike | None = None,
    ids: npt.ArrayLike | None = None,
    method: Method = "t",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    rng: Rng = 0,
) -> Estimate:
    """Interval of a mean over cases (NaN: excluded); cluster-robust if clusters are given.

    >>> mean_interval([1.0, 2.0, 3.0, 4.0]).interval.low.__round__(4)
    0.4457
    """
    array = _float_vector(values)
    keys = unit_keys(np.arange(len(array)) if ids is None else np.asarray(ids))
    labels = None if clusters is None else check_per_case(clusters, len(array), "clusters")
    units = collapse(array[None, :], labels, keys=keys)
    return units_interval(units, method=method, confidence=confidence, n_resamples=n_resamples, rng=rng)


def ratio_interval(
    numerator: npt.ArrayLike,
    denominator: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike | None = None,
    method: Method = "normal",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    rng: Rng = 0,
) -> Estimate:
    """Interval of sum(numerator) / sum(denominator): delta method with `normal` or `t`, or a bootstrap."""
    units = ratio_units(numerator, denominator, clusters)
    return units_interval(units, method=method, confidence=confidence, n_resamples=n_resamples, rng=rng)


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
    influence = _ratio_influence(first) - _ratio_influence(second)
    n = len(influence)
    value = float(first.estimates()[0] - second.estimates()[0])
    error = math.sqrt(float((influence**2).sum()) * n / (n - 1.0)) if n > 1 else math.nan
    return Estimate(value, error, t_interval(value, error, n - 1, confidence), n)


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
    total = float(case_weights.sum())
    means = [
        float(np.where(present, term, 0.0) @ case_weights) / total if total else math.nan
        for term in (first, second)
    ]
    value = combine(*means)
    slopes = []
    for j in range(2):
        step = 1e-6 * max(abs(means[j]), 1e-3)
        up, down = list(means), list(means)
        up[j] += step
        down[j] -= step
        slopes.append((combine(*up) - combine(*down)) / (2.0 * step))
    influence = slopes[0] * (first - means[0]) + slopes[1] * (second - means[1])
    return np.where(present, value + influence, np.nan)


def _ratio_influence(units: Units) -> Float:
    influence: Float = units.residuals()[0] / units.weights[0].sum()
    return influence


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
) -> Estimate:
    """Bootstrap interval of `statistic(sample)` over units drawn with replacement."""
    check_choice("bootstrap interval", method, ("percentile", "bca"))
    if not callable(statistic):
        raise InputError(f"statistic came as {type(statistic).__name__}.", hint="Pass a function.")
    check_confidence(confidence)
    check_resamples(n_resamples)
    d = pair(sample)
    values = d.first
    observed, n, notes = check_not_nan(statistic(values)), len(values), d.notes
    if n < 3:
        notes += (caution_small_sample(n, "an interval means little here"),)
    elif not has_spread(values):
        notes += (caution(ZeroVarianceWarning, "every unit has the same value: zero variance"),)
    stream = np.random.default_rng(seed_from_rng(rng))
    resampled = np.array([float(statistic(values[stream.integers(0, n, n)])) for _ in range(n_resamples)])
    if n < 2:
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
    return Estimate(observed, error, Interval(low, high, confidence, method), n, notes)


def check_not_nan(value: float) -> float:
    """Refuse a NaN: no draw would exceed it, so it would look significant."""
    if math.isnan(value):
        raise InputError("the statistic of the sample is NaN.", hint="Return a number for every sample.")
    return float(value)
