"""Sums without rounding, so that a mean is the same whatever the order, the shards or the machine.

A float64 is a whole number of 2^-1074. Values are cut into slices of few enough bits that adding a
whole column of a slice is exact in float64, and the slice totals are added as Python integers.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from recsys.kernels import sum_slices
from recsys.types import Float

_SLICE_ROWS = 1 << 22
_HIGHEST = 990
_LOWEST = -990


def exact_sum(values: Float, *, within: float | None = None) -> Fraction:
    """The sum of finite values, exactly; `within`: a bound on their size, where it is known.

    >>> float(exact_sum(np.array([1e16, 1.0, -1e16])))
    1.0
    """
    total = Fraction(0)
    for start in range(0, len(values), _SLICE_ROWS):
        total += _sum_block(values[start : start + _SLICE_ROWS], within)
    return total


def exact_mean(values: Float, *, within: float | None = None) -> float:
    """The mean, correctly rounded; NaN of nothing."""
    return float(exact_sum(values, within=within) / len(values)) if len(values) else math.nan


def _sum_block(values: Float, within: float | None) -> Fraction:
    total = 0
    top = float(max(values.max(), -values.min())) if within is None else within
    exponent = math.frexp(top)[1]
    if exponent > _HIGHEST:
        return sum(map(Fraction, values.tolist()), Fraction(0))
    quick = _two_slices(values, exponent) if top and exponent > _LOWEST + 60 else None
    if quick is not None:
        return quick
    rest, head = values, np.empty_like(values)
    unit = 0
    while top and exponent > _LOWEST:
        # A multiple of 2^(exponent-30) below 2^exponent: 2^22 of them still add up within 53 bits.
        shift = math.ldexp(1.5, exponent + 22)
        np.add(rest, shift, out=head)
        np.subtract(head, shift, out=head)
        unit = 30 - exponent
        total = (total << 30) + int(math.ldexp(float(head.sum()), unit))
        rest = np.subtract(rest, head, out=None if rest is values else rest)
        if not rest.any():
            return Fraction(total) / (Fraction(2) ** unit)
        exponent -= 30  # what is left lies within half a unit of the slice just taken
    done = Fraction(total) / (Fraction(2) ** unit)
    return sum(map(Fraction, rest[rest != 0].tolist()), done)


def _two_slices(values: Float, exponent: int) -> Fraction | None:
    """The sum where two slices hold every bit, as they do for most metrics; None where they do not."""
    found = sum_slices(values, math.ldexp(1.5, exponent + 22), math.ldexp(1.5, exponent - 8))
    if found is None or found[2]:
        return None
    high, low = int(math.ldexp(found[0], 30 - exponent)), int(math.ldexp(found[1], 60 - exponent))
    return Fraction((high << 30) + low) / Fraction(2) ** (60 - exponent)
