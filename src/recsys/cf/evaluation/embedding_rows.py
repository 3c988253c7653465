"""Embeddings as seed 000 hands them over: a matrix, and perhaps a mapping from item to row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.inputs.ids import encode, of_sequence
from recsys.ranks.sources.foreign_arrays import as_array
from recsys.types import Ids, Vectors


def vectors_of(
    embeddings: Any, item_to_idx: Mapping[Any, int] | None = None, only: Iterable[Any] | None = None
) -> Vectors:
    """Vectors by item, without items whose row is not there, or all zeros or NaN; `only` these items."""
    if embeddings is None:
        raise InputError("there are no embeddings.", hint="Pass embeddings=, one row an item.")
    matrix = as_array(embeddings)
    if matrix.ndim != 2:
        raise InputError(f"the embeddings must be a matrix; got shape {matrix.shape}.", table="embeddings")
    if item_to_idx is not None and hasattr(item_to_idx, "to_dict"):  # a Series iterates over its values
        item_to_idx = item_to_idx.to_dict()
    if item_to_idx is None:
        pairs: Any = np.arange(len(matrix)) if only is None else _whole(only)
        items, rows = pairs, pairs
    else:
        named = (
            list(item_to_idx)
            if only is None
            else [item for item in dict.fromkeys(only) if item in item_to_idx]
        )
        items = (
            of_sequence(named, table="embeddings", column="item") if named else np.zeros(0, dtype=np.int64)
        )
        rows = np.array([int(item_to_idx[item]) for item in named], dtype=np.int64)
    inside = (rows >= 0) & (rows < len(matrix))
    items, rows = items[inside], rows[inside]
    held = matrix[rows] if only is not None or item_to_idx is not None else matrix
    if np.isinf(held).any():
        raise InputError("an embedding holds an infinite number.", table="embeddings")
    present = held.any(axis=1) & ~np.isnan(held).any(axis=1)
    ids, codes = encode(items[present], table="embeddings", column="item") if present.any() else _none(items)
    at = np.empty(len(ids), dtype=np.int64)
    at[codes] = np.arange(len(held))[present]
    return Vectors(ids, at, held)


def arrays_by_user(profiles: Any) -> dict[Any, Any]:
    """{user: vector} with NumPy vectors: of a mapping, a Series or table by user, or one row a user."""
    if hasattr(profiles, "columns"):
        held: Any = zip(profiles.index, profiles.to_numpy(), strict=True)
    else:
        held = profiles.items() if hasattr(profiles, "items") else enumerate(profiles)
    return {user: as_array(vector) for user, vector in held}


def _whole(items: Iterable[Any]) -> Any:
    listed = list(dict.fromkeys(items))
    if not listed:
        return np.zeros(0, dtype=np.int64)
    ids, _ = encode(
        of_sequence(listed, table="recommendations", column="item"), table="recommendations", column="item"
    )
    values = ids.values
    if values.dtype == object:
        raise InputError(
            "items are texts and the embeddings have no ids.", hint="Pass item_to_idx={item: row}."
        )
    return values


def _none(items: Any) -> tuple[Ids, Any]:
    return Ids(items[:0]), np.zeros(0, dtype=np.int64)


def n_without_vector(lists: Mapping[Any, Any], vectors: Vectors) -> int:
    """How many entries of the lists have no vector."""
    flat = list(chain.from_iterable(lists.values()))
    if not flat:
        return 0
    values = of_sequence(flat, table="lists", column="item")
    return int((vectors.ids.code_of(values) < 0).sum()) if len(vectors.ids) else len(flat)
