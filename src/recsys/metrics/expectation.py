"""Exact expectations over all orders of equal scores, for metrics that do not simply add up weights.

McSherry & Najork (2008). A group is the items of one case that share a score: `above` places come
before it, it holds `tied` places of which `relevant` are relevant hits, `before` hits came earlier.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from recsys.metrics.case_reading import Reading
from recsys.metrics.shown_items import add_up
from recsys.types import Array, Float


class TieGroups(NamedTuple):
    """Groups that hold a relevant hit, by case then place; `start` is the group's first relevant hit."""

    case: Array
    above: Array
    tied: Array
    relevant: Array
    before: Array
    start: Array


def groups(reading: Reading) -> TieGroups:
    """The tie groups of a reading; a place without a tie is a group of one."""
    case, rank = reading.case, reading.rank
    tied = np.ones(len(rank), dtype=np.int64) if reading.tied is None else reading.tied
    if len(case) == 0:
        return TieGroups(case, rank, tied, tied, tied, tied)
    start = np.flatnonzero(np.r_[True, (case[1:] != case[:-1]) | (rank[1:] != rank[:-1])])
    relevant = np.diff(np.r_[start, len(case)])
    return TieGroups(case[start], rank[start] - 1, tied[start], relevant, reading.order[start] - 1, start)


def first_hit(reading: Reading, k: int | None, worth: Callable[[int, int, int, int | None], float]) -> Float:
    """A value of the first relevant group of each case; 0 for a case without one."""
    g = groups(reading)
    first = np.flatnonzero(g.before == 0)
    out = np.zeros(reading.n_cases)
    rows = zip(g.above[first].tolist(), g.tied[first].tolist(), g.relevant[first].tolist(), strict=True)
    out[g.case[first]] = [worth(a, t, r, k) for a, t, r in rows]
    return out


@lru_cache(maxsize=1 << 16)
def chance_of_hit(above: int, tied: int, relevant: int, k: int | None) -> float:
    """P(at least one of `relevant` lies in the first k places)."""
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
    """E[1 / place of the first relevant], 0 beyond k."""
    last = tied - relevant + 1 if k is None else min(tied - relevant + 1, k - above)
    total, chance = 0.0, relevant / tied
    for j in range(1, last + 1):
        total += chance / (above + j)
        chance *= (tied - j - relevant + 1) / (tied - j) if tied > j else 0.0
    return total


def precision_sum(reading: Reading, k: int | None) -> Float:
    """E[sum over relevant hits of (hits so far)/place], per case."""
    g = groups(reading)
    rows = zip(*(x.tolist() for x in (g.above, g.tied, g.relevant, g.before)), strict=True)
    values = np.array([_precision_in_group(a, t, float(r), b, k) for a, t, r, b in rows])
    return add_up(g.case, values, reading.n_cases)


def precision_per_hit(reading: Reading, k: int | None) -> Float:
    """E[(sum over relevant hits of (hits so far)/place) / hits], per case: the divisor is random too."""
    g = groups(reading)
    out = np.zeros(reading.n_cases)
    sums = np.zeros(reading.n_cases)
    rows = zip(*(x.tolist() for x in (g.case, g.above, g.tied, g.relevant, g.before)), strict=True)
    for case, above, tied, relevant, before in rows:
        inside = tied if k is None else min(tied, k - above)
        if inside <= 0:
            continue
        if inside == tied:
            sums[case] += _precision_in_group(above, tied, float(relevant), before, k)
            out[case] = sums[case] / (before + relevant)
        else:
            out[case] = _straddling(sums[case], (above, tied, relevant, before), inside)
    return out


def _straddling(so_far: float, group: tuple[int, int, int, int], inside: int) -> float:
    above, tied, relevant, before = group
    total = 0.0
    for found, chance in enumerate(_hypergeometric(tied, relevant, inside)):
        if chance and before + found:
            part = _precision_in_group(above, inside, float(found), before, None)
            total += chance * (so_far + part) / (before + found)
    return total


@lru_cache(maxsize=1 << 16)
def _precision_in_group(above: int, tied: int, relevant: float, before: int, k: int | None) -> float:
    inside = tied if k is None else min(tied, k - above)
    slope = (relevant - 1) / (tied - 1) if tied > 1 else 0.0
    share = relevant / tied
    return sum(share * (before + 1 + (i - 1) * slope) / (above + i) for i in range(1, inside + 1))


def _hypergeometric(tied: int, relevant: int, inside: int) -> list[float]:
    """P(exactly j of `relevant` fall into `inside` of `tied` places), for each j."""
    chances = [1.0]
    for drawn in range(inside):
        left = tied - drawn
        chances = [
            (chances[j] * (left - (relevant - j)) / left if j < len(chances) else 0.0)
            + (chances[j - 1] * (relevant - j + 1) / left if j > 0 else 0.0)
            for j in range(min(drawn + 1, relevant) + 1)
        ]
    return chances


def cascade(reading: Reading, stop: Float, k: int | None) -> Float:
    """E[ERR]: the reader stops at an item with chance `stop` and is worth 1/place when he does."""
    g = groups(reading)
    out, left = np.zeros(reading.n_cases), np.ones(reading.n_cases)
    rows = zip(*(x.tolist() for x in (g.case, g.above, g.tied, g.relevant, g.start)), strict=True)
    for case, above, tied, relevant, start in rows:
        chances = tuple(sorted(stop[start : start + relevant].tolist()))
        worth, through = _cascade_in_group(above, tied, chances, k)
        out[case] += left[case] * worth
        left[case] *= through
    return out


@lru_cache(maxsize=1 << 14)
def _cascade_in_group(
    above: int, tied: int, chances: tuple[float, ...], k: int | None
) -> tuple[float, float]:
    inside = tied if k is None else min(tied, k - above)
    through = float(np.prod([1.0 - c for c in chances]))
    total = 0.0
    for at, chance in enumerate(chances):
        others = [1.0 - c for i, c in enumerate(chances) if i != at]
        for place in range(1, inside + 1):
            total += chance / tied / (above + place) * _mean_product(others, place - 1, tied - 1)
    return total, through


def _mean_product(factors: list[float], drawn: int, pool: int) -> float:
    """Mean product of `drawn` items out of `pool`, of which all but `factors` are 1."""
    polynomial = [1.0]
    for factor in factors:
        polynomial = [
            (polynomial[j] if j < len(polynomial) else 0.0) + (factor * polynomial[j - 1] if j else 0.0)
            for j in range(len(polynomial) + 1)
        ]
    chances = _hypergeometric(pool, len(factors), drawn)
    total = 0.0
    for j, chance in enumerate(chances):
        ways = _choose(len(factors), j)
        total += chance * polynomial[j] / ways
    return total


@lru_cache(maxsize=1 << 12)
def _choose(n: int, j: int) -> float:
    out = 1.0
    for i in range(j):
        out = out * (n - i) / (i + 1)
    return out
