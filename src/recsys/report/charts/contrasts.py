"""Charts of one side against another: differences, wins and losses, popular and rare items."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from recsys.report import style
from recsys.report.charts.chart import (
    INK,
    RULE,
    Chart,
    chart_of,
    list_names,
    number_axis,
    ordered_scale,
    round_floats,
    stacked_bars,
    tooltip,
)


def headtail(shares: Mapping[str, Mapping[str, float]], *, baseline: str | None = None) -> Chart:
    """What share of the places goes to popular and to rare items; one bar per row."""
    del baseline  # the other charts take it too; the rows here are not only models
    groups = list(dict.fromkeys(group for row in shares.values() for group in row))
    rows = [
        {"who": str(label), "group": group, "share": float(share), "order": groups.index(group)}
        for label, shares_by_group in shares.items()
        for group, share in shares_by_group.items()
    ]
    return stacked_bars(
        round_floats(rows),
        list(shares),
        groups,
        list(style.STEPS[: len(groups)]),
        says=f"Share of places by popularity of the item, for {list_names(list(shares))}.",
        field="share",
        form=".1%",
    )


def winloss(counts: Mapping[str, tuple[int, int, int]], *, baseline: str | None = None) -> Chart:
    """Users won, tied and lost; one bar per row."""
    outcomes = ("won", "tied", "lost")
    rows = [
        {"who": str(label), "group": outcome, "share": n / max(sum(row), 1), "users": int(n), "order": i}
        for label, row in counts.items()
        for i, (outcome, n) in enumerate(zip(outcomes, row, strict=True))
    ]
    against = f" against {baseline}" if baseline else ""
    return stacked_bars(
        round_floats(rows),
        list(counts),
        list(outcomes),
        [style.BETTER, style.SAME, style.WORSE],
        says=f"Share of users won, tied and lost{against}, for {list_names(list(counts))}.",
        field="users",
        form=",d",
    )


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
        side = style.interval_side(low, high, lower_is_better=label in lower)
        if math.isfinite(value):
            points.append({"label": str(label), "value": value, "low": low, "high": high, "side": side})
    form = ".1%" if unit == "%" else ".4f"
    y = {
        "field": "label",
        "type": "nominal",
        "scale": ordered_scale(rows),
        "title": None,
        "axis": {"labelLimit": 220},
    }
    axis = {"format": "+.0%" if unit == "%" else "+.3~f", "tickCount": 6}
    colour = {
        "field": "side",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": list(style.SIDES), "range": list(style.SIDES.values())},
    }
    tips = tooltip(("label", None), ("value", f"+{form}"), ("low", f"+{form}"), ("high", f"+{form}"))
    x = {**number_axis("value", title or "difference", zero=True), "axis": axis}
    layers = [
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
        {
            "mark": {"type": "point", "filled": True, "size": 85, "opacity": 1},
            "encoding": {"y": y, "x": x, "color": colour, "tooltip": tips},
        },
    ]
    return chart_of(
        round_floats(points),
        layers,
        f"{title or 'Difference'} with its interval, for {list_names(list(rows))}.",
        height=26 * len(points) + 4,
    )


def duel(
    baseline_values: Any,
    model_values: Any,
    *,
    names: tuple[str, str] = ("baseline", "model"),
    metric: str = "",
) -> Chart:
    """Win/loss map: users by their value under both models; above the diagonal the second one wins."""
    edges, counts = style.paired_histogram(baseline_values, model_values)
    occupied = np.argwhere(counts > 0)
    rows = round_floats(
        {"x": edges[c], "x2": edges[c + 1], "y": edges[r], "y2": edges[r + 1], "users": int(counts[r, c])}
        for r, c in occupied.tolist()
    )
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
