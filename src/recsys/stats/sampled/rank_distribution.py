"""The maximum-likelihood distribution of true ranks given sampled ones, by expectation-maximisation.

Every metric is then an average over that distribution (Jin, Li, Gao, Liu, Ding: On Estimating Recommendation
Evaluation Metrics under Sampling, AAAI 2021). The data hardly distinguish ranks closer together than the
catalogue size divided by the negatives; there the starting distribution, uniform over powers of ten, remains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from recsys.stats.sampled.rank_chances import (
    RankMetric,
    binned_values,
    chances_at_ranks,
    parse_rank_metric,
    rank_grid,
    rank_prior,
)
from recsys.stats.sampled.sampled_ranks import Cases
from recsys.types import Float, Int

_ITEM_COUNT_STEP = 0.1
_TOLERANCE = 1e-7
_SMALLEST_CHANCE = 1e-15  # smaller ones would become subnormal numbers, which are slow to compute with


class Part(NamedTuple):
    """The cases of one class: their number of items, share of all cases, and distribution of true ranks."""

    n_items: int
    share: float
    chance: Float


@dataclass(frozen=True, eq=False)
class RankDistribution:
    """A distribution of true ranks: one probability per bin; `rank` represents the bin from `start` on."""

    start: Int
    rank: Int
    size: Int
    chance: Float
    n_items: int
    n_iterations: int
    parts: tuple[Part, ...]

    def mean_of(self, metric: Any) -> float:
        """A metric's mean over these ranks.

        >>> fit_ranks([1, 1, 1, 1], 99, 1000).mean_of("auc").__round__(1)
        1.0
        """
        rank_metric = parse_rank_metric(metric)
        means = (
            part.share * (part.chance @ binned_values(rank_metric, part.n_items, self.n_items))
            for part in self.parts
        )
        return float(sum(means))


def fit_ranks(
    ranks: Any,
    n_negatives: Any = None,
    n_items: Any = None,
    *,
    tied: Any = None,
    replacement: bool = False,
    prior: str = "log",
    iterations: int = 500,
) -> RankDistribution:
    """The maximum-likelihood distribution of true ranks behind sampled ones; arguments as in `estimate`."""
    cases = (
        ranks
        if isinstance(ranks, Cases)
        else Cases.from_ranks(ranks, n_negatives, n_items, tied=tied, replacement=replacement)
    )
    problem = _LikelihoodProblem(cases)
    counts = [cases.counts(sampling_class)[None, :] for sampling_class in problem.classes]
    chance, n_iterations = problem.maximise(counts, rank_prior(prior, problem.n_items)[None, :], iterations)
    grid = rank_grid(problem.n_items)
    parts = tuple(
        Part(sampling_class.n_items, float(share[0]), row[0])
        for sampling_class, (share, row) in zip(
            problem.classes, problem.by_class(chance, counts), strict=True
        )
    )
    return RankDistribution(grid.start, grid.rank, grid.size, chance[0], problem.n_items, n_iterations, parts)


def resampled_metrics(
    cases: Cases, fitted: RankDistribution, metrics: list[RankMetric], n: int, seed: int
) -> list[Float]:
    """Each metric from n resamples of the users, refitted starting near the fitted distribution."""
    problem = _LikelihoodProblem(cases)
    rng = np.random.default_rng(seed)
    labels = np.arange(len(cases)) if cases.clusters is None else cases.clusters
    _, unit = np.unique(labels, return_inverse=True)
    n_units = int(unit.max()) + 1
    counts = [np.empty((n, sampling_class.n_negatives + 1)) for sampling_class in problem.classes]
    for resample in range(n):
        multiplicity = np.bincount(rng.integers(n_units, size=n_units), minlength=n_units)[unit]
        for class_rows, sampling_class in zip(counts, problem.classes, strict=True):
            class_rows[resample] = cases.counts(sampling_class, multiplicity[sampling_class.members])
    start = 0.9 * fitted.chance + 0.1 * rank_prior("log", fitted.n_items)
    chance, _ = problem.maximise(counts, start[None, :], max(60, fitted.n_iterations))
    by_class = problem.by_class(chance, counts)
    results = []
    for metric in metrics:
        total = np.zeros(n)
        for sampling_class, (share, class_rows) in zip(problem.classes, by_class, strict=True):
            total += share * (class_rows @ binned_values(metric, sampling_class.n_items, problem.n_items))
        results.append(total)
    return results


class _LikelihoodProblem:
    """P(sampled rank | true rank) for each class of cases, over the ranks of the largest catalogue."""

    def __init__(self, cases: Cases) -> None:
        self.classes = cases.in_classes(_ITEM_COUNT_STEP)
        self.n_items = max(sampling_class.n_items for sampling_class in self.classes)
        self.tables = []
        for sampling_class in self.classes:
            ranks = rank_grid(self.n_items).rank
            table = chances_at_ranks(
                ranks, sampling_class.n_negatives, sampling_class.n_items, replacement=cases.replacement
            )
            table[table < _SMALLEST_CHANCE**2] = 0.0
            self.tables.append(table)

    def maximise(self, counts: list[Float], start: Float, iterations: int) -> tuple[Float, int]:
        """Expectation-maximisation for several resamples at once, one row each; also returns the steps."""
        chance = np.repeat(start, len(counts[0]), axis=0)
        tolerance = _TOLERANCE * sum(float(c.sum()) for c in counts)
        previous = -np.inf
        for step in range(1, iterations + 1):
            ratio = np.zeros_like(chance)
            likelihood = 0.0
            for table, count in zip(self.tables, counts, strict=True):
                expected = np.maximum(chance @ table, _SMALLEST_CHANCE**2)
                ratio += (count / expected) @ table.T
                likelihood += float((count * np.log(expected)).sum())
            chance = chance * ratio
            chance /= chance.sum(axis=1, keepdims=True)
            chance[chance < _SMALLEST_CHANCE] = 0.0
            if likelihood - previous < tolerance:
                return chance, step
            previous = likelihood
        return chance, iterations

    def by_class(self, chance: Float, counts: list[Float]) -> list[tuple[Float, Float]]:
        """Each class's share of the cases, and the posterior distribution of its true ranks."""
        n_cases = np.maximum(sum(count.sum(axis=1) for count in counts), _SMALLEST_CHANCE)
        results = []
        for table, count in zip(self.tables, counts, strict=True):
            expected = np.maximum(chance @ table, _SMALLEST_CHANCE**2)
            rows = chance * ((count / expected) @ table.T)
            rows /= np.maximum(rows.sum(axis=1, keepdims=True), _SMALLEST_CHANCE)
            results.append((count.sum(axis=1) / n_cases, rows))
        return results
