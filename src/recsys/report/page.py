"""The report: what it says at the top, its sections, and the file it is written to."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from recsys.display.number_words import plural
from recsys.inputs.files import write_text
from recsys.report.charts.chart import Chart
from recsys.report.decision import Decision
from recsys.report.glossary import Glossary
from recsys.report.offline_page import offline_page
from recsys.report.sections import Drawing, Section, sections_of
from recsys.report.study import Study, make_study


class Fact(NamedTuple):
    """One fact below the title, and the word of the glossary that explains it."""

    text: str
    word: str = ""


@dataclass(frozen=True)
class _Page:
    title: str
    sections: Sequence[Section]
    decision: Decision | None = None
    cautions: Sequence[str] = ()
    facts: Sequence[Fact] = ()
    absent: Sequence[Section] = ()
    glossary: Glossary = field(default_factory=Glossary)


class ReportOptions(TypedDict, total=False):
    """The options of write_report, for results and comparisons that report themselves."""

    baseline: str | None
    headline: str | None
    title: str | None
    audit: Any
    history: Any
    items: Any
    lists: Any
    truth: Any
    train: Any
    embeddings: Any
    methods: Mapping[str, Any] | None


def write_report(
    path: str | os.PathLike[str],
    results: Any,
    *,
    baseline: str | None = None,
    headline: str | None = None,
    title: str | None = None,
    audit: Any = None,
    history: Any = None,
    items: Any = None,
    lists: Any = None,
    truth: Any = None,
    train: Any = None,
    embeddings: Any = None,
    methods: Mapping[str, Any] | None = None,
) -> Path:
    """Write a report about one or many models as one HTML file that opens from disk, offline.

    Args:
        path: the file to write.
        results: an evaluation, {name: evaluation}, {name: [run, run, …]}, a list, or a comparison.
        baseline: the model the others are compared with; by default the best is compared with each other.
        headline: the metric the page opens with; by default that of the comparison, or the first.
        title: the page's heading.
        audit: what recsys.audit found, or findings as dictionaries (name, severity, count, message, examples,
            todo) with the severity error, warning, info, note or ok.
        history: what recsys.history returned, or rows with time and value.
        items: {item: title}, or a table with item and title (and category) columns.
        lists: {model: lists}, in any form evaluate takes; a single model needs no name.
        truth: what was relevant, as for evaluate.
        train: what the models learnt from, as for evaluate's seen=.
        embeddings: {item: vector}, a table, or an array in the order of `items`; two columns are coordinates.
        methods: what the methods paragraph is to say besides the results: data, split, candidates, as
            `methods_paragraph` takes them.

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
        results, baseline=baseline, headline=headline, title=title, audit=audit,
        history=history, items=items, lists=lists, truth=truth, train=train, embeddings=embeddings,
        methods=methods,
    )  # fmt: skip
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, text)
    return target


write = write_report  # reads well as recsys.report.write
_WHERE_NOTHING_WAS_FOUND = ("audit", "conventions", "provenance")


def report_html(results: Any, *, title: str | None = None, **inputs: Any) -> str:
    """Return the report as text; see write_report."""
    study = make_study(results, **inputs)
    names = study.names
    if len(names) == 1:
        default_title = f"Evaluation of {names[0]}"
    elif len(names) <= 3:
        default_title = f"{', '.join(names[:-1])} and {names[-1]}"
    else:
        default_title = f"Comparison of {len(names)} models"
    cautions = [*(f"{one.sentence} [{one.code}]" for one in study.cautions), *study.sampling]
    decision = study.decision
    sections = sections_of(study, only=_WHERE_NOTHING_WAS_FOUND if decision.causes else None)
    page = _Page(
        title or default_title,
        [s for s in sections if not s.needs],
        decision,
        cautions,
        _facts(study),
        [s for s in sections if s.needs],
        Glossary({m: study.requests[m] for m in study.metrics}),
    )
    return _render(page)


def chart_page(chart: Chart) -> str:
    """Return a page with a single chart."""
    return _render(
        _Page(chart.description.rstrip("."), [Section(pictures=[Drawing("", chart)], key="chart")])
    )


def _render(page: _Page) -> str:
    specs: dict[str, Any] = {}
    config: Mapping[str, Any] = {}
    for section in page.sections:
        for number, picture in enumerate(section.pictures):
            specs[f"{section.key}-{number}"] = picture.chart.page_spec
            config = picture.chart.spec["config"]
    users = next((s.users for s in page.sections if s.users), None)
    selection = next((s.selection for s in page.sections if s.selection), None)
    words = {m["name"]: page.glossary.entry(m["name"]) for m in (selection or {}).get("metrics", ())}
    anchors = {name: entry.anchor for name, entry in words.items() if entry is not None}
    data = {"charts": specs, "config": config, "inspector": users, "selection": selection, "words": anchors}
    return offline_page("page", data, draws=bool(specs), page=page)


def _facts(study: Study) -> list[Fact]:
    """Return the line of facts below the title."""
    has_cases = bool(study.per_case_metrics)
    n_cases = len(study.aligned.ids) if has_cases else study.first(study.best).counts.get("cases", 0)
    users = plural(n_cases, study.case_noun)
    if has_cases and study.aligned.clusters is not None:
        users += f" of {len(set(study.aligned.clusters.tolist())):,} users"
    facts = [Fact(users), Fact(plural(len(study.names), "model"))]
    facts.append(Fact(f"headline metric {study.headline}", study.headline))
    if study.baseline is not None:
        facts.append(Fact(f"baseline {study.baseline}", "baseline"))
    aggregate = study.first(study.names[0]).aggregate
    if aggregate is not None:
        facts.append(Fact(f"values: the {aggregate.words} over users; differences are of means"))
    conventions = f"conventions: {study.first(study.names[0]).conventions}"
    return [*facts, Fact(conventions, "conventions: default")]
