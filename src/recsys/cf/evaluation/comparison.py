"""Models against baselines in seed 000's words: `recsys.stats` pairs the users, tests and corrects.

Results may bring their users along (those of this package do) or come with a table by user; without either
there is an improvement to tell but nothing to test.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recsys.analysis import improvement
from recsys.cf.evaluation.reporting import ReportGenerator, generate_evaluation_report
from recsys.cf.evaluation.statistical_tests import StatisticalTester
from recsys.cf.evaluation.visualizer import EvaluationVisualizer
from recsys.errors import InputError, UnknownNameError
from recsys.stats.comparison_options import Options
from recsys.stats.paired_comparison import ComparisonTable, compare_tables
from recsys.types import PerCase

__all__ = [
    "EvaluationVisualizer",
    "ModelComparator",
    "ReportGenerator",
    "compare_models",
    "generate_evaluation_report",
]

_MARKS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
_NOT_METRICS = ("num_users_evaluated", "num_users_skipped", "evaluation_time_seconds", "training_time")


class ModelComparator:
    """Models and baselines side by side, each model tested against each baseline, user by user.

    >>> comparator = ModelComparator()
    >>> comparator.add_model_results("als", {"recall@10": 0.3})
    >>> comparator.add_baseline_results("popularity", {"recall@10": 0.2})
    >>> f"{comparator.compute_improvement('als', 'popularity', 'recall@10')['relative_percent']:.1f}%"
    '50.0%'
    """

    def __init__(self, significance_level: float = 0.05) -> None:
        self.tester = StatisticalTester(significance_level)
        self.significance_level = significance_level
        self.model_results: dict[str, Mapping[str, Any]] = {}
        self.baseline_results: dict[str, Mapping[str, Any]] = {}
        self._per_user: dict[str, Any] = {}

    def add_model_results(self, name: str, results: Mapping[str, Any], per_user_metrics: Any = None) -> None:
        """A model's results and, if they do not carry them, its values by user."""
        self._refuse_twice(name, self.baseline_results)
        self.model_results[name] = results
        self._keep(name, results, per_user_metrics)

    def add_baseline_results(
        self, name: str, results: Mapping[str, Any], per_user_metrics: Any = None
    ) -> None:
        """A baseline's results, likewise."""
        self._refuse_twice(name, self.model_results)
        self.baseline_results[name] = results
        self._keep(name, results, per_user_metrics)

    def compute_improvement(self, model_name: str, baseline_name: str, metric: str) -> dict[str, float]:
        """model_value, baseline_value, absolute, relative, relative_percent; NaN if the baseline is <= 0."""
        return self._improvement(model_name, baseline_name, metric)

    def _improvement(
        self, model_name: str, baseline_name: str, metric: str, *, lacking: bool = False
    ) -> dict[str, float]:
        value = self._value(self.model_results, "model", model_name, metric, lacking=lacking)
        base = self._value(self.baseline_results, "baseline", baseline_name, metric, lacking=lacking)
        return {"model_value": value, "baseline_value": base, **improvement(value, base)}

    def paired_t_test(
        self,
        model_name: str,
        baseline_name: str,
        metric: str,
        k: int | None = None,
        alternative: Any = "two-sided",
    ) -> dict[str, Any]:
        """StatisticalTester.paired_t_test of two results, paired by user id."""
        return self.tester.paired_t_test(*self._samples(model_name, baseline_name, metric, k), alternative)

    def wilcoxon_test(
        self,
        model_name: str,
        baseline_name: str,
        metric: str,
        k: int | None = None,
        alternative: Any = "two-sided",
    ) -> dict[str, Any]:
        """StatisticalTester.wilcoxon_test of two results, paired by user id."""
        return self.tester.wilcoxon_test(*self._samples(model_name, baseline_name, metric, k), alternative)

    def cohens_d(
        self, model_name: str, baseline_name: str, metric: str, k: int | None = None
    ) -> dict[str, Any]:
        """StatisticalTester.cohens_d of two results."""
        return self.tester.cohens_d(*self._samples(model_name, baseline_name, metric, k))

    def get_comparison_table(self, metrics: Sequence[str] | None = None) -> Any:
        """One row a model and baseline: every metric, and beside it the gain over each baseline.

        A gain is marked `*`, `**` or `***` where its p-value, corrected over the whole table, lies below
        0.05, 0.01 or 0.001; without values by user there are no marks.
        """
        import pandas as pd

        everything = {**self.model_results, **self.baseline_results}
        names = self._metrics(everything) if metrics is None else list(metrics)
        tested = self._tested(names)
        rows = []
        for name, results in everything.items():
            kind = "model" if name in self.model_results else "baseline"
            row: dict[str, Any] = {"model": name, "type": kind}
            for metric in names:
                row[metric] = results.get(metric, np.nan)
                row |= self._gains(name, metric, tested) if kind == "model" else {}
            rows.append(row)
        return pd.DataFrame(rows)

    def get_improvement_summary(
        self, baseline_name: str | None = None, metrics: Sequence[str] | None = None
    ) -> Any:
        """One row a model, baseline and metric: values, gains, and what the tests say.

        With values by user there are p_value, adjusted_p_value (corrected over the whole table),
        `significant` and the verdict in words. Without `metrics`, those of any result: NaN where a side has
        no such number.
        """
        import pandas as pd

        against = [baseline_name] if baseline_name is not None else list(self.baseline_results)
        everything = {**self.model_results, **self.baseline_results}
        names = self._metrics(everything) if metrics is None else list(metrics)
        tested = self._tested(names)
        rows = []
        for model, base, metric in itertools.product(self.model_results, against, names):
            gain = self._improvement(model, base, metric, lacking=metrics is None)
            said = self._said(tested.get((model, base, metric)))
            rows.append({"model": model, "baseline": base, "metric": metric, **gain, **said})
        return pd.DataFrame(rows)

    def _said(self, row: Any) -> dict[str, Any]:
        if row is None:
            return {}
        sure = bool(row.adjusted_p < self.significance_level)
        return {
            "p_value": row.p_value,
            "adjusted_p_value": row.adjusted_p,
            "significant": sure,
            "verdict": row.verdict,
        }

    def _gains(self, model: str, metric: str, tested: Mapping[Any, Any]) -> dict[str, str]:
        out = {}
        for base, results in self.baseline_results.items():
            if metric in results and metric in self.model_results[model]:
                gain = improvement(self.model_results[model][metric], results[metric])["relative_percent"]
                row = tested.get((model, base, metric))
                mark = "" if row is None else _mark(row.adjusted_p)
                out[f"{metric} vs {base}"] = f"{gain:+.1f}%{mark}" if np.isfinite(gain) else "n/a"
        return out

    @staticmethod
    def _refuse_twice(name: str, others: Mapping[str, Any]) -> None:
        if name in others:
            raise InputError(
                f"{name!r} is the name of both a model and a baseline.", hint="Give each a name of its own."
            )

    def _keep(self, name: str, results: Mapping[str, Any], per_user: Any) -> None:
        if per_user is None:
            evaluation = getattr(results, "evaluation", None)
            per_user = None if evaluation is None else evaluation.per_user
        if per_user is not None:
            self._per_user[name] = per_user

    @staticmethod
    def _value(
        held: Mapping[str, Mapping[str, Any]], what: str, name: str, metric: str, *, lacking: bool
    ) -> float:
        if name not in held:
            raise UnknownNameError(what, name, held)
        if metric not in held[name]:
            if lacking:
                return np.nan
            raise UnknownNameError(f"metric of {name}", metric, map(str, held[name]))
        return float(held[name][metric])

    def _samples(self, model: str, baseline: str, metric: str, k: int | None) -> tuple[Any, Any]:
        found = []
        for name in (model, baseline):
            table = self._per_user.get(name)
            if table is None:
                raise InputError(
                    f"there are no values by user for {name!r}.",
                    hint="Add them as the third argument: evaluator.get_per_user_metrics().",
                )
            column = metric if k is None or metric in table else f"{metric}@{k}"
            if column not in table:
                raise UnknownNameError(f"metric by user of {name}", column, map(str, table))
            found.append(table[column])
        return found[0], found[1]

    def _tested(self, metrics: Sequence[str]) -> dict[tuple[str, str, str], Any]:
        """Every test there is data for, corrected over all of them."""
        rows: dict[tuple[str, str, str], Any] = {}
        bases = [b for b in self.baseline_results if b in self._per_user]
        models = [m for m in self.model_results if m in self._per_user and m not in bases]
        tables = {name: _table(self._per_user[name]) for name in [*models, *bases]}
        shared = [m for m in metrics if all(m in t.columns for t in tables.values())]
        if not (bases and models and shared):
            return rows
        options = Options(confidence=1.0 - self.significance_level)
        found: ComparisonTable = compare_tables(
            tables,
            metrics=shared,
            options=options,
            pairs=[(m, b) for m in models for b in bases],
        )
        return {(row.model, row.baseline, row.metric): row for row in found.rows}

    @staticmethod
    def _metrics(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
        held = (name for one in results.values() for name, value in one.items() if _is_number(value))
        return [name for name in dict.fromkeys(held) if name not in _NOT_METRICS]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _mark(p_value: float) -> str:
    return next((f" {mark}" for below, mark in _MARKS if p_value < below), "")


def _table(per_user: Any) -> PerCase:
    """Values by user as the statistics take them: {metric: {user: value}}, Series and tables go by user id.

    A dict of plain lists is paired by place.
    """
    import pandas as pd

    table = per_user
    if not (hasattr(per_user, "index") and hasattr(per_user, "columns")):
        try:
            table = pd.DataFrame({name: pd.Series(held) for name, held in per_user.items()})
        except (AttributeError, TypeError, ValueError) as error:
            raise InputError(
                f"the values by user came as {type(per_user).__name__} ({error}).",
                hint="Pass a table by user, {metric: {user: value}} or {metric: one value a user}.",
            ) from error
    ids = table.index.to_numpy()
    columns = {str(name): table[name].to_numpy(dtype=np.float64) for name in table.columns}
    order = np.argsort(ids, kind="stable")
    return PerCase(ids[order], {name: held[order] for name, held in columns.items()})


def compare_models(
    models: Mapping[str, Mapping[str, Any]],
    baselines: Mapping[str, Mapping[str, Any]] | None = None,
    metrics: Sequence[str] | None = None,
    *,
    significance_level: float = 0.05,
) -> Any:
    """The comparison table of results; see ModelComparator.get_comparison_table.

    >>> compare_models({"als": {"recall@10": 0.3}}, {"popularity": {"recall@10": 0.2}})[
    ...     "recall@10 vs popularity"
    ... ].tolist()
    ['+50.0%', nan]
    """
    comparator = ModelComparator(significance_level)
    for name, results in models.items():
        comparator.add_model_results(name, results)
    for name, results in (baselines or {}).items():
        comparator.add_baseline_results(name, results)
    return comparator.get_comparison_table(metrics)
