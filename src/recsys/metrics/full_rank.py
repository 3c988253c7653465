"""Metrics that need every candidate's place, or the number of items: rank, AUC, accuracy of the cut.

On truncated lists they are errors: an item that is not listed has no place. With `full_ranking=True` the list
ranks every candidate; where places come from counting, the candidates are known anyway.
"""

from __future__ import annotations

import math

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import NotDefinedError, Phrase
from recsys.metrics.ranges import DataLimits, Range
from recsys.metrics.readings import Reading, check_finite, cut_at, divisor
from recsys.metrics.registry import Terms, candidates_metric, divide_or_nan, divide_or_zero, metric
from recsys.records.arrays import Float, Int

_HU = "Hu, Koren & Volinsky, Collaborative filtering for implicit feedback datasets (2008)"


@metric(
    "bpref",
    formula="1/R sum over hits of (1 - min(b, R) / min(R, N)), b = judged items above that are not relevant",
    reference="Buckley & Voorhees, Retrieval evaluation with incomplete information (2004)",
    at_k="never",
    ties="refuse",
    reads_judgements=True,
)
def bpref(h: Reading, k: int | None, c: Conventions) -> Float:
    """How rarely something judged bad ranks above something judged good; unjudged items are ignored.

    R is the number of relevant items of the truth and N that of its other items; without any of these (N = 0)
    every hit counts 1. A repeat is not counted in b.

    >>> import recsys
    >>> recsys.score_list([1, 3, 5, 8], {1: 0, 3: 1, 8: 1}, "bpref")
    0.0
    """
    n_relevant = h.n_relevant.astype(np.float64)
    bad = np.minimum(h.bad_above, n_relevant[h.case])
    share = divide_or_zero(bad, np.minimum(n_relevant, h.hits.n_judged - n_relevant)[h.case])
    return divide_or_zero(h.add(1.0 - share), n_relevant)


def _range_of_rank(data: DataLimits, k: int | None, c: Conventions) -> Range:
    return 1.0, max(data.places(k), 1)


@candidates_metric(
    "average_rank",
    formula="mean place of the relevant items in the list",
    reference="Bordes et al., Translating embeddings for modeling multi-relational data (2013)",
    combine_if=("average", "pooled"),
    better="lower",
    bounds=(1.0, math.inf),
    range=_range_of_rank,
    aliases=("mean_rank",),
    additive=True,
)
def average_rank(h: Reading, k: int | None, c: Conventions) -> Terms:
    """The average rank of the relevant items among all candidates.

    Relevant items that are not in the list do not count; a case without any in it is left out. average=pooled
    is the mean over the relevant items of all users.

    >>> import recsys
    >>> recsys.score_list([1, 3, 5, 8], {3, 8}, "average_rank", full_ranking=True)
    3.0
    """
    return _ratio_or_nan(h.add(h.mean_rank), _n_hits(h).astype(np.float64))


@candidates_metric(
    "percentile_rank",
    formula="mean (place - 1) / (candidates - 1) of the relevant items in the list",
    reference="average_rank as a share of the candidates; " + _HU + " weigh and pool it",
    combine_if=("average", "pooled"),
    better="lower",
    additive=True,
)
def percentile_rank(h: Reading, k: int | None, c: Conventions) -> Terms:
    """How far down the relevant items are: 0 is the very top, 1 the very bottom, 0.5 is chance.

    Every user weighs the same, and so does every relevant item; average=pooled is the mean over the relevant
    items of all users. A single candidate has 0; a case without a relevant item in its list is left out. The
    measure of Hu, Koren & Volinsky is expected_percentile_rank. RecPack's PercentileRanking divides by the
    number of candidates, not by one less.

    >>> import recsys
    >>> recsys.score_list([1, 3, 5], {3}, "percentile_rank", full_ranking=True)
    0.5
    """
    return _ratio_or_nan(h.add(_percentiles(h)), _n_hits(h).astype(np.float64))


@candidates_metric(
    "expected_percentile_rank",
    formula="sum over all relevant items in the lists of grade (place - 1) / (candidates - 1), over the sum"
    " of their grades",
    reference=_HU,
    combine_if="always",
    better="lower",
    aliases=("mpr",),
    not_additive="it weighs the relevant items by their grades; ask for percentile_rank",
)
def expected_percentile_rank(h: Reading, k: int | None, c: Conventions) -> Terms:
    """How far down the relevant items of all users are, weighted by their grades: 0 is the top, 0.5 chance.

    An item watched ten times counts ten times, and so a user with much in the truth weighs more: it is always
    pooled. The value of one case is the same quotient over its own items; a case without a relevant item in
    its list is left out.

    >>> import recsys
    >>> lists, truth = {1: [3, 4, 5], 2: [5, 4, 3]}, {1: {3: 9.0, 5: 1.0}, 2: {4: 2.0}}
    >>> result = recsys.evaluate(lists, truth, ["mpr", "percentile_rank"], full_ranking=True)
    >>> round(result["mpr"], 4), result["percentile_rank"]
    (0.1667, 0.5)
    """
    return _ratio_or_nan(h.add(_percentiles(h) * h.grade), check_finite(h.add(h.grade), "grades"))


@candidates_metric(
    "auc",
    formula="share of the (relevant, other) pairs of items in the list in which the relevant one is higher",
    reference="Rendle et al., BPR: Bayesian personalized ranking (2009)",
    additive=True,
    against_others=True,
)
def auc(h: Reading, k: int | None, c: Conventions) -> Float:
    """How often a relevant item ranks above one that is not.

    Every entry that is not a hit counts as an other item. A case whose list lacks either kind is left out.

    >>> import recsys
    >>> recsys.score_list([1, 3, 5, 8], {3, 8}, "auc", full_ranking=True)
    0.25
    """
    good = _n_hits(h)
    bad = _n_candidates(h) - good
    # Ranks of the relevant items add up to good(good+1)/2 when no other is above them.
    wrong = h.add(h.mean_rank) - good * (good + 1) / 2
    return divide_or_nan(good * bad - wrong, good * bad)


@candidates_metric(
    "gauc",
    formula="sum w auc / sum w over cases, w = candidates or relevant items of the case",
    reference="Zhu et al., Optimized cost per click in Taobao display advertising (2017)",
    combine_if="always",
    choices={"weight": ("candidates", "relevant")},
)
def gauc(h: Reading, k: int | None, c: Conventions, *, weight: str = "candidates") -> Terms:
    """AUC per case, averaged so that busy cases weigh more.

    The value of one case is its AUC. weight=relevant weighs by the relevant items in the list. A case without
    an AUC is left out.

    >>> import recsys
    >>> lists, truth = {1: [3, 5], 2: [5, 3, 4, 6]}, {1: [3], 2: [3]}
    >>> round(recsys.evaluate(lists, truth, ["gauc"], full_ranking=True)["gauc"], 4)
    0.7778
    """
    value = auc(h, k, c)
    size = (_n_candidates(h) if weight == "candidates" else _n_hits(h)).astype(np.float64)
    return Terms(value, value * size, size)


@candidates_metric(
    "pauc",
    formula="sum over hits of max(0, c - other items above) / (hits c), c = min(k, other items in the list)",
    reference="Dodd & Pepe, Partial AUC estimation and regression (2003); PartialAUC of RecTools",
    at_k="required",
    ties="refuse",
)
def pauc(h: Reading, k: int | None, c: Conventions) -> Float:
    """AUC against the k non-relevant items that rank highest.

    Hits are those of the whole list. A case without hits or without other items is left out.

    >>> import recsys
    >>> recsys.score_list([1, 3, 5, 8], {3, 8}, "pauc@1", full_ranking=True)
    0.0
    """
    good = _n_hits(h)
    cut = cut_at(k, _n_candidates(h) - good)
    above = h.rank - h.order
    return divide_or_nan(h.add(np.maximum(0, cut[h.case] - above).astype(np.float64)), good * cut)


@metric(
    "accuracy",
    formula="(TP + TN) / catalogue; TP = hits(k), FP = min(k, length) - TP, FN = relevant - TP, TN the rest",
    reference="Accuracy of RecTools",
    at_k="required",
    empty=None,
    conventions=("accuracy_over",),
    needs=("catalogue",),
)
def accuracy(h: Reading, k: int | None, c: Conventions) -> Float:
    """How much of the catalogue the cut classifies correctly: relevant above it, the rest below.

    A user who is shown nothing is right about everything that is not relevant. accuracy_over=k takes places
    that a short list leaves empty for wrong recommendations, as RecTools does. A catalogue of fewer items
    than a list shows and a truth holds together, so that TN would be negative, is an error.

    >>> import recsys
    >>> recsys.score_list([1, 3, 5], {3, 8}, "accuracy@2", catalogue=10)
    0.8
    """
    size, shown, hits = _confusion_counts(h, k, c)
    wrong = (shown - hits) + (h.n_relevant - hits)
    return (size - wrong) / size


@metric(
    "mcc",
    formula="(TP TN - FP FN) / sqrt((TP+FP)(TP+FN)(TN+FP)(TN+FN)), counted as for accuracy",
    reference="Matthews, Comparison of the predicted and observed secondary structure (1975)",
    at_k="required",
    bounds=(-1.0, 1.0),
    empty=None,
    conventions=("accuracy_over",),
    needs=("catalogue",),
)
def mcc(h: Reading, k: int | None, c: Conventions) -> Float:
    """Correlation between being shown and being relevant, over the catalogue; 0 if the root is 0.

    A catalogue too small for TN is an error, as for accuracy, so no number under the root is negative.

    >>> import recsys
    >>> round(recsys.score_list([1, 3, 5], {3, 8}, "mcc@2", catalogue=10), 6)
    0.375
    """
    size, shown, hits = _confusion_counts(h, k, c)
    relevant = h.n_relevant.astype(np.float64)
    spread = np.sqrt(shown * relevant * (size - shown) * (size - relevant))
    return divide_or_zero(hits * size - shown * relevant, spread)


def _confusion_counts(h: Reading, k: int | None, c: Conventions) -> tuple[float, Float, Float]:
    """Return the items of the catalogue, and per case the items shown and the hits in the first k places."""
    size = h.context.n_items or 0
    shown, hits = divisor(c.accuracy_over, k, h), h.count(k)
    least = np.maximum(shown + h.n_relevant - np.minimum(hits, h.n_relevant), shown)
    if len(shown) and float(least.max()) > size + 1e-9:
        raise NotDefinedError(
            f"the catalogue holds {size} items, fewer than a list and a truth do together.",
            hint=Phrase("Pass {catalogue=} with every item that can be recommended or relevant."),
        )
    return float(size), shown, hits


def _percentiles(h: Reading) -> Float:
    """Return how far down each relevant hit is: 0 is the very top, 1 the very bottom."""
    return (h.mean_rank - 1) / np.maximum(_n_candidates(h) - 1, 1)[h.case]


def _ratio_or_nan(numerator: Float, denominator: Float) -> Terms:
    return Terms(divide_or_nan(numerator, denominator), numerator, denominator)


def _n_candidates(h: Reading) -> Int:
    return h.n_listed if h.hits.n_candidates is None else h.hits.n_candidates


def _n_hits(h: Reading) -> Int:
    return np.bincount(h.case, minlength=h.n_cases).astype(np.int64, copy=False)
