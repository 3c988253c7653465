"""The recommendations of one user as a table: item names, marked hits, the history next to the list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from recsys.errors import ColumnError, IdTypeError, InputError, Phrase, RecsysError, UnknownNameError
from recsys.evaluation.evaluate import recommend
from recsys.inputs.frames import ROLES
from recsys.inputs.timestamps import to_seconds
from recsys.ranks.sources import Factors, Scores, from_model
from recsys.records.arrays import Array, Int, Interactions, Lists

_PRODUCT_COLUMNS = (
    "product_name", "brand", "avg_star", "num_sold_time", "title", "name", "category", "genres",
)  # fmt: skip


def inspect_user_recommendations(
    u_id: Any,
    model: Any,
    mappings: Mapping[str, Any] | None = None,
    products_df: Any = None,
    k: int = 10,
    *,
    history: Iterable[Any] | Interactions | None = None,
    truth: Iterable[Any] | Interactions | None = None,
    exclude_seen: bool = True,
    columns: Iterable[str] | None = None,
) -> Any:
    """Return the k best items of a user as a frame, best first, with columns of the product table.

    Args:
        u_id: the id of the user.
        model: anything with U and V, or user_factors and item_factors, or Factors, Scores, (U, V); or the
            Lists it made.
        mappings: {"user_to_idx": {user: row}, "idx_to_item": {row: item}}; by default ids are those of the
            source, or its row numbers.
        products_df: a table with item ids (a column such as product_id) and other columns.
        k: how many items.
        history: ids of the user's earlier items, or the Interactions of all users: left out of the list that
            is made, and shown next to it.
        truth: ids of the relevant items, or Interactions: marked in `hit`.
        exclude_seen: False keeps history items in the list; `seen` then marks them.
        columns: which columns of products_df to show; by default the usual ones of products.

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
    source: Any = None
    if isinstance(model, Lists):
        user, users, item_ids = u_id, model.cases, model.items.values.tolist()
    else:
        source, user, item_ids = _resolve_ids(model, mappings, u_id)
        users = source.user_rows.ids
        for name, rows in (("train", history), ("truth", truth)):
            if isinstance(rows, Interactions):
                source.check_ids(rows, name)
    # Of a row number the source itself says what is wrong.
    is_row = source is not None and source.user_rows.numbered
    if not is_row and user not in set(users.values.tolist()):
        hint = Phrase("Check the id, and its type ({ids=}).")
        raise InputError(f"user {user!r} is not one of the {len(users):,} users.", hint=hint)
    history = _items_of(history, user)
    if source is None:
        lists, at = model, _entries_of(model, user)[:k]
    else:
        own_ids = source.item_rows.ids.values.tolist()  # what the source itself calls the items
        own_id_of = dict(zip(item_ids, own_ids, strict=True))
        past = [own_id_of[item] for item in history or () if item in own_id_of]
        lists = recommend(source, k, users=[user], seen={user: past} if past and exclude_seen else None)
        at = np.arange(len(lists.codes))
    items = [item_ids[int(code)] for code in lists.codes[at]]
    scores = None if lists.scores is None else lists.scores[at]
    known = _items_of(truth, user)
    frame = described_list(items, products_df, scores=scores, history=history, truth=known, columns=columns)
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
    """Return a ready list as the frame that inspect_user_recommendations returns; the arguments are its own.

    >>> described_list(["b", "a"], history=["c"], truth={"a"})["hit"].tolist()
    [False, True]
    """
    past_items = [] if history is None else list(history)
    relevant = set() if truth is None else set(truth)
    frame = _product_rows(items, products_df, columns)
    frame.insert(0, "rank", np.arange(1, len(items) + 1))
    if scores is not None:
        frame["score"] = scores
    if truth is not None:
        frame["hit"] = [item in relevant for item in items]
    if past_items:
        frame["seen"] = [item in set(past_items) for item in items]
        past_rows = _product_rows(past_items, products_df, columns)
        # The newest items first, in columns of their own; empty cells where the history is shorter.
        newest = past_rows.tail(len(items))[::-1].reset_index(drop=True)
        newest = newest.add_prefix("history_").reindex(frame.index).astype(object)
        frame = frame.join(newest.where(newest.notna(), ""))
        frame.attrs = {"history": past_rows}
    frame.attrs.update(n_history=len(past_items), n_relevant=len(relevant))
    return frame


def _entries_of(data: Interactions | Lists, user: Any) -> Int:
    """Return the positions of the entries of one user."""
    wanted = np.array([user], dtype=object if isinstance(user, str) else np.int64)
    code = data.cases.code_of(wanted)[0]
    return np.arange(*data.indptr[code : code + 2]) if code >= 0 else np.arange(0)


def _items_of(rows: Iterable[Any] | Interactions | None, user: Any) -> list[Any] | None:
    """Return the items of one user, in order of time where there are times that can be read."""
    if not isinstance(rows, Interactions):
        return None if rows is None else list(rows)
    at = _entries_of(rows, user)
    if rows.times is not None:
        with suppress(RecsysError):
            at = at[np.argsort(to_seconds(rows.times[at]), kind="stable")]
    return list(rows.items.values[rows.codes[at]].tolist())


def _resolve_ids(model: Any, mappings: Mapping[str, Any] | None, user: Any) -> tuple[Any, Any, Any]:
    """Return the source, the id of the user in it, and the item id of each code of its lists."""
    if isinstance(model, tuple | list) and len(model) == 2:
        source: Any = Factors(*model)
    elif hasattr(model, "U") and hasattr(model, "V"):
        source = Factors(model.U, model.V)
    else:
        source = model if isinstance(model, Factors | Scores) else from_model(model)
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
    return source, int(mappings["user_to_idx"][user]), _item_ids(mappings["idx_to_item"], source.n_items)


def _item_ids(idx_to_item: Any, n_items: int) -> list[Any]:
    """Return the item id of each row; the keys of a mapping may be text, as in a JSON file."""
    if not hasattr(idx_to_item, "get"):
        ids = list(idx_to_item)
        if len(ids) != n_items:
            raise InputError(f"idx_to_item has {len(ids):,} entries for {n_items:,} items.")
        return ids
    missing = [row for row in range(n_items) if row not in idx_to_item and str(row) not in idx_to_item]
    if missing:
        raise InputError(f"idx_to_item has no entry for {missing[0]} ({len(missing)} such rows).")
    return [idx_to_item[row] if row in idx_to_item else idx_to_item[str(row)] for row in range(n_items)]


def key_column(products: Any) -> str:
    """Return the column with item ids, found by the names it may have in tables of interactions."""
    by_plain_name = {re.sub(r"[\W_]", "", str(name).lower()): name for name in products.columns}
    for name in ROLES["item"]:
        if name in by_plain_name:
            return str(by_plain_name[name])
    raise ColumnError(
        f"no column holds item ids; there are {', '.join(map(str, products.columns))}.",
        table="products",
        hint="Call it product_id or item_id.",
    )


def _product_rows(items: list[Any], products: Any, columns: Iterable[str] | None) -> Any:
    """Return one row per item, in order; an item that is not in the table has empty cells."""
    import pandas as pd

    if products is None:
        return pd.DataFrame({"item": items})
    key = key_column(products)
    names = [c for c in _PRODUCT_COLUMNS if c in products.columns] if columns is None else list(columns)
    for name in names:
        if name not in products.columns:
            raise UnknownNameError("column of the products", name, map(str, products.columns))
    table = products.drop_duplicates(key).set_index(key)[[c for c in names if c != key]]
    try:
        rows: Array = table.index.get_indexer(pd.Index(items, dtype=table.index.dtype if items else None))
    except (TypeError, ValueError) as error:
        raise IdTypeError(
            f"the products' {key} is {table.index.dtype}, and the list holds {items[0]!r}.",
            table="products",
            column=key,
            hint=Phrase("Read both with ids of one type: {ids='str'}."),
        ) from error
    frame = table.reset_index(drop=True).reindex(rows).reset_index(drop=True)
    frame.insert(0, key, items)
    return frame
