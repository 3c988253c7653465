"""User profiles from the embeddings of the items they took.

A row of zeros or NaN is an item without an embedding: it is left out of the profile, and counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import InputError, UnknownNameError
from recsys.inputs import read_interactions
from recsys.inputs.ids import encode, ids_from_sequence
from recsys.types import Array, Float, Int, Interactions


class Profiles(NamedTuple):
    """One content vector per user; `n_missing` entries had no embedding, users in `without` no other."""

    ids: Array
    vectors: Float
    n_missing: int
    without: Array


def vector_rows(embeddings: Any) -> Float:
    """A matrix of float64; rows of zeros or NaN are missing embeddings and become zeros."""
    rows = np.array(embeddings, dtype=np.float64)
    if rows.ndim != 2:
        raise InputError(f"the embeddings must be a matrix; got shape {rows.shape}.", table="embeddings")
    if np.isinf(rows).any():
        raise InputError("an embedding holds an infinite number.", table="embeddings")
    rows[np.isnan(rows).any(axis=1)] = 0.0
    return rows


def unit_rows(embeddings: Any) -> Float:
    """A matrix of float64 with rows of length 1; missing embeddings are zeros."""
    rows = vector_rows(embeddings)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1.0))


def cosine_matrix(embeddings: Any) -> Float:
    """The cosine of every pair of rows: an items x items matrix, so for small catalogues only."""
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
    """The (weighted) mean of the embeddings of the items each user took, or their maximum per dimension.

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
    if aggregation not in ("mean", "max"):
        raise UnknownNameError("aggregation", aggregation, ("mean", "max"))
    known = read_interactions(history, table="history")
    rows = vector_rows(embeddings)
    row = rows_of_history(known, rows, item_ids)
    present = row >= 0
    present[present] = rows[row[present]].any(axis=1)
    case = np.repeat(np.arange(len(known.cases)), known.sizes)
    weights = known.grades if weighted and known.grades is not None else np.ones(len(row))
    n_used = np.bincount(case[present], minlength=len(known.cases))
    vectors = _aggregate(rows, row[present], case[present], weights[present], (n_used, aggregation))
    return Profiles(known.cases.values, vectors, int((~present).sum()), known.cases.values[n_used == 0])


def rows_of_history(known: Interactions, rows: Any, item_ids: Iterable[Any] | None) -> Int:
    """The row of `rows` that belongs to each history entry, -1 where there is none."""
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
    row_of_code = np.empty(len(ids), dtype=np.int64)
    row_of_code[codes] = np.arange(len(ids))
    code = ids.code_of(known.items.values)
    return np.where(code >= 0, row_of_code[code], -1)[known.codes]


def _aggregate(rows: Float, row: Int, case: Int, weights: Float, options: tuple[Int, str]) -> Float:
    """One vector per case, from the rows of its history."""
    from scipy.sparse import csr_array

    n_used, aggregation = options
    indptr = np.concatenate([[0], np.cumsum(n_used)])
    if aggregation == "max":
        out = np.zeros((len(n_used), rows.shape[1]))
        for start in range(0, len(n_used), 4096):
            used_cases = np.flatnonzero(n_used[start : start + 4096]) + start
            if len(used_cases):
                first = indptr[used_cases[0]]
                vectors = rows[row[first : indptr[used_cases[-1] + 1]]]
                out[used_cases] = np.maximum.reduceat(vectors, indptr[used_cases] - first, axis=0)
        return out
    total = np.bincount(case, weights=weights, minlength=len(n_used))
    share = weights / np.where(total > 0, total, 1.0)[case]
    return np.asarray(csr_array((share, row, indptr), shape=(len(n_used), len(rows))) @ rows)
