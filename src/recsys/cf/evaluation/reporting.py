"""Result tables as files in seed 000's layout: CSV, JSON, Markdown, LaTeX.

Columns stand in the seed's order: model, hyperparameters, recall, NDCG, the other metrics, coverage, time of
training. What a model does not have is NA. Results of baselines are told by their `baseline_name`: JSON and
Markdown then hold the gains over them, with marks of significance. Files change at once or not at all.
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
_LAST = ("coverage", "training_time", "num_users_evaluated", "num_users_skipped", "evaluation_time_seconds")
_FORMATS = ("csv", "json", "markdown", "latex")
_ENDINGS = {"csv": ".csv", "json": ".json", "markdown": ".md", "latex": ".tex"}
_MARKS = "`*`, `**`, `***`: p below 0.05, 0.01, 0.001, paired by user and corrected over the table."
_SAME = {"md": "markdown", "tex": "latex"}


class ReportGenerator:
    """Collects results and writes them as one table a format.

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
        """One model's results, with its hyperparameters, time of training and the like."""
        self.results[name] = results
        self.metadata[name] = dict(metadata or {})

    def table(self) -> Any:
        """The table behind every format, as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(self._columns(), dtype=object)

    def generate_csv_report(self, filename: str = "cf_eval_summary.csv") -> Path:
        """Every digit; NA where a model has no such number."""
        return self.generate_csv(self.table(), filename)

    def generate_json_report(self, filename: str = "cf_eval_summary.json") -> Path:
        """Results and metadata by model, and the facts of the run."""
        models = {
            name: {"metadata": self.metadata[name], "results": held} for name, held in self.results.items()
        }
        document = {"models": plain(models), "gains": plain(self._gains()), "run": run_facts()}
        return self._write(filename, json.dumps(document, indent=2, ensure_ascii=False) + "\n")

    def generate_markdown_report(
        self, filename: str = "cf_eval_summary.md", title: str | None = None
    ) -> Path:
        """A pipe table under a title, and the gains over the baselines among the results."""
        head = "Evaluation summary" if title is None else title
        parts = [f"# {head}", tables.markdown(self._shown())]
        gains = self._gains()
        if gains:
            columns = {name: [_cell(row.get(name)) for row in gains] for name in gains[0]}
            parts += ["## Gains over baselines", tables.markdown(columns), _MARKS]
        return self._write(filename, "\n\n".join(parts) + "\n")

    def generate_latex_report(self, filename: str = "cf_eval_summary.tex") -> Path:
        """A booktabs tabular."""
        return self._write(filename, tables.latex(self._shown()) + "\n")

    def generate_csv(self, df: Any, filename: str = "cf_eval_summary.csv") -> Path:
        """A DataFrame of your own as CSV."""
        return self._write(filename, df.to_csv(index=False, na_rep="NA", lineterminator="\n"))

    def generate_json(self, results: Mapping[str, Any], filename: str = "cf_eval_detailed.json") -> Path:
        """Results of your own as JSON."""
        return self._write(filename, json.dumps(plain(results), indent=2, ensure_ascii=False) + "\n")

    def generate_markdown(
        self, results: Mapping[str, Any], model_comparison: Any, filename: str = "evaluation_report.md"
    ) -> Path:
        """A comparison table, then one table a model of `results`."""
        shown = {str(name): model_comparison[name].tolist() for name in model_comparison}
        parts = ["# Evaluation report", tables.markdown(shown)]
        for kind in ("models", "baselines"):
            for name, held in results.get(kind, {}).items():
                rows = {"metric": list(held), "value": [_cell(value) for value in held.values()]}
                parts += [f"## {name}", tables.markdown(rows)]
        return self._write(filename, "\n\n".join(parts) + "\n")

    def _gains(self) -> list[dict[str, Any]]:
        """Each model against each baseline, tested user by user where the results carry their users."""
        from recsys.cf.evaluation.comparison import compare_models

        bases = {name: held for name, held in self.results.items() if "baseline_name" in held}
        models = {name: held for name, held in self.results.items() if name not in bases}
        if not bases or not models:
            return []
        table = compare_models(models, bases)
        shown = ["model", *(name for name in table if " vs " in str(name))]
        found: list[dict[str, Any]] = table[table["type"] == "model"][shown].to_dict("records")
        return found

    def _columns(self) -> dict[str, list[Any]]:
        if not self.results:
            raise InputError("no results were added.", hint="Call add_results(name, results) first.")
        merged = {
            name: {**_scalars(self.metadata[name]), **_scalars(self.results[name])} for name in self.results
        }
        known = dict.fromkeys(key for held in self.metadata.values() for key in _scalars(held))
        parameters = [key for key in known if key not in _LAST]
        metrics = dict.fromkeys(key for held in self.results.values() for key in _scalars(held))
        names = [
            *sorted(parameters, key=lambda key: _place(key, _FIRST_PARAMETERS)),
            *sorted((m for m in metrics if m not in _LAST and m not in parameters), key=_metric_place),
            *(last for last in _LAST if last in metrics or last in known),
        ]
        columns: dict[str, list[Any]] = {"model": list(merged)}
        return columns | {key: [held.get(key) for held in merged.values()] for key in names}

    def _shown(self) -> dict[str, list[Any]]:
        return {name: [_cell(value) for value in column] for name, column in self._columns().items()}

    def _write(self, filename: str, text: str) -> Path:
        target = self.output_dir / filename
        target.parent.mkdir(parents=True, exist_ok=True)
        write_text(target, text)
        return target


def _scalars(held: Mapping[str, Any]) -> dict[str, Any]:
    return {
        str(name): value.item() if isinstance(value, np.generic) else value
        for name, value in held.items()
        if isinstance(value, str | int | float | bool | np.generic) and name != "baseline_name"
    }


def _place(name: str, order: tuple[str, ...]) -> int:
    return order.index(name) if name in order else len(order)


def _metric_place(name: str) -> tuple[int, float]:
    stem, _, k = name.partition("@")
    return _place(stem, _METRIC_ORDER), float(k) if k.isdigit() else math.inf


def _cell(value: Any) -> Any:
    return "NA" if value is None or (isinstance(value, float) and math.isnan(value)) else value


def plain(held: Any) -> Any:
    """What JSON can hold: NumPy numbers and arrays as Python's, NaN as null."""
    if isinstance(held, Mapping):
        return {str(name): plain(value) for name, value in held.items()}
    if isinstance(held, list | tuple | set | frozenset):
        return [plain(value) for value in held]
    if isinstance(held, np.ndarray | np.generic):
        return plain(held.tolist())
    if isinstance(held, float) and not math.isfinite(held):
        return None
    return held if held is None or isinstance(held, str | int | float | bool) else str(held)


def generate_evaluation_report(
    results: Mapping[str, Mapping[str, Any]],
    output_path: str | Path | None = None,
    format: str | None = None,  # noqa: A002 - the seed's name
    metadata: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    output_dir: str | Path | None = None,
    formats: Iterable[str] | None = None,
) -> Any:
    """Write results as one file; or, with `output_dir` or `formats`, as several.

    Returns the path, or {format: path}. The format is told by the file's name where none is given.
    """
    where = Path("reports/cf_eval_summary.csv" if output_path is None else output_path)
    if output_dir is not None or formats is not None:
        beside = where.parent if where.suffix else where
        folder = beside if output_dir is None else Path(output_dir)
        wanted = ["csv", "json", "markdown"] if formats is None else list(formats)
        stem = folder / "cf_eval_summary"
        return {form: _generated(results, stem.with_suffix(_ending(form)), form, metadata) for form in wanted}
    return _generated(results, where, format or where.suffix.lstrip(".") or "csv", metadata)


def _ending(form: str) -> str:
    return _ENDINGS[_known(form)]


def _known(form: str) -> str:
    name = _SAME.get(form.lower(), form.lower())
    if name not in _FORMATS:
        raise UnknownNameError("format", form, (*_FORMATS, *_SAME))
    return name


def _generated(
    results: Mapping[str, Mapping[str, Any]], where: Path, form: str, metadata: Mapping[str, Any] | None
) -> Path:
    generator = ReportGenerator(where.parent)
    for name, held in results.items():
        generator.add_results(name, held, (metadata or {}).get(name))
    made: Path = getattr(generator, f"generate_{_known(form)}_report")(where.name)
    return made
