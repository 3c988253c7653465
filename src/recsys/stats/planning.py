"""Plan a comparison: how many users, how small an effect, how much power."""

from __future__ import annotations

import math

from recsys.errors import InputError
from recsys.stats.inference_results import Alternative, check_alternative


def power(
    effect: float, n: int, *, sd: float = 1.0, alpha: float = 0.05, alternative: Alternative = "two-sided"
) -> float:
    """Probability that a paired t-test with n users detects a mean difference of `effect`.

    >>> round(power(0.2, 199), 3)
    0.802
    """
    _check_arguments(alpha, sd, n, alternative)
    from scipy.special import stdtrit

    if math.isnan(effect):
        raise InputError("the effect is NaN.")
    df = n - 1
    shift = effect / sd * math.sqrt(n)
    if alternative == "two-sided":
        reach = -float(stdtrit(df, alpha / 2.0))
        return min(1.0, _upper_tail(df, shift, reach) + _upper_tail(df, -shift, reach))
    reach = -float(stdtrit(df, alpha))
    return _upper_tail(df, shift if alternative == "greater" else -shift, reach)


def _upper_tail(df: int, shift: float, reach: float) -> float:
    """Probability that a t statistic with noncentrality `shift` lies above `reach`."""
    from scipy.special import nctdtr, ndtr

    p = float(nctdtr(df, -shift, -reach))
    # Far out in a tail the noncentral t is NaN; the normal distribution is accurate enough there.
    return p if not math.isnan(p) else float(ndtr(shift - reach))


def minimal_effect(
    n: int,
    *,
    sd: float = 1.0,
    alpha: float = 0.05,
    power: float = 0.8,
    alternative: Alternative = "two-sided",
) -> float:
    """The smallest mean difference that n users detect with the given power."""
    from scipy.optimize import brentq

    _check_arguments(alpha, sd, n, alternative)
    _check_power(power, alpha)
    sign = -1.0 if alternative == "less" else 1.0

    def lacking(effect: float) -> float:
        return _power(sign * effect, n, alpha, alternative) - power

    high = 1.0 / math.sqrt(n)
    while lacking(high) < 0:
        high *= 2.0
    return float(brentq(lacking, 0.0, high, xtol=1e-14, rtol=1e-13)) * sd


def users_needed(
    effect: float,
    *,
    sd: float = 1.0,
    alpha: float = 0.05,
    power: float = 0.8,
    alternative: Alternative = "two-sided",
) -> int:
    """The fewest users that detect a mean difference of `effect` with the given power.

    >>> users_needed(0.2)
    199
    """
    _check_arguments(alpha, sd, 2, alternative)
    _check_power(power, alpha)
    wrong_way = (
        effect == 0 or (alternative == "greater" and effect < 0) or (alternative == "less" and effect > 0)
    )
    if wrong_way or not math.isfinite(effect):
        raise InputError(
            f"no number of users finds an effect of {effect!r} with alternative {alternative!r}."
        )
    low, high = 1, 2
    while _power(effect / sd, high, alpha, alternative) < power:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        if _power(effect / sd, middle, alpha, alternative) < power:
            low = middle
        else:
            high = middle
    return high


# `power` is also a keyword of the two functions above, so they call the function by this name.
def _power(effect: float, n: int, alpha: float, alternative: Alternative) -> float:
    return power(effect, n, alpha=alpha, alternative=alternative)


def _check_arguments(alpha: float, sd: float, n: int, alternative: str) -> None:
    check_alternative(alternative)
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie between 0 and 1, got {alpha!r}.")
    if not (sd > 0 and math.isfinite(sd)):
        raise InputError(f"the standard deviation must be positive, got {sd!r}.")
    if n < 2:
        raise InputError(f"at least 2 users are needed, got {n}.")


def _check_power(power: float, alpha: float) -> None:
    if not alpha < power < 1:
        raise InputError(f"power must lie between alpha ({alpha}) and 1, got {power!r}.")
