"""One request whose best lists are built, and the result of a builder."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.evaluation.bounds.candidate_pool import CandidatePool
from recsys.evaluation.bounds.list_builders import ListHeads, fill_lists
from recsys.metrics.case_reading import Reading
from recsys.metrics.requests import Request
from recsys.types import Int


class BestLists(NamedTuple):
    """Lists or ranks that the engine can measure, and whether nothing can be better."""

    judged: Any
    proven: bool = False


class BoundsTask:
    """One request: its candidate pool, the places to fill, and a reading over all items."""

    def __init__(self, pool: CandidatePool, request: Request, rules: Conventions) -> None:
        self.pool, self.request, self.rules = pool, request, rules
        self.params = request.own_params
        self.places = pool.n_shown(request.k)
        self.conventions = request.conventions(rules)

    @property
    def reading(self) -> Reading:
        return self.pool.readings.under(self.conventions)

    @property
    def all_items(self) -> Int:
        """The items that may be shown, by id."""
        return np.flatnonzero(self.pool.showable)

    def lists(self, front: ListHeads | None = None, order: Int | None = None, last: Int | None = None) -> Any:
        """Lists that begin with `front` and are filled up in an order of the items."""
        pool = self.pool
        options = {} if last is None else {"last": last}
        lists = fill_lists(
            pool, self.places, self.all_items if order is None else order, front=front, **options
        )
        return pool.with_lists(*lists)
