"""How different the items of one list are from each other and from their user, by their vectors.

For cosine no pair is formed: the sum over pairs follows from the squared norm of the sum of the unit
vectors. The other distances are computed pair by pair. Lists of equal length are processed together, in
blocks within a memory budget; the value of a list does not depend on its block.

Every product is rounded before it is added: BLAS, einsum and SciPy's products with a sparse matrix multiply
and add at once on some processors, and have other bits there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import ConventionError, InputError, NotDefinedError, Phrase
from recsys.metrics.attributes import row_norms, row_products, vector_rows
from recsys.metrics.ranges import DataLimits, Range
from recsys.metrics.readings import Entries, Reading
from recsys.metrics.registry import divide_or_zero, shown_metric
from recsys.records.arrays import Array, Float, Int, entries_of_cases

_ZIEGLER = "Ziegler et al., Improving recommendation lists through topic diversification (2005)"
_BLOCK_BYTES = 32 << 20
_WHOLE_BYTES = 256 << 20


def _range_of_ild(data: DataLimits, k: int | None, c: Conventions, *, distance: Any, missing: str) -> Range:
    """Return the largest distance that two vectors can have; a function may give any."""
    vectors = data.context.embeddings
    if callable(distance) or vectors is None:
        return 0.0, math.inf
    if distance == "euclidean":
        return 0.0, 2.0 * float(row_norms(vectors.matrix).max(initial=0.0))
    return 0.0, {"cosine": 2.0, "hamming": float(vectors.matrix.shape[1])}.get(distance, 1.0)


@shown_metric(
    "ild",
    formula="mean over the pairs of items shown in the first k places of their distance (1 - cosine)",
    reference=_ZIEGLER,
    range=_range_of_ild,
    needs=("embeddings",),
    choices={
        "distance": ("cosine", "euclidean", "bounded_euclidean", "jaccard", "hamming", callable),
        "missing": ("drop", "zero"),
    },
    aliases=("intra_list_diversity", "diversity"),
    best_lists="far_apart",
    tie_order="set",
)
def ild(
    h: Reading, k: int | None, c: Conventions, *, distance: Any = "cosine", missing: str = "drop"
) -> Float:
    """How different the items of a list are: the mean distance of its pairs, 0 for fewer than two items.

    distance=cosine (1 - cosine, 0 to 2), euclidean (d), bounded_euclidean (d / (1 + d)), jaccard (1 -
    coordinates in which both are not 0 / those in which one is not; 0 if there are none), hamming (the number
    of coordinates in which exactly one is not 0), or a function of two vectors. An item without a vector is
    left out, or with missing=zero has the vector 0.

    >>> import recsys
    >>> vectors = {3: [1.0, 0.0], 4: [0.0, 1.0], 5: [1.0, 0.0]}
    >>> recsys.evaluate({1: [3, 4], 2: [3, 5]}, {1: {3}}, "ild@2", embeddings=vectors)["ild@2"]
    0.5
    """
    if not callable(distance) and distance not in ("cosine", *DISTANCES):
        raise ConventionError(
            f"ild got distance={distance!r}.",
            hint=f"Use cosine, {', '.join(DISTANCES)}, or a function of two vectors.",
        )
    if distance == "cosine":
        return 1.0 - np.nan_to_num(_mean_cosine(h, h.shown(k), drop=missing == "drop"), nan=1.0)
    mean = partial(_mean_custom_distance if callable(distance) else _mean_named_distance, distance)
    out = np.zeros(h.n_cases)
    for cases, block in vector_blocks(h, h.shown(k), drop=missing == "drop"):
        out[cases] = mean(block)
    return out


@shown_metric(
    "ils",
    formula="mean over the pairs of items shown in the first k places of their cosine",
    reference=_ZIEGLER,
    better="lower",
    bounds=(-1.0, 1.0),
    empty=math.nan,
    needs=("embeddings",),
    choices={"missing": ("drop", "zero")},
    aliases=("intra_list_similarity",),
    tie_order="set",
)
def ils(h: Reading, k: int | None, c: Conventions, *, missing: str = "drop") -> Float:
    """How similar the items of a list are: 1 - ild. A list without a pair of items is left out.

    An item without a vector is left out, or with missing=zero has the vector 0.

    >>> import recsys
    >>> vectors = {3: [1.0, 0.0], 4: [0.0, 1.0], 5: [1.0, 0.0]}
    >>> recsys.evaluate({1: [3, 4], 2: [3, 5]}, {1: {3}}, "ils@2", embeddings=vectors)["ils@2"]
    0.5
    """
    return np.clip(_mean_cosine(h, h.shown(k), drop=missing == "drop"), -1.0, 1.0)


def _mean_cosine(h: Reading, entries: Entries, *, drop: bool) -> Float:
    """Mean cosine of the pairs, NaN without a pair; a vector of zeros has cosine 0 with every other."""
    rows, matrix = h.facts.rows, h.facts.matrix
    known = rows[entries.item] >= 0
    case, row = entries.case[known], rows[entries.item[known]]
    norm = h.facts.row_norms[row]
    n = np.bincount(case if drop else entries.case, minlength=h.n_cases)
    n_nonzero = np.bincount(case[norm > 0], minlength=h.n_cases)
    units = WeightedRows(matrix, case, row, scale=_to_length_one(h))
    borders = borders_within(n, units)
    square = np.empty(h.n_cases)
    for first, last, total in zip(borders[:-1], borders[1:], sums_by_case(units, borders), strict=True):
        square[first:last] = row_products(total, total)
    return np.where(n > 1, divide_or_zero(square - n_nonzero, n * (n - 1.0)), math.nan)


def vector_blocks(h: Reading, entries: Entries, *, drop: bool) -> Iterator[tuple[Int, Float]]:
    """Blocks of cases with equally many items: the cases, and their vectors as cases x items x factors."""
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


def _bounded_euclidean(block: Float) -> Float:
    """Return 1 - the similarity 1 / (1 + distance)."""
    distance = _euclidean(block)
    return distance / (1.0 + distance)


def _euclidean(block: Float) -> Float:
    """Return the distances of the pairs of each list: first item to all after it, then the second."""
    gaps = (block[:, i + 1 :] - block[:, i : i + 1] for i in range(block.shape[1] - 1))
    return np.concatenate([np.sqrt(row_products(gap, gap)) for gap in gaps], axis=1)


def _jaccard(block: Float) -> Float:
    both, either = _common_coordinates(block)
    return 1.0 - np.divide(both, either, out=np.ones_like(both), where=either > 0)


def _hamming(block: Float) -> Float:
    both, either = _common_coordinates(block)
    return either - both


def _common_coordinates(block: Float) -> tuple[Float, Float]:
    """Return for each pair of items in how many coordinates both and at least one are not 0."""
    has = (block != 0).astype(np.float64)
    count = has.sum(axis=2)
    first, second = np.triu_indices(block.shape[1], 1)
    both = (has @ has.transpose(0, 2, 1))[:, first, second]
    return both, count[:, first] + count[:, second] - both


def _mean_named_distance(name: str, block: Array) -> Float:
    distance = DISTANCES[name](block)
    return np.asarray(distance.sum(axis=1) / distance.shape[1])


def _mean_custom_distance(distance: Callable[[Array, Array], float], block: Array) -> Float:
    n = block.shape[1]
    pairs = list(zip(*np.triu_indices(n, 1), strict=True))
    sums = [math.fsum(distance(vectors[i], vectors[j]) for i, j in pairs) for vectors in block]
    return np.array([total / len(pairs) for total in sums])


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
    best_lists="nearest_to_user",
    tie_order="items",
)
def alignment(h: Reading, k: int | None, c: Conventions) -> Float:
    """How similar the items shown are to their user: profiles=, or the mean vector of what the user had.

    If profiles= is given, train= is not read. The mean of what the user had is weighted by the grades in
    train. An item without a vector is left out; a user without a vector, with a vector of zeros or with no
    item left is left out of the mean.

    >>> import recsys
    >>> vectors = {3: [1.0, 0.0], 4: [0.0, 1.0], 5: [1.0, 0.0]}
    >>> result = recsys.evaluate({1: [4, 5]}, {1: {4}}, "alignment@2", embeddings=vectors, train={1: [3]})
    >>> result["alignment@2"]
    0.5
    """
    return _mean_similarity(h, k, profile_entries(h), normalised=True)


@shown_metric(
    "unexpectedness",
    formula="mean over the items shown in the first k places of 1 - mean cosine to what the user had",
    reference="Zhang et al., Auralist: introducing serendipity into music recommendation (2012)",
    bounds=(0.0, 2.0),
    empty=math.nan,
    needs=("embeddings", "train"),
    choices={"missing": ("drop", "zero")},
    best_lists="farthest_from_user",
    tie_order="items",
)
def unexpectedness(h: Reading, k: int | None, c: Conventions, *, missing: str = "drop") -> Float:
    """How far the items shown are from the items the user had, pair by pair on average.

    An item without a vector is left out, or with missing=zero one that is shown has cosine 0 with every
    other. The grades in train do not count. A user with no item left on either side is left out of the mean.

    >>> import recsys
    >>> vectors = {3: [1.0, 0.0], 4: [0.0, 1.0], 5: [1.0, 0.0]}
    >>> result = recsys.evaluate(
    ...     {1: [4, 5]}, {1: {4}}, "unexpectedness@2", embeddings=vectors, train={1: [3]}
    ... )
    >>> result["unexpectedness@2"]
    0.5
    """
    profile = profile_entries(h, units=True, of_items=True)
    return 1.0 - _mean_similarity(h, k, profile, normalised=False, missing=missing)


def _mean_similarity(
    h: Reading, k: int | None, profile: WeightedRows, *, normalised: bool, missing: str = "drop"
) -> Float:
    """Mean over the items shown of the product of their unit vector and their user's vector.

    The user's vector is a sum. `normalised` divides it by its norm, so that the product is a cosine;
    otherwise it is divided by the number of its terms.
    """
    entries, rows = h.shown(k), h.facts.rows
    known = rows[entries.item] >= 0
    case, row = entries.case[known], rows[entries.item[known]]
    units = WeightedRows(h.facts.matrix, case, row, scale=_to_length_one(h))
    sizes, n_terms = (np.bincount(held.case, minlength=h.n_cases) for held in (units, profile))
    borders = borders_within(sizes + n_terms, units, profile)
    out = np.full(h.n_cases, math.nan)
    both = zip(sums_by_case(units, borders), sums_by_case(profile, borders), strict=True)
    for first, last, (items, user) in zip(borders[:-1], borders[1:], both, strict=True):
        product = row_products(items, user)
        if normalised:
            product = divide_or_zero(product, np.sqrt(row_products(user, user)))
            product = np.where((user != 0).any(axis=1), product, math.nan)
        out[first:last] = product
    n_items = h.n_shown(k) if missing == "zero" else sizes
    n_products = n_items if normalised else n_items * n_terms
    return np.where((n_items > 0) & (n_terms > 0), out / np.maximum(n_products, 1), math.nan)


def _to_length_one(h: Reading) -> Float:
    """Return what the vector of each item is multiplied by for length 1; 0 for a vector of zeros."""
    return divide_or_zero(np.ones(len(h.facts.matrix)), h.facts.row_norms)


class WeightedRows(NamedTuple):
    """The terms of a sum of vectors for each case: rows of `matrix`, cases ascending.

    A row is multiplied by its `scale`, of which there is one per row of the matrix, and by its `weight`, of
    which there is one per term.
    """

    matrix: Array
    case: Array
    row: Array
    scale: Float | None = None
    weight: Float | None = None

    def vectors(self, rows: Array | slice) -> Float:
        """These rows of the matrix times their scale, in float64."""
        plain = np.asarray(self.matrix[rows], dtype=np.float64)
        return plain if self.scale is None else plain * self.scale[rows, None]


def profile_entries(h: Reading, *, units: bool = False, of_items: bool = False) -> WeightedRows:
    """Return the vectors of profiles=, or each user's sum of those of the items had, weighted by grade.

    Args:
        h: the reading whose users are described.
        units: take the items' unit vectors, whatever their grades.
        of_items: take the items even if there are profiles.

    Raises:
        InputError: user and item vectors differ in length.
        NotDefinedError: there are neither profiles nor training interactions with vectors.
    """
    users, train = h.context.profiles, h.context.train
    if users is not None and not of_items:
        if users.matrix.shape[1] != h.facts.matrix.shape[1]:
            raise InputError(
                f"a user's vector has {users.matrix.shape[1]} numbers, an item's {h.facts.matrix.shape[1]}.",
                table="profiles",
            )
        rows = vector_rows(users, h.list_context.users, what="user")
        case = np.flatnonzero(rows >= 0)
        return WeightedRows(users.matrix, case, rows[case])
    if train is None or h.context.embeddings is None:
        hint = Phrase("Pass {profiles=} or {train=}.")
        raise NotDefinedError("nothing says what the users are like.", hint=hint)
    case, at = entries_of_cases(train, h.list_context.users)
    row = vector_rows(h.context.embeddings, train.items, what="item")[train.codes[at]]
    case, row, at = case[row >= 0], row[row >= 0], at[row >= 0]
    if units:
        return WeightedRows(h.facts.matrix, case, row, scale=_to_length_one(h))
    weight = None if train.grades is None or (train.grades == 1).all() else train.grades[at]
    return WeightedRows(h.facts.matrix, case, row, weight=weight)


def sums_by_case(terms: WeightedRows, borders: Int) -> Iterator[Float]:
    """Yield the sums of each block of cases between two borders: cases x factors."""
    from scipy.sparse import csr_array

    whole = terms.vectors(slice(None)) if _is_small(terms) else None
    starts = np.searchsorted(terms.case, borders)
    for first, last, low, high in zip(borders[:-1], borders[1:], starts[:-1], starts[1:], strict=True):
        sizes = np.bincount(terms.case[low:high] - first, minlength=last - first)
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        used, vectors = terms.row[low:high], whole
        if vectors is None:
            distinct, used = np.unique(used, return_inverse=True)
            vectors = terms.vectors(distinct)
        if terms.weight is not None:
            vectors, used = vectors[used] * terms.weight[low:high, None], np.arange(high - low)
        # Rows are added as they are: one times a number is exact, fused with the sum or not.
        block = csr_array((np.ones(high - low), used, indptr), shape=(last - first, len(vectors)))
        yield np.asarray(block @ vectors)


def borders_within(sizes: Int, *terms: WeightedRows) -> Int:
    """Borders of blocks of cases whose sums, and vectors where they are copied, fit the memory budget."""
    width = max(1, *(held.matrix.shape[1] for held in terms))
    copies = any(held.weight is not None or not _is_small(held) for held in terms)
    cost = np.cumsum(((sizes if copies else 0 * sizes) + 1) * 8 * width) // _BLOCK_BYTES
    cuts = np.flatnonzero(np.diff(cost)) + 1
    return np.concatenate([[0], cuts, [len(sizes)]]).astype(np.int64)


def _is_small(terms: WeightedRows) -> bool:
    """Return whether the whole matrix needs no copy in float64, or a small one."""
    as_it_is = terms.matrix.dtype == np.float64 and terms.scale is None
    return as_it_is or terms.matrix.size * 8 <= _WHOLE_BYTES
