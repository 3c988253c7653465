"""The values per user as a folder of Parquet files, which is written and read piece by piece.

`manifest.json` names the pieces, their rows and edges, and a hash of their content (`row_hashes`). Within a
piece rows are in ascending order of ids. The pieces may follow each other in that order (as ranges of users),
or share a range and no users (as an engine deals them by a hash); the manifest says which.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar, cast

import numpy as np

from recsys.errors import ColumnError, FileError, InputError, Phrase, needs_extra
from recsys.evaluation.files.row_hashes import add_hashes, hash_rows, hash_table
from recsys.inputs.files.atomic_folder import HiddenFolder, replaced_copies
from recsys.inputs.files.atomic_write import write_errors_of, write_text
from recsys.inputs.files.formats import read_error, read_text_file
from recsys.records.arrays import Array, Float, PerCase, cached_property

SCHEMA = 2
ROWS_AT_ONCE = 1 << 17
_MANIFEST = "manifest.json"
_FILE_NAME = re.compile(r"part-[0-9A-Za-z_-]{1,100}\.parquet")
_ROWS_IN_MEMORY = 1 << 19  # pieces that share a range are sorted in memory up to this size
_ROWS_OF_RANGE = 1 << 18  # and beyond it in ranges of about this size
_SAMPLED_ROWS = 128  # of each such range, to find its ends
_DTYPES = {"int": np.int64, "str": object, "float": np.float64, "key": np.uint64}
_ENCODING_OF_SORTED = {"int": "DELTA_BINARY_PACKED", "str": "DELTA_BYTE_ARRAY"}
_WRITE_AGAIN = "Evaluate again, or copy the folder again from where it came."
V = TypeVar("V")


class Column(NamedTuple):
    """A column of the files: its name, what its cells are, and what it is for.

    `kind` is "int", "str", "float" or "key" (64 bits); `role` "ids", "clusters", "weights", "metric", "first"
    and "second" (the terms of a metric) or "truth".
    """

    name: str
    kind: str
    role: str

    @property
    def metric(self) -> str:
        """The metric whose values or terms these are."""
        return self.name.removesuffix(f"|{self.role}")


class Piece(NamedTuple):
    """Some rows: the values per case, the two terms of metrics that have them, and a key of each truth."""

    rows: PerCase
    terms: Mapping[str, tuple[Float, Float]]
    truth_keys: Array | None

    def take(self, which: slice | Array) -> Piece:
        """Some of the rows."""
        rows = PerCase(
            self.rows.ids[which],
            {name: values[which] for name, values in self.rows.columns.items()},
            None if self.rows.clusters is None else self.rows.clusters[which],
            None if self.rows.weights is None else self.rows.weights[which],
        )
        terms = {name: (first[which], second[which]) for name, (first, second) in self.terms.items()}
        return Piece(rows, terms, None if self.truth_keys is None else self.truth_keys[which])


class WrittenPiece(NamedTuple):
    """What the manifest says about one file: its rows, its first and last id, and its part of the hash."""

    columns: tuple[Column, ...]
    file: str
    rows: int
    first: int | str | None
    last: int | str | None
    content: str

    @classmethod
    def read(cls, columns: Sequence[Any], *facts: Any) -> Self:
        """Read it from its JSON."""
        return cls(tuple(Column(*column) for column in columns), *facts)


def write_piece(
    path: Path, rows: PerCase, terms: Mapping[str, tuple[Float, Float]], truth_keys: Array | None
) -> WrittenPiece:
    """Write one piece, which must be in ascending order of ids, to a new file and flush it to the disk.

    A piece without rows has no file. Workers of an engine may call this for files in `RowWriter.path`; what
    it returns goes to `RowWriter.add`.
    """
    arrow, parquet = _import_arrow()
    key = "user" if rows.clusters is None else "case"
    cells = {Column(key, _kind(rows.ids), "ids"): rows.ids}
    if rows.clusters is not None:
        cells[Column("user", _kind(rows.clusters), "clusters")] = rows.clusters
    if rows.weights is not None:
        cells[Column("weight", "float", "weights")] = rows.weights
    cells |= {Column(name, "float", "metric"): values for name, values in rows.columns.items()}
    for name, (first_term, second_term) in terms.items():
        cells[Column(f"{name}|first", "float", "first")] = first_term
        cells[Column(f"{name}|second", "float", "second")] = second_term
    if truth_keys is not None:
        cells[Column("truth", "key", "truth")] = truth_keys
    columns = tuple(cells)
    names = [column.name for column in columns]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise InputError(
            f"a metric cannot be called {repeated[0]!r} here: another column of the files has this name.",
            hint="Register it under another name.",
        )
    types = _arrow_types(arrow)
    try:
        batch = arrow.record_batch(
            [arrow.array(values, type=types[column.kind]) for column, values in cells.items()], names=names
        )
    except (TypeError, ValueError, arrow.ArrowException) as error:
        raise InputError(f"the rows cannot be written as Parquet: {error}.") from error
    if not len(rows):
        return WrittenPiece(columns, path.name, 0, None, None, add_hashes([]))
    unordered = np.flatnonzero(rows.ids[1:] <= rows.ids[:-1])
    if len(unordered):
        here, then = rows.ids[unordered[0] : unordered[0] + 2].tolist()
        raise InputError(f"the rows are not in ascending order of ids: {then!r} comes after {here!r}.")
    content = hash_rows(batch, [column[:2] for column in columns])
    table = arrow.Table.from_batches([batch]).replace_schema_metadata({"recsys": content})
    with path.open("xb") as out:
        parquet.write_table(
            table,
            out,
            row_group_size=ROWS_AT_ONCE,
            compression="zstd",
            use_dictionary=[column.name for column in columns if column.role not in ("ids", "truth")],
            column_encoding={key: _ENCODING_OF_SORTED[columns[0].kind]},
            write_statistics=[key],
            write_page_checksum=True,
        )
        out.flush()
        os.fsync(out.fileno())
    first, last = rows.ids[[0, -1]].tolist()
    return WrittenPiece(columns, path.name, len(rows), first, last, content)


class RowWriter:
    """Writes a folder piece by piece; it appears under its name at `close`, or not at all.

    Until then the files are in a hidden folder next to it, at `path`. A folder that holds an earlier result
    is replaced at once; one that holds anything else is refused.

    >>> folder = Path(tempfile.mkdtemp()) / "out"
    >>> with RowWriter(folder) as writer:
    ...     writer.write(PerCase(np.array([1, 2]), {"mrr": np.array([0.5, 1.0])}), {})
    ...     stored = writer.close({})
    >>> stored.rows().columns["mrr"]
    array([0.5, 1. ])
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        _import_arrow()
        _refuse_foreign_folder(Path(folder))
        self._hidden = HiddenFolder(folder)
        self._pieces: list[WrittenPiece] = []
        self._columns: tuple[Column, ...] | None = None
        self._n_files = 0

    @property
    def path(self) -> Path:
        """The hidden folder."""
        return self._hidden.path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._hidden.remove()

    def write(
        self, rows: PerCase, terms: Mapping[str, tuple[Float, Float]], truth_keys: Array | None = None
    ) -> None:
        """Write one piece; ids must be in ascending order within it, and in no other piece."""
        file = self.path / f"part-{self._n_files:05}.parquet"
        self._n_files += 1
        with write_errors_of(self._hidden.target):
            self.add(write_piece(file, rows, terms, truth_keys))

    def add(self, piece: WrittenPiece) -> None:
        """Add a piece that `write_piece` wrote into `path`."""
        if piece.rows == 0:
            self._columns = self._columns or piece.columns
            return
        if self._pieces and piece.columns != self._pieces[0].columns:
            raise InputError(
                f"a piece has the columns {_describe(piece.columns)}, "
                f"the pieces before it {_describe(self._pieces[0].columns)}."
            )
        self._columns = piece.columns
        self._pieces.append(piece)

    def _manifest(self) -> dict[str, Any]:
        """Return what the pieces so far are."""
        if self._columns is None:
            raise InputError("no piece was written, so the columns are not known.")
        pieces = sorted(self._pieces, key=lambda piece: piece.first)  # type: ignore[arg-type, return-value]
        return {
            "recsys": "rows",
            "schema": SCHEMA,
            "ids": self._columns[0].kind,
            "rows": sum(piece.rows for piece in pieces),
            "sorted": _are_ranges(pieces),
            "columns": [list(column) for column in self._columns],
            "content": _hash_pieces(self._columns, pieces),
            "pieces": [dict(zip(piece._fields[1:], piece[1:], strict=True)) for piece in pieces],
        }

    def preview(self) -> RowFolder:
        """Return the rows so far, which can be read until `close`."""
        return RowFolder(self.path, self._manifest())

    def close(self, manifest: Mapping[str, Any]) -> RowFolder:
        """Write the manifest, with all of `manifest` in it, and put the folder in its place.

        Files in the hidden folder that were not added are removed: a worker may have failed and tried again.
        """
        document = self._manifest()
        if repeated := document.keys() & manifest.keys():
            raise InputError(f"the manifest has entries of its own called {', '.join(sorted(repeated))}.")
        document |= manifest
        kept = {piece.file for piece in self._pieces}
        with write_errors_of(self._hidden.target):
            for file in self.path.iterdir():
                if file.name not in kept:
                    file.unlink()
        _write_manifest(self.path, document)
        _refuse_foreign_folder(self._hidden.target)  # something may have been put there meanwhile
        self._hidden.publish()
        return RowFolder.open(self._hidden.target)


class RowFolder:
    """A folder of rows. Opening it reads the manifest; rows are read where they are used.

    Reading any piece checks its rows and columns against the manifest; `check` checks all values.
    """

    def __init__(self, path: Path, manifest: Mapping[str, Any]) -> None:
        if (manifest["recsys"], manifest["schema"]) != ("rows", SCHEMA):
            raise ValueError(f"format {manifest['schema']!r}; this version of recsys reads format {SCHEMA}")
        self.path = path
        self.manifest = manifest
        self.columns = tuple(Column(*column) for column in manifest["columns"])
        self.is_sorted: bool = manifest["sorted"]
        self._pieces = [WrittenPiece(columns=self.columns, **piece) for piece in manifest["pieces"]]
        if not self._is_consistent():
            raise ValueError("it contradicts itself")

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> RowFolder:
        """Read the manifest of a folder and check that it is consistent.

        Raises:
            FileError: the folder holds no rows, or its manifest is damaged.
        """
        folder = Path(os.path.abspath(path))  # noqa: PTH100 - the working folder may change
        try:
            text = read_text_file(folder / _MANIFEST)
        except FileError as error:
            copies = [] if folder.exists() else replaced_copies(folder)
            raise FileError(
                f"{folder} is not a folder of values per user: its {_MANIFEST} cannot be read"
                f" ({getattr(error.__cause__, 'strerror', None) or error}).",
                hint=f"A process was stopped while it replaced the folder. Rename {copies[-1]} back."
                if copies
                else Phrase("Name a folder that evaluate wrote with {per_user=}."),
            ) from error
        try:
            return cls(folder, json.loads(text))
        except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
            why = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            raise FileError(
                f"{folder / _MANIFEST} is not a manifest of values per user, or was changed: {why}.",
                hint=_WRITE_AGAIN,
            ) from error

    def add_facts(self, facts: Mapping[str, Any]) -> None:
        """Add facts about the run, such as the name of the model, to the result in the manifest.

        Raises:
            FileError: the folder was replaced by another result since it was opened.
        """
        stored = dict(RowFolder.open(self.path).manifest)
        if stored["content"] != self.manifest["content"]:
            raise FileError(
                f"{self.path} holds another result by now.", hint="Open it again: recsys.load(folder)."
            )
        stored["result"] = {**stored["result"], "run": {**stored["result"]["run"], **facts}}
        _write_manifest(self.path, stored)
        self.manifest = stored

    def _is_consistent(self) -> bool:
        kinds = {column.role: column.kind for column in self.columns}
        ids = {"int": int, "str": str}[kinds["ids"]]
        return (
            self.columns[0].role == "ids"
            and self.manifest["ids"] == kinds["ids"]
            and len({column.name for column in self.columns}) == len(self.columns)
            and all(
                _FILE_NAME.fullmatch(piece.file)
                and type(piece.rows) is int
                and piece.rows > 0
                and type(piece.first) is type(piece.last) is ids
                for piece in self._pieces
            )
            and len({piece.file for piece in self._pieces}) == len(self._pieces)
            and sum(piece.rows for piece in self._pieces) == self.manifest["rows"]
            and self.is_sorted is _are_ranges(self._pieces)
            and self.manifest["content"] == _hash_pieces(self.columns, self._pieces)
        )

    def __len__(self) -> int:
        return int(self.manifest["rows"])

    def __repr__(self) -> str:
        return f"RowFolder({str(self.path)!r}, {len(self):,} rows, {len(self._pieces):,} pieces)"

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics."""
        return tuple(column.name for column in self.columns if column.role == "metric")

    def _selected(self, metrics: Iterable[str] | None) -> list[str]:
        """Return the columns of some metrics, with the ids and all else that belongs to the rows."""
        wanted = set(self.names if metrics is None else metrics)
        if unknown := sorted(wanted.difference(self.names)):
            raise ColumnError(
                f"{self.path} has no metric {unknown[0]!r}.",
                column=unknown[0],
                hint=f"It has: {', '.join(self.names)}.",
            )
        of_metrics = ("metric", "first", "second")
        return [c.name for c in self.columns if c.role not in of_metrics or c.metric in wanted]

    def rows(self, columns: Iterable[str] | None = None) -> FolderRows:
        """Return all rows in ascending order of ids, as a PerCase that reads each column at its first use."""
        selected = self._selected(columns)
        metrics = LazyColumns([name for name in self.names if name in selected], self._read)
        rows = FolderRows.__new__(FolderRows)  # its fields are not known yet
        rows.__dict__.update(columns=metrics, folder=self, _n_rows=len(self), _read=self._read_role)
        return rows

    @cached_property
    def terms(self) -> Mapping[str, tuple[Float, Float]]:
        """The two terms of metrics that have them, in the order of `rows`, each read when first used."""
        names = [column.metric for column in self.columns if column.role == "first"]
        return LazyColumns(names, self._read_terms)

    def _read_terms(self, name: str) -> tuple[Float, Float]:
        return self._read(f"{name}|first"), self._read(f"{name}|second")

    @cached_property
    def truth_keys(self) -> Array | None:
        """One number per case that tells its truth from others, in the order of `rows`."""
        return self._read_role("truth")

    @cached_property
    def _ids(self) -> Array:
        """All ids, as they are in the pieces."""
        return self._read_pieces(self.columns[0].name)

    @cached_property
    def _order(self) -> Array | slice:
        """What brings the rows of all pieces into ascending order of ids."""
        if self.is_sorted:
            return slice(None)
        order = np.argsort(self._ids, kind="stable")
        self._check_ascending(self._ids[order])
        return order

    def _read_role(self, role: str) -> Array | None:
        """Return the column that has this role."""
        name = next((column.name for column in self.columns if column.role == role), None)
        return None if name is None else self._read(name)

    def _read(self, name: str) -> Array:
        """Return one column of all pieces, in ascending order of ids."""
        values = self._ids if name == self.columns[0].name else self._read_pieces(name)
        return values[self._order]

    def _read_pieces(self, name: str) -> Array:
        kind = next(column.kind for column in self.columns if column.name == name)
        out = np.empty(len(self), _DTYPES[kind])
        start = 0
        for batch in self._all_batches([name]):
            out[start : start + batch.num_rows] = batch.column(name).to_numpy(zero_copy_only=False)
            start += batch.num_rows
        return out

    def pieces(self, columns: Iterable[str] | None = None, *, rows: int = ROWS_AT_ONCE) -> Iterator[Piece]:
        """Yield the rows, at most `rows` at a time, in the order of the files; within a file ids ascend."""
        names = self._selected(columns)
        for batch in self._all_batches(names, rows):
            yield self._piece(batch, names)

    def ascending_pieces(
        self, columns: Iterable[str] | None = None, *, rows: int = ROWS_AT_ONCE
    ) -> Iterator[Piece]:
        """Yield the rows in ascending order of ids over all pieces, at most `rows` at a time.

        Pieces that share a range are brought into order first: beyond half a million rows in a temporary
        folder, which takes about as much space as the columns would in memory.
        """
        names = self._selected(columns)
        previous: Any = None
        for batch in (self._all_batches if self.is_sorted else self._sorted_batches)(names, rows):
            piece = self._piece(batch, names)
            self._check_ascending(piece.rows.ids, previous)
            previous = piece.rows.ids[-1]
            yield piece

    def no_rows(self, columns: Iterable[str] | None = None) -> Piece:
        """Return a piece without rows."""
        arrow, _ = _import_arrow()
        types, names = _arrow_types(arrow), self._selected(columns)
        cells = {c.name: arrow.array([], type=types[c.kind]) for c in self.columns if c.name in names}
        return self._piece(arrow.record_batch([*cells.values()], names=[*cells]), names)

    def check(self) -> None:
        """Read everything and compare it with the manifest.

        Raises:
            FileError: a file is missing, damaged or another one, or one is there that does not belong.
        """
        if foreign := self.foreign_files():
            raise FileError(
                f"{self.path} holds {foreign[0]}, which its {_MANIFEST} does not name.",
                hint="Move it elsewhere.",
            )
        names, kinds = [column.name for column in self.columns], [column[:2] for column in self.columns]
        for piece in self._pieces:
            first = last = None
            n_rows, hashes = 0, []
            for batch in self._batches(piece, names, ROWS_AT_ONCE):
                ids = batch.column(names[0]).to_numpy(zero_copy_only=False)
                self._check_ascending(ids, last)
                first, last = ids[0] if first is None else first, ids[-1]
                n_rows += len(ids)
                hashes.append(hash_rows(batch, kinds))
            if (n_rows, first, last, add_hashes(hashes)) != piece[2:]:
                raise self._damaged(piece, "holds other rows than its manifest says")
        if not self.is_sorted:
            for _ in self.ascending_pieces(()):  # finds a user that is in two pieces
                pass

    def foreign_files(self) -> list[str]:
        """Files of the folder that the manifest does not name; hidden ones do not count."""
        own = {_MANIFEST, *(piece.file for piece in self._pieces)}
        try:
            return sorted({file.name for file in self.path.iterdir() if file.name[0] not in "._"} - own)
        except OSError as error:
            raise read_error(str(self.path), error) from error

    def _check_ascending(self, ids: Array, previous: Any = None) -> None:
        """Raise an error if an id is not above the one before it."""
        wrong = np.flatnonzero(ids[1:] <= ids[:-1]) + 1
        if previous is not None and ids[0] <= previous:
            wrong = np.append(0, wrong)
        if len(wrong):
            raise FileError(
                f"{self.path}: {ids[wrong].tolist()[0]!r} occurs twice, or out of order.", hint=_WRITE_AGAIN
            )

    def _damaged(self, piece: WrittenPiece, what: str) -> FileError:
        return FileError(f"{self.path / piece.file} {what}.", hint=_WRITE_AGAIN)

    def _batches(self, piece: WrittenPiece, names: Sequence[str], rows: int) -> Iterator[Any]:
        """Some columns of a file, at most `rows` rows at a time; its length and columns are checked first."""
        arrow, parquet = _import_arrow()
        types = _arrow_types(arrow)
        schema = arrow.schema([(column.name, types[column.kind]) for column in self.columns])
        try:
            with parquet.ParquetFile(self.path / piece.file, page_checksum_verification=True) as file:
                content = (file.schema_arrow.metadata or {}).get(b"recsys", b"").decode(errors="replace")
                if not file.schema_arrow.equals(schema):
                    raise self._damaged(piece, "has other columns than its manifest says")
                if file.metadata.num_rows != piece.rows or content != piece.content:
                    raise self._damaged(piece, "belongs to another result")
                for batch in file.iter_batches(rows, columns=list(names), use_threads=False):
                    if batch.num_rows:
                        yield batch
        except FileError:
            raise
        except FileNotFoundError as error:
            raise self._damaged(piece, "is missing") from error
        except (OSError, ValueError, MemoryError, OverflowError, arrow.ArrowException) as error:
            raise self._damaged(piece, f"is damaged or cannot be read ({error})") from error

    def _piece(self, batch: Any, names: Sequence[str]) -> Piece:
        cells: dict[str, dict[str, Array]] = {}
        for column in self.columns:
            if column.name in names:
                values = batch.column(column.name).to_numpy(zero_copy_only=False)
                cells.setdefault(column.role, {})[column.metric] = values

        def only(role: str) -> Array | None:
            return next(iter(cells[role].values())) if role in cells else None

        ids = next(iter(cells["ids"].values()))
        rows = PerCase(ids, cells.get("metric", {}), only("clusters"), only("weights"))
        seconds = cells.get("second", {})
        terms = {name: (first, seconds[name]) for name, first in cells.get("first", {}).items()}
        return Piece(rows, terms, only("truth"))

    def _sorted_batches(self, names: Sequence[str], rows: int) -> Iterator[Any]:
        """Yield the rows of pieces that share a range, in ascending order of ids.

        They are dealt to ranges, each sorted.
        """
        arrow, _ = _import_arrow()
        key = self.columns[0].name

        def in_order(batches: list[Any]) -> Any:
            table = arrow.Table.from_batches(batches)
            batches.clear()  # their memory is needed
            table = table.combine_chunks()
            return table.take(np.argsort(table.column(key).to_numpy(), kind="stable"))

        if len(self) <= _ROWS_IN_MEMORY:
            yield from in_order(list(self._all_batches(names))).to_batches(rows)
            return
        step = max(1, _ROWS_OF_RANGE // _SAMPLED_ROWS)
        ids = (batch.column(key).to_numpy(zero_copy_only=False) for batch in self._all_batches([key]))
        edges = np.sort(np.concatenate([values[::step] for values in ids]))[_SAMPLED_ROWS::_SAMPLED_ROWS]
        with tempfile.TemporaryDirectory(prefix="recsys-") as place:
            files = [Path(place) / f"{at}.arrow" for at in range(len(edges) + 1)]
            for batches in _gather(self._all_batches(names), _ROWS_OF_RANGE):
                table = in_order(batches)
                cuts = np.searchsorted(table.column(key).to_numpy(), edges).tolist()
                for file, (start, stop) in zip(files, pairwise([0, *cuts, len(table)]), strict=True):
                    if stop > start:
                        with file.open("ab") as out, arrow.ipc.new_stream(out, table.schema) as stream:
                            stream.write_table(table.slice(start, stop - start))
                del table
            for file in filter(Path.exists, files):
                found: list[Any] = []
                with file.open("rb") as source:
                    while source.peek(1):
                        found += arrow.ipc.open_stream(source)
                file.unlink()
                yield from in_order(found).to_batches(rows)

    def _all_batches(self, names: Sequence[str], rows: int = ROWS_AT_ONCE) -> Iterator[Any]:
        for piece in self._pieces:
            yield from self._batches(piece, names, rows)


class LazyColumns(Mapping[str, V]):
    """Columns by name, each read when it is first used, and then kept."""

    def __init__(self, names: Iterable[str], read: Callable[[str], V]) -> None:
        self._names = dict.fromkeys(names)
        self._read = read
        self._found: dict[str, V] = {}

    def __getitem__(self, name: str) -> V:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._found:
            self._found[name] = self._read(name)
        return self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class FolderRows(PerCase):
    """All rows of a folder in ascending order of ids; each column is read when it is first used.

    `dataclasses.replace` makes one of which all but the columns has been read. `folder` reads them by pieces.
    """

    folder: RowFolder | None = None
    _n_rows: int | None = None
    _read: Callable[[str], Any]

    @cached_property
    def cases(self) -> Array:
        return cast("Array", self._read("ids"))

    @cached_property
    def clusters(self) -> Array | None:
        return cast("Array | None", self._read("clusters"))

    @cached_property
    def weights(self) -> Float | None:
        return cast("Float | None", self._read("weights"))

    def __len__(self) -> int:
        return len(self.cases) if self._n_rows is None else self._n_rows

    def __repr__(self) -> str:
        return f"FolderRows({len(self):,} rows: {', '.join(self.columns)})"


def _write_manifest(folder: Path, document: Mapping[str, Any]) -> None:
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    write_text(folder / _MANIFEST, text + "\n")


def _refuse_foreign_folder(target: Path) -> None:
    """Raise an error if something is there that is neither an empty folder nor an earlier result."""
    if target.is_symlink():
        raise FileError(f"{target} is a symbolic link.", hint="Name the folder it points to.")
    if not target.exists():
        if not target.absolute().parent.is_dir():
            raise FileError(f"there is no folder {target.absolute().parent}.", hint="Make it first.")
        return
    if not target.is_dir():
        raise FileError(f"{target} is a file.", hint="Name a folder.")
    with write_errors_of(target):
        found = sorted(file.name for file in target.iterdir())
    if found:
        try:
            earlier = RowFolder.open(target)
        except FileError:
            found = [name for name in found if name != _MANIFEST] or found
        else:
            found = earlier.foreign_files()
        if found:
            raise FileError(
                f"{target} holds {found[0]}, which is not part of an earlier result.",
                hint="Name a new or an empty folder.",
            )


def _import_arrow() -> tuple[Any, Any]:
    with needs_extra("pyarrow", "arrow", "A folder of values per user"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    return pa, pq


def _arrow_types(arrow: Any) -> dict[str, Any]:
    return {
        "int": arrow.int64(),
        "str": arrow.large_string(),
        "float": arrow.float64(),
        "key": arrow.uint64(),
    }


def _gather(batches: Iterable[Any], rows: int) -> Iterator[list[Any]]:
    """Batches together that have at least this many rows; the last ones may have fewer."""
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= rows:
            yield held
            held = []
    if held:
        yield held


def _kind(ids: Array) -> str:
    return "int" if ids.dtype.kind in "iu" else "str"


def _describe(columns: Sequence[Column]) -> str:
    return ", ".join(f"{column.name} ({column.kind})" for column in columns)


def _are_ranges(pieces: Sequence[WrittenPiece]) -> bool:
    """Return whether each piece begins after the one before it has ended."""
    return all(a.last < b.first for a, b in pairwise(pieces))  # type: ignore[operator]


def _hash_pieces(columns: Sequence[Column], pieces: Sequence[WrittenPiece]) -> str:
    """Return the hash of the content of all pieces."""
    n_rows = sum(piece.rows for piece in pieces)
    return hash_table(columns, n_rows, add_hashes([piece.content for piece in pieces]))
