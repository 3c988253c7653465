"""What all strategies share: the registry, their options, bad rows, the k-core, times, draws and borders.

A border says which rows of a group are the newest (or drawn), and what happens to ties. There is no loop over
groups: each row gets one whole number that sorts by group and then by time or draw, the sorted numbers show
the border of each group, and every row is compared with the border of its group. Rows with equal numbers
therefore stay together; only tied rows that a border must separate are sorted again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from typing import Any, Literal, TypedDict, TypeVar, cast

import numpy as np

from recsys.display.number_words import plural
from recsys.errors import Fix, Phrase, SplitError, UnknownNameError
from recsys.inputs.frames import column_array
from recsys.inputs.timestamps import Clock
from recsys.kernels.keyed_random import Keys, id_keys, pair_keys
from recsys.records.arrays import Array, Bool, Codes, Ids, Int, cached_property
from recsys.records.checks import check_seed, is_whole
from recsys.records.registry import Registry
from recsys.splits.split_result import TEST, TRAIN, VALIDATION, Folds, Side, Split, reason_code
from recsys.splits.split_table import InteractionTable, as_interaction_table, check_whole_number, k_core

ON_TIE = {
    "together": "rows of one time stay together, on the newer side",
    "train": "rows of one time stay together, on the older side",
    "by_item": "the higher item id counts as newer",
    "random": "a seeded draw of user and item decides",
    "row_order": "the later row counts as newer",
    "error": "a tie at a border is an error",
}
_RULES: dict[str, Collection[str]] = {
    "on_tie": ON_TIE,
    "rounding": ("down", "nearest", "up"),
    "short": ("exclude", "train", "test", "error"),
    "bad_rows": ("error", "exclude", "keep"),
}
_KEY_BITS = 62  # bits of a key, so that it stays a positive int64


class SplitOptions(TypedDict, total=False):
    """The options of every strategy.

    columns: the column of each role ("user", "item", "time", "grade"), where it is not recognised; for arrays
        its number.
    seed: of all draws.
    unit: the unit of numeric times since 1970 ("s", "ms", "us", "ns"), for borders that are dates.
    on_tie: what happens to rows of equal time at a border; a name in `ON_TIE`.
    rounding: of a share that is not a whole number of rows: "down" (but at least 1), "nearest" or "up".
    short: what happens to users with too few rows to be on every side: all their rows are "exclude"d, go to
        "train" or to "test", or are an "error".
    bad_rows: what happens to rows without a time or rating, or with a rating outside `scale`: "error",
        "exclude", or "keep", which keeps rows with a bad rating.
    scale: the lowest and the highest rating.
    min_user, min_item: the number of rows every user and every item must have (the iterative k-core).
    warm_users, warm_items: exclude held-out rows of users or items that are not in train.
    new_pairs: exclude held-out rows whose user has the item in train (or in the part that is known) already.
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
    new_pairs: bool


DEFAULTS: SplitOptions = {
    "columns": None, "seed": 0, "unit": None, "on_tie": "together", "rounding": "down", "short": "exclude",
    "bad_rows": "error", "scale": None, "min_user": 0, "min_item": 0, "warm_users": False,
    "warm_items": False, "new_pairs": False,
}  # fmt: skip


@dataclass(frozen=True)
class Strategy:
    """A way to split: its function and what is known of it.

    Attributes:
        name: the name that `split` calls it by.
        function: takes the data first, and the options of every strategy as `**options`.
        makes: "one" split, or "several": `Folds`.
        help: what it holds out, in a few words.
    """

    name: str
    function: Callable[..., Split | Folds]
    makes: Literal["one", "several"]
    help: str

    def __call__(self, data: Any, *arguments: Any, **parameters: Any) -> Split | Folds:
        own = {name: Fix(name, of="split") for name in self.parameters}
        how = Fix("how", self.name, of="split")
        named: list[Any] = [*own.values()]
        takes = reduce(lambda some, one: Phrase("{}, {}", some, one), named) if own else "nothing"
        hint = Phrase("It takes {}.", takes)
        of_others = {name for each in STRATEGIES.values() for name in each.parameters}.difference(own)
        for name in filter(of_others.__contains__, parameters):
            raise SplitError(Phrase("{} means nothing to {}.", Fix(name, of="split"), how), hint=hint)
        try:
            inspect.signature(self.function).bind(data, *arguments, **parameters)
        except TypeError as error:
            needed = [n for n, each in self.parameters.items() if each.default is each.empty]
            missing = [own[name] for name in needed[len(arguments) :] if name not in parameters]
            problem = Phrase("{} needs {}.", how, missing[0]) if missing else f"{self.name}: {error}."
            raise SplitError(problem, hint=hint) from None
        return self.function(data, *arguments, **parameters)

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters that are its own: neither the data nor the options of every strategy."""
        _, *own = inspect.signature(self.function).parameters.values()
        return {each.name: each for each in own if each.kind is not inspect.Parameter.VAR_KEYWORD}


STRATEGIES: Registry[Strategy] = Registry("way to split", "recsys.splits")
"""Every way to split, by name; `@strategy(...)` adds one."""
_Function = TypeVar("_Function", bound=Callable[..., Split | Folds])


def strategy(
    name: str,
    *,
    makes: Literal["one", "several"],
    help: str,  # noqa: A002 - the word of the command
) -> Callable[[_Function], _Function]:
    """Register a function as a way to split: `split`, the command, protocol files and tests find it.

    Args:
        name: the name of the strategy, which is the function's.
        makes: "one" split, or "several".
        help: what it holds out, in a few words.
    """
    return STRATEGIES.adding(lambda function: Strategy(name, function, makes, help), name)


class Job:
    """One data set on its way to a split: the side of every row, and arrays of the active rows.

    Active rows are those that were not excluded before the split; `active` is None if all rows are.
    """

    def __init__(
        self, how: str, data: Any, parameters: Mapping[str, Any], options: SplitOptions, *, timed: bool
    ) -> None:
        unknown = [name for name in options if name not in DEFAULTS]
        if unknown:
            raise UnknownNameError(f"option of {how}", unknown[0], [*DEFAULTS, *parameters])
        self.how, self.parameters = how, dict(parameters)
        self.options: SplitOptions = cast("SplitOptions", {**DEFAULTS, **options})
        for name, known in _RULES.items():
            if self.options[name] not in known:  # type: ignore[literal-required]
                raise UnknownNameError(f"value of {name}", self.options[name], known)  # type: ignore[literal-required]
        self.seed = check_seed(self.options["seed"])
        self.table: InteractionTable = as_interaction_table(data, self.options["columns"])
        self.side: Side = np.full(len(self.table), TRAIN, dtype=np.int8)
        self.reasons: list[str] = []
        self.notes: dict[str, Any] = {}
        self._clock: Clock | None = None
        if timed:
            name = self.table.required("time")
            self._clock = self.table.clock(name, self.options["unit"])
            fault = "are without a time: every row needs a time"
            self._exclude_or_refuse(self._clock.missing, name, "without a time", fault)
        self._check_ratings()
        self._keep_k_core()
        self.active: Int | None = None if not self.reasons else np.flatnonzero(self.side == TRAIN)
        self.size = len(self.side) if self.active is None else len(self.active)

    def _check_ratings(self) -> None:
        name, scale = self.table.role("grade"), self.options["scale"]
        if self.options["bad_rows"] == "keep" or (name is None and scale is None):
            return
        name = self.table.required("grade")
        grade = _ratings(self.table.column(name))
        if grade is None:
            return
        fault = "are without a rating: every row needs a rating"
        self._exclude_or_refuse(~np.isfinite(grade), name, "without a rating", fault)
        if scale is not None:
            try:
                low, high = (float(end) for end in scale)
            except (TypeError, ValueError) as error:
                raise SplitError(
                    f"scale={scale!r} is not (lowest, highest).", hint="Pass scale=(1, 5)."
                ) from error
            if not low < high:
                raise SplitError(
                    f"scale={scale!r}: the lowest rating is not below the highest.", hint="Pass scale=(1, 5)."
                )
            reason = f"rating outside {low:g} to {high:g}"
            self._exclude_or_refuse((grade < low) | (grade > high), name, reason, f"have a {reason}")

    def _exclude_or_refuse(self, is_bad: Bool, column: str, reason: str, fault: str) -> None:
        """Exclude bad rows for a reason, or raise, as `bad_rows` says."""
        if not is_bad.any():
            return
        first_bad = int(np.argmax(is_bad))
        if self.options["bad_rows"] != "exclude":
            raise SplitError(
                f"{int(is_bad.sum()):,} of {len(is_bad):,} rows {fault}.",
                table="data",
                column=column,
                row=first_bad,
                hint=Phrase("Correct them, or leave them out and count them: {split.bad_rows='exclude'}."),
            )
        self.side[is_bad & (self.side == TRAIN)] = reason_code(self.reasons, reason)

    def _keep_k_core(self) -> None:
        minimum = (
            check_whole_number(self.options["min_user"], "min_user"),
            check_whole_number(self.options["min_item"], "min_item"),
        )
        if max(minimum) > 1:
            rows = np.flatnonzero(self.side == TRAIN)
            user, item = (self.table.ids(role)[1][rows] for role in ("user", "item"))
            keep, self.notes["core_rounds"] = k_core(user, item, minimum, iterative=True)
            roles = zip(("user", "item"), minimum, strict=True)
            reason = f"{' or '.join(f'{role} with fewer than {n}' for role, n in roles if n > 1)} rows"
            self.side[rows[~keep]] = reason_code(self.reasons, reason)
        if not (self.side == TRAIN).any():
            raise SplitError(
                f"{self.how}: no row is left ({'; '.join(self.reasons)}).", hint="Exclude fewer rows."
            )

    def of_active(self, values: Array) -> Array:
        """Return the values of the active rows, from those of all rows."""
        return values if self.active is None else values[self.active]

    def ids(self, role: str) -> tuple[Ids, Codes]:
        """Return the ids of a role, and the code of each active row."""
        ids, codes = self.table.ids(role)
        return ids, self.of_active(codes)

    @property
    def clock(self) -> Clock:
        """How times are read and borders are written."""
        if self._clock is None:
            raise SplitError(f"{self.how} does not read times: its job is made with timed=False.")
        return self._clock

    @cached_property
    def times(self) -> Array:
        """The times of the active rows."""
        return self.of_active(self.clock.values)

    @cached_property
    def pair_draws(self) -> Keys:
        """One draw per active row; rows of the same user and item share it."""
        return self._pair_keys(*self.ids("user"), *self.ids("item"))

    def _pair_keys(self, users: Ids, user: Codes, items: Ids, item: Codes) -> Keys:
        first = id_keys(users, self.seed, purpose="user")
        second = id_keys(items, self.seed, purpose="item")
        return pair_keys(first[user], second[item])

    def user_draws(self) -> Keys:
        """Return one draw per user, in the order of the ids."""
        return id_keys(self.table.ids("user")[0], self.seed, purpose="users")

    def _tie_keys(self, subset: Int, at: Int) -> Array:
        """Return what orders active rows `subset[at]` of equal time: the item, a draw or the row number."""
        rows = subset[at]
        if self.options["on_tie"] == "row_order":
            return rows
        users, user = self.ids("user")
        items, item = self.ids("item")
        if self.options["on_tie"] == "random":
            return self._pair_keys(users, user[rows], items, item[rows])
        return item[rows]

    def cut(
        self,
        group: Codes,
        n_groups: int,
        amounts: tuple[Any, Any],
        *,
        by_time: bool,
        subset: Int | None = None,
    ) -> Side:
        """Return the side of each active row: the last rows of each group are test, those before validation.

        Args:
            group: the group of each row.
            n_groups: the number of groups.
            amounts: the size of test and validation: a number of rows per group, or a share of each group.
            by_time: the last rows are the newest; otherwise they are drawn, and equal draws stay together.
            subset: the active rows that are cut, if not all; groups are theirs.
        """
        rows = slice(None) if subset is None else subset
        if by_time:
            keys, on_tie = time_keys(self.times[rows], group, n_groups), self.options["on_tie"]
        else:
            keys, on_tie = draw_keys(self.pair_draws[rows], group, n_groups), "together"
        side: Side = np.full(len(group), TRAIN, dtype=np.int8)
        places = np.arange(len(group))
        subset = places if subset is None else subset
        sizes = group_sizes(group, int(group.max()) + 1 if len(group) else 0)
        left: Int | slice = slice(None)
        n_tied = 0
        for code, amount in ((TEST, amounts[0]), (VALIDATION, amounts[1])):
            if not amount:
                continue
            chosen, tied = select_newest(
                keys[left], group[left], self.row_counts(amount, sizes), on_tie,
                partial(self._tie_keys, subset[left]),
            )  # fmt: skip
            n_tied += len(tied)
            side[places[left][chosen]] = code
            left = np.flatnonzero(side == TRAIN)
        if by_time:
            self.notes["ties_at_border"] = n_tied
        return side

    def row_counts(self, amount: Any, sizes: Int) -> Int:
        """Return the number of rows of each group: itself, or a share exactly (0.29 of 100: 29)."""
        if isinstance(amount, int):
            return np.full(len(sizes), amount, dtype=np.int64)
        share = Fraction(amount).limit_denominator(10**6)
        extra = {"down": 0, "nearest": share.denominator // 2, "up": share.denominator - 1}
        n_rows = (sizes * share.numerator + extra[self.options["rounding"]]) // share.denominator
        return np.maximum(n_rows, 1)

    def apply_short_rule(self, side: Side, group: Codes, n_groups: int, *, needed: tuple[int, ...]) -> Side:
        """Users that miss one of the `needed` sides are excluded, on one side only, or refused: `short`."""
        present = group_sizes(group, n_groups) > 0
        short = np.zeros(n_groups, dtype=bool)
        for code in needed:
            short |= group_sizes(group[side == code], n_groups) == 0
        short &= present
        n_short = int(short.sum())
        if n_short == 0:
            return side
        rule = self.options["short"]
        if rule == "error":
            name = self.table.ids("user")[0].name(np.argmax(short))
            raise SplitError(
                f"{plural(n_short, 'user|users has|have')} too few rows "
                f"(or too few different times), for example {name!r}.",
                table="data",
                hint="Leave them out, only train on them, or only test on them: "
                + Phrase("{split.short='exclude'}, {split.short='train'} or {split.short='test'}."),
            )
        self.notes["users_too_short"] = n_short
        rows = short[group]
        if rule == "exclude":
            side[rows] = reason_code(self.reasons, "user with too few rows to be on every side")
        else:
            side[rows] = TRAIN if rule == "train" else TEST if TEST in needed else VALIDATION
        return side

    def build_split(self, side: Side, *extra_parts: int, **identity: Any) -> Split:
        """Return the split, from the side of each active row.

        Args:
            side: of each active row.
            extra_parts: the parts besides train and test.
            identity: parameters that distinguish one of several splits (fold=, window=).
        """
        full = side
        if self.active is not None:
            full = self.side.copy()
            full[self.active] = side
        changed = {name: value for name, value in self.options.items() if value != DEFAULTS[name]}  # type: ignore[literal-required]
        warm_users, warm_items, new_pairs = (
            bool(changed.pop(name, False)) for name in ("warm_users", "warm_items", "new_pairs")
        )
        split = Split(
            self.table, full, self.reasons, extra_parts=extra_parts, how=self.how, notes=self.notes,
            parameters={**self.parameters, **changed, **identity},
            count_unordered_users=self._count_unordered_users,
        )  # fmt: skip
        split.check()
        if warm_users or warm_items:
            split = split.warm(users=warm_users, items=warm_items)
        return split.new_pairs() if new_pairs else split

    def _count_unordered_users(self) -> int | None:
        """Count users whose rows are not in the order of time; this does not change the split."""
        if self._clock is None or self.table.role("user") is None:
            return None
        ids, user = self.table.ids("user")
        order = np.argsort(user, kind="stable")
        back = (np.diff(self._clock.values[order]) < 0) & (np.diff(user[order]) == 0)
        return int(np.bincount(user[order][1:][back], minlength=len(ids)).astype(bool).sum())


def _ratings(column: Any) -> Array | None:
    """Ratings as float64, NaN where missing; None if the column holds no numbers."""
    dtype = getattr(column, "dtype", None)
    if isinstance(column, np.ndarray):
        return column.astype(np.float64) if column.dtype.kind in "iufb" else None
    if dtype is None or not dtype.is_numeric():
        return None
    if column.is_null().any():
        import narwhals.stable.v2 as nw

        column = column.cast(nw.Float64).fill_null(float("nan"))
    return column_array(column).astype(np.float64)


def check_amount(value: Any, name: str, *, optional: bool = False) -> int | float:
    """Return the value if it is a share above 0 and below 1, or a number of rows (or users) of at least 1."""
    if optional and (value is None or ((is_whole(value) or isinstance(value, float)) and value == 0)):
        return 0
    if is_whole(value, 1):
        return int(value)
    if isinstance(value, float | np.floating) and 0 < value < 1:
        return float(value)
    came, fifth, one = (Fix(name, amount, of="split") for amount in (value, 0.2, 1))
    raise SplitError(
        Phrase("{} is neither a share above 0 and below 1 nor a whole number of at least 1.", came),
        hint=Phrase("Pass {} for a fifth, or {} for one.", fifth, one),
    )


def time_keys(values: Array, group: Codes, n_groups: int) -> Int:
    """Return one whole number per row that sorts by group, then by time."""
    if values.dtype.kind == "f" or int(values.max()) - int(values.min()) >= (1 << _KEY_BITS) // max(
        n_groups, 1
    ):
        _, place = np.unique(values, return_inverse=True)
        low, span = 0, int(place.max()) + 1
    else:
        place, low, span = values, int(values.min()), int(values.max()) - int(values.min()) + 1
    keys = np.multiply(group, span, dtype=np.int64)
    keys += place
    if low:
        keys -= low
    return keys


def draw_keys(keys: Keys, group: Codes, n_groups: int) -> Int:
    """Return one whole number per row that sorts by group, then by draw."""
    bits = max(int(n_groups) - 1, 0).bit_length()
    group_keys = (keys >> np.uint64(64 - _KEY_BITS + bits)).view(np.int64)
    group_keys |= np.left_shift(group, _KEY_BITS - bits, dtype=np.int64)
    return group_keys


def group_sizes(group: Codes, n_groups: int) -> Int:
    """Return how many rows each group has."""
    return np.bincount(group, minlength=n_groups).astype(np.int64, copy=False)


def select_newest(
    keys: Int, group: Codes, n_wanted: Int, on_tie: str, tie_order: Callable[[Int], Array]
) -> tuple[Bool, Int]:
    """Select the last `n_wanted` rows of each group.

    Args:
        keys: from `time_keys` or `draw_keys`.
        group: the group of each row.
        n_wanted: the number of rows to select in each group.
        on_tie: a name in `ON_TIE`.
        tie_order: gives the sort keys of tied rows, for an array of row numbers.

    Returns:
        One flag per row, and the groups with a tie at their border.
    """
    n_groups = len(n_wanted)
    sizes = group_sizes(group, n_groups)
    n_selected = np.minimum(n_wanted, sizes)
    border = _border_keys(keys, sizes, n_selected)
    selected = keys >= border[group]
    excess = group_sizes(group[selected], n_groups) - n_selected
    tied_groups = np.flatnonzero(excess > 0)
    if len(tied_groups) == 0 or on_tie == "together":
        return selected, tied_groups
    if on_tie == "error":
        raise SplitError(
            f"{len(tied_groups)} of {n_groups} borders fall between rows of equal time.",
            hint=Phrase("Choose {split.on_tie='together'}, train, by_item, random or row_order."),
        )
    at_border = np.flatnonzero((keys == border[group]) & (excess[group] > 0))
    if on_tie == "train":
        selected[at_border] = False
        return selected, tied_groups
    tied_group = group[at_border]
    order = np.lexsort((tie_order(at_border), tied_group))  # the first rows of each group are deselected
    starts = np.concatenate([[0], np.cumsum(group_sizes(tied_group, n_groups))])[:-1]
    place = np.arange(len(order)) - starts[tied_group[order]]
    selected[at_border[order[place < excess[tied_group[order]]]]] = False
    return selected, tied_groups


def _border_keys(keys: Int, sizes: Int, n_selected: Int) -> Int:
    """Return the smallest selected key of each group; above all keys where none is selected."""
    above_all = np.iinfo(np.int64).max
    if len(keys) == 0:
        return np.full(len(sizes), above_all)
    if len(sizes) == 1:
        place = int(sizes[0] - n_selected[0])
        return np.array([np.partition(keys, place)[place] if n_selected[0] else above_all], dtype=np.int64)
    ends = np.cumsum(sizes)
    ordered = np.sort(keys)
    place = np.minimum(ends - n_selected, len(keys) - 1)
    return np.where(n_selected > 0, ordered[place], above_all)
