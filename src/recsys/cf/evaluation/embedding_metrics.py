"""What the metrics of `hybrid_metrics` share, and those of them that read embeddings."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from recsys.analysis import number_summary
from recsys.cf.evaluation.embedding_rows import arrays_by_user, n_without_vector, vectors_of
from recsys.cf.evaluation.translation import by_user, cutoff, listed
from recsys.errors import InputError, UnknownNameError
from recsys.evaluation.evaluate import evaluate
from recsys.metrics.requests import Request
from recsys.models.rerankers import user_profiles
from recsys.ranks.sources.foreign_arrays import as_array

_SIMILARITIES = {"cosine": "cosine", "euclidean": "bounded_euclidean", "jaccard": "jaccard"}
Similarity = str | Callable[[Any, Any], float]


class Summary(dict[str, float]):
    """mean, std, min and max over users; `num_users` of them, `num_missing` entries without an embedding."""

    num_users: int = 0
    num_missing: int = 0


class HybridMetric(ABC):
    """What all metrics of this module have: a name and `compute`; `num_missing` is of the last call."""

    name: str
    num_missing: int = 0

    def __init__(self, name: str | None = None) -> None:
        if name is not None:
            self.name = name

    @abstractmethod
    def compute(self, *args: Any, **kwargs: Any) -> float:
        """The metric's value."""

    def _one(self, request: str | Request, shown: Iterable[Any], truth: Any = (), **facts: Any) -> float:
        """One list's value; 0.0 where there is none."""
        items = listed(shown)
        value = self._all(request, {0: items}, {0: truth}, **facts)[0] if items else math.nan
        return 0.0 if math.isnan(value) else float(value)

    def _all(self, request: str | Request, lists: Mapping[Any, Any], truth: Any = None, **facts: Any) -> Any:
        """One value a user."""
        lists = by_user(lists)
        wanted = dict.fromkeys(lists, ()) if truth is None else truth
        result = evaluate(lists, wanted, [request], **facts)
        vectors = facts.get("embeddings")
        self.num_missing = 0 if vectors is None else n_without_vector(lists, vectors)
        return result.values_of(str(result.requests[0]))

    def _summary(self, values: Any) -> Summary:
        found = number_summary(values)
        made = Summary({n: found[n] if found["count"] else 0.0 for n in ("mean", "std", "min", "max")})
        made.num_users, made.num_missing = int(found["count"]), self.num_missing
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"


def filled(lists: Mapping[Any, Any]) -> bool:
    """Whether any list holds an item."""
    return any(len(shown) for shown in by_user(lists).values())


def at_cutoff(request: str, k: int | None) -> str:
    """The request with its cut-off, if it has one."""
    return request if k is None else f"{request}@{cutoff(k)}"


class DiversityMetric(HybridMetric):
    """1 - mean similarity of the pairs of a list; 0.0 for fewer than two items.

    Args:
        similarity_type: "cosine"; "euclidean", 1 / (1 + distance); "jaccard" of the coordinates that are
            not 0; or a function of two vectors.
        k: only the first k of a list.

    >>> DiversityMetric().compute([0, 1, 2], [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]).__round__(4)
    0.6667
    """

    def __init__(self, similarity_type: Similarity = "cosine", k: int | None = None) -> None:
        if not callable(similarity_type) and similarity_type not in _SIMILARITIES:
            raise UnknownNameError("similarity", similarity_type, _SIMILARITIES)
        self.similarity_type = similarity_type
        self.k = k
        self.name = at_cutoff("diversity", k)

    def compute(
        self, recommendations: Iterable[Any], embeddings: Any, item_to_idx: Mapping[Any, int] | None = None
    ) -> float:
        """The diversity of one list."""
        items = listed(recommendations)
        return self._one(self._request(), items, embeddings=vectors_of(embeddings, item_to_idx, items))

    def compute_batch(
        self,
        all_recommendations: Mapping[Any, Any],
        embeddings: Any,
        item_to_idx: Mapping[Any, int] | None = None,
    ) -> Summary:
        """The diversity of every list."""
        if not filled(all_recommendations):
            return self._summary([0.0] * len(all_recommendations))
        vectors = vectors_of(embeddings, item_to_idx)
        return self._summary(self._all(self._request(), all_recommendations, embeddings=vectors))

    def _request(self) -> Request:
        given = self.similarity_type
        distance: Any = _unlikeness(given) if callable(given) else _SIMILARITIES[given]
        return Request.of(at_cutoff("ild", self.k), distance=distance)


def _unlikeness(similarity: Callable[[Any, Any], float]) -> Callable[[Any, Any], float]:
    def unlike(a: Any, b: Any) -> float:
        return 1.0 - similarity(a, b)

    return unlike


class SemanticAlignmentMetric(HybridMetric):
    """The mean cosine of the items of a list with the user's profile.

    >>> SemanticAlignmentMetric().compute([1.0, 0.0], [0, 1], [[2.0, 0.0], [0.0, 3.0]])
    0.5
    """

    def __init__(self, k: int | None = None) -> None:
        self.k = k
        self.name = at_cutoff("semantic_alignment", k)

    def compute(
        self,
        user_profile_emb: Any,
        recommendations: Iterable[Any],
        embeddings: Any = None,
        item_to_idx: Mapping[Any, int] | None = None,
        k: int | None = None,
        *,
        item_embeddings: Any = None,
    ) -> float:
        """One list against one profile; 0.0 for a profile of zeros."""
        items = listed(recommendations)
        vectors = vectors_of(embeddings if item_embeddings is None else item_embeddings, item_to_idx, items)
        at = self.k if k is None else k
        return self._one(
            at_cutoff("alignment", at), items, embeddings=vectors, profiles={0: as_array(user_profile_emb)}
        )

    def compute_batch(
        self,
        user_profiles: Mapping[Any, Any],
        all_recommendations: Mapping[Any, Any],
        embeddings: Any = None,
        item_to_idx: Mapping[Any, int] | None = None,
        k: int | None = None,
        *,
        item_embeddings: Any = None,
    ) -> Summary:
        """Every list against its user's profile; users without a profile or an embedded item are left out."""
        if not filled(all_recommendations) or not len(user_profiles):
            return self._summary([])
        vectors = vectors_of(embeddings if item_embeddings is None else item_embeddings, item_to_idx)
        at = self.k if k is None else k
        profiles = arrays_by_user(user_profiles)
        return self._summary(
            self._all(at_cutoff("alignment", at), all_recommendations, embeddings=vectors, profiles=profiles)
        )

    @staticmethod
    def compute_user_profile(
        user_history_items: Iterable[Any],
        item_embeddings: Any,
        item_to_idx: Mapping[Any, int] | None = None,
        aggregation: str = "mean",
        weights: Iterable[float] | None = None,
    ) -> Any:
        """The (weighted) mean embedding of what a user took; zeros where none of it has one.

        Weights also come as {item: weight} in place of the items; an item taken twice counts twice.

        >>> SemanticAlignmentMetric.compute_user_profile([0, 1], [[1.0, 0.0], [0.0, 1.0]], weights=[3, 1])
        array([0.75, 0.25])
        """
        items = listed(user_history_items)
        if isinstance(user_history_items, Mapping) and weights is None:
            weights = user_history_items.values()
        rows = as_array(item_embeddings).astype(np.float64)
        if not items:
            return np.zeros(rows.shape[1])
        at = items if item_to_idx is None else [item_to_idx.get(item, len(rows)) for item in items]
        shares = [1.0] * len(items) if weights is None else [float(weight) for weight in weights]
        if len(shares) != len(items):
            raise InputError(f"there are {len(items)} items and {len(shares)} weights.")
        given = dict.fromkeys(at, 0.0)
        for row, share in zip(at, shares, strict=True):
            given[row] += share
        return user_profiles({0: given}, rows, weighted=True, aggregation=aggregation).vectors[0]
