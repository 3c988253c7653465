"""Sampled ranks: their cases, the metric at each rank, and their probabilities given the true rank.

No metric is defined twice: the registered function is applied to one case per rank r, with one relevant item
at r. Sampled ranks are binomial with, hypergeometric without replacement. True ranks are single up to 256 and
in bins of one and a half percent above: the probabilities change slowly there, and a catalogue of millions
fits into a small matrix.

Cases with the same numbers of negatives and items form a class. If users differ in the number of their
candidate items, numbers within one percent form one class, so that a correction is computed dozens of times,
not thousands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recsys.errors import InputError, NotDefinedError, came_as, check_choice
from recsys.metrics import Terms
from recsys.metrics.readings import Reading
from recsys.metrics.registry import Request
from recsys.metrics.weights import discount_weights
from recsys.records.arrays import Array, Context, Float, Hits, Int, cached_property
from recsys.records.checks import is_number, to_floats
from recsys.stats.pairing import check_per_case

if TYPE_CHECKING:
    from recsys.conventions.decisions import Discount, Gain

PRIORS = ("uniform", "log")
_N_SINGLE_RANKS = 256
_BIN_GROWTH = 1.015
_MAX_ITEMS = 20_000_000
_MAX_CACHED_NEGATIVES = 512
_ITEM_COUNT_STEP = 0.01


def parse_rank_metric(metric: str | Request) -> Request:
    """Return the request of a name such as "ndcg@10".

    Raises:
        NotDefinedError: the metric depends on more than the rank of one relevant item.

    >>> str(parse_rank_metric("hit_rate@5"))
    'hit@5'
    """
    request = Request.parse(metric)
    if set(request.metric.needs) - {"candidates"} or request.metric.kind == "catalogue":
        raise NotDefinedError(
            f"{request.metric.name} is not a metric of the ranks of relevant items, so sampling does not "
            "apply.",
            hint="Use hit, ndcg, mrr, map, recall or auc.",
        )
    return request


@lru_cache(maxsize=8)
def values_by_rank(metric: Request, n_candidates: int) -> Float:
    """Return the metric's value at ranks 1, 2, … of n candidates, one of them relevant.

    >>> values_by_rank(parse_rank_metric("mrr@2"), 3).tolist()
    [1.0, 0.5, 0.0]
    """
    return _values(metric, np.arange(1, n_candidates + 1), n_candidates, Reading)


def values_between_ranks(metric: Request, ranks: Float, n_candidates: int) -> Float:
    """Return the metric's formula at ranks that need not be whole, such as sampled ranks scaled up.

    >>> values_between_ranks(parse_rank_metric("mrr@2"), np.array([1.0, 1.6, 2.2]), 3).tolist()
    [1.0, 0.625, 0.0]
    """
    return _values(metric, ranks, n_candidates, _ReadingBetweenRanks)


class _ReadingBetweenRanks(Reading):
    """Hits whose places need not be whole: weights of places come from their formula, not from a table."""

    def discounted(self, gain: Gain, discount: Discount, k: int | None) -> Float:
        divisors = {
            "log2": np.log2(self.rank + 1), "log2_max2": np.log2(np.maximum(self.rank, 2)),
            "reciprocal": self.rank,
        }  # fmt: skip
        if isinstance(discount, str):
            return self.add(self.gain(gain) * self.within(k) / divisors[discount])
        return self.add(self.gain(gain) * self.place_weights(lambda n: discount_weights(discount, n), k))

    def place_weights(self, table: Callable[[int], Float], k: int | None) -> Float:
        """Between two whole places the weight falls by a constant factor, as that of rbp does."""
        below = np.floor(self.rank).astype(np.int64)
        weights = np.maximum(table(int(below.max(initial=0)) + 1), np.finfo(float).tiny)
        lower, upper = weights[below - 1], weights[below]
        return np.asarray(self.within(k) * lower * (upper / lower) ** (self.rank - below))


def _values(metric: Request, ranks: Array, n_candidates: int, reading_class: type[Reading]) -> Float:
    """Return the metric of one case per rank, with one relevant item at that rank."""
    n = len(ranks)
    hits = Hits(
        n_cases=n,
        case=np.arange(n, dtype=np.int32),
        item=np.zeros(n, dtype=np.int32),
        rank=ranks,
        grade=None,
        n_listed=np.full(n, n_candidates),
        truth_indptr=np.arange(n + 1),
        truth_grade=None,
        n_candidates=np.full(n, n_candidates),
    )
    reading = reading_class(hits, None, "first", Context(complete=True))
    result = metric.metric.body(reading, metric.k, metric.conventions(), **metric.own_params)
    values = result.value if isinstance(result, Terms) else result
    array = np.asarray(values, dtype=np.float64)
    array.setflags(write=False)
    return array


class Grid(NamedTuple):
    """Bins of true ranks: the first rank, the representative rank and the number of ranks of each."""

    start: Int
    rank: Int
    size: Int


@lru_cache(maxsize=32)
def rank_grid(n_items: int) -> Grid:
    """Bins of the ranks 1 to n_items."""
    edges = [*range(1, min(n_items, _N_SINGLE_RANKS) + 1)]
    edge = float(_N_SINGLE_RANKS)
    while edge * _BIN_GROWTH < n_items:
        edge *= _BIN_GROWTH
        edges.append(int(edge) + 1)
    start = np.unique(np.array(edges, dtype=np.int64))
    stop = np.append(start[1:], n_items + 1)
    return Grid(start, (start + stop - 1) // 2, stop - start)


def rank_prior(name: str, n_items: int) -> Float:
    """Return the prior probability of each bin of true ranks.

    "uniform": all ranks equally likely, as in the paper. "log": all powers of ten, which fits good models.
    """
    check_choice("prior", name, PRIORS)
    grid = rank_grid(n_items)
    if name == "uniform":
        weight = grid.size.astype(np.float64)
    else:
        stop = (grid.start + grid.size).astype(np.float64)
        weight = np.log(stop / grid.start)
    return np.asarray(weight / weight.sum())


def chances(n_negatives: int, n_items: int, *, replacement: bool) -> Float:
    """P(sampled rank | true rank): one row per bin of true ranks, one column per sampled rank from 1 on.

    >>> chances(1, 3, replacement=True)[:, 0].tolist()
    [1.0, 0.5, 0.0]
    """
    if n_negatives > _MAX_CACHED_NEGATIVES:  # a wide table of tens of megabytes is not cached
        return chances_at_ranks(rank_grid(n_items).rank, n_negatives, n_items, replacement=replacement)
    return _cached_chances(n_negatives, n_items, replacement)


@lru_cache(maxsize=128)
def _cached_chances(n_negatives: int, n_items: int, replacement: bool) -> Float:  # noqa: FBT001 - a cache's key
    table = chances_at_ranks(rank_grid(n_items).rank, n_negatives, n_items, replacement=replacement)
    table.setflags(write=False)
    return table


def chances_at_ranks(ranks: Int, n_negatives: int, n_items: int, *, replacement: bool) -> Float:
    """P(sampled rank | true rank) for the given true ranks; all zero for a rank above n_items."""
    from scipy.special import gammaln, xlog1py, xlogy

    check_sampling(n_negatives, n_items, replacement=replacement)
    n, others = n_negatives, n_items - 1
    n_better = np.minimum(ranks - 1, others)[:, None].astype(np.float64)
    n_above = np.arange(n + 1)[None, :].astype(np.float64)

    def ways(of: Float, pick: Float) -> Float:
        return np.asarray(gammaln(of + 1) - gammaln(pick + 1) - gammaln(of - pick + 1))

    if replacement:
        share = n_better / others
        table = np.exp(
            ways(np.full_like(n_above, n), n_above) + xlogy(n_above, share) + xlog1py(n - n_above, -share)
        )
    else:
        n_worse = others - n_better
        possible = (n_above <= n_better) & (n - n_above <= n_worse)
        from_better, from_worse = np.where(possible, n_above, 0.0), np.where(possible, n - n_above, 0.0)
        log_all = float(gammaln(others + 1) - gammaln(n + 1) - gammaln(others - n + 1))
        table = np.where(
            possible, np.exp(ways(n_better, from_better) + ways(n_worse, from_worse) - log_all), 0.0
        )
    table /= table.sum(axis=1, keepdims=True)  # corrects the rounding of the logarithms
    table[ranks > n_items] = 0.0
    return table


def check_sampling(n_negatives: int, n_items: int, *, replacement: bool) -> None:
    """Refuse a sample that cannot be drawn: n_negatives of n_items."""
    for name, number in (("n_negatives", n_negatives), ("n_items", n_items)):
        if not (is_number(number) and number == number // 1):
            raise InputError(f"{name}={number!r} is not a whole number.", hint=f"Pass {name}=100, say.")
    if n_negatives < 1 or n_items < 2:
        raise InputError(
            f"{n_negatives} negatives of {n_items} items cannot be sampled.",
            hint="n_negatives is at least 1; n_items counts the positive and what it could be ranked among.",
        )
    if not replacement and n_negatives > n_items - 1:
        raise InputError(
            f"{n_negatives} different negatives cannot come from {n_items - 1} items.",
            hint="Pass n_items= of the whole catalogue, or replacement=True.",
        )
    if n_items > _MAX_ITEMS:
        raise InputError(f"{n_items:,} items are more than {_MAX_ITEMS:,}.", hint="Use a smaller catalogue.")


@lru_cache(maxsize=256)
def binned_values(metric: Request, n_items: int, most: int | None = None) -> Float:
    """Return the metric's mean over the ranks of each bin; with `most`, over bins of 1 to `most`."""
    grid = rank_grid(n_items if most is None else most)
    values = values_by_rank(metric, n_items)
    if most is not None:
        values = np.concatenate([values, np.zeros(max(0, most - n_items))])
    return np.asarray(np.add.reduceat(values, grid.start - 1) / grid.size)


class SamplingClass(NamedTuple):
    """Cases with the same number of negatives and (nearly) the same number of items."""

    n_negatives: int
    n_items: int
    members: Int


@dataclass(frozen=True, eq=False)
class Cases:
    """One entry per case: negatives above the positive, places it shares by ties, negatives and items."""

    above: Int
    tied: Int
    n_negatives: Int
    n_items: Int
    replacement: bool
    clusters: Array | None = None

    @classmethod
    def from_ranks(
        cls,
        ranks: Any,
        n_negatives: Any,
        n_items: Any,
        *,
        tied: Any = None,
        replacement: bool = False,
        clusters: Any = None,
    ) -> Cases:
        """From ranks (1 is best), or from truth counted among candidates, which has its own n_negatives."""
        if hasattr(ranks, "above") and hasattr(ranks, "n_candidates"):
            counted = ranks
            above, tied = counted.above, counted.tied
            n_negatives = counted.n_candidates - 1 if n_negatives is None else n_negatives
            clusters = counted.clusters if clusters is None else clusters
            if (above < 0).any():
                raise InputError(
                    f"{int((above < 0).sum())} positives are not candidates, so they have no sampled rank."
                )
        else:
            above = whole_numbers(ranks, "ranks") - 1
        if n_negatives is None:
            raise InputError("how many negatives were sampled is not known.", hint="Pass n_negatives=99.")
        if n_items is None:
            raise InputError("how many items there are is not known.", hint="Pass n_items= of the catalogue.")
        n = len(above)
        if n == 0:
            raise InputError("there are no sampled ranks.")
        if not isinstance(replacement, bool | np.bool_):
            raise came_as("replacement", replacement, hint="Pass True or False.")
        cases = cls(
            above,
            np.ones(n, dtype=np.int64) if tied is None else whole_numbers(tied, "tied", n),
            whole_numbers(n_negatives, "n_negatives", n),
            whole_numbers(n_items, "n_items", n),
            bool(replacement),
            None if clusters is None else check_per_case(clusters, n, "clusters"),
        )
        last_place = cases.above + cases.tied
        is_wrong = (cases.above < 0) | (cases.tied < 1) | (last_place > cases.n_negatives + 1)
        if is_wrong.any():
            row = int(np.argmax(is_wrong))
            raise InputError(
                f"the sampled rank {int(cases.above[row]) + 1} of case {row} is impossible: "
                f"there are {int(cases.n_negatives[row])} negatives.",
                row=row,
                hint="Sampled ranks count from 1 to n_negatives + 1.",
            )
        for drawn, items in {*zip(cases.n_negatives.tolist(), cases.n_items.tolist(), strict=True)}:
            check_sampling(drawn, items, replacement=cases.replacement)
        return cases

    def __len__(self) -> int:
        return len(self.above)

    @cached_property
    def classes(self) -> list[SamplingClass]:
        """Cases in classes; numbers of items within one percent are the same class."""
        return self.in_classes(_ITEM_COUNT_STEP)

    def in_classes(self, step: float) -> list[SamplingClass]:
        """Cases in classes whose numbers of items differ by at most the share `step`."""
        exact = len(np.unique(self.n_items)) <= 16
        item_level = self.n_items if exact else np.round(np.log(self.n_items) / step).astype(np.int64)
        keys, class_of_case = np.unique(np.stack([self.n_negatives, item_level]), axis=1, return_inverse=True)
        classes = []
        for number in range(keys.shape[1]):
            members = np.flatnonzero(class_of_case.reshape(-1) == number)
            items = int(np.round(np.exp(np.log(self.n_items[members]).mean())))
            n = int(keys[0, number])
            classes.append(SamplingClass(n, max(items, n + 1), members))
        return classes

    def values_by_case(self, of_class: SamplingClass, values: Float) -> Float:
        """Return the value of each member, from one value per sampled rank.

        Ties get the mean of their places.
        """
        above, tied = self.above[of_class.members], self.tied[of_class.members]
        cumulative = np.concatenate([[0.0], np.cumsum(values)])
        untied = tied == 1
        return np.where(untied, values[above], (cumulative[above + tied] - cumulative[above]) / tied)

    def counts(self, of_class: SamplingClass, times: Array | None = None) -> Float:
        """Return how many members have each sampled rank, each counted `times` times.

        Ties are split evenly.
        """
        above, tied = self.above[of_class.members], self.tied[of_class.members]
        weight = (np.ones(len(above)) if times is None else times) / tied
        alone = tied == 1
        counts: Float = np.bincount(above[alone], weight[alone], of_class.n_negatives + 1).astype(np.float64)
        if alone.all():
            return counts
        steps = np.bincount(above[~alone], weight[~alone], of_class.n_negatives + 2)
        steps -= np.bincount((above + tied)[~alone], weight[~alone], of_class.n_negatives + 2)
        return np.asarray(counts + np.maximum(np.cumsum(steps)[:-1], 0.0))


def whole_numbers(values: Any, what: str, n: int | None = None) -> Int:
    """Whole numbers, one per case; where n cases are known, one number may stand for all of them."""
    hint = "Give one whole number per case; for tied scores pass tied= along with the best rank."
    numbers = to_floats(values, what, hint)
    if n is not None and numbers.ndim == 0:
        numbers = np.full(n, numbers)
    if numbers.ndim != 1:
        raise InputError(f"{what} came with shape {numbers.shape}.", hint=hint)
    if n is not None and len(numbers) != n:
        raise InputError(f"{what} holds {len(numbers)} values for {n} cases.")
    wrong = ~((np.abs(numbers) < 2**53) & (numbers == np.floor(numbers)))
    if wrong.any():
        raise InputError(f"{what} holds {numbers[wrong][0]:g}, which is not a whole number.", hint=hint)
    return numbers.astype(np.int64)
