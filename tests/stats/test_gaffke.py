"""Bounds and p-values of a mean in a known range: closed forms, exact laws, Monte Carlo, and their words."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binomtest

from recsys.records.facts import note
from recsys.stats import gaffke, samples
from recsys.stats.gaffke import (
    lower_bound,
    mean_bounds,
    mean_p,
    units_needed,
)
from recsys.stats.samples import Sample


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
            p = mean_p(Sample.of(values, w), c, -1.0, 1.0, "greater")
            assert p == pytest.approx(np.mean(means <= c), abs=4 * math.sqrt(p * (1 - p) / 50_000))
        low = mean_bounds(Sample.of(values, w), -1.0, 1.0, 0.9, alternative="greater").low
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
    quick = [gaffke._chance_not_positive(*world) for world in worlds]
    monkeypatch.setattr(gaffke, "_STEP", 1 / 150)
    monkeypatch.setattr(gaffke, "_REACH", 40.0)
    monkeypatch.setattr(gaffke, "_TILT", math.pi / 12)
    slow = [gaffke._chance_not_positive(*world) for world in worlds]
    assert quick == pytest.approx(slow, rel=1e-9)


def exact_p(values: list[int], c: Fraction, low: int) -> float:
    """P(sum E_i (x_i - c) <= 0) over distinct values and one unit at the low end, by partial fractions."""
    scales = [Fraction(value) - c for value in [*values, low]]
    positive = Fraction(0)
    for scale in scales:
        if scale > 0:
            others = (scale / (scale - other) for other in scales if other != scale)
            positive += math.prod(others, start=Fraction(1))
    return float(1 - positive)


@given(st.sets(st.integers(0, 40), min_size=1, max_size=8), st.integers(1, 399))
@settings(max_examples=80, deadline=None)
def test_few_units_have_the_law_of_a_sum_of_exponentials(found: set[int], tenths: int) -> None:
    values, c = sorted(found), Fraction(tenths, 10) + Fraction(1, 77)
    p = mean_p(np.array(values, dtype=float), float(c), -3.0, 41.0, "greater")
    assert p == pytest.approx(exact_p(values, c, -3), rel=1e-7, abs=1e-13)
    for alpha in (0.3, 0.05, 1e-4, 1e-10):
        low = mean_bounds(np.array(values, dtype=float), -3.0, 41.0, 1.0 - alpha, alternative="greater").low
        assert -3.0 < low < values[-1]
        assert exact_p(values, Fraction(low), -3) == pytest.approx(alpha, rel=1e-5)


@given(
    st.lists(st.integers(-8, 8), min_size=1, max_size=120),
    st.sampled_from([0.3, 0.05, 1e-3, 1e-10]),
    st.integers(0, 119),
    st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_the_bound_moves_with_the_values_and_only_up(
    eighths: list[int], alpha: float, at: int, has_weights: bool
) -> None:
    values = np.array(eighths) / 8.0
    weights = 1.0 + np.arange(len(values)) % 3 if has_weights else None

    def bound(x: np.ndarray, low: float = -1.0, level: float = alpha) -> float:
        return lower_bound(Sample.of(x, weights), low, level)

    found = bound(values)
    assert -1.0 <= found <= values.max()
    assert (
        mean_p(Sample.of(values, weights), found, -1.0, 1.0, "greater") == pytest.approx(alpha, rel=1e-6)
        or values.max() == -1.0
    )
    assert bound(10.0 * values + 5.0, -5.0) == pytest.approx(10.0 * found + 5.0, abs=1e-7)
    above = -mean_bounds(Sample.of(-values, weights), -1.0, 1.0, 1.0 - alpha, alternative="less").high
    assert above == pytest.approx(found, abs=1e-8)  # 1 - (1 - alpha) is not quite alpha
    slack = 0.01 / math.sqrt(len(values))
    assert bound(values, level=alpha / 10.0) <= found + slack * 1e-3
    assert bound(values, low=-1.2) <= found + slack * 1e-3
    values[at % len(values)] += 0.125
    assert bound(values) >= found - slack * 1e-3


WORLDS = {
    "rare": lambda rng, n: np.where(rng.random(n) < 0.95, 0.0, rng.normal(0.0, 0.2, n)),
    "small": lambda rng, n: rng.normal(0.0, 1e-3, n),
    "one large": lambda rng, n: np.append(rng.normal(0.0, 1e-3, n - 1), -0.9),
    "near the top": lambda rng, n: 1.0 - 0.2 * rng.random(n) * (rng.random(n) < 0.05),
    "two heaps": lambda rng, n: np.where(rng.random(n) < 0.97, 0.01, 0.9) * (1.0 + 0.1 * rng.random(n)),
    "lognormal": lambda rng, n: np.minimum(np.exp(2.0 * rng.normal(size=n)) / 200.0, 1.0),
}


@pytest.mark.parametrize("weights_of", ["equal", "lognormal", "few heavy"])
@pytest.mark.parametrize("world", WORLDS)
def test_few_levels_in_place_of_many_hardly_move_a_bound(
    monkeypatch: pytest.MonkeyPatch, world: str, weights_of: str
) -> None:
    rng = np.random.default_rng(4)
    for n in (70, 700):
        values = WORLDS[world](rng, n)
        heavy = {
            "lognormal": np.exp(rng.normal(size=n)),
            "few heavy": np.where(rng.random(n) < 0.05, 20.0, 1.0),
        }
        weights = heavy.get(weights_of)
        quick = [lower_bound(Sample.of(values, weights), -1.0, a) for a in (0.3, 0.05, 1e-3, 1e-10)]
        with monkeypatch.context() as patch:
            patch.setattr(samples, "_MOST_LEVELS", 10**6)
            patch.setattr(gaffke, "_SMOOTH", 0.0)
            slow = Sample.of(values, weights)
            exact = [lower_bound(slow, -1.0, alpha) for alpha in (0.3, 0.05, 1e-3, 1e-10)]
        spread = math.hypot(
            math.sqrt(slow.moments.sums(slow.moments.mean)[1]), slow.unseen * (1.0 + slow.moments.mean)
        )
        assert quick == pytest.approx(exact, abs=0.002 * spread / slow.moments.weight)


@pytest.mark.parametrize("low", [0.0, -3.0])
@pytest.mark.parametrize("n", [700, 3000, 20_000])
def test_moments_and_integral_agree_where_one_takes_over(
    monkeypatch: pytest.MonkeyPatch, n: int, low: float
) -> None:
    rng = np.random.default_rng(n)
    values = np.where(rng.random(n) < 0.6, 0.0, rng.choice([0.2, 0.4, 0.7, 1.0], n))
    sample = Sample.of(values)
    spread = math.sqrt(sample.moments.sums(sample.moments.mean)[1]) / n
    for alpha, closeness in ((0.3, 1e-3), (0.05, 1e-3), (1e-3, 2e-3), (1e-10, 1e-2)):
        by = []
        for smooth in (math.inf, 0.0):
            monkeypatch.setattr(gaffke, "_SMOOTH", smooth)
            by.append(lower_bound(Sample.of(values), low, alpha))
        sums = sample.moments.sums(sample.moments.mean)
        unseen = low - sample.moments.mean
        second, third, fourth = (sums[power - 1] + unseen**power for power in (2, 3, 4))
        if 4.0 * third**2 / second**3 + 6.0 * fourth / second**2 <= 0.01:
            assert by[0] == pytest.approx(by[1], abs=closeness * spread)


def test_the_more_users_are_alike_the_surer_is_a_margin() -> None:
    """Far from the mean the series in moments would turn round: a million equal users must not fail."""
    for others in ((), (0.3, -0.3), (-0.9,)):
        found = []
        for n in (100, 1000, 10**4, 10**5, 10**6, 10**7):
            values, counts = np.array([0.0, *others]), np.append(n, np.ones(len(others)))
            found.append(mean_p(Sample.of(values, counts=counts), -0.01, -1.0, 1.0, "greater"))
        assert found == sorted(found, reverse=True)
        assert found[3:] == [0.0, 0.0, 0.0]


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


def test_how_many_more_are_needed() -> None:
    wins = zeros_and(1000, 1.0, 1.0, 1.0)
    needed = units_needed(wins, 0.0, -1.0, 1.0)
    assert needed == 2000
    few = note("few_differ", n_differing=3, n=1000, needed=needed)
    assert str(few) == "3 of 1,000 users differ; about 1,000 more like these would be needed"
    assert units_needed(zeros_and(100, 1.0, -1.0), 0.0, -1.0, 1.0) is None
    # All ties: the rule of three reaches a margin of 0.01 of a range of 1 at 299 users.
    assert units_needed(np.zeros(30), -0.01, -1.0, 1.0, "greater") == pytest.approx(302, abs=3)
    assert units_needed(np.zeros(30), -0.01, -math.inf, 1.0, "greater") is None
