"""One scan on a GPU: pack the items, then for each block of users the fast pass and the exact scores.

The pass takes thresholds and cuts, and finds the entries whose exact scores are computed.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import RecsysError
from recsys.kernels.backend import Csr, Execution, Int64s, ScanProblem, ScanResult, close_gaps, kernel_of
from recsys.kernels.cuda.packed_rows import (
    ROUND_UP,
    TILE,
    PackedItems,
    error_width,
    pack_items,
    pack_users,
    scale_down,
    to_device,
)
from recsys.kernels.cuda.torch_pass import PassInputs, PassOutputs, fast_scores

CASES_PER_BLOCK, ENTRIES_PER_BLOCK = 32_768, 1 << 25
# Cases whose buffer overflowed are tried once more with a buffer this many times as long.
RETRY_CAPACITY_FACTOR = 16
# Up to this place the place of a truth item is read from a list; beyond, counting is cheaper than long lists.
MAX_LISTED_PLACES = 128
# The first cut comes from this many tiles; each stage ends at eight times the tile where the last one ended.
FIRST_TILES, GROWTH = 16, 8
# Exact scores below 2^-900 may be too coarse for the bound of the fast ones.
LEAST_EXPONENT = -900
MIN_CAPACITY = 1024
"""The smallest number of entries in the buffer of a row."""
PAIRS_PER_STEP = 1 << 24
"""Pairs of an entry and a truth item that are compared at once."""


def scan(problem: ScanProblem, execution: Execution, *, device: str = "cuda") -> ScanResult:
    """Lists and rank counts of all cases; `device="cpu"` runs the same steps in plain torch."""
    if problem.eligible is not None or not (problem.n_cases and problem.n_items and problem.items.shape[1]):
        return _on_cpu(problem, execution)
    try:
        return _scan_on_device(problem, execution, device)
    except RuntimeError as error:
        if "out of memory" not in str(error):
            raise
        raise RecsysError(
            f"the GPU has too little memory for {problem.n_items:,} x {problem.items.shape[1]} item factors.",
            hint="Use backend='native'; the result is the same bits.",
        ) from error


def _scan_on_device(problem: ScanProblem, execution: Execution, device: str) -> ScanResult:
    torch: Any = import_module("torch")
    kernels: Any = import_module(
        f"recsys.kernels.cuda.{'triton_kernels' if device == 'cuda' else 'torch_pass'}"
    )
    counts = problem.truth is not None and (problem.deepest is None or problem.deepest > MAX_LISTED_PLACES)
    catalogue = pack_items(torch, problem, torch.device(device), split=counts)
    if not catalogue.n:
        return _on_cpu(problem, execution)
    # Entries in the buffer of a row: a stage brings about 8 k, and counting those near each truth item.
    longest = max(problem.k or 0, problem.deepest or 0)
    capacity = max(4 * MIN_CAPACITY if counts else MIN_CAPACITY, 32 * longest)
    tools = torch, kernels
    results, undecided = _scan_blocks(tools, problem, catalogue, capacity, counts=counts)
    if undecided.size:
        part = _restrict_to_cases(problem, undecided)
        found, again = _scan_blocks(tools, part, catalogue, capacity * RETRY_CAPACITY_FACTOR, counts=counts)
        _write_results(problem, results, undecided, close_gaps(found, part.k or 0))
        undecided = undecided[again]
    if undecided.size:
        # Cases with more near-ties than a buffer holds are decided on the CPU.
        _write_results(
            problem, results, undecided, _on_cpu(_restrict_to_cases(problem, undecided), execution)
        )
    return close_gaps(results, problem.k or 0)


def _scan_blocks(
    tools: tuple[Any, Any], problem: ScanProblem, catalogue: PackedItems, capacity: int, *, counts: bool
) -> tuple[ScanResult, Int64s]:
    """Scan all cases block by block, with gaps in the lists; return those of overflowed buffers, too."""
    n_truth = 0 if problem.truth is None else problem.truth[1].size
    n_places = problem.n_cases * (problem.k or 0)
    results = ScanResult(
        list_indptr=np.zeros(problem.n_cases, np.int64),
        list_items=np.zeros(n_places, np.int32),
        list_scores=np.zeros(n_places, np.float64),
        above=np.full(n_truth, -1, np.int64),
        tied=np.zeros(n_truth, np.int64),
        ahead=np.zeros(n_truth, np.int64),
        truth_scores=np.zeros(n_truth, np.float64),
        n_candidates=np.zeros(problem.n_cases, np.int64),
    )
    n_per_block = max(1, min(CASES_PER_BLOCK, ENTRIES_PER_BLOCK // capacity))
    starts = range(0, problem.n_cases, n_per_block)
    undecided: list[Int64s] = [np.empty(0, np.int64)]
    for n_done, start in enumerate(starts, 1):
        cases = range(start, min(start + n_per_block, problem.n_cases))
        block = UserBlock(tools, problem, catalogue, cases, counts=counts)
        undecided.append(block.run(results, capacity))
        if problem.progress is not None:
            problem.progress(n_done, len(starts))
    return results, np.concatenate(undecided)


def _write_results(problem: ScanProblem, results: ScanResult, cases: Int64s, part: ScanResult) -> None:
    """Write the results of some cases into those of all."""
    k = problem.k or 0
    results.n_candidates[cases] = part.n_candidates
    lengths = np.diff(part.list_indptr)
    results.list_indptr[cases] = lengths
    place = np.arange(part.list_items.size) - np.repeat(part.list_indptr[:-1], lengths)
    target = np.repeat(cases * k, lengths) + place
    results.list_items[target], results.list_scores[target] = part.list_items, part.list_scores
    if problem.truth is not None:
        target = _entry_positions(problem.truth, cases)
        for name in ("above", "tied", "ahead", "truth_scores"):
            getattr(results, name)[target] = getattr(part, name)


def _restrict_to_cases(problem: ScanProblem, cases: Int64s) -> ScanProblem:
    """Return the same problem for some of its cases."""
    chosen = cases if problem.user_rows is None else problem.user_rows[cases]
    parts: list[Csr | None] = []
    for rows in (problem.truth, problem.seen):
        if rows is None:
            parts.append(None)
            continue
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.diff(rows[0])[cases])])
        parts.append((indptr, rows[1][_entry_positions(rows, cases)]))
    return replace(problem, user_rows=chosen, truth=parts[0], seen=parts[1], progress=None)


def _entry_positions(rows: Csr, cases: Int64s) -> Int64s:
    """Return the positions of the entries of some cases, case after case."""
    lengths = np.diff(rows[0])[cases]
    first = np.repeat(rows[0][cases] - (np.cumsum(lengths) - lengths), lengths)
    entries: Int64s = first + np.arange(lengths.sum())
    return entries


def _on_cpu(problem: ScanProblem, execution: Execution) -> ScanResult:
    result: ScanResult = kernel_of("auto", "scan")(problem, execution)
    return result


class FoundEntries(NamedTuple):
    """Pairs of a row and an item with their exact scores."""

    row: Any
    item: Any
    score: Any


class UserBlock:
    """The cases from `start` to `stop` against the whole catalogue.

    With `counts` the pass counts for every truth item how many candidates score higher. Otherwise the places
    of truth items are read from lists that are as long as the deepest place that is needed.
    """

    def __init__(
        self,
        tools: tuple[Any, Any],
        problem: ScanProblem,
        catalogue: PackedItems,
        cases: range,
        *,
        counts: bool,
    ) -> None:
        self.torch, self.kernels = tools
        self.problem, self.catalogue, self.counts, self.cases = problem, catalogue, counts, cases
        self.device = catalogue.item_at.device
        self.k = problem.k or 0
        if problem.truth is not None and not counts:
            self.k = min(max(self.k, int(problem.deepest or 0)), problem.n_items)
        self.row_of = self._row_order()
        users = self.torch.empty_like(by_case := self._tensor(problem.users_of(cases.start, cases.stop)))
        users[self.row_of] = by_case
        self.users = users
        has_bias, split = problem.bias is not None, catalogue.rows.low is not None
        self.rows, exponents = pack_users(self.torch, users, has_bias=has_bias, split=split)
        self.exponents = exponents + catalogue.exponent
        self._read_seen()
        self._read_truth()

    def run(self, results: ScanResult, capacity: int) -> Int64s:
        """Write the results of the block; returns the cases that are left undecided."""
        torch = self.torch
        shape = (len(self.cases), min(capacity, self.catalogue.n_tiles * TILE))
        outputs = PassOutputs(
            torch.zeros(self.thresholds.shape, dtype=torch.int32, device=self.device),
            torch.empty(shape, dtype=torch.int32, device=self.device),
            torch.empty(shape, dtype=torch.float32, device=self.device),
            torch.zeros(shape[0], dtype=torch.int32, device=self.device),
        )
        if self.counts:
            cut = self._first_cut() if self.k else torch.full_like(self.rows.norm, torch.inf)
            stop = torch.full_like(outputs.n, self.catalogue.n_tiles)
            self._run_pass(outputs, cut, stop, (0, self.catalogue.n_tiles))
            is_entry = self._filled(outputs)
        else:
            is_entry = self._run_list_stages(outputs)
        undecided = (outputs.n > outputs.capacity) | (self.exponents < LEAST_EXPONENT)
        row, place = (is_entry & ~undecided[:, None]).nonzero(as_tuple=True)
        position = outputs.at[row, place].long()
        entries = self._score_exactly(row, position)
        if self.counts:
            self._add_fast_counts(outputs, row, position, outputs.score[row, place])
            self._count_exactly(entries, 1)
            # Seen items were counted too.
            self._count_exactly(
                self._score_exactly(self.seen // self.catalogue.n, self.seen % self.catalogue.n), -1
            )
        is_unseen = ~self._is_seen(row, position)
        entries = FoundEntries(*(column[is_unseen] for column in entries))
        if self.problem.truth is not None:
            if not self.counts:
                self._count_exactly(entries, 1)
            self._write_counts(results, self.problem.truth)
        if self.problem.k:
            self._write_lists(results, entries, self.problem.k)
        cases = slice(self.cases.start, self.cases.stop)
        self._write(results.n_candidates[cases], self.n_candidates[self.row_of])
        undecided_cases: Int64s = self.cases.start + undecided[self.row_of].nonzero()[:, 0].cpu().numpy()
        return undecided_cases

    def _tensor(self, array: Any) -> Any:
        return to_device(self.torch, array, self.device)

    def _write(self, target: Any, tensor: Any) -> None:
        self.torch.from_numpy(target).copy_(tensor)

    def _range(self, n: int) -> Any:
        return self.torch.arange(n, device=self.device)

    def _row_order(self) -> Any:
        """Return the row of each case: when counting, cases with equally many truth items are neighbours."""
        n = len(self.cases)
        if not self.counts or self.problem.truth is None:
            return self._range(n)
        lengths = np.diff(self.problem.truth[0][self.cases.start : self.cases.stop + 1])
        row_of = np.empty(n, np.int64)
        row_of[np.argsort(lengths, kind="stable")] = np.arange(n)
        return self._tensor(row_of)

    def _entries_of(self, rows: Csr) -> tuple[Any, Any, Any]:
        """Return row and item of every entry of the cases of the block, and the first entry of each row."""
        bounds = rows[0][self.cases.start : self.cases.stop + 1]
        indptr = self._tensor(bounds - bounds[0])
        case = self.torch.repeat_interleave(self._range(len(self.cases)), self.torch.diff(indptr))
        first = self.torch.empty_like(indptr[:-1])
        first[self.row_of] = indptr[:-1]
        return self.row_of[case], self._tensor(rows[1][bounds[0] : bounds[-1]]).long(), first

    def _read_seen(self) -> None:
        torch, n = self.torch, self.catalogue.n
        row = position = torch.empty(0, dtype=torch.int64, device=self.device)
        if self.problem.seen is not None:
            row, item, _ = self._entries_of(self.problem.seen)
            position = self.catalogue.position_of[item]
            row, position = row[position >= 0], position[position >= 0]
        self.seen = torch.unique(row * n + position)
        self.n_candidates = n - torch.bincount(self.seen // n, minlength=len(self.cases))

    def _is_seen(self, row: Any, position: Any) -> Any:
        key = row * self.catalogue.n + position
        if not len(self.seen):
            return self.torch.zeros_like(key, dtype=self.torch.bool)
        at = self.torch.searchsorted(self.seen, key).clamp(max=len(self.seen) - 1)
        return self.seen[at] == key

    def _read_truth(self) -> None:
        """Exact scores of truth items; for counting also as thresholds, one column per row of users."""
        torch, n_rows = self.torch, len(self.cases)
        self.n_truth = torch.zeros(n_rows, dtype=torch.int64, device=self.device)
        self.thresholds = torch.empty((0, n_rows), dtype=torch.float32, device=self.device)
        if self.problem.truth is None:
            return
        row, item, self.first_truth = self._entries_of(self.problem.truth)
        self.truth_row, self.truth_item = row, item
        self.truth_score = self.kernels.exact_pairs(torch, self.users, self.catalogue, row, item)
        self.n_truth = torch.bincount(row, minlength=n_rows)
        position = self.catalogue.position_of[item]
        self.is_candidate = (position >= 0) & ~self._is_seen(row, position.clamp(min=0))
        self.above, self.tied, self.ahead = (torch.zeros_like(item) for _ in range(3))
        if self.counts:
            self.truth_place = self._range(len(row)) - self.first_truth[row]
            self.thresholds = torch.full((int(self.n_truth.max()), n_rows), torch.inf, device=self.device)
            exponents = self.exponents[row].clamp(min=LEAST_EXPONENT)
            self.thresholds[self.truth_place, row] = scale_down(torch, self.truth_score, exponents).float()

    def _filled(self, outputs: PassOutputs) -> Any:
        """Return whether there is an entry at each place of the buffers: rows x places."""
        n = int(outputs.n.max().clamp(max=outputs.capacity))
        return self._range(n) < outputs.n[:, None]

    def _run_pass(self, outputs: PassOutputs, cut: Any, stop: Any, tiles: tuple[int, int]) -> None:
        inputs = PassInputs(self.rows, self.thresholds, self.n_truth.int(), cut, stop.int(), self.k > 0)
        self.kernels.sweep(self.torch, inputs, self.catalogue, outputs, tiles)

    def _first_cut(self) -> Any:
        """Return a score that k candidates among the longest items reach."""
        torch, catalogue = self.torch, self.catalogue
        n = min(max(FIRST_TILES * TILE, 4 * self.k), catalogue.n)
        tile = self._range(n) // TILE
        low = fast_scores(self.rows, catalogue.rows, slice(0, n))
        low -= error_width(self.rows, self.catalogue, tile)
        low /= catalogue.scale[tile]
        row, position = self.seen // catalogue.n, self.seen % catalogue.n
        low[row[position < n], position[position < n]] = -torch.inf
        return self._kth_bound(low)

    def _kth_bound(self, low: Any) -> Any:
        """Return the k-th largest lower bound of each row; -inf if there are fewer."""
        if low.shape[1] < self.k:
            return low.new_full((len(low),), -self.torch.inf)
        return low.topk(self.k, dim=1, sorted=False).values.amin(dim=1)

    def _run_list_stages(self, outputs: PassOutputs) -> Any:
        """Run the pass in stages: cuts rise before most items are read; rows stop where norms get short."""
        n_tiles = self.catalogue.n_tiles
        cut = self._first_cut()
        first, last = 0, min(FIRST_TILES, n_tiles)
        while True:
            # No item from the tile `stop` on can reach the cut: norm products stay strictly below it.
            needed = cut.double() / self.rows.norm.double().clamp(min=1.0) / ROUND_UP
            stop = n_tiles - self.torch.searchsorted(self.catalogue.reach, needed)
            self._run_pass(outputs, cut, stop, (first, last))
            new_cut, reachable = self._reachable(outputs)
            if last == n_tiles:
                return reachable
            cut = self.torch.maximum(cut, new_cut)
            if reachable.shape[1] > outputs.capacity // 4:
                self._compact(outputs, reachable)
            first, last = last, min(last * GROWTH, n_tiles)

    def _reachable(self, outputs: PassOutputs) -> tuple[Any, Any]:
        """Return a lower bound of the k-th best score so far, and the entries that may still reach it."""
        torch, is_entry = self.torch, self._filled(outputs)
        n = is_entry.shape[1]
        at = torch.where(is_entry, outputs.at[:, :n], 0).long()
        tile = at // TILE
        unit = self.catalogue.scale[tile]
        width = error_width(self.rows, self.catalogue, tile)
        is_entry &= ~self._is_seen(self._range(len(at))[:, None], at)
        score = outputs.score[:, :n]
        cut = self._kth_bound(torch.where(is_entry, (score - width) / unit, -torch.inf))
        return cut, is_entry & ((score + width) / unit >= cut[:, None])

    def _compact(self, outputs: PassOutputs, reachable: Any) -> None:
        """Remove the entries that cannot reach the list any more."""
        torch, n = self.torch, reachable.shape[1]
        order = torch.sort(reachable.int(), dim=1, descending=True, stable=True).indices
        # A row whose buffer overflowed has lost entries: its count stays, so that it is left undecided.
        outputs.n = torch.where(outputs.n > outputs.capacity, outputs.n, reachable.sum(dim=1).int())
        outputs.at[:, :n] = torch.gather(outputs.at[:, :n], 1, order)
        outputs.score[:, :n] = torch.gather(outputs.score[:, :n], 1, order)

    def _score_exactly(self, row: Any, position: Any) -> FoundEntries:
        item = self.catalogue.item_at[position]
        score = self.kernels.exact_pairs(self.torch, self.users, self.catalogue, row, item)
        return FoundEntries(row, item, score)

    def _entry_runs(self, row: Any) -> list[slice]:
        """Runs of entries with a bounded number of pairs with the truth items of their rows."""
        total = self.torch.cumsum(self.n_truth[row], 0)
        if not len(total) or not int(total[-1]):
            return []
        ends = self.torch.arange(
            PAIRS_PER_STEP, int(total[-1]) + PAIRS_PER_STEP, PAIRS_PER_STEP, device=self.device
        )
        stops = self.torch.searchsorted(total, ends, right=True).tolist()
        stops[-1] = len(total)
        return [slice(a, b) for a, b in itertools.pairwise([0, *stops]) if a < b]

    def _truth_pairs(self, row: Any) -> tuple[Any, Any]:
        """Return the entry and the truth item of all pairs of an entry and a truth item of its row."""
        n = self.n_truth[row]
        entry = self.torch.repeat_interleave(self._range(len(row)), n)
        start = self.torch.cumsum(n, 0) - n
        return entry, self.first_truth[row[entry]] + self._range(len(entry)) - start[entry]

    def _count_exactly(self, entries: FoundEntries, sign: int) -> None:
        """Count the entries above, level with and ahead of each truth item of their row, times `sign`."""
        rank = self.catalogue.tie_rank
        for part in self._entry_runs(entries.row):
            row, item, score = (column[part] for column in entries)
            entry, truth = self._truth_pairs(row)
            value, truth_score = score[entry], self.truth_score[truth]
            is_level = value == truth_score
            is_ahead = is_level & (rank[item[entry]] < rank[self.truth_item[truth]])
            for counts, which in (
                (self.above, value > truth_score),
                (self.tied, is_level),
                (self.ahead, is_ahead),
            ):
                counts.index_add_(0, truth[which], self.torch.full_like(truth[which], sign))

    def _add_fast_counts(self, outputs: PassOutputs, row: Any, position: Any, fast: Any) -> None:
        """Add the counts of the fast pass, without the entries that exact scores decide."""
        self.above += outputs.above[self.truth_place, self.truth_row]
        for part in self._entry_runs(row):
            entry, truth = self._truth_pairs(row[part])
            unit = self.catalogue.scale[position[part][entry] // TILE]
            threshold = self.thresholds[self.truth_place[truth], self.truth_row[truth]] * unit
            which = fast[part][entry] > threshold
            self.above.index_add_(0, truth[which], self.torch.full_like(truth[which], -1))

    def _write_counts(self, results: ScanResult, truth: Csr) -> None:
        at = slice(int(truth[0][self.cases.start]), int(truth[0][self.cases.stop]))
        self._write(results.truth_scores[at], self.truth_score)
        for target, value, default in (
            (results.above, self.above, -1),
            (results.tied, self.tied, 0),
            (results.ahead, self.ahead, 0),
        ):
            self._write(target[at], self.torch.where(self.is_candidate, value, default))

    def _write_lists(self, results: ScanResult, entries: FoundEntries, k: int) -> None:
        """Write the k best of each row: higher scores first, equal ones by their tie rank."""
        torch, n_rows = self.torch, len(self.cases)
        order = torch.argsort(self.catalogue.tie_rank[entries.item])
        order = order[torch.sort(entries.score[order], descending=True, stable=True).indices]
        order = order[torch.sort(entries.row[order], stable=True).indices]
        row, item, score = (column[order] for column in entries)
        n = torch.bincount(row, minlength=n_rows)
        place = self._range(len(row)) - (torch.cumsum(n, 0) - n)[row]
        in_list = place < k
        items = torch.zeros((n_rows, k), dtype=torch.int32, device=self.device)
        scores = torch.zeros((n_rows, k), dtype=torch.float64, device=self.device)
        items[row[in_list], place[in_list]] = item[in_list].int()
        scores[row[in_list], place[in_list]] = score[in_list]
        at = slice(self.cases.start * k, self.cases.stop * k)
        self._write(results.list_items[at], items[self.row_of].ravel())
        self._write(results.list_scores[at], scores[self.row_of].ravel())
        cases = slice(self.cases.start, self.cases.stop)
        self._write(results.list_indptr[cases], n.clamp(max=k)[self.row_of])
