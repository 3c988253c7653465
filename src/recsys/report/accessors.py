"""`result.plot` and `result.chart`: the pictures of a result, as matplotlib Axes or as Vega-Lite charts.

Both draw from the same numbers by functions of the same names, so one class serves both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from recsys.comparison.compare import Comparison
from recsys.errors import InputError, UnknownNameError
from recsys.evaluation.groups import masks_by_label
from recsys.evaluation.results import Evaluation
from recsys.metrics.registry import Request
from recsys.report import section_numbers
from recsys.report.report_data import ReportData, gather_report_data
from recsys.stats.comparison_table import Row
from recsys.types import cached_property


class EvaluationPictures:
    """bars, curve, distribution and strata of one evaluation, or of the models of a comparison."""

    def __init__(self, results: Evaluation | Comparison, renderer: str) -> None:
        self._results = results
        self._module = import_module(f"recsys.report.{renderer}")  # charts or figures

    @cached_property
    def _data(self) -> ReportData:
        return gather_report_data(self._results)

    def bars(self, metrics: Any = None, **style: Any) -> Any:
        """Metrics side by side, with their intervals."""
        if metrics is None:
            keys = self._data.metrics
        else:
            keys = [self._key(m) for m in ([metrics] if isinstance(metrics, str) else metrics)]
        values = {
            n: {m: section_numbers.value_with_interval(self._data, n, m) for m in keys}
            for n in self._data.names
        }
        return self._module.bars(values, baseline=self._data.baseline, **style)

    def curve(self, metric: str | None = None, **style: Any) -> Any:
        """A metric against the cut-off; the results must hold the metric at several cut-offs."""
        curves = section_numbers.curves(self._data)
        if not curves:
            raise InputError(
                "the result holds no metric at several cut-offs.",
                hint='Evaluate with k=[5, 10, 20], or "ndcg@5" and "ndcg@10".',
            )
        family = (self._data.metric if metric is None else metric).rsplit("@", 1)[0]
        if metric is None and family not in curves:
            family = next(iter(curves))
        if family not in curves:
            raise UnknownNameError("curve", family, curves)
        return self._module.curve(curves[family], metric=f"{family}@k", baseline=self._data.baseline, **style)

    def distribution(self, metric: str | None = None, **style: Any) -> Any:
        """How a metric spreads over the users."""
        key = self._per_user_key(metric)
        columns = {n: rows.columns[key] for n, rows in self._data.per_case.items()}
        return self._module.distribution(columns, metric=key, baseline=self._data.baseline, **style)

    def strata(
        self,
        by: Mapping[Any, Any] | Callable[[Any], Any] | None = None,
        metric: str | None = None,
        **style: Any,
    ) -> Any:
        """A metric by group of users.

        Args:
            by: {user: group} or a function of the user id; by default the groups of the evaluation.
            metric: the headline metric by default.
            style: passed on to the chart or figure.
        """
        key = self._per_user_key(metric)
        data = self._data
        if by is None:
            values, sizes = section_numbers.evaluated_groups(data, key)
        else:
            masks = masks_by_label(data.aligned.ids, by)
            values, sizes = section_numbers.group_values(data, key, {str(g): m for g, m in masks.items()})
        if not values:
            raise InputError("the result was not evaluated by groups.", hint="Pass by={user: group}.")
        return self._module.strata(values, metric=key, sizes=sizes, baseline=data.baseline, **style)

    def _key(self, metric: str | None) -> str:
        if metric is None:
            return self._data.metric
        name = str(Request.parse(metric))
        if name not in self._data.metrics:
            raise UnknownNameError("metric of this result", metric, self._data.metrics)
        return name

    def _per_user_key(self, metric: str | None) -> str:
        key = self._key(metric)
        if key not in self._data.per_case_metrics:
            raise InputError(f"{key} has no value for each user.", hint="Choose a metric of single users.")
        return key


class ComparisonPictures(EvaluationPictures):
    """The pictures of its models, and those of the differences: forest, winloss, duel and tradeoff."""

    def __init__(self, results: Comparison, renderer: str) -> None:
        super().__init__(results, renderer)
        self._rows = results.rows

    def forest(self, metric: str | None = None, **style: Any) -> Any:
        """Lifts (differences where there is no lift) with their intervals, one line per comparison."""
        rows = self._labelled_rows(metric)
        values, unit = section_numbers.lifts_or_differences(rows)
        lower = [label for label, r in rows.items() if self._data.lower_is_better(r.metric)]
        options = {"unit": unit, "title": "lift" if unit else "difference", "lower": lower} | style
        return self._module.forest(values, **options)

    def winloss(self, metric: str | None = None, **style: Any) -> Any:
        """Users won, tied and lost, one bar per comparison."""
        rows = self._labelled_rows(metric)
        bases = {r.baseline for r in rows.values()}
        counts = {label: (r.wins, r.ties, r.losses) for label, r in rows.items()}
        return self._module.winloss(counts, baseline=next(iter(bases)) if len(bases) == 1 else None, **style)

    def duel(
        self, model: str | None = None, baseline: str | None = None, metric: str | None = None, **style: Any
    ) -> Any:
        """Win/loss map of a model (the best by default) against the baseline: users by their two values."""
        key, data = self._per_user_key(metric), self._data
        pair = (baseline or data.baseline or data.names[0], model or data.best)
        for name in pair:
            if name not in data.names:
                raise UnknownNameError("model", name, data.names)
        first, second = (data.aligned.tables[name][key] for name in pair)
        return self._module.duel(first, second, names=pair, metric=key, **style)

    def tradeoff(self, x: str, y: str | None = None, **style: Any) -> Any:
        """One point per model, of any two metrics: x across, y (by default the headline metric) up."""
        across, up = self._key(x), self._key(y)
        data = self._data
        points = {n: (data.value(n, across), data.value(n, up)) for n in data.names}
        return self._module.tradeoff(points, x=across, y=up, baseline=data.baseline, **style)

    def _labelled_rows(self, metric: str | None) -> dict[str, Row]:
        """The rows by a label that says as much of model, baseline and metric as tells them apart."""
        rows = [r for r in self._rows if metric is None or r.metric == self._key(metric)]
        metrics, bases = len({r.metric for r in rows}) > 1, len({r.baseline for r in rows}) > 1
        labelled = {}
        for row in rows:
            models = f"{row.model} – {row.baseline}" if bases else row.model  # noqa: RUF001
            labelled[f"{models} · {row.metric}" if metrics else models] = row
        return labelled
