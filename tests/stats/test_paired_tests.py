"""Each paired test against SciPy, statsmodels or plain enumeration; symmetry, floors, cautions."""

from __future__ import annotations

import itertools
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

import recsys.stats
from recsys.errors import InputError, UnknownNameError
from recsys.stats.paired_tests import bootstrap_test, paired_t, sign_flip
from recsys.stats.pairing import pair, tables_of
from recsys.stats.rank_tests import sign_test, wilcoxon
from recsys.stats.results import (
    RankTestWarning,
    SkewWarning,
    SmallSampleWarning,
    StatisticsWarning,
    UnpairedWarning,
    ZeroVarianceWarning,
)

ALTERNATIVES = ["two-sided", "greater", "less"]
EXACT = {"rtol": 1e-10, "atol": 1e-14}


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_t_is_scipys(sides, alternative) -> None:
    ours = paired_t(pair(*sides), alternative=alternative, confidence=0.9)
    theirs = stats.ttest_rel(*sides, alternative=alternative)
    limits = theirs.confidence_interval(0.9)
    results = [ours.statistic, ours.p_value, ours.interval.low, ours.interval.high, ours.df]
    np.testing.assert_allclose(
        results, [theirs.statistic, theirs.pvalue, limits.low, limits.high, 39], **EXACT
    )


def test_t_over_clusters_is_the_cluster_robust_regression(sides) -> None:
    from statsmodels.regression.linear_model import OLS

    clusters = np.repeat(np.arange(10), 4)
    d = sides[0] - sides[1]
    ours = paired_t(pair(*sides, clusters=clusters))
    fit = OLS(d, np.ones(40)).fit(
        cov_type="cluster",
        cov_kwds={"groups": clusters, "use_correction": True, "df_correction": True},
        use_t=True,
    )
    # The regression also multiplies by (n - 1) / (n - k), which is 1 for a lone mean.
    results = [ours.difference, ours.statistic, ours.p_value]
    np.testing.assert_allclose(results, [fit.params[0], fit.tvalues[0], fit.pvalues[0]], **EXACT)
    assert ours.n == 10
    assert ours.p_value != pytest.approx(paired_t(pair(*sides)).p_value)


def test_t_over_uneven_clusters_is_that_of_leaving_them_out(sides) -> None:
    sizes = np.array([1, 7, 2, 6, 3, 5, 4, 4, 4, 4])
    clusters = np.repeat(np.arange(10), sizes)
    d = sides[0] - sides[1]
    ours = paired_t(pair(*sides, clusters=clusters))
    without = np.array([d[clusters != c].mean() for c in range(10)])
    error = np.sqrt(0.9 * ((without - d.mean()) ** 2).sum())
    share = sizes / 40
    odds = np.diag((1 - share) ** -1.0) @ (np.eye(10) - share[:, None])
    covariance = odds @ np.diag(share) @ odds.T
    df = np.trace(covariance) ** 2 / np.trace(covariance @ covariance)
    expected = [d.mean() / error, df, 2 * stats.t(df).sf(abs(d.mean()) / error)]
    np.testing.assert_allclose([ours.statistic, ours.df, ours.p_value], expected, **EXACT)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_sign_flip_of_few_units_is_scipys_exact_permutation(alternative) -> None:
    d = np.array([0.1, 0.1, -0.2, 0.3, 0.3, -0.1, 0.5, 0.0, 0.7])
    ours = sign_flip(d, alternative=alternative)
    theirs = stats.permutation_test(
        (d,), np.sum, permutation_type="samples", n_resamples=np.inf, alternative=alternative
    )
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-12)


def test_sign_flip_p_is_never_zero() -> None:
    rng = np.random.default_rng(0)
    certain = sign_flip(1 + 0.01 * rng.normal(size=200))
    assert 0 < certain.p_value < 1e-20
    assert sign_flip(np.ones(5) + np.arange(5) / 100).p_value == 2 / 2**5


@given(
    hnp.arrays(
        np.float64, st.integers(2, 40), elements=st.sampled_from([-1.0, -0.5, -0.1, 0.0, 0.1, 0.3, 0.5, 1.0])
    ),
    st.sampled_from([sign_flip, paired_t, wilcoxon, sign_test]),
)
def test_swapping_the_sides_swaps_the_answer(d, test) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StatisticsWarning)
        forth, back = test(d), test(-d)
        assert forth.p_value == back.p_value or np.isnan([forth.p_value, back.p_value]).all()
        up, down = test(d, alternative="greater").p_value, test(-d, alternative="less").p_value
        assert up == down or np.isnan([up, down]).all()
    assert np.isnan(forth.p_value) or 0 < forth.p_value <= 1 or (test is paired_t and forth.p_value == 0)


@pytest.mark.parametrize("method", ["studentised", "bca"])
def test_bootstrap_test_and_interval_agree(sides, method) -> None:
    """Zero lies inside the interval of confidence 1 - p and a bit, and outside that of 1 - p minus a bit."""
    result = bootstrap_test(pair(*sides), method=method)
    assert 1e-3 < result.p_value < 0.9
    for shift, inside in ((0.01, True), (-0.01, False)):
        confidence = 1 - result.p_value + shift
        interval = bootstrap_test(pair(*sides), method=method, confidence=confidence).interval
        assert (0.0 in interval) is inside


@pytest.mark.parametrize("method", ["studentised", "bca"])
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_bootstrap_inversion_is_sharp_on_skewed_values(method, side) -> None:
    """Here the acceleration matters: with its sign reversed the interval and the p-value disagree."""
    d = side * (np.random.default_rng(4).exponential(size=40) - 1.0)
    result = bootstrap_test(d, method=method, n_resamples=20_000)
    assert 0.005 < result.p_value < 0.5
    for shift, inside in ((0.002, True), (-0.002, False)):
        confidence = 1 - result.p_value + shift
        interval = bootstrap_test(d, method=method, confidence=confidence, n_resamples=20_000).interval
        assert (0.0 in interval) is inside


def test_bootstrap_test_has_a_floor_and_directions(sides) -> None:
    sure = pair(np.random.default_rng(0).normal(5, 1, 50))
    for method in ("studentised", "bca"):
        assert bootstrap_test(sure, method=method, n_resamples=500).p_value >= 1 / 501
        up = bootstrap_test(pair(*sides), method=method, alternative="greater").p_value
        down = bootstrap_test(pair(*sides), method=method, alternative="less").p_value
        assert up < 0.5 < down
        assert up + down == pytest.approx(1, abs=2e-3)


def test_cautions_are_typed_and_kept() -> None:
    rng = np.random.default_rng(1)
    with pytest.warns(SmallSampleWarning):
        assert "only 2 units: " in str(paired_t(np.array([0.1, 0.2])).notes[0])
    with pytest.warns(ZeroVarianceWarning):
        constant = paired_t(np.array([0.3 - 0.1, 0.8 - 0.6, 0.2, 0.2]))
    assert constant.statistic == np.inf
    assert constant.p_value == 2.0**-3
    assert (*map(str, constant.notes),) == (
        "every difference is the same: zero variance; t is not defined, and sign flips have p = 0.12",
    )
    with pytest.warns(ZeroVarianceWarning):
        assert np.isnan(paired_t(np.zeros(5)).p_value)
    skewed = rng.exponential(size=600) - 1.0
    for test in (wilcoxon, sign_test):
        with pytest.warns(RankTestWarning, match="type-1"):
            test(skewed)
    for shift in (0.0, 0.5):  # a rank test and a test of the mean agree on symmetric differences
        assert wilcoxon(rng.normal(shift, size=600)).notes == ()
    with pytest.warns(SkewWarning):
        sign_flip(np.where(rng.random(1000) < 0.03, 1.0, -0.03))
    with pytest.warns(UnpairedWarning, match="1 of 4"):
        assert paired_t(pair([1.0, np.nan, 3.0, 5.0], [0.5, 1.0, 2.0, 3.0])).n == 3


def test_a_caution_points_at_the_callers_line() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        paired_t(np.array([0.1, 0.2]))
        bootstrap_test(np.array([0.1, 0.2]), n_resamples=9)
    assert [w.filename for w in caught] == [__file__, __file__]


def test_what_cannot_be_tested_is_refused() -> None:
    with pytest.raises(InputError, match="equal length"):
        pair([1.0, 2.0], [1.0])
    with pytest.raises(InputError, match="infinite"):
        pair([1.0, np.inf])
    with pytest.raises(InputError, match="no pair"):
        pair([np.nan], [1.0])
    with pytest.raises(InputError, match="one-dimensional"):
        pair([[1.0, 2.0]])
    with pytest.raises(UnknownNameError, match="two-sided"):
        paired_t([1.0, 2.0, 4.0], alternative="two_sided")
    with pytest.raises(UnknownNameError):
        wilcoxon([1.0, 2.0, 4.0], method="fast")
    with pytest.raises(UnknownNameError):
        bootstrap_test([1.0, 2.0, 4.0], method="percentile")
    with pytest.raises(InputError, match="dead_zone"):
        sign_test([1.0, 2.0], dead_zone=-1)
    with pytest.raises(InputError, match="confidence"):
        paired_t([1.0, 2.0, 4.0], confidence=95)


def test_clusters_are_flipped_and_ranked() -> None:
    """Copying every case three times within its cluster must not make the evidence stronger."""
    d = np.random.default_rng(2).normal(0.2, 1, size=14)
    copied = pair(np.repeat(d, 3), clusters=np.repeat(np.arange(14), 3))
    for test in (paired_t, sign_flip, wilcoxon, sign_test):
        assert test(copied).p_value == pytest.approx(test(d).p_value, rel=1e-9)
        assert test(copied).n == 14
    many = bootstrap_test(copied).p_value
    assert many == pytest.approx(bootstrap_test(d).p_value, rel=0.15)


def test_scipy_is_imported_only_when_needed() -> None:
    code = (
        "import sys, recsys.stats.comparison, recsys.stats.online_experiments;"
        "import recsys.stats.sequential, recsys.stats.group_jackknife;"
        "assert not [m for m in sys.modules if m.startswith('scipy')];"
        "recsys.stats.paired_t([0.1, 0.2, 0.4]);"
        "assert 'scipy.stats' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_series_paired_with_an_array_keeps_its_order():
    a, b = [0.1, 0.5, 0.3, 0.9, 0.2], [0.2, 0.4, 0.1, 0.5, 0.1]
    expected = stats.ttest_rel(a, b).pvalue
    for index in (list("edcba"), [4, 3, 2, 1, 0], [1, 1, 1, 1, 1]):
        one, other = pd.Series(a, index=index), pd.Series(b, index=index)
        assert paired_t(pair(one, b)).p_value == pytest.approx(expected)
        assert paired_t(pair(a, other)).p_value == pytest.approx(expected)
    assert paired_t(pair(dict(zip("edcba", a, strict=True)), b)).p_value == pytest.approx(expected)
    tables = tables_of({"a": pd.Series(a, index=list("edcba")), "b": b}, "score")
    assert tables["a"].columns["score"].tolist() == a


def test_clusters_by_position_stay_with_their_values():
    x = pd.Series([1.0, 2, 3, 4, 5, 7], index=[5, 3, 1, 0, 2, 4])
    clusters = [0, 0, 1, 1, 2, 2]
    plain = paired_t(pair(x.to_numpy(), np.zeros(6), clusters=clusters))
    assert paired_t(pair(x, 0 * x, clusters=clusters)).p_value == plain.p_value
    assert pair(x, clusters=clusters).first.tolist() == x.tolist()
    with pytest.raises(InputError, match="by position"):
        pair(x, x.sort_index(), clusters=clusters)


@pytest.mark.parametrize("test", [paired_t, sign_flip, wilcoxon, sign_test])
def test_cases_of_a_unit_that_cancel_are_no_difference(test) -> None:
    """0.1 + 0.2 - 0.3 is 5.6e-17 in binary; two hundred users with that are not a significant difference."""
    d = pair(np.tile([0.1, 0.2, -0.3], 200), clusters=np.repeat(np.arange(200), 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not test(d).p_value < 1


@pytest.mark.parametrize("method", ["studentised", "bca"])
def test_one_unit_has_no_bootstrap_interval(method) -> None:
    with pytest.warns(SmallSampleWarning):
        result = bootstrap_test([0.3], method=method)
    assert (result.interval.low, result.interval.high) == (-np.inf, np.inf)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"weights": [1.0, 2.0]}, "weights must hold one entry per case"),
        ({"weights": [1.0, -2.0, 1.0]}, "at least 0"),
        ({"weights": [1.0, np.nan, 1.0]}, "at least 0"),
        ({"weights": [0.0, 0.0, 0.0]}, "not all 0"),
        ({"clusters": [1, 2]}, "clusters must hold one entry per case"),
        ({"ids": [1, 2]}, "ids must hold one entry per case"),
        ({"ids": [1, 1, 2]}, "more than once"),
    ],
)
def test_arguments_of_a_sample_must_have_its_length(given, match) -> None:
    with pytest.raises(InputError, match=match):
        pair([1.0, 2.0, 3.0], [0.0, 1.0, 1.0], **given)


def test_masked_values_are_left_out() -> None:
    masked = np.ma.array([1, 2, 3], mask=[0, 1, 0])
    with pytest.warns(UnpairedWarning, match="1 of 3"):
        result = pair(masked, [0.0, 0.0, 0.0])
    assert result.values.tolist() == [1.0, 3.0]


def test_intervals_contain_numbers_of_any_type() -> None:
    result = recsys.stats.Interval(-1.0, 1.0, 0.95, "t")
    assert all(number in result for number in (0, 0.5, np.int64(1), np.float32(-1)))
    assert np.int64(2) not in result
    assert "0" not in result


@pytest.mark.parametrize("draws", [0, -1, 10.5])
def test_n_resamples_is_a_whole_number(draws) -> None:
    with pytest.raises(InputError, match="n_resamples"):
        bootstrap_test([1.0, 2.0, 3.0], n_resamples=draws)


@pytest.mark.filterwarnings("ignore::recsys.stats.results.StatisticsWarning")
@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("n", [2, 5, 6, 12])
def test_constant_differences_have_the_p_of_sign_flips(n, alternative) -> None:
    """Without spread t is not defined: p is that of all 2^n sign flips, and the interval goes with it."""
    gains = np.full(n, 0.3)
    flips = np.array([0.3 * sum(signs) for signs in itertools.product([-1, 1], repeat=n)])
    beyond = {"greater": flips >= gains.sum() - 1e-9, "less": flips <= gains.sum() + 1e-9}
    p = np.mean(beyond.get(alternative, np.abs(flips) >= gains.sum() - 1e-9))
    result = paired_t(gains, alternative=alternative)
    assert result.p_value == p == sign_flip(gains, alternative=alternative).p_value
    for method in ("studentised", "bca"):
        replicates = bootstrap_test(gains, method=method, alternative=alternative, n_resamples=199)
        assert replicates.p_value >= p
        assert np.isinf(replicates.interval.low) == (n < 6)
    if alternative != "less":
        assert np.isinf(result.interval.low) == (p > 0.05)
    assert paired_t(-gains).p_value == 2.0 ** (1 - n)


def test_documents_keep_scipys_t_test_without_variance() -> None:
    """The documents name scipy.stats.ttest_rel, and 001 the effect: 0.0 unless std_diff > 0."""
    from recsys.cf.evaluation import StatisticalTester, cohens_d, paired_t_test

    old, new = [0.0, 1.0, 2.0], [1.0, 2.0, 3.0]
    for alternative in ALTERNATIVES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            theirs = stats.ttest_rel(old, new, alternative=alternative)
        with pytest.warns(ZeroVarianceWarning, match="sign flips have p = 0.25"):
            ours = paired_t_test(old, new, alternative)
        assert (ours["t_statistic"], ours["p_value"]) == (theirs.statistic, theirs.pvalue)
        assert ours["cohens_d"] == 0.0
    with pytest.warns(SmallSampleWarning):
        one = paired_t_test([0.1], [0.4])
    assert np.isnan(one["p_value"])
    assert not one["significant"]
    assert one["cohens_d"] == 0.0
    for effect in ("cohens_d", "glass_delta"):
        with pytest.warns(SmallSampleWarning):
            alone = getattr(StatisticalTester(), effect)([0.1], [0.4])
        assert np.isnan(alone[effect])
        assert alone["interpretation"] == "undefined"
    with pytest.warns(SmallSampleWarning):
        assert np.isnan(cohens_d([0.1], [0.4]))
