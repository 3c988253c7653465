"""Figures with one mark or line per model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from recsys.report import style
from recsys.report.figures.canvas import draw_intervals, legend, line_of, marker_of, percent, styled_axes


def bars(
    values: Mapping[str, Mapping[str, Any]],
    *,
    baseline: str | None = None,
    title: str = "",
    ax: Any = None,
) -> Any:
    """Models side by side, metric by metric."""
    names = list(values)
    metrics = list(dict.fromkeys(metric for row in values.values() for metric in row))
    with styled_axes(ax, (1.6 + 1.1 * len(metrics), 3.2)) as axes:
        width = 0.8 / max(len(names), 1)
        for i, (name, colour) in enumerate(zip(names, style.colours(names, baseline), strict=True)):
            triples = np.array([style.value_and_interval(values[name].get(m, math.nan)) for m in metrics])
            at = np.arange(len(metrics)) + (i - (len(names) - 1) / 2) * width
            axes.bar(at, triples[:, 0], width * 0.92, color=colour, label=style.short(name))
            draw_intervals(axes, at, triples, "#333a42")
        axes.set_xticks(range(len(metrics)), [style.short(m) for m in metrics])
        axes.grid(visible=False, axis="x")
        axes.set_ylabel(title)
        legend(axes, names)
    return axes


def curve(
    values: Mapping[str, Mapping[int, Any]], *, metric: str = "", baseline: str | None = None, ax: Any = None
) -> Any:
    """A metric against the cut-off k, one line per model with its interval."""
    with styled_axes(ax, (5.2, 3.4)) as axes:
        _plot_lines(axes, values, baseline)
        cut_offs = sorted({k for row in values.values() for k in row})
        if len(cut_offs) > 3:
            axes.set_xscale("log")
        axes.set_xticks(cut_offs, [str(k) for k in cut_offs])
        axes.minorticks_off()
        axes.set_xlabel("cut-off k")
        axes.set_ylabel(metric)
    return axes


def lines(values: Mapping[str, Mapping[float, Any]], *, x: str = "", y: str = "", ax: Any = None) -> Any:
    """Any quantity against any other, one line per name, with its interval where there is one."""
    with styled_axes(ax, (5.8, 3.8)) as axes:
        _plot_lines(axes, values, None)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
    return axes


def _plot_lines(axes: Any, values: Mapping[str, Mapping[Any, Any]], baseline: str | None) -> None:
    names = list(values)
    for i, (name, colour) in enumerate(zip(names, style.colours(names, baseline), strict=True)):
        xs = sorted(values[name])
        triples = np.array([style.value_and_interval(values[name][x]) for x in xs]).reshape(-1, 3)
        axes.plot(xs, triples[:, 0], color=colour, label=style.short(name), **line_of(i, names))
        axes.fill_between(xs, triples[:, 1], triples[:, 2], color=colour, alpha=0.13, linewidth=0)
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
    """One point per model: accuracy against coverage, or any two numbers."""
    names = list(points)
    with styled_axes(ax, (4.6, 3.6)) as axes:
        for i, (name, colour) in enumerate(zip(names, style.colours(names, baseline), strict=True)):
            at = points[name]
            axes.plot(*at, color=colour, marker=marker_of(i, names), markersize=8, linestyle="none")
            axes.annotate(
                style.short(name), at, xytext=(0, 8), textcoords="offset points", ha="center", fontsize=9
            )
        axes.margins(0.14)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
    return axes


def distribution(
    values: Mapping[str, Any], *, metric: str = "", baseline: str | None = None, ax: Any = None
) -> Any:
    """How a metric spreads over users: share of users in each bin, one stepped line per model."""
    edges, shares = style.histograms(values)
    names = list(values)
    with styled_axes(ax, (5.2, 3.2)) as axes:
        for i, (name, colour) in enumerate(zip(names, style.colours(names, baseline), strict=True)):
            linestyle = line_of(i, names)["linestyle"]
            axes.stairs(
                shares[name], edges, color=colour, label=style.short(name), linewidth=1.8, linestyle=linestyle
            )
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
    groups = list(dict.fromkeys(group for row in values.values() for group in row))
    with styled_axes(ax, (1.6 + 1.1 * len(groups), 3.3)) as axes:
        step = 0.6 / max(len(names), 1)
        for i, (name, colour) in enumerate(zip(names, style.colours(names, baseline), strict=True)):
            triples = np.array([style.value_and_interval(values[name].get(g, math.nan)) for g in groups])
            at = np.arange(len(groups)) + (i - (len(names) - 1) / 2) * step
            axes.plot(
                at,
                triples[:, 0],
                marker=marker_of(i, names),
                linestyle="none",
                color=colour,
                label=style.short(name),
            )
            draw_intervals(axes, at, triples, colour)
        tick_labels = [
            f"{style.short(g, 24)}\n{sizes[g]:,} users" if sizes and g in sizes else style.short(g, 24)
            for g in groups
        ]
        axes.set_xticks(range(len(groups)), tick_labels)
        axes.set_xlabel(title)
        axes.set_ylabel(metric)
        low, high = axes.get_ylim()
        # With an axis from 0, close values would have less than half a marker of space above them.
        axes.set_ylim(min(0.0, low), high + 0.05 * max(high, 0.0))
        legend(axes, names)
    return axes
