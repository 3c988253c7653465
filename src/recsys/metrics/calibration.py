"""Whether a list has the mix of kinds its user had before, and whether providers get their due exposure.

An item of several kinds counts for each of them with an equal part.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import ConventionError
from recsys.metrics.attributes import Attribute, ItemFacts
from recsys.metrics.catalogue import OF_PLACES, CatalogueReading, place_weights
from recsys.metrics.ranges import DataLimits, Range
from recsys.metrics.readings import Reading, add_up, check_finite
from recsys.metrics.registry import catalogue_metric, divide_or_zero, shown_metric
from recsys.metrics.traits import UNIT
from recsys.records.arrays import Array, Float, entries_of_cases, sorted_unique

_STECK = "Steck, Calibrated recommendations (2018)"
_BLOCK = 1 << 22
MERITS = ("catalogue", "train", "equal")


def _range_of_divergence(
    data: DataLimits, k: int | None, c: Conventions, *, by: str | None, divergence: str, alpha: float
) -> Range:
    """Return the range of a divergence: at most -ln alpha for kl, as q' is at least alpha p."""
    return 0.0, -math.log(alpha) if divergence == "kl" else 1.0


@shown_metric(
    "miscalibration",
    formula="divergence of q, the shares of the kinds of the items shown in the first k places, from p, the"
    " shares of the kinds of the items the user had",
    reference=_STECK,
    better="lower",
    range=_range_of_divergence,
    empty=math.nan,
    needs=("train", "items"),
    choices={"divergence": ("kl", "js", "hellinger"), "alpha": UNIT},
    aliases={
        "calibration_kl": {"divergence": "kl"},
        "calibration_js": {"divergence": "js"},
        "calibration_hellinger": {"divergence": "hellinger"},
    },
    best_lists="calibrated",
    tie_order="set",
)
def miscalibration(
    h: Reading,
    k: int | None,
    c: Conventions,
    *,
    by: str | None = None,
    divergence: str = "kl",
    alpha: float = 0.01,
) -> Float:
    """How far the mix of kinds a user is shown is from the mix the user had before; 0 is calibrated.

    divergence=kl is sum p ln(p / q'), q' = (1 - alpha) q + alpha p; js is (D(p, m) + D(q, m)) / 2 with D(a,
    b) = sum a log2(a / b) and m = (p + q) / 2; hellinger is sqrt(sum (sqrt p - sqrt q)^2 / 2). In p an item
    counts its grade in train. `by` names the column of items= that holds the kinds. A user whose p or q has
    no kind at all is left out.

    >>> import recsys
    >>> kinds = {3: "a", 4: "b", 5: "a"}
    >>> options = {"train": {1: [3, 4]}, "items": {"kind": kinds}}
    >>> round(recsys.evaluate({1: [3, 5]}, {1: {5}}, "calibration_js@2", **options)["calibration_js@2"], 4)
    0.3113
    """
    train = h.facts.train
    shown_kinds, train_kinds = h.facts.attribute(by), ItemFacts(train.items, h.context).attribute(by)
    entries, (case, at) = h.shown(k), entries_of_cases(train, h.list_context.users)
    weight = np.ones(len(at)) if train.grades is None else train.grades[at]
    item = train.codes[at].astype(np.int64)
    out = np.full(h.n_cases, math.nan)
    step = max(1, _BLOCK // max(1, len(shown_kinds.labels)))
    for first in range(0, h.n_cases, step):
        part = slice(first, min(first + step, h.n_cases))
        p = label_amounts(train_kinds, (case, item, weight), part)
        check_finite(p.sum(axis=1), "grades in train")
        q = label_amounts(shown_kinds, (entries.case, entries.item, np.ones(len(entries.item))), part)
        known = (p.sum(axis=1) > 0) & (q.sum(axis=1) > 0)
        out[part][known] = DIVERGENCES[divergence](shares(p[known]), shares(q[known]), alpha)
    return out


def label_amounts(kinds: Attribute, entries: tuple[Array, Array, Float], part: slice) -> Float:
    """Return how much of each kind the cases of one block have: an array cases x kinds.

    Args:
        kinds: the kinds of each item.
        entries: case, item and weight of each entry, by case.
        part: the cases of the block.
    """
    case, item, weight = entries
    size = len(kinds.labels)
    low, high = np.searchsorted(case, [part.start, part.stop])
    case, item, weight = case[low:high] - part.start, item[low:high], weight[low:high]
    entry, code, n_labels = kinds.of(item)
    n_cases = part.stop - part.start
    pair = case.astype(np.int64)[entry] * size + code
    return add_up(pair, weight[entry] / n_labels, n_cases * size).reshape(n_cases, size)


def shares(amounts: Float) -> Float:
    """Return each row over its sum; 0 where that is 0."""
    total = amounts.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(amounts, total, out=np.zeros_like(amounts), where=total > 0))


def _kl(p: Float, q: Float, alpha: float) -> Float:
    smoothed = (1 - alpha) * q + alpha * p
    ratio = np.divide(p, smoothed, out=np.ones_like(p), where=(p > 0) & (smoothed > 0))
    return np.asarray((p * np.log(ratio)).sum(axis=1))


def _js(p: Float, q: Float, alpha: float) -> Float:
    middle = (p + q) / 2
    return np.asarray((_kl(p, middle, 0.0) + _kl(q, middle, 0.0)) / (2 * math.log(2)))


def _hellinger(p: Float, q: Float, alpha: float) -> Float:
    return np.asarray(np.sqrt(((np.sqrt(p) - np.sqrt(q)) ** 2).sum(axis=1) / 2))


def _total_variation(p: Float, q: Float, alpha: float) -> Float:
    return np.asarray(np.abs(p - q).sum(axis=1) / 2)


DIVERGENCES: dict[str, Callable[[Float, Float, float], Float]] = {
    "kl": _kl,
    "js": _js,
    "hellinger": _hellinger,
    "total_variation": _total_variation,
}


def _range_of_kinds(data: DataLimits, k: int | None, c: Conventions, *, by: str | None) -> Range:
    """Return a range up to as many kinds as there are, or as k items of the most kinds can have."""
    labels = data.item_facts.attribute(by)
    most = int(np.diff(labels.indptr).max(initial=0)) * data.places(k)
    return 0.0, min(len(labels.labels), most) / float(k or 1)


@shown_metric(
    "kinds",
    formula="different kinds among the items shown in the first k places / k",
    reference="RePlay 0.22, CategoricalDiversity",
    at_k="required",
    range=_range_of_kinds,
    needs=("items",),
    aliases=("categorical_diversity",),
    best_lists="most_labels",
    tie_order="set",
)
def kinds(h: Reading, k: int | None, c: Conventions, *, by: str | None = None) -> Float:
    """How many kinds of item a list shows per place, of k places; `by` names the column of items=.

    It exceeds 1 only where items have several kinds.

    >>> import recsys
    >>> options = {"items": {"kind": {3: "a", 4: "b", 5: "a"}}}
    >>> recsys.evaluate({1: [3, 5, 4]}, {1: {5}}, "kinds@4", **options)["kinds@4"]
    0.5
    """
    labels, entries = h.facts.attribute(by), h.shown(k)
    entry, code, _ = labels.of(entries.item)
    size = max(len(labels.labels), 1)
    pairs = sorted_unique(entries.case.astype(np.int64)[entry] * size + code)
    return np.bincount(pairs // size, minlength=h.n_cases) / float(k or 1)


@shown_metric(
    "awrf",
    formula="distance of each group's share of the attention in the first k places from its target share",
    reference="Sapiezynski et al., Quantifying the impact of user attention on fair representation (2019)",
    better="lower",
    empty=math.nan,
    needs=("items",),
    choices={"target": (*MERITS, "x:1|y:3"), "distance": ("total_variation", "js", "hellinger")} | OF_PLACES,
    aliases=("attention_weighted_rank_fairness",),
)
def awrf(
    h: Reading,
    k: int | None,
    c: Conventions,
    *,
    by: str | None = None,
    target: str = "catalogue",
    distance: str = "total_variation",
    weight: str = "geometric",
    p: float = 0.5,
) -> Float:
    """How far the attention a list gives to each group is from the share the group is due; 0 is fair.

    `by` names the column of items= that holds the groups. A group is due its share of the catalogue (of the
    items of items=, if no ids are given as catalogue); with target=train of the popularity of these items,
    with target=equal the same as any other group of them, or what is written: target=a:1|b:3 gives a quarter
    to a. The attention to a place is its weight: geometric (p^(place - 1)), log2, log2_max2, reciprocal or
    none. distance=total_variation is half the sum of the differences, with two groups the difference itself;
    js and hellinger are those of `miscalibration`. Items without a group are left out, and so is a user who
    is shown nothing else.

    >>> import recsys
    >>> items = {"maker": {3: "x", 4: "y", 5: "x", 6: "y"}}
    >>> round(recsys.evaluate({1: [3, 4]}, {1: {4}}, "awrf@2", items=items)["awrf@2"], 4)
    0.1667
    """
    groups, entries = h.facts.attribute(by), h.shown(k)
    if target in MERITS:
        table = h.context.items
        known = h.context.catalogue or (h.facts.ids if table is None else table.ids)
        due = due_shares(ItemFacts(known, h.context), by, target)
    else:
        due = _written_shares(target, groups.labels)
    attention = place_weights(weight, p, int(entries.place.max(initial=1)))[entries.place - 1]
    out = np.full(h.n_cases, math.nan)
    step = max(1, _BLOCK // max(1, len(groups.labels)))
    for first in range(0, h.n_cases, step):
        part = slice(first, min(first + step, h.n_cases))
        amounts = label_amounts(groups, (entries.case, entries.item, attention), part)
        labelled = amounts.sum(axis=1) > 0
        given = shares(amounts[labelled])
        out[part][labelled] = DIVERGENCES[distance](np.broadcast_to(due, given.shape), given, 0.0)
    return out


def _written_shares(text: str, labels: list[str]) -> Float:
    """Return the share of each label from text like "a:1|b:3"; a label that is not written gets nothing.

    Raises:
        ConventionError: the text is another, or names no label.
    """
    due = np.zeros(len(labels))
    for part in str(text).split("|"):
        label, _, number = (x.strip() for x in part.rpartition(":"))
        try:
            due[labels.index(label)] = float(number)
        except ValueError:
            raise ConventionError(
                f"awrf got target={text!r}: {part.strip()!r} is not a group and its share.",
                hint=f"Write {', '.join(MERITS)}, or target={labels[0] if labels else 'a'}:1|… "
                f"of the groups {', '.join(labels[:5])}.",
            ) from None
    if not (np.isfinite(due).all() and due.min(initial=0.0) >= 0 and due.sum() > 0):
        raise ConventionError(f"awrf got target={text!r}.", hint="Shares are at least 0, and one is above.")
    return np.asarray(due / due.sum())


@catalogue_metric(
    "exposure_gap",
    formula="1/2 sum over groups of |share of the exposure - share of the merit|",
    reference="Singh & Joachims, Fairness of exposure in rankings (2018)",
    better="lower",
    needs=("items",),
    choices={"merit": MERITS} | OF_PLACES,
    best_lists="even_exposure.exposed_by_merit",
)
def exposure_gap(
    s: CatalogueReading,
    k: int | None,
    c: Conventions,
    *,
    by: str | None = None,
    merit: str = "catalogue",
    weight: str = "log2",
    p: float = 0.85,
) -> float:
    """How much of the exposure would have to move for every provider group to get the share it is due.

    `by` names the column of items= that holds the groups. A group is due its share of the catalogue, of
    what users had (merit=train: popularity), or the same as any other group of the catalogue (merit=equal).
    The weight of a place is log2, log2_max2, reciprocal, geometric (p^(place - 1)) or none. Items without a
    group are left out; so are items outside the catalogue, also with merit=train.

    >>> import recsys
    >>> options = {"items": {"maker": {3: "x", 5: "x", 4: "y"}}, "catalogue": [3, 4, 5]}
    >>> result = recsys.evaluate({1: [3], 2: [5]}, {1: {3}}, "exposure_gap(merit=equal)@1", **options)
    >>> result["exposure_gap(merit=equal)@1"]
    0.5
    """
    # weight and p were applied when the exposure was counted
    shown, due = group_shares(s, by, merit)
    return float(np.abs(shown - due).sum()) / 2


@catalogue_metric(
    "exposure_ratio",
    formula="smallest over largest (share of the exposure / share of the merit) of a group",
    reference="Singh & Joachims, Fairness of exposure in rankings (2018)",
    needs=("items",),
    choices={"merit": MERITS} | OF_PLACES,
    best_lists="even_exposure.exposed_by_merit",
)
def exposure_ratio(
    s: CatalogueReading,
    k: int | None,
    c: Conventions,
    *,
    by: str | None = None,
    merit: str = "catalogue",
    weight: str = "log2",
    p: float = 0.85,
) -> float:
    """Exposure per merit of the group that gets least, over that of the group that gets most; 1 is fair.

    Shares are those of exposure_gap; groups that are due nothing do not count.

    >>> import recsys
    >>> options = {"items": {"maker": {3: "x", 4: "y"}}, "catalogue": [3, 4]}
    >>> result = recsys.evaluate({1: [3], 2: [4], 3: [4]}, {1: {3}}, "exposure_ratio@1", **options)
    >>> result["exposure_ratio@1"]
    0.5
    """
    # weight and p were applied when the exposure was counted
    shown, due = group_shares(s, by, merit)
    rate = divide_or_zero(shown, due)[due > 0]
    return float(rate.min() / rate.max()) if len(rate) and rate.max() > 0 else 0.0


def group_shares(s: CatalogueReading, by: str | None, merit: str) -> tuple[Float, Float]:
    """Return the share of the exposure that each group gets, and the share it is due."""
    return _label_shares(s.facts.attribute(by), s.exposure), due_shares(s.facts, by, merit)


def due_shares(facts: ItemFacts, by: str | None, merit: str) -> Float:
    """Return the share that each group of items is due: of items, of what users had, or all the same."""
    groups = facts.attribute(by)
    due = _label_shares(groups, np.ones(len(facts.ids)) if merit != "train" else facts.popularity)
    if merit == "equal":
        due = divide_or_zero((due > 0) * 1.0, np.full(len(due), float((due > 0).sum())))
    return due


def _label_shares(groups: Attribute, amounts: Float) -> Float:
    """Return the share of each group in one amount per item."""
    item, code, n_labels = groups.of(np.arange(len(amounts)))
    total = add_up(code, amounts[item] * (1.0 / n_labels), len(groups.labels))
    return divide_or_zero(total, np.full(len(total), total.sum()))
