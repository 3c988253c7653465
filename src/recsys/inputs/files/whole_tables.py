"""Whole tables: a file to a pandas table with all its columns, and a table of any kind to a file.

Columns that play a role are typed (ids as asked for, ratings as numbers, times as numbers if all are); all
other columns stay text, so that a table written again equals the one read.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from recsys.errors import FileError, MissingExtraError, UnknownNameError
from recsys.inputs.files.atomic_write import write_bytes
from recsys.inputs.files.content import FileContent, detect_format, open_file
from recsys.inputs.files.json_records import json_table
from recsys.inputs.files.reader import (
    RATING_COLUMNS,
    IdKind,
    convert_id_column,
    encode_text,
    parse_numbers,
    parse_times,
)
from recsys.inputs.files.text import TextTable, decode, split_table
from recsys.inputs.frames import as_frame, detect_columns

TABLES = ("csv", "tsv", "inter", "ratings", "parquet", "json", "jsonl")
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".inter": "\t"}
_ROLES = ("user", "item", "grade", "time")


def read_table(
    path: str | os.PathLike[str] | FileContent,
    *,
    columns: Mapping[str, str] | None = None,
    format: str | None = None,  # noqa: A002 - the usual name
    ids: IdKind = "auto",
    encoding: str = "utf-8",
    header: Sequence[str] | None = None,
    text: bool = False,
) -> tuple[Any, dict[str, str]]:
    r"""A pandas table of all columns, and {role: column} for user, item, grade and time.

    `header` names the columns of a file that has none; `text` leaves every cell of a text file as it is.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "u.data"
    >>> _ = path.write_text("196\t242\t3\t881250949\n186\t302\t3\t891717742\n")
    >>> table, roles = read_table(path)
    >>> table["rating"].tolist(), roles["time"]
    ([3.0, 3.0], 'timestamp')
    """
    source = path if isinstance(path, FileContent) else open_file(path)
    form = format or detect_format(source)
    if form not in TABLES:
        raise UnknownNameError("format of a table", form, TABLES)
    if form == "parquet":
        return _read_parquet_table(source, columns, ids)
    names = RATING_COLUMNS if form == "ratings" and header is None else header
    data = decode(source.data, source.name, encoding)
    if form in ("json", "jsonl"):
        table = json_table(data, source.name, lines=form == "jsonl")
    else:
        table = split_table(data, source.name, form, names)
    repeated = [name for name in table.names if table.names.count(name) > 1]
    if repeated:
        raise FileError(
            f"{source.name}: the column {repeated[0]!r} occurs twice.", hint="Rename one of the two."
        )
    column_of = detect_columns(table.names, _ROLES, columns, source.name)
    return _typed_table(table, {} if text else column_of, ids), column_of


def _typed_table(table: TextTable, column_of: Mapping[str, str], ids: IdKind) -> Any:
    import pandas as pd

    cells_by_name = dict(zip(table.names, table.pick(table.names), strict=True))
    if len(next(iter(cells_by_name.values()))) == 0:
        raise FileError(f"{table.name} has a header and no rows.", hint="Check what wrote it.")
    roles = {name: role for role, name in column_of.items()}
    columns: dict[str, Any] = {}
    for name, column in cells_by_name.items():
        role = roles.get(name)
        if role in ("user", "item"):
            known, codes = encode_text(column, role, ids, table, {})
            columns[name] = known.values[codes]
        elif role == "grade":
            columns[name] = parse_numbers(column, role, table)
        elif role == "time":
            columns[name] = _parse_times(column)
        else:
            columns[name] = np.array(
                column.to_pylist() if hasattr(column, "to_pylist") else column, dtype=object
            )
    return pd.DataFrame(columns)


def _parse_times(column: Any) -> Any:
    """Whole numbers, decimal numbers, or the text: dates are parsed where they are needed."""
    times = parse_times(column)
    if times.dtype == object:
        with suppress(ValueError):
            return times.astype(np.float64)
    return times


def _read_parquet_table(
    source: FileContent, columns: Mapping[str, str] | None, ids: IdKind
) -> tuple[Any, dict[str, str]]:
    from recsys.inputs.files.parquet import read_parquet_whole

    frame = read_parquet_whole(source)
    column_of = detect_columns(list(frame.columns), _ROLES, columns, source.name)
    for role in ("user", "item"):
        if role in column_of and ids != "auto":
            frame = frame.with_columns(convert_id_column(frame, column_of[role], ids, source.name))
    return frame.to_pandas(), column_of


def write_table(path: str | os.PathLike[str], data: Any) -> None:
    """Write a pandas, polars or Arrow table as .csv, .tsv, .inter or .parquet, by the ending of `path`."""
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in (*_SEPARATORS, ".parquet"):
        raise UnknownNameError("ending of a table's file", target.suffix, (*_SEPARATORS, ".parquet"))
    frame = as_frame(data)
    if frame is None:
        raise FileError(f"{type(data).__name__} is no table.", hint="Pass a pandas, polars or Arrow table.")
    write_bytes(
        target,
        parquet_bytes(frame.to_arrow()) if kind == ".parquet" else _separated_text(frame, target).encode(),
    )


def _separated_text(frame: Any, target: Path) -> str:
    kind, table = target.suffix.lower(), frame.to_pandas()
    if kind == ".inter":  # without quotes: a cell is the text between two tabs
        cells = (cell for name in table for cell in (name, *table[name].tolist()) if isinstance(cell, str))
        bad_cell = next((cell for cell in cells if re.search(r"[\t\r\n]", cell)), None)
        if bad_cell is not None:
            raise FileError(
                f"{bad_cell!r} cannot be written to {target.name}: "
                "the format allows no tabs or line breaks in cells.",
                hint="Write .csv, .tsv or .parquet.",
            )
    quoting = csv.QUOTE_NONE if kind == ".inter" else csv.QUOTE_MINIMAL
    text: str = table.to_csv(sep=_SEPARATORS[kind], index=False, lineterminator="\n", quoting=quoting)
    return text


def parquet_bytes(table: Any) -> bytes:
    """An Arrow table as a Parquet file, pages with checksums."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "arrow", "Writing Parquet") from error
    out = io.BytesIO()
    parquet.write_table(table, out, write_page_checksum=True)
    return out.getvalue()
