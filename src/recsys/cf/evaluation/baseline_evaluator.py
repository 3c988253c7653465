"""The baselines of document 000: popularity, chance and item similarity, evaluated like any model.

`recsys.baselines` provides the scores, `recsys.evaluate` ranks and measures.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from recsys.cf.evaluation import translation
from recsys.cf.evaluation.evaluators import SeveralEvaluators, StandardEvaluator
from recsys.errors import InputError
from recsys.evaluation.evaluate import recommend
from recsys.inputs.ids import encode, ids_from_sequence
from recsys.models import baselines
from recsys.models.rerankers import cosine_matrix
from recsys.ranks.sources import Factors, Scores
from recsys.records.arrays import Array, Interactions


class BaselineRecommender(StandardEvaluator):
    """Base class of the baselines; a baseline of your own defines `recommend`.

    >>> class First(BaselineRecommender):
    ...     def recommend(self, user_idx, k=10, exclude_items=None):
    ...         return [item for item in range(self.num_items) if item not in (exclude_items or ())][:k]
    >>> First("first", num_items=4).evaluate({0: {1}}, {0: {0}}, k_values=[1])["recall@1"]
    1.0
    """

    def __init__(self, name: str, num_items: int) -> None:
        self.name = name
        self.num_items = translation.cutoff(num_items, "num_items")

    @abstractmethod
    def recommend(self, user_idx: Any, k: int = 10, exclude_items: Iterable[Any] | None = None) -> list[Any]:
        """The k best items of one user, without the excluded ones."""

    def recommend_batch(
        self,
        user_indices: Iterable[Any],
        k: int = 10,
        user_exclude_items: Mapping[Any, Iterable[Any]] | None = None,
    ) -> dict[Any, list[Any]]:
        """{user: the k best items}, from one call of `recommend` per user."""
        given = {} if user_exclude_items is None else user_exclude_items
        excluded = translation.mapping_by_user(given, "user_exclude_items")
        return {
            user: list(self.recommend(user, translation.cutoff(k), excluded.get(user)))
            for user in translation.id_list(user_indices)
        }

    def evaluate(
        self,
        test_data: Any,
        user_pos_train: Any = None,
        k_values: Sequence[int] = translation.K_VALUES,
        user_col: str = translation.USER,
        item_col: str = translation.ITEM,
    ) -> translation.Results:
        """The same results as ModelEvaluator.evaluate, and `baseline_name`."""
        cutoffs = translation.cutoffs(k_values)
        columns = {"user_col": user_col, "item_col": item_col}
        results = self._evaluate_test_set(test_data, user_pos_train, cutoffs, **columns)
        results["baseline_name"] = self.name
        return results

    def _lists_or_source(self, truth: Interactions, history: Interactions | None, k: int) -> Any:
        seen = {} if history is None else translation.items_by_user(history, set)
        return self.recommend_batch(truth.cases.values.tolist(), k, seen)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, num_items={self.num_items})"


class _RankedBaseline(BaselineRecommender):
    """A baseline that ranks the whole catalogue by the scores of `recsys.baselines`."""

    @abstractmethod
    def source(self, users: Array, history: Interactions | None) -> Factors | Scores:
        """The scores of all items for these users, given their training items."""

    def recommend(self, user_idx: Any, k: int = 10, exclude_items: Iterable[Any] | None = None) -> list[Any]:
        """The k best items of one user, without the excluded ones."""
        user_idx = user_idx.item() if hasattr(user_idx, "item") else user_idx
        excluded = None if exclude_items is None else {user_idx: exclude_items}
        return self.recommend_batch([user_idx], k, excluded)[user_idx]

    def recommend_batch(
        self,
        user_indices: Iterable[Any],
        k: int = 10,
        user_exclude_items: Mapping[Any, Iterable[Any]] | None = None,
    ) -> dict[Any, list[Any]]:
        """{user: the k best items}; a user the baseline knows nothing about gets an empty list."""
        user_ids = translation.id_list(user_indices)
        if not user_ids:
            return {}
        column = ids_from_sequence(user_ids, table="users", column="user")
        users = encode(column, table="users", column="user")[0].values
        excluded: Any = user_exclude_items
        if isinstance(excluded, Mapping):  # a user may have None, an array or nothing at all
            items = {user: [] if one is None else translation.id_list(one) for user, one in excluded.items()}
            excluded = {user: set(taken) for user, taken in items.items() if taken}
        history = translation.read_history(excluded)
        source = self.source(users, history)
        known = users[np.isin(users, source.user_rows.ids.values)]
        with translation.document_words(self._id_advice, seen="the excluded items"):
            lists = recommend(source, translation.cutoff(k), users=known, seen=history)
        return translation.lists_for_users(lists, user_ids)

    def _lists_or_source(self, truth: Interactions, history: Interactions | None, k: int) -> Factors | Scores:
        del k
        return self.source(truth.cases.values, history)


class PopularityBaseline(_RankedBaseline):
    """The same ranking for everyone, by training frequency, units sold or any other number per item.

    Equal numbers are ranked by item index.

    Args:
        item_popularity: one number per item, as an array by index, {index: number} or a Series.
        num_items: how many items there are; items without a number have popularity 0.
        name: what results call it.

    >>> baseline = PopularityBaseline(item_popularity=[5, 9, 2, 7], num_items=4)
    >>> baseline.recommend(user_idx=0, k=2, exclude_items={1})
    [3, 0]
    """

    def __init__(self, item_popularity: Any, num_items: int | None = None, name: str = "popularity") -> None:
        ids, values = baselines.item_scores_of(item_popularity)
        self.item_popularity = translation.values_by_index(ids, values, num_items)
        super().__init__(name, len(self.item_popularity))

    def source(self, users: Array, history: Interactions | None) -> Factors:
        """Popularity as factors of rank 1."""
        del history
        return baselines.popularity(self.item_popularity, users=users)


class RandomBaseline(_RankedBaseline):
    """A random ranking for each user, reproducible for the same seed, user and items.

    `recsys.baselines.random_expectation` has the exact mean over all random rankings.

    >>> baseline = RandomBaseline(num_items=50, random_seed=42)
    >>> baseline.recommend(7, 3) == RandomBaseline(num_items=50, random_seed=42).recommend(7, 3)
    True
    """

    def __init__(self, num_items: int, random_seed: int | None = None, name: str = "random") -> None:
        super().__init__(name, num_items)
        self.random_seed = 0 if random_seed is None else random_seed

    def source(self, users: Array, history: Interactions | None) -> Scores:
        """Random scores from the seed."""
        del history
        return baselines.shuffled(self.num_items, users=users, seed=self.random_seed)


class ItemSimilarityBaseline(_RankedBaseline):
    """Items similar to those a user took, by a similarity matrix or by embeddings.

    The items a user took are those that evaluate and recommend exclude.

    Args:
        similarity_matrix: items x items, dense or sparse.
        num_items: how many items there are.
        item_embeddings: items x dimensions instead of the matrix; no items x items matrix is computed.
        name: what results call it.

    >>> baseline = ItemSimilarityBaseline([[1, 0.1, 0.9], [0.1, 1, 0.2], [0.9, 0.2, 1]], num_items=3)
    >>> baseline.recommend(0, k=2, exclude_items={0})
    [2, 1]
    """

    def __init__(
        self,
        similarity_matrix: Any = None,
        num_items: int | None = None,
        *,
        item_embeddings: Any = None,
        name: str = "item similarity",
    ) -> None:
        what = "similarity" if item_embeddings is None else "embeddings"
        matrix = similarity_matrix if item_embeddings is None else item_embeddings
        if matrix is None or (similarity_matrix is not None and item_embeddings is not None):
            raise InputError("item similarity needs either similarity_matrix= or item_embeddings=.")
        matrix = matrix if hasattr(matrix, "tocsr") else translation.matrix_of(matrix, f"the {what} matrix")
        if num_items is not None and matrix.shape[0] != num_items:
            raise InputError(f"there are {matrix.shape[0]} rows for num_items={num_items}.")
        super().__init__(name, matrix.shape[0])
        self._item_matrix: dict[str, Any] = {what: matrix}

    def source(self, users: Array, history: Interactions | None) -> Factors | Scores:
        """The mean similarity to the items a user took."""
        del users
        if history is None:
            raise InputError(
                "item similarity needs the items each user took.",
                hint="Pass user_pos_train (or exclude_items).",
            )
        return baselines.similar_items(history, **self._item_matrix)


class BaselineComparator(SeveralEvaluators):
    """Evaluates several baselines on one test set, which is read once.

    >>> comparator = BaselineComparator(k_values=[1])
    >>> comparator.add_baseline("popularity", PopularityBaseline([5, 9, 2]))
    >>> comparator.evaluate_all({0: {1}, 1: {0}})["popularity"]["recall@1"]
    0.5
    """

    kind, _adder = "baseline", "add_baseline(name, baseline)"

    def add_baseline(self, name: str, baseline: BaselineRecommender) -> None:
        """Add a baseline under a name."""
        self._evaluate[name] = partial(baseline.evaluate, k_values=self.k_values)
        self._hyperparams[name] = {}


def evaluate_baseline_popularity(
    test_data: Any,
    item_popularity: Any,
    user_pos_train: Any = None,
    k_values: Sequence[int] = translation.K_VALUES,
    *,
    num_items: int | None = None,
    **columns: str,
) -> translation.Results:
    """PopularityBaseline(item_popularity).evaluate(test_data, user_pos_train, k_values)."""
    return PopularityBaseline(item_popularity, num_items).evaluate(
        test_data, user_pos_train, k_values, **columns
    )


def evaluate_baseline_random(
    test_data: Any,
    num_items: int,
    user_pos_train: Any = None,
    k_values: Sequence[int] = translation.K_VALUES,
    random_seed: int | None = None,
    **columns: str,
) -> translation.Results:
    """RandomBaseline(num_items, random_seed).evaluate(test_data, user_pos_train, k_values)."""
    return RandomBaseline(num_items, random_seed).evaluate(test_data, user_pos_train, k_values, **columns)


def compute_item_similarity(embeddings: Any) -> Any:
    """The cosine of every pair of items, as items x items; ItemSimilarityBaseline also takes the embeddings.

    >>> compute_item_similarity([[1.0, 0.0], [3.0, 4.0]]).round(3).tolist()
    [[1.0, 0.6], [0.6, 1.0]]
    """
    return cosine_matrix(translation.matrix_of(embeddings, "embeddings"))
