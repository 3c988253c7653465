"""One request for which the best lists are built, and what a builder hands back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.evaluation.bounds.candidate_pool import CandidatePool
from recsys.evaluation.bounds.list_builders import ListHeads, filled
from recsys.metrics.case_reading import Reading
from recsys.metrics.requests import Request
from recsys.types import Int


class BestLists(NamedTuple):
    """Something the engine can measure, and whether nothing can be better."""

    judged: Any
    proven: bool = False


class BoundsTask:
    """One request: its field, how many places to fill, and a reading of all the items there are."""

    def __init__(self, field: CandidatePool, request: Request, rules: Conventions) -> None:
        self.field, self.request, self.rules = field, request, rules
        self.params = request.own_params
        self.places = field.shown(request.k)
        self.here = request.conventions(rules)

    @property
    def reading(self) -> Reading:
        return self.field.readings.under(self.here)

    @property
    def all_items(self) -> Int:
        """The items that may be shown, by id."""
        return np.flatnonzero(self.field.open)

    def lists(self, front: ListHeads | None = None, order: Int | None = None, last: Int | None = None) -> Any:
        """Lists with `front` on top, filled up in an order of the items."""
        field = self.field
        more = {} if last is None else {"last": last}
        made = filled(field, self.places, self.all_items if order is None else order, front=front, **more)
        return field.listing(*made)
