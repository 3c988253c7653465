"""The sections of the page, in order; each makes tables and charts, or says which inputs it needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from recsys.errors import MissingExtraError
from recsys.report import charts, example_users, section_numbers, style
from recsys.report.charts import Chart
from recsys.report.external import MetricHistory
from recsys.report.headline import differences, headline
from recsys.report.html_tables import HtmlTable, cell, html_table
from recsys.report.item_names import coordinates_of, popularity
from recsys.report.report_data import ReportData
from recsys.types import Ids

MOST_ITEMS = 1200
_NAVIGATION_TITLES = {
    "tradeoff": "Coverage",
    "distribution": "Spread",
    "strata": "Groups",
    "headtail": "Tail",
    "curves": "Cut-offs",
    "winloss": "Wins",
    "users": "Users",
    "map": "Map",
    "history": "Time",
}


@dataclass(frozen=True)
class Picture:
    """A chart, its caption and its numbers as a table."""

    title: str
    chart: Chart
    table: HtmlTable | None = None


@dataclass(frozen=True)
class Section:
    """One part of the page; `needs` names the missing inputs of a section that cannot be made."""

    key: str
    title: str
    lead: str = ""
    tables: Sequence[HtmlTable] = ()
    pictures: Sequence[Picture] = ()
    notes: Sequence[str] = ()
    findings: Sequence[Mapping[str, Any]] = ()
    users: Mapping[str, Any] = field(default_factory=dict)
    more_tables: Sequence[HtmlTable] = ()
    needs: str = ""

    @property
    def short(self) -> str:
        """The title in the navigation."""
        return _NAVIGATION_TITLES.get(self.key, self.title)


def sections_of(
    data: ReportData, findings: Sequence[Mapping[str, Any]], histories: Mapping[str, MetricHistory]
) -> list[Section]:
    """All sections, including those that cannot be made."""
    builders: list[Callable[[ReportData], Section]] = [
        _summary, _differences, _curves, _tradeoff, _distribution,
        _strata, _head_tail, _duels, _failures, _map,
    ]  # fmt: skip
    return [*(build(data) for build in builders), _history(histories), _audit(findings)]


def _summary(data: ReportData) -> Section:
    first, rest = headline(data)
    lead = "Values with their 95 % intervals."
    if data.baseline is not None:
        lead += (
            f" Lifts are over {data.baseline}: ▲ better and ▼ worse where the difference holds after "
            "correction for all comparisons, ≈ where none is clear."
        )
    return Section("summary", "Summary", lead, [first], more_tables=rest)


def _differences(data: ReportData) -> Section:
    if data.comparison is None:
        return Section("differences", "Differences", needs="a second model to compare with")
    titled_charts, table = differences(data)
    pictures = [Picture(title, chart) for title, chart in titled_charts]
    lead = f"Lift over {data.baseline} with its 95 % interval, users paired one by one; grey crosses zero."
    notes = [data.comparison.family, *data.comparison.table.notes]
    return Section("differences", "Differences", lead, [], pictures, notes=notes, more_tables=[table])


def _curves(data: ReportData) -> Section:
    curves = section_numbers.curves(data)
    if not curves:
        needs = "a metric at several cut-offs, such as ndcg@5, ndcg@10 and ndcg@20, or lists= and truth="
        return Section("curves", "By cut-off", needs=needs)
    pictures = [
        Picture(f"{family}@k", charts.curve(values, metric=f"{family}@k", baseline=data.baseline),
                _table_by_model(f"curve-{family}", f"{family} at each cut-off", values))
        for family, values in list(curves.items())[:6]
    ]  # fmt: skip
    return Section("curves", "By cut-off", "How the metrics grow with the length of the list.", [], pictures)


def _tradeoff(data: ReportData) -> Section:
    coverage = section_numbers.coverage(data)
    if coverage is None:
        return Section(
            "tradeoff", "Accuracy and coverage", needs="a coverage metric, or lists= of every model"
        )
    name, values = coverage
    points = {n: (values[n], data.value(n, data.metric)) for n in data.names}
    if name == data.metric or not np.isfinite(list(points.values())).all():
        return Section("tradeoff", "Accuracy and coverage", needs="a metric of accuracy with a value")
    chart = charts.tradeoff(points, x=name, y=data.metric, baseline=data.baseline)
    columns: dict[str, list[Any]] = {
        "model": data.names,
        name: [points[n][0] for n in data.names],
        data.metric: [points[n][1] for n in data.names],
    }
    table = html_table("tradeoff", "Accuracy and coverage", columns)
    lead = "Coverage is the share of the catalogue that anyone is recommended. Up and to the right is better."
    return Section(
        "tradeoff",
        "Accuracy and coverage",
        lead,
        [],
        [Picture(f"{data.metric} and {name}", chart, table)],
    )


def _distribution(data: ReportData) -> Section:
    if data.metric not in data.per_case_metrics:
        return Section("distribution", "Across users", needs="a headline metric with a value for each user")
    columns = {n: data.per_case[n].columns[data.metric] for n in data.names}
    chart = charts.distribution(columns, metric=data.metric, baseline=data.baseline)
    spread = section_numbers.spread(data)
    columns_of_spread = {"model": list(spread)} | {
        q: [row[q] for row in spread.values()] for q in next(iter(spread.values()))
    }
    lead = "A mean hides how it is spread: how many users get nothing, how many get nearly everything."
    table = html_table("distribution", f"{data.metric} across users", columns_of_spread)
    return Section(
        "distribution", "Across users", lead, [], [Picture(f"{data.metric} per user", chart, table)]
    )


def _strata(data: ReportData) -> Section:
    strata = section_numbers.all_strata(data)
    if not strata:
        return Section("strata", "Groups of users", needs="train= or truth=, or evaluations made with by=")
    pictures = []
    for stratum in strata:
        chart = charts.strata(
            stratum.values,
            metric=data.metric,
            sizes=stratum.sizes,
            title=stratum.title,
            baseline=data.baseline,
        )
        table = _table_by_model(
            f"strata-{stratum.name.replace(' ', '-')}", stratum.caption, stratum.values, stratum.sizes
        )
        pictures.append(Picture(f"By {stratum.name}", chart, table))
    return Section(
        "strata",
        "Groups of users",
        "Who is served well, and who is not.",
        [],
        pictures,
        _cold_notes(data),
    )


def _cold_notes(data: ReportData) -> list[str]:
    if data.train is None:
        return []
    users = Ids(np.unique(data.users))
    cold = int((section_numbers.count_entries(data.train, users) == 0).sum())
    notes = [f"{cold:,} of {len(users):,} users have no history in training (cold)."]
    if data.truth is not None:
        counts = popularity(data.train, data.truth.items)[data.truth.codes]
        n_cold, n = int((counts == 0).sum()), len(counts)
        notes.append(
            f"{n_cold:,} of {n:,} relevant entries are of items that never occur in training (cold items)."
        )
    return notes


def _head_tail(data: ReportData) -> Section:
    head_and_tail = section_numbers.head_and_tail(data)
    if head_and_tail is None:
        return Section("headtail", "Popular and rare items", needs="lists= and train=")
    shares, found = head_and_tail
    k = data.requests[data.metric].k or 10
    pictures = [
        Picture(f"Who gets the first {k} places", charts.headtail(shares),
                _table_by_model("head-tail", "Share of places", shares, first="of"))
    ]  # fmt: skip
    if found:
        table = _table_by_model("head-tail-found", "Relevant items found", found)
        chart = charts.bars(found, baseline=data.baseline, title="share found")
        pictures.append(Picture(f"Share of relevant items found in the first {k} places", chart, table))
    lead = "The head is the most popular fifth of the items in training, the tail all others."
    return Section("headtail", "Popular and rare items", lead, [], pictures)


def _duels(data: ReportData) -> Section:
    base = data.baseline
    if base is None or data.comparison is None or data.metric not in data.per_case_metrics:
        return Section("winloss", "Wins and losses", needs="a second model to compare with")
    rows = {r.model: r for r in data.comparison.rows if r.metric == data.metric}
    counts = {n: (r.wins, r.ties, r.losses) for n, r in rows.items()}
    table = html_table("wins", f"Users won and lost on {data.metric}", {
        "model": list(counts), "won": [c[0] for c in counts.values()],
        "tied": [c[1] for c in counts.values()], "lost": [c[2] for c in counts.values()],
    })  # fmt: skip
    pictures = [
        Picture(f"Users won, tied and lost against {base}", charts.winloss(counts, baseline=base), table)
    ]
    tables = data.aligned.tables
    models = [data.best] + [n for n in counts if n != data.best]
    for name in models[:3]:
        chart = charts.duel(
            tables[base][data.metric],
            tables[name][data.metric],
            names=(base, name),
            metric=data.metric,
        )
        pictures.append(Picture(f"{name} against {base}, user by user", chart))
    lead = f"Above the dashed line a user is served better than by {base}, below it worse."
    return Section("winloss", "Wins and losses", lead, [], pictures)


def _failures(data: ReportData) -> Section:
    if data.metric not in data.per_case_metrics:
        return Section("users", "Single users", needs="a headline metric with a value for each user")
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
    tables = [html_table("failures", title, columns)] if worst else []
    return Section("users", "Single users", lead, tables, users=example_users.inspector_users(data))


def _map(data: ReportData) -> Section:
    if data.embeddings is None:
        return Section("map", "Map of items", needs="embeddings=")
    try:
        ids, places, n_items = coordinates_of(data.embeddings, data.items, MOST_ITEMS)
    except MissingExtraError as error:
        return Section("map", "Map of items", needs=f"{error.package!r} ({error.hint})")
    sizes = _mark_sizes(data, ids)
    groups = [data.items.groups.get(i, "") for i in ids]
    chart = charts.embedding(
        places,
        labels=[example_users.short(data.items.title(i)) for i in ids],
        groups=_merge_rare_groups(groups) if any(groups) else None,
        sizes=None if sizes is None else sizes.tolist(),
    )
    lead = "Items that are near each other have similar embeddings."
    if sizes is not None:
        lead += f" Larger marks are recommended more often by {data.best}."
    notes = [f"{len(ids):,} of {n_items:,} items are drawn."] if len(ids) < n_items else []
    return Section("map", "Map of items", lead, [], [Picture("Items by embedding", chart)], notes)


def _mark_sizes(data: ReportData, ids: Sequence[Any]) -> Any:
    """The root of how often the best model recommends each item; None without its lists."""
    lists = data.lists.get(data.best)
    if lists is None:
        return None
    counts = np.bincount(lists.codes, minlength=len(lists.items))
    by_id = {lists.items.name(code): int(n) for code, n in enumerate(counts.tolist()) if n}
    return np.sqrt(np.array([float(by_id.get(i, 0)) for i in ids]))


def _merge_rare_groups(groups: Sequence[str], max_groups: int = 9) -> list[str]:
    """The most frequent groups by name, the others as one."""
    names, counts = np.unique(np.array(groups, dtype=object).astype(str), return_counts=True)
    frequent = set(names[np.argsort(-counts, kind="stable")][:max_groups].tolist())
    return [(g or "(none)") if g in frequent else "(other)" for g in groups]


def _history(histories: Mapping[str, MetricHistory]) -> Section:
    if not histories:
        return Section("history", "Over time", needs="history= (a folder of results kept by recsys run)")
    pictures = []
    for metric, history in list(histories.items())[:3]:
        chart = charts.history(history.by_model, metric=metric, changes=history.changes)
        table = html_table(f"history-{metric}", metric, history.columns)
        pictures.append(Picture(f"{metric} over time", chart, table))
    lead = "Dashed lines mark a change of level beyond the noise."
    return Section("history", "Over time", lead, [], pictures)


def _audit(findings: Sequence[Mapping[str, Any]]) -> Section:
    if not findings:
        return Section("audit", "Audit", needs="audit= (what recsys audit found)")
    return Section("audit", "Audit", "What was checked about the data and the protocol.", findings=findings)


def _table_by_model(
    name: str,
    title: str,
    values: Mapping[str, Mapping[Any, Any]],
    sizes: Mapping[Any, int] | None = None,
    *,
    first: str = "model",
) -> HtmlTable:
    """{model: {key: value}} as a table: one row per model, one column per key."""
    keys = list(dict.fromkeys(key for row in values.values() for key in row))
    columns: dict[str, list[Any]] = {first: list(values)}
    rows = [[cell(n)] for n in values]
    for key in keys:
        triples = [style.value_and_interval(row.get(key, math.nan)) for row in values.values()]
        columns[str(key)] = [t[0] for t in triples]
        if any(math.isfinite(t[1]) for t in triples):
            columns |= {f"{key} low": [t[1] for t in triples], f"{key} high": [t[2] for t in triples]}
        for row, t in zip(rows, triples, strict=True):
            interval = f"[{t[1]:.4f}, {t[2]:.4f}]" if math.isfinite(t[1]) else ""
            row.append(replace(cell(t[0]), small=interval))
    heads = [first, *(f"{k} ({sizes[k]:,})" if sizes and k in sizes else str(k) for k in keys)]
    return HtmlTable(name, title, heads, rows, [False, *(True for _ in keys)], columns)
