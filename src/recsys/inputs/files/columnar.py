"""Files of typed columns: Parquet and Arrow IPC (Feather); only the columns needed are read.

Arrow reads both. Without it polars reads Parquet.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from recsys.errors import FileError, Phrase, RecsysError, RecsysWarning, hush, needs_extra
from recsys.inputs.files.formats import FileContent, Format, ReadOptions, add_format, check_same_columns
from recsys.inputs.files.text import locate_errors
from recsys.inputs.frames import as_frame, detect_columns, find_columns
from recsys.inputs.ids import IdKind, ids_of_texts
from recsys.records.arrays import Interactions, Lists

# A function (column names) -> columns to read, or None for all.
_Choice = Callable[[list[str]], list[str] | None]
_Load = Callable[[FileContent, _Choice], Any]


def _load_parquet(source: FileContent, choose: _Choice, *, first_row: bool = False) -> Any:
    content: Any = source.path if source.plain else io.BytesIO(source.data)
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        return _load_parquet_by_polars(source, content, choose)
    try:
        with parquet.ParquetFile(content, page_checksum_verification=True) as file:
            columns = choose(list(file.schema_arrow.names))
            row = next(file.iter_batches(1, columns=columns), None) if first_row else None
            return file.read(columns=columns) if row is None else pa.Table.from_batches([row])
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise _damage_error(source, "Parquet", error) from error


def _load_parquet_by_polars(source: FileContent, content: Any, choose: _Choice) -> Any:
    with needs_extra("pyarrow", "arrow", "Reading Parquet"):
        import polars as pl
    try:
        columns = choose(list(pl.read_parquet_schema(content)))
        if isinstance(content, io.BytesIO):
            content.seek(0)
        return pl.read_parquet(content, columns=columns)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _damage_error(source, "Parquet", error) from error


def _load_arrow(source: FileContent, choose: _Choice) -> Any:
    with needs_extra("pyarrow", "arrow", "Reading Arrow files"):
        import pyarrow as pa
    try:
        content = pa.memory_map(str(source.path)) if source.plain else pa.BufferReader(source.data)
        with content, pa.ipc.open_file(content) as file:
            columns = choose(list(file.schema.names))
            table = file.read_all() if columns is None else file.read_all().select(columns)
            table.validate(full=True)
            return table
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise _damage_error(source, "Arrow", error) from error


def _load_parts(load: _Load, source: FileContent, choose: _Choice) -> tuple[Any, list[int]]:
    """Return the frame of a file, or of several, one below the other, and how many rows each has."""
    import narwhals.stable.v2 as nw

    if not source.parts:
        frame = as_frame(load(source, choose))
        return frame, [len(frame)]
    names: list[str] = []
    chosen: list[str] | None = None
    frames: list[Any] = []
    for part in source.parts:

        def choose_alike(found: list[str], part: FileContent = part) -> list[str] | None:
            nonlocal names, chosen
            if not names:
                names, chosen = found, choose(found)
            check_same_columns(source.parts[0], names, part.name, found)
            return chosen

        frame = as_frame(load(part, choose_alike))
        frames.append(frame.select(frames[0].columns) if frames else frame)
    for name in frames[0].columns:
        types = [frame.schema[name] for frame in frames]
        if len(set(types)) > 1:
            # A column without values may come without a type, as that of an empty file by pandas 2.
            typed = next(kind for kind in types if kind != nw.Unknown)
            types = [
                typed if kind == nw.Unknown and not frame[name].count() else kind
                for kind, frame in zip(types, frames, strict=True)
            ]
            wider = typed if len(set(types)) == 1 else _wider_type(name, types, source)
            frames = [frame.with_columns(nw.col(name).cast(wider)) for frame in frames]
    return nw.concat(frames), [len(frame) for frame in frames]


def _wider_type(name: str, types: list[Any], source: FileContent) -> Any:
    """Return a type for the column of every file; whole numbers, other numbers and text do not mix."""
    import narwhals.stable.v2 as nw

    if all(kind.is_integer() and kind not in (nw.UInt64, nw.Int128, nw.UInt128) for kind in types):
        return nw.Int64
    if all(kind.is_float() for kind in types):
        return nw.Float64
    if all(kind in (nw.String, nw.Categorical, nw.Enum) for kind in types):
        return nw.String
    other = next(at for at, kind in enumerate(types) if kind != types[0])
    raise FileError(
        f"the column {name!r} is {types[0]} in {source.parts[0].name} and {types[other]} in "
        f"{source.parts[other].name}.",
        hint="Write the files of one table with the same types.",
    )


def _damage_error(source: FileContent, title: str, error: Exception) -> Exception:
    if isinstance(error, RecsysError):
        return error
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return FileError(
        f"{source.name} is a damaged or truncated {title} file ({reason}).", hint="Copy or write it again."
    )


def _read(load: _Load, source: FileContent, options: ReadOptions) -> Lists | Interactions:
    column_of: dict[str, str] = {}
    unused: list[str] = []

    def columns_with_roles(names: list[str]) -> list[str] | None:
        column_of.update(find_columns(names, options.roles, options.columns, source.name))
        unused.extend(name for name in names if name not in column_of.values())
        if options.ranked_by_rows(column_of):
            return None  # to see whether an unused column looks like a score
        return list(dict.fromkeys(column_of.values()))

    frame, sizes = _load_parts(load, source, columns_with_roles)
    for role in ("case", "user", "item"):
        if role in column_of and options.ids in ("str", "int"):
            frame = frame.with_columns(_convert_id_column(frame, column_of[role], options.ids, source.name))

    def row_of_part(row: int) -> str:
        part = int(np.searchsorted(np.cumsum(sizes), row, side="right"))
        return f"row {row - sum(sizes[:part])} of {source.parts[part].name}"

    with locate_errors(source.name, row_of_part if source.parts else None):
        return options.finish(frame.to_native(), column_of, source.name, unused=unused)


def _scan_parquet(source: FileContent, options: ReadOptions) -> tuple[dict[str, str], None]:
    """Find the column of each role in files that DuckDB scans; the first rows are read as all would be."""
    if not all(file.plain for file in source.parts or (source,)):
        raise FileError(
            f"{source.name} is packed, and beyond memory Parquet files are read where they are.",
            hint=Phrase("Unpack it first, or leave out {memory=}."),
        )
    with hush(RecsysWarning):
        found = _read(partial(_load_parquet, first_row=True), source, options).facts.columns or {}
    return {role: found[role] for role in options.roles if role in found}, None


def _read_whole(
    load: _Load, title: str, source: FileContent, options: ReadOptions
) -> tuple[Any, dict[str, str]]:
    with needs_extra("pyarrow", "arrow", f"Reading {title}"):
        import pyarrow as pa  # noqa: F401 - pandas tables are made of Arrow's
    frame, _ = _load_parts(load, source, lambda _: None)
    column_of = detect_columns(
        list(frame.columns), ("user", "item", "grade", "time"), options.columns, source.name
    )
    for role in ("user", "item"):
        if role in column_of and options.ids in ("str", "int"):
            frame = frame.with_columns(_convert_id_column(frame, column_of[role], options.ids, source.name))
    try:
        return frame.to_pandas(), column_of
    except Exception as error:  # of many types: what pandas noted in the file may be damaged
        raise _damage_error(source, title, error) from error


def _integers_as_text(series: Any) -> Any:
    """Return a column of integers as text; of Arrow, each distinct one is converted once."""
    import narwhals.stable.v2 as nw

    native = series.to_native()
    if not hasattr(native, "dictionary_encode"):
        return series.cast(nw.String)
    import pyarrow as pa

    encoded = native.combine_chunks().dictionary_encode()
    texts = pa.DictionaryArray.from_arrays(encoded.indices, encoded.dictionary.cast(pa.string()))
    return nw.from_native(pa.chunked_array([texts]), series_only=True).alias(series.name)


def _convert_id_column(frame: Any, name: str, ids: IdKind | None, file: str) -> Any:
    """Return an id column as text or whole numbers; columns of other types are checked later."""
    import narwhals.stable.v2 as nw

    series = frame[name]
    if ids == "str" and series.dtype.is_integer():
        return _integers_as_text(series)
    if ids == "int" and series.dtype in (nw.String, nw.Categorical, nw.Enum) and not series.is_null().any():
        numbers = ids_of_texts(series.cast(nw.String).to_list(), "int", file, name)
        return nw.new_series(name, numbers, nw.Int64, backend=frame.implementation)
    return series


def parquet_bytes(table: Any) -> bytes:
    """Return an Arrow table as a Parquet file, pages with checksums."""
    with needs_extra("pyarrow", "arrow", "Writing Parquet"):
        from pyarrow import parquet
    out = io.BytesIO()
    parquet.write_table(table, out, write_page_checksum=True)
    return out.getvalue()


def _arrow_bytes(table: Any) -> bytes:
    import pyarrow as pa

    out = io.BytesIO()
    with pa.ipc.new_file(out, table.schema) as file:
        file.write_table(table)
    return out.getvalue()


def _add(name: str, load: _Load, title: str, **facts: Any) -> None:
    read, read_whole = partial(_read, load), partial(_read_whole, load, title)
    add_format(Format(name, read, read_whole, typed=True, help="its first bytes", **facts))


_add(
    "parquet",
    _load_parquet,
    "Parquet",
    write=lambda frame, _: parquet_bytes(frame.to_arrow()),
    suffixes=(".parquet", ".pq"),
    magic=b"PAR1",
    lists="user, item, and score or rank; needs pyarrow or polars",
    read_blocks=_scan_parquet,
)
_add(
    "arrow",
    _load_arrow,
    "Arrow files",
    write=lambda frame, _: _arrow_bytes(frame.to_arrow()),
    suffixes=(".arrow", ".feather"),
    magic=b"ARROW1",
    lists="user, item, and score or rank; needs pyarrow",
)
