"""Whole tables: a file to a pandas table with every column it has, and a table of any kind to a file.

Columns that play a role are typed (ids as asked, ratings as numbers, times as numbers where they are); all
others stay the text they were, so that what is written again is what was read.
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
from recsys.inputs.files.content import FileContent, format_of, open_source
from recsys.inputs.files.json_records import json_table
from recsys.inputs.files.reader import RATING_COLUMNS, IdKind, coded_text, numbers_of, retyped, times_of
from recsys.inputs.files.text import TextTable, decoded, split_table
from recsys.inputs.frames import as_frame, known_columns

TABLES = ("csv", "tsv", "inter", "ratings", "parquet", "json", "jsonl")
_ENDINGS = {".csv": ",", ".tsv": "\t", ".inter": "\t"}
_ROLES = ("user", "item", "grade", "time")


def read_table(
    path: str | os.PathLike[str] | FileContent,
    *,
    columns: Mapping[str, str] | None = None,
    format: str | None = None,  # noqa: A002 - what a reader would call it
    ids: IdKind = "auto",
    encoding: str = "utf-8",
    header: Sequence[str] | None = None,
    text: bool = False,
) -> tuple[Any, dict[str, str]]:
    r"""A pandas table of all columns, and which of them plays which role (user, item, grade, time).

    `header` names the columns of a file that has none; `text` leaves every cell of a text file as it is.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "u.data"
    >>> _ = path.write_text("196\t242\t3\t881250949\n186\t302\t3\t891717742\n")
    >>> table, roles = read_table(path)
    >>> table["rating"].tolist(), roles["time"]
    ([3.0, 3.0], 'timestamp')
    """
    source = path if isinstance(path, FileContent) else open_source(path)
    form = format or format_of(source)
    if form not in TABLES:
        raise UnknownNameError("format of a table", form, TABLES)
    if form == "parquet":
        return _typed(source, columns, ids)
    named = RATING_COLUMNS if form == "ratings" and header is None else header
    data = decoded(source.data, source.name, encoding)
    if form in ("json", "jsonl"):
        table = json_table(data, source.name, lines=form == "jsonl")
    else:
        table = split_table(data, source.name, form, named)
    twice = [name for name in table.names if table.names.count(name) > 1]
    if twice:
        raise FileError(
            f"{source.name}: the column {twice[0]!r} stands twice.", hint="Rename one of the two."
        )
    found = known_columns(table.names, _ROLES, columns, source.name)
    return _frame(table, {} if text else found, ids), found


def _frame(table: TextTable, found: Mapping[str, str], ids: IdKind) -> Any:
    import pandas as pd

    picked = dict(zip(table.names, table.pick(table.names), strict=True))
    if len(next(iter(picked.values()))) == 0:
        raise FileError(f"{table.name} has a header and no rows.", hint="Check what wrote it.")
    roles = {name: role for role, name in found.items()}
    made: dict[str, Any] = {}
    for name, column in picked.items():
        role = roles.get(name)
        if role in ("user", "item"):
            known, codes = coded_text(column, role, ids, table, {})
            made[name] = known.values[codes]
        elif role == "grade":
            made[name] = numbers_of(column, role, table)
        elif role == "time":
            made[name] = _times(column)
        else:
            made[name] = np.array(
                column.to_pylist() if hasattr(column, "to_pylist") else column, dtype=object
            )
    return pd.DataFrame(made)


def _times(column: Any) -> Any:
    """Whole numbers, decimal numbers, or the text: dates are read by who needs them."""
    made = times_of(column)
    if made.dtype == object:
        with suppress(ValueError):
            return made.astype(np.float64)
    return made


def _typed(source: FileContent, columns: Mapping[str, str] | None, ids: IdKind) -> tuple[Any, dict[str, str]]:
    from recsys.inputs.files.parquet import read_parquet_whole

    frame = read_parquet_whole(source)
    found = known_columns(list(frame.columns), _ROLES, columns, source.name)
    for role in ("user", "item"):
        if role in found and ids != "auto":
            frame = frame.with_columns(retyped(frame, found[role], ids, source.name))
    return frame.to_pandas(), found


def write_table(path: str | os.PathLike[str], data: Any) -> None:
    """Write a pandas, polars or Arrow table; the ending says how: .csv, .tsv, .inter or .parquet."""
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in (*_ENDINGS, ".parquet"):
        raise UnknownNameError("ending of a table's file", target.suffix, (*_ENDINGS, ".parquet"))
    frame = as_frame(data)
    if frame is None:
        raise FileError(f"{type(data).__name__} is no table.", hint="Pass a pandas, polars or Arrow table.")
    write_bytes(
        target,
        parquet_bytes(frame.to_arrow()) if kind == ".parquet" else _separated(frame, target).encode(),
    )


def _separated(frame: Any, target: Path) -> str:
    kind, table = target.suffix.lower(), frame.to_pandas()
    if kind == ".inter":  # which has no quotes: a cell is what stands between two tabs
        cells = (cell for name in table for cell in (name, *table[name].tolist()) if isinstance(cell, str))
        broken = next((cell for cell in cells if re.search(r"[\t\r\n]", cell)), None)
        if broken is not None:
            raise FileError(
                f"{broken!r} cannot stand in {target.name}: the format has no tabs and lines in cells.",
                hint="Write .csv, .tsv or .parquet.",
            )
    quoting = csv.QUOTE_NONE if kind == ".inter" else csv.QUOTE_MINIMAL
    text: str = table.to_csv(sep=_ENDINGS[kind], index=False, lineterminator="\n", quoting=quoting)
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
