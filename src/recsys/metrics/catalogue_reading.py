"""What a metric of the whole catalogue may read: how often each item was shown, over all cases.

Its value is not a mean over cases. It is computed from counts per item, so it can be computed again without
one group of cases, which gives its interval.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from recsys.errors import ConventionError
from recsys.metrics.item_facts import ItemFacts
from recsys.types import Catalogue, Context, Float, Ids

WEIGHTS = ("none", "log2", "log2_max2", "reciprocal", "geometric")


class CatalogueReading:
    """How often each item of the catalogue was shown; items outside the catalogue do not count."""

    def __init__(
        self, items: Ids, exposure: Float, catalogue: Catalogue, n_cases: float, context: Context
    ) -> None:
        self.catalogue = catalogue
        self.n_items = catalogue.n
        self.n_cases = n_cases
        self._items = items
        self._exposure = exposure
        self._context = context

    @cached_property
    def exposure(self) -> Float:
        """How often each item of the catalogue with a known id was shown."""
        ids = self.catalogue.ids
        if ids is self._items:
            return self._exposure
        at = self._items.code_of(ids.values)
        return np.where(at >= 0, self._exposure[at], 0.0) if len(self._items) else np.zeros(len(ids))

    @property
    def everything(self) -> Float:
        """How often each item was shown, whether in the catalogue or not."""
        return self._exposure

    @cached_property
    def shown(self) -> Float:
        """The exposure of the items shown at least once."""
        return self.exposure[self.exposure > 0]

    @cached_property
    def facts(self) -> ItemFacts:
        """What is known about the items, in the order of `exposure`."""
        return ItemFacts(self.catalogue.ids, self._context)

    @property
    def n_without_id(self) -> int:
        """How many items of the catalogue occur nowhere in the data: only their number is known."""
        return max(self.n_items - len(self.catalogue.ids), 0)


def check_weight(name: str, weight: str, p: float) -> None:
    """Raise ConventionError unless the weight of a place is a known name and 0 < p < 1."""
    if weight not in WEIGHTS or not 0 < p < 1:
        raise ConventionError(
            f"{name} got weight={weight!r}, p={p!r}.",
            hint=f"The weight of a place is {', '.join(WEIGHTS)}; p lies between 0 and 1.",
        )
