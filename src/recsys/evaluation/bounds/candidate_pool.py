"""Who may be shown what: the candidates of each case, and how many places its list has.

Pairs of case and item are stored, never a table of cases x items: either the few that are barred (what the
user has seen), or the few that are allowed (what is eligible, or what a complete list holds).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from recsys.evaluation.engine import Readings
from recsys.evaluation.exposure import resolve_catalogue
from recsys.ranks.counting import CountedTruth, RankedTruth
from recsys.ranks.matching import MatchedTruth
from recsys.types import Array, Bool, Catalogue, Context, Float, Ids, Int, Interactions, entries_of_cases

T = TypeVar("T")
BLOCK = 1 << 22  # cells that are processed together
_MAX_UNNAMED = 1 << 22  # the most items that the catalogue counts without naming them
_MASKED = (
    "some candidates were taken away by scores of -inf, and which ones is not kept: pass seen= or eligible="
)
_TOO_FEW = "the catalogue is said to hold fewer items than occur: pass catalogue= with all item ids"
_TOO_MANY = "nearly all items of the catalogue are known by their number only: pass catalogue= with their ids"


class CandidatePool:
    """The candidates of an evaluation, in the codes of one set of items: `items`."""

    def __init__(self, judged: RankedTruth, context: Context, seen: Interactions | None) -> None:
        self.judged = judged
        self.user_context = context
        self._seen = seen
        self._cache: dict[Hashable, Any] = {}
        self._hits = judged.hits("by_id", "first")

    @property
    def n_cases(self) -> int:
        return len(self.judged.cases)

    @cached_property
    def catalogue(self) -> Catalogue:
        """All items."""
        judged, known = self.judged, self.user_context
        tables: list[tuple[Ids, Array]] = [(judged.items, judged.judged)]
        if isinstance(judged, MatchedTruth):
            tables.append((judged.items, judged.shown("by_id").codes))
        if known.train is not None:
            tables.append((known.train.items, np.flatnonzero(known.train.item_counts)))
        return resolve_catalogue(known.catalogue, known.n_items, tables)

    @cached_property
    def context(self) -> Context:
        """The user's context; a catalogue that was inferred stays the same, whatever lists are measured."""
        if self.catalogue.how != "found":
            return self.user_context
        return replace(self.user_context, catalogue=self.catalogue.ids, n_items=self.catalogue.n)

    @cached_property
    def _unnamed_items(self) -> Ids:
        """Made-up ids for items that the catalogue counts without naming them."""
        size = self.catalogue.n - len(self.catalogue.ids) if self.catalogue.how == "number" else 0
        size = size if 0 <= size <= _MAX_UNNAMED else 0
        if self.judged.items.kind == "str":
            names = np.empty(size, dtype=object)
            names[:] = sorted(f"\U0010ffff{number}" for number in range(size))
            return Ids(names)
        top = int(max(self.judged.items.values.max(initial=0), self.catalogue.ids.values.max(initial=0)))
        return Ids(np.arange(size, dtype=np.int64) + max(top, 1 << 62) + 1)

    @cached_property
    def catalogue_truth(self) -> MatchedTruth:
        """The truth in codes of all items, with empty lists."""
        judged = self.judged
        items, _, _ = judged.items.union(self.catalogue.ids, what="item")
        items, _, _ = items.union(self._unnamed_items, what="item")
        new_codes = items.code_of(judged.items.values)
        weights = judged.item_weights
        if weights is not None:
            new_weights = np.zeros(len(items))
            new_weights[new_codes] = weights
            weights = new_weights
        no_lists = np.zeros(self.n_cases + 1, dtype=np.int64)
        codes = new_codes[judged.judged].astype(np.int32)
        return MatchedTruth(
            judged.cases, items, no_lists, np.zeros(0, dtype=np.int32), None, judged.truth_indptr, codes,
            judged.grades, judged.clusters, weights,
        )  # fmt: skip

    @property
    def items(self) -> Ids:
        return self.catalogue_truth.items

    @cached_property
    def in_catalogue(self) -> Bool:
        """Which items belong to the catalogue."""
        values = self.items.values
        return (self.catalogue.ids.code_of(values) >= 0) | (self._unnamed_items.code_of(values) >= 0)

    @cached_property
    def showable(self) -> Bool:
        """Which items may be shown at all: those of the catalogue that `never` does not exclude."""
        never = self.user_context.never
        if never is None or self.complete:
            return self.in_catalogue
        return self.in_catalogue & (never.code_of(self.items.values) < 0)

    @cached_property
    def complete(self) -> bool:
        """Whether ready lists rank every candidate, so that their items are the candidates."""
        return isinstance(self.judged, MatchedTruth) and self.judged.complete

    @cached_property
    def keys_are_allowed(self) -> bool:
        """Whether `keys` are the only pairs allowed; otherwise they are the barred ones."""
        return self.complete or self.user_context.eligible is not None

    @cached_property
    def keys(self) -> Int:
        """Pairs of case and item, ascending: case x number of items + item."""
        if self.complete:
            shown = self.judged.shown("by_id")
            case = np.repeat(np.arange(self.n_cases), shown.sizes)
            new_codes = self.items.code_of(self.judged.items.values)
            return self._showable_keys(case, new_codes[shown.codes])
        seen = self.keys_of(self._seen)
        if self.user_context.eligible is None:
            return seen
        allowed = self.keys_of(self.user_context.eligible)
        return allowed[~is_in(allowed, seen)]

    def keys_of(self, data: Interactions | None) -> Int:
        """The pairs of a table as keys, restricted to items that may be shown."""
        if data is None:
            return np.zeros(0, dtype=np.int64)
        case, at = entries_of_cases(data, self.judged.cases)
        return self._showable_keys(case, self.items.code_of(data.items.values)[data.codes[at]])

    def _showable_keys(self, case: Array, item: Array) -> Int:
        known = item >= 0
        known &= self.showable[np.maximum(item, 0)]
        return sorted_unique(self.key(case[known], item[known]))

    def key(self, case: Array, item: Array) -> Int:
        """One number per pair."""
        return case.astype(np.int64) * len(self.items) + item

    @cached_property
    def case(self) -> Int:
        """The case of each key."""
        return np.asarray(self.keys // max(len(self.items), 1))

    @cached_property
    def item(self) -> Int:
        """The item of each key."""
        return np.asarray(self.keys % max(len(self.items), 1))

    @cached_property
    def n_keys(self) -> Int:
        """How many keys each case has."""
        return np.bincount(self.case, minlength=self.n_cases)

    @cached_property
    def starts(self) -> Int:
        """Where the keys of each case begin."""
        return np.concatenate([[0], np.cumsum(self.n_keys)])

    def allowed(self, case: Array, item: Array) -> Bool:
        """Which pairs are candidates."""
        return np.asarray(
            self.showable[item] & (is_in(self.key(case, item), self.keys) == self.keys_are_allowed)
        )

    def candidates_of_case(self, case: int) -> Int:
        """The candidates of one case."""
        own = self.item[self.starts[case] : self.starts[case + 1]]
        if self.keys_are_allowed:
            return own
        mask = self.showable.copy()
        mask[own] = False
        return np.flatnonzero(mask)

    @cached_property
    def n_declared(self) -> Int:
        """How many candidates each case has according to catalogue, seen, never and eligible."""
        return self.n_keys if self.keys_are_allowed else int(self.showable.sum()) - self.n_keys

    @cached_property
    def n_candidates(self) -> Int:
        """How many candidates each case has."""
        if self._hits.n_candidates is not None:
            return self._hits.n_candidates
        owner = np.repeat(np.arange(self.n_cases), np.diff(self.judged.truth_indptr))
        return np.maximum(self.n_declared, np.bincount(owner[self.reachable], minlength=self.n_cases))

    @cached_property
    def reachable(self) -> Bool:
        """Which relevant items are candidates of their case."""
        if isinstance(self.judged, CountedTruth):
            return self.judged.above >= 0
        owner = np.repeat(np.arange(self.n_cases), np.diff(self.judged.truth_indptr))
        return self.allowed(owner, self.catalogue_truth.judged)

    @cached_property
    def places(self) -> Int:
        """How many places the longest list of each case has."""
        if self._hits.n_candidates is not None:
            return self._hits.n_candidates
        return np.minimum(int(self._hits.n_listed.max(initial=0)), self.n_candidates)

    def n_shown(self, k: int | None) -> Int:
        """How many of the first k places a full list fills, per case."""
        full = np.minimum(self.places, self.n_declared)
        return full if k is None else np.minimum(full, k)

    @cached_property
    def why_unavailable(self) -> str:
        """Why metrics of the items shown have no limits; empty if they have."""
        extra = self.catalogue.n - len(self.catalogue.ids)
        if self.catalogue.how == "number" and extra < 0:
            return _TOO_FEW
        if self.catalogue.how == "number" and extra > _MAX_UNNAMED:
            return _TOO_MANY
        if not isinstance(self.judged, CountedTruth):
            return ""
        ranked = self.n_candidates > 0
        return _MASKED if (self.n_candidates != self.n_declared)[ranked].any() else ""

    @cached_property
    def caps(self) -> Int:
        """The number of cases that can be shown each item."""
        listed = self.places > 0
        n_in_keys = np.bincount(self.item[listed[self.case]], minlength=len(self.items))
        return (
            n_in_keys if self.keys_are_allowed else np.where(self.showable, int(listed.sum()) - n_in_keys, 0)
        )

    @property
    def ranks_all(self) -> bool:
        """Whether every candidate has a place."""
        return self._hits.n_candidates is not None

    @cached_property
    def readings(self) -> Readings:
        """Readings for metrics over all items."""
        return Readings(self.catalogue_truth, self.context)

    @cached_property
    def n_invalid(self) -> int:
        """How many listed items are no candidates of their user, or repeat an item of the list."""
        if isinstance(self.judged, CountedTruth):
            return 0
        shown = self.judged.shown("by_id")
        case = np.repeat(np.arange(self.n_cases), shown.sizes)
        item = self.items.code_of(self.judged.items.values)[shown.codes]
        keys = sorted_unique(self.key(case, item))
        allowed = self.allowed(keys // max(len(self.items), 1), keys % max(len(self.items), 1))
        return len(case) - int(allowed.sum())

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """A value that several metrics need, computed once."""
        if key not in self._cache:
            self._cache[key] = make()
        value: T = self._cache[key]
        return value

    def mean_over_candidates(self, values: Float) -> Float:
        """The mean of a value per item over the candidates of each case."""
        own = np.bincount(self.case, weights=values[self.item], minlength=self.n_cases)
        total = own if self.keys_are_allowed else values[self.showable].sum() - own
        return np.divide(total, self.n_declared, out=np.zeros(self.n_cases), where=self.n_declared > 0)

    def with_lists(self, indptr: Int, codes: Array) -> MatchedTruth:
        """The same truth with other lists, given in the codes of `items`."""
        return replace(
            self.catalogue_truth,
            list_indptr=indptr,
            listed=codes.astype(np.int32),
            counts={},
            _hits_by_rule={},
        )

    def blocks(self, width: int) -> Iterator[Int]:
        """The cases in blocks, so that a table of cases x `width` stays small."""
        step = max(1, BLOCK // max(width, 1))
        for first in range(0, self.n_cases, step):
            yield np.arange(first, min(first + step, self.n_cases))


def sorted_unique(keys: Int) -> Int:
    """The keys sorted, each once; histories usually arrive that way."""
    if (keys[1:] > keys[:-1]).all():
        return keys
    ordered = np.sort(keys, kind="stable")
    return np.asarray(ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])])


def is_in(keys: Array, known: Array) -> Bool:
    """Which keys occur among ascending `known` ones."""
    if len(known) == 0:
        return np.zeros(len(keys), dtype=bool)
    at: Any = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.asarray(known[at] == keys)
