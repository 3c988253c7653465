"""Reading the inputs of an audit: each table once, as rows, before repeats are merged, over shared ids.

Problems met while reading (float ids, unreadable times) become findings.
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
from recsys.evaluation.intake import load_ranking
from recsys.inputs.files import read_file
from recsys.inputs.frames import as_frame, detect_columns, encode_column
from recsys.inputs.ids import encode, ids_to_array
from recsys.inputs.timestamps import read_times
from recsys.ranks.sources import Source
from recsys.splits.split_table import FrameTable, as_interaction_table
from recsys.types import Float, Ids, Interactions, Lists

_POPULARITY_COLUMNS = ("popularity", "nratings", "nusers", "numratings", "ratingcount")


def read_table(data: Any, name: str, columns: Mapping[str, Any] | None) -> tuple[RawTable, list[Finding]]:
    """One table, and the findings of reading it."""
    if isinstance(data, str | Path):
        data = read_file(data, "truth", columns=columns)
    table = as_interaction_table(data, columns)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FloatIdWarning)
        users, user = table.ids("user")
        items, item = table.ids("item")
    findings = [
        _float_ids_finding(str(w.message), name) for w in caught if issubclass(w.category, FloatIdWarning)
    ]
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
        clock = None if time is None else table.clock(time, None, read_times)
    except RecsysError as error:
        findings.append(_unreadable_times_finding(str(error), name))
    grade = table.values("grade")
    grades = None if grade is None else np.asarray(grade.to_numpy() if hasattr(grade, "to_numpy") else grade)
    if grades is not None and grades.dtype.kind not in "iufb":
        grades = None
    repeated = int(data.notes.get("repeated_rows", 0)) if isinstance(data, Interactions) else 0
    return RawTable(users, items, user, item, clock, grades, repeated), findings


def _float_ids_finding(message: str, name: str) -> Finding:
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


def _unreadable_times_finding(message: str, name: str) -> Finding:
    return Finding(
        "times_cannot_be_read",
        "error",
        f"the times of {name} cannot be put in order: {message}",
        1,
        (),
        "Write all times the same way; until then nothing about time can be checked.",
    )


def read_catalogue(items: Any, columns: Mapping[str, Any] | None) -> tuple[Ids | None, Float | None]:
    """The ids of the catalogue, and its popularity column if it has one."""
    if items is None:
        return None, None
    frame = as_frame(items)
    if frame is None:
        values = ids_to_array(items, table="items", column="item")
        return encode(values, table="items", column="item")[0], None
    names = list(frame.columns)
    overrides = {role: name for role, name in (columns or {}).items() if role == "item" and name in names}
    roles = detect_columns(names, ("item",), overrides, "items")
    ids, codes = encode_column(frame, roles.get("item", names[0]), "items")
    by_plain_name = {n.lower().replace("_", ""): n for n in names}
    for plain_name in _POPULARITY_COLUMNS:
        if plain_name in by_plain_name:
            popularity = np.zeros(len(ids))
            column = frame[by_plain_name[plain_name]]
            popularity[codes] = np.asarray(column.to_numpy(), dtype=np.float64)
            return ids, popularity
    return ids, None


def read_lists_or_source(lists: Any) -> Lists | Source | None:
    """Lists, or a source that ranks the catalogue; None stays None."""
    return None if lists is None else load_ranking(lists)


def shared_ids(parts: Iterable[Ids]) -> Ids:
    """The union of the ids of some tables, all of one kind."""
    union: Ids | None = None
    for part in parts:
        union = part if union is None else union.union(part, what="id")[0]
    return union if union is not None else Ids(np.zeros(0, dtype=np.int64))


def to_split_side(raw: RawTable, users: Ids, items: Ids, clock_unit: int | None) -> SplitSide:
    """A table as codes of the shared ids, its times in the common unit."""
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
