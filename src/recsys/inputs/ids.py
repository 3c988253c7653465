"""From what the user typed to int32 codes that follow the sorted ids.

Ids are all int or all str; anything else is an error that says what was found. Codes do not depend on
the order of rows. Without the compiled kernel strings are coded by Arrow's dictionaries, else by Python's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Literal, NoReturn, get_args

import numpy as np

from recsys.errors import FloatIdWarning, IdTypeError, InputError, Phrase, warn
from recsys.kernels import code_strings
from recsys.records.arrays import MAX_IDS, Array, Bool, Codes, Ids, cached_property

_RANGE_SPARSITY = 4  # whole numbers below this many times the rows stand for themselves
_SMALL = 1 << 14  # values; importing Arrow does not pay for fewer
_LARGE = 1 << 17  # values; sorting more takes longer than importing Arrow
FLOAT_INT_LIMIT = 2.0**53  # floats from here on are not exact integers
_ID_BITS = {"float16": 11, "bfloat16": 8, "float32": 24}  # whole numbers of fewer bits are exact
IdKind = Literal["str", "int", "auto"]
ID_KINDS = get_args(IdKind)
_INTEGER = re.compile(r"([+-]?[0-9]{1,19})(\.0+)?")  # 7, 007 and what floats are written as: 7.0
_CANONICAL_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_AS_TEXT_HINT = Phrase("Read the ids as text: {ids='str'}.")
_ID_TYPES_HINT = "Ids are whole numbers or strings; convert the column, for example with .astype(str)."


class TextIds(Ids):
    """Ids of text as the kernel keeps them; Python's strings are made when they are first looked at."""

    def __init__(self, texts: Any) -> None:
        self.__dict__["texts"] = texts
        if not texts.is_ascii():
            _ = self.values  # bytes that are not UTF-8 raise an error here

    @cached_property
    def values(self) -> Array:
        return np.array(self.__dict__["texts"].strings(), dtype=object)

    @property
    def kind(self) -> str:
        return "str"

    def __len__(self) -> int:
        return len(self.__dict__["texts"])

    def __reduce__(self) -> Any:
        return Ids, (self.values,)

    def union(self, other: Ids, *, what: str) -> tuple[Ids, Codes | None, Codes | None]:
        if not isinstance(other, TextIds) or other is self:
            return super().union(other, what=what)
        own, others = self.__dict__["texts"], other.__dict__["texts"]
        if own.equals(others):
            return self, None, None
        of_self, of_other, texts = own.merge(others)
        if len(texts) == len(self):
            return self, None, of_other
        return (other, of_self, None) if len(texts) == len(other) else (TextIds(texts), of_self, of_other)


def encode(values: Array, *, table: str, column: str, as_range: bool = False) -> tuple[Ids, Codes]:
    """Return ids and the code of each value, from a one-dimensional array.

    `as_range`: whole numbers from 0 that are not too sparse may be their own codes.
    """
    kind = values.dtype.kind
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    if kind in "iu":
        return encode_ints(_check_int64(values, table, column), as_range=as_range)
    if kind == "f":
        return encode_ints(_floats_to_ints(values, table, column))
    if kind in "USTO":
        return _encode_objects(values.astype(object, copy=False), table, column)
    raise IdTypeError(
        f"{column} ids are of type {values.dtype}.", table=table, column=column, hint=_ID_TYPES_HINT
    )


def encode_ints(values: Array, *, as_range: bool = False) -> tuple[Ids, Codes]:
    """Return ids and codes of whole numbers: by a presence table if the range is narrow, else by sorting.

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
    """Return the distinct values, ascending, and the code of each row; many rows are hashed, not sorted."""
    if len(values) > _LARGE:
        with suppress(ImportError):
            import pyarrow as pa

            coded = pa.array(values).dictionary_encode()
            distinct = coded.dictionary.to_numpy()
            order = np.argsort(distinct)
            place = np.empty(len(distinct), dtype=np.int32)
            place[order] = np.arange(len(distinct), dtype=np.int32)
            return distinct[order], place[coded.indices.to_numpy()]
    return np.unique(values, return_inverse=True)


def range_limit(n_values: int) -> int:
    """Whole numbers from 0 below this limit may be their own codes in a table of `n_values` rows."""
    return min(max(_RANGE_SPARSITY * n_values, 1 << 16), MAX_IDS)


def encode_strings(values: Any, *, table: str, column: str) -> tuple[Ids, Codes]:
    """Return ids and codes of strings, none missing: a NumPy array or an Arrow array."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "U":
        values = values.astype(object)
    if getattr(values, "num_chunks", 1) > 1:
        refuse_damaged_arrow(values, table=table, column=column)  # before the chunks are copied into one
    try:
        encoded = _encode_by_kernel(values)
        if encoded is not None:
            return encoded
        refuse_damaged_arrow(values, table=table, column=column)
        codes, distinct, order = _distinct_strings(values)
    except UnicodeError as error:
        raise _unicode_error(error, table, column) from error
    place = np.empty(len(distinct), dtype=np.int32)
    place[order] = np.arange(len(distinct), dtype=np.int32)
    return Ids(distinct[order]), place[codes]


def encode_categories(series: Any, *, table: str, column: str) -> tuple[Ids, Codes] | None:
    """Return ids and codes of a categorical column of text, none missing; None if Arrow cannot read it."""
    try:
        import pyarrow as pa
    except ImportError:
        return None
    try:
        arrow = series.to_arrow()
        refuse_damaged_arrow(arrow, table=table, column=column)
        array = arrow.unify_dictionaries().combine_chunks() if isinstance(arrow, pa.ChunkedArray) else arrow
    except pa.ArrowException:  # labels of mixed types
        return None
    if not pa.types.is_dictionary(array.type) or "string" not in str(array.type.value_type):
        return None
    label_codes = array.indices.to_numpy(zero_copy_only=False)
    used = np.flatnonzero(np.bincount(label_codes, minlength=len(array.dictionary)))
    ids, codes = encode_strings(array.dictionary.take(pa.array(used)), table=table, column=column)
    place = np.zeros(len(array.dictionary), dtype=np.int32)
    place[used] = codes
    return ids, place[label_codes]


def convert_ids(
    ids: Ids, codes: Codes, kind: IdKind | None, what: str, row_location: Callable[[int], str]
) -> tuple[Ids, Codes]:
    """Return text ids as whole numbers: all of them for "int", or if every id is written as one for None.

    The work is done per id, not per row.

    Warns:
        FloatIdWarning: some were written as floats, such as 7.0.
    """
    if kind in ("str", "auto"):
        return ids, codes
    texts = ids.values.tolist()
    form = _INTEGER if kind == "int" else _CANONICAL_INTEGER
    first_bad = next((i for i, text in enumerate(texts) if not form.fullmatch(text)), None)
    if kind is None and first_bad is not None:
        return ids, codes
    if first_bad is not None:
        where = f"{what}{row_location(int(np.argmax(codes == first_bad)))}"
        raise IdTypeError(
            f"{where}: {texts[first_bad]!r} is not a whole number of 64 bits.",
            hint=_AS_TEXT_HINT,
        )
    values = [int(text.partition(".")[0]) for text in texts]
    floats = [at for at, text in enumerate(texts) if "." in text]
    if any(abs(values[at]) >= FLOAT_INT_LIMIT for at in floats):
        raise IdTypeError(f"{what}: one that is written as a float is 2^53 or more.", hint=_AS_TEXT_HINT)
    if floats:
        warn(FloatIdWarning, f"{what}: {texts[floats[0]]!r} and others were read as whole numbers.")
    if not -(1 << 63) <= min(values, default=0) <= max(values, default=0) < 1 << 63:
        raise IdTypeError(f"{what}: an id does not fit into 64 bits.", hint=_AS_TEXT_HINT)
    int_ids, new_codes = encode_ints(np.array(values, dtype=np.int64))
    if len(int_ids) < len(ids):
        raise IdTypeError(
            f"{what}: two are the same whole number, such as '7' and '007', or '7' and '7.0'.",
            hint=_AS_TEXT_HINT,
        )
    return int_ids, new_codes[codes]


def ids_of_texts(texts: Iterable[str], kind: IdKind | None, place: str, what: str) -> Array:
    """Return the id of the type `kind` that each text is; errors name the place and the row."""
    ids, codes = encode_strings(np.array(list(texts), dtype=object), table=place, column=what)
    ids, codes = convert_ids(ids, codes, kind, f"{what} ids of {place}", lambda row: f", row {row}")
    return ids.values[codes]


def differing_ids_hint(first: Ids, second: Ids, what: str) -> str:
    """Return what to do about two sides that have no id in common.

    >>> differing_ids_hint(Ids(np.array(["1.0"], dtype=object)), Ids(np.array(["1"], dtype=object)), "user")
    "As whole numbers '1.0' and '1' are the same user: read both files with ids='int', or convert the ids."
    """
    texts: list[dict[int, str]] = []
    for side in (first, second):
        ids = side.values.tolist() if side.kind == "str" else []
        matches = [_INTEGER.fullmatch(text) for text in ids]
        texts.append({int(match[1]): match[0] for match in matches if match})
    number = min(texts[0].keys() & texts[1].keys(), default=None)
    if number is None:
        return f"Check that both sides use the same {what} ids."
    one, other = texts[0][number], texts[1][number]
    advice = Phrase("read both files with {ids='int'}, or convert the ids.")
    return f"As whole numbers {one!r} and {other!r} are the same {what}: " + advice


def refuse_damaged_arrow(values: Any, *, table: str, column: str) -> None:
    """Raise an error if an Arrow array points outside its buffers: Arrow would read whatever is there."""
    if not hasattr(values, "validate"):
        return
    import pyarrow as pa

    try:
        values.validate(full=True)
    except pa.ArrowException as error:
        raise InputError(
            f"the {column} column is a damaged Arrow array ({str(error).splitlines()[0]}).",
            table=table,
            column=column,
            hint="Write it again with what made it.",
        ) from error


def _unicode_error(error: UnicodeError, table: str, column: str) -> IdTypeError:
    return IdTypeError(
        f"the {column} id {getattr(error, 'object', '')!r} is not valid Unicode text.",
        table=table,
        column=column,
        hint="Fix the encoding of the file it came from.",
    )


def ids_from_sequence(values: Sequence[Any], *, table: str, column: str) -> Array:
    """Return a Python sequence of ids as an array, without letting NumPy convert one type into another."""
    kinds = set(map(type, values))
    if kinds <= {int} or _are_ints(kinds):
        try:
            return np.fromiter(values, dtype=np.int64, count=len(values))
        except OverflowError as error:
            outside = int(next(v for v in values if not -(2**63) <= v < 2**63))
            raise IdTypeError(
                f"the {column} id {outside} does not fit into 64 bits.",
                table=table,
                column=column,
                hint="Use strings for such ids.",
            ) from error
    array = object_array(list(values))
    if kinds and all(issubclass(k, float | np.floating) for k in kinds):
        narrow = [k for k in kinds if not issubclass(k, float | np.longdouble)]
        for k in narrow:
            numbers = np.array([value for value in array if type(value) is k])
            refuse_inexact_floats(numbers, table=table, column=column)
        return array.astype(np.float64)
    return array


def ids_to_array(values: Iterable[Any], *, table: str, column: str) -> Array:
    """Return ids from an array or any iterable, as an array."""
    if isinstance(values, np.ndarray):
        refuse_masked(values, table=table)
        if values.ndim != 1:
            problem = f"{column} ids came as an array of shape {values.shape}."
            raise IdTypeError(problem, table=table, column=column, hint="Pass one row of ids.")
        return values
    # SciPy walks over a damaged matrix without looking, so a sparse one is never iterated.
    is_sparse = hasattr(values, "tocsr")
    if is_sparse or isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise IdTypeError(
            f"{column} ids came as {type(values).__name__}.",
            table=table,
            column=column,
            hint="Pass a list or an array of ids.",
        )
    return ids_from_sequence(list(values), table=table, column=column)


def _encode_by_kernel(values: Any) -> tuple[Ids, Codes] | None:
    """Strings coded by the compiled kernel; None if it is missing or does not take these values."""
    if isinstance(values, np.ndarray):
        encoded = code_strings(values)
        return None if encoded is None else (TextIds(encoded[1]), encoded[0])
    # The kernel takes one contiguous buffer; what is too much for one array stays in chunks.
    array = values.combine_chunks() if hasattr(values, "combine_chunks") else values
    if not hasattr(array, "num_chunks") and str(array.type) == "string_view":
        array = array.cast("large_string")
    width = {"string": "int32", "large_string": "int64"}.get(str(array.type))
    if width is None or len(array) == 0:
        return None
    _, offsets, text = array.buffers()
    all_offsets: Array = np.frombuffer(offsets, dtype=np.dtype(width))
    starts = all_offsets[array.offset : array.offset + len(array) + 1]
    text_bytes = (
        np.zeros(1, np.uint8) if text is None or text.size == 0 else np.frombuffer(text, dtype=np.uint8)
    )
    encoded = code_strings((starts, text_bytes))
    return None if encoded is None else (TextIds(encoded[1]), encoded[0])


def object_array(values: list[Any]) -> Array:
    """Return an array of these objects, as they are."""
    array = np.empty(len(values), dtype=object)
    for at, value in enumerate(values):  # all at once, NumPy would take arrays among them apart
        array[at] = value
    return array


def _distinct_strings(values: Any) -> tuple[Array, Array, Array]:
    """Return codes, the distinct values, and their sort order (UTF-8 order is code point order)."""
    if isinstance(values, np.ndarray) and len(values) <= _SMALL:
        return _distinct_objects(values)
    try:
        import pyarrow as pa
        import pyarrow.compute as pc
    except ImportError:
        return _distinct_objects(values)
    is_arrow = isinstance(values, pa.Array | pa.ChunkedArray)
    arrow = values if is_arrow else pa.array(values, type=pa.string())
    if isinstance(arrow, pa.ChunkedArray):  # more than 2 GiB of text needs the wider type
        arrow = (arrow if is_arrow else arrow.cast(pa.large_string())).combine_chunks()
    if pa.types.is_string_view(arrow.type):  # Arrow cannot sort it
        arrow = arrow.cast(pa.large_string())
    coded = arrow if pa.types.is_dictionary(arrow.type) else arrow.dictionary_encode()
    distinct = object_array(coded.dictionary.to_pylist())
    order = pc.array_sort_indices(coded.dictionary).to_numpy()
    return coded.indices.to_numpy(zero_copy_only=False), distinct, order


def _distinct_objects(values: Array) -> tuple[Array, Array, Array]:
    """Return the same for Python strings, by a dict."""
    texts = values.tolist()
    distinct = sorted(set(texts))
    for text in distinct:
        text.encode()  # raises on invalid Unicode, as Arrow does
    code_of = {text: code for code, text in enumerate(distinct)}
    codes = np.fromiter(map(code_of.__getitem__, texts), dtype=np.int32, count=len(texts))
    return codes, object_array(distinct), np.arange(len(distinct))


def _encode_objects(values: Array, table: str, column: str) -> tuple[Ids, Codes]:
    if len(values) <= _SMALL and set(map(type, values.tolist())) <= {str}:
        return encode_strings(values, table=table, column=column)
    try:
        encoded = _encode_by_kernel(values)  # None if any value is not a string
    except UnicodeEncodeError as error:
        raise _unicode_error(error, table, column) from error
    if encoded is not None:
        return encoded
    types = set(map(type, values.tolist()))
    if all(issubclass(t, str) for t in types):
        return encode_strings(values, table=table, column=column)
    if _are_ints(types):
        return encode_ints(_check_int64(values, table, column))
    if all(issubclass(t, float | np.floating) for t in types):
        return encode_ints(_floats_to_ints(values.astype(np.float64), table, column))
    raise _mixed_types_error(values, table, column)


def _are_ints(types: set[type]) -> bool:
    """Return whether all types are whole numbers; bool and NumPy's time spans, derived from them, are not."""
    return all(issubclass(t, int | np.integer) and t not in (bool, np.timedelta64) for t in types)


def _mixed_types_error(values: Array, table: str, column: str) -> IdTypeError:
    """Return the error of the first value that is not an id, or of another type than the first row."""
    first = type(values[0])
    for row, value in enumerate(values.tolist()):
        if value is None or (isinstance(value, float) and math.isnan(value)):
            refuse_missing(row, table, column)
        problem, hint = "", _ID_TYPES_HINT
        if isinstance(value, bool) or not isinstance(value, int | str):
            shown = "" if hasattr(value, "ndim") else f" {value!r}"  # a table with odd cells cannot be shown
            problem = f"the {column} id{shown} is of type {type(value).__name__}."
        elif type(value) is not first:
            problem = (
                f"{column} ids are mixed: {values[0]!r} is {first.__name__}, "
                f"{value!r} is {type(value).__name__}."
            )
            hint = "Make them all int or all str, for example with .astype(str)."
        if problem:
            return IdTypeError(problem, table=table, column=column, row=row, hint=hint)
    return IdTypeError(f"{column} ids are of type {first.__name__}.", table=table, column=column)


def refuse_missing(row: int, table: str, column: str) -> NoReturn:
    """Raise an error: a row without an id is never dropped."""
    raise InputError(
        f"the {column} id is missing.",
        table=table,
        column=column,
        row=row,
        hint="Drop such rows, or give them an id, before evaluating.",
    )


def refuse_masked(values: Any, *, table: str | None = None) -> None:
    """Raise an error if some entries of a NumPy array are masked: what a mask hides is not data."""
    if isinstance(values, np.ndarray) and hasattr(values, "mask") and np.any(values.mask):
        raise InputError(
            f"{int(np.sum(values.mask)):,} of {values.size:,} entries are masked.",
            table=table,
            hint="Fill or drop them first, say with array.filled(-1) or array.compressed().",
        )


def refuse_meta(values: Any) -> None:
    """Raise an error for a tensor of torch's device "meta"."""
    if getattr(values, "is_meta", False):
        raise InputError(
            "a tensor on the device 'meta' has a shape and no values.",
            hint="Load the values first, as with module.to_empty(device='cpu') and load_state_dict.",
        )


def refuse_inexact_floats(values: Any, *, table: str, column: str) -> None:
    """Raise an error if ids came as floats of so few bits that two ids may have become one."""
    refuse_meta(values)
    dtype = str(getattr(values, "dtype", "")).removeprefix("torch.")
    bits = _ID_BITS.get(dtype)
    if bits is None or not len(values) or not bool((abs(values) >= 2**bits).any()):
        return
    entries = np.asarray(values.tolist())  # on whatever device, with whatever index, of whatever shape
    at = tuple(np.argwhere(abs(entries) >= 2**bits)[0].tolist())
    raise IdTypeError(
        f"the {column} id {float(entries[at])!r} came as {dtype}, which "
        f"holds whole numbers below 2^{bits} only: from there on different ids become equal.",
        table=table,
        column=column,
        row=at[0],
        hint="Keep ids as integers or text from the start.",
    )


def _check_int64(values: Array, table: str, column: str) -> Array:
    if values.dtype == object or (values.dtype.kind == "u" and values.dtype.itemsize == 8):
        ends = np.iinfo(np.int64)
        outside: Bool = np.asarray((values > ends.max) | (values < ends.min), dtype=bool)
        if outside.any():
            row = int(np.argmax(outside))
            raise IdTypeError(
                f"the {column} id {values[row]!s} does not fit into 64 bits.",
                table=table,
                column=column,
                row=row,
                hint="Use strings for such ids.",
            )
        return values.astype(np.int64)
    return values


def _floats_to_ints(values: Array, table: str, column: str) -> Array:
    not_finite = ~np.isfinite(values)
    if not_finite.any():
        refuse_missing(int(np.argmax(not_finite)), table, column)
    refuse_inexact_floats(values, table=table, column=column)
    values = values.astype(np.float64) if values.dtype.itemsize < 8 else values
    not_whole: Bool = (values != np.floor(values)) | (np.abs(values) >= FLOAT_INT_LIMIT)
    if not_whole.any():
        row = int(np.argmax(not_whole))
        raise IdTypeError(
            f"the {column} id {float(values[row])!r} is not a whole number below 2^53.",
            table=table,
            column=column,
            row=row,
            hint=_ID_TYPES_HINT,
        )
    text = f"{table}: the {column} ids came as floats; they are whole and were read as integers."
    warn(FloatIdWarning, text)
    return values.astype(np.int64)
