"""Lists of shards of a catalogue merged into those of the whole.

A shard is some of the items. The score of a pair does not depend on the other items, so the best k of all are
among the best k of the shards; equal scores are ordered by id, as in a scan of the whole catalogue.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from recsys.errors import CutoffError, DuplicateError, InputError
from recsys.records.arrays import Array, Float, Ids, Int, Lists, runs


def merge_shards(lists_of_shards: Iterable[Lists], k: int) -> Lists:
    """Return the k best items of each user, from the best of each shard: the lists of one scan of all items.

    Args:
        lists_of_shards: for each shard what `recsys.recommend(Factors(U, V_of_shard, item_ids=…), k)` gives,
            with this k or a larger one, and with the seen, never and eligible items of the whole. Users may
            differ from shard to shard; no item is in two shards.
        k: how many items.

    Raises:
        DuplicateError: two shards recommend the same item to a user.
        InputError: lists without scores, or of several cases per user.

    >>> import recsys
    >>> shards = {(5, 6): [[3.0], [1.0]], (7, 4): [[2.0], [3.0]]}
    >>> models = [recsys.Factors([[1.0]], V, item_ids=ids) for ids, V in shards.items()]
    >>> lists = merge_shards([recsys.recommend(model, 2) for model in models], 2)
    >>> lists.items.values[lists.codes].tolist(), lists.scores.tolist()
    ([4, 5], [3.0, 3.0])
    """
    if type(k) is not int or k < 1:
        raise CutoffError(f"k={k!r} is not a positive whole number.", hint="Use k >= 1, such as k=10.")
    shards = list(lists_of_shards)
    for number, lists in enumerate(shards):
        _check_shard(number, lists)
    cases, items = Ids(np.zeros(0, np.int64)), Ids(np.zeros(0, np.int64))
    for lists in shards:
        cases, _, _ = cases.union(lists.cases, what="user")
        # Only the items in lists: a shard may have millions more.
        items, _, _ = items.union(Ids(lists.items.values[np.unique(lists.codes)]), what="item")
    none = np.zeros(0, np.int64)
    case = np.concatenate([none, *(np.repeat(cases.code_of(s.cases.values), s.sizes) for s in shards)])
    code = np.concatenate([none, *(items.code_of(s.items.values[s.codes]) for s in shards)])
    scores: Float = np.concatenate([np.zeros(0), *(s.scores for s in shards if s.scores is not None)])
    by_item = np.lexsort((code, case))
    starts, sizes = runs(case[by_item], code[by_item])
    if (sizes > 1).any():
        at = by_item[starts[np.argmax(sizes > 1)]]
        raise DuplicateError(
            f"two shards recommend item {items.name(code[at])!r} to user {cases.name(case[at])!r}.",
            table="lists",
            hint="Give each item to one shard.",
        )
    best = best_entries(case, scores, code, k)
    lengths = np.bincount(case[best], minlength=len(cases))
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Lists(cases, items, indptr, code[best].astype(np.int32), scores[best])


def _check_shard(number: int, lists: Any) -> None:
    problem = ""
    if not isinstance(lists, Lists):
        problem = f"came as {type(lists).__name__}"
    elif lists.scores is None:
        problem = "has no scores"
    elif lists.clusters is not None:
        problem = "has several cases per user"
    if problem:
        raise InputError(
            f"shard {number} {problem}.",
            table="lists",
            hint="Pass the Lists that recsys.recommend gives for the items of each shard.",
        )


def best_entries(case: Int, scores: Float, key: Array, k: int) -> Int:
    """Return the positions of the k best entries of each case, best first; ties by the smaller key."""
    order = np.lexsort((key, -scores, case))
    starts, sizes = runs(case[order])
    return order[np.arange(len(order)) - np.repeat(starts, sizes) < k]
