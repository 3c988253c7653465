"""The judged items at other ranks: the best ones, all tied, or random ones.

Ranking metrics read only the ranks of judged items, so no lists are built for them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions, relevant
from recsys.evaluation.bounds.candidate_pool import CandidatePool
from recsys.kernels.keyed_random import id_keys, mix_bits, pair_keys, unit_floats
from recsys.metrics.requests import Request
from recsys.metrics.weights import gains
from recsys.ranks.counting import RankedTruth
from recsys.types import Array, Float, Hits, Int


@dataclass(frozen=True, eq=False)
class HypotheticalRanks:
    """The truth of an evaluation with its items at other ranks."""

    truth: RankedTruth
    new_hits: Hits
    groups: bool | None

    def __getattr__(self, name: str) -> Any:
        """Everything except the ranks comes from the original truth."""
        return getattr(self.truth, name)

    def hits(self, ties: str, duplicates: str) -> Hits:
        """The hypothetical hits; ties and duplicates do not apply."""
        del ties, duplicates
        return self.new_hits


def entry_gains(pool: CandidatePool, request: Request, rules: Conventions) -> Float:
    """The gain of each entry of the truth in a ranking metric, as far as it decides the best order."""
    judged, metric, conventions = pool.judged, request.metric, request.conventions(rules)
    if metric.population == "judged":
        return np.ones(len(judged.judged))
    grades = np.ones(len(judged.judged)) if judged.grades is None else judged.grades
    counts = relevant(grades, conventions.relevant_from)
    gain = np.ones(len(grades))
    if "gain" in metric.conventions:
        gain[counts] = gains(conventions.gain, grades[counts])
    elif "max_grade" in metric.conventions:
        gain = grades
    if metric.weighted and judged.item_weights is not None:
        gain = gain * judged.item_weights[judged.judged]
    return np.where(counts, gain, 0.0)


def best_ranks(pool: CandidatePool, gain: Float) -> HypotheticalRanks:
    """The reachable items first, by descending gain; items without gain are left out."""
    case, at = _reachable_entries(pool)
    order = np.lexsort((-gain[at], case))
    case, at = case[order], at[order]
    rank = np.arange(1, len(case) + 1) - np.searchsorted(case, case, side="left")
    keep = (rank <= pool.places[case]) & (gain[at] > 0)
    return with_ranks(pool, case[keep], at[keep], rank[keep])


def tied_ranks(pool: CandidatePool) -> HypotheticalRanks:
    """All candidates tied: metrics compute their expectation over equal scores."""
    case, at = _reachable_entries(pool)
    grades = pool.judged.grades
    if grades is not None:
        order = np.lexsort((-grades[at], case))
        case, at = case[order], at[order]
    return with_ranks(pool, case, at, np.ones(len(case), dtype=np.int64), pool.n_candidates[case])


def random_ranks(pool: CandidatePool, turn: int) -> HypotheticalRanks:
    """Random ranks: every order is equally likely; the ranks of a case depend on its id only."""
    case, at = _reachable_entries(pool)
    rank = _random_places(pool, case, turn)
    order = np.lexsort((rank, case))
    keep = order[rank[order] <= pool.places[case[order]]]
    return with_ranks(pool, case[keep], at[keep], rank[keep])


def with_ranks(
    pool: CandidatePool, case: Array, at: Array, rank: Int, tied: Int | None = None
) -> HypotheticalRanks:
    """The truth with its entries `at` put at these ranks; sorted by case, then rank."""
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
    return HypotheticalRanks(judged, new_hits, None if tied is None else True)


def _reachable_entries(pool: CandidatePool) -> tuple[Int, Int]:
    """The case and the truth entry of every reachable item."""
    owner = np.repeat(np.arange(pool.n_cases), np.diff(pool.judged.truth_indptr))
    at = np.flatnonzero(pool.reachable)
    return owner[at], at


def _random_places(pool: CandidatePool, case: Int, turn: int) -> Int:
    """A distinct random rank among the candidates for each entry of a case."""
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
    return rank
