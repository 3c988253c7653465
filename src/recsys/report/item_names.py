"""What is known about items: their titles, groups, popularity and coordinates, by id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.inputs.frames import as_frame, known_columns
from recsys.metrics.attributes import read_table, read_vectors
from recsys.types import Array, Float, Ids, Int, Interactions, Vectors

_TITLES = ("title", "name", "label", "product_name", "item_name", "value", "text")
_GROUPS = ("category", "categories", "genre", "genres", "brand", "group", "type", "class")
HEAD = 0.2


@dataclass(frozen=True, eq=False)
class ItemNames:
    """Titles and groups by item id, and the ids in the order they came."""

    ids: tuple[Any, ...] = ()
    titles: Mapping[Any, str] = field(default_factory=dict)
    groups: Mapping[Any, str] = field(default_factory=dict)

    def title(self, item: Any) -> str:
        """What to call an item: its title, else its id."""
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
        held = zip(range(len(table.ids)), values, strict=False)
        return {table.ids.name(at): str(v) for at, v in held if v not in ("", None) and v == v}  # noqa: PLR0124

    groups = {item: v.split("|")[0] for item, v in column(_GROUPS).items()}
    return ItemNames(_in_given_order(items, table.ids), column(_TITLES), groups)


def _in_given_order(items: Any, ids: Ids) -> tuple[Any, ...]:
    """The ids as the table had them: an array of embeddings follows that order."""
    frame = None if isinstance(items, Mapping) else as_frame(items)
    if frame is None:
        return tuple(ids.name(at) for at in range(len(ids)))
    found = known_columns(list(frame.columns), ("item",), None, "items")
    given = frame[found["item"]].to_list() if "item" in found else ids.values.tolist()
    return tuple(i.item() if isinstance(i, np.generic) else i for i in given)


def popularity(train: Interactions, items: Ids) -> Int:
    """How many users took each of the items."""
    train.items.same_kind(items, what="item")
    counts = np.bincount(train.codes, minlength=len(train.items))
    at = train.items.code_of(items.values)
    return np.where(at >= 0, counts[at] if len(counts) else 0, 0)


def is_head(counts: Int) -> Array:
    """Which items are the head: the most popular fifth of those ever taken, equal counts together."""
    taken = np.sort(counts[counts > 0])[::-1]
    if not len(taken):
        return np.zeros(len(counts), dtype=bool)
    least = taken[max(int(np.ceil(HEAD * len(taken))), 1) - 1]
    return np.asarray(counts >= least)


def coordinates_of(embeddings: Any, names: ItemNames, most: int) -> tuple[list[Any], Float, int]:
    """Items and their places in the plane, at most so many drawn at random, and how many there are.

    Two columns are places already; more are projected. Items of zeros or NaN have no place.
    """
    ids, matrix = _vectors(embeddings, names)
    kept = np.flatnonzero(np.isfinite(matrix).all(axis=1) & matrix.any(axis=1))
    if len(kept) > most:
        kept = np.sort(np.random.default_rng(0).permutation(kept)[:most])
    places = matrix[kept]
    if matrix.shape[1] > 2:
        from recsys.analysis import item_map

        places = item_map(places, method="pca")[["x", "y"]].to_numpy()
    return [ids[i] for i in kept.tolist()], places, len(matrix)


def _vectors(embeddings: Any, names: ItemNames) -> tuple[list[Any], Float]:
    """Ids and vectors; columns x and y of a table are coordinates, an array follows the items' order."""
    data = embeddings
    if hasattr(data, "columns") and hasattr(data, "set_index"):
        found = known_columns([str(c) for c in data.columns], ("item",), None, "embeddings")
        data = data.set_index(found["item"]) if "item" in found else data
        data = data[["x", "y"]] if {"x", "y"} <= set(data.columns) else data
    elif names.ids and not isinstance(data, Mapping | tuple | Vectors):
        data = (names.ids, data)
    held = read_vectors(data, table="embeddings")
    if held.matrix.shape[1] < 2:
        raise InputError("embeddings have one column; a map needs two or more.", table="embeddings")
    ids = [held.ids.name(at) for at in range(len(held.ids))]
    return ids, held.matrix[held.rows].astype(np.float64)
