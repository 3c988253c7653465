"""What the checks look at: both sides of a split, the lists and the catalogue, over one set of ids.

Each table is read once, as rows, before repeats are merged; what is wrong with it (float ids, unreadable
times) becomes a finding. Values derived from the rows are cached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from recsys.audits.findings import Finding
from recsys.conventions.decisions import Conventions
from recsys.errors import FloatIdWarning, InputError, Phrase, RecsysError, RecsysWarning, hush
from recsys.inputs.files import read_file
from recsys.inputs.frames import as_frame, detect_columns, encode_column
from recsys.inputs.ids import encode, ids_to_array
from recsys.inputs.rows import Rows, to_interactions
from recsys.inputs.timestamps import Clock
from recsys.models.baselines import ItemScores, popularity
from recsys.ranks.open_ranking import open_ranking
from recsys.ranks.rankings import RankingOptions
from recsys.ranks.sources import Factors, Scores
from recsys.records.arrays import (
    Array,
    Bool,
    Float,
    Ids,
    Int,
    Interactions,
    Lists,
    cached_property,
    is_in,
    sorted_unique,
)
from recsys.splits.split_table import FrameTable, as_interaction_table

_POPULARITY_COLUMNS = ("popularity", "nratings", "nusers", "numratings", "ratingcount")
_TIME_KINDS = {
    "number": "numbers",
    "plain": "dates without a time zone",
    "zoned": "dates with a time zone",
}
_EPOCH_DIGITS: dict[int, Literal["s", "ms"]] = {9: "s", 10: "s", 12: "ms", 13: "ms"}  # of numbers since 1970
_NATURAL_REPEATS = 0.01  # the share of repeated pairs in train above which repeats are natural
MANY_USERS = 20_000  # with more, checks that evaluate look at an evenly spaced sample of the users


@dataclass(frozen=True, eq=False)
class SplitSide:
    """Rows of one side: codes of user and item, times and grades if there are any."""

    user: Int
    item: Int
    time: Array | None = None
    grade: Float | None = None
    repeated: int = 0  # rows that were merged before the audit

    def __len__(self) -> int:
        return len(self.user)


@dataclass(frozen=True, eq=False)
class ListEntries:
    """List entries in order: codes of user and item (-1: on neither side), place from 1, score."""

    user: Int
    item: Int
    place: Int
    score: Float | None

    @property
    def known(self) -> Bool:
        """Which entries have a user and an item that occur on a side."""
        return (self.user >= 0) & (self.item >= 0)


class RawTable(NamedTuple):
    """One table as it was read: its ids, codes and clock."""

    users: Ids
    items: Ids
    user: Array
    item: Array
    clock: Clock | None
    grade: Array | None
    repeated: int


@dataclass(eq=False)
class Evidence:
    """Both sides over shared ids, and what is derived from them."""

    raw: Mapping[str, RawTable]
    users: Ids
    items: Ids
    train: SplitSide
    test: SplitSide
    ranked: Any = None
    models: Mapping[str, Any] = field(default_factory=dict)
    catalogue: Ids | None = None
    given_popularity: Float | None = None
    clock: Clock | None = None
    k: int = 10
    metrics: tuple[str, ...] = ()
    conventions: Conventions = field(default_factory=Conventions)
    n_examples: int = 5
    sampled: int | None = None

    @property
    def n_users(self) -> int:
        return len(self.users)

    @property
    def n_items(self) -> int:
        return len(self.items)

    @cached_property
    def train_counts(self) -> Int:
        """The number of users of each item in train."""
        return np.bincount(self.train_pairs % self.width, minlength=self.n_items)

    @cached_property
    def test_counts(self) -> Int:
        """The number of users of each item in the test."""
        return np.bincount(self.test_pairs % self.width, minlength=self.n_items)

    @property
    def width(self) -> int:
        return max(self.n_items, 1)

    def pairs(self, side: SplitSide | ListEntries) -> Int:
        """(user, item) as one number."""
        return np.asarray(side.user * self.width + side.item)

    @cached_property
    def train_pairs(self) -> Int:
        return sorted_unique(self.pairs(self.train))

    @cached_property
    def test_pairs(self) -> Int:
        return sorted_unique(self.pairs(self.test))

    def seen(self, side: SplitSide | ListEntries) -> Bool:
        """Which rows are a (user, item) pair of train."""
        return is_in(self.pairs(side), self.train_pairs) & (side.user >= 0) & (side.item >= 0)

    @property
    def hits(self) -> Bool:
        """Which list entries are a (user, item) pair of the test."""
        return is_in(self.pairs(self.lists), self.test_pairs) & self.lists.known

    @cached_property
    def test_users(self) -> Int:
        """Codes of the users of the test."""
        return np.flatnonzero(np.bincount(self.test.user, minlength=self.n_users))

    @property
    def times(self) -> tuple[Array, Array]:
        """The times of train and of test, for the checks that need them."""
        if self.train.time is None or self.test.time is None:
            raise InputError("both sides need a time column without gaps.")
        return self.train.time, self.test.time

    @cached_property
    def last_train_time(self) -> Array:
        """The newest training time of each user; the lowest possible number without one."""
        time = self.times[0]
        low = np.iinfo(np.int64).min if time.dtype.kind == "i" else -np.inf
        newest = np.full(self.n_users, low, dtype=time.dtype)
        np.maximum.at(newest, self.train.user, time)
        return newest

    @cached_property
    def repeats_are_natural(self) -> bool:
        """Whether users have the same item at several times within train, as in shops that sell milk."""
        n_repeats = len(self.train) - len(self.train_pairs)
        if self.train.time is not None:  # rows of the same time are copies, not repeats
            n_repeats -= int(self.repeated_rows(self.train).sum())
        return n_repeats + self.train.repeated > _NATURAL_REPEATS * (len(self.train) + self.train.repeated)

    def repeated_rows(self, side: SplitSide) -> Bool:
        """Rows that repeat the user and item of another, and its time if there are times."""
        columns = [self.pairs(side)] if side.time is None else [side.time, self.pairs(side)]
        order = np.lexsort(columns)
        same = [column[order][1:] == column[order][:-1] for column in columns]
        rows = np.zeros(len(side), dtype=bool)
        rows[order[1:][np.logical_and.reduce(same)]] = True
        return rows

    @cached_property
    def lists(self) -> ListEntries:
        """The entries of the lists, or the k best unseen items of a source; empty if there are no lists."""
        if self.ranked is None:
            nothing = np.zeros(0, dtype=np.int64)
            return ListEntries(nothing, nothing, nothing, None)
        lists = self.ranked.lists
        if self.is_source:
            lists = self.ranked.top(self.sample.tolist(), self.k, RankingOptions(seen=self.history))
        owners = lists.cases.values if lists.clusters is None else lists.clusters
        user, item = self.users.code_of(owners), self.items.code_of(lists.items.values)
        owner = np.repeat(np.arange(len(lists.cases)), lists.sizes)
        place = np.arange(1, len(owner) + 1) - np.repeat(lists.indptr[:-1], lists.sizes)
        return ListEntries(user[owner], item[lists.codes], place, lists.scores)

    @property
    def scores(self) -> Float:
        """The scores of the list entries, for the checks that need them."""
        if self.lists.score is None:
            raise InputError("the lists have no scores.")
        return self.lists.score

    @property
    def is_source(self) -> bool:
        """Whether Factors or Scores rank the whole catalogue instead of ready lists."""
        return isinstance(self.ranked, Factors | Scores)

    @cached_property
    def history(self) -> Interactions:
        """Train as interactions, without users and items that a source has no rows for."""
        user, item = self.train.user, self.train.item
        if self.is_source:
            known = has_row(self.ranked.user_rows, self.users)[user]
            known &= has_row(self.ranked.item_rows, self.items)[item]
            user, item = user[known], item[known]
        return self._interactions(SplitSide(user, item))

    @cached_property
    def truth(self) -> Interactions:
        """The test of the users in `sample` as interactions."""
        in_sample = np.zeros(self.n_users, dtype=bool)
        in_sample[self.users.code_of(self.sample)] = True
        mask = in_sample[self.test.user]
        if self.is_source:
            mask &= has_row(self.ranked.item_rows, self.items)[self.test.item]
        grade = None if self.test.grade is None else self.test.grade[mask]
        return self._interactions(SplitSide(self.test.user[mask], self.test.item[mask], grade=grade))

    @cached_property
    def sample(self) -> Array:
        """The test users that are evaluated: all that the model knows, or an evenly spaced sample of many."""
        present = self.test_users
        if self.is_source:
            present = present[has_row(self.ranked.user_rows, self.users)[present]]
        step = max(1, -(-len(present) // MANY_USERS))
        return self.users.values[present[::step]]

    @cached_property
    def is_sampled(self) -> bool:
        """Whether only a part of the test users is evaluated because they are many."""
        return len(self.sample) < len(self.test_users) and len(self.sample) > MANY_USERS // 2

    def _interactions(self, side: SplitSide) -> Interactions:
        present = np.flatnonzero(np.bincount(side.user, minlength=self.n_users))
        case = np.zeros(self.n_users, dtype=np.int32)
        case[present] = np.arange(len(present))
        grade = None if side.grade is None or side.grade.min(initial=0.0) < 0 else side.grade
        cases, item = Ids(self.users.values[present]), side.item.astype(np.int32)
        return to_interactions(Rows("truth", cases, case[side.user], self.items, item, grade=grade))

    def popular(self, counts: Array) -> Factors:
        """A model that recommends the items with the highest counts to everyone."""
        return popularity(
            ItemScores(self.items.values, counts.astype(np.float64)), users=self.sample.tolist()
        )

    def examples(self, mask: Bool, side: SplitSide | ListEntries) -> tuple[Any, ...]:
        """The first rows of a mask as (user, item) ids."""
        rows = np.flatnonzero(mask)[: self.n_examples]
        return tuple((self.users.name(side.user[r]), self.items.name(side.item[r])) for r in rows)

    def finding_of_test(
        self, mask: Bool, severity: str, rows: str, fault: str, *, todo: str, **values: Any
    ) -> Finding | None:
        """That some rows or events of the test are at fault, with their share; None if there are none."""
        n, n_all = int(mask.sum()), len(self.test)
        if n == 0:
            return None
        text = f"{n:,} of {n_all:,} test {rows} ({n / n_all:.1%}) are {fault}"
        return Finding(
            severity, text, n, self.examples(mask, self.test), todo, {**values, "share": n / n_all}
        )

    def first_names(self, ids: Ids, codes: Int) -> tuple[Any, ...]:
        """The first of these codes as the user typed them."""
        return tuple(ids.name(code) for code in codes[: self.n_examples])

    def format_time(self, value: Any) -> str:
        """A time as the table writes it; of seconds or milliseconds since 1970 also the date."""
        if self.clock is None:
            return str(value)
        text, digits = self.clock.shown(value), len(str(abs(int(value))))
        if self.clock.kind != "number" or self.clock.tick is not None or digits not in _EPOCH_DIGITS:
            return text
        date = np.datetime64(int(value), _EPOCH_DIGITS[digits])
        return f"{str(date).partition('.')[0].replace('T', ' ')}, {text}"


def users_of_lists(lists: Lists) -> Ids:
    """Whose lists they are: the cases themselves, or their users where a user has several cases."""
    return lists.cases if lists.clusters is None else Ids(np.unique(lists.clusters))


def has_row(rows: Any, ids: Ids) -> Bool:
    """Which ids a source has a row for: its own ids, or numbers below its number of rows."""
    if rows.named:
        if rows.ids.kind != ids.kind:
            return np.zeros(len(ids), dtype=bool)
        return np.asarray(rows.row_of(ids.values) >= 0)
    if ids.kind != "int":
        return np.zeros(len(ids), dtype=bool)
    return np.asarray((ids.values >= 0) & (ids.values < rows.size))


def gather_evidence(
    train: Any, test: Any, lists: Any, items: Any, columns: Mapping[str, Any] | None
) -> tuple[Evidence | None, list[Finding]]:
    """The tables over shared ids, or None where their ids cannot be compared; and what reading them found."""
    raw: dict[str, RawTable] = {}
    findings: list[Finding] = []
    for name, data in (("train", train), ("test", test)):
        raw[name], new = _read_table(data, name, columns)
        findings += new
    clocks = {name: r.clock.kind for name, r in raw.items() if r.clock is not None}
    if len(set(clocks.values())) > 1:
        text = " and ".join(f"{_TIME_KINDS[kind]} in {name}" for name, kind in clocks.items())
        findings.append(
            Finding(
                "error",
                f"times are {text}, which cannot be compared",
                1,
                (),
                "Write both sides the same way.",
                clocks,
                name="times_of_different_kinds",
            )
        )
        raw = {name: r._replace(clock=None) for name, r in raw.items()}
    ranked = None if lists is None else open_ranking(lists)
    catalogue, numbers = _read_catalogue(items, columns)
    mismatch = _different_id_kinds(raw, ranked, catalogue)
    if mismatch is not None:
        return None, [*findings, mismatch]
    users = raw["train"].users.union(raw["test"].users, what="id")[0]
    item_ids = raw["train"].items.union(raw["test"].items, what="id")[0]
    if catalogue is not None:
        item_ids = item_ids.union(catalogue, what="id")[0]
    ticks = [r.clock.tick for r in raw.values() if r.clock is not None and r.clock.tick is not None]
    unit = min(ticks) if ticks else None
    given_popularity = None
    if numbers is not None and catalogue is not None:
        given_popularity = np.zeros(len(item_ids))
        given_popularity[item_ids.code_of(catalogue.values)] = numbers
    clock = raw["train"].clock
    evidence = Evidence(
        raw, users, item_ids, _to_split_side(raw["train"], users, item_ids, unit),
        _to_split_side(raw["test"], users, item_ids, unit),
        ranked=ranked, catalogue=catalogue, given_popularity=given_popularity,
        clock=clock if clock is None or unit is None else replace(clock, tick=unit),
    )  # fmt: skip
    return evidence, findings


def _read_table(data: Any, name: str, columns: Mapping[str, Any] | None) -> tuple[RawTable, list[Finding]]:
    """One table, and the findings of reading it."""
    if isinstance(data, str | Path):
        data = read_file(data, "truth", columns=columns)
    table = as_interaction_table(data, columns)
    with hush(RecsysWarning) as of_users:
        users, user = table.ids("user")
    with hush(RecsysWarning) as of_items:
        items, item = table.ids("item")
    findings = [
        Finding(
            "warning",
            f"the {role} ids of {name} came as floats; they are whole and were read as integers",
            1,
            (role,),
            "A missing value once turned them into floats, or a join did: find it, and keep ids "
            "whole numbers or text.",
            name="float_ids",
        )
        for role, caught in (("user", of_users), ("item", of_items))
        if any(issubclass(category, FloatIdWarning) for category, _ in caught)
    ]
    # {user: [items]} has an order, but no time that could be compared across users.
    has_times = isinstance(table, FrameTable) or table.kind in ("array", "Interactions")
    time = table.role("time") if has_times else None
    clock = None
    try:
        clock = None if time is None else table.clock(time, None)
    except RecsysError as error:
        findings.append(
            Finding(
                "error",
                f"the times of {name} cannot be put in order: {error}",
                1,
                (),
                "Write all times the same way; until then nothing about time can be checked.",
                name="times_cannot_be_read",
            )
        )
    grade = table.values("grade")
    if grade is not None and "128" in str(grade.dtype):  # NumPy has no such numbers
        grade = None
    grades = None if grade is None else np.asarray(grade.to_numpy() if hasattr(grade, "to_numpy") else grade)
    if grades is not None and grades.dtype.kind not in "iufb":
        grades = None
    repeated = (data.facts.repeated_rows or 0) if isinstance(data, Interactions) else 0
    return RawTable(users, items, user, item, clock, grades, repeated), findings


def _read_catalogue(items: Any, columns: Mapping[str, Any] | None) -> tuple[Ids | None, Float | None]:
    """The ids of the catalogue, and its popularity column if it has one."""
    if items is None:
        return None, None
    frame = as_frame(items)
    if frame is None:
        values = ids_to_array(items, table="items", column="item")
        return encode(values, table="items", column="item")[0], None
    names = list(frame.columns)
    if not names:
        raise InputError("items has no columns.", table="items", hint="Pass a table with an item column.")
    overrides = {role: name for role, name in (columns or {}).items() if role == "item" and name in names}
    roles = detect_columns(names, ("item",), overrides, "items")
    ids, codes = encode_column(frame, roles.get("item", names[0]), "items")
    by_plain_name = {n.lower().replace("_", ""): n for n in names}
    for plain_name in _POPULARITY_COLUMNS:
        if plain_name in by_plain_name:
            numbers = np.zeros(len(ids))
            column = frame[by_plain_name[plain_name]]
            numbers[codes] = np.asarray(column.to_numpy(), dtype=np.float64)
            return ids, numbers
    return ids, None


def _to_split_side(raw: RawTable, users: Ids, items: Ids, clock_unit: int | None) -> SplitSide:
    """A table as codes of the shared ids, its times in the common unit."""
    user = users.code_of(raw.users.values)[raw.user]
    item = items.code_of(raw.items.values)[raw.item]
    time = None
    if raw.clock is not None and not raw.clock.missing.any():
        time = raw.clock.values if clock_unit is None else raw.clock.in_ticks(clock_unit)
    grade = raw.grade
    if grade is not None:
        grade = grade.astype(np.float64)
        grade = grade if np.isfinite(grade).all() else None
    return SplitSide(user, item, time, grade, raw.repeated)


def _different_id_kinds(raw: Mapping[str, RawTable], ranked: Any, catalogue: Ids | None) -> Finding | None:
    """Ids that are numbers in one table and text in another, so that none would match."""
    tables = {name: (table.users, table.items) for name, table in raw.items()}
    if ranked is not None:
        tables["lists"] = (users_of_lists(ranked.lists), ranked.lists.items)
    if catalogue is not None:
        tables["items"] = (tables["train"][0], catalogue)
    for at, column in enumerate(("user", "item")):
        kinds = {name: ids[at].kind for name, ids in tables.items() if len(ids[at])}
        if len(set(kinds.values())) > 1:
            text = ", ".join(f"{kind} in {name}" for name, kind in kinds.items())
            return Finding(
                "error",
                f"{column} ids are {text}: none of them would match",
                1,
                tuple(tables[name][at].name(0) for name in kinds),
                Phrase("Make the ids of all text: files are read so with {ids='str'}."),
                {"column": column, **kinds},
                name="ids_of_different_kinds",
            )
    return None
