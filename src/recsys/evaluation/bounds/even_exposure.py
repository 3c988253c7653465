"""Lists that spread the places over the items: evenly, or as each item is due.

The most even numbers that the items' caps allow (to how many users each can be shown) are majorised by all
others, so no lists have a lower Gini index or a higher entropy; lists that reach them are the best there are.
"""

from __future__ import annotations

import numpy as np

from recsys.evaluation.bounds.candidate_pool import CandidatePool
from recsys.evaluation.bounds.list_builders import BuiltLists
from recsys.types import Array, Bool, Float, Int

_ROUNDS = 256
_STEPS, _EFFORT = 2000, 3e7  # showings moved one by one at most, and entries looked at for it


def dealt(field: CandidatePool, places: Int, due: Float) -> BuiltLists:
    """Lists that show each item as often as its share of `due` says, as nearly as candidates allow.

    Items take their turns in one long sequence, each after its own interval; lists take it piece by piece.
    What a list cannot show goes to the candidate whose turn is nearest.
    """
    due = np.where(field.open & (field.caps > 0), due, 0.0)
    total = int(places.sum())
    indptr = np.concatenate([[0], np.cumsum(places)]).astype(np.int64)
    if total == 0:
        return BuiltLists(indptr, np.zeros(0, dtype=np.int64))
    share, first = due / due.sum(), _stagger(due)
    item = _sequence(share, first, total)
    case = np.repeat(np.arange(field.n_cases), places)
    bad = ~field.allowed(case, item) | repeats(field.key(case, item))
    times = np.bincount(item[~bad], minlength=len(due)).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = np.where(share > 0, (times + first) / share, np.inf)
    step = np.divide(1.0, share, out=np.zeros(len(share)), where=share > 0)
    for one in np.unique(case[bad]).tolist():
        own = slice(indptr[one], indptr[one + 1])
        wrong = np.flatnonzero(bad[own]) + indptr[one]
        held, free = item[own][~bad[own]], field.candidates_of(one)
        later = turn[held]
        turn[held] = np.inf
        for at in wrong.tolist():
            chosen = free[turn[free].argmin()]
            later = np.append(later, turn[chosen] + step[chosen])
            item[at], turn[chosen] = chosen, np.inf
        turn[np.concatenate([held, item[wrong]])] = later
    return BuiltLists(indptr, item)


def _stagger(due: Float) -> Float:
    """Where each item's first turn lies in its interval: items of the same interval one after the other."""
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


def repeats(keys: Int) -> Bool:
    """Which keys stood further up already."""
    order = np.argsort(keys, kind="stable")
    out = np.zeros(len(keys), dtype=bool)
    out[order[1:]] = keys[order[1:]] == keys[order[:-1]]
    return out


def ordered(made: BuiltLists, places: Int, due: Float, weights: Float) -> BuiltLists:
    """The same lists, each with what has had least exposure for its due on top; some lists at a time."""
    codes, had = made.codes.copy(), np.zeros(len(due))
    due = np.maximum(due, np.finfo(np.float64).tiny)
    step = max(len(due), len(codes) // _ROUNDS, 1)
    cuts = np.flatnonzero(np.diff(np.cumsum(places) // step)) + 1
    for block in np.split(np.arange(len(places)), cuts):
        own = slice(made.indptr[block[0]], made.indptr[block[-1] + 1]) if len(block) else slice(0, 0)
        case = np.repeat(block, places[block])
        order = np.lexsort((had[codes[own]] / due[codes[own]], case))
        codes[own] = codes[own][order]
        place = np.arange(len(case)) - np.repeat(np.cumsum(places[block]) - places[block], places[block])
        had += np.bincount(codes[own], weights=weights[place], minlength=len(due))
    return BuiltLists(made.indptr, codes)


def most_even(caps: Int, total: int) -> Int:
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


def is_most_even(field: CandidatePool, made: BuiltLists, places: Int) -> bool:
    """Whether no lists could spread their places more evenly, by the items' caps alone."""
    counts: Array = np.bincount(made.codes, minlength=len(field.items))
    return bool((np.sort(counts) == most_even(field.caps, int(places.sum()))).all())


def levelled(field: CandidatePool, made: BuiltLists, counted: Bool) -> tuple[BuiltLists, bool]:
    """Showings moved from items that have more to items that have fewer, and whether none is left to move.

    A list may give up an item for one that has two showings less, or for one that another list gives up in
    turn. When no such chain is left the numbers are the most even there can be (Harvey et al., Semi-matchings
    for bipartite graphs, 2006). Items not `counted` give up all they have.
    """
    case = np.repeat(np.arange(field.n_cases), np.diff(made.indptr))
    item = made.codes.copy()
    for _ in range(int(max(1, min(_STEPS, _EFFORT // max(len(item) + len(field.keys), 1))))):
        chain = _chain(field, case, item, counted)
        if not chain:
            return BuiltLists(made.indptr, item), True
        for at, instead in chain:
            item[at] = instead
    return BuiltLists(made.indptr, item), False


def _chain(field: CandidatePool, case: Int, item: Int, counted: Bool) -> list[tuple[int, int]]:
    """Entries of the lists and what to show there instead: one showing goes where it is needed more."""
    times = np.bincount(item, minlength=len(field.items))
    height = np.where(counted, times, np.where(times > 0, len(case) + 2, 0))
    takes = counted & (times < field.caps)
    for level in np.unique(times[takes]).tolist():
        layers = [np.flatnonzero(takes & (times == level))]
        reached = np.zeros(len(times), dtype=bool)
        while len(layers[-1]):
            reached[layers[-1]] = True
            able = _able(field, case, item, layers[-1])
            new = np.zeros(len(times), dtype=bool)
            new[item[able[case]]] = True
            new &= ~reached
            giver = np.flatnonzero(new & (height >= level + 2))
            if len(giver):
                return _back(field, case, item, layers, int(giver[0]))
            layers.append(np.flatnonzero(new))
    return []


def _able(field: CandidatePool, case: Int, item: Int, wanted: Int) -> Bool:
    """Which cases could show one of these items and do not show all they could."""
    mask = np.zeros(len(field.items), dtype=bool)
    mask[wanted] = True
    known = np.bincount(field.case[mask[field.item]], minlength=field.n_cases)
    may = known if field.only else int((mask & field.open).sum()) - known
    return np.asarray(may > np.bincount(case[mask[item]], minlength=field.n_cases))


def _back(field: CandidatePool, case: Int, item: Int, layers: list[Int], giver: int) -> list[tuple[int, int]]:
    """The chain from an item that gives a showing up to one of the first layer."""
    out, gives = [], giver
    for layer in reversed(layers):
        for at in np.flatnonzero(item == gives).tolist():
            free = layer[field.allowed(np.full(len(layer), case[at]), layer)]
            free = free[~np.isin(free, item[case == case[at]])]
            if len(free):
                out.append((at, int(free[0])))
                gives = int(free[0])
                break
    return out
