"""The delete-a-group jackknife: intervals of catalogue metrics (coverage, Gini, entropy …).

Such metrics are not means over users. Users are put into groups by hash of their id, so that exposure counts
per group add up across shards and streams, and the metric is computed without some groups. The estimand is
the value expected from a test set of this size drawn from the same users; a bootstrap over users repeats some
of them and so never reaches the coverage that was observed.

The plain jackknife counts an interaction of k groups k times (Efron and Stein 1981), which matters if many
items are shown to a few users only. The excess can be measured at half the size: two disjoint halves of the
groups are independent test sets, so half the squared difference of their values has the variance as its
expectation, to all orders. The halves are balanced (McCarthy 1969): for a mean they give exactly the variance
of the jackknife. The excess of the jackknife of a half is carried to the full size in proportion to the
interactions of pairs of groups.

If no group changes the value (everyone sees the same list, or every item is shown to many), there is no
spread to measure, yet other users might change it. With confidence 1 - alpha a test set holds fewer than
-log(alpha) users of a kind that none of its users is of (the rule of three), and the interval is as wide as
so many of them can make it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError, came_as
from recsys.records.arrays import Float, Int, cached_property
from recsys.records.checks import is_whole, to_floats
from recsys.records.facts import Note, note
from recsys.stats.bootstrap import Words
from recsys.stats.results import Estimate, Interval, clip_interval, t_interval

Statistic = Callable[[Float], float]
# With fewer users per group, the groups differ too much to stand for each other.
_MIN_USERS_PER_GROUP = 3
# With fewer degrees of freedom, the variance is too uncertain to trust.
_MIN_DF = 6
# At least one group in this many must change the value by itself.
_MIN_CHANGING_SHARE = 8
# Groups per word of bits, and cells of sets x items per block.
_WORD, _CELLS = 64, 1 << 18
# Each group is left out together with this many others.
_PARTNERS = 2
# With fewer groups that have users, no spread can be measured.
_MIN_GROUPS = 3
# With fewer groups, a half is too small for a jackknife of its own.
_MIN_GROUPS_FOR_HALVES = 16
# The splits whose halves get a jackknife of their own.
_SPLITS_WITH_JACKKNIFE = (1, 38)
# At least so many splits of the groups into halves.
_MIN_SPLITS = 63
# Bounds on the correction, against noise.
_MIN_FACTOR, _MAX_GROWTH = 0.5, 3.0
# Interactions below this share are rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class GroupBlock:
    """Some groups, and the positions of the values without none, one and two of them."""

    groups: Int
    base: int
    ones: slice
    pairs: Int
    twos: slice

    def plain_variance(self, values: Float, sizes: Float) -> float:
        """The variance by the textbook jackknife."""
        n = len(self.groups)
        return _detrended_variance(values[self.ones], sizes[self.groups]) * (n - 1) ** 2 / n

    def variance_shares(self, values: Float, sizes: Float) -> Float:
        """The share of each group in the plain jackknife variance; the shares add up to 1."""
        return _shares_of_squares(_detrended_gaps(values[self.ones], sizes[self.groups]))

    def interaction_variance(self, values: Float, sizes: Float) -> float:
        """The variance due to interactions of pairs of groups: the sum of squares of Efron and Stein's Q."""
        n, without_one = len(self.groups), values[self.ones]
        interactions = (
            n * values[self.base]
            - (n - 1) * without_one[self.pairs].sum(axis=1)
            + (n - 2) * values[self.twos]
        )
        return _detrended_variance(interactions, sizes[self.groups][self.pairs].sum(axis=1)) / 2


@dataclass(frozen=True)
class Plan:
    """The sets of groups to leave out, in the order of the values computed without them."""

    left_out: tuple[Int, ...]
    whole: GroupBlock
    # Splits x groups, 1 for the first half and -1 for the other; none where only single groups are left out.
    signs: Float
    halves: slice
    inside: tuple[GroupBlock, ...]


@cache
def plan_groups(n: int, *, together: bool) -> Plan:
    """The plan for n groups; `together`: whether groups may interact, so that the correction is needed."""
    left_out: list[Int] = [np.empty(0, dtype=np.int64)]
    with_halves = together and n >= _MIN_GROUPS_FOR_HALVES
    whole = _make_block(np.arange(n), 0, left_out, _PARTNERS if with_halves else 0)
    signs = _balanced_splits(n) if with_halves else np.empty((0, n))
    start = len(left_out)
    for row in signs:
        left_out += [np.flatnonzero(row < 0), np.flatnonzero(row > 0)]
    halves = slice(start, len(left_out))
    inside = tuple(
        _make_block(np.flatnonzero(signs[split] == side), start + 2 * split + (side < 0), left_out, _PARTNERS)
        for split in _SPLITS_WITH_JACKKNIFE
        for side in (1, -1)
        if with_halves
    )
    return Plan(tuple(left_out), whole, signs, halves, inside)


def _make_block(groups: Int, base: int, left_out: list[Int], partners: int) -> GroupBlock:
    n, outside = len(groups), left_out[base]
    start = len(left_out)
    left_out += [np.append(outside, group) for group in groups]
    steps = range(1, min(partners, (n - 1) // 2) + 1)
    pairs = np.array([(g, (g + step) % n) for step in steps for g in range(n)], dtype=np.int64).reshape(-1, 2)
    left_out += [np.append(outside, groups[pair]) for pair in pairs]
    return GroupBlock(groups, base, slice(start, start + n), pairs, slice(start + n, len(left_out)))


def _balanced_splits(n: int) -> Float:
    """Splits of n groups into halves; for a power of 2 balanced, from Sylvester's matrix, else random."""
    rng = np.random.default_rng(0)
    if n & (n - 1) == 0:
        rows = np.ones((1, 1))
        while len(rows) < n:
            rows = np.block([[rows, rows], [rows, -rows]])
        # Few splits are repeated with the groups in other orders.
        repeats = [rows[1:, rng.permutation(n)] for _ in range(-(-_MIN_SPLITS // (n - 1)) - 1)]
        return np.concatenate([rows[1:], *repeats])
    side = np.where(np.arange(n) < n // 2, 1.0, -1.0)
    return np.array([rng.permutation(side) for _ in range(_MIN_SPLITS)])


def _overcount_factor(plan: Plan, values: Float, sizes: Float, plain: float) -> tuple[float, Float, float]:
    """How many times too large the plain jackknife is; each group's share in the log variance; other noise.

    Groups that stand out at full size also stand out in the halves, and so cancel from the correction.
    """
    full_shares = plan.whole.variance_shares(values, sizes)
    first, second = values[plan.halves].reshape(-1, 2).T
    gaps = _without_trend(first - second, plan.signs @ sizes)
    halves_variance = float(gaps @ gaps) / (len(gaps) - 1) / 2
    jackknifed = sum(block.plain_variance(values, sizes) for block in plan.inside) / len(plan.inside)
    interaction = sum(block.interaction_variance(values, sizes) for block in plan.inside) / len(plan.inside)
    if not halves_variance > 0 or not jackknifed > 0 or not interaction > _ROUNDING * jackknifed:
        return 1.0, full_shares, 0.0
    # Leaving one of n out gives the variance at n - 1; a power law in the size carries it to n.
    power = 1.0 + float(np.clip(np.log2(plain / jackknifed), -3.0, 3.0))
    n, half = len(sizes), len(plan.inside[0].groups)
    at_half = jackknifed / halves_variance * (half / (half - 1)) ** power
    growth = min(
        plan.whole.interaction_variance(values, sizes) / plain / (interaction / jackknifed), _MAX_GROWTH
    )
    factor = max(1.0 + (at_half - 1.0) * growth, _MIN_FACTOR)
    by_halves = growth * at_half / factor
    # Single groups, at full size and in a half, explain most of the gaps; the rest is independent noise.
    inner_gaps = np.zeros(n)
    for block in plan.inside:
        inner_gaps[block.groups] += _detrended_gaps(values[block.ones], sizes[block.groups])
    group_influence: Float = np.stack([_detrended_gaps(values[plan.whole.ones], sizes), inner_gaps])
    slopes = np.linalg.lstsq(plan.signs @ group_influence.T, gaps, rcond=None)[0]
    explained: Float = slopes @ group_influence
    unexplained = np.var((gaps**2 - (plan.signs @ explained) ** 2) / 2, ddof=1) / (n - 1) / halves_variance**2
    other_noise = by_halves**2 * float(unexplained)
    inner_shares = _shares_of_squares(inner_gaps)
    group_shares = (
        full_shares
        + by_halves * (_shares_of_squares(explained) - inner_shares)
        + (factor - 1.0) / factor * (full_shares - inner_shares)
    )
    # The reciprocal of a noisy number is too large on average: to second order by this much.
    bias = n * float(np.cov(group_shares - full_shares, group_shares)[0, 1]) + other_noise
    return factor * (1.0 + max(bias, 0.0)) / (n / (n - 1)) ** power, group_shares, other_noise


def _detrended_variance(values: Float, sizes: Float) -> float:
    """Variance of the values, minus what the unequal sizes of the groups explain."""
    gaps = _detrended_gaps(values, sizes)
    fitted = 1 if np.ptp(sizes) == 0 else 2
    return float(gaps @ gaps) / max(len(values) - fitted, 1)


def _detrended_gaps(values: Float, sizes: Float) -> Float:
    return _without_trend(values - values.mean(), sizes - sizes.mean())


def _shares_of_squares(gaps: Float) -> Float:
    """Squares of the gaps as shares of their sum."""
    square = gaps**2
    total = float(square.sum())
    return square / total if total > 0 else square


def _without_trend(gaps: Float, trend: Float) -> Float:
    square = float(trend @ trend)
    slope = float(trend @ gaps) / square if square > 0 else 0.0
    return gaps - slope * trend


@dataclass(frozen=True)
class Spread:
    """A variance, and its degrees of freedom."""

    variance: float
    df: float


@dataclass(frozen=True, eq=False)
class Jackknife:
    """The values of a metric without each set of groups of a plan; the first set is empty.

    Linear: the difference of two models over the same groups is again a Jackknife. `rise` and `fall` are how
    much one user unlike all others could change the value; infinite if that is not known.
    """

    made: Float
    sizes: Float
    plan: Plan
    rise: float = math.inf
    fall: float = math.inf

    @property
    def value(self) -> float:
        """The value with all groups."""
        return float(self.made[0])

    @property
    def without(self) -> Float:
        """The values without each single group."""
        return self.made[self.plan.whole.ones]

    def __sub__(self, other: Jackknife) -> Jackknife:
        if len(self.without) != len(other.without):
            raise InputError(
                f"the two exposures have {len(self.without)} and {len(other.without)} groups; "
                "they must be the same groups."
            )
        rise, fall = self.rise + other.fall, self.fall + other.rise
        return replace(self, made=self.made - other.made, rise=rise, fall=fall)

    def times(self, factor: float) -> Jackknife:
        """All values multiplied by a factor."""
        ends = (self.rise, self.fall) if factor >= 0 else (self.fall, self.rise)
        rise, fall = (abs(factor) * end for end in ends)
        return replace(self, made=factor * self.made, rise=rise, fall=fall)

    @property
    def is_constant(self) -> bool:
        """Whether no single group changes the value by more than rounding."""
        return bool((np.abs(self.without - self.value) <= _ROUNDING * abs(self.value)).all())

    @property
    def df(self) -> float:
        """Degrees of freedom of the variance, by Satterthwaite."""
        return self.spread.df

    def variance(self) -> float:
        """The variance of the value over test sets of this size; NaN if fewer than 3 groups have users."""
        return self.spread.variance

    @cached_property
    def spread(self) -> Spread:
        """Variance and degrees of freedom."""
        plan, values, sizes = self.plan, self.made, self.sizes
        n_used = int(np.count_nonzero(sizes))
        max_df = max(n_used - 2, 1)
        if n_used < _MIN_GROUPS:
            # The sizes of so few groups explain everything.
            return Spread(math.nan, float(max_df))
        plain = plan.whole.plain_variance(values, sizes)
        group_shares = plan.whole.variance_shares(values, sizes)
        factor, other_noise = 1.0, 0.0
        if len(plan.signs) and plain > 0 and np.isfinite(values).all():
            factor, group_shares, other_noise = _overcount_factor(plan, values, sizes, plain)
        # Satterthwaite: 2 / df is the squared relative error of the variance, here a sum with one term per
        # group.
        noise = 2.0 / max_df
        if plain > 0:
            noise = max(len(sizes) * float(np.var(group_shares, ddof=1)) + other_noise, noise)
        return Spread(plain / factor, max(2.0 / noise, min(3.0, max_df)))

    def estimate(self, confidence: float = 0.95) -> Estimate:
        """Value, standard error and interval."""
        n = len(self.without)
        notes: tuple[Note, ...] = (note("jackknife", n=n),)
        # Few groups change the value if nearly every item is shown to many users.
        n_changing = int(np.count_nonzero(self.without != self.value))
        variance = self.variance()
        error = math.sqrt(max(variance, 0.0)) if math.isfinite(variance) else math.nan
        if self.sizes.sum() < _MIN_USERS_PER_GROUP * n:
            notes += (note("few_for_groups", n=_MIN_USERS_PER_GROUP * n, so="rough"),)
        interval = replace(t_interval(self.value, error, self.df, confidence), method="jackknife")
        if self.is_constant:
            error, n_unlike = 0.0, -math.log((1.0 - confidence) / 2.0)
            low, high = self.value - n_unlike * self.fall, self.value + n_unlike * self.rise
            interval = Interval(low, high, confidence, "rule of three")
            is_known = math.isfinite(low) and math.isfinite(high)
            notes += (note("constant", so="unlike_users" if is_known else "unknown"),)
        elif self.df < _MIN_DF or _MIN_CHANGING_SHARE * n_changing < n:
            notes += (note("few_groups_change", n_changing=n_changing, n=n, df=self.df, so="rough"),)
        return Estimate(self.value, error, interval, n, notes)


def jackknife(without: Callable[[Int], float], sizes: npt.ArrayLike, *, together: bool = True) -> Jackknife:
    """The jackknife of a value that can be computed without some groups.

    Args:
        without: computes the value without an array of groups, which is empty for the full value.
        sizes: the number of users in each group.
        together: whether groups can interact; False for a function of means.
    """
    weights = to_floats(sizes, "sizes")
    plan = plan_groups(len(weights), together=together)
    return Jackknife(np.array([float(without(left_out)) for left_out in plan.left_out]), weights, plan)


def mean_jackknife(runs: Sequence[Jackknife]) -> Jackknife:
    """The jackknife of the mean over several runs."""
    if not runs:
        raise InputError("a model has no run at all.")
    total = runs[0]
    for run in runs[1:]:
        total -= run.times(-1.0)
    return total if len(runs) == 1 else total.times(1.0 / len(runs))


def catalogue_jackknife(
    exposure: npt.ArrayLike, statistic: Statistic, *, sizes: npt.ArrayLike | None = None
) -> Jackknife:
    """The jackknife of statistic(total exposure), from exposure counts (groups x items)."""
    counts = _check_exposure(exposure)
    if not callable(statistic):
        raise came_as("statistic", statistic, hint="Pass a function.")
    total = counts.sum(axis=0)
    return jackknife(
        lambda left_out: statistic(total - counts[left_out].sum(axis=0)), _group_sizes(counts, sizes)
    )


def coverage_jackknife(
    exposure: npt.ArrayLike, *, n_items: int | None = None, sizes: npt.ArrayLike | None = None
) -> Jackknife:
    """The jackknife of the share of the catalogue that was shown, from exposure counts (groups x items)."""
    counts = _check_exposure(exposure)
    if n_items is not None and not is_whole(n_items, counts.shape[1]):
        raise InputError(
            f"n_items={n_items!r} is not a number of items; at least the {counts.shape[1]} with counts exist."
        )
    group, item = np.nonzero(counts)
    n_users = _group_sizes(counts, sizes)
    n_shown = counts.sum() / n_users.sum() if n_users.sum() > 0 else math.inf
    return coverage_jackknife_from_pairs(group, item, n_items or counts.shape[1], n_users, float(n_shown))


def coverage_jackknife_from_pairs(
    group: Int, item: Int, n_items: int, sizes: npt.ArrayLike, n_shown: float
) -> Jackknife:
    """The jackknife of coverage from the distinct pairs of group and item that occur.

    Each item has one bit per group that was shown it; without some groups it still counts if a bit is left.
    `n_shown` is the number of items that a user is shown.
    """
    weights = np.asarray(sizes, dtype=np.float64)
    plan = plan_groups(len(weights), together=True)
    bits = np.zeros((-(-len(weights) // _WORD), int(item.max(initial=-1)) + 1), dtype=np.uint64)
    np.bitwise_or.at(bits, (group // _WORD, item), np.uint64(1) << (group % _WORD).astype(np.uint64))
    bits = bits[:, bits.any(axis=0)]
    kept_groups = np.ones((len(plan.left_out), len(bits) * _WORD), dtype=np.uint8)
    for row, left_out in zip(kept_groups, plan.left_out, strict=True):
        row[left_out] = 0
    words = np.packbits(kept_groups, axis=1, bitorder="little").view("<u8")
    sets_per_block = max(_CELLS // max(bits.shape[1], 1), 1)
    n_covered = []
    for block in np.split(words, range(sets_per_block, len(words), sets_per_block)):
        # Sets x items: not 0 if a group that is left was shown the item.
        shown: Words = bits[0] & block[:, :1]
        for word in range(1, len(bits)):
            shown |= bits[word] & block[:, word, None]
        n_covered.append(np.count_nonzero(shown, axis=1))
    made, one_list = np.concatenate(n_covered) / n_items, n_shown / n_items
    halves, fall = made[plan.halves], one_list
    if len(halves):
        # More users cover no less, so it falls by no more than in halves, or once in so many if in none.
        fall = min(one_list, max(float(made[0] - halves.min()), one_list / len(halves)))
    return Jackknife(made, weights, plan, one_list, fall)


def catalogue_interval(
    exposure: npt.ArrayLike,
    statistic: Statistic,
    *,
    sizes: npt.ArrayLike | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """Interval of statistic(total exposure), from exposure counts (groups x items).

    `sizes` is the number of users per group (default: the total exposure of each group).
    """
    return catalogue_jackknife(exposure, statistic, sizes=sizes).estimate(confidence)


def catalogue_difference(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    statistic: Statistic,
    *,
    sizes: npt.ArrayLike | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """Interval of the difference of a catalogue metric between two models, leaving out the same groups."""
    a, b = (catalogue_jackknife(one, statistic, sizes=sizes) for one in (first, second))
    return (a - b).estimate(confidence)


def coverage_interval(
    exposure: npt.ArrayLike,
    *,
    n_items: int | None = None,
    sizes: npt.ArrayLike | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """Interval of the share of the catalogue that was shown, from exposure counts (groups x items)."""
    return clip_interval(
        coverage_jackknife(exposure, n_items=n_items, sizes=sizes).estimate(confidence), (0.0, 1.0)
    )


def _check_exposure(exposure: npt.ArrayLike) -> Float:
    counts = to_floats(exposure, "exposure")
    if counts.ndim != 2 or counts.shape[0] < 4:
        raise InputError(f"exposure must be groups x items with at least 4 groups, got shape {counts.shape}.")
    if not (counts >= 0).all():
        raise InputError("exposure counts must be zero or positive.")
    return counts


def _group_sizes(counts: Float, sizes: npt.ArrayLike | None) -> Float:
    group_sizes = counts.sum(axis=1) if sizes is None else to_floats(sizes, "sizes")
    if group_sizes.shape != (len(counts),):
        raise InputError(
            f"sizes must hold one number per group ({len(counts)}), got shape {group_sizes.shape}."
        )
    return group_sizes
