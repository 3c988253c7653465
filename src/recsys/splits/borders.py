"""Where a group's rows are cut: which are its newest (or first drawn), and what becomes of equal ones.

No group is looped over: rows get one whole number that sorts by group and then by time or draw, the sorted
numbers say where each group's border lies, and every row is compared with the border of its group. Equal
numbers therefore fall together by themselves; only rows at a border that must part are ever ordered further.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from recsys.errors import SplitError, UnknownNameError
from recsys.kernels.keyed_random import Keys
from recsys.types import Array, Bool, Codes, Int

ON_TIE = {
    "together": "rows of one time stay together, on the newer side",
    "train": "rows of one time stay together, on the older side",
    "by_item": "the higher item id counts as newer",
    "random": "a seeded draw of user and item decides",
    "row_order": "the later row counts as newer",
    "error": "a tie at a border is an error",
}
ROUNDING = ("down", "nearest", "up")
_WHOLE = 62  # bits of a key that stays a positive int64


def time_keys(values: Array, group: Codes, n_groups: int) -> Int:
    """One whole number a row that sorts by group, then by time."""
    if values.dtype.kind == "f" or int(values.max()) - int(values.min()) >= (1 << _WHOLE) // max(n_groups, 1):
        _, place = np.unique(values, return_inverse=True)
        low, span = 0, int(place.max()) + 1
    else:
        place, low, span = values, int(values.min()), int(values.max()) - int(values.min()) + 1
    keys = np.multiply(group, span, dtype=np.int64)
    keys += place
    if low:
        keys -= low
    return keys


def draw_keys(keys: Keys, group: Codes, n_groups: int) -> Int:
    """One whole number a row that sorts by group, then by draw."""
    bits = max(int(n_groups) - 1, 0).bit_length()
    made = (keys >> np.uint64(64 - _WHOLE + bits)).view(np.int64)
    made |= np.left_shift(group, _WHOLE - bits, dtype=np.int64)
    return made


def sizes_of(group: Codes, n_groups: int) -> Int:
    """How many rows each group has."""
    return np.bincount(group, minlength=n_groups).astype(np.int64, copy=False)


def share_of(sizes: Int, wanted: float | Fraction, rounding: str = "down") -> Int:
    """A share of each group, at least 1; 0.29 of 100 is 29, though not in floats."""
    exact = Fraction(wanted).limit_denominator(10**6)
    extra = {"down": 0, "nearest": exact.denominator // 2, "up": exact.denominator - 1}[rounding]
    return np.maximum((sizes * exact.numerator + extra) // exact.denominator, 1)


def newest(
    keys: Int, group: Codes, wanted: Int, on_tie: str, breaker: Callable[[Int], Array]
) -> tuple[Bool, Int]:
    """Which rows are the last `wanted` of their group, and how many groups have a tie at the border.

    `breaker` gives, for some rows, what orders equal ones; it is asked for rows at a tied border only.
    """
    if on_tie not in ON_TIE:
        raise UnknownNameError("value of on_tie", on_tie, ON_TIE)
    n_groups = len(wanted)
    sizes = sizes_of(group, n_groups)
    takes = np.minimum(wanted, sizes)
    border = _borders(keys, sizes, takes)
    chosen = keys >= border[group]
    excess = sizes_of(group[chosen], n_groups) - takes
    tied = np.flatnonzero(excess > 0)
    if len(tied) == 0 or on_tie == "together":
        return chosen, tied
    if on_tie == "error":
        raise SplitError(
            f"{len(tied)} of {n_groups} borders fall between rows of equal time.",
            hint="Choose on_tie='together', 'train', 'by_item', 'random' or 'row_order'.",
        )
    at_border = np.flatnonzero((keys == border[group]) & (excess[group] > 0))
    if on_tie == "train":
        chosen[at_border] = False
        return chosen, tied
    own = group[at_border]
    order = np.lexsort((breaker(at_border), own))  # the rows that go back are the first of each group
    starts = np.concatenate([[0], np.cumsum(sizes_of(own, n_groups))])[:-1]
    place = np.arange(len(order)) - starts[own[order]]
    chosen[at_border[order[place < excess[own[order]]]]] = False
    return chosen, tied


def _borders(keys: Int, sizes: Int, takes: Int) -> Int:
    """The smallest key that is taken of each group; beyond all keys where nothing is."""
    beyond = np.iinfo(np.int64).max
    if len(keys) == 0:
        return np.full(len(sizes), beyond)
    if len(sizes) == 1:
        at = int(sizes[0] - takes[0])
        return np.array([np.partition(keys, at)[at] if takes[0] else beyond], dtype=np.int64)
    ends = np.cumsum(sizes)
    ordered = np.sort(keys)
    at = np.minimum(ends - takes, len(keys) - 1)
    return np.where(takes > 0, ordered[at], beyond)
