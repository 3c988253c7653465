"""Maximal marginal relevance: items that are good and unlike each other, for a block of users at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.inputs import read_lists
from recsys.models.rerankers.profiles import unit_rows
from recsys.ranks.sources.source import IdRows
from recsys.types import Float, Int, Lists

_BLOCK_BYTES = 64 << 20


def diversify(
    lists: Any,
    embeddings: Any,
    k: int,
    *,
    diversity: float = 0.3,
    item_ids: Iterable[Any] | None = None,
) -> Lists:
    """Pick k items of each list one by one, for their score and for being unlike those picked before (MMR).

    Each pick has the largest (1 - diversity) * score - diversity * (largest cosine with an earlier pick).
    Scores are scaled to [0, 1] within the list. An item without an embedding is unlike everything.

    Args:
        lists: the pool to pick from, longer than k, with scores (or best first: then by place).
        embeddings: one row per item.
        k: how many to pick.
        diversity: 0 keeps the order, 1 uses unlikeness alone.
        item_ids: the id of each row; by default items are row numbers.

    >>> pool = {0: [(0, 1.0), (1, 0.9), (2, 0.5)]}
    >>> diversify(pool, [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]], 2, diversity=0.5).codes.tolist()
    [0, 2]
    """
    if not 0 <= diversity <= 1:
        raise InputError(f"diversity={diversity!r} does not lie between 0 and 1.", hint="0 keeps the order.")
    pool = read_lists(lists)
    vectors = unit_rows(embeddings)
    if item_ids is None and pool.items.kind != "int":
        raise InputError("items are texts and the embeddings have no ids.", hint="Pass item_ids=.")
    ids = np.arange(len(vectors)) if item_ids is None else list(item_ids)
    row_of_item = IdRows(len(vectors), ids, what="item").row_of(pool.items.values, table="lists")
    relevance = _relevance(pool)
    sizes = np.minimum(pool.sizes, k)
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    picked = np.empty(int(indptr[-1]), dtype=np.int64)
    longest = int(pool.sizes.max(initial=1))
    step = max(1, _BLOCK_BYTES // (8 * longest * max(vectors.shape[1], 1)))
    for first in range(0, len(pool.cases), step):
        cases = np.arange(first, min(first + step, len(pool.cases)))
        _pick_greedily(
            pool,
            cases,
            (vectors, row_of_item, relevance),
            (k, diversity),
            picked[indptr[cases[0]] : indptr[cases[-1] + 1]],
        )
    return Lists(pool.cases, pool.items, indptr, pool.codes[picked])


def _relevance(pool: Lists) -> Float:
    """Scores scaled to [0, 1] within each list; evenly spaced by place where there are no scores."""
    case = np.repeat(np.arange(len(pool.cases)), pool.sizes)
    place = np.arange(len(pool.codes)) - pool.indptr[case]
    scores = -place.astype(np.float64) if pool.scores is None else pool.scores
    nonempty = pool.sizes > 0
    starts = pool.indptr[:-1][nonempty]
    low, high = np.zeros(len(pool.cases)), np.zeros(len(pool.cases))
    if len(starts):
        low[nonempty], high[nonempty] = (
            np.minimum.reduceat(scores, starts),
            np.maximum.reduceat(scores, starts),
        )
    width = np.where(high > low, high - low, 1.0)
    return np.asarray((scores - low[case]) / width[case])


def _pick_greedily(
    pool: Lists, cases: Int, data: tuple[Float, Int, Float], options: tuple[int, float], out: Int
) -> None:
    """Pick for a block of users at once, one item per user and step; `out` gets positions in the pool."""
    vectors, row_of_item, pool_relevance = data
    k, diversity = options
    sizes = pool.sizes[cases]
    width = int(sizes.max(initial=0))
    inside = np.arange(width) < sizes[:, None]
    at = np.where(inside, pool.indptr[cases][:, None] + np.arange(width), 0)
    rows = np.where(inside, row_of_item[pool.codes[at]], -1)
    block = np.where((rows >= 0)[:, :, None], vectors[np.maximum(rows, 0)], 0.0)
    relevance = np.where(inside, pool_relevance[at], -np.inf)
    similarity = np.full(at.shape, -np.inf)
    free, everyone = inside.copy(), np.arange(len(cases))
    chosen = np.full((len(cases), min(k, width)), -1, dtype=np.int64)
    for step in range(chosen.shape[1]):
        penalty = np.zeros(at.shape) if step == 0 else similarity
        value = np.where(
            free, (1 - diversity) * np.where(inside, relevance, 0.0) - diversity * penalty, -np.inf
        )
        best = value.argmax(axis=1)
        has_item = free[everyone, best]
        chosen[has_item, step] = at[has_item, best[has_item]]
        free[everyone, best] = False
        similarity = np.maximum(similarity, np.einsum("ud,und->un", block[everyone, best], block))
    out[:] = chosen[chosen >= 0]
