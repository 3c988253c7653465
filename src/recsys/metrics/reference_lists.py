"""Metrics of lists held against other lists: a baseline's, another model's, or each other.

`reference=` brings the other lists: those of another model, by user, or one list that everybody would get.
"""

from __future__ import annotations

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import ConventionError
from recsys.metrics.case_reading import Reading, divisor
from recsys.metrics.item_facts import ItemFacts
from recsys.metrics.registry import divided, metric, shown_metric
from recsys.metrics.shown_items import Entries, distinct
from recsys.types import Float, Int


@metric(
    "serendipity",
    formula="1/k sum over hits in the first k places of (1 - chance that the reference shows the item)",
    reference="Ge, Delgado-Battenfeld & Jannach, Beyond accuracy: coverage and serendipity (2010)",
    needs=("lists", "reference"),
)
def serendipity(h: Reading, k: int | None, c: Conventions, *, expected: str = "frequency") -> Float:
    """Relevant items shown that one would not have expected, as a share of the places.

    The chance is the share of the reference's lists (their first k places) that hold the item;
    expected=own asks instead whether the user's own reference list holds it.

    >>> import recsys
    >>> recsys.evaluate({1: [3, 5]}, {1: {3, 5}}, "serendipity@2", reference=[3, 4])["serendipity@2"]
    0.5
    """
    del c
    if expected not in ("frequency", "own"):
        raise ConventionError(f"serendipity got expected={expected!r}.", hint="Write frequency or own.")
    chance = expectation(h, k)[h.item] if expected == "frequency" else _own(h, k)
    return divided(h.add(h.within(k) * (1.0 - chance)), divisor("k", k, h))


@metric(
    "popularity_serendipity",
    formula="1/k sum over hits at place r <= k of max((n + 1 - r)/n - (n + 1 - popularity place)/n, 0)",
    reference="RecTools 0.19, Serendipity",
    at_k="required",
    needs=("lists", "train", "catalogue"),
    ties="refuse",
)
def popularity_serendipity(h: Reading, k: int | None, c: Conventions) -> Float:
    """Relevant items shown further up than their popularity would put them, of n items in the catalogue.

    Equally popular items share a popularity place; an item nobody had would not be put anywhere.

    >>> import recsys
    >>> train = {1: ["a", "b"], 2: ["a", "b"], 3: ["a"]}
    >>> asked = {"train": train, "catalogue": ["a", "b", "c", "d"]}
    >>> found = recsys.evaluate({2: ["b", "c"]}, {2: ["b", "c"]}, "popularity_serendipity@2", **asked)
    >>> found["popularity_serendipity@2"]
    0.5
    """
    del c
    n, had = float(h.context.n_items or 1), h.facts.popularity[h.item]
    levels = np.sort(np.unique(ItemFacts(h.facts.train.items, h.context).popularity))[::-1]
    place = np.searchsorted(-levels, -had) + 1.0
    usual = np.where(had > 0, (n + 1 - place) / n, 0.0)
    return h.add(h.within(k) * np.maximum((n + 1 - h.rank) / n - usual, 0.0)) / float(k or 1)


def expectation(h: Reading, k: int | None) -> Float:
    """The share of the reference's lists that hold each item in their first k places."""
    lists = h.context.reference
    out = np.zeros(len(h.facts.ids))
    if lists is None:
        return out
    sizes = lists.sizes
    place = np.arange(1, len(lists.codes) + 1) - np.repeat(lists.indptr[:-1], sizes)
    kept = slice(None) if k is None else place <= k
    owner = np.repeat(np.arange(len(sizes)), sizes)[kept].astype(np.int64)
    pairs = distinct(owner * max(len(lists.items), 1) + lists.codes[kept])
    counts = np.bincount(pairs % max(len(lists.items), 1), minlength=max(len(lists.items), 1))
    lists.items.same_kind(h.facts.ids, what="item")
    at = lists.items.code_of(h.facts.ids.values)
    return np.where(at >= 0, counts[at] / max(int((sizes > 0).sum()), 1), 0.0)


def _own(h: Reading, k: int | None) -> Float:
    lists = h.context.reference
    if lists is not None and len(lists.cases) == 0:
        return expectation(h, k)[h.item]  # one list for everybody is everybody's own
    return h.among("reference", h.case, h.item, k).astype(np.float64)


@shown_metric(
    "overlap",
    formula="items in the first k places of both lists / k",
    reference="Webber, Moffat & Zobel, A similarity measure for indefinite rankings (2010)",
    bounds=(0.0, 1.0),
    needs=("reference",),
)
def overlap(h: Reading, k: int | None, c: Conventions, *, over: str = "k") -> Float:
    """The share of the places whose items the reference shows too; over=union gives Jaccard's index.

    Without k the longer of the two lists says how many places there are.

    >>> import recsys
    >>> recsys.evaluate({1: [3, 5]}, {1: {3}}, "overlap@2", reference={1: [4, 3]})["overlap@2"]
    0.5
    """
    del c
    if over not in ("k", "union"):
        raise ConventionError(
            f"overlap got over={over!r}.", hint="Write overlap@10 or overlap(over=union)@10."
        )
    both = _shared(h, k)
    shared = np.bincount(both.case, minlength=h.n_cases) * 1.0
    if over == "union":
        return divided(shared, h.n_shown(k) + _reference_sizes(h, k) - shared)
    return divided(shared, _depth(h, k) * 1.0)


@shown_metric(
    "average_overlap",
    formula="mean over the depths d = 1 … k of overlap at d",
    reference="Fagin, Kumar & Sivakumar, Comparing top k lists (2003)",
    needs=("reference",),
    aliases=("ao",),
)
def average_overlap(h: Reading, k: int | None, c: Conventions) -> Float:
    """How much both lists share, averaged over every depth, so that the top counts most.

    >>> import recsys
    >>> recsys.evaluate({1: [3, 5]}, {1: {3}}, "average_overlap@2", reference={1: [4, 3]})[
    ...     "average_overlap@2"
    ... ]
    0.25
    """
    del c
    both = _shared(h, k)
    depth = _depth(h, k)
    running = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, int(depth.max(initial=0)) + 1))])
    worth = running[depth[both.case]] - running[both.place - 1]
    return divided(h.sum_by_case(both.case, worth), depth * 1.0)


@shown_metric(
    "rbo",
    formula="(1 - p) sum over depths d of p^(d - 1) overlap at d, carried on beyond the lists as it ended",
    reference="Webber, Moffat & Zobel, A similarity measure for indefinite rankings (2010)",
    needs=("reference",),
    aliases=("rank_biased_overlap",),
)
def rbo(h: Reading, k: int | None, c: Conventions, *, p: float = 0.9, form: str = "ext") -> Float:
    """How alike both lists are to a reader who goes one deeper with chance p; the best guess of the whole.

    form=ext carries the overlap on beyond the lists, form=sum takes what lies beyond for nothing.

    >>> import recsys
    >>> found = recsys.evaluate({1: [3, 5]}, {1: {3}}, "rbo(p=0.5)@2", reference={1: [4, 3]})
    >>> found["rbo(p=0.5)@2"]
    0.25
    """
    del c
    if not 0 < p < 1 or form not in ("ext", "sum"):
        raise ConventionError(f"rbo got p={p!r}, form={form!r}.", hint="Write rbo(p=0.9) or rbo(form=sum).")
    both = _shared(h, k)
    sizes = np.stack([h.n_places(k), _reference_sizes(h, k)])
    short, long = sizes.min(axis=0), sizes.max(axis=0)
    depths = np.arange(1, int(long.max(initial=0)) + 1)
    step = np.concatenate([[0.0], np.cumsum((1 - p) * p ** (depths - 1.0) / depths)])
    total = h.sum_by_case(both.case, step[long[both.case]] - step[both.place - 1])
    if form == "sum":
        return total
    # Webber et al., equation 32: beyond the shorter list its overlap is taken to go on as it ended.
    at_short = np.bincount(both.case[both.place <= short[both.case]], minlength=h.n_cases) * 1.0
    at_long = np.bincount(both.case, minlength=h.n_cases) * 1.0
    power = np.concatenate([[0.0], np.cumsum((1 - p) * p ** (depths - 1.0))])
    share = divided(at_short, short * 1.0)
    total += share * ((power[long] - power[short]) - short * (step[long] - step[short]))
    return total + (divided(at_long - at_short, long * 1.0) + share) * np.where(long > 0, p**long, 0.0)


def _depth(h: Reading, k: int | None) -> Int:
    """How many places are compared: k, or as many as the longer list has."""
    return np.maximum(h.n_places(k), _reference_sizes(h, k)) if k is None else np.full(h.n_cases, k)


def _reference_sizes(h: Reading, k: int | None) -> Int:
    known = h.pairs("reference")
    keep = slice(None) if k is None else known.place <= k
    return np.bincount(known.case[keep], minlength=h.n_cases)


def _shared(h: Reading, k: int | None) -> Entries:
    """Items both lists show in their first k places; the place is the deeper of the two."""
    mine, theirs = h.shown(k), h.pairs("reference")
    keep = (theirs.item >= 0) & (theirs.place <= (np.inf if k is None else k))
    width = max(len(h.facts.ids), 1)
    have = theirs.case[keep].astype(np.int64) * width + theirs.item[keep]
    order = np.argsort(have, kind="stable")
    want = mine.case.astype(np.int64) * width + mine.item
    if len(order) == 0 or len(want) == 0:
        return Entries(*(np.zeros(0, dtype=np.int64) for _ in range(3)))
    at = order[np.minimum(np.searchsorted(have[order], want), len(order) - 1)]
    same = have[at] == want
    place = np.maximum(mine.place[same], theirs.place[keep][at[same]])
    return Entries(mine.case[same], mine.item[same], place.astype(np.int64))
