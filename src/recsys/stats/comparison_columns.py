"""A comparison as columns: those that are printed, all numbers, and the footnotes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from recsys.stats.comparison_table import ComparisonTable, Row

Columns = dict[str, list[Any]]

_ROW_FIELDS = (
    "model", "baseline", "metric", "value", "baseline_value", "difference", "standard_error", "relative",
    "statistic", "p_value", "adjusted_p", "wins", "ties", "losses", "n_cases", "n_units", "test", "verdict",
)  # fmt: skip

# Equivalence has no column of its own: it is part of the verdict.
_HEADINGS = {
    "non_inferiority_p": "p, no worse", "p_worse": "P(worse)", "p_equal": "P(equal)", "p_better": "P(better)",
}  # fmt: skip


def display_columns(table: ComparisonTable) -> Columns:
    """The columns a reader sees, verdict last."""
    rows = table.rows
    columns: Columns = {
        "model": [r.model for r in rows],
        "metric": [r.metric for r in rows],
        "value": [r.value for r in rows],
        "against": [r.baseline for r in rows],
        "its value": [r.baseline_value for r in rows],
        "won/tied/lost": [f"{r.wins:,}/{r.ties:,}/{r.losses:,}" if r.effect.name else "-" for r in rows],
    }
    if table.options.adjusts:
        columns["variance saved"] = [
            "-" if math.isnan(r.variance_saved) else f"{r.variance_saved:.1%}" for r in rows
        ]
    requested = _margin_and_rope_columns(rows)
    columns |= {heading: requested[name] for name, heading in _HEADINGS.items() if name in requested}
    return columns | {"verdict": [r.verdict for r in rows]}


def footnotes(table: ComparisonTable) -> list[str]:
    """The family of the correction, the notes of the table, then each note of a row once."""
    notes = dict.fromkeys(note for row in table.rows for note in row.notes)
    return [table.family, *table.notes, *notes]


def number_columns(table: ComparisonTable) -> Columns:
    """All numbers of all rows, by name."""
    rows = table.rows
    columns: Columns = {name: [getattr(r, name) for r in rows] for name in _ROW_FIELDS}
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
    return columns | _margin_and_rope_columns(rows)


def _margin_and_rope_columns(rows: Sequence[Row]) -> Columns:
    """The columns that margin=, no_worse_than= and rope= add; no posterior where a metric is not a mean."""
    columns: Columns = {
        f"{name}_p": [getattr(r, name).p_value for r in rows]
        for name in ("equivalence", "non_inferiority")
        if any(getattr(r, name) is not None for r in rows)
    }
    if any(r.bayes is not None for r in rows):
        for name in ("p_worse", "p_equal", "p_better"):
            columns[name] = [math.nan if r.bayes is None else getattr(r.bayes, name) for r in rows]
    return columns
