"""Metrics that compare lists with other lists, such as those of a baseline or another model.

`reference=` holds the other lists: those of another model, by user, or one list that everybody would get.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.metrics.readings import Entries, Reading, divisor
from recsys.metrics.registry import divide_or_zero, metric, shown_metric
from recsys.metrics.traits import UNIT
from recsys.records.arrays import Float, Int, sorted_unique


def _surprise(h: Reading, k: int | None, c: Conventions, *, expected: str, best: bool = True) -> Float:
    """Return 1 - the chance that the reference shows it, of each relevant hit."""
    lists = h.context.reference
    if expected == "frequency" or (lists is not None and len(lists.cases) == 0):
        # One list for everybody is also everybody's own.
        return np.asarray(1.0 - reference_frequency(h, k)[h.item])
    return 1.0 - h.among("reference", h.case, h.item, k).astype(np.float64)


def _rarity(h: Reading, k: int | None, c: Conventions, *, best: bool = True, over: str = "k") -> Float:
    """Above 0, and higher for a relevant hit of lower popularity: no order has more than the rarest on top.

    What a hit adds is convex and falls with the sum of place and popularity, so that equal orders of both
    have the largest sum and opposite orders the smallest.
    """
    return np.asarray(1.0 / (1.0 + h.facts.popularity[h.item]))


def _reference_order(
    h: Reading, k: int | None, c: Conventions, *, best: bool = True, **params: Any
) -> Float | None:
    """Return 1 / the place of each list entry in the first k of the reference, 0 if it is not there.

    What an item adds falls with the deeper of its two places, so the order of the reference is best and the
    opposite one worst. A repeat of an item counts nothing; None if an item ties with its own repeat.
    """
    listed, repeats, above = h.listed, h.uncounted, h.list_context.shown().above
    if repeats is not None and above is not None:
        entries = np.stack([listed.case, listed.item, above])
        if len(np.unique(entries, axis=1).T) < len(above):
            return None
    place = _reference_places(h, k, listed)
    if repeats is not None:
        place[repeats] = np.inf
    return 1.0 / place


@metric(
    "serendipity",
    formula="1/k sum over hits in the first k places of (1 - chance that the reference shows the item)",
    reference="Ge, Delgado-Battenfeld & Jannach, Beyond accuracy: coverage and serendipity (2010)",
    needs=("lists", "reference"),
    choices={"expected": ("frequency", "own")},
    best_lists="hypothetical_ranks.least_expected",
    tie_order=_surprise,
)
def serendipity(h: Reading, k: int | None, c: Conventions, *, expected: str = "frequency") -> Float:
    """Unexpected relevant items shown, as a share of the places.

    The chance is the share of the reference's lists that hold the item in their first k places, of all that
    are not empty; with expected=own it is 1 if the user's own reference list does, otherwise 0.

    >>> import recsys
    >>> recsys.evaluate({1: [3, 5]}, {1: {3, 5}}, "serendipity@2", reference=[3, 4])["serendipity@2"]
    0.5
    """
    return divide_or_zero(h.add(h.within(k) * _surprise(h, k, c, expected=expected)), divisor("k", k, h))


@metric(
    "popularity_serendipity",
    formula="1/k sum over hits at place r <= k of max((n + 1 - r)/n - (n + 1 - popularity place)/n, 0)",
    reference="RecTools 0.19, Serendipity",
    at_k="required",
    choices={"over": ("k", "list")},
    needs=("lists", "train", "catalogue"),
    ties="refuse",
    best_lists="hypothetical_ranks.least_popular",
    tie_order=_rarity,
)
def popularity_serendipity(h: Reading, k: int | None, c: Conventions, *, over: str = "k") -> Float:
    """How much higher relevant items are shown than their popularity would put them, with n items in all.

    Popularity places number the different popularities of all items 1, 2, … from the highest down, so equally
    popular items share one; for an item no user had, (n + 1 - popularity place)/n is 0. over=list
    divides by the number of items shown, where that is less than k.

    >>> import recsys
    >>> train = {1: ["a", "b"], 2: ["a", "b"], 3: ["a"]}
    >>> options = {"train": train, "catalogue": ["a", "b", "c", "d"]}
    >>> result = recsys.evaluate({2: ["b", "c"]}, {2: ["b", "c"]}, "popularity_serendipity@2", **options)
    >>> result["popularity_serendipity@2"]
    0.5
    """
    n, popularity = float(h.context.n_items or 1), h.facts.popularity[h.item]
    levels = np.unique(h.facts.all_popularities)[::-1]
    place = np.searchsorted(-levels, -popularity) + 1.0
    by_popularity = np.where(popularity > 0, (n + 1 - place) / n, 0.0)
    gains = h.add(h.within(k) * np.maximum((n + 1 - h.rank) / n - by_popularity, 0.0))
    return divide_or_zero(gains, divisor("k", k, h) if over == "k" else h.n_shown(k))


def reference_frequency(h: Reading, k: int | None) -> Float:
    """Return the share of the reference lists that hold each item in their first k places."""
    lists = h.context.reference
    out = np.zeros(len(h.facts.ids))
    if lists is None:
        return out
    sizes = lists.sizes
    place = np.arange(1, len(lists.codes) + 1) - np.repeat(lists.indptr[:-1], sizes)
    keep = slice(None) if k is None else place <= k
    owner = np.repeat(np.arange(len(sizes)), sizes)[keep].astype(np.int64)
    width = max(len(lists.items), 1)
    pairs = sorted_unique(owner * width + lists.codes[keep])
    counts = np.bincount(pairs % width, minlength=width)
    lists.items.same_kind(h.facts.ids, what="item")
    at = lists.items.code_of(h.facts.ids.values)
    return np.where(at >= 0, counts[at] / max(int((sizes > 0).sum()), 1), 0.0)


@shown_metric(
    "overlap",
    formula="items in the first k places of both lists / k",
    reference="Webber, Moffat & Zobel, A similarity measure for indefinite rankings (2010)",
    needs=("reference",),
    choices={"over": ("k", "union")},
    best_lists="like_reference",
    tie_order="items",
)
def overlap(h: Reading, k: int | None, c: Conventions, *, over: str = "k") -> Float:
    """The share of the places whose items the reference shows too; over=union gives Jaccard's index.

    Without k there are as many places as the longer of the two lists has. The union is the items shown and
    the entries of the reference's first k places, less the common items.

    >>> import recsys
    >>> recsys.evaluate({1: [3, 5]}, {1: {3}}, "overlap@2", reference={1: [4, 3]})["overlap@2"]
    0.5
    """
    n_common = np.bincount(_common_items(h, k).case, minlength=h.n_cases) * 1.0
    if over == "union":
        return divide_or_zero(n_common, h.n_shown(k) + _reference_sizes(h, k) - n_common)
    return divide_or_zero(n_common, _depth(h, k) * 1.0)


@shown_metric(
    "average_overlap",
    formula="mean over the depths d = 1 … k of overlap at d",
    reference="Fagin, Kumar & Sivakumar, Comparing top k lists (2003)",
    needs=("reference",),
    aliases=("ao",),
    best_lists="like_reference",
    tie_order=_reference_order,
)
def average_overlap(h: Reading, k: int | None, c: Conventions) -> Float:
    """The overlap of both lists, averaged over every depth, so that the top counts most.

    Overlap at d is (items shown in the first d places that are in the first d of the reference too) / d;
    without k the depths go to the length of the longer list.

    >>> import recsys
    >>> recsys.evaluate({1: [3, 5]}, {1: {3}}, "average_overlap@2", reference={1: [4, 3]})[
    ...     "average_overlap@2"
    ... ]
    0.25
    """
    common = _common_items(h, k)
    depth = _depth(h, k)
    running = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, int(depth.max(initial=0)) + 1))])
    terms = running[depth[common.case]] - running[common.place - 1]
    return divide_or_zero(h.sum_by_case(common.case, terms), depth * 1.0)


@shown_metric(
    "rbo",
    formula="(1 - p) sum over depths d of p^(d - 1) overlap at d, carried on beyond the lists as it ended",
    reference="Webber, Moffat & Zobel, A similarity measure for indefinite rankings (2010)",
    needs=("reference",),
    aliases=("rank_biased_overlap",),
    choices={"p": UNIT, "form": ("ext", "sum")},
    best_lists="like_reference",
    tie_order=_reference_order,
)
def rbo(h: Reading, k: int | None, c: Conventions, *, p: float = 0.9, form: str = "ext") -> Float:
    """How similar both lists are to a reader who goes one place deeper with probability p.

    With X_d items shown in the first d places that are in the first d of the reference too, and s and l the
    lengths of the shorter and the longer list, both cut at k: form=sum is (1 - p) sum over d = 1 … l of p^(d
    - 1) X_d / d. form=ext adds to it (1 - p) sum over d = s + 1 … l of p^(d - 1) X_s (d - s) / (s d), and
    ((X_l - X_s) / l + X_s / s) p^l. It is 0 if both lists are empty.

    >>> import recsys
    >>> result = recsys.evaluate({1: [3, 5]}, {1: {3}}, "rbo(p=0.5)@2", reference={1: [4, 3]})
    >>> result["rbo(p=0.5)@2"]
    0.25
    """
    common = _common_items(h, k)
    sizes = np.stack([h.n_places(k), _reference_sizes(h, k)])
    short, long = sizes.min(axis=0), sizes.max(axis=0)
    depths = np.arange(1, int(long.max(initial=0)) + 1)
    step = np.concatenate([[0.0], np.cumsum((1 - p) * p ** (depths - 1.0) / depths)])
    total = h.sum_by_case(common.case, step[long[common.case]] - step[common.place - 1])
    if form == "sum":
        return total
    # Webber et al., equation 32: beyond the shorter list the overlap is assumed to stay as it was at its end.
    at_short = np.bincount(common.case[common.place <= short[common.case]], minlength=h.n_cases) * 1.0
    at_long = np.bincount(common.case, minlength=h.n_cases) * 1.0
    power = np.concatenate([[0.0], np.cumsum((1 - p) * p ** (depths - 1.0))])
    share = divide_or_zero(at_short, short * 1.0)
    total += share * ((power[long] - power[short]) - short * (step[long] - step[short]))
    return total + (divide_or_zero(at_long - at_short, long * 1.0) + share) * np.where(long > 0, p**long, 0.0)


def _depth(h: Reading, k: int | None) -> Int:
    """Return how many places are compared: k, or as many as the longer list has."""
    return np.maximum(h.n_places(k), _reference_sizes(h, k)) if k is None else np.full(h.n_cases, k)


def _reference_sizes(h: Reading, k: int | None) -> Int:
    """Return the length of each case's reference list, at most k."""
    reference = h.pairs("reference")
    keep = slice(None) if k is None else reference.place <= k
    return np.bincount(reference.case[keep], minlength=h.n_cases)


def _common_items(h: Reading, k: int | None) -> Entries:
    """Return items that both lists show in their first k places; the place is the deeper of the two."""
    shown = h.shown(k)
    place = np.maximum(shown.place, _reference_places(h, k, shown))
    same = place < np.inf
    return Entries(shown.case[same], shown.item[same], place[same].astype(np.int64))


def _reference_places(h: Reading, k: int | None, entries: Entries) -> Float:
    """Return the place of each entry in the first k of its reference list; infinite if it is not there."""
    reference = h.pairs("reference")
    keep = (reference.item >= 0) & (reference.place <= (np.inf if k is None else k))
    width = max(len(h.facts.ids), 1)
    known = reference.case[keep].astype(np.int64) * width + reference.item[keep]
    order = np.argsort(known, kind="stable")
    key = entries.case.astype(np.int64) * width + entries.item
    at = np.searchsorted(known[order], key)
    same = np.append(known[order], -1)[at] == key
    return np.where(same, np.append(reference.place[keep][order], 0)[at], np.inf)
