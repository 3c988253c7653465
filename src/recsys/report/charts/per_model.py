"""Charts with one mark or line a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recsys.report import style
from recsys.report.charts.chart import (
    INK,
    WITH_INTERVAL,
    Chart,
    by_colour,
    by_dash,
    by_shape,
    chart_of,
    from_to,
    in_order,
    number,
    picked,
    rounded,
    several,
    tooltip,
)


def bars(
    values: Mapping[str, Mapping[str, Any]], *, baseline: str | None = None, title: str = "value"
) -> Chart:
    """Models side by side, metric by metric."""
    rows = style.flat(values, "metric")
    names, metrics = list(values), list(dict.fromkeys(r["metric"] for r in rows))
    across = {
        "x": {
            "field": "metric",
            "type": "nominal",
            "scale": in_order(metrics),
            "title": None,
            "axis": {"labelAngle": 0, "labelOverlap": True},
        },
        "xOffset": {"field": "model", "scale": in_order(names)},
    }
    bar = {
        "mark": {"type": "bar", "cornerRadiusEnd": 2},
        "encoding": {
            **across,
            "y": number("value", title, zero=True),
            "color": by_colour(names, baseline),
            **picked(),
            "tooltip": tooltip(
                ("model", None), ("metric", None), ("value", ".4f"), ("low", ".4f"), ("high", ".4f")
            ),
        },
    }
    reach = {
        "transform": WITH_INTERVAL,
        "mark": {"type": "rule", "strokeWidth": 1.5, "color": INK},
        "encoding": {**across, "y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}},
    }
    return chart_of(rows, [bar, reach], f"{', '.join(metrics)} of {several(names)}.", pick=True)


def curve(values: Mapping[str, Mapping[int, Any]], *, metric: str = "", baseline: str | None = None) -> Chart:
    """A metric against the cut-off k, a line a model."""
    rows = style.flat(values, "k")
    names = list(values)
    places = sorted({r["k"] for r in rows})
    x = {
        "field": "k",
        "type": "quantitative",
        "title": "cut-off k",
        "axis": {"values": places, "grid": False},
        "scale": {"type": "log" if len(places) > 3 and places[0] > 0 else "linear", "nice": False},
    }
    # Marks of the legend are filled: the dash of a line would tear their outlines.
    colour = by_colour(names, baseline, marks={"symbolStrokeWidth": 0})
    line = {
        "mark": {"type": "line", "strokeWidth": 2.2},
        "encoding": {
            "x": x,
            "y": number("value", metric or "value", zero=True),
            "color": colour,
            "strokeDash": by_dash(names),
            **picked(),
        },
    }
    point = {
        "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
        "encoding": {
            "x": x,
            "y": number("value", metric or "value", zero=True),
            "color": colour,
            "shape": by_shape(names),
            **picked(),
            "tooltip": tooltip(
                ("model", None), ("k", "d"), ("value", ".4f"), ("low", ".4f"), ("high", ".4f")
            ),
        },
    }
    band = {
        "transform": WITH_INTERVAL,
        "mark": {"type": "area"},
        "encoding": {
            "x": x,
            "y": number("low", metric or "value", zero=True),
            "y2": {"field": "high"},
            "color": colour,
            **picked(0.14, 0.02),
        },
    }
    layers: list[dict[str, Any]] = [band, line, point] if len(names) <= 5 else [line, point]
    return chart_of(rows, layers, f"{metric} at cut-offs {from_to(places)} of {several(names)}.", pick=True)


def tradeoff(
    points: Mapping[str, tuple[float, float]],
    *,
    x: str = "coverage",
    y: str = "accuracy",
    baseline: str | None = None,
) -> Chart:
    """One point a model: accuracy against coverage, or any two numbers."""
    names = list(points)
    rows = [{"model": str(n), "x": float(p[0]), "y": float(p[1])} for n, p in points.items()]
    room = {"scale": {"zero": False, "padding": 26}}
    place = {"x": number("x", x) | room, "y": number("y", y) | room}
    point = {
        "mark": {"type": "point", "filled": True, "size": 130, "opacity": 1},
        "encoding": {
            **place,
            "color": by_colour(names, baseline, legend=False),
            "shape": by_shape(names, legend=False),
            "tooltip": [
                {"field": "model", "title": "model"},
                {"field": "x", "title": "across", "format": ".4f"},
                {"field": "y", "title": "up", "format": ".4f"},
            ],
        },
    }
    label = {
        "mark": {"type": "text", "dy": -13, "fontSize": 12, "color": INK, "limit": 130},
        "encoding": {**place, "text": {"field": "model"}},
    }
    return chart_of(rows, [point, label], f"{y} against {x} of {several(names)}.", height=300)


def distribution(values: Mapping[str, Any], *, metric: str = "", baseline: str | None = None) -> Chart:
    """How a metric spreads over users: share of users in each bin, a stepped line a model."""
    edges, shares = style.binned(values)
    names = list(values)
    rows = [
        {"model": str(name), "from": edges[i], "to": edges[i + 1], "share": float(share)}
        for name, held in shares.items()
        for i, share in enumerate([*held, held[-1] if len(held) else 0.0])
        if i < len(held)
    ]
    rows = rounded(rows)
    tail = [
        {"model": str(n), "from": round(float(edges[-1]), 6), "share": round(float(s[-1]), 6)}
        for n, s in shares.items()
    ]
    line = {
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
        "encoding": {
            "x": number("from", metric or "value", zero=False),
            "y": {**number("share", "share of users", zero=True), "axis": {"format": "%"}},
            "color": by_colour(names, baseline),
            "strokeDash": by_dash(names),
            **picked(),
            "tooltip": tooltip(("model", None), ("from", ".3f"), ("to", ".3f"), ("share", ".1%")),
        },
    }
    return chart_of(
        [*rows, *tail], [line], f"How {metric} spreads over the users, for {several(names)}.", pick=True
    )


def strata(
    values: Mapping[str, Mapping[str, Any]],
    *,
    metric: str = "",
    sizes: Mapping[str, int] | None = None,
    title: str = "",
    baseline: str | None = None,
) -> Chart:
    """A metric by group of users, a point with its interval for each model."""
    names = list(values)
    rows = style.flat(values, "group")
    groups = list(dict.fromkeys(str(g) for held in values.values() for g in held))
    rows = [r | {"group": str(r["group"]), "users": (sizes or {}).get(r["group"])} for r in rows]
    across = {
        "x": {
            "field": "group",
            "type": "nominal",
            "scale": in_order(groups),
            "title": title or None,
            "axis": {"labelAngle": 0, "labelOverlap": True},
        },
        "xOffset": {"field": "model", "scale": in_order(names)},
    }
    point = {
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
        "encoding": {
            **across,
            "y": number("value", metric or "value", zero=True),
            "color": by_colour(names, baseline),
            "shape": by_shape(names),
            **picked(),
            "tooltip": tooltip(
                ("model", None),
                ("group", None),
                ("users", ",d"),
                ("value", ".4f"),
                ("low", ".4f"),
                ("high", ".4f"),
            ),
        },
    }
    reach = {
        "transform": WITH_INTERVAL,
        "mark": {"type": "rule", "strokeWidth": 1.6},
        "encoding": {
            **across,
            "y": {"field": "low", "type": "quantitative"},
            "y2": {"field": "high"},
            "color": by_colour(names, baseline),
            **picked(),
        },
    }
    return chart_of(rows, [reach, point], f"{metric} by {title or 'group'} of {several(names)}.", pick=True)
