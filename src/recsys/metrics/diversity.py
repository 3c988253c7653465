"""How different the items of one list are from each other, from their vectors.

For cosine no pair is ever formed: the sum over pairs is the squared length of the sum of the unit
vectors. The others take one small Gram matrix a list. Lists of one length are worked on together, in
blocks within a memory budget; a list's value does not depend on the block it is in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import ConventionError, InputError, NotDefinedError
from recsys.metrics.case_reading import Reading
from recsys.metrics.item_facts import rows_of
from recsys.metrics.registry import divided, shown_metric
from recsys.metrics.shown_items import Entries
from recsys.metrics.vector_sums import borders_within, sums_by_case
from recsys.types import Array, Float, Int, entries_of

_BLOCK_BYTES = 32 << 20


@shown_metric(
    "ild",
    formula="mean over the pairs of items shown in the first k places of their distance (1 - cosine)",
    reference="Ziegler et al., Improving recommendation lists through topic diversification (2005)",
    bounds=(0.0, math.inf),
    needs=("embeddings",),
    aliases=("intra_list_diversity", "diversity"),
)
def ild(
    h: Reading, k: int | None, c: Conventions, *, distance: Any = "cosine", missing: str = "drop"
) -> Float:
    """How different the items of a list are: the mean distance of its pairs, 0 for fewer than two items.

    distance=cosine (0 to 2), euclidean, bounded_euclidean (d / (1 + d)), jaccard or hamming (of the
    coordinates that are not 0), or a function of two vectors. An item without a vector is left out, or with
    missing=zero has the vector 0.

    >>> import recsys
    >>> vectors = {3: [1.0, 0.0], 4: [0.0, 1.0], 5: [1.0, 0.0]}
    >>> recsys.evaluate({1: [3, 4], 2: [3, 5]}, {1: {3}}, "ild@2", embeddings=vectors)["ild@2"]
    0.5
    """
    del c
    if not callable(distance) and distance not in ("cosine", *DISTANCES):
        raise ConventionError(
            f"ild got distance={distance!r}.",
            hint=f"Use cosine, {', '.join(DISTANCES)}, or a function of two vectors.",
        )
    if distance == "cosine":
        return _cosine(h, h.shown(k), drop=missing == "drop")
    measure: Callable[[Float], Float] = (
        (lambda block: _pair_by_pair(block, distance)) if callable(distance) else DISTANCES[distance]
    )
    out = np.zeros(h.n_cases)
    for cases, block in blocks(h, h.shown(k), drop=missing == "drop"):
        out[cases] = measure(block)
    return out


def _cosine(h: Reading, entries: Entries, *, drop: bool) -> Float:
    """1 - mean cosine of the pairs; a vector of zeros has cosine 0 with every other."""
    rows, matrix = h.facts.rows, h.facts.matrix
    known = rows[entries.item] >= 0
    case, row = entries.case[known], rows[entries.item[known]]
    length = h.facts.row_lengths[row]
    n = np.bincount(case if drop else entries.case, minlength=h.n_cases)
    own = np.bincount(case[length > 0], minlength=h.n_cases)
    borders = borders_within(n, matrix)
    square = np.empty(h.n_cases)
    sums = sums_by_case(matrix, case, row, divided(np.ones(len(row)), length), borders)
    for first, last, total in zip(borders[:-1], borders[1:], sums, strict=True):
        square[first:last] = np.einsum("nd,nd->n", total, total)
    return np.where(n > 1, 1.0 - divided(square - own, n * (n - 1.0)), 0.0)


def blocks(h: Reading, entries: Entries, *, drop: bool) -> Iterator[tuple[Int, Float]]:
    """Vectors of the items of some cases with equally many of them: cases, and cases x items x factors."""
    rows, matrix = h.facts.rows, h.facts.matrix
    row, case = rows[entries.item], entries.case
    if drop:
        row, case = row[row >= 0], case[row >= 0]
    sizes = np.bincount(case, minlength=h.n_cases)
    starts = np.cumsum(sizes) - sizes
    for size in np.unique(sizes[sizes >= 2]).tolist():
        cases = np.flatnonzero(sizes == size)
        step = max(1, _BLOCK_BYTES // (8 * size * max(1, matrix.shape[1])))
        for first in range(0, len(cases), step):
            part = cases[first : first + step]
            at = row[starts[part][:, None] + np.arange(size)]
            block = matrix[np.maximum(at, 0)].astype(np.float64)
            block[at < 0] = 0.0
            yield part, block


def _euclidean(block: Float) -> Float:
    return _mean_pair(_lengths(block))


def _bounded_euclidean(block: Float) -> Float:
    """1 - mean of the similarity 1 / (1 + distance)."""
    far = _lengths(block)
    return _mean_pair(far / (1.0 + far))


def _lengths(block: Float) -> Float:
    block -= block[:, :1]  # near one of them, equal vectors are exactly equal and no digits cancel
    square = np.einsum("bnd,bnd->bn", block, block)
    gram = block @ block.transpose(0, 2, 1)
    return np.asarray(np.sqrt(np.maximum(square[:, :, None] + square[:, None, :] - 2 * gram, 0.0)))


def _jaccard(block: Float) -> Float:
    both, either = _shared(block)
    return _mean_pair(1.0 - np.divide(both, either, out=np.ones_like(both), where=either > 0))


def _hamming(block: Float) -> Float:
    both, either = _shared(block)
    return _mean_pair(either - both)


def _shared(block: Float) -> tuple[Float, Float]:
    has = (block != 0).astype(np.float64)
    count = has.sum(axis=2)
    both = has @ has.transpose(0, 2, 1)
    return both, count[:, :, None] + count[:, None, :] - both


def _mean_pair(distance: Float) -> Float:
    n = distance.shape[1]
    upper = distance[:, *np.triu_indices(n, 1)]
    return np.asarray(upper.sum(axis=1) / (n * (n - 1) / 2))


def _pair_by_pair(block: Array, distance: Callable[[Array, Array], float]) -> Float:
    n = block.shape[1]
    pairs = list(zip(*np.triu_indices(n, 1), strict=True))
    return np.array([math.fsum(distance(one[i], one[j]) for i, j in pairs) / len(pairs) for one in block])


DISTANCES: dict[str, Callable[[Float], Float]] = {
    "euclidean": _euclidean,
    "bounded_euclidean": _bounded_euclidean,
    "jaccard": _jaccard,
    "hamming": _hamming,
}


@shown_metric(
    "alignment",
    formula="mean over the items shown in the first k places of cosine(item, user)",
    reference="Lops, de Gemmis & Semeraro, Content-based recommender systems (2011)",
    bounds=(-1.0, 1.0),
    empty=math.nan,
    needs=("embeddings", "profiles"),
    aliases=("semantic_alignment",),
)
def alignment(h: Reading, k: int | None, c: Conventions) -> Float:
    """How near the items shown are to their user: profiles=, or the mean vector of what the user had.

    An item without a vector is left out; a user without a vector is left out of the mean.

    >>> import recsys
    >>> vectors = {3: [1.0, 0.0], 4: [0.0, 1.0], 5: [1.0, 0.0]}
    >>> found = recsys.evaluate({1: [4, 5]}, {1: {4}}, "alignment@2", embeddings=vectors, train={1: [3]})
    >>> found["alignment@2"]
    0.5
    """
    del c
    return nearness(h, k, profile_entries(h), length_of_user=True)


@shown_metric(
    "unexpectedness",
    formula="mean over the items shown in the first k places of 1 - mean cosine to what the user had",
    reference="Zhang et al., Auralist: introducing serendipity into music recommendation (2012)",
    bounds=(0.0, 2.0),
    empty=math.nan,
    needs=("embeddings", "train"),
)
def unexpectedness(h: Reading, k: int | None, c: Conventions, *, missing: str = "drop") -> Float:
    """How far the items shown are from the items the user had, pair by pair on average.

    An item without a vector is left out, or with missing=zero is as far as can be told from every other.

    >>> import recsys
    >>> vectors = {3: [1.0, 0.0], 4: [0.0, 1.0], 5: [1.0, 0.0]}
    >>> found = recsys.evaluate({1: [4, 5]}, {1: {4}}, "unexpectedness@2", embeddings=vectors, train={1: [3]})
    >>> found["unexpectedness@2"]
    0.5
    """
    del c
    had = profile_entries(h, units=True, of_items=True)
    return 1.0 - nearness(h, k, had, length_of_user=False, missing=missing)


def nearness(
    h: Reading, k: int | None, profile: Profile, *, length_of_user: bool, missing: str = "drop"
) -> Float:
    """Mean cosine of the items shown to their user's vector; the product itself where it has no length."""
    entries, rows = h.shown(k), h.facts.rows
    known = rows[entries.item] >= 0
    case, row = entries.case[known], rows[entries.item[known]]
    weight = divided(np.ones(len(row)), h.facts.row_lengths[row])
    sizes = np.bincount(case, minlength=h.n_cases)
    entries_of_case = sizes + np.bincount(profile.case, minlength=h.n_cases)
    borders = borders_within(entries_of_case, h.facts.matrix, profile.matrix)
    out = np.full(h.n_cases, math.nan)
    shown = sums_by_case(h.facts.matrix, case, row, weight, borders)
    users = sums_by_case(profile.matrix, profile.case, profile.row, profile.weight, borders)
    for first, last, items, user in zip(borders[:-1], borders[1:], shown, users, strict=True):
        near = np.einsum("nd,nd->n", items, user)
        if length_of_user:
            near = divided(near, np.sqrt(np.einsum("nd,nd->n", user, user)))
            near = np.where((user != 0).any(axis=1), near, math.nan)
        out[first:last] = near
    counted = h.n_shown(k) if missing == "zero" else sizes
    told = (counted > 0) & (np.bincount(profile.case, minlength=h.n_cases) > 0)
    return np.where(told, out / np.maximum(counted, 1), math.nan)


class Profile(NamedTuple):
    """What the vector of each user is the weighted sum of."""

    matrix: Array
    case: Array
    row: Array
    weight: Float


def profile_entries(h: Reading, *, units: bool = False, of_items: bool = False) -> Profile:
    """The vectors given for users, or those of the items each had, by grade.

    `of_items`: always the items; `units`: the mean of their unit vectors, whatever the grade.
    """
    given, train = h.context.profiles, h.context.train
    if given is not None and not of_items:
        if given.matrix.shape[1] != h.facts.matrix.shape[1]:
            raise InputError(
                f"a user's vector has {given.matrix.shape[1]} numbers, an item's {h.facts.matrix.shape[1]}.",
                table="profiles",
            )
        rows = rows_of(given, h.beyond.users, what="user")
        case = np.flatnonzero(rows >= 0)
        return Profile(given.matrix, case, rows[case], np.ones(len(case)))
    if train is None or h.context.embeddings is None:
        raise NotDefinedError("nothing says what the users are like.", hint="Pass profiles= or train=.")
    case, at = entries_of(train, h.beyond.users)
    row = rows_of(h.context.embeddings, train.items, what="item")[train.codes[at]]
    weight = np.ones(len(at)) if train.grades is None else train.grades[at]
    case, row, weight = case[row >= 0], row[row >= 0], weight[row >= 0]
    if units:
        weight = divided(divided(np.ones(len(row)), h.facts.row_lengths[row]), np.bincount(case)[case] * 1.0)
    return Profile(h.facts.matrix, case, row, weight)
