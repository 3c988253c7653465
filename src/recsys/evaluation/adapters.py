"""Results of other libraries as lists and truth, and our metrics in the shapes they expect.

Tables with known columns (RecTools, RecBole, LensKit) need no adapter: evaluate reads them. This module holds
the rest: objects and arrays whose meaning only their library knows. None of the libraries is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Unpack

import numpy as np

from recsys.errors import InputError
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.evaluate_keywords import ScoreKeywords, ScorerKeywords
from recsys.inputs import read_lists
from recsys.ranks.open_ranking import ranking_kind
from recsys.ranks.sources import Scores
from recsys.records.arrays import Interactions, Lists

__all__ = [
    "from_implicit",
    "from_lenskit",
    "from_recbole",
    "from_surprise",
    "score_function",
    "scorer",
]


def from_implicit(users: Iterable[Any], items: Any, scores: Any = None, *, item_ids: Any = None) -> Lists:
    """Lists of what implicit's `model.recommend(users, …)` returned: rows of item numbers and scores.

    >>> lists = from_implicit(["ann", "bob"], [[2, 0], [1, -1]], [[0.9, 0.2], [0.5, -3.4e38]])
    >>> lists.sizes.tolist()
    [2, 1]
    """
    rows, user_list = np.asarray(items), list(users)
    if rows.ndim != 2 or len(rows) != len(user_list):
        raise InputError(f"{len(user_list)} users came with item numbers of shape {rows.shape}.")
    names = None if item_ids is None else np.asarray(item_ids)
    score_rows = None if scores is None else np.asarray(scores, dtype=np.float64)
    # implicit fills a list that is too short with -1 and the lowest float.
    lists: dict[Any, Any] = {}
    for place, user in enumerate(user_list):
        valid = rows[place] >= 0
        item_numbers = rows[place][valid]
        shown = (item_numbers if names is None else names[item_numbers]).tolist()
        lists[user] = (
            shown if score_rows is None else list(zip(shown, score_rows[place][valid].tolist(), strict=True))
        )
    return read_lists(lists)


def from_lenskit(collection: Any) -> Any:
    """Return the table of a LensKit ItemListCollection, which evaluate reads as lists or as truth."""
    return collection.to_df()


def from_surprise(predictions: Iterable[Any]) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Lists (by estimate) and truth (by true rating) of Surprise's predictions.

    The candidates are the user's own test items, as always with `algo.test`: good for rmse, flattering for
    ranking metrics.

    >>> from collections import namedtuple
    >>> prediction = namedtuple("prediction", "uid iid r_ui est details")
    >>> from_surprise([prediction("ann", "a", 4.0, 3.5, {}), prediction("ann", "b", 2.0, 3.9, {})])
    ({'ann': [('a', 3.5), ('b', 3.9)]}, {'ann': {'a': 4.0, 'b': 2.0}})
    """
    lists: dict[Any, list[tuple[Any, float]]] = {}
    truth: dict[Any, dict[Any, float]] = {}
    for prediction in predictions:
        lists.setdefault(prediction.uid, []).append((prediction.iid, float(prediction.est)))
        if prediction.r_ui is not None:
            truth.setdefault(prediction.uid, {})[prediction.iid] = float(prediction.r_ui)
    return lists, truth


def from_recbole(users: Any, top_items: Any, *, dataset: Any = None) -> dict[Any, list[Any]]:
    """Lists of RecBole's `full_sort_topk`: internal numbers, or the original tokens with `dataset`.

    >>> from_recbole([1], [[3, 2]])
    {1: [3, 2]}
    """
    user_list, rows = np.asarray(_on_cpu(users)).tolist(), np.asarray(_on_cpu(top_items)).tolist()
    if len(user_list) != len(rows):
        raise InputError(f"{len(user_list)} users came with {len(rows)} rows of items.")
    if dataset is None:
        return dict(zip(user_list, rows, strict=True))
    names = dataset.id2token(dataset.uid_field, user_list)
    return {
        str(name): [str(item) for item in dataset.id2token(dataset.iid_field, row)]
        for name, row in zip(names, rows, strict=True)
    }


def score_function(metric: str, **options: Unpack[ScoreKeywords]) -> Callable[[Any, Any], float]:
    """Return a metric in the form of scikit-learn.

    It is `f(y_true, y_score)`, both (cases, items) arrays, as ndcg_score.

    `sklearn.metrics.make_scorer(score_function("ndcg@10"), response_method="predict")` makes a scorer of it.

    >>> score_function("ndcg@2")([[1, 0, 0], [0, 1, 0]], [[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]]).__round__(4)
    0.8155
    """

    def score(y_true: Any, y_score: Any) -> float:
        from scipy.sparse import csr_array

        grades = np.atleast_2d(np.asarray(y_true, dtype=np.float64))
        scores = np.atleast_2d(np.asarray(y_score, dtype=np.float64))
        if grades.shape != scores.shape:
            raise InputError(f"y_true has shape {grades.shape} and y_score {scores.shape}.")
        return float(next(iter(evaluate(Scores(scores), csr_array(grades), [metric], **options).values())))

    score.__name__ = metric
    return score


def scorer(
    metric: str, *, k: int = 10, seen: Any = None, **options: Unpack[ScorerKeywords]
) -> Callable[[Any, Any, Any], float]:
    """Return a scikit-learn scorer `f(estimator, X, y)`.

    X are the users, y is the truth ({user: items} or a table).

    The estimator recommends with `recommend(users, k)` or `recommend(user, k)`, or holds factors.

    >>> class Always:
    ...     def recommend(self, user, n):
    ...         return [(1, 0.9), (2, 0.5)][:n]
    >>> scorer("hit@1", k=1)(Always(), ["ann", "bob"], {"ann": [1], "bob": [2]})
    0.5
    """

    def score(estimator: Any, users: Any, y: Any) -> float:
        if ranking_kind(estimator) != "recommender":
            return float(evaluate(estimator, y, [metric], seen=seen, **options)[metric])
        if isinstance(users, Mapping | Interactions):
            raise InputError(
                "X holds the users to recommend to, one per row.", hint="Pass a list or an array of ids."
            )
        ids = users if isinstance(users, list) else np.asarray(users).ravel().tolist()
        lists = {user: estimator.recommend(user, k) for user in ids}
        return float(evaluate(lists, y, [metric], seen=seen, **options)[metric])

    return score


def _on_cpu(values: Any) -> Any:
    return values.detach().cpu().numpy() if hasattr(values, "detach") else values


def __dir__() -> list[str]:
    return __all__
