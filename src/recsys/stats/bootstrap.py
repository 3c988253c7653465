"""Bootstrap replicates of many estimates at once, and the intervals and p-values computed from them.

Every row of Units is resampled with the same draws. Replicates of a row are its deviations from the
estimate and, for the studentised methods, their own standard errors: five sums per row and resample at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recsys.errors import UnknownNameError
from recsys.stats.alignment import Units
from recsys.stats.inference_results import Alternative, check_alternative, check_confidence, zero_spread_p
from recsys.stats.resampling import Resampler
from recsys.types import Bool, Float, Int

_BATCH_BYTES = 1 << 30


@dataclass(frozen=True, eq=False)
class Replicates:
    """Per estimate (row): value, standard error, acceleration; deviations and errors of its resamples."""

    estimates: Float
    standard_errors: Float
    accelerations: Float
    deviations: Float
    errors: Float
    n_units: Int
    scheme: str

    def t_values(self) -> Float:
        """Studentised deviations; infinite for a resample without spread, unless its deviation is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t = self.deviations / self.errors
        return np.where(np.isnan(t), 0.0, t)

    def limits(self, method: str, confidence: float) -> Float:
        """Rows x (low, high); infinite for one unit alone, and for few units without spread."""
        unbounded = (self.n_units < 2) | (self._no_spread & (self._sign_flip_p > 1.0 - confidence))
        return np.where(unbounded[:, None], [[-np.inf, np.inf]], self._resampled_limits(method, confidence))

    @property
    def _no_spread(self) -> Bool:
        """Rows without any spread, in which all resamples are equal."""
        return np.asarray(self.standard_errors == 0)

    @property
    def _sign_flip_p(self) -> Float:
        """The two-sided p-value of each row from sign flips alone, as if it had no spread."""
        return np.array([zero_spread_p(n - 1) for n in self.n_units.tolist()])

    def _resampled_limits(self, method: str, confidence: float) -> Float:
        check_confidence(confidence)
        tail = (1.0 - confidence) / 2.0
        if method == "percentile":
            return self.estimates[:, None] + np.quantile(self.deviations, [tail, 1 - tail], axis=1).T
        if method == "studentised":
            # Order statistics, not interpolation: a resample without spread has an infinite t.
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
        """Test the hypothesis that the estimate is zero, by inverting the interval of the same name."""
        check_alternative(alternative)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = self.estimates / self.standard_errors
        if method == "studentised":
            replicates = self.t_values()
            upper = _resampled_p(replicates >= t[:, None])
            lower = _resampled_p(replicates <= t[:, None])
        elif method == "bca":
            upper = _bca_levels(self.deviations, self.estimates, self.accelerations)
            lower = 1.0 - upper
        else:
            raise UnknownNameError("bootstrap test", method, ("studentised", "bca"))
        p = {"greater": upper, "less": lower}.get(
            alternative, np.minimum(1.0, 2.0 * np.minimum(upper, lower))
        )
        in_direction = {"greater": t > 0, "less": t < 0}.get(alternative)
        flip_p = (
            self._sign_flip_p
            if in_direction is None
            else np.where(in_direction, self._sign_flip_p / 2.0, 1.0)
        )
        return np.where(np.isnan(t), np.nan, np.where(self._no_spread, np.maximum(flip_p, p), p))


def _resampled_p(exceeds: Bool) -> Float:
    share: Float = (1.0 + exceeds.sum(axis=1)) / (1.0 + exceeds.shape[1])
    return share


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
    # n resamples cannot give a smaller p-value than this.
    bounded: Float = np.clip(level, 1.0 / (n + 1.0), n / (n + 1.0))
    return bounded


def replicate(units: Units, resampler: Resampler) -> Replicates:
    """Bootstrap all rows of `units` with the same resampling weights."""
    residuals = units.residuals()
    n = units.n_units()
    square = (residuals**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        acceleration = (residuals**3).sum(axis=1) / (6.0 * square**1.5)
    # Rows in batches: repeating the draws for each batch costs less than the memory for all rows.
    batch = max(1, _BATCH_BYTES // (32 * max(1, residuals.shape[1])))
    parts = [
        _deviations_and_errors(residuals[at : at + batch], units.weights[at : at + batch], resampler)
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


def _deviations_and_errors(residuals: Float, weights: Float, resampler: Resampler) -> tuple[Float, Float]:
    """Deviation of the ratio and root of its linearised variance, per row and resample."""
    m = len(residuals)
    distinct, row_of = _distinct_rows(weights)
    indicator = bool(np.isin(distinct, (0.0, 1.0)).all())
    parts = [residuals, residuals**2, distinct]
    if not indicator:
        parts += [distinct**2, residuals * weights]
    sums = resampler.weighted(np.concatenate(parts))
    sums_of_residuals, sums_of_squares = sums[:m], sums[m : 2 * m]
    total = sums[2 * m : 2 * m + len(distinct)][row_of]
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = sums_of_residuals / total
        if indicator:
            variance = sums_of_squares - sums_of_residuals * deviation
        else:
            weighted_sums = sums[2 * m + len(distinct) :]
            variance = (
                sums_of_squares
                - 2.0 * deviation * weighted_sums[len(distinct) :]
                + deviation**2 * weighted_sums[: len(distinct)][row_of]
            )
        # A variance that is rounding only must count as zero.
        variance = np.where(variance <= 1e-13 * sums_of_squares, 0.0, variance)
        error = np.sqrt(variance) / np.abs(total)
    return np.where(np.isfinite(deviation), deviation, 0.0), np.where(np.isfinite(error), error, 0.0)


def _distinct_rows(weights: Float) -> tuple[Float, Int]:
    """The distinct rows of the weights (mostly one), and for each row the index of its own."""
    seen: dict[bytes, int] = {}
    index = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in weights], dtype=np.int64)
    first = [int(np.flatnonzero(index == j)[0]) for j in range(len(seen))]
    return weights[first], index
