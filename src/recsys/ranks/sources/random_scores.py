"""A random ranking for each user, from a seed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from recsys.inputs.ids import ids_from_sequence
from recsys.kernels.keyed_random import GOLDEN_RATIO, Keys, mix_bits, unit_floats, unit_keys
from recsys.ranks.sources.scores import Scores
from recsys.types import Float, Int


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
        self.seed = seed
        names = (
            np.arange(n_items) if items is None else ids_from_sequence(items, table="items", column="item")
        )
        user_keys = unit_keys(ids_from_sequence(users, table="users", column="user"))
        user_keys = user_keys + unit_keys(np.array([seed], dtype=np.int64))
        super().__init__(
            partial(_random_floats, user_keys, unit_keys(names) * GOLDEN_RATIO),
            n_users=len(users),
            n_items=n_items,
            user_ids=users,
            item_ids=items,
        )


def _random_floats(user_keys: Keys, item_keys: Keys, rows: Int) -> Float:
    return unit_floats(mix_bits(user_keys[rows][:, None] + item_keys))
