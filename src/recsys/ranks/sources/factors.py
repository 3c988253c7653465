"""User and item factors: the score of a pair is their product, summed in float64 in a fixed order.

Only the rows of users that are asked for are touched, so memory-mapped matrices are not loaded whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from recsys import kernels
from recsys.errors import InputError
from recsys.ranks.counting import CountedTruth, over_all_items
from recsys.ranks.sources.foreign_arrays import as_array
from recsys.ranks.sources.source import IdRows, RankingOptions, UsersByItems, never_mask, restricted
from recsys.types import Array, Codes, Ids, Int, Interactions, Lists, Shown


class Factors(UsersByItems):
    """Matrices U (users x factors) and V (items x factors), with ids and item biases where there are some.

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
        self.users, self.items = matrix_of(users, "users"), matrix_of(items, "items")
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

    def judge(self, truth: Interactions, asked: RankingOptions) -> CountedTruth:
        """Count the place of each judged item among all candidates."""
        rows = self.user_rows.row_of(truth.cases.values, table="truth")
        known_cases = np.flatnonzero(rows >= 0)
        item = self.item_rows.row_of(truth.items.values, table="truth")[truth.codes]
        case = np.repeat(np.arange(len(truth.cases)), truth.sizes)
        known = (item >= 0) & (rows[case] >= 0)
        sizes = np.bincount(case[known], minlength=len(truth.cases))[known_cases]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        cases = truth.cases if len(known_cases) == len(rows) else Ids(truth.cases.values[known_cases])
        wanted = (indptr, item[known].astype(np.int32))
        found = self._scan(rows[known_cases], cases, asked, k=asked.k, truth=wanted)
        above = np.full(len(item), -1, dtype=np.int64)
        tied, ahead = np.zeros(len(item), dtype=np.int64), np.zeros(len(item), dtype=np.int64)
        above[known], tied[known], ahead[known] = found.above, found.tied, found.ahead
        n_candidates = np.zeros(len(rows), dtype=np.int64)
        n_candidates[known_cases] = found.n_candidates
        shown: Shown | None = None
        if asked.k is not None:
            sizes = np.zeros(len(rows), dtype=np.int64)
            sizes[known_cases] = np.diff(found.list_indptr)
            list_indptr = np.concatenate([[0], np.cumsum(sizes)])
            codes = self.item_rows.rank[found.list_items].astype(np.int32)
            truth, shown = over_all_items(truth, self.item_rows.ids, list_indptr, codes)
        return CountedTruth(truth, above, tied, ahead, n_candidates, truth.clusters, lists=shown)

    def top(self, users: Iterable[Any] | None, k: int, asked: RankingOptions) -> Lists:
        """The k best candidates of the users named, or of all."""
        cases, rows = self.cases_of(users)
        found = self._scan(rows, cases, asked, k=k)
        codes = self.item_rows.rank[found.list_items].astype(np.int32)
        return Lists(cases, self.item_rows.ids, found.list_indptr, codes, found.list_scores)

    def _scan(
        self,
        rows: Int,
        cases: Ids,
        asked: RankingOptions,
        *,
        k: int | None = None,
        truth: tuple[Int, Codes] | None = None,
    ) -> kernels.ScanResult:
        everyone = len(rows) == len(self.users) and bool((rows == np.arange(len(rows))).all())
        return kernels.scan(
            self.users,
            self.items,
            user_rows=None if everyone else rows,
            k=k,
            truth=truth,
            deepest=asked.deepest,
            seen=restricted(asked.seen, cases, self.item_rows, table="seen"),
            eligible=restricted(asked.eligible, cases, self.item_rows, table="eligible"),
            never=never_mask(asked.never, self.item_rows),
            item_bias=self.item_bias,
            item_rank=None if self.item_rows.sorted else self.item_rows.rank,
            threads=asked.threads,
            backend=asked.backend,  # type: ignore[arg-type]
            progress=asked.progress,
        )


def matrix_of(values: Any, name: str) -> Array:
    """A plain two-dimensional array; what would lose a mask or an index is refused."""
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
