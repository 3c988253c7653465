"""Who may be shown what: the candidates of each case, how many places its list has, and lists of candidates.

Pairs of case and item are stored, never a table of cases x items: either the few that are barred (what the
user has seen), or the few that are allowed (what is eligible, or what a complete list holds).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import Phrase
from recsys.evaluation.engine import Readings
from recsys.evaluation.exposure import resolve_catalogue
from recsys.kernels.keyed_random import id_keys, pair_keys
from recsys.metrics.readings import Reading
from recsys.metrics.registry import Request
from recsys.ranks.negatives import sample
from recsys.ranks.ranked_truth import CountedTruth, MatchedTruth, RankedTruth
from recsys.records.arrays import (
    Array,
    Bool,
    Catalogue,
    Context,
    Float,
    Ids,
    Int,
    Interactions,
    cached_property,
    entries_of_cases,
    is_in,
    number_in_run,
    sorted_unique,
)

T = TypeVar("T")
BLOCK = 1 << 22  # cells that are processed together
_MAX_UNNAMED = 1 << 22  # the most items that the catalogue counts without naming them
_MASKED = Phrase("scores of -inf took candidates away, and which is not kept: pass {seen=} or {eligible=}")
_TOO_FEW = Phrase("the catalogue has fewer items than occur: pass {catalogue=} with all item ids")
_TOO_MANY = Phrase("most items are known by their number only: pass {catalogue=} with the ids of all")
_EMPTY = np.zeros(0, dtype=np.int64)


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
        judged = self.judged
        tables: list[tuple[Ids, Array]] = [(judged.items, judged.judged)]
        if isinstance(judged, MatchedTruth):
            tables.append((judged.items, judged.shown("by_id").codes))
        return resolve_catalogue(self.user_context, tables)

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
            weights = np.zeros(len(items))
            weights[new_codes] = judged.item_weights
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
        """Return the pairs of a table as keys, restricted to items that may be shown."""
        if data is None:
            return np.zeros(0, dtype=np.int64)
        case, at = entries_of_cases(data, self.judged.cases)
        return self._showable_keys(case, self.items.code_of(data.items.values)[data.codes[at]])

    def _showable_keys(self, case: Array, item: Array) -> Int:
        known = item >= 0
        known &= self.showable[np.maximum(item, 0)]
        return sorted_unique(self.key(case[known], item[known]))

    def key(self, case: Array, item: Array) -> Int:
        """Return one number per pair."""
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
        """Return which pairs are candidates."""
        return np.asarray(
            self.showable[item] & (is_in(self.key(case, item), self.keys) == self.keys_are_allowed)
        )

    def pairs_of(self, cases: Int) -> tuple[Int, Int]:
        """Return the row among these adjacent cases, and the item, of each of their keys."""
        own = slice(self.starts[cases[0]], self.starts[cases[-1] + 1])
        return self.case[own] - cases[0], self.item[own]

    def candidates_of_case(self, case: int) -> Int:
        """Return the candidates of one case."""
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
        n_reachable = np.bincount(self.truth_case[self.reachable], minlength=self.n_cases)
        return np.maximum(self.n_declared, n_reachable)

    @cached_property
    def truth_case(self) -> Int:
        """The case of each entry of the truth."""
        return np.repeat(np.arange(self.n_cases), np.diff(self.judged.truth_indptr))

    @cached_property
    def reachable(self) -> Bool:
        """Which relevant items are candidates of their case."""
        if isinstance(self.judged, CountedTruth):
            return self.judged.above >= 0
        return self.allowed(self.truth_case, self.catalogue_truth.judged)

    @cached_property
    def places(self) -> Int:
        """How many places the longest list of each case has."""
        if self._hits.n_candidates is not None:
            return self._hits.n_candidates
        return np.minimum(int(self._hits.n_listed.max(initial=0)), self.n_candidates)

    def n_shown(self, k: int | None) -> Int:
        """Return how many of the first k places a full list fills, per case."""
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
        if self.keys_are_allowed:
            return n_in_keys
        return np.where(self.showable, int(listed.sum()) - n_in_keys, 0)

    @cached_property
    def readings(self) -> Readings:
        """Readings for metrics over all items."""
        return Readings(self.catalogue_truth, self.context)

    @cached_property
    def n_invalid(self) -> int:
        """How many listed items are not candidates of their user, or repeat an item of the list."""
        if isinstance(self.judged, CountedTruth):
            return 0
        shown = self.judged.shown("by_id")
        case = np.repeat(np.arange(self.n_cases), shown.sizes)
        item = self.items.code_of(self.judged.items.values)[shown.codes]
        keys = sorted_unique(self.key(case, item))
        allowed = self.allowed(keys // max(len(self.items), 1), keys % max(len(self.items), 1))
        return len(case) - int(allowed.sum())

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return a value that several metrics need, computed once."""
        if key not in self._cache:
            self._cache[key] = make()
        value: T = self._cache[key]
        return value

    def mean_over_candidates(self, values: Float) -> Float:
        """Return the mean of a value per item over the candidates of each case."""
        own = np.bincount(self.case, weights=values[self.item], minlength=self.n_cases)
        total = own if self.keys_are_allowed else values[self.showable].sum() - own
        return np.divide(total, self.n_declared, out=np.zeros(self.n_cases), where=self.n_declared > 0)

    def with_lists(self, indptr: Int, codes: Array) -> MatchedTruth:
        """Return the same truth with other lists, given in the codes of `items`."""
        return replace(
            self.catalogue_truth,
            list_indptr=indptr,
            listed=codes.astype(np.int32),
            truth_counts={},
        )

    def blocks(self, width: int) -> Iterator[Int]:
        """Yield the cases in blocks, so that a table of cases x `width` stays small."""
        step = max(1, BLOCK // max(width, 1))
        for first in range(0, self.n_cases, step):
            yield np.arange(first, min(first + step, self.n_cases))


class BuiltLists(NamedTuple):
    """Lists in the codes of the pool's items: CSR by case, best first."""

    indptr: Int
    codes: Array


class ListHeads(NamedTuple):
    """The first items of lists: candidates of their case, by case, best first."""

    case: Array
    item: Array

    @classmethod
    def join(cls, parts: Sequence[tuple[Array, Array]]) -> ListHeads:
        """Return the pairs of all parts, one part after the other."""
        cases, items = zip((_EMPTY, _EMPTY), *parts, strict=True)
        return cls(np.concatenate(cases), np.concatenate(items))


def _items_in_order(pool: CandidatePool, need: Int, order: Int) -> Iterator[tuple[Array, Array]]:
    """For each case as many items in their order as it needs; one block of cases at a time."""
    if pool.keys_are_allowed:
        place = np.full(len(pool.items), len(order))
        place[order] = np.arange(len(order))
        turn = np.lexsort((place[pool.item], pool.case))
        turn = turn[place[pool.item[turn]] < len(order)]
        yield pool.case[turn], pool.item[turn]
        return
    take = np.where(need > 0, np.minimum(need + pool.n_keys, len(order)), 0)
    cuts = np.flatnonzero(np.diff(np.cumsum(take) // BLOCK)) + 1
    for block in np.split(np.arange(pool.n_cases), cuts):
        sizes = take[block]
        at = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        yield np.repeat(block, sizes), order[at]


def random_lists(pool: CandidatePool, places: Int, turn: int) -> BuiltLists:
    """Random lists: every order of the candidates is equally likely; a case's list depends on its id only."""
    seed = int.from_bytes(blake2b(f"limits floor {turn}".encode(), digest_size=6).digest(), "little")
    longest = int(places.max(initial=0))
    if longest == 0:
        return BuiltLists(np.zeros(pool.n_cases + 1, dtype=np.int64), _EMPTY)
    if pool.keys_are_allowed:
        keys = id_keys(pool.judged.cases, seed, purpose="limits")
        of_item = id_keys(pool.items, seed, purpose="limits item")
        order = np.lexsort((pair_keys(keys[pool.case], of_item[pool.item]), pool.case))
        case, item = pool.case[order], pool.item[order]
    else:
        barred = Interactions(pool.judged.cases, pool.items, pool.starts, pool.item.astype(np.int32))
        drawn = sample(
            barred,
            longest,
            users=pool.judged.cases.values,
            catalogue=pool.items.values[pool.showable],
            seed=seed,
            too_few="fewer",
        )
        case = np.repeat(np.arange(pool.n_cases), np.diff(drawn.indptr))
        item = pool.items.code_of(drawn.items.values)[drawn.codes]
    keep = number_in_run(case) < places[case]
    return _group_by_case(pool, case[keep], item[keep])


def _group_by_case(pool: CandidatePool, case: Array, item: Array) -> BuiltLists:
    order = np.argsort(case, kind="stable")
    sizes = np.bincount(case, minlength=pool.n_cases)
    return BuiltLists(np.concatenate([[0], np.cumsum(sizes)]), item[order])


class BestLists(NamedTuple):
    """Lists or ranks that the engine can measure, and whether nothing can be better, or even different."""

    judged: Any
    proven: bool = False
    constant: bool = False  # every other list of candidates has the same value


class BoundsTask:
    """One request: its candidate pool, the places to fill, and a reading over all items."""

    def __init__(self, pool: CandidatePool, request: Request, rules: Conventions) -> None:
        self.pool, self.request, self.rules = pool, request, rules
        self.params = request.own_params
        self.places = pool.n_shown(request.k)
        self.conventions = request.conventions(rules)

    @property
    def reading(self) -> Reading:
        return self.pool.readings.under(self.conventions)

    def lists(self, front: ListHeads | None = None, order: Int | None = None, last: Int = _EMPTY) -> Any:
        """Lists that begin with `front` and continue in `order`; pairs in `last` are a last resort.

        `order` holds items that may be shown, best first; by default all of them, by id. A list reads no more
        of it than its places plus the items it must skip, so the work grows with the number of pairs, not
        with cases x items.
        """
        pool, places = self.pool, self.places
        parts = []
        if front is not None:
            fits = number_in_run(front.case) < places[front.case]
            front = ListHeads(front.case[fits], front.item[fits])
            parts.append((front.case, front.item))
        taken = _EMPTY if front is None else np.sort(pool.key(front.case, front.item))
        n_taken, n_last = (
            np.bincount(keys // max(len(pool.items), 1), minlength=pool.n_cases) for keys in (taken, last)
        )
        need = places - n_taken
        in_order = np.flatnonzero(pool.showable) if order is None else order
        for case, item in _items_in_order(pool, np.where(need > 0, need + n_taken + n_last, 0), in_order):
            pairs = pool.key(case, item)
            usable = np.flatnonzero(pool.allowed(case, item) & ~is_in(pairs, taken))
            if len(last):
                usable = usable[np.lexsort((usable, is_in(pairs[usable], last), case[usable]))]
            keep = usable[number_in_run(case[usable]) < need[case[usable]]]
            parts.append((case[keep], item[keep]))
        return pool.with_lists(*_group_by_case(pool, *ListHeads.join(parts)))
