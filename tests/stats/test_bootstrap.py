"""The draws: independent of order, shards, blocks and of what else is computed with them."""

from __future__ import annotations

import numpy as np
import pytest

from recsys.errors import InputError, UnknownNameError
from recsys.stats.bootstrap import Resampler, groups_of, random_order, seed_from_rng, unit_keys


@pytest.fixture
def columns() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(3, 1500))


def test_keys_are_the_same_in_every_process() -> None:
    assert unit_keys(np.array([0, 1, -1])).tolist() == [
        16294208416658607535,
        10451216379200822465,
        16490336266968443936,
    ]
    assert unit_keys(np.array(["a", "é"], dtype=object)).tolist() == unit_keys(np.array(["a", "é"])).tolist()
    assert len(set(unit_keys(np.arange(100_000)).tolist())) == 100_000


@pytest.mark.parametrize("draw", ["weighted", "flipped"])
def test_order_of_units_does_not_matter(columns: np.ndarray, draw: str) -> None:
    keys = unit_keys(np.arange(1500))
    order = np.random.default_rng(2).permutation(1500)
    plain = getattr(Resampler(keys, 300), draw)(columns)
    shuffled = getattr(Resampler(keys[order], 300), draw)(columns[:, order])
    np.testing.assert_allclose(shuffled, plain, rtol=0, atol=1e-10)


@pytest.mark.parametrize("draw", ["weighted", "flipped"])
def test_shards_add_up(columns: np.ndarray, draw: str) -> None:
    keys = unit_keys(np.arange(1500))
    whole = getattr(Resampler(keys, 200, scheme="poisson"), draw)(columns)
    parts = [
        getattr(Resampler(keys[s], 200, scheme="poisson"), draw)(columns[:, s])
        for s in (slice(0, 400), slice(400, None))
    ]
    np.testing.assert_allclose(sum(parts), whole, rtol=0, atol=1e-10)


@pytest.mark.parametrize("scheme", ["poisson", "multinomial"])
def test_memory_budget_does_not_change_the_draws(columns: np.ndarray, scheme: str) -> None:
    keys = unit_keys(np.arange(1500))
    wide = Resampler(keys, 301, scheme=scheme).weighted(columns)
    narrow = Resampler(keys, 301, scheme=scheme, budget=1 << 20).weighted(columns)
    np.testing.assert_allclose(narrow, wide, rtol=0, atol=1e-10)


@pytest.mark.parametrize("scheme", ["poisson", "multinomial"])
def test_columns_share_the_draws(columns: np.ndarray, scheme: str) -> None:
    resampler = Resampler(unit_keys(np.arange(1500)), 200, scheme=scheme)
    together = resampler.weighted(columns)
    for j in range(3):
        np.testing.assert_allclose(resampler.weighted(columns[j : j + 1])[0], together[j], rtol=0, atol=1e-10)


def test_poisson_weights_have_mean_and_variance_one() -> None:
    n = 400
    weights = Resampler(unit_keys(np.arange(n)), 4000, scheme="poisson").weighted(np.eye(n))
    assert weights.min() == 0
    assert np.all(weights == np.rint(weights))
    assert abs(weights.mean() - 1) < 4 / np.sqrt(weights.size)
    assert abs(weights.var() - 1) < 0.01
    corr = np.corrcoef(weights)
    assert np.abs(corr[np.triu_indices(n, 1)]).max() < 0.1
    assert np.abs(np.corrcoef(weights[:, :400].T)[np.triu_indices(400, 1)]).max() < 0.3


def test_multinomial_weights_add_up_to_n_and_follow_the_ids() -> None:
    n = 50
    keys = unit_keys(np.arange(n))
    weights = Resampler(keys, 2000, scheme="multinomial").weighted(np.eye(n))
    assert np.all(weights.sum(axis=0) == n)
    assert abs(weights.var() - (1 - 1 / n)) < 0.03
    backwards = Resampler(keys[::-1], 2000, scheme="multinomial").weighted(np.eye(n))
    assert np.array_equal(backwards[::-1], weights)


def test_signs_are_fair_and_independent() -> None:
    n = 60
    signs = Resampler(unit_keys(np.arange(n)), 5000).flipped(np.eye(n))
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert np.abs(signs.mean(axis=1)).max() < 0.06
    assert np.abs(np.corrcoef(signs)[np.triu_indices(n, 1)]).max() < 0.08


def test_seeds_differ_and_repeat(columns: np.ndarray) -> None:
    keys = unit_keys(np.arange(1500))
    first = Resampler(keys, 100, seed=1).weighted(columns)
    assert np.array_equal(first, Resampler(keys, 100, seed=1).weighted(columns))
    assert not np.allclose(first, Resampler(keys, 100, seed=2).weighted(columns))


def test_few_units_are_drawn_multinomially() -> None:
    assert Resampler(unit_keys(np.arange(999))).resolved_scheme == "multinomial"
    assert Resampler(unit_keys(np.arange(1000))).resolved_scheme == "poisson"


def test_progress_is_reported(columns: np.ndarray) -> None:
    calls: list[tuple[int, int]] = []
    Resampler(
        unit_keys(np.arange(1500)), 500, budget=1 << 20, progress=lambda a, b: calls.append((a, b))
    ).weighted(columns)
    assert calls[-1] == (500, 500)
    assert [a for a, _ in calls] == sorted({a for a, _ in calls})


def test_groups_are_even_and_do_not_depend_on_order() -> None:
    ids = np.arange(64_000)
    groups = groups_of(ids)
    sizes = np.bincount(groups, minlength=64)
    assert len(sizes) == 64
    assert abs(sizes - 1000).max() < 150
    assert np.array_equal(groups_of(ids[::-1])[::-1], groups)


def test_random_order_depends_on_ids_and_seed_only() -> None:
    ids = np.arange(1000)
    order = random_order(ids, 3)
    assert sorted(order.tolist()) == ids.tolist()
    assert np.array_equal(ids[::-1][random_order(ids[::-1], 3)], ids[order])
    assert not np.array_equal(random_order(ids, 4), order)


def test_impossible_resamples_are_refused() -> None:
    keys = unit_keys(np.arange(3))
    with pytest.raises(UnknownNameError, match="poisson"):
        Resampler(keys, scheme="poison")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="n_resamples"):
        Resampler(keys, 0)
    with pytest.raises(InputError, match="rng"):
        seed_from_rng("7")  # type: ignore[arg-type]
    assert seed_from_rng(np.random.default_rng(0)) == seed_from_rng(np.random.default_rng(0))
