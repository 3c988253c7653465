"""What models cost to train, to keep and to ask, as far as their results say so; less is better."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from recsys.report.html_tables import HtmlTable, table_of_rows

if TYPE_CHECKING:
    from recsys.report.study import Study

# {what a result calls it among the facts of its run: (its name, its unit, how many of it a unit is)}
_COSTS = {
    "training_seconds": ("training", "s", 1.0),
    "model_bytes": ("size", "MB", 1e6),
    "milliseconds_per_user": ("time per user", "ms", 1.0),
}
UNITS = {name: unit for name, unit, _ in _COSTS.values()}


def costs(study: Study) -> dict[str, Mapping[str, float]]:
    """Return {cost: {model: its value}}, of those that are known of some model."""
    found: dict[str, Mapping[str, float]] = {}
    for fact, (name, _, unit) in _COSTS.items():
        known = {model: study.first(model).run.get(fact) for model in study.names}
        values = {model: float(value) / unit for model, value in known.items() if value is not None}
        if values:
            found[name] = values
    return found


def costs_table(study: Study) -> list[HtmlTable]:
    """Return the table of what is known; none if nothing is."""
    found = costs(study)
    if not found:
        return []
    heads = ("model", *(f"{name} ({UNITS[name]})" for name in found))
    lines = [(model, *(round(of.get(model, math.nan), 3) for of in found.values())) for model in study.names]
    return [table_of_rows("costs", "What the models cost", heads, lines)]
