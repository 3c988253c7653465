"""Where a series of nightly values changed level, beyond what its own noise explains.

Binary segmentation: the split that separates the two means best is accepted if noise alone would rarely
separate them as well, and both sides are searched again. The noise is estimated from the jumps between
neighbouring nights, which is right whether the nights share their users or not. With few nights, the larger
of this estimate and the nights' own standard errors is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError
from recsys.types import Float

_N_SIMULATED = 4_000
_ALARM_LEVEL = 0.01
_MIN_NIGHTS_FOR_NOISE = 8


@dataclass(frozen=True)
class Change:
    """The level before `at` and from `at` on, and how often noise alone would look like that."""

    at: int
    before: float
    after: float
    p_value: float


def change_points(
    values: npt.ArrayLike, errors: npt.ArrayLike | None = None, *, alpha: float = _ALARM_LEVEL
) -> list[Change]:
    """Changes of level, oldest first; `at` is the place of the first value of the new level.

    >>> nights = [0.30, 0.31, 0.30, 0.29, 0.30, 0.25, 0.26, 0.25, 0.24]
    >>> [(change.at, round(change.after - change.before, 3)) for change in change_points(nights)]
    [(5, -0.05)]
    """
    series = np.asarray(values, dtype=np.float64)
    if series.ndim != 1 or not np.isfinite(series).all():
        raise InputError("a series of finite values is needed.", hint="Leave out nights without a value.")
    if len(series) < 3:
        return []
    enough_nights = len(series) >= _MIN_NIGHTS_FOR_NOISE
    noise = float(_jump_noise(series[None, :])[0])
    if not enough_nights and errors is not None:
        standard_errors = np.asarray(errors, dtype=np.float64)
        noise = max(
            noise,
            float(np.sqrt(np.nanmean(np.square(standard_errors))))
            if np.isfinite(standard_errors).any()
            else 0.0,
        )
    # A pipeline that repeats itself to the last digit has no noise: any difference is a change.
    noise = max(noise, 1e-9 * float(np.abs(series).max()))
    search = _Search(noise, len(series) if enough_nights else None, alpha)
    return sorted(search.segments(series, 0), key=lambda change: change.at)


@dataclass(frozen=True)
class _Search:
    """The noise, the number of nights it was estimated from (None: it was known), and the alarm level."""

    noise: float
    nights: int | None
    alpha: float

    def segments(self, series: Float, start: int) -> list[Change]:
        n = len(series)
        if n < 3 or not np.ptp(series) > 0:
            return []
        gaps = _standardised_gaps(series[None, :])[0] / self.noise
        at = int(np.argmax(gaps)) + 1
        by_chance = _largest_by_chance(n, self.nights)
        p = (1.0 + np.count_nonzero(by_chance >= gaps[at - 1])) / (len(by_chance) + 1.0)
        if p > self.alpha:
            return []
        change = Change(start + at, float(series[:at].mean()), float(series[at:].mean()), float(p))
        return [change, *self.segments(series[:at], start), *self.segments(series[at:], start + at)]


def _jump_noise(rows: Float) -> Float:
    """The standard deviation of the noise from the median jump, which is 0.6745 sqrt(2) sigma."""
    jumps: Float = np.median(np.abs(np.diff(rows, axis=1)), axis=1)
    noise: Float = jumps / (0.6744897501960817 * np.sqrt(2.0))
    return noise


def _standardised_gaps(rows: Float) -> Float:
    """|mean after - mean before| over its error under unit noise, for every split of every row."""
    n = rows.shape[1]
    n_before = np.arange(1, n)
    running = np.cumsum(rows, axis=1)
    before, after = running[:, :-1] / n_before, (running[:, -1:] - running[:, :-1]) / (n - n_before)
    gaps: Float = np.abs(after - before) / np.sqrt(1.0 / n_before + 1.0 / (n - n_before))
    return gaps


@lru_cache(maxsize=256)
def _largest_by_chance(n: int, nights: int | None) -> Float:
    """Simulated best splits of n values without a change, with the noise estimated from `nights` values."""
    rows = np.random.default_rng([n, nights or 0]).standard_normal((_N_SIMULATED, max(n, nights or 0)))
    largest: Float = _standardised_gaps(rows[:, :n]).max(axis=1)
    return largest if nights is None else largest / _jump_noise(rows)
