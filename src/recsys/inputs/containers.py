"""Lists and Interactions from whatever holds them: a path, a table or a container.

Dicts, lists, 2-D arrays and scipy matrices become Rows here. Files are read with the ids that were asked for;
of data in memory they stay as they are.

Tables become Rows in `frames`. The key of a dict is the case; a sequence or a matrix numbers its cases 0, 1,
2, … The first entry that is not empty decides how all are read; an entry of another kind is an error that
names its case. torch is never imported: tensors are recognised by their methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from recsys.errors import IdTypeError, InputError, Phrase, came_as
from recsys.inputs.ids import (
    IdKind,
    encode,
    ids_from_sequence,
    object_array,
    refuse_inexact_floats,
    refuse_masked,
    refuse_meta,
)
from recsys.inputs.rows import Rows, no_rows, refuse_negative_grades, to_interactions, to_lists
from recsys.records.arrays import Array, Codes, Ids, Interactions, Lists
from recsys.records.read_facts import NOTHING_READ, ReadFacts

_Data = TypeVar("_Data", Lists, Interactions)
_PAIRS_ONLY = ("seen", "eligible")  # only (user, item) pairs are read of these, which is much faster
_EXPECTED = (
    "a dict {user: [items]}, a list of lists, a 2-D array, a pandas/polars/Arrow table with user and item "
    "columns, or a scipy sparse matrix"
)
_SEQUENCES = (list, tuple, np.ndarray, range)
_CONTAINERS = (dict, list, tuple, set, frozenset, np.ndarray, str)


def open_lists(
    data: Any,
    table: str = "lists",
    columns: Mapping[str, Any] | None = None,
    *,
    ids: IdKind | None = None,
    allow_empty: bool = False,
) -> Lists:
    """Return ready lists; `table` is the name in errors and in `columns`."""
    if isinstance(data, str | Path):
        from recsys.inputs.files import read_file

        return read_file(data, "lists", columns=columns_for(table, columns), ids=ids or "str")
    if hasattr(data, "detach") or (isinstance(data, np.ndarray) and data.dtype.kind == "f"):
        values = as_array(data)
        if values.dtype.kind == "f" and (np.isfinite(values) & (values != np.floor(values))).any():
            raise InputError(
                f"lists came as {type(data).__name__} of shape {values.shape} that holds fractions; "
                "items are whole numbers or text.",
                table="lists",
                hint="Did you mean recsys.Scores(matrix)? It ranks all items by their scores.",
            )
    lists = read_lists(data, columns=columns_for(table, columns), table=table, allow_empty=allow_empty)
    return check_id_kind(lists, table, ids)


def open_interactions(
    data: Any,
    table: str,
    columns: Mapping[str, Any] | None = None,
    *,
    ids: IdKind | None = None,
    allow_empty: bool = False,
) -> Interactions:
    """Return the items each user had; `table` is the name in errors and in `columns`."""
    if isinstance(data, str | Path):
        from recsys.inputs.files import read_file

        data = read_file(data, "truth", columns=columns_for(table, columns), ids=ids or "str")
    interactions = read_interactions(
        data,
        table=table,
        columns=columns_for(table, columns),
        pairs_only=table in _PAIRS_ONLY,
        allow_empty=allow_empty,
        negatives=table == "truth",
    )
    return check_id_kind(interactions, table, ids)


def open_history(
    data: Any, table: str, columns: Mapping[str, Any] | None = None, ids: IdKind | None = None
) -> Interactions | None:
    """Read a history, or return None without one; `seen={}` is a history in which no user had anything."""
    is_empty = table == "seen" and isinstance(data, Mapping) and not data
    return None if data is None else open_interactions(data, table, columns, ids=ids, allow_empty=is_empty)


def columns_for(table: str, columns: Any) -> Any:
    """Return the column names of one table, if each table has its own."""
    per_table = isinstance(columns, Mapping) and any(isinstance(v, Mapping) for v in columns.values())
    return columns.get(table) if per_table else columns


def check_id_kind(data: _Data, table: str, ids: IdKind | None) -> _Data:
    """Raise an error if data in memory has ids of another type than asked for: only files are converted."""
    if ids in (None, "auto"):
        return data
    for what, own in (("user", data.cases), ("item", data.items)):
        if len(own) and own.kind != ids:
            raise IdTypeError(
                Phrase("{ids=} is for files, and the ", ids=ids)
                + f"{what} ids of data in memory are {own.kind}.",
                table=table,
                column=what,
                hint=Phrase("Convert them, for example with .astype({}), or leave out {ids=}.", ids),
            )
    return data


def read_lists(
    data: Any,
    *,
    columns: Mapping[str, str] | None = None,
    table: str = "lists",
    allow_empty: bool = False,
) -> Lists:
    """Recommendation lists from a table or container.

    `columns` maps roles to column names; `table` is the name that error messages use.
    """
    if isinstance(data, Lists):
        return data
    roles = ("case", "user", "item", "score", "rank")
    return to_lists(_read_rows(data, roles, columns, table, allow_empty=allow_empty))


def read_interactions(
    data: Any,
    *,
    columns: Mapping[str, str] | None = None,
    table: str = "truth",
    pairs_only: bool = False,
    allow_empty: bool = False,
    negatives: bool = False,
) -> Interactions:
    """Read truth, training data or seen items from a table or container; `pairs_only`: no grades or times.

    A negative grade is an error; `negatives` keeps them, for the conventions of an evaluation to decide.
    """
    if isinstance(data, Interactions):
        if not negatives and not pairs_only:
            refuse_negative_grades(data, table)
        return data
    roles = ("case", "user", "item") if pairs_only else ("case", "user", "item", "grade", "time")
    rows = _read_rows(data, roles, columns, table, allow_empty=allow_empty)
    return to_interactions(rows, negatives=negatives)


def _read_rows(
    data: Any,
    roles: tuple[str, ...],
    columns: Mapping[str, str] | None,
    table: str,
    *,
    allow_empty: bool,
) -> Rows:
    if not isinstance(data, _CONTAINERS):
        from recsys.inputs.frames import as_frame, rows_of_frame

        frame = as_frame(data)
        if frame is not None:
            return rows_of_frame(frame, roles, columns, table, allow_empty=allow_empty)
    is_container = isinstance(data, Mapping | list | tuple | np.ndarray) and getattr(data, "ndim", 1) > 0
    if allow_empty and is_container and len(data) == 0:
        return no_rows(table)
    return rows_of_container(data, ordered="rank" in roles, table=table)


def rows_of_container(data: Any, *, ordered: bool, table: str) -> Rows:
    """Return rows of any data that is not a frame; `ordered`: the order within a case is the ranking."""
    if is_sparse(data):
        return _rows_of_sparse(data, ordered=ordered, table=table)
    if isinstance(data, Mapping):
        keys, entries = list(data.keys()), list(data.values())
        ids, codes = encode(ids_from_sequence(keys, table=table, column="user"), table=table, column="user")
    elif isinstance(data, np.ndarray):
        return _rows_of_array(data, ordered=ordered, table=table)
    elif isinstance(data, list | tuple):
        entries = list(data)
        ids, codes = _row_number_ids(len(entries))
    else:
        raise came_as(table, data, table=table, hint=f"Expected {_EXPECTED}.")
    if len(entries) == 0:
        raise InputError(f"{table} is empty.", table=table, hint=f"Expected {_EXPECTED}.")
    names = ids.values[codes]
    first = next((one for entry in entries if isinstance(entry, list | tuple) for one in entry), None)
    if not isinstance(first, str | int | tuple | None):
        from recsys.inputs.documents import pairs_of_documents

        entries = pairs_of_documents(entries, names, first, ordered=ordered, table=table)
    flat, sizes, values_column = _flatten(entries, names, ordered=ordered, table=table)
    items, item = encode(
        ids_from_sequence(flat, table=table, column="item"), table=table, column="item", as_range=True
    )
    case = np.repeat(codes, sizes).astype(np.int32, copy=False)
    facts = NOTHING_READ if isinstance(data, Mapping) else ReadFacts(n_rows=len(entries))
    extra: dict[str, Any] = {}
    if values_column is not None:
        extra["score" if ordered else "grade"] = numbers_to_array(values_column)
    return Rows(table, ids, case, items, item, facts=facts, **extra)


def _flatten(
    entries: list[Any], user_names: Array, *, ordered: bool, table: str
) -> tuple[list[Any], Array, list[Any] | None]:
    """Return all items in one list, the number of items per case, and scores or grades if there are any."""
    form = _detect_form(entries, user_names, ordered=ordered, table=table)
    entry_types = set(map(type, entries))
    fitting = entry_types <= set(form.types)
    if fitting and np.ndarray in entry_types:
        fitting = all(entry.ndim == 1 or form.fits(entry) for entry in entries if type(entry) is np.ndarray)
    for at, entry in enumerate(() if fitting else entries):
        if not form.fits(entry) and (_is_scalar(entry) or not _has_length(entry) or len(entry)):
            user = _python_value(user_names[at])
            raise InputError(
                f"user {user} holds {type(entry).__name__}, the users before hold {form.name}.",
                table=table,
                row=user,
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
    if any(hasattr(kind, "tolist") for kind in entry_types):  # arrays, tensors
        for entry in entries:
            if type(entry) is not np.ndarray or entry.dtype.kind == "f":
                refuse_inexact_floats(entry, table=table, column="item")
        entries = [entry.tolist() if hasattr(entry, "tolist") else entry for entry in entries]
    flat = list(chain.from_iterable(entries))
    if form.name == "pairs":
        _check_pairs(flat, sizes, user_names, table)
        return list(map(itemgetter(0), flat)), sizes, list(map(itemgetter(1), flat))
    return flat, sizes, None


class _EntryForm(NamedTuple):
    """How the entry of one user is written: "one item", "a list", "a dict" or "pairs"."""

    name: str
    types: tuple[type, ...]

    def fits(self, entry: Any) -> bool:
        if self.name == "one item":
            return _is_scalar(entry)
        if isinstance(entry, np.ndarray) or not isinstance(entry, self.types):
            is_array = self.name != "a dict" and hasattr(entry, "__array__") and not _is_scalar(entry)
            if not is_array or hasattr(entry, "columns"):  # a table has the length of its rows
                return False
            return 1 <= getattr(entry, "ndim", 1) <= (2 if self.name == "pairs" else 1)
        return True


def _detect_form(entries: list[Any], user_names: Array, *, ordered: bool, table: str) -> _EntryForm:
    """Return the form of the first entry that is not empty."""
    for at, entry in enumerate(entries):
        problem = hint = ""
        if isinstance(entry, set | frozenset) and ordered:
            problem, hint = "a set, which has no order", "A ranking must be a list, best item first."
        elif _is_scalar(entry) and ordered:
            problem, hint = f"one item {entry!r}, not a list", "Write [item] even for a list of one."
        elif not (_is_scalar(entry) or _has_length(entry)):
            problem, hint = type(entry).__name__, f"Expected {_EXPECTED}."
        if problem:
            user = _python_value(user_names[at])
            raise InputError(f"user {user} holds {problem}.", table=table, row=user, hint=hint)
        if _is_scalar(entry):
            return _EntryForm("one item", ())
        if len(entry) == 0:
            continue
        if isinstance(entry, Mapping):
            return _EntryForm("a dict", (dict, Mapping))
        # A set of tuples is a set of items that are not ids; pairs have an order.
        if (ordered or isinstance(entry, list | tuple)) and isinstance(next(iter(entry)), tuple | list):
            return _EntryForm("pairs", _SEQUENCES)
        return _EntryForm("a list", _SEQUENCES if ordered else (*_SEQUENCES, set, frozenset))
    return _EntryForm("a list", (*_SEQUENCES, set, frozenset, Mapping))


def _check_pairs(flat: Sequence[Any], sizes: Array, user_names: Array, table: str) -> None:
    if set(map(type, flat)) <= {tuple, list} and set(map(len, flat)) == {2}:
        return
    for at, pair in enumerate(flat):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            user = user_names[int(np.searchsorted(np.cumsum(sizes), at, side="right"))]
            raise InputError(
                f"user {_python_value(user)} holds {pair!r} among (item, number) pairs.",
                table=table,
                row=_python_value(user),
                hint="Write every entry as (item, score).",
            )


def _rows_of_array(data: Array, *, ordered: bool, table: str) -> Rows:
    refuse_masked(data, table=table)
    if data.ndim == 1 and data.dtype != object:
        if ordered:
            raise InputError(
                f"{table} came as a 1-D array of {len(data)}.",
                table=table,
                hint="Expected one row per user (2-D).",
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
    ids, _ = _row_number_ids(len(data))
    case = np.repeat(np.arange(len(data), dtype=np.int32), data.shape[1])
    flat = data.ravel()
    if data.dtype.kind == "i" and data.min() < 0:
        # -1 pads the end of a row; any other negative number is an error.
        is_padding = data == -1
        misplaced = data < -1
        misplaced[:, :-1] |= is_padding[:, :-1] & ~is_padding[:, 1:]
        if misplaced.any():
            row = int(np.argmax(misplaced.any(axis=1)))
            raise InputError(
                f"row {row} holds a negative item before its end: {data[row].tolist()}.",
                table=table,
                row=row,
                hint="-1 may only fill up the end of a row; use a dict of lists for ids below 0.",
            )
        keep = ~is_padding.ravel()
        flat, case = flat[keep], case[keep]
    items, item = encode(flat, table=table, column="item", as_range=True)
    return Rows(table, ids, case, items, item, facts=ReadFacts(n_rows=len(data)))


def _rows_of_sparse(data: Any, *, ordered: bool, table: str) -> Rows:
    matrix = as_csr(data, table=table)
    if matrix.shape[0] == 0 or matrix.nnz == 0:
        raise InputError(
            f"the sparse {table} of shape {matrix.shape} stores nothing.",
            table=table,
            hint="Check the split.",
        )
    if max(matrix.shape) > np.iinfo(np.int32).max:
        raise InputError(
            f"the sparse {table} of shape {matrix.shape} is too large.",
            table=table,
            hint="Number users and items from 0 without gaps, or pass a table of ids.",
        )
    ids, _ = _row_number_ids(matrix.shape[0])
    items, _ = _row_number_ids(matrix.shape[1])
    case = np.repeat(np.arange(matrix.shape[0], dtype=np.int32), np.diff(matrix.indptr))
    extra: dict[str, Any] = {"score" if ordered else "grade": np.asarray(matrix.data)}
    item = matrix.indices.astype(np.int32)
    facts = ReadFacts(n_rows=matrix.shape[0], n_columns=matrix.shape[1])
    return Rows(table, ids, case, items, item, facts=facts, **extra)


def is_sparse(data: Any) -> bool:
    """Return whether the data is a sparse matrix; the nnz of a damaged one cannot be asked for."""
    return hasattr(data, "tocsr") and hasattr(type(data), "nnz")


def as_csr(data: Any, *, table: str) -> Any:
    """Return a scipy sparse matrix by rows, indices checked; an entry stored twice stays two entries.

    SciPy adds such entries up, or not, depending on the format, and does not look at the indices.
    """
    if len(data.shape) != 2:
        raise InputError(
            f"the sparse {table} is of shape {data.shape}.", table=table, hint="Expected users x items."
        )
    form = getattr(data, "format", "")
    if form in ("csr", "csc"):
        n_rows, n_columns = data.shape if form == "csr" else data.shape[::-1]
        indptr, indices = np.asarray(data.indptr), np.asarray(data.indices)
        sound = indptr.shape == (n_rows + 1,) and indptr[0] == 0 and bool((indptr[1:] >= indptr[:-1]).all())
        if not sound or indptr.dtype.kind not in "iu" or indptr[-1] > min(len(indices), len(data.data)):
            raise _damaged(table, f"its indptr does not fit its shape {data.shape} and entries")
        n = int(indptr[-1])
        _check_indices(indices[:n], n_columns, table)
        if n < max(len(indices), len(data.data)):
            data = type(data)((np.asarray(data.data)[:n], indices[:n], indptr), shape=data.shape)
        return data.tocsr()
    if form == "dia":
        offsets, diagonals = np.asarray(data.offsets), np.asarray(data.data)
        sound = offsets.ndim == 1 and diagonals.ndim == 2 and len(offsets) == len(diagonals)
        if not sound or offsets.dtype.kind not in "iu" or np.abs(offsets).max(initial=0) > max(data.shape):
            raise _damaged(table, f"its diagonals do not fit its shape {data.shape}")
    try:
        entries = data.tocoo() if hasattr(data, "tocoo") else data.tocsr().tocoo()
        row, column = map(np.asarray, getattr(entries, "coords", (entries.row, entries.col)))
        values = np.asarray(entries.data)
    except (ValueError, IndexError, TypeError, AttributeError) as error:
        raise InputError(
            f"the sparse {table} cannot be read ({error}).", table=table, hint=f"Expected {_EXPECTED}."
        ) from error
    if not len(row) == len(column) == len(values):
        raise _damaged(table, f"{len(row)} rows, {len(column)} columns, {len(values)} values")
    _check_indices(row, data.shape[0], table)
    _check_indices(column, data.shape[1], table)
    from scipy.sparse import csr_array, csr_matrix, sparray

    order = np.argsort(row, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row.astype(np.int64), minlength=data.shape[0]))])
    make = csr_array if isinstance(data, sparray) else csr_matrix
    return make((values[order], column[order], indptr), shape=data.shape)


def _check_indices(indices: Array, size: int, table: str) -> None:
    if len(indices) and (indices.dtype.kind not in "iu" or indices.min() < 0 or indices.max() >= size):
        wrong = indices[np.argmax((indices < 0) | (indices >= size))]
        raise _damaged(table, f"the index {wrong} lies outside 0 to {size - 1}", " with the right shape")


def _damaged(table: str, how: str, shape: str = "") -> InputError:
    hint = f"Build it again from (values, (rows, columns)){shape}."
    return InputError(f"the sparse {table} is damaged: {how}.", table=table, hint=hint)


def numbers_to_array(values: list[Any]) -> Array:
    """Return numbers as an array that holds each exactly; an array of objects if no type of NumPy does.

    >>> numbers_to_array([2**53 + 1, 0.5]).dtype, numbers_to_array([1, 0.5]).dtype
    (dtype('O'), dtype('float64'))
    """
    kinds = set(map(type, values))
    if all(issubclass(kind, int | float | np.integer | np.floating) for kind in kinds):
        with suppress(OverflowError):
            array: Array = np.asarray(values)
            mixed = array.dtype.kind == "f" and any(issubclass(kind, int | np.integer) for kind in kinds)
            if not mixed or np.abs(array).max() < 2.0**53:
                return array
    return object_array(values)


def as_array(values: Any) -> Array:
    """Return a NumPy array; tensors are detached and copied from any device, bfloat16 widened exactly.

    >>> as_array([1, 2]).tolist()
    [1, 2]
    """
    refuse_masked(values)
    refuse_meta(values)
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float() if str(values.dtype) == "torch.bfloat16" else values
    try:
        array: Array = np.asarray(values)
    except ValueError as error:
        raise InputError(
            f"{type(values).__name__} cannot be read as numbers: its rows differ in length.",
            hint="Give every row as many numbers.",
        ) from error
    except Exception as error:  # tables and tensors have errors of their own
        raise InputError(
            f"{type(values).__name__} cannot be read as numbers ({error}).", hint="Pass a NumPy array."
        ) from error
    is_native = array.dtype.kind in "biufO"  # bfloat16 is not a NumPy kind; dtype.name is slow
    return array if is_native or array.dtype.name != "bfloat16" else array.astype(np.float32)


def _row_number_ids(size: int) -> tuple[Ids, Codes]:
    return Ids(np.arange(size, dtype=np.int64), is_range=True), np.arange(size, dtype=np.int32)


def _has_length(entry: Any) -> bool:
    """Return whether len() answers; classes, 0-dimensional arrays and sparse matrices have it and refuse."""
    has_rows = getattr(entry, "ndim", 1) != 0 and not hasattr(entry, "tocsr")
    return hasattr(type(entry), "__len__") and has_rows


def _is_scalar(entry: Any) -> bool:
    return isinstance(entry, str | bytes | int | float | np.generic)


def _python_value(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
