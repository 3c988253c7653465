"""How far the values of units spread: all that a test of their mean looks at, from arrays or from sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recsys.records.arrays import Float, cached_property
from recsys.stats.inference_results import t_ratio
from recsys.stats.moments import Moments
from recsys.stats.resampling import Units, has_spread, heavy_tails, judge_tails


class ValueSpread:
    """The spread of values, one per unit."""

    def __init__(self, values: Float) -> None:
        self.values = values

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def deviation(self) -> float:
        """The standard deviation (n - 1)."""
        return float(self.values.std(ddof=1))

    @property
    def varies(self) -> bool:
        """Whether the values differ by more than rounding."""
        return has_spread(self.values)

    @property
    def is_zero(self) -> bool:
        """Whether all values are 0."""
        return not self.values.any()

    @property
    def n_differing(self) -> int:
        """How many units differ."""
        return int(np.count_nonzero(self.values))

    @property
    def df(self) -> float:
        """The degrees of freedom of the standard error."""
        return self.n - 1.0

    def skewness(self) -> tuple[float, float, float]:
        """Sums of squares, cubes and sixth powers of the distances from the mean, in units of the largest."""
        centred = self.values - self.values.mean()
        centred /= np.abs(centred).max()
        squares = centred**2
        return float(squares.sum()), float((squares * centred).sum()), float((squares**3).sum())


class UnitSpread(ValueSpread):
    """The spread of the first row of some units: of one value per unit, whose mean is the estimate."""

    def __init__(self, units: Units) -> None:
        self._units = units

    @cached_property
    def values(self) -> Float:
        return self._units.linearised()

    @property
    def n_differing(self) -> int:
        return int(self._units.n_differing()[0])

    @property
    def df(self) -> float:
        return float(self._units.degrees_of_freedom()[0])

    def tails(self) -> tuple[float, float, bool]:
        """The largest unit's share of the squares, how many equal ones would spread alike, if few hold it."""
        residuals, differing = self._units.residuals[:1], self._units.n_differing()[:1]
        (share,), (effective,), (is_heavy,) = heavy_tails(residuals, differing)
        return float(share), float(effective), bool(is_heavy)


def powers_of(values: Float) -> tuple[Float, Float, Float, Float]:
    """The second, third, fourth and sixth powers."""
    squares = values * values
    return squares, squares * values, squares * squares, squares * squares * squares


@dataclass(frozen=True)
class SummedSpread:
    """The spread of values that were added up, each with weight 1.

    `sums` are those of `powers_of` the distances from the mean, in units of the `largest` one.
    """

    n: int
    mean: float
    least: float
    most: float
    n_differing: int
    sums: Sequence[float]

    @property
    def largest(self) -> float:
        """The largest distance from the mean."""
        return max(self.most - self.mean, self.mean - self.least)

    @property
    def largest_residual(self) -> float:
        """The same, 0 if it is rounding only."""
        return self.largest if self.largest > 1e-12 * max(abs(self.least), abs(self.most)) else 0.0

    @property
    def deviation(self) -> float:
        return self.largest * math.sqrt(self.sums[0] / (self.n - 1)) if self.n > 1 else math.nan

    @property
    def varies(self) -> bool:
        return has_spread(np.array([self.least, self.most]))

    @property
    def is_zero(self) -> bool:
        return self.n_differing == 0

    @property
    def df(self) -> float:
        return self.n - 1.0

    def skewness(self) -> tuple[float, float, float]:
        squares, cubes, _, sixths = self.sums
        return squares, cubes, sixths

    def moments(self) -> Moments:
        second, third, fourth = (power * self.largest**r for r, power in enumerate(self.sums[:3], 2))
        return Moments.about(self.mean, self.n, second, third, fourth)

    def tails(self) -> tuple[float, float, bool]:
        largest, second, fourth = (
            np.array([value]) for value in (self.largest_residual, self.sums[0], self.sums[2])
        )
        (share,), (effective,), (is_heavy,) = judge_tails(
            largest, second, fourth, np.array([self.n_differing])
        )
        return float(share), float(effective), bool(is_heavy)


def t_statistic(spread: ValueSpread | SummedSpread) -> tuple[float, float, float]:
    """Mean, its standard error, and their ratio (infinite without spread, NaN if undefined)."""
    mean = spread.mean
    if spread.n < 2:
        return mean, math.nan, math.nan
    error = spread.deviation / math.sqrt(spread.n) if spread.varies else 0.0
    return mean, error, t_ratio(mean, error)
