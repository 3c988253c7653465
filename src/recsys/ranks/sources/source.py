"""What every source is asked, and how ids become rows of its matrices.

Truth and seen items come with ids; a source has rows. Without ids the ids are the row numbers, and one
that lies outside is an error; with ids an unknown one is a miss that is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from recsys.errors import IdTypeError, InputError
from recsys.inputs.ids import encode, of_any
from recsys.ranks.counting import CountedTruth
from recsys.types import Array, Bool, Codes, Ids, Int, Interactions, Lists, entries_of

Csr = tuple[Int, Codes]


@dataclass(frozen=True, eq=False)
class RankingOptions:
    """How a source is to rank: without which items, for whom, with how many threads."""

    seen: Interactions | None = None
    eligible: Interactions | None = None
    never: Iterable[Any] | None = None
    backend: str = "auto"
    threads: int | None = None
    progress: Callable[[int, int], object] | None = None
    k: int | None = None
    """How long the lists have to be, where metrics about the items shown ask for them."""
    deepest: int | None = None
    """How many places all metrics together look at; None where one looks at them all."""


class Source(Protocol):
    """Ranks all candidates of a case."""

    @property
    def catalogue(self) -> Ids | None:
        """The items, where they have ids of their own."""

    @property
    def n_items(self) -> int:
        """How many items there are."""

    def judge(self, truth: Interactions, asked: RankingOptions) -> CountedTruth:
        """Where the judged items land among all candidates."""

    def top(self, users: Iterable[Any] | None, k: int, asked: RankingOptions) -> Lists:
        """The k best candidates of each user."""


class IdRows:
    """The rows of one matrix: their number, and the ids where they have some."""

    def __init__(self, size: int, ids: Iterable[Any] | None, *, what: str) -> None:
        self.size = size
        self.what = what
        self.named = ids is not None
        if ids is None:
            self.ids = Ids(np.arange(size, dtype=np.int64))
            self.rank: Array = np.arange(size)
            return
        values = of_any(ids, table="factors", column=what)
        self.ids, codes = encode(values, table="factors", column=what)
        if len(values) != size or len(self.ids) != size:
            raise InputError(
                f"{what}_ids holds {len(values)} ids ({len(self.ids)} different) for {size} rows.",
                column=what,
                hint="Give each row one id of its own.",
            )
        self.rank = codes.astype(np.int64)

    @property
    def sorted(self) -> bool:
        """Whether the rows stand in the order of their ids."""
        return not self.named or bool((self.rank == np.arange(self.size)).all())

    def row_of(self, values: Array, *, table: str) -> Int:
        """The row of each id, -1 for an unknown one; without ids an unknown one is an error."""
        if len(values) == 0:
            return np.zeros(0, dtype=np.int64)
        if self.named:
            self.ids.same_kind(Ids(values), what=self.what)
        else:
            self._check_index(values, table)
        codes = self.ids.code_of(values)
        if not self.named or self.size == 0:
            return codes
        row_of_code = np.empty(self.size, dtype=np.int64)
        row_of_code[self.rank] = np.arange(self.size)
        return np.where(codes >= 0, row_of_code[codes], -1)

    def _check_index(self, values: Array, table: str) -> None:
        if values.dtype == object:
            raise IdTypeError(
                f"the {self.what} ids of the {table} are strings ({values[0]!r}, …), the rows have none.",
                table=table,
                column=self.what,
                hint=f"Pass {self.what}_ids= with the id of each row.",
            )
        outside = (values < 0) | (values >= self.size)
        if outside.any():
            first = int(values[0] if values[0] < 0 else values[-1])  # both ends of sorted ids occur
            raise InputError(
                f"the {self.what} {first} of the {table} is no row: there are {self.size}.",
                table=table,
                column=self.what,
                hint=f"Rows count from 0. If these are ids, pass {self.what}_ids= with the id of each row.",
            )


class UsersByItems:
    """Rows for users and rows for items: what every source has that ranks a whole catalogue."""

    user_rows: IdRows
    item_rows: IdRows

    @property
    def catalogue(self) -> Ids | None:
        """The items, where they have ids of their own."""
        return self.item_rows.ids if self.item_rows.named else None

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return self.item_rows.size

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.user_rows.size:,} users x {self.n_items:,} items)"

    def cases_of(self, users: Iterable[Any] | None) -> tuple[Ids, Int]:
        """The users named, or all, and the row of each; a user without one is an error."""
        if users is None:
            cases = self.user_rows.ids
        else:
            cases, _ = encode(of_any(users, table="users", column="user"), table="users", column="user")
        rows = self.user_rows.row_of(cases.values, table="users")
        if (rows < 0).any():
            raise InputError(
                f"user {cases.name(np.argmin(rows))!r} is unknown to the model.",
                table="users",
                column="user",
                hint="Leave such users out: nothing ranks items for them.",
            )
        return cases, rows


def restricted(data: Interactions | None, cases: Ids, items: IdRows, *, table: str) -> Csr | None:
    """Interactions of some cases as rows of the item matrix, ascending; what is unknown is dropped."""
    if data is None:
        return None
    if not items.named and data.items.is_range and np.array_equal(data.cases.values, cases.values):
        items.row_of(data.items.values[-1:], table=table)
        return data.indptr, data.codes
    case, at = entries_of(data, cases)
    row = items.row_of(data.items.values, table=table)[data.codes[at]]
    known = row >= 0
    case, row = case[known], row[known]
    if not items.sorted:
        order = np.lexsort((row, case))
        case, row = case[order], row[order]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(case, minlength=len(cases)))])
    return indptr, row.astype(np.int32)


def never_mask(never: Iterable[Any] | None, items: IdRows) -> Bool | None:
    """One flag an item, from the ids that must not be recommended."""
    if never is None:
        return None
    ids, _ = encode(of_any(never, table="never", column="item"), table="never", column="item")
    rows = items.row_of(ids.values, table="never")
    mask = np.zeros(items.size, dtype=bool)
    mask[rows[rows >= 0]] = True
    return mask
