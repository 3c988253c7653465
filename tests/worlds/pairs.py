"""Training pairs of users with two tastes."""

from __future__ import annotations

import numpy as np

from recsys.models import Pairs


def two_tastes(seed=0, n_users=60, n_items=40):
    """Users of a group take 8 of the 20 items of that group, in a random order."""
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(n_users), 8)
    items = np.concatenate([rng.choice(20, 8, replace=False) + 20 * (u % 2) for u in range(n_users)])
    return Pairs.of(users, items, n_users=n_users, n_items=n_items, order=rng.permutation(len(users)))
