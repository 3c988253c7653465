"""Predicted and actual numbers as rows: from one table, from two that are joined, or from pairs a user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.inputs.containers import rows_of_container
from recsys.inputs.frames import as_frame, coded_column, find_columns
from recsys.inputs.ids import encode, of_sequence
from recsys.inputs.rows import Rows
from recsys.ranks.sources.foreign_arrays import as_array
from recsys.types import Array, Ids


def read_both(
    predictions: Any, truth: Any, columns: Mapping[str, str] | None, missing: str
) -> tuple[Rows, dict[str, int]]:
    """Rows with both numbers, and what was left out while joining."""
    if missing not in ("error", "skip"):
        raise InputError(f"missing={missing!r} is neither 'error' nor 'skip'.")
    if truth is not None:
        return _joined(predictions, truth, columns, missing)
    if isinstance(predictions, Mapping) and not hasattr(predictions, "columns"):
        return rows_of_pairs(predictions), {}
    return read_predictions(predictions, columns=columns), {}


def read_predictions(
    data: Any,
    *,
    held: tuple[str, ...] = ("prediction", "actual"),
    columns: Mapping[str, str] | None = None,
    table: str = "predictions",
) -> Rows:
    """Predicted and actual numbers, a row each: `score` and `grade` of the rows that come back.

    `held`: which of the two the table has; with both, an item column need not be there.
    """
    frame = as_frame(data)
    if frame is None:
        return rows_of_container(data, ordered="prediction" in held, table=table)
    if len(frame) == 0:
        raise InputError(f"the {table} table has no rows.", table=table, hint="Check what it came from.")
    ids = ("user",) if len(held) == 2 else ("user", "item")
    roles = ("case", "user", "item", *held)
    known = {role: name for role, name in (columns or {}).items() if role in roles}
    found = find_columns(list(frame.columns), roles, known, table, needed=(*ids, *held))
    cases, case = coded_column(frame, found.get("case", found.get("user", "")), table)
    items, item = Ids(np.arange(len(frame)), is_range=True), np.arange(len(frame), dtype=np.int32)
    if "item" in found:
        items, item = coded_column(frame, found["item"], table)
    values = {role: np.asarray(frame[found[role]].to_numpy()) for role in held}
    notes = {"read": {f"{role}_column": name for role, name in found.items()}}
    return Rows(
        table,
        cases,
        case,
        items,
        item,
        score=values.get("prediction"),
        grade=values.get("actual"),
        notes=notes,
    )


def rows_of_pairs(given: Mapping[Any, Any]) -> Rows:
    """{user: [(predicted, actual), …]}, or n x 2 arrays, as rows in the order given."""
    users = list(given)
    if not users:
        raise InputError("there are no predictions.", table="predictions", hint="Pass {user: [(p, r), …]}.")
    parts = []
    for user in users:
        try:
            part = _pairs_of(given[user])
        except (TypeError, ValueError) as error:
            raise InputError(
                f"user {user!r} holds something that is no pair of numbers ({error}).",
                table="predictions",
                row=user,
                hint="Write [(predicted, actual), …].",
            ) from error
        if part.size and (part.ndim != 2 or part.shape[1] != 2):
            raise InputError(
                f"user {user!r} holds an array of shape {part.shape}.",
                table="predictions",
                row=user,
                hint="Write [(predicted, actual), …].",
            )
        parts.append(part.reshape(-1, 2))
    ids, codes = encode(
        of_sequence(users, table="predictions", column="user"), table="predictions", column="user"
    )
    sizes = [len(part) for part in parts]
    both = np.concatenate(parts)
    item = np.arange(len(both), dtype=np.int32)
    items = Ids(np.arange(len(both)), is_range=True)
    return Rows("predictions", ids, np.repeat(codes, sizes), items, item, score=both[:, 0], grade=both[:, 1])


def _pairs_of(held: Any) -> Array:
    """One user's pairs as an array: of an array, a table, a tensor, or anything that gives pairs."""
    if hasattr(held, "__array__"):
        return as_array(held).astype(np.float64)
    pairs = list(held)
    try:
        return np.asarray(pairs, dtype=np.float64)
    except (RuntimeError, TypeError):  # numbers in tensors that NumPy does not take as they are
        return np.array([[float(as_array(number)) for number in pair] for pair in pairs])


def _joined(
    predictions: Any, truth: Any, columns: Mapping[str, str] | None, missing: str
) -> tuple[Rows, dict[str, int]]:
    """Ratings with the prediction of their (user, item); pairs are unique on both sides."""
    said = read_predictions(predictions, held=("prediction",), columns=columns)
    seen = read_predictions(truth, held=("actual",), columns=columns, table="truth")
    cases, _, _ = seen.cases.union(said.cases, what="user")
    items, _, _ = seen.items.union(said.items, what="item")
    have, order = _pairs(said, cases, items)
    want, at = _pairs(seen, cases, items)
    place = np.minimum(np.searchsorted(have, want), len(have) - 1)
    found = have[place] == want
    lost = int((~found).sum())
    if lost and (missing == "error" or not found.any()):
        row = int(at[np.argmin(found)])
        raise InputError(
            f"{lost} of {len(want)} ratings have no prediction, {seen.name(row)} for one.",
            table="predictions",
            hint="Predict every rating, or pass missing='skip' to leave them out.",
        )
    counts = {"without_prediction": lost, "without_rating": len(have) - int(found.sum())}
    rows = at[found]
    scores = np.ones(len(said)) if said.score is None else said.score
    return Rows(
        "predictions", seen.cases, seen.case[rows], seen.items, seen.item[rows],
        score=scores[order[place[found]]], grade=None if seen.grade is None else seen.grade[rows],
    ), counts  # fmt: skip


def _pairs(rows: Rows, cases: Ids, items: Ids) -> tuple[Array, Array]:
    """(user, item) as one ascending number, and the row it stands in; a repeated pair is an error."""
    case = cases.code_of(rows.cases.values)[rows.case]
    key = case * max(len(items), 1) + items.code_of(rows.items.values)[rows.item]
    order = np.argsort(key, kind="stable")
    key = key[order]
    again = np.flatnonzero(key[1:] == key[:-1])
    if len(again):
        raise InputError(
            f"{rows.name(int(order[again[0] + 1]))} repeats a pair of user and item, so the two "
            "tables cannot "
            "be joined.",
            table=rows.table,
            hint="Put prediction and rating into one table, a row each.",
        )
    return key, order
