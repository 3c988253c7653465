"""compute_metrics of document 003: an item is relevant if its true value reaches a threshold.

Only the test items of a user are ranked, by predicted value; equal predictions keep their order. A user
without relevant items has no recall and no NDCG (None) and is left out of those means; precision and hit rate
are 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import InputError, UnknownNameError
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.ratings import RatingEvaluation, evaluate_ratings, rows_of_pairs
from recsys.evaluation.results import Evaluation
from recsys.inputs.rows import Rows, finite_numbers, to_interactions, to_lists
from recsys.metrics import RATINGS, lookup

Pairs = Mapping[Any, Sequence[tuple[float, float]] | Any]
_CONVENTIONS = Conventions.named("rating_threshold").but(duplicates="first")
_ALIASES = {"hitrate": "hit", "hit_rate": "hit", "hr": "hit"}
METRICS = ("precision", "recall", "ndcg", "hit_rate", "rmse")


def compute_metrics(
    user_pred_true: Pairs,
    metrics: Iterable[str] = METRICS,
    k: int = 10,
    threshold: float = 3.5,
) -> dict[str, float | None]:
    """{metric: value} over all users, with the names in `metrics` as keys.

    Args:
        user_pred_true: {user: [(predicted, true), …]}; pairs may be an n x 2 array, a tensor or a zip.
        metrics: "rmse", "mse", "mae" over all rows; "precision", "recall", "ndcg", "hit_rate", "map", "mrr"
            of each user's k items with the highest predictions.
        k: the length of the lists.
        threshold: the lowest true value that is relevant.

    >>> predictions = {"ann": [(4.5, 5.0), (4.0, 2.0), (1.0, 4.0)], "bob": [(3.0, 1.0)]}
    >>> compute_metrics(predictions, ["precision", "recall", "hit_rate", "mae"], k=2, threshold=3.5)
    {'precision': 0.25, 'recall': 0.5, 'hit_rate': 0.5, 'mae': 1.875}
    """
    requests = _parse_metrics(metrics)
    rankings, ratings = _evaluate_rankings_and_ratings(_pairs_by_user(user_pred_true), requests, k, threshold)
    values: dict[str, float | None] = {}
    for name, (kind, metric) in requests.items():
        result: Any = ratings if kind == "rating" else rankings
        value = result[f"{metric}@{k}" if kind == "ranking" else metric]
        values[name] = None if math.isnan(value) else value
    return values


def compute_user_metrics(
    user_pred_true: Pairs,
    metrics: Iterable[str] = METRICS,
    k: int = 10,
    threshold: float = 3.5,
) -> dict[Any, dict[str, float | None]]:
    """{user: {metric: value}}; None if the metric is not defined for the user.

    >>> compute_user_metrics({"bob": [(3.0, 1.0)]}, ["precision", "recall", "rmse"])
    {'bob': {'precision': 0.0, 'recall': None, 'rmse': 2.0}}
    """
    requests, pairs = _parse_metrics(metrics), _pairs_by_user(user_pred_true)
    rankings, ratings = _evaluate_rankings_and_ratings(pairs, requests, k, threshold)
    values_by_user: dict[Any, dict[str, float | None]] = {user: {} for user in pairs}
    for name, (kind, metric) in requests.items():
        result: Any = ratings if kind == "rating" else rankings
        values = result.values_of(f"{metric}@{k}" if kind == "ranking" else metric).tolist()
        column = dict(zip(result.per_case.ids.tolist(), values, strict=True))
        for user, user_values in values_by_user.items():
            value = column.get(user, math.nan)
            user_values[name] = None if math.isnan(value) else value
    return values_by_user


def _parse_metrics(metrics: Iterable[str]) -> dict[str, tuple[str, str]]:
    """{name as typed: (kind, name in the registry)}."""
    requests = {}
    for name in [metrics] if isinstance(metrics, str) else metrics:
        key = _ALIASES.get(str(name).lower(), str(name).lower())
        if key in RATINGS and key not in ("auc", "gauc"):
            requests[name] = ("rating", key)
        else:
            metric = lookup(key)[0]
            if metric.at_k == "never" or metric.needs:
                raise UnknownNameError("metric", name, METRICS)
            requests[name] = ("ranking", key)
    if not requests:
        raise UnknownNameError("metric list", metrics, METRICS)
    return requests


def _pairs_by_user(user_pred_true: Any) -> dict[Any, Any]:
    """{user: pairs} of a mapping or a Series; pairs that can be read only once (a zip) become a list."""
    if not hasattr(user_pred_true, "items") or hasattr(user_pred_true, "columns"):
        raise InputError(
            f"the predictions came as {type(user_pred_true).__name__}.",
            table="predictions",
            hint="Pass {user: [(predicted, true), …]}; recsys.evaluate_ratings takes tables.",
        )
    return {
        user: pairs if hasattr(pairs, "__len__") else list(pairs) for user, pairs in user_pred_true.items()
    }


def _evaluate_rankings_and_ratings(
    pairs: Pairs, requests: Mapping[str, tuple[str, str]], k: int, threshold: float
) -> tuple[Evaluation | None, RatingEvaluation | None]:
    """One evaluation for the ranking metrics, one for the rating metrics; None where none is requested."""
    ranking_metrics = [metric for kind, metric in requests.values() if kind == "ranking"]
    rating_metrics = [metric for kind, metric in requests.values() if kind == "rating"]
    rows = rows_of_pairs(pairs)
    true = finite_numbers(_values_or_empty(rows.grade), rows, "true value")
    predicted = finite_numbers(_values_or_empty(rows.score), rows, "predicted value")
    rankings = None
    if ranking_metrics:
        liked = np.flatnonzero(true >= threshold)
        truth = to_interactions(Rows("truth", rows.cases, rows.case[liked], rows.items, rows.item[liked]))
        lists = to_lists(Rows("predictions", rows.cases, rows.case, rows.items, rows.item, score=predicted))
        lists = replace(lists, scores=None)  # the order is decided, so equal predictions are no ties
        rankings = evaluate(lists, truth, ranking_metrics, k=k, conventions=_CONVENTIONS)
    return rankings, evaluate_ratings(pairs, metrics=rating_metrics) if rating_metrics else None


def _values_or_empty(values: Any) -> Any:
    return np.zeros(0) if values is None else values
