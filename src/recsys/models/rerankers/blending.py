"""Blending a model with content: score = alpha * model + (1 - alpha) * content.

A blend of factors is again factors: the weighted matrices side by side. The standard deviation of a user's
scores follows from the items' covariance. So the whole catalogue is ranked exactly, cold items included, and
nothing of size users x items is profiles.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from recsys.errors import InputError, UnknownNameError
from recsys.inputs import read_lists
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
        embeddings: one row per item, in the order of the items of the model it will be blended with.
        users: the users that get a row, in this order (those without a history get zeros); by default all of
            `history`.
        item_ids: the id of each row of `embeddings`; by default items are row numbers.
        weighted: weigh each item of the history by its grade.

    >>> near = content({"ann": [0]}, [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    >>> near.items.round(1).tolist(), near.users.tolist()
    ([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]], [[1.0, 0.0]])
    """
    items = None if item_ids is None else list(item_ids)
    profiles = user_profiles(history, embeddings, item_ids=items, weighted=weighted)
    vectors = unit_rows(profiles.vectors)
    if users is None:
        return Factors(vectors, unit_rows(embeddings), user_ids=profiles.ids, item_ids=items)
    user_ids = np.asarray(list(users), dtype=profiles.ids.dtype)
    at = np.searchsorted(profiles.ids, user_ids)
    at[at == len(profiles.ids)] = 0
    known = profiles.ids[at] == user_ids if len(profiles.ids) else np.zeros(len(user_ids), dtype=bool)
    rows = np.where(known[:, None], vectors[at], 0.0)
    return Factors(rows, unit_rows(embeddings), user_ids=user_ids, item_ids=items)


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
    item_rows, user_rows = _rows_of_items(model, other), _rows_of_users(model, other)
    users, items = model.users.astype(np.float64), model.items.astype(np.float64)
    if model.item_bias is not None:  # one more factor, of which every user has 1
        users = np.hstack([users, np.ones((len(users), 1))])
        items = np.hstack([items, np.asarray(model.item_bias, dtype=np.float64)[:, None]])
    other_users = np.where((user_rows >= 0)[:, None], other.users[np.maximum(user_rows, 0)], 0.0)
    other_items = other.items[item_rows].astype(np.float64)
    if scale == "std":
        users, other_users = _scale_to_unit_std(users, items), _scale_to_unit_std(other_users, other_items)
    return Factors(
        np.hstack([alpha * users, (1.0 - alpha) * other_users]),
        np.hstack([items, other_items]),
        user_ids=_ids_of_rows(model.user_rows),
        item_ids=_ids_of_rows(model.item_rows),
    )


def _ids_of_rows(rows: Any) -> Array | None:
    return rows.ids.values[rows.rank] if rows.named else None


def _rows_of_items(model: Factors, other: Factors) -> Int:
    """The row of each of the model's items in the other matrix."""
    model_rows, other_rows = model.item_rows, other.item_rows
    if model_rows.size != other_rows.size or (
        model_rows.named
        and other_rows.named
        and not np.array_equal(model_rows.ids.values, other_rows.ids.values)
    ):
        raise InputError(
            f"the model has {model_rows.size} items and what is blended in {other_rows.size}, or other ones.",
            hint="Give both a row for every item of the catalogue, and item_ids= where orders differ.",
        )
    if not (model_rows.named and other_rows.named):
        return np.arange(model_rows.size)
    row_of_code = np.empty(other_rows.size, dtype=np.int64)
    row_of_code[other_rows.rank] = np.arange(other_rows.size)
    return np.asarray(row_of_code[model_rows.rank])


def _rows_of_users(model: Factors, other: Factors) -> Int:
    """The row of each of the model's users in the other matrix, -1 where it has none."""
    other.user_rows.ids.same_kind(model.user_rows.ids, what="user")
    ids = model.user_rows.ids.values[model.user_rows.rank]
    codes = other.user_rows.ids.code_of(ids)
    row_of_code = np.empty(other.user_rows.size, dtype=np.int64)
    row_of_code[other.user_rows.rank] = np.arange(other.user_rows.size)
    return np.where(codes >= 0, row_of_code[codes], -1)


def _scale_to_unit_std(users: Float, items: Float) -> Float:
    """User factors that give each user's scores over all items a standard deviation of 1."""
    centred = items - items.mean(axis=0, dtype=np.float64)
    covariance = centred.T @ centred / max(len(items), 1)
    variance = np.einsum("ud,de,ue->u", users, covariance, users, optimize=True)
    std = np.sqrt(np.maximum(variance, 0.0))
    return np.asarray(users / np.where(std > 0, std, 1.0)[:, None])


def rerank(
    candidates: Any,
    other: Factors,
    k: int,
    *,
    alpha: float = 0.7,
) -> Lists:
    """Reorder lists by alpha * their score + (1 - alpha) * the score of `other`, and cut them to k.

    For models that only return lists. Both sides are divided by their standard deviation within the list;
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
    other_scores = np.zeros(len(case))
    step = max(1, _BLOCK_BYTES // (16 * other.items.shape[1]))
    for first in range(0, len(case), step):
        part = np.flatnonzero(known[first : first + step]) + first
        other_scores[part] = np.einsum("nd,nd->n", other.users[users[case[part]]], other.items[items[part]])
    score = alpha * _standardise_within_lists(lists.scores, case, len(lists.cases)) + (
        1 - alpha
    ) * _standardise_within_lists(other_scores, case, len(lists.cases))
    order = np.lexsort((lists.codes, -score, case))
    place = np.arange(len(case)) - lists.indptr[case]
    keep = place < k
    sizes = np.minimum(lists.sizes, k)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    return Lists(lists.cases, lists.items, indptr, lists.codes[order][keep], score[order][keep])


def _standardise_within_lists(values: Float, case: Int, n_lists: int) -> Float:
    """Values minus the mean of their list, divided by its standard deviation."""
    count = np.maximum(np.bincount(case, minlength=n_lists), 1)
    mean = np.bincount(case, weights=values, minlength=n_lists) / count
    std = np.sqrt(np.bincount(case, weights=(values - mean[case]) ** 2, minlength=n_lists) / count)
    return np.asarray((values - mean[case]) / np.where(std > 0, std, 1.0)[case])
