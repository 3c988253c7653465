"""From what the user typed to int32 codes that follow the sorted ids.

Ids are all int or all str; anything else is an error that says what was found. Codes never depend on
the order of rows. Strings are coded by Arrow's dictionaries where Arrow is installed, else by pandas.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from recsys.errors import FloatIdWarning, IdTypeError, InputError, warn
from recsys.kernels import code_strings
from recsys.types import Array, Bool, Codes, Ids

_DENSE = 4
_FEW = 1 << 14  # up to here neither Arrow nor pandas is worth importing
_MANY = 1 << 17  # from here on sorting takes longer than importing Arrow
_WHOLE = 2.0**53
_HINT = "Ids are whole numbers or strings; convert the column, for example with .astype(str)."


def encode(values: Array, *, table: str, column: str, as_range: bool = False) -> tuple[Ids, Codes]:
    """Ids and the code of each value, from a one-dimensional array.

    `as_range`: whole numbers from 0 that are not too sparse may stand for themselves.
    """
    kind = values.dtype.kind
    if kind in "iu":
        return encode_ints(_int64(values, table, column), as_range=as_range)
    if kind == "f":
        return encode_ints(_whole_floats(values, table, column))
    if kind in "USTO":
        return _encode_objects(values.astype(object, copy=False), table, column)
    raise IdTypeError(f"{column} ids are of type {values.dtype}.", table=table, column=column, hint=_HINT)


def encode_ints(values: Array, *, as_range: bool = False) -> tuple[Ids, Codes]:
    """Whole numbers: by a table of what occurs where the range is narrow, by sorting otherwise.

    >>> ids, codes = encode_ints(np.array([30, 10, 30]))
    >>> ids.values.tolist(), codes.tolist()
    ([10, 30], [1, 0, 1])
    """
    if len(values) == 0:
        return Ids(np.zeros(0, dtype=np.int64)), np.zeros(0, dtype=np.int32)
    low, high = int(values.min()), int(values.max())
    limit = range_limit(len(values))
    if high - low >= limit:
        distinct, codes = _sparse_ints(values)
        return Ids(distinct.astype(np.int64)), codes.astype(np.int32)
    if as_range and low >= 0 and high < limit:
        return Ids(np.arange(high + 1), is_range=True), values.astype(np.int32)
    offset = values if low == 0 else np.subtract(values, low, dtype=np.int64)
    present = np.zeros(high - low + 1, dtype=bool)
    present[offset] = True
    distinct = np.flatnonzero(present)
    ids = Ids((distinct + low).astype(np.int64))
    if len(distinct) == high - low + 1:
        return ids, offset.astype(np.int32)
    place = np.cumsum(present, dtype=np.int32) - np.int32(1)
    return ids, place[offset]


def _sparse_ints(values: Array) -> tuple[Array, Array]:
    """The different values in order, and the place of each row's: many rows are hashed, not sorted."""
    if len(values) > _MANY:
        with suppress(ImportError):
            import pyarrow as pa

            coded = pa.array(values).dictionary_encode()
            found = coded.dictionary.to_numpy()
            order = np.argsort(found)
            place = np.empty(len(found), dtype=np.int32)
            place[order] = np.arange(len(found), dtype=np.int32)
            return found[order], place[coded.indices.to_numpy()]
    return np.unique(values, return_inverse=True)


def range_limit(n_values: int) -> int:
    """Whole numbers from 0 below this may stand for themselves in a table of so many rows."""
    return max(_DENSE * n_values, 1 << 16)


def encode_strings(values: Any, *, table: str, column: str) -> tuple[Ids, Codes]:
    """Strings without missing ones: a NumPy object array, or an Arrow array."""
    try:
        quick = _by_kernel(values)
        if quick is not None:
            return quick
        codes, distinct, order = _dictionary(values)
    except UnicodeEncodeError as error:
        raise _no_text(error, table, column) from error
    place = np.empty(len(distinct), dtype=np.int32)
    place[order] = np.arange(len(distinct), dtype=np.int32)
    return Ids(distinct[order]), place[codes]


def encode_categories(series: Any, *, table: str, column: str) -> tuple[Ids, Codes] | None:
    """Text that has codes already, none missing: only the labels are looked at; None where Arrow cannot."""
    try:
        import pyarrow as pa
    except ImportError:
        return None
    try:
        held = series.to_arrow()
        whole = held.unify_dictionaries().combine_chunks() if isinstance(held, pa.ChunkedArray) else held
    except pa.ArrowException:  # labels of several kinds
        return None
    if not pa.types.is_dictionary(whole.type) or "string" not in str(whole.type.value_type):
        return None
    at = whole.indices.to_numpy(zero_copy_only=False)
    used = np.flatnonzero(np.bincount(at, minlength=len(whole.dictionary)))
    ids, codes = encode_strings(whole.dictionary.take(pa.array(used)), table=table, column=column)
    place = np.zeros(len(whole.dictionary), dtype=np.int32)
    place[used] = codes
    return ids, place[at]


def _no_text(error: UnicodeEncodeError, table: str, column: str) -> IdTypeError:
    return IdTypeError(
        f"the {column} id {error.object!r} is not valid Unicode text.",
        table=table,
        column=column,
        hint="Mend the encoding of the file it came from.",
    )


def of_sequence(values: Sequence[Any], *, table: str, column: str) -> Array:
    """A Python sequence of ids as an array, never letting NumPy turn one kind into another."""
    kinds = set(map(type, values))
    if kinds <= {int} or (kinds and all(issubclass(k, int | np.integer) and k is not bool for k in kinds)):
        try:
            return np.fromiter(values, dtype=np.int64, count=len(values))
        except OverflowError as error:
            raise IdTypeError(
                f"the {column} id {_beyond(values)} lies outside 64 bits.",
                table=table,
                column=column,
                hint="Use strings for such ids.",
            ) from error
    out = _objects(list(values))
    if kinds and all(issubclass(k, float | np.floating) for k in kinds):
        return out.astype(np.float64)
    return out


def of_any(values: Iterable[Any], *, table: str, column: str) -> Array:
    """Ids as they were handed in, an array or anything that can be listed, as an array."""
    return values if isinstance(values, np.ndarray) else of_sequence(list(values), table=table, column=column)


def _beyond(values: Sequence[Any]) -> int:
    return int(next(v for v in values if not -(2**63) <= v < 2**63))


def _by_kernel(values: Any) -> tuple[Ids, Codes] | None:
    """Strings coded by the compiled kernels; None where these are absent or something is in the way."""
    if isinstance(values, np.ndarray):
        found = code_strings(values)
        return None if found is None else (Ids(values[found[1]]), found[0])
    whole = _in_one_piece(values)
    width = {"string": "int32", "large_string": "int64"}.get(str(whole.type))
    if width is None or len(whole) == 0:
        return None
    _, offsets, text = whole.buffers()
    every: Array = np.frombuffer(offsets, dtype=np.dtype(width))
    starts = every[whole.offset : whole.offset + len(whole) + 1]
    letters = np.zeros(1, np.uint8) if text is None or text.size == 0 else np.frombuffer(text, dtype=np.uint8)
    found = code_strings((starts, letters))
    return None if found is None else (Ids(whole.take(found[1]).to_numpy(zero_copy_only=False)), found[0])


def _in_one_piece(arrow: Any) -> Any:
    """One Arrow array of strings that are laid out one after the other."""
    whole = arrow.combine_chunks() if hasattr(arrow, "combine_chunks") else arrow
    if hasattr(whole, "num_chunks"):
        return whole  # too much for one piece
    return whole.cast("large_string") if str(whole.type) == "string_view" else whole


def _objects(values: list[Any]) -> Array:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _dictionary(values: Any) -> tuple[Array, Array, Array]:
    """A code a value, the distinct values, and how these are sorted (UTF-8 order is code point order)."""
    if isinstance(values, np.ndarray) and len(values) <= _FEW:
        few, back = np.unique(values, return_inverse=True)
        for text in few.tolist():
            text.encode()  # text that is no Unicode is refused here as it is by Arrow
        return back, few, np.arange(len(few))
    try:
        import pyarrow as pa
        import pyarrow.compute as pc
    except ImportError:
        import pandas as pd

        codes, found = pd.factorize(np.asarray(values, dtype=object))
        names = np.asarray(found, dtype=object)
        return codes, names, np.argsort(names, kind="stable") if len(names) else codes
    is_arrow = isinstance(values, pa.Array | pa.ChunkedArray)
    arrow = values if is_arrow else pa.array(values, type=pa.string())
    if isinstance(arrow, pa.ChunkedArray):  # more than 2 GiB of text needs the wider type
        arrow = (arrow if is_arrow else arrow.cast(pa.large_string())).combine_chunks()
    if pa.types.is_string_view(arrow.type):  # which Arrow does not sort
        arrow = arrow.cast(pa.large_string())
    coded = arrow if pa.types.is_dictionary(arrow.type) else arrow.dictionary_encode()
    distinct = _objects(coded.dictionary.to_pylist())
    order = pc.array_sort_indices(coded.dictionary).to_numpy()
    return coded.indices.to_numpy(zero_copy_only=False), distinct, order


def _encode_objects(values: Array, table: str, column: str) -> tuple[Ids, Codes]:
    if len(values) <= _FEW and set(map(type, values.tolist())) <= {str}:
        return encode_strings(values, table=table, column=column)
    try:
        quick = _by_kernel(values)  # None if any of them is no text
    except UnicodeEncodeError as error:
        raise _no_text(error, table, column) from error
    if quick is not None:
        return quick
    from pandas.api.types import infer_dtype

    kind = infer_dtype(values, skipna=False)
    if kind in ("string", "empty"):
        return encode_strings(values, table=table, column=column)
    if kind == "integer":
        return encode_ints(_int64(values, table, column))
    if kind == "floating":
        return encode_ints(_whole_floats(values.astype(np.float64), table, column))
    _refuse(values, table, column)
    raise IdTypeError(f"{column} ids are of type {kind}.", table=table, column=column, hint=_HINT)


def _refuse(values: Array, table: str, column: str) -> None:
    """Say which row is missing or of another type than the first."""
    first = type(values[0])
    for row, value in enumerate(values.tolist()):
        if value is None or (isinstance(value, float) and math.isnan(value)):
            refuse_missing(row, table, column)
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise IdTypeError(
                f"the {column} id {value!r} is of type {type(value).__name__}.",
                table=table,
                column=column,
                row=row,
                hint=_HINT,
            )
        if type(value) is not first:
            raise IdTypeError(
                f"{column} ids are mixed: {values[0]!r} is {first.__name__}, "
                f"{value!r} is {type(value).__name__}.",
                table=table,
                column=column,
                row=row,
                hint="Make them all int or all str, for example with .astype(str).",
            )


def refuse_missing(row: int, table: str, column: str) -> None:
    """A missing id is never dropped."""
    raise InputError(
        f"the {column} id is missing.",
        table=table,
        column=column,
        row=row,
        hint="Drop such rows, or give them an id, before evaluating.",
    )


def _int64(values: Array, table: str, column: str) -> Array:
    if values.dtype == object or (values.dtype.kind == "u" and values.dtype.itemsize == 8):
        beyond: Bool = np.asarray(
            (values > np.iinfo(np.int64).max) | (values < np.iinfo(np.int64).min), dtype=bool
        )
        if beyond.any():
            row = int(np.argmax(beyond))
            raise IdTypeError(
                f"the {column} id {values[row]!s} lies outside 64 bits.",
                table=table,
                column=column,
                row=row,
                hint="Use strings for such ids.",
            )
        return values.astype(np.int64)
    return values


def _whole_floats(values: Array, table: str, column: str) -> Array:
    bad = ~np.isfinite(values)
    if bad.any():
        refuse_missing(int(np.argmax(bad)), table, column)
    off: Bool = (values != np.floor(values)) | (np.abs(values) >= _WHOLE)
    if off.any():
        row = int(np.argmax(off))
        raise IdTypeError(
            f"the {column} id {float(values[row])!r} is not a whole number below 2^53.",
            table=table,
            column=column,
            row=row,
            hint=_HINT,
        )
    warn(
        FloatIdWarning,
        f"{table}: the {column} ids came as floats; they are whole and were read as integers.",
    )
    return values.astype(np.int64)
