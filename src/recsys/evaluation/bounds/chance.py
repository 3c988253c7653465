"""What chance gives in closed form: means over the items shown, and which items random lists show."""

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
    """A reading in which a mean over the items shown is its expectation over random lists."""

    def __init__(self, reading: Reading, field: CandidatePool) -> None:
        super().__init__(reading.hits, None, "first", reading.context, reading.beyond)
        self._field = field

    def mean_shown(self, k: int | None, values: Float) -> Float:
        """The mean over all candidates: each is as likely to be shown as any other."""
        del k
        return self._field.mean(values)

    def n_shown(self, k: int | None) -> Int:
        """As many items as a random list shows."""
        return self._field.shown(k)


def mean_of_items(field: CandidatePool, request: Request, rules: Conventions) -> float:
    """The floor of a metric that is a mean over the items shown."""
    here = request.conventions(rules)
    reading = ExpectedValues(field.readings.under(here), field)
    column = np.asarray(request.metric.body(reading, request.k, here, **request.own_params))
    low, high = request.metric.bounds
    nothing = math.nan if here.no_list == "skip" else request.metric.empty
    column = np.where(field.shown(request.k) > 0, np.clip(column, low, high), nothing)
    return column_mean(field, request, column)


def column_mean(field: CandidatePool, request: Request, column: Float) -> float:
    """One number of one value a case, summed up as the metric is."""
    rows = PerCase(
        field.judged.cases.values, {str(request): column}, field.judged.clusters, field.given.case_weights
    )
    return summarise(Partial(rows, {}, {}), [request])[str(request)]


def coverage(field: CandidatePool, request: Request) -> float:
    """The floor of a metric that counts the different items shown, of all or of the cold ones."""
    chance = chance_of_showing(field, field.shown(request.k))
    if request.metric.name == "distinct_items":
        return float(chance.sum())
    if request.metric.name == "coverage":
        return float(chance.sum()) / field.catalogue.n
    cold = cold_items(field, request)
    return float(chance[cold].sum()) / max(int(cold.sum()), 1)


def cold_items(field: CandidatePool, request: Request) -> Bool:
    """Which items of the catalogue count as cold."""
    popularity = field.readings.under(Conventions()).facts.popularity
    return np.asarray(field.known & (popularity < request.own_params["below"]))


def chance_of_showing(field: CandidatePool, shown: Int) -> Float:
    """The chance that random lists show each item to anybody."""
    share = np.minimum(shown / np.maximum(field.told, 1), 1.0)
    certain = share >= 1.0
    missed = np.log1p(-np.where(certain, 0.0, share))
    by_item = np.bincount(field.item, weights=missed[field.case], minlength=len(field.items))
    sure = np.bincount(field.item, weights=certain[field.case], minlength=len(field.items))
    if not field.only:
        # An item a user has seen is not missed by that user's list: it is no candidate.
        by_item, sure = missed.sum() - by_item, certain.sum() - sure
    return np.where(field.open, np.where(sure > 0, 1.0, -np.expm1(np.minimum(by_item, 0.0))), 0.0)
