"""Sums without rounding, so that a mean is the same whatever the order, the shards or the machine.

A float64 is a whole number of 2^-1074. Values are cut into slices of few enough bits that adding a
whole column of a slice is exact in float64, and the slice totals are added as Python integers.
"""

from __future__ import annotations

import math
from fractions import Fraction

from recsys.types import Float

_SLICE_ROWS = 1 << 22


def exact_sum(values: Float) -> Fraction:
    """The sum of finite values, exactly.

    >>> import numpy as np
    >>> float(exact_sum(np.array([1e16, 1.0, -1e16])))
    1.0
    """
    total = Fraction(0)
    for start in range(0, len(values), _SLICE_ROWS):
        total += _sum_block(values[start : start + _SLICE_ROWS])
    return total


def exact_mean(values: Float) -> float:
    """The mean, correctly rounded; NaN of nothing."""
    return float(exact_sum(values) / len(values)) if len(values) else math.nan


def _sum_block(values: Float) -> Fraction:
    total = Fraction(0)
    rest = values
    while len(rest):
        top = float(max(rest.max(), -rest.min()))
        if top == 0.0:
            break
        exponent = math.frexp(top)[1]
        if exponent < -960 or exponent > 990:
            return total + sum(map(Fraction, rest.tolist()), Fraction(0))
        # A multiple of 2^(exponent-30) below 2^exponent: 2^22 of them still add up within 53 bits.
        shift = math.ldexp(1.5, exponent + 22)
        head = (rest + shift) - shift
        total += Fraction(float(head.sum()))
        rest = rest - head
        if not rest.any():
            break
    return total
