"""Metrics of the whole catalogue: how much of it is shown, and how evenly.

Each is one number over all cases, computed from how often each item was shown (a `CatalogueReading`), and not
a mean over cases; it can be computed again without one group of cases, which gives its interval. Items of the
catalogue that no user was shown count as 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.kernels.exact_sums import geometric_weights
from recsys.metrics.attributes import ItemFacts
from recsys.metrics.registry import catalogue_metric
from recsys.metrics.traits import UNIT, Between
from recsys.metrics.weights import discount_weights
from recsys.records.arrays import Bool, Catalogue, Context, Float, Ids, cached_property

_ADOMAVICIUS = "Adomavicius & Kwon, Improving aggregate recommendation diversity (2012)"
WEIGHTS = ("none", "log2", "log2_max2", "reciprocal", "geometric")
OF_PLACES: dict[str, Any] = {"weight": WEIGHTS, "p": UNIT}  # what the parameters of `place_weights` may be


class CatalogueReading:
    """How often each item of the catalogue was shown; items outside the catalogue do not count."""

    def __init__(
        self, items: Ids, exposure: Float, catalogue: Catalogue, n_cases: float, context: Context
    ) -> None:
        self.catalogue = catalogue
        self.n_items = catalogue.n
        self.n_cases = n_cases
        self.everything = exposure
        """How often each item was shown, whether in the catalogue or not."""
        self._items = items
        self._context = context

    @cached_property
    def exposure(self) -> Float:
        """How often each item of the catalogue with a known id was shown."""
        ids = self.catalogue.ids
        if ids is self._items:
            return self.everything
        at = self._items.code_of(ids.values)
        return np.where(at >= 0, self.everything[at], 0.0) if len(self._items) else np.zeros(len(ids))

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


def place_weights(weight: str, p: float, places: int) -> Float:
    """Return the weight of places 1 … `places`, at index place - 1, by a name of `WEIGHTS`.

    >>> place_weights("geometric", 0.5, 3).tolist()
    [1.0, 0.5, 0.25]
    """
    if weight == "none":
        return np.ones(places)
    return geometric_weights(p, places) if weight == "geometric" else discount_weights(weight, places)


@catalogue_metric(
    "coverage",
    formula="different items shown in the first k places / items of the catalogue",
    reference="Herlocker et al., Evaluating collaborative filtering recommender systems (2004)",
    aliases=("item_coverage", "catalog_coverage", "catalogue_coverage"),
    counts_items="share",
)
def coverage(s: CatalogueReading, k: int | None, c: Conventions) -> float:
    """The share of the catalogue that anybody is shown.

    >>> import recsys
    >>> recsys.evaluate({1: [3, 5], 2: [3, 4]}, {1: {3}}, "coverage@2", catalogue=[3, 4, 5, 6])["coverage@2"]
    0.75
    """
    return len(s.shown) / s.n_items


@catalogue_metric(
    "distinct_items",
    formula="different items shown in the first k places",
    reference=_ADOMAVICIUS,
    bounds=(0.0, math.inf),
    aliases=("aggregate_diversity",),
    counts_items="number",
)
def distinct_items(s: CatalogueReading, k: int | None, c: Conventions) -> float:
    """How many different items of the catalogue anybody is shown.

    >>> import recsys
    >>> recsys.evaluate({1: [3, 5], 2: [3, 4]}, {1: {3}}, "distinct_items@2")["distinct_items@2"]
    3.0
    """
    return float(len(s.shown))


@catalogue_metric(
    "gini",
    formula="sum over i = 1 … n of (2i - n - 1) x_i / (n sum x), x = exposure of the n items, ascending",
    reference="Fleder & Hosanagar, Blockbuster culture's next rise or fall (2009)",
    better="lower",
    conventions=("gini_over",),
    choices=OF_PLACES | {"corrected": ("no", "yes")},
    best_lists="even_exposure.evenly_exposed",
)
def gini(
    s: CatalogueReading,
    k: int | None,
    c: Conventions,
    *,
    weight: str = "none",
    p: float = 0.85,
    corrected: str = "no",
) -> float:
    """How unevenly the places go to the items: 0 all the same, near 1 all to one item.

    weight=log2, log2_max2, reciprocal or geometric (p^(place - 1)) weighs a showing by its place;
    corrected=yes divides by n - 1 instead of n. It is 0 for fewer than two items, or if none is shown.

    >>> import recsys
    >>> recsys.evaluate({1: [3, 5], 2: [3, 4]}, {1: {3}}, "gini@2", catalogue=[3, 4, 5, 6])["gini@2"]
    0.375
    """
    # weight and p were applied when the exposure was counted
    values = np.sort(s.shown)
    n = len(values) if c.gini_over == "recommended" else s.n_items
    if n < 2 or not len(values):
        return 0.0
    place = np.arange(n - len(values) + 1, n + 1)
    value = float(((2 * place - n - 1) * values).sum()) / (n * float(values.sum()))
    return value * n / (n - 1) if corrected == "yes" else value


@catalogue_metric(
    "entropy",
    formula="- sum over items of s log(s), s = the item's share of the exposure of all items; log to `base`",
    reference=_ADOMAVICIUS,
    bounds=(0.0, math.inf),
    aliases=("shannon_entropy",),
    choices=OF_PLACES | {"base": Between(1)},
    best_lists="even_exposure.evenly_exposed",
)
def entropy(
    s: CatalogueReading,
    k: int | None,
    c: Conventions,
    *,
    base: float = 2.0,
    weight: str = "none",
    p: float = 0.85,
) -> float:
    """How widely the places are spread over the items, in bits: log2(n) when n items share them evenly.

    `weight` and `p` weigh a showing by its place, as for gini; an item that is not shown adds 0.

    >>> import recsys
    >>> recsys.evaluate({1: [3, 5], 2: [3, 4]}, {1: {3}}, "entropy@2")["entropy@2"]
    1.5
    """
    # weight and p were applied when the exposure was counted
    if not len(s.shown):
        return 0.0
    share = np.sort(s.shown) / s.shown.sum()
    bits = -float((share * np.log2(share)).sum())
    return max(0.0, bits) / math.log2(base)


def _is_cold(facts: ItemFacts, *, below: float) -> Bool:
    return facts.popularity < below


@catalogue_metric(
    "cold_coverage",
    formula="different cold items shown in the first k places / cold items of the catalogue",
    reference="Schein et al., Methods and metrics for cold-start recommendations (2002)",
    needs=("popularity",),
    aliases=("cold_start_coverage",),
    counts_items="share",
    which_items=_is_cold,
)
def cold_coverage(s: CatalogueReading, k: int | None, c: Conventions, *, below: float = 5.0) -> float:
    """The share of the cold items, had by fewer than `below` users, that anybody is shown; 0 if none is cold.

    Items of the catalogue of which only the number is known are cold.

    >>> import recsys
    >>> result = recsys.evaluate(
    ...     {1: [3, 5]}, {1: {3}}, "cold_coverage(below=1)@2", train={1: [3]}, catalogue=[3, 5, 6]
    ... )
    >>> result["cold_coverage(below=1)@2"]
    0.5
    """
    cold = _is_cold(s.facts, below=below)
    return float((s.exposure[cold] > 0).sum()) / max(int(cold.sum()) + s.n_without_id, 1)


@catalogue_metric(
    "personalisation",
    formula="1 - (sum over items of e^2 - n) / (n (n - 1)), e = sum over the users who are shown the item of "
    "1 / sqrt(different items shown to that user), n = users who are shown anything",
    reference="Zhou et al., Solving the apparent diversity-accuracy dilemma (2010)",
    exposure="list",
    aliases=("personalization", "inter_list_diversity"),
    best_lists="even_exposure.evenly_exposed",
)
def personalisation(s: CatalogueReading, k: int | None, c: Conventions) -> float:
    """How different the lists of two users are on average: 0 all the same, 1 nothing shared.

    It is 1 less the mean over the pairs of users of shared items / sqrt(items shown to one x to the other);
    0 for fewer than two users. Lists are sets of items here: a repeat does not count, whatever `duplicates`
    says. Items outside the catalogue count. 1 / sqrt(…) is rounded to a multiple of 2^-36; a value that this
    takes out of [0, 1] is set to the nearer bound.

    >>> import recsys
    >>> result = recsys.evaluate({1: [3, 5], 2: [3, 4]}, {1: {3}}, "personalisation@2")
    >>> round(result["personalisation@2"], 9)
    0.5
    """
    if s.n_cases < 2:
        return 0.0
    # Sorted, so that the order of the ids does not change the sum.
    shares = np.sort(s.everything[s.everything > 0])
    shared = float((shares**2).sum()) - s.n_cases
    return 1.0 - shared / (s.n_cases * (s.n_cases - 1))
