"""One pass: Hits -> every requested metric per case -> Partial.

Per case first; `partials` sums up. Which cases are in a mean is decided here, by the conventions, and
counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import (
    ConventionError,
    DuplicateError,
    InputError,
    OutOfBoundsError,
)
from recsys.evaluation.exposure import catalogue_of, exposure_key, gather, kept_context
from recsys.metrics import Metric, Terms, needs
from recsys.metrics.case_reading import Reading
from recsys.metrics.item_facts import ItemFacts
from recsys.metrics.requests import Request
from recsys.metrics.shown_items import ListContext
from recsys.ranks.counting import ItemSubset, RankedTruth
from recsys.types import (
    Bool,
    Catalogue,
    Context,
    Exposure,
    ExposureKey,
    Float,
    Ids,
    Partial,
    PerCase,
    Shown,
)

_ROUNDING = 1e-9
_BLOCK_CASES = 1 << 15


def measure(
    judged: RankedTruth, requests: Sequence[Request], conventions: Conventions, context: Context
) -> Partial:
    """Every request for every case."""
    exposure: dict[ExposureKey, Exposure] = {}
    readings = Readings(judged, context)
    columns = _Columns(judged, [r for r in requests if r.metric.kind != "catalogue"], conventions)
    for request in requests:
        here = request.conventions(conventions)
        check_needs(request, context)
        _check_request(request, here, judged)
        reading = readings.under(here)
        if request.metric.kind == "catalogue":
            _gather(exposure, reading, request, here)
    columns.fill(readings)
    rows = PerCase(judged.cases.values, columns.values, judged.clusters, context.case_weights)
    counts = _counts(judged, conventions, readings) | _missing(requests, conventions, readings)
    if not exposure:
        return Partial(rows, columns.terms, counts)
    catalogue = _catalogue(judged, context, readings)
    return Partial(rows, columns.terms, counts, exposure, catalogue, kept_context(requests, context))


class _Columns:
    """One column a request: what asks only where judged items landed is worked out block by block of cases.

    A block's arrays stay in the cache and their memory serves the next one.
    """

    def __init__(self, judged: RankedTruth, requests: Sequence[Request], conventions: Conventions) -> None:
        self._judged = judged
        self._asked = [_BoundRequest(str(r), r, r.conventions(conventions), r.own_params) for r in requests]
        # One large piece for all columns: the system hands it out much quicker than many smaller ones.
        memory = np.empty((len(requests), len(judged.cases)))
        self.values: dict[str, Float] = {
            asked.name: row for asked, row in zip(self._asked, memory, strict=True)
        }
        self.terms: dict[str, tuple[Float, Float]] = {}

    def fill(self, readings: Readings) -> None:
        n = len(self._judged.cases)
        blocks = n > _BLOCK_CASES and not isinstance(self._judged, ItemSubset)
        of_places = [asked for asked in self._asked if not asked.request.metric.needs]
        for start in range(0, n, _BLOCK_CASES) if blocks and of_places else ():
            part = readings.of_cases(start, min(start + _BLOCK_CASES, n))
            try:
                self._fill(of_places, part, start)
            except Exception:  # noqa: BLE001 - what is wrong is said of all cases, not of a block
                blocks = False
                break
        self._fill([asked for asked in self._asked if not blocks or asked.request.metric.needs], readings, 0)

    def _fill(self, some: Sequence[_BoundRequest], readings: Readings, start: int) -> None:
        for name, request, here, params in some:
            reading = readings.under(here)
            values = request.metric.body(reading, request.k, here, **params)
            column = values.value if isinstance(values, Terms) else np.asarray(values)
            column = _settled(request, here, column, reading, self._judged)
            rows = slice(start, start + reading.n_cases)
            self.values[name][rows] = column
            if isinstance(values, Terms) and combines(request.metric, here):
                out = np.isnan(column)
                for kept, term in zip(self._terms_of(name), (values.first, values.second), strict=True):
                    kept[rows] = np.where(out, np.nan, term)

    def _terms_of(self, name: str) -> tuple[Float, Float]:
        if name not in self.terms:
            n = len(self._judged.cases)
            self.terms[name] = np.empty(n), np.empty(n)
        return self.terms[name]


class _BoundRequest(NamedTuple):
    """A request, its name, the conventions it is worked out under and its function's own parameters."""

    name: str
    request: Request
    here: Conventions
    params: dict[str, Any]


def exposures(
    judged: RankedTruth,
    requests: Sequence[Request],
    conventions: Conventions,
    context: Context,
    *,
    groups: Mapping[Any, Bool],
) -> dict[Any, dict[ExposureKey, Exposure]]:
    """What metrics of the catalogue are made of, for each group of the cases."""
    readings = Readings(judged, context)
    asked = [(r, r.conventions(conventions)) for r in requests if r.metric.kind == "catalogue"]
    out: dict[Any, dict[ExposureKey, Exposure]] = {label: {} for label in groups}
    for label, mask in groups.items():
        for request, here in asked:
            _gather(out[label], readings.under(here), request, here, mask)
    return out


def _gather(
    exposure: dict[ExposureKey, Exposure],
    reading: Reading,
    request: Request,
    here: Conventions,
    only: Bool | None = None,
) -> None:
    key = exposure_key(request, here)
    if key not in exposure:
        exposure[key] = gather(reading, request.k, key[1].split("/")[0], only=only)


def _missing(requests: Sequence[Request], conventions: Conventions, readings: Readings) -> dict[str, int]:
    """Items shown that nothing is known about, where a metric would have to know."""
    most: dict[tuple[str, Any], int] = {}
    for request in requests:
        column = request.own_params.get("by", request.own_params.get("of"))
        for need in {"embeddings", "items"} & set(request.metric.needs):
            reading = readings.under(request.conventions(conventions))
            found = reading.missing(need, request.k, column)
            most[need, column] = max(most.get((need, column), 0), found)
    names = {"embeddings": "without_vector", "items": "without_facts"}
    out = dict.fromkeys(names.values(), 0)
    for (need, _), found in most.items():
        out[names[need]] += found
    return {name: n for name, n in out.items() if n}


class _ShownByTies:
    """What was shown under each rule for ties.

    It stands apart from `Readings`, so that no reading holds those that made it: the memory of a call is then
    free when the call ends, not when the garbage collector comes by.
    """

    def __init__(self, judged: RankedTruth) -> None:
        self._judged = judged
        self._shown: dict[str, Shown] = {}

    def under(self, ties: str) -> Shown:
        if ties not in self._shown:
            self._shown[ties] = self._judged.shown(ties)
        return self._shown[ties]


class Readings:
    """One Reading for all metrics that agree on ties, relevance and repeats."""

    def __init__(self, judged: RankedTruth, context: Context) -> None:
        self._judged = judged
        self._context = context
        self._facts = ItemFacts(judged.items, context)
        self._shown = _ShownByTies(judged)
        self._made: dict[tuple[Any, ...], Reading] = {}

    def under(self, here: Conventions) -> Reading:
        key = (here.ties, here.relevant_from, here.duplicates)
        if key not in self._made:
            hits = self._judged.hits(here.ties, here.duplicates)
            clusters = self._judged.clusters
            users = self._judged.cases if clusters is None else Ids(clusters)
            judged, grades = self._judged.judged, self._judged.grades
            beyond = ListContext(users, self._facts, partial(self._shown.under, key[0]), judged, grades)
            self._made[key] = Reading(hits, here.relevant_from, here.duplicates, self._context, beyond)
        return self._made[key]

    def of_cases(self, start: int, stop: int) -> Readings:
        """Those made so far, of some neighbouring cases; they know the places and nothing of the lists."""
        part = Readings(self._judged, self._context)
        for key, reading in self._made.items():
            _, relevant_from, duplicates = key
            hits = reading.hits.of_cases(start, stop)
            part._made[key] = Reading(hits, relevant_from, duplicates, self._context)
        return part

    def any_of(self, relevant_from: float | None) -> Reading:
        """A reading that agrees on what is relevant, where there is one."""
        made = self._made
        return next((r for key, r in made.items() if key[1] == relevant_from), next(iter(made.values())))


def _catalogue(judged: RankedTruth, context: Context, readings: Readings) -> Catalogue:
    listed = readings.any_of(None).listed.item
    known = [(judged.items, listed), (judged.items, judged.judged)]
    if context.train is not None:
        known.append((context.train.items, np.flatnonzero(context.train.item_counts)))
    return catalogue_of(context.catalogue, context.n_items, known)


def combines(metric: Metric, here: Conventions) -> bool:
    """Whether the terms of a metric are averaged before they are combined."""
    rule = metric.combine_if
    return rule is not None and (rule == "always" or getattr(here, rule[0]) == rule[1])


def check_needs(request: Request, context: Context) -> None:
    """Whatever the metric needs is there, or an error that says which keyword brings it."""
    needs.check(request.metric.name, request.metric.needs, context)


def _check_request(request: Request, here: Conventions, judged: RankedTruth) -> None:
    metric = request.metric
    if here.ties == "expected" and metric.ties == "refuse" and judged.groups is not None:
        raise ConventionError(
            f"{metric.name} has no expectation over tied scores here.",
            hint="Use ties='best' or ties='worst'.",
        )
    if judged.item_weights is not None and not metric.weighted and "lists" not in metric.needs:
        raise ConventionError(
            f"{metric.name} has no form with item weights.",
            hint="Use hits, recall, dcg or ndcg with item_weights.",
        )


def _settled(
    request: Request, here: Conventions, values: Float, reading: Reading, judged: RankedTruth
) -> Float:
    """The column with the populations applied and the range checked."""
    metric = request.metric
    no_truth, no_list = reading.nothing_wanted(metric.population), reading.nothing_listed
    for mask, rule, what in (
        (no_truth, "no_truth", "relevant items"),
        (no_list, "no_list", "recommendations"),
    ):
        if mask is not None and getattr(here, rule) == "error":
            raise InputError(
                f"user {judged.cases.name(np.argmax(mask))!r} has no {what} ({int(mask.sum())} such users).",
                hint=f"Drop them, or set {rule}='skip'.",
            )
    out = values
    if no_list is not None:
        out = np.where(no_list, metric.empty, out)
    if no_truth is not None:
        out = np.where(no_truth, 0.0 if here.no_truth in ("zero", "unjudged") else math.nan, out)
        if here.no_truth == "unjudged":
            out = np.where(reading.hits.n_judged == 0, math.nan, out)
        if math.isnan(metric.empty):
            out = np.where(no_truth, math.nan, out)
    if no_list is not None and here.no_list == "skip":
        out = np.where(no_list, math.nan, out)
    if isinstance(judged, ItemSubset) and metric.population == "listed" and not metric.zero_of_none:
        out = np.where(reading.n_shown(request.k) == 0, math.nan, out)
    return _in_range(request, out, judged, repeats=here.duplicates == "all")


def _in_range(request: Request, values: Float, judged: RankedTruth, *, repeats: bool) -> Float:
    low, high = request.metric.bounds
    if not len(values) or (values.min() >= low and values.max() <= high):
        return values
    wild = (values < low - _ROUNDING) | (values > high + _ROUNDING)
    if wild.any():
        case = int(np.argmax(wild))
        user = judged.cases.name(case)
        who = f"{request} of user {user!r} is {values[case]:.6g}, outside [{low:g}, {high:g}]"
        if repeats:
            raise DuplicateError(
                f"{who}: the list repeats an item and these conventions count it each time.",
                table="lists",
                hint="Drop the repeats, or use duplicates='first'.",
            )
        raise OutOfBoundsError(f"{who}.", hint="Please report this: it is a defect of the metric.")
    return np.clip(values, low, high)


def _counts(judged: RankedTruth, conventions: Conventions, readings: Readings) -> dict[str, int]:
    reading = readings.any_of(conventions.relevant_from)
    counts = {
        "cases": len(judged.cases),
        "without_truth": int((reading.n_relevant == 0).sum()),
        "without_list": int((reading.n_listed == 0).sum()),
        "judged": len(judged.judged),
        "found": len(reading.hits.case),
    }
    if reading.hits.n_candidates is not None:
        repeats = 0 if reading.hits.repeat is None else int(reading.hits.repeat.sum())
        counts["not_candidates"] = counts["judged"] - counts["found"] + repeats
    return counts | {n: v for n, v in judged.counts.items() if n != "first_repeated"}
