"""Lists made to order: the best items by some order first, and drawn at random."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from recsys.evaluation.bounds.candidate_pool import BLOCK, CandidatePool, among
from recsys.kernels.keyed_random import id_keys, pair_keys
from recsys.splits.negatives import sample
from recsys.types import Array, Bool, Int, Interactions

_NONE = np.zeros(0, dtype=np.int64)


class BuiltLists(NamedTuple):
    """Lists in the codes of the field's items: CSR by case, best first."""

    indptr: Int
    codes: Array


class ListHeads(NamedTuple):
    """What lists begin with: candidates of their case, by case, best first."""

    case: Array
    item: Array


def filled(
    field: CandidatePool, places: Int, order: Int, *, front: ListHeads | None = None, last: Int = _NONE
) -> BuiltLists:
    """Lists that begin with `front` and go on in the order given; pairs in `last` only where nothing is left.

    `order` holds items that may be shown, best first. A list needs no more of it than its places and what
    is taken out before they are full, so the work is the pairs there are, not cases by items.
    """
    if front is not None:
        fits = _rank(front.case) <= places[front.case]
        front = ListHeads(front.case[fits], front.item[fits])
    held = _NONE if front is None else np.sort(field.key(front.case, front.item))
    n_held = _count(held, field)
    need = places - n_held
    parts = [] if front is None else [(front.case, front.item)]
    for case, item in _offers(field, np.where(need > 0, need + n_held + _count(last, field), 0), order):
        pairs = field.key(case, item)
        good = np.flatnonzero(field.allowed(case, item) & ~among(pairs, held))
        if len(last):
            good = good[np.lexsort((good, among(pairs[good], last), case[good]))]
        keep = good[_rank(case[good]) <= need[case[good]]]
        parts.append((case[keep], item[keep]))
    case = np.concatenate([_NONE, *(p[0] for p in parts)])
    item = np.concatenate([_NONE, *(p[1] for p in parts)])
    return _by_case(field, case, item)


def _offers(field: CandidatePool, need: Int, order: Int) -> Iterator[tuple[Array, Array]]:
    """Items in their order for each case, as many as it needs; a block of cases at a time."""
    if field.only:
        place = np.full(len(field.items), len(order))
        place[order] = np.arange(len(order))
        turn = np.lexsort((place[field.item], field.case))
        turn = turn[place[field.item[turn]] < len(order)]
        yield field.case[turn], field.item[turn]
        return
    take = np.where(need > 0, np.minimum(need + field.n_keys, len(order)), 0)
    cuts = np.flatnonzero(np.diff(np.cumsum(take) // BLOCK)) + 1
    for block in np.split(np.arange(field.n_cases), cuts):
        sizes = take[block]
        at = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        yield np.repeat(block, sizes), order[at]


def random_lists(field: CandidatePool, places: Int, turn: int) -> BuiltLists:
    """Every order of as many candidates is as likely as any other; a case's list hangs on its id alone."""
    seed = int.from_bytes(blake2b(f"limits floor {turn}".encode(), digest_size=6).digest(), "little")
    longest = int(places.max(initial=0))
    if longest == 0:
        return BuiltLists(np.zeros(field.n_cases + 1, dtype=np.int64), _NONE)
    if field.only:
        keys = id_keys(field.judged.cases, seed, purpose="limits")
        of_item = id_keys(field.items, seed, purpose="limits item")
        order = np.lexsort((pair_keys(keys[field.case], of_item[field.item]), field.case))
        case, item = field.case[order], field.item[order]
    else:
        indptr = np.concatenate([[0], np.cumsum(field.n_keys)])
        barred = Interactions(field.judged.cases, field.items, indptr, field.item.astype(np.int32))
        drawn = sample(
            barred,
            longest,
            users=field.judged.cases.values,
            catalogue=field.items.values[field.open],
            seed=seed,
            too_few="fewer",
        )
        case = np.repeat(np.arange(field.n_cases), np.diff(drawn.indptr))
        item = field.items.code_of(drawn.items.values)[drawn.codes]
    keep = _rank(case) <= places[case]
    return _by_case(field, case[keep], item[keep])


def _by_case(field: CandidatePool, case: Array, item: Array) -> BuiltLists:
    order = np.argsort(case, kind="stable")
    sizes = np.bincount(case, minlength=field.n_cases)
    return BuiltLists(np.concatenate([[0], np.cumsum(sizes)]), item[order])


def _count(keys: Int, field: CandidatePool) -> Int:
    return np.bincount(keys // max(len(field.items), 1), minlength=field.n_cases)


def _rank(case: Array) -> Int:
    """1, 2, … within each case; cases stand together."""
    if len(case) == 0:
        return _NONE
    new: Bool = np.concatenate([[True], case[1:] != case[:-1]])
    starts = np.flatnonzero(new)
    return np.asarray(np.arange(1, len(case) + 1) - np.repeat(starts, np.diff(np.append(starts, len(case)))))
