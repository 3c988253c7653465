"""Figures of one side against another: differences, wins and losses, popular and rare items."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from recsys.report import style
from recsys.report.figures.canvas import percent, stacked_bars, styled_axes


def headtail(
    shares: Mapping[str, Mapping[str, float]], *, baseline: str | None = None, ax: Any = None
) -> Any:
    """What share of the places goes to popular and to rare items; one bar per row."""
    del baseline
    groups = list(dict.fromkeys(group for row in shares.values() for group in row))
    colours = style.STEPS[: len(groups)]
    table = np.array([[float(row.get(group, 0.0)) for group in groups] for row in shares.values()])
    return stacked_bars(list(shares), groups, table.reshape(-1, len(groups)), colours, ax=ax)


def winloss(
    counts: Mapping[str, tuple[int, int, int]], *, baseline: str | None = None, ax: Any = None
) -> Any:
    """Users won, tied and lost; one bar per row."""
    table = np.array([[float(n) for n in row] for row in counts.values()]).reshape(-1, 3)
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1.0)
    axes = stacked_bars(
        list(counts), ["won", "tied", "lost"], shares, [style.BETTER, style.SAME, style.WORSE], ax=ax
    )
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
        axes.axvline(0.0, color="#8a929c", linewidth=1, linestyle=(0, (4, 3)))
        for at, label in enumerate(rows):
            middle, low, high = style.value_and_interval(rows[label])
            colour = style.SIDES[style.interval_side(low, high, lower_is_better=label in lower)]
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
        axes.plot(edges[[0, -1]], edges[[0, -1]], color="#4d545c", linewidth=1, linestyle=(0, (4, 3)))
        axes.figure.colorbar(mesh, ax=axes, label="users")
        axes.set_xlabel(f"{metric} of {style.short(names[0])}".strip())
        axes.set_ylabel(f"{metric} of {style.short(names[1])}".strip())
    return axes
