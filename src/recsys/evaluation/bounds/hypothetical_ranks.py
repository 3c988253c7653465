"""The judged items put at other places: the best ones, all places alike, or places drawn at random.

Ranking metrics read nothing but the places of judged items, so no list is made for them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions, relevant
from recsys.evaluation.bounds.candidate_pool import CandidatePool
from recsys.kernels.keyed_random import fractions, id_keys, mixed, pair_keys
from recsys.metrics.requests import Request
from recsys.metrics.weights import gains
from recsys.ranks.counting import RankedTruth
from recsys.types import Array, Float, Hits, Int


@dataclass(frozen=True, eq=False)
class HypotheticalRanks:
    """The truth of an evaluation with its items put at other places."""

    whole: RankedTruth
    found: Hits
    groups: bool | None

    def __getattr__(self, name: str) -> Any:
        """Everything but the places is that of the whole."""
        return getattr(self.whole, name)

    def hits(self, ties: str, duplicates: str) -> Hits:
        """The places that were set."""
        del ties, duplicates
        return self.found


def worth_of(field: CandidatePool, request: Request, rules: Conventions) -> Float:
    """What each entry of the truth adds to a ranking metric, as far as their order hangs on it."""
    judged, metric, here = field.judged, request.metric, request.conventions(rules)
    if metric.population == "judged":
        return np.ones(len(judged.judged))
    grades = np.ones(len(judged.judged)) if judged.grades is None else judged.grades
    counts = relevant(grades, here.relevant_from)
    worth = np.ones(len(grades))
    if "gain" in metric.conventions:
        worth[counts] = gains(here.gain, grades[counts])
    elif "max_grade" in metric.conventions:
        worth = grades
    if metric.weighted and judged.item_weights is not None:
        worth = worth * judged.item_weights[judged.judged]
    return np.where(counts, worth, 0.0)


def ideal(field: CandidatePool, worth: Float) -> HypotheticalRanks:
    """The reachable items first, those that are worth most at the top; what is worth nothing is left out."""
    case, at = _entries(field)
    order = np.lexsort((-worth[at], case))
    case, at = case[order], at[order]
    rank = np.arange(1, len(case) + 1) - np.searchsorted(case, case, side="left")
    keep = (rank <= field.places[case]) & (worth[at] > 0)
    return placed(field, case[keep], at[keep], rank[keep])


def tied(field: CandidatePool) -> HypotheticalRanks:
    """Every candidate at one level: metrics know the expectation over equal scores."""
    case, at = _entries(field)
    grades = field.judged.grades
    if grades is not None:
        order = np.lexsort((-grades[at], case))
        case, at = case[order], at[order]
    return placed(field, case, at, np.ones(len(case), dtype=np.int64), field.candidates[case])


def drawn(field: CandidatePool, turn: int) -> HypotheticalRanks:
    """Every candidate at any place with the same chance; the places of a case hang on its id alone."""
    case, at = _entries(field)
    rank = _places(field, case, turn)
    order = np.lexsort((rank, case))
    keep = order[rank[order] <= field.places[case[order]]]
    return placed(field, case[keep], at[keep], rank[keep])


def placed(
    field: CandidatePool, case: Array, at: Array, rank: Int, tied: Int | None = None
) -> HypotheticalRanks:
    """Entries of the truth at these places; by case, then place."""
    judged = field.judged
    hits = judged.hits("by_id", "first")
    item, weights = judged.judged[at], judged.item_weights
    found = replace(
        hits,
        case=case.astype(np.int32),
        item=item,
        rank=rank,
        grade=None if judged.grades is None else judged.grades[at],
        tied=tied,
        repeat=None,
        weight=None if weights is None else weights[item],
        n_listed=field.places,
        n_candidates=None if hits.n_candidates is None else field.candidates,
    )
    return HypotheticalRanks(judged, found, None if tied is None else True)


def _entries(field: CandidatePool) -> tuple[Int, Int]:
    """The case and the truth entry of every reachable item."""
    owner = np.repeat(np.arange(field.n_cases), np.diff(field.judged.truth_indptr))
    at = np.flatnonzero(field.reachable)
    return owner[at], at


def _places(field: CandidatePool, case: Int, turn: int) -> Int:
    """A different place among the candidates for each entry of a case."""
    keys = id_keys(field.judged.cases, turn, purpose="limits places")
    sizes, n = np.bincount(case, minlength=field.n_cases), field.candidates
    rank = np.zeros(len(case), dtype=np.int64)
    # Who has as many judged items as other candidates orders all of them, the others draw until all differ.
    many = np.flatnonzero(2 * sizes > n)
    owner = np.repeat(many, n[many])
    cell = np.arange(len(owner)) - np.repeat(np.cumsum(n[many]) - n[many], n[many])
    order = np.lexsort((pair_keys(keys[owner], cell.astype(np.uint64)), owner))
    number = np.arange(len(case)) - (np.cumsum(sizes) - sizes)[case]
    mine = np.isin(case, many)
    first = np.zeros(field.n_cases, dtype=np.int64)
    first[many] = np.cumsum(n[many]) - n[many]
    rank[mine] = cell[order][first[case[mine]] + number[mine]] + 1
    spread, again = max(int(n.max(initial=0)), 1) + 1, 0
    open_ = np.flatnonzero(~mine)
    while len(open_):
        key = mixed(pair_keys(keys[case[open_]], number[open_].astype(np.uint64)) + np.uint64(again))
        rank[open_] = (fractions(key) * n[case[open_]]).astype(np.int64) + 1
        pairs = case * spread + rank
        order = np.argsort(pairs, kind="stable")
        same = order[1:][pairs[order[1:]] == pairs[order[:-1]]]
        open_, again = same[~mine[same]], again + 1
    return rank
