"""A result's columns as text, HTML, Markdown, LaTeX, CSV or a frame; names are escaped.

Text and markup are written here by hand, a few lines each; frames are built by the library the caller asks
for, imported only then. `fitted` keeps text within the width of a terminal: first the cells of text break
their lines, then the columns that are left stand in a table below. Nothing is cut off.
"""

from __future__ import annotations

import html as markup
import math
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import UnknownNameError, needs_extra

Columns = Mapping[str, Sequence[Any]]
KINDS = ("pandas", "polars", "arrow")
_LINKED = re.compile(
    r"(?<!\w)@(?!\d+(?![\w-]))(?=\w)|@(?=[\w-]+\.[a-z])|:(?=//)|www(?=\.)|\b(?:mailto|xmpp):", re.IGNORECASE
)
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# A spreadsheet takes text that begins with one of these for a formula; four of them in wide form, too.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# Where a cell may break its line: at blanks, after a slash, bar or underscore; an interval, a p-value and an
# effect with its name stay together.
_PIECE = re.compile(r"\[[^\[\]]{1,26}\]\S*|\w+ [<=] \S+|d_z \S+|\S+?[/|_](?=\S)|\S+")
_WORD = re.compile(r"\[[^\[\]]{1,26}\]\S*|\S+")  # where a note may
_NARROWEST = 8  # what a column of text is left with, however many there are
_GOOD, _BAD, _NEITHER = (32, "#238a4b"), (31, "#d64545"), (2, "#808080")  # in a terminal; on light and dark
_VERDICT_COLOURS = (  # by what a verdict begins with
    ("better", *_GOOD), ("equivalent", *_GOOD), ("not worse", *_GOOD), ("shown", *_GOOD), ("pass", *_GOOD),
    ("worse", *_BAD), ("not shown", *_BAD), ("FAIL", *_BAD), ("", *_NEITHER),
)  # fmt: skip


class _Screen(NamedTuple):
    """How wide printed lines may be (None: as wide as they are), colours, and the wording of notes."""

    width: int | None = None
    colour: bool = False
    wording: Callable[[str], str] = str


_SCREEN = ContextVar("_SCREEN", default=_Screen())  # noqa: B039 - a tuple


@contextmanager
def fitted(width: int | None, *, colour: bool = False, wording: Callable[[str], str] = str) -> Iterator[None]:
    """Within it, printed tables and the notes below them are at most so wide; None: as wide as they are.

    Args:
        width: in columns of a terminal.
        colour: whether verdicts are coloured by escape sequences.
        wording: what is made of each note.

    >>> with fitted(24):
    ...     print(text({"model": ["a", "b"], "said": ["a rather long verdict", "short"]}))
    model  said
    -----  -----------------
    a      a rather long
           verdict
    b      short
    """
    token = _SCREEN.set(_Screen(width, colour, wording))
    try:
        yield
    finally:
        _SCREEN.reset(token)


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

    def to_text(self) -> str:
        """The table and the notes below it."""
        return page(self._columns(), self._footnotes())

    def __repr__(self) -> str:
        return Tabled.to_text(self)

    def _repr_html_(self) -> str:
        return html(self._columns(), self._footnotes())

    def _ipython_key_completions_(self) -> list[Any]:
        """What a notebook offers between the brackets: the keys, such as metrics or models."""
        return list(self) if isinstance(self, Mapping) else []


def frame(columns: Mapping[str, Any], kind: str) -> Any:
    """The columns as a table of the library `kind`."""
    if kind == "pandas":
        import pandas as pd

        return pd.DataFrame(dict(columns))
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


def page(columns: Columns, notes: Iterable[str], *, sections: Sequence[str] | None = None) -> str:
    """A table with notes below it, as text."""
    return "\n".join([text(columns, sections=sections), "", *map(note_text, notes)])


def note_text(note: str, *, indent: str = "", width: int | None = None) -> str:
    """A note as lines of at most this width, and that of the screen; what goes on is indented further."""
    limit, _, wording = _SCREEN.get()
    limit = width if limit is None else limit if width is None else min(limit, width)
    lines = [indent + printable(line) for line in wording(note).split("\n")]
    if limit is not None:
        broken = [_break_line(line, limit, _WORD, indent=f"{indent}  ") for line in lines]
        lines = [part for parts in broken for part in parts]
    return "\n".join(lines)


def within_screen(lines: str) -> str:
    """The lines of a text, those that are wider than the screen broken."""
    width = _SCREEN.get().width
    if width is None:
        return lines
    return "\n".join(
        part for line in lines.split("\n") for part in _break_line(line, width, _WORD, indent="  ")
    )


def text(columns: Columns, *, sections: Sequence[str] | None = None) -> str:
    """Aligned columns, numbers to four places; within the width of the screen, see `fitted`.

    Args:
        columns: {name: cells}.
        sections: for each row the heading it stands under; a heading is written where it changes.
    """
    heads = {name: format_cell(name) for name in columns}
    cells = {name: [format_cell(v) for v in values] for name, values in columns.items()}
    right = {name for name, values in columns.items() if _is_numeric(values)}
    widths = {name: max([_width(heads[name]), *map(_width, cells[name])]) for name in cells}
    blocks = [list(cells)]
    screen = _SCREEN.get()
    limit = screen.width
    if limit is not None and _total(widths.values()) > limit:
        blocks, widths = _fit(heads, cells, right, widths, limit)

    def lines(names: Sequence[str], row: Mapping[str, str]) -> Iterator[str]:
        parts = [_break_line(row[n], widths[n]) for n in names]
        for line in zip_longest(*parts, fillvalue=""):
            padded = []
            for name, part in zip(names, line, strict=True):
                fill = " " * (widths[name] - _width(part))
                shown = _coloured(part, row[name]) if name in ("verdict", "") and row is not heads else part
                padded.append(fill + shown if name in right else shown + fill)
            yield "  ".join(padded).rstrip()

    n_rows = len(next(iter(cells.values()), []))
    shown: list[str] = []
    for number, names in enumerate(blocks):
        shown += [""] if number else []
        shown += [*lines(names, heads), "  ".join("-" * widths[n] for n in names)]
        for i in range(n_rows):
            if sections is not None and (i == 0 or sections[i] != sections[i - 1]):
                heading = _break_line(format_cell(sections[i]), limit or 10**9)
                bold = [f"\x1b[1m{line}\x1b[0m" if screen.colour else line for line in heading]
                shown += [*([""] if i else []), *bold]
            shown += lines(names, {n: cells[n][i] for n in names})
    return "\n".join(shown)


def _total(widths: Iterable[int]) -> int:
    """How wide columns of these widths are, with two blanks between them."""
    each = list(widths)
    return sum(each) + 2 * (len(each) - 1)


def _fit(
    heads: Mapping[str, str],
    cells: Mapping[str, Sequence[str]],
    right: set[str],
    widths: Mapping[str, int],
    limit: int,
) -> tuple[list[list[str]], dict[str, int]]:
    """Which columns stand beside each other, and how wide each is, so that no line is wider than `limit`.

    Headings and cells of text break their lines; numbers do not. Where that is not enough, columns stand in
    further tables below, each with the first column.
    """

    def pieces(text: str) -> int:
        return max((_width(piece[0]) for piece in _PIECE.finditer(text)), default=0)

    least = {
        name: max([pieces(heads[name]), *map(_width if name in right else pieces, own)])
        for name, own in cells.items()
    }
    if _total(least.values()) > limit:  # also within words
        least = {n: w if n in right else min(w, max(_NARROWEST, limit // 6)) for n, w in least.items()}
    least = {n: min(w, limit) for n, w in least.items()}
    first, *others = cells
    blocks = [[first]]
    for name in others:
        if len(blocks[-1]) > 1 and _total(least[n] for n in (*blocks[-1], name)) > limit:
            blocks.append([first])
        blocks[-1].append(name)
    if len(blocks[0]) > 1 and _total((least[first], max(least[n] for n in others))) > limit:
        least[first] = min(least[first], _NARROWEST)
    fitting = dict(widths)
    for names in blocks:
        widest = max(widths[n] for n in names)
        while _total(min(widths[n], max(least[n], widest)) for n in names) > limit and widest > 1:
            widest -= 1
        for name in names:
            own = min(widths[name], max(least[name], widest))
            fitting[name] = min(own, fitting[name])
    return blocks, fitting


def _break_line(line: str, width: int, pieces: re.Pattern[str] = _PIECE, *, indent: str = "") -> list[str]:
    """A line as lines of at most this width, broken at blanks where that is possible; nothing is lost."""
    if _width(line) <= width:
        return [line]
    lines, current, end = [], "", 0
    for match in pieces.finditer(line):
        piece, between = match[0], line[end : match.start()]
        end = match.end()
        if current.strip() and _width(current + between + piece) > width:
            lines.append(current)
            current, between = indent, ""
        current += between
        while _width(current + piece) > width:
            room = 1
            while room < len(piece) and _width(current + piece[: room + 1]) <= width:
                room += 1
            lines.append(current + piece[:room])
            current, piece = indent, piece[room:]
        current += piece
    return [*lines, current]


def _coloured(part: str, verdict: str) -> str:
    """A line of a verdict in the colour of the verdict, on a screen that has colours."""
    if not part or not _SCREEN.get().colour:
        return part
    code = next(code for start, code, _ in _VERDICT_COLOURS if verdict.startswith(start))
    return f"\x1b[{code}m{part}\x1b[0m"


def html(columns: Columns, notes: Sequence[str], *, sections: Sequence[str] | None = None) -> str:
    """A table for notebooks, light or dark; everything in it is escaped.

    Only the first of the `sections` and the notes that say what was counted are open, the others fold.
    """
    right = {name for name, values in columns.items() if _is_numeric(values)}
    heads = "".join(_html_cell("th", name, name, right) for name in columns)
    rows = [
        f"<tr>{''.join(_html_cell('td', n, v, right) for n, v in zip(columns, row, strict=True))}</tr>"
        for row in zip(*columns.values(), strict=True)
    ]

    def table(body: Iterable[str]) -> str:
        style = "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:0 0 .5em"
        return f'<table style="{style}"><thead><tr>{heads}</tr></thead><tbody>{"".join(body)}</tbody></table>'

    rows_by_section: dict[str, list[int]] = {}
    for number, section in enumerate(sections or [""] * len(rows)):
        rows_by_section.setdefault(section, []).append(number)
    parts = [] if rows_by_section else [table(())]
    for number, (section, own) in enumerate(rows_by_section.items()):
        name, body = markup.escape(format_cell(section)), table(rows[row] for row in own)
        if number == 0:
            parts.append((f"<div><b>{name}</b></div>" if name else "") + body)
        else:
            words = markup.escape(_outcomes(columns, own))
            parts.append(f"<details><summary><b>{name}</b> {words}</summary>{body}</details>")
    lines = [f"<div><small>{markup.escape(printable(note))}</small></div>" for note in notes]
    more = [n for n, note in enumerate(notes) if n > 1 and not note.startswith("caution: ")]
    if len(more) > 2:
        count = count_with_noun(len(more), "more note|notes")
        folded = "".join(lines[n] for n in more)
        lines = [line for n, line in enumerate(lines) if n not in more]
        lines.insert(2, f"<details><summary><small>{count}</small></summary>{folded}</details>")
    return f"<div>{''.join(parts)}{''.join(lines)}</div>"


def html_card(heading: str, *lines: str) -> str:
    """A heading and the lines below it in a frame, for notebooks, light or dark; everything is escaped."""
    frame = "border:1px solid rgba(128,128,128,.6);border-radius:6px;padding:.6em 1em;margin:0 0 .8em"
    title, *texts = (markup.escape(printable(line)) for line in (heading, *lines))
    below = "".join(f'<div style="margin:.3em 0 0">{text}</div>' for text in texts)
    return f'<div style="{frame}"><b style="font-size:1.3em">{title}</b>{below}</div>'


def _outcomes(columns: Columns, rows: Sequence[int]) -> str:
    """The verdicts of these rows in a few words, where there are verdicts."""
    names, verdicts = next(iter(columns.values())), columns.get("verdict", ())
    others = columns.get("baseline")
    said: list[str] = []
    for row in rows if verdicts else ():
        word = format_cell(verdicts[row]).partition(":")[0]
        against = "" if others is None else f" against {format_cell(others[row])}"
        said += [] if word == "baseline" else [f"{format_cell(names[row])}{against} {word}"]
    return ", ".join(said)


def _html_cell(tag: str, column: str, value: Any, right: set[str]) -> str:
    """A cell of a table in a notebook: numbers to the right, a verdict in its colour."""
    cell = markup.escape(format_cell(value))
    style = f"text-align:{'right' if column in right else 'left'};padding:.15em .8em;border:0;background:none"
    if tag == "th":
        style += ";border-bottom:1px solid rgba(128,128,128,.6)"
    elif column == "verdict":
        word, colon, rest = cell.partition(":")
        colour = next(colour for start, _, colour in _VERDICT_COLOURS if word.startswith(start))
        cell = f'<b style="color:{colour}">{word}</b>{colon}{rest}'
    elif column == "95% interval":
        style += ";white-space:nowrap;opacity:.75"
    return f'<{tag} style="{style}">{cell}</{tag}>'


def markdown(columns: Columns) -> str:
    """A pipe table."""
    rule = ["---:" if _is_numeric(v) else "---" for v in columns.values()]
    head, *body = ([markdown_text(v) for v in row] for row in (columns, *zip(*columns.values(), strict=True)))
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *body))


def markdown_text(value: Any) -> str:
    r"""A cell in which nothing is Markdown: no emphasis, link, image, code or HTML, and nobody is mentioned.

    >>> print(markdown_text("![x](a.b)"), markdown_text("item_knn"), markdown_text("ndcg@10"))
    \!\[x\](a.b) item\_knn ndcg@10
    >>> markdown_text("@everyone https://a.b")
    '@\u200beveryone https:\u200b//a.b'
    """
    # No escape keeps the sites that show Markdown from linking these; a space without width does.
    text = _LINKED.sub(lambda found: f"{found[0]}\u200b", format_cell(value))
    return re.sub(r"([|\\`*_<!\[\]])", r"\\\1", text)


def latex(columns: Columns) -> str:
    """A booktabs tabular."""
    spec = "".join("r" if _is_numeric(v) else "l" for v in columns.values())
    lines = [" & ".join(latex_text(format_cell(n)) for n in columns) + r" \\", r"\midrule"]
    lines += [
        " & ".join(latex_text(format_cell(v)) for v in row) + r" \\"
        for row in zip(*columns.values(), strict=True)
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
    """Whether all cells are numbers, but for those that are empty."""
    numbers = [v for v in values if not isinstance(v, str) or v != ""]
    return all(isinstance(v, int | float | np.number) for v in numbers) and bool(numbers or not values)


_TEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", **{char: f"\\{char}" for char in "&%$#_{}"},
}  # fmt: skip


def latex_text(cell: str) -> str:
    """A text in which nothing is LaTeX."""
    return "".join(_TEX.get(char, char) for char in cell)
