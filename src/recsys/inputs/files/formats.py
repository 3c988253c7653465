"""The bytes of a file, and what is known about the formats they can be in.

A format is one row, next to the functions that read it: detection, reading, writing, the command's help and
the documentation all read `FORMATS`. The modules of the built-in formats register when `reader` is imported;
take the complete registry from `recsys.files`.

A glob or a folder names several files that are read as one table. Gzipped files are unpacked. Pickles, and
files that contain one, are refused by their first bytes, whatever their name: opening them can run any code.
"""

from __future__ import annotations

import difflib
import errno
import glob
import gzip
import hashlib
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from recsys.errors import FileError, MissingFileError
from recsys.inputs import read_interactions, read_lists
from recsys.inputs.ids import IdKind
from recsys.records.arrays import Interactions, Lists, cached_property
from recsys.records.registry import Registry

ROLES = {
    "lists": ("case", "user", "item", "score", "rank"),
    "truth": ("case", "user", "item", "grade", "time"),
}
_HEAD_BYTES = 1 << 16
_CHUNK_BYTES = 1 << 22
_UNPACKED_BYTES, UNPACKED_RATIO = 1 << 30, 250
_GZIP = b"\x1f\x8b"
LONGEST_PATH = 4096  # letters; systems take no longer ones
_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
_NEAR_NAME = 0.7

_PICKLE_START = re.compile(
    rb"\x80[\x00-\x09]|[(\]}](?:dp|lp|tp|q|i|c)|c[A-Za-z_][\w.]*\r?\n[A-Za-z_][\w.]*\r?\n"
)
_ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_UNSUPPORTED = {
    _GZIP: "gzipped twice", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstandard",
    b"\x89HDF": "HDF5", b"SQLite format 3": "an SQLite database", b"Obj\x01": "Avro",
}  # fmt: skip


@dataclass(frozen=True)
class FileContent:
    """One input: a path, or None for standard input; `name` is its name in errors.

    A glob or a folder has `parts`: its files, whose rows make one table in this order.
    """

    name: str
    path: Path | None
    parts: tuple[FileContent, ...] = ()

    @cached_property
    def data(self) -> bytes:
        """All bytes, unpacked if they were gzipped."""
        if self.parts:
            raise FileError(
                f"{self.name} stands for {len(self.parts)} files, and one is read here.",
                hint="Name one file.",
            )
        return b"".join(self._read())

    def chunks(self, size: int) -> Iterator[bytes]:
        """Yield all bytes, unpacked, at most `size` at a time; what can be read only once comes whole."""
        is_file = self.path is not None and self.path.is_file()
        return self._read(size) if is_file else iter([self.data])

    def _read(self, size: int | None = None) -> Iterator[bytes]:
        """Yield the bytes, unpacked, of a regular file at most `size` at a time."""
        try:
            if self.path is None or not self.path.is_file():
                if self.path is not None:
                    refuse_device(self.path)
                raw = sys.stdin.buffer.read() if self.path is None else self.path.read_bytes()
                is_packed = raw[:2] == _GZIP
                yield from _unpacked(io.BytesIO(raw), len(raw), self.name) if is_packed else [raw]
                return
            with self.path.open("rb") as stream:
                if self.plain:
                    yield from iter(lambda: stream.read(-1 if size is None else size), b"")
                else:
                    yield from _unpacked(stream, self.path.stat().st_size, self.name, size)
        except OSError as error:
            raise read_error(self.name, error) from error

    @cached_property
    def head(self) -> bytes:
        """The first bytes, unpacked; enough to detect the format."""
        if self.parts:
            return self.parts[0].head
        return next(self.chunks(_HEAD_BYTES), b"")[:_HEAD_BYTES]

    @cached_property
    def plain(self) -> bool:
        """Whether this is an uncompressed regular file, which can be read more than once.

        A pipe (a FIFO, <(zcat lists.gz)) can be read only once: `data` reads all of it.
        """
        if self.path is None or not self.path.is_file():
            return False
        with self.path.open("rb") as stream:
            return stream.read(2) != _GZIP


@dataclass(frozen=True)
class ReadOptions:
    """What the caller asks of a reader.

    `kind` is "lists" or "truth"; `columns` and `ids` as in read_file. Whole tables have two more: `header`
    names the columns of a file that has none, `text` leaves every cell of a text file as it is; their `ids`
    may be None: the types of the file, and text as whole numbers if every id of the column is one. `text`
    leaves scores as they are, too, where a file is read some rows at a time.
    """

    kind: str = "truth"
    columns: Mapping[str, str] | None = None
    ids: IdKind | None = "str"
    encoding: str = "utf-8"
    header: Sequence[str] | None = None
    text: bool = False

    @property
    def roles(self) -> tuple[str, ...]:
        return ROLES[self.kind]

    def ranked_by_rows(self, column_of: Mapping[str, str]) -> bool:
        """Return whether these columns are lists that only the order of the rows ranks."""
        return self.kind == "lists" and not {"score", "rank"} & column_of.keys()

    def finish(
        self,
        data: Any,
        columns: Mapping[str, str] | None,
        name: str,
        *,
        unused: Sequence[str] = (),
    ) -> Lists | Interactions:
        """Lists or Interactions from a table or container in memory; `unused` columns were not read."""
        result: Lists | Interactions
        if self.kind == "lists":
            result = read_lists(data, columns=columns, table=name)
        else:
            result = read_interactions(data, columns=columns, table=name, negatives=True)
        if not unused:
            return result
        return replace(result, facts=replace(result.facts, unused=(*unused,)))


@dataclass(frozen=True, eq=False)
class Format:
    """One file format.

    Args:
        name: what `format=` and `--format` call it.
        read: its lists or interactions, of one file or of several (`FileContent.parts`).
        read_whole: a pandas table of all columns, and {role: column}; None if it is not a table.
        write: the bytes of a narwhals frame, for a file of this name; None if it is not written.
        suffixes: endings of file names; files are written with the first. Formats may share an ending: then
            `recognises` decides.
        magic: the first bytes of every file of this format.
        recognises: whether a file begins like this format, asked where neither magic nor ending decides.
            Formats that were added later are asked first.
        typed: numbers and texts differ in the file; otherwise every cell is text.
        help: how it is recognised, for the documentation.
        lists: which columns or keys hold lists, for the documentation.
        truth: the same for the truth.
        read_blocks: for what does not fit into memory: which column has which role, and these columns as
            Arrow tables of some rows each, or None in their place if DuckDB scans the files as they are.
    """

    name: str
    read: Callable[[FileContent, ReadOptions], Lists | Interactions]
    read_whole: Callable[[FileContent, ReadOptions], tuple[Any, dict[str, str]]] | None = None
    write: Callable[[Any, str], bytes] | None = None
    suffixes: tuple[str, ...] = ()
    magic: bytes | None = None
    recognises: Callable[[bytes], bool] | None = None
    typed: bool = False
    help: str = ""
    lists: str = "user, item, and score or rank"
    truth: str = "user, item, and a grade if graded"
    read_blocks: Callable[[FileContent, ReadOptions], tuple[dict[str, str], Iterator[Any] | None]] | None = (
        None
    )


FORMATS: Registry[Format] = Registry("file format", "recsys.formats")
"""Every file format, by name; a `Format` set under its name is one more."""


def add_format(entry: Format) -> None:
    """Register a format under its name."""
    FORMATS[entry.name] = entry


def open_file(path: str | os.PathLike[str]) -> FileContent:
    """Return a file that exists, is not empty and is safe to read; "-" is standard input.

    A glob or a folder becomes one content with a part for each of its files.
    """
    if not isinstance(path, str | os.PathLike):
        raise FileError(f"{type(path).__name__} is not a path.", hint="Pass the path of a file as text.")
    if str(path) == "-":
        source = FileContent("<stdin>", None)
    else:
        file = Path(path)
        if len(str(path)) > LONGEST_PATH:
            raise FileError(f"{path} is not a file: its name is too long.", hint="Check the path.")
        if _ADDRESS.match(str(path)):
            raise FileError(
                f"{path} is an address, and only files on this machine are read.",
                hint="Copy it here first, or read it with pandas or polars and pass the table.",
            )
        if not str(path):
            raise FileError("the path is empty.", hint="Name a file; the current folder is '.'.")
        try:
            if file.is_dir() or is_glob(path):
                parts = tuple(map(open_file, files_of(path)))
                return parts[0] if len(parts) == 1 else FileContent(str(file), file, parts)
        except OSError as error:
            raise read_error(str(file), error) from error
        if not file.exists():
            siblings = sorted({*file.parent.iterdir()} - {file}) if file.parent.is_dir() else []
            siblings.sort(
                key=lambda sibling: sibling.suffix == file.suffix
            )  # of equal stems the last one stays
            by_stem = {sibling.name.partition(".")[0]: sibling for sibling in siblings}
            similar = difflib.get_close_matches(file.name.partition(".")[0], by_stem, n=1, cutoff=_NEAR_NAME)
            hint = f"Did you mean {by_stem[similar[0]]}?" if similar else "Check the path."
            raise MissingFileError(f"there is no file {file}.", hint=hint)
        source = FileContent(str(file), file)
    try:
        head = source.head
    except OSError as error:
        raise read_error(source.name, error) from error
    if not head.strip(b"\xef\xbb\xbf \t\r\n"):
        raise FileError(f"{source.name} is empty.", hint="Check what wrote it.")
    _refuse_unsafe(head, source.name)
    return source


def refuse_device(path: Path, *, pipes: bool = True) -> None:
    """Raise an OSError, as for any file that cannot be read, for a device: /dev/zero has no end.

    Without `pipes` also for a pipe that has a name, as it waits for a writer; a shell's <(…) has one.
    """
    mode = path.stat().st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise OSError(errno.ENODEV, "it is a device, not a file", str(path))
    if not pipes and stat.S_ISFIFO(mode) and path.parts[:2] not in (("/", "dev"), ("/", "proc")):
        raise OSError(errno.ENODEV, "it is a pipe, not a file", str(path))


def file_sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's bytes.

    Raises:
        FileError: it is missing or cannot be read.
    """
    try:
        refuse_device(Path(path), pipes=False)
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise read_error(str(path), error) from error
    except ValueError as error:  # a NUL in the path
        raise FileError(f"{path} cannot be read: {error}.", hint="Check the path.") from error


def read_text_file(path: str | os.PathLike[str], encoding: str = "utf-8") -> str:
    """Return the text of a small file, such as a saved result or a protocol, or of a pipe that a shell made.

    Raises:
        FileError: it is missing, cannot be read, or is not in that encoding.
    """
    try:
        refuse_device(Path(path), pipes=False)
        return Path(path).read_text(encoding=encoding)
    except OSError as error:
        raise read_error(str(path), error) from error
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not text in {encoding} ({error}).", hint="Save it as UTF-8.") from error
    except ValueError as error:  # a NUL in the path
        raise FileError(f"{path} cannot be read: {error}.", hint="Check the path.") from error


def is_glob(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a pattern such as recs/*.parquet, and no file of that name exists."""
    return glob.has_magic(str(path)) and not Path(path).exists()


def files_of(path: str | os.PathLike[str]) -> list[Path]:
    """Return a file itself; the files of a folder or of a glob, by name, unless these begin with "_" or ".".

    A glob that matches folders only stands for their files.
    """
    folder = Path(path)
    if not folder.is_dir() and not is_glob(path):
        return [folder]
    if not folder.is_dir():
        matches = sorted(map(Path, glob.glob(str(path), recursive=True)))  # noqa: PTH207 - no hidden files
        if not any(part.startswith("_") and glob.has_magic(part) for part in folder.parts):
            own = set(folder.parts)
            matches = [m for m in matches if not any(part.startswith("_") for part in set(m.parts) - own)]
        if not matches:
            raise MissingFileError(f"no file matches {path}.", hint="Check the pattern.")
        folders = [match for match in matches if match.is_dir()]
        if len(folders) == len(matches):
            return [file for match in folders for file in files_of(match)]
        if folders and "**" not in str(path):
            raise FileError(
                f"{path} matches files and the folder {folders[0]}.",
                hint="Name the files alone, such as '*.parquet'.",
            )
        return [match for match in matches if match not in folders]
    entries = sorted(folder.iterdir())
    if folder / "corpus.jsonl" in entries or folder / "qrels" in entries:
        return [_judgements_of(folder)]
    files = [entry for entry in entries if not entry.name.startswith((".", "_"))]
    subfolder = next((file for file in files if file.is_dir()), None)
    if folder / "_delta_log" in entries:
        problem = "is a Delta table, some of whose files hold rows that were deleted"
        hint = "Read it with polars or deltalake, and pass the table."
    elif folder / "manifest.json" in files:
        problem = "holds manifest.json, so it is a saved result or a split, not one table"
        hint = "recsys.load opens a saved result; of a split, name one part."
    elif subfolder is not None:
        problem = f"holds the folder {subfolder.name}, and only the files of one folder are read"
        hint = f"Name the files by a glob, such as '{folder / '*' / '*.parquet'}'."
    elif not files:
        problem, hint = "is a folder without files", "Check the path."
    else:
        return files
    raise FileError(f"{folder} {problem}.", hint=hint)


def _judgements_of(folder: Path) -> Path:
    """Return the judgements of a folder in the form of BEIR: corpus.jsonl, queries.jsonl, qrels/test.tsv."""
    qrels = folder / "qrels"
    found = sorted(file for form in ("*.tsv", "*.jsonl") for file in qrels.glob(form))
    if qrels / "test.tsv" in found or len(found) == 1:
        return qrels / "test.tsv" if qrels / "test.tsv" in found else found[0]
    if found:
        problem = f"has the judgements {', '.join(file.name for file in found)}, and none called test.tsv"
    else:
        problem = "holds a corpus without judgements: there is no qrels/test.tsv"
    raise FileError(f"{folder} {problem}.", hint=f"Name the file, such as {qrels / 'dev.tsv'}.")


def _refuse_unsafe(head: bytes, name: str) -> None:
    safe_format = (
        "Write the table as CSV or Parquet where it was made, say with frame.to_csv(path, index=False)."
    )
    is_zip = head.startswith(b"PK\x03\x04")
    is_zlib = head.startswith(_ZLIB) and not head[:64].isascii()
    if _PICKLE_START.match(head) or is_zlib or (is_zip and b".pkl" in head):
        raise FileError(
            f"{name} holds a pickle (pickle, joblib or torch), and opening one can run any code.",
            hint=safe_format,
        )
    if head.startswith(b"\x93NUMPY") or (is_zip and b".npy" in head):
        raise FileError(
            f"{name} holds NumPy arrays, not a table.",
            hint="Factors are read by recsys.read_factors(U, V) or evaluate --factors U V, "
            "a model of recsys train by recsys.models.load_model, and recsys.recommend makes its lists.",
        )
    if is_zip:
        raise FileError(f"{name} is a zip archive.", hint="Unpack it, and name the table in it.")
    for magic, kind in _UNSUPPORTED.items():
        if head.startswith(magic) and not format_by_magic(head, FORMATS.load_plugins().values()):
            raise FileError(f"{name} is {kind}, which is not read here.", hint=f"Convert it. {safe_format}")


def check_same_columns(first: FileContent, columns: Sequence[str], other: str, others: Sequence[str]) -> None:
    """Raise an error if two files of one table differ in their columns; the order may differ."""
    if sorted(columns) != sorted(others):
        raise FileError(
            f"{other} has the columns {', '.join(others)}; {first.name} has {', '.join(columns)}.",
            hint="The files of one table have the same columns: name those that belong together.",
        )


def format_by_magic(head: bytes, formats: Iterable[Format]) -> Format | None:
    """Return the format whose files all begin like this one; None if there is none."""
    return next((f for f in formats if f.magic is not None and head.startswith(f.magic)), None)


def most_unpacked(size: int) -> int:
    """Return how many bytes a packed file of `size` bytes may become."""
    return max(_UNPACKED_BYTES, UNPACKED_RATIO * size)


def is_unpacked_too_large(unpacked: int, size: int) -> bool:
    """Return whether a packed file of `size` bytes becomes so large that it was made to fill the memory."""
    return unpacked > most_unpacked(size)


def _unpacked(stream: BinaryIO, size: int, name: str, chunk: int | None = None) -> Iterator[bytes]:
    """Unpacked bytes, at most `chunk` at a time.

    A file that unpacks to far more than its size is refused before it fills the memory.
    """
    total = 0
    try:
        with gzip.GzipFile(fileobj=stream) as unzipped:
            while part := unzipped.read(chunk or _CHUNK_BYTES):
                yield part
                total += len(part)
                if is_unpacked_too_large(total, size):
                    raise FileError(
                        f"{name} unpacks to over {UNPACKED_RATIO} times its size.",
                        hint="Unpack it yourself first.",
                    )
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileError(
            f"{name} is a damaged or truncated gzip file ({error}).", hint="Copy or write it again."
        ) from error


def read_error(name: str, error: OSError) -> FileError:
    """Return what to raise for a file that the system does not let us read."""
    if isinstance(error, FileError):
        return error
    if isinstance(error, FileNotFoundError):
        return MissingFileError(f"there is no file {name}.", hint="Check the path.")
    hint = "Check its permissions." if isinstance(error, PermissionError) else "Check the path."
    return FileError(f"{name} cannot be read: {error.strerror or error}.", hint=hint)
