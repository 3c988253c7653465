"""The best lists for each metric about the items shown: where they are known exactly, or built step by step.

Each function that a metric can name gives lists (or ranks of the relevant items) and says whether none can be
better. The value is then measured by the ordinary engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from recsys.evaluation.bounds.candidate_pool import BLOCK, BestLists, BoundsTask, CandidatePool, ListHeads
from recsys.evaluation.engine import measure
from recsys.kernels import scan
from recsys.metrics.attributes import Attribute, ItemFacts
from recsys.metrics.calibration import label_amounts, shares
from recsys.metrics.diversity import DISTANCES, WeightedRows, profile_entries, sums_by_case
from recsys.metrics.readings import Reading
from recsys.metrics.registry import Request, divide_or_zero
from recsys.ranks.ranked_truth import MatchedTruth
from recsys.records.arrays import Array, Bool, Float, Ids, Int, entries_of_cases, is_repeat, sorted_unique

Builder = Callable[[BoundsTask], Iterable[BestLists]]
_SETS = 256  # the most frequent sets of labels that are considered
_SHORTLIST = 96  # size of the shortlist for diverse lists, or four times the places if that is more
_MAX_ITEMS = 2048
_SWEEPS = 3  # how often each place is filled; after the first sweep items are exchanged
_MAX_ITEMS_OF_FUNCTION = 256  # if each distance is a call of a Python function


def any_lists(task: BoundsTask) -> list[BestLists]:
    """Return any lists, for every full list of candidates has the same value."""
    return [BestLists(task.lists(), proven=True, constant=True)]


def any_candidates(task: BoundsTask) -> list[BestLists]:
    """Return the same, unless complete lists say what the candidates are: those need not all be allowed."""
    return [BestLists(task.lists(), proven=True, constant=not task.pool.complete)]


def highest_values(task: BoundsTask) -> list[BestLists]:
    """Return the candidates with the best values.

    No other lists have a better mean or sum over the items shown.
    """
    pool, metric = task.pool, task.request.metric
    n = len(pool.items)
    # One list per item, holding that item alone, has the value of the item.
    none, codes = np.zeros(n + 1, dtype=np.int64), np.arange(n, dtype=np.int32)
    alone = MatchedTruth(Ids(np.arange(n)), pool.items, np.arange(n + 1), codes, None, none, codes[:0], None)
    measured = measure(alone, [task.request], task.rules, pool.context)
    item_values = measured.rows.columns[str(task.request)]
    order = np.lexsort((np.arange(n), item_values if metric.better == "lower" else -item_values))
    lists = task.lists(order=order[pool.showable[order]])
    return [BestLists(lists, proven=task.params.get("cold") != "drop")]


def unseen_first(task: BoundsTask) -> list[BestLists]:
    """Items from the user's train data only if nothing else is left."""
    pool = task.pool
    history_entries = task.reading.pairs("train")
    known = history_entries.item >= 0
    seen = sorted_unique(pool.key(history_entries.case[known], history_entries.item[known]))
    return [BestLists(task.lists(last=seen), proven=True)]


def like_reference(task: BoundsTask) -> list[BestLists]:
    """Return the reference list without items that may not be shown.

    Each item is at its place there or above.
    """
    pairs, k = task.reading.pairs("reference"), task.request.k
    keep = (pairs.item >= 0) & (pairs.place <= (np.inf if k is None else k))
    case, item = pairs.case[keep], pairs.item[keep]
    good = task.pool.allowed(case, item) & ~is_repeat(task.pool.key(case, item))
    return [BestLists(task.lists(ListHeads(case[good], item[good])), proven=True)]


def most_labels(task: BoundsTask) -> list[BestLists]:
    """Items that add most new labels first; optimal if every item has at most one label."""
    sets = _group_by_labels(task.pool, task.reading.facts.attribute(task.params["by"]))

    def n_new_labels(row: Int, have: Float, place: int) -> Float:
        del row, place
        return np.asarray((have == 0) @ sets.labels.T)

    front = _choose_heads(task.pool, sets, task.places, lambda _: n_new_labels, sets.labels)
    single = bool((sets.labels.sum(axis=1) <= 1).all()) and sets.whole
    return [BestLists(task.lists(front), proven=single)]


def calibrated(task: BoundsTask) -> list[BestLists]:
    """At each place an item whose labels bring the mix of the list closest to the user's own mix."""
    pool, reading = task.pool, task.reading
    train, by = reading.facts.train, task.params["by"]
    sets = _group_by_labels(pool, reading.facts.attribute(by))
    part = shares(sets.labels)
    of_history = ItemFacts(train.items, pool.context).attribute(by)
    case, at = entries_of_cases(train, reading.list_context.users)
    weight = np.ones(len(at)) if train.grades is None else train.grades[at]
    history_entries = (case, train.codes[at].astype(np.int64), weight)

    def appeal_for(cases: Int) -> _Appeal:
        target = shares(label_amounts(of_history, history_entries, slice(int(cases[0]), int(cases[-1]) + 1)))

        def closeness(row: Int, have: Float, place: int) -> Float:
            gap = target[row] * (place + 1.0) - have
            return np.asarray(2 * gap @ part.T - (part**2).sum(axis=1))

        return closeness

    key = ("calibrated", by, task.places.tobytes())
    lists = pool.cached(key, lambda: task.lists(_choose_heads(pool, sets, task.places, appeal_for, part)))
    return [BestLists(lists)]


class _LabelSets(NamedTuple):
    """Sets of labels: one row per set, its items, and whether all sets are included."""

    labels: Float
    indptr: Int
    items: Int
    of_item: Int
    whole: bool


def _group_by_labels(pool: CandidatePool, attribute: Attribute) -> _LabelSets:
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
    return _LabelSets(labels, indptr, order, of_item, whole=len(largest) == len(first))


# Arguments: rows of a block, the amount of each label in their lists so far, the place. Result: rows x sets.
_Appeal = Callable[[Int, Float, int], Float]


def _choose_heads(
    pool: CandidatePool, sets: _LabelSets, places: Int, appeal_to: Callable[[Int], _Appeal], add: Float
) -> ListHeads:
    """At each place every list takes a candidate of the set of labels with most appeal.

    `appeal_to` gets the cases of a block and returns a function of its rows; `add` is what an item of each
    set adds.
    """
    parts: list[tuple[Array, Array]] = []
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
            parts.append((cases[row], item))
            n_left[row, chosen] -= 1
            label_amounts[row] += add[chosen]
    heads = ListHeads.join(parts)
    order = np.argsort(heads.case, kind="stable")  # the parts of a case are in the order of their places
    return ListHeads(heads.case[order], heads.item[order])


def _candidates_per_set(pool: CandidatePool, sets: _LabelSets, cases: Int) -> Int:
    """Return how many candidates of each set these cases have: cases x sets."""
    n_sets = len(sets.labels)
    row, item = pool.pairs_of(cases)
    of_set = sets.of_item[item]
    pair = (row * n_sets + of_set)[of_set >= 0]
    n_in_keys = np.bincount(pair, minlength=len(cases) * n_sets).reshape(len(cases), n_sets)
    return n_in_keys if pool.keys_are_allowed else np.diff(sets.indptr) - n_in_keys


def _next_candidate(
    pool: CandidatePool, sets: _LabelSets, cases: Int, chosen: Int, position: Int
) -> tuple[Int, Int]:
    """Return the next candidate of each case's set after `position` items of it, and the new position."""
    item = np.zeros(len(cases), dtype=np.int64)
    pending = np.arange(len(cases))
    while len(pending):
        item[pending] = sets.items[sets.indptr[chosen[pending]] + position[pending]]
        position[pending] += 1
        pending = pending[~pool.allowed(cases[pending], item[pending])]
    return item, position


def nearest_to_user(task: BoundsTask) -> list[BestLists]:
    """Return the candidates nearest to their user."""
    return [_by_cosine(task, profile_entries(task.reading), sign=1.0)]


def farthest_from_user(task: BoundsTask) -> list[BestLists]:
    """Return the candidates farthest from what their user had."""
    return [_by_cosine(task, profile_entries(task.reading, units=True, of_items=True), sign=-1.0)]


def _by_cosine(task: BoundsTask, profile: WeightedRows, *, sign: float) -> BestLists:
    """Return the candidates with the highest (sign 1) or lowest (-1) cosine.

    If items without a vector are dropped, showing one may be better still.
    """
    pool, reading, depth = task.pool, task.reading, int(task.places.max(initial=0))
    drop = task.params.get("missing", "drop") == "drop"
    unit, has = _unit_vectors(reading)
    never = ~(pool.showable & has) if drop else ~pool.showable
    blocks = list(pool.blocks(unit.shape[1]))
    borders = np.array([block[0] for block in blocks] + [pool.n_cases])
    users = sums_by_case(profile, borders)
    parts = []
    for block, user in zip(blocks, users, strict=True) if depth else ():
        starts = pool.starts[block[0] : block[-1] + 2]
        pairs = (starts - starts[0], pool.pairs_of(block)[1].astype(np.int32))
        seen, eligible = (None, pairs) if pool.keys_are_allowed else (pairs, None)
        found = scan(user, sign * unit, k=depth, never=never, seen=seen, eligible=eligible)
        parts.append((np.repeat(block, np.diff(found.list_indptr)), found.list_items.astype(np.int64)))
    whole = bool((reading.facts.rows[pool.showable] >= 0).all())
    return BestLists(task.lists(ListHeads.join(parts)), proven=whole or not drop)


def far_apart(task: BoundsTask) -> list[BestLists]:
    """Items far from each other: greedily the item farthest from the list so far, then exchanges.

    They come from a shortlist of items that are far apart from each other.
    """
    pool, reading, distance = task.pool, task.reading, task.params["distance"]
    depth = int(task.places.max(initial=0))
    shortlist = _shortlist(pool, reading, depth, distance, drop=task.params["missing"] == "drop")
    apart = _distances(reading, shortlist, shortlist, distance)
    column_of = np.full(len(pool.items), -1)
    column_of[shortlist] = np.arange(len(shortlist))
    parts = []
    for block in pool.blocks(max(len(shortlist), 1)):
        # Which items of the shortlist each case may be shown: cases x items.
        row, item = pool.pairs_of(block)
        at = column_of[item]
        free = np.full((len(block), len(shortlist)), not pool.keys_are_allowed)
        free[row[at >= 0], at[at >= 0]] = pool.keys_are_allowed
        places_here = np.minimum(task.places[block], free.sum(axis=1))
        picked = _pick_by_exchange(apart, free, places_here, depth)
        row, column = np.nonzero(picked >= 0)
        parts.append((block[row], shortlist[picked[row, column]]))
    return [BestLists(task.lists(ListHeads.join(parts)))]


def _pick_by_exchange(apart: Float, free: Bool, places: Int, depth: int) -> Int:
    """Return the items each list takes, cases x depth (-1: none).

    They are chosen one after the other, then exchanged in turn.
    """
    picked = np.full((len(free), depth), -1)
    far = free @ apart  # the first item is the one farthest from all others
    for place in range(depth * _SWEEPS):
        column = place % depth
        row = np.flatnonzero(places > column)
        old = picked[row, column]
        with_item, released = row[old >= 0], old[old >= 0]
        far[with_item] -= apart[released]
        free[with_item, released] = True
        new = np.where(free[row], far[row], -np.inf).argmax(axis=1)
        if place == 0:
            far[:] = 0.0
        far[row] += apart[new]
        free[row, new] = False
        picked[row, column] = new
    return picked


def _shortlist(pool: CandidatePool, reading: Reading, depth: int, distance: Any, *, drop: bool) -> Int:
    """Items that are far apart: repeatedly the one with the largest total distance to those chosen before."""
    items = np.flatnonzero(pool.showable & (reading.facts.rows >= 0) if drop else pool.showable)
    max_items = _MAX_ITEMS_OF_FUNCTION if callable(distance) else _MAX_ITEMS
    if distance != "cosine" and len(items) > max_items:
        items = items[np.linspace(0, len(items) - 1, max_items).astype(np.int64)]
    size = min(len(items), max_items, max(_SHORTLIST, 4 * depth))
    if size == len(items):
        return items
    far, chosen = np.zeros(len(items)), np.zeros(size, dtype=np.int64)
    for at in range(size):
        chosen[at] = np.argmax(far)
        far += _distances(reading, items[chosen[at : at + 1]], items, distance)[0]
        far[chosen[: at + 1]] = -np.inf
    return items[chosen]


def _distances(reading: Reading, one: Int, other: Int, distance: Any) -> Float:
    """Return the distance of each item of `one` to each item of `other`; 0 from an item to itself."""
    if distance == "cosine":
        unit, _ = _unit_vectors(reading)
        return np.where(one[:, None] == other, 0.0, 1.0 - unit[one] @ unit[other].T)
    rows, matrix = reading.facts.rows, reading.facts.matrix
    vectors = np.where(rows[:, None] >= 0, matrix[np.maximum(rows, 0)], 0.0)
    out = np.zeros((len(one), len(other)))
    step = max(1, BLOCK // (2 * max(matrix.shape[1], 1)))
    pairs = np.argwhere(one[:, None] != other)
    for first in range(0, len(pairs), step):
        part = pairs[first : first + step]
        block = np.stack([vectors[one[part[:, 0]]], vectors[other[part[:, 1]]]], axis=1)
        if callable(distance):
            out[part[:, 0], part[:, 1]] = [distance(a, b) for a, b in block]
        else:
            out[part[:, 0], part[:, 1]] = DISTANCES[distance](block)[:, 0]
    return out


def _unit_vectors(reading: Reading) -> tuple[Float, Bool]:
    """Return the vector of each item scaled to length 1, and which items have one."""

    def make() -> tuple[Float, Bool]:
        rows = reading.facts.rows
        has = rows >= 0
        unit = reading.facts.matrix[np.maximum(rows, 0)].astype(np.float64)
        length = np.where(has, reading.facts.row_norms[np.maximum(rows, 0)], 0.0)
        unit *= divide_or_zero(np.ones(len(rows)), length)[:, None]
        return unit, has

    return reading.cached("units", make)


def builder_of(request: Request) -> Builder | None:
    """Return the function that builds the best lists of a metric, or None."""
    builder = request.metric.attainable.best_lists or request.metric.shown.best_lists
    if not isinstance(builder, str) or not builder:
        return builder or None
    module, _, name = builder.rpartition(".")
    home = import_module(f"{__package__}.{module or 'best_lists'}")
    made: Builder = getattr(home, name)
    return made
