"""How likely each sampled rank is, given the true one: binomial with, hypergeometric without replacement.

True ranks are kept one by one up to 256 and in bins of one and a half percent beyond: the chances change
slowly there, and a catalogue of millions fits into a small matrix.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from recsys.errors import InputError
from recsys.stats.sampled.rank_values import RankMetric, value_of_rank
from recsys.types import Float, Int

_ONE_BY_ONE = 256
_STEP = 1.015
_MOST_ITEMS = 20_000_000
_KEPT = 512


class Grid(NamedTuple):
    """True ranks in bins: where each begins, the rank that stands for it, how many ranks it holds."""

    start: Int
    rank: Int
    size: Int


@lru_cache(maxsize=32)
def grid_of(n_items: int) -> Grid:
    """Bins of the ranks 1 to n_items."""
    edges = [*range(1, min(n_items, _ONE_BY_ONE) + 1)]
    at = float(_ONE_BY_ONE)
    while at * _STEP < n_items:
        at *= _STEP
        edges.append(int(at) + 1)
    start = np.unique(np.array(edges, dtype=np.int64))
    stop = np.append(start[1:], n_items + 1)
    return Grid(start, (start + stop - 1) // 2, stop - start)


def chances(n_negatives: int, n_items: int, *, replacement: bool) -> Float:
    """P(sampled rank | true rank): one row a bin of true ranks, one column a sampled rank from 1 on.

    >>> chances(1, 3, replacement=True)[:, 0].tolist()
    [1.0, 0.5, 0.0]
    """
    if n_negatives > _KEPT:  # a wide table is made again rather than kept: it has tens of megabytes
        return chances_of(grid_of(n_items).rank, n_negatives, n_items, replacement=replacement)
    return _chances(n_negatives, n_items, replacement)


@lru_cache(maxsize=128)
def _chances(n_negatives: int, n_items: int, replacement: bool) -> Float:  # noqa: FBT001 - a cache's key
    out = chances_of(grid_of(n_items).rank, n_negatives, n_items, replacement=replacement)
    out.setflags(write=False)
    return out


def chances_of(ranks: Int, n_negatives: int, n_items: int, *, replacement: bool) -> Float:
    """The same for some true ranks; all zero for a rank beyond the last item."""
    from scipy.special import gammaln, xlog1py, xlogy

    check(n_negatives, n_items, replacement=replacement)
    n, others = n_negatives, n_items - 1
    better = np.minimum(ranks - 1, others)[:, None].astype(np.float64)
    x = np.arange(n + 1)[None, :].astype(np.float64)

    def ways(of: Float, pick: Float) -> Float:
        return np.asarray(gammaln(of + 1) - gammaln(pick + 1) - gammaln(of - pick + 1))

    if replacement:
        share = better / others
        out = np.exp(ways(np.full_like(x, n), x) + xlogy(x, share) + xlog1py(n - x, -share))
    else:
        worse = others - better
        possible = (x <= better) & (n - x <= worse)
        taken, left = np.where(possible, x, 0.0), np.where(possible, n - x, 0.0)
        every = float(gammaln(others + 1) - gammaln(n + 1) - gammaln(others - n + 1))
        out = np.where(possible, np.exp(ways(better, taken) + ways(worse, left) - every), 0.0)
    out /= out.sum(axis=1, keepdims=True)  # what rounding of the logarithms left
    out[ranks > n_items] = 0.0
    return out


def check(n_negatives: int, n_items: int, *, replacement: bool) -> None:
    """Whether so many negatives can be drawn of so many items."""
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
    if n_items > _MOST_ITEMS:
        raise InputError(f"{n_items:,} items are more than {_MOST_ITEMS:,}.", hint="Use a smaller catalogue.")


@lru_cache(maxsize=256)
def binned_value(metric: RankMetric, n_items: int, most: int | None = None) -> Float:
    """The metric's mean over the ranks of each bin; `most`: over the bins of a larger catalogue."""
    grid = grid_of(n_items if most is None else most)
    values = value_of_rank(metric, n_items)
    if most is not None:
        values = np.concatenate([values, np.zeros(max(0, most - n_items))])
    return np.asarray(np.add.reduceat(values, grid.start - 1) / grid.size)
