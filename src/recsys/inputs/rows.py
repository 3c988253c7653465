"""Coded rows of one table, and how they become Lists and Interactions.

Every container ends as Rows: a case code and an item code a row, with whatever else the table had.
The work is one pass where rows are already grouped and ordered; sorting happens only when needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from recsys import kernels
from recsys.errors import DuplicateError, InputError
from recsys.types import Array, Codes, Float, Ids, Int, Interactions, Lists

# Up to here sorting is quick enough to do without SciPy.
_SMALL = 1 << 15
# From here on floats no longer tell one whole number from the next.
_MOST = 2.0**53


@dataclass(frozen=True, eq=False)
class Rows:
    """One table: codes, and optional columns of the same length. `users` are codes into `user_ids`.

    Rows that came grouped by ascending case have `indptr` instead of a code a row; `ordered` ones stand in
    their last order already, by rank or by ascending item.
    """

    table: str
    cases: Ids
    case_codes: Codes | None
    items: Ids
    item: Codes
    score: Array | None = None
    rank: Array | None = None
    grade: Array | None = None
    time: Array | None = None
    user_ids: Ids | None = None
    users: Codes | None = None
    indptr: Int | None = None
    ordered: bool = False
    notes: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def case(self) -> Codes:
        """The case of each row."""
        if self.case_codes is not None:
            return self.case_codes
        return np.repeat(np.arange(len(self.cases), dtype=np.int32), np.diff(self.starts))

    @cached_property
    def starts(self) -> Int:
        """Where each case begins once rows are grouped."""
        return _indptr(self.case, len(self.cases)) if self.indptr is None else self.indptr

    def __len__(self) -> int:
        return len(self.item)

    def name(self, row: int) -> str:
        """A row as a person would find it."""
        user, item = self.cases.name(self.case[row]), self.items.name(self.item[row])
        return f"row {row} (user {user!r}, item {item!r})"


def to_lists(rows: Rows) -> Lists:
    """Rankings: by rank, by score from the highest, or as given."""
    scores: Float | None = None
    notes = rows.notes
    placed = _placed(rows, "given" if rows.rank is None else "by_rank") if rows.score is None else None
    if placed is not None:
        return Lists(rows.cases, rows.items, placed.indptr, placed.items, None, _clusters(rows), rows.notes)
    if rows.rank is not None:
        codes, notes = _placed_by_rank(rows, rows.rank)
    else:
        order = None if rows.indptr is not None else _group(rows.case, len(rows.cases))
        if rows.score is not None:
            scores = numbers(rows.score, rows, "score")
            order = _order_by_score(rows, scores, order)
            scores = scores if order is None else scores[order]
        codes = _take(rows.item, order)
    return Lists(rows.cases, rows.items, rows.starts, codes, scores, _clusters(rows), notes)


def to_interactions(rows: Rows) -> Interactions:
    """Truth or history: one entry a (case, item), items ascending; repeated rows are merged and counted."""
    grade = None if rows.grade is None else _grades(rows)
    notes = dict(rows.notes)
    indptr, item, time, counts = rows.starts, rows.item, rows.time, None
    if rows.indptr is None or not (rows.ordered or _ascends(item, indptr)):
        placed = _placed(rows, "ascending") if grade is None and time is None else None
        if placed is not None:
            indptr, item = placed.indptr, placed.items
        else:
            indptr, item, grade, time, counts = _merged(rows, grade, notes)
    if grade is not None and (grade == 1).all():
        grade = None
    return Interactions(rows.cases, rows.items, indptr, item, grade, time, counts, _clusters(rows), notes)


def _placed(rows: Rows, order: kernels.Order) -> kernels.PlacedRows | None:
    """Rows put in order by one kernel, where they are not yet and it can."""
    whole = rows.rank is None or rows.rank.dtype.kind == "i"
    if rows.case_codes is None or not whole:
        return None
    limit = max(len(rows.cases), len(rows.items))
    placed = kernels.place_rows(rows.case_codes, rows.item, rows.rank, order=order, limit=limit)
    return placed if placed is not None and len(placed.case_ids) == len(rows.cases) else None


def _ascends(item: Codes, indptr: Int) -> bool:
    """Whether the items of every case are ascending and unique already."""
    rises = item[1:] > item[:-1]
    borders = indptr[1:-1]
    rises[borders[(borders > 0) & (borders < len(item))] - 1] = True
    return bool(rises.all())


def _merged(
    rows: Rows, grade: Float | None, notes: dict[str, Any]
) -> tuple[Int, Codes, Float | None, Array | None, Int | None]:
    """Rows sorted by case and item, equal ones made one: the highest grade stays."""
    if grade is None and rows.time is None and len(rows) > _SMALL:
        return _merged_pairs(rows, notes)
    order = _by_case_and_item(rows)
    case, item = _take(rows.case, order), _take(rows.item, order)
    grade, time = _take(grade, order), _take(rows.time, order)
    first = np.ones(len(item), dtype=bool)
    first[1:] = (case[1:] != case[:-1]) | (item[1:] != item[:-1])
    counts = None
    if not first.all():
        starts = np.flatnonzero(first)
        counts = np.diff(np.concatenate([starts, [len(item)]]))
        notes["repeated_rows"] = len(item) - len(starts)
        if grade is not None:
            best = np.maximum.reduceat(grade, starts)
            notes["conflicting_grades"] = int((np.minimum.reduceat(grade, starts) != best).sum())
            grade = best
        case, item, time = case[starts], item[starts], _take(time, starts)
    return _indptr(case, len(rows.cases)), item.astype(np.int32, copy=False), grade, time, counts


def _by_case_and_item(rows: Rows) -> Array | None:
    """Rows by case, then item, then as given; None where they are so already."""
    if len(rows) <= _SMALL:
        return np.lexsort((rows.item, rows.case))
    by_item = _group(rows.item, len(rows.items))
    by_case = _group(_take(rows.case, by_item), len(rows.cases))
    return by_case if by_item is None else _take(by_item, by_case)


def _merged_pairs(
    rows: Rows, notes: dict[str, Any]
) -> tuple[Int, Codes, Float | None, Array | None, Int | None]:
    """Without grades and times a sparse matrix does it: two counting sorts, equal entries added up."""
    from scipy.sparse import csr_array

    ones: Array = np.ones(len(rows), dtype=np.int64)
    matrix = csr_array((ones, (rows.case, rows.item)), shape=(len(rows.cases), max(len(rows.items), 1)))
    matrix.sum_duplicates()
    if matrix.nnz == len(rows):
        return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), None, None, None
    notes["repeated_rows"] = len(rows) - int(matrix.nnz)
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), None, None, matrix.data


def numbers(values: Array, rows: Rows, column: str) -> Float:
    """A column of finite numbers, or an error that names the first row that is not."""
    if values.dtype.kind not in "iufb":
        refusal = InputError(
            f"the {column} column holds {values.dtype} values that are not numbers.",
            table=rows.table,
            column=column,
            hint=f"Convert it to numbers, or name another column with columns={{{column!r}: ...}}.",
        )
        if values.dtype.kind in "mMc":  # NumPy would turn dates into numbers, missing ones too
            raise refusal
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            raise refusal from None
    values = values.astype(np.float64, copy=False)
    if not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values)))
        raise InputError(
            f"the {column} {values[row]} in {rows.name(row)} is not a finite number.",
            table=rows.table,
            column=column,
            row=row,
            hint=f"Every {column} must be a number; drop the row or mend the model that wrote it.",
        )
    return values


def _grades(rows: Rows) -> Float:
    grade = numbers(rows.grade if rows.grade is not None else np.zeros(0), rows, "grade")
    if len(grade) and grade.min() < 0:
        row = int(np.argmin(grade))
        raise InputError(
            f"the grade {grade[row]:g} in {rows.name(row)} is negative.",
            table=rows.table,
            column="grade",
            row=row,
            hint="Grades start at 0 (judged, not relevant); shift them, or drop such rows.",
        )
    return grade


def _indptr(case: Codes, n_cases: int) -> Int:
    indptr = np.zeros(n_cases + 1, dtype=np.int64)
    np.cumsum(np.bincount(case, minlength=n_cases), out=indptr[1:])
    return indptr


def _group(case: Codes, n_cases: int) -> Array | None:
    """Rows by case, in given order within a case; None where they are so already."""
    if len(case) < 2 or (case[1:] >= case[:-1]).all():
        return None
    from scipy.sparse import csr_array

    # A CSR with one entry a column is a counting sort: linear, and stable.
    rows = np.arange(len(case), dtype=np.int32 if len(case) < 2**31 else np.int64)
    ones: Array = np.ones(len(case), dtype=np.int8)
    return np.asarray(csr_array((ones, (case, rows)), shape=(n_cases, len(case))).indices)


def _placed_by_rank(rows: Rows, rank: Array) -> tuple[Codes, dict[str, Any]]:
    """Items in the order of their ranks, and the notes: a rank nobody has is said."""
    whole = rank.dtype.kind in "iu"
    if rows.indptr is not None and whole and _counts_up(rank, rows.indptr):
        return rows.item, rows.notes
    place = rank.astype(np.int64) if whole else _whole_ranks(rows, rank)
    if len(place) and place.min() < 1:
        _refuse_rank(rows, place, int(np.argmin(place)))
    at = rows.starts[rows.case] + (place - 1)
    if (at < rows.starts[1:][rows.case]).all():
        # As many rows as places: if every place is filled, every place is filled once.
        out = np.full(len(at), -1, dtype=np.int32)
        out[at] = rows.item
        if not len(out) or out.min() >= 0:
            return out, rows.notes
    order = _order_by_rank(rows, place)
    last = np.zeros(len(rows.cases), dtype=np.int64)
    np.maximum.at(last, rows.case, place)
    n = int((last > np.diff(rows.starts)).sum())
    said = f"closed up where the ranks of {n:,} user{'s leave' if n > 1 else ' leaves'} places out"
    return rows.item[order], {**rows.notes, "read": {**rows.notes.get("read", {}), "gaps": said}}


def _whole_ranks(rows: Rows, rank: Array) -> Int:
    given = numbers(rank, rows, "rank")
    broken = (given != np.floor(given)) | (given >= _MOST)
    if broken.any():
        _refuse_rank(rows, given, int(np.argmax(broken)))
    return given.astype(np.int64)


def _refuse_rank(rows: Rows, rank: Array, row: int) -> None:
    raise InputError(
        f"the rank {rank[row]:g} in {rows.name(row)} is not 1, 2, 3, …",
        table=rows.table,
        column="rank",
        row=row,
        hint="Ranks start at 1; add 1 if yours start at 0.",
    )


def _order_by_rank(rows: Rows, rank: Int) -> Array:
    """Ranks with gaps: sorted; two items at one rank are an error."""
    order = np.lexsort((rank, rows.case))
    same = (np.diff(rank[order]) == 0) & (np.diff(rows.case[order]) == 0)
    if same.any():
        row = int(order[int(np.argmax(same)) + 1])
        raise DuplicateError(
            f"{rows.name(row)} has rank {rank[row]:g}, which another item of that user has too.",
            table=rows.table,
            column="rank",
            row=row,
            hint="Give each item its own rank, or hand scores instead and choose ties=.",
        )
    return order


def _counts_up(rank: Array, indptr: Int) -> bool:
    """Whether the ranks of every case are 1, 2, 3, … in the order of the rows."""
    sizes = np.diff(indptr)
    if len(sizes) and (sizes == sizes[0]).all():
        return bool((rank.reshape(len(sizes), -1) == np.arange(1, sizes[0] + 1)).all())
    return bool((rank == np.arange(1, len(rank) + 1) - np.repeat(indptr[:-1], sizes)).all())


def _order_by_score(rows: Rows, scores: Float, grouped: Array | None) -> Array | None:
    s = _take(scores, grouped)
    falls = s[1:] <= s[:-1]
    borders = rows.starts[1:-1]
    falls[borders[(borders > 0) & (borders < len(s))] - 1] = True
    if falls.all():
        return grouped
    order = _falling(s, rows.starts)
    return order if grouped is None else grouped[order]


def _falling(scores: Float, indptr: Int) -> Array:
    """Rows of each case from the highest score, equal ones as given; cases of one size go together."""
    order = np.empty(len(scores), dtype=np.int64)
    sizes = np.diff(indptr)
    by_size = np.argsort(sizes, kind="stable")
    for cases in np.split(by_size, np.flatnonzero(np.diff(sizes[by_size])) + 1):
        at = indptr[cases][:, None] + np.arange(sizes[cases[0]])
        order[at] = np.take_along_axis(at, np.argsort(-scores[at], axis=1, kind="stable"), axis=1)
    return order


def _clusters(rows: Rows) -> Array | None:
    if rows.users is None or rows.user_ids is None:
        return None
    of_case = np.full(len(rows.cases), -1, dtype=np.int64)
    of_case[rows.case] = rows.users
    clash = of_case[rows.case] != rows.users
    if clash.any():
        row = int(np.argmax(clash))
        raise InputError(
            f"case {rows.cases.name(rows.case[row])!r} belongs to two users.",
            table=rows.table,
            column="user",
            row=row,
            hint="Each case must lie within one user.",
        )
    return rows.user_ids.values[of_case]


def _take(values: Any, order: Array | None) -> Any:
    return values if order is None or values is None else values[order]
