"""The best lists for each metric about the items shown: where they are known exactly, or built step by step.

One function a metric: it gives lists (or places of the relevant items) and says whether none can be better.
The value is then measured by the ordinary engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from recsys.evaluation.bounds import even_exposure, label_sets, vector_lists
from recsys.evaluation.bounds.candidate_pool import CandidatePool, ascending
from recsys.evaluation.bounds.chance import cold_items
from recsys.evaluation.bounds.list_builders import BuiltLists, ListHeads
from recsys.evaluation.bounds.relevant_ranks import least_expected, least_popular, served, worth_most
from recsys.evaluation.bounds.task import BestLists, BoundsTask
from recsys.evaluation.engine import measure
from recsys.evaluation.exposure import exposure_key, worth_of
from recsys.metrics.calibration import group_shares, mix_of
from recsys.metrics.catalogue_reading import CatalogueReading
from recsys.metrics.diversity import Profile, profile_entries
from recsys.metrics.item_facts import ItemFacts
from recsys.metrics.registry import divided
from recsys.metrics.requests import Request
from recsys.ranks.matching import MatchedTruth
from recsys.types import Bool, Float, Ids, Int, entries_of


def any_lists(task: BoundsTask) -> list[BestLists]:
    """Every full list of candidates has the same value."""
    return [BestLists(task.lists(), proven=True)]


def by_value(task: BoundsTask) -> list[BestLists]:
    """The candidates with the best values: of a mean or a sum over the items shown, nothing is better."""
    field, metric = task.field, task.request.metric
    n = len(field.items)
    alone = measure(
        _one_by_one(field), [task.request], task.rules, field.context
    ).per_case.columns[str(task.request)]  # fmt: skip
    order = np.lexsort((np.arange(n), alone if metric.better == "lower" else -alone))
    return [BestLists(task.lists(order=order[field.open[order]]), proven=task.params.get("cold") != "drop")]


def _one_by_one(field: CandidatePool) -> Any:
    """Every item as a list of its own: what it is worth."""
    n = len(field.items)
    none = np.zeros(n + 1, dtype=np.int64)
    codes = np.arange(n, dtype=np.int32)
    return MatchedTruth(Ids(np.arange(n)), field.items, np.arange(n + 1), codes, None, none, codes[:0], None)


def unseen(task: BoundsTask) -> list[BestLists]:
    """What the user had in train only where nothing else is left."""
    field = task.field
    had = task.reading.pairs("train")
    known = had.item >= 0
    return [BestLists(task.lists(last=ascending(field.key(had.case[known], had.item[known]))), proven=True)]


def like_reference(task: BoundsTask) -> list[BestLists]:
    """The reference's own list as far as it may be shown: each item at its place there or above."""
    pairs, k = task.reading.pairs("reference"), task.request.k
    keep = (pairs.item >= 0) & (pairs.place <= (np.inf if k is None else k))
    case, item = pairs.case[keep], pairs.item[keep]
    good = task.field.allowed(case, item) & ~even_exposure.repeats(task.field.key(case, item))
    return [BestLists(task.lists(ListHeads(case[good], item[good])), proven=True)]


def near(task: BoundsTask) -> list[BestLists]:
    """The candidates nearest to their user."""
    return [_by_cosine(task, profile_entries(task.reading), sign=1.0)]


def far(task: BoundsTask) -> list[BestLists]:
    """The candidates farthest from what their user had."""
    return [_by_cosine(task, profile_entries(task.reading, units=True, of_items=True), sign=-1.0)]


def _by_cosine(task: BoundsTask, profile: Profile, *, sign: float) -> BestLists:
    """The best by cosine; where items without a vector are left out, showing one may be better still."""
    drop = task.params.get("missing", "drop") == "drop"
    depth = int(task.places.max(initial=0))
    front = vector_lists.nearest(task.field, task.reading, profile, depth=depth, sign=sign, drop=drop)
    whole = bool((task.reading.facts.rows[task.field.open] >= 0).all())
    return BestLists(task.lists(front), proven=whole or not drop)


def distant(task: BoundsTask) -> list[BestLists]:
    """Items far from each other."""
    drop = task.params["missing"] == "drop"
    front = vector_lists.distant(task.field, task.reading, task.places, task.params["distance"], drop=drop)
    return [BestLists(task.lists(front))]


def many_kinds(task: BoundsTask) -> list[BestLists]:
    """The set of labels with most new ones first; of items with one label each nothing is better."""
    sorts = label_sets.sorts_of(task.field, task.reading.facts.attribute(task.params["by"]))

    def new(row: Int, have: Float, place: int) -> Float:
        del row, place
        return np.asarray((have == 0) @ sorts.labels.T)

    front = label_sets.front(task.field, sorts, task.places, lambda _: new, sorts.labels)
    single = bool((sorts.labels.sum(axis=1) <= 1).all()) and sorts.whole
    return [BestLists(task.lists(front), proven=single)]


def calibrated(task: BoundsTask) -> list[BestLists]:
    """The set of labels that brings the mix nearest to the user's own, item by item."""
    field, reading = task.field, task.reading
    train, by = reading.facts.train, task.params["by"]
    sorts = label_sets.sorts_of(field, reading.facts.attribute(by))
    part = _shares(sorts.labels)
    of_history = ItemFacts(train.items, field.context).attribute(by)
    case, at = entries_of(train, reading.beyond.users)
    weight = np.ones(len(at)) if train.grades is None else train.grades[at]
    had = (case, train.codes[at].astype(np.int64), weight)

    def to(cases: Int) -> label_sets.Appeal:
        wanted = _shares(mix_of(of_history, had, slice(int(cases[0]), int(cases[-1]) + 1)))

        def nearer(row: Int, have: Float, place: int) -> Float:
            gap = wanted[row] * (place + 1.0) - have
            return np.asarray(2 * gap @ part.T - (part**2).sum(axis=1))

        return nearer

    key = ("calibrated", by, task.places.tobytes())
    return [
        BestLists(field.kept(key, lambda: task.lists(label_sets.front(field, sorts, task.places, to, part))))
    ]


def _shares(amounts: Float) -> Float:
    """Each row over its sum."""
    total = amounts.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(amounts, total, out=np.zeros_like(amounts), where=total > 0))


def even(task: BoundsTask) -> list[BestLists]:
    """Every item as often as any other; with no weights of places nothing is better than the most even."""
    weight, k = _weight(task), task.places
    made, proven = _dealt(task, task.field.known)
    plain = weight == "none" or (weight == "list" and len(np.unique(k[k > 0])) <= 1)
    if task.request.metric.name == "gini" and task.here.gini_over == "recommended":
        # Nobody counts the items that are not shown, so the same list for everyone is even too.
        return [BestLists(_weighed(task, made)), BestLists(task.lists())]
    return [BestLists(_weighed(task, made), proven and plain)]


def wide(task: BoundsTask) -> list[BestLists]:
    """As many different items as can be: the most even lists leave out as few as any."""
    field, name = task.field, task.request.metric.name
    made, proven = _dealt(task, cold_items(field, task.request) if name == "cold_coverage" else field.known)
    return [BestLists(field.listing(*made), proven)]


def _dealt(task: BoundsTask, counted: Bool) -> tuple[BuiltLists, bool]:
    """The most even lists, of some items before the others, and whether none are more even."""
    field, k = task.field, task.places

    def make() -> tuple[BuiltLists, bool]:
        made = even_exposure.dealt(field, k, np.where(counted, 1.0, 1e-9))
        if counted is field.known and even_exposure.is_most_even(field, made, k):
            return made, True
        return even_exposure.levelled(field, made, counted)

    return field.kept(("dealt", counted.tobytes(), k.tobytes()), make)


def fair(task: BoundsTask) -> list[BestLists]:
    """Every group's items as often as the group is due."""
    field, by = task.field, task.params["by"]
    groups, ids = task.reading.facts.attribute(by), field.catalogue.ids
    shelf = CatalogueReading(ids, np.zeros(len(ids)), field.catalogue, 1.0, field.context)
    _, due = group_shares(shelf, by, task.params["merit"])
    sizes = np.diff(groups.indptr)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    may = field.open & (field.caps > 0)
    part = divided(may[owner] * 1.0, sizes[owner] * 1.0)
    strength = np.bincount(groups.codes, weights=part, minlength=len(due))
    own = divided(due, strength)[groups.codes] * part
    share: Float = np.bincount(owner, weights=own, minlength=len(sizes)).astype(np.float64)
    share = np.where(share > 0, share, 1e-9 * max(float(share.max(initial=0.0)), 1e-9))
    made = even_exposure.dealt(field, task.places, share)
    return [BestLists(_weighed(task, made, share))]


def _weighed(task: BoundsTask, made: BuiltLists, due: Float | None = None) -> Any:
    """The lists, put in order where a place is worth more than another."""
    weight, longest = _weight(task), int(task.places.max(initial=1))
    if weight not in ("none", "list"):
        place = np.arange(1, longest + 1)
        worth, unit = worth_of(weight, place, place)
        due = np.ones(len(task.field.items)) if due is None else due
        made = even_exposure.ordered(made, task.places, due, np.asarray(worth * unit, dtype=np.float64))
    return task.field.listing(*made)


def _weight(task: BoundsTask) -> str:
    return exposure_key(task.request, task.here)[1].split("/")[0]


BUILDERS: dict[str, Callable[[BoundsTask], list[BestLists]]] = {
    "coverage": wide,
    "distinct_items": wide,
    "cold_coverage": wide,
    "gini": even,
    "entropy": even,
    "personalisation": even,
    "exposure_gap": fair,
    "exposure_ratio": fair,
    "user_coverage": any_lists,
    "filled": any_lists,
    "valid": any_lists,
    "unseen": unseen,
    "shown_value": by_value,
    "overlap": like_reference,
    "average_overlap": like_reference,
    "rbo": like_reference,
    "ild": distant,
    "alignment": near,
    "unexpectedness": far,
    "kinds": many_kinds,
    "miscalibration": calibrated,
    "value": worth_most,
    "serendipity": least_expected,
    "popularity_serendipity": least_popular,
    **dict.fromkeys(
        ("alpha_dcg", "alpha_ndcg", "err_ia", "nerr_ia", "nrbp", "nnrbp", "map_ia", "precision_ia"), served
    ),
    "subtopic_recall": served,
}


def builder_of(request: Request) -> Callable[[BoundsTask], list[BestLists]] | None:
    """How the best lists of a metric are built; None where nobody has said."""
    return by_value if request.metric.mean_of_items else BUILDERS.get(request.metric.name)
