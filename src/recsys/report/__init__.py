"""Reports: one HTML page about one or many models, and the same charts as figures and Vega-Lite.

jinja2, vl-convert and matplotlib are imported by the functions that need them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.report import charts as charts
    from recsys.report import figures as figures
    from recsys.report.board import watch_board as watch_board
    from recsys.report.board import write_board as write_board
    from recsys.report.charts import Chart as Chart
    from recsys.report.methods import Methods as Methods
    from recsys.report.methods import methods_paragraph as methods_paragraph
    from recsys.report.page import report_html as report_html
    from recsys.report.page import write as write
    from recsys.report.page import write_report as write_report

__getattr__, __dir__, __all__ = lazy_names(__name__)
