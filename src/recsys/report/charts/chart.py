"""What all Vega-Lite charts share: the Chart class, the configuration, and common encodings.

Field names are ours and names of models are only data, so none is read as an expression.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recsys.errors import InputError, MissingExtraError
from recsys.report import style

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
MIME = "application/vnd.vegalite.v5+json"
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
INK, RULE = "#6b7280", "#a8b0bb"
_CONFIG: dict[str, Any] = {
    "font": _FONT,
    "background": None,
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "titleFontWeight": 500,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "gridColor": RULE,
        "gridOpacity": 0.3,
        "domainColor": RULE,
        "tickColor": RULE,
        "titlePadding": 8,
        "labelFlush": False,
        "labelLimit": 150,
    },
    "legend": {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 12,
        "labelLimit": 170,
        "orient": "bottom",
        "columns": 4,
        "symbolSize": 90,
        "symbolStrokeWidth": 2,
        "symbolOpacity": 1,
        "title": None,
    },
    "title": {"color": INK, "fontSize": 13, "fontWeight": 600, "anchor": "start", "offset": 10},
    "aria": False,
}
# Of layers that draw intervals: leaves out rows without one; chart_of drops the layer if no row has one.
WITH_INTERVAL = [{"filter": "isValid(datum.low)"}]
_JAVASCRIPT_MEMBERS = re.compile(
    r'"(constructor|hasOwnProperty|isPrototypeOf|propertyIsEnumerable|toLocaleString|toString|valueOf|__\w+__)"'
)
_SUFFIXES = (".html", ".json", ".pdf", ".png", ".svg")


@dataclass(frozen=True)
class Chart:
    """A Vega-Lite specification and a sentence that says what it shows; notebooks draw it."""

    spec: dict[str, Any]
    says: str

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        del include, exclude
        return {MIME: self.spec, "text/plain": f"Chart: {self.says}"}

    def to_json(self, *, indent: int | None = 2) -> str:
        return json.dumps(self.spec, indent=indent, ensure_ascii=False)

    def save(self, path: str | os.PathLike[str], *, scale: float = 2.0) -> Path:
        """Write the chart as .png, .svg, .pdf, .json or a page of its own (.html); no browser is needed."""
        from recsys.inputs.files import write_bytes

        target = Path(path)
        kind = target.suffix.lower()
        if kind not in _SUFFIXES:
            raise InputError(f"{target} has none of the endings {', '.join(_SUFFIXES)}.")
        write_bytes(target, self.to_json().encode() if kind == ".json" else self._render(kind, scale))
        return target

    def _render(self, kind: str, scale: float) -> bytes:
        if kind == ".html":
            from recsys.report.page import chart_page

            return chart_page(self).encode()
        vl = vl_convert()
        spec = {**self.spec, "background": "white"}
        if kind == ".svg":
            text: str = vl.vegalite_to_svg(spec, allowed_base_urls=[])
            return text.encode()
        if kind == ".pdf":
            return bytes(vl.vegalite_to_pdf(spec, allowed_base_urls=[]))
        return bytes(vl.vegalite_to_png(spec, scale=scale, allowed_base_urls=[]))


def vl_convert() -> Any:
    """The package that carries the Vega scripts and draws without a browser."""
    try:
        import vl_convert as vl
    except ImportError as error:
        raise MissingExtraError("vl-convert-python", "report", "Drawing a chart") from error
    return vl


def chart_of(
    rows: list[dict[str, Any]],
    layers: list[dict[str, Any]],
    says: str,
    *,
    height: int = 260,
    pick: bool = False,
    field: str = "model",
) -> Chart:
    """A chart of layers over rows; with `pick`, a click on the legend highlights a value of `field`."""
    if not any("low" in row for row in rows):
        layers = [layer for layer in layers if layer.get("transform") != WITH_INTERVAL]
    if pick:
        selection = {"name": "pick", "select": {"type": "point", "fields": [field]}, "bind": "legend"}
        layers = [{**layers[0], "params": [selection]}, *layers[1:]]
    else:
        layers = [_without_pick(layer) for layer in layers]
    spec = {
        "$schema": SCHEMA,
        "description": says,
        "width": 560,
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": round_floats(rows)},
        "layer": layers,
        "config": _CONFIG,
    }
    return Chart(_escape_for_vega(spec), says)


def _escape_for_vega(spec: dict[str, Any]) -> dict[str, Any]:
    """The specification with names that Vega cannot handle replaced by others that look the same.

    Its expression parser refuses U+2028 and U+2029 inside quotes: they become spaces. A member of every
    JavaScript object (constructor) is taken for a known name: a zero-width space is added.
    """
    text = json.dumps(spec, ensure_ascii=False).translate({0x2028: " ", 0x2029: " "})
    escaped: dict[str, Any] = json.loads(_JAVASCRIPT_MEMBERS.sub('"\\1\u200b"', text))
    return escaped


def _without_pick(layer: dict[str, Any]) -> dict[str, Any]:
    encoding = layer["encoding"]
    if "condition" not in encoding.get("opacity", {}):
        return layer
    opacity = {"value": encoding["opacity"]["condition"]["value"]}
    return {**layer, "encoding": {**encoding, "opacity": opacity}}


def stacked_bars(
    rows: list[dict[str, Any]],
    labels: list[str],
    groups: list[str],
    colours: list[str],
    *,
    says: str,
    field: str,
    form: str,
) -> Chart:
    """Bars of shares that add up to one; rows have who, group, share and order."""
    layer = {
        "mark": {"type": "bar", "cornerRadius": 1},
        "encoding": {
            "y": {
                "field": "who",
                "type": "nominal",
                "scale": ordered_scale(labels),
                "title": None,
                "axis": {"labelLimit": 200},
            },
            "x": {
                "field": "share",
                "type": "quantitative",
                "title": None,
                "axis": {"format": "%", "tickCount": 5},
                "scale": {"domain": [0, 1]},
            },
            "color": {
                "field": "group",
                "type": "nominal",
                "scale": {"domain": groups, "range": colours},
            },
            "order": {"field": "order"},
            "tooltip": tooltip(("who", None), ("group", None), (field, form)),
        },
    }
    return chart_of(rows, [layer], says, height=28 * len(labels) + 4)


def number_axis(field: str, title: str, *, zero: bool = False) -> dict[str, Any]:
    """A quantitative axis."""
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"zero": zero},
        "axis": {"tickCount": 6},
    }


def ordered_scale(names: Iterable[Any]) -> dict[str, Any]:
    """A scale that keeps the order of the names."""
    return {"domain": [str(name) for name in names]}


def colour_encoding(
    names: Sequence[str],
    baseline: str | None,
    *,
    field: str = "model",
    legend: bool = True,
    marks: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """One colour per model or group; `marks` are the settings of the legend."""
    options = _legend(names) if legend else {"legend": None}
    if marks is not None and not options:
        options = {"legend": marks}
    scale = {"domain": [str(n) for n in names], "range": style.colours(names, baseline)}
    return {"field": field, "type": "nominal", "scale": scale, **options}


def shape_encoding(names: Sequence[str], *, field: str = "model", legend: bool = True) -> dict[str, Any]:
    """One shape per model or group."""
    options = _legend(names) if legend else {"legend": None}
    return {
        "field": field,
        "type": "nominal",
        "scale": {"domain": [str(n) for n in names], "range": style.shapes(names)},
        **options,
    }


def dash_encoding(names: Sequence[str]) -> dict[str, Any]:
    """One dash pattern per model."""
    scale = {"domain": [str(n) for n in names], "range": [list(d) for d in style.dashes(names)]}
    return {"field": "model", "type": "nominal", "scale": scale, **_legend(names)}


def _legend(names: Sequence[str]) -> dict[str, Any]:
    """No legend for a single name."""
    return {} if len(names) > 1 else {"legend": None}


def fade_unpicked(full: float = 1.0, faded: float = 0.12) -> dict[str, Any]:
    """Opacity: full where the selection of the legend holds, faded elsewhere."""
    return {"opacity": {"condition": {"param": "pick", "value": full}, "value": faded}}


def tooltip(*fields: tuple[str, str | None]) -> list[dict[str, Any]]:
    """The fields a tooltip shows, with their formats."""
    return [{"field": name, "title": name, **({"format": form} if form else {})} for name, form in fields]


def round_floats(rows: Any) -> list[dict[str, Any]]:
    """Rows with floats at six significant digits: enough for a picture, at half the size."""
    return [
        {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in row.items()}
        for row in rows
    ]


def value_fields(value: Any) -> dict[str, float]:
    """The fields value and, where there is an interval, low and high."""
    middle, low, high = style.value_and_interval(value)
    return {"value": middle} | ({"low": low, "high": high} if math.isfinite(low + high) else {})


def iso_time(when: Any) -> str:
    """A time as text, in ISO format where it is a date."""
    return str(when.isoformat() if hasattr(when, "isoformat") else when)


def list_names(names: Sequence[str]) -> str:
    """The first four names, and how many more there are."""
    first = ", ".join(str(n) for n in names[:4])
    return first if len(names) <= 4 else f"{first} and {len(names) - 4} more"


def format_range(numbers: Sequence[int]) -> str:
    """The first and the last of some numbers."""
    return f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else ", ".join(map(str, numbers))
