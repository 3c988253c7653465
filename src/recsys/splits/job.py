"""What all strategies share: rows that cannot take part, the k-core, the clock, draws, the final account."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypedDict, cast

import numpy as np

from recsys.errors import SplitError, UnknownNameError
from recsys.inputs.timestamps import Clock, clock_of
from recsys.kernels.keyed_random import Keys, checked_seed, id_keys, pair_keys
from recsys.splits.borders import ON_TIE, ROUNDING, newest, share_of, sizes_of
from recsys.splits.filters import checked_whole, core
from recsys.splits.split_result import TEST, TRAIN, VALIDATION, Side, Split, reason_code
from recsys.splits.split_table import InteractionTable, table_of
from recsys.types import Array, Bool, Codes, Ids, Int

BAD_ROWS = ("error", "exclude", "keep")
SHORT = ("exclude", "train", "error")


class SplitOptions(TypedDict, total=False):
    """What every strategy can be told.

    columns: which column plays a role ("user", "item", "time", "grade"), where detection fails; places for
        arrays.
    seed: of all draws.
    unit: what numeric times count since 1970 ("s", "ms", "us", "ns"), for borders that are dates.
    on_tie: what becomes of rows of equal time at a border.
    rounding: of a share that is no whole number of rows: "down" (but at least 1), "nearest" or "up".
    short: what becomes of users with too few rows to be on every side: "exclude", "train" or "error".
    bad_rows: what becomes of rows without a time or rating, or with a rating outside `scale`: "error",
        "exclude", or "keep" where it is the rating.
    scale: the lowest and the highest rating.
    min_user, min_item: rows every user and every item must have (the iterative k-core).
    warm_users, warm_items: exclude held-out rows of those that are not in train.
    """

    columns: Mapping[str, Any] | None
    seed: int
    unit: str | None
    on_tie: str
    rounding: str
    short: str
    bad_rows: str
    scale: tuple[float, float] | None
    min_user: int
    min_item: int
    warm_users: bool
    warm_items: bool


DEFAULTS: SplitOptions = {
    "columns": None, "seed": 0, "unit": None, "on_tie": "together", "rounding": "down", "short": "exclude",
    "bad_rows": "error", "scale": None, "min_user": 0, "min_item": 0, "warm_users": False,
    "warm_items": False,
}  # fmt: skip


class Job:
    """One data set on its way to a split: the side of all rows, and arrays of those that take part."""

    def __init__(
        self, how: str, data: Any, parameters: Mapping[str, Any], options: SplitOptions, *, timed: bool
    ) -> None:
        unknown = [name for name in options if name not in DEFAULTS]
        if unknown:
            raise UnknownNameError(f"option of {how}", unknown[0], [*DEFAULTS, *parameters])
        self.how, self.parameters = how, dict(parameters)
        self.options: SplitOptions = cast("SplitOptions", {**DEFAULTS, **options})
        for name, known in (
            ("on_tie", ON_TIE),
            ("rounding", ROUNDING),
            ("short", SHORT),
            ("bad_rows", BAD_ROWS),
        ):
            if self.options[name] not in known:  # type: ignore[literal-required]
                raise UnknownNameError(f"value of {name}", self.options[name], known)  # type: ignore[literal-required]
        self.seed = checked_seed(self.options["seed"])
        self.table: InteractionTable = table_of(data, self.options["columns"])
        self.side: Side = np.full(len(self.table), TRAIN, dtype=np.int8)
        self.reasons: list[str] = []
        self.notes: dict[str, Any] = {}
        self._clock = self._read_clock() if timed else None
        self._refuse_bad_rows()
        self._keep_core()
        self.kept: Int | None = None if not self.reasons else np.flatnonzero(self.side == TRAIN)
        self.size = len(self.side) if self.kept is None else len(self.kept)

    def _read_clock(self) -> Clock:
        name = self.table.role("time")
        if name is None:
            raise self.table.missing("time")
        clock: Clock = self.table.clock(name, self.options["unit"], clock_of)
        self._bad(clock.missing, name, "without a time", "every row needs a time")
        return clock

    def _refuse_bad_rows(self) -> None:
        name, scale = self.table.role("grade"), self.options["scale"]
        if self.options["bad_rows"] == "keep":
            return
        if name is None:
            if scale is not None:
                raise self.table.missing("grade")
            return
        grade = _numbers(self.table.column(name))
        if grade is None:
            return
        self._bad(~np.isfinite(grade), name, "without a rating", "every row needs a rating")
        if scale is not None:
            low, high = _scale(scale)
            self._bad(
                (grade < low) | (grade > high), name, f"rating outside {low:g} to {high:g}", "see the scale"
            )

    def _bad(self, wrong: Bool, column: str, reason: str, expected: str) -> None:
        if not wrong.any():
            return
        row = int(np.argmax(wrong))
        if self.options["bad_rows"] != "exclude":
            raise SplitError(
                f"{int(wrong.sum()):,} of {len(wrong):,} rows are {reason}: {expected}."
                if reason.startswith("without")
                else f"{int(wrong.sum()):,} of {len(wrong):,} rows have a {reason}.",
                table="data",
                column=column,
                row=row,
                hint="Mend them, or leave them out with bad_rows='exclude', which counts them.",
            )
        self.side[wrong & (self.side == TRAIN)] = reason_code(self.reasons, reason)

    def _keep_core(self) -> None:
        least = (
            checked_whole(self.options["min_user"], "min_user"),
            checked_whole(self.options["min_item"], "min_item"),
        )
        if max(least) > 1:
            rows = np.flatnonzero(self.side == TRAIN)
            kept, rounds = core(
                self.table.ids("user")[1][rows], self.table.ids("item")[1][rows], least, iterative=True
            )
            self.notes["core_rounds"] = rounds
            few = [
                f"{role} with fewer than {n}"
                for role, n in zip(("user", "item"), least, strict=True)
                if n > 1
            ]
            reason = f"{' or '.join(few)} rows"
            self.side[rows[~kept]] = reason_code(self.reasons, reason)
        if not (self.side == TRAIN).any():
            told = "; ".join(self.reasons)
            raise SplitError(f"{self.how}: no row is left ({told}).", hint="Filter less.")

    def part(self, values: Array) -> Array:
        """Values of all rows as values of those that take part."""
        return values if self.kept is None else values[self.kept]

    def ids(self, role: str) -> tuple[Ids, Codes]:
        """Ids, and the codes of the rows that take part."""
        ids, codes = self.table.ids(role)
        return ids, self.part(codes)

    @property
    def clock(self) -> Clock:
        """How times are read and borders given."""
        if self._clock is None:
            raise self.table.missing("time")
        return self._clock

    @cached_property
    def times(self) -> Array:
        """The times of the rows that take part."""
        return self.part(self.clock.values)

    @cached_property
    def pair_draws(self) -> Keys:
        """A draw a row; rows of one user and item share it."""
        return self._pairs(*self.ids("user"), *self.ids("item"))

    def _pairs(self, users: Ids, user: Codes, items: Ids, item: Codes) -> Keys:
        first = id_keys(users, self.seed, purpose="user")
        second = id_keys(items, self.seed, purpose="item")
        return pair_keys(first[user], second[item])

    def user_draws(self) -> Keys:
        """A draw a user, in the order of the ids."""
        return id_keys(self.table.ids("user")[0], self.seed, purpose="users")

    def breaker(self, rows: Int) -> Callable[[Int], Array]:
        """What orders equal times: by item, by draw or by row, for some of `rows`."""

        def of(at: Int) -> Array:
            here = rows[at]
            if self.options["on_tie"] == "row_order":
                return here
            users, user = self.ids("user")
            items, item = self.ids("item")
            if self.options["on_tie"] == "random":
                return self._pairs(users, user[here], items, item[here])
            return item[here]

        return of

    def cut(
        self, keys: Int, group: Codes, wants: tuple[Any, Any], *, drawn: bool, every: Int | None = None
    ) -> Side:
        """Sides of the rows that take part: the last of each group to test, those before to validation.

        `every`: which of them are cut, where not all are; keys and groups are theirs.
        """
        on_tie = "together" if drawn else self.options["on_tie"]
        side: Side = np.full(len(group), TRAIN, dtype=np.int8)
        every = np.arange(len(group)) if every is None else every
        places = np.arange(len(group))
        n_groups = int(group.max()) + 1 if len(group) else 0
        sizes = sizes_of(group, n_groups)
        rows: Int | slice = slice(None)
        n_tied = 0
        for code, want in ((TEST, wants[0]), (VALIDATION, wants[1])):
            if not want:
                continue
            wanted = self.amount(want, sizes)
            chosen, tied = newest(keys[rows], group[rows], wanted, on_tie, self.breaker(every[rows]))
            n_tied += len(tied)
            side[places[rows][chosen]] = code
            rows = np.flatnonzero(side == TRAIN)
        if not drawn:
            self.notes["ties_at_border"] = n_tied
        return side

    def amount(self, want: Any, sizes: Int) -> Int:
        """A whole number as it is, a share of each size as a number."""
        if isinstance(want, int):
            return np.full(len(sizes), want, dtype=np.int64)
        return share_of(sizes, want, self.options["rounding"])

    def settle_short(self, side: Side, group: Codes, n_groups: int, *, needed: tuple[int, ...]) -> Side:
        """Users that are not on every side they should be on: excluded, kept for training, or an error."""
        present = sizes_of(group, n_groups) > 0
        short = np.zeros(n_groups, dtype=bool)
        for code in needed:
            short |= sizes_of(group[side == code], n_groups) == 0
        short &= present
        n_short = int(short.sum())
        if n_short == 0:
            return side
        rule = self.options["short"]
        if rule == "error":
            name = self.table.ids("user")[0].name(np.argmax(short))
            raise SplitError(
                f"{n_short:,} users have too few rows (or too few different times), {name!r} for one.",
                table="data",
                hint="Use short='exclude' to leave them out, or short='train' to train on them only.",
            )
        self.notes["users_too_short"] = n_short
        rows = short[group]
        side[rows] = (
            TRAIN
            if rule == "train"
            else reason_code(self.reasons, "user with too few rows to be on every side")
        )
        return side

    def finished(self, side: Side, *asked: int, **more: Any) -> Split:
        """The split, once the sides of the rows that take part are known.

        `asked`: parts beside train and test; `more`: parameters that tell one of several splits apart.
        """
        full = side
        if self.kept is not None:
            full = self.side.copy()
            full[self.kept] = side
        told = {name: value for name, value in self.options.items() if value != DEFAULTS[name]}  # type: ignore[literal-required]
        warm = {role: bool(told.pop(f"warm_{role}", False)) for role in ("users", "items")}
        made = Split(
            self.table, full, self.reasons, asked=asked, how=self.how, notes=self.notes,
            parameters={**self.parameters, **told, **more}, disorder=self._disorder,
        )  # fmt: skip
        made.check()
        return made.warm(users=warm["users"], items=warm["items"]) if any(warm.values()) else made

    def _disorder(self) -> int | None:
        """How many users' rows go back in time, in the order they came; the split does not mind."""
        if self._clock is None or self.table.role("user") is None:
            return None
        ids, user = self.table.ids("user")
        order = np.argsort(user, kind="stable")
        back = (np.diff(self._clock.values[order]) < 0) & (np.diff(user[order]) == 0)
        return int(np.bincount(user[order][1:][back], minlength=len(ids)).astype(bool).sum())


def _numbers(column: Any) -> Array | None:
    """Ratings as float64, NaN where missing; None for a column that holds no numbers."""
    dtype = getattr(column, "dtype", None)
    if isinstance(column, np.ndarray):
        return column.astype(np.float64) if column.dtype.kind in "iufb" else None
    if dtype is None or not dtype.is_numeric():
        return None
    if column.is_null().any():
        import narwhals.stable.v2 as nw

        column = column.cast(nw.Float64).fill_null(float("nan"))
    return np.asarray(column.to_numpy()).astype(np.float64)


def _scale(scale: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in scale)
    except (TypeError, ValueError) as error:
        raise SplitError(f"scale={scale!r} is not (lowest, highest).", hint="Pass scale=(1, 5).") from error
    if not low < high:
        raise SplitError(
            f"scale={scale!r}: the lowest rating is not below the highest.", hint="Pass scale=(1, 5)."
        )
    return low, high


def checked_share(value: Any, what: str, *, optional: bool = False) -> int | float:
    """A share above 0 and below 1, or a whole number of rows (or users) of at least 1."""
    if optional and value in (None, 0) and not isinstance(value, bool):
        return 0
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if whole and value >= 1:
        return int(value)
    if isinstance(value, float | np.floating) and 0 < value < 1:
        return float(value)
    raise SplitError(
        f"{what}={value!r} is neither a share above 0 and below 1 nor a whole number of at least 1.",
        hint=f"Pass {what}=0.2 for a fifth, or {what}=1 for one.",
    )


def checked_together(test: Any, validation: Any) -> None:
    """Two shares must leave something to train on."""
    if isinstance(test, float) and isinstance(validation, float) and test + validation >= 1:
        raise SplitError(
            f"test={test} and validation={validation} leave nothing to train on.",
            hint="Their sum must stay below 1.",
        )
