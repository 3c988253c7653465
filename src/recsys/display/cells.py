"""What a cell shows: numbers to four places, and text that neither a terminal nor a page obeys."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

Columns = Mapping[str, Sequence[Any]]
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class Colours(NamedTuple):
    """The colour of a verdict: its escape code in a terminal, and one for pages, light or dark."""

    terminal: int
    page: str


VERDICTS = ("verdict", "")  # the columns of verdicts
_COLOURS = {"good": Colours(32, "#238a4b"), "bad": Colours(31, "#d64545"), "neither": Colours(2, "#808080")}


def format_cell(value: Any) -> str:
    """Return a cell as text: four decimals, nothing that a terminal obeys."""
    if isinstance(value, float | np.floating):
        return "n/a" if math.isnan(value) else f"{value:.4f}".replace("-0.0000", "0.0000")
    if isinstance(value, np.timedelta64):  # a whole number to NumPy, and no digits
        return str(value)
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    return printable(str(value))


def printable(text: str, instead: str = "") -> str:
    r"""Return a text without control characters and without the marks that turn the direction of writing.

    >>> printable("als\x1b[31m \u202etxt.exe")
    'als[31m txt.exe'
    """
    return UNPRINTABLE.sub(instead, text)


def is_numeric(values: Sequence[Any]) -> bool:
    """Return whether all cells are numbers, but for those that are empty."""
    numbers = [v for v in values if not isinstance(v, str) or v != ""]
    return all(isinstance(v, int | float | np.number) for v in numbers) and bool(numbers or not values)


def verdict_colours(column: str, cell: object) -> Colours | None:
    """Return the colours of a verdict, or of another cell in a column of verdicts; None of any other cell."""
    tone = getattr(cell, "tone", "neither" if column in VERDICTS else None)
    return None if tone is None else _COLOURS[tone]
