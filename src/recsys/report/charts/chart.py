"""Pictures as Vega-Lite specifications: plain dictionaries that a report, a notebook or vl-convert draws.

Field names are ours and names of models are only data, so none is read as an expression.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from recsys.errors import InputError, MissingExtraError, needs_extra
from recsys.report.pictures.vocabulary import SPACING, Axis, Mark, Panel, Picture
from recsys.report.style import INK, RULE

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
MIME = "application/vnd.vegalite.v5+json"
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
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
    "title": {
        "color": INK,
        "fontSize": 12,
        "fontWeight": 500,
        "subtitleColor": INK,
        "anchor": "start",
        "offset": 8,
        "frame": "group",
        "limit": 420,
    },
    "aria": False,
}
# Members of every JavaScript object.
_JAVASCRIPT_MEMBERS = re.compile(
    r'"(constructor|hasOwnProperty|isPrototypeOf|propertyIsEnumerable|toLocaleString|toString|valueOf|__\w+__)"'
)
_SUFFIXES = (".html", ".json", ".pdf", ".png", ".svg")


@dataclass(frozen=True)
class Chart:
    """A Vega-Lite specification and a sentence that says what it shows; notebooks draw it."""

    spec: dict[str, Any]
    description: str

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Return the specification, for JupyterLab, and an SVG for others if vl-convert is installed."""
        del include, exclude
        bundle: dict[str, Any] = {MIME: self.spec, "text/plain": f"Chart: {self.description}"}
        with suppress(MissingExtraError):
            bundle["image/svg+xml"] = self._drawn("svg")
        return bundle

    def _drawn(self, kind: str, **options: Any) -> Any:
        """Return what vl-convert makes of the chart on white.

        It is the text of an SVG, the bytes of another file.
        """
        draw = getattr(vl_convert(), f"vegalite_to_{kind}")
        return draw({**self.spec, "background": "white"}, allowed_base_urls=[], **options)

    @property
    def page_spec(self) -> dict[str, Any]:
        """The specification without what a page holds once; as wide as its place, unless it has panels."""
        spec = {k: v for k, v in self.spec.items() if k not in {"config", "$schema", "description"}}
        return spec if "concat" in spec else spec | {"width": "container"}

    def to_json(self, *, indent: int | None = 2) -> str:
        return json.dumps(self.spec, indent=indent, ensure_ascii=False)

    def save(self, path: str | os.PathLike[str], *, scale: float = 2.0) -> Path:
        """Write the chart as .png, .svg, .pdf, .json or a page of its own (.html); no browser is needed."""
        from recsys.inputs.files import write_bytes

        target = Path(path)
        kind = target.suffix.lower()
        if kind not in _SUFFIXES:
            raise InputError(f"{target} has none of the endings {', '.join(_SUFFIXES)}.")
        if kind == ".json":
            content = self.to_json().encode()
        elif kind == ".html":
            from recsys.report.page import chart_page

            content = chart_page(self).encode()
        elif kind == ".svg":
            content = self._drawn("svg").encode()
        else:
            content = bytes(self._drawn(kind[1:], **({"scale": scale} if kind == ".png" else {})))
        write_bytes(target, content)
        return target


def vl_convert() -> Any:
    """Return the package that carries the Vega scripts and draws without a browser."""
    with needs_extra("vl-convert-python", "report", "Drawing a chart"):
        import vl_convert as vl
    return vl


_TYPES = {"interval": "rule", "cell": "rect"}  # of marks that have another name in Vega-Lite
_SIZES = {
    "line": "strokeWidth",
    "interval": "strokeWidth",
    "rule": "strokeWidth",
    "point": "size",
    "text": "fontSize",
}


def chart_of(picture: Picture) -> Chart:
    """Return the picture in Vega-Lite.

    Several panels are a concatenation. A page sets its columns and the width of the panels: `usermeta` says
    how wide a panel wants to be at least, and what its labels take next to the plot.
    """
    views = [_view(panel) for panel in picture.panels]
    spec: dict[str, Any] = {"$schema": SCHEMA, "description": picture.description, "config": _CONFIG}
    if len(views) == 1:
        width = max(560, picture.panels[0].width)
        spec |= views[0] | {"width": width, "autosize": {"type": "fit-x", "contains": "padding"}}
    else:
        width = max((panel.width for panel in picture.panels), default=0)
        labels = math.ceil(max((panel.label_width for panel in picture.panels), default=0))
        spec |= {
            "concat": [view | {"width": width} for view in views],
            "columns": picture.columns(1000),
            "spacing": SPACING,
            "resolve": {"scale": dict.fromkeys(("color", "shape", "strokeDash"), "independent")},
            "usermeta": {"panel": round(0.7 * width), "labels": labels},
        }
    # Names that Vega cannot handle become others that look the same. Its expression parser refuses U+2028 and
    # U+2029 inside quotes: they become spaces. A member of every JavaScript object (constructor) is taken for
    # a known name: a zero-width space is added.
    text = json.dumps(spec, ensure_ascii=False).translate({0x2028: " ", 0x2029: " "})
    return Chart(json.loads(_JAVASCRIPT_MEMBERS.sub('"\\1\u200b"', text)), picture.description)


def _view(panel: Panel) -> dict[str, Any]:
    """Return one panel: its title (or that of its y axis, which is above it), rows and layers."""
    drawn = [mark for mark in panel.marks if mark.drawn(panel)]
    layers = [_layer(mark, panel) for mark in drawn or panel.marks[:1]]  # the axes are drawn in any case
    if panel.series.legend:
        selection = {"type": "point", "fields": [panel.series.field]}
        layers[0]["params"] = [{"name": "pick", "select": selection, "bind": "legend"}]
    title: dict[str, Any] = {}
    if panel.title:
        title = {"title": {"text": panel.title, "fontWeight": 600, "fontSize": 13}}
    elif panel.y.title:
        title = {"title": panel.y.title}
    return title | {"height": panel.height, "data": {"values": _plain(panel.rows)}, "layer": layers}


def _layer(mark: Mark, panel: Panel) -> dict[str, Any]:
    """Return one mark: how it looks, and which fields place it."""
    look: dict[str, Any] = {"type": _TYPES.get(mark.kind, mark.kind)}
    if mark.kind in _SIZES:
        look[_SIZES[mark.kind]] = {"expr": f"datum.{mark.size}"} if isinstance(mark.size, str) else mark.size
    if mark.kind == "point":
        look["filled"] = True
    if mark.kind == "text":
        moved = {"dx": "datum.dx || 0", "dy": "datum.dy || 0", "align": "datum.anchor || 'center'"}
        look |= {"baseline": "middle"} | {name: {"expr": expression} for name, expression in moved.items()}
    look |= {"interpolate": "step-after"} if mark.step else {}
    look |= {"strokeDash": list(mark.dash)} if mark.dash else {}
    encoding: dict[str, Any] = {
        c: _axis(getattr(panel, c), f, c, dodge=panel.dodge) for c in ("x", "y") if (f := getattr(mark, c))
    }
    encoding |= {c: {"field": f} for c in ("x2", "y2", "text") if (f := getattr(mark, c))}
    if panel.dodge:
        encoding["xOffset"] = {"field": panel.series.field, "scale": {"domain": list(panel.series.names)}}
    if mark.tips:
        encoding["tooltip"] = [_tip(name, form) for name, form in mark.tips]
    layer: dict[str, Any] = {"mark": look | _colour(mark, panel, encoding), "encoding": encoding}
    if mark.kind == "text" and not mark.colour.startswith("#"):
        layer["name"] = "inside"  # letters on a mark; the page leaves their colour alone
    if mark.rows is not None:
        layer["data"] = {"values": _plain(mark.rows)}
    elif len(mark.drawn(panel)) < len(panel.rows):
        layer["transform"] = [{"filter": " && ".join(f"isValid(datum.{field})" for field in mark.fields)}]
    return layer


def _colour(mark: Mark, panel: Panel, encoding: dict[str, Any]) -> dict[str, Any]:
    """Return the colour and opacity of a mark.

    What depends on the row or its series is added to the encoding.
    """
    series = panel.series
    if mark.colour.startswith("#"):
        return {"color": mark.colour, "opacity": mark.opacity}
    if mark.colour:
        return {"color": {"expr": f"datum.{mark.colour}"}, "opacity": mark.opacity}
    # A dash would break the outlines of the legend's filled symbols.
    filled = any(other.kind == "point" for other in panel.marks)
    legend: dict[str, Any] | None = None
    if series.legend:
        legend = {"orient": series.legend, "symbolStrokeWidth": 0 if filled else 2}
        legend |= {} if series.highlighted == list(series.names) else {"values": series.highlighted}
    looks: dict[str, Sequence[Any]] = {"color": series.colours}
    looks |= {"shape": series.shapes} if mark.kind == "point" and series.shapes else {}
    looks |= {"strokeDash": series.dashes} if mark.kind == "line" and series.dashes and not mark.dash else {}
    for channel, values in looks.items():
        scale = {"domain": list(series.names), "range": list(values)}
        encoding[channel] = {"field": series.field, "type": "nominal", "scale": scale, "legend": legend}
    if not series.legend:
        return {"opacity": mark.opacity}
    picked = {"param": "pick", "value": mark.opacity}
    encoding["opacity"] = {"condition": picked, "value": 0.12 * mark.opacity}
    return {}


def _axis(axis: Axis, field: str, channel: str, *, dodge: bool) -> dict[str, Any]:
    """Return the encoding of a place; the titles of y axes are above the plot."""
    encoding: dict[str, Any] = {
        "field": field,
        "title": axis.title if channel == "x" and axis.title else None,
    }
    if axis.kind == "names":
        labels = {"labelExpr": r"split(datum.label, '\n')", "ticks": False, "domain": channel == "x"}
        x = {"labelAngle": 0, "labelOverlap": True}
        labels |= x if channel == "x" else {"labelLimit": 200, "labelPadding": 7}
        names = {"domain": list(axis.ticks)} | ({"paddingInner": 0.35} if dodge else {})
        return encoding | {"type": "nominal", "scale": names, "axis": labels}
    if axis.kind == "time":
        parts = ("year", "month", "day", "hour", "minute", "second")
        words = ("year", "month", "date", "hours", "minutes", "seconds")
        ends = [{w: getattr(end, part) for w, part in zip(words, parts, strict=True)} for end in axis.domain]
        labels = {"grid": axis.grid, "labelOverlap": True, "tickCount": 6}
        return encoding | {"type": "temporal", "scale": {"domain": ends, "nice": False}, "axis": labels}
    labels = {"values": list(axis.ticks), "format": axis.format, "grid": axis.grid, "labelOverlap": True,
              "labelExpr": "datum.value == 0 ? '0' : datum.label"}  # fmt: skip
    kind = "log" if axis.kind == "log" else "linear"
    scale = {"type": kind, "domain": list(axis.domain), "nice": False, "zero": False}
    shown = None if axis.kind == "none" else labels
    return encoding | {"type": "quantitative", "scale": scale, "axis": shown, "stack": None}


def _tip(name: str, form: str | None) -> dict[str, str]:
    tip = {"field": name, "title": name}
    if form is None:
        return tip
    return tip | {"format": form, "type": "temporal" if form.startswith("%") else "quantitative"}


def _plain(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows as JSON holds them: floats with six significant digits, enough for a picture at half the size."""

    def plain(value: Any) -> Any:
        if isinstance(value, float):
            return float(f"{value:.6g}")
        return value.isoformat() if isinstance(value, datetime) else value

    return [{name: plain(value) for name, value in row.items() if value is not None} for row in rows]
