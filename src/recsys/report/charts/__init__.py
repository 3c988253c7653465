"""Every picture of `recsys.report.pictures` as a Vega-Lite `Chart`, by its name: `charts.bars(...)`.

The functions of `figures` have the same names and arguments, and draw the same pictures with matplotlib.
"""

from __future__ import annotations

from recsys.report.charts.chart import Chart, chart_of
from recsys.report.pictures import PICTURES, drawn_by

__all__ = ["Chart", *PICTURES]  # noqa: PLE0604 - names of pictures are texts
__getattr__ = drawn_by(chart_of, __name__, "Chart")


def __dir__() -> list[str]:
    return ["Chart", *PICTURES.load_plugins()]
