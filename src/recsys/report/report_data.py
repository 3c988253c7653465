"""What a report is made from: whatever was handed over, brought to one form and checked before any drawing.

Only results are required. Lists, truth, training data and facts about items open further sections; what is
not there is left out, and the page says so.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from recsys.comparison.compare import Comparison, compare
from recsys.conventions.decisions import relevant
from recsys.errors import InputError, RecsysError, UnknownNameError
from recsys.evaluation.results import Evaluation
from recsys.evaluation.uncertainty import is_grouped
from recsys.inputs.frames import read_interactions, read_lists
from recsys.inputs.timestamps import seconds_of
from recsys.metrics.requests import Request
from recsys.report.item_names import ItemNames, item_names
from recsys.stats.alignment import Aligned, align
from recsys.stats.run_tables import layout_of, merged_runs
from recsys.types import Array, Float, Interactions, Lists, PerCase

_LEADING = ("ndcg", "map", "mrr", "recall", "hit")


@dataclass(frozen=True, eq=False)
class ReportData:
    """Models, the baseline among them, the comparison, and whatever else was given."""

    models: Mapping[str, list[Evaluation]]
    baseline: str | None
    metric: str
    comparison: Comparison | None
    lists: Mapping[str, Lists] = field(default_factory=dict)
    judged: Interactions | None = None
    train: Interactions | None = None
    items: ItemNames = field(default_factory=ItemNames)
    embeddings: Any = None
    cautions: tuple[str, ...] = ()
    valued: dict[tuple[str, str], tuple[float, float, float]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return list(self.models)

    @cached_property
    def truth(self) -> Interactions | None:
        """What was relevant under the conventions of the results; `judged` is everything that came."""
        held, least = self.judged, self.first(self.names[0]).conventions.relevant_from
        if held is None:
            return None
        grades = np.ones(len(held.codes)) if held.grades is None else held.grades
        mask = relevant(grades, least)
        return held if mask.all() else held.kept(mask)

    @cached_property
    def moments(self) -> Float | None:
        """When each entry of `train` happened, to be compared; None where that is not known."""
        if self.train is None or self.train.times is None:
            return None
        try:
            return seconds_of(self.train.times)
        except RecsysError:  # histories are then in no order; an audit says what is wrong
            return None

    @property
    def best(self) -> str:
        """The model with the best value of the headline metric, the baseline aside where there are others."""
        others = [n for n in self.names if n != self.baseline] or self.names
        sign = -1.0 if self.lower_is_better(self.metric) else 1.0
        return max(others, key=lambda n: np.nan_to_num(sign * self.value(n, self.metric), nan=-np.inf))

    def first(self, name: str) -> Evaluation:
        """The first run of a model: conventions, counts and requests are those of all."""
        return self.models[name][0]

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics all models were evaluated with, in the order of the first."""
        runs = [e for several in self.models.values() for e in several]
        return [m for m in runs[0] if all(m in e for e in runs)]

    @cached_property
    def requests(self) -> dict[str, Request]:
        return {str(r): r for r in self.first(self.names[0]).requests}

    def lower_is_better(self, metric: str) -> bool:
        return self.requests[metric].metric.better == "lower"

    def value(self, name: str, metric: str) -> float:
        """The overall value, averaged over runs."""
        return float(np.mean([e[metric] for e in self.models[name]]))

    @cached_property
    def per_case_metrics(self) -> list[str]:
        """Metrics with a value for each user; the others are of the whole catalogue."""
        return [m for m in self.metrics if all(_has_cases(e, m) for s in self.models.values() for e in s)]

    @cached_property
    def per_case(self) -> Mapping[str, PerCase]:
        """One table a model, its runs averaged."""
        tables = {name: [e.per_case for e in several] for name, several in self.models.items()}
        layout = layout_of(tables, "auto")
        return {n: merged_runs(several, layout, self.per_case_metrics) for n, several in tables.items()}

    @cached_property
    def aligned(self) -> Aligned:
        """All models over the same cases, NaN where a model has none."""
        return align(dict(self.per_case), self.per_case_metrics)

    @cached_property
    def users(self) -> Array:
        """The user of each case of `aligned`."""
        users = self.aligned.ids if self.aligned.clusters is None else self.aligned.clusters
        return users.astype(object) if users.dtype.kind in "US" else users


def gathered(
    results: Any,
    *,
    baseline: str | None = None,
    metric: str | None = None,
    lists: Any = None,
    truth: Any = None,
    train: Any = None,
    items: Any = None,
    embeddings: Any = None,
) -> ReportData:
    """Everything handed to the report, read and checked."""
    models, given = _models(results)
    base = _baseline(models, baseline, given)
    shared = [m for m in next(iter(models.values()))[0] if all(m in e for s in models.values() for e in s)]
    if not shared:
        raise InputError("the models share no metric.", hint="Evaluate all models with the same metrics.")
    told = {row.metric for row in given.rows} if given is not None else set()
    chosen = _headline(models, shared, metric, [m for m in shared if m in told])
    # A comparison of other pairs, or of other metrics than the page opens with, is made again.
    fits = given is not None and {row.baseline for row in given.rows} == {base} and chosen in told
    comparison, cautions = (given, ()) if fits else _compared(models, base)
    return ReportData(
        models,
        base,
        chosen,
        comparison,
        _lists(lists, list(models)),
        None if truth is None else read_interactions(truth, table="truth"),
        None if train is None else read_interactions(train, table="train"),
        item_names(items),
        embeddings,
        cautions,
    )


def _models(results: Any) -> tuple[dict[str, list[Evaluation]], Comparison | None]:
    if isinstance(results, Comparison):
        if not results.evaluations:
            raise InputError(
                "this comparison does not hold the evaluations it was made from.",
                hint="Make it with recsys.compare, or pass {name: evaluation}.",
            )
        return {n: list(runs) for n, runs in results.evaluations.items()}, results
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
    _check(named)
    return named, None


def _check(named: Mapping[str, list[Any]]) -> None:
    if not named:
        raise InputError("there is nothing to report: no evaluation was given.")
    for name, runs in named.items():
        for run in runs or [None]:
            if not isinstance(run, Evaluation):
                raise InputError(
                    f"{name!r} is {type(run).__name__}.", hint="Pass what recsys.evaluate returned."
                )


def _baseline(models: Mapping[str, Any], wanted: str | None, given: Comparison | None) -> str | None:
    """The one asked for, the comparison's own, or the first of several models."""
    if wanted is not None:
        if wanted not in models:
            raise UnknownNameError("baseline", wanted, models)
        return wanted if len(models) > 1 else None
    if given is not None:
        bases = {row.baseline for row in given.rows}
        if len(bases) == 1:
            return next(iter(bases))
    return next(iter(models)) if len(models) > 1 else None


def _compared(
    models: Mapping[str, list[Evaluation]], baseline: str | None
) -> tuple[Comparison | None, tuple[str, ...]]:
    if baseline is None:
        return None, ()
    runs = [e for several in models.values() for e in several]
    # Metrics of the catalogue are compared too, one run a model. One that nobody has a value for is not, nor
    # one that models are never compared on.
    whole = {str(r) for r in runs[0].requests if is_grouped(r) and len(runs) == len(models)}
    paired = [str(r) for r in runs[0].requests if not r.metric.unpaired]
    metrics = [m for m in paired if all(m in e and (m in whole or _has_cases(e, m)) for e in runs)]
    if not metrics:
        return None, ()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = compare(dict(models), baseline=baseline, metrics=metrics)
    return made, tuple(dict.fromkeys(str(w.message) for w in caught))


def _has_cases(evaluation: Evaluation, metric: str) -> bool:
    column = evaluation.per_case.columns.get(metric)
    return column is not None and bool((~np.isnan(column)).any())


def _headline(
    models: Mapping[str, list[Evaluation]], shared: Sequence[str], wanted: str | None, told: Sequence[str]
) -> str:
    """The metric asked for; else the best known of those compared, or of those shared."""
    if wanted is not None:
        name = str(Request.parse(wanted))
        if name not in shared:
            raise UnknownNameError("metric", wanted, shared, hint="Evaluate all models with it.")
        return name
    first = next(iter(models.values()))[0]
    cased = [m for m in told or shared if _has_cases(first, m)]
    cased = cased or [m for m in shared if math.isfinite(first[m])] or list(shared)
    requests = [r for r in first.requests if str(r) in cased]
    for lead in _LEADING:
        of_kind = [r for r in requests if r.metric.name == lead]
        if of_kind:
            return str(min(of_kind, key=lambda r: abs((r.k or 10) - 10)))
    return cased[0]


def _lists(lists: Any, names: Sequence[str]) -> dict[str, Lists]:
    """{model: lists}; with a single model its lists may come as they are."""
    if lists is None:
        return {}
    if isinstance(lists, Mapping) and lists and set(lists) <= set(names):
        return {name: _read(held) for name, held in lists.items()}
    if len(names) == 1:
        return {names[0]: _read(lists)}
    known = set(lists) - set(names) if isinstance(lists, Mapping) else {type(lists).__name__}
    raise InputError(
        f"lists= must be {{model: lists}} by the names {', '.join(names)}; {_some(known)} is none of them.",
        table="lists",
    )


def _read(held: Any) -> Lists:
    return held if isinstance(held, Lists) else read_lists(held)


def _some(names: Iterable[Any]) -> str:
    return repr(next(iter(names), None))
