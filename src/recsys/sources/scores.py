"""Scores a model computed itself: a users x items matrix, or a function that gives blocks of it.

They are compared as given. -inf marks an item that is no candidate; +inf and NaN are errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from recsys.counted import Counted, over_all_items
from recsys.errors import InputError
from recsys.kernels import place_beyond
from recsys.sources.arrays import as_array
from recsys.sources.asked import Asked, Csr, Rows, UsersByItems, never_mask, restricted
from recsys.sources.factors import matrix_of
from recsys.types import Array, Bool, Codes, Ids, Int, Interactions, Lists, Shown, positions

_BLOCK_BYTES = 64 << 20
_FEW = 8


class Scores(UsersByItems):
    """A matrix of scores, or `block(user_rows) -> matrix` with `n_users` and `n_items`.

    >>> import recsys
    >>> model = Scores([[0.9, 0.1, 0.5], [0.2, 0.3, 0.8]])
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
            self._block = matrix.__getitem__
            shape = (matrix.shape[0], matrix.shape[1])
        self.user_rows = Rows(shape[0], user_ids, what="user")
        self.item_rows = Rows(shape[1], item_ids, what="item")

    def judge(self, truth: Interactions, asked: Asked) -> Counted:
        """Count the place of each judged item among all candidates."""
        rows = self.user_rows.row_of(truth.cases.values, table="truth")
        item = self.item_rows.row_of(truth.items.values, table="truth")[truth.codes]
        above = np.full(len(item), -1, dtype=np.int64)
        tied, ahead = np.zeros(len(item), dtype=np.int64), np.zeros(len(item), dtype=np.int64)
        n_candidates = np.zeros(len(rows), dtype=np.int64)
        lists: list[Int] = [np.zeros(0, dtype=np.int64)] * len(rows)
        for block in self._blocks(rows, truth.cases, asked):
            n_candidates[block.cases] = block.candidate.sum(axis=1)
            for place, case in enumerate(block.cases.tolist()):
                if asked.k is not None:
                    lists[case] = self._best(block, place, asked.k)
                at = np.arange(truth.indptr[case], truth.indptr[case + 1])
                at = at[item[at] >= 0]
                at = at[block.candidate[place, item[at]]]
                above[at], tied[at], ahead[at] = self._places(block, place, item[at])
        if asked.deepest is not None:
            place_beyond(asked.deepest, truth.indptr, above, tied, ahead)
        shown: Shown | None = None
        if asked.k is not None:
            indptr, codes = self._joined(lists)
            truth, shown = over_all_items(truth, self.item_rows.ids, indptr, codes)
        return Counted(truth, above, tied, ahead, n_candidates, truth.clusters, lists=shown)

    def top(self, users: Iterable[Any] | None, k: int, asked: Asked) -> Lists:
        """The k best candidates of the users named, or of all; equal scores by id."""
        cases, rows = self.cases_of(users)
        found: list[Int] = []
        values: list[Array] = []
        for block in self._blocks(rows, cases, asked):
            for place in range(len(block.cases)):
                found.append(self._best(block, place, k))
                values.append(block.scores[place, found[-1]].astype(np.float64))
        indptr, codes = self._joined(found)
        return Lists(cases, self.item_rows.ids, indptr, codes, np.concatenate([np.zeros(0), *values]))

    def _places(self, block: _Block, place: int, items: Int) -> tuple[Int, Int, Int]:
        """Candidates above each item, level with it, and of those before it by id."""
        rank = self.item_rows.rank
        pool = np.flatnonzero(block.candidate[place])
        scores, own = block.scores[place, pool], block.scores[place, items]
        if len(items) <= _FEW:  # as many looks at all scores cost less than putting them in order
            level = scores == own[:, None]
            first = level & (rank[pool] < rank[items][:, None])
            return (scores > own[:, None]).sum(axis=1), level.sum(axis=1), first.sum(axis=1)
        order = np.lexsort((rank[pool], scores))
        ordered = scores[order]
        low, high = (np.searchsorted(ordered, own, side=side) for side in ("left", "right"))
        at = np.empty(self.item_rows.size, dtype=np.int64)
        at[pool[order]] = np.arange(len(order))
        return len(order) - high, high - low, at[items] - low

    def _best(self, block: _Block, place: int, k: int) -> Int:
        """The k best candidates of one case, equal scores by id; only what may be among them is sorted."""
        candidates = np.flatnonzero(block.candidate[place])
        own = block.scores[place, candidates]
        if len(own) > k:
            candidates = candidates[own >= np.partition(own, len(own) - k)[len(own) - k]]
            own = block.scores[place, candidates]
        # Backwards: no unsigned number has a negative, and the least signed one has none either.
        order = np.lexsort((-self.item_rows.rank[candidates], own))[::-1]
        return candidates[order[:k]]

    def _joined(self, lists: list[Int]) -> tuple[Int, Codes]:
        indptr = np.concatenate([[0], np.cumsum([len(rows) for rows in lists])]).astype(np.int64)
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *lists])
        return indptr, self.item_rows.rank[rows].astype(np.int32)

    def _blocks(self, rows: Int, cases: Ids, asked: Asked) -> Iterator[_Block]:
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
            yield _Block(part, scores, candidate)
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
        bad = np.isnan(scores) | (scores == np.inf)
        if bad.any():
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


class _Block(NamedTuple):
    """Scores of some cases, and which items are candidates for them."""

    cases: Int
    scores: Array
    candidate: Bool


def _marked(rows: Csr, part: Int, n_items: int) -> Bool:
    indptr, items = rows
    sizes = np.diff(indptr)[part]
    at = positions(indptr[part], sizes)
    mask = np.zeros((len(part), n_items), dtype=bool)
    mask[np.repeat(np.arange(len(part)), sizes), items[at]] = True
    return mask
