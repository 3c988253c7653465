"""The best places of the relevant items for metrics that read more of them than their grades.

What an item is worth comes from a table, from another model's lists or from the intents it serves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recsys.evaluation.bounds import hypothetical_ranks
from recsys.evaluation.bounds.candidate_pool import CandidatePool, among, ascending
from recsys.evaluation.bounds.task import BestLists, BoundsTask
from recsys.metrics.intent_coverage import Intents, asked_of, greedy_order
from recsys.metrics.reference_lists import expectation
from recsys.types import Array, Float, Int


def _entry_worth(task: BoundsTask, of_item: Float) -> BestLists:
    """The relevant items with most worth on top: of a sum over hits nothing is better."""
    relevant = hypothetical_ranks.worth_of(task.field, task.request, task.rules) > 0
    codes = task.field.stage.judged
    return BestLists(
        hypothetical_ranks.ideal(task.field, np.where(relevant, of_item[codes], 0.0)), proven=True
    )


def worth_most(task: BoundsTask) -> list[BestLists]:
    """The relevant items of most value; what costs more than it brings is left out, where others fill in."""
    worth, field = np.nan_to_num(task.reading.facts.number(task.params["of"]), nan=0.0), task.field
    owner = np.repeat(np.arange(field.n_cases), np.diff(field.judged.truth_indptr))[field.reachable]
    others = field.candidates - np.bincount(owner, minlength=field.n_cases)
    free = bool((worth[field.stage.judged] >= 0).all() or (others >= task.places).all())
    return [_entry_worth(task, worth)._replace(proven=free)]


def least_expected(task: BoundsTask) -> list[BestLists]:
    """The relevant items that the reference is least likely to show."""
    field, reading, k = task.field, task.reading, task.request.k
    if task.params["expected"] == "frequency" or len(reading.context.reference.cases) == 0:  # type: ignore[union-attr]
        return [_entry_worth(task, 1.0 - expectation(reading, k))]
    owner = np.repeat(np.arange(field.n_cases), np.diff(field.judged.truth_indptr))
    relevant = hypothetical_ranks.worth_of(field, task.request, task.rules) > 0
    own = reading.among("reference", owner, field.stage.judged, k)
    return [BestLists(hypothetical_ranks.ideal(field, np.where(relevant & ~own, 1.0, 0.0)), proven=True)]


def least_popular(task: BoundsTask) -> list[BestLists]:
    """The relevant items by popularity, the least popular on top: a convex gain of place and popularity."""
    known = task.reading.facts.popularity
    return [_entry_worth(task, 1.0 / (1.0 + known))]


def served(task: BoundsTask) -> list[BestLists]:
    """Relevant items that serve intents not served yet; with one intent an item nothing is better."""
    field, reading, name = task.field, task.reading, task.request.metric.name
    asked = _reachable(field, asked_of(reading))
    item_key = field.key(asked.case, asked.item)
    single = len(ascending(item_key)) == len(item_key)
    alpha = 1.0 if name == "subtopic_recall" else float(task.params.get("alpha", 0.5))
    case, item, rank = greedy_order(reading, asked, None, alpha)
    out = [BestLists(_at_places(field, case, item, rank), proven=name != "map_ia" and single)]
    if name in ("map_ia", "precision_ia"):
        keys, counts = np.unique(item_key, return_counts=True)
        order = np.lexsort((-counts, keys // len(field.items)))
        case, item = keys[order] // len(field.items), keys[order] % len(field.items)
        rank = np.arange(1, len(case) + 1) - np.searchsorted(case, case, side="left")
        out.append(BestLists(_at_places(field, case, item, rank), proven=name == "precision_ia"))
    return out


def _reachable(field: CandidatePool, asked: Intents) -> Intents:
    """Only what can be shown: pairs of case and item that are candidates."""
    owner = np.repeat(np.arange(field.n_cases), np.diff(field.judged.truth_indptr))
    keys = np.sort(field.key(owner, field.stage.judged)[field.reachable])
    keep = among(field.key(asked.case, asked.item), keys)
    return asked._replace(case=asked.case[keep], item=asked.item[keep], intent=asked.intent[keep])


def _at_places(field: CandidatePool, case: Array, item: Array, rank: Int) -> Any:
    """Items of the truth at these places, as far as there are places."""
    owner = np.repeat(np.arange(field.n_cases), np.diff(field.judged.truth_indptr))
    keys = field.key(owner, field.stage.judged)
    turn = np.argsort(keys, kind="stable")
    at = turn[np.searchsorted(keys[turn], field.key(case, item))]
    keep = rank <= field.places[case]
    return hypothetical_ranks.placed(field, case[keep], at[keep], rank[keep])
