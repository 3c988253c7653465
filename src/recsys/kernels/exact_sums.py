"""Sums without rounding, so that a mean does not depend on the order, the shards or the machine; and powers.

A float64 is a whole multiple of 2^-1074. Values are cut into slices of so few bits that the sum of a slice
over all values is exact in float64, and the sums of the slices are added as Python integers.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np

from recsys.errors import InputError
from recsys.kernels.native_backend import sum_slices
from recsys.records.arrays import Float

_BLOCK_ROWS = 1 << 22
_MAX_EXPONENT = 990
_MIN_EXPONENT = -990
_DIGITS = 50
_FEW = 8  # values; Python adds them faster than NumPy cuts them


def exact_sum(values: Float, *, within: float | None = None) -> Fraction:
    """Return the exact sum of finite values; `within` is a bound on their magnitude, if it is known.

    Raises:
        InputError: a value is infinite or NaN.

    >>> float(exact_sum(np.array([1e16, 1.0, -1e16])))
    1.0
    """
    total = Fraction(0)
    for start in range(0, len(values), _BLOCK_ROWS):
        total += _sum_block(values[start : start + _BLOCK_ROWS], within)
    return total


def exact_mean(values: Float, *, within: float | None = None) -> float:
    """Return the correctly rounded mean; NaN for no values."""
    return float(exact_sum(values, within=within) / len(values)) if len(values) else math.nan


def _sum_block(values: Float, within: float | None) -> Fraction:
    largest = float(max(values.max(), -values.min())) if within is None else within
    if not math.isfinite(largest):
        raise InputError(
            f"a value to be averaged is {largest:g}, not a finite number.",
            hint="Use numbers whose sum stays below 1.8e308.",
        )
    exponent = math.frexp(largest)[1]
    if len(values) <= _FEW or exponent > _MAX_EXPONENT:
        return sum(map(Fraction, values.tolist()), Fraction(0))
    if largest and exponent > _MIN_EXPONENT + 60:
        # Two slices hold every bit of the values of most metrics.
        sums = sum_slices(values, math.ldexp(1.5, exponent + 22), math.ldexp(1.5, exponent - 8))
        if sums is not None and not sums[2]:
            high, low = int(math.ldexp(sums[0], 30 - exponent)), int(math.ldexp(sums[1], 60 - exponent))
            return Fraction((high << 30) + low) / Fraction(2) ** (60 - exponent)
    total = unit = 0
    rest, head = values, np.empty_like(values)
    while largest and exponent > _MIN_EXPONENT:
        # A multiple of 2^(exponent-30) below 2^exponent: 2^22 of them still add up within 53 bits.
        shift = math.ldexp(1.5, exponent + 22)
        np.add(rest, shift, out=head)
        np.subtract(head, shift, out=head)
        unit = 30 - exponent
        total = (total << 30) + int(math.ldexp(float(head.sum()), unit))
        rest = np.subtract(rest, head, out=None if rest is values else rest)
        if not rest.any():
            return Fraction(total) / (Fraction(2) ** unit)
        exponent -= 30  # the rest lies within half a unit of this slice
    high_sum = Fraction(total) / (Fraction(2) ** unit)
    return sum(map(Fraction, rest[rest != 0].tolist()), high_sum)


@lru_cache(maxsize=64)
def geometric_weights(p: float, places: int) -> Float:
    """Return p^0, p^1, … p^(places-1), correctly rounded; zero once below the smallest float."""
    out = np.zeros(places)
    with localcontext() as context:
        context.prec = _DIGITS
        power, step = Decimal(1), Decimal(p)
        for place in range(places):
            out[place] = float(power)
            if out[place] == 0.0:
                break
            power *= step
    out.setflags(write=False)
    return out
