"""Which items could have been recommended when: candidate sets from a table of items with from and until.

Many users share a moment, and between two changes of the catalogue all moments are alike. So each different
set is stored once and users point to it; only what evaluates them spreads it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recsys.errors import ColumnError, InputError
from recsys.inputs.frames import as_frame, known_columns
from recsys.inputs.ids import encode, of_sequence
from recsys.inputs.timestamps import Clock, clock_of
from recsys.splits.split_table import FrameTable, InteractionTable, table_of
from recsys.types import Array, Bool, Codes, Ids, Int, Interactions

_FIRST, _LAST = np.iinfo(np.int64).min, np.iinfo(np.int64).max  # nanoseconds do not fit a float
_FROM = ("from", "available_from", "valid_from", "released", "release_date", "start")
_UNTIL = ("until", "available_until", "valid_until", "to", "removed", "end")


@dataclass(frozen=True, eq=False)
class Eligible(Interactions):
    """What each user may be recommended: hand it to `evaluate(..., eligible=)`.

    `indptr` says where the set of a user begins and `lengths` how long it is; users with equal sets share
    one.
    """

    lengths: Int = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    available: Bool = field(default_factory=lambda: np.zeros(0, dtype=bool))

    @property
    def sizes(self) -> Int:
        return self.lengths

    @property
    def never(self) -> Array:
        """Ids of items nobody may be recommended: where all users share one set, `never=` costs nothing."""
        return self.items.values[~self.available]

    @property
    def n_sets(self) -> int:
        """How many different sets are stored."""
        return len(np.unique(self.indptr[:-1]))

    def kept(self, keep: Bool) -> Interactions:
        del keep
        raise InputError("an Eligible shares its sets and cannot be thinned.", hint="Make a new one.")

    def items_of(self, user: Any) -> Array:
        """The ids a user may be recommended."""
        code = int(self.cases.code_of(np.array([user], dtype=self.cases.values.dtype))[0])
        if code < 0:
            raise InputError(f"there is no user {user!r}.", hint="Users are those of the table of moments.")
        start = int(self.indptr[code])
        return self.items.values[self.codes[start : start + int(self.lengths[code])]]


def eligible_by_time(
    items: Any,
    at: Any,
    users: Any = None,
    *,
    begins: str | None = None,
    ends: str | None = None,
    columns: Mapping[str, str] | None = None,
    unit: str | None = None,
) -> Eligible:
    """Who could be recommended what: the items with from <= moment < until.

    Args:
        items: a table with an item column and a from column, an until column, or both; a missing from means
            always there, a missing until never removed.
        at: one moment for everyone (then `users` says who everyone is), a table with user and time columns
            (the latest of a user's times counts), or {user: moment}.
        users: the users, where `at` is one moment: ids, or a table of interactions such as a test part.
        begins: the from column, where its name is not one of from, available_from, valid_from, released, …
        ends: the until column, where its name is not one of until, available_until, valid_until, to, …
        columns: which column is the item (and user and time), where detection fails.
        unit: what numeric times count since 1970, where `at` is a date.
    """
    ids, opens, closes, clock = _items(items, begins, ends, columns, unit)
    cases, moments = _moments(at, users, clock, columns, unit)
    turns = np.unique(np.concatenate([opens, closes]))
    era = np.searchsorted(turns, moments, side="right")
    found, of_case = np.unique(era, return_inverse=True)
    sets: list[Codes] = []
    for number in found.tolist():  # one step a different set, not one a user
        moment = moments[np.argmax(era == number)]
        sets.append(np.flatnonzero((opens <= moment) & (moment < closes)).astype(np.int32))
    lengths = np.array([len(each) for each in sets], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    codes = np.concatenate([np.zeros(0, dtype=np.int32), *sets])
    available = np.zeros(len(ids), dtype=bool)
    available[codes] = True
    return Eligible(
        cases, ids, np.append(starts[of_case], starts[-1]), codes,
        notes={"sets": len(sets), "items": len(ids)}, lengths=lengths[of_case], available=available,
    )  # fmt: skip


def _items(
    items: Any, begins: str | None, ends: str | None, columns: Any, unit: str | None
) -> tuple[Ids, Array, Array, Clock]:
    frame = as_frame(items)
    if frame is None:
        raise InputError(
            f"items came as {type(items).__name__}.", table="items", hint="Pass a table of items."
        )
    name = known_columns(list(frame.columns), ("item",), columns, "items").get("item")
    if name is None:
        raise ColumnError(
            "no column was recognised as the item.", table="items", hint="Pass columns={'item': ...}."
        )
    ids, codes = FrameTable(frame, {"item": name}).ids("item")
    if len(ids) < len(codes):
        raise InputError("an item occurs twice.", table="items", column=name, hint="Give each item one row.")
    places = _named(frame.columns, begins, _FROM), _named(frame.columns, ends, _UNTIL)
    if places == (None, None):
        raise ColumnError(
            f"no column says from or until when; the columns are: {', '.join(frame.columns)}.",
            table="items",
            hint="Pass begins= or ends=.",
        )
    clocks = [None if place is None else clock_of(frame[place], place, unit=unit) for place in places]
    shown = [clock for clock in clocks if clock is not None]
    if len({(clock.kind, clock.tick) for clock in shown}) > 1:
        raise InputError(
            "from and until are times of different kinds.", table="items", hint="Write both the same way."
        )
    whole = all(clock.values.dtype.kind == "i" for clock in shown)
    ends_of_time = (_FIRST, _LAST) if whole else (-np.inf, np.inf)
    bounds = []
    for clock, absent in zip(clocks, ends_of_time, strict=True):
        values = np.full(len(ids), absent)
        if clock is not None:
            values[codes] = np.where(clock.missing, absent, clock.values)
        bounds.append(values)
    wrong = bounds[0] > bounds[1]
    if wrong.any():
        raise InputError(
            f"item {ids.name(np.argmax(wrong))!r} ends before it begins.", table="items", hint="Mend the row."
        )
    return ids, bounds[0], bounds[1], shown[0]


def _named(names: list[str], given: str | None, usual: tuple[str, ...]) -> str | None:
    if given is not None:
        if given not in names:
            raise ColumnError(f"there is no column {given!r}.", table="items", column=given)
        return given
    return next((name for name in names if name.lower() in usual), None)


def _moments(at: Any, users: Any, clock: Clock, columns: Any, unit: str | None) -> tuple[Ids, Array]:
    """The users and the moment of each, on the clock of the items."""
    if isinstance(at, Mapping):
        keys = of_sequence(list(at), table="at", column="user")
        ids, codes = encode(keys, table="at", column="user")
        found = np.array([clock.at(moment) for moment in at.values()])
        values = np.empty(len(ids), dtype=found.dtype)
        values[codes] = found
        return ids, values
    frame = None if isinstance(at, str) else as_frame(at)
    if frame is not None:
        return _latest(FrameTable(frame, columns), clock, unit)
    if users is None:
        raise InputError("one moment for everyone needs users=.", hint="Pass the user ids, or the test part.")
    if isinstance(users, list | tuple | set | frozenset | range | np.ndarray):
        values = (
            users if isinstance(users, np.ndarray) else of_sequence(list(users), table="users", column="user")
        )
        ids, _ = encode(values, table="users", column="user")
    else:
        ids = table_of(users, columns).ids("user")[0]
    return ids, np.full(len(ids), clock.at(at))


def _latest(table: InteractionTable, clock: Clock, unit: str | None) -> tuple[Ids, Array]:
    ids, user = table.ids("user")
    name = table.role("time")
    if name is None:
        raise table.missing("time")
    own = clock_of(table.column(name), name, unit=unit)
    if own.missing.any() or own.kind != clock.kind:
        told = (
            "a time is missing"
            if own.missing.any()
            else f"times are {own.kind}, those of the items {clock.kind}"
        )
        raise InputError(f"{told}.", table="at", column=name, hint="Write both the same way.")
    times = own.values
    if own.tick != clock.tick:  # both are known then: dates of another resolution
        times = (
            times * ((own.tick or 1) // (clock.tick or 1) or 1) // ((clock.tick or 1) // (own.tick or 1) or 1)
        )
    values = np.full(len(ids), _FIRST if times.dtype.kind == "i" else -np.inf, dtype=times.dtype)
    np.maximum.at(values, user, times)
    return ids, values
