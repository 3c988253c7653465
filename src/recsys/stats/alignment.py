"""Align tables to one order of ids, and collapse cases to units.

A unit is what is resampled: a cluster (a user with several cases) or a single case. An estimate is always a
ratio of two sums over units, which covers means with excluded cases, weighted means, clustered means and
ratio metrics. Nothing is dropped silently: the ids that each table lacks are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from recsys.errors import ColumnError, IdTypeError, InputError
from recsys.stats.resampling import Words, unit_keys
from recsys.types import Array, Float, Int, PerCase


@dataclass(frozen=True, eq=False)
class Units:
    """One column per unit, one row per estimate: sum of totals / sum of weights is the estimate."""

    keys: Words
    totals: Float
    weights: Float

    def estimates(self) -> Float:
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio: Float = self.totals.sum(axis=1) / self.weights.sum(axis=1)
        return ratio

    def residuals(self) -> Float:
        """The influence of each unit on the estimate, before scaling; sums to zero."""
        residuals: Float = self.totals - self.estimates()[:, None] * self.weights
        # Residuals that are rounding only count as zero.
        largest = np.abs(self.totals).max(axis=1, initial=0.0)
        residuals[np.abs(residuals).max(axis=1, initial=0.0) <= 1e-12 * largest] = 0.0
        return residuals

    def n_units(self) -> Int:
        counts: Int = np.count_nonzero(self.weights, axis=1).astype(np.int64)
        return counts

    def standard_errors(self) -> Float:
        """Cluster-robust; the textbook s / sqrt(n) when every unit is one case."""
        n = self.n_units()
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.sqrt((self.residuals() ** 2).sum(axis=1) * n / (n - 1.0))
            errors: Float = spread / np.abs(self.weights.sum(axis=1))
        return errors

    def linearised(self, row: int = 0) -> Float:
        """One value per unit present in this row: their mean is the estimate, their s / sqrt(n) its error."""
        present = self.weights[row] != 0
        totals: Float = self.totals[row, present]
        weights: Float = self.weights[row, present]
        if np.all(weights == 1):
            return totals
        estimate = totals.sum() / weights.sum()
        values: Float = estimate + (totals - estimate * weights) / weights.mean()
        return values


def collapse(
    values: Float, clusters: Array | None = None, *, keys: Words, weights: Float | None = None
) -> Units:
    """Units from cases (rows x cases; NaN: not in the mean of that row); `keys` are those of the cases."""
    present = ~np.isnan(values)
    if np.isinf(values).any():
        raise InputError("values must be finite or NaN (excluded), got an infinite one.")
    share = present.astype(np.float64) if weights is None else present * weights
    totals = np.where(present, values, 0.0) * share
    if clusters is None:
        return Units(keys, totals, share)
    labels, codes = np.unique(np.asarray(clusters), return_inverse=True)
    n = len(labels)

    def summed(rows: Float) -> Float:
        return np.stack([np.bincount(codes, weights=row, minlength=n) for row in rows])

    sums = summed(totals)
    # Cases of a unit that cancel exactly must not leave a rounding error that looks like a difference.
    sums[np.abs(sums) <= 1e-12 * summed(np.abs(totals))] = 0.0
    return Units(unit_keys(labels), sums, summed(share))


@dataclass(frozen=True, eq=False)
class Differences:
    """Paired values of two sides; `values` is `first - second`. Cases excluded on either side are left out.

    `spent` counts the degrees of freedom used by covariates and strata the values were adjusted for.
    """

    first: Float
    second: Float
    clusters: Array | None = None
    keys: Words = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    weights: Float | None = None
    notes: tuple[str, ...] = ()
    spent: int = 0

    @property
    def values(self) -> Float:
        return self.first - self.second

    def units(self) -> Units:
        return collapse(self.values[None, :], self.clusters, keys=self.keys, weights=self.weights)

    def unit_means(self) -> Float:
        """The mean difference of each unit, which rank tests use."""
        units = self.units()
        present = units.weights[0] != 0
        means: Float = units.totals[0, present] / units.weights[0, present]
        return means


@dataclass(frozen=True, eq=False)
class Aligned:
    """Tables over the union of their ids; a case that a table lacks is NaN there and listed in `missing`."""

    ids: Array
    tables: Mapping[str, Mapping[str, Float]]
    missing: Mapping[str, Array]
    clusters: Array | None = None
    weights: Float | None = None

    @property
    def users(self) -> Array:
        """The user of each unit, in the order of units."""
        return self.ids if self.clusters is None else np.unique(self.clusters)

    def differences(self, model: str, baseline: str, metric: str) -> Float:
        return self.tables[model][metric] - self.tables[baseline][metric]

    def note(self) -> str:
        """A sentence on the cases each table lacks; empty if none is missing."""
        return describe_missing(self.missing, len(self.ids))


def describe_missing(missing: Mapping[str, Array], n: int) -> str:
    """A sentence on the cases each table lacks; empty if none is missing."""
    parts = [
        f"{name} lacks {len(ids)} (first: {ids.tolist()[0]!r})" for name, ids in missing.items() if len(ids)
    ]
    return f"of {n} cases, " + ", ".join(parts) if parts else ""


def align(tables: Mapping[str, PerCase], metrics: Sequence[str]) -> Aligned:
    """Bring tables to one order of ids; clusters and weights must agree if two tables share a case.

    Raises:
        IdTypeError: if ids are texts in one table and numbers in another.
        ColumnError: if a table lacks a metric.
        InputError: if clusters or weights disagree or are missing in some tables.
    """
    if not tables:
        raise InputError("there is nothing to align: no table was given.")
    kinds = {name: "str" if np.asarray(t.ids).dtype.kind in "OUS" else "int" for name, t in tables.items()}
    if len(set(kinds.values())) > 1:
        raise IdTypeError(f"ids are of different types, so none would match: {kinds}.")
    ids = next(iter(tables.values())).ids
    for table in tables.values():
        if len(table.ids) != len(ids) or not np.array_equal(table.ids, ids):
            ids = np.union1d(ids, table.ids)
    columns: dict[str, dict[str, Float]] = {}
    missing: dict[str, Array] = {}
    for name, table in tables.items():
        positions = np.searchsorted(ids, table.ids)
        columns[name] = {
            metric: _scatter_column(_metric_column(table, name, metric), positions, len(ids))
            for metric in metrics
        }
        is_present = np.zeros(len(ids), dtype=bool)
        is_present[positions] = True
        missing[name] = ids[~is_present]
    clusters = _merge_case_field(tables, ids, "clusters")
    weights = _merge_case_field(tables, ids, "weights")
    return Aligned(ids, columns, missing, clusters, weights)


def _metric_column(table: PerCase, name: str, metric: str) -> Float:
    if metric not in table.columns:
        raise ColumnError(
            f"{name!r} has no metric {metric!r}.",
            table=name,
            column=metric,
            hint=f"It has: {', '.join(table.columns)}.",
        )
    return np.asarray(table.columns[metric], dtype=np.float64)


def _scatter_column(column: Float, positions: npt.NDArray[np.intp], n: int) -> Float:
    if len(column) == n:
        return column
    scattered = np.full(n, np.nan)
    scattered[positions] = column
    return scattered


def _merge_case_field(tables: Mapping[str, PerCase], ids: Array, field: str) -> Array | None:
    values_by_table = {name: getattr(table, field) for name, table in tables.items()}
    if all(value is None for value in values_by_table.values()):
        return None
    merged: Array | None = None
    known = np.zeros(len(ids), dtype=bool)
    for name, value in values_by_table.items():
        if value is None:
            raise InputError(f"{name!r} has no {field} while other tables have.", table=name)
        positions = np.searchsorted(ids, tables[name].ids)
        if merged is None:
            merged = np.empty(len(ids), dtype=np.asarray(value).dtype)
        differs = known[positions] & (merged[positions] != value)
        if differs.any():
            case = tables[name].ids[np.flatnonzero(differs)[0]]
            raise InputError(f"case {case!r} has different {field} in two tables.", table=name, row=case)
        merged[positions] = value
        known[positions] = True
    return merged
