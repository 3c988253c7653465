"""Sums: what pieces of users add up to, so that means, intervals and quantiles need no rows.

Sums and products of two are exact, by 64 groups of users, so that pieces add up to the same bits in any order
and cut. The histogram of the values has everything else: it is small, because a metric of the first 10 places
has few distinct values. Where it is not (grades, long lists, weights), standard errors come from the sums
alone, and what cannot be told is refused or said.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from recsys.errors import MergeError, NoRowsError
from recsys.kernels.exact_sums import exact_sum
from recsys.records.arrays import Bool, ExactSums, Float, Histogram, Int, PerCase, Sums
from recsys.records.facts import note
from recsys.stats.gaffke import mean_bounds
from recsys.stats.inference_results import Estimate, Interval, SkewWarning, caution, t_interval
from recsys.stats.intervals import Combination, units_interval
from recsys.stats.mean_inference import Method
from recsys.stats.resampling import Units, groups_of
from recsys.stats.samples import Moments, Sample

N_GROUPS = 64
_MOST_DISTINCT = 1 << 16
# A unit that weighs more than this share of all makes the series in powers of its share too short.
_LARGEST_SHARE = 1e-3
_HIGHEST_POWER = 6


class UserGroups:
    """The cases of some rows in the order of 64 groups of users, found once for all their columns."""

    def __init__(self, rows: PerCase, *, whole_users: bool = True) -> None:
        users = rows.ids if rows.clusters is None else rows.clusters
        self.group = groups_of(users, N_GROUPS)
        self.order = np.argsort(self.group.astype(np.uint8), kind="stable")
        self.weights = rows.weights
        self._last: tuple[Bool, Int] | None = None
        self.user: Int | None = None
        if rows.clusters is not None:
            self.user = np.unique(rows.clusters, return_inverse=True)[1]
        self.whole_users = whole_users

    def sums_of(
        self, values: Float, terms: tuple[Float, Float] | None = None, only: Bool | None = None
    ) -> Sums:
        """The sums of one column, whose NaNs are in no mean; `terms` are those that are averaged first."""
        inside = ~np.isnan(values) if only is None else only & ~np.isnan(values)
        if self._last is None or not np.array_equal(
            inside, self._last[0]
        ):  # most columns have the same cases
            self._last = inside, self.order[inside[self.order]]
        at = self._last[1]
        group, value = self.group[at], values[at]
        weight = None if self.weights is None else self.weights[at]
        columns = dict(zip("xy", (value,) if terms is None else (t[at] for t in terms), strict=False))
        if weight is not None:
            columns = {name: column * weight for name, column in columns.items()} | {"w": weight}
        n_cases = np.bincount(group, minlength=N_GROUPS)
        moments = {name: _sums_by_group(column, n_cases) for name, column in columns.items()}
        values_and_weights = [value] if weight is None else [value, weight]
        if self.user is not None:
            columns, group = _units_of_users(columns, self.user[at], group)
            moments.setdefault("w", _sums_by_group(np.ones(len(value)), n_cases))
        sizes = n_units = np.bincount(group, minlength=N_GROUPS)
        if "w" in columns:
            n_units = np.bincount(group[columns["w"] > 0], minlength=N_GROUPS)
        for a, b in itertools.combinations_with_replacement(columns, 2):
            moments[a + b] = _sums_by_group(columns[a] * columns[b], sizes)
        units = histogram_of([*columns.values()])
        extremes = {}
        for name, column in columns.items():
            present = column[column > 0] if name == "w" else column
            extremes[name] = float(present.min(initial=math.inf)), float(present.max(initial=-math.inf))
        return Sums(
            n_cases,
            n_units if self.whole_users or self.user is None else None,
            moments,
            _powers(columns) if units is None else {},
            extremes,
            histogram_of(values_and_weights) if len(columns) > 1 else None,
            units,
        )


def _units_of_users(columns: Mapping[str, Float], user: Int, group: Int) -> tuple[dict[str, Float], Int]:
    """The columns added up by user, with the number of cases as weight if there is none, and their groups."""
    _, first, code = np.unique(user, return_index=True, return_inverse=True)
    order = np.argsort(group[first], kind="stable")  # users in the order of their groups

    def total(column: Float) -> Float:
        sums = np.bincount(code, weights=column, minlength=len(first))
        # Cases of a user that cancel exactly must not leave a rounding error that looks like a difference.
        sums[np.abs(sums) <= 1e-12 * np.bincount(code, weights=np.abs(column), minlength=len(first))] = 0.0
        return np.asarray(sums[order], dtype=np.float64)  # of no cases, bincount makes whole numbers

    units = {name: total(column) for name, column in columns.items()}
    units.setdefault("w", total(np.ones(len(user))))
    return units, group[first][order]


def _sums_by_group(column: Float, sizes: Int) -> ExactSums:
    """The exact sums of consecutive runs of these sizes."""
    ends = np.cumsum(sizes).tolist()
    largest = float(np.abs(column).max(initial=0.0))
    sums = [
        exact_sum(column[start:end], within=largest) for start, end in zip([0, *ends[:-1]], ends, strict=True)
    ]
    shift = max(part.denominator.bit_length() for part in sums) - 1
    return ExactSums(
        tuple(part.numerator << (shift + 1 - part.denominator.bit_length()) for part in sums), shift
    )


def _powers(columns: Mapping[str, Float], counts: Int | None = None) -> dict[str, float]:
    """Sums of higher products: of a value alone, or of up to two values with powers of their weight.

    `counts`: how often each row occurs, once by default.
    """
    names = [name for name in "xy" if name in columns]
    products = [] if "y" in columns else ["xxx", "xxxx", *(["xxxw"] if "w" in columns else [])]
    if "w" in columns:
        products += [
            "".join(product) + "w" * exponent
            for degree in range(3)
            for product in itertools.combinations_with_replacement(names, degree)
            for exponent in range(3 - degree, _HIGHEST_POWER - degree + 1)
        ]
    times: Any = 1.0 if counts is None else counts
    # Not by `@`, which wakes all threads of BLAS for what one adds up as fast.
    return {p: float((math.prod((columns[name] for name in p), start=times)).sum()) for p in products}


def histogram_of(columns: Sequence[Float], most: int = _MOST_DISTINCT) -> Histogram | None:
    """The distinct rows of the columns and how often each occurs; None if there are more than `most`."""
    import pandas as pd

    code, distinct = pd.factorize(columns[0] + 0.0)  # -0.0 is 0.0
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


def add_histograms(parts: Sequence[Histogram | None], most: int = _MOST_DISTINCT) -> Histogram | None:
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
    return None if len(counts) > most else Histogram(rows[is_new], counts)


def add_sums(parts: Sequence[Sums]) -> Sums:
    """The sums over the cases of all parts."""
    first = parts[0]
    for part in parts[1:]:
        if part.moments.keys() != first.moments.keys():
            raise MergeError(
                "some parts have weights, clusters or terms that others lack.",
                hint="Evaluate every part with the same options.",
            )
    n_units = [part.n_units for part in parts if part.n_units is not None]
    units = add_histograms([part.units for part in parts])
    powers: list[Mapping[str, float]] = [{}]
    if units is None:  # as long as there is a histogram, it holds the sums of higher products
        powers = [
            part.powers
            if part.units is None
            else _powers(dict(zip(part.extremes, part.units.rows.T, strict=True)), part.units.counts)
            for part in parts
        ]
    moments = {}
    for name in first.moments:
        exact = [part.moments[name] for part in parts]
        shift = max(one.shift for one in exact)
        shifted = ([number << (shift - one.shift) for number in one.groups] for one in exact)
        moments[name] = ExactSums(tuple(map(sum, zip(*shifted, strict=True))), shift)
    return Sums(
        np.sum([part.n_cases for part in parts], axis=0),
        np.sum(n_units, axis=0) if len(n_units) == len(parts) else None,
        moments,
        {name: math.fsum(of_part[name] for of_part in powers) for name in powers[0]},
        {
            name: (
                min(part.extremes[name][0] for part in parts),
                max(part.extremes[name][1] for part in parts),
            )
            for name in first.extremes
        },
        add_histograms([part.values for part in parts]),
        units,
    )


def _total(sums: Sums, name: str) -> Fraction:
    """An exact sum over all users; the number of units for the weight of units that weigh 1."""
    if name in sums.moments:
        found = sums.moments[name]
        return Fraction(sum(found.groups), 1 << found.shift)
    if set(name) != {"w"}:
        return _total(sums, name.replace("w", ""))
    return Fraction(int(sums.n_cases.sum()))


def mean_from(sums: Sums, name: str = "x") -> float:
    """The mean over the cases, correctly rounded; NaN if there are none, or none that weighs anything."""
    weight = _total(sums, "w")
    return float(_total(sums, name) / weight) if weight else math.nan


def combination_from(sums: Sums, combine: Callable[[float, float], float]) -> Combination:
    """The combination of the means of the two terms."""
    means = [mean_from(sums, name) for name in "xy"]
    fixed = [
        math.isnan(mean) or _square(sums, {name: 1.0}, mean) == 0.0
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
    value, slopes = mean_from(sums), {"x": 1.0}
    centre = value
    if combine is not None:
        combination = combination_from(sums, combine)
        value, slopes = combination.value, dict(zip("xy", combination.slopes, strict=True))
        centre = sum(slope * mean for slope, mean in zip(slopes.values(), combination.means, strict=True))
    if sums.units is None:
        interval = Interval(-math.inf, math.inf, confidence, method)
        estimate = Estimate(value, math.nan, interval, int(sums.n_units.sum()))
        return _interval_from_moments(sums, estimate, slopes, centre, bounds=bounds, method=method)
    columns, counts = sums.units.rows.T, sums.units.counts.astype(np.float64)
    keys = np.zeros(len(counts), dtype=np.uint64)
    weights = columns[-1:] if "w" in sums.extremes else np.ones((1, len(counts)))
    totals = sum((slope * columns[i : i + 1] for i, slope in enumerate(slopes.values())), 0.0 * weights)
    units = Units(keys, totals + (value - centre) * weights, weights, counts)
    if is_ratio:
        ratio = Units(keys, columns[:1], columns[1:2], counts)
        if Sample.row(ratio).n_rare is not None:
            units = ratio
    found = units_interval(units, method=method, confidence=confidence, bounds=bounds, noun=noun)
    return replace(found, value=value)


def _square(sums: Sums, slopes: Mapping[str, float], centre: float, power: int = 0) -> float:
    """The sum over units of w^power times the square of their distance from the centre, along the slopes.

    Squares and products are summed exactly, so nothing cancels; higher powers only correct them.
    """
    parts = [*slopes.items(), ("w", -centre)]
    products = ((a + b, Fraction(s) * Fraction(t)) for (a, s), (b, t) in itertools.product(parts, parts))
    if not power:
        return max(float(sum((_total(sums, _sorted(name)) * f for name, f in products), Fraction(0))), 0.0)
    names = ((_sorted(name) + "w" * power, factor) for name, factor in products)
    return max(math.fsum(sums.powers[name] * float(factor) for name, factor in names), 0.0)


def _sorted(name: str) -> str:
    """A product in the order x, y, w."""
    return "".join(sorted(name, key="xyw".index))


def _interval_from_moments(
    sums: Sums,
    estimate: Estimate,
    slopes: Mapping[str, float],
    centre: float,
    *,
    bounds: tuple[float, float] | None,
    method: Method,
) -> Estimate:
    """The same from sums alone, where there are too many distinct units for a histogram."""
    n, value, weight = estimate.n, estimate.value, float(_total(sums, "w"))
    square, df, notes = _square(sums, slopes, centre), math.inf, []
    error = math.sqrt(square * n / (n - 1.0)) / weight
    lightest, heaviest = sums.extremes.get("w", (1.0, 1.0))
    if method != "normal":
        df = n - 1.0
        if lightest < heaviest:
            if heaviest > _LARGEST_SHARE * weight:
                raise NoRowsError("an interval where one user weighs more than a thousandth of all")
            error, df = _uneven_error(sums, slopes, centre, n, weight)
    if sums.extremes.keys() == {"x"}:
        low, high = sums.extremes["x"]
        share = max(value - low, high - value) ** 2 / square
        powers = [_total(sums, "w"), _total(sums, "x"), _total(sums, "xx")]
        powers += [Fraction(sums.powers["xxx"]), Fraction(sums.powers["xxxx"])]
        # The sum of the fourth powers of the distances from the mean.
        fourth = sum(math.comb(4, k) * Fraction(-value) ** (4 - k) * powers[k] for k in range(5))
        effective = square**2 / float(fourth)
        if share > 0.5 or effective < 10:
            facts = {"share": share, "effective": effective, "n": n, "noun": "value"}
            notes += [caution(SkewWarning, "heavy_tails", **facts, so="too_narrow")]
    else:
        notes += [note("spread_unknown")]
    confidence = estimate.interval.confidence
    interval = t_interval(value, error, df, confidence)
    if (
        method == "gaffke"
        and slopes.keys() == {"x"}
        and bounds is not None
        and all(map(math.isfinite, bounds))
    ):
        sample = Sample(np.array(bounds), None, np.empty(0), known=_moments_from(sums, centre))
        interval = mean_bounds(sample, *bounds, confidence)
    return Estimate(value, error, interval, n, tuple(notes))


def _moments_from(sums: Sums, centre: float) -> Moments:
    """The moments of the units, whose mean is `centre`."""

    def total(n_values: int, n_weights: int) -> float:
        name = "x" * n_values + "w" * (n_weights if "w" in sums.extremes else 0)
        return float(_total(sums, name or "w")) if len(name) <= 2 else sums.powers[name]

    terms = tuple(
        tuple(
            math.comb(r, b)
            * math.fsum(
                math.comb(r - b, j) * (-centre) ** (r - b - j) * total(j, r - j) for j in range(r - b + 1)
            )
            for b in range(r + 1)
        )
        for r in range(1, 5)
    )
    second = _square(sums, {"x": 1.0}, centre)
    return Moments(
        centre, float(_total(sums, "w")), ((0.0, terms[0][1]), (second, *terms[1][1:]), *terms[2:])
    )


def _uneven_error(
    sums: Sums, slopes: Mapping[str, float], centre: float, n: int, weight: float
) -> tuple[float, float]:
    """The jackknife error and its degrees of freedom (see `Units`), as series in shares of the weight."""
    squares = ((j + 1) * _square(sums, slopes, centre, j) / weight**j for j in range(_HIGHEST_POWER - 1))
    error = math.sqrt(math.fsum(squares) * (n - 1) / n) / weight
    share = [1.0, 1.0, float(_total(sums, "ww")) / weight**2]
    share += [sums.powers["w" * k] / weight**k for k in range(3, _HIGHEST_POWER + 1)]
    odds = math.fsum(share[1:])
    second = math.fsum((k - 1) * share[k] for k in range(2, len(share)))
    fourth = math.fsum(math.comb(k - 1, 3) * share[k] for k in range(4, len(share)))
    return error, max(odds**2 / (second + max(second**2 - fourth, 0.0)), 1.0)


def quantiles_from(sums: Sums, levels: Sequence[float]) -> list[float]:
    """The least values that at least these shares of the cases (of their weight) do not exceed.

    Raises:
        NoRowsError: there are too many distinct values to have counted them.
    """
    return quantiles_of(*case_histogram(sums), levels)


def case_histogram(sums: Sums) -> tuple[Float, Float]:
    """The distinct values of the cases, ascending, and how many cases (how much of their weight) have each.

    Raises:
        NoRowsError: there are too many distinct values to have counted them.
    """
    histogram = sums.units if sums.extremes.keys() == {"x"} else sums.values
    if histogram is None:
        raise NoRowsError(f"a quantile of more than {_MOST_DISTINCT:,} distinct values")
    weights = histogram.counts.astype(np.float64)
    if histogram.rows.shape[1] > 1:
        weights *= histogram.rows[:, 1]
    return histogram.rows[:, 0], weights


def quantiles_of(values: Float, weights: Float, levels: Sequence[float]) -> list[float]:
    """The least of ascending values that these shares of the weight do not exceed; NaN without weight.

    >>> quantiles_of(np.array([0.0, 0.5, 1.0]), np.array([2.0, 1.0, 1.0]), [0.25, 0.5, 0.75, 1.0])
    [0.0, 0.0, 0.5, 1.0]
    """
    kept = weights > 0
    values, shares = values[kept], np.cumsum(weights[kept])
    if not len(values):
        return [math.nan for _ in levels]
    # A share that is reached up to rounding is reached.
    at = np.searchsorted(shares, np.asarray(levels) * shares[-1] * (1.0 - 1e-14), side="left")
    return [float(values[min(place, len(values) - 1)]) for place in at.tolist()]
