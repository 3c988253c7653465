"""Which cases count in a mean: the decisions `no_truth` and `no_list`, and what candidates leave.

A column has NaN for a case that is in no mean of its metric.
"""

from __future__ import annotations

import math

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import Fix, InputError, Phrase
from recsys.metrics import Metric
from recsys.metrics.readings import Reading
from recsys.metrics.registry import Request
from recsys.ranks.ranked_truth import RankedTruth
from recsys.records.arrays import Float


def apply_case_rules(
    request: Request, rules: Conventions, values: Float, reading: Reading, judged: RankedTruth
) -> Float:
    """Return the column with NaN for cases that the rules leave out, and their value for empty ones."""
    metric = request.metric
    no_truth, no_list = reading.without_truth(metric.population), reading.without_list
    for mask, rule, what in (
        (no_truth, "no_truth", "relevant items"),
        (reading.given_no_list, "no_list", "recommendations"),
    ):
        if mask is not None and getattr(rules, rule) == "error":
            raise InputError(
                f"user {judged.cases.name(np.argmax(mask))!r} has no {what} ({int(mask.sum())} such users).",
                hint=Phrase("Drop them, or use {}.", Fix(rule, "skip")),
            )
    out = values
    if no_list is not None and metric.empty is not None:
        out = np.where(no_list, metric.empty, out)
    if no_truth is not None:
        out = np.where(no_truth, value_without_truth(metric, rules.no_truth), out)
        if rules.no_truth == "unjudged":
            out = np.where(reading.hits.n_judged == 0, math.nan, out)
    if reading.given_no_list is not None and rules.no_list == "skip":
        out = np.where(reading.given_no_list, math.nan, out)
    if judged.restricted and metric.population == "listed" and not metric.shown.zero_of_none:
        out = np.where(reading.n_shown(request.k) == 0, math.nan, out)
    return out


def value_without_truth(metric: Metric, no_truth: str) -> float:
    """Return the value of a case without relevant items; a metric that has no worst value leaves it out."""
    has_worst = metric.empty is None or not math.isnan(metric.empty)
    counts = no_truth in ("zero", "unjudged") and has_worst
    return 0.0 if counts else math.nan
