"""The sign-flip test against all signs, against exact laws of sums, and its interval against subset means."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys.stats.sign_flips import SignFlips

numbers = st.floats(-1, 1).map(lambda x: round(x, 3))
SHIFTS = [0.37, 0.26, 0.13, 0.11, 0.069, 0.057, 0.05]


def all_signs(totals: np.ndarray) -> float:
    """The share of all signs whose sum is at least the observed one."""
    sizes = np.abs(totals)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=len(totals))))
    return float(np.mean(signs @ sizes >= totals.sum() - 1e-12 * sizes.sum()))


def law_of_sums(sizes: list[int]) -> np.ndarray:
    """The chance of each sum from -total to total, of whole sizes under random signs."""
    law = np.ones(1)
    for size in sizes:
        step = np.zeros(2 * size + 1)
        step[[0, -1]] = 0.5
        law = np.convolve(law, step)
    return law


@given(st.lists(numbers, min_size=1, max_size=10), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_few_units_have_the_p_of_all_signs(values: list[float], ties: int) -> None:
    totals = np.array(values + [0.0] * ties)
    above, below = all_signs(np.array(values)), all_signs(-np.array(values))
    flips = SignFlips.of(totals)
    assert flips.p_value("greater") == pytest.approx(above, rel=1e-12)
    assert flips.p_value("less") == pytest.approx(below, rel=1e-12)
    assert flips.p_value() == pytest.approx(min(1.0, 2.0 * min(above, below)), rel=1e-12)
    counts = np.array([3.0, 2.0])  # the same units, once each and as counts
    assert SignFlips.of(np.array([0.5, -0.2]), None, counts).p_value() == pytest.approx(
        SignFlips.of(np.array([0.5, -0.2, 0.5, -0.2, 0.5])).p_value(), rel=1e-12
    )


@pytest.mark.parametrize(
    "sizes",
    [
        [1] * 24,
        [1] * 700,
        [1000] + [1] * 24,
        [100] + [1] * 900,
        [20] * 20 + [1] * 180,
        [3, 2, 6, 4, 1] * 12,
        [*range(1, 31)],
        [500, 300, 200] + [7, 5, 3] * 40,
        [12, 15, 20] * 100,
    ],
    ids=lambda sizes: f"{len(sizes)} of up to {max(sizes)}",
)
def test_many_units_have_the_p_of_the_exact_law(sizes: list[int]) -> None:
    law, total = law_of_sums(sizes), sum(sizes)
    tails = np.cumsum(law[::-1])[::-1]
    for p, closeness in ((0.3, 0.01), (0.05, 0.02), (0.01, 0.02), (0.001, 0.03), (1e-6, 0.2)):
        place = max(int(np.argmax(tails <= p)), total + 1)
        place += int(np.argmax(law[place:] > 0))
        if tails[place] < p / 50:
            continue  # no sum is that rare
        # Signs that give this sum: the largest first, as long as they fit.
        excess, left = place - total, (place - total + total) // 2
        up = []
        for size in sorted(sizes, reverse=True):
            up.append(size <= left)
            left -= size * up[-1]
        if left:
            continue
        signs = np.where(up, 1.0, -1.0)
        totals = np.array(sorted(sizes, reverse=True)) * signs
        assert totals.sum() == excess
        for scale in (1.0, 1 / 3):
            found = SignFlips.of(np.append(scale * totals, np.zeros(50))).p_value("greater")
            assert found == pytest.approx(tails[place], rel=closeness)


@pytest.mark.parametrize("n", [25, 60, 200])
@pytest.mark.parametrize("world", ["graded", "clusters", "heavy tails"])
def test_values_of_all_kinds_have_the_p_of_random_signs(world: str, n: int) -> None:
    rng = np.random.default_rng(n)
    totals = rng.choice(SHIFTS, n) * rng.choice([-1, 1], n)
    weights = None
    if world == "clusters":
        weights = np.exp(rng.normal(size=n))
        totals = totals * weights
    if world == "heavy tails":
        totals = np.exp(1.5 * rng.normal(size=n)) * np.sign(totals)
    sizes = np.abs(totals)
    sums = (2.0 * rng.integers(0, 2, (100_000, n), dtype=np.int8) - 1.0) @ sizes
    of = 1.0 if weights is None else weights
    flips = SignFlips.of(totals / of, weights)
    signs = np.where(totals > 0, 1.0, -1.0)
    for turned in range(0, n, max(1, n // 12)):  # from the observed signs to all wins
        signs[:turned] = 1.0
        one = SignFlips.of(sizes * signs / of, weights)
        want = float(np.mean(sums >= (sizes * signs).sum() - 1e-9))
        if want > 0.001:
            slack = 4.5 * math.sqrt(want / len(sums))
            assert one.p_value("greater") == pytest.approx(want, rel=0.01, abs=slack)
    assert flips.p_value() <= 1.0


@given(
    st.lists(st.floats(-1, 1), min_size=1, max_size=9, unique=True), st.sampled_from([0.05, 0.1, 0.3, 0.6])
)
@settings(max_examples=60, deadline=None)
def test_the_interval_ends_at_means_of_subsets(values: list[float], alpha: float) -> None:
    totals = np.array(values) + 3.0  # far from 0, where p decides which side the end is on
    means = sorted(
        np.mean(part) for size in range(1, len(totals) + 1) for part in itertools.combinations(totals, size)
    )
    rejected = math.floor(alpha / 2 * 2 ** len(totals) + 1e-9)  # so many of all flips may be as extreme
    found = SignFlips.of(totals).interval(1.0 - alpha)
    if rejected < 1:
        assert (found.low, found.high) == (-math.inf, math.inf)
    else:
        assert found.low == pytest.approx(means[rejected - 1], abs=1e-9)
        assert found.high == pytest.approx(means[-rejected], abs=1e-9)


@given(st.lists(numbers, min_size=2, max_size=60), st.sampled_from([0.8, 0.95, 0.995]))
@settings(max_examples=60, deadline=None)
def test_the_interval_excludes_zero_where_p_does(values: list[float], confidence: float) -> None:
    totals = np.array(values)
    flips = SignFlips.of(totals)
    interval = flips.interval(confidence)
    assert interval.low <= totals.mean() + 1e-12
    assert interval.high >= totals.mean() - 1e-12
    assert (0.0 in interval) == (flips.p_value() > (1.0 - confidence) * (1 + 1e-9))
    wider = flips.interval(1.0 - (1.0 - confidence) / 10)
    assert wider.low <= interval.low + 1e-12
    assert wider.high >= interval.high - 1e-12
    opposite, larger = SignFlips.of(-totals), SignFlips.of(1000.0 * totals)
    assert opposite.p_value("less") == pytest.approx(flips.p_value("greater"), rel=1e-6)
    assert larger.p_value() == pytest.approx(flips.p_value(), rel=1e-6)
    assert larger.interval(confidence).low == pytest.approx(1000.0 * interval.low, rel=1e-5, abs=1e-6)


def test_many_users_have_the_t_interval() -> None:
    values = np.where(np.random.default_rng(0).random(5000) < 0.7, 0.0, 0.02 + np.sin(np.arange(5000.0)))
    found = SignFlips.of(values).interval()
    reach = 1.96 * values.std(ddof=1) / math.sqrt(5000)
    assert (found.low, found.high) == pytest.approx(
        (values.mean() - reach, values.mean() + reach), abs=0.01 * reach
    )


def test_units_that_are_all_alike_reject_every_other_mean_if_they_are_enough() -> None:
    assert SignFlips.of(np.full(5, 0.2)).interval(reach=1.0).low == -1.0
    six = SignFlips.of(np.full(6, 0.2)).interval(reach=1.0)
    assert (six.low, six.high) == (pytest.approx(0.2), pytest.approx(0.2))
    none = SignFlips.of(np.zeros(30))
    assert none.p_value() == 1.0
    assert (none.interval().low, none.interval().high) == (0.0, 0.0)
