"""How often each item was shown, kept by group of cases: it adds up over parts and yields intervals.

Cases are dealt into 64 groups by a hash of their user, so shards agree on the groups without talking to
each other. Only the pairs of group and item that occur are stored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import InputError, NotDefinedError, OutOfBoundsError
from recsys.metrics import CatalogueReading
from recsys.metrics.case_reading import Reading
from recsys.metrics.catalogue_reading import check_weight
from recsys.metrics.requests import Request
from recsys.metrics.weights import discount_weights, geometric_weights
from recsys.stats.resampling import groups_of
from recsys.types import (
    Array,
    Bool,
    Catalogue,
    Codes,
    Context,
    Exposure,
    ExposureKey,
    Float,
    Ids,
    Int,
    Partial,
    Table,
)

N_GROUPS = 64
ROUNDING = 1e-9
# Weights of places are kept as whole multiples of this, so that parts still add up exactly.
_UNIT = 2.0**-36
# Up to this many pairs of group and item a plain table is quicker than sorting.
_SMALL = 1 << 22
_LARGEST = 1 << 25


def gather(reading: Reading, k: int | None, weight: str, *, only: Bool | None = None) -> Exposure:
    """Exposure of the items shown in the first k places; `weight` says what a place is worth."""
    entries, items = reading.shown(k), reading.facts.ids
    case, item, place = entries.case, entries.item, entries.place
    if only is not None:
        kept = only[case]
        case, item, place = case[kept], item[kept], place[kept]
    group = reading.kept("groups of users", lambda: groups_of(reading.beyond.users.values, N_GROUPS))
    # Seen through a group of items, a list that shows none of them is a list all the same.
    listed = reading.n_shown(k) > 0 if weight == "list" else reading.n_listed > 0
    cases = np.bincount(group[listed if only is None else listed & only], minlength=N_GROUPS)
    worth, unit = worth_of(weight, place, reading.n_shown(k)[case])
    codes = group[case] * len(items) + item
    return _summed(items, codes, worth, cases, unit)


def worth_of(weight: str, place: Int, n_shown: Int) -> tuple[Int, float]:
    """What each entry adds, in whole units."""
    if weight == "none":
        return np.ones(len(place), dtype=np.int64), 1.0
    if weight == "list":
        worth = 1.0 / np.sqrt(n_shown)
    else:
        name, _, p = weight.partition(":")
        longest = int(place.max(initial=1))
        table = geometric_weights(float(p), longest) if p else discount_weights(name, longest)
        worth = table[place - 1]
    return np.rint(worth / _UNIT).astype(np.int64), _UNIT


def _summed(items: Ids, pairs: Int, counts: Int, cases: Int, unit: float) -> Exposure:
    width = max(len(items), 1)
    if N_GROUPS * width <= min(max(4 * len(pairs), _SMALL), _LARGEST):
        dense = np.zeros(N_GROUPS * width, dtype=np.int64)
        np.add.at(dense, pairs, counts)
        distinct = np.flatnonzero(dense)
        total = dense[distinct]
    else:
        distinct, back = np.unique(pairs, return_inverse=True)
        total = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(total, back, counts)
    indptr = np.searchsorted(distinct, np.arange(N_GROUPS + 1) * width)
    return Exposure(items, indptr, (distinct % width).astype(np.int32), total, cases, unit)


def added(parts: Sequence[Exposure]) -> Exposure:
    """The exposure of all the cases of some parts, added at once: many small ones cost what they hold."""
    items, moves = _joined([part.items for part in parts])
    pairs = np.concatenate([_pairs(*one, len(items)) for one in zip(parts, moves, strict=True)])
    cases = np.sum([part.cases for part in parts], axis=0)
    return _summed(items, pairs, np.concatenate([part.counts for part in parts]), cases, parts[0].unit)


def _pairs(part: Exposure, moves: Codes | None, width: int) -> Int:
    group = np.repeat(np.arange(N_GROUPS), np.diff(part.indptr))
    return group * width + (part.codes if moves is None else moves[part.codes])


def _joined(parts: Sequence[Ids]) -> tuple[Ids, list[Codes | None]]:
    """All ids of some parts, and where the codes of each go (None: they stay).

    Halves are joined first: an id is met as often as the parts can be halved.
    """
    if len(parts) == 1:
        return parts[0], [None]
    middle = len(parts) // 2
    (one, first), (other, second) = _joined(parts[:middle]), _joined(parts[middle:])
    both, mine, theirs = one.union(other, what="item")
    return both, [*(_then(move, mine) for move in first), *(_then(move, theirs) for move in second)]


def _then(move: Codes | None, further: Codes | None) -> Codes | None:
    return further if move is None else move if further is None else further[move]


def by_group(exposure: Exposure) -> Float:
    """Groups x items, dense."""
    out = np.zeros((N_GROUPS, len(exposure.items)))
    group = np.repeat(np.arange(N_GROUPS), np.diff(exposure.indptr))
    out[group, exposure.codes] = exposure.counts * exposure.unit
    return out


def catalogue_of(ids: Ids | None, n_items: int | None, known: Sequence[tuple[Ids, Array]]) -> Catalogue:
    """The catalogue as given, or else every item that occurs in one of the tables `known`."""
    if ids is not None:
        return Catalogue(ids, len(ids))
    union, _ = _joined([_occurring(items, codes) for items, codes in known])
    return Catalogue(union, len(union), "found") if n_items is None else Catalogue(union, n_items, "number")


def _occurring(items: Ids, codes: Array) -> Ids:
    present = np.zeros(len(items), dtype=bool)
    present[codes] = True
    return Ids(items.values[present])


def whole_catalogue(parts: Sequence[Catalogue]) -> Catalogue:
    """The catalogue of all the parts."""
    first = parts[0]
    if first.how == "ids":
        return first
    ids, _ = _joined([part.ids for part in parts])
    return Catalogue(ids, len(ids) if first.how == "found" else first.n, first.how)


def exposure_key(request: Request, here: Conventions) -> ExposureKey:
    """What a metric of the catalogue is made of: which places, worth what, with which repeats."""
    given = request.own_params
    weight = str(given.get("weight", request.metric.exposure))
    if "weight" in given:
        check_weight(request.metric.name, weight, given["p"])
    if weight == "geometric":
        weight += f":{given['p']!r}"
    return request.k, f"{weight}/{here.ties}/{here.duplicates}"


def kept_context(requests: Sequence[Request], context: Context) -> Context:
    """What metrics of the catalogue read when they are summed up: counts per item, not who had what."""
    wanted = {need for r in requests if r.metric.kind == "catalogue" for need in r.metric.needs}
    if not wanted & {"popularity", "items"}:
        return Context()
    popularity = context.popularity
    if popularity is None and context.train is not None:
        counts = context.train.item_counts.astype(np.float64)
        popularity = Table(context.train.items, {"popularity": counts})
    return Context(popularity=popularity, items=context.items if "items" in wanted else None)


def of_catalogue(partial: Partial, request: Request, conventions: Conventions) -> float:
    """A metric of the catalogue, from the exposure of all cases; NaN where nothing was shown."""
    exposure = partial.exposure[exposure_key(request, request.conventions(conventions))]
    total = exposure.total.astype(np.float64) * exposure.unit
    return catalogue_value(partial, request, conventions, total)


def catalogue_value(
    partial: Partial,
    request: Request,
    conventions: Conventions,
    exposure: Float,
    n_cases: float | None = None,
) -> float:
    """The same from exposure counts handed in, in the order of the exposure's items; for intervals."""
    here = request.conventions(conventions)
    known = partial.exposure[exposure_key(request, here)]
    shown_to = float(known.cases.sum()) if n_cases is None else n_cases
    if partial.catalogue is None:
        raise NotDefinedError(f"{request} has no catalogue.")
    if not shown_to or not partial.catalogue.n:
        return math.nan
    shelf = CatalogueReading(known.items, exposure, partial.catalogue, shown_to, partial.context)
    if len(shelf.shown) > shelf.n_items:
        raise InputError(
            f"{len(shelf.shown):,} items were shown, and the catalogue is said to hold {shelf.n_items:,}.",
            table="catalogue",
            hint="Pass catalogue= with all item ids, or their right number.",
        )
    value = float(request.metric.body(shelf, request.k, here, **request.own_params))  # type: ignore[arg-type]
    low, high = request.metric.bounds
    if value < low - ROUNDING or value > high + ROUNDING:
        raise OutOfBoundsError(f"{request} is {value:.6g}, outside [{low:g}, {high:g}].")
    return min(max(value, low), high)
