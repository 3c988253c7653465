"""Columns for other software: data frames, built by the library the caller asks for, and CSV."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from recsys.display.cells import VERDICTS
from recsys.errors import UnknownNameError, needs_extra

KINDS = ("pandas", "polars", "arrow")
# A spreadsheet takes text that begins with one of these for a formula; four of them in wide form, too.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def frame_of(columns: Mapping[str, Any], kind: str) -> Any:
    """Return the columns as a table of the library `kind`, verdicts as text."""
    columns = {n: [*map(str, c)] if n in VERDICTS else c for n, c in columns.items()}
    if kind == "pandas":
        import pandas as pd

        return pd.DataFrame(columns)
    plain = {
        n: c.tolist() if isinstance(c, np.ndarray) and c.dtype == object else c for n, c in columns.items()
    }
    if kind == "polars":
        with needs_extra("polars", "polars", "A polars table"):
            import polars as pl
        return pl.DataFrame(plain)
    if kind == "arrow":
        with needs_extra("pyarrow", "arrow", "An Arrow table"):
            import pyarrow as pa
        return pa.table(plain)
    raise UnknownNameError("kind of table", kind, KINDS)


def csv_text(
    names: Iterable[Any], rows: Iterable[Iterable[Any]], *, delimiter: str = ",", raw: bool = False
) -> str:
    r"""CSV with every digit; text that a spreadsheet would run gets an apostrophe, unless `raw`.

    >>> csv_text(["model", "value"], [["=1+1", -0.5], ["-3", None]])
    "model,value\n'=1+1,-0.5\n-3,\n"
    """
    import csv
    import io

    def harmless(cell: Any) -> Any:
        runs = isinstance(cell, str) and cell.startswith(_FORMULA_STARTS) and not _NUMBER.fullmatch(cell)
        return f"'{cell}" if runs else cell

    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    for row in (names, *rows):
        writer.writerow(row if raw else map(harmless, row))
    return out.getvalue()
