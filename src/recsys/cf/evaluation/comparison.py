"""The model comparison of document 000, its result tables (CSV, JSON, Markdown, LaTeX) and its charts.

Results may carry their values by user (those of this package do) or come with a table by user; without
either there is an improvement but no test. `recsys.stats` pairs the users, tests and corrects.

The columns of a report are model, hyperparameters, recall, NDCG, the other metrics, coverage, training time;
a missing value is NA. Results with a `baseline_name` are baselines: JSON and Markdown then hold the gains
over them, with marks of significance. Files are written atomically. `recsys.report.figures` draws the charts.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recsys.analysis import distribution, improvement, pareto_front
from recsys.cf.evaluation.statistical_tests import StatisticalTester
from recsys.cf.evaluation.translation import json_value
from recsys.errors import InputError, UnknownNameError
from recsys.evaluation import tables
from recsys.evaluation.result_files import run_facts
from recsys.inputs.files import write_text
from recsys.stats.comparison_table import Options
from recsys.stats.paired_comparison import compare_tables
from recsys.types import PerCase

ResultsByModel = Mapping[str, Mapping[str, Any]]
_SIGNIFICANCE_MARKS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
_NOT_METRICS = ("num_users_evaluated", "num_users_skipped", "evaluation_time_seconds", "training_time")
_FIRST_PARAMETERS = ("factors", "reg", "alpha")
_METRIC_ORDER = ("recall", "ndcg", "precision", "map", "mrr", "hit", "hit_rate")
_LAST_COLUMNS = (
    "coverage",
    "training_time",
    "num_users_evaluated",
    "num_users_skipped",
    "evaluation_time_seconds",
)
_SUFFIXES = {"csv": ".csv", "json": ".json", "markdown": ".md", "latex": ".tex"}
_MARKS_LEGEND = "`*`, `**`, `***`: p below 0.05, 0.01, 0.001, paired by user and corrected over the table."
_FORMAT_ALIASES = {"md": "markdown", "tex": "latex"}
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
        self.tester = StatisticalTester(significance_level)
        self.significance_level = significance_level
        self.model_results: dict[str, Mapping[str, Any]] = {}
        self.baseline_results: dict[str, Mapping[str, Any]] = {}
        self._per_user: dict[str, Any] = {}

    def add_model_results(self, name: str, results: Mapping[str, Any], per_user_metrics: Any = None) -> None:
        """Add a model's results and, if the results do not carry them, its values by user."""
        self._add_results(self.model_results, self.baseline_results, name, results, per_user_metrics)

    def add_baseline_results(
        self, name: str, results: Mapping[str, Any], per_user_metrics: Any = None
    ) -> None:
        """Add a baseline's results and, if the results do not carry them, its values by user."""
        self._add_results(self.baseline_results, self.model_results, name, results, per_user_metrics)

    def _add_results(
        self,
        group: dict[str, Mapping[str, Any]],
        other_group: Mapping[str, Any],
        name: str,
        results: Mapping[str, Any],
        per_user: Any,
    ) -> None:
        if name in other_group:
            raise InputError(
                f"{name!r} is the name of both a model and a baseline.", hint="Give each a name of its own."
            )
        group[name] = results
        evaluation = getattr(results, "evaluation", None)
        if per_user is None and evaluation is not None:
            per_user = evaluation.per_user
        if per_user is not None:
            self._per_user[name] = per_user

    def compute_improvement(self, model_name: str, baseline_name: str, metric: str) -> dict[str, float]:
        """Keys: model_value, baseline_value, absolute, relative, relative_percent (NaN if baseline <= 0)."""
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
            values.append(float(group[name].get(metric, np.nan)))
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

        A gain is marked `*`, `**` or `***` where its p-value, corrected over the whole table, lies below
        0.05, 0.01 or 0.001; without values by user there are no marks.
        """
        import pandas as pd

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
                gain = improvement(self.model_results[model][metric], results[metric])["relative_percent"]
                test = tests.get((model, base, metric))
                p_value = np.inf if test is None else test.adjusted_p
                mark = next((f" {mark}" for below, mark in _SIGNIFICANCE_MARKS if p_value < below), "")
                gains[f"{metric} vs {base}"] = f"{gain:+.1f}%{mark}" if np.isfinite(gain) else "n/a"
        return gains

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
        models = [m for m in self.model_results if m in self._per_user]
        tables = {name: _per_case_table(self._per_user[name]) for name in [*models, *bases]}
        shared = [m for m in metrics if all(m in t.columns for t in tables.values())]
        if not (bases and models and shared):
            return {}
        comparison = compare_tables(
            tables,
            metrics=shared,
            options=Options(confidence=1.0 - self.significance_level),
            pairs=[(model, base) for model in models for base in bases],
        )
        return {(row.model, row.baseline, row.metric): row for row in comparison.rows}

    def _metric_names(self, metrics: Sequence[str] | None) -> list[str]:
        """`metrics`, by default the numbers in any of the results, without counts of users and times."""
        if metrics is not None:
            return list(metrics)
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
    models: ResultsByModel,
    baselines: ResultsByModel | None = None,
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


class ReportGenerator:
    """Collects results and writes them as one table per format.

    >>> import tempfile
    >>> generator = ReportGenerator(output_dir=tempfile.mkdtemp())
    >>> generator.add_results("als", {"ndcg@10": 0.19, "recall@10": 0.23, "coverage": 0.3}, {"factors": 64})
    >>> generator.add_results("popularity", {"recall@10": 0.14}, metadata={})
    >>> print(generator.generate_csv_report("summary.csv").read_text(), end="")
    model,factors,recall@10,ndcg@10,coverage
    als,64,0.23,0.19,0.3
    popularity,NA,0.14,NA,NA
    """

    def __init__(self, output_dir: str | Path = "reports") -> None:
        self.output_dir = Path(output_dir)
        self.output_dir.mkdir(parents=True, exist_ok=True)
        self.results: dict[str, Mapping[str, Any]] = {}
        self.metadata: dict[str, Mapping[str, Any]] = {}

    def add_results(
        self, name: str, results: Mapping[str, Any], metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Add a model's results, with its hyperparameters, training time and the like."""
        self.results[name] = results
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
        return self.generate_json(
            {"models": models, "gains": self._gain_rows(), "run": run_facts()}, filename
        )

    def generate_markdown_report(
        self, filename: str = "cf_eval_summary.md", title: str | None = None
    ) -> Path:
        """Write a pipe table under a title, and the gains over the baselines among the results."""
        heading = "Evaluation summary" if title is None else title
        parts = [f"# {heading}", tables.markdown(self._formatted_columns())]
        gains = self._gain_rows()
        if gains:
            columns = {name: [_value_or_na(row.get(name)) for row in gains] for name in gains[0]}
            parts += ["## Gains over baselines", tables.markdown(columns), _MARKS_LEGEND]
        return self._write(filename, "\n\n".join(parts) + "\n")

    def generate_latex_report(self, filename: str = "cf_eval_summary.tex") -> Path:
        """Write the table as a booktabs tabular."""
        return self._write(filename, tables.latex(self._formatted_columns()) + "\n")

    def generate_csv(self, df: Any, filename: str = "cf_eval_summary.csv") -> Path:
        """Write a DataFrame as CSV."""
        return self._write(filename, df.to_csv(index=False, na_rep="NA", lineterminator="\n"))

    def generate_json(self, results: Mapping[str, Any], filename: str = "cf_eval_detailed.json") -> Path:
        """Write results as JSON."""
        return self._write(filename, json.dumps(json_value(results), indent=2, ensure_ascii=False) + "\n")

    def generate_markdown(
        self, results: Mapping[str, Any], model_comparison: Any, filename: str = "evaluation_report.md"
    ) -> Path:
        """Write a comparison table, then one table per model of `results`."""
        comparison = {str(name): model_comparison[name].tolist() for name in model_comparison}
        parts = ["# Evaluation report", tables.markdown(comparison)]
        for kind in ("models", "baselines"):
            for name, values in results.get(kind, {}).items():
                columns = {
                    "metric": list(values),
                    "value": [_value_or_na(value) for value in values.values()],
                }
                parts += [f"## {name}", tables.markdown(columns)]
        return self._write(filename, "\n\n".join(parts) + "\n")

    def _gain_rows(self) -> list[dict[str, Any]]:
        """The gains of each model over each baseline, tested if the results carry their values by user."""
        baselines = {name: values for name, values in self.results.items() if "baseline_name" in values}
        models = {name: values for name, values in self.results.items() if name not in baselines}
        if not baselines or not models:
            return []
        table = compare_models(models, baselines)
        columns = ["model", *(name for name in table if " vs " in str(name))]
        rows: list[dict[str, Any]] = table[table["type"] == "model"][columns].to_dict("records")
        return rows

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
        return {name: [_value_or_na(value) for value in column] for name, column in self._columns().items()}

    def _write(self, filename: str, text: str) -> Path:
        target = self.output_dir / filename
        target.parent.mkdir(parents=True, exist_ok=True)
        write_text(target, text)
        return target


def _scalars(values: Mapping[str, Any]) -> dict[str, Any]:
    """The texts and numbers among the values, as Python values."""
    return {
        str(name): value.item() if isinstance(value, np.generic) else value
        for name, value in values.items()
        if isinstance(value, str | int | float | bool | np.generic) and name != "baseline_name"
    }


def _position(name: str, order: tuple[str, ...]) -> tuple[int, float]:
    """Where a column stands: by its place in the order, then by its cut-off."""
    stem, _, k = name.partition("@")
    return order.index(stem) if stem in order else len(order), float(k) if k.isdigit() else math.inf


def _value_or_na(value: Any) -> Any:
    return "NA" if value is None or (isinstance(value, float) and math.isnan(value)) else value


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

    Returns the path, or {format: path}. The default format follows from the suffix of the file.
    """
    target = Path("reports/cf_eval_summary.csv" if output_path is None else output_path)
    if output_dir is None and formats is None:
        return _write_report(results, target, format or target.suffix.lstrip(".") or "csv", metadata)
    default_folder = target.parent if target.suffix else target
    folder = default_folder if output_dir is None else Path(output_dir)
    paths = {}
    for name in ["csv", "json", "markdown"] if formats is None else formats:
        file = folder / f"cf_eval_summary{_SUFFIXES[_format_name(name)]}"
        paths[name] = _write_report(results, file, name, metadata)
    return paths


def _format_name(name: str) -> str:
    """The format of this name or alias."""
    format_name = _FORMAT_ALIASES.get(name.lower(), name.lower())
    if format_name not in _SUFFIXES:
        raise UnknownNameError("format", name, (*_SUFFIXES, *_FORMAT_ALIASES))
    return format_name


def _write_report(results: ResultsByModel, target: Path, name: str, metadata: ResultsByModel | None) -> Path:
    generator = ReportGenerator(target.parent)
    for model, values in results.items():
        generator.add_results(model, values, (metadata or {}).get(model))
    path: Path = getattr(generator, f"generate_{_format_name(name)}_report")(target.name)
    return path


class EvaluationVisualizer:
    """`prepare_*` returns the data of a chart; `plot_*` draws it and returns the matplotlib Axes.

    >>> data = EvaluationVisualizer().prepare_bar_chart_data(
    ...     results={"als": {"recall@10": 0.3}, "popularity": {"recall@10": 0.2}}, metrics=["recall@10"]
    ... )
    >>> data["values"], data["best"]
    ({'recall@10': [0.3, 0.2]}, {'recall@10': 'als'})
    """

    def prepare_bar_chart_data(
        self,
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
            best[name] = max(known, key=known.__getitem__) if known else None
        return {"models": list(results), "metrics": list(metrics), "values": values, "best": best}

    def prepare_k_sensitivity_data(
        self,
        results: ResultsByModel,
        metric: str = "recall",
        k_values: Sequence[int] | None = None,
        *,
        metric_prefix: str | None = None,
    ) -> dict[str, Any]:
        """`k_values` and `series` {model: one number per k}; NaN if a model was not evaluated at a k.

        By default `k_values` are the cut-offs of any result. `metric_prefix` is another name for `metric`.
        """
        results, stem = _results_by_model(results), (metric_prefix or metric).partition("@")[0]
        names = (str(key).partition("@") for row in results.values() for key in row)
        known = {int(k) for name, _, k in names if name == stem and k.isdigit()}
        cutoffs = sorted(known) if k_values is None else list(k_values)
        if not cutoffs:
            raise InputError(
                f"no result holds {stem} at a cut-off.",
                hint=f"Evaluate with k_values={list(_EXAMPLE_CUTOFFS)}.",
            )
        series = {name: [_number(row, f"{stem}@{k}") for k in cutoffs] for name, row in results.items()}
        return {"metric": stem, "k_values": cutoffs, "series": series}

    def prepare_tradeoff_data(
        self, results: ResultsByModel, accuracy_metric: str = "ndcg@10", coverage_metric: str = "coverage"
    ) -> dict[str, Any]:
        """`models`, `coverage`, `accuracy`, and `pareto`: the models that no other model beats in both."""
        results = _results_by_model(results)
        _check_names(results, (coverage_metric, accuracy_metric))
        points = {
            name: (_number(row, coverage_metric), _number(row, accuracy_metric))
            for name, row in results.items()
        }
        return {
            "models": list(points),
            "coverage": [x for x, _ in points.values()],
            "accuracy": [y for _, y in points.values()],
            "coverage_metric": coverage_metric,
            "accuracy_metric": accuracy_metric,
            "pareto": pareto_front(points),
        }

    def prepare_distribution_data(
        self, per_user: Any, metric: str = "recall@10", k: int | None = None, bins: int = 20
    ) -> dict[str, Any]:
        """`values` (one per user), `counts`, `edges`, and their summary; `per_user` is a table by user."""
        name = metric if k is None or metric in per_user else f"{metric}@{k}"
        if name not in per_user:
            raise UnknownNameError("metric by user", name, map(str, per_user))
        return {"metric": name, **distribution(per_user[name], bins=bins)}

    def prepare_activity_data(
        self, strata: Mapping[str, Mapping[str, float]], metric: str = "recall@10"
    ) -> dict[str, Any]:
        """`bins`, `values` and `num_users` of ModelEvaluator.stratify_by_activity."""
        _check_names(strata, (metric,))
        return {
            "metric": metric,
            "bins": list(strata),
            "values": [_number(row, metric) for row in strata.values()],
            "num_users": [int(row["num_users"]) for row in strata.values()],
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


def _results_by_model(results: Any) -> ResultsByModel:
    """{model: results}, also from a table with a `model` column (or with models as its index)."""
    if not hasattr(results, "columns"):
        return dict(results)
    table = results.set_index("model") if "model" in results.columns else results
    by_model: ResultsByModel = table.to_dict("index")
    return by_model


def _name_list(metrics: str | Sequence[str]) -> list[str]:
    return [metrics] if isinstance(metrics, str) else list(metrics)


def _check_names(results: ResultsByModel, names: Sequence[str]) -> None:
    """Some models may lack a number; a number that all models lack is a mistyped name."""
    known = dict.fromkeys(str(key) for row in results.values() for key in row)
    for name in names:
        if results and name not in known:
            raise UnknownNameError("result", name, known)


def _number(row: Mapping[str, Any], name: str) -> float:
    value = row.get(name)
    return math.nan if value is None else float(value)
