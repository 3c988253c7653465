"""Which items could have been recommended when: candidate sets from a table of items with from and until.

Many users share a moment, and between two changes of the catalogue the set does not change. So each distinct
set is stored once and users point to it; it is expanded per user only when it is evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from recsys.errors import ColumnError, InputError
from recsys.inputs.frames import as_frame, detect_columns
from recsys.inputs.ids import encode, ids_from_sequence
from recsys.inputs.timestamps import Clock, read_times
from recsys.records.arrays import Array, Bool, Codes, Ids, Int, Interactions
from recsys.splits.split_table import FrameTable, as_interaction_table

# Whole numbers: nanoseconds do not fit a float.
_FIRST_TICK, _LAST_TICK = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_FROM_COLUMNS = ("from", "available_from", "valid_from", "released", "release_date", "start")
_UNTIL_COLUMNS = ("until", "available_until", "valid_until", "to", "removed", "end")


@dataclass(frozen=True, eq=False)
class Eligible(Interactions):
    """The items each user may be recommended: pass it to `evaluate(..., eligible=)`.

    `indptr` is where the set of each user begins and `lengths` how long it is; users with equal sets share
    one.
    """

    lengths: Int = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    available: Bool = field(default_factory=lambda: np.zeros(0, dtype=bool))

    @property
    def sizes(self) -> Int:
        return self.lengths

    @property
    def excluded(self) -> Array:
        """Ids of items that no user may be recommended: with one set for all users, pass `exclude=` them."""
        return self.items.values[~self.available]

    @property
    def n_sets(self) -> int:
        """The number of distinct sets that are stored."""
        return len(np.unique(self.indptr[:-1]))

    def kept(self, keep: Bool) -> Interactions:
        del keep
        raise InputError(
            "users of an Eligible share sets, so single entries cannot be removed.", hint="Make a new one."
        )

    def items_of(self, user: Any) -> Array:
        """Return the ids a user may be recommended."""
        code = int(self.cases.code_of(np.array([user], dtype=self.cases.values.dtype))[0])
        if code < 0:
            raise InputError(f"there is no user {user!r}.", hint="The users are those of at= or users=.")
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
    """Return the items each user could have been recommended: those with from <= moment < until.

    Args:
        items: a table with an item column and a from column, an until column, or both; a missing from means
            available from the beginning, a missing until never removed.
        at: one moment for all users (then pass `users`), a table with user and time columns (the latest of a
            user's times counts), or {user: moment}.
        users: the users, if `at` is one moment: ids, or a table of interactions such as a test part.
        begins: the from column, if its name is not one of from, available_from, valid_from, released, …
        ends: the until column, if its name is not one of until, available_until, valid_until, to, …
        columns: the column of the item (and of user and time), where it is not recognised.
        unit: the unit in which numeric times count since 1970, if `at` is a date.

    Raises:
        ColumnError: a column is missing or not recognised.
        InputError: an item occurs twice or ends before it begins, or times cannot be compared.
    """
    ids, opens, closes, clock = _read_items(items, begins, ends, columns, unit)
    cases, moments = _read_moments(at, users, clock, columns, unit)
    changes = np.unique(np.concatenate([opens, closes]))
    era = np.searchsorted(changes, moments, side="right")
    eras, set_of_case = np.unique(era, return_inverse=True)
    sets: list[Codes] = []
    for era_number in eras.tolist():  # one step per distinct set, not per user
        moment = moments[np.argmax(era == era_number)]
        sets.append(np.flatnonzero((opens <= moment) & (moment < closes)).astype(np.int32))
    lengths = np.array([len(items_of_set) for items_of_set in sets], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    codes = np.concatenate([np.zeros(0, dtype=np.int32), *sets])
    available = np.zeros(len(ids), dtype=bool)
    available[codes] = True
    return Eligible(
        cases, ids, np.append(starts[set_of_case], starts[-1]), codes,
        lengths=lengths[set_of_case], available=available,
    )  # fmt: skip


def _read_items(
    items: Any, begins: str | None, ends: str | None, columns: Any, unit: str | None
) -> tuple[Ids, Array, Array, Clock]:
    """Return the item ids, when each becomes available and unavailable, and the clock of these times."""
    frame = as_frame(items)
    if frame is None:
        raise InputError(
            f"items came as {type(items).__name__}.", table="items", hint="Pass a table of items."
        )
    name = detect_columns(list(frame.columns), ("item",), columns, "items").get("item")
    if name is None:
        raise ColumnError(
            "no column was recognised as the item.", table="items", hint="Pass columns={'item': ...}."
        )
    ids, codes = FrameTable(frame, {"item": name}).ids("item")
    if len(ids) < len(codes):
        raise InputError("an item occurs twice.", table="items", column=name, hint="Give each item one row.")
    chosen = (begins, _FROM_COLUMNS), (ends, _UNTIL_COLUMNS)
    names = [_time_column(frame.columns, *each) for each in chosen]
    if names == [None, None]:
        raise ColumnError(
            f"no column says from or until when; the columns are: {', '.join(frame.columns)}.",
            table="items",
            hint="Pass begins= or ends=.",
        )
    clocks = [None if column is None else read_times(frame[column], column, unit=unit) for column in names]
    present = [clock for clock in clocks if clock is not None]
    if len({clock.kind for clock in present}) > 1:
        raise InputError(
            "from and until are times of different kinds.", table="items", hint="Write both the same way."
        )
    whole = all(clock.values.dtype.kind == "i" for clock in present)
    tick = min((clock.tick for clock in present if clock.tick is not None), default=None)
    open_ends = (_FIRST_TICK, _LAST_TICK) if whole else (-np.inf, np.inf)
    bounds = []
    for clock, absent in zip(clocks, open_ends, strict=True):
        values = np.full(len(ids), absent)
        if clock is not None:
            times = clock.values if tick is None else clock.in_ticks(tick)
            values[codes] = np.where(clock.missing, absent, times)
        bounds.append(values)
    is_reversed = bounds[0] > bounds[1]
    if is_reversed.any():
        raise InputError(
            f"item {ids.name(np.argmax(is_reversed))!r} ends before it begins.",
            table="items",
            hint="Correct the row.",
        )
    return ids, bounds[0], bounds[1], replace(present[0], tick=tick)


def _time_column(names: list[str], chosen: str | None, known: tuple[str, ...]) -> str | None:
    if chosen is not None:
        if chosen not in names:
            raise ColumnError(f"there is no column {chosen!r}.", table="items", column=chosen)
        return chosen
    return next((name for name in names if name.lower() in known), None)


def _read_moments(at: Any, users: Any, clock: Clock, columns: Any, unit: str | None) -> tuple[Ids, Array]:
    """Return the users and the moment of each, in the time unit of the items."""
    if isinstance(at, Mapping):
        keys = ids_from_sequence(list(at), table="at", column="user")
        ids, codes = encode(keys, table="at", column="user")
        moments = np.array([clock.at(moment) for moment in at.values()])
        values = np.empty(len(ids), dtype=moments.dtype)
        values[codes] = moments
        return ids, values
    frame = None if isinstance(at, str) else as_frame(at)
    if frame is not None:  # the latest time of each user
        table = FrameTable(frame, columns)
        ids, user = table.ids("user")
        name = table.required("time")
        own_clock = table.clock(name, unit)
        if own_clock.missing.any() or own_clock.kind != clock.kind:
            problem = f"times are {own_clock.kind}, those of the items {clock.kind}"
            if own_clock.missing.any():
                problem = "a time is missing"
            raise InputError(f"{problem}.", table="at", column=name, hint="Write both the same way.")
        tick, own_tick = clock.tick or 1, own_clock.tick or 1
        # Two tables of dates may differ in their resolution.
        times = own_clock.in_ticks(tick) if own_tick >= tick else own_clock.values // (tick // own_tick)
        values = np.full(len(ids), _FIRST_TICK if times.dtype.kind == "i" else -np.inf, dtype=times.dtype)
        np.maximum.at(values, user, times)
        return ids, values
    if users is None:
        raise InputError(
            "one moment for all users needs users=.", hint="Pass the user ids, or the test part."
        )
    if isinstance(users, list | tuple | set | frozenset | range | np.ndarray):
        if not isinstance(users, np.ndarray):
            users = ids_from_sequence(list(users), table="users", column="user")
        ids, _ = encode(users, table="users", column="user")
    else:
        ids = as_interaction_table(users, columns).ids("user")[0]
    return ids, np.full(len(ids), clock.at(at))
