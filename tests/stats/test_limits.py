"""Where one method ends and the next begins, and the last argument that a test accepts."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from recsys.errors import InputError
from recsys.stats.margins import bayes_paired, equivalence, non_inferiority
from recsys.stats.mean_inference import bounded_mean_test, spread_notes
from recsys.stats.paired_tests import bootstrap_test, normality, paired_t, sign_flip, statistic_permutation
from recsys.stats.pairing import pair
from recsys.stats.rank_tests import rank_notes, sign_test, signed_rank_sums, wilcoxon, without_rounding
from recsys.stats.results import RankTestWarning, SmallSampleWarning, ZeroVarianceWarning
from recsys.stats.samples import Sample


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def values(n: int) -> np.ndarray:
    """n differences, no two of the same size and none of them 0."""
    return np.linspace(-1.013, 1.5, n)


def test_all_signs_are_tried_where_at_most_19_units_differ():
    for n, rel in ((12, 1e-12), (19, 1e-12), (20, 0.02)):
        sample = values(n)
        signs = np.array([0.0])
        for size in sample:
            signs = np.concatenate([signs + size, signs - size])
        exact = np.mean(np.abs(signs) >= abs(sample.sum()) - 1e-12)
        for units in (sample, np.append(sample, np.zeros(40))):
            result = sign_flip(units)
            assert (result.method, result.n) == ("sign flips", len(units))
            assert result.p_value == pytest.approx(exact, rel=rel)


def test_p_of_all_signs_counts_the_observed_ones():
    assert sign_flip([1.0, 1.0, 1.0]).p_value == 2 / 8
    assert sign_flip([1.0, 1.0, 1.0], alternative="greater").p_value == 1 / 8
    assert sign_flip([1.0, 1.0, 1.0], alternative="less").p_value == 1.0
    assert sign_flip([1.0, -1.0, 2.0]).p_value == 6 / 8
    assert sign_flip([1.0, -1.0, 2.0], alternative="greater").p_value == 3 / 8
    assert sign_flip([1.0, -1.0, 2.0], alternative="less").p_value == 7 / 8


def test_p_of_many_equal_gains_is_small_and_never_zero():
    assert 0 < sign_flip(np.full(40, 1.0)).p_value < 1e-10
    assert 0 < sign_flip(np.full(400, 1.0)).p_value < 1e-80


def test_ranks_are_exact_up_to_50_units_and_on_request_up_to_1000():
    assert wilcoxon(values(50)).method == "Wilcoxon (exact)"
    assert wilcoxon(np.append(values(50), np.zeros(9))).method == "Wilcoxon (exact)"
    assert wilcoxon(values(51)).method == "Wilcoxon (normal, continuity correction)"
    assert wilcoxon(values(50), method="normal").method == "Wilcoxon (normal, continuity correction)"
    assert wilcoxon(values(120), method="exact").method == "Wilcoxon (exact)"
    with pytest.raises(InputError, match="got 1001"):
        wilcoxon(values(1001), method="exact")


def test_equal_sums_of_ranks_are_no_difference():
    balanced = np.repeat([1.0, -1.0], 30)
    assert wilcoxon(balanced, method="normal").p_value == 1.0


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_rank_tests_are_those_of_scipy(alternative):
    generator = np.random.default_rng(7)
    for n in (5, 12, 30, 70):
        sample = np.round(generator.normal(0.3, 1.0, n), 2)
        sample = sample[sample != 0]
        untied = len(np.unique(np.abs(sample))) == len(sample)
        if untied and n <= 50:
            theirs = stats.wilcoxon(sample, alternative=alternative, method="exact").pvalue
            assert wilcoxon(sample, alternative=alternative, equal_within=0).p_value == pytest.approx(theirs)
        theirs = stats.wilcoxon(sample, alternative=alternative, method="approx", correction=True).pvalue
        ours = wilcoxon(sample, alternative=alternative, method="normal", equal_within=0).p_value
        assert ours == pytest.approx(theirs, rel=1e-9)
        plus, minus = signed_rank_sums(sample, equal_within=0)
        assert plus + minus == len(sample) * (len(sample) + 1) / 2
        assert wilcoxon(sample, alternative=alternative, equal_within=0).statistic == plus


def test_rank_tests_of_nothing_but_zeros():
    result = wilcoxon([0.0, 0.0, 0.0])
    assert (result.p_value, result.statistic, result.n) == (1.0, 0.0, 0)
    result = sign_test([0.0, 0.0, 0.0])
    assert (result.p_value, result.statistic, result.n) == (1.0, 0.0, 0)


def test_large_samples_of_rank_tests_are_warned_of():
    assert rank_notes(499) == ()
    with pytest.warns(RankTestWarning):
        assert len(rank_notes(500)) == 1


def test_two_units_are_too_few_and_three_are_not():
    with pytest.warns(SmallSampleWarning):
        assert len(spread_notes(Sample.of(np.array([1.0, 2.0])))) == 1
    assert spread_notes(Sample.of(np.array([1.0, 2.0, 4.0]))) == ()
    with pytest.warns(ZeroVarianceWarning, match=r"sign flips have p = 0\.25"):
        assert len(spread_notes(Sample.of(np.array([2.0, 2.0, 2.0])))) == 1
    with pytest.warns(ZeroVarianceWarning, match="zero variance$"):
        spread_notes(Sample.of(np.zeros(3)))
    with pytest.warns(ZeroVarianceWarning, match="every value is the same: zero variance$"):
        spread_notes(Sample.of(np.full(3, 2.0)), "value")


def test_the_normality_of_more_than_5000_values_has_another_test():
    sample = np.random.default_rng(1).normal(size=5001)
    assert normality(sample[:5000]).method == "Shapiro-Wilk"
    assert normality(sample).method == "D'Agostino-Pearson"
    assert normality(sample[:5000]).p_value == stats.shapiro(sample[:5000]).pvalue
    assert normality(sample).p_value == stats.normaltest(sample).pvalue
    assert math.isnan(normality(sample[:2]).p_value)
    assert 0 <= normality(sample[:3]).p_value <= 1
    assert math.isnan(normality(np.ones(4)).p_value)


def test_every_swap_is_tried_where_the_draws_allow_it():
    d = pair([3.0, 1.0, 2.0], [1.0, 2.0, 0.0])

    def difference(first: np.ndarray, second: np.ndarray) -> float:
        return float(first.mean() - second.mean())

    exact = statistic_permutation(d, difference, n_resamples=8)
    assert exact.method == "paired permutation (exact)"
    assert (exact.statistic, exact.p_value) == (1.0, 4 / 8)
    assert statistic_permutation(d, difference, alternative="greater", n_resamples=8).p_value == 2 / 8
    assert statistic_permutation(d, difference, alternative="less", n_resamples=8).p_value == 7 / 8
    drawn = statistic_permutation(d, difference, n_resamples=7)
    assert drawn.method == "paired permutation (7 draws)"
    assert drawn.p_value * 8 == round(drawn.p_value * 8)


def test_a_bootstrap_needs_60_units_that_differ_or_most_of_them():
    def of(differing: int, n: int) -> str:
        sample = np.append(
            values(differing + 1)[values(differing + 1) != 0][:differing], np.zeros(n - differing)
        )
        return bootstrap_test(sample, n_resamples=99).method

    assert of(59, 200).startswith("sign flips")
    assert of(60, 200).startswith("studentised bootstrap")
    assert of(40, 81).startswith("sign flips")
    assert of(41, 81).startswith("studentised bootstrap")


def test_the_dead_zone_holds_its_ends():
    result = sign_test([0.1, 0.2, -0.1, 0.3, -0.4], dead_zone=0.1)
    assert (result.statistic, result.n) == (2.0, 3)
    assert result.p_value == 1.0
    assert sign_test([0.1, 0.2, 0.3]).p_value == 0.25
    assert sign_test([0.1, 0.2, 0.3], alternative="greater").p_value == 0.125
    assert sign_test([0.1, 0.2, 0.3], alternative="less").p_value == 1.0
    for wrong in (-0.1, math.nan, "0.1"):
        with pytest.raises(InputError):
            sign_test([0.1], dead_zone=wrong)


def test_what_counts_as_rounding_is_a_share_below_1():
    sizes = np.array([1.0, -1.05, 2.0])
    assert without_rounding(sizes, 0).tolist() == [1.0, -1.05, 2.0]
    assert without_rounding(sizes, 0.03).tolist() == [1.0, -1.0, 2.0]
    assert without_rounding(np.array([0.01, 2.0]), 0.01).tolist() == [0.0, 2.0]
    assert without_rounding(np.array([-0.03, 2.0]), 0.01).tolist() == [-0.03, 2.0]
    assert without_rounding(sizes, 0.999).tolist() == [0.0, 0.0, 0.0]
    for wrong in (-1e-9, 1.0, math.nan):
        with pytest.raises(InputError):
            without_rounding(sizes, wrong)


def test_the_t_test_on_paper():
    result = paired_t([1.0, 2.0, 3.0, 6.0])
    assert result.difference == 3.0
    assert result.statistic == pytest.approx(3 / (math.sqrt(14 / 3) / 2))
    assert (result.n, result.df) == (4, 3)
    for alternative in ("two-sided", "greater", "less"):
        ours = paired_t([1.0, 2.0, 3.0, 6.0], alternative=alternative)
        theirs = stats.ttest_1samp([1.0, 2.0, 3.0, 6.0], 0.0, alternative=alternative)
        ends = theirs.confidence_interval(0.95)
        assert ours.p_value == pytest.approx(theirs.pvalue)
        assert (ours.interval.low, ours.interval.high) == pytest.approx((ends.low, ends.high))


def test_equivalence_on_paper():
    sample = np.random.default_rng(3).normal(0.02, 0.3, 80)
    mean, error = sample.mean(), sample.std(ddof=1) / math.sqrt(80)
    result = equivalence(sample, (-0.1, 0.2))
    assert result.margin == (-0.1, 0.2)
    assert result.p_above_low == pytest.approx(stats.t.sf((mean + 0.1) / error, 79))
    assert result.p_below_high == pytest.approx(stats.t.cdf((mean - 0.2) / error, 79))
    assert result.p_value == max(result.p_above_low, result.p_below_high)
    assert (result.interval.low, result.interval.high) == pytest.approx(
        stats.t.interval(0.9, 79, mean, error)
    )
    assert equivalence(sample, 0.1).margin == (-0.1, 0.1)
    one_side = non_inferiority(sample, 0.1)
    assert one_side.p_value == one_side.p_above_low == pytest.approx(result.p_above_low)
    assert one_side.p_below_high == 0.0
    assert one_side.interval.low == pytest.approx(mean + error * stats.t.ppf(0.05, 79))
    assert one_side.interval.high == math.inf
    for wrong in ((0.1, 0.1), (0.2, 0.1), (0.1, 0.2, 0.3)):
        with pytest.raises(InputError):
            equivalence(sample, wrong)
    for wrong in (0.0, -0.1, math.nan):
        with pytest.raises(InputError):
            non_inferiority(sample, wrong)


def test_the_posterior_on_paper():
    sample = np.random.default_rng(4).normal(0.02, 0.3, 80)
    mean, error = sample.mean(), sample.std(ddof=1) / math.sqrt(80)
    result = bayes_paired(sample, (-0.02, 0.05))
    assert result.p_worse == pytest.approx(stats.t.cdf((-0.02 - mean) / error, 79))
    assert result.p_better == pytest.approx(stats.t.sf((0.05 - mean) / error, 79))
    assert result.p_worse + result.p_equal + result.p_better == pytest.approx(1.0)
    assert (result.interval.low, result.interval.high) == pytest.approx(
        stats.t.interval(0.95, 79, mean, error)
    )
    wide = bayes_paired(sample, 0.05, correlation=0.2)
    assert wide.scale == pytest.approx(error * math.sqrt(1 + 80 * 0.2 / 0.8))
    assert wide.rope == (-0.05, 0.05)
    assert bayes_paired(sample, correlation=0).p_equal == 0.0
    for correlation in (-0.01, 1.0, math.nan):
        with pytest.raises(InputError):
            bayes_paired(sample, correlation=correlation)
    with pytest.raises(InputError):
        bayes_paired(sample, (0.1, 0.0))


@pytest.mark.parametrize(
    ("rope", "wanted"), [(0.0, (0, 0, 1)), (2.0, (0, 1, 0)), ((3.0, 4.0), (1, 0, 0)), (1.0, (0, 1, 0))]
)
def test_the_posterior_of_equal_differences_is_a_point(rope, wanted):
    result = bayes_paired([1.0, 1.0, 1.0], rope)
    assert (result.p_worse, result.p_equal, result.p_better) == wanted


def test_few_differences_say_whether_more_are_needed():
    sample = Sample.of(np.append(np.zeros(300), [0.5, 0.2, -0.1]))
    shown = bounded_mean_test(sample, -0.2, (-1.0, 1.0), "greater")
    assert shown.p_value < 0.05
    assert (*map(str, shown.notes),) == ("3 of 303 users differ: the bound allows for what was not seen",)
    open_ = bounded_mean_test(sample, -0.005, (-1.0, 1.0), "greater")
    assert open_.p_value > 0.05
    assert str(open_.notes[0]).endswith("more like these would be needed")
    assert bounded_mean_test(sample, -0.005, (-1.0, 1.0), "greater", confidence=0.01).notes == shown.notes
    unknown = bounded_mean_test(sample, -0.2, (-math.inf, math.inf), "greater")
    assert math.isnan(unknown.p_value)
    assert (unknown.interval.low, unknown.interval.high) == (-math.inf, math.inf)
    many = Sample.of(values(40))
    assert bounded_mean_test(many, -0.2, (-math.inf, 1.0), "greater") is None
    bound, plain = (
        found.p_value
        for found in (
            bounded_mean_test(many, -0.2, (-1.5, 1.5), "greater"),
            paired_t(values(40) + 0.2, alternative="greater"),
        )
    )
    assert plain < bound < plain + 0.01
