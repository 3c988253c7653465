"""Parquet files, read with pyarrow or polars, whichever is installed; only the columns needed."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from recsys.errors import FileError, MissingExtraError, RecsysError
from recsys.inputs.files.content import FileContent
from recsys.inputs.frames import find_columns


def read_parquet(
    source: FileContent, roles: tuple[str, ...], columns: Mapping[str, str] | None
) -> tuple[Any, dict[str, str]]:
    """A narwhals frame of the columns that play a role, and {role: column}."""
    import narwhals.stable.v2 as nw

    file_or_bytes = _path_or_bytes(source)
    frame, column_of = _read_by_arrow(source, file_or_bytes, roles, columns) or _read_by_polars(
        source, file_or_bytes, roles, columns
    )
    return nw.from_native(frame, eager_only=True), column_of


def read_parquet_whole(source: FileContent) -> Any:
    """A narwhals frame of every column."""
    import narwhals.stable.v2 as nw

    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "arrow", "Reading Parquet") from error
    try:
        with parquet.ParquetFile(_path_or_bytes(source), page_checksum_verification=True) as file:
            return nw.from_native(file.read(), eager_only=True)
    except (pa.ArrowException, OSError) as error:
        raise _damage_error(source, error) from error


def _path_or_bytes(source: FileContent) -> Any:
    """The path of an uncompressed file, else the bytes."""
    return source.path if source.plain else io.BytesIO(source.data)


def _read_by_arrow(
    source: FileContent, file_or_bytes: Any, roles: tuple[str, ...], columns: Any
) -> tuple[Any, dict[str, str]] | None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        return None
    try:
        with parquet.ParquetFile(file_or_bytes, page_checksum_verification=True) as file:
            column_of = find_columns(list(file.schema_arrow.names), roles, columns, source.name)
            return file.read(columns=list(dict.fromkeys(column_of.values()))), column_of
    except (pa.ArrowException, OSError) as error:
        raise _damage_error(source, error) from error


def _read_by_polars(
    source: FileContent, file_or_bytes: Any, roles: tuple[str, ...], columns: Any
) -> tuple[Any, dict[str, str]]:
    try:
        import polars as pl
    except ImportError as error:
        raise MissingExtraError("pyarrow", "arrow", "Reading Parquet") from error
    try:
        column_of = find_columns(list(pl.read_parquet_schema(file_or_bytes)), roles, columns, source.name)
        if isinstance(file_or_bytes, io.BytesIO):
            file_or_bytes.seek(0)
        return pl.read_parquet(file_or_bytes, columns=list(dict.fromkeys(column_of.values()))), column_of
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _damage_error(source, error) from error


def _damage_error(source: FileContent, error: Exception) -> Exception:
    if isinstance(error, RecsysError):
        return error
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return FileError(
        f"{source.name} is a damaged or truncated Parquet file ({reason}).", hint="Copy or write it again."
    )
