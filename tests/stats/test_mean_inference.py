"""One function says what is known about a mean: every test and interval of differences comes from it."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from recsys.errors import UnknownNameError
from recsys.records.arrays import PerCase
from recsys.stats.bootstrap import Resampler, Units, replicate, unit_keys
from recsys.stats.comparison import compare_tables
from recsys.stats.mean_inference import infer_mean
from recsys.stats.paired_tests import bootstrap_test, paired_t, sign_flip
from recsys.stats.pairing import pair
from recsys.stats.rank_tests import wilcoxon
from recsys.stats.results import StatisticsWarning
from recsys.stats.samples import Sample

D = np.round(np.random.default_rng(3).normal(0.1, 0.4, 80), 2)
FEW = np.repeat([0.0, 0.5, -0.25], [190, 7, 3])


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StatisticsWarning)
        yield


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_the_tests_of_pairs_are_those_of_the_function(alternative):
    sample, units = Sample.of(D), Units(unit_keys(np.arange(len(D))), D[None], np.ones((1, len(D))))
    found = {
        paired_t: infer_mean(sample, 0.0, alternative),
        sign_flip: infer_mean(sample, 0.0, alternative, test="permutation", method="sign flips"),
        bootstrap_test: infer_mean(
            units, 0.0, alternative, test="studentised", method="studentised", n_resamples=300
        ),
    }
    for test, own in found.items():
        options = {"n_resamples": 300} if test is bootstrap_test else {}
        expected = test(D, alternative=alternative, **options)
        assert (expected.p_value, expected.interval) == (own.p_value, own.interval), test
        assert expected.difference == own.estimate.value


@pytest.mark.parametrize("method", ["sign flips", "t", "normal", "bca"])
def test_the_interval_at_another_level_is_that_of_the_level(method):
    units = Units(unit_keys(np.arange(len(D))), D[None], np.ones((1, len(D))))
    drawn = replicate(units, Resampler(units.keys, 300))
    options = {"test": "permutation", "method": method, "drawn": drawn}
    found, wide = (infer_mean(Sample.of(D), confidence=level, **options) for level in (0.9, 0.99))
    assert found.at is not None
    assert (found.at(0.99), found.at(0.9)) == (wide.interval, found.interval)
    assert found.interval.method == method


def test_bounds_widen_an_interval_of_flips_to_what_was_not_seen_but_for_zero():
    sample, options = Sample.of(FEW), {"test": "permutation", "method": "sign flips"}
    seen, allowed = (infer_mean(sample, bounds=b, **options) for b in (None, (-1.0, 1.0)))
    assert allowed.p_value == seen.p_value
    assert allowed.interval.low < seen.interval.low < seen.interval.high < allowed.interval.high
    assert [one.code for one in seen.notes] == ["skewed"] or not seen.notes
    assert "skewed" not in [one.code for one in allowed.notes]
    one_way = infer_mean(Sample.of(np.abs(FEW)), bounds=(-1.0, 1.0), **options)
    assert one_way.p_value < 0.05
    assert one_way.interval.low > 0.0


def test_adjusted_values_are_tested_by_t_with_fewer_degrees_of_freedom():
    sample = Sample.of(D)
    plain = infer_mean(sample, 0.0)
    spent = infer_mean(sample, test="permutation", method="sign flips", spent=3)
    assert (spent.method, spent.df, spent.interval.method) == ("paired t", plain.df - 3, "t")
    assert spent.p_value > plain.p_value


def test_the_result_of_ranks_keeps_its_p_beside_an_interval_of_the_mean():
    ranks = wilcoxon(D)
    found = infer_mean(Sample.of(D), test=ranks, method="t")
    assert (found.method, found.p_value, found.statistic) == (ranks.method, ranks.p_value, ranks.statistic)
    assert found.interval == paired_t(D).interval


def test_too_few_that_differ_for_a_bootstrap_are_tested_by_flips():
    units = Units(unit_keys(np.arange(len(FEW))), FEW[None], np.ones((1, len(FEW))))
    found = infer_mean(units, test="bca", method="bca")
    assert (found.method, found.interval.method) == ("sign flips", "sign flips")
    assert found.notes[-1].code == "too_sparse"


def test_an_interval_of_flips_needs_a_test():
    with pytest.raises(UnknownNameError, match="interval method"):
        infer_mean(Sample.of(D), method="sign flips")


def test_a_row_of_a_comparison_is_composed_of_what_was_inferred():
    ids = np.arange(len(D))
    tables = {"old": PerCase(ids, {"m": np.zeros(len(D))}), "new": PerCase(ids, {"m": D})}
    (row,) = compare_tables(tables, baseline="old").rows
    expected = sign_flip(pair(D))
    assert (row.difference, row.p_value, row.test) == (
        expected.difference,
        expected.p_value,
        "sign flips",
    )
    assert (
        row.standard_error
        == row.found.estimate.standard_error
        == pytest.approx(D.std(ddof=1) / math.sqrt(80))
    )
    assert (row.own_interval, row.notes) == (row.found.interval, row.found.notes)
    turned = row.found.negative
    assert (turned.interval.low, turned.estimate.value) == (-row.own_interval.high, -row.difference)
    assert row == compare_tables(tables, baseline="old").rows[0]
