"""Negatives that were not drawn uniformly, weighted by how unlikely they were to be drawn.

Popular negatives are harder, so ranks among them look worse than they are. Each negative counts for the items
it stands for: with replacement the inverse of n times its chance (Hansen & Hurwitz 1943), without replacement
the inverse of the chance to be in the sample at all (Horvitz & Thompson 1952). Their sum over the negatives
above a positive is its true rank, without bias.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.stats.sampled.estimates import SampledEstimate, of_values
from recsys.stats.sampled.rank_values import asked, value_of_rank
from recsys.types import Array, Float


def inclusion_chances(weights: Any, n: int) -> Float:
    """The chance of each item to be among n different ones, drawn one after the other by weight.

    Rosén's approximation: 1 - exp(-t w), with the t that makes the chances add up to n.

    >>> inclusion_chances([1.0, 1.0, 1.0, 1.0], 2).round(6).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    w = _weights(weights)
    positive = int((w > 0).sum())
    if not 1 <= n <= positive:
        raise InputError(
            f"{n} different negatives cannot come from {positive} items with a weight above 0.",
            hint="Ask for fewer negatives, or draw with replacement.",
        )
    if n == positive:
        return (w > 0).astype(np.float64)
    share = w / w.sum()
    low, high = 0.0, float(n)
    while float(-np.expm1(-high * share).sum()) < n:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if float(-np.expm1(-middle * share).sum()) < n else (low, middle)
    return np.asarray(-np.expm1(-high * share))


def weighted_ranks(above: Any, chances: Any, n_items: Any, *, replacement: bool = False) -> Float:
    """The true rank of each positive, estimated without bias from negatives of unequal chance.

    Args:
        above: whether each negative scores above the positive: a matrix, one row a case. A half says tied.
        chances: of each of these negatives, in the same form: drawn with replacement, the probability of
            one draw; without, the chance to be in the sample at all (`inclusion_chances`).
        n_items: all items the positive could be ranked among, itself included: one number, or one a case.
        replacement: whether a negative could be drawn twice.

    >>> weighted_ranks([[1, 0, 0, 1]], [[0.5, 0.1, 0.1, 0.1]], 101).tolist()
    [13.0]
    """
    marks, chance = _matrix(above, "above"), _matrix(chances, "chances")
    if marks.shape != chance.shape:
        raise InputError(f"above has shape {marks.shape} and chances {chance.shape}.")
    if not ((chance > 0) & (chance <= 1)).all():
        raise InputError(
            "a negative that was drawn has a chance outside (0, 1].", hint="Pass the chance of each negative."
        )
    stands_for = 1.0 / (chance * chance.shape[1] if replacement else chance)
    return np.asarray(1.0 + np.minimum((stands_for * marks).sum(axis=1), np.asarray(n_items) - 1.0))


def estimate_weighted(
    above: Any,
    chances: Any,
    n_items: Any,
    metric: Any = "ndcg@10",
    *,
    replacement: bool = False,
    clusters: Any = None,
    confidence: float = 0.95,
) -> SampledEstimate:
    """A metric on the whole catalogue from negatives of unequal chance; arguments as in `weighted_ranks`.

    Each case counts the metric at its estimated rank, between whole ranks in proportion. Exact in the mean
    for metrics that are straight lines in the rank (auc, average_rank); for others what is likely to be
    drawn decides: items that are popular and score high are known almost one by one, so the top of the
    ranking is known better than from as many uniform negatives.

    >>> above, chances = [[1, 0], [0, 0], [1, 1]], [[0.5, 0.5], [0.5, 0.5], [0.5, 1.0]]
    >>> round(estimate_weighted(above, chances, 5, "auc").value, 3)
    0.583
    """
    wanted = asked(metric)
    ranks = weighted_ranks(above, chances, n_items, replacement=replacement)
    sizes = np.broadcast_to(np.asarray(n_items, dtype=np.int64), ranks.shape)
    values = np.empty(len(ranks))
    for size in np.unique(sizes).tolist():
        at = sizes == size
        values[at] = np.interp(ranks[at], np.arange(1, size + 1), value_of_rank(wanted, size))
    return of_values(wanted, "weighted", values, clusters, confidence, worst_bias=None)


def _matrix(values: Any, what: str) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] < 1:
        raise InputError(f"{what} has shape {array.shape}.", hint="Give one row a case.")
    return array


def _weights(values: Any) -> Float:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array) or not ((array >= 0) & np.isfinite(array)).all():
        raise InputError("weights must be finite numbers of at least 0, one an item.")
    return array
