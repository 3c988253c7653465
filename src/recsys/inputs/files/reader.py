"""One file to Lists or Interactions: format, columns, types of ids, errors with their line.

Columns are found as in tables in memory. Only scores, ranks, grades and times become numbers; ids stay text
by default, so leading zeros and ids spelled NA or null are kept.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from recsys.errors import FileError, IdTypeError, InputError, UnknownNameError
from recsys.inputs.files.content import FileContent, detect_format, open_file
from recsys.inputs.files.json_records import read_json
from recsys.inputs.files.parquet import read_parquet
from recsys.inputs.files.text import TextTable, decode, split_table, split_trec
from recsys.inputs.frames import find_columns, read_interactions, read_lists
from recsys.inputs.ids import encode_ints, encode_strings
from recsys.inputs.rows import Rows, to_interactions, to_lists
from recsys.types import Array, Codes, Float, Ids, Interactions, Lists

FORMATS = ("csv", "tsv", "parquet", "trec", "inter", "ratings", "json", "jsonl")
ROLES = {
    "lists": ("case", "user", "item", "score", "rank"),
    "truth": ("case", "user", "item", "grade", "time"),
}
RATING_COLUMNS = ("user_id", "item_id", "rating", "timestamp")
IdKind = Literal["str", "int", "auto"]
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_CANONICAL_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_LOWEST_UNJUDGED = -2.0
_ID_ROLES, _NUMBER_ROLES = ("case", "user", "item"), ("score", "rank", "grade")
_AS_TEXT_HINT = "Read the ids as text: ids='str'."


@overload
def read_file(
    path: str | os.PathLike[str], kind: Literal["lists"] = ..., *, columns: Mapping[str, str] | None = ...,
    format: str | None = ..., ids: IdKind = ..., encoding: str = ...,
) -> Lists: ...  # fmt: skip
@overload
def read_file(
    path: str | os.PathLike[str], kind: Literal["truth"], *, columns: Mapping[str, str] | None = ...,
    format: str | None = ..., ids: IdKind = ..., encoding: str = ...,
) -> Interactions: ...  # fmt: skip
def read_file(
    path: str | os.PathLike[str],
    kind: Literal["lists", "truth"] = "lists",
    *,
    columns: Mapping[str, str] | None = None,
    format: str | None = None,  # noqa: A002 - the usual name
    ids: IdKind = "str",
    encoding: str = "utf-8",
) -> Lists | Interactions:
    r"""Read recommendation lists, or the truth, from a file.

    Args:
        path: a file, gzipped or not; "-" for standard input.
        kind: "lists", or "truth" for relevant, seen or training items.
        columns: names where detection fails: {"user": "uid", "item": "sku"}.
        format: one of csv, tsv, parquet, trec (run or judgements), inter (RecBole), ratings (user, item,
            rating and time without a header, as MovieLens and Amazon write them), json, jsonl; by default
            it follows from the ending of the name, else from the content.
        ids: "str" keeps ids as text, so "007" is not "7" and two files always match each other; "int" reads
            whole numbers, as tables in memory often hold; "auto" keeps the types of a Parquet file and
            reads text as numbers if every id is one.
        encoding: of text files.

    Returns:
        Lists for kind="lists", Interactions for kind="truth".

    Raises:
        FileError: the file is missing, damaged, unsafe or of another format; the message names the line.
        ColumnError: a column is missing or ambiguous.
        IdTypeError: ids are not of the type asked for.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "lists.csv"
    >>> _ = path.write_text("user_id,item_id,score\n007,NA,0.9\n007,b,0.5\n")
    >>> lists = read_file(path)
    >>> lists.cases.values.tolist(), lists.items.values.tolist()
    (['007'], ['NA', 'b'])
    """
    for what, value, known in (("kind", kind, ROLES), ("ids", ids, ("str", "int", "auto"))):
        if value not in known:
            raise UnknownNameError(f"value of {what}", value, known)
    source = open_file(path)
    form = format or detect_format(source)
    if form not in FORMATS:
        raise UnknownNameError("file format", form, FORMATS)
    options = _ReadOptions(kind, columns, ids)
    if form == "parquet":
        result = _read_parquet(source, options)
    else:
        result = _read_text(source, form, encoding, options)
    return replace(result, notes={**result.notes, "file": source.name, "format": form})


class _ReadOptions(NamedTuple):
    """What a file is read as: lists or truth, by which columns, with which type of ids."""

    kind: str
    columns: Mapping[str, str] | None
    ids: IdKind

    @property
    def roles(self) -> tuple[str, ...]:
        return ROLES[self.kind]

    def finish(self, data: Any, columns: Mapping[str, str] | None, name: str) -> Lists | Interactions:
        """Lists or Interactions from a table or container in memory."""
        if self.kind == "lists":
            return read_lists(data, columns=columns, table=name)
        return read_interactions(data, columns=columns, table=name)


def _read_parquet(source: FileContent, options: _ReadOptions) -> Lists | Interactions:
    frame, column_of = read_parquet(source, options.roles, options.columns)
    for role in ("case", "user", "item"):
        if role in column_of and options.ids != "auto":
            column = _integers_as_text(frame[column_of[role]]) if options.ids == "str" else None
            if column is None:
                column = convert_id_column(frame, column_of[role], options.ids, source.name)
            frame = frame.with_columns(column)
    with locate_errors(source.name):
        return options.finish(frame.to_native(), column_of, source.name)


def _integers_as_text(series: Any) -> Any:
    """An Arrow column of integers as text, each distinct one converted once; None for other columns."""
    native = series.to_native()
    if not series.dtype.is_integer() or not hasattr(native, "dictionary_encode"):
        return None
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    encoded = native.combine_chunks().dictionary_encode()
    texts = pa.DictionaryArray.from_arrays(encoded.indices, encoded.dictionary.cast(pa.string()))
    return nw.from_native(pa.chunked_array([texts]), series_only=True).alias(series.name)


def _read_text(source: FileContent, form: str, encoding: str, options: _ReadOptions) -> Lists | Interactions:
    name = source.name
    data = decode(source.data, name, encoding)
    if form in ("json", "jsonl"):
        content = read_json(
            data, name, options.roles, options.columns, lines=form == "jsonl", ids=options.ids
        )
        with locate_errors(name):
            return options.finish(content, options.columns, name)
    header = RATING_COLUMNS if form == "ratings" else None
    table = split_trec(data, name, options.kind) if form == "trec" else split_table(data, name, form, header)
    if form == "trec":
        column_of = {role: role for role in table.names if role in options.roles and role != "rank"}
    else:
        column_of = find_columns(table.names, options.roles, options.columns, name)
    with locate_errors(name, table):
        rows = _table_rows(table, column_of, options.ids, trec=form == "trec")
        return to_lists(rows) if options.kind == "lists" else to_interactions(rows)


def _table_rows(table: TextTable, column_of: Mapping[str, str], ids: IdKind, *, trec: bool) -> Rows:
    cells = dict(zip(column_of, table.pick(list(column_of.values())), strict=True))
    if len(next(iter(cells.values()))) == 0:
        raise FileError(f"{table.name} has a header and no rows.", hint="Check what wrote it.")
    extra: dict[str, Any] = {r: parse_numbers(c, r, table) for r, c in cells.items() if r in _NUMBER_ROLES}
    if "time" in cells:
        extra["time"] = parse_times(cells["time"])
    notes: dict[str, Any] = {
        "read": {f"{role}_column": name for role, name in column_of.items()},
        **table.notes,
    }
    if trec and "grade" in extra:
        cells, extra, n_unjudged = _drop_unjudged(cells, extra, table)
        notes |= {"unjudged": n_unjudged} if n_unjudged else {}
    ids_by_role = {r: encode_text(c, r, ids, table, notes) for r, c in cells.items() if r in _ID_ROLES}
    cases, case = ids_by_role["case"] if "case" in ids_by_role else ids_by_role["user"]
    items, item = ids_by_role["item"]
    if "case" in ids_by_role and "user" in ids_by_role:
        extra["user_ids"], extra["users"] = ids_by_role["user"]
    return Rows(table.name, cases, case, items, item, notes=notes, **extra)


def _drop_unjudged(
    cells: dict[str, Any], extra: dict[str, Any], table: TextTable
) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Leave out and count the rows without a judgement, which TREC writes as -1 or -2."""
    grade = extra["grade"]
    if len(grade) and float(grade.min()) < _LOWEST_UNJUDGED:
        row = int(np.argmin(grade))
        raise FileError(
            f"{table.name}, line {table.line(row)}: the judgement {grade[row]:g} is negative.",
            hint="-1 and -2 mean that the item was not judged; grades start at 0.",
        )
    keep = grade >= 0
    if keep.all():
        return cells, extra, 0
    if not keep.any():
        raise FileError(f"{table.name} holds no judgement: every line is -1.", hint="Check what wrote it.")
    ids = {role: np.asarray(cells[role], dtype=object)[keep] for role in ("user", "item")}
    return {**cells, **ids}, {"grade": grade[keep]}, int((~keep).sum())


def encode_text(
    column: Any, role: str, ids: IdKind, table: TextTable, notes: dict[str, Any]
) -> tuple[Ids, Codes]:
    """Ids and codes of a column of text, converted to the type asked for; an empty cell is an error."""
    values = column if hasattr(column, "combine_chunks") else np.asarray(column, dtype=object)
    text_ids, codes = encode_strings(values, table=table.name, column=role)
    if len(text_ids) and text_ids.values[0] == "":
        row = int(np.argmax(codes == 0))
        raise FileError(
            f"{table.name}, line {table.line(row)}: the {role} id is missing.",
            hint="Give the row an id, or take it out.",
        )
    n_padded = sum(value != value.strip() for value in text_ids.values.tolist())
    if n_padded:
        notes[f"padded_{role}_ids"] = n_padded
    return convert_ids(
        text_ids, codes, ids, f"{role} ids of {table.name}", lambda row: f", line {table.line(row)}"
    )


def convert_ids(ids: Ids, codes: Codes, kind: IdKind, what: str, row_location: Any) -> tuple[Ids, Codes]:
    """Text ids as whole numbers where asked for; the work is done per id, not per row."""
    if kind == "str":
        return ids, codes
    texts = ids.values.tolist()
    form = _INTEGER if kind == "int" else _CANONICAL_INTEGER
    first_bad = next((i for i, text in enumerate(texts) if not form.fullmatch(text)), None)
    if kind == "auto" and first_bad is not None:
        return ids, codes
    if first_bad is not None:
        where = f"{what}{row_location(int(np.argmax(codes == first_bad)))}"
        raise IdTypeError(
            f"{where}: {texts[first_bad]!r} is not a whole number of 64 bits.",
            hint=_AS_TEXT_HINT,
        )
    values = [int(text) for text in texts]
    if not -(1 << 63) <= min(values, default=0) <= max(values, default=0) < 1 << 63:
        raise IdTypeError(f"{what}: an id lies outside 64 bits.", hint=_AS_TEXT_HINT)
    int_ids, new_codes = encode_ints(np.array(values, dtype=np.int64))
    if len(int_ids) < len(ids):
        raise IdTypeError(
            f"{what}: two are the same whole number, such as '7' and '007'.", hint=_AS_TEXT_HINT
        )
    return int_ids, new_codes[codes]


def convert_id_column(frame: Any, name: str, ids: IdKind, file: str) -> Any:
    """An id column of a typed file as text or whole numbers; other types are checked later."""
    import narwhals.stable.v2 as nw

    series = frame[name]
    if ids == "str" and series.dtype.is_integer():
        return series.cast(nw.String)
    if ids == "int" and series.dtype in (nw.String, nw.Categorical, nw.Enum) and not series.is_null().any():
        text = np.asarray(series.cast(nw.String).to_list(), dtype=object)
        known, codes = encode_strings(text, table=file, column=name)
        known, codes = convert_ids(known, codes, "int", f"{name} ids of {file}", lambda row: f", row {row}")
        return nw.new_series(name, known.values[codes], nw.Int64, backend=frame.implementation)
    return series


def parse_numbers(column: Any, role: str, table: TextTable) -> Float:
    """Text as numbers, or an error that names the first line without a number."""
    if hasattr(column, "cast"):
        import pyarrow as pa

        try:
            return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
        except pa.ArrowException:
            column = column.to_pylist()
    # float("1_000") is Python syntax; in a file it is not a number.
    if "_" not in "".join(column):
        with suppress(ValueError):
            return np.fromiter(map(float, column), dtype=np.float64, count=len(column))
    row = next(i for i, text in enumerate(column) if not _is_number(text))
    raise FileError(
        f"{table.name}, line {table.line(row)}: the {role} {column[row]!r} is not a number.",
        hint=f"Every row needs a {role}; mend the line, or name another column for it.",
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def parse_times(column: Any) -> Array:
    """Whole numbers if all cells are, else the text."""
    if hasattr(column, "cast"):
        import pyarrow as pa
        import pyarrow.compute as pc

        # Arrow reads 0x10 as a number, but no time is written so.
        with suppress(pa.ArrowException):
            numbers = column.cast(pa.int64()).to_numpy()
            if not pc.any(pc.match_substring(column, "x", ignore_case=True)).as_py():
                return np.asarray(numbers)
    texts = column.to_pylist() if hasattr(column, "to_pylist") else column
    try:
        return np.array(texts, dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array(texts, dtype=object)


@contextmanager
def locate_errors(name: str, table: TextTable | None = None) -> Iterator[None]:
    """Errors about a row name its file and line."""
    try:
        yield
    except InputError as error:
        if name not in error.message:
            line = f", line {table.line(error.row)}" if table and isinstance(error.row, int) else ""
            error.message = f"{name}{line}: {error.message}"
        error.table = None
        raise
