"""The hybrid metrics of document 000 (diversity, novelty and the like), computed by `recsys.evaluate`.

`compute` takes one list; `compute_batch` takes {user: list} and returns mean, std, min and max over the
users. Items without an embedding (outside the matrix or the mapping, a row of zeros or NaN) are left out and
counted in `num_missing`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, signature
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from recsys.analysis import number_summary
from recsys.cf.evaluation.metrics import NamedMetric
from recsys.cf.evaluation.translation import (
    check_same_kind,
    cutoff,
    finite,
    id_list,
    mapping_by_user,
    matrix_of,
    value_of_lists,
)
from recsys.errors import InputError, UnknownNameError
from recsys.evaluation.evaluate import evaluate
from recsys.inputs.containers import as_array
from recsys.inputs.ids import encode, ids_from_sequence
from recsys.metrics.registry import Request
from recsys.models.baselines import item_scores_of
from recsys.records.arrays import Vectors

_SIMILARITIES = {"cosine": "cosine", "euclidean": "bounded_euclidean", "jaccard": "jaccard"}
Similarity = str | Callable[[Any, Any], float]


class Summary(dict[str, float]):
    """mean, std, min and max over `num_users` users; `num_missing` entries have no embedding."""

    num_users: int = 0
    num_missing: int = 0


class HybridMetric(NamedMetric):
    """Base class: a name and `compute`; `num_missing` belongs to the last call."""

    num_missing: int = 0

    def _list_value(
        self, request: str | Request, items: Iterable[Any], truth: Any = (), **facts: Any
    ) -> float:
        """The value of one list; 0.0 where it is undefined."""
        lists = {0: id_list(items, "recommendations", ranked=True)}
        values, self.num_missing = _values_by_user(request, lists, {0: truth}, **facts)
        return 0.0 if math.isnan(values[0]) else float(values[0])

    def _summary(
        self, request: str | Request, lists: Mapping[Any, Any], truth: Any = None, **facts: Any
    ) -> Summary:
        """The values of all lists, summed up; users for whom the metric is undefined are left out."""
        values, self.num_missing = _values_by_user(request, lists, truth, **facts)
        numbers = number_summary(values)
        keys = ("mean", "std", "min", "max")
        summary = Summary({key: numbers[key] if numbers["count"] else 0.0 for key in keys})
        summary.num_users, summary.num_missing = int(numbers["count"]), self.num_missing
        return summary


def _values_by_user(
    request: str | Request, lists: Mapping[Any, Any], truth: Any = None, **facts: Any
) -> tuple[Any, int]:
    """One value per user, and how many entries of the lists have no embedding."""
    lists = mapping_by_user(lists)
    if not lists or not facts.get("profiles", lists):
        return np.zeros(0), 0
    truth = dict.fromkeys(lists, ()) if truth is None else truth
    result = evaluate(lists, truth, [request], **facts)
    _check_reach(lists, facts.get("popularity"))
    num_missing = 0
    vectors: Vectors | None = facts.get("embeddings")
    if vectors is not None:
        entries = list(chain.from_iterable(lists.values()))
        items = ids_from_sequence(entries, table="lists", column="item")
        num_missing = int((vectors.ids.code_of(items) < 0).sum()) if len(vectors.ids) else len(entries)
    return result.values_of(str(result.requests[0])), num_missing


def _check_reach(lists: Mapping[Any, Any], popularity: Any) -> None:
    """An error if one number per item index ends before the items of the lists do."""
    if popularity is None or hasattr(popularity, "items"):
        return
    listed = chain.from_iterable(map(id_list, lists.values()))
    outside = [i for i in listed if isinstance(i, int | np.integer) and not 0 <= i < len(popularity)]
    if outside:
        raise InputError(
            f"item_popularity ends at item {len(popularity) - 1}, and a list holds item {outside[0]!r}.",
            table="item_popularity",
            hint="Pass one number per item of the catalogue, or {item: number}.",
        )


class DiversityMetric(HybridMetric):
    """1 - mean similarity over the pairs of items in a list; 0.0 for fewer than two items.

    Args:
        similarity_type: "cosine"; "euclidean", 1 / (1 + distance); "jaccard" of the coordinates that are
            not 0; or a function of two vectors.

    >>> DiversityMetric().compute([0, 1, 2], [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]).__round__(4)
    0.6667
    """

    name = "diversity"

    def __init__(self, similarity_type: Similarity = "cosine") -> None:
        distance: Any
        if callable(similarity_type):
            similarity = similarity_type

            def distance(a: Any, b: Any) -> float:
                return 1.0 - similarity(a, b)
        elif similarity_type in _SIMILARITIES:
            distance = _SIMILARITIES[similarity_type]
        else:
            raise UnknownNameError("similarity", similarity_type, _SIMILARITIES)
        self._request = Request.of("ild", distance=distance)

    def compute(
        self, recommendations: Iterable[Any], embeddings: Any, item_to_idx: Mapping[Any, int] | None = None
    ) -> float:
        """The diversity of one list."""
        items = id_list(recommendations)
        return self._list_value(self._request, items, embeddings=item_vectors(embeddings, item_to_idx, items))

    def compute_batch(
        self,
        all_recommendations: Mapping[Any, Any],
        embeddings: Any,
        item_to_idx: Mapping[Any, int] | None = None,
    ) -> Summary:
        """The diversity of every list."""
        vectors = item_vectors(embeddings, item_to_idx)
        return self._summary(self._request, all_recommendations, embeddings=vectors)


class SemanticAlignmentMetric(HybridMetric):
    """The mean cosine of the items of a list with the user's profile.

    >>> SemanticAlignmentMetric().compute([1.0, 0.0], [0, 1], [[2.0, 0.0], [0.0, 3.0]])
    0.5
    """

    name = "semantic_alignment"

    def compute(
        self,
        user_profile_emb: Any,
        recommendations: Iterable[Any],
        embeddings: Any,
        item_to_idx: Mapping[Any, int] | None = None,
    ) -> float:
        """The alignment of one list with one profile; 0.0 for a profile of zeros."""
        items = id_list(recommendations)
        facts = {"profiles": {0: as_array(user_profile_emb)}}
        return self._list_value(
            "alignment", items, embeddings=item_vectors(embeddings, item_to_idx, items), **facts
        )

    def compute_batch(
        self,
        user_profiles: Mapping[Any, Any],
        all_recommendations: Mapping[Any, Any],
        embeddings: Any,
        item_to_idx: Mapping[Any, int] | None = None,
    ) -> Summary:
        """Every list with its user's profile; users without a profile or an embedded item are left out."""
        facts = {"profiles": arrays_by_user(user_profiles)}
        vectors = item_vectors(embeddings, item_to_idx)
        return self._summary("alignment", all_recommendations, embeddings=vectors, **facts)


class ColdStartCoverageMetric(HybridMetric):
    """The share of cold items (fewer than `cold_threshold` interactions) that occur in any list.

    >>> metric = ColdStartCoverageMetric(cold_threshold=5)
    >>> metric.compute({0: [1, 2], 1: [2, 3]}, item_counts=[9, 0, 4, 50, 1])
    0.6666666666666666
    """

    name = "cold_start_coverage"

    def __init__(self, cold_threshold: float = 5) -> None:
        self.cold_threshold = finite(cold_threshold, "cold_threshold")

    def compute(
        self,
        all_recommendations: Mapping[Any, Any],
        item_counts: Any,
        cold_threshold: float | None = None,
    ) -> float:
        """The share over all lists, 0.0 without cold items; `item_counts` is an array, a Series or a dict."""
        threshold = (
            self.cold_threshold if cold_threshold is None else finite(cold_threshold, "cold_threshold")
        )
        ids, counts = item_scores_of(item_counts)
        if not len(counts):
            return 0.0
        item_ids = np.arange(len(counts)) if ids is None else ids
        shown = map(id_list, mapping_by_user(all_recommendations).values())
        check_same_kind(chain.from_iterable(shown), item_ids, "item")
        items = item_ids.tolist()
        facts = {"popularity": dict(zip(items, counts, strict=True)), "catalogue": items}
        return value_of_lists(all_recommendations, f"cold_coverage(below={threshold:g})", **facts)


class _AtCutoff(HybridMetric):
    """A metric of the first k items of a list, or of all with k=None."""

    _metric: ClassVar[str]

    def __init__(self, k: int | None = 10) -> None:
        self.k = k
        self.name = self._with_cutoff(None)

    def _with_cutoff(self, k: int | None) -> str:
        """The name of the metric with the cut-off k, by default that of the instance."""
        k = self.k if k is None else k
        return self._metric if k is None else f"{self._metric}@{cutoff(k)}"


class NoveltyMetric(_AtCutoff):
    """The mean of log2(users / users who took the item) over the first k items.

    An item without users counts as taken by one.

    >>> NoveltyMetric(k=2).compute([0, 1], item_popularity=[4, 1], num_users=8)
    2.0
    """

    _metric = "novelty"

    def compute(
        self, recommendations: Iterable[Any], item_popularity: Any, num_users: int, k: int | None = None
    ) -> float:
        """The novelty of one list; `item_popularity` counts users: an array by index, a Series or a dict."""
        return self._list_value(self._request(num_users, k), recommendations, popularity=item_popularity)

    def compute_batch(
        self,
        all_recommendations: Mapping[Any, Any],
        item_popularity: Any,
        num_users: int,
        k: int | None = None,
    ) -> Summary:
        """The novelty of every list."""
        return self._summary(self._request(num_users, k), all_recommendations, popularity=item_popularity)

    def _request(self, num_users: int, k: int | None) -> Request:
        return Request.of(self._with_cutoff(k), users=float(finite(num_users, "num_users")))


class SerendipityMetric(_AtCutoff):
    """1/k times the number of relevant items among the first k that a baseline would not have shown.

    A single baseline list is expected by every user. With {user: list}, an item is expected to the degree
    that the baseline lists hold it. Baseline lists are also cut at k.

    >>> SerendipityMetric(k=4).compute([1, 2, 3, 4], {1, 2}, baseline_recommendations=[1, 9])
    0.25
    """

    _metric = "serendipity"

    def compute(
        self,
        recommendations: Iterable[Any],
        ground_truth: Any,
        baseline_recommendations: Any,
        k: int | None = None,
    ) -> float:
        """The serendipity of one list."""
        if not len(ground_truth):
            return 0.0
        reference = _reference_lists(baseline_recommendations)
        return self._list_value(self._with_cutoff(k), recommendations, ground_truth, reference=reference)

    def compute_batch(
        self,
        all_recommendations: Mapping[Any, Any],
        ground_truth: Mapping[Any, Any],
        baseline_recommendations: Any,
        k: int | None = None,
    ) -> Summary:
        """The serendipity of every list; users without relevant items are left out."""
        lists = mapping_by_user(all_recommendations)
        truth = {user: ground_truth.get(user, ()) for user in lists}
        reference = _reference_lists(baseline_recommendations, lists)
        return self._summary(self._with_cutoff(k), lists, truth, reference=reference)


def _reference_lists(baseline: Any, users: Iterable[Any] = (0,)) -> Any:
    """Lists by user, or one list for all users; an empty list for every user if there are none."""
    lists = baseline if isinstance(baseline, Mapping) else id_list(baseline)
    return lists or dict.fromkeys(users, ())


class HybridMetricCollection:
    """Several hybrid metrics over the same lists.

    >>> collection = HybridMetricCollection(metrics=[DiversityMetric(), ColdStartCoverageMetric()])
    >>> collection.evaluate_all({0: [0, 1]}, embeddings=[[1.0, 0.0], [0.0, 1.0]], item_counts=[1, 9])
    {'diversity': 1.0, 'diversity_std': 0.0, 'cold_start_coverage': 1.0}
    """

    def __init__(self, metrics: Sequence[HybridMetric]) -> None:
        self.metrics = list(metrics)

    def evaluate_all(
        self,
        all_recommendations: Mapping[Any, Any],
        embeddings: Any = None,
        user_profiles: Mapping[Any, Any] | None = None,
        item_counts: Any = None,
        item_to_idx: Mapping[Any, int] | None = None,
        *,
        item_popularity: Any = None,
        num_users: int | None = None,
        ground_truth: Mapping[Any, Any] | None = None,
        baseline_recommendations: Any = None,
    ) -> dict[str, float]:
        """{metric: mean, metric_std: standard deviation} of each metric; cold-start coverage is one number.

        A metric, also one of your own, gets those arguments that its `compute_batch` (or, if it has none, its
        `compute`) has parameters for.
        """
        arguments = {
            "all_recommendations": all_recommendations,
            "embeddings": embeddings,
            "user_profiles": user_profiles,
            "item_counts": item_counts,
            "item_popularity": item_popularity,
            "num_users": num_users,
            "ground_truth": ground_truth,
            "baseline_recommendations": baseline_recommendations,
        }
        given = {name: value for name, value in arguments.items() if value is not None}
        values: dict[str, float] = {}
        for metric in self.metrics:
            value = _call_with_its_arguments(metric, {**given, "item_to_idx": item_to_idx})
            if isinstance(value, Mapping):
                values |= {metric.name: value["mean"], f"{metric.name}_std": value["std"]}
            else:
                values[metric.name] = float(value)
        return values


def _call_with_its_arguments(metric: Any, given: dict[str, Any]) -> Any:
    """What a metric computes of the arguments it has parameters for."""
    compute = getattr(metric, "compute_batch", metric.compute)
    parameters = signature(compute).parameters
    any_kinds = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    required = [n for n, p in parameters.items() if p.default is p.empty and p.kind not in any_kinds]
    missing = [name for name in required if name not in given]
    if missing:
        raise InputError(f"{metric.name} needs {' and '.join(missing)}.", hint=f"Pass {missing[0]}=.")
    takes_any = any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())
    return compute(**{name: given[name] for name in given if takes_any or name in parameters})


def compute_diversity_bert(
    recommendations: Iterable[Any], bert_embeddings: Any, item_to_idx: Mapping[Any, int] | None = None
) -> float:
    """DiversityMetric().compute(recommendations, bert_embeddings, item_to_idx)."""
    return DiversityMetric().compute(recommendations, bert_embeddings, item_to_idx)


def compute_semantic_alignment(
    user_profile_emb: Any,
    recommendations: Iterable[Any],
    item_embeddings: Any,
    item_to_idx: Mapping[Any, int] | None = None,
) -> float:
    """SemanticAlignmentMetric().compute(user_profile_emb, recommendations, item_embeddings, item_to_idx)."""
    return SemanticAlignmentMetric().compute(user_profile_emb, recommendations, item_embeddings, item_to_idx)


def compute_cold_start_coverage(
    all_recommendations: Mapping[Any, Any], item_counts: Any, cold_threshold: float = 5
) -> float:
    """ColdStartCoverageMetric(cold_threshold).compute(all_recommendations, item_counts)."""
    return ColdStartCoverageMetric(cold_threshold).compute(all_recommendations, item_counts)


def item_vectors(
    embeddings: Any, item_to_idx: Mapping[Any, int] | None = None, only: Iterable[Any] | None = None
) -> Vectors:
    """Vectors by item.

    Items whose row is outside the matrix, all zeros or NaN are left out.

    Args:
        embeddings: a matrix with one row per item.
        item_to_idx: {item: row}; by default items are row numbers.
        only: restrict the result to these items.
    """
    matrix = matrix_of(embeddings, "embeddings")
    if item_to_idx is not None:
        item_to_idx = dict(item_to_idx.items())  # a Series iterates over its values
        known = list(item_to_idx) if only is None else [i for i in dict.fromkeys(only) if i in item_to_idx]
        if only is not None and not known:
            check_same_kind(only, item_to_idx, "item")
        items: Any = ids_from_sequence(known, table="embeddings", column="item")
        rows = np.array([int(item_to_idx[item]) for item in known], dtype=np.int64)
    elif only is None:
        items = rows = np.arange(len(matrix))
    else:
        given = ids_from_sequence(list(dict.fromkeys(only)), table="recommendations", column="item")
        items = rows = encode(given, table="recommendations", column="item")[0].values
        if items.dtype == object:
            raise InputError(
                "items are texts and the embeddings have no ids.", hint="Pass item_to_idx={item: row}."
            )
    inside = (rows >= 0) & (rows < len(matrix))
    items, rows = items[inside], rows[inside]
    vectors = matrix[rows] if only is not None or item_to_idx is not None else matrix
    if np.isinf(vectors).any():
        raise InputError("an embedding holds an infinite number.", table="embeddings")
    present = vectors.any(axis=1) & ~np.isnan(vectors).any(axis=1)
    ids, codes = encode(items[present], table="embeddings", column="item")
    row_of_code = np.empty(len(ids), dtype=np.int64)
    row_of_code[codes] = np.arange(len(vectors))[present]
    return Vectors(ids, row_of_code, vectors)


def arrays_by_user(profiles: Any) -> dict[Any, Any]:
    """{user: NumPy vector} of a mapping, a Series or table by user, or a matrix with one row per user."""
    if hasattr(profiles, "columns"):
        pairs: Any = zip(profiles.index, profiles.to_numpy(), strict=True)
    else:
        pairs = profiles.items() if hasattr(profiles, "items") else enumerate(profiles)
    return {user: as_array(vector) for user, vector in pairs}
