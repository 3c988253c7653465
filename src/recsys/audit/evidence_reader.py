"""Reading what is audited: each table once, as rows, before repeats are merged, over ids that all share.

Reading itself can find something (float ids, times that cannot be read), which is kept as findings.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from recsys.audit.evidence import RawTable, SplitSide
from recsys.audit.findings import Finding
from recsys.errors import FloatIdWarning, RecsysError, RecsysWarning
from recsys.evaluation.intake import ranked_of
from recsys.inputs.files import read_file
from recsys.inputs.frames import as_frame, coded_column, known_columns
from recsys.inputs.ids import encode, of_any
from recsys.inputs.timestamps import clock_of
from recsys.ranks.sources import Source
from recsys.splits.split_table import FrameTable, table_of
from recsys.types import Float, Ids, Interactions, Lists


def read_side(data: Any, name: str, columns: Mapping[str, Any] | None) -> tuple[RawTable, list[Finding]]:
    """One table, and what reading it found."""
    if isinstance(data, str | Path):
        data = read_file(data, "truth", columns=columns)
    table = table_of(data, columns)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FloatIdWarning)
        users, user = table.ids("user")
        items, item = table.ids("item")
    found = [_float_ids(str(w.message), name) for w in caught if issubclass(w.category, FloatIdWarning)]
    for other in caught:
        if not issubclass(other.category, RecsysWarning):
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    # {user: [items]} has an order, but no time that could be compared across users.
    time = (
        table.role("time")
        if isinstance(table, FrameTable) or table.kind in ("array", "Interactions")
        else None
    )
    clock = None
    try:
        clock = None if time is None else table.clock(time, None, clock_of)
    except RecsysError as error:
        found.append(_unreadable_times(str(error), name))
    grade = table.values("grade")
    grades = None if grade is None else np.asarray(grade.to_numpy() if hasattr(grade, "to_numpy") else grade)
    if grades is not None and grades.dtype.kind not in "iufb":
        grades = None
    repeated = int(data.notes.get("repeated_rows", 0)) if isinstance(data, Interactions) else 0
    return RawTable(users, items, user, item, clock, grades, repeated), found


def _float_ids(message: str, name: str) -> Finding:
    column = "user" if "user" in message else "item"
    return Finding(
        "float_ids",
        "warning",
        f"the ids of {name} came as floats ({message.split(': ', 1)[-1]})",
        1,
        (column,),
        "A missing value once turned them into floats, or a join did: find it, and keep ids whole numbers or "
        "text.",
    )


def _unreadable_times(message: str, name: str) -> Finding:
    return Finding(
        "times_cannot_be_read",
        "error",
        f"the times of {name} cannot be put in order: {message}",
        1,
        (),
        "Write all times the same way; until then nothing about time can be checked.",
    )


def items_of(items: Any, columns: Mapping[str, Any] | None) -> tuple[Ids | None, Float | None]:
    """The catalogue, and a popularity column beside it, where given."""
    if items is None:
        return None, None
    frame = as_frame(items)
    if frame is None:
        values = of_any(items, table="items", column="item")
        return encode(values, table="items", column="item")[0], None
    names = list(frame.columns)
    named = {role: name for role, name in (columns or {}).items() if role == "item" and name in names}
    roles = known_columns(names, ("item",), named, "items")
    ids, codes = coded_column(frame, roles.get("item", names[0]), "items")
    bare = {n.lower().replace("_", ""): n for n in names}
    counted = next(
        (bare[n] for n in ("popularity", "nratings", "nusers", "numratings", "ratingcount") if n in bare),
        None,
    )
    numbers = None
    if counted is not None:
        numbers = np.zeros(len(ids))
        numbers[codes] = np.asarray(frame[counted].to_numpy(), dtype=np.float64)
    return ids, numbers


def lists_of(lists: Any) -> Lists | Source | None:
    """Lists or a source, or nothing."""
    return None if lists is None else ranked_of(lists)


def shared_ids(parts: Iterable[Ids]) -> Ids:
    """All ids of some tables, of one kind."""
    made: Ids | None = None
    for part in parts:
        made = part if made is None else made.union(part, what="id")[0]
    return made if made is not None else Ids(np.zeros(0, dtype=np.int64))


def side_of(raw: RawTable, users: Ids, items: Ids, clock_unit: int | None) -> SplitSide:
    """A table over the shared ids."""
    user = users.code_of(raw.users.values)[raw.user]
    item = items.code_of(raw.items.values)[raw.item]
    time = None
    if raw.clock is not None and not raw.clock.missing.any():
        scale = 1 if clock_unit is None or raw.clock.tick is None else raw.clock.tick // clock_unit
        time = raw.clock.values * scale
    grade = raw.grade
    if grade is not None:
        grade = grade.astype(np.float64)
        grade = grade if np.isfinite(grade).all() else None
    return SplitSide(user, item, time, grade, raw.repeated)
