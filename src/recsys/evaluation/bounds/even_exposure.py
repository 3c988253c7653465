"""Lists that spread the places over the items: evenly, or in given shares.

The most even numbers that the items' caps allow (to how many users each can be shown) are majorised by all
others, so no lists have a lower Gini index or a higher entropy; lists that reach them are the best there are.
"""

from __future__ import annotations

import numpy as np

from recsys.evaluation.bounds.candidate_pool import CandidatePool
from recsys.evaluation.bounds.list_builders import BuiltLists
from recsys.types import Array, Bool, Float, Int

_ROUNDS = 256
_STEPS, _EFFORT = 2000, 3e7  # the most showings moved one by one, and entries inspected for that


def spread_items(pool: CandidatePool, places: Int, due: Float) -> BuiltLists:
    """Lists that show each item as often as its share of `due` says, as nearly as candidates allow.

    Items take turns in one long sequence, each at its own interval; each list takes the next piece of it.
    An item that a list cannot show is replaced by the candidate whose turn is nearest.
    """
    due = np.where(pool.showable & (pool.caps > 0), due, 0.0)
    total = int(places.sum())
    indptr = np.concatenate([[0], np.cumsum(places)]).astype(np.int64)
    if total == 0:
        return BuiltLists(indptr, np.zeros(0, dtype=np.int64))
    share, first = due / due.sum(), _stagger(due)
    item = _sequence(share, first, total)
    case = np.repeat(np.arange(pool.n_cases), places)
    bad = ~pool.allowed(case, item) | is_repeat(pool.key(case, item))
    times = np.bincount(item[~bad], minlength=len(due)).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = np.where(share > 0, (times + first) / share, np.inf)
    step = np.divide(1.0, share, out=np.zeros(len(share)), where=share > 0)
    for owner in np.unique(case[bad]).tolist():
        own = slice(indptr[owner], indptr[owner + 1])
        misfits = np.flatnonzero(bad[own]) + indptr[owner]
        fitting, free = item[own][~bad[own]], pool.candidates_of_case(owner)
        later = turn[fitting]
        turn[fitting] = np.inf
        for at in misfits.tolist():
            chosen = free[turn[free].argmin()]
            later = np.append(later, turn[chosen] + step[chosen])
            item[at], turn[chosen] = chosen, np.inf
        turn[np.concatenate([fitting, item[misfits]])] = later
    return BuiltLists(indptr, item)


def _stagger(due: Float) -> Float:
    """The offset of each item's first turn within its interval; items of equal interval follow each other."""
    levels, group = np.unique(due, return_inverse=True)
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group, minlength=len(levels))
    place = np.empty(len(due))
    place[order] = np.arange(len(due)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.asarray((place + 0.5) / sizes[group])


def _sequence(share: Float, first: Float, total: int) -> Int:
    """The first `total` turns of all items, by time."""
    times = np.where(share > 0, np.ceil(share * total).astype(np.int64) + 1, 0)
    item = np.repeat(np.arange(len(share)), times)
    number = np.arange(len(item)) - np.repeat(np.cumsum(times) - times, times)
    when = (number + first[item]) / share[item]
    return np.asarray(item[np.argsort(when, kind="stable")[:total]])


def is_repeat(keys: Int) -> Bool:
    """Which keys occurred earlier in the array."""
    order = np.argsort(keys, kind="stable")
    out = np.zeros(len(keys), dtype=bool)
    out[order[1:]] = keys[order[1:]] == keys[order[:-1]]
    return out


def order_by_exposure(lists: BuiltLists, places: Int, due: Float, weights: Float) -> BuiltLists:
    """The same lists, each led by the items with least exposure relative to `due`; in blocks of lists."""
    codes, exposure = lists.codes.copy(), np.zeros(len(due))
    due = np.maximum(due, np.finfo(np.float64).tiny)
    step = max(len(due), len(codes) // _ROUNDS, 1)
    cuts = np.flatnonzero(np.diff(np.cumsum(places) // step)) + 1
    for block in np.split(np.arange(len(places)), cuts):
        own = slice(lists.indptr[block[0]], lists.indptr[block[-1] + 1]) if len(block) else slice(0, 0)
        case = np.repeat(block, places[block])
        order = np.lexsort((exposure[codes[own]] / due[codes[own]], case))
        codes[own] = codes[own][order]
        place = np.arange(len(case)) - np.repeat(np.cumsum(places[block]) - places[block], places[block])
        exposure += np.bincount(codes[own], weights=weights[place], minlength=len(due))
    return BuiltLists(lists.indptr, codes)


def most_even_counts(caps: Int, total: int) -> Int:
    """The most even whole numbers of this sum, none above its cap; ascending."""
    caps = np.sort(caps)
    low, high = 0, int(caps.max(initial=0))
    while low < high:  # the highest level that all items can be filled to
        middle = (low + high + 1) // 2
        low, high = (middle, high) if int(np.minimum(caps, middle).sum()) <= total else (low, middle - 1)
    out = np.minimum(caps, low)
    above = np.flatnonzero(caps > low)
    out[above[: total - int(out.sum())]] += 1
    return np.sort(out)


def is_most_even(pool: CandidatePool, lists: BuiltLists, places: Int) -> bool:
    """Whether no lists could spread their places more evenly, by the items' caps alone."""
    counts: Array = np.bincount(lists.codes, minlength=len(pool.items))
    return bool((np.sort(counts) == most_even_counts(pool.caps, int(places.sum()))).all())


def even_out(pool: CandidatePool, lists: BuiltLists, counted: Bool) -> tuple[BuiltLists, bool]:
    """Move showings from items that have more to items that have fewer; True if none is left to move.

    A list may replace an item by one that has two showings fewer, or by one that another list replaces in
    turn. When no such chain is left the counts are the most even possible (Harvey et al., Semi-matchings
    for bipartite graphs, 2006). Items that are not `counted` give up all their showings.
    """
    case = np.repeat(np.arange(pool.n_cases), np.diff(lists.indptr))
    item = lists.codes.copy()
    for _ in range(int(max(1, min(_STEPS, _EFFORT // max(len(item) + len(pool.keys), 1))))):
        chain = _find_chain(pool, case, item, counted)
        if not chain:
            return BuiltLists(lists.indptr, item), True
        for at, instead in chain:
            item[at] = instead
    return BuiltLists(lists.indptr, item), False


def _find_chain(pool: CandidatePool, case: Int, item: Int, counted: Bool) -> list[tuple[int, int]]:
    """Entries of the lists and their replacements: one showing moves to an item that has fewer."""
    times = np.bincount(item, minlength=len(pool.items))
    height = np.where(counted, times, np.where(times > 0, len(case) + 2, 0))
    takes = counted & (times < pool.caps)
    for level in np.unique(times[takes]).tolist():
        layers = [np.flatnonzero(takes & (times == level))]
        reached = np.zeros(len(times), dtype=bool)
        while len(layers[-1]):
            reached[layers[-1]] = True
            able = _cases_able_to_show(pool, case, item, layers[-1])
            next_layer = np.zeros(len(times), dtype=bool)
            next_layer[item[able[case]]] = True
            next_layer &= ~reached
            giver = np.flatnonzero(next_layer & (height >= level + 2))
            if len(giver):
                return _trace_chain(pool, case, item, layers, int(giver[0]))
            layers.append(np.flatnonzero(next_layer))
    return []


def _cases_able_to_show(pool: CandidatePool, case: Int, item: Int, targets: Int) -> Bool:
    """Which cases may show one of these items that they do not show yet."""
    mask = np.zeros(len(pool.items), dtype=bool)
    mask[targets] = True
    n_keys = np.bincount(pool.case[mask[pool.item]], minlength=pool.n_cases)
    n_allowed = n_keys if pool.keys_are_allowed else int((mask & pool.showable).sum()) - n_keys
    return np.asarray(n_allowed > np.bincount(case[mask[item]], minlength=pool.n_cases))


def _trace_chain(
    pool: CandidatePool, case: Int, item: Int, layers: list[Int], giver: int
) -> list[tuple[int, int]]:
    """The chain of replacements from an item that gives up a showing to an item of the first layer."""
    out, gives = [], giver
    for layer in reversed(layers):
        for at in np.flatnonzero(item == gives).tolist():
            free = layer[pool.allowed(np.full(len(layer), case[at]), layer)]
            free = free[~np.isin(free, item[case == case[at]])]
            if len(free):
                out.append((at, int(free[0])))
                gives = int(free[0])
                break
    return out
