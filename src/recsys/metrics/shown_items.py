"""Metrics of the items shown: how full the lists are, whether their items may be shown, value, popularity.

Popularity is the number of users who had an item in train=. An item that no user had is as novel as one
that a single user had, because 0 has no logarithm.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import ConventionError
from recsys.metrics.attributes import ItemFacts
from recsys.metrics.catalogue import OF_PLACES, place_weights
from recsys.metrics.ranges import DataLimits, Range, range_of_sum
from recsys.metrics.readings import Reading
from recsys.metrics.registry import Terms, divide_or_nan, divide_or_zero, metric, shown_metric
from recsys.metrics.traits import UNIT
from recsys.records.arrays import Float, entries_of_cases

_CASTELLS = "Castells, Vargas & Wang, Novelty and diversity metrics for recommender systems (2011)"
_VARGAS = "Vargas & Castells, Rank and relevance in novelty and diversity metrics (2011)"
_ABDOLLAHPOURI = "Abdollahpouri et al., Popularity bias, calibration and fairness (2020)"


@shown_metric(
    "user_coverage",
    formula="1 if at least `least` items are shown in the first k places, otherwise 0",
    reference="Ge, Delgado-Battenfeld & Jannach, Beyond accuracy: coverage and serendipity (2010)",
    zero_of_none=True,
    aliases=("covered_users",),
    best_lists="any_lists",
    tie_order="set",
)
def user_coverage(h: Reading, k: int | None, c: Conventions, *, least: float = 1.0) -> Float:
    """The share of the users who are shown at least `least` items, by default one.

    >>> import recsys
    >>> recsys.evaluate({1: [3, 5], 2: []}, {1: {3}, 2: {4}}, "user_coverage@2")["user_coverage@2"]
    0.5
    """
    return (h.n_shown(k) >= least).astype(np.float64)


@shown_metric(
    "filled",
    formula="min(items shown in the first k places / k, 1)",
    reference="RecTools 0.19, SufficientReco",
    at_k="required",
    zero_of_none=True,
    aliases=("sufficient_reco",),
    best_lists="any_lists",
    tie_order="set",
)
def filled(h: Reading, k: int | None, c: Conventions) -> Float:
    """The share of the k places that a list fills; a repeated item fills none.

    >>> import recsys
    >>> recsys.evaluate({1: [3, 5]}, {1: {3}}, "filled@4")["filled@4"]
    0.5
    """
    return np.minimum(h.n_shown(k) / float(k or 1), 1.0)


@shown_metric(
    "valid",
    formula="entries of the first k places with an item that may be shown / entries of the first k places",
    reference="Castells & Moffat, Offline recommender system evaluation (2022)",
    needs=("eligible",),
    best_lists="any_candidates",
    tie_order="items",
)
def valid(h: Reading, k: int | None, c: Conventions) -> Float:
    """The share of the items shown that may be: in the catalogue, `eligible`, not in `exclude`, not repeated.

    Here repeats are entries that may not be shown, whatever `duplicates` says; an empty place
    (rank_gaps=kept) does not count as an entry. What is not given rules nothing out; with eligible=, a user
    without an entry there may be shown nothing.

    >>> import recsys
    >>> lists = {1: [3, 3, 9, 5]}
    >>> recsys.evaluate(lists, {1: {3}}, "valid@4", catalogue=[3, 4, 5], exclude=[5])["valid@4"]
    0.25
    """
    entries, context, ids = h.listed, h.context, h.facts.ids
    allowed = np.ones(len(ids), dtype=bool)
    if context.catalogue is not None:
        allowed &= context.catalogue.code_of(ids.values) >= 0
    if context.never is not None:
        context.never.same_kind(ids, what="item")
        allowed &= context.never.code_of(ids.values) < 0
    good = allowed[entries.item]
    if h.is_repeat is not None:
        good &= ~h.is_repeat
    if context.eligible is not None:
        good &= h.among("eligible", entries.case, entries.item)
    inside = slice(None) if k is None else entries.place <= k
    case, good = entries.case[inside], good[inside]
    return divide_or_zero(
        np.bincount(case[good], minlength=h.n_cases) * 1.0, np.bincount(case, minlength=h.n_cases) * 1.0
    )


def _values_of_hits(h: Reading, k: int | None, c: Conventions, *, of: str | None, best: bool = True) -> Float:
    """Return the value of each relevant hit, 0 if it has none."""
    return np.asarray(np.nan_to_num(h.facts.number(of), nan=0.0)[h.item])


def _range_of_value(data: DataLimits, k: int | None, c: Conventions, *, of: str | None) -> Range:
    """Return the dearest items of the truth, as many as can be hit."""
    values = ItemFacts(data.truth.items, data.context).number(of)
    return range_of_sum(values, data.n_hits(k, c), repeats=c.duplicates == "all")


@metric(
    "value",
    formula="sum over hits in the first k places of the item's value",
    reference="Jannach & Adomavicius, Price and profit awareness in recommender systems (2017)",
    bounds=(-math.inf, math.inf),
    range=_range_of_value,
    needs=("lists", "items"),
    best_lists="hypothetical_ranks.most_valuable",
    tie_order=_values_of_hits,
)
def value(h: Reading, k: int | None, c: Conventions, *, of: str | None = None) -> Float:
    """The value of the relevant items shown, from a column of items= such as price or margin.

    An item without a value adds 0 and is counted.

    >>> import recsys
    >>> price = {3: 10.0, 5: 20.0}
    >>> recsys.evaluate({1: [3, 5]}, {1: {5}}, "value@2", items={"price": price})["value@2"]
    20.0
    """
    return h.add(h.within(k) * _values_of_hits(h, k, c, of=of))


def _range_of_shown_value(data: DataLimits, k: int | None, c: Conventions, *, of: str | None) -> Range:
    values = data.item_facts.number(of)
    return range_of_sum(values, data.places(k), repeats=c.duplicates == "all")


@shown_metric(
    "shown_value",
    formula="sum over the items shown in the first k places of the item's value",
    reference="Jannach & Adomavicius, Price and profit awareness in recommender systems (2017)",
    bounds=(-math.inf, math.inf),
    range=_range_of_shown_value,
    needs=("items",),
    zero_of_none=True,
    best_lists="highest_values",
    tie_order="items",
)
def shown_value(h: Reading, k: int | None, c: Conventions, *, of: str | None = None) -> Float:
    """The value of the items shown, relevant or not, from a column of items= such as price or margin.

    >>> import recsys
    >>> price = {3: 10.0, 5: 20.0}
    >>> recsys.evaluate({1: [3, 5]}, {1: {5}}, "shown_value@2", items={"price": price})["shown_value@2"]
    30.0
    """
    entries = h.shown(k)
    return h.sum_by_case(entries.case, np.nan_to_num(h.facts.number(of), nan=0.0)[entries.item])


def _check_total(popularity: Float, total: float, name: str) -> None:
    """Raise ConventionError if an item has more users than there are."""
    if popularity.max(initial=0.0) > total:
        raise ConventionError(
            f"an item has {popularity.max():g} users, but the number of all users is {total:g}.",
            hint=f"Write {name}(users=N) with the number of users the popularity was counted over.",
        )


def _range_of_novelty(
    data: DataLimits, k: int | None, c: Conventions, *, users: float | None, cold: str, over: str
) -> Range:
    """Return the bits of an item that a single user had."""
    facts = data.item_facts
    return 0.0, math.log2(max(facts.n_users(users, "novelty") if over == "users" else facts.n_events, 1.0))


@shown_metric(
    "novelty",
    formula="mean over the items shown in the first k places of log2(users / max(users who had the item, 1))",
    reference=_CASTELLS,
    range=_range_of_novelty,
    needs=("popularity",),
    mean_of_items=True,
    aliases=("inverse_user_frequency", "miuf", "mean_self_information"),
    choices={"users": (8.0,), "cold": ("one", "drop", "zero"), "over": ("users", "events")},
)
def novelty(
    h: Reading,
    k: int | None,
    c: Conventions,
    *,
    users: float | None = None,
    cold: str = "one",
    over: str = "users",
) -> Float:
    """How little known the items shown are: the information, in bits, that a user had the item.

    An item no user had counts as had by one. With cold=drop it is left out, and so is a user who is shown
    nothing else; with cold=zero it counts 0. over=events has the number of events (pairs of user and item) in
    place of `users`. users=N sets the number of users.

    >>> import recsys
    >>> train = {1: [3], 2: [3], 3: [3, 5], 4: [3]}
    >>> recsys.evaluate({1: [3, 5]}, {1: {3}}, "novelty@2", train=train)["novelty@2"]
    1.0
    """
    popularity = h.facts.popularity
    total = h.facts.n_users(users, "novelty") if over == "users" else h.facts.n_events
    _check_total(popularity, total, "novelty")
    bits = np.log2(max(total, 1.0) / np.maximum(popularity, 1.0))
    if cold == "one":
        return h.mean_shown(k, bits)
    is_warm = (popularity > 0).astype(np.float64)
    warm_bits = h.mean_shown(k, bits * is_warm)
    if cold == "zero":
        return warm_bits
    warm_share = h.mean_shown(k, is_warm)
    return np.where((warm_share == 0) & (h.n_shown(k) > 0), math.nan, divide_or_zero(warm_bits, warm_share))


@shown_metric(
    "surprisal",
    formula="novelty / log2(users)",
    reference="Zhou et al., Solving the apparent diversity-accuracy dilemma (2010)",
    needs=("popularity",),
    choices={"users": (8.0,), "over": ("list", "k")},
    mean_of_items=True,
)
def surprisal(
    h: Reading, k: int | None, c: Conventions, *, users: float | None = None, over: str = "list"
) -> Float:
    """Novelty as a share of that of an item with a single user; over=k counts empty places as 0.

    It is 0 if there is at most one user. over=k multiplies by (items shown / k) if there is a cut-off.
    users=N sets the number of users.

    >>> import recsys
    >>> train = {1: [3], 2: [3], 3: [3, 5], 4: [3]}
    >>> recsys.evaluate({1: [3, 5]}, {1: {3}}, "surprisal@2", train=train)["surprisal@2"]
    0.5
    """
    n_users = h.facts.n_users(users, "surprisal")
    _check_total(h.facts.popularity, n_users, "surprisal")
    if n_users <= 1:
        return np.zeros(h.n_cases)
    filled = h.n_shown(k) / k if over == "k" and k is not None else 1.0
    return novelty(h, k, c, users=users) / float(np.log2(n_users)) * filled


def _range_of_popularity(data: DataLimits, k: int | None, c: Conventions, *, over: str) -> Range:
    if over == "events":
        return 0.0, float(ItemFacts(data.train_items, data.context).events.max(initial=0.0))
    most = float(data.popularity.max(initial=0.0))
    return 0.0, most if over == "none" else most / max(data.item_facts.n_users(), 1.0)


@shown_metric(
    "average_popularity",
    formula="mean over the items shown in the first k places of the users who had the item",
    reference="Abdollahpouri et al., Managing popularity bias by personalized re-ranking (2019)",
    better="lower",
    range=_range_of_popularity,
    empty=math.nan,
    needs=("popularity",),
    mean_of_items=True,
    aliases=("arp",),
    choices={"over": ("none", "users", "events")},
)
def average_popularity(h: Reading, k: int | None, c: Conventions, *, over: str = "none") -> Float:
    """How many users had the items shown, on average; over=users gives it as a share of all users.

    over=events counts events, without dividing by how many there are: a user who had an item three times
    in train counts three times, whatever the grade; popularity= is not read then.

    >>> import recsys
    >>> train = {1: [3], 2: [3], 3: [3, 5], 4: [3]}
    >>> recsys.evaluate({1: [3, 5]}, {1: {3}}, "average_popularity@2", train=train)["average_popularity@2"]
    2.5
    """
    if over == "events":
        return h.mean_shown(k, h.facts.events)
    mean = h.mean_shown(k, h.facts.popularity)
    return mean if over == "none" else mean / max(h.facts.n_users(), 1.0)


def _novelty_of_hits(
    h: Reading,
    k: int | None,
    c: Conventions,
    *,
    relevance: str,
    users: float | None,
    best: bool = True,
    **_: Any,
) -> Float | None:
    """Return the share of users without each relevant hit; None where other items count too."""
    return _unknown_to(h, users)[h.item] if relevance == "yes" else None


def _unknown_to(h: Reading, users: float | None) -> Float:
    """Return the share of the users who did not have each item."""
    total = max(h.facts.n_users(users, "epc"), 1.0)
    _check_total(h.facts.popularity, total, "epc")
    return 1.0 - h.facts.popularity / total


@metric(
    "epc",
    formula="sum over hits in the first k places of w(place) (1 - share of users who had the item)"
    " / sum over the items shown of w(place)",
    reference=_VARGAS,
    needs=("lists", "popularity"),
    choices={"relevance": ("yes", "no"), "users": (8.0,)} | OF_PLACES,
    aliases=("expected_popularity_complement",),
    tie_order=_novelty_of_hits,
)
def epc(
    h: Reading,
    k: int | None,
    c: Conventions,
    *,
    relevance: str = "yes",
    weight: str = "log2",
    p: float = 0.85,
    users: float | None = None,
) -> Float:
    """Expected popularity complement: how few users had the relevant items shown, discounted by place.

    relevance=no counts every item shown, in cases that have relevant items, and takes the order by id under
    ties=expected. The weight of a place is log2, log2_max2, reciprocal, geometric (p^(place - 1)) or none.
    users=N sets the number of users.

    >>> import recsys
    >>> train = {1: [3], 2: [3], 3: [3, 5], 4: [3]}
    >>> asked = ["epc(weight=reciprocal)@2", "epc(relevance=no, weight=none)@2"]
    >>> dict(recsys.evaluate({1: [3, 5]}, {1: {5}}, asked, train=train))
    {'epc(weight=reciprocal)@2': 0.25, 'epc(relevance=no, weight=none)@2': 0.375}
    """
    unknown, entries = _unknown_to(h, users), h.shown(k)
    weights = place_weights(weight, p, int(entries.place.max(initial=1)))[entries.place - 1]
    if relevance == "yes":
        total = h.add(h.place_weights(lambda n: place_weights(weight, p, n), k) * unknown[h.item])
    else:
        total = h.sum_by_case(entries.case, weights * unknown[entries.item])
    return divide_or_zero(total, h.sum_by_case(entries.case, weights))


def _range_of_lift(data: DataLimits, k: int | None, c: Conventions) -> Range:
    """Return the range of a lift: users had what is in the profile, so its mean popularity is at least 1."""
    most = math.inf if data.context.popularity is not None else float(data.popularity.max(initial=1.0)) - 1.0
    return -1.0, most


def _lift(shown: float, had: float) -> float:
    return shown / had - 1.0 if had else math.nan


@shown_metric(
    "popularity_lift",
    formula="mean popularity of the items shown in the first k places / that of the items the user had - 1",
    reference=_ABDOLLAHPOURI,
    better="lower",
    bounds=(-1.0, math.inf),
    range=_range_of_lift,
    empty=math.nan,
    combine=_lift,
    combine_if=("average", "pooled"),
    needs=("train",),
    tie_order="set",
)
def popularity_lift(h: Reading, k: int | None, c: Conventions) -> Terms:
    """How much more popular the items shown are than those the user had: 0 as popular, 1 twice as popular.

    average=pooled is the lift of a group: on both sides the users' means are averaged before they are
    divided. A user without items in train is left out.

    >>> import recsys
    >>> train = {1: [3], 2: [3], 3: [3, 5], 4: [3]}
    >>> asked = ["popularity_lift@1", "popularity_lift(average=pooled)@1"]
    >>> lists = {3: [3], 4: [5]}
    >>> {
    ...     name: round(value, 4)
    ...     for name, value in recsys.evaluate(lists, {3: {5}}, asked, train=train).items()
    ... }
    {'popularity_lift@1': -0.075, 'popularity_lift(average=pooled)@1': -0.2308}
    """
    case, at = entries_of_cases(h.facts.train, h.list_context.users)
    popularity = ItemFacts(h.facts.train.items, h.context).popularity
    total = h.sum_by_case(case, popularity[h.facts.train.codes[at]])
    had = divide_or_nan(total, np.bincount(case, minlength=h.n_cases))
    shown = np.where(h.n_shown(k) > 0, h.mean_shown(k, h.facts.popularity), math.nan)
    lift = divide_or_nan(shown, np.nan_to_num(had)) - 1.0
    return Terms(lift, shown, had)


@shown_metric(
    "popularity_percentile",
    formula="mean over the items shown in the first k places of place / n, among the n items that users had,"
    " from the least popular up; equally popular ones share the middle of their places",
    reference="Ekstrand & Mahant, Sturgeon and the cool kids (2017)",
    better="lower",
    empty=math.nan,
    needs=("train",),
    mean_of_items=True,
)
def popularity_percentile(h: Reading, k: int | None, c: Conventions) -> Float:
    """How high the items shown rank by popularity: 1 is the single top, 0 is an item that no user had.

    >>> import recsys
    >>> train = {1: [3], 2: [3], 3: [3, 5], 4: [3]}
    >>> result = recsys.evaluate({1: [3, 5]}, {1: {3}}, "popularity_percentile@2", train=train)
    >>> result["popularity_percentile@2"]
    0.75
    """
    return h.mean_shown(k, h.facts.popularity_percentile)


@shown_metric(
    "tail_share",
    formula="items shown in the first k places outside the head / items shown",
    reference="Abdollahpouri et al., Managing popularity bias by personalized re-ranking (2019)",
    needs=("train",),
    mean_of_items=True,
    aliases=("aplt",),
    choices={"head": UNIT},
)
def tail_share(h: Reading, k: int | None, c: Conventions, *, head: float = 0.2) -> Float:
    """The share of the items shown that lie in the long tail.

    The head is the most popular items, as many as are needed to reach the share `head` of all events (their
    popularities, from the highest down, add up to at least head x events), and every item as popular as the
    last of them.

    >>> import recsys
    >>> train = {1: [3], 2: [3], 3: [3, 5], 4: [3]}
    >>> recsys.evaluate({1: [3, 5]}, {1: {3}}, "tail_share@2", train=train)["tail_share@2"]
    0.5
    """
    return h.mean_shown(k, h.facts.in_tail(head).astype(np.float64))


@shown_metric(
    "unseen",
    formula="items shown in the first k places that the user had not had before / items shown",
    reference="Castells, Hurley & Vargas, Novelty and diversity in recommender systems (2022)",
    needs=("train",),
    best_lists="unseen_first",
    tie_order="items",
)
def unseen(h: Reading, k: int | None, c: Conventions) -> Float:
    """The share of the items shown that are new to their user.

    >>> import recsys
    >>> recsys.evaluate({1: [3, 5]}, {1: {3}}, "unseen@2", train={1: [3]})["unseen@2"]
    0.5
    """
    entries = h.shown(k)
    had = h.among("train", entries.case, entries.item)
    return divide_or_zero(
        h.n_shown(k) - np.bincount(entries.case[had], minlength=h.n_cases), h.n_shown(k) * 1.0
    )
