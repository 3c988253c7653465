"""Expected exposure: what a list gives to each item or group, against what its relevance deserves.

The exposure of an item is the weight of its place, the chance that a reader comes so far. The target is the
mean over the best rankings: items of one grade share the places they take evenly, those of the next grade the
places below, and what is not relevant gets none. With `by`, both are summed over the items of each group.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.metrics.catalogue import OF_PLACES, place_weights
from recsys.metrics.ranges import DataLimits, Range
from recsys.metrics.readings import Reading, add_up
from recsys.metrics.registry import metric
from recsys.records.arrays import Array, Float, Int, runs


def _exposures(h: Reading, k: int | None, by: str | None, weight: str, p: float) -> tuple[Int, Float, Float]:
    """Return the case, the exposure and the target of each pair of a case and an item (or group)."""
    return h.cached(("expected exposure", k, by, weight, p), lambda: _count(h, k, by, weight, p))


def _count(h: Reading, k: int | None, by: str | None, weight: str, p: float) -> tuple[Int, Float, Float]:
    shown = h.shown(k)
    case, item = h.relevant_pairs
    longest = max(int(shown.place.max(initial=1)), int(h.n_relevant.max(initial=1)))
    weights = place_weights(weight, p, longest)
    if k is not None:
        weights = np.where(np.arange(longest) < k, weights, 0.0)
    # By grade, highest first: equal grades of a case share their places, and each gets the mean weight.
    order = np.lexsort((-h.relevant_grades, case))
    first, sizes = runs(case[order], h.relevant_grades[order])
    above = first - (np.cumsum(h.n_relevant) - h.n_relevant)[case[order][first]]
    reached = np.concatenate([[0.0], np.cumsum(weights)])
    target = np.empty(len(order))
    target[order] = np.repeat((reached[above + sizes] - reached[above]) / sizes, sizes)
    return _align(h, by, (shown.case, shown.item, weights[shown.place - 1]), (case, item, target))


def _align(
    h: Reading, by: str | None, shown: tuple[Array, Array, Float], due: tuple[Array, Array, Float]
) -> tuple[Int, Float, Float]:
    """Sum case, item and amount by case and item (or group), on both sides for the same pairs."""
    width = max(len(h.facts.ids if by is None else h.facts.attribute(by).labels), 1)
    keys, amounts = [], []
    for case, item, amount in (shown, due):
        key = case.astype(np.int64) * width
        if by is None:
            keys.append(key + item)
            amounts.append(amount)
        else:
            entry, code, n_labels = h.facts.attribute(by).of(item)
            keys.append(key[entry] + code)
            amounts.append(amount[entry] / n_labels)
    pairs, back = np.unique(np.concatenate(keys), return_inverse=True)
    n_shown = len(keys[0])
    system, target = (
        add_up(back[part], amount, len(pairs))
        for part, amount in zip((slice(n_shown), slice(n_shown, None)), amounts, strict=True)
    )
    return pairs // width, system, target


def _range(times: float) -> Callable[..., Range]:
    """So many times the square of the exposure of all places: no list or target has more in one group."""

    def of_data(
        data: DataLimits, k: int | None, c: Conventions, *, by: str | None, weight: str, p: float
    ) -> Range:
        case, _ = data.relevant_grades(c)
        longest = max(data.places(k), int(runs(case)[1].max(initial=0)), 1)
        shown = longest if k is None else min(longest, k)
        return 0.0, times * float(place_weights(weight, p, shown).sum()) ** 2

    return of_data


_FACTS: dict[str, Any] = {
    "reference": "Diaz et al., Evaluating stochastic rankings with expected exposure (2020)",
    "bounds": (0.0, math.inf),
    "needs": ("lists",),
    "choices": OF_PLACES,
    "ties": "shown",
    "tie_order": "unknown",
}


@metric(
    "ee_d",
    formula="sum over items (or groups) of exposure^2",
    better="lower",
    range=_range(1.0),
    aliases=("expected_exposure_disparity",),
    **_FACTS,
)
def ee_d(
    h: Reading,
    k: int | None,
    c: Conventions,
    *,
    by: str | None = None,
    weight: str = "geometric",
    p: float = 0.5,
) -> Float:
    """Expected exposure disparity: how unequally a list exposes items, or with `by` groups of items.

    The exposure of an item is the weight of its place, if it is shown in the first k places; under
    duplicates=all it is the sum over its places. `by` names the column of items= that holds the groups, whose
    exposures are sums over their items; items without one are left out. The weight of a place is geometric
    (p^(place - 1), the reader of RBP with patience p), log2 (that of DCG), log2_max2, reciprocal or none.
    Full lists of single items all have the same disparity; groups tell them apart.

    >>> import recsys
    >>> items = {"maker": {3: "x", 4: "y", 5: "x"}}
    >>> asked = ["ee_d@2", "ee_d(by=maker)@2"]
    >>> dict(recsys.evaluate({1: [3, 5]}, {1: {5}}, asked, items=items))
    {'ee_d@2': 1.25, 'ee_d(by=maker)@2': 2.25}
    """
    case, system, _ = _exposures(h, k, by, weight, p)
    return h.sum_by_case(case, system**2)


@metric(
    "ee_r",
    formula="sum over items (or groups) of exposure x target exposure",
    range=_range(1.0),
    aliases=("expected_exposure_relevance",),
    **_FACTS,
)
def ee_r(
    h: Reading,
    k: int | None,
    c: Conventions,
    *,
    by: str | None = None,
    weight: str = "geometric",
    p: float = 0.5,
) -> Float:
    """Expected exposure relevance: how much of the exposure goes where relevance wants it.

    The target: the relevant items take places 1, 2, … by grade, highest first, and those of one grade share
    the weights of their places evenly; places beyond k weigh 0, and other items have the target 0. `by`,
    `weight` and `p` are those of `ee_d`.

    >>> import recsys
    >>> recsys.evaluate({1: [3, 5]}, {1: {5, 6}}, "ee_r@2")["ee_r@2"]
    0.375
    """
    case, system, target = _exposures(h, k, by, weight, p)
    return h.sum_by_case(case, system * target)


@metric(
    "ee_l",
    formula="sum over items (or groups) of (exposure - target exposure)^2",
    better="lower",
    range=_range(2.0),  # exposures are never negative, so the two sides add up at most
    empty=None,
    aliases=("expected_exposure_loss",),
    **_FACTS,
)
def ee_l(
    h: Reading,
    k: int | None,
    c: Conventions,
    *,
    by: str | None = None,
    weight: str = "geometric",
    p: float = 0.5,
) -> Float:
    """Expected exposure loss: how far exposure is from its target; 0 if it is what relevance wants.

    The sum is over all items shown or relevant: it is ee_d - 2 ee_r + the squared target, which is that of
    `ee_r`. `by`, `weight` and `p` are those of `ee_d`.

    >>> import recsys
    >>> recsys.evaluate({1: [3, 5]}, {1: {5}}, "ee_l@2")["ee_l@2"]
    1.25
    """
    case, system, target = _exposures(h, k, by, weight, p)
    return h.sum_by_case(case, (system - target) ** 2)
