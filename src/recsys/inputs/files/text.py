"""Lines of text to columns of text: comma- and tab-separated tables, `.inter`, TREC runs and judgements.

Nothing is guessed about a cell: it stays the text it was. Arrow splits files without quotes (and exists only
to be fast); the standard csv module splits everything else, and finds the line to blame when a split fails.
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
_UNIT = b"\x1f"  # stands for the "::" of MovieLens, which no splitter knows
_BOMS = {codecs.BOM_UTF8: "", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_BLANKS = bytes.maketrans(b"\t\r\x0b\x0c", b"    ")

# Below this many bytes the csv module is done before Arrow is imported.
_WORTH_ARROW = 1 << 20
_ROWS = 1 << 16  # that the csv module splits at a time


@dataclass(frozen=True)
class TextTable:
    """Named columns of text; `pick` reads some of them, `line` finds the line of a row."""

    name: str
    names: list[str]
    pick: Callable[[Sequence[str]], list[Any]]
    rows: Callable[[], Iterator[tuple[int, list[str]]]]
    notes: dict[str, int] = field(default_factory=dict)

    def line(self, row: int) -> int:
        """Line number of a row, counted from 1; the file is split again, since this is for errors only."""
        for at, (line, _) in enumerate(self.rows()):
            if at == row:
                return line
        return 0


def decoded(data: bytes, name: str, encoding: str) -> bytes:
    """The data as UTF-8 without a byte-order mark, or an error naming the first wrong byte."""
    for mark, means in _BOMS.items():
        if data.startswith(mark) and means and encoding == "utf-8":
            raise FileError(f"{name} is {means}.", hint=f"Pass encoding={means!r}.")
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
    """A table with a header line: csv, tsv or inter; or, with the names given, one without (ratings)."""
    if header is not None:
        data = data.replace(b"::", _UNIT) if b"::" in data[: data.find(b"\n") + 1 or None] else data
    quoted = form != "inter" and header is None and b'"' in data
    head = data.lstrip(b"\r\n") if data[:1] in b"\r\n" else data
    first = re.match(rb"[^\r\n]*", head)
    end = first.end() if first else 0
    delimiter = _delimiter(head[:end].decode(), form, len(header or ()))
    skipped = 1 if header is None else 0
    only_above = head.count(b'"', 0, end) % 2 == 0 and head.find(b'"', end) < 0  # quotes in the header alone

    def rows() -> Iterator[tuple[int, list[str]]]:
        return _checked(_csv(data, delimiter, quoted=quoted), name)

    top = next(rows(), None)
    if top is None:
        raise FileError(f"{name} is empty.", hint="Check what wrote it.")
    names = [cell.strip() for cell in top[1]] if header is None else list(header[: len(top[1])])
    if header is not None and not len(header) - 1 <= len(top[1]) <= len(header):  # the last may be missing
        raise FileError(
            f"{name}, line {top[0]}: {len(top[1])} columns, expected {len(header)}: {', '.join(header)}.",
            hint="Name another format, or give the table a header.",
        )

    def pick(wanted: Sequence[str]) -> list[Any]:
        at = [names.index(w) for w in wanted]
        body_of = memoryview(head)[end if skipped else 0 :]  # as long as the file: not copied
        columns = None if quoted and not only_above else _by_arrow(body_of, delimiter, len(names), at)
        if columns is None:
            reader, arrow = _csv(data, delimiter, quoted=quoted), _arrow_for(len(data))
            columns = _by_csv(reader, len(names), at, header=skipped, arrow=arrow)
        return _one_by_one(body(), at) if columns is None else columns

    def body() -> Iterator[tuple[int, list[str]]]:
        return _skip_one(rows()) if skipped else rows()

    return TextTable(name, names, pick, body)


def split_trec(data: bytes, name: str, kind: str) -> TextTable:
    """A TREC run (lists) or judgements (truth): columns between blanks, lines from # on are comments."""
    names = {
        "lists": ["user", "Q0", "item", "rank", "score", "tag"],
        "truth": ["user", "0", "item", "grade"],
    }[kind]
    clean, comments = _trec_clean(data)

    def rows() -> Iterator[tuple[int, list[str]]]:
        return _trec_rows(data, names, name, kind)

    def pick(wanted: Sequence[str]) -> list[Any]:
        at = [names.index(w) for w in wanted]
        columns = _by_arrow(clean, " ", len(names), at)
        if columns is None:
            reader, arrow = _csv(clean, " ", quoted=False), _arrow_for(len(clean))
            columns = _by_csv(reader, len(names), at, header=0, arrow=arrow)
        return _one_by_one(rows(), at) if columns is None else columns

    return TextTable(name, names, pick, rows, {"comments": comments} if comments else {})


def _trec_clean(data: bytes) -> tuple[bytes, int]:
    """One blank between cells, none at the ends of a line, no comments."""
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
            looks = f" It looks like {other[1]} where {other[2]} belongs." if len(cells) == other[0] else ""
            raise FileError(
                f"{name}, line {number}: {len(cells)} columns, expected {len(names)}: {_shown(line)}.{looks}",
                hint=f"The columns are {' '.join(names)}. Mend the line, or name another format.",
            )
        yield number, [cell.decode() for cell in cells]


def _delimiter(header: str, form: str, width: int = 0) -> str:
    """What parts the cells, by the format or by what is there; `width`: how many cells there must be."""
    fits = [mark for mark in (_UNIT.decode(), *_DELIMITERS) if header.count(mark) + 1 == width > 1]
    if fits or _UNIT.decode() in header:
        return fits[0] if fits else _UNIT.decode()
    usual = "," if form == "csv" else "\t"
    if usual in header or form == "inter":
        return usual
    return next((d for d in _DELIMITERS if d in header), usual)


def _csv(data: bytes, delimiter: str, *, quoted: bool) -> Any:
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    if quoted:
        return csv.reader(text, delimiter=delimiter, strict=True)
    return csv.reader(text, delimiter=delimiter, quoting=csv.QUOTE_NONE, strict=True)


def _checked(reader: Any, name: str) -> Iterator[tuple[int, list[str]]]:
    """Rows with their line numbers; all as long as the first, or an error that says which is not."""
    width, last = 0, 0
    try:
        for row in reader:
            start, last = last + 1, reader.line_num
            if not row:
                continue
            width = width or len(row)
            if len(row) != width:
                raise FileError(
                    f"{name}, line {start}: {len(row)} columns, expected {width}: {_shown(','.join(row))}.",
                    hint="The line may be cut off, or hold a separator that should be quoted.",
                )
            yield start, row
    except csv.Error as error:
        raise FileError(f"{name}, line {last + 1}: {error}.", hint="Check the quotes there.") from error


def _one_by_one(rows: Iterator[tuple[int, list[str]]], at: list[int]) -> list[Any]:
    picked = [[row[i] for i in at] for _, row in rows]
    return [list(column) for column in zip(*picked, strict=True)] if picked else [[] for _ in at]


def _by_csv(reader: Any, width: int, at: list[int], *, header: int, arrow: Any) -> list[Any] | None:
    """Columns split by the csv module; None where a line is wrong and has to be found.

    Rows of Python's texts take many times what they hold, so Arrow packs some before the next are read.
    """
    rows = filter(None, reader)
    parts: list[list[Any]] = []
    try:
        while some := list(islice(rows, _ROWS)):
            if set(map(len, some)) != {width}:
                return None
            columns = [[row[i] for row in some[0 if parts else header :]] for i in at]
            parts.append(columns if arrow is None else [arrow.array(c, arrow.string()) for c in columns])
    except csv.Error:
        return None
    if not parts:
        return None
    whole = zip(*parts, strict=True)
    return [list(chain.from_iterable(c)) if arrow is None else arrow.chunked_array(c) for c in whole]


def _arrow_for(size: int) -> Any:
    """Arrow; None for a file of few bytes, or where it is not installed."""
    if size < _WORTH_ARROW:
        return None
    try:
        import pyarrow as pa
    except ImportError:
        return None
    return pa


def _by_arrow(body: bytes | memoryview, delimiter: str, width: int, at: list[int]) -> list[Any] | None:
    """Columns split by Arrow; None for a small file, or where it is not installed or dislikes the file."""
    pa = _arrow_for(len(body))
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


def _skip_one(rows: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    next(rows)
    return rows


def _shown(line: str | bytes) -> str:
    text = line.decode(errors="replace") if isinstance(line, bytes) else line
    return repr(text[:60] + "…" if len(text) > 60 else text)
