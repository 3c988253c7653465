"""The best and the worst order of equal scores, for ties="best" and ties="worst".

An order is found for each metric, and the metric's ordinary function measures it: no metric has a second
definition here. `Metric.tie_order` says how it is found. Where one order is proven to be the best, it is
made; where only the items in the first k places matter, every choice of at most 8 tied items is measured;
where neither helps, the request is refused.

A group is the entries of one case that share a score: `above` places come before it, it has `size` places.
Its members are the entries that are known here, such as the hits. The others are interchangeable and count 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import ConventionError, Phrase
from recsys.metrics.readings import MOST_TIED, Reading
from recsys.metrics.registry import Request, Terms
from recsys.metrics.weights import discount_weights
from recsys.records.arrays import Array, Bool, Float, Hits, Ids, Int, Shown, runs


def orders(reading: Reading, request: Request, rules: Conventions) -> Iterator[Reading]:
    """Readings without ties; the best (worst) value of each case over them is that over all orders.

    Raises:
        ConventionError: nothing proves an order, and too many items are tied for a search.
    """
    if request.metric.population == "listed":
        return _orders_of_lists(reading, request, rules)
    return _orders_of_hits(reading, request, rules)


def choice(request: Request, rules: Conventions) -> Callable[[Float, Float], Float]:
    """Return the function that takes the better (worse) of two values of each case; NaN is neither."""
    return np.fmax if (rules.ties == "best") == (request.metric.better != "lower") else np.fmin


def check_one_order(
    reading: Reading, request: Request, rules: Conventions, *, by_place: bool, why: str
) -> None:
    """Raise ConventionError, with the reason `why`, if the order of equal scores matters.

    `by_place` says that not only the items in the first k places matter, but also their places.
    """
    shown, k = reading.list_context.shown(), request.k
    groups = _list_groups(shown, request, rules)
    if groups is None:
        return
    open_groups = groups.size > 1
    if k is not None:
        open_groups &= groups.above < k
    if not by_place:
        open_groups &= groups.crosses(k)
    if open_groups.any():
        n = len(np.unique(groups.case[open_groups]))
        raise _no_order(request, rules, f"{why} (lists in which it matters: {n:,})")


class _TiedEntries(NamedTuple):
    """The group of each member: its case, the places above it and its size; sorted by case and `above`."""

    case: Array
    above: Int
    size: Int

    def crosses(self, k: int | None) -> Bool:
        """Return which members are in a group that begins in the first k places and goes on beyond them."""
        if k is None:
            return np.zeros(len(self.case), dtype=bool)
        return np.asarray((self.above < k) & (k < self.above + self.size))

    def number(self) -> tuple[Int, Int]:
        """Return the number 0, 1, … of each member in its group, and how many members the group has."""
        starts, sizes = runs(self.case, self.above)
        return np.arange(len(self.case)) - np.repeat(starts, sizes), np.repeat(sizes, sizes)

    def places(self, key: Float, *, best: bool, weights: Float | None = None) -> Int:
        """Return the place of each member if the highest keys come first (last, for the worst order).

        Members with a negative key come after the entries that count 0. With `weights` of places 1, 2, …
        the highest key gets the place of most weight: no order has a higher (lower) sum of key x weight.
        """
        favour = key if best else -key
        order = np.lexsort((-favour, self.above, self.case))
        slot, n_members = self.number()
        slot = np.where(favour[order] < 0, slot + self.size - n_members, slot)
        if weights is not None:
            for start, n in zip(*(x.tolist() for x in runs(self.case, self.above)), strict=True):
                above, size = int(self.above[start]), int(self.size[start])
                by_weight = np.argsort(-weights[above : above + size], kind="stable")
                slot[start : start + n] = by_weight[slot[start : start + n]]
        out = np.empty(len(order), dtype=np.int64)
        out[order] = self.above + 1 + slot
        return out

    def choices(self, places: Int, k: int, among: Bool) -> Iterator[Int]:
        """Yield `places`, with every choice of those in the first k, of members of crossing groups."""
        crossing = np.flatnonzero(among)
        part = _TiedEntries(*(column[crossing] for column in self))
        slot, n = part.number()
        inside = k - part.above
        kinds, kind = np.unique(
            np.stack([n, np.maximum(0, n - (part.size - inside)), np.minimum(n, inside)]),
            axis=1,
            return_inverse=True,
        )
        tables = [_choices(*column) for column in kinds.T.tolist()]
        for turn in range(max(map(len, tables), default=1)):
            out = places.copy()
            for number, table in enumerate(tables):
                chosen = table[turn % len(table)]
                # Chosen members from the top of the group, the others up to its end.
                before = np.where(
                    chosen, np.cumsum(chosen) - 1, np.cumsum(~chosen) - 1 - int((~chosen).sum())
                )
                at = np.flatnonzero(np.ravel(kind) == number)
                to = before[slot[at]]
                out[crossing[at]] = part.above[at] + 1 + to + np.where(to < 0, part.size[at], 0)
            yield out

    def numbers_inside(self, places: Int, k: int, counted: Bool, *, best: bool) -> Iterator[Int]:
        """Yield `places`, with every possible number of the counted members of a group in the first k places.

        Members that count are interchangeable: those inside are as high (low) as they can be.
        """
        crossing = np.flatnonzero(self.crosses(k) & counted)
        part = _TiedEntries(*(column[crossing] for column in self))
        slot, n = part.number()
        inside = k - part.above
        fewest, most = np.maximum(0, n - (part.size - inside)), np.minimum(n, inside)
        for wanted in range(int(fewest.min(initial=0)), int(most.max(initial=0)) + 1):
            within = np.clip(wanted, fewest, most)
            first = part.above if best else k - within
            out = places.copy()
            out[crossing] = 1 + slot + np.where(slot < within, first, part.above + part.size - n)
            yield out


@lru_cache(maxsize=1 << 10)
def _choices(n: int, fewest: int, most: int) -> Array:
    """Return every choice of `fewest` to `most` of n members, one row each."""
    chosen = [c for size in range(fewest, most + 1) for c in combinations(range(n), size)]
    table = np.zeros((len(chosen), n), dtype=bool)
    for row, members in enumerate(chosen):
        table[row, list(members)] = True
    return table


def _orders_of_hits(reading: Reading, request: Request, rules: Conventions) -> Iterator[Reading]:
    """Yield the places of the judged items, for metrics that read them."""
    hits, metric, best = reading.hits, request.metric, rules.ties == "best"
    if hits.tied is None:
        yield reading
        return
    groups = _TiedEntries(hits.case, hits.rank - 1, hits.tied)
    own_discount = "discount" in metric.conventions and not isinstance(rules.discount, str)
    tie_order = metric.tied.tie_order
    n_hits_matters = tie_order == "number" and rules.ap_over == "hits" and request.k is not None
    if not (callable(tie_order) or own_discount or n_hits_matters):
        gain = rules.gain if "gain" in metric.conventions else ""
        yield reading.cached(  # one order for most metrics
            ("order", best, gain, metric.truth.weighted, metric.population),
            lambda: reading.reordered(
                _at_places(hits, groups.places(_relevance(reading, request, rules), best=best))
            ),
        )
        return
    key, weights = np.zeros(len(hits.case)), None
    if callable(tie_order):
        own = tie_order(reading, request.k, rules, best=best, **request.own_params)
        key[reading.is_relevant] = own
    else:
        key = _relevance(reading, request, rules)
    if own_discount:
        weights = discount_weights(rules.discount, int((groups.above + groups.size).max(initial=0)))
        weights = np.where(np.arange(len(weights)) < (request.k or len(weights)), weights, 0.0)
    places = groups.places(key, best=best, weights=weights)
    if not n_hits_matters or request.k is None:
        yield reading.reordered(_at_places(hits, places))
        return
    for choice_of_places in groups.numbers_inside(places, request.k, reading.is_relevant, best=best):
        yield reading.reordered(_at_places(hits, choice_of_places))


def _relevance(reading: Reading, request: Request, rules: Conventions) -> Float:
    """Return what each hit is worth to a metric of relevant items: its gain, its weight, or its grade.

    Metrics that read places only are best with the relevant items on top, whatever their order. A judged item
    that is not relevant does harm, or is worth something where judgements are counted.
    """
    metric, hits = request.metric, reading.hits
    worth = np.full(len(hits.case), 1.0 if metric.population == "judged" else -1.0)
    if "gain" in metric.conventions:
        worth[reading.is_relevant] = reading.gain(rules.gain)
    elif metric.truth.weighted and reading.weight is not None:
        worth[reading.is_relevant] = reading.weight
    else:
        worth[reading.is_relevant] = reading.grade
    if hits.repeat is not None:
        worth[hits.repeat & ~reading.is_relevant] = 0.0
    return worth


def _at_places(hits: Hits, places: Int) -> Hits:
    """Return the hits at these places, without ties."""
    order = np.lexsort((places, hits.case))

    def moved(values: Any) -> Any:
        return None if values is None else values[order]

    return replace(
        hits,
        case=hits.case[order],
        item=hits.item[order],
        rank=places[order],
        grade=moved(hits.grade),
        tied=None,
        repeat=moved(hits.repeat),
        weight=moved(hits.weight),
    )


def _orders_of_lists(reading: Reading, request: Request, rules: Conventions) -> Iterator[Reading]:
    """Yield the places of the items shown, for metrics that read the lists."""
    tie_order, k, best = request.metric.tied.tie_order, request.k, rules.ties == "best"
    shown = reading.list_context.shown()
    groups = _list_groups(shown, request, rules)
    if groups is None:
        yield reading
        return
    key, open_entries = np.zeros(len(groups.case)), groups.crosses(k)
    if callable(tie_order):
        own = tie_order(reading, k, rules, best=best, **request.own_params)
        if own is None:
            why = "an item shares its score with its own repeat"
            check_one_order(reading, request, rules, by_place=True, why=why)
        key, open_entries = key if own is None else own, np.zeros(len(key), dtype=bool)
    elif tie_order == "items":
        key, open_entries = _values_of_items(reading, request, rules, groups)
    elif tie_order != "set":
        why = "it is not known how the order moves it"
        check_one_order(reading, request, rules, by_place=True, why=why)
    n_members = np.where(open_entries, groups.number()[1], 0)
    if n_members.max(initial=0) > MOST_TIED:
        user = reading.list_context.users.name(groups.case[np.argmax(n_members)])
        why = (
            f"{n_members.max():,} items of user {user!r} share the score at place {k}, and only choices of "
            f"at most {MOST_TIED} are tried"
        )
        raise _no_order(request, rules, why)
    places = groups.places(key, best=best)
    for one in (places,) if k is None else groups.choices(places, k, open_entries):
        yield reading.reordered(reading.hits, _lists_at(shown, groups.case, one))


def _list_groups(shown: Shown, request: Request, rules: Conventions) -> _TiedEntries | None:
    """Return the groups of the list entries; None if no two scores of a list are equal."""
    if not shown.ties_known:
        raise _no_order(
            request, rules, "a model's lists end at place k; which items share the last score is not kept"
        )
    if shown.above is None or shown.tied is None:
        return None
    return _TiedEntries(np.repeat(np.arange(len(shown.sizes)), shown.sizes), shown.above, shown.tied)


def _values_of_items(
    reading: Reading, request: Request, rules: Conventions, groups: _TiedEntries
) -> tuple[Float, Bool]:
    """Return the metric of each item as a list, in the metric's favour, and which items that leaves open.

    The metric of a list grows with the sum of these values, as long as lists show equally many items that
    have a value: no repeats, and none that was left out of these lists.
    """
    listed, context = reading.listed, reading.list_context
    key, crossing = np.zeros(len(listed.item)), groups.crosses(request.k)
    left_open = groups.number()[1] < groups.size
    if reading.uncounted is not None:
        left_open |= np.bincount(listed.case[reading.uncounted], minlength=reading.n_cases)[listed.case] > 0
    at = np.flatnonzero(crossing & ~left_open)
    if len(at):
        alone = Shown(np.arange(len(at) + 1), listed.item[at])
        hits = Hits(
            n_cases=len(at), case=np.zeros(0, np.int32), item=np.zeros(0, np.int32),
            rank=np.zeros(0, np.int64), grade=None, n_listed=np.ones(len(at), np.int64),
            truth_indptr=np.zeros(len(at) + 1, np.int64), truth_grade=None,
        )  # fmt: skip
        users = Ids(context.users.values[listed.case[at]])
        one_each = reading.reordered(hits, alone, users)
        values = request.metric.body(one_each, request.k, rules, **request.own_params)
        column = values.value if isinstance(values, Terms) else np.asarray(values)
        starts, sizes = runs(groups.case[at], groups.above[at])
        n_without = np.add.reduceat(np.isnan(column).astype(np.int64), starts)
        left_open[at] |= np.repeat((n_without > 0) & (n_without < sizes), sizes)
        key[at] = np.nan_to_num(-column if request.metric.better == "lower" else column)
    return key, crossing & left_open


def _lists_at(shown: Shown, case: Array, places: Int) -> Shown:
    """Return the same lists with their entries at these places."""
    order = np.lexsort((places, case))
    kept = None if shown.places is None else places[order].astype(np.int32)
    return Shown(shown.indptr, shown.codes[order], kept, shown.repeated)


def _no_order(request: Request, rules: Conventions, why: str) -> ConventionError:
    name = request.metric.name
    return ConventionError(
        f"{request} has no known {rules.ties} order of equal scores: {why}.",
        hint=Phrase("Use {ties='by_id'}, or {per_metric=} for {} alone.", name),
    )
