"""Filter before a split: keep users and items with enough interactions, and count the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from recsys.errors import SplitError
from recsys.splits.split_table import InteractionTable, as_interaction_table
from recsys.types import Bool, Codes, Int


class Selection:
    """The kept and the excluded rows, with the type of the data; unpacks into `kept, excluded`."""

    def __init__(self, table: InteractionTable, keep: Bool, counts: dict[str, Any]) -> None:
        self._table = table
        self.mask = keep
        self.counts = counts

    @cached_property
    def kept(self) -> Any:
        """The rows with enough interactions."""
        return self._table.take(self.mask)

    @cached_property
    def excluded(self) -> Any:
        """All other rows."""
        return self._table.take(~self.mask)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.kept, self.excluded))

    def __repr__(self) -> str:
        return f"Selection({', '.join(f'{name}={value:,}' for name, value in self.counts.items())})"


def min_interactions(
    data: Any,
    user: int = 5,
    item: int = 5,
    *,
    iterative: bool = True,
    columns: Mapping[str, Any] | None = None,
) -> Selection:
    """Keep the rows of users and items with enough rows.

    Args:
        data: anything that `split` takes.
        user: the number of rows every user must have.
        item: the number of rows every item must have.
        iterative: repeat until it holds for the rows that are left (the k-core); otherwise filter once.
        columns: the column of each role ("user", "item"), where it is not recognised.

    Raises:
        SplitError: no row is left.

    >>> kept, excluded = min_interactions(
    ...     {"ann": ["a", "b"], "bob": ["a", "b"], "eve": ["c"]}, user=2, item=2
    ... )
    >>> kept, excluded
    ({'ann': ['a', 'b'], 'bob': ['a', 'b']}, {'eve': ['c']})
    """
    minimum = check_whole_number(user, "user"), check_whole_number(item, "item")
    table = as_interaction_table(data, columns)
    users, user_codes = table.ids("user")
    items, item_codes = table.ids("item")
    keep, rounds = k_core(user_codes, item_codes, minimum, iterative=iterative)
    if not keep.any():
        raise SplitError(
            f"no row is left: no user with {minimum[0]} and item with {minimum[1]} rows.",
            hint="Ask for fewer.",
        )
    counts = {
        "input": len(table),
        "kept": int(keep.sum()),
        "excluded": int((~keep).sum()),
        "users_excluded": count_distinct(user_codes, len(users))
        - count_distinct(user_codes[keep], len(users)),
        "items_excluded": count_distinct(item_codes, len(items))
        - count_distinct(item_codes[keep], len(items)),
        "rounds": rounds,
    }
    return Selection(table, keep, counts)


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


def count_distinct(codes: Codes, size: int) -> int:
    """How many different codes below `size` occur."""
    present = np.zeros(size, dtype=bool)
    present[codes] = True
    return int(present.sum())


def check_whole_number(value: Any, name: str, minimum: int = 0) -> int:
    """Return the value as an int; an error if it is not a whole number of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise SplitError(
            f"{name}={value!r} is not a whole number of at least {minimum}.",
            hint=f"Pass {name}={max(minimum, 3)}.",
        )
    return int(value)
