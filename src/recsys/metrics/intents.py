"""Intent-aware metrics: a relevant item serves intents, and serving the same intent again counts less.

Definitions are those of ndeval, the program of the TREC web tracks. Only intents of the case's relevant items
count, all of them equally.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import ConventionError
from recsys.metrics.case_reading import Reading
from recsys.metrics.intent_coverage import (
    IntentHits,
    Intents,
    in_first_places,
    intents_of_greedy_lists,
    intents_of_hits,
    times_served,
    truth_intents,
)
from recsys.metrics.registry import divide_or_zero, metric
from recsys.metrics.shown_items import add_up
from recsys.metrics.weights import discount_weights, geometric_weights
from recsys.types import Float

_CLARKE = "Clarke et al., Novelty and diversity in information retrieval evaluation (2008)"
_NRBP = "Clarke, Kolla & Vechtomova, An effectiveness measure for ambiguous queries (2009)"
_AGRAWAL = "Agrawal et al., Diversifying search results (2009)"
Weights = Callable[[int], Float]


@metric(
    "alpha_dcg",
    formula="sum over places r <= k of gain_r / log2(r + 1), over its value if all items served all intents;"
    " gain_r = sum over the item's intents of (1 - alpha)^(times served above)",
    reference=_CLARKE,
    needs=("lists", "intents"),
    ties="refuse",
)
def alpha_dcg(h: Reading, k: int | None, c: Conventions, *, alpha: float = 0.5) -> Float:
    """Discounted gain in which an intent served before counts less, as a share of what no list can exceed.

    >>> import recsys
    >>> intents = {1: {"a": ["x"], "b": ["y"], "d": ["y"], "c": ["z"]}}
    >>> lists = {1: ["a", "d", "e", "b"]}
    >>> result = recsys.evaluate(lists, {1: [*"abcd"]}, "alpha_dcg@5, alpha_ndcg@5", intents=intents)
    >>> round(result["alpha_dcg@5"], 4), round(result["alpha_ndcg@5"], 4)
    (0.4053, 0.7869)
    """
    del c
    return _share_of_most(h, k, alpha, lambda n: discount_weights("log2", n))


@metric(
    "alpha_ndcg",
    formula="alpha_dcg / alpha_dcg of the best order, built one item after the other",
    reference=_CLARKE,
    needs=("lists", "intents"),
    ties="refuse",
    bounds=(0.0, math.inf),
)
def alpha_ndcg(h: Reading, k: int | None, c: Conventions, *, alpha: float = 0.5) -> Float:
    """Discounted gain in which an intent served before counts less, over that of a greedily best list.

    The greedy list is not always the very best one, so a list may end up a little above 1.

    >>> import recsys
    >>> intents = {1: {"a": ["x"], "b": ["y"]}}
    >>> recsys.evaluate({1: ["a", "b"]}, {1: ["a", "b"]}, "alpha_ndcg@2", intents=intents)["alpha_ndcg@2"]
    1.0
    """
    del c
    return _share_of_greedy(h, k, alpha, lambda n: discount_weights("log2", n))


@metric(
    "err_ia",
    formula="sum over places r <= k of gain_r / r, over its value if every item served every intent",
    reference="Chapelle et al., Intent-based diversification of web search results (2011)",
    needs=("lists", "intents"),
    ties="refuse",
)
def err_ia(h: Reading, k: int | None, c: Conventions, *, alpha: float = 0.5) -> Float:
    """How early readers with different intents are satisfied, as a share of what no list can exceed.

    >>> import recsys
    >>> intents = {1: {"a": ["x"], "b": ["y"], "d": ["y"], "c": ["z"]}}
    >>> result = recsys.evaluate({1: ["a", "d", "e", "b"]}, {1: [*"abcd"]}, "err_ia@5", intents=intents)
    >>> round(result["err_ia@5"], 4)
    0.3933
    """
    del c
    return _share_of_most(h, k, alpha, lambda n: discount_weights("reciprocal", n))


@metric(
    "nerr_ia",
    formula="err_ia / err_ia of the best order, built one item after the other",
    reference="Chapelle et al., Intent-based diversification of web search results (2011)",
    needs=("lists", "intents"),
    ties="refuse",
    bounds=(0.0, math.inf),
)
def nerr_ia(h: Reading, k: int | None, c: Conventions, *, alpha: float = 0.5) -> Float:
    """How early readers with different intents are satisfied, over the same of a greedily best list.

    >>> import recsys
    >>> intents = {1: {"a": ["x"], "b": ["y"]}}
    >>> recsys.evaluate({1: ["b", "a"]}, {1: ["a", "b"]}, "nerr_ia@2", intents=intents)["nerr_ia@2"]
    1.0
    """
    del c
    return _share_of_greedy(h, k, alpha, lambda n: discount_weights("reciprocal", n))


@metric(
    "nrbp",
    formula="(1 - (1 - alpha) beta) / intents x sum over places r of gain_r beta^(r - 1)",
    reference=_NRBP,
    needs=("lists", "intents"),
    ties="refuse",
)
def nrbp(h: Reading, k: int | None, c: Conventions, *, alpha: float = 0.5, beta: float = 0.5) -> Float:
    """What a reader finds who goes on with probability beta and tires of an intent served before.

    >>> import recsys
    >>> intents = {1: {"a": ["x"], "b": ["y"], "d": ["y"], "c": ["z"]}}
    >>> result = recsys.evaluate({1: ["a", "d", "e", "b"]}, {1: [*"abcd"]}, "nrbp", intents=intents)
    >>> round(result["nrbp"], 4)
    0.3906
    """
    del c
    intents = truth_intents(h)
    sums = _sum_gains(h, k, alpha, intents_of_hits(h, intents), lambda n: geometric_weights(beta, n))
    return _nan_without_intent(
        intents, divide_or_zero(sums * (1 - (1 - alpha) * beta), intents.n_of_case * 1.0)
    )


@metric(
    "nnrbp",
    formula="nrbp / nrbp of the best order, built one item after the other",
    reference=_NRBP,
    needs=("lists", "intents"),
    ties="refuse",
    bounds=(0.0, math.inf),
)
def nnrbp(h: Reading, k: int | None, c: Conventions, *, alpha: float = 0.5, beta: float = 0.5) -> Float:
    """NRBP over that of a greedily best list.

    >>> import recsys
    >>> intents = {1: {"a": ["x"], "b": ["y"], "d": ["y"], "c": ["z"]}}
    >>> result = recsys.evaluate({1: ["a", "d", "e", "b"]}, {1: [*"abcd"]}, "nnrbp", intents=intents)
    >>> round(result["nnrbp"], 4)
    0.8621
    """
    del c
    return _share_of_greedy(h, k, alpha, lambda n: geometric_weights(beta, n))


@metric(
    "map_ia",
    formula="mean over the intents of average precision for that intent",
    reference=_AGRAWAL,
    needs=("lists", "intents"),
    ties="refuse",
)
def map_ia(h: Reading, k: int | None, c: Conventions) -> Float:
    """Average precision for each intent on its own, averaged over the intents.

    >>> import recsys
    >>> intents = {1: {"a": ["x"], "b": ["y"], "d": ["y"], "c": ["z"]}}
    >>> recsys.evaluate({1: ["a", "d", "e", "b"]}, {1: [*"abcd"]}, "map_ia", intents=intents)["map_ia"]
    0.5
    """
    del c
    intents = truth_intents(h)
    size = intents.size
    hits = in_first_places(intents_of_hits(h, intents), k)
    hits_so_far = times_served(hits, size) + 1
    n_relevant = np.bincount(intents.case * size + intents.intent, minlength=h.n_cases * size)
    terms = hits_so_far / hits.place / n_relevant[hits.case * size + hits.intent]
    mean = divide_or_zero(add_up(hits.case, terms, h.n_cases), intents.n_of_case * 1.0)
    return _nan_without_intent(intents, mean)


@metric(
    "precision_ia",
    formula="mean over the intents of precision at k for that intent",
    reference=_AGRAWAL,
    at_k="required",
    needs=("lists", "intents"),
    ties="refuse",
    aliases=("p_ia",),
)
def precision_ia(h: Reading, k: int | None, c: Conventions) -> Float:
    """Precision for each intent on its own, averaged over the intents.

    >>> import recsys
    >>> intents = {1: {"a": ["x"], "b": ["y"], "d": ["y"], "c": ["z"]}}
    >>> recsys.evaluate({1: ["a", "d", "e", "b"]}, {1: [*"abcd"]}, "p_ia@5", intents=intents)["p_ia@5"]
    0.2
    """
    del c
    intents = truth_intents(h)
    hits = in_first_places(intents_of_hits(h, intents), k)
    count = np.bincount(hits.case, minlength=h.n_cases)
    return _nan_without_intent(intents, divide_or_zero(count * 1.0, intents.n_of_case * float(k or 1)))


@metric(
    "subtopic_recall",
    formula="intents served in the first k places / intents",
    reference="Zhai, Cohen & Lafferty, Beyond independent relevance (2003)",
    needs=("lists", "intents"),
    ties="refuse",
    grows_with_k=True,
    aliases=("strec",),
)
def subtopic_recall(h: Reading, k: int | None, c: Conventions) -> Float:
    """The share of the user's intents that some relevant item shown serves.

    >>> import recsys
    >>> intents = {1: {"a": ["x"], "b": ["y"], "d": ["y"], "c": ["z"]}}
    >>> result = recsys.evaluate({1: ["a", "d", "e", "b"]}, {1: [*"abcd"]}, "strec@5", intents=intents)
    >>> round(result["strec@5"], 4)
    0.6667
    """
    del c
    intents = truth_intents(h)
    hits = in_first_places(intents_of_hits(h, intents), k)
    first = times_served(hits, intents.size) == 0
    n_served = np.bincount(hits.case[first], minlength=h.n_cases)
    return _nan_without_intent(intents, divide_or_zero(n_served * 1.0, intents.n_of_case * 1.0))


def _share_of_most(h: Reading, k: int | None, alpha: float, weights: Weights) -> Float:
    """The weighted gains over those of a list in which every item serves every intent."""
    intents = truth_intents(h)
    longest = int(h.n_listed.max(initial=0)) if k is None else k
    most = np.cumsum(weights(longest) * (1.0 - alpha) ** np.arange(longest))
    depth = np.minimum(h.n_listed, longest) if k is None else np.full(h.n_cases, longest)
    best = np.concatenate([[0.0], most])[depth] * intents.n_of_case
    sums = _sum_gains(h, k, alpha, intents_of_hits(h, intents), weights)
    return _nan_without_intent(intents, divide_or_zero(sums, best))


def _share_of_greedy(h: Reading, k: int | None, alpha: float, weights: Weights) -> Float:
    """The weighted gains over those of the greedily best list."""
    intents = truth_intents(h)
    best = _sum_gains(h, k, alpha, intents_of_greedy_lists(h, intents, k, alpha), weights)
    sums = _sum_gains(h, k, alpha, intents_of_hits(h, intents), weights)
    return _nan_without_intent(intents, divide_or_zero(sums, best))


def _nan_without_intent(intents: Intents, values: Float) -> Float:
    """The values, NaN for a case whose relevant items serve no intent."""
    return np.where(intents.n_of_case > 0, values, math.nan)


def _sum_gains(h: Reading, k: int | None, alpha: float, hits: IntentHits, weights: Weights) -> Float:
    """Per case, the gains of the first k places times the weights of the places."""
    if not 0 <= alpha <= 1:
        raise ConventionError(f"alpha={alpha!r} does not lie between 0 and 1.", hint="Write alpha=0.5.")
    hits = in_first_places(hits, k)
    gain = (1.0 - alpha) ** times_served(hits, int(hits.intent.max(initial=0)) + 1)
    table = weights(int(hits.place.max(initial=1)))
    return add_up(hits.case, gain * table[hits.place - 1], h.n_cases)
