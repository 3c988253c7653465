"""Metrics of what the lists contain: how full they are, whether their items may be shown, their value."""

from __future__ import annotations

import math

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.metrics.case_reading import Reading
from recsys.metrics.registry import divide_or_zero, metric, shown_metric
from recsys.types import Bool, Float


@shown_metric(
    "user_coverage",
    formula="1 if the list holds at least `least` items, otherwise 0; the mean is a share of the users",
    reference="Ge, Delgado-Battenfeld & Jannach, Beyond accuracy: coverage and serendipity (2010)",
    zero_of_none=True,
    aliases=("covered_users",),
    best_lists="any_lists",
)
def user_coverage(h: Reading, k: int | None, c: Conventions, *, least: float = 1.0) -> Float:
    """The share of the users who are shown at least `least` items, by default one.

    >>> import recsys
    >>> recsys.evaluate({1: [3, 5], 2: []}, {1: {3}, 2: {4}}, "user_coverage@2")["user_coverage@2"]
    0.5
    """
    del c
    return (h.n_shown(k) >= least).astype(np.float64)


@shown_metric(
    "filled",
    formula="items shown in the first k places / k",
    reference="RecTools 0.19, SufficientReco",
    at_k="required",
    zero_of_none=True,
    grows_with_k=False,
    aliases=("sufficient_reco",),
    best_lists="any_lists",
)
def filled(h: Reading, k: int | None, c: Conventions) -> Float:
    """The share of the k places that a list fills; a repeated item fills none.

    >>> import recsys
    >>> recsys.evaluate({1: [3, 5]}, {1: {3}}, "filled@4")["filled@4"]
    0.5
    """
    del c
    return np.minimum(h.n_shown(k) / float(k or 1), 1.0)


@shown_metric(
    "valid",
    formula="places in the first k with an item that may be shown / places filled",
    reference="Castells & Moffat, Offline recommender system evaluation (2022)",
    needs=("eligible",),
    best_lists="any_candidates",
)
def valid(h: Reading, k: int | None, c: Conventions) -> Float:
    """The share of the items shown that may be: in the catalogue, not `never`, `eligible`, not shown before.

    >>> import recsys
    >>> lists = {1: [3, 3, 9, 5]}
    >>> recsys.evaluate(lists, {1: {3}}, "valid@4", catalogue=[3, 4, 5], never=[5])["valid@4"]
    0.25
    """
    del c
    entries = h.listed
    inside = slice(None) if k is None else entries.place <= k
    good = _may_be_shown(h)[inside]
    case = entries.case[inside]
    return divide_or_zero(
        np.bincount(case[good], minlength=h.n_cases) * 1.0, np.bincount(case, minlength=h.n_cases) * 1.0
    )


def _may_be_shown(h: Reading) -> Bool:
    """Which entries of the lists may be shown to their user."""
    entries, context = h.listed, h.context
    ids = h.facts.ids
    good = np.ones(len(ids), dtype=bool)
    if context.catalogue is not None:
        good &= context.catalogue.code_of(ids.values) >= 0
    if context.never is not None:
        context.never.same_kind(ids, what="item")
        good &= context.never.code_of(ids.values) < 0
    out = good[entries.item]
    if h.is_repeat is not None:
        out &= ~h.is_repeat
    if context.eligible is not None:
        out &= h.among("eligible", entries.case, entries.item)
    return np.asarray(out)


@metric(
    "value",
    formula="sum over hits in the first k places of the item's value",
    reference="Jannach & Adomavicius, Price and profit awareness in recommender systems (2017)",
    bounds=(-math.inf, math.inf),
    needs=("lists", "items"),
    best_lists="most_valuable",
)
def value(h: Reading, k: int | None, c: Conventions, *, of: str | None = None) -> Float:
    """The value of the relevant items shown, from a column of items= such as price or margin.

    An item without a value adds 0 and is counted.

    >>> import recsys
    >>> price = {3: 10.0, 5: 20.0}
    >>> recsys.evaluate({1: [3, 5]}, {1: {5}}, "value@2", items={"price": price})["value@2"]
    20.0
    """
    del c
    return h.add(h.within(k) * np.nan_to_num(h.facts.number(of), nan=0.0)[h.item])


@shown_metric(
    "shown_value",
    formula="sum over the items shown in the first k places of the item's value",
    reference="Jannach & Adomavicius, Price and profit awareness in recommender systems (2017)",
    bounds=(-math.inf, math.inf),
    needs=("items",),
    zero_of_none=True,
    best_lists="highest_values",
)
def shown_value(h: Reading, k: int | None, c: Conventions, *, of: str | None = None) -> Float:
    """The value of the items shown, relevant or not, from a column of items= such as price or margin.

    >>> import recsys
    >>> price = {3: 10.0, 5: 20.0}
    >>> recsys.evaluate({1: [3, 5]}, {1: {5}}, "shown_value@2", items={"price": price})["shown_value@2"]
    30.0
    """
    del c
    entries = h.shown(k)
    return h.sum_by_case(entries.case, np.nan_to_num(h.facts.number(of), nan=0.0)[entries.item])
