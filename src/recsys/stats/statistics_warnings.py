"""Warnings about statistics: each names a way in which a correctly computed number can mislead.

A caution is both a typed Python warning and a note on the result, so that it also reaches a report.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from recsys.errors import RecsysWarning, warn


class StatisticsWarning(RecsysWarning):
    """Base of the warnings below."""


class SmallSampleWarning(StatisticsWarning):
    """Too few units for the method to mean what it says."""


class ZeroVarianceWarning(StatisticsWarning):
    """Every unit shows the same difference, so there is no noise to compare it with."""


class RankTestWarning(StatisticsWarning):
    """A Wilcoxon or sign test where it tests something other than the mean."""


class SkewWarning(StatisticsWarning):
    """A method that assumes symmetry was used on differences that are not symmetric."""


class UnpairedWarning(StatisticsWarning):
    """Some cases exist on one side only, or are excluded on one side only, and were left out of the pairs."""


class StoppedWarning(StatisticsWarning):
    """A test for a fixed number of users, applied to a result that was stopped once it looked clear."""


class SampleRatioWarning(StatisticsWarning):
    """The groups of an experiment do not have their planned sizes."""


class PopulationWarning(StatisticsWarning):
    """A difference adjusted for covariates or strata holds for fewer users than it may seem to."""


_ALREADY_WARNED: ContextVar[set[tuple[type, str]] | None] = ContextVar("_SAID", default=None)


@contextmanager
def warn_once() -> Iterator[None]:
    """Inside, a repeated caution warns only the first time; `caution` still returns its note every time."""
    token = _ALREADY_WARNED.set(_ALREADY_WARNED.get() or set())
    try:
        yield
    finally:
        _ALREADY_WARNED.reset(token)


def caution(category: type[StatisticsWarning], text: str) -> str:
    """Warn at the line of the user's call, however deep inside the library, and return the text as a note."""
    warned = _ALREADY_WARNED.get()
    if warned is not None:
        if (category, text) in warned:
            return text
        warned.add((category, text))
    warn(category, text)
    return text


def caution_small_sample(n: int, consequence: str) -> str:
    """Warn about a small sample and say what it does to the number; return the text as a note."""
    return caution(SmallSampleWarning, f"only {n} unit{'' if n == 1 else 's'}: {consequence}")
