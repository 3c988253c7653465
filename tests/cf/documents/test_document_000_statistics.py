"""The statistical parts of documents 000 and 001: their code as written, their definitions as oracles."""

from __future__ import annotations

import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import recsys.cf.evaluation as cf_evaluation
from recsys.cf.evaluation import BootstrapEstimator, StatisticalTester, bootstrap_confidence_interval
from recsys.cf.evaluation.statistical_tests import cohens_d, paired_t_test
from recsys.errors import InputError
from recsys.stats.results import (
    RankTestWarning,
    SmallSampleWarning,
    UnpairedWarning,
    ZeroVarianceWarning,
)

FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Eighths: sums and differences are exact, so that a variance of zero is exactly zero.
VALUES = st.integers(0, 8).map(lambda n: n / 8)
PAIRS = st.lists(st.tuples(VALUES, VALUES), min_size=3, max_size=40)


def blocks(shared_dir, number, *words):
    """The code blocks of a document that contain all of these words."""
    (path,) = (shared_dir / "seeds").glob(f"{number}_*.txt")
    matching = [
        code for code in FENCE.findall(path.read_text("utf-8")) if all(word in code for word in words)
    ]
    assert matching, words
    return matching


@pytest.fixture
def per_user():
    rng = np.random.default_rng(3)
    base = rng.choice([0.0, 0.0, 0.25, 0.5, 1.0], size=400)
    better = np.clip(base + rng.choice([0.0, 0.0, 0.25, -0.125], size=400), 0, 1)
    return better, base


@pytest.mark.shared
def test_the_blocks_of_document_000_run_as_written(shared_dir, per_user, capsys):
    model, base = per_user
    names = {
        "als_per_user_recall": model,
        "pop_per_user_recall": base,
        "cf_per_user_recall": model,
        "baseline_per_user_recall": base,
    }
    (short,) = blocks(shared_dir, "000", "StatisticalTester", "model_scores=")
    (long,) = blocks(shared_dir, "000", "wilcoxon_result", "cohens_d")
    (boot,) = blocks(shared_dir, "000", "BootstrapEstimator", "n_permutations")
    for code in (short, long, boot):
        scope = dict(names)
        exec(code, scope)  # noqa: S102 - the document's own code
    printed = capsys.readouterr().out
    p = stats.ttest_rel(model, base, alternative="greater").pvalue
    assert f"Significant improvement (p={p:.4f})" in printed
    assert f"Mean difference: {(model - base).mean():.4f}" in printed
    pooled = math.sqrt((model.var(ddof=1) + base.var(ddof=1)) / 2)
    assert f"Effect size (Cohen's d): {(model - base).mean() / pooled:.3f}" in printed
    assert "95% CI: [" in printed
    assert scope["perm_result"]["p_value"] == pytest.approx(2 * p, rel=1)  # of all permutations
    assert scope["ci"]["lower"] < model.mean() < scope["ci"]["upper"]


@pytest.fixture(scope="module")
def document_001(shared_dir):
    (code,) = blocks(shared_dir, "001", "def paired_t_test")
    scope = {"np": np}
    exec("from typing import *\n" + code, scope)  # noqa: S102
    return scope


@pytest.mark.shared
@given(pairs=PAIRS)
def test_the_t_test_of_document_001_agrees(document_001, pairs):
    a, b = map(list, zip(*pairs, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = document_001["paired_t_test"](a, b)
        ours = paired_t_test(a, b)
    assert set(theirs) <= set(ours)
    for key in ("mean_improvement", "p_value", "t_statistic", "cohens_d"):
        assert ours[key] == pytest.approx(theirs[key], rel=1e-10, abs=1e-12, nan_ok=True), key
    assert ours["significant"] == theirs["significant"]
    assert ours["interpretation"] == theirs["interpretation"]


@pytest.mark.shared
def test_the_bootstrap_of_document_001_agrees(document_001, per_user):
    values = per_user[0]
    np.random.seed(0)  # noqa: NPY002 - the document's function uses the global generator
    theirs = document_001["bootstrap_confidence_interval"](values.tolist(), n_bootstrap=4000)
    ours = bootstrap_confidence_interval(values.tolist(), n_bootstrap=4000)
    assert ours == pytest.approx(theirs, abs=0.15 * (theirs[1] - theirs[0]))
    assert ours == bootstrap_confidence_interval(metric_values=values, n_bootstrap=4000, confidence=0.95)


@pytest.mark.shared
def test_samples_must_have_equal_length_as_in_document_001(document_001):
    for t_test in (document_001["paired_t_test"], paired_t_test):
        with pytest.raises(ValueError, match="length"):
            t_test([1.0, 2.0], [1.0])


def test_the_t_test_takes_the_sample_names_of_both_documents(per_user):
    model, base = per_user
    tester = StatisticalTester(significance_level=0.01)
    positional = tester.paired_t_test(model, base, "greater")
    named = tester.paired_t_test(model_scores=model, baseline_scores=base, alternative="greater")
    turned = {"mean_improvement", "cohens_d", "cohens_d_kind"}
    assert {key for key in positional if positional[key] != named[key]} == turned
    assert named["mean_improvement"] == named["mean_diff"] == positional["mean_diff"] > 0
    assert named["cohens_d"] == -positional["cohens_d"] > 0
    assert paired_t_test(baseline_scores=base, model_scores=model)["mean_improvement"] == named["mean_diff"]
    assert positional == tester.paired_t_test(metrics_a=model, metrics_b=base, alternative="greater")
    assert positional["mean_diff"] == -positional["mean_improvement"] == pytest.approx((model - base).mean())
    assert positional["std_diff"] == pytest.approx((model - base).std(ddof=1), rel=1e-12)
    assert positional["cohens_d"] == pytest.approx((base - model).mean() / (base - model).std(ddof=1))
    assert "second - first" in positional["cohens_d_kind"]
    assert paired_t_test(model, base, 1e-14)["significant"] is False
    assert paired_t_test(model, base, alpha=0.05)["significant"] is True
    with pytest.raises(InputError, match="sample"):
        tester.paired_t_test(model)
    with pytest.raises(TypeError, match="wrong"):
        tester.paired_t_test(model, base, wrong=1)
    with pytest.raises(TypeError, match="both"):
        tester.paired_t_test(model, base, model_scores=model)
    with pytest.raises(InputError, match="significance"):
        StatisticalTester(significance_level=5)


def test_two_series_are_paired_by_index(per_user):
    model, base = per_user
    users = np.arange(400) + 7
    shuffled = pd.Series(base, index=users).sample(frac=1.0, random_state=1)
    result = paired_t_test(pd.Series(model, index=users), shuffled)
    assert result["p_value"] == pytest.approx(stats.ttest_rel(model, base).pvalue, rel=1e-10)
    by_name = paired_t_test(dict(zip(users.tolist(), model, strict=True)), shuffled.to_dict())
    assert by_name["t_statistic"] == pytest.approx(result["t_statistic"], rel=1e-12)
    with pytest.warns(UnpairedWarning, match="the second sample lacks 5"):
        fewer = paired_t_test(pd.Series(model, index=users), pd.Series(base, index=users)[5:])
    assert fewer["n"] == 395
    with pytest.raises(InputError, match="more than once"):
        paired_t_test(pd.Series([1.0, 2.0], index=[1, 1]), pd.Series([1.0, 2.0]))


def test_doubtful_samples_warn_and_give_a_result():
    with pytest.warns(SmallSampleWarning):
        two = paired_t_test([1.0, 2.0], [0.0, 0.5])
    assert two["p_value"] == pytest.approx(stats.ttest_rel([1.0, 2.0], [0.0, 0.5]).pvalue)
    assert two["warnings"]
    with pytest.warns(ZeroVarianceWarning):
        flat = paired_t_test([1.0, 2.0, 3.0], [0.0, 1.0, 2.0])
    assert flat["cohens_d"] == 0.0
    assert flat["std_diff"] == 0.0
    with pytest.warns(UnpairedWarning, match="1 of 4"):
        gone = paired_t_test([1.0, 2.0, np.nan, 5.0], [0.0, 1.5, 2.0, 2.0])
    assert gone["n"] == 3
    with pytest.warns(ZeroVarianceWarning):
        none = StatisticalTester().cohens_d([1.0] * 4, [2.0] * 4)
    assert (none["cohens_d"], none["interpretation"]) == (0.0, "undefined")
    with pytest.warns(ZeroVarianceWarning):
        assert StatisticalTester().glass_delta([1.0, 2.0, 3.0], [1.0, 1.0, 1.0])["glass_delta"] == 0.0
    with pytest.warns(SmallSampleWarning):
        assert StatisticalTester().cohens_d([1.0, 2.0], [1.0, 3.0])["warnings"]
    with pytest.warns(UnpairedWarning, match="values left out"):
        assert StatisticalTester().confidence_interval([1.0, np.nan, 3.0, 4.0])["n"] == 3


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_wilcoxon_agrees_with_scipy(per_user, alternative):
    tester = StatisticalTester()
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=20), rng.normal(size=20)
    for method, theirs in (("exact", "exact"), ("normal", "approx")):
        ours = tester.wilcoxon_test(a, b, alternative, method=method)
        expected = stats.wilcoxon(a, b, alternative=alternative, method=theirs, correction=True)
        assert ours["p_value"] == pytest.approx(expected.pvalue, rel=1e-10)
        assert ours["statistic"] == expected.statistic
    with_ties = tester.wilcoxon_test(*per_user, alternative)
    theirs = stats.wilcoxon(*per_user, alternative=alternative, method="approx", correction=True)
    assert with_ties["p_value"] == pytest.approx(theirs.pvalue, rel=1e-10)
    assert with_ties["w_plus"] + with_ties["w_minus"] == with_ties["n"] * (with_ties["n"] + 1) / 2
    tester.wilcoxon_test(np.arange(600.0), np.arange(600.0)[::-1] + 0.5)  # symmetric: as the t-test decides
    with pytest.warns(RankTestWarning):
        tester.wilcoxon_test(np.random.default_rng(0).exponential(size=600), np.ones(600))


def test_effect_sizes_are_their_formulas(per_user):
    a, b = per_user
    pooled = math.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2)
    result = StatisticalTester().cohens_d(a, b)
    assert cohens_d(a, b) == result["cohens_d"] == pytest.approx((a - b).mean() / pooled, rel=1e-12)
    delta = StatisticalTester().glass_delta(a, b)
    assert delta["glass_delta"] == pytest.approx((a - b).mean() / b.std(ddof=1), rel=1e-12)


@pytest.mark.parametrize(
    ("shift", "word"), [(0.1, "small (negligible)"), (0.3, "small"), (0.6, "medium"), (1.0, "large")]
)
def test_labels_follow_the_decision(shift, word):
    base = np.random.default_rng(0).normal(size=500)
    base = (base - base.mean()) / base.std(ddof=1)
    assert StatisticalTester().cohens_d(base + shift, base)["interpretation"] == word


def test_the_interval_is_students_t(per_user):
    values = per_user[0]
    result = StatisticalTester(significance_level=0.1).confidence_interval(values)
    low, high = stats.t.interval(0.9, len(values) - 1, values.mean(), stats.sem(values))
    assert (result["lower"], result["upper"]) == pytest.approx((low, high), rel=1e-12)
    assert result["margin_of_error"] == pytest.approx(high - values.mean())


def test_corrections_are_monotone_and_keep_names():
    tester = StatisticalTester()
    holm = tester.holm_bonferroni_correction([0.010, 0.011, 0.012])
    assert holm["adjusted_p_values"] == pytest.approx([0.030, 0.030, 0.030])
    named = tester.bonferroni_correction({"als": 0.01, "bpr": 0.04})
    assert named["adjusted_p_values"] == pytest.approx({"als": 0.02, "bpr": 0.08})
    assert named["significant"] == {"als": True, "bpr": False}
    assert named["n_significant"] == 1


def test_bootstrap_of_the_mean(per_user):
    values = per_user[0]
    estimator = BootstrapEstimator(n_bootstrap=2000, random_seed=1)
    assert estimator.bootstrap_ci(values) == BootstrapEstimator(2000, 1).bootstrap_ci(values)
    for method in ("bca", "percentile"):
        ours = estimator.bootstrap_ci(values, confidence=0.9, method=method)
        theirs = stats.bootstrap(
            (values,), np.mean, confidence_level=0.9, method=method, n_resamples=2000, rng=1
        ).confidence_interval
        width = theirs.high - theirs.low
        assert (ours["lower"], ours["upper"]) == pytest.approx((theirs.low, theirs.high), abs=0.1 * width)


def test_permutation_is_paired(per_user):
    model, base = per_user
    rng = np.random.default_rng(5)
    score = rng.random(200)
    result = BootstrapEstimator().permutation_test(score + 0.01 + 0.001 * rng.random(200), score, 999)
    assert result["p_value"] < 1e-50  # of all permutations: 2 of 2^200 are as far from 0
    few_a, few_b = model[:9] + rng.normal(0, 0.1, 9), base[:9]
    theirs = stats.permutation_test(
        (few_a, few_b), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=np.inf
    )
    ours = BootstrapEstimator().permutation_test(few_a, few_b)
    assert ours["p_value"] == pytest.approx(theirs.pvalue, rel=1e-12)
    assert ours["observed_diff"] == pytest.approx(theirs.statistic)
    lower = BootstrapEstimator().permutation_test(model, base, 500, alternative="less")
    assert lower["p_value"] > 0.99
    assert lower["significant"] is False


def test_every_name_can_be_imported_from_the_package():
    assert {"StatisticalTester", "BootstrapEstimator", "paired_t_test", "cohens_d"} <= set(dir(cf_evaluation))
    for name in ("StatisticalTester", "bootstrap_confidence_interval"):
        assert getattr(cf_evaluation, name).__name__ == name
    with pytest.raises(AttributeError, match="nobody"):
        _ = cf_evaluation.nobody


def test_an_invalid_significance_level_is_named() -> None:
    with pytest.raises(InputError, match="got 5"):
        StatisticalTester(5)
    with pytest.raises(InputError, match="got 5"):
        StatisticalTester().bonferroni_correction([0.01], alpha=5)


def test_no_resamples_are_an_error() -> None:
    a, b = [0.1, 0.5, 0.4, 0.9], [0.2, 0.3, 0.1, 0.8]
    for call in (lambda e: e.permutation_test(a, b, 0), lambda e: e.bootstrap_ci(a)):
        with pytest.raises(InputError, match="n_resamples"):
            call(BootstrapEstimator(0))


def test_one_user_has_no_interval() -> None:
    with pytest.warns(SmallSampleWarning):
        result = BootstrapEstimator().bootstrap_ci([0.3])
    assert (result["lower"], result["upper"]) == (-math.inf, math.inf)
