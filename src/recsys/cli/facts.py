"""Metrics and presets as plain data: the command prints it, and the docs are made from it."""

from __future__ import annotations

import math
from typing import Any

from recsys.conventions.decisions import DECISIONS, Conventions, describe
from recsys.conventions.presets import PRESETS, Preset
from recsys.metrics import METRICS, Metric
from recsys.metrics.needs import NEEDS

_AT_K = {"optional": "optional", "required": "yes", "never": "no"}
_TIE_WORDS = {
    "linear": "exact expectation: the mean weight over the places of a group of equal scores",
    "own": "exact expectation, by its own formula",
    "shown": "none: the items shown are those of one order, by id unless the conventions say otherwise",
    "refuse": "no expectation; ties='best' and ties='worst' give the range",
}


def metric_facts(metric: Metric) -> dict[str, Any]:
    """Everything there is to know about one metric."""
    low, high = metric.bounds
    return {
        "name": metric.name,
        "meaning": metric.meaning,
        "details": metric.details,
        "formula": metric.formula,
        "at_k": _AT_K[metric.at_k],
        "better": metric.better,
        "bounds": [_json_bound(low), _json_bound(high)],
        "aliases": list(metric.aliases),
        "parameters": dict(metric.params),
        "conventions": list(metric.reads),
        "own_conventions": list(metric.conventions),
        "about_lists": "lists" in metric.needs,
        "needs": [NEEDS[need].words for need in metric.needs],
        "ties": _TIE_WORDS[metric.ties],
        "item_weights": metric.weighted,
        "reference": metric.reference,
    }


def all_metrics() -> list[dict[str, Any]]:
    """Every registered metric, by name."""
    return [metric_facts(METRICS[name]) for name in sorted(METRICS.load_plugins())]


def bounds_text(facts: dict[str, Any]) -> str:
    """[0, 1], or [0, inf) where there is no upper bound."""
    low, high = facts["bounds"]
    first = "(-inf" if low is None else f"[{low}"
    return f"{first}, inf)" if high is None else f"{first}, {high}]"


def preset_facts(row: Preset) -> dict[str, Any]:
    """Everything there is to know about one preset; its decisions where they differ from the default."""
    return {
        "name": row.name,
        "library": row.library,
        "version": row.version,
        "checked": row.checked,
        "aliases": list(row.aliases),
        "decisions": decisions(row.conventions),
        "per_metric": {m: dict(changes) for m, changes in row.conventions.per_metric},
        "defects": list(row.defects),
        "facts": list(row.facts),
    }


def all_presets() -> list[dict[str, Any]]:
    """Every preset, in the order of the registry."""
    return [preset_facts(row) for row in PRESETS.values()]


def decisions(conventions: Conventions) -> dict[str, dict[str, Any]]:
    """{decision: value, words} where these conventions depart from the default."""
    return {
        name: {"value": value, "words": describe(name, value)}
        for name, (value, _) in conventions.diff(Conventions()).items()
        if name != "per_metric"
    }


def choices(name: str) -> dict[str, str]:
    """The values a decision may take, and what each does."""
    if name in DECISIONS:
        return DECISIONS[name]
    return {"none": describe(name, None), "a number": describe(name, 4.0).replace("4", "g")}


def _json_bound(value: float) -> float | int | None:
    if math.isinf(value):
        return None
    return int(value) if value == int(value) else value
