"""Who may be shown what: the candidates of each case, and how many places its list has.

Pairs of case and item are kept, never a table of cases by items: either the few that are barred (what the
user has seen), or the few that are allowed (what is eligible, or what a complete list holds).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from recsys.evaluation.engine import Readings
from recsys.evaluation.exposure import catalogue_of
from recsys.ranks.counting import CountedTruth, RankedTruth
from recsys.ranks.matching import MatchedTruth
from recsys.types import Array, Bool, Catalogue, Context, Float, Ids, Int, Interactions, entries_of

T = TypeVar("T")
BLOCK = 1 << 22  # cells that are looked at together
_UNNAMED = 1 << 22  # items that only the catalogue's number tells of, at most
_MASKED = (
    "some candidates were taken away by scores of -inf, and which ones is not kept: pass seen= or eligible="
)
_TOO_FEW = "the catalogue is said to hold fewer items than occur: pass catalogue= with all item ids"
_TOO_MANY = "nearly all items of the catalogue are known by their number only: pass catalogue= with their ids"


class CandidatePool:
    """The candidates of an evaluation, in the codes of one set of items: `items`."""

    def __init__(self, judged: RankedTruth, context: Context, seen: Interactions | None) -> None:
        self.judged = judged
        self.given = context
        self._seen = seen
        self._kept: dict[Hashable, Any] = {}
        self._hits = judged.hits("by_id", "first")

    @property
    def n_cases(self) -> int:
        return len(self.judged.cases)

    @cached_property
    def catalogue(self) -> Catalogue:
        """All items there are."""
        judged, known = self.judged, self.given
        tables: list[tuple[Ids, Array]] = [(judged.items, judged.judged)]
        if isinstance(judged, MatchedTruth):
            tables.append((judged.items, judged.shown("by_id").codes))
        if known.train is not None:
            tables.append((known.train.items, np.flatnonzero(known.train.item_counts)))
        return catalogue_of(known.catalogue, known.n_items, tables)

    @cached_property
    def context(self) -> Context:
        """What is known besides; a catalogue that was found stays as it was found, whatever is shown."""
        if self.catalogue.how != "found":
            return self.given
        return replace(self.given, catalogue=self.catalogue.ids, n_items=self.catalogue.n)

    @cached_property
    def _unnamed(self) -> Ids:
        """Items that only the number of the catalogue tells of: made-up ids that nothing is known about."""
        size = self.catalogue.n - len(self.catalogue.ids) if self.catalogue.how == "number" else 0
        size = size if 0 <= size <= _UNNAMED else 0
        if self.judged.items.kind == "str":
            names = np.empty(size, dtype=object)
            names[:] = sorted(f"\U0010ffff{number}" for number in range(size))
            return Ids(names)
        top = int(max(self.judged.items.values.max(initial=0), self.catalogue.ids.values.max(initial=0)))
        return Ids(np.arange(size, dtype=np.int64) + max(top, 1 << 62) + 1)

    @cached_property
    def stage(self) -> MatchedTruth:
        """The truth over all the items there are, with nothing shown yet."""
        judged = self.judged
        whole, _, _ = judged.items.union(self.catalogue.ids, what="item")
        whole, _, _ = whole.union(self._unnamed, what="item")
        moves = whole.code_of(judged.items.values)
        weights = judged.item_weights
        if weights is not None:
            spread = np.zeros(len(whole))
            spread[moves] = weights
            weights = spread
        none = np.zeros(self.n_cases + 1, dtype=np.int64)
        codes = moves[judged.judged].astype(np.int32)
        return MatchedTruth(
            judged.cases, whole, none, np.zeros(0, dtype=np.int32), None, judged.truth_indptr, codes,
            judged.grades, judged.clusters, weights,
        )  # fmt: skip

    @property
    def items(self) -> Ids:
        return self.stage.items

    @cached_property
    def known(self) -> Bool:
        """Which items belong to the catalogue."""
        values = self.items.values
        return (self.catalogue.ids.code_of(values) >= 0) | (self._unnamed.code_of(values) >= 0)

    @cached_property
    def open(self) -> Bool:
        """Which items may be shown at all: those of the catalogue that are not `never`."""
        never = self.given.never
        if never is None or self.complete:
            return self.known
        return self.known & (never.code_of(self.items.values) < 0)

    @cached_property
    def complete(self) -> bool:
        """Whether ready lists rank every candidate, so that what they hold is what there was."""
        return isinstance(self.judged, MatchedTruth) and self.judged.complete

    @cached_property
    def only(self) -> bool:
        """Whether `keys` are the only pairs allowed; otherwise they are the ones that are barred."""
        return self.complete or self.given.eligible is not None

    @cached_property
    def keys(self) -> Int:
        """Pairs of case and item, ascending: case x number of items + item."""
        if self.complete:
            shown = self.judged.shown("by_id")
            case = np.repeat(np.arange(self.n_cases), shown.sizes)
            moves = self.items.code_of(self.judged.items.values)
            return self._keys(case, moves[shown.codes])
        seen = self.pairs_of(self._seen)
        if self.given.eligible is None:
            return seen
        allowed = self.pairs_of(self.given.eligible)
        return allowed[~among(allowed, seen)]

    def pairs_of(self, data: Interactions | None) -> Int:
        """The pairs of a table as keys, of the items that may be shown."""
        if data is None:
            return np.zeros(0, dtype=np.int64)
        case, at = entries_of(data, self.judged.cases)
        return self._keys(case, self.items.code_of(data.items.values)[data.codes[at]])

    def _keys(self, case: Array, item: Array) -> Int:
        known = item >= 0
        known &= self.open[np.maximum(item, 0)]
        return ascending(self.key(case[known], item[known]))

    def key(self, case: Array, item: Array) -> Int:
        """One number a pair."""
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
        return np.asarray(self.open[item] & (among(self.key(case, item), self.keys) == self.only))

    def candidates_of(self, case: int) -> Int:
        """The candidates of one case."""
        own = self.item[self.starts[case] : self.starts[case + 1]]
        if self.only:
            return own
        mask = self.open.copy()
        mask[own] = False
        return np.flatnonzero(mask)

    @cached_property
    def told(self) -> Int:
        """How many candidates each case has by what was told: catalogue, seen, never, eligible."""
        return self.n_keys if self.only else int(self.open.sum()) - self.n_keys

    @cached_property
    def candidates(self) -> Int:
        """How many candidates each case has."""
        if self._hits.n_candidates is not None:
            return self._hits.n_candidates
        owner = np.repeat(np.arange(self.n_cases), np.diff(self.judged.truth_indptr))
        return np.maximum(self.told, np.bincount(owner[self.reachable], minlength=self.n_cases))

    @cached_property
    def reachable(self) -> Bool:
        """Which relevant items are candidates of their case."""
        if isinstance(self.judged, CountedTruth):
            return self.judged.above >= 0
        owner = np.repeat(np.arange(self.n_cases), np.diff(self.judged.truth_indptr))
        return self.allowed(owner, self.stage.judged)

    @cached_property
    def places(self) -> Int:
        """How many places the longest list of each case has."""
        if self._hits.n_candidates is not None:
            return self._hits.n_candidates
        return np.minimum(int(self._hits.n_listed.max(initial=0)), self.candidates)

    def shown(self, k: int | None) -> Int:
        """How many of the first k places a full list fills, per case."""
        full = np.minimum(self.places, self.told)
        return full if k is None else np.minimum(full, k)

    @cached_property
    def why_not(self) -> str:
        """Why nothing can be said about metrics of the items shown; empty where something can."""
        extra = self.catalogue.n - len(self.catalogue.ids)
        if self.catalogue.how == "number" and extra < 0:
            return _TOO_FEW
        if self.catalogue.how == "number" and extra > _UNNAMED:
            return _TOO_MANY
        if not isinstance(self.judged, CountedTruth):
            return ""
        ranked = self.candidates > 0
        return _MASKED if (self.candidates != self.told)[ranked].any() else ""

    @cached_property
    def caps(self) -> Int:
        """To how many cases each item can be shown."""
        listed = self.places > 0
        with_it = np.bincount(self.item[listed[self.case]], minlength=len(self.items))
        return with_it if self.only else np.where(self.open, int(listed.sum()) - with_it, 0)

    @property
    def ranks_all(self) -> bool:
        """Whether every candidate has a place."""
        return self._hits.n_candidates is not None

    @cached_property
    def readings(self) -> Readings:
        """What metrics may ask about all the items there are."""
        return Readings(self.stage, self.context)

    @cached_property
    def n_odd(self) -> int:
        """How many of the items that were listed are no candidates of their user, or were listed before."""
        if isinstance(self.judged, CountedTruth):
            return 0
        shown = self.judged.shown("by_id")
        case = np.repeat(np.arange(self.n_cases), shown.sizes)
        item = self.items.code_of(self.judged.items.values)[shown.codes]
        keys = ascending(self.key(case, item))
        allowed = self.allowed(keys // max(len(self.items), 1), keys % max(len(self.items), 1))
        return len(case) - int(allowed.sum())

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """Something that several metrics need, worked out once."""
        if key not in self._kept:
            self._kept[key] = make()
        found: T = self._kept[key]
        return found

    def mean(self, values: Float) -> Float:
        """The mean of a value per item over the candidates of each case."""
        own = np.bincount(self.case, weights=values[self.item], minlength=self.n_cases)
        total = own if self.only else values[self.open].sum() - own
        return np.divide(total, self.told, out=np.zeros(self.n_cases), where=self.told > 0)

    def listing(self, indptr: Int, codes: Array) -> MatchedTruth:
        """The evaluation of other lists, given in the codes of `items`."""
        return replace(self.stage, list_indptr=indptr, listed=codes.astype(np.int32), counts={}, _found={})

    def blocks(self, width: int) -> Iterator[Int]:
        """The cases a block at a time, so that a table of cases by `width` stays small."""
        step = max(1, BLOCK // max(width, 1))
        for first in range(0, self.n_cases, step):
            yield np.arange(first, min(first + step, self.n_cases))


def ascending(keys: Int) -> Int:
    """Sorted, each once; histories mostly come so."""
    if (keys[1:] > keys[:-1]).all():
        return keys
    made = np.sort(keys, kind="stable")
    return np.asarray(made[np.concatenate([[True], made[1:] != made[:-1]])])


def among(keys: Array, known: Array) -> Bool:
    """Which keys occur among ascending ones."""
    if len(known) == 0:
        return np.zeros(len(keys), dtype=bool)
    at: Any = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.asarray(known[at] == keys)
