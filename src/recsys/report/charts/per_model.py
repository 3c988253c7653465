"""Charts with one mark or line per model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recsys.report import style
from recsys.report.charts.chart import (
    INK,
    WITH_INTERVAL,
    Chart,
    chart_of,
    colour_encoding,
    dash_encoding,
    fade_unpicked,
    format_range,
    list_names,
    number_axis,
    ordered_scale,
    round_floats,
    shape_encoding,
    tooltip,
)


def bars(
    values: Mapping[str, Mapping[str, Any]], *, baseline: str | None = None, title: str = "value"
) -> Chart:
    """Models side by side, metric by metric."""
    rows = style.long_rows(values, "metric")
    names, metrics = list(values), list(dict.fromkeys(r["metric"] for r in rows))
    across = {
        "x": {
            "field": "metric",
            "type": "nominal",
            "scale": ordered_scale(metrics),
            "title": None,
            "axis": {"labelAngle": 0, "labelOverlap": True},
        },
        "xOffset": {"field": "model", "scale": ordered_scale(names)},
    }
    bar = {
        "mark": {"type": "bar", "cornerRadiusEnd": 2},
        "encoding": {
            **across,
            "y": number_axis("value", title, zero=True),
            "color": colour_encoding(names, baseline),
            **fade_unpicked(),
            "tooltip": tooltip(
                ("model", None), ("metric", None), ("value", ".4f"), ("low", ".4f"), ("high", ".4f")
            ),
        },
    }
    interval = {
        "transform": WITH_INTERVAL,
        "mark": {"type": "rule", "strokeWidth": 1.5, "color": INK},
        "encoding": {**across, "y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}},
    }
    return chart_of(rows, [bar, interval], f"{', '.join(metrics)} of {list_names(names)}.", pick=True)


def curve(values: Mapping[str, Mapping[int, Any]], *, metric: str = "", baseline: str | None = None) -> Chart:
    """A metric against the cut-off k, one line per model."""
    rows = style.long_rows(values, "k")
    names = list(values)
    cut_offs = sorted({r["k"] for r in rows})
    x = {
        "field": "k",
        "type": "quantitative",
        "title": "cut-off k",
        "axis": {"values": cut_offs, "grid": False},
        "scale": {"type": "log" if len(cut_offs) > 3 and cut_offs[0] > 0 else "linear", "nice": False},
    }
    # The legend draws filled marks: a dashed line would break their outlines.
    colour = colour_encoding(names, baseline, marks={"symbolStrokeWidth": 0})
    line = {
        "mark": {"type": "line", "strokeWidth": 2.2},
        "encoding": {
            "x": x,
            "y": number_axis("value", metric or "value", zero=True),
            "color": colour,
            "strokeDash": dash_encoding(names),
            **fade_unpicked(),
        },
    }
    point = {
        "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
        "encoding": {
            "x": x,
            "y": number_axis("value", metric or "value", zero=True),
            "color": colour,
            "shape": shape_encoding(names),
            **fade_unpicked(),
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
            "y": number_axis("low", metric or "value", zero=True),
            "y2": {"field": "high"},
            "color": colour,
            **fade_unpicked(0.14, 0.02),
        },
    }
    layers: list[dict[str, Any]] = [band, line, point] if len(names) <= 5 else [line, point]
    return chart_of(
        rows, layers, f"{metric} at cut-offs {format_range(cut_offs)} of {list_names(names)}.", pick=True
    )


def tradeoff(
    points: Mapping[str, tuple[float, float]],
    *,
    x: str = "coverage",
    y: str = "accuracy",
    baseline: str | None = None,
) -> Chart:
    """One point per model: accuracy against coverage, or any two numbers."""
    names = list(points)
    rows = [{"model": str(n), "x": float(p[0]), "y": float(p[1])} for n, p in points.items()]
    padded = {"scale": {"zero": False, "padding": 26}}
    place = {"x": number_axis("x", x) | padded, "y": number_axis("y", y) | padded}
    point = {
        "mark": {"type": "point", "filled": True, "size": 130, "opacity": 1},
        "encoding": {
            **place,
            "color": colour_encoding(names, baseline, legend=False),
            "shape": shape_encoding(names, legend=False),
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
    return chart_of(rows, [point, label], f"{y} against {x} of {list_names(names)}.", height=300)


def distribution(values: Mapping[str, Any], *, metric: str = "", baseline: str | None = None) -> Chart:
    """How a metric spreads over users: share of users in each bin, one stepped line per model."""
    edges, shares = style.histograms(values)
    names = list(values)
    rows = [
        {"model": str(name), "from": edges[i], "to": edges[i + 1], "share": float(share)}
        for name, shares_of_model in shares.items()
        for i, share in enumerate(shares_of_model)
    ]
    # One more point per model, so that the last step has a width.
    last_edges = [
        {"model": str(n), "from": round(float(edges[-1]), 6), "share": round(float(s[-1]), 6)}
        for n, s in shares.items()
    ]
    line = {
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
        "encoding": {
            "x": number_axis("from", metric or "value", zero=False),
            "y": {**number_axis("share", "share of users", zero=True), "axis": {"format": "%"}},
            "color": colour_encoding(names, baseline),
            "strokeDash": dash_encoding(names),
            **fade_unpicked(),
            "tooltip": tooltip(("model", None), ("from", ".3f"), ("to", ".3f"), ("share", ".1%")),
        },
    }
    return chart_of(
        [*round_floats(rows), *last_edges],
        [line],
        f"How {metric} spreads over the users, for {list_names(names)}.",
        pick=True,
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
    rows = style.long_rows(values, "group")
    groups = list(dict.fromkeys(str(group) for row in values.values() for group in row))
    rows = [r | {"group": str(r["group"]), "users": (sizes or {}).get(r["group"])} for r in rows]
    across = {
        "x": {
            "field": "group",
            "type": "nominal",
            "scale": ordered_scale(groups),
            "title": title or None,
            "axis": {"labelAngle": 0, "labelOverlap": True},
        },
        "xOffset": {"field": "model", "scale": ordered_scale(names)},
    }
    point = {
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
        "encoding": {
            **across,
            "y": number_axis("value", metric or "value", zero=True),
            "color": colour_encoding(names, baseline),
            "shape": shape_encoding(names),
            **fade_unpicked(),
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
    interval = {
        "transform": WITH_INTERVAL,
        "mark": {"type": "rule", "strokeWidth": 1.6},
        "encoding": {
            **across,
            "y": {"field": "low", "type": "quantitative"},
            "y2": {"field": "high"},
            "color": colour_encoding(names, baseline),
            **fade_unpicked(),
        },
    }
    return chart_of(
        rows, [interval, point], f"{metric} by {title or 'group'} of {list_names(names)}.", pick=True
    )
