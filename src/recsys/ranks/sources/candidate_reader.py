"""Test sets of (user, positive, negatives) to Candidates: arrays, datasets, data loaders, any iterable.

An entry is one case (1-D negatives) or a batch of cases (2-D negatives). torch is never imported: tensors are
recognised by their methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.ranks.sources.candidate_sets import Candidates
from recsys.ranks.sources.foreign_arrays import as_array
from recsys.types import Array

_ENTRY_HINT = "Each entry is (user, positive item, negative items), or a batch of them."


def read_candidates(data: Any) -> Candidates:
    """A test set as Candidates; Candidates, or an object with `candidates`, are returned as they are.

    >>> read_candidates([(4, 1, [0, 3]), (5, 2, [1])]).sizes.tolist()
    [2, 1]
    """
    candidates = getattr(data, "candidates", data)
    if isinstance(candidates, Candidates):
        return candidates
    users, items, negatives = [], [], []
    for number, entry in enumerate(_iterate(data)):
        user_rows, item_rows, negative_part = _parse_entry(entry, number)
        users.append(user_rows)
        items.append(item_rows)
        negatives.append(negative_part)
    if not users:
        raise InputError("the test set holds no case.", hint=_ENTRY_HINT)
    user_rows, item_rows = np.concatenate(users), np.concatenate(items)
    matrices = [n for n in negatives if isinstance(n, np.ndarray)]
    if len(matrices) == len(negatives) and len({m.shape[1] for m in matrices}) == 1:
        return Candidates.of(user_rows, item_rows, np.concatenate(matrices))
    return Candidates.of(user_rows, item_rows, [row for rows in negatives for row in rows])


def _iterate(data: Any) -> Iterator[Any]:
    if isinstance(data, str | bytes | dict):
        raise InputError(f"the test set came as {type(data).__name__}.", hint=_ENTRY_HINT)
    # A map-style dataset of torch may not raise IndexError at its end: go by its length.
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not hasattr(data, "__iter__"):
        return (data[at] for at in range(len(data)))
    if not isinstance(data, Iterable) and not hasattr(data, "__getitem__"):
        raise InputError(
            f"the test set came as {type(data).__name__}, which cannot be read.", hint=_ENTRY_HINT
        )
    return iter(data)


def _parse_entry(entry: Any, number: int) -> tuple[Array, Array, Any]:
    """Users, positives, and negatives as a matrix or a list of rows."""
    try:
        user, positive, negative_part = entry
    except (TypeError, ValueError):
        raise InputError(
            f"entry {number} of the test set is {type(entry).__name__}, not three parts.", hint=_ENTRY_HINT
        ) from None
    user_rows, item_rows = as_array(user).reshape(-1), as_array(positive).reshape(-1)
    rows = _negative_rows(negative_part, len(user_rows))
    if len(user_rows) != len(item_rows) or len(rows) != len(user_rows):
        raise InputError(
            f"entry {number} of the test set holds {len(user_rows)} users, {len(item_rows)} positives and "
            f"{len(rows)} rows of negatives.",
            hint=_ENTRY_HINT,
        )
    return user_rows, item_rows, rows


def _negative_rows(negative_part: Any, n_users: int) -> Any:
    """Negatives as a matrix, or as a list of rows of different lengths."""
    if isinstance(negative_part, list | tuple) and negative_part and _ndim(negative_part[0]) == 1:
        rows = [as_array(row) for row in negative_part]
        lengths = {len(row) for row in rows}
        # The default collation of a loader transposes lists of negatives: one tensor per column.
        if lengths == {n_users}:
            return np.stack(rows, axis=1)
        return np.stack(rows) if len(lengths) == 1 else rows
    array = as_array(negative_part)
    return array.reshape(1, -1) if array.ndim == 1 else array


def _ndim(value: Any) -> int:
    return value.ndim if hasattr(value, "ndim") else int(isinstance(value, list | tuple))
