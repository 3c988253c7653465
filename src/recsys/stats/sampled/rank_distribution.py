"""The distribution of true ranks that makes the sampled ones most likely, by expectation-maximisation.

Every metric is then an average over that distribution (Jin, Li, Gao, Liu, Ding: On Estimating Recommendation
Evaluation Metrics under Sampling, AAAI 2021). The data say little about ranks closer together than the
catalogue divided by the negatives; there the start, even over powers of ten, is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from recsys.stats.sampled.correction import prior_of
from recsys.stats.sampled.rank_chances import binned_value, chances_of, grid_of
from recsys.stats.sampled.rank_values import RankMetric, asked
from recsys.stats.sampled.sampled_ranks import Cases
from recsys.types import Float, Int

_COARSE = 0.1
_ENOUGH = 1e-7
_NOTHING = 1e-15  # chances below shrink to subnormal numbers, which are slow to compute with


class Part(NamedTuple):
    """The cases of one class: their items, their share of all cases, how likely their true ranks are."""

    n_items: int
    share: float
    chance: Float


@dataclass(frozen=True, eq=False)
class RankDistribution:
    """How likely true ranks are: one chance a bin; `rank` stands for the bin that begins at `start`."""

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
        wanted = asked(metric)
        means = (p.share * (p.chance @ binned_value(wanted, p.n_items, self.n_items)) for p in self.parts)
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
    """The most likely distribution of true ranks behind sampled ones."""
    cases = (
        ranks
        if isinstance(ranks, Cases)
        else Cases.of(ranks, n_negatives, n_items, tied=tied, replacement=replacement)
    )
    problem = _LikelihoodProblem(cases)
    counts = [cases.counts(each)[None, :] for each in problem.classes]
    chance, done = problem.climb(counts, prior_of(prior, problem.most)[None, :], iterations)
    grid = grid_of(problem.most)
    parts = tuple(
        Part(each.n_items, float(share[0]), row[0])
        for each, (share, row) in zip(problem.classes, problem.by_class(chance, counts), strict=True)
    )
    return RankDistribution(grid.start, grid.rank, grid.size, chance[0], problem.most, done, parts)


def replicated(
    cases: Cases, fitted: RankDistribution, metrics: list[RankMetric], n: int, seed: int
) -> list[Float]:
    """Each metric from n resamples of the users, refitted from near the fitted distribution."""
    problem = _LikelihoodProblem(cases)
    rng = np.random.default_rng(seed)
    labels = np.arange(len(cases)) if cases.clusters is None else cases.clusters
    _, unit = np.unique(labels, return_inverse=True)
    n_units = int(unit.max()) + 1
    drawn = [np.empty((n, each.n_negatives + 1)) for each in problem.classes]
    for number in range(n):
        times = np.bincount(rng.integers(n_units, size=n_units), minlength=n_units)[unit]
        for rows, each in zip(drawn, problem.classes, strict=True):
            rows[number] = cases.counts(each, times[each.members])
    start = 0.9 * fitted.chance + 0.1 * prior_of("log", fitted.n_items)
    chance, _ = problem.climb(drawn, start[None, :], max(60, fitted.n_iterations))
    by_class = problem.by_class(chance, drawn)
    out = []
    for metric in metrics:
        total = np.zeros(n)
        for each, (share, rows) in zip(problem.classes, by_class, strict=True):
            total += share * (rows @ binned_value(metric, each.n_items, problem.most))
        out.append(total)
    return out


class _LikelihoodProblem:
    """P(sampled | true) for each class of cases, over the ranks of the largest catalogue among them."""

    def __init__(self, cases: Cases) -> None:
        self.classes = cases.in_classes(_COARSE)
        self.most = max(each.n_items for each in self.classes)
        self.tables = []
        for each in self.classes:
            ranks = grid_of(self.most).rank
            table = chances_of(ranks, each.n_negatives, each.n_items, replacement=cases.replacement)
            table[table < _NOTHING**2] = 0.0
            self.tables.append(table)

    def climb(self, counts: list[Float], start: Float, iterations: int) -> tuple[Float, int]:
        """Expectation-maximisation for several resamples at once: one row each."""
        chance = np.repeat(start, len(counts[0]), axis=0)
        enough = _ENOUGH * sum(float(c.sum()) for c in counts)
        before = -np.inf
        for number in range(1, iterations + 1):
            gathered = np.zeros_like(chance)
            likelihood = 0.0
            for table, count in zip(self.tables, counts, strict=True):
                expected = np.maximum(chance @ table, _NOTHING**2)
                gathered += (count / expected) @ table.T
                likelihood += float((count * np.log(expected)).sum())
            chance = chance * gathered
            chance /= chance.sum(axis=1, keepdims=True)
            chance[chance < _NOTHING] = 0.0
            if likelihood - before < enough:
                return chance, number
            before = likelihood
        return chance, iterations

    def by_class(self, chance: Float, counts: list[Float]) -> list[tuple[Float, Float]]:
        """Each class's share of the cases, and the distribution of true ranks its own sampled ranks leave."""
        whole = np.maximum(sum(count.sum(axis=1) for count in counts), _NOTHING)
        out = []
        for table, count in zip(self.tables, counts, strict=True):
            expected = np.maximum(chance @ table, _NOTHING**2)
            rows = chance * ((count / expected) @ table.T)
            rows /= np.maximum(rows.sum(axis=1, keepdims=True), _NOTHING)
            out.append((count.sum(axis=1) / whole, rows))
        return out
