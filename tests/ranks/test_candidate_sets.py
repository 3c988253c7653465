"""Places among candidates of one's own, counted in blocks, against a plain count case by case."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recsys
from recsys.errors import InputError, RecsysError
from recsys.ranks.sources import candidate_sets
from recsys.ranks.sources.candidate_sets import Candidates

SCORES = (-math.inf, -1.0, 0.0, 0.0, 0.5, 2.0)


def plain(positive: int, negatives: list[int], score, duplicates: str) -> tuple[int, int, int, int]:
    """Above, tied (itself included), tied with a smaller id, candidates."""
    others = [item for item in negatives if item != positive]
    twins = len(negatives) - len(others)
    if duplicates == "collapse":
        others, twins = sorted(set(others)), 0
    candidates = [item for item in others if score(item) > -math.inf]
    own = score(positive)
    twins *= own > -math.inf
    above = sum(score(item) > own for item in candidates) + twins
    tied = [item for item in candidates if score(item) == own]
    kept = len(candidates) + twins
    if own == -math.inf:
        return -1, 1, 0, kept + 1
    return above, len(tied) + 1, sum(item < positive for item in tied), kept + 1


@st.composite
def drawn_sets(draw: st.DrawFn):
    n = draw(st.integers(1, 6))
    users = draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    items = draw(st.lists(st.integers(0, 7), min_size=n, max_size=n))
    width = draw(st.one_of(st.none(), st.integers(0, 5)))
    negatives = [
        draw(st.lists(st.integers(0, 7), min_size=width or 0, max_size=5 if width is None else width))
        for _ in range(n)
    ]
    table = np.random.default_rng(draw(st.integers(0, 999))).choice(SCORES, (10, 8))
    return users, items, negatives, table


@given(
    test=drawn_sets(),
    duplicates=st.sampled_from(["collapse", "pessimistic"]),
    block=st.sampled_from([1, 3, 7, 1 << 20]),
)
def test_places_are_those_of_a_plain_count(test, duplicates, block):
    users, items, negatives, table = test
    cases = Candidates.of(users, items, negatives)
    wanted = [
        plain(item, row, lambda i, user=user: table[user, i], duplicates)
        for user, item, row in zip(users, items, negatives, strict=True)
    ]
    asked = []

    def score(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        asked.append(len(rows))
        return table[rows, columns]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidate_sets, "_PAIRS_PER_BLOCK", block)
        judged = cases.judge(score, duplicates=duplicates)
    assert sum(asked) == len(users) + sum(map(len, negatives))
    longest = max(map(len, negatives)) + 1
    assert max(asked) <= block + longest
    flat = [table[user, i] for user, row in zip(users, negatives, strict=True) for i in row]
    known = cases.judge_scores(
        [table[u, i] for u, i in zip(users, items, strict=True)], flat, duplicates=duplicates
    )
    for found in (judged, known):
        columns = (found.above, found.tied, found.ahead, found.n_candidates)
        got = [tuple(map(int, row)) for row in zip(*map(cases.in_given_order, columns), strict=True)]
        ties_matter = [(a, t, h, n) if a >= 0 else (a, n) for a, t, h, n in got]
        assert ties_matter == [(a, t, h, n) if a >= 0 else (a, n) for a, t, h, n in wanted]
        if len(set(users)) == len(users):
            assert found.cases.values.tolist() == sorted(users)
            assert found.clusters is None
        else:
            assert found.cases.values.tolist() == list(range(len(users)))
            assert found.clusters.tolist() == users
        items_found = found.items.values[found.judged]
        assert cases.in_given_order(items_found).tolist() == items
        assert cases.in_id_order(np.array(items)).tolist() == items_found.tolist()
    twins = sum(row.count(item) for item, row in zip(items, negatives, strict=True))
    repeats = sum(len(row) - len(set(row)) for row in negatives)
    notes = {"positive_among_negatives": twins, "repeated_negatives": repeats}
    assert dict(judged.counts) == {name: n for name, n in notes.items() if n}


def test_repeats_of_ids_too_far_apart_for_one_number():
    cases = Candidates.of([1, 2, 3], [5, 6, 7], [[1, 2**62, 1], [3], [2**62, 2**62]])
    assert cases.repeats.tolist() == [2, 5]


@pytest.mark.parametrize(
    ("users", "items", "negatives"),
    [
        ([1, 2], [3], [[1], [2]]),
        ([1], [3, 4], [[1]]),
        ([1, 2], [3, 4], [[1]]),
        ([], [], []),
        ([1.5], [3], [[1]]),
        ([1], ["a"], [[1]]),
        ([1], [3], [[0.5]]),
        ([1], [3], np.array([1, 2])),
        ([[1]], [3], [[1]]),
    ],
)
def test_what_is_no_test_set_is_refused(users, items, negatives):
    with pytest.raises(InputError):
        Candidates.of(users, items, negatives)


@pytest.mark.parametrize(
    ("users", "items", "negatives", "word"),
    [([-1], [3], [[1]], "user"), ([1], [-3], [[1]], "positive"), ([1], [3], [[-1, 2]], "negative")],
)
def test_rows_of_a_model_count_from_0(users, items, negatives, word):
    with pytest.raises(InputError, match=f"the {word} -"):
        Candidates.of(users, items, negatives).judge(lambda rows, _: np.zeros(len(rows)))


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_scores_that_are_no_scores_are_named(wrong):
    cases = Candidates.of([4, 5], [1, 2], [[7, 8], [9]])
    with pytest.raises(InputError, match="user 5 and item 2"):
        cases.judge_scores([1.0, wrong], [0.0, 1.0, 2.0])
    with pytest.raises(InputError, match="user 5 and item 9"):
        cases.judge_scores([1.0, 1.0], [0.0, 1.0, wrong])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidate_sets, "_PAIRS_PER_BLOCK", 2)  # so that the case is in a block of its own
        with pytest.raises(InputError, match="user 5 and item 9"):
            cases.judge(lambda _, items: np.where(items == 9, wrong, 0.0))
    with pytest.raises(InputError):
        cases.judge_scores([1.0], [0.0, 1.0, 2.0])
    with pytest.raises(InputError):
        cases.judge_scores([1.0, 1.0], [0.0, 1.0])
    with pytest.raises(InputError):
        cases.judge_scores(["a", "b"], [0.0, 1.0, 2.0])
    with pytest.raises(RecsysError):
        cases.judge_scores([1.0, 1.0], [0.0, 1.0, 2.0], duplicates="drop")


def test_negatives_come_as_rows_of_any_form():
    """Three rows of two negatives are one row per user; a single user and item need no list."""
    pytest.importorskip("torch")

    def score(users, items):
        return users * 0.5 - items

    users, items = np.array([0, 1, 1]), np.array([1, 2, 0])
    rows = [np.array([0, 2]), np.array([0, 1]), np.array([1, 2])]
    by_rows = recsys.evaluate_candidates(score, [(users, items, rows)], "mrr")
    as_matrix = recsys.evaluate_candidates(score, [(users, items, np.stack(rows))], "mrr")
    one_by_one = recsys.evaluate_candidates(
        score, [(user, item, row) for user, item, row in zip(users, items, rows, strict=True)], "mrr"
    )
    for wrong in ((users, items[:2], rows), (users, items, np.stack(rows)[:2])):
        with pytest.raises(InputError, match="entry 0 of the test set holds 3 users"):
            recsys.evaluate_candidates(score, [wrong], "mrr")
    assert by_rows["mrr"] == as_matrix["mrr"] == one_by_one["mrr"] == pytest.approx((1 / 2 + 1 / 3 + 1) / 3)
