"""What is known about the items, on the codes at hand: popularity, vectors, attributes, numbers.

Tables come keyed by id and in their own order; each is brought onto the items of one evaluation once.
An item a table does not know is kept and marked (0 users, row -1, no label, NaN), never dropped here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import ColumnError, NotDefinedError
from recsys.metrics.vector_sums import lengths
from recsys.types import Array, Bool, Context, Float, Ids, Int, Interactions, Table, Vectors


class Attribute(NamedTuple):
    """The labels of each item: CSR over the items, codes of labels that stand in order."""

    indptr: Int
    codes: Int
    labels: list[str]


class ItemFacts:
    """All that is known about some items, aligned to their codes."""

    def __init__(self, ids: Ids, context: Context) -> None:
        self.ids = ids
        self.context = context
        self._attributes: dict[str | None, Attribute] = {}

    @property
    def train(self) -> Interactions:
        """What the users had before."""
        if self.context.train is None:
            raise NotDefinedError("nothing says what the users had before.", hint="Pass train=.")
        return self.context.train

    @cached_property
    def popularity(self) -> Float:
        """How many users had each item before; 0 for one nobody had."""
        known = self.context.popularity
        if known is not None:
            return self._aligned(known.ids, known.columns["popularity"], 0.0)
        return self._aligned(self.train.items, self._train_counts.astype(np.float64), 0.0)

    @cached_property
    def _train_counts(self) -> Int:
        return np.bincount(self.train.codes, minlength=len(self.train.items))

    def n_users(self, told: float | None = None) -> float:
        """How many users the popularity was counted over."""
        if told is not None:
            return float(told)
        if self.context.train is None:
            raise NotDefinedError(
                "popularity= does not say how many users it was counted over.",
                hint="Write novelty(users=1000), or pass train= instead.",
            )
        return float((self.context.train.sizes > 0).sum())

    @property
    def n_events(self) -> float:
        """How many interactions the popularity was counted over."""
        train, known = self.context.train, self.context.popularity
        if known is not None:
            return float(known.columns["popularity"].sum())
        return 0.0 if train is None else float(len(train.codes))

    @cached_property
    def popularity_percentile(self) -> Float:
        """The item's place among those somebody had, from the least popular up, as a share of them."""
        counts = self._train_counts
        known = np.sort(counts[counts > 0])
        below = np.searchsorted(known, self.popularity, side="left")
        level = np.searchsorted(known, self.popularity, side="right")
        # Items as popular as each other share the middle of their places.
        return np.where(self.popularity > 0, (below + level + 1) / (2 * max(len(known), 1)), 0.0)

    def in_tail(self, head: float) -> Bool:
        """Which items lie outside the most popular ones that hold the share `head` of all interactions."""
        known = np.sort(self._train_counts)[::-1]
        reached = int(np.searchsorted(np.cumsum(known), head * known.sum(), side="left"))
        least = known[min(reached, len(known) - 1)] if len(known) else 1
        return np.asarray(self.popularity < least)

    @cached_property
    def rows(self) -> Int:
        """The row of each item's vector, -1 where it has none."""
        return rows_of(self._vectors, self.ids, what="item")

    @cached_property
    def row_lengths(self) -> Float:
        """The length of each vector, by row."""
        return lengths(self.matrix)

    @property
    def matrix(self) -> Array:
        """The vectors, one a row."""
        return self._vectors.matrix

    @property
    def _vectors(self) -> Vectors:
        if self.context.embeddings is None:
            raise NotDefinedError("the items have no vectors.", hint="Pass embeddings=.")
        return self.context.embeddings

    def number(self, column: str | None) -> Float:
        """A column of numbers, NaN for an item it does not know."""
        table = self._table()
        name = self._name(table, column)
        values = table.columns[name]
        if values.dtype.kind not in "fiub":
            raise ColumnError(
                f"the items column {name!r} holds no numbers ({values.dtype}).", table="items", column=name
            )
        return self._aligned(table.ids, values.astype(np.float64), np.nan)

    def is_number(self, column: str | None) -> bool:
        """Whether a column holds numbers."""
        table = self._table()
        return table.columns[self._name(table, column)].dtype.kind in "fiub"

    def attribute(self, column: str | None) -> Attribute:
        """The labels of each item in one column; a cell may hold several (a list, or text with |)."""
        if column not in self._attributes:
            table = self._table()
            values = table.columns[self._name(table, column)]
            self._attributes[column] = attribute_of(table.ids, values, self.ids)
        return self._attributes[column]

    def _table(self) -> Table:
        if self.context.items is None:
            raise NotDefinedError("nothing is known about the items.", hint="Pass items=.")
        return self.context.items

    def _name(self, table: Table, column: str | None) -> str:
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

    def _aligned(self, ids: Ids, values: Array, fill: float) -> Float:
        ids.same_kind(self.ids, what="item")
        at = ids.code_of(self.ids.values)
        return np.where(at >= 0, values[at], fill) if len(ids) else np.full(len(self.ids), fill)


def rows_of(vectors: Vectors, ids: Ids, *, what: str) -> Int:
    """The row of each id's vector, -1 where it has none."""
    vectors.ids.same_kind(ids, what=what)
    at = vectors.ids.code_of(ids.values)
    return np.where(at >= 0, vectors.rows[at], -1) if len(vectors.ids) else at


def attribute_of(known: Ids, values: Array, ids: Ids) -> Attribute:
    """The labels of `ids` from cells that belong to `known`."""
    known.same_kind(ids, what="item")
    cells = [labels_of(cell) for cell in values.tolist()]
    labels = sorted({label for cell in cells for label in cell})
    code = {label: at for at, label in enumerate(labels)}
    at = known.code_of(ids.values).tolist()
    mine = [[code[label] for label in cells[row]] if row >= 0 else [] for row in at]
    indptr = np.concatenate([[0], np.cumsum([len(one) for one in mine])]).astype(np.int64)
    return Attribute(indptr, np.array([c for one in mine for c in one], dtype=np.int64), labels)


def labels_of(cell: Any) -> list[str]:
    """The labels in one cell, each once: a list of them, or text in which | stands between them.

    >>> labels_of("Drama|War"), labels_of(["b", "a", "b"]), labels_of(None), labels_of(3)
    (['Drama', 'War'], ['a', 'b'], [], ['3'])
    """
    if cell is None or (isinstance(cell, float) and np.isnan(cell)):
        return []
    if isinstance(cell, str):
        return sorted({part.strip() for part in cell.split("|")} - {""})
    if isinstance(cell, Iterable):
        return sorted({str(part) for part in cell})
    return [str(cell)]
