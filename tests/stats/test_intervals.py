"""Intervals against SciPy and statsmodels; ratios, clusters, catalogue metrics."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import hadamard

from recsys.errors import InputError, UnknownNameError
from recsys.stats.bootstrap import Resampler, bca_limits, groups_of, replicate
from recsys.stats.group_jackknife import (
    catalogue_difference,
    catalogue_interval,
    coverage_interval,
    jackknife,
    plan_groups,
)
from recsys.stats.intervals import (
    mean_interval,
    ratio_difference,
    ratio_interval,
    ratio_units,
)
from recsys.stats.mean_inference import infer_mean
from recsys.stats.results import SmallSampleWarning, ZeroVarianceWarning

EXACT = {"rtol": 1e-10, "atol": 1e-14}


@pytest.fixture
def values() -> np.ndarray:
    return np.random.default_rng(5).exponential(size=60)


def ends(estimate) -> list[float]:
    return [estimate.interval.low, estimate.interval.high]


@pytest.mark.parametrize(("method", "law"), [("t", stats.t(59)), ("normal", stats.norm)])
def test_formula_intervals_are_scipys(values, method, law) -> None:
    ours = mean_interval(values, method=method, confidence=0.9)
    reach = law.ppf(0.95) * stats.sem(values)
    np.testing.assert_allclose(ends(ours), [values.mean() - reach, values.mean() + reach], **EXACT)
    assert ours.n == 60


def test_bca_limits_are_scipys_on_the_same_replicates(values) -> None:
    theirs = stats.bootstrap((values,), np.mean, method="BCa", n_resamples=3000, rng=np.random.default_rng(0))
    centred = values - values.mean()
    acceleration = (centred**3).sum() / (6 * (centred**2).sum() ** 1.5)
    ours = bca_limits(theirs.bootstrap_distribution, values.mean(), acceleration, 0.95)
    np.testing.assert_allclose(ours, list(theirs.confidence_interval), **EXACT)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_bootstrap_intervals_meet_scipys_own_draws(values, method) -> None:
    theirs = stats.bootstrap(
        (values,),
        np.mean,
        method={"bca": "BCa"}.get(method, method),
        n_resamples=20_000,
        rng=np.random.default_rng(1),
    )
    ours = mean_interval(values, method=method, n_resamples=20_000)
    width = theirs.confidence_interval.high - theirs.confidence_interval.low
    np.testing.assert_allclose(ends(ours), list(theirs.confidence_interval), atol=0.03 * width)


def test_studentised_limits_are_the_plain_definition(values) -> None:
    units = ratio_units(values, np.ones(60))
    resampler = Resampler(units.keys, 400, seed=9)
    weights = resampler.weighted(np.eye(60))
    t = []
    for w in weights.T:
        sample = np.repeat(values, w.astype(int))
        t.append((sample.mean() - values.mean()) / stats.sem(sample))
    replicates = replicate(units, resampler)
    np.testing.assert_allclose(replicates.t_values()[0], t, rtol=1e-9)
    low, high = replicates.limits("studentised", 0.9)[0]
    error = stats.sem(values)
    assert low == pytest.approx(values.mean() - error * np.quantile(t, 0.95, method="higher"))
    assert high == pytest.approx(values.mean() - error * np.quantile(t, 0.05, method="lower"))


def test_studentised_ratio_is_the_plain_definition() -> None:
    rng = np.random.default_rng(6)
    under = rng.integers(1, 6, size=40).astype(float)
    over = rng.binomial(under.astype(int), 0.4).astype(float)
    units = ratio_units(over, under)
    resampler = Resampler(units.keys, 200)
    replicates = replicate(units, resampler)
    for b, w in enumerate(resampler.weighted(np.eye(40)).T):
        ratio = (w @ over) / (w @ under)
        rest = over - ratio * under
        error = np.sqrt((w * rest**2).sum() * 40 / 39) / (w @ under)
        assert replicates.deviations[0, b] == pytest.approx(ratio - over.sum() / under.sum(), abs=1e-12)
        assert replicates.errors[0, b] == pytest.approx(error, rel=1e-9)


def test_excluded_cases_do_not_count(values) -> None:
    holed = np.concatenate([values, [np.nan, np.nan]])
    for method in ("t", "normal"):
        np.testing.assert_allclose(
            ends(mean_interval(holed, method=method)), ends(mean_interval(values, method=method))
        )


def test_cluster_robust_interval_is_the_regressions() -> None:
    from statsmodels.regression.linear_model import OLS

    rng = np.random.default_rng(7)
    clusters = rng.integers(0, 25, size=120)
    values = rng.normal(size=25)[clusters] + rng.normal(size=120)
    fit = OLS(values, np.ones(120)).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    ours = mean_interval(values, clusters=clusters, method="normal")
    np.testing.assert_allclose(ends(ours), fit.conf_int()[0], **EXACT)
    assert ours.standard_error > 1.3 * mean_interval(values, method="normal").standard_error
    even = np.arange(120) % 24
    fit = OLS(values, np.ones(120)).fit(cov_type="cluster", cov_kwds={"groups": even}, use_t=True)
    np.testing.assert_allclose(ends(mean_interval(values, clusters=even)), fit.conf_int()[0], **EXACT)


def test_ratio_is_the_delta_method() -> None:
    rng = np.random.default_rng(8)
    under = rng.integers(1, 9, size=300).astype(float)
    over = rng.binomial(under.astype(int), 0.2).astype(float)
    ours = ratio_interval(over, under)
    ratio, mean = over.sum() / under.sum(), under.mean()
    cov = np.cov(over, under)
    variance = (cov[0, 0] - 2 * ratio * cov[0, 1] + ratio**2 * cov[1, 1]) / mean**2 / 300
    assert ours.value == pytest.approx(ratio, rel=1e-14)
    assert ours.standard_error == pytest.approx(np.sqrt(variance), rel=1e-10)
    for method in ("studentised", "bca", "percentile"):
        np.testing.assert_allclose(ends(ratio_interval(over, under, method=method)), ends(ours), atol=0.01)


def test_ratio_difference_keeps_the_pairing() -> None:
    rng = np.random.default_rng(9)
    under = rng.integers(1, 9, size=200).astype(float)
    over = rng.binomial(under.astype(int), 0.2).astype(float)
    with pytest.warns(ZeroVarianceWarning):
        same = ratio_difference(ratio_units(over, under), ratio_units(over, under))
    assert same.value == 0
    assert same.standard_error == 0
    assert ends(same) == [-np.inf, np.inf]
    ones = np.ones(200)
    x, y = rng.normal(size=200), rng.normal(size=200)
    plain = ratio_difference(ratio_units(x, ones), ratio_units(y, ones))
    np.testing.assert_allclose(ends(plain), list(stats.ttest_rel(x, y).confidence_interval()), **EXACT)
    with pytest.raises(InputError, match="different units"):
        ratio_difference(ratio_units(x, ones), ratio_units(y[:50], ones[:50]))


def test_cautions_and_refusals() -> None:
    with pytest.warns(SmallSampleWarning):
        mean_interval([1.0, 2.0])
    with pytest.warns(ZeroVarianceWarning):
        assert ends(mean_interval([0.5] * 6)) == [-np.inf, np.inf]
    for bounds in ((1, 0), (0, 0), (0, np.nan), 1, ("a", "b"), (0, 1, 2)):
        with pytest.raises(InputError, match="bounds"):
            mean_interval([1.0, 2.0, 3.0], bounds=bounds)
    with pytest.raises(InputError, match="every case is excluded"):
        mean_interval([np.nan, np.nan])
    with pytest.raises(UnknownNameError, match="studentised"):
        mean_interval([1.0, 2.0, 3.0], method="studentized")
    with pytest.raises(InputError, match="add up to zero"):
        ratio_interval([1.0, 2.0], [0.0, 0.0])
    with pytest.raises(InputError, match="one entry per case"):
        mean_interval([1.0, 2.0, 3.0], clusters=[1, 2])


def gini(counts: np.ndarray) -> float:
    ordered = np.sort(counts)
    n = len(ordered)
    return float((2 * np.arange(1, n + 1) - n - 1) @ ordered / (n * ordered.sum()))


def exposures(rng, n_users=640, n_items=200, k=5) -> tuple[np.ndarray, np.ndarray]:
    groups = groups_of(np.arange(n_users))
    chances = 1 / np.arange(1, n_items + 1)
    noise = np.log(chances) + rng.gumbel(size=(n_users, n_items))
    lists = np.argsort(-noise, axis=1)[:, :k]
    counts = np.zeros((64, n_items))
    np.add.at(counts, (np.repeat(groups, k), lists.ravel()), 1)
    return counts, np.bincount(groups, minlength=64)


def test_catalogue_jackknife_of_a_mean_is_the_textbook_error() -> None:
    """With one user per group and a statistic that is a mean, the jackknife is s / sqrt(n)."""
    scores = np.random.default_rng(3).normal(size=64)
    exposure = np.abs(np.stack([scores - scores.min(), np.ones(64)], axis=1))
    result = catalogue_interval(exposure, lambda c: c[0] / c[1], sizes=np.ones(64))
    assert result.standard_error == pytest.approx(stats.sem(scores), rel=1e-10)


def slow_jackknife(value_of, groups):
    """The plain jackknife of some groups, the interactions of neighbours, and the influence of each group."""
    n = len(groups)
    full = value_of(groups)
    without = np.array([value_of(np.delete(groups, i)) for i in range(n)])
    gaps = without - without.mean()
    together = [
        n * full
        - (n - 1) * (without[i] + without[(i + step) % n])
        + (n - 2) * value_of(np.delete(groups, [i, (i + step) % n]))
        for step in (1, 2)
        for i in range(n)
    ]
    return (n - 1) / n * (gaps**2).sum(), np.var(together, ddof=1) / 2, gaps


def slow_spread(value_of):
    """Variance and degrees of freedom over 64 groups, written out.

    The plain jackknife divided by its excess at half the size, scaled by the growth of pair interactions.
    """
    plain, excess, gaps = slow_jackknife(value_of, np.arange(64))
    signs = hadamard(64)[1:]
    halves = [(np.flatnonzero(row > 0), np.flatnonzero(row < 0)) for row in signs]
    gaps_of_halves = np.array([value_of(a) - value_of(b) for a, b in halves])
    truth = (gaps_of_halves**2).sum() / 62 / 2
    chosen = [half for split in (1, 38) for half in halves[split]]
    inside = [slow_jackknife(value_of, half) for half in chosen]
    half_plain, half_excess = np.mean([one[0] for one in inside]), np.mean([one[1] for one in inside])
    growth = (excess / plain) / (half_excess / half_plain)
    power = 1 + np.log2(plain / half_plain)
    at_half = half_plain / truth * (32 / 31) ** power
    over = 1 + (at_half - 1) * growth

    inner = np.zeros(64)
    for half, one in zip(chosen, inside, strict=True):
        inner[half] += one[2]
    slopes = np.linalg.lstsq(np.stack([signs @ gaps, signs @ inner], axis=1), gaps_of_halves, rcond=None)[0]
    explained = slopes[0] * gaps + slopes[1] * inner
    share = [x**2 / (x**2).sum() for x in (gaps, inner, explained)]
    by_halves = growth * at_half / over
    parts = share[0] + by_halves * (share[2] - share[1]) + (1 - 1 / over) * (share[0] - share[1])
    rest = by_halves**2 * np.var(gaps_of_halves**2 / 2 - (signs @ explained) ** 2 / 2, ddof=1) / 63 / truth**2
    bias = 64 * np.cov(parts - share[0], parts)[0, 1] + rest
    df = 2 / max(64 * np.var(parts, ddof=1) + rest, 2 / 62)
    return plain * (64 / 63) ** power / over / (1 + max(bias, 0)), df


def test_catalogue_interval_is_the_formula_for_equal_groups() -> None:
    counts, _ = exposures(np.random.default_rng(4))
    result = catalogue_interval(counts, gini, sizes=np.ones(64))
    assert result.value == pytest.approx(gini(counts.sum(axis=0)))
    variance, df = slow_spread(lambda kept: gini(counts[kept].sum(axis=0)))
    assert result.standard_error**2 == pytest.approx(variance, rel=1e-9)
    reach = stats.t(df).ppf(0.975) * np.sqrt(variance)
    np.testing.assert_allclose(ends(result), [result.value - reach, result.value + reach], rtol=1e-9)
    assert "test set of this size" in str(result.notes[0])


def test_coverage_jackknife_leaves_out_groups() -> None:
    counts, _ = exposures(np.random.default_rng(8), n_items=400)
    result = coverage_interval(counts, sizes=np.ones(64))
    variance, _ = slow_spread(lambda kept: np.mean(counts[kept].sum(axis=0) > 0))
    assert result.standard_error**2 == pytest.approx(variance, rel=1e-9)
    generic = catalogue_interval(counts, lambda c: float(np.mean(c > 0)), sizes=np.ones(64))
    assert result.standard_error == pytest.approx(generic.standard_error, rel=1e-12)
    many = np.concatenate([counts, counts[:6]])
    assert coverage_interval(many).value == result.value


def test_halves_of_the_groups_are_balanced() -> None:
    """Every split halves the groups, no two agree: a mean's gaps then give its jackknife variance exactly."""
    signs = plan_groups(64, together=True).signs
    assert not signs.sum(axis=1).any()
    assert np.array_equal(signs @ signs.T, 64 * np.eye(63))
    odd = plan_groups(33, together=True)
    assert np.array_equal(np.abs(odd.signs.sum(axis=1)), np.ones(63))
    few = plan_groups(8, together=True)
    assert len(few.left_out) == 9
    assert len(plan_groups(64, together=False).left_out) == 65


def test_degrees_of_freedom_reflect_the_error_of_the_variance() -> None:
    """The maximum for even groups, the minimum if one group makes up the spread."""
    rng = np.random.default_rng(9)
    sums = np.where(np.arange(64) % 2, 1.0, -1.0)
    even = jackknife(lambda gone: np.delete(sums, gone).mean(), np.ones(64), together=False)
    assert even.df == 62
    sums = rng.normal(size=64)
    sums[0] = 40.0
    lone = jackknife(lambda gone: np.delete(sums, gone).mean(), np.ones(64), together=False)
    assert lone.df == 3
    assert lone.variance() == pytest.approx(np.var(sums, ddof=1) / 64)


def test_an_interval_that_depends_on_few_items_says_so() -> None:
    """Every item but a handful is shown by many groups: no single group changes much."""
    rng = np.random.default_rng(10)
    counts = rng.poisson(0.03, size=(64, 3000)).astype(float)
    assert not any("rough" in str(note) for note in coverage_interval(counts, sizes=np.full(64, 16)).notes)
    counts = rng.poisson(0.13, size=(64, 3000)).astype(float)
    assert any("rough" in str(note) for note in coverage_interval(counts, sizes=np.full(64, 16)).notes)


def test_catalogue_interval_adds_over_shards() -> None:
    counts, sizes = exposures(np.random.default_rng(5))
    half = np.floor(counts / 2)
    whole, split = (
        catalogue_interval(counts, gini, sizes=sizes),
        catalogue_interval(half + (counts - half), gini, sizes=sizes),
    )
    assert whole == split


def test_catalogue_difference_is_paired() -> None:
    counts, sizes = exposures(np.random.default_rng(6))
    same = catalogue_difference(counts, counts, gini, sizes=sizes)
    assert same.value == 0
    assert "nothing says how far it may vary" in str(same.notes[1])
    assert ends(same) == [-np.inf, np.inf]
    other = counts.copy()
    other[:, :5] += 1
    moved = catalogue_difference(other, counts, gini, sizes=sizes)
    alone = catalogue_interval(counts, gini, sizes=sizes)
    assert moved.value > 0
    assert moved.standard_error < alone.standard_error


def test_coverage_is_narrower_than_the_plain_jackknife() -> None:
    counts, sizes = exposures(np.random.default_rng(7), n_items=2000)
    total = counts.sum(axis=0)
    left_out = np.array([np.mean(total - row > 0) for row in counts])
    plain = np.sqrt(63 / 64 * ((left_out - left_out.mean()) ** 2).sum())
    ours = coverage_interval(counts, sizes=sizes)
    assert ours.value == np.mean(total > 0)
    assert 0.5 * plain < ours.standard_error < 0.95 * plain
    assert coverage_interval(counts, sizes=sizes, n_items=4000).value == pytest.approx(ours.value / 2)


def test_catalogue_refusals() -> None:
    with pytest.raises(InputError, match="groups x items"):
        catalogue_interval(np.ones((2, 5)), gini)
    with pytest.raises(InputError, match="zero or positive"):
        coverage_interval(-np.ones((8, 5)))
    with pytest.raises(InputError, match="one number per group"):
        coverage_interval(np.ones((8, 5)), sizes=[1, 2])
    with pytest.raises(InputError, match="same groups"):
        catalogue_difference(np.ones((8, 5)), np.ones((9, 5)), gini)


def test_one_row_of_many_is_what_is_asked() -> None:
    rng = np.random.default_rng(1)
    units = ratio_units(rng.normal(size=50), np.ones(50))
    assert infer_mean(units, method="bca", rng=3).estimate == infer_mean(units, method="bca", rng=3).estimate
    assert infer_mean(units, method="bca", rng=3).estimate != infer_mean(units, method="bca", rng=4).estimate
