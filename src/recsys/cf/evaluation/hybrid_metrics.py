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
from recsys.analysis.failures import cold_items, cold_shares
from recsys.cf.evaluation.metrics import NamedMetric
from recsys.cf.evaluation.translation import (
    check_same_kind,
    cutoff,
    document_words,
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
from recsys.models.rerankers import user_profiles as profiles_of
from recsys.records.arrays import Vectors

_SIMILARITIES = {"cosine": "cosine", "euclidean": "bounded_euclidean", "jaccard": "jaccard"}
Similarity = str | Callable[[Any, Any], float]


class Summary(dict[str, float]):
    """mean, std, min and max over `num_users` users; `num_missing` entries have no embedding."""

    num_users: int = 0
    num_missing: int = 0


class HybridMetric(NamedMetric):
    """Base class: a name and `compute`; `num_missing` belongs to the last call."""

    k: int | None
    num_missing: int = 0
    # What `HybridMetricCollection.evaluate_all` passes besides the lists; None for a user's own metric.
    _needed_arguments: ClassVar[tuple[str, ...] | None] = None

    def _list_value(
        self, request: str | Request, items: Iterable[Any], truth: Any = (), **facts: Any
    ) -> float:
        """The value of one list; 0.0 where it is undefined."""
        items = id_list(items, "recommendations", ranked=True)
        if not items:
            self.num_missing = 0
            return 0.0
        values, self.num_missing = _values_by_user(request, {0: items}, {0: truth}, **facts)
        return 0.0 if math.isnan(values[0]) else float(values[0])

    def _summary(self, values: Any, num_missing: int = 0) -> Summary:
        numbers = number_summary(values)
        keys = ("mean", "std", "min", "max")
        summary = Summary({key: numbers[key] if numbers["count"] else 0.0 for key in keys})
        summary.num_users = int(numbers["count"])
        summary.num_missing = self.num_missing = num_missing
        return summary

    def _request_at(self, metric: str, k: int | None) -> str:
        """The request at the cut-off k, by default that of the instance."""
        return _with_cutoff(metric, self.k if k is None else k)


def _values_by_user(
    request: str | Request, lists: Mapping[Any, Any], truth: Any = None, **facts: Any
) -> tuple[Any, int]:
    """One value per user, and how many entries of the lists have no embedding."""
    lists = mapping_by_user(lists)
    truth = dict.fromkeys(lists, ()) if truth is None else truth
    with document_words(users="num_users"):
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
        k: use only the first k items of a list.

    >>> DiversityMetric().compute([0, 1, 2], [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]).__round__(4)
    0.6667
    """

    _needed_arguments = ("embeddings",)

    def __init__(self, similarity_type: Similarity = "cosine", k: int | None = None) -> None:
        if not callable(similarity_type) and similarity_type not in _SIMILARITIES:
            raise UnknownNameError("similarity", similarity_type, _SIMILARITIES)
        self.similarity_type = similarity_type
        self.k = k
        self.name = _with_cutoff("diversity", k)

    def compute(
        self, recommendations: Iterable[Any], embeddings: Any, item_to_idx: Mapping[Any, int] | None = None
    ) -> float:
        """The diversity of one list."""
        items = id_list(recommendations)
        vectors = item_vectors(embeddings, item_to_idx, items)
        return self._list_value(self._request(), items, embeddings=vectors)

    def compute_batch(
        self,
        all_recommendations: Mapping[Any, Any],
        embeddings: Any,
        item_to_idx: Mapping[Any, int] | None = None,
    ) -> Summary:
        """The diversity of every list."""
        if not _has_items(all_recommendations):
            return self._summary([0.0] * len(all_recommendations))
        vectors = item_vectors(embeddings, item_to_idx)
        return self._summary(*_values_by_user(self._request(), all_recommendations, embeddings=vectors))

    def _request(self) -> Request:
        similarity, request = self.similarity_type, _with_cutoff("ild", self.k)
        if not callable(similarity):
            return Request.of(request, distance=_SIMILARITIES[similarity])

        def distance(a: Any, b: Any) -> float:
            return 1.0 - similarity(a, b)

        return Request.of(request, distance=distance)


class SemanticAlignmentMetric(HybridMetric):
    """The mean cosine of the items of a list with the user's profile.

    >>> SemanticAlignmentMetric().compute([1.0, 0.0], [0, 1], [[2.0, 0.0], [0.0, 3.0]])
    0.5
    """

    _needed_arguments = ("user_profiles", "embeddings")

    def __init__(self, k: int | None = None) -> None:
        self.k = k
        self.name = _with_cutoff("semantic_alignment", k)

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
        profiles = {0: as_array(user_profile_emb)}
        request = self._request_at("alignment", k)
        return self._list_value(request, items, embeddings=vectors, profiles=profiles)

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
        if not _has_items(all_recommendations) or not len(user_profiles):
            return self._summary([])
        vectors = item_vectors(embeddings if item_embeddings is None else item_embeddings, item_to_idx)
        facts = {"embeddings": vectors, "profiles": arrays_by_user(user_profiles)}
        request = self._request_at("alignment", k)
        return self._summary(*_values_by_user(request, all_recommendations, **facts))

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
        rows = matrix_of(item_embeddings, "item_embeddings").astype(np.float64)
        if not items:
            return np.zeros(rows.shape[1])
        item_rows = items if item_to_idx is None else [item_to_idx.get(item, len(rows)) for item in items]
        item_weights = (
            [1.0] * len(items) if weights is None else [finite(weight, "weights") for weight in weights]
        )
        if len(item_weights) != len(items):
            raise InputError(f"there are {len(items)} items and {len(item_weights)} weights.")
        weight_by_row = dict.fromkeys(item_rows, 0.0)
        for row, weight in zip(item_rows, item_weights, strict=True):
            weight_by_row[row] += weight
        return profiles_of({0: weight_by_row}, rows, weighted=True, aggregation=aggregation).vectors[0]


class ColdStartCoverageMetric(HybridMetric):
    """The share of cold items (fewer than `cold_threshold` interactions) that occur in any list.

    >>> metric = ColdStartCoverageMetric(cold_threshold=5)
    >>> metric.compute({0: [1, 2], 1: [2, 3]}, item_counts=[9, 0, 4, 50, 1])
    0.6666666666666666
    """

    name = "cold_start_coverage"
    _needed_arguments = ("item_counts",)

    def __init__(self, cold_threshold: float = 5) -> None:
        self.cold_threshold = finite(cold_threshold, "cold_threshold")

    def compute(
        self,
        all_recommendations: Mapping[Any, Any],
        item_counts: Any,
        cold_threshold: float | None = None,
    ) -> float:
        """The share over all lists, 0.0 without cold items; `item_counts` is an array, a Series or a dict."""
        threshold = self._threshold(cold_threshold)
        ids, counts = item_scores_of(item_counts)
        if not len(counts):
            return 0.0
        item_ids = np.arange(len(counts)) if ids is None else ids
        shown = map(id_list, mapping_by_user(all_recommendations).values())
        check_same_kind(chain.from_iterable(shown), item_ids, "item")
        items = item_ids.tolist()
        facts = {"popularity": dict(zip(items, counts, strict=True)), "catalogue": items}
        return value_of_lists(all_recommendations, f"cold_coverage(below={threshold:g})", **facts)

    def compute_batch(
        self,
        all_recommendations: Mapping[Any, Any],
        item_counts: Any,
        cold_threshold: float | None = None,
    ) -> Summary:
        """The share of the cold items that each user's list holds."""
        return self._summary(
            cold_shares(mapping_by_user(all_recommendations), item_counts, self._threshold(cold_threshold))
        )

    def get_cold_item_stats(self, item_counts: Any, cold_threshold: float | None = None) -> dict[str, Any]:
        """Keys: cold_threshold, num_cold_items, num_warm_items, total_items, cold_percentage, cold_items."""
        return cold_items(item_counts, self._threshold(cold_threshold))

    def _threshold(self, cold_threshold: float | None) -> float:
        return self.cold_threshold if cold_threshold is None else finite(cold_threshold, "cold_threshold")


class NoveltyMetric(HybridMetric):
    """The mean of log2(users / users who took the item) over the first k items.

    An item that nobody took counts as taken by one user.

    >>> NoveltyMetric(k=2).compute([0, 1], item_popularity=[4, 1], num_users=8)
    2.0
    """

    _needed_arguments = ("item_popularity", "num_users")

    def __init__(self, k: int | None = 10) -> None:
        self.k = k
        self.name = _with_cutoff("novelty", k)

    def compute(
        self,
        recommendations: Iterable[Any],
        item_popularity: Any,
        num_users: int | None = None,
        k: int | None = None,
    ) -> float:
        """The novelty of one list; `item_popularity` counts users: an array by index, a Series or a dict."""
        return self._list_value(self._request(num_users, k), recommendations, popularity=item_popularity)

    def compute_batch(
        self,
        all_recommendations: Mapping[Any, Any],
        item_popularity: Any,
        num_users: int | None = None,
        k: int | None = None,
    ) -> Summary:
        """The novelty of every list."""
        if not _has_items(all_recommendations):
            return self._summary([0.0] * len(all_recommendations))
        request = self._request(num_users, k)
        return self._summary(*_values_by_user(request, all_recommendations, popularity=item_popularity))

    def _request(self, num_users: int | None, k: int | None) -> Request:
        if num_users is None:
            raise InputError("novelty needs the number of users.", hint="Pass num_users=.")
        return Request.of(self._request_at("novelty", k), users=float(finite(num_users, "num_users")))


class SerendipityMetric(HybridMetric):
    """1/k times the number of relevant items among the first k that a baseline would not have shown.

    A single baseline list is expected by every user. With {user: list}, an item is expected to the degree
    that the baseline lists hold it. Baseline lists are also cut at k.

    >>> SerendipityMetric(k=4).compute([1, 2, 3, 4], {1, 2}, baseline_recommendations=[1, 9])
    0.25
    """

    _needed_arguments = ("ground_truth", "baseline_recommendations")

    def __init__(self, k: int = 10) -> None:
        self.k = cutoff(k)
        self.name = _with_cutoff("serendipity", self.k)

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
        return self._list_value(
            self._request_at("serendipity", k), recommendations, ground_truth, reference=reference
        )

    def compute_batch(
        self,
        all_recommendations: Mapping[Any, Any],
        ground_truth: Mapping[Any, Any],
        baseline_recommendations: Any,
        k: int | None = None,
    ) -> Summary:
        """The serendipity of every list; users without relevant items are left out."""
        if not _has_items(all_recommendations):
            return self._summary([])
        lists = mapping_by_user(all_recommendations)
        request = self._request_at("serendipity", k)
        reference = _reference_lists(baseline_recommendations, lists)
        truth = {user: ground_truth.get(user, ()) for user in lists}
        return self._summary(*_values_by_user(request, lists, truth, reference=reference))


def _reference_lists(baseline: Any, users: Iterable[Any] = (0,)) -> Any:
    """Lists by user, or one list for all users; an empty list for every user if there are none."""
    lists = baseline if isinstance(baseline, Mapping) else id_list(baseline)
    return lists or dict.fromkeys(users, ())


class HybridMetricCollection:
    """Several hybrid metrics over the same lists.

    Args:
        metrics: the metrics. By default diversity, alignment, cold-start coverage, novelty and serendipity,
            each if `evaluate_all` gets the arguments it needs.
        k_values: cut-offs of the default metrics; by default they use whole lists.
        cold_threshold: threshold of the default cold-start coverage.
        include_serendipity: False leaves serendipity out of the default metrics.

    >>> collection = HybridMetricCollection(metrics=[DiversityMetric(), ColdStartCoverageMetric()])
    >>> collection.evaluate_all({0: [0, 1]}, embeddings=[[1.0, 0.0], [0.0, 1.0]], item_counts=[1, 9])
    {'diversity': 1.0, 'diversity_std': 0.0, 'cold_start_coverage': 1.0}
    """

    def __init__(
        self,
        metrics: Sequence[HybridMetric] | None = None,
        *,
        k_values: Sequence[int] | None = None,
        cold_threshold: float = 5,
        include_serendipity: bool = True,
    ) -> None:
        self._metrics_are_explicit = metrics is not None
        self.metrics: list[HybridMetric] = list(metrics or ())
        if metrics is None:
            cutoffs: list[int | None] = [None] if k_values is None else [*k_values]
            for k in cutoffs:
                self.metrics += [DiversityMetric(k=k), SemanticAlignmentMetric(k), NoveltyMetric(k)]
            self.metrics.append(ColdStartCoverageMetric(cold_threshold))
            if include_serendipity:
                self.metrics += [SerendipityMetric(10 if k is None else k) for k in cutoffs]

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
        item_embeddings: Any = None,
    ) -> dict[str, float]:
        """{metric: mean, metric_std: standard deviation} of each metric; cold-start coverage is one number.

        Novelty needs item_popularity and num_users, serendipity ground_truth and baseline_recommendations;
        item_embeddings is another name for embeddings. A metric of your own gets those arguments that its
        `compute_batch` (or, if it has none, its `compute`) has parameters for.
        """
        known = {
            "embeddings": item_embeddings if embeddings is None else embeddings,
            "user_profiles": user_profiles,
            "item_counts": item_counts,
            "item_popularity": item_popularity,
            "num_users": num_users,
            "ground_truth": ground_truth,
            "baseline_recommendations": baseline_recommendations,
        }
        values: dict[str, float] = {}
        for metric in self.metrics:
            needs = getattr(metric, "_needed_arguments", None)
            if needs is None:
                everything = {"all_recommendations": all_recommendations, **known}
                values |= _custom_metric_values(metric, everything, item_to_idx)
                continue
            missing = [name for name in needs if known[name] is None]
            if missing and not self._metrics_are_explicit:
                continue
            if missing:
                raise InputError(f"{metric.name} needs {' and '.join(missing)}.", hint=f"Pass {missing[0]}=.")
            arguments = {name: known[name] for name in needs}
            if isinstance(metric, ColdStartCoverageMetric):
                values[metric.name] = metric.compute(all_recommendations, **arguments)
                continue
            if "embeddings" in needs:
                arguments["item_to_idx"] = item_to_idx
            batch: Any = metric  # each metric of this module has compute_batch
            summary = batch.compute_batch(all_recommendations=all_recommendations, **arguments)
            values |= {metric.name: summary["mean"], f"{metric.name}_std": summary["std"]}
        return values

    def evaluate_diversity(self, *arguments: Any, **named: Any) -> Summary:
        """DiversityMetric().compute_batch of the same arguments."""
        return DiversityMetric().compute_batch(*arguments, **named)

    def evaluate_alignment(self, *arguments: Any, **named: Any) -> Summary:
        """SemanticAlignmentMetric().compute_batch of the same arguments."""
        return SemanticAlignmentMetric().compute_batch(*arguments, **named)

    def evaluate_novelty(self, *arguments: Any, **named: Any) -> Summary:
        """NoveltyMetric().compute_batch of the same arguments."""
        return NoveltyMetric().compute_batch(*arguments, **named)


def _custom_metric_values(
    metric: Any, known: dict[str, Any], item_to_idx: Mapping[Any, int] | None
) -> dict[str, float]:
    """The values of a user's own metric, called with the arguments it has parameters for."""
    compute = getattr(metric, "compute_batch", metric.compute)
    parameters = signature(compute).parameters
    takes_any = any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())
    arguments = {name: value for name, value in known.items() if value is not None}
    arguments["item_to_idx"] = item_to_idx
    value = compute(**{name: arguments[name] for name in arguments if takes_any or name in parameters})
    if isinstance(value, Mapping):
        return {metric.name: value["mean"], f"{metric.name}_std": value["std"]}
    return {metric.name: float(value)}


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


def _has_items(lists: Mapping[Any, Any]) -> bool:
    """Whether any list has an item."""
    return any(len(items) for items in mapping_by_user(lists).values())


def _with_cutoff(request: str, k: int | None) -> str:
    """The name with the cut-off k, if there is one."""
    return request if k is None else f"{request}@{cutoff(k)}"


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
