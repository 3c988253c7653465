"""Which intents the relevant items serve: what the truth asks for, what a list serves, what the best would.

Intents come by `intents=`: a column of `items=`, or what each user's item is relevant for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recsys.metrics.case_reading import Reading
from recsys.metrics.item_facts import Attribute, attribute_of
from recsys.metrics.shown_items import add_up, distinct
from recsys.types import Array, Ids, Int, Table, positions


class IntentHits(NamedTuple):
    """Relevant items with their intents, one row a pair: of which case, at which place, for what."""

    case: Int
    place: Int
    intent: Int


class Intents(NamedTuple):
    """What the truth asks for: pairs of relevant item and intent, and how many intents each case has."""

    case: Int
    item: Int
    intent: Int
    n_of_case: Int
    size: int


def asked_of(h: Reading) -> Intents:
    """What the truth of a reading asks for; made once."""
    return h.kept("intents", lambda: _make_asked(h))


def _make_asked(h: Reading) -> Intents:
    case, item = h.wanted
    labels = _labels(h, case, item)
    sizes = np.diff(labels.indptr)
    pair_case, pair_item = np.repeat(case, sizes), np.repeat(item, sizes)
    size = max(len(labels.labels), 1)
    served = distinct(pair_case * size + labels.codes)
    return Intents(pair_case, pair_item, labels.codes, np.bincount(served // size, minlength=h.n_cases), size)


def _labels(h: Reading, case: Int, item: Int) -> Attribute:
    """The intents of pairs of case and item, from a column of the items or from a table by user."""
    given = h.context.intents
    if not isinstance(given, Table):
        of_item = h.facts.attribute(given)
        sizes = np.diff(of_item.indptr)[item]
        at = positions(of_item.indptr[item], sizes)
        return Attribute(np.concatenate([[0], np.cumsum(sizes)]), of_item.codes[at], of_item.labels)
    items = Ids(given.columns["items"])
    width = max(len(items), 1)
    key = given.columns["user"].astype(np.int64) * width + given.columns["item"]
    order = np.argsort(key)
    user = given.ids.code_of(h.beyond.users.values)[case]
    code = items.code_of(h.facts.ids.values)[item]
    wanted = np.where((user >= 0) & (code >= 0), user * width + code, -1)
    return attribute_of(Ids(key[order]), given.columns["labels"][order], Ids(wanted))


def listed_of(h: Reading, asked: Intents) -> IntentHits:
    """Relevant hits with their intents, by case and place."""
    return _with_intents(asked, (h.case, h.item, h.rank), len(h.facts.ids))


def _with_intents(asked: Intents, found: tuple[Array, Array, Int], n_items: int) -> IntentHits:
    case, item, place = found
    width = max(n_items, 1)
    key = asked.case.astype(np.int64) * width + asked.item
    want = case.astype(np.int64) * width + item
    low, high = np.searchsorted(key, want, side="left"), np.searchsorted(key, want, side="right")
    sizes = high - low
    at = positions(low, sizes)
    return IntentHits(np.repeat(case, sizes).astype(np.int64), np.repeat(place, sizes), asked.intent[at])


def greedy_of(h: Reading, asked: Intents, k: int | None, alpha: float) -> IntentHits:
    """The best list built one item after the other, with the intents of its items, by case and place."""
    return _with_intents(asked, greedy_order(h, asked, k, alpha), len(h.facts.ids))


def greedy_order(h: Reading, asked: Intents, k: int | None, alpha: float) -> tuple[Int, Int, Int]:
    """Case, item and place of lists built one item after the other, as ndeval does; by case and place.

    Of equally good items the last id is taken.
    """
    width = max(len(h.facts.ids), 1)
    items, of_row = np.unique(asked.case.astype(np.int64) * width + asked.item, return_inverse=True)
    owner = items // width
    key = asked.case * asked.size + asked.intent
    gain = np.ones(h.n_cases * asked.size)
    place_of = np.zeros(len(items), dtype=np.int64)
    depth = int(np.bincount(owner, minlength=1).max(initial=0))
    for place in range(1, (depth if k is None else min(k, depth)) + 1):
        worth = np.where(place_of == 0, add_up(of_row, gain[key], len(items)), -1.0)
        # Items of a case stand by id; the last of the best ones closes its case's run of a sorted order.
        order = np.lexsort((np.arange(len(items)), worth, owner))
        last = np.concatenate([owner[order][1:] != owner[order][:-1], [True]])
        place_of[order[last & (place_of[order] == 0)]] = place
        gain[key[place_of[of_row] == place]] *= 1.0 - alpha
    order = np.lexsort((place_of, owner))
    order = order[place_of[order] > 0]
    return owner[order], items[order] % width, place_of[order]


def within(found: IntentHits, k: int | None) -> IntentHits:
    """Those of the first k places."""
    return found if k is None else IntentHits(*(column[found.place <= k] for column in found))


def times_served(found: IntentHits, size: int) -> Int:
    """How often the intent of each row was served further up; rows stand by case, then place."""
    key = found.case * max(size, 1) + found.intent
    order = np.argsort(key, kind="stable")
    sorted_key = key[order]
    first = np.flatnonzero(np.concatenate([[True], sorted_key[1:] != sorted_key[:-1]])) if len(key) else key
    sizes = np.diff(np.concatenate([first, [len(key)]]))
    out = np.empty(len(key), dtype=np.int64)
    out[order] = np.arange(len(key)) - np.repeat(first, sizes)
    return out
