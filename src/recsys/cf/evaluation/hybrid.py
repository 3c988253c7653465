"""A model with and without content re-ranking, as seed 000's comparison script calls it.

One call of the engine a model: ranking metrics, coverage, diversity, alignment and cold-start coverage come
from the same lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from recsys.cf.evaluation import translation as words
from recsys.cf.evaluation.embedding_rows import arrays_by_user, vectors_of
from recsys.errors import InputError
from recsys.evaluation.evaluate import evaluate, recommend
from recsys.models.baselines import training_counts
from recsys.models.rerankers import blend, diversify, unit_rows
from recsys.models.rerankers import user_profiles as profiles_of
from recsys.ranks.sources import Factors
from recsys.types import Interactions

ALPHA = 0.7
_POOL = 100


def compute_all_user_profiles(
    test_data: Any,
    bert_embeddings: Any,
    item_to_idx: Mapping[Any, int] | None = None,
    *,
    user_col: str = words.USER,
    item_col: str = words.ITEM,
    rating_col: str | None = None,
) -> dict[Any, Any]:
    """{user: mean embedding of what they took}; users without an embedded item are left out.

    Of what `load_test_data` returns, the training part is used. A plain table or {user: items} is used as it
    is, so hand over the training data: profiles made of test items know the answers.

    >>> {u: p.tolist() for u, p in compute_all_user_profiles({7: [0, 1]}, [[1.0, 0.0], [0.0, 1.0]]).items()}
    {7: [0.5, 0.5]}
    """
    history = words.truth_of(_taken(test_data), user_col, item_col, rating_col)
    vectors = vectors_of(bert_embeddings, item_to_idx)
    made = profiles_of(
        history, vectors.matrix[vectors.rows], item_ids=vectors.ids.values, weighted=rating_col is not None
    )
    keep = ~np.isin(made.ids, made.without)
    return dict(zip(made.ids[keep].tolist(), made.vectors[keep], strict=True))


def _taken(test_data: Any) -> Any:
    return test_data.user_pos_train if isinstance(test_data, words.EvaluationData) else test_data


def evaluate_hybrid_model(
    U: Any,  # noqa: N803 - the seed's name
    V: Any,  # noqa: N803 - the seed's name
    bert_embeddings: Any,
    test_data: Any,
    user_profiles: Mapping[Any, Any] | None = None,
    *,
    user_pos_train: Any = None,
    item_counts: Any = None,
    item_to_idx: Mapping[Any, int] | None = None,
    k: int = 10,
    cold_threshold: float = 5,
) -> dict[str, float]:
    """Accuracy and what content adds to it, for U and V as they are.

    Args:
        U: user factors.
        V: item factors.
        bert_embeddings: one row an item, in the order of V (or as `item_to_idx` says).
        test_data: what `load_test_data` returns, a table or {user: items}.
        user_profiles: {user: vector}, or one row a user; made of the training items without (of the test
            items, which then know the answers, where no training items are given either).
        user_pos_train: {user: training items}; those of `test_data` where it brings them.
        item_counts: how many users took each item; counted where the profiles come from without.
        item_to_idx: {item: row of the embeddings}.
        k: the length of the lists.
        cold_threshold: items with fewer interactions are cold.

    Keys: recall@k, ndcg@k, coverage, diversity@k, semantic_alignment@k, cold_start_coverage.
    """
    setting = _HybridSetting(
        bert_embeddings, test_data, user_profiles, user_pos_train, counts=item_counts, item_to_idx=item_to_idx
    )
    return setting.evaluated(_factors(U, V), cutoff=words.cutoff(k), cold_threshold=cold_threshold)


def evaluate_with_reranking(
    U: Any,  # noqa: N803 - the seed's name
    V: Any,  # noqa: N803 - the seed's name
    bert_embeddings: Any,
    test_data: Any,
    user_profiles: Mapping[Any, Any] | None = None,
    *,
    alpha: float = ALPHA,
    diversity: float = 0.0,
    user_pos_train: Any = None,
    item_counts: Any = None,
    item_to_idx: Mapping[Any, int] | None = None,
    k: int = 10,
    cold_threshold: float = 5,
) -> dict[str, float]:
    """The same for alpha * model + (1 - alpha) * content over the whole catalogue.

    Both sides are scaled to the spread of the user's scores. `diversity` above 0 picks the list by MMR from
    the 100 best. Other arguments and keys as in evaluate_hybrid_model.
    """
    setting = _HybridSetting(
        bert_embeddings, test_data, user_profiles, user_pos_train, counts=item_counts, item_to_idx=item_to_idx
    )
    model = _factors(U, V)
    mixed = blend(model, setting.content(model.n_items), alpha)
    return setting.evaluated(
        mixed, cutoff=words.cutoff(k), cold_threshold=cold_threshold, diversity=diversity
    )


def _factors(users: Any, items: Any) -> Factors:
    """Items are row numbers, all of them known: also those nobody took and no list shows."""
    return Factors(users, items, item_ids=np.arange(len(items)))


class _HybridSetting:
    """Everything but the model: the test, the history, and what is known about items and users."""

    def __init__(
        self,
        embeddings: Any,
        test_data: Any,
        profiles: Any,
        history: Any,
        *,
        counts: Any,
        item_to_idx: Mapping[Any, int] | None,
    ) -> None:
        self.truth = words.truth_of(test_data)
        self.history = words.history_of(words.brought(test_data, history))
        self.vectors = vectors_of(embeddings, item_to_idx)
        known: Interactions = self.truth if self.history is None else self.history
        made = compute_all_user_profiles(known, embeddings, item_to_idx) if profiles is None else profiles
        self.profiles = arrays_by_user(made)
        if not self.profiles:
            raise InputError("no user has a profile.", hint="Have the items they took an embedding?")
        self.counts = counts if counts is not None else training_counts(known)

    def content(self, n_items: int) -> Factors:
        """How close every item is to each user's profile; one without an embedding is close to nothing."""
        rows = np.zeros((n_items, self.vectors.matrix.shape[1]))
        inside = self.vectors.ids.values < n_items
        rows[self.vectors.ids.values[inside]] = self.vectors.matrix[self.vectors.rows[inside]]
        users: Iterable[Any] = list(self.profiles)
        return Factors(unit_rows(list(self.profiles.values())), unit_rows(rows), user_ids=users)

    def evaluated(
        self, source: Factors, *, cutoff: int, cold_threshold: float, diversity: float = 0.0
    ) -> dict[str, float]:
        """The seed's keys, from one call of the engine."""
        cold = f"cold_coverage(below={cold_threshold:g})@{cutoff}"
        keys = {
            f"recall@{cutoff}": f"recall@{cutoff}",
            f"ndcg@{cutoff}": f"ndcg@{cutoff}",
            "coverage": f"coverage@{cutoff}",
            f"diversity@{cutoff}": f"ild@{cutoff}",
            f"semantic_alignment@{cutoff}": f"alignment@{cutoff}",
            "cold_start_coverage": cold,
        }
        facts = {
            "embeddings": self.vectors,
            "profiles": self.profiles,
            "popularity": self._popularity(source.n_items),
        }
        if diversity != 0:
            pool = recommend(source, max(_POOL, cutoff), users=self.truth.cases.values, seen=self.history)
            rows = self.vectors
            lists = diversify(
                pool, rows.matrix[rows.rows], cutoff, diversity=diversity, item_ids=rows.ids.values
            )
            result = evaluate(
                lists, self.truth, list(keys.values()), catalogue=range(source.n_items), **facts
            )
        else:
            result = evaluate(source, self.truth, list(keys.values()), seen=self.history, **facts)
        return {key: result[name] for key, name in keys.items()}

    def _popularity(self, n_items: int) -> Any:
        if hasattr(self.counts, "ids"):
            return words.by_index(self.counts.ids, self.counts.values, n_items, "user_pos_train")
        return self.counts
