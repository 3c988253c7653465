"""What all Vega-Lite charts share: the Chart class, the configuration, and common encodings.

Field names are ours and names of models are only data, so none is read as an expression.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recsys.errors import InputError, MissingExtraError

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
LOW_TO_HIGH = {"y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}}
VALUE_TIPS = (("value", ".4f"), ("low", ".4f"), ("high", ".4f"))
LEVEL_LABELS: dict[str, Any] = {"labelAngle": 0, "labelOverlap": True}
# Members of every JavaScript object.
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
        if kind == ".json":
            content = self.to_json().encode()
        elif kind == ".html":
            from recsys.report.page import chart_page

            content = chart_page(self).encode()
        else:
            vl, spec = vl_convert(), {**self.spec, "background": "white"}
            if kind == ".svg":
                content = str(vl.vegalite_to_svg(spec, allowed_base_urls=[])).encode()
            elif kind == ".pdf":
                content = bytes(vl.vegalite_to_pdf(spec, allowed_base_urls=[]))
            else:
                content = bytes(vl.vegalite_to_png(spec, scale=scale, allowed_base_urls=[]))
        write_bytes(target, content)
        return target


def vl_convert() -> Any:
    """The package that carries the Vega scripts and draws without a browser."""
    try:
        import vl_convert as vl
    except ImportError as error:
        raise MissingExtraError("vl-convert-python", "report", "Drawing a chart") from error
    return vl


def chart_of(
    rows: Iterable[Mapping[str, Any]],
    layers: list[dict[str, Any]],
    says: str,
    *,
    height: int = 260,
    pick: bool = False,
    field: str = "model",
) -> Chart:
    """A chart of layers over rows; with `pick`, a click on the legend highlights a value of `field`."""
    values = round_floats(rows)
    if not any("low" in row for row in values):
        layers = [layer for layer in layers if layer.get("transform") != WITH_INTERVAL]
    if pick:
        selection = {"name": "pick", "select": {"type": "point", "fields": [field]}, "bind": "legend"}
        layers = [{**layers[0], "params": [selection]}, *layers[1:]]
    spec = {
        "$schema": SCHEMA,
        "description": says,
        "width": 560,
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": values},
        "layer": layers,
        "config": _CONFIG,
    }
    # Names that Vega cannot handle become others that look the same. Its expression parser refuses U+2028 and
    # U+2029 inside quotes: they become spaces. A member of every JavaScript object (constructor) is taken for
    # a known name: a zero-width space is added.
    text = json.dumps(spec, ensure_ascii=False).translate({0x2028: " ", 0x2029: " "})
    return Chart(json.loads(_JAVASCRIPT_MEMBERS.sub('"\\1\u200b"', text)), says)


def round_floats(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows with floats at six significant digits: enough for a picture, at half the size."""
    return [
        {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in row.items()}
        for row in rows
    ]


def number_axis(field: str, title: str, *, zero: bool = False) -> dict[str, Any]:
    """A quantitative axis."""
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"zero": zero},
        "axis": {"tickCount": 6},
    }


def name_axis(field: str, names: Iterable[Any], title: str | None = None, **axis: Any) -> dict[str, Any]:
    """An axis of names in their order; `axis` has the settings of its labels."""
    encoding = {"field": field, "type": "nominal", "scale": ordered_scale(names), "title": title}
    return encoding | ({"axis": axis} if axis else {})


def ordered_scale(names: Iterable[Any]) -> dict[str, Any]:
    """A scale that keeps the order of the names."""
    return {"domain": [str(name) for name in names]}


def looks_encoding(
    names: Sequence[str], looks: Sequence[Any], *, field: str = "model", legend: Any = True
) -> dict[str, Any]:
    """A colour, shape or dash pattern for each name.

    Args:
        names: of models or groups; a single one has no legend.
        looks: the colours, shapes or dash patterns, one per name.
        field: the field that holds the name.
        legend: whether there is a legend, or its settings.
    """
    scale = {"domain": [str(name) for name in names], "range": looks}
    encoding: dict[str, Any] = {"field": field, "type": "nominal", "scale": scale}
    if len(names) < 2 or legend is False:
        return encoding | {"legend": None}
    return encoding if legend is True else encoding | {"legend": legend}


def fade_unpicked(full: float = 1.0, faded: float = 0.12) -> dict[str, Any]:
    """Opacity: full where the selection of the legend holds, faded elsewhere."""
    return {"opacity": {"condition": {"param": "pick", "value": full}, "value": faded}}


def point_mark(size: int) -> dict[str, Any]:
    """A filled mark."""
    return {"type": "point", "filled": True, "size": size, "opacity": 1}


def tooltip(*fields: tuple[str, str | None]) -> list[dict[str, Any]]:
    """The fields a tooltip shows, with their formats."""
    return [{"field": name, "title": name, **({"format": form} if form else {})} for name, form in fields]


def list_names(names: Iterable[str]) -> str:
    """The first four names, and how many more there are."""
    texts = [str(name) for name in names]
    return ", ".join(texts[:4]) + (f" and {len(texts) - 4} more" if len(texts) > 4 else "")
