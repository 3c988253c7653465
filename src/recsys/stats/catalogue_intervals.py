"""Intervals for catalogue metrics (coverage, Gini, entropy …), which are not means over users.

A delete-a-group jackknife over groups of users by hash of their id: exposure counts per group add up across
shards and streams. The estimand is the value expected from a test set of this size drawn from the same users;
a bootstrap over users repeats some of them and so never reaches the coverage that was observed.

The plain jackknife counts an interaction of k groups k times, which matters if many items are shown to a few
users only. The excess is measured between disjoint halves of the groups, which are independent test sets, and
carried to the full size (see `jackknife_plan`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError
from recsys.stats.inference_results import Estimate, t_interval
from recsys.stats.jackknife_plan import Plan, Spread, jackknife_spread, plan_groups
from recsys.types import Float, Int

Statistic = Callable[[Float], float]
Words = npt.NDArray[np.uint64]
ESTIMAND = "the value expected from a test set of this size drawn from the same users"
# With fewer users per group, the groups differ too much to stand for each other.
_MIN_USERS_PER_GROUP = 3
# With fewer degrees of freedom, the variance is too uncertain to trust.
_MIN_DF = 6
# At least one group in this many must change the value by itself.
_MIN_CHANGING_SHARE = 8
# Groups per word of bits, and cells of sets x items per block.
_WORD, _CELLS = 64, 1 << 18


@dataclass(frozen=True, eq=False)
class Jackknife:
    """The values of a metric without each set of groups of a plan; the first set is empty.

    Linear: the difference of two models over the same groups is again a Jackknife.
    """

    made: Float
    sizes: Float
    plan: Plan

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
        return replace(self, made=self.made - other.made)

    def times(self, factor: float) -> Jackknife:
        """All values multiplied by a factor."""
        return replace(self, made=factor * self.made)

    @cached_property
    def spread(self) -> Spread:
        """Variance and degrees of freedom."""
        return jackknife_spread(self.plan, self.made, self.sizes)

    @property
    def df(self) -> float:
        """Degrees of freedom of the variance, by Satterthwaite."""
        return self.spread.df

    def variance(self) -> float:
        """The variance of the value over test sets of this size; NaN if fewer than 3 groups have users."""
        return self.spread.variance

    @property
    def _n_changing(self) -> int:
        """How many groups change the value; few if nearly every item is shown to many users."""
        return int(np.count_nonzero(self.without != self.value))

    def estimate(self, confidence: float = 0.95) -> Estimate:
        """Value, standard error and interval."""
        n = len(self.without)
        notes: tuple[str, ...] = (f"jackknife over {n} groups: estimates {ESTIMAND}",)
        variance = self.variance()
        error = math.sqrt(max(variance, 0.0)) if math.isfinite(variance) else math.nan
        if self.sizes.sum() < _MIN_USERS_PER_GROUP * n:
            notes += (f"fewer than {_MIN_USERS_PER_GROUP * n} users: the interval is rough",)
        interval = replace(t_interval(self.value, error, self.df, confidence), method="jackknife")
        if error == 0:
            consequence = (
                "its interval is a point" if math.isfinite(interval.low) else "too few for an interval"
            )
            notes += (f"no group of users changes it: {consequence}",)
        elif self.df < _MIN_DF or _MIN_CHANGING_SHARE * self._n_changing < n:
            changing = f"{self._n_changing} of {n} groups of users change it"
            notes += (f"{changing}, with {self.df:.0f} degrees of freedom: the interval is rough",)
        return Estimate(self.value, error, interval, n, notes)


def jackknife(without: Callable[[Int], float], sizes: npt.ArrayLike, *, together: bool = True) -> Jackknife:
    """The jackknife of a value that can be computed without some groups.

    Args:
        without: computes the value without an array of groups, which is empty for the full value.
        sizes: the number of users in each group.
        together: whether groups can interact; False for a function of means.
    """
    weights = np.asarray(sizes, dtype=np.float64)
    plan = plan_groups(len(weights), together=together)
    return Jackknife(np.array([float(without(left_out)) for left_out in plan.left_out]), weights, plan)


def catalogue_jackknife(
    exposure: npt.ArrayLike, statistic: Statistic, *, sizes: npt.ArrayLike | None = None
) -> Jackknife:
    """The jackknife of statistic(total exposure), from exposure counts (groups x items)."""
    counts = _check_exposure(exposure)
    total = counts.sum(axis=0)
    return jackknife(
        lambda left_out: statistic(total - counts[left_out].sum(axis=0)), _group_sizes(counts, sizes)
    )


def coverage_jackknife(
    exposure: npt.ArrayLike, *, n_items: int | None = None, sizes: npt.ArrayLike | None = None
) -> Jackknife:
    """The jackknife of the share of the catalogue that was shown, from exposure counts (groups x items)."""
    counts = _check_exposure(exposure)
    group, item = np.nonzero(counts)
    return coverage_jackknife_from_pairs(group, item, n_items or counts.shape[1], _group_sizes(counts, sizes))


def coverage_jackknife_from_pairs(group: Int, item: Int, n_items: int, sizes: npt.ArrayLike) -> Jackknife:
    """The jackknife of coverage from the distinct pairs of group and item that occur.

    Each item has one bit per group that was shown it; without some groups it still counts if a bit is left.
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
    n_shown = [
        np.count_nonzero(_shown_bits(bits, block), axis=1)
        for block in np.split(words, range(sets_per_block, len(words), sets_per_block))
    ]
    return Jackknife(np.concatenate(n_shown) / n_items, weights, plan)


def _shown_bits(bits: Words, kept_groups: Words) -> Words:
    """Sets x items: not 0 if a group that is left was shown the item."""
    shown: Words = bits[0] & kept_groups[:, :1]
    for word in range(1, len(bits)):
        shown |= bits[word] & kept_groups[:, word, None]
    return shown


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


def clip_interval(estimate: Estimate, bounds: tuple[float, float]) -> Estimate:
    """The estimate with its interval clipped to the bounds of the metric."""
    low, high = estimate.interval.low, estimate.interval.high
    clipped = replace(estimate.interval, low=max(bounds[0], low), high=min(bounds[1], high))
    return replace(estimate, interval=clipped)


def _check_exposure(exposure: npt.ArrayLike) -> Float:
    counts = np.asarray(exposure, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] < 4:
        raise InputError(f"exposure must be groups x items with at least 4 groups, got shape {counts.shape}.")
    if not (counts >= 0).all():
        raise InputError("exposure counts must be zero or positive.")
    return counts


def _group_sizes(counts: Float, sizes: npt.ArrayLike | None) -> Float:
    group_sizes = counts.sum(axis=1) if sizes is None else np.asarray(sizes, dtype=np.float64)
    if group_sizes.shape != (len(counts),):
        raise InputError(
            f"sizes must hold one number per group ({len(counts)}), got shape {group_sizes.shape}."
        )
    return group_sizes
