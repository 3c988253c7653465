"""Changes of level in a series of nightly values, distinguished from the noise of the nights.

A series is searched by circular binary segmentation (Olshen, Venkatraman, Lucito and Wigler 2004): the best
of all splits into before and after is sought, and in longer series also the best stretch of nights that
differs from all others; what is found cuts the series, and the parts are searched again. The best split of n
nights is after that k-th with the greatest |mean after - mean before| sqrt(k (n - k) / n). A change has to
pass two tests:

- The same nights in random order rarely show as large a gap. This is exact for independent nights, whatever
  their distribution: heavy tails, or values that flip between two steps of a grid.
- Normal nights that are correlated with their neighbours by 0.3, or by more if 60 nights or more clearly show
  more, rarely show as large a gap in units of the noise. The noise comes from the differences between
  neighbouring blocks of nights, which a few changes of level hardly affect and which are right whether the
  nights share their users or not.

A few nights cannot tell strong correlation from changes, so it makes more alarms; a change in a series that
looks correlated says so.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError
from recsys.records.arrays import Float
from recsys.records.checks import to_floats

# In fewer nights, one of a hundred random orders shows even the clearest change.
MIN_NIGHTS = 10
_ALARM_LEVEL = 0.01
_MIN_LEVEL_NIGHTS = 2
# From so many nights on, stretches that differ from all other nights are sought as well.
_MIN_NIGHTS_FOR_STRETCHES = 30
_LEAST_CORRELATION, _MOST_CORRELATION = 0.3, 0.8
# In fewer nights a change looks too much like correlation.
_MIN_NIGHTS_FOR_CORRELATION = 60
_N_SIMULATED = 4_000


@dataclass(frozen=True)
class Change:
    """The levels before `at` and from `at` on, and how often noise alone would look like that."""

    at: int
    before: float
    after: float
    p_value: float
    note: str = ""


def change_points(values: npt.ArrayLike, *, alpha: float = _ALARM_LEVEL) -> list[Change]:
    """Changes of level, oldest first; `at` is the place of the first value of the new level.

    Fewer than 10 values show no change: noise cannot be excluded.

    >>> nights = [0.30, 0.31, 0.30, 0.29, 0.30, 0.31, 0.25, 0.26, 0.25, 0.24, 0.25, 0.26]
    >>> [(change.at, round(change.after - change.before, 3)) for change in change_points(nights)]
    [(6, -0.05)]
    """
    series = to_floats(values, "the series")
    if series.ndim != 1 or not np.isfinite(series).all():
        raise InputError("a series of finite values is needed.", hint="Leave out nights without a value.")
    nights = len(series)
    if nights < MIN_NIGHTS:
        return []
    noise = float(_noise(_centred_sums(series[None, :]))[0])
    correlation = _correlation(series)
    null = (nights, correlation if nights >= _MIN_NIGHTS_FOR_CORRELATION else _LEAST_CORRELATION)
    rounding = 1e-9 * float(np.abs(series).max())
    p_values: dict[int, float] = {}
    parts = [(0, nights)]
    while parts:
        start, stop = parts.pop()
        part = series[start:stop]
        if len(part) < MIN_NIGHTS or np.ptp(part) <= rounding:
            continue
        edges: tuple[int, ...] = ()
        p = _p_of_gap(part, noise, null, stretches=False, alpha=alpha)
        if p <= alpha:
            gaps = _gaps_from_start(_centred_sums(part[None, :]))[0]
            edges = (int(np.argmax(gaps)) + _MIN_LEVEL_NIGHTS,)
        elif len(part) >= _MIN_NIGHTS_FOR_STRETCHES:
            p = _p_of_gap(part, noise, null, stretches=True, alpha=alpha)
            edges = _best_stretch(part) if p <= alpha else ()
        if edges:
            p_values |= dict.fromkeys((start + edge for edge in edges), p)
            cuts = [start, *(start + edge for edge in edges), stop]
            parts += itertools.pairwise(cuts)
    cuts = [0, *sorted(p_values), nights]
    levels = [float(series[a:b].mean()) for a, b in itertools.pairwise(cuts)]
    note = ""
    if correlation > _LEAST_CORRELATION:
        note = f"neighbouring nights are similar (correlation about {correlation}), so it may yet be noise"
    return [
        Change(at, before, after, p_values[at], note)
        for at, before, after in zip(cuts[1:-1], levels[:-1], levels[1:], strict=True)
    ]


def _p_of_gap(part: Float, noise: float, null: tuple[int, float], *, stretches: bool, alpha: float) -> float:
    """Return how often noise alone shows as large a gap: the larger p-value of the two tests.

    The random orders are left as soon as the p-value is known to exceed `alpha`.
    """
    row = part - part.mean()
    # Sums of the same values in another order differ by rounding.
    gap = float(_largest_gaps(_centred_sums(row[None, :]), stretches=stretches)[0]) * (1.0 - 1e-9)
    n_searches = 1 if len(part) < _MIN_NIGHTS_FOR_STRETCHES else 2

    def p_value(n_as_large: int) -> float:
        return n_searches * (1 + n_as_large) / (_N_SIMULATED + 1)

    by_chance = _gaps_of_correlated_noise(*null, stretches=stretches) * noise
    p, n_as_large = p_value(int(np.count_nonzero(by_chance >= gap))), 0
    for orders in np.split(_random_orders(len(part)), 20):
        if max(p, p_value(n_as_large)) > alpha:
            break
        by_chance = _largest_gaps(_centred_sums(row[orders]), stretches=stretches)
        n_as_large += int(np.count_nonzero(by_chance >= gap))
    return max(p, p_value(n_as_large))


def _centred_sums(rows: Float) -> Float:
    """Running sums of every row's deviations from its mean, from 0 on."""
    sums: Float = np.zeros((len(rows), rows.shape[1] + 1))
    np.cumsum(rows - rows.mean(axis=1, keepdims=True), axis=1, out=sums[:, 1:])
    return sums


def _gaps_from_start(sums: Float) -> Float:
    """|mean after - mean before| over its error under unit noise, for every split of every row."""
    n = sums.shape[1] - 1
    before = np.arange(_MIN_LEVEL_NIGHTS, n - _MIN_LEVEL_NIGHTS + 1)
    gaps: Float = np.abs(sums[:, before]) * np.sqrt(n / (before * (n - before)))
    return gaps


def _gaps_of_stretches(sums: Float, length: int) -> Float:
    """Return the same between the `length` nights from each place on and all other nights."""
    n, ends = sums.shape[1] - 1, _MIN_LEVEL_NIGHTS
    gaps: Float = np.abs(sums[:, ends + length : n - ends + 1] - sums[:, ends : n - ends - length + 1])
    gaps *= math.sqrt(n / (length * (n - length)))
    return gaps


def _largest_gaps(sums: Float, *, stretches: bool) -> Float:
    """Return the largest gap of every row, over all splits or over stretches of about every length."""
    if not stretches:
        return np.asarray(_gaps_from_start(sums).max(axis=1))
    n = sums.shape[1] - 1
    lengths = np.unique(np.geomspace(_MIN_LEVEL_NIGHTS, n // 2, 4 * n.bit_length()).astype(int))
    by_length = [_gaps_of_stretches(sums, int(length)).max(axis=1) for length in lengths]
    return np.asarray(np.max(by_length, axis=0))


def _best_stretch(part: Float) -> tuple[int, int]:
    sums = _centred_sums(part[None, :])
    best, edges = -1.0, (0, 0)
    for length in range(_MIN_LEVEL_NIGHTS, len(part) // 2 + 1):
        gaps = _gaps_of_stretches(sums, length)[0]
        at = int(np.argmax(gaps))
        if gaps[at] > best:
            best, edges = float(gaps[at]), (at + _MIN_LEVEL_NIGHTS, at + _MIN_LEVEL_NIGHTS + length)
    return edges


def _noise(sums: Float) -> Float:
    """Return the standard deviation of the noise, from the differences between neighbouring blocks of nights.

    Blocks show the noise that stays for some nights, which single nights hide. Differences beyond two
    (robust) standard deviations count as two, because of the changes among them.
    """
    block = math.isqrt(sums.shape[1] - 1) // 2
    differences = (sums[:, 2 * block :] - 2.0 * sums[:, block:-block] + sums[:, : -2 * block]) / math.sqrt(
        2.0 * block
    )
    limit = 2.0 * np.median(np.abs(differences), axis=1, keepdims=True) / 0.6744897501960817
    noise: Float = np.sqrt((np.clip(differences, -limit, limit) ** 2).mean(axis=1))
    return noise


@lru_cache(maxsize=64)
def _gaps_of_correlated_noise(nights: int, correlation: float, *, stretches: bool) -> Float:
    """Simulated largest gaps of nights without a change, in units of the noise seen in them."""
    rows = np.random.default_rng(nights).standard_normal((_N_SIMULATED, nights))
    rows[:, 1:] *= math.sqrt(1.0 - correlation**2)
    for night in range(1, nights):
        rows[:, night] += correlation * rows[:, night - 1]
    sums = _centred_sums(rows)
    return _largest_gaps(sums, stretches=stretches) / _noise(sums)


@lru_cache(maxsize=32)
def _random_orders(n: int) -> npt.NDArray[np.int32]:
    orders = np.tile(np.arange(n, dtype=np.int32), (_N_SIMULATED, 1))
    return np.random.default_rng(n).permuted(orders, axis=1)


def _correlation(series: Float) -> float:
    """Return the correlation of neighbouring nights, in tenths, if it is clearly above the least one assumed.

    Neighbouring jumps are correlated by (r - 1) / 2 if neighbouring nights are correlated by r.
    """
    jumps = np.diff(series)
    limit = 2.0 * float(np.median(np.abs(jumps))) / 0.6744897501960817
    jumps = np.clip(jumps, -limit, limit)  # the jump of a change is not noise
    squares = float(jumps @ jumps)
    correlation = 1.0 + 2.0 * float(jumps[1:] @ jumps[:-1]) / squares if squares > 0 else 0.0
    if correlation - 1.5 / math.sqrt(len(series)) <= _LEAST_CORRELATION:  # one standard error
        return _LEAST_CORRELATION
    return min(round(correlation, 1), _MOST_CORRELATION)
