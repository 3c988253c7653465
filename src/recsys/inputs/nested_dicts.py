"""Nested dicts of text ids, {case: {item: number}}: the form of pytrec_eval, ranx and BEIR.

A compiled walk over lists and truth finds the places of the judged items at once, without a code for every
item. Both are Lists and Interactions like any others: columns are made when they are first looked at.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from recsys.inputs.ids import encode, object_array
from recsys.inputs.rows import Rows, to_interactions, to_lists
from recsys.kernels import DictRanks, rank_dicts
from recsys.records.arrays import Array, Int, Interactions, Lists, cached_property
from recsys.records.read_facts import ReadFacts

_MANY_USERS = 32  # with fewer, reading them like any container takes no time


def read_dicts(lists: Any, truth: Any) -> tuple[DictLists, DictTruth] | None:
    """Return two nested dicts as lists and truth; None if there are few users, or the walk does not apply."""
    for side in (lists, truth):
        many = isinstance(side, dict) and len(side) >= _MANY_USERS
        if not (many and isinstance(next(iter(side.values())), dict)):
            return None
    walk = rank_dicts(lists, truth, keep=True)
    return None if walk is None or not has_data(walk) else (DictLists.of(walk), DictTruth.of(walk))


def has_data(walk: DictRanks) -> bool:
    """Return whether there are items on both sides and a case of both; if not, reading raises an error."""
    read = walk.read
    n_shared = len(walk.cases) if read is None else np.count_nonzero(read.in_truth[: walk.n_of_run])
    return bool(n_shared and walk.n_listed.any() and walk.truth_indptr[-1] + walk.n_negative)


def is_graded(walk: DictRanks) -> bool:
    """Return whether any grade is not 1."""
    return not walk.lowest == walk.highest == 1.0


def _column(name: str) -> Any:
    return cached_property(lambda side: getattr(side.as_read, name))


class DictLists(Lists):
    """The lists of a walk; one with changes (`dataclasses.replace`) has columns of its own, and no walk."""

    walk: Any = None
    id_kinds: Any = ("str", "str")
    cases, items, indptr, codes, scores = map(_column, ("cases", "items", "indptr", "codes", "scores"))

    @classmethod
    def of(cls, walk: DictRanks) -> Self:
        """Return the lists of a walk that kept what it read."""
        lists = cls.__new__(cls)
        vars(lists)["walk"] = walk
        return lists

    @cached_property
    def as_read(self) -> Lists:
        """The lists with their columns."""
        read, of_run = self.walk.read, slice(self.walk.n_of_run)
        names, sizes = object_array(self.walk.cases[of_run]), read.list_sizes[of_run]
        return to_lists(_rows("lists", names, sizes, read.listed, score=read.scores))


class DictTruth(Interactions):
    """The truth of a walk, as `DictLists`."""

    walk: Any = None
    id_kinds: Any = ("str", "str")
    cases, items, indptr, codes, grades = map(_column, ("cases", "items", "indptr", "codes", "grades"))

    @classmethod
    def of(cls, walk: DictRanks) -> Self:
        """Return the truth of a walk that kept what it read."""
        truth = cls.__new__(cls)
        vars(truth)["walk"] = walk
        if walk.n_negative:
            vars(truth)["facts"] = ReadFacts(negative_grades=walk.n_negative)
        return truth

    @cached_property
    def as_read(self) -> Interactions:
        """The truth with its columns."""
        read, in_truth = self.walk.read, self.walk.read.in_truth.astype(bool)
        names, sizes = object_array(self.walk.cases)[in_truth], read.truth_sizes[in_truth]
        rows = _rows("truth", names, sizes, read.judged, grade=read.grades)
        truth = to_interactions(rows, negatives=True)
        return truth if self.n_negative == truth.n_negative else truth.without_negatives()

    @cached_property
    def highest_grade(self) -> float | None:
        """The highest grade; None where all are 1."""
        walk: DictRanks | None = self.walk
        if walk is None:
            return super().highest_grade
        return walk.highest if is_graded(walk) else None

    @cached_property
    def n_negative(self) -> int:
        """How many grades are negative."""
        return super().n_negative if self.walk is None else int(self.walk.n_negative)

    def without_negatives(self) -> Interactions:
        """Return the judged items whose places the walk found."""
        if self.walk is None or not self.n_negative:
            return super().without_negatives()
        truth = self.of(self.walk)
        vars(truth)["n_negative"] = 0
        return truth


def _rows(table: str, names: Array, sizes: Int, items: list[str], **numbers: Any) -> Rows:
    """Return the rows of one side, case after case in the order they were met."""
    cases, codes = encode(names, table=table, column="user")
    item_ids, item = encode(object_array(items), table=table, column="item")
    return Rows(table, cases, np.repeat(codes, sizes), item_ids, item, **numbers)
