"""Corrected metrics: the value of each sampled rank that makes the mean right for the whole catalogue.

`cls` brings the expected value as close to the truth as possible over all true ranks, provided that a better
sampled rank never has a lower value. `bv` accepts more bias for less variance: gamma = 0 is plain least
squares, gamma = 1 the posterior mean of the truth. Krichene & Rendle, sections 5.1 to 5.3.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from recsys.errors import InputError, UnknownNameError
from recsys.stats.sampled.rank_chances import binned_values, chances, rank_grid
from recsys.stats.sampled.rank_values import RankMetric, values_by_rank
from recsys.types import Float

PRIORS = ("uniform", "log")


def rank_prior(name: str, n_items: int) -> Float:
    """The prior probability of each bin of true ranks.

    "uniform": all ranks equally likely, as in the paper. "log": all powers of ten, which fits good models.
    """
    grid = rank_grid(n_items)
    if name == "uniform":
        weight = grid.size.astype(np.float64)
    elif name == "log":
        stop = (grid.start + grid.size).astype(np.float64)
        weight = np.log(stop / grid.start)
    else:
        raise UnknownNameError("prior", name, PRIORS)
    return np.asarray(weight / weight.sum())


@lru_cache(maxsize=512)
def corrected_values(
    metric: RankMetric,
    method: str,
    n_negatives: int,
    n_items: int,
    *,
    replacement: bool = False,
    gamma: float = 0.01,
    prior: str = "uniform",
) -> Float:
    """The corrected values of the sampled ranks 1 to n + 1."""
    if method == "uncorrected":
        return values_by_rank(metric, n_negatives + 1)
    if method == "rank":
        scaled_ranks = 1 + np.arange(n_negatives + 1) * (n_items - 1) / n_negatives
        values = values_by_rank(metric, n_items)
        return np.asarray(values[np.clip(np.round(scaled_ranks).astype(np.int64), 1, n_items) - 1])
    table = chances(n_negatives, n_items, replacement=replacement)
    truth, weight = binned_values(metric, n_items), rank_prior(prior, n_items)
    if method == "cls":
        return _monotone_least_squares(table, truth, weight)
    if method == "bv":
        return _bias_variance_solution(table, truth, weight, gamma)
    raise UnknownNameError("correction", method, ("uncorrected", "rank", "cls", "bv"))


def _monotone_least_squares(table: Float, truth: Float, weight: Float) -> Float:
    """Least squares with values that fall (or rise, like the metric) with the sampled rank."""
    from scipy.optimize import nnls

    root = np.sqrt(weight)[:, None]
    lowest = float(truth.min())
    rising = bool(truth[-1] > truth[0])
    # A monotone sequence is a sum of steps of non-negative height: value(j) = sum of the steps from j on.
    steps = np.cumsum(table, axis=1) if not rising else np.cumsum(table[:, ::-1], axis=1)[:, ::-1]
    heights, _ = nnls(root * steps, (root[:, 0]) * (truth - lowest), maxiter=100 * table.shape[1])
    summed = np.cumsum(heights[::-1])[::-1] if not rising else np.cumsum(heights)
    return np.asarray(summed + lowest)


def _bias_variance_solution(table: Float, truth: Float, weight: Float, gamma: float) -> Float:
    if not 0 < gamma <= 1:
        raise InputError(f"gamma={gamma!r} is no trade-off.", hint="Use a value above 0 and up to 1.")
    product = table.T @ (weight[:, None] * table)
    margin = weight @ table
    system = (1 - gamma) * product + gamma * np.diag(margin)
    # Sampled ranks that hardly ever occur make the system singular; a small ridge solves it anyway.
    system += 1e-12 * np.eye(len(system)) * np.trace(system) / len(system)
    return np.asarray(np.linalg.solve(system, table.T @ (weight * truth)))
