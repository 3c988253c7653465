"""Lists and truth brought together: one set of cases, one set of items, ties settled, Hits found.

Everything is found once and kept; a rule for ties is applied to the groups of equal scores only, and
where there are none all rules share the same Hits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from recsys import kernels
from recsys.errors import DuplicateError, InputError
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
    counts: dict[str, int] = field(default_factory=dict)
    _found: dict[str, Hits] = field(default_factory=dict)

    @cached_property
    def groups(self) -> tuple[Int, Int] | None:
        """For each list entry where its group of equal scores starts, and its size; None without ties."""
        if self.scores is None or len(self.scores) < 2:
            return None
        same = self.scores[1:] == self.scores[:-1]
        inner = self.list_indptr[1:-1]
        same[inner[(inner > 0) & (inner < len(self.scores))] - 1] = False
        if not same.any():
            return None
        starts = np.flatnonzero(np.r_[True, ~same])
        sizes = np.diff(np.r_[starts, len(self.scores)])
        return np.repeat(starts, sizes), np.repeat(sizes, sizes)

    def hits(self, ties: str, duplicates: str) -> Hits:
        """Hits under a rule for ties; a repeated item is an error where the conventions say so."""
        rule = "given" if self.groups is None else ties
        if rule not in self._found:
            self._found[rule] = self._judge(rule)
        if duplicates == "error" and self.counts["repeated_items"]:
            at = self.counts["first_repeated"]
            case = int(np.searchsorted(self.list_indptr, at, side="right")) - 1
            raise DuplicateError(
                f"user {self.cases.name(case)!r} was recommended item "
                f"{self.items.name(self.listed[at])!r} more than once.",
                table="lists",
                hint="Drop the repeats, or use duplicates='first', which counts an item at its first place.",
            )
        return self._found[rule]

    def _judge(self, rule: str, *, refuse_repeats: bool = True) -> Hits:
        listed = self._by_id(descending=rule == "by_id_desc") if rule.startswith("by_id") else self.listed
        found = kernels.match_lists(
            self.list_indptr,
            listed,
            self.truth_indptr,
            self.judged,
            backend=self.backend,  # type: ignore[arg-type]
            threads=self.threads,
        )
        self.counts.setdefault("repeated_items", found.n_repeated)
        self.counts.setdefault("first_repeated", found.first_repeated)
        case = found.case
        grade = None if self.grades is None else self.grades[found.truth]
        rank, tied, order = found.at - self.list_indptr[case] + 1, None, None
        if self.groups is not None and rule in ("best", "worst", "expected"):
            starts, sizes = self.groups
            if refuse_repeats:
                self._refuse_repeats(found, case, sizes)
            above = starts[found.at] - self.list_indptr[case]
            rank, tied, order = place_in_groups(rule, case, above, sizes[found.at], grade)
        hit = listed[found.at]
        pick = slice(None) if order is None else order
        weights = self.item_weights
        return Hits(
            n_cases=len(self.cases),
            case=case[pick],
            item=hit[pick],
            rank=rank[pick],
            grade=None if grade is None else grade[pick],
            n_listed=np.diff(self.list_indptr),
            truth_indptr=self.truth_indptr,
            truth_grade=self._grades_from_top,
            tied=None if tied is None else tied[pick],
            repeat=found.repeat[pick] if found.repeat.any() else None,
            weight=None if weights is None else weights[hit[pick]],
            truth_weight=None if weights is None else weights[self.judged][self._truth_from_top],
            n_candidates=np.diff(self.list_indptr) if self.complete else None,
        )

    def _refuse_repeats(self, found: kernels.Matches, case: Array, sizes: Int) -> None:
        """An item that ties with its own repeat has no first place to speak of."""
        again = np.flatnonzero(found.repeat)
        if len(again) == 0:
            return
        pairs = case.astype(np.int64) * len(self.items) + self.judged[found.truth]
        open_pairs = pairs[sizes[found.at] > 1]
        clash = again[np.isin(pairs[again], open_pairs)]
        if len(clash):
            at = clash[0]
            raise DuplicateError(
                f"user {self.cases.name(case[at])!r} was recommended item "
                f"{self.items.name(self.judged[found.truth[at]])!r} more than once, with a tied score.",
                table="lists",
                hint="Drop the repeats, or order ties with ties='by_id'.",
            )

    def _by_id(self, *, descending: bool) -> Codes:
        """List entries with equal scores put in order of their ids."""
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
        """The lists themselves; equal scores go by id where the rule for ties does not say."""
        kept = self.groups is None or ties == "given"
        listed = self.listed if kept else self._by_id(descending=ties == "by_id_desc")
        return Shown(self.list_indptr, listed, repeated=self.counts.get("repeated_items", 1) > 0)

    def n_undecided(self) -> tuple[int, int]:
        """Judged items found, and how many of them share a score with an item of another grade."""
        if self.groups is None:
            return 0, 0
        return undecided(self._judge("expected", refuse_repeats=False))

    @cached_property
    def _case_of_truth(self) -> Codes:
        return np.repeat(np.arange(len(self.cases), dtype=np.int32), np.diff(self.truth_indptr))

    @cached_property
    def _truth_from_top(self) -> Any:
        return slice(None) if self.grades is None else np.lexsort((-self.grades, self._case_of_truth))

    @cached_property
    def _grades_from_top(self) -> Float | None:
        return None if self.grades is None else self.grades[self._truth_from_top]


def place_in_groups(
    rule: str, case: Array, above: Int, size: Int, grade: Float | None
) -> tuple[Int, Int | None, Array]:
    """Ranks of hits inside groups of equal scores, group sizes where places stay open, and the rank order."""
    worth = np.ones(len(case)) if grade is None else grade
    if rule == "expected":
        return above + 1, size, np.lexsort((-worth, above, case))
    order = np.lexsort((-worth if rule == "best" else worth, above, case))
    first = _starts(case[order], above[order])
    members = np.diff(np.concatenate([first, [len(order)]]))
    inside = np.arange(len(order)) - np.repeat(first, members)
    if rule == "worst":
        inside = inside + size[order] - np.repeat(members, members)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = above[order] + 1 + inside
    return rank, None, np.lexsort((rank, case))


def undecided(hits: Hits) -> tuple[int, int]:
    """Judged items found, and how many of them share a score with an item of another grade."""
    if hits.tied is None or len(hits.case) == 0:
        return len(hits.case), 0
    grade = np.ones(len(hits.case)) if hits.grade is None else hits.grade
    first = _starts(hits.case, hits.rank)
    members = np.diff(np.concatenate([first, [len(grade)]]))
    low, high = np.minimum.reduceat(grade, first), np.maximum.reduceat(grade, first)
    mixed = ((members < hits.tied[first]) & (high > 0)) | (low != high)
    return len(grade), int(members[mixed].sum())


def _starts(case: Array, rank: Array) -> Int:
    """Where a new (case, rank) begins in arrays sorted by both."""
    if len(case) == 0:
        return np.zeros(0, dtype=np.int64)
    change = (case[1:] != case[:-1]) | (rank[1:] != rank[:-1])
    return np.flatnonzero(np.concatenate([[True], change]))


def pair(
    lists: Lists,
    truth: Interactions,
    *,
    complete: bool = False,
    backend: str = "auto",
    threads: int | None = None,
    shared: bool = True,
) -> MatchedTruth:
    """Lists and truth over the union of their cases and items; `shared`: some case must be on both sides."""
    _check_numbered(lists, truth)
    cases, case_of_list, case_of_truth = lists.cases.union(truth.cases, what="user")
    items, item_of_list, item_of_truth = lists.items.union(truth.items, what="item")
    if shared:
        _check_shared(lists, truth, cases)
    return MatchedTruth(
        cases,
        items,
        _spread(lists.indptr, case_of_list, len(cases)),
        _moved(lists.codes, item_of_list),
        lists.scores,
        _spread(truth.indptr, case_of_truth, len(cases)),
        _moved(truth.codes, item_of_truth),
        truth.grades,
        _joined_clusters(lists, truth, len(cases), (case_of_list, case_of_truth)),
        complete=complete,
        backend=backend,
        threads=threads,
    )


def _check_numbered(lists: Lists, truth: Interactions) -> None:
    n_lists, n_truth = lists.notes.get("numbered"), truth.notes.get("numbered")
    if n_lists is not None and n_truth is not None and n_lists != n_truth:
        raise InputError(
            f"lists has {n_lists} rows and truth has {n_truth}; without ids they are paired by place.",
            hint="Give both the same number of rows, or use dicts or tables with user ids.",
        )


def _check_shared(lists: Lists, truth: Interactions, cases: Ids) -> None:
    if len(cases) == len(lists.cases) + len(truth.cases) and len(lists.cases) and len(truth.cases):
        raise InputError(
            f"no user of the lists ({lists.cases.name(0)!r}, …) occurs in the truth "
            f"({truth.cases.name(0)!r}, …).",
            column="user",
            hint="Check that both sides use the same user ids.",
        )


def _spread(indptr: Int, moves: Codes | None, n_cases: int) -> Int:
    if moves is None:
        if len(indptr) == n_cases + 1:
            return indptr
        return np.concatenate([indptr, np.full(n_cases + 1 - len(indptr), indptr[-1])])
    sizes = np.zeros(n_cases + 1, dtype=np.int64)
    sizes[moves + 1] = np.diff(indptr)
    return np.cumsum(sizes)


def _moved(codes: Codes, moves: Codes | None) -> Codes:
    return codes if moves is None else moves[codes]


def _joined_clusters(
    lists: Lists, truth: Interactions, n_cases: int, moves: tuple[Codes | None, Codes | None]
) -> Array | None:
    both = ((lists.clusters, moves[0]), (truth.clusters, moves[1]))
    sides = [(clusters, move) for clusters, move in both if clusters is not None]
    if not sides:
        return None
    out = np.empty(n_cases, dtype=sides[0][0].dtype)
    known = np.zeros(n_cases, dtype=bool)
    for clusters, move in sides:
        at = np.arange(len(clusters)) if move is None else move
        clash = known[at] & (out[at] != clusters)
        if clash.any():
            raise InputError(
                "a case belongs to one user in the lists and to another in the truth.", column="user"
            )
        out[at], known[at] = clusters, True
    return out
