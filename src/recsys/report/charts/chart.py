"""What all Vega-Lite charts are made of: the Chart, its look, and the encodings several of them use.

Field names are ours and names of models are only ever data, so none can be read as an expression.
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
# Of the layers that draw intervals: rows without one are left out, and the layer where no row has one.
WITH_INTERVAL = [{"filter": "isValid(datum.low)"}]
_INHERITED = re.compile(
    r'"(constructor|hasOwnProperty|isPrototypeOf|propertyIsEnumerable|toLocaleString|toString|valueOf|__\w+__)"'
)
_SUFFIXES = (".html", ".json", ".pdf", ".png", ".svg")


@dataclass(frozen=True)
class Chart:
    """A Vega-Lite specification and what it shows in one sentence; notebooks draw it."""

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
        write_bytes(target, self.to_json().encode() if kind == ".json" else self._drawn(kind, scale))
        return target

    def _drawn(self, kind: str, scale: float) -> bytes:
        if kind == ".html":
            from recsys.report.page import chart_page

            return chart_page(self).encode()
        vl = vl_convert()
        paper = {**self.spec, "background": "white"}
        if kind == ".svg":
            text: str = vl.vegalite_to_svg(paper, allowed_base_urls=[])
            return text.encode()
        if kind == ".pdf":
            return bytes(vl.vegalite_to_pdf(paper, allowed_base_urls=[]))
        return bytes(vl.vegalite_to_png(paper, scale=scale, allowed_base_urls=[]))


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
    """Layers over rows, under our look; `pick` lets a click on the legend choose."""
    if not any("low" in row for row in rows):
        layers = [layer for layer in layers if layer.get("transform") != WITH_INTERVAL]
    if pick:
        chosen = {"name": "pick", "select": {"type": "point", "fields": [field]}, "bind": "legend"}
        layers = [{**layers[0], "params": [chosen]}, *layers[1:]]
    else:
        layers = [_without_pick(layer) for layer in layers]
    spec = {
        "$schema": SCHEMA,
        "description": says,
        "width": 560,
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": rounded(rows)},
        "layer": layers,
        "config": _CONFIG,
    }
    return Chart(_digestible(spec), says)


def _digestible(spec: dict[str, Any]) -> dict[str, Any]:
    """The same with the names that Vega chokes on written in a way that looks the same.

    Its expression parser refuses two line separators inside quotes, and a name that every JavaScript object
    has (constructor) is taken for something known; a space of no width tells them apart.
    """
    text = json.dumps(spec, ensure_ascii=False).translate({0x2028: " ", 0x2029: " "})
    made: dict[str, Any] = json.loads(_INHERITED.sub('"\\1\u200b"', text))
    return made


def _without_pick(layer: dict[str, Any]) -> dict[str, Any]:
    held = layer["encoding"]
    if "condition" not in held.get("opacity", {}):
        return layer
    kept = {**held, "opacity": {"value": held["opacity"]["condition"]["value"]}}
    return {**layer, "encoding": kept}


def stacked(
    rows: list[dict[str, Any]],
    who: list[str],
    groups: list[str],
    range_: list[str],
    *,
    says: str,
    field: str,
    form: str,
) -> Chart:
    """Bars of shares that add up to one."""
    layer = {
        "mark": {"type": "bar", "cornerRadius": 1},
        "encoding": {
            "y": {
                "field": "who",
                "type": "nominal",
                "scale": in_order(who),
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
                "scale": {"domain": groups, "range": range_},
            },
            "order": {"field": "order"},
            "tooltip": tooltip(("who", None), ("group", None), (field, form)),
        },
    }
    return chart_of(rows, [layer], says, height=28 * len(who) + 4)


def number(field: str, title: str, *, zero: bool = False) -> dict[str, Any]:
    """A number along an axis."""
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"zero": zero},
        "axis": {"tickCount": 6},
    }


def in_order(names: Iterable[Any]) -> dict[str, Any]:
    """A scale that keeps the given order of names."""
    return {"domain": [str(name) for name in names]}


def by_colour(
    names: Sequence[str],
    baseline: str | None,
    *,
    field: str = "model",
    legend: bool = True,
    marks: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The colour of a model, or of a group; `marks` says how the legend draws them."""
    shown = _legend(names) if legend else {"legend": None}
    if marks is not None and not shown:
        shown = {"legend": marks}
    scale = {"domain": [str(n) for n in names], "range": style.colours(names, baseline)}
    return {"field": field, "type": "nominal", "scale": scale, **shown}


def by_shape(names: Sequence[str], *, field: str = "model", legend: bool = True) -> dict[str, Any]:
    """The shape of a model, or of a group."""
    shown = _legend(names) if legend else {"legend": None}
    return {
        "field": field,
        "type": "nominal",
        "scale": {"domain": [str(n) for n in names], "range": style.shapes(names)},
        **shown,
    }


def by_dash(names: Sequence[str]) -> dict[str, Any]:
    """The dash of a model's line."""
    scale = {"domain": [str(n) for n in names], "range": [list(d) for d in style.dashes(names)]}
    return {"field": "model", "type": "nominal", "scale": scale, **_legend(names)}


def _legend(names: Sequence[str]) -> dict[str, Any]:
    return {} if len(names) > 1 else {"legend": None}


def picked(full: float = 1.0, faded: float = 0.12) -> dict[str, Any]:
    """Full where the legend's choice holds, faded elsewhere."""
    return {"opacity": {"condition": {"param": "pick", "value": full}, "value": faded}}


def tooltip(*fields: tuple[str, str | None]) -> list[dict[str, Any]]:
    """What a pointer over a mark shows."""
    return [{"field": name, "title": name, **({"format": form} if form else {})} for name, form in fields]


def rounded(rows: Any) -> list[dict[str, Any]]:
    """Six significant digits: what a picture can show, at half the size."""
    return [
        {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in row.items()}
        for row in rows
    ]


def parts(value: Any) -> dict[str, float]:
    """A value and, where there is one, its interval."""
    middle, low, high = style.triple(value)
    return {"value": middle} | ({"low": low, "high": high} if math.isfinite(low + high) else {})


def moment(when: Any) -> str:
    """A point in time as text."""
    return str(when.isoformat() if hasattr(when, "isoformat") else when)


def several(names: Sequence[str]) -> str:
    """Some names, and how many more there are."""
    shown = ", ".join(str(n) for n in names[:4])
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"


def from_to(places: Sequence[int]) -> str:
    """The first and the last of some places."""
    return f"{places[0]} to {places[-1]}" if len(places) > 1 else ", ".join(map(str, places))
