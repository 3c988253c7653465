"""The warnings of the statistics room: each names a way a number can mislead although it was computed right.

A caution is both a typed Python warning and a note kept on the result, so it survives into a report.
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
    """A method that assumes symmetry met differences that are not symmetric."""


class UnpairedWarning(StatisticsWarning):
    """Some cases exist on one side only, or are excluded on one side only, and were left out of the pairs."""


class StoppedWarning(StatisticsWarning):
    """A test for a fixed number of users of a result that was stopped once it looked clear."""


class SampleRatioWarning(StatisticsWarning):
    """The groups of an experiment are not of the size they were planned to have."""


class PopulationWarning(StatisticsWarning):
    """A difference adjusted for covariates or strata holds for fewer users than it may seem."""


_SAID: ContextVar[set[tuple[type, str]] | None] = ContextVar("_SAID", default=None)


@contextmanager
def said_once() -> Iterator[None]:
    """Inside, the same caution is a warning the first time only; the note is handed back every time."""
    token = _SAID.set(_SAID.get() or set())
    try:
        yield
    finally:
        _SAID.reset(token)


def caution(category: type[StatisticsWarning], text: str) -> str:
    """Warn at the caller's line, however deep inside the library, and hand the text back as a note."""
    said = _SAID.get()
    if said is not None:
        if (category, text) in said:
            return text
        said.add((category, text))
    warn(category, text)
    return text


def too_few(n: int, what: str) -> str:
    """A small sample, and what it does to the number."""
    return caution(SmallSampleWarning, f"only {n} unit{'' if n == 1 else 's'}: {what}")
