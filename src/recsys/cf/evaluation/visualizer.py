"""The data of the charts in document 000, and the charts, drawn by `recsys.report.figures`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from recsys.analysis import distribution, pareto_front
from recsys.errors import InputError, UnknownNameError

_EXAMPLE_CUTOFFS = (5, 10, 20, 50)
Results = Mapping[str, Mapping[str, Any]]


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
        results: Results,
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
        results: Results,
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
        self, results: Results, accuracy_metric: str = "ndcg@10", coverage_metric: str = "coverage"
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
        self, results: Results, metrics: str | Sequence[str] = ("recall@10", "ndcg@10"), ax: Any = None
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
        self, results: Results, metric: str = "recall", k_values: Sequence[int] | None = None, ax: Any = None
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
        results: Results,
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


def _results_by_model(results: Any) -> Results:
    """{model: results}, also from a table with a `model` column (or with models as its index)."""
    if not hasattr(results, "columns"):
        return dict(results)
    table = results.set_index("model") if "model" in results.columns else results
    by_model: Results = table.to_dict("index")
    return by_model


def _name_list(metrics: str | Sequence[str]) -> list[str]:
    return [metrics] if isinstance(metrics, str) else list(metrics)


def _check_names(results: Results, names: Sequence[str]) -> None:
    """Some models may lack a number; a number that all models lack is a mistyped name."""
    known = dict.fromkeys(str(key) for row in results.values() for key in row)
    for name in names:
        if results and name not in known:
            raise UnknownNameError("result", name, known)


def _number(row: Mapping[str, Any], name: str) -> float:
    value = row.get(name)
    return math.nan if value is None else float(value)
