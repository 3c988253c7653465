"""Titles, groups, popularity and coordinates of items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.inputs.frames import as_frame, detect_columns
from recsys.metrics.attributes import read_table, read_vectors
from recsys.models.baselines import HEAD
from recsys.types import Array, Float, Ids, Int, Interactions, Vectors

_TITLE_COLUMNS = ("title", "name", "label", "product_name", "item_name", "value", "text")
_GROUP_COLUMNS = ("category", "categories", "genre", "genres", "brand", "group", "type", "class")


@dataclass(frozen=True, eq=False)
class ItemNames:
    """Titles and groups by item id, and the ids in the order they came."""

    ids: tuple[Any, ...] = ()
    titles: Mapping[Any, str] = field(default_factory=dict)
    groups: Mapping[Any, str] = field(default_factory=dict)

    def title(self, item: Any) -> str:
        """The title of an item, or its id where it has none."""
        return self.titles.get(item) or str(item)


def item_names(items: Any) -> ItemNames:
    """Titles and groups from {item: title} or from a table with item and title (and category) columns."""
    if items is None:
        return ItemNames()
    table = read_table(items, table="items")
    lower = {name.lower(): name for name in table.columns}

    def column(known: tuple[str, ...]) -> dict[Any, str]:
        name = next((lower[n] for n in known if n in lower), None)
        values = [] if name is None else table.columns[name].tolist()
        coded = zip(range(len(table.ids)), values, strict=False)
        return {table.ids.name(code): str(v) for code, v in coded if v not in ("", None) and v == v}  # noqa: PLR0124

    groups = {item: v.split("|")[0] for item, v in column(_GROUP_COLUMNS).items()}
    return ItemNames(_ids_in_input_order(items, table.ids), column(_TITLE_COLUMNS), groups)


def _ids_in_input_order(items: Any, ids: Ids) -> tuple[Any, ...]:
    """The ids in the order of the table: an array of embeddings follows it."""
    frame = None if isinstance(items, Mapping) else as_frame(items)
    if frame is None:
        return tuple(ids.name(code) for code in range(len(ids)))
    roles = detect_columns(list(frame.columns), ("item",), None, "items")
    values = frame[roles["item"]].to_list() if "item" in roles else ids.values.tolist()
    return tuple(i.item() if isinstance(i, np.generic) else i for i in values)


def popularity(train: Interactions, items: Ids) -> Int:
    """The number of users of each item in train."""
    train.items.same_kind(items, what="item")
    counts = np.bincount(train.codes, minlength=len(train.items))
    codes = train.items.code_of(items.values)
    return np.where(codes >= 0, counts[codes] if len(counts) else 0, 0)


def is_head(counts: Int) -> Array:
    """Which items are the head: the most popular fifth of those with any user, equal counts together."""
    ranked = np.sort(counts[counts > 0])[::-1]
    if not len(ranked):
        return np.zeros(len(counts), dtype=bool)
    least = ranked[max(int(np.ceil(HEAD * len(ranked))), 1) - 1]
    return np.asarray(counts >= least)


def coordinates_of(embeddings: Any, names: ItemNames, max_items: int) -> tuple[list[Any], Float, int]:
    """Item ids, their coordinates in the plane, and how many items there are.

    Beyond `max_items`, a random sample. Two columns are taken as coordinates; more are projected. Items whose
    vector is zero or has NaN are left out.
    """
    ids, matrix = _vectors(embeddings, names)
    rows = np.flatnonzero(np.isfinite(matrix).all(axis=1) & matrix.any(axis=1))
    if len(rows) > max_items:
        rows = np.sort(np.random.default_rng(0).permutation(rows)[:max_items])
    places = matrix[rows]
    if matrix.shape[1] > 2:
        from recsys.analysis import item_map

        places = item_map(places, method="pca")[["x", "y"]].to_numpy()
    return [ids[i] for i in rows.tolist()], places, len(matrix)


def _vectors(embeddings: Any, names: ItemNames) -> tuple[list[Any], Float]:
    """Ids and vectors; columns x and y of a table are coordinates, an array follows the items' order."""
    data = embeddings
    if hasattr(data, "columns") and hasattr(data, "set_index"):
        roles = detect_columns([str(c) for c in data.columns], ("item",), None, "embeddings")
        data = data.set_index(roles["item"]) if "item" in roles else data
        data = data[["x", "y"]] if {"x", "y"} <= set(data.columns) else data
    elif names.ids and not isinstance(data, Mapping | tuple | Vectors):
        data = (names.ids, data)
    vectors = read_vectors(data, table="embeddings")
    if vectors.matrix.shape[1] < 2:
        raise InputError("embeddings have one column; a map needs two or more.", table="embeddings")
    ids = [vectors.ids.name(code) for code in range(len(vectors.ids))]
    return ids, vectors.matrix[vectors.rows].astype(np.float64)
