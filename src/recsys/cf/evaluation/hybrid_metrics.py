"""The hybrid metrics of document 000 (diversity, novelty and the like), computed by `recsys.evaluate`.

`compute` takes one list; `compute_batch` takes {user: list} and returns mean, std, min and max over the
users. Items without an embedding (outside the matrix or the mapping, a row of zeros or NaN) are left out and
counted in `num_missing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any

import numpy as np

from recsys.analysis.cold_items import cold_items, cold_shares
from recsys.cf.evaluation.embedding_metrics import (
    DiversityMetric,
    HybridMetric,
    SemanticAlignmentMetric,
    Summary,
    has_items,
    with_cutoff,
)
from recsys.cf.evaluation.translation import cutoff, id_list, item_lists, mapping_by_user
from recsys.errors import InputError, UnknownNameError
from recsys.evaluation.evaluate import evaluate
from recsys.metrics.requests import Request
from recsys.models.baselines import item_scores_of

__all__ = [
    "ColdStartCoverageMetric",
    "DiversityMetric",
    "HybridMetric",
    "HybridMetricCollection",
    "NoveltyMetric",
    "SemanticAlignmentMetric",
    "SerendipityMetric",
    "Summary",
    "compute_cold_start_coverage",
    "compute_diversity_bert",
    "compute_semantic_alignment",
]


class ColdStartCoverageMetric(HybridMetric):
    """The share of cold items (fewer than `cold_threshold` interactions) that occur in any list.

    >>> metric = ColdStartCoverageMetric(cold_threshold=5)
    >>> metric.compute({0: [1, 2], 1: [2, 3]}, item_counts=[9, 0, 4, 50, 1])
    0.6666666666666666
    """

    name = "cold_start_coverage"

    def __init__(self, cold_threshold: float = 5) -> None:
        self.cold_threshold = cold_threshold

    def compute(
        self,
        all_recommendations: Mapping[Any, Any],
        item_counts: Any,
        cold_threshold: float | None = None,
    ) -> float:
        """The share over all lists, 0.0 without cold items; `item_counts` is an array, a Series or a dict."""
        threshold = self._threshold(cold_threshold)
        ids, counts = item_scores_of(item_counts)
        lists = item_lists(all_recommendations)
        if not any(lists.values()) or not len(counts):
            return 0.0
        item_ids = np.arange(len(counts)) if ids is None else ids.tolist()
        counts_by_item = dict(zip(item_ids, counts, strict=True))
        result = evaluate(
            lists,
            dict.fromkeys(lists, ()),
            [f"cold_coverage(below={threshold:g})"],
            popularity=counts_by_item,
            catalogue=list(counts_by_item),
        )
        return float(next(iter(result.values())))

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
        return self.cold_threshold if cold_threshold is None else cold_threshold


class NoveltyMetric(HybridMetric):
    """The mean of log2(users / users who took the item) over the first k items.

    An item that nobody took counts as taken by one user.

    >>> NoveltyMetric(k=2).compute([0, 1], item_popularity=[4, 1], num_users=8)
    2.0
    """

    def __init__(self, k: int | None = 10) -> None:
        self.k = k
        self.name = with_cutoff("novelty", k)

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
        if not has_items(all_recommendations):
            return self._summary([0.0] * len(all_recommendations))
        request = self._request(num_users, k)
        return self._summary(self._values_by_user(request, all_recommendations, popularity=item_popularity))

    def _request(self, num_users: int | None, k: int | None) -> Request:
        if num_users is None:
            raise InputError("novelty needs the number of users.", hint="Pass num_users=.")
        return Request.of(with_cutoff("novelty", self.k if k is None else k), users=float(num_users))


class SerendipityMetric(HybridMetric):
    """1/k times the number of relevant items among the first k that a baseline would not have shown.

    A single baseline list is expected by every user. With {user: list}, an item is expected to the degree
    that the baseline lists hold it. Baseline lists are also cut at k.

    >>> SerendipityMetric(k=4).compute([1, 2, 3, 4], {1, 2}, baseline_recommendations=[1, 9])
    0.25
    """

    def __init__(self, k: int = 10) -> None:
        self.k = cutoff(k)
        self.name = with_cutoff("serendipity", self.k)

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
        request = with_cutoff("serendipity", self.k if k is None else k)
        return self._list_value(
            request, recommendations, ground_truth, reference=_reference_lists(baseline_recommendations)
        )

    def compute_batch(
        self,
        all_recommendations: Mapping[Any, Any],
        ground_truth: Mapping[Any, Any],
        baseline_recommendations: Any,
        k: int | None = None,
    ) -> Summary:
        """The serendipity of every list; users without relevant items are left out."""
        if not has_items(all_recommendations):
            return self._summary([])
        lists = mapping_by_user(all_recommendations)
        request = with_cutoff("serendipity", self.k if k is None else k)
        reference = _reference_lists(baseline_recommendations, lists)
        truth = {user: ground_truth.get(user, ()) for user in lists}
        return self._summary(self._values_by_user(request, lists, truth, reference=reference))


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
        **more: Any,
    ) -> dict[str, float]:
        """{metric: mean, metric_std: standard deviation} of each metric; cold-start coverage is one number.

        `more` may hold item_popularity and num_users (for novelty), ground_truth and
        baseline_recommendations (for serendipity), and item_embeddings (another name for embeddings). A
        metric of your own gets those arguments that its `compute_batch` (or, if it has none, its `compute`)
        has parameters for.
        """
        item_embeddings = more.pop("item_embeddings", None)
        known = {
            "embeddings": item_embeddings if embeddings is None else embeddings,
            "user_profiles": user_profiles,
            "item_counts": item_counts,
            "item_popularity": more.pop("item_popularity", None),
            "num_users": more.pop("num_users", None),
            "ground_truth": more.pop("ground_truth", None),
            "baseline_recommendations": more.pop("baseline_recommendations", None),
        }
        if more:
            raise UnknownNameError("keyword", next(iter(more)), [*known, "item_embeddings"])
        values: dict[str, float] = {}
        for metric in self.metrics:
            needs = next(
                (names for kind, names in _NEEDED_ARGUMENTS.items() if isinstance(metric, kind)), None
            )
            if needs is None:
                values |= _custom_metric_values(
                    metric, {"all_recommendations": all_recommendations, **known}, item_to_idx
                )
                continue
            missing = [name for name in needs if known[name] is None]
            if missing and not self._metrics_are_explicit:
                continue
            if missing:
                raise InputError(f"{metric.name} needs {' and '.join(missing)}.", hint=f"Pass {missing[0]}=.")
            arguments = {name: known[name] for name in needs}
            values |= _metric_values(metric, all_recommendations, arguments, item_to_idx)
        return values

    def evaluate_diversity(
        self, all_recommendations: Mapping[Any, Any], embeddings: Any, item_to_idx: Any = None
    ) -> Summary:
        """DiversityMetric().compute_batch of the same arguments."""
        return DiversityMetric().compute_batch(all_recommendations, embeddings, item_to_idx)

    def evaluate_alignment(
        self,
        user_profiles: Mapping[Any, Any],
        all_recommendations: Mapping[Any, Any],
        embeddings: Any,
        item_to_idx: Any = None,
    ) -> Summary:
        """SemanticAlignmentMetric().compute_batch of the same arguments."""
        return SemanticAlignmentMetric().compute_batch(
            user_profiles, all_recommendations, embeddings, item_to_idx
        )

    def evaluate_novelty(
        self, all_recommendations: Mapping[Any, Any], item_popularity: Any, num_users: int
    ) -> Summary:
        """NoveltyMetric().compute_batch of the same arguments."""
        return NoveltyMetric().compute_batch(all_recommendations, item_popularity, num_users)


_NEEDED_ARGUMENTS: dict[type[HybridMetric], tuple[str, ...]] = {
    DiversityMetric: ("embeddings",),
    SemanticAlignmentMetric: ("user_profiles", "embeddings"),
    ColdStartCoverageMetric: ("item_counts",),
    NoveltyMetric: ("item_popularity", "num_users"),
    SerendipityMetric: ("ground_truth", "baseline_recommendations"),
}


def _metric_values(
    metric: Any, lists: Mapping[Any, Any], arguments: dict[str, Any], item_to_idx: Mapping[Any, int] | None
) -> dict[str, float]:
    """The values of a metric of this module, under their result keys."""
    if isinstance(metric, ColdStartCoverageMetric):
        return {metric.name: metric.compute(lists, **arguments)}
    if "embeddings" in arguments:
        arguments["item_to_idx"] = item_to_idx
    summary = metric.compute_batch(all_recommendations=lists, **arguments)
    return {metric.name: summary["mean"], f"{metric.name}_std": summary["std"]}


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
