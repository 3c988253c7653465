"""A result's columns as text, HTML, Markdown, LaTeX, CSV or a frame; names are escaped.

Text and markup are written here by hand, a few lines each; frames are built by the library the caller asks
for, imported only then.
"""

from __future__ import annotations

import html as markup
import math
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import MissingExtraError, UnknownNameError
from recsys.types import Catalogue

Columns = Mapping[str, Sequence[Any]]
KINDS = ("pandas", "polars", "arrow")
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# A spreadsheet takes text that begins with one of these for a formula; four of them in wide form, too.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_COUNT_NOTES = {
    "repeated_items": "item|items listed more than once",
    "repeated_rows": "repeated truth row|rows merged",
    "conflicting_grades": "pair|pairs with conflicting grades (the highest was kept)",
    "unknown_items": "relevant item|items outside the catalogue",
    "seen_truth": "relevant item|items the users had already seen",
    "not_candidates": "relevant item|items that is|are no candidate|candidates"
    " (seen, ineligible, unknown or not ranked)",
    "without_vector": "item|items shown that has|have no vector",
    "without_facts": "item|items shown that the items table says nothing about",
    "positive_among_negatives": "relevant item|items that is|are also among its|their own negatives",
    "repeated_negatives": "negative|negatives that its|their case held already",
    "tied": "relevant item|items found that shares|share its|their score with another item",
}
_RATING_COUNT_NOTES = {
    "clipped": "prediction|predictions moved to the border of the scale",
    "outside_scale": "prediction|predictions outside the scale",
    "certain_and_wrong": "prediction|predictions of exactly 0 or 1 that was|were wrong (moved by 2^-52)",
    "without_prediction": "rating|ratings without a prediction (left out)",
    "without_rating": "prediction|predictions without a rating (left out)",
}


class Tabled(ABC):
    """A result that is a table with notes below it; it prints and exports itself in every format."""

    @abstractmethod
    def _columns(self) -> Columns:
        """The columns of the table."""

    @abstractmethod
    def _footnotes(self) -> Sequence[str]:
        """The notes below the table."""

    def to_frame(self, kind: str = "pandas") -> Any:
        """The table as a pandas, polars or arrow table."""
        return frame(self._columns(), kind)

    def to_markdown(self) -> str:
        return markdown(self._columns())

    def to_latex(self) -> str:
        return latex(self._columns())

    def __repr__(self) -> str:
        notes = (printable(line) for note in self._footnotes() for line in note.split("\n"))
        return "\n".join([text(self._columns()), "", *notes])

    def _repr_html_(self) -> str:
        return html(self._columns(), self._footnotes())


def frame(columns: Mapping[str, Any], kind: str) -> Any:
    """The columns as a table of the library `kind`."""
    if kind == "pandas":
        import pandas as pd

        return pd.DataFrame(dict(columns))
    plain = {
        n: c.tolist() if isinstance(c, np.ndarray) and c.dtype == object else c for n, c in columns.items()
    }
    if kind == "polars":
        try:
            import polars as pl
        except ImportError as error:
            raise MissingExtraError("polars", "polars", "A polars table") from error
        return pl.DataFrame(plain)
    if kind == "arrow":
        try:
            import pyarrow as pa
        except ImportError as error:
            raise MissingExtraError("pyarrow", "arrow", "An Arrow table") from error
        return pa.table(plain)
    raise UnknownNameError("kind of table", kind, KINDS)


def text(columns: Columns) -> str:
    """Aligned columns, numbers to four places."""
    heads = {name: format_cell(name) for name in columns}
    cells = {name: [format_cell(v) for v in values] for name, values in columns.items()}
    widths = {name: max([_width(heads[name]), *map(_width, cells[name])]) for name in cells}
    right = {name for name, values in columns.items() if _is_numeric(values)}

    def line(row: Mapping[str, str]) -> str:
        fill = {n: " " * (widths[n] - _width(row[n])) for n in cells}
        return "  ".join(fill[n] + row[n] if n in right else row[n] + fill[n] for n in cells).rstrip()

    n_rows = len(next(iter(cells.values()), []))
    body = [line({n: cells[n][i] for n in cells}) for i in range(n_rows)]
    return "\n".join([line(heads), line({n: "-" * widths[n] for n in cells}), *body])


def html(columns: Columns, notes: Sequence[str]) -> str:
    """A small table for notebooks; everything in it is escaped."""
    head = "".join(f"<th>{markup.escape(format_cell(n))}</th>" for n in columns)
    rows = zip(*columns.values(), strict=True)
    body = "".join(
        "<tr>" + "".join(f"<td>{markup.escape(format_cell(v))}</td>" for v in row) + "</tr>" for row in rows
    )
    footer = "".join(f"<div><small>{markup.escape(printable(n))}</small></div>" for n in notes)
    return f"<div><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{footer}</div>"


def markdown(columns: Columns) -> str:
    """A pipe table."""
    rule = ["---:" if _is_numeric(v) else "---" for v in columns.values()]
    head, *body = ([markdown_text(v) for v in row] for row in (columns, *zip(*columns.values(), strict=True)))
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *body))


def markdown_text(value: Any) -> str:
    r"""A cell in which nothing is Markdown: no emphasis, link, image, code or HTML.

    >>> print(markdown_text("![x](http://a.b)"), markdown_text("item_knn"))
    \!\[x\](http://a.b) item\_knn
    """
    return re.sub(r"([|\\`*_<!\[\]])", r"\\\1", format_cell(value))


def latex(columns: Columns) -> str:
    """A booktabs tabular."""
    spec = "".join("r" if _is_numeric(v) else "l" for v in columns.values())
    lines = [" & ".join(_tex(format_cell(n)) for n in columns) + r" \\", r"\midrule"]
    lines += [
        " & ".join(_tex(format_cell(v)) for v in row) + r" \\" for row in zip(*columns.values(), strict=True)
    ]
    return "\n".join([rf"\begin{{tabular}}{{{spec}}}", r"\toprule", *lines, r"\bottomrule", r"\end{tabular}"])


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


def footnotes(
    counts: Mapping[str, int],
    conventions: Conventions,
    notes: Mapping[str, Any],
    *,
    n_users: int | None = None,
    catalogue: Catalogue | None = None,
) -> list[str]:
    """What a reader must know to trust the numbers; `n_users` is set if users have several cases."""
    if "rows" in counts:
        return _rating_footnotes(counts)
    n_cases = counts.get("cases", 0)
    lines = [count_with_noun(n_cases, "user|users")]
    if n_users is not None:
        lines = [f"{count_with_noun(n_cases, 'case|cases')} of {count_with_noun(n_users, 'user|users')}"]
    for name, words in (
        ("without_truth", "without relevant items ({})"),
        ("without_list", "without recommendations ({})"),
    ):
        if counts.get(name):
            rule = conventions.no_truth if name == "without_truth" else conventions.no_list
            treatment = {"skip": "left out", "zero": "count as 0", "empty": "count as the worst value"}.get(
                rule, rule
            )
            lines[0] += f", {counts[name]:,} " + words.format(treatment)
    lines += [count_with_noun(counts[n], words) for n, words in _COUNT_NOTES.items() if counts.get(n)]
    if counts.get("found") == 0 and counts.get("judged"):
        lines.append("no listed item is in its user's truth: check that both sides use the same item ids")
    read = notes.get("lists", {}).get("read", {})
    lines += [f"lists {read[what]}" for what in ("order", "gaps") if what in read]
    lines += ["lists in the order of their rows"] if read.get("rows") == "grouped" else []
    lines += notes.get("stopped", {}).get("says", "").splitlines()
    lines += [str(notes[name]) for name in ("sampled", "seen", "backend") if isinstance(notes.get(name), str)]
    if catalogue is not None:
        how = " (those of train, lists and truth)" if catalogue.how == "found" else ""
        lines.append(f"catalogue: {count_with_noun(catalogue.n, 'item|items')}{how}")
    return [*lines, f"conventions: {conventions}"]


def _rating_footnotes(counts: Mapping[str, int]) -> list[str]:
    """The footnotes of rating metrics, which have rows instead of lists, and no conventions."""
    users = count_with_noun(counts.get("cases", 0), "user|users")
    lines = [f"{count_with_noun(counts['rows'], 'row|rows')} of {users}"]
    lines += [count_with_noun(counts[n], words) for n, words in _RATING_COUNT_NOTES.items() if counts.get(n)]
    return [*lines, "a plain name is over all rows, user_ the mean over users"]


def count_with_noun(n: int, words: str) -> str:
    """A count with its noun, in the singular or the plural.

    >>> count_with_noun(1, "item|items shown that has|have no vector"), count_with_noun(2000, "user|users")
    ('1 item shown that has no vector', '2,000 users')
    """
    return f"{n:,} " + re.sub(r"(\w+)\|(\w+)", r"\1" if n == 1 else r"\2", words)


def format_cell(value: Any) -> str:
    """A cell as text: four decimals, nothing that a terminal obeys."""
    if isinstance(value, float | np.floating):
        return "n/a" if math.isnan(value) else f"{value:.4f}".replace("-0.0000", "0.0000")
    if isinstance(value, np.timedelta64):  # a whole number to NumPy, and no digits
        return str(value)
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    return printable(str(value))


def printable(text: str, instead: str = "") -> str:
    r"""A text without control characters and without the marks that turn the direction of writing.

    >>> printable("als\x1b[31m \u202etxt.exe")
    'als[31m txt.exe'
    """
    return UNPRINTABLE.sub(instead, text)


def _width(cell: str) -> int:
    """The width in a terminal: two columns for wide characters (CJK, emoji), none for combining marks."""
    if cell.isascii():
        return len(cell)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in cell
    )


def _is_numeric(values: Sequence[Any]) -> bool:
    return all(isinstance(v, int | float | np.number) for v in values)


_TEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", **{char: f"\\{char}" for char in "&%$#_{}"},
}  # fmt: skip


def _tex(cell: str) -> str:
    return "".join(_TEX.get(char, char) for char in cell)
