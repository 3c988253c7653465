"""The sign-flip test of a mean, without drawing signs, and the interval of all means that it does not reject.

If the two sides of a pair are exchangeable, each difference is as likely as its opposite: the observed sum is
one of the sums of the same sizes a under random signs. These have the variance sum a^2 and the excess
kurtosis -2 sum a^4 / (sum a^2)^2, as one coordinate of a point on a sphere has in

    m = 3 (sum a^2)^2 / sum a^4 - 2

dimensions (Pearson's type II), whose tail is that of t with m - 1 degrees of freedom. Where all sizes are
multiples of one unit (hits, recall of few items), the sum moves in steps of two units: half a step is taken
off, and the moments have Sheppard's corrections (Kolassa and McCullagh 1990). Where few sizes make up the
variance, the sums of the largest are enumerated, equal sizes by binomial chances, and the rest has the tail
above; of up to 19 units that differ these are all signs.

For many units it tends to the paired t-test, whose variance leaves out the square of the mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from recsys.records.arrays import Float, cached_property
from recsys.stats.results import Alternative, Interval, check_alternative, check_confidence
from recsys.stats.root_finding import crossing
from recsys.stats.samples import Sample

METHOD = "sign flips"
# Two units of fewer than 6 that differ can never reject at 5 %, whatever their size.
ALL_SIGNS = 19
# The tail of so many equal sizes is right to a hundredth of itself; with fewer, the largest are enumerated
# up to so many sums, for an interval up to fewer.
_ENOUGH, _SUMS, _FEWER_SUMS, _LARGEST = 100.0, 1 << 10, 1 << 9, 64
# All fractions with denominators up to 10 are whole numbers of these.
_PARTS = 2520.0
_ROUNDING = 1e-12
_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class SignFlips:
    """The test of a sample."""

    sample: Sample

    @staticmethod
    def of(values: Float | Sample, weights: Float | None = None, counts: Float | None = None) -> SignFlips:
        """The test of the values of units."""
        return SignFlips(Sample.of(values, weights, counts))

    @cached_property
    def unit(self) -> float:
        """The number that all sizes are multiples of, 0 if there is none."""
        return _unit(self.sample.totals)

    def p_value(self, alternative: Alternative = "two-sided") -> float:
        """P-value of a mean of zero.

        >>> SignFlips.of(np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.0])).p_value()
        0.03125
        """
        check_alternative(alternative)
        excess = self.sample.moments.sums(0.0)[0]
        if alternative == "two-sided":
            return min(1.0, 2.0 * self._tail(0.0, abs(excess), ALL_SIGNS))
        return self._tail(0.0, excess if alternative == "greater" else -excess, ALL_SIGNS)

    def interval(
        self, confidence: float = 0.95, alternative: Alternative = "two-sided", reach: float = math.inf
    ) -> Interval:
        """All means that the test does not reject, up to `reach` from zero."""
        check_confidence(confidence)
        alpha = (1.0 - confidence) / (2.0 if alternative == "two-sided" else 1.0)
        low = -math.inf if alternative == "less" else max(self._limit(-1.0, alpha), -reach)
        high = math.inf if alternative == "greater" else min(self._limit(1.0, alpha), reach)
        return Interval(low, high, confidence, METHOD)

    def _limit(self, side: float, alpha: float) -> float:
        """The mean furthest to this side that is not rejected; zero is if its p-value says so."""
        from scipy.special import ndtri

        mean = self.sample.moments.mean

        def excess(c: float) -> float:
            return max(float(ndtri(self._tail(c, abs(self.sample.moments.sums(c)[0])))), -39.0) - height

        height = max(float(ndtri(alpha)), -38.0)
        step = math.sqrt(self.sample.moments.sums(mean)[1]) / self.sample.moments.weight
        if step <= _ROUNDING * abs(mean):  # all units are the same: against another mean all signs agree
            return mean if 0.5**self.sample.n <= alpha else side * math.inf
        far = crossing(excess, mean, mean - min(height, -1.0) * side * step, side * math.inf)
        if side * mean >= 0.0:
            return far
        is_rejected = self._tail(0.0, abs(self.sample.moments.sums(0.0)[0]), ALL_SIGNS) <= alpha
        return -side * max(-side * far, 1e-12 * abs(mean)) if is_rejected else side * max(side * far, 0.0)

    def _tail(self, c: float, excess: float, most: int = 0) -> float:
        """The chance that (total - c weight) under random signs add up to at least `excess`."""
        _, second, _, fourth = self.sample.moments.sums(c)
        if second * second >= _ENOUGH * fourth > 0.0:
            return float(_smooth_tail(np.array([excess]), second, fourth, self.unit)[0])
        own = self._levels
        distances = own.totals - (c if own.weights is None else c * own.weights)
        excess = math.copysign(
            math.fsum((distances * own.times).tolist()), excess
        )  # the same from both sides
        return _enumerated_tail(np.abs(distances), own.times, excess, self.unit, most)

    @cached_property
    def _levels(self) -> Sample:
        """The sample with values that are rounding only as 0, and of equal weights each value once."""
        own = self.sample.distinct if self.sample.weights is None else self.sample
        sizes = np.abs(own.totals)
        return replace(own, values=np.where(sizes > _ROUNDING * sizes.max(initial=0.0), own.values, 0.0))


def _unit(totals: Float) -> float:
    """The greatest number that all sizes are multiples of; 0 unless it is a simple fraction of the least."""
    rounding = _ROUNDING * max(totals.max(initial=0.0), -totals.min(initial=0.0))

    def sizes() -> Iterator[Float]:  # the totals of all users are large
        for start in range(0, len(totals), _BLOCK):
            block = np.abs(totals[start : start + _BLOCK])
            yield block[block > rounding]

    least, unit = min((float(block.min(initial=math.inf)) for block in sizes()), default=math.inf), 0
    if math.isinf(least):
        return 0.0
    for block in sizes():
        parts = block * (_PARTS / least)
        whole = np.rint(parts)
        if np.abs(parts - whole).max(initial=0.0) > 1e-8:
            return 0.0
        unit = math.gcd(unit, int(np.gcd.reduce(whole.astype(np.int64))))
    return float(unit) * least / _PARTS


def _smooth_tail(excess: Float, second: float, fourth: float, unit: float) -> Float:
    """The chance that a sum under random signs with these moments is at least as large."""
    from scipy.special import stdtr

    unit = min(unit, fourth**0.25)  # about another mean than 0 the sum has no steps, and sizes may vanish
    second, fourth = second - unit**2 / 3.0, fourth - unit**4 / 15.0  # Sheppard's corrections
    z = (excess - unit) / math.sqrt(second)
    dimensions = max(3.0 * second * second / fourth - 2.0, 1.5)
    inside = np.maximum(dimensions - z * z, 1e-300)
    return np.asarray(stdtr(dimensions - 1.0, -z * np.sqrt((dimensions - 1.0) / inside)))


def _enumerated_tail(sizes: Float, counts: Float, excess: float, unit: float, most: int) -> float:
    """The same with all sums of the largest sizes, and of all if there are no more than `most`."""
    from scipy.special import binom

    differs = (sizes > _ROUNDING * sizes.max(initial=0.0)) & (counts > 0)
    sizes, counts = sizes[differs], counts[differs]
    limit = _FEWER_SUMS if not most else 2**most if counts.sum() <= most else _SUMS
    n_light = max(len(sizes) - _LARGEST, 0)
    order = np.argpartition(sizes, n_light) if n_light else np.arange(len(sizes))
    heavy, level = np.unique(sizes[order[n_light:]], return_inverse=True)
    left = np.bincount(level, counts[order[n_light:]])
    sums, chances = np.zeros(1), np.ones(1)
    for at in range(len(heavy) - 1, -1, -1):
        n = min(float(left[at]), limit // len(sums) - 1.0)
        if n < 1.0:
            break
        left[at] -= n
        up = np.arange(n + 1.0)
        sums = np.add.outer(sums, heavy[at] * (2.0 * up - n)).ravel()
        chances = np.outer(chances, binom(n, up) * 0.5**n).ravel()
    if n_light or left.any():
        sizes, counts = np.append(sizes[order[:n_light]], heavy), np.append(counts[order[:n_light]], left)
        second, fourth = (float(sizes**power @ counts) for power in (2, 4))
        return float(_smooth_tail(excess - sums, second, fourth, unit) @ chances)
    return float(chances[sums >= excess - _ROUNDING * float(sums.max())].sum())
