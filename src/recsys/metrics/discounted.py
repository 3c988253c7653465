"""Metrics that weigh places: discounted gain, rank-biased precision, expected reciprocal rank.

Weights and gains come from correctly rounded tables (weights.py) and are added in rank order, so a
perfect list scores exactly 1 on every machine.
"""

from __future__ import annotations

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import ConventionError, Phrase
from recsys.kernels.exact_sums import geometric_weights
from recsys.metrics.expectation import cascade
from recsys.metrics.ranges import DataLimits, Range
from recsys.metrics.readings import Reading, cut_at
from recsys.metrics.registry import HITS_ABOVE, divide_or_zero, metric
from recsys.metrics.traits import UNIT
from recsys.metrics.weights import (
    discount_weights,
    gains,
    graded_shares,
    running_weights,
)
from recsys.records.arrays import Float, number_in_run

_LONGEST_IDEAL = 1 << 24


def _range_of_dcg(data: DataLimits, k: int | None, c: Conventions) -> Range:
    """Return the highest gains of one user at the places that weigh most."""
    case, grades = data.relevant_grades(c)
    gain, n = gains(c.gain, grades), data.n_hits(k, c)
    weights = np.sort(discount_weights(c.discount, data.places(k)))[::-1][:n]
    if c.duplicates == "all" or not len(gain) or gain.min() == gain.max():
        return 0.0, data.largest_item_weight * float(gain.max(initial=0.0) * weights.sum())
    order = np.lexsort((-gain, case))
    place = number_in_run(case[order])
    inside = place < n
    sums = np.bincount(case[order][inside], weights=gain[order][inside] * weights[place[inside]])
    return 0.0, data.largest_item_weight * float(sums.max(initial=0.0))


@metric(
    "dcg",
    formula="sum over hits at place r <= k of gain / discount(r), by default grade / log2(r + 1)",
    reference="Järvelin & Kekäläinen, Cumulated gain-based evaluation of IR techniques (2002)",
    range=_range_of_dcg,
    conventions=("gain", "discount"),
    weighted=True,
    additive=True,
    sum_over_places=True,
)
def dcg(h: Reading, k: int | None, c: Conventions) -> Float:
    """Gains of the relevant items shown, less the further down the list they are.

    >>> import recsys
    >>> recsys.score_list([3, 5, 8], {3: 2, 8: 3}, "dcg@3")
    3.5
    """
    return h.discounted(c.gain, c.discount, k)


@metric(
    "ndcg",
    formula="dcg / ideal, ideal = dcg of the relevant items alone, highest gain first, cut as `ideal` says",
    reference="Järvelin & Kekäläinen, Cumulated gain-based evaluation of IR techniques (2002)",
    conventions=("gain", "discount", "ideal"),
    weighted=True,
    not_additive="its ideal list is made of the observed items, so it is not a sum over them; ask for dcg",
)
def ndcg(h: Reading, k: int | None, c: Conventions) -> Float:
    """How close the list comes to the best possible one, places near the top weighing most.

    The ideal list holds the relevant items of the truth, listed or not, sorted by gain, in places 1, 2, …;
    the decision `ideal` says how many of them count.

    >>> import recsys
    >>> round(recsys.score_list([1, 5, 3, 8, 2], {3, 8, 10}, "ndcg@10"), 4)
    0.4367
    """
    if not isinstance(c.discount, str):
        longest = int(np.maximum(h.n_listed, h.n_relevant).max(initial=1))
        read = longest if k is None or c.ideal == "all" else min(k, longest)
        if (np.diff(discount_weights(c.discount, read)) > 0).any():
            raise ConventionError(
                "the discount rises with the place, and the ideal list of ndcg has the highest gains on top.",
                hint="Use dcg, or weights of places that do not rise.",
            )
    if c.ideal == "k":
        longest = int(h.n_listed.max(initial=0)) if k is None else k
        if longest > _LONGEST_IDEAL or h.largest_gain(c.gain) > 1:
            raise ConventionError(
                Phrase("{ideal='k'} assumes k hits of gain 1; a gain is above 1 or k is in the millions."),
                hint=Phrase("Use {gain='binary'} with it, or {ideal='reachable'}."),
            )
        running = running_weights(c.discount, longest)
        best = running[h.n_listed if k is None else np.full(h.n_cases, k)]
    else:
        places = h.n_relevant if c.ideal == "all" else cut_at(k, h.n_relevant)
        best = h.best(c.gain, c.discount, np.minimum(places, h.n_listed) if c.ideal == "list" else places)
    return divide_or_zero(h.discounted(c.gain, c.discount, k), best)


@metric(
    "sdcg",
    formula="sum over hits at place r <= k of grade / max_grade / log2(r + 1), over the sum of "
    "1 / log2(r + 1) of the first k places",
    reference="Azzopardi, Thomas & Moffat, cwl_eval: an evaluation tool for information retrieval (2019)",
    at_k="required",
    conventions=("max_grade",),
)
def sdcg(h: Reading, k: int | None, c: Conventions, *, min_grade: float = 0.0) -> Float:
    """Scaled discounted gain: the list against one that holds an item of the highest grade at all k places.

    The gain of a hit, grade / max_grade in the formula, is (grade - min_grade) / (max_grade - min_grade),
    within 0 and 1. A max_grade that is not above min_grade is an error.

    >>> import recsys
    >>> round(recsys.score_list([3, 5, 8], {3: 1, 8: 2}, "sdcg@3"), 4)
    0.4693
    """
    if k is None or k > _LONGEST_IDEAL:
        raise ConventionError("sdcg has an ideal of k places, and k is in the millions.", hint="Use ndcg.")
    gain = graded_shares(h.grade, min_grade, c.max_grade)
    weights = h.place_weights(lambda n: discount_weights("log2", n), k)
    return np.asarray(h.add(gain * weights) / running_weights("log2", k)[k])


@metric(
    "rbp",
    formula="(1 - p) sum over hits at place r <= k of p^(r - 1)",
    reference="Moffat & Zobel, Rank-biased precision (2008)",
    choices={"p": UNIT},
    sum_over_places=True,
)
def rbp(h: Reading, k: int | None, c: Conventions, *, p: float = 0.8) -> Float:
    """What a reader finds who goes on to the next item with probability p.

    >>> import recsys
    >>> recsys.score_list([3, 5, 8], {3, 8}, "rbp(p=0.5)")
    0.625
    """
    return (1 - p) * h.add(_chances_to_look(h, k, p))


def _chances_to_look(h: Reading, k: int | None, p: float) -> Float:
    """Return p^(place - 1) of each relevant hit, 0 beyond k."""
    return h.place_weights(lambda n: geometric_weights(p, n), k)


def _range_of_graded_rbp(data: DataLimits, k: int | None, c: Conventions, *, p: float) -> Range:
    gain = gains(c.gain, data.relevant_grades(c)[1])
    return 0.0, float(gain.max(initial=0.0)) * (1 - p ** data.places(k))


@metric(
    "graded_rbp",
    formula="(1 - p) sum over hits at place r <= k of gain p^(r - 1)",
    reference="Moffat & Zobel, Rank-biased precision (2008)",
    choices={"p": UNIT},
    range=_range_of_graded_rbp,
    conventions=("gain",),
    sum_over_places=True,
)
def graded_rbp(h: Reading, k: int | None, c: Conventions, *, p: float = 0.8) -> Float:
    """Rank-biased precision in which a hit counts its gain: grades above 1 can take it above 1.

    >>> import recsys
    >>> recsys.score_list([3, 5, 8], {3: 1, 8: 2}, "graded_rbp(p=0.5)")
    0.75
    """
    return (1 - p) * h.add(h.gain(c.gain) * _chances_to_look(h, k, p))


@metric(
    "err",
    formula="sum over places r <= k of (1/r) R_r prod_{i<r} (1 - R_i), R = (2^grade - 1) / 2^max_grade",
    reference="Chapelle et al., Expected reciprocal rank for graded relevance (2009)",
    conventions=("max_grade",),
    ties="own",
    not_additive=HITS_ABOVE,
    sum_over_places=True,
)
def err(h: Reading, k: int | None, c: Conventions) -> Float:
    """How early a reader is satisfied who is the likelier to stop at an item the better it is.

    R is 0 at a place without a hit. A relevant item in the list, beyond k too, of a grade above max_grade is
    an error.

    >>> import recsys
    >>> recsys.score_list([3, 5, 8], {3: 1, 8: 1}, "err")
    0.5833333333333334
    """
    highest = c.max_grade if c.max_grade is not None else 1.0
    stop = gains("exp2", h.grade) / (gains("exp2", np.array([highest])) + 1)
    if (stop > 1).any():
        raise ConventionError(
            Phrase("a grade of {:g} is above {max_grade=}.", h.grade.max(), max_grade=highest),
            hint="Raise max_grade.",
        )
    if h.tied is not None:
        return cascade(h, stop, k)
    out, left = np.zeros(h.n_cases), np.ones(h.n_cases)
    for at in h.hits_in_turn:
        case = h.case[at]
        out[case] += h.within(k)[at] * stop[at] * left[case] / h.rank[at]
        left[case] *= 1 - stop[at]
    return out
