"""The value of a metric at each true rank, and the probability of each sampled rank given the true one.

No metric is defined twice: the registered function is applied to one case per rank r, with one relevant item
at r. Sampled ranks are binomial with, hypergeometric without replacement. True ranks are single up to 256 and
in bins of one and a half percent above: the probabilities change slowly there, and a catalogue of millions
fits into a small matrix.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import CutoffError, InputError, NotDefinedError, UnknownNameError
from recsys.metrics import Metric, Terms, lookup
from recsys.metrics.case_reading import Reading
from recsys.types import Context, Float, Hits, Int

PRIORS = ("uniform", "log")
_N_SINGLE_RANKS = 256
_BIN_GROWTH = 1.015
_MAX_ITEMS = 20_000_000
_MAX_CACHED_NEGATIVES = 512


class RankMetric(NamedTuple):
    """A metric, its cut-off and its parameters; prints as "ndcg@10"."""

    metric: Metric
    k: int | None
    params: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return self.metric.name + ("" if self.k is None else f"@{self.k}")


def parse_rank_metric(metric: Any) -> RankMetric:
    """The RankMetric of a name such as "ndcg@10", or of a parsed request.

    >>> str(parse_rank_metric("hit_rate@5"))
    'hit@5'
    """
    if isinstance(metric, RankMetric):
        return metric
    if hasattr(metric, "metric") and hasattr(metric, "own_params"):
        return RankMetric(metric.metric, metric.k, tuple(metric.own_params.items()))
    name, separator, cutoff = str(metric).partition("@")
    registered, preset = lookup(name.strip())
    if separator and not cutoff.strip().isdigit():
        raise CutoffError(f"the cut-off of {metric!r} is not a whole number.", hint='Write "ndcg@10".')
    k = int(cutoff) if separator else None
    if (k is None and registered.at_k == "required") or (
        k is not None and (registered.at_k == "never" or k < 1)
    ):
        raise CutoffError(f"{metric!r} has a cut-off missing, too many or not positive.")
    if set(registered.needs) - {"candidates"} or registered.kind == "catalogue":
        raise NotDefinedError(
            f"{registered.name} is not a metric of the ranks of relevant items, so sampling does not apply.",
            hint="Use hit, ndcg, mrr, map, recall or auc.",
        )
    params = {**registered.params, **preset}
    return RankMetric(registered, k, tuple(params.items()))


@lru_cache(maxsize=8)
def values_by_rank(metric: RankMetric, n_candidates: int) -> Float:
    """The metric's value at ranks 1, 2, … of n candidates, one of them relevant.

    >>> values_by_rank(parse_rank_metric("mrr@2"), 3).tolist()
    [1.0, 0.5, 0.0]
    """
    n = n_candidates
    ranks = np.arange(1, n + 1)
    hits = Hits(
        n_cases=n,
        case=np.arange(n, dtype=np.int32),
        item=np.zeros(n, dtype=np.int32),
        rank=ranks,
        grade=None,
        n_listed=np.full(n, n),
        truth_indptr=np.arange(n + 1),
        truth_grade=None,
        n_candidates=np.full(n, n),
    )
    reading = Reading(hits, None, "first", Context(complete=True))
    conventions = Conventions().for_metric(metric.metric.name)
    result = metric.metric.body(reading, metric.k, conventions, **dict(metric.params))
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
    """The prior probability of each bin of true ranks.

    "uniform": all ranks equally likely, as in the paper. "log": all powers of ten, which fits good models.
    """
    grid = rank_grid(n_items)
    if name == "uniform":
        weight = grid.size.astype(np.float64)
    elif name == "log":
        stop = (grid.start + grid.size).astype(np.float64)
        weight = np.log(stop / grid.start)
    else:
        raise UnknownNameError("prior", name, PRIORS)
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
def binned_values(metric: RankMetric, n_items: int, most: int | None = None) -> Float:
    """The metric's mean over the ranks of each bin; with `most`, over bins of 1 to `most`."""
    grid = rank_grid(n_items if most is None else most)
    values = values_by_rank(metric, n_items)
    if most is not None:
        values = np.concatenate([values, np.zeros(max(0, most - n_items))])
    return np.asarray(np.add.reduceat(values, grid.start - 1) / grid.size)
