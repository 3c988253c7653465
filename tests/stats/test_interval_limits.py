"""Intervals on paper, and the sample sizes at which another interval takes over."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import special, stats

from recsys.errors import InputError, RecsysError
from recsys.stats.intervals import (
    check_bounds,
    delta_values,
    mean_interval,
    ratio_difference,
    ratio_interval,
    ratio_units,
    slopes_of,
    statistic_interval,
)
from recsys.stats.results import (
    SkewWarning,
    SmallSampleWarning,
    ZeroVarianceWarning,
    t_quantile,
)
from recsys.stats.samples import Sample

SAMPLE = np.array([0.1, 0.4, 0.2, 0.9, 0.5, 0.3, 0.8, 0.25])


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def ends(estimate) -> tuple[float, float]:
    return estimate.interval.low, estimate.interval.high


def test_the_mean_and_its_t_interval():
    result = mean_interval(np.append(SAMPLE, math.nan), confidence=0.9)
    mean, error = SAMPLE.mean(), SAMPLE.std(ddof=1) / math.sqrt(8)
    assert (result.value, result.standard_error, result.n) == (pytest.approx(mean), pytest.approx(error), 8)
    assert ends(result) == pytest.approx(stats.t.interval(0.9, 7, mean, error))
    assert (result.interval.confidence, result.interval.method) == (0.9, "t")
    normal = mean_interval(SAMPLE, method="normal")
    assert normal.standard_error == pytest.approx(error)
    assert ends(normal) == pytest.approx(stats.norm.interval(0.95, mean, error))


def test_the_mean_of_clusters_is_a_ratio():
    clusters = [1, 1, 2, 3, 3, 3, 4, 4]
    result = mean_interval(SAMPLE, clusters=clusters, method="normal")
    as_ratio = ratio_interval(SAMPLE, np.ones(8), clusters=clusters)
    assert result.value == pytest.approx(SAMPLE.mean())
    assert result.n == as_ratio.n == 4
    assert ends(result) == pytest.approx(ends(as_ratio))


def test_a_ratio_of_sums_by_the_delta_method():
    clicks, views = np.array([1.0, 3.0, 0.0, 2.0, 5.0]), np.array([4.0, 5.0, 2.0, 8.0, 6.0])
    result = ratio_interval(clicks, views)
    ratio = 11 / 25
    error = math.sqrt(((clicks - ratio * views) ** 2).sum() * 5 / 4) / 25
    assert (result.value, result.standard_error) == (pytest.approx(ratio), pytest.approx(error))
    assert ends(result) == pytest.approx(stats.norm.interval(0.95, ratio, error))
    for numerator, denominator in (
        (clicks, views[:-1]),
        (clicks, views - 5),
        (np.append(clicks, math.nan), np.append(views, 1.0)),
        (np.append(clicks, 1.0), np.append(views, math.nan)),
        (clicks.reshape(1, -1), views),
    ):
        with pytest.raises(InputError):
            ratio_interval(numerator, denominator)


def test_the_difference_of_two_ratios():
    views = np.array([4.0, 5.0, 2.0, 8.0, 6.0])
    first, second = np.array([1.0, 3.0, 0.0, 2.0, 5.0]), np.array([2.0, 1.0, 1.0, 2.0, 3.0])
    result = ratio_difference(ratio_units(first, views), ratio_units(second, views))
    influence = ((first - 11 / 25 * views) - (second - 9 / 25 * views)) / 25
    error = math.sqrt((influence**2).sum() * 5 / 4)
    assert (result.value, result.standard_error) == (pytest.approx(2 / 25), pytest.approx(error))
    assert ends(result) == pytest.approx(stats.t.interval(0.95, 4, 2 / 25, error))
    assert result.n == 5
    same = ratio_difference(ratio_units(first, views), ratio_units(first, views))
    assert (same.value, same.standard_error, ends(same)) == (0.0, 0.0, (-math.inf, math.inf))
    one = ratio_difference(ratio_units(first[:1], views[:1]), ratio_units(second[:1], views[:1]))
    assert math.isnan(one.standard_error)
    with pytest.raises(InputError, match="different units"):
        ratio_difference(ratio_units(first, views), ratio_units(second[:4], views[:4]))
    with pytest.raises(InputError, match="different units"):
        ratio_difference(ratio_units(first, views), ratio_units(first, views, clusters=[9, 8, 7, 6, 5]))


@pytest.mark.parametrize(
    ("differing", "n", "wanted"),
    [
        (19, 100, 19),
        (20, 100, None),
        (0, 5, 0),
        (4, 9, 4),
        (5, 10, None),
        (4, 8, None),
        (19, 39, 19),
        (19, 38, None),
    ],
)
def test_rare_is_fewer_than_20_and_fewer_than_half(differing, n, wanted):
    values = np.append(np.full(n - differing, 0.5), 1.0 + np.arange(differing))
    assert Sample.of(values).n_rare == wanted


def test_zeros_and_ones_are_rare_whatever_their_share():
    assert Sample.of(np.array([0.0, 1.0])).n_rare == 1
    assert Sample.of(np.repeat([0.0, 1.0], [19, 19])).n_rare == 19
    assert Sample.of(np.repeat([0.0, 1.0], [20, 20])).n_rare is None
    assert Sample.of(np.array([0.0, 0.5]), None, np.array([30.0, 4.0])).n_rare == 4
    assert Sample.of(np.array([0.0, 0.5]), None, np.array([30.0, 25.0])).n_rare is None


def test_zeros_and_ones_have_the_interval_of_clopper_and_pearson():
    wanted = stats.binomtest(3, 40).proportion_ci(0.95, "exact")
    for options in ({}, {"bounds": (0, 1)}):
        result = mean_interval(np.repeat([0, 1], [37, 3]), **options)
        assert result.interval.method == "Clopper-Pearson"
        assert ends(result) == pytest.approx((wanted.low, wanted.high), abs=1e-9)
    assert mean_interval(np.repeat([0, 1], [37, 3]), bounds=(0, 2)).interval.method != "Clopper-Pearson"
    assert mean_interval(np.repeat([0, 1], [20, 30])).interval.method == "Clopper-Pearson"
    assert mean_interval(np.repeat([0, 1], [20, 30]), method="t").interval.method == "t"
    weighted = mean_interval(np.repeat([0, 1], [37, 3]), clusters=[*range(38), 37, 37])
    assert weighted.interval.method != "Clopper-Pearson"


def test_equal_values_have_an_interval_only_within_bounds():
    with pytest.warns(ZeroVarianceWarning):
        result = mean_interval([0.5, 0.5, 0.5])
    assert ends(result) == (-math.inf, math.inf)
    bounded = mean_interval([0.5, 0.5, 0.5], bounds=(0, 1))
    assert 0 <= bounded.interval.low < 0.5 < bounded.interval.high <= 1
    half = mean_interval([0.5, 0.5, 0.5], bounds=(0, math.inf))
    assert 0 <= half.interval.low < 0.5
    assert half.interval.high == math.inf
    assert "no upper end" in str(half.notes[-1])
    assert "no lower end" in str(mean_interval([0.5] * 3, bounds=(-math.inf, 1)).notes[-1])


def test_few_cases_are_warned_of():
    with pytest.warns(SmallSampleWarning):
        mean_interval([0.1, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mean_interval([0.1, 0.5, 0.7])
        mean_interval(SAMPLE)
    with pytest.warns(SmallSampleWarning, match="too narrow"):
        mean_interval([0.5] * 30 + [0.7, 0.9])
    with pytest.warns(SkewWarning, match="too narrow"):
        mean_interval(np.append(np.linspace(0, 1, 50), 1e4))
    with pytest.raises(InputError, match="nothing to estimate"):
        mean_interval([math.nan, math.nan])
    with pytest.raises(InputError):
        mean_interval([[0.1, 0.5]])


@pytest.mark.parametrize("wrong", [(0, 0), (1, 0), (0, 1, 2), (0,), 1, (math.nan, 1), "01"])
def test_bounds_run_from_the_least_to_the_greatest(wrong):
    with pytest.raises(InputError):
        check_bounds(wrong)
    assert check_bounds((0, math.inf)) == (0.0, math.inf)


def test_a_statistic_is_resampled():
    result = statistic_interval(SAMPLE, np.mean, n_resamples=500, rng=3)
    stream = np.random.default_rng(3)
    draws = np.array([SAMPLE[stream.integers(0, 8, 8)].mean() for _ in range(500)])
    assert result.value == SAMPLE.mean()
    assert result.standard_error == pytest.approx(draws.std(ddof=1))
    assert ends(result) == pytest.approx(np.quantile(draws, [0.025, 0.975]))
    assert result.n == 8
    narrow = statistic_interval(SAMPLE, np.mean, n_resamples=500, rng=3, bounds=(0.4, 0.5))
    assert ends(narrow) == (0.4, 0.5)
    with pytest.warns(ZeroVarianceWarning):
        same = statistic_interval([2.0, 2.0, 2.0], np.mean, n_resamples=20)
    assert ends(same) == (-math.inf, math.inf)
    assert ends(statistic_interval([2.0] * 3, np.mean, n_resamples=20, bounds=(0, 5))) == (0.0, 5.0)
    for options in ({"method": "t"}, {"n_resamples": 0}, {"confidence": 1.0}):
        with pytest.raises(RecsysError):
            statistic_interval(SAMPLE, np.mean, **options)
    for statistic in ("mean", lambda _: math.nan):
        with pytest.raises(InputError):
            statistic_interval(SAMPLE, statistic)


def test_the_bca_interval_is_that_of_scipy():
    ours = statistic_interval(SAMPLE, np.median, method="bca", n_resamples=4000, rng=1)
    theirs = stats.bootstrap((SAMPLE,), np.mean, method="BCa", n_resamples=20_000, rng=1)
    mean = statistic_interval(SAMPLE, np.mean, method="bca", n_resamples=20_000, rng=1)
    wanted = theirs.confidence_interval
    assert ends(mean) == pytest.approx((wanted.low, wanted.high), abs=0.01)
    assert ours.interval.low < ours.value < ours.interval.high


def test_slopes_of_a_combination_of_means():
    assert slopes_of(lambda a, b: 3 * a - 2 * b, [1.0, 5.0], [False, False]) == pytest.approx([3.0, -2.0])
    assert slopes_of(lambda a, b: a * b, [2.0, 7.0], [False, True]) == pytest.approx([7.0, 0.0])
    assert slopes_of(lambda a, b: a * b, [2.0, 0.0], [True, False]) == pytest.approx([0.0, 2.0])
    first, second = np.array([0.2, 0.6, math.nan, 0.4]), np.array([0.5, 0.1, 0.3, 0.9])

    def product(a: float, b: float) -> float:
        return a * b

    present = ~np.isnan(first)
    values = delta_values(first, second, product)
    a, b = first[present].mean(), second[present].mean()
    assert values[present] == pytest.approx(a * b + b * (first[present] - a) + a * (second[present] - b))
    assert math.isnan(values[2])
    weighted = delta_values(first, second, product, np.array([1.0, 3.0, 5.0, 0.0]))
    a, b = (0.2 + 3 * 0.6) / 4, (0.5 + 3 * 0.1) / 4
    assert weighted[present] == pytest.approx(a * b + b * (first[present] - a) + a * (second[present] - b))


@pytest.mark.parametrize("df", [1, 2.5, 40, 1e6])
@pytest.mark.parametrize("tail", [1e-12, 0.005, 0.025, 0.4])
def test_a_quantile_has_all_digits_where_scipys_has_eleven(df, tail, monkeypatch):
    exact = -special.stdtrit(df, tail)
    monkeypatch.setattr(special, "stdtrit", lambda df, p, found=special.stdtrit: found(df, p) * (1 + 3e-11))
    assert t_quantile(tail, df) == pytest.approx(exact, rel=1e-13)
    monkeypatch.setattr(special, "stdtrit", lambda *_: math.inf)  # SciPy's, far out in the tail
    assert t_quantile(tail, df) == math.inf
