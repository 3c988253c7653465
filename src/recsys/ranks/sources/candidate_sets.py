"""One relevant item among candidates of its own, case by case: the test of sampled protocols.

A case is a user, a positive and some negatives. Places are counted, not sorted: the number of negatives that
score higher than the positive, and the number that tie. Cases are scored in blocks; only counts are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import InputError, came_as, check_choice
from recsys.inputs.containers import as_array
from recsys.inputs.ids import encode_ints
from recsys.ranks.ranked_truth import CountedTruth
from recsys.records.arrays import Array, Bool, Ids, Int, Interactions, cached_property, positions

Scorer = Callable[[Int, Int], Array]

_PAIRS_PER_BLOCK = 1 << 20  # pairs scored at once: 16 MiB of indices
DUPLICATES = ("collapse", "pessimistic")
_ENTRY_HINT = "Each entry is (user, positive item, negative items), or a batch of them."


@dataclass(frozen=True, eq=False)
class Candidates:
    """Users, their positives and negatives: CSR, `negatives[indptr[c]:indptr[c + 1]]` belong to case c.

    >>> cases = Candidates.of([7, 9], [1, 2], [[0, 3], [1, 0]])
    >>> cases.judge(lambda users, items: -items.astype(float)).above.tolist()
    [1, 2]
    """

    users: Int
    items: Int
    indptr: Int
    negatives: Int

    @classmethod
    def of(cls, users: Any, items: Any, negatives: Any) -> Candidates:
        """Make candidates from arrays; negatives are a matrix, or one sequence per case."""
        user_rows, item_rows = _integer_array(users, "users"), _integer_array(items, "positives")
        matrix = negatives if isinstance(negatives, np.ndarray) else None
        if matrix is None or matrix.dtype == object:
            rows = [_integer_array(row, "negatives") for row in negatives]
            sizes = np.array([len(row) for row in rows], dtype=np.int64)
            flat = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
        else:
            if matrix.ndim != 2:
                raise InputError(
                    f"negatives came with shape {matrix.shape}.", hint="Give one row of negatives per case."
                )
            sizes = np.full(matrix.shape[0], matrix.shape[1], dtype=np.int64)
            flat = _integer_array(matrix.reshape(-1), "negatives")
        if not len(user_rows) == len(item_rows) == len(sizes):
            raise InputError(
                f"{len(user_rows)} users, {len(item_rows)} positives and {len(sizes)} rows of negatives "
                "do not pair.",
                hint="Give one user, one positive and one row of negatives per case.",
            )
        if len(user_rows) == 0:
            raise InputError("the test set holds no case.")
        return cls(user_rows, item_rows, np.concatenate([[0], np.cumsum(sizes)]), flat)

    def __len__(self) -> int:
        return len(self.users)

    @cached_property
    def sizes(self) -> Int:
        return np.diff(self.indptr)

    @cached_property
    def width(self) -> int | None:
        """The number of negatives per case, if it is the same for all and not 0; else None."""
        first = int(self.sizes[0])
        return first if first and bool((self.sizes == first).all()) else None

    @cached_property
    def _case_of_negative(self) -> Int:
        return np.repeat(np.arange(len(self)), self.sizes)

    @cached_property
    def twins(self) -> Int:
        """Positions among all negatives that hold the positive of their own case."""
        if self.width is not None:
            return np.flatnonzero((self.negatives.reshape(-1, self.width) == self.items[:, None]).reshape(-1))
        return np.flatnonzero(self.negatives == self.items[self._case_of_negative])

    @cached_property
    def repeats(self) -> Int:
        """Positions among all negatives that repeat an earlier negative of their case."""
        cases = self._cases_with_repeats
        at = positions(self.indptr[cases], self.sizes[cases])
        case, negative = np.repeat(cases, self.sizes[cases]), self.negatives[at]
        order = np.lexsort((negative, case))  # stable: the first occurrence comes first
        same = (np.diff(negative[order]) == 0) & (np.diff(case[order]) == 0)
        return np.sort(at[order[1:][same]])

    @property
    def _cases_with_repeats(self) -> Int:
        """The cases that hold a negative twice; they are few."""
        if self.width is not None:
            ordered = np.sort(self.negatives.reshape(-1, self.width), axis=1)
            return np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        low = self.negatives.min(initial=0)
        span = int(self.negatives.max(initial=0)) - int(low) + 1
        if span * len(self) >= 1 << 63:
            return np.arange(len(self))
        pairs = np.sort(self._case_of_negative * span + (self.negatives - low))
        repeated_cases = pairs[1:][pairs[1:] == pairs[:-1]] // span  # ascending, as the pairs are
        return np.asarray(repeated_cases[np.diff(repeated_cases, prepend=-1) > 0])

    @cached_property
    def _truth(self) -> tuple[Interactions, Int | None]:
        """The positives as truth, and the order of the cases by id; None if they are in it already."""
        ids, codes = encode_ints(self.items)
        order = np.argsort(self.users, kind="stable")
        ordered = self.users[order]
        repeated_users = bool((ordered[1:] == ordered[:-1]).any())
        rows = np.arange(len(self) + 1)
        if repeated_users:  # the case is then the row, and the user its cluster
            return Interactions(Ids(rows[:-1]), ids, rows, codes, clusters=self.users), None
        if bool((order == rows[:-1]).all()):
            return Interactions(Ids(ordered), ids, rows, codes), None
        return Interactions(Ids(ordered), ids, rows, codes[order]), order

    def in_given_order(self, per_case: Array) -> Array:
        """Return values in the order of ids, put in the order of the cases."""
        order = self._truth[1]
        if order is None:
            return per_case
        out = np.empty_like(per_case)
        out[order] = per_case
        return out

    def in_id_order(self, per_case: Array) -> Array:
        """Return values in the order of the cases, put in the order of ids."""
        order = self._truth[1]
        return per_case if order is None else per_case[order]

    def judge(self, score: Scorer, *, duplicates: str = "collapse") -> CountedTruth:
        """Count the place of each positive, scoring the cases in blocks.

        `duplicates`: "collapse" counts a repeated negative once and ignores the positive among its negatives;
        "pessimistic" counts every repeat, and the positive among its negatives as a candidate above it.
        """
        for what, rows in (("user", self.users), ("positive", self.items), ("negative", self.negatives)):
            if rows.min(initial=0) < 0:
                raise InputError(
                    f"the {what} {rows.min()} of the test set is not a row of a model: rows count from 0.",
                    hint="If it only fills up a matrix, pass one list of negatives per case instead.",
                )
        ends = self.indptr[1:] + np.arange(1, len(self) + 1)
        limits = np.arange(_PAIRS_PER_BLOCK, int(ends[-1]) + _PAIRS_PER_BLOCK, _PAIRS_PER_BLOCK)
        cuts = np.searchsorted(ends, limits, side="right")
        edges = np.unique(np.concatenate([[0], np.maximum(cuts, 1), [len(self)]])).tolist()
        parts = []
        for first, last in pairwise(edges):
            users, start, stop = self.users[first:last], self.indptr[first], self.indptr[last]
            negative_users = np.repeat(users, self.sizes[first:last])
            scores = score(
                np.concatenate([users, negative_users]),
                np.concatenate([self.items[first:last], self.negatives[start:stop]]),
            )
            parts.append(
                self._count_places((first, last), scores[: len(users)], scores[len(users) :], duplicates)
            )
        return self._to_counted_truth(parts)

    def judge_scores(self, positives: Any, negatives: Any, *, duplicates: str = "collapse") -> CountedTruth:
        """Return the same from known scores: one per positive, and those of the negatives in their order."""
        positive_scores, negative_scores = as_array(positives).reshape(-1), as_array(negatives).reshape(-1)
        for scores in (positive_scores, negative_scores):
            if scores.dtype.kind not in "fiub" and len(scores):
                raise InputError(f"the scores are {scores.dtype}; expected numbers.", table="scores")
        if len(positive_scores) != len(self) or len(negative_scores) != len(self.negatives):
            raise InputError(
                f"{len(positive_scores)} and {len(negative_scores)} scores came for {len(self)} positives "
                f"and {len(self.negatives)} negatives.",
                table="scores",
            )
        counts = self._count_places((0, len(self)), positive_scores, negative_scores, duplicates)
        return self._to_counted_truth([counts])

    def _count_places(
        self, block: tuple[int, int], positive_scores: Array, negative_scores: Array, duplicates: Any
    ) -> _PlaceCounts:
        check_choice("value of duplicates", duplicates, DUPLICATES)
        first, last = block
        start, stop = int(self.indptr[first]), int(self.indptr[last])
        masks = self._candidate_masks(block, positive_scores, negative_scores)
        twins = _positions_within(self.twins, start, stop)
        repeats = np.zeros(0, dtype=np.int64)
        if duplicates == "collapse":
            repeats = _positions_within(self.repeats, start, stop)
        if self.width is not None:
            rows = negative_scores.reshape(-1, self.width)
            higher, equal = rows > positive_scores[:, None], rows == positive_scores[:, None]
        else:
            own_scores = positive_scores[self._case_of_negative[start:stop] - first]
            higher, equal = negative_scores > own_scores, negative_scores == own_scores
        for marks in (higher, equal):
            marks.reshape(-1)[twins] = False
            marks.reshape(-1)[repeats] = False
        above, tied = self._count_per_case(higher, block), self._count_per_case(equal, block)
        n_negatives = self.sizes[first:last].copy()
        excluded = np.concatenate([twins, repeats]) if duplicates == "collapse" else twins[:0]
        # A positive that is its own negative, and repeated there, is subtracted once.
        np.subtract.at(n_negatives, self._case_of_negative[start:stop][np.unique(excluded)] - first, 1)
        if duplicates == "pessimistic":
            np.add.at(above, self._case_of_negative[start:stop][twins] - first, 1)
        ahead = np.zeros_like(tied)
        if tied.any():
            at = np.flatnonzero(equal.reshape(-1))
            case = self._case_of_negative[start:stop][at]
            np.add.at(ahead, case - first, self.negatives[start + at] < self.items[case])
        if masks is not None:
            outside = ~masks[1]
            outside.reshape(-1)[excluded] = False  # collapsed negatives are subtracted already
            n_negatives -= self._count_per_case(outside, block)
            above = np.where(masks[0], above, -1)
        return _PlaceCounts(above, tied + 1, ahead, n_negatives + 1)

    def _count_per_case(self, marks: Bool, block: tuple[int, int]) -> Int:
        """Return the number of marks per case."""
        if self.width is not None:
            return np.asarray(np.count_nonzero(marks.reshape(-1, self.width), axis=1), dtype=np.int64)
        first, last = block
        total = np.concatenate([[0], np.cumsum(marks)])
        ends = self.indptr[first : last + 1] - self.indptr[first]
        return np.asarray(total[ends[1:]] - total[ends[:-1]], dtype=np.int64)

    def _candidate_masks(
        self, block: tuple[int, int], positive_scores: Array, negative_scores: Array
    ) -> tuple[Bool, Bool] | None:
        """Masks of the positives and negatives that are candidates (not -inf); None if all are."""
        if np.isfinite(positive_scores).all() and np.isfinite(negative_scores).all():
            return None
        first, start = block[0], self.indptr[block[0]]
        for scores, case, items in (
            (positive_scores, np.arange(first, block[1]), self.items[first:]),
            (negative_scores, self._case_of_negative[start:], self.negatives[start:]),
        ):
            not_allowed = np.isnan(scores) | (scores == np.inf)
            if not_allowed.any():
                at = int(np.argmax(not_allowed))
                raise InputError(
                    f"the score of user {int(self.users[case[at]])} and item {int(items[at])} "
                    f"is {scores[at]}.",
                    table="scores",
                    hint="Scores are finite; -inf marks an item that is not a candidate.",
                )
        candidate = negative_scores > -np.inf
        if self.width is not None:
            candidate = candidate.reshape(-1, self.width)
        return positive_scores > -np.inf, candidate

    def _to_counted_truth(self, parts: list[_PlaceCounts]) -> CountedTruth:
        truth, order = self._truth
        whole = _PlaceCounts(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        by_id = whole if order is None else _PlaceCounts(*(column[order] for column in whole))
        counts = {
            name: len(at)
            for name, at in (
                ("positive_among_negatives", self.twins),
                ("repeated_negatives", self.repeats),
            )
            if len(at)
        }
        return CountedTruth(truth, *by_id, clusters=truth.clusters, truth_counts=counts)


class _PlaceCounts(NamedTuple):
    """Per case: negatives above the positive; ties, itself included; ties with a smaller id; candidates."""

    above: Int
    tied: Int
    ahead: Int
    n_candidates: Int


def _positions_within(sorted_places: Int, start: int, stop: int) -> Int:
    low, high = np.searchsorted(sorted_places, [start, stop])
    return sorted_places[low:high] - start


def _integer_array(values: Any, what: str) -> Int:
    array = as_array(values)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and len(array)):
        raise InputError(
            f"the {what} of the test set came as {array.dtype} with shape {array.shape}.",
            hint="Users and items are whole numbers: the rows of the model's tables.",
        )
    return array.astype(np.int64, copy=False)


def read_candidates(data: Any) -> Candidates:
    """Candidates of arrays, a dataset, a data loader or any iterable of (user, positive, negatives).

    An entry is one case (1-D negatives) or a batch of cases (2-D negatives). Candidates, or an object with
    `candidates`, are returned as they are.

    >>> read_candidates([(4, 1, [0, 3]), (5, 2, [1])]).sizes.tolist()
    [2, 1]
    """
    candidates = getattr(data, "candidates", data)
    if isinstance(candidates, Candidates):
        return candidates
    if isinstance(data, str | bytes | dict | type) or hasattr(data, "tocsr") or hasattr(data, "lazy"):
        raise came_as("the test set", data, hint=_ENTRY_HINT)
    indexed = hasattr(data, "__getitem__")
    if not isinstance(data, Iterable) and not indexed:
        raise InputError(
            f"the test set came as {type(data).__name__}, which cannot be read.", hint=_ENTRY_HINT
        )
    # A map-style dataset of torch may not raise IndexError at its end: use its length.
    by_length = indexed and hasattr(data, "__len__") and not hasattr(data, "__iter__")
    try:
        entries = (data[at] for at in range(len(data))) if by_length else iter(data)
    except TypeError as error:
        raise InputError(
            f"the test set came as {type(data).__name__}, which cannot be read ({error}).", hint=_ENTRY_HINT
        ) from None
    users, items, negatives = [], [], []
    for number, entry in enumerate(entries):
        user_rows, item_rows, negative_part = _parse_entry(entry, number)
        users.append(user_rows)
        items.append(item_rows)
        negatives.append(negative_part)
    if not users:
        raise InputError("the test set holds no case.", hint=_ENTRY_HINT)
    user_rows, item_rows = np.concatenate(users), np.concatenate(items)
    matrices = [n for n in negatives if isinstance(n, np.ndarray)]
    if len(matrices) == len(negatives) and len({m.shape[1] for m in matrices}) == 1:
        return Candidates.of(user_rows, item_rows, np.concatenate(matrices))
    return Candidates.of(user_rows, item_rows, [row for rows in negatives for row in rows])


def _parse_entry(entry: Any, number: int) -> tuple[Array, Array, Any]:
    """Return users, positives, and negatives as a matrix or a list of rows."""
    # SciPy walks over a damaged matrix without looking, so a sparse one is never iterated.
    parts: Any = () if hasattr(entry, "tocsr") else entry
    try:
        user, positive, negative_part = parts
    except (TypeError, ValueError):
        raise InputError(
            f"entry {number} of the test set is {type(entry).__name__}, not three parts.", hint=_ENTRY_HINT
        ) from None
    user_rows = _integer_array(as_array(user).reshape(-1), "users")
    item_rows = _integer_array(as_array(positive).reshape(-1), "positives")
    rows: Any
    if isinstance(negative_part, list | tuple) and negative_part and _is_row(negative_part[0]):
        rows = [_integer_array(row, "negatives") for row in negative_part]
        lengths = {len(row) for row in rows}
        # The default collation of a loader transposes lists of negatives: one tensor per column.
        if lengths == {len(user_rows)}:
            rows = np.stack(rows, axis=1)
        elif len(lengths) == 1:
            rows = np.stack(rows)
    else:
        rows = as_array(negative_part)
        rows = rows.reshape(1, -1) if rows.ndim == 1 else rows
        if rows.ndim != 2 or (rows.dtype.kind not in "iu" and rows.size):
            raise InputError(
                f"the negatives of entry {number} of the test set came as {type(negative_part).__name__} "
                f"({rows.dtype}, shape {rows.shape}).",
                hint=_ENTRY_HINT,
            )
    if len(user_rows) != len(item_rows) or len(rows) != len(user_rows):
        raise InputError(
            f"entry {number} of the test set holds {len(user_rows)} users, {len(item_rows)} positives and "
            f"{len(rows)} rows of negatives.",
            hint=_ENTRY_HINT,
        )
    return user_rows, item_rows, rows


def _is_row(value: Any) -> bool:
    """Return whether one part of the negatives is itself a row of them."""
    return value.ndim == 1 if hasattr(value, "ndim") else isinstance(value, list | tuple)
