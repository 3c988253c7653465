"""Samples as they are handed in: arrays by place, Series and dicts by id, made into paired differences.

Whoever is NaN or missing on one side is left out and said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError
from recsys.stats.alignment import Differences, absent, align
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
        notes += (caution(UnpairedWarning, absent(missing, len(a))),)
    where = None if clusters is None else _beside(clusters, len(a), "clusters")[keep]
    names = np.arange(len(a)) if ids is None else _beside(ids, len(a), "ids")
    keys = unit_keys(names[keep])
    if where is None and ids is not None and len(np.unique(keys)) < len(keys):
        raise InputError("an id occurs more than once.", hint="Say whose cases they are: clusters=.")
    share = None if weights is None else _beside(weights, len(a), "weights").astype(np.float64)[keep]
    if share is not None and not (np.isfinite(share).all() and (share >= 0).all() and share.any()):
        raise InputError("weights must be finite numbers of at least 0, and not all 0.")
    return Differences(a[keep], b[keep], where, keys, share, notes)


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
