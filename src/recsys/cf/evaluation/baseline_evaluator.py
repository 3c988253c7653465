"""Baselines in seed 000's words: popularity, chance and item similarity, evaluated like any model.

`recsys.baselines` makes the source, the engine ranks and counts it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from recsys.analysis import number_summary
from recsys.cf.evaluation import translation as words
from recsys.errors import InputError
from recsys.evaluation.results import Evaluation
from recsys.inputs.ids import encode, of_sequence
from recsys.models import baselines
from recsys.models.rerankers import cosine_matrix
from recsys.ranks.sources import Factors, Scores
from recsys.ranks.sources.foreign_arrays import as_array
from recsys.types import Array, Interactions

_K = (10, 20)


class BaselineRecommender(ABC):
    """What every baseline offers; one of your own defines `recommend`.

    >>> class First(BaselineRecommender):
    ...     def recommend(self, user_idx, k=10, exclude_items=None):
    ...         return [item for item in range(self.num_items) if item not in (exclude_items or ())][:k]
    >>> First("first", num_items=4).evaluate({0: {1}}, {0: {0}}, k_values=[1])["recall@1"]
    1.0
    """

    def __init__(self, name: str, num_items: int) -> None:
        self.name = name
        self.num_items = int(num_items)
        self._last: words.Results | None = None

    @abstractmethod
    def recommend(self, user_idx: Any, k: int = 10, exclude_items: Iterable[Any] | None = None) -> list[Any]:
        """The k best items of one user, without the excluded ones."""

    def recommend_batch(
        self,
        user_indices: Iterable[Any],
        k: int = 10,
        user_exclude_items: Mapping[Any, Iterable[Any]] | None = None,
    ) -> dict[Any, list[Any]]:
        """{user: the k best items}, user by user."""
        excluded = {} if user_exclude_items is None else user_exclude_items
        return {
            user: list(self.recommend(user, k, excluded.get(user))) for user in words.listed(user_indices)
        }

    def evaluate(
        self,
        test_data: Any,
        user_pos_train: Any = None,
        k_values: Sequence[int] = _K,
        user_col: str = words.USER,
        item_col: str = words.ITEM,
    ) -> dict[str, Any]:
        """The same results as ModelEvaluator.evaluate, and `baseline_name`."""
        truth = words.truth_of(test_data, user_col, item_col)
        history = words.history_of(words.brought(test_data, user_pos_train), user_col, item_col)
        at = words.cutoffs(k_values)
        ranked = self._ranked(truth, history, max(at))
        self._last = words.evaluated(ranked, truth, history, at, n_items=self.num_items)
        self._last["baseline_name"] = self.name
        return self._last

    def _ranked(self, truth: Interactions, history: Interactions | None, k: int) -> Any:
        """What is evaluated: the lists of the test users."""
        taken = {} if history is None else words.as_dict(history, set)
        return self.recommend_batch(truth.cases.values.tolist(), k, taken)

    def get_per_user_metrics(self) -> Any:
        """A DataFrame by user id, one column a metric, evaluated users only."""
        return words.per_user_table(None if self._last is None else self._last.evaluation)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, num_items={self.num_items})"


class _RankedBaseline(BaselineRecommender):
    """A baseline that ranks the whole catalogue, as a source of `recsys.baselines`."""

    @abstractmethod
    def source(self, users: Array, history: Interactions | None) -> Factors | Scores:
        """What ranks the items for these users, given what they took in training."""

    def recommend(self, user_idx: Any, k: int = 10, exclude_items: Iterable[Any] | None = None) -> list[Any]:
        """The k best items of one user, without the excluded ones."""
        excluded = None if exclude_items is None else {user_idx: exclude_items}
        return self.recommend_batch([user_idx], k, excluded)[user_idx]

    def recommend_batch(
        self,
        user_indices: Iterable[Any],
        k: int = 10,
        user_exclude_items: Mapping[Any, Iterable[Any]] | None = None,
    ) -> dict[Any, list[Any]]:
        """{user: the k best items}; a user the baseline knows nothing about gets an empty list."""
        asked = words.listed(user_indices)
        if not asked:
            return {}
        users = encode(of_sequence(asked, table="users", column="user"), table="users", column="user")[
            0
        ].values
        history = _excluded(user_exclude_items)
        lists = words.top_lists(self.source(users, history), users, history, words.cutoff(k))
        return words.in_order(words.as_dict(lists), asked)

    def _ranked(self, truth: Interactions, history: Interactions | None, k: int) -> Factors | Scores:
        del k
        return self.source(truth.cases.values, history)


def _excluded(given: Any) -> Interactions | None:
    """{user: items}, a Series of them, a table or a sparse matrix; users without an item are left out."""
    if not isinstance(given, Mapping):
        return words.history_of(given)
    plain = {user: words.listed(held) for user, held in given.items() if held is not None}
    return words.history_of({user: set(held) for user, held in plain.items() if held})


class PopularityBaseline(_RankedBaseline):
    """The same ranking for everyone, by training frequency, units sold or any number an item has.

    Equal numbers are ranked by item index.

    Args:
        item_popularity: one number an item, as an array by index, {index: number} or a Series.
        num_items: how many items there are; items without a number have popularity 0.
        name: what results call it.

    >>> baseline = PopularityBaseline(item_popularity=[5, 9, 2, 7], num_items=4)
    >>> baseline.recommend(user_idx=0, k=2, exclude_items={1})
    [3, 0]
    """

    def __init__(self, item_popularity: Any, num_items: int | None = None, name: str = "popularity") -> None:
        ids, values = baselines.item_scores_of(item_popularity)
        self.item_popularity = words.by_index(ids, values, num_items)
        super().__init__(name, len(self.item_popularity))

    @classmethod
    def from_interactions(
        cls,
        train: Any,
        num_items: int | None = None,
        *,
        half_life: float | None = None,
        now: float | None = None,
        name: str | None = None,
    ) -> PopularityBaseline:
        """Popularity by training frequency; with `half_life`, recent events weigh more."""
        counts = baselines.training_counts(train, half_life=half_life, now=now)
        label = name or ("popularity" if half_life is None else "recent popularity")
        return cls(dict(zip(counts.ids.tolist(), counts.values.tolist(), strict=True)), num_items, label)

    def source(self, users: Array, history: Interactions | None) -> Factors:
        """Popularity as factors of rank 1."""
        del history
        return baselines.popularity(self.item_popularity, users=users)

    def get_popularity_stats(self) -> dict[str, Any]:
        """Mean, spread, extremes and the ten most popular items."""
        top = self.recommend(0, min(10, self.num_items))
        return {
            **number_summary(self.item_popularity),
            "top_10_items": top,
            "top_10_popularity": self.item_popularity[top].tolist(),
        }


class RandomBaseline(_RankedBaseline):
    """A random ranking for each user, the same whenever the seed, the user and the items are.

    >>> baseline = RandomBaseline(num_items=50, random_seed=42)
    >>> baseline.recommend(7, 3) == RandomBaseline(num_items=50, seed=42).recommend(7, 3)
    True
    >>> baseline.expectation({0: {1, 2}}, k_values=[5])["recall@5"]
    0.1
    """

    def __init__(
        self, num_items: int, random_seed: int | None = None, name: str = "random", *, seed: int | None = None
    ) -> None:
        super().__init__(name, num_items)
        given = random_seed if random_seed is not None else seed
        self.random_seed = 0 if given is None else given

    def source(self, users: Array, history: Interactions | None) -> Scores:
        """One seeded draw."""
        del history
        return baselines.shuffled(self.num_items, users=users, seed=self.random_seed)

    def expectation(
        self,
        test_data: Any,
        user_pos_train: Any = None,
        k_values: Sequence[int] = _K,
        user_col: str = words.USER,
        item_col: str = words.ITEM,
    ) -> Evaluation:
        """What chance gets on average over all rankings: exact, without a draw."""
        return baselines.random_expectation(
            words.truth_of(test_data, user_col, item_col),
            words.standard_names(words.cutoffs(k_values)),
            n_items=self.num_items,
            seen=words.history_of(words.brought(test_data, user_pos_train), user_col, item_col),
        )


class ItemSimilarityBaseline(_RankedBaseline):
    """Items like those a user took, by a similarity matrix or by embeddings.

    Args:
        similarity_matrix: items x items, dense or sparse.
        num_items: how many items there are.
        item_embeddings: items x dimensions instead of the matrix; no items x items matrix is then made.
        user_histories: {user: items}; without, what evaluate and recommend are told to exclude.
        aggregation: "mean", "sum" or "max" over the items taken.
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
        user_histories: Any = None,
        aggregation: str = "mean",
        name: str = "item similarity",
    ) -> None:
        given = similarity_matrix if item_embeddings is None else item_embeddings
        if given is None or (similarity_matrix is not None and item_embeddings is not None):
            raise InputError("item similarity needs similarity_matrix= or item_embeddings=, one of them.")
        rows = given if hasattr(given, "shape") else np.asarray(given)
        if num_items is not None and rows.shape[0] != num_items:
            raise InputError(f"there are {rows.shape[0]} rows for num_items={num_items}.")
        super().__init__(name, rows.shape[0])
        self._given = {"similarity" if item_embeddings is None else "embeddings": rows}
        self._histories = words.history_of(user_histories)
        self.aggregation = aggregation

    def source(self, users: Array, history: Interactions | None) -> Factors | Scores:
        """The mean similarity to what a user took."""
        del users
        taken = self._histories or history
        if taken is None:
            raise InputError(
                "item similarity needs to know what users took.",
                hint="Pass user_pos_train (or exclude_items), or user_histories= when making the baseline.",
            )
        return baselines.similar_items(taken, aggregation=self.aggregation, **self._given)


class BaselineComparator:
    """Several baselines on one test set.

    >>> comparator = BaselineComparator(k_values=[1])
    >>> comparator.add_baseline("popularity", PopularityBaseline([5, 9, 2]))
    >>> comparator.compare_all({0: {1}, 1: {0}})["popularity"]["recall@1"]
    0.5
    """

    def __init__(self, k_values: Sequence[int] = _K) -> None:
        self.k_values = words.cutoffs(k_values)
        self.baselines: dict[str, BaselineRecommender] = {}
        self.results: dict[str, dict[str, Any]] = {}

    def add_baseline(self, name: str, baseline: BaselineRecommender) -> None:
        """Take a baseline in."""
        self.baselines[name] = baseline

    def compare_all(
        self, test_data: Any, user_pos_train: Any = None, **columns: str
    ) -> dict[str, dict[str, Any]]:
        """{baseline: results}; the test set is read once, by `user_col` and `item_col`."""
        truth = words.truth_of(test_data, **columns)
        history = words.history_of(words.brought(test_data, user_pos_train), **columns)
        self.results = {n: one.evaluate(truth, history, self.k_values) for n, one in self.baselines.items()}
        return dict(self.results)

    def get_comparison_table(self) -> Any:
        """One row a baseline."""
        import pandas as pd

        return pd.DataFrame([{"baseline": name, **results} for name, results in self.results.items()])


def evaluate_baseline_popularity(
    test_data: Any,
    item_popularity: Any,
    user_pos_train: Any = None,
    k_values: Sequence[int] = _K,
    *,
    num_items: int | None = None,
    **columns: str,
) -> dict[str, Any]:
    """PopularityBaseline(item_popularity).evaluate(test_data, user_pos_train, k_values)."""
    return PopularityBaseline(item_popularity, num_items).evaluate(
        test_data, user_pos_train, k_values, **columns
    )


def evaluate_baseline_random(
    test_data: Any,
    num_items: int,
    user_pos_train: Any = None,
    k_values: Sequence[int] = _K,
    random_seed: int | None = None,
    *,
    seed: int | None = None,
    **columns: str,
) -> dict[str, Any]:
    """RandomBaseline(num_items, random_seed).evaluate(test_data, user_pos_train, k_values)."""
    return RandomBaseline(num_items, random_seed, seed=seed).evaluate(
        test_data, user_pos_train, k_values, **columns
    )


def compute_item_similarity(embeddings: Any) -> Any:
    """Cosine of every pair of items, as items x items; embeddings alone serve ItemSimilarityBaseline as well.

    >>> compute_item_similarity([[1.0, 0.0], [3.0, 4.0]]).round(3).tolist()
    [[1.0, 0.6], [0.6, 1.0]]
    """
    return cosine_matrix(as_array(embeddings))
