"""Blending a model with content: score = alpha * model + (1 - alpha) * content.

A blend of factors is again factors: the weighted matrices stand side by side, and the spread of a user's
scores follows from the items' covariance. So the whole catalogue is ranked exactly, cold items included, and
nothing of size users x items is ever made.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from recsys.errors import InputError, UnknownNameError
from recsys.inputs.frames import read_lists
from recsys.models.rerankers.profiles import unit_rows, user_profiles
from recsys.ranks.sources import Factors
from recsys.types import Array, Float, Int, Lists

SCALES = ("std", "none")
_BLOCK_BYTES = 64 << 20


def content(
    history: Any,
    embeddings: Any,
    *,
    users: Iterable[Any] | None = None,
    item_ids: Iterable[Any] | None = None,
    weighted: bool = False,
) -> Factors:
    """Items by how close they are to what a user took: the cosine with the user's profile.

    Args:
        history: who took what; grades are the weights where `weighted`.
        embeddings: one row an item, in the order of the items of the model it will be blended with.
        users: who to make a row for, in this order (those without a history get zeros); all of `history`
            without.
        item_ids: the id of each row of `embeddings`; without, items are row numbers.
        weighted: weigh each item of the history by its grade.

    >>> near = content({"ann": [0]}, [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    >>> near.items.round(1).tolist(), near.users.tolist()
    ([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]], [[1.0, 0.0]])
    """
    items = None if item_ids is None else list(item_ids)
    made = user_profiles(history, embeddings, item_ids=items, weighted=weighted)
    vectors = unit_rows(made.vectors)
    if users is None:
        return Factors(vectors, unit_rows(embeddings), user_ids=made.ids, item_ids=items)
    wanted = np.asarray(list(users), dtype=made.ids.dtype)
    at = np.searchsorted(made.ids, wanted)
    at[at == len(made.ids)] = 0
    known = made.ids[at] == wanted if len(made.ids) else np.zeros(len(wanted), dtype=bool)
    rows = np.where(known[:, None], vectors[at], 0.0)
    return Factors(rows, unit_rows(embeddings), user_ids=wanted, item_ids=items)


def blend(model: Factors, other: Factors, alpha: float = 0.7, *, scale: str = "std") -> Factors:
    """Factors whose score is alpha * model + (1 - alpha) * other, for the users and items of `model`.

    Args:
        model: the model to re-rank.
        other: what to blend in, such as `content(...)`; the same items. A user it does not know keeps the
            model's ranking.
        alpha: 1 is the model alone, 0 the other alone.
        scale: "std" divides either side by the standard deviation of the user's scores over all items, so
            that alpha means the same for every user and model; "none" adds the raw scores.

    >>> import recsys
    >>> model = Factors([[1.0]], [[3.0], [2.0], [0.0]])
    >>> near = Factors([[1.0]], [[0.0], [0.0], [1.0]])
    >>> [recsys.recommend(blend(model, near, alpha), 1).codes.tolist() for alpha in (1.0, 0.0)]
    [[0], [2]]
    """
    if not 0 <= alpha <= 1:
        raise InputError(f"alpha={alpha!r} does not lie between 0 and 1.", hint="1 is the model alone.")
    if scale not in SCALES:
        raise UnknownNameError("scale", scale, SCALES)
    at, rows = _same_items(model, other), _rows_of_users(model, other)
    theirs = np.where((rows >= 0)[:, None], other.users[np.maximum(rows, 0)], 0.0)
    sides = [
        _widened(model.users, model.items, model.item_bias),
        (theirs, other.items[at].astype(np.float64)),
    ]
    if scale == "std":
        sides = [(_scaled(users, items), items) for users, items in sides]
    (mine, my_items), (theirs, their_items) = sides
    return Factors(
        np.hstack([alpha * mine, (1.0 - alpha) * theirs]),
        np.hstack([my_items, their_items]),
        user_ids=_ids(model.user_rows),
        item_ids=_ids(model.item_rows),
    )


def _widened(users: Array, items: Array, bias: Any) -> tuple[Float, Float]:
    """An item bias is one more factor that every user weighs by 1."""
    if bias is None:
        return users.astype(np.float64), items.astype(np.float64)
    column = np.asarray(bias, dtype=np.float64)[:, None]
    return np.hstack([users, np.ones((len(users), 1))]), np.hstack([items, column])


def _ids(rows: Any) -> Array | None:
    return rows.ids.values[rows.rank] if rows.named else None


def _same_items(model: Factors, other: Factors) -> Int:
    """The row of each of the model's items in the other matrix."""
    mine, theirs = model.item_rows, other.item_rows
    if mine.size != theirs.size or (
        mine.named and theirs.named and not np.array_equal(mine.ids.values, theirs.ids.values)
    ):
        raise InputError(
            f"the model has {mine.size} items and what is blended in {theirs.size}, or other ones.",
            hint="Give both a row for every item of the catalogue, and item_ids= where orders differ.",
        )
    if not (mine.named and theirs.named):
        return np.arange(mine.size)
    row_of_code = np.empty(theirs.size, dtype=np.int64)
    row_of_code[theirs.rank] = np.arange(theirs.size)
    return np.asarray(row_of_code[mine.rank])


def _rows_of_users(model: Factors, other: Factors) -> Int:
    """The row of each of the model's users in the other matrix, -1 where it has none."""
    other.user_rows.ids.same_kind(model.user_rows.ids, what="user")
    ids = model.user_rows.ids.values[model.user_rows.rank]
    codes = other.user_rows.ids.code_of(ids)
    row_of_code = np.empty(other.user_rows.size, dtype=np.int64)
    row_of_code[other.user_rows.rank] = np.arange(other.user_rows.size)
    return np.where(codes >= 0, row_of_code[codes], -1)


def _spread(users: Float, items: Array) -> Float:
    """The standard deviation over all items of each user's scores, from the items' covariance."""
    centred = items.astype(np.float64) - items.mean(axis=0, dtype=np.float64)
    covariance = centred.T @ centred / max(len(items), 1)
    return np.asarray(
        np.sqrt(np.maximum(np.einsum("ud,de,ue->u", users, covariance, users, optimize=True), 0.0))
    )


def _scaled(users: Float, items: Float) -> Float:
    spread = _spread(users, items)
    return np.asarray(users / np.where(spread > 0, spread, 1.0)[:, None])


def rerank(
    candidates: Any,
    other: Factors,
    k: int,
    *,
    alpha: float = 0.7,
) -> Lists:
    """Ready lists with scores re-ordered by alpha * their score + (1 - alpha) * the other's, cut to k.

    For models that only hand out lists. Both sides are divided by their standard deviation within the list;
    an item outside the list cannot come in (`blend` ranks the whole catalogue).

    >>> near = Factors([[1.0]], [[0.0], [1.0], [0.0]])
    >>> rerank({0: [(0, 0.9), (1, 0.8), (2, 0.7)]}, near, 2, alpha=0.2).codes.tolist()
    [1, 0]
    """
    lists = read_lists(candidates)
    if lists.scores is None:
        raise InputError(
            "the lists have no scores to blend.", table="lists", hint="Pass {user: [(item, score)]}."
        )
    if not 0 <= alpha <= 1:
        raise InputError(f"alpha={alpha!r} does not lie between 0 and 1.", hint="1 is the list's own order.")
    case = np.repeat(np.arange(len(lists.cases)), lists.sizes)
    users = other.user_rows.row_of(lists.cases.values, table="lists")
    items = other.item_rows.row_of(lists.items.values, table="lists")[lists.codes]
    known = (users[case] >= 0) & (items >= 0)
    theirs = np.zeros(len(case))
    step = max(1, _BLOCK_BYTES // (16 * other.items.shape[1]))
    for first in range(0, len(case), step):
        part = np.flatnonzero(known[first : first + step]) + first
        theirs[part] = np.einsum("nd,nd->n", other.users[users[case[part]]], other.items[items[part]])
    score = alpha * _within(lists.scores, case, len(lists.cases)) + (1 - alpha) * _within(
        theirs, case, len(lists.cases)
    )
    order = np.lexsort((lists.codes, -score, case))
    place = np.arange(len(case)) - lists.indptr[case]
    keep = place < k
    sizes = np.minimum(lists.sizes, k)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    return Lists(lists.cases, lists.items, indptr, lists.codes[order][keep], score[order][keep])


def _within(values: Float, case: Int, n: int) -> Float:
    """Values over the standard deviation of their own list."""
    count = np.maximum(np.bincount(case, minlength=n), 1)
    mean = np.bincount(case, weights=values, minlength=n) / count
    spread = np.sqrt(np.bincount(case, weights=(values - mean[case]) ** 2, minlength=n) / count)
    return np.asarray((values - mean[case]) / np.where(spread > 0, spread, 1.0)[case])
