"""Lists of items whose vectors lie near a user's, far from it, or far from each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from recsys.evaluation.bounds.candidate_pool import BLOCK, CandidatePool
from recsys.evaluation.bounds.list_builders import ListHeads
from recsys.kernels import scan
from recsys.metrics.case_reading import Reading
from recsys.metrics.diversity import DISTANCES, Profile
from recsys.metrics.registry import divide_or_zero
from recsys.metrics.vector_sums import sums_by_case
from recsys.types import Bool, Float, Int

_SHORTLIST = 96  # size of the shortlist for diverse lists, or four times the places if that is more
_MAX_ITEMS = 2048
_SWEEPS = 3  # how often each place is filled; after the first sweep items are exchanged
_MAX_ITEMS_OF_FUNCTION = 256  # if each distance is a call of a Python function


def nearest(
    pool: CandidatePool, reading: Reading, profile: Profile, *, depth: int, sign: float, drop: bool
) -> ListHeads:
    """The candidates with the highest (sign 1) or lowest (-1) cosine; `drop`: only items with a vector."""
    unit, has = _unit_vectors(reading)
    never = ~(pool.showable & has) if drop else ~pool.showable
    blocks = list(pool.blocks(unit.shape[1]))
    borders = np.array([block[0] for block in blocks] + [pool.n_cases])
    users = sums_by_case(profile.matrix, profile.case, profile.row, profile.weight, borders)
    cases, items = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for block, user in zip(blocks, users, strict=True) if depth else ():
        low, high = pool.starts[block[0]], pool.starts[block[-1] + 1]
        pairs = (pool.starts[block[0] : block[-1] + 2] - low, pool.item[low:high].astype(np.int32))
        seen, eligible = (None, pairs) if pool.keys_are_allowed else (pairs, None)
        found = scan(user, sign * unit, k=depth, never=never, seen=seen, eligible=eligible)
        cases.append(np.repeat(block, np.diff(found.list_indptr)))
        items.append(found.list_items.astype(np.int64))
    return ListHeads(np.concatenate(cases), np.concatenate(items))


def farthest_apart(
    pool: CandidatePool, reading: Reading, places: Int, distance: Any, *, drop: bool
) -> ListHeads:
    """Candidates far from each other: greedily the item farthest from the list so far, then exchanges.

    They come from a shortlist of items that are far apart from each other.
    """
    depth = int(places.max(initial=0))
    shortlist = _shortlist(pool, reading, depth, distance, drop=drop)
    apart = _distances(reading, shortlist, shortlist, distance)
    cases, items = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for block in pool.blocks(max(len(shortlist), 1)):
        free = _candidate_mask(pool, block, shortlist)
        places_here = np.minimum(places[block], free.sum(axis=1))
        picked = _pick_by_exchange(apart, free, places_here, depth)
        row, column = np.nonzero(picked >= 0)
        cases.append(block[row])
        items.append(shortlist[picked[row, column]])
    return ListHeads(np.concatenate(cases), np.concatenate(items))


def _pick_by_exchange(apart: Float, free: Bool, places: Int, depth: int) -> Int:
    """The items each list takes, cases x depth (-1: none): one after the other, then exchanged in turn."""
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
    """The distance of each item of `one` to each item of `other`; 0 from an item to itself."""
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
            out[part[:, 0], part[:, 1]] = DISTANCES[distance](block)
    return out


def _unit_vectors(reading: Reading) -> tuple[Float, Bool]:
    """The vector of each item scaled to length 1, and which items have one."""

    def make() -> tuple[Float, Bool]:
        rows = reading.facts.rows
        has = rows >= 0
        unit = reading.facts.matrix[np.maximum(rows, 0)].astype(np.float64)
        length = np.where(has, reading.facts.row_norms[np.maximum(rows, 0)], 0.0)
        unit *= divide_or_zero(np.ones(len(rows)), length)[:, None]
        return unit, has

    return reading.cached("units", make)


def _candidate_mask(pool: CandidatePool, block: Int, items: Int) -> Bool:
    """Which of these items are candidates of these cases: cases x items."""
    place = np.full(len(pool.items), -1)
    place[items] = np.arange(len(items))
    low, high = np.searchsorted(pool.case, [block[0], block[-1] + 1])
    at = place[pool.item[low:high]]
    out = np.full((len(block), len(items)), not pool.keys_are_allowed)
    out[(pool.case[low:high] - block[0])[at >= 0], at[at >= 0]] = pool.keys_are_allowed
    return out
