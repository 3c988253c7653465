"""Discounts and gains, each correctly rounded, so that no value depends on a machine's log2 or pow.

log2(n) is a pair of float64 (about 100 bits): even n from n/2, odd n from its neighbours
by log2 n = (log2(n-1) + log2(n+1))/2 + atanh(1/(2n^2-1))/ln 2, one octave at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Any

import numpy as np

from recsys.conventions.decisions import Discount, Gain
from recsys.errors import ConventionError, Phrase
from recsys.records.arrays import Float

_FIRST_OCTAVE = 6
_DIGITS = 50
_LARGEST_POWER = 1000


def discount_weights(discount: Discount, places: int) -> Float:
    """Return the weight of places 1 … `places`, at index place - 1."""
    if isinstance(discount, str):
        return _named_tables(discount, _power_above(places))[1][:places]
    if callable(discount):
        return _check_values(discount(np.arange(1, places + 1)), places, discount)
    weights = np.asarray(discount, dtype=np.float64)
    return np.concatenate([weights, np.zeros(max(0, places - len(weights)))])[:places]


def discount_divisors(discount: str, places: int) -> Float:
    """Return what a discount with a name divides the gains of places 1 … `places` by."""
    return _named_tables(discount, _power_above(places))[0][:places]


def running_weights(discount: Discount, places: int) -> Float:
    """Return 0, then the sums of the weights of the first 1, 2, … `places` places, added in that order."""
    if isinstance(discount, str):
        return _running_named(discount, _power_above(places))[: places + 1]
    return np.concatenate([[0.0], np.cumsum(discount_weights(discount, places))])


@lru_cache(maxsize=32)
def _running_named(discount: str, power: int) -> Float:
    return _read_only(np.concatenate([[0.0], np.cumsum(_named_tables(discount, power)[1])]))


@lru_cache(maxsize=96)
def _named_tables(discount: str, power: int) -> tuple[Float, Float]:
    """Return the divisors of 2^power - 1 places or more under a named discount, and 1 / divisor."""
    if discount == "reciprocal":
        divisors = np.arange(1.0, (1 << power) + 1)
    else:
        divisors = _rounded_log2(power)
        if discount == "log2_max2":
            divisors = np.concatenate([[1.0], divisors])
    return _read_only(divisors), _read_only(1.0 / divisors)


def _power_above(places: int) -> int:
    """Return the power of a table: it has 2^power entries, so that few are made and each is reused."""
    return max(_FIRST_OCTAVE, (places + 1).bit_length())


def gains(gain: Gain, grades: Float) -> Float:
    """Return the gain of each grade.

    Raises:
        ConventionError: a gain mapping lacks a grade, a gain function returns wrong values, or 2^grade
            overflows.

    >>> gains("exp2", np.array([0.0, 1.0, 3.0])).tolist()
    [0.0, 1.0, 7.0]
    """
    if gain == "grade":
        return grades
    if gain == "binary":
        return np.ones(len(grades))
    whole = np.floor(grades)
    if isinstance(gain, str) and (whole == grades).all() and whole.max(initial=0.0) < _LARGEST_POWER:
        return np.ldexp(1.0, whole.astype(np.int64) + (gain == "exp2_next")) - 1.0
    distinct, back = np.unique(grades, return_inverse=True)
    if isinstance(gain, str):
        values = np.array([_power_of_two(g + (gain == "exp2_next")) - 1.0 for g in distinct.tolist()])
    elif callable(gain):
        values = _check_values(gain(distinct), len(distinct), gain)
    else:
        table = dict(gain)
        missing = [g for g in distinct.tolist() if g not in table]
        if missing:
            raise ConventionError(
                f"the gain table has no entry for grade {missing[0]:g}; it knows {sorted(table)}.",
                hint="Add the grade to the gain mapping.",
            )
        values = np.array([table[g] for g in distinct.tolist()])
    return np.asarray(values[back], dtype=np.float64)


def graded_shares(grades: Float, least: float, highest: float | None) -> Float:
    """Return how far each grade is from the least to the highest one, from 0 to 1; 1 without a highest.

    Raises:
        ConventionError: the highest grade is not above the least one.

    >>> graded_shares(np.array([1.0, 2.0, 9.0]), 0.0, 4.0).tolist()
    [0.25, 0.5, 1.0]
    """
    top = 1.0 if highest is None else highest
    if not top > least and len(grades):
        raise ConventionError(
            f"the highest grade, {top:g}, is not above min_grade={least:g}.",
            hint="Lower min_grade, or set max_grade.",
        )
    return np.asarray((np.clip(grades, least, top) - least) / (top - least if top > least else 1.0))


def _power_of_two(exponent: float) -> float:
    if exponent == int(exponent):
        if exponent > _LARGEST_POWER:
            hint = Phrase("Use {gain='grade'}.")
            raise ConventionError(f"gain exp2 of grade {exponent:g} overflows.", hint=hint)
        return float(2.0 ** int(exponent))
    with localcontext() as context:
        context.prec = _DIGITS
        return float(Decimal(2) ** Decimal(exponent))


def _check_values(answer: Any, size: int, source: Callable[..., Any]) -> Float:
    """Return the values a user's function returned, or raise an error if they cannot be gains or weights."""
    try:
        values = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.zeros(0)
    if values.shape != (size,) or not np.isfinite(values).all() or (values < 0).any():
        raise ConventionError(
            f"{getattr(source, '__name__', source)!r} must return {size} finite numbers of at least 0; "
            f"it returned {type(answer).__name__} of shape {np.shape(values)}.",
            hint="Write it for a NumPy array: lambda places: 1 / places.",
        )
    return values.astype(np.float64, copy=False)


@lru_cache(maxsize=32)
def _log2_table(power: int) -> tuple[Float, Float]:
    """Return log2(n) for n = 0 … 2^power (0 unused) as high + low."""
    if power <= _FIRST_OCTAVE:
        exact = [Decimal(0)] + [_log2_decimal(n) for n in range(1, (1 << _FIRST_OCTAVE) + 1)]
        high = np.array([float(x) for x in exact])
        low = np.array([float(x - Decimal(h)) for x, h in zip(exact, high.tolist(), strict=True)])
        return high, low
    below_high, below_low = _log2_table(power - 1)
    half = 1 << (power - 1)
    high, low = np.zeros(2 * half + 1), np.zeros(2 * half + 1)
    high[: half + 1], low[: half + 1] = below_high, below_low
    whole, rest = _two_sum(below_high[half // 2 + 1 :], 1.0)
    high[half + 2 :: 2], low[half + 2 :: 2] = _two_sum(whole, rest + below_low[half // 2 + 1 :])
    odd = np.arange(half + 1, 2 * half, 2)
    total, carry = _two_sum(high[odd - 1], high[odd + 1])
    carry = carry + (low[odd - 1] + low[odd + 1])
    lift_high, lift_low = _atanh_log2e(2.0 * odd.astype(np.float64) ** 2 - 1.0)
    whole, rest = _two_sum(total / 2, lift_high)
    high[odd], low[odd] = _two_sum(whole, rest + (carry / 2 + lift_low))
    return high, low


def _atanh_log2e(inverse: Float) -> tuple[Float, Float]:
    """Return atanh(1/d)/ln 2 for large whole d."""
    t = 1.0 / inverse
    product, error = _two_product(t, inverse)
    t_low = ((1.0 - product) - error) / inverse
    t_low = t_low + t * t * t / 3 + t * t * t * t * t / 5
    with localcontext() as context:
        context.prec = _DIGITS
        exact = 1 / Decimal(2).ln()
        log2e, log2e_low = float(exact), float(exact - Decimal(float(exact)))
    high, low = _two_product(t, np.float64(log2e))
    return high, low + (t * log2e_low + t_low * log2e)


def _rounded_log2(power: int) -> Float:
    """Return log2(n), correctly rounded, for n = 2 … 2^power."""
    high, low = (part[2:] for part in _log2_table(power))
    # The pair is accurate to about 2^-95; where that could still round either way, use Decimal.
    slack = np.ldexp(high, -88)
    out = high + low
    for at in np.flatnonzero((high + (low - slack)) != (high + (low + slack))).tolist():
        out[at] = float(_log2_decimal(2 + at))
    return np.asarray(out)


def _log2_decimal(n: int) -> Decimal:
    with localcontext() as context:
        context.prec = _DIGITS
        return Decimal(n).ln() / Decimal(2).ln()


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the rounded sum and its rounding error (Knuth)."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def _two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the rounded product and its rounding error (Dekker)."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _split(a: Any) -> tuple[Any, Any]:
    """Return a float64 as the sum of two numbers of at most 26 bits (Veltkamp)."""
    scaled = a * 134217729.0
    high = scaled - (scaled - a)
    return high, a - high


def _read_only(weights: Float) -> Float:
    weights.setflags(write=False)
    return weights
