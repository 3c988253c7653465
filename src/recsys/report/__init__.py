"""Reports: one HTML page about one or many models, and the same charts as figures and Vega-Lite.

Nothing heavy is imported here; jinja2, vl-convert and matplotlib are met by the functions that need them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recsys.report.charts import Chart
    from recsys.report.html import report_html, write_report
    from recsys.report.html import write_report as write

_HOMES = {
    "Chart": ("recsys.report.charts", "Chart"),
    "report_html": ("recsys.report.html", "report_html"),
    "write": ("recsys.report.html", "write_report"),
    "write_report": ("recsys.report.html", "write_report"),
}

__all__ = ["Chart", "report_html", "write", "write_report"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in {"charts", "figures"}:
        return import_module(f"recsys.report.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'recsys.report' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return [*__all__, "charts", "figures"]
