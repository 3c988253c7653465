"""Where each group of rows is cut: which of its rows are the newest (or drawn), and how ties are resolved.

There is no loop over groups: each row gets one whole number that sorts by group and then by time or draw, the
sorted numbers show the border of each group, and every row is compared with the border of its group. Rows
with equal numbers therefore stay together; only tied rows that a border must separate are sorted again.
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
_KEY_BITS = 62  # bits of a key, so that it stays a positive int64


def time_keys(values: Array, group: Codes, n_groups: int) -> Int:
    """One whole number per row that sorts by group, then by time."""
    if values.dtype.kind == "f" or int(values.max()) - int(values.min()) >= (1 << _KEY_BITS) // max(
        n_groups, 1
    ):
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
    """One whole number per row that sorts by group, then by draw."""
    bits = max(int(n_groups) - 1, 0).bit_length()
    group_keys = (keys >> np.uint64(64 - _KEY_BITS + bits)).view(np.int64)
    group_keys |= np.left_shift(group, _KEY_BITS - bits, dtype=np.int64)
    return group_keys


def group_sizes(group: Codes, n_groups: int) -> Int:
    """How many rows each group has."""
    return np.bincount(group, minlength=n_groups).astype(np.int64, copy=False)


def share_counts(sizes: Int, share: float | Fraction, rounding: str = "down") -> Int:
    """The number of rows that is a share of each group, at least 1; computed exactly: 0.29 of 100 is 29."""
    exact = Fraction(share).limit_denominator(10**6)
    extra = {"down": 0, "nearest": exact.denominator // 2, "up": exact.denominator - 1}[rounding]
    return np.maximum((sizes * exact.numerator + extra) // exact.denominator, 1)


def select_newest(
    keys: Int, group: Codes, n_wanted: Int, on_tie: str, tie_order: Callable[[Int], Array]
) -> tuple[Bool, Int]:
    """Select the last `n_wanted` rows of each group.

    Args:
        keys: from `time_keys` or `draw_keys`.
        group: the group of each row.
        n_wanted: the number of rows to select in each group.
        on_tie: a name in `ON_TIE`.
        tie_order: gives the sort keys of tied rows, for an array of row numbers.

    Returns:
        One flag per row, and the groups with a tie at their border.
    """
    if on_tie not in ON_TIE:
        raise UnknownNameError("value of on_tie", on_tie, ON_TIE)
    n_groups = len(n_wanted)
    sizes = group_sizes(group, n_groups)
    n_selected = np.minimum(n_wanted, sizes)
    border = _border_keys(keys, sizes, n_selected)
    selected = keys >= border[group]
    excess = group_sizes(group[selected], n_groups) - n_selected
    tied_groups = np.flatnonzero(excess > 0)
    if len(tied_groups) == 0 or on_tie == "together":
        return selected, tied_groups
    if on_tie == "error":
        raise SplitError(
            f"{len(tied_groups)} of {n_groups} borders fall between rows of equal time.",
            hint="Choose on_tie='together', 'train', 'by_item', 'random' or 'row_order'.",
        )
    at_border = np.flatnonzero((keys == border[group]) & (excess[group] > 0))
    if on_tie == "train":
        selected[at_border] = False
        return selected, tied_groups
    tied_group = group[at_border]
    order = np.lexsort((tie_order(at_border), tied_group))  # the first rows of each group are deselected
    starts = np.concatenate([[0], np.cumsum(group_sizes(tied_group, n_groups))])[:-1]
    place = np.arange(len(order)) - starts[tied_group[order]]
    selected[at_border[order[place < excess[tied_group[order]]]]] = False
    return selected, tied_groups


def _border_keys(keys: Int, sizes: Int, n_selected: Int) -> Int:
    """The smallest selected key of each group; above all keys where none is selected."""
    above_all = np.iinfo(np.int64).max
    if len(keys) == 0:
        return np.full(len(sizes), above_all)
    if len(sizes) == 1:
        place = int(sizes[0] - n_selected[0])
        return np.array([np.partition(keys, place)[place] if n_selected[0] else above_all], dtype=np.int64)
    ends = np.cumsum(sizes)
    ordered = np.sort(keys)
    place = np.minimum(ends - n_selected, len(keys) - 1)
    return np.where(n_selected > 0, ordered[place], above_all)
