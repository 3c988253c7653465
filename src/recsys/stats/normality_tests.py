"""Do values look normal? Offered because it is asked for; no method here needs it.

With thousands of users every metric fails it (a metric has bounds and atoms), and the mean of thousands is
normal enough all the same.
"""

from __future__ import annotations

import math

import numpy.typing as npt

from recsys.stats.inference_results import TestResult
from recsys.stats.paired_samples import pair
from recsys.stats.tests import has_spread, spread_notes

# Shapiro and Wilk's coefficients are known to be accurate up to here.
SHAPIRO_UP_TO = 5000


def normality(values: npt.ArrayLike) -> TestResult:
    """Shapiro and Wilk's test, D'Agostino and Pearson's beyond 5,000 values; NaN if there is no test."""
    from scipy.stats import normaltest, shapiro

    d = pair(values)
    sample = d.first
    n = len(sample)
    notes = d.notes + spread_notes(sample, "value")
    method = "Shapiro-Wilk" if n <= SHAPIRO_UP_TO else "D'Agostino-Pearson"
    mean = float(sample.mean())
    if n < 3 or not has_spread(sample):
        return TestResult(method, mean, math.nan, math.nan, n, notes=notes)
    found = shapiro(sample) if n <= SHAPIRO_UP_TO else normaltest(sample)
    return TestResult(method, mean, float(found.statistic), float(found.pvalue), n, notes=notes)
