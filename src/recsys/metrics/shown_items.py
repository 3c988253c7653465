"""What a metric may read from the lists: the items shown, their places, and what is known about them.

This is the part of a Reading for metrics about the items shown; ranking metrics never use it, and nothing
is computed before a metric reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from recsys.errors import NotDefinedError
from recsys.metrics.item_facts import ItemFacts
from recsys.types import Array, Bool, Context, Float, Ids, Int, Interactions, Lists, Shown, entries_of_cases

T = TypeVar("T")


class Entries(NamedTuple):
    """Items that were shown: case, item and place of each, by case and best first."""

    case: Array
    item: Array
    place: Array


class ListContext(NamedTuple):
    """What metrics about the items shown read besides the hits: users, lists and the truth's items."""

    users: Ids
    facts: ItemFacts
    shown: Callable[[], Shown]
    judged: Array
    grades: Float | None


class ShownItems:
    """The lists of some cases under one rule of repeats."""

    def __init__(
        self, n_cases: int, duplicates: str, context: Context, list_context: ListContext | None
    ) -> None:
        self.n_cases = n_cases
        self.context = context
        self._list_context = list_context
        self._repeats_count = duplicates == "all"
        self._cache: dict[Hashable, object] = {}

    @property
    def list_context(self) -> ListContext:
        """The lists and what is known about items and cases."""
        if self._list_context is None:
            raise NotDefinedError("a single list has no catalogue and no users.", hint="Use recsys.evaluate.")
        return self._list_context

    @property
    def facts(self) -> ItemFacts:
        """What is known about the items, by code."""
        return self.list_context.facts

    def n_missing(self, need: str, k: int | None, column: str | None) -> int:
        """How many of the items shown have no vector, number or label."""
        if need == "embeddings":
            unknown = self.facts.rows < 0
        elif self.facts.is_number(column):
            unknown = np.isnan(self.facts.number(column))
        else:
            unknown = np.diff(self.facts.attribute(column).indptr) == 0
        return int(unknown[self.shown(k).item].sum())

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The result of `compute`, computed once per key and shared by all metrics."""
        try:
            if key not in self._cache:
                self._cache[key] = compute()
            return self._cache[key]  # type: ignore[return-value]
        except TypeError:  # the key holds a gain or discount that cannot be hashed
            return compute()

    @cached_property
    def listed(self) -> Entries:
        """Every entry of the lists, repeats included."""
        shown = self.list_context.shown()
        case = np.repeat(np.arange(self.n_cases, dtype=np.int32), shown.sizes)
        place = shown.places
        if place is None:
            place = (np.arange(1, len(case) + 1) - np.repeat(shown.indptr[:-1], shown.sizes)).astype(np.int32)
        return Entries(case, shown.codes, place)

    @cached_property
    def is_repeat(self) -> Bool | None:
        """Which entries of `listed` repeat an earlier one of their list; None if none does."""
        if not self.list_context.shown().repeated or len(self.listed.case) == 0:
            return None
        pair = self.listed.case.astype(np.int64) * len(self.facts.ids) + self.listed.item
        order = np.argsort(pair, kind="stable")
        repeats = np.zeros(len(pair), dtype=bool)
        repeats[order[1:]] = pair[order[1:]] == pair[order[:-1]]
        return mask_or_none(repeats)

    def shown(self, k: int | None) -> Entries:
        """The items in the first k places; a repeated one once, unless the conventions count repeats."""
        return self.cached(("shown", k), lambda: self._first_places(k))

    def _first_places(self, k: int | None) -> Entries:
        keep: Bool | None = None
        if k is not None and self.listed.place.max(initial=0) > k:
            keep = self.listed.place <= k
        if self.is_repeat is not None and not self._repeats_count:
            keep = ~self.is_repeat if keep is None else keep & ~self.is_repeat
        return self.listed if keep is None else Entries(*(column[keep] for column in self.listed))

    def n_shown(self, k: int | None) -> Int:
        """How many items `shown` holds for each case."""
        entries = self.shown(k)
        return self.cached(("n_shown", k), lambda: np.bincount(entries.case, minlength=self.n_cases))

    def n_places(self, k: int | None) -> Int:
        """How many of the first k places are filled, per case."""
        sizes = self.list_context.shown().sizes
        return sizes if k is None else np.minimum(sizes, k)

    def mean_shown(self, k: int | None, values: Float) -> Float:
        """Mean over the items shown of one value per item, per case; 0 where nothing is shown."""
        entries = self.shown(k)
        total = self.sum_by_case(entries.case, values[entries.item])
        return np.divide(total, self.n_shown(k), out=np.zeros(self.n_cases), where=self.n_shown(k) > 0)

    def pairs(self, what: str) -> Entries:
        """The items of each case's user in one part of the context, by case.

        An item this evaluation does not know has the code -1.

        Args:
            what: "train" (what the user had), "reference" (lists of another model) or "eligible".
        """
        return self.cached(("pairs", what), lambda: self._align_to_cases(getattr(self.context, what)))

    def sum_by_case(self, case: Array, values: Float) -> Float:
        """Sum of the values of each case, added in the order given."""
        return add_up(case, values, self.n_cases)

    def _align_to_cases(self, data: Interactions | Lists) -> Entries:
        if len(data.cases) == 0:  # one list for everybody
            size = len(data.codes)
            case, at = np.repeat(np.arange(self.n_cases), size), np.tile(np.arange(size), self.n_cases)
        else:
            case, at = entries_of_cases(data, self.list_context.users)
        data.items.same_kind(self.facts.ids, what="item")
        item = self.facts.ids.code_of(data.items.values)[data.codes[at]]
        place = at - np.asarray(data.indptr)[np.searchsorted(data.indptr, at, side="right") - 1] + 1
        return Entries(case, item, place)

    def among(self, what: str, case: Array, item: Array, k: int | None = None) -> Bool:
        """Whether each pair of case and item is in `pairs(what)`, in its first k places."""
        known = self.pairs(what)
        keep = known.item >= 0 if k is None else (known.item >= 0) & (known.place <= k)
        width = max(len(self.facts.ids), 1)
        known_keys = np.sort(known.case[keep].astype(np.int64) * width + known.item[keep])
        keys = case.astype(np.int64) * width + item
        if len(known_keys) == 0:
            return np.zeros(len(keys), dtype=bool)
        at = np.minimum(np.searchsorted(known_keys, keys), len(known_keys) - 1)
        return np.asarray(known_keys[at] == keys)


def mask_or_none(mask: Bool) -> Bool | None:
    """The mask, or None if nothing is marked."""
    return mask if mask.any() else None


def add_up(case: Array, values: Float, n_cases: int) -> Float:
    """Sum of the values of each case, added in the order given."""
    return np.bincount(case, weights=values, minlength=n_cases).astype(np.float64, copy=False)


def sorted_unique(keys: Int) -> Int:
    """The distinct numbers, ascending; on long columns sorting is faster than hashing."""
    if (keys[1:] > keys[:-1]).all():
        return keys
    ordered = np.sort(keys)
    new = np.ones(len(ordered), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]
