"""Make paired differences of two samples: arrays are paired by position, Series and dicts by id.

Cases that are NaN or missing on one side are left out, with a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError
from recsys.stats.alignment import Differences, align, describe_missing
from recsys.stats.resampling import unit_keys
from recsys.stats.statistics_warnings import UnpairedWarning, caution
from recsys.types import Array, Float, PerCase


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
    by_position = clusters is not None or weights is not None
    first, second, ids, missing = _pair_by_id(first, second, ids, by_position=by_position)
    a = _float_vector(first, "the first sample")
    b = np.zeros_like(a) if second is None else _float_vector(second, "the second sample")
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
    reason = "values left out: NaN" if second is None else "pairs left out: NaN on one side or both"
    notes: tuple[str, ...] = (caution(UnpairedWarning, f"{n_nan} of {len(a)} {reason}"),) if n_nan > 0 else ()
    if any(len(ids_missing) for ids_missing in missing.values()):
        notes += (caution(UnpairedWarning, describe_missing(missing, len(a))),)
    clusters_kept = None if clusters is None else _check_per_case(clusters, len(a), "clusters")[keep]
    labels = np.arange(len(a)) if ids is None else _check_per_case(ids, len(a), "ids")
    keys = unit_keys(labels[keep])
    if clusters_kept is None and ids is not None and len(np.unique(keys)) < len(keys):
        raise InputError("an id occurs more than once.", hint="Say whose cases they are: clusters=.")
    weights_kept = (
        None if weights is None else _check_per_case(weights, len(a), "weights").astype(np.float64)[keep]
    )
    if weights_kept is not None and not (
        np.isfinite(weights_kept).all() and (weights_kept >= 0).all() and weights_kept.any()
    ):
        raise InputError("weights must be finite numbers of at least 0, and not all 0.")
    return Differences(a[keep], b[keep], clusters_kept, keys, weights_kept, notes)


def _float_vector(values: npt.ArrayLike, what: str) -> Float:
    try:
        if isinstance(values, np.ma.MaskedArray):
            values = np.ma.filled(values.astype(np.float64), np.nan)
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} must hold numbers, one per user: {error}.") from None
    if array.ndim != 1:
        raise InputError(f"{what} must be one-dimensional, got shape {array.shape}.")
    if np.isinf(array).any():
        raise InputError(f"{what} holds an infinite value.", row=int(np.flatnonzero(np.isinf(array))[0]))
    return array


def _check_per_case(values: npt.ArrayLike, n: int, name: str) -> Array:
    """An argument that goes with the sample by position, as an array with one entry per case."""
    array = np.asarray(values)
    if array.shape != (n,):
        raise InputError(f"{name} must hold one entry per case ({n}), got shape {array.shape}.")
    return array


def _pair_by_id(
    first: Any, second: Any, ids: npt.ArrayLike | None, *, by_position: bool
) -> tuple[Any, Any, npt.ArrayLike | None, Mapping[str, Array]]:
    """Both samples in one order of ids, the ids, and those missing per side; unchanged without ids."""
    if _sample_ids(first) is None or (second is not None and _sample_ids(second) is None):
        # With ids on one side only, the pairing is by position, so the order must stay.
        return _values_in_order(first), _values_in_order(second), ids, {}
    a, b = _sample_table(first, "the first sample"), _sample_table(second, "the second sample")
    if a is None or b is None or _same_order(first, second):
        return (
            _values_in_order(first),
            None if second is None else _values_in_order(second),
            _sample_ids(first),
            {},
        )
    if by_position:
        raise InputError(
            "the two samples are paired by id, but clusters and weights go by position.",
            hint="Bring both samples to one order first: second.loc[first.index].",
        )
    aligned = align({"the first sample": a, "the second sample": b}, [""])
    return *(table[""] for table in aligned.tables.values()), aligned.ids, aligned.missing  # type: ignore[return-value]


def _values_in_order(sample: Any) -> Any:
    """The values of a sample in their own order."""
    if isinstance(sample, Mapping):
        return list(sample.values())
    return sample if _sample_ids(sample) is None else sample.to_numpy(dtype=np.float64, na_value=np.nan)


def _sample_ids(sample: Any) -> Array | None:
    """The ids of a Series or a dict in their own order; None for other samples."""
    if isinstance(sample, Mapping):
        return np.asarray(list(sample))
    if hasattr(sample, "index") and hasattr(sample, "to_numpy"):
        return np.asarray(sample.index.to_numpy())
    return None


def _same_order(first: Any, second: Any) -> bool:
    a, b = _sample_ids(first), _sample_ids(second)
    return a is not None and b is not None and np.array_equal(a, b)


def _sample_table(sample: Any, what: str) -> PerCase | None:
    """A Series or a dict as a table by id; None for values without ids."""
    labels = _sample_ids(sample)
    if labels is None:
        return None
    if isinstance(sample, Mapping):
        values = np.asarray(list(sample.values()), dtype=np.float64)
    else:
        values = sample.to_numpy(dtype=np.float64, na_value=np.nan)
    order = np.argsort(labels, kind="stable")
    labels = labels[order]
    repeats = np.flatnonzero(labels[1:] == labels[:-1])
    if len(repeats):
        name = labels[repeats].tolist()[0]
        raise InputError(f"{what} names {name!r} more than once.", row=name)
    return PerCase(labels, {"": values[order]})


def tables_of(samples: Mapping[str, Any], name: str) -> dict[str, PerCase]:
    """Samples of several models as tables with one column: by id if all have ids, else by position."""
    tables = {model: _sample_table(sample, f"{model!r}") for model, sample in samples.items()}
    if None not in tables.values():
        return {m: PerCase(t.ids, {name: t.columns[""]}) for m, t in tables.items() if t is not None}
    columns = {
        model: _float_vector(_values_in_order(sample), f"{model!r}") for model, sample in samples.items()
    }
    sizes = {model: len(values) for model, values in columns.items()}
    if len(set(sizes.values())) > 1:
        raise InputError(
            f"samples without ids must have equal length, got {sizes}.", hint="Pass Series or dicts by user."
        )
    return {model: PerCase(np.arange(len(values)), {name: values}) for model, values in columns.items()}


def as_differences(differences: Differences | npt.ArrayLike) -> Differences:
    """Differences unchanged, or made from plain numbers, one per unit."""
    return differences if isinstance(differences, Differences) else pair(differences)
