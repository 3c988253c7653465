"""The judged items at other ranks: the best ones, all tied, or random ones.

Ranking metrics read only the ranks of judged items, so no lists are built for them. Where the gain of an item
is more than its grade, it comes from a table, from another model's lists or from the intents it serves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions, relevant
from recsys.evaluation.bounds.candidate_pool import BestLists, BoundsTask, CandidatePool
from recsys.kernels.keyed_random import id_keys, mix_bits, pair_keys, unit_floats
from recsys.metrics.intents import Intents, greedy_order, truth_intents
from recsys.metrics.reference_lists import reference_frequency
from recsys.metrics.registry import Request
from recsys.metrics.weights import gains
from recsys.ranks.ranked_truth import RankedTruth
from recsys.records.arrays import Array, Float, Hits, Int, is_in, number_in_run, sorted_unique


class HypotheticalRanks:
    """The truth of an evaluation with its items at other ranks; all else is that of the evaluation."""

    restricted = False

    def __init__(self, evaluated: RankedTruth, hits: Hits) -> None:
        self._evaluated, self._hits = evaluated, hits
        self.has_ties = hits.tied is not None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._evaluated, name)

    def n_undecided(self) -> tuple[int, int]:
        return 0, 0

    def hits(self, ties: str, duplicates: str) -> Hits:
        """Return the hypothetical hits; ties and duplicates do not apply."""
        del ties, duplicates
        return self._hits


def entry_gains(pool: CandidatePool, request: Request, rules: Conventions) -> Float:
    """Return the gain of each entry of the truth in a ranking metric, as far as it decides the best order."""
    judged, metric, conventions = pool.judged, request.metric, request.conventions(rules)
    if metric.population == "judged" and metric.truth.reads_judgements:
        return np.ones(len(judged.judged))
    grades = np.ones(len(judged.judged)) if judged.grades is None else judged.grades
    counts = relevant(grades, conventions.relevant_from)
    gain = np.ones(len(grades)) if metric.truth.weighted else grades.copy()
    if "gain" in metric.conventions:
        gain[counts] = gains(conventions.gain, grades[counts])
    if metric.truth.weighted and judged.item_weights is not None:
        gain = gain * judged.item_weights[judged.judged]
    return np.where(counts, gain, 0.0)


def best_ranks(pool: CandidatePool, gain: Float) -> HypotheticalRanks:
    """Return the reachable items first, by descending gain; items without gain are left out."""
    case, at = _reachable_entries(pool)
    order = np.lexsort((-gain[at], case))
    case, at = case[order], at[order]
    rank = number_in_run(case, first=1)
    keep = (rank <= pool.places[case]) & (gain[at] > 0)
    return with_ranks(pool, case[keep], at[keep], rank[keep])


def tied_ranks(pool: CandidatePool) -> HypotheticalRanks:
    """Return all candidates tied: metrics compute their expectation over equal scores."""
    case, at = _reachable_entries(pool)
    grades = pool.judged.grades
    if grades is not None:
        order = np.lexsort((-grades[at], case))
        case, at = case[order], at[order]
    return with_ranks(pool, case, at, np.ones(len(case), dtype=np.int64), pool.n_candidates[case])


def random_ranks(pool: CandidatePool, turn: int) -> HypotheticalRanks:
    """Random ranks: every order is equally likely; the ranks of a case depend on its id only."""
    case, at = _reachable_entries(pool)
    keys = id_keys(pool.judged.cases, turn, purpose="limits places")
    sizes, n = np.bincount(case, minlength=pool.n_cases), pool.n_candidates
    rank = np.zeros(len(case), dtype=np.int64)
    # Cases where judged items are the majority order all candidates; the others draw until all ranks differ.
    crowded = np.flatnonzero(2 * sizes > n)
    owner = np.repeat(crowded, n[crowded])
    cell = np.arange(len(owner)) - np.repeat(np.cumsum(n[crowded]) - n[crowded], n[crowded])
    order = np.lexsort((pair_keys(keys[owner], cell.astype(np.uint64)), owner))
    number = np.arange(len(case)) - (np.cumsum(sizes) - sizes)[case]
    ordered = np.isin(case, crowded)
    first = np.zeros(pool.n_cases, dtype=np.int64)
    first[crowded] = np.cumsum(n[crowded]) - n[crowded]
    rank[ordered] = cell[order][first[case[ordered]] + number[ordered]] + 1
    spread, attempt = max(int(n.max(initial=0)), 1) + 1, 0
    pending = np.flatnonzero(~ordered)
    while len(pending):
        key = mix_bits(pair_keys(keys[case[pending]], number[pending].astype(np.uint64)) + np.uint64(attempt))
        rank[pending] = (unit_floats(key) * n[case[pending]]).astype(np.int64) + 1
        pairs = case * spread + rank
        order = np.argsort(pairs, kind="stable")
        same = order[1:][pairs[order[1:]] == pairs[order[:-1]]]
        pending, attempt = same[~ordered[same]], attempt + 1
    order = np.lexsort((rank, case))
    keep = order[rank[order] <= pool.places[case[order]]]
    return with_ranks(pool, case[keep], at[keep], rank[keep])


def with_ranks(
    pool: CandidatePool, case: Array, at: Array, rank: Int, tied: Int | None = None
) -> HypotheticalRanks:
    """Return the truth with its entries `at` put at these ranks; sorted by case, then rank."""
    judged = pool.judged
    hits = judged.hits("by_id", "first")
    item, weights = judged.judged[at], judged.item_weights
    new_hits = replace(
        hits,
        case=case.astype(np.int32),
        item=item,
        rank=rank,
        grade=None if judged.grades is None else judged.grades[at],
        tied=tied,
        repeat=None,
        weight=None if weights is None else weights[item],
        n_listed=pool.places,
        n_candidates=None if hits.n_candidates is None else pool.n_candidates,
    )
    return HypotheticalRanks(judged, new_hits)


def _reachable_entries(pool: CandidatePool) -> tuple[Int, Int]:
    """Return the case and the truth entry of every reachable item."""
    at = np.flatnonzero(pool.reachable)
    return pool.truth_case[at], at


def _by_item_gain(task: BoundsTask, item_gains: Float) -> BestLists:
    """Return the relevant items with the highest gain on top: optimal for a sum over hits."""
    counts = entry_gains(task.pool, task.request, task.rules) > 0
    codes = task.pool.catalogue_truth.judged
    return BestLists(best_ranks(task.pool, np.where(counts, item_gains[codes], 0.0)), proven=True)


def most_valuable(task: BoundsTask) -> list[BestLists]:
    """Return the relevant items of most value.

    Those of negative value are left out if others fill their places.
    """
    value, pool = np.nan_to_num(task.reading.facts.number(task.params["of"]), nan=0.0), task.pool
    n_reachable = np.bincount(pool.truth_case[pool.reachable], minlength=pool.n_cases)
    others = pool.n_candidates - n_reachable
    free = bool((value[pool.catalogue_truth.judged] >= 0).all() or (others >= task.places).all())
    return [_by_item_gain(task, value)._replace(proven=free)]


def least_expected(task: BoundsTask) -> list[BestLists]:
    """Return the relevant items that the reference is least likely to show."""
    pool, reading, k = task.pool, task.reading, task.request.k
    if task.params["expected"] == "frequency" or len(reading.context.reference.cases) == 0:  # type: ignore[union-attr]
        return [_by_item_gain(task, 1.0 - reference_frequency(reading, k))]
    counts = entry_gains(pool, task.request, task.rules) > 0
    expected = reading.among("reference", pool.truth_case, pool.catalogue_truth.judged, k)
    return [BestLists(best_ranks(pool, np.where(counts & ~expected, 1.0, 0.0)), proven=True)]


def least_popular(task: BoundsTask) -> list[BestLists]:
    """Return the relevant items by popularity, the least popular on top.

    That is best for a convex gain of place and popularity.
    """
    popularity = task.reading.facts.popularity
    return [_by_item_gain(task, 1.0 / (1.0 + popularity))]


def new_intents(task: BoundsTask) -> list[BestLists]:
    """Relevant items that serve new intents first; optimal if every item serves one intent."""
    return [_greedy_intents(task, float(task.params.get("alpha", 0.5)))]


def every_intent(task: BoundsTask) -> list[BestLists]:
    """Return the same where an intent counts once only."""
    return [_greedy_intents(task, 1.0)]


def most_intents(task: BoundsTask) -> list[BestLists]:
    """Return the relevant items that serve most intents: optimal if all places and intents count equally."""
    return [*new_intents(task), BestLists(_by_number_of_intents(task), proven=True)]


def intents_in_two_orders(task: BoundsTask) -> list[BestLists]:
    """New intents first, and most intents first; which is better depends, and neither need be the best."""
    ranks = [built.judged for built in new_intents(task)]
    return [BestLists(ranks_of_one) for ranks_of_one in (*ranks, _by_number_of_intents(task))]


def _greedy_intents(task: BoundsTask, alpha: float) -> BestLists:
    intents = _reachable_intents(task)
    item_key = task.pool.key(intents.case, intents.item)
    single = len(sorted_unique(item_key)) == len(item_key)
    case, item, rank = greedy_order(task.reading, intents, None, alpha)
    return BestLists(_truth_at_ranks(task.pool, case, item, rank), proven=single)


def _by_number_of_intents(task: BoundsTask) -> HypotheticalRanks:
    pool, intents = task.pool, _reachable_intents(task)
    keys, counts = np.unique(pool.key(intents.case, intents.item), return_counts=True)
    order = np.lexsort((-counts, keys // len(pool.items)))
    case, item = keys[order] // len(pool.items), keys[order] % len(pool.items)
    rank = number_in_run(case, first=1)
    return _truth_at_ranks(pool, case, item, rank)


def _reachable_intents(task: BoundsTask) -> Intents:
    """Return the intents of the relevant items that are candidates of their case."""
    pool, intents = task.pool, truth_intents(task.reading)
    keys = np.sort(pool.key(pool.truth_case, pool.catalogue_truth.judged)[pool.reachable])
    keep = is_in(pool.key(intents.case, intents.item), keys)
    return intents._replace(case=intents.case[keep], item=intents.item[keep], intent=intents.intent[keep])


def _truth_at_ranks(pool: CandidatePool, case: Array, item: Array, rank: Int) -> HypotheticalRanks:
    """Relevant items at these ranks, up to the number of places."""
    keys = pool.key(pool.truth_case, pool.catalogue_truth.judged)
    turn = np.argsort(keys, kind="stable")
    at = turn[np.searchsorted(keys[turn], pool.key(case, item))]
    keep = rank <= pool.places[case]
    return with_ranks(pool, case[keep], at[keep], rank[keep])
