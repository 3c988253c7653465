"""Intervals for one number: means, ratios, clustered means, by formula or bootstrap.

An estimate is a ratio of sums over units (see `align`), so a mean, a weighted mean, a ratio metric (clicks
per view, by the delta method) and a clustered mean need one function. Catalogue metrics are in `catalogue`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError, UnknownNameError
from recsys.stats.alignment import Units, collapse
from recsys.stats.bootstrap import replicate
from recsys.stats.inference_results import Estimate, Interval, t_interval
from recsys.stats.resampling import Resampler, Rng, seed_of, unit_keys
from recsys.stats.statistics_warnings import ZeroVarianceWarning, caution, too_few
from recsys.types import Array, Float

Method = Literal["t", "normal", "studentised", "bca", "percentile"]
METHODS = ("t", "normal", "studentised", "bca", "percentile")


def interval_of(
    units: Units,
    *,
    method: Method = "t",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    rng: Rng = 0,
) -> Estimate:
    """Interval of the first row of `units`."""
    if method not in METHODS:
        raise UnknownNameError("interval method", method, METHODS)
    n = int(units.n_units()[0])
    if n == 0:
        raise InputError("there is nothing to estimate: every case is excluded (NaN).")
    value, error = float(units.estimates()[0]), float(units.standard_errors()[0])
    notes: tuple[str, ...] = ()
    if n < 3:
        notes += (too_few(n, "an interval means little here"),)
    elif error == 0:
        notes += (caution(ZeroVarianceWarning, "every unit has the same value: zero variance"),)
    if method in ("t", "normal"):
        interval = t_interval(value, error, n - 1 if method == "t" else math.inf, confidence)
    else:
        drawn = replicate(units, Resampler(units.keys, n_resamples, seed_of(rng)))
        low, high = drawn.limits(method, confidence)[0]
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
    """Interval of a mean over cases (NaN = excluded); cluster-robust when clusters are given.

    >>> mean_interval([1.0, 2.0, 3.0, 4.0]).interval.low.__round__(4)
    0.4457
    """
    array = _vector(values)
    keys = unit_keys(np.arange(len(array)) if ids is None else np.asarray(ids))
    units = collapse(array[None, :], _labels(clusters, len(array)), keys=keys)
    return interval_of(units, method=method, confidence=confidence, n_resamples=n_resamples, rng=rng)


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
    return interval_of(units, method=method, confidence=confidence, n_resamples=n_resamples, rng=rng)


def ratio_units(
    numerator: npt.ArrayLike, denominator: npt.ArrayLike, clusters: npt.ArrayLike | None = None
) -> Units:
    """Units whose estimate is a ratio of sums."""
    over, under = _vector(numerator), _vector(denominator)
    if len(over) != len(under):
        raise InputError(f"numerator and denominator differ in length: {len(over)} and {len(under)}.")
    if np.isnan(over).any() or np.isnan(under).any():
        raise InputError("a ratio needs both parts for every case, got NaN.", hint="Leave such cases out.")
    if not under.sum() != 0:
        raise InputError("the denominators add up to zero, so the ratio is not defined.")
    keys = unit_keys(np.arange(len(over)))
    labels = _labels(clusters, len(over))
    sums = collapse(np.stack([over, under]), labels, keys=keys)
    return Units(sums.keys, sums.totals[:1], sums.totals[1:])


def ratio_difference(first: Units, second: Units, *, confidence: float = 0.95) -> Estimate:
    """Difference of two ratios over the same units, by the delta method; the pairing is kept."""
    if len(first.keys) != len(second.keys) or not np.array_equal(first.keys, second.keys):
        raise InputError("the two ratios are over different units.", hint="Pair them by id first.")
    pull = _pull(first) - _pull(second)
    n = len(pull)
    value = float(first.estimates()[0] - second.estimates()[0])
    error = math.sqrt(float((pull**2).sum()) * n / (n - 1.0)) if n > 1 else math.nan
    return Estimate(value, error, t_interval(value, error, n - 1, confidence), n)


def delta_values(
    first: Float, second: Float, combine: Callable[[float, float], float], weights: Float | None = None
) -> Float:
    """One value a case whose mean is combine(mean of first, mean of second), and whose spread its error.

    The delta method: each case pulls the combination by as much as it pulls the two means. NaN stays NaN.

    >>> delta_values(np.array([1.0, 0.0]), np.array([2.0, 2.0]), lambda a, b: a / b).round(6).tolist()
    [0.5, 0.0]
    """
    here = ~(np.isnan(first) | np.isnan(second))
    share = here.astype(np.float64) if weights is None else here * weights
    total = float(share.sum())
    means = [
        float(np.where(here, term, 0.0) @ share) / total if total else math.nan for term in (first, second)
    ]
    value = combine(*means)
    slopes = []
    for j in range(2):
        step = 1e-6 * max(abs(means[j]), 1e-3)
        up, down = list(means), list(means)
        up[j] += step
        down[j] -= step
        slopes.append((combine(*up) - combine(*down)) / (2.0 * step))
    pull = slopes[0] * (first - means[0]) + slopes[1] * (second - means[1])
    return np.where(here, value + pull, np.nan)


def _pull(units: Units) -> Float:
    pull: Float = units.residuals()[0] / units.weights[0].sum()
    return pull


def _vector(values: npt.ArrayLike) -> Float:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise InputError(f"values must be one-dimensional, got shape {array.shape}.")
    return array


def _labels(clusters: npt.ArrayLike | None, n: int) -> Array | None:
    if clusters is None:
        return None
    labels = np.asarray(clusters)
    if labels.shape != (n,):
        raise InputError(
            f"clusters must name one cluster a case: {n} cases, clusters of shape {labels.shape}."
        )
    return labels
