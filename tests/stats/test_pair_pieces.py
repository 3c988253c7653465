"""Pairs that are added up piece by piece say what the pairs themselves say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recsys.errors import InputError
from recsys.stats import samples
from recsys.stats.effects import d_z
from recsys.stats.gaffke import mean_bounds, mean_p, units_needed
from recsys.stats.margins import difference_estimate
from recsys.stats.paired_tests import paired_t, sign_flip
from recsys.stats.pairing import PairSums, pair
from recsys.stats.rank_tests import sign_test
from recsys.stats.samples import Sample
from recsys.stats.sign_flips import SignFlips


def summed(first, second, n_pieces, centres=(0.0, 0.0)):
    pieces = [np.array_split(side, n_pieces) for side in (first, second)]
    parts = [PairSums.of(one, other, centres) for one, other in zip(*pieces, strict=True)]
    return replace(PairSums.total(parts), read=lambda: first - second)


@pytest.mark.parametrize("most", [1 << 16, 1])
@pytest.mark.parametrize(("level", "spread"), [(0.0, 1.0), (1e7, 1.0), (1.0, 1e-7)])
@pytest.mark.filterwarnings("ignore::recsys.stats.results.RankTestWarning")
def test_sums_are_as_accurate_as_the_values(level, spread, most, monkeypatch):
    """Also where the spread is small beside the level, as of a mean popularity."""
    monkeypatch.setattr(samples, "MOST_DISTINCT", most)
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
    bounds = (mean_bounds(of.sample, -spread, spread) for of in (pairs, sums))
    flips = (SignFlips.of(of.sample).interval() for of in (pairs, sums))
    for here, there in (bounds, flips):
        assert (there.low, there.high) == (here.low, here.high)
    assert sums.sample.differing[0] == 5000


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
        assert paired_t(other) == paired_t(whole) == paired_t(pair(first, second))
        assert sign_flip(other) == sign_flip(whole) == sign_flip(pair(first, second))


def test_an_infinite_value_is_refused():
    with pytest.raises(InputError, match="infinite"):
        PairSums.of(np.array([np.inf]), np.array([0.0]))


def test_rare_values_may_be_counted():
    """Values with how often they occur say what as many values say."""
    levels, counts = np.array([-1.0, 0.0, 0.5, 1.0]), np.array([1.0, 300.0, 4.0, 2.0])
    values, counted = np.repeat(levels, counts.astype(int)), Sample.of(levels, counts=counts)
    for alternative in ("two-sided", "greater", "less"):
        assert mean_p(counted, 0.0, -1, 1, alternative) == pytest.approx(
            mean_p(values, 0.0, -1, 1, alternative), rel=1e-12
        )
    assert units_needed(counted, 0.0, -1, 1) == units_needed(values, 0.0, -1, 1)
    bounds = mean_bounds(counted, -1, 1), mean_bounds(values, -1, 1)
    assert (bounds[0].low, bounds[0].high) == pytest.approx((bounds[1].low, bounds[1].high), rel=1e-9)


def test_a_constant_side_has_no_variance():
    first, second = np.full(6, 0.1 + 0.2), np.array([0.5, 0.2, 0.9, 0.1, 0.3, 0.7])
    sides = summed(first, second, 2).side_estimates()
    assert sides.variances[:2] == (0.0, 0.0)
    assert sides.variances[2] == pytest.approx(second.var(ddof=1) / 6)
    other = summed(second, first, 2).side_estimates()
    assert other.variances[1:] == (0.0, 0.0)
    both = summed(second, second**2, 2).side_estimates()
    assert both.variances[1] == pytest.approx(np.cov(second, second**2)[0, 1] / 6)
