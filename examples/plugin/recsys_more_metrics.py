"""A dozen metrics that recsys does not have, each one decorated function.

Three kinds are here. A metric of hits or of items shown gives one number per user; its value is their mean.
One with `kind="ratio"` gives two numbers per user; its value is the quotient of their means. One with
`kind="catalogue"` reads how often each item was shown to all users together, and gives one number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import recsys
from recsys.errors import ConventionError, InputError
from recsys.metrics.attributes import Attribute, ItemFacts
from recsys.metrics.calibration import DIVERGENCES
from recsys.metrics.catalogue import CatalogueReading
from recsys.metrics.ranges import DataLimits, Range
from recsys.metrics.readings import Reading, cut_at
from recsys.metrics.registry import Request, Terms, divide_or_nan, divide_or_zero, ratio
from recsys.metrics.traits import Between
from recsys.metrics.weights import discount_weights
from recsys.records.arrays import Float, Int, entries_of_cases

_VARGAS = "Vargas & Castells, Rank and relevance in novelty and diversity metrics (2011)"
_ZHU = "Zhu, Wang & Caverlee, Measuring and mitigating item under-recommendation bias (2020)"


def _range_of_discovery(data: DataLimits, k: int | None, c: recsys.Conventions) -> Range:
    """The bits of an item with a single event among all."""
    del k, c
    return 0.0, math.log2(max(data.popularity.sum(), 1.0))


@recsys.metric(
    "efd",
    formula="sum over hits in the first k places of w(place) log2(all events / users who had the item)"
    " / sum over the items shown of w(place)",
    reference=_VARGAS,
    range=_range_of_discovery,
    needs=("lists", "train"),
    tie_order="unknown",
)
def efd(h: Reading, k: int | None, c: recsys.Conventions) -> Float:
    """Expected free discovery: the information, in bits, in the relevant items shown, discounted by place.

    An item that nobody had is as new as the least popular one of train=.
    """
    del c
    counts = h.facts.train.item_counts
    least = float(counts[counts > 0].min(initial=counts.max(initial=1)))
    bits = np.log2(counts.sum() / np.maximum(h.facts.popularity, least))
    entries = h.shown(k)
    weights = discount_weights("log2", int(entries.place.max(initial=1)))[entries.place - 1]
    total = h.add(h.place_weights(lambda n: discount_weights("log2", n), k) * bits[h.item])
    return divide_or_zero(total, h.sum_by_case(entries.case, weights))


def _range_of_tail(data: DataLimits, k: int | None, c: recsys.Conventions, *, head: float) -> Range:
    del c, head
    return 0.0, float(data.places(k))


@recsys.metric(
    "aclt",
    formula="items shown in the first k places outside the head",
    reference="Abdollahpouri et al., Managing popularity bias by personalized re-ranking (2019)",
    range=_range_of_tail,
    needs=("lists", "train"),
    ties="shown",
    population="listed",
    tie_order="items",
)
def aclt(h: Reading, k: int | None, c: recsys.Conventions, *, head: float = 0.8) -> Float:
    """Average coverage of the long tail: how many items of the tail a user is shown.

    The head is the most popular items with the share `head` of all interactions.
    """
    del c
    entries = h.shown(k)
    return h.sum_by_case(entries.case, h.facts.in_tail(head)[entries.item].astype(np.float64))


@recsys.metric(
    "half_life_utility",
    formula="sum over hits of max(grade - neutral, 0) 2^(-(place - 1) / (half_life - 1)) / that of the best",
    reference="Breese, Heckerman & Kadie, Empirical analysis of predictive algorithms (1998)",
    combine_if="always",
    aliases=("r_score",),
    choices={"half_life": Between(1)},
    tie_order="relevance",
)
def half_life_utility(
    h: Reading, k: int | None, c: recsys.Conventions, *, half_life: float = 5.0, neutral: float = 0.0
) -> Terms:
    """The R-score: what a reader finds who sees a place with half the chance of one `half_life` - 1 above it.

    The sums of all users are divided: users with more to find weigh more. Grades up to `neutral` add nothing.
    """
    del c

    def gain(grades: Float) -> Float:
        return np.maximum(grades - neutral, 0.0)

    def discount(places: Int) -> Float:
        return np.exp2(-(places - 1) / (half_life - 1))

    return ratio(h.discounted(gain, discount, k), h.best(gain, discount, cut_at(k, h.n_relevant)))


@recsys.metric(
    "ndpm",
    formula="(2 pairs in the wrong order + pairs left equal) / (2 pairs of items with different grades)",
    reference="Yao, Measuring retrieval effectiveness based on user preference of documents (1995)",
    at_k="never",
    better="lower",
    population="judged",
    empty=None,
    needs=("lists",),
    ties="own",
    tie_order="unknown",
)
def ndpm(h: Reading, k: int | None, c: recsys.Conventions) -> Float:
    """Normalised distance-based performance: how far the list is from the user's order of judged items.

    Judged items that are not in the list stand below it, equal to each other. A user whose grades are all the
    same is left out.
    """
    del k, c
    out = np.full(h.n_cases, math.nan)
    ends = np.cumsum(h.hits.n_judged)
    for case in range(h.n_cases):
        own = slice(ends[case] - h.hits.n_judged[case], ends[case])
        items = h.list_context.judged[own]
        grades = np.ones(len(items)) if h.list_context.grades is None else h.list_context.grades[own]
        hits = slice(*np.searchsorted(h.hits.case, [case, case + 1]))
        place = dict(zip(h.hits.item[hits][::-1].tolist(), h.hits.rank[hits][::-1].tolist(), strict=True))
        places = np.array([place.get(item, math.inf) for item in items.tolist()])
        better = grades[:, None] > grades[None, :]
        wrong, equal = places[:, None] > places[None, :], places[:, None] == places[None, :]
        if better.any():
            out[case] = (2 * (better & wrong).sum() + (better & equal).sum()) / (2 * better.sum())
    return out


def _range_of_promotion(data: DataLimits, k: int | None, c: recsys.Conventions) -> Range:
    del c
    reference = data.context.reference
    longest = 0 if reference is None else int(reference.sizes.max(initial=0))
    return 0.0, float(max(longest - 1 - (k or 0), 0))


@recsys.metric(
    "lip",
    formula="how far below place k + 1 of the reference the lowest item of the first k places stood",
    reference="LensKit 2025.8, least_item_promoted",
    at_k="required",
    better="lower",
    range=_range_of_promotion,
    empty=math.nan,
    needs=("lists", "reference"),
    ties="shown",
    population="listed",
    tie_order="set",
)
def lip(h: Reading, k: int | None, c: recsys.Conventions) -> Float:
    """Least item promoted: how deep in the reference list a re-ranking reached for its first k places.

    A user without a reference list is left out.
    """
    del c
    reference, shown = h.pairs("reference"), h.shown(k)
    width = max(len(h.facts.ids), 1)
    taken = np.isin(
        reference.case.astype(np.int64) * width + reference.item,
        shown.case.astype(np.int64) * width + shown.item,
    )
    deepest = np.zeros(h.n_cases)
    np.maximum.at(
        deepest, reference.case[taken & (reference.item >= 0)], reference.place[taken & (reference.item >= 0)]
    )
    has_reference = np.bincount(reference.case, minlength=h.n_cases) > 0
    return np.where(has_reference, np.maximum(deepest - 1 - (k or 0), 0.0), math.nan)


@recsys.metric(
    "upd",
    formula="Jensen-Shannon divergence of the shares of head, middle and tail shown from those the user had",
    reference="Abdollahpouri et al., User-centered evaluation of popularity bias (2021)",
    better="lower",
    empty=math.nan,
    needs=("lists", "train"),
    ties="shown",
    population="listed",
    tie_order="set",
)
def upd(h: Reading, k: int | None, c: recsys.Conventions, *, head: float = 0.2, tail: float = 0.2) -> Float:
    """User popularity deviation: how far the popularity of the items shown is from what the user is used to.

    The head is the most popular items with the share `head` of all interactions, the tail the least popular
    ones with the share `tail`. A user without items in train= is left out.
    """
    del c
    train, shown = h.facts.train, h.shown(k)
    case, at = entries_of_cases(train, h.list_context.users)
    of_train = ItemFacts(train.items, h.context)

    def shares(facts: ItemFacts, case: Any, item: Any) -> Float:
        part = facts.in_tail(head).astype(np.int64) + facts.in_tail(1.0 - tail)
        amounts = np.zeros((h.n_cases, 3))
        np.add.at(amounts, (case, part[item]), 1.0)
        total = amounts.sum(axis=1, keepdims=True)
        return np.divide(amounts, total, out=np.full_like(amounts, math.nan), where=total > 0)

    had, now = shares(of_train, case, train.codes[at]), shares(h.facts, shown.case, shown.item)
    known = ~np.isnan(had[:, 0]) & ~np.isnan(now[:, 0])
    out = np.full(h.n_cases, math.nan)
    out[known] = DIVERGENCES["js"](had[known], now[known], 0.0)
    return out


def _in_group(groups: Attribute, group: str | None, item: Int) -> Float:
    """How much of each item belongs to a group: an equal part of each of its groups."""
    if group not in groups.labels:
        raise ConventionError(f"there is no group {group!r}.", hint=f"Groups are {', '.join(groups.labels)}.")
    entry, code, n_labels = groups.of(item)
    mine = code == groups.labels.index(group)
    return np.bincount(entry[mine], 1.0 / n_labels[mine], minlength=len(item)).astype(np.float64)


@recsys.metric(
    "opportunity",
    formula="hits in the first k places of one group / relevant items of that group, over all users",
    reference=_ZHU,
    combine_if="always",
    needs=("lists", "items"),
    tie_order="unknown",
)
def opportunity(
    h: Reading, k: int | None, c: recsys.Conventions, *, by: str | None = None, group: str | None = None
) -> Terms:
    """The chance of a relevant item of one group to be shown; `equal_opportunity` makes REO of several.

    `by` names the column of items= that holds the groups.
    """
    del c
    groups, (case, item) = h.facts.attribute(by), h.relevant_pairs
    return ratio(
        h.add(h.within(k) * _in_group(groups, group, h.item)),
        h.sum_by_case(case, _in_group(groups, group, item)),
    )


@recsys.metric(
    "pop_opportunity",
    formula="hits in the first k places of the head (or the tail) / relevant items there, over all users",
    reference=_ZHU,
    combine_if="always",
    needs=("lists", "train"),
    tie_order="unknown",
    choices={"part": ("head", "tail")},
)
def pop_opportunity(
    h: Reading, k: int | None, c: recsys.Conventions, *, part: str = "tail", head: float = 0.8
) -> Terms:
    """The chance of a relevant item of head or tail to be shown; `equal_opportunity` makes PopREO of both.

    The head is the most popular items with the share `head` of all interactions. What nobody had is in the
    tail.
    """
    del c
    mine = (h.facts.in_tail(head) == (part == "tail")).astype(np.float64)
    case, item = h.relevant_pairs
    return ratio(h.add(h.within(k) * mine[h.item]), h.sum_by_case(case, mine[item]))


def equal_opportunity(result: recsys.Evaluation, metric: str = "opportunity") -> float:
    """REO: the spread, standard deviation over mean, of the chances of all groups in a result.

    It is no mean over users and no function of what was shown, so it is no metric of its own: evaluate
    "opportunity(by=maker, group=x)@10" for each group, or both parts of "pop_opportunity", and call this.
    """
    rates = np.array([v for name, v in result.items() if Request.parse(name).metric.name == metric])
    return float(rates.std() / rates.mean()) if len(rates) and rates.mean() else math.nan


def _spread(shown: Float, could_be: Float) -> float:
    """Standard deviation over mean of the shares, of groups that could be shown at all."""
    rates = divide_or_zero(shown, could_be)[could_be > 0]
    return float(rates.std() / rates.mean()) if len(rates) and rates.mean() else math.nan


def _by_group(groups: Attribute, amounts: Float) -> Float:
    """One amount per item, summed by group; an item of several groups gives each an equal part."""
    sizes = np.diff(groups.indptr)
    item = np.repeat(np.arange(len(sizes)), sizes)
    return np.bincount(groups.codes, amounts[item] / sizes[item], len(groups.labels)).astype(np.float64)


@recsys.metric(
    "rsp",
    formula="standard deviation / mean over groups of times shown / times an item was new to a user",
    reference=_ZHU,
    kind="catalogue",
    better="lower",
    bounds=(0.0, math.inf),
    needs=("lists", "items", "popularity"),
    ties="shown",
    population="listed",
)
def rsp(s: CatalogueReading, k: int | None, c: recsys.Conventions, *, by: str | None = None) -> float:
    """Ranking-based statistical parity: whether items of every group have the same chance to be shown.

    `by` names the column of items= that holds the groups. An item is new to the users who did not have it in
    train=; they are counted as lists less users of train=, so both should be of the same users.
    """
    del k, c
    groups = s.facts.attribute(by)
    return _spread(_by_group(groups, s.exposure), _by_group(groups, s.n_cases - s.facts.popularity))


@recsys.metric(
    "pop_rsp",
    formula="rsp of two groups, the head and the tail",
    reference=_ZHU,
    kind="catalogue",
    better="lower",
    bounds=(0.0, 1.0),
    needs=("lists", "popularity"),
    ties="shown",
    population="listed",
)
def pop_rsp(s: CatalogueReading, k: int | None, c: recsys.Conventions, *, head: float = 0.8) -> float:
    """Ranking-based statistical parity of the head and the tail of train=; items nobody had are in neither.

    The head is the most popular items with the share `head` of all interactions, and every item as popular.
    """
    del k, c
    popularity = s.facts.popularity
    falling = np.sort(popularity)[::-1]
    last = int(np.searchsorted(np.cumsum(falling), head * falling.sum()))
    in_head = popularity >= falling[min(last, len(falling) - 1)]
    parts = (in_head & (popularity > 0), ~in_head & (popularity > 0))
    new = s.n_cases - popularity
    return _spread(*(np.array([amount[part].sum() for part in parts]) for amount in (s.exposure, new)))


@recsys.metric(
    "bias_disparity",
    formula="share of the group among the items shown / its share among what users had - 1",
    reference="Tsintzou, Pitoura & Tsaparas, Bias disparity in recommendation systems (2019)",
    kind="catalogue",
    better="lower",
    bounds=(-1.0, math.inf),
    needs=("lists", "items", "popularity"),
    ties="shown",
    population="listed",
)
def bias_disparity(
    s: CatalogueReading,
    k: int | None,
    c: recsys.Conventions,
    *,
    by: str | None = None,
    group: str | None = None,
) -> float:
    """How much larger a group of items is among what is shown than among what users had; 0 is neither.

    `by` names the column of items=, `group` one of its values; without it, the largest of all groups counts.
    """
    del k, c
    groups = s.facts.attribute(by)
    shown, had = _by_group(groups, s.exposure), _by_group(groups, s.facts.popularity)
    disparity = divide_or_nan(shown / shown.sum(), had / had.sum()) - 1.0
    if group is None:
        return float(np.nanmax(disparity))
    if group not in groups.labels:
        raise ConventionError(f"there is no group {group!r}.", hint=f"Groups are {', '.join(groups.labels)}.")
    return float(disparity[groups.labels.index(group)])


@recsys.metric(
    "item_mad",
    formula="mean over pairs of groups of |difference of how often an item is shown to a user, on average|",
    reference="Zhu, Hu & Caverlee, Fairness-aware tensor-based recommendation (2018)",
    kind="catalogue",
    better="lower",
    needs=("lists", "items"),
    ties="shown",
    population="listed",
)
def item_mad(s: CatalogueReading, k: int | None, c: recsys.Conventions, *, by: str | None = None) -> float:
    """Mean absolute difference between groups of items in what their items get; 0 if all get the same.

    `by` names the column of items= that holds the groups.
    """
    del k, c
    groups = s.facts.attribute(by)
    sizes = _by_group(groups, np.ones(len(s.exposure)))
    return _mean_difference((divide_or_zero(_by_group(groups, s.exposure), sizes) / s.n_cases)[sizes > 0])


def user_mad(result: recsys.Evaluation, metric: str) -> float:
    """UserMAD: the mean over pairs of groups of users of |difference of a metric|; 0 if all are served alike.

    As `equal_opportunity`, it is a function of a result, here of one with `by=`, whose groups are compared. A
    group without a value is left out.
    """
    if not result.by:
        raise InputError("the result has no groups.", hint='Evaluate with by=, such as by="age".')
    values = np.array([own[str(Request.parse(metric))] for own in result.by.values()])
    return _mean_difference(values[~np.isnan(values)])


def _mean_difference(values: Float) -> float:
    """The mean absolute difference between any two of the values."""
    one, other = np.triu_indices(len(values), 1)
    return float(np.abs(values[one] - values[other]).mean()) if len(one) else 0.0
