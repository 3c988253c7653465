"""Recommenders a model has to beat: what is popular, what was popular lately, chance, and similar items.

Each is a source like any model, so the same engine ranks and counts it. Popularity and content profiles are
factors, so no users x items or items x items matrix is made; chance comes as a seeded random ranking or as
its exact expectation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.decisions import AnyConventions, Conventions
from recsys.errors import InputError, check_choice
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.results import Evaluation
from recsys.inputs import read_interactions
from recsys.inputs.containers import as_csr
from recsys.inputs.ids import encode, ids_from_sequence
from recsys.inputs.timestamps import UNITS, read_times, to_seconds
from recsys.metrics.attributes import popular_head
from recsys.models.rerankers import rows_of_history, unit_rows, user_profiles
from recsys.ranks.sources import Factors, RandomScores, Scores
from recsys.records.arrays import Array, Float, Ids, Int, Interactions, count_entries
from recsys.records.checks import to_floats

__all__ = [
    "ItemScores",
    "item_scores_of",
    "popular_head",
    "popularity",
    "random_expectation",
    "shuffled",
    "similar_items",
    "training_counts",
    "with_fallback",
]

_AGGREGATIONS = ("mean", "sum", "max")


class ItemScores(NamedTuple):
    """One number per item; `ids` are sorted, and row numbers where items have no ids."""

    ids: Array
    values: Float


def training_counts(
    train: Any,
    *,
    half_life: float | str | None = None,
    now: float | None = None,
    unit: str | None = None,
    catalogue: Iterable[Any] | None = None,
) -> ItemScores:
    """Return how often each item was taken; with `half_life`, an event of that age counts half.

    A pair that occurs n times counts n times; with `half_life` it counts once, at the time of its first row.

    Args:
        train: the training interactions, with times where `half_life` is given.
        half_life: the age at which an event counts half, in the unit of the times (dates: seconds), or a
            length such as "7d"; None: all count fully.
        now: the time ages are counted from; by default that of the newest event.
        unit: what numeric times count since 1970 ("s", "ms", "us" or "ns"), where half_life is a length.
        catalogue: all item ids; by default those of `train`.

    >>> training_counts({"ann": ["a", "b"], "bob": ["b"]}).values.tolist()
    [1.0, 2.0]
    >>> import pandas as pd
    >>> events = pd.DataFrame({"user": [1, 2, 3], "item": ["a", "a", "b"], "timestamp": [0, 10, 20]})
    >>> training_counts(events, half_life=10).values.tolist()
    [0.75, 1.0]
    """
    known = read_interactions(train, table="train")
    weights = known.counts if half_life is None else _recency_weights(known, half_life, now, unit)
    values = np.bincount(known.codes, weights=weights, minlength=len(known.items)).astype(np.float64)
    if catalogue is None:
        return ItemScores(known.items.values, values)
    catalogue_items = ids_from_sequence(list(catalogue), table="catalogue", column="item")
    ids, _ = encode(catalogue_items, table="catalogue", column="item")
    codes = known.items.code_of(ids.values)
    return ItemScores(ids.values, np.where(codes >= 0, values[codes], 0.0))


def _recency_weights(
    known: Interactions, half_life: float | str, now: float | None, unit: str | None
) -> Float:
    if known.times is None:
        raise InputError(
            "recency needs times, and the training table has none.", table="train", column="time"
        )
    if isinstance(half_life, str):
        clock = read_times(np.asarray(known.times), "time", unit=unit)
        ticks = clock.length(half_life, what="half_life")
        half_life = ticks if clock.kind == "number" else ticks * (clock.tick or 1) / UNITS["s"]
    if not half_life > 0:
        raise InputError(f"half_life={half_life!r} is not a positive number.", hint="Such as 30 * 86400.")
    times = to_seconds(known.times)
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
    break_ties: bool = True,
) -> Factors:
    """Return the same ranking for everyone, by one number per item: counts, sales, a recency-weighted count.

    Equal numbers are ordered by item id, as part of the definition. `break_ties=False` keeps them equal, for
    `conventions={"ties": "expected"}`.

    >>> import recsys
    >>> floor = popularity([5, 9, 2], users=["ann", "bob"])
    >>> recsys.recommend(floor, 2, seen={"ann": [1]}).codes.tolist()
    [0, 2, 1, 0]
    """
    ids, values = item_scores_of(scores)
    if np.isnan(values).any() or np.isinf(values).any():
        raise InputError("an item's popularity is missing or infinite.", hint="Give every item a number.")
    item_factor = values
    if break_ties:
        item_factor = np.empty(len(values))
        item_factor[np.lexsort((np.arange(len(values)), -values))] = np.arange(len(values), 0, -1)
    user_ids = list(users)
    return Factors(np.ones((len(user_ids), 1)), item_factor[:, None], user_ids=user_ids, item_ids=ids)


def item_scores_of(given: Any) -> tuple[Array | None, Float]:
    """Sorted ids and one number per item, from ItemScores, a mapping, a Series or an array (no ids)."""
    if isinstance(given, ItemScores):
        return given.ids, given.values
    if hasattr(given, "columns"):
        raise InputError(
            f"one number per item came as a table with the columns {', '.join(map(str, given.columns))}.",
            table="popularity",
            hint="Pass one column by item: table.set_index('item')['count'], a dict or an array.",
        )
    if hasattr(given, "items"):
        pairs = list(given.items())
        names = ids_from_sequence([name for name, _ in pairs], table="popularity", column="item")
        ids, codes = encode(names, table="popularity", column="item")
        if len(ids) != len(pairs):
            raise InputError("an item has two popularities.", table="popularity", column="item")
        values = np.empty(len(pairs))
        values[codes] = _numbers([number for _, number in pairs])
        return ids.values, values
    values = _numbers(given)
    if len(values) == 0:
        raise InputError("popularity came without a number, expected one per item.")
    return None, values


def _numbers(given: Any) -> Float:
    """Return one number per item."""
    try:
        values = np.asarray(given, dtype=np.float64)
    except Exception as error:  # noqa: BLE001 - tensors and frames raise errors of their own libraries
        raise InputError(
            f"popularity came as {type(given).__name__} that holds something other than numbers ({error}).",
            table="popularity",
            hint="Pass {item: number}, or one number per item.",
        ) from None
    if values.ndim != 1:
        raise InputError(f"popularity came with shape {values.shape}, expected one number per item.")
    return values


def with_fallback(model: Factors, train: Any, *, below: int = 3, fallback: Any = None) -> Factors:
    """Return the model for users with enough training interactions, popularity for all others.

    The others are users with fewer than `below` and users that only `train` knows; if there are any and the
    model has ids, users in neither, too.

    Args:
        model: user and item factors.
        train: the training interactions.
        below: a user with fewer of them gets the fallback.
        fallback: {item: number}, or one number per item; by default how often each item was taken in `train`.

    >>> import recsys
    >>> model = Factors([[1.0], [1.0]], [[0.1], [0.3], [0.2]])
    >>> mixed = with_fallback(model, {0: [0, 1, 2], 1: [0], 2: [0]})
    >>> recsys.recommend(mixed, 1).codes.tolist()
    [1, 0, 0]
    """
    known = read_interactions(train, table="train")
    model.check_ids(known, "train", users=False)
    users, items = model.user_rows, model.item_rows
    own_ids = items.ids.values[items.rank]
    scores = training_counts(known, catalogue=own_ids.tolist()) if fallback is None else fallback
    popular = popularity(scores, users=[0])
    by_row = np.asarray(popular.items, dtype=np.float64)[popular.item_rows.row_of(own_ids)]
    if users.named:
        ids = np.union1d(users.ids.values, known.cases.values)
    else:
        known.cases.same_kind(Ids(np.arange(1)), what="user")
        ids = np.arange(max(users.size, int(known.cases.values.max(initial=-1)) + 1))
    row, warm = users.row_of(ids), count_entries(known, Ids(ids)) >= below
    warm &= row >= 0
    bias = 0.0 if model.item_bias is None else np.asarray(model.item_bias, dtype=np.float64)
    parts = [np.where(warm[:, None], model.users[row], 0.0), warm[:, None] * 1.0, ~warm[:, None] * 1.0]
    own = [model.items, np.broadcast_to(bias, len(by_row))[:, None], by_row]
    mixed = Factors(
        np.hstack(parts),
        np.hstack(own),
        user_ids=ids if users.named else None,
        item_ids=own_ids if items.named else None,
    )
    return mixed if warm.all() or not users.named else mixed.for_any_user(int(np.argmin(warm)))


def shuffled(
    n_items: int | None = None,
    *,
    users: Iterable[Any],
    item_ids: Iterable[Any] | None = None,
    seed: int = 0,
) -> RandomScores:
    """Return a random ranking for each user, which depends on the seed, the user and the items only.

    >>> import recsys
    >>> draw, again = shuffled(6, users=[1, 2], seed=3), shuffled(6, users=[2, 1], seed=3)
    >>> recsys.recommend(draw, 6).codes.tolist() == recsys.recommend(again, 6).codes.tolist()
    True
    """
    items = None if item_ids is None else list(item_ids)
    return RandomScores(_catalogue_size(n_items, items), user_ids=users, item_ids=items, seed=seed)


def _catalogue_size(n_items: int | None, items: list[Any] | None) -> int:
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
    """Return the exact mean of each metric over random rankings: all candidates tie, averaged over orders.

    >>> random_expectation({"ann": {0, 1}}, ["recall@5"], n_items=50)["recall@5"]
    0.1
    """
    known = read_interactions(truth)
    items = None if item_ids is None else list(item_ids)
    users = known.cases.values
    all_tied = Factors(
        np.zeros((len(users), 1)),
        np.zeros((_catalogue_size(n_items, items), 1)),
        user_ids=users,
        item_ids=items,
    )
    expected = Conventions.of(conventions).but(ties="expected")
    return evaluate(all_tied, known, metrics, k=k, seen=seen, conventions=expected)


def similar_items(
    history: Any,
    *,
    embeddings: Any = None,
    similarity: Any = None,
    item_ids: Iterable[Any] | None = None,
    aggregation: str = "mean",
) -> Factors | Scores:
    """Rank items by their similarity to those the user took.

    With `embeddings` the mean of cosines is a product with the user's profile, so no items x items matrix is
    made. Users without a usable history are not in the source; they get no list.

    Args:
        history: who took what.
        embeddings: one row per item; similarity is the cosine.
        similarity: an items x items matrix, instead of `embeddings`.
        item_ids: the id of each row; by default items are row numbers.
        aggregation: "mean", "sum" or "max" of the similarities to the items taken.

    >>> import recsys
    >>> source = similar_items({0: [0]}, embeddings=[[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]])
    >>> recsys.recommend(source, 2, seen={0: [0]}).codes.tolist()
    [2, 1]
    """
    check_choice("aggregation", aggregation, _AGGREGATIONS)
    if (embeddings is None) == (similarity is None):
        raise InputError("similar items come from embeddings= or from similarity=, one of the two.")
    known = read_interactions(history, table="history")
    items = None if item_ids is None else list(item_ids)
    if embeddings is not None and aggregation != "max":
        unit = unit_rows(embeddings)
        profiles = user_profiles(known, unit, item_ids=items)
        keep = Ids(profiles.without).code_of(profiles.ids) < 0
        return Factors(profiles.vectors[keep], unit, user_ids=profiles.ids[keep], item_ids=items)
    if embeddings is not None:
        return _similarity_to_history(known, unit_rows(embeddings), items, aggregation, cosine=True)
    hint = "It is items x items; pass embeddings= for items x dimensions."
    if hasattr(similarity, "tocsr"):
        rows = as_csr(similarity, table="similarity")
    else:
        rows = to_floats(similarity, "the similarity matrix", hint)
    if rows.ndim != 2 or rows.shape[0] != rows.shape[1]:
        raise InputError(f"the similarity matrix has shape {rows.shape}.", hint=hint)
    return _similarity_to_history(known, rows, items, aggregation, cosine=False)


def _similarity_to_history(
    known: Interactions, rows: Any, items: list[Any] | None, aggregation: str, *, cosine: bool
) -> Scores:
    from scipy.sparse import csr_array

    row = rows_of_history(known, rows, items)
    case = np.repeat(np.arange(len(known.cases)), known.sizes)[row >= 0]
    row = row[row >= 0]
    n_used = np.bincount(case, minlength=len(known.cases))
    used_cases = np.flatnonzero(n_used)
    indptr = np.concatenate([[0], np.cumsum(n_used)[used_cases]])
    taken = csr_array((np.ones(len(row)), row, indptr), shape=(len(used_cases), rows.shape[0]))

    def largest_similarity(users: Int) -> Float:
        out = np.empty((len(users), rows.shape[0]))
        for place, user in enumerate(users.tolist()):
            own = taken.indices[taken.indptr[user] : taken.indptr[user + 1]]
            similarities = rows[own] @ rows.T if cosine else rows[own]
            out[place] = _dense(similarities).max(axis=0)
        return out

    def mean_or_sum(users: Int) -> Float:
        total = _dense(taken[users] @ rows)
        return total / n_used[used_cases][users][:, None] if aggregation == "mean" else total

    block = largest_similarity if aggregation == "max" else mean_or_sum
    user_ids = known.cases.values[used_cases]
    return Scores(block, n_users=len(user_ids), n_items=rows.shape[0], user_ids=user_ids, item_ids=items)


def _dense(matrix: Any) -> Float:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)


def __dir__() -> list[str]:
    return __all__
