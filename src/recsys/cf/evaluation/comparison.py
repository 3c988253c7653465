"""The model comparison of document 000; `recsys.stats` pairs the users, tests and corrects.

Results may carry their values by user (those of this package do) or come with a table by user; without
either there is an improvement but no test.
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

_SIGNIFICANCE_MARKS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
_NOT_METRICS = ("num_users_evaluated", "num_users_skipped", "evaluation_time_seconds", "training_time")


class ModelComparator:
    """Compares models with baselines; each pair is tested on its per-user values.

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
        """Add a model's results and, if the results do not carry them, its values by user."""
        self._check_name_is_free(name, self.baseline_results)
        self.model_results[name] = results
        self._store_per_user(name, results, per_user_metrics)

    def add_baseline_results(
        self, name: str, results: Mapping[str, Any], per_user_metrics: Any = None
    ) -> None:
        """Add a baseline's results and, if the results do not carry them, its values by user."""
        self._check_name_is_free(name, self.model_results)
        self.baseline_results[name] = results
        self._store_per_user(name, results, per_user_metrics)

    def compute_improvement(self, model_name: str, baseline_name: str, metric: str) -> dict[str, float]:
        """Keys: model_value, baseline_value, absolute, relative, relative_percent (NaN if baseline <= 0)."""
        return self._improvement(model_name, baseline_name, metric)

    def _improvement(
        self, model_name: str, baseline_name: str, metric: str, *, missing_ok: bool = False
    ) -> dict[str, float]:
        value = self._value(self.model_results, "model", model_name, metric, missing_ok=missing_ok)
        base = self._value(self.baseline_results, "baseline", baseline_name, metric, missing_ok=missing_ok)
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
        return self.tester.paired_t_test(
            *self._paired_values(model_name, baseline_name, metric, k), alternative
        )

    def wilcoxon_test(
        self,
        model_name: str,
        baseline_name: str,
        metric: str,
        k: int | None = None,
        alternative: Any = "two-sided",
    ) -> dict[str, Any]:
        """StatisticalTester.wilcoxon_test of two results, paired by user id."""
        return self.tester.wilcoxon_test(
            *self._paired_values(model_name, baseline_name, metric, k), alternative
        )

    def cohens_d(
        self, model_name: str, baseline_name: str, metric: str, k: int | None = None
    ) -> dict[str, Any]:
        """StatisticalTester.cohens_d of two results."""
        return self.tester.cohens_d(*self._paired_values(model_name, baseline_name, metric, k))

    def get_comparison_table(self, metrics: Sequence[str] | None = None) -> Any:
        """One row per model and baseline: every metric, followed by the gain over each baseline.

        A gain is marked `*`, `**` or `***` where its p-value, corrected over the whole table, lies below
        0.05, 0.01 or 0.001; without values by user there are no marks.
        """
        import pandas as pd

        all_results = {**self.model_results, **self.baseline_results}
        names = self._metric_names(all_results) if metrics is None else list(metrics)
        tests = self._test_all_pairs(names)
        rows = []
        for name, results in all_results.items():
            kind = "model" if name in self.model_results else "baseline"
            row: dict[str, Any] = {"model": name, "type": kind}
            for metric in names:
                row[metric] = results.get(metric, np.nan)
                row |= self._marked_gains(name, metric, tests) if kind == "model" else {}
            rows.append(row)
        return pd.DataFrame(rows)

    def get_improvement_summary(
        self, baseline_name: str | None = None, metrics: Sequence[str] | None = None
    ) -> Any:
        """One row per model, baseline and metric: values, gains and test results.

        With values by user there are p_value, adjusted_p_value (corrected over the whole table),
        `significant` and the verdict in words. By default `metrics` are those of any result, NaN where a
        model or baseline has no such number.
        """
        import pandas as pd

        baselines = list(self.baseline_results) if baseline_name is None else [baseline_name]
        all_results = {**self.model_results, **self.baseline_results}
        names = self._metric_names(all_results) if metrics is None else list(metrics)
        tests = self._test_all_pairs(names)
        rows = []
        for model, base, metric in itertools.product(self.model_results, baselines, names):
            gain = self._improvement(model, base, metric, missing_ok=metrics is None)
            row: dict[str, Any] = {"model": model, "baseline": base, "metric": metric, **gain}
            test = tests.get((model, base, metric))
            if test is not None:
                row["p_value"] = test.p_value
                row["adjusted_p_value"] = test.adjusted_p
                row["significant"] = bool(test.adjusted_p < self.significance_level)
                row["verdict"] = test.verdict
            rows.append(row)
        return pd.DataFrame(rows)

    def _marked_gains(self, model: str, metric: str, tests: Mapping[Any, Any]) -> dict[str, str]:
        gains = {}
        for base, results in self.baseline_results.items():
            if metric in results and metric in self.model_results[model]:
                gain = improvement(self.model_results[model][metric], results[metric])["relative_percent"]
                test = tests.get((model, base, metric))
                mark = "" if test is None else _significance_mark(test.adjusted_p)
                gains[f"{metric} vs {base}"] = f"{gain:+.1f}%{mark}" if np.isfinite(gain) else "n/a"
        return gains

    @staticmethod
    def _check_name_is_free(name: str, others: Mapping[str, Any]) -> None:
        if name in others:
            raise InputError(
                f"{name!r} is the name of both a model and a baseline.", hint="Give each a name of its own."
            )

    def _store_per_user(self, name: str, results: Mapping[str, Any], per_user: Any) -> None:
        if per_user is None:
            evaluation = getattr(results, "evaluation", None)
            per_user = None if evaluation is None else evaluation.per_user
        if per_user is not None:
            self._per_user[name] = per_user

    @staticmethod
    def _value(
        results: Mapping[str, Mapping[str, Any]], what: str, name: str, metric: str, *, missing_ok: bool
    ) -> float:
        if name not in results:
            raise UnknownNameError(what, name, results)
        if metric not in results[name]:
            if missing_ok:
                return np.nan
            raise UnknownNameError(f"metric of {name}", metric, map(str, results[name]))
        return float(results[name][metric])

    def _paired_values(self, model: str, baseline: str, metric: str, k: int | None) -> tuple[Any, Any]:
        values = []
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
            values.append(table[column])
        return values[0], values[1]

    def _test_all_pairs(self, metrics: Sequence[str]) -> dict[tuple[str, str, str], Any]:
        """{(model, baseline, metric): test} where there are values by user, corrected over all tests."""
        bases = [b for b in self.baseline_results if b in self._per_user]
        models = [m for m in self.model_results if m in self._per_user and m not in bases]
        tables = {name: _per_case_table(self._per_user[name]) for name in [*models, *bases]}
        shared = [m for m in metrics if all(m in t.columns for t in tables.values())]
        if not (bases and models and shared):
            return {}
        options = Options(confidence=1.0 - self.significance_level)
        comparison: ComparisonTable = compare_tables(
            tables,
            metrics=shared,
            options=options,
            pairs=[(m, b) for m in models for b in bases],
        )
        return {(row.model, row.baseline, row.metric): row for row in comparison.rows}

    @staticmethod
    def _metric_names(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """The numbers in any of the results, without counts of users and times."""
        names = dict.fromkeys(
            name
            for values in results.values()
            for name, value in values.items()
            if isinstance(value, int | float | np.number) and not isinstance(value, bool)
        )
        return [name for name in names if name not in _NOT_METRICS]


def _significance_mark(p_value: float) -> str:
    return next((f" {mark}" for below, mark in _SIGNIFICANCE_MARKS if p_value < below), "")


def _per_case_table(per_user: Any) -> PerCase:
    """Values by user for `recsys.stats`: {metric: {user: value}}, Series and tables are paired by user id.

    A dict of lists is paired by position.
    """
    import pandas as pd

    table = per_user
    if not (hasattr(per_user, "index") and hasattr(per_user, "columns")):
        try:
            table = pd.DataFrame({name: pd.Series(values) for name, values in per_user.items()})
        except (AttributeError, TypeError, ValueError) as error:
            raise InputError(
                f"the values by user came as {type(per_user).__name__} ({error}).",
                hint="Pass a table by user, {metric: {user: value}} or {metric: [one value per user]}.",
            ) from error
    ids = table.index.to_numpy()
    columns = {str(name): table[name].to_numpy(dtype=np.float64) for name in table.columns}
    order = np.argsort(ids, kind="stable")
    return PerCase(ids[order], {name: values[order] for name, values in columns.items()})


def compare_models(
    models: Mapping[str, Mapping[str, Any]],
    baselines: Mapping[str, Mapping[str, Any]] | None = None,
    metrics: Sequence[str] | None = None,
    *,
    significance_level: float = 0.05,
) -> Any:
    """The table of ModelComparator.get_comparison_table for these results.

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
