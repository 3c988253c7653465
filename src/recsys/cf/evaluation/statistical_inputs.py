"""Sample names and result keys of the documents, shared by their statistical classes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from recsys.stats.alignment import Differences
from recsys.stats.effects import Effect
from recsys.stats.inference_results import Estimate, TestResult
from recsys.stats.paired_samples import pair


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


def pair_named_samples(sample1: Any, sample2: Any, samples: Mapping[str, Any]) -> Differences:
    """Two samples under any of the names the documents use for them."""
    by_name = {"sample1": sample1, "sample2": sample2}
    aliases = {
        "model_scores": "sample1",
        "metrics_a": "sample1",
        "baseline_scores": "sample2",
        "metrics_b": "sample2",
    }
    for alias, value in samples.items():
        if alias not in aliases:
            raise TypeError(f"unexpected keyword {alias!r}; samples are {', '.join(by_name | aliases)}.")
        if by_name[aliases[alias]] is not None:
            raise TypeError(f"{alias!r} and another name for the same sample were both given.")
        by_name[aliases[alias]] = value
    if any(value is None for value in by_name.values()):
        raise TypeError("two samples are needed: sample1 and sample2.")
    return pair(by_name["sample1"], by_name["sample2"])


def effect_or_zero(effect: Effect) -> float:
    """The effect size; 0.0 without variance, as in the documents, and NaN for a single pair."""
    if effect.n < 2:
        return math.nan
    return effect.value if math.isfinite(effect.value) else 0.0


def with_limit_p_value(result: TestResult) -> TestResult:
    """Without variance, p is the limit of the t-test, 0 or 1, as in scipy.stats.ttest_rel."""
    if not math.isinf(result.statistic):
        return result
    wrong_side = {"greater": result.statistic < 0, "less": result.statistic > 0}.get(
        result.alternative, False
    )
    return replace(result, p_value=float(wrong_side))


def interval_dict(result: Estimate, notes: tuple[str, ...]) -> dict[str, Any]:
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


def significance_dict(result: TestResult, level: float, statistic: str = "statistic") -> dict[str, Any]:
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
        "warnings": list(result.notes),
    }
