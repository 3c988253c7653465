"""Test sets of (user, positive, negatives) to Candidates: arrays, datasets, data loaders, any iterable.

An entry is one case (negatives of one dimension) or a batch of cases (two), told by the negatives' shape.
torch is never imported: tensors are recognised by what they offer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.ranks.sources.candidate_sets import Candidates
from recsys.ranks.sources.foreign_arrays import as_array
from recsys.types import Array

_FORM = "Each entry is (user, positive item, negative items), or a batch of such."


def read_candidates(data: Any) -> Candidates:
    """A test set as Candidates; what holds them already is taken as it is.

    >>> read_candidates([(4, 1, [0, 3]), (5, 2, [1])]).sizes.tolist()
    [2, 1]
    """
    held = getattr(data, "candidates", data)
    if isinstance(held, Candidates):
        return held
    users, items, negatives = [], [], []
    for number, entry in enumerate(_entries(data)):
        who, what, against = _cases(entry, number)
        users.append(who)
        items.append(what)
        negatives.append(against)
    if not users:
        raise InputError("the test set holds no case.", hint=_FORM)
    who, what = np.concatenate(users), np.concatenate(items)
    matrices = [n for n in negatives if isinstance(n, np.ndarray)]
    if len(matrices) == len(negatives) and len({m.shape[1] for m in matrices}) == 1:
        return Candidates.of(who, what, np.concatenate(matrices))
    return Candidates.of(who, what, [row for rows in negatives for row in rows])


def _entries(data: Any) -> Iterator[Any]:
    if isinstance(data, str | bytes | dict):
        raise InputError(f"the test set came as {type(data).__name__}.", hint=_FORM)
    # A map-style dataset of torch raises IndexError late or never: its length says where it ends.
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not hasattr(data, "__iter__"):
        return (data[at] for at in range(len(data)))
    if not isinstance(data, Iterable) and not hasattr(data, "__getitem__"):
        raise InputError(f"the test set came as {type(data).__name__}, which cannot be read.", hint=_FORM)
    return iter(data)


def _cases(entry: Any, number: int) -> tuple[Array, Array, Any]:
    """Users, positives, and negatives as a matrix or a list of rows."""
    try:
        user, positive, against = entry
    except (TypeError, ValueError):
        raise InputError(
            f"entry {number} of the test set is {type(entry).__name__}, not three parts.", hint=_FORM
        ) from None
    who, what = as_array(user).reshape(-1), as_array(positive).reshape(-1)
    rows = _rows(against, len(who))
    if len(who) != len(what) or len(rows) != len(who):
        raise InputError(
            f"entry {number} of the test set holds {len(who)} users, {len(what)} positives and "
            f"{len(rows)} rows of negatives.",
            hint=_FORM,
        )
    return who, what, rows


def _rows(against: Any, n_users: int) -> Any:
    """Negatives as a matrix, or as a list of rows of different lengths."""
    if isinstance(against, list | tuple) and against and _ndim(against[0]) == 1:
        rows = [as_array(row) for row in against]
        lengths = {len(row) for row in rows}
        # A loader's default collation turns lists of negatives on their side: one tensor a column.
        if lengths == {n_users}:
            return np.stack(rows, axis=1)
        return np.stack(rows) if len(lengths) == 1 else rows
    array = as_array(against)
    return array.reshape(1, -1) if array.ndim == 1 else array


def _ndim(value: Any) -> int:
    return value.ndim if hasattr(value, "ndim") else int(isinstance(value, list | tuple))
