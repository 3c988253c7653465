"""Looking at an experiment while it runs: always-valid p-values (mSPRT), group-sequential boundaries.

The mSPRT allows looks at any time; a boundary spends the error rate over the planned looks and needs fewer
units. Both rest on the normal approximation of the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from recsys.errors import InputError, UnknownNameError
from recsys.stats.inference_results import Interval
from recsys.types import Float

_GRID = 801


def _obrien_fleming(fraction: float, alpha: float) -> float:
    from scipy.special import ndtr, ndtri

    return float(4.0 * ndtr(ndtri(alpha / 4.0) / math.sqrt(fraction)))


def _pocock(fraction: float, alpha: float) -> float:
    return alpha * math.log(1.0 + (math.e - 1.0) * fraction)


def _linear(fraction: float, alpha: float) -> float:
    return alpha * fraction


SPENDING: dict[str, Callable[[float, float], float]] = {
    "obrien-fleming": _obrien_fleming,
    "pocock": _pocock,
    "linear": _linear,
}


def boundaries(
    fractions: Sequence[float], *, alpha: float = 0.05, spending: str = "obrien-fleming"
) -> tuple[float, ...]:
    """Two-sided boundary of |z| for looks at these fractions of the planned information (Lan and DeMets)."""
    if spending not in SPENDING:
        raise UnknownNameError("spending function", spending, SPENDING)
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie between 0 and 1, got {alpha!r}.")
    times = [float(f) for f in fractions]
    rising = all(b > a for a, b in zip([0.0, *times], times, strict=False))
    if not times or not rising or times[-1] > 1.0 + 1e-12:
        raise InputError(f"fractions must rise from above 0 to at most 1, got {times}.")
    spent = [SPENDING[spending](min(f, 1.0), alpha) for f in times]
    bounds: list[float] = []
    points: Float = np.zeros(1)
    weights: Float = np.ones(1)
    for j, time in enumerate(times):
        step = math.sqrt(time - (times[j - 1] if j else 0.0))
        target = spent[j] - (spent[j - 1] if j else 0.0)
        bound = _bound(points, weights, step, target)
        bounds.append(bound / math.sqrt(time))
        points, weights = _advance(points, weights, step, bound)
    return tuple(bounds)


def _bound(points: Float, weights: Float, step: float, target: float) -> float:
    """The level that the random walk crosses, on either side, with probability `target` in this step."""
    from scipy.optimize import brentq
    from scipy.special import ndtr

    def excess(level: float) -> float:
        crossing = ndtr((points - level) / step) + ndtr((-points - level) / step)
        return float(weights @ crossing) - target

    return float(brentq(excess, 0.0, 40.0, xtol=1e-12))


def _advance(points: Float, weights: Float, step: float, bound: float) -> tuple[Float, Float]:
    """Grid and Simpson weights of the walk's density after this step, inside the bound."""
    grid = np.linspace(-bound, bound, _GRID)
    density = (
        np.exp(-0.5 * ((grid[:, None] - points) / step) ** 2) @ weights / (step * math.sqrt(2.0 * math.pi))
    )
    simpson = np.ones(_GRID)
    simpson[1:-1:2], simpson[2:-1:2] = 4.0, 2.0
    return grid, density * simpson * (grid[1] - grid[0]) / 3.0


def msprt(
    difference: float, variance: float, scale: float, *, confidence: float = 0.95
) -> tuple[float, Interval]:
    """Always-valid p-value and interval of a difference with this variance; `scale` is the expected effect.

    The scale must be fixed beforehand; a wrong one makes the interval wider but not invalid.
    """
    if not (variance > 0 and scale > 0):
        raise InputError(f"mSPRT needs a positive variance and scale, got {variance!r} and {scale!r}.")
    prior = scale**2
    log_ratio = 0.5 * math.log(variance / (variance + prior)) + prior * difference**2 / (
        2.0 * variance * (variance + prior)
    )
    p = min(1.0, math.exp(-log_ratio)) if log_ratio > -700 else 1.0
    alpha = 1.0 - confidence
    reach = math.sqrt(
        variance
        * (variance + prior)
        / prior
        * (math.log((variance + prior) / variance) - 2.0 * math.log(alpha))
    )
    return p, Interval(difference - reach, difference + reach, confidence, "mSPRT (asymptotic)")
