"""Power sums of units about any centre: all that a test of a mean needs where many units decide."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recsys.records.arrays import Float


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over units of (total - c weight)^r for r = 1 to 4 and any c.

    `terms[r - 1][b]` is what (mean - c)^b is multiplied with in the sum of r-th powers.
    """

    mean: float
    weight: float
    terms: tuple[tuple[float, ...], ...]

    @staticmethod
    def of(totals: Float, weights: Float | None = None, counts: Float | None = None) -> Moments:
        """The moments of units of which each occurs so many times, once by default."""
        times = np.ones(len(totals)) if counts is None else counts
        if weights is None:
            weight = float(times.sum())
            mean = float((totals * times).sum()) / weight  # a product by BLAS would start threads
            distances = totals - mean
            squares = distances * distances
            of_squares = squares * times
            second = float(of_squares.sum())
            third, fourth = (float((of_squares * power).sum()) for power in (distances, squares))
            return Moments.about(mean, weight, second, third, fourth)
        weight = float(weights @ times)
        mean = float(totals @ times) / weight
        powers, of_weights = [np.ones_like(totals)], [times]
        for _ in range(4):
            powers.append(powers[-1] * (totals - mean * weights))
            of_weights.append(of_weights[-1] * weights)
        terms = tuple(
            tuple(math.comb(r, b) * float(powers[r - b] @ of_weights[b]) for b in range(r + 1))
            for r in range(1, 5)
        )
        return Moments(mean, weight, terms)

    @staticmethod
    def about(mean: float, n: float, second: float, third: float, fourth: float) -> Moments:
        """The moments of units of weight 1, from the powers of their distances from the mean."""
        terms = (
            (0.0, n),
            (second, 0.0, n),
            (third, 3.0 * second, 0.0, n),
            (fourth, 4.0 * third, 6.0 * second, 0.0, n),
        )
        return Moments(mean, n, terms)

    def negative(self) -> Moments:
        """The moments of the opposite totals."""
        flipped = tuple(
            tuple((-1.0) ** (r - b) * term for b, term in enumerate(terms))
            for r, terms in enumerate(self.terms, 1)
        )
        return Moments(-self.mean, self.weight, flipped)

    def sums(self, c: float) -> tuple[float, float, float, float]:
        """The sums of the first to the fourth powers."""
        s = self.mean - c
        (a, b), (d, e, f), (g, h, i, j), (k, m, n, o, p) = self.terms
        first, second = a + s * b, d + s * (e + s * f)
        third, fourth = g + s * (h + s * (i + s * j)), k + s * (m + s * (n + s * (o + s * p)))
        return first, max(second, 0.0), third, max(fourth, 0.0)
