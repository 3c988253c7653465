"""The best ranks of the relevant items for metrics that read more than their grades.

The gain of an item comes from a table, from another model's lists or from the intents it serves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recsys.evaluation.bounds import hypothetical_ranks
from recsys.evaluation.bounds.candidate_pool import CandidatePool, is_in, sorted_unique
from recsys.evaluation.bounds.task import BestLists, BoundsTask
from recsys.metrics.intent_coverage import Intents, greedy_order, truth_intents
from recsys.metrics.reference_lists import reference_frequency
from recsys.types import Array, Float, Int


def _by_item_gain(task: BoundsTask, item_gains: Float) -> BestLists:
    """The relevant items with the highest gain on top: optimal for a sum over hits."""
    relevant = hypothetical_ranks.entry_gains(task.pool, task.request, task.rules) > 0
    codes = task.pool.catalogue_truth.judged
    return BestLists(
        hypothetical_ranks.best_ranks(task.pool, np.where(relevant, item_gains[codes], 0.0)), proven=True
    )


def most_valuable(task: BoundsTask) -> list[BestLists]:
    """The relevant items of most value; those of negative value are left out if others fill their places."""
    value, pool = np.nan_to_num(task.reading.facts.number(task.params["of"]), nan=0.0), task.pool
    owner = np.repeat(np.arange(pool.n_cases), np.diff(pool.judged.truth_indptr))[pool.reachable]
    others = pool.n_candidates - np.bincount(owner, minlength=pool.n_cases)
    free = bool((value[pool.catalogue_truth.judged] >= 0).all() or (others >= task.places).all())
    return [_by_item_gain(task, value)._replace(proven=free)]


def least_expected(task: BoundsTask) -> list[BestLists]:
    """The relevant items that the reference is least likely to show."""
    pool, reading, k = task.pool, task.reading, task.request.k
    if task.params["expected"] == "frequency" or len(reading.context.reference.cases) == 0:  # type: ignore[union-attr]
        return [_by_item_gain(task, 1.0 - reference_frequency(reading, k))]
    owner = np.repeat(np.arange(pool.n_cases), np.diff(pool.judged.truth_indptr))
    relevant = hypothetical_ranks.entry_gains(pool, task.request, task.rules) > 0
    expected = reading.among("reference", owner, pool.catalogue_truth.judged, k)
    return [
        BestLists(hypothetical_ranks.best_ranks(pool, np.where(relevant & ~expected, 1.0, 0.0)), proven=True)
    ]


def least_popular(task: BoundsTask) -> list[BestLists]:
    """The relevant items by popularity, the least popular on top: a convex gain of place and popularity."""
    popularity = task.reading.facts.popularity
    return [_by_item_gain(task, 1.0 / (1.0 + popularity))]


def serving_intents(task: BoundsTask) -> list[BestLists]:
    """Relevant items that serve new intents first; optimal if every item serves one intent."""
    pool, reading, name = task.pool, task.reading, task.request.metric.name
    intents = _reachable_intents(pool, truth_intents(reading))
    item_key = pool.key(intents.case, intents.item)
    single = len(sorted_unique(item_key)) == len(item_key)
    alpha = 1.0 if name == "subtopic_recall" else float(task.params.get("alpha", 0.5))
    case, item, rank = greedy_order(reading, intents, None, alpha)
    out = [BestLists(_truth_at_ranks(pool, case, item, rank), proven=name != "map_ia" and single)]
    if name in ("map_ia", "precision_ia"):
        keys, counts = np.unique(item_key, return_counts=True)
        order = np.lexsort((-counts, keys // len(pool.items)))
        case, item = keys[order] // len(pool.items), keys[order] % len(pool.items)
        rank = np.arange(1, len(case) + 1) - np.searchsorted(case, case, side="left")
        out.append(BestLists(_truth_at_ranks(pool, case, item, rank), proven=name == "precision_ia"))
    return out


def _reachable_intents(pool: CandidatePool, intents: Intents) -> Intents:
    """Only the pairs of case and item that are candidates."""
    owner = np.repeat(np.arange(pool.n_cases), np.diff(pool.judged.truth_indptr))
    keys = np.sort(pool.key(owner, pool.catalogue_truth.judged)[pool.reachable])
    keep = is_in(pool.key(intents.case, intents.item), keys)
    return intents._replace(case=intents.case[keep], item=intents.item[keep], intent=intents.intent[keep])


def _truth_at_ranks(pool: CandidatePool, case: Array, item: Array, rank: Int) -> Any:
    """Relevant items at these ranks, up to the number of places."""
    owner = np.repeat(np.arange(pool.n_cases), np.diff(pool.judged.truth_indptr))
    keys = pool.key(owner, pool.catalogue_truth.judged)
    turn = np.argsort(keys, kind="stable")
    at = turn[np.searchsorted(keys[turn], pool.key(case, item))]
    keep = rank <= pool.places[case]
    return hypothetical_ranks.with_ranks(pool, case[keep], at[keep], rank[keep])
