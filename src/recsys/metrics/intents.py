"""Intent-aware metrics: a relevant item serves intents, and serving the same intent again counts less.

Definitions are those of ndeval, the program of the TREC web tracks. Only intents of the case's relevant items
count, all of them equally. `intents=` is a column of `items=`, or says for each user what an item is relevant
for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import ConventionError, Phrase
from recsys.kernels.exact_sums import geometric_weights
from recsys.metrics.attributes import align_labels
from recsys.metrics.expectation import groups
from recsys.metrics.ranges import DataLimits, Range
from recsys.metrics.readings import MOST_TIED, Reading, add_up
from recsys.metrics.registry import Body, divide_or_zero, metric
from recsys.metrics.traits import Between
from recsys.metrics.weights import discount_weights
from recsys.records.arrays import Array, Float, Ids, Int, Table, number_in_run, positions, sorted_unique

_CLARKE = "Clarke et al., Novelty and diversity in information retrieval evaluation (2008)"
_NRBP = "Clarke, Kolla & Vechtomova, An effectiveness measure for ambiguous queries (2009)"
_AGRAWAL = "Agrawal et al., Diversifying search results (2009)"
Weights = Callable[[int], Float]


def intent_metric(name: str, **facts: Any) -> Callable[[Body], Body]:
    """Register a metric of the intents that the relevant items shown serve.

    A case without intents has no value, also if its list is empty: `empty` is what the body gives.
    """
    return metric(name, needs=("lists", "intents"), ties="refuse", empty=None, **facts)


class IntentHits(NamedTuple):
    """Relevant hits with their intents, one row per pair: its case, its place and its intent."""

    case: Int
    place: Int
    intent: Int


class Intents(NamedTuple):
    """The truth as pairs of relevant item and intent, and how many intents each case has.

    `size` is the number of different intents, at least 1.
    """

    case: Int
    item: Int
    intent: Int
    n_of_case: Int
    size: int


def truth_intents(h: Reading) -> Intents:
    """Return the intents of the truth of a reading; computed once."""
    return h.cached("intents", lambda: _intents_of_truth(h))


def _intents_of_truth(h: Reading) -> Intents:
    """Return the intents of the relevant items, from a column of the items or from a table by user."""
    case, item = h.relevant_pairs
    table = h.context.intents
    if isinstance(table, Table):
        items = Ids(table.columns["items"])
        width = max(len(items), 1)
        key = table.columns["user"].astype(np.int64) * width + table.columns["item"]
        order = np.argsort(key)
        user = table.ids.code_of(h.list_context.users.values)[case]
        code = items.code_of(h.facts.ids.values)[item]
        pair_key = np.where((user >= 0) & (code >= 0), user * width + code, -1)
        labels = align_labels(Ids(key[order]), table.columns["labels"][order], Ids(pair_key))
        entry, codes, _ = labels.of(np.arange(len(case)))
    else:
        labels = h.facts.attribute(table)
        entry, codes, _ = labels.of(item)
    pair_case, pair_item = case[entry], item[entry]
    size = max(len(labels.labels), 1)
    intents_of_cases = sorted_unique(pair_case * size + codes)
    n_of_case = np.bincount(intents_of_cases // size, minlength=h.n_cases)
    return Intents(pair_case, pair_item, codes, n_of_case, size)


def intents_of_hits(h: Reading, intents: Intents) -> IntentHits:
    """Return the relevant hits of the lists with their intents, by case and place."""
    return _join_intents(h, intents, (h.case, h.item, h.rank))


def _join_intents(h: Reading, intents: Intents, entries: tuple[Array, Array, Int]) -> IntentHits:
    """Entries (case, item, place) of relevant items, once for each of the item's intents."""
    case, item, place = entries
    width = max(len(h.facts.ids), 1)
    truth_key = intents.case.astype(np.int64) * width + intents.item
    key = case.astype(np.int64) * width + item
    low, high = np.searchsorted(truth_key, key, side="left"), np.searchsorted(truth_key, key, side="right")
    sizes = high - low
    at = positions(low, sizes)
    return IntentHits(np.repeat(case, sizes).astype(np.int64), np.repeat(place, sizes), intents.intent[at])


def greedy_order(h: Reading, intents: Intents, k: int | None, alpha: float) -> tuple[Int, Int, Int]:
    """Return case, item and place of lists that take the best item next, as in ndeval; by case and place.

    Of equally good items the one with the last id is taken.
    """
    width = max(len(h.facts.ids), 1)
    items, of_row = np.unique(intents.case.astype(np.int64) * width + intents.item, return_inverse=True)
    owner = items // width
    key = intents.case * intents.size + intents.intent
    gain = np.ones(h.n_cases * intents.size)
    place_of = np.zeros(len(items), dtype=np.int64)
    depth = int(np.bincount(owner, minlength=1).max(initial=0))
    for place in range(1, (depth if k is None else min(k, depth)) + 1):
        item_gain = np.where(place_of == 0, add_up(of_row, gain[key], len(items)), -1.0)
        # Sorted by case, gain and id, the best item with the last id is the last of its case.
        order = np.lexsort((np.arange(len(items)), item_gain, owner))
        last = np.concatenate([owner[order][1:] != owner[order][:-1], [True]])
        place_of[order[last & (place_of[order] == 0)]] = place
        gain[key[place_of[of_row] == place]] *= 1.0 - alpha
    order = np.lexsort((place_of, owner))
    order = order[place_of[order] > 0]
    return owner[order], items[order] % width, place_of[order]


def in_first_places(hits: IntentHits, k: int | None) -> IntentHits:
    """Return the rows of the first k places."""
    return hits if k is None else IntentHits(*(column[hits.place <= k] for column in hits))


def times_served(hits: IntentHits, size: int) -> Int:
    """Return how often the intent of each row was served further up; rows are sorted by case, then place."""
    key = hits.case * max(size, 1) + hits.intent
    order = np.argsort(key, kind="stable")
    out = np.empty(len(key), dtype=np.int64)
    out[order] = number_in_run(key[order])
    return out


def _intents_of_hits(h: Reading) -> list[list[int]]:
    """Return the intents that each relevant hit serves."""
    rows = _join_intents(h, truth_intents(h), (h.case, h.item, np.arange(len(h.case))))
    borders = np.cumsum(np.bincount(rows.place, minlength=len(h.case)))
    return [part.tolist() for part in np.split(rows.intent, borders[:-1])] if len(borders) else []


def _order_of_ties(
    h: Reading, k: int | None, gain: Callable[[int, int, int], float], weights: Weights, *, best: bool
) -> Float:
    """Return a number per relevant hit; in its falling (rising) order, tied hits are best (worst).

    The value is the sum over hits and their intents of gain(case, intent, times served above) x the weight of
    the place. The order within a group of equal scores does not change what comes after it, and no item gains
    from standing below one that serves nothing; so only the orders of a group's useful hits are searched.
    """
    groups_of_hits, serves = groups(h), _intents_of_hits(h)
    last = int((groups_of_hits.above + groups_of_hits.tied).max(initial=1))
    weight = np.zeros(last)
    weight[: min(last, k or last)] = weights(last)[: min(last, k or last)]
    key, served, current = np.zeros(len(h.case)), Counter[int](), -1
    columns = (groups_of_hits.case, groups_of_hits.above, groups_of_hits.tied, groups_of_hits.relevant)
    for case, above, tied, n, start in zip(
        *(column.tolist() for column in (*columns, groups_of_hits.start)), strict=True
    ):
        if case != current:
            served, current = Counter[int](), case
        useful = [hit for hit in range(start, start + n) if serves[hit]]
        first = above if best else above + tied - len(useful)
        gain_of_case = partial(gain, case)
        for number, hit in enumerate(
            _search_order(useful, serves, served, gain_of_case, weight[first:].tolist(), best=best)
        ):
            key[hit] = len(useful) - number if best else number + 1
        for hit in useful:
            served.update(serves[hit])
    return key


def _search_order(
    hits: list[int],
    serves: list[list[int]],
    served: Counter[int],
    gain: Callable[[int, int], float],
    weight: list[float],
    *,
    best: bool,
) -> list[int]:
    """Order the hits best (worst) from the first weight on; hits of the same intents are interchangeable."""
    by_intents: dict[tuple[int, ...], list[int]] = {}
    for hit in hits:
        by_intents.setdefault(tuple(sorted(serves[hit])), []).append(hit)
    if len(by_intents) < 2 or not any(weight):
        return hits
    kinds, sizes = [*by_intents], [len(members) for members in by_intents.values()]
    if math.prod(size + 1 for size in sizes) > 1 << MOST_TIED:
        raise ConventionError(
            f"{len(hits)} relevant items of a user share one score and serve {len(kinds)} different sets of "
            f"intents; the best and the worst order are searched among at most {MOST_TIED} different items.",
            hint=Phrase("Use {ties='by_id'}."),
        )

    @cache
    def rest(placed: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        """Return the value of what follows those placed, and the kinds in their order."""
        found: list[tuple[float, tuple[int, ...]]] = []
        for at, kind in enumerate(kinds):
            if placed[at] < sizes[at]:
                above = [sum(n for n, other in zip(placed, kinds, strict=True) if i in other) for i in kind]
                own = math.fsum(gain(i, served[i] + n) for i, n in zip(kind, above, strict=True))
                value, order = rest((*placed[:at], placed[at] + 1, *placed[at + 1 :]))
                found.append((weight[sum(placed)] * own + value, (at, *order)))
        if not found:
            return 0.0, ()
        return max(found) if best else min(found)

    left = {at: iter(by_intents[kind]) for at, kind in enumerate(kinds)}
    return [next(left[at]) for at in rest((0,) * len(kinds))[1]]


def _order_by_gain(weights: Callable[[int, float], Float]) -> Callable[..., Float]:
    """Return the order of ties for metrics in which an intent served before counts less."""

    def order(
        h: Reading, k: int | None, c: Conventions, *, best: bool, alpha: float, beta: float = 0.5
    ) -> Float:
        return _order_of_ties(
            h, k, lambda _case, _intent, n: (1.0 - alpha) ** n, lambda n: weights(n, beta), best=best
        )

    return order


def gains_metric(name: str, weights: Callable[[int, float], Float], **facts: Any) -> Callable[[Body], Body]:
    """Register a sum of gains, less for an intent served before, times the `weights` of n places and beta."""
    return intent_metric(
        name,
        choices={"alpha": Between(0, 1, closed=True)},
        best_lists="hypothetical_ranks.new_intents",
        tie_order=_order_by_gain(weights),
        **facts,
    )


def _order_by_precision(h: Reading, k: int | None, c: Conventions, *, best: bool) -> Float:
    n_relevant = _n_relevant_of_intents(h)
    size = truth_intents(h).size
    return _order_of_ties(
        h,
        k,
        lambda case, intent, n: (n + 1) / float(n_relevant[case * size + intent]),
        lambda n: discount_weights("reciprocal", n),
        best=best,
    )


def _order_by_new_intents(h: Reading, k: int | None, c: Conventions, *, best: bool) -> Float:
    return _order_of_ties(h, k, lambda _case, _intent, n: float(n == 0), np.ones, best=best)


def _n_intents(h: Reading, k: int | None, c: Conventions, *, best: bool) -> Float:
    """Return how many intents each relevant hit serves."""
    return np.array([len(intents) for intents in _intents_of_hits(h)], dtype=np.float64)


def _n_relevant_of_intents(h: Reading) -> Int:
    """Return how many relevant items of each case serve each intent, at case x number of intents + intent."""
    intents = truth_intents(h)
    return np.bincount(intents.case * intents.size + intents.intent, minlength=h.n_cases * intents.size)


def _range_over_greedy(
    data: DataLimits, k: int | None, c: Conventions, *, alpha: float, beta: float = 0.5
) -> Range:
    """Return what the best list gains over a greedy one: 1 / (1 - 1/e), at most.

    What the first r places serve is submodular, so the greedy ones serve at least 1 - 1/e of the most
    (Nemhauser, Wolsey & Fisher 1978) for every r, and a metric whose weights fall with the place is a
    positive sum of these.
    """
    holds = c.duplicates != "all" and beta <= 1
    return 0.0, 1.0 / (1.0 - 1.0 / math.e) if holds else math.inf


@gains_metric(
    "alpha_dcg",
    lambda n, _: discount_weights("log2", n),
    formula="sum over places r <= k of gain_r / log2(r + 1), over its value if all items served all intents;"
    " gain_r = sum over the item's intents of (1 - alpha)^(times served above)",
    reference=_CLARKE,
)
def alpha_dcg(h: Reading, k: int | None, c: Conventions, *, alpha: float = 0.5) -> Float:
    """Discounted gain in which an intent served before counts less, as a share of what no list can exceed.

    The intents of a case are the labels of its relevant items; a case without any is left out, also if its
    list is empty. An item serves
    its labels if it is a hit; "times served above" counts the hits at higher places with that label. The
    divisor is the number of intents x sum over r = 1 … k of (1 - alpha)^(r - 1) / log2(r + 1).

    >>> import recsys
    >>> intents = {1: {"a": ["x"], "b": ["y"], "d": ["y"], "c": ["z"]}}
    >>> lists = {1: ["a", "d", "e", "b"]}
    >>> result = recsys.evaluate(lists, {1: [*"abcd"]}, "alpha_dcg@5, alpha_ndcg@5", intents=intents)
    >>> round(result["alpha_dcg@5"], 4), round(result["alpha_ndcg@5"], 4)
    (0.4053, 0.7869)
    """
    return _share_of_most(h, k, alpha, lambda n: discount_weights("log2", n))


@gains_metric(
    "alpha_ndcg",
    lambda n, _: discount_weights("log2", n),
    formula="sum over places r <= k of gain_r / log2(r + 1), over that of the greedy list",
    reference=_CLARKE,
    range=_range_over_greedy,
)
def alpha_ndcg(h: Reading, k: int | None, c: Conventions, *, alpha: float = 0.5) -> Float:
    """Discounted gain in which an intent served before counts less, over that of a greedily best list.

    The divisor is the same sum over a list that is built greedily: at each place the relevant item of the
    highest gain_r, given those above; of equally good ones that with the last id; as long as there are
    relevant items with an intent, and at most k if there is a cut-off. It is not always the very best list,
    so a list may end up a little above 1.

    >>> import recsys
    >>> intents = {1: {"a": ["x"], "b": ["y"]}}
    >>> recsys.evaluate({1: ["a", "b"]}, {1: ["a", "b"]}, "alpha_ndcg@2", intents=intents)["alpha_ndcg@2"]
    1.0
    """
    return _share_of_greedy(h, k, alpha, lambda n: discount_weights("log2", n))


@gains_metric(
    "err_ia",
    lambda n, _: discount_weights("reciprocal", n),
    formula="sum over places r <= k of gain_r / r, over its value if every item served every intent",
    reference="Chapelle et al., Intent-based diversification of web search results (2011)",
)
def err_ia(h: Reading, k: int | None, c: Conventions, *, alpha: float = 0.5) -> Float:
    """How early readers with different intents are satisfied, as a share of what no list can exceed.

    gain_r is that of alpha_dcg; the divisor is the number of intents x sum over r = 1 … k of
    (1 - alpha)^(r - 1) / r.

    >>> import recsys
    >>> intents = {1: {"a": ["x"], "b": ["y"], "d": ["y"], "c": ["z"]}}
    >>> result = recsys.evaluate({1: ["a", "d", "e", "b"]}, {1: [*"abcd"]}, "err_ia@5", intents=intents)
    >>> round(result["err_ia@5"], 4)
    0.3933
    """
    return _share_of_most(h, k, alpha, lambda n: discount_weights("reciprocal", n))


@gains_metric(
    "nerr_ia",
    lambda n, _: discount_weights("reciprocal", n),
    formula="sum over places r <= k of gain_r / r, over that of the greedy list",
    reference="Chapelle et al., Intent-based diversification of web search results (2011)",
    range=_range_over_greedy,
)
def nerr_ia(h: Reading, k: int | None, c: Conventions, *, alpha: float = 0.5) -> Float:
    """How early readers with different intents are satisfied, over the same of a greedily best list.

    gain_r is that of alpha_dcg, the greedy list that of alpha_ndcg.

    >>> import recsys
    >>> intents = {1: {"a": ["x"], "b": ["y"]}}
    >>> recsys.evaluate({1: ["b", "a"]}, {1: ["a", "b"]}, "nerr_ia@2", intents=intents)["nerr_ia@2"]
    1.0
    """
    return _share_of_greedy(h, k, alpha, lambda n: discount_weights("reciprocal", n))


@gains_metric(
    "nrbp",
    lambda n, beta: geometric_weights(beta, n),
    formula="(1 - (1 - alpha) beta) / intents x sum over places r <= k of gain_r beta^(r - 1)",
    reference=_NRBP,
)
def nrbp(h: Reading, k: int | None, c: Conventions, *, alpha: float = 0.5, beta: float = 0.5) -> Float:
    """What a reader finds who goes on with probability beta and tires of an intent served before.

    gain_r and the intents are those of alpha_dcg.

    >>> import recsys
    >>> intents = {1: {"a": ["x"], "b": ["y"], "d": ["y"], "c": ["z"]}}
    >>> result = recsys.evaluate({1: ["a", "d", "e", "b"]}, {1: [*"abcd"]}, "nrbp", intents=intents)
    >>> round(result["nrbp"], 4)
    0.3906
    """
    intents = truth_intents(h)
    sums = _sum_gains(h, k, alpha, intents_of_hits(h, intents), lambda n: geometric_weights(beta, n))
    return _nan_without_intent(
        intents, divide_or_zero(sums * (1 - (1 - alpha) * beta), intents.n_of_case * 1.0)
    )


@gains_metric(
    "nnrbp",
    lambda n, beta: geometric_weights(beta, n),
    formula="sum over places r <= k of gain_r beta^(r - 1), over that of the greedy list",
    reference=_NRBP,
    range=_range_over_greedy,
)
def nnrbp(h: Reading, k: int | None, c: Conventions, *, alpha: float = 0.5, beta: float = 0.5) -> Float:
    """NRBP over that of a greedily best list.

    gain_r is that of alpha_dcg, the greedy list that of alpha_ndcg.

    >>> import recsys
    >>> intents = {1: {"a": ["x"], "b": ["y"], "d": ["y"], "c": ["z"]}}
    >>> result = recsys.evaluate({1: ["a", "d", "e", "b"]}, {1: [*"abcd"]}, "nnrbp", intents=intents)
    >>> round(result["nnrbp"], 4)
    0.8621
    """
    return _share_of_greedy(h, k, alpha, lambda n: geometric_weights(beta, n))


@intent_metric(
    "map_ia",
    formula="mean over the intents of (sum over hits with the intent at place r <= k of such hits so far / r)"
    " / relevant items with the intent",
    reference=_AGRAWAL,
    best_lists="hypothetical_ranks.intents_in_two_orders",
    tie_order=_order_by_precision,
)
def map_ia(h: Reading, k: int | None, c: Conventions) -> Float:
    """Average precision for each intent on its own, averaged over the intents.

    >>> import recsys
    >>> intents = {1: {"a": ["x"], "b": ["y"], "d": ["y"], "c": ["z"]}}
    >>> recsys.evaluate({1: ["a", "d", "e", "b"]}, {1: [*"abcd"]}, "map_ia", intents=intents)["map_ia"]
    0.5
    """
    intents = truth_intents(h)
    size = intents.size
    hits = in_first_places(intents_of_hits(h, intents), k)
    hits_so_far = times_served(hits, size) + 1
    terms = hits_so_far / hits.place / _n_relevant_of_intents(h)[hits.case * size + hits.intent]
    mean = divide_or_zero(add_up(hits.case, terms, h.n_cases), intents.n_of_case * 1.0)
    return _nan_without_intent(intents, mean)


@intent_metric(
    "precision_ia",
    formula="mean over the intents of hits(k) with the intent / k",
    reference=_AGRAWAL,
    at_k="required",
    aliases=("p_ia",),
    best_lists="hypothetical_ranks.most_intents",
    tie_order=_n_intents,
)
def precision_ia(h: Reading, k: int | None, c: Conventions) -> Float:
    """Precision for each intent on its own, averaged over the intents.

    >>> import recsys
    >>> intents = {1: {"a": ["x"], "b": ["y"], "d": ["y"], "c": ["z"]}}
    >>> recsys.evaluate({1: ["a", "d", "e", "b"]}, {1: [*"abcd"]}, "p_ia@5", intents=intents)["p_ia@5"]
    0.2
    """
    intents = truth_intents(h)
    hits = in_first_places(intents_of_hits(h, intents), k)
    count = np.bincount(hits.case, minlength=h.n_cases)
    return _nan_without_intent(intents, divide_or_zero(count * 1.0, intents.n_of_case * float(k or 1)))


@intent_metric(
    "subtopic_recall",
    formula="different intents of the hits in the first k places / intents",
    reference="Zhai, Cohen & Lafferty, Beyond independent relevance (2003)",
    aliases=("strec",),
    best_lists="hypothetical_ranks.every_intent",
    tie_order=_order_by_new_intents,
)
def subtopic_recall(h: Reading, k: int | None, c: Conventions) -> Float:
    """The share of the user's intents that some relevant item shown serves.

    >>> import recsys
    >>> intents = {1: {"a": ["x"], "b": ["y"], "d": ["y"], "c": ["z"]}}
    >>> result = recsys.evaluate({1: ["a", "d", "e", "b"]}, {1: [*"abcd"]}, "strec@5", intents=intents)
    >>> round(result["strec@5"], 4)
    0.6667
    """
    intents = truth_intents(h)
    hits = in_first_places(intents_of_hits(h, intents), k)
    first = times_served(hits, intents.size) == 0
    n_served = np.bincount(hits.case[first], minlength=h.n_cases)
    return _nan_without_intent(intents, divide_or_zero(n_served * 1.0, intents.n_of_case * 1.0))


def _share_of_most(h: Reading, k: int | None, alpha: float, weights: Weights) -> Float:
    """Return the weighted gains over those of a list in which every item serves every intent."""
    intents = truth_intents(h)
    longest = int(h.n_listed.max(initial=0)) if k is None else k
    most = np.cumsum(weights(longest) * (1.0 - alpha) ** np.arange(longest))
    depth = np.minimum(h.n_listed, longest) if k is None else np.full(h.n_cases, longest)
    best = np.concatenate([[0.0], most])[depth] * intents.n_of_case
    sums = _sum_gains(h, k, alpha, intents_of_hits(h, intents), weights)
    return _nan_without_intent(intents, divide_or_zero(sums, best))


def _share_of_greedy(h: Reading, k: int | None, alpha: float, weights: Weights) -> Float:
    """Return the weighted gains over those of the greedily best list."""
    intents = truth_intents(h)
    greedy = _join_intents(h, intents, greedy_order(h, intents, k, alpha))
    best = _sum_gains(h, k, alpha, greedy, weights)
    sums = _sum_gains(h, k, alpha, intents_of_hits(h, intents), weights)
    return _nan_without_intent(intents, divide_or_zero(sums, best))


def _nan_without_intent(intents: Intents, values: Float) -> Float:
    """Return the values, NaN for a case whose relevant items serve no intent."""
    return np.where(intents.n_of_case > 0, values, math.nan)


def _sum_gains(h: Reading, k: int | None, alpha: float, hits: IntentHits, weights: Weights) -> Float:
    """Return, per case, the gains of the first k places times the weights of the places."""
    hits = in_first_places(hits, k)
    gain = (1.0 - alpha) ** times_served(hits, int(hits.intent.max(initial=0)) + 1)
    table = weights(int(hits.place.max(initial=1)))
    return add_up(hits.case, gain * table[hits.place - 1], h.n_cases)
