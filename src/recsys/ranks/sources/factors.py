"""User and item factors: the score of a pair is their product, summed in float64 in a fixed order.

Only the rows of the users to rank for are read, so memory-mapped matrices are not loaded whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from recsys import kernels
from recsys.errors import InputError
from recsys.ranks.counting import CountedTruth, union_items
from recsys.ranks.sources.foreign_arrays import as_array
from recsys.ranks.sources.source import IdRows, RankingOptions, UsersByItems, excluded_mask, rows_of_cases
from recsys.types import Array, Codes, Ids, Int, Interactions, Lists, Shown


class Factors(UsersByItems):
    """Matrices U (users x factors) and V (items x factors), with optional ids and item biases.

    >>> import recsys
    >>> model = Factors([[1.0, 0.0], [0.0, 1.0]], [[3.0, 1.0], [2.0, 2.0], [1.0, 5.0]])
    >>> model
    Factors(2 users x 3 items, 2 factors)
    >>> recsys.evaluate(model, {0: [1], 1: [2]}, ["mrr", "auc"], seen={0: [0]})["mrr"]
    1.0
    """

    def __init__(
        self,
        users: Any,
        items: Any,
        *,
        user_ids: Iterable[Any] | None = None,
        item_ids: Iterable[Any] | None = None,
        item_bias: Any = None,
    ) -> None:
        self.users, self.items = as_matrix(users, "users"), as_matrix(items, "items")
        if self.users.shape[1] != self.items.shape[1]:
            raise InputError(
                f"users have shape {self.users.shape} and items {self.items.shape}: the factors do not fit.",
                hint="Both matrices must have the same number of columns (rows are users, and items).",
            )
        self.user_rows = IdRows(len(self.users), user_ids, what="user")
        self.item_rows = IdRows(len(self.items), item_ids, what="item")
        self.item_bias = None if item_bias is None else as_array(item_bias)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self.users.shape[1]} factors)"

    def judge(self, truth: Interactions, options: RankingOptions) -> CountedTruth:
        """Count the place of each judged item among all candidates."""
        rows = self.user_rows.row_of(truth.cases.values, table="truth")
        known_cases = np.flatnonzero(rows >= 0)
        item = self.item_rows.row_of(truth.items.values, table="truth")[truth.codes]
        case = np.repeat(np.arange(len(truth.cases)), truth.sizes)
        known = (item >= 0) & (rows[case] >= 0)
        sizes = np.bincount(case[known], minlength=len(truth.cases))[known_cases]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        cases = truth.cases if len(known_cases) == len(rows) else Ids(truth.cases.values[known_cases])
        judged_items = (indptr, item[known].astype(np.int32))
        result = self._scan(rows[known_cases], cases, options, k=options.k, truth=judged_items)
        above = np.full(len(item), -1, dtype=np.int64)
        tied, ahead = np.zeros(len(item), dtype=np.int64), np.zeros(len(item), dtype=np.int64)
        above[known], tied[known], ahead[known] = result.above, result.tied, result.ahead
        n_candidates = np.zeros(len(rows), dtype=np.int64)
        n_candidates[known_cases] = result.n_candidates
        shown: Shown | None = None
        if options.k is not None:
            sizes = np.zeros(len(rows), dtype=np.int64)
            sizes[known_cases] = np.diff(result.list_indptr)
            list_indptr = np.concatenate([[0], np.cumsum(sizes)])
            codes = self.item_rows.rank[result.list_items].astype(np.int32)
            truth, shown = union_items(truth, self.item_rows.ids, list_indptr, codes)
        return CountedTruth(truth, above, tied, ahead, n_candidates, truth.clusters, lists=shown)

    def top(self, users: Iterable[Any] | None, k: int, options: RankingOptions) -> Lists:
        """The k best candidates of these users, or of all."""
        cases, rows = self.cases_of(users)
        result = self._scan(rows, cases, options, k=k)
        codes = self.item_rows.rank[result.list_items].astype(np.int32)
        return Lists(cases, self.item_rows.ids, result.list_indptr, codes, result.list_scores)

    def _scan(
        self,
        rows: Int,
        cases: Ids,
        options: RankingOptions,
        *,
        k: int | None = None,
        truth: tuple[Int, Codes] | None = None,
    ) -> kernels.ScanResult:
        all_users = len(rows) == len(self.users) and bool((rows == np.arange(len(rows))).all())
        return kernels.scan(
            self.users,
            self.items,
            user_rows=None if all_users else rows,
            k=k,
            truth=truth,
            deepest=options.deepest,
            seen=rows_of_cases(options.seen, cases, self.item_rows, table="seen"),
            eligible=rows_of_cases(options.eligible, cases, self.item_rows, table="eligible"),
            never=excluded_mask(options.never, self.item_rows),
            item_bias=self.item_bias,
            item_rank=None if self.item_rows.sorted else self.item_rows.rank,
            threads=options.threads,
            backend=options.backend,  # type: ignore[arg-type]
            progress=options.progress,
        )


def as_matrix(values: Any, name: str) -> Array:
    """A two-dimensional array; masked arrays and tables are refused, as they would lose mask or index."""
    if np.ma.isMaskedArray(values) or hasattr(values, "iloc"):
        raise InputError(
            f"{name} came as {type(values).__name__}, whose mask or index would be lost.",
            table=name,
            hint="Pass a plain array (.to_numpy()), with user_ids= and item_ids= for the ids.",
        )
    array = values if isinstance(values, np.ndarray) and values.dtype.kind != "V" else as_array(values)
    if array.ndim != 2:
        raise InputError(f"{name} must be a matrix; got shape {array.shape}.", table=name)
    return array
