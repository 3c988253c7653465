"""Judged items whose places were counted among all candidates, instead of looked up in lists.

The counterpart of MatchedTruth: the same Hits, from the number of candidates that score higher, that tie,
and that tie with a smaller id.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from recsys.errors import NotDefinedError
from recsys.ranks.matching import MatchedTruth, count_undecided, place_in_groups
from recsys.types import Array, Bool, Codes, Float, Hits, Ids, Int, Interactions, Shown


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
    counts: dict[str, int] = field(default_factory=dict)
    _hits_by_rule: dict[str, Hits] = field(default_factory=dict)

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
        """True if any judged item ties with another candidate, else None."""
        return True if (self.tied > 1).any() else None

    def hits(self, ties: str, duplicates: str) -> Hits:
        """Hits under a rule for ties; `duplicates` has no effect, as a full ranking repeats nothing."""
        del duplicates
        rule = "by_id" if self.groups is None or ties == "given" else ties
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
        return (0, 0) if self.groups is None else count_undecided(self.hits("expected", "first"))

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


@dataclass(frozen=True, eq=False)
class ItemSubset:
    """The same rankings restricted to some items: only those count as relevant, found or shown.

    An item keeps the rank it has among all items.
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
    def _is_kept(self) -> Bool:
        return np.asarray(self.keep[self.whole.judged])

    @property
    def judged(self) -> Array:
        return self.whole.judged[self._is_kept]

    @property
    def grades(self) -> Float | None:
        return None if self.whole.grades is None else self.whole.grades[self._is_kept]

    @cached_property
    def truth_indptr(self) -> Int:
        n_kept = np.concatenate([[0], np.cumsum(self._is_kept)])
        return np.asarray(n_kept[self.whole.truth_indptr])

    def hits(self, ties: str, duplicates: str) -> Hits:
        """The hits of the whole ranking on these items."""
        hits = self.whole.hits(ties, duplicates)
        keep = self.keep[hits.item]
        case = np.repeat(np.arange(len(self.cases)), np.diff(self.truth_indptr))
        by_grade: Any = slice(None) if self.grades is None else np.lexsort((-self.grades, case))

        def select(values: Any) -> Any:
            return None if values is None else values[keep]

        return replace(
            hits,
            case=hits.case[keep],
            item=hits.item[keep],
            rank=hits.rank[keep],
            grade=select(hits.grade),
            tied=select(hits.tied),
            repeat=select(hits.repeat),
            weight=select(hits.weight),
            truth_indptr=self.truth_indptr,
            truth_grade=None if self.grades is None else self.grades[by_grade],
            truth_weight=None if self.item_weights is None else self.item_weights[self.judged][by_grade],
        )

    def shown(self, ties: str) -> Shown:
        """The entries of the lists that are these items, with their places."""
        whole = self.whole.shown(ties)
        keep = self.keep[whole.codes]
        places = whole.places
        if places is None:
            places = (np.arange(1, len(keep) + 1) - np.repeat(whole.indptr[:-1], whole.sizes)).astype(
                np.int32
            )
        indptr = np.concatenate([[0], np.cumsum(keep)])[whole.indptr]
        return Shown(indptr, whole.codes[keep], places[keep], whole.repeated)

    def n_undecided(self) -> tuple[int, int]:
        return 0, 0


RankedTruth = MatchedTruth | CountedTruth | ItemSubset


def union_items(truth: Interactions, items: Ids, indptr: Int, codes: Codes) -> tuple[Interactions, Shown]:
    """Truth and lists recoded to the union of their items: those of the model and those of the truth."""
    all_items, of_list, of_truth = items.union(truth.items, what="item")
    truth_codes = truth.codes if of_truth is None else of_truth[truth.codes]
    list_codes = codes if of_list is None else of_list[codes]
    return replace(truth, items=all_items, codes=truth_codes), Shown(indptr, list_codes)
