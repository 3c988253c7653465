"""Estimates of a full-catalogue metric from sampled ranks, with intervals.

The corrections that give every case a value of its own have the interval of a mean over cases; the rank
distribution has one from resampled cases. An interval covers the draw of cases and negatives. It does not
cover bias: `worst_bias` says how far the expected value can be off at any one true rank.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recsys.errors import UnknownNameError
from recsys.stats.intervals import mean_interval
from recsys.stats.sampled.correction import corrected
from recsys.stats.sampled.rank_chances import binned_value, chances
from recsys.stats.sampled.rank_distribution import fit_ranks, replicated
from recsys.stats.sampled.rank_values import RankMetric, asked
from recsys.stats.sampled.sampled_ranks import Cases
from recsys.types import Float

METHODS = ("uncorrected", "rank", "cls", "bv", "mle")
_REPLICATES = 100


@dataclass(frozen=True, eq=False)
class SampledEstimate:
    """A metric on the whole catalogue, as far as sampled ranks tell it."""

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
    """What a metric would be on the whole catalogue, from ranks among sampled negatives.

    Args:
        ranks: sampled rank of each positive, 1 being best; or what counting candidates gave.
        n_negatives: sampled for each positive (one number, or one a case).
        n_items: how many items the positive could have been ranked among, itself included (likewise).
        metric: a metric of the place, such as "hit@10", "ndcg@10", "map", "auc".
        method: "uncorrected" is the sampled metric itself; "rank" scales each rank up; "cls" is as unbiased
            as a monotone correction can be; "bv" trades bias for variance; "mle" estimates the
            distribution of true ranks first.
        tied: places each positive shares, where scores are equal; `ranks` then holds the best of them.
        replacement: whether a negative could be drawn twice.
        gamma: of "bv": more of it means less variance and more bias.
        prior: of "cls" and "bv": "uniform" over ranks, or "log", uniform over their orders of magnitude.
        clusters: user of each case, where a user has several.
        confidence: of the interval.
        seed: of the resampling that "mle" has its interval from.

    >>> print(estimate([1, 1, 4, 30, 77], 99, 3706, "auc", method="uncorrected"))
    auc 0.7818 [0.3709, 1.0000] (95%, uncorrected)
    """
    cases = Cases.of(ranks, n_negatives, n_items, tied=tied, replacement=replacement, clusters=clusters)
    wanted = asked(metric)
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    if method == "mle":
        return _most_likely(cases, [wanted], confidence, seed)[0]
    return _by_case(cases, wanted, method, confidence, gamma=gamma, prior=prior)


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
    cases = Cases.of(ranks, n_negatives, n_items, tied=tied, replacement=replacement, clusters=clusters)
    wanted = [asked(metric) for metric in metrics]
    out: dict[str, dict[str, SampledEstimate]] = {str(metric): {} for metric in wanted}
    for method in methods:
        if method not in METHODS:
            raise UnknownNameError("method", method, METHODS)
        if method == "mle":
            made = _most_likely(cases, wanted, confidence, seed)
        else:
            made = [
                _by_case(cases, metric, method, confidence, gamma=gamma, prior=prior) for metric in wanted
            ]
        for found in made:
            out[found.metric][method] = found
    return out


def _by_case(
    cases: Cases, metric: RankMetric, method: str, confidence: float, **shape: Any
) -> SampledEstimate:
    values = np.empty(len(cases))
    worst = 0.0
    for each in cases.classes:
        correction = corrected(
            metric, method, each.n_negatives, each.n_items, replacement=cases.replacement, **shape
        )
        values[each.members] = cases.spread(each, correction)
        table = chances(each.n_negatives, each.n_items, replacement=cases.replacement)
        worst = max(worst, float(np.abs(table @ correction - binned_value(metric, each.n_items)).max()))
    return of_values(metric, method, values, cases.clusters, confidence, worst_bias=worst)


def of_values(
    metric: RankMetric,
    method: str,
    values: Float,
    clusters: Any,
    confidence: float,
    *,
    worst_bias: float | None,
) -> SampledEstimate:
    """The mean of values, one a case, with its interval; both within the metric's own bounds."""
    found = mean_interval(values, clusters=clusters, confidence=confidence)
    low, high = metric.metric.bounds
    value, least, most = (
        min(max(x, low), high) for x in (found.value, found.interval.low, found.interval.high)
    )
    return SampledEstimate(
        str(metric), method, value, least, most, confidence, len(values), worst_bias, values
    )


def _most_likely(
    cases: Cases, metrics: list[RankMetric], confidence: float, seed: int
) -> list[SampledEstimate]:
    fitted = fit_ranks(cases)
    edges = (0.5 - confidence / 2, 0.5 + confidence / 2)
    out = []
    for metric, values in zip(metrics, replicated(cases, fitted, metrics, _REPLICATES, seed), strict=True):
        low, high = np.quantile(values, edges)
        value = fitted.mean_of(metric)
        edges_of = min(float(low), value), max(float(high), value)
        out.append(SampledEstimate(str(metric), "mle", value, *edges_of, confidence, len(cases), None))
    return out
