"""The numbers a reader came for: the verdict in a sentence, the table of models, and the differences."""

from __future__ import annotations

import math
import warnings
from typing import Any

from recsys.comparison.compare import compare
from recsys.report import charts
from recsys.report.charts import Chart
from recsys.report.html_tables import Cell, HtmlTable, cell, sheet
from recsys.report.report_data import ReportData
from recsys.report.section_numbers import Triple, valued
from recsys.stats.paired_comparison import Row
from recsys.stats.verdicts import said_gap, said_p

_MOST_COLUMNS = 8


def verdict(material: ReportData) -> tuple[str, list[str]]:
    """The answer in one sentence, and what else belongs to it."""
    best, metric = material.best, material.metric
    value, low, high = valued(material, best, metric)
    reach = f" [{low:.4f}, {high:.4f}]" if math.isfinite(low) else ""
    if math.isnan(value):
        return f"{best} has no value of {metric}: no user is in its mean.", []
    row = _row(material, best, metric)
    if row is None:
        n = material.first(best).n_cases.get(metric)
        over = f" over {n:,} users" if n else ""
        return f"{best} reaches {metric} {value:.4f}{reach}{over}.", []
    more = []
    if len(material.names) > 2:
        more.append(f"Of {len(material.names)} models, {_leader(material)}.")
        more += _against_next(material)
    return f"{_compared(row)}{_by_how_much(row, material)}.", more


def headline(material: ReportData) -> tuple[HtmlTable, list[HtmlTable]]:
    """A row a model, a column a metric; every metric in a second table, one line each."""
    names = _main_metrics(material)
    first = _table(material, names, "summary", "Models and metrics")
    return first, [_long(material)]


def differences(material: ReportData) -> tuple[list[tuple[str, Chart]], HtmlTable]:
    """Lifts as forest plots, and every row of the comparison as a table."""
    comparison = material.comparison
    rows: list[Row] = [] if comparison is None else list(comparison.rows)
    pictures = []
    main = [r for r in rows if r.metric == material.metric]
    if len(main) > 1:
        pictures.append((f"All models on {material.metric}", _forest({r.model: r for r in main}, material)))
    wanted = _main_metrics(material)
    best = [r for r in rows if r.model == material.best and math.isfinite(r.interval.low)]
    own = {r.metric: r for r in best if r.metric in wanted}
    if own:
        pictures.append((f"{material.best} on each metric", _forest(own, material)))
    return pictures, _every_row(rows)


def _forest(rows: dict[str, Row], material: ReportData) -> Chart:
    base = material.baseline
    lower = [n for n, r in rows.items() if material.lower_is_better(r.metric)]
    if all(math.isfinite(r.relative) and math.isfinite(r.relative_interval.low) for r in rows.values()):
        held = {n: (r.relative, r.relative_interval.low, r.relative_interval.high) for n, r in rows.items()}
        return charts.forest(held, unit="%", title=f"lift over {base}", lower=lower)
    held = {n: (r.difference, r.interval.low, r.interval.high) for n, r in rows.items()}
    return charts.forest(held, title=f"difference from {base}", lower=lower)


def _compared(row: Row) -> str:
    word = row.verdict.split(":")[0]
    if word in {"better", "worse"}:
        return f"{row.model} is {word} than {row.baseline}"
    if word == "equivalent":
        return f"{row.model} and {row.baseline} are equivalent"
    if word == "identical":
        return f"{row.model} and {row.baseline} are identical"
    return f"There is no clear difference between {row.model} and {row.baseline}"


def _by_how_much(row: Row, material: ReportData) -> str:
    if row.verdict.startswith("identical"):
        return f" on {row.metric}"
    return f": {_gap(row, material)}"


def _gap(row: Row, material: ReportData) -> str:
    said = said_gap(row.difference, row.interval, row.relative, row.relative_interval).replace("%", " %")
    size, _, reach = said.partition(" [")
    correction = "none" if material.comparison is None else material.comparison.table.options.correction
    p = _said_p(row.adjusted_p) + ("" if correction == "none" else f" ({correction.title()})")
    return f"{size} {row.metric} [{reach}, {p}"


def _said_p(p: float) -> str:
    """A p-value that no line break tears apart."""
    return said_p(p, "none").replace("1e-4", "0.0001").replace(" ", "\u00a0")


def _leader(material: ReportData) -> str:
    sign = -1.0 if material.lower_is_better(material.metric) else 1.0
    order = sorted(material.names, key=lambda n: -sign * material.value(n, material.metric))
    word = "lowest" if sign < 0 else "highest"
    return f"{order[0]} has the {word} {material.metric}, {material.value(order[0], material.metric):.4f}"


def _against_next(material: ReportData) -> list[str]:
    """The best model against the next best, which need not be the baseline."""
    sign = -1.0 if material.lower_is_better(material.metric) else 1.0
    others = [n for n in material.names if n not in {material.best, material.baseline}]
    if not others or material.metric not in material.per_case_metrics:
        return []
    near = max(others, key=lambda n: sign * material.value(n, material.metric))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pair = {near: material.models[near], material.best: material.models[material.best]}
        row = compare(pair, baseline=near, metrics=[material.metric])[0]
    if row.verdict.startswith("identical"):
        return [f"{_compared(row)} on {row.metric}."]
    gap = said_gap(row.difference, row.interval, row.relative, row.relative_interval).replace("%", " %")
    return [f"{_compared(row)}, the next best: {gap}, {_said_p(row.p_value)}."]


def _main_metrics(material: ReportData) -> list[str]:
    """The headline metric first, then one column a metric at the cut-off nearest to its own."""
    if len(material.metrics) <= _MOST_COLUMNS:
        return [material.metric, *(m for m in material.metrics if m != material.metric)]
    k = material.requests[material.metric].k or 10
    nearest: dict[str, str] = {}
    for metric in material.metrics:
        family = metric.split("@")[0]
        held = nearest.get(family)
        if held is None or _off(material, metric, k) < _off(material, held, k):
            nearest[family] = metric
    rest = [m for m in nearest.values() if m != material.metric]
    return [material.metric, *rest][:_MOST_COLUMNS]


def _off(material: ReportData, metric: str, k: int) -> int:
    return abs((material.requests[metric].k or k) - k)


def _table(material: ReportData, metrics: list[str], name: str, title: str) -> HtmlTable:
    values = {m: {n: valued(material, n, m) for n in material.names} for m in metrics}
    best = {m: _best_of(values[m], material.requests[m].metric.better) for m in metrics}
    rows = []
    for model in material.names:
        spoken = "baseline" if model == material.baseline else ""
        cells = [Cell(model, None, spoken)]
        cells += [_value_cell(material, model, m, values[m][model], best=model in best[m]) for m in metrics]
        rows.append(cells)
    columns: dict[str, list[Any]] = {"model": material.names}
    for m in metrics:
        columns[m] = [values[m][n][0] for n in material.names]
        if any(math.isfinite(values[m][n][1]) for n in material.names):
            columns |= {
                f"{m} {end}": [values[m][n][i] for n in material.names]
                for i, end in ((1, "low"), (2, "high"))
            }
    return HtmlTable(name, title, ["model", *metrics], rows, [False, *(True for _ in metrics)], columns)


def _best_of(values: dict[str, Triple], better: str) -> set[str]:
    """Who has the best value, unless all have; where 0 is best, who is nearest to it."""
    known = {n: v[0] for n, v in values.items() if math.isfinite(v[0])}
    if better == "zero":
        known = {n: abs(v) for n, v in known.items()}
    if len(known) < 2:
        return set()
    top = max(known.values()) if better == "higher" else min(known.values())
    if all(v == top for v in known.values()):
        return set()
    return {n for n, v in known.items() if v == top}


def _value_cell(material: ReportData, model: str, metric: str, value: Triple, *, best: bool) -> Cell:
    made = cell(value[0])
    lines = [f"[{value[1]:.4f}, {value[2]:.4f}]"] if math.isfinite(value[1]) else []
    tone, spoken = "best" if best else "", "best" if best else ""
    row = _row(material, model, metric)
    if row is not None:
        word = row.verdict.split(":")[0]
        sign = {"better": "▲", "worse": "▼"}.get(word, "≈")
        if math.isfinite(row.relative):
            lines.append(f"{sign} {100 * row.relative:+.1f} %")
        tone = f"{tone} {word if word in {'better', 'worse'} else 'same'}".strip()
        spoken = ", ".join(filter(None, [spoken, row.verdict]))
    return Cell(made.text or "n/a", made.key, "\n".join(lines), tone, spoken)


def _row(material: ReportData, model: str, metric: str) -> Row | None:
    rows = () if material.comparison is None else material.comparison.rows
    return next((r for r in rows if (r.model, r.metric) == (model, metric)), None)


def _long(material: ReportData) -> HtmlTable:
    """One line a model and metric: the form that other programs read."""
    rows = []
    for model in material.names:
        for metric in material.metrics:
            value, low, high = valued(material, model, metric)
            n = material.first(model).n_cases.get(metric)
            rows.append((model, metric, value, low, high, n))
    names = ("model", "metric", "value", "low", "high", "users")
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    return sheet("values", "Every value, one line each", columns)


def _every_row(rows: list[Row]) -> HtmlTable:
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
    forms = {"p": "p", "adjusted p": "p", "lift %": "+.1f", "effect": ".2f"}
    return sheet("comparison", "Every comparison in full", columns, forms)
