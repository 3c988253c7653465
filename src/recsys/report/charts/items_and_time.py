"""Charts of items in the plane, of metrics over time, and of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recsys.report import style
from recsys.report.charts.chart import (
    WITH_INTERVAL,
    Chart,
    chart_of,
    colour_encoding,
    dash_encoding,
    fade_unpicked,
    iso_time,
    list_names,
    number_axis,
    ordered_scale,
    round_floats,
    shape_encoding,
    tooltip,
    value_fields,
)


def embedding(
    coordinates: Any,
    *,
    labels: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    sizes: Sequence[float] | None = None,
    title: str = "",
) -> Chart:
    """Items by the coordinates of their embeddings, in two dimensions."""
    places = style.points(coordinates)
    group_names = [str(g) for g in groups] if groups is not None else [""] * len(places)
    rows = round_floats(
        {
            "x": float(f"{x:.4g}"),
            "y": float(f"{y:.4g}"),
            **({"group": group_names[i]} if groups is not None else {}),
            "item": str(labels[i]) if labels is not None else str(i),
            **({} if sizes is None else {"size": float(f"{sizes[i]:.3g}")}),
        }
        for i, (x, y) in enumerate(places.tolist())
    )
    no_axis = {"axis": None, "scale": {"zero": False, "nice": True}}
    kinds = list(dict.fromkeys(group_names))
    encoding: dict[str, Any] = {
        "x": {"field": "x", "type": "quantitative", **no_axis},
        "y": {"field": "y", "type": "quantitative", **no_axis},
        "tooltip": [
            {"field": "item", "title": "item"},
            *([{"field": "group", "title": "group"}] if kinds != [""] else []),
        ],
        **fade_unpicked(0.75, 0.06),
    }
    encoding["color"] = (
        {"value": style.COLOURS[0]} if kinds == [""] else colour_encoding(kinds, None, field="group")
    )
    if kinds != [""]:
        encoding["shape"] = shape_encoding(kinds, field="group")
    if sizes is not None:
        encoding["size"] = {
            "field": "size",
            "type": "quantitative",
            "legend": None,
            "scale": {"range": [14, 160]},
        }
    layer = {"mark": {"type": "point", "filled": True, "size": 34}, "encoding": encoding}
    says = title or f"{len(rows):,} items placed by their embeddings"
    return chart_of(rows, [layer], f"{says}.", height=400, pick=kinds != [""], field="group")


def history(
    rows: Mapping[str, Sequence[tuple[Any, Any]]], *, metric: str = "", changes: Sequence[Any] = ()
) -> Chart:
    """A metric over time, with its interval; changes are marked."""
    names = list(rows)
    points = [
        {"model": str(name), "when": iso_time(when)} | value_fields(value)
        for name, values in rows.items()
        for when, value in values
    ]
    x = {"field": "when", "type": "temporal", "title": None, "axis": {"grid": False, "labelOverlap": True}}
    y = number_axis("value", metric or "value", zero=False)
    colour = colour_encoding(names, None)
    tips = tooltip(("model", None), ("value", ".4f"), ("low", ".4f"), ("high", ".4f"))
    tips.insert(0, {"field": "when", "type": "temporal", "title": "when", "format": "%Y-%m-%d %H:%M"})
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": [{"at": iso_time(c)} for c in changes]},
            "mark": {"type": "rule", "color": style.WORSE, "strokeDash": [5, 4], "strokeWidth": 1.6},
            "encoding": {"x": {"field": "at", "type": "temporal"}},
        },
        {
            "transform": WITH_INTERVAL,
            "mark": {"type": "area", "opacity": 0.14},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
        },
        {
            "mark": {"type": "line", "strokeWidth": 2},
            "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash_encoding(names)},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": colour, "shape": shape_encoding(names), "tooltip": tips},
        },
    ]
    return chart_of(points, layers if changes else layers[1:], f"{metric} over time of {list_names(names)}.")


def heat(values: Mapping[str, Mapping[str, Any]], *, title: str = "") -> Chart:
    """A table as a heat map, its numbers written in the cells."""
    rows = round_floats(style.long_rows(values, "column", "row"))
    columns = list(dict.fromkeys(r["column"] for r in rows))
    place = {
        "x": {
            "field": "column",
            "type": "nominal",
            "scale": ordered_scale(columns),
            "title": None,
            "axis": {"labelAngle": 0, "labelOverlap": True},
        },
        "y": {"field": "row", "type": "nominal", "scale": ordered_scale(values), "title": None},
    }
    dark = f"datum.value > {style.dark_threshold([r['value'] for r in rows])!r}"
    layers: list[dict[str, Any]] = [
        {
            "mark": "rect",
            "encoding": {
                **place,
                "color": {
                    "field": "value",
                    "type": "quantitative",
                    "legend": None,
                    "scale": {"range": list(style.RAMP)},
                },
            },
        },
        {
            "mark": {"type": "text", "fontSize": 12},
            "encoding": {
                **place,
                "text": {"field": "value", "format": ".3f"},
                "color": {"condition": {"test": dark, "value": "white"}, "value": "#111827"},
            },
        },
    ]
    return chart_of(
        rows, layers, f"{title or 'Values'} of {list_names(list(values))}.", height=30 * len(values) + 4
    )
