"""What a number could have been under the same protocol: the best any list reaches, and what chance gives.

The best list holds the reachable relevant items first; a random one has all candidates tied, and the
metrics already know the expectation over tied items. Neither needs a list to be drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from recsys import tables
from recsys.conventions import Conventions
from recsys.counted import Counted, Judged
from recsys.engine import measure, summarise
from recsys.exposure import catalogue_of
from recsys.metrics.item_facts import ItemFacts
from recsys.metrics.reading import Reading
from recsys.plan import Request
from recsys.types import Array, Bool, Catalogue, Context, Float, Hits, Ids, Int, Interactions, entries_of


class Limits(NamedTuple):
    """The value, what a random ranking has on average, and the best attainable one; NaN where not known."""

    value: float
    floor: float
    best: float

    @property
    def reached(self) -> float:
        """How much of the way from chance to the best was gone."""
        span = self.best - self.floor
        return (self.value - self.floor) / span if span else math.nan


class Bounds(Mapping[str, Limits]):
    """{metric: its value, floor and best attainable value}; prints as a table."""

    def __init__(self, limits: Mapping[str, Limits]) -> None:
        self._limits = dict(limits)

    def __getitem__(self, metric: str) -> Limits:
        return self._limits[metric if metric in self._limits else str(Request.parse(metric))]

    def __iter__(self) -> Iterator[str]:
        return iter(self._limits)

    def __len__(self) -> int:
        return len(self._limits)

    def to_frame(self, kind: str = "pandas") -> Any:
        """metric, value, floor, best, reached as a pandas, polars or arrow table."""
        return tables.frame(self._columns(), kind)

    def to_markdown(self) -> str:
        return tables.markdown(self._columns())

    def __repr__(self) -> str:
        said = "best: the best any list can reach; floor: a random ranking of the candidates, on average"
        return "\n".join([tables.text(self._columns()), "", said])

    def _columns(self) -> dict[str, list[Any]]:
        rows = self._limits.values()
        return {
            "metric": list(self._limits),
            "value": [r.value for r in rows],
            "floor": [r.floor for r in rows],
            "best": [r.best for r in rows],
            "reached": [r.reached for r in rows],
        }


@dataclass(frozen=True, eq=False)
class Placed:
    """The truth of an evaluation with its items put at other places."""

    whole: Judged
    found: Hits
    groups: bool | None

    def __getattr__(self, name: str) -> Any:
        """Everything but the places is that of the whole."""
        return getattr(self.whole, name)

    def hits(self, ties: str, duplicates: str) -> Hits:
        """The places that were set."""
        del ties, duplicates
        return self.found


@dataclass(frozen=True, eq=False)
class Field:
    """Who may be ranked for whom: reachable truth entries, places to fill and candidates of each case."""

    reachable: Bool
    places: Int
    candidates: Int
    catalogue: Catalogue
    seen: tuple[Int, Int] | None = None


def bounds_of(
    judged: Judged,
    requests: Sequence[Request],
    values: Mapping[str, float],
    *,
    rules: Conventions,
    context: Context,
    seen: Interactions | None,
) -> Bounds:
    """Floor and best value of every request."""
    field = _field(judged, context, seen)
    by_rank = [r for r in requests if "lists" not in r.metric.needs and "predictions" not in r.metric.needs]
    cut = {str(r): _cut(r, judged, field) for r in by_rank}
    best = _measured(Placed(judged, _ideal(judged, field, rules), None), cut, rules, context)
    fair = {name: r for name, r in cut.items() if r.metric.ties != "refuse"}
    floor = _measured(
        Placed(judged, _tied(judged, field), groups=True), fair, rules.but(ties="expected"), context
    )
    for request in requests:
        if "lists" in request.metric.needs:
            found = _of_items(request, rules, context, field)
            floor[str(request)], best[str(request)] = found
    return Bounds({n: Limits(v, floor.get(n, math.nan), best.get(n, math.nan)) for n, v in values.items()})


def _cut(request: Request, judged: Judged, field: Field) -> Request:
    """Without a cut-off, ready lists end somewhere all the same."""
    ends = isinstance(judged, Counted) or judged.hits("by_id", "first").n_candidates is not None
    if ends or request.k is not None or request.metric.at_k == "never":
        return request
    return request.at(max(int(field.places.max(initial=1)), 1))


def _measured(
    placed: Any, requests: Mapping[str, Request], rules: Conventions, context: Context
) -> dict[str, float]:
    if not requests:
        return {}
    asked = list({str(r): r for r in requests.values()}.values())
    values = summarise(measure(placed, asked, rules, context), asked, conventions=rules)
    return {name: values[str(r)] for name, r in requests.items()}


def _field(judged: Judged, context: Context, seen: Interactions | None) -> Field:
    hits = judged.hits("by_id", "first")
    known: list[tuple[Ids, Array]] = [(judged.items, judged.judged)]
    if isinstance(judged, Counted):
        catalogue = catalogue_of(context.catalogue, context.n_items, known)
        met = _met(judged, catalogue, seen)
        return Field(judged.above >= 0, judged.n_candidates, judged.n_candidates, catalogue, met)
    known.append((judged.items, judged.shown("by_id").codes))
    if context.train is not None:
        known.append((context.train.items, context.train.codes))
    catalogue = catalogue_of(context.catalogue, context.n_items, known)
    reachable = np.ones(len(judged.judged), dtype=bool)
    if catalogue.how == "ids":
        reachable &= (catalogue.ids.code_of(judged.items.values) >= 0)[judged.judged]
    candidates = np.full(len(judged.cases), catalogue.n)
    if seen is not None:
        reachable &= ~_in_history(judged, seen)
    met = _met(judged, catalogue, seen)
    if met is not None:
        candidates = candidates - np.bincount(met[0], minlength=len(judged.cases))
    if hits.n_candidates is not None:
        return Field(reachable, hits.n_candidates, hits.n_candidates, catalogue, met)
    owner = np.repeat(np.arange(len(judged.cases)), np.diff(judged.truth_indptr))
    candidates = np.maximum(candidates, np.bincount(owner[reachable], minlength=len(judged.cases)))
    places = np.minimum(int(hits.n_listed.max(initial=0)), candidates)
    return Field(reachable, places, candidates, catalogue, met)


def _met(judged: Judged, catalogue: Catalogue, seen: Interactions | None) -> tuple[Int, Int] | None:
    """Pairs of case and item of the catalogue that the case had seen."""
    if seen is None:
        return None
    case, at = entries_of(seen, judged.cases)
    item = catalogue.ids.code_of(seen.items.values)[seen.codes[at]]
    return case[item >= 0], item[item >= 0]


def _in_history(judged: Judged, seen: Interactions) -> Bool:
    case, at = entries_of(seen, judged.cases)
    width = max(len(judged.items), 1)
    item = judged.items.code_of(seen.items.values)[seen.codes[at]]
    have = case[item >= 0] * width + item[item >= 0]
    owner = np.repeat(np.arange(len(judged.cases)), np.diff(judged.truth_indptr))
    return np.isin(owner * width + judged.judged, have)


def _entries(judged: Judged, field: Field) -> tuple[Int, Int]:
    """The case and the truth entry of every reachable item."""
    owner = np.repeat(np.arange(len(judged.cases)), np.diff(judged.truth_indptr))
    at = np.flatnonzero(field.reachable)
    return owner[at], at


def _ideal(judged: Judged, field: Field, conventions: Conventions) -> Hits:
    """The reachable items first, the best of them at the top."""
    case, at = _entries(judged, field)
    worth = np.ones(len(at)) if judged.grades is None else judged.grades[at]
    if conventions.relevant_from is not None:
        worth = np.where(worth >= conventions.relevant_from, worth, 0.0)
    if judged.item_weights is not None:
        worth = worth * judged.item_weights[judged.judged[at]]
    order = np.lexsort((-worth, case))
    case, at, worth = case[order], at[order], worth[order]
    first = np.searchsorted(case, case, side="left")
    rank = np.arange(1, len(case) + 1) - first
    keep = (rank <= field.places[case]) & (worth > 0)
    return _hits(judged, field, case[keep], at[keep], (rank[keep], None))


def _tied(judged: Judged, field: Field) -> Hits:
    """Every candidate at one level."""
    case, at = _entries(judged, field)
    worth = np.ones(len(at)) if judged.grades is None else judged.grades[at]
    order = np.lexsort((-worth, case))
    case, at = case[order], at[order]
    return _hits(judged, field, case, at, (np.ones(len(case), dtype=np.int64), field.candidates[case]))


def _hits(judged: Judged, field: Field, case: Int, at: Int, places: tuple[Int, Int | None]) -> Hits:
    rank, tied = places
    hits = judged.hits("by_id", "first")
    item = judged.judged[at]
    weights = judged.item_weights
    return replace(
        hits,
        case=case.astype(np.int32),
        item=item,
        rank=rank,
        grade=None if judged.grades is None else judged.grades[at],
        tied=tied,
        repeat=None,
        weight=None if weights is None else weights[item],
        n_listed=field.places,
        n_candidates=None if hits.n_candidates is None else field.candidates,
    )


def _of_items(
    request: Request, conventions: Conventions, context: Context, field: Field
) -> tuple[float, float]:
    """Floor and best of a metric about the items shown, where they follow from the catalogue alone."""
    metric, k = request.metric, request.k or int(field.places.max(initial=1))
    n, shown = field.catalogue.n, np.minimum(field.places, k)
    if metric.name in ("coverage", "distinct_items"):
        scale = 1.0 if metric.name == "coverage" else float(n)
        return _chance_of_showing(field, shown) * scale, min(1.0, float(shown.sum()) / n) * scale
    if (
        not metric.mean_of_items
        or request.own_params.get("cold") == "drop"
        or field.catalogue.how == "number"
    ):
        return math.nan, math.nan
    here = request.conventions(conventions)
    values = np.asarray(metric.body(_OneByOne(field.catalogue.ids, context), k, here, **request.own_params))
    ordered = np.sort(values) if metric.better == "lower" else np.sort(values)[::-1]
    return float(values.mean()), float(ordered[:k].mean())


def _chance_of_showing(field: Field, shown: Int) -> float:
    """The share of the catalogue that random lists show on average."""
    share = np.minimum(shown / np.maximum(field.candidates, 1), 1.0)
    with np.errstate(divide="ignore"):
        missed = np.log1p(-share)
    # An item a user has seen is not missed by that user's list: it is no candidate.
    by_item = np.full(field.catalogue.n, missed.sum())
    if field.seen is not None:
        case, item = field.seen
        certain = share >= 1.0
        n_certain = np.full(field.catalogue.n, int(certain.sum()))
        np.subtract.at(n_certain, item, certain[case])
        by_item = np.full(field.catalogue.n, missed[~certain].sum())
        np.subtract.at(by_item, item, np.where(certain, 0.0, missed)[case])
        by_item = np.where(n_certain > 0, -np.inf, by_item)
    return float(-np.expm1(by_item).mean())


class _OneByOne(Reading):
    """Every item of the catalogue as a list of its own: a mean over the items shown is the item's value."""

    def __init__(self, ids: Ids, context: Context) -> None:
        self._all = ItemFacts(ids, context)
        none, codes = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
        hits = Hits(len(ids), codes, codes, none, None, np.ones(len(ids), dtype=np.int64), none, None)
        super().__init__(hits, None, "first", context)

    @property
    def facts(self) -> ItemFacts:
        return self._all

    def mean_shown(self, k: int | None, values: Float) -> Float:
        """The value of each item."""
        del k
        return values
