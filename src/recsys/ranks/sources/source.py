"""The interface of sources, and the rows of their matrices by id.

Truth and seen items have ids; a source has rows. Without ids the ids are the row numbers, and any other
number is an error; with ids an unknown id is counted as a miss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from recsys.errors import IdTypeError, InputError
from recsys.inputs.ids import encode, ids_to_array
from recsys.ranks.ranked_truth import CountedTruth
from recsys.types import Array, Bool, Codes, Ids, Int, Interactions, Lists, Shown, entries_of_cases

Csr = tuple[Int, Codes]


@dataclass(frozen=True, eq=False)
class RankingOptions:
    """How a source ranks: which items are left out, backend, threads, how many places."""

    seen: Interactions | None = None
    eligible: Interactions | None = None
    never: Iterable[Any] | None = None
    backend: str = "auto"
    threads: int | None = None
    progress: Callable[[int, int], object] | None = None
    k: int | None = None
    """The length of the lists, if metrics about the items shown need lists."""
    deepest: int | None = None
    """The largest place that any metric reads; None if a metric reads all places."""


class Source(Protocol):
    """Ranks all candidates of a case."""

    @property
    def catalogue(self) -> Ids | None:
        """The ids of the items; None if they are row numbers."""

    @property
    def n_items(self) -> int:
        """The number of items."""

    def judge(self, truth: Interactions, options: RankingOptions) -> CountedTruth:
        """Count the place of each judged item among all candidates."""

    def top(self, users: Iterable[Any] | None, k: int, options: RankingOptions) -> Lists:
        """The k best candidates of each user."""


class IdRows:
    """The rows of one matrix: their number, and their ids if they have any."""

    def __init__(self, size: int, ids: Iterable[Any] | None, *, what: str) -> None:
        self.size = size
        self.what = what
        self.named = ids is not None
        if ids is None:
            self.ids = Ids(np.arange(size, dtype=np.int64))
            self.rank: Array = np.arange(size)
            return
        values = ids_to_array(ids, table="factors", column=what)
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
        """Whether the rows are in the order of their ids."""
        return not self.named or bool((self.rank == np.arange(self.size)).all())

    def row_of(self, values: Array, *, table: str) -> Int:
        """The row of each id, -1 for an unknown id; without ids a number that is no row is an error."""
        if len(values) == 0:
            return np.zeros(0, dtype=np.int64)
        if self.named:
            self.ids.same_kind(Ids(values), what=self.what)
        else:
            self._check_row_numbers(values, table)
        codes = self.ids.code_of(values)
        if not self.named or self.size == 0:
            return codes
        row_of_code = np.empty(self.size, dtype=np.int64)
        row_of_code[self.rank] = np.arange(self.size)
        return np.where(codes >= 0, row_of_code[codes], -1)

    def _check_row_numbers(self, values: Array, table: str) -> None:
        if values.dtype == object:
            raise IdTypeError(
                f"the {self.what} ids of the {table} are strings ({values[0]!r}, …), "
                "and the rows of the model have no ids.",
                table=table,
                column=self.what,
                hint=f"Pass {self.what}_ids= with the id of each row.",
            )
        outside = (values < 0) | (values >= self.size)
        if outside.any():
            unknown_id = int(values[0] if values[0] < 0 else values[-1])  # ids are sorted
            known_ids = f"{self.size} {self.what}s, ids 0 to {self.size - 1}"
            if self.size < 2:
                known_ids = f"1 {self.what}, id 0" if self.size else f"no {self.what}s"
            raise InputError(
                f"{self.what} {unknown_id} of the {table} does not exist in the model, "
                f"which has {known_ids}.",
                table=table,
                column=self.what,
                hint=f"Rows count from 0. If these are ids, pass {self.what}_ids= with the id of each row.",
            )


class UsersByItems:
    """Rows for users and rows for items: the base of sources that rank a whole catalogue."""

    user_rows: IdRows
    item_rows: IdRows

    @property
    def catalogue(self) -> Ids | None:
        """The ids of the items; None if they are row numbers."""
        return self.item_rows.ids if self.item_rows.named else None

    @property
    def n_items(self) -> int:
        """The number of items."""
        return self.item_rows.size

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.user_rows.size:,} users x {self.n_items:,} items)"

    def _item_codes(self, rows: Array) -> Codes:
        """The codes of rows of items: their places in the order of the ids."""
        return np.asarray(self.item_rows.rank[rows], dtype=np.int32)

    def _count_truth(
        self,
        truth: Interactions,
        places: tuple[Int, Int, Int],
        n_candidates: Int,
        lists: tuple[Int, Array] | None,
    ) -> CountedTruth:
        """The judged items with their counted places, and the lists of each case if there are any.

        Args:
            truth: the judged items.
            places: for each, the candidates above it, tied with it, and tied with a smaller id.
            n_candidates: how many candidates each case has.
            lists: the length of each case's list, and the rows of the items in them.
        """
        if lists is None:
            return CountedTruth(truth, *places, n_candidates, truth.clusters)
        lengths, rows = lists
        # Both are recoded to the union of their items: those of the model and those of the truth.
        items, of_list, of_truth = self.item_rows.ids.union(truth.items, what="item")
        codes = self._item_codes(rows)
        shown = Shown(
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            codes if of_list is None else of_list[codes],
        )
        truth = replace(truth, items=items, codes=truth.codes if of_truth is None else of_truth[truth.codes])
        return CountedTruth(truth, *places, n_candidates, truth.clusters, lists=shown)

    def cases_of(self, users: Iterable[Any] | None) -> tuple[Ids, Int]:
        """The ids of these users, or of all, and the row of each; a user without a row is an error."""
        if users is None:
            cases = self.user_rows.ids
        else:
            cases, _ = encode(ids_to_array(users, table="users", column="user"), table="users", column="user")
        rows = self.user_rows.row_of(cases.values, table="users")
        if (rows < 0).any():
            raise InputError(
                f"user {cases.name(np.argmin(rows))!r} is unknown to the model.",
                table="users",
                column="user",
                hint="Leave such users out: nothing ranks items for them.",
            )
        return cases, rows


def rows_of_cases(data: Interactions | None, cases: Ids, items: IdRows, *, table: str) -> Csr | None:
    """Interactions of these cases as ascending rows of the item matrix; unknown items are dropped."""
    if data is None:
        return None
    if not items.named and data.items.is_range and np.array_equal(data.cases.values, cases.values):
        items.row_of(data.items.values[-1:], table=table)
        return data.indptr, data.codes
    case, at = entries_of_cases(data, cases)
    row = items.row_of(data.items.values, table=table)[data.codes[at]]
    known = row >= 0
    case, row = case[known], row[known]
    if not items.sorted:
        order = np.lexsort((row, case))
        case, row = case[order], row[order]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(case, minlength=len(cases)))])
    return indptr, row.astype(np.int32)


def excluded_mask(never: Iterable[Any] | None, items: IdRows) -> Bool | None:
    """One flag per item, from the ids that must not be recommended."""
    if never is None:
        return None
    ids, _ = encode(ids_to_array(never, table="never", column="item"), table="never", column="item")
    rows = items.row_of(ids.values, table="never")
    mask = np.zeros(items.size, dtype=bool)
    mask[rows[rows >= 0]] = True
    return mask
