"""Corrected metrics: what each sampled rank should count for, so that the mean is right for the catalogue.

`cls` makes the expected value as close to the truth as it can be over all true ranks, under the constraint
that a better sampled rank never counts less. `bv` trades some of that for less variance: gamma = 0 is plain
least squares, gamma = 1 the posterior mean of the truth. Krichene & Rendle, sections 5.1 to 5.3.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from recsys.errors import InputError, UnknownNameError
from recsys.stats.sampled.rank_chances import binned_value, chances, grid_of
from recsys.stats.sampled.rank_values import RankMetric, value_of_rank
from recsys.types import Float

PRIORS = ("uniform", "log")


def prior_of(name: str, n_items: int) -> Float:
    """How likely each bin of true ranks is thought to be before anything is seen.

    "uniform": every rank alike, as in the paper. "log": every power of ten alike, as good models are.
    """
    grid = grid_of(n_items)
    if name == "uniform":
        weight = grid.size.astype(np.float64)
    elif name == "log":
        stop = (grid.start + grid.size).astype(np.float64)
        weight = np.log(stop / grid.start)
    else:
        raise UnknownNameError("prior", name, PRIORS)
    return np.asarray(weight / weight.sum())


@lru_cache(maxsize=512)
def corrected(
    metric: RankMetric,
    method: str,
    n_negatives: int,
    n_items: int,
    *,
    replacement: bool = False,
    gamma: float = 0.01,
    prior: str = "uniform",
) -> Float:
    """The value of sampled ranks 1 to n + 1 under a method."""
    if method == "uncorrected":
        return value_of_rank(metric, n_negatives + 1)
    if method == "rank":
        places = 1 + np.arange(n_negatives + 1) * (n_items - 1) / n_negatives
        values = value_of_rank(metric, n_items)
        return np.asarray(values[np.clip(np.round(places).astype(np.int64), 1, n_items) - 1])
    table = chances(n_negatives, n_items, replacement=replacement)
    wanted, weight = binned_value(metric, n_items), prior_of(prior, n_items)
    if method == "cls":
        return _monotone(table, wanted, weight)
    if method == "bv":
        return _balanced(table, wanted, weight, gamma)
    raise UnknownNameError("correction", method, ("uncorrected", "rank", "cls", "bv"))


def _monotone(table: Float, wanted: Float, weight: Float) -> Float:
    """Least squares whose solution falls (or rises, with the metric) with the sampled rank."""
    from scipy.optimize import nnls

    root = np.sqrt(weight)[:, None]
    lowest = float(wanted.min())
    rising = bool(wanted[-1] > wanted[0])
    # A monotone sequence is a sum of steps of non-negative height: value(j) = sum of steps from j on.
    steps = np.cumsum(table, axis=1) if not rising else np.cumsum(table[:, ::-1], axis=1)[:, ::-1]
    heights, _ = nnls(root * steps, (root[:, 0]) * (wanted - lowest), maxiter=100 * table.shape[1])
    summed = np.cumsum(heights[::-1])[::-1] if not rising else np.cumsum(heights)
    return np.asarray(summed + lowest)


def _balanced(table: Float, wanted: Float, weight: Float, gamma: float) -> Float:
    if not 0 < gamma <= 1:
        raise InputError(f"gamma={gamma!r} is no trade-off.", hint="Use a value above 0 and up to 1.")
    product = table.T @ (weight[:, None] * table)
    margin = weight @ table
    system = (1 - gamma) * product + gamma * np.diag(margin)
    # Sampled ranks that hardly ever occur make the system singular: they count for what their neighbours do.
    system += 1e-12 * np.eye(len(system)) * np.trace(system) / len(system)
    return np.asarray(np.linalg.solve(system, table.T @ (weight * wanted)))
