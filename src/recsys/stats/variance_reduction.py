"""Means brought to known covariates and known shares of strata: CUPED and post-stratification are one thing.

Both are a regression of the values on covariates and strata, read off at their known means. That is a
weighted mean of the values, with weights `g` that no value enters into (generalised regression, or
calibration, in survey sampling), and its error is that of the residuals times `g`. So one value a unit can be
made whose mean is the adjusted mean and whose s / sqrt(n) is its error, and any test of a mean may have it.
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
_RANK = 1e-10


@dataclass(frozen=True, eq=False)
class Calibration:
    """Weights that bring covariates and strata to what is known of them, and what they leave unexplained.

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
        """Rows of one value a unit: the mean of each is adjusted, and s / sqrt(n) its error.

        Strata alone give the textbook's variance within strata, covariates a regression's sandwich (HC1).
        """
        n = rows.shape[1]
        rest = _within(rows, self.codes, self.sizes)
        rest -= (rest @ self.basis) @ self.basis.T
        if self.rank:
            scale: Float = np.full(n, math.sqrt((n - 1.0) / (n - 1.0 - self.spent)))
        else:
            scale = np.sqrt((n - 1.0) / n * self.sizes / (self.sizes - 1.0))[self.codes]
        means: Float = rows @ self.weights / n
        return means[:, None] + scale * self.weights * rest

    def slopes(self, values: Float) -> Float:
        """What one more of each covariate brings; 0 for one that is constant within strata."""
        found: Float = self.to_slopes @ (self.basis.T @ values)
        return found


def calibrate(
    covariates: Float,
    means: Float | None = None,
    codes: Int | None = None,
    shares: Float | None = None,
    labels: Array | None = None,
) -> Calibration:
    """Weights for units x covariates (no column is fine) and strata codes 0, 1, … (one stratum without).

    Without `means` the covariates stay where they are within strata, without `shares` so do the strata; then
    all weights are 1 and only the variance is adjusted. `labels` name the strata in errors.
    """
    n, k = covariates.shape
    strata = np.zeros(n, dtype=np.int64) if codes is None else codes
    sizes = np.bincount(strata).astype(np.float64)
    if codes is not None and sizes.min() < 2:
        name = int(sizes.argmin()) if labels is None else labels.tolist()[int(sizes.argmin())]
        raise InputError(
            f"stratum {name!r} has fewer than 2 users.", hint="Merge strata; use numbers as covariates."
        )
    known = sizes / n if shares is None else shares
    centred = _within(covariates.T, strata, sizes).T
    spread = np.sqrt((centred**2).mean(axis=0))
    # What is constant up to rounding explains nothing; the rest is brought to one scale before it is split.
    dead = spread <= 1e-12 * np.abs(covariates).max(axis=0, initial=0.0)
    scale = np.where(dead, 1.0, spread)
    left, size, right = np.linalg.svd(np.where(dead, 0.0, centred / scale), full_matrices=False)
    rank = int(np.count_nonzero(size > _RANK * size.max(initial=0.0)))
    if n - len(sizes) - rank < 2:
        raise InputError(
            f"{n} users are too few for {k} covariate(s)"
            + (f" and {len(sizes)} strata." if codes is not None else ".")
        )
    basis, to_slopes = left[:, :rank], right[:rank].T / size[:rank] / scale[:, None]
    weights = (known * n / sizes)[strata]
    pull = np.zeros(rank)
    if means is not None:
        here = np.stack([np.bincount(strata, weights=column) / sizes for column in covariates.T])
        pull = (means - here @ known) @ to_slopes
        weights = weights + n * (basis @ pull)
    return Calibration(weights, strata, sizes, basis, to_slopes, float(n**2 * (pull @ pull)))


def _within(rows: Float, codes: Int, sizes: Float) -> Float:
    """Rows less their mean in each stratum."""
    if len(sizes) == 1:
        return np.asarray(rows - rows.mean(axis=1, keepdims=True), dtype=np.float64)
    out: Float = np.empty(rows.shape)
    for row, into in zip(rows, out, strict=True):
        into[:] = row - (np.bincount(codes, weights=row) / sizes)[codes]
    return out


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
    """Mean adjusted by covariates (one column each) whose population means are known, as CUPED does.

    Covariates must not depend on the model: activity, past popularity taste; for differences of two models
    also anything known before either was trained.
    """
    y = _finite(values, "values")
    x = _numbers(covariates, "covariates")
    if x.ndim not in (1, 2) or len(x) != len(y):
        raise InputError(
            f"there are {len(y)} values and covariates of shape {x.shape}.",
            hint=f"Pass one row a value and one column a covariate: ({len(y)},) or ({len(y)}, k).",
        )
    x = x.reshape(len(y), -1)
    known = np.atleast_1d(_numbers(population_means, "population_means"))
    if known.shape != (x.shape[1],) or not (np.isfinite(x).all() and np.isfinite(known).all()):
        raise InputError(
            f"covariates and their means must be finite, one mean a covariate: {x.shape[1]} covariate(s), "
            f"means {known.tolist()}.",
            hint="Pass population_means in the order of the columns.",
        )
    found = calibrate(x, known)
    return _adjusted(found, y, confidence, tuple(found.slopes(y).tolist()))


def post_stratified(
    values: npt.ArrayLike,
    strata: npt.ArrayLike,
    shares: Mapping[object, float],
    *,
    confidence: float = 0.95,
) -> Adjusted:
    """Mean over strata (activity bands, countries) weighted by their known shares of the population."""
    y = _finite(values, "values")
    labels, codes = np.unique(_labels(strata, len(y)), return_inverse=True)
    known = known_shares(labels, shares)
    return _adjusted(calibrate(np.empty((len(y), 0)), None, codes, known, labels), y, confidence, ())


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
    known = np.array([shares[name] for name in names], dtype=np.float64)
    if not (known > 0).all() or not math.isclose(float(known.sum()), 1.0, rel_tol=1e-9):
        raise InputError(f"the shares must be positive and add up to 1, got {known.tolist()}.")
    return known


def _adjusted(found: Calibration, y: Float, confidence: float, coefficients: tuple[float, ...]) -> Adjusted:
    n = len(y)
    plain = _estimate(y, n - 1, confidence)
    estimate = _estimate(found.values(y[None, :])[0], n - 1 - found.spent, confidence)
    return Adjusted(estimate, plain, saved(estimate.standard_error, plain.standard_error), coefficients)


def _estimate(values: Float, df: int, confidence: float) -> Estimate:
    mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))
    return Estimate(mean, error, t_interval(mean, error, df, confidence), len(values))


def saved(error: float, plain: float) -> float:
    """The share of variance that an adjustment saves; below 0 where it costs more than it explains."""
    return 1.0 - (error / plain) ** 2 if plain > 0 else 0.0


def _labels(strata: Any, n: int) -> Array:
    """The stratum of each of n values: texts or numbers, none missing."""
    if isinstance(strata, Mapping) or not hasattr(strata, "__len__"):
        raise InputError(
            f"strata came as {type(strata).__name__}.", hint="Pass one label a value, in the order of values."
        )
    given = strata.tolist() if hasattr(strata, "tolist") else list(strata)
    if len(given) != n:
        raise InputError(
            f"there are {n} values and {len(given)} strata.",
            hint="Pass one label a value, in the order of values.",
        )
    odd = next((at for at, label in enumerate(given) if not _is_label(label)), None)
    if odd is not None:
        raise InputError(
            f"strata hold {given[odd]!r}.",
            row=odd,
            hint="A stratum is a text or a number; give values without one a stratum of their own.",
        )
    if len({isinstance(label, str) for label in given}) > 1:
        kinds = sorted({type(label).__name__ for label in given})
        raise IdTypeError(
            f"strata hold {' and '.join(kinds)}, so some would match no share.",
            hint="Make them one type, such as [str(label) for label in strata].",
        )
    return np.asarray(given)


def _is_label(label: Any) -> bool:
    """Whether it is a text, or a number that is one."""
    return isinstance(label, str) or (is_number(label) and not math.isnan(label))


def _numbers(values: npt.ArrayLike, what: str) -> Float:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        said = str(error).rstrip(".")
        raise InputError(f"{what} must hold numbers: {said}.", hint="Texts are for strata.") from None


def _finite(values: npt.ArrayLike, what: str) -> Float:
    array = _numbers(values, what)
    if array.ndim != 1 or len(array) < 2 or not np.isfinite(array).all():
        raise InputError(f"{what} must be at least two finite numbers in one dimension.")
    return array
