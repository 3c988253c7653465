"""The edges of the statistics: too few units, no difference at all, and arguments that cannot be meant."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys import sampled, stats
from recsys.errors import ColumnError, InputError, UnknownNameError
from recsys.metrics.registry import Request
from recsys.records.arrays import PerCase
from recsys.stats.comparison_table import Options, footnotes

pytestmark = pytest.mark.filterwarnings("ignore::recsys.stats.StatisticsWarning")

NAN = math.nan
LOG = {"user": [1, 2, 3, 4], "arm": list("aabb"), "sales": [1.0, 2.0, 3.0, 4.0], "none": [0, 0, 0, 0]}
COLUMNS = {"unit": "user", "variant": "arm", "metric": "sales"}


def table(ids, **columns) -> PerCase:
    return PerCase(np.array(ids), {name: np.array(values, float) for name, values in columns.items()})


@pytest.mark.parametrize(
    ("log", "options", "words"),
    [
        ({}, {"metric": []}, "name at least one metric"),
        ({}, {"expected_effect": 0}, "expected_effect is 0. Pass a positive number of standard deviations"),
        ({}, {"expected_effect": math.inf}, "expected_effect is inf"),
        ({}, {"shares": [0.5, 0.5]}, "shares came as list. Pass {variant: number}"),
        ({}, {"shares": {"a": "x", "b": 1}}, "shares came as dict"),
        ({}, {"metric": "sales/none"}, "the denominator of a ratio adds up to zero"),
        ({"arm": list("aab")}, {}, "user has 4 rows and arm 3"),
        ({"sales": [1.0, 2.0]}, {}, "sales has 2 rows, and the units 4"),
        ({"sales": [[1.0], [2.0], [3.0], [4.0]]}, {}, "the column 'sales' has 2 dimensions"),
    ],
)
def test_an_experiment_that_cannot_be_meant_is_refused(log, options, words):
    with pytest.raises(InputError) as caught:
        recsys.ab(LOG | log, **(COLUMNS | options))
    assert words in str(caught.value)


def test_a_covariate_that_is_the_same_for_all_changes_nothing():
    plain, adjusted = (
        recsys.ab(LOG, **COLUMNS, **more)["b", "sales"] for more in ({}, {"covariate": "none"})
    )
    assert (adjusted.difference, adjusted.p_value) == (plain.difference, plain.p_value)
    assert adjusted.difference == 2.0


@pytest.mark.parametrize(
    ("tables", "more", "words"),
    [
        ({"a": {"m": [1, 0]}, "b": {"q": [1, 0]}}, {}, "the tables share no metric"),
        ({"a": {"m": [1, 0]}, "b": {"m": [1, 0]}}, {"metrics": []}, "there is nothing to compare"),
    ],
)
def test_tables_without_a_metric_in_common_are_refused(tables, more, words):
    with pytest.raises(InputError, match=words):
        stats.compare_tables({name: table([1, 2], **columns) for name, columns in tables.items()}, **more)


def test_runs_that_cannot_be_paired_are_refused():
    one, two = table([1, 2], m=[1, NAN]), table([1, 2], m=[NAN, 1])
    other = table([3, 4], m=[1, 0.5])
    with pytest.raises(InputError, match="a run of the two sides has no case in common on 'm'"):
        stats.compare_tables({"a": [one, other], "b": [two, other]})
    with pytest.raises(InputError, match="a model has no run at all"):
        stats.compare_tables({"a": [], "b": [one]})
    seeds = Options(runs="seeds")
    with pytest.raises(InputError, match="runs are compared one by one, but there are 2 and 3") as caught:
        stats.compare_tables({"a": [other] * 3, "b": [other] * 2}, options=seeds)
    assert "or one for the baseline" in str(caught.value)
    with pytest.raises(
        InputError, match=r"the baseline has shape \(2, 2\), its differences have shape \(2, 3\)"
    ):
        stats.seeds(np.ones((2, 3)), baseline=np.ones((2, 2)))


def test_runs_whose_users_cancel_out_show_no_difference():
    found = stats.seeds(np.tile([1.0, -1.0, 2.0, -2.0], (3, 1)))
    assert (found.difference, found.p_value) == (0.0, 1.0)


def test_a_family_is_tested_where_every_model_has_a_value():
    tables = {"a": table([1, 2], m=[1, NAN]), "b": table([1, 2], m=[NAN, 1]), "c": table([1, 2], m=[1, 1])}
    with pytest.raises(InputError, match="no case has a value of 'm' from every model"):
        stats.omnibus(tables, "m")
    with pytest.raises(InputError, match=r"p-values must be one-dimensional, got shape \(1, 2\)"):
        stats.adjust([[0.1, 0.2]])
    with pytest.raises(InputError, match="there is nothing to align: no table was given"):
        stats.align({}, ["m"])


def test_two_users_have_no_corrected_effect_and_equal_sides_none_to_speak_of():
    two = stats.pair([1.0, 2.0], [1.5, 1.0])
    effect = stats.hedges_g(two, kind="paired")
    assert (effect.label, effect.n) == ("undefined", 2)
    assert math.isnan(effect.value)
    same = stats.rank_biserial(stats.pair([1.0, 2.0, 4.0], [1.0, 2.0, 4.0]))
    assert (same.value, same.n, same.label) == (0.0, 0, "negligible")


def test_few_units_are_said():
    two = stats.pair([1.0, 2.0], [1.5, 1.0])
    found = stats.statistic_permutation(two, lambda a, b: float((a - b).mean()))
    assert (found.difference, found.p_value) == (0.25, 1.0)
    assert (*map(str, found.notes),) == ("only 2 units: no test can say much here",)
    three = stats.pair([1.0, 2.0, 4.0], [1.5, 1.0, 1.0])
    assert stats.statistic_permutation(three, lambda a, b: float((a - b).mean())).notes == ()
    rare = stats.statistic_interval([0.0] * 30 + [1.0] * 2, np.mean, n_resamples=50)
    assert rare.value == 2 / 32
    assert str(rare.notes[0]).startswith("2 of 32 units differ from the rest: the interval is too narrow")
    lists, truth = {1: ["a"], 2: ["b", "a"]}, {1: ["a"], 2: ["a"]}
    trimmed = recsys.evaluate(lists, truth, "mrr", aggregate="trimmed(0.1)")
    assert trimmed["mrr"] == 0.75
    assert "only 2 users: an interval means little here" in trimmed.intervals().to_text()


def test_words_that_name_no_way_to_resample_are_refused():
    keys = np.arange(4, dtype=np.uint64)
    units = stats.Units(keys, np.array([[1.0, 2.0, 3.0, 4.0]]), np.ones((1, 4)))
    replicates = stats.replicate(units, stats.Resampler(keys, n_resamples=20))
    with pytest.raises(UnknownNameError, match="unknown bootstrap interval 'zzz'"):
        replicates.limits("zzz", 0.95)
    with pytest.raises(UnknownNameError, match="unknown bootstrap test 'percentile'"):
        replicates.p_values("percentile", "two-sided")
    with pytest.raises(InputError, match="statistic came as int"):
        stats.catalogue_jackknife(np.ones((4, 2)), 5)


@pytest.mark.parametrize("name", ["covariates", "strata"])
def test_users_without_a_column_explain_nothing(name):
    models = {
        "a": recsys.evaluate({1: ["a"], 2: ["b"]}, {1: ["a"], 2: ["a"]}, "mrr"),
        "b": recsys.evaluate({1: ["b"], 2: ["a"]}, {1: ["a"], 2: ["a"]}, "mrr"),
    }
    with pytest.raises(ColumnError, match=f"{name} has no column other than the users"):
        recsys.compare(models, **{name: pd.DataFrame({"user": [1, 2]})})


def test_without_a_correction_no_corrected_p_is_explained_and_an_unknown_row_is_named():
    tables = {"a": table(range(4), m=[1, 0, 1, 0]), "b": table(range(4), m=[1, 1, 0.5, 0])}
    plain, holm = (
        stats.compare_tables(tables, options=Options(correction=correction))
        for correction in ("none", "holm")
    )
    assert any("p_holm: corrected for all comparisons of the family" in note for note in footnotes(holm))
    assert not any("p_" in note for note in footnotes(plain))
    with pytest.raises(UnknownNameError, match=r"unknown model and metric \('z', 'm'\)"):
        plain["z", "m"]


def test_a_sample_of_equal_models_picks_either():
    assert sampled.winner_probability([1, 2, 3], [1, 2, 3], 9, 100, "hit@5") == 0.5
    assert sampled.winner_probability([1, 1], [1, 1], 99, 100, "hit@5", ranks="true") == 0.5
    assert sampled.winner_probability([1, 1], [100, 100], 99, 100, "hit@5", ranks="true") == 1.0
    with pytest.raises(InputError, match="method='mle' gives no value per case"):
        sampled.winner_probability([1, 2, 3], [4, 2, 3], 9, 100, "hit@5", method="mle")


def test_ranks_may_be_a_distribution_and_a_metric_a_request():
    ranks = sampled.fit_ranks(np.array([1, 2, 3, 50]), n_negatives=99, n_items=1000)
    found = sampled.expected_error("hit@10", 99, 1000, ranks=ranks)
    assert found.truth == pytest.approx(ranks.mean_of("hit@10"), abs=1e-3)
    assert found.expected == pytest.approx(0.75, abs=1e-6)
    for metric in (Request.of("hit@2"), "hit@2"):
        kind = {"metric": metric, "n_negatives": 9, "n_items": 100, "method": "uncorrected"}
        assert sampled.estimate([1, 2, 3], **kind).value == 2 / 3
    with pytest.raises(InputError, match="5000 negatives are more than 4096") as caught:
        sampled.expected_error("hit@10", 5000, 10_000, ranks="log")
    assert "Rank the whole catalogue instead." in str(caught.value)


def test_clusters_that_cannot_be_ordered_are_refused():
    clusters = np.empty(3, dtype=object)
    clusters[:] = [pd.DataFrame({"a": [1]}), np.array([1, 2]), [3]]
    with pytest.raises(InputError, match="DataFrame and list and ndarray, which have no order"):
        sampled.estimate([1, 2, 3], 5, 10, "ndcg@2", clusters=clusters)
