"""Intervals, estimates and test results: the t distribution behind them, and cautions.

A caution names a way in which a correctly computed number can mislead. It is a note on the result that is
also given as a typed Python warning.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal

from recsys.errors import InputError, StatisticsWarning, check_choice, warn
from recsys.records.checks import is_number
from recsys.records.facts import Note

Alternative = Literal["two-sided", "greater", "less"]
ALTERNATIVES = ("two-sided", "greater", "less")
Bounds = tuple[float, float]


def check_alternative(alternative: str) -> None:
    """Refuse an unknown direction of a test."""
    check_choice("alternative", alternative, ALTERNATIVES)


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that is not between 0 and 1 (95 instead of 0.95)."""
    _check_share("confidence", confidence, 0.95)


def check_alpha(alpha: float) -> None:
    """Refuse an error rate that is not between 0 and 1."""
    _check_share("alpha, the level of significance,", alpha, 0.05)


def _check_share(what: str, value: float, example: float) -> None:
    if not (is_number(value) and 0.0 < value < 1.0):
        raise InputError(f"{what} must be between 0 and 1, got {value!r}.", hint=f"Try {example}.")


@dataclass(frozen=True)
class Interval:
    """An interval (one end infinite for a one-sided test), its confidence and its method."""

    low: float
    high: float
    confidence: float
    method: str

    def __contains__(self, value: object) -> bool:
        return isinstance(value, Real) and self.low <= float(value) <= self.high

    @property
    def negative(self) -> Interval:
        """That of the opposite."""
        return replace(self, low=-self.high, high=-self.low)


@dataclass(frozen=True)
class Estimate:
    """A value with its standard error and interval; `notes` say what it estimates if that is not obvious."""

    value: float
    standard_error: float
    interval: Interval
    n: int
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class TestResult:
    """The result of one test: difference, statistic, p-value, interval, and notes on its validity."""

    method: str
    difference: float
    statistic: float
    p_value: float
    n: int
    alternative: str = "two-sided"
    interval: Interval | None = None
    df: float | None = None
    notes: tuple[Note, ...] = ()

    # The name starts with "Test", which a test collector would otherwise pick up.
    __test__ = False


def clip_interval(estimate: Estimate, bounds: tuple[float, float]) -> Estimate:
    """The estimate with its interval clipped to the bounds of the metric."""
    lowest, highest = bounds
    clipped = replace(
        estimate.interval,
        low=min(max(lowest, estimate.interval.low), highest),
        high=max(min(highest, estimate.interval.high), lowest),
    )
    return replace(estimate, interval=clipped)


def t_ratio(difference: float, error: float) -> float:
    """A difference in standard errors: infinite without any spread, NaN if undefined."""
    if error > 0:
        return difference / error
    return math.copysign(math.inf, difference) if error == 0 and difference != 0 else math.nan


def zero_spread_p(df: float) -> float:
    """Two-sided p-value of df + 1 units that all differ by the same amount.

    Without spread t is not defined, so the signs alone are tested: of all 2^n ways to flip them, two are as
    far from zero.

    >>> zero_spread_p(1), zero_spread_p(9)
    (0.5, 0.001953125)
    """
    return float(2.0**-df)


def t_tail(t: float, df: float, alternative: Alternative = "two-sided") -> float:
    """P-value of a t statistic; for an infinite one (no spread at all), that of sign flips."""
    from scipy.special import ndtr, stdtr

    if math.isnan(t) or df <= 0:
        return math.nan
    if math.isinf(t):
        if alternative == "two-sided":
            return zero_spread_p(df)
        return zero_spread_p(df) / 2.0 if (t > 0) == (alternative == "greater") else 1.0

    def below(value: float) -> float:
        return float(ndtr(value) if math.isinf(df) else stdtr(df, value))

    if alternative == "two-sided":
        return min(1.0, 2.0 * below(-abs(t)))
    return below(-t if alternative == "greater" else t)


def t_quantile(tail: float, df: float) -> float:
    """The value that a t distribution (the normal one for infinite df) exceeds with probability `tail`.

    The quantiles of an older SciPy have eleven right digits; a step of Newton's method adds the others.
    """
    from scipy.special import gammaln, ndtri, stdtr, stdtrit

    if math.isinf(df):
        return float(ndtri(1.0 - tail))
    found = -float(stdtrit(df, tail))
    if not math.isfinite(found):
        return math.inf if tail < 0.5 else -math.inf
    height = float(gammaln((df + 1.0) / 2.0) - gammaln(df / 2.0)) - 0.5 * math.log(df * math.pi)
    density = math.exp(height - (df + 1.0) / 2.0 * math.log1p(found * found / df))
    return found + (float(stdtr(df, -found)) - tail) / density if density > 0.0 else found


def t_interval(
    estimate: float, error: float, df: float, confidence: float, alternative: Alternative = "two-sided"
) -> Interval:
    """Estimate plus and minus a t quantile (a normal one for infinite df) of standard errors.

    Without any spread it is a point, if there are enough units for sign flips to reject; else infinite.
    """
    check_confidence(confidence)
    method = "normal" if math.isinf(df) else "t"
    if df <= 0 or math.isnan(error):
        return Interval(-math.inf, math.inf, confidence, method)
    tail = (1.0 - confidence) / (2.0 if alternative == "two-sided" else 1.0)
    if error == 0 and zero_spread_p(df) / 2.0 > tail:
        return Interval(-math.inf, math.inf, confidence, method)
    reach = t_quantile(tail, df) * error
    low = -math.inf if alternative == "less" else estimate - reach
    high = math.inf if alternative == "greater" else estimate + reach
    return Interval(low, high, confidence, method)


def fieller_lift(
    value: float,
    base: float,
    covariance: tuple[float, float, float],
    interval: Interval,
    least: float = -math.inf,
) -> tuple[float, Interval]:
    """Lift of a value over a positive base, with Fieller's interval.

    Each of its ends is as many standard errors away as that of `interval`, the interval of the difference: it
    excludes 0 exactly if that does. It is unbounded if the base itself is not so many from 0. `covariance` is
    (variance of value, covariance, variance of base); `least` is the smallest lift there can be.
    """
    if not base > 0:
        return math.nan, Interval(math.nan, math.nan, interval.confidence, "Fieller")
    variance, shared_variance, base_variance = covariance
    error = math.sqrt(max(variance - 2.0 * shared_variance + base_variance, 0.0))
    # The difference of value and base varies by rounding only.
    no_spread = error**2 <= 1e-12 * (variance + base_variance)
    ends = []
    for side, end in ((-1.0, interval.low), (1.0, interval.high)):
        distance = abs(value - base - end)
        squared = distance and (math.inf if no_spread else (distance / error) ** 2)
        if not math.isfinite(squared) or math.isnan(variance) or base**2 <= squared * base_variance:
            ends.append(side * math.inf)
            continue
        a = base**2 - squared * base_variance
        b = value * base - squared * shared_variance
        c = value**2 - squared * variance
        lift = (b + side * math.sqrt(max(b * b - a * c, 0.0))) / a - 1.0
        ends.append(0.0 if lift * end < 0.0 else lift)  # they have the same sign but for rounding
    if not all(map(math.isfinite, ends)):
        ends, least = [-math.inf, math.inf], -math.inf
    return value / base - 1.0, Interval(max(ends[0], least), ends[1], interval.confidence, "Fieller")


class SmallSampleWarning(StatisticsWarning):
    """Too few units for the method to mean what it says."""


class ZeroVarianceWarning(StatisticsWarning):
    """Every unit shows the same difference, so there is no noise to compare it with."""


class RankTestWarning(StatisticsWarning):
    """A Wilcoxon or sign test where it tests something other than the mean."""


class SkewWarning(StatisticsWarning):
    """Values too skewed, or with tails too heavy, for a test or interval of the mean to hold its level."""


class UnpairedWarning(StatisticsWarning):
    """Some cases exist on one side only, or are excluded on one side only, and were left out of the pairs."""


class StoppedWarning(StatisticsWarning):
    """A test for a fixed number of users, applied to a result that was stopped once it looked clear."""


class SampleRatioWarning(StatisticsWarning):
    """The groups of an experiment do not have their planned sizes."""


class PopulationWarning(StatisticsWarning):
    """A difference adjusted for covariates or strata holds for fewer users than it may seem to."""


_ALREADY_WARNED: ContextVar[set[tuple[type, str]] | None] = ContextVar("_ALREADY_WARNED", default=None)


def difference_numbers(
    difference: float, interval: Interval, lift: float, lift_interval: Interval
) -> dict[str, Any]:
    """The numbers that a verdict on a difference shows."""
    return {
        "difference": difference, "interval": (interval.low, interval.high),
        "lift": lift, "lift_interval": (lift_interval.low, lift_interval.high),
    }  # fmt: skip


@contextmanager
def warn_once() -> Iterator[None]:
    """Inside, a repeated caution warns only the first time; `caution` still returns its note every time."""
    token = _ALREADY_WARNED.set(_ALREADY_WARNED.get() or set())
    try:
        yield
    finally:
        _ALREADY_WARNED.reset(token)


def caution(category: type[StatisticsWarning], code: str, **values: Any) -> Note:
    """Warn at the line of the user's call, however deep inside the library, and return the note."""
    made = Note(code, values, warning=category)
    warned, text = _ALREADY_WARNED.get(), str(made)
    if warned is None or (category, text) not in warned:
        if warned is not None:
            warned.add((category, text))
        warn(category, text)
    return made
