"""Seed 001's functions of one list or of all lists, its splits, and its RecommenderEvaluator.

Words are translated and handed to the engine. Where the seed's code and the library differ on purpose: a
repeated item counts once, at its first place; and k <= 0 gives 0.0 in every function.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from recsys.cf.evaluation.model_lists import recommended_lists
from recsys.cf.evaluation.translation import by_user, listed
from recsys.conventions.decisions import Conventions
from recsys.errors import InputError
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.results import Evaluation
from recsys.evaluation.single import score_list
from recsys.ranks.sources.foreign_arrays import as_array

logger = logging.getLogger(__name__)

Lists = Mapping[Any, Sequence[Any]]
# A user who was recommended nothing has a list, an empty one: as in the seed it counts as 0.
_WORDS = Conventions.named("seed001").but(duplicates="first", no_list="empty")


def precision_at_k(recommended: Sequence[Any], relevant: Collection[Any], k: int) -> float:
    """The share of the first k places that hold a relevant item; a short list still divides by k.

    >>> precision_at_k([1, 3, 5, 7, 9], {1, 5, 10}, k=5)
    0.4
    """
    return _of_one(recommended, relevant, "precision", k)


def recall_at_k(recommended: Sequence[Any], relevant: Collection[Any], k: int) -> float:
    """The share of the relevant items in the first k places; 0.0 where nothing is relevant.

    >>> round(recall_at_k([1, 3, 5, 7, 9], {1, 5, 10}, k=5), 3)
    0.667
    """
    return _of_one(recommended, relevant, "recall", k)


def f1_at_k(recommended: Sequence[Any], relevant: Collection[Any], k: int) -> float:
    """The harmonic mean of precision and recall of the first k places.

    >>> f1_at_k([1, 3, 5, 7, 9], {1, 5, 10}, k=5)
    0.5
    """
    return _of_one(recommended, relevant, "f1", k)


def average_precision_at_k(recommended: Sequence[Any], relevant: Collection[Any], k: int) -> float:
    """Precision at the place of each hit, added up and divided by min(k, relevant items).

    >>> round(average_precision_at_k([1, 2, 3, 4, 5], {1, 3, 5}, k=5), 3)
    0.756
    """
    return _of_one(recommended, relevant, "map", k)


def mean_average_precision_at_k(
    recommendations: Lists, ground_truth: Mapping[Any, Collection[Any]], k: int
) -> float:
    """Mean of average_precision_at_k over the users that have both a list and a truth.

    >>> mean_average_precision_at_k({1: [3, 4], 2: [5]}, {1: {4}, 2: {5}, 3: {6}}, k=2)
    0.75
    """
    return _of_shared(recommendations, ground_truth, "map", k)


def dcg_at_k(recommended: Sequence[Any], relevance_scores: Mapping[Any, float], k: int) -> float:
    """Discounted cumulative gain: the sum of grade / log2(place + 1) over the first k places.

    >>> round(dcg_at_k([3, 1], {1: 3, 3: 2}, k=2), 4)
    3.8928
    """
    return _of_one(recommended, _grades(relevance_scores), "dcg", k)


def ndcg_at_k(recommended: Sequence[Any], relevance_scores: Mapping[Any, float], k: int) -> float:
    """DCG over that of the best order of the graded items. The list below is an ideal one, so it gets 1.

    (The seed prints 0.952 beside this list; its own formula gives 1.0.)

    >>> ndcg_at_k([3, 1, 5, 2, 4], {1: 3, 2: 2, 3: 3, 4: 1, 5: 2}, k=5)
    1.0
    """
    return _of_one(recommended, _grades(relevance_scores), "ndcg", k)


def mean_ndcg_at_k(
    recommendations: Lists, relevance_scores: Mapping[Any, Mapping[Any, float]], k: int
) -> float:
    """Mean of ndcg_at_k over the users that have both a list and grades.

    >>> mean_ndcg_at_k({1: [3, 4], 2: [5, 6]}, {1: {3: 2}, 2: {5: 1, 6: 0}}, k=2)
    1.0
    """
    grades = by_user(relevance_scores, "relevance_scores")
    return _of_shared(recommendations, {user: _grades(held) for user, held in grades.items()}, "ndcg", k)


def catalog_coverage(recommendations: Lists, catalog_size: int, k: int) -> float:
    """The share of the catalogue that stands in the first k places of some list.

    >>> catalog_coverage({0: [1, 2, 3], 1: [2, 3, 4], 2: [3, 4, 5]}, catalog_size=100, k=3)
    0.05
    """
    return _of_catalogue(recommendations, "coverage", k, catalogue=catalog_size)


def gini_coefficient(recommendations: Lists, k: int) -> float:
    """How unequally the items that were recommended at all share the places; 0 is equal.

    Items that were never recommended are not known here and do not count; `recsys.evaluate` with
    catalogue= and the metric "gini" counts them as zeros.

    >>> round(gini_coefficient({0: [1, 2], 1: [1, 3]}, k=2), 4)
    0.1667
    """
    return _of_catalogue(recommendations, "gini", k)


def intra_list_diversity(recommended: Sequence[int], item_features: Any) -> float:
    """Mean cosine distance between two items of the list; `item_features[i]` belongs to item i.

    Features are an array, a tensor or a sparse matrix. An item without a row is an error.

    >>> intra_list_diversity([0, 1], [[1.0, 0.0], [0.0, 1.0]])
    1.0
    """
    items = listed(recommended)
    if len(items) < 2:
        return 0.0
    rows = _rows_of(item_features, items)
    found = evaluate({0: items}, {0: []}, "ild", embeddings=rows, conventions=_WORDS)
    return found["ild"]


def _rows_of(features: Any, items: Sequence[Any]) -> dict[Any, Any]:
    """{item: its features}, for the items of one list."""
    rows: Any = features.tocsr() if hasattr(features, "tocsr") else as_array(features)
    n_rows = rows.shape[0]
    outside = [i for i in items if not (isinstance(i, int | np.integer) and 0 <= i < n_rows)]
    if outside:
        raise InputError(
            f"the item {outside[0]!r} has no features: item_features has {n_rows} rows.",
            table="item_features",
            hint="Items are row numbers, from 0; map ids to rows first.",
        )
    chosen = list(dict.fromkeys(items))
    held = rows[chosen].toarray() if hasattr(rows, "tocsr") else rows[chosen]
    return dict(zip(chosen, held, strict=True))


def time_based_split(
    interactions: Any, timestamp_col: Any, test_ratio: float = 0.2, *, on_tie: str = "together"
) -> tuple[Any, Any]:
    """Train on the past, test on the future: the newest `test_ratio` of the rows, sorted by time.

    Args:
        interactions: a 2-D array with a row an interaction, or a table.
        timestamp_col: position (array) or name (table) of the timestamps.
        test_ratio: how much goes to the test, between 0 and 1.
        on_tie: rows of the same time stay on one side unless said otherwise; see recsys.splits.
    """
    from recsys.splits import global_temporal

    if isinstance(interactions, np.ndarray):  # the rows of an array come back in the order of time
        interactions = interactions[np.argsort(interactions[:, timestamp_col], kind="stable")]
    # The seed cuts at the row int(n (1 - ratio)), which for 5 rows and 0.8 is 0 by rounding: one row is kept
    # to train on. A ratio that is none is refused by the split itself.
    n = len(interactions)
    wanted = n - max(int(n * (1 - test_ratio)), 1) if 0 < test_ratio < 1 and n > 1 else test_ratio
    made = global_temporal(interactions, test=wanted, columns={"time": timestamp_col}, on_tie=on_tie)
    logger.info("Time-based split: %d train, %d test", len(made.train), len(made.test))
    return made.train, made.test


def leave_one_out_cv(user_item_matrix: Any, *, seed: int = 0) -> Iterator[tuple[Any, Any]]:
    """(train, test) for each user with at least two entries, one random entry of the user held out.

    A sparse matrix gives sparse ones, a dense array dense ones; either way a pair is made when it is asked
    for. The same seed holds out the same entries.
    """
    from recsys.splits import leave_one_out_matrices

    dense = not hasattr(user_item_matrix, "tocsr")
    for train, test in leave_one_out_matrices(user_item_matrix, seed=seed):
        yield (train.toarray(), test.toarray()) if dense else (train, test)


class RecommenderEvaluator:
    """Evaluates any model with `recommend(user, n=…)` that gives (item, score) pairs, best first.

    >>> class Model:
    ...     def recommend(self, user, n):
    ...         return [(item, 1.0 / (item + 1)) for item in range(n)]
    >>> RecommenderEvaluator(k_values=[2]).evaluate(Model(), {0: {1}, 1: {5}}, catalog_size=10)
    {'precision@2': 0.25, 'recall@2': 0.5, 'f1@2': 0.3333333333333333, 'coverage@2': 0.2, 'gini@2': 0.0}
    """

    def __init__(self, k_values: Sequence[int] = (5, 10, 20)) -> None:
        self.k_values = list(k_values)
        #: {user: error} of the last evaluation: users for whom the model failed, left out of the means.
        self.failures: dict[Any, Exception] = {}
        #: The last evaluation itself: per-user values, intervals, exports.
        self.evaluation: Evaluation | None = None

    def evaluate(
        self, model: Any, test_data: Mapping[Any, Collection[Any]], catalog_size: int
    ) -> dict[str, float]:
        """{"precision@5": …} with precision, recall, F1 of both means, coverage and Gini at each k.

        Users without relevant items count as 0. A user for whom the model raises is left out, kept in
        `failures` and logged. A model with `recommend_batch(users, n=…)` is asked once for all users.
        """
        test_data = by_user(test_data, "test_data")
        lists, self.failures = recommended_lists(model, list(test_data), max(self.k_values))
        if self.failures:
            user, error = next(iter(self.failures.items()))
            logger.warning(
                "Failed to generate recommendations for %d of %d users, who are left out; first user %r: %r",
                len(self.failures), len(test_data), user, error,
            )  # fmt: skip
        names = [f"{m}@{k}" for k in self.k_values for m in ("precision", "recall", "f1", "coverage", "gini")]
        if not lists:
            self.evaluation = None
            return dict.fromkeys(names, 0.0)
        self.evaluation = evaluate(
            lists,
            {user: listed(test_data[user]) for user in lists},
            names,
            catalogue=catalog_size,
            conventions=_WORDS.but(f1_of="means"),
        )
        logger.info("Evaluation complete: %s", dict(self.evaluation))
        found = {name: self.evaluation[name] for name in names}
        # Where no list holds an item, nothing is covered and nothing is unequal: 0, as in the seed.
        return {name: 0.0 if math.isnan(value) else value for name, value in found.items()}


def _grades(relevance: Any) -> Any:
    """{item: grade}, also of a Series by item."""
    return dict(relevance.items()) if hasattr(relevance, "items") else relevance


def _of_one(recommended: Sequence[Any], relevant: Collection[Any], metric: str, k: int) -> float:
    return 0.0 if k <= 0 else score_list(listed(recommended), relevant, f"{metric}@{k}", conventions=_WORDS)


def _of_shared(lists: Lists, truth: Mapping[Any, Any], metric: str, k: int) -> float:
    lists, truth = by_user(lists), by_user(truth, "ground_truth")
    shared = [user for user in lists if user in truth]
    if k <= 0 or not shared:
        return 0.0
    chosen = {
        user: truth[user] if isinstance(truth[user], Mapping) else listed(truth[user]) for user in shared
    }
    name = f"{metric}@{k}"
    return evaluate({u: listed(lists[u]) for u in shared}, chosen, name, conventions=_WORDS)[name]


def _of_catalogue(lists: Lists, metric: str, k: int, catalogue: int | None = None) -> float:
    lists = by_user(lists)
    if k <= 0 or not any(len(items) for items in lists.values()):
        return 0.0
    name = f"{metric}@{k}"
    shown = {user: listed(items) for user, items in lists.items()}
    nothing: dict[Any, list[Any]] = {user: [] for user in lists}
    return evaluate(shown, nothing, name, catalogue=catalogue, conventions=_WORDS)[name]
