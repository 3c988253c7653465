"""Python containers and arrays to Rows: dicts, lists, 2-D arrays, scipy matrices.

A dict's key is the case; a plain sequence or a matrix numbers its cases 0, 1, 2, … The kind of the
first entry that is not empty decides how all are read; one that differs is an error naming its case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.inputs.ids import encode, of_sequence
from recsys.inputs.rows import Rows
from recsys.types import Array, Codes, Ids

_EXPECTED = (
    "a dict {user: [items]}, a list of lists, a 2-D array, a pandas/polars/Arrow table with user and item "
    "columns, or a scipy sparse matrix"
)


def rows_of_container(data: Any, *, ordered: bool, table: str) -> Rows:
    """Rows of anything that is not a frame. `ordered`: the order within a case is the ranking."""
    if _is_sparse(data):
        return _rows_of_sparse(data, ordered=ordered, table=table)
    if isinstance(data, Mapping):
        keys, entries = list(data.keys()), list(data.values())
        ids, codes = encode(of_sequence(keys, table=table, column="user"), table=table, column="user")
    elif isinstance(data, np.ndarray):
        return _rows_of_array(data, ordered=ordered, table=table)
    elif isinstance(data, list | tuple):
        entries = list(data)
        ids, codes = _numbered(len(entries))
    else:
        raise InputError(
            f"{table} came as {type(data).__name__}.", table=table, hint=f"Expected {_EXPECTED}."
        )
    if len(entries) == 0:
        raise InputError(f"{table} is empty.", table=table, hint=f"Expected {_EXPECTED}.")
    flat, sizes, numbers = _flatten(entries, ids.values[codes], ordered=ordered, table=table)
    items, item = encode(
        of_sequence(flat, table=table, column="item"), table=table, column="item", as_range=True
    )
    if isinstance(data, Mapping):
        case = np.repeat(codes, sizes)
    else:
        case = np.repeat(np.arange(len(entries), dtype=np.int32), sizes)
    notes = {} if isinstance(data, Mapping) else {"numbered": len(entries)}
    case = case.astype(np.int32, copy=False)
    return Rows(table, ids, case, items, item, **_as_role(numbers, ordered=ordered), notes=notes)


def _flatten(
    entries: list[Any], names: Array, *, ordered: bool, table: str
) -> tuple[list[Any], Array, list[Any] | None]:
    """All items in one list, how many each case has, and their scores or grades where given."""
    form, kinds = _form_of(entries, names, ordered=ordered, table=table), set(map(type, entries))
    for at, entry in enumerate(entries) if not kinds <= set(form.kinds) else ():
        if not form.fits(entry) and (_is_scalar(entry) or not hasattr(entry, "__len__") or len(entry)):
            raise InputError(
                f"user {_shown(names[at])} holds {type(entry).__name__}, the users before hold {form.name}.",
                table=table,
                row=_shown(names[at]),
                hint=f"Write every user the same way; expected {_EXPECTED}.",
            )
    if form.name == "one item":
        return entries, np.ones(len(entries), dtype=np.int64), None
    sizes = np.fromiter(map(len, entries), dtype=np.int64, count=len(entries))
    if form.name == "a dict":
        return (
            list(chain.from_iterable(entries)),
            sizes,
            list(chain.from_iterable(entry.values() for entry in entries if len(entry))),
        )
    arrays = any(hasattr(kind, "tolist") for kind in kinds)
    flat = list(chain.from_iterable(map(_as_list, entries) if arrays else entries))
    if form.name == "pairs":
        _check_pairs(flat, sizes, names, table)
        return list(map(itemgetter(0), flat)), sizes, list(map(itemgetter(1), flat))
    return flat, sizes, None


class _Form:
    """How one user's entry is written."""

    def __init__(self, name: str, kinds: tuple[type, ...], *, scalar: bool = False) -> None:
        self.name = name
        self.kinds = kinds
        self.scalar = scalar

    def fits(self, entry: Any) -> bool:
        if self.scalar:
            return _is_scalar(entry)
        return isinstance(entry, self.kinds) or (not _is_scalar(entry) and self._array_like(entry))

    def _array_like(self, entry: Any) -> bool:
        return self.name != "a dict" and hasattr(entry, "__array__") and getattr(entry, "ndim", 1) == 1


_SEQUENCES = (list, tuple, np.ndarray, range)


def _form_of(entries: list[Any], names: Array, *, ordered: bool, table: str) -> _Form:
    for at, entry in enumerate(entries):
        if isinstance(entry, set | frozenset) and ordered:
            raise InputError(
                f"user {_shown(names[at])} holds a set, which has no order.",
                table=table,
                row=_shown(names[at]),
                hint="A ranking must be a list, best item first.",
            )
        if entry is None or (not _is_scalar(entry) and not hasattr(entry, "__len__")):
            raise InputError(
                f"user {_shown(names[at])} holds {type(entry).__name__}.",
                table=table,
                row=_shown(names[at]),
                hint=f"Expected {_EXPECTED}.",
            )
        if _is_scalar(entry):
            if ordered:
                raise InputError(
                    f"user {_shown(names[at])} holds one item {entry!r}, not a list.",
                    table=table,
                    row=_shown(names[at]),
                    hint="Write [item] even for a list of one.",
                )
            return _Form("one item", (), scalar=True)
        if len(entry):
            return _form_of_entry(entry, ordered=ordered)
    return _Form("a list", (*_SEQUENCES, set, frozenset, Mapping))


def _form_of_entry(entry: Any, *, ordered: bool) -> _Form:
    if isinstance(entry, Mapping):
        return _Form("a dict", (dict, Mapping))
    if not ordered:
        if isinstance(entry, list | tuple) and isinstance(entry[0], tuple | list):
            return _Form("pairs", _SEQUENCES)
        return _Form("a list", (*_SEQUENCES, set, frozenset))
    first = next(iter(entry))
    return _Form("pairs" if isinstance(first, tuple | list) else "a list", _SEQUENCES)


def _check_pairs(flat: Sequence[Any], sizes: Array, names: Array, table: str) -> None:
    if set(map(type, flat)) <= {tuple, list} and set(map(len, flat)) == {2}:
        return
    for at, pair in enumerate(flat):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            user = names[int(np.searchsorted(np.cumsum(sizes), at, side="right"))]
            raise InputError(
                f"user {_shown(user)} holds {pair!r} among (item, number) pairs.",
                table=table,
                row=_shown(user),
                hint="Write every entry as (item, score).",
            )


def _rows_of_array(data: Array, *, ordered: bool, table: str) -> Rows:
    if data.ndim == 1 and data.dtype != object:
        if ordered:
            raise InputError(
                f"{table} came as a 1-D array of {len(data)}.",
                table=table,
                hint="Expected one row a user (2-D).",
            )
        data = data.reshape(-1, 1)
    if data.ndim == 1:
        return rows_of_container(data.tolist(), ordered=ordered, table=table)
    if data.ndim != 2:
        raise InputError(
            f"{table} came as a {data.ndim}-D array.", table=table, hint=f"Expected {_EXPECTED}."
        )
    if data.size == 0:
        raise InputError(
            f"{table} is empty (shape {data.shape}).", table=table, hint=f"Expected {_EXPECTED}."
        )
    ids, _ = _numbered(len(data))
    case = np.repeat(np.arange(len(data), dtype=np.int32), data.shape[1])
    flat = data.ravel()
    if data.dtype.kind == "i" and data.min() < 0:
        flat, case = _unpadded(data, case, table)
    items, item = encode(flat, table=table, column="item", as_range=True)
    return Rows(table, ids, case, items, item, notes={"numbered": len(data)})


def _unpadded(data: Array, case: Codes, table: str) -> tuple[Array, Codes]:
    """-1 fills up a row's end; anywhere else, or another negative number, is an error."""
    pad = data == -1
    wrong = (data < -1) | (
        pad[:, :] & np.concatenate([~pad[:, 1:], np.zeros((len(data), 1), dtype=bool)], axis=1)
    )
    if wrong.any():
        row = int(np.argmax(wrong.any(axis=1)))
        raise InputError(
            f"row {row} holds a negative item before its end: {data[row].tolist()}.",
            table=table,
            row=row,
            hint="-1 may only fill up the end of a row; use a dict of lists for ids below 0.",
        )
    keep = ~pad.ravel()
    return data.ravel()[keep], case[keep]


def _rows_of_sparse(data: Any, *, ordered: bool, table: str) -> Rows:
    matrix = data.tocsr()
    if matrix.ndim != 2 or matrix.shape[0] == 0 or matrix.nnz == 0:
        raise InputError(
            f"the sparse {table} of shape {matrix.shape} stores nothing.",
            table=table,
            hint="Check the split.",
        )
    ids, _ = _numbered(matrix.shape[0])
    items, _ = _numbered(matrix.shape[1])
    case = np.repeat(np.arange(matrix.shape[0], dtype=np.int32), np.diff(matrix.indptr))
    numbers, notes = _as_role(matrix.data, ordered=ordered), {"numbered": matrix.shape[0]}
    return Rows(table, ids, case, items, matrix.indices.astype(np.int32), **numbers, notes=notes)


def _as_role(numbers: Any, *, ordered: bool) -> dict[str, Any]:
    if numbers is None:
        return {}
    if isinstance(numbers, list):
        numbers = np.asarray(numbers, dtype=object if any(n is None for n in numbers) else None)
    return {"score" if ordered else "grade": np.asarray(numbers)}


def _numbered(size: int) -> tuple[Ids, Codes]:
    return Ids(np.arange(size, dtype=np.int64), is_range=True), np.arange(size, dtype=np.int32)


def _is_scalar(entry: Any) -> bool:
    return isinstance(entry, str | bytes | int | float | np.generic)


def _is_sparse(data: Any) -> bool:
    return hasattr(data, "tocsr") and hasattr(data, "nnz")


def _as_list(entry: Any) -> list[Any]:
    plain: list[Any] = entry.tolist() if hasattr(entry, "tolist") else list(entry)  # arrays, tensors
    return plain


def _shown(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
