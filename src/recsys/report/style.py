"""What every picture shares: colours, shapes and dashes of models, and the plain data pictures take.

Colours are told apart by people with colour-vision deficiencies and stand out on white and on near-black
paper alike (3:1 or more); shape and dash say the same again, so no chart needs colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.types import Array, Float

Value = float | tuple[float, float, float]

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
SIDES = {"better": BETTER, "unclear": GREY, "worse": WORSE}
RAMP = ("#b9d3f3", "#4a90e0", "#1a56a6")
STEPS = (RAMP[2], "#5b9be6", "#a3c4ee", "#d3e2f6")
N_BINS = 20


def colours(names: Sequence[str], baseline: str | None = None) -> list[str]:
    """One colour a model, in order; the baseline is grey."""
    taken = iter(range(len(names)))
    return [GREY if name == baseline else COLOURS[next(taken) % len(COLOURS)] for name in names]


def shapes(names: Sequence[str]) -> list[str]:
    """One shape a model, in order."""
    return [SHAPES[i % len(SHAPES)] for i in range(len(names))]


def dashes(names: Sequence[str]) -> list[tuple[int, ...]]:
    """One dash a model: full lines first, then the next pattern for each round of the colours."""
    return [DASHES[(i // 3) % len(DASHES)] for i in range(len(names))]


def short(name: object, most: int = 28) -> str:
    """A name cut to what a legend or a tick can hold.

    >>> short("a name that goes on and on", 10)
    'a name th…'
    """
    text = str(name)
    return text if len(text) <= most else text[: most - 1] + "…"


def triple(value: Any) -> tuple[float, float, float]:
    """(value, low, high); the ends are NaN where there is no interval.

    >>> triple(0.5), triple((0.5, 0.4, 0.6))
    ((0.5, nan, nan), (0.5, 0.4, 0.6))
    """
    if isinstance(value, tuple | list):
        middle, low, high = (float(v) for v in value)
        return middle, low, high
    return float(value), math.nan, math.nan


def flat(values: Mapping[str, Mapping[Any, Any]], key: str, first: str = "model") -> list[dict[str, Any]]:
    """{model: {key: value}} as rows with model, key, value, low and high; a value of NaN is left out."""
    rows = []
    for model, held in values.items():
        for place, value in held.items():
            middle, low, high = triple(value)
            if math.isfinite(middle):
                row = {first: str(model), key: place, "value": middle}
                rows.append(row | ({"low": low, "high": high} if math.isfinite(low + high) else {}))
    return rows


def points(coordinates: Any) -> Float:
    """Places in the plane, one row each."""
    places = np.asarray(coordinates, dtype=np.float64)
    if places.ndim != 2 or places.shape[1] != 2:
        raise InputError(f"coordinates must have two columns, got shape {places.shape}.")
    return places


def binned(values: Mapping[str, Any], n_bins: int = N_BINS) -> tuple[Float, dict[str, Float]]:
    """Shared edges and, for each model, the share of its values in each bin; NaN is left out."""
    kept = {name: _finite(array) for name, array in values.items()}
    low, high = _range(list(kept.values()))
    edges = np.linspace(low, high, n_bins + 1)
    shares = {name: np.histogram(array, edges)[0] / max(len(array), 1) for name, array in kept.items()}
    return edges, shares


def binned_pairs(first: Any, second: Any, n_bins: int = N_BINS) -> tuple[Float, Array]:
    """Shared edges, and how many pairs fall in each cell: rows by the second, columns by the first."""
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    both = np.isfinite(x) & np.isfinite(y)
    x, y = x[both], y[both]
    edges = np.linspace(*_range([x, y]), n_bins + 1)
    counts = np.histogram2d(y, x, bins=(edges, edges))[0].astype(np.int64)
    return edges, counts


def side_of(low: float, high: float, *, lower_is_better: bool) -> str:
    """What a difference with this interval is: better, worse or unclear.

    >>> side_of(0.1, 0.3, lower_is_better=False), side_of(0.1, 0.3, lower_is_better=True)
    ('better', 'worse')
    """
    up, down = ("worse", "better") if lower_is_better else ("better", "worse")
    return up if low > 0 else down if high < 0 else "unclear"


def dark_from(values: Any) -> float:
    """The value from which a cell of the ramp is too dark for dark letters."""
    kept = _finite(values)
    return float(kept.min() + 0.7 * (kept.max() - kept.min())) if len(kept) else math.inf


def _finite(array: Any) -> Float:
    values = np.asarray(array, dtype=np.float64)
    kept: Float = values[np.isfinite(values)]
    return kept


def _range(arrays: Sequence[Float]) -> tuple[float, float]:
    """From 0 to 1 where that holds all values, else from the least to the greatest of them."""
    ends = [(a.min(), a.max()) for a in arrays if len(a)]
    low, high = min((e[0] for e in ends), default=0.0), max((e[1] for e in ends), default=1.0)
    if low >= 0.0 and high <= 1.0:
        return 0.0, 1.0
    return float(low), float(high if high > low else low + 1.0)
