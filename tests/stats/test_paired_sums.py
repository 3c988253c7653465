"""Pairs that are added up piece by piece say what the pairs themselves say."""

from __future__ import annotations

import numpy as np
import pytest

from recsys.stats import paired_sums
from recsys.stats.effects import d_z
from recsys.stats.paired_sums import PairedSums
from recsys.stats.paired_tests import difference_estimate, paired_t, rare_mean_test, sign_test
from recsys.stats.pairing import pair
from recsys.stats.rare_values import lift_bounds, mean_bounds, mean_p, units_needed


def summed(first, second, n_pieces, centres=(0.0, 0.0)):
    sums = PairedSums(centres)
    pieces = [np.array_split(side, n_pieces) for side in (first, second, np.arange(len(first)))]
    for one, other, ids in zip(*pieces, strict=True):
        sums.add(one, other, ids)
    sums.wants_pairs = True
    for one, other, _ in zip(*pieces, strict=True):
        sums.look_again(one, other)
    return sums


@pytest.mark.parametrize("most", [1 << 16, 1])
@pytest.mark.parametrize(("level", "spread"), [(0.0, 1.0), (1e7, 1.0), (1.0, 1e-7)])
@pytest.mark.filterwarnings("ignore::recsys.stats.inference_results.RankTestWarning")
def test_sums_are_as_accurate_as_the_values(level, spread, most, monkeypatch):
    """Also where the spread is small beside the level, as of a mean popularity."""
    monkeypatch.setattr(paired_sums, "_MOST_LEVELS", most)
    rng = np.random.default_rng(3)
    first, second = level + spread * rng.random((2, 5000)) ** 3
    pairs, sums = pair(first, second), summed(first, second, 7, (level, level))
    for one, other in (
        (paired_t(pairs), paired_t(sums)),
        (paired_t(pairs, alternative="less"), paired_t(sums, alternative="less")),
        (sign_test(pairs), sign_test(sums)),
        (difference_estimate(pairs), difference_estimate(sums)),
        (d_z(pairs), d_z(sums)),
        (pairs.side_estimates(), sums.side_estimates()),
    ):
        for here, there in zip(_flat(one), _flat(other), strict=True):
            assert there == (pytest.approx(here, rel=1e-9) if isinstance(here, float) else here)
    assert rare_mean_test(sums, -0.1 * spread, (-spread, spread), "greater") is None
    assert sums.count_differing()[0] == 5000


def _flat(found):
    parts = vars(found).values() if hasattr(found, "__dict__") else found
    for part in parts:
        yield from _flat(part) if hasattr(part, "low") or type(part) is tuple else [part]


def test_the_cut_into_pieces_does_not_move_a_bit():
    rng = np.random.default_rng(5)
    first, second = rng.random((2, 1000))
    whole, *others = (summed(first, second, n_pieces) for n_pieces in (1, 3, 50))
    for other in others:
        assert other.side_estimates() == whole.side_estimates()
        assert other.spread() == whole.spread()


def test_an_infinite_value_is_refused():
    with pytest.raises(paired_sums.InputError, match="infinite"):
        PairedSums().add(np.array([np.inf]), np.array([0.0]), np.array([1]))


def test_rare_values_may_be_counted():
    """Values with how often they occur say what as many values say."""
    levels, counts = np.array([-1.0, 0.0, 0.5, 1.0]), np.array([1.0, 300.0, 4.0, 2.0])
    values = np.repeat(levels, counts.astype(int))
    for alternative in ("two-sided", "greater", "less"):
        assert mean_p(levels, 0.0, -1, 1, alternative, counts=counts) == pytest.approx(
            mean_p(values, 0.0, -1, 1, alternative), rel=1e-12
        )
    assert units_needed(levels, 0.0, -1, 1, counts=counts) == units_needed(values, 0.0, -1, 1)
    second = np.array([1.0, 0.25, 0.25, 0.0])
    lifts = (
        lift_bounds(levels + second, second, 0, 1, counts=counts),
        lift_bounds(
            values + np.repeat(second, counts.astype(int)), np.repeat(second, counts.astype(int)), 0, 1
        ),
    )
    bounds = mean_bounds(levels, -1, 1, counts=counts), mean_bounds(values, -1, 1)
    for counted, repeated in (lifts, bounds):
        assert (counted.low, counted.high) == pytest.approx((repeated.low, repeated.high), rel=1e-9)
