"""Merge Partials of different cases, and summarise a Partial to one number per request.

Means are exactly rounded, so merging in any order gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import MergeError
from recsys.evaluation.exposure import add_exposures, catalogue_metric, union_catalogues
from recsys.kernels.exact_sums import exact_mean, exact_sum
from recsys.metrics.requests import Request
from recsys.types import Array, Bool, Catalogue, Float, Ids, Partial, PerCase, Stratum


def summarise(
    partial: Partial,
    requests: Sequence[Request],
    mask: Bool | None = None,
    *,
    conventions: Conventions | None = None,
) -> dict[str, float]:
    """One number per request, over all cases or those of a mask; NaN if no case is in the mean."""
    out = {}
    for request in requests:
        name = str(request)
        if request.metric.kind == "catalogue":
            of_all = mask is None
            out[name] = (
                catalogue_metric(partial, request, conventions or Conventions()) if of_all else math.nan
            )
            continue
        column = partial.per_case.columns[name]
        in_mean, any_case = _cases_in_mean(column, mask)
        weights = partial.per_case.weights
        case_weights = None if weights is None else weights[in_mean]
        if name in partial.terms:
            first, second = (_mean(t[in_mean], case_weights) for t in partial.terms[name])
            out[name] = request.metric.combine(first, second, **request.own_params) if any_case else math.nan
        elif request.metric.summary is not None:
            out[name] = request.metric.summary(column[in_mean], case_weights, **request.own_params)
        else:
            out[name] = _mean(column[in_mean], case_weights, within=request.metric.bounds)
    return out


def _cases_in_mean(column: Float, mask: Bool | None) -> tuple[Any, bool]:
    """Which cases are in the mean (a slice if all are), and whether there are any."""
    if mask is None and len(column) and not math.isnan(column.min()):
        return slice(None), True
    inside = ~np.isnan(column) if mask is None else mask & ~np.isnan(column)
    return inside, bool(inside.any())


def _mean(values: Float, weights: Float | None, *, within: tuple[float, float] | None = None) -> float:
    if weights is None:
        largest = math.inf if within is None else max(map(abs, within))
        return exact_mean(values, within=largest if math.isfinite(largest) else None)
    total = exact_sum(weights) if len(weights) else 0
    return float(exact_sum(values * weights) / total) if total else math.nan


def merge(parts: Sequence[Partial]) -> Partial:
    """The result over the cases of all Partials; a case in two of them is an error."""
    first = parts[0]
    for part in parts[1:]:
        if [*part.per_case.columns, *part.exposure] != [*first.per_case.columns, *first.exposure]:
            raise MergeError(
                f"the parts hold different metrics: {list(first.per_case.columns)} "
                f"and {list(part.per_case.columns)}.",
                hint="Evaluate every part with the same metrics.",
            )
        if (part.per_case.ids.dtype == object) != (first.per_case.ids.dtype == object):
            raise MergeError("the parts hold ids of different types (int and str).")
    ids = np.concatenate([p.per_case.ids for p in parts])
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    repeated = np.flatnonzero(ids[1:] == ids[:-1]) if len(ids) else order
    if len(repeated):
        raise MergeError(
            f"user {Ids(ids).name(repeated[0])!r} is in two of the parts.",
            hint="Each user must be evaluated in one part only.",
        )

    def concatenate(columns_of_parts: list[Array | None]) -> Any:
        return None if any(p is None for p in columns_of_parts) else np.concatenate(columns_of_parts)[order]  # type: ignore[arg-type]

    columns = {
        name: concatenate([p.per_case.columns[name] for p in parts]) for name in first.per_case.columns
    }
    terms = {
        name: (concatenate([p.terms[name][0] for p in parts]), concatenate([p.terms[name][1] for p in parts]))
        for name in first.terms
    }
    rows = PerCase(
        ids,
        columns,
        concatenate([p.per_case.clusters for p in parts]),
        concatenate([p.per_case.weights for p in parts]),
    )
    names = dict.fromkeys(n for p in parts for n in p.counts)
    counts = {n: sum(p.counts.get(n, 0) for p in parts) for n in names}
    if not first.exposure:
        return Partial(rows, terms, counts, strata=_merge_strata(parts, None))
    exposure = {key: add_exposures([p.exposure[key] for p in parts]) for key in first.exposure}
    catalogue = union_catalogues([p.catalogue for p in parts if p.catalogue is not None])
    strata = _merge_strata(parts, catalogue)
    return Partial(rows, terms, counts, exposure, catalogue, first.context, strata)


def _merge_strata(parts: Sequence[Partial], catalogue: Catalogue | None) -> dict[Any, Stratum]:
    """Merge groups by label; a part without users of a group only adds its items to the catalogue."""
    out = {}
    for label in dict.fromkeys(label for part in parts for label in part.strata):
        strata = [part.strata[label] for part in parts if label in part.strata]
        merged = merge([stratum.partial for stratum in strata])
        of_users = strata[0].of == "user"
        out[label] = Stratum(strata[0].of, replace(merged, catalogue=catalogue) if of_users else merged)
    return out
