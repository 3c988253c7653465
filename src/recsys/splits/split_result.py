"""What a split hands back: its parts, made when asked for, and an account in which every row occurs once.

A Split holds one small number a row, saying where the row went. So no row can be lost or be on two sides; the
account is checked all the same, against the parts as they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from recsys.errors import SplitError
from recsys.splits.filters import cold, distinct
from recsys.splits.split_table import InteractionTable
from recsys.types import Array, Bool, Int

Side = npt.NDArray[np.int8]
SIDES = ("train", "validation_known", "validation", "known", "test")
TRAIN, VALIDATION_KNOWN, VALIDATION, KNOWN, TEST = range(5)
FIRST_REASON = len(SIDES)
_HELD_OUT = (VALIDATION, TEST)


class Split:
    """The parts of a data set. Unpacks into them: `train, test = split`, validation between if asked for.

    Attributes:
        train, test: what to learn from, what to predict.
        validation: a second part to predict, for tuning; None where not asked for.
        known, validation_known: of users that are not in train, the rows a model may look at; None elsewhere.
        excluded: rows that are on no side; `reasons` says how many and why, `reason_of_row` why each.
        counts: rows, users and items of each part, and what else was counted.
        manifest: parameters, counts, content hashes and the seed; see `recsys.splits.rerun`.
    """

    def __init__(
        self, table: InteractionTable, side: Side, reasons: Sequence[str], *, asked: Sequence[int], how: str,
        parameters: Mapping[str, Any], notes: Mapping[str, Any], disorder: Callable[[], int | None],
    ) -> None:  # fmt: skip
        self._table = table
        self._side = side
        self._reasons = tuple(reasons)
        self._asked = tuple(sorted({TRAIN, TEST, *asked}))
        self._disorder = disorder
        self._parts: dict[int, Any] = {}
        self.how = how
        self.parameters = dict(parameters)
        self.notes = dict(notes)

    @cached_property
    def _rows(self) -> Int:
        return np.bincount(self._side, minlength=FIRST_REASON + len(self._reasons))

    @property
    def names(self) -> list[str]:
        """The parts there are, in the order they unpack."""
        return [SIDES[code] for code in self._asked]

    def rows(self, part: str) -> Int:
        """Which rows of the input went to a part, counted from 0, ascending."""
        return np.flatnonzero(self.mask(part))

    def mask(self, part: str) -> Bool:
        """One flag a row of the input: whether it went to a part."""
        if part == "excluded":
            return np.asarray(self._side >= FIRST_REASON)
        if part not in SIDES:
            raise SplitError(
                f"there is no part {part!r}.", hint=f"Parts are {', '.join(self.names)}, excluded."
            )
        return np.asarray(self._side == SIDES.index(part))

    def _part(self, code: int) -> Any:
        if code not in self._parts:
            keep = self._side >= FIRST_REASON if code == FIRST_REASON else self._side == code
            self._parts[code] = self._table.take(keep)
        return self._parts[code]

    def _held(self, code: int) -> Any:
        return self._part(code) if code in self._asked else None

    train = property(lambda self: self._part(TRAIN), doc="What to learn from.")
    test = property(lambda self: self._part(TEST), doc="What to predict.")
    validation = property(lambda self: self._held(VALIDATION), doc="What to predict while tuning, or None.")
    known = property(lambda self: self._held(KNOWN), doc="What is known of the test users, or None.")
    validation_known = property(
        lambda self: self._held(VALIDATION_KNOWN), doc="What is known of the validation users, or None."
    )
    excluded = property(lambda self: self._part(FIRST_REASON), doc="The rows on no side.")

    @property
    def reasons(self) -> dict[str, int]:
        """How many rows were excluded, by reason."""
        found = zip(self._reasons, self._rows[FIRST_REASON:].tolist(), strict=True)
        return {reason: count for reason, count in found if count}

    @property
    def reason_of_row(self) -> Array:
        """Why each excluded row was excluded, in the order of `excluded`."""
        codes = self._side[self._side >= FIRST_REASON] - FIRST_REASON
        return np.array(self._reasons, dtype=object)[codes] if self._reasons else np.zeros(0, dtype=object)

    @cached_property
    def counts(self) -> dict[str, Any]:
        """Rows of each part and of the input; users and items where there are such columns."""
        made: dict[str, Any] = {"rows": self._account()}
        for role in ("user", "item"):
            if self._table.role(role) is not None:
                ids, codes = self._table.ids(role)
                made[f"{role}s"] = {
                    "input": distinct(codes, len(ids)),
                    **{name: distinct(codes[self.mask(name)], len(ids)) for name in self.names},
                }
        disorder = self._disorder()
        more = {"users_not_in_time_order": disorder} if disorder else {}
        return {**made, "excluded": self.reasons, **self.notes, **more}

    def _account(self) -> dict[str, int]:
        rows = {name: int(self._rows[SIDES.index(name)]) for name in self.names}
        rows["excluded"] = int(self._rows[FIRST_REASON:].sum())
        if sum(rows.values()) != len(self._table):
            raise SplitError(f"the parts hold {sum(rows.values())} of {len(self._table)} rows: a defect.")
        return {"input": len(self._table), **rows}

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What was split how into what, as JSON can hold it; reads all of the data once."""
        from recsys.splits.manifest import manifest_of

        return manifest_of(self, self._table)

    def warm(self, *, users: bool = True, items: bool = True) -> Split:
        """The same with held-out rows of users or items that are not in train excluded, and counted."""
        side, reasons = self._side.copy(), list(self._reasons)
        held_out = np.isin(side, _HELD_OUT)
        for role, wanted in (("user", users), ("item", items)):
            if not wanted:
                continue
            ids, codes = self._table.ids(role)
            away = cold(codes, held_out & (side < FIRST_REASON), self._side == TRAIN, len(ids))
            side[away] = reason_code(reasons, f"{role} not in train")
        made = Split(
            self._table, side, reasons, asked=self._asked, how=self.how, notes=self.notes,
            disorder=self._disorder,
            parameters={**self.parameters, **({"warm_users": True} if users else {}),
                        **({"warm_items": True} if items else {})},
        )  # fmt: skip
        made.check()
        return made

    def check(self) -> None:
        """Refuse a split with an empty side."""
        for code in self._asked:
            if self._rows[code] == 0:
                told = "; ".join(f"{n:,} rows: {reason}" for reason, n in self.reasons.items()) or "none"
                raise SplitError(
                    f"{self.how}: no row is left for {SIDES[code]} "
                    f"({len(self._table):,} came; excluded: {told}).",
                    hint="Ask for a smaller or larger share, or filter less.",
                )

    def __iter__(self) -> Iterator[Any]:
        return iter([self._part(SIDES.index(name)) for name in self.names])

    def __repr__(self) -> str:
        rows = ", ".join(f"{name}={count:,}" for name, count in self._account().items())
        return f"Split({self.how}: {rows})"

    def __str__(self) -> str:
        rows = self._account()
        total = rows.pop("input")
        lines = [f"{self.how}: {total:,} rows"]
        wide = max(map(len, rows))
        for name, count in rows.items():
            several = [
                f"{self.counts[role][name]:,} {role}"
                for role in ("users", "items")
                if name in self.counts.get(role, {})
            ]
            lines.append("  ".join([f"{name:<{wide}}", f"{count:>12,}", f"{count / total:>6.1%}", *several]))
        lines += [f"excluded: {count:,} rows, {reason}" for reason, count in self.reasons.items()]
        lines += [f"{name.replace('_', ' ')}: {value}" for name, value in self.notes.items()]
        return "\n".join(lines)


class Folds(Sequence[Split]):
    """Several splits of one data set; each is made when it is asked for and not kept."""

    def __init__(self, make: Callable[[int], Split], size: int) -> None:
        self._make = make
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._size))]
        at = index + self._size if index < 0 else index
        if not 0 <= at < self._size:
            raise IndexError(f"there are {self._size} folds")
        return self._make(at)

    def __repr__(self) -> str:
        return f"Folds({self._size})"


def reason_code(reasons: list[str], reason: str) -> int:
    """The number that stands for a reason; a new reason is written down."""
    if reason not in reasons:
        reasons.append(reason)
    return FIRST_REASON + reasons.index(reason)
