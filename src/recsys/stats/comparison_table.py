"""The result of a comparison: one row per model and metric, and the table of the rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from recsys.errors import NotDefinedError, UnknownNameError
from recsys.stats.comparison_options import Options
from recsys.stats.effects import Effect
from recsys.stats.equivalence_tests import BayesResult, EquivalenceResult
from recsys.stats.inference_results import Interval
from recsys.stats.planning import minimal_effect, users_needed
from recsys.stats.runs import RunsResult
from recsys.types import Array

Triple = tuple[str, str, str]


@dataclass(frozen=True)
class Row:
    """One model against the baseline on one metric; `difference` is model minus baseline.

    `relative` is the lift over the baseline's mean. Wins, ties and losses count units; a win is better.
    `variance_saved` is the share of the difference's variance that covariates and strata removed; NaN without
    covariates and strata, or where the metric is not adjusted.
    """

    model: str
    baseline: str
    metric: str
    value: float
    baseline_value: float
    difference: float
    interval: Interval
    relative: float
    relative_interval: Interval
    statistic: float
    p_value: float
    adjusted_p: float
    effect: Effect
    wins: int
    ties: int
    losses: int
    n_cases: int
    n_units: int
    test: str
    standard_error: float = math.nan
    verdict: str = ""
    equivalence: EquivalenceResult | None = None
    non_inferiority: EquivalenceResult | None = None
    bayes: BayesResult | None = None
    runs: RunsResult | None = None
    variance_saved: float = math.nan
    notes: tuple[str, ...] = ()

    def minimal_effect(self, *, power: float = 0.8, alpha: float = 0.05) -> float:
        """The smallest difference that this many users with this spread detect with the given power."""
        return minimal_effect(self.n_units, sd=self._standard_deviation(), alpha=alpha, power=power)

    def users_needed(
        self, difference: float | None = None, *, power: float = 0.8, alpha: float = 0.05
    ) -> int | None:
        """How many users detect this difference (default: the one seen); None for a difference of 0."""
        if not self.effect.name:
            raise NotDefinedError(
                f"{self.metric} is no mean over users, so more of them change what is estimated."
            )
        effect = self.difference if difference is None else difference
        return (
            users_needed(abs(effect), sd=self._standard_deviation(), alpha=alpha, power=power)
            if effect
            else None
        )

    def _standard_deviation(self) -> float:
        if self.runs is not None:
            raise NotDefinedError(
                "more users do not lower the spread between runs, so users alone cannot be planned with.",
                hint="Compare one run of each model, or plan the runs.",
            )
        if not self.standard_error > 0 or self.n_units < 2:
            raise NotDefinedError(
                f"{self.metric} does not vary between users here, so there is nothing to plan with."
            )
        return self.standard_error * math.sqrt(self.n_units)


@dataclass(frozen=True)
class ComparisonTable:
    """All rows, the family that p-values are corrected over, and the cases each model lacks."""

    rows: tuple[Row, ...]
    family: str
    options: Options
    missing: Mapping[str, Array] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __getitem__(self, key: tuple[str, str]) -> Row:
        """The first row of (model, metric)."""
        for row in self.rows:
            if (row.model, row.metric) == key:
                return row
        raise UnknownNameError("model and metric", key, (f"{r.model}, {r.metric}" for r in self.rows))

    def ranking(self, metric: str | None = None) -> tuple[str, ...]:
        """Models by their value on a metric (default: the first one), best first."""
        name = metric or self.rows[0].metric
        values = {r.baseline: r.baseline_value for r in self.rows if r.metric == name}
        values |= {r.model: r.value for r in self.rows if r.metric == name}
        ordered = sorted(values, key=lambda model: values[model], reverse=True)
        return tuple(reversed(ordered) if name in self.options.lower_is_better else ordered)
