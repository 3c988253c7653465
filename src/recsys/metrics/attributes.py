"""Readers of what is known about items and users: tables, vectors, popularity, other lists, intents.

Users pass them in many forms; the readers return `Table`, `Vectors` and `Lists` keyed by id. Text stays text
and numbers stay numbers; a cell with several labels becomes text with | between them, so that results can be
saved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from recsys.errors import ColumnError, InputError, RecsysWarning, warn
from recsys.inputs import read_interactions, read_lists
from recsys.inputs.ids import encode, ids_from_sequence, ids_to_array
from recsys.metrics.item_facts import parse_labels
from recsys.types import Array, Context, Ids, Interactions, Lists, Table, Vectors

_FORMS = {
    "items": "a table with an item column, {column: {item: value}} or {item: value}",
    "users": "a table with a user column, {column: {user: value}} or {user: value}",
}


def read_table(data: Any, *, table: str) -> Table:
    """A table with one row per id.

    Args:
        data: a frame with an id column, {column: {id: value}} or {id: value}.
        table: "items" or "users".

    Raises:
        ColumnError: not exactly one column holds the ids.
        InputError: `data` has another form, is empty, or has several rows for one id.

    >>> read_table({1: "a", 2: ["b", "c"]}, table="items").columns
    {'value': array(['a', 'b|c'], dtype=object)}
    """
    if isinstance(data, Table):
        return data
    if isinstance(data, Mapping):
        return _table_from_mapping(data, table)
    frame = _as_frame(data)
    if frame is None:
        raise InputError(
            f"{table} came as {type(data).__name__}.", table=table, hint=f"Expected {_FORMS[table]}."
        )
    from recsys.inputs.frames import ROLES

    role = table[:-1]
    names = [n for n in frame.columns if str(n).replace("_", "").lower() in ROLES[role]]
    if len(names) != 1:
        raise ColumnError(
            f"{'no column was' if not names else 'several columns were'} recognised as the {role}.",
            table=table,
            hint=f"Call one column {role!r}; the columns are {', '.join(map(str, frame.columns))}.",
        )
    columns = {n: frame[n].to_numpy() for n in frame.columns if n != names[0]}
    return _make_table(frame[names[0]].to_numpy(), columns, table)


def _table_from_mapping(data: Mapping[Any, Any], table: str) -> Table:
    if not data:
        raise InputError(f"{table} is empty.", table=table, hint=f"Expected {_FORMS[table]}.")
    nested = {str(n): c for n, c in data.items() if isinstance(c, Mapping)}
    if len(nested) < len(data):
        nested = {"value": data}
    keys = list(dict.fromkeys(key for column in nested.values() for key in column))
    columns = {name: _column_from_cells([column.get(key) for key in keys]) for name, column in nested.items()}
    return _make_table(ids_from_sequence(keys, table=table, column=table[:-1]), columns, table)


def _make_table(values: Array, columns: Mapping[str, Array], table: str) -> Table:
    ids, codes = encode(values, table=table, column=table[:-1])
    if len(ids) != len(values):
        first = ids.name(np.argmax(np.bincount(codes) > 1))
        raise InputError(
            f"{table} has several rows for {first!r}.", table=table, hint="Give each id one row."
        )
    order = np.argsort(codes)
    return Table(ids, {str(n): _join_labels(np.asarray(c)[order]) for n, c in columns.items()})


def _join_labels(values: Array) -> Array:
    """Numbers and dates as they are; other cells as text, several labels with | between them."""
    if values.dtype.kind in "fiubmM":
        return values
    cells, out = values.tolist(), np.empty(len(values), dtype=object)
    if set(map(type, cells)) <= {str}:
        # Text repeats from row to row: each different text is parsed once.
        text_by_cell = {cell: "|".join(parse_labels(cell)) for cell in set(cells)}
        out[:] = [text_by_cell[cell] for cell in cells]
    else:
        out[:] = ["|".join(parse_labels(cell)) for cell in cells]
    return out


def _column_from_cells(cells: list[Any]) -> Array:
    """Numbers as float64, None as NaN; anything else as objects."""
    if all(isinstance(c, int | float | np.number) or c is None for c in cells):
        return np.array([np.nan if c is None else c for c in cells], dtype=np.float64)
    out = np.empty(len(cells), dtype=object)
    out[:] = cells
    return out


def _as_frame(data: Any) -> Any:
    """The data as a narwhals frame, a named index as a column; None if it is no frame."""
    import narwhals.stable.v2 as nw

    if hasattr(data, "reset_index") and hasattr(data, "index") and data.index.name is not None:
        data = data.reset_index()
    frame = nw.from_native(data, pass_through=True, eager_only=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def read_popularity(data: Any) -> Table:
    """How many users had each item, as a table with the column "popularity".

    Args:
        data: {item: users}, a Series, or an array by item number.

    Raises:
        InputError: not one count of at least 0 per item.
    """
    if isinstance(data, Table):
        return data
    if isinstance(data, Mapping) or hasattr(data, "to_dict"):
        pairs = dict(data) if isinstance(data, Mapping) else data.to_dict()
        values = ids_from_sequence(list(pairs), table="popularity", column="item")
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
    return _make_table(values, {"popularity": counts}, "items")


def read_vectors(data: Any, *, table: str) -> Vectors:
    """Vectors by id.

    Args:
        data: {id: vector}, (ids, matrix), a frame indexed by id, or a matrix whose row number is the id.
        table: "embeddings" (of items) or "profiles" (of users).

    Raises:
        InputError: vectors differ in length, hold no numbers, or do not match the ids one to one.
    """
    if isinstance(data, Vectors):
        return data
    if isinstance(data, Mapping):
        raw_ids: Any = list(data)
        matrix = _as_matrix([np.asarray(v) for v in data.values()], table)
    elif isinstance(data, tuple) and len(data) == 2:
        raw_ids, matrix = list(data[0]), _as_matrix(data[1], table)
    elif hasattr(data, "iloc"):
        raw_ids, matrix = list(data.index), _as_matrix(data.to_numpy(), table)
    else:
        matrix = _as_matrix(data, table)
        return Vectors(Ids(np.arange(len(matrix)), is_range=True), np.arange(len(matrix)), matrix)
    role = "user" if table == "profiles" else "item"
    ids, codes = encode(ids_from_sequence(raw_ids, table=table, column=role), table=table, column=role)
    if len(ids) != len(matrix) or len(codes) != len(matrix):
        raise InputError(
            f"{table} holds {len(codes)} ids ({len(ids)} different) for {len(matrix)} vectors.",
            table=table,
            hint="Give each vector one id of its own.",
        )
    rows = np.empty(len(ids), dtype=np.int64)
    rows[codes] = np.arange(len(codes))
    return Vectors(ids, rows, matrix)


def _as_matrix(data: Any, table: str) -> Array:
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
    """Reference lists: like `lists`, or one plain list of items that everybody would get.

    The one list for everybody comes back as `Lists` without cases.
    """
    is_one_list = (
        isinstance(data, list | tuple | np.ndarray)
        and len(data) > 0
        and getattr(data, "ndim", 1) == 1
        and not isinstance(data[0], list | tuple | set | np.ndarray)
    )
    if not is_one_list:
        return read_lists(data, table="reference")
    one_list = read_lists({0: list(data)}, table="reference")
    return Lists(Ids(np.zeros(0, dtype=np.int64)), one_list.items, one_list.indptr, one_list.codes)


def read_intents(data: Any) -> Table | str:
    """The name of a column of items=, or a table of {user: {item: [intents]}}.

    Raises:
        InputError: `data` is neither.
    """
    if isinstance(data, str):
        return data
    if not isinstance(data, Mapping) or not all(isinstance(v, Mapping) for v in data.values()):
        raise InputError(
            f"intents came as {type(data).__name__}.",
            table="intents",
            hint="Pass the name of a column of items=, or {user: {item: [intents]}}.",
        )
    pairs = [(u, i, "|".join(parse_labels(cell))) for u, row in data.items() for i, cell in row.items()]
    users = ids_from_sequence([p[0] for p in pairs], table="intents", column="user")
    items = ids_from_sequence([p[1] for p in pairs], table="intents", column="item")
    labels = np.empty(len(pairs), dtype=object)
    labels[:] = [p[2] for p in pairs]
    (user_ids, user), (item_ids, item) = (
        encode(values, table="intents", column=what) for values, what in ((users, "user"), (items, "item"))
    )
    return Table(user_ids, {"user": user, "item": item, "items": item_ids.values, "labels": labels})


def read_context(
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
    """Everything metrics may need besides lists and truth, read into our own types."""
    never_ids = None
    if never is not None:
        never_ids, _ = encode(ids_to_array(never, table="never", column="item"), table="never", column="item")
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
        never=never_ids,
    )
