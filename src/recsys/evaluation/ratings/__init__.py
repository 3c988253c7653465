"""evaluate_ratings(): predicted against actual numbers, over all rows and per user.

Rows are sorted by user and by their two numbers, so no value depends on the order of the input, and
pooled sums are exact. The result is an Evaluation, so compare, slices and exports work on it as on any other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.evaluation.groups import masks_by_label
from recsys.evaluation.ratings.rating_results import RatingEvaluation, RatingRows
from recsys.evaluation.ratings.rating_rows import read_both, read_predictions, rows_of_pairs
from recsys.inputs.rows import Rows, finite_numbers
from recsys.metrics import lookup_rating
from recsys.metrics.registry import set_requests
from recsys.metrics.requests import Request
from recsys.types import Float, Ids

Metrics = str | Iterable[str | Request] | None

SETS: dict[str, tuple[str, ...]] = {name: set_requests(name) for name in ("ratings", "clicks")}

__all__ = [
    "SETS",
    "RatingEvaluation",
    "evaluate_ratings",
    "parse_ratings",
    "read_predictions",
    "rows_of_pairs",
]


def evaluate_ratings(
    predictions: Any,
    truth: Any = None,
    metrics: Metrics = None,
    *,
    scale: tuple[float, float] | None = None,
    clip: bool = False,
    missing: str = "error",
    by: Mapping[Any, Any] | Callable[[Any], Any] | None = None,
    columns: Mapping[str, str] | None = None,
) -> RatingEvaluation:
    """Score predicted ratings, or predicted click probabilities, against the actual ones.

    Args:
        predictions: a table with user, prediction and rating (or label, click, …) columns, one row per rating
        or impression; or {user: [(predicted, actual), …]}.
        truth: the actual ratings as a table or {user: {item: rating}}, if `predictions` has none: the
            two are joined by user and item.
        metrics: names such as "rmse" or "user_mae", or one of the sets "ratings" (default) and "clicks".
        scale: lowest and highest possible rating; an actual rating outside it is an error.
        clip: move predictions outside the scale to its border (counted).
        missing: "error", or "skip" to leave out and count ratings without a prediction.
        by: group of each user, as {user: group} or a function of the user id; results per group.
        columns: column names if detection fails: {"user": "uid", "prediction": "p", "actual": "stars"}.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"user": [1, 1, 2], "rating": [4, 2, 5], "prediction": [3.0, 2.0, 3.0]})
    >>> print(evaluate_ratings(table, metrics=["rmse", "user_rmse", "bias"]))
    metric       value  cases
    ---------  -------  -----
    rmse        1.2910      2
    user_rmse   1.3536      2
    bias       -1.0000      2
    <BLANKLINE>
    3 rows of 2 users
    a plain name is over all rows, user_ the mean over users
    """
    requests = parse_ratings(metrics)
    rows, counts = read_both(predictions, truth, columns, missing)
    actual = finite_numbers(np.zeros(0) if rows.grade is None else rows.grade, rows, "rating")
    predicted = finite_numbers(np.zeros(0) if rows.score is None else rows.score, rows, "prediction")
    if scale is not None or clip:
        predicted = _apply_scale(rows, actual, predicted, scale, clip=clip, counts=counts)
    used = np.unique(rows.case)  # a user without any remaining row has no values
    cases = Ids(rows.cases.values[used])
    rated = RatingRows.sorted(cases, np.searchsorted(used, rows.case), actual, predicted)
    if any(r.metric.punishes_certainty for r in requests):
        counts["certain_and_wrong"] = int((np.abs(rated.predicted - rated.actual) == 1).sum())
    groups = None if by is None else masks_by_label(rated.cases.values, by)
    return RatingEvaluation(rated, requests, by=groups, notes=dict(rows.notes), counts=counts)


def parse_ratings(metrics: Metrics) -> list[Request]:
    """Requests of rating metrics, in the order of `metrics`, without repeats."""
    names: Any = SETS["ratings"] if metrics is None else metrics
    if isinstance(names, str):
        names = SETS.get(names) or [part for part in re.split(r",(?![^()]*\))", names) if part.strip()]
    requests = {str(r): r for r in (Request.parse(text, lookup_rating) for text in names)}
    if not requests:
        raise InputError("no metric was asked for.", hint='Ask for one, such as "rmse".')
    return list(requests.values())


def _apply_scale(
    rows: Rows,
    actual: Float,
    predicted: Float,
    scale: tuple[float, float] | None,
    *,
    clip: bool,
    counts: dict[str, int],
) -> Float:
    if scale is None or not scale[0] < scale[1]:
        raise InputError(f"scale={scale!r} is no scale.", hint="Pass the lowest and highest rating: (1, 5).")
    low, high = scale
    off_scale = (actual < low) | (actual > high)
    if off_scale.any():
        row = int(np.argmax(off_scale))
        raise InputError(
            f"the rating {actual[row]:g} in {rows.name(row)} lies outside the scale from {low:g} to {high:g} "
            f"({int(off_scale.sum())} such rows).",
            table=rows.table,
            column="rating",
            row=row,
            hint="Mend the data, or state the scale it really has.",
        )
    n_outside = int(((predicted < low) | (predicted > high)).sum())
    counts["clipped" if clip else "outside_scale"] = n_outside
    return np.clip(predicted, low, high) if clip else predicted
