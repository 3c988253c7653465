"""Measures that only trec_eval computes: counts, utility, and the experimental ones of Chris Buckley.

They are here so that its users find every name; the references say what each is called there.
"""

from __future__ import annotations

import math

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.metrics.ranges import DataLimits, Range
from recsys.metrics.readings import Reading
from recsys.metrics.registry import chained_metric, divide_or_zero, metric
from recsys.metrics.traits import Between
from recsys.metrics.weights import discount_divisors
from recsys.records.arrays import Float


def _range_of_count(data: DataLimits, k: int | None, c: Conventions, *, what: str) -> Range:
    return 0.0, float(data.truth.sizes.max(initial=0) if what == "relevant" else data.places(k))


@metric(
    "count",
    formula="items in the list; or relevant items; or judged items in the list that are not relevant",
    reference="num_ret, num_rel and num_nonrel_judged_ret of trec_eval",
    at_k="never",
    range=_range_of_count,
    population="judged",
    empty=None,
    reads_judgements=True,
    not_additive="it does not depend on the places of the relevant items",
    choices={"what": ("listed", "relevant", "not_relevant")},
)
def count(h: Reading, k: int | None, c: Conventions, *, what: str = "listed") -> Float:
    """How many items a case has: in its list, relevant to it, or listed though judged not relevant.

    what=listed (entries, repeats included), relevant (in the truth) or not_relevant (in the list). Relevant
    items in the list are counted by hits.

    >>> import recsys
    >>> recsys.score_list([1, 5, 3], {3: 1, 5: 0, 9: 2}, "count(what=relevant)")
    2.0
    """
    if what == "not_relevant":
        return h.count_judged(None) - h.count(None)
    return (h.n_listed if what == "listed" else h.n_relevant).astype(np.float64)


def _range_of_utility(
    data: DataLimits, k: int | None, c: Conventions, *, a: float, b: float, missed: float, rest: float
) -> Range:
    n_shown, n_judged = data.places(k), int(data.truth.sizes.max(initial=0))
    size = (data.context.n_items or 0) + n_shown + n_judged
    most = (abs(a) + abs(b)) * n_shown + abs(missed) * (n_judged + n_shown) + abs(rest) * size
    return -most, most


@metric(
    "utility",
    formula="a hits + b (length - hits) + missed (relevant - hits)"
    " + rest (catalogue - length - relevant + hits)",
    reference="utility of trec_eval",
    at_k="never",
    bounds=(-math.inf, math.inf),
    range=_range_of_utility,
    population="judged",
    empty=None,
    tie_order="set",
    not_additive="it counts the items shown too",
)
def utility(
    h: Reading,
    k: int | None,
    c: Conventions,
    *,
    a: float = 1.0,
    b: float = -1.0,
    missed: float = 0.0,
    rest: float = 0.0,
) -> Float:
    """What a whole list is worth: hits and misses in it, and relevant items and others left out of it.

    The four weights are a, b, missed and rest; without catalogue= the catalogue counts as empty: 0.

    >>> import recsys
    >>> recsys.score_list([1, 5, 3], {3, 9}, "utility"), recsys.score_list([3], {3, 9}, "utility(missed=-2)")
    (-1.0, -1.0)
    """
    hits, listed, relevant = h.count(None), h.n_listed, h.n_relevant
    size = h.context.n_items or 0
    return (
        a * hits + b * (listed - hits) + missed * (relevant - hits) + rest * (size + hits - listed - relevant)
    )


@metric(
    "r_precision_at",
    formula="hits(n) / n, n = floor(multiple x relevant + 0.9)",
    reference="Rprec_mult of trec_eval",
    at_k="never",
    choices={"multiple": Between(0, closed=True)},
    not_additive="its cut-off is a multiple of the number of observed items",
)
def r_precision_at(h: Reading, k: int | None, c: Conventions, *, multiple: float = 1.0) -> Float:
    """Precision of a list some times as long as there are relevant items; 0 of a list without places.

    >>> import recsys
    >>> recsys.score_list([3, 5, 8, 1], {3, 8}, "r_precision_at(multiple=2)")
    0.5
    """
    cut = (multiple * h.n_relevant + 0.9).astype(np.int64)
    return divide_or_zero(h.add(h.within(cut)), cut.astype(np.float64))


@chained_metric(
    "binary_g",
    formula="1/relevant sum over hits of 1 / log2(2 + others above)",
    reference="binG of trec_eval",
)
def binary_g(h: Reading, k: int | None, c: Conventions) -> Float:
    """Average over the relevant items of a discount by the items above that are not relevant.

    "Others above" are all entries at higher places that are not hits.

    >>> import recsys
    >>> recsys.score_list([3, 5, 9, 8], {3, 8}, "binary_g")
    0.75
    """
    others = (h.rank - h.order).astype(np.int64)
    over = discount_divisors("log2", int(others.max(initial=0)) + 1)[others]
    return divide_or_zero(h.add(1.0 / over), h.n_relevant)


@chained_metric(
    "g",
    formula="sum over hits of gain / log2(2 + cost - gains so far) / all gains; "
    "cost = sum over the places so far of max(1, gain there in the best list)",
    reference="G of trec_eval",
    conventions=("gain",),
    tie_order="unknown",
)
def g(h: Reading, k: int | None, c: Conventions) -> Float:
    """Gains, each discounted by how far the gains so far stay behind those of the best list.

    The best list has the gains of all relevant items, highest first, and 0 beyond them; "all gains" is their
    sum. "So far" includes the place of the hit. Every item counts at its first place, whatever `duplicates`
    says.

    >>> import recsys
    >>> recsys.score_list([9, 3], {3: 2}, "g")
    0.6309297535714575
    """
    h, gains = h.once, h.once.gain(c.gain)
    case, best = h.ideal(c.gain)
    starts = np.cumsum(h.n_relevant) - h.n_relevant
    behind, total = np.zeros(len(gains)), np.zeros(h.n_cases)
    for at in h.hits_in_turn:
        total[h.case[at]] += gains[at]
        behind[at] = total[h.case[at]]
    place_in_best = np.arange(len(case)) - starts[case] + 1
    for at in h.hits_in_turn:  # the cost of the places of the best list, and 1 for each beyond its end
        last = np.zeros(h.n_cases, dtype=np.int64)
        last[h.case[at]] = h.rank[at]
        inside = place_in_best <= last[case]
        cost = h.sum_by_case(case[inside], np.maximum(best[inside], 1.0))
        beyond = np.maximum(last - h.n_relevant, 0)
        behind[at] = (cost + beyond)[h.case[at]] - behind[at]
    whole = behind == np.floor(behind)
    over = np.log2(2.0 + behind)
    table = discount_divisors("log2", int(behind[whole].max(initial=0)) + 1)
    over[whole] = table[behind[whole].astype(np.int64)]
    return divide_or_zero(h.add(gains / over), h.sum_by_case(case, best))


@chained_metric(
    "ndcg_rel",
    formula="1/relevant sum over relevant items of dcg(r) / best dcg(r), r = its place or the end",
    reference="ndcg_rel of trec_eval",
    conventions=("gain",),
    tie_order="unknown",
)
def ndcg_rel(h: Reading, k: int | None, c: Conventions) -> Float:
    """The nDCG averaged over the places of the relevant items.

    dcg(r) is the sum over hits at place i <= r of gain / log2(i + 1), best dcg(r) that of the r highest gains
    of the relevant items in places 1 … r. For a relevant item that is not in the list both are those of the
    whole list and of all relevant items. Every item counts at its first place, whatever `duplicates` says.

    >>> import recsys
    >>> round(recsys.score_list([3, 5, 8], {3, 8}, "ndcg_rel"), 4)
    0.9599
    """
    h, gains = h.once, h.once.gain(c.gain)
    terms = gains / discount_divisors("log2", int(h.rank.max(initial=1)))[h.rank - 1]
    dcg, sums = np.zeros(h.n_cases), np.zeros(h.n_cases)
    for at in h.hits_in_turn:
        case = h.case[at]
        dcg[case] += terms[at]
        last = np.zeros(h.n_cases, dtype=np.int64)
        last[case] = h.rank[at]
        sums[case] += dcg[case] / h.best(c.gain, "log2", last)[case]
    best = h.best(c.gain, "log2", h.n_relevant)
    missing = h.n_relevant - h.count(None)
    return divide_or_zero(sums + divide_or_zero(missing * dcg, best), h.n_relevant)


@chained_metric(
    "r_ndcg",
    formula="mean of dcg(n) / best dcg(n) over n = number of items of the highest gain, of the two highest, "
    "… of all gains, and the end of a list that goes on for two places or more",
    reference="Rndcg of trec_eval",
    conventions=("gain",),
    tie_order="unknown",
)
def r_ndcg(h: Reading, k: int | None, c: Conventions) -> Float:
    """The nDCG averaged over the places at which the gains of the best list fall.

    dcg(n) and best dcg(n) are those of ndcg_rel. For each different gain of the relevant items there is one
    n: how many of them have that gain or a higher one. If length >= relevant + 2, there is one more: the
    whole list over all relevant items. Every item counts at its first place, whatever `duplicates` says.

    >>> import recsys
    >>> round(recsys.score_list([8, 3, 5], {3: 2, 8: 1}, "r_ndcg"), 4)
    0.6799
    """
    h, gains = h.once, h.once.gain(c.gain)
    terms = gains / discount_divisors("log2", int(h.rank.max(initial=1)))[h.rank - 1]
    case, best = h.ideal(c.gain)
    sums, n_points = np.zeros(h.n_cases), np.zeros(h.n_cases)
    for level in np.unique(best)[::-1]:
        places = np.bincount(case[best >= level], minlength=h.n_cases)
        reached = h.add(np.where(h.rank <= places[h.case], terms, 0.0))
        at_level = np.bincount(case[best == level], minlength=h.n_cases) > 0
        sums += np.where(at_level, divide_or_zero(reached, h.best(c.gain, "log2", places)), 0.0)
        n_points += at_level
    goes_on = h.n_listed >= h.n_relevant + 2
    at_end = divide_or_zero(h.add(terms), h.best(c.gain, "log2", h.n_relevant))
    return divide_or_zero(sums + np.where(goes_on, at_end, 0.0), n_points + goes_on)
