"""Intervals for catalogue metrics (coverage, Gini, entropy …), which are no means over users.

A delete-a-group jackknife over groups of users by hash of their id: exposure counts per group add up across
shards and streams. The estimand is the value expected from a test set of this size drawn from the same users;
a bootstrap over users repeats some of them and so never sees the coverage that was seen.

The plain jackknife counts what k groups bring only together k times, which matters where many items are shown
by a few users only. How much too much that is, is measured between disjoint halves of the groups, which are
independent test sets, and carried to the full size (`leaveout`).
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
from recsys.stats.jackknife_plan import Plan, Spread, plan_of, spread_of
from recsys.types import Float, Int

Statistic = Callable[[Float], float]
Words = npt.NDArray[np.uint64]
ESTIMAND = "the value expected from a test set of this size drawn from the same users"
# Users a group, below which the groups differ too much to stand for each other.
_FEW = 3
# Degrees of freedom, below which a variance is known too badly to trust what is made of it.
_ROUGH = 6
# One group in so many at least must change the number by itself.
_LEAST_CHANGING = 8
# Groups in a word of bits, and cells of sets x items that are looked at at once.
_WORD, _CELLS = 64, 1 << 18


@dataclass(frozen=True, eq=False)
class Jackknife:
    """What a number is without each set of groups of a plan; the first of them is empty.

    Linear: the difference of two models over the same groups is again one.
    """

    made: Float
    sizes: Float
    plan: Plan

    @property
    def value(self) -> float:
        """The number itself."""
        return float(self.made[0])

    @property
    def without(self) -> Float:
        """The number without each group."""
        return self.made[self.plan.whole.ones]

    def __sub__(self, other: Jackknife) -> Jackknife:
        if len(self.without) != len(other.without):
            raise InputError(
                f"the two exposures have {len(self.without)} and {len(other.without)} groups; "
                "they must be the same groups."
            )
        return replace(self, made=self.made - other.made)

    def times(self, factor: float) -> Jackknife:
        """The same in other units."""
        return replace(self, made=factor * self.made)

    @cached_property
    def spread(self) -> Spread:
        """Variance and degrees of freedom."""
        return spread_of(self.plan, self.made, self.sizes)

    @property
    def df(self) -> float:
        """Degrees of freedom of the variance, by Satterthwaite."""
        return self.spread.df

    def variance(self) -> float:
        """Of the number, over test sets of this size; NaN with users in fewer than 3 groups."""
        return self.spread.variance

    @property
    def _n_changing(self) -> int:
        """Groups without which the number is another; few where nearly every item is shown by many."""
        return int(np.count_nonzero(self.without != self.value))

    def estimate(self, confidence: float = 0.95) -> Estimate:
        """Value, standard error and interval."""
        n = len(self.without)
        notes: tuple[str, ...] = (f"jackknife over {n} groups: estimates {ESTIMAND}",)
        variance = self.variance()
        error = math.sqrt(max(variance, 0.0)) if math.isfinite(variance) else math.nan
        if self.sizes.sum() < _FEW * n:
            notes += (f"fewer than {_FEW * n} users: the interval is rough",)
        interval = replace(t_interval(self.value, error, self.df, confidence), method="jackknife")
        if error == 0:
            so = "its interval is a point" if math.isfinite(interval.low) else "too few for an interval"
            notes += (f"no group of users changes it: {so}",)
        elif self.df < _ROUGH or _LEAST_CHANGING * self._n_changing < n:
            changing = f"{self._n_changing} of {n} groups of users change it"
            notes += (f"{changing}, with {self.df:.0f} degrees of freedom: the interval is rough",)
        return Estimate(self.value, error, interval, n, notes)


def jackknife(without: Callable[[Int], float], sizes: npt.ArrayLike, *, together: bool = True) -> Jackknife:
    """Of any value that can be made without some groups: `without(groups)`, an empty array for none.

    `together`: whether some groups can bring something only together; False for a function of means.
    """
    weights = np.asarray(sizes, dtype=np.float64)
    plan = plan_of(len(weights), together=together)
    return Jackknife(np.array([float(without(gone)) for gone in plan.gone]), weights, plan)


def catalogue_jackknife(
    exposure: npt.ArrayLike, statistic: Statistic, *, sizes: npt.ArrayLike | None = None
) -> Jackknife:
    """The jackknife of statistic(total exposure) from exposure counts groups x items."""
    counts = _counts(exposure)
    total = counts.sum(axis=0)
    return jackknife(lambda gone: statistic(total - counts[gone].sum(axis=0)), _sizes(counts, sizes))


def coverage_jackknife(
    exposure: npt.ArrayLike, *, n_items: int | None = None, sizes: npt.ArrayLike | None = None
) -> Jackknife:
    """The jackknife of the share of the catalogue that was shown, from exposure counts groups x items."""
    counts = _counts(exposure)
    group, item = np.nonzero(counts)
    return shown_jackknife(group, item, n_items or counts.shape[1], _sizes(counts, sizes))


def shown_jackknife(group: Int, item: Int, n_items: int, sizes: npt.ArrayLike) -> Jackknife:
    """The same from the pairs of group and item that occur, each once.

    Each item keeps a bit a group that showed it: it is shown without some groups if another bit is left.
    """
    weights = np.asarray(sizes, dtype=np.float64)
    plan = plan_of(len(weights), together=True)
    bits = np.zeros((-(-len(weights) // _WORD), int(item.max(initial=-1)) + 1), dtype=np.uint64)
    np.bitwise_or.at(bits, (group // _WORD, item), np.uint64(1) << (group % _WORD).astype(np.uint64))
    bits = bits[:, bits.any(axis=0)]
    left = np.ones((len(plan.gone), len(bits) * _WORD), dtype=np.uint8)
    for row, gone in zip(left, plan.gone, strict=True):
        row[gone] = 0
    words = np.packbits(left, axis=1, bitorder="little").view("<u8")
    at_once = max(_CELLS // max(bits.shape[1], 1), 1)
    shown = [
        np.count_nonzero(_either(bits, some), axis=1)
        for some in np.split(words, range(at_once, len(words), at_once))
    ]
    return Jackknife(np.concatenate(shown) / n_items, weights, plan)


def _either(bits: Words, left: Words) -> Words:
    """Sets x items: not 0 where a group of the set showed the item."""
    out: Words = bits[0] & left[:, :1]
    for word in range(1, len(bits)):
        out |= bits[word] & left[:, word, None]
    return out


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
    return catalogue_jackknife(exposure, statistic, sizes=sizes).estimate(confidence)


def catalogue_difference(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    statistic: Statistic,
    *,
    sizes: npt.ArrayLike | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """Interval of the difference of a catalogue metric between two models; the same groups go from both."""
    a, b = (catalogue_jackknife(one, statistic, sizes=sizes) for one in (first, second))
    return (a - b).estimate(confidence)


def coverage_interval(
    exposure: npt.ArrayLike,
    *,
    n_items: int | None = None,
    sizes: npt.ArrayLike | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """Interval of the share of the catalogue that was shown, from exposure counts groups x items."""
    return within(coverage_jackknife(exposure, n_items=n_items, sizes=sizes).estimate(confidence), (0.0, 1.0))


def within(found: Estimate, bounds: tuple[float, float]) -> Estimate:
    """The estimate with its interval cut at what the metric can be."""
    low, high = found.interval.low, found.interval.high
    cut = replace(found.interval, low=max(bounds[0], low), high=min(bounds[1], high))
    return replace(found, interval=cut)


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
