"""Lists with a mix of labels, built one item at a time.

Items with the same labels are interchangeable, so lists choose among sets of labels, of which there are few,
and take the next candidate with the chosen set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from recsys.evaluation.bounds.candidate_pool import CandidatePool
from recsys.evaluation.bounds.list_builders import ListHeads
from recsys.metrics.item_facts import Attribute
from recsys.types import Array, Float, Int

_SETS = 256  # the most frequent sets of labels that are considered


class LabelSets(NamedTuple):
    """Sets of labels: one row per set, its items, and whether all sets are included."""

    labels: Float
    indptr: Int
    items: Int
    of_item: Int
    whole: bool


def group_by_labels(pool: CandidatePool, attribute: Attribute) -> LabelSets:
    """Group the items that may be shown by their set of labels."""
    n, width = len(pool.items), len(attribute.labels)
    sizes = np.diff(attribute.indptr)
    # A set of labels is identified by the sum of one random number per label; 64 bits are enough.
    label_marks = np.random.default_rng(0).integers(1, 1 << 62, size=max(width, 1), dtype=np.int64)
    owner = np.repeat(np.arange(n), sizes)
    sums = np.zeros(n, dtype=np.int64)
    np.add.at(sums, owner, label_marks[attribute.codes])
    showable_items = np.flatnonzero(pool.showable)
    _, first, set_of_showable, counts = np.unique(
        sums[showable_items], return_index=True, return_inverse=True, return_counts=True
    )
    largest = np.sort(np.argsort(-counts, kind="stable")[:_SETS])
    number = np.full(len(first), -1)
    number[largest] = np.arange(len(largest))
    of_item = np.full(n, -1)
    of_item[showable_items] = number[set_of_showable]
    labels = np.zeros((len(largest), width))
    for row, item in enumerate(showable_items[first[largest]].tolist()):
        labels[row, attribute.codes[attribute.indptr[item] : attribute.indptr[item + 1]]] = 1.0
    with_set = np.flatnonzero(of_item >= 0)
    order = with_set[np.argsort(of_item[with_set], kind="stable")]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(of_item[with_set], minlength=len(largest)))])
    return LabelSets(labels, indptr, order, of_item, whole=len(largest) == len(first))


# Arguments: rows of a block, the amount of each label in their lists so far, the place. Result: rows x sets.
Appeal = Callable[[Int, Float, int], Float]


def choose_heads(
    pool: CandidatePool, sets: LabelSets, places: Int, appeal_to: Callable[[Int], Appeal], add: Float
) -> ListHeads:
    """At each place every list takes a candidate of the set of labels with most appeal.

    `appeal_to` gets the cases of a block and returns a function of its rows; `add` is what an item of each
    set adds.
    """
    parts: list[tuple[Array, ...]] = []
    for cases in pool.blocks(max(sets.labels.shape)):
        appeal, n_left = appeal_to(cases), _candidates_per_set(pool, sets, cases)
        used = np.zeros_like(n_left)
        label_amounts = np.zeros((len(cases), sets.labels.shape[1]))
        for place in range(int(places[cases].max(initial=0))):
            row = np.flatnonzero((places[cases] > place) & (n_left.max(axis=1, initial=0) > 0))
            if len(row) == 0:
                break
            appeal_of_sets = appeal(row, label_amounts[row], place)
            chosen = np.where(n_left[row] > 0, appeal_of_sets, -np.inf).argmax(axis=1)
            item, used[row, chosen] = _next_candidate(pool, sets, cases[row], chosen, used[row, chosen])
            parts.append((cases[row], np.full(len(row), place), item))
            n_left[row, chosen] -= 1
            label_amounts[row] += add[chosen]
    if not parts:
        return ListHeads(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    case, turn, items = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((turn, case))
    return ListHeads(case[order], items[order])


def _candidates_per_set(pool: CandidatePool, sets: LabelSets, cases: Int) -> Int:
    """How many candidates of each set these cases have: cases x sets."""
    n_sets = len(sets.labels)
    low, high = np.searchsorted(pool.case, [cases[0], cases[-1] + 1])
    case, of_set = pool.case[low:high] - cases[0], sets.of_item[pool.item[low:high]]
    pair = (case * n_sets + of_set)[of_set >= 0]
    n_in_keys = np.bincount(pair, minlength=len(cases) * n_sets).reshape(len(cases), n_sets)
    return n_in_keys if pool.keys_are_allowed else np.diff(sets.indptr) - n_in_keys


def _next_candidate(
    pool: CandidatePool, sets: LabelSets, cases: Int, chosen: Int, position: Int
) -> tuple[Int, Int]:
    """The next candidate of each case's chosen set after `position` items of it, and the new position."""
    item = np.zeros(len(cases), dtype=np.int64)
    pending = np.arange(len(cases))
    while len(pending):
        item[pending] = sets.items[sets.indptr[chosen[pending]] + position[pending]]
        position[pending] += 1
        pending = pending[~pool.allowed(cases[pending], item[pending])]
    return item, position
