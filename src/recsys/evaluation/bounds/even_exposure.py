"""Lists that spread the places over the items: evenly, or in given shares.

The most even numbers that the items' caps allow (to how many users each can be shown) are majorised by all
others, so no lists have a lower Gini index or a higher entropy; lists that reach them are the best there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.evaluation.bounds.candidate_pool import BestLists, BoundsTask, BuiltLists, CandidatePool
from recsys.evaluation.exposure import entry_weights, exposure_key
from recsys.metrics.calibration import group_shares
from recsys.metrics.catalogue import CatalogueReading
from recsys.metrics.registry import Request, divide_or_zero
from recsys.records.arrays import Array, Bool, Float, Int, is_repeat

_ROUNDS = 256
_STEPS, _EFFORT = 2000, 3e7  # the most showings moved one by one, and entries inspected for that


def evenly_exposed(task: BoundsTask) -> list[BestLists]:
    """Return every item as often as any other.

    The most even lists are optimal if all places weigh the same.
    """
    weight, k = _place_weighting(task), task.places
    lists, proven = _most_even_lists(task, task.pool.in_catalogue)
    equal_weights = weight == "none" or (weight == "list" and len(np.unique(k[k > 0])) <= 1)
    if "gini_over" in task.request.metric.conventions and task.conventions.gini_over == "recommended":
        # Items that are not shown do not count, so the same list for everyone is even too.
        return [BestLists(_order_by_exposure(task, lists)), BestLists(task.lists())]
    return [BestLists(_order_by_exposure(task, lists), proven and equal_weights)]


def most_items(task: BoundsTask) -> list[BestLists]:
    """As many different items as possible: the most even lists leave out the fewest."""
    lists, proven = _most_even_lists(task, counted_items(task.pool, task.request))
    return [BestLists(task.pool.with_lists(*lists), proven)]


def _most_even_lists(task: BoundsTask, counted: Bool) -> tuple[BuiltLists, bool]:
    """Return the most even lists, with the `counted` items preferred, and whether none are more even."""
    pool, k = task.pool, task.places

    def make() -> tuple[BuiltLists, bool]:
        lists = spread_items(pool, k, np.where(counted, 1.0, 1e-9))
        counts: Array = np.bincount(lists.codes, minlength=len(pool.items))
        most_even = most_even_counts(pool.caps, int(k.sum()))  # by the items' caps alone
        if counted is pool.in_catalogue and bool((np.sort(counts) == most_even).all()):
            return lists, True
        return even_out(pool, lists, counted)

    return pool.cached(("dealt", counted.tobytes(), k.tobytes()), make)


def exposed_by_merit(task: BoundsTask) -> list[BestLists]:
    """Return the items of each group as often as the group deserves."""
    pool, by = task.pool, task.params["by"]
    groups, ids = task.reading.facts.attribute(by), pool.catalogue.ids
    shelf = CatalogueReading(ids, np.zeros(len(ids)), pool.catalogue, 1.0, pool.context)
    _, due = group_shares(shelf, by, task.params["merit"])
    sizes = np.diff(groups.indptr)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    usable = pool.showable & (pool.caps > 0)
    part = divide_or_zero(usable[owner] * 1.0, sizes[owner] * 1.0)
    strength = np.bincount(groups.codes, weights=part, minlength=len(due))
    own = divide_or_zero(due, strength)[groups.codes] * part
    share: Float = np.bincount(owner, weights=own, minlength=len(sizes)).astype(np.float64)
    share = np.where(share > 0, share, 1e-9 * max(float(share.max(initial=0.0)), 1e-9))
    lists = spread_items(pool, task.places, share)
    return [BestLists(_order_by_exposure(task, lists, share))]


def _order_by_exposure(task: BoundsTask, lists: BuiltLists, due: Float | None = None) -> Any:
    """Return the lists; where places differ in weight, items with least exposure relative to `due` lead."""
    weight, places, n_items = _place_weighting(task), task.places, len(task.pool.items)
    if weight in ("none", "list"):
        return task.pool.with_lists(*lists)
    place = np.arange(1, int(places.max(initial=1)) + 1)
    amount, unit = entry_weights(weight, place, place)
    weights = np.asarray(amount * unit, dtype=np.float64)
    due = np.maximum(np.ones(n_items) if due is None else due, np.finfo(np.float64).tiny)
    codes, exposure = lists.codes.copy(), np.zeros(n_items)
    # In blocks of lists: each block sees the exposure that the blocks before it gave.
    step = max(n_items, len(codes) // _ROUNDS, 1)
    cuts = np.flatnonzero(np.diff(np.cumsum(places) // step)) + 1
    for block in np.split(np.arange(len(places)), cuts):
        own = slice(lists.indptr[block[0]], lists.indptr[block[-1] + 1]) if len(block) else slice(0, 0)
        case = np.repeat(block, places[block])
        order = np.lexsort((exposure[codes[own]] / due[codes[own]], case))
        codes[own] = codes[own][order]
        place = np.arange(len(case)) - np.repeat(np.cumsum(places[block]) - places[block], places[block])
        exposure += np.bincount(codes[own], weights=weights[place], minlength=n_items)
    return task.pool.with_lists(lists.indptr, codes)


def _place_weighting(task: BoundsTask) -> str:
    return exposure_key(task.request, task.conventions)[1].split("/")[0]


def counted_items(pool: CandidatePool, request: Request) -> Bool:
    """Return which items a metric counts that counts different items shown."""
    which = request.metric.shown.which_items
    if which is None:
        return pool.in_catalogue
    facts = pool.readings.under(Conventions()).facts
    return np.asarray(pool.in_catalogue & which(facts, **request.own_params))


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
    share = due / due.sum()
    # Each item's first turn has an offset within its interval, so that items of equal interval take turns.
    levels, group = np.unique(due, return_inverse=True)
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group, minlength=len(levels))
    offset = np.empty(len(due))
    offset[order] = np.arange(len(due)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    first = (offset + 0.5) / sizes[group]
    n_turns = np.where(share > 0, np.ceil(share * total).astype(np.int64) + 1, 0)
    sequence = np.repeat(np.arange(len(share)), n_turns)
    number = np.arange(len(sequence)) - np.repeat(np.cumsum(n_turns) - n_turns, n_turns)
    when = (number + first[sequence]) / share[sequence]
    item = sequence[np.argsort(when, kind="stable")[:total]]
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


def most_even_counts(caps: Int, total: int) -> Int:
    """Return the most even whole numbers of this sum, none above its cap; ascending."""
    caps = np.sort(caps)
    low, high = 0, int(caps.max(initial=0))
    while low < high:  # the highest level that all items can be filled to
        middle = (low + high + 1) // 2
        low, high = (middle, high) if int(np.minimum(caps, middle).sum()) <= total else (low, middle - 1)
    out = np.minimum(caps, low)
    above = np.flatnonzero(caps > low)
    out[above[: total - int(out.sum())]] += 1
    return np.sort(out)


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
    """Return which cases may show one of these items that they do not show yet."""
    mask = np.zeros(len(pool.items), dtype=bool)
    mask[targets] = True
    n_keys = np.bincount(pool.case[mask[pool.item]], minlength=pool.n_cases)
    n_allowed = n_keys if pool.keys_are_allowed else int((mask & pool.showable).sum()) - n_keys
    return np.asarray(n_allowed > np.bincount(case[mask[item]], minlength=pool.n_cases))


def _trace_chain(
    pool: CandidatePool, case: Int, item: Int, layers: list[Int], giver: int
) -> list[tuple[int, int]]:
    """Return the chain of replacements from an item that gives up a showing to an item of the first layer."""
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
