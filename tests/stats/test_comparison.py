"""Comparisons of tables: paired by id, clusters respected, families stated, verdicts in words."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from recsys.errors import ColumnError, IdTypeError, InputError, NotDefinedError, UnknownNameError
from recsys.records.arrays import PerCase
from recsys.stats.comparison import compare_tables
from recsys.stats.comparison_table import Options
from recsys.stats.corrections import adjust, adjust_best
from recsys.stats.pairing import align, describe_missing
from recsys.stats.results import (
    RankTestWarning,
    SmallSampleWarning,
    UnpairedWarning,
    ZeroVarianceWarning,
)

N = 300


def table(shift=0.0, seed=0, ids=None, clusters=None, noise=0.1) -> PerCase:
    rng = np.random.default_rng(100)
    truth = rng.random((2, N))
    moved = truth + shift + noise * np.random.default_rng(seed).normal(size=(2, N))
    names = np.arange(N) if ids is None else ids
    return PerCase(names, {"ndcg@10": moved[0], "recall@10": moved[1]}, clusters)


def cut(one: PerCase, keep) -> PerCase:
    clusters = None if one.clusters is None else one.clusters[keep]
    return PerCase(one.ids[keep], {name: column[keep] for name, column in one.columns.items()}, clusters)


@pytest.fixture
def models() -> dict[str, PerCase]:
    return {"pop": table(seed=1), "als": table(0.03, seed=2), "bpr": table(seed=3)}


def test_a_row_is_scipys_t_test(models) -> None:
    options = Options(test="t", correction="none")
    result = compare_tables(models, baseline="pop", options=options)
    row = result["als", "ndcg@10"]
    a, b = models["als"].columns["ndcg@10"], models["pop"].columns["ndcg@10"]
    theirs = stats.ttest_rel(a, b)
    limits = theirs.confidence_interval()
    np.testing.assert_allclose(
        [row.statistic, row.p_value, row.interval.low, row.interval.high, row.difference, row.value],
        [theirs.statistic, theirs.pvalue, limits.low, limits.high, a.mean() - b.mean(), a.mean()],
        rtol=1e-10,
    )
    assert row.relative == pytest.approx(a.mean() / b.mean() - 1)
    assert (row.wins, row.losses) == (np.sum(a > b), np.sum(a < b))
    assert row.wins + row.ties + row.losses == N
    by_default = compare_tables(models, baseline="pop")["als", "ndcg@10"]
    assert by_default.p_value == pytest.approx(row.p_value, rel=0.05)
    low, high, width = by_default.own_interval.low, by_default.own_interval.high, limits.high - limits.low
    assert low == pytest.approx(limits.low, abs=0.01 * width)
    assert limits.high < high < limits.high + 0.3 * width  # gains as large as the values reach were not seen


def test_the_lift_interval_is_that_of_a_ratio(models) -> None:
    """Leave-one-out values of the lift give its error too, whatever the formula."""
    tables = {
        "pop": models["pop"],
        "als": PerCase(np.arange(N), {"m": 1.6 * models["als"].columns["ndcg@10"]}),
    }
    tables["pop"] = PerCase(np.arange(N), {"m": models["pop"].columns["ndcg@10"]})
    row = compare_tables(tables, baseline="pop", options=Options(interval="t")).rows[0]
    a, b = (tables[name].columns["m"] for name in ("als", "pop"))
    without = (a.sum() - a) / (b.sum() - b) - 1
    error = np.sqrt((N - 1) / N * ((without - without.mean()) ** 2).sum())
    width = row.relative_interval.high - row.relative_interval.low
    assert width == pytest.approx(2 * stats.t.ppf(0.975, N - 1) * error, rel=0.01)
    assert row.relative > 0.5


def test_the_headline_and_the_other_metrics_are_two_families(models) -> None:
    result = compare_tables(models, baseline="pop", options=Options(correction="holm"))
    assert [row.family for row in result.rows] == ["headline", "secondary"] * 2
    assert (
        result.family
        == "2 pairs of models on ndcg@10; secondary: the same on 1 other metric, 2 comparisons, holm"
    )
    for family in ("headline", "secondary"):
        rows = [row for row in result.rows if row.family == family]
        assert [r.adjusted_p for r in rows] == pytest.approx(adjust([r.p_value for r in rows], "holm"))
        assert {r.interval.confidence for r in rows} == {0.975}
        assert {r.own_interval.confidence for r in rows} == {0.95}
    other = compare_tables(models, baseline="pop", options=Options(headline="recall@10"))
    assert [row.family for row in other.rows] == ["secondary", "headline"] * 2


def test_without_a_baseline_the_best_is_compared(models) -> None:
    result = compare_tables(models, metrics=["ndcg@10"])
    assert [(r.model, r.baseline) for r in result.rows] == [("als", "pop"), ("als", "bpr")]
    pairs = [("als", "pop"), ("bpr", "pop"), ("bpr", "als")]
    options = Options(correction="max-t", n_resamples=500)
    every = compare_tables(models, pairs=pairs, metrics=["ndcg@10"], options=options)
    assert [(r.model, r.baseline) for r in every.rows] == pairs
    assert every["als", "ndcg@10"].adjusted_p == pytest.approx(1 / 501)
    assert all(r.adjusted_p >= 1 / 501 for r in every.rows)


def test_the_best_is_better_than_all_where_each_p_says_so() -> None:
    """Holm over the pairs that may be equal, and no correction for what holds of every other at once."""
    assert adjust_best(np.array([0.01, 0.02]), ["m"] * 2).tolist() == [0.02, 0.02]
    assert adjust_best(np.array([0.01, 0.2]), ["m"] * 2).tolist() == [0.03, 0.2]
    both = adjust_best(np.array([0.001, 0.04, 0.03]), ["a", "a", "b"])
    assert both.tolist() == pytest.approx([0.004, 0.06, 0.06])
    assert np.isnan(adjust_best(np.array([np.nan, 0.02]), ["m"] * 2)[0])


def test_verdicts_say_what_was_found(models) -> None:
    result = compare_tables(models, baseline="pop")
    text = str(result["als", "ndcg@10"].verdict)
    assert text.startswith("better: +")
    assert "d_z 0." in text
    assert text.endswith("p_holm < 0.0001")
    assert result["bpr", "recall@10"].verdict.kind == "no_difference"
    turned = compare_tables(models, baseline="pop", options=Options(lower_is_better=frozenset({"ndcg@10"})))
    assert turned["als", "ndcg@10"].verdict.kind == "worse"
    assert turned["als", "ndcg@10"].wins == result["als", "ndcg@10"].losses
    same = compare_tables(models, baseline="pop", options=Options(margin=0.05, rope=0.05))
    assert same["bpr", "recall@10"].verdict.kind == "equivalent"
    assert same["bpr", "recall@10"].bayes.p_equal > 0.99


def test_pairs_by_id_never_by_position(models) -> None:
    whole = compare_tables({name: models[name] for name in ("pop", "als")}, baseline="pop")
    with pytest.warns(UnpairedWarning, match="als lacks 20"):
        result = compare_tables(
            {"pop": models["pop"], "als": cut(models["als"], slice(20, None))}, baseline="pop"
        )
    row = result["als", "ndcg@10"]
    d = (models["als"].columns["ndcg@10"] - models["pop"].columns["ndcg@10"])[20:]
    assert row.n_cases == N - 20
    assert row.difference == pytest.approx(d.mean(), rel=1e-10)
    assert row.difference != pytest.approx(whole["als", "ndcg@10"].difference, rel=1e-6)
    assert result.missing["als"].tolist() == list(range(20))
    assert any("one side only" in str(note) for note in row.notes)


def test_excluded_cases_are_left_out_of_their_metric_only(models) -> None:
    holed = {
        n: PerCase(t.ids, {**t.columns, "ndcg@10": np.where(t.ids < 50, np.nan, t.columns["ndcg@10"])})
        for n, t in models.items()
    }
    result = compare_tables(holed, baseline="pop")
    assert result["als", "ndcg@10"].n_cases == N - 50
    assert result["als", "recall@10"].n_cases == N
    assert result["als", "ndcg@10"].notes == ()


@pytest.mark.parametrize("test", ["t", "permutation", "studentised", "bca", "wilcoxon", "sign"])
def test_every_test_sees_the_difference_and_spares_the_null(models, test) -> None:
    result = compare_tables(
        models, baseline="pop", options=Options(test=test, n_resamples=2000, correction="none")
    )
    assert result["als", "ndcg@10"].p_value < 0.005
    assert result["bpr", "ndcg@10"].p_value > 0.01
    assert min(r.p_value for r in result.rows) > 0


@pytest.mark.parametrize("interval", ["t", "normal", "studentised", "bca", "percentile"])
def test_every_interval_is_about_the_same_here(models, interval) -> None:
    plain = compare_tables(models, baseline="pop", options=Options(interval="t"))["als", "ndcg@10"].interval
    result = compare_tables(models, baseline="pop", options=Options(interval=interval))[
        "als", "ndcg@10"
    ].interval
    assert result.method == interval
    width = plain.high - plain.low
    assert result.low == pytest.approx(plain.low, abs=0.08 * width)
    assert result.high == pytest.approx(plain.high, abs=0.08 * width)


@pytest.mark.parametrize(
    ("test", "method"),
    [("t", "t"), ("permutation", "sign flips"), ("studentised", "studentised"), ("bca", "bca")],
)
def test_the_interval_goes_with_the_test(models, test, method) -> None:
    result = compare_tables(models, baseline="pop", options=Options(test=test, n_resamples=200))
    assert {r.interval.method for r in result.rows} == {method}
    named = compare_tables(
        models, baseline="pop", options=Options(test=test, interval="normal", n_resamples=200)
    )
    assert {r.interval.method for r in named.rows} == {"normal"}


def test_inference_is_over_clusters(models) -> None:
    """Each case three times under its user: same difference, same error."""

    def tripled(one: PerCase) -> PerCase:
        return PerCase(
            np.arange(3 * N), {n: np.repeat(c, 3) for n, c in one.columns.items()}, np.repeat(one.ids, 3)
        )

    for options in (Options(), Options(test="studentised", interval="bca", n_resamples=1000)):
        plain = compare_tables(models, baseline="pop", options=options)
        result = compare_tables({n: tripled(t) for n, t in models.items()}, baseline="pop", options=options)
        for a, b in zip(plain.rows, result.rows, strict=True):
            assert b.n_units == N
            assert b.n_cases == 3 * N
            assert b.p_value == pytest.approx(a.p_value, rel=0.01)
            assert b.interval.low == pytest.approx(a.interval.low, rel=0.01)


def test_order_of_models_and_ids_as_text_do_not_matter(models) -> None:
    named = np.sort(np.array([f"user-{i:04d}" for i in range(N)], dtype=object))
    texts = {n: PerCase(named, t.columns) for n, t in models.items()}
    plain, text = compare_tables(models, baseline="pop"), compare_tables(texts, baseline="pop")
    turned = compare_tables(dict(reversed(models.items())), baseline="pop")
    for row in plain.rows:
        assert text[row.model, row.metric].p_value == row.p_value
        assert turned[row.model, row.metric].p_value == row.p_value


def test_weights_are_used() -> None:
    rng = np.random.default_rng(0)
    w = rng.random(N)
    a, b = rng.normal(size=N), rng.normal(size=N)
    ids = np.arange(N)
    row = compare_tables(
        {"b": PerCase(ids, {"m": b}, weights=w), "a": PerCase(ids, {"m": a}, weights=w)}, baseline="b"
    ).rows[0]
    assert row.difference == pytest.approx(np.average(a - b, weights=w))
    assert row.value == pytest.approx(np.average(a, weights=w))


def test_seeds_add_the_spread_between_runs(models) -> None:
    shaky = [table(0.03 + s, seed=10 + j) for j, s in enumerate([-0.05, 0.05, -0.02, 0.03, 0.0])]
    result = compare_tables({"pop": models["pop"], "als": shaky}, baseline="pop")["als", "ndcg@10"]
    once = compare_tables({"pop": models["pop"], "als": shaky[1]}, baseline="pop")["als", "ndcg@10"]
    assert result.runs.n_runs == 5
    assert result.interval.high - result.interval.low > 3 * (once.interval.high - once.interval.low)
    assert "better in" in str(result.verdict)
    assert "of 5 runs" in str(result.verdict)


def test_a_case_missing_in_a_seed_is_missing(models) -> None:
    runs = [table(0.03, seed=20), cut(table(0.03, seed=21), slice(7, None)), table(0.03, seed=22)]
    result = compare_tables({"pop": models["pop"], "als": runs}, baseline="pop", metrics=["ndcg@10"]).rows[0]
    assert result.n_cases == N - 7
    assert result.runs.n_users == N - 7


def test_folds_get_the_corrected_test(models) -> None:
    parts = np.array_split(np.arange(N), 5)
    folded = {name: [cut(models[name], part) for part in parts] for name in ("pop", "als")}
    result = compare_tables(folded, baseline="pop")["als", "ndcg@10"]
    gaps = [
        (models["als"].columns["ndcg@10"] - models["pop"].columns["ndcg@10"])[part].mean() for part in parts
    ]
    t = np.mean(gaps) / np.sqrt((1 / 5 + 1 / 4) * np.var(gaps, ddof=1))
    assert result.p_value == pytest.approx(2 * stats.t.sf(abs(t), 4), rel=1e-10)
    assert result.test == "corrected resampled t"
    assert result.n_cases == N


def test_few_cases_permute_exactly() -> None:
    ids = np.arange(8)
    d = np.array([0.1, 0.2, 0.3, -0.1, 0.2, 0.4, 0.1, 0.3])
    tables = {"b": PerCase(ids, {"m": np.zeros(8)}), "a": PerCase(ids, {"m": d})}
    row = compare_tables(tables, baseline="b", options=Options(test="permutation")).rows[0]
    theirs = stats.permutation_test((d,), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert row.p_value == pytest.approx(theirs.pvalue)
    assert np.isnan(row.relative)
    assert str(row.verdict).startswith("better: +0.1875 [")


@pytest.mark.filterwarnings("ignore::recsys.stats.StatisticsWarning")
@pytest.mark.parametrize("test", ["t", "permutation", "wilcoxon", "sign", "studentised", "bca"])
def test_p_values_are_plain_numbers(models, test) -> None:
    rows = compare_tables(models, options=Options(test=test, n_resamples=99)).rows
    assert {type(row.p_value) for row in rows} == {float}


@pytest.mark.parametrize("test", ["t", "permutation", "wilcoxon", "sign", "studentised", "bca"])
def test_a_model_against_itself_is_identical(models, test) -> None:
    with pytest.warns(ZeroVarianceWarning):
        result = compare_tables(
            {"a": models["als"], "b": models["als"]},
            baseline="a",
            options=Options(test=test, n_resamples=200),
        )
    for row in result.rows:
        assert str(row.verdict) == "identical in this sample: all 300 units have the same value"
        assert row.difference == 0
        assert np.isnan(row.p_value) or row.p_value == 1


@pytest.mark.parametrize("n", [1, 2])
def test_very_few_cases_give_a_caution(models, n) -> None:
    few = {name: cut(one, slice(0, n)) for name, one in models.items()}
    with pytest.warns(SmallSampleWarning):
        result = compare_tables(few, baseline="pop")
    assert not any(row.adjusted_p < 0.05 for row in result.rows)


def test_rank_tests_warn_in_a_large_comparison() -> None:
    rng = np.random.default_rng(0)
    ids = np.arange(600)
    tables = {"a": PerCase(ids, {"m": np.ones(600)}), "b": PerCase(ids, {"m": rng.exponential(size=600)})}
    with pytest.warns(RankTestWarning):
        row = compare_tables(tables, baseline="a", options=Options(test="wilcoxon")).rows[0]
    assert any("type-1" in str(note) for note in row.notes)


def test_the_same_seed_the_same_answer(models) -> None:
    def drawn(seed):
        options = Options(test="studentised", interval="studentised", n_resamples=300, rng=seed)
        return [
            (r.p_value, r.interval.low) for r in compare_tables(models, baseline="pop", options=options).rows
        ]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_refusals(models) -> None:
    with pytest.raises(UnknownNameError, match="baseline"):
        compare_tables(models, baseline="popular")
    with pytest.raises(InputError, match="at least two"):
        compare_tables({"pop": models["pop"]}, baseline="pop")
    with pytest.raises(ColumnError, match=r"ndcg@10, recall@10"):
        compare_tables(models, baseline="pop", metrics=["map@10"])
    with pytest.raises(UnknownNameError, match="permutation"):
        Options(test="permutations")
    with pytest.raises(InputError, match="margin"):
        Options(margin=-1.0)
    with pytest.raises(InputError, match="one by one"):
        compare_tables({"a": [models["als"]] * 3, "b": [models["bpr"]] * 2}, baseline="b")
    with pytest.raises(InputError, match="ignores the spread between runs"):
        compare_tables(
            {"a": [models["als"]] * 3, "b": models["bpr"]}, baseline="b", options=Options(correction="max-t")
        )
    text = PerCase(np.array([str(i) for i in range(N)], dtype=object), models["als"].columns)
    with pytest.raises(IdTypeError, match="none would match"):
        compare_tables({"pop": models["pop"], "als": text}, baseline="pop")
    apart = PerCase(np.arange(N) + N, models["als"].columns)
    with pytest.raises(InputError, match="no case in common"):
        compare_tables({"pop": models["pop"], "als": apart}, baseline="pop")


def test_clusters_must_agree() -> None:
    one = table(clusters=np.arange(N) // 2)
    with pytest.raises(InputError, match="different clusters"):
        align({"a": one, "b": table(clusters=np.arange(N) // 3)}, ["ndcg@10"])
    with pytest.raises(InputError, match="no clusters"):
        align({"a": one, "b": table()}, ["ndcg@10"])
    merged = align({"a": cut(one, slice(0, 200)), "b": cut(one, slice(100, None))}, ["ndcg@10"])
    assert np.array_equal(merged.clusters, np.arange(N) // 2)
    assert merged.missing["a"].tolist() == list(range(200, 300))
    assert "a lacks 100" in str(describe_missing(merged.missing, N)[0])


def test_equivalence_is_corrected_over_the_family():
    rng = np.random.default_rng(4)
    ids = np.arange(400)
    base = rng.random(400)
    tables = {name: PerCase(ids, {"m": base + rng.normal(0, 0.13, 400)}) for name in "abcdef"}
    options = Options(margin=0.03)
    alone = compare_tables({n: tables[n] for n in "ab"}, options=options)
    whole = compare_tables(tables, baseline="a", options=options)
    raw = np.array([row.equivalence.p_value for row in whole.rows])
    text = np.array([row.verdict.kind == "equivalent" for row in whole.rows])
    assert (text == (adjust(raw, "holm") < 0.05)).all()
    assert (raw < 0.05).sum() > text.sum()
    assert (alone.rows[0].verdict.kind == "equivalent") == (alone.rows[0].equivalence.p_value < 0.05)


def test_folds_use_the_weights_of_the_metric() -> None:
    rng = np.random.default_rng(0)
    w, a, b = rng.random(N) * 5, rng.random(N), rng.random(N)
    parts = np.array_split(np.arange(N), 5)
    sides = {
        name: [PerCase(part, {"m": (b + shift * w * a)[part]}, weights=w[part]) for part in parts]
        for name, shift in (("b", 0.0), ("a", 0.1))
    }
    result = compare_tables(sides, baseline="b").rows[0]
    gaps = [np.average((0.1 * w * a)[part], weights=w[part]) for part in parts]
    assert result.runs.per_run == pytest.approx(gaps, rel=1e-12)


def test_options_that_runs_ignore_are_noted(models) -> None:
    runs = {n: [table(s, seed=seed + j) for j in range(3)] for n, s, seed in (("b", 0, 30), ("a", 0.03, 40))}
    options = Options(test="bca", interval="percentile", test_over_train=0.2)
    row = compare_tables(runs, baseline="b", options=options)["a", "ndcg@10"]
    for text in ("test='bca' is for users alone", "interval='percentile' is", "test_over_train is for folds"):
        assert any(str(note).startswith(text) for note in row.notes), row.notes
    plain = compare_tables(runs, baseline="b")["a", "ndcg@10"]
    assert (row.p_value, row.interval, plain.notes) == (plain.p_value, plain.interval, ())
    lone = compare_tables({"b": runs["b"][0], "a": runs["a"]}, baseline="b")["a", "ndcg@10"]
    assert any("single run" in str(note) for note in lone.notes)
    with pytest.raises(NotDefinedError, match="between runs"):
        row.minimal_effect()


@pytest.mark.parametrize("wrong", [{"tie": -1.0}, {"tie": float("nan")}, {"margin": (-0.1, 0.2)}])
def test_choices_are_checked(wrong) -> None:
    with pytest.raises(InputError, match=r"tie|margin"):
        Options(**wrong)


def test_the_edge_of_a_tie_is_a_tie() -> None:
    """0.3 - 0.2 and 0.4 - 0.3 are the same tenth, a little below and a little above 0.1 in binary."""
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 11, N), rng.integers(0, 11, N)
    sides = {"b": PerCase(np.arange(N), {"m": b / 10}), "a": PerCase(np.arange(N), {"m": a / 10})}
    for test in ("t", "sign"):
        row = compare_tables(sides, baseline="b", options=Options(test=test, tie=0.1)).rows[0]
        assert (row.wins, row.losses) == (np.count_nonzero(a - b > 1), np.count_nonzero(b - a > 1))
        assert row.wins + row.ties + row.losses == N
    assert row.p_value == pytest.approx(stats.binomtest(row.wins, row.wins + row.losses).pvalue)


def test_repeated_folds_are_corrected_for_the_share_tested(models) -> None:
    """Twice 5-fold is ten runs, but each is trained on four fifths: n_test / n_train is 1/4, not 1/9."""
    parts = [np.arange(N)[j::5] for j in range(5)] + np.array_split(np.arange(N), 5)
    folded = {name: [cut(models[name], part) for part in parts] for name in ("pop", "als")}
    result = compare_tables(folded, baseline="pop")["als", "ndcg@10"]
    gaps = [
        (models["als"].columns["ndcg@10"] - models["pop"].columns["ndcg@10"])[part].mean() for part in parts
    ]
    t = np.mean(gaps) / np.sqrt((1 / 10 + 1 / 4) * np.var(gaps, ddof=1))
    assert result.p_value == pytest.approx(2 * stats.t.sf(abs(t), 9), rel=1e-9)


@pytest.mark.parametrize("test", ["t", "permutation", "studentised", "bca"])
def test_corrections_never_lower_p(models, test) -> None:
    """Also under max-T, whose few draws vary around the p of the test."""
    for seed in range(20):
        options = Options(test=test, correction="max-t", n_resamples=99, rng=seed)
        for row in compare_tables(models, baseline="pop", options=options).rows:
            assert row.adjusted_p >= row.p_value


def test_max_t_is_for_means() -> None:
    for test in ("wilcoxon", "sign"):
        with pytest.raises(InputError, match="max-T corrects tests of the mean"):
            Options(test=test, correction="max-t")


@pytest.mark.parametrize("n", [12, 40])
def test_the_statistic_of_a_permutation_is_t(models, n) -> None:
    few = {name: cut(one, slice(n)) for name, one in models.items()}
    flips = compare_tables(few, baseline="pop", options=Options(test="permutation", n_resamples=99)).rows
    for row, t in zip(flips, compare_tables(few, baseline="pop").rows, strict=True):
        assert row.statistic == pytest.approx(t.statistic)


def test_every_row_says_how_it_was_tested() -> None:
    """Few differences are enumerated, many use the normal limit; one comparison may have both."""
    rng = np.random.default_rng(0)
    a, b = rng.random((2, N)), rng.random((2, N))
    a[0, 30:] = np.nan
    sides = {name: PerCase(np.arange(N), dict(zip("xy", m, strict=True))) for name, m in (("b", b), ("a", a))}
    result = compare_tables(sides, baseline="b", options=Options(test="wilcoxon"))
    assert [row.test for row in result.rows] == [
        "Wilcoxon (exact)",
        "Wilcoxon (normal, continuity correction)",
    ]


@pytest.mark.filterwarnings("ignore::recsys.stats.results.StatisticsWarning")
@pytest.mark.parametrize(
    ("test", "correction"),
    # max-T is for means only.
    [(test, "holm") for test in ("t", "permutation", "studentised", "bca", "wilcoxon", "sign")]
    + [(test, "max-t") for test in ("t", "permutation", "studentised", "bca")],
)
def test_two_users_with_the_same_gain_are_not_significant(test, correction) -> None:
    def row(n: int):
        base = np.linspace(0.1, 0.5, n)
        tables = {"b": PerCase(np.arange(n), {"m": base}), "a": PerCase(np.arange(n), {"m": base + 0.25})}
        return compare_tables(tables, baseline="b", options=Options(test=test, correction=correction)).rows[0]

    two = row(2)
    assert two.p_value == 0.5
    assert two.adjusted_p >= 0.5
    assert str(two.verdict).startswith("no clear difference: +")
    assert any("every difference is the same: zero variance" in str(note) for note in two.notes)
    for n in (5, 10, 20):
        found = row(n)
        assert found.p_value >= 2.0 ** (1 - n)
        assert str(found.verdict).startswith(
            "no clear difference" if found.adjusted_p > 0.05 else "better: +"
        )
        assert (0.0 in found.interval) == (found.p_value > 0.05)


def test_test_over_train_is_for_folds(models) -> None:
    with pytest.raises(InputError, match=r"test_over_train=0.25 is for folds, but every model has one run"):
        compare_tables(models, baseline="pop", options=Options(test_over_train=0.25))


def test_wins_are_counted_on_the_same_cases(models) -> None:
    counted = {
        name: PerCase(one.ids, {"ndcg@10": one.columns["ndcg@10"].round(1)}) for name, one in models.items()
    }
    row = compare_tables(models, baseline="pop", metrics=["ndcg@10"], counted=counted)["als", "ndcg@10"]
    a, b = counted["als"].columns["ndcg@10"], counted["pop"].columns["ndcg@10"]
    assert row.wins == np.count_nonzero(a - b > 1e-9)
    fewer = {name: cut(one, slice(0, N - 1)) for name, one in models.items()}
    others = {name: PerCase(one.ids + 1, one.columns) for name, one in models.items()}
    for wrong in (fewer, others):
        with pytest.raises(InputError, match="holds other cases"):
            compare_tables(models, baseline="pop", counted=wrong)
    with pytest.raises(InputError, match="no table of 'bpr'"):
        compare_tables(models, baseline="pop", counted={n: t for n, t in models.items() if n != "bpr"})


def test_pairs_name_models_that_are_there(models) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'als'"):
        compare_tables(models, pairs=[("pop", "alsx")])
