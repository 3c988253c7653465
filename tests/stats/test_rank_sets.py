"""Sets of places: the definition by all signs, what they promise in simulated worlds, and hostile values."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from recsys.records.arrays import Float
from recsys.stats.bootstrap import Resampler, Units
from recsys.stats.rank_sets import Places, over_tasks, place_sets, shown_better

KEYS = np.arange(10_000, dtype=np.uint64)


class AllSigns(Resampler):
    """Every assignment of signs to the units, instead of random ones."""

    def flipped(self, columns: Float) -> Float:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=columns.shape[1])))
        flipped: Float = columns @ signs.T
        return flipped


def by_definition(values: Float, alpha: float) -> set[tuple[int, int]]:
    """The pairs that are claimed, step by step, from every sign of every unit."""
    n_models, n = values.shape
    signs = list(itertools.product((-1.0, 1.0), repeat=n))
    gaps = {
        (j, k): values[j] - values[k]
        for j, k in itertools.permutations(range(n_models), 2)
        if np.any(values[j] != values[k])
    }
    left = {pair for pair in gaps if pair[0] < pair[1]}
    claimed: set[tuple[int, int]] = set()

    def z(pair: tuple[int, int], sign: object) -> float:
        return abs(float(np.dot(sign, gaps[pair]))) / float(np.sqrt(np.sum(gaps[pair] ** 2)))

    while left:
        rivals = [max(z(pair, sign) for pair in left) for sign in signs]
        beyond = {
            pair
            for pair in left
            if (1 + sum(r >= z(pair, np.ones(n)) - 1e-9 for r in rivals)) / (1 + len(rivals)) <= alpha
        }
        if not beyond:
            break
        claimed |= beyond
        left -= beyond
    return {(j, k) if gaps[j, k].sum() > 0 else (k, j) for j, k in claimed}


@given(
    st.integers(2, 4).flatmap(
        lambda m: arrays(np.float64, (m, 7), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0]))
    ),
    st.sampled_from([0.05, 0.2, 0.4]),
)
def test_the_claims_are_those_of_the_definition(values: Float, alpha: float) -> None:
    found = shown_better(values, AllSigns(KEYS[:7]), alpha)
    assert {(int(j), int(k)) for j, k in np.argwhere(found)} == by_definition(values, alpha)


def test_places_count_who_is_shown_better_and_worse() -> None:
    better = np.zeros((4, 4), dtype=bool)
    better[0, 1:] = better[1, 3] = True
    assert place_sets(better) == [Places(1, 1), Places(2, 3), Places(2, 4), Places(3, 4)]
    assert [*map(str, place_sets(better))] == ["1", "2-3", "2-4", "3-4"]


def test_equal_models_share_their_places_however_small_the_rounding() -> None:
    rng = np.random.default_rng(0)
    first = rng.random(400)
    noisy = first * (1.0 + 1e-16 * rng.integers(-1, 2, 400))
    better = shown_better(np.array([first, noisy, first, first - 0.2]), Resampler(KEYS[:400], 2_000), 0.05)
    assert [*map(str, place_sets(better))] == ["1-3", "1-3", "1-3", "4"]


def test_small_differences_of_large_values_are_found() -> None:
    rng = np.random.default_rng(1)
    base = 1e6 * rng.random(300)
    better = shown_better(np.array([base + 1e-3, base, base]), Resampler(KEYS[:300], 2_000), 0.05)
    assert [*map(str, place_sets(better))] == ["1", "2-3", "2-3"]


def test_too_few_units_claim_nothing() -> None:
    better = shown_better(np.array([[1.0] * 4, [0.0] * 4]), Resampler(KEYS[:4], 2_000), 0.05)
    assert not better.any()
    assert shown_better(np.array([[1.0] * 8, [0.0] * 8]), Resampler(KEYS[:8], 2_000), 0.05)[0, 1]


def test_the_order_of_users_and_models_does_not_matter() -> None:
    rng = np.random.default_rng(2)
    values = rng.random((5, 200)) + np.array([[0.1], [0.0], [0.05], [0.2], [0.0]])
    users, models = rng.permutation(200), rng.permutation(5)
    found = shown_better(values, Resampler(KEYS[:200], 1_000), 0.05)
    again = shown_better(values[models][:, users], Resampler(KEYS[:200][users], 1_000), 0.05)
    assert np.array_equal(found[np.ix_(models, models)], again)


def test_tasks_have_the_same_weight_and_users_of_their_own() -> None:
    keys = np.arange(3, dtype=np.uint64)
    small = Units(keys, np.array([[3.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), np.ones((2, 3)))
    large = Units(np.arange(6, dtype=np.uint64), np.array([[0.0] * 6, [1.0] * 6]), np.ones((2, 6)))
    both = over_tasks({"small": small, "large": large})
    assert both.totals.sum(axis=1).tolist() == pytest.approx([0.5, 0.5])
    assert len(np.unique(both.keys)) == 9


def _ndcg(means: Float) -> Callable[[np.random.Generator, int], Float]:
    def world(rng: np.random.Generator, n: int) -> Float:
        """Values of users of different ease; each model's have their mean, whatever the others have."""
        ease = rng.beta(1.0, 2.0, n)
        noise = rng.beta(0.6, 0.6, (len(means), n)) - 0.5
        return means[:, None] + 0.3 * ease + 0.4 * noise

    return world


def _hits(means: Float) -> Callable[[np.random.Generator, int], Float]:
    def world(rng: np.random.Generator, n: int) -> Float:
        shared, own = rng.random(n), rng.random((len(means), n))
        draws = np.where(rng.random((len(means), n)) < 0.5, shared, own)
        return (draws < means[:, None]).astype(np.float64)

    return world


EQUAL, SPREAD = np.full(8, 0.3), np.linspace(0.15, 0.5, 8)
TOP_FOUR = np.array([0.4] * 4 + [0.3, 0.25, 0.2, 0.1])


@pytest.mark.parametrize("values", [_ndcg, _hits])
@pytest.mark.parametrize("means", [EQUAL, SPREAD, TOP_FOUR, np.full(20, 0.2)], ids=["=", "/", "top4", "20="])
def test_all_places_hold_together(values: Callable[..., Callable[..., Float]], means: Float) -> None:
    rng, n_worlds, n_right = np.random.default_rng(3), 120, 0
    for seed in range(n_worlds):
        better = shown_better(values(means)(rng, 300), Resampler(KEYS[:300], 400, seed), 0.05)
        places = place_sets(better)
        n_right += all(
            p.best <= 1 + np.sum(means > own) and p.worst >= len(means) - np.sum(means < own)
            for p, own in zip(places, means, strict=True)
        )
    # 0.95 of 120 is 114; with chance 1e-4 a right test has fewer than 104
    assert n_right >= 104


def test_the_best_stands_alone_where_pairwise_tests_separate_it() -> None:
    rng, n_alone, n_separate = np.random.default_rng(4), 0, 0
    world = _ndcg(np.array([0.36, 0.3, 0.3, 0.28, 0.25, 0.25, 0.2, 0.1]))
    for seed in range(80):
        values = world(rng, 300)
        gaps = values[0] - values[1:]
        t = gaps.mean(axis=1) / (gaps.std(axis=1, ddof=1) / np.sqrt(300))
        if t.min() > 2.6:  # each pair alone, a little beyond its level
            n_separate += 1
            n_alone += place_sets(shown_better(values, Resampler(KEYS[:300], 400, seed), 0.05))[0].worst == 1
    assert n_separate > 40
    assert n_alone >= 0.8 * n_separate
