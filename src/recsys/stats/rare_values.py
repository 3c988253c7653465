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
from dataclasses import dataclass, replace

import numpy as np

from recsys.errors import NoRowsError
from recsys.records.arrays import Float, cached_property
from recsys.stats.inference_results import (
    Alternative,
    Interval,
    check_alternative,
    check_confidence,
)
from recsys.stats.moments import Moments

# With fewer units that differ, a mean is not normal however many units there are.
FEW = 20
METHOD = "Gaffke"
# Skewness^2 + kurtosis up to which four moments give the bound to a thousandth of its standard deviation.
_SMOOTH = 0.01
# Further out than any bound the series would turn round, and the chance is nearly 0 or 1.
_FURTHEST = 10.0
# Of more levels, so many of the heaviest stay as they are, and the others become two levels in each group.
_MOST_LEVELS, _HEAVIEST, _GROUPS = 64, 32, 16
_STEP, _REACH, _TILT = 1.0 / 12.0, 30.0, math.pi / 8.0


def count_differing(
    values: Float,
    common: float | None = None,
    counts: Float | None = None,
    *,
    largest: float | None = None,
) -> int:
    """How many values differ, beyond rounding, from the common one (by default the most frequent).

    A value that fewer than 20 differ from is found for sure; if there is none, the count is only 20 or more.
    `counts`: how often each value occurs, once by default; `largest`: the size of the largest, if it is not
    among these.

    >>> count_differing(np.array([0.0, 0.0, 0.3, -0.3])), count_differing(np.array([0.1, 0.1]), 0.0)
    (2, 2)
    """
    if common is None:
        common = common_value(values, counts)
    slack = 1e-12 * max(abs(common), float(np.abs(values).max(initial=0.0)) if largest is None else largest)
    differs = np.abs(values - common) > slack
    return int(np.count_nonzero(differs) if counts is None else counts[differs].sum())


def common_value(values: Float, counts: Float | None = None) -> float:
    """The value that all but fewer than 20 have, if there is one; else any. Rounding makes no difference."""
    some = values if counts is not None else values[: 2 * FEW + 1]  # it has the majority among any 41
    rounded = np.round(some / (np.abs(some).max(initial=0.0) or 1.0), 12)
    _, first, level = np.unique(rounded, return_index=True, return_inverse=True)
    return float(some[first[np.argmax(np.bincount(level, counts))]])


def count_wins_and_losses(
    means: Float, dead_zone: float, counts: Float | None = None, *, largest: float | None = None
) -> tuple[int, int]:
    """How many means lie above and below the dead zone, which includes its edge up to rounding.

    `counts`: how often each occurs, once by default; `largest`: the size of the largest, if not among these.

    >>> count_wins_and_losses(np.array([0.3 - 0.2, 0.4 - 0.3, 0.5, -0.2]), 0.1)
    (1, 1)
    """
    edge = dead_zone + 1e-12 * (float(np.abs(means).max(initial=0.0)) if largest is None else largest)
    above, below = (
        np.count_nonzero(beyond) if counts is None else counts[beyond].sum()
        for beyond in (means > edge, means < -edge)
    )
    return int(above), int(below)


def mean_p(
    values: Float | BoundedSample,
    c: float,
    low: float,
    high: float,
    alternative: Alternative = "two-sided",
    *,
    weights: Float | None = None,
    counts: Float | None = None,
) -> float:
    """P-value of a mean of `c`, for values between `low` and `high` (which may be infinite).

    `counts` as in `mean_bounds`.

    >>> wins = np.repeat([0.0, 1.0], [996, 4])
    >>> round(mean_p(wins, 0.0, -1.0, 1.0), 12), round(mean_p(wins, 0.0, -1.0, 1.0, "greater"), 12)
    (0.125, 0.0625)
    """
    check_alternative(alternative)
    sample = BoundedSample.of(values, weights, counts)
    above = below = 1.0
    if alternative != "less":
        above = sample.p_above(c, low)
    if alternative != "greater":
        below = sample.negative.p_above(-c, -high)
    return min(1.0, 2.0 * min(above, below)) if alternative == "two-sided" else min(above, below)


def mean_bounds(
    values: Float | BoundedSample,
    low: float,
    high: float,
    confidence: float = 0.95,
    *,
    alternative: Alternative = "two-sided",
    weights: Float | None = None,
    counts: Float | None = None,
) -> Interval:
    """Interval of the mean of values between `low` and `high`; an infinite end has no bound on its side.

    Like all intervals of a test, one for "greater" has a lower bound only. `counts`: how often each value (of
    this weight) occurs, once by default.

    >>> zeros = mean_bounds(np.zeros(300), 0.0, 1.0, alternative="less")
    >>> zeros.low, round(zeros.high, 4)  # the rule of three: 3 / 300
    (-inf, 0.0099)
    """
    check_alternative(alternative)
    check_confidence(confidence)
    alpha = (1.0 - confidence) / (2.0 if alternative == "two-sided" else 1.0)
    sample = BoundedSample.of(values, weights, counts)
    least = -math.inf if alternative == "less" else sample.lower_bound(low, alpha)
    most = math.inf if alternative == "greater" else -sample.negative.lower_bound(-high, alpha)
    return Interval(least, most, confidence, METHOD)


def units_needed(
    values: Float | BoundedSample,
    c: float,
    low: float,
    high: float,
    alternative: Alternative = "two-sided",
    *,
    alpha: float = 0.05,
    weights: Float | None = None,
    counts: Float | None = None,
) -> int | None:
    """How many units it takes, if all are like those seen, until the mean differs from `c`; None if never.

    `counts` as in `mean_bounds`.

    >>> units_needed(np.repeat([0.0, 1.0], [997, 3]), 0.0, -1.0, 1.0)  # 6 wins, no loss: p = 1/32
    2000
    """
    check_alternative(alternative)
    sample = BoundedSample.of(values, weights, counts)
    differing = count_differing(sample.values, counts=sample.counts)
    sample = sample.levels
    n = round(float(sample.counts.sum()))
    if alternative == "two-sided":
        alternative, alpha = "greater" if sample.moments.mean > c else "less", alpha / 2.0
    if alternative == "less":
        sample, c, low = sample.negative, -c, -high
    if not (sample.moments.mean > c and math.isfinite(low)):
        return None
    step = max(differing, 1)  # whole units that differ, or whole samples where none does

    def is_enough(times: int) -> bool:
        return replace(sample, counts=sample.counts * (times / step), known=None).p_above(c, low) <= alpha

    tried = range(1, 10**9)
    at = bisect_left(tried, True, key=is_enough)
    return math.ceil(tried[at] * n / step) if at < len(tried) else None


@dataclass(frozen=True, eq=False)
class BoundedSample:
    """Values of units, how many units have each, and the weight of such a unit (1 by default).

    Where they are too many to be known, `values` are the least and the greatest, without counts. `known` are
    their moments, computed if None.
    """

    values: Float
    counts: Float
    weights: Float | None = None
    known: Moments | None = None

    @staticmethod
    def of(
        values: Float | BoundedSample, weights: Float | None = None, counts: Float | None = None
    ) -> BoundedSample:
        """The sample of values that occur so often, once by default."""
        if isinstance(values, BoundedSample):
            return values
        times = np.ones(len(values)) if counts is None else counts
        if weights is None:
            return BoundedSample(values, times)
        present = weights > 0
        return BoundedSample(values[present], times[present], weights[present])

    @cached_property
    def moments(self) -> Moments:
        if self.known is not None:
            return self.known
        totals = self.values if self.weights is None else self.weights * self.values
        return Moments.of(totals, self.weights, self.counts)

    @property
    def unseen(self) -> float:
        """The weight of the unseen unit."""
        return self.moments.terms[2][3] / self.moments.terms[1][2]

    @cached_property
    def levels(self) -> BoundedSample:
        """The same with each value of a weight once, in few levels if all units weigh the same."""
        if not len(self.counts):
            raise NoRowsError("a bound that few values decide")
        pairs = self.values if self.weights is None else self.values + 1j * self.weights
        found, level = np.unique(pairs, return_inverse=True)
        counts = np.bincount(level.ravel(), self.counts).astype(np.float64)
        if self.weights is None:
            return BoundedSample(*_few_levels(found, counts))
        return BoundedSample(found.real, counts, found.imag)

    @cached_property
    def negative(self) -> BoundedSample:
        return replace(self, values=-self.values, known=self.moments.negative())

    def p_above(self, c: float, low: float) -> float:
        """P-value of "the mean is at most c": that the mean with random shares is at most c."""
        from scipy.special import ndtr

        low = min(low, float(self.values.min()))
        if c <= low or low == -math.inf:
            return float(low == -math.inf or c == low == self.values.max())
        return 1.0 if c >= self.values.max() else float(ndtr(self._z_above(c, low)))

    def _z_above(self, c: float, low: float) -> float:
        """The normal quantile of that p-value."""
        from scipy.special import ndtri

        unseen = self.unseen * (low - c)
        first, second, third, fourth = (
            seen + unseen**power for power, seen in enumerate(self.moments.sums(c), 1)
        )
        skewness, kurtosis = (
            (2.0 * third / second**1.5, 6.0 * fourth / second**2) if second > 0.0 else (math.inf, 0.0)
        )
        if skewness**2 + kurtosis <= _SMOOTH:
            distance = -first / math.sqrt(second)
            x = min(max(distance, -_FURTHEST), _FURTHEST)
            bend = (x * x - 1.0) * skewness / 6.0 + (x**3 - 3.0 * x) * kurtosis / 24.0
            return distance - bend + (4.0 * x**3 - 7.0 * x) * skewness**2 / 36.0
        own = self.levels
        scales, counts = own.values - c, own.counts
        if own.weights is not None:
            scales, counts = _few_levels(own.weights * scales, counts)
        return float(ndtri(_chance_not_positive(np.append(scales, unseen), np.append(counts, 1.0))))

    def lower_bound(self, low: float, alpha: float) -> float:
        """The alpha quantile of the mean with random shares."""
        from scipy.optimize import brentq
        from scipy.special import betaincinv, ndtri

        least, most = float(self.values.min()), float(self.values.max())
        low = min(low, least)
        if low == -math.inf or most <= low:
            return low
        is_most = self.values == most
        if self.weights is None and len(self.counts) and (is_most | (self.values == low)).all():
            n_most, n = float(self.counts[is_most].sum()), float(self.counts.sum())
            return low + (most - low) * float(betaincinv(n_most, n - n_most + 1.0, alpha))
        target = min(max(float(ndtri(alpha)), -39.0), 39.0)

        def excess(c: float) -> float:
            return min(max(self._z_above(c, low), -40.0), 40.0) - target

        # The bound lies within a few standard errors of the mean.
        mean = self.moments.mean
        step = (math.sqrt(self.moments.sums(mean)[1]) + self.unseen * (mean - low)) / self.moments.weight
        near, far = mean, mean - 2.0 * step
        if excess(near) < 0.0:
            near = most
        while far > low and excess(far) > 0.0:
            near, far, step = far, far - 2.0 * step, 2.0 * step
        far = max(far, low)
        return float(brentq(excess, far, near, xtol=1e-17 * (most - low) + math.ulp(0.0), rtol=1e-12))


def _few_levels(values: Float, counts: Float) -> tuple[Float, Float]:
    """At most 64 values in place of many, and how often each occurs.

    The heaviest stay as they are. The others become two in each group, between its ends and with the same
    first three moments.
    """
    if len(values) <= _MOST_LEVELS:
        return values, counts
    order = np.argpartition(-np.abs(values - values @ counts / counts.sum()), _HEAVIEST)
    heaviest, rest = order[:_HEAVIEST], order[_HEAVIEST:]
    own, times = values[rest], counts[rest]
    least, width = float(own.min()), float(np.ptp(own)) or 1.0
    group = np.minimum((own - least) * (_GROUPS / width), _GROUPS - 1).astype(np.int64)
    size = np.maximum(np.bincount(group, times), 1e-300)
    centre = np.bincount(group, times * own) / size
    own = own - centre[group]
    square = np.maximum(np.bincount(group, times * own**2) / size, 1e-300)
    lean = np.bincount(group, times * own**3) / size / (2.0 * square)
    half = np.sqrt(lean**2 + square)
    upper = size * (half - lean) / (2.0 * half)
    values = np.concatenate([values[heaviest], centre + lean + half, centre + lean - half])
    counts = np.concatenate([counts[heaviest], upper, size - upper])
    kept = counts > 1e-9  # the rest is rounding
    return values[kept], counts[kept]


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

    def slope(place: float) -> float:
        s = 1.0 / (1.0 + math.exp(-place))
        return float((counts * scales / (1.0 - scales * s)).sum()) - 1.0 / s

    totals = counts * scales
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
        path = s + width * (across * (np.cosh(t) - 1.0) + 1j * along * np.sinh(t))
        steps = width * (across * np.sinh(t) + 1j * along * np.cosh(t))
        logs = -(counts[:, None] * np.log1p(-scales[:, None] * path)).sum(axis=0) - np.log(path)
        heights = np.exp(logs) * steps
        chance += _STEP / math.pi * float(heights.imag.sum() - (heights[0].imag / 2.0 if start == 0 else 0.0))
        if float(np.abs(heights).max()) < 1e-18 * chance:
            break
    return min(1.0, max(0.0, chance))
