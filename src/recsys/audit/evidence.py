"""What the checks look at: both sides of a split, the lists and the catalogue, over one set of ids.

Rows are as they were read, before repeats are merged; values derived from them are cached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.inputs.rows import Rows, to_interactions
from recsys.inputs.timestamps import Clock
from recsys.metrics.shown_items import sorted_unique
from recsys.models.baselines import ItemScores, popularity
from recsys.ranks.sources import Factors, RankingOptions, Scores
from recsys.types import Array, Bool, Float, Ids, Int, Interactions

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

    def __len__(self) -> int:
        return len(self.user)


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
        return contained_in(self.pairs(side), self.train_pairs) & (side.user >= 0) & (side.item >= 0)

    @cached_property
    def test_users(self) -> Int:
        """Codes of the users of the test."""
        return np.flatnonzero(np.bincount(self.test.user, minlength=self.n_users))

    @cached_property
    def last_train_time(self) -> Array | None:
        """The newest training time of each user; the lowest possible number without one."""
        if self.train.time is None:
            return None
        low = np.iinfo(np.int64).min if self.train.time.dtype.kind == "i" else -np.inf
        newest = np.full(self.n_users, low, dtype=self.train.time.dtype)
        np.maximum.at(newest, self.train.user, self.train.time)
        return newest

    @cached_property
    def repeats_are_natural(self) -> bool:
        """Whether users have the same item at several times within train, as in shops that sell milk."""
        n_repeats = len(self.train) - len(self.train_pairs) - int(self.exact_repeats(self.train).sum())
        return n_repeats + self.train.repeated > _NATURAL_REPEATS * (len(self.train) + self.train.repeated)

    def exact_repeats(self, side: SplitSide) -> Bool:
        """Rows that repeat the user, item and time of another; none where there are no times."""
        rows = np.zeros(len(side), dtype=bool)
        if side.time is None:
            return rows
        key = self.pairs(side)
        order = np.lexsort((side.time, key))
        key, time = key[order], side.time[order]
        rows[order[1:][(key[1:] == key[:-1]) & (time[1:] == time[:-1])]] = True
        return rows

    @cached_property
    def lists(self) -> ListEntries | None:
        """The entries of the lists, or the k best unseen items of a source."""
        if self.ranked is None:
            return None
        lists = self.ranked
        if isinstance(lists, Factors | Scores):
            lists = lists.top(self.sample.tolist(), self.k, RankingOptions(seen=self.history))
        owners = lists.cases.values if lists.clusters is None else lists.clusters
        user, item = self.users.code_of(owners), self.items.code_of(lists.items.values)
        owner = np.repeat(np.arange(len(lists.cases)), lists.sizes)
        place = np.arange(1, len(owner) + 1) - np.repeat(lists.indptr[:-1], lists.sizes)
        return ListEntries(user[owner], item[lists.codes], place, lists.scores)

    @property
    def is_source(self) -> bool:
        """Whether Factors or Scores rank the whole catalogue instead of ready lists."""
        return isinstance(self.ranked, Factors | Scores)

    @cached_property
    def history(self) -> Interactions:
        """Train as interactions."""
        return self._interactions(self.train, graded=False)

    @cached_property
    def truth(self) -> Interactions:
        """The test of the users in `sample` as interactions."""
        in_sample = np.zeros(self.n_users, dtype=bool)
        in_sample[self.users.code_of(self.sample)] = True
        mask = in_sample[self.test.user]
        if self.is_source:
            mask &= has_row(self.ranked.item_rows, self.items)[self.test.item]
        grade = None if self.test.grade is None else self.test.grade[mask]
        side = SplitSide(self.test.user[mask], self.test.item[mask], grade=grade)
        return self._interactions(side, graded=True)

    @cached_property
    def sample(self) -> Array:
        """The test users that are evaluated: all that the model knows, or an evenly spaced sample of many."""
        present = self.test_users
        if self.is_source:
            present = present[has_row(self.ranked.user_rows, self.users)[present]]
        step = -(-len(present) // MANY_USERS)
        return self.users.values[present[::step]]

    @cached_property
    def is_sampled(self) -> bool:
        """Whether only a part of the test users is evaluated because they are many."""
        return len(self.sample) < len(self.test_users) and len(self.sample) > MANY_USERS // 2

    def _interactions(self, side: SplitSide, *, graded: bool) -> Interactions:
        present = np.flatnonzero(np.bincount(side.user, minlength=self.n_users))
        case = np.zeros(self.n_users, dtype=np.int32)
        case[present] = np.arange(len(present))
        grade = side.grade if graded else None
        return to_interactions(
            Rows(
                "truth",
                Ids(self.users.values[present]),
                case[side.user],
                self.items,
                side.item.astype(np.int32),
                grade=None if grade is None or grade.min() < 0 else grade,
            )
        )

    def popular(self, counts: Array) -> Factors:
        """A model that recommends the items with the highest counts to everyone."""
        return popularity(
            ItemScores(self.items.values, counts.astype(np.float64)), users=self.sample.tolist()
        )

    def name_user(self, code: Any) -> Any:
        return self.users.name(code)

    def name_item(self, code: Any) -> Any:
        return self.items.name(code)

    def examples(self, mask: Bool, side: SplitSide | ListEntries) -> tuple[Any, ...]:
        """The first rows of a mask as (user, item) ids."""
        rows = np.flatnonzero(mask)[: self.n_examples]
        return tuple((self.name_user(side.user[r]), self.name_item(side.item[r])) for r in rows)

    def format_time(self, value: Any) -> str:
        """A time as the table writes it."""
        return str(value) if self.clock is None else self.clock.shown(value)


def contained_in(keys: Int, ordered: Int) -> Bool:
    """Which keys occur in an ascending array."""
    if len(ordered) == 0:
        return np.zeros(len(keys), dtype=bool)
    at = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return np.asarray(ordered[at] == keys)


def has_row(rows: Any, ids: Ids) -> Bool:
    """Which ids a source has a row for: its own ids, or numbers below its number of rows."""
    if rows.named:
        if rows.ids.kind != ids.kind:
            return np.zeros(len(ids), dtype=bool)
        return np.asarray(rows.ids.code_of(ids.values) >= 0)
    if ids.kind != "int":
        return np.zeros(len(ids), dtype=bool)
    return np.asarray((ids.values >= 0) & (ids.values < rows.size))
