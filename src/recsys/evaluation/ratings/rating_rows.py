"""Predicted and actual numbers as rows: from one table, from two joined tables, or from pairs per user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.inputs.containers import as_array, rows_of_container
from recsys.inputs.frames import as_frame, encode_column, find_columns
from recsys.inputs.ids import encode, ids_from_sequence
from recsys.inputs.rows import Rows
from recsys.types import Array, Ids


def read_both(
    predictions: Any, truth: Any, columns: Mapping[str, str] | None, missing: str
) -> tuple[Rows, dict[str, int]]:
    """Rows with both numbers, and how many were left out by the join."""
    if missing not in ("error", "skip"):
        raise InputError(f"missing={missing!r} is neither 'error' nor 'skip'.")
    if truth is not None:
        return _join_tables(predictions, truth, columns, missing)
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
    """Predicted and actual numbers, one row each: `score` and `grade` of the returned rows.

    `held`: which of the two the table holds; with both, it needs no item column.
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
    cases, case = encode_column(frame, found.get("case", found.get("user", "")), table)
    items, item = Ids(np.arange(len(frame)), is_range=True), np.arange(len(frame), dtype=np.int32)
    if "item" in found:
        items, item = encode_column(frame, found["item"], table)
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


def rows_of_pairs(pairs_by_user: Mapping[Any, Any]) -> Rows:
    """{user: [(predicted, actual), …]}, or n x 2 arrays, as rows in the same order."""
    users = list(pairs_by_user)
    if not users:
        raise InputError("there are no predictions.", table="predictions", hint="Pass {user: [(p, r), …]}.")
    parts = []
    for user in users:
        try:
            part = _pairs_array(pairs_by_user[user])
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
        ids_from_sequence(users, table="predictions", column="user"), table="predictions", column="user"
    )
    sizes = [len(part) for part in parts]
    pairs = np.concatenate(parts)
    item = np.arange(len(pairs), dtype=np.int32)
    items = Ids(np.arange(len(pairs)), is_range=True)
    return Rows(
        "predictions", ids, np.repeat(codes, sizes), items, item, score=pairs[:, 0], grade=pairs[:, 1]
    )


def _pairs_array(values: Any) -> Array:
    """One user's pairs as an array: from an array, a table, a tensor, or an iterable of pairs."""
    if hasattr(values, "__array__"):
        return as_array(values).astype(np.float64)
    pairs = list(values)
    try:
        return np.asarray(pairs, dtype=np.float64)
    except (RuntimeError, TypeError):  # numbers in tensors that NumPy cannot convert
        return np.array([[float(as_array(number)) for number in pair] for pair in pairs])


def _join_tables(
    predictions: Any, truth: Any, columns: Mapping[str, str] | None, missing: str
) -> tuple[Rows, dict[str, int]]:
    """Ratings with the prediction of their (user, item); pairs are unique on both sides."""
    predicted = read_predictions(predictions, held=("prediction",), columns=columns)
    actual = read_predictions(truth, held=("actual",), columns=columns, table="truth")
    cases, _, _ = actual.cases.union(predicted.cases, what="user")
    items, _, _ = actual.items.union(predicted.items, what="item")
    predicted_pairs, order = _sorted_pairs(predicted, cases, items)
    actual_pairs, at = _sorted_pairs(actual, cases, items)
    place = np.minimum(np.searchsorted(predicted_pairs, actual_pairs), len(predicted_pairs) - 1)
    found = predicted_pairs[place] == actual_pairs
    n_missing = int((~found).sum())
    if n_missing and (missing == "error" or not found.any()):
        row = int(at[np.argmin(found)])
        raise InputError(
            f"{n_missing} of {len(actual_pairs)} ratings have no prediction, {actual.name(row)} for one.",
            table="predictions",
            hint="Predict every rating, or pass missing='skip' to leave them out.",
        )
    counts = {"without_prediction": n_missing, "without_rating": len(predicted_pairs) - int(found.sum())}
    rows = at[found]
    scores = np.ones(len(predicted)) if predicted.score is None else predicted.score
    return Rows(
        "predictions", actual.cases, actual.case[rows], actual.items, actual.item[rows],
        score=scores[order[place[found]]], grade=None if actual.grade is None else actual.grade[rows],
    ), counts  # fmt: skip


def _sorted_pairs(rows: Rows, cases: Ids, items: Ids) -> tuple[Array, Array]:
    """(user, item) as one ascending number, and the row of each; a repeated pair is an error."""
    case = cases.code_of(rows.cases.values)[rows.case]
    key = case * max(len(items), 1) + items.code_of(rows.items.values)[rows.item]
    order = np.argsort(key, kind="stable")
    key = key[order]
    repeated = np.flatnonzero(key[1:] == key[:-1])
    if len(repeated):
        raise InputError(
            f"{rows.name(int(order[repeated[0] + 1]))} repeats a pair of user and item, so the two tables "
            "cannot be joined.",
            table=rows.table,
            hint="Put prediction and rating into one table, one row per pair.",
        )
    return key, order
