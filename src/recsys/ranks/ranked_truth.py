"""Where the judged items landed, in one shape: matched in lists, counted among candidates, or part of either.

Whatever satisfies `RankedTruth` can be measured. Objects are frozen; a cache belongs to the object that
fills it, so a changed copy (`dataclasses.replace`) starts with an empty one. Hits are found once per rule for
ties. A rule applies to groups of equal scores only; without any, all rules share the same Hits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Protocol

import numpy as np

from recsys import kernels
from recsys.errors import DuplicateError, InputError, NotDefinedError, Phrase
from recsys.inputs.ids import differing_ids_hint
from recsys.inputs.nested_dicts import DictLists, DictTruth, is_graded
from recsys.ranks.ties import (
    TiedHits,
    ahead_by_id,
    count_undecided,
    groups_of_ties,
    order_by_id,
    rule_of_hits,
)
from recsys.records.arrays import (
    Array,
    Bool,
    Codes,
    Float,
    Hits,
    Ids,
    Int,
    Interactions,
    Lists,
    Shown,
    cached_property,
    is_in,
    is_repeat,
    runs,
    sorted_unique,
)

_LAST_PLACE = 1 << 24


class RankedTruth(Protocol):
    """The cases, the judged items of each, and the places they have under a rule for ties."""

    @property
    def cases(self) -> Ids: ...
    @property
    def items(self) -> Ids: ...
    @property
    def clusters(self) -> Array | None: ...
    @property
    def item_weights(self) -> Float | None: ...
    @property
    def judged(self) -> Array:
        """The item code of every judged item, case after case."""

    @property
    def grades(self) -> Float | None: ...
    @property
    def truth_indptr(self) -> Int: ...
    @property
    def has_ties(self) -> bool:
        """Whether any item shares its score with another."""

    @property
    def restricted(self) -> bool:
        """Whether these are some items only of rankings that hold others too."""

    @property
    def counts(self) -> Mapping[str, int]:
        """What was counted on the way here, such as judged items outside the catalogue."""

    def hits(self, ties: str, duplicates: str) -> Hits: ...
    def shown(self, ties: str) -> Shown: ...
    def of_judged(self) -> RankedTruth:
        """Return the same rankings of the judged items alone: all others give up their places."""

    def without_repeats(self) -> RankedTruth:
        """Return the same rankings with each item at its first place only: its repeats give theirs up."""

    def n_undecided(self) -> tuple[int, int]:
        """Judged items found, and how many of them share a score with an item of another grade."""


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
    given_none: Bool | None = None
    ranks: Int | None = None  # the place of each list entry, where places in between are empty
    complete: bool = False
    backend: str = "auto"
    threads: int | None = None
    truth_counts: Mapping[str, int] = field(default_factory=dict)
    _hits_by_rule: dict[str, Hits] = field(default_factory=dict, init=False, repr=False)
    restricted = False

    @cached_property
    def matches(self) -> kernels.Matches:
        """The list entries that are judged items: found once, in the order of the lists, for all rules."""
        return kernels.match_lists(
            self.list_indptr,
            self.listed,
            self.truth_indptr,
            self.judged,
            backend=self.backend,
            threads=self.threads,
        )

    @property
    def counts(self) -> Mapping[str, int]:
        """The counts of the truth, and how many list entries repeat an item."""
        return {**self.truth_counts, "repeated_items": self.matches.n_repeated}

    @cached_property
    def groups(self) -> tuple[Int, Int] | None:
        """For each list entry, the start and the size of its group of equal scores; None without ties."""
        return None if self.scores is None else groups_of_ties(self.scores, self.list_indptr)

    @cached_property
    def _ahead_by_id(self) -> Int:
        return np.zeros(0, np.int64) if self.groups is None else ahead_by_id(self.listed, self.groups)

    @cached_property
    def _truth_columns(self) -> dict[str, Any]:
        return truth_by_grade(self)

    @property
    def has_ties(self) -> bool:
        return self.groups is not None

    def hits(self, ties: str, duplicates: str) -> Hits:
        """Hits under a rule for ties; with duplicates="error" a repeated item is an error.

        Best and worst are orders of one metric: like expected, they leave the ties in (`Hits.tied`).
        """
        rule = "given" if self.groups is None else rule_of_hits(ties)
        if rule not in self._hits_by_rule:
            self._hits_by_rule[rule] = self._find_hits(rule)
        if duplicates == "error" and self.matches.n_repeated:
            at = self.matches.first_repeated
            case = int(np.searchsorted(self.list_indptr, at, side="right")) - 1
            raise DuplicateError(
                f"user {self.cases.name(case)!r} was recommended item "
                f"{self.items.name(self.listed[at])!r} more than once.",
                table="lists",
                hint=Phrase("Drop the repeats, or count an item at its first place: {duplicates='first'}."),
            )
        return self._hits_by_rule[rule]

    def _find_hits(self, rule: str, *, refuse_repeats: bool = True) -> Hits:
        matches = self.matches
        case, repeat, hit_items = matches.case, matches.repeat, self.listed[matches.at]
        grade = None if self.grades is None else self.grades[matches.truth]
        tied: Int | None = None
        by_rank: Any = slice(None)
        if self.groups is not None:
            starts, sizes = (column[matches.at] for column in self.groups)
            if refuse_repeats and rule == "expected":
                self._refuse_tied_repeats(sizes)
            above, as_given = starts - self.list_indptr[case], matches.at - starts
            by_id = self._ahead_by_id[matches.at] if rule.startswith("by_id") else as_given
            found = TiedHits(case, hit_items, grade, above, sizes, by_id, as_given)
            rank, tied, by_rank = found.places(rule)
            if rule != "expected" and repeat.any():  # which of two comes first depends on the rule
                repeat = repeat.copy()
                repeat[by_rank] = is_repeat(matches.truth[by_rank])
        elif self.ranks is not None:
            rank = self.ranks[matches.at]
        else:
            rank = matches.at - self.list_indptr[case] + 1
        n_listed = self.list_indptr[1:] - self.list_indptr[:-1]
        if self.ranks is not None:
            n_listed = np.where(n_listed > 0, np.append(self.ranks, 0)[self.list_indptr[1:] - 1], 0)
        weights = self.item_weights
        return Hits(
            n_cases=len(self.cases),
            case=case[by_rank],
            item=hit_items[by_rank],
            rank=rank[by_rank],
            grade=None if grade is None else grade[by_rank],
            n_listed=n_listed,
            tied=None if tied is None else tied[by_rank],
            repeat=repeat[by_rank] if repeat.any() else None,
            weight=None if weights is None else weights[hit_items[by_rank]],
            n_candidates=n_listed if self.complete else None,
            given_none=self.given_none,
            **self._truth_columns,
        )

    def _refuse_tied_repeats(self, sizes: Int) -> None:
        """Raise an error if an item ties with its own repeat: it has no first place."""
        matches = self.matches
        repeats = np.flatnonzero(matches.repeat)
        if len(repeats) == 0:
            return
        conflict = repeats[np.isin(matches.truth[repeats], matches.truth[sizes > 1])]
        if len(conflict):
            at = conflict[0]
            raise DuplicateError(
                f"user {self.cases.name(matches.case[at])!r} was recommended item "
                f"{self.items.name(self.judged[matches.truth[at]])!r} more than once, with a tied score.",
                table="lists",
                hint=Phrase("Drop the repeats, or order ties with {ties='by_id'}."),
            )

    def shown(self, ties: str) -> Shown:
        """Return the lists; equal scores are ordered by id if the rule for ties leaves their order open."""
        listed = self.listed
        if self.groups is not None and ties != "given":
            listed = order_by_id(listed, self.groups, self._ahead_by_id, descending=ties == "by_id_desc")
        above: Int | None = None
        tied: Int | None = None
        if self.groups is not None and ties in ("best", "worst"):
            starts, tied = self.groups
            above = starts - np.repeat(self.list_indptr[:-1], np.diff(self.list_indptr))
        places = None if self.ranks is None else self.ranks.astype(np.int32)
        repeated = self.matches.n_repeated > 0
        return Shown(self.list_indptr, listed, places, repeated=repeated, above=above, tied=tied)

    def of_judged(self) -> MatchedTruth:
        keep = self.matches.at
        return replace(
            self,
            list_indptr=np.searchsorted(keep, self.list_indptr),
            listed=self.listed[keep],
            scores=None if self.scores is None else self.scores[keep],
            ranks=None,
            given_none=np.diff(self.list_indptr) == 0,
        )

    def without_repeats(self) -> MatchedTruth:
        """Return the lists closed up: of equal items the first stays, which has the highest score."""
        if not self.matches.n_repeated:
            return self
        case = np.repeat(np.arange(len(self.cases), dtype=np.int64), np.diff(self.list_indptr))
        repeats = is_repeat(case * len(self.items) + self.listed)
        keep = np.flatnonzero(~repeats)
        n_before = np.concatenate([[0], np.cumsum(repeats)])
        above = n_before[:-1] - n_before[self.list_indptr[:-1]][case]
        return replace(
            self,
            list_indptr=np.searchsorted(keep, self.list_indptr),
            listed=self.listed[keep],
            scores=None if self.scores is None else self.scores[keep],
            ranks=None if self.ranks is None else (self.ranks - above)[keep],
        )

    def n_undecided(self) -> tuple[int, int]:
        """Count the judged items found, and those that share a score with an item of another grade."""
        if self.groups is None:
            return 0, 0
        return count_undecided(self._find_hits("expected", refuse_repeats=False))


def match_truth(
    lists: Lists,
    truth: Interactions,
    *,
    complete: bool = False,
    backend: str = "auto",
    threads: int | None = None,
    shared: bool = True,
    rank_gaps: str = "closed",
    places_only: bool = False,
) -> MatchedTruth | WalkedTruth:
    """Lists and truth over the union of their cases and items.

    `shared`: some case must be in both. `places_only`: no metric asks which items are at the places.
    """
    if places_only and isinstance(lists, DictLists) and isinstance(truth, DictTruth):
        of_one_walk = lists.walk is not None and lists.walk is truth.walk and not truth.n_negative
        if of_one_walk and not complete and backend != "reference":
            return WalkedTruth(lists.walk)
    n_lists, n_truth = lists.facts.n_rows, truth.facts.n_rows
    if n_lists is not None and n_truth is not None and n_lists != n_truth:
        raise InputError(
            f"lists has {n_lists} rows and truth has {n_truth}; without ids rows are paired by position.",
            hint="Give both the same number of rows, or use dicts or tables with user ids.",
        )
    cases, case_of_list, case_of_truth = lists.cases.union(truth.cases, what="user")
    items, item_of_list, item_of_truth = lists.items.union(truth.items, what="item")
    separate = len(cases) == len(lists.cases) + len(truth.cases)
    if shared and separate and len(lists.cases) and len(truth.cases):
        raise InputError(
            f"no user of the lists ({lists.cases.name(0)!r}, …) occurs in the truth "
            f"({truth.cases.name(0)!r}, …).",
            column="user",
            hint=differing_ids_hint(lists.cases, truth.cases, "user"),
        )
    return MatchedTruth(
        cases,
        items,
        _union_indptr(lists.indptr, case_of_list, len(cases)),
        lists.codes if item_of_list is None else item_of_list[lists.codes],
        lists.scores,
        _union_indptr(truth.indptr, case_of_truth, len(cases)),
        truth.codes if item_of_truth is None else item_of_truth[truth.codes],
        truth.grades,
        _join_clusters(lists, truth, cases, (case_of_list, case_of_truth)),
        ranks=_kept_ranks(lists, complete=complete) if rank_gaps == "kept" else None,
        complete=complete,
        backend=backend,
        threads=threads,
    )


def _kept_ranks(lists: Lists, *, complete: bool) -> Int | None:
    """Return the ranks that the lists came with; None if they leave none out."""
    ranks = lists.ranks
    if ranks is None:
        return None
    if complete:
        raise InputError(
            "the lists leave ranks out, so they do not rank every candidate.",
            table="lists",
            column="rank",
            hint=Phrase("Leave out {full_ranking=True}, or use {rank_gaps='closed'}."),
        )
    if ranks.max(initial=0) > _LAST_PLACE:
        raise InputError(
            f"a rank of {ranks.max():,} leaves millions of places empty.",
            table="lists",
            column="rank",
            hint=Phrase("Number the places of each list from 1, or use {rank_gaps='closed'}."),
        )
    return ranks


def _union_indptr(indptr: Int, moves: Codes | None, n_cases: int) -> Int:
    if moves is None:
        if len(indptr) == n_cases + 1:
            return indptr
        return np.concatenate([indptr, np.full(n_cases + 1 - len(indptr), indptr[-1])])
    sizes = np.zeros(n_cases + 1, dtype=np.int64)
    sizes[moves + 1] = np.diff(indptr)
    return np.cumsum(sizes)


def _join_clusters(
    lists: Lists, truth: Interactions, cases: Ids, moves: tuple[Codes | None, Codes | None]
) -> Array | None:
    pairs = ((lists.clusters, moves[0]), (truth.clusters, moves[1]))
    sides = [(clusters, move) for clusters, move in pairs if clusters is not None]
    if not sides:
        return None
    joined = np.empty(len(cases), dtype=sides[0][0].dtype)
    is_set = np.zeros(len(cases), dtype=bool)
    for clusters, move in sides:
        at = np.arange(len(clusters)) if move is None else move
        conflict = is_set[at] & (joined[at] != clusters)
        if conflict.any():
            raise InputError(
                "a case belongs to one user in the lists and to another in the truth.", column="user"
            )
        joined[at], is_set[at] = clusters, True
    if not is_set.all():
        raise InputError(
            f"case {cases.name(np.argmin(is_set))!r} has no user: only one of lists and truth has a column "
            "of users.",
            column="user",
            hint="Give both tables a user column.",
        )
    return joined


@dataclass(frozen=True, eq=False)
class CountedTruth:
    """Per judged item: candidates above it (-1: not a candidate), tied with it, tied with a smaller id.

    `lists` are over the items of the truth as well; `top` the same with scores, if they were asked for.
    """

    truth: Interactions
    above: Int
    tied: Int
    ahead: Int
    n_candidates: Int
    clusters: Array | None = None
    item_weights: Float | None = None
    lists: Shown | None = None
    top: Lists | None = None
    given_none: Bool | None = None
    truth_counts: Mapping[str, int] = field(default_factory=dict)
    _hits_by_rule: dict[str, Hits] = field(default_factory=dict, init=False, repr=False)
    restricted = False

    @property
    def counts(self) -> Mapping[str, int]:
        return self.truth_counts

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
        rule = rule_of_hits(ties) if self.has_ties else "by_id"
        if rule in self._hits_by_rule:
            return self._hits_by_rule[rule]
        candidates = np.flatnonzero(self.above >= 0)
        all_cases = np.repeat(np.arange(len(self.cases), dtype=np.int32), self.truth.sizes)
        case, above, tied = all_cases[candidates], self.above[candidates], self.tied[candidates]
        grade = None if self.grades is None else self.grades[candidates]
        item, ahead = self.judged[candidates], self.ahead[candidates]
        rank, group_sizes, order = TiedHits(case, item, grade, above, tied, ahead).places(rule)
        item = item[order]
        self._hits_by_rule[rule] = Hits(
            n_cases=len(self.cases),
            case=case[order],
            item=item,
            rank=rank[order],
            grade=None if grade is None else grade[order],
            n_listed=self.n_candidates,
            tied=None if group_sizes is None else group_sizes[order],
            weight=None if self.item_weights is None else self.item_weights[item],
            n_candidates=self.n_candidates,
            given_none=self.given_none,
            **truth_by_grade(self),
        )
        return self._hits_by_rule[rule]

    def of_judged(self) -> CountedTruth:
        """Keep judged items alone: two of a case tie where equally many candidates are above them."""
        case = np.repeat(np.arange(len(self.cases), dtype=np.int32), self.truth.sizes)
        candidates = np.flatnonzero(self.above >= 0)
        order = candidates[np.lexsort((candidates, self.above[candidates], case[candidates]))]
        sizes = np.bincount(case[candidates], minlength=len(self.cases)).astype(np.int64)
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        starts, n_tied = runs(case[order], self.above[order])
        first = np.repeat(starts, n_tied)
        above, tied, ahead = (np.full(len(self.above), fill) for fill in (-1, 0, 0))
        above[order] = first - indptr[case[order]]
        tied[order] = np.repeat(n_tied, n_tied)
        ahead[order] = np.arange(len(order)) - first
        return replace(
            self,
            above=above,
            tied=tied,
            ahead=ahead,
            n_candidates=sizes,
            lists=None if self.lists is None else Shown(indptr, self.judged[order]),
            given_none=self.n_candidates == 0,
        )

    def without_repeats(self) -> CountedTruth:
        """Return these rankings: a full ranking repeats nothing."""
        return self

    def shown(self, ties: str) -> Shown:
        """Return the best candidates of each case; equal scores are ordered by id."""
        if self.lists is None:
            raise NotDefinedError("the lists were not requested when the places were counted.")
        return replace(self.lists, ties_known=ties not in ("best", "worst"))

    def n_undecided(self) -> tuple[int, int]:
        return count_undecided(self.hits("expected", "first")) if self.has_ties else (0, 0)


@dataclass(frozen=True, eq=False)
class WalkedTruth:
    """The judged items of nested dicts and their places; items have no codes, so no metric may read them."""

    walk: kernels.DictRanks
    truth_counts: Mapping[str, int] = field(default_factory=dict)
    clusters = None
    item_weights = None
    restricted = False
    items = Ids(np.zeros(0, dtype=object))

    @cached_property
    def cases(self) -> Ids:
        values = np.empty(len(self.walk.cases), dtype=object)
        values[self.walk.codes] = np.fromiter(self.walk.cases, dtype=object, count=len(values))
        return Ids(values)

    @cached_property
    def judged(self) -> Array:
        return np.zeros(int(self.truth_indptr[-1]), dtype=np.int32)

    @property
    def grades(self) -> Float | None:
        return self.walk.truth_grade if is_graded(self.walk) else None

    @property
    def truth_indptr(self) -> Int:
        return self.walk.truth_indptr

    @property
    def has_ties(self) -> bool:
        return self.walk.has_ties

    @property
    def counts(self) -> Mapping[str, int]:
        return {**self.truth_counts, "repeated_items": 0}

    def hits(self, ties: str, duplicates: str) -> Hits:
        """Hits under a rule for ties; `duplicates` has no effect, as a dict repeats nothing."""
        del duplicates
        walk, rule = self.walk, rule_of_hits(ties)
        rank, tied = walk.above + 1, None
        order: Any = slice(None)
        if walk.ties is not None:
            equal, by_id, as_given = walk.ties
            found = TiedHits(walk.case, by_id, walk.grade, walk.above, equal, by_id, as_given)
            rank, tied, order = found.places(rule)
        elif walk.has_ties and rule == "expected":
            tied = np.ones(len(rank), dtype=np.int64)
        return Hits(
            n_cases=len(walk.cases),
            case=walk.case[order],
            item=np.zeros(len(rank), dtype=np.int32),
            rank=rank[order],
            grade=walk.grade[order] if is_graded(walk) else None,
            n_listed=walk.n_listed,
            truth_indptr=walk.truth_indptr,
            truth_grade=self.grades,
            tied=None if tied is None else tied[order],
        )

    def n_undecided(self) -> tuple[int, int]:
        return count_undecided(self.hits("expected", "first")) if self.has_ties else (0, 0)

    def without_repeats(self) -> WalkedTruth:
        """Return these rankings: a dict repeats nothing."""
        return self

    def shown(self, ties: str) -> NoReturn:
        raise NotDefinedError(f"the items of nested dicts have no codes here (ties={ties!r}).")

    def of_judged(self) -> NoReturn:
        raise NotDefinedError("places among judged items are found the general way.")


@dataclass(frozen=True, eq=False)
class ItemSubset:
    """The same rankings restricted to some items: only those count as relevant, found or shown.

    An item keeps the rank it has among all items.
    """

    whole: RankedTruth
    keep: Bool
    restricted = True

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
    def counts(self) -> Mapping[str, int]:
        return {}

    @property
    def has_ties(self) -> bool:
        return self.whole.has_ties

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
        """Return the hits of the whole ranking on these items."""
        hits = self.whole.hits(ties, duplicates)
        keep = self.keep[hits.item]

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
            **truth_by_grade(self),
        )

    def shown(self, ties: str) -> Shown:
        """Return the entries of the lists that are these items, with their places."""
        whole = self.whole.shown(ties)
        keep = self.keep[whole.codes]
        places = whole.place_of_entries()
        indptr = np.concatenate([[0], np.cumsum(keep)])[whole.indptr]
        above = None if whole.above is None else whole.above[keep]
        tied = None if whole.tied is None else whole.tied[keep]
        return replace(
            whole, indptr=indptr, codes=whole.codes[keep], places=places[keep], above=above, tied=tied
        )

    def of_judged(self) -> ItemSubset:
        return replace(self, whole=self.whole.of_judged())

    def without_repeats(self) -> ItemSubset:
        return replace(self, whole=self.whole.without_repeats())

    def n_undecided(self) -> tuple[int, int]:
        return 0, 0


def in_history(truth: Interactions | Lists, seen: Interactions | Lists) -> Bool:
    """Return whether a history, or lists, hold each pair of the truth, or of lists, too."""
    seen.cases.same_kind(truth.cases, what="user")
    seen.items.same_kind(truth.items, what="item")
    width = max(len(seen.items), 1)
    seen_pairs = np.repeat(np.arange(len(seen.cases), dtype=np.int64), seen.sizes) * width + seen.codes
    case = np.repeat(seen.cases.code_of(truth.cases.values), truth.sizes)
    item = seen.items.code_of(truth.items.values)[truth.codes]
    known = (case >= 0) & (item >= 0)
    return np.asarray(known & is_in(case * width + item, sorted_unique(seen_pairs)))


def without_history(lists: Lists, history: Interactions) -> tuple[Lists, int]:
    """Return the lists without the items that their users had before, and how many those were."""
    kept = ~in_history(lists, history)
    if kept.all():
        return lists, 0
    ends = np.concatenate([[0], np.cumsum(kept)])[lists.indptr]
    scores = None if lists.scores is None else lists.scores[kept]
    shorter = replace(lists, indptr=ends, codes=lists.codes[kept], scores=scores, ranks=None)
    return shorter, int((~kept).sum())


def truth_by_grade(ranked: RankedTruth) -> dict[str, Any]:
    """Return the columns of `Hits` about the truth: the judged items of each case, highest grade first."""
    grades, weights = ranked.grades, ranked.item_weights
    order: Any = slice(None)
    if grades is not None:
        case = np.repeat(np.arange(len(ranked.cases), dtype=np.int32), np.diff(ranked.truth_indptr))
        order = np.lexsort((-grades, case))
    return {
        "truth_indptr": ranked.truth_indptr,
        "truth_grade": None if grades is None else grades[order],
        "truth_weight": None if weights is None else weights[ranked.judged][order],
    }
