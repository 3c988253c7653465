"""A model with and without content re-ranking, as the comparison script of document 000 calls it.

Ranking metrics, coverage, diversity, alignment and cold-start coverage come from the same lists, in one call
of `recsys.evaluate` per model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from recsys.cf.evaluation import translation
from recsys.cf.evaluation.embedding_rows import arrays_by_user, item_vectors
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
    user_col: str = translation.USER,
    item_col: str = translation.ITEM,
    rating_col: str | None = None,
) -> dict[Any, Any]:
    """{user: mean embedding of the items they took}; users without an embedded item are left out.

    Of what `load_test_data` returns, the training part is used. A table or {user: items} is used as it is, so
    pass the training data: profiles made of test items leak the answers.

    >>> {u: p.tolist() for u, p in compute_all_user_profiles({7: [0, 1]}, [[1.0, 0.0], [0.0, 1.0]]).items()}
    {7: [0.5, 0.5]}
    """
    loaded = isinstance(test_data, translation.EvaluationData)
    history = translation.read_truth(
        test_data.user_pos_train if loaded else test_data, user_col, item_col, rating_col
    )
    vectors = item_vectors(bert_embeddings, item_to_idx)
    profiles = profiles_of(
        history, vectors.matrix[vectors.rows], item_ids=vectors.ids.values, weighted=rating_col is not None
    )
    keep = ~np.isin(profiles.ids, profiles.without)
    return dict(zip(profiles.ids[keep].tolist(), profiles.vectors[keep], strict=True))


def evaluate_hybrid_model(
    U: Any,  # noqa: N803 - the name in document 000
    V: Any,  # noqa: N803 - the name in document 000
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
    """Accuracy, coverage and content metrics of the factors U and V without re-ranking.

    Args:
        U: user factors.
        V: item factors.
        bert_embeddings: one row per item, in the order of V (or of `item_to_idx`).
        test_data: what `load_test_data` returns, a table or {user: items}.
        user_profiles: {user: vector}, or one row per user. By default they are made of the training items; if
            there are none, of the test items, which leak the answers.
        user_pos_train: {user: training items}; by default those loaded with `test_data`.
        item_counts: how many users took each item; by default counted in the data the profiles come from.
        item_to_idx: {item: row of the embeddings}.
        k: the length of the lists.
        cold_threshold: items with fewer interactions are cold.

    Keys: recall@k, ndcg@k, coverage, diversity@k, semantic_alignment@k, cold_start_coverage.
    """
    setting = _HybridSetting(
        bert_embeddings, test_data, user_profiles, user_pos_train, counts=item_counts, item_to_idx=item_to_idx
    )
    return setting.evaluate_source(
        _factors(U, V), cutoff=translation.cutoff(k), cold_threshold=cold_threshold
    )


def evaluate_with_reranking(
    U: Any,  # noqa: N803 - the name in document 000
    V: Any,  # noqa: N803 - the name in document 000
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
    """evaluate_hybrid_model for alpha * model + (1 - alpha) * content over the whole catalogue.

    Both scores are scaled to the spread of the user's scores. With `diversity` above 0, lists are picked by
    MMR from the 100 best items. Other arguments and keys are those of evaluate_hybrid_model.
    """
    setting = _HybridSetting(
        bert_embeddings, test_data, user_profiles, user_pos_train, counts=item_counts, item_to_idx=item_to_idx
    )
    model = _factors(U, V)
    mixed = blend(model, setting.content(model.n_items), alpha)
    return setting.evaluate_source(
        mixed, cutoff=translation.cutoff(k), cold_threshold=cold_threshold, diversity=diversity
    )


def _factors(users: Any, items: Any) -> Factors:
    """Factors with row numbers as item ids, so that items nobody took are part of the catalogue."""
    return Factors(users, items, item_ids=np.arange(len(items)))


class _HybridSetting:
    """What both evaluations share: test set, history, embeddings, profiles and item counts."""

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
        self.truth = translation.read_truth(test_data)
        self.history = translation.training_history(test_data, history)
        self.vectors = item_vectors(embeddings, item_to_idx)
        interactions: Interactions = self.truth if self.history is None else self.history
        if profiles is None:
            profiles = compute_all_user_profiles(interactions, embeddings, item_to_idx)
        self.profiles = arrays_by_user(profiles)
        if not self.profiles:
            raise InputError(
                "no user has a profile.", hint="Check that the items users took have an embedding."
            )
        self.counts = counts if counts is not None else training_counts(interactions)

    def content(self, n_items: int) -> Factors:
        """Cosine of every item with each user's profile; 0 for items without an embedding."""
        rows = np.zeros((n_items, self.vectors.matrix.shape[1]))
        inside = self.vectors.ids.values < n_items
        rows[self.vectors.ids.values[inside]] = self.vectors.matrix[self.vectors.rows[inside]]
        users: Iterable[Any] = list(self.profiles)
        return Factors(unit_rows(list(self.profiles.values())), unit_rows(rows), user_ids=users)

    def evaluate_source(
        self, source: Factors, *, cutoff: int, cold_threshold: float, diversity: float = 0.0
    ) -> dict[str, float]:
        """The result keys of document 000, from one call of `recsys.evaluate`."""
        keys = {
            f"recall@{cutoff}": f"recall@{cutoff}",
            f"ndcg@{cutoff}": f"ndcg@{cutoff}",
            "coverage": f"coverage@{cutoff}",
            f"diversity@{cutoff}": f"ild@{cutoff}",
            f"semantic_alignment@{cutoff}": f"alignment@{cutoff}",
            "cold_start_coverage": f"cold_coverage(below={cold_threshold:g})@{cutoff}",
        }
        counts = self.counts
        if hasattr(counts, "ids"):
            counts = translation.values_by_index(counts.ids, counts.values, source.n_items, "user_pos_train")
        known: dict[str, Any] = {"embeddings": self.vectors, "profiles": self.profiles, "popularity": counts}
        if diversity != 0:
            pool = recommend(source, max(_POOL, cutoff), users=self.truth.cases.values, seen=self.history)
            rows = self.vectors
            lists = diversify(
                pool, rows.matrix[rows.rows], cutoff, diversity=diversity, item_ids=rows.ids.values
            )
            result = evaluate(
                lists, self.truth, list(keys.values()), catalogue=range(source.n_items), **known
            )
        else:
            result = evaluate(source, self.truth, list(keys.values()), seen=self.history, **known)
        return {key: result[name] for key, name in keys.items()}
