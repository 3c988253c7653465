"""Bounds and p-values of a mean that allow for units that were not seen.

A mean of 1,000 zeros and 3 ones is not normal, and its standard error is that of 3 users; a mean of many
small differences can hide a loss so rare that no user of the sample had it. If the range of the values is
known, Gaffke's bound needs no such assumption. It adds one unseen unit at the end of the range, gives every
unit a random share of the whole, and takes a quantile of the mean: with independent standard exponentials E,
the alpha quantile of

    (sum E_i x_i + E_0 low) / (sum E_i + E_0)

is the lower bound of confidence 1 - alpha. For values of 0 and 1 it is Clopper and Pearson's bound, for
differences of -1, 0 and 1 its p-value of "no gain" is that of the sign test, and for values that are all the
same it is the rule of three times the range: it is never a point. Its level is proved for those, and no
distribution on a known range is known to break it (Gaffke 2005; Learned-Miller and Thomas 2019).

Units are users or clusters. A unit that weighs more has a larger share. The unseen one weighs
sum w^3 / sum w^2, as much as the units that make up the spread: units that weigh more may have other values.

The chance that sum E_i (x_i - c) is not positive comes from its first four moments where many units decide
(Cornish and Fisher), else from an integral. There, of more than 64 levels all but the heaviest are grouped,
with the same first three moments. Both are right to a hundredth of the bound's own standard deviation.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace

import numpy as np

from recsys.records.arrays import Float
from recsys.stats.results import (
    Alternative,
    Interval,
    check_alternative,
    check_confidence,
)
from recsys.stats.root_finding import crossing
from recsys.stats.samples import Sample, few_levels

METHOD = "Gaffke"
# Skewness^2 + kurtosis up to which four moments give the bound to a thousandth of its standard deviation.
_SMOOTH = 0.01
# Further out than any bound the series would turn round, and the chance is nearly 0 or 1.
_FURTHEST = 10.0
_STEP, _REACH, _TILT = 1.0 / 12.0, 30.0, math.pi / 8.0


def mean_p(
    values: Float | Sample,
    c: float,
    low: float,
    high: float,
    alternative: Alternative = "two-sided",
) -> float:
    """P-value of a mean of `c`, for values between `low` and `high` (which may be infinite).

    >>> wins = np.repeat([0.0, 1.0], [996, 4])
    >>> round(mean_p(wins, 0.0, -1.0, 1.0), 12), round(mean_p(wins, 0.0, -1.0, 1.0, "greater"), 12)
    (0.125, 0.0625)
    """
    check_alternative(alternative)
    sample = Sample.of(values)
    above = below = 1.0
    if alternative != "less":
        above = _p_above(sample, c, low)
    if alternative != "greater":
        below = _p_above(sample.negative, -c, -high)
    return min(1.0, 2.0 * min(above, below)) if alternative == "two-sided" else min(above, below)


def mean_bounds(
    values: Float | Sample,
    low: float,
    high: float,
    confidence: float = 0.95,
    *,
    alternative: Alternative = "two-sided",
) -> Interval:
    """Interval of the mean of values between `low` and `high`; an infinite end has no bound on its side.

    Like all intervals of a test, one for "greater" has a lower bound only.

    >>> zeros = mean_bounds(np.zeros(300), 0.0, 1.0, alternative="less")
    >>> zeros.low, round(zeros.high, 4)  # the rule of three: 3 / 300
    (-inf, 0.0099)
    """
    check_alternative(alternative)
    check_confidence(confidence)
    alpha = (1.0 - confidence) / (2.0 if alternative == "two-sided" else 1.0)
    sample = Sample.of(values)
    least = -math.inf if alternative == "less" else lower_bound(sample, low, alpha)
    most = math.inf if alternative == "greater" else -lower_bound(sample.negative, -high, alpha)
    return Interval(least, most, confidence, METHOD)


def units_needed(
    values: Float | Sample,
    c: float,
    low: float,
    high: float,
    alternative: Alternative = "two-sided",
    *,
    alpha: float = 0.05,
) -> int | None:
    """How many units it takes, if all are like those seen, until the mean differs from `c`; None if never.

    >>> units_needed(np.repeat([0.0, 1.0], [997, 3]), 0.0, -1.0, 1.0)  # 6 wins, no loss: p = 1/32
    2000
    """
    check_alternative(alternative)
    sample = Sample.of(values)
    differing, n, sample = sample.differing[1], sample.n, sample.levels
    if alternative == "two-sided":
        alternative, alpha = "greater" if sample.moments.mean > c else "less", alpha / 2.0
    if alternative == "less":
        sample, c, low = sample.negative, -c, -high
    if not (sample.moments.mean > c and math.isfinite(low)):
        return None
    step = max(differing, 1)  # whole units that differ, or whole samples where none does

    def is_enough(times: int) -> bool:
        return _p_above(replace(sample, counts=sample.times * (times / step)), c, low) <= alpha

    tried = range(1, 10**9)
    at = bisect_left(tried, True, key=is_enough)
    return math.ceil(tried[at] * n / step) if at < len(tried) else None


def _p_above(sample: Sample, c: float, low: float) -> float:
    """P-value of "the mean is at most c": that the mean with random shares is at most c."""
    from scipy.special import ndtr

    least, most = sample.ends
    low = min(low, least)
    if c <= low or low == -math.inf:
        return float(low == -math.inf or c == low == most)
    return 1.0 if c >= most else float(ndtr(_height(sample, c, low)))


def _height(sample: Sample, c: float, low: float) -> float:
    """The normal quantile of that p-value."""
    from scipy.special import ndtri

    unseen = sample.unseen * (low - c)
    first, second, third, fourth = (
        seen + unseen**power for power, seen in enumerate(sample.moments.sums(c), 1)
    )
    skewness, kurtosis = (
        (2.0 * third / second**1.5, 6.0 * fourth / second**2) if second > 0.0 else (math.inf, 0.0)
    )
    if skewness**2 + kurtosis <= _SMOOTH:
        distance = -first / math.sqrt(second)
        x = min(max(distance, -_FURTHEST), _FURTHEST)
        bend = (x * x - 1.0) * skewness / 6.0 + (x**3 - 3.0 * x) * kurtosis / 24.0
        return distance - bend + (4.0 * x**3 - 7.0 * x) * skewness**2 / 36.0
    own = sample.levels
    scales, counts = own.values - c, own.times
    if own.weights is not None:
        scales, counts = few_levels(own.weights * scales, counts)
    return float(ndtri(_chance_not_positive(np.append(scales, unseen), np.append(counts, 1.0))))


def lower_bound(sample: Sample, low: float, alpha: float) -> float:
    """The alpha quantile of the mean with random shares."""
    from scipy.special import betaincinv, ndtri

    least, most = sample.ends
    low = min(low, least)
    if low == -math.inf or most <= low:
        return low
    is_most = sample.values == most
    if sample.weights is None and sample.n and (is_most | (sample.values == low)).all():
        n_most, n = float(sample.count(is_most)), float(sample.n)
        return low + (most - low) * float(betaincinv(n_most, n - n_most + 1.0, alpha))
    mean, target = sample.moments.mean, min(max(float(ndtri(alpha)), -39.0), 39.0)
    heights = sample.heights.setdefault(low, {})

    def excess(c: float) -> float:
        if c not in heights:
            heights[c] = min(max(_height(sample, c, low), -40.0), 40.0)
        return heights[c] - target

    # The bound lies within a few standard errors of the mean.
    step = (math.sqrt(sample.moments.sums(mean)[1]) + sample.unseen * (mean - low)) / sample.moments.weight
    if excess(mean) < 0.0:
        return crossing(excess, mean, most, most)
    return crossing(excess, mean, mean + min(target, -1.0) * step, low)


def _chance_not_positive(scales: Float, counts: Float) -> float:
    """P(Q <= 0) for Q, the sum of scale * gamma(count) over independent gamma variables."""
    kept = (np.abs(scales) > 1e-14 * np.abs(scales).max()) & (counts > 0)  # the rest is rounding
    scales, counts = scales[kept], counts[kept]
    if not (scales > 0).any():
        return 1.0
    if not (scales < 0).any():
        return 0.0
    if (scales * counts).sum() >= 0:
        return _chance_positive(-scales, counts)
    return 1.0 - _chance_positive(scales, counts)


def _chance_positive(scales: Float, counts: Float) -> float:
    """P(Q > 0) where Q has a mean of at most 0, to nearly all digits even far out in the tail.

    The integral of M(s) / (2 pi i s), where M(s) = product of (1 - scale s)^-count is the transform of Q,
    along a hyperbola through the saddle point between 0 and the first pole. It opens away from the side
    with most poles, where the integrand falls without turning round, and the trapezoidal rule converges
    exponentially.
    """
    from scipy.optimize import brentq

    scales = scales / scales.max()
    totals, times = counts * scales, counts[:, None]

    def slope(place: float) -> float:
        s = 1.0 / (1.0 + math.exp(-place))
        return float((totals / (1.0 - scales * s)).sum()) - 1.0 / s

    above, below = float(totals[totals > 0].sum()), float(-totals[totals < 0].sum())
    # Where the positive terms alone, and the largest of them against all others, would have their balance.
    ends = -math.log(above) - 1e-6, math.log((1.0 + below) / min(1.0, counts[np.argmax(scales)])) + 1.0
    s = 1.0 / (1.0 + math.exp(-brentq(slope, *ends, xtol=1e-3)))
    rates = scales / (1.0 - scales * s)
    width = 1.0 / math.sqrt(float((counts * rates**2).sum()) + s**-2)
    left = float(counts[scales < 0].sum()) + 1.0
    tilt = _TILT * (2.0 * left / (float(counts.sum()) + 1.0) - 1.0)
    along, across = math.cos(tilt), math.sin(tilt)
    chance = 0.0
    for start in np.arange(0.0, _REACH, 2.0):
        t = np.arange(start, start + 2.0, _STEP)
        x = s + width * across * (np.cosh(t) - 1.0)
        y = width * along * np.sinh(t)
        steps = width * (across * np.sinh(t) + 1j * along * np.cosh(t))
        real, imaginary = 1.0 - np.multiply.outer(scales, x), np.multiply.outer(-scales, y)
        sizes = np.log1p(scales[:, None] * (np.multiply.outer(scales, x * x + y * y) - 2.0 * x))
        near = real < 0.5  # the pole: nothing cancels in the squares
        sizes[near] = np.log(real[near] ** 2 + imaginary[near] ** 2)
        size, angle = ((times * part).sum(axis=0) for part in (sizes, np.arctan2(imaginary, real)))
        heights = np.exp(-0.5 * size - 1j * angle - np.log(x + 1j * y)) * steps
        chance += _STEP / math.pi * float(heights.imag.sum() - (heights[0].imag / 2.0 if start == 0 else 0.0))
        if float(np.abs(heights).max()) < 1e-18 * chance:
            break
    return min(1.0, max(0.0, chance))
