"""Rows that do not take part: the k-core, and cold users and items."""

from __future__ import annotations

from typing import Any

import numpy as np

from recsys.errors import SplitError
from recsys.types import Bool, Codes, Int


def core(user: Codes, item: Codes, least: tuple[int, int], *, iterative: bool) -> tuple[Bool, int]:
    """Rows whose user and item have enough rows, and the rounds it took.

    Iterated, this is the largest set of rows in which everyone has enough (the k-core), which does not depend
    on the order of removal; otherwise one round, counted on all rows.
    """
    kept = np.ones(len(user), dtype=bool)
    rows: Int | None = None
    rounds = 0
    while True:
        rounds += 1
        u, i = (user, item) if rows is None else (user[rows], item[rows])
        stays = (np.bincount(u) >= least[0])[u] if len(u) else np.zeros(0, dtype=bool)
        stays &= (np.bincount(i) >= least[1])[i] if len(i) else stays
        if stays.all():
            return kept, rounds
        gone = np.flatnonzero(~stays) if rows is None else rows[~stays]
        kept[gone] = False
        rows = np.flatnonzero(kept) if rows is None else rows[stays]
        if not iterative or len(rows) == 0:
            return kept, rounds


def checked_whole(value: Any, what: str, least: int = 0) -> int:
    """A whole number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise SplitError(
            f"{what}={value!r} is not a whole number of at least {least}.",
            hint=f"Pass {what}={max(least, 3)}.",
        )
    return int(value)


def cold(codes: Codes, rows: Bool, train: Bool, size: int) -> Bool:
    """Rows whose id does not occur in train."""
    known = np.zeros(size, dtype=bool)
    known[codes[train]] = True
    return rows & ~known[codes]


def distinct(codes: Codes, size: int) -> int:
    """How many different codes occur, of `size` there are."""
    present = np.zeros(size, dtype=bool)
    present[codes] = True
    return int(present.sum())
