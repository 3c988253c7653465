"""A comparison as columns: what is printed, every number there is, and the notes below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from recsys.stats.comparison_table import ComparisonTable, Row

Columns = dict[str, list[Any]]

_PLAIN = (
    "model", "baseline", "metric", "value", "baseline_value", "difference", "standard_error", "relative",
    "statistic", "p_value", "adjusted_p", "wins", "ties", "losses", "n_cases", "n_units", "test", "verdict",
)  # fmt: skip

# Equivalence is part of the verdict.
_HEADINGS = {
    "non_inferiority_p": "p, no worse", "p_worse": "P(worse)", "p_equal": "P(equal)", "p_better": "P(better)",
}  # fmt: skip


def printed(table: ComparisonTable) -> Columns:
    """What a reader sees: one line a row, the verdict last."""
    rows = table.rows
    shown: Columns = {
        "model": [r.model for r in rows],
        "metric": [r.metric for r in rows],
        "value": [r.value for r in rows],
        "against": [r.baseline for r in rows],
        "its value": [r.baseline_value for r in rows],
        "won/tied/lost": [f"{r.wins:,}/{r.ties:,}/{r.losses:,}" if r.effect.name else "-" for r in rows],
    }
    if table.options.adjusts:
        shown["variance saved"] = [
            "-" if math.isnan(r.variance_saved) else f"{r.variance_saved:.1%}" for r in rows
        ]
    asked = _asked(rows)
    shown |= {heading: asked[name] for name, heading in _HEADINGS.items() if name in asked}
    return shown | {"verdict": [r.verdict for r in rows]}


def footnotes(table: ComparisonTable) -> list[str]:
    """The family of the correction, then every note once."""
    notes = dict.fromkeys(note for row in table.rows for note in row.notes)
    return [table.family, *table.notes, *notes]


def numbers(table: ComparisonTable) -> Columns:
    """Every number of every row."""
    rows = table.rows
    columns: Columns = {name: [getattr(r, name) for r in rows] for name in _PLAIN}
    columns |= {
        "low": [r.interval.low for r in rows],
        "high": [r.interval.high for r in rows],
        "effect": [r.effect.value for r in rows],
        "effect_low": [r.effect.interval.low for r in rows],
        "effect_high": [r.effect.interval.high for r in rows],
        "effect_label": [r.effect.label for r in rows],
        "relative_low": [r.relative_interval.low for r in rows],
        "relative_high": [r.relative_interval.high for r in rows],
    }
    if table.options.adjusts:
        columns["variance_saved"] = [r.variance_saved for r in rows]
        columns["notes"] = ["; ".join(r.notes) for r in rows]
    return columns | _asked(rows)


def _asked(rows: Sequence[Row]) -> Columns:
    """What margin=, no_worse_than= and rope= ask for; metrics that are no means have no posterior."""
    columns: Columns = {
        f"{name}_p": [getattr(r, name).p_value for r in rows]
        for name in ("equivalence", "non_inferiority")
        if any(getattr(r, name) is not None for r in rows)
    }
    if any(r.bayes is not None for r in rows):
        for name in ("p_worse", "p_equal", "p_better"):
            columns[name] = [math.nan if r.bayes is None else getattr(r.bayes, name) for r in rows]
    return columns
