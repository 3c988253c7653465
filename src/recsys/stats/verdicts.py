"""Verdicts in words that a product manager can read without knowing the test."""

from __future__ import annotations

import math

from recsys.stats.effects import Effect
from recsys.stats.inference_results import Interval


def p_name(correction: str) -> str:
    """The name of a p-value under this correction."""
    return "p" if correction == "none" else f"p_{correction}"


def format_p(p: float, correction: str) -> str:
    """A p-value with its name, two digits.

    >>> format_p(0.0123, "holm"), format_p(3e-9, "holm")
    ('p_holm = 0.012', 'p_holm < 1e-4')
    """
    name = p_name(correction)
    if math.isnan(p):
        return f"{name} not defined"
    return f"{name} < 1e-4" if p < 1e-4 else f"{name} = {p:.2g}"


def plural(n: int, noun: str) -> str:
    """A count with its noun, in the singular for 1.

    >>> plural(1, "metric"), plural(2, "metric")
    ('1 metric', '2 metrics')
    """
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def format_difference(
    difference: float, interval: Interval, relative: float, relative_interval: Interval
) -> str:
    """The difference in per cent of the baseline where that is defined, else in the metric's own units."""
    if math.isfinite(relative) and math.isfinite(relative_interval.low):
        low, high = 100.0 * relative_interval.low, 100.0 * relative_interval.high
        return f"{100.0 * relative:+.1f}% [{low:.1f}, {high:.1f}]"
    return f"{difference:+.4g} [{interval.low:.4g}, {interval.high:.4g}]"


def format_effect(effect: Effect) -> str:
    """Name, size and customary label of an effect."""
    return f"{effect.name} {effect.value:.2f} {effect.label}"


def verdict(
    difference: float,
    p: float,
    alpha: float,
    *,
    lower_is_better: bool,
    equivalent: bool = False,
    no_worse: bool = False,
) -> str:
    """One of: better, worse, equivalent, not worse, no clear difference."""
    if p < alpha and difference != 0:
        return "better" if (difference > 0) != lower_is_better else "worse"
    if equivalent:
        return "equivalent"
    return "not worse" if no_worse else "no clear difference"
