"""Sums: what pieces of users add up to, so that means, intervals and quantiles need no rows.

Sums and products of two are exact, so that pieces add up to the same bits in any order and cut. The histogram
of the values has everything else: it is small, because a metric of the first 10 places has few distinct
values. Beyond 65,536 of them (grades, long lists, weights) the values per user are read, 8 bytes for each and
8 for its weight; where they were not kept, the sums give the interval of t, and what only the values know is
refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import MergeError, NoRowsError
from recsys.kernels.exact_sums import exact_sum
from recsys.records.arrays import Array, Bool, Float, PerCase, Sums
from recsys.records.facts import note
from recsys.stats.intervals import Combination
from recsys.stats.mean_inference import Method, infer_mean
from recsys.stats.results import Estimate, SkewWarning, caution, t_interval
from recsys.stats.samples import MOST_DISTINCT, Sample, add_histograms, histogram_of

# Where no unit weighs more than this share of all, its weight moves an error by no more than that share.
_LARGEST_SHARE = 1e-3
# Where no unit has more than this share of the squares, at least 10 of them make up the spread.
_SMALL_SHARE_OF_SQUARES = 0.1


def sums_of(
    rows: PerCase,
    values: Float,
    terms: tuple[Float, Float] | None = None,
    only: Bool | None = None,
    *,
    whole_users: bool = True,
) -> Sums:
    """The sums of one column of some rows, whose NaNs are in no mean.

    Args:
        rows: whose weights and clusters are those of the values.
        values: the column.
        terms: those that are averaged first.
        only: which of the cases.
        whole_users: whether no other part has cases of the same users.
    """
    inside = ~np.isnan(values) if only is None else only & ~np.isnan(values)
    at: Any = slice(None) if inside.all() else inside
    value = values[at]
    weight, user = (None if one is None else one[at] for one in (rows.weights, rows.clusters))
    columns = dict(zip("xy", (value,) if terms is None else (t[at] for t in terms), strict=False))
    values_and_weights = [value]
    if weight is not None:
        columns = {name: column * weight for name, column in columns.items()} | {"w": weight}
        values_and_weights.append(weight)
    totals = {name: exact_sum(column) for name, column in columns.items()}
    if user is not None:
        columns = _units_of_users(columns, user)
        totals.setdefault("w", Fraction(len(value)))
    for a, b in itertools.combinations_with_replacement(columns, 2):
        totals[a + b] = exact_sum(columns[a] * columns[b])
    extremes = {}
    for name, column in columns.items():
        present = column[column > 0] if name == "w" else column
        extremes[name] = float(present.min(initial=math.inf)), float(present.max(initial=-math.inf))
    n_units = int(np.count_nonzero(columns["w"] > 0)) if "w" in columns else len(value)
    return Sums(
        len(value),
        n_units if whole_users or user is None else None,
        {name: total.as_integer_ratio() for name, total in totals.items()},
        extremes,
        histogram_of(values_and_weights) if len(columns) > 1 else None,
        histogram_of([*columns.values()]),
    )


def _units_of_users(columns: Mapping[str, Float], users: Array) -> dict[str, Float]:
    """The columns added up by user, with the number of cases as weight if there is none."""
    distinct, code = np.unique(users, return_inverse=True)

    def total(column: Float) -> Float:
        sums = np.bincount(code, weights=column, minlength=len(distinct)).astype(np.float64)
        # Cases of a user that cancel exactly must not leave a rounding error that looks like a difference.
        sums[np.abs(sums) <= 1e-12 * np.bincount(code, np.abs(column), len(distinct))] = 0.0
        return sums

    units = {name: total(column) for name, column in columns.items()}
    units.setdefault("w", total(np.ones(len(users))))
    return units


def add_sums(parts: Sequence[Sums]) -> Sums:
    """The sums over the cases of all parts."""
    first = parts[0]
    for part in parts[1:]:
        if part.totals.keys() != first.totals.keys():
            raise MergeError(
                "some parts have weights, clusters or terms that others lack.",
                hint="Evaluate every part with the same options.",
            )
    n_units = [part.n_units for part in parts if part.n_units is not None]
    return Sums(
        sum(part.n_cases for part in parts),
        sum(n_units) if len(n_units) == len(parts) else None,
        {
            name: sum((Fraction(*part.totals[name]) for part in parts), Fraction(0)).as_integer_ratio()
            for name in first.totals
        },
        {
            name: (
                min(part.extremes[name][0] for part in parts),
                max(part.extremes[name][1] for part in parts),
            )
            for name in first.extremes
        },
        add_histograms([part.values for part in parts]),
        add_histograms([part.units for part in parts]),
    )


def _total(sums: Sums, name: str) -> Fraction:
    """An exact sum over all users; the number of units for the weight of units that weigh 1."""
    if name in sums.totals:
        return Fraction(*sums.totals[name])
    return _total(sums, name.replace("w", "")) if set(name) != {"w"} else Fraction(sums.n_cases)


def mean_from(sums: Sums, name: str = "x") -> float:
    """The mean over the cases, correctly rounded; NaN if there are none, or none that weighs anything."""
    weight = _total(sums, "w")
    return float(_total(sums, name) / weight) if weight else math.nan


def combination_from(sums: Sums, combine: Callable[[float, float], float]) -> Combination:
    """The combination of the means of the two terms."""
    means = [mean_from(sums, name) for name in "xy"]
    fixed = [
        math.isnan(mean) or _squares(sums, {name: 1.0}, mean) == 0.0
        for name, mean in zip("xy", means, strict=True)
    ]
    return Combination.at(combine, means, fixed)


def interval_from(
    sums: Sums,
    combine: Callable[[float, float], float] | None = None,
    *,
    is_ratio: bool = False,
    method: Method = "gaffke",
    confidence: float = 0.95,
    bounds: tuple[float, float] | None = None,
    noun: str = "unit",
) -> Estimate:
    """The estimate and interval that the rows would give.

    Args:
        sums: of the metric.
        combine: what makes one number of the means of two terms; its error follows by the delta method.
        is_ratio: whether `combine` divides the first by the second.
        method: "gaffke", "t" or "normal"; bootstraps need the rows.
        confidence: how often such intervals hold what they estimate.
        bounds: the least and the greatest value of a unit.
        noun: what a unit is called.

    Raises:
        NoRowsError: only the rows could tell.
    """
    if method not in ("gaffke", "t", "normal"):
        raise NoRowsError(f"method={method!r}")
    if sums.n_units is None:
        raise NoRowsError("an interval over users whose cases lie in several pieces")
    whole = None if combine is None else combination_from(sums, combine)
    value = mean_from(sums) if whole is None else whole.value
    if sums.units is None:
        whole = whole or Combination(value, [value], [1.0])
        return _t_estimate(sums, whole, sums.n_units, confidence=confidence, is_normal=method == "normal")
    columns, counts = sums.units.rows.T, sums.units.counts.astype(np.float64)
    weights = columns[-1] if "w" in sums.extremes else np.ones(len(counts))
    with np.errstate(invalid="ignore", divide="ignore"):  # of units that weigh nothing
        terms = columns[:2] / weights
        sample = Sample.of(terms[0] if whole is None else whole.values(*terms), weights, counts)
        if is_ratio and (ratio := Sample.of(columns[0] / columns[1], columns[1], counts)).n_rare is not None:
            sample = ratio
    found = infer_mean(sample, method=method, confidence=confidence, bounds=bounds, noun=noun)
    return replace(found.estimate, value=value)


def _squares(sums: Sums, slopes: Mapping[str, float], centre: float) -> float:
    """The sum over units of the squares of their distances from the centre, along the slopes.

    Squares and products are summed exactly, so nothing cancels.
    """
    parts = [(name, Fraction(slope)) for name, slope in (*slopes.items(), ("w", -centre))]
    products = (
        s * t * _total(sums, "".join(sorted(a + b, key="xyw".index)))
        for (a, s), (b, t) in itertools.product(parts, parts)
    )
    return max(float(sum(products, Fraction(0))), 0.0)


def _t_estimate(sums: Sums, whole: Combination, n: int, *, confidence: float, is_normal: bool) -> Estimate:
    """The interval of t from sums of squares, where the units are too many to have been counted.

    Where weights differ, the jackknife divides the distance r of a unit of weight w by W - w (see `Sample`).
    The largest w stands for all of them, so that errors are too large, by a thousandth at most.
    """
    value, weight = whole.value, float(_total(sums, "w"))
    centre = sum(slope * mean for slope, mean in zip(whole.slopes, whole.means, strict=True))
    squares = _squares(sums, dict(zip("xy", whole.slopes, strict=False)), centre)
    error, df = math.sqrt(squares * n / (n - 1.0)) / weight, math.inf if is_normal else n - 1.0
    lightest, heaviest = sums.extremes.get("w", (1.0, 1.0))
    if lightest < heaviest and not is_normal:
        if heaviest > _LARGEST_SHARE * weight:
            raise NoRowsError("an interval where one user weighs more than a thousandth of all")
        left = weight - heaviest
        odds = float(_total(sums, "ww")) / left**2
        error, df = math.sqrt(squares * (n - 1.0) / n) / left, max(1.0 / (odds + odds**2), 1.0)
    is_caution = False
    if sums.extremes.keys() == {"x"}:
        low, high = sums.extremes["x"]
        is_caution = max(value - low, high - value) ** 2 > _SMALL_SHARE_OF_SQUARES * squares
    notes = (caution(SkewWarning, "spread_unknown") if is_caution else note("spread_unknown"),)
    return Estimate(value, error, t_interval(value, error, df, confidence), n, notes)


class CaseValues(NamedTuple):
    """The values of cases, ascending, and how many cases (how much of their weight) have each."""

    values: Float
    shares: Float
    is_weighted: bool = False

    @staticmethod
    def of(values: Float, weights: Float | None = None) -> CaseValues:
        """Those of a column, without NaN."""
        at = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
        return CaseValues(
            values[at], np.ones(len(at)) if weights is None else weights[at], weights is not None
        )

    @staticmethod
    def of_sums(sums: Sums) -> CaseValues:
        """Those that were counted.

        Raises:
            NoRowsError: there are too many distinct values to have counted them.
        """
        if sums.counted is None:
            raise NoRowsError(f"a quantile of more than {MOST_DISTINCT:,} distinct values")
        columns, counts = sums.counted.rows.T, sums.counted.counts.astype(np.float64)
        is_weighted = len(columns) > 1
        return CaseValues(columns[0], counts * columns[1] if is_weighted else counts, is_weighted)

    def quantiles(self, levels: Sequence[float]) -> list[float]:
        """The least values that these shares of the weight do not exceed; NaN without weight.

        >>> CaseValues(np.array([0.0, 0.5, 1.0]), np.array([2.0, 1.0, 1.0])).quantiles([0.25, 0.5, 0.75, 1.0])
        [0.0, 0.0, 0.5, 1.0]
        """
        kept = self.shares > 0
        values, shares = self.values[kept], np.cumsum(self.shares[kept])
        if not len(values):
            return [math.nan for _ in levels]
        # A share that is reached up to rounding is reached.
        at = np.searchsorted(shares, np.asarray(levels) * shares[-1] * (1.0 - 1e-14), side="left")
        return [float(values[min(place, len(values) - 1)]) for place in at.tolist()]
