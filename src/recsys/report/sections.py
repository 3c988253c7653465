"""The page's sections, in order: each makes tables and charts of the material, or says what it lacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recsys.errors import MissingExtraError
from recsys.report import charts, example_users, section_numbers
from recsys.report.charts import Chart
from recsys.report.headline import differences, headline
from recsys.report.html_tables import HtmlTable, cell, sheet
from recsys.report.item_names import coordinates_of, popularity
from recsys.report.report_data import ReportData
from recsys.types import Ids

MOST_ITEMS = 1200
_SHORT = {
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
    """One part of the page; `lacks` says what it would need when it cannot be made."""

    key: str
    title: str
    lead: str = ""
    sheets: Sequence[HtmlTable] = ()
    pictures: Sequence[Picture] = ()
    words: Sequence[str] = ()
    findings: Sequence[Mapping[str, Any]] = ()
    users: Mapping[str, Any] = field(default_factory=dict)
    more: Sequence[HtmlTable] = ()
    lacks: str = ""

    @property
    def short(self) -> str:
        """The title in the navigation."""
        return _SHORT.get(self.key, self.title)


def sections_of(material: ReportData, findings: Sequence[Any], nights: Any) -> list[Section]:
    """All sections, those that lack something among them."""
    made: list[Callable[[ReportData], Section]] = [
        _summary, _differences, _curves, _tradeoff, _distribution,
        _strata, _head_tail, _duels, _failures, _map,
    ]  # fmt: skip
    return [*(make(material) for make in made), _history(nights), _audit(findings)]


def _summary(material: ReportData) -> Section:
    first, rest = headline(material)
    lead = "Values with their 95 % intervals."
    if material.baseline is not None:
        lead += (
            f" Lifts are over {material.baseline}: ▲ better and ▼ worse where the difference holds after "
            "correction for all comparisons, ≈ where none is clear."
        )
    return Section("summary", "Summary", lead, [first], more=rest)


def _differences(material: ReportData) -> Section:
    if material.comparison is None:
        return Section("differences", "Differences", lacks="a second model to compare with")
    pictures, table = differences(material)
    made = [Picture(title, chart) for title, chart in pictures]
    lead = (
        f"Lift over {material.baseline} with its 95 % interval, users paired one by one; grey crosses zero."
    )
    notes = [material.comparison.family, *material.comparison.table.notes]
    return Section("differences", "Differences", lead, [], made, words=notes, more=[table])


def _curves(material: ReportData) -> Section:
    found = section_numbers.curves(material)
    if not found:
        needs = "a metric at several cut-offs, such as ndcg@5, ndcg@10 and ndcg@20, or lists= and truth="
        return Section("curves", "By cut-off", lacks=needs)
    pictures = [
        Picture(f"{family}@k", charts.curve(values, metric=f"{family}@k", baseline=material.baseline),
                _wide(f"curve-{family}", f"{family} at each cut-off", values))
        for family, values in list(found.items())[:6]
    ]  # fmt: skip
    return Section("curves", "By cut-off", "How the metrics grow with the length of the list.", [], pictures)


def _tradeoff(material: ReportData) -> Section:
    shown = section_numbers.coverage(material)
    if shown is None:
        return Section(
            "tradeoff", "Accuracy and coverage", lacks="a coverage metric, or lists= of every model"
        )
    name, values = shown
    points = {n: (values[n], material.value(n, material.metric)) for n in material.names}
    if name == material.metric or not np.isfinite(list(points.values())).all():
        return Section("tradeoff", "Accuracy and coverage", lacks="a metric of accuracy with a value")
    chart = charts.tradeoff(points, x=name, y=material.metric, baseline=material.baseline)
    columns: dict[str, list[Any]] = {
        "model": material.names,
        name: [points[n][0] for n in material.names],
        material.metric: [points[n][1] for n in material.names],
    }
    table = sheet("tradeoff", "Accuracy and coverage", columns)
    lead = "Coverage is the share of the catalogue that anyone is recommended. Up and to the right is better."
    return Section(
        "tradeoff",
        "Accuracy and coverage",
        lead,
        [],
        [Picture(f"{material.metric} and {name}", chart, table)],
    )


def _distribution(material: ReportData) -> Section:
    if material.metric not in material.per_case_metrics:
        return Section("distribution", "Across users", lacks="a headline metric with a value for each user")
    columns = {n: material.per_case[n].columns[material.metric] for n in material.names}
    chart = charts.distribution(columns, metric=material.metric, baseline=material.baseline)
    spread = section_numbers.spread(material)
    table = {"model": list(spread)} | {
        q: [row[q] for row in spread.values()] for q in next(iter(spread.values()))
    }
    lead = "A mean hides how it is spread: how many users get nothing, how many get nearly everything."
    made = sheet("distribution", f"{material.metric} across users", table)
    return Section(
        "distribution", "Across users", lead, [], [Picture(f"{material.metric} per user", chart, made)]
    )


def _strata(material: ReportData) -> Section:
    found = section_numbers.all_strata(material)
    if not found:
        return Section("strata", "Groups of users", lacks="train= or truth=, or evaluations made with by=")
    pictures = []
    for one in found:
        chart = charts.strata(
            one.values, metric=material.metric, sizes=one.sizes, title=one.title, baseline=material.baseline
        )
        table = _wide(f"strata-{one.name.replace(' ', '-')}", one.says, one.values, one.sizes)
        pictures.append(Picture(f"By {one.name}", chart, table))
    return Section(
        "strata",
        "Groups of users",
        "Who is served well, and who is not.",
        [],
        pictures,
        _cold_words(material),
    )


def _cold_words(material: ReportData) -> list[str]:
    if material.train is None:
        return []
    users = Ids(np.unique(material.users))
    cold = int((section_numbers.how_many(material.train, users) == 0).sum())
    words = [f"{cold:,} of {len(users):,} users have no history in training (cold)."]
    if material.truth is not None:
        taken = popularity(material.train, material.truth.items)[material.truth.codes]
        new, n = int((taken == 0).sum()), len(taken)
        words.append(
            f"{new:,} of {n:,} relevant entries are of items that never occur in training (cold items)."
        )
    return words


def _head_tail(material: ReportData) -> Section:
    made = section_numbers.head_and_tail(material)
    if made is None:
        return Section("headtail", "Popular and rare items", lacks="lists= and train=")
    shares, found = made
    k = material.requests[material.metric].k or 10
    pictures = [
        Picture(f"Who gets the first {k} places", charts.headtail(shares),
                _wide("head-tail", "Share of places", shares, first="of"))
    ]  # fmt: skip
    if found:
        table = _wide("head-tail-found", "Relevant items found", found)
        chart = charts.bars(found, baseline=material.baseline, title="share found")
        pictures.append(Picture(f"Share of relevant items found in the first {k} places", chart, table))
    lead = "The head is the most popular fifth of the items in training, the tail all others."
    return Section("headtail", "Popular and rare items", lead, [], pictures)


def _duels(material: ReportData) -> Section:
    base = material.baseline
    if base is None or material.comparison is None or material.metric not in material.per_case_metrics:
        return Section("winloss", "Wins and losses", lacks="a second model to compare with")
    rows = {r.model: r for r in material.comparison.rows if r.metric == material.metric}
    counts = {n: (r.wins, r.ties, r.losses) for n, r in rows.items()}
    table = sheet("wins", f"Users won and lost on {material.metric}", {
        "model": list(counts), "won": [c[0] for c in counts.values()],
        "tied": [c[1] for c in counts.values()], "lost": [c[2] for c in counts.values()],
    })  # fmt: skip
    pictures = [
        Picture(f"Users won, tied and lost against {base}", charts.winloss(counts, baseline=base), table)
    ]
    tables = material.aligned.tables
    shown = [material.best] + [n for n in counts if n != material.best]
    for name in shown[:3]:
        chart = charts.duel(
            tables[base][material.metric],
            tables[name][material.metric],
            names=(base, name),
            metric=material.metric,
        )
        pictures.append(Picture(f"{name} against {base}, user by user", chart))
    lead = f"Above the dashed line a user is served better than by {base}, below it worse."
    return Section("winloss", "Wins and losses", lead, [], pictures)


def _failures(material: ReportData) -> Section:
    if material.metric not in material.per_case_metrics:
        return Section("users", "Single users", lacks="a headline metric with a value for each user")
    worst = example_users.failures(material)
    base = material.baseline if material.baseline not in (None, material.best) else None
    columns: dict[str, list[Any]] = {"user": [w["user"] for w in worst]}
    columns[material.best] = [w["value"] for w in worst]
    if base is not None:
        columns[base] = [w["base"] for w in worst]
    if material.train is not None:
        columns["history"] = [w["n_had"] for w in worst]
    if material.truth is not None:
        columns |= {
            "relevant": [w["n_wanted"] for w in worst],
            "wanted": ["; ".join(w["wanted"]) for w in worst],
        }
    if material.best in material.lists:
        columns[f"{material.best} began with"] = ["; ".join(w["shown"]) for w in worst]
    title = (
        f"Where {material.best} loses most against {base}" if base else f"Where {material.best} does worst"
    )
    lead = f"Failure cases of {material.best} on {material.metric}, and a closer look at single users."
    tables = [sheet("failures", title, columns)] if worst else []
    return Section("users", "Single users", lead, tables, users=example_users.people(material))


def _map(material: ReportData) -> Section:
    if material.embeddings is None:
        return Section("map", "Map of items", lacks="embeddings=")
    try:
        ids, places, n_items = coordinates_of(material.embeddings, material.items, MOST_ITEMS)
    except MissingExtraError as error:
        return Section("map", "Map of items", lacks=f"{error.package!r} ({error.hint})")
    sizes = _shown_counts(material, ids)
    groups = [material.items.groups.get(i, "") for i in ids]
    chart = charts.embedding(
        places,
        labels=[example_users.short(material.items.title(i)) for i in ids],
        groups=_fewer(groups) if any(groups) else None,
        sizes=None if sizes is None else sizes.tolist(),
    )
    lead = "Items that are near each other have similar embeddings."
    if sizes is not None:
        lead += f" Larger marks are recommended more often by {material.best}."
    words = [f"{len(ids):,} of {n_items:,} items are drawn."] if len(ids) < n_items else []
    return Section("map", "Map of items", lead, [], [Picture("Items by embedding", chart)], words)


def _shown_counts(material: ReportData, ids: Sequence[Any]) -> Any:
    held = material.lists.get(material.best)
    if held is None:
        return None
    counts = np.bincount(held.codes, minlength=len(held.items))
    by_id = {held.items.name(code): int(n) for code, n in enumerate(counts.tolist()) if n}
    return np.sqrt(np.array([float(by_id.get(i, 0)) for i in ids]))


def _fewer(groups: Sequence[str], most: int = 9) -> list[str]:
    """The most frequent groups by name, the rest as one."""
    names, counts = np.unique(np.array(groups, dtype=object).astype(str), return_counts=True)
    kept = set(names[np.argsort(-counts, kind="stable")][: min(len(names), most)].tolist())
    return [(g or "(none)") if g in kept else "(other)" for g in groups]


def _history(nights: Any) -> Section:
    if not nights:
        return Section("history", "Over time", lacks="history= (a folder of results kept by recsys run)")
    pictures = []
    for metric, (rows, changes, table) in list(nights.items())[:3]:
        chart = charts.history(rows, metric=metric, changes=changes)
        pictures.append(Picture(f"{metric} over time", chart, sheet(f"history-{metric}", metric, table)))
    lead = "Dashed lines mark a change of level beyond the noise."
    return Section("history", "Over time", lead, [], pictures)


def _audit(findings: Sequence[Any]) -> Section:
    if not findings:
        return Section("audit", "Audit", lacks="audit= (what recsys audit found)")
    return Section("audit", "Audit", "What was checked about the data and the protocol.", findings=findings)


def _wide(
    name: str,
    title: str,
    values: Mapping[str, Mapping[Any, Any]],
    sizes: Mapping[Any, int] | None = None,
    *,
    first: str = "model",
) -> HtmlTable:
    """{model: {key: value}} as a table: a row a model, a column a key."""
    keys = list(dict.fromkeys(k for held in values.values() for k in held))
    columns: dict[str, list[Any]] = {first: list(values)}
    rows = [[cell(n)] for n in values]
    for key in keys:
        held = [values[n].get(key, math.nan) for n in values]
        triples = [v if isinstance(v, tuple) else (float(v), math.nan, math.nan) for v in held]
        columns[str(key)] = [t[0] for t in triples]
        if any(math.isfinite(t[1]) for t in triples):
            columns |= {f"{key} low": [t[1] for t in triples], f"{key} high": [t[2] for t in triples]}
        for row, t in zip(rows, triples, strict=True):
            reach = f"[{t[1]:.4f}, {t[2]:.4f}]" if math.isfinite(t[1]) else ""
            made = cell(t[0])
            row.append(type(made)(made.text, made.key, reach))
    heads = [first, *(f"{k} ({sizes[k]:,})" if sizes and k in sizes else str(k) for k in keys)]
    return HtmlTable(name, title, heads, rows, [False, *(True for _ in keys)], columns)
