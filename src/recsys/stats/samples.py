"""Samples: the units whose mean is asked for, and all that is derived of them, each computed once.

A unit is a user, or a cluster of cases. Tests, intervals and bounds of a mean look at nothing but a sample,
so they say the same of values in memory, added up piece by piece, or counted by workers. Where units weigh
the same and have at most 65,536 different values, a sample is their histogram, so that sums do not depend on
the order of the units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from recsys.kernels.exact_sums import exact_mean
from recsys.records.arrays import Bool, Float, Histogram, cached_property
from recsys.stats.bootstrap import Units, has_spread, influences

# With fewer units that differ, a mean is not normal however many units there are.
FEW = 20
MOST_DISTINCT = 1 << 16
_BLOCK = 1 << 16
# Of more levels, so many of the heaviest stay as they are, and the others become two levels in each group.
_MOST_LEVELS, _HEAVIEST, _GROUPS = 64, 32, 16


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over units of (total - c weight)^r for r = 1 to 4 and any c.

    `terms[r - 1][b]` is what (mean - c)^b is multiplied with in the sum of r-th powers.
    """

    mean: float
    weight: float
    terms: tuple[tuple[float, ...], ...]

    @staticmethod
    def weighted(totals: Float, weights: Float, times: Float) -> Moments:
        """The moments of units of which each occurs so many times."""
        weight = float((weights * times).sum())  # a product by BLAS would start threads
        mean = float((totals * times).sum()) / weight
        powers, of_weights = [np.ones_like(totals)], [times]
        for _ in range(4):
            powers.append(powers[-1] * (totals - mean * weights))
            of_weights.append(of_weights[-1] * weights)
        terms = tuple(
            tuple(math.comb(r, b) * float((powers[r - b] * of_weights[b]).sum()) for b in range(r + 1))
            for r in range(1, 5)
        )
        return Moments(mean, weight, terms)

    @staticmethod
    def about(mean: float, n: float, second: float, third: float, fourth: float) -> Moments:
        """The moments of units of weight 1, from the powers of their distances from the mean."""
        terms = (
            (0.0, n),
            (second, 0.0, n),
            (third, 3.0 * second, 0.0, n),
            (fourth, 4.0 * third, 6.0 * second, 0.0, n),
        )
        return Moments(mean, n, terms)

    def sums(self, c: float) -> tuple[float, float, float, float]:
        """The sums of the first to the fourth powers."""
        s = self.mean - c
        (a, b), (d, e, f), (g, h, i, j), (k, m, n, o, p) = self.terms
        first, second = a + s * b, d + s * (e + s * f)
        third, fourth = g + s * (h + s * (i + s * j)), k + s * (m + s * (n + s * (o + s * p)))
        return first, max(second, 0.0), third, max(fourth, 0.0)


@dataclass(frozen=True, eq=False)
class Sample:
    """The means of units, how much each weighs (all the same if None) and how many there are of each.

    `counts` is None where each is one unit. `known_mean` is their mean, computed if None.
    """

    values: Float
    weights: Float | None = None
    counts: Float | None = None
    known_mean: float | None = None

    @staticmethod
    def row(units: Units, row: int = 0) -> Sample:
        """The sample of one row of units."""
        totals, weights = units.totals[row], units.weights[row]
        with np.errstate(invalid="ignore", divide="ignore"):
            return Sample.of(totals / weights, weights)

    @staticmethod
    def of(given: Float | Sample, weights: Float | None = None, counts: Float | None = None) -> Sample:
        """The sample of values that occur so often, once by default; those without weight are left out."""
        if isinstance(given, Sample):
            return given
        values = given
        if weights is not None:
            present = weights != 0
            values, weights = given[present], weights[present]
            counts = None if counts is None else counts[present]
            if len(weights) and not bool((weights == weights[0]).all()):
                return Sample(values, weights, counts)
        if counts is not None or not len(values):
            return Sample(values, None, counts)
        return Sample.counted(histogram_of([values]), exact_mean(values), lambda: values)

    @staticmethod
    def counted(levels: Histogram | None, mean: float, values: Callable[[], Float]) -> Sample:
        """The sample of values that were counted, or of the values where they are too many."""
        if levels is None:
            return Sample(values(), known_mean=mean)
        return Sample(levels.rows[:, 0], None, levels.counts.astype(np.float64), known_mean=mean)

    @property
    def times(self) -> Float:
        """How many units have each of the values."""
        return np.ones(len(self.values)) if self.counts is None else self.counts

    def count(self, has: Bool) -> int:
        """How many units are among those that have something."""
        return int(np.count_nonzero(has) if self.counts is None else round(float(self.counts[has].sum())))

    @cached_property
    def n(self) -> int:
        """How many units there are."""
        return len(self.values) if self.counts is None else round(float(self.counts.sum()))

    @cached_property
    def mean(self) -> float:
        if self.known_mean is not None:
            return self.known_mean
        shares = self.times if self.weights is None else self.times * self.weights
        total = float(shares.sum())
        return float((self.values * shares).sum()) / total if total else math.nan

    @property
    def totals(self) -> Float:
        """What each unit adds to the sum whose mean is estimated."""
        return self.values if self.weights is None else self.values * self.weights

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest value."""
        return float(self.values.min()), float(self.values.max())

    @cached_property
    def varies(self) -> bool:
        """Whether the values differ by more than rounding."""
        low, high = self.ends
        return has_spread(np.array([low, high])) and self.largest > 0.0  # weights may be next to nothing

    @cached_property
    def largest(self) -> float:
        """The largest pull."""
        low, high = self.ends
        if self.weights is None:
            return max(high - self.mean, self.mean - low)
        return float(np.abs((self.values - self.mean) * self.weights).max())

    @cached_property
    def powers(self) -> tuple[float, float, float, float]:
        """The sums of the second, third, fourth and sixth powers of the pulls, in units of the largest."""
        parts = []
        for start in range(0, len(self.values), _BLOCK):
            block = slice(start, start + _BLOCK)
            pulls = self.values[block] - self.mean
            if self.weights is not None:
                pulls *= self.weights[block]
            pulls /= self.largest or 1.0
            squares = pulls * pulls
            of_squares = squares if self.counts is None else squares * self.counts[block]
            products = of_squares, of_squares * pulls, of_squares * squares, of_squares * squares * squares
            parts.append([float(product.sum()) for product in products])
        second, third, fourth, sixth = map(math.fsum, zip(*parts, strict=True))
        return second, third, fourth, sixth

    @cached_property
    def moments(self) -> Moments:
        if self.weights is not None:
            return Moments.weighted(self.totals, self.weights, self.times)
        second, third, fourth = (power * self.largest**r for r, power in enumerate(self.powers[:3], 2))
        return Moments.about(self.mean, float(self.n), second, third, fourth)

    @cached_property
    def deviation(self) -> float:
        """The standard deviation (n - 1) of units of equal weight."""
        return self.largest * math.sqrt(self.powers[0] / (self.n - 1)) if self.n > 1 else math.nan

    @cached_property
    def is_uneven(self) -> bool:
        """Whether units weigh more or less than each other; signed ones are the parts of a ratio."""
        return self.weights is not None and bool((self.weights >= 0).all())

    @cached_property
    def weight(self) -> float:
        """The weight of all units."""
        return float(self.n if self.weights is None else (self.times * self.weights).sum())

    @property
    def _pulls(self) -> Float:
        """How far each unit pulls the mean."""
        return self.totals - self.mean * (1.0 if self.weights is None else self.weights)

    @cached_property
    def error(self) -> float:
        """The standard error of the mean; 0 if the values are the same.

        Where weights differ it is that of the jackknife (see `influences`), else s / sqrt(n).
        """
        if self.n < 2 or not self.varies or self.weights is None or not self.is_uneven:
            return self.plain_error
        moved, factor = influences(self._pulls, self.weights, self.weight, self.n)
        return math.sqrt(float((self.times * moved**2).sum()) * factor)

    @cached_property
    def plain_error(self) -> float:
        """The standard error by the delta method, as for a ratio of two sums, whatever the units weigh."""
        if self.n < 2:
            return math.nan
        if not self.varies:
            return 0.0
        if self.weights is None:
            return self.deviation / math.sqrt(self.n)
        squares = float((self.times * self._pulls**2).sum())
        return math.sqrt(squares * self.n / (self.n - 1.0)) / abs(self.weight)

    @cached_property
    def df(self) -> float:
        """The degrees of freedom of the standard error: n - 1 where all units weigh the same.

        Else those of Satterthwaite (1946) for units whose variance grows with their weight: the covariance
        matrix of the influences has the odds w / (W - w) on its diagonal, and minus the product of two odds
        elsewhere; this is the square of its trace over the trace of its square.
        """
        if self.weights is None or not self.is_uneven:
            return self.n - 1.0
        odds = self.weights / np.maximum(self.weight - self.weights, 1e-12 * self.weight)
        trace, squares, fourths = (float((self.times * odds**power).sum()) for power in (1, 2, 4))
        return max(trace**2 / (squares + max(squares**2 - fourths, 0.0)), 1.0)

    @cached_property
    def n_not_zero(self) -> int:
        """How many units have a value that is not zero."""
        return self.count(self.values != 0)

    @cached_property
    def tails(self) -> tuple[float, float, bool]:
        """The largest unit's share of the squares, how many equal ones would spread as much, if few hold it.

        Few do so hardly ever for normal values or those of a bounded metric; the mean is not normal then.
        """
        if not self.varies:
            return 1.0, 1.0, False
        second, _, fourth, _ = self.powers
        share, effective = 1.0 / second, second**2 / max(fourth, 1.0)
        few_hold_it = share > 0.5 or (effective < 10 and self.n_not_zero > 8 * effective)
        return share, effective, self.n_not_zero >= FEW and few_hold_it

    @cached_property
    def differing(self) -> tuple[int, int]:
        """How many units differ from zero, and how many from the value that most have."""
        return count_differing(self.values, 0.0, self.counts), count_differing(self.values, None, self.counts)

    @cached_property
    def is_binary(self) -> bool:
        return bool(np.isin(self.values, (0.0, 1.0)).all())

    @property
    def n_rare(self) -> int | None:
        """How many units differ from the value that most have; None if that is not rare.

        Rare are fewer than 20 units, and fewer than half of them unless all values are 0 or 1.

        >>> Sample.of(np.array([0.0, 0.0, 0.3])).n_rare, Sample.of(np.array([0.1, 0.2, 0.3])).n_rare
        (1, None)
        """
        n = self.differing[1]
        return n if n < FEW and (2 * n < self.n or self.is_binary) else None

    @property
    def few_decide(self) -> bool:
        """Whether most units are the same, and fewer than 20 differ: their mean is not normal."""
        differing = min(self.differing)
        return differing < FEW and 2 * differing < self.n

    def few_are_not_zero(self, fewer_than: int) -> bool:
        """Whether most units are zero, and some but fewer than this are not."""
        return 0 < self.n_not_zero < fewer_than and 2 * self.n_not_zero <= self.n

    def wins_ties_losses(self, dead_zone: float = 0.0) -> tuple[int, int, int]:
        """How many units lie above, in and below the dead zone, whose edge is in it up to rounding.

        >>> Sample.of(np.array([0.3 - 0.2, 0.4 - 0.3, 0.5, -0.2])).wins_ties_losses(0.1)
        (1, 2, 1)
        """
        edge = dead_zone + (1e-12 * max(map(abs, self.ends)) if self.n else 0.0)
        above, below = self.count(self.values > edge), self.count(self.values < -edge)
        return above, self.n - above - below, below

    @cached_property
    def distinct(self) -> Sample:
        """Each value of a weight once, and how many units have it."""
        if self.weights is None and self.counts is not None and (np.diff(self.values) > 0).all():
            return self
        pairs = self.values if self.weights is None else self.values + 1j * self.weights
        found, level = np.unique(pairs, return_inverse=True)
        counts = np.bincount(level.ravel(), self.counts).astype(np.float64)
        weights = None if self.weights is None else found.imag
        return replace(self, values=found.real, weights=weights, counts=counts)

    @cached_property
    def levels(self) -> Sample:
        """The same in at most 64 levels if all units weigh the same (see `few_levels`)."""
        found = self.distinct
        if found.weights is not None:
            return found
        values, counts = few_levels(found.values, found.times)
        return replace(found, values=values, counts=counts)

    @cached_property
    def negative(self) -> Sample:
        """The same with opposite values."""
        mean = None if self.known_mean is None else -self.known_mean
        return replace(self, values=-self.values, known_mean=mean)

    @property
    def unseen(self) -> float:
        """The weight of one more unit, which has not been seen (see `gaffke`)."""
        return self.moments.terms[2][3] / self.moments.terms[1][2]

    @cached_property
    def heights(self) -> dict[float, dict[float, float]]:
        """For each end of the range, how far out in the tail means are, as far as `gaffke` looked."""
        return {}


def linearised(units: Units, row: int = 0, *, plain: bool = False) -> Float:
    """One value per unit present in a row: their mean is the estimate, their s / sqrt(n) its error.

    The error is the `plain_error` of its sample if `plain`, as for a regression on the values, else `error`.
    """
    means, weights = units.means(row), units.weights[row]
    weights = weights[weights != 0]
    if np.all(weights == 1):
        return means
    sample = Sample(means, weights)
    values: Float = sample.mean + (means - sample.mean) * weights / weights.mean()
    if plain or not sample.plain_error > 0 or np.ptp(weights) == 0:
        return values
    return sample.mean + (values - sample.mean) * (sample.error / sample.plain_error)


def count_differing(values: Float, common: float | None = None, counts: Float | None = None) -> int:
    """How many values differ, beyond rounding, from the common one (by default the most frequent).

    A value that fewer than 20 differ from is found for sure; if there is none, the count is only 20 or more.
    `counts`: how often each value occurs, once by default.

    >>> count_differing(np.array([0.0, 0.0, 0.3, -0.3])), count_differing(np.array([0.1, 0.1]), 0.0)
    (2, 2)
    """
    if common is None:
        common = _common_value(values, counts)
    slack = 1e-12 * max(abs(common), values.max(initial=0.0), -values.min(initial=0.0))
    found = 0.0
    for start in range(0, len(values), _BLOCK):  # the values of all users are large
        block = slice(start, start + _BLOCK)
        differs = np.abs(values[block] - common) > slack
        found += np.count_nonzero(differs) if counts is None else float(counts[block][differs].sum())
    return int(found)


def _common_value(values: Float, counts: Float | None = None) -> float:
    """The value that all but fewer than 20 have, if there is one; else any. Rounding makes no difference."""
    some = values if counts is not None else values[: 2 * FEW + 1]  # it has the majority among any 41
    rounded = np.round(some / (np.abs(some).max(initial=0.0) or 1.0), 12)
    _, first, level = np.unique(rounded, return_index=True, return_inverse=True)
    return float(some[first[np.argmax(np.bincount(level, counts))]])


def few_levels(values: Float, counts: Float) -> tuple[Float, Float]:
    """At most 64 values in place of many, and how often each occurs.

    The heaviest stay as they are. The others become two in each group, between its ends and with the same
    first three moments.
    """
    if len(values) <= _MOST_LEVELS:
        return values, counts
    order = np.argpartition(-np.abs(values - (values * counts).sum() / counts.sum()), _HEAVIEST)
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


def histogram_of(columns: Sequence[Float], most: int | None = None) -> Histogram | None:
    """The distinct rows of the columns and how often each occurs; None if there are more than `most`."""
    most = most or MOST_DISTINCT
    if len(columns) == 1:
        values, counts = np.unique(columns[0] + 0.0, return_counts=True)  # -0.0 is 0.0
        return None if len(values) > most else Histogram(values[:, None], counts)
    import pandas as pd

    code, distinct = pd.factorize(columns[0] + 0.0)
    rows = distinct[:, None]
    for column in columns[1:]:
        codes, values = pd.factorize(column + 0.0)
        if max(len(rows), len(values)) > most:
            return None
        code, pairs = pd.factorize(code * max(len(values), 1) + codes)
        rows = np.column_stack([rows[pairs // max(len(values), 1)], values[pairs % max(len(values), 1)]])
    if len(rows) > most:
        return None
    order = np.lexsort(rows.T[::-1])
    return Histogram(rows[order], np.bincount(code, minlength=len(rows))[order])


def add_histograms(parts: Sequence[Histogram | None], most: int | None = None) -> Histogram | None:
    """The histogram of all parts; None if one of them is, or if there are more than `most` distinct rows."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    rows = np.concatenate([part.rows for part in known])
    order = np.lexsort(rows.T[::-1])
    rows = rows[order]
    is_new = np.append(True, (rows[1:] != rows[:-1]).any(axis=1))[: len(rows)]
    counts = np.zeros(int(is_new.sum()), dtype=np.int64)
    np.add.at(counts, np.cumsum(is_new) - 1, np.concatenate([part.counts for part in known])[order])
    return None if len(counts) > (most or MOST_DISTINCT) else Histogram(rows[is_new], counts)
