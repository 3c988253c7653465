"""Figures of items in the plane, of metrics over time, and of tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recsys.report import style
from recsys.report.figures.canvas import legend, line_of, marker_of, parse_time, styled_axes


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
        for i, kind in enumerate(kinds):
            at = group_names == kind
            size = area if isinstance(area, float) else area[at]
            axes.scatter(
                *places[at].T,
                s=size,
                color=style.colours(kinds)[i],
                marker=marker_of(i, kinds),
                alpha=0.75,
                linewidths=0,
                label=style.short(kind),
            )
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
        for i, (name, colour) in enumerate(zip(names, style.colours(names), strict=True)):
            when = [parse_time(at) for at, _ in rows[name]]
            triples = np.array([style.value_and_interval(value) for _, value in rows[name]]).reshape(-1, 3)
            axes.plot(when, triples[:, 0], color=colour, label=style.short(name), **line_of(i, names))
            axes.fill_between(when, triples[:, 1], triples[:, 2], color=colour, alpha=0.13, linewidth=0)
        for change in changes:
            axes.axvline(parse_time(change), color=style.WORSE, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.set_ylabel(metric)
        axes.tick_params(axis="x", rotation=30)
        legend(axes, names)
    return axes


def heat(values: Mapping[str, Mapping[str, Any]], *, title: str = "", ax: Any = None) -> Any:
    """A table as a heat map, its numbers written in the cells."""
    columns = list(dict.fromkeys(column for row in values.values() for column in row))
    table = np.array(
        [
            [style.value_and_interval(row.get(column, math.nan))[0] for column in columns]
            for row in values.values()
        ]
    )
    with styled_axes(ax, (1.6 + 0.9 * len(columns), 0.9 + 0.4 * len(values))) as axes:
        from matplotlib.colors import LinearSegmentedColormap

        axes.imshow(table, cmap=LinearSegmentedColormap.from_list("heat", list(style.RAMP)), aspect="auto")
        dark = style.dark_threshold(table)
        fractions = bool((table[np.isfinite(table)] % 1).any())
        for (r, c), value in np.ndenumerate(table):
            if math.isfinite(value):
                axes.text(
                    c,
                    r,
                    f"{value:.3f}" if fractions else f"{value:.0f}",
                    ha="center",
                    va="center",
                    fontsize=8.5,
                    color="white" if value > dark else "#111827",
                )
        axes.set_xticks(range(len(columns)), [style.short(column, 24) for column in columns])
        axes.set_yticks(range(len(values)), [style.short(v) for v in values])
        axes.grid(visible=False)
        axes.set_title(title)
    return axes
