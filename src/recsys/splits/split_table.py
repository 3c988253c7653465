"""Data to split, as rows: the ids and values of each role, and any part with the type of the data.

Tables keep their columns, types, index and row order. Matrices, dicts and Interactions have one row per
stored entry. Nothing is read before a strategy asks for it. `min_interactions` keeps the rows of users and
items with enough of them, before a split.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from itertools import compress
from typing import Any

import numpy as np

from recsys.errors import ColumnError, Fix, InputError, Phrase, SplitError
from recsys.inputs.containers import as_csr, is_sparse, rows_of_container
from recsys.inputs.frames import as_frame, detect_columns, encode_column, missing_column_hint
from recsys.inputs.ids import encode, refuse_masked
from recsys.inputs.timestamps import Clock, read_times
from recsys.records.arrays import Array, Bool, Codes, Ids, Int, Interactions, cached_property
from recsys.records.checks import is_whole

_ROLES = ("user", "item", "time", "grade")


class InteractionTable(ABC):
    """Rows whose columns have roles: `values` gives a column, `ids` encodes one, `take` makes a part."""

    kind = "table"

    def __init__(self, size: int) -> None:
        self.size = size
        self._coded: dict[str, tuple[Ids, Codes]] = {}
        self._clocks: dict[tuple[str, str | None], Clock] = {}

    def __len__(self) -> int:
        return self.size

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """The columns, in order."""

    @abstractmethod
    def column(self, name: str) -> Any:
        """Return a column by its own name: a narwhals series or an array."""

    @abstractmethod
    def role(self, role: str) -> str | None:
        """Return the name of the column with a role, or None."""

    @abstractmethod
    def take(self, keep: Bool) -> Any:
        """Return the rows to keep, with the type of the data."""

    def values(self, role: str) -> Any:
        """Return the column with a role, or None."""
        name = self.role(role)
        return None if name is None else self.column(name)

    def ids(self, role: str) -> tuple[Ids, Codes]:
        """Return the ids of a role and the code of each row."""
        if role not in self._coded:
            self._coded[role] = self._encode_column(self.required(role))
        return self._coded[role]

    def required(self, role: str) -> str:
        """Return the name of the column with a role; raise an error if no column has it."""
        name = self.role(role)
        if name is None:
            raise ColumnError(
                f"no column was recognised as the {role}.",
                table="data",
                column=role,
                hint=missing_column_hint(self.names, role, "grade"),
            )
        return name

    def clock(self, name: str, unit: str | None) -> Clock:
        """Return a column of times, read once."""
        if (name, unit) not in self._clocks:
            self._clocks[name, unit] = read_times(self.column(name), name, unit=unit)
        return self._clocks[name, unit]

    @abstractmethod
    def _encode_column(self, name: str) -> tuple[Ids, Codes]:
        """Return the ids of a column and the code of each row."""


class FrameTable(InteractionTable):
    """A table of pandas, polars, Arrow or any other library that narwhals supports."""

    def __init__(self, frame: Any, columns: Mapping[str, str] | None) -> None:
        super().__init__(len(frame))
        self.frame = frame
        self.kind = str(frame.implementation)
        self._columns = columns
        self._role_columns: dict[str, str | None] = {}
        detect_columns(list(frame.columns), (), columns, "data")  # raises at once if columns= is wrong

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.frame.columns]

    def role(self, role: str) -> str | None:
        if role not in self._role_columns:
            try:
                self._role_columns[role] = self._detect_column(role)
            except ColumnError:  # several columns could have the role: an error once it is needed or named
                if role in (self._columns or {}):
                    raise
                return None
        return self._role_columns[role]

    def _detect_column(self, role: str) -> str | None:
        return detect_columns(list(self.frame.columns), (role,), self._columns, "data").get(role)

    def required(self, role: str) -> str:
        self._detect_column(role)  # raises if several columns could have the role
        return super().required(role)

    def column(self, name: str) -> Any:
        return self.frame[name]

    def _encode_column(self, name: str) -> tuple[Ids, Codes]:
        return encode_column(self.frame, name, "data", as_range=False)

    def take(self, keep: Bool) -> Any:
        native = self.frame.to_native()
        if self.frame.implementation.is_pandas():
            return native[keep]
        if self.frame.implementation.is_polars() or self.frame.implementation.is_pyarrow():
            import narwhals.stable.v2 as nw

            mask = nw.new_series("keep", keep, nw.Boolean, backend=self.frame.implementation)
            return native.filter(mask.to_native())
        return self.frame.filter(keep.tolist()).to_native()


class EntryTable(InteractionTable):
    """Data that is not a frame: one row per entry, one column per role."""

    def __init__(
        self,
        kind: str,
        roles: Mapping[str, Any],
        coded: Mapping[str, tuple[Ids, Codes]],
        take: Callable[[Bool], Any],
        size: int,
    ) -> None:
        super().__init__(size)
        self.kind = kind
        self._roles = {role: values for role, values in roles.items() if values is not None}
        self._coded = dict(coded)
        self._take = take

    @property
    def names(self) -> list[str]:
        return [role for role in _ROLES if role in self._coded or role in self._roles]

    def role(self, role: str) -> str | None:
        return role if role in self._coded or role in self._roles else None

    def column(self, name: str) -> Any:
        if name in self._roles:
            return self._roles[name]
        ids, codes = self._coded[name]
        return ids.values[codes]

    def _encode_column(self, name: str) -> tuple[Ids, Codes]:
        return encode(self._roles[name], table="data", column=name)

    def take(self, keep: Bool) -> Any:
        return self._take(keep)


def as_interaction_table(data: Any, columns: Mapping[str, Any] | None) -> InteractionTable:
    """Interactions of any supported type, as rows.

    Raises:
        InputError: the type is not supported, or there are no rows.
        ColumnError: a 2-D array came without its columns.
    """
    if isinstance(data, InteractionTable):
        return data
    if isinstance(data, Interactions):
        case = np.repeat(np.arange(len(data.cases), dtype=np.int32), data.sizes)
        coded = {"user": (data.cases, case), "item": (data.items, data.codes)}
        roles = {"grade": data.grades, "time": data.times}
        table: InteractionTable = EntryTable("Interactions", roles, coded, data.kept, len(data.codes))
    elif isinstance(data, np.ndarray):
        table = _array_table(data, columns)
    elif is_sparse(data):
        table = _sparse_table(data)
    elif isinstance(data, Mapping):
        table = _dict_table(data)
    else:
        frame = as_frame(data)
        if frame is None:
            raise InputError(
                f"the data came as {type(data).__name__}.",
                table="data",
                hint="Expected a pandas, polars or Arrow table, a scipy sparse matrix, {user: [items]}, "
                "a 2-D array with columns={'user': 0, 'item': 1, 'time': 2}, or Interactions.",
            )
        table = FrameTable(frame, columns)
    if len(table) == 0:
        raise InputError("the data has no rows.", table="data", hint="Check the filter or the file.")
    return table


def _array_table(data: Array, columns: Mapping[str, Any] | None) -> EntryTable:
    """Return a 2-D array; `columns` gives the number of the column with each role."""
    refuse_masked(data, table="data")
    numbers = {role: number for role, number in (columns or {}).items() if role in _ROLES}
    readable = data.ndim == 2 and 0 < len(numbers) == len(columns or {})
    if not readable or not all(
        isinstance(number, int | np.integer) and -data.shape[1] <= number < data.shape[1]
        for number in numbers.values()
    ):
        raise ColumnError(
            f"an array of shape {data.shape} with columns={columns!r} cannot be read.",
            table="data",
            hint="Pass a 2-D array and the place of each column: columns={'user': 0, 'item': 1, 'time': 2}.",
        )
    roles = {role: data[:, number] for role, number in numbers.items()}
    return EntryTable("array", roles, {}, lambda keep: data[keep], len(data))


def _sparse_table(data: Any) -> EntryTable:
    matrix = as_csr(data, table="data")
    rows = rows_of_container(matrix, ordered=False, table="data")

    def take(keep: Bool) -> Any:
        sizes = np.bincount(rows.case[keep], minlength=matrix.shape[0])
        indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(matrix.indptr.dtype)
        return type(matrix)((matrix.data[keep], matrix.indices[keep], indptr), shape=matrix.shape)

    coded = {"user": (rows.cases, rows.case), "item": (rows.items, rows.item)}
    return EntryTable("matrix", {"grade": rows.grade}, coded, take, len(rows))


def _dict_table(data: Mapping[Any, Any]) -> EntryTable:
    """Return {user: [items]} in order of time; without times, {user: {item: rating}} or {user: {items}}."""
    rows = rows_of_container(data, ordered=False, table="data")
    sizes = [
        len(entry) if hasattr(entry, "__len__") and not isinstance(entry, str) else 1
        for entry in data.values()
    ]
    in_order = all(isinstance(entry, list | tuple | np.ndarray) for entry in data.values())
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    time = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes) if in_order else None

    def take(keep: Bool) -> Any:
        part: dict[Any, Any] = {}
        for (user, entry), start, end in zip(data.items(), starts[:-1], starts[1:], strict=True):
            if keep[start:end].any():
                part[user] = _part_of_entry(entry, keep[start:end])
        return part

    coded = {"user": (rows.cases, rows.case), "item": (rows.items, rows.item)}
    return EntryTable("dict", {"grade": rows.grade, "time": time}, coded, take, len(rows))


def _part_of_entry(entry: Any, keep: Bool) -> Any:
    """Return the values of one user to keep, in a container of the type of `entry`."""
    if isinstance(entry, Mapping):
        return dict(compress(entry.items(), keep))
    if isinstance(entry, str) or not hasattr(entry, "__len__"):
        return entry
    values = list(compress(entry, keep))
    if isinstance(entry, np.ndarray):
        return np.asarray(values, dtype=entry.dtype)
    return type(entry)(values) if isinstance(entry, list | tuple | set | frozenset) else values[0]


class Selection:
    """The kept and the excluded rows, with the type of the data; unpacks into `kept, excluded`."""

    def __init__(self, table: InteractionTable, keep: Bool, counts: dict[str, Any]) -> None:
        self._table = table
        self.mask = keep
        self.counts = counts

    @cached_property
    def kept(self) -> Any:
        """The rows with enough interactions."""
        return self._table.take(self.mask)

    @cached_property
    def excluded(self) -> Any:
        """All other rows."""
        return self._table.take(~self.mask)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.kept, self.excluded))

    def __repr__(self) -> str:
        return f"Selection({', '.join(f'{name}={value:,}' for name, value in self.counts.items())})"


def min_interactions(
    data: Any,
    user: int = 5,
    item: int = 5,
    *,
    iterative: bool = True,
    columns: Mapping[str, Any] | None = None,
) -> Selection:
    """Keep the rows of users and items with enough rows.

    Args:
        data: anything that `split` takes.
        user: the number of rows every user must have.
        item: the number of rows every item must have.
        iterative: repeat until it holds for the rows that are left (the k-core); otherwise filter once.
        columns: the column of each role ("user", "item"), where it is not recognised.

    Raises:
        SplitError: no row is left.

    >>> kept, excluded = min_interactions(
    ...     {"ann": ["a", "b"], "bob": ["a", "b"], "eve": ["c"]}, user=2, item=2
    ... )
    >>> kept, excluded
    ({'ann': ['a', 'b'], 'bob': ['a', 'b']}, {'eve': ['c']})
    """
    minimum = check_whole_number(user, "user"), check_whole_number(item, "item")
    table = as_interaction_table(data, columns)
    users, user_codes = table.ids("user")
    items, item_codes = table.ids("item")
    keep, rounds = k_core(user_codes, item_codes, minimum, iterative=iterative)
    if not keep.any():
        raise SplitError(
            f"no row is left: no user with {minimum[0]} and item with {minimum[1]} rows.",
            hint="Ask for fewer.",
        )
    n_kept = int(keep.sum())
    counts = {"input": len(table), "kept": n_kept, "excluded": len(table) - n_kept}
    for name, codes, n_ids in (("users", user_codes, len(users)), ("items", item_codes, len(items))):
        counts[f"{name}_excluded"] = count_distinct(codes, n_ids) - count_distinct(codes[keep], n_ids)
    return Selection(table, keep, counts | {"rounds": rounds})


def k_core(user: Codes, item: Codes, minimum: tuple[int, int], *, iterative: bool) -> tuple[Bool, int]:
    """Return rows whose user and item have enough rows, and the number of rounds.

    With `iterative` this is the k-core: the largest set of rows in which every user and item has enough rows,
    whatever the order of removal. Otherwise it is one round, counted on all rows.
    """
    keep = np.ones(len(user), dtype=bool)
    rows: Int | None = None
    n_rounds = 0
    while True:
        n_rounds += 1
        u, i = (user, item) if rows is None else (user[rows], item[rows])
        has_enough = (np.bincount(u) >= minimum[0])[u] if len(u) else np.zeros(0, dtype=bool)
        has_enough &= (np.bincount(i) >= minimum[1])[i] if len(i) else has_enough
        if has_enough.all():
            return keep, n_rounds
        removed = np.flatnonzero(~has_enough) if rows is None else rows[~has_enough]
        keep[removed] = False
        rows = np.flatnonzero(keep) if rows is None else rows[has_enough]
        if not iterative or len(rows) == 0:
            return keep, n_rounds


def count_distinct(codes: Codes, size: int) -> int:
    """Return how many different codes below `size` occur."""
    present = np.zeros(size, dtype=bool)
    present[codes] = True
    return int(present.sum())


def check_whole_number(value: Any, name: str, minimum: int = 0) -> int:
    """Return the value as an int; an error if it is not a whole number of at least `minimum`."""
    if not is_whole(value, minimum):
        raise SplitError(
            Phrase("{} is not a whole number of at least {}.", Fix(name, value, of="split"), minimum),
            hint=Phrase("Pass {}.", Fix(name, max(minimum, 3), of="split")),
        )
    return int(value)
