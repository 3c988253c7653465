"""Scores that are sums over a user's own items: item-kNN, EASE and whatever else weighs items by items."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.ranks.sources.scores import Scores
from recsys.records.arrays import Array, Int


class HistoryScores(Scores):
    """`history @ weights`, a few users at a time: neither side is ever multiplied out for all users.

    Args:
        history: users x items, sparse (CSR): what each user had.
        weights: items x items, an array or sparse: row i says what having item i adds to each item.
        user_ids: the id of each row of `history`; by default its number.
        item_ids: the id of each row of `weights`; by default its number.

    >>> from scipy.sparse import csr_array
    >>> model = HistoryScores(csr_array([[1.0, 0.0]]), np.array([[0.0, 0.5], [0.5, 0.0]]))
    >>> model
    HistoryScores(1 users x 2 items)
    """

    def __init__(
        self,
        history: Any,
        weights: Any,
        *,
        user_ids: Iterable[Any] | None = None,
        item_ids: Iterable[Any] | None = None,
    ) -> None:
        n_users, n_items = history.shape
        if weights.shape != (n_items, n_items):
            raise InputError(
                f"the histories have {n_items} items and the weights shape {weights.shape}.",
                hint="Weights are items x items.",
            )
        self.history, self.weights = history, weights
        super().__init__(
            partial(_weighted_sums, history, weights),
            n_users=n_users,
            n_items=n_items,
            user_ids=user_ids,
            item_ids=item_ids,
        )


def _weighted_sums(history: Any, weights: Any, rows: Int) -> Array:
    sums = history[rows] @ weights
    return np.asarray(sums.toarray() if hasattr(sums, "toarray") else sums)
