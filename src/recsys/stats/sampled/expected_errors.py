"""How wrong a sampled metric will be, whether it picks the right winner, and how many negatives would do.

All of it follows from a distribution of true ranks: measured full ranks, one fitted to sampled ranks, or a
guess. Nothing is simulated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import InputError
from recsys.stats.sampled.correction import corrected, prior_of
from recsys.stats.sampled.estimates import estimate
from recsys.stats.sampled.rank_chances import binned_value, chances, chances_of, grid_of
from recsys.stats.sampled.rank_distribution import RankDistribution
from recsys.stats.sampled.rank_values import RankMetric, asked, value_of_rank
from recsys.types import Float, Int

_GUESSES = (
    ("cls", 0.01, "uniform"),
    ("cls", 0.01, "log"),
    ("bv", 0.01, "uniform"),
    ("bv", 0.1, "uniform"),
    ("bv", 0.01, "log"),
    ("bv", 0.1, "log"),
)
_WIDEST = 4096  # columns of the table of chances; beyond, rank everything
_ONE_BY_ONE = 4_000_000  # chances worked out for the very ranks given; beyond, they share the bins


@dataclass(frozen=True)
class ExpectedError:
    """What an estimate from so many negatives is expected to be, and what it should be."""

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


class _Moments(NamedTuple):
    """Mean and mean square of a corrected metric at each true rank or bin of them, and the truth there."""

    mean: Float
    square: Float
    truth: Float


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
        metric: a metric of the place, such as "ndcg@10".
        n_negatives: sampled for each positive.
        n_items: all items the positive could be ranked among, itself included.
        n_cases: positives that are averaged over; `ranks` says how their true ranks lie.
        ranks: true ranks of some positives, a RankDistribution, or "log" or "uniform" for a guess.
        method: as in `estimate`, all but "mle".
        replacement: whether a negative could be drawn twice.
        gamma: of "bv".
        prior: of "cls" and "bv".

    >>> found = expected_error("hit@10", 99, 3706, ranks=[200])
    >>> found.truth, round(found.expected, 2)
    (0.0, 0.96)
    """
    wanted = asked(metric)
    if n_cases < 1:
        raise InputError(f"n_cases={n_cases} is no number of cases.", hint="Use at least 1.")
    drawn: dict[str, Any] = {
        "method": method, "n_negatives": n_negatives, "n_items": n_items,
        "replacement": replacement, "gamma": gamma, "prior": prior,
    }  # fmt: skip
    everywhere = _moments(wanted, **drawn)
    if isinstance(ranks, str | RankDistribution):
        weight, moments = _weight(ranks, n_items), everywhere
    else:
        at, places = _distinct(ranks, n_items, n_negatives)
        moments = everywhere if at is None else _moments(wanted, at=at, **drawn)
        weight = np.bincount(places, minlength=len(moments.mean)) / len(places)
    truth, expected = float(weight @ moments.truth), float(weight @ moments.mean)
    # The cases are given: what varies is the draw of negatives, independent from case to case.
    variance = float(weight @ (moments.square - moments.mean**2)) / n_cases
    bias, deviation = expected - truth, math.sqrt(max(variance, 0.0))
    return ExpectedError(
        str(wanted),
        method,
        n_negatives,
        n_items,
        n_cases,
        truth,
        expected,
        bias,
        deviation,
        math.hypot(bias, deviation),
        float(np.abs(everywhere.mean - everywhere.truth).max()),
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
    """The fewest negatives whose expected error stays within `tolerance`; n_items - 1 ranks everything.

    Beyond 4,096 negatives nothing in between is looked for: ranking every item costs no more.

    >>> negatives_needed("hit@10", 3706), negatives_needed("hit@10", 3706, method="bv")
    (3382, 1216)
    """
    if not tolerance > 0:
        raise InputError(f"tolerance={tolerance!r} cannot be met.", hint="Use a value above 0.")
    most = n_items - 1
    limit = min(most, _WIDEST)

    def suffices(n: int) -> bool:
        found = expected_error(
            metric, n, n_items, n_cases=n_cases, ranks=ranks, method=method,
            replacement=replacement, gamma=gamma, prior=prior,
        )  # fmt: skip
        return found.error <= tolerance

    high = 1
    while high < limit and not suffices(high):
        high = min(2 * high, limit)
    if high == limit and not suffices(limit):
        return most
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
    known: str = "sampled",
    method: str = "uncorrected",
    replacement: bool = False,
    gamma: float = 0.01,
    prior: str = "uniform",
) -> float:
    """The probability that the model that wins on sampled ranks wins on the whole catalogue too.

    Args:
        first: ranks of one model, a case each; or what counting candidates gave.
        second: ranks of the other, the same cases in the same order.
        n_negatives: sampled for each positive.
        n_items: all items the positive could be ranked among, itself included.
        metric: what decides.
        known: "sampled": the ranks are sampled ones, and the answer is how surely the sampled winner is the
            true one, by the difference under several corrections, its standard error and how far the
            corrections disagree. "true": the ranks are those of the whole catalogue, and the answer is how
            often a sample would name the true winner (negatives of the two models taken as independent).
        method: what the sampled winner is decided by: "uncorrected", as everybody does, or a correction.
        replacement: whether a negative could be drawn twice.
        gamma: of "bv".
        prior: of "cls" and "bv".

    >>> winner_probability([1, 2, 30], [400, 500, 900], 99, 3706, "ndcg@10", known="true") > 0.99
    True
    """
    drawn: dict[str, Any] = {"n_negatives": n_negatives, "n_items": n_items, "replacement": replacement}
    shape: dict[str, Any] = {"method": method, "gamma": gamma, "prior": prior}
    if known == "true":
        return _positive(*_of_true(first, second, asked(metric), **drawn, **shape))
    if known != "sampled":
        raise InputError(f"known={known!r} is neither 'sampled' nor 'true'.")
    return _of_sampled((first, second), metric, drawn, shape)


def _of_sampled(both: tuple[Any, Any], metric: Any, drawn: dict[str, Any], shape: dict[str, Any]) -> float:
    def difference(**how: Any) -> Float:
        values = [estimate(ranks, metric=metric, **drawn, **how).per_case for ranks in both]
        if values[0] is None or values[1] is None:
            raise InputError("method='mle' gives no value a case.", hint="Use 'cls', 'bv' or 'uncorrected'.")
        if len(values[0]) != len(values[1]):
            raise InputError(f"{len(values[0])} and {len(values[1])} ranks are not of the same cases.")
        return np.asarray(values[0] - values[1])

    seen = float(difference(**shape).mean())
    if not seen:
        return 0.5
    # Corrections guess what the sample does not show. Where they disagree nobody knows, so their spread
    # counts beside the standard error, as between imputations of missing data.
    guesses = [difference(method=how, gamma=gamma, prior=prior) for how, gamma, prior in _GUESSES]
    within = np.mean([guess.var(ddof=1) / len(guess) if len(guess) > 1 else math.inf for guess in guesses])
    means = np.array([guess.mean() for guess in guesses])
    error = math.sqrt(float(within) + (1 + 1 / len(means)) * float(means.var(ddof=1)))
    return _positive(math.copysign(1.0, seen) * float(means.mean()), error)


def _of_true(
    first: Any, second: Any, metric: RankMetric, *, n_items: int, **options: Any
) -> tuple[float, float]:
    """Expected sampled difference in the direction of the true one, and its standard deviation."""
    sizes = [len(_bins(ranks, n_items)) for ranks in (first, second)]
    if sizes[0] != sizes[1]:
        raise InputError(f"{sizes[0]} and {sizes[1]} ranks are not of the same cases.")
    ranks, places = _distinct(np.concatenate([first, second]), n_items, options["n_negatives"])
    moments = _moments(metric, n_items=n_items, at=ranks, **options)
    at = np.split(places, 2)
    truth = float((moments.truth[at[0]] - moments.truth[at[1]]).mean())
    expected = float((moments.mean[at[0]] - moments.mean[at[1]]).mean())
    spread = moments.square - moments.mean**2
    variance = float((spread[at[0]] + spread[at[1]]).sum()) / len(at[0]) ** 2
    return (math.copysign(1.0, truth) * expected if truth else 0.0), math.sqrt(max(variance, 0.0))


def _positive(mean: float, deviation: float) -> float:
    """P(a normal variable is above zero)."""
    if deviation == 0 or not math.isfinite(deviation):
        return 0.5 if mean == 0 or deviation else float(mean > 0)
    return 0.5 * math.erfc(-mean / (deviation * math.sqrt(2)))


def _moments(
    metric: RankMetric,
    *,
    method: str,
    n_negatives: int,
    n_items: int,
    replacement: bool,
    gamma: float,
    prior: str,
    at: Int | None = None,
) -> _Moments:
    """At these true ranks, or at each bin of all of them."""
    if method == "mle":
        raise InputError("method='mle' is no correction of single ranks.", hint="Use 'cls' or 'bv'.")
    if n_negatives > _WIDEST:
        raise InputError(
            f"{n_negatives} negatives are more than {_WIDEST}.", hint="Rank the whole catalogue instead."
        )
    value = corrected(metric, method, n_negatives, n_items, replacement=replacement, gamma=gamma, prior=prior)
    if at is None:
        table, truth = chances(n_negatives, n_items, replacement=replacement), binned_value(metric, n_items)
    else:
        table = chances_of(at, n_negatives, n_items, replacement=replacement)
        truth = value_of_rank(metric, n_items)[at - 1]
    return _Moments(table @ value, table @ value**2, truth)


def _weight(ranks: str | RankDistribution, n_items: int) -> Float:
    """How much of a guess or a distribution lies in each bin."""
    if isinstance(ranks, str):
        return prior_of(ranks, n_items)
    weight = np.bincount(_bins(ranks.rank, n_items), ranks.chance, len(grid_of(n_items).rank))
    return np.asarray(weight / weight.sum())


def _distinct(ranks: Any, n_items: int, n_negatives: int) -> tuple[Int | None, Int]:
    """The different ranks there are and which is whose; None and the bins where they are too many."""
    bins = _bins(ranks, n_items)
    found, places = np.unique(np.asarray(ranks, dtype=np.int64), return_inverse=True)
    if len(found) * (n_negatives + 1) > _ONE_BY_ONE:
        return None, bins
    return found, places


def _bins(ranks: Any, n_items: int) -> Int:
    array = np.asarray(ranks)
    if array.ndim != 1 or not len(array) or int(array.min()) < 1 or int(array.max()) > n_items:
        raise InputError(
            f"true ranks must lie between 1 and {n_items}.", hint="Pass one rank a case, 1 being best."
        )
    return np.asarray(np.searchsorted(grid_of(n_items).start, array, side="right") - 1)
