"""Rows of given scores ranked in NumPy, one row after the other: what the compiled way must equal."""

from __future__ import annotations

import numpy as np

from recsys.kernels.kernel_results import Bools, Csr, Factors, Float64s, Int32s, Int64s, ScanResult

# Up to here looking at all scores once a truth item costs less than putting them in order.
FEW = 8


def rank_scores(scores: Factors, candidate: Bools, k: int, truth: Csr, rank: Int64s) -> ScanResult:
    """Lists and counts of every row; among equal scores the smaller rank goes first."""
    indptr, items = truth
    above, tied, ahead = np.full(items.size, -1), np.zeros(items.size, int), np.zeros(items.size, int)
    own = np.zeros(items.size)
    lists: list[Int32s] = []
    values: list[Float64s] = []
    for row in range(len(scores)):
        at = np.arange(indptr[row], indptr[row + 1])
        own[at] = scores[row, items[at]]
        at = at[candidate[row, items[at]]]
        above[at], tied[at], ahead[at] = _places(scores[row], candidate[row], items[at], rank)
        if k:
            lists.append(_best(scores[row], candidate[row], k, rank))
            values.append(scores[row, lists[-1]].astype(np.float64))
    lengths = [len(one) for one in lists] if k else [0] * len(scores)
    return ScanResult(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([np.zeros(0, np.int32), *lists]),
        np.concatenate([np.zeros(0), *values]),
        above,
        tied,
        ahead,
        own,
        np.count_nonzero(candidate, axis=1).astype(np.int64),
    )


def _places(scores: Factors, candidate: Bools, items: Int32s, rank: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Candidates above each item, level with it, and of those before it."""
    pool = np.flatnonzero(candidate)
    among, own = scores[pool], scores[items]
    if len(items) <= FEW:
        level = among == own[:, None]
        first = level & (rank[pool] < rank[items][:, None])
        return (among > own[:, None]).sum(axis=1), level.sum(axis=1), first.sum(axis=1)
    order = np.lexsort((rank[pool], among))
    ordered = among[order]
    low, high = (np.searchsorted(ordered, own, side=side) for side in ("left", "right"))
    at = np.empty(len(scores), dtype=np.int64)
    at[pool[order]] = np.arange(len(order))
    return len(order) - high, high - low, at[items] - low


def _best(scores: Factors, candidate: Bools, k: int, rank: Int64s) -> Int32s:
    """The k best candidates; only what may be among them is sorted."""
    pool = np.flatnonzero(candidate)
    own = scores[pool]
    if len(own) > k:
        pool = pool[own >= np.partition(own, len(own) - k)[len(own) - k]]
        own = scores[pool]
    # Backwards: no unsigned number has a negative, and the least signed one has none either.
    order = np.lexsort((-rank[pool], own))[::-1]
    return pool[order[:k]].astype(np.int32)
