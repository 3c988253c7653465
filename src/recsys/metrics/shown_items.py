"""What a metric may ask of the lists themselves: what was shown, where, how often, and what is known of it.

The part of a Reading that metrics about the items shown use; ranking metrics never touch it, and nothing
here is worked out before it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from recsys.errors import NotDefinedError
from recsys.metrics.item_facts import ItemFacts
from recsys.types import Array, Bool, Context, Float, Ids, Int, Interactions, Lists, Shown, entries_of

T = TypeVar("T")


class Entries(NamedTuple):
    """Items that were shown: whose list, which item, at which place; by case, best first."""

    case: Array
    item: Array
    place: Array


class ListContext(NamedTuple):
    """What metrics about the items shown read besides the hits: whose lists, the truth's items in order."""

    users: Ids
    facts: ItemFacts
    shown: Callable[[], Shown]
    judged: Array
    grades: Float | None


class ShownItems:
    """The lists of some cases under one rule of repeats."""

    def __init__(self, n_cases: int, duplicates: str, context: Context, beyond: ListContext | None) -> None:
        self.n_cases = n_cases
        self.context = context
        self._beyond = beyond
        self._repeats_count = duplicates == "all"
        self._kept: dict[Hashable, object] = {}

    @property
    def beyond(self) -> ListContext:
        """The lists and what is known about items and cases."""
        if self._beyond is None:
            raise NotDefinedError("a single list has no catalogue and no users.", hint="Use recsys.evaluate.")
        return self._beyond

    @property
    def facts(self) -> ItemFacts:
        """What is known about the items, by code."""
        return self.beyond.facts

    def missing(self, need: str, k: int | None, column: str | None) -> int:
        """How many of the items shown a table says nothing about: they have no vector, number or label."""
        if need == "embeddings":
            unknown = self.facts.rows < 0
        elif self.facts.is_number(column):
            unknown = np.isnan(self.facts.number(column))
        else:
            unknown = np.diff(self.facts.attribute(column).indptr) == 0
        return int(unknown[self.shown(k).item].sum())

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """Something a group of metrics works out once."""
        return self._keep(("kept", key), make)

    @cached_property
    def listed(self) -> Entries:
        """Everything that was listed, repeats too."""
        shown = self.beyond.shown()
        case = np.repeat(np.arange(self.n_cases, dtype=np.int32), shown.sizes)
        place = shown.places
        if place is None:
            place = (np.arange(1, len(case) + 1) - np.repeat(shown.indptr[:-1], shown.sizes)).astype(np.int32)
        return Entries(case, shown.codes, place)

    @cached_property
    def again(self) -> Bool | None:
        """Which entries of `listed` their list had already shown; None where there are none."""
        if not self.beyond.shown().repeated or len(self.listed.case) == 0:
            return None
        pair = self.listed.case.astype(np.int64) * len(self.facts.ids) + self.listed.item
        order = np.argsort(pair, kind="stable")
        again = np.zeros(len(pair), dtype=bool)
        again[order[1:]] = pair[order[1:]] == pair[order[:-1]]
        return some(again)

    def shown(self, k: int | None) -> Entries:
        """The items in the first k places; a repeated one once, unless the conventions count it again."""
        return self._keep(("shown", k), lambda: self._shown(k))

    def _shown(self, k: int | None) -> Entries:
        keep: Bool | None = None
        if k is not None and self.listed.place.max(initial=0) > k:
            keep = self.listed.place <= k
        if self.again is not None and not self._repeats_count:
            keep = ~self.again if keep is None else keep & ~self.again
        return self.listed if keep is None else Entries(*(column[keep] for column in self.listed))

    def n_shown(self, k: int | None) -> Int:
        """How many items `shown` holds for each case."""
        make: Callable[[], Int] = lambda: np.bincount(self.shown(k).case, minlength=self.n_cases)  # noqa: E731
        return self._keep(("n_shown", k), make)

    def n_places(self, k: int | None) -> Int:
        """How many of the first k places are filled, per case."""
        sizes = self.beyond.shown().sizes
        return sizes if k is None else np.minimum(sizes, k)

    def mean_shown(self, k: int | None, values: Float) -> Float:
        """Mean of a value per item over the items shown, per case; 0 where none is."""
        entries = self.shown(k)
        total = self._add(entries.case, values[entries.item])
        return np.divide(total, self.n_shown(k), out=np.zeros(self.n_cases), where=self.n_shown(k) > 0)

    def pairs(self, what: str) -> Entries:
        """What the user of each case had (`train`), or was shown by another model (`reference`), by case.

        An item this evaluation does not know has the code -1.
        """
        return self._keep(("pairs", what), lambda: self._pairs(getattr(self.context, what)))

    def sum_by_case(self, case: Array, values: Float) -> Float:
        """Sum of the values of each case, one after the other."""
        return self._add(case, values)

    def _pairs(self, data: Interactions | Lists) -> Entries:
        if len(data.cases) == 0:  # one list for everybody
            size = len(data.codes)
            case, at = np.repeat(np.arange(self.n_cases), size), np.tile(np.arange(size), self.n_cases)
        else:
            case, at = entries_of(data, self.beyond.users)
        data.items.same_kind(self.facts.ids, what="item")
        item = self.facts.ids.code_of(data.items.values)[data.codes[at]]
        place = at - np.asarray(data.indptr)[np.searchsorted(data.indptr, at, side="right") - 1] + 1
        return Entries(case, item, place)

    def among(self, what: str, case: Array, item: Array, k: int | None = None) -> Bool:
        """Whether each pair of case and item is in `train`, or in the first k places of `reference`."""
        known = self.pairs(what)
        keep = known.item >= 0 if k is None else (known.item >= 0) & (known.place <= k)
        width = max(len(self.facts.ids), 1)
        have = np.sort(known.case[keep].astype(np.int64) * width + known.item[keep])
        want = case.astype(np.int64) * width + item
        if len(have) == 0:
            return np.zeros(len(want), dtype=bool)
        at = np.minimum(np.searchsorted(have, want), len(have) - 1)
        return np.asarray(have[at] == want)

    def _add(self, case: Array, values: Float) -> Float:
        return add_up(case, values, self.n_cases)

    def _keep(self, key: Hashable, make: Callable[[], T]) -> T:
        try:
            if key not in self._kept:
                self._kept[key] = make()
            return self._kept[key]  # type: ignore[return-value]
        except TypeError:  # a gain or discount that cannot be hashed is simply worked out again
            return make()


def some(mask: Bool) -> Bool | None:
    """The mask, None where it is empty."""
    return mask if mask.any() else None


def add_up(case: Array, values: Float, n_cases: int) -> Float:
    """Sum of the values of each case, one after the other."""
    return np.bincount(case, weights=values, minlength=n_cases).astype(np.float64, copy=False)


def distinct(keys: Int) -> Int:
    """The different numbers, ascending; sorting beats hashing on whole columns."""
    ordered = np.sort(keys)
    new = np.ones(len(ordered), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]
