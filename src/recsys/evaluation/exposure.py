"""How often each item was shown, by group of cases: counts add up over parts and yield intervals.

Cases are assigned to 64 groups by a hash of their user, so shards agree on the groups without communication.
Only the pairs of group and item that occur are stored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import InputError, NotDefinedError, OutOfBoundsError, Phrase
from recsys.metrics import CatalogueReading
from recsys.metrics.catalogue import place_weights
from recsys.metrics.readings import Reading
from recsys.metrics.registry import Request
from recsys.records.arrays import (
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
# Weights of places are stored as whole multiples of this, so that parts add up exactly.
_UNIT = 2.0**-36
# Up to this many pairs of group and item a dense table is faster than sorting.
_MIN_DENSE = 1 << 22
_MAX_DENSE = 1 << 25


def count_exposure(reading: Reading, k: int | None, weight: str, *, only: Bool | None = None) -> Exposure:
    """Exposure of the items shown in the first k places; `weight` names the weight of a place."""
    entries, items = reading.shown(k), reading.facts.ids
    case, item, place = entries.case, entries.item, entries.place
    if only is not None:
        selected = only[case]
        case, item, place = case[selected], item[selected], place[selected]
    from recsys.stats.bootstrap import groups_of

    group = reading.cached("groups of users", lambda: groups_of(reading.list_context.users.values, N_GROUPS))
    # Restricted to a group of items, a list that shows none of them still counts as a list.
    listed = reading.n_shown(k) > 0 if weight == "list" else reading.n_listed > 0
    cases = np.bincount(group[listed if only is None else listed & only], minlength=N_GROUPS)
    amount, unit = entry_weights(weight, place, reading.n_shown(k)[case])
    codes = group[case] * len(items) + item
    return _sum_pairs(items, codes, amount, cases, unit)


def entry_weights(weight: str, place: Int, n_shown: Int) -> tuple[Int, float]:
    """Return what each entry adds as a whole number of units, and the unit."""
    if weight == "none":
        return np.ones(len(place), dtype=np.int64), 1.0
    if weight == "list":
        amount = 1.0 / np.sqrt(n_shown)
    else:
        name, _, p = weight.partition(":")
        longest = int(place.max(initial=1))
        amount = place_weights(name, float(p or 1.0), longest)[place - 1]
    return np.rint(amount / _UNIT).astype(np.int64), _UNIT


def _sum_pairs(items: Ids, pairs: Int, counts: Int, cases: Int, unit: float) -> Exposure:
    width = max(len(items), 1)
    if N_GROUPS * width <= min(max(4 * len(pairs), _MIN_DENSE), _MAX_DENSE):
        dense = np.zeros(N_GROUPS * width, dtype=np.int64)
        np.add.at(dense, pairs, counts)
        distinct = np.flatnonzero(dense)
        total = dense[distinct]
    else:
        distinct, inverse = np.unique(pairs, return_inverse=True)
        total = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(total, inverse, counts)
    indptr = np.searchsorted(distinct, np.arange(N_GROUPS + 1) * width)
    return Exposure(items, indptr, (distinct % width).astype(np.int32), total, cases, unit)


def add_exposures(parts: Sequence[Exposure]) -> Exposure:
    """Return the exposure of the cases of all parts, added at once, in time proportional to their entries."""
    items, codes_by_part = _union_ids([part.items for part in parts])
    pairs = []
    for part, new_codes in zip(parts, codes_by_part, strict=True):
        group = np.repeat(np.arange(N_GROUPS), np.diff(part.indptr))
        pairs.append(group * len(items) + (part.codes if new_codes is None else new_codes[part.codes]))
    cases = np.sum([part.cases for part in parts], axis=0)
    counts = np.concatenate([part.counts for part in parts])
    return _sum_pairs(items, np.concatenate(pairs), counts, cases, parts[0].unit)


def _union_ids(parts: Sequence[Ids]) -> tuple[Ids, list[Codes | None]]:
    """Return the union of the ids of all parts, and the new codes of each part (None: unchanged).

    Halves are joined recursively, so an id is handled log2(parts) times.
    """
    if len(parts) == 1:
        return parts[0], [None]
    middle = len(parts) // 2
    (one, first), (other, second) = _union_ids(parts[:middle]), _union_ids(parts[middle:])
    union, own_codes, other_codes = one.union(other, what="item")
    return union, [
        *(_compose_codes(move, own_codes) for move in first),
        *(_compose_codes(move, other_codes) for move in second),
    ]


def _compose_codes(move: Codes | None, further: Codes | None) -> Codes | None:
    return further if move is None else move if further is None else further[move]


def exposure_by_group(exposure: Exposure) -> Float:
    """Groups x items, dense."""
    out = np.zeros((N_GROUPS, len(exposure.items)))
    group = np.repeat(np.arange(N_GROUPS), np.diff(exposure.indptr))
    out[group, exposure.codes] = exposure.counts * exposure.unit
    return out


def resolve_catalogue(context: Context, known: Sequence[tuple[Ids, Array]]) -> Catalogue:
    """Return the catalogue as given, else every item that occurs in train or in the tables `known`."""
    if context.catalogue is not None:
        return Catalogue(context.catalogue, len(context.catalogue))
    tables = list(known)
    if context.train is not None:
        tables.append((context.train.items, np.flatnonzero(context.train.item_counts)))
    occurring = []
    for items, codes in tables:
        present = np.zeros(len(items), dtype=bool)
        present[codes] = True
        occurring.append(Ids(items.values[present]))
    union, _ = _union_ids(occurring)
    if context.n_items is None:
        return Catalogue(union, len(union), "found")
    return Catalogue(union, context.n_items, "number")


def union_catalogues(parts: Sequence[Catalogue]) -> Catalogue:
    """Return the catalogue of all the parts."""
    first = parts[0]
    if first.how == "ids":
        return first
    ids, _ = _union_ids([part.ids for part in parts])
    return Catalogue(ids, len(ids) if first.how == "found" else first.n, first.how)


def exposure_key(request: Request, rules: Conventions) -> ExposureKey:
    """Return the exposure a catalogue metric reads: cut-off, weight of places, rules for ties and repeats."""
    params = request.own_params
    weight = str(params.get("weight", request.metric.shown.exposure))
    if weight == "geometric":
        weight += f":{params['p']!r}"
    judged = "/judged" if rules.judged_only == "yes" else ""
    # Lists are compared with one another as sets of items.
    repeats = "first" if weight == "list" and rules.duplicates == "all" else rules.duplicates
    return request.k, f"{weight}/{rules.ties}/{repeats}{judged}"


def catalogue_context(requests: Sequence[Request], context: Context) -> Context:
    """Return the context catalogue metrics need for their summary: counts per item, not who had what."""
    needed = {need for r in requests if r.metric.kind == "catalogue" for need in r.metric.needs}
    if not needed & {"popularity", "items"}:
        return Context()
    popularity = context.popularity
    if popularity is None and context.train is not None:
        counts = context.train.item_counts.astype(np.float64)
        popularity = Table(context.train.items, {"popularity": counts})
    return Context(popularity=popularity, items=context.items if "items" in needed else None)


def catalogue_value(
    partial: Partial,
    request: Request,
    conventions: Conventions,
    exposure: Float | None = None,
    n_cases: float | None = None,
) -> float:
    """Return a catalogue metric, from the exposure of all cases; NaN if nothing was shown.

    For intervals: from other exposure counts, in the order of the exposure's items, of other cases.
    """
    rules = request.conventions(conventions)
    known = partial.exposure[exposure_key(request, rules)]
    amount = known.total.astype(np.float64) * known.unit if exposure is None else exposure
    shown_to = float(known.cases.sum()) if n_cases is None else n_cases
    if partial.catalogue is None:
        raise NotDefinedError(f"{request} has no catalogue.")
    if not shown_to or not partial.catalogue.n:
        return math.nan
    reading = CatalogueReading(known.items, amount, partial.catalogue, shown_to, partial.context)
    if len(reading.shown) > reading.n_items:
        raise InputError(
            f"{len(reading.shown):,} items were shown, but the catalogue has {reading.n_items:,}.",
            table="catalogue",
            hint=Phrase("Pass {catalogue=} with all item ids, or how many there are."),
        )
    value = float(request.metric.body(reading, request.k, rules, **request.own_params))  # type: ignore[arg-type]
    low, high = request.metric.bounds
    if value < low - ROUNDING or value > high + ROUNDING:
        raise OutOfBoundsError(f"{request} is {value:.6g}, outside [{low:g}, {high:g}].")
    return min(max(value, low), high)
