"""Re-ranking: blending a model with content, diversifying lists, and the trade-off between the two.

A blend is alpha * model + (1 - alpha) * content. A blend of factors is again factors: the weighted matrices
side by side. The standard deviation of a user's scores follows from the items' covariance. So the whole
catalogue is ranked exactly, cold items included, and nothing of size users x items is made. A row of zeros or
NaN is an item without an embedding: it is left out of a user's profile, and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import InputError, UnknownNameError, check_choice
from recsys.evaluation.evaluate import evaluate, recommend
from recsys.inputs import read_interactions, read_lists
from recsys.inputs.ids import encode, ids_from_sequence
from recsys.metrics.registry import parse_all
from recsys.ranks.sources import Factors
from recsys.ranks.sources.source import IdRows
from recsys.records.arrays import Array, Float, Ids, Int, Interactions, Lists

__all__ = [
    "Profiles",
    "Sweep",
    "blend",
    "content",
    "cosine_matrix",
    "diversify",
    "rerank",
    "sweep",
    "unit_rows",
    "user_profiles",
    "vector_rows",
]

SCALES = ("std", "none")
_BLOCK_BYTES = 64 << 20


class Profiles(NamedTuple):
    """One content vector per user; `n_missing` entries had no embedding, users in `without` no other."""

    ids: Array
    vectors: Float
    n_missing: int
    without: Array


def vector_rows(embeddings: Any) -> Float:
    """Return a matrix of float64; rows of zeros or NaN are missing embeddings and become zeros."""
    try:
        rows = np.array(embeddings, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the embeddings are not a matrix of numbers: {error}.", table="embeddings"
        ) from error
    if rows.ndim != 2:
        raise InputError(f"the embeddings must be a matrix; got shape {rows.shape}.", table="embeddings")
    if np.isinf(rows).any():
        raise InputError("an embedding holds an infinite number.", table="embeddings")
    rows[np.isnan(rows).any(axis=1)] = 0.0
    return rows


def unit_rows(embeddings: Any) -> Float:
    """Return a matrix of float64 with rows of length 1; missing embeddings are zeros."""
    rows = vector_rows(embeddings)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1.0))


def cosine_matrix(embeddings: Any) -> Float:
    """Return the cosine of every pair of rows: an items x items matrix, so for small catalogues only."""
    rows = unit_rows(embeddings)
    return np.asarray(rows @ rows.T)


def user_profiles(
    history: Any,
    embeddings: Any,
    *,
    item_ids: Iterable[Any] | None = None,
    weighted: bool = False,
    aggregation: str = "mean",
) -> Profiles:
    """Return the (weighted) mean of the embeddings of each user's items, or their maximum per dimension.

    Args:
        history: who took what; grades are the weights where `weighted`.
        embeddings: one row per item.
        item_ids: the id of each row; by default items are row numbers.
        weighted: weigh each item by its grade.
        aggregation: "mean" or "max".

    >>> profiles = user_profiles({"ann": [0, 1], "bob": [2]}, [[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    >>> profiles.vectors.round(3).tolist(), profiles.n_missing, profiles.without.tolist()
    ([[0.5, 1.0], [0.0, 0.0]], 1, ['bob'])
    """
    check_choice("aggregation", aggregation, ("mean", "max"))
    known = read_interactions(history, table="history")
    rows = vector_rows(embeddings)
    row = rows_of_history(known, rows, item_ids)
    present = row >= 0
    present[present] = rows[row[present]].any(axis=1)
    row, case = row[present], np.repeat(np.arange(len(known.cases)), known.sizes)[present]
    n_used = np.bincount(case, minlength=len(known.cases))
    indptr = np.concatenate([[0], np.cumsum(n_used)])
    if aggregation == "max":
        vectors = np.zeros((len(n_used), rows.shape[1]))
        for start in range(0, len(n_used), 4096):
            used_cases = np.flatnonzero(n_used[start : start + 4096]) + start
            if len(used_cases):
                first = indptr[used_cases[0]]
                taken = rows[row[first : indptr[used_cases[-1] + 1]]]
                vectors[used_cases] = np.maximum.reduceat(taken, indptr[used_cases] - first, axis=0)
    else:
        from scipy.sparse import csr_array

        weights = known.grades[present] if weighted and known.grades is not None else np.ones(len(row))
        total = np.bincount(case, weights=weights, minlength=len(n_used))
        share = weights / np.where(total > 0, total, 1.0)[case]
        vectors = np.asarray(csr_array((share, row, indptr), shape=(len(n_used), len(rows))) @ rows)
    return Profiles(known.cases.values, vectors, int((~present).sum()), known.cases.values[n_used == 0])


def rows_of_history(known: Interactions, rows: Any, item_ids: Iterable[Any] | None) -> Int:
    """Return the row of `rows` that belongs to each history entry, -1 where there is none."""
    if item_ids is None:
        if known.items.kind != "int":
            raise InputError("items are texts and the embeddings have no ids.", hint="Pass item_ids=.")
        numbers = known.items.values
        return np.where((numbers >= 0) & (numbers < rows.shape[0]), numbers, -1)[known.codes]
    listed = ids_from_sequence(list(item_ids), table="embeddings", column="item")
    ids, codes = encode(listed, table="embeddings", column="item")
    if len(listed) != rows.shape[0] or len(ids) != rows.shape[0]:
        raise InputError(f"item_ids holds {len(ids)} different ids for {rows.shape[0]} rows of embeddings.")
    if len(ids) == 0:
        return np.full(len(known.codes), -1)
    ids.same_kind(known.items, what="item")
    code = ids.code_of(known.items.values)
    return np.where(code >= 0, np.argsort(codes)[code], -1)[known.codes]


def content(
    history: Any,
    embeddings: Any,
    *,
    users: Iterable[Any] | None = None,
    item_ids: Iterable[Any] | None = None,
    weighted: bool = False,
) -> Factors:
    """Return items by how close they are to what a user took: the cosine with the user's profile.

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
    codes = Ids(profiles.ids).code_of(user_ids)
    rows = np.where((codes >= 0)[:, None], vectors[codes], 0.0)
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
    check_choice("scale", scale, SCALES)
    mine, theirs = model.item_rows, other.item_rows
    both_named = mine.named and theirs.named
    if mine.size != theirs.size or (both_named and not np.array_equal(mine.ids.values, theirs.ids.values)):
        raise InputError(
            f"the model has {mine.size} items and what is blended in {theirs.size}, or other ones.",
            hint="Give both a row for every item of the catalogue, and item_ids= where orders differ.",
        )
    item_rows = _rows_by_id(theirs, mine) if both_named else np.arange(mine.size)
    other.user_rows.ids.same_kind(model.user_rows.ids, what="user")
    user_rows = _rows_by_id(other.user_rows, model.user_rows)
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


def _ids_of_rows(rows: IdRows) -> Array | None:
    return rows.ids.values[rows.rank] if rows.named else None


def _rows_by_id(rows: IdRows, wanted: IdRows) -> Int:
    """Return the row of `rows` with the id of each row of `wanted`, -1 where there is none."""
    codes = rows.ids.code_of(wanted.ids.values[wanted.rank])
    return np.where(codes >= 0, np.argsort(rows.rank)[codes], -1)


def _scale_to_unit_std(users: Float, items: Float) -> Float:
    """User factors that give each user's scores over all items a standard deviation of 1."""
    centred = items - items.mean(axis=0, dtype=np.float64)
    covariance = centred.T @ centred / max(len(items), 1)
    variance = np.einsum("ud,de,ue->u", users, covariance, users, optimize=True)
    std = np.sqrt(np.maximum(variance, 0.0))
    return np.asarray(users / np.where(std > 0, std, 1.0)[:, None])


def rerank(candidates: Any, other: Factors, k: int, *, alpha: float = 0.7) -> Lists:
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
    other.check_ids(lists, "lists")
    users = other.user_rows.row_of(lists.cases.values)
    items = other.item_rows.row_of(lists.items.values)[lists.codes]
    known = (users[case] >= 0) & (items >= 0)
    other_scores = np.zeros(len(case))
    step = max(1, _BLOCK_BYTES // (16 * other.items.shape[1]))
    for first in range(0, len(case), step):
        part = np.flatnonzero(known[first : first + step]) + first
        other_scores[part] = np.einsum("nd,nd->n", other.users[users[case[part]]], other.items[items[part]])
    sides = [_standardise_within_lists(s, case, len(lists.cases)) for s in (lists.scores, other_scores)]
    score = alpha * sides[0] + (1 - alpha) * sides[1]
    order = np.lexsort((lists.codes, -score, case))
    return _first_k(Lists(lists.cases, lists.items, lists.indptr, lists.codes[order], score[order]), k)


def _standardise_within_lists(values: Float, case: Int, n_lists: int) -> Float:
    """Return values minus the mean of their list, divided by its standard deviation."""
    count = np.maximum(np.bincount(case, minlength=n_lists), 1)
    mean = np.bincount(case, weights=values, minlength=n_lists) / count
    std = np.sqrt(np.bincount(case, weights=(values - mean[case]) ** 2, minlength=n_lists) / count)
    return np.asarray((values - mean[case]) / np.where(std > 0, std, 1.0)[case])


def diversify(
    lists: Any, embeddings: Any, k: int, *, diversity: float = 0.3, item_ids: Iterable[Any] | None = None
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
    row_of_item = IdRows(len(vectors), ids, what="item").row_of(pool.items.values)
    relevance = _relevance(pool)
    indptr = np.concatenate([[0], np.cumsum(np.minimum(pool.sizes, k))]).astype(np.int64)
    picked = np.empty(int(indptr[-1]), dtype=np.int64)
    longest = int(pool.sizes.max(initial=1))
    step = max(1, _BLOCK_BYTES // (8 * longest * max(vectors.shape[1], 1)))
    for first in range(0, len(pool.cases), step):
        # A block of users at once, one pick per user and round; users x places of the longest list.
        cases = np.arange(first, min(first + step, len(pool.cases)))
        sizes = pool.sizes[cases]
        width = int(sizes.max(initial=0))
        free = np.arange(width) < sizes[:, None]
        at = np.where(free, pool.indptr[cases][:, None] + np.arange(width), 0)
        rows = np.where(free, row_of_item[pool.codes[at]], -1)
        block = np.where((rows >= 0)[:, :, None], vectors[np.maximum(rows, 0)], 0.0)
        worth = (1 - diversity) * np.where(free, relevance[at], 0.0)
        similarity, everyone = np.full(at.shape, -np.inf), np.arange(len(cases))
        chosen = np.full((len(cases), min(k, width)), -1, dtype=np.int64)
        for place in range(chosen.shape[1]):
            penalty = np.zeros(at.shape) if place == 0 else similarity
            best = np.where(free, worth - diversity * penalty, -np.inf).argmax(axis=1)
            has_item = free[everyone, best]
            chosen[has_item, place] = at[has_item, best[has_item]]
            free[everyone, best] = False
            similarity = np.maximum(similarity, np.einsum("ud,und->un", block[everyone, best], block))
        picked[indptr[cases[0]] : indptr[cases[-1] + 1]] = chosen[chosen >= 0]
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
        low[nonempty] = np.minimum.reduceat(scores, starts)
        high[nonempty] = np.maximum.reduceat(scores, starts)
    width = np.where(high > low, high - low, 1.0)
    return np.asarray((scores - low[case]) / width[case])


@dataclass(frozen=True, eq=False)
class Sweep:
    """One row per setting in `frame`: alpha, diversity and every metric; `front` has the best trade-offs.

    `lower` names the metrics for which lower is better.
    """

    frame: Any
    accuracy: str
    lower: frozenset[str] = frozenset()

    def front(self, other: str) -> Any:
        """Return the settings that no other setting beats both in accuracy and in the metric `other`."""
        a, b = self._as_higher_is_better(self.accuracy), self._as_higher_is_better(other)
        beaten = ((a[:, None] <= a) & (b[:, None] <= b) & ((a[:, None] < a) | (b[:, None] < b))).any(axis=1)
        return self.frame[~beaten]

    def rising(self, metrics: Sequence[str]) -> Any:
        """Return the settings at which all these metrics are better than the model alone (the first row)."""
        columns = [self._as_higher_is_better(name) for name in metrics]
        return self.frame[np.all([column > column[0] for column in columns], axis=0)]

    def _as_higher_is_better(self, name: str) -> Any:
        """Return a metric's column, with its sign changed where lower is better."""
        if name not in self.frame:
            raise UnknownNameError("metric of the sweep", name, map(str, self.frame))
        column = self.frame[name].to_numpy()
        return -column if name in self.lower else column

    def plot(self, other: str, *, every: bool = False, ax: Any = None) -> Any:
        """Accuracy over another metric, one point per setting: the best trade-offs, or `every` setting."""
        from recsys.report import figures

        shown = self.frame if every else self.front(other)
        points = {}
        for _, row in shown.iterrows():
            setting = f"alpha {row['alpha']:g}" + (f", MMR {row['diversity']:g}" if row["diversity"] else "")
            points[setting] = float(row[other]), float(row[self.accuracy])
        return figures.tradeoff(points, x=other, y=self.accuracy, ax=ax)

    def __repr__(self) -> str:
        return str(self.frame.to_string(index=False))


def sweep(
    model: Factors,
    other: Factors,
    truth: Any,
    metrics: str | Sequence[str] = ("recall@10", "ndcg@10"),
    *,
    k: int = 10,
    alphas: Sequence[float] = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.3, 0.0),
    diversities: Sequence[float] = (0.0,),
    embeddings: Any = None,
    item_ids: Iterable[Any] | None = None,
    seen: Any = None,
    pool: int = 100,
    **facts: Any,
) -> Sweep:
    """Return the trade-off curve: every blend and every strength of diversification, evaluated.

    Args:
        model: the model to re-rank.
        other: what to blend in.
        truth: what turned out to be relevant.
        metrics: what to evaluate; the first is the accuracy of the trade-off.
        k: the length of the lists.
        alphas: the blends; 1, the model alone, always comes first.
        diversities: the strengths of MMR; 0 leaves it out.
        embeddings: for MMR and metrics of diversity, one row per item; by default the items of `other`.
        item_ids: the id of each row of `embeddings`.
        seen: what users had already.
        pool: how many candidates MMR picks from, at least k.
        facts: what metrics need (train=, profiles=, catalogue=, …), passed on to evaluate.
    """
    import pandas as pd

    relevant = read_interactions(truth)
    history = None if seen is None else read_interactions(seen, table="seen")
    vectors = vector_rows(other.items if embeddings is None else embeddings)
    names = np.arange(len(vectors)) if item_ids is None else np.asarray(list(item_ids))
    has_vector = vectors.any(axis=1)
    facts["embeddings"] = (names[has_vector], vectors[has_vector])
    requests = parse_all(metrics, None)
    rows = []
    for alpha in dict.fromkeys([1.0, *alphas]):
        blended = model if alpha == 1.0 else blend(model, other, alpha)
        depth = max(pool, k) if any(diversities) else k
        candidates = recommend(blended, depth, users=relevant.cases.values, seen=history)
        for diversity in dict.fromkeys([0.0, *diversities]):
            shown = _first_k(candidates, k)
            if diversity:
                shown = diversify(candidates, vectors, k, diversity=diversity, item_ids=names)
            result = evaluate(shown, relevant, requests, **facts)
            rows.append({"alpha": alpha, "diversity": diversity, **result})
    lower = frozenset(str(request) for request in requests if request.metric.better == "lower")
    return Sweep(pd.DataFrame(rows), str(requests[0]), lower)


def _first_k(lists: Lists, k: int) -> Lists:
    """Return the first k of each list."""
    case = np.repeat(np.arange(len(lists.cases)), lists.sizes)
    keep = np.arange(len(lists.codes)) - lists.indptr[case] < k
    indptr = np.concatenate([[0], np.cumsum(np.minimum(lists.sizes, k))])
    scores = None if lists.scores is None else lists.scores[keep]
    return Lists(lists.cases, lists.items, indptr, lists.codes[keep], scores)


def __dir__() -> list[str]:
    return __all__
