"""Coded rows of one table, and how they become Lists and Interactions.

Every container ends as Rows: a case code and an item code per row, and the other columns of the table.
Rows that are grouped and ordered already take one pass; sorting happens only when needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recsys import kernels
from recsys.errors import DuplicateError, InputError, Phrase
from recsys.inputs.ids import FLOAT_INT_LIMIT, object_array
from recsys.records.arrays import Array, Codes, Float, Ids, Int, Interactions, Lists, cached_property
from recsys.records.read_facts import NOTHING_READ, ReadFacts

_SMALL = 1 << 15  # rows; a plain sort is fast enough for them
# SciPy sorts more rows faster than NumPy does, but importing it takes longer than sorting fewer.
_MANY_ROWS, _MANY_PAIRS = 1 << 20, 1 << 18
_NO_NEGATIVES = "Grades start at 0 (judged, not relevant); shift them, or drop such rows."
_AS_UNJUDGED = Phrase(" {negative_grades='unjudged'} reads them as trec_eval does.")
WHOLE_NUMBER = re.compile(r"\s*[+-]?[0-9]+\s*")
PLAIN_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


@dataclass(frozen=True, eq=False)
class Rows:
    """One table: codes, and optional columns of the same length. `users` are codes into `user_ids`.

    Rows that came grouped by ascending case have `indptr` instead of a code per row; `ordered` rows are
    already in their final order, by rank or by ascending item.
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
    facts: ReadFacts = NOTHING_READ

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
        """Return a row as error messages name it, which give its number as `row`."""
        user, item = self.cases.name(self.case[row]), self.items.name(self.item[row])
        return f"user {user!r}, item {item!r}"

    def error(self, problem: str, column: str, row: int, *, hint: str) -> InputError:
        """Return the error about one row."""
        return InputError(problem, table=self.table, column=column, row=row, hint=hint)


def no_rows(table: str, facts: ReadFacts = NOTHING_READ) -> Rows:
    """Return a table without rows: its ids are of no kind, so they match those of any other table."""
    none = Ids(np.zeros(0, dtype=np.int64))
    codes = np.zeros(0, dtype=np.int32)
    return Rows(table, none, codes, none, codes, facts=facts)


def to_lists(rows: Rows) -> Lists:
    """Make rankings: by rank, by descending score, or in the order of the rows."""
    scores: Float | None = None
    ranks: Int | None = None
    facts = rows.facts
    if rows.score is None:
        ordered = _kernel_order(rows, "given" if rows.rank is None else "by_rank")
        if ordered is not None:
            users = _user_of_case(rows)
            return Lists(rows.cases, rows.items, ordered.indptr, ordered.items, None, users, rows.facts)
    if rows.rank is not None:
        codes, ranks, facts = _items_by_rank(rows, rows.rank)
    else:
        order = None if rows.indptr is not None else _stable_order(rows.case, len(rows.cases))
        if rows.score is not None:
            scores = _comparable_scores(rows.score, rows)
            order = _order_by_score(rows, scores, order)
            scores = scores if order is None else scores[order]
        codes = _take(rows.item, order)
    return Lists(rows.cases, rows.items, rows.starts, codes, scores, _user_of_case(rows), facts, ranks)


def to_interactions(rows: Rows, *, negatives: bool = False) -> Interactions:
    """Truth or history: one entry per (case, item), items ascending; repeated rows are merged and counted.

    A negative grade is an error, unless `negatives` keeps them (and counts them in the facts) for the
    conventions to decide.
    """
    grade = None if rows.grade is None else finite_numbers(rows.grade, rows, "grade")
    noticed: dict[str, Any] = {}
    if not negatives and grade is not None and len(grade) and grade.min() < 0:
        row = int(np.argmin(grade))
        problem = f"the grade {grade[row]:g} of {rows.name(row)} is negative."
        raise rows.error(problem, "grade", row, hint=_NO_NEGATIVES)
    indptr, item, time, counts = rows.starts, rows.item, rows.time, None
    # Items that are ascending and unique in every case are ready.
    if rows.indptr is None or not (rows.ordered or _holds_within_cases(item[1:] > item[:-1], indptr)):
        ordered = _kernel_order(rows, "ascending") if grade is None and time is None else None
        if ordered is not None:
            indptr, item = ordered.indptr, ordered.items
        else:
            indptr, item, grade, time, counts = _merge_repeats(rows, grade, noticed)
    if grade is not None and (grade == 1).all():
        grade = None
    if negatives and grade is not None and len(grade) and grade.min() < 0:
        noticed["negative_grades"] = int((grade < 0).sum())
    facts = replace(rows.facts, **noticed) if noticed else rows.facts
    return Interactions(rows.cases, rows.items, indptr, item, grade, time, counts, _user_of_case(rows), facts)


def refuse_negative_grades(data: Interactions, table: str) -> None:
    """Raise an error that names the lowest of the negative grades, if there is one."""
    if data.grades is not None and data.grades.min(initial=0) < 0:
        at = int(np.argmin(data.grades))
        user = data.cases.name(np.searchsorted(data.indptr, at, side="right") - 1)
        raise InputError(
            f"the grade {data.grades[at]:g} of item {data.items.name(data.codes[at])!r} for user {user!r} is "
            "negative.",
            table=table,
            column="grade",
            hint=_NO_NEGATIVES + (_AS_UNJUDGED if table == "truth" else ""),
        )


def _kernel_order(rows: Rows, order: kernels.Order) -> kernels.PlacedRows | None:
    """Put rows in order by one kernel; None if they are grouped already or the kernel does not take them."""
    integer_ranks = rows.rank is None or rows.rank.dtype.kind == "i"
    if rows.case_codes is None or not integer_ranks:
        return None
    limit = max(len(rows.cases), len(rows.items))
    ordered = kernels.place_rows(rows.case_codes, rows.item, rows.rank, order=order, limit=limit)
    return ordered if ordered is not None and len(ordered.case_ids) == len(rows.cases) else None


def _merge_repeats(
    rows: Rows, grade: Float | None, noticed: dict[str, int]
) -> tuple[Int, Codes, Float | None, Array | None, Int | None]:
    """Return rows sorted by case and item; repeats are merged and keep the highest grade."""
    if grade is None and rows.time is None and len(rows) > _MANY_PAIRS:
        return _merge_pairs(rows, noticed)
    if len(rows) <= _SMALL:
        order: Array | None = np.lexsort((rows.item, rows.case))
    else:
        by_item = _stable_order(rows.item, len(rows.items))
        by_case = _stable_order(_take(rows.case, by_item), len(rows.cases))
        order = by_case if by_item is None else _take(by_item, by_case)
    case, item = _take(rows.case, order), _take(rows.item, order)
    grade, time = _take(grade, order), _take(rows.time, order)
    first = np.ones(len(item), dtype=bool)
    first[1:] = (case[1:] != case[:-1]) | (item[1:] != item[:-1])
    counts = None
    if not first.all():
        starts = np.flatnonzero(first)
        counts = np.diff(np.concatenate([starts, [len(item)]]))
        noticed["repeated_rows"] = len(item) - len(starts)
        if grade is not None:
            best = np.maximum.reduceat(grade, starts)
            noticed["conflicting_grades"] = int((np.minimum.reduceat(grade, starts) != best).sum())
            grade = best
        case, item, time = case[starts], item[starts], _take(time, starts)
    return _indptr(case, len(rows.cases)), item.astype(np.int32, copy=False), grade, time, counts


def _merge_pairs(
    rows: Rows, noticed: dict[str, int]
) -> tuple[Int, Codes, Float | None, Array | None, Int | None]:
    """Merge rows without grades and times in a sparse matrix: two counting sorts, repeats summed."""
    from scipy.sparse import csr_array

    ones: Array = np.ones(len(rows), dtype=np.int64)
    matrix = csr_array((ones, (rows.case, rows.item)), shape=(len(rows.cases), max(len(rows.items), 1)))
    matrix.sum_duplicates()
    if matrix.nnz == len(rows):
        return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), None, None, None
    noticed["repeated_rows"] = len(rows) - int(matrix.nnz)
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), None, None, matrix.data


def finite_numbers(values: Array, rows: Rows, column: str, role: str = "") -> Float:
    """Return a column of finite numbers, or raise an error that names the first row that is not.

    `role` is what `columns=` calls it, if not its own name.
    """
    if values.dtype.kind not in "iufb":
        refusal = InputError(
            f"the {column} column holds {values.dtype} values that are not numbers.",
            table=rows.table,
            column=column,
            hint=Phrase(
                "Convert it to numbers, or name another column: {columns=}.", columns={role or column: ...}
            ),
        )
        if values.dtype.kind in "mMcV":  # NumPy would turn dates into numbers, missing ones too
            raise refusal
        cells = values.tolist()
        if any(issubclass(kind, np.datetime64 | np.timedelta64) for kind in set(map(type, cells))):
            raise refusal
        texts = "".join(str(cell) for cell in cells if isinstance(cell, str | bytes))
        if "_" in texts or not texts.isascii():  # float() reads 1_0 and full-width digits, but no file does
            raise refusal
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise refusal from None
    values = values.astype(np.float64, copy=False)
    if not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values)))
        problem = f"the {column} {values[row]} of {rows.name(row)} is not a finite number."
        hint = f"Every {column} must be a number; drop the row or fix the model that wrote it."
        raise rows.error(problem, column, row, hint=hint)
    return values


def _comparable_scores(values: Array, rows: Rows) -> Float:
    """Finite scores that differ wherever the given numbers differ.

    Whole numbers beyond 2^53, decimals and longdouble may become equal in float64. Then each different number
    gets the nearest float64 above that of the next smaller one, so order and ties are those of the numbers.
    """
    scores = finite_numbers(values, rows, "score")
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind in "iu" and size == 8:
        if not len(values) or -(1 << 53) <= int(values.min()) <= int(values.max()) <= 1 << 53:
            return scores
    elif kind in "OUST":
        exact = [_exact_number(value) for value in values.tolist()]
        if all(isinstance(value, float) or value == float(value) for value in exact):
            return scores
        values = object_array(exact)
    elif kind != "f" or size <= 8 or bool((scores == values).all()):
        return scores
    distinct, place = np.unique(values, return_inverse=True)
    bits = distinct.astype(np.float64).view(np.int64)
    steps = np.where(bits < 0, -(bits & np.iinfo(np.int64).max), bits)  # the floats in order, one by one
    number = np.arange(len(steps))
    steps = np.maximum.accumulate(steps - number) + number
    nudged = np.where(steps < 0, -steps | np.iinfo(np.int64).min, steps).view(np.float64)
    return np.asarray(nudged[place])


def _exact_number(value: Any) -> Any:
    """Return a number that Python compares exactly; text as the whole number it is, or as float64."""
    if isinstance(value, str | bytes):
        text = value.decode() if isinstance(value, bytes) else value
        return int(text) if WHOLE_NUMBER.fullmatch(text) else float(text)
    return value.item() if isinstance(value, np.generic) else value


def _holds_within_cases(holds: Array, indptr: Int) -> bool:
    """Return whether a comparison of each row with the one before holds, but for the first row of a case."""
    borders = indptr[1:-1]
    holds[borders[(borders > 0) & (borders <= len(holds))] - 1] = True
    return bool(holds.all())


def _indptr(case: Codes, n_cases: int) -> Int:
    indptr = np.zeros(n_cases + 1, dtype=np.int64)
    np.cumsum(np.bincount(case, minlength=n_cases), out=indptr[1:])
    return indptr


def _stable_order(codes: Codes, n_codes: int) -> Array | None:
    """Return the stable order of rows by code; None if they are in it already."""
    if len(codes) < 2 or (codes[1:] >= codes[:-1]).all():
        return None
    if len(codes) <= _MANY_ROWS:
        # NumPy sorts numbers of 16 bits by radix: first by the low bits, then by the high ones.
        order = np.argsort(codes.astype(np.uint16), kind="stable")
        if n_codes <= 1 << 16:
            return order
        return order[np.argsort((codes >> 16).astype(np.uint16)[order], kind="stable")]
    from scipy.sparse import csr_array

    # A CSR matrix with one entry per column is a counting sort: linear and stable.
    rows = np.arange(len(codes), dtype=np.int32 if len(codes) < 2**31 else np.int64)
    ones: Array = np.ones(len(codes), dtype=np.int8)
    return np.asarray(csr_array((ones, (codes, rows)), shape=(n_codes, len(codes))).indices)


def _items_by_rank(rows: Rows, rank: Array) -> tuple[Codes, Int | None, ReadFacts]:
    """Return items in the order of their ranks; these ranks, in the facts, how many users leave some out."""
    integer_ranks = rank.dtype.kind in "iu"
    if rows.indptr is not None and integer_ranks and _is_consecutive(rank, rows.indptr):
        return rows.item, None, rows.facts
    if not integer_ranks:
        rank = finite_numbers(rank, rows, "rank")
        not_whole = (rank != np.floor(rank)) | (rank >= FLOAT_INT_LIMIT)
        if not_whole.any():
            raise _rank_error(rows, rank, int(np.argmax(not_whole)))
    place = rank.astype(np.int64)
    if len(place) and place.min() < 1:
        raise _rank_error(rows, rank, int(np.argmin(place)))
    # Ranks beyond the number of rows leave places out; added to the starts they may pass 64 bits.
    fits = not len(place) or int(place.max()) <= len(place)
    target = rows.starts[rows.case] + (place - 1) if fits else place
    if fits and (target < rows.starts[1:][rows.case]).all():
        # There are as many rows as places: if every place is filled, each is filled once.
        items_by_place = np.full(len(target), -1, dtype=np.int32)
        items_by_place[target] = rows.item
        if not len(items_by_place) or items_by_place.min() >= 0:
            return items_by_place, None, rows.facts
    # There are gaps between the ranks, or two items at one rank.
    order = np.lexsort((place, rows.case))
    same_rank = (np.diff(place[order]) == 0) & (np.diff(rows.case[order]) == 0)
    if same_rank.any():
        row = int(order[int(np.argmax(same_rank)) + 1])
        raise DuplicateError(
            f"{rows.name(row)} has rank {place[row]:g}, which another item of that user has too.",
            table=rows.table,
            column="rank",
            row=row,
            hint=Phrase("Give each item its own rank, or pass scores instead and choose {ties=}."),
        )
    highest_rank = np.zeros(len(rows.cases), dtype=np.int64)
    np.maximum.at(highest_rank, rows.case, place)
    n_gapped = int((highest_rank > np.diff(rows.starts)).sum())
    return rows.item[order], place[order], replace(rows.facts, users_with_gaps=n_gapped)


def _rank_error(rows: Rows, rank: Array, row: int) -> InputError:
    problem = f"the rank {rank[row]:g} of {rows.name(row)} is not 1, 2, 3, …"
    return rows.error(problem, "rank", row, hint="Ranks start at 1; add 1 if yours start at 0.")


def _is_consecutive(rank: Array, indptr: Int) -> bool:
    """Return whether the ranks of every case are 1, 2, 3, … in the order of the rows."""
    sizes = np.diff(indptr)
    if len(sizes) and (sizes == sizes[0]).all():
        return bool((rank.reshape(len(sizes), -1) == np.arange(1, sizes[0] + 1)).all())
    return bool((rank == np.arange(1, len(rank) + 1) - np.repeat(indptr[:-1], sizes)).all())


def _order_by_score(rows: Rows, scores: Float, grouped: Array | None) -> Array | None:
    """Return the order by descending score within each case, stable; `grouped` is the order by case."""
    scores, starts = _take(scores, grouped), rows.starts
    if _holds_within_cases(scores[1:] <= scores[:-1], starts):
        return grouped
    order = np.empty(len(scores), dtype=np.int64)
    sizes = np.diff(starts)
    by_size = np.argsort(sizes, kind="stable")
    # Cases of equal size are sorted together.
    for cases in np.split(by_size, np.flatnonzero(np.diff(sizes[by_size])) + 1):
        target = starts[cases][:, None] + np.arange(sizes[cases[0]])
        order[target] = np.take_along_axis(target, np.argsort(-scores[target], axis=1, kind="stable"), axis=1)
    return order if grouped is None else grouped[order]


def _user_of_case(rows: Rows) -> Array | None:
    if rows.users is None or rows.user_ids is None:
        return None
    user_codes = np.full(len(rows.cases), -1, dtype=np.int64)
    user_codes[rows.case] = rows.users
    conflict = user_codes[rows.case] != rows.users
    if conflict.any():
        row = int(np.argmax(conflict))
        problem = f"case {rows.cases.name(rows.case[row])!r} belongs to two users."
        raise rows.error(problem, "user", row, hint="Each case must belong to one user.")
    return rows.user_ids.values[user_codes]


def _take(values: Any, order: Array | None) -> Any:
    return values if order is None or values is None else values[order]
