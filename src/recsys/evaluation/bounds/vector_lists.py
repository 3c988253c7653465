"""Lists of items whose vectors lie near a user's, far from it, or far from each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from recsys.evaluation.bounds.candidate_pool import BLOCK, CandidatePool
from recsys.evaluation.bounds.list_builders import ListHeads
from recsys.kernels import scan
from recsys.metrics.case_reading import Reading
from recsys.metrics.diversity import DISTANCES, Profile
from recsys.metrics.registry import divided
from recsys.metrics.vector_sums import sums_by_case
from recsys.types import Array, Bool, Float, Int

_LIST = 96  # items that lists of distant ones choose from, and four times the places if those are more
_MOST = 2048
_SWEEPS = 3  # how often each place is filled: the last two times an item may be exchanged
_SLOW = 256  # items, where each distance is a call of a function


def nearest(
    field: CandidatePool, reading: Reading, profile: Profile, *, depth: int, sign: float, drop: bool
) -> ListHeads:
    """The candidates with the highest (sign 1) or lowest (-1) cosine; `drop`: of those that have a vector."""
    unit, has = _units(reading)
    never = ~(field.open & has) if drop else ~field.open
    blocks = list(field.blocks(unit.shape[1]))
    borders = np.array([block[0] for block in blocks] + [field.n_cases])
    users = sums_by_case(profile.matrix, profile.case, profile.row, profile.weight, borders)
    cases, items = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for block, user in zip(blocks, users, strict=True) if depth else ():
        low, high = field.starts[block[0]], field.starts[block[-1] + 1]
        pairs = (field.starts[block[0] : block[-1] + 2] - low, field.item[low:high].astype(np.int32))
        seen, eligible = (None, pairs) if field.only else (pairs, None)
        found = scan(user, sign * unit, k=depth, never=never, seen=seen, eligible=eligible)
        cases.append(np.repeat(block, np.diff(found.list_indptr)))
        items.append(found.list_items.astype(np.int64))
    return ListHeads(np.concatenate(cases), np.concatenate(items))


def distant(field: CandidatePool, reading: Reading, places: Int, distance: Any, *, drop: bool) -> ListHeads:
    """Candidates far from each other: the item with most distance to what a list has, then exchanges.

    They are taken from a few items that lie far apart from each other to begin with.
    """
    depth = int(places.max(initial=0))
    pool = _far_apart(field, reading, depth, distance, drop=drop)
    apart = _distances(reading, pool, pool, distance)
    cases, items = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for block in field.blocks(max(len(pool), 1)):
        free = _candidates(field, block, pool)
        places_here = np.minimum(places[block], free.sum(axis=1))
        picked = _exchanged(apart, free, places_here, depth)
        row, column = np.nonzero(picked >= 0)
        cases.append(block[row])
        items.append(pool[picked[row, column]])
    return ListHeads(np.concatenate(cases), np.concatenate(items))


def _exchanged(apart: Float, free: Bool, places: Int, depth: int) -> Int:
    """Which items each list takes, cases x depth (-1: none): one after the other, then each once more."""
    picked = np.full((len(free), depth), -1)
    far = free @ apart  # the first item is the one farthest from all the others
    for place in range(depth * _SWEEPS):
        column = place % depth
        row = np.flatnonzero(places > column)
        old = picked[row, column]
        had, given = row[old >= 0], old[old >= 0]
        far[had] -= apart[given]
        free[had, given] = True
        new = np.where(free[row], far[row], -np.inf).argmax(axis=1)
        if place == 0:
            far[:] = 0.0
        far[row] += apart[new]
        free[row, new] = False
        picked[row, column] = new
    return picked


def _far_apart(field: CandidatePool, reading: Reading, depth: int, distance: Any, *, drop: bool) -> Int:
    """Items that lie far apart, one after the other the one with most distance to those before."""
    may = np.flatnonzero(field.open & (reading.facts.rows >= 0) if drop else field.open)
    most = _SLOW if callable(distance) else _MOST
    if distance != "cosine" and len(may) > most:
        may = may[np.linspace(0, len(may) - 1, most).astype(np.int64)]
    size = min(len(may), most, max(_LIST, 4 * depth))
    if size == len(may):
        return may
    far, chosen = np.zeros(len(may)), np.zeros(size, dtype=np.int64)
    for at in range(size):
        chosen[at] = np.argmax(far)
        far += _distances(reading, may[chosen[at : at + 1]], may, distance)[0]
        far[chosen[: at + 1]] = -np.inf
    return may[chosen]


def _distances(reading: Reading, one: Int, other: Int, distance: Any) -> Float:
    """The distance of each item of one to each of the other; that of an item to itself counts for nothing."""
    if distance == "cosine":
        unit, _ = _units(reading)
        return np.where(one[:, None] == other, 0.0, 1.0 - unit[one] @ unit[other].T)
    rows, matrix = reading.facts.rows, reading.facts.matrix
    vectors = np.where(rows[:, None] >= 0, matrix[np.maximum(rows, 0)], 0.0)
    out = np.zeros((len(one), len(other)))
    step = max(1, BLOCK // (2 * max(matrix.shape[1], 1)))
    pairs = np.argwhere(one[:, None] != other)
    for first in range(0, len(pairs), step):
        part = pairs[first : first + step]
        block = np.stack([vectors[one[part[:, 0]]], vectors[other[part[:, 1]]]], axis=1)
        out[part[:, 0], part[:, 1]] = _of_pairs(block, distance)
    return out


def _of_pairs(block: Float, distance: Any) -> Float:
    if callable(distance):
        function: Callable[[Array, Array], float] = distance
        return np.array([function(a, b) for a, b in block])
    return DISTANCES[distance](block)


def _units(reading: Reading) -> tuple[Float, Bool]:
    """The vector of each item with length 1, and which items have one."""

    def make() -> tuple[Float, Bool]:
        rows = reading.facts.rows
        has = rows >= 0
        unit = reading.facts.matrix[np.maximum(rows, 0)].astype(np.float64)
        length = np.where(has, reading.facts.row_lengths[np.maximum(rows, 0)], 0.0)
        unit *= divided(np.ones(len(rows)), length)[:, None]
        return unit, has

    return reading.kept("units", make)


def _candidates(field: CandidatePool, block: Int, items: Int) -> Bool:
    """Which of these items are candidates of some cases: cases x items."""
    place = np.full(len(field.items), -1)
    place[items] = np.arange(len(items))
    low, high = np.searchsorted(field.case, [block[0], block[-1] + 1])
    at = place[field.item[low:high]]
    out = np.full((len(block), len(items)), not field.only)
    out[(field.case[low:high] - block[0])[at >= 0], at[at >= 0]] = field.only
    return out
