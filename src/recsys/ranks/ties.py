"""How equal scores are ordered: the decision `ties`, in lists and in what was counted.

by_id and by_id_desc order the entries of a group of equal scores by item, given leaves them as they came.
expected leaves the groups in the hits (`Hits.tied`), and metrics take the mean over all orders
(`metrics/expectation.py`); best and worst start from the same hits (`metrics/best_and_worst_order.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recsys.records.arrays import Array, Codes, Float, Hits, Int, runs


def groups_of_ties(scores: Float, indptr: Int) -> tuple[Int, Int] | None:
    """Return, for each entry of lists, the start and the size of its group; None without equal scores."""
    if len(scores) < 2:
        return None
    ties_previous = scores[1:] == scores[:-1]
    borders = indptr[1:-1]
    ties_previous[borders[(borders > 0) & (borders < len(scores))] - 1] = False
    if not ties_previous.any():
        return None
    starts = np.flatnonzero(np.r_[True, ~ties_previous])
    sizes = np.diff(np.r_[starts, len(scores)])
    return np.repeat(starts, sizes), np.repeat(sizes, sizes)


def ahead_by_id(listed: Codes, groups: tuple[Int, Int]) -> Int:
    """Return how many entries of its group have a smaller id than each entry of lists, or came first."""
    starts, sizes = groups
    tied = np.flatnonzero(sizes > 1)
    ahead = np.zeros(len(listed), dtype=np.int64)
    ahead[tied[np.lexsort((listed[tied], starts[tied]))]] = tied - starts[tied]
    return ahead


def order_by_id(listed: Codes, groups: tuple[Int, Int], ahead: Int, *, descending: bool) -> Codes:
    """Return the entries of lists, those of a group ordered by id."""
    starts, sizes = groups
    tied = np.flatnonzero(sizes > 1)
    before = sizes[tied] - 1 - ahead[tied] if descending else ahead[tied]
    ordered = listed.copy()
    ordered[starts[tied] + before] = listed[tied]
    return ordered


def rule_of_hits(ties: str) -> str:
    """Return the rule that hits are found by: best and worst start from the ties that expected leaves."""
    return "expected" if ties in ("best", "worst") else ties


class TiedHits(NamedTuple):
    """Judged items that were found: the scores above each, those equal to it, and what decides among them."""

    case: Array
    item: Array
    grade: Float | None
    above: Int
    tied: Int
    """Its own score among them."""
    by_id: Int
    """How many of these have a smaller id."""
    as_given: Int | None = None
    """How many of these came first; None where nothing came in an order, and ids decide."""

    def places(self, rule: str) -> tuple[Int, Int | None, Int]:
        """Return the rank of each hit, its ties if the rule leaves them, and the order of the hits.

        Hits are ordered by case and rank, those that still tie by grade, highest first, then by id.
        """
        if rule == "expected":
            grades = np.ones(len(self.case)) if self.grade is None else self.grade
            order = np.lexsort((self.item, -grades, self.above, self.case))
            return self.above + 1, self.tied, order
        ahead = self.by_id if rule == "by_id" or self.as_given is None else self.as_given
        rank = self.above + 1 + (self.tied - 1 - self.by_id if rule == "by_id_desc" else ahead)
        by_place = self.case.astype(np.int64) * (rank.max(initial=0) + 1) + rank
        return rank, None, np.argsort(by_place, kind="stable")


def count_undecided(hits: Hits) -> tuple[int, int]:
    """Count the judged items found, and those that share a score with an item of another grade."""
    if hits.tied is None or len(hits.case) == 0:
        return len(hits.case), 0
    grade = np.ones(len(hits.case)) if hits.grade is None else hits.grade
    starts, n_members = runs(hits.case, hits.rank)
    low, high = np.minimum.reduceat(grade, starts), np.maximum.reduceat(grade, starts)
    mixed = ((n_members < hits.tied[starts]) & (high > 0)) | (low != high)
    return len(grade), int(n_members[mixed].sum())
