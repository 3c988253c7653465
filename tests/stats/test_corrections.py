"""Corrections against statsmodels, Friedman against SciPy, Nemenyi as published, max-T by hand."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from statsmodels.stats.multitest import multipletests

from recsys.errors import InputError, UnknownNameError
from recsys.stats.bootstrap import Resampler, Units, unit_keys
from recsys.stats.corrections import (
    adjust,
    adjust_best,
    flips_together,
    friedman,
    max_t,
    pairwise_confidence,
    step_down,
)
from recsys.stats.paired_tests import sign_flip
from recsys.stats.pairing import pair
from worlds.statistics import upper

ORACLES = {
    "bonferroni": "bonferroni",
    "holm": "holm",
    "hochberg": "simes-hochberg",
    "bh": "fdr_bh",
    "by": "fdr_by",
}
chances = st.floats(0, 1, allow_nan=False) | st.sampled_from([0.0, 0.01, 0.05, 0.5, 1.0])


@given(hnp.arrays(np.float64, st.integers(1, 30), elements=chances), st.sampled_from(sorted(ORACLES)))
def test_corrections_are_statsmodels_and_monotone(p, method) -> None:
    ours = adjust(p, method)
    np.testing.assert_allclose(ours, multipletests(p, method=ORACLES[method])[1], rtol=1e-10, atol=1e-15)
    order = np.argsort(p, kind="stable")
    assert np.all(np.diff(ours[order]) >= 0)
    assert np.all(ours >= p - 1e-15)
    assert ours.max() <= 1


def test_defects_of_other_libraries_are_absent() -> None:
    assert adjust([0.010, 0.011, 0.012], "holm") == pytest.approx([0.03, 0.03, 0.03])
    assert (adjust([0.005, 0.01, 0.03, 0.04], "holm") < 0.05).tolist() == [True, True, False, False]
    assert (adjust([0.02, 0.024, 0.03, 0.9], "bh") < 0.05).tolist() == [True, True, True, False]


def test_nan_stays_nan_and_is_not_counted() -> None:
    result = adjust([0.01, np.nan, 0.02], "bonferroni")
    assert np.isnan(result[1])
    assert result[[0, 2]] == pytest.approx([0.02, 0.04])
    assert adjust([], "holm").tolist() == []


def test_corrections_refuse() -> None:
    with pytest.raises(UnknownNameError, match="holm"):
        adjust([0.1], "home")
    with pytest.raises(InputError, match="outside"):
        adjust([0.1, 1.2])


@pytest.fixture
def scores() -> np.ndarray:
    grades = np.random.default_rng(2).choice([0.0, 0.2, 0.5, 1.0], size=(60, 4))
    return grades + np.array([0, 0, 0.1, 0.2])


def test_friedman_is_scipys_with_ties(scores) -> None:
    ours = friedman(scores)
    theirs = stats.friedmanchisquare(*scores.T)
    np.testing.assert_allclose([ours.statistic, ours.p_value], list(theirs), rtol=1e-10)
    f = 59 * theirs.statistic / (60 * 3 - theirs.statistic)
    assert ours.f_p_value == pytest.approx(stats.f.sf(f, 3, 177), rel=1e-10)
    assert ours.mean_ranks == pytest.approx(stats.rankdata(scores, axis=1).mean(axis=0))


@pytest.mark.parametrize(("k", "q"), [(3, 2.343), (4, 2.569), (5, 2.728), (7, 2.949), (10, 3.164)])
def test_nemenyi_critical_difference_is_the_published_one(k, q) -> None:
    table = np.random.default_rng(0).normal(size=(30, k))
    expected = q * np.sqrt(k * (k + 1) / (6 * 30))
    assert friedman(table).critical_difference == pytest.approx(expected, rel=5e-4)


def test_nemenyi_pairs_turn_significant_at_the_critical_difference(scores) -> None:
    ours = friedman(scores, list("abcd"))
    ranks = dict(zip("abcd", ours.mean_ranks, strict=True))
    for (a, b), p in ours.pairs.items():
        assert (p < 0.05) == (abs(ranks[a] - ranks[b]) > ours.critical_difference)
    assert len(ours.pairs) == 6


def test_friedman_refuses() -> None:
    assert friedman([[1.0, 2.0, 3.0], [1.0, 3.0, 2.0]]).mean_ranks == pytest.approx([1.0, 2.5, 2.5])
    with pytest.raises(InputError, match="at least 2 x 3"):
        friedman(np.ones((1, 3)))
    with pytest.raises(InputError, match="at least 2 x 3"):
        friedman(np.ones((5, 2)))
    with pytest.raises(InputError, match="finite"):
        friedman(np.full((5, 3), np.nan))


def test_step_down_is_westfall_and_youngs_recipe() -> None:
    rng = np.random.default_rng(3)
    observed, draws = np.array([2.5, -3.0, 0.4, 1.9]), rng.normal(size=(4, 500))
    raw, adjusted = step_down(observed, draws)
    order = [1, 0, 3, 2]
    steps, worst = [], 0.0
    for j in range(4):
        rivals = np.abs(draws[order[j:]]).max(axis=0)
        worst = max(worst, (1 + np.sum(rivals >= abs(observed[order[j]]))) / 501)
        steps.append(worst)
    assert adjusted[order] == pytest.approx(steps)
    assert raw == pytest.approx([(1 + np.sum(np.abs(draws[i]) >= abs(observed[i]))) / 501 for i in range(4)])


@pytest.mark.parametrize("null", ["bootstrap", "sign-flip"])
def test_max_t_uses_the_dependence(null) -> None:
    """Ten copies of one comparison are one comparison to max-T, ten to Holm."""
    d = np.random.default_rng(5).normal(0.21, 1, size=200)
    rows = np.stack([d] * 10)
    result = max_t(
        Units(unit_keys(np.arange(200)), rows, np.ones_like(rows)),
        Resampler(unit_keys(np.arange(200)), 4000),
        null=null,
    )
    assert result.adjusted == pytest.approx(result.p_values)
    assert adjust(result.p_values, "holm")[0] == pytest.approx(10 * result.p_values[0])
    assert result.p_values[0] == pytest.approx(stats.ttest_1samp(d, 0).pvalue, abs=0.01)
    assert result.family == 10


def test_max_t_is_monotone_never_zero_and_skips_the_untestable() -> None:
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(5, 300)) + np.array([0, 0.1, 0.2, 3.0, 0])[:, None]
    rows[4] = 0
    units = Units(unit_keys(np.arange(300)), rows, np.ones_like(rows))
    result = max_t(units, Resampler(units.keys, 999))
    assert np.isnan(result.adjusted[4])
    assert result.family == 4
    assert result.adjusted[:4].min() == 1 / 1000
    order = np.argsort(-np.abs(result.statistics[:4]))
    assert np.all(np.diff(result.adjusted[:4][order]) >= 0)
    assert np.all(result.adjusted[:4] >= result.p_values[:4])
    with pytest.raises(UnknownNameError):
        max_t(units, Resampler(units.keys, 9), null="permutation")


def test_large_friedman_warns() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        friedman(np.random.default_rng(0).normal(size=(600, 3)))
    assert [w.category.__name__ for w in caught] == ["RankTestWarning"]


def test_a_value_that_is_not_a_table_is_refused():
    with pytest.raises(InputError, match="units x models"):
        friedman({"a": [1.0, 2.0], "b": [2.0, 3.0], "c": [0.0, 1.0]})


def test_names_must_fit_the_models() -> None:
    with pytest.raises(InputError, match="3 different names"):
        friedman(np.eye(3), ["a", "b"])
    with pytest.raises(InputError, match="3 different names"):
        friedman(np.eye(3), ["a", "b", "b"])


def test_a_value_that_is_not_a_p_value_is_refused() -> None:
    for wrong in (["a"], {"a": 0.1}):
        with pytest.raises(InputError, match="p-values must hold numbers"):
            adjust(wrong)
    with pytest.raises(UnknownNameError, match="needs the draws"):
        adjust([0.1], "max-t")


def test_flips_together_are_single_tests_by_holm_with_intervals_by_bonferroni() -> None:
    rng = np.random.default_rng(0)
    groups = [pair(rng.standard_normal(40) + shift) for shift in (0.0, 0.5, 1.0)]
    p_values, level = flips_together(groups)
    assert p_values == pytest.approx(adjust([sign_flip(one).p_value for one in groups], "holm"))
    assert level == pytest.approx(1 - 0.05 / 3)
    assert flips_together([]) == ([], 0.95)


@pytest.mark.parametrize(("n_means", "q"), [(2, 2.772), (3, 3.314), (8, 4.286), (20, 5.012)])
def test_pairs_of_means_have_the_confidence_of_the_published_studentised_range(n_means, q) -> None:
    reach = stats.norm.isf((1 - pairwise_confidence(n_means)) / 2)
    assert reach * 2**0.5 == pytest.approx(q, abs=1e-3)


@pytest.mark.parametrize("n_models", [5, 9])
def test_the_best_of_equal_models_is_called_better_than_some_in_5_of_100_worlds_at_most(n_models):
    """Holm over the others alone forgets that the same data chose the best, and is wrong more often."""
    rng, worlds = np.random.default_rng(3), 1500
    wrong = np.zeros(2)
    for values in rng.normal(size=(worlds, n_models)):
        gaps = np.delete(values.max() - values, values.argmax()) / np.sqrt(2)
        p = 2 * stats.norm.sf(gaps)
        adjusted = adjust_best(p, ["ndcg"] * len(p)), adjust(p, "holm")
        wrong += [(one <= 0.05).any() for one in adjusted]
    ours, holm = wrong / worlds
    assert 0.02 < ours <= upper(0.05, worlds) < holm


def test_the_best_of_many_is_found_as_often_as_by_holm_over_the_others():
    rng = np.random.default_rng(4)
    found = np.zeros(2)
    for noise in rng.normal(size=(500, 5)):
        gaps = (4.0 + noise[0] - noise[1:]) / np.sqrt(2)
        p = 2 * stats.norm.sf(np.abs(gaps))
        found += [(one <= 0.05).all() for one in (adjust_best(p, ["ndcg"] * 4), adjust(p, "holm"))]
    assert found[0] / 500 > 0.5
    assert found[0] >= found[1] - 5
