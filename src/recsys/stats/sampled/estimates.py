"""Estimates of a full-catalogue metric from sampled ranks, with intervals.

A correction gives each sampled rank the value that makes the mean right for the whole catalogue (Krichene &
Rendle, sections 5.1 to 5.3). `cls` brings the expected value as close to the truth as possible over all true
ranks, provided that a better sampled rank never has a lower value. `bv` accepts more bias for less variance:
gamma = 0 is plain least squares, gamma = 1 the posterior mean of the truth. `mle` estimates the distribution
of true ranks first, the most likely one given the sampled ranks, by expectation-maximisation (Jin, Li, Gao,
Liu, Ding: On Estimating Recommendation Evaluation Metrics under Sampling, AAAI 2021); every metric is then an
average over it. The data hardly distinguish ranks closer together than the catalogue size divided by the
negatives; there the starting distribution, uniform over powers of ten, remains.

Negatives that were not sampled uniformly need importance weights: popular negatives are harder, so ranks
among them look worse than they are. Each negative counts for the number of items it represents: with
replacement the inverse of n times its probability (Hansen & Hurwitz 1943), without replacement the inverse of
its probability to be in the sample at all (Horvitz & Thompson 1952). The sum over the negatives above a
positive is an unbiased estimate of how many items rank above it.

An interval covers the random choice of cases and negatives: it holds the mean of the estimates from all such
choices. It does not cover bias: `worst_bias` is the largest error of the expected value at any one true rank.
That of `mle` comes from resamples of the users, each fitted from the same start and with as many steps as the
sample itself: a fit stops long before the likelihood does, and one that went on would drift away. Where fewer
than 20 users have another sampled rank than the rest, intervals allow for ranks that were not seen.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import InputError, UnknownNameError, came_as, check_choice
from recsys.metrics.registry import Request
from recsys.records.arrays import Array, Float, Int
from recsys.records.checks import check_choices, check_seed, is_number, is_whole, to_floats
from recsys.stats.intervals import mean_interval
from recsys.stats.results import check_confidence, clip_interval
from recsys.stats.sampled.sampled_ranks import (
    PRIORS,
    Cases,
    binned_values,
    chances,
    chances_at_ranks,
    parse_rank_metric,
    rank_grid,
    rank_prior,
    values_between_ranks,
    values_by_rank,
    whole_numbers,
)
from recsys.stats.samples import FEW

METHODS = ("uncorrected", "rank", "cls", "bv", "mle")
"""The names that `method=` of `estimate` takes."""
_N_ITERATIONS = 500
_N_REPLICATES = 100
_UNSEEN_RANKS = (1, 2, 3, sys.maxsize)  # the last stands for the worst; a metric's extremes are among these
_ITEM_COUNT_STEP_OF_FIT = 0.1
_TOLERANCE = 1e-7
_MULTIPLICATIONS_OF_ONE_THREAD = 1 << 18  # OpenBLAS multiplies larger matrices with several threads
_ROWS_OF_A_BLOCK = 16
_SMALLEST_CHANCE = 1e-15  # smaller ones would become subnormal numbers, which are slow to compute with


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
        method: "uncorrected" is the sampled metric itself; "rank" is its formula at the rank scaled up, which
            is not rounded; "cls" is as unbiased as a monotone correction can be; "bv" trades bias for
            variance; "mle" estimates the distribution of true ranks first.
        tied: how many places each positive shares by equal scores; `ranks` then holds the best of them.
        replacement: whether a negative could be drawn twice.
        gamma: of "bv": a larger value means less variance and more bias.
        prior: of "cls" and "bv": "uniform" over ranks, or "log", uniform over their orders of magnitude.
        clusters: the user of each case, if a user has several.
        confidence: of the interval.
        seed: of the resampling behind the interval of "mle".

    >>> print(estimate([1, 1, 4, 30, 77], 99, 3706, "auc", method="uncorrected"))
    auc 0.7818 [0.3317, 0.9682] (95%, uncorrected)
    """
    cases = Cases.from_ranks(
        ranks, n_negatives, n_items, tied=tied, replacement=replacement, clusters=clusters
    )
    options: dict[str, Any] = {"confidence": confidence, "seed": seed, "gamma": gamma, "prior": prior}
    return _estimates(cases, [parse_rank_metric(metric)], method, **options)[0]


def estimate_all(
    ranks: Any,
    n_negatives: Any = None,
    n_items: Any = None,
    metrics: str | Iterable[Any] = ("hit@10", "ndcg@10", "map", "auc"),
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
    """Return every metric by every method: {metric: {method: estimate}}; arguments as in `estimate`."""
    cases = Cases.from_ranks(
        ranks, n_negatives, n_items, tied=tied, replacement=replacement, clusters=clusters
    )
    try:
        rank_metrics = [parse_rank_metric(m) for m in ([metrics] if isinstance(metrics, str) else metrics)]
    except TypeError:
        raise came_as("metrics", metrics, hint='Pass some, such as ["hit@10", "auc"].') from None
    results_by_metric: dict[str, dict[str, SampledEstimate]] = {str(metric): {} for metric in rank_metrics}
    options: dict[str, Any] = {"confidence": confidence, "seed": seed, "gamma": gamma, "prior": prior}
    for method in check_choices("method", methods, METHODS):
        for result in _estimates(cases, rank_metrics, method, **options):
            results_by_metric[result.metric][method] = result
    return results_by_metric


def _estimates(
    cases: Cases,
    metrics: list[Request],
    method: str,
    *,
    confidence: float,
    seed: int,
    gamma: float,
    prior: str,
) -> list[SampledEstimate]:
    """Return each metric by one method."""
    check_choice("method", method, METHODS)
    check_confidence(confidence)
    check_correction(gamma, prior)
    results = []
    if method != "mle":
        options: dict[str, Any] = {"replacement": cases.replacement, "gamma": float(gamma), "prior": prior}
        for metric in metrics:
            per_case, worst_bias, possible = np.empty(len(cases)), 0.0, []
            for of_class in cases.classes:
                n, n_items = of_class.n_negatives, of_class.n_items
                correction = corrected_values(metric, method, n, n_items, **options)
                per_case[of_class.members] = cases.values_by_case(of_class, correction)
                possible += [float(correction.min()), float(correction.max())]
                expected = chances(n, n_items, replacement=cases.replacement) @ correction
                worst_bias = max(worst_bias, float(np.abs(expected - binned_values(metric, n_items)).max()))
            results.append(
                _mean_estimate(
                    metric,
                    method,
                    per_case,
                    possible=possible,
                    clusters=cases.clusters,
                    confidence=confidence,
                    worst_bias=worst_bias,
                )
            )
        return results
    fitted = fit_ranks(cases)
    tail = 0.5 - confidence / 2
    n_replicates = max(_N_REPLICATES, math.ceil(1 / tail))
    # Ranks that were not seen are allowed for unless 20 users (or cases) differ from the most common one.
    differs = (cases.above != np.bincount(cases.above).argmax()) | (cases.tied > 1)
    units = np.arange(len(cases)) if cases.clusters is None else cases.clusters
    unseen_ranks = () if len(np.unique(units[differs])) >= FEW else _UNSEEN_RANKS
    resampled = resampled_metrics(cases, metrics, n_replicates, seed, unseen_ranks)
    for metric, values in zip(metrics, resampled, strict=True):
        # Of n replicates, the k-th smallest is the quantile k / (n + 1).
        low, high = np.quantile(values, (tail, 1 - tail), axis=1, method="weibull")
        value = fitted.mean_of(metric)
        limits = min(float(low.min()), value), max(float(high.max()), value)
        results.append(SampledEstimate(str(metric), "mle", value, *limits, confidence, len(cases), None))
    return results


def check_correction(gamma: float, prior: str) -> None:
    """Refuse settings of "cls" and "bv" that mean nothing."""
    if not (is_number(gamma) and 0 < gamma <= 1):
        raise InputError(f"gamma={gamma!r} is not a trade-off.", hint="Use a value above 0 and up to 1.")
    check_choice("prior", prior, PRIORS)


def _mean_estimate(
    metric: Request,
    method: str,
    values: Float,
    *,
    possible: list[float],
    clusters: Any,
    confidence: float,
    worst_bias: float | None,
) -> SampledEstimate:
    """Return the mean of one value per case with its interval, both clipped to the metric's bounds.

    `possible` holds the least and the greatest value that a case could have, for each class of cases.
    """
    (least, most), bounds = (min(possible), max(possible)), metric.metric.bounds
    value, ends = most, (most, most)
    if not math.isclose(least, most):  # else a cut-off is beyond all items: every case has this value
        mean = mean_interval(values, clusters=clusters, confidence=confidence, bounds=(least, most))
        interval, value = clip_interval(mean, bounds).interval, min(max(mean.value, bounds[0]), bounds[1])
        ends = interval.low, interval.high
    return SampledEstimate(str(metric), method, value, *ends, confidence, len(values), worst_bias, values)


@lru_cache(maxsize=512)
def corrected_values(
    metric: Request,
    method: str,
    n_negatives: int,
    n_items: int,
    *,
    replacement: bool = False,
    gamma: float = 0.01,
    prior: str = "uniform",
) -> Float:
    """Return the corrected values of the sampled ranks 1 to n + 1."""
    if method == "uncorrected":
        return values_by_rank(metric, n_negatives + 1)
    if method == "rank":
        scaled_ranks = 1 + np.arange(n_negatives + 1) * (n_items - 1) / n_negatives
        return values_between_ranks(metric, np.minimum(scaled_ranks, n_items), n_items)
    table = chances(n_negatives, n_items, replacement=replacement)
    truth, weight = binned_values(metric, n_items), rank_prior(prior, n_items)
    if method == "cls":
        # Least squares with values that fall (or rise, like the metric) with the sampled rank.
        from scipy.optimize import nnls

        root, lowest = np.sqrt(weight)[:, None], float(truth.min())
        rising = bool(truth[-1] > truth[0])
        # A monotone sequence is a sum of steps of non-negative height: value(j) = sum of the steps from j on.
        steps = np.cumsum(table, axis=1) if not rising else np.cumsum(table[:, ::-1], axis=1)[:, ::-1]
        heights, _ = nnls(root * steps, (root[:, 0]) * (truth - lowest), maxiter=100 * table.shape[1])
        summed = np.cumsum(heights[::-1])[::-1] if not rising else np.cumsum(heights)
        return np.asarray(summed + lowest)
    if method == "bv":
        product = table.T @ (weight[:, None] * table)
        margin = weight @ table
        system = (1 - gamma) * product + gamma * np.diag(margin)
        # Sampled ranks that hardly ever occur make the system singular; a small ridge solves it anyway.
        system += 1e-12 * np.eye(len(system)) * np.trace(system) / len(system)
        return np.asarray(np.linalg.solve(system, table.T @ (weight * truth)))
    raise UnknownNameError("correction", method, ("uncorrected", "rank", "cls", "bv"))


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
        """Return a metric's mean over these ranks.

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
    iterations: int = _N_ITERATIONS,
) -> RankDistribution:
    """Return the maximum-likelihood distribution of true ranks behind sampled ones.

    The arguments are those of `estimate`.
    """
    cases = (
        ranks
        if isinstance(ranks, Cases)
        else Cases.from_ranks(ranks, n_negatives, n_items, tied=tied, replacement=replacement)
    )
    if not is_whole(iterations, 1):
        raise InputError(f"iterations={iterations!r} is not a number of steps.", hint="Use at least 1.")
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
    cases: Cases, metrics: list[Request], n: int, seed: int, unseen_ranks: tuple[int, ...] = ()
) -> list[Float]:
    """Return each metric from n resamples of the users, each fitted as the sample itself was, in one row.

    If all users have the same values, so do all resamples. With `unseen_ranks` every user has a random,
    exponential weight instead, and so has one more user (see `gaffke`), whose sampled rank is another
    one in each row.
    """
    problem = _LikelihoodProblem(cases)
    if check_seed(seed) < 0:
        raise InputError(f"seed={seed} is negative.", hint="Pass a number of at least 0, such as seed=7.")
    rng = np.random.default_rng(seed)
    labels = np.arange(len(cases)) if cases.clusters is None else cases.clusters
    _, unit, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    n_rows, n_units = max(1, len(unseen_ranks)), len(sizes)
    tables = [np.empty((n_rows, n, each.n_negatives + 1)) for each in problem.classes]
    for resample in range(n):
        if unseen_ranks:
            weights = rng.exponential(size=n_units)
            unseen = rng.exponential() * float((sizes**2).sum()) / len(cases)
        else:
            weights = np.bincount(rng.integers(n_units, size=n_units), minlength=n_units).astype(np.float64)
            unseen = 0.0
        for table, of_class in zip(tables, problem.classes, strict=True):
            table[:, resample] = cases.counts(of_class, weights[unit[of_class.members]])
            for row, rank in enumerate(unseen_ranks):
                place = min(rank, of_class.n_negatives + 1) - 1
                table[row, resample, place] += unseen * len(of_class.members) / len(cases)
    counts: list[Float] = [table.reshape(n_rows * n, -1) for table in tables]
    chance, _ = problem.maximise(counts, rank_prior("log", problem.n_items)[None, :], _N_ITERATIONS)
    by_class = problem.by_class(chance, counts)
    results = []
    for metric in metrics:
        total = np.zeros(n_rows * n)
        for of_class, (share, class_rows) in zip(problem.classes, by_class, strict=True):
            total += share * (class_rows @ binned_values(metric, of_class.n_items, problem.n_items))
        results.append(total.reshape(n_rows, n))
    return results


class _LikelihoodProblem:
    """P(sampled rank | true rank) for each class of cases, over the ranks of the largest catalogue."""

    def __init__(self, cases: Cases) -> None:
        self.classes = cases.in_classes(_ITEM_COUNT_STEP_OF_FIT)
        self.n_items = max(sampling_class.n_items for sampling_class in self.classes)
        self.tables = []
        ranks = rank_grid(self.n_items).rank
        for sampling_class in self.classes:
            table = chances_at_ranks(
                ranks, sampling_class.n_negatives, sampling_class.n_items, replacement=cases.replacement
            )
            table[table < _SMALLEST_CHANCE**2] = 0.0
            self.tables.append(table)

    def maximise(self, counts: list[Float], start: Float, iterations: int) -> tuple[Float, int]:
        """Expectation-maximisation for several resamples at once, one row each; also returns the steps."""
        chance = np.repeat(start, len(counts[0]), axis=0)
        occurs = [count.any(axis=0) for count in counts]  # the other sampled ranks say nothing
        tables = [np.ascontiguousarray(t[:, where]) for t, where in zip(self.tables, occurs, strict=True)]
        counts = [count[:, where] for count, where in zip(counts, occurs, strict=True)]
        tolerance = _TOLERANCE * sum(float(c.sum()) for c in counts)
        previous = -np.inf
        for step in range(1, iterations + 1):
            ratio = np.zeros_like(chance)
            likelihood = 0.0
            for table, count in zip(tables, counts, strict=True):
                expected = np.maximum(_small_products(chance, table), _SMALLEST_CHANCE**2)
                ratio += _small_products(count / expected, table.T)
                likelihood += float((count * np.log(expected)).sum())
            chance = chance * ratio
            chance /= chance.sum(axis=1, keepdims=True)
            chance *= chance >= _SMALLEST_CHANCE
            if likelihood - previous < tolerance:
                return chance, step
            previous = likelihood
        return chance, iterations

    def by_class(self, chance: Float, counts: list[Float]) -> list[tuple[Float, Float]]:
        """Return each class's share of the cases, and the posterior distribution of its true ranks."""
        n_cases = np.maximum(sum(count.sum(axis=1) for count in counts), _SMALLEST_CHANCE)
        results = []
        for table, count in zip(self.tables, counts, strict=True):
            expected = np.maximum(chance @ table, _SMALLEST_CHANCE**2)
            rows = chance * ((count / expected) @ table.T)
            rows /= np.maximum(rows.sum(axis=1, keepdims=True), _SMALLEST_CHANCE)
            results.append((count.sum(axis=1) / n_cases, rows))
        return results


def _small_products(left: Float, right: Float) -> Float:
    """Left @ right in blocks for which BLAS starts no threads.

    Threads that wait for each other at a thousand products of this size cost many times the arithmetic.
    """
    if len(left) == 1:
        return left @ right
    height = max(_ROWS_OF_A_BLOCK, _MULTIPLICATIONS_OF_ONE_THREAD // right.size)
    width = max(1, _MULTIPLICATIONS_OF_ONE_THREAD // (height * len(right)))
    product = np.empty((len(left), right.shape[1]))
    for row in range(0, len(left), height):
        rows = slice(row, row + height)
        for column in range(0, right.shape[1], width):
            columns = slice(column, column + width)
            product[rows, columns] = left[rows] @ right[:, columns]
    return product


def inclusion_chances(weights: Any, n: int) -> Float:
    """Return the probability of each item to be among n different ones, drawn one after the other by weight.

    Rosén's approximation: 1 - exp(-t w), with t such that the probabilities add up to n.

    >>> inclusion_chances([1.0, 1.0, 1.0, 1.0], 2).round(6).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    w = to_floats(weights, "weights")
    if w.ndim != 1 or not len(w) or not ((w >= 0) & np.isfinite(w)).all():
        raise InputError("weights must be finite numbers of at least 0, one per item.")
    positive = int((w > 0).sum())
    if not is_whole(n, 1) or n > positive:
        raise InputError(
            f"{n!r} different negatives cannot come from {positive} items with a weight above 0.",
            hint="Ask for fewer negatives, or draw with replacement.",
        )
    if n == positive:
        return (w > 0).astype(np.float64)
    share = w / w.sum()
    low, high = 0.0, float(n)
    while float(-np.expm1(-high * share).sum()) < n:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if float(-np.expm1(-middle * share).sum()) < n else (low, middle)
    return np.asarray(-np.expm1(-high * share))


def weighted_ranks(above: Any, chances: Any, n_items: Any, *, replacement: bool = False) -> Float:
    """Return an unbiased estimate of the true rank of each positive from negatives of unequal probability.

    Args:
        above: whether each negative scores above the positive: a matrix with one row per case; 0.5 for a tie.
        chances: the probability of each of these negatives, in the same form: with replacement, that of one
            draw; without, that to be in the sample at all (`inclusion_chances`).
        n_items: all items the positive could be ranked among, itself included: one number, or one per case.
        replacement: whether a negative could be drawn twice.

    >>> weighted_ranks([[1, 0, 0, 1]], [[0.5, 0.1, 0.1, 0.1]], 101).tolist()
    [13.0]
    """
    is_above, probabilities = _case_matrix(above, "above"), _case_matrix(chances, "chances")
    if is_above.shape != probabilities.shape:
        raise InputError(f"above has shape {is_above.shape} and chances {probabilities.shape}.")
    if not ((probabilities > 0) & (probabilities <= 1)).all():
        raise InputError(
            "a negative that was drawn has a chance outside (0, 1].", hint="Pass the chance of each negative."
        )
    items_represented = 1.0 / (probabilities * probabilities.shape[1] if replacement else probabilities)
    n_others = whole_numbers(n_items, "n_items", len(is_above)) - 1
    return np.asarray(1.0 + np.minimum((items_represented * is_above).sum(axis=1), n_others))


def estimate_weighted(
    above: Any,
    chances: Any,
    n_items: Any,
    metric: Any = "ndcg@10",
    *,
    replacement: bool = False,
    clusters: Any = None,
    confidence: float = 0.95,
) -> SampledEstimate:
    """Estimate a metric on the whole catalogue from negatives of unequal probability.

    Arguments as in `weighted_ranks`.

    Each case has the metric at its estimated rank, interpolated between whole ranks. This is unbiased for
    metrics that are linear in the rank (auc, average_rank). For others it depends on the sampling: items that
    are popular and score high are nearly always drawn, so the top of the ranking is known better than from as
    many uniform negatives.

    >>> above, chances = [[1, 0], [0, 0], [1, 1]], [[0.5, 0.5], [0.5, 0.5], [0.5, 1.0]]
    >>> round(estimate_weighted(above, chances, 5, "auc").value, 3)
    0.583
    """
    rank_metric = parse_rank_metric(metric)
    ranks = weighted_ranks(above, chances, n_items, replacement=replacement)
    sizes = whole_numbers(n_items, "n_items", len(ranks))
    if (sizes < 1).any():
        raise InputError(f"n_items holds {sizes.min()}.", hint="It counts the positive and all others.")
    values, possible = np.empty(len(ranks)), []
    for size in np.unique(sizes).tolist():
        has_size, by_rank = sizes == size, values_by_rank(rank_metric, size)
        values[has_size] = np.interp(ranks[has_size], np.arange(1, size + 1), by_rank)
        possible += [float(by_rank.min()), float(by_rank.max())]
    return _mean_estimate(
        rank_metric,
        "weighted",
        values,
        possible=possible,
        clusters=clusters,
        confidence=confidence,
        worst_bias=None,
    )


def _case_matrix(values: Any, what: str) -> Array:
    array = to_floats(values, what, "Give one row per case.")
    if array.ndim != 2 or array.shape[1] < 1:
        raise InputError(f"{what} has shape {array.shape}.", hint="Give one row per case.")
    return array
