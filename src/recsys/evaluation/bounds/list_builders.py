"""Lists filled in a given order of items, and random lists."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from recsys.evaluation.bounds.candidate_pool import BLOCK, CandidatePool, is_in
from recsys.kernels.keyed_random import id_keys, pair_keys
from recsys.splits.negatives import sample
from recsys.types import Array, Bool, Int, Interactions

_EMPTY = np.zeros(0, dtype=np.int64)


class BuiltLists(NamedTuple):
    """Lists in the codes of the pool's items: CSR by case, best first."""

    indptr: Int
    codes: Array


class ListHeads(NamedTuple):
    """The first items of lists: candidates of their case, by case, best first."""

    case: Array
    item: Array


def fill_lists(
    pool: CandidatePool, places: Int, order: Int, *, front: ListHeads | None = None, last: Int = _EMPTY
) -> BuiltLists:
    """Lists that begin with `front` and continue in `order`; pairs in `last` are a last resort.

    `order` holds items that may be shown, best first. A list reads no more of it than its places plus the
    items it must skip, so the work grows with the number of pairs, not with cases x items.
    """
    if front is not None:
        fits = _rank_in_case(front.case) <= places[front.case]
        front = ListHeads(front.case[fits], front.item[fits])
    taken = _EMPTY if front is None else np.sort(pool.key(front.case, front.item))
    n_taken = _count_by_case(taken, pool)
    need = places - n_taken
    parts = [] if front is None else [(front.case, front.item)]
    for case, item in _items_in_order(
        pool, np.where(need > 0, need + n_taken + _count_by_case(last, pool), 0), order
    ):
        pairs = pool.key(case, item)
        usable = np.flatnonzero(pool.allowed(case, item) & ~is_in(pairs, taken))
        if len(last):
            usable = usable[np.lexsort((usable, is_in(pairs[usable], last), case[usable]))]
        keep = usable[_rank_in_case(case[usable]) <= need[case[usable]]]
        parts.append((case[keep], item[keep]))
    case = np.concatenate([_EMPTY, *(p[0] for p in parts)])
    item = np.concatenate([_EMPTY, *(p[1] for p in parts)])
    return _group_by_case(pool, case, item)


def _items_in_order(pool: CandidatePool, need: Int, order: Int) -> Iterator[tuple[Array, Array]]:
    """For each case as many items in their order as it needs; one block of cases at a time."""
    if pool.keys_are_allowed:
        place = np.full(len(pool.items), len(order))
        place[order] = np.arange(len(order))
        turn = np.lexsort((place[pool.item], pool.case))
        turn = turn[place[pool.item[turn]] < len(order)]
        yield pool.case[turn], pool.item[turn]
        return
    take = np.where(need > 0, np.minimum(need + pool.n_keys, len(order)), 0)
    cuts = np.flatnonzero(np.diff(np.cumsum(take) // BLOCK)) + 1
    for block in np.split(np.arange(pool.n_cases), cuts):
        sizes = take[block]
        at = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        yield np.repeat(block, sizes), order[at]


def random_lists(pool: CandidatePool, places: Int, turn: int) -> BuiltLists:
    """Random lists: every order of the candidates is equally likely; a case's list depends on its id only."""
    seed = int.from_bytes(blake2b(f"limits floor {turn}".encode(), digest_size=6).digest(), "little")
    longest = int(places.max(initial=0))
    if longest == 0:
        return BuiltLists(np.zeros(pool.n_cases + 1, dtype=np.int64), _EMPTY)
    if pool.keys_are_allowed:
        keys = id_keys(pool.judged.cases, seed, purpose="limits")
        of_item = id_keys(pool.items, seed, purpose="limits item")
        order = np.lexsort((pair_keys(keys[pool.case], of_item[pool.item]), pool.case))
        case, item = pool.case[order], pool.item[order]
    else:
        indptr = np.concatenate([[0], np.cumsum(pool.n_keys)])
        barred = Interactions(pool.judged.cases, pool.items, indptr, pool.item.astype(np.int32))
        drawn = sample(
            barred,
            longest,
            users=pool.judged.cases.values,
            catalogue=pool.items.values[pool.showable],
            seed=seed,
            too_few="fewer",
        )
        case = np.repeat(np.arange(pool.n_cases), np.diff(drawn.indptr))
        item = pool.items.code_of(drawn.items.values)[drawn.codes]
    keep = _rank_in_case(case) <= places[case]
    return _group_by_case(pool, case[keep], item[keep])


def _group_by_case(pool: CandidatePool, case: Array, item: Array) -> BuiltLists:
    order = np.argsort(case, kind="stable")
    sizes = np.bincount(case, minlength=pool.n_cases)
    return BuiltLists(np.concatenate([[0], np.cumsum(sizes)]), item[order])


def _count_by_case(keys: Int, pool: CandidatePool) -> Int:
    return np.bincount(keys // max(len(pool.items), 1), minlength=pool.n_cases)


def _rank_in_case(case: Array) -> Int:
    """1, 2, … within each case; entries of a case are adjacent."""
    if len(case) == 0:
        return _EMPTY
    new: Bool = np.concatenate([[True], case[1:] != case[:-1]])
    starts = np.flatnonzero(new)
    return np.asarray(np.arange(1, len(case) + 1) - np.repeat(starts, np.diff(np.append(starts, len(case)))))
