"""The numbers a reader came for: the verdict in a sentence, the table of models, and the differences."""

from __future__ import annotations

import math
import warnings
from typing import Any

from recsys.comparison.compare import compare
from recsys.report import charts
from recsys.report.charts import Chart
from recsys.report.html_tables import Cell, HtmlTable, cell, html_table, table_of_rows
from recsys.report.report_data import ReportData
from recsys.report.section_numbers import Triple, lifts_or_differences, value_with_interval
from recsys.stats.comparison_table import Row
from recsys.stats.inference_results import format_difference, format_p

_MOST_COLUMNS = 8


def verdict(data: ReportData) -> tuple[str, list[str]]:
    """The answer in one sentence, and further sentences about the other models."""
    best, metric = data.best, data.metric
    value, low, high = value_with_interval(data, best, metric)
    if math.isnan(value):
        return f"{best} has no value of {metric}: no user is in its mean.", []
    row = _row_of(data, best, metric)
    if row is None:
        interval = f" [{low:.4f}, {high:.4f}]" if math.isfinite(low) else ""
        n = data.first(best).n_cases.get(metric)
        over = f" over {n:,} users" if n else ""
        return f"{best} reaches {metric} {value:.4f}{interval}{over}.", []
    if row.verdict.startswith(("identical", "both found nothing")):
        sentence = f"{_outcome(row)} on {row.metric}."
    else:
        text = format_difference(row.difference, row.interval, row.relative, row.relative_interval)
        size, _, interval = text.replace("%", " %").partition(" [")
        correction = "none" if data.comparison is None else data.comparison.table.options.correction
        p = _p_text(row.adjusted_p) + ("" if correction == "none" else f" ({correction.title()})")
        sentence = f"{_outcome(row)}: {size} {row.metric} [{interval}, {p}."
    if len(data.names) <= 2:
        return sentence, []
    sign = data.sign(metric)
    leader = max(data.names, key=lambda n: sign * data.value(n, metric))
    extreme = "lowest" if sign < 0 else "highest"
    leader_value = data.value(leader, metric)
    first = f"Of {len(data.names)} models, {leader} has the {extreme} {metric}, {leader_value:.4f}."
    return sentence, [first, *_against_next(data)]


def _outcome(row: Row) -> str:
    """The verdict of a comparison as a clause."""
    word = row.verdict.split(":")[0]
    if word in {"better", "worse"}:
        return f"{row.model} is {word} than {row.baseline}"
    if word in {"equivalent", "identical in this sample"}:
        return f"{row.model} and {row.baseline} are {word}"
    if word == "both found nothing":
        return f"{row.model} and {row.baseline} {word}"
    return f"There is no clear difference between {row.model} and {row.baseline}"


def _p_text(p: float) -> str:
    """A p-value with non-breaking spaces."""
    return format_p(p, "none").replace("1e-4", "0.0001").replace(" ", "\u00a0")


def _against_next(data: ReportData) -> list[str]:
    """The best model against the next best, which need not be the baseline."""
    sign = data.sign(data.metric)
    others = [n for n in data.names if n not in {data.best, data.baseline}]
    if not others or data.metric not in data.per_case_metrics:
        return []
    next_best = max(others, key=lambda n: sign * data.value(n, data.metric))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pair = {next_best: data.models[next_best], data.best: data.models[data.best]}
        row = compare(pair, baseline=next_best, metrics=[data.metric])[0]
    if row.verdict.startswith(("identical", "both found nothing")):
        return [f"{_outcome(row)} on {row.metric}."]
    gap = format_difference(row.difference, row.interval, row.relative, row.relative_interval).replace(
        "%", " %"
    )
    return [f"{_outcome(row)}, the next best: {gap}, {_p_text(row.p_value)}."]


def headline(data: ReportData) -> tuple[HtmlTable, list[HtmlTable]]:
    """The main metrics, one row per model; and every metric, one row per model and metric."""
    metrics = _main_metrics(data)
    values = {m: {n: value_with_interval(data, n, m) for n in data.names} for m in data.metrics}
    best = {m: _best_models(values[m], data.requests[m].metric.better) for m in metrics}
    rows = []
    for model in data.names:
        cells = [Cell(model, None, "baseline" if model == data.baseline else "")]
        cells += [_value_cell(data, model, m, values[m][model], best=model in best[m]) for m in metrics]
        rows.append(cells)
    columns: dict[str, list[Any]] = {"model": data.names}
    for m in metrics:
        columns[m], low, high = ([values[m][n][i] for n in data.names] for i in range(3))
        if any(map(math.isfinite, low)):
            columns |= {f"{m} low": low, f"{m} high": high}
    numeric = [False, *(True for _ in metrics)]
    summary = HtmlTable("summary", "Models and metrics", ["model", *metrics], rows, numeric, columns)
    heads = ("model", "metric", "value", "low", "high", "users")
    lines = [
        (model, m, *values[m][model], data.first(model).n_cases.get(m))
        for model in data.names
        for m in data.metrics
    ]
    return summary, [table_of_rows("values", "Every value, one line each", heads, lines)]


def differences(data: ReportData) -> tuple[list[tuple[str, Chart]], HtmlTable]:
    """Lifts as forest plots with their titles, and every row of the comparison as a table."""
    comparison = data.comparison
    rows: list[Row] = [] if comparison is None else list(comparison.rows)
    charts_by_title = []
    headline_rows = [r for r in rows if r.metric == data.metric]
    if len(headline_rows) > 1:
        chart = _forest({r.model: r for r in headline_rows}, data)
        charts_by_title.append((f"All models on {data.metric}", chart))
    main_metrics = _main_metrics(data)
    best_rows = {
        r.metric: r
        for r in rows
        if r.model == data.best and math.isfinite(r.interval.low) and r.metric in main_metrics
    }
    if best_rows:
        charts_by_title.append((f"{data.best} on each metric", _forest(best_rows, data)))
    columns: dict[str, list[Any]] = {
        "model": [r.model for r in rows],
        "metric": [r.metric for r in rows],
        "value": [r.value for r in rows],
        "against": [r.baseline for r in rows],
        "its value": [r.baseline_value for r in rows],
        "difference": [r.difference for r in rows],
        "low": [r.interval.low for r in rows],
        "high": [r.interval.high for r in rows],
        "lift %": [100.0 * r.relative for r in rows],
        "p": [r.p_value for r in rows],
        "adjusted p": [r.adjusted_p for r in rows],
        "effect": [r.effect.value for r in rows],
        "won": [r.wins for r in rows],
        "tied": [r.ties for r in rows],
        "lost": [r.losses for r in rows],
        "verdict": [r.verdict for r in rows],
    }
    formats = {"p": "p", "adjusted p": "p", "lift %": "+.1f", "effect": ".2f"}
    table = html_table("comparison", "Every comparison in full", columns, formats)
    return charts_by_title, table


def _forest(rows: dict[str, Row], data: ReportData) -> Chart:
    values, unit = lifts_or_differences(rows)
    title = f"lift over {data.baseline}" if unit else f"difference from {data.baseline}"
    lower = [n for n, r in rows.items() if data.lower_is_better(r.metric)]
    return charts.forest(values, unit=unit, title=title, lower=lower)


def _main_metrics(data: ReportData) -> list[str]:
    """The headline metric first, then each other metric once, at the cut-off nearest to the headline's."""
    if len(data.metrics) <= _MOST_COLUMNS:
        return [data.metric, *(m for m in data.metrics if m != data.metric)]
    k = data.requests[data.metric].k or 10
    nearest: dict[str, str] = {}
    distances: dict[str, int] = {}
    for metric in data.metrics:
        family = metric.split("@")[0]
        distance = abs((data.requests[metric].k or k) - k)
        if family not in nearest or distance < distances[family]:
            nearest[family], distances[family] = metric, distance
    rest = [m for m in nearest.values() if m != data.metric]
    return [data.metric, *rest][:_MOST_COLUMNS]


def _best_models(values: dict[str, Triple], better: str) -> set[str]:
    """The models with the best value, unless all have it; where 0 is best, those nearest to it."""
    known = {n: v[0] for n, v in values.items() if math.isfinite(v[0])}
    if better == "zero":
        known = {n: abs(v) for n, v in known.items()}
    if len(known) < 2:
        return set()
    top = max(known.values()) if better == "higher" else min(known.values())
    if all(v == top for v in known.values()):
        return set()
    return {n for n, v in known.items() if v == top}


def _value_cell(data: ReportData, model: str, metric: str, value: Triple, *, best: bool) -> Cell:
    """The value, its interval and its lift over the baseline."""
    number = cell(value[0])
    lines = [f"[{value[1]:.4f}, {value[2]:.4f}]"] if math.isfinite(value[1]) else []
    tone = spoken = "best" if best else ""
    row = _row_of(data, model, metric)
    if row is not None:
        word = row.verdict.split(":")[0]
        sign = {"better": "▲", "worse": "▼"}.get(word, "≈")
        if math.isfinite(row.relative):
            lines.append(f"{sign} {100 * row.relative:+.1f} %")
        tone = f"{tone} {word if word in {'better', 'worse'} else 'same'}".strip()
        spoken = ", ".join(filter(None, [spoken, row.verdict]))
    return Cell(number.text or "n/a", number.key, "\n".join(lines), tone, spoken)


def _row_of(data: ReportData, model: str, metric: str) -> Row | None:
    """The row of the comparison for a model and metric."""
    rows = () if data.comparison is None else data.comparison.rows
    return next((r for r in rows if (r.model, r.metric) == (model, metric)), None)
