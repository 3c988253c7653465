"""What all pictures share: colours, shapes and dashes of models, and the preparation of their data.

The colours can be distinguished with colour-vision deficiencies and have a contrast of 3:1 or more on white
and on near-black; shape and dash repeat what the colour says, so no chart depends on colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.types import Array, Float

GREY = "#7d8590"
COLOURS = (
    "#2f7fd6", "#d9650a", "#159a78", "#8e583a", "#6b5b95",
    "#c0395e", "#4b91a8", "#8a8a14", "#d264a6", "#5b6ee1",
)  # fmt: skip
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
MARKERS = {
    "circle": "o",
    "square": "s",
    "triangle-up": "^",
    "diamond": "D",
    "cross": "P",
    "triangle-down": "v",
}
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3))
BETTER, SAME, WORSE = "#2f7fd6", "#9aa2ad", "#d9650a"
OUTCOMES = {"won": BETTER, "tied": SAME, "lost": WORSE}
SIDES = {"better": BETTER, "unclear": GREY, "worse": WORSE}
RAMP = ("#b9d3f3", "#4a90e0", "#1a56a6")
STEPS = (RAMP[2], "#5b9be6", "#a3c4ee", "#d3e2f6")
N_BINS = 20


def colours(names: Sequence[str], baseline: str | None = None) -> list[str]:
    """One colour per model, in order; the baseline is grey."""
    numbers = iter(range(len(names)))
    return [GREY if name == baseline else COLOURS[next(numbers) % len(COLOURS)] for name in names]


def steps(n: int) -> list[str]:
    """Shades of one colour, the darkest first; more than STEPS has lie between those of STEPS.

    >>> steps(2) == list(STEPS[:2]), len(set(steps(7)))
    (True, 7)
    """
    if n <= len(STEPS):
        return list(STEPS[:n])
    channels = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in STEPS])
    places, at = np.linspace(0, len(STEPS) - 1, n), np.arange(len(STEPS))
    mixed = np.stack([np.interp(places, at, channel) for channel in channels.T], axis=1).round().astype(int)
    return ["#{:02x}{:02x}{:02x}".format(*colour) for colour in mixed.tolist()]


def heat_decimals(values: Any) -> int:
    """How many decimals the cells of a heat map show: none where all are whole numbers."""
    return 3 if (_finite(values) % 1).any() else 0


def shapes(names: Sequence[str]) -> list[str]:
    """One shape per model, in order."""
    return [SHAPES[i % len(SHAPES)] for i in range(len(names))]


def dashes(names: Sequence[str]) -> list[tuple[int, ...]]:
    """One dash pattern per model: three models share a pattern, the first three have full lines."""
    return [DASHES[(i // 3) % len(DASHES)] for i in range(len(names))]


def short(name: object, max_length: int = 28) -> str:
    """A name cut to a length that fits a legend or a tick.

    >>> short("a name that goes on and on", 10)
    'a name th…'
    """
    text = str(name)
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def value_and_interval(value: Any) -> tuple[float, float, float]:
    """A number or (value, low, high) as (value, low, high); NaN ends where an interval cannot be drawn.

    >>> value_and_interval((0.5, 0.4, 0.6)), value_and_interval((0.5, 0.4, float("inf")))
    ((0.5, 0.4, 0.6), (0.5, nan, nan))
    """
    if isinstance(value, tuple | list):
        middle, low, high = (float(v) for v in value)
        return (middle, low, high) if math.isfinite(low + high) else (middle, math.nan, math.nan)
    return float(value), math.nan, math.nan


def triples(values: Iterable[Any]) -> Float:
    """Values as a matrix with the columns value, low and high."""
    return np.array([value_and_interval(value) for value in values]).reshape(-1, 3)


def value_fields(value: Any) -> dict[str, float]:
    """The fields value and, where there is an interval, low and high."""
    middle, low, high = value_and_interval(value)
    return {"value": middle} | ({} if math.isnan(low) else {"low": low, "high": high})


def keys_of(values: Mapping[Any, Mapping[Any, Any]]) -> list[Any]:
    """The keys of {model: {key: value}} over all models, in the order they first occur."""
    return list(dict.fromkeys(key for row in values.values() for key in row))


def long_rows(
    values: Mapping[str, Mapping[Any, Any]], key: str, first: str = "model"
) -> list[dict[str, Any]]:
    """{model: {key: value}} as rows with model, key, value, low and high; NaN values are left out."""
    rows = [
        {first: str(model), key: key_value} | value_fields(entry)
        for model, values_by_key in values.items()
        for key_value, entry in values_by_key.items()
    ]
    return [row for row in rows if math.isfinite(row["value"])]


def iso_time(when: Any) -> str:
    """A time as text, in ISO format where it is a date."""
    return str(when.isoformat() if hasattr(when, "isoformat") else when)


def points(coordinates: Any) -> Float:
    """Coordinates as a matrix of two columns."""
    places = np.asarray(coordinates, dtype=np.float64)
    if places.ndim != 2 or places.shape[1] != 2:
        raise InputError(f"coordinates must have two columns, got shape {places.shape}.")
    return places


def histograms(values: Mapping[str, Any], n_bins: int = N_BINS) -> tuple[Float, dict[str, Float]]:
    """Shared edges and, for each model, the share of its values in each bin; NaN is left out."""
    finite = {name: _finite(array) for name, array in values.items()}
    low, high = _range(list(finite.values()))
    edges = np.linspace(low, high, n_bins + 1)
    shares = {name: np.histogram(array, edges)[0] / max(len(array), 1) for name, array in finite.items()}
    return edges, shares


def paired_histogram(first: Any, second: Any, n_bins: int = N_BINS) -> tuple[Float, Array]:
    """Shared edges, and how many pairs fall in each cell: rows by the second, columns by the first."""
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    both = np.isfinite(x) & np.isfinite(y)
    x, y = x[both], y[both]
    edges = np.linspace(*_range([x, y]), n_bins + 1)
    counts = np.histogram2d(y, x, bins=(edges, edges))[0].astype(np.int64)
    return edges, counts


def interval_side(low: float, high: float, *, lower_is_better: bool) -> str:
    """Whether a difference with this interval is better, worse or unclear.

    >>> interval_side(0.1, 0.3, lower_is_better=False), interval_side(0.1, 0.3, lower_is_better=True)
    ('better', 'worse')
    """
    up, down = ("worse", "better") if lower_is_better else ("better", "worse")
    return up if low > 0 else down if high < 0 else "unclear"


def dark_threshold(values: Any) -> float:
    """The value above which a cell of the ramp is too dark for dark letters."""
    finite = _finite(values)
    return float(finite.min() + 0.7 * (finite.max() - finite.min())) if len(finite) else math.inf


def _finite(array: Any) -> Float:
    values = np.asarray(array, dtype=np.float64)
    finite: Float = values[np.isfinite(values)]
    return finite


def _range(arrays: Sequence[Float]) -> tuple[float, float]:
    """0 and 1 if all values lie between them, else the least and the greatest value."""
    ends = [(a.min(), a.max()) for a in arrays if len(a)]
    low, high = min((e[0] for e in ends), default=0.0), max((e[1] for e in ends), default=1.0)
    if low >= 0.0 and high <= 1.0:
        return 0.0, 1.0
    return float(low), float(high if high > low else low + 1.0)
