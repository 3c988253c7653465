"""What the report shows beside metrics: audit findings, stored results over time, conventions, provenance."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from recsys.comparison.history import ResultHistory
from recsys.conventions.decisions import Conventions, describe
from recsys.errors import InputError, UnknownNameError
from recsys.evaluation import tables
from recsys.evaluation.provenance import run_facts
from recsys.inputs.frames import as_frame
from recsys.report import style
from recsys.report.html_tables import HtmlTable, html_table
from recsys.report.report_data import ReportData

_SEVERITIES = ("error", "warning", "note", "info", "ok")
_MAX_EXAMPLES = 5


class MetricHistory(NamedTuple):
    """One metric over time: (time, value) by model, the times of changes, and the same rows as columns."""

    by_model: dict[str, list[tuple[str, Any]]]
    changes: list[str]
    columns: dict[str, list[Any]]


def findings_of(audit: Any) -> list[dict[str, Any]]:
    """The findings of an audit as the page shows them, most severe first.

    Args:
        audit: an Audit or its dictionary, or a sequence of Finding objects or of dictionaries with name,
            severity, count, message, examples and todo.

    Raises:
        InputError: it is none of these.
        UnknownNameError: a severity is none of error, warning, note, info and ok.
    """
    from recsys.audit.findings import Finding

    if audit is None:
        return []
    findings = audit.get("findings") if isinstance(audit, Mapping) else audit
    if isinstance(findings, str) or not isinstance(findings, Sequence):
        raise InputError(f"audit came as {type(audit).__name__}.", hint="Pass what recsys.audit returned.")
    rows = []
    for finding in findings:
        fields = vars(finding) if isinstance(finding, Finding) else finding
        if not isinstance(fields, Mapping):
            raise InputError(
                f"a finding came as {type(finding).__name__}.", hint="Expected name, severity, count, todo."
            )
        severity = fields.get("severity", "note")
        if severity not in _SEVERITIES:
            raise UnknownNameError("severity", severity, _SEVERITIES)
        rows.append(
            {
                "name": str(fields.get("name", "finding")).replace("_", " "),
                "severity": "note" if severity == "info" else severity,
                "count": fields.get("count"),
                "message": str(fields.get("message") or ""),
                "todo": str(fields.get("todo") or ""),
                "examples": [style.short(e, 200) for e in list(fields.get("examples") or ())[:_MAX_EXAMPLES]],
            }
        )
    return sorted(rows, key=lambda row: _SEVERITIES.index(row["severity"]))


def history_by_metric(history: Any) -> dict[str, MetricHistory]:
    """{metric: its values over time}.

    Args:
        history: a ResultHistory, or a table or a sequence of rows with time and value; metric, model, low,
            high and change (whether a new level begins here) are optional. The names `finished` and `name`
            that ResultHistory.to_frame gives to time and model are understood.

    Raises:
        InputError: it is none of these, or a row lacks a time or a number.
    """
    if history is None:
        return {}
    frame = None if isinstance(history, ResultHistory) else as_frame(history)
    if isinstance(history, ResultHistory):
        starts = {(night.path, key) for key, changes in history.changes().items() for night, _ in changes}
        records = [
            vars(night) | {"change": (night.path, (night.name, night.metric)) in starts}
            for night in history.nights
        ]
    elif frame is not None:
        records = list(frame.iter_rows(named=True))
    elif isinstance(history, Sequence) and all(isinstance(row, Mapping) for row in history):
        records = list(history)
    else:
        raise InputError(
            f"history came as {type(history).__name__}.",
            hint="Pass what recsys.history returned, or rows with time and value (metric, model, low, high).",
        )
    rows_by_metric: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        rows_by_metric.setdefault(str(record.get("metric") or "value"), []).append(_history_row(record))
    histories = {}
    for metric, rows in rows_by_metric.items():
        rows.sort(key=lambda row: str(row["when"]))
        by_model: dict[str, list[tuple[str, Any]]] = {}
        for row in rows:
            triple = (row["value"], row["low"], row["high"])
            value = triple if math.isfinite(row["low"] + row["high"]) else row["value"]
            by_model.setdefault(row["model"], []).append((row["when"], value))
        changes = list(dict.fromkeys(row["when"] for row in rows if row["change"]))
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        histories[metric] = MetricHistory(by_model, changes, columns)
    return histories


def _history_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """One row of the table on the page: when, model, value, low, high, change."""
    when = record.get("finished") if record.get("time") is None else record["time"]
    if when is None or record.get("value") is None:
        raise InputError("a row of the history has no time or no value.", table="history")
    numbers = {}
    for name in ("value", "low", "high"):
        try:
            numbers[name] = math.nan if record.get(name) is None else float(record[name])
        except (TypeError, ValueError):
            raise InputError(
                f"the {name} of {when} is {record[name]!r}, not a number.", table="history", column=name
            ) from None
    return {
        "when": when.isoformat() if hasattr(when, "isoformat") else str(when),
        "model": str(record.get("model") or record.get("name") or "model"),
        **numbers,
        "change": "new level" if record.get("change") else "",
    }


def sampling_cautions(data: ReportData, findings: Sequence[Mapping[str, Any]]) -> list[str]:
    """A warning where candidates were sampled: such numbers are not those of the full catalogue."""
    reasons = []
    for name in data.names:
        note = data.first(name).notes.get("sampled")
        if note:
            reasons.append(
                note if isinstance(note, str) else f"{name} was ranked among sampled candidates only."
            )
    reasons += [
        f"The audit says so: {f['name']}."
        for f in findings
        if "sampled" in f["name"].lower() and f["severity"] != "ok"
    ]
    if not reasons:
        return []
    general = (
        "Sampled metrics: relevant items competed with a sample of the catalogue, not with all of it. Such "
        "values are too high, and can put models in another order than the full ranking does."
    )
    return [general, *dict.fromkeys(reasons)]


def conventions_table(conventions: Conventions) -> HtmlTable:
    """Every decision, its value and what it means; those that differ from the default are marked."""
    default = Conventions()
    rows = [
        (n, v, describe(n, v), v != getattr(default, n)) for n, v in conventions.items() if n != "per_metric"
    ]
    rows += [
        (f"{decision} (for {metric} only)", value, describe(decision, value), True)
        for metric, changes in conventions.per_metric
        for decision, value in changes
    ]
    json_values = conventions.to_dict()
    columns = {
        "decision": [r[0] for r in rows],
        "value": [_text_or_none(json_values.get(r[0], r[1])) for r in rows],
        "what it means": [r[2] for r in rows],
    }
    if any(r[3] for r in rows):
        columns["default"] = ["no" if r[3] else "yes" for r in rows]
    return html_table("conventions", f"Conventions: {conventions}", columns)


def _text_or_none(value: Any) -> str:
    return "none" if value is None else str(value)


def provenance_tables(data: ReportData) -> list[HtmlTable]:
    """Where and when each model was evaluated, what was counted, and how tables were read."""
    models = {name: data.first(name) for name in data.names}
    count_names = list(dict.fromkeys(c for e in models.values() for c in e.counts))
    counts: dict[str, list[Any]] = {"model": list(models)}
    counts |= {c.replace("_", " "): [int(e.counts.get(c, 0)) for e in models.values()] for c in count_names}
    documents = {name: json.loads(e.to_json()) for name, e in models.items()}
    facts = [("sha256 of the result", name, d["sha256"]) for name, d in documents.items()]
    facts += [("runs", n, str(len(runs))) for n, runs in data.models.items() if len(runs) > 1]
    # A result from a file says where and when it was made; one of this session was made here and now.
    for name, evaluation in models.items():
        facts += [(k, name, _text_or_none(v)) for k, v in (evaluation.run or run_facts()).items()]
    notes = [
        (f"{table}: {note}", name, value)
        for name, evaluation in models.items()
        for table, note, value in _flatten_notes(evaluation.notes)
    ]
    return [
        _facts_table("runs", "Result, versions and machine", facts),
        html_table("counts", "What was counted", counts),
        *([_facts_table("read", "How the tables were read", notes)] if notes else []),
    ]


def _flatten_notes(notes: Mapping[str, Any], parent: str = "") -> list[tuple[str, str, str]]:
    """(path of the parents, name, value) of every note that is not empty."""
    rows = []
    for name, value in notes.items():
        if isinstance(value, Mapping):
            rows += _flatten_notes(value, f"{parent} {name}".strip())
        elif value not in (None, "", ()):
            rows.append((parent, str(name).replace("_", " "), str(value)))
    return rows


def _facts_table(name: str, title: str, facts: Sequence[tuple[str, str, str]]) -> HtmlTable:
    """(fact, model, value) as a table; models that share a value share a row."""
    n_models = len({model for _, model, _ in facts})
    models_by_fact: dict[tuple[str, str], list[str]] = {}
    for fact, model, value in facts:
        models_by_fact.setdefault((fact, value), []).append(model)
    rows = [
        (fact, "all" if len(models) == n_models else ", ".join(models), value)
        for (fact, value), models in models_by_fact.items()
    ]
    columns = {head: [row[i] for row in rows] for i, head in enumerate(("fact", "model", "value"))}
    return html_table(name, title, columns)


def footnotes(data: ReportData) -> list[str]:
    """What a reader must know to trust the numbers; a line that holds for some models names them."""
    models_by_line: dict[str, list[str]] = {}
    for name in data.names:
        evaluation = data.first(name)
        for line in tables.footnotes(evaluation.counts, evaluation.conventions, evaluation.notes)[:-1]:
            models_by_line.setdefault(line, []).append(name)
    return [
        line if len(models) == len(data.names) else f"{', '.join(models)}: {line}"
        for line, models in models_by_line.items()
    ]
