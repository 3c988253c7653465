"""What all figures share: the style they are drawn in, the axes they are drawn on, and how they are saved.

Nothing global is changed: the style applies while a figure is drawn.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recsys.errors import InputError, MissingExtraError
from recsys.report import style

_STYLE: dict[str, Any] = {
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8a929c",
    "axes.labelcolor": "#2b3036",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#d9dde2",
    "grid.linewidth": 0.6,
    "xtick.color": "#4d545c",
    "ytick.color": "#4d545c",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "figure.dpi": 120,
    "text.parse_math": False,
}
# Text stays text in SVG and PDF, so that it can be searched and set in the paper's own fonts.
_FILES: dict[str, Any] = {"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "recsys"}
DASHED = {"linestyle": (0, (4, 3))}


def save(figure: Any, path: str | os.PathLike[str]) -> Path:
    """Write a figure (or the figure of an Axes) as PNG at 300 dpi, SVG or PDF, without a date in the file."""
    from io import BytesIO

    from recsys.inputs.files import write_bytes

    matplotlib = matplotlib_package()
    target = Path(path)
    kind = target.suffix.lower().lstrip(".")
    if kind not in {"png", "svg", "pdf"}:
        raise InputError(f"{target} has none of the endings .png, .svg, .pdf.")
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    out = BytesIO()
    with matplotlib.rc_context(_FILES):
        whole = getattr(figure, "figure", None) or figure
        whole.savefig(out, format=kind, dpi=300, bbox_inches="tight", metadata=undated)
    write_bytes(target, out.getvalue())
    return target


def matplotlib_package() -> Any:
    """matplotlib, or an error with the line that installs it."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot", "A figure") from error
    return mpl


@contextlib.contextmanager
def styled_axes(ax: Any, size: tuple[float, float]) -> Iterator[Any]:
    """The Axes passed in, or those of a new figure, in our style."""
    with matplotlib_package().rc_context(_STYLE):
        if ax is None:
            from matplotlib import pyplot as plt

            ax = plt.subplots(
                figsize=(min(max(size[0], 4.6), 12.0), min(max(size[1], 1.8), 14.0)), layout="constrained"
            )[1]
        yield ax


def looks(names: Sequence[str], baseline: str | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each name with the label, colour, marker and dash of its line."""
    colours, shapes, dashes = style.colours(names, baseline), style.shapes(names), style.dashes(names)
    for name, colour, shape, dash in zip(names, colours, shapes, dashes, strict=True):
        linestyle = "-" if dash[-1] == 0 else (0, dash)
        look = {"color": colour, "marker": style.MARKERS[shape], "linestyle": linestyle}
        yield name, {"label": style.short(name), **look}


def plot_line(axes: Any, places: Sequence[Any], values: Iterable[Any], look: Mapping[str, Any]) -> None:
    """A line and the band of its intervals."""
    triples = style.triples(values)
    axes.plot(places, triples[:, 0], **look)
    axes.fill_between(places, triples[:, 1], triples[:, 2], color=look["color"], alpha=0.13, linewidth=0)


def draw_intervals(axes: Any, x: Any, triples: Any, colour: str) -> None:
    """Intervals as thin vertical lines; triples has the columns value, low and high."""
    if np.isfinite(triples[:, 1:]).any():
        axes.vlines(x, triples[:, 1], triples[:, 2], color=colour, linewidth=1.3)


def legend(axes: Any, names: Sequence[str]) -> None:
    """A legend for more than one name; beside the axes for more than four."""
    if len(names) > 1:
        outside = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)} if len(names) > 4 else {}
        axes.legend(**outside)


def percent() -> Any:
    """The tick format of an axis in percent."""
    from matplotlib.ticker import PercentFormatter

    return PercentFormatter(1.0, decimals=0)


def parse_time(when: Any) -> Any:
    """ISO text as a datetime; other values are returned as they are."""
    if not isinstance(when, str):
        return when
    from datetime import datetime

    return datetime.fromisoformat(when)


def stacked_bars(labels: list[str], groups: list[str], shares: Any, colours: Sequence[str], ax: Any) -> Any:
    """Bars of shares that add up to one."""
    with styled_axes(ax, (5.6, 1.0 + 0.32 * len(labels))) as axes:
        left = np.zeros(len(labels))
        for share, group, colour in zip(shares.T, groups, colours, strict=True):
            axes.barh(
                range(len(labels)), share, left=left, color=colour, label=style.short(group), height=0.74
            )
            left += share
        axes.set_yticks(range(len(labels)), [style.short(w) for w in labels])
        axes.set_ylim(len(labels) - 0.4, -0.6)
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(percent())
        axes.grid(visible=False, axis="y")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=len(groups), borderaxespad=0.2)
    return axes
