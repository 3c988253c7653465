"""A study: results, what they are compared by, and whatever else is known of how they came about.

Only results are required. Lists, truth, training data, facts about items, an audit and stored results over
time open further sections of the page, which names those that are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from recsys.comparison.compare import Comparison, compare
from recsys.comparison.history import ResultHistory
from recsys.conventions.decisions import relevant
from recsys.display.cells import Columns
from recsys.errors import InputError, RecsysError, UnknownNameError, came_as, check_choice, hush
from recsys.evaluation.cautions import comparison_cautions, unique_cautions
from recsys.evaluation.results import Evaluation, Reported
from recsys.evaluation.uncertainty import needs_jackknife
from recsys.inputs import read_interactions, read_lists
from recsys.inputs.frames import as_frame, detect_columns
from recsys.inputs.timestamps import to_seconds
from recsys.metrics.attributes import read_table
from recsys.metrics.registry import Request
from recsys.records.arrays import Array, Float, Interactions, Lists, PerCase, cached_property
from recsys.records.facts import Caution, Kind, Verdict
from recsys.report import style
from recsys.report.decision import Decision, decide
from recsys.report.section_numbers import (
    GroupRow,
    GroupValues,
    Triple,
    compare_in_groups,
    find_strata,
    value_with_interval,
)
from recsys.stats.comparison_table import Row
from recsys.stats.pairing import Aligned, align
from recsys.stats.runs import merge_runs, run_layout

_TITLE_COLUMNS = ("title", "name", "label", "product_name", "item_name", "value", "text")
_GROUP_COLUMNS = ("category", "categories", "genre", "genres", "brand", "group", "type", "class")
_SEVERITIES = ("error", "warning", "note", "info", "ok")
_MAX_EXAMPLES = 5
_RANDOM_SPLITS = ("random_ratio", "per_user_ratio")
_SAMPLED = (
    "Sampled metrics: relevant items competed with a sample of the catalogue, not with all of it. Such "
    "values are too high, and can put models in another order than the full ranking does."
)
Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class ItemNames:
    """Titles and groups by item id, and the ids in the order they came."""

    ids: tuple[Any, ...] = ()
    titles: Mapping[Any, str] = field(default_factory=dict)
    groups: Mapping[Any, str] = field(default_factory=dict)

    def title(self, item: Any) -> str:
        """Return the title of an item, or its id where it has none."""
        return self.titles.get(item) or str(item)


class MetricHistory(NamedTuple):
    """One metric over time: (time, value) by model, the times of changes, the rows as columns, and notes."""

    by_model: dict[str, list[tuple[str, Any]]]
    changes: list[str]
    columns: dict[str, list[Any]]
    notes: list[str]


class _WhenAsked(dict[Key, Value]):
    """Values that are found when they are first asked for."""

    def __init__(self, find: Callable[[Key], Value]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, key: Key) -> Value:
        value = self[key] = self._find(key)
        return value


@dataclass(frozen=True, eq=False, repr=False)
class Study(Reported):
    """Evaluations by model, best first, their comparison, and what else a report shows.

    It is made once and does not change; whatever follows from it is found once. Terminal, JSON, notebook,
    page and pictures show the same study.

    Attributes:
        runs: {model: evaluations on the same truth}, best first.
        baseline: the model that the others are held against.
        headline: the metric that decides.
        compared: the comparison as it was given; see `comparison`.
        lists: {model: its lists}.
        test: what was to be found, as it was judged; see `truth`.
        history: what the models learnt from.
        items: titles and groups of items.
        embeddings: of the items, for their map.
        audited: what the audit found, as the page shows it.
        over_time: {metric: its values in earlier results}.
        facts: what the methods paragraph says besides the results.
    """

    runs: Mapping[str, list[Evaluation]]
    baseline: str | None
    headline: str
    compared: Comparison | None = None
    lists: Mapping[str, Lists] = field(default_factory=dict)
    test: Interactions | None = None
    history: Interactions | None = None
    items: ItemNames = field(default_factory=ItemNames)
    embeddings: Any = None
    audited: Sequence[Mapping[str, Any]] = ()
    over_time: Mapping[str, MetricHistory] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, study: Study, **more: Any) -> Self:
        """Return a study of this kind: what the other holds, and `more`."""
        return cls(**{one.name: getattr(study, one.name) for one in fields(Study)}, **more)

    @property
    def _results(self) -> Comparison | Evaluation:
        return self.comparison or self.first(self.best)

    def _report_inputs(self) -> dict[str, Any]:
        return {"results": self}

    def _columns(self) -> Columns:
        values = {metric: [self.value(name, metric) for name in self.names] for metric in self.metrics}
        return {"model": self.names, **values}

    def _footnotes(self) -> Sequence[object]:
        return [*self.cautions, *self.sampling]

    @property
    def names(self) -> list[str]:
        return list(self.runs)

    @property
    def evaluations(self) -> dict[str, Evaluation]:
        """{model: its first evaluation}, best first."""
        return {name: runs[0] for name, runs in self.runs.items()}

    @cached_property
    def truth(self) -> Interactions | None:
        """The entries of `test` that are relevant under the conventions of the results."""
        test = self.test
        if test is None:
            return None
        grades = np.ones(len(test.codes)) if test.grades is None else test.grades
        mask = relevant(grades, self.first(self.names[0]).conventions.relevant_from)
        return test if mask.all() else test.kept(mask)

    @cached_property
    def moments(self) -> Float | None:
        """The time of each entry of `history` in seconds; None where times are missing or unreadable."""
        if self.history is None or self.history.times is None:
            return None
        try:
            return to_seconds(self.history.times)
        except RecsysError:  # histories then have no order; recsys.audit names the fault
            return None

    @property
    def is_random_split(self) -> bool:
        """Whether the test was drawn, as far as it is known how the data was split."""
        split = self.facts.get("split")
        facts = split if isinstance(split, Mapping) else getattr(split, "manifest", {})
        options = facts.get("parameters", {})
        drawn = "random" in (options.get("which"), options.get("by"))
        return drawn or facts.get("how") in _RANDOM_SPLITS

    @property
    def best(self) -> str:
        """The model with the best headline metric; the baseline is a model like all others."""
        return self.names[0]

    @property
    def rival(self) -> str | None:
        """Whom the best is held against: the baseline, or the next best where the baseline is the best."""
        if len(self.runs) == 1:
            return None
        return self.names[1] if self.baseline in (None, self.best) else self.baseline

    @property
    def nothing_found(self) -> bool:
        """Whether the headline metric is of finding relevant items, and no model found any."""
        metric = self.requests[self.headline].metric
        finds = metric.population == "relevant" and metric.better == "higher" and metric.bounds[0] == 0.0
        return finds and all(not self.value(n, self.headline) > 0 for n in self.names)

    @cached_property
    def _comparisons(self) -> list[Comparison]:
        if self.nothing_found or len(self.runs) < 2:
            return [] if self.compared is None else [self.compared]
        with hush(Warning):
            made = _compare_models(self.runs, self.compared, self.baseline, self.headline)
            if made is None or _holds(made, self.best) or self.headline not in _metrics_of(made):
                return [] if made is None else [made]
            second = made.decided_by(self.headline)
            # The best of the means may be another than that of the values the results state.
            return [made, second if _holds(second, self.best) else made.pairs("holm")]

    @property
    def comparison(self) -> Comparison | None:
        """Each model against the baseline, or the best against each other, on all metrics that allow it.

        None for a single model, and where nothing was found and none was given.
        """
        return next(iter(self._comparisons), None)

    @cached_property
    def rows(self) -> dict[tuple[str, str, str], Row]:
        """Rows by (model, baseline, metric), each pair in both directions.

        They are those of the comparison, and where it does not hold the best against each other, of another
        family that does: which model is best is a second question.
        """
        found: dict[tuple[str, str, str], Row] = {}
        for comparison in reversed(self._comparisons):
            found |= {(row.model, row.baseline, row.metric): row for row in comparison.rows}
            found |= {(r.baseline, r.model, r.metric): turned_row(r) for r in comparison.rows}
        return found

    @cached_property
    def cautions(self) -> tuple[Caution, ...]:
        """Where the numbers may answer another question than was meant, as results and comparison say."""
        if len(self.runs) > 1:
            silenced = frozenset[str]() if self.compared is None else self.compared.silenced
            return tuple(comparison_cautions(self.runs, self.metrics, silenced))
        return tuple(unique_cautions(run.cautions for runs in self.runs.values() for run in runs))

    @cached_property
    def sampling(self) -> list[str]:
        """A warning where candidates were sampled: such numbers are not those of the full catalogue."""
        facts = [self.first(name).facts for name in self.names]
        reasons = [one.sampled for one in facts if one.sampled is not None]
        reasons += [
            f"The audit says so: {f['name']}."
            for f in self.audited
            if "sampled" in f["name"].lower() and f["severity"] != "ok"
        ]
        return [_SAMPLED, *dict.fromkeys(reasons)] if reasons else []

    @cached_property
    def decision(self) -> Decision:
        """What to ship, what it gains, what it costs and what would change it."""
        return decide(self, len(self.cautions) + len(self.sampling))

    @cached_property
    def intervals(self) -> Mapping[tuple[str, str], Triple]:
        """{(model, metric): the value and the ends of its 95% interval}, NaN where there is none."""
        return _WhenAsked(lambda key: value_with_interval(self, *key))

    @cached_property
    def strata(self) -> list[GroupValues]:
        """The headline metric by each kind of group that is known of the users."""
        return list(find_strata(self))

    @cached_property
    def group_rows(self) -> Mapping[str, Mapping[tuple[str, str, str], GroupRow]]:
        """{baseline: each model against it within each group}, by (model, stratum, group)."""
        return _WhenAsked(lambda baseline: compare_in_groups(self, baseline))

    @property
    def reference(self) -> str | None:
        """The model that all others are compared with: the baseline, or without one the best."""
        made, candidates = self.comparison, (self.baseline, *self.names)
        return next((n for n in candidates if made is not None and n is not None and _holds(made, n)), None)

    def ranked(self, metric: str) -> list[str]:
        """Return the models by a metric, best first and those without a value last; equals in their order."""
        return sorted(self.names, key=lambda n: self.merit(self.value(n, metric), metric), reverse=True)

    def merit(self, value: float, metric: str) -> float:
        """Return a value turned so that more is better; least where there is none."""
        better = self.requests[metric].metric.better
        turned = value if better == "higher" else -value if better == "lower" else -abs(value)
        return -math.inf if math.isnan(value) else turned

    @property
    def ties_with_best(self) -> list[str]:
        """The models that no test separates from the best on the headline, without the best itself."""
        rows = {n: self.rows.get((n, self.best, self.headline)) for n in self.names[1:]}
        return [n for n, row in rows.items() if row is not None and row.verdict.kind != "worse"]

    def is_beyond_accuracy(self, metric: str) -> bool:
        """Return whether a metric is of the items shown, relevant or not.

        A higher value is not better in itself.
        """
        return self.requests[metric].metric.population == "listed"

    def first(self, name: str) -> Evaluation:
        """Return the first run of a model; conventions, counts and requests are the same in all runs."""
        return self.runs[name][0]

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics all models were evaluated with, in the order of the first."""
        evaluations = [e for runs in self.runs.values() for e in runs]
        return [m for m in evaluations[0] if all(m in e for e in evaluations)]

    @cached_property
    def requests(self) -> dict[str, Request]:
        return {str(r): r for r in self.first(self.names[0]).requests}

    def lower_is_better(self, metric: str) -> bool:
        return self.requests[metric].metric.better == "lower"

    def sign(self, metric: str) -> float:
        """Return the factor that makes more better: -1 where less is better, else 1."""
        return -1.0 if self.lower_is_better(metric) else 1.0

    def value(self, name: str, metric: str) -> float:
        """Return the overall value, averaged over runs."""
        return float(np.mean([e[metric] for e in self.runs[name]]))

    @cached_property
    def per_case_metrics(self) -> list[str]:
        """Metrics with a value for each user; the others are of the whole catalogue."""
        evaluations = [e for runs in self.runs.values() for e in runs]
        return [m for m in self.metrics if all(_has_cases(e, m) for e in evaluations)]

    @cached_property
    def per_case(self) -> Mapping[str, PerCase]:
        """One table per model, averaged over its runs."""
        tables_by_model = {name: [e.per_case for e in runs] for name, runs in self.runs.items()}
        layout = run_layout(tables_by_model, "auto")
        return {
            name: merge_runs(tables, layout, self.per_case_metrics)
            for name, tables in tables_by_model.items()
        }

    @cached_property
    def aligned(self) -> Aligned:
        """All models over the same cases, NaN where a model has no value."""
        return align(dict(self.per_case), self.per_case_metrics)

    @property
    def case_noun(self) -> str:
        """What a case is called: a user, unless users have several."""
        has_users = not self.per_case_metrics or self.aligned.clusters is None
        return "user" if has_users else "case"

    @cached_property
    def users(self) -> Array:
        """The user of each case of `aligned`."""
        users = self.aligned.ids if self.aligned.clusters is None else self.aligned.clusters
        return users.astype(object) if users.dtype.kind in "US" else users


def make_study(
    results: Any,
    *,
    baseline: str | None = None,
    headline: str | None = None,
    lists: Any = None,
    truth: Any = None,
    train: Any = None,
    items: Any = None,
    embeddings: Any = None,
    audit: Any = None,
    history: Any = None,
    methods: Mapping[str, Any] | None = None,
) -> Study:
    """Read and check what a report is made of; the arguments are those of write_report.

    A study stays as it is, but for what else is given.
    """
    if not isinstance(results, Study):
        study = _study_of(results, baseline, headline)
    elif baseline is None and headline is None:
        study = results
    else:
        of_all = results.compared or results.runs
        again = _study_of(of_all, baseline or results.baseline, headline or results.headline)
        study = replace(results, runs=again.runs, baseline=again.baseline, headline=again.headline)
    read: dict[str, Any] = {
        "lists": None if lists is None else _read_model_lists(lists, study.names),
        "test": None if truth is None else read_interactions(truth, table="truth"),
        "history": None if train is None else read_interactions(train, table="train"),
        "items": None if items is None else _read_item_names(items),
        "embeddings": embeddings,
        "audited": None if audit is None else findings_of(audit),
        "over_time": None if history is None else history_by_metric(history),
        "facts": methods,
    }
    read = {name: value for name, value in read.items() if value is not None}
    return replace(study, **read) if read else study


def _study_of(results: Any, baseline: str | None, headline: str | None) -> Study:
    """Return the results alone, best first."""
    runs, comparison = _read_results(results)
    base = _choose_baseline(runs, baseline, comparison)
    shared = [m for m in next(iter(runs.values()))[0] if all(m in e for s in runs.values() for e in s)]
    if not shared:
        raise InputError("the models share no metric.", hint="Evaluate all models with the same metrics.")
    study = Study(runs, base, _choose_metric(runs, shared, headline, comparison), comparison)
    return replace(study, runs={name: runs[name] for name in study.ranked(study.headline)})


def _read_results(results: Any) -> tuple[dict[str, list[Evaluation]], Comparison | None]:
    if isinstance(results, Comparison):
        if not results.evaluations:
            raise InputError(
                "this comparison does not hold the evaluations it was made from.",
                hint="Make it with recsys.compare, or pass {name: evaluation}.",
            )
        by_name = {str(n): list(runs) for n, runs in results.evaluations.items()}
        rows = tuple(replace(r, model=str(r.model), baseline=str(r.baseline)) for r in results.rows)
        return by_name, Comparison(replace(results.table, rows=rows), by_name, silenced=results.silenced)
    if isinstance(results, Evaluation):
        return {results.name or "model": [results]}, None
    if isinstance(results, Mapping):
        named = {str(n): list(e) if isinstance(e, list | tuple) else [e] for n, e in results.items()}
    elif isinstance(results, Sequence) and not isinstance(results, str | bytes):
        named = {getattr(e, "name", None) or f"model {i}": [e] for i, e in enumerate(results, 1)}
        if len(named) < len(results):
            named = {f"model {i}": [e] for i, e in enumerate(results, 1)}
    else:
        raise InputError(
            f"a report is made of evaluations, not of {type(results).__name__}.",
            hint="Pass an evaluation, {name: evaluation} or a comparison.",
        )
    if not named:
        raise InputError("there is nothing to report: no evaluation was given.")
    for name, runs in named.items():
        for run in runs or [None]:
            if not isinstance(run, Evaluation):
                raise InputError(
                    f"{name!r} is {type(run).__name__}.", hint="Pass what recsys.evaluate returned."
                )
    return named, None


def _choose_baseline(
    models: Mapping[str, Any], requested: str | None, comparison: Comparison | None
) -> str | None:
    """Return the requested one, that of the comparison, or the first of two models."""
    if requested is not None:
        if requested not in models:
            raise UnknownNameError("baseline", requested, models)
        return requested if len(models) > 1 else None
    bases = {row.baseline for row in comparison or ()} or set([*models][:1] if len(models) == 2 else ())
    return next(iter(bases)) if len(bases) == 1 else None


def _compare_models(
    models: Mapping[str, list[Evaluation]], given: Comparison | None, baseline: str | None, headline: str
) -> Comparison | None:
    """Return the comparison as it was given if it holds headline and baseline; else one of all metrics."""
    if given is not None and headline in _metrics_of(given):
        fits = baseline is None or _holds(given, baseline) or _holds(given, next(iter(models)))
        return given if fits and given.headline == headline else given.decided_by(headline, baseline)
    evaluations = [e for runs in models.values() for e in runs]
    # Metrics without any value, and those marked as unpaired, are not compared.
    requests = [r for r in evaluations[0].requests if not r.metric.unpaired]
    metrics = [
        m
        for m, is_of_catalogue in ((str(r), needs_jackknife(r)) for r in requests)
        if all(m in e and (is_of_catalogue or _has_cases(e, m)) for e in evaluations)
    ]
    if not metrics:
        return None
    silenced = frozenset[str]() if given is None else given.silenced
    chosen = headline if headline in metrics else None
    return compare(dict(models), baseline, metrics, headline=chosen, cautions=silenced)


def _metrics_of(comparison: Comparison) -> set[str]:
    return {row.metric for row in comparison.rows}


def _holds(comparison: Comparison, name: str) -> bool:
    """Return whether a model is compared with each other."""
    pairs = {frozenset({row.model, row.baseline}) for row in comparison.rows}
    return all(frozenset({name, other}) in pairs for other in comparison.evaluations if other != name)


def turned_row(row: Row) -> Row:
    """Return the same comparison seen from its baseline: the same test, and the intervals of the inverse.

    An interval of the ratio of two means is one of its inverse, turned over: Fieller's exactly so.
    """
    # That a model is not worse than another says nothing of the other.
    kinds: dict[Kind, Kind] = {"better": "worse", "worse": "better", "no_worse": "no_difference"}
    kind = row.verdict.kind
    lift, lifts = _inverse(row.relative), row.relative_interval
    return replace(
        row,
        model=row.baseline,
        baseline=row.model,
        value=row.baseline_value,
        baseline_value=row.value,
        found=row.found.negative,
        interval=row.interval.negative,
        relative=lift if math.isfinite(lift) else math.nan,
        relative_interval=replace(lifts, low=_inverse(lifts.high), high=_inverse(lifts.low)),
        effect=replace(row.effect, value=-row.effect.value),
        wins=row.losses,
        losses=row.wins,
        verdict=Verdict(kinds.get(kind, kind), row.metric),
    )


def _inverse(lift: float) -> float:
    return 1.0 / (1.0 + lift) - 1.0 if lift > -1.0 else math.inf


def _has_cases(evaluation: Evaluation, metric: str) -> bool:
    """Return whether any case has a value of the metric."""
    column = evaluation.per_case.columns.get(metric)
    return column is not None and bool((~np.isnan(column)).any())


def _choose_metric(
    models: Mapping[str, list[Evaluation]],
    shared: Sequence[str],
    requested: str | None,
    comparison: Comparison | None,
) -> str:
    """Return the headline metric.

    It is the requested one, else that of the comparison, else the first with a value.
    """
    if requested is not None:
        name = str(Request.parse(requested))
        if name not in shared:
            raise UnknownNameError("metric", requested, shared, hint="Evaluate all models with it.")
        return name
    if comparison is not None and comparison.headline in shared:
        return comparison.headline
    evaluations = [e for runs in models.values() for e in runs]
    paired = {str(r) for r in evaluations[0].requests if not r.metric.unpaired}
    known = (m for m in shared if m in paired and any(math.isfinite(e[m]) for e in evaluations))
    return next(known, shared[0])


def _read_model_lists(lists: Any, names: Sequence[str]) -> dict[str, Lists]:
    """Return {model: lists}; a single model may have its lists passed without its name."""
    if isinstance(lists, Mapping) and lists and set(lists) <= set(names):
        lists_by_model = dict(lists)
    elif len(names) == 1:
        lists_by_model = {names[0]: lists}
    else:
        unknown = set(lists) - set(names) if isinstance(lists, Mapping) else {type(lists).__name__}
        raise InputError(
            f"lists= must be {{model: lists}} by the names {', '.join(names)}; "
            f"{next(iter(unknown), None)!r} is not one of them.",
            table="lists",
        )
    return {name: read_lists(data) for name, data in lists_by_model.items()}


def _read_item_names(items: Any) -> ItemNames:
    """Return titles and groups of {item: title}, or of a table with item and title (and category) columns."""
    table = read_table(items, table="items")
    lower = {name.lower(): name for name in table.columns}
    texts: list[dict[Any, str]] = []
    for known in (_TITLE_COLUMNS, _GROUP_COLUMNS):
        name = next((lower[n] for n in known if n in lower), None)
        values = [] if name is None else table.columns[name].tolist()
        coded = zip(range(len(table.ids)), values, strict=False)
        known_as = {table.ids.name(code): str(v) for code, v in coded if v not in ("", None) and v == v}  # noqa: PLR0124
        texts.append(known_as | {int(n): v for n, v in known_as.items() if str(n).isdecimal()})
    titles, groups = texts
    # The ids stay in the order of the table: an array of embeddings follows it.
    frame = None if isinstance(items, Mapping) else as_frame(items)
    if frame is None:
        ids = tuple(table.ids.name(code) for code in range(len(table.ids)))
    else:
        roles = detect_columns(list(frame.columns), ("item",), None, "items")
        column = frame[roles["item"]].to_list() if "item" in roles else table.ids.values.tolist()
        ids = tuple(i.item() if isinstance(i, np.generic) else i for i in column)
    return ItemNames(ids, titles, {item: group.split("|")[0] for item, group in groups.items()})


def findings_of(audit: Any) -> list[dict[str, Any]]:
    """Return the findings of an audit as the page shows them, most severe first.

    Args:
        audit: an Audit or its dictionary, or a sequence of Finding objects or of dictionaries with name,
            severity, count, message, examples and todo.

    Raises:
        InputError: it is something else.
        UnknownNameError: a severity is not error, warning, note, info or ok.
    """
    findings = audit.get("findings") if isinstance(audit, Mapping) else audit
    if isinstance(findings, str) or not isinstance(findings, Sequence):
        raise came_as("audit", audit, hint="Pass what recsys.audit returned.")
    rows = []
    for finding in findings:
        fields = finding if isinstance(finding, Mapping) else getattr(finding, "__dict__", None)
        if not isinstance(fields, Mapping):
            raise came_as("a finding", finding, hint="Expected name, severity, count, todo.")
        severity = fields.get("severity", "note")
        check_choice("severity", severity, _SEVERITIES)
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
    """Return {metric: its values over time}.

    Args:
        history: a ResultHistory, or a table or a sequence of rows with time and value; metric, model, low,
            high and change (whether a new level begins here) are optional. The names `finished` and `name`
            that ResultHistory.to_frame gives to time and model are understood.

    Raises:
        InputError: it is something else, or a row lacks a time or a number.
    """
    frame = None if isinstance(history, ResultHistory) else as_frame(history)
    notes: dict[str, list[str]] = {}
    if isinstance(history, ResultHistory):
        starts = {(night.path, key) for key, changes in history.changes().items() for night, _ in changes}
        records = [
            vars(night) | {"change": (night.path, (night.name, night.metric)) in starts}
            for night in history.nights
        ]
        for metric in {night.metric for night in history}:
            notes[metric] = ResultHistory([night for night in history if night.metric == metric]).notes()
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
        histories[metric] = MetricHistory(by_model, changes, columns, notes.get(metric, []))
    return histories


def _history_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return one row of the table on the page: when, model, value, low, high, change."""
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
        "when": style.iso_time(when),
        "model": str(record.get("model") or record.get("name") or "model"),
        **numbers,
        "change": "new level" if record.get("change") else "",
    }
