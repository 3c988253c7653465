"""The model comparison of document 000, its result tables (CSV, JSON, Markdown, LaTeX) and chart data.

Results may carry their values by user (those of this package do) or come with a table by user; without
either there is an improvement but no test. `recsys.stats` pairs the users, tests and corrects.

The columns of a report are model, hyperparameters, recall, NDCG, the other metrics, coverage, training time;
a missing value is NA. Markdown and LaTeX give metrics four decimals and hyperparameters all their digits.
Results with a `baseline_name` are baselines: JSON and Markdown then hold the gains over them, with marks of
significance. Files are written atomically.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np

from recsys.analysis import improvement, pareto_front
from recsys.cf.evaluation.translation import TIMES, cutoff_list, direction, goodness
from recsys.display.exports import csv_text
from recsys.display.markup import latex_table, markdown_table
from recsys.errors import FileError, InputError, UnknownNameError
from recsys.evaluation.files.result_files import run_facts
from recsys.inputs.files import write_text
from recsys.records.arrays import PerCase
from recsys.records.json_values import json_value
from recsys.stats.comparison import compare_tables
from recsys.stats.comparison_table import Options, Row
from recsys.stats.results import check_alpha

ResultsByModel = Mapping[str, Mapping[str, Any]]
_SIGNIFICANCE_MARKS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
_NOT_METRICS = ("num_users_evaluated", "num_users_skipped", *TIMES)
_FIRST_PARAMETERS = ("factors", "reg", "alpha")
_METRIC_ORDER = ("recall", "ndcg", "precision", "map", "mrr", "hit", "hit_rate")
_LAST_COLUMNS = (
    "coverage",
    "training_time",
    "num_users_evaluated",
    "num_users_skipped",
    "evaluation_time_seconds",
)
_MARKS_LEGEND = (
    "`*`, `**`, `***`: p below 0.05, 0.01, 0.001, paired by user and corrected over the models, on the first "
    "metric alone and on all others together. Tested: {}."
)
_FORMATS = {
    "csv": "csv",
    "json": "json",
    "markdown": "markdown",
    "md": "markdown",
    "latex": "latex",
    "tex": "latex",
}
_EXAMPLE_CUTOFFS = (5, 10, 20, 50)


class ModelComparator:
    """Compares models with baselines; each pair is tested on its per-user values.

    >>> comparator = ModelComparator()
    >>> comparator.add_model_results("als", {"recall@10": 0.3})
    >>> comparator.add_baseline_results("popularity", {"recall@10": 0.2})
    >>> f"{comparator.compute_improvement('als', 'popularity', 'recall@10')['relative_percent']:.1f}%"
    '50.0%'
    """

    def __init__(self, significance_level: float = 0.05) -> None:
        check_alpha(significance_level)
        self.significance_level = significance_level
        self.model_results: dict[str, Mapping[str, Any]] = {}
        self.baseline_results: dict[str, Mapping[str, Any]] = {}
        self._per_case: dict[str, PerCase] = {}

    def add_model_results(self, name: str, results: Mapping[str, Any], per_user_metrics: Any = None) -> None:
        """Add a model's results and, if the results do not carry them, its values by user."""
        self._add(name, results, per_user_metrics, self.model_results, self.baseline_results)

    def add_baseline_results(
        self, name: str, results: Mapping[str, Any], per_user_metrics: Any = None
    ) -> None:
        """Add a baseline's results and, if the results do not carry them, its values by user."""
        self._add(name, results, per_user_metrics, self.baseline_results, self.model_results)

    def _add(
        self, name: str, results: Mapping[str, Any], per_user: Any, group: dict[str, Any], others: Any
    ) -> None:
        if name in others:
            raise InputError(
                f"{name!r} is the name of both a model and a baseline.", hint="Give each a name of its own."
            )
        group[name] = _check_results(results, name)
        if per_user is not None:
            self._per_case[name] = _per_case_of(per_user)
        elif hasattr(results, "evaluation"):
            self._per_case[name] = results.evaluation.per_case

    def compute_improvement(self, model_name: str, baseline_name: str, metric: str) -> dict[str, float]:
        """Keys: model_value, baseline_value, absolute, relative, relative_percent (NaN if baseline <= 0).

        As in the document, all are model - baseline; for an error such as RMSE, a gain is below zero.
        """
        values = []
        for what, group, name in (
            ("model", self.model_results, model_name),
            ("baseline", self.baseline_results, baseline_name),
        ):
            if name not in group:
                raise UnknownNameError(what, name, group)
            if metric not in group[name]:
                raise UnknownNameError(f"metric of {name}", metric, map(str, group[name]))
            values.append(_number(group[name], metric))
        return {"model_value": values[0], "baseline_value": values[1], **improvement(*values)}

    def get_comparison_table(self, metrics: Sequence[str] | None = None) -> Any:
        """One row per model and baseline: every metric, followed by the gain over each baseline.

        A gain is marked `*`, `**` or `***` where its p-value is below 0.05, 0.01 or 0.001, corrected over
        the models, on the first metric alone and on all others together; without values by user there are no
        marks. `table.attrs["tested"]` names the metrics that were tested.
        """
        from recsys.cf.evaluation.wide_table import WideTable

        names = self._metric_names() if metrics is None else _name_list(metrics)
        tests = self._test_all_pairs(names)
        rows = []
        for name, results in {**self.model_results, **self.baseline_results}.items():
            kind = "model" if name in self.model_results else "baseline"
            row: dict[str, Any] = {"model": name, "type": kind}
            for metric in names:
                row[metric] = results.get(metric, np.nan)
                row |= self._marked_gains(name, metric, tests) if kind == "model" else {}
            rows.append(row)
        table = WideTable(rows)
        table.attrs["tested"] = list(dict.fromkeys(metric for _, _, metric in tests))
        return table

    def get_improvement_summary(
        self, baseline_name: str | None = None, metrics: Sequence[str] | None = None
    ) -> Any:
        """One row per model, baseline and metric: values, gains and test results.

        With values by user there are p_value, adjusted_p_value (corrected as in `get_comparison_table`),
        `significant` and the verdict. By default `metrics` are those that both results have.
        """
        import pandas as pd

        baselines = list(self.baseline_results) if baseline_name is None else [baseline_name]
        if not self.baseline_results.keys() >= set(baselines):
            raise UnknownNameError("baseline", baseline_name, self.baseline_results)
        names = self._metric_names() if metrics is None else _name_list(metrics)
        tests = self._test_all_pairs(names)
        rows = []
        for pair in itertools.product(self.model_results, baselines, names):
            model, base, metric = pair
            lacking = metric not in self.model_results[model] or metric not in self.baseline_results[base]
            if metrics is None and lacking:
                continue
            row: dict[str, Any] = {"model": model, "baseline": base, "metric": metric}
            row |= self.compute_improvement(*pair)
            if pair in tests:
                test = tests[pair]
                row |= {"p_value": test.p_value, "adjusted_p_value": test.adjusted_p}
                row["significant"] = bool(test.adjusted_p < self.significance_level)
                row["verdict"] = str(test.verdict)
            rows.append(row)
        return pd.DataFrame(rows)

    def _marked_gains(self, model: str, metric: str, tests: Mapping[Any, Row]) -> dict[str, str]:
        """{"recall@10 vs popularity": "+50.0% *"} for each baseline that has the metric."""
        gains = {}
        for base, results in self.baseline_results.items():
            if metric in results and metric in self.model_results[model]:
                gain = self.compute_improvement(model, base, metric)["relative_percent"]
                test = tests.get((model, base, metric))
                p_value = math.inf if test is None else test.adjusted_p
                mark = next((f" {mark}" for below, mark in _SIGNIFICANCE_MARKS if p_value < below), "")
                gains[f"{metric} vs {base}"] = f"{gain:+.1f}%{mark}" if np.isfinite(gain) else "n/a"
        return gains

    def _test_all_pairs(self, metrics: Sequence[str]) -> dict[tuple[str, str, str], Row]:
        """{(model, baseline, metric): test} where there are values by user, corrected in two families."""
        models, bases = (
            [name for name in group if name in self._per_case]
            for group in (self.model_results, self.baseline_results)
        )
        columns = [self._per_case[name].columns for name in (*models, *bases)]
        shared = [metric for metric in metrics if all(metric in one for one in columns)]
        if not (models and bases and shared):
            return {}
        lower = frozenset(name for name in shared if direction(name) == "lower")
        comparison = compare_tables(
            {name: self._per_case[name] for name in (*models, *bases)},
            metrics=shared,
            options=Options(confidence=1.0 - self.significance_level, lower_is_better=lower),
            pairs=[(model, base) for model in models for base in bases],
        )
        return {(row.model, row.baseline, row.metric): row for row in comparison.rows}

    def _metric_names(self) -> list[str]:
        """The numbers in any of the results, without counts of users and times."""
        all_results = [*self.model_results.values(), *self.baseline_results.values()]
        numbers = dict.fromkeys(
            name
            for results in all_results
            for name, value in results.items()
            if isinstance(value, int | float | np.number) and not isinstance(value, bool)
        )
        return [name for name in numbers if name not in _NOT_METRICS]


def _per_case_of(per_user: Any) -> PerCase:
    """Values by user for `recsys.stats`: {metric: {user: value}}, Series and tables are paired by user id.

    A dict of lists is paired by position.
    """
    import pandas as pd

    table = per_user
    if not (hasattr(per_user, "index") and hasattr(per_user, "columns")):
        table = pd.DataFrame({name: pd.Series(values) for name, values in per_user.items()})
    ids = table.index.to_numpy()
    order = np.argsort(ids, kind="stable")
    columns = {str(name): table[name].to_numpy(dtype=np.float64)[order] for name in table.columns}
    return PerCase(ids[order], columns)


def compare_models(
    models: ResultsByModel,
    baselines: ResultsByModel | None = None,
    metrics: Sequence[str] | None = None,
    *,
    significance_level: float = 0.05,
) -> Any:
    """The table of ModelComparator.get_comparison_table for {model: results} and {baseline: results}.

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


class ReportGenerator:
    """Collects results and writes them as one table per format, into `output_dir` and nowhere else.

    >>> import tempfile
    >>> generator = ReportGenerator(output_dir=tempfile.mkdtemp())
    >>> generator.add_results("als", {"ndcg@10": 0.19, "recall@10": 0.23, "coverage": 0.3}, {"factors": 64})
    >>> generator.add_results("popularity", {"recall@10": 0.14}, metadata={})
    >>> print(generator.generate_csv_report("summary.csv").read_text(), end="")
    model,factors,recall@10,ndcg@10,coverage
    als,64,0.23,0.19,0.3
    popularity,NA,0.14,NA,NA
    """

    def __init__(self, output_dir: str | Path) -> None:
        self.output_dir = Path(output_dir)
        try:
            self.output_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(
                f"the folder {self.output_dir} cannot be made ({error}).", hint="Name another output_dir=."
            ) from error
        self.results: dict[str, Mapping[str, Any]] = {}
        self.metadata: dict[str, Mapping[str, Any]] = {}

    def add_results(
        self, name: str, results: Mapping[str, Any], metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Add a model's results, with its hyperparameters, training time and the like.

        Lists, arrays and tables among them are written to JSON only.
        """
        self.results[name] = _check_results(results, name)
        self.metadata[name] = dict(metadata or {})

    def generate_csv_report(self, filename: str = "cf_eval_summary.csv") -> Path:
        """Write the table with all digits; NA where a model has no such number.

        Text that a spreadsheet would run as a formula gets an apostrophe.
        """
        columns = self._columns()
        rows = zip(*([_or_na(value) for value in column] for column in columns.values()), strict=True)
        return self._write(filename, csv_text(columns, rows))

    def generate_json_report(self, filename: str = "cf_eval_summary.json") -> Path:
        """Write results and metadata by model, the gains over baselines, and facts about the run."""
        models = {
            name: {"metadata": self.metadata[name], "results": results}
            for name, results in self.results.items()
        }
        gains, cautions = self._gain_rows()[0], self._cautions()
        content = {"models": models, "gains": gains, "cautions": cautions, "run": run_facts()}
        return self._write(filename, json.dumps(json_value(content), indent=2, ensure_ascii=False) + "\n")

    def generate_markdown_report(self, filename: str = "cf_eval_summary.md") -> Path:
        """Write a pipe table, and the gains over the baselines among the results."""
        parts = ["# Evaluation summary", markdown_table(self._formatted_columns())]
        gains, tested = self._gain_rows()
        if gains:
            columns = {name: _cells((row.get(name) for row in gains), metric=True) for name in gains[0]}
            parts += ["## Gains over baselines", markdown_table(columns)]
            parts += [_MARKS_LEGEND.format(", ".join(tested))] if tested else []
        cautions = self._cautions()
        if cautions:
            parts += ["## Cautions", "\n".join(f"- {model}: {one}" for model, one in cautions)]
        return self._write(filename, "\n\n".join(parts) + "\n")

    def generate_latex_report(self, filename: str = "cf_eval_summary.tex") -> Path:
        """Write the table as a booktabs tabular."""
        return self._write(filename, latex_table(self._formatted_columns()) + "\n")

    def _cautions(self) -> list[tuple[str, str]]:
        """(model, caution) of the results that carry their evaluation."""
        by_model = {name: getattr(results, "cautions", ()) for name, results in self.results.items()}
        return [(name, str(one)) for name, cautions in by_model.items() for one in cautions]

    def _gain_rows(self) -> tuple[list[dict[str, Any]], list[str]]:
        """The gains of each model over each baseline, and the metrics tested: those with values by user."""
        baselines = {name: values for name, values in self.results.items() if "baseline_name" in values}
        models = {name: values for name, values in self.results.items() if name not in baselines}
        if not baselines or not models:
            return [], []
        table = compare_models(models, baselines)
        columns = ["model", *(name for name in table if " vs " in str(name))]
        rows: list[dict[str, Any]] = table[table["type"] == "model"][columns].to_dict("records")
        return rows, table.attrs["tested"]

    def _columns(self) -> dict[str, list[Any]]:
        if not self.results:
            raise InputError("no results were added.", hint="Call add_results(name, results) first.")
        merged = {
            name: {**_scalars(self.metadata[name]), **_scalars(self.results[name])} for name in self.results
        }
        facts = dict.fromkeys(key for values in self.metadata.values() for key in _scalars(values))
        parameters = [key for key in facts if key not in _LAST_COLUMNS]
        metrics = dict.fromkeys(key for values in self.results.values() for key in _scalars(values))
        names = [
            *sorted(parameters, key=lambda key: _position(key, _FIRST_PARAMETERS)),
            *sorted(
                (m for m in metrics if m not in _LAST_COLUMNS and m not in parameters),
                key=lambda name: _position(name, _METRIC_ORDER),
            ),
            *(key for key in _LAST_COLUMNS if key in metrics or key in facts),
        ]
        columns: dict[str, list[Any]] = {"model": list(merged)}
        return columns | {key: [values.get(key) for values in merged.values()] for key in names}

    def _formatted_columns(self) -> dict[str, list[Any]]:
        """The columns as people read them; a hyperparameter or a time keeps all its digits."""
        facts = {key for values in self.metadata.values() for key in values}
        return {name: _cells(column, metric=name not in facts) for name, column in self._columns().items()}

    def _write(self, filename: str, text: str) -> Path:
        target = self.output_dir / Path(filename)
        if not target.resolve().is_relative_to(self.output_dir.resolve()):
            hint = f"Name a file below output_dir={str(self.output_dir)!r}."
            raise FileError(f"{target} is outside output_dir.", hint=hint)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_text(target, text)
        return target


def _scalars(values: Mapping[str, Any]) -> dict[str, Any]:
    """The texts and numbers among the values, as Python values; also those still in an array or a tensor."""
    plain = {
        str(name): value.item() if hasattr(value, "item") and not np.ndim(value) else value
        for name, value in values.items()
        if name != "baseline_name"
    }
    return {name: value for name, value in plain.items() if isinstance(value, str | Number)}


def _or_na(value: Any) -> Any:
    """The value as one of Python, NA where there is no number."""
    number = value.item() if isinstance(value, np.generic) else value
    return "NA" if number is None or number != number else number  # noqa: PLR0124 - NaN differs from itself


def _position(name: str, order: tuple[str, ...]) -> tuple[int, float]:
    """The sort key of a column: its place in the order, then its cut-off."""
    stem, _, k = name.partition("@")
    return order.index(stem) if stem in order else len(order), float(k) if k.isdigit() else math.inf


def _cells(values: Iterable[Any], *, metric: bool) -> list[Any]:
    """Cells of Markdown and LaTeX, where a float has four decimals: all digits if it is not a metric.

    A metric that would be printed as 0.0000 and is not 0 has two digits; a missing number is NA.

    >>> _cells([0.25, 0.00001, 0.0, None], metric=True), _cells([1e-05, 45.2, 64], metric=False)
    ([0.25, '1.0e-05', 0.0, 'NA'], ['1e-05', '45.2', 64])
    """
    cells: list[Any] = []
    for value in values:
        number = _or_na(value)
        if not isinstance(number, float) or (metric and not 0 < abs(number) < 0.00005):
            cells.append(number)
        else:
            cells.append(f"{number:.1e}" if metric else f"{number:.12g}")
    return cells


def generate_evaluation_report(
    results: ResultsByModel,
    output_path: str | Path,
    format: str | None = None,  # noqa: A002 - the name in document 000
    metadata: ResultsByModel | None = None,
) -> Path:
    """Write results as one file.

    Args:
        results: {model: results}.
        output_path: the file, such as "reports/cf_eval_summary.csv"; its suffix is the default format.
        format: "csv", "json", "markdown" or "latex".
        metadata: {model: hyperparameters and the like}.
    """
    target = Path(output_path)
    name = format or target.suffix.lstrip(".") or "csv"
    if name.lower() not in _FORMATS:
        raise UnknownNameError("format", name, _FORMATS)
    generator = ReportGenerator(target.parent)
    for model, values in results.items():
        generator.add_results(model, values, (metadata or {}).get(model))
    written: Path = getattr(generator, f"generate_{_FORMATS[name.lower()]}_report")(target.name)
    return written


class EvaluationVisualizer:
    """The data of the charts of document 000; `recsys.report.figures` draws charts of results.

    Which of two numbers is better follows from the metric: the lower RMSE, the higher recall. Of a number
    that is not a registered metric the higher one is better, of a time the lower.

    >>> data = EvaluationVisualizer().prepare_bar_chart_data(
    ...     results={"als": {"recall@10": 0.3}, "popularity": {"recall@10": 0.2}}, metrics=["recall@10"]
    ... )
    >>> data["values"], data["best"]
    ({'recall@10': [0.3, 0.2]}, {'recall@10': 'als'})
    """

    @staticmethod
    def prepare_bar_chart_data(
        results: ResultsByModel, metrics: str | Sequence[str] = ("recall@10", "ndcg@10")
    ) -> dict[str, Any]:
        """`models`, `metrics`, `values` {metric: one number per model}, `best` {metric: model}."""
        metrics = _name_list(metrics)
        _check_names(results, metrics)
        values = {name: [_number(row, name) for row in results.values()] for name in metrics}
        best: dict[str, str | None] = {}
        for name, row in values.items():
            known = {model: value for model, value in zip(results, row, strict=True) if not math.isnan(value)}
            best[name] = max(known, key=lambda model: goodness(name, known[model])) if known else None
        return {"models": list(results), "metrics": metrics, "values": values, "best": best}

    @staticmethod
    def prepare_k_sensitivity_data(
        results: ResultsByModel, metric: str = "recall", k_values: Sequence[int] | None = None
    ) -> dict[str, Any]:
        """`k_values` and `series` {model: one number per k}; NaN if a model was not evaluated at a k.

        By default `k_values` are the cut-offs of any result.
        """
        names = (str(key).partition("@") for row in results.values() for key in row)
        known = {int(k) for name, _, k in names if name == metric and k.isdigit()}
        cutoffs = sorted(known) if k_values is None else cutoff_list(k_values)
        if not cutoffs:
            raise InputError(
                f"no result holds {metric} at a cut-off.",
                hint=f"Evaluate with k_values={list(_EXAMPLE_CUTOFFS)}.",
            )
        columns = [f"{metric}@{k}" for k in cutoffs]
        _check_names(results, columns)
        series = {name: [_number(row, column) for column in columns] for name, row in results.items()}
        return {"metric": metric, "k_values": cutoffs, "series": series}

    @staticmethod
    def prepare_tradeoff_data(
        results: ResultsByModel, accuracy_metric: str = "ndcg@10", coverage_metric: str = "coverage"
    ) -> dict[str, Any]:
        """`models`, `coverage`, `accuracy`, and `pareto`: the models that no other model beats in both."""
        metrics = (coverage_metric, accuracy_metric)
        _check_names(results, metrics)
        points = {name: tuple(_number(row, metric) for metric in metrics) for name, row in results.items()}
        quality: dict[str, Any] = {
            name: tuple(map(goodness, metrics, numbers)) for name, numbers in points.items()
        }
        return {
            "models": list(points),
            "coverage": [x for x, _ in points.values()],
            "accuracy": [y for _, y in points.values()],
            "coverage_metric": coverage_metric,
            "accuracy_metric": accuracy_metric,
            "pareto": pareto_front(quality),
        }


def _check_results(results: Any, name: str) -> Any:
    """The results of one model, if they are {metric: number} or a Series."""
    if len(results) and not _scalars(results):
        raise InputError(
            f"the results of {name!r} hold no number.",
            hint='Pass {model: {metric: number}}, such as {"als": {"recall@10": 0.2}}.',
        )
    return results


def _name_list(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else list(map(str, names))


def _check_names(results: ResultsByModel, names: Sequence[str]) -> None:
    """Some models may lack a number; a number that all models lack is a mistyped name."""
    known = dict.fromkeys(str(key) for row in results.values() for key in row.keys())  # noqa: SIM118 - a Series iterates over its values
    for name in names:
        if results and name not in known:
            raise UnknownNameError("result", name, known)


def _number(row: Mapping[str, Any], name: str) -> float:
    value = row.get(name)
    return math.nan if value is None else float(value)
