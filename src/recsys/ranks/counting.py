"""Judged items whose places were counted among all candidates, instead of looked up in lists.

The counterpart of MatchedTruth: the same Hits, from the number of candidates that score higher, that tie,
and that tie with a smaller id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from recsys.errors import NotDefinedError
from recsys.ranks.ranked_truth import count_undecided, place_in_groups
from recsys.types import Array, Codes, Float, Hits, Ids, Int, Interactions, Shown


@dataclass(frozen=True, eq=False)
class CountedTruth:
    """Per judged item: candidates above it (-1: it is no candidate), tied with it, tied with a smaller id."""

    truth: Interactions
    above: Int
    tied: Int
    ahead: Int
    n_candidates: Int
    clusters: Array | None = None
    item_weights: Float | None = None
    lists: Shown | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    _hits_by_rule: dict[str, Hits] = field(default_factory=dict, init=False, repr=False)
    restricted = False

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
    def has_ties(self) -> bool:
        return bool((self.tied > 1).any())

    def hits(self, ties: str, duplicates: str) -> Hits:
        """Hits under a rule for ties; `duplicates` has no effect, as a full ranking repeats nothing."""
        del duplicates
        rule = "by_id" if not self.has_ties or ties == "given" else ties
        if rule not in self._hits_by_rule:
            self._hits_by_rule[rule] = self._find_hits(rule)
        return self._hits_by_rule[rule]

    def shown(self, ties: str) -> Shown:
        """The best candidates of each case; equal scores are ordered by id."""
        del ties
        if self.lists is None:
            raise NotDefinedError("the lists were not requested when the places were counted.")
        return self.lists

    def n_undecided(self) -> tuple[int, int]:
        return count_undecided(self.hits("expected", "first")) if self.has_ties else (0, 0)

    def _find_hits(self, rule: str) -> Hits:
        candidates = np.flatnonzero(self.above >= 0)
        all_cases = np.repeat(np.arange(len(self.cases), dtype=np.int32), self.truth.sizes)
        case, above, tied = all_cases[candidates], self.above[candidates], self.tied[candidates]
        grades = self.truth.grades
        grade = None if grades is None else grades[candidates]
        group_sizes: Int | None = None
        if rule in ("best", "worst", "expected"):
            rank, group_sizes, order = place_in_groups(rule, case, above, tied, grade)
        else:
            ahead = self.ahead[candidates]
            n_before = tied - 1 - ahead if rule == "by_id_desc" else ahead
            rank = above + 1 + n_before
            order = np.argsort(case * (rank.max(initial=0) + 1) + rank, kind="stable")
        by_grade: Any = slice(None) if grades is None else np.lexsort((-grades, all_cases))
        weights = self.item_weights
        return Hits(
            n_cases=len(self.cases),
            case=case[order],
            item=self.judged[candidates][order],
            rank=rank[order],
            grade=None if grade is None else grade[order],
            n_listed=self.n_candidates,
            truth_indptr=self.truth.indptr,
            truth_grade=None if grades is None else grades[by_grade],
            tied=None if group_sizes is None else group_sizes[order],
            weight=None if weights is None else weights[self.judged[candidates][order]],
            truth_weight=None if weights is None else weights[self.judged][by_grade],
            n_candidates=self.n_candidates,
        )


def union_items(truth: Interactions, items: Ids, indptr: Int, codes: Codes) -> tuple[Interactions, Shown]:
    """Truth and lists recoded to the union of their items: those of the model and those of the truth."""
    all_items, of_list, of_truth = items.union(truth.items, what="item")
    truth_codes = truth.codes if of_truth is None else of_truth[truth.codes]
    list_codes = codes if of_list is None else of_list[codes]
    return replace(truth, items=all_items, codes=truth_codes), Shown(indptr, list_codes)
