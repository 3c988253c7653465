"""A block of users: thresholds and cuts for the fast pass, then exact scores for what it found."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from recsys.kernels.cuda.packed_rows import TILE, UP, PackedItems, pack_users, scaled, tensor_of, width_of
from recsys.kernels.cuda.torch_pass import PassInputs, PassOutputs, fast_scores
from recsys.kernels.kernel_results import Csr, Int64s, ScanResult
from recsys.kernels.scan_problem import ScanProblem

# Tiles the first cut is taken from; each later stage reads eight times as many as were read before.
SAMPLE, GROWTH = 16, 8
# Exact scores below 2^-900 may be too coarse for the bound of the fast ones.
LEAST_EXPONENT = -900
ENTRIES = 1024
"""Entries a row's buffer holds at least."""
PAIRS = 1 << 24
"""Entries times truth items that are compared at once."""


def capacity_for(k: int, *, counts: bool) -> int:
    """Entries a row's buffer holds: a stage brings some 8 k, and counting what lies near each truth item."""
    return max(4 * ENTRIES if counts else ENTRIES, 32 * k)


class FoundEntries(NamedTuple):
    """Pairs of a row and an item with their exact scores."""

    row: Any
    item: Any
    score: Any


class UserBlock:
    """The cases from `start` to `stop` against the whole catalogue.

    With `counts` the pass counts for every truth item how many score higher. Without, lists as long as the
    deepest place that counts tell the places of truth items too.
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
        users = self.torch.empty_like(given := self._tensor(problem.users_of(cases.start, cases.stop)))
        users[self.row_of] = given
        self.users = users
        has_bias, split = problem.bias is not None, catalogue.rows.low is not None
        self.rows, exponents = pack_users(self.torch, users, has_bias=has_bias, split=split)
        self.exponents = exponents + catalogue.exponent
        self._read_seen()
        self._read_truth()

    def run(self, answers: ScanResult, capacity: int) -> Int64s:
        """Fill in the answers of the block; returns the cases that have to be decided elsewhere."""
        torch = self.torch
        found = self._found(min(capacity, self.catalogue.n_tiles * TILE))
        if self.counts:
            cut = self._first_cut() if self.k else torch.full_like(self.rows.norm, torch.inf)
            stop = torch.full_like(found.n, self.catalogue.n_tiles)
            self._sweep(found, cut, stop, (0, self.catalogue.n_tiles))
            held = self._held(found)
        else:
            held = self._sweep_lists(found)
        lost = (found.n > found.capacity) | (self.exponents < LEAST_EXPONENT)
        row, place = (held & ~lost[:, None]).nonzero(as_tuple=True)
        position = found.at[row, place].long()
        entries = self._scored(row, position)
        if self.counts:
            self._undo(found, row, position, found.score[row, place])
            self._judge(entries, 1)
            # Seen items were counted like all others.
            self._judge(self._scored(self.seen // self.catalogue.n, self.seen % self.catalogue.n), -1)
        open_ = ~self._is_seen(row, position)
        entries = FoundEntries(*(one[open_] for one in entries))
        if self.problem.truth is not None:
            if not self.counts:
                self._judge(entries, 1)
            self._write_counts(answers, self.problem.truth)
        if self.problem.k:
            self._write_lists(answers, entries, self.problem.k)
        cases = slice(self.cases.start, self.cases.stop)
        self._write(answers.n_candidates[cases], self.n_candidates[self.row_of])
        given_up: Int64s = self.cases.start + lost[self.row_of].nonzero()[:, 0].cpu().numpy()
        return given_up

    def _tensor(self, array: Any) -> Any:
        return tensor_of(self.torch, array, self.device)

    def _write(self, to: Any, tensor: Any) -> None:
        self.torch.from_numpy(to).copy_(tensor)

    def _range(self, n: int) -> Any:
        return self.torch.arange(n, device=self.device)

    def _row_order(self) -> Any:
        """The row of each case: those with equally many truth items share a tile of users when counting."""
        n = len(self.cases)
        if not self.counts or self.problem.truth is None:
            return self._range(n)
        lengths = np.diff(self.problem.truth[0][self.cases.start : self.cases.stop + 1])
        row_of = np.empty(n, np.int64)
        row_of[np.argsort(lengths, kind="stable")] = np.arange(n)
        return self._tensor(row_of)

    def _entries(self, rows: Csr) -> tuple[Any, Any, Any]:
        """Row and item of every entry of the block's cases, and the entry each row starts at."""
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
            row, item, _ = self._entries(self.problem.seen)
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
        """Exact scores of truth items; counting wants them as thresholds, one column a row of users."""
        torch, n_rows = self.torch, len(self.cases)
        self.n_truth = torch.zeros(n_rows, dtype=torch.int64, device=self.device)
        self.thresholds = torch.empty((0, n_rows), dtype=torch.float32, device=self.device)
        if self.problem.truth is None:
            return
        row, item, self.first_truth = self._entries(self.problem.truth)
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
            self.thresholds[self.truth_place, row] = scaled(torch, self.truth_score, exponents).float()

    def _found(self, capacity: int) -> PassOutputs:
        torch, n_rows = self.torch, len(self.cases)
        shape = (n_rows, capacity)
        return PassOutputs(
            torch.zeros(self.thresholds.shape, dtype=torch.int32, device=self.device),
            torch.empty(shape, dtype=torch.int32, device=self.device),
            torch.empty(shape, dtype=torch.float32, device=self.device),
            torch.zeros(n_rows, dtype=torch.int32, device=self.device),
        )

    def _held(self, found: PassOutputs) -> Any:
        n = int(found.n.max().clamp(max=found.capacity))
        return self._range(n) < found.n[:, None]

    def _sweep(self, found: PassOutputs, cut: Any, stop: Any, tiles: tuple[int, int]) -> None:
        asked = PassInputs(self.rows, self.thresholds, self.n_truth.int(), cut, stop.int(), self.k > 0)
        self.kernels.sweep(self.torch, asked, self.catalogue, found, tiles)

    def _first_cut(self) -> Any:
        """What k candidates among the longest items reach at least."""
        torch, catalogue = self.torch, self.catalogue
        n = min(max(SAMPLE * TILE, 4 * self.k), catalogue.n)
        tile = self._range(n) // TILE
        low = fast_scores(self.rows, catalogue.rows, slice(0, n))
        low -= width_of(self.rows, self.catalogue, tile)
        low /= catalogue.scale[tile]
        row, position = self.seen // catalogue.n, self.seen % catalogue.n
        low[row[position < n], position[position < n]] = -torch.inf
        return self._kth(low)

    def _kth(self, low: Any) -> Any:
        """The k-th largest bound of each row; -inf where there are fewer."""
        if low.shape[1] < self.k:
            return low.new_full((len(low),), -self.torch.inf)
        return low.topk(self.k, dim=1, sorted=False).values.amin(dim=1)

    def _sweep_lists(self, found: PassOutputs) -> Any:
        """Stage by stage: cuts rise before most items are read, and rows stop where norms get too short."""
        n_tiles = self.catalogue.n_tiles
        cut = self._first_cut()
        first, last = 0, min(SAMPLE, n_tiles)
        while True:
            self._sweep(found, cut, self._stops(cut), (first, last))
            better, kept = self._kept(found)
            if last == n_tiles:
                return kept
            cut = self.torch.maximum(cut, better)
            if kept.shape[1] > found.capacity // 4:
                self._compact(found, kept)
            first, last = last, min(last * GROWTH, n_tiles)

    def _stops(self, cut: Any) -> Any:
        """The tile from which on no item can reach the cut: lengths times lengths stay strictly below it."""
        wanted = cut.double() / self.rows.norm.double().clamp(min=1.0) / UP
        return self.catalogue.n_tiles - self.torch.searchsorted(self.catalogue.reach, wanted)

    def _kept(self, found: PassOutputs) -> tuple[Any, Any]:
        """The k-th best candidate so far, and which entries may still reach it."""
        torch, held = self.torch, self._held(found)
        n = held.shape[1]
        at = torch.where(held, found.at[:, :n], 0).long()
        tile = at // TILE
        unit = self.catalogue.scale[tile]
        width = width_of(self.rows, self.catalogue, tile)
        held &= ~self._is_seen(self._range(len(at))[:, None], at)
        score = found.score[:, :n]
        cut = self._kth(torch.where(held, (score - width) / unit, -torch.inf))
        return cut, held & ((score + width) / unit >= cut[:, None])

    def _compact(self, found: PassOutputs, kept: Any) -> None:
        """Close the gaps of what cannot reach the list any more."""
        torch, n = self.torch, kept.shape[1]
        order = torch.sort(kept.int(), dim=1, descending=True, stable=True).indices
        # A row whose buffer overflowed has lost entries: its count stays, so that it is given up.
        found.n = torch.where(found.n > found.capacity, found.n, kept.sum(dim=1).int())
        found.at[:, :n] = torch.gather(found.at[:, :n], 1, order)
        found.score[:, :n] = torch.gather(found.score[:, :n], 1, order)

    def _scored(self, row: Any, position: Any) -> FoundEntries:
        item = self.catalogue.item_at[position]
        score = self.kernels.exact_pairs(self.torch, self.users, self.catalogue, row, item)
        return FoundEntries(row, item, score)

    def _parts(self, row: Any) -> list[slice]:
        """Runs of entries that make a bounded number of pairs with the truth items of their rows."""
        total = self.torch.cumsum(self.n_truth[row], 0)
        if not len(total) or not int(total[-1]):
            return []
        ends = self.torch.arange(PAIRS, int(total[-1]) + PAIRS, PAIRS, device=self.device)
        stops = self.torch.searchsorted(total, ends, right=True).tolist()
        stops[-1] = len(total)
        return [slice(a, b) for a, b in itertools.pairwise([0, *stops]) if a < b]

    def _pairs(self, row: Any) -> tuple[Any, Any]:
        """Every entry with every truth item of its row: which entry, which truth item."""
        n = self.n_truth[row]
        entry = self.torch.repeat_interleave(self._range(len(row)), n)
        start = self.torch.cumsum(n, 0) - n
        return entry, self.first_truth[row[entry]] + self._range(len(entry)) - start[entry]

    def _judge(self, entries: FoundEntries, sign: int) -> None:
        """Count entries with exact scores for every truth item of their row."""
        rank = self.catalogue.tie_rank
        for part in self._parts(entries.row):
            row, item, score = (one[part] for one in entries)
            entry, truth = self._pairs(row)
            value, own = score[entry], self.truth_score[truth]
            level = value == own
            first = level & (rank[item[entry]] < rank[self.truth_item[truth]])
            for counts, which in ((self.above, value > own), (self.tied, level), (self.ahead, first)):
                counts.index_add_(0, truth[which], self.torch.full_like(truth[which], sign))

    def _undo(self, found: PassOutputs, row: Any, position: Any, fast: Any) -> None:
        """What the fast pass counted, less the entries that exact scores decide."""
        self.above += found.above[self.truth_place, self.truth_row]
        for part in self._parts(row):
            entry, truth = self._pairs(row[part])
            unit = self.catalogue.scale[position[part][entry] // TILE]
            threshold = self.thresholds[self.truth_place[truth], self.truth_row[truth]] * unit
            which = fast[part][entry] > threshold
            self.above.index_add_(0, truth[which], self.torch.full_like(truth[which], -1))

    def _write_counts(self, answers: ScanResult, truth: Csr) -> None:
        at = slice(int(truth[0][self.cases.start]), int(truth[0][self.cases.stop]))
        self._write(answers.truth_scores[at], self.truth_score)
        for to, value, none in (
            (answers.above, self.above, -1),
            (answers.tied, self.tied, 0),
            (answers.ahead, self.ahead, 0),
        ):
            self._write(to[at], self.torch.where(self.is_candidate, value, none))

    def _write_lists(self, answers: ScanResult, entries: FoundEntries, k: int) -> None:
        """The k best of each row: higher scores first, equal ones by their tie rank."""
        torch, n_rows = self.torch, len(self.cases)
        order = torch.argsort(self.catalogue.tie_rank[entries.item])
        order = order[torch.sort(entries.score[order], descending=True, stable=True).indices]
        order = order[torch.sort(entries.row[order], stable=True).indices]
        row, item, score = (one[order] for one in entries)
        n = torch.bincount(row, minlength=n_rows)
        place = self._range(len(row)) - (torch.cumsum(n, 0) - n)[row]
        kept = place < k
        items = torch.zeros((n_rows, k), dtype=torch.int32, device=self.device)
        scores = torch.zeros((n_rows, k), dtype=torch.float64, device=self.device)
        items[row[kept], place[kept]] = item[kept].int()
        scores[row[kept], place[kept]] = score[kept]
        at = slice(self.cases.start * k, self.cases.stop * k)
        self._write(answers.list_items[at], items[self.row_of].ravel())
        self._write(answers.list_scores[at], scores[self.row_of].ravel())
        cases = slice(self.cases.start, self.cases.stop)
        self._write(answers.list_indptr[cases], n.clamp(max=k)[self.row_of])
