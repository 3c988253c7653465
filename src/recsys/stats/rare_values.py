"""The mean of values of which few differ from the common one: bounds and p-values that allow for the unseen.

A mean of 1,000 zeros and 3 ones is not normal, and its standard error is that of 3 users: what matters is how
many units differ. If the range of the values is known, Gaffke's bound needs no such assumption. It adds one
unseen unit at the end of the range, gives every unit a random share of the whole, and takes a quantile of the
mean: with independent standard exponentials E, the alpha quantile of

    (sum E_i x_i + E_0 low) / (sum E_i + E_0)

is the lower bound of confidence 1 - alpha. For values of 0 and 1 it is Clopper and Pearson's bound, for
differences of -1, 0 and 1 its p-value of "no gain" is that of the sign test, and for values that are all the
same it is the rule of three times the range: it is never a point. Its level is proved for those, and no
distribution on a known range is known to break it (Gaffke 2005; Learned-Miller and Thomas 2019).

Units are users or clusters. A unit that weighs more has a larger share. The unseen one weighs
sum w^3 / sum w^2, as much as the units that make up the spread: units that weigh more may have other values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recsys.stats.inference_results import (
    Alternative,
    Interval,
    check_alternative,
    check_confidence,
)
from recsys.types import Float

# With fewer units that differ, a mean is not normal however many units there are.
FEW = 20
METHOD = "Gaffke"
# Weighted exponentials of more units with one value are summed as one gamma variable of the same two moments.
_MANY = 50
# Of more units with values of their own, the lighter ones are summed as two, above and below the mean.
_HEAVY = 64
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


def few_differ(values: Float, common: float | None = None, counts: Float | None = None) -> int | None:
    """How many values differ from the common one; None for 20 or more, whose mean is normal enough.

    >>> few_differ(np.repeat([0.0, 1.0], [997, 3])), few_differ(np.repeat([0.0, 1.0], [80, 20]))
    (3, None)
    """
    n = count_differing(values, common, counts)
    return n if n < FEW else None


def mean_p(
    values: Float,
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
    sample = _Sample.of(values, weights, counts)
    above = below = 1.0
    if alternative != "less":
        above = sample.p_above(c, low)
    if alternative != "greater":
        below = sample.negative().p_above(-c, -high)
    return min(1.0, 2.0 * min(above, below)) if alternative == "two-sided" else min(above, below)


def mean_bounds(
    values: Float,
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
    sample = _Sample.of(values, weights, counts)
    least = -math.inf if alternative == "less" else sample.lower_bound(low, alpha)
    most = math.inf if alternative == "greater" else -sample.negative().lower_bound(-high, alpha)
    return Interval(least, most, confidence, METHOD)


def units_needed(
    values: Float,
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
    sample, differing = _Sample.of(values, weights, counts), count_differing(values, counts=counts)
    n = len(values) if counts is None else round(float(counts.sum()))
    if alternative == "two-sided":
        alternative, alpha = "greater" if sample.mean > c else "less", alpha / 2.0
    if alternative == "less":
        sample, c, low = sample.negative(), -c, -high
    if not (sample.mean > c and math.isfinite(low)):
        return None
    step = max(differing, 1)  # whole units that differ, or whole samples where none does

    def is_enough(times: int) -> bool:
        return replace(sample, counts=sample.counts * times / step).p_above(c, low) <= alpha

    few, many = 0, step
    while not is_enough(many):
        few, many = many, 2 * many
        if many > 10**9:
            return None
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if is_enough(middle) else (middle, many)
    return math.ceil(many * n / step)


def lift_bounds(
    first: Float,
    second: Float,
    low: float,
    high: float,
    confidence: float = 0.95,
    *,
    weights: Float | None = None,
    counts: Float | None = None,
) -> Interval:
    """Interval of mean(first) / mean(second) - 1 for paired values of at least 0, `low` to `high`.

    It holds the lifts L at which a mean of 0 of first - (1 + L) second is not rejected, so it excludes 0
    exactly if `mean_bounds` of the differences does. Without a bound where the range is not known. `counts`
    as in `mean_bounds`.
    """
    from scipy.optimize import brentq

    check_confidence(confidence)
    alpha = (1.0 - confidence) / 2.0
    # Pairs of values that are the same are grouped once, as complex numbers, not at every lift.
    pairs = _Sample.of(first + 1j * second, weights, counts)
    base = pairs.mean.imag
    if not (base > 0 and low >= 0 and math.isfinite(high)):
        return Interval(-math.inf, math.inf, confidence, METHOD)
    seen = pairs.mean.real / base  # the ratio, which is 1 plus the lift
    pairs = pairs.ordered(pairs.values.real - seen * pairs.values.imag)

    def p_above(ratio: float) -> float:
        rest = replace(pairs, values=pairs.values.real - ratio * pairs.values.imag)
        return rest.p_above(0.0, low - ratio * high)

    def p_below(ratio: float) -> float:
        rest = replace(pairs, values=ratio * pairs.values.imag - pairs.values.real)
        return rest.p_above(0.0, ratio * low - high)

    least, most = 0.0, max(2.0 * seen, 1.0)
    if seen > 0:
        least = float(brentq(lambda ratio: p_above(ratio) - alpha, 0.0, seen, rtol=1e-9))
    while p_below(most) > alpha:
        most *= 2.0
        if most > 1e12:
            return Interval(least - 1.0, math.inf, confidence, METHOD)
    most = float(brentq(lambda ratio: p_below(ratio) - alpha, seen, most, rtol=1e-9))
    return Interval(least - 1.0, most - 1.0, confidence, METHOD)


def few_differ_words(n_differing: int, n: int, needed: int | None, noun: str = "user") -> str:
    """That nothing can be concluded from so few, and about how many more units it would take.

    >>> few_differ_words(3, 1000, 2000)
    '3 of 1,000 users differ: nothing can be concluded yet; about 1,000 more would be needed'
    >>> few_differ_words(0, 30, None)
    'none of 30 users differs: nothing can be concluded yet'
    """
    words = f"{differing_words(n_differing, n, noun)}: nothing can be concluded yet"
    if needed is None or needed <= n:
        return words
    more = needed - n
    unit = 10 ** max(0, len(str(more)) - 2)
    return f"{words}; about {math.ceil(more / unit) * unit:,} more would be needed"


def differing_words(n_differing: int, n: int, noun: str = "user") -> str:
    """How many of all units differ.

    >>> differing_words(1, 40), differing_words(3, 1000)
    ('1 of 40 users differs', '3 of 1,000 users differ')
    """
    plural = noun if n == 1 else f"{noun}s"
    who = f"{n_differing:,}" if n_differing else "none"
    return f"{who} of {n:,} {plural} {'differ' if n_differing > 1 else 'differs'}"


@dataclass(frozen=True, eq=False)
class _Sample:
    """Values, the weight of a unit that has them, how many such units there are; the unseen unit's weight.

    Those that move the mean most come first.
    """

    values: Float
    weights: Float
    counts: Float
    unseen: float = 1.0

    @staticmethod
    def of(values: Float, weights: Float | None = None, times: Float | None = None) -> _Sample:
        """The sample of values that occur so many `times`, once by default."""
        w = np.ones(len(values)) if weights is None else weights
        c = np.ones(len(values)) if times is None else times
        values, w, c = values[w > 0], w[w > 0], c[w > 0]
        levels, level = np.unique(values, return_inverse=True)
        sizes = np.bincount(level, c)
        many = 0 if weights is None else _MANY
        merged, single = sizes > many, (sizes <= many)[level]
        total, square = np.bincount(level, c * w), np.bincount(level, c * w * w)
        all_values = np.concatenate([levels[merged], values[single]])
        shares = np.concatenate([(square / total)[merged], w[single]])
        counts = np.concatenate([(total**2 / square)[merged], c[single]])
        sample = _Sample(all_values, shares, counts, float(c @ w**3 / (c @ w**2)))
        return sample.ordered(all_values - sample.mean)

    def ordered(self, distances: Float) -> _Sample:
        """The sample with those first that move the mean most, by their distances from it."""
        order = np.argsort(-np.abs(self.weights * distances), kind="stable")
        return replace(
            self, values=self.values[order], weights=self.weights[order], counts=self.counts[order]
        )

    @property
    def mean(self) -> Any:
        totals = self.weights * self.counts
        return (totals * self.values).sum() / totals.sum()

    def negative(self) -> _Sample:
        return replace(self, values=-self.values)

    def p_above(self, c: float, low: float) -> float:
        """P-value of "the mean is at most c": that the mean with random shares is at most c."""
        low = min(low, float(self.values.min()))
        if low == -math.inf:
            return 1.0
        scales, counts = self.weights * (self.values - c), self.counts
        rest, sizes = scales[_HEAVY:], counts[_HEAVY:]
        scales, counts = scales[:_HEAVY], counts[:_HEAVY]
        for side in (rest > 0, rest < 0):
            if side.any():
                total, square = rest[side] @ sizes[side], rest[side] ** 2 @ sizes[side]
                scales, counts = np.append(scales, square / total), np.append(counts, total**2 / square)
        return _chance_not_positive(np.append(scales, self.unseen * (low - c)), np.append(counts, 1.0))

    def lower_bound(self, low: float, alpha: float) -> float:
        from scipy.optimize import brentq

        least, most = float(self.values.min()), float(self.values.max())
        low = min(low, least)
        if low == -math.inf or most <= low:
            return low
        # The bound lies within a few standard errors of the mean; far from it the chance is flat.
        mean, shares = float(self.mean), self.weights * self.counts
        spread = float((self.weights * shares * (self.values - mean) ** 2).sum())
        step = (math.sqrt(spread) + self.unseen * (mean - low)) / float(shares.sum())
        near, far = mean, mean - 2.0 * step
        if self.p_above(near, low) < alpha:
            near = most
        while far > low and self.p_above(far, low) > alpha:
            near, far, step = far, far - 2.0 * step, 2.0 * step
        far = max(far, low)
        step = max(1e-17 * (most - low), math.ulp(0.0))
        return float(brentq(lambda c: self.p_above(c, low) - alpha, far, near, xtol=step, rtol=1e-11))


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
