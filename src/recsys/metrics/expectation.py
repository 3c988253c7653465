"""Exact expectations over all orders of equal scores, for metrics that do not simply add up weights.

McSherry & Najork (2008). A group is the items of one case that share a score: `above` places come before it,
it has `tied` places and `relevant` relevant hits, and `before` relevant hits are above it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from recsys.metrics.readings import Reading, add_up
from recsys.records.arrays import Array, Float, runs


class TieGroups(NamedTuple):
    """Groups with a relevant hit, by case, then place; `start` is the index of the first relevant hit."""

    case: Array
    above: Array
    tied: Array
    relevant: Array
    before: Array
    start: Array


def groups(reading: Reading) -> TieGroups:
    """Return the tie groups of a reading; a place without a tie is a group of one."""
    case, rank = reading.case, reading.rank
    tied = np.ones(len(rank), dtype=np.int64) if reading.tied is None else reading.tied
    start, relevant = runs(case, rank)
    return TieGroups(case[start], rank[start] - 1, tied[start], relevant, reading.order[start] - 1, start)


def first_hit(reading: Reading, k: int | None, value: Callable[[int, int, int, int | None], float]) -> Float:
    """Return `value(above, tied, relevant, k)` of the first group of each case; 0 for a case without one."""
    g = groups(reading)
    first = np.flatnonzero(g.before == 0)
    out = np.zeros(reading.n_cases)
    rows = zip(g.above[first].tolist(), g.tied[first].tolist(), g.relevant[first].tolist(), strict=True)
    out[g.case[first]] = [value(a, t, r, k) for a, t, r in rows]
    return out


@lru_cache(maxsize=1 << 16)
def chance_of_hit(above: int, tied: int, relevant: int, k: int | None) -> float:
    """Return P(at least one of the relevant hits is in the first k places)."""
    inside = tied if k is None else min(tied, k - above)
    if inside <= 0:
        return 0.0
    if inside > tied - relevant:
        return 1.0
    miss = 1.0
    for i in range(inside):
        miss *= (tied - relevant - i) / (tied - i)
    return 1.0 - miss


@lru_cache(maxsize=1 << 16)
def reciprocal_of_first(above: int, tied: int, relevant: int, k: int | None) -> float:
    """Return E[1 / place of the first relevant hit], where a place beyond k counts 0."""
    last = tied - relevant + 1 if k is None else min(tied - relevant + 1, k - above)
    total, chance = 0.0, relevant / tied
    for j in range(1, last + 1):
        total += chance / (above + j)
        chance *= (tied - j - relevant + 1) / (tied - j) if tied > j else 0.0
    return total


def precision_sum(reading: Reading, k: int | None) -> Float:
    """Return E[sum over relevant hits of (hits so far)/place], per case."""
    g = groups(reading)
    rows = zip(*(x.tolist() for x in (g.above, g.tied, g.relevant, g.before)), strict=True)
    values = np.array([_precision_in_group(a, t, float(r), b, k) for a, t, r, b in rows])
    return add_up(g.case, values, reading.n_cases)


def precision_per_hit(reading: Reading, k: int | None) -> Float:
    """Return E[(sum over relevant hits of (hits so far)/place) / hits], per case: hits are random too."""
    g = groups(reading)
    out = np.zeros(reading.n_cases)
    sums = np.zeros(reading.n_cases)
    rows = zip(*(x.tolist() for x in (g.case, g.above, g.tied, g.relevant, g.before)), strict=True)
    for case, above, tied, relevant, before in rows:
        inside = tied if k is None else min(tied, k - above)
        if inside <= 0:
            continue
        expected = 0.0
        if inside == tied:
            sums[case] += _precision_in_group(above, tied, float(relevant), before, k)
            out[case] = sums[case] / (before + relevant)
        else:
            # The cut at k lies within the group: how many of its hits are above the cut is random.
            for n_hits, chance in enumerate(_hypergeometric(tied, relevant, inside)):
                if chance and before + n_hits:
                    part = _precision_in_group(above, inside, float(n_hits), before, None)
                    expected += chance * (sums[case] + part) / (before + n_hits)
            out[case] = expected
    return out


@lru_cache(maxsize=1 << 16)
def _precision_in_group(above: int, tied: int, relevant: float, before: int, k: int | None) -> float:
    """Return E[sum over the group's relevant hits in the first k places of (hits so far)/place]."""
    inside = tied if k is None else min(tied, k - above)
    slope = (relevant - 1) / (tied - 1) if tied > 1 else 0.0
    share = relevant / tied
    terms = (share * (before + 1 + (i - 1) * slope) / (above + i) for i in range(1, inside + 1))
    return math.fsum(terms)  # sum() adds otherwise from Python 3.12 on


def _hypergeometric(tied: int, relevant: int, inside: int) -> list[float]:
    """Return P(exactly j of `relevant` fall into `inside` of `tied` places), for each j."""
    chances = [1.0]
    for place in range(inside):
        left = tied - place
        chances = [
            (chances[j] * (left - (relevant - j)) / left if j < len(chances) else 0.0)
            + (chances[j - 1] * (relevant - j + 1) / left if j > 0 else 0.0)
            for j in range(min(place + 1, relevant) + 1)
        ]
    return chances


def cascade(reading: Reading, stop: Float, k: int | None) -> Float:
    """Return E[ERR]: the reader stops at an item with chance `stop`, and stopping counts 1/place."""
    g = groups(reading)
    out, left = np.zeros(reading.n_cases), np.ones(reading.n_cases)
    rows = zip(*(x.tolist() for x in (g.case, g.above, g.tied, g.relevant, g.start)), strict=True)
    for case, above, tied, relevant, start in rows:
        chances = tuple(sorted(stop[start : start + relevant].tolist()))
        value, passes = _cascade_in_group(above, tied, chances, k)
        out[case] += left[case] * value
        left[case] *= passes
    return out


@lru_cache(maxsize=1 << 14)
def _cascade_in_group(
    above: int, tied: int, chances: tuple[float, ...], k: int | None
) -> tuple[float, float]:
    """Return the expected value of one group, and the chance that the reader goes on beyond it."""
    inside = tied if k is None else min(tied, k - above)
    passes = float(np.prod([1.0 - c for c in chances]))
    total = 0.0
    for at, chance in enumerate(chances):
        others = [1.0 - c for i, c in enumerate(chances) if i != at]
        for place in range(1, inside + 1):
            total += chance / tied / (above + place) * _mean_product(others, place - 1, tied - 1)
    return total, passes


def _mean_product(factors: list[float], n_chosen: int, n_items: int) -> float:
    """Mean product of `n_chosen` of `n_items` numbers, of which all but `factors` are 1."""
    polynomial = [1.0]
    for factor in factors:
        polynomial = [
            (polynomial[j] if j < len(polynomial) else 0.0) + (factor * polynomial[j - 1] if j else 0.0)
            for j in range(len(polynomial) + 1)
        ]
    total = 0.0
    for j, chance in enumerate(_hypergeometric(n_items, len(factors), n_chosen)):
        total += chance * polynomial[j] / _binomial(len(factors), j)
    return total


@lru_cache(maxsize=1 << 12)
def _binomial(n: int, j: int) -> float:
    out = 1.0
    for i in range(j):
        out = out * (n - i) / (i + 1)
    return out
