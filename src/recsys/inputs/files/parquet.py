"""Parquet: the columns that count and no others, by whichever of pyarrow and polars is installed."""

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
    """A narwhals frame of the columns that play a role, and which plays which."""
    import narwhals.stable.v2 as nw

    opened = _opened(source)
    frame, found = _by_arrow(source, opened, roles, columns) or _by_polars(source, opened, roles, columns)
    return nw.from_native(frame, eager_only=True), found


def read_parquet_whole(source: FileContent) -> Any:
    """A narwhals frame of every column."""
    import narwhals.stable.v2 as nw

    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "arrow", "Reading Parquet") from error
    try:
        with parquet.ParquetFile(_opened(source), page_checksum_verification=True) as file:
            return nw.from_native(file.read(), eager_only=True)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(source, error) from error


def _opened(source: FileContent) -> Any:
    """The file itself where Parquet lies in it as it is, else its bytes."""
    return source.path if source.plain else io.BytesIO(source.data)


def _by_arrow(
    source: FileContent, opened: Any, roles: tuple[str, ...], columns: Any
) -> tuple[Any, dict[str, str]] | None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        return None
    try:
        with parquet.ParquetFile(opened, page_checksum_verification=True) as file:
            found = find_columns(list(file.schema_arrow.names), roles, columns, source.name)
            return file.read(columns=list(dict.fromkeys(found.values()))), found
    except (pa.ArrowException, OSError) as error:
        raise _damaged(source, error) from error


def _by_polars(
    source: FileContent, opened: Any, roles: tuple[str, ...], columns: Any
) -> tuple[Any, dict[str, str]]:
    try:
        import polars as pl
    except ImportError as error:
        raise MissingExtraError("pyarrow", "arrow", "Reading Parquet") from error
    try:
        found = find_columns(list(pl.read_parquet_schema(opened)), roles, columns, source.name)
        if isinstance(opened, io.BytesIO):
            opened.seek(0)
        return pl.read_parquet(opened, columns=list(dict.fromkeys(found.values()))), found
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _damaged(source, error) from error


def _damaged(source: FileContent, error: Exception) -> Exception:
    if isinstance(error, RecsysError):
        return error
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return FileError(
        f"{source.name} is a damaged or truncated Parquet file ({reason}).", hint="Copy or write it again."
    )
