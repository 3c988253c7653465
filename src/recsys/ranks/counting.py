"""Judged items whose places were counted among all candidates, instead of looked up in lists.

The counterpart of judge.Paired: the same Hits, made of how many candidates score higher, how many tie
and how many of those stand before it by id.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from recsys.errors import NotDefinedError
from recsys.ranks.matching import MatchedTruth, place_in_groups, undecided
from recsys.types import Array, Bool, Codes, Float, Hits, Ids, Int, Interactions, Shown


@dataclass(frozen=True, eq=False)
class CountedTruth:
    """One entry a judged item: candidates above it (-1: no candidate), level with it, before it by id."""

    truth: Interactions
    above: Int
    tied: Int
    ahead: Int
    n_candidates: Int
    clusters: Array | None = None
    item_weights: Float | None = None
    lists: Shown | None = None
    counts: dict[str, int] = field(default_factory=dict)
    _found: dict[str, Hits] = field(default_factory=dict)

    @property
    def cases(self) -> Ids:
        return self.truth.cases

    @property
    def items(self) -> Ids:
        return self.truth.items

    @property
    def judged(self) -> Array:
        return self.truth.codes

    @property
    def grades(self) -> Float | None:
        return self.truth.grades

    @property
    def truth_indptr(self) -> Int:
        return self.truth.indptr

    @cached_property
    def groups(self) -> bool | None:
        """Whether any judged item ties with another candidate; None where none does."""
        return True if (self.tied > 1).any() else None

    def hits(self, ties: str, duplicates: str) -> Hits:
        """Hits under a rule for ties; a full ranking repeats nothing."""
        del duplicates
        rule = "by_id" if self.groups is None or ties == "given" else ties
        if rule not in self._found:
            self._found[rule] = self._judge(rule)
        return self._found[rule]

    def shown(self, ties: str) -> Shown:
        """The best candidates of each case; equal scores go by id."""
        del ties
        if self.lists is None:
            raise NotDefinedError("the lists were not asked for when the places were counted.")
        return self.lists

    def n_undecided(self) -> tuple[int, int]:
        return (0, 0) if self.groups is None else undecided(self.hits("expected", "first"))

    def _judge(self, rule: str) -> Hits:
        at = np.flatnonzero(self.above >= 0)
        all_cases = np.repeat(np.arange(len(self.cases), dtype=np.int32), self.truth.sizes)
        case, above, tied = all_cases[at], self.above[at], self.tied[at]
        grades = self.truth.grades
        grade = None if grades is None else grades[at]
        group_sizes: Int | None = None
        if rule in ("best", "worst", "expected"):
            rank, group_sizes, order = place_in_groups(rule, case, above, tied, grade)
        else:
            before = tied - 1 - self.ahead[at] if rule == "by_id_desc" else self.ahead[at]
            rank = above + 1 + before
            order = np.argsort(case * (rank.max(initial=0) + 1) + rank, kind="stable")
        top: Any = slice(None) if grades is None else np.lexsort((-grades, all_cases))
        weights = self.item_weights
        return Hits(
            n_cases=len(self.cases),
            case=case[order],
            item=self.judged[at][order],
            rank=rank[order],
            grade=None if grade is None else grade[order],
            n_listed=self.n_candidates,
            truth_indptr=self.truth.indptr,
            truth_grade=None if grades is None else grades[top],
            tied=None if group_sizes is None else group_sizes[order],
            weight=None if weights is None else weights[self.judged[at][order]],
            truth_weight=None if weights is None else weights[self.judged][top],
            n_candidates=self.n_candidates,
        )


@dataclass(frozen=True, eq=False)
class ItemSubset:
    """The same rankings, seen through some items only: what is relevant, found or shown is one of those.

    Places stay as they are: an item keeps the rank it has among all.
    """

    whole: MatchedTruth | CountedTruth
    keep: Bool

    @property
    def cases(self) -> Ids:
        return self.whole.cases

    @property
    def items(self) -> Ids:
        return self.whole.items

    @property
    def clusters(self) -> Array | None:
        return self.whole.clusters

    @property
    def item_weights(self) -> Float | None:
        return self.whole.item_weights

    @property
    def counts(self) -> dict[str, int]:
        return {}

    @property
    def groups(self) -> object:
        return self.whole.groups

    @cached_property
    def _wanted(self) -> Bool:
        return np.asarray(self.keep[self.whole.judged])

    @property
    def judged(self) -> Array:
        return self.whole.judged[self._wanted]

    @property
    def grades(self) -> Float | None:
        return None if self.whole.grades is None else self.whole.grades[self._wanted]

    @cached_property
    def truth_indptr(self) -> Int:
        kept = np.concatenate([[0], np.cumsum(self._wanted)])
        return np.asarray(kept[self.whole.truth_indptr])

    def hits(self, ties: str, duplicates: str) -> Hits:
        """The hits of the whole that are one of these items."""
        found = self.whole.hits(ties, duplicates)
        kept = self.keep[found.item]
        case = np.repeat(np.arange(len(self.cases)), np.diff(self.truth_indptr))
        top: Any = slice(None) if self.grades is None else np.lexsort((-self.grades, case))

        def of(values: Any) -> Any:
            return None if values is None else values[kept]

        return replace(
            found,
            case=found.case[kept],
            item=found.item[kept],
            rank=found.rank[kept],
            grade=of(found.grade),
            tied=of(found.tied),
            repeat=of(found.repeat),
            weight=of(found.weight),
            truth_indptr=self.truth_indptr,
            truth_grade=None if self.grades is None else self.grades[top],
            truth_weight=None if self.item_weights is None else self.item_weights[self.judged][top],
        )

    def shown(self, ties: str) -> Shown:
        """What the lists show of these items, at the places they have."""
        whole = self.whole.shown(ties)
        kept = self.keep[whole.codes]
        places = whole.places
        if places is None:
            places = (np.arange(1, len(kept) + 1) - np.repeat(whole.indptr[:-1], whole.sizes)).astype(
                np.int32
            )
        indptr = np.concatenate([[0], np.cumsum(kept)])[whole.indptr]
        return Shown(indptr, whole.codes[kept], places[kept], whole.repeated)

    def n_undecided(self) -> tuple[int, int]:
        return 0, 0


RankedTruth = MatchedTruth | CountedTruth | ItemSubset


def over_all_items(truth: Interactions, items: Ids, indptr: Int, codes: Codes) -> tuple[Interactions, Shown]:
    """Truth and lists over one set of items: those of the model and what the truth holds besides."""
    both, of_list, of_truth = items.union(truth.items, what="item")
    moved = truth.codes if of_truth is None else of_truth[truth.codes]
    listed = codes if of_list is None else of_list[codes]
    return replace(truth, items=both, codes=moved), Shown(indptr, listed)
