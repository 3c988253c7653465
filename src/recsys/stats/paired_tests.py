"""Tests of one paired comparison: t, sign flips, bootstraps, the permutation of any statistic; normality.

All take Differences (or plain differences, one per unit) and work on units, so clustered cases never count as
independent. The null hypothesis is a mean difference of zero, unless a test says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from recsys.errors import check_choice
from recsys.records.arrays import Bool
from recsys.stats.bootstrap import (
    Rng,
    Units,
    bernoulli_signs,
    check_resamples,
    seed_from_rng,
)
from recsys.stats.intervals import check_not_nan
from recsys.stats.mean_inference import infer_mean, spread_notes
from recsys.stats.pairing import Differences, Paired, as_differences, as_paired, pair
from recsys.stats.results import (
    Alternative,
    SmallSampleWarning,
    TestResult,
    caution,
    check_alternative,
)
from recsys.stats.sign_flips import METHOD as FLIPS

# Shapiro and Wilk's coefficients are accurate up to this sample size.
SHAPIRO_UP_TO = 5000


def paired_t(
    differences: Paired | npt.ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
) -> TestResult:
    """Paired t-test over units (cluster-robust when cases are clustered).

    If all units differ by the same amount, t is infinite and p is that of sign flips, 2^(1 - n) two-sided.
    """
    check_alternative(alternative)
    d = as_paired(differences)
    return infer_mean(d.sample, 0.0, alternative, confidence=confidence, spent=d.spent).test(d.notes)


def sign_flip(
    differences: Paired | npt.ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
) -> TestResult:
    """Permutation test that swaps the two sides of each unit, and the interval of means it does not reject.

    The null hypothesis is that the two sides are exchangeable, so that differences are symmetric around zero.
    Nothing is drawn: p is that of all signs, exactly where few units differ (see `sign_flips`).

    >>> sign_flip([0.5, 0.5, 0.25, 0.5, 0.25, 1.0]).p_value
    0.03125
    """
    d = as_paired(differences)
    found = infer_mean(
        d.sample, 0.0, alternative, test="permutation", method=FLIPS, confidence=confidence
    ).test(d.notes)
    return replace(found, statistic=found.difference, df=None)


def bootstrap_test(
    differences: Differences | npt.ArrayLike,
    *,
    method: str = "studentised",
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    rng: Rng = 0,
) -> TestResult:
    """Studentised or BCa bootstrap of the mean difference; the test is the inversion of the interval.

    If most units do not differ and fewer than 60 do, bootstraps reject too often: the test is then that of
    sign flips, and a note says so.
    """
    check_choice("bootstrap test", method, ("studentised", "bca"))
    d = as_differences(differences)
    present = d.units.weights[0] != 0
    units = Units(d.units.keys[present], d.units.totals[:, present], d.units.weights[:, present])
    options: Any = {"n_resamples": n_resamples, "rng": rng, "confidence": confidence}
    found = infer_mean(units, 0.0, alternative, test=method, method=method, **options).test(d.notes)
    return replace(found, df=None)


def statistic_permutation(
    differences: Differences,
    statistic: Callable[[Any, Any], float],
    *,
    alternative: Alternative = "two-sided",
    n_resamples: int = 10_000,
    rng: Rng = 0,
) -> TestResult:
    """Swap the two sides of random pairs and call `statistic(first, second)` again; all swaps if few.

    A two-sided test uses the distance from zero, so the statistic should change sign when the sides swap.
    """
    check_alternative(alternative)
    check_resamples(n_resamples)
    d, n = differences, len(differences.first)
    notes = d.notes
    if n < 3:
        notes += (caution(SmallSampleWarning, "few_units", n=n, noun="unit", so="no_test"),)
    observed = check_not_nan(statistic(d.first, d.second))
    exact = n < 31 and 1 << n <= n_resamples
    swaps: Iterator[Bool]
    if exact:
        swaps = (bits.astype(bool) for bits in bernoulli_signs(n))
    else:
        stream = np.random.default_rng(seed_from_rng(rng))
        swaps = (stream.random((1, n)) < 0.5 for _ in range(n_resamples))
    permuted = np.array(
        [
            float(statistic(np.where(swap, d.second, d.first), np.where(swap, d.first, d.second)))
            for block in swaps
            for swap in block
        ]
    )
    slack = 1e-12 * abs(observed)  # values that are equal but for rounding are equal
    if alternative == "greater":
        is_extreme = permuted >= observed - slack
    elif alternative == "less":
        is_extreme = permuted <= observed + slack
    else:
        is_extreme = np.abs(permuted) >= abs(observed) - slack
    count = int(np.count_nonzero(is_extreme))
    p = count / len(permuted) if exact else (1.0 + count) / (1.0 + len(permuted))
    name = f"paired permutation ({'exact' if exact else f'{n_resamples} draws'})"
    return TestResult(name, float(d.values.mean()), observed, p, n, alternative, notes=notes)


def normality(values: npt.ArrayLike) -> TestResult:
    """Shapiro-Wilk test, or D'Agostino-Pearson beyond 5,000 values; NaN if values are too few or constant."""
    from scipy.stats import normaltest, shapiro

    d = pair(values)
    sample = d.first
    n = len(sample)
    notes = d.notes + spread_notes(d.sample, "value")
    method = "Shapiro-Wilk" if n <= SHAPIRO_UP_TO else "D'Agostino-Pearson"
    mean = float(sample.mean())
    if n < 3 or not d.sample.varies:
        return TestResult(method, mean, math.nan, math.nan, n, notes=notes)
    result = shapiro(sample) if n <= SHAPIRO_UP_TO else normaltest(sample)
    return TestResult(method, mean, float(result.statistic), float(result.pvalue), n, notes=notes)
