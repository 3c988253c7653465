"""`result.plot` and `result.chart`: the pictures of a result, as matplotlib Axes or as Vega-Lite charts.

Both draw from the same numbers by functions of the same names, so one class serves both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from recsys.comparison.compare import Comparison
from recsys.errors import InputError, UnknownNameError
from recsys.evaluation.options import groups_by
from recsys.evaluation.results import Evaluation
from recsys.metrics.requests import Request
from recsys.report import section_numbers
from recsys.report.report_data import ReportData, gathered


class EvaluationPictures:
    """bars, curve, distribution and strata of one evaluation, or of the models of a comparison."""

    def __init__(self, results: Evaluation | Comparison, room: str) -> None:
        self._results = results
        self._room = import_module(f"recsys.report.{room}")
        self._held: ReportData | None = None

    @property
    def _material(self) -> ReportData:
        if self._held is None:
            self._held = gathered(self._results)
        return self._held

    def bars(self, metrics: Any = None, **style: Any) -> Any:
        """Metrics side by side, with their intervals."""
        wanted = self._material.metrics if metrics is None else [self._key(m) for m in _several(metrics)]
        values = {
            n: {m: section_numbers.valued(self._material, n, m) for m in wanted} for n in self._material.names
        }
        return self._room.bars(values, baseline=self._material.baseline, **style)

    def curve(self, metric: str | None = None, **style: Any) -> Any:
        """A metric against the cut-off; the results must hold it at several."""
        found = section_numbers.curves(self._material)
        if not found:
            raise InputError(
                "the result holds no metric at several cut-offs.",
                hint='Evaluate with k=[5, 10, 20], or "ndcg@5" and "ndcg@10".',
            )
        wanted = self._material.metric.rsplit("@", 1)[0] if metric is None else metric.rsplit("@", 1)[0]
        if metric is None and wanted not in found:
            wanted = next(iter(found))
        if wanted not in found:
            raise UnknownNameError("curve", wanted, found)
        return self._room.curve(
            found[wanted], metric=f"{wanted}@k", baseline=self._material.baseline, **style
        )

    def distribution(self, metric: str | None = None, **style: Any) -> Any:
        """How a metric spreads over the users."""
        key = self._cased(metric)
        columns = {n: rows.columns[key] for n, rows in self._material.per_case.items()}
        return self._room.distribution(columns, metric=key, baseline=self._material.baseline, **style)

    def strata(
        self,
        by: Mapping[Any, Any] | Callable[[Any], Any] | None = None,
        metric: str | None = None,
        **style: Any,
    ) -> Any:
        """A metric by group of users: {user: group}, a function of the id, or the groups evaluated by."""
        key = self._cased(metric)
        material = self._material
        if by is None:
            values = section_numbers.evaluated_groups(material, key)
            sizes = {str(g): n for g, n in material.first(material.names[0]).by_sizes.items()}
        else:
            masks = groups_by(material.aligned.ids, by)
            values = {
                name: {
                    str(g): section_numbers.group_value(material, name, key, mask)
                    for g, mask in masks.items()
                }
                for name in material.names
            }
            sizes = {str(g): int(np.count_nonzero(mask)) for g, mask in masks.items()}
        if not values:
            raise InputError("the result was not evaluated by groups.", hint="Pass by={user: group}.")
        return self._room.strata(values, metric=key, sizes=sizes, baseline=material.baseline, **style)

    def _key(self, metric: str | None) -> str:
        if metric is None:
            return self._material.metric
        name = str(Request.parse(metric))
        if name not in self._material.metrics:
            raise UnknownNameError("metric of this result", metric, self._material.metrics)
        return name

    def _cased(self, metric: str | None) -> str:
        key = self._key(metric)
        if key not in self._material.per_case_metrics:
            raise InputError(f"{key} has no value for each user.", hint="Choose a metric of single users.")
        return key


class ComparisonPictures(EvaluationPictures):
    """The pictures of its models, and those of the differences: forest, winloss, duel and tradeoff."""

    def __init__(self, results: Comparison, room: str) -> None:
        super().__init__(results, room)
        self._rows = results.rows

    def forest(self, metric: str | None = None, **style: Any) -> Any:
        """Lifts (differences where there is no lift) with their intervals, one line a comparison."""
        rows = [r for r in self._rows if metric is None or r.metric == self._key(metric)]
        label = self._labels(rows)
        style = {"lower": [label(r) for r in rows if self._material.lower_is_better(r.metric)]} | style
        if all(math.isfinite(r.relative) and math.isfinite(r.relative_interval.low) for r in rows):
            held = {label(r): (r.relative, r.relative_interval.low, r.relative_interval.high) for r in rows}
            return self._room.forest(held, **({"unit": "%", "title": "lift"} | style))
        held = {label(r): (r.difference, r.interval.low, r.interval.high) for r in rows}
        return self._room.forest(held, **({"title": "difference"} | style))

    def winloss(self, metric: str | None = None, **style: Any) -> Any:
        """Users won, tied and lost, one bar a comparison."""
        rows = [r for r in self._rows if metric is None or r.metric == self._key(metric)]
        label = self._labels(rows)
        bases = {r.baseline for r in rows}
        counts = {label(r): (r.wins, r.ties, r.losses) for r in rows}
        return self._room.winloss(counts, baseline=next(iter(bases)) if len(bases) == 1 else None, **style)

    def duel(
        self, model: str | None = None, baseline: str | None = None, metric: str | None = None, **style: Any
    ) -> Any:
        """Win/loss map of a model (the best) against the baseline: users by their value under both."""
        key, material = self._cased(metric), self._material
        pair = (baseline or material.baseline or material.names[0], model or material.best)
        for name in pair:
            if name not in material.names:
                raise UnknownNameError("model", name, material.names)
        first, second = (material.aligned.tables[name][key] for name in pair)
        return self._room.duel(first, second, names=pair, metric=key, **style)

    def tradeoff(self, x: str, y: str | None = None, **style: Any) -> Any:
        """One point a model, of any two metrics: x across, y (the headline metric) up."""
        across, up = self._key(x), self._key(y)
        material = self._material
        points = {n: (material.value(n, across), material.value(n, up)) for n in material.names}
        return self._room.tradeoff(points, x=across, y=up, baseline=material.baseline, **style)

    def _labels(self, rows: Any) -> Callable[[Any], str]:
        """As much of model, baseline and metric as tells the rows apart."""
        metrics, bases = len({r.metric for r in rows}) > 1, len({r.baseline for r in rows}) > 1

        def label(row: Any) -> str:
            who = f"{row.model} – {row.baseline}" if bases else row.model  # noqa: RUF001
            return f"{who} · {row.metric}" if metrics else str(who)

        return label


def _several(metrics: Any) -> list[str]:
    return [metrics] if isinstance(metrics, str) else list(metrics)
