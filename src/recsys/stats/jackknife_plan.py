"""Which groups of users are left out for a jackknife, and the variance that is read off the values.

The plain jackknife counts what k groups bring only together k times (Efron and Stein 1981). How much too much
that is can be known at half the size: two disjoint halves of the groups are independent test sets, so half
the squared difference of their values has the variance for its expectation, to all orders. The halves are
balanced (McCarthy 1969): of a mean they tell exactly what the jackknife tells. What the jackknife of a half
has beyond that is carried to the full size in proportion to what pairs of groups bring only together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from recsys.types import Float, Int

# Each group is left out together with this many others.
_PARTNERS = 2
# Groups with users in them, below which nothing is left to measure a spread by.
_FEWEST = 3
# Groups, below which a half holds too few to have a jackknife of its own.
_FEWEST_FOR_HALVES = 16
# Splits whose halves have a jackknife of their own.
_INSIDE = (1, 38)
# Bounds of what noise may make of the correction.
_LEAST, _MOST_GROWTH = 0.5, 3.0
# What rounding alone makes of pairs of groups that bring nothing together.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class GroupBlock:
    """Some groups, and where the values without none, one and two of them stand."""

    groups: Int
    base: int
    ones: slice
    pairs: Int
    twos: slice

    def plain(self, values: Float, sizes: Float) -> float:
        """The jackknife as the textbook has it."""
        n = len(self.groups)
        return _spread(values[self.ones], sizes[self.groups]) * (n - 1) ** 2 / n

    def squares(self, values: Float, sizes: Float) -> Float:
        """The part of each group in the plain jackknife; they add up to 1."""
        return _parts(_gaps(values[self.ones], sizes[self.groups]))

    def together(self, values: Float, sizes: Float) -> float:
        """What pairs of groups bring only together: of Efron and Stein's Q, the sum of squares."""
        n, ones = len(self.groups), values[self.ones]
        both = n * values[self.base] - (n - 1) * ones[self.pairs].sum(axis=1) + (n - 2) * values[self.twos]
        return _spread(both, sizes[self.groups][self.pairs].sum(axis=1)) / 2


@dataclass(frozen=True)
class Plan:
    """The sets of groups to leave out, in the order of the values made without them."""

    gone: tuple[Int, ...]
    whole: GroupBlock
    # Splits x groups, 1 for the first half and -1 for the other; none where only single groups are left out.
    signs: Float
    halves: slice
    inside: tuple[GroupBlock, ...]

    def inner_gaps(self, values: Float, sizes: Float) -> Float:
        """What each group does to the half it is in, on average over the splits."""
        out = np.zeros(len(sizes))
        for block in self.inside:
            out[block.groups] += _gaps(values[block.ones], sizes[block.groups])
        return out


@cache
def plan_of(n: int, *, together: bool) -> Plan:
    """The plan for n groups; `together`: whether groups may bring something only together."""
    gone: list[Int] = [np.empty(0, dtype=np.int64)]
    deep = together and n >= _FEWEST_FOR_HALVES
    whole = _block(np.arange(n), 0, gone, _PARTNERS if deep else 0)
    signs = _splits(n) if deep else np.empty((0, n))
    start = len(gone)
    for row in signs:
        gone += [np.flatnonzero(row < 0), np.flatnonzero(row > 0)]
    halves = slice(start, len(gone))
    inside = tuple(
        _block(np.flatnonzero(signs[split] == side), start + 2 * split + (side < 0), gone, _PARTNERS)
        for split in _INSIDE
        for side in (1, -1)
        if deep
    )
    return Plan(tuple(gone), whole, signs, halves, inside)


def _block(groups: Int, base: int, gone: list[Int], partners: int) -> GroupBlock:
    n, out = len(groups), gone[base]
    start = len(gone)
    gone += [np.append(out, group) for group in groups]
    steps = range(1, min(partners, (n - 1) // 2) + 1)
    pairs = np.array([(g, (g + step) % n) for step in steps for g in range(n)], dtype=np.int64).reshape(-1, 2)
    gone += [np.append(out, groups[pair]) for pair in pairs]
    return GroupBlock(groups, base, slice(start, start + n), pairs, slice(start + n, len(gone)))


def _splits(n: int) -> Float:
    """Splits of n groups into halves; for a power of 2 the rows of Sylvester's matrix, which are balanced."""
    if n & (n - 1) == 0:
        rows = np.ones((1, 1))
        while len(rows) < n:
            rows = np.block([[rows, rows], [rows, -rows]])
        return _at_least(rows[1:])
    rng = np.random.default_rng(0)
    side = np.where(np.arange(n) < n // 2, 1.0, -1.0)
    return np.array([rng.permutation(side) for _ in range(63)])


def _at_least(rows: Float, least: int = 63) -> Float:
    """The splits, and where they are few the same ones of the groups in other orders."""
    rng = np.random.default_rng(0)
    more = [rows[:, rng.permutation(rows.shape[1])] for _ in range(-(-least // len(rows)) - 1)]
    return np.concatenate([rows, *more])


@dataclass(frozen=True)
class Spread:
    """A variance, and its degrees of freedom."""

    variance: float
    df: float


def spread_of(plan: Plan, values: Float, sizes: Float) -> Spread:
    """The variance of the value without none, from the values without the sets of the plan.

    NaN with users in fewer than 3 groups: their sizes explain all there is.
    """
    used = int(np.count_nonzero(sizes))
    most = max(used - 2, 1)
    if used < _FEWEST:
        return Spread(math.nan, float(most))
    plain = plan.whole.plain(values, sizes)
    parts = plan.whole.squares(values, sizes)
    over, rest = 1.0, 0.0
    if len(plan.signs) and plain > 0 and np.isfinite(values).all():
        over, parts, rest = _overcount(plan, values, sizes, plain)
    # Satterthwaite: 2 / df is the squared relative error of the variance, here a sum with one part a group.
    noise = max(len(sizes) * float(np.var(parts, ddof=1)) + rest, 2.0 / most) if plain > 0 else 2.0 / most
    return Spread(plain / over, max(2.0 / noise, min(3.0, most)))


def _overcount(plan: Plan, values: Float, sizes: Float, plain: float) -> tuple[float, Float, float]:
    """How many times too large the plain jackknife is; the parts of the groups in log variance, and the rest.

    Groups that stand out at full size stand out in the halves as well, and so cancel from the correction.
    """
    whole = plan.whole.squares(values, sizes)
    first, second = values[plan.halves].reshape(-1, 2).T
    gaps = _without_trend(first - second, plan.signs @ sizes)
    truth = float(gaps @ gaps) / (len(gaps) - 1) / 2
    jackknifed = sum(block.plain(values, sizes) for block in plan.inside) / len(plan.inside)
    paired = sum(block.together(values, sizes) for block in plan.inside) / len(plan.inside)
    if not truth > 0 or not jackknifed > 0 or not paired > _ROUNDING * jackknifed:
        return 1.0, whole, 0.0
    # Leaving one of n out tells of n - 1; a variance that goes with a power of the size is brought to n.
    power = 1.0 + float(np.clip(np.log2(plain / jackknifed), -3.0, 3.0))
    n, half = len(sizes), len(plan.inside[0].groups)
    at_half = jackknifed / truth * (half / (half - 1)) ** power
    growth = min(plan.whole.together(values, sizes) / plain / (paired / jackknifed), _MOST_GROWTH)
    over = max(1.0 + (at_half - 1.0) * growth, _LEAST)
    by_halves = growth * at_half / over
    # What single groups do, at full size and in a half, explains most of the gaps; the rest is noise apart.
    single = np.stack([_gaps(values[plan.whole.ones], sizes), plan.inner_gaps(values, sizes)])
    slopes = np.linalg.lstsq(plan.signs @ single.T, gaps, rcond=None)[0]
    told = slopes @ single
    apart = np.var((gaps**2 - (plan.signs @ told) ** 2) / 2, ddof=1) / (n - 1) / truth**2
    rest = by_halves**2 * float(apart)
    inner = _parts(single[1])
    parts = whole + by_halves * (_parts(told) - inner) + (over - 1.0) / over * (whole - inner)
    # One over something noisy is too large on average: to second order by this much.
    bias = n * float(np.cov(parts - whole, parts)[0, 1]) + rest
    return over * (1.0 + max(bias, 0.0)) / (n / (n - 1)) ** power, parts, rest


def _spread(values: Float, sizes: Float) -> float:
    """Variance of the values, less what only the unequal sizes of the groups explain."""
    gaps = _gaps(values, sizes)
    fitted = 1 if np.ptp(sizes) == 0 else 2
    return float(gaps @ gaps) / max(len(values) - fitted, 1)


def _gaps(values: Float, sizes: Float) -> Float:
    return _without_trend(values - values.mean(), sizes - sizes.mean())


def _parts(gaps: Float) -> Float:
    """Squares as shares of their sum."""
    square = gaps**2
    total = float(square.sum())
    return square / total if total > 0 else square


def _without_trend(gaps: Float, trend: Float) -> Float:
    return gaps - _slope(trend, gaps) * trend


def _slope(trend: Float, gaps: Float) -> float:
    square = float(trend @ trend)
    return float(trend @ gaps) / square if square > 0 else 0.0
