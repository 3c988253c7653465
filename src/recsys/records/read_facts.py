"""What a reader noticed of lists or of a table, as a record that others read by its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

_AS_NOTES = {"n_rows": "numbered", "n_columns": "columns", "n_files": "files"}
_OF_COLUMNS = {"columns", "unused", "arrangement", "users_with_gaps"}


class Facts:
    """A record of facts, None where one does not apply, whose counts add up over parts of the data."""

    def joined(self, other: Self) -> Self:
        """Return those of both parts; what is not a count is of the first that has it."""
        facts: dict[str, Any] = {}
        for name, mine in vars(self).items():
            theirs = getattr(other, name)
            if isinstance(mine, Facts) and theirs is not None:
                facts[name] = mine.joined(theirs)
            elif isinstance(mine, int) and theirs is not None and name != "n_columns":
                facts[name] = mine + theirs
            else:
                facts[name] = theirs if mine is None else mine
        return type(self)(**facts)


@dataclass(frozen=True, kw_only=True)
class ReadFacts(Facts):
    """What was noticed while lists or a table were read; None where it does not apply.

    Attributes:
        columns: {role: column} of a table or file; None of a container.
        unused: its columns without a role.
        arrangement: of lists that only the order of their rows ranks: "grouped" if the rows of each user are
            together, else "interleaved".
        users_with_gaps: users whose ranks leave places out.
        comments: comment lines of a text file.
        padded_user_ids, padded_item_ids, padded_case_ids: ids of a text file with blanks around them.
        repeated_rows: rows that were merged with others of the same user and item.
        conflicting_grades: pairs of user and item among them whose grades differ.
        negative_grades: grades below 0 that were kept.
        n_rows: rows of a container without ids, which are numbered from 0.
        n_columns: columns of a matrix, which are numbered likewise.
        file: what it was read from.
        format: the format of that file.
        n_files: how many files it was, if several.
        fused: the method, the normalisation and the number of runs that lists were fused from.
        entries: of lists whose entries stand for items: how many there are; without an item, of several
            items, repeated in their list, and used up: all their items are above or may not be listed. The
            last two are known where some entry stands for several items, or items may not be listed.
        unknown_entries, shared_entries: some entries without an item, and some that stand for several.
    """

    columns: Mapping[str, str] | None = None
    unused: tuple[str, ...] | None = None
    arrangement: str | None = None
    users_with_gaps: int | None = None
    comments: int | None = None
    padded_user_ids: int | None = None
    padded_item_ids: int | None = None
    padded_case_ids: int | None = None
    repeated_rows: int | None = None
    conflicting_grades: int | None = None
    negative_grades: int | None = None
    n_rows: int | None = None
    n_columns: int | None = None
    file: str | None = None
    format: str | None = None
    n_files: int | None = None
    fused: Mapping[str, Any] | None = None
    entries: int | None = None
    entries_without_item: int | None = None
    entries_of_several: int | None = None
    entries_repeated: int | None = None
    entries_used_up: int | None = None
    unknown_entries: tuple[Any, ...] | None = None
    shared_entries: tuple[Any, ...] | None = None

    @property
    def order(self) -> str | None:
        """What ordered lists that have both ranks and scores."""
        names = self.columns or {}
        if not {"rank", "score"} <= names.keys():
            return None
        return f"ordered by {names['rank']!r}; {names['score']!r} was not used"

    @property
    def column_names(self) -> list[str]:
        """All columns of the table."""
        return [*(self.columns or {}).values(), *(self.unused or ())]

    def to_notes(self) -> dict[str, Any]:
        """Return the facts by the names that `result.notes` and result files have for them."""
        if self is NOTHING_READ:
            return {}
        read: dict[str, Any] = {f"{role}_column": name for role, name in (self.columns or {}).items()}
        rest = {
            "unused": self.unused,
            "order": self.order,
            "rows": self.arrangement,
            "users_with_gaps": self.users_with_gaps,
        }
        read |= {name: fact for name, fact in rest.items() if fact is not None}
        flat = {_AS_NOTES.get(n, n): fact for n, fact in vars(self).items() if n not in _OF_COLUMNS}
        return ({"read": read} if read else {}) | {n: fact for n, fact in flat.items() if fact is not None}

    @classmethod
    def of_notes(cls, notes: Mapping[str, Any]) -> ReadFacts:
        """Return the facts that `to_notes` wrote."""
        read = dict(notes.get("read", {}))
        columns = {n.removesuffix("_column"): name for n, name in read.items() if n.endswith("_column")}
        names = {f.name: _AS_NOTES.get(f.name, f.name) for f in fields(cls) if f.name not in _OF_COLUMNS}
        return cls(
            columns=columns or None,
            unused=tuple(read["unused"]) if "unused" in read else None,
            arrangement=read.get("rows"),
            users_with_gaps=read.get("users_with_gaps"),
            **{name: notes.get(key) for name, key in names.items()},
        )


NOTHING_READ = ReadFacts()
