"""The charts as static figures for papers and notebooks: matplotlib Axes from plain data.

matplotlib is imported when something is drawn. The functions of `charts` have the same names and arguments.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from recsys.report import style
from recsys.report.figures.canvas import (
    DASHED,
    draw_intervals,
    legend,
    looks,
    parse_time,
    percent,
    plot_line,
    save,
    stacked_bars,
    styled_axes,
)

__all__ = [
    "bars",
    "curve",
    "distribution",
    "duel",
    "embedding",
    "forest",
    "headtail",
    "heat",
    "history",
    "save",
    "strata",
    "tradeoff",
    "winloss",
]


def bars(
    values: Mapping[str, Mapping[str, Any]],
    *,
    baseline: str | None = None,
    title: str = "",
    ax: Any = None,
) -> Any:
    """Models side by side, metric by metric."""
    names, metrics = list(values), style.keys_of(values)
    with styled_axes(ax, (1.6 + 1.1 * len(metrics), 3.2)) as axes:
        width = 0.8 / max(len(names), 1)
        for i, (name, look) in enumerate(looks(names, baseline)):
            triples = style.triples(values[name].get(m, math.nan) for m in metrics)
            at = np.arange(len(metrics)) + (i - (len(names) - 1) / 2) * width
            axes.bar(at, triples[:, 0], width * 0.92, color=look["color"], label=look["label"])
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
        lines(values, x="cut-off k", y=metric, baseline=baseline, ax=axes)
        cut_offs = sorted({k for row in values.values() for k in row})
        if len(cut_offs) > 3 and cut_offs[0] > 0:
            axes.set_xscale("log")
        axes.set_xticks(cut_offs, [str(k) for k in cut_offs])
        axes.minorticks_off()
    return axes


def lines(
    values: Mapping[str, Mapping[Any, Any]],
    *,
    x: str = "",
    y: str = "",
    baseline: str | None = None,
    ax: Any = None,
) -> Any:
    """Any quantity against any other, one line per name, with its interval where there is one."""
    names = list(values)
    with styled_axes(ax, (5.8, 3.8)) as axes:
        for name, look in looks(names, baseline):
            places = sorted(values[name])
            plot_line(axes, places, [values[name][place] for place in places], look)
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        legend(axes, names)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
    return axes


def tradeoff(
    points: Mapping[str, tuple[float, float]],
    *,
    x: str = "coverage",
    y: str = "accuracy",
    baseline: str | None = None,
    ax: Any = None,
) -> Any:
    """One point per model: accuracy against coverage, or any two numbers."""
    with styled_axes(ax, (4.6, 3.6)) as axes:
        for name, look in looks(list(points), baseline):
            at = points[name]
            if not all(map(math.isfinite, at)):
                continue
            axes.plot(*at, color=look["color"], marker=look["marker"], markersize=8, linestyle="none")
            axes.annotate(
                look["label"], at, xytext=(0, 8), textcoords="offset points", ha="center", fontsize=9
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
        for name, look in looks(names, baseline):
            line = {key: look[key] for key in ("color", "label", "linestyle")}
            axes.stairs(shares[name], edges, linewidth=1.8, **line)
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
    names, groups = list(values), style.keys_of(values)
    with styled_axes(ax, (1.6 + 1.1 * len(groups), 3.3)) as axes:
        step = 0.6 / max(len(names), 1)
        for i, (name, look) in enumerate(looks(names, baseline)):
            triples = style.triples(values[name].get(g, math.nan) for g in groups)
            at = np.arange(len(groups)) + (i - (len(names) - 1) / 2) * step
            axes.plot(at, triples[:, 0], **(look | {"linestyle": "none"}))
            draw_intervals(axes, at, triples, look["color"])
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


def headtail(
    shares: Mapping[str, Mapping[str, float]], *, baseline: str | None = None, ax: Any = None
) -> Any:
    """What share of the places goes to popular and to rare items; one bar per row."""
    del baseline
    groups = style.keys_of(shares)
    table = np.array([[float(row.get(group, 0.0)) for group in groups] for row in shares.values()])
    table = np.nan_to_num(table.reshape(-1, len(groups)), nan=0.0)
    return stacked_bars(list(shares), groups, table, style.steps(len(groups)), ax)


def winloss(
    counts: Mapping[str, tuple[int, int, int]], *, baseline: str | None = None, ax: Any = None
) -> Any:
    """Users won, tied and lost; one bar per row."""
    table = np.array([[float(n) for n in row] for row in counts.values()]).reshape(-1, 3)
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1.0)
    outcomes, colours = list(style.OUTCOMES), list(style.OUTCOMES.values())
    axes = stacked_bars(list(counts), outcomes, shares, colours, ax)
    axes.set_xlabel(f"share of users against {style.short(baseline)}" if baseline else "share of users")
    return axes


def forest(
    rows: Mapping[str, tuple[float, float, float]],
    *,
    unit: str = "",
    title: str = "",
    lower: Collection[str] = (),
    ax: Any = None,
) -> Any:
    """Differences with their intervals around zero; `lower` names the rows where less is better."""
    with styled_axes(ax, (5.4, 0.9 + 0.3 * len(rows))) as axes:
        axes.axvline(0.0, color="#8a929c", linewidth=1, **DASHED)
        for at, label in enumerate(rows):
            middle, low, high = style.value_and_interval(rows[label])
            colour = style.SIDES[style.interval_side(*rows[label][1:], lower_is_better=label in lower)]
            axes.plot([low, high], [at, at], color=colour, linewidth=2)
            axes.plot(middle, at, "o", color=colour)
        axes.set_yticks(range(len(rows)), [style.short(label) for label in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(title or "difference")
        if unit == "%":
            axes.xaxis.set_major_formatter(percent())
    return axes


def duel(
    baseline_values: Any,
    model_values: Any,
    *,
    names: tuple[str, str] = ("baseline", "model"),
    metric: str = "",
    ax: Any = None,
) -> Any:
    """Win/loss map: users by their value under both models; above the diagonal the second one wins."""
    edges, counts = style.paired_histogram(baseline_values, model_values)
    with styled_axes(ax, (4.4, 3.8)) as axes:
        from matplotlib.colors import LinearSegmentedColormap, LogNorm

        masked = np.ma.masked_equal(counts, 0)
        ramp = LinearSegmentedColormap.from_list("users", list(style.RAMP))
        norm = LogNorm(1, max(int(counts.max(initial=1)), 2))
        mesh = axes.pcolormesh(edges, edges, masked, cmap=ramp, norm=norm)
        axes.plot(edges[[0, -1]], edges[[0, -1]], color="#4d545c", linewidth=1, **DASHED)
        axes.figure.colorbar(mesh, ax=axes, label="users")
        axes.set_xlabel(f"{metric} of {style.short(names[0])}".strip())
        axes.set_ylabel(f"{metric} of {style.short(names[1])}".strip())
    return axes


def embedding(
    coordinates: Any,
    *,
    labels: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    sizes: Sequence[float] | None = None,
    title: str = "",
    ax: Any = None,
) -> Any:
    """Items by the coordinates of their embeddings, in two dimensions; up to 40 items are labelled."""
    places = style.points(coordinates)
    group_names = np.array(
        [str(g) for g in groups] if groups is not None else [""] * len(places), dtype=object
    )
    kinds = list(dict.fromkeys(group_names.tolist()))
    area = 16.0 if sizes is None else 10.0 + 90.0 * np.asarray(sizes) / max(np.max(sizes), 1e-12)
    with styled_axes(ax, (5.2, 4.6)) as axes:
        for kind, look in looks(kinds):
            at = group_names == kind
            size = area if isinstance(area, float) else area[at]
            mark = {key: look[key] for key in ("color", "label", "marker")}
            axes.scatter(*places[at].T, s=size, alpha=0.75, linewidths=0, **mark)
        for place, label in zip(
            places, labels if labels is not None and len(places) <= 40 else (), strict=False
        ):
            axes.annotate(str(label), place, xytext=(3, 3), textcoords="offset points", fontsize=7)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_visible(False)
        axes.set_title(title)
        legend(axes, kinds)
    return axes


def history(
    rows: Mapping[str, Sequence[tuple[Any, Any]]],
    *,
    metric: str = "",
    changes: Sequence[Any] = (),
    ax: Any = None,
) -> Any:
    """A metric over time, with its interval; changes are marked."""
    names = list(rows)
    with styled_axes(ax, (5.8, 3.2)) as axes:
        for name, look in looks(names):
            times = [parse_time(when) for when, _ in rows[name]]
            plot_line(axes, times, [value for _, value in rows[name]], look)
        for change in changes:
            axes.axvline(parse_time(change), color=style.WORSE, linewidth=1.2, **DASHED)
        axes.set_ylabel(metric)
        axes.tick_params(axis="x", rotation=30)
        legend(axes, names)
    return axes


def heat(values: Mapping[str, Mapping[str, Any]], *, title: str = "", ax: Any = None) -> Any:
    """A table as a heat map, its numbers written in the cells."""
    columns = style.keys_of(values)
    table = np.array(
        [style.triples(row.get(column, math.nan) for column in columns)[:, 0] for row in values.values()]
    )
    with styled_axes(ax, (1.6 + 0.9 * len(columns), 0.9 + 0.4 * len(values))) as axes:
        from matplotlib.colors import LinearSegmentedColormap

        axes.imshow(table, cmap=LinearSegmentedColormap.from_list("heat", list(style.RAMP)), aspect="auto")
        dark = style.dark_threshold(table)
        decimals = style.heat_decimals(table)
        for (r, c), value in np.ndenumerate(table):
            if math.isfinite(value):
                colour = "white" if value > dark else "#111827"
                text = f"{value:.{decimals}f}"
                axes.text(c, r, text, ha="center", va="center", fontsize=8.5, color=colour)
        axes.set_xticks(range(len(columns)), [style.short(column, 24) for column in columns])
        axes.set_yticks(range(len(values)), [style.short(v) for v in values])
        axes.grid(visible=False)
        axes.set_title(title)
    return axes


def __dir__() -> list[str]:
    return __all__
