"""What a metric may ask of Hits: relevant hits, how many, where, worth how much.

Answers are kept, so eighteen metrics cost little more than one. Under `ties="expected"` a place is a
group of places, and a weight of the place becomes its mean over the group; a metric that only adds up
such weights is then an exact expectation without knowing it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from recsys.conventions.decisions import Discount, Gain, relevant
from recsys.metrics.shown_items import ListContext, ShownItems, some
from recsys.metrics.weights import discount_weights, gains, running_weights
from recsys.types import Array, Bool, Codes, Context, Float, Hits, Int


class Reading(ShownItems):
    """Hits under one rule of relevance and of repeats; shared by all metrics that agree on those two."""

    def __init__(
        self,
        hits: Hits,
        relevant_from: float | None,
        duplicates: str,
        context: Context,
        beyond: ListContext | None = None,
    ) -> None:
        super().__init__(hits.n_cases, duplicates, context, beyond)
        self.hits = hits
        self._least = relevant_from

    @property
    def n_listed(self) -> Int:
        return self.hits.n_listed

    @cached_property
    def n_relevant(self) -> Int:
        """Relevant items in the truth, per case."""
        counts = self.hits.n_judged
        if self._truth_relevant is None:
            return counts
        return np.bincount(self._truth_case[self._truth_relevant], minlength=self.n_cases)

    @cached_property
    def relevant_weight(self) -> Float:
        """What recall divides by: relevant items, or their weights where items have one."""
        if self.hits.truth_weight is None:
            return self.n_relevant.astype(np.float64)
        mask = slice(None) if self._truth_relevant is None else self._truth_relevant
        return self._add(self._truth_case[mask], self.hits.truth_weight[mask])

    @cached_property
    def nothing_listed(self) -> Bool | None:
        """Cases without a list; None where every case has one."""
        return some(self.n_listed == 0)

    def nothing_wanted(self, population: str) -> Bool | None:
        """Cases without relevant (or judged) items; None where every case has some."""
        if population == "listed":
            return None
        make = self._no_relevant if population == "relevant" else (lambda: some(self.hits.n_judged == 0))
        return self._keep(("nothing_wanted", population), make)

    def _no_relevant(self) -> Bool | None:
        return some(self.n_relevant == 0)

    @cached_property
    def wanted(self) -> tuple[Int, Array]:
        """Case and item of every relevant item, by case and item."""
        judged, relevant = self.beyond.judged, self._relevant(self.beyond.grades, len(self.beyond.judged))
        keep = slice(None) if relevant is None else relevant
        return self._truth_case[keep], judged[keep]

    @cached_property
    def case(self) -> Array:
        return self._pick(self.hits.case)

    @cached_property
    def item(self) -> Codes:
        """The item of each relevant hit."""
        return self._pick(self.hits.item)

    @cached_property
    def rank(self) -> Int:
        """1 + the number of items strictly above."""
        return self._pick(self.hits.rank)

    @cached_property
    def tied(self) -> Int | None:
        """Size of the group of equal scores, where groups are left; None where every place is known."""
        return None if self.hits.tied is None else self._pick(self.hits.tied)

    @cached_property
    def grade(self) -> Float:
        grade = self.hits.grade
        return np.ones(len(self.case)) if grade is None else self._pick(grade)

    @cached_property
    def weight(self) -> Float | None:
        return None if self.hits.weight is None else self._pick(self.hits.weight)

    @cached_property
    def order(self) -> Int:
        """1, 2, … among the relevant hits of a case, by rank."""
        place = np.arange(1, len(self.case) + 1)
        if len(place) == 0:
            return place
        starts = np.flatnonzero(np.concatenate([[True], self.case[1:] != self.case[:-1]]))
        sizes = np.diff(np.concatenate([starts, [len(place)]]))
        return np.asarray(place - np.repeat(starts, sizes))

    @cached_property
    def first(self) -> Float:
        """The place of the first relevant hit of each case, infinity where there is none."""
        out = np.full(self.n_cases, np.inf)
        at = np.flatnonzero(self.order == 1)
        out[self._index[at]] = self.rank[at]
        return out

    @cached_property
    def _index(self) -> Int:
        """The case of each relevant hit, as wide as NumPy would make it for every sum."""
        return self.case.astype(np.int64, copy=False)

    @cached_property
    def _place(self) -> Int:
        """The place from 0."""
        return self.rank - 1

    @cached_property
    def mean_rank(self) -> Float:
        """The place of each relevant hit, the middle of its group under ties."""
        return self.rank.astype(np.float64) if self.tied is None else self.rank + (self.tied - 1) / 2

    @cached_property
    def bad_above(self) -> Float:
        """Judged, non-relevant hits that stand above each relevant hit."""
        relevant = self._relevant(self.hits.grade, len(self.hits.case))
        if relevant is None:
            return np.zeros(len(self.case))
        first = np.ones(len(relevant), dtype=bool) if self.hits.repeat is None else ~self.hits.repeat
        running = np.cumsum(~relevant & first)
        starts = np.searchsorted(self.hits.case, np.arange(self.n_cases))
        before = np.concatenate([[0], running])[starts]
        return np.asarray(self._pick(running) - before[self.case], dtype=np.float64)

    def count_judged(self, k: int | None) -> Float:
        """Judged items in the first k places, relevant or not, per case."""
        everything = Reading(
            replace(self.hits, grade=None), None, "all" if self._repeats_count else "first", self.context
        )
        return everything.count(k)

    def gain(self, gain: Gain) -> Float:
        """The gain of each relevant hit, times the item's weight where there is one."""
        return self._keep(("gain", gain), lambda: self._weighed(gains(gain, self.grade), self.weight))

    def add(self, values: Float) -> Float:
        """Sum of a value over the relevant hits of each case, in rank order."""
        return self._add(self._index, values)

    def within(self, k: int | Int | None) -> Float:
        """How much of each relevant hit lies in the first k places: 0 or 1, a share inside a tie."""
        if k is None:
            return np.ones(len(self.case))
        cut = k if isinstance(k, int) else k[self.case]
        if self.tied is None:
            return (self.rank <= cut).astype(np.float64)
        return np.clip((cut - self.rank + 1) / self.tied, 0.0, 1.0)

    def count(self, k: int | None) -> Float:
        """Relevant hits in the first k places, per case."""
        return self._keep(("count", k), lambda: self.add(self.within(k)))

    def count_weight(self, k: int | None) -> Float:
        """Like count, each hit with its item's weight."""
        weight = self.weight
        if weight is None:
            return self.count(k)
        return self._keep(("count_weight", k), lambda: self.add(self.within(k) * weight))

    def place_weights(self, table: Callable[[int], Float], k: int | None) -> Float:
        """weight(place) of each relevant hit, 0 beyond k; its mean over the group under ties."""
        if len(self.rank) == 0:
            return np.zeros(0)
        last = int(self.rank.max() if self.tied is None else (self.rank + self.tied - 1).max())
        weights = table(last if k is None else min(last, k))
        if self.tied is None:  # a place beyond the last weight gets the 0 behind it
            return np.append(weights, 0.0).take(self._place, mode="clip")
        return self._mean_in_group(weights)

    def discounted(self, gain: Gain, discount: Discount, k: int | None) -> Float:
        """DCG per case."""
        key = ("dcg", gain, discount, k)
        return self._keep(
            key,
            lambda: self.add(
                self.gain(gain) * self.place_weights(lambda n: discount_weights(discount, n), k)
            ),
        )

    def best(self, gain: Gain, discount: Discount, places: Int) -> Float:
        """DCG of the best list that has `places` places, per case."""
        longest = int(places.max(initial=0))
        worth = self._keep(("ideal", gain), lambda: self._sorted_gains(gain))
        if worth is None:
            return running_weights(discount, longest).take(np.minimum(self.n_relevant, places))
        inside = self._ideal_place <= places[self._ideal_case]
        weights = discount_weights(discount, max(longest, 1))[self._ideal_place[inside] - 1]
        return self._add(self._ideal_case[inside], worth[inside] * weights)

    def largest_gain(self, gain: Gain) -> float:
        """The largest gain a relevant item of the truth has."""
        worth = self._keep(("ideal", gain), lambda: self._sorted_gains(gain))
        return 1.0 if worth is None else float(worth.max(initial=0.0))

    def _sorted_gains(self, gain: Gain) -> Float | None:
        """Gains of the relevant truth from the highest, per case; None when all are 1."""
        grade, weight = self.hits.truth_grade, self.hits.truth_weight
        flat = grade is None and gain in ("grade", "binary", "exp2")
        if weight is None and (flat or gain == "binary"):
            return None
        mask = slice(None) if self._truth_relevant is None else self._truth_relevant
        ones = np.ones(int(self.hits.truth_indptr[-1])) if grade is None else grade
        worth = self._weighed(gains(gain, ones[mask]), None if weight is None else weight[mask])
        if weight is None and isinstance(gain, str):
            return worth
        return np.asarray(worth[np.lexsort((-worth, self._ideal_case))])

    @cached_property
    def _truth_case(self) -> Int:
        return np.repeat(np.arange(self.n_cases), self.hits.n_judged)

    @cached_property
    def _ideal_case(self) -> Int:
        return self._truth_case if self._truth_relevant is None else self._truth_case[self._truth_relevant]

    @cached_property
    def _ideal_place(self) -> Int:
        starts = np.concatenate([[0], np.cumsum(self.n_relevant)])
        return np.asarray(np.arange(1, len(self._ideal_case) + 1) - starts[self._ideal_case])

    @cached_property
    def _truth_relevant(self) -> Bool | None:
        return self._relevant(self.hits.truth_grade, int(self.hits.truth_indptr[-1]))

    @cached_property
    def _hits_relevant(self) -> Bool | None:
        keep = self._relevant(self.hits.grade, len(self.hits.case))
        if self.hits.repeat is None or self._repeats_count:
            return keep
        return ~self.hits.repeat if keep is None else keep & ~self.hits.repeat

    def _relevant(self, grade: Float | None, size: int) -> Bool | None:
        """Which entries are relevant; None for all of them."""
        if grade is None:
            return None if self._least is None or self._least <= 1 else np.zeros(size, dtype=bool)
        mask: Bool = relevant(grade, self._least)
        return None if mask.all() else mask

    def _pick(self, values: Array) -> Array:
        return values if self._hits_relevant is None else values[self._hits_relevant]

    def _mean_in_group(self, weights: Float) -> Float:
        tied = self.rank if self.tied is None else self.tied
        groups, back = np.unique(np.stack([self.rank, tied]), axis=1, return_inverse=True)
        means = [float(weights[a - 1 : a - 1 + t].sum()) / t for a, t in groups.T.tolist()]
        return np.asarray(means)[np.ravel(back)]

    def _weighed(self, values: Float, weight: Float | None) -> Float:
        return values if weight is None else values * weight


def cut_at(k: int | None, sizes: Int) -> Int:
    """min(k, size) per case; the whole of it without k."""
    return sizes if k is None else np.minimum(k, sizes)


def divisor(rule: str, k: int | None, reading: Reading) -> Float:
    """What a count is divided by, per case, by its convention's name; without k, k is the list's length."""
    if rule == "k":
        return reading.n_listed.astype(np.float64) if k is None else np.full(reading.n_cases, float(k))
    if rule == "hits":
        return reading.count(k)
    if rule == "relevant":
        return reading.n_relevant.astype(np.float64)
    return cut_at(k, reading.n_listed if rule == "list" else reading.n_relevant).astype(np.float64)
