"""The seeds' words for samples and results, shared by their statistical classes."""

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
    """An effect size: the number itself, with what is known about it under the keys of the tester's dict."""

    facts: Mapping[str, Any]

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> EffectSize:
        """The number under `cohens_d`, with all keys."""
        made = cls(facts["cohens_d"])
        made.facts = facts
        return made

    def __getitem__(self, key: str) -> Any:
        return self.facts[key]

    def keys(self) -> Any:
        """The keys that can be asked for."""
        return self.facts.keys()


def paired(sample1: Any, sample2: Any, samples: Mapping[str, Any]) -> Differences:
    """Two samples by whichever names a seed gives them."""
    named = {"sample1": sample1, "sample2": sample2}
    words = {
        "model_scores": "sample1",
        "metrics_a": "sample1",
        "baseline_scores": "sample2",
        "metrics_b": "sample2",
    }
    for word, value in samples.items():
        if word not in words:
            raise TypeError(f"unexpected keyword {word!r}; samples are {', '.join(named | words)}.")
        if named[words[word]] is not None:
            raise TypeError(f"{word!r} and another name for the same sample were both given.")
        named[words[word]] = value
    if any(value is None for value in named.values()):
        raise TypeError("two samples are needed: sample1 and sample2.")
    return pair(named["sample1"], named["sample2"])


def defined(effect: Effect) -> float:
    """The effect, 0.0 without variance, as the seeds have it, NaN for one pair; the label says undefined."""
    if effect.n < 2:
        return math.nan
    return effect.value if math.isfinite(effect.value) else 0.0


def limit_of_t(found: TestResult) -> TestResult:
    """Without variance p is the limit of the t-test, 0 or 1: scipy.stats.ttest_rel, which the seeds name."""
    if not math.isinf(found.statistic):
        return found
    wrong_side = {"greater": found.statistic < 0, "less": found.statistic > 0}.get(found.alternative, False)
    return replace(found, p_value=float(wrong_side))


def interval_facts(found: Estimate, notes: tuple[str, ...]) -> dict[str, Any]:
    """What every interval answers."""
    symmetric = found.interval.method in ("t", "normal")
    return {
        "mean": found.value,
        "estimate": found.value,
        "lower": found.interval.low,
        "upper": found.interval.high,
        "margin_of_error": found.interval.high - found.value if symmetric else None,
        "std_error": found.standard_error,
        "confidence": found.interval.confidence,
        "method": found.interval.method,
        "n": found.n,
        "warnings": [*notes, *found.notes],
    }


def answers(found: TestResult, level: float, statistic: str = "statistic") -> dict[str, Any]:
    """What every test answers."""
    sure = bool(found.p_value < level)
    return {
        statistic: found.statistic,
        "p_value": found.p_value,
        "significant": sure,
        "mean_diff": found.difference,
        "n": found.n,
        "alternative": found.alternative,
        "method": found.method,
        "interpretation": "significant" if sure else "not significant",
        "warnings": list(found.notes),
    }
