"""The report: what it says at the top, its sections, and the file it is written to."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from recsys.evaluation.cautions import comparison_cautions, unique_cautions
from recsys.inputs.files import write_text
from recsys.report.charts.chart import Chart
from recsys.report.headline import verdict
from recsys.report.offline_page import offline_page
from recsys.report.report_data import ReportData, gather_report_data
from recsys.report.sections import Picture, Section, sections_of


@dataclass(frozen=True)
class _Page:
    title: str
    verdict: str
    remarks: Sequence[str]
    cautions: Sequence[str]
    facts: Sequence[str]
    sections: Sequence[Section]
    absent: Sequence[Section]


class ReportOptions(TypedDict, total=False):
    """The options of write_report, for results and comparisons that report themselves."""

    baseline: str | None
    metric: str | None
    title: str | None
    audit: Any
    history: Any
    items: Any
    lists: Any
    truth: Any
    train: Any
    embeddings: Any


def write_report(
    path: str | os.PathLike[str],
    results: Any,
    *,
    baseline: str | None = None,
    metric: str | None = None,
    title: str | None = None,
    audit: Any = None,
    history: Any = None,
    items: Any = None,
    lists: Any = None,
    truth: Any = None,
    train: Any = None,
    embeddings: Any = None,
) -> Path:
    """Write a report about one or many models as one HTML file that opens from disk, offline.

    Args:
        path: the file to write.
        results: an evaluation, {name: evaluation}, {name: [run, run, …]}, a list, or a comparison.
        baseline: the model the others are compared with; by default that of the comparison, or the first.
        metric: the headline metric; by default NDCG at a cut-off near 10 where there is one.
        title: the page's heading.
        audit: what recsys.audit found, or findings as dictionaries (name, severity, count, message, examples,
            todo) with the severity error, warning, info, note or ok.
        history: what recsys.history returned, or rows with time and value.
        items: {item: title}, or a table with item and title (and category) columns.
        lists: {model: lists}, in any form evaluate takes; a single model needs no name.
        truth: what was relevant, as for evaluate.
        train: what the models learnt from, as for evaluate's seen=.
        embeddings: {item: vector}, a table, or an array in the order of `items`; two columns are coordinates.

    Returns:
        The path of the file.

    Raises:
        MissingExtraError: jinja2 or vl-convert is not installed.

    >>> import recsys, tempfile, pathlib
    >>> result = recsys.evaluate({1: [3, 5, 8], 2: [4, 5, 6]}, {1: {3, 8}, 2: {5}}, ["ndcg@3", "recall@3"])
    >>> path = write_report(pathlib.Path(tempfile.mkdtemp()) / "report.html", {"als": result})
    >>> path.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    target = Path(path)
    text = report_html(
        results, baseline=baseline, metric=metric, title=title, audit=audit, history=history, items=items,
        lists=lists, truth=truth, train=train, embeddings=embeddings,
    )  # fmt: skip
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, text)
    return target


write = write_report  # reads well as recsys.report.write


def report_html(
    results: Any, *, title: str | None = None, audit: Any = None, history: Any = None, **inputs: Any
) -> str:
    """The report as text; see write_report."""
    data = gather_report_data(results, audit=audit, history=history, **inputs)
    sections = sections_of(data)
    sentence, remarks = verdict(data)
    names = data.names
    if len(names) == 1:
        default_title = f"Evaluation of {names[0]}"
    elif len(names) <= 3:
        default_title = f"{', '.join(names[:-1])} and {names[-1]}"
    else:
        default_title = f"Comparison of {len(names)} models"
    page = _Page(
        title or default_title,
        sentence,
        remarks,
        [*_result_cautions(data), *_sampling_cautions(data), *data.cautions],
        _facts(data),
        [s for s in sections if not s.needs],
        [s for s in sections if s.needs],
    )
    return _render(page)


def chart_page(chart: Chart) -> str:
    """A page with a single chart."""
    section = Section(pictures=[Picture("", chart)], key="chart")
    return _render(_Page(chart.says.rstrip("."), "", (), (), (), [section], []))


def _render(page: _Page) -> str:
    specs: dict[str, Any] = {}
    config: Mapping[str, Any] = {}
    for section in page.sections:
        for number, picture in enumerate(section.pictures):
            spec = {
                k: v for k, v in picture.chart.spec.items() if k not in {"config", "$schema", "description"}
            }
            specs[f"{section.key}-{number}"] = spec | {"width": "container"}
            config = picture.chart.spec["config"]
    users = next((s.users for s in page.sections if s.users), None)
    data = {"charts": specs, "config": config, "inspector": users}
    return offline_page("page", data, draws=bool(specs), page=page)


def _facts(data: ReportData) -> list[str]:
    """The line of facts below the title."""
    n_cases = len(data.aligned.ids) if data.per_case_metrics else 0
    clusters = data.aligned.clusters if data.per_case_metrics else None
    users = (
        f"{n_cases:,} users"
        if clusters is None
        else f"{n_cases:,} cases of {len(set(clusters.tolist())):,} users"
    )
    count = len(data.names)
    facts = [users, f"{count} model{'s' if count > 1 else ''}", f"headline metric {data.metric}"]
    if data.baseline is not None:
        facts.append(f"baseline {data.baseline}")
    return [*facts, f"conventions: {data.first(data.names[0]).conventions}"]


def _result_cautions(data: ReportData) -> list[str]:
    """Where the numbers may answer another question than was meant, as results and comparison say."""
    if data.comparison is not None:
        cautions = data.comparison.cautions
    elif len(data.models) > 1:
        cautions = comparison_cautions(data.models)
    else:
        cautions = unique_cautions(run.cautions for runs in data.models.values() for run in runs)
    return [f"{one.sentence} [{one.code}]" for one in cautions]


def _sampling_cautions(data: ReportData) -> list[str]:
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
        for f in data.findings
        if "sampled" in f["name"].lower() and f["severity"] != "ok"
    ]
    if not reasons:
        return []
    general = (
        "Sampled metrics: relevant items competed with a sample of the catalogue, not with all of it. Such "
        "values are too high, and can put models in another order than the full ranking does."
    )
    return [general, *dict.fromkeys(reasons)]
