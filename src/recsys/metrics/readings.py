"""What a metric may read: the relevant hits, their places and gains, and the items shown.

Results are cached, so eighteen metrics cost little more than one, and nothing is computed before a metric
reads it. Under `ties="expected"` a place is a group of places, and the weight of a place becomes its mean
over the group; a metric that only adds up such weights is then an exact expectation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from recsys.conventions.decisions import Discount, Gain, relevant
from recsys.errors import InputError, NotDefinedError
from recsys.metrics.attributes import ItemFacts
from recsys.metrics.weights import discount_divisors, discount_weights, gains, running_weights
from recsys.records.arrays import (
    Array,
    Bool,
    Codes,
    Context,
    Float,
    Hits,
    Ids,
    Int,
    Interactions,
    Lists,
    Shown,
    cached_property,
    entries_of_cases,
    is_in,
    is_repeat,
    number_in_run,
)

T = TypeVar("T")
MOST_TIED = 8  # different items of one score among which the best and the worst order are searched


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


class Reading:
    """Hits under one rule of relevance and of repeats; metrics with the same two rules share it."""

    def __init__(
        self,
        hits: Hits,
        relevant_from: float | None,
        duplicates: str,
        context: Context,
        list_context: ListContext | None = None,
    ) -> None:
        self.hits = hits
        self.n_cases = hits.n_cases
        self.n_listed = hits.n_listed
        """Length of the list of each case."""
        self.context = context
        self._relevant_from = relevant_from
        self._repeats_count = duplicates == "all"
        self._list_context = list_context
        self._cache: dict[Hashable, object] = {}

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the result of `compute`, computed once per key and shared by all metrics."""
        try:
            if key not in self._cache:
                self._cache[key] = compute()
            return self._cache[key]  # type: ignore[return-value]
        except TypeError:  # the key holds a gain or discount that cannot be hashed
            return compute()

    def reordered(self, hits: Hits, shown: Shown | None = None, users: Ids | None = None) -> Reading:
        """Return the same rules and context with other hits, lists or users of the lists."""
        lists = self._list_context
        if shown is not None:
            owners = self.list_context.users if users is None else users
            lists = self.list_context._replace(users=owners, shown=lambda: shown)
        duplicates = "all" if self._repeats_count else "first"
        return Reading(hits, self._relevant_from, duplicates, self.context, lists)

    def sum_by_case(self, case: Array, values: Float) -> Float:
        """Sum of the values of each case, added in the order given."""
        return add_up(case, values, self.n_cases)

    @cached_property
    def n_relevant(self) -> Int:
        """Relevant items in the truth, per case."""
        counts = self.hits.n_judged
        if self._truth_relevant is None:
            return counts
        return np.bincount(self._truth_case[self._truth_relevant], minlength=self.n_cases)

    @cached_property
    def relevant_weight(self) -> Float:
        """The divisor of recall: the number of relevant items, or the sum of their weights."""
        if self.hits.truth_weight is None:
            return self.n_relevant.astype(np.float64)
        mask = slice(None) if self._truth_relevant is None else self._truth_relevant
        return check_finite(
            self.sum_by_case(self._truth_case[mask], self.hits.truth_weight[mask]), "item weights"
        )

    @cached_property
    def without_list(self) -> Bool | None:
        """Which cases have no list; None if every case has one."""
        return mask_or_none(self.n_listed == 0)

    @cached_property
    def given_no_list(self) -> Bool | None:
        """Which cases were given no list, so that not even unjudged items could be taken out of it."""
        given_none = self.hits.given_none
        return self.without_list if given_none is None else mask_or_none(given_none)

    def without_truth(self, population: str) -> Bool | None:
        """Return which cases have no relevant (or judged) items; None if every case has some."""
        if population == "listed":
            return None
        counts = self.n_relevant if population == "relevant" else self.hits.n_judged
        return self.cached(("without_truth", population), lambda: mask_or_none(counts == 0))

    @cached_property
    def relevant_pairs(self) -> tuple[Int, Array]:
        """Case and item of every relevant item of the truth, by case and item."""
        judged = self.list_context.judged
        mask = self._relevance_mask(self.list_context.grades, len(judged))
        keep = slice(None) if mask is None else mask
        return self._truth_case[keep], judged[keep]

    @cached_property
    def relevant_grades(self) -> Float:
        """The grade of each pair of `relevant_pairs`; 1 where the truth has none."""
        grades = self.list_context.grades
        if grades is None:
            return np.ones(len(self.relevant_pairs[1]))
        mask = self._relevance_mask(grades, len(grades))
        return grades if mask is None else grades[mask]

    @cached_property
    def case(self) -> Array:
        """The case of each relevant hit."""
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
        """Size of each hit's group of equal scores; None where every place is known."""
        return None if self.hits.tied is None else self._pick(self.hits.tied)

    @cached_property
    def grade(self) -> Float:
        """The grade of each relevant hit; 1 where the truth has none."""
        grade = self.hits.grade
        return np.ones(len(self.case)) if grade is None else self._pick(grade)

    @cached_property
    def weight(self) -> Float | None:
        """The item weight of each relevant hit; None where items have none."""
        return None if self.hits.weight is None else self._pick(self.hits.weight)

    @cached_property
    def order(self) -> Int:
        """1, 2, … among the relevant hits of a case, by rank."""
        return number_in_run(self.case, first=1)

    @cached_property
    def first(self) -> Float:
        """The place of the first relevant hit of each case, infinity where there is none."""
        out = np.full(self.n_cases, np.inf)
        at = np.flatnonzero(self.order == 1)
        out[self._index[at]] = self.rank[at]
        return out

    @cached_property
    def _index(self) -> Int:
        """The case of each relevant hit as int64, which NumPy would otherwise convert to for every sum."""
        return self.case.astype(np.int64, copy=False)

    @cached_property
    def _place_index(self) -> Int:
        """The place of each relevant hit, counted from 0."""
        return self.rank - 1

    @cached_property
    def mean_rank(self) -> Float:
        """The place of each relevant hit; under ties the middle of its group."""
        return self.rank.astype(np.float64) if self.tied is None else self.rank + (self.tied - 1) / 2

    @cached_property
    def once(self) -> Reading:
        """The same with every item counted at its first place only, whatever the rule of repeats."""
        if self.hits.repeat is None or not self._repeats_count:
            return self
        return Reading(self.hits, self._relevant_from, "first", self.context, self._list_context)

    @cached_property
    def place_in_ideal(self) -> Int:
        """The place of each relevant hit in the best list, which keeps the order of equal grades."""
        grade, mask = self.hits.truth_grade, self._truth_relevant
        if grade is None:
            return self.order
        wanted = grade if mask is None else grade[mask]
        levels, level = np.unique(-np.concatenate([wanted, self.grade]), return_inverse=True)
        width, n_truth = len(levels), len(self._ideal_case)
        truth_key = self._ideal_case * width + level[:n_truth]  # ascending: the truth is sorted by grade
        hit_key = self._index * width + level[n_truth:]
        n_better = np.searchsorted(truth_key, hit_key) - np.searchsorted(truth_key, self._index * width)
        out = np.empty(len(hit_key), dtype=np.int64)
        by_grade = np.argsort(hit_key, kind="stable")
        out[by_grade] = number_in_run(hit_key[by_grade], first=1)
        return np.asarray(out + n_better)

    @cached_property
    def bad_above(self) -> Float:
        """How many judged, non-relevant hits are above each relevant hit."""
        relevant = self._relevance_mask(self.hits.grade, len(self.hits.case))
        if relevant is None:
            return np.zeros(len(self.case))
        first = np.ones(len(relevant), dtype=bool) if self.hits.repeat is None else ~self.hits.repeat
        running = np.cumsum(~relevant & first)
        starts = np.searchsorted(self.hits.case, np.arange(self.n_cases))
        before = np.concatenate([[0], running])[starts]
        return np.asarray(self._pick(running) - before[self.case], dtype=np.float64)

    @cached_property
    def unjudged_above(self) -> Int:
        """How many listed items of a negative grade, pooled and not judged, are above each relevant hit."""
        if self.context.pooled is None:
            return np.zeros(len(self.case), dtype=np.int64)
        case, item, place = self.shown(None)
        width = int(max(place.max(initial=0), self.rank.max(initial=0))) + 1
        pairs = case.astype(np.int64) * len(self.facts.ids) + item
        keys = np.sort((case.astype(np.int64) * width + place)[np.isin(pairs, self.context.pooled)])
        first = self._index * width
        return np.asarray(np.searchsorted(keys, first + self.rank) - np.searchsorted(keys, first))

    def count_judged(self, k: int | None) -> Float:
        """Judged items in the first k places, relevant or not, per case."""
        duplicates = "all" if self._repeats_count else "first"
        return Reading(replace(self.hits, grade=None), None, duplicates, self.context).count(k)

    def gain(self, gain: Gain) -> Float:
        """Return the gain of each relevant hit, times the item's weight where there is one."""
        return self.cached(("gain", gain), lambda: _times(gains(gain, self.grade), self.weight))

    def add(self, values: Float) -> Float:
        """Sum of one value per relevant hit over each case, in rank order."""
        return add_up(self._index, values, self.n_cases)

    def within(self, k: int | Int | None) -> Float:
        """Return how much of each relevant hit is in the first k places: 0 or 1; a share if ties cross k."""
        if k is None:
            return np.ones(len(self.case))
        cut = k if isinstance(k, int) else k[self.case]
        if self.tied is None:
            return (self.rank <= cut).astype(np.float64)
        return np.clip((cut - self.rank + 1) / self.tied, 0.0, 1.0)

    def count(self, k: int | None) -> Float:
        """Relevant hits in the first k places, per case."""
        return self.cached(("count", k), lambda: self.add(self.within(k)))

    def count_weight(self, k: int | None) -> Float:
        """Like `count`, with each hit counted by its item's weight."""
        weight = self.weight
        if weight is None:
            return self.count(k)
        return self.cached(("count_weight", k), lambda: self.add(self.within(k) * weight))

    def place_weights(self, table: Callable[[int], Float], k: int | None) -> Float:
        """Return the weight of each relevant hit's place, 0 beyond k; under ties its mean over the group.

        Args:
            table: a function from n to the weights of places 1 … n.
            k: the last place that counts; None for all.
        """
        if len(self.rank) == 0:
            return np.zeros(0)
        last = int(self.rank.max() if self.tied is None else (self.rank + self.tied - 1).max())
        weights = table(last if k is None else min(last, k))
        if self.tied is None:
            padded = np.zeros(len(weights) + 1)
            padded[:-1] = weights
            return padded.take(self._place_index, mode="clip")  # a place beyond the last weight gets the 0
        groups, back = np.unique(np.stack([self.rank, self.tied]), axis=1, return_inverse=True)
        means = [float(weights[a - 1 : a - 1 + t].sum()) / t for a, t in groups.T.tolist()]
        return np.asarray(means)[np.ravel(back)]

    def discounted(self, gain: Gain, discount: Discount, k: int | None) -> Float:
        """Return the DCG per case."""

        def dcg() -> Float:
            terms = self.gain(gain)
            if isinstance(discount, str) and self.tied is None:  # one rounding a term, as by the formula
                over = self.place_weights(lambda n: discount_divisors(discount, n), k)
                sums = self.add(np.divide(terms, over, out=np.zeros(len(over)), where=over > 0))
            else:
                sums = self.add(terms * self.place_weights(lambda n: discount_weights(discount, n), k))
            return sums if self.hits.grade is None and self.weight is None else check_finite(sums, "gains")

        return self.cached(("dcg", gain, discount, k), dcg)

    def best(self, gain: Gain, discount: Discount, places: Int) -> Float:
        """Return the DCG of the best list that has `places` places, per case."""
        longest = int(places.max(initial=0))
        ideal_gains = self.cached(("ideal", gain), lambda: self._sorted_gains(gain))
        if ideal_gains is None:
            return running_weights(discount, longest).take(np.minimum(self.n_relevant, places))
        inside = self._ideal_place <= places[self._ideal_case]
        case, place, terms = self._ideal_case[inside], self._ideal_place[inside] - 1, ideal_gains[inside]
        if isinstance(discount, str):
            terms = terms / discount_divisors(discount, max(longest, 1))[place]
        else:
            terms = terms * discount_weights(discount, max(longest, 1))[place]
        sums = self.sum_by_case(case, terms)
        return check_finite(sums, "gains of the truth")

    def ideal(self, gain: Gain) -> tuple[Int, Float]:
        """Return the case and the gain of each place of the best list that holds every relevant item."""
        gains_of_best = self.cached(("ideal", gain), lambda: self._sorted_gains(gain))
        return self._ideal_case, np.ones(len(self._ideal_case)) if gains_of_best is None else gains_of_best

    @cached_property
    def hits_in_turn(self) -> list[Int]:
        """The first relevant hit of every case that has one, then the second ones, and so on."""
        return np.split(np.argsort(self.order, kind="stable"), np.cumsum(np.bincount(self.order)[1:]))[:-1]

    def largest_gain(self, gain: Gain) -> float:
        """Return the largest gain of a relevant item of the truth."""
        ideal_gains = self.cached(("ideal", gain), lambda: self._sorted_gains(gain))
        return 1.0 if ideal_gains is None else float(ideal_gains.max(initial=0.0))

    def _sorted_gains(self, gain: Gain) -> Float | None:
        """Gains of the relevant items of each case, highest first; None when all are 1."""
        grade, weight = self.hits.truth_grade, self.hits.truth_weight
        all_ones = grade is None and gain in ("grade", "binary", "exp2")
        if weight is None and (all_ones or gain == "binary"):
            return None
        mask = slice(None) if self._truth_relevant is None else self._truth_relevant
        ones = np.ones(int(self.hits.truth_indptr[-1])) if grade is None else grade
        values = _times(gains(gain, ones[mask]), None if weight is None else weight[mask])
        if weight is None and isinstance(gain, str):  # the truth is sorted by grade, gains grow with it
            return values
        return np.asarray(values[np.lexsort((-values, self._ideal_case))])

    @cached_property
    def _truth_case(self) -> Int:
        """The case of each judged item of the truth."""
        return np.repeat(np.arange(self.n_cases), self.hits.n_judged)

    @cached_property
    def _ideal_case(self) -> Int:
        """The case of each relevant item of the truth."""
        return self._truth_case if self._truth_relevant is None else self._truth_case[self._truth_relevant]

    @cached_property
    def _ideal_place(self) -> Int:
        """The place of each relevant item of the truth in the best list."""
        starts = np.concatenate([[0], np.cumsum(self.n_relevant)])
        return np.asarray(np.arange(1, len(self._ideal_case) + 1) - starts[self._ideal_case])

    @cached_property
    def _truth_relevant(self) -> Bool | None:
        return self._relevance_mask(self.hits.truth_grade, int(self.hits.truth_indptr[-1]))

    @cached_property
    def _hits_relevant(self) -> Bool | None:
        """Which hits are relevant and count; None for all of them."""
        keep = self._relevance_mask(self.hits.grade, len(self.hits.case))
        if self.hits.repeat is None or self._repeats_count:
            return keep
        return ~self.hits.repeat if keep is None else keep & ~self.hits.repeat

    @cached_property
    def is_relevant(self) -> Bool:
        """Which hits are relevant and count, of all hits."""
        mask = self._hits_relevant
        return np.ones(len(self.hits.case), dtype=bool) if mask is None else mask

    def _relevance_mask(self, grade: Float | None, size: int) -> Bool | None:
        """Return which of `size` entries are relevant by their grades; None for all of them."""
        threshold = self._relevant_from
        if grade is None:
            return None if threshold is None or threshold <= 1 else np.zeros(size, dtype=bool)
        mask: Bool = relevant(grade, threshold)
        return None if mask.all() else mask

    def _pick(self, values: Array) -> Array:
        """Return the values of the relevant hits, from one value per hit."""
        return values if self._hits_relevant is None else values[self._hits_relevant]

    # What metrics about the items shown read; metrics of ranks alone use nothing below.

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
        """Return how many of the items shown have no vector, number or label."""
        if need == "embeddings":
            unknown = self.facts.rows < 0
        elif self.facts.is_number(column):
            unknown = np.isnan(self.facts.number(column))
        else:
            unknown = np.diff(self.facts.attribute(column).indptr) == 0
        return int(unknown[self.shown(k).item].sum())

    @cached_property
    def listed(self) -> Entries:
        """Every entry of the lists, repeats included."""
        shown = self.list_context.shown()
        case = np.repeat(np.arange(self.n_cases, dtype=np.int32), shown.sizes)
        return Entries(case, shown.codes, shown.place_of_entries())

    @cached_property
    def is_repeat(self) -> Bool | None:
        """Which entries of `listed` repeat an earlier one of their list; None if none does."""
        if not self.list_context.shown().repeated or len(self.listed.case) == 0:
            return None
        pair = self.listed.case.astype(np.int64) * len(self.facts.ids) + self.listed.item
        return mask_or_none(is_repeat(pair))

    @property
    def uncounted(self) -> Bool | None:
        """Which entries of `listed` count nothing, because they repeat an earlier one; None if none does."""
        return None if self._repeats_count else self.is_repeat

    def shown(self, k: int | None) -> Entries:
        """Return the items in the first k places, each once unless the conventions count repeats."""
        return self.cached(("shown", k), lambda: self._first_places(k))

    def _first_places(self, k: int | None) -> Entries:
        keep: Bool | None = None
        if k is not None and self.listed.place.max(initial=0) > k:
            keep = self.listed.place <= k
        if self.uncounted is not None:
            keep = ~self.uncounted if keep is None else keep & ~self.uncounted
        return self.listed if keep is None else Entries(*(column[keep] for column in self.listed))

    def n_shown(self, k: int | None) -> Int:
        """Return how many items `shown` holds for each case."""
        entries = self.shown(k)
        return self.cached(("n_shown", k), lambda: np.bincount(entries.case, minlength=self.n_cases))

    def n_places(self, k: int | None) -> Int:
        """Return the length of each case's list, at most k; of a group of items, as far as its last one."""
        last = np.zeros(self.n_cases, dtype=np.int64)
        np.maximum.at(last, self.listed.case, self.listed.place)
        return last if k is None else np.minimum(last, k)

    def mean_shown(self, k: int | None, values: Float) -> Float:
        """Mean over the items shown of one value per item, per case; 0 where nothing is shown."""
        entries = self.shown(k)
        total = self.sum_by_case(entries.case, values[entries.item])
        return np.divide(total, self.n_shown(k), out=np.zeros(self.n_cases), where=self.n_shown(k) > 0)

    def pairs(self, what: str) -> Entries:
        """Return the items of each case's user in one part of the context, by case.

        An item this evaluation does not know has the code -1.

        Args:
            what: "train" (what the user had), "reference" (lists of another model) or "eligible".
        """
        return self.cached(("pairs", what), lambda: self._align_to_cases(getattr(self.context, what)))

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
        """Return whether each pair of case and item is in `pairs(what)`, in its first k places."""
        known = self.pairs(what)
        keep = known.item >= 0 if k is None else (known.item >= 0) & (known.place <= k)
        width = max(len(self.facts.ids), 1)
        known_keys = np.sort(known.case[keep].astype(np.int64) * width + known.item[keep])
        return is_in(case.astype(np.int64) * width + item, known_keys)


def _times(values: Float, weight: Float | None) -> Float:
    return values if weight is None else values * weight


def cut_at(k: int | None, sizes: Int) -> Int:
    """Return min(k, size) per case; the sizes themselves without k."""
    return sizes if k is None else np.minimum(k, sizes)


def divisor(rule: str, k: int | None, reading: Reading) -> Float:
    """Return the divisor of a count per case, by a convention; without k, k is the list's length."""
    if rule == "k":
        return reading.n_listed.astype(np.float64) if k is None else np.full(reading.n_cases, float(k))
    if rule == "hits":
        return reading.count(k)
    if rule == "relevant":
        return reading.n_relevant.astype(np.float64)
    return cut_at(k, reading.n_listed if rule == "list" else reading.n_relevant).astype(np.float64)


def mask_or_none(mask: Bool) -> Bool | None:
    """Return the mask, or None if nothing is marked."""
    return mask if mask.any() else None


def add_up(case: Array, values: Float, n_cases: int) -> Float:
    """Sum of the values of each case, added in the order given."""
    return np.bincount(case, weights=values, minlength=n_cases).astype(np.float64, copy=False)


def check_finite(sums: Float, what: str) -> Float:
    """Return the sums themselves, or raise an error if one of them passes the largest float64."""
    if len(sums) and not math.isfinite(float(sums.max())):
        raise InputError(
            f"the {what} of one user exceed 1.8e308, the largest number there is.",
            hint="Divide all of them by the same number.",
        )
    return sums
