"""The checked inputs of one scan.

Checks run in NumPy once per call, so that all backends refuse the same inputs with the same messages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from recsys.errors import CutoffError, InputError, UnknownNameError
from recsys.kernels.kernel_results import Bools, Csr, Factors, Float64s, Int32s, Int64s
from recsys.kernels.preconditions import (
    as_item_rows,
    as_per_item,
    as_readable,
    is_positive_whole,
    to_array,
)

Ties = Literal["by_id", "by_id_desc"]
Progress = Callable[[int, int], object]

# A block that is read twice should still be in the cache the second time.
BYTES_PER_CHECK = 1 << 20
ENTRIES_PER_CHECK = 1 << 22


@dataclass(frozen=True)
class ScanProblem:
    """Inputs of one scan: types and shapes are known, values are in range."""

    users: Factors
    user_rows: Int64s | None
    """The row of users of each case; None for all rows in order."""
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
    """The largest magnitude of all item factors and biases."""
    progress: Progress | None
    deepest: int | None = None
    """Truth items with this many candidates above them need no exact count."""

    @property
    def n_cases(self) -> int:
        return int(self.users.shape[0] if self.user_rows is None else self.user_rows.size)

    @property
    def n_items(self) -> int:
        return int(self.items.shape[0])

    def users_of(self, start: int, stop: int) -> Factors:
        """The factors of some cases."""
        return rows_between(self.users, self.user_rows, start, stop)


def as_problem(
    users: Any,
    items: Any,
    *,
    user_rows: Any = None,
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
) -> ScanProblem:
    """Check and convert the inputs of a scan; factors are copied only if their type must change."""
    x, y = _check_matrix("users", users), _check_matrix("items", items)
    if x.shape[1] != y.shape[1]:
        raise InputError(f"users have {x.shape[1]} factors, items {y.shape[1]}; they must be equal.")
    if k is not None and not is_positive_whole(k):
        raise CutoffError(f"k is {k!r}; give a whole number from 1, or None for no lists.")
    if deepest is not None and not is_positive_whole(deepest):
        raise CutoffError(f"deepest is {deepest!r}; give a whole number from 1, or None.")
    if progress is not None and not callable(progress):
        raise InputError(f"progress is {progress!r}; expected a function of (done, total), or None.")
    chosen = _check_user_rows(user_rows, x.shape[0])
    n_cases, n_items = x.shape[0] if chosen is None else chosen.size, y.shape[0]
    if n_items >= 2**31:
        raise InputError(f"{n_items} items; the kernels count items in int32.")
    bias = as_per_item("item_bias", item_bias, n_items, np.float64)
    largest = _check_magnitude(x, chosen, y, bias)
    if chosen is not None and not _is_ready(x):
        x, chosen = x[chosen], None  # only the chosen rows are converted
    return ScanProblem(
        users=_as_float(x),
        user_rows=chosen,
        items=_as_float(y),
        k=None if k is None else min(int(k), n_items),
        truth=_check_rows("truth", truth, n_cases, n_items),
        seen=_check_rows("seen", seen, n_cases, n_items),
        eligible=_check_rows("eligible", eligible, n_cases, n_items),
        bias=bias,
        never=as_per_item("never", never, n_items, np.bool_),
        tie_key=_tie_key(item_rank, ties, n_items),
        largest=largest,
        progress=progress,
        deepest=None if deepest is None else int(deepest),
    )


def rows_between(array: Factors, chosen: Int64s | None, start: int, stop: int) -> Factors:
    """The rows from start to stop, of all rows or of the chosen ones."""
    return array[start:stop] if chosen is None else array[chosen[start:stop]]


def _check_matrix(name: str, values: Any) -> Factors:
    array: Factors = to_array(name, values)
    if array.ndim != 2:
        raise InputError(f"{name} must be a matrix (rows x factors); it has shape {array.shape}.", table=name)
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise InputError(f"{name} are {array.dtype}; expected float32 or float64.", table=name)
    return array


def _check_user_rows(rows: Any, n_users: int) -> Int64s | None:
    if rows is None:
        return None
    chosen = to_array("user_rows", rows)
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        raise InputError(
            f"user_rows is {chosen.dtype} of shape {chosen.shape}; expected one row of users per case.",
            table="users",
        )
    outside = (chosen < 0) | (chosen >= n_users)
    if outside.any():
        raise InputError(
            f"user_rows: {chosen[outside.argmax()]} is not one of the {n_users} rows of users.", table="users"
        )
    readable: Int64s = as_readable(chosen, np.int64)
    return readable


def _is_ready(array: Factors) -> bool:
    """Whether the kernels can read the array without a copy, whatever its strides."""
    is_float = array.dtype in (np.float32, np.float64) and array.dtype.isnative
    return is_float and array.flags.aligned and all(s % array.itemsize == 0 for s in array.strides)


def _as_float(array: Factors) -> Factors:
    """As float32 if that represents every value of its type, else as float64; ready arrays are not copied."""
    if _is_ready(array):
        return array
    wide: Factors = array.astype(np.float32 if np.can_cast(array.dtype, np.float32) else np.float64)
    return wide


def _largest_magnitude(name: str, array: Factors, chosen: Int64s | None = None) -> float:
    """The largest magnitude; the error for a NaN or an infinity names its row."""
    largest, n_rows = 0.0, array.shape[0] if chosen is None else chosen.size
    step = max(1, BYTES_PER_CHECK * len(array) // max(1, array.nbytes))
    for start in range(0, n_rows, step):
        block = rows_between(array, chosen, start, start + step)
        if not block.size:
            break
        high, low = float(block.max()), float(block.min())
        if not (np.isfinite(high) and np.isfinite(low)):
            is_bad = ~np.isfinite(block.reshape(block.shape[0], -1)).all(axis=1)
            at = start + int(is_bad.argmax())
            row = at if chosen is None else int(chosen[at])
            raise InputError(
                f"{name} has a NaN or infinite value in row {row}.",
                table=name,
                row=row,
                hint="Such a row often means that training diverged: correct it, or leave the row out.",
            )
        largest = max(largest, high, -low)
    return largest


def _check_magnitude(x: Factors, chosen: Int64s | None, y: Factors, bias: Float64s | None) -> float:
    """The largest magnitude of item factors and biases; an error if scores may overflow."""
    user_max, item_max = _largest_magnitude("users", x, chosen), _largest_magnitude("items", y)
    bias_max = 0.0 if bias is None else _largest_magnitude("item_bias", bias)
    with np.errstate(over="ignore"):
        bound = np.float64(max(x.shape[1], 1)) * user_max * item_max
    if bound >= 2.0**1023 or bound + bias_max >= 2.0**1023:
        raise InputError(
            f"scores may overflow: {x.shape[1]} factors up to {user_max:g} times {item_max:g} "
            f"plus biases up to {bias_max:g} reach 2^1023.",
            hint="Scale the factors down; the order of scores does not change.",
        )
    return max(item_max, bias_max)


def _check_rows(name: str, rows: Any, n_cases: int, n_items: int) -> Csr | None:
    if rows is None:
        return None
    indptr, items = as_item_rows(name, rows, n_cases, n_items)
    descent = None if name == "truth" else _first_descent(indptr, items)
    if descent is not None:
        case = int(np.searchsorted(indptr, descent, side="right")) - 1
        raise InputError(
            f"{name}: the items of case {case} are not in ascending order.", table=name, row=case
        )
    return indptr, items


def _first_descent(indptr: Int64s, items: Int32s) -> int | None:
    """The first entry that is lower than the one before it in its row; None if there is none."""
    for start in range(1, items.size, ENTRIES_PER_CHECK):
        stop = min(start + ENTRIES_PER_CHECK, items.size)
        is_descent = items[start:stop] < items[start - 1 : stop - 1]
        first, last = np.searchsorted(indptr, (start, stop))
        is_descent[indptr[first:last] - start] = False  # the first entry of a row may be lower
        if is_descent.any():
            return start + int(is_descent.argmax())
    return None


def _tie_key(item_rank: Any, ties: str, n_items: int) -> NDArray[np.int64]:
    if ties not in ("by_id", "by_id_desc"):
        raise UnknownNameError("ties", ties, ("by_id", "by_id_desc"))
    if item_rank is None:
        key = np.arange(n_items, dtype=np.int64)
    else:
        key = as_per_item("item_rank", item_rank, n_items, np.int64)
    # Not -key, which overflows for the smallest int64.
    return ~key if ties == "by_id_desc" else key
