"""What samples derive of their units, and whether a histogram says what the units say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from recsys.stats import samples
from recsys.stats.bootstrap import Units, unit_keys
from recsys.stats.gaffke import mean_bounds
from recsys.stats.root_finding import crossing
from recsys.stats.samples import FEW, Sample, add_histograms, count_differing, histogram_of, linearised
from recsys.stats.sign_flips import SignFlips


def test_few_differ_from_the_common_value_whatever_it_is() -> None:
    assert count_differing(np.zeros(5)) == 0
    assert count_differing(np.append(np.full(500, 0.1), 0.1 + 1e-17)) == 0
    assert count_differing(np.append(np.arange(19.0), np.full(40, 7.0))) == 18
    assert count_differing(np.append(np.arange(1.0, 1 + FEW), np.zeros(400))) == FEW
    assert count_differing(np.full(50, 0.1), 0.0) == 50
    assert count_differing(np.arange(100.0)) >= FEW


def numbers_of(sample):
    bounds, flips = mean_bounds(sample, -2.0, 2.0), SignFlips.of(sample)
    interval = flips.interval()
    return [
        sample.n, sample.mean, sample.error, sample.df, *sample.tails, *sample.powers,
        *(min(n, FEW) for n in sample.differing),
        *sample.wins_ties_losses(0.1), bounds.low, bounds.high, flips.p_value(), interval.low, interval.high,
    ]  # fmt: skip


def test_a_histogram_has_distinct_rows_in_order():
    found = histogram_of([np.array([2.0, -0.0, 1.0, 0.0, 2.0]), np.array([5.0, 3.0, 4.0, 3.0, 1.0])])
    assert found.rows.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 1.0], [2.0, 5.0]]
    assert found.counts.tolist() == [2, 1, 1, 1]
    for column in ([-0.0, 0.0], [0.0, -0.0], [-0.0]):
        assert not np.signbit(histogram_of([np.array(column)]).rows).any()
        assert not np.signbit(histogram_of([np.ones(len(column)), np.array(column)]).rows).any()
    empty = histogram_of([np.zeros(0), np.zeros(0)])
    assert (empty.rows.shape, len(empty.counts)) == ((0, 2), 0)


def test_a_histogram_has_so_many_rows_and_no_more():
    three = np.array([1.0, 2.0, 3.0, 3.0])
    assert len(histogram_of([three], 3).counts) == 3
    assert histogram_of([three], 2) is None
    assert histogram_of([np.ones(4), three], 2) is None
    assert len(histogram_of([np.ones(4), three], 3).counts) == 3
    assert histogram_of([three, np.array([1.0, 1.0, 1.0, 2.0])], 3) is None
    assert len(histogram_of([np.arange(65536.0)]).counts) == 65536
    assert histogram_of([np.arange(65537.0)]) is None


def test_histograms_add_up():
    parts = [histogram_of([np.array(column)]) for column in ([1.0, 2.0, 2.0], [0.0, 2.0], [3.0])]
    whole = add_histograms(parts)
    assert whole.rows.tolist() == [[0.0], [1.0], [2.0], [3.0]]
    assert whole.counts.tolist() == [1, 1, 3, 1]
    assert len(add_histograms(parts, 4).counts) == 4
    assert add_histograms(parts, 3) is None
    assert add_histograms([*parts, None]) is None
    pairs = [histogram_of([np.array([1.0, 1.0]), np.array([2.0, 3.0])])] * 2
    assert (add_histograms(pairs).rows.tolist(), add_histograms(pairs).counts.tolist()) == (
        [[1, 2], [1, 3]],
        [2, 2],
    )


@pytest.mark.parametrize("n", [3, 40, 3000])
def test_a_histogram_says_what_its_values_say(n, monkeypatch):
    values = np.round(np.random.default_rng(n).normal(0.1, 0.5, n), 1).clip(-2, 2)
    counted = Sample.of(values)
    assert counted.counts is not None
    assert len(counted.values) <= 40
    monkeypatch.setattr(samples, "MOST_DISTINCT", 1)
    assert Sample.of(values).counts is None
    assert numbers_of(Sample.of(values)) == pytest.approx(numbers_of(counted), rel=1e-9)


def test_the_order_of_units_does_not_move_a_bit():
    values = np.random.default_rng(2).random(500)
    assert numbers_of(Sample.of(values)) == numbers_of(Sample.of(values[::-1]))


def test_units_of_equal_weight_weigh_nothing_and_those_without_are_left_out():
    values = np.array([0.5, 0.25, 1.0])
    assert Sample.of(values, np.full(3, 2.0)).weights is None
    assert Sample.of(values, np.array([2.0, 0.0, 2.0])).n == 2
    uneven = Sample.of(values, np.array([1.0, 2.0, 0.0]))
    assert uneven.weights is not None
    assert (uneven.mean, uneven.n) == (pytest.approx(1.0 / 3.0), 2)


def test_weights_next_to_nothing_leave_no_spread():
    sample = Sample.of(np.array([0.5, 0.25, 0.4]), np.array([5e-324, 1e-323, 5e-324]))
    assert sample.tails == (1.0, 1.0, False)
    assert sample.error == 0.0


def test_a_row_of_units_is_a_sample():
    weights = np.array([[1.0, 2.0, 0.0, 3.0]])
    units = Units(unit_keys(np.arange(4)), np.array([[0.5, 1.0, 0.0, -1.0]]), weights)
    sample = Sample.row(units)
    assert sample.mean == pytest.approx(units.estimates()[0])
    assert sample.plain_error == pytest.approx(units.standard_errors()[0])
    values = linearised(units)
    assert values.mean() == pytest.approx(sample.mean)
    assert values.std(ddof=1) / np.sqrt(3) == pytest.approx(sample.error)
    plain = linearised(units, plain=True)
    assert plain.std(ddof=1) / np.sqrt(3) == pytest.approx(sample.plain_error)
    assert sample.n == 3


def test_zeros_are_crossed_on_lines_bends_and_steps():
    for slope in (1.0, -1.0):
        assert crossing(lambda x, s=slope: s * (x - 0.3), 0.0, 1.0, math.inf) == pytest.approx(0.3, rel=1e-12)
        assert crossing(lambda x, s=slope: s * (x + 0.3), 0.0, -1.0, -9.0) == pytest.approx(-0.3, rel=1e-12)
    assert crossing(lambda x: 2.0 - x**3, 0.0, 0.1, math.inf) == pytest.approx(2.0 ** (1 / 3), rel=1e-11)
    assert crossing(lambda x: 1.0 if x < 0.7 else -1.0, 0.0, 0.1, 5.0) == pytest.approx(0.7, rel=1e-11)
    assert crossing(lambda _: 1.0, 0.0, 0.1, math.inf) == math.inf
