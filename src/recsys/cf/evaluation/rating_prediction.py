"""evaluate_rating_prediction and precision_recall_at_k of document 004, for torch modules and functions.

A model is called with user ids and item ids, in batches; its mode is restored. As in the document, precision
and recall rank only the items of the test set unless candidates="catalogue". A live system chooses among more
items, so both numbers look better than they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import InputError, UnknownNameError
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.ratings import evaluate_ratings, parse_ratings, read_predictions
from recsys.evaluation.results import Evaluation
from recsys.inputs.frames import as_frame
from recsys.inputs.ids import encode
from recsys.inputs.rows import Rows, finite_numbers, to_interactions
from recsys.ranks.sources import Scores
from recsys.ranks.sources.fitted_models import pair_scorer, pair_scores
from recsys.types import Float

Candidates = Literal["test", "catalogue"]
_CONVENTIONS = Conventions.named("rating_and_ranking").but(duplicates="first", ties="by_id")
_DOCUMENT_COLUMNS = {"user": "userId", "item": "movieId", "actual": "rating"}
_RESULT_KEYS = {"mse": "MSE", "rmse": "RMSE", "mae": "MAE", "r2": "R2"}


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
    rows, rating = _read_ratings(df_test, columns, "df_test")
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
        model, df_test, df_train, k, threshold,
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
    rows, rating = _read_ratings(df_test, columns, "df_test")
    seen = _read_history(df_train, columns)
    liked = rating >= threshold
    if not liked.any():
        raise InputError(
            f"no rating in df_test reaches the threshold {threshold:g}, the highest is {rating.max():g}.",
            table="df_test",
            hint="Lower the threshold.",
        )
    # Users who liked nothing are left out. A rating of 0 or less would mean "not relevant"; such scales are
    # evaluated without grades.
    cases, case = encode(rows.cases.values[rows.case[liked]], table="df_test", column="user")
    grade = rating[liked] if rating[liked].min() > 0 else None
    truth = to_interactions(Rows("df_test", cases, case, rows.items, rows.item[liked], grade=grade))
    return evaluate(
        _score_source(model, rows, seen, candidates),
        truth,
        list(metrics),
        k=k,
        seen=None if seen is None else to_interactions(seen),
        conventions=_CONVENTIONS,
    )


def _score_source(model: Any, test: Rows, train: Rows | None, candidates: str) -> Scores:
    """The scores of every test user for every candidate, computed in blocks."""
    users = np.unique(test.cases.values[test.case])
    items = np.unique(test.items.values[test.item])
    if candidates == "catalogue" and train is not None:
        items = np.union1d(items, train.items.values[train.item])
    score = pair_scorer(model, batch=1 << 16)

    def block(rows: Any) -> Any:
        user_column = np.repeat(users[rows], len(items))
        return score(user_column, np.tile(items, len(rows))).reshape(len(rows), len(items))

    return Scores(
        block, n_users=len(users), n_items=len(items), user_ids=users.tolist(), item_ids=items.tolist()
    )


def _read_ratings(table: Any, columns: Any, name: str) -> tuple[Rows, Float]:
    rows = read_predictions(table, held=("actual",), columns=_column_names(table, columns), table=name)
    grades = np.zeros(0) if rows.grade is None else rows.grade
    return rows, finite_numbers(grades, rows, "rating")


def _read_history(table: Any, columns: Any) -> Rows | None:
    """The training interactions; None if there are none."""
    frame = as_frame(table)
    if table is None or (frame is not None and len(frame) == 0):
        return None
    rows = read_predictions(table, held=(), columns=_column_names(table, columns), table="df_train")
    return Rows(rows.table, rows.cases, rows.case, rows.items, rows.item)


def _column_names(table: Any, columns: Any) -> dict[str, Any] | None:
    """`columns`, then those of the document that the table has; the readers call `rating` `actual`."""
    chosen = {"actual" if n == "rating" else n: v for n, v in dict(columns or {}).items()}
    frame = as_frame(table)
    names = () if frame is None else frame.columns
    known = {role: name for role, name in _DOCUMENT_COLUMNS.items() if role not in chosen and name in names}
    return {**known, **chosen} or None
