"""The base class of the metrics in `hybrid_metrics`, and the metrics that read embeddings."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from recsys.analysis import number_summary
from recsys.cf.evaluation.embedding_rows import arrays_by_user, item_vectors, n_without_vector
from recsys.cf.evaluation.translation import cutoff, id_list, mapping_by_user
from recsys.errors import InputError, UnknownNameError
from recsys.evaluation.evaluate import evaluate
from recsys.metrics.requests import Request
from recsys.models.rerankers import user_profiles
from recsys.ranks.sources.foreign_arrays import as_array

_SIMILARITIES = {"cosine": "cosine", "euclidean": "bounded_euclidean", "jaccard": "jaccard"}
Similarity = str | Callable[[Any, Any], float]


class Summary(dict[str, float]):
    """mean, std, min and max over `num_users` users; `num_missing` entries have no embedding."""

    num_users: int = 0
    num_missing: int = 0


class HybridMetric(ABC):
    """Base class: a name and `compute`; `num_missing` belongs to the last call."""

    name: str
    num_missing: int = 0

    def __init__(self, name: str | None = None) -> None:
        if name is not None:
            self.name = name

    @abstractmethod
    def compute(self, *args: Any, **kwargs: Any) -> float:
        """The metric's value."""

    def _list_value(
        self, request: str | Request, items: Iterable[Any], truth: Any = (), **facts: Any
    ) -> float:
        """The value of one list; 0.0 where it is undefined."""
        items = id_list(items)
        value = self._values_by_user(request, {0: items}, {0: truth}, **facts)[0] if items else math.nan
        return 0.0 if math.isnan(value) else float(value)

    def _values_by_user(
        self, request: str | Request, lists: Mapping[Any, Any], truth: Any = None, **facts: Any
    ) -> Any:
        """One value per user."""
        lists = mapping_by_user(lists)
        relevant = dict.fromkeys(lists, ()) if truth is None else truth
        result = evaluate(lists, relevant, [request], **facts)
        vectors = facts.get("embeddings")
        self.num_missing = 0 if vectors is None else n_without_vector(lists, vectors)
        return result.values_of(str(result.requests[0]))

    def _summary(self, values: Any) -> Summary:
        numbers = number_summary(values)
        keys = ("mean", "std", "min", "max")
        summary = Summary({key: numbers[key] if numbers["count"] else 0.0 for key in keys})
        summary.num_users, summary.num_missing = int(numbers["count"]), self.num_missing
        return summary

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"


def has_items(lists: Mapping[Any, Any]) -> bool:
    """Whether any list has an item."""
    return any(len(items) for items in mapping_by_user(lists).values())


def with_cutoff(request: str, k: int | None) -> str:
    """The name with the cut-off k, if there is one."""
    return request if k is None else f"{request}@{cutoff(k)}"


class DiversityMetric(HybridMetric):
    """1 - mean similarity over the pairs of items in a list; 0.0 for fewer than two items.

    Args:
        similarity_type: "cosine"; "euclidean", 1 / (1 + distance); "jaccard" of the coordinates that are
            not 0; or a function of two vectors.
        k: use only the first k items of a list.

    >>> DiversityMetric().compute([0, 1, 2], [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]).__round__(4)
    0.6667
    """

    def __init__(self, similarity_type: Similarity = "cosine", k: int | None = None) -> None:
        if not callable(similarity_type) and similarity_type not in _SIMILARITIES:
            raise UnknownNameError("similarity", similarity_type, _SIMILARITIES)
        self.similarity_type = similarity_type
        self.k = k
        self.name = with_cutoff("diversity", k)

    def compute(
        self, recommendations: Iterable[Any], embeddings: Any, item_to_idx: Mapping[Any, int] | None = None
    ) -> float:
        """The diversity of one list."""
        items = id_list(recommendations)
        return self._list_value(
            self._request(), items, embeddings=item_vectors(embeddings, item_to_idx, items)
        )

    def compute_batch(
        self,
        all_recommendations: Mapping[Any, Any],
        embeddings: Any,
        item_to_idx: Mapping[Any, int] | None = None,
    ) -> Summary:
        """The diversity of every list."""
        if not has_items(all_recommendations):
            return self._summary([0.0] * len(all_recommendations))
        vectors = item_vectors(embeddings, item_to_idx)
        return self._summary(self._values_by_user(self._request(), all_recommendations, embeddings=vectors))

    def _request(self) -> Request:
        similarity = self.similarity_type
        distance: Any = _distance_function(similarity) if callable(similarity) else _SIMILARITIES[similarity]
        return Request.of(with_cutoff("ild", self.k), distance=distance)


def _distance_function(similarity: Callable[[Any, Any], float]) -> Callable[[Any, Any], float]:
    def distance(a: Any, b: Any) -> float:
        return 1.0 - similarity(a, b)

    return distance


class SemanticAlignmentMetric(HybridMetric):
    """The mean cosine of the items of a list with the user's profile.

    >>> SemanticAlignmentMetric().compute([1.0, 0.0], [0, 1], [[2.0, 0.0], [0.0, 3.0]])
    0.5
    """

    def __init__(self, k: int | None = None) -> None:
        self.k = k
        self.name = with_cutoff("semantic_alignment", k)

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
        """The alignment of one list with one profile; 0.0 for a profile of zeros."""
        items = id_list(recommendations)
        vectors = item_vectors(embeddings if item_embeddings is None else item_embeddings, item_to_idx, items)
        cutoff_k = self.k if k is None else k
        return self._list_value(
            with_cutoff("alignment", cutoff_k),
            items,
            embeddings=vectors,
            profiles={0: as_array(user_profile_emb)},
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
        """Every list with its user's profile; users without a profile or an embedded item are left out."""
        if not has_items(all_recommendations) or not len(user_profiles):
            return self._summary([])
        vectors = item_vectors(embeddings if item_embeddings is None else item_embeddings, item_to_idx)
        cutoff_k = self.k if k is None else k
        profiles = arrays_by_user(user_profiles)
        return self._summary(
            self._values_by_user(
                with_cutoff("alignment", cutoff_k), all_recommendations, embeddings=vectors, profiles=profiles
            )
        )

    @staticmethod
    def compute_user_profile(
        user_history_items: Iterable[Any],
        item_embeddings: Any,
        item_to_idx: Mapping[Any, int] | None = None,
        aggregation: str = "mean",
        weights: Iterable[float] | None = None,
    ) -> Any:
        """The (weighted) mean embedding of the items a user took; zeros if none of them has an embedding.

        `user_history_items` may be {item: weight}; an item taken twice counts twice.

        >>> SemanticAlignmentMetric.compute_user_profile([0, 1], [[1.0, 0.0], [0.0, 1.0]], weights=[3, 1])
        array([0.75, 0.25])
        """
        items = id_list(user_history_items)
        if isinstance(user_history_items, Mapping) and weights is None:
            weights = user_history_items.values()
        rows = as_array(item_embeddings).astype(np.float64)
        if not items:
            return np.zeros(rows.shape[1])
        item_rows = items if item_to_idx is None else [item_to_idx.get(item, len(rows)) for item in items]
        item_weights = [1.0] * len(items) if weights is None else [float(weight) for weight in weights]
        if len(item_weights) != len(items):
            raise InputError(f"there are {len(items)} items and {len(item_weights)} weights.")
        weight_by_row = dict.fromkeys(item_rows, 0.0)
        for row, weight in zip(item_rows, item_weights, strict=True):
            weight_by_row[row] += weight
        return user_profiles({0: weight_by_row}, rows, weighted=True, aggregation=aggregation).vectors[0]
