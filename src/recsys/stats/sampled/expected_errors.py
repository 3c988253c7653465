"""The expected error of a sampled metric, its chance to pick the right winner, and the negatives needed.

All of it is computed from a distribution of true ranks: full ranks that were measured, a distribution fitted
to sampled ranks, or a guess. Nothing is simulated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import InputError, check_choice
from recsys.metrics.registry import Request
from recsys.records.arrays import Float, Int
from recsys.records.checks import is_number
from recsys.stats.sampled.estimates import (
    METHODS,
    RankDistribution,
    check_correction,
    corrected_values,
    estimate,
)
from recsys.stats.sampled.sampled_ranks import (
    binned_values,
    chances,
    chances_at_ranks,
    check_sampling,
    parse_rank_metric,
    rank_grid,
    rank_prior,
    values_by_rank,
    whole_numbers,
)

_CORRECTIONS = (
    ("cls", 0.01, "uniform"),
    ("cls", 0.01, "log"),
    ("bv", 0.01, "uniform"),
    ("bv", 0.1, "uniform"),
    ("bv", 0.01, "log"),
    ("bv", 0.1, "log"),
)
_MAX_NEGATIVES = 4096  # columns of the table of chances; with more, rank everything
_MAX_SINGLE_CHANCES = (
    4_000_000  # chances computed for the given ranks one by one; with more, ranks share bins
)


@dataclass(frozen=True)
class ExpectedError:
    """The expected value of an estimate from this many negatives, the true value, and the error."""

    metric: str
    method: str
    n_negatives: int
    n_items: int
    n_cases: int
    truth: float
    expected: float
    bias: float
    deviation: float
    error: float
    worst_bias: float

    def __str__(self) -> str:
        return (
            f"{self.metric} ({self.method}, {self.n_negatives} of {self.n_items - 1} negatives, "
            f"{self.n_cases} cases): truth {self.truth:.4f}, expected {self.expected:.4f}, "
            f"bias {self.bias:+.4f}, standard deviation {self.deviation:.4f}, error {self.error:.4f}"
        )


class _RankMoments(NamedTuple):
    """Mean and mean square of a corrected metric, and its true value, per true rank or bin of ranks."""

    mean: Float
    square: Float
    truth: Float

    @property
    def variance(self) -> Float:
        return self.square - self.mean**2


def expected_error(
    metric: Any,
    n_negatives: int,
    n_items: int,
    *,
    n_cases: int = 1000,
    ranks: Any = "log",
    method: str = "uncorrected",
    replacement: bool = False,
    gamma: float = 0.01,
    prior: str = "uniform",
) -> ExpectedError:
    """Bias, standard deviation and root mean square error of a sampled metric.

    Args:
        metric: a metric of the rank, such as "ndcg@10".
        n_negatives: sampled for each positive.
        n_items: all items the positive could be ranked among, itself included.
        n_cases: the number of positives in the mean; `ranks` is the distribution of their true ranks.
        ranks: true ranks of some positives, a RankDistribution, or "log" or "uniform" for a guess.
        method: as in `estimate`, all but "mle".
        replacement: whether a negative could be drawn twice.
        gamma: of "bv".
        prior: of "cls" and "bv".

    >>> found = expected_error("hit@10", 99, 3706, ranks=[200])
    >>> found.truth, round(found.expected, 2)
    (0.0, 0.96)
    """
    rank_metric = parse_rank_metric(metric)
    check_sampling(n_negatives, n_items, replacement=replacement)
    check_correction(gamma, prior)
    if not (is_number(n_cases) and n_cases >= 1):
        raise InputError(f"n_cases={n_cases!r} is not a number of cases.", hint="Use at least 1.")
    sampling: dict[str, Any] = {
        "method": method, "n_negatives": n_negatives, "n_items": n_items,
        "replacement": replacement, "gamma": gamma, "prior": prior,
    }  # fmt: skip
    all_bins = _corrected_moments(rank_metric, **sampling)
    moments = all_bins
    if isinstance(ranks, str):
        weight = rank_prior(ranks, n_items)
    elif isinstance(ranks, RankDistribution):
        in_bins = np.bincount(_rank_bins(ranks.rank, n_items), ranks.chance, len(rank_grid(n_items).rank))
        weight = np.asarray(in_bins / in_bins.sum())
    else:
        distinct, index = _distinct_ranks(ranks, n_items, n_negatives)
        if distinct is not None:
            moments = _corrected_moments(rank_metric, ranks=distinct, **sampling)
        weight = np.bincount(index, minlength=len(moments.mean)) / len(index)
    truth, expected = float(weight @ moments.truth), float(weight @ moments.mean)
    # The cases are fixed: only the negatives are random, independently for each case.
    variance = float(weight @ moments.variance) / n_cases
    bias, deviation = expected - truth, math.sqrt(max(variance, 0.0))
    return ExpectedError(
        str(rank_metric),
        method,
        n_negatives,
        n_items,
        n_cases,
        truth,
        expected,
        bias,
        deviation,
        math.hypot(bias, deviation),
        float(np.abs(all_bins.mean - all_bins.truth).max()),
    )


def negatives_needed(
    metric: Any,
    n_items: int,
    *,
    tolerance: float = 0.01,
    n_cases: int = 1000,
    ranks: Any = "log",
    method: str = "uncorrected",
    replacement: bool = False,
    gamma: float = 0.01,
    prior: str = "uniform",
) -> int:
    """Return the fewest negatives whose expected error stays within `tolerance`.

    A number of n_items - 1 ranks everything.

    Above 4,096 negatives the answer is n_items - 1: ranking every item costs no more.

    >>> negatives_needed("hit@10", 3706), negatives_needed("hit@10", 3706, method="bv")
    (3382, 1216)
    """
    check_sampling(1, n_items, replacement=replacement)
    if not (is_number(tolerance) and tolerance > 0):
        raise InputError(f"tolerance={tolerance!r} cannot be met.", hint="Use a value above 0.")
    n_negatives_max = n_items - 1
    limit = min(n_negatives_max, _MAX_NEGATIVES)

    def suffices(n: int) -> bool:
        expected = expected_error(
            metric, n, n_items, n_cases=n_cases, ranks=ranks, method=method,
            replacement=replacement, gamma=gamma, prior=prior,
        )  # fmt: skip
        return expected.error <= tolerance

    high = 1
    while high < limit and not suffices(high):
        high = min(2 * high, limit)
    if high == limit and not suffices(limit):
        return n_negatives_max
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def winner_probability(
    first: Any,
    second: Any,
    n_negatives: Any = None,
    n_items: Any = None,
    metric: Any = "ndcg@10",
    *,
    ranks: str = "sampled",
    method: str = "uncorrected",
    replacement: bool = False,
    gamma: float = 0.01,
    prior: str = "uniform",
) -> float:
    """Return the probability that the model that wins on sampled ranks also wins on the whole catalogue.

    Args:
        first: ranks of one model, one per case; or truth counted among candidates.
        second: ranks of the other, the same cases in the same order.
        n_negatives: sampled for each positive.
        n_items: all items the positive could be ranked among, itself included.
        metric: the metric that decides the winner.
        ranks: "sampled": they come from samples, and the answer is the probability that the sampled
            winner is the true one, from the difference under several corrections, its standard error and the
            disagreement of the corrections. "true": they are those of the whole catalogue, and the
            answer is how often a sample would pick the true winner (negatives of the two models independent).
        method: how the sampled winner is decided: "uncorrected", as usual, or by a correction.
        replacement: whether a negative could be drawn twice.
        gamma: of "bv".
        prior: of "cls" and "bv".

    >>> winner_probability([1, 2, 30], [400, 500, 900], 99, 3706, "ndcg@10", ranks="true") > 0.99
    True
    """
    sampling: dict[str, Any] = {"n_negatives": n_negatives, "n_items": n_items, "replacement": replacement}
    correction: dict[str, Any] = {"method": method, "gamma": gamma, "prior": prior}
    if str(ranks) not in ("sampled", "true"):
        raise InputError(f"ranks={ranks!r} is neither 'sampled' nor 'true'.")
    if ranks == "true":
        rank_metric = parse_rank_metric(metric)
        check_sampling(n_negatives, n_items, replacement=replacement)
        check_correction(gamma, prior)
        sizes = [len(_rank_bins(each, n_items)) for each in (first, second)]
        if sizes[0] != sizes[1]:
            raise InputError(f"{sizes[0]} and {sizes[1]} ranks are not of the same cases.")
        distinct, index = _distinct_ranks(np.concatenate([first, second]), n_items, n_negatives)
        moments = _corrected_moments(rank_metric, ranks=distinct, **sampling, **correction)
        a, b = np.split(index, 2)
        truth = float((moments.truth[a] - moments.truth[b]).mean())
        expected = float((moments.mean[a] - moments.mean[b]).mean())
        variance = float((moments.variance[a] + moments.variance[b]).sum()) / len(a) ** 2
        in_direction = math.copysign(1.0, truth) * expected if truth else 0.0
        return _chance_positive(in_direction, math.sqrt(max(variance, 0.0)))

    def difference(**options: Any) -> Float:
        values = [estimate(each, metric=metric, **sampling, **options).per_case for each in (first, second)]
        if values[0] is None or values[1] is None:
            raise InputError(
                "method='mle' gives no value per case.", hint="Use 'cls', 'bv' or 'uncorrected'."
            )
        if len(values[0]) != len(values[1]):
            raise InputError(f"{len(values[0])} and {len(values[1])} ranks are not of the same cases.")
        return np.asarray(values[0] - values[1])

    observed = float(difference(**correction).mean())
    if not observed:
        return 0.5
    # Corrections guess what the sample does not show. Their disagreement is uncertainty, so their variance
    # is added to the squared standard error, as for multiple imputation of missing data.
    guesses = [difference(method=how, gamma=g, prior=p) for how, g, p in _CORRECTIONS]
    within = np.mean([guess.var(ddof=1) / len(guess) if len(guess) > 1 else math.inf for guess in guesses])
    means = np.array([guess.mean() for guess in guesses])
    error = math.sqrt(float(within) + (1 + 1 / len(means)) * float(means.var(ddof=1)))
    return _chance_positive(math.copysign(1.0, observed) * float(means.mean()), error)


def _chance_positive(mean: float, deviation: float) -> float:
    """Return the probability that a normal variable is above zero."""
    if deviation == 0 or not math.isfinite(deviation):
        return 0.5 if mean == 0 or deviation else float(mean > 0)
    return 0.5 * math.erfc(-mean / (deviation * math.sqrt(2)))


def _corrected_moments(
    metric: Request,
    *,
    method: str,
    n_negatives: int,
    n_items: int,
    replacement: bool,
    gamma: float,
    prior: str,
    ranks: Int | None = None,
) -> _RankMoments:
    """Return the moments at the true `ranks`, or by default in each bin of all ranks."""
    check_choice("method", method, METHODS)
    if method == "mle":
        raise InputError("method='mle' does not correct single ranks.", hint="Use 'cls' or 'bv'.")
    if n_negatives > _MAX_NEGATIVES:
        raise InputError(
            f"{n_negatives} negatives are more than {_MAX_NEGATIVES}.",
            hint="Rank the whole catalogue instead.",
        )
    value = corrected_values(
        metric, method, n_negatives, n_items, replacement=replacement, gamma=gamma, prior=prior
    )
    if ranks is None:
        table, truth = chances(n_negatives, n_items, replacement=replacement), binned_values(metric, n_items)
    else:
        table = chances_at_ranks(ranks, n_negatives, n_items, replacement=replacement)
        truth = values_by_rank(metric, n_items)[ranks - 1]
    return _RankMoments(table @ value, table @ value**2, truth)


def _distinct_ranks(ranks: Any, n_items: int, n_negatives: int) -> tuple[Int | None, Int]:
    """Return the distinct ranks and the index of each rank among them.

    If they are too many, return None and the bins.
    """
    bins = _rank_bins(ranks, n_items)
    distinct, index = np.unique(np.asarray(ranks, dtype=np.int64), return_inverse=True)
    if len(distinct) * (n_negatives + 1) > _MAX_SINGLE_CHANCES:
        return None, bins
    return distinct, index


def _rank_bins(ranks: Any, n_items: int) -> Int:
    array = whole_numbers(ranks, "ranks")
    if not len(array) or array.min() < 1 or array.max() > n_items:
        raise InputError(
            f"true ranks must lie between 1 and {n_items}.", hint="Pass one rank per case, 1 being best."
        )
    return np.asarray(np.searchsorted(rank_grid(n_items).start, array, side="right") - 1)
