"""What others hand to the report: findings of an audit, nights of a history, sampled results, provenance.

Findings and nights may come as objects, dictionaries or tables; here they become plain values.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from recsys.conventions.decisions import Conventions, describe
from recsys.errors import InputError
from recsys.evaluation import tables
from recsys.evaluation.provenance import run_facts
from recsys.inputs.frames import as_frame
from recsys.report.html_tables import HtmlTable, sheet
from recsys.report.report_data import ReportData

Nights = dict[str, tuple[dict[str, list[tuple[Any, Any]]], list[Any], dict[str, list[Any]]]]
_SEVERITIES = ("error", "warning", "note", "ok")
_SAME = {
    "critical": "error", "high": "error", "fatal": "error", "fail": "error", "medium": "warning",
    "warn": "warning", "low": "note", "info": "note", "pass": "ok", "passed": "ok",
}  # fmt: skip
_EXAMPLES = 5


def findings_of(audit: Any) -> list[dict[str, Any]]:
    """Findings as name, severity, count, what it means, what to do and a few examples; worst first."""
    if audit is None:
        return []
    held = getattr(audit, "findings", audit)
    if isinstance(held, Mapping):
        held = held.get("findings", [held])
    if isinstance(held, str) or not isinstance(held, Iterable):
        raise InputError(f"audit came as {type(audit).__name__}.", hint="Pass what recsys.audit returned.")
    made = [_finding(one) for one in held]
    return sorted(made, key=lambda f: _SEVERITIES.index(f["severity"]))


def _finding(one: Any) -> dict[str, Any]:
    if isinstance(one, Mapping):
        facts = dict(one)
    elif dataclasses.is_dataclass(one) and not isinstance(one, type):
        facts = {f.name: getattr(one, f.name) for f in dataclasses.fields(one)}
    elif hasattr(one, "to_dict"):
        facts = dict(one.to_dict())
    else:
        raise InputError(
            f"a finding came as {type(one).__name__}.", hint="Expected name, severity, count, todo."
        )
    severity = str(facts.get("severity", "note")).lower()
    severity = _SAME.get(severity, severity)
    examples = facts.get("examples") or ()
    if isinstance(examples, str | Mapping):
        examples = (examples,)
    says = next((str(facts[n]) for n in ("says", "words", "message", "meaning", "title") if facts.get(n)), "")
    return {
        "name": str(facts.get("name", "finding")).replace("_", " "),
        "severity": severity if severity in _SEVERITIES else "note",
        "count": facts.get("count"),
        "says": says,
        "todo": str(facts.get("todo") or ""),
        "examples": [_line(e) for e in list(examples)[:_EXAMPLES]],
    }


def _line(example: Any) -> str:
    text = (
        json.dumps(example, ensure_ascii=False, default=str) if isinstance(example, Mapping) else str(example)
    )
    return text if len(text) <= 200 else text[:199] + "…"


def nights_of(history: Any) -> Nights:
    """{metric: (rows by model, moments of change, the same as a table)}."""
    if history is None:
        return {}
    rows = _night_rows(history)
    out: Nights = {}
    for metric in dict.fromkeys(r["metric"] for r in rows):
        mine = sorted((r for r in rows if r["metric"] == metric), key=lambda r: str(r["when"]))
        by_model: dict[str, list[tuple[Any, Any]]] = {}
        for r in mine:
            reach = (r["value"], r["low"], r["high"]) if math.isfinite(r["low"] + r["high"]) else r["value"]
            by_model.setdefault(r["model"], []).append((r["when"], reach))
        changes = list(dict.fromkeys(r["when"] for r in mine if r["change"]))
        names = ("when", "model", "value", "low", "high", "change")
        table = {n: [("new level" if r[n] else "") if n == "change" else r[n] for r in mine] for n in names}
        out[metric] = (by_model, changes, table)
    return out


def _night_rows(history: Any) -> list[dict[str, Any]]:
    if hasattr(history, "nights") and hasattr(history, "changes"):
        starts = {(n.path, key) for key, rows in history.changes().items() for n, _ in rows}
        return [_night(vars(n) | {"change": (n.path, (n.name, n.metric)) in starts}) for n in history.nights]
    frame = as_frame(history)
    if frame is not None:
        return [_night(row) for row in frame.iter_rows(named=True)]
    if isinstance(history, Sequence) and all(isinstance(row, Mapping) for row in history):
        return [_night(row) for row in history]
    raise InputError(
        f"history came as {type(history).__name__}.",
        hint="Pass what recsys.history returned, or rows with time and value (metric, model, low, high).",
    )


def _night(row: Mapping[str, Any]) -> dict[str, Any]:
    when = next((row[n] for n in ("finished", "time", "when", "date") if row.get(n) is not None), None)
    if when is None or row.get("value") is None:
        raise InputError("a row of the history has no time or no value.", table="history")

    def number(name: str) -> float:
        try:
            return math.nan if row.get(name) is None else float(row[name])
        except (TypeError, ValueError):
            raise InputError(
                f"the {name} of {when} is {row[name]!r}, not a number.", table="history", column=name
            ) from None

    return {
        "when": when.isoformat() if hasattr(when, "isoformat") else str(when),
        "metric": str(row.get("metric") or "value"),
        "model": str(row.get("model") or row.get("name") or "model"),
        "value": number("value"),
        "low": number("low"),
        "high": number("high"),
        "change": bool(row.get("change")),
    }  # fmt: skip


def sampled_words(material: ReportData, findings: Sequence[Mapping[str, Any]]) -> list[str]:
    """A warning where candidates were sampled: such numbers are not those of the full catalogue."""
    reasons = []
    for name in material.names:
        told = material.first(name).notes.get("sampled")
        if told:
            reasons.append(
                told if isinstance(told, str) else f"{name} was ranked among sampled candidates only."
            )
    said = [f["name"] for f in findings if "sampled" in f["name"].lower() and f["severity"] != "ok"]
    reasons += [f"The audit says so: {name}." for name in said]
    if not reasons:
        return []
    general = (
        "Sampled metrics: relevant items competed with a sample of the catalogue, not with all of it. Such "
        "values are too high, and can put models in another order than the full ranking does."
    )
    return [general, *dict.fromkeys(reasons)]


def conventions_sheet(conventions: Conventions) -> HtmlTable:
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
    plain = conventions.to_dict()
    columns = {
        "decision": [r[0] for r in rows],
        "value": [_written(plain.get(r[0], r[1])) for r in rows],
        "what it means": [r[2] for r in rows],
    }
    if any(r[3] for r in rows):
        columns["default"] = ["no" if r[3] else "yes" for r in rows]
    return sheet("conventions", f"Conventions: {conventions}", columns)


def _written(value: Any) -> str:
    return "none" if value is None else str(value)


def provenance_sheets(material: ReportData) -> list[HtmlTable]:
    """Where and when it ran and what came out; what was counted; how tables were read."""
    models = {name: material.first(name) for name in material.names}
    counted = list(dict.fromkeys(c for e in models.values() for c in e.counts))
    counts: dict[str, list[Any]] = {"model": list(models)}
    counts |= {c.replace("_", " "): [int(e.counts.get(c, 0)) for e in models.values()] for c in counted}
    documents = {name: json.loads(e.to_json()) for name, e in models.items()}
    facts = [("sha256 of the result", name, d["sha256"]) for name, d in documents.items()]
    facts += [("runs", n, str(len(s))) for n, s in material.models.items() if len(s) > 1]
    # A result from a file says where and when it was made; one of this session was made here and now.
    run = [(k, n, _written(v)) for n, e in models.items() for k, v in (e.run or run_facts()).items()]
    read = [(f"{where}: {what}", n, v) for n, e in models.items() for where, what, v in _flat(e.notes)]
    return [
        _fact_sheet("runs", "Result, versions and machine", facts + run),
        sheet("counts", "What was counted", counts),
        *([_fact_sheet("read", "How the tables were read", read)] if read else []),
    ]


def _fact_sheet(name: str, title: str, facts: Sequence[tuple[str, str, str]]) -> HtmlTable:
    """Facts of models; one that holds for all is said once."""
    models = list(dict.fromkeys(f[1] for f in facts))
    by_fact: dict[tuple[str, str], list[str]] = {}
    for fact, model, value in facts:
        by_fact.setdefault((fact, value), []).append(model)
    said = [
        (fact, "all" if len(who) == len(models) else ", ".join(who), value)
        for (fact, value), who in by_fact.items()
    ]
    columns = {head: [row[i] for row in said] for i, head in enumerate(("fact", "model", "value"))}
    return sheet(name, title, columns)


def footnotes(material: ReportData) -> list[str]:
    """What a reader must know to trust the numbers, said once for all models that share it."""
    said: dict[str, list[str]] = {}
    for name in material.names:
        one = material.first(name)
        for line in tables.footnotes(one.counts, one.conventions, one.notes)[:-1]:
            said.setdefault(line, []).append(name)
    everyone = len(material.names)
    return [line if len(who) == everyone else f"{', '.join(who)}: {line}" for line, who in said.items()]


def _flat(notes: Mapping[str, Any], above: str = "") -> list[tuple[str, str, str]]:
    out = []
    for name, value in notes.items():
        if isinstance(value, Mapping):
            out += _flat(value, f"{above} {name}".strip())
        elif value not in (None, "", ()):
            out.append((above, str(name).replace("_", " "), str(value)))
    return out
