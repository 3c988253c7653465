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
    in_order,
    number,
    rounded,
    several,
    stacked,
    tooltip,
)


def headtail(shares: Mapping[str, Mapping[str, float]], *, baseline: str | None = None) -> Chart:
    """What share of the places goes to popular and to rare items; one bar a row."""
    del baseline  # the same arguments as the others; rows here are not only models
    groups = list(dict.fromkeys(g for held in shares.values() for g in held))
    rows = [
        {"who": str(w), "group": g, "share": float(s), "order": groups.index(g)}
        for w, held in shares.items()
        for g, s in held.items()
    ]
    return stacked(
        rounded(rows),
        list(shares),
        groups,
        list(style.STEPS[: len(groups)]),
        says=f"Share of places by popularity of the item, for {several(list(shares))}.",
        field="share",
        form=".1%",
    )


def winloss(counts: Mapping[str, tuple[int, int, int]], *, baseline: str | None = None) -> Chart:
    """Users won, tied and lost; one bar a row."""
    words = ("won", "tied", "lost")
    rows = [
        {"who": str(w), "group": word, "share": n / max(sum(held), 1), "users": int(n), "order": i}
        for w, held in counts.items()
        for i, (word, n) in enumerate(zip(words, held, strict=True))
    ]
    against = f" against {baseline}" if baseline else ""
    return stacked(
        rounded(rows),
        list(counts),
        list(words),
        [style.BETTER, style.SAME, style.WORSE],
        says=f"Share of users won, tied and lost{against}, for {several(list(counts))}.",
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
    held: list[dict[str, Any]] = []
    for label, row in rows.items():
        value, low, high = style.triple(row)
        side = style.side_of(low, high, lower_is_better=label in lower)
        if math.isfinite(value):
            held.append({"label": str(label), "value": value, "low": low, "high": high, "side": side})
    form = ".1%" if unit == "%" else ".4f"
    y = {
        "field": "label",
        "type": "nominal",
        "scale": in_order(rows),
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
    x = {**number("value", title or "difference", zero=True), "axis": axis}
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
        rounded(held),
        layers,
        f"{title or 'Difference'} with its interval, for {several(list(rows))}.",
        height=26 * len(held) + 4,
    )


def duel(
    baseline_values: Any,
    model_values: Any,
    *,
    names: tuple[str, str] = ("baseline", "model"),
    metric: str = "",
) -> Chart:
    """Win/loss map: users by their value under both models; above the diagonal the second one wins."""
    edges, counts = style.binned_pairs(baseline_values, model_values)
    at = np.argwhere(counts > 0)
    rows = rounded(
        {"x": edges[c], "x2": edges[c + 1], "y": edges[r], "y2": edges[r + 1], "users": int(counts[r, c])}
        for r, c in at.tolist()
    )
    ends = [float(edges[0]), float(edges[-1])]
    scale = {"scale": {"domain": ends, "nice": False}}
    cells = {
        "mark": {"type": "rect"},
        "encoding": {
            "x": {**number("x", f"{metric} of {names[0]}"), **scale},
            "x2": {"field": "x2"},
            "y": {**number("y", f"{metric} of {names[1]}"), **scale},
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
