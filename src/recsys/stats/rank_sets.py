"""Which places the models of a board may have: sets of ranks that hold together, from all pairs of models.

A model may have every place that no claim about a pair excludes: with b of m models shown to be better and w
shown to be worse, its place is from 1 + b to m - w (Mogstad, Romano, Shaikh and Wilhelm 2024). If none of the
claims is false, which has the chance stated, all sets hold the true places; equal models share theirs.

The claims come from one test of all pairs. Of n users with values x, the pair j, k has

    z = |sum_i (x_ij - x_ik)| / sqrt(sum_i (x_ij - x_ik)^2),

and its rivals are the largest such z of all pairs when each user's row changes sign by the toss of one coin.
Pairs beyond the level's quantile are claimed, and then the rest are compared with the largest of the rest
until none is beyond (Romano and Wolf 2005). The signs keep the dependence between pairs, and leave the
denominators as they are. Over several data sets the values are divided by the number of users and of data
sets: the sums are then means over these data sets, whose users are drawn each by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from recsys.kernels.keyed_random import pair_keys, unit_keys
from recsys.records.arrays import Bool, Float
from recsys.stats.bootstrap import Resampler, Units

# Differences of this share of the values are rounding.
_ROUNDING = 1e-12


class Places(NamedTuple):
    """The best and the worst place that a model may have."""

    best: int
    worst: int

    def __str__(self) -> str:
        return f"{self.best}" if self.best == self.worst else f"{self.best}-{self.worst}"


def place_sets(is_better: Bool) -> list[Places]:
    """The places of each model; `is_better[j, k]`: model j is shown to be better than k.

    >>> print(*place_sets(np.array([[False, False, True], [False, False, True], [False, False, False]])))
    1-2 1-2 3
    """
    n_better, n_worse = is_better.sum(axis=0).tolist(), is_better.sum(axis=1).tolist()
    return [Places(1 + b, len(is_better) - w) for b, w in zip(n_better, n_worse, strict=True)]


def shown_better(values: Float, resampler: Resampler, alpha: float) -> Bool:
    """Which models (rows) have a larger sum over the units (columns) than which others; no claim is false.

    Of all claims together, with the chance 1 - alpha. `resampler` has the keys of the units.
    """
    centred = values - values.mean(axis=0)  # only differences count; less is lost to rounding
    small = _ROUNDING * np.abs(values).max(axis=0)
    sums, n = centred.sum(axis=1), len(values)
    squares = np.empty((n, n))
    for model, row in enumerate(centred):
        gaps = centred - row
        gaps[np.abs(gaps) <= small] = 0.0
        squares[model] = np.einsum("ij,ij->i", gaps, gaps)
    scale = np.divide(1.0, np.sqrt(squares), out=np.zeros((n, n)), where=squares > 0.0)
    open_pairs = np.triu(scale > 0.0, 1)
    observed = np.abs(sums[:, None] - sums) * scale * (1.0 - _ROUNDING)
    draws, claimed = resampler.flipped(centred), np.zeros((n, n), dtype=bool)
    while open_pairs.any():
        largest = np.zeros(draws.shape[1])
        for model in np.flatnonzero(open_pairs.any(axis=1)).tolist():
            others = open_pairs[model]
            gaps = np.abs(draws[others] - draws[model]) * scale[model, others, None]
            np.maximum(largest, gaps.max(axis=0), out=largest)
        # A pair is claimed if 1 + the draws that reach it are at most alpha (1 + all draws).
        n_reach = int(alpha * (len(largest) + 1) + _ROUNDING) - 1
        if n_reach < 0:
            break
        limit = np.partition(largest, len(largest) - 1 - n_reach)[len(largest) - 1 - n_reach]
        beyond = open_pairs & (observed > limit)
        if not beyond.any():
            break
        claimed |= beyond
        open_pairs &= ~beyond
    better: Bool = (claimed | claimed.T) & (sums[:, None] > sums)
    return better


def over_tasks(units: Mapping[str, Units]) -> Units:
    """The units of all tasks as one sample: the sum of a model's totals is the mean over tasks of its means.

    Users of two tasks that have the same id are two users.
    """
    weights = [float(one.weights[0].sum()) * len(units) for one in units.values()]
    keys = [pair_keys(unit_keys(np.array([task])), one.keys) for task, one in units.items()]
    totals = [one.totals / weight for one, weight in zip(units.values(), weights, strict=True)]
    return Units(np.concatenate(keys), np.hstack(totals), np.hstack([one.weights for one in units.values()]))
