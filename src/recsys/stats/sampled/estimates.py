"""Estimates of a full-catalogue metric from sampled ranks, with intervals.

Corrections that give every case a value have the interval of a mean over cases; the rank distribution (mle)
has an interval from resampled cases. An interval covers the random choice of cases and negatives. It does not
cover bias: `worst_bias` is the largest error of the expected value at any one true rank.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recsys.errors import UnknownNameError
from recsys.stats.intervals import mean_interval
from recsys.stats.sampled.correction import corrected_values
from recsys.stats.sampled.rank_chances import binned_values, chances
from recsys.stats.sampled.rank_distribution import fit_ranks, resampled_metrics
from recsys.stats.sampled.rank_values import RankMetric, parse_rank_metric
from recsys.stats.sampled.sampled_ranks import Cases
from recsys.types import Float

METHODS = ("uncorrected", "rank", "cls", "bv", "mle")
_N_REPLICATES = 100


@dataclass(frozen=True, eq=False)
class SampledEstimate:
    """An estimate of a metric on the whole catalogue from sampled ranks."""

    metric: str
    method: str
    value: float
    low: float
    high: float
    confidence: float
    n_cases: int
    worst_bias: float | None
    per_case: Float | None = field(default=None, repr=False)

    def __str__(self) -> str:
        share = f"{self.confidence:.0%}"
        return f"{self.metric} {self.value:.4f} [{self.low:.4f}, {self.high:.4f}] ({share}, {self.method})"


def estimate(
    ranks: Any,
    n_negatives: Any = None,
    n_items: Any = None,
    metric: Any = "ndcg@10",
    *,
    method: str = "bv",
    tied: Any = None,
    replacement: bool = False,
    gamma: float = 0.01,
    prior: str = "uniform",
    clusters: Any = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> SampledEstimate:
    """Estimate a metric on the whole catalogue from ranks among sampled negatives.

    Args:
        ranks: sampled rank of each positive, 1 being best; or truth counted among candidates.
        n_negatives: how many were sampled for each positive (one number, or one per case).
        n_items: how many items the positive could be ranked among, itself included (likewise).
        metric: a metric of the rank, such as "hit@10", "ndcg@10", "map", "auc".
        method: "uncorrected" is the sampled metric itself; "rank" scales each rank up; "cls" is as unbiased
            as a monotone correction can be; "bv" trades bias for variance; "mle" estimates the
            distribution of true ranks first.
        tied: how many places each positive shares by equal scores; `ranks` then holds the best of them.
        replacement: whether a negative could be drawn twice.
        gamma: of "bv": a larger value means less variance and more bias.
        prior: of "cls" and "bv": "uniform" over ranks, or "log", uniform over their orders of magnitude.
        clusters: the user of each case, if a user has several.
        confidence: of the interval.
        seed: of the resampling behind the interval of "mle".

    >>> print(estimate([1, 1, 4, 30, 77], 99, 3706, "auc", method="uncorrected"))
    auc 0.7818 [0.3709, 1.0000] (95%, uncorrected)
    """
    cases = Cases.from_ranks(
        ranks, n_negatives, n_items, tied=tied, replacement=replacement, clusters=clusters
    )
    rank_metric = parse_rank_metric(metric)
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    if method == "mle":
        return _mle_estimates(cases, [rank_metric], confidence, seed)[0]
    return _corrected_estimate(cases, rank_metric, method, confidence, gamma=gamma, prior=prior)


def estimate_all(
    ranks: Any,
    n_negatives: Any = None,
    n_items: Any = None,
    metrics: Iterable[Any] = ("hit@10", "ndcg@10", "map", "auc"),
    *,
    methods: Iterable[str] = METHODS,
    tied: Any = None,
    replacement: bool = False,
    gamma: float = 0.01,
    prior: str = "uniform",
    clusters: Any = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, dict[str, SampledEstimate]]:
    """Every metric by every method: {metric: {method: estimate}}; arguments as in `estimate`."""
    cases = Cases.from_ranks(
        ranks, n_negatives, n_items, tied=tied, replacement=replacement, clusters=clusters
    )
    rank_metrics = [parse_rank_metric(metric) for metric in metrics]
    results_by_metric: dict[str, dict[str, SampledEstimate]] = {str(metric): {} for metric in rank_metrics}
    for method in methods:
        if method not in METHODS:
            raise UnknownNameError("method", method, METHODS)
        if method == "mle":
            results = _mle_estimates(cases, rank_metrics, confidence, seed)
        else:
            results = [
                _corrected_estimate(cases, metric, method, confidence, gamma=gamma, prior=prior)
                for metric in rank_metrics
            ]
        for result in results:
            results_by_metric[result.metric][method] = result
    return results_by_metric


def _corrected_estimate(
    cases: Cases, metric: RankMetric, method: str, confidence: float, **options: Any
) -> SampledEstimate:
    values = np.empty(len(cases))
    worst_bias = 0.0
    for sampling_class in cases.classes:
        correction = corrected_values(
            metric,
            method,
            sampling_class.n_negatives,
            sampling_class.n_items,
            replacement=cases.replacement,
            **options,
        )
        values[sampling_class.members] = cases.values_by_case(sampling_class, correction)
        table = chances(sampling_class.n_negatives, sampling_class.n_items, replacement=cases.replacement)
        worst_bias = max(
            worst_bias,
            float(np.abs(table @ correction - binned_values(metric, sampling_class.n_items)).max()),
        )
    return mean_estimate(metric, method, values, cases.clusters, confidence, worst_bias=worst_bias)


def mean_estimate(
    metric: RankMetric,
    method: str,
    values: Float,
    clusters: Any,
    confidence: float,
    *,
    worst_bias: float | None,
) -> SampledEstimate:
    """The mean of one value per case with its interval, both clipped to the metric's bounds."""
    interval = mean_interval(values, clusters=clusters, confidence=confidence)
    low, high = metric.metric.bounds
    value, clipped_low, clipped_high = (
        min(max(x, low), high) for x in (interval.value, interval.interval.low, interval.interval.high)
    )
    return SampledEstimate(
        str(metric), method, value, clipped_low, clipped_high, confidence, len(values), worst_bias, values
    )


def _mle_estimates(
    cases: Cases, metrics: list[RankMetric], confidence: float, seed: int
) -> list[SampledEstimate]:
    fitted = fit_ranks(cases)
    quantiles = (0.5 - confidence / 2, 0.5 + confidence / 2)
    results = []
    for metric, values in zip(
        metrics, resampled_metrics(cases, fitted, metrics, _N_REPLICATES, seed), strict=True
    ):
        low, high = np.quantile(values, quantiles)
        value = fitted.mean_of(metric)
        limits = min(float(low), value), max(float(high), value)
        results.append(SampledEstimate(str(metric), "mle", value, *limits, confidence, len(cases), None))
    return results
