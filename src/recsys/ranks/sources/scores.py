"""Scores a model computed itself: a users x items matrix, or a function that gives blocks of it.

They are compared as given. -inf marks an item that is no candidate; +inf and NaN are errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import InputError
from recsys.kernels import ScanResult, place_beyond, rank_scores
from recsys.ranks.counting import CountedTruth, over_all_items
from recsys.ranks.sources.factors import matrix_of
from recsys.ranks.sources.foreign_arrays import as_array
from recsys.ranks.sources.source import Csr, IdRows, RankingOptions, UsersByItems, never_mask, restricted
from recsys.types import Array, Bool, Codes, Ids, Int, Interactions, Lists, Shown, positions

_BLOCK_BYTES = 64 << 20


class Scores(UsersByItems):
    """A matrix of scores, or `block(user_rows) -> matrix` with `n_users` and `n_items`.

    >>> import recsys
    >>> model = Scores([[0.9, 0.1, 0.5], [0.2, 0.3, 0.8]])
    >>> model
    Scores(2 users x 3 items)
    >>> recsys.evaluate(model, {0: [2], 1: [2]}, ["mrr"])["mrr"]
    0.75
    """

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
            self._block: Callable[[Int], Any] = scores
            shape = (n_users, n_items)
        else:
            matrix = matrix_of(scores, "scores")
            self._block = partial(_rows_of, matrix)
            shape = (matrix.shape[0], matrix.shape[1])
        self.user_rows = IdRows(shape[0], user_ids, what="user")
        self.item_rows = IdRows(shape[1], item_ids, what="item")

    def judge(self, truth: Interactions, asked: RankingOptions) -> CountedTruth:
        """Count the place of each judged item among all candidates."""
        rows = self.user_rows.row_of(truth.cases.values, table="truth")
        item = self.item_rows.row_of(truth.items.values, table="truth")[truth.codes]
        above = np.full(len(item), -1, dtype=np.int64)
        tied, ahead = np.zeros(len(item), dtype=np.int64), np.zeros(len(item), dtype=np.int64)
        n_candidates, lengths = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
        lists = [np.zeros(0, dtype=np.int32)]
        for block in self._blocks(rows, truth.cases, asked):
            at = positions(truth.indptr[block.cases], truth.sizes[block.cases])
            case = np.repeat(np.arange(len(block.cases)), truth.sizes[block.cases])
            known = item[at] >= 0
            at, case = at[known], case[known]
            found = self._ranked(block, asked, asked.k, (case, item[at]))
            n_candidates[block.cases] = found.n_candidates
            above[at], tied[at], ahead[at] = found.above, found.tied, found.ahead
            lengths[block.cases] = np.diff(found.list_indptr)
            lists.append(found.list_items)
        if asked.deepest is not None:
            place_beyond(asked.deepest, truth.indptr, above, tied, ahead)
        shown: Shown | None = None
        if asked.k is not None:
            indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
            truth, shown = over_all_items(truth, self.item_rows.ids, indptr, self._codes(lists))
        return CountedTruth(truth, above, tied, ahead, n_candidates, truth.clusters, lists=shown)

    def top(self, users: Iterable[Any] | None, k: int, asked: RankingOptions) -> Lists:
        """The k best candidates of the users named, or of all; equal scores by id."""
        cases, rows = self.cases_of(users)
        nothing = np.zeros(0, dtype=np.int64)
        found = [
            self._ranked(block, asked, k, (nothing, nothing)) for block in self._blocks(rows, cases, asked)
        ]
        lengths = np.concatenate([nothing, *(np.diff(one.list_indptr) for one in found)])
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        codes = self._codes([nothing, *(one.list_items for one in found)])
        values = np.concatenate([np.zeros(0), *(one.list_scores for one in found)])
        return Lists(cases, self.item_rows.ids, indptr, codes, values)

    def _ranked(
        self, block: _ScoreBlock, asked: RankingOptions, k: int | None, judged: tuple[Int, Int]
    ) -> ScanResult:
        """Lists and places of a block: judged items by row of the block, in its order."""
        row, item = judged
        indptr = np.searchsorted(row, np.arange(len(block.cases) + 1))
        return rank_scores(
            block.scores,
            block.candidate,
            k=k,
            truth=(indptr, item),
            item_rank=self.item_rows.rank,
            threads=asked.threads,
            backend="auto" if asked.backend == "cuda" else asked.backend,  # type: ignore[arg-type]
        )

    def _codes(self, lists: list[Any]) -> Codes:
        return np.asarray(self.item_rows.rank[np.concatenate(lists)], dtype=np.int32)

    def _blocks(self, rows: Int, cases: Ids, asked: RankingOptions) -> Iterator[_ScoreBlock]:
        """Scores and candidates of some known users at a time, within a memory budget."""
        known = np.flatnonzero(rows >= 0)
        seen = restricted(asked.seen, cases, self.item_rows, table="seen")
        eligible = restricted(asked.eligible, cases, self.item_rows, table="eligible")
        never = never_mask(asked.never, self.item_rows)
        step = max(1, _BLOCK_BYTES // (16 * max(1, self.item_rows.size)))
        n_blocks = -(-len(known) // step)
        for number in range(n_blocks):
            part = known[number * step : (number + 1) * step]
            scores = self._checked(self._block(rows[part]), cases, part)
            candidate = scores != -np.inf
            if eligible is not None:
                candidate &= _marked(eligible, part, scores.shape[1])
            if seen is not None:
                candidate &= ~_marked(seen, part, scores.shape[1])
            if never is not None:
                candidate &= ~never
            yield _ScoreBlock(part, scores, candidate)
            if asked.progress is not None:
                asked.progress(number + 1, n_blocks)

    def _checked(self, block: Any, cases: Ids, part: Int) -> Array:
        scores = as_array(block)
        if scores.shape != (len(part), self.item_rows.size):
            raise InputError(
                f"the scores of {len(part)} users came with shape {scores.shape}, "
                f"expected ({len(part)}, {self.item_rows.size}).",
                table="scores",
            )
        if scores.dtype.kind not in "fiub":
            raise InputError(f"the scores are {scores.dtype}; expected numbers.", table="scores")
        highest = scores.max(initial=0)
        if np.isnan(highest) or highest == np.inf:
            bad = np.isnan(scores) | (scores == np.inf)
            place, column = np.argwhere(bad)[0]
            raise InputError(
                f"the score of user {cases.name(part[place])!r} and item {self._item(int(column))!r} is "
                f"{scores[place, column]}.",
                table="scores",
                column="score",
                hint="Scores are finite; -inf marks an item that is no candidate.",
            )
        return scores

    def _item(self, row: int) -> Any:
        return self.item_rows.ids.name(self.item_rows.rank[row])


class _ScoreBlock(NamedTuple):
    """Scores of some cases, and which items are candidates for them."""

    cases: Int
    scores: Array
    candidate: Bool


def _rows_of(matrix: Array, rows: Int) -> Array:
    """IdRows of a matrix, without a copy where they are neighbours."""
    if len(rows) and (rows == np.arange(rows[0], rows[0] + len(rows))).all():
        return matrix[rows[0] : rows[0] + len(rows)]
    return matrix[rows]


def _marked(rows: Csr, part: Int, n_items: int) -> Bool:
    indptr, items = rows
    sizes = np.diff(indptr)[part]
    at = positions(indptr[part], sizes)
    mask = np.zeros((len(part), n_items), dtype=bool)
    mask[np.repeat(np.arange(len(part)), sizes), items[at]] = True
    return mask
