"""Results by group of `by=`: the users or items in each group, its values, and the gap between groups.

Groups are built from what was known before the test (train, tables of users and items), never from the
evaluated users, so that a part of the users falls into the same groups as all of them.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial as bind
from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import InputError, NotDefinedError, Phrase, UnknownNameError, came_as
from recsys.evaluation.engine import exposures, measure, summarise
from recsys.inputs.timestamps import to_seconds
from recsys.metrics.attributes import parse_labels
from recsys.metrics.ranges import Range
from recsys.metrics.registry import Request
from recsys.ranks.ranked_truth import ItemSubset, RankedTruth
from recsys.records.arrays import (
    NO_GROUP,
    Array,
    Bool,
    Catalogue,
    Context,
    Float,
    GroupKey,
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


@dataclass(frozen=True, eq=False)
class GivenGroups:
    """The groups of a mapping from users (or cases) to labels, or of a function of a case."""

    by: Mapping[Any, Any] | Callable[[Any], Any]
    of: str = "case"

    def masks(self, ids: Ids) -> dict[Any, Bool]:
        """Return which of these ids belong to each group, groups in order."""
        return masks_by_label(ids.values, self.by)


@dataclass(frozen=True, eq=False)
class CrossedGroups:
    """The groups of users that belong to one group of each grouping, such as "FR, 18-24"."""

    parts: Sequence[Groups]
    of: str = "user"

    def masks(self, ids: Ids) -> dict[str, Bool]:
        """Return which of these ids belong to each combination that occurs, in order."""
        crossed: dict[str, Bool] = {"": np.ones(len(ids), dtype=bool)}
        for part in self.parts:
            crossed = {
                f"{label}, {more}" if label else str(more): first & second
                for label, first in crossed.items()
                for more, second in part.masks(ids).items()
            }
        return {label: mask for label, mask in crossed.items() if mask.any()}


Grouping = Groups | GivenGroups | CrossedGroups


class Groupings(dict[str, Grouping]):
    """{name: grouping} of what `by=` names."""

    @classmethod
    def of(cls, by: Any, context: Context) -> Groupings:
        """Return the groupings of a name, a combination of names, a mapping or a function, or of a list."""
        several = by if isinstance(by, list) else [by]
        if not several:
            raise InputError("by= is an empty list.", hint="Name a grouping, such as by='activity'.")
        found = cls()
        for one in several:
            name = (
                one
                if isinstance(one, str)
                else " x ".join(map(str, one))
                if isinstance(one, tuple)
                else "group"
            )
            if name in found:
                raise InputError(f"by= holds the grouping {name!r} twice.", hint="Leave one of the two out.")
            found[name] = _crossed(one, context) if isinstance(one, tuple) else _grouping(one, context)
        return found

    def members(self, group: GroupKey, ids: Ids) -> Bool:
        """Return which of these ids belong to a group."""
        return self[group.grouping].masks(ids)[group.label]

    def ordered(self, groups: Iterable[GroupKey]) -> list[GroupKey]:
        """Return groups that were found in pieces in the order of the groupings."""
        labels: dict[str, list[Any]] = {name: [] for name in self}
        for group in groups:
            labels[group.grouping].append(group.label)
        return [GroupKey(n, label) for n, found in labels.items() for label in ordered_labels(found, self[n])]


def _grouping(by: Any, context: Context) -> Groups | GivenGroups:
    if isinstance(by, str):
        return groups_from_name(by, context)
    return GivenGroups(by)


def _crossed(names: tuple[Any, ...], context: Context) -> CrossedGroups:
    """The combinations of groupings of users."""
    parts = [_grouping(name, context) for name in names]
    for name, part in zip(names, parts, strict=True):
        if not isinstance(part, Groups) or part.of != "user":
            what = "groups items" if isinstance(part, Groups) else f"is a {type(name).__name__}"
            raise InputError(
                f"by= combines {name!r}, which {what}.",
                hint="A combination is of names of groups of users, such as ('country', 'activity').",
            )
    if len(parts) < 2:
        raise InputError(
            f"by= combines {list(names)}.", hint="Combine two groupings or more, or leave the tuple out."
        )
    return CrossedGroups([part for part in parts if isinstance(part, Groups)])


def with_strata(
    partial: Partial,
    judged: RankedTruth,
    requests: Sequence[Request],
    *,
    conventions: Conventions,
    context: Context,
    by: Groupings,
) -> Partial:
    """Return the result with one stratum per group; users without a group are one of their own."""
    strata: dict[GroupKey, Stratum] = {}
    of_users: dict[GroupKey, Bool] = {}
    n_without: Counter[str] = Counter()
    for name, groups in by.items():
        if groups.of == "item":
            measured = bind(measure, requests=requests, conventions=conventions, context=context)
            found, n_items = _of_items(groups, partial.catalogue, judged, measured)
            strata |= {GroupKey(name, label): stratum for label, stratum in found.items()}
            n_without["items_without_group"] += n_items
            continue
        users = judged.cases if groups.of == "case" or judged.clusters is None else Ids(judged.clusters)
        masks = {label: mask for label, mask in groups.masks(users).items() if mask.any()}
        others = ~np.any([*masks.values()], axis=0) if masks else np.ones(len(users), dtype=bool)
        if others.any():
            masks[NO_GROUP] = others
            n_without["users_without_group"] = max(n_without["users_without_group"], int(others.sum()))
        of_users |= {GroupKey(name, label): mask for label, mask in masks.items()}
    # Groups of users share the per-case columns; exposure is counted per group.
    for group, shown in exposures(judged, requests, conventions, context, groups=of_users).items():
        rows = PerCase(judged.cases.values[of_users[group]], {})
        part = Partial(rows, {}, {"cases": len(rows)}, shown, partial.catalogue, partial.context)
        strata[group] = Stratum("user", part)
    return replace(partial, strata=strata, counts={**partial.counts, **+n_without})


def _of_items(
    groups: Grouping, whole: Catalogue | None, judged: RankedTruth, measured: Callable[[RankedTruth], Partial]
) -> tuple[dict[Any, Stratum], int]:
    """Return the same rankings restricted to the items of each group, and how many judged ones have none."""
    strata = {}
    inside = {} if whole is None else groups.masks(whole.ids)
    labelled = np.zeros(len(judged.items), dtype=bool)
    for label, mask in groups.masks(judged.items).items():
        labelled |= mask
        part = measured(ItemSubset(judged, mask))
        if whole is not None:
            ids = Ids(whole.ids.values[inside[label]])
            part = replace(part, catalogue=Catalogue(ids, len(ids), "ids" if whole.how == "ids" else "found"))
        strata[label] = Stratum("item", part)
    return strata, int((~labelled[judged.judged]).sum())


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
    given: Any = by
    group_of = given.__getitem__ if keyed else given
    labels, n_known = [], 0
    for case in ids.tolist():
        try:
            labels.append(group_of(case))
            n_known += 1
        except (KeyError, IndexError):
            if not keyed:
                raise
            labels.append(None)
    if labels and not n_known:
        raise InputError(
            f"by= has no entry for {ids.tolist()[0]!r}, nor for any other user.",
            hint="Its keys are the ids of users.",
        )
    for label in labels:
        if not _is_label(label):
            raise InputError(
                f"by= holds the group {label!r}.", hint="A group is a text or a number, one for each user."
            )
    labels = [None if _is_missing(label) else label for label in labels]
    # A user without a label is in no group.
    masks = {
        label: np.zeros(len(labels), dtype=bool)
        for label in ordered_labels(set(labels) - {None}, GivenGroups(by))
    }
    for at, label in enumerate(labels):
        if label is not None:
            masks[label][at] = True
    return masks


def ordered_labels(labels: Iterable[Any], by: Grouping) -> list[Any]:
    """Labels as results show them: as `by` orders them, or numbers first, then others by type and text."""
    if isinstance(by, GivenGroups):
        order = sorted(
            (label for label in labels if label != NO_GROUP),
            key=lambda x: ("", x) if isinstance(x, int | float) else (type(x).__name__, str(x)),
        )
        return order + [label for label in labels if label == NO_GROUP]
    no_ids = Ids(np.zeros(0, dtype=np.int64))
    parts = [list(part.masks(no_ids)) for part in (by.parts if isinstance(by, CrossedGroups) else [by])]
    place = {", ".join(map(str, at)): number for number, at in enumerate(itertools.product(*parts))}
    return sorted(labels, key=lambda label: place.get(label, len(place)))


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


def masks_of(partial: Partial) -> dict[GroupKey, Bool]:
    """Return {group: which cases are in it}; for a group of items, the cases that have one of its items."""
    masks = {}
    for group, stratum in partial.strata.items():
        rows = stratum.partial.rows
        if stratum.of == "user":
            mask = np.zeros(len(partial.rows), dtype=bool)
            mask[Ids(partial.rows.ids).code_of(rows.ids)] = True
        else:
            mask = np.zeros(len(rows.ids), dtype=bool) if rows.columns else np.ones(len(rows.ids), dtype=bool)
            for column in rows.columns.values():
                mask |= ~np.isnan(column)
        masks[group] = mask
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
