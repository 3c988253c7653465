"""One user's recommendations, readable: names for numbers, hits marked, the history beside the list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from recsys.errors import ColumnError, IdTypeError, InputError, UnknownNameError
from recsys.evaluation.evaluate import recommend
from recsys.inputs.frames import ROLES
from recsys.ranks.sources import Factors, Scores, from_model
from recsys.types import Array

_SHOWN = ("product_name", "brand", "avg_star", "num_sold_time", "title", "name", "category", "genres")


def inspect_user_recommendations(
    u_id: Any,
    model: Any,
    mappings: Mapping[str, Any] | None = None,
    products_df: Any = None,
    k: int = 10,
    *,
    history: Iterable[Any] | None = None,
    truth: Iterable[Any] | None = None,
    exclude_seen: bool = True,
    columns: Iterable[str] | None = None,
) -> Any:
    """The k best items of a user as a frame, best first, with what is known about them.

    Args:
        u_id: the user, as people write it.
        model: anything with U and V, or user_factors and item_factors, or Factors, Scores, (U, V).
        mappings: {"user_to_idx": {user: row}, "idx_to_item": {row: item}}; without, the ids are the rows
            or those of the source.
        products_df: a table with the items' ids (a column such as product_id) and whatever is known.
        k: how many.
        history: what the user took before (ids): left out of the list, and shown beside it.
        truth: what turned out to be relevant (ids): marked in `hit`.
        exclude_seen: False keeps history items in the list; `seen` then marks them.
        columns: which columns of products_df to show; those usual for products without.

    `frame.attrs["history"]` is the whole history, newest last, with the same columns.

    >>> import pandas as pd
    >>> names = pd.DataFrame({"product_id": ["a", "b", "c"], "product_name": ["Soap", "Balm", "Oil"]})
    >>> maps = {"user_to_idx": {"ann": 0}, "idx_to_item": {0: "a", 1: "b", 2: "c"}}
    >>> shown = inspect_user_recommendations(
    ...     "ann", ([[1.0]], [[3.0], [1.0], [2.0]]), maps, names, k=2, history=["a"], truth={"b"}
    ... )
    >>> shown[["product_name", "hit", "history_product_name"]].values.tolist()
    [['Oil', False, 'Soap'], ['Balm', True, '']]
    """
    source, user, item_of = _located(model, mappings, u_id)
    taken = [] if history is None else list(history)
    rows = _rows_of(taken, item_of)
    seen = {user: rows} if rows and exclude_seen else None
    lists = recommend(source, k, users=[user], seen=seen)
    items = [item_of[int(c)] for c in lists.codes.tolist()]
    frame = described_list(
        items, products_df, scores=lists.scores, history=history, truth=truth, columns=columns
    )
    frame.attrs["user"] = u_id
    return frame


def described_list(
    items: list[Any],
    products_df: Any = None,
    *,
    scores: Any = None,
    history: Iterable[Any] | None = None,
    truth: Iterable[Any] | None = None,
    columns: Iterable[str] | None = None,
) -> Any:
    """A ready list as such a frame; arguments as in inspect_user_recommendations.

    >>> described_list(["b", "a"], history=["c"], truth={"a"})["hit"].tolist()
    [False, True]
    """
    taken = [] if history is None else list(history)
    wanted = set() if truth is None else set(truth)
    frame = _described(items, products_df, columns)
    frame.insert(0, "rank", np.arange(1, len(items) + 1))
    if scores is not None:
        frame["score"] = scores
    if truth is not None:
        frame["hit"] = [item in wanted for item in items]
    if taken:
        frame["seen"] = [item in set(taken) for item in items]
        before = _described(taken, products_df, columns)
        frame = _beside(frame, before.tail(len(items))[::-1])
        frame.attrs["history"] = before
    frame.attrs.update(n_history=len(taken), n_relevant=len(wanted))
    return frame


def _beside(frame: Any, before: Any) -> Any:
    """The newest of the history, newest first, in columns of their own; empty cells where it is shorter."""
    beside = before.reset_index(drop=True).add_prefix("history_").reindex(frame.index).astype(object)
    joined = frame.join(beside.where(beside.notna(), ""))
    joined.attrs = {}
    return joined


def _located(model: Any, mappings: Mapping[str, Any] | None, user: Any) -> tuple[Any, Any, Any]:
    """The source, the user as the source knows them, and the item of each code of its lists."""
    source = _source(model)
    if mappings is None:
        return source, user, source.item_rows.ids.values.tolist()
    for name in ("user_to_idx", "idx_to_item"):
        if name not in mappings:
            raise InputError(
                f"mappings has no {name!r}; it has {', '.join(map(str, mappings)) or 'nothing'}.",
                hint="Pass {'user_to_idx': {user: row}, 'idx_to_item': {row: item}}.",
            )
    if user not in mappings["user_to_idx"]:
        raise InputError(
            f"user {user!r} is not in mappings['user_to_idx'], which has {len(mappings['user_to_idx']):,}.",
            hint="Check the id and its type.",
        )
    return source, int(mappings["user_to_idx"][user]), _item_names(mappings["idx_to_item"], source.n_items)


def _source(model: Any) -> Factors | Scores:
    if isinstance(model, Factors | Scores):
        return model
    if isinstance(model, tuple | list) and len(model) == 2:
        return Factors(*model)
    if hasattr(model, "U") and hasattr(model, "V"):
        return Factors(model.U, model.V)
    return from_model(model)


def _item_names(named: Any, n_items: int) -> list[Any]:
    if not hasattr(named, "get"):
        return list(named)
    missing = [row for row in range(n_items) if row not in named and str(row) not in named]
    if missing:
        raise InputError(f"idx_to_item has no entry for {missing[0]} ({len(missing)} such rows).")
    return [named[row] if row in named else named[str(row)] for row in range(n_items)]


def _rows_of(items: list[Any], item_of: list[Any]) -> list[int]:
    place = {item: row for row, item in enumerate(item_of)}
    return [place[item] for item in items if item in place]


def key_column(products: Any) -> str:
    """The column with the items' ids, by the names tables of interactions go by."""
    plain = {re.sub(r"[\W_]", "", str(name).lower()): name for name in products.columns}
    found = [str(plain[name]) for name in ROLES["item"] if name in plain]
    if found:
        return found[0]
    raise ColumnError(
        f"no column holds item ids; there are {', '.join(map(str, products.columns))}.",
        table="products",
        hint="Call it product_id or item_id.",
    )


def _described(items: list[Any], products: Any, columns: Iterable[str] | None) -> Any:
    """One row an item, in this order; an item the table does not know has empty cells."""
    import pandas as pd

    if products is None:
        return pd.DataFrame({"item": items})
    key = key_column(products)
    wanted = [c for c in _SHOWN if c in products.columns] if columns is None else list(columns)
    for name in wanted:
        if name not in products.columns:
            raise UnknownNameError("column of the products", name, map(str, products.columns))
    table = products.drop_duplicates(key).set_index(key)[[c for c in wanted if c != key]]
    try:
        found: Array = table.index.get_indexer(pd.Index(items, dtype=table.index.dtype if items else None))
    except (TypeError, ValueError) as error:
        raise IdTypeError(
            f"the products' {key} is {table.index.dtype}, and the list holds {items[0]!r}.",
            table="products",
            column=key,
            hint="Ids are all int or all str on both sides.",
        ) from error
    described = table.reset_index(drop=True).reindex(found).reset_index(drop=True)
    described.insert(0, key, items)
    return described
