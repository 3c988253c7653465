"""Where the judged items landed, in one shape: matched in lists, counted among candidates, or part of either.

Whatever satisfies `RankedTruth` can be measured. Objects are frozen; a cache belongs to the object that
fills it, so a changed copy (`dataclasses.replace`) starts with an empty one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from recsys.types import Array, Bool, Float, Hits, Ids, Int, Shown


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
    def n_undecided(self) -> tuple[int, int]:
        """Judged items found, and how many of them share a score with an item of another grade."""


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


def place_in_groups(
    rule: str, case: Array, above: Int, size: Int, grade: Float | None
) -> tuple[Int, Int | None, Array]:
    """Ranks of hits in groups of equal scores, the group sizes for rule "expected", and the order by rank."""
    grades = np.ones(len(case)) if grade is None else grade
    if rule == "expected":
        return above + 1, size, np.lexsort((-grades, above, case))
    order = np.lexsort((-grades if rule == "best" else grades, above, case))
    starts = _group_starts(case[order], above[order])
    n_members = np.diff(np.concatenate([starts, [len(order)]]))
    place_in_group = np.arange(len(order)) - np.repeat(starts, n_members)
    if rule == "worst":
        place_in_group = place_in_group + size[order] - np.repeat(n_members, n_members)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = above[order] + 1 + place_in_group
    return rank, None, np.lexsort((rank, case))


def count_undecided(hits: Hits) -> tuple[int, int]:
    """The number of judged items found, and of those that share a score with an item of another grade."""
    if hits.tied is None or len(hits.case) == 0:
        return len(hits.case), 0
    grade = np.ones(len(hits.case)) if hits.grade is None else hits.grade
    starts = _group_starts(hits.case, hits.rank)
    n_members = np.diff(np.concatenate([starts, [len(grade)]]))
    low, high = np.minimum.reduceat(grade, starts), np.maximum.reduceat(grade, starts)
    mixed = ((n_members < hits.tied[starts]) & (high > 0)) | (low != high)
    return len(grade), int(n_members[mixed].sum())


def _group_starts(case: Array, rank: Array) -> Int:
    """The start of each (case, rank) in arrays sorted by both."""
    if len(case) == 0:
        return np.zeros(0, dtype=np.int64)
    change = (case[1:] != case[:-1]) | (rank[1:] != rank[:-1])
    return np.flatnonzero(np.concatenate([[True], change]))
