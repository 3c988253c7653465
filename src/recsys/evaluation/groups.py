"""Values by group: the members of each group, its values, and the gap between the best and the worst."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.evaluation.partials import summarise
from recsys.metrics.requests import Request
from recsys.types import Array, Bool, Float, Ids, Partial

_Z_95 = 1.959963984540054
_MIN_USERS = 10  # users a group must have before its mean has an interval


def masks_of(partial: Partial) -> dict[Any, Bool]:
    """{group: which cases are in it}; for a group of items, the cases that have one of its items."""
    masks = {}
    for label, stratum in partial.strata.items():
        rows = stratum.partial.per_case
        if stratum.of == "user":
            mask = np.zeros(len(partial.per_case), dtype=bool)
            mask[Ids(partial.per_case.ids).code_of(rows.ids)] = True
        else:
            mask = np.zeros(len(rows.ids), dtype=bool) if rows.columns else np.ones(len(rows.ids), dtype=bool)
            for column in rows.columns.values():
                mask |= ~np.isnan(column)
        masks[label] = mask
    return masks


def values_by_group(
    partial: Partial, requests: Sequence[Request], conventions: Conventions, masks: Mapping[Any, Bool]
) -> dict[Any, dict[str, float]]:
    """{group: {metric: value}}; a group of items has its own values, a group of users is part of the rows."""
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
    """How far apart the groups are in one metric."""

    best: Any
    worst: Any
    difference: float
    ratio: float
    interval: tuple[float, float] | None = None


def gap_of(values: Mapping[Any, float], better: str) -> Gap:
    """The best and the worst of {group: value}; `better` is the direction of the metric.

    If 0 is best, the gap is between distances from 0.

    >>> gap_of({"cold": 0.25, "warm": 0.5}, "higher")
    Gap(best='warm', worst='cold', difference=0.25, ratio=0.5, interval=None)
    """
    known = {label: value for label, value in values.items() if not math.isnan(value)}
    if not known:
        return Gap(None, None, math.nan, math.nan)
    if better == "zero":
        known = {label: abs(value) for label, value in known.items()}
    order = sorted(known, key=lambda label: known[label], reverse=better == "higher")
    high, low = max(known.values()), min(known.values())
    return Gap(order[0], order[-1], high - low, low / high if high else math.nan)


def with_interval(gap: Gap, column: Float, best: Array, worst: Array) -> Gap:
    """The gap with a normal interval of the difference of two means; without it if groups share users."""
    known = [column[mask & ~np.isnan(column)] for mask in (best, worst)]
    if (best & worst).any() or min(map(len, known)) < _MIN_USERS:
        return gap
    error = math.sqrt(sum(float(group.var(ddof=1)) / len(group) for group in known))
    return gap._replace(interval=(gap.difference - _Z_95 * error, gap.difference + _Z_95 * error))
