"""Charts as Vega-Lite specifications: plain dictionaries that a report, a notebook or vl-convert draws.

Every function takes plain data and aggregates before it embeds: a chart of a million users holds as many
numbers as one of a hundred. The functions of `figures` have the same names and arguments.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from recsys.report import style
from recsys.report.charts.chart import (
    INK,
    LEVEL_LABELS,
    LOW_TO_HIGH,
    RULE,
    VALUE_TIPS,
    WITH_INTERVAL,
    Chart,
    chart_of,
    fade_unpicked,
    list_names,
    looks_encoding,
    name_axis,
    number_axis,
    ordered_scale,
    point_mark,
    round_floats,
    tooltip,
)

__all__ = [
    "Chart",
    "bars",
    "curve",
    "distribution",
    "duel",
    "embedding",
    "forest",
    "headtail",
    "heat",
    "history",
    "strata",
    "tradeoff",
    "winloss",
]


def bars(
    values: Mapping[str, Mapping[str, Any]], *, baseline: str | None = None, title: str = "value"
) -> Chart:
    """Models side by side, metric by metric."""
    rows = style.long_rows(values, "metric")
    names, metrics = list(values), [str(metric) for metric in style.keys_of(values)]
    across = {
        "x": name_axis("metric", metrics, **LEVEL_LABELS),
        "xOffset": {"field": "model", "scale": ordered_scale(names)},
    }
    bar = {
        "mark": {"type": "bar", "cornerRadiusEnd": 2},
        "encoding": {
            **across,
            "y": number_axis("value", title, zero=True),
            "color": looks_encoding(names, style.colours(names, baseline)),
            **fade_unpicked(),
            "tooltip": tooltip(("model", None), ("metric", None), *VALUE_TIPS),
        },
    }
    interval = {
        "transform": WITH_INTERVAL,
        "mark": {"type": "rule", "strokeWidth": 1.5, "color": INK},
        "encoding": {**across, **LOW_TO_HIGH},
    }
    return chart_of(rows, [bar, interval], f"{', '.join(metrics)} of {list_names(names)}.", pick=True)


def curve(values: Mapping[str, Mapping[int, Any]], *, metric: str = "", baseline: str | None = None) -> Chart:
    """A metric against the cut-off k, one line per model."""
    rows = style.long_rows(values, "k")
    names = list(values)
    cut_offs = sorted(style.keys_of(values))
    place = {
        "x": {
            "field": "k",
            "type": "quantitative",
            "title": "cut-off k",
            "axis": {"values": cut_offs, "grid": False},
            "scale": {
                "type": "log" if len(cut_offs) > 3 and cut_offs[0] > 0 else "linear",
                "nice": False,
                **({"domain": [cut_offs[0], cut_offs[-1]]} if len(cut_offs) > 1 else {}),
            },
        },
        "y": number_axis("value", metric or "value", zero=True),
        # The legend draws filled marks: a dashed line would break their outlines.
        "color": looks_encoding(names, style.colours(names, baseline), legend={"symbolStrokeWidth": 0}),
    }
    line = {
        "mark": {"type": "line", "strokeWidth": 2.2},
        "encoding": {**place, "strokeDash": looks_encoding(names, style.dashes(names)), **fade_unpicked()},
    }
    point = {
        "mark": point_mark(55),
        "encoding": {
            **place,
            "shape": looks_encoding(names, style.shapes(names)),
            **fade_unpicked(),
            "tooltip": tooltip(("model", None), ("k", "d"), *VALUE_TIPS),
        },
    }
    band = {
        "transform": WITH_INTERVAL,
        "mark": {"type": "area"},
        "encoding": {
            "x": place["x"],
            "y": number_axis("low", metric or "value", zero=True),
            "y2": {"field": "high"},
            "color": place["color"],
            **fade_unpicked(0.14, 0.02),
        },
    }
    layers: list[dict[str, Any]] = [band, line, point] if len(names) <= 5 else [line, point]
    ends = f"{cut_offs[0]} to {cut_offs[-1]}" if len(cut_offs) > 1 else "".join(map(str, cut_offs))
    return chart_of(rows, layers, f"{metric} at cut-offs {ends} of {list_names(names)}.", pick=True)


def tradeoff(
    points: Mapping[str, tuple[float, float]],
    *,
    x: str = "coverage",
    y: str = "accuracy",
    baseline: str | None = None,
) -> Chart:
    """One point per model: accuracy against coverage, or any two numbers."""
    names = list(points)
    rows = [
        {"model": str(n), "x": float(x), "y": float(y)}
        for n, (x, y) in points.items()
        if math.isfinite(x) and math.isfinite(y)
    ]
    padded = {"scale": {"zero": False, "padding": 26}}
    place = {"x": number_axis("x", x) | padded, "y": number_axis("y", y) | padded}
    point = {
        "mark": point_mark(130),
        "encoding": {
            **place,
            "color": looks_encoding(names, style.colours(names, baseline), legend=False),
            "shape": looks_encoding(names, style.shapes(names), legend=False),
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
    rows: list[dict[str, Any]] = [
        {"model": str(name), "from": edges[i], "to": edges[i + 1], "share": float(share)}
        for name, shares_of_model in shares.items()
        for i, share in enumerate(shares_of_model)
    ]
    # One more point per model, so that the last step has a width.
    rows += [
        {"model": str(n), "from": round(float(edges[-1]), 6), "share": round(float(s[-1]), 6)}
        for n, s in shares.items()
    ]
    line = {
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
        "encoding": {
            "x": number_axis("from", metric or "value"),
            "y": {**number_axis("share", "share of users", zero=True), "axis": {"format": "%"}},
            "color": looks_encoding(names, style.colours(names, baseline)),
            "strokeDash": looks_encoding(names, style.dashes(names)),
            **fade_unpicked(),
            "tooltip": tooltip(("model", None), ("from", ".3f"), ("to", ".3f"), ("share", ".1%")),
        },
    }
    return chart_of(rows, [line], f"How {metric} spreads over the users, for {list_names(names)}.", pick=True)


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
    rows = [
        r | {"group": str(r["group"]), "users": (sizes or {}).get(r["group"])}
        for r in style.long_rows(values, "group")
    ]
    groups = dict.fromkeys(map(str, style.keys_of(values)))
    across = {
        "x": name_axis("group", groups, title or None, **LEVEL_LABELS),
        "xOffset": {"field": "model", "scale": ordered_scale(names)},
    }
    colour = looks_encoding(names, style.colours(names, baseline))
    point = {
        "mark": point_mark(70),
        "encoding": {
            **across,
            "y": number_axis("value", metric or "value", zero=True),
            "color": colour,
            "shape": looks_encoding(names, style.shapes(names)),
            **fade_unpicked(),
            "tooltip": tooltip(("model", None), ("group", None), ("users", ",d"), *VALUE_TIPS),
        },
    }
    interval = {
        "transform": WITH_INTERVAL,
        "mark": {"type": "rule", "strokeWidth": 1.6},
        "encoding": {**across, **LOW_TO_HIGH, "color": colour, **fade_unpicked()},
    }
    says = f"{metric} by {title or 'group'} of {list_names(names)}."
    return chart_of(rows, [interval, point], says, pick=True)


def headtail(shares: Mapping[str, Mapping[str, float]], *, baseline: str | None = None) -> Chart:
    """What share of the places goes to popular and to rare items; one bar per row."""
    del baseline  # the other charts take it too; the rows here are not only models
    groups = style.keys_of(shares)
    rows = [
        {"who": str(label), "group": group, "share": float(share), "order": groups.index(group)}
        for label, shares_by_group in shares.items()
        for group, share in shares_by_group.items()
        if math.isfinite(share)
    ]
    says = f"Share of places by popularity of the item, for {list_names(shares)}."
    colours = style.steps(len(groups))
    return _stacked_bars(rows, list(shares), groups, colours, says=says, size=("share", ".1%"))


def winloss(counts: Mapping[str, tuple[int, int, int]], *, baseline: str | None = None) -> Chart:
    """Users won, tied and lost; one bar per row."""
    rows = [
        {"who": str(label), "group": outcome, "share": n / max(sum(row), 1), "users": int(n), "order": i}
        for label, row in counts.items()
        for i, (outcome, n) in enumerate(zip(style.OUTCOMES, row, strict=True))
    ]
    against = f" against {baseline}" if baseline else ""
    says = f"Share of users won, tied and lost{against}, for {list_names(counts)}."
    outcomes, colours = list(style.OUTCOMES), list(style.OUTCOMES.values())
    return _stacked_bars(rows, list(counts), outcomes, colours, says=says, size=("users", ",d"))


def _stacked_bars(
    rows: list[dict[str, Any]],
    labels: list[str],
    groups: list[str],
    colours: Sequence[str],
    *,
    says: str,
    size: tuple[str, str],
) -> Chart:
    """Bars of shares that add up to one; rows have who, group, share and order; `size` is for the tooltip."""
    layer = {
        "mark": {"type": "bar", "cornerRadius": 1},
        "encoding": {
            "y": name_axis("who", labels, labelLimit=200),
            "x": {
                "field": "share",
                "type": "quantitative",
                "title": None,
                "axis": {"format": "%", "tickCount": 5},
                "scale": {"domain": [0, 1]},
            },
            "color": {"field": "group", "type": "nominal", "scale": {"domain": groups, "range": colours}},
            "order": {"field": "order"},
            "tooltip": tooltip(("who", None), ("group", None), size),
        },
    }
    return chart_of(rows, [layer], says, height=28 * len(labels) + 4)


def forest(
    rows: Mapping[str, tuple[float, float, float]],
    *,
    unit: str = "",
    title: str = "",
    lower: Collection[str] = (),
) -> Chart:
    """Differences with their intervals around zero; `lower` names the rows where less is better."""
    points: list[dict[str, Any]] = []
    for label, row in rows.items():
        value, low, high = style.value_and_interval(row)
        side = style.interval_side(*row[1:], lower_is_better=label in lower)
        if math.isfinite(value):
            points.append({"label": str(label), "value": value, "low": low, "high": high, "side": side})
    form = "+.1%" if unit == "%" else "+.4f"
    x = {
        **number_axis("value", title or "difference", zero=True),
        "axis": {"format": "+.0%" if unit == "%" else "+.3~f", "tickCount": 6},
    }
    y = name_axis("label", rows, labelLimit=220)
    colour = {
        "field": "side",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": list(style.SIDES), "range": list(style.SIDES.values())},
    }
    tips = tooltip(("label", None), ("value", form), ("low", form), ("high", form))
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "rule", "color": RULE, "strokeDash": [4, 3]}, "encoding": {"x": {"datum": 0}}},
        {
            "mark": {"type": "rule", "strokeWidth": 2.4},
            "encoding": {
                "y": y,
                "x": {**x, "field": "low"},
                "x2": {"field": "high"},
                "color": colour,
                "tooltip": tips,
            },
        },
        {"mark": point_mark(85), "encoding": {"y": y, "x": x, "color": colour, "tooltip": tips}},
    ]
    says = f"{title or 'Difference'} with its interval, for {list_names(rows)}."
    return chart_of(points, layers, says, height=26 * len(rows) + 4)


def duel(
    baseline_values: Any,
    model_values: Any,
    *,
    names: tuple[str, str] = ("baseline", "model"),
    metric: str = "",
) -> Chart:
    """Win/loss map: users by their value under both models; above the diagonal the second one wins."""
    edges, counts = style.paired_histogram(baseline_values, model_values)
    rows = [
        {"x": edges[c], "x2": edges[c + 1], "y": edges[r], "y2": edges[r + 1], "users": int(counts[r, c])}
        for r, c in np.argwhere(counts > 0).tolist()
    ]
    ends = [float(edges[0]), float(edges[-1])]
    scale = {"scale": {"domain": ends, "nice": False}}
    cells = {
        "mark": {"type": "rect"},
        "encoding": {
            "x": {**number_axis("x", f"{metric} of {names[0]}"), **scale},
            "x2": {"field": "x2"},
            "y": {**number_axis("y", f"{metric} of {names[1]}"), **scale},
            "y2": {"field": "y2"},
            "color": {
                "field": "users",
                "type": "quantitative",
                "scale": {"type": "log", "range": list(style.RAMP)},
                "legend": {"title": "users", "gradientLength": 140, "orient": "bottom", "tickCount": 3},
            },
            "tooltip": [
                {"field": "x", "title": "across", "format": ".3f"},
                {"field": "y", "title": "up", "format": ".3f"},
                {"field": "users", "title": "users", "format": ",d"},
            ],
        },
    }
    diagonal = {
        "data": {"values": [{"a": ends[0]}, {"a": ends[1]}]},
        "mark": {"type": "line", "color": INK, "strokeDash": [4, 3], "strokeWidth": 1.2},
        "encoding": {
            "x": {"field": "a", "type": "quantitative"},
            "y": {"field": "a", "type": "quantitative"},
        },
    }
    says = f"Users by {metric}, {names[0]} across and {names[1]} up; above the diagonal {names[1]} wins."
    return chart_of(rows, [cells, diagonal], says, height=340)


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
    rows = [
        {
            "x": float(f"{x:.4g}"),
            "y": float(f"{y:.4g}"),
            **({"group": group_names[i]} if groups is not None else {}),
            "item": str(labels[i]) if labels is not None else str(i),
            **({} if sizes is None else {"size": float(f"{sizes[i]:.3g}")}),
        }
        for i, (x, y) in enumerate(places.tolist())
    ]
    kinds = list(dict.fromkeys(group_names))
    grouped = kinds != [""]
    no_axis = {"type": "quantitative", "axis": None, "scale": {"zero": False, "nice": True}}
    encoding: dict[str, Any] = {"x": {"field": "x", **no_axis}, "y": {"field": "y", **no_axis}}
    if grouped:
        encoding |= {
            "tooltip": tooltip(("item", None), ("group", None)),
            **fade_unpicked(0.75, 0.06),
            "color": looks_encoding(kinds, style.colours(kinds), field="group"),
            "shape": looks_encoding(kinds, style.shapes(kinds), field="group"),
        }
    else:
        encoding |= {
            "tooltip": tooltip(("item", None)),
            "opacity": {"value": 0.75},
            "color": {"value": style.COLOURS[0]},
        }
    if sizes is not None:
        size = {"field": "size", "type": "quantitative", "legend": None, "scale": {"range": [14, 160]}}
        encoding["size"] = size
    layer = {"mark": {"type": "point", "filled": True, "size": 34}, "encoding": encoding}
    says = title or f"{len(rows):,} items placed by their embeddings"
    return chart_of(rows, [layer], f"{says}.", height=400, pick=grouped, field="group")


def history(
    rows: Mapping[str, Sequence[tuple[Any, Any]]], *, metric: str = "", changes: Sequence[Any] = ()
) -> Chart:
    """A metric over time, with its interval; changes are marked."""
    names = list(rows)
    points = [
        {"model": str(name), "when": style.iso_time(when)} | style.value_fields(value)
        for name, values in rows.items()
        for when, value in values
        if math.isfinite(style.value_and_interval(value)[0])
    ]
    x = {"field": "when", "type": "temporal", "title": None, "axis": {"grid": False, "labelOverlap": True}}
    y = number_axis("value", metric or "value")
    colour = looks_encoding(names, style.colours(names))
    dash, shape = looks_encoding(names, style.dashes(names)), looks_encoding(names, style.shapes(names))
    tips = tooltip(("model", None), *VALUE_TIPS)
    tips.insert(0, {"field": "when", "type": "temporal", "title": "when", "format": "%Y-%m-%d %H:%M"})
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": [{"at": style.iso_time(c)} for c in changes]},
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
            "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash},
        },
        {
            "mark": point_mark(45),
            "encoding": {"x": x, "y": y, "color": colour, "shape": shape, "tooltip": tips},
        },
    ]
    return chart_of(points, layers if changes else layers[1:], f"{metric} over time of {list_names(names)}.")


def heat(values: Mapping[str, Mapping[str, Any]], *, title: str = "") -> Chart:
    """A table as a heat map, its numbers written in the cells."""
    rows = round_floats(style.long_rows(values, "column", "row"))
    columns = style.keys_of(values)
    decimals = style.heat_decimals([r["value"] for r in rows])
    place = {"x": name_axis("column", columns, **LEVEL_LABELS), "y": name_axis("row", values)}
    ramp = {"field": "value", "type": "quantitative", "legend": None, "scale": {"range": list(style.RAMP)}}
    dark = f"datum.value > {style.dark_threshold([r['value'] for r in rows])!r}"
    layers: list[dict[str, Any]] = [
        {"mark": "rect", "encoding": {**place, "color": ramp}},
        {
            "mark": {"type": "text", "fontSize": 12},
            "encoding": {
                **place,
                "text": {"field": "value", "format": f".{decimals}f"},
                "color": {"condition": {"test": dark, "value": "white"}, "value": "#111827"},
            },
        },
    ]
    says = f"{title or 'Values'} of {list_names(values)}."
    return chart_of(rows, layers, says, height=30 * len(values) + 4)


def __dir__() -> list[str]:
    return __all__
