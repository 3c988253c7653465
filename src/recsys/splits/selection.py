"""Filtering before a split: users and items with enough interactions, and an account of the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from recsys.errors import SplitError
from recsys.splits.filters import checked_whole, core, distinct
from recsys.splits.split_table import InteractionTable, table_of
from recsys.types import Bool


class Selection:
    """What stays and what does not, in the kind the data came as; unpacks into `kept, excluded`."""

    def __init__(self, table: InteractionTable, keep: Bool, counts: dict[str, Any]) -> None:
        self._table = table
        self.mask = keep
        self.counts = counts

    @cached_property
    def kept(self) -> Any:
        """The rows that stay."""
        return self._table.take(self.mask)

    @cached_property
    def excluded(self) -> Any:
        """The rows that do not."""
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
    """Rows of users and items with at least so many rows; iterated until it holds of what is left (k-core).

    >>> kept, excluded = min_interactions(
    ...     {"ann": ["a", "b"], "bob": ["a", "b"], "eve": ["c"]}, user=2, item=2
    ... )
    >>> kept, excluded
    ({'ann': ['a', 'b'], 'bob': ['a', 'b']}, {'eve': ['c']})
    """
    least = checked_whole(user, "user"), checked_whole(item, "item")
    table = table_of(data, columns)
    users, of_user = table.ids("user")
    items, of_item = table.ids("item")
    keep, rounds = core(of_user, of_item, least, iterative=iterative)
    if not keep.any():
        raise SplitError(
            f"no row is left: no user with {least[0]} and item with {least[1]} rows.", hint="Ask for fewer."
        )
    counts = {
        "input": len(table),
        "kept": int(keep.sum()),
        "excluded": int((~keep).sum()),
        "users_excluded": distinct(of_user, len(users)) - distinct(of_user[keep], len(users)),
        "items_excluded": distinct(of_item, len(items)) - distinct(of_item[keep], len(items)),
        "rounds": rounds,
    }
    return Selection(table, keep, counts)
