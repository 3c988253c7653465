"""Intent-aware metrics: a relevant item is relevant for something, and more of the same is worth less.

Definitions are those of ndeval, the program of the TREC web tracks. Only intents that some relevant item of
the case has count, all alike.
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
    asked_of,
    greedy_of,
    listed_of,
    times_served,
    within,
)
from recsys.metrics.registry import divided, metric
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
    >>> found = recsys.evaluate(lists, {1: [*"abcd"]}, "alpha_dcg@5, alpha_ndcg@5", intents=intents)
    >>> round(found["alpha_dcg@5"], 4), round(found["alpha_ndcg@5"], 4)
    (0.4053, 0.7869)
    """
    del c
    return _share(h, k, alpha, lambda n: discount_weights("log2", n))


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
    return _normalised(h, k, alpha, lambda n: discount_weights("log2", n))


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
    >>> found = recsys.evaluate({1: ["a", "d", "e", "b"]}, {1: [*"abcd"]}, "err_ia@5", intents=intents)
    >>> round(found["err_ia@5"], 4)
    0.3933
    """
    del c
    return _share(h, k, alpha, lambda n: discount_weights("reciprocal", n))


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
    return _normalised(h, k, alpha, lambda n: discount_weights("reciprocal", n))


@metric(
    "nrbp",
    formula="(1 - (1 - alpha) beta) / intents x sum over places r of gain_r beta^(r - 1)",
    reference=_NRBP,
    needs=("lists", "intents"),
    ties="refuse",
)
def nrbp(h: Reading, k: int | None, c: Conventions, *, alpha: float = 0.5, beta: float = 0.5) -> Float:
    """What a reader finds who goes on with chance beta and tires of an intent served before.

    >>> import recsys
    >>> intents = {1: {"a": ["x"], "b": ["y"], "d": ["y"], "c": ["z"]}}
    >>> found = recsys.evaluate({1: ["a", "d", "e", "b"]}, {1: [*"abcd"]}, "nrbp", intents=intents)
    >>> round(found["nrbp"], 4)
    0.3906
    """
    del c
    asked = asked_of(h)
    sums = _weighed(h, k, alpha, listed_of(h, asked), lambda n: geometric_weights(beta, n))
    return _known(asked, divided(sums * (1 - (1 - alpha) * beta), asked.n_of_case * 1.0))


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
    >>> found = recsys.evaluate({1: ["a", "d", "e", "b"]}, {1: [*"abcd"]}, "nnrbp", intents=intents)
    >>> round(found["nnrbp"], 4)
    0.8621
    """
    del c
    return _normalised(h, k, alpha, lambda n: geometric_weights(beta, n))


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
    asked = asked_of(h)
    found = within(listed_of(h, asked), k)
    served = times_served(found, asked.size) + 1
    wanted = np.bincount(asked.case * asked.size + asked.intent, minlength=h.n_cases * asked.size)
    worth = served / found.place / wanted[found.case * asked.size + found.intent]
    return _known(asked, divided(add_up(found.case, worth, h.n_cases), asked.n_of_case * 1.0))


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
    asked = asked_of(h)
    found = within(listed_of(h, asked), k)
    count = np.bincount(found.case, minlength=h.n_cases)
    return _known(asked, divided(count * 1.0, asked.n_of_case * float(k or 1)))


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
    >>> found = recsys.evaluate({1: ["a", "d", "e", "b"]}, {1: [*"abcd"]}, "strec@5", intents=intents)
    >>> round(found["strec@5"], 4)
    0.6667
    """
    del c
    asked = asked_of(h)
    found = within(listed_of(h, asked), k)
    first = times_served(found, asked.size) == 0
    served = np.bincount(found.case[first], minlength=h.n_cases)
    return _known(asked, divided(served * 1.0, asked.n_of_case * 1.0))


def _share(h: Reading, k: int | None, alpha: float, weights: Weights) -> Float:
    """The sum of weighed gains over the one of a list in which every item serves every intent."""
    asked = asked_of(h)
    longest = int(h.n_listed.max(initial=0)) if k is None else k
    most = np.cumsum(weights(longest) * (1.0 - alpha) ** np.arange(longest))
    depth = np.minimum(h.n_listed, longest) if k is None else np.full(h.n_cases, longest)
    best = np.concatenate([[0.0], most])[depth] * asked.n_of_case
    return _known(asked, divided(_weighed(h, k, alpha, listed_of(h, asked), weights), best))


def _normalised(h: Reading, k: int | None, alpha: float, weights: Weights) -> Float:
    asked = asked_of(h)
    best = _weighed(h, k, alpha, greedy_of(h, asked, k, alpha), weights)
    return _known(asked, divided(_weighed(h, k, alpha, listed_of(h, asked), weights), best))


def _known(asked: Intents, values: Float) -> Float:
    """A case whose relevant items serve no intent has no value."""
    return np.where(asked.n_of_case > 0, values, math.nan)


def _weighed(h: Reading, k: int | None, alpha: float, found: IntentHits, weights: Weights) -> Float:
    if not 0 <= alpha <= 1:
        raise ConventionError(f"alpha={alpha!r} does not lie between 0 and 1.", hint="Write alpha=0.5.")
    found = within(found, k)
    gain = (1.0 - alpha) ** times_served(found, int(found.intent.max(initial=0)) + 1)
    table = weights(int(found.place.max(initial=1)))
    return add_up(found.case, gain * table[found.place - 1], h.n_cases)
