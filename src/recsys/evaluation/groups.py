"""Results by group of `by=`: the users or items in each group, its values, and the gap between groups.

Groups are built from what was known before the test (train, tables of users and items), never from the
evaluated users, so that a part of the users falls into the same groups as all of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import InputError, NotDefinedError, Phrase, UnknownNameError, came_as
from recsys.evaluation.engine import exposures, measure, summarise
from recsys.evaluation.options import look_up
from recsys.inputs.timestamps import to_seconds
from recsys.metrics.attributes import parse_labels
from recsys.metrics.ranges import Range
from recsys.metrics.registry import Request
from recsys.ranks.ranked_truth import ItemSubset, RankedTruth
from recsys.records.arrays import (
    Array,
    Bool,
    Catalogue,
    Context,
    Float,
    Ids,
    Int,
    Partial,
    PerCase,
    Stratum,
    cached_property,
)

_MIN_USERS = 10  # users a group must have before its mean has an interval
_MAX_BINS = 10_000
_MAX_DISTINCT = 12  # a numeric column with more distinct values is split into quarters


@dataclass(frozen=True, eq=False)
class Groups:
    """A label for each id, several if an item has several; an id without a label is in no group."""

    of: str
    ids: Ids
    cells: Array
    rest: str | None = None

    def masks(self, ids: Ids) -> dict[str, Bool]:
        """Return which of these ids belong to each group, groups in order."""
        if len(self.ids):
            self.ids.same_kind(ids, what=self.of)
        at = self.ids.code_of(ids.values)
        kind_of_row, members = self._kinds
        kind = kind_of_row[at]
        masks = {label: np.asarray(member[kind]) for label, member in members.items()}
        if self.rest is None:
            return masks
        others = at < 0
        return {self.rest: masks.pop(self.rest) | others if self.rest in masks else others, **masks}

    @cached_property
    def _kinds(self) -> tuple[Int, dict[str, Bool]]:
        """A number for each row's cell, and the numbers each label has; the last is for ids without a row."""
        cells = [(type(cell), cell) for cell in self.cells.tolist()]  # 1 and True are two labels
        kinds = {cell: number for number, cell in enumerate(dict.fromkeys(cells))}  # each distinct cell once
        kind = np.fromiter((kinds[cell] for cell in cells), dtype=np.int64, count=len(cells))
        members: dict[str, Bool] = {}
        for (_, cell), number in kinds.items():
            for label in parse_labels(cell):
                members.setdefault(label, np.zeros(len(kinds) + 1, dtype=bool))[number] = True
        ordered = sorted(members, key=_numeric_sort_key)
        return np.append(kind, len(kinds)), {label: members[label] for label in ordered}


By = Groups | Mapping[Any, Any] | Callable[[Any], Any]


def with_strata(
    partial: Partial,
    judged: RankedTruth,
    requests: Sequence[Request],
    *,
    conventions: Conventions,
    context: Context,
    by: By,
) -> Partial:
    """Return the result with one stratum per group."""
    groups = by if isinstance(by, Groups) else None
    strata = {}
    if groups is not None and groups.of == "item":
        # The same rankings, restricted to the items of each group.
        whole = partial.catalogue
        inside = {} if whole is None else groups.masks(whole.ids)
        for label, mask in groups.masks(judged.items).items():
            part = measure(ItemSubset(judged, mask), requests, conventions, context)
            if whole is not None:
                ids = Ids(whole.ids.values[inside[label]])
                how = "ids" if whole.how == "ids" else "found"
                part = replace(part, catalogue=Catalogue(ids, len(ids), how))
            strata[label] = Stratum("item", part)
        labelled = np.zeros(len(judged.items), dtype=bool)
        for mask in groups.masks(judged.items).values():
            labelled |= mask
        n_without = int((~labelled[judged.judged]).sum())
        counts = {**partial.counts, "items_without_group": n_without} if n_without else partial.counts
        return replace(partial, strata=strata, counts=counts)
    if groups is None:
        masks = masks_by_label(judged.cases.values, by)  # type: ignore[arg-type]
    else:
        users = judged.cases if judged.clusters is None else Ids(judged.clusters)
        masks = {label: mask for label, mask in groups.masks(users).items() if mask.any()}
    # Groups of users share the per-case columns; exposure is counted per group.
    for label, shown in exposures(judged, requests, conventions, context, groups=masks).items():
        rows = PerCase(judged.cases.values[masks[label]], {})
        part = Partial(rows, {}, {"cases": len(rows)}, shown, partial.catalogue, partial.context)
        strata[label] = Stratum("user", part)
    n_without = (
        len(judged.cases) - int(np.any([*masks.values()], axis=0).sum()) if masks else len(judged.cases)
    )
    counts = {**partial.counts, "users_without_group": n_without} if n_without else partial.counts
    return replace(partial, strata=strata, counts=counts)


def groups_from_name(by: str, context: Context) -> Groups:
    """Return the groups of a name: one built from train, or a column of users or items."""
    name, bracket, inside = (part.strip() for part in by.partition("("))
    if name in _BUILT_IN_GROUPS:
        make, known, value = _BUILT_IN_GROUPS[name]
        if bracket:
            param, _, text = (part.strip() for part in inside.removesuffix(")").partition("="))
            if param != known:
                raise UnknownNameError(f"parameter of {name}", param, [known])
            try:
                value = float(text)
            except ValueError:
                value = math.nan
            if not (1 <= value <= _MAX_BINS if param == "bins" else 0 <= value < math.inf):
                raise InputError(
                    f"by={by!r}: {param} is {text!r}.",
                    hint=f"Write a number, such as by='{name}({param}=4)'"
                    + (f"; at most {_MAX_BINS:,}." if param == "bins" else "."),
                )
        return make(context, value)
    name = by.strip()
    side, _, column = name.rpartition(":")
    tables = {s: t for s, t in (("user", context.users), ("item", context.items)) if t is not None}
    holders = [s for s, table in tables.items() if column in table.columns and side in ("", s)]
    if len(holders) == 1:
        table = tables[holders[0]]
        return Groups(holders[0], table.ids, _column_labels(table.columns[column]))
    if holders:
        raise InputError(
            f"users and items both have a column {column!r}.",
            hint=Phrase("Write {by=} or 'item:{}'.", column, by=f"user:{column}"),
        )
    names = [f"{s}:{c}" for s, table in tables.items() for c in table.columns]
    raise UnknownNameError(
        "group", by, [*_BUILT_IN_GROUPS, *names], hint=Phrase("Pass {users=} or {items=} with such a column.")
    )


def _activity(context: Context, bins: float) -> Groups:
    train = _require_train(context)
    active = np.flatnonzero(train.sizes)  # a matrix has rows of users who had nothing; a table has none
    labels = quantile_labels(train.sizes[active].astype(np.float64), int(bins))
    return Groups("user", Ids(train.cases.values[active]), labels, rest="0")


def _cold_user(context: Context, below: float) -> Groups:
    train = _require_train(context)
    labels = np.where(train.sizes < below, "cold", "warm").astype(object)
    return Groups("user", train.cases, labels, rest="cold")


def _popularity(context: Context, bins: float) -> Groups:
    train = _require_train(context)
    counts = train.item_counts
    occurring = np.flatnonzero(counts)
    labels = quantile_labels(counts[occurring].astype(np.float64), int(bins))
    return Groups("item", Ids(train.items.values[occurring]), labels, rest="0")


def _cold_item(context: Context, below: float) -> Groups:
    train = _require_train(context)
    labels = np.where(train.item_counts < below, "cold", "warm").astype(object)
    return Groups("item", train.items, labels, rest="cold")


def _item_age(context: Context, bins: float) -> Groups:
    train = _require_train(context)
    if train.times is None:
        raise NotDefinedError("by='item_age' needs the times of train.", hint="Give train a time column.")
    seconds = to_seconds(train.times)
    first = np.full(len(train.items), np.inf)
    np.fmin.at(first, train.codes, seconds)
    occurring = np.flatnonzero(np.isfinite(first))
    age = np.fmax.reduce(seconds, initial=0.0) - first[occurring]
    place = _quantile_bin(age, int(bins))
    names = np.array([f"age {number + 1} of {int(bins)}" for number in range(int(bins))], dtype=object)
    return Groups("item", Ids(train.items.values[occurring]), names[place], rest="new")


def _require_train(context: Context) -> Any:
    if context.train is None:
        raise NotDefinedError("these groups are of what users had before.", hint=Phrase("Pass {train=}."))
    return context.train


_BUILT_IN_GROUPS: dict[str, tuple[Callable[[Context, float], Groups], str, float]] = {
    "activity": (_activity, "bins", 4.0),
    "cold_user": (_cold_user, "below", 3.0),
    "popularity": (_popularity, "bins", 10.0),
    "cold_item": (_cold_item, "below", 5.0),
    "item_age": (_item_age, "bins", 4.0),
}


def _column_labels(values: Array) -> Array:
    """Return the labels of a column: its values, or quarters of a numeric column with many of them."""
    known = ~np.isnan(values * 1.0) if values.dtype.kind in "fiu" else None
    if known is not None and len(np.unique(values[known])) > _MAX_DISTINCT:
        out = np.full(len(values), None, dtype=object)
        out[known] = quantile_labels(values[known].astype(np.float64), 4)
        return out
    # 2.0 is labelled "2".
    labels = [str(int(v)) if isinstance(v, float) and v.is_integer() else v for v in values.tolist()]
    return np.array(labels, dtype=object)


def quantile_labels(values: Float, bins: int) -> Array:
    """Labels "low-high" of groups about equally large; equal values stay together.

    >>> quantile_labels(np.array([1.0, 1.0, 2.0, 5.0, 9.0, 9.0]), 3).tolist()
    ['1', '1', '2-5', '2-5', '9', '9']
    """
    if bins < 1:
        raise InputError(f"bins={bins} is not positive.", hint="Write by='activity(bins=4)'.")
    place = _quantile_bin(values, bins)
    out = np.empty(len(values), dtype=object)
    for number in np.unique(place).tolist():
        inside = values[place == number]
        low, high = f"{inside.min():g}", f"{inside.max():g}"
        out[place == number] = low if low == high else f"{low}-{high}"
    return out


def _quantile_bin(values: Float, bins: int) -> Array:
    if len(values) == 0:
        return np.zeros(0, dtype=np.int64)
    shares = np.arange(1, bins) / bins
    edges = np.unique(np.quantile(values, shares, method="inverted_cdf"))
    return np.searchsorted(edges, values, side="left")


def _numeric_sort_key(label: str) -> tuple[float, str]:
    number = re.match(r"-?[\d.]+(?:e[+-]?\d+)?", label)
    try:
        return (float(number.group()) if number else np.inf), label
    except ValueError:
        return np.inf, label


def masks_by_label(ids: Array, by: Mapping[Any, Any] | Callable[[Any], Any]) -> dict[Any, Bool]:
    """Return which cases belong to each group, groups in order."""
    keyed = hasattr(by, "items") and hasattr(by, "__getitem__")
    if not keyed and not callable(by):
        raise came_as("by=", by, hint="Pass {user: group}, or a function of the user id.")
    labels = [look_up(by, i, "by") if keyed else by(i) for i in ids.tolist()]  # type: ignore[arg-type, operator]
    for label in labels:
        if not _is_label(label):
            raise InputError(
                f"by= holds the group {label!r}.", hint="A group is a text or a number, one for each user."
            )
    labels = [None if _is_missing(label) else label for label in labels]
    # A user without a label is in no group.
    masks = {label: np.zeros(len(labels), dtype=bool) for label in ordered_labels(set(labels) - {None}, by)}
    for at, label in enumerate(labels):
        if label is not None:
            masks[label][at] = True
    return masks


def ordered_labels(labels: Iterable[Any], by: By) -> list[Any]:
    """Labels as results show them: as `by` orders them, or numbers first, then others by type and text."""
    if isinstance(by, Groups):
        place = {label: number for number, label in enumerate(by.masks(Ids(np.zeros(0, dtype=np.int64))))}
        return sorted(labels, key=place.__getitem__)
    return sorted(labels, key=lambda x: ("", x) if isinstance(x, int | float) else (type(x).__name__, str(x)))


def _is_label(label: Any) -> bool:
    """Return whether a group can be called so: a single value that can be a key."""
    try:
        hash(label)
    except TypeError:
        return False
    return len(getattr(label, "shape", ())) == 0


def _is_missing(label: Any) -> bool:
    """Return whether a label is None, NaN, NaT or pandas' NA, none of which equals itself."""
    try:
        return label is None or bool(label != label)  # noqa: PLR0124
    except TypeError:  # pandas' NA has no truth value
        return True


def masks_of(partial: Partial) -> dict[Any, Bool]:
    """Return {group: which cases are in it}; for a group of items, the cases that have one of its items."""
    masks = {}
    for label, stratum in partial.strata.items():
        rows = stratum.partial.rows
        if stratum.of == "user":
            mask = np.zeros(len(partial.rows), dtype=bool)
            mask[Ids(partial.rows.ids).code_of(rows.ids)] = True
        else:
            mask = np.zeros(len(rows.ids), dtype=bool) if rows.columns else np.ones(len(rows.ids), dtype=bool)
            for column in rows.columns.values():
                mask |= ~np.isnan(column)
        masks[label] = mask
    return masks


def values_by_group(
    partial: Partial, requests: Sequence[Request], conventions: Conventions, masks: Mapping[Any, Bool]
) -> dict[Any, dict[str, float]]:
    """Return {group: {metric: value}}.

    A group of items has its own values, a group of users is part of the rows.
    """
    out = {}
    for label, mask in masks.items():
        stratum = partial.strata.get(label)
        if stratum is not None and stratum.of == "item":
            out[label] = summarise(stratum.partial, requests, conventions=conventions)
            continue
        out[label] = summarise(partial, requests, mask)
        if stratum is not None:
            catalogue_requests = [r for r in requests if r.metric.kind == "catalogue"]
            out[label] |= summarise(stratum.partial, catalogue_requests, conventions=conventions)
    return out


class Gap(NamedTuple):
    """How far apart the best and the worst group are in one metric.

    `interval` is of confidence 95% for every pair of `simultaneous_over` groups at once, as any two of them
    could have been the best and the worst. Difference and ratio are those of the users seen.
    """

    best: Any
    worst: Any
    difference: float
    ratio: float
    interval: tuple[float, float] | None = None
    simultaneous_over: int | None = None


def gap_of(values: Mapping[Any, float], better: str) -> Gap:
    """Return the best and the worst of {group: value}; `better` is the direction of the metric.

    If 0 is best, the gap is between distances from 0.

    >>> gap_of({"cold": 0.25, "warm": 0.5}, "higher")
    Gap(best='warm', worst='cold', difference=0.25, ratio=0.5, interval=None, simultaneous_over=None)
    """
    known = {label: value for label, value in values.items() if not math.isnan(value)}
    if not known:
        return Gap(None, None, math.nan, math.nan)
    if better == "zero":
        known = {label: abs(value) for label, value in known.items()}
    order = sorted(known, key=lambda label: known[label], reverse=better == "higher")
    high, low = max(known.values()), min(known.values())
    return Gap(order[0], order[-1], high - low, low / high if high else math.nan)


def with_interval(
    gap: Gap, rows: PerCase, name: str, groups: Mapping[Any, Bool], bounds: Range | None
) -> Gap:
    """Return the gap with an interval of the difference of two means; without it if groups share users.

    The means have their own intervals, which allow for values not seen; the reaches of the two towards each
    other add up in squares, and so do those away from each other. Their confidence is Tukey's for every pair
    of groups with a value, of which the data chose these two.
    """
    from recsys.errors import notes_only
    from recsys.stats.corrections import pairwise_confidence
    from recsys.stats.intervals import mean_interval

    column, users = rows.columns[name], rows.ids if rows.clusters is None else rows.clusters
    known = [groups[label] & ~np.isnan(column) for label in (gap.best, gap.worst)]
    first, second = (np.unique(users[group]) for group in known)
    if len(np.intersect1d(first, second)) or min(len(first), len(second)) < _MIN_USERS:
        return gap
    n_groups = sum(bool((group & ~np.isnan(column)).any()) for group in groups.values())
    level = pairwise_confidence(n_groups)
    with notes_only():
        low, high = sorted(
            (mean_interval(column[g], clusters=users[g], bounds=bounds, confidence=level) for g in known),
            key=lambda found: found.value,
        )
    towards = math.hypot(high.value - high.interval.low, low.interval.high - low.value)
    away = math.hypot(high.interval.high - high.value, low.value - low.interval.low)
    ends = gap.difference - towards, gap.difference + away
    return gap if math.isnan(towards + away) else gap._replace(interval=ends, simultaneous_over=n_groups)
