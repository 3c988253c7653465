"""Text to columns of text, by one of two splitters that agree.

Arrow splits what is large and has no quotes, because it is fast; the standard csv module splits all else, and
finds the line of an error.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Protocol

import numpy as np

from recsys.errors import FileError, Phrase
from recsys.inputs.files.formats import FileContent, ReadOptions, check_same_columns
from recsys.inputs.rows import WHOLE_NUMBER
from recsys.records.arrays import Array, Float

RATING_COLUMNS = ("user_id", "item_id", "rating", "timestamp")
_DELIMITERS = (",", "\t", ";", "|")
_DOUBLE_COLON = "\x1f"  # replaces the "::" of MovieLens, which the splitters do not know
_BOMS = {codecs.BOM_UTF8: "", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_BLANKS = bytes.maketrans(b"\t\r\x0b\x0c", b"    ")
_LINE_END = re.compile(rb"\r\n|\r|\n")

# For fewer bytes the csv module takes less time than importing Arrow, or calling it once it is there.
_ARROW_BYTES, _ARROW_CALL_BYTES = 1 << 20, 1 << 14
_CSV_ROWS = 1 << 16  # split by the csv module at a time

NumberedRows = Iterator[tuple[int, list[str]]]


@dataclass(frozen=True, eq=False)
class TextColumn:
    """The cells of a column: a list, or of a large table a chunked array of Arrow, which packs them."""

    cells: Any

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def array(self) -> Any:
        """The cells as ids are coded from: objects of NumPy, or Arrow's."""
        return np.asarray(self.cells, dtype=object) if isinstance(self.cells, list) else self.cells

    def texts(self) -> list[str]:
        """Return the cells as a list."""
        cells: list[str] = self.cells if isinstance(self.cells, list) else self.cells.to_pylist()
        return cells

    def packed(self) -> Any:
        """Return the cells as a chunked array of Arrow."""
        import pyarrow as pa

        is_list = isinstance(self.cells, list)
        return pa.chunked_array([pa.array(self.cells, pa.string())]) if is_list else self.cells

    def numbers(self) -> Float | None:
        """Return the cells as numbers; None if one of them is not a number."""
        if not isinstance(self.cells, list):
            import pyarrow as pa

            with suppress(pa.ArrowException):
                values = np.asarray(self.cells.cast(pa.float64()).to_numpy(), dtype=np.float64)
                if not np.isnan(values).any():  # Arrow reads nan(1), too
                    return values
        texts = self.texts()
        together = "".join(texts)
        if "_" not in together and together.isascii():
            with suppress(ValueError):
                return np.fromiter(map(float, texts), dtype=np.float64, count=len(texts))
        return None

    def times(self) -> Array:
        """Return whole numbers if all cells are, else the text."""
        if not isinstance(self.cells, list):
            import pyarrow as pa
            import pyarrow.compute as pc

            # Arrow reads 0x10 as a number, but no time is written so.
            with suppress(pa.ArrowException):
                numbers = self.cells.cast(pa.int64()).to_numpy()
                if not pc.any(pc.match_substring(self.cells, "x", ignore_case=True)).as_py():
                    return np.asarray(numbers)
        texts = self.texts()
        if all(map(WHOLE_NUMBER.fullmatch, texts)):
            with suppress(OverflowError):
                return np.fromiter(map(int, texts), dtype=np.int64, count=len(texts))
        return np.array(texts, dtype=object)


def is_number(text: str) -> bool:
    """Return whether a cell is a number: float() also reads 1_000 and digits of other scripts.

    >>> is_number("1e-3"), is_number("1_000")
    (True, False)
    """
    return TextColumn([text]).numbers() is not None


def _joined(parts: Iterable[Iterable[TextColumn]], n_columns: int, size: int) -> list[TextColumn]:
    """Return the columns of parts of a table of `size` bytes, one below the other.

    Rows of Python strings take many times the memory of their text, so Arrow packs each part of a large one.
    """
    arrow = _import_arrow(size)
    kept = TextColumn.texts if arrow is None else lambda column: column.packed().chunks
    joined: list[list[Any]] = [[] for _ in range(n_columns)]
    for part in parts:
        for cells, more in zip(joined, map(kept, part), strict=True):
            cells.extend(more)
    return [TextColumn(c if arrow is None else arrow.chunked_array(c, arrow.string())) for c in joined]


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


class TextTable(Protocol):
    """Named columns of text, and where to find a row, for errors."""

    @property
    def name(self) -> str: ...

    def columns(self, names: Sequence[str]) -> list[TextColumn]: ...

    def line(self, row: int) -> str: ...


@dataclass(frozen=True, eq=False)
class TextRows:
    """A text file, or some rows of it: named columns, split when they are asked for.

    The rows begin at byte `start` of `data`, below so many `lines` of the file. `looks_like` says what a file
    may be whose rows have another number of cells.
    """

    name: str
    names: list[str]
    data: bytes
    delimiter: str
    quoted: bool = False
    start: int = 0
    lines: int = 0
    hint: str = "The line may be cut off, or hold a separator that should be quoted."
    looks_like: Mapping[int, str] = field(default_factory=dict)
    n_comments: int = 0

    def columns(self, names: Sequence[str]) -> list[TextColumn]:
        """Return some of the columns; raise an error that names the first row of another length."""
        at = [self.names.index(name) for name in names]
        columns = None if self.quoted else self._by_arrow(at)
        if columns is not None:
            return columns
        size = len(self.data) - self.start
        try:
            return _joined(self._by_csv(filter(None, self._reader()), at), len(at), size)
        except csv.Error:
            return _joined(self._by_csv((row for _, row in self.rows()), at), len(at), size)

    def rows(self) -> NumberedRows:
        """Yield every row with its line; raise an error at the first of another length."""
        for line, _, row in self.numbered():
            if len(row) != len(self.names):
                shown = _shorten((" " if self.delimiter == " " else ",").join(row))
                raise FileError(
                    f"{self.name}, line {line}: {len(row)} columns, expected {len(self.names)}: {shown}."
                    f"{self.looks_like.get(len(row), '')}",
                    hint=self.hint,
                )
            yield line, row

    def line(self, row: int) -> str:
        """Return the line of a row, from 1, for errors. The text is split again: for error messages only."""
        return f"line {next(islice(self.rows(), row, None))[0]}"

    def numbered(self) -> Iterator[tuple[int, int, list[str]]]:
        """Yield every row that is not blank, of any length, with its first and its last line."""
        last = self.lines
        if not self.quoted:  # the csv module refuses long cells
            for last, line in enumerate(self._text(), self.lines + 1):
                if line := line.rstrip("\r\n"):
                    yield last, last, line.split(self.delimiter)
            return
        reader = self._reader()
        try:
            for row in reader:
                first, last = last + 1, self.lines + reader.line_num
                if row:
                    yield first, last, row
        except csv.Error as error:
            raise FileError(
                f"{self.name}, line {last + 1}: {error}.", hint="Check the quotes there."
            ) from error

    def _text(self) -> io.TextIOWrapper:
        stream = io.BytesIO(self.data)
        stream.seek(self.start)
        return io.TextIOWrapper(stream, encoding="utf-8", newline="")

    def _reader(self) -> Any:
        if self.quoted:
            return csv.reader(self._text(), delimiter=self.delimiter, strict=True)
        return csv.reader(self._text(), delimiter=self.delimiter, quoting=csv.QUOTE_NONE, strict=True)

    def _by_csv(self, rows: Iterator[list[str]], at: list[int]) -> Iterator[Iterable[TextColumn]]:
        """Yield the columns of many rows at a time; raise csv.Error at a row of another length."""
        while block := list(islice(rows, _CSV_ROWS)):
            if set(map(len, block)) != {len(self.names)}:
                raise csv.Error
            yield (TextColumn([row[i] for row in block]) for i in at)

    def _by_arrow(self, at: list[int]) -> list[TextColumn] | None:
        """Columns split by Arrow; None for few bytes, or if Arrow is not installed or cannot split them."""
        body = memoryview(self.data)[self.start :]  # as large as the file: not copied
        pa = _import_arrow(len(body))
        if pa is None or self.data.startswith(codecs.BOM_UTF8, self.start):  # which Arrow leaves out
            return None
        from pyarrow import csv as arrow_csv

        names = [str(i) for i in range(len(self.names))]
        if not re.search(rb"[^\r\n]", body):
            return [TextColumn([]) for _ in at]
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(body),
                read_options=arrow_csv.ReadOptions(column_names=names, use_threads=False),
                parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter, quote_char=False),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), include_columns=[str(i) for i in at]
                ),
            )
        except pa.ArrowException:
            return None
        return [TextColumn(table.column(str(i))) for i in at]


@dataclass(eq=False)
class TextFiles:
    """Several text files that are one table, of which `split` makes rows and one is held at a time."""

    source: FileContent
    split: Callable[[FileContent], TextRows]
    names: list[str]
    n_comments: int = 0

    @property
    def name(self) -> str:
        """What errors call them together."""
        return self.source.name

    def columns(self, names: Sequence[str]) -> list[TextColumn]:
        """Return some of the columns; the comment lines of the files are counted on the way."""

        def parts() -> Iterator[list[TextColumn]]:
            for table in self._tables():
                yield table.columns(names)
                self.n_comments += table.n_comments

        size = sum(part.path.stat().st_size for part in self.source.parts if part.path is not None)
        return _joined(parts(), len(names), size)

    def rows(self) -> NumberedRows:
        """Yield every row with its line in its file."""
        for table in self._tables():
            order = [table.names.index(name) for name in self.names]
            yield from ((line, [cells[at] for at in order]) for line, cells in table.rows())

    def line(self, row: int) -> str:
        """Return the line of a row, from 1, and its file, for errors."""
        places = ((line, table.name) for table in self._tables() for line, _ in table.rows())
        line, name = next(islice(places, row, None))
        return f"line {line} of {name}"

    def _tables(self) -> Iterator[TextRows]:
        for part in self.source.parts:
            table = self.split(replace(part))  # a copy: the bytes that it has read go with it
            check_same_columns(self.source.parts[0], self.names, table.name, table.names)
            yield table


def read_text(source: FileContent, form: str, options: ReadOptions) -> TextRows | TextFiles:
    """Return the table of a text file, or of several, one below the other."""

    def split(file: FileContent) -> TextRows:
        data = decode(file.data, file.name, options.encoding)
        return split_rows(data, file.name, form, options.kind, options.header)

    if not source.parts:
        return split(source)
    return TextFiles(source, split, split(replace(source.parts[0])).names)


def decode(data: bytes, name: str, encoding: str, before: int = 0, lines: int = 0) -> bytes:
    """Return the data as UTF-8 without a byte-order mark, or raise an error that names the first wrong byte.

    So many bytes and lines of the file come `before` the data.
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
        line = lines + body.count(b"\n", 0, error.start) + 1
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


def split_rows(
    data: bytes,
    name: str,
    form: str,
    kind: str,
    header: Sequence[str] | None = None,
    *,
    below_first: bool = False,
    lines: int = 0,
) -> TextRows:
    """Return the rows of a format: below a header line (csv, tsv, inter), or without one (ratings, trec).

    `header` names the columns of a file that has none. `below_first`: the first line is not a row, but shows
    how the others are split. So many `lines` of the file come before.
    """
    if form == "trec":
        return _trec_rows(data, name, kind, lines)
    header = RATING_COLUMNS if form == "ratings" and header is None else header
    if header is not None and b"::" in data[: data.find(b"\n") + 1 or None]:
        data = data.replace(b"::", _DOUBLE_COLON.encode())
    first_line = re.match(rb"[\r\n]*([^\r\n]*)", data)[1].decode()  # type: ignore[index]
    delimiter = find_delimiter(first_line, form, len(header or ()))
    quoted = form != "inter" and header is None and b'"' in data
    table = TextRows(name, [], data, delimiter, quoted, lines=lines)
    _, line, cells = next(table.numbered(), (0, 0, None))
    if cells is None:
        raise FileError(f"{name} is empty.", hint="Check what wrote it.")
    names = [cell.strip() for cell in cells] if header is None else list(header[: len(cells)])
    if header is not None and not len(header) - 1 <= len(cells) <= len(header):  # the time may be missing
        raise FileError(
            f"{name}, line {line}: {len(cells)} columns, expected {len(header)}: {', '.join(header)}.",
            hint="Name another format, or give the table a header.",
        )
    if header is not None and not below_first:
        return replace(table, names=names)
    ends = (found.end() for found in _LINE_END.finditer(data))
    start = next(islice(ends, line - lines - 1, None), len(data))
    return replace(table, names=names, start=start, lines=line, quoted=quoted and data.find(b'"', start) >= 0)


def _trec_rows(data: bytes, name: str, kind: str, lines: int) -> TextRows:
    """Return a TREC run (lists) or judgements (truth): columns between blanks, # starts a comment line."""
    run = ["user", "Q0", "item", "rank", "score", "tag"], "a run"
    judgements = ["user", "0", "item", "grade"], "judgements (qrels)"
    (names, own), (other_names, other) = (run, judgements) if kind == "lists" else (judgements, run)
    # One blank between cells, none at line ends, no comments.
    clean, n_comments = data.translate(_BLANKS), 0
    while b"  " in clean:
        clean = clean.replace(b"  ", b" ")
    clean = clean.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")
    if clean.startswith(b"#") or b"\n#" in clean:
        clean, n_comments = re.subn(rb"(?m)^#[^\n]*", b"", clean)
    hint = f"The columns are {' '.join(names)}. Fix the line, or name another format."
    guess = {len(other_names): f" It looks like {other} where {own} belongs."}
    return TextRows(name, names, clean, " ", lines=lines, hint=hint, looks_like=guess, n_comments=n_comments)


def find_delimiter(header: str, form: str, width: int = 0) -> str:
    """Return the separator of the cells, by format or header; `width`: the number of cells needed."""
    fits = [mark for mark in (_DOUBLE_COLON, *_DELIMITERS) if header.count(mark) + 1 == width > 1]
    if fits or _DOUBLE_COLON in header:
        return fits[0] if fits else _DOUBLE_COLON
    usual = "," if form == "csv" else "\t"
    if usual in header or form == "inter":
        return usual
    return next((d for d in _DELIMITERS if d in header), usual)


def _shorten(text: str) -> str:
    return repr(text[:60] + "…" if len(text) > 60 else text)
