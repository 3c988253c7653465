"""Floor and best of every request, brought together: which way each is found, and what is said about it."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import RecsysError
from recsys.evaluation.bounds import chance, hypothetical_ranks
from recsys.evaluation.bounds.best_lists import any_lists, builder_of
from recsys.evaluation.bounds.bounds_table import Bounds, Limits
from recsys.evaluation.bounds.candidate_pool import CandidatePool
from recsys.evaluation.bounds.list_builders import random_lists
from recsys.evaluation.bounds.task import BestLists, BoundsTask
from recsys.evaluation.engine import combines, measure
from recsys.evaluation.partials import summarise
from recsys.metrics.requests import Request
from recsys.ranks.counting import RankedTruth
from recsys.types import Context, Float, Interactions

_LISTS = 30_000  # chance is drawn until so many lists were, at least and at most so often
_FEWEST, _OFTENEST = 3, 50
_ALMOST = 1e-12
_NOWHERE = "no list of candidates has a value here: no user is in the mean"
_NOT_DRAWN = "no list that was drawn has a value here"
_SUMS = ("mrr", "hit", "hits", "dcg", "rbp", "err")
_COUNTED = ("coverage", "distinct_items", "cold_coverage")


class KnownValue(NamedTuple):
    """One limit, how it is known, and the standard error of a drawn one."""

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
    work = _Work(CandidatePool(judged, context, seen), rules)
    by_list = [r for r in requests if r.metric.ties == "shown"]
    work.rank([r for r in requests if r.metric.ties != "shown"])
    if by_list and work.field.why_not:
        work.why |= {str(r): work.field.why_not for r in by_list}
    elif by_list:
        work.show(by_list)
    work.settle(requests, values)
    limits = {str(r): work.limits(r, values[str(r)]) for r in requests}
    if any(row.floor_how == "drawn" for row in limits.values()):
        worst = max(row.floor_error for row in limits.values())
        work.notes.append(f"drawn {work.turns} times for each user; standard errors up to {worst:.2g}")
    return Bounds(limits, work.notes)


class _Work:
    """What is known so far: the floor of each request, and the best that any lists have had."""

    def __init__(self, field: CandidatePool, rules: Conventions) -> None:
        self.field, self.rules = field, rules
        self.floor: dict[str, KnownValue] = {}
        self.best: dict[str, KnownValue] = {}
        self.why: dict[str, str] = {}
        self.notes: list[str] = []
        self._columns: dict[str, Float] = {}
        self._proven: set[str] = set()

    @property
    def turns(self) -> int:
        """How often chance is drawn."""
        return min(max(-(-_LISTS // max(self.field.n_cases, 1)), _FEWEST), _OFTENEST)

    def rank(self, requests: Sequence[Request]) -> None:
        """Metrics of the places of relevant items."""
        for request in requests:
            builder = builder_of(request)
            if builder is not None:
                self._build(request, builder)
            else:
                worth = hypothetical_ranks.worth_of(self.field, request, self.rules)
                ideal = hypothetical_ranks.ideal(self.field, worth)
                self._take(ideal, {str(request): request}, proven=_is_ours(request))
        level = self.rules.but(ties="expected")
        fair = {str(r): self._cut(r) for r in requests if self._is_mean(r)}
        for name, value in self._values(hypothetical_ranks.tied(self.field), fair, level)[0].items():
            self.floor[name] = KnownValue(value, "exact")
        self._draw(
            [r for r in requests if not self._is_mean(r)], lambda n: hypothetical_ranks.drawn(self.field, n)
        )

    def _is_mean(self, request: Request) -> bool:
        """Whether the metric knows its expectation over tied candidates, and its summary is a mean."""
        metric, cut = request.metric, self._cut(request).k
        combined = metric.kind == "derived" and combines(metric, request.conventions(self.rules))
        # Tied candidates have no end: only those that k leaves out are left out.
        depth = self.field.candidates if cut is None else np.minimum(cut, self.field.candidates)
        ends = bool((depth <= self.field.places).all())
        return metric.ties != "refuse" and metric.summary is None and ends and not combined

    def _cut(self, request: Request) -> Request:
        """Ready lists end somewhere, whatever k; sums over places are the same if k ends there too."""
        longest = max(int(self.field.places.max(initial=1)), 1)
        if request.metric.name not in _SUMS or (request.k is not None and request.k <= longest):
            return request
        return request.at(longest)

    def show(self, requests: Sequence[Request]) -> None:
        """Metrics of the items shown."""
        drawn = []
        for request in requests:
            name = str(request)
            builder = builder_of(request)
            if builder is not None:
                self._build(request, builder)
            try:
                if builder is any_lists and not (request.metric.name == "valid" and self.field.complete):
                    self.floor[name] = KnownValue(self._known(name), "exact")
                elif request.metric.mean_of_items and request.own_params.get("cold") != "drop":
                    value = chance.mean_of_items(self.field, request, self.rules)
                    self.floor[name] = KnownValue(value, "exact")
                elif request.metric.name in _COUNTED:
                    self.floor[name] = KnownValue(chance.coverage(self.field, request), "exact")
                else:
                    drawn.append(request)
            except RecsysError as error:
                self.why[name] = str(error)
        length = np.max([self.field.shown(r.k) for r in drawn], axis=0) if drawn else self.field.places
        self._draw(drawn, lambda n: self.field.listing(*random_lists(self.field, length, n)))

    def _build(self, request: Request, builder: Callable[[BoundsTask], Iterable[BestLists]]) -> None:
        try:
            for built in builder(BoundsTask(self.field, request, self.rules)):
                self._take(built.judged, {str(request): request}, proven=built.proven)
        except RecsysError as error:
            self.why[str(request)] = str(error)

    def _draw(self, requests: Sequence[Request], make: Callable[[int], Any]) -> None:
        """Chance drawn again and again; what it finds counts for the best too."""
        if not requests:
            return
        tallies = {str(r): _Tally() for r in requests}
        for turn in range(self.turns):
            values, columns = self._take(make(turn), {str(r): r for r in requests})
            for name, value in values.items():
                tallies[name].add(value, columns.get(name))
        for request in requests:
            found = tallies[str(request)]
            mean, error = found.mean, found.error
            if found.times is not None and request.metric.summary is None:
                # Who is in the mean may change from draw to draw: each case counts with its own mean.
                mean = chance.column_mean(self.field, request, found.per_case)
            if not math.isnan(mean):
                self.floor[str(request)] = KnownValue(mean, "drawn", error)

    def _take(
        self, lists: Any, requests: Mapping[str, Request], *, proven: bool = False
    ) -> tuple[dict[str, float], dict[str, Float]]:
        """Measure lists; the best of them so far is kept, case by case where a metric has cases."""
        values, columns = self._values(lists, requests, self.rules)
        for name, request in requests.items():
            if name not in values or name in self._proven:
                continue
            pick = np.fmin if request.metric.better == "lower" else np.fmax
            if name in columns and request.metric.summary is None:
                column = columns[name] if proven else pick(self._columns.get(name, np.nan), columns[name])
                self._columns[name] = column
                value = chance.column_mean(self.field, request, column)
                proven_here = proven or _at_end(request, column)
            else:
                value = values[name] if proven else float(pick(self._known(name), values[name]))
                proven_here = proven or _at_end(request, np.array([value]))
            self.best[name] = KnownValue(value, "exact" if proven_here else "found")
            self._proven |= {name} if proven_here else set()
        return values, columns

    def _known(self, name: str) -> float:
        return self.best[name].value if name in self.best else math.nan

    def _values(
        self, lists: Any, requests: Mapping[str, Request], rules: Conventions
    ) -> tuple[dict[str, float], dict[str, Float]]:
        """The value and, where there is one, the value a case; what the engine refuses is said."""
        asked = list({str(r): r for r in requests.values()}.values())
        if not asked:
            return {}, {}
        try:
            partial = measure(lists, asked, rules, self.field.context)
            found = summarise(partial, asked, conventions=rules)
        except RecsysError as error:
            if len(requests) == 1:
                self.why |= dict.fromkeys(requests, str(error))
                return {}, {}
            alone = [self._values(lists, {name: r}, rules) for name, r in requests.items()]
            return dict(ChainMap(*(one[0] for one in alone))), dict(ChainMap(*(one[1] for one in alone)))
        columns = {n: c for n, c in partial.per_case.columns.items() if n not in partial.terms}
        return (
            {name: found[str(r)] for name, r in requests.items()},
            {name: columns[str(r)] for name, r in requests.items() if str(r) in columns},
        )

    def settle(self, requests: Sequence[Request], values: Mapping[str, float]) -> None:
        """The lists that were evaluated count for the best too, if they keep to the candidates."""
        odd = self.field.n_odd
        if odd:
            self.notes.append(
                "items listed that are no candidates (seen, outside the catalogue, never, not eligible) "
                f"or stand twice: {odd:,}; a value may lie beyond the best"
            )
            return
        built = {str(r): r for r in requests if str(r) in self._columns and str(r) not in self._proven}
        self._take(self.field.judged, built)
        for request in requests:
            if self._beaten(request, values[str(request)]):
                self.best[str(request)] = KnownValue(values[str(request)], "found")

    def _beaten(self, request: Request, value: float) -> bool:
        best = self._known(str(request))
        more = best - value if request.metric.better == "lower" else value - best
        return bool(more > _ALMOST * max(abs(best), 1.0))

    def limits(self, request: Request, value: float) -> Limits:
        """What is known about one request, with a reason where it is not."""
        name = str(request)
        floor, best = self.floor.get(name, KnownValue()), self.best.get(name, KnownValue())
        unknown = math.isnan(floor.value) or math.isnan(best.value)
        nowhere = _NOT_DRAWN if math.isfinite(best.value) else _NOWHERE
        why = self.why.get(name, nowhere) if unknown else ""
        how = ["" if math.isnan(side.value) else side.how for side in (floor, best)]
        return Limits(value, floor.value, best.value, how[0], how[1], floor.error, why)


class _Tally:
    """Values of one metric over several draws, and their sums a case where it has cases."""

    def __init__(self) -> None:
        self._values: list[float] = []
        self._sums: Float = np.zeros(0)
        self.times: Float | None = None

    def add(self, value: float, column: Float | None) -> None:
        """One more draw."""
        if not math.isnan(value):
            self._values.append(value)
        if column is not None:
            there = ~np.isnan(column)
            self._sums = np.where(there, column, 0.0) + (0.0 if self.times is None else self._sums)
            self.times = there + (0.0 if self.times is None else self.times)

    @property
    def mean(self) -> float:
        return float(np.mean(self._values)) if self._values else math.nan

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        n = len(self._values)
        return float(np.std(self._values, ddof=1)) / math.sqrt(n) if n > 1 else 0.0

    @property
    def per_case(self) -> Float:
        """The mean of each case over the draws in which it has a value."""
        times = np.zeros(0) if self.times is None else self.times
        return np.asarray(np.divide(self._sums, times, out=np.full(len(times), math.nan), where=times > 0))


def _is_ours(request: Request) -> bool:
    """Whether the metric is one of this library's: of another nobody has shown that this order is best."""
    return request.metric.body.__module__.startswith("recsys.")


def _at_end(request: Request, values: Float) -> bool:
    """Whether nothing can be better since the metric has no better values."""
    end = request.metric.bounds[0 if request.metric.better == "lower" else 1]
    told = values[~np.isnan(values)]
    return bool(len(told) and math.isfinite(end) and (np.abs(told - end) <= _ALMOST).all())
