"""The best lists for each metric about the items shown: where they are known exactly, or built step by step.

Each function gives lists (or ranks of the relevant items) and says whether none can be better.
The value is then measured by the ordinary engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from recsys.evaluation.bounds import even_exposure, label_sets, vector_lists
from recsys.evaluation.bounds.candidate_pool import CandidatePool, sorted_unique
from recsys.evaluation.bounds.chance import cold_items
from recsys.evaluation.bounds.list_builders import BuiltLists, ListHeads
from recsys.evaluation.bounds.relevant_ranks import (
    least_expected,
    least_popular,
    most_valuable,
    serving_intents,
)
from recsys.evaluation.bounds.task import BestLists, BoundsTask
from recsys.evaluation.engine import measure
from recsys.evaluation.exposure import entry_weights, exposure_key
from recsys.metrics.calibration import group_shares, label_amounts
from recsys.metrics.catalogue_reading import CatalogueReading
from recsys.metrics.diversity import Profile, profile_entries
from recsys.metrics.item_facts import ItemFacts
from recsys.metrics.registry import divide_or_zero
from recsys.metrics.requests import Request
from recsys.ranks.matching import MatchedTruth
from recsys.types import Bool, Float, Ids, Int, entries_of_cases


def any_lists(task: BoundsTask) -> list[BestLists]:
    """Every full list of candidates has the same value."""
    return [BestLists(task.lists(), proven=True)]


def highest_values(task: BoundsTask) -> list[BestLists]:
    """The candidates with the best values: no other lists have a better mean or sum over the items shown."""
    pool, metric = task.pool, task.request.metric
    n = len(pool.items)
    item_values = measure(
        _single_item_lists(pool), [task.request], task.rules, pool.context
    ).per_case.columns[str(task.request)]  # fmt: skip
    order = np.lexsort((np.arange(n), item_values if metric.better == "lower" else -item_values))
    lists = task.lists(order=order[pool.showable[order]])
    return [BestLists(lists, proven=task.params.get("cold") != "drop")]


def _single_item_lists(pool: CandidatePool) -> Any:
    """One list per item, holding that item alone, to measure the value of each item."""
    n = len(pool.items)
    none = np.zeros(n + 1, dtype=np.int64)
    codes = np.arange(n, dtype=np.int32)
    return MatchedTruth(Ids(np.arange(n)), pool.items, np.arange(n + 1), codes, None, none, codes[:0], None)


def unseen_first(task: BoundsTask) -> list[BestLists]:
    """Items from the user's train data only if nothing else is left."""
    pool = task.pool
    history_entries = task.reading.pairs("train")
    known = history_entries.item >= 0
    seen = sorted_unique(pool.key(history_entries.case[known], history_entries.item[known]))
    return [BestLists(task.lists(last=seen), proven=True)]


def like_reference(task: BoundsTask) -> list[BestLists]:
    """The reference list without items that may not be shown: each item at its place there or above."""
    pairs, k = task.reading.pairs("reference"), task.request.k
    keep = (pairs.item >= 0) & (pairs.place <= (np.inf if k is None else k))
    case, item = pairs.case[keep], pairs.item[keep]
    good = task.pool.allowed(case, item) & ~even_exposure.is_repeat(task.pool.key(case, item))
    return [BestLists(task.lists(ListHeads(case[good], item[good])), proven=True)]


def nearest_to_user(task: BoundsTask) -> list[BestLists]:
    """The candidates nearest to their user."""
    return [_by_cosine(task, profile_entries(task.reading), sign=1.0)]


def farthest_from_user(task: BoundsTask) -> list[BestLists]:
    """The candidates farthest from what their user had."""
    return [_by_cosine(task, profile_entries(task.reading, units=True, of_items=True), sign=-1.0)]


def _by_cosine(task: BoundsTask, profile: Profile, *, sign: float) -> BestLists:
    """The best lists by cosine; if items without a vector are dropped, showing one may be better still."""
    drop = task.params.get("missing", "drop") == "drop"
    depth = int(task.places.max(initial=0))
    front = vector_lists.nearest(task.pool, task.reading, profile, depth=depth, sign=sign, drop=drop)
    whole = bool((task.reading.facts.rows[task.pool.showable] >= 0).all())
    return BestLists(task.lists(front), proven=whole or not drop)


def far_apart(task: BoundsTask) -> list[BestLists]:
    """Items far from each other."""
    drop = task.params["missing"] == "drop"
    front = vector_lists.farthest_apart(
        task.pool, task.reading, task.places, task.params["distance"], drop=drop
    )
    return [BestLists(task.lists(front))]


def most_labels(task: BoundsTask) -> list[BestLists]:
    """Items that add most new labels first; optimal if every item has at most one label."""
    sets = label_sets.group_by_labels(task.pool, task.reading.facts.attribute(task.params["by"]))

    def n_new_labels(row: Int, have: Float, place: int) -> Float:
        del row, place
        return np.asarray((have == 0) @ sets.labels.T)

    front = label_sets.choose_heads(task.pool, sets, task.places, lambda _: n_new_labels, sets.labels)
    single = bool((sets.labels.sum(axis=1) <= 1).all()) and sets.whole
    return [BestLists(task.lists(front), proven=single)]


def calibrated(task: BoundsTask) -> list[BestLists]:
    """At each place an item whose labels bring the mix of the list closest to the user's own mix."""
    pool, reading = task.pool, task.reading
    train, by = reading.facts.train, task.params["by"]
    sets = label_sets.group_by_labels(pool, reading.facts.attribute(by))
    part = _shares(sets.labels)
    of_history = ItemFacts(train.items, pool.context).attribute(by)
    case, at = entries_of_cases(train, reading.list_context.users)
    weight = np.ones(len(at)) if train.grades is None else train.grades[at]
    history_entries = (case, train.codes[at].astype(np.int64), weight)

    def appeal_for(cases: Int) -> label_sets.Appeal:
        target = _shares(label_amounts(of_history, history_entries, slice(int(cases[0]), int(cases[-1]) + 1)))

        def closeness(row: Int, have: Float, place: int) -> Float:
            gap = target[row] * (place + 1.0) - have
            return np.asarray(2 * gap @ part.T - (part**2).sum(axis=1))

        return closeness

    key = ("calibrated", by, task.places.tobytes())
    lists = pool.cached(
        key, lambda: task.lists(label_sets.choose_heads(pool, sets, task.places, appeal_for, part))
    )
    return [BestLists(lists)]


def _shares(amounts: Float) -> Float:
    """Each row over its sum."""
    total = amounts.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(amounts, total, out=np.zeros_like(amounts), where=total > 0))


def evenly_exposed(task: BoundsTask) -> list[BestLists]:
    """Every item as often as any other; the most even lists are optimal if all places weigh the same."""
    weight, k = _place_weighting(task), task.places
    lists, proven = _most_even_lists(task, task.pool.in_catalogue)
    equal_weights = weight == "none" or (weight == "list" and len(np.unique(k[k > 0])) <= 1)
    if task.request.metric.name == "gini" and task.conventions.gini_over == "recommended":
        # Items that are not shown do not count, so the same list for everyone is even too.
        return [BestLists(_order_by_exposure(task, lists)), BestLists(task.lists())]
    return [BestLists(_order_by_exposure(task, lists), proven and equal_weights)]


def most_items(task: BoundsTask) -> list[BestLists]:
    """As many different items as possible: the most even lists leave out the fewest."""
    pool, name = task.pool, task.request.metric.name
    lists, proven = _most_even_lists(
        task, cold_items(pool, task.request) if name == "cold_coverage" else pool.in_catalogue
    )
    return [BestLists(pool.with_lists(*lists), proven)]


def _most_even_lists(task: BoundsTask, counted: Bool) -> tuple[BuiltLists, bool]:
    """The most even lists, with the `counted` items preferred, and whether none are more even."""
    pool, k = task.pool, task.places

    def make() -> tuple[BuiltLists, bool]:
        lists = even_exposure.spread_items(pool, k, np.where(counted, 1.0, 1e-9))
        if counted is pool.in_catalogue and even_exposure.is_most_even(pool, lists, k):
            return lists, True
        return even_exposure.even_out(pool, lists, counted)

    return pool.cached(("dealt", counted.tobytes(), k.tobytes()), make)


def exposed_by_merit(task: BoundsTask) -> list[BestLists]:
    """The items of each group as often as the group deserves."""
    pool, by = task.pool, task.params["by"]
    groups, ids = task.reading.facts.attribute(by), pool.catalogue.ids
    shelf = CatalogueReading(ids, np.zeros(len(ids)), pool.catalogue, 1.0, pool.context)
    _, due = group_shares(shelf, by, task.params["merit"])
    sizes = np.diff(groups.indptr)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    usable = pool.showable & (pool.caps > 0)
    part = divide_or_zero(usable[owner] * 1.0, sizes[owner] * 1.0)
    strength = np.bincount(groups.codes, weights=part, minlength=len(due))
    own = divide_or_zero(due, strength)[groups.codes] * part
    share: Float = np.bincount(owner, weights=own, minlength=len(sizes)).astype(np.float64)
    share = np.where(share > 0, share, 1e-9 * max(float(share.max(initial=0.0)), 1e-9))
    lists = even_exposure.spread_items(pool, task.places, share)
    return [BestLists(_order_by_exposure(task, lists, share))]


def _order_by_exposure(task: BoundsTask, lists: BuiltLists, due: Float | None = None) -> Any:
    """The lists, reordered within each list if places differ in weight."""
    weight, longest = _place_weighting(task), int(task.places.max(initial=1))
    if weight not in ("none", "list"):
        place = np.arange(1, longest + 1)
        weights, unit = entry_weights(weight, place, place)
        due = np.ones(len(task.pool.items)) if due is None else due
        lists = even_exposure.order_by_exposure(
            lists, task.places, due, np.asarray(weights * unit, dtype=np.float64)
        )
    return task.pool.with_lists(*lists)


def _place_weighting(task: BoundsTask) -> str:
    return exposure_key(task.request, task.conventions)[1].split("/")[0]


BUILDERS: dict[str, Callable[[BoundsTask], list[BestLists]]] = {
    "coverage": most_items,
    "distinct_items": most_items,
    "cold_coverage": most_items,
    "gini": evenly_exposed,
    "entropy": evenly_exposed,
    "personalisation": evenly_exposed,
    "exposure_gap": exposed_by_merit,
    "exposure_ratio": exposed_by_merit,
    "user_coverage": any_lists,
    "filled": any_lists,
    "valid": any_lists,
    "unseen": unseen_first,
    "shown_value": highest_values,
    "overlap": like_reference,
    "average_overlap": like_reference,
    "rbo": like_reference,
    "ild": far_apart,
    "alignment": nearest_to_user,
    "unexpectedness": farthest_from_user,
    "kinds": most_labels,
    "miscalibration": calibrated,
    "value": most_valuable,
    "serendipity": least_expected,
    "popularity_serendipity": least_popular,
    **dict.fromkeys(
        ("alpha_dcg", "alpha_ndcg", "err_ia", "nerr_ia", "nrbp", "nnrbp", "map_ia", "precision_ia"),
        serving_intents,
    ),
    "subtopic_recall": serving_intents,
}


def builder_of(request: Request) -> Callable[[BoundsTask], list[BestLists]] | None:
    """The function that builds the best lists of a metric, or None."""
    return highest_values if request.metric.mean_of_items else BUILDERS.get(request.metric.name)
