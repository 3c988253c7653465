"""Which cases count in the mean of a metric, and what a case without relevant items or without a list gets.

NaN leaves a case out of the mean. The conventions `no_truth` and `no_list` decide, for tables and for one
list.
"""

from __future__ import annotations

import math

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import DuplicateError, InputError, OutOfBoundsError
from recsys.metrics import Metric
from recsys.metrics.case_reading import Reading
from recsys.metrics.requests import Request
from recsys.ranks.ranked_truth import RankedTruth
from recsys.types import Float

_ROUNDING = 1e-9


def value_without_truth(metric: Metric, no_truth: str) -> float:
    """The value of a case without relevant items; a metric that has no worst value leaves it out."""
    counts = no_truth in ("zero", "unjudged") and not math.isnan(metric.empty)
    return 0.0 if counts else math.nan


def apply_case_rules(
    request: Request, rules: Conventions, values: Float, reading: Reading, judged: RankedTruth
) -> Float:
    """The column with the rules for cases without truth or list applied, and its range checked."""
    metric = request.metric
    no_truth, no_list = reading.without_truth(metric.population), reading.without_list
    for mask, rule, what in (
        (no_truth, "no_truth", "relevant items"),
        (no_list, "no_list", "recommendations"),
    ):
        if mask is not None and getattr(rules, rule) == "error":
            raise InputError(
                f"user {judged.cases.name(np.argmax(mask))!r} has no {what} ({int(mask.sum())} such users).",
                hint=f"Drop them, or set {rule}='skip'.",
            )
    out = values
    if no_list is not None:
        out = np.where(no_list, metric.empty, out)
    if no_truth is not None:
        out = np.where(no_truth, value_without_truth(metric, rules.no_truth), out)
        if rules.no_truth == "unjudged":
            out = np.where(reading.hits.n_judged == 0, math.nan, out)
    if no_list is not None and rules.no_list == "skip":
        out = np.where(no_list, math.nan, out)
    if judged.restricted and metric.population == "listed" and not metric.zero_of_none:
        out = np.where(reading.n_shown(request.k) == 0, math.nan, out)
    return _check_range(request, out, judged, repeats=rules.duplicates == "all")


def _check_range(request: Request, values: Float, judged: RankedTruth, *, repeats: bool) -> Float:
    low, high = request.metric.bounds
    if not len(values) or (values.min() >= low and values.max() <= high):
        return values
    outside = (values < low - _ROUNDING) | (values > high + _ROUNDING)
    if outside.any():
        case = int(np.argmax(outside))
        user = judged.cases.name(case)
        finding = f"{request} of user {user!r} is {values[case]:.6g}, outside [{low:g}, {high:g}]"
        if repeats:
            raise DuplicateError(
                f"{finding}: the list repeats an item and these conventions count it each time.",
                table="lists",
                hint="Drop the repeats, or use duplicates='first'.",
            )
        raise OutOfBoundsError(f"{finding}.", hint="Please report this: it is a defect of the metric.")
    return np.clip(values, low, high)
