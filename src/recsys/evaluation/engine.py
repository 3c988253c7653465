"""One pass: Hits -> every requested metric per case -> Partial.

`case_rules` decides which cases are in a mean; `partials` summarises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import (
    ConventionError,
)
from recsys.evaluation.case_rules import apply_case_rules
from recsys.evaluation.exposure import catalogue_context, count_exposure, exposure_key, resolve_catalogue
from recsys.metrics import Metric, Terms, needs
from recsys.metrics.case_reading import Reading
from recsys.metrics.item_facts import ItemFacts
from recsys.metrics.requests import Request
from recsys.metrics.shown_items import ListContext
from recsys.ranks.ranked_truth import RankedTruth
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

_BLOCK_CASES = 1 << 15


def measure(
    judged: RankedTruth, requests: Sequence[Request], conventions: Conventions, context: Context
) -> Partial:
    """Every request for every case."""
    exposure: dict[ExposureKey, Exposure] = {}
    readings = Readings(judged, context)
    columns = _Columns(judged, [r for r in requests if r.metric.kind != "catalogue"], conventions)
    for request in requests:
        rules = request.conventions(conventions)
        check_needs(request, context)
        _check_request(request, rules, judged)
        reading = readings.under(rules)
        if request.metric.kind == "catalogue":
            _add_exposure(exposure, reading, request, rules)
    columns.fill(readings)
    rows = PerCase(judged.cases.values, columns.values, judged.clusters, context.case_weights)
    counts = _case_counts(judged, conventions, readings) | _count_missing_facts(
        requests, conventions, readings
    )
    if not exposure:
        return Partial(rows, columns.terms, counts)
    catalogue = _resolve_catalogue(judged, context, readings)
    return Partial(rows, columns.terms, counts, exposure, catalogue, catalogue_context(requests, context))


class _Columns:
    """One column per request; metrics that read only ranks are computed in blocks of cases.

    The arrays of a block fit into the cache, and the next block reuses their memory.
    """

    def __init__(self, judged: RankedTruth, requests: Sequence[Request], conventions: Conventions) -> None:
        self._judged = judged
        self._bound_requests = [
            _BoundRequest(str(r), r, r.conventions(conventions), r.own_params) for r in requests
        ]
        # One array for all columns: the system allocates it much faster than many smaller ones.
        memory = np.empty((len(requests), len(judged.cases)))
        self.values: dict[str, Float] = {
            bound.name: row for bound, row in zip(self._bound_requests, memory, strict=True)
        }
        self.terms: dict[str, tuple[Float, Float]] = {}

    def fill(self, readings: Readings) -> None:
        n = len(self._judged.cases)
        blocks = n > _BLOCK_CASES and not self._judged.restricted
        rank_only = [bound for bound in self._bound_requests if not bound.request.metric.needs]
        for start in range(0, n, _BLOCK_CASES) if blocks and rank_only else ():
            part = readings.of_cases(start, min(start + _BLOCK_CASES, n))
            try:
                self._fill(rank_only, part, start)
            except Exception:  # noqa: BLE001 - errors must name all cases, not those of a block
                blocks = False
                break
        self._fill(
            [bound for bound in self._bound_requests if not blocks or bound.request.metric.needs], readings, 0
        )

    def _fill(self, bound_requests: Sequence[_BoundRequest], readings: Readings, start: int) -> None:
        for name, request, rules, params in bound_requests:
            reading = readings.under(rules)
            values = request.metric.body(reading, request.k, rules, **params)
            column = values.value if isinstance(values, Terms) else np.asarray(values)
            column = apply_case_rules(request, rules, column, reading, self._judged)
            rows = slice(start, start + reading.n_cases)
            self.values[name][rows] = column
            if isinstance(values, Terms) and combines(request.metric, rules):
                out = np.isnan(column)
                for term_column, term in zip(
                    self._term_columns(name), (values.first, values.second), strict=True
                ):
                    term_column[rows] = np.where(out, np.nan, term)

    def _term_columns(self, name: str) -> tuple[Float, Float]:
        if name not in self.terms:
            n = len(self._judged.cases)
            self.terms[name] = np.empty(n), np.empty(n)
        return self.terms[name]


class _BoundRequest(NamedTuple):
    """A request with its name, its conventions and the parameters of its function."""

    name: str
    request: Request
    rules: Conventions
    params: dict[str, Any]


def exposures(
    judged: RankedTruth,
    requests: Sequence[Request],
    conventions: Conventions,
    context: Context,
    *,
    groups: Mapping[Any, Bool],
) -> dict[Any, dict[ExposureKey, Exposure]]:
    """The exposure that catalogue metrics read, for each group of cases."""
    readings = Readings(judged, context)
    catalogue_requests = [(r, r.conventions(conventions)) for r in requests if r.metric.kind == "catalogue"]
    out: dict[Any, dict[ExposureKey, Exposure]] = {label: {} for label in groups}
    for label, mask in groups.items():
        for request, rules in catalogue_requests:
            _add_exposure(out[label], readings.under(rules), request, rules, mask)
    return out


def _add_exposure(
    exposure: dict[ExposureKey, Exposure],
    reading: Reading,
    request: Request,
    rules: Conventions,
    only: Bool | None = None,
) -> None:
    key = exposure_key(request, rules)
    if key not in exposure:
        exposure[key] = count_exposure(reading, request.k, key[1].split("/")[0], only=only)


def _count_missing_facts(
    requests: Sequence[Request], conventions: Conventions, readings: Readings
) -> dict[str, int]:
    """How many shown items lack the facts that a metric needs."""
    largest: dict[tuple[str, Any], int] = {}
    for request in requests:
        column = request.own_params.get("by", request.own_params.get("of"))
        for need in {"embeddings", "items"} & set(request.metric.needs):
            reading = readings.under(request.conventions(conventions))
            found = reading.n_missing(need, request.k, column)
            largest[need, column] = max(largest.get((need, column), 0), found)
    names = {"embeddings": "without_vector", "items": "without_facts"}
    out = dict.fromkeys(names.values(), 0)
    for (need, _), found in largest.items():
        out[names[need]] += found
    return {name: n for name, n in out.items() if n}


class _ShownByTies:
    """The items shown under each rule for ties.

    It is separate from `Readings`, so that no reading refers back to its owner: the memory of a call is then
    freed when the call ends, without the garbage collector.
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
        self._readings: dict[tuple[Any, ...], Reading] = {}

    def under(self, rules: Conventions) -> Reading:
        key = (rules.ties, rules.relevant_from, rules.duplicates)
        if key not in self._readings:
            hits = self._judged.hits(rules.ties, rules.duplicates)
            clusters = self._judged.clusters
            users = self._judged.cases if clusters is None else Ids(clusters)
            judged, grades = self._judged.judged, self._judged.grades
            beyond = ListContext(users, self._facts, partial(self._shown.under, key[0]), judged, grades)
            self._readings[key] = Reading(hits, rules.relevant_from, rules.duplicates, self._context, beyond)
        return self._readings[key]

    def of_cases(self, start: int, stop: int) -> Readings:
        """The readings so far for a range of cases; they know the ranks and nothing of the lists."""
        part = Readings(self._judged, self._context)
        for key, reading in self._readings.items():
            _, relevant_from, duplicates = key
            hits = reading.hits.of_cases(start, stop)
            part._readings[key] = Reading(hits, relevant_from, duplicates, self._context)
        return part

    def any_of(self, relevant_from: float | None) -> Reading:
        """A reading with this rule for relevance, or any reading."""
        readings = self._readings
        return next(
            (r for key, r in readings.items() if key[1] == relevant_from), next(iter(readings.values()))
        )


def _resolve_catalogue(judged: RankedTruth, context: Context, readings: Readings) -> Catalogue:
    listed = readings.any_of(None).listed.item
    known = [(judged.items, listed), (judged.items, judged.judged)]
    if context.train is not None:
        known.append((context.train.items, np.flatnonzero(context.train.item_counts)))
    return resolve_catalogue(context.catalogue, context.n_items, known)


def combines(metric: Metric, rules: Conventions) -> bool:
    """Whether the terms of a metric are averaged before they are combined."""
    rule = metric.combine_if
    return rule is not None and (rule == "always" or getattr(rules, rule[0]) == rule[1])


def check_needs(request: Request, context: Context) -> None:
    """Raise an error that names the missing keyword unless the metric has everything it needs."""
    needs.check_needs(request.metric.name, request.metric.needs, context)


def _check_request(request: Request, rules: Conventions, judged: RankedTruth) -> None:
    metric = request.metric
    if rules.ties == "expected" and metric.ties == "refuse" and judged.has_ties:
        raise ConventionError(
            f"{metric.name} has no expectation over tied scores here.",
            hint="Use ties='best' or ties='worst'.",
        )
    if judged.item_weights is not None and not metric.weighted and "lists" not in metric.needs:
        raise ConventionError(
            f"{metric.name} has no form with item weights.",
            hint="Use hits, recall, dcg or ndcg with item_weights.",
        )


def _case_counts(judged: RankedTruth, conventions: Conventions, readings: Readings) -> dict[str, int]:
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
    return counts | dict(judged.counts)
