"""The model comparison of document 000, its result tables (CSV, JSON, Markdown, LaTeX) and its charts.

Results may carry their values by user (those of this package do) or come with a table by user; without
either there is an improvement but no test. `recsys.stats` pairs the users, tests and corrects.

The columns of a report are model, hyperparameters, recall, NDCG, the other metrics, coverage, training time;
a missing value is NA. Markdown and LaTeX give metrics four decimals and hyperparameters all their digits.
Results with a `baseline_name` are baselines: JSON and Markdown then hold the gains over them, with marks of
significance. Files are written atomically. `recsys.report.figures` draws the charts.

Everything here takes {model: results}, a table with a `model` column, or {"models": {…}, "baselines": {…}}.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np

from recsys.analysis import distribution, improvement, pareto_front
from recsys.cf.evaluation.statistical_tests import StatisticalTester
from recsys.cf.evaluation.translation import (
    TIMES,
    cutoff,
    cutoff_list,
    direction,
    goodness,
    metric_of,
)
from recsys.display.exports import csv_text
from recsys.display.markup import latex_table, markdown_table, markdown_text
from recsys.errors import FileError, InputError, UnknownNameError
from recsys.evaluation.result_files import run_facts
from recsys.inputs.files import write_text
from recsys.records.arrays import PerCase
from recsys.records.json_values import json_value
from recsys.stats.comparison_table import Options
from recsys.stats.paired_comparison import compare_tables

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
_FORMATS = ("csv", "json", "markdown", "latex")
_MARKS_LEGEND = (
    "`*`, `**`, `***`: p below 0.05, 0.01, 0.001, paired by user and corrected over the models, on the first "
    "metric alone and on all others together. Tested: {}."
)
_FORMAT_ALIASES = {"md": "markdown", "tex": "latex"}
_EXAMPLE_CUTOFFS = (5, 10, 20, 50)
_GROUPS = ("models", "baselines")


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
        self._add_results("model", name, results, per_user_metrics)

    def add_baseline_results(
        self, name: str, results: Mapping[str, Any], per_user_metrics: Any = None
    ) -> None:
        """Add a baseline's results and, if the results do not carry them, its values by user."""
        self._add_results("baseline", name, results, per_user_metrics)

    def _add_results(self, kind: str, name: str, results: Mapping[str, Any], per_user: Any) -> None:
        group, other_group = self.model_results, self.baseline_results
        if kind == "baseline":
            group, other_group = other_group, group
        if name in other_group:
            raise InputError(
                f"{name!r} is the name of both a model and a baseline.", hint="Give each a name of its own."
            )
        group[name] = _check_results(results, name)
        evaluation = getattr(results, "evaluation", None)
        if per_user is None and evaluation is not None:
            per_user = evaluation.per_user
        if per_user is not None:
            self._per_user[name] = per_user

    def compute_improvement(self, model_name: str, baseline_name: str, metric: str) -> dict[str, float]:
        """Keys: model_value, baseline_value, absolute, relative, relative_percent (NaN if baseline <= 0).

        As in the document, all are model - baseline; for an error such as RMSE, a gain is below zero.
        """
        return self._improvement(model_name, baseline_name, metric)

    def _improvement(
        self, model_name: str, baseline_name: str, metric: str, *, missing_ok: bool = False
    ) -> dict[str, float]:
        values = []
        for what, group, name in (
            ("model", self.model_results, model_name),
            ("baseline", self.baseline_results, baseline_name),
        ):
            if name not in group:
                raise UnknownNameError(what, name, group)
            if metric not in group[name] and not missing_ok:
                raise UnknownNameError(f"metric of {name}", metric, map(str, group[name]))
            values.append(_number(group[name], metric))
        return {"model_value": values[0], "baseline_value": values[1], **improvement(*values)}

    def paired_t_test(
        self,
        model_name: str,
        baseline_name: str,
        metric: str,
        k: int | None = None,
        alternative: Any = "two-sided",
    ) -> dict[str, Any]:
        """StatisticalTester.paired_t_test of two results, paired by user id."""
        values = self._paired_values(model_name, baseline_name, metric, k)
        return self.tester.paired_t_test(*values, alternative)

    def wilcoxon_test(
        self,
        model_name: str,
        baseline_name: str,
        metric: str,
        k: int | None = None,
        alternative: Any = "two-sided",
    ) -> dict[str, Any]:
        """StatisticalTester.wilcoxon_test of two results, paired by user id."""
        values = self._paired_values(model_name, baseline_name, metric, k)
        return self.tester.wilcoxon_test(*values, alternative)

    def cohens_d(
        self, model_name: str, baseline_name: str, metric: str, k: int | None = None
    ) -> dict[str, Any]:
        """StatisticalTester.cohens_d of two results."""
        return self.tester.cohens_d(*self._paired_values(model_name, baseline_name, metric, k))

    def get_comparison_table(self, metrics: Sequence[str] | None = None) -> Any:
        """One row per model and baseline: every metric, followed by the gain over each baseline.

        A gain is marked `*`, `**` or `***` where its p-value lies below 0.05, 0.01 or 0.001, corrected over
        the models, on the first metric alone and on all others together; without values by user there are no
        marks. `table.attrs["tested"]` names the metrics that were tested.
        """
        from recsys.cf.evaluation.wide_table import WideTable

        names = self._metric_names(metrics)
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
        `significant` and the verdict in words. By default `metrics` are those of any result, NaN where a
        model or baseline has no such number.
        """
        import pandas as pd

        baselines = list(self.baseline_results) if baseline_name is None else [baseline_name]
        names = self._metric_names(metrics)
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
        """{"recall@10 vs popularity": "+50.0% *"} for each baseline that has the metric."""
        gains = {}
        for base, results in self.baseline_results.items():
            if metric in results and metric in self.model_results[model]:
                values = _number(self.model_results[model], metric), _number(results, metric)
                gain = improvement(*values)["relative_percent"]
                test = tests.get((model, base, metric))
                p_value = np.inf if test is None else test.adjusted_p
                mark = next((f" {mark}" for below, mark in _SIGNIFICANCE_MARKS if p_value < below), "")
                gains[f"{metric} vs {base}"] = f"{gain:+.1f}%{mark}" if np.isfinite(gain) else "n/a"
        return gains

    def _paired_values(self, model: str, baseline: str, metric: str, k: int | None) -> tuple[Any, Any]:
        values = []
        for name in (model, baseline):
            if name not in self.model_results and name not in self.baseline_results:
                raise UnknownNameError("result", name, [*self.model_results, *self.baseline_results])
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
        """{(model, baseline, metric): test} where there are values by user, corrected in two families."""
        bases = [b for b in self.baseline_results if b in self._per_user]
        models = [m for m in self.model_results if m in self._per_user]
        tables = {name: _per_case_table(self._per_user[name]) for name in [*models, *bases]}
        shared = [m for m in metrics if all(m in t.columns for t in tables.values())]
        if not (bases and models and shared):
            return {}
        comparison = compare_tables(
            tables,
            metrics=shared,
            options=Options(
                confidence=1.0 - self.significance_level,
                lower_is_better=frozenset(name for name in shared if direction(name) == "lower"),
            ),
            pairs=[(model, base) for model in models for base in bases],
        )
        return {(row.model, row.baseline, row.metric): row for row in comparison.rows}

    def _metric_names(self, metrics: Sequence[str] | None) -> list[str]:
        """`metrics`, by default the numbers in any of the results, without counts of users and times."""
        if metrics is not None:
            return _name_list(metrics)
        all_results = [*self.model_results.values(), *self.baseline_results.values()]
        names = dict.fromkeys(
            name
            for results in all_results
            for name, value in results.items()
            if isinstance(value, int | float | np.number) and not isinstance(value, bool)
        )
        return [name for name in names if name not in _NOT_METRICS]


def _per_case_table(per_user: Any) -> PerCase:
    """Values by user for `recsys.stats`: {metric: {user: value}}, Series and tables are paired by user id.

    A dict of lists is paired by position.
    """
    import pandas as pd

    table = per_user
    if not (hasattr(per_user, "index") and hasattr(per_user, "columns")):
        table = pd.DataFrame({name: pd.Series(values) for name, values in per_user.items()})
    ids = table.index.to_numpy()
    columns = {str(name): table[name].to_numpy(dtype=np.float64) for name in table.columns}
    order = np.argsort(ids, kind="stable")
    return PerCase(ids[order], {name: values[order] for name, values in columns.items()})


def compare_models(
    models: ResultsByModel,
    baselines: ResultsByModel | None = None,
    metrics: Sequence[str] | None = None,
    *,
    significance_level: float = 0.05,
) -> Any:
    """The table of ModelComparator.get_comparison_table for these results.

    Both arguments are {name: results}; one argument {"models": {…}, "baselines": {…}} holds both.

    >>> compare_models({"als": {"recall@10": 0.3}}, {"popularity": {"recall@10": 0.2}})[
    ...     "recall@10 vs popularity"
    ... ].tolist()
    ['+50.0%', nan]
    """
    comparator = ModelComparator(significance_level)
    groups = _read_groups(models)
    for name, results in groups["models"].items():
        comparator.add_model_results(name, results)
    more = {} if baselines is None else _results_by_model(baselines)
    for name, results in {**groups["baselines"], **more}.items():
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

    def table(self) -> Any:
        """The table behind every format, as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(self._columns(), dtype=object)

    def generate_csv_report(self, filename: str = "cf_eval_summary.csv") -> Path:
        """Write the table with all digits; NA where a model has no such number."""
        return self.generate_csv(self.table(), filename)

    def generate_json_report(self, filename: str = "cf_eval_summary.json") -> Path:
        """Write results and metadata by model, the gains over baselines, and facts about the run."""
        models = {
            name: {"metadata": self.metadata[name], "results": results}
            for name, results in self.results.items()
        }
        gains, cautions = self._gain_rows()[0], self._cautions()
        content = {"models": models, "gains": gains, "cautions": cautions, "run": run_facts()}
        return self.generate_json(content, filename)

    def generate_markdown_report(
        self, filename: str = "cf_eval_summary.md", title: str | None = None
    ) -> Path:
        """Write a pipe table under a title, and the gains over the baselines among the results."""
        heading = "Evaluation summary" if title is None else title
        parts = [f"# {heading}", markdown_table(self._formatted_columns())]
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

    def generate_csv(self, df: Any, filename: str = "cf_eval_summary.csv") -> Path:
        """Write a DataFrame as CSV; text that a spreadsheet would run as a formula gets an apostrophe."""
        rows = df.astype(object).where(df.notna(), "NA").itertuples(index=False, name=None)
        return self._write(filename, csv_text(df.columns, rows))

    def generate_json(self, results: Mapping[str, Any], filename: str = "cf_eval_detailed.json") -> Path:
        """Write results as JSON."""
        return self._write(filename, json.dumps(json_value(results), indent=2, ensure_ascii=False) + "\n")

    def generate_markdown(
        self, results: Mapping[str, Any], model_comparison: Any, filename: str = "evaluation_report.md"
    ) -> Path:
        """Write a comparison table, then one table per model of `results`."""
        comparison = {str(name): list(model_comparison[name]) for name in model_comparison.columns}
        columns = {
            name: _cells(column, metric=metric_of(name) is not None) for name, column in comparison.items()
        }
        parts = ["# Evaluation report", markdown_table(columns)]
        for name, values in _results_by_model(results).items():
            numbers = _scalars(values)
            columns = {"metric": list(numbers), "value": _cells(numbers.values(), metric=True)}
            parts += [f"## {markdown_text(name)}", markdown_table(columns)]
        return self._write(filename, "\n\n".join(parts) + "\n")

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


def _position(name: str, order: tuple[str, ...]) -> tuple[int, float]:
    """Where a column stands: by its place in the order, then by its cut-off."""
    stem, _, k = name.partition("@")
    return order.index(stem) if stem in order else len(order), float(k) if k.isdigit() else math.inf


def _cells(values: Iterable[Any], *, metric: bool) -> list[Any]:
    """Cells of Markdown and LaTeX, where a float has four decimals: all digits if it is no metric.

    A metric that would be printed as 0.0000 and is not 0 has two digits; NA is no number.

    >>> _cells([0.25, 0.00001, 0.0, None], metric=True), _cells([1e-05, 45.2, 64], metric=False)
    ([0.25, '1.0e-05', 0.0, 'NA'], ['1e-05', '45.2', 64])
    """
    cells: list[Any] = []
    for value in values:
        number = value.item() if isinstance(value, np.generic) else value
        if number is None or (isinstance(number, float) and math.isnan(number)):
            cells.append("NA")
        elif not isinstance(number, float) or (metric and not 0 < abs(number) < 0.00005):
            cells.append(number)
        else:
            cells.append(f"{number:.1e}" if metric else f"{number:.12g}")
    return cells


def generate_evaluation_report(
    results: ResultsByModel,
    output_path: str | Path | None = None,
    format: str | None = None,  # noqa: A002 - the name in document 000
    metadata: ResultsByModel | None = None,
    *,
    output_dir: str | Path | None = None,
    formats: Iterable[str] | None = None,
) -> Any:
    """Write results as one file or, with `output_dir` or `formats`, as several.

    Args:
        results: {model: results}, or {"models": {…}, "baselines": {…}}.
        output_path: the file, such as "reports/cf_eval_summary.csv"; its suffix is the default format.
        format: "csv", "json", "markdown" or "latex".
        metadata: {model: hyperparameters and the like}.
        output_dir: the folder of several files.
        formats: the formats of several files; by default CSV, JSON and Markdown.

    Returns:
        The path, or {format: path}.
    """
    results = _results_by_model(results)
    place = output_dir if output_path is None else output_path
    if place is None:
        raise InputError("a report needs a place.", hint='Pass output_path="reports/cf_eval_summary.csv".')
    target = Path(place)
    is_one_file = output_dir is None and formats is None
    names = _name_list(("csv", "json", "markdown") if formats is None else formats)
    if is_one_file:
        names = [format or target.suffix.lstrip(".") or "csv"]
    writers = {name: f"generate_{_format_name(name)}_report" for name in names}
    folder = target.parent if is_one_file or target.suffix else target
    generator = ReportGenerator(folder if output_dir is None else output_dir)
    for model, values in results.items():
        generator.add_results(model, values, (metadata or {}).get(model))
    if is_one_file:
        return getattr(generator, writers[names[0]])(target.name)
    return {name: getattr(generator, writer)() for name, writer in writers.items()}


def _format_name(name: str) -> str:
    """The format of this name or alias."""
    format_name = _FORMAT_ALIASES.get(str(name).lower(), str(name).lower())
    if format_name not in _FORMATS:
        raise UnknownNameError("format", name, (*_FORMATS, *_FORMAT_ALIASES))
    return format_name


class EvaluationVisualizer:
    """`prepare_*` returns the data of a chart; `plot_*` draws it and returns the matplotlib Axes.

    Which of two numbers is better follows from the metric: the lower RMSE, the higher recall. Of a number
    that is no registered metric the higher one is better, of a time the lower.

    >>> data = EvaluationVisualizer().prepare_bar_chart_data(
    ...     results={"als": {"recall@10": 0.3}, "popularity": {"recall@10": 0.2}}, metrics=["recall@10"]
    ... )
    >>> data["values"], data["best"]
    ({'recall@10': [0.3, 0.2]}, {'recall@10': 'als'})
    """

    @staticmethod
    def prepare_bar_chart_data(
        results: ResultsByModel,
        metrics: str | Sequence[str] = ("recall@10", "ndcg@10"),
        *,
        metric: str | None = None,
    ) -> dict[str, Any]:
        """`models`, `metrics`, `values` {metric: one number per model}, `best` {metric: model}.

        `results` may be a comparison table; `metric` is another name for a single entry of `metrics`.
        """
        results, metrics = _results_by_model(results), _name_list(metrics if metric is None else metric)
        _check_names(results, metrics)
        values = {name: [_number(row, name) for row in results.values()] for name in metrics}
        best: dict[str, str | None] = {}
        for name, row in values.items():
            known = {model: value for model, value in zip(results, row, strict=True) if not math.isnan(value)}
            best[name] = max(known, key=lambda model: goodness(name, known[model])) if known else None
        return {"models": list(results), "metrics": list(metrics), "values": values, "best": best}

    @staticmethod
    def prepare_k_sensitivity_data(
        results: ResultsByModel,
        metric: str = "recall",
        k_values: Sequence[int] | None = None,
        *,
        metric_prefix: str | None = None,
    ) -> dict[str, Any]:
        """`k_values` and `series` {model: one number per k}; NaN if a model was not evaluated at a k.

        By default `k_values` are the cut-offs of any result. `metric_prefix` is another name for `metric`.
        """
        results = _results_by_model(results)
        stem = (metric if metric_prefix is None else metric_prefix).partition("@")[0]
        names = (str(key).partition("@") for row in results.values() for key in row)
        known = {int(k) for name, _, k in names if name == stem and k.isdigit()}
        cutoffs = sorted(known) if k_values is None else cutoff_list(k_values)
        if not cutoffs:
            raise InputError(
                f"no result holds {stem} at a cut-off.",
                hint=f"Evaluate with k_values={list(_EXAMPLE_CUTOFFS)}.",
            )
        series = {name: [_number(row, f"{stem}@{k}") for k in cutoffs] for name, row in results.items()}
        return {"metric": stem, "k_values": cutoffs, "series": series}

    @staticmethod
    def prepare_tradeoff_data(
        results: ResultsByModel, accuracy_metric: str = "ndcg@10", coverage_metric: str = "coverage"
    ) -> dict[str, Any]:
        """`models`, `coverage`, `accuracy`, and `pareto`: the models that no other model beats in both."""
        results = _results_by_model(results)
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

    @staticmethod
    def prepare_distribution_data(
        per_user: Any, metric: str = "recall@10", k: int | None = None, bins: int = 20
    ) -> dict[str, Any]:
        """`values` (one per user), `counts`, `edges`, and their summary; `per_user` is a table by user."""
        known = list(map(str, per_user))
        name = metric if k is None or metric in known else f"{metric}@{k}"
        if name not in known:
            raise UnknownNameError("metric by user", name, known)
        return {
            "metric": name,
            **distribution(np.asarray(per_user[name], dtype=np.float64), bins=cutoff(bins, "bins")),
        }

    @staticmethod
    def prepare_activity_data(
        strata: Mapping[str, Mapping[str, float]], metric: str = "recall@10"
    ) -> dict[str, Any]:
        """`bins`, `values` and `num_users` of ModelEvaluator.stratify_by_activity."""
        strata = _results_by_model(strata)
        _check_names(strata, (metric, "num_users"))
        return {
            "metric": metric,
            "bins": list(strata),
            "values": [_number(row, metric) for row in strata.values()],
            "num_users": [int(np.nan_to_num(_number(row, "num_users"))) for row in strata.values()],
        }

    def plot_bar_chart(
        self, results: ResultsByModel, metrics: str | Sequence[str] = ("recall@10", "ndcg@10"), ax: Any = None
    ) -> Any:
        """Bars of the models side by side; the best of each metric is outlined and named in the title."""
        metrics = _name_list(metrics)
        data = self.prepare_bar_chart_data(results, metrics)
        values = {n: {m: data["values"][m][i] for m in metrics} for i, n in enumerate(data["models"])}
        axes = _figures().bars(values, ax=ax)
        for group, metric in enumerate(metrics):
            if data["best"][metric] is not None:
                bar = axes.containers[data["models"].index(data["best"][metric])][group]
                bar.set_edgecolor("black")
                bar.set_linewidth(1.6)
        axes.set_ylim(top=1.25 * axes.get_ylim()[1])  # room above the bars for the names
        best = {m: name for m, name in data["best"].items() if name is not None}
        axes.set_title("best: " + ", ".join(f"{name} ({m})" for m, name in best.items()))
        return axes

    def plot_k_sensitivity(
        self,
        results: ResultsByModel,
        metric: str = "recall",
        k_values: Sequence[int] | None = None,
        ax: Any = None,
    ) -> Any:
        """One line per model over the cut-offs."""
        data = self.prepare_k_sensitivity_data(results, metric, k_values)
        lines = {
            name: {k: v for k, v in zip(data["k_values"], row, strict=True) if not math.isnan(v)}
            for name, row in data["series"].items()
        }
        return _figures().curve(lines, metric=data["metric"], ax=ax)

    def plot_tradeoff(
        self,
        results: ResultsByModel,
        accuracy_metric: str = "ndcg@10",
        coverage_metric: str = "coverage",
        ax: Any = None,
    ) -> Any:
        """One point per model: accuracy over coverage."""
        data = self.prepare_tradeoff_data(results, accuracy_metric, coverage_metric)
        points = dict(zip(data["models"], zip(data["coverage"], data["accuracy"], strict=True), strict=True))
        return _figures().tradeoff(points, x=coverage_metric, y=accuracy_metric, ax=ax)

    def plot_distribution(
        self, per_user: Any, metric: str = "recall@10", k: int | None = None, ax: Any = None
    ) -> Any:
        """The distribution of the metric over users; {model: table by user} draws several models."""
        is_one_table = hasattr(per_user, "columns") or not isinstance(per_user, Mapping)
        tables = {"model": per_user} if is_one_table else per_user
        data = {name: self.prepare_distribution_data(table, metric, k) for name, table in tables.items()}
        return _figures().distribution({n: d["values"] for n, d in data.items()}, metric=metric, ax=ax)

    def plot_activity(
        self,
        strata: Mapping[str, Mapping[str, float]],
        metric: str = "recall@10",
        model: str = "model",
        ax: Any = None,
    ) -> Any:
        """The metric by activity, with the number of users in each bin."""
        data = self.prepare_activity_data(strata, metric)
        values = {model: dict(zip(data["bins"], data["values"], strict=True))}
        sizes = dict(zip(data["bins"], data["num_users"], strict=True))
        return _figures().strata(values, metric=metric, sizes=sizes, title="training interactions", ax=ax)


def _figures() -> Any:
    from recsys.report import figures

    return figures


def _results_by_model(results: Any) -> dict[str, Any]:
    """{name: results} of models and baselines; baselines of the nested form are marked as such."""
    groups = _read_groups(results)
    return {**groups["models"], **groups["baselines"]}


def _read_groups(results: Any) -> dict[str, dict[str, Any]]:
    """Models and baselines apart; all are models unless the results say {"models": …, "baselines": …}."""
    if hasattr(results, "columns") and hasattr(results, "to_dict"):
        table = results.set_index("model") if "model" in results.columns else results
        results = table.to_dict("index")
    nested = bool(results) and set(results) <= set(_GROUPS) and all(
        isinstance(group, Mapping) and all(isinstance(row, Mapping) for row in group.values())
        for group in results.values()
    )  # fmt: skip
    groups = dict(results) if nested else {"models": results}
    models = {name: _check_results(row, name) for name, row in groups.get("models", {}).items()}
    baselines = {name: _as_baseline(name, row) for name, row in groups.get("baselines", {}).items()}
    for name in models.keys() & baselines.keys():
        raise InputError(
            f"{name!r} is the name of both a model and a baseline.", hint="Give each a name of its own."
        )
    return {"models": models, "baselines": baselines}


def _as_baseline(name: str, results: Mapping[str, Any]) -> Any:
    """The results with a `baseline_name`; those of this package keep their values by user."""
    _check_results(results, name)
    if "baseline_name" in results:
        return results
    marked = copy.copy(results) if isinstance(results, dict) else dict(results)
    marked["baseline_name"] = name
    return marked


def _check_results(results: Any, name: str) -> Any:
    """The results of one model, if they are {metric: number} or a Series."""
    if not (hasattr(results, "items") and hasattr(results, "get")) or hasattr(results, "columns"):
        raise InputError(
            f"the results of {name!r} came as {type(results).__name__}.",
            hint='Pass {model: {metric: number}}, such as {"als": {"recall@10": 0.2}}.',
        )
    if len(results) and not _scalars(results):
        raise InputError(
            f"the results of {name!r} hold no number.",
            hint='Pass {model: {metric: number}} or {"models": {...}, "baselines": {...}}.',
        )
    return results


def _name_list(names: Any) -> list[str]:
    names = names.tolist() if hasattr(names, "tolist") else names
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
