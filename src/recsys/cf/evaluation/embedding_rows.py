"""Embeddings as document 000 passes them: a matrix and, optionally, a mapping from item to row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.inputs.ids import encode, ids_from_sequence
from recsys.ranks.sources.foreign_arrays import as_array
from recsys.types import Ids, Vectors


def item_vectors(
    embeddings: Any, item_to_idx: Mapping[Any, int] | None = None, only: Iterable[Any] | None = None
) -> Vectors:
    """Vectors by item.

    Items whose row is outside the matrix, all zeros or NaN are left out.

    Args:
        embeddings: a matrix with one row per item.
        item_to_idx: {item: row}; by default items are row numbers.
        only: restrict the result to these items.
    """
    if embeddings is None:
        raise InputError("there are no embeddings.", hint="Pass embeddings= with one row per item.")
    matrix = as_array(embeddings)
    if matrix.ndim != 2:
        raise InputError(f"the embeddings must be a matrix; got shape {matrix.shape}.", table="embeddings")
    if item_to_idx is not None and hasattr(item_to_idx, "to_dict"):  # a Series iterates over its values
        item_to_idx = item_to_idx.to_dict()
    if item_to_idx is None:
        items: Any = np.arange(len(matrix)) if only is None else _integer_items(only)
        rows = items
    else:
        known = list(item_to_idx) if only is None else [i for i in dict.fromkeys(only) if i in item_to_idx]
        items = (
            ids_from_sequence(known, table="embeddings", column="item")
            if known
            else np.zeros(0, dtype=np.int64)
        )
        rows = np.array([int(item_to_idx[item]) for item in known], dtype=np.int64)
    inside = (rows >= 0) & (rows < len(matrix))
    items, rows = items[inside], rows[inside]
    vectors = matrix[rows] if only is not None or item_to_idx is not None else matrix
    if np.isinf(vectors).any():
        raise InputError("an embedding holds an infinite number.", table="embeddings")
    present = vectors.any(axis=1) & ~np.isnan(vectors).any(axis=1)
    if present.any():
        ids, codes = encode(items[present], table="embeddings", column="item")
    else:
        ids, codes = Ids(items[:0]), np.zeros(0, dtype=np.int32)
    row_of_code = np.empty(len(ids), dtype=np.int64)
    row_of_code[codes] = np.arange(len(vectors))[present]
    return Vectors(ids, row_of_code, vectors)


def arrays_by_user(profiles: Any) -> dict[Any, Any]:
    """{user: NumPy vector} of a mapping, a Series or table by user, or a matrix with one row per user."""
    if hasattr(profiles, "columns"):
        pairs: Any = zip(profiles.index, profiles.to_numpy(), strict=True)
    else:
        pairs = profiles.items() if hasattr(profiles, "items") else enumerate(profiles)
    return {user: as_array(vector) for user, vector in pairs}


def _integer_items(items: Iterable[Any]) -> Any:
    """Distinct items as an array of row numbers."""
    distinct = list(dict.fromkeys(items))
    if not distinct:
        return np.zeros(0, dtype=np.int64)
    column = ids_from_sequence(distinct, table="recommendations", column="item")
    ids, _ = encode(column, table="recommendations", column="item")
    if ids.values.dtype == object:
        raise InputError(
            "items are texts and the embeddings have no ids.", hint="Pass item_to_idx={item: row}."
        )
    return ids.values


def n_without_vector(lists: Mapping[Any, Any], vectors: Vectors) -> int:
    """How many entries of the lists have no vector."""
    entries = list(chain.from_iterable(lists.values()))
    if not entries:
        return 0
    if not len(vectors.ids):
        return len(entries)
    values = ids_from_sequence(entries, table="lists", column="item")
    return int((vectors.ids.code_of(values) < 0).sum())
