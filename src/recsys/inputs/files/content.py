"""The bytes of a file or of standard input, and what kind of file they are.

Compressed files are opened as they are read. Pickles, and everything that holds one, are refused by their
first bytes: opening them can run any code, whatever they are called.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from recsys.errors import FileError

_HEAD = 1 << 16
_CHUNK = 1 << 22
_LARGE, _SWELLS = 1 << 30, 250
_GZIP = b"\x1f\x8b"

_SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".inter": "inter", ".parquet": "parquet", ".pq": "parquet",
    ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".run": "trec", ".trec": "trec", ".qrels": "trec",
    ".qrel": "trec",
}  # fmt: skip
_PICKLED = re.compile(rb"\x80[\x00-\x09]|[(\]}](?:dp|lp|tp|q|i|c)|c[A-Za-z_][\w.]*\r?\n[A-Za-z_][\w.]*\r?\n")
_ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_OTHERS = {
    _GZIP: "gzipped twice", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstandard",
    b"\x89HDF": "HDF5", b"SQLite format 3": "an SQLite database", b"ARROW1": "Arrow IPC", b"Obj\x01": "Avro",
}  # fmt: skip


@dataclass(frozen=True)
class FileContent:
    """One input: a path, or None for standard input; `name` is what errors call it."""

    name: str
    path: Path | None

    @cached_property
    def data(self) -> bytes:
        """All bytes, unpacked if they were gzipped."""
        try:
            if self.path is None or not self.path.is_file():
                raw = sys.stdin.buffer.read() if self.path is None else self.path.read_bytes()
                return _unpacked(io.BytesIO(raw), len(raw), self.name) if raw[:2] == _GZIP else raw
            with self.path.open("rb") as stream:
                if not self.plain:
                    return _unpacked(stream, self.path.stat().st_size, self.name)
                return stream.read()
        except OSError as error:
            raise _unreadable(self.name, error) from error

    @cached_property
    def head(self) -> bytes:
        """The first bytes, unpacked; enough to tell what the file is."""
        if self.path is None or not self.plain:
            return self.data[:_HEAD]
        with self.path.open("rb") as stream:
            return stream.read(_HEAD)

    @cached_property
    def plain(self) -> bool:
        """Whether the bytes lie in a file as they are, and may be read more than once.

        What a pipe gives (a FIFO, <(zcat lists.gz)) is gone once it was read: `data` reads it, all at once.
        """
        if self.path is None or not self.path.is_file():
            return False
        with self.path.open("rb") as stream:
            return stream.read(2) != _GZIP


def open_source(path: str | os.PathLike[str]) -> FileContent:
    """A file that is there, is not empty and is safe to read; "-" is standard input."""
    if str(path) == "-":
        source = FileContent("<stdin>", None)
    else:
        place = Path(path)
        if place.is_dir():
            raise FileError(f"{place} is a folder.", hint="Name one file.")
        if not place.exists():
            raise FileError(f"there is no file {place}.", hint=_near(place))
        source = FileContent(str(place), place)
    try:
        head = source.head
    except OSError as error:
        raise _unreadable(source.name, error) from error
    if not head.strip(b"\xef\xbb\xbf \t\r\n"):
        raise FileError(f"{source.name} is empty.", hint="Check what wrote it.")
    _refuse(head, source.name)
    return source


def format_of(source: FileContent) -> str:
    """By magic bytes, then by the name's ending, then by what the first lines look like."""
    if source.head.startswith(b"PAR1"):
        return "parquet"
    suffixes = [s.lower() for s in Path(source.name).suffixes if s.lower() != ".gz"]
    known = _SUFFIXES.get(suffixes[-1]) if suffixes else None
    if known in (None, "csv", "tsv") and _is_rating(source.head):
        return "ratings"
    return known or _looks_like(source.head)


def separator_of(line: bytes) -> bytes:
    """What parts the cells of a line without a header."""
    return next((mark for mark in (b"::", b"\t", b",", b";") if mark in line), b"\t")


def _is_rating(head: bytes) -> bool:
    """Whether the first line is user, item, rating and a time since 1970, and so no header.

    TREC judgements have four columns too; the last of theirs is no time.
    """
    line = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n").split(b"\n", 1)[0].strip()
    cells = line.split(separator_of(line))
    if len(cells) == 3 and b"::" in line:
        return _is_number(cells[2])
    return len(cells) == 4 and _is_number(cells[2]) and re.fullmatch(rb"\d{9,13}", cells[3]) is not None


def _looks_like(head: bytes) -> str:
    lines = [line for line in head.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
    first = lines[0].lstrip() if lines else b""  # nothing but blanks: the reader says so
    if first.startswith((b"{", b"[")):
        several = first.startswith(b"{") and first.rstrip().endswith(b"}") and len(lines) > 1
        return "jsonl" if several else "json"
    data = [line.split() for line in lines if not line.lstrip().startswith(b"#")]
    if data and len(data[0]) == 6 and _is_number(data[0][3]) and _is_number(data[0][4]):
        return "trec"
    if data and len(data[0]) == 4 and _is_number(data[0][3]) and b"," not in data[0][0]:
        return "trec"
    if b":token" in first:
        return "inter"
    return "tsv" if b"\t" in first and b"," not in first else "csv"


def _is_number(text: bytes) -> bool:
    return re.fullmatch(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", text) is not None


def _refuse(head: bytes, name: str) -> None:
    safe = "Write the table as CSV or Parquet where it was made, say with frame.to_csv(path, index=False)."
    archive = head.startswith(b"PK\x03\x04")
    packed = head.startswith(_ZLIB) and not head[:64].isascii()
    if _PICKLED.match(head) or packed or (archive and b".pkl" in head):
        raise FileError(
            f"{name} holds a pickle (pickle, joblib or torch), and opening one can run any code.", hint=safe
        )
    if head.startswith(b"\x93NUMPY") or (archive and b".npy" in head):
        raise FileError(
            f"{name} holds NumPy arrays, not a table.",
            hint="Factors are read by recsys.read_factors(U, V), or evaluate --factors U V.",
        )
    if archive:
        raise FileError(f"{name} is a zip archive.", hint="Unpack it, and name the table in it.")
    for magic, kind in _OTHERS.items():
        if head.startswith(magic):
            raise FileError(f"{name} is {kind}, which is not read here.", hint=f"Convert it. {safe}")


def _unpacked(stream: BinaryIO, size: int, name: str) -> bytes:
    """Gunzipped bytes; a file that swells beyond reason is refused before it fills the memory."""
    parts, total = [], 0
    try:
        with gzip.GzipFile(fileobj=stream) as packed:
            while part := packed.read(_CHUNK):
                parts.append(part)
                total += len(part)
                if total > _LARGE and total > _SWELLS * size:
                    raise FileError(
                        f"{name} unpacks to over {_SWELLS} times its size.", hint="Unpack it yourself first."
                    )
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileError(
            f"{name} is a damaged or truncated gzip file ({error}).", hint="Copy or write it again."
        ) from error
    return b"".join(parts)


def _unreadable(name: str, error: OSError) -> FileError:
    if isinstance(error, FileError):
        return error
    return FileError(f"{name} cannot be read: {error.strerror or error}.", hint="Check its permissions.")


def _near(place: Path) -> str:
    import difflib

    beside = sorted(p.name for p in place.parent.iterdir()) if place.parent.is_dir() else []
    close = difflib.get_close_matches(place.name, beside, n=1)
    return f"Did you mean {place.parent / close[0]}?" if close else "Check the path."
