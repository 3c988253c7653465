"""The sections of the page: each is one function in the registry `SECTIONS`.

It makes tables and charts of the report's data, or None where the inputs it needs are missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.decisions import Conventions, describe
from recsys.errors import MissingExtraError
from recsys.evaluation import tables
from recsys.evaluation.result_files import run_facts
from recsys.report import charts, example_users, section_numbers
from recsys.report.charts import Chart
from recsys.report.headline import differences, headline
from recsys.report.html_tables import HtmlTable, html_table, table_by_model, table_of_rows
from recsys.report.report_data import ReportData
from recsys.stats.change_points import MIN_NIGHTS
from recsys.types import Ids, Registry, count_entries

MOST_ITEMS = 1200
_MOST_GROUPS = 9  # of the map; the others are one


@dataclass(frozen=True)
class Picture:
    """A chart, its caption and its numbers as a table."""

    title: str
    chart: Chart
    table: HtmlTable | None = None


@dataclass(frozen=True)
class Section:
    """One part of the page; key, title, short and needs are those it is registered with."""

    lead: str = ""
    tables: Sequence[HtmlTable] = ()
    pictures: Sequence[Picture] = ()
    notes: Sequence[str] = ()
    findings: Sequence[Mapping[str, Any]] = ()
    users: Mapping[str, Any] = field(default_factory=dict)
    more_tables: Sequence[HtmlTable] = ()
    key: str = ""
    title: str = ""
    short: str = ""  # the title in the navigation
    needs: str = ""  # what is missing, if the section cannot be made


Maker = Callable[[ReportData], Section | str | None]


class SectionEntry(NamedTuple):
    """A section as it is registered; see `section`."""

    key: str
    title: str
    make: Maker
    order: int
    needs: str
    short: str


SECTIONS: Registry[SectionEntry] = Registry("section", "recsys.sections")


def section(
    key: str, title: str, *, order: int = 150, needs: str = "", short: str = ""
) -> Callable[[Maker], Maker]:
    """Register a function of the report's data as a section of the page.

    The function returns a Section. Where an input is missing it returns None, and the page says that the
    section needs `needs`; or it returns a text, and the page says that instead.

    Args:
        key: its anchor on the page.
        title: its heading.
        order: sections are sorted by it; by default after the audit, before conventions and provenance.
        needs: the inputs without which it cannot be made, such as "lists= and train=".
        short: the title in the navigation, if not `title`.
    """

    def register(make: Maker) -> Maker:
        SECTIONS[key] = SectionEntry(key, title, make, order, needs, short or title)
        return make

    return register


def sections_of(data: ReportData) -> list[Section]:
    """All sections in their order, including those that cannot be made."""
    sections = []
    for entry in sorted(SECTIONS.load_plugins().values(), key=lambda entry: entry.order):
        made = entry.make(data)
        if not isinstance(made, Section):
            made = Section(needs=made or entry.needs)
        sections.append(replace(made, key=entry.key, title=entry.title, short=entry.short))
    return sections


@section("summary", "Summary", order=10)
def _summary(data: ReportData) -> Section:
    first, rest = headline(data)
    lead = "Values with their 95 % intervals."
    if data.baseline is not None:
        lead += (
            f" Lifts are over {data.baseline}: ▲ better and ▼ worse where the difference holds after "
            "correction for all comparisons, ≈ where none is clear."
        )
    return Section(lead, [first], more_tables=rest)


@section("differences", "Differences", order=20, needs="a second model to compare with")
def _differences(data: ReportData) -> Section | None:
    if data.comparison is None:
        return None
    titled_charts, table = differences(data)
    pictures = [Picture(title, chart) for title, chart in titled_charts]
    lead = f"Lift over {data.baseline} with its 95 % interval, users paired one by one; grey crosses zero."
    notes = [data.comparison.family, *data.comparison.table.notes]
    return Section(lead, [], pictures, notes=notes, more_tables=[table])


@section(
    "curves", "By cut-off", order=30, short="Cut-offs",
    needs="a metric at several cut-offs, such as ndcg@5, ndcg@10 and ndcg@20, or lists= and truth=",
)  # fmt: skip
def _curves(data: ReportData) -> Section | None:
    curves = section_numbers.curves(data)
    if not curves:
        return None
    pictures = [
        Picture(f"{family}@k", charts.curve(values, metric=f"{family}@k", baseline=data.baseline),
                table_by_model(f"curve-{family}", f"{family} at each cut-off", values))
        for family, values in list(curves.items())[:6]
    ]  # fmt: skip
    return Section("How the metrics grow with the length of the list.", [], pictures)


@section(
    "tradeoff", "Accuracy and coverage", order=40, short="Coverage",
    needs="a coverage metric, or lists= of every model",
)  # fmt: skip
def _tradeoff(data: ReportData) -> Section | str | None:
    coverage = section_numbers.coverage(data)
    if coverage is None:
        return None
    name, values = coverage
    points = {n: (values[n], data.value(n, data.metric)) for n in data.names}
    if name == data.metric or not np.isfinite(list(points.values())).all():
        return "a metric of accuracy with a value"
    chart = charts.tradeoff(points, x=name, y=data.metric, baseline=data.baseline)
    rows = [(n, *point) for n, point in points.items()]
    table = table_of_rows("tradeoff", "Accuracy and coverage", ("model", name, data.metric), rows)
    lead = "Coverage is the share of the catalogue that anyone is recommended. Up and to the right is better."
    return Section(lead, [], [Picture(f"{data.metric} and {name}", chart, table)])


@section(
    "distribution", "Across users", order=50, short="Spread",
    needs="a headline metric with a value for each user",
)  # fmt: skip
def _distribution(data: ReportData) -> Section | None:
    if data.metric not in data.per_case_metrics:
        return None
    columns = {n: data.per_case[n].columns[data.metric] for n in data.names}
    chart = charts.distribution(columns, metric=data.metric, baseline=data.baseline)
    spread = section_numbers.spread(data)
    columns_of_spread = {"model": list(spread)} | {
        q: [row[q] for row in spread.values()] for q in next(iter(spread.values()))
    }
    lead = "A mean hides how it is spread: how many users get nothing, how many get nearly everything."
    table = html_table("distribution", f"{data.metric} across users", columns_of_spread)
    return Section(lead, [], [Picture(f"{data.metric} per user", chart, table)])


@section(
    "strata", "Groups of users", order=60, short="Groups",
    needs="train= or truth=, or evaluations made with by=",
)  # fmt: skip
def _strata(data: ReportData) -> Section | None:
    strata = section_numbers.all_strata(data)
    if not strata:
        return None
    pictures = []
    for stratum in strata:
        values, sizes = stratum.values, stratum.sizes
        chart = charts.strata(
            values, metric=data.metric, sizes=sizes, title=stratum.title, baseline=data.baseline
        )
        table = table_by_model(f"strata-{stratum.name.replace(' ', '-')}", stratum.caption, values, sizes)
        pictures.append(Picture(f"By {stratum.name}", chart, table))
    notes = []
    if data.train is not None:
        users = Ids(np.unique(data.users))
        cold = int((count_entries(data.train, users) == 0).sum())
        notes.append(f"{cold:,} of {len(users):,} users have no history in training (cold).")
        if data.truth is not None:
            counts = section_numbers.popularity(data.train, data.truth.items)[data.truth.codes]
            n_cold, n = int((counts == 0).sum()), len(counts)
            notes.append(
                f"{n_cold:,} of {n:,} relevant entries are of items that never occur in training "
                "(cold items)."
            )
    return Section("Who is served well, and who is not.", [], pictures, notes)


@section("headtail", "Popular and rare items", order=70, short="Tail", needs="lists= and train=")
def _head_tail(data: ReportData) -> Section | None:
    head_and_tail = section_numbers.head_and_tail(data)
    if head_and_tail is None:
        return None
    shares, found = head_and_tail
    k = data.requests[data.metric].k or 10
    pictures = [
        Picture(f"Who gets the first {k} places", charts.headtail(shares),
                table_by_model("head-tail", "Share of places", shares, first="of"))
    ]  # fmt: skip
    if found:
        table = table_by_model("head-tail-found", "Relevant items found", found)
        chart = charts.bars(found, baseline=data.baseline, title="share found")
        pictures.append(Picture(f"Share of relevant items found in the first {k} places", chart, table))
    lead = (
        "The head is the most popular fifth of the items in training, cut between two levels of popularity; "
        "the tail is all others. Shares are of all places and of all relevant items, not means over users."
    )
    return Section(lead, [], pictures)


@section("winloss", "Wins and losses", order=80, short="Wins", needs="a second model to compare with")
def _duels(data: ReportData) -> Section | None:
    base = data.baseline
    if base is None or data.comparison is None or data.metric not in data.per_case_metrics:
        return None
    rows = [r for r in data.comparison.rows if r.metric == data.metric]
    counts = {r.model: (r.wins, r.ties, r.losses) for r in rows}
    lines = [(model, *outcomes) for model, outcomes in counts.items()]
    title = f"Users won and lost on {data.metric}"
    table = table_of_rows("wins", title, ("model", "won", "tied", "lost"), lines)
    pictures = [
        Picture(f"Users won, tied and lost against {base}", charts.winloss(counts, baseline=base), table)
    ]
    values = data.aligned.tables
    models = [data.best] + [n for n in counts if n != data.best]
    for name in models[:3]:
        pair = values[base][data.metric], values[name][data.metric]
        chart = charts.duel(*pair, names=(base, name), metric=data.metric)
        pictures.append(Picture(f"{name} against {base}, user by user", chart))
    lead = f"Above the dashed line a user is served better than by {base}, below it worse."
    return Section(lead, [], pictures)


@section(
    "users", "Single users", order=90, short="Users", needs="a headline metric with a value for each user"
)
def _failures(data: ReportData) -> Section | None:
    if data.metric not in data.per_case_metrics:
        return None
    worst = example_users.failures(data)
    base = data.baseline if data.baseline not in (None, data.best) else None
    columns: dict[str, list[Any]] = {"user": [w["user"] for w in worst]}
    columns[data.best] = [w["value"] for w in worst]
    if base is not None:
        columns[base] = [w["base"] for w in worst]
    if data.train is not None:
        columns["history"] = [w["n_had"] for w in worst]
    if data.truth is not None:
        columns |= {
            "relevant": [w["n_wanted"] for w in worst],
            "wanted": ["; ".join(w["wanted"]) for w in worst],
        }
    if data.best in data.lists:
        columns[f"{data.best} began with"] = ["; ".join(w["shown"]) for w in worst]
    title = f"Where {data.best} loses most against {base}" if base else f"Where {data.best} does worst"
    lead = f"Failure cases of {data.best} on {data.metric}, and a closer look at single users."
    failures = [html_table("failures", title, columns)] if worst else []
    return Section(lead, failures, users=example_users.inspector_users(data))


@section("map", "Map of items", order=100, short="Map", needs="embeddings=")
def _map(data: ReportData) -> Section | str | None:
    if data.embeddings is None:
        return None
    try:
        ids, places, n_items = section_numbers.coordinates_of(data.embeddings, data.items, MOST_ITEMS)
    except MissingExtraError as error:
        return f"{error.package!r} ({error.hint})"
    lead = "Items that are near each other have similar embeddings."
    sizes = None
    lists = data.lists.get(data.best)
    if lists is not None:
        counts = np.bincount(lists.codes, minlength=len(lists.items))
        by_id = {lists.items.name(code): int(n) for code, n in enumerate(counts.tolist()) if n}
        sizes = np.sqrt(np.array([float(by_id.get(i, 0)) for i in ids])).tolist()
        lead += f" Larger marks are recommended more often by {data.best}."
    groups = None
    if any(data.items.groups.get(i) for i in ids):
        own = [data.items.groups.get(i, "") for i in ids]
        labels, counts = np.unique(np.array(own, dtype=object).astype(str), return_counts=True)
        frequent = set(labels[np.argsort(-counts, kind="stable")][:_MOST_GROUPS].tolist())
        groups = [(g or "(none)") if g in frequent else "(other)" for g in own]
    titles = [example_users.short(data.items.title(i)) for i in ids]
    chart = charts.embedding(places, labels=titles, groups=groups, sizes=sizes)
    notes = [f"{len(ids):,} of {n_items:,} items are drawn."] if len(ids) < n_items else []
    return Section(lead, [], [Picture("Items by embedding", chart)], notes)


@section(
    "history", "Over time", order=110, short="Time",
    needs="history= (a folder of results kept by recsys run)",
)  # fmt: skip
def _history(data: ReportData) -> Section | None:
    if not data.histories:
        return None
    pictures = []
    for metric, history in list(data.histories.items())[:3]:
        chart = charts.history(history.by_model, metric=metric, changes=history.changes)
        table = html_table(f"history-{metric}", metric, history.columns)
        pictures.append(Picture(f"{metric} over time", chart, table))
    lead = f"Dashed lines mark a change of level beyond the noise; to tell one takes {MIN_NIGHTS} nights."
    return Section(lead, [], pictures)


@section("audit", "Audit", order=120, needs="audit= (what recsys audit found)")
def _audit(data: ReportData) -> Section | None:
    if not data.findings:
        return None
    return Section("What was checked about the data and the protocol.", findings=data.findings)


@section("conventions", "Conventions", order=200)
def _conventions(data: ReportData) -> Section:
    """Every decision, its value and what it means; those that differ from the default are marked."""
    conventions, default = data.first(data.names[0]).conventions, Conventions()
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
    lead = "The decisions behind the numbers. Other libraries decide differently; recsys explain says how."
    return Section(lead, [html_table("conventions", f"Conventions: {conventions}", columns)])


@section("provenance", "Provenance", order=210)
def _provenance(data: ReportData) -> Section:
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
    more_tables = [html_table("counts", "What was counted", counts)]
    if notes:
        more_tables.append(_facts_table("read", "How the tables were read", notes))
    # What a reader must know to trust the numbers; a line that holds for some models names them.
    models_by_line: dict[str, list[str]] = {}
    for name, evaluation in models.items():
        for line in tables.footnotes(evaluation.counts, evaluation.conventions, evaluation.notes)[:-1]:
            models_by_line.setdefault(line, []).append(name)
    footnotes = [
        line if len(names) == len(models) else f"{', '.join(names)}: {line}"
        for line, names in models_by_line.items()
    ]
    return Section(
        "The same inputs under the same conventions give a result with the same fingerprint, on any machine.",
        [_facts_table("runs", "Result, versions and machine", facts)],
        notes=footnotes,
        more_tables=more_tables,
    )


def _flatten_notes(notes: Mapping[str, Any], parent: str = "") -> list[tuple[str, str, str]]:
    """(path of the parents, name, value) of every note that is not empty."""
    rows = []
    for name, value in notes.items():
        if isinstance(value, Mapping):
            rows += _flatten_notes(value, f"{parent} {name}".strip())
        elif value not in (None, "", ()):
            text = ", ".join(value) if isinstance(value, tuple) else str(value)
            rows.append((parent, str(name).replace("_", " "), text))
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
    return table_of_rows(name, title, ("fact", "model", "value"), rows)


def _text_or_none(value: Any) -> str:
    return "none" if value is None else str(value)
