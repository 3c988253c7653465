"""Who is compared with whom: pairs cases by id and collapses them to the units that are resampled.

A unit is a cluster (a user with several cases) or a case of its own. An estimate is always a ratio of two
sums over units, so means with excluded cases, weighted means, clustered means and ratio metrics are one case.
Nothing is dropped in silence: who is missing on which side is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from recsys.errors import ColumnError, IdTypeError, InputError
from recsys.stats.cautions import UnpairedWarning, caution
from recsys.stats.resample import Words, unit_keys
from recsys.types import Array, Float, Int, PerCase


@dataclass(frozen=True, eq=False)
class Units:
    """One column a unit, one row an estimate: totals / weights summed over units is the estimate."""

    keys: Words
    totals: Float
    weights: Float

    def estimates(self) -> Float:
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio: Float = self.totals.sum(axis=1) / self.weights.sum(axis=1)
        return ratio

    def residuals(self) -> Float:
        """What each unit pulls the estimate by, before scaling; sums to zero."""
        rest: Float = self.totals - self.estimates()[:, None] * self.weights
        # A row whose residuals are rounding only has none.
        largest = np.abs(self.totals).max(axis=1, initial=0.0)
        rest[np.abs(rest).max(axis=1, initial=0.0) <= 1e-12 * largest] = 0.0
        return rest

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
        """One value a unit present in this row: their mean is the estimate, their s / sqrt(n) its error."""
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
    """Units from cases (rows x cases; NaN = not in that row's mean); `keys` belong to the cases."""
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
    # Cases that cancel on paper must not leave a last bit that passes for a difference of the unit.
    sums[np.abs(sums) <= 1e-12 * summed(np.abs(totals))] = 0.0
    return Units(unit_keys(labels), sums, summed(share))


@dataclass(frozen=True, eq=False)
class Differences:
    """Paired values of two sides, `first - second`, cases excluded on either side already left out.

    `spent` counts degrees of freedom that went into the values: covariates and strata they were adjusted for.
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
        """One value a unit, its own mean difference: what rank tests look at."""
        units = self.units()
        present = units.weights[0] != 0
        means: Float = units.totals[0, present] / units.weights[0, present]
        return means


def _column(values: npt.ArrayLike, what: str) -> Float:
    try:
        if isinstance(values, np.ma.MaskedArray):
            values = np.ma.filled(values.astype(np.float64), np.nan)
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} must hold numbers, one a user: {error}.") from None
    if array.ndim != 1:
        raise InputError(f"{what} must be one-dimensional, got shape {array.shape}.")
    if np.isinf(array).any():
        raise InputError(f"{what} holds an infinite value.", row=int(np.flatnonzero(np.isinf(array))[0]))
    return array


def pair(
    first: npt.ArrayLike,
    second: npt.ArrayLike | None = None,
    *,
    clusters: npt.ArrayLike | None = None,
    ids: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
) -> Differences:
    """Two arrays in the same order of cases, or ready differences; NaN on either side leaves a pair out.

    Two pandas Series, or two dicts {id: value}, are paired by id, whatever their order.
    """
    by_place = clusters is not None or weights is not None
    first, second, ids, missing = _by_label(first, second, ids, by_place=by_place)
    a = _column(first, "the first sample")
    b = np.zeros_like(a) if second is None else _column(second, "the second sample")
    if len(a) != len(b):
        raise InputError(
            f"paired samples must have equal length, got {len(a)} and {len(b)}.",
            hint="Pair them by id first: compare() does it.",
        )
    keep = ~(np.isnan(a) | np.isnan(b))
    if not keep.any():
        raise InputError(
            "there is no value: the sample is empty or NaN throughout."
            if second is None
            else "no pair is left: one side or the other is empty, NaN or missing for every case."
        )
    lost = int(len(a) - keep.sum()) - sum(len(gone) for gone in missing.values())
    what = "values left out: NaN" if second is None else "pairs left out: NaN on one side or both"
    notes: tuple[str, ...] = (caution(UnpairedWarning, f"{lost} of {len(a)} {what}"),) if lost > 0 else ()
    if any(len(gone) for gone in missing.values()):
        notes += (caution(UnpairedWarning, _absent(missing, len(a))),)
    where = None if clusters is None else _beside(clusters, len(a), "clusters")[keep]
    names = np.arange(len(a)) if ids is None else _beside(ids, len(a), "ids")
    keys = unit_keys(names[keep])
    if where is None and ids is not None and len(np.unique(keys)) < len(keys):
        raise InputError("an id occurs more than once.", hint="Say whose cases they are: clusters=.")
    share = None if weights is None else _beside(weights, len(a), "weights").astype(np.float64)[keep]
    if share is not None and not (np.isfinite(share).all() and (share >= 0).all() and share.any()):
        raise InputError("weights must be finite numbers of at least 0, and not all 0.")
    return Differences(a[keep], b[keep], where, keys, share, notes)


def _beside(given: npt.ArrayLike, n: int, what: str) -> Array:
    """What goes by place beside the sample: one a case."""
    array = np.asarray(given)
    if array.shape != (n,):
        raise InputError(f"{what} must hold one a case ({n}), got shape {array.shape}.")
    return array


def _by_label(
    first: Any, second: Any, ids: npt.ArrayLike | None, *, by_place: bool
) -> tuple[Any, Any, npt.ArrayLike | None, Mapping[str, Array]]:
    """Samples that carry ids in one order of ids, and who is missing on which side; others as they are."""
    if _ids_of(first) is None or (second is not None and _ids_of(second) is None):
        # Ids on one side only cannot pair anybody: places do, so nothing may be put in another order.
        return _as_given(first), _as_given(second), ids, {}
    a, b = _labelled(first, "the first sample"), _labelled(second, "the second sample")
    if a is None or b is None or _same_order(first, second):
        return _as_given(first), None if second is None else _as_given(second), _ids_of(first), {}
    if by_place:
        raise InputError(
            "the two samples are paired by id, clusters and weights go by place.",
            hint="Bring both samples to one order first: second.loc[first.index].",
        )
    found = align({"the first sample": a, "the second sample": b}, [""])
    return *(table[""] for table in found.tables.values()), found.ids, found.missing  # type: ignore[return-value]


def _as_given(sample: Any) -> Any:
    """The values in the order they came in."""
    if isinstance(sample, Mapping):
        return list(sample.values())
    return sample if _ids_of(sample) is None else sample.to_numpy(dtype=np.float64, na_value=np.nan)


def _ids_of(sample: Any) -> Array | None:
    """The ids of a Series or a dict, in their order."""
    if isinstance(sample, Mapping):
        return np.asarray(list(sample))
    if hasattr(sample, "index") and hasattr(sample, "to_numpy"):
        return np.asarray(sample.index.to_numpy())
    return None


def _same_order(first: Any, second: Any) -> bool:
    a, b = _ids_of(first), _ids_of(second)
    return a is not None and b is not None and np.array_equal(a, b)


def _labelled(sample: Any, what: str) -> PerCase | None:
    """A Series or a dict as a table by id; None for values without ids."""
    labels = _ids_of(sample)
    if labels is None:
        return None
    if isinstance(sample, Mapping):
        values = np.asarray(list(sample.values()), dtype=np.float64)
    else:
        values = sample.to_numpy(dtype=np.float64, na_value=np.nan)
    order = np.argsort(labels, kind="stable")
    labels = labels[order]
    twice = np.flatnonzero(labels[1:] == labels[:-1])
    if len(twice):
        name = labels[twice].tolist()[0]
        raise InputError(f"{what} names {name!r} more than once.", row=name)
    return PerCase(labels, {"": values[order]})


def tables_of(samples: Mapping[str, Any], name: str) -> dict[str, PerCase]:
    """Samples of several models as tables with one column: by id where all carry ids, else by place."""
    labelled = {model: _labelled(sample, f"{model!r}") for model, sample in samples.items()}
    if None not in labelled.values():
        return {m: PerCase(t.ids, {name: t.columns[""]}) for m, t in labelled.items() if t is not None}
    found = {model: _column(_as_given(sample), f"{model!r}") for model, sample in samples.items()}
    sizes = {model: len(values) for model, values in found.items()}
    if len(set(sizes.values())) > 1:
        raise InputError(
            f"samples without ids must have equal length, got {sizes}.", hint="Pass Series or dicts by user."
        )
    return {model: PerCase(np.arange(len(values)), {name: values}) for model, values in found.items()}


def as_differences(differences: Differences | npt.ArrayLike) -> Differences:
    """Differences as they are, or made of plain numbers, one a unit."""
    return differences if isinstance(differences, Differences) else pair(differences)


@dataclass(frozen=True, eq=False)
class Aligned:
    """Tables over the union of their ids; a case a table does not have is NaN there and named in missing."""

    ids: Array
    tables: Mapping[str, Mapping[str, Float]]
    missing: Mapping[str, Array]
    clusters: Array | None = None
    weights: Float | None = None

    @property
    def users(self) -> Array:
        """Whom the units stand for, in their order."""
        return self.ids if self.clusters is None else np.unique(self.clusters)

    def differences(self, model: str, baseline: str, metric: str) -> Float:
        return self.tables[model][metric] - self.tables[baseline][metric]

    def note(self) -> str:
        """Who is missing where, in words; empty when nobody is."""
        return _absent(self.missing, len(self.ids))


def _absent(missing: Mapping[str, Array], n: int) -> str:
    parts = [
        f"{name} lacks {len(gone)} (first: {gone.tolist()[0]!r})"
        for name, gone in missing.items()
        if len(gone)
    ]
    return f"of {n} cases, " + ", ".join(parts) if parts else ""


def align(tables: Mapping[str, PerCase], metrics: Sequence[str]) -> Aligned:
    """Bring tables to one order of ids; clusters and weights must agree where two tables share a case."""
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
        place = np.searchsorted(ids, table.ids)
        columns[name] = {metric: _spread(_take(table, name, metric), place, len(ids)) for metric in metrics}
        here = np.zeros(len(ids), dtype=bool)
        here[place] = True
        missing[name] = ids[~here]
    clusters = _agreed(tables, ids, "clusters")
    weights = _agreed(tables, ids, "weights")
    return Aligned(ids, columns, missing, clusters, weights)


def _take(table: PerCase, name: str, metric: str) -> Float:
    if metric not in table.columns:
        raise ColumnError(
            f"{name!r} has no metric {metric!r}.",
            table=name,
            column=metric,
            hint=f"It has: {', '.join(table.columns)}.",
        )
    return np.asarray(table.columns[metric], dtype=np.float64)


def _spread(column: Float, place: npt.NDArray[np.intp], n: int) -> Float:
    if len(column) == n:
        return column
    spread = np.full(n, np.nan)
    spread[place] = column
    return spread


def _agreed(tables: Mapping[str, PerCase], ids: Array, what: str) -> Array | None:
    given = {name: getattr(table, what) for name, table in tables.items()}
    if all(value is None for value in given.values()):
        return None
    merged: Array | None = None
    known = np.zeros(len(ids), dtype=bool)
    for name, value in given.items():
        if value is None:
            raise InputError(f"{name!r} has no {what} while other tables have.", table=name)
        place = np.searchsorted(ids, tables[name].ids)
        if merged is None:
            merged = np.empty(len(ids), dtype=np.asarray(value).dtype)
        clash = known[place] & (merged[place] != value)
        if clash.any():
            case = tables[name].ids[np.flatnonzero(clash)[0]]
            raise InputError(f"case {case!r} has different {what} in two tables.", table=name, row=case)
        merged[place] = value
        known[place] = True
    return merged
