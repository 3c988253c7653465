"""Changes of level: noise of any kind raises no alarm, and a clear change is found on its night."""

from __future__ import annotations

import numpy as np
import pytest

from recsys.errors import InputError
from recsys.stats.change_points import change_points

LIMIT = 0.01


def noise(kind, rng, shape):
    if kind == "one item of 1,000 comes and goes":
        return (900 + rng.integers(0, 2, shape)) / 1000
    if kind == "seven of ten nights identical":
        return 0.3 + 0.001 * np.where(rng.random(shape) < 0.7, 0.0, rng.standard_normal(shape))
    if kind == "heavy tails, t(3)":
        return rng.standard_t(3, shape)
    values = rng.standard_normal(shape)
    if kind == "neighbours correlated by 0.3":
        for night in range(1, shape[1]):
            values[:, night] = 0.3 * values[:, night - 1] + np.sqrt(1 - 0.3**2) * values[:, night]
    return values


@pytest.mark.parametrize("nights", [8, 20, 60, 120])
@pytest.mark.parametrize(
    "kind",
    [
        "normal",
        "one item of 1,000 comes and goes",
        "seven of ten nights identical",
        "heavy tails, t(3)",
        "neighbours correlated by 0.3",
    ],
)
def test_at_most_one_series_in_a_hundred_raises_an_alarm(kind, nights):
    rows = noise(kind, np.random.default_rng(nights), (400, nights))
    alarms = np.mean([bool(change_points(row)) for row in rows])
    assert alarms <= LIMIT + 3 * np.sqrt(LIMIT * (1 - LIMIT) / len(rows))


def test_correlation_of_0_6_raises_alarms_in_some_series_not_in_most():
    rng = np.random.default_rng(6)
    rows = rng.standard_normal((300, 60))
    for night in range(1, 60):
        rows[:, night] = 0.6 * rows[:, night - 1] + 0.8 * rows[:, night]
    found = [change_points(row) for row in rows]
    assert np.mean([bool(changes) for changes in found]) < 0.12


@pytest.mark.parametrize(
    ("nights", "at", "step", "share"), [(30, 15, 4, 0.9), (20, 14, 5, 0.9), (60, 57, 6, 0.9)]
)
def test_a_clear_change_is_found_on_its_night(nights, at, step, share):
    rows = np.random.default_rng(3).standard_normal((100, nights))
    rows[:, at:] += step
    found = [any(abs(change.at - at) <= 1 for change in change_points(row)) for row in rows]
    assert np.mean(found) >= 0.9


def test_a_bad_week_and_two_releases_are_two_changes():
    rng = np.random.default_rng(4)
    week = rng.normal(0.3, 0.01, 60)
    week[20:27] -= 0.06
    assert [change.at for change in change_points(week)] == [20, 27]
    releases = rng.normal(0.3, 0.01, 60) + 0.04 * (np.arange(60) >= 20) + 0.04 * (np.arange(60) >= 40)
    changes = change_points(releases)
    assert [change.at for change in changes] == [20, 40]
    assert changes[0].after == changes[1].before == releases[20:40].mean()


def test_a_pipeline_without_noise():
    (change,) = change_points([0.5] * 9 + [0.4999] * 5)
    assert change.at == 9
    assert change_points([0.5] * 12) == []
    assert change_points(0.5 + 1e-16 * np.arange(14)) == []
    with pytest.raises(InputError):
        change_points([0.1, np.nan])


def test_fewer_than_ten_nights_show_no_change():
    assert change_points([0.3] * 5 + [0.1] * 4) == []
    assert [change.at for change in change_points([0.3] * 5 + [0.1] * 5)] == [5]
