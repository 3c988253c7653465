"""Tables of the page: cells a reader sees, values a script sorts by, and files to take away.

A table can be downloaded from the page itself: each file is a data link, so it works from disk, without a
network and without scripts.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recsys.evaluation import tables

# A text cell that begins like a formula is one to a spreadsheet.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Cell:
    """What is shown, what it is sorted by (itself where None), a second line, a tone, what is read out."""

    text: str
    key: float | str | None = None
    small: str = ""
    tone: str = ""
    spoken: str = ""


@dataclass(frozen=True)
class HtmlTable:
    """A table: headings (numeric ones are set to the right), rows of cells, and the same as plain columns."""

    name: str
    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numeric: Sequence[bool]
    plain: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    forms: Mapping[str, str] = field(default_factory=dict)

    @property
    def files(self) -> list[tuple[str, str, str]]:
        """(kind, file name, data link) of each form the table can be taken away in."""
        columns = {n: [_bare(v) for v in column] for n, column in self.plain.items()}
        said = {n: [_read(v, self.forms.get(n)) for v in column] for n, column in columns.items()}
        written = {
            "CSV": ("csv", "text/csv", comma_separated(columns)),
            "JSON": ("json", "application/json", _records(columns)),
            "Markdown": ("md", "text/markdown", tables.markdown(said) + "\n"),
            "LaTeX": ("tex", "application/x-tex", tables.latex(said) + "\n"),
        }
        return [
            (kind, f"{self.name}.{ending}", f"data:{mime};charset=utf-8;base64,{_base64(text)}")
            for kind, (ending, mime, text) in written.items()
        ]


def sheet(
    name: str, title: str, columns: Mapping[str, Sequence[Any]], forms: Mapping[str, str] | None = None
) -> HtmlTable:
    """A table of plain columns; numbers are shown to four places, or in the column's own form.

    The files keep all digits where programs read them (CSV, JSON).
    """
    numeric = [_is_numeric(values) for values in columns.values()]
    given = [(forms or {}).get(n) for n in columns]
    rows = [
        [cell(value, form) for value, form in zip(row, given, strict=True)]
        for row in zip(*columns.values(), strict=True)
    ]
    return HtmlTable(name, title, list(columns), rows, numeric, columns, forms or {})


def cell(value: Any, form: str | None = None) -> Cell:
    """A plain value as a cell."""
    if value is None:
        return Cell("", math.nan)
    if isinstance(value, float | int | np.number) and not isinstance(value, bool):
        key = float(f"{float(value):.6g}")
        return Cell("" if math.isnan(value) else str(_read(value, form, last=True)), key)
    return Cell(tables.shown(value))


def _read(value: Any, form: str | None, *, last: bool = False) -> Any:
    """A value as people read it: "p" is a p-value, any other form Python's own."""
    if form is None or value is None or isinstance(value, str):
        return tables.shown(value) if last else ("" if value is None else value)
    if form == "p":
        return "< 1e-4" if value < 1e-4 else f"{value:.2g}"
    return format(value, form)


def comma_separated(columns: Mapping[str, Sequence[Any]]) -> str:
    r"""CSV with every digit; a text that a spreadsheet would take for a formula is quoted with an apostrophe.

    >>> comma_separated({"model": ["=1+1", "als"], "value": [0.5, None]})
    "model,value\n'=1+1,0.5\nals,\n"
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_safe(name) for name in columns])
    writer.writerows([_safe(v) for v in row] for row in zip(*columns.values(), strict=True))
    return out.getvalue()


def _safe(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _records(columns: Mapping[str, Sequence[Any]]) -> str:
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    return f"[\n{lines}\n]\n"


def _bare(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")


def _is_numeric(values: Sequence[Any]) -> bool:
    return bool(values) and all(
        v is None or (isinstance(v, int | float | np.number) and not isinstance(v, bool)) for v in values
    )
