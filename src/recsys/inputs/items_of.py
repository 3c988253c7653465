"""What the entries of generated or retrieved lists stand for: a code for items, a chunk for its document.

A mapping goes from the entry to its item or items; a table has a row for each pair of entry and item. Codes
may be tuples (or lists) of parts, all of one length: a shorter tuple then stands for every code it begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import ColumnError, InputError, came_as
from recsys.inputs.containers import as_array
from recsys.inputs.frames import as_frame, column_array, find_columns, table_without_rows
from recsys.inputs.ids import IdKind, encode, ids_from_sequence, object_array
from recsys.records.arrays import Array, Codes, Ids, Int, positions

TABLE = "items_of"
_EXPECTED = (
    "Pass {entry: item}, {code: [items]}, a table with a column of entries and one of items, or titles(...)."
)


class Meaning(NamedTuple):
    """The items of some entries: CSR by entry, in the order of the table; an entry without any is unknown."""

    items: Ids
    indptr: Int
    codes: Codes

    @property
    def sizes(self) -> Int:
        return np.diff(self.indptr)


@dataclass(frozen=True, eq=False)
class ItemsOf:
    """The items that each entry stands for, in the order of the table."""

    entries: Ids
    meaning: Meaning
    is_parts: bool = False
    """Whether entries are tuples of parts, which are read as text here."""

    @property
    def items(self) -> Ids:
        """All items that entries stand for."""
        return self.meaning.items

    def look_up(self, entries: Ids) -> Meaning:
        """Return the items of entries of lists; those that are not in the table have none."""
        if entries.is_range and self.entries.kind == "int":  # faster than looking up each of the range
            own = self.entries.values
            inside = np.flatnonzero((own >= 0) & (own < len(entries)))
            row = np.full(len(entries), -1)
            row[own[inside]] = inside
        else:
            row = self.entries.code_of(entries.values)
        known, all_sizes = row >= 0, np.append(self.meaning.sizes, 0)
        starts, sizes = self.meaning.indptr[row * known], all_sizes[row]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        return Meaning(self.meaning.items, indptr, self.meaning.codes[positions(starts, sizes)])

    def as_text(self, lists: Any) -> Any:
        """Return lists in memory with entries that are tuples as the text they have here."""
        if not self.is_parts or not isinstance(lists, Mapping | list | tuple | np.ndarray):
            return lists
        if isinstance(lists, Mapping):
            return {user: _texts(entries) for user, entries in lists.items()}
        return [_texts(entries) for entries in lists]


def read_items_of(data: Any, columns: Mapping[str, str] | None, ids: IdKind | None) -> Any:
    """Return what `items_of=` was given, ready to look entries up.

    Raises:
        InputError: it is empty, an entry has no item, codes are of unequal length, or an item has two.
    """
    if hasattr(data, "look_up"):
        return data
    entries, items = pairs_of(data, columns, ids, TABLE)
    return _of_pairs(entries, items)


def pairs_of(
    data: Any, columns: Mapping[str, str] | None, ids: IdKind | None, table: str, what: str = "entry"
) -> tuple[Array, ...]:
    """Return an entry and an item for each row of a mapping, a table or a file."""
    if isinstance(data, Mapping):
        rows = [(entry, item) for entry, items in data.items() for item in _items_of(entry, items, table)]
        if not rows:
            raise InputError(f"{table} is empty.", table=table, hint=_EXPECTED)
        entries, items = ([row[at] for row in rows] for at in (0, 1))
        return object_array(entries), ids_from_sequence(items, table=table, column="item")
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        from recsys.inputs.files.reader import read_attributes

        own = (columns or {}).get("item")
        data, own = read_attributes(data, "item", column=own, ids=ids or "str", text=True)
        columns = {**(columns or {}), "item": own}
    frame = as_frame(data)
    if frame is None:
        raise came_as(table, data, table=table, hint=_EXPECTED)
    names = list(frame.columns)
    column_of = find_columns(names, ("item", "entry"), columns, table, needed=("item",))
    others = [name for name in names if name != column_of["item"]]
    if "entry" not in column_of and len(others) != 1:
        raise ColumnError(
            f"no column was recognised as the {what}.",
            table=table,
            column=what,
            hint=f"The columns are: {', '.join(names)}. Call that of the entries 'entry'.",
        )
    if len(frame) == 0:
        raise table_without_rows(table)
    return tuple(
        _column(frame[name], table) for name in (column_of.get("entry", others[0]), column_of["item"])
    )


def _column(series: Any, table: str) -> Array:
    """Return the cells of a column; codes may be tuples, which no array has as they are."""
    if series.dtype.is_integer() and not series.is_null().any():
        return column_array(series)
    cells = series.to_list()
    has_parts = any(isinstance(cell, tuple | list | np.ndarray) for cell in cells[:1])
    return object_array(cells) if has_parts else ids_from_sequence(cells, table=table, column=series.name)


def _items_of(entry: Any, items: Any, table: str) -> list[Any]:
    """Return the items of an entry of a mapping: one, or several in an order."""
    if isinstance(items, set | frozenset | Mapping):
        raise InputError(
            f"the items of {entry!r} came as {type(items).__name__}.",
            table=table,
            hint="Write a list of items.",
        )
    items = _plain(items)
    found = list(items) if isinstance(items, list | tuple | range) else [items]
    if not found:
        raise InputError(
            f"{entry!r} stands for no item.",
            table=table,
            hint="Leave such entries out: they are invalid then.",
        )
    return found


def _of_pairs(entries: Array, item_ids: Array) -> ItemsOf:
    """Code pairs of entry and item; tuples get a row for each tuple that they begin with, too."""
    is_parts = isinstance(entries[0], tuple | list | np.ndarray)
    items, item = encode(item_ids, table=TABLE, column="item")
    if is_parts:
        parts = _parts(entries)
        _refuse_two_codes(parts, items, item)
        pairs = [(str(code[:n]), at) for at, code in enumerate(parts) for n in range(1, len(code) + 1)]
        entries, item = object_array([text for text, _ in pairs]), item[[at for _, at in pairs]]
    elif entries.dtype == object:
        entries = ids_from_sequence(entries.tolist(), table=TABLE, column="entry")
    known, row = encode(entries, table=TABLE, column="entry")
    first = np.argsort(row, kind="stable")
    if len(known) < len(row):
        _, at = np.unique(row.astype(np.int64) * len(items) + item, return_index=True)
        first = np.sort(at)[np.argsort(row[np.sort(at)], kind="stable")]  # a pair that is repeated is one
    sizes = np.bincount(row[first], minlength=len(known))
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    return ItemsOf(known, Meaning(items, indptr, item[first]), is_parts)


def _parts(entries: Array) -> list[tuple[Any, ...]]:
    """Return codes as tuples of Python's own values, all of one length."""
    codes = [_tuple_of(code) for code in entries]
    for code in codes:
        if len(code) != len(codes[0]) or not code:
            raise InputError(
                f"the codes {codes[0]!r} and {code!r} have {len(codes[0])} and {len(code)} parts.",
                table=TABLE,
                hint="Write every code with all its parts; a list may hold shorter ones, which are prefixes.",
            )
    return codes


def _tuple_of(code: Any) -> tuple[Any, ...]:
    if not isinstance(code, tuple | list | np.ndarray):
        raise InputError(
            f"the entry {code!r} is not a tuple of parts, as others are.", table=TABLE, hint=_EXPECTED
        )
    return tuple(getattr(part, "item", lambda part=part: part)() for part in code)


def _refuse_two_codes(codes: list[tuple[Any, ...]], items: Ids, item: Codes) -> None:
    """Raise an error if an item has two codes, which only text entries may share."""
    code_of: dict[int, tuple[Any, ...]] = {}
    for code, at in zip(codes, item.tolist(), strict=True):
        if code_of.setdefault(at, code) != code:
            raise InputError(
                f"the item {items.name(at)!r} has two codes, {code_of[at]!r} and {code!r}.",
                table=TABLE,
                hint="Give each item one code.",
            )


def _plain(values: Any) -> Any:
    """Return an array as the lists it holds, and anything else as it is."""
    return as_array(values).tolist() if hasattr(values, "tolist") else values


def _texts(entries: Any) -> Any:
    """Return the entries of one list, {code: score}, [(code, score), …] or [code, …], with text for codes."""
    if isinstance(entries, Mapping):
        return {str(_tuple_of(code)): score for code, score in entries.items()}
    entries = _plain(entries)
    if not isinstance(entries, list | tuple):
        return entries
    return [
        (str(_tuple_of(entry[0])), entry[1])
        if isinstance(entry, tuple | list) and len(entry) == 2 and isinstance(entry[0], tuple | list)
        else str(_tuple_of(entry))
        for entry in entries
    ]
