"""Floor and best value of every request: how each is obtained, and the notes about it."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import RecsysError
from recsys.evaluation.bounds import Bounds, Limits, hypothetical_ranks
from recsys.evaluation.bounds.best_lists import Builder, builder_of
from recsys.evaluation.bounds.candidate_pool import BoundsTask, CandidatePool, random_lists
from recsys.evaluation.bounds.even_exposure import counted_items
from recsys.evaluation.engine import combines, measure, summarise
from recsys.metrics.readings import Reading
from recsys.metrics.registry import Request
from recsys.metrics.traits import quotient
from recsys.metrics.weights import discount_weights
from recsys.ranks.ranked_truth import RankedTruth
from recsys.records.arrays import Context, Float, Int, Interactions, Partial, PerCase

_RANDOM_LISTS = 30_000  # random lists drawn in all, within the limits per case below
_MIN_DRAWS, _MAX_DRAWS = 3, 50
_TOLERANCE = 1e-12
_NO_VALUE = "no list of candidates has a value here: no user is in the mean"
_NO_RANDOM_VALUE = "no list that was drawn has a value here"
_JUDGED_ONLY = "lists without their unjudged items have no candidates to draw from"


class KnownValue(NamedTuple):
    """One limit, how it was obtained, and the standard error if it was drawn."""

    value: float = math.nan
    how: str = ""
    error: float = 0.0


def bounds_of(
    judged: RankedTruth,
    requests: Sequence[Request],
    values: Mapping[str, float],
    *,
    rules: Conventions,
    context: Context,
    seen: Interactions | None,
) -> Bounds:
    """Floor and best value of every request."""
    search = _BoundsSearch(CandidatePool(judged, context, seen), rules)
    whole_lists = [r for r in requests if r.conventions(rules).judged_only == "no"]
    search.reasons |= {str(r): _JUDGED_ONLY for r in requests if r not in whole_lists}
    by_list = [r for r in whole_lists if r.metric.tied.ties == "shown"]
    search.bound_ranking_metrics([r for r in whole_lists if r.metric.tied.ties != "shown"])
    if by_list and search.pool.why_unavailable:
        search.reasons |= {str(r): search.pool.why_unavailable for r in by_list}
    elif by_list:
        search.bound_list_metrics(by_list)
    search.include_evaluated_lists(requests, values)
    limits = {str(r): search.limits(r, values[str(r)]) for r in requests}
    if any(row.floor_how == "drawn" for row in limits.values()):
        worst = max(row.floor_error for row in limits.values())
        search.notes.append(f"drawn {search.n_draws} times for each user; standard errors up to {worst:.2g}")
    return Bounds(limits, search.notes)


class _BoundsSearch:
    """The floor of each request, and the best value of all lists measured so far."""

    def __init__(self, pool: CandidatePool, rules: Conventions) -> None:
        self.pool, self.rules = pool, rules
        self.floor: dict[str, KnownValue] = {}
        self.best: dict[str, KnownValue] = {}
        self.reasons: dict[str, str] = {}
        self.notes: list[str] = []
        self._columns: dict[str, Float] = {}
        self._proven: set[str] = set()

    @property
    def n_draws(self) -> int:
        """The number of random lists per case."""
        return min(max(-(-_RANDOM_LISTS // max(self.pool.n_cases, 1)), _MIN_DRAWS), _MAX_DRAWS)

    def bound_ranking_metrics(self, requests: Sequence[Request]) -> None:
        """Find floor and best of metrics that read the places of relevant items."""
        for request in requests:
            builder = builder_of(request)
            if builder is not None:
                self._try_builder(request, builder)
            else:
                gain = hypothetical_ranks.entry_gains(self.pool, request, self.rules)
                ideal = hypothetical_ranks.best_ranks(self.pool, gain)
                # It is not proven that this order is best for metrics that are not part of this library or
                # order their hits otherwise, nor where a user's own discount rises with the place.
                built_in = request.metric.body.__module__.startswith("recsys.")
                by_relevance = request.metric.tied.tie_order in ("relevance", "number")
                proven = built_in and by_relevance and self._discount_falls(request)
                self._update_best(ideal, {str(request): request}, proven=proven)
        level = self.rules.but(ties="expected")
        exact = [r for r in requests if self._has_exact_floor(r)]
        fair = {str(r): self._cut_at_longest_list(r) for r in exact}
        for name, value in self._measure(hypothetical_ranks.tied_ranks(self.pool), fair, level)[0].items():
            self.floor[name] = KnownValue(value, "exact")
        self._estimate_floor(
            [r for r in requests if str(r) not in fair],
            lambda n: hypothetical_ranks.random_ranks(self.pool, n),
        )

    def _discount_falls(self, request: Request) -> bool:
        """Return whether no place weighs more than one above it."""
        discount = request.conventions(self.rules).discount
        if "discount" not in request.metric.conventions or isinstance(discount, str):
            return True
        weights = discount_weights(discount, int(self.pool.places.max(initial=1)))
        return bool((np.diff(weights) <= 0).all())

    def _has_exact_floor(self, request: Request) -> bool:
        """Return whether the metric is a mean and computes its expectation over tied candidates."""
        metric, cut = request.metric, self._cut_at_longest_list(request).k
        derived = metric.pooling.combine is not quotient
        combined = derived and combines(metric, request.conventions(self.rules))
        # A group of ties does not end with the list: only a cut-off k excludes items.
        depth = self.pool.n_candidates if cut is None else np.minimum(cut, self.pool.n_candidates)
        ends = bool((depth <= self.pool.places).all())
        return metric.tied.ties != "refuse" and request.summary is None and ends and not combined

    def _cut_at_longest_list(self, request: Request) -> Request:
        """Cut the request at the end of the longest list, if a sum over places is the same there."""
        longest = max(int(self.pool.places.max(initial=1)), 1)
        if not request.metric.attainable.sum_over_places or (request.k is not None and request.k <= longest):
            return request
        return request.at(longest)

    def bound_list_metrics(self, requests: Sequence[Request]) -> None:
        """Find floor and best of metrics about the items shown."""
        drawn = []
        for request in requests:
            name, builder = str(request), builder_of(request)
            constant = builder is not None and self._try_builder(request, builder)
            try:
                if constant:
                    value = self._best_so_far(name)
                elif (
                    request.metric.shown.mean_of_items
                    and request.summary is None
                    and request.own_params.get("cold") != "drop"
                ):
                    value = _expected_mean_of_items(self.pool, request, self.rules)
                elif request.metric.shown.counts_items:
                    value = _expected_count_of_items(self.pool, request)
                else:
                    drawn.append(request)
                    continue
                self.floor[name] = KnownValue(value, "exact")
            except RecsysError as error:
                self.reasons[name] = str(error)
        length = np.max([self.pool.n_shown(r.k) for r in drawn], axis=0) if drawn else self.pool.places
        self._estimate_floor(drawn, lambda n: self.pool.with_lists(*random_lists(self.pool, length, n)))

    def _try_builder(self, request: Request, builder: Builder) -> bool:
        """Measure what a builder makes; True if all other lists have the same value."""
        constant = False
        try:
            for built in builder(BoundsTask(self.pool, request, self.rules)):
                self._update_best(built.judged, {str(request): request}, proven=built.proven)
                constant = built.constant
        except RecsysError as error:
            self.reasons[str(request)] = str(error)
        return constant

    def _estimate_floor(self, requests: Sequence[Request], make: Callable[[int], Any]) -> None:
        """Estimate floors from random lists; the best random list counts for the best value too."""
        if not requests:
            return
        values_of: dict[str, list[float]] = {str(r): [] for r in requests}
        columns_of: dict[str, list[Float]] = {str(r): [] for r in requests}
        for turn in range(self.n_draws):
            values, columns = self._update_best(make(turn), {str(r): r for r in requests})
            for name, value in values.items():
                values_of[name] += [] if math.isnan(value) else [value]
                columns_of[name] += [columns[name]] if name in columns else []
        for request in requests:
            drawn, drawn_columns = values_of[str(request)], columns_of[str(request)]
            mean = float(np.mean(drawn)) if drawn else math.nan
            error = float(np.std(drawn, ddof=1)) / math.sqrt(len(drawn)) if len(drawn) > 1 else 0.0
            if drawn_columns and request.summary is None:
                # The cases in the mean may differ between draws: each case counts with its own mean.
                sums: Any = sum(np.where(np.isnan(column), 0.0, column) for column in drawn_columns)
                times: Any = sum(~np.isnan(column) for column in drawn_columns)
                per_case = np.divide(sums, times, out=np.full(len(sums), math.nan), where=times > 0)
                mean = _column_mean(self.pool, request, per_case)
            if not math.isnan(mean):
                self.floor[str(request)] = KnownValue(mean, "drawn", error)

    def _update_best(
        self, lists: Any, requests: Mapping[str, Request], *, proven: bool = False
    ) -> tuple[dict[str, float], dict[str, Float]]:
        """Measure lists and record the best value so far, case by case if the metric has values per case."""
        values, columns = self._measure(lists, requests, self.rules)
        for name, request in requests.items():
            if name not in values or name in self._proven:
                continue
            pick = np.fmin if request.metric.better == "lower" else np.fmax
            if name in columns and request.metric.pooling.summary is None:
                column = columns[name] if proven else pick(self._columns.get(name, np.nan), columns[name])
                self._columns[name] = column
                value = _column_mean(self.pool, request, column)
                is_proven = proven or _at_best_bound(request, column)
            else:
                value = values[name] if proven else float(pick(self._best_so_far(name), values[name]))
                is_proven = proven or _at_best_bound(request, np.array([value]))
            self.best[name] = KnownValue(value, "exact" if is_proven else "found")
            self._proven |= {name} if is_proven else set()
        return values, columns

    def _best_so_far(self, name: str) -> float:
        return self.best[name].value if name in self.best else math.nan

    def _measure(
        self, lists: Any, requests: Mapping[str, Request], rules: Conventions
    ) -> tuple[dict[str, float], dict[str, Float]]:
        """The summaries and the values per case, if any; errors of the engine are recorded as reasons."""
        unique = list({str(r): r for r in requests.values()}.values())
        if not unique:
            return {}, {}
        try:
            partial = measure(lists, unique, rules, self.pool.context)
            found = summarise(partial, unique, conventions=rules)
        except RecsysError as error:
            if len(requests) == 1:
                self.reasons |= dict.fromkeys(requests, str(error))
                return {}, {}
            separate = [self._measure(lists, {name: r}, rules) for name, r in requests.items()]
            summaries, values_per_case = zip(*separate, strict=True)
            return dict(ChainMap(*summaries)), dict(ChainMap(*values_per_case))
        columns = {n: c for n, c in partial.rows.columns.items() if n not in partial.terms}
        return (
            {name: found[str(r)] for name, r in requests.items()},
            {name: columns[str(r)] for name, r in requests.items() if str(r) in columns},
        )

    def include_evaluated_lists(self, requests: Sequence[Request], values: Mapping[str, float]) -> None:
        """Count the evaluated lists for the best value too, if they show candidates only."""
        n_invalid = self.pool.n_invalid
        if n_invalid:
            self.notes.append(
                "items listed that are not candidates (seen, outside the catalogue, never, not eligible) "
                f"or are listed twice: {n_invalid:,}; a value may be beyond the best"
            )
            return
        unproven = {str(r): r for r in requests if str(r) in self._columns and str(r) not in self._proven}
        self._update_best(self.pool.judged, unproven)
        for request in requests:
            best, value = self._best_so_far(str(request)), values[str(request)]
            gain = best - value if request.metric.better == "lower" else value - best
            if gain > _TOLERANCE * max(abs(best), 1.0):
                self.best[str(request)] = KnownValue(value, "found")

    def limits(self, request: Request, value: float) -> Limits:
        """Return the limits of one request, with a reason if one is unknown."""
        name = str(request)
        floor, best = self.floor.get(name, KnownValue()), self.best.get(name, KnownValue())
        unknown = math.isnan(floor.value) or math.isnan(best.value)
        missing = _NO_RANDOM_VALUE if math.isfinite(best.value) else _NO_VALUE
        why = self.reasons.get(name, missing) if unknown else ""
        how = ["" if math.isnan(side.value) else side.how for side in (floor, best)]
        return Limits(value, floor.value, best.value, how[0], how[1], floor.error, why)


def _at_best_bound(request: Request, values: Float) -> bool:
    """Return whether every value is at the best end of the metric's range."""
    end = request.metric.bounds[0 if request.metric.better == "lower" else 1]
    known = values[~np.isnan(values)]
    return bool(len(known) and math.isfinite(end) and (np.abs(known - end) <= _TOLERANCE).all())


class _RandomListReading(Reading):
    """A reading of random lists: means over the items shown are their expectation."""

    def __init__(self, reading: Reading, pool: CandidatePool) -> None:
        super().__init__(reading.hits, None, "first", reading.context, reading.list_context)
        self._pool = pool

    def mean_shown(self, k: int | None, values: Float) -> Float:
        """Return the mean over all candidates: each is equally likely to be shown."""
        del k
        return self._pool.mean_over_candidates(values)

    def n_shown(self, k: int | None) -> Int:
        """Return the number of items a random list shows."""
        return self._pool.n_shown(k)


def _expected_mean_of_items(pool: CandidatePool, request: Request, rules: Conventions) -> float:
    """Return the floor of a metric that is a mean over the items shown."""
    conventions = request.conventions(rules)
    reading = _RandomListReading(pool.readings.under(conventions), pool)
    column = np.asarray(request.metric.body(reading, request.k, conventions, **request.own_params))
    low, high = request.metric.bounds
    empty = (
        math.nan if conventions.no_list == "skip" or request.metric.empty is None else request.metric.empty
    )
    column = np.where(pool.n_shown(request.k) > 0, np.clip(column, low, high), empty)
    return _column_mean(pool, request, column)


def _column_mean(pool: CandidatePool, request: Request, column: Float) -> float:
    """Return the summary of one value per case, as the metric defines it."""
    rows = PerCase(
        pool.judged.cases.values, {str(request): column}, pool.judged.clusters, pool.user_context.case_weights
    )
    return summarise(Partial(rows, {}, {}), [request])[str(request)]


def _expected_count_of_items(pool: CandidatePool, request: Request) -> float:
    """Return the floor of a metric that counts different items shown, as a number or as a share."""
    share = np.minimum(pool.n_shown(request.k) / np.maximum(pool.n_declared, 1), 1.0)
    certain = share >= 1.0
    log_missed = np.log1p(-np.where(certain, 0.0, share))
    by_item = np.bincount(pool.item, weights=log_missed[pool.case], minlength=len(pool.items))
    n_certain = np.bincount(pool.item, weights=certain[pool.case], minlength=len(pool.items))
    if not pool.keys_are_allowed:
        # A seen item is not missed by that user's list: it is not a candidate.
        by_item, n_certain = log_missed.sum() - by_item, certain.sum() - n_certain
    shown_to_any = np.where(n_certain > 0, 1.0, -np.expm1(np.minimum(by_item, 0.0)))
    chance = np.where(pool.showable, shown_to_any, 0.0)
    metric, n_items = request.metric.shown, pool.catalogue.n
    if metric.which_items is not None:
        counted = counted_items(pool, request)
        chance, n_items = chance[counted], max(int(counted.sum()), 1)
    return float(chance.sum()) / (n_items if metric.counts_items == "share" else 1)
