"""Statistical tests of per-user values, with the names and keys of documents 000 and 001; see `recsys.stats`.

Differences are first minus second; only `mean_improvement` and the `cohens_d` of `paired_t_test` say what the
new model gains: the second (metrics_b) over the first as in document 001, or `model_scores` over
`baseline_scores` as in document 000. What makes a number doubtful (fewer than 3 users, no variance, NaN) is a
typed warning and is also listed under `warnings`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.stats.comparison_table import Options
from recsys.stats.effects import (
    STANDARDISED,
    Effect,
    d_z,
    deviation,
    effect_notes,
    glass_delta,
    label_of,
    pooled_d,
    rank_biserial,
)
from recsys.stats.inference_results import Alternative, Estimate, TestResult, check_alpha
from recsys.stats.intervals import Method, statistic_interval, units_interval
from recsys.stats.multiple_comparisons import adjust, omnibus
from recsys.stats.paired_comparison import compare_tables
from recsys.stats.paired_tests import (
    normality,
    paired_t,
    sign_flip,
    sign_test,
    signed_rank_sums,
    statistic_permutation,
    wilcoxon,
)
from recsys.stats.pairing import Differences, pair, tables_of
from recsys.stats.resampling import check_resamples

_SAMPLE_NAMES = {
    **dict.fromkeys(("model_scores", "metrics_a"), "sample1"),
    **dict.fromkeys(("baseline_scores", "metrics_b"), "sample2"),
}
# The document calls whatever is below 0.5 small.
_STEPS = ((0.2, "small (negligible)"), *STANDARDISED[1:])


class StatisticalTester:
    """Tests, effect sizes, intervals and corrections at one significance level.

    >>> tester = StatisticalTester(significance_level=0.05)
    >>> result = tester.paired_t_test(sample1=[0.5, 0.7, 0.6, 0.9], sample2=[0.4, 0.5, 0.6, 0.6])
    >>> round(result["t_statistic"], 4), round(result["mean_diff"], 4), result["significant"]
    (2.3238, 0.15, False)
    """

    def __init__(self, significance_level: float = 0.05, *, alpha: float | None = None) -> None:
        self.significance_level = significance_level if alpha is None else alpha
        check_alpha(self.significance_level)

    @property
    def alpha(self) -> float:
        """The significance level."""
        return self.significance_level

    def paired_t_test(
        self,
        sample1: Any = None,
        sample2: Any = None,
        alternative: Alternative = "two-sided",
        **samples: Any,
    ) -> dict[str, Any]:
        """Paired t-test; samples may be named model_scores, baseline_scores or metrics_a, metrics_b.

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
        sample_pairs = _pair_named_samples(sample1, sample2, samples)
        result = paired_t(sample_pairs, alternative=alternative, confidence=1.0 - self.alpha)
        if math.isinf(result.statistic):
            # Without variance, p is the limit of the t-test, 0 or 1, as in scipy.stats.ttest_rel.
            wrong_side = {"greater": result.statistic < 0, "less": result.statistic > 0}
            result = replace(result, p_value=float(wrong_side.get(result.alternative, False)))
        new, old = sample_pairs.second, sample_pairs.first
        new, old = (old, new) if gains_first else (new, old)
        effect = d_z(Differences(new, old, keys=sample_pairs.keys))
        interval = result.interval
        return _significance_dict(result, self.alpha, "t_statistic") | {
            "mean_improvement": result.difference if gains_first else 0.0 - result.difference,
            "std_diff": deviation(sample_pairs.values),
            "cohens_d": effect.value if math.isfinite(effect.value) else 0.0,
            "cohens_d_kind": f"paired (d_z), {'first - second' if gains_first else 'second - first'}",
            "confidence_interval": (math.nan, math.nan)
            if interval is None
            else (interval.low, interval.high),
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
        t-test decides otherwise. Keys:
        statistic (as in SciPy: the smaller rank sum, or the positive one if one-sided), w_plus, w_minus,
        rank_biserial, and those of every test.
        """
        sample_pairs = _pair_named_samples(sample1, sample2, samples)
        chosen_method = {"approx": "normal", "asymptotic": "normal"}.get(method, method)
        result = wilcoxon(sample_pairs, alternative=alternative, method=chosen_method)
        plus, minus = signed_rank_sums(sample_pairs)
        return _significance_dict(result, self.alpha) | {
            "statistic": min(plus, minus) if alternative == "two-sided" else plus,
            "w_plus": plus,
            "w_minus": minus,
            "rank_biserial": rank_biserial(sample_pairs).value,
        }

    def sign_test(
        self,
        sample1: Any = None,
        sample2: Any = None,
        alternative: Alternative = "two-sided",
        *,
        dead_zone: float = 0.0,
        **samples: Any,
    ) -> dict[str, Any]:
        """Sign test: more winners than losers? Differences within the dead zone are ties and are left out.

        Keys: statistic (wins), wins, ties, losses, and those of every test.
        """
        sample_pairs = _pair_named_samples(sample1, sample2, samples)
        result = sign_test(sample_pairs, dead_zone=dead_zone, alternative=alternative)
        wins = int(result.statistic)
        return _significance_dict(result, self.alpha) | {
            "wins": wins,
            "ties": len(sample_pairs.first) - result.n,
            "losses": result.n - wins,
        }

    def cohens_d(self, sample1: Any = None, sample2: Any = None, **samples: Any) -> dict[str, Any]:
        """Cohen's d, first - second over the pooled standard deviation.

        0.0 without variance, NaN for a single pair. Keys: cohens_d (also as d), kind, interpretation,
        confidence_interval, n, warnings.
        """
        sample_pairs = _pair_named_samples(sample1, sample2, samples)
        return self._effect_dict(
            "cohens_d", sample_pairs, pooled_d(sample_pairs, confidence=1.0 - self.alpha)
        ) | {"kind": "pooled, first - second"}

    def glass_delta(self, sample1: Any = None, sample2: Any = None, **samples: Any) -> dict[str, Any]:
        """Glass's delta: first - second over the standard deviation of the second, the control.

        Keys: glass_delta (also as delta), interpretation, confidence_interval, n, warnings.
        """
        sample_pairs = _pair_named_samples(sample1, sample2, samples)
        result = self._effect_dict(
            "glass_delta", sample_pairs, glass_delta(sample_pairs, confidence=1.0 - self.alpha)
        )
        return result | {"delta": result["glass_delta"]}

    def confidence_interval(
        self, sample: Any, confidence: float | None = None, *, method: Method = "t"
    ) -> dict[str, Any]:
        """Interval of a mean by Student's t (or normal, bca, studentised, percentile).

        Keys: mean, lower, upper, margin_of_error (None where the interval is not symmetric), std_error,
        confidence, method, n, warnings.
        """
        observations = pair(sample)
        result = units_interval(
            observations.units,
            method=method,
            confidence=1.0 - self.alpha if confidence is None else confidence,
        )
        return _interval_dict(result, observations.notes)

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

    def normality_test(self, sample: Any) -> dict[str, Any]:
        """Shapiro-Wilk (D'Agostino-Pearson above 5,000 values); no method here requires normality.

        Keys: statistic, p_value, is_normal (not rejected), test, n, warnings.
        """
        result = normality(sample)
        return {
            "statistic": result.statistic,
            "p_value": result.p_value,
            "is_normal": bool(result.p_value >= self.alpha),
            "test": result.method,
            "n": result.n,
            "warnings": list(result.notes),
        }

    def compare_multiple_models(
        self,
        models: Mapping[str, Any],
        baseline: str | None = None,
        *,
        correction: str = "holm",
        test: str = "t",
        baseline_name: str | None = None,
    ) -> dict[str, Any]:
        """Every model against the baseline, or every pair if there is none, corrected over all comparisons.

        Keys: comparisons ({"als_vs_popularity": {p_value, adjusted_p_value, significant, …}}), omnibus
        (Friedman's test for 3 or more models, else None), ranking (highest mean first), baseline, correction,
        family, warnings.
        """
        baseline = baseline if baseline_name is None else baseline_name
        options = Options(
            test=test, correction="holm" if correction == "holm_bonferroni" else correction,
            confidence=1.0 - self.alpha,
        )  # fmt: skip
        tables = tables_of(models, "score")
        every_pair = [(second, first) for first, second in itertools.combinations(tables, 2)]
        pairs = every_pair if baseline is None else None
        result = compare_tables(tables, baseline=baseline, pairs=pairs, options=options)
        friedman = omnibus(tables, "score", alpha=self.alpha) if len(tables) > 2 else None
        comparisons = {}
        for row in result.rows:
            comparisons[f"{row.model}_vs_{row.baseline}"] = {
                "mean_diff": row.difference,
                "relative_percent": 100.0 * row.relative,
                "confidence_interval": (row.interval.low, row.interval.high),
                "statistic": row.statistic,
                "p_value": row.p_value,
                "adjusted_p_value": row.adjusted_p,
                "significant": bool(row.adjusted_p < self.alpha),
                "effect_size": row.effect.value,
                "effect_kind": row.effect.name,
                "wins": row.wins,
                "ties": row.ties,
                "losses": row.losses,
                "verdict": row.verdict,
                "warnings": list(row.notes),
            }
        return {
            "comparisons": comparisons,
            "omnibus": None
            if friedman is None
            else {
                "test": "Friedman",
                "statistic": friedman.statistic,
                "p_value": friedman.p_value,
                "significant": bool(friedman.p_value < self.alpha),
                "mean_ranks": dict(zip(friedman.names, friedman.mean_ranks, strict=True)),
                "critical_difference": friedman.critical_difference,
                "pairs": {f"{a}_vs_{b}": p for (a, b), p in friedman.pairs.items()},
            },
            "ranking": list(result.ranking()),
            "baseline": baseline,
            "correction": options.correction,
            "family": result.family,
            "warnings": list(result.notes),
        }

    def _effect_dict(self, name: str, sample_pairs: Differences, result: Effect) -> dict[str, Any]:
        value = result.value if math.isfinite(result.value) else 0.0  # as in the documents
        value = math.nan if result.n < 2 else value
        return {
            name: value,
            "d": value,
            "interpretation": label_of(result.value, _STEPS) if math.isfinite(result.value) else "undefined",
            "confidence_interval": (result.interval.low, result.interval.high),
            "n": result.n,
            "warnings": [*sample_pairs.notes, *effect_notes(result)],
        }

    def _correction_dict(self, p_values: Any, method: str, alpha: float | None) -> dict[str, Any]:
        level = self.alpha if alpha is None else alpha
        check_alpha(level)
        named = isinstance(p_values, Mapping)
        adjusted = adjust(list(p_values.values()) if named else p_values, method)
        significant = [bool(p < level) for p in adjusted]
        return {
            "adjusted_p_values": dict(zip(p_values, adjusted.tolist(), strict=True))
            if named
            else adjusted.tolist(),
            "significant": dict(zip(p_values, significant, strict=True)) if named else significant,
            "n_significant": sum(significant),
            "n_tests": len(significant),
            "alpha": level,
            "method": method,
        }


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
        options: dict[str, Any] = {
            "method": method,
            "confidence": confidence,
            "n_resamples": self.n_bootstrap,
            "rng": self.random_seed,
        }
        if statistic_fn is None or statistic_fn is np.mean:
            result = units_interval(observations.units, **options)
        else:
            result = statistic_interval(observations.first, statistic_fn, **options)
        return _interval_dict(result, observations.notes) | {"n_bootstrap": self.n_bootstrap}

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
        """Paired permutation test: the two values of a user are swapped.

        The statistic is the mean difference, whose p is that of all permutations and needs no drawing, or
        `statistic_fn(sample1, sample2)`, for which `n_permutations` are drawn. Keys: observed_diff,
        n_permutations, and those of every test.
        """
        sample_pairs = _pair_named_samples(sample1, sample2, samples)
        n = self.n_bootstrap if n_permutations is None else n_permutations
        check_resamples(n)
        if statistic_fn is None:
            result = sign_flip(sample_pairs, alternative=alternative)
        else:
            result = statistic_permutation(
                sample_pairs, statistic_fn, alternative=alternative, n_resamples=n, rng=self.random_seed
            )
        return _significance_dict(result, significance_level) | {
            "observed_diff": result.statistic,
            "n_permutations": n,
        }


class EffectSize(float):
    """An effect size: a float that also has the keys of `StatisticalTester.cohens_d`."""

    facts: Mapping[str, Any]

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> EffectSize:
        """The number under the key `cohens_d`, with all keys of `facts`."""
        effect_size = cls(facts["cohens_d"])
        effect_size.facts = facts
        return effect_size

    def __getitem__(self, key: str) -> Any:
        return self.facts[key]

    def keys(self) -> Any:
        """The available keys."""
        return self.facts.keys()


def paired_t_test(
    sample1: Any = None,
    sample2: Any = None,
    alternative: Alternative | float = "two-sided",
    *,
    alpha: float | None = None,
    significance_level: float = 0.05,
    **samples: Any,
) -> dict[str, Any]:
    """Paired t-test; see `StatisticalTester.paired_t_test` for the keys.

    A number as third argument is the significance level, as in document 001 (metrics_a, metrics_b, alpha).

    >>> old, new = [0.70, 0.80, 0.75, 0.82, 0.79], [0.72, 0.83, 0.76, 0.85, 0.81]
    >>> result = paired_t_test(old, new)
    >>> result["significant"], round(result["mean_improvement"], 3)
    (True, 0.022)
    """
    level = significance_level if alpha is None else alpha
    if not isinstance(alternative, str):
        level, alternative = alternative, "two-sided"
    return StatisticalTester(level).paired_t_test(sample1, sample2, alternative, **samples)


def cohens_d(sample1: Any = None, sample2: Any = None, **samples: Any) -> EffectSize:
    """Cohen's d, first - second over the pooled standard deviation: a float that also has keys.

    >>> d = cohens_d([1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 3.0])
    >>> f"{d:.3f}", d["interpretation"]
    ('0.775', 'medium')
    """
    return EffectSize.of(StatisticalTester().cohens_d(sample1, sample2, **samples))


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
    by_name = {"sample1": sample1, "sample2": sample2}
    for alias, value in samples.items():
        name = _SAMPLE_NAMES.get(alias)
        if name is None:
            raise TypeError(f"unexpected keyword {alias!r}; samples are {[*by_name, *_SAMPLE_NAMES]}.")
        if by_name[name] is not None:
            raise TypeError(f"{alias!r} and another name for the same sample were both given.")
        by_name[name] = value
    for name, value in by_name.items():
        if value is None:
            raise InputError(f"{name} is None.", hint="Pass two samples, with one number per user each.")
    return pair(*by_name.values())


def _interval_dict(result: Estimate, notes: tuple[str, ...]) -> dict[str, Any]:
    """The keys of every interval."""
    symmetric = result.interval.method in ("t", "normal")
    return {
        "mean": result.value,
        "estimate": result.value,
        "lower": result.interval.low,
        "upper": result.interval.high,
        "margin_of_error": result.interval.high - result.value if symmetric else None,
        "std_error": result.standard_error,
        "confidence": result.interval.confidence,
        "method": result.interval.method,
        "n": result.n,
        "warnings": [*notes, *result.notes],
    }


def _significance_dict(result: TestResult, level: float, statistic: str = "statistic") -> dict[str, Any]:
    """The keys of every test."""
    check_alpha(level)
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
        "warnings": list(result.notes),
    }
