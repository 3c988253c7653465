"""Ranking metrics of the first k places, each one function of a Reading.

These functions are the only definition of a metric, whatever the backend, the container or the caller. The
doctests can be checked by hand.
"""

from __future__ import annotations

import math

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import ConventionError
from recsys.metrics.expectation import (
    chance_of_hit,
    first_hit,
    precision_per_hit,
    precision_sum,
    reciprocal_of_first,
)
from recsys.metrics.ranges import DataLimits, Range
from recsys.metrics.readings import Reading, divisor
from recsys.metrics.registry import HITS_ABOVE, Terms, divide_or_zero, metric, ratio
from recsys.metrics.traits import Between
from recsys.records.arrays import Float

MANNING = "Manning, Raghavan & Schütze, Introduction to Information Retrieval (2008), chapter 8"


@metric(
    "precision",
    formula="hits(k) / k",
    reference=MANNING,
    combine_if=("average", "pooled"),
    conventions=("precision_over",),
    aliases=("p", "prec"),
    not_additive="it divides by the items shown, so a relevant item that was shown but not observed stays a "
    "miss whatever the weights; ask for hits",
)
def precision(h: Reading, k: int | None, c: Conventions) -> Terms:
    """How much of what was shown is relevant.

    >>> import recsys
    >>> recsys.score_list([1, 5, 3, 8, 2], {3, 8, 10}, "precision@4")
    0.5
    """
    over = divisor(c.precision_over, k, h)
    if k is None and c.precision_over == "min":
        over = np.minimum(over, h.n_listed)
    return ratio(h.count(k), over)


@metric(
    "recall",
    formula="hits(k) / relevant",
    reference=MANNING,
    combine_if=("average", "pooled"),
    conventions=("recall_over",),
    aliases=("r",),
    weighted=True,
    additive=True,
)
def recall(h: Reading, k: int | None, c: Conventions) -> Terms:
    """How much of what is relevant was shown.

    >>> import recsys
    >>> recsys.score_list([1, 5, 3, 8, 2], {3, 8, 10, 11}, "recall@4")
    0.5
    """
    if c.recall_over == "min":
        return capped_recall(h, k, c)
    return ratio(h.count_weight(k), h.relevant_weight)


@metric(
    "capped_recall",
    formula="hits(k) / min(k, relevant)",
    reference="CalibratedRecallK of RecPack",
    combine_if=("average", "pooled"),
)
def capped_recall(h: Reading, k: int | None, c: Conventions) -> Terms:
    """Recall that a short list can still bring to 1.

    >>> import recsys
    >>> recsys.score_list([3, 5], {3, 8, 10}, "capped_recall@2")
    0.5
    """
    if h.weight is not None:
        raise ConventionError("capped recall counts items, so it has no weighted form.", hint="Use recall.")
    return ratio(h.count(k), divisor("min", k, h))


def _f_of_means(precision: float, recall: float, *, beta: float) -> float:
    denominator = beta * beta * precision + recall
    return (1 + beta * beta) * precision * recall / denominator if denominator else 0.0


@metric(
    "f",
    formula="(1 + beta^2) precision recall / (beta^2 precision + recall)",
    reference="van Rijsbergen, Information Retrieval (1979)",
    combine=_f_of_means,
    combine_if=("f1_of", "means"),
    conventions=("precision_over", "recall_over"),
    choices={"beta": Between(0)},
    aliases={"f1": {"beta": 1.0}, "fbeta": {}, "f2": {"beta": 2.0}},
    not_additive="it mixes precision and recall",
)
def f(h: Reading, k: int | None, c: Conventions, *, beta: float = 1.0) -> Terms:
    """Precision and recall in one number; recall weighs beta times as much.

    f1_of=means applies the formula to the mean precision and the mean recall of the cases in the mean.

    >>> import recsys
    >>> recsys.score_list([1, 5, 3, 8], {3, 8, 10, 11}, "f1@4")
    0.5
    """
    p, r = precision(h, k, c).value, recall(h, k, c).value
    square = beta * beta
    return Terms(divide_or_zero((1 + square) * p * r, square * p + r), p, r)


@metric(
    "hit",
    formula="1 if hits(k) > 0 else 0",
    reference="Deshpande & Karypis, Item-based top-N recommendation (2004)",
    aliases=("hit_rate", "hitrate", "hr", "success"),
    ties="own",
    additive="one item",
    sum_over_places=True,
)
def hit(h: Reading, k: int | None, c: Conventions) -> Float:
    """Whether anything relevant was shown.

    >>> import recsys
    >>> recsys.score_list([1, 5, 3], {3, 8}, "hit@2"), recsys.score_list([1, 5, 3], {3, 8}, "hit@3")
    (0.0, 1.0)
    """
    if h.tied is not None:
        return first_hit(h, k, chance_of_hit)
    return (h.count(k) > 0).astype(np.float64)


def _range_of_hits(data: DataLimits, k: int | None, c: Conventions) -> Range:
    return 0.0, data.n_hits(k, c) * data.largest_item_weight


@metric(
    "hits",
    formula="hits(k)",
    reference="RecPack's HitK",
    range=_range_of_hits,
    weighted=True,
    additive=True,
    sum_over_places=True,
)
def hits(h: Reading, k: int | None, c: Conventions) -> Float:
    """How many relevant items were shown.

    >>> import recsys
    >>> recsys.score_list([1, 5, 3, 8], {3, 8, 10}, "hits@4")
    2.0
    """
    return h.count_weight(k)


@metric(
    "mrr",
    formula="1 / place of the first hit, 0 if there is none in the first k places",
    reference="Voorhees, The TREC-8 question answering track report (1999)",
    aliases=("rr", "reciprocal_rank"),
    ties="own",
    additive="one item",
    sum_over_places=True,
)
def mrr(h: Reading, k: int | None, c: Conventions) -> Float:
    """How early the first relevant item comes.

    >>> import recsys
    >>> recsys.score_list([1, 3, 5, 8], {3, 8}, "mrr")
    0.5
    """
    if h.tied is not None:
        return first_hit(h, k, reciprocal_of_first)
    reciprocal = h.cached("one over the first place", lambda: 1.0 / h.first)
    return reciprocal if k is None else reciprocal * (h.first <= k)


@metric(
    "map",
    formula="(sum over hits at place r <= k of hits so far / r) / min(k, relevant)",
    reference="Buckley & Voorhees, Evaluating evaluation measure stability (2000)",
    conventions=("ap_over",),
    aliases=("ap", "average_precision"),
    ties="own",
    tie_order="number",
    not_additive=HITS_ABOVE,
)
def map_(h: Reading, k: int | None, c: Conventions) -> Float:
    """Precision at each relevant item, averaged: rewards relevant items near the top.

    >>> import recsys
    >>> recsys.score_list([3, 5, 8, 1], {3, 8}, "map@4")
    0.8333333333333333
    """
    if c.ap_over == "hits" and h.tied is not None:
        return precision_per_hit(h, k)
    over = divisor(c.ap_over, k, h)
    if c.ap_over == "list":
        over = np.minimum(over, h.n_relevant)
    if h.tied is not None:
        return divide_or_zero(precision_sum(h, k), over)
    precisions = h.cached("precision at each hit", lambda: h.order / h.rank)
    return divide_or_zero(h.add(h.within(k) * precisions), over)


def logs_of(values: Float) -> Float:
    """Return the natural logarithms of the values, of 1e-5 at least; a geometric mean adds them up."""
    return np.array([math.log(value) for value in np.maximum(values, 1e-5).tolist()])


def _geometric_mean(values: Float, weights: Float | None, *, eps: float) -> float:
    distinct, back = np.unique(np.maximum(values, eps), return_inverse=True)
    weight_of_value = np.bincount(back, weights=weights)
    total = math.fsum(weight_of_value)
    pairs = zip(distinct.tolist(), weight_of_value.tolist(), strict=True)
    log_sum = math.fsum(math.log(value) * weight for value, weight in pairs)
    return math.exp(log_sum / total) if total else math.nan


@metric(
    "gmap",
    formula="exp(mean over the cases in the mean of ln(max(map, eps)))",
    reference="Robertson, On GMAP (2006)",
    conventions=("ap_over",),
    choices={"eps": Between(0)},
    aliases=("gm_map",),
    ties="own",
    tie_order="number",
    summary=_geometric_mean,
    not_additive=HITS_ABOVE,
)
def gmap(h: Reading, k: int | None, c: Conventions, *, eps: float = 1e-5) -> Float:
    """The geometric mean of average precision: cases that do badly pull it down.

    The value of one case is its average precision; eps enters only when the cases are averaged.

    >>> import recsys
    >>> round(recsys.evaluate({1: [3, 5], 2: [5, 3]}, {1: [3], 2: [3]}, ["gmap"])["gmap"], 4)
    0.7071
    """
    return map_(h, k, c)


@metric(
    "mar",
    formula="(sum over hits at place r <= k of hits so far / r) / relevant",
    reference="MAR@K of recmetrics 0.1.5",
    ties="own",
)
def mar(h: Reading, k: int | None, c: Conventions) -> Float:
    """Mean average recall as recmetrics computes it: average precision over all relevant items.

    >>> import recsys
    >>> recsys.score_list([3, 5, 8, 1], {3, 8, 9, 10}, "mar@2")
    0.25
    """
    return map_(h, k, c.but(ap_over="relevant"))


@metric(
    "r_precision",
    formula="hits in the first `relevant` places / relevant",
    reference=MANNING,
    at_k="never",
    aliases=("rprec",),
    not_additive="its cut-off is the number of observed items",
)
def r_precision(h: Reading, k: int | None, c: Conventions) -> Float:
    """Precision of a list as long as there are relevant items.

    >>> import recsys
    >>> recsys.score_list([3, 5, 8], {3, 8}, "r_precision")
    0.5
    """
    return divide_or_zero(h.add(h.within(h.n_relevant)), h.n_relevant.astype(np.float64))


@metric(
    "judged",
    formula="judged items in the first k places / min(k, length of the list)",
    reference="Judged@k of ir_measures",
    combine_if=("average", "pooled"),
    population="judged",
    reads_judgements=True,
)
def judged(h: Reading, k: int | None, c: Conventions) -> Terms:
    """How much of what was shown has been judged, relevant or not.

    It is about judged items: a case without a judgement, not one without a relevant item, is one without
    truth.

    >>> import recsys
    >>> recsys.score_list([3, 5, 8, 1], {3: 1, 8: 0, 9: 1}, "judged@4")
    0.5
    """
    return ratio(h.count_judged(k), divisor("list", k, h))
