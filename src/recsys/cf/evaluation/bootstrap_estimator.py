"""Bootstrap intervals and paired permutation tests of documents 000 and 001."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from recsys.cf.evaluation.statistical_inputs import interval_dict, pair_named_samples, significance_dict
from recsys.stats.custom_statistic import statistic_interval, statistic_permutation
from recsys.stats.inference_results import Alternative
from recsys.stats.intervals import Method, units_interval
from recsys.stats.paired_samples import pair
from recsys.stats.tests import sign_flip


class BootstrapEstimator:
    """Bootstrap intervals and paired permutation tests; the same seed gives the same result.

    >>> estimator = BootstrapEstimator(n_bootstrap=1000, random_seed=42)
    >>> ci = estimator.bootstrap_ci(sample=[0.1, 0.4, 0.5, 0.2, 0.9], confidence=0.95)
    >>> ci["lower"] < 0.42 < ci["upper"]
    True
    """

    def __init__(
        self, n_bootstrap: int = 1000, random_seed: int = 42, *, random_state: int | None = None
    ) -> None:
        self.n_bootstrap = n_bootstrap
        self.random_seed = random_seed if random_state is None else random_state

    def bootstrap_ci(
        self,
        sample: Any,
        confidence: float = 0.95,
        *,
        statistic_fn: Callable[[Any], float] | None = None,
        method: Method = "bca",
    ) -> dict[str, Any]:
        """Bootstrap interval of the mean, or of `statistic_fn(sample)`; methods bca, percentile, studentised.

        Keys: lower, upper, mean, estimate, std_error, confidence, method, n, n_bootstrap, warnings.
        """
        observations = pair(sample)
        if statistic_fn is None or statistic_fn is np.mean:
            result = units_interval(
                observations.units(),
                method=method,
                confidence=confidence,
                n_resamples=self.n_bootstrap,
                rng=self.random_seed,
            )
        else:
            result = statistic_interval(
                observations.first,
                statistic_fn,
                method=method,
                confidence=confidence,
                n_resamples=self.n_bootstrap,
                rng=self.random_seed,
            )
        return interval_dict(result, observations.notes) | {"n_bootstrap": self.n_bootstrap}

    def confidence_interval(
        self,
        sample: Any,
        statistic_fn: Callable[[Any], float] | None = None,
        confidence: float = 0.95,
        *,
        method: Method = "bca",
    ) -> dict[str, Any]:
        """The same as `bootstrap_ci`, with the statistic as the second argument."""
        return self.bootstrap_ci(sample, confidence, statistic_fn=statistic_fn, method=method)

    def permutation_test(
        self,
        sample1: Any = None,
        sample2: Any = None,
        n_permutations: int | None = None,
        statistic_fn: Callable[[Any, Any], float] | None = None,
        *,
        alternative: Alternative = "two-sided",
        significance_level: float = 0.05,
        **samples: Any,
    ) -> dict[str, Any]:
        """Paired permutation test: the two values of a user are swapped at random; p is never 0.

        The statistic is the mean difference, or `statistic_fn(sample1, sample2)`. Keys: observed_diff,
        n_permutations, and those of every test.
        """
        sample_pairs = pair_named_samples(sample1, sample2, samples)
        n = self.n_bootstrap if n_permutations is None else n_permutations
        result = (
            sign_flip(sample_pairs, alternative=alternative, n_resamples=n, rng=self.random_seed)
            if statistic_fn is None
            else statistic_permutation(
                sample_pairs, statistic_fn, alternative=alternative, n_resamples=n, rng=self.random_seed
            )
        )
        return significance_dict(result, significance_level) | {
            "observed_diff": result.statistic,
            "n_permutations": n,
        }


def bootstrap_confidence_interval(
    metric_values: Sequence[float],
    n_bootstrap: int = 1000,
    confidence: float = 0.95,
    *,
    random_seed: int = 42,
) -> tuple[float, float]:
    """(lower, upper) of the mean by the percentile bootstrap; the same seed gives the same interval.

    If all values are equal, both bounds are that value, with a warning: the sample shows no spread.

    >>> lower, upper = bootstrap_confidence_interval([0.2, 0.4, 0.6, 0.8])
    >>> 0.2 <= lower < 0.5 < upper <= 0.8
    True
    """
    result = BootstrapEstimator(n_bootstrap, random_seed).bootstrap_ci(
        metric_values, confidence, method="percentile"
    )
    if math.isinf(result["lower"]):
        return result["mean"], result["mean"]
    return result["lower"], result["upper"]
