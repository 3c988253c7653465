"""Effect sizes by their definitions, on plain loops; intervals by a brute bootstrap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from scipy.special import gamma

from recsys.errors import UnknownNameError
from recsys.stats.effects import (
    DOMINANCE,
    cliffs_delta,
    d_z,
    glass_delta,
    hedges_g,
    label_of,
    pooled_d,
    rank_biserial,
)
from recsys.stats.pairing import pair

ALL = [d_z, pooled_d, glass_delta, hedges_g, cliffs_delta, rank_biserial]
grades = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])


@pytest.fixture
def sides() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    a = rng.exponential(size=80)
    return a + 0.3, 0.6 * a + rng.exponential(size=80)


def test_standardised_effects_are_their_formulas(sides) -> None:
    a, b = sides
    gap, d = a.mean() - b.mean(), a - b
    pooled = np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2)
    bias = gamma(79) / (np.sqrt(79) * gamma(78.5))
    assert d_z(pair(a, b)).value == pytest.approx(d.mean() / d.std(ddof=1), rel=1e-12)
    assert pooled_d(pair(a, b)).value == pytest.approx(gap / pooled, rel=1e-12)
    assert glass_delta(pair(a, b)).value == pytest.approx(gap / b.std(ddof=1), rel=1e-12)
    assert hedges_g(pair(a, b)).value == pytest.approx(gap / pooled * bias, rel=1e-10)
    paired_bias = gamma(39.5) / (np.sqrt(39.5) * gamma(39))
    assert hedges_g(pair(a, b), kind="paired").value == pytest.approx(
        d.mean() / d.std(ddof=1) * paired_bias, rel=1e-10
    )


@given(hnp.arrays(np.float64, 17, elements=grades), hnp.arrays(np.float64, 17, elements=grades))
def test_cliffs_delta_is_the_double_loop(a, b) -> None:
    slow = np.mean([[np.sign(x - y) for y in b] for x in a])
    assert cliffs_delta(pair(a, b)).value == pytest.approx(slow, abs=1e-14)


@given(hnp.arrays(np.float64, 13, elements=st.sampled_from([-0.5, -0.1, 0.0, 0.1, 0.3, 0.5])))
def test_rank_biserial_is_the_share_of_ranks(d) -> None:
    moved = d[d != 0]
    ranks = stats.rankdata(np.abs(moved))
    expected = (ranks[moved > 0].sum() - ranks[moved < 0].sum()) / ranks.sum() if len(moved) else 0.0
    assert rank_biserial(d).value == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("effect", ALL)
def test_effects_change_sign_with_the_sides(sides, effect) -> None:
    forth, back = effect(pair(*sides)), effect(pair(*sides[::-1]))
    if effect is glass_delta:
        assert forth.value * back.value < 0
        return
    assert back.value == pytest.approx(-forth.value, rel=1e-12)
    assert back.interval.low == pytest.approx(-forth.interval.high, rel=1e-9)
    assert forth.interval.low < forth.value < forth.interval.high


@pytest.mark.parametrize("effect", ALL)
def test_intervals_have_the_width_a_bootstrap_of_pairs_gives(sides, effect) -> None:
    rng = np.random.default_rng(0)
    a, b = sides
    again = []
    for _ in range(800):
        pick = rng.integers(0, 80, 80)
        again.append(effect(pair(a[pick], b[pick])).value)
    interval = effect(pair(a, b)).interval
    assert (interval.high - interval.low) / (2 * 1.99) == pytest.approx(np.std(again), rel=0.2)


@pytest.mark.parametrize("effect", [d_z, pooled_d, glass_delta])
def test_the_spread_of_the_scale_is_counted(effect) -> None:
    """A large effect on skewed values: an interval that takes the scale for known is far off."""
    rng = np.random.default_rng(5)
    a, b = 2 + rng.exponential(size=300), 0.2 * rng.exponential(size=300)
    again = []
    for _ in range(600):
        pick = rng.integers(0, 300, 300)
        again.append(effect(pair(a[pick], b[pick])).value)
    result = effect(pair(a, b))
    assert result.value > 1.5
    assert (result.interval.high - result.interval.low) / (2 * 1.968) == pytest.approx(
        np.std(again), rel=0.15
    )


@pytest.mark.parametrize("effect", [d_z, pooled_d, glass_delta, cliffs_delta, rank_biserial])
def test_clusters_widen_the_interval_not_the_value(sides, effect) -> None:
    a, b = (np.repeat(side, 4) for side in sides)
    apart, together = effect(pair(a, b)), effect(pair(a, b, clusters=np.repeat(np.arange(80), 4)))
    assert together.value == pytest.approx(apart.value)
    ratio = (together.interval.high - together.interval.low) / (apart.interval.high - apart.interval.low)
    assert ratio == pytest.approx(2.0, rel=0.05)


def test_unpaired_cliff_is_wider_for_correlated_sides() -> None:
    rng = np.random.default_rng(4)
    a = rng.normal(size=200)
    b = a + 0.1 * rng.normal(size=200)
    loose, tight = cliffs_delta(pair(a, b), paired=False).interval, cliffs_delta(pair(a, b)).interval
    assert loose.high - loose.low > 2 * (tight.high - tight.low)


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (0.0, "negligible"),
        (0.19, "negligible"),
        (-0.2, "small"),
        (0.49, "small"),
        (0.5, "medium"),
        (0.8, "large"),
        (-3.0, "large"),
        (float("nan"), "undefined"),
    ],
)
def test_labels(value, word) -> None:
    assert label_of(value) == word


def test_dominance_has_its_own_labels() -> None:
    assert [label_of(v, DOMINANCE) for v in (0.1, 0.2, 0.4, 0.5)] == [
        "negligible",
        "small",
        "medium",
        "large",
    ]


def test_no_spread_is_reported() -> None:
    assert d_z(pair(np.full(5, 0.2))).value == np.inf
    assert np.isnan(d_z(pair(np.zeros(5))).value)
    assert d_z(pair(np.zeros(5))).label == "undefined"
    with pytest.raises(UnknownNameError):
        hedges_g(pair([1.0, 2.0, 4.0]), kind="both")


@pytest.mark.parametrize("effect", [d_z, pooled_d, glass_delta])
def test_a_case_of_weight_three_counts_as_three_cases(effect) -> None:
    rng = np.random.default_rng(8)
    a, b, times = rng.random(200), rng.random(200), rng.integers(1, 4, 200)
    weighted = effect(pair(a, b, weights=times))
    copied = effect(pair(np.repeat(a, times), np.repeat(b, times), clusters=np.repeat(np.arange(200), times)))
    # The two differ by the n - 1 of the standard deviation only.
    scale = np.sqrt((1 - 1 / times.sum()) / (1 - 1 / 200))
    assert weighted.value == pytest.approx(copied.value / scale, rel=1e-12)
    assert weighted.interval.low == pytest.approx(copied.interval.low, rel=0.02)
    assert effect(pair(a, b, weights=np.full(200, 7.0))).value == pytest.approx(effect(pair(a, b)).value)


def test_dominance_is_weighted_too() -> None:
    rng = np.random.default_rng(9)
    a, b, w = rng.integers(0, 4, 40) / 4, rng.integers(0, 4, 40) / 4, rng.random(40)
    slow = sum(p * q * np.sign(x - y) for x, p in zip(a, w, strict=True) for y, q in zip(b, w, strict=True))
    assert cliffs_delta(pair(a, b, weights=w)).value == pytest.approx(slow / w.sum() ** 2, abs=1e-13)
    d = a - b
    here = np.flatnonzero(d)
    pairs = [(i, j) for i in here for j in here if i <= j]
    over = sum(w[i] * w[j] * np.sign(d[i] + d[j]) for i, j in pairs)
    assert rank_biserial(pair(a, b, weights=w)).value == pytest.approx(
        over / sum(w[i] * w[j] for i, j in pairs)
    )


@pytest.mark.parametrize("effect", ALL)
def test_the_effect_has_the_sign_of_the_weighted_difference(effect) -> None:
    """One case in ten gains much and weighs twenty times as much as the others, which lose a little."""
    rng = np.random.default_rng(10)
    b = rng.random(2000)
    gains = np.arange(2000) < 200
    a = np.where(gains, b + 0.3, b - 0.1) + rng.normal(0, 0.01, 2000)
    assert effect(pair(a, b)).value < 0 < effect(pair(a, b, weights=np.where(gains, 20.0, 1.0))).value


def test_cases_without_weight_do_not_count(sides) -> None:
    a, b = sides
    w = np.where(np.arange(80) < 50, 1.0, 0.0)
    for effect in ALL:
        result, expected = effect(pair(a, b, weights=w)), effect(pair(a[:50], b[:50]))
        assert (result.value, result.n) == (pytest.approx(expected.value), 50)
        assert result.interval.low == pytest.approx(expected.interval.low)


def test_a_side_against_itself_has_an_effect_of_exactly_zero() -> None:
    a = np.random.default_rng(0).random(30)
    result = cliffs_delta(pair(a, a))
    assert (result.value, result.interval.low, result.interval.high) == (0.0, 0.0, 0.0)
