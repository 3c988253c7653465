"""What is done with Partials: those of different cases merge into one, and one is summed up.

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
from recsys.evaluation.exposure import added, of_catalogue, whole_catalogue
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
    """One number a request, over all cases or those of a mask; NaN where no case is in the mean."""
    out = {}
    for request in requests:
        name = str(request)
        if request.metric.kind == "catalogue":
            of_all = mask is None
            out[name] = of_catalogue(partial, request, conventions or Conventions()) if of_all else math.nan
            continue
        column = partial.per_case.columns[name]
        pick, whole = _inside(column, mask)
        weights = partial.per_case.weights
        held = None if weights is None else weights[pick]
        if name in partial.terms:
            first, second = (_mean(t[pick], held) for t in partial.terms[name])
            out[name] = request.metric.combine(first, second, **request.own_params) if whole else math.nan
        elif request.metric.summary is not None:
            out[name] = request.metric.summary(column[pick], held, **request.own_params)
        else:
            out[name] = _mean(column[pick], held, within=request.metric.bounds)
    return out


def _inside(column: Float, mask: Bool | None) -> tuple[Any, bool]:
    """Which cases are in the mean, all of them as a slice; and whether there are any."""
    if mask is None and len(column) and not math.isnan(column.min()):
        return slice(None), True
    inside = ~np.isnan(column) if mask is None else mask & ~np.isnan(column)
    return inside, bool(inside.any())


def _mean(values: Float, weights: Float | None, *, within: tuple[float, float] | None = None) -> float:
    if weights is None:
        most = math.inf if within is None else max(map(abs, within))
        return exact_mean(values, within=most if math.isfinite(most) else None)
    total = exact_sum(weights) if len(weights) else 0
    return float(exact_sum(values * weights) / total) if total else math.nan


def merge(parts: Sequence[Partial]) -> Partial:
    """The result of all the cases of some Partials; a case met twice is an error."""
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
    twice = np.flatnonzero(ids[1:] == ids[:-1]) if len(ids) else order
    if len(twice):
        raise MergeError(
            f"user {Ids(ids).name(twice[0])!r} is in two of the parts.",
            hint="Each user must be evaluated in one part only.",
        )

    def joined(pieces: list[Array | None]) -> Any:
        return None if any(p is None for p in pieces) else np.concatenate(pieces)[order]  # type: ignore[arg-type]

    columns = {name: joined([p.per_case.columns[name] for p in parts]) for name in first.per_case.columns}
    terms = {
        name: (joined([p.terms[name][0] for p in parts]), joined([p.terms[name][1] for p in parts]))
        for name in first.terms
    }
    rows = PerCase(
        ids,
        columns,
        joined([p.per_case.clusters for p in parts]),
        joined([p.per_case.weights for p in parts]),
    )
    names = dict.fromkeys(n for p in parts for n in p.counts)
    counts = {n: sum(p.counts.get(n, 0) for p in parts) for n in names}
    if not first.exposure:
        return Partial(rows, terms, counts, strata=_merged_strata(parts, None))
    exposure = {key: added([p.exposure[key] for p in parts]) for key in first.exposure}
    catalogue = whole_catalogue([p.catalogue for p in parts if p.catalogue is not None])
    strata = _merged_strata(parts, catalogue)
    return Partial(rows, terms, counts, exposure, catalogue, first.context, strata)


def _merged_strata(parts: Sequence[Partial], catalogue: Catalogue | None) -> dict[Any, Stratum]:
    """Groups by label; a part without users of a group adds nothing to it but its items to the catalogue."""
    out = {}
    for label in dict.fromkeys(label for part in parts for label in part.strata):
        held = [part.strata[label] for part in parts if label in part.strata]
        whole = merge([stratum.partial for stratum in held])
        of_users = held[0].of == "user"
        out[label] = Stratum(held[0].of, replace(whole, catalogue=catalogue) if of_users else whole)
    return out
