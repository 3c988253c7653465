"""Scores computed by a model: a users x items matrix, or a function that returns blocks of rows.

Scores are compared unchanged. -inf marks an item that is not a candidate; +inf and NaN are errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import InputError
from recsys.inputs.containers import as_array
from recsys.kernels import ScanResult, place_beyond, rank_scores
from recsys.ranks.ranked_truth import CountedTruth
from recsys.ranks.rankings import RankingOptions
from recsys.ranks.sources.factors import as_matrix
from recsys.ranks.sources.source import Csr, IdRows, UsersByItems, check_memory
from recsys.records.arrays import Array, Bool, Ids, Int, Interactions, Lists, cached_property, positions

_BLOCK_BYTES = 64 << 20
_SCORE_BYTES = 16
_OTHER_ROWS = 2  # the order of the items takes as much memory as the scores of so many users


class Scores(UsersByItems):
    """A matrix of scores, or `block(user_rows) -> matrix` with `n_users` and `n_items`.

    >>> import recsys
    >>> model = Scores([[0.9, 0.1, 0.5], [0.2, 0.3, 0.8]])
    >>> model
    Scores(2 users x 3 items)
    >>> recsys.evaluate(model, {0: [2], 1: [2]}, ["mrr"])["mrr"]
    0.75
    """

    _training_items = "with a score"

    def __init__(
        self,
        scores: Any,
        *,
        n_users: int | None = None,
        n_items: int | None = None,
        user_ids: Iterable[Any] | None = None,
        item_ids: Iterable[Any] | None = None,
    ) -> None:
        if callable(scores):
            if n_users is None or n_items is None:
                raise InputError("a function of scores needs its shape.", hint="Pass n_users= and n_items=.")
            self._score_rows: Callable[[Int], Any] = scores
            self.matrix: Array | None = None
            shape = (n_users, n_items)
        else:
            self.matrix = as_matrix(scores, "scores")
            self._score_rows = partial(_matrix_rows, self.matrix)
            shape = (self.matrix.shape[0], self.matrix.shape[1])
        self.user_rows = IdRows(shape[0], user_ids, what="user")
        self.item_rows = IdRows(shape[1], item_ids, what="item")

    @cached_property
    def rules_out(self) -> bool:
        """Whether some score is -inf, so that the matrix itself excludes candidates."""
        return self.matrix is not None and bool(self.matrix.min(initial=0) == -np.inf)

    def judge(self, truth: Interactions, options: RankingOptions) -> CountedTruth:
        """Count the place of each judged item among all candidates."""
        self.check_ids(truth, "truth")
        rows = self.user_rows.row_of(truth.cases.values)
        item = self.item_rows.row_of(truth.items.values)[truth.codes]
        above = np.full(len(item), -1, dtype=np.int64)
        tied, ahead = np.zeros(len(item), dtype=np.int64), np.zeros(len(item), dtype=np.int64)
        n_candidates, lengths = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
        lists, values = [np.zeros(0, dtype=np.int32)], [np.zeros(0)]
        for block in self._score_blocks(rows, truth.cases, options):
            at = positions(truth.indptr[block.cases], truth.sizes[block.cases])
            case = np.repeat(np.arange(len(block.cases)), truth.sizes[block.cases])
            known = item[at] >= 0
            at, case = at[known], case[known]
            result = self._rank_block(block, options, options.k, (case, item[at]))
            n_candidates[block.cases] = result.n_candidates
            above[at], tied[at], ahead[at] = result.above, result.tied, result.ahead
            lengths[block.cases] = np.diff(result.list_indptr)
            lists.append(result.list_items)
            if options.with_scores:
                values.append(result.list_scores)
        if options.deepest is not None:
            place_beyond(options.deepest, truth.indptr, above, tied, ahead)
        scores = np.concatenate(values) if options.with_scores else None
        shown = None if options.k is None else (lengths, np.concatenate(lists), scores)
        return self._count_truth(truth, (above, tied, ahead), n_candidates, shown)

    def top(self, users: Iterable[Any] | None, k: int, options: RankingOptions) -> Lists:
        """Return the k best candidates of these users, or of all; equal scores are ordered by id."""
        cases, rows = self.cases_of(users)
        no_items = np.zeros(0, dtype=np.int64)
        results = [
            self._rank_block(block, options, k, (no_items, no_items))
            for block in self._score_blocks(rows, cases, options)
        ]
        lengths = np.concatenate([no_items, *(np.diff(part.list_indptr) for part in results)])
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        codes = self._item_codes(np.concatenate([no_items, *(part.list_items for part in results)]))
        values = np.concatenate([np.zeros(0), *(part.list_scores for part in results)])
        return Lists(cases, self.item_rows.ids, indptr, codes, values)

    def memory_needed(self, truth: Interactions, options: RankingOptions) -> int:
        """Return the least `memory` in bytes with which the truth can be ranked: one user at a time."""
        del truth, options
        return (1 + _OTHER_ROWS) * _SCORE_BYTES * max(1, self.item_rows.size)

    def _rank_block(
        self, block: _ScoreBlock, options: RankingOptions, k: int | None, judged: tuple[Int, Int]
    ) -> ScanResult:
        """Lists of a block and places of its judged items, (row, item) in ascending order of row."""
        row, item = judged
        indptr = np.searchsorted(row, np.arange(len(block.cases) + 1))
        return rank_scores(
            block.scores,
            block.candidate,
            k=k,
            truth=(indptr, item),
            item_rank=self.item_rows.rank,
            threads=options.threads,
            backend=options.backend,
        )

    def _score_blocks(self, rows: Int, cases: Ids, options: RankingOptions) -> Iterator[_ScoreBlock]:
        """Scores and candidates of the known users, in blocks within a memory budget."""
        known = np.flatnonzero(rows >= 0)
        seen, eligible, excluded = self.candidate_rows(options, cases)
        row_bytes = _SCORE_BYTES * max(1, self.item_rows.size)
        if options.memory is None:
            step = max(1, _BLOCK_BYTES // row_bytes)
        else:
            step = options.memory // row_bytes - _OTHER_ROWS
            check_memory(options.memory, (1 + _OTHER_ROWS) * row_bytes, "these scores")
        n_blocks = -(-len(known) // step)
        for number in range(n_blocks):
            block_cases = known[number * step : (number + 1) * step]
            block_scores = self._scores_of(cases.values[block_cases], rows[block_cases])
            scores = self._check_scores(block_scores, cases, block_cases)
            candidate = scores != -np.inf
            if eligible is not None:
                candidate &= _item_mask(eligible, block_cases, scores.shape[1])
            if seen is not None:
                candidate &= ~_item_mask(seen, block_cases, scores.shape[1])
            if excluded is not None:
                candidate &= ~excluded
            yield _ScoreBlock(block_cases, scores, candidate)
            if options.progress is not None:
                options.progress(number + 1, n_blocks)

    def _scores_of(self, users: Array, rows: Int) -> Any:
        """Return the scores of these users, who have these rows."""
        del users
        return self._score_rows(rows)

    def _check_scores(self, block: Any, cases: Ids, block_cases: Int) -> Array:
        scores = as_array(block)
        if scores.shape != (len(block_cases), self.item_rows.size):
            raise InputError(
                f"the scores of {len(block_cases)} users came with shape {scores.shape}, "
                f"expected ({len(block_cases)}, {self.item_rows.size}).",
                table="scores",
            )
        if scores.dtype.kind not in "fiub":
            raise InputError(f"the scores are {scores.dtype}; expected numbers.", table="scores")
        highest = scores.max(initial=0)
        if np.isnan(highest) or highest == np.inf:
            not_allowed = np.isnan(scores) | (scores == np.inf)
            row, column = np.argwhere(not_allowed)[0]
            user = cases.name(block_cases[row])
            item = self.item_rows.ids.name(self.item_rows.rank[int(column)])
            raise InputError(
                f"the score of user {user!r} and item {item!r} is {scores[row, column]}.",
                table="scores",
                column="score",
                hint="Scores are finite; -inf marks an item that is not a candidate.",
            )
        return scores


class _ScoreBlock(NamedTuple):
    """Scores of some cases, and which items are candidates for them."""

    cases: Int
    scores: Array
    candidate: Bool


def _matrix_rows(matrix: Array, rows: Int) -> Array:
    """Return rows of a matrix, without a copy if they are adjacent."""
    if len(rows) and (rows == np.arange(rows[0], rows[0] + len(rows))).all():
        return matrix[rows[0] : rows[0] + len(rows)]
    return matrix[rows]


def _item_mask(rows: Csr, block_cases: Int, n_items: int) -> Bool:
    indptr, items = rows
    sizes = np.diff(indptr)[block_cases]
    at = positions(indptr[block_cases], sizes)
    mask = np.zeros((len(block_cases), n_items), dtype=bool)
    mask[np.repeat(np.arange(len(block_cases)), sizes), items[at]] = True
    return mask
