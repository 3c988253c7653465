"""Statistical tests of per-user values, with the names and keys of documents 000 and 001; see `recsys.stats`.

Differences are first minus second; only `mean_improvement` and the `cohens_d` of `paired_t_test` say what the
new model gains: the second (metrics_b) over the first as in document 001, or `model_scores` over
`baseline_scores` as in document 000. What makes a number doubtful (fewer than 3 users, no variance, NaN) is a
typed warning and is also listed under `warnings`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from recsys.errors import InputError
from recsys.records.facts import Note
from recsys.stats.bootstrap import check_resamples
from recsys.stats.corrections import adjust
from recsys.stats.effects import STANDARDISED, Effect, d_z, deviation, effect_notes, label_of, pooled_d
from recsys.stats.effects import glass_delta as glass_effect
from recsys.stats.mean_inference import Method, infer_mean
from recsys.stats.paired_tests import paired_t, sign_flip
from recsys.stats.pairing import Differences, pair
from recsys.stats.rank_tests import signed_rank_sums, wilcoxon
from recsys.stats.results import Alternative, Estimate, TestResult, check_alpha

# Every name of the first and of the second sample.
_SAMPLES = (("sample1", "model_scores", "metrics_a"), ("sample2", "baseline_scores", "metrics_b"))
# The document calls whatever is below 0.5 small.
_STEPS = ((0.2, "small (negligible)"), *STANDARDISED[1:])


class StatisticalTester:
    """Tests, effect sizes, intervals and corrections at one significance level.

    The two samples of a test are passed by position or by any name of the documents: sample1 and sample2,
    model_scores and baseline_scores, metrics_a and metrics_b.

    >>> tester = StatisticalTester(significance_level=0.05)
    >>> result = tester.paired_t_test(sample1=[0.5, 0.7, 0.6, 0.9], sample2=[0.4, 0.5, 0.6, 0.6])
    >>> round(result["t_statistic"], 4), round(result["mean_diff"], 4), result["significant"]
    (2.3238, 0.15, False)
    """

    def __init__(self, significance_level: float = 0.05) -> None:
        check_alpha(significance_level)
        self.significance_level = significance_level

    def paired_t_test(
        self,
        sample1: Any = None,
        sample2: Any = None,
        alternative: Alternative = "two-sided",
        **samples: Any,
    ) -> dict[str, Any]:
        """Paired t-test.

        Keys: t_statistic, p_value, significant, mean_diff (first - second), mean_improvement (second -
        first; model - baseline by those names), std_diff, cohens_d (paired, of mean_improvement; 0.0 without
        variance or for a single pair), cohens_d_kind, confidence_interval (of mean_diff), degrees_of_freedom,
        n, alternative, interpretation, warnings.

        >>> by_name = StatisticalTester().paired_t_test(
        ...     model_scores=[0.5, 0.7, 0.6, 0.9], baseline_scores=[0.4, 0.5, 0.6, 0.6]
        ... )
        >>> round(by_name["mean_diff"], 2), round(by_name["mean_improvement"], 2)
        (0.15, 0.15)
        """
        gains_first = not {"model_scores", "baseline_scores"}.isdisjoint(samples)
        pairs = _pair_named_samples(sample1, sample2, samples)
        result = paired_t(pairs, alternative=alternative, confidence=1.0 - self.significance_level)
        if math.isinf(result.statistic):
            # Without variance, p is the limit of the t-test, 0 or 1, as in scipy.stats.ttest_rel.
            wrong_side = {"greater": result.statistic < 0, "less": result.statistic > 0}
            result = replace(result, p_value=float(wrong_side.get(result.alternative, False)))
        new, old = (pairs.first, pairs.second) if gains_first else (pairs.second, pairs.first)
        effect = d_z(Differences(new, old, keys=pairs.keys)).value
        interval = result.interval
        return _test_dict(result, self.significance_level, "t_statistic") | {
            "mean_improvement": result.difference if gains_first else 0.0 - result.difference,
            "std_diff": deviation(pairs.values),
            "cohens_d": effect if math.isfinite(effect) else 0.0,
            "cohens_d_kind": f"paired (d_z), {'first - second' if gains_first else 'second - first'}",
            "confidence_interval": (interval.low, interval.high) if interval else (math.nan, math.nan),
            "degrees_of_freedom": result.df,
        }

    def wilcoxon_test(
        self,
        sample1: Any = None,
        sample2: Any = None,
        alternative: Alternative = "two-sided",
        *,
        method: str = "auto",
        **samples: Any,
    ) -> dict[str, Any]:
        """Wilcoxon signed-rank test: `exact` (ties included), or `normal` with continuity correction.

        `auto` is exact for up to 50 users that differ. The test is not about the mean, and on large samples
        it rejects too often when differences are skewed; from 500 users on a warning says so where a paired
        t-test decides otherwise. Keys: statistic (as in SciPy: the smaller rank sum, or the positive one if
        one-sided), w_plus, w_minus, and those of every test.
        """
        pairs = _pair_named_samples(sample1, sample2, samples)
        result = wilcoxon(pairs, alternative=alternative, method=method)
        plus, minus = signed_rank_sums(pairs)
        return _test_dict(result, self.significance_level) | {
            "statistic": min(plus, minus) if alternative == "two-sided" else plus,
            "w_plus": plus,
            "w_minus": minus,
        }

    def cohens_d(self, sample1: Any = None, sample2: Any = None, **samples: Any) -> dict[str, Any]:
        """Cohen's d, first - second over the pooled standard deviation.

        0.0 without variance, NaN for a single pair. Keys: cohens_d, interpretation, confidence_interval, n,
        warnings.
        """
        return self._effect_dict("cohens_d", pooled_d, _pair_named_samples(sample1, sample2, samples))

    def glass_delta(self, sample1: Any = None, sample2: Any = None, **samples: Any) -> dict[str, Any]:
        """Glass's delta: first - second over the standard deviation of the second, the control.

        Keys: glass_delta, and the others of `cohens_d`.
        """
        return self._effect_dict("glass_delta", glass_effect, _pair_named_samples(sample1, sample2, samples))

    def confidence_interval(self, sample: Any, confidence: float | None = None) -> dict[str, Any]:
        """Interval of a mean by Student's t.

        Keys: mean, lower, upper, margin_of_error, std_error, confidence, method, n, warnings.
        """
        observations = pair(sample)
        level = 1.0 - self.significance_level if confidence is None else confidence
        result = infer_mean(observations.units, method="t", confidence=level).estimate
        margin = {"margin_of_error": result.interval.high - result.value}
        return _interval_dict(result, observations.notes) | margin

    def bonferroni_correction(self, p_values: Any, alpha: float | None = None) -> dict[str, Any]:
        """Bonferroni's correction.

        Keys: adjusted_p_values, significant, n_significant, n_tests, alpha, method. `p_values` may
        be {name: p}; the results are then by name too.
        """
        return self._correction_dict(p_values, "bonferroni", alpha)

    def holm_bonferroni_correction(self, p_values: Any, alpha: float | None = None) -> dict[str, Any]:
        """Holm's correction, monotone; keys as in `bonferroni_correction`.

        >>> StatisticalTester().holm_bonferroni_correction([0.010, 0.011, 0.012])["significant"]
        [True, True, True]
        """
        return self._correction_dict(p_values, "holm", alpha)

    def _effect_dict(self, name: str, effect_of: Callable[..., Effect], pairs: Differences) -> dict[str, Any]:
        result = effect_of(pairs, confidence=1.0 - self.significance_level)
        is_finite = math.isfinite(result.value)
        value = result.value if is_finite else 0.0  # as in the documents
        return {
            name: math.nan if result.n < 2 else value,
            "interpretation": label_of(result.value, _STEPS) if is_finite else "undefined",
            "confidence_interval": (result.interval.low, result.interval.high),
            "n": result.n,
            "warnings": [*map(str, (*pairs.notes, *effect_notes(result)))],
        }

    def _correction_dict(self, p_values: Any, method: str, alpha: float | None) -> dict[str, Any]:
        level = self.significance_level if alpha is None else alpha
        check_alpha(level)
        named = isinstance(p_values, Mapping)
        adjusted = adjust(list(p_values.values()) if named else p_values, method).tolist()
        significant = [p < level for p in adjusted]
        return {
            "adjusted_p_values": dict(zip(p_values, adjusted, strict=True)) if named else adjusted,
            "significant": dict(zip(p_values, significant, strict=True)) if named else significant,
            "n_significant": sum(significant),
            "n_tests": len(significant),
            "alpha": level,
            "method": method,
        }


class BootstrapEstimator:
    """Bootstrap intervals of a mean and paired permutation tests; the same seed gives the same result.

    >>> estimator = BootstrapEstimator(n_bootstrap=1000, random_seed=42)
    >>> ci = estimator.bootstrap_ci(sample=[0.1, 0.4, 0.5, 0.2, 0.9], confidence=0.95)
    >>> ci["lower"] < 0.42 < ci["upper"]
    True
    """

    def __init__(self, n_bootstrap: int = 1000, random_seed: int = 42) -> None:
        self.n_bootstrap = n_bootstrap
        self.random_seed = random_seed

    def bootstrap_ci(
        self, sample: Any, confidence: float = 0.95, *, method: Method = "bca"
    ) -> dict[str, Any]:
        """Bootstrap interval of the mean; methods bca, percentile, studentised.

        Keys: lower, upper, mean, std_error, confidence, method, n, n_bootstrap, warnings.
        """
        observations = pair(sample)
        result = infer_mean(
            observations.units,
            method=method,
            confidence=confidence,
            n_resamples=self.n_bootstrap,
            rng=self.random_seed,
        ).estimate
        return _interval_dict(result, observations.notes) | {"n_bootstrap": self.n_bootstrap}

    def permutation_test(
        self,
        sample1: Any = None,
        sample2: Any = None,
        n_permutations: int | None = None,
        *,
        alternative: Alternative = "two-sided",
        significance_level: float = 0.05,
        **samples: Any,
    ) -> dict[str, Any]:
        """Paired permutation test of the mean difference: the two values of a user are swapped.

        The p-value is that of all permutations and needs no drawing, whatever `n_permutations` says. Keys:
        observed_diff, n_permutations, and those of every test.
        """
        pairs = _pair_named_samples(sample1, sample2, samples)
        n = self.n_bootstrap if n_permutations is None else n_permutations
        check_resamples(n)
        check_alpha(significance_level)
        result = sign_flip(pairs, alternative=alternative)
        return _test_dict(result, significance_level) | {
            "observed_diff": result.statistic,
            "n_permutations": n,
        }


def paired_t_test(
    sample1: Any = None,
    sample2: Any = None,
    alternative: Alternative | float = "two-sided",
    *,
    alpha: float = 0.05,
    **samples: Any,
) -> dict[str, Any]:
    """Paired t-test; see `StatisticalTester.paired_t_test` for the keys.

    A number as third argument is the significance level, as in document 001 (metrics_a, metrics_b, alpha).

    >>> old, new = [0.70, 0.80, 0.75, 0.82, 0.79], [0.72, 0.83, 0.76, 0.85, 0.81]
    >>> result = paired_t_test(old, new)
    >>> result["significant"], round(result["mean_improvement"], 3)
    (True, 0.022)
    """
    if not isinstance(alternative, str):
        alpha, alternative = alternative, "two-sided"
    return StatisticalTester(alpha).paired_t_test(sample1, sample2, alternative, **samples)


def cohens_d(sample1: Any = None, sample2: Any = None, **samples: Any) -> float:
    """Cohen's d, first - second over the pooled standard deviation; `StatisticalTester` has more on it.

    >>> round(cohens_d([1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 3.0]), 3)
    0.775
    """
    value: float = StatisticalTester().cohens_d(sample1, sample2, **samples)["cohens_d"]
    return value


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


def _pair_named_samples(sample1: Any, sample2: Any, samples: Mapping[str, Any]) -> Differences:
    """Two samples under any of the names the documents use for them."""
    unknown = samples.keys() - {name for names in _SAMPLES for name in names}
    if unknown:
        raise TypeError(
            f"unexpected keyword {min(unknown)!r}; the samples are {_SAMPLES[0]} and {_SAMPLES[1]}."
        )
    found = []
    for names, positional in zip(_SAMPLES, (sample1, sample2), strict=True):
        given = [one for one in (positional, *map(samples.get, names)) if one is not None]
        if not given:
            raise InputError(f"{names[0]} is None.", hint="Pass two samples, with one number per user each.")
        if len(given) > 1:
            raise TypeError(f"both names of one sample were given; {' and '.join(names)} are the same.")
        found += given
    return pair(*found)


def _interval_dict(result: Estimate, notes: tuple[Note, ...]) -> dict[str, Any]:
    """The keys of every interval."""
    return {
        "mean": result.value,
        "lower": result.interval.low,
        "upper": result.interval.high,
        "std_error": result.standard_error,
        "confidence": result.interval.confidence,
        "method": result.interval.method,
        "n": result.n,
        "warnings": [*map(str, (*notes, *result.notes))],
    }


def _test_dict(result: TestResult, level: float, statistic: str = "statistic") -> dict[str, Any]:
    """The keys of every test."""
    significant = bool(result.p_value < level)
    return {
        statistic: result.statistic,
        "p_value": result.p_value,
        "significant": significant,
        "mean_diff": result.difference,
        "n": result.n,
        "alternative": result.alternative,
        "method": result.method,
        "interpretation": "significant" if significant else "not significant",
        "warnings": [*map(str, result.notes)],
    }
