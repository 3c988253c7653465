"""Ranking metrics when relevant items are observed with unequal chances (Yang et al. 2018).

Each metric here is a mean over the relevant items of a value that depends on the item's own place. That value
is the metric itself with the item as the only relevant one, so every observed item becomes a case of its own
for the registered metric; the estimators only weight these values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recsys.conventions.decisions import AnyConventions, Conventions, relevant
from recsys.debias.propensities import YANG_POWER, Debiased, inverse_propensity_weights, truth_propensities
from recsys.errors import ConventionError, InputError, NotDefinedError, notes_only
from recsys.inputs import read_interactions
from recsys.metrics import Terms
from recsys.metrics.ranges import DataLimits, metric_range
from recsys.metrics.readings import Reading
from recsys.metrics.registry import Request, check_needs, parse_all
from recsys.ranks.open_ranking import open_ranking
from recsys.ranks.rankings import LISTS, RankingOptions
from recsys.records.arrays import Array, Context, Float, Hits, Ids, Interactions
from recsys.records.checks import check_choices, to_floats
from recsys.stats.intervals import mean_interval, ratio_interval
from recsys.stats.results import Estimate

ESTIMATORS = ("naive", "ips", "snips", "snips_pooled")
_ESTIMATED = {
    "naive": "naive: mean over users of their observed items; the interval does not cover the bias",
    "snips": "snips: the same, weighted; the interval does not cover the bias that few items per user leave",
    "snips_pooled": "snips_pooled: mean over all relevant items, observed or not",
    "ips": "ips: mean over users of all relevant items, observed or not",
}
_REFERENCE = "Yang et al., Unbiased offline recommender evaluation for missing-not-at-random feedback (2018)"


def evaluate(
    lists: Any,
    truth: Any,
    metrics: str | Iterable[str],
    *,
    propensities: Any = None,
    train: Any = None,
    power: float = YANG_POWER,
    clip: float | None = None,
    n_relevant: int | Mapping[Any, int] | None = None,
    k: int | Sequence[int] | None = None,
    seen: Any = None,
    full_ranking: bool = False,
    conventions: AnyConventions = None,
    estimators: Sequence[str] | None = None,
    confidence: float = 0.95,
) -> Debiased:
    """Estimate metrics over all relevant items from those that were observed.

    `snips_pooled` and `ips` estimate the mean over all relevant items, observed or not. `snips_pooled`
    weights the observed items of all users by 1 / propensity and divides once by the sum of the weights: only
    ratios of propensities matter, and users with more relevant items count for more. `ips` divides by how
    many items really are relevant to each user, which must be known (`n_relevant`); every user counts once.

    `naive` and `snips` are means over users of the mean over a user's observed items: `naive` takes them as
    they are, `snips` weights them by 1 / propensity, as `item_weights=` of recsys.evaluate does. The weight
    of a user's only observed item makes no difference, so `snips` is less biased than `naive`, but comes near
    the mean over all relevant items only if users have many observed ones. The intervals of these two are of
    the mean over observed items; they do not cover the bias.

    Args:
        lists: recommendations, or a source that ranks the catalogue, as for recsys.evaluate.
        truth: the observed relevant items.
        metrics: recall, hits, dcg, auc, average_rank, percentile_rank; hit and mrr with one item per user.
        propensities: {item: chance of being observed}, or a table with user, item and propensity.
        train: what was observed before; propensities then follow popularity (see popularity_propensities).
        power: the power of popularity.
        clip: the largest weight.
        n_relevant: how many items are relevant to each user, observed or not; {user: number} also adds the
            users without an observed item.
        k: cut-offs for the metrics that name none.
        seen: what a user had already (factors and scores).
        full_ranking: the lists rank every candidate.
        conventions: as for recsys.evaluate.
        estimators: some of naive, ips, snips, snips_pooled.
        confidence: of the intervals, which treat users as the sample.

    >>> lists = {1: ["a", "b"], 2: ["a", "c"]}
    >>> estimates = evaluate(
    ...     lists, {1: {"a", "x"}, 2: {"a", "c"}}, "recall@2", propensities={"a": 1, "c": 0.5, "x": 0.2}
    ... )
    >>> round(estimates["recall@2", "naive"].value, 4), round(estimates["recall@2", "snips"].value, 4)
    (0.75, 0.5833)
    """
    requests = parse_all(metrics, k)
    base = Conventions.of(conventions)
    observed = read_interactions(truth)
    if observed.grades is not None:  # without judged items that are not relevant; users keep their place
        observed = observed.kept(relevant(observed.grades, base.relevant_from))
    names = _check_estimators(estimators, n_relevant)
    for request in requests:
        _check_additive(request, observed)
    ranked = open_ranking(lists).among(None, None, complete=full_ranking, source=LISTS)
    history = None if seen is None else read_interactions(seen, table="seen")
    how = RankingOptions(seen=history, shared=True, rank_gaps=base.rank_gaps)
    judged: Any = ranked.rank(observed, how)
    # The cases of the ranking: users who only have a list have no items in the truth.
    observed = Interactions(
        judged.cases, judged.items, judged.truth_indptr, judged.judged, judged.grades,
        clusters=judged.clusters,
    )  # fmt: skip
    chance, counts = truth_propensities(observed, propensities, train, power)
    weights, diagnostics = inverse_propensity_weights(chance, clip)
    sizes, n_unobserved = _n_relevant_per_user(observed, n_relevant)
    estimates: dict[tuple[str, str], Estimate] = {}
    left_out: dict[str, int] = {}
    for request in requests:
        decisions = request.conventions(base)
        check_needs(request, Context(complete=ranked.complete))
        if decisions.judged_only == "yes":
            raise ConventionError(
                "these estimates are of unjudged items, and judged_only='yes' removes them from the lists.",
                hint="Leave out judged_only.",
            )
        if decisions.ties in ("best", "worst") and judged.has_ties:
            raise ConventionError(
                f"there is no {decisions.ties} order of equal scores for a weighted sum whose weights are "
                "estimates.",
                hint="Use ties='expected', or ties='by_id'.",
            )
        listed_once = judged.without_repeats() if decisions.duplicates == "collapse" else judged
        hits = listed_once.hits(decisions.ties, decisions.duplicates)
        limits = _range_of_items(request, decisions, observed, hits)
        for name in names:
            values = _values_of_items(
                hits, observed, request, decisions,
                stands_for=(weights, sizes) if name == "ips" else (np.ones(len(weights)), None),
            )  # fmt: skip
            if np.isnan(values).any():
                left_out[f"not_candidates of {request}"] = int(np.isnan(values).sum())
            used = np.ones(len(weights)) if name == "naive" else weights
            with notes_only():
                estimates[str(request), name] = _estimate(
                    name, values, used, observed,
                    sizes=sizes, limits=limits, confidence=confidence, n_unobserved=n_unobserved,
                )  # fmt: skip
    notes = [words for estimator, words in _ESTIMATED.items() if estimator in names]
    if counts.get("without_propensity"):
        notes.append(
            f"{counts['without_propensity']:,} relevant items were not in train and got the least "
            "popular's weight"
        )
    notes += [f"{n:,} relevant items left out: {what}" for what, n in left_out.items()]
    return Debiased(estimates, diagnostics, notes=tuple(notes), counts=counts | left_out)


def _check_estimators(estimators: Sequence[str] | None, n_relevant: Any) -> list[str]:
    if estimators is None:
        return [e for e in ESTIMATORS if e != "ips" or n_relevant is not None]
    names = check_choices("estimator", estimators, ESTIMATORS)
    if "ips" in names and n_relevant is None:
        raise InputError(
            "ips divides by how many items are relevant to a user, observed or not, which is not known here.",
            hint="Pass n_relevant= (a number, or {user: number}), or use snips, which estimates it.",
        )
    return names


def _check_additive(request: Request, observed: Interactions) -> None:
    """Refuse metrics that are not sums over the relevant items."""
    additive, n_with_more = request.metric.additivity.additive, int((observed.sizes > 1).sum())
    if additive is True or (additive == "one item" and n_with_more == 0):
        return
    why = request.metric.additivity.not_additive
    if additive == "one item":
        why = f"it is a sum over relevant items only where a user has one, and {n_with_more} users have more"
        why += "; ask for recall"
    raise NotDefinedError(f"{request} cannot be debiased by weights: {why}.", hint=f"See {_REFERENCE}.")


def _values_of_items(
    hits: Hits,
    observed: Interactions,
    request: Request,
    decisions: Conventions,
    *,
    stands_for: tuple[Float, Float | None],
) -> Float:
    """Measure with each observed item as the only relevant one; 0 where it was not found, or NaN."""
    first = np.ones(len(hits.case), dtype=bool) if hits.repeat is None else ~hits.repeat
    case, item = hits.case[first], hits.item[first]
    width = max(len(observed.items), 1)
    owner = np.repeat(np.arange(len(observed.cases), dtype=np.int64), observed.sizes)
    entry = np.searchsorted(owner * width + observed.codes, case.astype(np.int64) * width + item)
    grade = None if hits.grade is None else hits.grade[first]
    alone = Hits(
        n_cases=len(case),
        case=np.arange(len(case), dtype=np.int32),
        item=item,
        rank=hits.rank[first],
        grade=grade,
        n_listed=hits.n_listed[case],
        truth_indptr=np.arange(len(case) + 1),
        truth_grade=grade,
        tied=None if hits.tied is None else hits.tied[first],
        n_candidates=None if hits.n_candidates is None else hits.n_candidates[case],
    )
    if request.metric.additivity.against_others:
        weights, sizes = stands_for
        alone = _without_other_relevant(alone, case, weights[entry], sizes)
    reading = Reading(alone, None, "first", Context(complete=alone.n_candidates is not None))
    values = request.metric.body(reading, request.k, decisions, **request.own_params)
    out = np.full(len(observed.codes), request.metric.empty)
    out[entry] = values.value if isinstance(values, Terms) else values
    return out


def _without_other_relevant(alone: Hits, case: Array, share: Float, sizes: Float | None) -> Hits:
    """Return hits with the user's other relevant items removed, as AUC compares with the rest.

    With true propensities an observed item stands for `share` relevant ones, and that many are removed, so
    that unobserved ones are removed as well, on average. Where only ratios are known, each share is 1.
    """
    if len(case) == 0 or alone.n_candidates is None:
        return alone
    new = np.ones(len(case), dtype=bool)
    new[1:] = (case[1:] != case[:-1]) | (alone.rank[1:] != alone.rank[:-1])
    start = np.flatnonzero(new)
    group = np.cumsum(new) - 1
    inside = np.bincount(group, weights=share)
    running = np.concatenate([[0.0], np.cumsum(inside)])[:-1]
    first_of_case = np.ones(len(start), dtype=bool)
    first_of_case[1:] = case[start][1:] != case[start][:-1]
    before = running - np.maximum.accumulate(np.where(first_of_case, running, 0.0))
    relevant = np.bincount(case, weights=share)[case] if sizes is None else sizes[case]
    n_left: Any = np.maximum(alone.n_candidates - relevant, 0.0) + 1.0
    return replace(
        alone,
        rank=alone.rank - before[group],
        tied=None if alone.tied is None else alone.tied - (inside[group] - share),
        n_candidates=n_left,
    )


def _n_relevant_per_user(
    observed: Interactions, n_relevant: int | Mapping[Any, int] | None
) -> tuple[Float | None, int]:
    """Count the items relevant to each user, and the users with such items who are not in the truth."""
    if n_relevant is None:
        return None, 0
    users, n_unobserved = observed.cases.values.tolist(), 0
    if isinstance(n_relevant, Mapping):
        missing = [user for user in users if user not in n_relevant]
        if missing:
            raise InputError(f"n_relevant has no entry for user {missing[0]!r}.", row=missing[0])
        sizes = to_floats([n_relevant[user] for user in users], "n_relevant")
        n_unobserved = len(set(n_relevant) - set(users))
    else:
        number = to_floats(n_relevant, "n_relevant")
        if number.ndim:
            raise InputError(
                f"n_relevant came with shape {number.shape}.", hint="Pass a number or {user: number}."
            )
        sizes = np.full(len(users), number)
    if not (sizes > 0).all():
        raise InputError("n_relevant holds a number that is not above 0.", hint="Count the relevant items.")
    return sizes, n_unobserved


def _range_of_items(
    request: Request, decisions: Conventions, observed: Interactions, hits: Hits
) -> tuple[float, float] | None:
    """Return the least and the greatest value one relevant item can have; None if there is only one."""
    n = len(observed.codes)
    alone = Interactions(Ids(np.arange(n)), observed.items, np.arange(n + 1), observed.codes, observed.grades)
    n_places = int((hits.n_listed if hits.n_candidates is None else hits.n_candidates).max(initial=0))
    data = DataLimits(alone, Context(complete=hits.n_candidates is not None), n_places)
    least, most = metric_range(request, decisions, data)
    return (least, most) if least < most else None


def _estimate(
    name: str,
    values: Float,
    weights: Float,
    observed: Interactions,
    *,
    sizes: Float | None,
    limits: tuple[float, float] | None,
    confidence: float,
    n_unobserved: int,
) -> Estimate:
    keep = ~np.isnan(values)
    case = np.repeat(np.arange(len(observed.cases)), observed.sizes)[keep]
    total = np.bincount(case, weights=weights[keep] * values[keep], minlength=len(observed.cases))
    weight_sum = np.bincount(case, weights=weights[keep], minlength=len(observed.cases))
    weighted = weight_sum > 0
    if name == "ips" and sizes is not None:
        # A user without an observed item counts as 0: leaving such users out would bias the mean.
        per_user = np.concatenate([total / sizes, np.zeros(n_unobserved if observed.clusters is None else 0)])
        if limits is not None:
            largest = max(1.0, float((weight_sum / sizes).max(initial=0.0)))
            limits = min(0.0, largest * limits[0]), largest * limits[1]
        return mean_interval(per_user, clusters=observed.clusters, confidence=confidence, bounds=limits)
    if not weighted.any():
        raise InputError("no relevant item was observed.", table="truth")
    clusters = None if observed.clusters is None else observed.clusters[weighted]
    if name == "snips_pooled":
        return ratio_interval(
            total[weighted], weight_sum[weighted], clusters=clusters, confidence=confidence, bounds=limits
        )
    return mean_interval(
        total[weighted] / weight_sum[weighted], clusters=clusters, confidence=confidence, bounds=limits
    )
