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
from recsys.display.number_words import plural
from recsys.display.words import merged
from recsys.errors import MissingExtraError
from recsys.evaluation.files.result_files import run_facts
from recsys.evaluation.result_facts import footnotes_of
from recsys.records.arrays import Ids, count_entries
from recsys.records.registry import Registry
from recsys.report import charts, example_users, section_numbers
from recsys.report.charts import Chart
from recsys.report.costs import costs_table
from recsys.report.decision import correction_words
from recsys.report.html_tables import HtmlTable, html_table, table_by_model, table_of_rows
from recsys.report.methods import methods_paragraph
from recsys.report.model_tables import comparisons, overview, ranking, selection
from recsys.report.study import Study
from recsys.stats.change_points import MIN_NIGHTS

MOST_ITEMS = 1200
_MOST_PANELS = 8
_MOST_GROUPS = 9  # of the map; the others are one


@dataclass(frozen=True)
class Drawing:
    """A chart, its caption and its numbers as tables; a wide one takes the whole width of the page."""

    title: str
    chart: Chart
    tables: Sequence[HtmlTable] = ()
    wide: bool = False


@dataclass(frozen=True)
class Section:
    """One part of the page; key, title, short and needs are those it is registered with."""

    lead: str = ""
    tables: Sequence[HtmlTable] = ()
    pictures: Sequence[Drawing] = ()
    notes: Sequence[str] = ()
    findings: Sequence[Mapping[str, Any]] = ()
    users: Mapping[str, Any] = field(default_factory=dict)
    selection: Mapping[str, Any] = field(default_factory=dict)  # what can be chosen for its first table
    more_tables: Sequence[HtmlTable] = ()
    texts: Mapping[str, str] = field(default_factory=dict)  # to be copied, by title; folded
    printed: bool = False  # whether more_tables, which are folded on the screen, are printed
    key: str = ""
    title: str = ""
    short: str = ""  # the title in the navigation
    needs: str = ""  # what is missing, if the section cannot be made


Maker = Callable[[Study], Section | str | None]


class SectionEntry(NamedTuple):
    """A section as it is registered; see `section`."""

    key: str
    title: str
    make: Maker
    order: int
    needs: str
    short: str


SECTIONS: Registry[SectionEntry] = Registry("section", "recsys.sections")


def given_by(*names: str) -> str:
    """Return how inputs are given: on the command line, and in Python.

    >>> given_by("train", "items")
    '--train and --items (in Python train= and items=)'
    """
    return f"{' and '.join(f'--{n}' for n in names)} (in Python {' and '.join(f'{n}=' for n in names)})"


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
        needs: the inputs without which it cannot be made, such as "the lists of every model"; see `given_by`.
        short: the title in the navigation, if not `title`.
    """
    return SECTIONS.adding(lambda make: SectionEntry(key, title, make, order, needs, short or title), key)


def sections_of(study: Study, only: Sequence[str] | None = None) -> list[Section]:
    """Return all sections (or those of these keys) in order, including those that cannot be made."""
    sections = []
    for entry in sorted(SECTIONS.load_plugins().values(), key=lambda entry: entry.order):
        if only is not None and entry.key not in only:
            continue
        made = entry.make(study)
        if not isinstance(made, Section):
            made = Section(needs=made or entry.needs)
        sections.append(replace(made, key=entry.key, title=entry.title, short=entry.short))
    return sections


_LISTS = "files of lists or models instead of saved results (in Python lists=)"


@section("summary", "Models", order=10)
def _summary(study: Study) -> Section:
    first, rest = overview(study)
    lead = "Best first, with 95% intervals. Bars are shares of the largest value of their column."
    if study.comparison is None:
        return Section(lead, [first, *costs_table(study)], more_tables=rest)
    correction = correction_words(study)
    lead += f" ▲ better and ▼ worse: a clear difference, {correction}; ≈ none is clear."
    family = study.comparison.family
    notes = [f"{family[0].upper()}{family[1:]}. Intervals of differences hold together in each family."]
    beyond = [m for m in section_numbers.main_metrics(study) if study.is_beyond_accuracy(m)]
    if beyond and len(beyond) < len(study.metrics):
        listed = f"what the lists are like ({', '.join(beyond)}), beyond accuracy: higher is not better."
        notes.insert(0, f"Right of the rule: {listed}")
    tables = [ranking(study), first, *costs_table(study)]
    return Section(lead, tables, notes=notes, selection=selection(study), more_tables=rest)


@section("differences", "Differences", order=20, needs="a second model to compare with")
def _differences(study: Study) -> Section | None:
    base = study.reference
    if study.comparison is None or base is None:
        return None
    values: dict[str, Mapping[str, Any]] = {}
    units: dict[str, str] = {}
    for metric in section_numbers.main_metrics(study)[:_MOST_PANELS]:
        rows = {n: study.rows.get((n, base, metric)) for n in study.names}
        known = {n: r for n, r in rows.items() if r is not None and np.isfinite(r.interval.low)}
        if known:
            values[metric], units[metric] = section_numbers.lifts_or_differences(known)
    pictures = []
    if values:
        title = f"lift over {base}" if all(units.values()) else f"against {base}"
        lower = [m for m in values if study.lower_is_better(m)]
        chart = charts.forest(
            values, unit=units, title=title, lower=lower, baseline=study.baseline, order=study.names
        )
        pictures.append(Drawing(title[0].upper() + title[1:], chart, wide=True))
    lead = f"Each model against {base}, users paired one by one: an axis of its own for each metric."
    if len(values) > 1:
        lead += f" {study.comparison.headline} decides, the other metrics are secondary."
    deciding = [row for row in study.comparison if row.family == "headline"]
    notes = [
        *map(str, study.comparison.table.notes),
        *merged(note for row in deciding for note in row.notes),
    ]
    return Section(lead, [], pictures, notes=notes, more_tables=comparisons(study))


@section(
    "curves", "By cut-off", order=30, short="Cut-offs",
    needs="a metric at several cut-offs, such as ndcg@5, ndcg@10 and ndcg@20, "
    f"or {_LISTS} and {given_by('truth')}",
)  # fmt: skip
def _curves(study: Study) -> Section | None:
    curves = section_numbers.curves(study)
    if not curves:
        return None
    drawn = dict(list(curves.items())[:_MOST_PANELS])
    numbers = [table_by_model(f"curve-{f}", f"{f} at each cut-off", values) for f, values in drawn.items()]
    chart = charts.cutoffs(drawn, baseline=study.baseline, order=study.names)
    picture = Drawing("Metrics by cut-off", chart, numbers, wide=True)
    return Section("How the metrics grow with the length of the list.", [], [picture])


@section(
    "tradeoff", "Accuracy and coverage", order=40, short="Coverage",
    needs=f"a coverage metric, or {_LISTS}",
)  # fmt: skip
def _tradeoff(study: Study) -> Section | str | None:
    coverage = section_numbers.coverage(study)
    if coverage is None:
        return None
    name, values = coverage
    points = {n: (values[n], study.value(n, study.headline)) for n in study.names}
    if study.is_beyond_accuracy(study.headline) or not np.isfinite(list(points.values())).all():
        return "a metric of accuracy with a value"
    chart = charts.tradeoff(points, x=name, y=study.headline, baseline=study.baseline, order=study.names)
    rows = [(n, *point) for n, point in points.items()]
    table = table_of_rows("tradeoff", "Accuracy and coverage", ("model", name, study.headline), rows)
    better = "Lower" if study.lower_is_better(study.headline) else "Higher"
    lead = "Coverage is the share of the catalogue that anyone is recommended. "
    lead += f"{better} is more accurate, further right shows more of the catalogue."
    return Section(lead, [], [Drawing(f"{study.headline} and {name}", chart, [table])])


@section(
    "distribution", "Across users", order=50, short="Spread",
    needs="a headline metric with a value for each user",
)  # fmt: skip
def _distribution(study: Study) -> Section | None:
    if study.headline not in study.per_case_metrics:
        return None
    spread = section_numbers.spread(study)
    columns = {"model": list(spread)} | {
        q: [row[q] for row in spread.values()] for q in next(iter(spread.values()))
    }
    table = html_table("distribution", f"{study.headline} across users", columns)
    shares = section_numbers.hit_shares(study)
    if shares is None:
        halves = {n: {"0": row["share at 0"], "more": 1 - row["share at 0"]} for n, row in spread.items()}
        best, other = study.best, study.names[-1]
        lead = f"{spread[best]['share at 0']:.0%} of the users have a {study.headline} of 0 with {best}"
        lead += f", {spread[other]['share at 0']:.0%} with {other}." if other != best else "."
        picture = Drawing(f"Users by their {study.headline}", charts.headtail(halves), [table])
        return Section(lead, [], [picture])
    k = study.requests[study.headline].k or 10
    none, places = f"{shares[study.best][0]:.0%} of the users", f"the first {k} places"
    lead = f"{none} find nothing relevant in {places} of {study.best}"
    lead += f", {shares[study.rival][0]:.0%} in those of {study.rival}." if study.rival is not None else "."
    kinds = ("no hit", "1 hit", "2+ hits")
    by_model = {n: dict(zip(kinds, row, strict=True)) for n, row in shares.items()}
    title = f"Users with 0, 1 and 2 or more relevant items in the first {k} places"
    picture = Drawing(title, charts.hits(shares, k=k), [table_by_model("hits", title, by_model)])
    return Section(lead, [], [picture], more_tables=[table])


@section(
    "strata", "Groups of users", order=60, short="Groups",
    needs=f"{given_by('train')} or {given_by('truth')}, or evaluations made with by=",
)  # fmt: skip
def _strata(study: Study) -> Section | None:
    strata = study.strata
    if not strata:
        return None
    pictures = []
    for stratum in strata:
        values, sizes = stratum.values, stratum.sizes
        chart = charts.strata(
            values, metric=study.headline, sizes=sizes, title=stratum.title, baseline=study.baseline,
            order=study.names,
        )  # fmt: skip
        table = table_by_model(f"strata-{stratum.name.replace(' ', '-')}", stratum.caption, values, sizes)
        pictures.append(Drawing(f"By {stratum.name}", chart, [table]))
    notes = []
    measured = section_numbers.measured_cases(study, study.headline)
    if not measured.all():
        n, all_cases = int((~measured).sum()), plural(len(measured), study.case_noun)
        have = "no relevant items" if n == study.first(study.best).counts.get("without_truth") else "no value"
        notes.append(f"{n:,} of {all_cases} have {have}: they are in no mean and in no count here.")
    if study.history is not None:
        users = Ids(np.unique(study.users))
        cold = int((count_entries(study.history, users) == 0).sum())
        notes.append(f"{cold:,} of {len(users):,} users have no history in training (cold).")
        if study.truth is not None:
            counts = section_numbers.popularity(study.history, study.truth.items)[study.truth.codes]
            n_cold, n = int((counts == 0).sum()), len(counts)
            notes.append(
                f"{n_cold:,} of {n:,} relevant entries are of items that never occur in training "
                "(cold items)."
            )
    lead = "Who is served well, and who is not; each interval is of one value, none of a difference of two."
    return Section(lead, [], pictures, notes)


@section(
    "headtail", "Popular and rare items", order=70, short="Tail",
    needs=f"{given_by('train')} and {_LISTS}",
)  # fmt: skip
def _head_tail(study: Study) -> Section | None:
    head_and_tail = section_numbers.head_and_tail(study)
    if head_and_tail is None:
        return None
    shares, found = head_and_tail
    k = study.requests[study.headline].k or 10
    pictures = [
        Drawing(f"Who gets the first {k} places", charts.headtail(shares),
                [table_by_model("head-tail", "Share of places", shares, first="of")])
    ]  # fmt: skip
    if found:
        table = table_by_model("head-tail-found", "Relevant items found", found)
        chart = charts.bars(found, baseline=study.baseline, title="share found", order=study.names)
        pictures.append(Drawing(f"Share of relevant items found in the first {k} places", chart, [table]))
    lead = (
        "The head is the most popular fifth of the items in training, cut between two levels of popularity; "
        "the tail is all others. Shares are of all places and of all relevant items, not means over users."
    )
    return Section(lead, [], pictures)


@section("winloss", "Wins and losses", order=80, short="Wins", needs="a second model to compare with")
def _duels(study: Study) -> Section | None:
    base, best = study.reference, study.best
    if base is None or study.comparison is None or study.headline not in study.per_case_metrics:
        return None
    rows = {n: study.rows.get((n, base, study.headline)) for n in study.names if n != base}
    counts = {n: (r.wins, r.ties, r.losses) for n, r in rows.items() if r is not None}
    lines = [(model, *outcomes) for model, outcomes in counts.items()]
    title = f"Users won and lost on {study.headline}"
    table = table_of_rows("wins", title, ("model", "won", "tied", "lost"), lines)
    pictures = [
        Drawing(f"Users won, tied and lost against {base}", charts.winloss(counts, baseline=base), [table])
    ]
    for other in dict.fromkeys([study.names[1], study.rival or study.names[1]]):
        gaps = study.aligned.differences(best, other, study.headline)
        chart = charts.sorted_differences(
            gaps, names=(other, best), metric=study.headline, lower=study.lower_is_better(study.headline)
        )
        word = "the next best" if other == study.names[1] else "the baseline"
        pictures.append(Drawing(f"{best} against {other}, {word}: users sorted by their difference", chart))
    lead = f"A mean is made of users: how many {best} wins, and how many pay for it."
    return Section(lead, [], pictures)


@section(
    "users", "Single users", order=90, short="Users", needs="a headline metric with a value for each user"
)
def _failures(study: Study) -> Section | None:
    if study.headline not in study.per_case_metrics:
        return None
    worst = example_users.failures(study)
    base = study.rival
    columns: dict[str, list[Any]] = {"user": [w["user"] for w in worst]}
    columns[study.best] = [w["value"] for w in worst]
    if base is not None:
        columns[base] = [w["base"] for w in worst]
    if study.history is not None:
        columns["history"] = [w["n_had"] for w in worst]
    if study.truth is not None:
        columns |= {
            "relevant": [w["n_wanted"] for w in worst],
            "wanted": ["; ".join(w["wanted"]) for w in worst],
        }
    if study.best in study.lists:
        columns[f"{study.best} began with"] = ["; ".join(w["shown"]) for w in worst]
    title = f"Where {study.best} loses most against {base}" if base else f"Where {study.best} does worst"
    lead = f"Failure cases of {study.best} on {study.headline}, and a closer look at single users."
    failures = [html_table("failures", title, columns)] if worst else []
    return Section(lead, failures, users=example_users.inspector_users(study))


@section("map", "Map of items", order=100, short="Map", needs=given_by("embeddings"))
def _map(study: Study) -> Section | str | None:
    if study.embeddings is None:
        return None
    try:
        ids, places, n_items = section_numbers.coordinates_of(study.embeddings, study.items, MOST_ITEMS)
    except MissingExtraError as error:
        return f"{error.package!r} ({error.hint})"
    lead = "Items that are near each other have similar embeddings."
    sizes = None
    lists = study.lists.get(study.best)
    if lists is not None:
        counts = np.bincount(lists.codes, minlength=len(lists.items))
        by_id = {lists.items.name(code): int(n) for code, n in enumerate(counts.tolist()) if n}
        sizes = np.sqrt(np.array([float(by_id.get(i, 0)) for i in ids])).tolist()
        lead += f" Larger marks are recommended more often by {study.best}."
    groups = None
    if any(study.items.groups.get(i) for i in ids):
        own = [study.items.groups.get(i, "") for i in ids]
        labels, counts = np.unique(np.array(own, dtype=object).astype(str), return_counts=True)
        frequent = set(labels[np.argsort(-counts, kind="stable")][:_MOST_GROUPS].tolist())
        groups = [(g or "(none)") if g in frequent else "(other)" for g in own]
    titles = [example_users.short(study.items.title(i)) for i in ids]
    chart = charts.embedding(places, labels=titles, groups=groups, sizes=sizes)
    notes = [f"{len(ids):,} of {n_items:,} items are drawn."] if len(ids) < n_items else []
    return Section(lead, [], [Drawing("Items by embedding", chart, wide=True)], notes)


@section(
    "history", "Over time", order=110, short="Time",
    needs=f"{given_by('history')}, a folder of results kept by recsys run",
)  # fmt: skip
def _history(study: Study) -> Section | None:
    if not study.over_time:
        return None
    pictures, notes = [], []
    for metric, history in list(study.over_time.items())[:3]:
        chart = charts.history(
            history.by_model,
            metric=metric,
            changes=history.changes,
            baseline=study.baseline,
            order=study.names,
        )
        table = html_table(f"history-{metric}", metric, history.columns)
        pictures.append(Drawing(f"{metric} over time", chart, [table]))
        notes += history.notes
    lead = f"Dashed lines mark a change of level beyond the noise; to tell one takes {MIN_NIGHTS} nights."
    return Section(lead, [], pictures, notes=notes)


@section("audit", "Audit", order=120, needs=f"{given_by('audit')}: what recsys audit found")
def _audit(study: Study) -> Section | None:
    if not study.audited:
        return None
    return Section("What was checked about the data and the protocol.", findings=study.audited)


@section("conventions", "Conventions", order=200)
def _conventions(study: Study) -> Section:
    """Every decision, its value and what it means; those that differ from the default are marked."""
    conventions, default = study.first(study.names[0]).conventions, Conventions()
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
    table = html_table("conventions", f"Conventions: {conventions}", columns)
    return Section(lead, more_tables=[table], printed=True)


@section("methods", "Methods for a paper", order=205, short="Methods")
def _methods(study: Study) -> Section:
    """A methods paragraph and its references, to be copied."""
    made = methods_paragraph(study.comparison or study.first(study.names[0]), **study.facts)
    lead = "How these numbers were made, to be copied; TO ADD marks what the results do not know."
    return Section(lead, texts={"Methods paragraph": str(made), "BibTeX": made.bibtex})


@section("provenance", "Provenance", order=210)
def _provenance(study: Study) -> Section:
    """Where and when each model was evaluated, what was counted, and how tables were read."""
    models = {name: study.first(name) for name in study.names}
    count_names = list(dict.fromkeys(c for e in models.values() for c in e.counts))
    counts: dict[str, list[Any]] = {"model": list(models)}
    counts |= {c.replace("_", " "): [int(e.counts.get(c, 0)) for e in models.values()] for c in count_names}
    documents = {name: json.loads(e.to_json()) for name, e in models.items()}
    facts = [("sha256 of the result", name, d["sha256"]) for name, d in documents.items()]
    facts += [("runs", n, str(len(runs))) for n, runs in study.runs.items() if len(runs) > 1]
    # A result from a file says where and when it was made; one of this session was made here and now.
    here = run_facts()
    for name, evaluation in models.items():
        facts += [(k, name, _text_or_none(v)) for k, v in (evaluation.run or here).items()]
    notes = []
    for name, evaluation in models.items():
        known = {**evaluation.notes, "question": documents[name]["result"].get("question", {})}
        notes += [(f"{table}: {note}", name, value) for table, note, value in _flatten_notes(known)]
    more_tables = [html_table("counts", "What was counted", counts)]
    if notes:
        more_tables.append(_facts_table("read", "How the tables were read", notes))
    # What a reader must know to trust the numbers; a line that holds for some models names them.
    models_by_line: dict[str, list[str]] = {}
    for name, evaluation in models.items():
        for line in footnotes_of(evaluation.counts, evaluation.conventions, evaluation.facts)[:-1]:
            models_by_line.setdefault(line, []).append(name)
    footnotes = [
        line if len(names) == len(models) else f"{', '.join(names)}: {line}"
        for line, names in models_by_line.items()
    ]
    return Section(
        "The same inputs under the same conventions give a result with the same fingerprint, on any machine.",
        notes=footnotes,
        more_tables=[_facts_table("runs", "Result, versions and machine", facts), *more_tables],
        printed=True,
    )


def _flatten_notes(notes: Mapping[str, Any], parent: str = "") -> list[tuple[str, str, str]]:
    """Return (path of the parents, name, value) of every note that is not empty."""
    rows = []
    for name, value in notes.items():
        if isinstance(value, Mapping):
            rows += _flatten_notes(value, f"{parent} {name}".strip())
        elif value not in (None, "", ()):
            text = ", ".join(value) if isinstance(value, tuple) else str(value)
            rows.append((parent, str(name).replace("_", " "), text))
    return rows


def _facts_table(name: str, title: str, facts: Sequence[tuple[str, str, str]]) -> HtmlTable:
    """Return (fact, model, value) as a table; models that share a value share a row."""
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
