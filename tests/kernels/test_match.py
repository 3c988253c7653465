"""match_lists against the definition, in every backend."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import kernels
from recsys.errors import InputError

BACKENDS = ["reference", *(["native"] if kernels.backends().native else [])]

items = st.integers(-3, 40) | st.sampled_from([-(2**31), 2**31 - 1])
small_cases = st.lists(st.tuples(st.lists(items, max_size=12), st.sets(items, max_size=8)), max_size=8)


def rows(cases):
    indptr = np.cumsum([0, *(len(case) for case in cases)], dtype=np.int64)
    return indptr, np.array([item for case in cases for item in case], np.int32)


def oracle(lists, truths):
    hits, repeats, at, base = [], [], 0, 0
    for entries, truth in zip(lists, truths, strict=True):
        for place, item in enumerate(entries):
            repeat = item in entries[:place]
            if repeat:
                repeats.append(at)
            if item in truth:
                hits.append((at, base + truth.index(item), repeat))
            at += 1
        base += len(truth)
    return hits, len(repeats), repeats[0] if repeats else -1


def check(lists, truths, backend, threads=1):
    expected = oracle(lists, truths)
    indptr = rows(lists)[0]
    for level in kernels.backends().cpu_levels if backend == "native" else [None]:
        found = kernels.match_lists(
            *rows(lists), *rows(truths), backend=backend, threads=threads, cpu_level=level
        )
        hits = list(zip(found.at.tolist(), found.truth.tolist(), found.repeat.tolist(), strict=True))
        assert (hits, found.n_repeated, found.first_repeated) == expected, level
        assert all(indptr[c] <= at < indptr[c + 1] for c, at in zip(found.case, found.at, strict=True))
        kinds = (found.at.dtype, found.truth.dtype, found.case.dtype, found.repeat.dtype)
        assert kinds == (np.int64, np.int64, np.int32, np.bool_)


@pytest.mark.parametrize("backend", BACKENDS)
@given(cases=small_cases)
def test_equals_the_definition(backend, cases):
    check([entries for entries, _ in cases], [sorted(truth) for _, truth in cases], backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("n_entries", "n_judged"),
    [
        (0, 5),
        (5, 0),
        (15, 3),
        (16, 4),
        (17, 5),
        (32, 9),
        (33, 9),
        (63, 32),
        (64, 30),
        (65, 30),
        (128, 32),
        (129, 33),
        (600, 40),
        (3, 900),
        (400, 5000),
    ],
)
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1))
def test_any_length(backend, n_entries, n_judged, seed):
    rng = np.random.default_rng(seed)
    lists = [rng.integers(0, 3 * (n_entries + 1), n_entries).tolist() for _ in range(3)]
    truths = [sorted(set(rng.integers(0, 2 * (n_judged + 1), n_judged).tolist())) for _ in range(3)]
    check(lists, truths, backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_many_cases_in_blocks_and_threads(backend):
    rng = np.random.default_rng(7)
    lists = [row.tolist() for row in rng.integers(0, 30, (70_000, 3))]
    truths = [sorted(set(row)) for row in rng.integers(0, 30, (70_000, 2)).tolist()]
    for threads in (1, 2, 8):
        check(lists, truths, backend, threads)


@pytest.mark.parametrize("backend", BACKENDS)
def test_items_that_share_a_hash_slot(backend):
    # 2^32 steps of the golden ratio: these items fall together in small hashed tables.
    clash = [(i * 340573321) % 2**32 - 2**31 for i in range(300)]
    check(
        [clash, clash[:40], clash[:40] + clash[:3]],
        [sorted(clash), sorted(clash[:20]), sorted(clash[10:30])],
        backend,
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_cases(backend):
    check([], [], backend)


@pytest.mark.parametrize(
    ("indptr", "entries"),
    [([0, 3], [1, 2]), ([1, 2], [1, 2]), ([0, 2, 1, 2], [1, 2]), ([], []), ([0, 1], [2**40])],
)
def test_wrong_rows_are_named(indptr, entries):
    with pytest.raises(InputError, match="lists"):
        kernels.match_lists(indptr, entries, [0, 0], [])


def test_different_numbers_of_cases():
    with pytest.raises(InputError, match="truth"):
        kernels.match_lists([0, 1], [1], [0, 0, 1], [1])


def test_backends_says_what_and_why():
    now = kernels.backends()
    assert now.in_use in ("native", "reference")
    assert now.why in str(now)


def test_unknown_backend():
    with pytest.raises(ValueError, match="backend"):
        kernels.match_lists([0], [], [0], [], backend="gpu")
