"""The result of a split: its parts, made on demand, and counts in which every row occurs once.

A Split stores one small number per row: the side of the row. So no row can be lost or be on two sides; the
counts are checked nevertheless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from recsys.display.number_words import plural
from recsys.errors import Phrase, SplitError
from recsys.records.arrays import Array, Bool, Int, cached_property
from recsys.splits.split_table import InteractionTable, count_distinct

Side = npt.NDArray[np.int8]
SIDES = ("train", "validation_known", "validation", "known", "test")
TRAIN, VALIDATION_KNOWN, VALIDATION, KNOWN, TEST = range(5)
FIRST_REASON = len(SIDES)
_HELD_OUT = (VALIDATION, TEST)
# What helps a split with an empty part, by the parameter it was made with.
_REMEDIES = {
    "test": Phrase("change {split.test=}"),
    "at": Phrase("move the border {split.at=}"),
    "n_folds": "use fewer folds",
    "length": "use longer windows",
}


class Split:
    """The parts of a data set. Unpacks into them: `train, test = split`, or `train, validation, test`.

    Attributes:
        train, test: the rows to learn from and the rows to predict.
        validation: more rows to predict, for tuning; None if none were asked for.
        known, validation_known: rows a model may read of users that are not in train; None if there are none.
        excluded: rows in no part; `reasons` counts them by reason, `reason_of_row` has the reason of each.
        counts: rows, users and items of each part, and other counts.
        manifest: parameters, counts, content hashes and the seed; see `recsys.splits.rerun`.
    """

    def __init__(
        self,
        table: InteractionTable,
        side: Side,
        reasons: Sequence[str],
        *,
        extra_parts: Sequence[int],
        how: str,
        parameters: Mapping[str, Any],
        notes: Mapping[str, Any],
        count_unordered_users: Callable[[], int | None],
    ) -> None:
        self._table = table
        self._side = side
        self._reasons = tuple(reasons)
        self._codes = tuple(sorted({TRAIN, TEST, *extra_parts}))
        self._count_unordered_users = count_unordered_users
        self._parts: dict[int, Any] = {}
        self.how = how
        self.parameters = dict(parameters)
        self.notes = dict(notes)

    @cached_property
    def _row_counts(self) -> Int:
        return np.bincount(self._side, minlength=FIRST_REASON + len(self._reasons))

    @property
    def names(self) -> list[str]:
        """The names of the parts, in the order in which they unpack."""
        return [SIDES[code] for code in self._codes]

    def rows(self, part: str) -> Int:
        """Return the row numbers of the input in a part, from 0, ascending."""
        return np.flatnonzero(self.mask(part))

    def mask(self, part: str) -> Bool:
        """Return one flag per row of the input: whether it is in a part."""
        if part == "excluded":
            return np.asarray(self._side >= FIRST_REASON)
        if part not in SIDES:
            raise SplitError(
                f"there is no part {part!r}.", hint=f"Parts are {', '.join(self.names)}, excluded."
            )
        return np.asarray(self._side == SIDES.index(part))

    def _part(self, code: int) -> Any:
        if code not in (*self._codes, FIRST_REASON):
            return None
        if code not in self._parts:
            keep = self._side >= FIRST_REASON if code == FIRST_REASON else self._side == code
            self._parts[code] = self._table.take(keep)
        return self._parts[code]

    train = property(lambda self: self._part(TRAIN), doc="The rows to learn from.")
    test = property(lambda self: self._part(TEST), doc="The rows to predict.")
    validation = property(
        lambda self: self._part(VALIDATION), doc="The rows to predict while tuning, or None."
    )
    known = property(lambda self: self._part(KNOWN), doc="The rows of test users a model may read, or None.")
    validation_known = property(
        lambda self: self._part(VALIDATION_KNOWN),
        doc="The rows of validation users a model may read, or None.",
    )
    excluded = property(lambda self: self._part(FIRST_REASON), doc="The rows in no part.")

    @property
    def reasons(self) -> dict[str, int]:
        """The number of excluded rows, by reason."""
        counts = self._row_counts[FIRST_REASON:].tolist()
        return {reason: n for reason, n in zip(self._reasons, counts, strict=True) if n}

    @property
    def reason_of_row(self) -> Array:
        """The reason of each excluded row, in the order of `excluded`."""
        codes = self._side[self._side >= FIRST_REASON] - FIRST_REASON
        return np.array(self._reasons, dtype=object)[codes] if self._reasons else np.zeros(0, dtype=object)

    @cached_property
    def counts(self) -> dict[str, Any]:
        """Rows of each part and of the input; users and items if the data has such columns."""
        counts: dict[str, Any] = {"rows": self._count_rows()}
        for role in ("user", "item"):
            if self._table.role(role) is not None:
                ids, codes = self._table.ids(role)
                counts[f"{role}s"] = {
                    "input": count_distinct(codes, len(ids)),
                    **{name: count_distinct(codes[self.mask(name)], len(ids)) for name in self.names},
                }
        counts |= {"excluded": self.reasons, **self.notes}
        n_unordered = self._count_unordered_users()
        if n_unordered:
            counts["users_not_in_time_order"] = n_unordered
        return counts

    def _count_rows(self) -> dict[str, int]:
        """Return the number of rows of the input and of each part; every row is counted once."""
        rows = {name: int(self._row_counts[SIDES.index(name)]) for name in self.names}
        rows["excluded"] = int(self._row_counts[FIRST_REASON:].sum())
        if sum(rows.values()) != len(self._table):
            raise SplitError(f"the parts hold {sum(rows.values())} of {len(self._table)} rows: a defect.")
        return {"input": len(self._table), **rows}

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The data, the parameters and the parts of the split, for JSON; reads all of the data once."""
        from recsys.splits.manifest import build_manifest

        return build_manifest(self, self._table)

    def warm(self, *, users: bool = True, items: bool = True) -> Split:
        """Return the same split with held-out rows of users or items that are not in train excluded."""
        side, reasons = self._side.copy(), list(self._reasons)
        held_out = np.isin(side, _HELD_OUT)
        for role, filtered in (("user", users), ("item", items)):
            if not filtered:
                continue
            ids, codes = self._table.ids(role)
            is_trained = np.zeros(len(ids), dtype=bool)
            is_trained[codes[self._side == TRAIN]] = True
            is_cold = held_out & (side < FIRST_REASON) & ~is_trained[codes]
            side[is_cold] = reason_code(reasons, f"{role} not in train")
        filters = {"warm_users": users, "warm_items": items}
        return self._filtered(side, reasons, **{name: True for name, asked in filters.items() if asked})

    def new_pairs(self) -> Split:
        """Exclude held-out rows whose user already has the item in train or in known.

        `reasons` counts them.

        >>> from recsys.splits import global_temporal
        >>> rows = {"user": [1, 1, 1, 1], "item": ["a", "b", "a", "c"], "time": [1, 2, 3, 4]}
        >>> import pandas as pd
        >>> split = global_temporal(pd.DataFrame(rows), 2).new_pairs()
        >>> split.test["item"].tolist(), split.reasons
        (['c'], {'user has the item in train': 1})
        """
        side, reasons = self._side.copy(), list(self._reasons)
        (_, user), (items, item) = self._table.ids("user"), self._table.ids("item")
        pair = user.astype(np.int64) * len(items) + item
        had = np.isin(pair, pair[np.isin(side, (TRAIN, KNOWN, VALIDATION_KNOWN))])
        side[np.isin(side, _HELD_OUT) & had] = reason_code(reasons, "user has the item in train")
        return self._filtered(side, reasons, new_pairs=True)

    def _filtered(self, side: Side, reasons: Sequence[str], **filters: bool) -> Split:
        split = Split(
            self._table, side, reasons, extra_parts=self._codes, how=self.how, notes=self.notes,
            count_unordered_users=self._count_unordered_users, parameters={**self.parameters, **filters},
        )  # fmt: skip
        split.check()
        return split

    def check(self) -> None:
        """Raise if a part is empty."""
        empty = [SIDES[code] for code in self._codes if self._row_counts[code] == 0]
        if not empty:
            return
        excluded = [f"{plural(n, 'row')}: {reason}" for reason, n in self.reasons.items()]
        hint = "Pass data with more rows" + (", or exclude fewer rows" if excluded else "")
        for remedy in (remedy for name, remedy in _REMEDIES.items() if name in self.parameters):
            hint = hint + ", or " + remedy
        raise SplitError(
            f"{self.how}: no row is left for {empty[0]} "
            f"(of {plural(len(self._table), 'row')}; excluded: {'; '.join(excluded) or 'none'}).",
            hint=hint + ".",
        )

    def __iter__(self) -> Iterator[Any]:
        return iter([self._part(SIDES.index(name)) for name in self.names])

    def __repr__(self) -> str:
        rows = ", ".join(f"{name}={count:,}" for name, count in self._count_rows().items())
        return f"Split({self.how}: {rows})"

    def __str__(self) -> str:
        rows = self._count_rows()
        total = rows.pop("input")
        lines = [f"{self.how}: {total:,} rows"]
        width = max(map(len, rows))
        for name, count in rows.items():
            sizes = [
                f"{self.counts[role][name]:,} {role}"
                for role in ("users", "items")
                if name in self.counts.get(role, {})
            ]
            lines.append("  ".join([f"{name:<{width}}", f"{count:>12,}", f"{count / total:>6.1%}", *sizes]))
        lines += [f"excluded: {plural(count, 'row')}, {reason}" for reason, count in self.reasons.items()]
        lines += [f"{name.replace('_', ' ')}: {value}" for name, value in self.notes.items()]
        return "\n".join(lines)


class Folds(Sequence[Split]):
    """Several splits of one data set; each is made on demand and not stored."""

    def __init__(self, make: Callable[[int], Split], size: int) -> None:
        self._make = make
        self._size = size

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> Split: ...

    @overload
    def __getitem__(self, index: slice) -> list[Split]: ...

    def __getitem__(self, index: int | slice) -> Split | list[Split]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._size))]
        at = index + self._size if index < 0 else index
        if not 0 <= at < self._size:
            raise IndexError(f"there are {self._size} folds")
        return self._make(at)

    def __repr__(self) -> str:
        return f"Folds({self._size})"


def reason_code(reasons: list[str], reason: str) -> int:
    """Return the side code of a reason; a new reason is added to the list."""
    if reason not in reasons:
        reasons.append(reason)
    return FIRST_REASON + reasons.index(reason)
