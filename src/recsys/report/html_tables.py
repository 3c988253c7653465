"""Tables of the page: the cells a reader sees, the keys a script sorts by, and files to download.

Each file is a data link in the page, so downloads work from disk, without a network and without scripts.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from recsys.display.cells import format_cell
from recsys.display.exports import csv_text
from recsys.display.markup import latex_table, markdown_table
from recsys.display.number_words import interval_text
from recsys.records.arrays import PValue
from recsys.records.json_values import json_rows, json_value
from recsys.report import style

# Longer tables are not typeset, and the longest have one file only, so that a page stays small.
_MOST_TYPESET_ROWS, _MOST_JSON_ROWS = 40, 100


class Forest(NamedTuple):
    """A difference, the ends of its interval and zero as places on an axis, in percent of its length."""

    value: float | None
    low: float | None
    high: float | None
    zero: float | None


@dataclass(frozen=True)
class Cell:
    """Text, sort key (None: the text), lines below in small print, CSS classes, text for screen readers.

    Below the text it may have a bar (its length in percent; quiet for one that is not a merit), a difference
    with its interval on an axis, or the shares of users won, tied and lost.
    """

    text: str
    key: float | str | None = None
    small: str = ""
    tone: str = ""
    spoken: str = ""
    bar: float | None = None
    quiet: bool = False
    forest: Forest | None = None
    outcomes: tuple[float, ...] = ()


@dataclass(frozen=True)
class HtmlTable:
    """A table: headings (numeric columns are right-aligned), rows of cells, and the columns for its files."""

    name: str
    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numeric: Sequence[bool]
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)

    @property
    def files(self) -> list[tuple[str, str, str]]:
        """(kind, file name, data link) of each format the table can be downloaded in.

        CSV; up to 100 rows also JSON, and up to 40, which can be typeset, Markdown and LaTeX.
        """
        columns = {n: json_value([*column]) for n, column in self.columns.items()}
        formatted = {n: [_format(v, self.formats.get(n)) for v in column] for n, column in columns.items()}
        records = json_rows(columns)
        lines = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in records)
        csv = csv_text(columns, zip(*columns.values(), strict=True))
        contents = {"CSV": ("csv", "text/csv", csv)}
        if len(self.rows) <= _MOST_JSON_ROWS:
            contents["JSON"] = ("json", "application/json", f"[\n{lines}\n]\n")
        if len(self.rows) <= _MOST_TYPESET_ROWS:
            contents["Markdown"] = ("md", "text/markdown", markdown_table(formatted) + "\n")
            contents["LaTeX"] = ("tex", "application/x-tex", latex_table(formatted) + "\n")
        links = []
        for kind, (suffix, mime, text) in contents.items():
            encoded = base64.b64encode(text.encode()).decode("ascii")
            links.append((kind, f"{self.name}.{suffix}", f"data:{mime};charset=utf-8;base64,{encoded}"))
        return links


def html_table(name: str, title: str, columns: Mapping[str, Sequence[Any]]) -> HtmlTable:
    """Return a table of columns of values; numbers are shown to four places.

    CSV and JSON files keep all digits.

    Args:
        name: the name of its files.
        title: the caption.
        columns: the values by heading.
    """
    numeric = [
        bool(values) and all(v is None or _is_number(v) for v in values) for values in columns.values()
    ]
    rows = [[*map(cell, row)] for row in zip(*columns.values(), strict=True)]
    return HtmlTable(name, title, list(columns), rows, numeric, columns)


def table_of_rows(name: str, title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> HtmlTable:
    """Return a table of rows of values; see html_table."""
    return html_table(name, title, {head: [row[i] for row in rows] for i, head in enumerate(heads)})


def table_by_model(
    name: str,
    title: str,
    values: Mapping[str, Mapping[Any, Any]],
    sizes: Mapping[Any, int] | None = None,
    *,
    first: str = "model",
) -> HtmlTable:
    """Return {model: {key: value}} as a table: one row per model, one column per key."""
    keys = style.keys_of(values)
    columns: dict[str, list[Any]] = {first: list(values)}
    rows = [[cell(n)] for n in values]
    for key in keys:
        triples = [style.value_and_interval(row.get(key, math.nan)) for row in values.values()]
        columns[str(key)] = [t[0] for t in triples]
        if any(math.isfinite(t[1]) for t in triples):
            columns |= {f"{key} low": [t[1] for t in triples], f"{key} high": [t[2] for t in triples]}
        for row, t in zip(rows, triples, strict=True):
            row.append(replace(cell(t[0]), small=interval_text(*t[1:])))
    heads = [first, *(f"{k} ({sizes[k]:,})" if sizes and k in sizes else str(k) for k in keys)]
    return HtmlTable(name, title, heads, rows, [False, *(True for _ in keys)], columns)


def cell(value: Any, spec: str | None = None) -> Cell:
    """Return a value as a cell."""
    if value is None:
        return Cell("", math.nan)
    if _is_number(value):
        key = float(f"{float(value):.6g}")
        return Cell("" if math.isnan(value) else str(_format(value, spec, for_page=True)), key)
    return Cell(format_cell(value))


def _format(value: Any, spec: str | None, *, for_page: bool = False) -> Any:
    """Return a value by a format specification ("p" is that of a p-value).

    Without one, files keep the value.
    """
    if spec is None or value is None or isinstance(value, str):
        return format_cell(value) if for_page else ("" if value is None else value)
    if spec == "p":
        return f"{PValue(value):.2g}"
    return format(value, spec)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
