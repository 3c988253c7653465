"""Text files: comma- and tab-separated tables, `.inter`, ratings without a header, TREC runs and judgements.

Lines become columns of text: Arrow splits large files without quotes, because it is fast; the standard csv
module splits all others, and finds the line of an error. Then only scores, ranks, grades and times become
numbers; ids stay text by default, so leading zeros and ids spelled NA or null are kept.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import ColumnError, FileError, InputError, Phrase, RecsysWarning, hush
from recsys.inputs.files.formats import FileContent, Format, ReadOptions, add_format, check_same_columns
from recsys.inputs.frames import (
    column_notes,
    detect_columns,
    find_columns,
    first_repeated,
    row_arrangement,
    unnamed_score,
)
from recsys.inputs.ids import IdKind, convert_ids, encode_strings
from recsys.inputs.rows import WHOLE_NUMBER, Rows, to_interactions, to_lists
from recsys.records.arrays import Array, Codes, Float, Ids, Interactions, Lists

_RECBOLE_NAMES = {
    "user": "user_id", "item": "item_id", "score": "score", "grade": "rating", "time": "timestamp",
}  # fmt: skip
RATING_COLUMNS = ("user_id", "item_id", "rating", "timestamp")
_ID_ROLES, _NUMBER_ROLES = ("case", "user", "item"), ("score", "rank", "grade")
_EXACT_NUMBERS = 2.0**53  # whole numbers below it are exact in float64

_DELIMITERS = (",", "\t", ";", "|")
_DOUBLE_COLON = b"\x1f"  # replaces the "::" of MovieLens, which the csv modules cannot split
_BOMS = {codecs.BOM_UTF8: "", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_BLANKS = bytes.maketrans(b"\t\r\x0b\x0c", b"    ")

# For fewer bytes the csv module takes less time than importing Arrow, or calling it once it is there.
_ARROW_BYTES, _ARROW_CALL_BYTES = 1 << 20, 1 << 14
_CSV_ROWS = 1 << 16  # split by the csv module at a time
_BLOCK_BYTES = 1 << 23  # of text, read at a time where the whole may not fit into memory
_FIRST_LINE = re.compile(rb"(?:\xef\xbb\xbf)?[\r\n]*[^\r\n]*(?:\r\n|\r|\n)?")
_ROWS_LOOKED_AT = 1000  # to tell what a column without a role holds


NumberedRows = Iterator[tuple[int, list[str]]]


@dataclass(frozen=True)
class TextTable:
    """Named columns of text; `pick` reads some of them, `line` finds the line of a row.

    A column is a list of cells, or of a large file a chunked array of Arrow.

    `parts` opens the tables of its files one after the other, if there are several.
    """

    name: str
    names: list[str]
    pick: Callable[[Sequence[str]], list[Any]]
    rows: Callable[[], NumberedRows]
    notes: dict[str, int] = field(default_factory=dict)
    parts: Callable[[], Iterator[TextTable]] | None = None

    def line(self, row: int) -> str:
        """Return the line of a row, from 1, for errors. The file is split again: for error messages only."""
        for table in (self,) if self.parts is None else self.parts():
            for line, _ in table.rows():
                if row == 0:
                    return f"line {line}" if table is self else f"line {line} of {table.name}"
                row -= 1
        return "line 0"


def read_text(source: FileContent, split: Callable[[bytes, str], TextTable], encoding: str) -> TextTable:
    """Return the table of a text file, or of several, one below the other, of which one is held at a time."""

    def split_part(part: FileContent) -> TextTable:
        return split(decode(part.data, part.name, encoding), part.name)

    def tables() -> Iterator[TextTable]:
        for part in source.parts:
            table = split_part(replace(part))  # a copy: the bytes that it has read go with it
            check_same_columns(source.parts[0], names, table.name, table.names)
            yield table

    def pick(selected: Sequence[str]) -> list[Any]:
        arrow = _import_arrow(sum(part.path.stat().st_size for part in source.parts if part.path is not None))
        columns: list[list[Any]] = [[] for _ in selected]
        for table in tables():
            for column, cells in zip(columns, table.pick(selected), strict=True):
                column.extend(_pieces(cells, arrow))
            for note, count in table.notes.items():
                notes[note] = notes.get(note, 0) + count
        return columns if arrow is None else [arrow.chunked_array(c, arrow.string()) for c in columns]

    def rows() -> NumberedRows:
        for table in tables():
            order = [table.names.index(name) for name in names]
            yield from ((line, [cells[at] for at in order]) for line, cells in table.rows())

    if not source.parts:
        return split_part(source)
    names, notes = split_part(replace(source.parts[0])).names, dict[str, int]()
    return TextTable(source.name, names, pick, rows, notes, tables)


def _pieces(column: Any, arrow: Any) -> list[Any]:
    """Return a column of one file as arrays of Arrow; without Arrow as its cells."""
    if arrow is None:
        return _cells(column)
    return [arrow.array(column, arrow.string())] if isinstance(column, list) else list(column.chunks)


def _cells(column: Any) -> list[str]:
    """Return a column as a list."""
    cells: list[str] = column if isinstance(column, list) else column.to_pylist()
    return cells


def decode(data: bytes, name: str, encoding: str, before: int = 0) -> bytes:
    """Return the data as UTF-8 without a byte-order mark, or raise an error that names the first wrong byte.

    So many bytes of the file come `before` the data.
    """
    for mark, encoding_name in _BOMS.items():
        if data.startswith(mark) and encoding_name and encoding == "utf-8":
            raise FileError(
                f"{name} is {encoding_name}.",
                hint=Phrase("Pass {read_file.encoding=}.", encoding=encoding_name),
            )
    start = 3 if data.startswith(codecs.BOM_UTF8) else 0
    body = data[start:] if start else data
    if encoding == "utf-8" and body.isascii() and b"\x00" not in body:
        return body
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise FileError(
            f"{name}, line {line}: byte {before + error.start + start} (0x{body[error.start]:02x}) is not "
            f"{encoding}.",
            hint=Phrase("Say how the file is written, for example {read_file.encoding='latin-1'}."),
        ) from error
    except (LookupError, TypeError, ValueError) as error:  # its name may be anything
        raise FileError(f"there is no encoding {encoding!r}.", hint="Pass a name such as 'utf-8'.") from error
    if "\x00" in text:
        raise FileError(
            f"{name} holds a NUL character (at {before + text.index(chr(0))}), so it is not text.",
            hint="If it is a table of another kind, name its format.",
        )
    return body if encoding == "utf-8" else text.encode()


def split_table(
    data: bytes, name: str, form: str, header: Sequence[str] | None = None, *, skip_first: bool = False
) -> TextTable:
    """Return a table with a header line (csv, tsv, inter), or one whose columns `header` names (ratings).

    `skip_first`: the first line shows how the others are split, and does not count as a row.
    """
    if header is not None:
        data = data.replace(b"::", _DOUBLE_COLON) if b"::" in data[: data.find(b"\n") + 1 or None] else data
    quoted = form != "inter" and header is None and b'"' in data
    head = data.lstrip(b"\r\n") if data[:1] in b"\r\n" else data
    first = re.match(rb"[^\r\n]*", head)
    end = first.end() if first else 0
    delimiter = _delimiter(head[:end].decode(), form, len(header or ()))
    skipped = 1 if header is None or skip_first else 0
    quotes_in_header_only = head.count(b'"', 0, end) % 2 == 0 and head.find(b'"', end) < 0

    def rows() -> NumberedRows:
        return _check_widths(_csv_reader(data, delimiter, quoted=quoted), name)

    first_row = next(rows(), None)
    if first_row is None:
        raise FileError(f"{name} is empty.", hint="Check what wrote it.")
    names = [cell.strip() for cell in first_row[1]] if header is None else list(header[: len(first_row[1])])
    line, width = first_row[0], len(first_row[1])
    if header is not None and not len(header) - 1 <= width <= len(header):  # the time may be missing
        raise FileError(
            f"{name}, line {line}: {width} columns, expected {len(header)}: {', '.join(header)}.",
            hint="Name another format, or give the table a header.",
        )

    def body() -> NumberedRows:
        return islice(rows(), skipped, None)

    def pick(selected: Sequence[str]) -> list[Any]:
        places = {name: place for place, name in reversed([*enumerate(names)])}  # of equal names the first
        at = [places[name] for name in selected]
        columns = None
        if not quoted or quotes_in_header_only:
            body_bytes = memoryview(head)[end if skipped else 0 :]  # as large as the file: not copied
            columns = _columns_by_arrow(body_bytes, delimiter, len(names), at)
        if columns is None:
            unchecked = islice(filter(None, _csv_reader(data, delimiter, quoted=quoted)), skipped, None)
            columns = _columns_by_row(unchecked, body, len(names), at, len(data))
        return columns

    return TextTable(name, names, pick, body)


def split_trec(data: bytes, name: str, kind: str) -> TextTable:
    """Return a TREC run (lists) or judgements (truth): columns between blanks, # starts a comment line."""
    run = ["user", "Q0", "item", "rank", "score", "tag"], "a run"
    judgements = ["user", "0", "item", "grade"], "judgements (qrels)"
    (names, own), (other_names, other) = (run, judgements) if kind == "lists" else (judgements, run)
    # One blank between cells, none at line ends, no comments.
    clean, n_comments = data.translate(_BLANKS), 0
    while b"  " in clean:
        clean = clean.replace(b"  ", b" ")
    clean = clean.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" \n")
    if clean.startswith(b"#") or b"\n#" in clean:
        clean, n_comments = re.subn(rb"(?m)^#[^\n]*\n?", b"", clean)

    def rows() -> NumberedRows:
        for number, line in enumerate(data.split(b"\n"), 1):
            cells = line.split()
            if not cells or cells[0].startswith(b"#"):
                continue
            if len(cells) != len(names):
                guess = (
                    f" It looks like {other} where {own} belongs." if len(cells) == len(other_names) else ""
                )
                problem = f"{len(cells)} columns, expected {len(names)}: {_shorten(line)}.{guess}"
                raise FileError(
                    f"{name}, line {number}: {problem}",
                    hint=f"The columns are {' '.join(names)}. Fix the line, or name another format.",
                )
            yield number, [cell.decode() for cell in cells]

    def pick(selected: Sequence[str]) -> list[Any]:
        at = [names.index(w) for w in selected]
        columns = _columns_by_arrow(clean, " ", len(names), at)
        if columns is None:
            unchecked = filter(None, _csv_reader(clean, " ", quoted=False))
            columns = _columns_by_row(unchecked, rows, len(names), at, len(clean))
        return columns

    return TextTable(name, names, pick, rows, {"comments": n_comments} if n_comments else {})


def _delimiter(header: str, form: str, width: int = 0) -> str:
    """Return the separator of the cells, by format or header; `width`: the number of cells needed."""
    fits = [mark for mark in (_DOUBLE_COLON.decode(), *_DELIMITERS) if header.count(mark) + 1 == width > 1]
    if fits or _DOUBLE_COLON.decode() in header:
        return fits[0] if fits else _DOUBLE_COLON.decode()
    usual = "," if form == "csv" else "\t"
    if usual in header or form == "inter":
        return usual
    return next((d for d in _DELIMITERS if d in header), usual)


def _csv_reader(data: bytes, delimiter: str, *, quoted: bool) -> Any:
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    if quoted:
        return csv.reader(text, delimiter=delimiter, strict=True)
    return csv.reader(text, delimiter=delimiter, quoting=csv.QUOTE_NONE, strict=True)


def _check_widths(reader: Any, name: str) -> NumberedRows:
    """Return rows with their line numbers; raise an error that names the first row of another length."""
    width, last = 0, 0
    try:
        for row in reader:
            start, last = last + 1, reader.line_num
            if not row:
                continue
            width = width or len(row)
            if len(row) != width:
                raise FileError(
                    f"{name}, line {start}: {len(row)} columns, expected {width}: {_shorten(','.join(row))}.",
                    hint="The line may be cut off, or hold a separator that should be quoted.",
                )
            yield start, row
    except csv.Error as error:
        raise FileError(f"{name}, line {last + 1}: {error}.", hint="Check the quotes there.") from error


def _columns_by_row(
    rows: Iterator[list[str]], checked: Callable[[], NumberedRows], width: int, at: list[int], size: int
) -> list[Any]:
    """Columns of rows of text, of `size` bytes in all; where a row is wrong, `checked` raises its error.

    Rows of Python strings take many times the memory of their text, so Arrow packs each block of rows.
    """
    arrow = _import_arrow(size)
    columns: list[list[Any]] = [[] for _ in at]
    try:
        while block := list(islice(rows, _CSV_ROWS)):
            if set(map(len, block)) != {width}:
                raise csv.Error  # noqa: TRY301 - as where the reader finds a fault
            for column, i in zip(columns, at, strict=True):
                column.extend(_pieces([row[i] for row in block], arrow))
    except csv.Error:
        return _columns_by_row((cells for _, cells in checked()), checked, width, at, size)
    return columns if arrow is None else [arrow.chunked_array(c, arrow.string()) for c in columns]


def _import_arrow(size: int) -> Any:
    """Return the module pyarrow; None for a small file, or if it is not installed."""
    imported = sys.modules.get("pyarrow") is not None
    if size < (min(_ARROW_BYTES, _ARROW_CALL_BYTES) if imported else _ARROW_BYTES):
        return None
    try:
        import pyarrow as pa
    except ImportError:
        return None
    return pa


def _columns_by_arrow(
    body: bytes | memoryview, delimiter: str, width: int, at: list[int]
) -> list[Any] | None:
    """Columns split by Arrow; None for a small file, or if Arrow is not installed or cannot split it."""
    pa = _import_arrow(len(body))
    if pa is None:
        return None
    from pyarrow import csv as arrow_csv

    names = [str(i) for i in range(width)]
    if not re.search(rb"[^\r\n]", body):
        return [[] for _ in at]
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(body),
            read_options=arrow_csv.ReadOptions(column_names=names, use_threads=False),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, quote_char=False),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), include_columns=[str(i) for i in at]
            ),
        )
    except pa.ArrowException:
        return None
    return [table.column(str(i)) for i in at]


def _shorten(line: str | bytes) -> str:
    text = line.decode(errors="replace") if isinstance(line, bytes) else line
    return repr(text[:60] + "…" if len(text) > 60 else text)


def _split(
    form: str, kind: str, data: bytes, name: str, *,
    header: Sequence[str] | None = None, skip_first: bool = False,
) -> TextTable:  # fmt: skip
    if form == "trec":
        return split_trec(data, name, kind)
    header = RATING_COLUMNS if form == "ratings" and header is None else header
    return split_table(data, name, form, header, skip_first=skip_first)


def _find_columns(form: str, names: list[str], source: FileContent, options: ReadOptions) -> dict[str, str]:
    if form == "trec":
        return {role: role for role in names if role in options.roles and role != "rank"}
    return find_columns(names, options.roles, options.columns, source.name)


def _read_blocks(
    form: str, source: FileContent, options: ReadOptions
) -> tuple[dict[str, str], Iterator[Any]]:
    """Read the columns with a role, in Arrow tables of some rows each: ids as text, others as numbers."""
    import pyarrow as pa

    blocks = _blocks_of(form, source)
    first = next(blocks)
    names = first.split(form, options.kind).names
    column_of = _find_columns(form, names, source, options)

    def columns_of(table: TextTable) -> dict[str, Any]:
        check_same_columns((source.parts or (source,))[0], names, table.name, table.names)
        with locate_errors(table.name, table.line), hush(RecsysWarning):
            cells = dict(zip(column_of, table.pick(list(column_of.values())), strict=True))
            cells.pop("time", None)
            numbers = _parse_cells(cells, options, table, {})[0] if len(cells["item"]) else {}
        texts = {role: pa.chunked_array(_pieces(cell, pa), pa.string()) for role, cell in cells.items()}
        return texts | {role: pa.array(values) for role, values in numbers.items()}

    def tables() -> Iterator[Any]:
        n_rows = 0
        for block in chain([first], blocks):
            try:
                columns = columns_of(block.split(form, options.kind))
            except InputError:
                columns_of(block.split(form, options.kind, in_place=True))  # which names the right line
                raise
            if len(columns["item"]):
                yield pa.table({column_of[role]: values for role, values in columns.items()})
            n_rows += len(columns["item"])
        if not n_rows:
            raise _no_rows(source.name)

    return column_of, tables()


class _TextBlock(NamedTuple):
    """Some rows of a file: its first line, their bytes, and how many lines and bytes come before."""

    file: FileContent
    first: bytes
    data: bytes
    lines: int
    before: int

    def split(self, form: str, kind: str, *, in_place: bool = False) -> TextTable:
        """Return the rows below the first line; `in_place`, below as many lines as in the file."""
        above = self.first + b"\n" * (in_place * (self.lines - _n_lines(self.first, form)))
        data = decode(above + self.data, self.file.name, "utf-8", self.before - len(above))
        return _split(form, kind, data, self.file.name, skip_first=bool(self.first))


def _blocks_of(form: str, source: FileContent) -> Iterator[_TextBlock]:
    """Yield the files in blocks of whole rows."""
    for file in source.parts or (source,):
        first, rest, lines, before = b"", b"", 0, 0
        for chunk in chain(file.chunks(_BLOCK_BYTES), (b"",)):
            rest += chunk
            line = first or _FIRST_LINE.match(rest)[0]  # type: ignore[index]
            end = _end_of_rows(rest, form, line) if chunk else len(rest)
            if end:
                yield _TextBlock(file, first, rest[:end], lines, before)
                lines, before = lines + _n_lines(rest[:end], form), before + end
                first, rest = b"" if form == "trec" else line, rest[end:]


def _end_of_rows(data: bytes, form: str, first: bytes) -> int:
    """Return where the last row that is whole ends; 0 if that cannot be known yet."""
    # A return at the very end may be the first half of a line end.
    end = 1 + max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1) if form != "trec" else -1)
    if form in ("csv", "tsv") and b'"' in data[:end]:  # cells in quotes may hold line ends
        if first.count(b'"') % 2:
            return 0
        lines, done = [*io.StringIO(data[:end].decode("latin-1"), newline="")], 0
        reader = csv.reader(lines, delimiter=_delimiter(first.decode("latin-1"), form), strict=True)
        try:
            for _ in reader:
                done = reader.line_num
        except csv.Error as error:
            if "unexpected end" in str(error):
                return sum(map(len, lines[:done]))
    return end


def _n_lines(data: bytes, form: str) -> int:
    """Return how many lines end in the data."""
    returns = data.count(b"\r") - data.count(b"\r\n") if form != "trec" else 0
    return data.count(b"\n") + returns


def _no_rows(name: str) -> FileError:
    return FileError(f"{name} has a header and no rows.", hint="Check what wrote it.")


def _read(form: str, source: FileContent, options: ReadOptions) -> Lists | Interactions:
    """Lists or interactions from the columns that have a role; errors name the line."""
    table = read_text(source, partial(_split, form, options.kind), options.encoding)
    column_of = _find_columns(form, table.names, source, options)
    with locate_errors(table.name, table.line):
        if options.ranked_by_rows(column_of):
            _refuse_unnamed_score(table, column_of)
        cells = dict(zip(column_of, table.pick(list(column_of.values())), strict=True))
        if len(next(iter(cells.values()))) == 0:
            raise _no_rows(table.name)
        notes: dict[str, Any] = {"read": column_notes(column_of, table.names), **table.notes}
        extra, coded = _parse_cells(cells, options, table, notes)
        if "case" in coded and "user" in coded:
            extra["user_ids"], extra["users"] = coded["user"]
        cases, case = coded.get("case") or coded["user"]
        if options.ranked_by_rows(column_of):
            notes["read"]["rows"] = row_arrangement(case)
        rows = Rows(table.name, cases, case, *coded["item"], notes=notes, **extra)
        return to_lists(rows) if options.kind == "lists" else to_interactions(rows, negatives=True)


def _parse_cells(
    cells: Mapping[str, Any], options: ReadOptions, table: TextTable, notes: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, tuple[Ids, Codes]]]:
    """Return the columns of numbers and times by role, and the ids with their codes."""
    extra: dict[str, Any] = {
        role: _parse_numbers(column, role, table) for role, column in cells.items() if role in _NUMBER_ROLES
    }
    if "score" in extra and (options.text or not np.abs(extra["score"]).max() < _EXACT_NUMBERS):
        # Whole numbers that are compared digit by digit.
        extra["score"] = np.array(_cells(cells["score"]), dtype=object)
    if "time" in cells:
        extra["time"] = _parse_times(cells["time"])
    ids = {role: column for role, column in cells.items() if role in _ID_ROLES}
    return extra, {
        role: _encode_text(column, role, options.ids, table, notes) for role, column in ids.items()
    }


def _refuse_unnamed_score(table: TextTable, column_of: Mapping[str, str]) -> None:
    """Raise an error if the first rows of an unused column are decimal numbers, as scores are."""
    first_rows = [cells for _, cells in islice(table.rows(), _ROWS_LOOKED_AT)]
    for at, name in enumerate(table.names):
        column = [cells[at] for cells in first_rows]
        whole = all(map(WHOLE_NUMBER.fullmatch, column))
        if name not in column_of.values() and not whole and all(map(_is_number, column)):
            raise unnamed_score(name, table.name)


def _encode_text(
    column: Any, role: str, ids: IdKind | None, table: TextTable, notes: dict[str, Any]
) -> tuple[Ids, Codes]:
    """Return ids, of the type asked for, and codes of a column of text; raise an error at an empty cell."""
    values = np.asarray(column, dtype=object) if isinstance(column, list) else column
    text_ids, codes = encode_strings(values, table=table.name, column=role)
    if len(text_ids) and text_ids.values[0] == "":
        row = int(np.argmax(codes == 0))
        raise FileError(
            f"{table.name}, {table.line(row)}: the {role} id is missing.",
            hint="Give the row an id, or take it out.",
        )
    n_padded = sum(value != value.strip() for value in text_ids.values.tolist())
    if n_padded:
        notes[f"padded_{role}_ids"] = n_padded
    return convert_ids(
        text_ids, codes, ids, f"{role} ids of {table.name}", lambda row: f", {table.line(row)}"
    )


def _parse_numbers(column: Any, role: str, table: TextTable) -> Float:
    """Return text as numbers, or raise an error that names the first line without a number."""
    if not isinstance(column, list):
        import pyarrow as pa

        try:
            return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
        except pa.ArrowException:
            column = _cells(column)
    # float() also reads 1_000 and digits of other scripts; in a file they are not numbers.
    texts = "".join(column)
    if "_" not in texts and texts.isascii():
        with suppress(ValueError):
            return np.fromiter(map(float, column), dtype=np.float64, count=len(column))
    row = next(i for i, text in enumerate(column) if not _is_number(text))
    raise FileError(
        f"{table.name}, {table.line(row)}: the {role} {column[row]!r} is not a number.",
        hint=f"Every row needs a {role}; fix the line, or name another column for it.",
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text.isascii()


def _parse_times(column: Any) -> Array:
    """Whole numbers if all cells are, else the text."""
    if not isinstance(column, list):
        import pyarrow as pa
        import pyarrow.compute as pc

        # Arrow reads 0x10 as a number, but no time is written so.
        with suppress(pa.ArrowException):
            numbers = column.cast(pa.int64()).to_numpy()
            if not pc.any(pc.match_substring(column, "x", ignore_case=True)).as_py():
                return np.asarray(numbers)
    texts = _cells(column)
    if all(map(WHOLE_NUMBER.fullmatch, texts)):
        with suppress(OverflowError):
            return np.fromiter(map(int, texts), dtype=np.int64, count=len(texts))
    return np.array(texts, dtype=object)


@contextmanager
def locate_errors(name: str, line: Callable[[int], str] | None = None) -> Iterator[None]:
    """Errors about a row name its file and, where `line` finds it, its line."""
    try:
        yield
    except InputError as error:
        if name not in error.message:
            place = f", {line(error.row)}" if line and isinstance(error.row, int) else ""
            error.message = f"{name}{place}: " + error.message
        error.table = None
        raise


def _read_whole(form: str, source: FileContent, options: ReadOptions) -> tuple[Any, dict[str, str]]:
    """Return every column; of TREC files only judgements are tables of interactions."""
    table = read_text(source, partial(_split, form, "truth", header=options.header), options.encoding)
    table = replace(table, names=["user", "item", "grade"]) if form == "trec" else table
    return typed_table(table, options)


def typed_table(table: TextTable, options: ReadOptions) -> tuple[Any, dict[str, str]]:
    """Return a pandas table, and {role: column}: columns with a role are typed, all others stay text.

    So a table written again equals the one read.
    """
    import pandas as pd

    repeated = first_repeated(table.names)
    if repeated is not None:
        raise FileError(f"{table.name}: the column {repeated!r} occurs twice.", hint="Rename one of the two.")
    column_of = detect_columns(table.names, ("user", "item", "grade", "time"), options.columns, table.name)
    if not table.names:
        raise FileError(f"{table.name} has no columns.", hint="Check what wrote it.")
    cells_by_name = dict(zip(table.names, table.pick(table.names), strict=True))
    if len(next(iter(cells_by_name.values()))) == 0:
        raise _no_rows(table.name)
    roles = {} if options.text else {name: role for role, name in column_of.items()}
    columns: dict[str, Any] = {}
    for name, column in cells_by_name.items():
        role = roles.get(name)
        if role in ("user", "item"):
            known, codes = _encode_text(column, role, options.ids, table, {})
            columns[name] = known.values[codes]
        elif role == "grade":
            columns[name] = _parse_numbers(column, role, table)
        elif role == "time":  # whole or decimal numbers, or the text: dates are parsed where they are needed
            columns[name] = _parse_times(column)
            if columns[name].dtype == object and all(map(_is_number, columns[name].tolist())):
                columns[name] = columns[name].astype(np.float64)
        else:
            columns[name] = np.array(_cells(column), dtype=object)
    return pd.DataFrame(columns), column_of


def _write_separated(separator: str, frame: Any, _name: str) -> bytes:
    text: str = frame.to_pandas().to_csv(sep=separator, index=False, lineterminator="\n")
    return text.encode()


def _write_inter(frame: Any, name: str) -> bytes:
    """Without quotes: a cell is the text between two tabs.

    RecBole finds columns by name and type: a column that has no type yet gets the name it looks for.
    """
    table = frame.to_pandas()
    role_of: dict[str, str] = {}
    for role in _RECBOLE_NAMES:
        with suppress(ColumnError):  # several columns could have this role, so none of them is renamed
            role_of |= dict.fromkeys(detect_columns([*table], (role,), None, name).values(), role)
    names = []
    for column in table:
        cells = table[column].tolist()
        texts = [column, *(cell for cell in cells if isinstance(cell, str))]
        _refuse_cells(texts, name, "no tabs or line breaks in cells", r"[\t\r\n]")
        if role_of.get(column) in ("user", "item"):
            _refuse_cells(cells, name, "no empty ids", r"^$")
        names.append(_recbole_name(str(column), role_of.get(column), cells))
    text: str = table.to_csv(sep="\t", index=False, header=names, lineterminator="\n", quoting=csv.QUOTE_NONE)
    return text.encode()


def _recbole_name(column: str, role: str | None, cells: list[Any]) -> str:
    """Return the header of a column: the name RecBole gives its role by default, and its type."""
    if ":" in column:
        return column
    is_id = role in ("user", "item")
    kind = "float" if not is_id and all(_is_number(str(cell)) for cell in cells) else "token"
    return f"{_RECBOLE_NAMES[role] if role else column}:{kind}"


def _refuse_cells(cells: Any, name: str, what: str, pattern: str) -> None:
    """Raise an error that names the first text a format has no way to write; a missing id is empty."""
    for cell in cells:
        is_missing = cell is None or (isinstance(cell, float) and np.isnan(cell))
        text = "" if is_missing else str(cell)
        if re.search(pattern, text):
            raise FileError(
                f"{text!r} cannot be written to {name}: the format allows {what}.",
                hint="Write .csv, .tsv or .parquet, or give the rows other ids.",
            )


def _write_trec(frame: Any, name: str) -> bytes:
    """Return a run, best first, or judgements, by the ending of the name."""
    kind = "truth" if name.lower().endswith((".qrels", ".qrel")) else "lists"
    known = ("user", "item", "grade") if kind == "truth" else ("user", "item", "score", "rank")
    table = frame.to_pandas()
    column_of = find_columns([*map(str, table)], known, None, name)
    extra = [column for column in map(str, table) if column not in column_of.values()]
    if extra:
        raise FileError(
            f"the column {extra[0]!r} has no place in {name}, a TREC file.",
            hint=f"Drop it, or name it {' or '.join(known[2:])}; .csv and .parquet hold every column.",
        )
    columns = {role: table[column].tolist() for role, column in column_of.items()}
    for role in ("user", "item"):
        _refuse_cells(columns[role], name, "no empty ids and no blanks in them", r"^$|\s")
    _refuse_cells(columns["user"], name, "no user that begins with #, as comments do", "^#")
    lines = _judgement_lines(columns, name) if kind == "truth" else _run_lines(columns, name)
    return "".join(f"{line}\n" for line in lines).encode()


def _judgement_lines(columns: dict[str, list[Any]], name: str) -> Iterator[str]:
    users, items = columns["user"], columns["item"]
    for user, item, grade in zip(users, items, columns.get("grade", [1] * len(users)), strict=True):
        if not _is_number(str(grade)) or not float(grade).is_integer():
            raise FileError(
                f"the grade {grade!r} of item {item!r} cannot be written to {name}: judgements of TREC are "
                "whole numbers.",
                hint="Round the grades, or write .csv or .parquet.",
            )
        yield f"{user} 0 {item} {int(float(grade))}"


def _run_lines(columns: dict[str, list[Any]], name: str) -> Iterator[str]:
    """Yield lines by user, as they first occur; a run without scores gets falling whole numbers."""
    if not {"score", "rank"} & columns.keys():
        raise FileError(
            f"{name} is a TREC run, and the table has neither scores nor ranks.",
            hint="Add a column score or rank; judgements are written to .qrels.",
        )
    numbers = {
        role: _finite_cells(columns[role], role, name) for role in ("score", "rank") if role in columns
    }
    user_of_row = columns["user"]
    turn = {user: n for n, user in enumerate(dict.fromkeys(user_of_row))}
    key = [-score for score in numbers["score"]] if "rank" not in numbers else numbers["rank"]
    order = sorted(range(len(key)), key=lambda row: (turn[user_of_row[row]], key[row]))
    last = int(max(numbers.get("rank", [0]), default=0))
    place, before = 0, None
    for row in order:
        user = user_of_row[row]
        place = place + 1 if before is not None and user == user_of_row[before] else 1
        score = numbers["score"][row] if "score" in numbers else last + 1 - int(numbers["rank"][row])
        if "score" in numbers and place > 1 and score > numbers["score"][before or 0]:
            raise FileError(
                f"the ranks and the scores of user {user!r} disagree, and {name} is ordered by scores.",
                hint="Drop one of the two columns.",
            )
        yield f"{user} Q0 {columns['item'][row]} {place} {score!r} recsys"
        before = row


def _finite_cells(cells: list[Any], role: str, name: str) -> list[float]:
    for cell in cells:
        if not _is_number(str(cell)) or not np.isfinite(float(cell)):
            raise FileError(
                f"the {role} {cell!r} cannot be written to {name}.", hint=f"Every {role} is a number."
            )
    return [float(cell) for cell in cells]


def first_lines(head: bytes) -> list[bytes]:
    """Return the lines at the beginning of a file that are not blank; at least one, which may be empty."""
    return [line for line in head.removeprefix(codecs.BOM_UTF8).splitlines() if line.strip()] or [b""]


def _begins_like_trec(head: bytes) -> bool:
    """Six columns between blanks with rank and score (a run), or four with a judgement."""
    cells = next((line.split() for line in first_lines(head) if not line.lstrip().startswith(b"#")), [])
    if len(cells) == 6:
        return _is_number_cell(cells[3]) and _is_number_cell(cells[4])
    return len(cells) == 4 and _is_number_cell(cells[3]) and b"," not in cells[0]


def _begins_like_ratings(head: bytes) -> bool:
    """Return whether the first line is user, item, rating and a time since 1970, so that there is no header.

    TREC judgements have four columns too, but their last column is not a time.
    """
    line = head.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n").split(b"\n", 1)[0].strip()
    cells = line.split(next((mark for mark in (b"::", b"\t", b",", b";") if mark in line), b"\t"))
    if len(cells) == 3 and b"::" in line:
        return _is_number_cell(cells[2])
    return len(cells) == 4 and _is_number_cell(cells[2]) and re.fullmatch(rb"\d{9,13}", cells[3]) is not None


def _is_number_cell(cell: bytes) -> bool:
    return re.fullmatch(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", cell) is not None


def _add(form: str, **facts: Any) -> None:
    facts["read_blocks"] = partial(_read_blocks, form)
    add_format(Format(form, partial(_read, form), partial(_read_whole, form), **facts))


_add(
    "csv",
    write=partial(_write_separated, ","),
    suffixes=(".csv",),
    help=r"none of the others; the separator is that of the header: `,` tab `;` `\|`",
)
_add(
    "tsv",
    write=partial(_write_separated, "\t"),
    suffixes=(".tsv", ".tab"),
    recognises=lambda head: b"\t" in first_lines(head)[0] and b"," not in first_lines(head)[0],
    help="tabs and no commas in the header",
)
_add(
    "inter",
    write=_write_inter,
    suffixes=(".inter",),
    recognises=lambda head: b":token" in first_lines(head)[0],
    help="a header such as `user_id:token`",
    lists="RecBole's columns",
    truth="the same",
)
_add(
    "trec",
    write=_write_trec,
    suffixes=(".qrels", ".qrel", ".run", ".trec"),
    recognises=_begins_like_trec,
    help="six or four columns between blanks",
    lists="run: `qid Q0 docno rank score tag`",
    truth="qrels: `qid 0 docno judgement`",
)
_add(
    "ratings",
    suffixes=(".csv", ".tsv", ".tab"),
    recognises=_begins_like_ratings,
    help="no header, and a line such as `196⇥242⇥3⇥881250949`, `1::1193::5::978300760` or "
    "`A2CX…,0321732944,5.0,1341100800`",
    lists="user, item, score",
    truth="user, item, grade, time",
)
