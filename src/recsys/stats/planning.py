"""Before the comparison: how many users, how small an effect, how much power; and variance that can be saved.

A covariate or a stratum saves variance only where its mean or share in the population is known beyond the
users evaluated (or is equal by design, as in an A/B test): adjusting a sample to itself changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError
from recsys.stats.outcomes import Alternative, Estimate, check_alternative, t_interval
from recsys.types import Float


def power(
    effect: float, n: int, *, sd: float = 1.0, alpha: float = 0.05, alternative: Alternative = "two-sided"
) -> float:
    """Chance that a paired t-test with n users finds a mean difference of `effect`.

    >>> round(power(0.2, 199), 3)
    0.802
    """
    _check(alpha, sd, n, alternative)
    from scipy.special import nctdtr, stdtrit

    df = n - 1
    shift = effect / sd * math.sqrt(n)
    if alternative == "two-sided":
        reach = float(stdtrit(df, 1.0 - alpha / 2.0))
        return float(nctdtr(df, -shift, -reach) + nctdtr(df, shift, -reach))
    reach = float(stdtrit(df, 1.0 - alpha))
    return float(nctdtr(df, -shift if alternative == "greater" else shift, -reach))


def minimal_effect(
    n: int,
    *,
    sd: float = 1.0,
    alpha: float = 0.05,
    power: float = 0.8,
    alternative: Alternative = "two-sided",
) -> float:
    """The smallest mean difference that n users find with the given power."""
    from scipy.optimize import brentq

    _check(alpha, sd, n, alternative)
    _check_power(power, alpha)
    sign = -1.0 if alternative == "less" else 1.0

    def lacking(effect: float) -> float:
        return _power(sign * effect, n, alpha, alternative) - power

    high = 1.0 / math.sqrt(n)
    while lacking(high) < 0:
        high *= 2.0
    return float(brentq(lacking, 0.0, high, xtol=1e-14, rtol=1e-13)) * sd


def users_needed(
    effect: float,
    *,
    sd: float = 1.0,
    alpha: float = 0.05,
    power: float = 0.8,
    alternative: Alternative = "two-sided",
) -> int:
    """The fewest users that find a mean difference of `effect` with the given power.

    >>> users_needed(0.2)
    199
    """
    _check(alpha, sd, 2, alternative)
    _check_power(power, alpha)
    wrong_way = (
        effect == 0 or (alternative == "greater" and effect < 0) or (alternative == "less" and effect > 0)
    )
    if wrong_way or not math.isfinite(effect):
        raise InputError(
            f"no number of users finds an effect of {effect!r} with alternative {alternative!r}."
        )
    low, high = 1, 2
    while _power(effect / sd, high, alpha, alternative) < power:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        if _power(effect / sd, middle, alpha, alternative) < power:
            low = middle
        else:
            high = middle
    return high


# `power` is also the keyword of the two functions above, so they reach the function by another name.
def _power(effect: float, n: int, alpha: float, alternative: Alternative) -> float:
    return power(effect, n, alpha=alpha, alternative=alternative)


def _check(alpha: float, sd: float, n: int, alternative: str) -> None:
    check_alternative(alternative)
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie between 0 and 1, got {alpha!r}.")
    if not (sd > 0 and math.isfinite(sd)):
        raise InputError(f"the standard deviation must be positive, got {sd!r}.")
    if n < 2:
        raise InputError(f"at least 2 users are needed, got {n}.")


def _check_power(power: float, alpha: float) -> None:
    if not alpha < power < 1:
        raise InputError(f"power must lie between alpha ({alpha}) and 1, got {power!r}.")


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
    x = np.asarray(covariates, dtype=np.float64)
    if x.ndim not in (1, 2) or len(x) != len(y):
        raise InputError(f"there are {len(y)} values and covariates of shape {x.shape}: one row a value.")
    x = x.reshape(len(y), -1)
    known = np.atleast_1d(np.asarray(population_means, dtype=np.float64))
    if len(known) != x.shape[1] or not np.isfinite(x).all():
        raise InputError(
            f"need finite covariates and one population mean each: {x.shape[1]} and {len(known)}."
        )
    n, k = x.shape
    if n < k + 3:
        raise InputError(f"{n} users are too few for {k} covariate(s).")
    centred = x - x.mean(axis=0)
    slopes, *_ = np.linalg.lstsq(centred, y - y.mean(), rcond=None)
    rest = y - y.mean() - centred @ slopes
    value = float(y.mean() + (known - x.mean(axis=0)) @ slopes)
    error = math.sqrt(float(rest @ rest) / (n - 1 - k) / n)
    estimate = Estimate(value, error, t_interval(value, error, n - 1 - k, confidence), n)
    return _adjusted(estimate, y, confidence, tuple(float(s) for s in slopes))


def post_stratified(
    values: npt.ArrayLike,
    strata: npt.ArrayLike,
    shares: Mapping[object, float],
    *,
    confidence: float = 0.95,
) -> Adjusted:
    """Mean over strata (activity bands, countries) weighted by their known shares of the population."""
    y = _finite(values, "values")
    labels, codes = np.unique(np.asarray(strata), return_inverse=True)
    names = labels.tolist()
    if set(names) != {name for name, share in shares.items() if share > 0}:
        raise InputError(f"strata seen {names} and shares given {sorted(map(str, shares))} do not match.")
    weight = np.array([shares[name] for name in names], dtype=np.float64)
    if not math.isclose(float(weight.sum()), 1.0, rel_tol=1e-9):
        raise InputError(f"the shares must add up to 1, got {float(weight.sum())!r}.")
    sizes = np.bincount(codes).astype(np.float64)
    if sizes.min() < 2:
        raise InputError(
            f"stratum {names[int(sizes.argmin())]!r} has fewer than 2 users.", hint="Merge strata."
        )
    means = np.bincount(codes, weights=y) / sizes
    spread = np.bincount(codes, weights=(y - means[codes]) ** 2) / (sizes - 1.0)
    value = float(weight @ means)
    error = math.sqrt(float((weight**2 * spread / sizes).sum()))
    estimate = Estimate(value, error, t_interval(value, error, len(y) - len(names), confidence), len(y))
    return _adjusted(estimate, y, confidence, ())


def _adjusted(estimate: Estimate, y: Float, confidence: float, coefficients: tuple[float, ...]) -> Adjusted:
    error = float(y.std(ddof=1)) / math.sqrt(len(y))
    mean = float(y.mean())
    plain = Estimate(mean, error, t_interval(mean, error, len(y) - 1, confidence), len(y))
    saved = 1.0 - (estimate.standard_error / error) ** 2 if error > 0 else 0.0
    return Adjusted(estimate, plain, saved, coefficients)


def _finite(values: npt.ArrayLike, what: str) -> Float:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) < 2 or not np.isfinite(array).all():
        raise InputError(f"{what} must be at least two finite numbers in one dimension.")
    return array
