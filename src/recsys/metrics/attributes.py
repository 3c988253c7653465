"""What is known about items and users besides who had what: tables, vectors, popularity, other lists.

They come in many forms and leave here as `Table`, `Vectors` and `Lists` keyed by id. Text stays text and
numbers stay numbers; a cell with several labels becomes text with | between them, so results can be kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from recsys.errors import ColumnError, InputError, RecsysWarning, warn
from recsys.inputs.frames import ROLES, read_interactions, read_lists
from recsys.inputs.ids import encode, of_any, of_sequence
from recsys.metrics.item_facts import labels_of
from recsys.types import Array, Context, Ids, Interactions, Lists, Table, Vectors

_FORMS = {
    "items": "a table with an item column, {column: {item: value}} or {item: value}",
    "users": "a table with a user column, {column: {user: value}} or {user: value}",
}


def read_table(data: Any, *, table: str) -> Table:
    """One row an id; `table` is "items" or "users".

    >>> read_table({1: "a", 2: ["b", "c"]}, table="items").columns
    {'value': array(['a', 'b|c'], dtype=object)}
    """
    if isinstance(data, Table):
        return data
    if isinstance(data, Mapping):
        return _of_mapping(data, table)
    frame = _frame(data)
    if frame is None:
        raise InputError(
            f"{table} came as {type(data).__name__}.", table=table, hint=f"Expected {_FORMS[table]}."
        )
    role = table[:-1]
    names = [n for n in frame.columns if str(n).replace("_", "").lower() in ROLES[role]]
    if len(names) != 1:
        raise ColumnError(
            f"{'no column was' if not names else 'several columns were'} recognised as the {role}.",
            table=table,
            hint=f"Call one column {role!r}; the columns are {', '.join(map(str, frame.columns))}.",
        )
    columns = {n: frame[n].to_numpy() for n in frame.columns if n != names[0]}
    return _table(frame[names[0]].to_numpy(), columns, table)


def _of_mapping(data: Mapping[Any, Any], table: str) -> Table:
    if not data:
        raise InputError(f"{table} is empty.", table=table, hint=f"Expected {_FORMS[table]}.")
    nested = {str(n): c for n, c in data.items() if isinstance(c, Mapping)}
    if len(nested) < len(data):
        nested = {"value": data}
    keys = list(dict.fromkeys(key for column in nested.values() for key in column))
    columns = {name: _cells([column.get(key) for key in keys]) for name, column in nested.items()}
    return _table(of_sequence(keys, table=table, column=table[:-1]), columns, table)


def _table(values: Array, columns: Mapping[str, Array], table: str) -> Table:
    ids, codes = encode(values, table=table, column=table[:-1])
    if len(ids) != len(values):
        first = ids.name(np.argmax(np.bincount(codes) > 1))
        raise InputError(
            f"{table} has several rows for {first!r}.", table=table, hint="Give each id one row."
        )
    order = np.argsort(codes)
    return Table(ids, {str(n): _as_column(np.asarray(c)[order]) for n, c in columns.items()})


def _as_column(values: Array) -> Array:
    if values.dtype.kind in "fiubmM":
        return values
    cells, out = values.tolist(), np.empty(len(values), dtype=object)
    # Text repeats from row to row: each different one is taken apart once.
    known = {cell: "|".join(labels_of(cell)) for cell in set(cells)} if set(map(type, cells)) <= {str} else {}
    out[:] = [known[cell] if known else "|".join(labels_of(cell)) for cell in cells]
    return out


def _cells(cells: list[Any]) -> Array:
    if all(isinstance(c, int | float | np.number) or c is None for c in cells):
        return np.array([np.nan if c is None else c for c in cells], dtype=np.float64)
    out = np.empty(len(cells), dtype=object)
    out[:] = cells
    return out


def _frame(data: Any) -> Any:
    import narwhals.stable.v2 as nw

    if hasattr(data, "reset_index") and hasattr(data, "index") and data.index.name is not None:
        data = data.reset_index()
    frame = nw.from_native(data, pass_through=True, eager_only=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def read_popularity(data: Any) -> Table:
    """How many users had each item: {item: users}, a Series, or an array by item number."""
    if isinstance(data, Table):
        return data
    if isinstance(data, Mapping) or hasattr(data, "to_dict"):
        pairs = dict(data) if isinstance(data, Mapping) else data.to_dict()
        values = of_sequence(list(pairs), table="popularity", column="item")
        counts = np.array(list(pairs.values()), dtype=np.float64)
    else:
        counts = np.asarray(data, dtype=np.float64)
        values = np.arange(len(counts))
    if counts.ndim != 1 or not (counts >= 0).all():
        raise InputError(
            "popularity must hold one count of at least 0 for each item.",
            table="popularity",
            hint="Pass {item: number of users}.",
        )
    if (counts != np.floor(counts)).any():
        warn(
            RecsysWarning,
            f"popularity holds {counts[counts != np.floor(counts)][0]:g}, which counts no users: "
            "were the counts scaled or put through a logarithm?",
        )
    return _table(values, {"popularity": counts}, "items")


def read_vectors(data: Any, *, table: str) -> Vectors:
    """Vectors by id: {id: vector}, (ids, matrix), a frame indexed by id, or a matrix whose row is the id."""
    if isinstance(data, Vectors):
        return data
    if isinstance(data, Mapping):
        ids_given: Any = list(data)
        matrix = _matrix([np.asarray(v) for v in data.values()], table)
    elif isinstance(data, tuple) and len(data) == 2:
        ids_given, matrix = list(data[0]), _matrix(data[1], table)
    elif hasattr(data, "iloc"):
        ids_given, matrix = list(data.index), _matrix(data.to_numpy(), table)
    else:
        matrix = _matrix(data, table)
        return Vectors(Ids(np.arange(len(matrix)), is_range=True), np.arange(len(matrix)), matrix)
    role = "user" if table == "profiles" else "item"
    ids, codes = encode(of_sequence(ids_given, table=table, column=role), table=table, column=role)
    if len(ids) != len(matrix) or len(codes) != len(matrix):
        raise InputError(
            f"{table} holds {len(codes)} ids ({len(ids)} different) for {len(matrix)} vectors.",
            table=table,
            hint="Give each vector one id of its own.",
        )
    rows = np.empty(len(ids), dtype=np.int64)
    rows[codes] = np.arange(len(codes))
    return Vectors(ids, rows, matrix)


def _matrix(data: Any, table: str) -> Array:
    if hasattr(data, "detach"):
        data = data.detach().cpu().numpy()
    try:
        matrix = data if isinstance(data, np.ndarray) else np.asarray(data)
    except ValueError as error:
        raise InputError(f"the vectors of {table} differ in length.", table=table) from error
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise InputError(
            f"{table} has shape {matrix.shape} and type {matrix.dtype}.",
            table=table,
            hint="Each vector must hold the same number of plain numbers.",
        )
    return matrix


def read_reference(data: Any) -> Lists:
    """Other lists: like `lists`, or one plain list of items that everybody would get."""
    flat = isinstance(data, list | tuple | np.ndarray) and len(data) and not _is_nested(data)
    if not flat:
        return read_lists(data, table="reference")
    made = read_lists({0: list(data)}, table="reference")
    return Lists(Ids(np.zeros(0, dtype=np.int64)), made.items, made.indptr, made.codes)


def _is_nested(data: Any) -> bool:
    return getattr(data, "ndim", 1) > 1 or isinstance(data[0], list | tuple | set | np.ndarray)


def read_intents(data: Any) -> Table | str:
    """A column of items=, or what each user's item is relevant for: {user: {item: [intents]}}."""
    if isinstance(data, str):
        return data
    if not isinstance(data, Mapping) or not all(isinstance(v, Mapping) for v in data.values()):
        raise InputError(
            f"intents came as {type(data).__name__}.",
            table="intents",
            hint="Pass the name of a column of items=, or {user: {item: [intents]}}.",
        )
    pairs = [(u, i, "|".join(labels_of(cell))) for u, row in data.items() for i, cell in row.items()]
    users = of_sequence([p[0] for p in pairs], table="intents", column="user")
    items = of_sequence([p[1] for p in pairs], table="intents", column="item")
    labels = np.empty(len(pairs), dtype=object)
    labels[:] = [p[2] for p in pairs]
    (user_ids, user), (item_ids, item) = (
        encode(values, table="intents", column=what) for values, what in ((users, "user"), (items, "item"))
    )
    return Table(user_ids, {"user": user, "item": item, "items": item_ids.values, "labels": labels})


def context_of(
    *,
    train: Any = None,
    popularity: Any = None,
    items: Any = None,
    users: Any = None,
    embeddings: Any = None,
    profiles: Any = None,
    reference: Any = None,
    intents: Any = None,
    eligible: Interactions | None = None,
    never: Iterable[Any] | None = None,
) -> Context:
    """Everything metrics may need besides lists and truth, read once."""
    return Context(
        train=None if train is None else read_interactions(train, table="train"),
        popularity=None if popularity is None else read_popularity(popularity),
        items=None if items is None else read_table(items, table="items"),
        users=None if users is None else read_table(users, table="users"),
        embeddings=None if embeddings is None else read_vectors(embeddings, table="embeddings"),
        profiles=None if profiles is None else read_vectors(profiles, table="profiles"),
        reference=None if reference is None else read_reference(reference),
        intents=None if intents is None else read_intents(intents),
        eligible=eligible,
        never=None if never is None else _ids(never),
    )


def _ids(values: Iterable[Any]) -> Ids:
    return encode(of_any(values, table="never", column="item"), table="never", column="item")[0]
