"""Every picture of `recsys.report.pictures` with matplotlib, by its name: `figures.bars(..., ax=None)`.

Each returns its Axes, or an array of Axes where the picture has several panels. matplotlib is imported when
something is drawn. The functions of `charts` have the same names and arguments.
"""

from __future__ import annotations

from recsys.report.figures.canvas import figure_of, save
from recsys.report.pictures import PICTURES, drawn_by

__all__ = ["save", *PICTURES]  # noqa: PLE0604 - names of pictures are texts
__getattr__ = drawn_by(figure_of, __name__, "Axes", "ax")


def __dir__() -> list[str]:
    return ["save", *PICTURES.load_plugins()]
