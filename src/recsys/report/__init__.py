"""Reports: one HTML page about one or many models, and the same charts as figures and Vega-Lite.

jinja2, vl-convert and matplotlib are imported by the functions that need them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.report import charts, figures
    from recsys.report.board import watch_board, write_board
    from recsys.report.charts import Chart
    from recsys.report.methods import Methods, methods_paragraph
    from recsys.report.page import report_html, write, write_report

__all__ = [
    "Chart",
    "Methods",
    "charts",
    "figures",
    "methods_paragraph",
    "report_html",
    "watch_board",
    "write",
    "write_board",
    "write_report",
]
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "board": ("watch_board", "write_board"),
        "charts": ("Chart",),
        "methods": ("Methods", "methods_paragraph"),
        "page": ("report_html", "write", "write_report"),
    },
    rooms=("charts", "figures"),
)
