"""A random ranking for each user, from a seed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from recsys.inputs.ids import ids_from_sequence
from recsys.kernels.keyed_random import GOLDEN_RATIO, Keys, mix_bits, unit_floats, unit_keys
from recsys.ranks.sources.scores import Scores
from recsys.records.arrays import Array, Float, Int
from recsys.records.checks import check_seed


class RandomScores(Scores):
    """Scores that depend on the seed, the user and the item only, not on the order of rows."""

    def __init__(
        self,
        n_items: int,
        *,
        user_ids: Iterable[Any],
        item_ids: Iterable[Any] | None = None,
        seed: int = 0,
    ) -> None:
        users, items = list(user_ids), None if item_ids is None else list(item_ids)
        self.seed = check_seed(seed)
        names = (
            np.arange(n_items) if items is None else ids_from_sequence(items, table="items", column="item")
        )
        seed_key = unit_keys(np.array([self.seed], dtype=np.int64))
        super().__init__(
            partial(_random_floats, seed_key, unit_keys(names) * GOLDEN_RATIO),
            n_users=len(users),
            n_items=n_items,
            user_ids=users,
            item_ids=items,
        )

    def _scores_of(self, users: Array, rows: Int) -> Any:
        del rows
        return self._score_rows(users)


def _random_floats(seed_key: Keys, item_keys: Keys, users: Array) -> Float:
    return unit_floats(mix_bits((unit_keys(users) + seed_key)[:, None] + item_keys))
