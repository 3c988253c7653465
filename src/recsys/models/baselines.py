"""Recommenders a model has to beat: what is popular, what was popular lately, chance, and similar items.

Each is a source like any model, so the same engine ranks and counts it. Popularity and content profiles are
factors, which keeps them free of users x items and items x items matrices; chance comes as one seeded draw,
and as its exact expectation without any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.decisions import AnyConventions, Conventions
from recsys.errors import InputError, UnknownNameError
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.results import Evaluation
from recsys.inputs.frames import read_interactions
from recsys.inputs.ids import encode, of_sequence
from recsys.inputs.timestamps import seconds_of
from recsys.models.rerankers.profiles import rows_of_history, unit_rows, user_profiles
from recsys.ranks.sources import Factors, Scores
from recsys.stats.resampling import GOLDEN, unit_keys
from recsys.types import Array, Float, Ids, Int, Interactions

__all__ = [
    "ItemScores",
    "item_scores_of",
    "popularity",
    "random_expectation",
    "shuffled",
    "similar_items",
    "training_counts",
]

_AGGREGATIONS = ("mean", "sum", "max")


class ItemScores(NamedTuple):
    """One number an item; `ids` are sorted, and row numbers where items have no ids."""

    ids: Array
    values: Float


def training_counts(
    train: Any,
    *,
    half_life: float | None = None,
    now: float | None = None,
    catalogue: Iterable[Any] | None = None,
) -> ItemScores:
    """How often each item was taken; with `half_life`, an event of that age counts half.

    A pair that occurs several times counts as often, and with `half_life` once, at its first row's time.

    Args:
        train: the training interactions, with times where `half_life` is given.
        half_life: the age at which an event counts half, in the unit of the times (dates: seconds); None: all
            count fully.
        now: the time ages are counted from; the newest event without.
        catalogue: all item ids; without, those of `train`.

    >>> training_counts({"ann": ["a", "b"], "bob": ["b"]}).values.tolist()
    [1.0, 2.0]
    >>> import pandas as pd
    >>> events = pd.DataFrame({"user": [1, 2, 3], "item": ["a", "a", "b"], "timestamp": [0, 10, 20]})
    >>> training_counts(events, half_life=10).values.tolist()
    [0.75, 1.0]
    """
    known = read_interactions(train, table="train")
    weights = known.counts if half_life is None else _ages(known, half_life, now)
    values = np.bincount(known.codes, weights=weights, minlength=len(known.items)).astype(np.float64)
    if catalogue is None:
        return ItemScores(known.items.values, values)
    listed = of_sequence(list(catalogue), table="catalogue", column="item")
    ids, _ = encode(listed, table="catalogue", column="item")
    at = known.items.code_of(ids.values)
    return ItemScores(ids.values, np.where(at >= 0, values[at], 0.0))


def _ages(known: Interactions, half_life: float, now: float | None) -> Float:
    if known.times is None:
        raise InputError(
            "recency needs times, and the training table has none.", table="train", column="time"
        )
    if not half_life > 0:
        raise InputError(f"half_life={half_life!r} is not a positive number.", hint="Such as 30 * 86400.")
    times = seconds_of(known.times)
    if np.isnan(times).any():
        n_missing = int(np.isnan(times).sum())
        raise InputError(
            f"{n_missing:,} events have no time, and recency needs it.", table="train", column="time"
        )
    latest = float(times.max(initial=0)) if now is None else float(now)
    if len(times) and float(times.max()) > latest:
        raise InputError(
            f"an event is from {times.max()}, after now={latest:g}.", table="train", column="time"
        )
    return np.asarray(np.exp2(-(latest - times) / half_life))


def popularity(
    scores: ItemScores | Mapping[Any, float] | Sequence[float] | Array,
    *,
    users: Iterable[Any],
    settle_ties: bool = True,
) -> Factors:
    """The same ranking for everyone, by a number an item has: counts, sales, a recency-weighted count.

    Equal numbers go by item id, as part of the definition. `settle_ties=False` keeps them equal, for
    `conventions={"ties": "expected"}`.

    >>> import recsys
    >>> floor = popularity([5, 9, 2], users=["ann", "bob"])
    >>> recsys.recommend(floor, 2, seen={"ann": [1]}).codes.tolist()
    [0, 2, 1, 0]
    """
    ids, values = item_scores_of(scores)
    if np.isnan(values).any() or np.isinf(values).any():
        raise InputError("an item's popularity is missing or infinite.", hint="Give every item a number.")
    worth = values
    if settle_ties:
        worth = np.empty(len(values))
        worth[np.lexsort((np.arange(len(values)), -values))] = np.arange(len(values), 0, -1)
    cases = list(users)
    return Factors(np.ones((len(cases), 1)), worth[:, None], user_ids=cases, item_ids=ids)


def item_scores_of(given: Any) -> tuple[Array | None, Float]:
    """Sorted ids and a number each, from ItemScores, a mapping, a Series or an array by row (no ids)."""
    if isinstance(given, ItemScores):
        return given.ids, given.values
    if hasattr(given, "columns"):
        raise InputError(
            f"a number an item came as a table with the columns {', '.join(map(str, given.columns))}.",
            table="popularity",
            hint="Pass one column by item: table.set_index('item')['count'], a dict or an array.",
        )
    if hasattr(given, "items"):
        pairs = list(given.items())
        ids, codes = encode(
            of_sequence([p[0] for p in pairs], table="popularity", column="item"),
            table="popularity",
            column="item",
        )
        if len(ids) != len(pairs):
            raise InputError("an item has two popularities.", table="popularity", column="item")
        values = np.empty(len(pairs))
        values[codes] = [float(p[1]) for p in pairs]
        return ids.values, values
    values = np.asarray(given, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0:
        raise InputError(f"popularity came with shape {values.shape}, expected one number an item.")
    return None, values


def shuffled(
    n_items: int | None = None,
    *,
    users: Iterable[Any],
    item_ids: Iterable[Any] | None = None,
    seed: int = 0,
) -> Scores:
    """A random ranking for each user; a user's own depends on the seed, the user and the items only.

    >>> import recsys
    >>> draw, again = shuffled(6, users=[1, 2], seed=3), shuffled(6, users=[2, 1], seed=3)
    >>> recsys.recommend(draw, 6).codes.tolist() == recsys.recommend(again, 6).codes.tolist()
    True
    """
    cases, items = list(users), None if item_ids is None else list(item_ids)
    size = _n_items(n_items, items)
    item_values = np.arange(size) if items is None else of_sequence(items, table="items", column="item")
    rows = of_sequence(cases, table="users", column="user")
    salt = unit_keys(np.array([seed], dtype=np.int64))
    user_keys, item_keys = unit_keys(rows) + salt, unit_keys(item_values) * GOLDEN

    def block(chosen: Int) -> Float:
        words = unit_keys((user_keys[chosen][:, None] + item_keys).view(np.int64))
        return np.asarray((words >> np.uint64(11)) * 2.0**-53)

    return Scores(block, n_users=len(cases), n_items=size, user_ids=cases, item_ids=items)


def _n_items(n_items: int | None, items: list[Any] | None) -> int:
    if items is not None:
        return len(items)
    if n_items is None or isinstance(n_items, bool) or int(n_items) != n_items or n_items < 1:
        raise InputError(f"n_items={n_items!r} is not a number of items.", hint="Pass how many there are.")
    return int(n_items)


def random_expectation(
    truth: Any,
    metrics: Any = None,
    *,
    n_items: int | None = None,
    item_ids: Iterable[Any] | None = None,
    k: int | Sequence[int] | None = None,
    seen: Any = None,
    conventions: AnyConventions = None,
) -> Evaluation:
    """What a random ranking gets on average, exactly: every candidate ties and ties are averaged over.

    >>> random_expectation({"ann": {0, 1}}, ["recall@5"], n_items=50)["recall@5"]
    0.1
    """
    known = read_interactions(truth)
    items = None if item_ids is None else list(item_ids)
    users = known.cases.values
    level = Factors(
        np.zeros((len(users), 1)), np.zeros((_n_items(n_items, items), 1)), user_ids=users, item_ids=items
    )
    chosen = Conventions.of(conventions).but(ties="expected")
    return evaluate(level, known, metrics, k=k, seen=seen, conventions=chosen)


def similar_items(
    history: Any,
    *,
    embeddings: Any = None,
    similarity: Any = None,
    item_ids: Iterable[Any] | None = None,
    aggregation: str = "mean",
) -> Factors | Scores:
    """Items like those a user took: the mean (sum, largest) similarity to them.

    With `embeddings` the mean of cosines is a product with the user's profile, so no items x items matrix is
    made. Users without a usable history are not in the source; they get no list.

    >>> import recsys
    >>> source = similar_items({0: [0]}, embeddings=[[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]])
    >>> recsys.recommend(source, 2, seen={0: [0]}).codes.tolist()
    [2, 1]
    """
    if aggregation not in _AGGREGATIONS:
        raise UnknownNameError("aggregation", aggregation, _AGGREGATIONS)
    if (embeddings is None) == (similarity is None):
        raise InputError("similar items come from embeddings= or from similarity=, one of the two.")
    known = read_interactions(history, table="history")
    items = None if item_ids is None else list(item_ids)
    if embeddings is not None and aggregation != "max":
        unit = unit_rows(embeddings)
        made = user_profiles(known, unit, item_ids=items)
        keep = Ids(made.without).code_of(made.ids) < 0
        return Factors(made.vectors[keep], unit, user_ids=made.ids[keep], item_ids=items)
    rows = unit_rows(embeddings) if embeddings is not None else _square(similarity)
    return _by_blocks(known, rows, items, aggregation, cosine=embeddings is not None)


def _square(similarity: Any) -> Any:
    if getattr(similarity, "ndim", 2) != 2 or similarity.shape[0] != similarity.shape[1]:
        raise InputError(
            f"the similarity matrix has shape {getattr(similarity, 'shape', None)}.",
            hint="It is items x items; pass embeddings= for items x dimensions.",
        )
    return similarity.tocsr() if hasattr(similarity, "tocsr") else np.asarray(similarity, dtype=np.float64)


def _by_blocks(
    known: Interactions, rows: Any, items: list[Any] | None, aggregation: str, *, cosine: bool
) -> Scores:
    from scipy.sparse import csr_array

    at = rows_of_history(known, rows, items)
    case = np.repeat(np.arange(len(known.cases)), known.sizes)[at >= 0]
    at = at[at >= 0]
    n_used = np.bincount(case, minlength=len(known.cases))
    inside = np.flatnonzero(n_used)
    taken = csr_array((np.ones(len(at)), at, np.concatenate([[0], np.cumsum(n_used)[inside]])),
                      shape=(len(inside), rows.shape[0]))  # fmt: skip

    def largest(chosen: Int) -> Float:
        out = np.empty((len(chosen), rows.shape[0]))
        for place, user in enumerate(chosen.tolist()):
            own = taken.indices[taken.indptr[user] : taken.indptr[user + 1]]
            held = rows[own] @ rows.T if cosine else rows[own]
            out[place] = _dense(held).max(axis=0)
        return out

    def added(chosen: Int) -> Float:
        total = _dense(taken[chosen] @ rows)
        return total / n_used[inside][chosen][:, None] if aggregation == "mean" else total

    users = known.cases.values[inside]
    block = largest if aggregation == "max" else added
    return Scores(block, n_users=len(users), n_items=rows.shape[0], user_ids=users, item_ids=items)


def _dense(matrix: Any) -> Float:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)


def __dir__() -> list[str]:
    return __all__
