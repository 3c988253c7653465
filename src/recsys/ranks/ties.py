"""How equal scores are ordered: the decision `ties`, in lists and in what was counted.

by_id and by_id_desc order the entries of a group of equal scores by item, given leaves them as they came.
expected leaves the groups in the hits (`Hits.tied`), and metrics take the mean over all orders
(`metrics/expectation.py`); best and worst start from the same hits (`metrics/best_and_worst_order.py`).
"""

from __future__ import annotations

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


def order_by_id(listed: Codes, groups: tuple[Int, Int] | None, *, descending: bool) -> Codes:
    """Return the entries of lists, those of a group ordered by id."""
    if groups is None:
        return listed
    starts, sizes = groups
    tied = np.flatnonzero(sizes > 1)
    sign = -1 if descending else 1
    order = np.lexsort((sign * listed[tied].astype(np.int64), starts[tied]))
    ordered = listed.copy()
    ordered[tied] = listed[tied[order]]
    return ordered


def rule_of_hits(ties: str) -> str:
    """Return the rule that hits are found by: best and worst start from the ties that expected leaves."""
    return "expected" if ties in ("best", "worst") else ties


def order_in_groups(case: Array, rank: Int, item: Array, grade: Float | None) -> Array:
    """Order hits by case and rank, those with equal scores by grade, highest first, then by item."""
    grades = np.ones(len(case)) if grade is None else grade
    return np.lexsort((item, -grades, rank, case))


def count_undecided(hits: Hits) -> tuple[int, int]:
    """Count the judged items found, and those that share a score with an item of another grade."""
    if hits.tied is None or len(hits.case) == 0:
        return len(hits.case), 0
    grade = np.ones(len(hits.case)) if hits.grade is None else hits.grade
    starts, n_members = runs(hits.case, hits.rank)
    low, high = np.minimum.reduceat(grade, starts), np.maximum.reduceat(grade, starts)
    mixed = ((n_members < hits.tied[starts]) & (high > 0)) | (low != high)
    return len(grade), int(n_members[mixed].sum())
