"""What a picture is made of, whatever draws it: panels with two axes and marks over rows.

A row is a dictionary. A mark says by which of its fields it is placed, and is drawn for the rows that have
them all. Ticks, ranges and the places of labels are decided here, so that all renderers agree on them.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recsys.report import style

Row = dict[str, Any]
Box = tuple[float, float, float, float]  # left, top, right, bottom
SPACING = 24  # between panels, in pixels
_WIDTHS = (440.0, 230.0, 340.0, 700.0, 1000.0)  # of the plot, in pixels: of a figure, then phone to wide page
_LINE = 14.0  # the height of a line of text, in pixels
# dx, dy and anchor of the places of a label round its point, the nearest first
_OFFERS = [(10, 0, "left"), (-10, 0, "right"), (0, -15, "center"), (0, 15, "center"), (8, -15, "left"),
           (8, 15, "left"), (-8, -15, "right"), (-8, 15, "right")]  # fmt: skip
_SIDES = ((0, "center"), (6, "left"), (-6, "right"))
_OFFERS += [(dx, dy, anchor) for dy in (-30, 30, -45, 45, -60, 60) for dx, anchor in _SIDES]


@dataclass(frozen=True)
class Axis:
    """An axis of numbers (linear or log), of names in their order, of time, or one that is not drawn (none).

    `format` says how numbers are written; Python and d3 both read it.
    """

    title: str = ""
    kind: str = "linear"
    domain: tuple[Any, Any] = (0.0, 1.0)
    ticks: Sequence[Any] = ()  # numbers, or the names
    format: str = ""
    grid: bool = True

    def place(self, value: float) -> float:
        """Return where a number is on a linear axis, from 0 to 1."""
        return float((value - self.domain[0]) / (self.domain[1] - self.domain[0]))


@dataclass(frozen=True)
class Series:
    """What distinguishes the rows: a field, its values in order, and the look of each."""

    field: str
    names: Sequence[str]
    colours: Sequence[str]
    shapes: Sequence[str] = ()
    dashes: Sequence[tuple[int, ...]] = ()
    legend: str = ""  # where it is: "bottom" or "top" of the picture; none where the labels are direct

    @property
    def highlighted(self) -> list[str]:
        """The names with a look of their own; the others of a crowd share one."""
        looks = zip(self.names, self.colours, strict=True)
        return [name for name, colour in looks if colour != style.OTHERS]


@dataclass(frozen=True)
class Mark:
    """A line, point, interval, bar, area, rule, text or cell for each row (or series) of its rows.

    x, y and where there is a second end x2, y2 are names of fields. The colour is that of the row's series,
    a colour ("#…"), or that in a field of the row. A row may move its text by dx and dy pixels, and say by
    its anchor which part of it is there: left, center or right.
    """

    kind: str
    x: str = ""
    y: str = ""
    x2: str = ""
    y2: str = ""
    text: str = ""
    colour: str = ""
    size: Any = 2.0  # a width, the area of a point, the size of letters; or a field
    opacity: float = 1.0
    step: bool = False
    dash: tuple[int, ...] = ()
    rows: Sequence[Row] | None = None  # its own rows; else those of the panel
    tips: Sequence[tuple[str, str | None]] = ()  # fields, and their formats, shown when pointed at

    @property
    def fields(self) -> list[str]:
        return [field for field in (self.x, self.y, self.x2, self.y2, self.text) if field]

    def drawn(self, panel: Panel) -> list[Row]:
        """Return the rows that have all the fields it is placed by."""
        rows = panel.rows if self.rows is None else self.rows
        return [row for row in rows if all(field in row for field in self.fields)]


@dataclass(frozen=True)
class Panel:
    """Marks over one pair of axes; sizes are of the plot without its labels, in pixels."""

    rows: Sequence[Row]
    marks: Sequence[Mark]
    x: Axis
    y: Axis
    series: Series
    title: str = ""
    width: int = 440
    height: int = 260
    dodge: bool = False  # whether the series are side by side on the axis of names
    label_width: float = 60  # what labels take on both sides of the plot, in pixels


@dataclass(frozen=True)
class Picture:
    """Panels, and a sentence that says what they show."""

    description: str
    panels: Sequence[Panel]

    def columns(self, width: float) -> int:
        """Return how many columns of panels fit a width, so that no row is much shorter than the others."""
        widest = max((panel.width + panel.label_width + SPACING for panel in self.panels), default=1)
        rows = -(-len(self.panels) // max(int(width // widest), 1))
        return max(-(-len(self.panels) // max(rows, 1)), 1)


def model_series(
    names: Iterable[Any],
    baseline: str | None = None,
    order: Sequence[str] = (),
    *,
    field: str = "model",
    legend: str = "",
) -> Series:
    """Return the looks of models by their places in `order` (by default that of the names).

    The baseline is grey.

    Of a crowd, the first and the baseline have their own look.
    """
    texts = [str(name) for name in names]
    everyone = list(dict.fromkeys([*map(str, order), *texts]))
    at = [everyone.index(text) for text in texts]
    n_looks = len(everyone) if len(everyone) <= style.CROWD else style.N_OF_CROWD
    colours = [style.COLOURS[i % len(style.COLOURS)] if i < n_looks else style.OTHERS for i in at]
    colours = [
        style.GREY if baseline is not None and t == str(baseline) else c
        for t, c in zip(texts, colours, strict=True)
    ]
    places = [0 if colour == style.OTHERS else i for i, colour in zip(at, colours, strict=True)]
    shapes = [style.SHAPES[i % len(style.SHAPES)] for i in places]
    dashes = [style.DASHES[(i // 3) % len(style.DASHES)] for i in places]
    return Series(field, texts, colours, shapes, dashes, legend if len(texts) > 1 else "")


def value_rows(values: Mapping[Any, Mapping[Any, Any]], key: str, first: str = "model") -> list[Row]:
    """Return {model: {key: value}} as rows with model, key, value, low and high; NaN values are left out."""
    rows = []
    for name, by_key in values.items():
        for at, entry in by_key.items():
            value, low, high = style.value_and_interval(entry)
            if math.isfinite(value):
                ends = {} if math.isnan(low) else {"low": low, "high": high}
                place = at if isinstance(at, int | float | datetime) else str(at)
                rows.append({first: str(name), key: place, "value": value, **ends})
    return rows


def names_axis(names: Iterable[Any], title: str = "") -> Axis:
    """Return an axis of names."""
    return Axis(title, "names", ticks=[str(name) for name in names], grid=False)


def number_axis(
    rows: Iterable[Row],
    fields: Sequence[str],
    title: str = "",
    *,
    zero: bool = True,
    percent: bool = False,
    signed: bool = False,
    n_ticks: int = 5,
    pad: float = 0.0,
) -> Axis:
    """Return a linear axis over the values of some fields.

    Args:
        rows: the rows.
        fields: the fields whose values must be on the axis.
        title: of the axis.
        zero: whether zero is on the axis; without `pad` it then ends on ticks.
        percent: whether shares are written as percentages.
        signed: whether numbers are written with + and -.
        n_ticks: about how many ticks there are.
        pad: room at both ends, as a share of the range; never beyond 0 or 1 where no value is.
    """
    values = style.finite([row[f] for row in rows for f in fields if f in row])
    least, most = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    low, high = (min(least, 0.0), max(most, 0.0)) if zero else (least, most)
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        low, high = low - abs(low) / 4, high + (abs(high) / 4 or 1.0)
    room = pad * (high - low)
    low, high = low - room * (low != 0), high + room * (high != 0)
    low = max(low, 0.0) if least >= 0 else low
    high = min(high, 1.0) if most <= 1 and not signed else high
    ticks, form = nice_ticks(low, high, n_ticks, percent=percent)
    if zero and not pad:
        step = ticks[1] - ticks[0]
        low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
        ticks, form = nice_ticks(low, high, n_ticks + 1, percent=percent)
    return Axis(title, "linear", (low, high), ticks, f"+{form}" if signed else form)


def nice_ticks(low: float, high: float, n: int, *, percent: bool = False) -> tuple[list[float], str]:
    """Return round numbers between two ends, and a format in which no two of them look the same.

    >>> nice_ticks(0, 0.0003, 3), nice_ticks(0, 1, 5, percent=True)
    (([0.0, 0.0001, 0.0002, 0.0003], '.4f'), ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], '.0%'))
    """
    power = math.floor(math.log10((high - low) / n))
    step, digits = 10.0 ** (power + 1), -(power + 1)
    for factor, digit in ((1, -power), (2, -power), (2.5, 1 - power), (5, -power)):
        if (high - low) / (factor * 10.0**power) <= n + 1e-9:
            step, digits = factor * 10.0**power, digit
            break
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    ticks = [float(f"{i * step:.12g}") + 0.0 for i in range(first, last + 1)]
    largest = max(map(abs, ticks), default=0.0)
    if percent:
        return ticks, f".{max(digits - 2, 0)}%"
    if digits > 6 or largest >= 1e7:
        mantissa = digits + (math.floor(math.log10(largest)) if largest else 0)
        return ticks, f".{max(mantissa, 0)}e"
    return ticks, f"{',' if largest >= 1000 else ''}.{max(digits, 0)}f"


def number_text(value: float, form: str) -> str:
    """Return a number as d3 writes it; 0, without sign and unit, where rounding leaves nothing of it.

    >>> number_text(0.001, "+.0%"), number_text(0.05, "+.1%"), number_text(-2, ".0f") == "\u22122"
    ('0', '+5.0%', True)
    """
    text = format(value, form)
    if not any(digit in text.split("e")[0] for digit in "123456789"):
        return "0"
    return "\u2212" + text[1:] if text[0] == "-" else text


def text_width(text: str) -> float:
    """About how wide a text of 12 pixels is drawn, in pixels."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return 12.0 * (0.56 * len(text) + 0.46 * wide)


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return the nearest places that are at least `gap` apart and lie between two ends, in the order given.

    >>> spread([1.0, 1.0, 5.0], 1.0, 0.0, 10.0)
    [0.5, 1.5, 5.0]
    """
    n = len(places)
    gap = min(gap, (high - low) / max(n - 1, 1))
    order = sorted(range(n), key=lambda i: places[i])
    blocks: list[tuple[float, int]] = []  # the sum of places, less the gaps below, and how many
    for rank, i in enumerate(order):
        total, count = places[i] - rank * gap, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            before = blocks.pop()
            total, count = total + before[0], count + before[1]
        blocks.append((total, count))
    level = [total / count for total, count in blocks for _ in range(count)]
    top = high - (n - 1) * gap
    found = [0.0] * n
    for rank, i in enumerate(order):
        found[i] = min(max(level[rank], low), top) + rank * gap
    return found


def place_labels(
    places: Sequence[tuple[float, float]], labels: Sequence[str], height: float
) -> list[Row | None]:
    """Return dx, dy and anchor of the label of each point, so that it covers no point and no other label.

    The first place round the point is taken that is free at every width the plot may have, else the one with
    the least in its way; None where it would cover another label or an edge in a figure.

    Args:
        places: the points as shares of the width (from the left) and of the height (from the top).
        labels: their texts.
        height: of the plot, in pixels.
    """
    offers: list[Row] = [{"dx": dx, "dy": dy, "anchor": anchor} for dx, dy, anchor in _OFFERS]
    found: list[Row | None] = [None] * len(places)
    for i in sorted(range(len(places)), key=lambda i: places[i][::-1]):
        touched = [[0, 0] for _ in offers]  # labels and edges in a figure; all else, at all widths
        for width in _WIDTHS:
            at = [(x * width, y * height) for x, y in places]
            texts = [_label_box(at[j], labels[j], offer) for j, offer in enumerate(found) if offer]
            points = [(x - 6, y - 6, x + 6, y + 6) for j, (x, y) in enumerate(at) if j != i]
            for count, offer in zip(touched, offers, strict=True):
                box = _label_box(at[i], labels[i], offer)
                outside = (box[0] < 0) + (box[1] < -4) + (box[2] > width) + (box[3] > height)
                count[width != _WIDTHS[0]] += outside + sum(_overlap(box, text) for text in texts)
                count[1] += sum(_overlap(box, point) for point in points)
        best = min(touched)
        found[i] = None if best[0] else offers[touched.index(best)]
    return found


def _label_box(at: tuple[float, float], label: str, offer: Mapping[str, Any]) -> Box:
    wide = text_width(label)
    left = at[0] + offer["dx"] - {"left": 0.0, "center": wide / 2, "right": wide}[offer["anchor"]]
    middle = at[1] + offer["dy"]
    return left, middle - _LINE / 2, left + wide, middle + _LINE / 2


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
