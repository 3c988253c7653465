"""Rows to leave out: those outside the k-core, and those of cold users and items."""

from __future__ import annotations

from typing import Any

import numpy as np

from recsys.errors import SplitError
from recsys.types import Bool, Codes, Int


def k_core(user: Codes, item: Codes, minimum: tuple[int, int], *, iterative: bool) -> tuple[Bool, int]:
    """Rows whose user and item have enough rows, and the number of rounds.

    With `iterative` this is the k-core: the largest set of rows in which every user and item has enough rows,
    whatever the order of removal. Otherwise it is one round, counted on all rows.
    """
    keep = np.ones(len(user), dtype=bool)
    rows: Int | None = None
    n_rounds = 0
    while True:
        n_rounds += 1
        u, i = (user, item) if rows is None else (user[rows], item[rows])
        has_enough = (np.bincount(u) >= minimum[0])[u] if len(u) else np.zeros(0, dtype=bool)
        has_enough &= (np.bincount(i) >= minimum[1])[i] if len(i) else has_enough
        if has_enough.all():
            return keep, n_rounds
        removed = np.flatnonzero(~has_enough) if rows is None else rows[~has_enough]
        keep[removed] = False
        rows = np.flatnonzero(keep) if rows is None else rows[has_enough]
        if not iterative or len(rows) == 0:
            return keep, n_rounds


def check_whole_number(value: Any, name: str, minimum: int = 0) -> int:
    """Return the value as an int; an error if it is not a whole number of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise SplitError(
            f"{name}={value!r} is not a whole number of at least {minimum}.",
            hint=f"Pass {name}={max(minimum, 3)}.",
        )
    return int(value)


def cold_rows(codes: Codes, rows: Bool, train: Bool, size: int) -> Bool:
    """Those of `rows` whose id does not occur in train."""
    known = np.zeros(size, dtype=bool)
    known[codes[train]] = True
    return rows & ~known[codes]


def count_distinct(codes: Codes, size: int) -> int:
    """How many different codes below `size` occur."""
    present = np.zeros(size, dtype=bool)
    present[codes] = True
    return int(present.sum())
