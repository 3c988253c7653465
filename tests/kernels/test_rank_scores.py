"""Given scores ranked: every backend, level and number of threads against sorting in plain Python."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import kernels
from worlds.kernels import LEVELS

WAYS = [("reference", None), *(("native", level) for level in LEVELS)]
TYPES = ["float16", "float32", "float64", "int8", "int32", "int64", "uint64", "bool"]
# Neighbours, both zeros, the smallest and the largest, and what only 64 bits tell apart.
NUMBERS = {
    "float16": [0.0, -0.0, 1.0, 1.0009765625, -1.0, 65504.0, 6e-8],
    "float32": [0.0, -0.0, 1.0, 1.0000001, -1.0, 3.4e38, -3.4e38, 1e-45],
    "float64": [0.0, -0.0, 1.0, 1.0000000000000002, -1.0, 1.7e308, -1.7e308, 5e-324],
    "int8": [-128, 127, 0, 1],
    "int32": [-(2**31), 2**31 - 1, 2**24, 2**24 + 1, 0],
    "int64": [-(2**63), 2**63 - 1, 2**53, 2**53 + 1, 0],
    "uint64": [0, 2**64 - 1, 2**64 - 2, 2**53, 2**53 + 1],
    "bool": [False, True],
}


def plain(scores, candidate, k, truth, rank):
    """Rows as tuples of lists, counts and number of candidates."""
    out = []
    for row, (values, open_) in enumerate(zip(scores.tolist(), candidate.tolist(), strict=True)):
        pool = [i for i in range(len(values)) if open_[i]]
        order = sorted(pool, key=lambda i: (-values[i], rank[i]))
        counts = []
        for item in truth[1][truth[0][row] : truth[0][row + 1]].tolist():
            if not open_[item]:
                counts.append((-1, 0, 0))
                continue
            level = [i for i in pool if values[i] == values[item]]
            counts.append(
                (
                    sum(values[i] > values[item] for i in pool),
                    len(level),
                    sum(rank[i] < rank[item] for i in level),
                )
            )
        out.append((order[:k], counts, len(pool)))
    return out


@st.composite
def score_rows(draw):
    dtype = draw(st.sampled_from(TYPES))
    n_rows, n_items = (
        draw(st.integers(0, 4)),
        draw(st.integers(0, 9) | st.sampled_from([63, 64, 65, 200, 1100])),
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    numbers = np.array(NUMBERS[dtype], dtype=dtype)
    scores = numbers[rng.integers(0, len(numbers), (n_rows, n_items))]
    if draw(st.booleans()) and dtype.startswith("float"):
        scores = rng.standard_normal((n_rows, n_items)).astype(dtype)
    candidate = rng.random((n_rows, n_items)) < draw(st.sampled_from([0.0, 0.5, 1.0]))
    if dtype.startswith("float"):
        scores[~candidate] = -np.inf
    sizes = rng.integers(0, min(n_items, 12) + 1, n_rows)
    items = [np.sort(rng.choice(n_items, size, replace=False)) for size in sizes]
    truth = np.concatenate([[0], np.cumsum(sizes)]), np.concatenate([np.zeros(0), *items]).astype(np.int32)
    return scores, candidate, draw(st.integers(1, 12)), truth, rng.permutation(n_items)


@pytest.mark.parametrize(("backend", "level"), WAYS)
@settings(max_examples=300, deadline=None)
@given(world=score_rows(), threads=st.sampled_from([1, 2, 8]))
def test_scores_are_ranked_as_sorting_does(backend, level, world, threads):
    scores, candidate, k, truth, rank = world
    how = {"backend": backend, "cpu_level": level, "threads": threads}
    found = kernels.rank_scores(scores, candidate, k=k, truth=truth, item_rank=rank, **how)
    rows = plain(scores, candidate, k, truth, rank)
    bounds = itertools.pairwise(found.list_indptr.tolist())
    assert [found.list_items[a:b].tolist() for a, b in bounds] == [row[0] for row in rows]
    counts = list(zip(found.above.tolist(), found.tied.tolist(), found.ahead.tolist(), strict=True))
    assert counts == [each for row in rows for each in row[1]]
    assert found.n_candidates.tolist() == [row[2] for row in rows]
    case = np.repeat(np.arange(len(scores)), np.diff(truth[0]))
    assert found.truth_scores.tolist() == scores[case, truth[1]].astype(float).tolist()
    of = np.repeat(np.arange(len(scores)), np.diff(found.list_indptr))
    assert found.list_scores.tolist() == scores[of, found.list_items].astype(float).tolist()


@pytest.mark.parametrize(("backend", "level"), WAYS)
def test_without_lists_or_truth(backend, level):
    scores, all_ = np.array([[1.0, 3.0, 2.0]]), np.ones((1, 3), dtype=bool)
    how = {"backend": backend, "cpu_level": level}
    assert kernels.rank_scores(scores, all_, **how).list_indptr.tolist() == [0, 0]
    assert kernels.rank_scores(scores, all_, k=2, **how).list_items.tolist() == [1, 2]
    assert kernels.rank_scores(scores, all_, truth=([0, 1], [2]), **how).above.tolist() == [1]


@pytest.mark.parametrize(("backend", "level"), WAYS)
def test_scores_in_any_layout_are_ranked_as_they_read(backend, level):
    whole = np.random.default_rng(0).standard_normal((6, 40)).astype(np.float32)
    how = {"k": 3, "backend": backend, "cpu_level": level}
    wanted = kernels.rank_scores(whole, np.ones((6, 40), bool), **how).list_items
    backwards = np.ascontiguousarray(whole[:, ::-1])[:, ::-1]
    for given_ in (np.asfortranarray(whole), backwards, whole.astype(">f4")):
        found = kernels.rank_scores(given_, np.ones((6, 40), bool), **how)
        assert found.list_items.tolist() == wanted.tolist()


@pytest.mark.parametrize(("backend", "level"), WAYS)
def test_items_of_equal_rank_go_by_index(backend, level):
    result = kernels.rank_scores(
        [[1.0, 1.0, 1.0, 2.0, 1.0]], np.ones((1, 5), bool), k=4, truth=([0, 3], [0, 2, 4]),
        item_rank=[0, 3, 0, 1, 0], backend=backend, cpu_level=level,
    )  # fmt: skip
    assert (result.list_items.tolist(), result.ahead.tolist()) == ([3, 0, 2, 4], [0, 1, 2])
