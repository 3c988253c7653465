"""The best and the worst order of equal scores, found by trying every order of every list.

Each order is handed over as a list without scores, so nothing that finds orders is used; what a metric gives
for such a list is what the other oracles are about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, permutations, product
from typing import Any

import numpy as np

Lists = Mapping[Any, Sequence[tuple[Any, float]]]
Columns = dict[str, np.ndarray]


def orders_of(entries: Sequence[tuple[Any, float]]) -> list[list[Any]]:
    """Every list that these scores may stand for, best first."""
    best_first = sorted(entries, key=lambda pair: -pair[1])
    groups = [[item for item, _ in tied] for _, tied in groupby(best_first, key=lambda pair: pair[1])]
    choices = product(*(sorted(set(permutations(group))) for group in groups))
    return [[item for group in choice for item in group] for choice in choices]


def lowest_and_highest(
    lists: Lists, measure: Callable[[dict[Any, list[Any]]], Columns]
) -> tuple[Columns, Columns]:
    """The lowest and the highest value of each case over all orders; NaN where no order has a value.

    Args:
        lists: the scored lists of each case.
        measure: the columns of a metric or more, one value per case, of lists in a fixed order.
    """
    orders = {case: orders_of(entries) for case, entries in lists.items()}
    turns = [
        measure({case: choices[turn % len(choices)] for case, choices in orders.items()})
        for turn in range(max((len(choices) for choices in orders.values()), default=1))
    ]
    return (
        {name: np.fmin.reduce([turn[name] for turn in turns]) for name in turns[0]},
        {name: np.fmax.reduce([turn[name] for turn in turns]) for name in turns[0]},
    )


def n_orders(lists: Lists) -> int:
    """How many orders the list with most of them has."""
    return max((len(orders_of(entries)) for entries in lists.values()), default=1)
