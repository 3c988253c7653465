"""What all pictures share: colours, shapes and dashes, and how numbers are counted into bins.

One colour has one meaning. Models have COLOURS, by their place in the order of the page, and the baseline is
grey; better and worse have a pair of their own; shares of items and of users have shades of a warm grey. All
can be distinguished with colour-vision deficiencies; marks have a contrast of 3:1 or more on white and on
near-black; shape and dash repeat what the colour of a model says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recsys.display.cells import printable
from recsys.errors import InputError
from recsys.records.arrays import Array, Float

GREY = "#7d8590"
COLOURS = (
    "#2f7fd6", "#d9650a", "#159a78", "#8e583a", "#6b5b95",
    "#b8860b", "#c3283c", "#8c3fd9", "#4b91a8", "#5b6ee1",
)  # fmt: skip
SHAPES = (
    "circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left",
)  # fmt: skip
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3))
BETTER, SAME, WORSE = "#3d9a14", "#b4bac2", "#cf2a80"
OUTCOMES = {"won": BETTER, "tied": SAME, "lost": WORSE}
STEPS = ("#5f5a52", "#8f887d", "#bab3a7", "#ddd8cf")
INK, RULE = "#6b7280", "#a8b0bb"
OTHERS = "#c3c8cf"  # the models of a crowd without a colour of their own
CROWD, N_OF_CROWD = 12, 7  # more models are a crowd, and so many of it have a colour
N_BINS = 20


def steps(n: int) -> list[str]:
    """Shades of one neutral colour, the darkest first; more than STEPS has lie between those of STEPS.

    >>> steps(2) == list(STEPS[:2]), len(set(steps(7)))
    (True, 7)
    """
    if n <= len(STEPS):
        return list(STEPS[:n])
    channels = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in STEPS])
    places, at = np.linspace(0, len(STEPS) - 1, n), np.arange(len(STEPS))
    mixed = np.stack([np.interp(places, at, channel) for channel in channels.T], axis=1).round().astype(int)
    return ["#{:02x}{:02x}{:02x}".format(*colour) for colour in mixed.tolist()]


def letters_on(colour: str) -> str:
    """Return the colour of letters that can be read on a colour.

    >>> letters_on("#5f5a52"), letters_on("#ddd8cf")
    ('#ffffff', '#111827')
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#ffffff" if 0.3 * red + 0.59 * green + 0.11 * blue < 140 else "#111827"


def short(name: object, max_length: int = 28) -> str:
    r"""Return a name cut to a length that fits a label, without what terminals and browsers obey.

    >>> short("a name that goes on and on", 10), short("\u202etxt.exe\x1b")
    ('a name th…', 'txt.exe')
    """
    text = printable(str(name))
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def value_and_interval(value: Any) -> tuple[float, float, float]:
    """Return a number or (value, low, high) as (value, low, high).

    The ends are NaN where an interval cannot be drawn.

    >>> value_and_interval((0.5, 0.4, 0.6)), value_and_interval((0.5, 0.4, float("inf")))
    ((0.5, 0.4, 0.6), (0.5, nan, nan))
    """
    if isinstance(value, tuple | list):
        middle, low, high = (float(v) for v in value)
        return (middle, low, high) if math.isfinite(low + high) else (middle, math.nan, math.nan)
    return float(value), math.nan, math.nan


def keys_of(values: Mapping[Any, Mapping[Any, Any]]) -> list[Any]:
    """Return the keys of {model: {key: value}} over all models, in the order they first occur."""
    return list(dict.fromkeys(key for row in values.values() for key in row))


def iso_time(when: Any) -> str:
    """Return a time as text, in ISO format where it is a date."""
    return str(when.isoformat() if hasattr(when, "isoformat") else when)


def points(coordinates: Any) -> Float:
    """Coordinates as a matrix of two columns."""
    places = np.asarray(coordinates, dtype=np.float64)
    if places.ndim != 2 or places.shape[1] != 2:
        raise InputError(f"coordinates must have two columns, got shape {places.shape}.")
    return places


def histograms(values: Mapping[str, Any]) -> tuple[Float, dict[str, Float]]:
    """Shared edges and, for each model, the share of its values in each bin; NaN is left out."""
    known = {name: finite(array) for name, array in values.items()}
    edges = np.linspace(*_range(list(known.values())), N_BINS + 1)
    shares = {name: np.histogram(array, edges)[0] / max(len(array), 1) for name, array in known.items()}
    return edges, shares


def paired_histogram(first: Any, second: Any) -> tuple[Float, Array]:
    """Shared edges, and how many pairs fall in each cell: rows by the second, columns by the first."""
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    both = np.isfinite(x) & np.isfinite(y)
    x, y = x[both], y[both]
    edges = np.linspace(*_range([x, y]), N_BINS + 1)
    counts = np.histogram2d(y, x, bins=(edges, edges))[0].astype(np.int64)
    return edges, counts


def interval_side(low: float, high: float, *, lower_is_better: bool) -> str:
    """Return whether a difference with this interval is better, worse or unclear.

    >>> interval_side(0.1, 0.3, lower_is_better=False), interval_side(0.1, 0.3, lower_is_better=True)
    ('better', 'worse')
    """
    up, down = ("worse", "better") if lower_is_better else ("better", "worse")
    return up if low > 0 else down if high < 0 else "unclear"


def finite(array: Any) -> Float:
    """Return the values that are neither NaN nor infinite."""
    values = np.asarray(array, dtype=np.float64)
    known: Float = values[np.isfinite(values)]
    return known


def _range(arrays: Sequence[Float]) -> tuple[float, float]:
    """0 and 1 if all values lie between them, else the least and the greatest value."""
    ends = [(a.min(), a.max()) for a in arrays if len(a)]
    low, high = min((e[0] for e in ends), default=0.0), max((e[1] for e in ends), default=1.0)
    if low >= 0.0 and high <= 1.0:
        return 0.0, 1.0
    return float(low), float(high if high > low else low + 1.0)
