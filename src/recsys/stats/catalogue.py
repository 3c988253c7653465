"""Intervals for catalogue metrics (coverage, Gini, entropy …), which are no means over users.

A delete-a-group jackknife over groups of users by hash of their id: exposure counts per group add up across
shards and streams. The estimand is the value expected from a test set of this size drawn from the same users;
a bootstrap over users repeats some of them and so never sees the coverage that was seen.

The plain jackknife counts what two groups bring only together twice (Efron and Stein), which matters where
many items are shown by a few users only. That part is measured by leaving out pairs of groups and taken away.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError
from recsys.stats.outcomes import Estimate, t_interval
from recsys.types import Float, Int

Statistic = Callable[[Float], float]
ESTIMAND = "the value expected from a test set of this size drawn from the same users"
# Each group is left out together with this many others; more would cost more than they tell, and over a large
# catalogue each costs a while.
_PARTNERS, _LARGE = 4, 50_000
# Users a group, below which the groups differ too much to stand for each other.
_FEW = 3
# Groups with users in them, below which nothing is left to measure a spread by.
_FEWEST = 3


@dataclass(frozen=True, eq=False)
class Jackknife:
    """A value, what it is without each group, and what pairs of groups bring only together (None: nothing).

    Linear: the difference of two models over the same groups is again one.
    """

    value: float
    without: Float
    sizes: Float
    together: Float | None = None
    pair_sizes: Float | None = None

    def __sub__(self, other: Jackknife) -> Jackknife:
        if len(self.without) != len(other.without):
            raise InputError(
                f"the two exposures have {len(self.without)} and {len(other.without)} groups; "
                "they must be the same groups."
            )
        together = None
        if self.together is not None and other.together is not None:
            together = self.together - other.together
        return replace(
            self, value=self.value - other.value, without=self.without - other.without, together=together
        )

    def times(self, factor: float) -> Jackknife:
        """The same in other units."""
        together = None if self.together is None else factor * self.together
        return replace(self, value=factor * self.value, without=factor * self.without, together=together)

    @property
    def df(self) -> int:
        """Degrees of freedom of the variance; groups without users bring none."""
        return max(int(np.count_nonzero(self.sizes)) - 2, 1)

    def variance(self) -> float:
        """First order as the jackknife has it, divided by what it counts too often.

        The excess of higher orders alternates; its sum to all orders is that of a geometric series nearly.
        NaN with users in fewer than 3 groups: their sizes explain all there is.
        """
        n = len(self.without)
        if np.count_nonzero(self.sizes) < _FEWEST:
            return math.nan
        plain = _spread(self.without, self.sizes) * (n - 1) / n * (n - 1)
        if self.together is None or self.pair_sizes is None or not plain > 0:
            return plain
        excess = _spread(self.together, self.pair_sizes) * math.comb(n, 2)
        return plain / (1.0 + excess / plain)

    def estimate(self, confidence: float = 0.95) -> Estimate:
        """Value, standard error and interval."""
        n = len(self.without)
        notes: tuple[str, ...] = (f"jackknife over {n} groups: estimates {ESTIMAND}",)
        variance = self.variance()
        error = math.sqrt(max(variance, 0.0)) if math.isfinite(variance) else math.nan
        if self.sizes.sum() < _FEW * n:
            notes += (f"fewer than {_FEW * n} users: the interval is rough",)
        if error == 0:
            notes += ("no group of users changes it: its interval is a point",)
        interval = replace(t_interval(self.value, error, self.df, confidence), method="jackknife")
        return Estimate(self.value, error, interval, n, notes)


def _spread(values: Float, sizes: Float) -> float:
    """Variance of the values, less what only the unequal sizes of the groups explain."""
    gaps = values - values.mean()
    size = sizes - sizes.mean()
    square = float(size @ size)
    fitted = 1
    if square > 0:
        gaps = gaps - size * (float(size @ gaps) / square)
        fitted = 2
    return float(gaps @ gaps) / (len(values) - fitted)


def jackknife(
    without: Callable[[Int], float], sizes: npt.ArrayLike, *, partners: int = _PARTNERS
) -> Jackknife:
    """Of any value that can be made without some groups: `without(groups)`, an empty array for none.

    `partners`: how many pairs each group is in; 0 where no two groups can bring something only together.
    """
    weights = np.asarray(sizes, dtype=np.float64)
    n = len(weights)
    value = float(without(np.empty(0, dtype=np.int64)))
    one = np.array([without(np.array([g])) for g in range(n)])
    if not partners:
        return Jackknife(value, one, weights)
    chosen = _pairs(n, partners)
    two = np.array([without(pair) for pair in chosen])
    # Efron and Stein's Q, for a value that does not grow with the test set; squared, a share of the variance.
    together = n * value - (n - 1) * one[chosen].sum(axis=1) + (n - 2) * two
    return Jackknife(value, one, weights, together / math.sqrt(n * (n - 1.0)), weights[chosen].sum(axis=1))


def partners_for(n_items: int) -> int:
    """How many pairs each group is in for a catalogue of this size."""
    return _PARTNERS if n_items < _LARGE else 1


def _pairs(n: int, partners: int) -> Int:
    """Pairs of groups in which every group occurs equally often."""
    steps = range(1, min(partners, (n - 1) // 2) + 1)
    return np.array([(g, (g + step) % n) for step in steps for g in range(n)])


def catalogue_jackknife(
    exposure: npt.ArrayLike, statistic: Statistic, *, sizes: npt.ArrayLike | None = None
) -> Jackknife:
    """The jackknife of statistic(total exposure) from exposure counts groups x items."""
    counts = _counts(exposure)
    total = counts.sum(axis=0)
    return jackknife(
        lambda gone: statistic(total - counts[gone].sum(axis=0)),
        _sizes(counts, sizes),
        partners=partners_for(counts.shape[1]),
    )


def coverage_jackknife(
    exposure: npt.ArrayLike, *, n_items: int | None = None, sizes: npt.ArrayLike | None = None
) -> Jackknife:
    """The jackknife of the share of the catalogue that was shown, from exposure counts groups x items."""
    counts = _counts(exposure)
    group, item = np.nonzero(counts)
    return shown_jackknife(group, item, n_items or counts.shape[1], _sizes(counts, sizes))


def shown_jackknife(group: Int, item: Int, n_items: int, sizes: npt.ArrayLike) -> Jackknife:
    """The same from the pairs of group and item that occur, each once.

    What is lost without some groups are the items nobody else showed, so every pair of groups is read off
    the items that exactly two groups showed.
    """
    weights = np.asarray(sizes, dtype=np.float64)
    n = len(weights)
    n_showing = np.bincount(item)
    alone = np.bincount(group[n_showing[item] == 1], minlength=n)
    two = np.flatnonzero(n_showing[item] == 2)
    first, second = np.sort(group[two[np.argsort(item[two], kind="stable")]].reshape(-1, 2), axis=1).T
    table = np.bincount(first * n + second, minlength=n * n).reshape(n, n)
    rows, columns = np.triu_indices(n, 1)
    value = np.count_nonzero(n_showing) / n_items
    # A count grows with the test set: the loss of one group is that of a set of n - 1, and is scaled up.
    grown = n / (n - 1) / n_items
    pair_sizes = weights[rows] + weights[columns]
    return Jackknife(value, value - alone * grown, weights, -table[rows, columns] / n_items, pair_sizes)


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
