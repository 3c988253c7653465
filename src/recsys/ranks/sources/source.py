"""What ranks a whole catalogue, and the rows of its matrices by id.

Truth and seen items have ids; a source has rows. Without ids the ids are the row numbers (as text, too, where
files were read so), and any other id is an error, wherever it occurs; with ids an unknown id is a miss.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from copy import copy
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from recsys.errors import Fix, IdTypeError, InputError, Phrase
from recsys.inputs.containers import as_array
from recsys.inputs.ids import differing_ids_hint, encode, ids_to_array
from recsys.ranks.ranked_truth import CountedTruth
from recsys.ranks.rankings import ALL, ELIGIBLE, SCORED, RankingFacts, RankingOptions, TrainingItems
from recsys.records.arrays import (
    Array,
    Bool,
    Codes,
    Context,
    Ids,
    Int,
    Interactions,
    Lists,
    Shown,
    cached_property,
    entries_of_cases,
)
from recsys.records.checks import is_whole

Csr = tuple[Int, Codes]


_NO_IDS = Ids(np.zeros(0, np.int64))
_NO_LISTS = Lists(_NO_IDS, _NO_IDS, np.zeros(1, np.int64), np.zeros(0, np.int32))


class IdRows:
    """The rows of one matrix: their number, and their ids if they have any."""

    def __init__(self, size: Any, ids: Iterable[Any] | None, *, what: str) -> None:
        if not is_whole(size, 0) or size >= 1 << 31:
            raise InputError(
                f"n_{what}s={size!r} is not a number of {what}s.",
                hint=f"Pass how many {what}s there are, at most {(1 << 31) - 1:,}.",
            )
        self.size = int(size)
        self.what = what
        self.named = ids is not None
        self.numbered = ids is None  # ids are row numbers, be it as text
        self.others: int | None = None  # the row of ids that have none of their own
        self._codes: Codes | None = None
        if ids is None:
            return
        values = read_row_ids(ids, what)
        self.ids, self._codes = encode(values, table="factors", column=what)
        if len(values) != size or len(self.ids) != size:
            raise InputError(
                f"{what}_ids holds {len(values)} ids ({len(self.ids)} different) for {size} rows.",
                column=what,
                hint="Give each row one id of its own.",
            )

    @cached_property
    def ids(self) -> Ids:
        """The ids in ascending order; the row numbers where rows have no ids."""
        return Ids(np.arange(self.size, dtype=np.int64), is_range=True)

    @cached_property
    def rank(self) -> Array:
        """The place of each row in the order of the ids."""
        return np.arange(self.size) if self._codes is None else self._codes.astype(np.int64)

    @cached_property
    def sorted(self) -> bool:
        """Whether the rows are in the order of their ids."""
        return self._codes is None or bool((self._codes[1:] > self._codes[:-1]).all())

    def row_of(self, values: Array) -> Int:
        """Return the row of each id; of an unknown id that of `others`, or -1."""
        if len(values) == 0:
            return np.zeros(0, dtype=np.int64)
        if not self.named:
            if values.dtype == object:
                return np.full(len(values), -1, dtype=np.int64)
            return np.where((values >= 0) & (values < self.size), values, -1).astype(np.int64)
        self.ids.same_kind(Ids(values), what=self.what)
        codes = self.ids.code_of(values)
        unknown = -1 if self.others is None else self.others
        if self.sorted:
            return codes if unknown < 0 else np.where(codes >= 0, codes, unknown)
        row_of_code = np.empty(self.size, dtype=np.int64)
        row_of_code[self.rank] = np.arange(self.size)
        return np.where(codes >= 0, row_of_code[codes], unknown)

    def check_ids(self, ids: Ids, *, table: str, codes: Codes | None = None) -> None:
        """Raise an error if ids of rows are their numbers and an id of a table is not one of these.

        Args:
            ids: the ids of the table, ascending.
            table: its name in the error.
            codes: the ids that occur, if that need not be all.
        """
        if not self.numbered or len(ids) == 0:
            return
        where = f"the {table}" if table in ("truth", "lists") else Fix(table)
        row_ids = Fix(f"{self.what}_ids", of="Factors")
        known_ids = f"{self.size} {self.what}s, ids 0 to {self.size - 1}"
        if self.size < 2:
            known_ids = f"1 {self.what}, id 0" if self.size else f"no {self.what}s"
        if ids.kind == "str" and not self.named:
            raise IdTypeError(
                Phrase("the {} ids of {} are strings ({!r}, …), ", self.what, where, ids.name(0))
                + "and the rows of the model have no ids.",
                table=table,
                column=self.what,
                hint=Phrase("Give the model {} with the id of each row.", row_ids),
            )
        unknown = self.row_of(ids.values) < 0
        if codes is not None and unknown.any():
            unknown &= np.bincount(codes, minlength=len(ids)) > 0
        wrong = ids.values[unknown].tolist()
        if wrong:
            kept = f"keep the id of each row in the model's file, as an array {self.what}_ids, or "
            hint = (kept if self.named else "") + Phrase(
                "give the model {} with the id of each row.", row_ids
            )
            raise InputError(
                f"{self.what} {wrong[0 if self.named or wrong[0] < 0 else -1]!r} of "
                + Phrase("{} does not exist in the model, which has {}.", where, known_ids),
                table=table,
                column=self.what,
                hint="Rows count from 0. If these are ids, " + hint,
            )

    def check_numbers(self, ids: Ids, *, table: str) -> None:
        """Raise an error if a table counts as many rows as the model has from 0, and their ids are others."""
        if not self.named or not ids.is_range or len(ids) != self.size or self.size == 0:
            return
        if self.ids.kind != "int" or self.ids.name(0) != 0 or self.ids.name(-1) != self.size - 1:
            raise InputError(
                f"{table} has no {self.what} ids, it counts {self.size} {self.what}s from 0, and the rows of "
                f"the model have ids ({self.ids.name(0)!r}, …).",
                table=table,
                column=self.what,
                hint=f"Pass {table} with ids: a dict, or a table.",
            )


def read_row_ids(ids: Iterable[Any], what: str) -> Array:
    """Return the ids of the rows of a matrix, in the order of the rows."""
    unordered = isinstance(ids, str | bytes | Mapping | AbstractSet) or not isinstance(ids, Iterable)
    if unordered or getattr(ids, "ndim", 1) != 1:
        shape = f" of shape {ids.shape}" if isinstance(ids, np.ndarray) else ""
        raise InputError(
            f"{what}_ids came as {type(ids).__name__}{shape}; expected one id per row, in their order.",
            column=what,
            hint="Pass a list or a 1-D array: the id of row 0, of row 1, …",
        )
    return ids_to_array(as_array(ids) if hasattr(ids, "__array__") else ids, table="factors", column=what)


class UsersByItems(ABC):
    """Rows for users and rows for items: a `Ranking` of a whole catalogue, and the base of all of them."""

    user_rows: IdRows
    item_rows: IdRows
    about: Mapping[str, Any] = MappingProxyType({})
    """What the file says that it was read from, as `describe_model` reads it: name, settings, data."""
    lists = _NO_LISTS
    complete = True
    rules_out: Any = False
    """Whether scores themselves exclude candidates."""
    _training_items: TrainingItems = "ranked"

    @abstractmethod
    def judge(self, truth: Interactions, options: RankingOptions) -> CountedTruth:
        """Count the place of each judged item among all candidates."""

    @abstractmethod
    def top(self, users: Iterable[Any] | None, k: int, options: RankingOptions) -> Lists:
        """Return the k best candidates of these users, or of all; equal scores are ordered by id."""

    @abstractmethod
    def memory_needed(self, truth: Interactions, options: RankingOptions) -> int:
        """Return the least `memory` of the options, in bytes, with which the truth can be judged."""

    @property
    def given(self) -> Self:
        return self

    @property
    def catalogue(self) -> Ids:
        """The ids of the items."""
        return self.item_rows.ids

    @property
    def n_items(self) -> int:
        """The number of items."""
        return self.item_rows.size

    @property
    def n_places(self) -> int:
        return self.n_items

    def rank(self, truth: Interactions, options: RankingOptions) -> CountedTruth:
        """Count the place of each judged item; an error if the model knows no user of the truth."""
        judged = self.judge(truth, options)
        if options.shared and len(truth.cases) and not judged.n_candidates.any():
            self.check_users(truth)
        return judged

    def of_cases(self, cases: Ids) -> Self:
        del cases  # it ranks for the cases of the truth
        return self

    def covered(self, truth: Interactions) -> Ids:
        return truth.cases

    def cases_with(self, truth: Interactions) -> tuple[Ids, Array | None]:
        return truth.cases, truth.clusters

    def among(self, catalogue: Ids | None, n_items: int | None, *, complete: bool, source: str) -> Self:
        del catalogue, complete, source
        if n_items is not None:
            hint = Phrase("Leave out {catalogue=}, or use {exclude=}.")
            raise InputError("the items of the model are the catalogue.", hint=hint)
        return self

    def chosen_from(self, options: RankingOptions) -> str:
        return SCORED if self.rules_out else ALL if options.eligible is None else ELIGIBLE

    def check_inputs(
        self,
        truth: Interactions,
        options: RankingOptions,
        context: Context,
        *,
        cases_are_users: bool,
        needs: Collection[str],
    ) -> None:
        """Raise an error if the model has no ids and no row for an id."""
        del needs
        for table, data in (("truth", truth), ("seen", options.seen), ("eligible", options.eligible)):
            if data is not None:
                self.check_ids(data, table)
        if context.train is not None:
            self.check_ids(context.train, "train", users=cases_are_users)
        if context.embeddings is not None:
            self.item_rows.check_numbers(context.embeddings.ids, table="embeddings")
        if context.profiles is not None and cases_are_users:
            self.user_rows.check_numbers(context.profiles.ids, table="profiles")

    def check_users(self, truth: Interactions) -> None:
        """Raise an error if no user of the truth is known to the model, so that the ids must differ."""
        rows = self.user_rows
        if rows.size and (rows.row_of(truth.cases.values) < 0).all():
            raise InputError(
                f"no user of the truth ({truth.cases.name(0)!r}, …) has a row in the model "
                f"({rows.ids.name(0)!r}, …).",
                column="user",
                hint=differing_ids_hint(rows.ids, truth.cases, "user"),
            )

    def facts(self, options: RankingOptions, context: Context) -> RankingFacts:
        are_known = options.seen is not None or options.eligible is not None or context.train is not None
        return RankingFacts(training_items=None if are_known else self._training_items)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.user_rows.size:,} users x {self.n_items:,} items)"

    def with_ids(self, user_ids: Iterable[Any] | None, item_ids: Iterable[Any] | None) -> Self:
        """Return the same model with the id of each row; raise an error where rows have ids already."""
        if user_ids is None and item_ids is None:
            return self
        out = copy(self)
        for name, ids in (("user_rows", user_ids), ("item_rows", item_ids)):
            rows: IdRows = getattr(self, name)
            if ids is not None and not rows.numbered:
                raise InputError(
                    f"{rows.what}_ids= was given, and the rows of the {type(self).__name__} have "
                    f"{rows.what} ids already.",
                    column=rows.what,
                    hint=f"Leave out {rows.what}_ids=.",
                )
            if ids is not None:
                setattr(out, name, IdRows(rows.size, ids, what=rows.what))
        return out

    def with_text_ids(self) -> Self:
        """Return the same model, where rows without ids have their numbers as text, as files have ids."""
        sides = (self.user_rows, self.item_rows)
        return self.renamed(*(None if rows.named else list(map(str, range(rows.size))) for rows in sides))

    def renamed(self, user_ids: Iterable[Any] | None, item_ids: Iterable[Any] | None) -> Self:
        """Return the same model with other ids of its rows, such as numbers for text."""
        out = copy(self)
        for name, ids in (("user_rows", user_ids), ("item_rows", item_ids)):
            rows: IdRows = getattr(self, name)
            if ids is not None:
                others = IdRows(rows.size, ids, what=rows.what)
                others.numbered, others.others = rows.numbered, rows.others
                setattr(out, name, others)
        return out

    def for_any_user(self, row: int = 0) -> Self:
        """Return the same model, which ranks for users without a row as for this row."""
        if not 0 <= row < self.user_rows.size or not self.user_rows.named:
            raise InputError(f"row {row} is not one of the {self.user_rows.size:,} rows of users with ids.")
        out = copy(self)
        out.user_rows = copy(self.user_rows)
        out.user_rows.others = row
        return out

    def check_ids(self, data: Interactions | Lists, table: str, *, users: bool = True) -> None:
        """Raise an error if data name a user or an item that is not a row of a model without ids.

        The rows and columns of a matrix have no ids but their numbers: it must not be larger than such a
        model, nor as large as a model whose ids are other numbers.

        Args:
            data: what was given.
            table: its name in the error.
            users: whether its users are those of the model.
        """
        n_rows, n_columns = data.facts.n_rows, data.facts.n_columns
        sides = [(self.user_rows, data.cases, n_rows), (self.item_rows, data.items, n_columns)]
        for rows, ids, size in sides if users else sides[1:]:
            if size is None or not ids.is_range:
                continue
            if not rows.named and size > rows.size:
                shape = f"{n_rows} rows, one per user,"
                hint = "If the rows are not the users 0, 1, 2, …, pass a table or {user: [items]}."
                if n_columns is not None:
                    shape = f"a matrix of {n_rows} users x {n_columns} items"
                    hint = "Rows and columns of a matrix are those of the model; cut it to the same shape."
                raise InputError(
                    f"{table} came as {shape} and the model has "
                    f"{self.user_rows.size} users x {self.item_rows.size} items.",
                    table=table,
                    column=rows.what,
                    hint=hint,
                )
            rows.check_numbers(ids, table=table)
        if users:
            self.user_rows.check_ids(data.cases, table=table)
        self.item_rows.check_ids(data.items, table=table, codes=data.codes)

    def _item_codes(self, rows: Array) -> Codes:
        """Return the codes of rows of items: their places in the order of the ids."""
        return np.asarray(self.item_rows.rank[rows], dtype=np.int32)

    def _count_truth(
        self,
        truth: Interactions,
        places: tuple[Int, Int, Int],
        n_candidates: Int,
        lists: tuple[Int, Array, Array | None] | None,
    ) -> CountedTruth:
        """Return the judged items with their counted places, and the lists of each case if there are any.

        Args:
            truth: the judged items.
            places: for each, the candidates above it, tied with it, and tied with a smaller id.
            n_candidates: how many candidates each case has.
            lists: the length of each case's list, the rows of the items in them, and their scores if these
                are kept.
        """
        if lists is None:
            return CountedTruth(truth, *places, n_candidates, truth.clusters)
        lengths, rows, scores = lists
        # Both are recoded to the union of their items: those of the model and those of the truth.
        items, of_list, of_truth = self.item_rows.ids.union(truth.items, what="item")
        codes = self._item_codes(rows)
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        shown = Shown(indptr, codes if of_list is None else of_list[codes])
        top = None if scores is None else Lists(truth.cases, self.item_rows.ids, indptr, codes, scores)
        truth = replace(truth, items=items, codes=truth.codes if of_truth is None else of_truth[truth.codes])
        return CountedTruth(truth, *places, n_candidates, truth.clusters, lists=shown, top=top)

    def cases_of(self, users: Iterable[Any] | None) -> tuple[Ids, Int]:
        """Return the ids of these users, or of all, and the row of each; a user without a row is an error."""
        if users is None:
            cases = self.user_rows.ids
        else:
            cases, _ = encode(ids_to_array(users, table="users", column="user"), table="users", column="user")
        self.user_rows.check_ids(cases, table="users")
        rows = self.user_rows.row_of(cases.values)
        if (rows < 0).any():
            raise InputError(
                f"user {cases.name(np.argmin(rows))!r} is unknown to the model.",
                table="users",
                column="user",
                hint="Leave such users out: nothing ranks items for them.",
            )
        return cases, rows

    def candidate_rows(
        self, options: RankingOptions, cases: Ids
    ) -> tuple[Csr | None, Csr | None, Bool | None]:
        """Return the items each case has seen, those it may be recommended, and those that no case may."""
        return *self.rows_of_cases(options, cases), self.excluded_rows(options)

    def rows_of_cases(self, options: RankingOptions, cases: Ids) -> tuple[Csr | None, Csr | None]:
        """Return the items each case has seen, and those it may be recommended."""
        per_case = []
        for name in ("seen", "eligible"):
            data: Interactions | None = getattr(options, name)
            if data is not None:
                self.check_ids(data, name)
            per_case.append(None if data is None else _rows_of_cases(data, cases, self.item_rows))
        return per_case[0], per_case[1]

    def excluded_rows(self, options: RankingOptions) -> Bool | None:
        """Return which items no case may be recommended."""
        if options.exclude is None:
            return None
        values = ids_to_array(options.exclude, table="exclude", column="item")
        ids, _ = encode(values, table="exclude", column="item")
        self.item_rows.check_ids(ids, table="exclude")
        rows = self.item_rows.row_of(ids.values)
        excluded = np.zeros(self.item_rows.size, dtype=bool)
        excluded[rows[rows >= 0]] = True
        return excluded


def check_memory(memory: int, needed: int, what: str) -> None:
    """Raise an error if the smallest block does not fit a budget of bytes."""
    if memory < needed:
        from recsys.inputs.byte_sizes import format_memory

        raise InputError(
            f"memory is {format_memory(memory)}, and the smallest blocks of {what} need "
            f"{format_memory(needed)}.",
            hint=f'Write memory="{format_memory(needed)}" or more.',
        )


def _rows_of_cases(data: Interactions, cases: Ids, items: IdRows) -> Csr:
    """Interactions of these cases as ascending rows of the item matrix; unknown items are dropped."""
    if not items.named and data.items.is_range and np.array_equal(data.cases.values, cases.values):
        return data.indptr, data.codes
    case, at = entries_of_cases(data, cases)
    row = items.row_of(data.items.values)[data.codes[at]]
    known = row >= 0
    case, row = case[known], row[known]
    if not items.sorted:
        order = np.lexsort((row, case))
        case, row = case[order], row[order]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(case, minlength=len(cases)))])
    return indptr, row.astype(np.int32)


def is_model_path(source: Any) -> bool:
    """Return whether it is the path of a model, a file or folder of arrays, and not of a table."""
    if not isinstance(source, str | Path):
        return False
    from recsys.inputs.files.matrices import SUFFIXES

    if os.path.isdir(source):  # noqa: PTH112 - False where a name is too long
        return any(file.suffix.lower() in SUFFIXES for file in Path(source).glob("*"))
    return Path(source).suffix.lower() in SUFFIXES[1:]  # a .npy holds one
