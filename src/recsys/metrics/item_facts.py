"""What is known about the items, aligned to their codes: popularity, vectors, attributes, numbers.

Tables are keyed by id and in their own order; each is aligned to the items of one evaluation once.
An item that a table lacks stays and is marked (0 users, row -1, no label, NaN); none is dropped here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import ColumnError, NotDefinedError
from recsys.metrics.vector_sums import row_norms
from recsys.types import Array, Bool, Context, Float, Ids, Int, Interactions, Table, Vectors


class Attribute(NamedTuple):
    """The labels of each item, in CSR form over the items: codes into the sorted `labels`."""

    indptr: Int
    codes: Int
    labels: list[str]


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
            raise NotDefinedError("nothing says what the users had before.", hint="Pass train=.")
        return self.context.train

    @cached_property
    def popularity(self) -> Float:
        """How many users had each item before; 0 for an item nobody had."""
        table = self.context.popularity
        if table is not None:
            return self._align(table.ids, table.columns["popularity"], 0.0)
        return self._align(self.train.items, self._train_counts.astype(np.float64), 0.0)

    @cached_property
    def _train_counts(self) -> Int:
        return np.bincount(self.train.codes, minlength=len(self.train.items))

    def n_users(self, users: float | None = None) -> float:
        """How many users the popularity was counted over: `users` if given, else those of train=."""
        if users is not None:
            return float(users)
        if self.context.train is None:
            raise NotDefinedError(
                "popularity= does not say how many users it was counted over.",
                hint="Write novelty(users=1000), or pass train= instead.",
            )
        return float((self.context.train.sizes > 0).sum())

    @property
    def n_events(self) -> float:
        """How many interactions the popularity was counted over."""
        train, table = self.context.train, self.context.popularity
        if table is not None:
            return float(table.columns["popularity"].sum())
        return 0.0 if train is None else float(len(train.codes))

    @cached_property
    def popularity_percentile(self) -> Float:
        """The place of each item among those somebody had, least popular first, as a share of them."""
        counts = self._train_counts
        levels = np.sort(counts[counts > 0])
        below = np.searchsorted(levels, self.popularity, side="left")
        up_to = np.searchsorted(levels, self.popularity, side="right")
        # Equally popular items share the middle of their places.
        return np.where(self.popularity > 0, (below + up_to + 1) / (2 * max(len(levels), 1)), 0.0)

    def in_tail(self, head: float) -> Bool:
        """Which items lie outside the head: the most popular ones, with the share `head` of interactions."""
        counts = np.sort(self._train_counts)[::-1]
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
        """A column of numbers, NaN for an item without one.

        Raises:
            ColumnError: there is no such column, or it holds no numbers.
        """
        table = self._item_table()
        name = self._column_name(table, column)
        values = table.columns[name]
        if values.dtype.kind not in "fiub":
            raise ColumnError(
                f"the items column {name!r} holds no numbers ({values.dtype}).", table="items", column=name
            )
        return self._align(table.ids, values.astype(np.float64), np.nan)

    def is_number(self, column: str | None) -> bool:
        """Whether a column holds numbers."""
        table = self._item_table()
        return table.columns[self._column_name(table, column)].dtype.kind in "fiub"

    def attribute(self, column: str | None) -> Attribute:
        """The labels of each item in one column; a cell may hold several (a list, or text with |)."""
        if column not in self._attributes:
            table = self._item_table()
            values = table.columns[self._column_name(table, column)]
            self._attributes[column] = align_labels(table.ids, values, self.ids)
        return self._attributes[column]

    def _item_table(self) -> Table:
        if self.context.items is None:
            raise NotDefinedError("nothing is known about the items.", hint="Pass items=.")
        return self.context.items

    def _column_name(self, table: Table, column: str | None) -> str:
        """The column itself, or the only one of the table where none is named."""
        names = list(table.columns)
        if column is None and len(names) == 1:
            return names[0]
        if column is None or column not in names:
            raise ColumnError(
                f"the items have the columns {', '.join(names)}"
                + ("; one must be named." if column is None else f", not {column!r}."),
                table="items",
                column=column,
                hint=f"Write (by={names[0]}), or for a value (of={names[0]}), after the metric's name.",
            )
        return column

    def _align(self, ids: Ids, values: Array, fill: float) -> Float:
        """The values of `ids` in the order of our items, `fill` for an item that is not in `ids`."""
        ids.same_kind(self.ids, what="item")
        at = ids.code_of(self.ids.values)
        return np.where(at >= 0, values[at], fill) if len(ids) else np.full(len(self.ids), fill)


def vector_rows(vectors: Vectors, ids: Ids, *, what: str) -> Int:
    """The row of each id's vector, -1 where it has none."""
    vectors.ids.same_kind(ids, what=what)
    at = vectors.ids.code_of(ids.values)
    return np.where(at >= 0, vectors.rows[at], -1) if len(vectors.ids) else at


def align_labels(known: Ids, values: Array, ids: Ids) -> Attribute:
    """The labels of `ids`, from one cell per id of `known`."""
    known.same_kind(ids, what="item")
    cells = [parse_labels(cell) for cell in values.tolist()]
    labels = sorted({label for cell in cells for label in cell})
    code = {label: at for at, label in enumerate(labels)}
    at = known.code_of(ids.values).tolist()
    codes = [[code[label] for label in cells[row]] if row >= 0 else [] for row in at]
    indptr = np.concatenate([[0], np.cumsum([len(own) for own in codes])]).astype(np.int64)
    return Attribute(indptr, np.array([c for own in codes for c in own], dtype=np.int64), labels)


def parse_labels(cell: Any) -> list[str]:
    """The labels in one cell, sorted and without repeats: a list of them, or text with | between them.

    >>> parse_labels("Drama|War"), parse_labels(["b", "a", "b"]), parse_labels(None), parse_labels(3)
    (['Drama', 'War'], ['a', 'b'], [], ['3'])
    """
    if cell is None or (isinstance(cell, float) and np.isnan(cell)):
        return []
    if isinstance(cell, str):
        return sorted({part.strip() for part in cell.split("|")} - {""})
    if isinstance(cell, Iterable):
        return sorted({str(part) for part in cell})
    return [str(cell)]
