"""What is known about items and users: tables, vectors, popularity, other lists, intents.

Users pass them in many forms; the readers return `Table`, `Vectors` and `Lists` keyed by id. Text stays text
and numbers stay numbers; a cell with several labels becomes text with | between them, so that results can be
saved.

Tables are in their own order; `ItemFacts` aligns each to the items of one evaluation once. An item that a
table lacks stays and is marked (0 users, row -1, no label, NaN); none is dropped here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import ColumnError, InputError, NotDefinedError, Phrase, RecsysWarning, came_as, warn
from recsys.inputs import read_interactions, read_lists
from recsys.inputs.containers import as_array
from recsys.inputs.ids import (
    encode,
    ids_from_sequence,
    ids_to_array,
    object_array,
    refuse_masked,
    refuse_meta,
)
from recsys.records.arrays import (
    Array,
    Bool,
    Context,
    Float,
    Ids,
    Int,
    Interactions,
    Lists,
    Table,
    Vectors,
    cached_property,
    positions,
)

_HEAD = 0.2  # the share of the items that the head is cut to
_BLOCK_BYTES = 32 << 20
_FORMS = {
    "items": "a table with an item column, {column: {item: value}} or {item: value}",
    "users": "a table with a user column, {column: {user: value}} or {user: value}",
}


def read_table(data: Any, *, table: str) -> Table:
    """Return a table with one row per id.

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
    import narwhals.stable.v2 as nw

    from recsys.inputs.frames import ROLES, as_frame, column_array

    if hasattr(data, "reset_index") and hasattr(data, "index") and data.index.name is not None:
        data = data.reset_index()
    frame = as_frame(data)
    if not isinstance(frame, nw.DataFrame):
        raise came_as(table, data, table=table, hint=f"Expected {_FORMS[table]}.")
    role = table[:-1]
    names = [n for n in frame.columns if str(n).replace("_", "").lower() in ROLES[role]]
    if len(names) != 1:
        raise ColumnError(
            f"{'no column was' if not names else 'several columns were'} recognised as the {role}.",
            table=table,
            hint=f"Call one column {role!r}; the columns are {', '.join(map(str, frame.columns))}.",
        )
    columns = {n: column_array(frame[n]) for n in frame.columns if n != names[0]}
    return _make_table(column_array(frame[names[0]]), columns, table)


def _table_from_mapping(data: Mapping[Any, Any], table: str) -> Table:
    if not data:
        raise InputError(f"{table} is empty.", table=table, hint=f"Expected {_FORMS[table]}.")
    nested = {str(n): c for n, c in data.items() if isinstance(c, Mapping)}
    if len(nested) < len(data):
        nested = {"value": data}
    keys = list(dict.fromkeys(key for column in nested.values() for key in column))
    columns = {}
    for name, column in nested.items():
        cells = [column.get(key) for key in keys]
        if all(isinstance(cell, int | float | np.number | None) for cell in cells):
            numbers = [np.nan if cell is None else cell for cell in cells]
            try:
                columns[name] = np.array(numbers, dtype=np.float64)
            except OverflowError:
                raise InputError(
                    "a number is beyond the range of floats.", table=table, column=name
                ) from None
        else:
            columns[name] = object_array(cells)
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
    """Return numbers and dates as they are; other cells as text, several labels with | between them."""
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


def read_popularity(data: Any) -> Table:
    """Return how many users had each item, as a table with the column "popularity".

    Args:
        data: {item: users}, a Series, or an array by item number.

    Raises:
        InputError: not one count of at least 0 per item.
    """
    if isinstance(data, Table):
        return data
    refuse_masked(data, table="popularity")
    refusal = InputError(
        "popularity must hold one count of at least 0 for each item.",
        table="popularity",
        hint="Pass {item: number of users}.",
    )
    keys, numbers = None, data
    if isinstance(data, Mapping):
        keys, numbers = list(data), list(data.values())
    elif hasattr(data, "index") and hasattr(data, "iloc"):  # a Series; its index may repeat an id
        keys, numbers = list(data.index), data.to_numpy()
    try:
        counts: Array = as_array(numbers)
        if counts.dtype.kind not in "iufbO" or any(isinstance(n, str | bytes) for n in counts.ravel()[:1]):
            raise refusal
        counts = counts.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise refusal from error
    if counts.ndim != 1 or not ((counts >= 0) & (counts < np.inf)).all():
        raise refusal
    values: Array = np.arange(len(counts))
    if keys is not None:
        values = ids_from_sequence(keys, table="popularity", column="item")
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
        InputError: vectors differ in length, hold no finite numbers, or do not match the ids one to one.
    """
    if isinstance(data, Vectors):
        return data
    if isinstance(data, Mapping):
        raw_ids: Any = list(data)
        matrix = _as_matrix([as_array(v) for v in data.values()], table)
    elif isinstance(data, tuple) and len(data) == 2:
        raw_ids, matrix = data[0], _as_matrix(data[1], table)
    elif hasattr(data, "iloc"):
        raw_ids, matrix = list(data.index), _as_matrix(data.to_numpy(), table)
    else:
        matrix = _as_matrix(data, table)
        _check_finite(matrix, range(len(matrix)), table)
        return Vectors(Ids(np.arange(len(matrix)), is_range=True), np.arange(len(matrix)), matrix)
    role = "user" if table == "profiles" else "item"
    values = ids_to_array(raw_ids, table=table, column=role)
    ids, codes = encode(values, table=table, column=role)
    if len(ids) != len(matrix) or len(codes) != len(matrix):
        raise InputError(
            f"{table} holds {len(codes)} ids ({len(ids)} different) for {len(matrix)} vectors.",
            table=table,
            hint="Give each vector one id of its own.",
        )
    _check_finite(matrix, values.tolist(), table)
    rows = np.empty(len(ids), dtype=np.int64)
    rows[codes] = np.arange(len(codes))
    return Vectors(ids, rows, matrix)


def _as_matrix(data: Any, table: str) -> Array:
    refuse_masked(data, table=table)
    refuse_meta(data)
    try:
        matrix = as_array(data)
    except InputError as error:
        raise InputError(f"the vectors of {table} differ in length.", table=table) from error
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise InputError(
            f"{table} has shape {matrix.shape} and type {matrix.dtype}.",
            table=table,
            hint="Each vector must hold the same number of plain numbers.",
        )
    return matrix


def _check_finite(matrix: Array, ids: Sequence[Any], table: str) -> None:
    """Raise an error that names the first id whose vector holds NaN or infinity."""
    with np.errstate(over="ignore", invalid="ignore"):
        if matrix.dtype.kind != "f" or np.isfinite(matrix.sum()):  # cheap; a sum may overflow without harm
            return
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        wrong = matrix[row][~np.isfinite(matrix[row])][0]
        raise InputError(
            f"the vector of {ids[row]!r} holds {wrong}, so it has no distance to others.",
            table=table,
            row=row,
            hint="Drop such vectors (items without one are counted), or fix the model that wrote them.",
        )


def read_reference(data: Any) -> Lists:
    """Reference lists: like `lists`, or one plain list of items that everybody would get.

    The one list for everybody comes back as `Lists` without cases.
    """
    is_one_list = (
        isinstance(data, list | tuple | np.ndarray)
        and getattr(data, "ndim", 1) == 1
        and len(data) > 0
        and not isinstance(data[0], list | tuple | set | np.ndarray)
    )
    if not is_one_list:
        return read_lists(data, table="reference")
    one_list = read_lists({0: list(data)}, table="reference")
    return Lists(Ids(np.zeros(0, dtype=np.int64)), one_list.items, one_list.indptr, one_list.codes)


def read_intents(data: Any) -> Table | str:
    """Return the name of a column of items=, or a table of {user: {item: [intents]}}.

    Raises:
        InputError: `data` is neither.
    """
    if isinstance(data, str):
        return data
    if not isinstance(data, Mapping) or not all(isinstance(v, Mapping) for v in data.values()):
        raise InputError(
            f"intents came as {type(data).__name__}.",
            table="intents",
            hint=Phrase("Pass the name of a column of {items=}, or {{user: {{item: [intents]}}}}."),
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
        never_ids, _ = encode(
            ids_to_array(never, table="exclude", column="item"), table="exclude", column="item"
        )
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


class Attribute(NamedTuple):
    """The labels of each item, in CSR form over the items: codes into the sorted `labels`."""

    indptr: Int
    codes: Int
    labels: list[str]

    def of(self, items: Array) -> tuple[Int, Int, Int]:
        """Return the labels of some items: the entry of each, its code, and how many that entry has."""
        sizes = np.diff(self.indptr)[items]
        entry = np.repeat(np.arange(len(items)), sizes)
        return entry, self.codes[positions(self.indptr[items], sizes)], sizes[entry]


class ItemFacts:
    """Everything known about some items, aligned to their codes."""

    def __init__(self, ids: Ids, context: Context) -> None:
        self.ids = ids
        self.context = context
        self._attributes: dict[str | None, Attribute] = {}

    @property
    def train(self) -> Interactions:
        """The training interactions.

        Raises:
            NotDefinedError: there is no train=.
        """
        if self.context.train is None:
            raise NotDefinedError("nothing says what the users had before.", hint=Phrase("Pass {train=}."))
        return self.context.train

    @cached_property
    def popularity(self) -> Float:
        """How many users had each item before; 0 for an item that none had."""
        table = self.context.popularity
        if table is not None:
            return self._align(table.ids, table.columns["popularity"], 0.0)
        return self._align(self.train.items, self.train.item_counts.astype(np.float64), 0.0)

    @cached_property
    def events(self) -> Float:
        """How many events each item had before: `popularity` with a user's repeats counted."""
        train = self.train
        counts = np.bincount(train.codes, weights=train.counts, minlength=len(train.items))
        return self._align(train.items, counts.astype(np.float64), 0.0)

    def n_users(self, users: float | None = None, metric: str = "") -> float:
        """Return how many users the popularity was counted over: `users` if given, else those of train=.

        Raises:
            NotDefinedError: neither says; `metric` is one whose parameter `users` does.
        """
        if users is not None:
            return float(users)
        if self.context.train is None:
            hint = Phrase("Write {}(users=1000), or pass {train=} instead.", metric)
            raise NotDefinedError(
                "popularity= does not say how many users it was counted over.",
                hint=hint if metric else Phrase("Pass {train=}."),
            )
        return float((self.context.train.sizes > 0).sum())

    @property
    def n_events(self) -> float:
        """How many interactions the popularity was counted over."""
        train, table = self.context.train, self.context.popularity
        if table is not None:
            return float(table.columns["popularity"].sum())
        return 0.0 if train is None else float(len(train.codes))

    @property
    def all_popularities(self) -> Array:
        """The popularity of every item that has one, in no particular order."""
        table = self.context.popularity
        return self.train.item_counts if table is None else table.columns["popularity"]

    @cached_property
    def popularity_percentile(self) -> Float:
        """The place of each item among those that users had, least popular first, as a share of them."""
        counts = self.all_popularities
        levels = np.sort(counts[counts > 0])
        below = np.searchsorted(levels, self.popularity, side="left")
        up_to = np.searchsorted(levels, self.popularity, side="right")
        # Equally popular items share the middle of their places.
        return np.where(self.popularity > 0, (below + up_to + 1) / (2 * max(len(levels), 1)), 0.0)

    def in_tail(self, head: float) -> Bool:
        """Return which items are outside the head, the most popular with the share `head` of interactions."""
        counts = np.sort(self.all_popularities)[::-1]
        last = int(np.searchsorted(np.cumsum(counts), head * counts.sum(), side="left"))
        least_in_head = counts[min(last, len(counts) - 1)] if len(counts) else 1
        return np.asarray(self.popularity < least_in_head)

    @cached_property
    def rows(self) -> Int:
        """The row of each item's vector, -1 where it has none."""
        return vector_rows(self._vectors, self.ids, what="item")

    @cached_property
    def row_norms(self) -> Float:
        """The norm of each vector, by row."""
        return row_norms(self.matrix)

    @property
    def matrix(self) -> Array:
        """The vectors, one per row."""
        return self._vectors.matrix

    @property
    def _vectors(self) -> Vectors:
        if self.context.embeddings is None:
            raise NotDefinedError("the items have no vectors.", hint="Pass embeddings=.")
        return self.context.embeddings

    def number(self, column: str | None) -> Float:
        """Return a column of numbers, NaN for an item without one.

        Raises:
            ColumnError: there is no such column, or it holds no numbers.
        """
        ids, name, values = self._column(column)
        if values.dtype.kind not in "fiub":
            raise ColumnError(
                f"the items column {name!r} holds no numbers ({values.dtype}).", table="items", column=name
            )
        return self._align(ids, values.astype(np.float64), np.nan)

    def is_number(self, column: str | None) -> bool:
        """Return whether a column holds numbers."""
        return self._column(column)[2].dtype.kind in "fiub"

    def attribute(self, column: str | None) -> Attribute:
        """Return the labels of each item in one column; a cell may hold several (a list, or text with |)."""
        if column not in self._attributes:
            ids, _, values = self._column(column)
            self._attributes[column] = align_labels(ids, values, self.ids)
        return self._attributes[column]

    def _column(self, column: str | None) -> tuple[Ids, str, Array]:
        """Return the ids of items=, and the name and cells of a column: the only one where none is named."""
        table = self.context.items
        if table is None:
            raise NotDefinedError("nothing is known about the items.", hint=Phrase("Pass {items=}."))
        names = list(table.columns)
        name = names[0] if column is None and len(names) == 1 else column
        if name is None or name not in names:
            raise ColumnError(
                f"the items have the columns {', '.join(names)}"
                + ("; one must be named." if name is None else f", not {name!r}."),
                table="items",
                column=name,
                hint=f"Write (by={names[0]}), or for a value (of={names[0]}), after the metric's name.",
            )
        return table.ids, name, table.columns[name]

    def _align(self, ids: Ids, values: Array, fill: float) -> Float:
        """Return the values of `ids` in the order of our items, `fill` for an item that is not in `ids`."""
        ids.same_kind(self.ids, what="item")
        at = ids.code_of(self.ids.values)
        return np.where(at >= 0, values[at], fill) if len(ids) else np.full(len(self.ids), fill)


def vector_rows(vectors: Vectors, ids: Ids, *, what: str) -> Int:
    """Return the row of each id's vector, -1 where it has none."""
    vectors.ids.same_kind(ids, what=what)
    at = vectors.ids.code_of(ids.values)
    return np.where(at >= 0, vectors.rows[at], -1) if len(vectors.ids) else at


def align_labels(known: Ids, values: Array, ids: Ids) -> Attribute:
    """Return the labels of `ids`, from one cell per id of `known`."""
    known.same_kind(ids, what="item")
    cells = [parse_labels(cell) for cell in values.tolist()]
    labels = sorted({label for cell in cells for label in cell})
    code = {label: at for at, label in enumerate(labels)}
    at = known.code_of(ids.values).tolist()
    codes = [[code[label] for label in cells[row]] if row >= 0 else [] for row in at]
    indptr = np.concatenate([[0], np.cumsum([len(own) for own in codes])]).astype(np.int64)
    return Attribute(indptr, np.array([c for own in codes for c in own], dtype=np.int64), labels)


def parse_labels(cell: Any) -> list[str]:
    """Return the labels in one cell, sorted and without repeats: a list of them, or text with | between them.

    >>> parse_labels("Drama|War"), parse_labels(["b", "a", "b"]), parse_labels(None), parse_labels(3)
    (['Drama', 'War'], ['a', 'b'], [], ['3'])
    """
    if cell is None or (isinstance(cell, float) and np.isnan(cell)) or _is_masked(cell):
        return []
    if isinstance(cell, str):
        return sorted({part.strip() for part in cell.split("|")} - {""})
    is_list = isinstance(cell, Iterable) and getattr(cell, "ndim", 1) == 1
    parts = list(cell) if is_list else [cell]
    for part in parts:
        if getattr(part, "ndim", 0) > 0:
            raise came_as("a label", part, hint="A label is a text or a number.")
    return sorted({str(part) for part in parts})


def _is_masked(cell: Any) -> bool:
    return isinstance(cell, np.ndarray) and cell.ndim == 0 and hasattr(cell, "mask")


def row_norms(matrix: Array) -> Float:
    """Return the Euclidean norm of each row, in float64."""
    out = np.empty(len(matrix))
    step = max(1, _BLOCK_BYTES // (8 * max(1, matrix.shape[1])))
    for start in range(0, len(matrix), step):
        block = matrix[start : start + step].astype(np.float64)
        out[start : start + step] = np.sqrt(row_products(block, block))
    return out


def row_products(one: Float, other: Float) -> Float:
    """Return the sums of products along the last axis, with the same bits everywhere.

    Each product is rounded before it is added, and the order is NumPy's for numbers side by side; einsum
    multiplies and adds at once where the processor can.
    """
    return np.asarray(np.multiply(one, other, order="C").sum(axis=-1))


def popular_head(counts: Array) -> Bool:
    """Return which items are the popular head of a catalogue; all others are its tail.

    The head is the most popular fifth of the items that occur, rounded up. Equally popular items stay on one
    side, so that no id decides: of the cuts between two levels of popularity the nearest to a fifth is taken,
    the smaller head of two that are equally near. It is therefore never more than twice as large, and empty
    where all items are equally popular.

    Args:
        counts: how often each item occurs in training.

    >>> popular_head(np.array([9, 1, 3, 2, 1, 0])).tolist()
    [True, False, False, False, False, False]
    >>> popular_head(np.array([3, 3, 3, 3, 3, 1])).any()
    np.False_
    """
    levels, sizes = np.unique(counts[counts > 0], return_counts=True)
    n_head = np.concatenate([[0], np.cumsum(sizes[::-1])])  # of each cut, the smallest head first
    cut = int(np.argmin(np.abs(n_head - math.ceil(_HEAD * n_head[-1]))))
    if cut == 0:
        return np.zeros(len(counts), dtype=bool)
    return np.asarray(counts >= levels[-cut])
