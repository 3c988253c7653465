"""Confidence sequences: the betting recipe by a slow loop, exact at the end; boundaries as published."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from recsys.errors import InputError, UnknownNameError
from recsys.stats.sequential import ConfidenceSequence, Watch, betting_limits, boundaries, msprt


def slow_capital(seen, n_total, alpha, mean, side) -> float:
    """Largest capital of the bet against `mean`, one value at a time."""
    total, best, wealth = 0.0, 1.0, 1.0
    average, spread, deviations = 0.5, 0.25, 0.25
    for t, value in enumerate(seen, start=1):
        expected = (n_total * mean - total) / (n_total - t + 1)
        stake = math.sqrt(2 * math.log(2 / alpha) / (spread * t * math.log(1 + t)))
        if side == "up":
            wealth *= 1 + min(stake, 0.5 / expected) * (value - expected)
        else:
            wealth *= 1 - min(stake, 0.5 / (1 - expected)) * (value - expected)
        best = max(best, wealth)
        total += value
        average = (0.5 + total) / (t + 1)
        deviations += (value - average) ** 2
        spread = deviations / (t + 1)
    return best


def test_betting_limits_are_where_the_slow_capital_passes() -> None:
    rng = np.random.default_rng(0)
    seen = rng.beta(2, 5, size=150)
    low, high = betting_limits(seen, 400, 0.05)
    assert 0 < low < seen.mean() < high < 1
    width = high - low
    for mean, side in ((low, "up"), (high, "down")):
        assert slow_capital(seen, 400, 0.05, mean, side) >= 40 * (1 - 1e-9)
    assert slow_capital(seen, 400, 0.05, low + 0.01 * width, "up") < 40
    assert slow_capital(seen, 400, 0.05, high - 0.01 * width, "down") < 40


def test_interval_only_shrinks_and_ends_at_the_mean() -> None:
    rng = np.random.default_rng(1)
    values = np.clip(rng.normal(0.05, 0.3, size=900), -1, 1)
    sequence = ConfidenceSequence(900, bounds=(-1.0, 1.0))
    widths = []
    for start in range(0, 900, 90):
        interval = sequence.update(values[start : start + 90])
        widths.append(interval.high - interval.low)
    assert all(b <= a for a, b in itertools.pairwise(widths))
    assert widths[-1] < 1e-11
    assert sequence.interval.low == pytest.approx(values.mean(), rel=1e-9)


def test_a_finite_set_narrows_the_interval() -> None:
    """Late in a finite set the interval is narrower than one that ignores that the set is finite."""
    rng = np.random.default_rng(2)
    values = rng.random(1000)
    nearly = ConfidenceSequence(1000, bounds=(0, 1))
    endless = ConfidenceSequence(bounds=(0, 1))
    a, b = nearly.update(values[:950]), endless.update(values[:950])
    assert a.high - a.low < 0.6 * (b.high - b.low)
    assert a.low >= values[:950].sum() / 1000 - 1e-12


def test_blocks_do_not_matter_to_the_last_interval_much() -> None:
    values = np.random.default_rng(3).random(500)
    once, often = ConfidenceSequence(2000, bounds=(0, 1)), ConfidenceSequence(2000, bounds=(0, 1))
    once.update(values)
    for start in range(0, 500, 25):
        often.update(values[start : start + 25])
    assert once.interval.low == pytest.approx(often.interval.low, abs=2e-3)
    assert once.interval.high == pytest.approx(often.interval.high, abs=2e-3)


def test_watch_divides_the_error_and_reports_the_share_saved() -> None:
    rng = np.random.default_rng(4)
    names = {f"m{j}": (-1.0, 1.0) for j in range(10)}
    watch = Watch(names, 5000, alpha=0.05)
    assert watch.verdicts()[0].interval.confidence == pytest.approx(1 - 0.005)
    assert not watch.clear
    while not watch.clear and watch.n_seen < 5000:
        watch.update({name: np.clip(rng.normal(0.1, 0.3, size=250), -1, 1) for name in names})
    assert watch.clear
    assert {v.decided for v in watch.verdicts()} == {"above"}
    assert watch.share_saved > 0.5
    alone = Watch({"m0": (-1.0, 1.0)}, 5000)
    block = np.clip(rng.normal(0, 0.3, size=400), -1, 1)
    narrow = alone.update({"m0": block})[0].interval
    wide = Watch(names, 5000).update(dict.fromkeys(names, block))[0].interval
    assert wide.high - wide.low > narrow.high - narrow.low


def test_watch_sees_losses_and_waits_for_all() -> None:
    watch = Watch({"a": (-1.0, 1.0), "b": (-1.0, 1.0)}, 1000)
    result = watch.update({"a": np.full(300, -0.5), "b": np.tile([0.5, -0.5], 150)})
    assert [v.decided for v in result] == ["below", None]
    assert not watch.clear


def test_cases_outside_the_mean_place_no_bet() -> None:
    """With NaN values the interval covers the mean of those present, and ends at it."""
    rng = np.random.default_rng(4)
    missed = 0
    for _ in range(100):
        values = rng.beta(2, 5, size=600)
        values[rng.random(600) < np.where(values > 0.3, 0.5, 0.1)] = np.nan
        truth = np.nanmean(values)
        sequence = ConfidenceSequence(600, bounds=(0.0, 1.0))
        results = [sequence.update(values[start : start + 60]) for start in range(0, 600, 60)]
        missed += not all(one.low - 1e-12 <= truth <= one.high + 1e-12 for one in results)
        assert sequence.mean == pytest.approx(truth)
    assert sequence.interval.low == pytest.approx(truth)
    assert missed <= 10


def test_weights_make_it_the_weighted_mean() -> None:
    """Heavy cases are better here, so that a plain mean would be wrong."""
    rng = np.random.default_rng(5)
    missed = 0
    for _ in range(100):
        values = rng.beta(2, 5, size=600)
        weights = np.clip(0.2 + values + rng.normal(0, 0.1, size=600), 0.05, 1.0)
        truth = np.average(values, weights=weights)
        assert abs(truth - values.mean()) > 0.02
        sequence = ConfidenceSequence(600, bounds=(0.0, 1.0))
        blocks = range(0, 600, 60)
        results = [sequence.update(values[b : b + 60], weights[b : b + 60]) for b in blocks]
        missed += not all(one.low - 1e-9 <= truth <= one.high + 1e-9 for one in results)
    assert sequence.mean == pytest.approx(truth)
    assert missed <= 10
    with pytest.raises(InputError, match="weights"):
        ConfidenceSequence(10, bounds=(0, 1)).update([0.5], [2.0])


def test_sequences_refuse() -> None:
    sequence = ConfidenceSequence(10, bounds=(0, 1))
    with pytest.raises(InputError, match="outside the bounds"):
        sequence.update([1.5])
    with pytest.raises(InputError, match="finite"):
        sequence.update([np.inf])
    with pytest.raises(InputError, match="more values"):
        sequence.update(np.zeros(11))
    with pytest.raises(InputError, match="lower first"):
        ConfidenceSequence(10, bounds=(1, 0))
    with pytest.raises(InputError, match="n_total"):
        ConfidenceSequence(0, bounds=(0, 1))
    for unknown in (None, (0, math.inf)):
        with pytest.raises(InputError, match="two finite numbers") as refusal:
            ConfidenceSequence(10, bounds=unknown)
        assert "nothing holds at all times" in refusal.value.hint
    with pytest.raises(InputError, match="nothing to watch"):
        Watch({}, 10)
    with pytest.raises(InputError, match="do not match"):
        Watch({"a": (0, 1)}, 10).update({"b": [1.0]})


@pytest.mark.parametrize(
    ("spending", "published"),
    [
        ("obrien-fleming", [4.877, 3.357, 2.680, 2.290, 2.031]),
        ("pocock", [2.438, 2.427, 2.410, 2.397, 2.386]),
    ],
)
def test_boundaries_are_the_published_ones(spending, published) -> None:
    result = boundaries([0.2, 0.4, 0.6, 0.8, 1.0], spending=spending)
    assert result == pytest.approx(published, abs=6e-4)
    assert boundaries([1.0], spending=spending) == pytest.approx([1.959964], abs=1e-5)


def test_earlier_boundaries_do_not_depend_on_later_looks() -> None:
    assert boundaries([0.3, 0.7]) == pytest.approx(boundaries([0.3, 0.7, 0.9])[:2], rel=1e-9)


def test_msprt_test_and_interval_agree() -> None:
    for difference in (0.01, 0.03, 0.06):
        p, interval = msprt(difference, 0.0002, 0.03)
        assert (p < 0.05) == (0.0 not in interval)
    edge = msprt(0.0, 0.0002, 0.03)[1].high
    assert msprt(edge, 0.0002, 0.03)[0] == pytest.approx(0.05, rel=1e-9)


def test_group_sequential_refuses() -> None:
    with pytest.raises(InputError, match="rise"):
        boundaries([0.5, 0.4])
    with pytest.raises(InputError, match="rise"):
        boundaries([])
    with pytest.raises(UnknownNameError, match="pocock"):
        boundaries([1.0], spending="pokock")
    with pytest.raises(InputError, match="positive"):
        msprt(0.1, 0.0, 1.0)
