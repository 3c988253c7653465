"""Pair cases by id: tables brought to one order of ids, and two samples as paired differences.

Arrays are paired by position; Series, dicts and tables by id. Nothing is dropped silently: the ids that each
table lacks are kept, and cases that are NaN or missing on one side are left out with a warning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recsys.errors import ColumnError, IdTypeError, InputError, Phrase
from recsys.kernels.exact_sums import exact_sum
from recsys.records.arrays import Array, Bool, Float, Histogram, PerCase, cached_property
from recsys.records.checks import to_floats
from recsys.records.facts import Note, note
from recsys.stats.bootstrap import Units, Words, collapse, influences, unit_keys
from recsys.stats.results import UnpairedWarning, caution
from recsys.stats.samples import Sample, add_histograms, histogram_of


class Sides(NamedTuple):
    """The means of both sides; their variances: of the first, of both, of the second."""

    first: float
    second: float
    variances: tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class PairSums:
    """What pairs of weight 1 add up to: exact sums, ends, and the distinct differences if they are not many.

    `sums` are those of either side and of the differences, and the squares and products (aa, ab, bb) of the
    distances from `centres`, numbers close to the means of both sides. Where there are more than 65,536
    distinct differences, `read` gives all of them, in the order of the users.
    """

    n_cases: int
    centres: tuple[float, float]
    sums: Mapping[str, Fraction]
    ends: Mapping[str, tuple[float, float]]
    levels: Histogram | None
    n_unpaired: int = 0
    notes: tuple[Note, ...] = ()
    spent: None = None
    read: Callable[[], Float] = tuple  # type: ignore[assignment]

    @staticmethod
    def of(
        first: Float, second: Float, centres: tuple[float, float] = (0.0, 0.0), *, counts: bool = True
    ) -> PairSums:
        """The sums of pairs, of which both sides have a value; `counts`: whether differences are counted."""
        difference = first - second
        if not np.isfinite(difference).all():
            raise InputError("values must be finite or NaN (excluded), got an infinite one.")
        a, b = first - centres[0], second - centres[1]
        columns = {"first": first, "second": second, "difference": difference}
        ends = {
            name: (float(column.min(initial=math.inf)), float(column.max(initial=-math.inf)))
            for name, column in columns.items()
        }
        columns |= {"a": a, "b": b, "aa": a * a, "ab": a * b, "bb": b * b}
        sums = {name: exact_sum(column) for name, column in columns.items()}
        return PairSums(len(first), centres, sums, ends, histogram_of([difference]) if counts else None)

    @staticmethod
    def total(parts: Sequence[PairSums]) -> PairSums:
        """The sums over all parts, which have the same centres."""
        return PairSums(
            sum(part.n_cases for part in parts),
            parts[0].centres,
            {name: sum((p.sums[name] for p in parts), Fraction(0)) for name in parts[0].sums},
            {
                name: (min(p.ends[name][0] for p in parts), max(p.ends[name][1] for p in parts))
                for name in parts[0].ends
            },
            add_histograms([part.levels for part in parts]),
            sum(part.n_unpaired for part in parts),
        )

    @cached_property
    def sample(self) -> Sample:
        """The differences, which are read where they are too many to be kept."""
        return Sample.counted(self.levels, float(self.sums["difference"] / self.n_cases), self.read)

    def side_estimates(self) -> Sides:
        """The means of both sides, and the variances of these means."""
        n, sums = self.n_cases, self.sums
        first, second = (float(sums[name] / n) for name in ("first", "second"))
        variances = {}
        for a, b in ("aa", "ab", "bb"):
            square = float(sums[a + b] - sums[a] * sums[b] / n)
            variances[a + b] = square / n / (n - 1) if n > 1 else math.nan
        for name, mean, gone in (("first", first, ("aa", "ab")), ("second", second, ("bb", "ab"))):
            least, most = self.ends[name]
            if max(most - mean, mean - least) <= 1e-12 * max(abs(least), abs(most)):  # rounding only
                variances |= dict.fromkeys(gone, variances[gone[0]] * 0.0)
        return Sides(first, second, (variances["aa"], variances["ab"], variances["bb"]))

    def ends_seen(self) -> tuple[float, float]:
        """The least and the greatest value of either side."""
        lows, highs = zip(self.ends["first"], self.ends["second"], strict=True)
        return min(lows), max(highs)


@dataclass(frozen=True, eq=False)
class Differences:
    """Paired values of two sides; `values` is `first - second`. Cases excluded on either side are left out.

    `spent` counts the degrees of freedom used by covariates and strata the values were adjusted for, if any.
    """

    first: Float
    second: Float
    clusters: Array | None = None
    keys: Words = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    weights: Float | None = None
    notes: tuple[Note, ...] = ()
    spent: int | None = None

    @property
    def values(self) -> Float:
        return self.first - self.second

    @cached_property
    def units(self) -> Units:
        return self._units_of(self.values[None, :])

    @cached_property
    def sides(self) -> Units:
        """Both sides over the same units: row 0 is the first, row 1 the second."""
        return self._units_of(np.stack([self.first, self.second]))

    def _units_of(self, values: Float) -> Units:
        if self.clusters is None and self.weights is None and np.isfinite(values).all():
            return Units(self.keys, values, np.ones_like(values))
        return collapse(values, self.clusters, keys=self.keys, weights=self.weights)

    @property
    def n_cases(self) -> int:
        return len(self.first)

    @cached_property
    def sums(self) -> PairSums | None:
        """What the pairs add up to if all of them have weight 1."""
        if self.clusters is None and self.weights is None and np.isfinite(self.values).all():
            centres = float(self.first.mean()), float(self.second.mean())
            return replace(PairSums.of(self.first, self.second, centres), read=lambda: self.values)
        return None

    @cached_property
    def sample(self) -> Sample:
        """The differences of units, of which tests see nothing else."""
        return Sample.row(self.units) if self.sums is None else self.sums.sample

    def side_estimates(self) -> Sides:
        """The means of both sides, and the variances of these means."""
        return side_estimates(self.sides) if self.sums is None else self.sums.side_estimates()

    def ends_seen(self) -> tuple[float, float]:
        """The least and the greatest value of either side."""
        sides = self.first, self.second
        return min(float(side.min()) for side in sides), max(float(side.max()) for side in sides)


Paired = Differences | PairSums


def as_paired(differences: Paired | npt.ArrayLike) -> Paired:
    """Pairs unchanged, or made from plain numbers, one per unit."""
    return differences if isinstance(differences, Differences | PairSums) else pair(differences)


def side_estimates(sides: Units) -> Sides:
    """The means of two rows of units, with the covariance of the pairs."""
    value, baseline_value = (float(mean) for mean in sides.estimates())
    weights = sides.weights[0]
    moved, factor = influences(sides.residuals, weights, float(weights.sum()), int(sides.n_units[0]))
    of_model, of_baseline = moved
    variance, covariance, base_variance = (
        factor * float((one * other).sum())  # a product by BLAS would start threads
        for one, other in ((of_model, of_model), (of_model, of_baseline), (of_baseline, of_baseline))
    )
    return Sides(value, baseline_value, (variance, covariance, base_variance))


@dataclass(frozen=True, eq=False)
class Aligned:
    """Tables over the union of their ids; a case that a table lacks is NaN there and listed in `missing`."""

    ids: Array
    tables: Mapping[str, Mapping[str, Float]]
    missing: Mapping[str, Array]
    clusters: Array | None = None
    weights: Float | None = None

    @cached_property
    def keys(self) -> Words:
        """The keys of the cases."""
        return unit_keys(self.ids)

    @property
    def users(self) -> Array:
        """The user of each unit, in the order of units."""
        return self.ids if self.clusters is None else np.unique(self.clusters)

    def differences(self, model: str, baseline: str, metric: str) -> Float:
        return self.tables[model][metric] - self.tables[baseline][metric]

    def pair(self, triple: tuple[str, str, str], among: Bool | None = None) -> Differences:
        """The pairs of model, baseline and metric, of all cases or of some."""
        has_both, n_unpaired = self.paired(*triple)
        has_both = has_both if among is None else has_both & among
        both = slice(None) if has_both.all() else has_both
        first, second = (self.tables[name][triple[2]][both] for name in triple[:2])
        clusters = None if self.clusters is None else self.clusters[both]
        weights = None if self.weights is None else self.weights[both]
        return Differences(first, second, clusters, self.keys[both], weights, unpaired_notes(n_unpaired))

    def paired(self, model: str, baseline: str, metric: str) -> tuple[Bool, int]:
        """The cases that both have a value for, and how many only one of the two has."""
        has_value, has_baseline = (~np.isnan(self.tables[name][metric]) for name in (model, baseline))
        return has_value & has_baseline, int(np.count_nonzero(has_value != has_baseline))

    def units(self, rows: Float, kept: Bool) -> Units:
        """The units of rows with one value per case, of the cases that are kept."""
        clusters = None if self.clusters is None else self.clusters[kept]
        weights = None if self.weights is None else self.weights[kept]
        return collapse(rows[:, kept], clusters, keys=self.keys[kept], weights=weights)


def unpaired_notes(n_unpaired: int) -> tuple[Note, ...]:
    """That some cases have a value on one side only; nothing if there are none."""
    return (note("unpaired", n=n_unpaired),) if n_unpaired else ()


def describe_missing(missing: Mapping[str, Any], n: int, *, warns: bool = False) -> tuple[Note, ...]:
    """A note on the cases each table lacks, as arrays of ids, if any is missing.

    With `warns` it is also a warning where a table lacks two or more, and 1%.
    """
    lacking = {name: (len(ids), ids.tolist()[0]) for name, ids in missing.items() if len(ids)}
    if warns and any(count > 1 and 100 * count >= n for count, _ in lacking.values()):
        return (caution(UnpairedWarning, "missing_cases", missing=lacking, n=n),)
    return (note("missing_cases", missing=lacking, n=n),) if lacking else ()


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
        hint = Phrase("Evaluate all with {ids='str'}.")
        raise IdTypeError(f"ids are of different types, so none would match: {kinds}.", hint=hint)
    ids = next(iter(tables.values())).ids
    for table in tables.values():
        if len(table.ids) != len(ids) or not np.array_equal(table.ids, ids):
            ids = np.union1d(ids, table.ids)
    columns: dict[str, dict[str, Float]] = {}
    missing: dict[str, Array] = {}
    for name, table in tables.items():
        positions = slice(None) if len(table.ids) == len(ids) else np.searchsorted(ids, table.ids)
        columns[name] = {}
        for metric in metrics:
            if metric not in table.columns:
                raise ColumnError(
                    f"{name!r} has no metric {metric!r}.",
                    table=name,
                    column=metric,
                    hint=f"It has: {', '.join(table.columns)}.",
                )
            values = np.asarray(table.columns[metric], dtype=np.float64)
            if len(values) < len(ids):
                over_all_ids = np.full(len(ids), np.nan)
                over_all_ids[positions] = values
                values = over_all_ids
            columns[name][metric] = values
        is_present = np.zeros(len(ids), dtype=bool)
        is_present[positions] = True
        missing[name] = ids[~is_present]
    clusters = _merge_case_field(tables, ids, "clusters")
    weights = _merge_case_field(tables, ids, "weights")
    return Aligned(ids, columns, missing, clusters, weights)


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
            case = tables[name].ids[differs].tolist()[0]
            raise InputError(f"case {case!r} has different {field} in two tables.", table=name, row=case)
        merged[positions] = value
        known[positions] = True
    return merged


def pair(
    first: npt.ArrayLike,
    second: npt.ArrayLike | None = None,
    *,
    clusters: npt.ArrayLike | None = None,
    ids: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
) -> Differences:
    """Pair two arrays in the same order of cases, or take ready differences as `first` alone.

    Two pandas Series, or two dicts {id: value}, are paired by id, whatever their order. NaN on either side
    leaves a pair out.

    Raises:
        InputError: if lengths differ, an id occurs twice without `clusters`, or no pair is left.
    """
    a, labels = _values_and_ids(first, "the first sample")
    b, others = (np.zeros_like(a), labels) if second is None else _values_and_ids(second, "the second sample")
    missing: Mapping[str, Array] = {}
    if labels is not None and others is not None:  # with ids on one side only, the order must stay
        one, two = _by_id(a, labels, "the first sample"), _by_id(b, others, "the second sample")
        ids = labels
        if not np.array_equal(labels, others):
            if clusters is not None or weights is not None:
                raise InputError(
                    "the two samples are paired by id, but clusters and weights go by position.",
                    hint="Bring both samples to one order first: second.loc[first.index].",
                )
            aligned = align({"the first sample": one, "the second sample": two}, [""])
            (a, b), ids, missing = (t[""] for t in aligned.tables.values()), aligned.ids, aligned.missing
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
    n_nan = int(len(a) - keep.sum()) - sum(len(ids_missing) for ids_missing in missing.values())
    notes: tuple[Note, ...] = ()
    if n_nan > 0:
        what = "nan_values" if second is None else "nan_pairs"
        notes = (caution(UnpairedWarning, what, n_nan=n_nan, n=len(a)),)
    notes += describe_missing(missing, len(a), warns=True)
    clusters_kept = None if clusters is None else check_per_case(clusters, len(a), "clusters")[keep]
    labels = np.arange(len(a)) if ids is None else check_per_case(ids, len(a), "ids")
    keys = unit_keys(labels[keep])
    if clusters_kept is None and ids is not None and len(np.unique(keys)) < len(keys):
        raise InputError("an id occurs more than once.", hint="Say whose cases they are: clusters=.")
    weights_kept = (
        None if weights is None else check_per_case(weights, len(a), "weights").astype(np.float64)[keep]
    )
    if weights_kept is not None and not (
        np.isfinite(weights_kept).all() and (weights_kept >= 0).all() and weights_kept.any()
    ):
        raise InputError("weights must be finite numbers of at least 0, and not all 0.")
    return Differences(a[keep], b[keep], clusters_kept, keys, weights_kept, notes)


def check_per_case(values: npt.ArrayLike, n: int, name: str) -> Array:
    """An argument that goes with the sample by position, as an array with one entry per case."""
    try:
        array = np.asarray(values)
    except Exception as error:  # noqa: BLE001 - rows of different lengths; tensors have errors of their own
        raise InputError(f"{name} must hold one entry per case ({n}): {error}.") from None
    if array.shape != (n,):
        raise InputError(f"{name} must hold one entry per case ({n}), got shape {array.shape}.")
    if array.dtype == object:
        try:
            sorted(array.tolist())
        except Exception:  # noqa: BLE001 - entries that are frames or arrays have errors of their own
            kinds = sorted({type(one).__name__ for one in array.tolist()})
            raise InputError(
                f"{name} holds {' and '.join(kinds)}, which have no order.",
                hint="Make them all int or all str.",
            ) from None
    return array


def _values_and_ids(sample: Any, what: str) -> tuple[Float, Array | None]:
    """The values of a sample in their own order, and the ids of a Series or a dict."""
    ids: Array | None = None
    if isinstance(sample, Mapping):
        sample, ids = list(sample.values()), np.asarray(list(sample))
    elif hasattr(sample, "index") and hasattr(sample, "to_numpy"):
        ids = np.asarray(sample.index.to_numpy())
        sample = sample.to_numpy(dtype=np.float64, na_value=np.nan)
    values = to_floats(sample, what)
    if values.ndim != 1:
        raise InputError(f"{what} must be one-dimensional, got shape {values.shape}.")
    if np.isinf(values).any():
        raise InputError(f"{what} holds an infinite value.", row=int(np.flatnonzero(np.isinf(values))[0]))
    return values, ids


def _by_id(values: Float, ids: Array, what: str, name: str = "") -> PerCase:
    """A sample as a table with one column, in the order of its ids."""
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    repeats = np.flatnonzero(ids[1:] == ids[:-1])
    if len(repeats):
        repeated = ids[repeats].tolist()[0]
        raise InputError(f"{what} names {repeated!r} more than once.", row=repeated)
    return PerCase(ids, {name: values[order]})


def tables_of(samples: Mapping[str, Any], name: str) -> dict[str, PerCase]:
    """Samples of several models as tables with one column: by id if all have ids, else by position."""
    columns: dict[str, Float] = {}
    by_id: dict[str, PerCase] = {}
    for model, sample in samples.items():
        columns[model], ids = _values_and_ids(sample, f"{model!r}")
        if ids is not None:
            by_id[model] = _by_id(columns[model], ids, f"{model!r}", name)
    if len(by_id) == len(columns):
        return by_id
    sizes = {model: len(values) for model, values in columns.items()}
    if len(set(sizes.values())) > 1:
        raise InputError(
            f"samples without ids must have equal length, got {sizes}.", hint="Pass Series or dicts by user."
        )
    return {model: PerCase(np.arange(len(values)), {name: values}) for model, values in columns.items()}


def as_differences(differences: Differences | npt.ArrayLike) -> Differences:
    """Differences unchanged, or made from plain numbers, one per unit."""
    return differences if isinstance(differences, Differences) else pair(differences)
