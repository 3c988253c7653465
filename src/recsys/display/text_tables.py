"""Tables and notes as aligned text, within the width of a terminal where there is one.

`fitted` keeps text within that width: first the cells of text break their lines, then the columns that are
left follow in a table below. Nothing is cut off.

Of rich only the widths of characters are used. Its tables keep all columns side by side: where they do not
fit, numbers and intervals break in the middle, text breaks at blanks alone, and brackets in names are markup.
They would also be a second layout besides that of `repr`, which must not wait for rich to be loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import zip_longest
from typing import NamedTuple

from recsys.display.cells import Colours, Columns, format_cell, is_numeric, printable, verdict_colours
from recsys.errors import worded

# Where a cell may break its line: at blanks, after a slash, bar or underscore; an interval, a p-value and an
# effect with its name stay together.
_PIECE = re.compile(r"\[[^\[\]]{1,26}\]\S*|\w+ [<=] \S+|d_z \S+|\S+?[/|_](?=\S)|\S+")
_WORD = re.compile(r"\[[^\[\]]{1,26}\]\S*|\S+")  # where a note may
_NARROWEST = 8  # what a column of text is left with, however many there are


class _Screen(NamedTuple):
    """How wide printed lines may be (None: as wide as they are), and whether there are colours."""

    width: int | None = None
    colour: bool = False


_SCREEN = ContextVar("_SCREEN", default=_Screen())  # noqa: B039 - a tuple


@contextmanager
def fitted(width: int | None, *, colour: bool = False) -> Iterator[None]:
    """Within it, printed tables and the notes below them are at most so wide; None: as wide as they are.

    Args:
        width: in columns of a terminal.
        colour: whether verdicts are coloured by escape sequences.

    >>> with fitted(24):
    ...     print(text_table({"model": ["a", "b"], "says": ["a rather long verdict", "short"]}))
    model  says
    -----  -----------------
    a      a rather long
           verdict
    b      short
    """
    token = _SCREEN.set(_Screen(width, colour))
    try:
        yield
    finally:
        _SCREEN.reset(token)


def text_page(columns: Columns, notes: Iterable[object], *, sections: Sequence[str] | None = None) -> str:
    """Return a table with notes below it, as text."""
    return "\n".join([text_table(columns, sections=sections), "", *map(note_text, notes)])


def note_text(note: object, *, indent: str = "", width: int | None = None) -> str:
    """Return a note as lines of at most this width, and that of the screen.

    What goes on is indented further.
    """
    limit = _SCREEN.get().width
    limit = width if limit is None else limit if width is None else min(limit, width)
    lines = [indent + printable(line) for line in worded(str(note)).split("\n")]
    if limit is not None:
        broken = [_break_line(line, limit, _WORD, indent=f"{indent}  ") for line in lines]
        lines = [part for parts in broken for part in parts]
    return "\n".join(lines)


def within_screen(lines: str) -> str:
    """Return the lines of a text, those that are wider than the screen broken."""
    width = _SCREEN.get().width
    if width is None:
        return lines
    return "\n".join(
        part for line in lines.split("\n") for part in _break_line(line, width, _WORD, indent="  ")
    )


def text_table(columns: Columns, *, sections: Sequence[str] | None = None) -> str:
    """Aligned columns, numbers to four places; within the width of the screen, see `fitted`.

    Args:
        columns: {name: cells}.
        sections: for each row the heading it belongs under; a heading is written where it changes.
    """
    heads = {name: format_cell(name) for name in columns}
    cells = {name: [format_cell(v) for v in values] for name, values in columns.items()}
    right = {name for name, values in columns.items() if is_numeric(values)}
    widths = {name: max([_width(heads[name]), *map(_width, cells[name])]) for name in cells}
    blocks = [list(cells)]
    screen = _SCREEN.get()
    limit = screen.width
    if limit is not None and _total(widths.values()) > limit:
        blocks, widths = _fit(heads, cells, right, widths, limit)

    def lines(names: Sequence[str], row: Mapping[str, str], number: int | None = None) -> Iterator[str]:
        parts = [_break_line(row[n], widths[n]) for n in names]
        for line in zip_longest(*parts, fillvalue=""):
            padded = []
            for name, part in zip(names, line, strict=True):
                fill = " " * (widths[name] - _width(part))
                colours = None if number is None else verdict_colours(name, columns[name][number])
                shown = _coloured(part, colours)
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
                shown += [*([""] if i else []), *map(in_bold, heading)]
            shown += lines(names, {n: cells[n][i] for n in names}, i)
    return "\n".join(shown)


def in_bold(line: str) -> str:
    """Return a line in bold letters, on a screen that has colours."""
    return f"\x1b[1m{line}\x1b[0m" if _SCREEN.get().colour else line


def _total(widths: Iterable[int]) -> int:
    """Return how wide columns of these widths are, with two blanks between them."""
    each = list(widths)
    return sum(each) + 2 * (len(each) - 1)


def _fit(
    heads: Mapping[str, str],
    cells: Mapping[str, Sequence[str]],
    right: set[str],
    widths: Mapping[str, int],
    limit: int,
) -> tuple[list[list[str]], dict[str, int]]:
    """Return which columns go side by side, and how wide each is, so that no line is wider than `limit`.

    Headings and cells of text break their lines; numbers do not. Where that is not enough, columns go to
    further tables below, each with the first column.
    """

    def least_width(texts: Iterable[str], longest_word: int) -> int:
        pieces = (piece[0] for text in texts for piece in _PIECE.finditer(text))
        return max((_width(p) if " " in p else min(_width(p), longest_word) for p in pieces), default=0)

    def least_widths(longest_word: int) -> dict[str, int]:
        words = {name: least_width([heads[name], *own], longest_word) for name, own in cells.items()}
        numbers = {n: max([least_width([heads[n]], limit), *map(_width, cells[n])]) for n in right}
        return {name: min(width, limit) for name, width in (words | numbers).items()}

    least = least_widths(limit)
    if _total(least.values()) > limit:  # also within words
        least = least_widths(max(_NARROWEST, limit // 6))
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
    """Return a line as lines of at most this width, broken at blanks where that is possible.

    Nothing is lost.
    """
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


def _coloured(part: str, colours: Colours | None) -> str:
    """Return a line of a verdict in the colour of the verdict, on a screen that has colours."""
    if not part or colours is None or not _SCREEN.get().colour:
        return part
    return f"\x1b[{colours.terminal}m{part}\x1b[0m"


def _width(cell: str) -> int:
    """Return the width in a terminal.

    Wide characters (CJK, emoji) take two columns, combining marks none.
    """
    if cell.isascii():
        return len(cell)
    from rich.cells import cell_len

    return cell_len(cell)
