"""The functions of documents 003 and 004: predicted ratings, and the lists they rank.

`compute_metrics` and `compute_user_metrics` (003) take pairs of predicted and true value. An item is relevant
if its true value reaches a threshold. Only the test items of a user are ranked, by predicted value; equal
predictions keep their order, with a TieWarning where it matters. A user without relevant items has no recall
and no NDCG (None) and is left out of those means; precision and hit rate are 0.

`evaluate_rating_prediction`, `evaluate_ranking` and `precision_recall_at_k` (004) take torch modules and
functions. A model is called with user ids and item ids, in batches; its mode is restored. As in the document,
precision and recall rank only the items of the test set unless candidates="catalogue". A live system chooses
among more items, so both numbers look better than they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from recsys.cf.evaluation.translation import cutoff, finite
from recsys.conventions.decisions import Conventions
from recsys.errors import InputError, TieWarning, UnknownNameError, hush, warn
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.ratings import evaluate_ratings, parse_ratings, read_predictions, rows_of_pairs
from recsys.evaluation.results import Evaluation
from recsys.inputs.frames import as_frame
from recsys.inputs.ids import encode
from recsys.inputs.rows import Rows, finite_numbers, to_interactions, to_lists
from recsys.metrics import RATINGS, lookup
from recsys.ranks.sources import Scores
from recsys.ranks.sources.fitted_models import pair_scorer, pair_scores
from recsys.records.json_values import none_if_nan

Candidates = Literal["test", "catalogue"]
Pairs = Mapping[Any, Sequence[tuple[float, float]] | Any]
_PAIR_CONVENTIONS = Conventions.named("rating_threshold").but(duplicates="first", ties="given")
_MODEL_CONVENTIONS = Conventions.named("rating_and_ranking").but(duplicates="first", ties="by_id")
_ALIASES = {"hitrate": "hit", "hit_rate": "hit", "hr": "hit"}
_PAIR_METRICS = ("precision", "recall", "ndcg", "hit_rate", "rmse")
_ROW_METRICS = frozenset(RATINGS) - {"auc", "gauc"}
_DOCUMENT_COLUMNS = {"user": "userId", "item": "movieId", "actual": "rating"}
_RESULT_KEYS = {"mse": "MSE", "rmse": "RMSE", "mae": "MAE", "r2": "R2"}


def compute_metrics(
    user_pred_true: Pairs,
    metrics: Iterable[str] = _PAIR_METRICS,
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
    columns = _evaluate_pairs(_pairs_by_user(user_pred_true), metrics, k, threshold)
    return {name: none_if_nan(result[key]) for name, (result, key) in columns.items()}


def compute_user_metrics(
    user_pred_true: Pairs,
    metrics: Iterable[str] = _PAIR_METRICS,
    k: int = 10,
    threshold: float = 3.5,
) -> dict[Any, dict[str, float | None]]:
    """{user: {metric: value}}; None if the metric is not defined for the user.

    >>> compute_user_metrics({"bob": [(3.0, 1.0)]}, ["precision", "recall", "rmse"])
    {'bob': {'precision': 0.0, 'recall': None, 'rmse': 2.0}}
    """
    pairs = _pairs_by_user(user_pred_true)
    values_by_user: dict[Any, dict[str, float | None]] = {user: {} for user in pairs}
    for name, (result, key) in _evaluate_pairs(pairs, metrics, k, threshold).items():
        column = dict(zip(result.per_case.ids.tolist(), result.values_of(key).tolist(), strict=True))
        for user, values in values_by_user.items():
            values[name] = none_if_nan(column.get(user, math.nan))
    return values_by_user


def _pairs_by_user(user_pred_true: Any) -> dict[Any, Any]:
    """{user: pairs} of a mapping or a Series; pairs that can be read only once (a zip) become a list."""
    if hasattr(user_pred_true, "columns"):
        raise InputError(
            "the predictions came as a table.", hint="recsys.evaluate_ratings takes tables of predictions."
        )
    return {
        user: pairs if hasattr(pairs, "__len__") else list(pairs) for user, pairs in user_pred_true.items()
    }


def _evaluate_pairs(
    pairs: Pairs, metrics: Iterable[str], k: int, threshold: float
) -> dict[str, tuple[Any, str]]:
    """{metric as typed: (the evaluation that has it, its name there)}: one of ratings, one of rankings."""
    k, threshold, keys = cutoff(k), finite(threshold, "threshold"), {}
    for name in [metrics] if isinstance(metrics, str) else metrics:
        key = _ALIASES.get(str(name).lower(), str(name).lower())
        if key not in _ROW_METRICS:
            metric = lookup(key)[0]
            if metric.at_k == "never" or metric.needs:
                raise UnknownNameError("metric", name, _PAIR_METRICS)
        keys[name] = key
    if not keys:
        raise UnknownNameError("metric list", metrics, _PAIR_METRICS)
    rows = rows_of_pairs(pairs)
    true = finite_numbers(np.asarray(rows.grade), rows, "true value")
    predicted = finite_numbers(np.asarray(rows.score), rows, "predicted value")
    rankings: Any = None
    ranking_metrics = [key for key in keys.values() if key not in _ROW_METRICS]
    if ranking_metrics:
        liked = np.flatnonzero(true >= threshold)
        truth = to_interactions(Rows("truth", rows.cases, rows.case[liked], rows.items, rows.item[liked]))
        lists = to_lists(Rows("predictions", rows.cases, rows.case, rows.items, rows.item, score=predicted))
        with hush(TieWarning) as ties:
            rankings = evaluate(lists, truth, ranking_metrics, k=k, conventions=_PAIR_CONVENTIONS)
        for category, _ in ties:
            tied = f"{rankings.counts['tied']:,} of {rankings.counts['found']:,} judged items found"
            warn(category, f"{tied} have a tied prediction; equal predictions keep the order they came in.")
    rating_metrics = [key for key in keys.values() if key in _ROW_METRICS]
    ratings = evaluate_ratings(pairs, metrics=rating_metrics) if rating_metrics else None
    return {
        name: (ratings, key) if key in _ROW_METRICS else (rankings, f"{key}@{k}")
        for name, key in keys.items()
    }


def evaluate_rating_prediction(
    model: Any,
    df_test: Any,
    unsqueeze: bool = False,  # noqa: FBT001, FBT002 - the signature in document 004
    *,
    metrics: Iterable[str] = ("mse", "rmse", "mae"),
    columns: Any = None,
) -> dict[str, float]:
    """{"MSE": …, "RMSE": …, "MAE": …} of a model's predictions for the rows of `df_test`.

    Args:
        model: a torch module (which gets tensors), a function of (users, items) or an object with predict
            (which get arrays).
        df_test: a table with userId, movieId and rating columns (or others that say user, item, rating).
        unsqueeze: accepted and ignored; predictions may have the shape (n,) or (n, 1).
        metrics: names of metrics, also "r2", "explained_variance", "bias", "user_rmse", …
        columns: names of columns that are not detected: {"user": "uid"}.
    """
    del unsqueeze
    requests = parse_ratings(list(metrics))
    rows = _read_rows(df_test, columns, "df_test", "actual")
    rating = finite_numbers(np.asarray(rows.grade), rows, "rating")
    users, items = rows.cases.values[rows.case], rows.items.values[rows.item]
    table = {"user": users, "rating": rating, "prediction": pair_scores(model, users, items)}
    import pandas as pd

    result = evaluate_ratings(pd.DataFrame(table), metrics=requests)
    return {_RESULT_KEYS.get(name, name): value for name, value in result.items()}


def precision_recall_at_k(
    model: Any,
    df_test: Any,
    df_train: Any,
    k: int = 10,
    threshold: float = 4.0,
    *,
    candidates: Candidates = "test",
    columns: Any = None,
) -> tuple[float, float]:
    """Mean precision and recall of the k best unseen items, over users who rated `threshold` or more.

    evaluate_ranking returns the same two numbers and any other metric, with per-user values.
    """
    result = evaluate_ranking(
        model, df_test, df_train, cutoff(k), threshold,
        metrics=("precision", "recall"), candidates=candidates, columns=columns,
    )  # fmt: skip
    return result[f"precision@{k}"], result[f"recall@{k}"]


def evaluate_ranking(
    model: Any,
    df_test: Any,
    df_train: Any,
    k: int = 10,
    threshold: float = 4.0,
    *,
    metrics: Iterable[str] = ("precision", "recall", "ndcg", "map"),
    candidates: Candidates = "test",
    columns: Any = None,
) -> Evaluation:
    """The ranking metrics of document 004: the model ranks the unseen candidates of each user.

    Args:
        model: as in evaluate_rating_prediction.
        df_test: the test ratings; an item is relevant if its rating reaches `threshold`.
        df_train: the training interactions; a user's own items are not candidates. Ratings are ignored.
        k: the length of the lists.
        threshold: the lowest rating that is relevant.
        metrics: names of metrics; "ndcg" has the gain 2^rating - 1, as in the document.
        candidates: "test" ranks the items of `df_test`, as in the document; "catalogue" those of both tables.
        columns: names of columns that are not detected: {"user": "uid"}.
    """
    if candidates not in ("test", "catalogue"):
        raise UnknownNameError("choice of candidates", candidates, ("test", "catalogue"))
    threshold = finite(threshold, "threshold")
    test = _read_rows(df_test, columns, "df_test", "actual")
    rating = finite_numbers(np.asarray(test.grade), test, "rating")
    frame = as_frame(df_train)
    has_history = df_train is not None and (frame is None or len(frame) > 0)
    train = _read_rows(df_train, columns, "df_train") if has_history else None
    liked = rating >= threshold
    if not liked.any():
        raise InputError(
            f"no rating in df_test reaches the threshold {threshold:g}, the highest is {rating.max():g}.",
            table="df_test",
            hint="Lower the threshold.",
        )
    # Users who liked nothing are left out. A rating of 0 or less would mean "not relevant"; such scales are
    # evaluated without grades.
    cases, case = encode(test.cases.values[test.case[liked]], table="df_test", column="user")
    grade = rating[liked] if rating[liked].min() > 0 else None
    truth = to_interactions(Rows("df_test", cases, case, test.items, test.item[liked], grade=grade))

    # The scores of every test user for every candidate, computed in blocks.
    users = np.unique(test.cases.values[test.case])
    items = np.unique(test.items.values[test.item])
    if candidates == "catalogue" and train is not None:
        items = np.union1d(items, train.items.values[train.item])
    score = pair_scorer(model, batch=1 << 16)

    def block(rows: Any) -> Any:
        user_column = np.repeat(users[rows], len(items))
        return score(user_column, np.tile(items, len(rows))).reshape(len(rows), len(items))

    scores = Scores(
        block, n_users=len(users), n_items=len(items), user_ids=users.tolist(), item_ids=items.tolist()
    )
    seen = None
    if train is not None:
        seen = to_interactions(Rows(train.table, train.cases, train.case, train.items, train.item))
    return evaluate(scores, truth, list(metrics), k=k, seen=seen, conventions=_MODEL_CONVENTIONS)


def _read_rows(table: Any, columns: Any, name: str, *held: str) -> Rows:
    """A table by `columns`, then by those of the document it has; the readers call `rating` `actual`."""
    chosen = {"actual" if n == "rating" else n: v for n, v in dict(columns or {}).items()}
    frame = as_frame(table)
    names = () if frame is None else frame.columns
    known = {role: name for role, name in _DOCUMENT_COLUMNS.items() if role not in chosen and name in names}
    return read_predictions(table, held=held, columns={**known, **chosen} or None, table=name)
