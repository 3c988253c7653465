"""Lists with a mix of kinds, built one item after the other.

Items with the same labels are worth the same, so lists choose among sets of labels, of which there are few,
and take the next candidate that has the one they chose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from recsys.evaluation.bounds.candidate_pool import CandidatePool
from recsys.evaluation.bounds.list_builders import ListHeads
from recsys.metrics.item_facts import Attribute
from recsys.types import Array, Float, Int

_SETS = 256  # of the sets of labels, those most items have


class LabelSets(NamedTuple):
    """Sets of labels: a row each, the items that have it, and whether all sets are here."""

    labels: Float
    indptr: Int
    items: Int
    of_item: Int
    whole: bool


def sorts_of(field: CandidatePool, kinds: Attribute) -> LabelSets:
    """The items that may be shown, by their labels."""
    n, width = len(field.items), len(kinds.labels)
    sizes = np.diff(kinds.indptr)
    # A set of labels is told by the sum of a random number for each; 64 bits are enough for all there are.
    marks = np.random.default_rng(0).integers(1, 1 << 62, size=max(width, 1), dtype=np.int64)
    owner = np.repeat(np.arange(n), sizes)
    sums = np.zeros(n, dtype=np.int64)
    np.add.at(sums, owner, marks[kinds.codes])
    may = np.flatnonzero(field.open)
    _, first, of_may, counts = np.unique(
        sums[may], return_index=True, return_inverse=True, return_counts=True
    )
    kept = np.sort(np.argsort(-counts, kind="stable")[:_SETS])
    number = np.full(len(first), -1)
    number[kept] = np.arange(len(kept))
    of_item = np.full(n, -1)
    of_item[may] = number[of_may]
    labels = np.zeros((len(kept), width))
    for row, item in enumerate(may[first[kept]].tolist()):
        labels[row, kinds.codes[kinds.indptr[item] : kinds.indptr[item + 1]]] = 1.0
    mine = np.flatnonzero(of_item >= 0)
    order = mine[np.argsort(of_item[mine], kind="stable")]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(of_item[mine], minlength=len(kept)))])
    return LabelSets(labels, indptr, order, of_item, whole=len(kept) == len(first))


# Which rows of a block, what each has of every label so far, how many items: rows x sets.
Appeal = Callable[[Int, Float, int], Float]


def front(
    field: CandidatePool, sorts: LabelSets, places: Int, appeal_to: Callable[[Int], Appeal], add: Float
) -> ListHeads:
    """Each list takes the set of labels with most appeal, again and again.

    `appeal_to` gets the cases of a block and gives a function of its rows; `add` is what one of a set adds.
    """
    parts: list[tuple[Array, ...]] = []
    for cases in field.blocks(max(sorts.labels.shape)):
        appeal, left = appeal_to(cases), _left(field, sorts, cases)
        used = np.zeros_like(left)
        have = np.zeros((len(cases), sorts.labels.shape[1]))
        for place in range(int(places[cases].max(initial=0))):
            row = np.flatnonzero((places[cases] > place) & (left.max(axis=1, initial=0) > 0))
            if len(row) == 0:
                break
            wish = appeal(row, have[row], place)
            chosen = np.where(left[row] > 0, wish, -np.inf).argmax(axis=1)
            item, used[row, chosen] = _next(field, sorts, cases[row], chosen, used[row, chosen])
            parts.append((cases[row], np.full(len(row), place), item))
            left[row, chosen] -= 1
            have[row] += add[chosen]
    if not parts:
        return ListHeads(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    case, turn, items = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((turn, case))
    return ListHeads(case[order], items[order])


def _left(field: CandidatePool, sorts: LabelSets, cases: Int) -> Int:
    """How many candidates of each set some cases have: cases x sets."""
    n_sets = len(sorts.labels)
    low, high = np.searchsorted(field.case, [cases[0], cases[-1] + 1])
    case, of_set = field.case[low:high] - cases[0], sorts.of_item[field.item[low:high]]
    pair = (case * n_sets + of_set)[of_set >= 0]
    own = np.bincount(pair, minlength=len(cases) * n_sets).reshape(len(cases), n_sets)
    return own if field.only else np.diff(sorts.indptr) - own


def _next(field: CandidatePool, sorts: LabelSets, cases: Int, chosen: Int, gone: Int) -> tuple[Int, Int]:
    """The next candidate of the set each case chose, `gone` items into it, and how far that was."""
    item = np.zeros(len(cases), dtype=np.int64)
    open_ = np.arange(len(cases))
    while len(open_):
        item[open_] = sorts.items[sorts.indptr[chosen[open_]] + gone[open_]]
        gone[open_] += 1
        open_ = open_[~field.allowed(cases[open_], item[open_])]
    return item, gone
