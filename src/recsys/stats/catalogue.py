"""Intervals for catalogue metrics (coverage, Gini, entropy …), which are no means over users.

A delete-a-group jackknife over groups of users by hash of their id: exposure counts per group add up across
shards and streams. The estimand is the value expected from a test set of this size drawn from the same users;
a bootstrap over users repeats some of them and so never sees the coverage that was seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError
from recsys.stats.cautions import SmallSampleWarning, caution
from recsys.stats.outcomes import Estimate, t_interval
from recsys.types import Float

Statistic = Callable[[Float], float]
ESTIMAND = "the value expected from a test set of this size drawn from the same users"
# Share of the first-order variance below which the correction for coverage is noise (near saturation).
_LEAST = 1.0 / 3.0
_ORDERS = 10


def catalogue_interval(
    exposure: npt.ArrayLike,
    statistic: Statistic,
    *,
    sizes: npt.ArrayLike | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """Interval of statistic(total exposure) from exposure counts groups x items.

    `sizes` is the number of users per group (the exposure of each group stands in when it is not given).
    """
    counts = _counts(exposure)
    total = counts.sum(axis=0)
    left_out = np.array([statistic(total - group) for group in counts])
    variance = _jackknife(left_out, _sizes(counts, sizes))
    return _estimate(float(statistic(total)), variance, len(counts), confidence)


def catalogue_difference(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    statistic: Statistic,
    *,
    sizes: npt.ArrayLike | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """Interval of the difference of a catalogue metric between two models; the same groups go from both."""
    a, b = _counts(first), _counts(second)
    if len(a) != len(b):
        raise InputError(
            f"the two exposures have {len(a)} and {len(b)} groups; they must be the same groups."
        )
    all_a, all_b = a.sum(axis=0), b.sum(axis=0)
    gaps = np.array([statistic(all_a - x) - statistic(all_b - y) for x, y in zip(a, b, strict=True)])
    variance = _jackknife(gaps, _sizes(a + b if a.shape == b.shape else a, sizes))
    return _estimate(float(statistic(all_a) - statistic(all_b)), variance, len(a), confidence)


def coverage_interval(
    exposure: npt.ArrayLike,
    *,
    n_items: int | None = None,
    sizes: npt.ArrayLike | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """Interval of the share of the catalogue that was shown, from exposure counts groups x items.

    "Shown at least once" is not smooth, and the plain jackknife is far too wide for it; the terms of higher
    order, read off the sets of groups that showed an item, are taken away again.
    """
    counts = _counts(exposure)
    catalogue = n_items or counts.shape[1]
    total = counts.sum(axis=0)
    shown = int(np.count_nonzero(total))
    left_out = np.count_nonzero(total - counts > 0, axis=1).astype(np.float64)
    first = _jackknife(left_out, _sizes(counts, sizes))
    variance = max(first - _higher_orders(counts > 0), _LEAST * first)
    # What is left after a subtraction is known less well than what it was taken from.
    df = (len(counts) - 2) * min(1.0, variance / first) ** 2 if first > 0 else len(counts) - 2.0
    found = _estimate(shown / catalogue, variance / catalogue**2, len(counts), confidence, df=df)
    inside = replace(found.interval, low=max(0.0, found.interval.low), high=min(1.0, found.interval.high))
    return replace(found, interval=inside)


def _counts(exposure: npt.ArrayLike) -> Float:
    counts = np.asarray(exposure, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] < 4:
        raise InputError(f"exposure must be groups x items with at least 4 groups, got shape {counts.shape}.")
    if not (counts >= 0).all():
        raise InputError("exposure counts must be zero or positive.")
    return counts


def _sizes(counts: Float, sizes: npt.ArrayLike | None) -> Float:
    given = counts.sum(axis=1) if sizes is None else np.asarray(sizes, dtype=np.float64)
    if given.shape != (len(counts),):
        raise InputError(f"sizes must hold one number a group ({len(counts)}), got shape {given.shape}.")
    return given


def _jackknife(left_out: Float, sizes: Float) -> float:
    """Variance from the leave-one-group-out values, less what only the groups' unequal sizes explain."""
    n = len(left_out)
    gaps = left_out - left_out.mean()
    size = sizes - sizes.mean()
    spread = float(size @ size)
    fitted = 1
    if spread > 0:
        gaps = gaps - size * (float(size @ gaps) / spread)
        fitted = 2
    return float(gaps @ gaps) * (n - 1) / n * (n - 1) / (n - fitted)


def _higher_orders(shown: npt.NDArray[np.bool_]) -> float:
    """What the jackknife counts too often: an item seen by exactly j groups adds to interactions of order j.

    Their squares alternate in sign, as in Good and Toulmin's estimate of new species; Euler's weights keep
    the tail of the series from adding noise.
    """
    n_groups = len(shown)
    packed = np.ascontiguousarray(np.packbits(shown, axis=0).T)
    _, first, counts = np.unique(packed, axis=0, return_index=True, return_counts=True)
    order = np.count_nonzero(shown[:, first], axis=0)
    excess = 0.0
    for j in range(2, min(_ORDERS, n_groups - 1) + 1):
        same = counts[order == j].astype(np.float64)
        weight = sum(math.comb(_ORDERS, i) for i in range(j, _ORDERS + 1)) / 2.0**_ORDERS
        square = float(same @ same) - float(same.sum()) ** 2 / math.comb(n_groups, j)
        excess += (-1) ** j * weight * square
    return excess


def _estimate(
    value: float, variance: float, n_groups: int, confidence: float, *, df: float | None = None
) -> Estimate:
    notes: tuple[str, ...] = (f"estimates {ESTIMAND}; jackknife over {n_groups} groups",)
    error = math.sqrt(max(variance, 0.0))
    if error == 0:
        notes += (caution(SmallSampleWarning, "no group matters to this metric: its interval is a point"),)
    interval = t_interval(value, error, n_groups - 2 if df is None else df, confidence)
    return Estimate(value, error, interval, n_groups, notes)
