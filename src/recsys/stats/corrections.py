"""Adjusted p-values for a stated family: compare each with the level for the whole family.

All are monotone (a smaller p never gets a larger adjusted one), capped at 1 and in the given order. NaN
(nothing to test) stays NaN and is not counted. The resampled max-T correction is in `omnibus_tests`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError, UnknownNameError
from recsys.types import Float

CORRECTIONS = ("none", "bonferroni", "holm", "hochberg", "bh", "by")


def adjust(p_values: npt.ArrayLike, method: str = "holm") -> Float:
    """Adjusted p-values: Bonferroni, Holm and Hochberg bound any false rejection, BH and BY their share.

    >>> adjust([0.010, 0.011, 0.012], "holm").round(3).tolist()
    [0.03, 0.03, 0.03]
    """
    if method not in CORRECTIONS:
        hint = "max-T needs the draws: compare(..., correction='max-t')." if method == "max-t" else ""
        raise UnknownNameError("correction of p-values", method, CORRECTIONS, hint=hint)
    try:
        p = np.asarray(p_values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"p-values must be numbers: {error}.", hint="Such as [0.01, 0.2].") from None
    if p.ndim != 1:
        raise InputError(f"p-values must be one-dimensional, got shape {p.shape}.")
    outside = (p < 0) | (p > 1)
    if outside.any():
        raise InputError(
            f"a p-value lies outside 0 to 1: {p[outside][0]}.", row=int(np.flatnonzero(outside)[0])
        )
    adjusted = p.copy()
    tested = np.flatnonzero(~np.isnan(p))
    adjusted[tested] = _adjust(p[tested], method)
    return adjusted


def _adjust(p: Float, method: str) -> Float:
    m = len(p)
    if method == "none" or m == 0:
        return p
    order = np.argsort(p, kind="stable")
    ordered = p[order]
    rank = np.arange(1, m + 1)
    if method == "bonferroni":
        steps = ordered * m
    elif method == "holm":
        steps = np.maximum.accumulate(ordered * (m - rank + 1))
    elif method == "hochberg":
        steps = _running_minimum_from_end(ordered * (m - rank + 1))
    else:
        harmonic = float((1.0 / rank).sum()) if method == "by" else 1.0
        steps = _running_minimum_from_end(ordered * (m / rank) * harmonic)
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def _running_minimum_from_end(steps: Float) -> Float:
    """Running minimum from the largest p down: the step-up rule."""
    return np.minimum.accumulate(steps[::-1])[::-1]
