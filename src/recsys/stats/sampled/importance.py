"""Importance weights for negatives that were not sampled uniformly.

Popular negatives are harder, so ranks among them look worse than they are. Each negative counts for the
number of items it represents: with replacement the inverse of n times its probability (Hansen & Hurwitz
1943), without replacement the inverse of its probability to be in the sample at all (Horvitz & Thompson
1952). The sum over the negatives above a positive is an unbiased estimate of how many items rank above it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.stats.sampled.estimates import SampledEstimate, mean_estimate
from recsys.stats.sampled.rank_values import parse_rank_metric, values_by_rank
from recsys.types import Array, Float


def inclusion_chances(weights: Any, n: int) -> Float:
    """The probability of each item to be among n different ones, drawn one after the other by weight.

    Rosén's approximation: 1 - exp(-t w), with t such that the probabilities add up to n.

    >>> inclusion_chances([1.0, 1.0, 1.0, 1.0], 2).round(6).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    w = _check_weights(weights)
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
    """An unbiased estimate of the true rank of each positive from negatives of unequal probability.

    Args:
        above: whether each negative scores above the positive: a matrix with one row per case; 0.5 for a tie.
        chances: the probability of each of these negatives, in the same form: with replacement, that of one
            draw; without, that to be in the sample at all (`inclusion_chances`).
        n_items: all items the positive could be ranked among, itself included: one number, or one per case.
        replacement: whether a negative could be drawn twice.

    >>> weighted_ranks([[1, 0, 0, 1]], [[0.5, 0.1, 0.1, 0.1]], 101).tolist()
    [13.0]
    """
    is_above, probabilities = _case_matrix(above, "above"), _case_matrix(chances, "chances")
    if is_above.shape != probabilities.shape:
        raise InputError(f"above has shape {is_above.shape} and chances {probabilities.shape}.")
    if not ((probabilities > 0) & (probabilities <= 1)).all():
        raise InputError(
            "a negative that was drawn has a chance outside (0, 1].", hint="Pass the chance of each negative."
        )
    items_represented = 1.0 / (probabilities * probabilities.shape[1] if replacement else probabilities)
    return np.asarray(1.0 + np.minimum((items_represented * is_above).sum(axis=1), np.asarray(n_items) - 1.0))


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
    """Estimate a metric on the whole catalogue from negatives of unequal probability.

    Arguments as in `weighted_ranks`.

    Each case has the metric at its estimated rank, interpolated between whole ranks. This is unbiased for
    metrics that are linear in the rank (auc, average_rank). For others it depends on the sampling: items that
    are popular and score high are nearly always drawn, so the top of the ranking is known better than from as
    many uniform negatives.

    >>> above, chances = [[1, 0], [0, 0], [1, 1]], [[0.5, 0.5], [0.5, 0.5], [0.5, 1.0]]
    >>> round(estimate_weighted(above, chances, 5, "auc").value, 3)
    0.583
    """
    rank_metric = parse_rank_metric(metric)
    ranks = weighted_ranks(above, chances, n_items, replacement=replacement)
    sizes = np.broadcast_to(np.asarray(n_items, dtype=np.int64), ranks.shape)
    values = np.empty(len(ranks))
    for size in np.unique(sizes).tolist():
        has_size = sizes == size
        values[has_size] = np.interp(
            ranks[has_size], np.arange(1, size + 1), values_by_rank(rank_metric, size)
        )
    return mean_estimate(rank_metric, "weighted", values, clusters, confidence, worst_bias=None)


def _case_matrix(values: Any, what: str) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] < 1:
        raise InputError(f"{what} has shape {array.shape}.", hint="Give one row per case.")
    return array


def _check_weights(values: Any) -> Float:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array) or not ((array >= 0) & np.isfinite(array)).all():
        raise InputError("weights must be finite numbers of at least 0, one per item.")
    return array
