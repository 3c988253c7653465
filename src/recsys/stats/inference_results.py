"""What the statistics room hands back: intervals, results of tests; and the t distribution behind both."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal

from recsys.errors import InputError, UnknownNameError

Alternative = Literal["two-sided", "greater", "less"]
ALTERNATIVES = ("two-sided", "greater", "less")


def check_alternative(alternative: str) -> None:
    """Refuse an unknown direction of a test."""
    if alternative not in ALTERNATIVES:
        raise UnknownNameError("alternative", alternative, ALTERNATIVES)


def is_number(value: object) -> bool:
    """Whether it is one real number, of Python or NumPy."""
    return isinstance(value, Real)


def is_whole(value: object) -> bool:
    """Whether it is one whole number, of Python or NumPy."""
    return isinstance(value, Integral)


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that is no probability (95 instead of 0.95)."""
    if not (is_number(confidence) and 0.0 < confidence < 1.0):
        raise InputError(f"confidence must lie between 0 and 1, got {confidence!r}.", hint="Try 0.95.")


@dataclass(frozen=True)
class Interval:
    """An interval (one end infinite for a one-sided test) and how it was made."""

    low: float
    high: float
    confidence: float
    method: str

    def __contains__(self, value: object) -> bool:
        return isinstance(value, Real) and self.low <= float(value) <= self.high


@dataclass(frozen=True)
class Estimate:
    """A value with its standard error and interval; `notes` say what it estimates where that is not plain."""

    value: float
    standard_error: float
    interval: Interval
    n: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TestResult:
    """One test: what was seen, how sure one can be, and what to keep in mind."""

    method: str
    difference: float
    statistic: float
    p_value: float
    n: int
    alternative: str = "two-sided"
    interval: Interval | None = None
    df: float | None = None
    notes: tuple[str, ...] = ()

    # The name starts with "Test", which a test collector would otherwise pick up.
    __test__ = False


def t_of(gap: float, error: float) -> float:
    """A gap in standard errors: infinite without any spread, NaN where nothing can be said."""
    if error > 0:
        return gap / error
    return math.copysign(math.inf, gap) if error == 0 and gap != 0 else math.nan


def flat_p(df: float) -> float:
    """Two-sided p of df + 1 units that all differ by the same.

    They have no spread to measure the difference by, so t is not defined and only their signs speak: of all
    2^n ways to flip them, two are as far from zero.

    >>> flat_p(1), flat_p(9)
    (0.5, 0.001953125)
    """
    return float(2.0**-df)


def t_tail(t: float, df: float, alternative: Alternative = "two-sided") -> float:
    """p-value of a t statistic; of an infinite one (no spread at all) that of sign flips."""
    from scipy.special import ndtr, stdtr

    if math.isnan(t) or df <= 0:
        return math.nan
    if math.isinf(t):
        if alternative == "two-sided":
            return flat_p(df)
        return flat_p(df) / 2.0 if (t > 0) == (alternative == "greater") else 1.0

    def below(value: float) -> float:
        return float(ndtr(value) if math.isinf(df) else stdtr(df, value))

    if alternative == "two-sided":
        return min(1.0, 2.0 * below(-abs(t)))
    return below(-t if alternative == "greater" else t)


def t_interval(
    estimate: float, error: float, df: float, confidence: float, alternative: Alternative = "two-sided"
) -> Interval:
    """Estimate plus and minus a t quantile (a normal one for infinite df) of standard errors.

    Without any spread it is a point, but only from as many units on as sign flips need to say so.
    """
    from scipy.special import ndtri, stdtrit

    check_confidence(confidence)
    method = "normal" if math.isinf(df) else "t"
    if df <= 0 or math.isnan(error):
        return Interval(-math.inf, math.inf, confidence, method)
    tail = (1.0 - confidence) / (2.0 if alternative == "two-sided" else 1.0)
    if error == 0 and flat_p(df) / 2.0 > tail:
        return Interval(-math.inf, math.inf, confidence, method)
    reach = float(ndtri(1.0 - tail) if math.isinf(df) else stdtrit(df, 1.0 - tail)) * error
    low = -math.inf if alternative == "less" else estimate - reach
    high = math.inf if alternative == "greater" else estimate + reach
    return Interval(low, high, confidence, method)


def lift_of(
    value: float, base: float, covariance: tuple[float, float, float], df: float, confidence: float
) -> tuple[float, Interval]:
    """Lift of a value over a base above 0, with Fieller's interval: every lift that a t-test does not reject.

    It leaves out 0 exactly when the t-test of the difference rejects, and is unbounded where the base itself
    cannot be told from 0. `covariance` holds the variances of value and base and, between them, theirs.
    """
    from scipy.special import ndtri, stdtrit

    check_confidence(confidence)
    spread, shared, base_spread = covariance
    if not base > 0:
        return math.nan, Interval(math.nan, math.nan, confidence, "Fieller")
    lift = value / base - 1.0
    if not df > 0 or math.isnan(spread + shared + base_spread):
        return lift, Interval(-math.inf, math.inf, confidence, "Fieller")
    tail = (1.0 - confidence) / 2.0
    square = float(ndtri(1.0 - tail) if math.isinf(df) else stdtrit(df, 1.0 - tail)) ** 2
    if _flat(spread, shared, base_spread) and flat_p(df) / 2.0 > tail:
        return lift, Interval(-math.inf, math.inf, confidence, "Fieller")
    a = base**2 - square * base_spread
    b = value * base - square * shared
    c = value**2 - square * spread
    if a <= 0:
        return lift, Interval(-math.inf, math.inf, confidence, "Fieller")
    reach = math.sqrt(max(b * b - a * c, 0.0))
    return lift, Interval((b - reach) / a - 1.0, (b + reach) / a - 1.0, confidence, "Fieller")


def _flat(spread: float, shared: float, base_spread: float) -> bool:
    """Whether the difference of value and base does not vary, but for rounding."""
    return spread - 2.0 * shared + base_spread <= 1e-12 * (spread + base_spread)
