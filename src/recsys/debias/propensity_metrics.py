"""Ranking metrics when relevant items are observed with unequal chances (Yang et al. 2018).

Each metric here is a mean over the relevant items of something that depends on the item's own place. That
something is the metric itself with the item as the only relevant one, so every observed item is made a case
of its own and handed to the registered metric; the estimators only weigh what comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recsys.conventions.decisions import AnyConventions, Conventions, relevant
from recsys.debias.debiased_estimates import Debiased, quietly
from recsys.debias.propensities import YANG, propensities_of, weights_of
from recsys.errors import InputError, NotDefinedError, UnknownNameError
from recsys.evaluation.engine import check_needs
from recsys.evaluation.intake import ranked_of
from recsys.inputs.frames import read_interactions
from recsys.metrics import Terms
from recsys.metrics.case_reading import Reading
from recsys.metrics.requests import Request, parse_all
from recsys.ranks.matching import pair
from recsys.ranks.sources import RankingOptions
from recsys.stats.inference_results import Estimate
from recsys.stats.intervals import mean_interval, ratio_interval
from recsys.types import Array, Bool, Context, Float, Hits, Interactions, Lists

ESTIMATORS = ("naive", "ips", "snips", "snips_pooled")
_REFERENCE = "Yang et al., Unbiased offline recommender evaluation for missing-not-at-random feedback (2018)"
_ADDITIVE = ("recall", "hits", "dcg", "auc", "average_rank", "percentile_rank")
_WITH_ONE = ("hit", "mrr")
_WHY = {
    "precision": "it divides by what was shown, so a shown item that is relevant but was not "
    "observed stays a "
    "miss whatever the weights; ask for hits",
    "f": "it mixes precision and recall",
    "ndcg": "its ideal list is made of the observed items, so it is no sum over them; ask for dcg",
    "map": "the worth of a hit depends on the other hits above it",
    "gmap": "the worth of a hit depends on the other hits above it",
    "err": "the worth of a hit depends on the other hits above it",
    "r_precision": "its cut-off is the number of observed items",
}


def evaluate(
    lists: Any,
    truth: Any,
    metrics: str | Iterable[str],
    *,
    propensities: Any = None,
    train: Any = None,
    power: float = YANG,
    clip: float | None = None,
    n_relevant: int | Mapping[Any, int] | None = None,
    k: int | Sequence[int] | None = None,
    seen: Any = None,
    complete: bool = False,
    conventions: AnyConventions = None,
    estimators: Sequence[str] | None = None,
    confidence: float = 0.95,
) -> Debiased:
    """Estimate metrics over all relevant items from those that were observed.

    Every value is a mean over users of the mean over a user's relevant items: `naive` takes the observed ones
    as they are; `snips` weighs them by 1 / propensity and divides by the user's sum of weights, so only
    ratios of propensities matter; `snips_pooled` divides once, over all users, which is less biased for users
    with few items; `ips` divides by how many items really are relevant, which must be known (`n_relevant`).

    Args:
        lists: recommendations or what ranks the catalogue, as for recsys.evaluate.
        truth: the observed relevant items.
        metrics: recall, hits, dcg, auc, average_rank, percentile_rank; hit and mrr with one item a user.
        propensities: {item: chance of being observed}, or a table with user, item and propensity.
        train: what was observed before; propensities then follow popularity (see popularity_propensities).
        power: of popularity.
        clip: the largest weight.
        n_relevant: how many items are relevant to each user, observed or not; {user: number} also says who
            the users are, those without an observed item included.
        k: cut-offs for the metrics that name none.
        seen: what a user had already (factors and scores).
        complete: the lists rank every candidate.
        conventions: as for recsys.evaluate.
        estimators: some of naive, ips, snips, snips_pooled.
        confidence: of the intervals, which treat users as the sample.

    >>> lists = {1: ["a", "b"], 2: ["a", "c"]}
    >>> found = evaluate(
    ...     lists, {1: {"a", "x"}, 2: {"a", "c"}}, "recall@2", propensities={"a": 1, "c": 0.5, "x": 0.2}
    ... )
    >>> round(found["recall@2", "naive"].value, 4), round(found["recall@2", "snips"].value, 4)
    (0.75, 0.5833)
    """
    requests = parse_all(metrics, k)
    chosen = Conventions.of(conventions)
    observed = _relevant_only(read_interactions(truth), chosen)
    wanted = _estimators(estimators, n_relevant)
    for request in requests:
        _check(request, observed)
    ranked = ranked_of(lists)
    past = None if seen is None else read_interactions(seen, table="seen")
    if isinstance(ranked, Lists):
        judged: Any = pair(ranked, observed, complete=complete)
        observed = _over_cases(judged)
    else:
        judged = ranked.judge(observed, RankingOptions(seen=past))
        complete = True
    chance, counts = propensities_of(observed, propensities, train, power)
    weights, diagnostics = weights_of(chance, clip)
    sizes = None if n_relevant is None else _sizes(observed, n_relevant)
    estimates: dict[tuple[str, str], Estimate] = {}
    for request in requests:
        here = request.conventions(chosen)
        check_needs(request, Context(complete=complete))
        hits = judged.hits(here.ties, here.duplicates)
        for name in wanted:
            worth = _worth(
                hits, observed, request, here,
                aside=(weights, sizes) if name == "ips" else (np.ones(len(weights)), None),
            )  # fmt: skip
            if np.isnan(worth).any():
                counts[f"not_candidates of {request}"] = int(np.isnan(worth).sum())
            estimates[str(request), name] = _estimate(
                name,
                worth,
                np.ones(len(weights)) if name == "naive" else weights,
                observed,
                sizes=sizes,
                confidence=confidence,
                unseen=_unseen(observed, n_relevant),
            )
    notes = ["values are means over a user's relevant items, then over users"]
    if counts.get("without_propensity"):
        notes.append(
            f"{counts['without_propensity']:,} relevant items were not in train and got the least "
            "popular's weight"
        )
    notes += [
        f"{n:,} relevant items left out: {what}" for what, n in counts.items() if what.startswith("not_")
    ]
    return Debiased(estimates, diagnostics, notes=tuple(notes), counts=counts)


def _estimators(asked: Sequence[str] | None, n_relevant: Any) -> list[str]:
    if asked is None:
        return [e for e in ESTIMATORS if e != "ips" or n_relevant is not None]
    for name in asked:
        if name not in ESTIMATORS:
            raise UnknownNameError("estimator", name, ESTIMATORS)
    if "ips" in asked and n_relevant is None:
        raise InputError(
            "ips divides by how many items are relevant to a user, observed or not, which is not known here.",
            hint="Pass n_relevant= (a number, or {user: number}), or use snips, which estimates it.",
        )
    return list(asked)


def _check(request: Request, observed: Interactions) -> None:
    name = request.metric.name
    if name in _ADDITIVE:
        return
    if name in _WITH_ONE:
        several = int((observed.sizes > 1).sum())
        if several == 0:
            return
        why = (
            f"it is a sum over relevant items only where a user has one, and {several} users have more; "
            "ask for recall"
        )
    else:
        why = _WHY.get(name, "it is not a sum over the relevant items")
    raise NotDefinedError(f"{request} cannot be debiased by weights: {why}.", hint=f"See {_REFERENCE}.")


def _relevant_only(truth: Interactions, conventions: Conventions) -> Interactions:
    """The truth without judged items that are not relevant; users keep their place."""
    if truth.grades is None:
        return truth
    return truth.kept(relevant(truth.grades, conventions.relevant_from))


def _over_cases(judged: Any) -> Interactions:
    """The truth over the cases and items it was judged on: users with a list only have an empty one."""
    return Interactions(
        judged.cases,
        judged.items,
        judged.truth_indptr,
        judged.judged,
        judged.grades,
        clusters=judged.clusters,
    )


def _worth(
    hits: Hits,
    observed: Interactions,
    request: Request,
    here: Conventions,
    *,
    aside: tuple[Float, Float | None],
) -> Float:
    """The metric of each observed item as the only relevant one; 0 where it was not found (NaN for ranks)."""
    first = np.ones(len(hits.case), dtype=bool) if hits.repeat is None else ~hits.repeat
    width = max(len(observed.items), 1)
    owner = np.repeat(np.arange(len(observed.cases), dtype=np.int64), observed.sizes)
    key = hits.case[first].astype(np.int64) * width + hits.item[first]
    entry = np.searchsorted(owner * width + observed.codes, key)
    alone = _each_alone(hits, first)
    if request.metric.name == "auc":
        alone = _without_the_others(alone, hits.case[first], aside[0][entry], aside[1])
    reading = Reading(alone, None, "first", Context(complete=alone.n_candidates is not None))
    values = request.metric.body(reading, request.k, here, **request.own_params)
    out = np.full(len(observed.codes), request.metric.empty)
    out[entry] = values.value if isinstance(values, Terms) else values
    return out


def _each_alone(hits: Hits, first: Bool) -> Hits:
    """Every found item as a case of its own."""
    n, case = int(first.sum()), hits.case[first]
    grade = None if hits.grade is None else hits.grade[first]
    return Hits(
        n_cases=n,
        case=np.arange(n, dtype=np.int32),
        item=hits.item[first],
        rank=hits.rank[first],
        grade=grade,
        n_listed=hits.n_listed[case],
        truth_indptr=np.arange(n + 1),
        truth_grade=grade,
        tied=None if hits.tied is None else hits.tied[first],
        n_candidates=None if hits.n_candidates is None else hits.n_candidates[case],
    )


def _without_the_others(alone: Hits, case: Array, share: Float, sizes: Float | None) -> Hits:
    """The same with the user's other relevant items taken out of the ranking: AUC compares with the rest.

    With true propensities an observed item stands for `share` relevant ones, and that many step aside, so
    that those nobody observed are taken out as well, on average. Where only ratios are known, each is one.
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
    left: Any = np.maximum(alone.n_candidates - relevant, 0.0) + 1.0
    return replace(
        alone,
        rank=alone.rank - before[group],
        tied=None if alone.tied is None else alone.tied - (inside[group] - share),
        n_candidates=left,
    )


def _sizes(observed: Interactions, given: int | Mapping[Any, int]) -> Float:
    if isinstance(given, Mapping):
        missing = [i for i in observed.cases.values.tolist() if i not in given]
        if missing:
            raise InputError(f"n_relevant has no entry for user {missing[0]!r}.", row=missing[0])
        sizes = np.array([given[i] for i in observed.cases.values.tolist()], dtype=np.float64)
    else:
        sizes = np.full(len(observed.cases), float(given))
    if not (sizes > 0).all():
        raise InputError("n_relevant holds a number that is not above 0.", hint="Count the relevant items.")
    return sizes


def _unseen(observed: Interactions, given: int | Mapping[Any, int] | None) -> int:
    """Users of whom nothing relevant was observed, so that the truth does not know them."""
    if not isinstance(given, Mapping):
        return 0
    return len(set(given) - set(observed.cases.values.tolist()))


def _estimate(
    name: str,
    worth: Float,
    share: Float,
    observed: Interactions,
    *,
    sizes: Float | None,
    confidence: float,
    unseen: int,
) -> Estimate:
    keep = ~np.isnan(worth)
    case = np.repeat(np.arange(len(observed.cases)), observed.sizes)[keep]
    total = np.bincount(case, weights=share[keep] * worth[keep], minlength=len(observed.cases))
    by = np.bincount(case, weights=share[keep], minlength=len(observed.cases))
    some = by > 0
    if name == "ips" and sizes is not None:
        # A user none of whose items was observed says 0: leaving such users out would bias the mean.
        whole = np.concatenate([total / sizes, np.zeros(unseen if observed.clusters is None else 0)])
        return quietly(lambda: mean_interval(whole, clusters=observed.clusters, confidence=confidence))
    if not some.any():
        raise InputError("no relevant item was observed.", table="truth")
    clusters = None if observed.clusters is None else observed.clusters[some]
    if name == "snips_pooled":
        return quietly(
            lambda: ratio_interval(total[some], by[some], clusters=clusters, confidence=confidence)
        )
    return quietly(lambda: mean_interval(total[some] / by[some], clusters=clusters, confidence=confidence))
