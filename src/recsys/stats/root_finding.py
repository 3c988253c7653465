"""Where a function that is nearly a straight line crosses zero."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

_DIGITS = 1e-12
_MOST_SECANTS, _MOST_STEPS = 9, 50


def crossing(excess: Callable[[float], float], near: float, far: float, end: float) -> float:
    """Where `excess` is zero between `near` and `end`; the end if it has the same sign everywhere.

    `far` is a guess. Secants take few steps on a line; where the function has steps or bends, Brent's method
    follows.
    """
    from scipy.optimize import brentq

    excess = cache(excess)
    inside = min if end > near else max
    one, other = near, inside(far, end)
    width, moved = abs(other - one), math.inf
    for _ in range(_MOST_SECANTS):
        rise = excess(other) - excess(one)
        place = other - excess(other) * (other - one) / rise if rise else math.nan
        if not min(near, end) <= place <= max(near, end):
            break
        step = abs(place - other)
        # The next secant would move by about the product of the last two steps.
        if step * moved <= 0.01 * _DIGITS * width * width and step <= 1e-6 * width:
            return place
        one, other, moved = other, place, step
    far, step = inside(far, end), 2.0 * (far - near)
    for _ in range(_MOST_STEPS):
        if (excess(far) > 0.0) != (excess(near) > 0.0) or far == end:
            reach = 0.0 if math.isinf(end) else 1e-17 * abs(end - near)
            xtol = reach or 1e-12 * abs(far - near)
            return float(brentq(excess, near, far, xtol=xtol + math.ulp(0.0), rtol=_DIGITS, maxiter=200))
        near, far, step = far, inside(far + step, end), 2.0 * step
    return end
