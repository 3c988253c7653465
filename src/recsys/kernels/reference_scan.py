"""scan in NumPy: a float64 matrix product per block, with a proven error bound like every fast pass.

BLAS sums in any order, so its scores are only near the exact ones; a bound on the error shows which
comparisons they decide, and the few pairs left are scored again in the fixed order.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from recsys.kernels.kernel_results import Bools, Factors, Float64s, Int64s, ScanResult
from recsys.kernels.scan_problem import ScanProblem

# Arrays of users x items alive at once in a block, in float64 each.
ARRAYS_PER_BLOCK = 8
PAIRS_PER_STEP = 1 << 13
ROUNDING_UNIT = 2.0**-53


def scan(problem: ScanProblem, memory_budget: int) -> ScanResult:
    """Lists and rank counts of all cases, block by block."""
    n_truth = 0 if problem.truth is None else problem.truth[1].size
    above, tied, ahead = (np.zeros(n_truth, np.int64) for _ in range(3))
    truth_scores = np.zeros(n_truth, np.float64)
    n_candidates = np.zeros(problem.n_cases, np.int64)
    lengths = np.zeros(problem.n_cases, np.int64)
    listed: list[tuple[NDArray[np.int32], Float64s]] = []
    blocks = list(_blocks(problem, memory_budget))
    norms = _norms_rounded_up(problem.items, problem.bias)
    for n_done, (start, stop) in enumerate(blocks, 1):
        block = _ReferenceBlock(problem, start, stop, norms)
        n_candidates[start:stop] = block.candidate.sum(axis=1)
        if problem.k is not None:
            lengths[start:stop], items, scores = block.best(problem.k)
            listed.append((items, scores))
        if problem.truth is not None:
            at = slice(int(problem.truth[0][start]), int(problem.truth[0][stop]))
            above[at], tied[at], ahead[at], truth_scores[at] = block.counts(memory_budget)
        if problem.progress is not None:
            problem.progress(n_done, len(blocks))
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    items = np.concatenate([np.empty(0, np.int32), *(part for part, _ in listed)])
    scores = np.concatenate([np.empty(0, np.float64), *(part for _, part in listed)])
    return ScanResult(indptr, items, scores, above, tied, ahead, truth_scores, n_candidates)


def exact_scores(
    users: Factors, items: Factors, bias: Float64s | None, rows: Int64s, columns: Int64s
) -> Float64s:
    """Scores of pairs by the definition: float64 products added one by one, then the bias."""
    scores = np.zeros(rows.size, np.float64)
    for start in range(0, rows.size, PAIRS_PER_STEP):
        part = slice(start, start + PAIRS_PER_STEP)
        x = users[rows[part]].astype(np.float64)
        y = items[columns[part]].astype(np.float64)
        for j in range(x.shape[1]):
            scores[part] += x[:, j] * y[:, j]
    if bias is not None:
        scores += bias[columns]
    return scores


def _blocks(problem: ScanProblem, memory_budget: int) -> Iterator[tuple[int, int]]:
    per_case = max(1, problem.n_items) * 8 * ARRAYS_PER_BLOCK
    step = max(1, memory_budget // per_case)
    for start in range(0, problem.n_cases, step):
        yield start, min(start + step, problem.n_cases)


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
        self.problem = problem
        self.start, self.stop = start, stop
        self.users = problem.users_of(start, stop)
        self.candidate = self._candidates()
        n_terms = problem.items.shape[1] + (problem.bias is not None)
        bias_factor = None if problem.bias is None else np.ones(stop - start)
        # BLAS and the exact score are each within gamma of the real one; the last term is for underflow.
        gamma = n_terms * ROUNDING_UNIT / (1 - n_terms * ROUNDING_UNIT)
        with np.errstate(over="ignore"):  # an infinite bound leaves the decision to exact scores
            norm_products = np.outer(_norms_rounded_up(self.users, bias_factor), norms)
        error_bound = 2 * gamma * (1 + 2.0**-20) * norm_products + (n_terms + 1) * 2.0**-1070
        scores = self._blas_scores()
        self.low = np.where(self.candidate, scores - error_bound, -np.inf)
        self.high = np.where(self.candidate, scores + error_bound, -np.inf)

    def _candidates(self) -> Bools:
        problem, shape = self.problem, (self.stop - self.start, self.problem.n_items)
        candidate = np.full(shape, problem.eligible is None)
        for rows, value in ((problem.eligible, True), (problem.seen, False)):
            if rows is not None:
                indptr = rows[0][self.start : self.stop + 1]
                cases = np.repeat(np.arange(shape[0]), np.diff(indptr))
                candidate[cases, rows[1][indptr[0] : indptr[-1]]] = value
        if problem.never is not None:
            candidate[:, problem.never] = False
        return candidate

    def _blas_scores(self) -> Float64s:
        problem = self.problem
        users = self.users.astype(np.float64)
        scores = np.empty((users.shape[0], problem.n_items), np.float64)
        for start in range(0, problem.n_items, PAIRS_PER_STEP):
            part = slice(start, start + PAIRS_PER_STEP)
            scores[:, part] = users @ problem.items[part].astype(np.float64).T
        if problem.bias is not None:
            scores += problem.bias
        return scores

    def _exact_scores(self, rows: Int64s, columns: Int64s) -> Float64s:
        return exact_scores(self.users, self.problem.items, self.problem.bias, rows, columns)

    def best(self, k: int) -> tuple[Int64s, NDArray[np.int32], Float64s]:
        """The k best of each case: lengths, items, exact scores."""
        # At least k candidates reach `cut`, so an item that cannot reach it is not among the best.
        n_items = self.low.shape[1]
        cut = (
            np.partition(self.low, n_items - k, axis=1)[:, n_items - k]
            if n_items
            else np.zeros(self.low.shape[0])
        )
        rows, columns = np.nonzero(self.candidate & (self.high >= cut[:, None]))
        scores = self._exact_scores(rows, columns)
        order = np.lexsort((columns, self.problem.tie_key[columns], -scores, rows))
        rows, columns, scores = rows[order], columns[order], scores[order]
        n_found = np.bincount(rows, minlength=self.low.shape[0])
        place = np.arange(rows.size) - np.repeat(np.cumsum(n_found) - n_found, n_found)
        in_list = place < k
        return np.minimum(n_found, k), columns[in_list].astype(np.int32), scores[in_list]

    def counts(self, memory_budget: int) -> tuple[Int64s, Int64s, Int64s, Float64s]:
        """Per truth item: candidates above it, level with it, level but before it, and its exact score."""
        truth = self.problem.truth
        if truth is None:
            raise ValueError("no truth to count for")
        indptr, items = truth
        starts = indptr[self.start : self.stop + 1]
        rows = np.repeat(np.arange(self.stop - self.start), np.diff(starts))
        columns = items[starts[0] : starts[-1]].astype(np.int64)
        scores = self._exact_scores(rows, columns)
        above, tied, ahead = (np.zeros(rows.size, np.int64) for _ in range(3))
        step = max(1, memory_budget // (max(1, self.problem.n_items) * 8 * ARRAYS_PER_BLOCK))
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
        """Per truth item: candidates above it, level with it, and level but before it."""
        surely_above = self.low[rows] > scores[:, None]
        which, columns = np.nonzero(
            self.candidate[rows] & ~surely_above & (self.high[rows] >= scores[:, None])
        )
        exact = self._exact_scores(rows[which], columns)
        above = surely_above.sum(axis=1) + np.bincount(which[exact > scores[which]], minlength=rows.size)
        level = exact == scores[which]
        which, columns = which[level], columns[level]
        tied = np.bincount(which, minlength=rows.size)
        key, truth_key = self.problem.tie_key[columns], self.problem.tie_key[truth_items][which]
        is_ahead = (key < truth_key) | ((key == truth_key) & (columns < truth_items[which]))
        return above, tied, np.bincount(which[is_ahead], minlength=rows.size)
