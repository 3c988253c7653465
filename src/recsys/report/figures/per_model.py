"""Figures with one mark or line a model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from recsys.report import style as look
from recsys.report.figures.canvas import drawing, legend, line_of, marker_of, percent, reach


def bars(
    values: Mapping[str, Mapping[str, Any]],
    *,
    baseline: str | None = None,
    title: str = "",
    ax: Any = None,
) -> Any:
    """Models side by side, metric by metric."""
    names = list(values)
    metrics = list(dict.fromkeys(m for held in values.values() for m in held))
    with drawing(ax, (1.6 + 1.1 * len(metrics), 3.2)) as axes:
        width = 0.8 / max(len(names), 1)
        for i, (name, ink) in enumerate(zip(names, look.colours(names, baseline), strict=True)):
            held = np.array([look.triple(values[name].get(m, math.nan)) for m in metrics])
            at = np.arange(len(metrics)) + (i - (len(names) - 1) / 2) * width
            axes.bar(at, held[:, 0], width * 0.92, color=ink, label=look.short(name))
            reach(axes, at, held, "#333a42")
        axes.set_xticks(range(len(metrics)), [look.short(m) for m in metrics])
        axes.grid(visible=False, axis="x")
        axes.set_ylabel(title)
        legend(axes, names)
    return axes


def curve(
    values: Mapping[str, Mapping[int, Any]], *, metric: str = "", baseline: str | None = None, ax: Any = None
) -> Any:
    """A metric against the cut-off k, a line a model with its interval."""
    with drawing(ax, (5.2, 3.4)) as axes:
        _plot(axes, values, baseline)
        places = sorted({k for held in values.values() for k in held})
        if len(places) > 3:
            axes.set_xscale("log")
        axes.set_xticks(places, [str(k) for k in places])
        axes.minorticks_off()
        axes.set_xlabel("cut-off k")
        axes.set_ylabel(metric)
    return axes


def lines(values: Mapping[str, Mapping[float, Any]], *, x: str = "", y: str = "", ax: Any = None) -> Any:
    """Any quantity against any other, a line each with its interval where there is one."""
    with drawing(ax, (5.8, 3.8)) as axes:
        _plot(axes, values, None)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
    return axes


def _plot(axes: Any, values: Mapping[str, Mapping[Any, Any]], baseline: str | None) -> None:
    names = list(values)
    for i, (name, ink) in enumerate(zip(names, look.colours(names, baseline), strict=True)):
        places = sorted(values[name])
        held = np.array([look.triple(values[name][place]) for place in places]).reshape(-1, 3)
        axes.plot(places, held[:, 0], color=ink, label=look.short(name), **line_of(i, names))
        axes.fill_between(places, held[:, 1], held[:, 2], color=ink, alpha=0.13, linewidth=0)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    legend(axes, names)


def tradeoff(
    points: Mapping[str, tuple[float, float]],
    *,
    x: str = "coverage",
    y: str = "accuracy",
    baseline: str | None = None,
    ax: Any = None,
) -> Any:
    """One point a model: accuracy against coverage, or any two numbers."""
    names = list(points)
    with drawing(ax, (4.6, 3.6)) as axes:
        for i, (name, ink) in enumerate(zip(names, look.colours(names, baseline), strict=True)):
            at = points[name]
            axes.plot(*at, color=ink, marker=marker_of(i, names), markersize=8, linestyle="none")
            axes.annotate(
                look.short(name), at, xytext=(0, 8), textcoords="offset points", ha="center", fontsize=9
            )
        axes.margins(0.14)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
    return axes


def distribution(
    values: Mapping[str, Any], *, metric: str = "", baseline: str | None = None, ax: Any = None
) -> Any:
    """How a metric spreads over users: share of users in each bin, a stepped line a model."""
    edges, shares = look.binned(values)
    names = list(values)
    with drawing(ax, (5.2, 3.2)) as axes:
        for i, (name, ink) in enumerate(zip(names, look.colours(names, baseline), strict=True)):
            style = {"linestyle": line_of(i, names)["linestyle"]}
            axes.stairs(shares[name], edges, color=ink, label=look.short(name), linewidth=1.8, **style)
        axes.yaxis.set_major_formatter(percent())
        axes.set_xlabel(metric)
        axes.set_ylabel("share of users")
        legend(axes, names)
    return axes


def strata(
    values: Mapping[str, Mapping[str, Any]],
    *,
    metric: str = "",
    sizes: Mapping[str, int] | None = None,
    title: str = "",
    baseline: str | None = None,
    ax: Any = None,
) -> Any:
    """A metric by group of users, a point with its interval for each model."""
    names = list(values)
    groups = list(dict.fromkeys(g for held in values.values() for g in held))
    with drawing(ax, (1.6 + 1.1 * len(groups), 3.3)) as axes:
        step = 0.6 / max(len(names), 1)
        for i, (name, ink) in enumerate(zip(names, look.colours(names, baseline), strict=True)):
            held = np.array([look.triple(values[name].get(g, math.nan)) for g in groups])
            at = np.arange(len(groups)) + (i - (len(names) - 1) / 2) * step
            axes.plot(
                at,
                held[:, 0],
                marker=marker_of(i, names),
                linestyle="none",
                color=ink,
                label=look.short(name),
            )
            reach(axes, at, held, ink)
        written = [
            f"{look.short(g, 24)}\n{sizes[g]:,} users" if sizes and g in sizes else look.short(g, 24)
            for g in groups
        ]
        axes.set_xticks(range(len(groups)), written)
        axes.set_xlabel(title)
        axes.set_ylabel(metric)
        low, high = axes.get_ylim()
        # From 0 on, the room left above close values would be less than half a marker.
        axes.set_ylim(min(0.0, low), high + 0.05 * max(high, 0.0))
        legend(axes, names)
    return axes
