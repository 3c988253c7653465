"""Reports: one HTML page about one or many models, and the same charts as figures and Vega-Lite.

jinja2, vl-convert and matplotlib are imported by the functions that need them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys import lazy_names

if TYPE_CHECKING:
    from recsys.report import charts, figures
    from recsys.report.charts import Chart
    from recsys.report.page import report_html, write, write_report

__all__ = ["Chart", "charts", "figures", "report_html", "write", "write_report"]
__getattr__, __dir__ = lazy_names(
    __name__,
    {"charts": ("Chart",), "page": ("report_html", "write", "write_report")},
    rooms=("charts", "figures"),
)
