"""Tests of normality. Users ask for them, but no method of this package needs normal values.

With thousands of users every metric fails such a test (a metric has bounds and atoms), while the mean of
thousands of values is still close to normal.
"""

from __future__ import annotations

import math

import numpy.typing as npt

from recsys.stats.inference_results import TestResult
from recsys.stats.paired_samples import pair
from recsys.stats.tests import has_spread, spread_notes

# Shapiro and Wilk's coefficients are accurate up to this sample size.
SHAPIRO_UP_TO = 5000


def normality(values: npt.ArrayLike) -> TestResult:
    """Shapiro-Wilk test, or D'Agostino-Pearson beyond 5,000 values; NaN if values are too few or constant."""
    from scipy.stats import normaltest, shapiro

    d = pair(values)
    sample = d.first
    n = len(sample)
    notes = d.notes + spread_notes(sample, "value")
    method = "Shapiro-Wilk" if n <= SHAPIRO_UP_TO else "D'Agostino-Pearson"
    mean = float(sample.mean())
    if n < 3 or not has_spread(sample):
        return TestResult(method, mean, math.nan, math.nan, n, notes=notes)
    result = shapiro(sample) if n <= SHAPIRO_UP_TO else normaltest(sample)
    return TestResult(method, mean, float(result.statistic), float(result.pvalue), n, notes=notes)
