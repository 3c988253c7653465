"""Verdicts in words: what a product manager can read without knowing the test."""

from __future__ import annotations

import math

from recsys.stats.effects import Effect
from recsys.stats.inference_results import Interval


def p_name(correction: str) -> str:
    """What a p-value is called, by its correction."""
    return "p" if correction == "none" else f"p_{correction}"


def said_p(p: float, correction: str) -> str:
    """A p-value as one says it.

    >>> said_p(0.0123, "holm"), said_p(3e-9, "holm")
    ('p_holm = 0.012', 'p_holm < 1e-4')
    """
    name = p_name(correction)
    if math.isnan(p):
        return f"{name} not defined"
    return f"{name} < 1e-4" if p < 1e-4 else f"{name} = {p:.2g}"


def counted_as(n: int, what: str) -> str:
    """A number of things.

    >>> counted_as(1, "metric"), counted_as(2, "metric")
    ('1 metric', '2 metrics')
    """
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def said_gap(difference: float, interval: Interval, relative: float, relative_interval: Interval) -> str:
    """The gain in per cent where the baseline allows it, else in the metric's own units."""
    if math.isfinite(relative) and math.isfinite(relative_interval.low):
        low, high = 100.0 * relative_interval.low, 100.0 * relative_interval.high
        return f"{100.0 * relative:+.1f}% [{low:.1f}, {high:.1f}]"
    return f"{difference:+.4g} [{interval.low:.4g}, {interval.high:.4g}]"


def said_effect(effect: Effect) -> str:
    """An effect by name, size and customary word."""
    return f"{effect.name} {effect.value:.2f} {effect.label}"


def outcome(
    difference: float,
    p: float,
    alpha: float,
    *,
    lower_is_better: bool,
    equivalent: bool = False,
    no_worse: bool = False,
) -> str:
    """better, worse, equivalent, not worse or no clear difference."""
    if p < alpha and difference != 0:
        return "better" if (difference > 0) != lower_is_better else "worse"
    if equivalent:
        return "equivalent"
    return "not worse" if no_worse else "no clear difference"
