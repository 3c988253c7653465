"""Pictures as matplotlib figures: their style, the axes they are drawn on, and how they are saved.

Nothing global is changed: the style applies while a figure is drawn.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from recsys.errors import InputError, needs_extra
from recsys.report import style
from recsys.report.pictures.vocabulary import Axis, Mark, Panel, Picture, Row, number_text, text_width

_STYLE: dict[str, Any] = {
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8a929c",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#a8b0bb",
    "grid.alpha": 0.35,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "figure.dpi": 120,
    "text.parse_math": False,
}
# Text stays text in SVG and PDF, so that it can be searched and set in the paper's own fonts.
_FILES: dict[str, Any] = {"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "recsys"}
_INCH = 90.0  # pixels of a picture
_GROUP = 0.7  # what series side by side take of the place of a name
_POINT = 72.0 / _INCH  # points of a pixel
_MARKERS = {
    "circle": "o",
    "square": "s",
    "triangle-up": "^",
    "diamond": "D",
    "cross": "P",
    "triangle-down": "v",
    "triangle-right": ">",
    "triangle-left": "<",
}


def save(figure: Any, path: str | os.PathLike[str]) -> Path:
    """Write a figure (or that of Axes) as PNG at 300 dpi, SVG or PDF, without a date in the file."""
    from io import BytesIO

    from recsys.inputs.files import write_bytes

    matplotlib = _matplotlib()
    target = Path(path)
    kind = target.suffix.lower().lstrip(".")
    if kind not in {"png", "svg", "pdf"}:
        raise InputError(f"{target} has none of the endings .png, .svg, .pdf.")
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    out = BytesIO()
    with matplotlib.rc_context(_FILES):
        first = np.asarray(figure, dtype=object).flat[0]
        whole = getattr(first, "figure", None) or first
        whole.savefig(out, format=kind, dpi=300, bbox_inches="tight", metadata=undated)
    write_bytes(target, out.getvalue())
    return target


def figure_of(picture: Picture, ax: Any = None) -> Any:
    """Return the picture on new Axes, or on those given: one for one panel, an array for several."""
    matplotlib = _matplotlib()
    if ax is None:
        # A backend that is loaded while the style applies loses what it sets: that of notebooks would take
        # figures for those of a program, and show none after this one.
        _matplotlib("pyplot").draw_if_interactive()
    paper = matplotlib.rcParams["figure.facecolor"]
    light = sum(matplotlib.colors.to_rgb("white" if paper == "none" else paper)) > 1.5
    ink = {"text.color": "#2b3036", "axes.labelcolor": "#2b3036", "axes.titlecolor": "#2b3036",
           "xtick.color": "#4d545c", "ytick.color": "#4d545c"}  # fmt: skip
    with matplotlib.rc_context(_STYLE | (ink if light else {})):
        if ax is None:
            axes = _new_axes(picture)
        else:
            axes = list(np.asarray(ax, dtype=object).flat)
            if len(axes) != len(picture.panels):
                raise InputError(
                    f"the picture has {len(picture.panels)} panels, ax= has {len(axes)}.",
                    hint=f"Pass ax=plt.subplots(1, {len(picture.panels)})[1], or none.",
                )
        for panel, one in zip(picture.panels, axes, strict=True):
            _draw(panel, one)
    if ax is not None:
        return ax
    return axes[0] if len(axes) == 1 else np.array(axes, dtype=object)


def _matplotlib(part: str = "") -> Any:
    """matplotlib, or a part of it; an error with the line that installs it where it is missing."""
    with needs_extra("matplotlib", "plot", "A figure"):
        return import_module(f"matplotlib.{part}" if part else "matplotlib")


def _new_axes(picture: Picture) -> list[Any]:
    """Axes of a new figure, one per panel, in rows of equal length."""
    legends = [p.series.names if p.series.legend == "bottom" else () for p in picture.panels]
    legend = max((30 + text_width(style.short(name)) for names in legends for name in names), default=0)
    wide = max((panel.width + panel.label_width for panel in picture.panels), default=400) + legend
    high = max((max(panel.height, 40) for panel in picture.panels), default=200) + 75
    columns = picture.columns(12 * _INCH)
    rows = max(-(-len(picture.panels) // columns), 1)
    size = min(wide * columns / _INCH, 14.0), min(high * rows / _INCH, 24.0)
    figure, grid = _matplotlib("pyplot").subplots(
        rows, columns, squeeze=False, layout="constrained", figsize=size
    )
    figure.get_layout_engine().set(h_pad=0.11)  # the layout counts half of the titles above the y axes
    for empty in grid.flat[len(picture.panels) :]:
        empty.remove()
    return list(grid.flat[: len(picture.panels)])


def _draw(panel: Panel, axes: Any) -> None:
    for number, mark in enumerate(panel.marks):
        # Series by series where the colour is that of the series, or where they are side by side.
        apart = panel.dodge or not mark.colour
        for name in panel.series.names if apart else [""]:
            rows = [row for row in mark.drawn(panel) if not apart or row[panel.series.field] == name]
            if rows:
                _draw_mark(axes, panel, mark, rows, _look(panel, mark, name) | {"zorder": 2 + 0.1 * number})
    _set_axis(panel.x, axes.xaxis, axes.set_xlim, axes.set_xscale)
    _set_axis(panel.y, axes.yaxis, axes.set_ylim, axes.set_yscale)
    if panel.x.title:
        axes.set_xlabel(panel.x.title)
    if panel.y.title:  # above the axis, where it runs into no neighbour
        axes.set_ylabel(panel.y.title, rotation=0, ha="left", va="bottom")
        axes.yaxis.set_label_coords(0.0, 1.03)
    if panel.title:
        axes.set_title(style.short(panel.title, 60))
    if panel.x.kind == "none":
        axes.spines[:].set_visible(False)
    if panel.series.legend:  # never over the data
        above = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": 4}
        right = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
        side = above if panel.series.legend == "top" else right
        axes.legend(handles=_legend_handles(panel), borderaxespad=0.2, **side)


def _legend_handles(panel: Panel) -> list[Any]:
    """Return what the legend shows of each series: a line with its marker, or a patch of its colour."""
    kinds = {mark.kind for mark in panel.marks if not mark.colour}
    handles: list[Any] = []
    for name in panel.series.highlighted:
        look = _look(panel, panel.marks[0], name)
        if kinds & {"bar", "area", "cell"}:
            handles.append(_matplotlib("patches").Patch(color=look["color"], label=look["label"]))
            continue
        without = {} if "line" in kinds else {"linestyle": "none"}
        handles.append(
            _matplotlib("lines").Line2D(
                [], [], **(look | without | ({} if "point" in kinds else {"marker": ""}))
            )
        )
    return handles


def _set_axis(axis: Axis, drawn: Any, set_limits: Any, set_scale: Any) -> None:
    """Range, ticks and their labels."""
    if axis.kind == "names":
        lines = ["\n".join(style.short(line) for line in name.split("\n")[:2]) for name in axis.ticks]
        drawn.set_ticks(range(len(lines)), lines)
        drawn.set_tick_params(length=0)
        ends = (-0.5, max(len(lines), 1) - 0.5)
        set_limits(ends if drawn.axis_name == "x" else ends[::-1])
    elif axis.kind == "time":
        dates = _matplotlib("dates")
        drawn.set_major_locator(dates.AutoDateLocator(maxticks=7))
        drawn.set_major_formatter(dates.ConciseDateFormatter(drawn.get_major_locator()))
        set_limits(axis.domain)
    else:
        set_scale("log" if axis.kind == "log" else "linear")
        set_limits(axis.domain)
        ticks = [] if axis.kind == "none" else list(axis.ticks)
        drawn.set_ticks(ticks, [number_text(tick, axis.format) for tick in ticks])
        drawn.set_ticks([], minor=True)
    if not axis.grid:
        drawn.grid(visible=False)


def _look(panel: Panel, mark: Mark, name: str) -> dict[str, Any]:
    """Return the label, colour, marker and dash of a mark of a series."""
    series = panel.series
    i = list(series.names).index(name) if name in series.names else None
    dash = mark.dash or (series.dashes[i] if series.dashes and i is not None else (1, 0))
    return {
        "label": style.short(name),
        "color": mark.colour if mark.colour.startswith("#") or i is None else series.colours[i],
        "marker": _MARKERS[series.shapes[i]] if series.shapes and i is not None else "o",
        "linestyle": "-" if dash[-1] == 0 else (0, dash),
    }


def _places(panel: Panel, channel: str, values: Sequence[Any], name: str) -> Any:
    """Values as places on an axis; names by their number, series side by side."""
    axis: Axis = getattr(panel, channel)
    if axis.kind != "names":
        return np.array(values)
    numbers = {label: float(i) for i, label in enumerate(axis.ticks)}
    places, series = np.array([numbers[value] for value in values]), list(panel.series.names)
    if panel.dodge:
        places += (series.index(name) - (len(series) - 1) / 2) * _GROUP / len(series)
    return places


def _draw_mark(axes: Any, panel: Panel, mark: Mark, rows: list[Row], look: dict[str, Any]) -> None:
    """Draw one mark of one series, at the places of its rows."""
    name = rows[0].get(panel.series.field, "")
    at = {c: _places(panel, c[0], [row[f] for row in rows], name)
          for c in ("x", "y", "x2", "y2") if (f := getattr(mark, c))}  # fmt: skip
    plain = {"color": look["color"], "zorder": look["zorder"]}
    if mark.kind == "line":
        order = np.argsort(at["x"], kind="stable")
        shape = {"drawstyle": "steps-post" if mark.step else "default", "alpha": mark.opacity}
        axes.plot(
            at["x"][order], at["y"][order], linewidth=mark.size * _POINT, **shape, **(look | {"marker": ""})
        )
    elif mark.kind == "point":
        sizes = np.array([row[mark.size] for row in rows]) if isinstance(mark.size, str) else mark.size
        more = {"marker": look["marker"], "alpha": mark.opacity, "linewidths": 0, "clip_on": False}
        axes.scatter(at["x"], at["y"], s=sizes * _POINT**2, **more, **plain)
    elif mark.kind == "interval" and "y2" in at:
        axes.vlines(at["x"], at["y"], at["y2"], linewidth=mark.size * _POINT, **plain)
    elif mark.kind == "interval":
        axes.hlines(at["y"], at["x"], at["x2"], linewidth=mark.size * _POINT, **plain)
    elif mark.kind == "bar" and "x2" in at:
        axes.barh(at["y"], at["x2"] - at["x"], left=at["x"], height=0.8, **plain)
    elif mark.kind == "bar":
        axes.bar(at["x"], at["y"], _GROUP / max(len(panel.series.names), 1), **plain)
    elif mark.kind == "area":
        axes.fill_between(at["x"], at["y"], at["y2"], alpha=mark.opacity, linewidth=0, **plain)
    elif mark.kind == "rule":
        for place in at["x"]:
            axes.axvline(place, linewidth=mark.size * _POINT, linestyle=look["linestyle"], **plain)
    elif mark.kind == "text":
        _write(axes, mark, rows, at)
    else:
        _fill_cells(axes, mark, rows, at, look["color"])


def _write(axes: Any, mark: Mark, rows: list[Row], at: Mapping[str, Any]) -> None:
    for x, y, row in zip(at["x"], at["y"], rows, strict=True):
        look = {"color": row[mark.colour]} if mark.colour in row else {}
        moved = (row.get("dx", 0) * _POINT, -row.get("dy", 0) * _POINT)
        look |= {"ha": row.get("anchor", "center"), "va": "center", "fontsize": mark.size * _POINT}
        axes.annotate(
            row[mark.text], (x, y), moved, textcoords="offset points", annotation_clip=False, **look
        )


def _fill_cells(axes: Any, mark: Mark, rows: list[Row], at: Mapping[str, Any], colour: str) -> None:
    left, right = (at["x"], at["x2"]) if "x2" in at else (at["x"] - 0.5, at["x"] + 0.5)
    low, high = (at["y"], at["y2"]) if "y2" in at else (at["y"] - 0.5, at["y"] + 0.5)
    corners = zip(left, low, right - left, high - low, strict=True)
    cells = [_matplotlib("patches").Rectangle((x, y), wide, tall) for x, y, wide, tall in corners]
    fill = [row[mark.colour] for row in rows] if mark.colour in rows[0] else colour
    axes.add_collection(_matplotlib("collections").PatchCollection(cells, facecolor=fill, edgecolor="none"))
