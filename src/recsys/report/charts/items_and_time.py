"""Charts over something else than models: items in the plane, nights, tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recsys.report import style
from recsys.report.charts.chart import (
    WITH_INTERVAL,
    Chart,
    by_colour,
    by_dash,
    by_shape,
    chart_of,
    in_order,
    moment,
    number,
    parts,
    picked,
    rounded,
    several,
    tooltip,
)


def embedding(
    coordinates: Any,
    *,
    labels: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    sizes: Sequence[float] | None = None,
    title: str = "",
) -> Chart:
    """Items where their embeddings put them, in two dimensions."""
    places = style.points(coordinates)
    named = [str(g) for g in groups] if groups is not None else [""] * len(places)
    rows = rounded(
        {
            "x": float(f"{x:.4g}"),
            "y": float(f"{y:.4g}"),
            **({"group": named[i]} if groups is not None else {}),
            "item": str(labels[i]) if labels is not None else str(i),
            **({} if sizes is None else {"size": float(f"{sizes[i]:.3g}")}),
        }
        for i, (x, y) in enumerate(places.tolist())
    )
    bare = {"axis": None, "scale": {"zero": False, "nice": True}}
    kinds = list(dict.fromkeys(named))
    encoding: dict[str, Any] = {
        "x": {"field": "x", "type": "quantitative", **bare},
        "y": {"field": "y", "type": "quantitative", **bare},
        "tooltip": [
            {"field": "item", "title": "item"},
            *([{"field": "group", "title": "group"}] if kinds != [""] else []),
        ],
        **picked(0.75, 0.06),
    }
    encoding["color"] = (
        {"value": style.COLOURS[0]} if kinds == [""] else by_colour(kinds, None, field="group")
    )
    if kinds != [""]:
        encoding["shape"] = by_shape(kinds, field="group")
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
    held = [
        {"model": str(name), "when": moment(when)} | parts(value)
        for name, several in rows.items()
        for when, value in several
    ]
    x = {"field": "when", "type": "temporal", "title": None, "axis": {"grid": False, "labelOverlap": True}}
    y = number("value", metric or "value", zero=False)
    colour = by_colour(names, None)
    tips = tooltip(("model", None), ("value", ".4f"), ("low", ".4f"), ("high", ".4f"))
    tips.insert(0, {"field": "when", "type": "temporal", "title": "when", "format": "%Y-%m-%d %H:%M"})
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": [{"at": moment(c)} for c in changes]},
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
            "encoding": {"x": x, "y": y, "color": colour, "strokeDash": by_dash(names)},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": colour, "shape": by_shape(names), "tooltip": tips},
        },
    ]
    return chart_of(held, layers if changes else layers[1:], f"{metric} over time of {several(names)}.")


def heat(values: Mapping[str, Mapping[str, Any]], *, title: str = "") -> Chart:
    """A table as a heat map, its numbers written in the cells."""
    rows = rounded(style.flat(values, "column", "row"))
    across = list(dict.fromkeys(r["column"] for r in rows))
    place = {
        "x": {
            "field": "column",
            "type": "nominal",
            "scale": in_order(across),
            "title": None,
            "axis": {"labelAngle": 0, "labelOverlap": True},
        },
        "y": {"field": "row", "type": "nominal", "scale": in_order(values), "title": None},
    }
    dark = f"datum.value > {style.dark_from([r['value'] for r in rows])!r}"
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
        rows, layers, f"{title or 'Values'} of {several(list(values))}.", height=30 * len(values) + 4
    )
