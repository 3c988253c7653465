"""Checks before a kernel may read arrays: the same errors, with the same messages, for all backends."""

from __future__ import annotations

from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.kernels.kernel_results import Csr, Int64s

# Arrays with one value per item: the dtype kinds that are accepted, and the word for a value.
PER_ITEM_KINDS = {np.bool_: ("b", "bool"), np.int64: ("iu", "whole number"), np.float64: ("fiub", "number")}


def to_array(name: str, values: Any) -> Any:
    """Any array-like as a NumPy array; an error if it is none."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be read as an array: {error}.", table=name) from error


def as_readable(array: Any, dtype: Any) -> Any:
    """Contiguous and aligned, as a kernel reads it; copied only if it must be."""
    return np.require(array, dtype, ("C", "A"))


def is_positive_whole(value: Any) -> bool:
    """Whether the value is a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    number: Any = value
    return bool(number >= 1 and number == number // 1)


def as_int64s(name: str, values: Any) -> Int64s:
    """A column of whole numbers; an error if it has another type or shape, or a number beyond int64."""
    array = to_array(name, values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(
            f"{name} is {array.dtype} of shape {array.shape}; expected a column of whole numbers.", table=name
        )
    if array.size and array.dtype == np.uint64 and int(array.max()) >= 2**63:
        raise InputError(f"{name}: {array.max()} does not fit int64.", table=name)
    column: Int64s = as_readable(array, np.int64)
    return column


def as_rows(name: str, indptr: Any, items: Any, n_cases: int | None = None) -> Csr:
    """CSR rows as contiguous (int64 indptr, int32 items); an error names a wrong type or shape."""
    starts = to_array(name, indptr)
    if starts.size and starts.dtype.kind not in "iu":
        raise InputError(f"{name}: indptr is {starts.dtype}, expected int64.", table=name)
    codes = to_array(name, items)
    if codes.dtype != np.int32:
        codes = _as_int32(name, codes)
    if starts.ndim != 1 or codes.ndim != 1 or starts.size == 0:
        raise InputError(
            f"{name}: indptr and items must be one-dimensional, indptr with n + 1 entries.", table=name
        )
    starts, codes = as_readable(starts, np.int64), as_readable(codes, np.int32)
    if n_cases is not None and starts.size != n_cases + 1:
        raise InputError(
            f"{name}: indptr has {starts.size} entries for {n_cases} cases, expected {n_cases + 1}.",
            table=name,
        )
    if starts[0] != 0 or starts[-1] != codes.size or bool(np.any(starts[1:] < starts[:-1])):
        raise InputError(
            f"{name}: indptr must rise from 0 to the number of items ({codes.size}); "
            f"it runs from {starts[0]} to {starts[-1]}.",
            table=name,
        )
    return starts, codes


def as_item_rows(name: str, rows: Any, n_cases: int, n_items: int) -> Csr:
    """CSR rows, given as (indptr, items), of items from 0 to n_items."""
    if not isinstance(rows, tuple | list) or len(rows) != 2:
        raise InputError(f"{name} is {type(rows).__name__}; expected (indptr, items).", table=name)
    indptr, items = as_rows(name, rows[0], rows[1], n_cases)
    if items.size and (int(items.min()) < 0 or int(items.max()) >= n_items):
        at = int(np.flatnonzero((items < 0) | (items >= n_items))[0])
        case = int(np.searchsorted(indptr, at, side="right")) - 1
        raise InputError(
            f"{name}: item {items[at]} of case {case} is not one of the {n_items} items.",
            table=name,
            row=case,
        )
    return indptr, items


def as_per_item(name: str, values: Any, n_items: int, dtype: Any) -> Any:
    """One value per item; None stays None."""
    if values is None:
        return None
    array = to_array(name, values)
    kinds, noun = PER_ITEM_KINDS[dtype]
    if array.dtype.kind not in kinds and array.size:
        raise InputError(f"{name} is {array.dtype}; expected one {noun} per item.", table=name)
    if array.shape != (n_items,):
        raise InputError(f"{name} has shape {array.shape}, expected ({n_items},).", table=name)
    return as_readable(array, dtype)


def _as_int32(name: str, codes: Any) -> Any:
    if codes.size and codes.dtype.kind not in "iu":
        raise InputError(f"{name}: items are {codes.dtype}, expected int32 codes.", table=name)
    limits = np.iinfo(np.int32)
    if codes.size and (codes.min() < limits.min or codes.max() > limits.max):
        raise InputError(f"{name}: an item code does not fit int32.", table=name)
    return codes.astype(np.int32)
