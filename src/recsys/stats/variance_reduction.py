"""Means adjusted to known covariate means and known shares of strata: CUPED and post-stratification in one.

Both are a regression of the values on covariates and strata, evaluated at their known means. That is a
weighted mean of the values with weights `g` that do not depend on the values (generalised regression, or
calibration, in survey sampling), and its error is that of the residuals times `g`. So each unit gets one
value such that the mean of these values is the adjusted mean and s / sqrt(n) its error, and any test of a
mean can use them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recsys.errors import IdTypeError, InputError
from recsys.stats.inference_results import Estimate, is_number, t_interval
from recsys.types import Array, Float, Int

# Singular values below this share of the largest are rounding: the columns depend on each other.
_RANK_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Calibration:
    """Weights that bring covariates and strata to their known means and shares.

    `basis` holds the covariates within strata, orthonormal; `spent` counts the degrees of freedom of both.
    `distance` is how far the covariates' means lie from the known ones: chi-square with `rank` degrees of
    freedom where the units are a random sample.
    """

    weights: Float
    codes: Int
    sizes: Float
    basis: Float
    to_slopes: Float
    distance: float

    @property
    def rank(self) -> int:
        return int(self.basis.shape[1])

    @property
    def spent(self) -> int:
        return self.rank + len(self.sizes) - 1

    def values(self, rows: Float) -> Float:
        """Rows with one value per unit: the mean of each is the adjusted mean, and s / sqrt(n) its error.

        Strata alone give the textbook variance within strata, covariates the sandwich variance (HC1).
        """
        n = rows.shape[1]
        residuals = _centre_within_strata(rows, self.codes, self.sizes)
        residuals -= (residuals @ self.basis) @ self.basis.T
        if self.rank:
            scale: Float = np.full(n, math.sqrt((n - 1.0) / (n - 1.0 - self.spent)))
        else:
            scale = np.sqrt((n - 1.0) / n * self.sizes / (self.sizes - 1.0))[self.codes]
        means: Float = rows @ self.weights / n
        return means[:, None] + scale * self.weights * residuals

    def slopes(self, values: Float) -> Float:
        """The regression slope of each covariate; 0 for one that is constant within strata."""
        slopes: Float = self.to_slopes @ (self.basis.T @ values)
        return slopes


def calibrate(
    covariates: Float,
    means: Float | None = None,
    codes: Int | None = None,
    shares: Float | None = None,
    labels: Array | None = None,
) -> Calibration:
    """Weights for units x covariates (possibly no column) and strata codes 0, 1, … (default: one stratum).

    Without `means` the covariates keep their sample means within strata; without `shares` the strata keep
    theirs. Then all weights are 1 and only the variance is adjusted. `labels` name the strata in errors.
    """
    n, k = covariates.shape
    strata = np.zeros(n, dtype=np.int64) if codes is None else codes
    sizes = np.bincount(strata).astype(np.float64)
    if codes is not None and sizes.min() < 2:
        name = int(sizes.argmin()) if labels is None else labels.tolist()[int(sizes.argmin())]
        raise InputError(
            f"stratum {name!r} has fewer than 2 users.", hint="Merge strata; use numbers as covariates."
        )
    target_shares = sizes / n if shares is None else shares
    centred = _centre_within_strata(covariates.T, strata, sizes).T
    spread = np.sqrt((centred**2).mean(axis=0))
    # A column that is constant up to rounding explains nothing; the others are scaled to unit variance.
    constant = spread <= 1e-12 * np.abs(covariates).max(axis=0, initial=0.0)
    scale = np.where(constant, 1.0, spread)
    left_vectors, singular_values, right_vectors = np.linalg.svd(
        np.where(constant, 0.0, centred / scale), full_matrices=False
    )
    rank = int(np.count_nonzero(singular_values > _RANK_TOLERANCE * singular_values.max(initial=0.0)))
    if n - len(sizes) - rank < 2:
        raise InputError(
            f"{n} users are too few for {k} covariate(s)"
            + (f" and {len(sizes)} strata." if codes is not None else ".")
        )
    basis, to_slopes = (
        left_vectors[:, :rank],
        right_vectors[:rank].T / singular_values[:rank] / scale[:, None],
    )
    weights = (target_shares * n / sizes)[strata]
    shift = np.zeros(rank)
    if means is not None:
        stratum_means = np.stack([np.bincount(strata, weights=column) / sizes for column in covariates.T])
        shift = (means - stratum_means @ target_shares) @ to_slopes
        weights = weights + n * (basis @ shift)
    return Calibration(weights, strata, sizes, basis, to_slopes, float(n**2 * (shift @ shift)))


def _centre_within_strata(rows: Float, codes: Int, sizes: Float) -> Float:
    """Rows minus their mean in each stratum."""
    if len(sizes) == 1:
        return np.asarray(rows - rows.mean(axis=1, keepdims=True), dtype=np.float64)
    centred: Float = np.empty(rows.shape)
    for row, centred_row in zip(rows, centred, strict=True):
        centred_row[:] = row - (np.bincount(codes, weights=row) / sizes)[codes]
    return centred


@dataclass(frozen=True)
class Adjusted:
    """An estimate with less variance than the plain mean, and the share of variance saved."""

    estimate: Estimate
    plain: Estimate
    variance_saved: float
    coefficients: tuple[float, ...] = ()


def covariate_adjusted(
    values: npt.ArrayLike,
    covariates: npt.ArrayLike,
    population_means: npt.ArrayLike,
    *,
    confidence: float = 0.95,
) -> Adjusted:
    """Mean adjusted by covariates (one column each) whose population means are known, as in CUPED.

    Covariates must not depend on the model: activity, past taste for popular items; for differences of two
    models also anything known before either was trained.
    """
    y = _finite_vector(values, "values")
    x = _float_array(covariates, "covariates")
    if x.ndim not in (1, 2) or len(x) != len(y):
        raise InputError(
            f"there are {len(y)} values and covariates of shape {x.shape}.",
            hint=f"Pass one row per value and one column per covariate: ({len(y)},) or ({len(y)}, k).",
        )
    x = x.reshape(len(y), -1)
    means = np.atleast_1d(_float_array(population_means, "population_means"))
    if means.shape != (x.shape[1],) or not (np.isfinite(x).all() and np.isfinite(means).all()):
        raise InputError(
            f"covariates and their means must be finite, one mean per covariate: {x.shape[1]} covariate(s), "
            f"means {means.tolist()}.",
            hint="Pass population_means in the order of the columns.",
        )
    calibration = calibrate(x, means)
    return _adjusted_result(calibration, y, confidence, tuple(calibration.slopes(y).tolist()))


def post_stratified(
    values: npt.ArrayLike,
    strata: npt.ArrayLike,
    shares: Mapping[object, float],
    *,
    confidence: float = 0.95,
) -> Adjusted:
    """Mean over strata (activity bands, countries) weighted by their known shares of the population."""
    y = _finite_vector(values, "values")
    labels, codes = np.unique(_check_strata(strata, len(y)), return_inverse=True)
    known = known_shares(labels, shares)
    return _adjusted_result(calibrate(np.empty((len(y), 0)), None, codes, known, labels), y, confidence, ())


def known_shares(labels: Array, shares: Mapping[object, float]) -> Float:
    """Shares in the order of the strata seen; both must name the same strata."""
    if not isinstance(shares, Mapping):
        raise InputError(
            f"shares came as {type(shares).__name__}.",
            hint="Pass {stratum: share}, such as {'new': 0.3, 'old': 0.7}.",
        )
    names = labels.tolist()
    if set(names) != {name for name, share in shares.items() if share != 0}:
        raise InputError(
            f"strata seen {names} and shares given {sorted(map(str, shares))} do not match.",
            hint="Merge strata, so that each has users here and a share of the population.",
        )
    values = np.array([shares[name] for name in names], dtype=np.float64)
    if not (values > 0).all() or not math.isclose(float(values.sum()), 1.0, rel_tol=1e-9):
        raise InputError(f"the shares must be positive and add up to 1, got {values.tolist()}.")
    return values


def _adjusted_result(
    calibration: Calibration, y: Float, confidence: float, coefficients: tuple[float, ...]
) -> Adjusted:
    n = len(y)
    plain = _mean_estimate(y, n - 1, confidence)
    estimate = _mean_estimate(calibration.values(y[None, :])[0], n - 1 - calibration.spent, confidence)
    return Adjusted(
        estimate, plain, variance_saved_share(estimate.standard_error, plain.standard_error), coefficients
    )


def _mean_estimate(values: Float, df: int, confidence: float) -> Estimate:
    mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))
    return Estimate(mean, error, t_interval(mean, error, df, confidence), len(values))


def variance_saved_share(error: float, unadjusted_error: float) -> float:
    """The share of variance that an adjustment saves; below 0 if it costs more than it explains."""
    return 1.0 - (error / unadjusted_error) ** 2 if unadjusted_error > 0 else 0.0


def _check_strata(strata: Any, n: int) -> Array:
    """The stratum of each of n values as an array: texts or numbers, none missing."""
    if isinstance(strata, Mapping) or not hasattr(strata, "__len__"):
        raise InputError(
            f"strata came as {type(strata).__name__}.",
            hint="Pass one label per value, in the order of values.",
        )
    labels = strata.tolist() if hasattr(strata, "tolist") else list(strata)
    if len(labels) != n:
        raise InputError(
            f"there are {n} values and {len(labels)} strata.",
            hint="Pass one label per value, in the order of values.",
        )
    bad_row = next((row for row, label in enumerate(labels) if not _is_label(label)), None)
    if bad_row is not None:
        raise InputError(
            f"strata hold {labels[bad_row]!r}.",
            row=bad_row,
            hint="A stratum is a text or a number; give values without one a stratum of their own.",
        )
    if len({isinstance(label, str) for label in labels}) > 1:
        kinds = sorted({type(label).__name__ for label in labels})
        raise IdTypeError(
            f"strata hold {' and '.join(kinds)}, so some would match no share.",
            hint="Make them one type, such as [str(label) for label in strata].",
        )
    return np.asarray(labels)


def _is_label(label: Any) -> bool:
    """Whether it is a text or a number other than NaN."""
    return isinstance(label, str) or (is_number(label) and not math.isnan(label))


def _float_array(values: npt.ArrayLike, what: str) -> Float:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        reason = str(error).rstrip(".")
        raise InputError(f"{what} must hold numbers: {reason}.", hint="Texts are for strata.") from None


def _finite_vector(values: npt.ArrayLike, what: str) -> Float:
    array = _float_array(values, what)
    if array.ndim != 1 or len(array) < 2 or not np.isfinite(array).all():
        raise InputError(f"{what} must be at least two finite numbers in one dimension.")
    return array
