"""`result.plot` and `result.chart`: the pictures of a result, as matplotlib Axes or as Vega-Lite charts.

Both draw from the same numbers by functions of the same names, so one class serves both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from recsys.comparison.compare import Comparison
from recsys.comparison.rank import rank
from recsys.errors import InputError, UnknownNameError, check_choice
from recsys.evaluation.groups import masks_by_label
from recsys.evaluation.results import Evaluation
from recsys.metrics.registry import Request
from recsys.records.arrays import cached_property
from recsys.report import section_numbers
from recsys.report.study import Study, make_study
from recsys.stats.comparison_table import Row
from recsys.stats.samples import FEW


class EvaluationPictures:
    """bars, curve, cutoffs, distribution and strata of an evaluation, or of the models of a comparison."""

    def __init__(self, results: Evaluation | Comparison, renderer: str) -> None:
        self._results = results
        self._module = import_module(f"recsys.report.{renderer}")  # charts or figures

    @cached_property
    def _data(self) -> Study:
        return make_study(self._results)

    def _draw(self, name: str, *values: Any, **options: Any) -> Any:
        """Return a picture with the colours that each model has in all pictures of these results."""
        own = {"baseline": self._data.baseline, "order": self._data.names}
        return getattr(self._module, name)(*values, **(own | options))

    def bars(self, metrics: Any = None, **style: Any) -> Any:
        """Metrics side by side, with their intervals.

        Args:
            metrics: by default those with values between 0 and 1, which one axis can hold.
            style: passed on to the chart or figure.
        """
        if metrics is None:
            bounds = {m: self._data.requests[m].metric.bounds for m in self._data.metrics}
            keys = [m for m, ends in bounds.items() if ends == (0.0, 1.0)] or [self._data.headline]
        else:
            keys = [self._key(m) for m in ([metrics] if isinstance(metrics, str) else metrics)]
        values = {n: {m: self._data.intervals[n, m] for m in keys} for n in self._data.names}
        return self._draw("bars", values, **style)

    def curve(self, metric: str | None = None, **style: Any) -> Any:
        """Return a metric against the cut-off; the results must hold the metric at several cut-offs."""
        curves = self._curves()
        family = (self._data.headline if metric is None else metric).rsplit("@", 1)[0]
        if metric is None and family not in curves:
            family = next(iter(curves))
        check_choice("curve", family, curves)
        return self._draw("curve", curves[family], metric=f"{family}@k", **style)

    def cutoffs(self, **style: Any) -> Any:
        """Return every metric with several cut-offs against the cut-off, one small panel each."""
        return self._draw("cutoffs", self._curves(), **style)

    def distribution(self, metric: str | None = None, **style: Any) -> Any:
        """Return how a metric spreads over the users."""
        key = self._per_user_key(metric)
        columns = {n: rows.columns[key] for n, rows in self._data.per_case.items()}
        return self._draw("distribution", columns, metric=key, **style)

    def strata(
        self,
        by: str | Mapping[Any, Any] | Callable[[Any], Any] | None = None,
        metric: str | None = None,
        **style: Any,
    ) -> Any:
        """Return a metric by group of users.

        Args:
            by: {user: group}, a function of the user id, or a grouping of the evaluation (its first).
            metric: the headline metric by default.
            style: passed on to the chart or figure.
        """
        key = self._per_user_key(metric)
        data = self._data
        if by is None or isinstance(by, str):
            found = section_numbers.evaluated_groups(data, key)
            check_choice("grouping", by or next(iter(found), ""), found or [""])
            values, sizes = found.get(by or next(iter(found), ""), ({}, {}))
        else:
            masks = masks_by_label(data.aligned.ids, by)
            values, sizes = section_numbers.group_values(data, key, {str(g): m for g, m in masks.items()})
        if not values:
            raise InputError("the result was not evaluated by groups.", hint="Pass by={user: group}.")
        return self._draw("strata", values, metric=key, sizes=sizes, **style)

    def _curves(self) -> dict[str, dict[str, dict[int, section_numbers.Triple]]]:
        curves = section_numbers.curves(self._data)
        if not curves:
            raise InputError(
                "the result holds no metric at several cut-offs.",
                hint='Evaluate with k=[5, 10, 20], or "ndcg@5" and "ndcg@10".',
            )
        return curves

    def _key(self, metric: str | None) -> str:
        if metric is None:
            return self._data.headline
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
    """The pictures of its models, and of their differences: forest, winloss, sorted_differences, tradeoff."""

    @property
    def _rows(self) -> tuple[Row, ...]:
        compared = self._data.compared  # the comparison given, with names as the data has them
        return () if compared is None else compared.rows

    def forest(self, metric: str | None = None, **style: Any) -> Any:
        """Lifts (differences where there is no lift) with their intervals, one panel per metric."""
        values: dict[str, Mapping[str, section_numbers.Triple]] = {}
        units: dict[str, str] = {}
        for key in dict.fromkeys(
            r.metric for r in self._rows if metric is None or r.metric == self._key(metric)
        ):
            values[key], units[key] = section_numbers.lifts_or_differences(self._labelled_rows(key))
        lower = [key for key in values if self._data.lower_is_better(key)]
        mixed = "against the other" if any(units.values()) else "difference"
        word = "lift" if all(units.values()) else mixed
        return self._draw("forest", values, **({"unit": units, "title": word, "lower": lower} | style))

    def groups(self, by: str | None = None, metric: str | None = None, **style: Any) -> Any:
        """Lifts in every group of users, who loses most first; "few": of whom too few users differ.

        The intervals hold together.

        Args:
            by: the grouping (`evaluate(by=)`); the first by default.
            metric: the headline metric by default.
            style: passed on to the chart or figure.
        """
        grouped = self._results.by
        rows = grouped[by or next(iter(grouped))].by_lift(metric)
        several = len({(row.model, row.baseline) for row in rows}) > 1
        labelled = {
            f"{row.group}{f' · {row.model} – {row.baseline}' if several else ''}"  # noqa: RUF001
            + (" (few)" if row.wins + row.losses < FEW else ""): row
            for row in rows
        }
        values, unit = section_numbers.lifts_or_differences(labelled)
        lower = [label for label, row in labelled.items() if self._data.lower_is_better(row.metric)]
        title = f"{'lift' if unit else 'difference'} on {rows[0].metric}"
        return self._module.forest(values, **({"unit": unit, "title": title, "lower": lower} | style))

    def places(self, metric: str | None = None, **style: Any) -> Any:
        """The places that each model may have on a metric (the headline by default); see recsys.rank."""
        key = self._per_user_key(metric)
        ranks = rank({name: self._data.runs[name] for name in self._data.names}, key)
        return self._draw("places", ranks, metric=key, **style)

    def winloss(self, metric: str | None = None, **style: Any) -> Any:
        """Users won, tied and lost on a metric (the headline by default), one bar per comparison."""
        rows = self._labelled_rows(self._per_user_key(metric))
        bases = {r.baseline for r in rows.values()}
        counts = {label: (r.wins, r.ties, r.losses) for label, r in rows.items()}
        return self._module.winloss(counts, baseline=next(iter(bases)) if len(bases) == 1 else None, **style)

    def sorted_differences(
        self, model: str | None = None, baseline: str | None = None, metric: str | None = None, **style: Any
    ) -> Any:
        """Users sorted by the difference of a model (the best by default) from the baseline."""
        key, pair = self._per_user_key(metric), self._pair(model, baseline)
        gaps = self._data.aligned.differences(pair[1], pair[0], key)
        lower = self._data.lower_is_better(key)
        return self._module.sorted_differences(
            gaps, **({"names": pair, "metric": key, "lower": lower} | style)
        )

    def duel(
        self, model: str | None = None, baseline: str | None = None, metric: str | None = None, **style: Any
    ) -> Any:
        """Win/loss map of a model (the best by default) against the baseline: users by their two values."""
        key, pair = self._per_user_key(metric), self._pair(model, baseline)
        first, second = (self._data.aligned.tables[name][key] for name in pair)
        return self._module.duel(first, second, **({"names": pair, "metric": key} | style))

    def tradeoff(self, x: str | None = None, y: str | None = None, **style: Any) -> Any:
        """Return one point per model, of any two metrics: x (coverage) across, y (the headline metric) up."""
        data = self._data
        covered = section_numbers.coverage(data) or ("coverage", {})
        across, up = self._key(x or covered[0]), self._key(y)
        points = {n: (data.value(n, across), data.value(n, up)) for n in data.names}
        return self._draw("tradeoff", points, x=across, y=up, **style)

    def _pair(self, model: str | None, baseline: str | None) -> tuple[str, str]:
        """Return the baseline and a model; by default the best that is not the baseline."""
        data = self._data
        base = baseline or data.baseline or data.names[0]
        pair = base, model or next((n for n in data.names if n != base), base)
        for name in pair:
            check_choice("model", name, data.names)
        return pair

    def _labelled_rows(self, metric: str | None) -> dict[str, Row]:
        """Return the rows by a label that says as much of model, baseline and metric as tells them apart."""
        rows = [r for r in self._rows if metric is None or r.metric == self._key(metric)]
        rows.sort(key=lambda r: self._data.names.index(r.model))
        metrics, bases = len({r.metric for r in rows}) > 1, len({r.baseline for r in rows}) > 1
        labelled = {}
        for row in rows:
            models = f"{row.model} – {row.baseline}" if bases else row.model  # noqa: RUF001
            labelled[f"{models} · {row.metric}" if metrics else models] = row
        return labelled


def pictures_of(result: Any, renderer: str) -> EvaluationPictures:
    """Return the pictures of an evaluation or of a comparison; `renderer` is charts or figures."""
    kind = ComparisonPictures if isinstance(result, Comparison) else EvaluationPictures
    return kind(result, renderer)
