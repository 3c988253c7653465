"""One scan, checked: what may be assumed of the arrays before any backend touches them.

Checks run in NumPy once per call, so that both backends refuse the same inputs with the same words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from recsys.errors import CutoffError, InputError, UnknownNameError
from recsys.kernels.checks import as_rows
from recsys.kernels.results import Bools, Csr, Factors, Float64s

Ties = Literal["by_id", "by_id_desc"]
Progress = Callable[[int, int], object]

ROWS_PER_LOOK = 1 << 16


@dataclass(frozen=True)
class Problem:
    """Inputs of one scan, of known type and shape, with everything in range."""

    users: Factors
    items: Factors
    k: int | None
    truth: Csr | None
    seen: Csr | None
    eligible: Csr | None
    bias: Float64s | None
    never: Bools | None
    tie_key: NDArray[np.int64]
    """Among equal scores the smaller key comes first."""
    largest: float
    """Of all item factors and biases, in magnitude."""
    progress: Progress | None
    deepest: int | None = None
    """Truth items with this many candidates above them need no exact count."""

    @property
    def n_cases(self) -> int:
        return int(self.users.shape[0])

    @property
    def n_items(self) -> int:
        return int(self.items.shape[0])


def as_problem(
    users: Any,
    items: Any,
    *,
    k: int | None,
    truth: Any,
    seen: Any,
    eligible: Any,
    item_bias: Any,
    never: Any,
    item_rank: Any,
    ties: str,
    progress: Progress | None,
    deepest: int | None = None,
) -> Problem:
    """Check and bring to one form; nothing the size of the factors is copied unless its type must change."""
    x, y = _factors("users", users), _factors("items", items)
    if x.shape[1] != y.shape[1]:
        raise InputError(f"users have {x.shape[1]} factors, items {y.shape[1]}; they must be equal.")
    if k is not None and (isinstance(k, bool) or k != int(k) or k < 1):
        raise CutoffError(f"k is {k!r}; give a whole number from 1, or None for no lists.")
    if deepest is not None and deepest < 1:
        raise CutoffError(f"deepest is {deepest!r}; give a whole number from 1, or None.")
    n_cases, n_items = x.shape[0], y.shape[0]
    if n_items >= 2**31:
        raise InputError(f"{n_items} items; the kernels count items in int32.")
    bias = _per_item("item_bias", item_bias, n_items, np.float64)
    largest = _check_magnitude(x, y, bias)
    return Problem(
        users=x,
        items=y,
        k=None if k is None else min(int(k), n_items),
        truth=_rows("truth", truth, n_cases, n_items),
        seen=_rows("seen", seen, n_cases, n_items),
        eligible=_rows("eligible", eligible, n_cases, n_items),
        bias=bias,
        never=_per_item("never", never, n_items, np.bool_),
        tie_key=_tie_key(item_rank, ties, n_items),
        largest=largest,
        progress=progress,
        deepest=None if deepest is None else int(deepest),
    )


def _factors(name: str, values: Any) -> Factors:
    array: Factors = np.asarray(values)
    if array.ndim != 2:
        raise InputError(f"{name} must be a matrix (rows x factors); it has shape {array.shape}.", table=name)
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise InputError(f"{name} are {array.dtype}; expected float32 or float64.", table=name)
    if array.dtype in (np.float32, np.float64) and array.dtype.isnative and _element_strides(array):
        return array
    # Half precision widens to float32 without loss, whole numbers up to 2^53 to float64.
    wide: Factors = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    return wide


def _element_strides(array: Factors) -> bool:
    return all(stride % array.itemsize == 0 for stride in array.strides)


def _largest(name: str, array: Factors) -> float:
    """The largest magnitude; a NaN or an infinity is named with its row."""
    largest = 0.0
    for start in range(0, array.shape[0], ROWS_PER_LOOK):
        block = array[start : start + ROWS_PER_LOOK]
        if not block.size:
            break
        high, low = float(block.max()), float(block.min())
        if not (np.isfinite(high) and np.isfinite(low)):
            bad = ~np.isfinite(block.reshape(block.shape[0], -1)).all(axis=1)
            row = start + int(bad.argmax())
            raise InputError(f"{name} has a NaN or infinite value in row {row}.", table=name, row=row)
        largest = max(largest, high, -low)
    return largest


def _check_magnitude(x: Factors, y: Factors, bias: Float64s | None) -> float:
    of_users, of_items = _largest("users", x), _largest("items", y)
    of_bias = 0.0 if bias is None else _largest("item_bias", bias)
    with np.errstate(over="ignore"):
        reach = np.float64(max(x.shape[1], 1)) * of_users * of_items
    if reach >= 2.0**1023 or reach + of_bias >= 2.0**1023:
        raise InputError(
            f"scores may overflow: {x.shape[1]} factors up to {of_users:g} times {of_items:g} "
            f"plus biases up to {of_bias:g} reach 2^1023.",
            hint="Scale the factors down; the order of scores does not change.",
        )
    return max(of_items, of_bias)


def _per_item(name: str, values: Any, n_items: int, dtype: Any) -> Any:
    if values is None:
        return None
    array = np.asarray(values)
    if dtype is np.bool_ and array.dtype != np.bool_:
        raise InputError(f"{name} is {array.dtype}; expected one bool per item.", table=name)
    array = np.ascontiguousarray(array, dtype=dtype)
    if array.shape != (n_items,):
        raise InputError(f"{name} has shape {array.shape}, expected ({n_items},).", table=name)
    return array


def _rows(name: str, rows: Any, n_cases: int, n_items: int) -> Csr | None:
    if rows is None:
        return None
    indptr, items = as_rows(name, rows[0], rows[1], n_cases)
    if items.size and (int(items.min()) < 0 or int(items.max()) >= n_items):
        at = int(np.flatnonzero((items < 0) | (items >= n_items))[0])
        case = int(np.searchsorted(indptr, at, side="right")) - 1
        raise InputError(
            f"{name}: item {items[at]} of case {case} is not one of the {n_items} items.",
            table=name,
            row=case,
        )
    if name != "truth" and items.size > 1:
        falls = items[1:] < items[:-1]
        falls[indptr[1:-1][(indptr[1:-1] > 0) & (indptr[1:-1] < items.size)] - 1] = False
        if falls.any():
            case = int(np.searchsorted(indptr, int(falls.argmax()), side="right")) - 1
            raise InputError(
                f"{name}: the items of case {case} are not in ascending order.", table=name, row=case
            )
    return indptr, items


def _tie_key(item_rank: Any, ties: str, n_items: int) -> NDArray[np.int64]:
    if ties not in ("by_id", "by_id_desc"):
        raise UnknownNameError("ties", ties, ("by_id", "by_id_desc"))
    if item_rank is None:
        key = np.arange(n_items, dtype=np.int64)
    else:
        key = _per_item("item_rank", item_rank, n_items, np.int64)
    return -key if ties == "by_id_desc" else key
