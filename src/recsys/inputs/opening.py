"""Lists and interactions from whatever holds them: a path, a table or a container.

Files are read with the ids that were asked for; of data in memory they stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from recsys.errors import IdTypeError, InputError, Phrase
from recsys.inputs.containers import as_array, read_interactions, read_lists
from recsys.inputs.ids import IdKind
from recsys.records.arrays import Interactions, Lists

_Data = TypeVar("_Data", Lists, Interactions)
_PAIRS_ONLY = ("seen", "eligible")  # only (user, item) pairs are read of these, which is much faster


def open_lists(
    data: Any,
    table: str = "lists",
    columns: Mapping[str, Any] | None = None,
    *,
    ids: IdKind | None = None,
    allow_empty: bool = False,
) -> Lists:
    """Return ready lists; `table` is the name in errors and in `columns`."""
    if isinstance(data, str | Path):
        from recsys.inputs.files import read_file

        return read_file(data, "lists", columns=columns_for(table, columns), ids=ids or "str")
    if hasattr(data, "detach") or (isinstance(data, np.ndarray) and data.dtype.kind == "f"):
        values = as_array(data)
        if values.dtype.kind == "f" and (np.isfinite(values) & (values != np.floor(values))).any():
            raise InputError(
                f"lists came as {type(data).__name__} of shape {values.shape} that holds fractions; "
                "items are whole numbers or text.",
                table="lists",
                hint="Did you mean recsys.Scores(matrix)? It ranks all items by their scores.",
            )
    lists = read_lists(data, columns=columns_for(table, columns), table=table, allow_empty=allow_empty)
    return check_id_kind(lists, table, ids)


def open_interactions(
    data: Any,
    table: str,
    columns: Mapping[str, Any] | None = None,
    *,
    ids: IdKind | None = None,
    allow_empty: bool = False,
) -> Interactions:
    """Return the items each user had; `table` is the name in errors and in `columns`."""
    if isinstance(data, str | Path):
        from recsys.inputs.files import read_file

        data = read_file(data, "truth", columns=columns_for(table, columns), ids=ids or "str")
    interactions = read_interactions(
        data,
        table=table,
        columns=columns_for(table, columns),
        pairs_only=table in _PAIRS_ONLY,
        allow_empty=allow_empty,
        negatives=table == "truth",
    )
    return check_id_kind(interactions, table, ids)


def open_history(
    data: Any, table: str, columns: Mapping[str, Any] | None = None, ids: IdKind | None = None
) -> Interactions | None:
    """Read a history, or return None without one; `seen={}` is a history in which no user had anything."""
    is_empty = table == "seen" and isinstance(data, Mapping) and not data
    return None if data is None else open_interactions(data, table, columns, ids=ids, allow_empty=is_empty)


def columns_for(table: str, columns: Any) -> Any:
    """Return the column names of one table, if each table has its own."""
    per_table = isinstance(columns, Mapping) and any(isinstance(v, Mapping) for v in columns.values())
    return columns.get(table) if per_table else columns


def check_id_kind(data: _Data, table: str, ids: IdKind | None) -> _Data:
    """Raise an error if data in memory has ids of another type than asked for: only files are converted."""
    if ids in (None, "auto"):
        return data
    for what, own in (("user", data.cases), ("item", data.items)):
        if len(own) and own.kind != ids:
            raise IdTypeError(
                Phrase("{ids=} is for files, and the ", ids=ids)
                + f"{what} ids of data in memory are {own.kind}.",
                table=table,
                column=what,
                hint=Phrase("Convert them, for example with .astype({}), or leave out {ids=}.", ids),
            )
    return data
