"""Metrics about the items shown, in seed 000's words; the registry's metrics do the work.

`compute` takes one list, `compute_batch` {user: list} and gives mean, std, min and max over the users. An
item without an embedding (outside the matrix or the mapping, a row of zeros or NaN) is left out, and counted
in `num_missing`.
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
    at_cutoff,
    filled,
)
from recsys.cf.evaluation.translation import any_order, by_user, cutoff, listed
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
    """The share of the cold items, those with fewer than `cold_threshold` interactions, in any list.

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
        """Over all lists; `item_counts` is an array by index, a Series or a dict. 0.0 without cold items."""
        below = self._below(cold_threshold)
        ids, counts = item_scores_of(item_counts)
        lists = any_order(all_recommendations)
        if not any(lists.values()) or not len(counts):
            return 0.0
        known = dict(zip(np.arange(len(counts)) if ids is None else ids.tolist(), counts, strict=True))
        result = evaluate(
            lists,
            dict.fromkeys(lists, ()),
            [f"cold_coverage(below={below:g})"],
            popularity=known,
            catalogue=list(known),
        )
        return float(next(iter(result.values())))

    def compute_batch(
        self,
        all_recommendations: Mapping[Any, Any],
        item_counts: Any,
        cold_threshold: float | None = None,
    ) -> Summary:
        """The share of the cold items each user's own list holds."""
        return self._summary(
            cold_shares(by_user(all_recommendations), item_counts, self._below(cold_threshold))
        )

    def get_cold_item_stats(self, item_counts: Any, cold_threshold: float | None = None) -> dict[str, Any]:
        """cold_threshold, num_cold_items, num_warm_items, total_items, cold_percentage, cold_items."""
        return cold_items(item_counts, self._below(cold_threshold))

    def _below(self, given: float | None) -> float:
        return self.cold_threshold if given is None else given


class NoveltyMetric(HybridMetric):
    """The mean of log2(users / users who took the item) over the first k items; nobody counts as one user.

    >>> NoveltyMetric(k=2).compute([0, 1], item_popularity=[4, 1], num_users=8)
    2.0
    """

    def __init__(self, k: int | None = 10) -> None:
        self.k = k
        self.name = at_cutoff("novelty", k)

    def compute(
        self,
        recommendations: Iterable[Any],
        item_popularity: Any,
        num_users: int | None = None,
        k: int | None = None,
    ) -> float:
        """One list's novelty; `item_popularity` counts users, as an array by index, a Series or a dict."""
        return self._one(self._request(num_users, k), recommendations, popularity=item_popularity)

    def compute_batch(
        self,
        all_recommendations: Mapping[Any, Any],
        item_popularity: Any,
        num_users: int | None = None,
        k: int | None = None,
    ) -> Summary:
        """Every list's novelty."""
        if not filled(all_recommendations):
            return self._summary([0.0] * len(all_recommendations))
        request = self._request(num_users, k)
        return self._summary(self._all(request, all_recommendations, popularity=item_popularity))

    def _request(self, num_users: int | None, k: int | None) -> Request:
        if num_users is None:
            raise InputError("novelty needs to know how many users there are.", hint="Pass num_users=.")
        return Request.of(at_cutoff("novelty", self.k if k is None else k), users=float(num_users))


class SerendipityMetric(HybridMetric):
    """1/k times the relevant items of the first k that a baseline would not have shown.

    One baseline list is what everybody expects; {user: list} makes the expectation the share of its lists
    that hold the item. Baseline lists too are read down to place k.

    >>> SerendipityMetric(k=4).compute([1, 2, 3, 4], {1, 2}, baseline_recommendations=[1, 9])
    0.25
    """

    def __init__(self, k: int = 10) -> None:
        self.k = cutoff(k)
        self.name = at_cutoff("serendipity", self.k)

    def compute(
        self,
        recommendations: Iterable[Any],
        ground_truth: Any,
        baseline_recommendations: Any,
        k: int | None = None,
    ) -> float:
        """One list's serendipity."""
        if not len(ground_truth):
            return 0.0
        request = at_cutoff("serendipity", self.k if k is None else k)
        return self._one(
            request, recommendations, ground_truth, reference=_reference(baseline_recommendations)
        )

    def compute_batch(
        self,
        all_recommendations: Mapping[Any, Any],
        ground_truth: Mapping[Any, Any],
        baseline_recommendations: Any,
        k: int | None = None,
    ) -> Summary:
        """Every list's serendipity; users without relevant items are left out."""
        if not filled(all_recommendations):
            return self._summary([])
        request, reference = (
            at_cutoff("serendipity", self.k if k is None else k),
            _reference(baseline_recommendations, by_user(all_recommendations)),
        )
        truth = {user: ground_truth.get(user, ()) for user in by_user(all_recommendations)}
        return self._summary(self._all(request, all_recommendations, truth, reference=reference))


def _reference(given: Any, users: Iterable[Any] = (0,)) -> Any:
    """Lists by user, or one list for all; where that is empty, nobody expects anything."""
    return (given if isinstance(given, Mapping) else listed(given)) or dict.fromkeys(users, ())


class HybridMetricCollection:
    """Several of these metrics over the same lists.

    Args:
        metrics: which; without, diversity, alignment and cold-start coverage, novelty and serendipity too
            where `evaluate_all` is given what they need.
        k_values: cut-offs for the default metrics; the whole lists without.
        cold_threshold: of the default cold-start coverage.
        include_serendipity: False leaves it out of the default metrics.

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
        self._given = metrics is not None
        self.metrics: list[HybridMetric] = list(metrics or ())
        if metrics is None:
            cuts: list[int | None] = [None] if k_values is None else [*k_values]
            for k in cuts:
                self.metrics += [DiversityMetric(k=k), SemanticAlignmentMetric(k), NoveltyMetric(k)]
            self.metrics.append(ColdStartCoverageMetric(cold_threshold))
            if include_serendipity:
                self.metrics += [SerendipityMetric(10 if k is None else k) for k in cuts]

    def evaluate_all(
        self,
        all_recommendations: Mapping[Any, Any],
        embeddings: Any = None,
        user_profiles: Mapping[Any, Any] | None = None,
        item_counts: Any = None,
        item_to_idx: Mapping[Any, int] | None = None,
        **more: Any,
    ) -> dict[str, float]:
        """{metric: mean, metric_std: standard deviation} of each; cold-start coverage is one number.

        `more` is item_popularity and num_users (novelty), ground_truth and baseline_recommendations
        (serendipity), and item_embeddings, another name for embeddings. A metric of your own gets those of
        all these that its `compute_batch`, or without one its `compute`, has parameters for.
        """
        other = more.pop("item_embeddings", None)
        known = {
            "embeddings": other if embeddings is None else embeddings,
            "user_profiles": user_profiles,
            "item_counts": item_counts,
            "item_popularity": more.pop("item_popularity", None),
            "num_users": more.pop("num_users", None),
            "ground_truth": more.pop("ground_truth", None),
            "baseline_recommendations": more.pop("baseline_recommendations", None),
        }
        if more:
            raise UnknownNameError("keyword", next(iter(more)), [*known, "item_embeddings"])
        out: dict[str, float] = {}
        for metric in self.metrics:
            needs = next((held for kind, held in _NEEDS.items() if isinstance(metric, kind)), None)
            if needs is None:
                out |= _of_own(metric, {"all_recommendations": all_recommendations, **known}, item_to_idx)
                continue
            missing = [name for name in needs if known[name] is None]
            if missing and not self._given:
                continue
            if missing:
                raise InputError(f"{metric.name} needs {' and '.join(missing)}.", hint=f"Pass {missing[0]}=.")
            own = {name: known[name] for name in needs}
            out |= _named(metric, all_recommendations, own, item_to_idx)
        return out

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


_NEEDS: dict[type[HybridMetric], tuple[str, ...]] = {
    DiversityMetric: ("embeddings",),
    SemanticAlignmentMetric: ("user_profiles", "embeddings"),
    ColdStartCoverageMetric: ("item_counts",),
    NoveltyMetric: ("item_popularity", "num_users"),
    SerendipityMetric: ("ground_truth", "baseline_recommendations"),
}


def _named(
    metric: Any, lists: Mapping[Any, Any], own: dict[str, Any], item_to_idx: Mapping[Any, int] | None
) -> dict[str, float]:
    if isinstance(metric, ColdStartCoverageMetric):
        return {metric.name: metric.compute(lists, **own)}
    if "embeddings" in own:
        own["item_to_idx"] = item_to_idx
    found = metric.compute_batch(all_recommendations=lists, **own)
    return {metric.name: found["mean"], f"{metric.name}_std": found["std"]}


def _of_own(metric: Any, known: dict[str, Any], item_to_idx: Mapping[Any, int] | None) -> dict[str, float]:
    """A metric somebody else wrote, given what it has parameters for."""
    compute = getattr(metric, "compute_batch", metric.compute)
    takes = signature(compute).parameters
    every = any(one.kind is Parameter.VAR_KEYWORD for one in takes.values())
    given = {name: value for name, value in known.items() if value is not None} | {"item_to_idx": item_to_idx}
    found = compute(**{name: value for name, value in given.items() if every or name in takes})
    if isinstance(found, Mapping):
        return {metric.name: found["mean"], f"{metric.name}_std": found["std"]}
    return {metric.name: float(found)}


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
