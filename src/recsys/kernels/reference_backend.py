"""The kernels in NumPy: always available, and simple enough to be checked by reading.

They work in blocks, so that memory stays bounded. In a scan BLAS sums in any order, so its scores are only
near the exact ones; a bound on the error shows which comparisons they decide, and the few pairs left are
scored again in the fixed order. Every other backend must give the same arrays.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.kernels.backend import (
    BACKENDS,
    Backend,
    Bools,
    Csr,
    Execution,
    Factors,
    Float64s,
    Int32s,
    Int64s,
    Matches,
    ScanProblem,
    ScanResult,
    ScoreProblem,
)

# Keys, their sorted copy and the filter of one block stay in a core's cache.
ENTRIES_PER_BLOCK = 1 << 16
# With this many cases per block, case * span fits an int64 for any two int32 items.
CASES_PER_BLOCK = 1 << 30
# Arrays of users x items alive at once in a block, in float64 each.
ARRAYS_PER_BLOCK = 8
PAIRS_PER_STEP = 1 << 13
ROUNDING_UNIT = 2.0**-53
# Up to this many truth items, comparing each with all scores is faster than sorting the scores.
FEW_TRUTH_ITEMS = 8
# The size of the C type fenv_t is 8 to 32 bytes on all known platforms.
ENVIRONMENT_BYTES = 256


@contextmanager
def exact_floats() -> Iterator[None]:
    """Round to nearest and keep subnormal numbers, for this thread, within the block.

    Flushing subnormal numbers to zero (torch.set_flush_denormal, libraries compiled with -ffast-math)
    changes scores. The compiled kernels set the state themselves; NumPy has no function for it, but the C
    library has.
    """
    environment = _math_library()
    if environment is None:
        yield
        return
    library, default = environment
    before = ctypes.create_string_buffer(ENVIRONMENT_BYTES)
    library.fegetenv(before)
    library.fesetenv(default)
    try:
        yield
    finally:
        library.fesetenv(before)


@cache
def _math_library() -> tuple[Any, Any] | None:
    """Return the C library and its default environment; None on platforms without access to it."""
    names = {"linux": "libm.so.6", "darwin": None}
    if sys.platform not in names:
        return None
    try:
        library = ctypes.CDLL(names[sys.platform])
        if sys.platform == "darwin":
            return library, ctypes.byref(ctypes.c_char.in_dll(library, "_FE_DFL_ENV"))
    except (OSError, ValueError):
        return None
    return library, ctypes.c_void_p(-1)


def match_lists(lists: Csr, truth: Csr, _execution: Execution) -> Matches:
    """Find every list entry that is in the truth of its case; truth ascending and unique per case."""
    (list_indptr, list_items), (truth_indptr, truth_items) = lists, truth
    parts = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_))]
    n_repeated, first_repeated = 0, -1
    stop, n_cases = 0, list_indptr.size - 1
    while stop < n_cases:
        # A block is a run of whole cases with about ENTRIES_PER_BLOCK entries; one case may have more.
        start = stop
        reach = int(np.searchsorted(list_indptr, list_indptr[start] + ENTRIES_PER_BLOCK, side="right")) - 1
        stop = min(max(reach, start + 1), start + CASES_PER_BLOCK, n_cases)
        entries = slice(int(list_indptr[start]), int(list_indptr[stop]))
        judged = slice(int(truth_indptr[start]), int(truth_indptr[stop]))
        list_keys, truth_keys = _case_item_keys(
            (np.diff(list_indptr[start : stop + 1]), list_items[entries]),
            (np.diff(truth_indptr[start : stop + 1]), truth_items[judged]),
        )
        list_at, truth_at = _find_keys(list_keys, truth_keys)
        is_repeat = _repeat_flags(list_keys)
        if is_repeat is not None:
            if first_repeated < 0:
                first_repeated = entries.start + int(is_repeat.argmax())
            n_repeated += int(is_repeat.sum())
        repeat = np.zeros(list_at.size, np.bool_) if is_repeat is None else is_repeat[list_at]
        parts.append((list_at + entries.start, truth_at + judged.start, repeat))
    list_at, truth_at, repeat = (np.concatenate(column) for column in zip(*parts, strict=True))
    case = np.searchsorted(list_indptr, list_at, side="right").astype(np.int32) - np.int32(1)
    return Matches(list_at, truth_at, case, repeat, n_repeated, first_repeated)


def _case_item_keys(*tables: tuple[Int64s, Int32s]) -> list[Int64s]:
    """Return one number per (case, item), ordered by case then item, for tables of (lengths, items)."""
    present = [items for _, items in tables if items.size]
    if not present:
        return [np.empty(0, np.int64) for _ in tables]
    low = min(int(items.min()) for items in present)
    span = max(int(items.max()) for items in present) - low + 1
    starts = np.arange(tables[0][0].size, dtype=np.int64) * span - low
    return [np.repeat(starts, lengths) + items for lengths, items in tables]


def _find_keys(keys: Int64s, sorted_keys: Int64s) -> tuple[Int64s, Int64s]:
    """Positions of the keys that occur in sorted_keys, and where they occur there."""
    # Most entries are in no truth: a small hash table rules them out before the binary search.
    n_bits = int(sorted_keys.size * 8).bit_length() + 1
    is_used = np.zeros(1 << n_bits, np.bool_)
    is_used[_hash_slots(sorted_keys, n_bits)] = True
    candidates = np.flatnonzero(is_used[_hash_slots(keys, n_bits)])
    candidate_keys = keys[candidates]
    place = np.searchsorted(sorted_keys, candidate_keys)
    place[place == sorted_keys.size] = 0
    is_found = (
        sorted_keys[place] == candidate_keys if sorted_keys.size else np.zeros(candidate_keys.size, np.bool_)
    )
    return candidates[is_found], place[is_found]


def _hash_slots(keys: Int64s, n_bits: int) -> Int64s:
    mixed = keys.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(64 - n_bits)).view(np.int64)


def _repeat_flags(keys: Int64s) -> Bools | None:
    """Return one flag per key: whether it occurred before; None if no key did."""
    # Equal keys share a slot of a hash table, so only keys that lost their slot to another need a sort.
    n_bits = int(keys.size * 8).bit_length() + 1
    slot = _hash_slots(keys, n_bits)
    index = np.arange(keys.size, dtype=np.int64)
    last_in_slot = np.empty(1 << n_bits, np.int64)
    last_in_slot[slot] = index
    winner = last_in_slot[slot]
    lost = np.flatnonzero(winner != index)
    losers = np.sort(keys[lost])
    if not (np.any(keys[lost] == keys[winner[lost]]) or np.any(losers[1:] == losers[:-1])):
        return None
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    repeated = np.zeros(keys.size, np.bool_)
    repeated[order[1:][ordered[1:] == ordered[:-1]]] = True
    return repeated


@exact_floats()
def scan(problem: ScanProblem, execution: Execution) -> ScanResult:
    """Lists and rank counts of all cases, block by block."""
    n_truth = 0 if problem.truth is None else problem.truth[1].size
    above, tied, ahead = (np.zeros(n_truth, np.int64) for _ in range(3))
    truth_scores = np.zeros(n_truth, np.float64)
    n_candidates = np.zeros(problem.n_cases, np.int64)
    lengths = np.zeros(problem.n_cases, np.int64)
    listed: list[tuple[Int32s, Float64s]] = []
    norms = _norms_rounded_up(problem.items, problem.bias)
    n_per_block = max(1, int(execution.memory_budget) // (max(1, problem.n_items) * 8 * ARRAYS_PER_BLOCK))
    starts = range(0, problem.n_cases, n_per_block)
    for n_done, start in enumerate(starts, 1):
        stop = min(start + n_per_block, problem.n_cases)
        block = _ReferenceBlock(problem, start, stop, norms)
        n_candidates[start:stop] = block.candidate.sum(axis=1)
        if problem.k is not None:
            lengths[start:stop], items, scores = block.best(problem.k)
            listed.append((items, scores))
        if problem.truth is not None:
            at = slice(int(problem.truth[0][start]), int(problem.truth[0][stop]))
            above[at], tied[at], ahead[at], truth_scores[at] = block.counts(problem.truth, n_per_block)
        if problem.progress is not None:
            problem.progress(n_done, len(starts))
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    items = np.concatenate([np.empty(0, np.int32), *(part for part, _ in listed)])
    scores = np.concatenate([np.empty(0, np.float64), *(part for _, part in listed)])
    return ScanResult(indptr, items, scores, above, tied, ahead, truth_scores, n_candidates)


def _norms_rounded_up(rows: Factors, last: Float64s | None) -> Float64s:
    """Euclidean norms, rounded up; `last` is one more column."""
    norms = np.zeros(rows.shape[0], np.float64)
    for start in range(0, rows.shape[0], PAIRS_PER_STEP):
        part = slice(start, start + PAIRS_PER_STEP)
        values = np.abs(rows[part].astype(np.float64))
        if last is not None:
            values = np.column_stack([values, np.abs(last[part])])
        # Divided by the largest first: squares of factors above 2^512 would overflow.
        largest = values.max(axis=1, initial=np.finfo(np.float64).tiny)
        norms[part] = largest * np.sqrt(((values / largest[:, None]) ** 2).sum(axis=1)) * (1 + 2.0**-30)
    return norms


class _ReferenceBlock:
    """Scores of some cases with all items from BLAS, with lower and upper bounds of the exact scores."""

    def __init__(self, problem: ScanProblem, start: int, stop: int, norms: Float64s) -> None:
        self.problem, self.start, self.stop = problem, start, stop
        self.users = problem.users_of(start, stop)
        self.candidate = np.full((stop - start, problem.n_items), problem.eligible is None)
        for rows, value in ((problem.eligible, True), (problem.seen, False)):
            if rows is not None:
                indptr = rows[0][start : stop + 1]
                cases = np.repeat(np.arange(stop - start), np.diff(indptr))
                self.candidate[cases, rows[1][indptr[0] : indptr[-1]]] = value
        if problem.never is not None:
            self.candidate[:, problem.never] = False
        scores = np.empty(self.candidate.shape, np.float64)
        wide_users = self.users.astype(np.float64)
        for first in range(0, problem.n_items, PAIRS_PER_STEP):
            part = slice(first, first + PAIRS_PER_STEP)
            scores[:, part] = wide_users @ problem.items[part].astype(np.float64).T
        if problem.bias is not None:
            scores += problem.bias
        # BLAS and the exact score are each within gamma of the real one; the last term is for underflow.
        n_terms = problem.items.shape[1] + (problem.bias is not None)
        gamma = n_terms * ROUNDING_UNIT / (1 - n_terms * ROUNDING_UNIT)
        bias_factor = None if problem.bias is None else np.ones(stop - start)
        with np.errstate(over="ignore"):  # an infinite bound leaves the decision to exact scores
            norm_products = np.outer(_norms_rounded_up(self.users, bias_factor), norms)
        error_bound = 2 * gamma * (1 + 2.0**-20) * norm_products + (n_terms + 1) * 2.0**-1070
        self.low = np.where(self.candidate, scores - error_bound, -np.inf)
        self.high = np.where(self.candidate, scores + error_bound, -np.inf)

    def exact_scores(self, rows: Int64s, columns: Int64s) -> Float64s:
        """Scores of pairs by the definition: float64 products added one by one, then the bias."""
        scores = np.zeros(rows.size, np.float64)
        for start in range(0, rows.size, PAIRS_PER_STEP):
            part = slice(start, start + PAIRS_PER_STEP)
            x = self.users[rows[part]].astype(np.float64)
            y = self.problem.items[columns[part]].astype(np.float64)
            for j in range(x.shape[1]):
                scores[part] += x[:, j] * y[:, j]
        if self.problem.bias is not None:
            scores += self.problem.bias[columns]
        return scores

    def best(self, k: int) -> tuple[Int64s, Int32s, Float64s]:
        """Return the k best of each case: lengths, items, exact scores."""
        # At least k candidates reach `cut`, so an item that cannot reach it is not among the best.
        n_items = self.low.shape[1]
        cut = (
            np.partition(self.low, n_items - k, axis=1)[:, n_items - k]
            if n_items
            else np.zeros(self.low.shape[0])
        )
        rows, columns = np.nonzero(self.candidate & (self.high >= cut[:, None]))
        scores = self.exact_scores(rows, columns)
        order = np.lexsort((columns, self.problem.tie_key[columns], -scores, rows))
        rows, columns, scores = rows[order], columns[order], scores[order]
        n_found = np.bincount(rows, minlength=self.low.shape[0])
        place = np.arange(rows.size) - np.repeat(np.cumsum(n_found) - n_found, n_found)
        in_list = place < k
        return np.minimum(n_found, k), columns[in_list].astype(np.int32), scores[in_list]

    def counts(self, truth: Csr, step: int) -> tuple[Int64s, Int64s, Int64s, Float64s]:
        """Count per truth item: candidates above it, level, level but before it; and its exact score."""
        indptr, items = truth
        starts = indptr[self.start : self.stop + 1]
        rows = np.repeat(np.arange(self.stop - self.start), np.diff(starts))
        columns = items[starts[0] : starts[-1]].astype(np.int64)
        scores = self.exact_scores(rows, columns)
        above, tied, ahead = (np.zeros(rows.size, np.int64) for _ in range(3))
        for start in range(0, rows.size, step):
            part = slice(start, start + step)
            above[part], tied[part], ahead[part] = self._count_ranks(rows[part], columns[part], scores[part])
        is_candidate = self.candidate[rows, columns]
        return (
            np.where(is_candidate, above, -1),
            np.where(is_candidate, tied, 0),
            np.where(is_candidate, ahead, 0),
            scores,
        )

    def _count_ranks(
        self, rows: Int64s, truth_items: Int64s, scores: Float64s
    ) -> tuple[Int64s, Int64s, Int64s]:
        """Count per truth item: candidates above it, level with it, and level but before it."""
        surely_above = self.low[rows] > scores[:, None]
        which, columns = np.nonzero(
            self.candidate[rows] & ~surely_above & (self.high[rows] >= scores[:, None])
        )
        exact = self.exact_scores(rows[which], columns)
        above = surely_above.sum(axis=1) + np.bincount(which[exact > scores[which]], minlength=rows.size)
        level = exact == scores[which]
        which, columns = which[level], columns[level]
        tied = np.bincount(which, minlength=rows.size)
        key, truth_key = self.problem.tie_key[columns], self.problem.tie_key[truth_items][which]
        is_ahead = (key < truth_key) | ((key == truth_key) & (columns < truth_items[which]))
        return above, tied, np.bincount(which[is_ahead], minlength=rows.size)


def rank_scores(problem: ScoreProblem, _execution: Execution) -> ScanResult:
    """Lists and counts of every row, one row after the other."""
    scores, candidate, k, rank = problem.scores, problem.candidate, problem.k, problem.item_rank
    indptr, items = problem.truth
    above, tied, ahead = np.full(items.size, -1), np.zeros(items.size, int), np.zeros(items.size, int)
    truth_scores = np.zeros(items.size)
    lists: list[Int32s] = []
    list_scores: list[Float64s] = []
    for row in range(len(scores)):
        if not np.isfinite(scores[row, candidate[row]]).all():
            raise InputError(f"row {row} has a NaN or infinite score of a candidate.", row=row)
        at = np.arange(indptr[row], indptr[row + 1])
        truth_scores[at] = scores[row, items[at]]
        at = at[candidate[row, items[at]]]
        above[at], tied[at], ahead[at] = _count_in_row(scores[row], candidate[row], items[at], rank)
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


def _count_in_row(
    scores: Factors, candidate: Bools, items: Int32s, rank: Int64s
) -> tuple[Int64s, Int64s, Int64s]:
    """Count per item: candidates above it, level with it, and level but before it."""
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
    """Return the k best candidates; only scores that may be among them are sorted."""
    pool = np.flatnonzero(candidate)
    pool_scores = scores[pool]
    if len(pool_scores) > k:
        pool = pool[pool_scores >= np.partition(pool_scores, len(pool_scores) - k)[len(pool_scores) - k]]
        pool_scores = scores[pool]
    # Backwards: unsigned scores cannot be negated, nor can the smallest signed number, hence ~rank.
    order = np.lexsort((~rank[pool], pool_scores))[::-1]
    return pool[order[:k]].astype(np.int32)


BACKENDS["reference"] = Backend(
    "reference", lambda: None, match_lists=match_lists, scan=scan, rank_scores=rank_scores, preference=1
)
