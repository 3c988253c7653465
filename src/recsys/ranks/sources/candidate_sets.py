"""One relevant item among candidates of its own, case by case: the test of sampled protocols.

A case is a user, a positive and some negatives. Places are counted, never sorted: how many negatives score
higher than the positive, how many the same. A few cases at a time are scored, and only the counts are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import InputError, UnknownNameError
from recsys.inputs.ids import encode_ints
from recsys.ranks.counting import CountedTruth
from recsys.ranks.sources.foreign_arrays import as_array
from recsys.types import Array, Bool, Ids, Int, Interactions, positions

Scorer = Callable[[Int, Int], Array]

_PAIRS = 1 << 20  # scored before they are counted: 16 MiB of indices
DUPLICATES = ("collapse", "pessimistic")


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
        """From arrays: negatives are a matrix, or one sequence a case."""
        who, what = _whole(users, "users"), _whole(items, "positives")
        matrix = negatives if isinstance(negatives, np.ndarray) else None
        if matrix is None or matrix.dtype == object:
            rows = [_whole(row, "negatives") for row in negatives]
            sizes = np.array([len(row) for row in rows], dtype=np.int64)
            flat = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
        else:
            if matrix.ndim != 2:
                raise InputError(
                    f"negatives came with shape {matrix.shape}.", hint="Give one row of negatives a case."
                )
            sizes = np.full(matrix.shape[0], matrix.shape[1], dtype=np.int64)
            flat = _whole(matrix.reshape(-1), "negatives")
        if not len(who) == len(what) == len(sizes):
            raise InputError(
                f"{len(who)} users, {len(what)} positives and {len(sizes)} rows of negatives do not pair.",
                hint="Give one user, one positive and one row of negatives a case.",
            )
        if len(who) == 0:
            raise InputError("the test set holds no case.")
        return cls(who, what, np.concatenate([[0], np.cumsum(sizes)]), flat)

    def __len__(self) -> int:
        return len(self.users)

    @cached_property
    def sizes(self) -> Int:
        return np.diff(self.indptr)

    @cached_property
    def width(self) -> int | None:
        """How many negatives each case has, where it is the same for all."""
        first = int(self.sizes[0])
        return first if bool((self.sizes == first).all()) else None

    @cached_property
    def _case_of(self) -> Int:
        return np.repeat(np.arange(len(self)), self.sizes)

    @cached_property
    def twins(self) -> Int:
        """Where among all negatives a case's own positive stands."""
        if self.width is not None:
            return np.flatnonzero((self.negatives.reshape(-1, self.width) == self.items[:, None]).reshape(-1))
        return np.flatnonzero(self.negatives == self.items[self._case_of])

    @cached_property
    def repeats(self) -> Int:
        """Where a negative stands that its case held before."""
        cases = self._with_repeats
        at = positions(self.indptr[cases], self.sizes[cases])
        case, negative = np.repeat(cases, self.sizes[cases]), self.negatives[at]
        order = np.lexsort((negative, case))  # stable: what stood first comes first
        same = (np.diff(negative[order]) == 0) & (np.diff(case[order]) == 0)
        return np.sort(at[order[1:][same]])

    @property
    def _with_repeats(self) -> Int:
        """The cases that hold a negative twice; they are few, and only they are looked at closely."""
        if self.width is not None:
            ordered = np.sort(self.negatives.reshape(-1, self.width), axis=1)
            return np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        low = self.negatives.min(initial=0)
        span = int(self.negatives.max(initial=0)) - int(low) + 1
        if span * len(self) >= 1 << 63:
            return np.arange(len(self))
        pairs = np.sort(self._case_of * span + (self.negatives - low))
        twice = pairs[1:][pairs[1:] == pairs[:-1]] // span  # ascending, as the pairs are
        return np.asarray(twice[np.diff(twice, prepend=-1) > 0])

    @cached_property
    def _truth(self) -> tuple[Interactions, Int | None]:
        """The positives as truth, and the order of the cases in it where that is another one."""
        ids, codes = encode_ints(self.items)
        order = np.argsort(self.users, kind="stable")
        ordered = self.users[order]
        several = bool((ordered[1:] == ordered[:-1]).any())
        here = np.arange(len(self) + 1)
        if several:  # a user with several cases: the case is the row, the user its cluster
            return Interactions(Ids(here[:-1]), ids, here, codes, clusters=self.users), None
        moved = None if bool((order == here[:-1]).all()) else order
        return Interactions(Ids(ordered), ids, here, codes if moved is None else codes[order]), moved

    def in_given_order(self, per_case: Array) -> Array:
        """Values that stand in the order of ids, as the cases were given."""
        order = self._truth[1]
        if order is None:
            return per_case
        out = np.empty_like(per_case)
        out[order] = per_case
        return out

    def in_id_order(self, per_case: Array) -> Array:
        """Values in the order the cases were given, in the order of ids."""
        order = self._truth[1]
        return per_case if order is None else per_case[order]

    def judge(self, score: Scorer, *, duplicates: str = "collapse") -> CountedTruth:
        """Where each positive lands, scoring some cases at a time."""
        parts = []
        for first, last in self._blocks():
            users, start, stop = self.users[first:last], self.indptr[first], self.indptr[last]
            against = np.repeat(users, self.sizes[first:last])
            scores = score(
                np.concatenate([users, against]),
                np.concatenate([self.items[first:last], self.negatives[start:stop]]),
            )
            parts.append(self._counts((first, last), scores[: len(users)], scores[len(users) :], duplicates))
        return self._counted(parts)

    def judge_scores(self, positives: Any, negatives: Any, *, duplicates: str = "collapse") -> CountedTruth:
        """The same from scores that are there: one a positive, and those of the negatives in their order."""
        own, others = np.asarray(positives).reshape(-1), np.asarray(negatives).reshape(-1)
        if len(own) != len(self) or len(others) != len(self.negatives):
            raise InputError(
                f"{len(own)} and {len(others)} scores came for {len(self)} positives and "
                f"{len(self.negatives)} negatives.",
                table="scores",
            )
        return self._counted([self._counts((0, len(self)), own, others, duplicates)])

    def _blocks(self) -> list[tuple[int, int]]:
        ends = self.indptr[1:] + np.arange(1, len(self) + 1)
        cuts = np.searchsorted(ends, np.arange(_PAIRS, int(ends[-1]) + _PAIRS, _PAIRS), side="right")
        edges = np.unique(np.concatenate([[0], np.maximum(cuts, 1), [len(self)]]))
        return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))

    def _counts(self, block: tuple[int, int], own: Array, others: Array, duplicates: str) -> _Counts:
        if duplicates not in DUPLICATES:
            raise UnknownNameError("value of duplicates", duplicates, DUPLICATES)
        first, last = block
        start, stop = int(self.indptr[first]), int(self.indptr[last])
        ranked = self._checked(block, own, others)
        twins = _within(self.twins, start, stop)
        dropped = (
            _within(self.repeats, start, stop) if duplicates == "collapse" else np.zeros(0, dtype=np.int64)
        )
        if self.width is not None:
            rows = others.reshape(-1, self.width)
            higher, level = rows > own[:, None], rows == own[:, None]
        else:
            of_case = self._case_of[start:stop] - first
            higher, level = others > own[of_case], others == own[of_case]
        for marks in (higher, level):
            marks.reshape(-1)[twins] = False
            marks.reshape(-1)[dropped] = False
        above, tied = self._summed(higher, block), self._summed(level, block)
        size = self.sizes[first:last].copy()
        gone = np.concatenate([twins, dropped]) if duplicates == "collapse" else twins[:0]
        # A positive that is its own negative and repeated there is gone once.
        np.subtract.at(size, self._case_of[start:stop][np.unique(gone)] - first, 1)
        if duplicates == "pessimistic":
            np.add.at(above, self._case_of[start:stop][twins] - first, 1)
        ahead = np.zeros_like(tied)
        if tied.any():
            at = np.flatnonzero(level.reshape(-1))
            case = self._case_of[start:stop][at]
            np.add.at(ahead, case - first, self.negatives[start + at] < self.items[case])
        if ranked is not None:
            outside = ~ranked[1]
            outside.reshape(-1)[gone] = False  # what was collapsed is not counted out twice
            size -= self._summed(outside, block)
            above = np.where(ranked[0], above, -1)
        return _Counts(above, tied + 1, ahead, size + 1)

    def _summed(self, marks: Bool, block: tuple[int, int]) -> Int:
        """How many are marked in each case."""
        if self.width is not None:
            return np.asarray(np.count_nonzero(marks.reshape(-1, self.width), axis=1), dtype=np.int64)
        first, last = block
        total = np.concatenate([[0], np.cumsum(marks)])
        ends = self.indptr[first : last + 1] - self.indptr[first]
        return np.asarray(total[ends[1:]] - total[ends[:-1]], dtype=np.int64)

    def _checked(self, block: tuple[int, int], own: Array, others: Array) -> tuple[Bool, Bool] | None:
        """Which positives and negatives are candidates, where -inf says that some are not."""
        if np.isfinite(own).all() and np.isfinite(others).all():
            return None
        first, start = block[0], self.indptr[block[0]]
        for scores, case, items in (
            (own, np.arange(first, block[1]), self.items[first:]),
            (others, self._case_of[start:], self.negatives[start:]),
        ):
            bad = np.isnan(scores) | (scores == np.inf)
            if bad.any():
                at = int(np.argmax(bad))
                raise InputError(
                    f"the score of user {int(self.users[case[at]])} and item {int(items[at])} "
                    f"is {scores[at]}.",
                    table="scores",
                    hint="Scores are finite; -inf marks an item that is no candidate.",
                )
        candidate = others > -np.inf
        return own > -np.inf, candidate.reshape(-1, self.width) if self.width is not None else candidate

    def _counted(self, parts: list[_Counts]) -> CountedTruth:
        truth, order = self._truth
        whole = _Counts(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        moved = whole if order is None else _Counts(*(column[order] for column in whole))
        counts = {
            name: len(found)
            for name, found in (
                ("positive_among_negatives", self.twins),
                ("repeated_negatives", self.repeats),
            )
            if len(found)
        }
        return CountedTruth(truth, *moved, clusters=truth.clusters, counts=counts)


class _Counts(NamedTuple):
    """Of some cases: negatives above the positive, level with it and itself, before it by id, candidates."""

    above: Int
    tied: Int
    ahead: Int
    n_candidates: Int


def _within(sorted_places: Int, start: int, stop: int) -> Int:
    low, high = np.searchsorted(sorted_places, [start, stop])
    return sorted_places[low:high] - start


def _whole(values: Any, what: str) -> Int:
    array = as_array(values)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and len(array)):
        raise InputError(
            f"the {what} of the test set came as {array.dtype} with shape {array.shape}.",
            hint="Users and items are whole numbers: the rows of the model's tables.",
        )
    return array.astype(np.int64, copy=False)
