"""The result of debiasing: one estimate per metric and estimator, and facts about the weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recsys.errors import UnknownNameError
from recsys.evaluation.tables import Tabled
from recsys.stats.inference_results import Estimate

LOW_SHARE = 0.1  # effective over actual sample size below which a warning is printed


@dataclass(frozen=True)
class Diagnostics:
    """Facts about the weights: their number, effective sample size, share of the largest, number clipped."""

    n: int
    effective: float
    largest_share: float
    clipped: int
    lowest: float
    highest: float

    @property
    def share(self) -> float:
        """Effective over actual sample size."""
        return self.effective / self.n if self.n else 0.0

    def lines(self) -> list[str]:
        """The diagnostics in words."""
        sample = (
            f"{self.n:,} weighted observations are worth {self.effective:,.0f} equal ones "
            f"({self.share:.1%}); the largest weight decides {self.largest_share:.1%}"
        )
        lines = [sample, f"propensities from {self.lowest:.3g} to {self.highest:.3g}"]
        if self.clipped:
            lines.append(f"{self.clipped:,} weights were clipped, which biases towards the naive estimate")
        if self.share < LOW_SHARE:
            lines.append("few observations carry the estimate: clip the weights, or use snips")
        return lines


class Debiased(Tabled):
    """{(metric, estimator): Estimate}; prints as a table with the weights' diagnostics below."""

    def __init__(
        self,
        estimates: Mapping[tuple[str, str], Estimate],
        diagnostics: Diagnostics,
        *,
        notes: tuple[str, ...] = (),
        counts: Mapping[str, int] | None = None,
    ) -> None:
        self.estimates = dict(estimates)
        self.diagnostics = diagnostics
        self.notes = notes
        self.counts = dict(counts or {})

    def __getitem__(self, key: str | tuple[str, str]) -> Any:
        """One estimate by (metric, estimator); all estimates of a metric, or of the only metric, by name."""
        if isinstance(key, tuple):
            if key not in self.estimates:
                raise UnknownNameError("estimate", ", ".join(key), [", ".join(k) for k in self.estimates])
            return self.estimates[key]
        of_metric = {e: value for (m, e), value in self.estimates.items() if m == key}
        if of_metric:
            return of_metric
        of_estimator = [value for (_, e), value in self.estimates.items() if e == key]
        if len(of_estimator) != 1:
            names = [
                *dict.fromkeys(m for m, _ in self.estimates),
                *dict.fromkeys(e for _, e in self.estimates),
            ]
            raise UnknownNameError("estimate", key, names)
        return of_estimator[0]

    def _columns(self) -> dict[str, list[Any]]:
        """metric, estimator, value, low, high, std_error."""
        rows = [(*key, value) for key, value in self.estimates.items()]
        return {
            "metric": [r[0] for r in rows],
            "estimator": [r[1] for r in rows],
            "value": [r[2].value for r in rows],
            "low": [r[2].interval.low for r in rows],
            "high": [r[2].interval.high for r in rows],
            "std_error": [r[2].standard_error for r in rows],
        }

    def to_dict(self) -> dict[str, Any]:
        columns = self._columns()
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return {
            "estimates": rows,
            "diagnostics": {**self.diagnostics.__dict__, "share": self.diagnostics.share},
            "counts": self.counts,
            "notes": list(self.notes),
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def _footnotes(self) -> list[str]:
        return [*self.diagnostics.lines(), *self.notes]
