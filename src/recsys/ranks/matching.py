"""Lists matched with the truth: one set of cases, one set of items, ties resolved, Hits found.

Hits are computed once per rule for ties. A rule applies to groups of equal scores only; without any, all
rules share the same Hits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from recsys import kernels
from recsys.errors import DuplicateError, InputError
from recsys.ranks.ranked_truth import count_undecided, place_in_groups
from recsys.types import Array, Codes, Float, Hits, Ids, Int, Interactions, Lists, Shown


@dataclass(frozen=True, eq=False)
class MatchedTruth:
    """Lists and truth over the same cases and items."""

    cases: Ids
    items: Ids
    list_indptr: Int
    listed: Codes
    scores: Float | None
    truth_indptr: Int
    judged: Codes
    grades: Float | None
    clusters: Array | None = None
    item_weights: Float | None = None
    complete: bool = False
    backend: str = "auto"
    threads: int | None = None
    truth_counts: Mapping[str, int] = field(default_factory=dict)
    _hits_by_rule: dict[str, Hits] = field(default_factory=dict, init=False, repr=False)
    _repeats: dict[str, int] = field(default_factory=dict, init=False, repr=False)
    restricted = False

    @property
    def counts(self) -> Mapping[str, int]:
        """The counts of the truth, and how many list entries repeat an item once the lists were matched."""
        if not self._repeats:
            return self.truth_counts
        return {**self.truth_counts, "repeated_items": self._repeats["n"]}

    @cached_property
    def groups(self) -> tuple[Int, Int] | None:
        """For each list entry, the start and the size of its group of equal scores; None without ties."""
        if self.scores is None or len(self.scores) < 2:
            return None
        ties_previous = self.scores[1:] == self.scores[:-1]
        borders = self.list_indptr[1:-1]
        ties_previous[borders[(borders > 0) & (borders < len(self.scores))] - 1] = False
        if not ties_previous.any():
            return None
        starts = np.flatnonzero(np.r_[True, ~ties_previous])
        sizes = np.diff(np.r_[starts, len(self.scores)])
        return np.repeat(starts, sizes), np.repeat(sizes, sizes)

    @property
    def has_ties(self) -> bool:
        return self.groups is not None

    def hits(self, ties: str, duplicates: str) -> Hits:
        """Hits under a rule for ties; with duplicates="error" a repeated item is an error."""
        rule = "given" if self.groups is None else ties
        if rule not in self._hits_by_rule:
            self._hits_by_rule[rule] = self._find_hits(rule)
        if duplicates == "error" and self._repeats["n"]:
            at = self._repeats["first"]
            case = int(np.searchsorted(self.list_indptr, at, side="right")) - 1
            raise DuplicateError(
                f"user {self.cases.name(case)!r} was recommended item "
                f"{self.items.name(self.listed[at])!r} more than once.",
                table="lists",
                hint="Drop the repeats, or use duplicates='first', which counts an item at its first place.",
            )
        return self._hits_by_rule[rule]

    def _find_hits(self, rule: str, *, refuse_repeats: bool = True) -> Hits:
        listed = self.listed
        if rule.startswith("by_id"):
            listed = self._listed_by_id(descending=rule == "by_id_desc")
        matches = kernels.match_lists(
            self.list_indptr,
            listed,
            self.truth_indptr,
            self.judged,
            backend=self.backend,
            threads=self.threads,
        )
        self._repeats.setdefault("n", matches.n_repeated)
        self._repeats.setdefault("first", matches.first_repeated)
        case = matches.case
        grade = None if self.grades is None else self.grades[matches.truth]
        rank, tied, order = matches.at - self.list_indptr[case] + 1, None, None
        if self.groups is not None and rule in ("best", "worst", "expected"):
            starts, sizes = self.groups
            if refuse_repeats:
                self._refuse_tied_repeats(matches, case, sizes)
            above = starts[matches.at] - self.list_indptr[case]
            rank, tied, order = place_in_groups(rule, case, above, sizes[matches.at], grade)
        hit_items = listed[matches.at]
        by_rank = slice(None) if order is None else order
        weights = self.item_weights
        return Hits(
            n_cases=len(self.cases),
            case=case[by_rank],
            item=hit_items[by_rank],
            rank=rank[by_rank],
            grade=None if grade is None else grade[by_rank],
            n_listed=np.diff(self.list_indptr),
            truth_indptr=self.truth_indptr,
            truth_grade=self._sorted_grades,
            tied=None if tied is None else tied[by_rank],
            repeat=matches.repeat[by_rank] if matches.repeat.any() else None,
            weight=None if weights is None else weights[hit_items[by_rank]],
            truth_weight=None if weights is None else weights[self.judged][self._truth_by_grade],
            n_candidates=np.diff(self.list_indptr) if self.complete else None,
        )

    def _refuse_tied_repeats(self, matches: kernels.Matches, case: Array, sizes: Int) -> None:
        """Raise an error if an item ties with its own repeat: it has no first place."""
        repeats = np.flatnonzero(matches.repeat)
        if len(repeats) == 0:
            return
        pairs = case.astype(np.int64) * len(self.items) + self.judged[matches.truth]
        tied_pairs = pairs[sizes[matches.at] > 1]
        conflict = repeats[np.isin(pairs[repeats], tied_pairs)]
        if len(conflict):
            at = conflict[0]
            raise DuplicateError(
                f"user {self.cases.name(case[at])!r} was recommended item "
                f"{self.items.name(self.judged[matches.truth[at]])!r} more than once, with a tied score.",
                table="lists",
                hint="Drop the repeats, or order ties with ties='by_id'.",
            )

    def _listed_by_id(self, *, descending: bool) -> Codes:
        """The list entries, those with equal scores ordered by id."""
        if self.groups is None:
            return self.listed
        starts, sizes = self.groups
        tied = np.flatnonzero(sizes > 1)
        sign = -1 if descending else 1
        order = np.lexsort((sign * self.listed[tied].astype(np.int64), starts[tied]))
        listed = self.listed.copy()
        listed[tied] = self.listed[tied[order]]
        return listed

    def shown(self, ties: str) -> Shown:
        """The lists; equal scores are ordered by id if the rule for ties leaves their order open."""
        keep_order = self.groups is None or ties == "given"
        listed = self.listed if keep_order else self._listed_by_id(descending=ties == "by_id_desc")
        return Shown(self.list_indptr, listed, repeated=self._repeats.get("n", 1) > 0)

    def n_undecided(self) -> tuple[int, int]:
        """The number of judged items found, and of those that share a score with an item of another grade."""
        if self.groups is None:
            return 0, 0
        return count_undecided(self._find_hits("expected", refuse_repeats=False))

    @cached_property
    def _case_of_truth(self) -> Codes:
        return np.repeat(np.arange(len(self.cases), dtype=np.int32), np.diff(self.truth_indptr))

    @cached_property
    def _truth_by_grade(self) -> Any:
        return slice(None) if self.grades is None else np.lexsort((-self.grades, self._case_of_truth))

    @cached_property
    def _sorted_grades(self) -> Float | None:
        return None if self.grades is None else self.grades[self._truth_by_grade]


def match_truth(
    lists: Lists,
    truth: Interactions,
    *,
    complete: bool = False,
    backend: str = "auto",
    threads: int | None = None,
    shared: bool = True,
    counts: Mapping[str, int] | None = None,
) -> MatchedTruth:
    """Lists and truth over the union of their cases and items; `shared`: some case must be in both."""
    _check_row_counts(lists, truth)
    cases, case_of_list, case_of_truth = lists.cases.union(truth.cases, what="user")
    items, item_of_list, item_of_truth = lists.items.union(truth.items, what="item")
    if shared:
        _check_common_users(lists, truth, cases)
    return MatchedTruth(
        cases,
        items,
        _union_indptr(lists.indptr, case_of_list, len(cases)),
        _recode(lists.codes, item_of_list),
        lists.scores,
        _union_indptr(truth.indptr, case_of_truth, len(cases)),
        _recode(truth.codes, item_of_truth),
        truth.grades,
        _join_clusters(lists, truth, len(cases), (case_of_list, case_of_truth)),
        complete=complete,
        backend=backend,
        threads=threads,
        truth_counts=counts or {},
    )


def _check_row_counts(lists: Lists, truth: Interactions) -> None:
    n_lists, n_truth = lists.notes.get("numbered"), truth.notes.get("numbered")
    if n_lists is not None and n_truth is not None and n_lists != n_truth:
        raise InputError(
            f"lists has {n_lists} rows and truth has {n_truth}; without ids rows are paired by position.",
            hint="Give both the same number of rows, or use dicts or tables with user ids.",
        )


def _check_common_users(lists: Lists, truth: Interactions, cases: Ids) -> None:
    if len(cases) == len(lists.cases) + len(truth.cases) and len(lists.cases) and len(truth.cases):
        raise InputError(
            f"no user of the lists ({lists.cases.name(0)!r}, …) occurs in the truth "
            f"({truth.cases.name(0)!r}, …).",
            column="user",
            hint="Check that both sides use the same user ids.",
        )


def _union_indptr(indptr: Int, moves: Codes | None, n_cases: int) -> Int:
    if moves is None:
        if len(indptr) == n_cases + 1:
            return indptr
        return np.concatenate([indptr, np.full(n_cases + 1 - len(indptr), indptr[-1])])
    sizes = np.zeros(n_cases + 1, dtype=np.int64)
    sizes[moves + 1] = np.diff(indptr)
    return np.cumsum(sizes)


def _recode(codes: Codes, moves: Codes | None) -> Codes:
    return codes if moves is None else moves[codes]


def _join_clusters(
    lists: Lists, truth: Interactions, n_cases: int, moves: tuple[Codes | None, Codes | None]
) -> Array | None:
    pairs = ((lists.clusters, moves[0]), (truth.clusters, moves[1]))
    sides = [(clusters, move) for clusters, move in pairs if clusters is not None]
    if not sides:
        return None
    joined = np.empty(n_cases, dtype=sides[0][0].dtype)
    is_set = np.zeros(n_cases, dtype=bool)
    for clusters, move in sides:
        at = np.arange(len(clusters)) if move is None else move
        conflict = is_set[at] & (joined[at] != clusters)
        if conflict.any():
            raise InputError(
                "a case belongs to one user in the lists and to another in the truth.", column="user"
            )
        joined[at], is_set[at] = clusters, True
    return joined
