"""Bootstrap replicates of many estimates at once, and the intervals and p-values read from them.

Every row of Units is resampled with the same draws. Replicates of a row are its deviations from the
estimate and, for the studentised methods, their own standard errors: five sums per row and resample at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recsys.errors import UnknownNameError
from recsys.stats.alignment import Units
from recsys.stats.inference_results import Alternative, check_alternative, check_confidence, flat_p
from recsys.stats.resampling import Resampler
from recsys.types import Bool, Float, Int

_ROW_BYTES = 1 << 30


@dataclass(frozen=True, eq=False)
class Replicates:
    """For each estimate (row): value, standard error, acceleration; its bootstrap deviations and errors."""

    estimates: Float
    standard_errors: Float
    accelerations: Float
    deviations: Float
    errors: Float
    n_units: Int
    scheme: str

    def t_values(self) -> Float:
        """Studentised deviations; a resample without spread is infinitely far unless it did not move."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t = self.deviations / self.errors
        return np.where(np.isnan(t), 0.0, t)

    def limits(self, method: str, confidence: float) -> Float:
        """Rows x (low, high); infinite for one unit alone, and for a few that are all the same."""
        few = (self.n_units < 2) | (self._flat & (self._flips > 1.0 - confidence))
        return np.where(few[:, None], [[-np.inf, np.inf]], self._limits(method, confidence))

    @property
    def _flat(self) -> Bool:
        """Rows without any spread, which no draw can move."""
        return np.asarray(self.standard_errors == 0)

    @property
    def _flips(self) -> Float:
        """What sign flips alone can say of each row, two-sided."""
        return np.array([flat_p(n - 1) for n in self.n_units.tolist()])

    def _limits(self, method: str, confidence: float) -> Float:
        check_confidence(confidence)
        tail = (1.0 - confidence) / 2.0
        if method == "percentile":
            return self.estimates[:, None] + np.quantile(self.deviations, [tail, 1 - tail], axis=1).T
        if method == "studentised":
            # Order statistics, not interpolation: a resample without spread is infinitely far.
            t = self.t_values()
            high = np.quantile(t, 1 - tail, axis=1, method="higher")
            low = np.quantile(t, tail, axis=1, method="lower")
            return self.estimates[:, None] - np.stack([high, low], axis=1) * self.standard_errors[:, None]
        if method == "bca":
            rows = zip(self.deviations, self.accelerations, strict=True)
            reach: Float = np.array([bca_limits(d, 0.0, a, confidence) for d, a in rows])
            return self.estimates[:, None] + reach
        raise UnknownNameError("bootstrap interval", method, ("percentile", "studentised", "bca"))

    def p_values(self, method: str, alternative: Alternative = "two-sided") -> Float:
        """For the hypothesis that the estimate is zero; the inversion of the interval of the same name."""
        check_alternative(alternative)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = self.estimates / self.standard_errors
        if method == "studentised":
            replicates = self.t_values()
            upper = _tail(replicates >= t[:, None])
            lower = _tail(replicates <= t[:, None])
        elif method == "bca":
            upper = _bca_levels(self.deviations, self.estimates, self.accelerations)
            lower = 1.0 - upper
        else:
            raise UnknownNameError("bootstrap test", method, ("studentised", "bca"))
        p = {"greater": upper, "less": lower}.get(
            alternative, np.minimum(1.0, 2.0 * np.minimum(upper, lower))
        )
        right = {"greater": t > 0, "less": t < 0}.get(alternative)
        flips = self._flips if right is None else np.where(right, self._flips / 2.0, 1.0)
        return np.where(np.isnan(t), np.nan, np.where(self._flat, np.maximum(flips, p), p))


def _tail(beyond: Bool) -> Float:
    count: Float = (1.0 + beyond.sum(axis=1)) / (1.0 + beyond.shape[1])
    return count


def bca_limits(
    replicates: Float, estimate: float, acceleration: float, confidence: float
) -> tuple[float, float]:
    """Bias-corrected and accelerated limits from the replicates of one estimate."""
    from scipy.special import ndtr, ndtri

    tail = (1.0 - confidence) / 2.0
    below = (np.count_nonzero(replicates < estimate) + np.count_nonzero(replicates <= estimate)) / 2.0
    bias = float(ndtri(np.clip(below, 0.5, len(replicates) - 0.5) / len(replicates)))
    shifted = bias + ndtri(np.array([tail, 1.0 - tail]))
    levels = ndtr(bias + shifted / (1.0 - acceleration * shifted))
    low, high = np.quantile(replicates, levels)
    return float(low), float(high)


def _bca_levels(deviations: Float, estimates: Float, accelerations: Float) -> Float:
    """The one-sided confidence level whose BCa limit touches zero: the p-value against larger values."""
    from scipy.special import ndtr, ndtri

    n = deviations.shape[1]
    zero = -estimates[:, None]

    def clipped(count: Float) -> Float:
        share: Float = np.clip(count, 1.0, n) / (n + 1.0)
        return share

    below = ((deviations < 0).sum(axis=1) + (deviations <= 0).sum(axis=1)) / 2.0
    at_zero = ((deviations < zero).sum(axis=1) + (deviations <= zero).sum(axis=1)) / 2.0
    bias = ndtri(clipped(below))
    shifted = ndtri(clipped(at_zero)) - bias
    level = ndtr(shifted / (1.0 + accelerations * shifted) - bias)
    # No more can be said with n resamples than this, whatever the correction does.
    bounded: Float = np.clip(level, 1.0 / (n + 1.0), n / (n + 1.0))
    return bounded


def replicate(units: Units, resampler: Resampler) -> Replicates:
    """Draw the bootstrap for all rows of `units` with the same weights."""
    residuals = units.residuals()
    n = units.n_units()
    square = (residuals**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        acceleration = (residuals**3).sum(axis=1) / (6.0 * square**1.5)
    # Rows in batches: the same draws are made again for each, which costs less than the memory for all would.
    batch = max(1, _ROW_BYTES // (32 * max(1, residuals.shape[1])))
    parts = [
        _moments(residuals[at : at + batch], units.weights[at : at + batch], resampler)
        for at in range(0, len(residuals), batch)
    ]
    deviations, errors = (np.concatenate(part) for part in zip(*parts, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        errors *= np.sqrt(n / (n - 1.0))[:, None]
    return Replicates(
        units.estimates(),
        units.standard_errors(),
        np.where(np.isfinite(acceleration), acceleration, 0.0),
        deviations,
        errors,
        n,
        resampler.resolved_scheme,
    )


def _moments(residuals: Float, weights: Float, resampler: Resampler) -> tuple[Float, Float]:
    """Deviation of the ratio and root of its linearised variance, per row and resample."""
    m = len(residuals)
    distinct, which = _distinct_rows(weights)
    indicator = bool(np.isin(distinct, (0.0, 1.0)).all())
    parts = [residuals, residuals**2, distinct]
    if not indicator:
        parts += [distinct**2, residuals * weights]
    sums = resampler.weighted(np.concatenate(parts))
    moved, squared = sums[:m], sums[m : 2 * m]
    total = sums[2 * m : 2 * m + len(distinct)][which]
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = moved / total
        if indicator:
            variance = squared - moved * deviation
        else:
            rest = sums[2 * m + len(distinct) :]
            variance = (
                squared
                - 2.0 * deviation * rest[len(distinct) :]
                + deviation**2 * rest[: len(distinct)][which]
            )
        # What rounding leaves of a spread that is zero must not pass for a tiny one.
        variance = np.where(variance <= 1e-13 * squared, 0.0, variance)
        error = np.sqrt(variance) / np.abs(total)
    return np.where(np.isfinite(deviation), deviation, 0.0), np.where(np.isfinite(error), error, 0.0)


def _distinct_rows(weights: Float) -> tuple[Float, Int]:
    """The different rows of the weights (mostly one) and which of them each row is."""
    seen: dict[bytes, int] = {}
    which = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in weights], dtype=np.int64)
    first = [int(np.flatnonzero(which == j)[0]) for j in range(len(seen))]
    return weights[first], which
