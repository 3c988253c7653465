"""The range of a metric: the least and the greatest value one case can have, known before a list is read.

Most metrics declare finite `bounds`. The others declare a function, `range=`, which finds
the range from what the truth, the conventions, the catalogue and the length of the lists allow:
`(data, k, conventions, **params)`, where `data` is a `DataLimits`. No value that was measured enters, so what
is derived from a range (an interval for rare values, a confidence sequence) stays valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from recsys.conventions.decisions import Conventions, relevant
from recsys.errors import ConventionError
from recsys.metrics.attributes import ItemFacts
from recsys.metrics.registry import Request
from recsys.records.arrays import Context, Float, Ids, Int, Interactions, runs

Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class DataLimits:
    """What bounds a metric before anything is measured.

    `n_places` is the length of the longest list, or the number of items that are ranked.
    """

    truth: Interactions
    context: Context
    n_places: int
    largest_item_weight: float = 1.0

    def places(self, k: int | None) -> int:
        """Return how many places of a list are read at most."""
        return self.n_places if k is None else min(k, self.n_places)

    def relevant_grades(self, conventions: Conventions) -> tuple[Int, Float]:
        """Return the case of each relevant item, ascending, and its grade (1 where there is none)."""
        grades = np.ones(len(self.truth.codes)) if self.truth.grades is None else self.truth.grades
        keep = relevant(grades, conventions.relevant_from)
        return np.repeat(np.arange(len(self.truth.cases)), self.truth.sizes)[keep], grades[keep]

    def n_hits(self, k: int | None, conventions: Conventions) -> int:
        """Return how many hits a list can have: no more than relevant items, unless repeats count again."""
        if conventions.duplicates == "all":
            return self.places(k)
        case, _ = self.relevant_grades(conventions)
        return min(self.places(k), int(runs(case)[1].max(initial=0)))

    @property
    def popularity(self) -> Float:
        """How many users had each item."""
        table = self.context.popularity
        return ItemFacts(self.train_items if table is None else table.ids, self.context).popularity

    @property
    def train_items(self) -> Ids:
        """The items of train=."""
        return Ids(np.empty(0)) if self.context.train is None else self.context.train.items

    @property
    def item_facts(self) -> ItemFacts:
        """What is known about the items of items=."""
        table = self.context.items
        return ItemFacts(Ids(np.empty(0)) if table is None else table.ids, self.context)


def metric_range(
    request: Request, conventions: Conventions | None = None, data: DataLimits | None = None
) -> Range:
    """Return the least and the greatest value of a metric for one case; infinite where nothing limits it.

    Without `data` these are the declared bounds.

    >>> metric_range(Request.parse("ndcg@10")), metric_range(Request.parse("dcg@10"))
    ((0.0, 1.0), (0.0, inf))
    """
    find = request.metric.attainable.range
    if find is None or data is None:
        return request.metric.bounds
    try:
        rules = request.conventions(Conventions() if conventions is None else conventions)
        low, high = find(data, request.k, rules, **request.own_params)
    except ConventionError:  # a gain that some grade of the truth lacks; the metric says so if it is needed
        return request.metric.bounds
    declared = request.metric.bounds
    return max(declared[0], float(low)), min(declared[1], float(high))


def union_ranges(*ranges: Mapping[str, Range]) -> dict[str, Range]:
    """Return the ranges over all data, from those of its parts.

    >>> union_ranges({"hits": (0.0, 2.0)}, {"hits": (0.0, 5.0)})
    {'hits': (0.0, 5.0)}
    """
    out: dict[str, Range] = {}
    for part in ranges:
        for name, (low, high) in part.items():
            before = out.get(name, (low, high))
            out[name] = min(before[0], low), max(before[1], high)
    return out


def range_of_sum(values: Float, n: int, *, repeats: bool) -> Range:
    """Return the least and the greatest sum of up to n of these values, each once or as often as wanted.

    >>> range_of_sum(np.array([-1.0, 2.0, 3.0]), 2, repeats=False)
    (-1.0, 5.0)
    """
    ordered = np.sort(values[np.isfinite(values)])
    if repeats:
        low, high = ordered[:1].repeat(n), ordered[-1:].repeat(n)
    else:
        low, high = ordered[:n], ordered[max(len(ordered) - n, 0) :]
    return float(np.minimum(low, 0.0).sum()), float(np.maximum(high, 0.0).sum())
