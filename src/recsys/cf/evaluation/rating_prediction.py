"""Seed 004's evaluate_rating_prediction and precision_recall_at_k, for torch modules and functions.

A model is called with user ids and item ids, as in the seed, in batches; it is left in the mode it was in.
Precision and recall rank the items of the test set unless candidates="catalogue": a narrower choice than a
live system has, which makes both look better.
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
from recsys.inputs.rows import Rows, numbers, to_interactions
from recsys.ranks.sources import Scores
from recsys.ranks.sources.fitted_models import pair_scorer, pair_scores
from recsys.types import Float, Interactions

Candidates = Literal["test", "catalogue"]
_WORDS = Conventions.named("seed004").but(duplicates="first", ties="by_id")
_OWN = {"user": "userId", "item": "movieId", "actual": "rating"}
_WRITTEN = {"mse": "MSE", "rmse": "RMSE", "mae": "MAE", "r2": "R2"}


def evaluate_rating_prediction(
    model: Any,
    df_test: Any,
    unsqueeze: bool = False,  # noqa: FBT001, FBT002 - the seed's signature
    *,
    metrics: Iterable[str] = ("mse", "rmse", "mae"),
    columns: Any = None,
) -> dict[str, float]:
    """{"MSE": …, "RMSE": …, "MAE": …} of a model's predictions for the rows of `df_test`.

    Args:
        model: a torch module (which gets tensors), a function of (users, items) or an object with predict
            (which get arrays).
        df_test: a table with userId, movieId and rating columns (or others that say user, item, rating).
        unsqueeze: accepted for the seed's sake; predictions of shape (n,) and (n, 1) are both taken.
        metrics: more of them by name: "r2", "explained_variance", "bias", "user_rmse", …
        columns: names where detection fails: {"user": "uid"}.
    """
    del unsqueeze
    requests = parse_ratings(list(metrics))
    rows, rating = _ratings(df_test, columns, "df_test")
    users, items = rows.cases.values[rows.case], rows.items.values[rows.item]
    table = {"user": users, "rating": rating, "prediction": pair_scores(model, users, items)}
    import pandas as pd

    found = evaluate_ratings(pd.DataFrame(table), metrics=requests)
    return {_WRITTEN.get(name, name): value for name, value in found.items()}


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

    See evaluate_ranking, which gives the same two numbers and any other metric, with users behind them.
    """
    found = evaluate_ranking(
        model, df_test, df_train, k, threshold,
        metrics=("precision", "recall"), candidates=candidates, columns=columns,
    )  # fmt: skip
    return found[f"precision@{k}"], found[f"recall@{k}"]


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
    """The seed's ranking metrics: each user's unseen candidates ranked by the model.

    Args:
        model: as in evaluate_rating_prediction.
        df_test: ratings to find; an item is relevant from `threshold` on.
        df_train: who had what before; a user's own items are no candidates. Ratings are not looked at.
        k: how long the list is.
        threshold: the least rating that is relevant.
        metrics: names of the registry; "ndcg" has the gain 2^rating - 1, as the seed writes it.
        candidates: "test" ranks the items that occur in `df_test`, as the seed does; "catalogue" those of
            both tables.
        columns: names where detection fails: {"user": "uid"}.
    """
    if candidates not in ("test", "catalogue"):
        raise UnknownNameError("choice of candidates", candidates, ("test", "catalogue"))
    rows, rating = _ratings(df_test, columns, "df_test")
    seen = _seen(df_train, columns)
    liked = rating >= threshold
    if not liked.any():
        raise InputError(
            f"no rating in df_test reaches the threshold {threshold:g}, the highest is {rating.max():g}.",
            table="df_test",
            hint="Lower the threshold.",
        )
    source = _scores(model, rows, seen, candidates)
    return evaluate(
        source,
        _relevant(rows, rating, liked),
        list(metrics),
        k=k,
        seen=None if seen is None else to_interactions(seen),
        conventions=_WORDS,
    )


def _scores(model: Any, test: Rows, train: Rows | None, candidates: str) -> Scores:
    """Scores of every user of the test and every candidate, by id, in blocks."""
    users = np.unique(test.cases.values[test.case])
    items = np.unique(test.items.values[test.item])
    if candidates == "catalogue" and train is not None:
        items = np.union1d(items, train.items.values[train.item])
    score = pair_scorer(model, batch=1 << 16)

    def block(places: Any) -> Any:
        who = np.repeat(users[places], len(items))
        return score(who, np.tile(items, len(places))).reshape(len(places), len(items))

    return Scores(
        block, n_users=len(users), n_items=len(items), user_ids=users.tolist(), item_ids=items.tolist()
    )


def _relevant(rows: Rows, rating: Float, liked: Any) -> Interactions:
    """What each user liked, with the rating as grade; users who liked nothing are left out."""
    names = rows.cases.values[rows.case[liked]]
    from recsys.inputs.ids import encode

    cases, case = encode(names, table="df_test", column="user")
    # A rating of 0 or less would read as "not relevant"; such scales are ranked without grades.
    grade = rating[liked] if rating[liked].min() > 0 else None
    return to_interactions(Rows("df_test", cases, case, rows.items, rows.item[liked], grade=grade))


def _ratings(table: Any, columns: Any, name: str) -> tuple[Rows, Float]:
    rows = read_predictions(table, held=("actual",), columns=_spelled(table, columns), table=name)
    given = np.zeros(0) if rows.grade is None else rows.grade
    return rows, numbers(given, rows, "rating")


def _seen(table: Any, columns: Any) -> Rows | None:
    """Who had what; None where that is nothing."""
    frame = as_frame(table)
    if table is None or (frame is not None and len(frame) == 0):
        return None
    rows = read_predictions(table, held=(), columns=_spelled(table, columns), table="df_train")
    return Rows(rows.table, rows.cases, rows.case, rows.items, rows.item)


def _spelled(table: Any, columns: Any) -> dict[str, Any] | None:
    """The seed's own columns before any others that could be meant; `rating` is `actual` to the readers."""
    said = {"actual" if n == "rating" else n: v for n, v in dict(columns or {}).items()}
    frame = as_frame(table)
    names = () if frame is None else frame.columns
    own = {role: name for role, name in _OWN.items() if role not in said and name in names}
    return {**own, **said} or None
