"""What the statistics need from an evaluation: values per case, or what a number is without some users.

A mean over cases is its column. A pooled or derived number becomes one value a case by the delta method.
What is no mean at all (a metric of the catalogue, a geometric mean) is made again without one group of users
after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.evaluation import tables
from recsys.evaluation.exposure import catalogue_value, exposure_key
from recsys.metrics.requests import Request
from recsys.stats.alignment import collapse
from recsys.stats.catalogue_intervals import Jackknife, jackknife, shown_jackknife, within
from recsys.stats.inference_results import Estimate, Interval
from recsys.stats.intervals import Method, delta_values, interval_of
from recsys.stats.resampling import Rng, groups_of, unit_keys
from recsys.stats.statistics_warnings import StoppedWarning, caution
from recsys.types import Catalogue, Exposure, Float, Int, Partial

N_GROUPS = 64
# Metrics that only count which items were shown at all; each item seen by one group only is lost with it.
_COUNTS_SHOWN = {"coverage", "distinct_items"}


def is_grouped(request: Request) -> bool:
    """Whether the number is no mean over cases, and is resampled by leaving out groups of users."""
    return request.metric.kind == "catalogue" or request.metric.summary is not None


def mean_column(partial: Partial, request: Request) -> Float:
    """One value a case, whose mean is the number reported."""
    name = str(request)
    if name not in partial.terms:
        return partial.per_case.columns[name]
    first, second = partial.terms[name]
    return delta_values(
        first,
        second,
        lambda a, b: request.metric.combine(a, b, **request.own_params),
        partial.per_case.weights,
    )


def group_jackknife(partial: Partial, request: Request, conventions: Conventions) -> Jackknife:
    """The number without each of 64 groups of users, by hash of their ids."""
    if request.metric.summary is not None:
        return _summary_jackknife(partial, request, request.metric.summary)
    key = exposure_key(request, request.conventions(conventions))
    known = partial.exposure[key]
    group = np.repeat(np.arange(len(known.cases)), np.diff(known.indptr))
    if request.metric.name in _COUNTS_SHOWN and partial.catalogue is not None:
        catalogue = partial.catalogue
        on_shelf = known.counts > 0
        if catalogue.ids is not None:
            on_shelf &= (catalogue.ids.code_of(known.items.values) >= 0)[known.codes]
        item = known.codes[on_shelf].astype(np.int64)
        found = shown_jackknife(group[on_shelf], item, catalogue.n, known.cases)
        return found if request.metric.name == "coverage" else found.times(float(catalogue.n))
    known = _on_catalogue(known, partial.catalogue)
    left, aligned = _Left(known), replace(partial, exposure={key: known})

    def without(gone: Int) -> float:
        n_cases = float(known.cases.sum() - known.cases[gone].sum())
        return catalogue_value(aligned, request, conventions, left.without(gone), n_cases)

    return jackknife(without, known.cases)


def _on_catalogue(known: Exposure, catalogue: Catalogue | None) -> Exposure:
    """The exposure in the order of the catalogue, where it holds all items: nothing is looked up again."""
    if catalogue is None or catalogue.ids is known.items:
        return known
    at = catalogue.ids.code_of(known.items.values).astype(np.int32)
    return known if (at < 0).any() else replace(known, items=catalogue.ids, codes=at[known.codes])


class _Left:
    """The exposure without some groups, from that without the groups before: most sets differ by few."""

    def __init__(self, known: Exposure) -> None:
        self.known = known
        self.counts = known.total.copy()
        self.inside = np.ones(len(known.cases), dtype=bool)

    def without(self, gone: Int) -> Float:
        """Counts in whole units come and go exactly."""
        wanted = np.ones(len(self.inside), dtype=bool)
        wanted[gone] = False
        known = self.known
        for group in np.flatnonzero(wanted != self.inside):
            here = slice(known.indptr[group], known.indptr[group + 1])
            self.counts[known.codes[here]] += known.counts[here] if wanted[group] else -known.counts[here]
        self.inside = wanted
        return self.counts.astype(np.float64) * known.unit


def _summary_jackknife(partial: Partial, request: Request, summary: Callable[..., float]) -> Jackknife:
    rows = partial.per_case
    column = rows.columns[str(request)]
    group = groups_of(rows.ids if rows.clusters is None else rows.clusters, N_GROUPS)
    inside = ~np.isnan(column)

    def without(gone: Int) -> float:
        keep = inside & ~np.isin(group, gone)
        weights = None if rows.weights is None else rows.weights[keep]
        return summary(column[keep], weights, **request.own_params)

    return jackknife(without, np.bincount(group[inside], minlength=N_GROUPS), together=False)


class Intervals(tables.Tabled, Mapping[str, Estimate]):
    """{metric: value with standard error and interval}; prints as a table."""

    def __init__(self, estimates: Mapping[str, Estimate]) -> None:
        self.estimates = dict(estimates)

    def __getitem__(self, metric: str) -> Estimate:
        return self.estimates[metric if metric in self.estimates else str(Request.parse(metric))]

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def to_frame(self, kind: str = "pandas") -> Any:
        """metric, value, low, high, standard_error, method, n as a pandas, polars or arrow table."""
        return tables.frame({**self._columns(), "standard_error": self._of("standard_error")}, kind)

    def _of(self, name: str) -> list[Any]:
        return [getattr(found, name) for found in self.estimates.values()]

    def _columns(self) -> tables.Columns:
        intervals = self._of("interval")
        return {
            "metric": list(self.estimates),
            "value": self._of("value"),
            "low": [i.low for i in intervals],
            "high": [i.high for i in intervals],
            "interval": [i.method for i in intervals],
            "n": self._of("n"),
        }

    def _footnotes(self) -> list[str]:
        confidence = {i.confidence for i in self._of("interval")}
        said = [f"intervals of {level:.0%} confidence" for level in sorted(confidence)]
        return [*said, *dict.fromkeys(note for notes in self._of("notes") for note in notes)]


def estimate(
    partial: Partial,
    request: Request,
    conventions: Conventions,
    *,
    method: Method = "t",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    rng: Rng = 0,
) -> Estimate:
    """The number with its standard error and interval, cut at what the metric can be."""
    if is_grouped(request):
        found = group_jackknife(partial, request, conventions).estimate(confidence)
    else:
        rows = partial.per_case
        column = mean_column(partial, request)
        if np.isnan(column).all():
            nothing = Interval(math.nan, math.nan, confidence, method)
            return Estimate(math.nan, math.nan, nothing, 0, (f"{request}: no user counts",))
        units = collapse(column[None, :], rows.clusters, keys=unit_keys(rows.ids), weights=rows.weights)
        found = interval_of(units, method=method, confidence=confidence, n_resamples=n_resamples, rng=rng)
    return within(found, request.metric.bounds)


def after_stop(found: Estimate, notes: Mapping[str, Any]) -> Estimate:
    """With a word where the result was stopped once it looked clear; `notes` are those of the result.

    An interval for a number of users fixed beforehand does not know that it was looked at in between.
    """
    stop = notes.get("stopped", {})
    if not stop.get("share_saved", 0.0) > 0:
        return found
    watched = stop.get("intervals", {})
    of = "differences" if any("verdict" in one for one in watched.values()) else "metrics watched"
    where = f"those of the {of} that are valid are printed with the result, and in its notes['stopped']"
    if not watched:
        where = "those of the differences that are valid are printed with the race"
    text = (
        f"stopped early, after {stop['n_seen']:,} of {stop['n_total']:,} users: these intervals take the "
        f"number of users for fixed beforehand and are not valid under optional stopping; {where}"
    )
    return replace(found, notes=(*found.notes, caution(StoppedWarning, text)))
