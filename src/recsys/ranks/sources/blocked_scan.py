"""Factors scanned within a budget of memory: blocks of users against shards of items, equal to one scan.

`kernels.scan` packs all items. Where they do not fit, a block of users is scanned against one shard of items
after the other. Places are counted among the items of one scan only, so the truth items of the block take
part in each of its scans: what a shard adds is its count less the count among the truth items alone.

Rows are copied block by block. Pages of a memory-mapped file are handed back once they have been read, so
that only a few of them count as memory of the process at any time.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from recsys import kernels
from recsys.kernels.backend import as_per_item, block_magnitude, check_overflow, float_type
from recsys.ranks.sources.source import Csr, check_memory
from recsys.records.arrays import Array, Bool, Codes, Float, Int, best_entries

Candidates = tuple[Csr | None, Csr | None]

# Half of the budget is for items, a quarter for users and what they have seen, a quarter for the kernel.
_HALF, _QUARTER = 2, 4
_LEAST_MEMORY, _LEAST_USERS, _LEAST_ITEMS = 8 << 20, 64, 1024
# Bytes besides factors: of an item (norms, places, scores), of a user, per place of a user's list, per truth
# item, per seen or eligible item.
_ITEM_BYTES, _USER_BYTES, _PLACE_BYTES, _TRUTH_BYTES, _SEEN_BYTES = 128, 256, 160, 160, 64
_PACKED_BYTES = 4
# What is read of a file at a time; of rows far apart only a few, as the system maps pages around each one.
_BYTES_PER_READ, _ROWS_APART = 1 << 20, 16


class RowReader:
    """A matrix of factors that is read some rows at a time, in the type the kernels work in."""

    def __init__(self, name: str, matrix: Array) -> None:
        self.name, self.matrix = name, matrix
        self.dtype = np.dtype(float_type(matrix.dtype))
        self._pages = _file_pages(matrix)

    @property
    def n_factors(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def row_bytes(self) -> int:
        return self.n_factors * max(self.dtype.itemsize, self.matrix.itemsize)

    def rows(self, wanted: Array) -> Array:
        """Return a copy of these rows."""
        if self._pages is None:
            return np.asarray(self.matrix[wanted], dtype=self.dtype)
        out = np.empty((len(wanted), self.n_factors), self.dtype)
        stride = max(1, abs(self.matrix.strides[0]))
        step = max(_ROWS_APART, _BYTES_PER_READ // stride)
        for start in range(0, len(wanted), step):
            part = wanted[start : start + step]
            apart = int(part.max() - part.min() + 1) * stride > 2 * _BYTES_PER_READ
            for at in range(start, start + len(part), _ROWS_APART if apart else step):
                stop = min(start + step, at + _ROWS_APART) if apart else start + step
                out[at:stop] = self.matrix[wanted[at:stop]]
                self._pages.madvise(mmap.MADV_DONTNEED)
        return out

    def all_rows(self) -> Array:
        """Return the matrix, or a copy of it where it is in a file."""
        return self.matrix if self._pages is None else self.rows(np.arange(len(self.matrix)))

    def largest(self, wanted: Array) -> float:
        """Return the largest magnitude in these rows; the error for a NaN or an infinity names the row."""
        step = max(1, _BYTES_PER_READ // max(1, self.row_bytes))
        parts = (wanted[start : start + step] for start in range(0, len(wanted), step))
        return max((block_magnitude(self.name, self.rows(part), part) for part in parts), default=0.0)


def _file_pages(matrix: Array) -> mmap.mmap | None:
    """Return the mapped file of a matrix; None if it is in memory, or mapped with changes of its own."""
    base: Any = matrix
    while isinstance(base, np.ndarray):
        if getattr(base, "mode", None) == "c":  # copied on write: changes would be lost
            return None
        base = base.base
    return base if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED") else None


def memory_needed(
    users: RowReader, items: RowReader, k: int | None, n_truth: int = 0, n_seen: int = 0
) -> int:
    """Return the bytes that the smallest blocks need.

    Args:
        users: the matrix of users.
        items: the matrix of items.
        k: the length of the lists, None for no lists.
        n_truth: the most truth items of a case.
        n_seen: the most seen and eligible items of a case.
    """
    n_items = min(len(items.matrix), max(_LEAST_ITEMS, 2 * n_truth))
    largest_user = _user_bytes(users, k) + _TRUTH_BYTES * n_truth + _SEEN_BYTES * n_seen
    for_users = max(_LEAST_USERS * _user_bytes(users, k), largest_user)
    return max(_LEAST_MEMORY, _HALF * n_items * _item_bytes(items), _QUARTER * for_users)


def _item_bytes(items: RowReader) -> int:
    return items.row_bytes + items.n_factors * _PACKED_BYTES + _ITEM_BYTES


def _user_bytes(users: RowReader, k: int | None) -> int:
    return users.row_bytes + _USER_BYTES + _PLACE_BYTES * (k or 0)


@dataclass(frozen=True, eq=False)
class BlockedScan:
    """One scan of factors in blocks that fit a budget; it gives the arrays of `kernels.scan`."""

    users: RowReader
    items: RowReader
    memory: int
    k: int | None
    deepest: int | None
    item_bias: Array | None
    item_rank: Int | None
    never: Bool | None
    threads: int | None
    backend: str
    progress: Callable[[int, int], object] | None

    def run(
        self,
        user_rows: Int,
        truth: Csr | None,
        n_seen: Int,
        candidates: Callable[[int, int], Candidates],
    ) -> kernels.ScanResult:
        """Lists and counts of all cases.

        Args:
            user_rows: the row of users of each case.
            truth: the truth items of each case.
            n_seen: how many seen and eligible items each case has.
            candidates: the seen and the eligible items of the cases from one place to another.
        """
        indptr = np.zeros(len(user_rows) + 1, np.int64) if truth is None else truth[0]
        n_truth = int(np.diff(indptr).max(initial=0))
        needed = memory_needed(self.users, self.items, self.k, n_truth, int(n_seen.max(initial=0)))
        check_memory(self.memory, needed, "these factors")
        self._check_factors(user_rows)
        all_items = self.items.all_rows() if self._all_items_fit else None
        above, tied, ahead = (np.zeros(indptr[-1], np.int64) for _ in range(3))
        truth_scores, n_candidates = np.zeros(indptr[-1]), np.zeros(len(user_rows), np.int64)
        most_places = len(user_rows) * min(self.k or 0, len(self.items.matrix))
        # Pages that nothing is written to do not take memory yet.
        list_items, list_scores = np.empty(most_places, np.int32), np.empty(most_places)
        list_indptr = np.zeros(len(user_rows) + 1, np.int64)
        bounds = list(self._block_bounds(indptr, n_seen))
        for number, (first, stop) in enumerate(bounds):
            block = _Block(
                self,
                self.users.rows(user_rows[first:stop]),
                None if truth is None else _cut_rows(truth, first, stop),
                candidates(first, stop),
            )
            found = block.scan_shards() if all_items is None else block.scan(all_items, None)
            at = slice(indptr[first], indptr[stop])
            above[at], tied[at], ahead[at] = found.above, found.tied, found.ahead
            truth_scores[at], n_candidates[first:stop] = found.truth_scores, found.n_candidates
            list_indptr[first + 1 : stop + 1] = list_indptr[first] + found.list_indptr[1:]
            places = slice(list_indptr[first], list_indptr[stop])
            list_items[places], list_scores[places] = found.list_items, found.list_scores
            if self.progress is not None:
                self.progress(number + 1, len(bounds))
        if self.deepest is not None and truth is not None:
            kernels.place_beyond(self.deepest, indptr, above, tied, ahead)
        n_places = int(list_indptr[-1])
        return kernels.ScanResult(
            list_indptr,
            list_items[:n_places],
            list_scores[:n_places],
            above,
            tied,
            ahead,
            truth_scores,
            n_candidates,
        )

    def _check_factors(self, user_rows: Int) -> None:
        """Make the checks of `kernels.scan` on all rows at once: errors name rows of the whole matrices."""
        kernels.scan(  # types and options
            self.users.matrix[:0],
            self.items.matrix[:0],
            k=self.k,
            deepest=self.deepest,
            threads=self.threads,
            backend=self.backend,
        )
        n_items = len(self.items.matrix)
        bias = as_per_item("item_bias", self.item_bias, n_items, np.float64)
        user_max, item_max = self.users.largest(user_rows), 0.0
        for start in range(0, n_items, self.shard_size):
            shard = np.arange(start, min(start + self.shard_size, n_items))
            item_max = max(item_max, self.items.largest(shard))
        check_overflow(self.users.n_factors, user_max, item_max, bias)

    @property
    def shard_size(self) -> int:
        """How many items fit into their share of the budget."""
        return max(1, self.memory // _HALF // _item_bytes(self.items))

    @property
    def _all_items_fit(self) -> bool:
        return len(self.items.matrix) <= self.shard_size

    def _block_bounds(self, truth_indptr: Int, n_seen: Int) -> Iterator[tuple[int, int]]:
        """Yield where each block of users starts and ends; a block of its own for a user who fills one."""
        sizes = _user_bytes(self.users, self.k) + _TRUTH_BYTES * np.diff(truth_indptr) + _SEEN_BYTES * n_seen
        ends = np.concatenate([[0], np.cumsum(sizes)])
        # Truth items are scanned with every shard: a quarter of one at most, if not a single case has more.
        limits = [(ends, self.memory // _QUARTER)]
        if not self._all_items_fit:
            limits.append((truth_indptr, self.shard_size // 4))
        first = 0
        while first < len(n_seen):
            reach = [int(np.searchsorted(e, e[first] + most, side="right")) - 1 for e, most in limits]
            stop = max(first + 1, min(reach))
            yield first, stop
            first = stop


@dataclass(frozen=True, eq=False)
class _Block:
    """The factors of some cases, their truth items and their candidates."""

    whole: BlockedScan
    users: Array
    truth: Csr | None
    candidates: Candidates

    def scan(self, items: Array, rows: Codes | None) -> kernels.ScanResult:
        """Lists and counts among some rows of items, or among all; items in lists are places in `rows`."""
        whole = self.whole
        rank, seen, eligible, truth = whole.item_rank, *self.candidates, self.truth
        bias, never = whole.item_bias, whole.never
        if rows is not None:
            rank = rows.astype(np.int64) if rank is None else rank[rows]
            bias, never = (None if values is None else values[rows] for values in (bias, never))
            seen, eligible, truth = (
                None if table is None else _places_in(table, rows) for table in (seen, eligible, truth)
            )
        _return_freed_memory()
        return kernels.scan(
            self.users,
            items,
            k=whole.k,
            truth=truth,
            deepest=whole.deepest,
            seen=seen,
            eligible=eligible,
            never=never,
            item_bias=bias,
            item_rank=rank,
            threads=whole.threads,
            backend=whole.backend,
            memory_budget=min(kernels.MEMORY_BUDGET, whole.memory // _QUARTER),
        )

    def scan_shards(self) -> kernels.ScanResult:
        """Lists and counts among all items, one shard after the other."""
        whole, n_cases = self.whole, len(self.users)
        judged = np.zeros(0, np.int32) if self.truth is None else np.unique(self.truth[1])
        first = self.scan(whole.items.rows(judged), judged)
        above, tied, ahead = first.above.copy(), first.tied.copy(), first.ahead.copy()
        n_candidates = first.n_candidates.copy()
        best = _ScoredItems.of(first, judged)
        step = max(1, whole.shard_size - len(judged))
        for start in range(0, len(whole.items.matrix), step):
            shard = np.arange(start, min(start + step, len(whole.items.matrix)), dtype=np.int32)
            rows = np.union1d(shard, judged)
            found = self.scan(whole.items.rows(rows), rows)
            above += found.above - first.above
            tied += found.tied - first.tied
            ahead += found.ahead - first.ahead
            n_candidates += found.n_candidates - first.n_candidates
            if whole.k is not None:
                entries = _ScoredItems.of(found, rows)
                best = best.merged(entries.without(judged), whole.k, whole.item_rank)
        lengths = np.bincount(best.case, minlength=n_cases)
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return kernels.ScanResult(
            indptr, best.item, best.score, above, tied, ahead, first.truth_scores, n_candidates
        )


@dataclass(frozen=True, eq=False)
class _ScoredItems:
    """Entries of lists: case, row of the item, score."""

    case: Int
    item: Codes
    score: Float

    @classmethod
    def of(cls, found: kernels.ScanResult, rows: Codes) -> _ScoredItems:
        case = np.repeat(np.arange(len(found.n_candidates)), np.diff(found.list_indptr))
        return cls(case, rows[found.list_items], found.list_scores)

    def without(self, items: Codes) -> _ScoredItems:
        keep = ~np.isin(self.item, items)
        return _ScoredItems(self.case[keep], self.item[keep], self.score[keep])

    def merged(self, other: _ScoredItems, k: int, item_rank: Int | None) -> _ScoredItems:
        """Return the k best entries of each case of both."""
        case = np.concatenate([self.case, other.case])
        item = np.concatenate([self.item, other.item])
        score = np.concatenate([self.score, other.score])
        at = best_entries(case, score, item if item_rank is None else item_rank[item], k)
        return _ScoredItems(case[at], item[at], score[at])


def _return_freed_memory() -> None:
    """Hand freed memory back to the system: glibc would keep what earlier blocks of each thread have used."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def _cut_rows(rows: Csr, first: int, stop: int) -> Csr:
    """Return the rows of some cases."""
    indptr, items = rows
    return indptr[first : stop + 1] - indptr[first], items[indptr[first] : indptr[stop]]


def _places_in(rows: Csr, items: Codes) -> Csr:
    """Return rows of items as places in ascending `items`; the others are left out."""
    indptr, wanted = rows
    if not len(items):
        return np.zeros_like(indptr), wanted[:0]
    at = np.minimum(np.searchsorted(items, wanted), len(items) - 1)
    found = items[at] == wanted
    n_found = np.concatenate([[0], np.cumsum(found)])
    return n_found[indptr], at[found].astype(np.int32)
