"""Judged items whose places were counted among all candidates, instead of looked up in lists.

The counterpart of judge.Paired: the same Hits, made of how many candidates score higher, how many tie
and how many of those stand before it by id.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from recsys.judge import Paired, place_in_groups, undecided
from recsys.types import Array, Float, Hits, Ids, Int, Interactions


@dataclass(frozen=True, eq=False)
class Counted:
    """One entry a judged item: candidates above it (-1: no candidate), level with it, before it by id."""

    truth: Interactions
    above: Int
    tied: Int
    ahead: Int
    n_candidates: Int
    clusters: Array | None = None
    item_weights: Float | None = None
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


Judged = Paired | Counted
