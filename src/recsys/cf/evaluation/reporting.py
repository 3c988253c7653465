"""Result tables as files in the layout of document 000: CSV, JSON, Markdown, LaTeX.

The columns are model, hyperparameters, recall, NDCG, the other metrics, coverage, training time; a missing
value is NA. Results with a `baseline_name` are baselines: JSON and Markdown then hold the gains over them,
with marks of significance. Files are written atomically.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from recsys.errors import InputError, UnknownNameError
from recsys.evaluation import tables
from recsys.evaluation.provenance import run_facts
from recsys.inputs.files import write_text

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
_SUFFIXES = {"csv": ".csv", "json": ".json", "markdown": ".md", "latex": ".tex"}
_MARKS_LEGEND = "`*`, `**`, `***`: p below 0.05, 0.01, 0.001, paired by user and corrected over the table."
_FORMAT_ALIASES = {"md": "markdown", "tex": "latex"}


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
        document = {"models": json_value(models), "gains": json_value(self._gain_rows()), "run": run_facts()}
        return self._write(filename, json.dumps(document, indent=2, ensure_ascii=False) + "\n")

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
        from recsys.cf.evaluation.comparison import compare_models

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
                (m for m in metrics if m not in _LAST_COLUMNS and m not in parameters), key=_metric_position
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


def _position(name: str, order: tuple[str, ...]) -> int:
    return order.index(name) if name in order else len(order)


def _metric_position(name: str) -> tuple[int, float]:
    stem, _, k = name.partition("@")
    return _position(stem, _METRIC_ORDER), float(k) if k.isdigit() else math.inf


def _value_or_na(value: Any) -> Any:
    return "NA" if value is None or (isinstance(value, float) and math.isnan(value)) else value


def json_value(value: Any) -> Any:
    """The value as JSON can hold it: NumPy numbers and arrays as Python's, NaN as null."""
    if isinstance(value, Mapping):
        return {str(name): json_value(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_value(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic):
        return json_value(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def generate_evaluation_report(
    results: Mapping[str, Mapping[str, Any]],
    output_path: str | Path | None = None,
    format: str | None = None,  # noqa: A002 - the name in document 000
    metadata: Mapping[str, Mapping[str, Any]] | None = None,
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
    if format_name not in _FORMATS:
        raise UnknownNameError("format", name, (*_FORMATS, *_FORMAT_ALIASES))
    return format_name


def _write_report(
    results: Mapping[str, Mapping[str, Any]], target: Path, name: str, metadata: Mapping[str, Any] | None
) -> Path:
    generator = ReportGenerator(target.parent)
    for model, values in results.items():
        generator.add_results(model, values, (metadata or {}).get(model))
    path: Path = getattr(generator, f"generate_{_format_name(name)}_report")(target.name)
    return path
