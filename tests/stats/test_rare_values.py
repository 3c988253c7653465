"""Bounds and p-values of a mean when few values differ: closed forms, Monte Carlo, and their words."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta, binomtest

from recsys.stats import rare_values
from recsys.stats.rare_values import (
    FEW,
    count_differing,
    few_differ,
    few_differ_words,
    mean_bounds,
    mean_p,
    units_needed,
)


def zeros_and(n: int, *others: float) -> np.ndarray:
    return np.concatenate([np.zeros(n - len(others)), others])


@pytest.mark.parametrize(
    ("n", "hits"), [(1, 0), (1, 1), (5, 1), (30, 5), (1000, 1), (1000, 333), (10**5, 19)]
)
def test_zeros_and_ones_have_the_interval_of_clopper_and_pearson(n: int, hits: int) -> None:
    values = np.repeat([0.0, 1.0], [n - hits, hits])
    for confidence in (0.5, 0.95, 0.999):
        tail = (1 - confidence) / 2
        low = beta.ppf(tail, hits, n - hits + 1) if hits else 0.0
        high = beta.isf(tail, hits + 1, n - hits) if hits < n else 1.0
        found = mean_bounds(values, 0.0, 1.0, confidence)
        assert (found.low, found.high) == pytest.approx((low, high), rel=1e-9, abs=1e-15)
        assert found.low < found.high
    for share in (0.01, 0.3):
        for alternative in ("greater", "less"):
            p = binomtest(hits, n, share, alternative).pvalue
            assert mean_p(values, share, 0.0, 1.0, alternative) == pytest.approx(p, rel=1e-9)


@pytest.mark.parametrize(("wins", "losses"), [(4, 0), (2, 0), (7, 3), (0, 5), (300, 250), (200, 0)])
@pytest.mark.parametrize("n", [600, 10**5])
def test_wins_ties_and_losses_have_the_p_of_the_sign_test(wins: int, losses: int, n: int) -> None:
    differences = np.repeat([0.0, 1.0, -1.0], [n - wins - losses, wins, losses])
    for alternative in ("greater", "less", "two-sided"):
        exact = binomtest(wins, wins + losses, 0.5, alternative).pvalue
        assert mean_p(differences, 0.0, -1.0, 1.0, alternative) == pytest.approx(exact, rel=1e-9)


def test_values_that_are_all_the_same_have_the_rule_of_three_times_the_range() -> None:
    reach = 1.0 - 0.05 ** (1.0 / 300)
    above = mean_bounds(np.full(300, 0.25), 0.0, 1.0, alternative="less").high
    below = mean_bounds(np.full(300, 0.25), 0.0, 1.0, alternative="greater").low
    assert above == pytest.approx(0.25 + reach * 0.75, rel=1e-10)
    assert below == pytest.approx(0.25 - reach * 0.25, rel=1e-10)
    assert mean_bounds(np.zeros(300), 0.0, 1.0).low == 0.0


def test_it_agrees_with_random_shares() -> None:
    rng = np.random.default_rng(0)
    values = zeros_and(60, 0.6, 0.2, 0.2, -0.3, -1.0)
    weights = np.where(np.arange(60) % 3 == 0, 2.0, 0.5)
    for w in (None, weights):
        at = np.ones(60) if w is None else w
        unseen = (at**3).sum() / (at**2).sum()
        shares = rng.exponential(size=(50_000, 61))
        means = (shares[:, :60] @ (at * values) - unseen * shares[:, 60]) / (
            shares[:, :60] @ at + unseen * shares[:, 60]
        )
        for c in (-0.1, -0.03, 0.0, 0.01):
            p = mean_p(values, c, -1.0, 1.0, "greater", weights=w)
            assert p == pytest.approx(np.mean(means <= c), abs=4 * math.sqrt(p * (1 - p) / 50_000))
        low = mean_bounds(values, -1.0, 1.0, 0.9, alternative="greater", weights=w).low
        assert np.mean(means <= low) == pytest.approx(0.1, abs=4 * math.sqrt(0.09 / 50_000))


def test_the_integral_keeps_its_digits_on_every_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    worlds = []
    for _ in range(60):
        n, m = int(10 ** rng.uniform(1, 6)), int(rng.integers(1, 6))
        values = rng.choice([-1, 1], m) * 10 ** rng.uniform(-4, 0, m)
        c = rng.choice([-1, 1]) * 10 ** rng.uniform(-7, -0.5)
        scales = np.append(values - c, [-c, -1.0 - c])
        worlds.append((scales, np.append(rng.integers(1, 4, m), [n, 1]).astype(float)))
    quick = [rare_values._chance_not_positive(*world) for world in worlds]
    monkeypatch.setattr(rare_values, "_STEP", 1 / 150)
    monkeypatch.setattr(rare_values, "_REACH", 40.0)
    monkeypatch.setattr(rare_values, "_TILT", math.pi / 12)
    slow = [rare_values._chance_not_positive(*world) for world in worlds]
    assert quick == pytest.approx(slow, rel=1e-9)


def test_merged_weights_are_those_of_each_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.random.default_rng(2).exponential(size=900) + 0.1
    values = zeros_and(900, 1.0, 1.0, 1.0, -1.0)
    merged = mean_bounds(values, -1.0, 1.0, weights=weights)
    monkeypatch.setattr(rare_values, "_MANY", 10**6)
    exact = mean_bounds(values, -1.0, 1.0, weights=weights)
    assert (merged.low, merged.high) == pytest.approx((exact.low, exact.high), rel=2e-3)


@pytest.mark.parametrize("spread", [0.5, 1.5])
def test_light_units_are_summed_without_a_trace(monkeypatch: pytest.MonkeyPatch, spread: float) -> None:
    rng = np.random.default_rng(4)
    weights, values = np.exp(spread * rng.normal(size=400)), rng.random(400) * (rng.random(400) < 0.5)
    quick = mean_bounds(values, 0.0, 1.0, weights=weights)
    monkeypatch.setattr(rare_values, "_HEAVY", 10**6)
    exact = mean_bounds(values, 0.0, 1.0, weights=weights)
    slack = 1e-3 * (exact.high - exact.low)
    assert (quick.low, quick.high) == pytest.approx((exact.low, exact.high), abs=slack)


def test_many_values_have_nearly_the_ordinary_interval() -> None:
    values = np.random.default_rng(3).random(900)
    found = mean_bounds(values, 0.0, 1.0)
    reach = 1.96 * values.std() / math.sqrt(900)
    assert (found.low, found.high) == pytest.approx((values.mean() - reach, values.mean() + reach), abs=2e-3)


def test_a_side_without_an_end_has_no_bound() -> None:
    values = zeros_and(100, 3.0, 9.0)
    assert mean_bounds(values, 0.0, math.inf).high == math.inf
    assert mean_bounds(values, 0.0, math.inf).low > 0
    assert mean_bounds(values, -math.inf, math.inf).low == -math.inf
    assert mean_p(values, 0.0, -math.inf, math.inf) == 1.0


def test_few_differ_from_the_common_value_whatever_it_is() -> None:
    assert few_differ(np.zeros(5)) == 0
    assert few_differ(np.append(np.full(500, 0.1), 0.1 + 1e-17)) == 0
    assert few_differ(np.append(np.arange(19.0), np.full(40, 7.0))) == 18
    assert few_differ(np.append(np.arange(1.0, 1 + FEW), np.zeros(400))) is None
    assert few_differ(np.full(50, 0.1), 0.0) is None
    assert count_differing(np.arange(100.0)) >= FEW


def test_how_many_more_are_needed() -> None:
    wins = zeros_and(1000, 1.0, 1.0, 1.0)
    needed = units_needed(wins, 0.0, -1.0, 1.0)
    assert needed == 2000
    assert few_differ_words(3, 1000, needed).endswith("about 1,000 more would be needed")
    assert units_needed(zeros_and(100, 1.0, -1.0), 0.0, -1.0, 1.0) is None
    # All ties: the rule of three reaches a margin of 0.01 of a range of 1 at 299 users.
    assert units_needed(np.zeros(30), -0.01, -1.0, 1.0, "greater") == pytest.approx(302, abs=3)
    assert units_needed(np.zeros(30), -0.01, -math.inf, 1.0, "greater") is None
