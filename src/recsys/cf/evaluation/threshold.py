"""Seed 003's compute_metrics: predicted and true numbers of each user, relevant from a threshold on.

Only the items a user has in the test are ranked, by predicted value; equal predictions keep the order they
were given in. A user without relevant items has no recall and no NDCG (None) and is left out of those
means; precision and hit rate count 0.
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
from recsys.inputs.rows import Rows, numbers, to_interactions, to_lists
from recsys.metrics import RATINGS, lookup
from recsys.types import Lists

Pairs = Mapping[Any, Sequence[tuple[float, float]] | Any]
_WORDS = Conventions.named("seed003").but(duplicates="first")
_NAMES = {"hitrate": "hit", "hit_rate": "hit", "hr": "hit"}
METRICS = ("precision", "recall", "ndcg", "hit_rate", "rmse")


def compute_metrics(
    user_pred_true: Pairs,
    metrics: Iterable[str] = METRICS,
    k: int = 10,
    threshold: float = 3.5,
) -> dict[str, float | None]:
    """{metric: value} over all users, under the names asked for.

    Args:
        user_pred_true: {user: [(predicted, true), …]}, or an n x 2 array, a tensor or a zip a user.
        metrics: "rmse", "mse", "mae" over all rows; "precision", "recall", "ndcg", "hit_rate", "map", "mrr"
            of each user's k items with the highest predictions.
        k: how long the list is.
        threshold: true values from here on are relevant.

    >>> given = {"ann": [(4.5, 5.0), (4.0, 2.0), (1.0, 4.0)], "bob": [(3.0, 1.0)]}
    >>> compute_metrics(given, ["precision", "recall", "hit_rate", "mae"], k=2, threshold=3.5)
    {'precision': 0.25, 'recall': 0.5, 'hit_rate': 0.5, 'mae': 1.875}
    """
    asked = _asked(metrics)
    ranked, rated = _evaluated(_held(user_pred_true), asked, k, threshold)
    out: dict[str, float | None] = {}
    for name, (kind, key) in asked.items():
        value = (rated if kind == "rating" else ranked)[f"{key}@{k}" if kind == "ranking" else key]  # type: ignore[index]
        out[name] = None if math.isnan(value) else value
    return out


def compute_user_metrics(
    user_pred_true: Pairs,
    metrics: Iterable[str] = METRICS,
    k: int = 10,
    threshold: float = 3.5,
) -> dict[Any, dict[str, float | None]]:
    """{user: {metric: value}}; None where the metric is not defined for the user.

    >>> compute_user_metrics({"bob": [(3.0, 1.0)]}, ["precision", "recall", "rmse"])
    {'bob': {'precision': 0.0, 'recall': None, 'rmse': 2.0}}
    """
    asked, given = _asked(metrics), _held(user_pred_true)
    ranked, rated = _evaluated(given, asked, k, threshold)
    out: dict[Any, dict[str, float | None]] = {user: {} for user in given}
    for name, (kind, key) in asked.items():
        result: Any = rated if kind == "rating" else ranked
        column = dict(
            zip(
                result.per_case.ids.tolist(),
                result.values_of(f"{key}@{k}" if kind == "ranking" else key).tolist(),
                strict=True,
            )
        )
        for user, values in out.items():
            value = column.get(user, math.nan)
            values[name] = None if math.isnan(value) else value
    return out


def _asked(metrics: Iterable[str]) -> dict[str, tuple[str, str]]:
    """{name as typed: (kind, name in the registry)}."""
    out = {}
    for name in [metrics] if isinstance(metrics, str) else metrics:
        key = _NAMES.get(str(name).lower(), str(name).lower())
        if key in RATINGS and key not in ("auc", "gauc"):
            out[name] = ("rating", key)
        else:
            found = lookup(key)[0]
            if found.at_k == "never" or found.needs:
                raise UnknownNameError("metric", name, METRICS)
            out[name] = ("ranking", key)
    if not out:
        raise UnknownNameError("metric list", metrics, METRICS)
    return out


def _held(given: Any) -> dict[Any, Any]:
    """{user: pairs}, also of a Series by user; what can be read once only, such as a zip, is kept."""
    if not hasattr(given, "items") or hasattr(given, "columns"):
        raise InputError(
            f"the predictions came as {type(given).__name__}.",
            table="predictions",
            hint="Pass {user: [(predicted, true), …]}; recsys.evaluate_ratings takes tables.",
        )
    return {user: held if hasattr(held, "__len__") else list(held) for user, held in given.items()}


def _evaluated(
    given: Pairs, asked: Mapping[str, tuple[str, str]], k: int, threshold: float
) -> tuple[Evaluation | None, RatingEvaluation | None]:
    ranked = [key for kind, key in asked.values() if kind == "ranking"]
    rated = [key for kind, key in asked.values() if kind == "rating"]
    rows = rows_of_pairs(given)
    true = numbers(_column(rows.grade), rows, "true value")
    predicted = numbers(_column(rows.score), rows, "predicted value")
    first = None
    if ranked:
        liked = np.flatnonzero(true >= threshold)
        truth = to_interactions(Rows("truth", rows.cases, rows.case[liked], rows.items, rows.item[liked]))
        lists = _in_order(rows, predicted)
        first = evaluate(lists, truth, ranked, k=k, conventions=_WORDS)
    return first, evaluate_ratings(given, metrics=rated) if rated else None


def _in_order(rows: Rows, predicted: Any) -> Lists:
    """Each user's items from the highest prediction; the order is the answer, so no scores are kept."""
    lists = to_lists(Rows("predictions", rows.cases, rows.case, rows.items, rows.item, score=predicted))
    return replace(lists, scores=None)


def _column(values: Any) -> Any:
    return np.zeros(0) if values is None else values
