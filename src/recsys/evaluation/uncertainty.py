"""Input of the statistics: values per case, or the value of a metric without some of the users.

A mean over cases is its column. A pooled or derived number becomes one value per case by the delta method.
A number that is not a mean (a catalogue metric, a geometric mean) is recomputed without one group of users
after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.display.cells import Columns
from recsys.display.tabled import Tabled
from recsys.display.words import merged
from recsys.errors import UnknownNameError
from recsys.evaluation.engine import is_aggregated
from recsys.evaluation.exposure import N_GROUPS, catalogue_value, exposure_key
from recsys.evaluation.result_facts import ResultFacts
from recsys.metrics.registry import Request
from recsys.metrics.traits import quotient
from recsys.records.arrays import Array, Bool, Exposure, Float, Int, Partial, Sums
from recsys.records.facts import Note, note
from recsys.stats.bootstrap import Rng, Units, collapse, groups_of, unit_keys
from recsys.stats.group_jackknife import Jackknife, coverage_jackknife_from_pairs, jackknife
from recsys.stats.intervals import delta_values
from recsys.stats.mean_inference import BOOTSTRAPS, Method, infer_mean
from recsys.stats.results import Estimate, Interval, StoppedWarning, caution, clip_interval
from recsys.stats.samples import Sample


def needs_jackknife(request: Request) -> bool:
    """Return whether the number is not a mean over cases, so that groups of users are left out in turn."""
    return request.metric.kind == "catalogue" or request.metric.pooling.summary is not None


def is_quick(request: Request) -> bool:
    """Return whether its interval takes milliseconds: a mean over cases, or a count of the items shown."""
    shown = request.metric.shown
    return not needs_jackknife(request) or bool(shown.counts_items and shown.which_items is None)


def mean_column(partial: Partial, request: Request) -> Float:
    """Return one value per case, whose mean is the reported number."""
    name = str(request)
    if name not in partial.terms:
        return partial.rows.columns[name]
    first, second = partial.terms[name]
    return delta_values(
        first,
        second,
        lambda a, b: request.metric.pooling.combine(a, b, **request.own_params),
        partial.rows.weights,
    )


def group_jackknife(partial: Partial, request: Request, conventions: Conventions) -> Jackknife:
    """Return the number without each of 64 groups of users, by hash of their ids."""
    summary = request.metric.pooling.summary
    if summary is not None:
        rows = partial.rows
        column = rows.columns[str(request)]

        def value_of(mask: Bool) -> float:
            weights = None if rows.weights is None else rows.weights[mask]
            return summary(column[mask], weights, **request.own_params)

        return mask_jackknife(
            rows.ids if rows.clusters is None else rows.clusters, ~np.isnan(column), value_of
        )
    key = exposure_key(request, request.conventions(conventions))
    exposure = partial.exposure[key]
    group = np.repeat(np.arange(len(exposure.cases)), np.diff(exposure.indptr))
    items_shown, catalogue = request.metric.shown, partial.catalogue
    if items_shown.counts_items and items_shown.which_items is None and catalogue is not None:
        # Only which items were shown at all counts; an item shown to one group only is lost with it.
        in_catalogue = exposure.counts > 0
        if catalogue.ids is not None:
            in_catalogue &= (catalogue.ids.code_of(exposure.items.values) >= 0)[exposure.codes]
        item = exposure.codes[in_catalogue].astype(np.int64)
        found = coverage_jackknife_from_pairs(
            group[in_catalogue], item, catalogue.n, exposure.cases, _items_per_case(exposure)
        )
        return found if items_shown.counts_items == "share" else found.times(float(catalogue.n))
    if catalogue is not None and catalogue.ids is not exposure.items:
        # In the order of the catalogue, if that holds all items: saves lookups later.
        at = catalogue.ids.code_of(exposure.items.values).astype(np.int32)
        if (at >= 0).all():
            exposure = replace(exposure, items=catalogue.ids, codes=at[exposure.codes])
    remaining, aligned = _ExposureWithout(exposure), replace(partial, exposure={key: exposure})

    def without(groups: Int) -> float:
        n_cases = float(exposure.cases.sum() - exposure.cases[groups].sum())
        return catalogue_value(aligned, request, conventions, remaining.without(groups), n_cases)

    found = jackknife(without, exposure.cases)
    if not found.is_constant:
        return found
    # No group changes it: what would one more user, with the items that were shown least?
    shown = exposure.total.astype(np.float64) * exposure.unit
    shown[np.argsort(shown, kind="stable")[: round(_items_per_case(exposure))]] += 1.0
    changed = catalogue_value(aligned, request, conventions, shown, float(exposure.cases.sum()) + 1.0)
    one_user = abs(changed - found.value)
    return replace(found, rise=one_user, fall=one_user)


def _items_per_case(exposure: Exposure) -> float:
    """Return how many items a case is shown on average, at least one."""
    return max(float(exposure.counts.sum()) * exposure.unit / max(float(exposure.cases.sum()), 1.0), 1.0)


def mask_jackknife(users: Array, inside: Bool, value_of: Callable[[Bool], float]) -> Jackknife:
    """Return a number that is a function of which cases count, without each of 64 groups of users."""
    group = groups_of(users, N_GROUPS)

    def without(groups: Int) -> float:
        return value_of(inside & ~np.isin(group, groups))

    return jackknife(without, np.bincount(group[inside], minlength=N_GROUPS), together=False)


class _ExposureWithout:
    """The exposure without some groups, updated from the previous call: most sets differ by few groups."""

    def __init__(self, exposure: Exposure) -> None:
        self.exposure = exposure
        self.counts = exposure.total.copy()
        self.inside = np.ones(len(exposure.cases), dtype=bool)

    def without(self, groups: Int) -> Float:
        """Return the exposure per item without these groups; counts are whole units, so updates are exact."""
        included = np.ones(len(self.inside), dtype=bool)
        included[groups] = False
        exposure = self.exposure
        for group in np.flatnonzero(included != self.inside):
            entries = slice(exposure.indptr[group], exposure.indptr[group + 1])
            self.counts[exposure.codes[entries]] += (
                exposure.counts[entries] if included[group] else -exposure.counts[entries]
            )
        self.inside = included
        return self.counts.astype(np.float64) * exposure.unit


class Intervals(Tabled, Mapping[str, Estimate]):
    """{metric: value with standard error and interval}; prints as a table."""

    def __init__(self, estimates: Mapping[str, Estimate], *, notes: Sequence[Note] = ()) -> None:
        self.estimates = dict(estimates)
        self.notes = tuple(notes)

    def __getitem__(self, metric: str) -> Estimate:
        return self.estimates[metric if metric in self.estimates else str(Request.parse(metric))]

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def _all_columns(self) -> Columns:
        return {**self._columns(), "standard_error": self.columns_of("standard_error")}

    def columns_of(self, name: str) -> list[Any]:
        """Return one field of every estimate."""
        return [getattr(found, name) for found in self.estimates.values()]

    def _columns(self) -> Columns:
        return self.columns()

    def columns(self) -> dict[str, list[Any]]:
        """Return metric, value, low, high, interval and n of every estimate."""
        intervals = self.columns_of("interval")
        return {
            "metric": list(self.estimates),
            "value": self.columns_of("value"),
            "low": [i.low for i in intervals],
            "high": [i.high for i in intervals],
            "interval": [i.method for i in intervals],
            "n": self.columns_of("n"),
        }

    def _footnotes(self) -> list[str]:
        confidence = {i.confidence for i in self.columns_of("interval")}
        return [*(f"intervals of {level:.0%} confidence" for level in sorted(confidence)), *self.remarks()]

    def remarks(self) -> list[str]:
        """Return the remarks on single intervals, and on all of them."""
        own = merged((note for found in self.estimates.values() for note in found.notes), together=True)
        return [*own, *map(str, self.notes)]


class GroupIntervals(Tabled, Mapping[Any, Intervals]):
    """{group: {metric: value with its interval}} of one grouping; each interval holds by itself."""

    def __init__(self, groups: Mapping[Any, Intervals]) -> None:
        self.groups: dict[Any, Intervals] = dict(groups)

    def __getitem__(self, label: Any) -> Intervals:
        if label not in self.groups:
            raise UnknownNameError("group", label, self.groups)
        return self.groups[label]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def _columns(self) -> Columns:
        joined: dict[str, list[Any]] = {
            "group": [label for label, found in self.groups.items() for _ in found]
        }
        for found in self.groups.values():
            for name, cells in found.columns().items():
                joined.setdefault(name, []).extend(cells)
        return joined

    def _footnotes(self) -> list[str]:
        notes = (f"{label}: {text}" for label, found in self.groups.items() for text in found.remarks())
        levels = {i.confidence for found in self.groups.values() for i in found.columns_of("interval")}
        return [*(f"each interval by itself has {n:.0%} confidence" for n in sorted(levels)), *notes]


def estimate(
    partial: Partial,
    request: Request,
    conventions: Conventions,
    *,
    method: Method = "gaffke",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    rng: Rng = 0,
    bounds: tuple[float, float] | None = None,
) -> Estimate:
    """Return the value with its standard error and interval, clipped to the range of the metric.

    `bounds` are the least and the greatest value of a case; by default those that the metric declares.
    """
    if needs_jackknife(request):
        jackknifed = group_jackknife(partial, request, conventions).estimate(confidence)
        own = tuple(one.about(str(request)) for one in jackknifed.notes)
        return clip_interval(replace(jackknifed, notes=own), request.metric.bounds)
    limits = request.metric.bounds if bounds is None else bounds
    aggregate: Any = request.aggregate if is_aggregated(partial, request) else None
    sums = partial.sums.get(str(request))
    if sums is not None and (partial.per_case is None or _is_counted(sums, aggregate, method)):
        if aggregate is None:
            found = _estimate_from_sums(sums, request, method=method, confidence=confidence, bounds=limits)
        else:
            found = aggregate.estimate_from(sums, confidence)
    elif aggregate is not None:
        found = aggregate.estimate(partial.rows, partial.rows.columns[str(request)], confidence)
    else:
        options = {"method": method, "n_resamples": n_resamples, "rng": rng}
        found = _estimate_from_rows(partial, request, confidence=confidence, bounds=limits, **options)
    few = "few_units", "few_for_percentile"  # what they say holds for all metrics
    new = tuple(one if one.code in few else one.about(str(request)) for one in found.notes)
    return clip_interval(replace(found, notes=new), limits if aggregate else request.metric.bounds)


def _is_counted(sums: Sums, aggregate: Any, method: Method) -> bool:
    """Return whether how often each unit occurs says all that the values per user do."""
    if aggregate is not None:
        return sums.units is not None and sums.extremes.keys() == {"x"}
    return sums.units is not None and sums.n_units is not None and method not in BOOTSTRAPS


def _estimate_from_sums(sums: Sums, request: Request, *, confidence: float, **options: Any) -> Estimate:
    from recsys.stats.sums import interval_from

    if not sums.n_cases:
        return _undefined(confidence, options["method"])
    combine = request.metric.pooling.combine if "y" in sums.totals else None
    return interval_from(
        sums,
        None if combine is None else lambda a, b: combine(a, b, **request.own_params),
        is_ratio=combine is quotient,
        confidence=confidence,
        noun="user",
        **options,
    )


def _estimate_from_rows(partial: Partial, request: Request, *, confidence: float, **options: Any) -> Estimate:
    rows = partial.rows
    column = mean_column(partial, request)
    if np.isnan(column).all():
        return _undefined(confidence, options["method"])
    keys = unit_keys(rows.ids)
    units = collapse(column[None, :], rows.clusters, keys=keys, weights=rows.weights)
    if str(request) in partial.terms and request.metric.pooling.combine is quotient:
        terms = np.stack(partial.terms[str(request)])
        sums = collapse(terms, rows.clusters, keys=keys, weights=rows.weights)
        ratio = Units(sums.keys, sums.totals[:1], sums.totals[1:])
        if Sample.row(ratio).n_rare is not None:
            # What the delta method makes of a rare value hides that it is rare.
            units = ratio
    return infer_mean(units, confidence=confidence, noun="user", **options).estimate


def _undefined(confidence: float, method: str) -> Estimate:
    interval = Interval(math.nan, math.nan, confidence, method)
    return Estimate(math.nan, math.nan, interval, 0, (note("no_values", noun="user"),))


def warn_if_stopped(found: Estimate, facts: ResultFacts) -> Estimate:
    """Return the estimate with a warning if the evaluation stopped early; `facts` are those of the result.

    An interval for a fixed number of users is not valid after looking at the result in between.
    """
    stop = facts.stopped
    if stop is None or not facts.stopped_early:
        return found
    watched = stop.intervals.values()
    kind = "differences" if any(one.verdict for one in watched) else "metrics watched"
    seen = {"n_seen": stop.n_seen, "n_total": stop.n_total}
    stopped = caution(StoppedWarning, "stopped_intervals", **seen, watched=kind if watched else "")
    return replace(found, notes=(*found.notes, stopped))
