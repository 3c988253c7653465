"""One pass: Hits -> every requested metric per case -> Partial -> one number per request.

NaN leaves a case out of a mean; the conventions `no_truth` and `no_list` decide, for tables and for one list.
Means are exactly rounded, so the Partials of different cases merge in any order to the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import (
    ConventionError,
    DuplicateError,
    InputError,
    MergeError,
    NoRowsError,
    OutOfBoundsError,
    Phrase,
    TieWarning,
    warn,
)
from recsys.evaluation.exposure import (
    ROUNDING,
    add_exposures,
    catalogue_context,
    catalogue_value,
    count_exposure,
    exposure_key,
    resolve_catalogue,
    union_catalogues,
)
from recsys.evaluation.who_counts import apply_case_rules
from recsys.kernels.exact_sums import exact_mean, exact_sum
from recsys.metrics import Metric, Terms
from recsys.metrics.attributes import ItemFacts
from recsys.metrics.readings import ListContext, Reading
from recsys.metrics.registry import Request, check_needs
from recsys.ranks.ranked_truth import RankedTruth
from recsys.records.arrays import (
    Array,
    Bool,
    Catalogue,
    Context,
    Exposure,
    ExposureKey,
    Float,
    Ids,
    Partial,
    PerCase,
    Stratum,
    Sums,
)

_BLOCK_CASES = 1 << 15
_LARGEST = float(np.finfo(np.float64).max)
_ORDERS_OF_A_METRIC = ("best", "worst")  # rules for ties under which every metric has its own order


def measure(
    judged: RankedTruth, requests: Sequence[Request], conventions: Conventions, context: Context
) -> Partial:
    """Evaluate every request for every case."""
    readings = Readings(judged, context)
    bound_requests: list[_BoundRequest] = []
    for request in requests:
        metric, rules = request.metric, request.conventions(conventions)
        check_needs(request, context)
        if rules.ties == "expected" and metric.tied.ties == "refuse" and readings.ranked(rules).has_ties:
            raise ConventionError(
                f"{metric.name} has no expectation over tied scores here.",
                hint=Phrase("Use {ties='best'} or {ties='worst'}."),
            )
        no_order = metric.tied.tie_order == "unknown" and metric.population != "listed"
        if rules.ties in _ORDERS_OF_A_METRIC and no_order and readings.ranked(rules).has_ties:
            raise ConventionError(
                f"it is not known how the order of equal scores moves {metric.name}, so it has no "
                f"{rules.ties} one.",
                hint=Phrase("Use {ties='by_id'}, or {per_metric=} for {} alone.", metric.name),
            )
        if judged.item_weights is not None and not metric.truth.weighted and "lists" not in metric.needs:
            raise ConventionError(
                f"{metric.name} cannot be computed with item weights.",
                hint="Use hits, recall, dcg or ndcg with item_weights.",
            )
        readings.under(rules)  # whatever is computed block by block finds it there
        if metric.kind != "catalogue":
            bound_requests.append(_BoundRequest(str(request), request, rules, request.own_params))
    exposure = _exposures(readings, requests, conventions)
    columns = _Columns(judged, bound_requests)
    columns.fill(readings)
    rows = PerCase(judged.cases, columns.values, judged.clusters, context.case_weights)
    counts = _counts(judged, requests, conventions, readings)
    if not exposure:
        return Partial(rows, columns.terms, counts)
    listed = judged.shown("given").codes
    catalogue = resolve_catalogue(context, [(judged.items, listed), (judged.items, judged.judged)])
    return Partial(rows, columns.terms, counts, exposure, catalogue, catalogue_context(requests, context))


class _BoundRequest(NamedTuple):
    """A request with its name, its conventions and the parameters of its function."""

    name: str
    request: Request
    rules: Conventions
    params: Mapping[str, Any]


class _Columns:
    """One column per request; metrics that read only ranks are computed in blocks of cases.

    The arrays of a block fit into the cache, and the next block reuses their memory.
    """

    def __init__(self, judged: RankedTruth, bound_requests: Sequence[_BoundRequest]) -> None:
        self._judged = judged
        self._bound_requests = bound_requests
        # One array for all columns: the system allocates it much faster than many smaller ones.
        memory = np.empty((len(bound_requests), len(judged.cases)))
        self.values: dict[str, Float] = {
            bound.name: row for bound, row in zip(bound_requests, memory, strict=True)
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
        n = len(self._judged.cases)
        for bound in bound_requests:
            name, request, rules, _ = bound
            reading = readings.under(rules)
            in_any_order = rules.ties in _ORDERS_OF_A_METRIC
            values, column = (self._extreme if in_any_order else self._measure)(bound, reading)
            rows = slice(start, start + reading.n_cases)
            self.values[name][rows] = column
            if isinstance(values, Terms) and combines(request.metric, rules):
                if name not in self.terms:
                    self.terms[name] = np.empty(n), np.empty(n)
                out = np.isnan(column)
                for terms, term in zip(self.terms[name], (values.first, values.second), strict=True):
                    terms[rows] = np.where(out, np.nan, term)

    def _measure(self, bound: _BoundRequest, reading: Reading) -> tuple[Any, Float]:
        """Return what the metric's function returns, and its column under the rules for cases."""
        values = bound.request.metric.body(reading, bound.request.k, bound.rules, **bound.params)
        column = values.value if isinstance(values, Terms) else np.asarray(values)
        column = apply_case_rules(bound.request, bound.rules, column, reading, self._judged)
        repeats = bound.rules.duplicates == "all"
        return values, _check_range(bound.request, column, self._judged, repeats=repeats)

    def _extreme(self, bound: _BoundRequest, reading: Reading) -> tuple[Any, Float]:
        """Return the same of the best (worst) order of equal scores, case by case."""
        from recsys.metrics import best_and_worst_order

        orders = best_and_worst_order.orders(reading, bound.request, bound.rules)
        choose = best_and_worst_order.choice(bound.request, bound.rules)
        values, column = self._measure(bound, next(orders))
        for ordered in orders:
            column = choose(column, self._measure(bound, ordered)[1])
        return values, column


def _check_range(request: Request, values: Float, judged: RankedTruth, *, repeats: bool) -> Float:
    low, high = request.metric.bounds
    if not len(values) or (values.min() >= max(low, -_LARGEST) and values.max() <= min(high, _LARGEST)):
        return values
    if np.isinf(values).any():
        raise InputError(
            f"{request} of user {judged.cases.name(np.argmax(np.isinf(values)))!r} passes 1.8e308, the "
            "largest number there is.",
            hint="Divide grades, weights or values by the same number.",
        )
    outside = (values < low - ROUNDING) | (values > high + ROUNDING)
    if outside.any():
        case = int(np.argmax(outside))
        user = judged.cases.name(case)
        finding = f"{request} of user {user!r} is {values[case]:.6g}, outside [{low:g}, {high:g}]"
        if repeats:
            raise DuplicateError(
                f"{finding}: the list repeats an item and these conventions count it each time.",
                table="lists",
                hint=Phrase("Drop the repeats, or use {duplicates='first'}."),
            )
        raise OutOfBoundsError(f"{finding}.", hint="Please report this: it is a defect of the metric.")
    return np.clip(values, low, high)


def exposures(
    judged: RankedTruth,
    requests: Sequence[Request],
    conventions: Conventions,
    context: Context,
    *,
    groups: Mapping[Any, Bool],
) -> dict[Any, dict[ExposureKey, Exposure]]:
    """Return the exposure that catalogue metrics read, for each group of cases."""
    readings = Readings(judged, context)
    return {label: _exposures(readings, requests, conventions, mask) for label, mask in groups.items()}


def _exposures(
    readings: Readings, requests: Sequence[Request], conventions: Conventions, only: Bool | None = None
) -> dict[ExposureKey, Exposure]:
    out: dict[ExposureKey, Exposure] = {}
    for request in requests:
        if request.metric.kind == "catalogue":
            rules = request.conventions(conventions)
            key = exposure_key(request, rules)
            if key not in out:
                weight, _, repeats = key[1].split("/")[:3]
                rules = replace(rules, duplicates=repeats)
                if rules.ties in _ORDERS_OF_A_METRIC:
                    from recsys.metrics.best_and_worst_order import check_one_order

                    check_one_order(
                        readings.under(rules),
                        request,
                        rules,
                        by_place=weight not in ("none", "list"),
                        why="it is about the lists of all users at once",
                    )
                out[key] = count_exposure(readings.under(rules), request.k, weight, only=only)
    return out


def _counts(
    judged: RankedTruth, requests: Sequence[Request], conventions: Conventions, readings: Readings
) -> dict[str, int]:
    """Return the counts reported with a result: of cases, and of shown items without facts a metric needs."""
    reading = readings.any_of(conventions.relevant_from)
    counts = {
        "cases": len(judged.cases),
        "without_truth": int(np.count_nonzero(reading.n_relevant == 0)),
        "without_list": 0 if reading.given_no_list is None else int(reading.given_no_list.sum()),
        "judged": len(judged.judged),
        "found": len(reading.hits.case),
    }
    if reading.hits.n_candidates is not None:
        repeats = 0 if reading.hits.repeat is None else int(reading.hits.repeat.sum())
        counts["not_candidates"] = counts["judged"] - counts["found"] + repeats
    counts |= judged.counts
    missing: dict[tuple[str, Any], int] = {}  # the most of any request, by need and column
    for request in requests:
        for need, name in (("embeddings", "without_vector"), ("items", "without_facts")):
            if need in request.metric.needs:
                column = request.own_params.get("by", request.own_params.get("of"))
                found = readings.under(request.conventions(conventions)).n_missing(need, request.k, column)
                missing[name, column] = max(missing.get((name, column), 0), found)
    for name in ("without_vector", "without_facts"):
        n_missing = sum(n for (of_name, _), n in missing.items() if of_name == name)
        if n_missing:
            counts[name] = n_missing
    return counts


class Readings:
    """One Reading for all metrics that agree on ties, relevance, repeats and unjudged items."""

    def __init__(self, judged: RankedTruth, context: Context) -> None:
        self._judged = judged
        self._context = context
        self._facts = ItemFacts(judged.items, context)
        # No reading refers back to its owner: the memory of a call is freed when the call ends, without the
        # garbage collector.
        self._shown = cache(judged.shown)
        self._decided: dict[tuple[bool, bool], RankedTruth] = {(False, False): judged}
        self._readings: dict[tuple[Any, ...], Reading] = {}

    def ranked(self, rules: Conventions) -> RankedTruth:
        """Return the rankings without what the rules take out: unjudged items, repeats."""
        key = rules.judged_only == "yes", rules.duplicates == "collapse"
        if key not in self._decided:
            self._decided[key] = as_decided(self._judged, rules)
        return self._decided[key]

    def under(self, rules: Conventions) -> Reading:
        key = (rules.ties, rules.relevant_from, rules.duplicates, rules.judged_only)
        if key not in self._readings:
            ranked = self.ranked(rules)
            hits = ranked.hits(rules.ties, rules.duplicates)
            users = ranked.cases if ranked.clusters is None else Ids(ranked.clusters)
            shown = partial(self._shown if ranked is self._judged else ranked.shown, rules.ties)
            beyond = ListContext(users, self._facts, cache(shown), ranked.judged, ranked.grades)
            self._readings[key] = Reading(hits, rules.relevant_from, rules.duplicates, self._context, beyond)
        return self._readings[key]

    def of_cases(self, start: int, stop: int) -> Readings:
        """Return the readings so far for a range of cases; they know the ranks and nothing of the lists."""
        part = Readings(self._judged, self._context)
        for key, reading in self._readings.items():
            _, relevant_from, duplicates, _ = key
            hits = reading.hits.of_cases(start, stop)
            part._readings[key] = Reading(hits, relevant_from, duplicates, self._context)
        return part

    def any_of(self, relevant_from: float | None) -> Reading:
        """Return a reading with this rule for relevance, or any reading."""
        readings = self._readings
        return next(
            (r for key, r in readings.items() if key[1] == relevant_from), next(iter(readings.values()))
        )


def as_decided(ranked: RankedTruth, rules: Conventions) -> RankedTruth:
    """Return the rankings without what the conventions take out of them before places are given."""
    left = ranked.of_judged() if rules.judged_only == "yes" else ranked
    return left.without_repeats() if rules.duplicates == "collapse" else left


def combines(metric: Metric, rules: Conventions) -> bool:
    """Return whether the terms of a metric are averaged before they are combined."""
    rule = metric.pooling.combine_if
    return rule is not None and (rule == "always" or getattr(rules, rule[0]) == rule[1])


def is_aggregated(partial: Partial, request: Request) -> bool:
    """Return whether the number is an aggregate of the values per case other than their mean."""
    name = str(request)
    combined = name in partial.terms or (name in partial.sums and "y" in partial.sums[name].totals)
    return request.aggregate is not None and request.summary is request.aggregate and not combined


def _value_from_sums(partial: Partial, request: Request) -> float:
    """Return the number of a metric whose rows were added up."""
    from recsys.stats.sums import CaseValues, mean_from

    sums = partial.sums[str(request)]
    if is_aggregated(partial, request):
        aggregate: Any = request.aggregate
        return float(aggregate.value(CaseValues.of_sums(sums)))
    mean = mean_from(sums)
    if "y" in sums.totals and sums.n_cases:
        return request.metric.pooling.combine(mean, mean_from(sums, "y"), **request.own_params)
    return mean


def summarise(
    partial: Partial,
    requests: Sequence[Request],
    mask: Bool | None = None,
    *,
    conventions: Conventions | None = None,
) -> dict[str, float]:
    """Return one number per request, over all cases or those of a mask; NaN if no case is in the mean."""
    out = {}
    for request in requests:
        name = str(request)
        if request.metric.kind == "catalogue":
            rules = conventions or Conventions()
            out[name] = catalogue_value(partial, request, rules) if mask is None else math.nan
            continue
        if mask is None and name in partial.sums and request.metric.pooling.summary is None:
            is_counted = partial.sums[name].counted is not None
            if partial.per_case is None or is_counted or not is_aggregated(partial, request):
                out[name] = _value_from_sums(partial, request)
                continue
        if partial.per_case is None:
            raise NoRowsError(name)
        column = partial.per_case.columns[name]
        in_mean: Any = slice(None)
        any_case = True
        if mask is not None or not len(column) or math.isnan(column.min()):
            in_mean = ~np.isnan(column) if mask is None else mask & ~np.isnan(column)
            any_case = bool(in_mean.any())
        weights = partial.per_case.weights
        case_weights = None if weights is None else weights[in_mean]
        if name in partial.terms:
            first, second = (_mean(t[in_mean], case_weights) for t in partial.terms[name])
            out[name] = (
                request.metric.pooling.combine(first, second, **request.own_params) if any_case else math.nan
            )
        elif request.summary is not None:
            out[name] = request.summary(column[in_mean], case_weights, **request.own_params)
        else:
            out[name] = _mean(column[in_mean], case_weights, within=request.metric.bounds)
    return out


def without_rows(partial: Partial, *, whole_users: bool = True) -> Partial:
    """Return the same result with sums in place of its rows, which no longer grow with the number of cases.

    `whole_users`: whether no other part has cases of the same users.
    """
    from recsys.stats.sums import sums_of

    rows = partial.rows
    if rows.clusters is not None:  # numbers are found faster than names, column by column
        rows = replace(rows, clusters=np.unique(rows.clusters, return_inverse=True)[1])

    def summed(only: Bool | None = None) -> dict[str, Sums]:
        return {
            name: sums_of(rows, column, partial.terms.get(name), only, whole_users=whole_users)
            for name, column in rows.columns.items()
        }

    strata = {}
    for label, stratum in partial.strata.items():
        part = stratum.partial
        if stratum.of == "item":
            defined = [~np.isnan(column) for column in part.rows.columns.values()]
            in_group = int(np.any(defined, axis=0).sum()) if defined else len(part.rows)
            part = without_rows(part, whole_users=whole_users)
        else:
            inside, in_group = np.zeros(len(partial.rows), dtype=bool), len(part.rows)
            inside[Ids(partial.rows.ids).code_of(part.rows.ids)] = True
            part = replace(part, per_case=None, sums=summed(inside))
        strata[label] = Stratum(stratum.of, replace(part, counts={**part.counts, "in_group": in_group}))
    return replace(partial, per_case=None, terms={}, strata=strata, sums=summed())


def _mean(values: Float, weights: Float | None, *, within: tuple[float, float] | None = None) -> float:
    if weights is None:
        largest = math.inf if within is None else max(map(abs, within))
        return exact_mean(values, within=largest if math.isfinite(largest) else None)
    total = exact_sum(weights) if len(weights) else 0
    return float(exact_sum(values * weights) / total) if total else math.nan


def merge(parts: Sequence[Partial]) -> Partial:
    """Return the result over the cases of all Partials; a case in two of them is an error."""
    first = parts[0]
    metrics = [[*(p.sums if first.per_case is None else p.rows.columns), *p.exposure] for p in parts]
    for other in metrics:
        if other != metrics[0]:
            raise MergeError(
                f"the parts hold different metrics: {metrics[0]} and {other}.",
                hint="Evaluate every part with the same metrics.",
            )
    rows: PerCase | None = None
    terms: dict[str, tuple[Float, Float]] = {}
    sums: dict[str, Sums] = {}
    if first.per_case is None:
        from recsys.stats.sums import add_sums

        sums = {name: add_sums([p.sums[name] for p in parts]) for name in first.sums}
    else:
        rows, terms = _merge_rows(parts)
    names = dict.fromkeys(n for p in parts for n in p.counts)
    counts = {n: sum(p.counts.get(n, 0) for p in parts) for n in names}
    if not first.exposure:
        return Partial(rows, terms, counts, strata=_merge_strata(parts, None), sums=sums)
    exposure = {key: add_exposures([p.exposure[key] for p in parts]) for key in first.exposure}
    catalogues = [p.catalogue for p in parts if p.catalogue is not None]
    catalogue = union_catalogues(catalogues) if catalogues else None
    strata = _merge_strata(parts, catalogue)
    return Partial(rows, terms, counts, exposure, catalogue, first.context, strata, sums)


def _merge_rows(parts: Sequence[Partial]) -> tuple[PerCase, dict[str, tuple[Float, Float]]]:
    """Return the rows of all parts in ascending order of ids, and the terms of metrics that have them."""
    parts = [part for part in parts if len(part.rows)] or parts[:1]  # without rows, ids are of no kind
    first = parts[0]
    for part in parts[1:]:
        if (part.rows.ids.dtype == object) != (first.rows.ids.dtype == object):
            raise MergeError("the parts hold ids of different types (int and str).")
    ids = np.concatenate([p.rows.ids for p in parts])
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    repeated = np.flatnonzero(ids[1:] == ids[:-1]) if len(ids) else order
    if len(repeated):
        raise MergeError(
            f"user {Ids(ids).name(repeated[0])!r} is in two of the parts.",
            hint="Each user must be evaluated in one part only.",
        )

    def concatenate(columns_of_parts: Sequence[Array | None], what: str = "") -> Any:
        given = [column for column in columns_of_parts if column is not None]
        if given and len(given) < len(parts):
            raise MergeError(f"some parts have {what} of their cases, and others have none.")
        return np.concatenate(given)[order] if given else None

    columns = {name: concatenate([p.rows.columns[name] for p in parts]) for name in first.rows.columns}
    terms = {
        name: (concatenate([p.terms[name][0] for p in parts]), concatenate([p.terms[name][1] for p in parts]))
        for name in first.terms
    }
    clusters = concatenate([p.rows.clusters for p in parts], "users")
    return PerCase(ids, columns, clusters, concatenate([p.rows.weights for p in parts], "weights")), terms


def _merge_strata(parts: Sequence[Partial], catalogue: Catalogue | None) -> dict[Any, Stratum]:
    """Merge groups by label; a part without users of a group only adds its items to the catalogue."""
    out = {}
    for label in dict.fromkeys(label for part in parts for label in part.strata):
        strata = [part.strata[label] for part in parts if label in part.strata]
        merged = merge([stratum.partial for stratum in strata])
        of_users = strata[0].of == "user"
        out[label] = Stratum(strata[0].of, replace(merged, catalogue=catalogue) if of_users else merged)
    return out


def ties_matter(tied: int, found: int) -> bool:
    """Return whether at least 1% of the judged items found share their score with an item of another grade.

    A value is made of the judged items found, and another order of equal scores moves only those that are
    tied: fewer than 1% of them can move a mean by about 1% at most. The count stays below the table.

    >>> ties_matter(1, 3564), ties_matter(22, 1100), ties_matter(1, 2)
    (False, True, True)
    """
    return tied > 0 and 100 * tied >= found


def warn_of_ties(counts: Mapping[str, int], conventions: Conventions) -> None:
    """Say how many judged items share their score, by the counts of all users, where `ties_matter`.

    Warns:
        TieWarning: they matter, and the conventions put equal scores in some order.
    """
    undecided, found = counts.get("tied", 0), counts.get("found", 0)
    if ties_matter(undecided, found) and conventions.ties in ("by_id", "by_id_desc", "given"):
        warn(
            TieWarning,
            f"{undecided:,} of {found:,} judged items found ({undecided / found:.1%}) share their score "
            f"with another item, so the result depends on how ties are ordered (here: {conventions.ties}). "
            + Phrase("{ties='expected'} gives the mean over all orders, ")
            + Phrase("{ties='best'} and {ties='worst'} the range."),
        )
