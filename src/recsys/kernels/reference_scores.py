"""rank_scores in NumPy, one row after the other; the compiled kernel must give the same arrays."""

from __future__ import annotations

import numpy as np

from recsys.kernels.kernel_results import Bools, Csr, Factors, Float64s, Int32s, Int64s, ScanResult

# Up to this many truth items, comparing each with all scores is faster than sorting the scores.
FEW_TRUTH_ITEMS = 8


def rank_scores(scores: Factors, candidate: Bools, k: int, truth: Csr, rank: Int64s) -> ScanResult:
    """Lists and counts of every row; among equal scores the smaller rank goes first."""
    indptr, items = truth
    above, tied, ahead = np.full(items.size, -1), np.zeros(items.size, int), np.zeros(items.size, int)
    truth_scores = np.zeros(items.size)
    lists: list[Int32s] = []
    list_scores: list[Float64s] = []
    for row in range(len(scores)):
        at = np.arange(indptr[row], indptr[row + 1])
        truth_scores[at] = scores[row, items[at]]
        at = at[candidate[row, items[at]]]
        above[at], tied[at], ahead[at] = _count_ranks(scores[row], candidate[row], items[at], rank)
        if k:
            lists.append(_best_candidates(scores[row], candidate[row], k, rank))
            list_scores.append(scores[row, lists[-1]].astype(np.float64))
    lengths = [len(items_of_row) for items_of_row in lists] if k else [0] * len(scores)
    return ScanResult(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([np.zeros(0, np.int32), *lists]),
        np.concatenate([np.zeros(0), *list_scores]),
        above,
        tied,
        ahead,
        truth_scores,
        np.count_nonzero(candidate, axis=1).astype(np.int64),
    )


def _count_ranks(
    scores: Factors, candidate: Bools, items: Int32s, rank: Int64s
) -> tuple[Int64s, Int64s, Int64s]:
    """Per item: candidates above it, level with it, and level but before it."""
    pool = np.flatnonzero(candidate)
    pool_scores, truth_scores = scores[pool], scores[items]
    if len(items) <= FEW_TRUTH_ITEMS:
        is_level = pool_scores == truth_scores[:, None]
        is_ahead = is_level & (rank[pool] < rank[items][:, None])
        return (pool_scores > truth_scores[:, None]).sum(axis=1), is_level.sum(axis=1), is_ahead.sum(axis=1)
    order = np.lexsort((rank[pool], pool_scores))
    ordered = pool_scores[order]
    low, high = (np.searchsorted(ordered, truth_scores, side=side) for side in ("left", "right"))
    at = np.empty(len(scores), dtype=np.int64)
    at[pool[order]] = np.arange(len(order))
    return len(order) - high, high - low, at[items] - low


def _best_candidates(scores: Factors, candidate: Bools, k: int, rank: Int64s) -> Int32s:
    """The k best candidates; only scores that may be among them are sorted."""
    pool = np.flatnonzero(candidate)
    pool_scores = scores[pool]
    if len(pool_scores) > k:
        pool = pool[pool_scores >= np.partition(pool_scores, len(pool_scores) - k)[len(pool_scores) - k]]
        pool_scores = scores[pool]
    # Sorted backwards: unsigned scores cannot be negated, nor can the smallest signed one.
    order = np.lexsort((-rank[pool], pool_scores))[::-1]
    return pool[order[:k]].astype(np.int32)
