"""Floors in closed form: means over the items shown, and the items that random lists show."""

from __future__ import annotations

import math

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.evaluation.bounds.candidate_pool import CandidatePool
from recsys.evaluation.partials import summarise
from recsys.metrics.case_reading import Reading
from recsys.metrics.requests import Request
from recsys.types import Bool, Float, Int, Partial, PerCase


class ExpectedValues(Reading):
    """A reading that replaces means over the items shown by their expectation over random lists."""

    def __init__(self, reading: Reading, pool: CandidatePool) -> None:
        super().__init__(reading.hits, None, "first", reading.context, reading.list_context)
        self._pool = pool

    def mean_shown(self, k: int | None, values: Float) -> Float:
        """The mean over all candidates: each is equally likely to be shown."""
        del k
        return self._pool.mean_over_candidates(values)

    def n_shown(self, k: int | None) -> Int:
        """The number of items a random list shows."""
        return self._pool.n_shown(k)


def mean_of_items(pool: CandidatePool, request: Request, rules: Conventions) -> float:
    """The floor of a metric that is a mean over the items shown."""
    conventions = request.conventions(rules)
    reading = ExpectedValues(pool.readings.under(conventions), pool)
    column = np.asarray(request.metric.body(reading, request.k, conventions, **request.own_params))
    low, high = request.metric.bounds
    empty = math.nan if conventions.no_list == "skip" else request.metric.empty
    column = np.where(pool.n_shown(request.k) > 0, np.clip(column, low, high), empty)
    return column_mean(pool, request, column)


def column_mean(pool: CandidatePool, request: Request, column: Float) -> float:
    """The summary of one value per case, as the metric defines it."""
    rows = PerCase(
        pool.judged.cases.values, {str(request): column}, pool.judged.clusters, pool.user_context.case_weights
    )
    return summarise(Partial(rows, {}, {}), [request])[str(request)]


def coverage(pool: CandidatePool, request: Request) -> float:
    """The floor of a metric that counts different items shown, of all items or of the cold ones."""
    chance = chance_of_showing(pool, pool.n_shown(request.k))
    if request.metric.name == "distinct_items":
        return float(chance.sum())
    if request.metric.name == "coverage":
        return float(chance.sum()) / pool.catalogue.n
    cold = cold_items(pool, request)
    return float(chance[cold].sum()) / max(int(cold.sum()), 1)


def cold_items(pool: CandidatePool, request: Request) -> Bool:
    """Which items of the catalogue count as cold."""
    popularity = pool.readings.under(Conventions()).facts.popularity
    return np.asarray(pool.in_catalogue & (popularity < request.own_params["below"]))


def chance_of_showing(pool: CandidatePool, shown: Int) -> Float:
    """The probability that random lists show each item to at least one case."""
    share = np.minimum(shown / np.maximum(pool.n_declared, 1), 1.0)
    certain = share >= 1.0
    log_missed = np.log1p(-np.where(certain, 0.0, share))
    by_item = np.bincount(pool.item, weights=log_missed[pool.case], minlength=len(pool.items))
    n_certain = np.bincount(pool.item, weights=certain[pool.case], minlength=len(pool.items))
    if not pool.keys_are_allowed:
        # A seen item is not missed by that user's list: it is no candidate.
        by_item, n_certain = log_missed.sum() - by_item, certain.sum() - n_certain
    return np.where(pool.showable, np.where(n_certain > 0, 1.0, -np.expm1(np.minimum(by_item, 0.0))), 0.0)
