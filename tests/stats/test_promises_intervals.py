"""Intervals keep their promise where few users differ and where few weigh nearly everything."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

import recsys
from recsys.stats.bootstrap import Units
from recsys.stats.group_jackknife import coverage_interval
from recsys.stats.intervals import mean_interval, ratio_interval, statistic_interval
from recsys.stats.mean_inference import infer_mean
from recsys.stats.results import SmallSampleWarning, ZeroVarianceWarning
from recsys.stats.samples import Sample

DISCOUNTS = 1 / np.log2(np.arange(2, 12))


def weighted(values: np.ndarray, weights: np.ndarray) -> Units:
    return Units(np.arange(len(values), dtype=np.uint64), (values * weights)[None], weights[None])


def evaluation(values: np.ndarray, metrics: list[str], **options) -> recsys.Evaluation:
    """Users whose only wanted item is at the place 1 / value (0: nowhere)."""
    places = [0 if v == 0 else round(1 / v) for v in values]
    lists = {u: [*range(-p + 1, 0), u] if p else [-1] for u, p in enumerate(places)}
    return recsys.evaluate(lists, {u: [u] for u in range(len(values))}, metrics, **options)


@pytest.mark.parametrize(("n", "rate"), [(30, 0.02), (100, 0.02), (300, 0.02), (30, 0.005), (1000, 0.005)])
def test_rare_hits(n: int, rate: float) -> None:
    """The coverage is a sum over the possible numbers of hits; the t interval reached 14 to 93 %."""
    covered = 0.0
    for hits in range(int(stats.binom(n, rate).ppf(0.9999)) + 1):
        values = np.repeat([1.0, 0.0], [hits, n - hits])
        interval = infer_mean(weighted(values, np.ones(n)), bounds=(0.0, 1.0)).estimate.interval
        theirs = stats.binomtest(hits, n).proportion_ci()
        assert (interval.low, interval.high) == pytest.approx((theirs.low, theirs.high), rel=1e-9)
        covered += float(stats.binom(n, rate).pmf(hits)) * (interval.low <= rate <= interval.high)
    assert covered >= 0.95


def test_a_graded_metric_that_is_mostly_zero() -> None:
    """Ninety zeros in a hundred: the t interval held 84 % at 30 users."""
    rng = np.random.default_rng(0)
    rounds, n = 120, 30
    gains = np.where(rng.random((rounds, n)) < 0.1, DISCOUNTS[rng.integers(0, 10, (rounds, n))], 0.0)
    covered = 0
    for row in gains:
        interval = mean_interval(row, bounds=(0, 1)).interval
        covered += interval.low <= 0.1 * DISCOUNTS.mean() <= interval.high
    assert covered / rounds >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / rounds)


def test_weights_that_are_uneven_and_go_with_the_value() -> None:
    """Lognormal weights, heavier for users with larger values: the t interval held 70 % at 30 users."""
    rng = np.random.default_rng(1)
    rounds, n = 80, 30

    def draw(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        taste = rng.normal(size=shape)
        weights = np.exp(1.5 * (0.6 * taste + 0.8 * rng.normal(size=shape)))
        share = stats.norm.cdf(np.sqrt(0.3) * taste + np.sqrt(0.7) * rng.normal(size=shape))
        return np.maximum(share - 0.5, 0.0), weights

    values, weights = draw((2_000_000,))
    truth = np.average(values, weights=weights)
    covered = 0
    for row, w in zip(*draw((rounds, n)), strict=True):
        interval = infer_mean(weighted(row, w), bounds=(0.0, 1.0)).estimate.interval
        covered += interval.low <= truth <= interval.high
        assert interval.high - interval.low < 0.9
    assert covered / rounds >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / rounds)


def test_clusters_of_very_unequal_size() -> None:
    """Sizes with a long tail: the t interval held 83 % at 30 users and 87 % at 100; here without bounds."""
    rng = np.random.default_rng(2)
    rounds = 2000
    for n in (30, 100):
        sizes = np.minimum(np.floor(rng.random((rounds, n)) ** (-1 / 1.2)), 200.0)
        means = rng.normal(size=(rounds, n)) + rng.normal(size=(rounds, n)) / np.sqrt(sizes)
        units = Units(np.arange(n, dtype=np.uint64), means * sizes, sizes)
        samples = [Sample.row(units, row) for row in range(rounds)]
        errors, df = np.array([one.error for one in samples]), np.array([one.df for one in samples])
        covered = np.abs(units.estimates()) <= stats.t(df).ppf(0.975) * errors
        assert covered.mean() >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / rounds)
        plain = np.abs(units.estimates()) <= stats.t(n - 1).ppf(0.975) * units.standard_errors()
        assert plain.mean() < 0.9


def test_the_error_is_the_jackknifes_and_the_degrees_of_freedom_satterthwaites() -> None:
    from statsmodels.regression.linear_model import WLS

    rng = np.random.default_rng(3)
    n = 40
    weights, values = np.exp(rng.normal(size=n)), rng.normal(size=n)
    units = weighted(values, weights)
    error, df = Sample.row(units).error, Sample.row(units).df
    hc3 = WLS(values, np.ones(n), weights=weights).fit(cov_type="HC3").bse[0]
    assert error == pytest.approx(hc3 * np.sqrt((n - 1) / n), rel=1e-10)
    h = weights / weights.sum()
    a = (np.eye(n) - h[:, None]) / (1 - h)[:, None]
    k = a @ np.diag(h) @ a.T
    assert df == pytest.approx(np.trace(k) ** 2 / np.trace(k @ k), rel=1e-10)
    sizes = np.repeat([1, 2, 3, 10], 10)
    clusters = np.repeat(np.arange(n), sizes)
    cases = np.repeat(values, sizes) + rng.normal(size=len(clusters))
    left_out = [cases[clusters != c].mean() for c in range(n)]
    found = mean_interval(cases, clusters=clusters)
    jackknife = np.sqrt((n - 1) / n * ((np.array(left_out) - cases.mean()) ** 2).sum())
    assert found.standard_error == pytest.approx(jackknife, rel=1e-10)
    assert "as on 13 of equal weight" in str(found.notes[0])


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_equal_weights_keep_the_textbook_interval(weight: float) -> None:
    values = np.random.default_rng(4).normal(size=50)
    units = weighted(values, np.full(50, weight))
    sample = Sample.row(units)
    assert (sample.error, sample.df) == (sample.plain_error, 49.0)
    assert sample.error == pytest.approx(units.standard_errors()[0], rel=1e-14)
    assert infer_mean(units).estimate.interval == mean_interval(values).interval or weight != 1.0


def test_all_zero_is_never_a_point_and_the_method_and_the_notes_say_why() -> None:
    never = evaluation(np.zeros(300), ["hit@5", "mrr@5", "dcg@5"]).intervals()
    for found in never.values():
        assert (found.value, found.interval.low) == (0.0, 0.0)
        assert found.interval.high == pytest.approx(1 - 0.025 ** (1 / 300), rel=1e-9)
    assert never["hit@5"].interval.method == "Clopper-Pearson"
    words = "hit@5, mrr@5, dcg@5: all 300 users have the same value: the interval allows for values not seen"
    assert words in str(never)
    few = evaluation(np.repeat([0.5, 0.0], [3, 297]), ["mrr@5", "hit@5"])
    for method in ("t", "bca", "studentised", "percentile", "normal"):
        assert few.intervals(method=method)["mrr@5"].interval.method == "Gaffke"
    assert few.intervals()["hit@5"].interval.method == "Clopper-Pearson"
    many = evaluation(np.repeat([0.5, 1.0, 0.0], [10, 10, 280]), ["mrr@5"]).intervals()["mrr@5"]
    assert (many.interval.method, many.notes) == ("Gaffke", ())
    for method in ("gaffke", "t"):
        spread = evaluation(1 / np.arange(1, 13.0), ["mrr@20"]).intervals(method=method)["mrr@20"]
        assert spread.interval.method == {"gaffke": "Gaffke"}.get(method, method)


def test_pooled_numbers_are_not_points_either() -> None:
    for values in (np.zeros(60), np.repeat([1.0, 0.0], [2, 58])):
        pooled = evaluation(values, ["recall@5"], conventions={"average": "pooled"})
        found = pooled.intervals()["recall@5"].interval
        theirs = stats.binomtest(int(values.sum()), 60).proportion_ci()
        assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), rel=1e-9)


def test_own_arrays_without_bounds() -> None:
    with pytest.warns(ZeroVarianceWarning, match="how far other values may be"):
        assert mean_interval([0.0] * 300).interval.high == np.inf
    with pytest.warns(ZeroVarianceWarning):
        assert ratio_interval([0.0] * 30, [5.0] * 30).interval.high == np.inf
    with pytest.warns(SmallSampleWarning, match="2 of 30 units differ from the rest: .* too narrow"):
        rare = mean_interval([7.0, 8.0, *[0.0] * 28])
    assert rare.interval.method == "t"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mean_interval([1, *[0] * 29]).interval.method == "Clopper-Pearson"
        open_ended = mean_interval([7.0, 8.0, *[0.0] * 28], bounds=(0, np.inf))
    assert 0 < open_ended.interval.low < open_ended.value
    assert open_ended.interval.high == np.inf
    assert "no upper end, because no greatest value is known" in str(open_ended.notes[0])


def test_the_interval_of_a_statistic_is_no_silent_point() -> None:
    with pytest.warns(ZeroVarianceWarning):
        found = statistic_interval([2.0] * 30, np.median, n_resamples=50)
    assert (found.interval.low, found.interval.high) == (-np.inf, np.inf)
    with pytest.warns(ZeroVarianceWarning):
        found = statistic_interval([0.0] * 30, np.mean, n_resamples=50, bounds=(0, 1))
    assert (found.interval.low, found.interval.high) == (0.0, 1.0)
    with pytest.warns(SmallSampleWarning, match="1 of 30 units differs from the rest"):
        statistic_interval([1.0, *[0.0] * 29], np.mean, n_resamples=50)


def test_a_catalogue_metric_that_no_group_changes_is_no_point() -> None:
    """Everyone sees the same list: up to -log(0.025) users unlike them may have been missed."""
    everyone = {u: [1, 2, 3, 4, 5] for u in range(300)}
    metrics = ["coverage@5", "gini@5"]
    found = recsys.evaluate(everyone, {u: [1] for u in everyone}, metrics, catalogue=range(100)).intervals()
    coverage = found["coverage@5"].interval
    assert (coverage.low, coverage.high) == pytest.approx((0.05, 0.05 - np.log(0.025) * 0.05), abs=0.0015)
    assert coverage.low < 0.05
    assert coverage.method == "rule of three"
    assert found["gini@5"].interval.low < found["gini@5"].value < found["gini@5"].interval.high
    assert "no group of users changes it: the interval allows for users unlike those seen" in str(found)


def test_coverage_of_a_catalogue_that_is_shown_many_times_over() -> None:
    """Random lists of 10 from 1,000 items for 1,000 users: the interval was a point mostly and held 42 %."""
    rng = np.random.default_rng(5)
    truth, rounds = 1 - 0.99**1000, 40
    covered = 0
    for _ in range(rounds):
        counts = np.zeros((64, 1000))
        lists = np.argpartition(rng.random((1000, 1000)), 10, axis=1)[:, :10]
        np.add.at(counts, (np.repeat(np.arange(1000) % 64, 10), lists.ravel()), 1.0)
        interval = coverage_interval(counts, sizes=np.bincount(np.arange(1000) % 64)).interval
        covered += interval.low <= truth <= interval.high
        assert interval.high - interval.low < 0.05
    assert covered / rounds >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / rounds)
