"""Lines of text to columns of text: comma- and tab-separated tables, `.inter`, TREC runs and judgements.

Cells stay text. Arrow splits large files without quotes, because it is fast; the standard csv module splits
all others, and finds the line of an error.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from recsys.errors import FileError

_DELIMITERS = (",", "\t", ";", "|")
_DOUBLE_COLON = b"\x1f"  # replaces the "::" of MovieLens, which the csv modules cannot split
_BOMS = {codecs.BOM_UTF8: "", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_BLANKS = bytes.maketrans(b"\t\r\x0b\x0c", b"    ")

# For fewer bytes the csv module takes less time than importing Arrow.
_ARROW_BYTES = 1 << 20
_CSV_ROWS = 1 << 16  # split by the csv module at a time


@dataclass(frozen=True)
class TextTable:
    """Named columns of text; `pick` reads some of them, `line` finds the line of a row."""

    name: str
    names: list[str]
    pick: Callable[[Sequence[str]], list[Any]]
    rows: Callable[[], Iterator[tuple[int, list[str]]]]
    notes: dict[str, int] = field(default_factory=dict)

    def line(self, row: int) -> int:
        """Line number of a row, from 1. The file is split again: this is for error messages only."""
        for at, (line, _) in enumerate(self.rows()):
            if at == row:
                return line
        return 0


def decode(data: bytes, name: str, encoding: str) -> bytes:
    """The data as UTF-8 without a byte-order mark, or an error that names the first wrong byte."""
    for mark, encoding_name in _BOMS.items():
        if data.startswith(mark) and encoding_name and encoding == "utf-8":
            raise FileError(f"{name} is {encoding_name}.", hint=f"Pass encoding={encoding_name!r}.")
    start = 3 if data.startswith(codecs.BOM_UTF8) else 0
    body = data[start:] if start else data
    if encoding == "utf-8" and body.isascii() and b"\x00" not in body:
        return body
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise FileError(
            f"{name}, line {line}: byte {error.start + start} (0x{body[error.start]:02x}) is not {encoding}.",
            hint="Say how the file is written, for example encoding='latin-1'.",
        ) from error
    except LookupError as error:
        raise FileError(f"there is no encoding {encoding!r}.", hint="Pass a name such as 'utf-8'.") from error
    if "\x00" in text:
        raise FileError(
            f"{name} holds a NUL character (at {text.index(chr(0))}), so it is not text.",
            hint="If it is a table of another kind, name its format.",
        )
    return body if encoding == "utf-8" else text.encode()


def split_table(data: bytes, name: str, form: str, header: Sequence[str] | None = None) -> TextTable:
    """A table with a header line (csv, tsv, inter), or one whose columns `header` names (ratings)."""
    if header is not None:
        data = data.replace(b"::", _DOUBLE_COLON) if b"::" in data[: data.find(b"\n") + 1 or None] else data
    quoted = form != "inter" and header is None and b'"' in data
    head = data.lstrip(b"\r\n") if data[:1] in b"\r\n" else data
    first = re.match(rb"[^\r\n]*", head)
    end = first.end() if first else 0
    delimiter = _delimiter(head[:end].decode(), form, len(header or ()))
    skipped = 1 if header is None else 0
    quotes_in_header_only = head.count(b'"', 0, end) % 2 == 0 and head.find(b'"', end) < 0

    def rows() -> Iterator[tuple[int, list[str]]]:
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

    def pick(selected: Sequence[str]) -> list[Any]:
        at = [names.index(w) for w in selected]
        body_bytes = memoryview(head)[end if skipped else 0 :]  # as large as the file: not copied
        columns = None
        if not quoted or quotes_in_header_only:
            columns = _columns_by_arrow(body_bytes, delimiter, len(names), at)
        if columns is None:
            reader, arrow = _csv_reader(data, delimiter, quoted=quoted), _import_arrow(len(data))
            columns = _columns_by_csv(reader, len(names), at, header=skipped, arrow=arrow)
        return _columns_by_row(body(), at) if columns is None else columns

    def body() -> Iterator[tuple[int, list[str]]]:
        return _skip_header(rows()) if skipped else rows()

    return TextTable(name, names, pick, body)


def split_trec(data: bytes, name: str, kind: str) -> TextTable:
    """A TREC run (lists) or judgements (truth): columns between blanks, # starts a comment line."""
    names = {
        "lists": ["user", "Q0", "item", "rank", "score", "tag"],
        "truth": ["user", "0", "item", "grade"],
    }[kind]
    clean, comments = _normalise_trec(data)

    def rows() -> Iterator[tuple[int, list[str]]]:
        return _trec_rows(data, names, name, kind)

    def pick(selected: Sequence[str]) -> list[Any]:
        at = [names.index(w) for w in selected]
        columns = _columns_by_arrow(clean, " ", len(names), at)
        if columns is None:
            reader, arrow = _csv_reader(clean, " ", quoted=False), _import_arrow(len(clean))
            columns = _columns_by_csv(reader, len(names), at, header=0, arrow=arrow)
        return _columns_by_row(rows(), at) if columns is None else columns

    return TextTable(name, names, pick, rows, {"comments": comments} if comments else {})


def _normalise_trec(data: bytes) -> tuple[bytes, int]:
    """The data with one blank between cells, without blanks at line ends and comments; number of comments."""
    data = data.translate(_BLANKS)
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    data = data.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" \n")
    if data.startswith(b"#") or b"\n#" in data:
        data, count = re.subn(rb"(?m)^#[^\n]*\n?", b"", data)
        return data, count
    return data, 0


def _trec_rows(data: bytes, names: list[str], name: str, kind: str) -> Iterator[tuple[int, list[str]]]:
    other = {"lists": (4, "judgements (qrels)", "a run"), "truth": (6, "a run", "judgements (qrels)")}[kind]
    for number, line in enumerate(data.split(b"\n"), 1):
        cells = line.split()
        if not cells or cells[0].startswith(b"#"):
            continue
        if len(cells) != len(names):
            guess = f" It looks like {other[1]} where {other[2]} belongs." if len(cells) == other[0] else ""
            problem = f"{len(cells)} columns, expected {len(names)}: {_shorten(line)}.{guess}"
            raise FileError(
                f"{name}, line {number}: {problem}",
                hint=f"The columns are {' '.join(names)}. Mend the line, or name another format.",
            )
        yield number, [cell.decode() for cell in cells]


def _delimiter(header: str, form: str, width: int = 0) -> str:
    """The separator of the cells, by format or by the header; `width`: the number of cells there must be."""
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


def _check_widths(reader: Any, name: str) -> Iterator[tuple[int, list[str]]]:
    """Rows with their line numbers; an error names the first row that is not as long as the first one."""
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


def _columns_by_row(rows: Iterator[tuple[int, list[str]]], at: list[int]) -> list[Any]:
    selected = [[row[i] for i in at] for _, row in rows]
    return [list(column) for column in zip(*selected, strict=True)] if selected else [[] for _ in at]


def _columns_by_csv(reader: Any, width: int, at: list[int], *, header: int, arrow: Any) -> list[Any] | None:
    """Columns split by the csv module; None if a line is wrong.

    Rows of Python strings take many times the memory of their text, so Arrow packs each block of rows.
    """
    rows = filter(None, reader)
    parts: list[list[Any]] = []
    try:
        while block := list(islice(rows, _CSV_ROWS)):
            if set(map(len, block)) != {width}:
                return None
            columns = [[row[i] for row in block[0 if parts else header :]] for i in at]
            parts.append(columns if arrow is None else [arrow.array(c, arrow.string()) for c in columns])
    except csv.Error:
        return None
    if not parts:
        return None
    whole = zip(*parts, strict=True)
    return [list(chain.from_iterable(c)) if arrow is None else arrow.chunked_array(c) for c in whole]


def _import_arrow(size: int) -> Any:
    """The module pyarrow; None for a small file, or if it is not installed."""
    if size < _ARROW_BYTES:
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


def _skip_header(rows: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    next(rows)
    return rows


def _shorten(line: str | bytes) -> str:
    text = line.decode(errors="replace") if isinstance(line, bytes) else line
    return repr(text[:60] + "…" if len(text) > 60 else text)
