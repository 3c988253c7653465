"""Which intents the relevant items serve: those of the truth, of a list, and of a greedily best list.

`intents=` is a column of `items=`, or says for each user what an item is relevant for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recsys.metrics.case_reading import Reading
from recsys.metrics.item_facts import Attribute, align_labels
from recsys.metrics.shown_items import add_up, sorted_unique
from recsys.types import Array, Ids, Int, Table, positions


class IntentHits(NamedTuple):
    """Relevant hits with their intents, one row per pair: its case, its place and its intent."""

    case: Int
    place: Int
    intent: Int


class Intents(NamedTuple):
    """The truth as pairs of relevant item and intent, and how many intents each case has.

    `size` is the number of different intents, at least 1.
    """

    case: Int
    item: Int
    intent: Int
    n_of_case: Int
    size: int


def truth_intents(h: Reading) -> Intents:
    """The intents of the truth of a reading; computed once."""
    return h.cached("intents", lambda: _intents_of_truth(h))


def _intents_of_truth(h: Reading) -> Intents:
    case, item = h.relevant_pairs
    labels = _labels_of_pairs(h, case, item)
    sizes = np.diff(labels.indptr)
    pair_case, pair_item = np.repeat(case, sizes), np.repeat(item, sizes)
    size = max(len(labels.labels), 1)
    intents_of_cases = sorted_unique(pair_case * size + labels.codes)
    n_of_case = np.bincount(intents_of_cases // size, minlength=h.n_cases)
    return Intents(pair_case, pair_item, labels.codes, n_of_case, size)


def _labels_of_pairs(h: Reading, case: Int, item: Int) -> Attribute:
    """The intents of pairs of case and item, from a column of the items or from a table by user."""
    table = h.context.intents
    if not isinstance(table, Table):
        of_item = h.facts.attribute(table)
        sizes = np.diff(of_item.indptr)[item]
        at = positions(of_item.indptr[item], sizes)
        return Attribute(np.concatenate([[0], np.cumsum(sizes)]), of_item.codes[at], of_item.labels)
    items = Ids(table.columns["items"])
    width = max(len(items), 1)
    key = table.columns["user"].astype(np.int64) * width + table.columns["item"]
    order = np.argsort(key)
    user = table.ids.code_of(h.list_context.users.values)[case]
    code = items.code_of(h.facts.ids.values)[item]
    pair_key = np.where((user >= 0) & (code >= 0), user * width + code, -1)
    return align_labels(Ids(key[order]), table.columns["labels"][order], Ids(pair_key))


def intents_of_hits(h: Reading, intents: Intents) -> IntentHits:
    """The relevant hits of the lists with their intents, by case and place."""
    return _join_intents(intents, (h.case, h.item, h.rank), len(h.facts.ids))


def _join_intents(intents: Intents, entries: tuple[Array, Array, Int], n_items: int) -> IntentHits:
    """Entries (case, item, place) of relevant items, once for each of the item's intents."""
    case, item, place = entries
    width = max(n_items, 1)
    truth_key = intents.case.astype(np.int64) * width + intents.item
    key = case.astype(np.int64) * width + item
    low, high = np.searchsorted(truth_key, key, side="left"), np.searchsorted(truth_key, key, side="right")
    sizes = high - low
    at = positions(low, sizes)
    return IntentHits(np.repeat(case, sizes).astype(np.int64), np.repeat(place, sizes), intents.intent[at])


def intents_of_greedy_lists(h: Reading, intents: Intents, k: int | None, alpha: float) -> IntentHits:
    """The items of the greedily best lists with their intents, by case and place."""
    return _join_intents(intents, greedy_order(h, intents, k, alpha), len(h.facts.ids))


def greedy_order(h: Reading, intents: Intents, k: int | None, alpha: float) -> tuple[Int, Int, Int]:
    """Case, item and place of lists that take the best item next, as in ndeval; by case and place.

    Of equally good items the one with the last id is taken.
    """
    width = max(len(h.facts.ids), 1)
    items, of_row = np.unique(intents.case.astype(np.int64) * width + intents.item, return_inverse=True)
    owner = items // width
    key = intents.case * intents.size + intents.intent
    gain = np.ones(h.n_cases * intents.size)
    place_of = np.zeros(len(items), dtype=np.int64)
    depth = int(np.bincount(owner, minlength=1).max(initial=0))
    for place in range(1, (depth if k is None else min(k, depth)) + 1):
        item_gain = np.where(place_of == 0, add_up(of_row, gain[key], len(items)), -1.0)
        # Sorted by case, gain and id, the best item with the last id is the last of its case.
        order = np.lexsort((np.arange(len(items)), item_gain, owner))
        last = np.concatenate([owner[order][1:] != owner[order][:-1], [True]])
        place_of[order[last & (place_of[order] == 0)]] = place
        gain[key[place_of[of_row] == place]] *= 1.0 - alpha
    order = np.lexsort((place_of, owner))
    order = order[place_of[order] > 0]
    return owner[order], items[order] % width, place_of[order]


def in_first_places(hits: IntentHits, k: int | None) -> IntentHits:
    """The rows of the first k places."""
    return hits if k is None else IntentHits(*(column[hits.place <= k] for column in hits))


def times_served(hits: IntentHits, size: int) -> Int:
    """How often the intent of each row was served further up; rows are sorted by case, then place."""
    key = hits.case * max(size, 1) + hits.intent
    order = np.argsort(key, kind="stable")
    sorted_key = key[order]
    first = np.flatnonzero(np.concatenate([[True], sorted_key[1:] != sorted_key[:-1]])) if len(key) else key
    sizes = np.diff(np.concatenate([first, [len(key)]]))
    out = np.empty(len(key), dtype=np.int64)
    out[order] = np.arange(len(key)) - np.repeat(first, sizes)
    return out
