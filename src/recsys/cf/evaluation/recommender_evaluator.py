"""The functions, splits and RecommenderEvaluator of document 001, computed by `recsys.evaluate`.

They differ from the code of the document in two ways: a repeated item counts once, at its first place, and
k <= 0 gives 0.0 in every function.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from recsys.cf.evaluation.translation import (
    Results,
    check_same_kind,
    cutoff,
    cutoff_list,
    document_words,
    id_list,
    mapping_by_user,
    matrix_of,
    value_of_lists,
)
from recsys.conventions.decisions import Conventions
from recsys.errors import ColumnError, InputError, SplitError
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.results import Evaluation
from recsys.evaluation.single import score_list
from recsys.inputs.containers import as_array
from recsys.ranks.sources.fitted_models import list_asker, listed_items
from recsys.records.checks import is_whole

logger = logging.getLogger(__name__)

Lists = Mapping[Any, Sequence[Any]]
# As in document 001, an empty list counts as 0.
_CONVENTIONS = Conventions.named("recommender_evaluator").but(duplicates="first", no_list="empty")


def precision_at_k(recommended: Sequence[Any], relevant: Collection[Any], k: int) -> float:
    """The share of the first k places that hold a relevant item; a short list still divides by k.

    >>> precision_at_k([1, 3, 5, 7, 9], {1, 5, 10}, k=5)
    0.4
    """
    return _list_value(recommended, relevant, "precision", k)


def recall_at_k(recommended: Sequence[Any], relevant: Collection[Any], k: int) -> float:
    """The share of the relevant items in the first k places; 0.0 if there are none.

    >>> round(recall_at_k([1, 3, 5, 7, 9], {1, 5, 10}, k=5), 3)
    0.667
    """
    return _list_value(recommended, relevant, "recall", k)


def f1_at_k(recommended: Sequence[Any], relevant: Collection[Any], k: int) -> float:
    """The harmonic mean of precision and recall of the first k places.

    >>> f1_at_k([1, 3, 5, 7, 9], {1, 5, 10}, k=5)
    0.5
    """
    return _list_value(recommended, relevant, "f1", k)


def average_precision_at_k(recommended: Sequence[Any], relevant: Collection[Any], k: int) -> float:
    """Precision at the place of each hit, added up and divided by min(k, relevant items).

    >>> round(average_precision_at_k([1, 2, 3, 4, 5], {1, 3, 5}, k=5), 3)
    0.756
    """
    return _list_value(recommended, relevant, "map", k)


def mean_average_precision_at_k(
    recommendations: Lists, ground_truth: Mapping[Any, Collection[Any]], k: int
) -> float:
    """Mean of average_precision_at_k over the users that have both a list and a truth.

    >>> mean_average_precision_at_k({1: [3, 4], 2: [5]}, {1: {4}, 2: {5}, 3: {6}}, k=2)
    0.75
    """
    return _mean_over_shared_users(recommendations, ground_truth, "map", k)


def dcg_at_k(recommended: Sequence[Any], relevance_scores: Mapping[Any, float], k: int) -> float:
    """Discounted cumulative gain: the sum of grade / log2(place + 1) over the first k places.

    >>> round(dcg_at_k([3, 1], {1: 3, 3: 2}, k=2), 4)
    3.8928
    """
    return _list_value(recommended, _grades_by_item(relevance_scores), "dcg", k)


def ndcg_at_k(recommended: Sequence[Any], relevance_scores: Mapping[Any, float], k: int) -> float:
    """DCG over the DCG of the ideal order of the graded items.

    The list below is ideal, so its NDCG is 1. (Document 001 prints 0.952; its own formula gives 1.0.)

    >>> ndcg_at_k([3, 1, 5, 2, 4], {1: 3, 2: 2, 3: 3, 4: 1, 5: 2}, k=5)
    1.0
    """
    return _list_value(recommended, _grades_by_item(relevance_scores), "ndcg", k)


def mean_ndcg_at_k(
    recommendations: Lists, relevance_scores: Mapping[Any, Mapping[Any, float]], k: int
) -> float:
    """Mean of ndcg_at_k over the users that have both a list and grades.

    >>> mean_ndcg_at_k({1: [3, 4], 2: [5, 6]}, {1: {3: 2}, 2: {5: 1, 6: 0}}, k=2)
    1.0
    """
    grades = mapping_by_user(relevance_scores, "relevance_scores")
    return _mean_over_shared_users(
        recommendations, {user: _grades_by_item(scores) for user, scores in grades.items()}, "ndcg", k
    )


def catalog_coverage(recommendations: Lists, catalog_size: int, k: int) -> float:
    """The share of the catalogue that is in the first k places of at least one list.

    >>> catalog_coverage({0: [1, 2, 3], 1: [2, 3, 4], 2: [3, 4, 5]}, catalog_size=100, k=3)
    0.05
    """
    at = _cutoff_or_zero(k)
    facts = {"catalogue": cutoff(catalog_size, "catalog_size"), "conventions": _CONVENTIONS}
    with document_words(catalogue="catalog_size"):
        return value_of_lists(recommendations, f"coverage@{at}", **facts) if at else 0.0


def gini_coefficient(recommendations: Lists, k: int) -> float:
    """How unequally the recommended items share the places; 0 is equal.

    Items that were never recommended are not counted; `recsys.evaluate` with catalogue= and the metric "gini"
    counts them as zeros.

    >>> round(gini_coefficient({0: [1, 2], 1: [1, 3]}, k=2), 4)
    0.1667
    """
    at = _cutoff_or_zero(k)
    return value_of_lists(recommendations, f"gini@{at}", conventions=_CONVENTIONS) if at else 0.0


def intra_list_diversity(recommended: Sequence[int], item_features: Any) -> float:
    """Mean cosine distance between two items of the list; `item_features[i]` belongs to item i.

    Features are an array, a tensor or a sparse matrix. An item without a row is an error.

    >>> intra_list_diversity([0, 1], [[1.0, 0.0], [0.0, 1.0]])
    1.0
    """
    items = id_list(recommended)
    if len(items) < 2:
        return 0.0
    is_sparse = hasattr(item_features, "tocsr")
    rows: Any = item_features.tocsr() if is_sparse else matrix_of(item_features, "item_features")
    n_rows = rows.shape[0]
    outside = [i for i in items if not (isinstance(i, int | np.integer) and 0 <= i < n_rows)]
    if outside:
        raise InputError(
            f"the item {outside[0]!r} has no features: item_features has {n_rows} rows.",
            table="item_features",
            hint="Items are row numbers, from 0; map ids to rows first.",
        )
    distinct = list(dict.fromkeys(items))
    vectors = rows[distinct].toarray() if is_sparse else rows[distinct]
    embeddings = dict(zip(distinct, vectors, strict=True))
    return value_of_lists({0: items}, "ild", embeddings=embeddings, conventions=_CONVENTIONS)


def time_based_split(
    interactions: Any,
    timestamp_col: Any,
    test_ratio: float = 0.2,
    **options: Any,
) -> tuple[Any, Any]:
    """Train on the past, test on the future: the newest `test_ratio` of the rows, sorted by time.

    Args:
        interactions: a 2-D array with one row per interaction, or a table.
        timestamp_col: position (array) or name (table) of the timestamps.
        test_ratio: the share of the rows in the test set, above 0 and below 1.
        options: those of `recsys.splits.global_temporal`. By default rows of the same time stay on one side;
            on_tie="row_order" cuts between them as the document does, and bad_rows="exclude" leaves out rows
            without a time.

    >>> train, test = time_based_split(np.array([[7, 1, 30], [7, 2, 10], [8, 1, 20]]), 2, test_ratio=0.4)
    >>> train.tolist(), test.tolist()
    ([[7, 2, 10]], [[8, 1, 20], [7, 1, 30]])
    """
    from recsys.splits import global_temporal

    ratio: Any = test_ratio
    if not isinstance(ratio, Real) or not 0 < float(ratio) < 1:
        raise SplitError(
            f"test_ratio={test_ratio!r} is not a share above 0 and below 1.",
            hint="Pass test_ratio=0.2 for a fifth; recsys.splits.global_temporal takes a number of rows.",
        )
    if isinstance(interactions, np.ndarray):
        n_columns = interactions.shape[1] if interactions.ndim == 2 else 0
        if not isinstance(timestamp_col, int | np.integer) or not -n_columns <= timestamp_col < n_columns:
            raise ColumnError(
                f"timestamp_col={timestamp_col!r} is not a column of an array of shape {interactions.shape}.",
                hint="Pass a 2-D array with one row per interaction, and the number of a column, from 0.",
            )
        # The rows of an array are returned in the order of time.
        interactions = interactions[np.argsort(interactions[:, timestamp_col], kind="stable")]
    # Document 001 cuts at row int(n * (1 - ratio)), which rounds to 0 for 5 rows and 0.8; here the training
    # set keeps at least one row.
    n = len(interactions)
    n_test = n - max(int(n * (1 - test_ratio)), 1) if n > 1 else 1
    columns = {"time": timestamp_col, **options.pop("columns", {})}
    with document_words(test="test_ratio"):
        split = global_temporal(interactions, test=n_test, columns=columns, **options)
    logger.info("Time-based split: %d train, %d test", len(split.train), len(split.test))
    return split.train, split.test


def leave_one_out_cv(user_item_matrix: Any, *, seed: int = 0) -> Iterator[tuple[Any, Any]]:
    """(train, test) for each user with at least two entries, one random entry of the user held out.

    A sparse matrix gives sparse matrices, a dense array dense arrays; each pair is made on demand. The same
    seed holds out the same entries.
    """
    from recsys.splits import leave_one_out_matrices

    dense = not hasattr(user_item_matrix, "tocsr")
    matrix = as_array(user_item_matrix) if dense else user_item_matrix
    pairs = leave_one_out_matrices(matrix, seed=seed)
    return ((train.toarray(), test.toarray()) if dense else (train, test) for train, test in pairs)


class RecommenderEvaluator:
    """Evaluates any model with `recommend(user, n=…)` that returns (item, score) pairs, best first.

    >>> class Model:
    ...     def recommend(self, user, n):
    ...         return [(item, 1.0 / (item + 1)) for item in range(n)]
    >>> RecommenderEvaluator(k_values=[2]).evaluate(Model(), {0: {1}, 1: {5}}, catalog_size=10)
    {'precision@2': 0.25, 'recall@2': 0.5, 'f1@2': 0.3333333333333333, 'coverage@2': 0.2, 'gini@2': 0.0}
    """

    def __init__(self, k_values: Sequence[int] = (5, 10, 20)) -> None:
        self.k_values = cutoff_list(k_values)
        #: {user: error} of the last evaluation: users for whom the model failed, left out of the means.
        self.failures: dict[Any, Exception] = {}
        #: The last evaluation itself: per-user values, intervals, exports.
        self.evaluation: Evaluation | None = None

    def evaluate(
        self, model: Any, test_data: Mapping[Any, Collection[Any]], catalog_size: int
    ) -> dict[str, float]:
        """{"precision@5": …} with precision, recall, F1 (of the two means), coverage and Gini at each k.

        Users without relevant items count as 0. A user for whom the model raises is left out, logged and
        added to `failures`.
        """
        test_data = mapping_by_user(test_data, "test_data")
        lists, self.failures = _collect_lists(model, list(test_data), max(self.k_values))
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
        truth = {user: id_list(test_data[user]) for user in lists}
        conventions = _CONVENTIONS.but(f1_of="means")
        with document_words(catalogue="catalog_size"):
            self.evaluation = evaluate(lists, truth, names, catalogue=catalog_size, conventions=conventions)
        logger.info("Evaluation complete: %s", dict(self.evaluation))
        values = {name: self.evaluation[name] for name in names}
        # If no list holds an item, coverage and Gini are 0, as in document 001.
        zeros = {name: 0.0 for name, value in values.items() if math.isnan(value)}
        return Results.of(values | zeros, self.evaluation)


def _collect_lists(model: Any, users: list[Any], n: int) -> tuple[dict[Any, Any], dict[Any, Exception]]:
    """{user: items, best first}, and {user: error} of the users for whom the model gave no list."""
    ask, lists, failures = list_asker(model), {}, {}
    for user in users:
        try:
            answer = ask(user, n)
            # `evaluate` refuses a set, which has no order.
            lists[user] = answer if isinstance(answer, set | frozenset) else listed_items(answer, user)
        except Exception as error:  # noqa: BLE001 - whatever the model raises is reported, not swallowed
            failures[user] = error
    return lists, failures


def _grades_by_item(relevance: Any) -> Any:
    """{item: grade}, also from a Series by item."""
    return dict(relevance.items()) if hasattr(relevance, "items") else relevance


def _list_value(recommended: Sequence[Any], relevant: Collection[Any], metric: str, k: int) -> float:
    at, items = _cutoff_or_zero(k), id_list(recommended, "recommended", ranked=True)
    if not at:
        return 0.0
    return score_list(items, relevant, f"{metric}@{at}", conventions=_CONVENTIONS)


def _cutoff_or_zero(k: Any) -> int:
    """The cut-off, 0 for those at or below 0, where the functions of document 001 are 0."""
    return 0 if is_whole(k) and k <= 0 else cutoff(k)


def _mean_over_shared_users(lists: Lists, truth: Mapping[Any, Any], metric: str, k: int) -> float:
    lists, truth = mapping_by_user(lists), mapping_by_user(truth, "ground_truth")
    shared_users, at = [user for user in lists if user in truth], _cutoff_or_zero(k)
    if not at or not shared_users:
        check_same_kind(lists, truth, "user")
        return 0.0
    shared_lists = {user: id_list(lists[user], ranked=True) for user in shared_users}
    shared_truth = {
        user: truth[user] if isinstance(truth[user], Mapping) else id_list(truth[user])
        for user in shared_users
    }
    name = f"{metric}@{at}"
    return evaluate(shared_lists, shared_truth, name, conventions=_CONVENTIONS)[name]
