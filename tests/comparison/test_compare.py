"""recsys.compare and Evaluation.intervals on real evaluations, for every kind of metric."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import recsys
from recsys.errors import (
    ColumnError,
    ConventionError,
    IdTypeError,
    InputError,
    NotDefinedError,
    RecsysError,
    UnknownNameError,
)
from recsys.metrics import METRICS
from recsys.records.arrays import PerCase
from recsys.stats.comparison import compare_tables
from recsys.stats.gaffke import mean_bounds
from recsys.stats.intervals import ratio_difference, ratio_units
from recsys.stats.results import RankTestWarning, UnpairedWarning, ZeroVarianceWarning

N = 800


def lists_of(seed, share, items=300):
    rng = np.random.default_rng(seed)
    out = {}
    for user in range(N):
        listed = (rng.permutation(items)[:9] * rng.random() ** 0.5).astype(int).tolist()
        if rng.random() < share:
            listed.insert(int(rng.integers(0, 4)), 1000 + user % 40)
        out[user] = list(dict.fromkeys(listed))
    return out


TRUTH = {user: {1000 + user % 40, 1} for user in range(N)}


def evaluated(seed, share, metrics=("ndcg@5", "coverage@5", "gini@5", "entropy@5", "gmap@5"), **more):
    return recsys.evaluate(lists_of(seed, share), TRUTH, list(metrics), catalogue=1500, **more)


@pytest.fixture(scope="module")
def models():
    return {"old": evaluated(1, 0.3), "new": evaluated(2, 0.5), "odd": evaluated(3, 0.31)}


def test_catalogue_metrics_have_rows_like_all_others(models):
    found = recsys.compare(models, baseline="old")
    assert found.family == (
        "2 pairs of models on ndcg@5; secondary: the same on 4 other metrics, 8 comparisons, holm"
    )
    row = found["new", "coverage@5"]
    assert row.value == models["new"]["coverage@5"]
    assert row.difference == pytest.approx(models["new"]["coverage@5"] - models["old"]["coverage@5"])
    assert row.interval.low < row.difference < row.interval.high
    assert row.interval.method == "jackknife"
    assert row.test == "jackknife t (64 groups)"
    assert 0 < row.p_value <= row.adjusted_p <= 1
    assert "test set of this size" in repr(found)
    assert row.relative == pytest.approx(row.difference / row.baseline_value)
    assert {"coverage@5", "gini@5"} <= {r["metric"] for r in json.loads(found.to_json())["rows"]}
    assert "new" in found.to_frame()["model"].tolist()


def test_catalogue_difference_is_that_of_its_exposure(models):
    old, new = models["old"], models["new"]
    (a, _), (b, _) = new.exposure("gini@5"), old.exposure("gini@5")
    f, g = new.statistic("gini@5"), old.statistic("gini@5")
    total_a, total_b = a.sum(axis=0), b.sum(axis=0)
    without = np.array([f(total_a - x) - g(total_b - y) for x, y in zip(a, b, strict=True)])
    plain = math.sqrt(63 / 64 * ((without - without.mean()) ** 2).sum())
    row = recsys.compare(models, baseline="old", metrics=["gini@5"])["new", "gini@5"]
    error = (row.own_interval.high - row.difference) / stats.t.ppf(0.975, 62)
    # The standard error excludes variance that stems only from group sizes or from pairs of groups.
    assert 0.7 * plain < error < 1.05 * plain


def test_lower_is_better_is_known_of_the_catalogue_too():
    flat = {u: [(u * 7 + j) % 1000 for j in range(5)] for u in range(N)}
    narrow = {u: [(u * 7 + j) % 40 for j in range(5)] for u in range(N)}
    made = {n: recsys.evaluate(x, TRUTH, ["gini@5"], catalogue=1500) for n, x in (("n", narrow), ("f", flat))}
    found = recsys.compare(made, baseline="n")
    assert str(found["f", "gini@5"].verdict).startswith("better: -")
    assert "lower: -" in str(found)  # what lists are like is no merit as such, in the table as in the report
    assert "better" not in str(found)


def test_pooled_metrics_are_compared_by_the_delta_method():
    rules = {"average": "pooled"}
    truth = {u: set(range(1 + u % 4)) for u in range(N)}
    rng = np.random.default_rng(0)
    sides = {
        name: recsys.evaluate(
            {u: rng.permutation(12)[:5].tolist() for u in truth}, truth, ["recall@5"], conventions=rules
        )
        for name in ("a", "b")
    }
    units = {n: ratio_units(*e.partial.terms["recall@5"]) for n, e in sides.items()}
    expected = ratio_difference(units["b"], units["a"])
    row = recsys.compare(sides, baseline="a")["b", "recall@5"]
    assert row.value == pytest.approx(sides["b"]["recall@5"], rel=1e-9)
    assert row.difference == pytest.approx(expected.value, rel=1e-9)
    assert row.interval.low == pytest.approx(
        expected.interval.low, rel=0.02
    )  # of sign flips, which tend to t
    assert row.wins + row.ties + row.losses == N
    gaps = sides["b"].values_of("recall@5") - sides["a"].values_of("recall@5")
    assert row.wins == np.count_nonzero(gaps > 0)
    alone = sides["a"].intervals()["recall@5"]
    assert alone.value == pytest.approx(sides["a"]["recall@5"], rel=1e-9)
    pull = units["a"].residuals[0] / units["a"].weights.mean()
    assert alone.standard_error == pytest.approx(pull.std(ddof=1) / math.sqrt(N), rel=1e-6)


def test_f1_of_means_is_the_number_reported():
    sides = {
        n: evaluated(s, p, ["f1@5"], conventions={"f1_of": "means"})
        for n, s, p in (("a", 1, 0.3), ("b", 2, 0.5))
    }
    row = recsys.compare(sides, baseline="a")["b", "f1@5"]
    assert row.value == pytest.approx(sides["b"]["f1@5"], rel=1e-9)
    assert row.baseline_value == pytest.approx(sides["a"]["f1@5"], rel=1e-9)


def test_a_geometric_mean_has_the_error_of_its_logarithms(models):
    found = models["old"].intervals()["gmap@5"]
    logs = np.log(np.maximum(models["old"].values_of("gmap@5"), 1e-5))
    assert found.value == pytest.approx(math.exp(logs.mean()))
    assert found.standard_error == pytest.approx(found.value * stats.sem(logs), rel=0.35)


def test_intervals_of_one_evaluation(models):
    found = models["old"].intervals(confidence=0.9)
    values = models["old"].values_of("ndcg@5")
    expected = mean_bounds(values, 0.0, 1.0, 0.9)
    assert (found["ndcg@5"].interval.low, found["ndcg@5"].interval.high) == (expected.low, expected.high)
    plain = models["old"].intervals(confidence=0.9, method="t")["ndcg@5"].interval
    low, high = stats.t.interval(0.9, N - 1, values.mean(), stats.sem(values))
    assert (plain.low, plain.high) == pytest.approx((low, high))
    assert 1 < (expected.high - expected.low) / (high - low) < 1.1
    assert found["coverage@5"].interval.low < models["old"]["coverage@5"] < found["coverage@5"].interval.high
    said = repr(found)
    assert "90% confidence" in said
    assert "jackknife" in said
    assert list(found.to_frame()["metric"]) == list(models["old"])
    assert "| ndcg@5 |" in found.to_markdown()
    assert "ndcg@5" in found._repr_html_()
    assert "ndcg" in found.to_latex()
    some = models["old"].intervals(metrics=["NDCG@5"], method="bca", n_resamples=500, rng=1)
    assert list(some) == ["ndcg@5"]
    assert some["NDCG@5"].interval.method == "bca"
    low, high = found["ndcg@5"].interval.low, found["ndcg@5"].interval.high
    assert 0 <= low <= high <= 1


def test_intervals_stay_within_what_the_metric_can_be():
    truth = {u: {1} if u else {2} for u in range(30)}
    perfect = recsys.evaluate({u: [1] for u in range(30)}, truth, ["hit@1"])
    found = perfect.intervals()["hit@1"].interval
    # Of rare misses, the interval is Clopper and Pearson's.
    theirs = stats.binomtest(29, 30).proportion_ci()
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), rel=1e-9)
    always = recsys.evaluate({u: [1] for u in range(30)}, {u: {1} for u in range(30)}, ["hit@1"])
    assert always.intervals()["hit@1"].interval.high == 1.0


def test_many_models_omnibus_and_all_pairs(models):
    found = recsys.compare(models, baseline="old", metrics=["ndcg@5", "coverage@5"], rng=3, n_resamples=800)
    with pytest.warns(RankTestWarning):
        whole = found.omnibus
    columns = [e.values_of("ndcg@5") for e in models.values()]
    assert whole["ndcg@5"].p_value == pytest.approx(stats.friedmanchisquare(*columns).pvalue, rel=1e-10)
    assert list(whole) == ["ndcg@5"]
    assert all(p > 0 for p in whole["ndcg@5"].pairs.values())
    every = found.pairs()
    assert len(every) == 6
    assert every.table.options.n_resamples == 800
    assert every.table.options.correction == "max-t"
    assert every["odd", "new", "ndcg@5"].verdict.kind == "worse"
    assert "p_max-t" in str(every["odd", "new", "ndcg@5"].verdict)
    assert found.pairs(correction="holm", test="t")["odd", "new", "ndcg@5"].p_value == pytest.approx(
        stats.ttest_rel(columns[2], columns[1]).pvalue, rel=1e-9
    )
    with pytest.raises(InputError, match="3 models or more"):
        _ = recsys.compare({"a": models["old"], "b": models["new"]}).omnibus


def test_max_t_charges_the_catalogue_for_its_share(models):
    names = ["gmap@5", "ndcg@5", "coverage@5"]
    found = recsys.compare(models, baseline="old", metrics=names, correction="max-t", n_resamples=2000)
    secondary = [r for r in found if r.metric != "gmap@5"]
    means, rest = [r for r in secondary if r.effect.name], [r for r in secondary if not r.effect.name]
    assert len(means) == len(rest) == 2
    alone = recsys.compare(models, baseline="old", metrics=["ndcg@5"], correction="max-t", n_resamples=2000)
    for with_more, by_itself in zip(means, alone, strict=True):
        assert with_more.adjusted_p == pytest.approx(min(1.0, 2 * by_itself.adjusted_p))
    assert min(r.adjusted_p / r.p_value for r in rest) >= 2 or max(r.adjusted_p for r in rest) == 1


def test_other_metrics_and_cutoffs_never_change_the_headlines_verdict(models):
    for correction in ("holm", "max-t", "bonferroni"):
        asked = {"baseline": "old", "correction": correction, "n_resamples": 500}
        alone = recsys.compare(models, metrics=["ndcg@5"], **asked)
        with_more = recsys.compare(models, headline="ndcg@5", **asked)
        for row in alone:
            other = with_more[row.model, "ndcg@5"]
            assert (other.verdict, other.adjusted_p, other.interval) == (
                row.verdict, row.adjusted_p, row.interval,
            )  # fmt: skip
    assert {row.family for row in with_more if row.metric != "ndcg@5"} == {"secondary"}
    with pytest.raises(UnknownNameError, match="headline metric"):
        recsys.compare(models, headline="recall@5")


def test_without_a_baseline_the_best_is_compared_with_each_other(models):
    found = recsys.compare(models, metrics=["ndcg@5"])
    assert [(row.model, row.baseline) for row in found] == [("new", "old"), ("new", "odd")]
    assert found.family == "the best of 3 models against each other on ndcg@5, holm"
    best_of_two = recsys.compare({n: models[n] for n in ("old", "new")}, metrics=["ndcg@5"])
    assert [(row.model, row.baseline) for row in best_of_two] == [("new", "old")]
    with pytest.raises(InputError, match="named beforehand"):
        recsys.compare(models, metrics=["ndcg@5"], correction="max-t")


def test_several_runs_have_catalogue_rows_too(models):
    runs = {
        "old": [models["old"], models["odd"], evaluated(8, 0.3)],
        "new": [evaluated(s, 0.5) for s in (5, 6, 7)],
    }
    row = recsys.compare(runs, baseline="old")["new", "entropy@5"]
    assert row.runs.n_runs == 3
    assert "of 3 runs" in str(row.verdict)
    gaps = [b["entropy@5"] - a["entropy@5"] for a, b in zip(runs["old"], runs["new"], strict=True)]
    assert row.difference == pytest.approx(np.mean(gaps))
    assert row.runs.variance_runs == pytest.approx(np.var(gaps, ddof=1) / 3)


def test_equivalence_of_the_catalogue(models):
    row = recsys.compare(models, baseline="old", metrics=["coverage@5"], margin=0.2)["odd", "coverage@5"]
    assert row.equivalence.p_value < 0.01
    assert row.verdict.kind == "equivalent"


def test_a_baseline_of_zero_has_no_lift_and_a_model_of_zero_loses_it_all():
    nothing = recsys.evaluate({u: [-1] for u in range(50)}, {u: {u} for u in range(50)}, ["hit@1"])
    some = recsys.evaluate(
        {u: [u if u % 2 else -1] for u in range(50)}, {u: {u} for u in range(50)}, ["hit@1"]
    )
    up = recsys.compare({"nothing": nothing, "some": some}, baseline="nothing")["some", "hit@1"]
    assert math.isnan(up.relative)
    assert any("no lift" in str(note) for note in up.notes)
    assert str(up.verdict).startswith("better: +0.5 [")
    down = recsys.compare({"nothing": nothing, "some": some}, baseline="some")["nothing", "hit@1"]
    assert down.relative == -1.0
    assert (down.relative_interval.low, down.relative_interval.high) == (-1.0, -1.0)
    assert str(down.verdict).startswith("worse: -100.0% [-100.0, -100.0]")


def test_cautions_come_once_a_call(models):
    same = {"a": models["old"], "b": models["old"], "c": models["old"]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = recsys.compare(same, baseline="a", margin=0.1)
    texts = [str(w.message) for w in caught if issubclass(w.category, ZeroVarianceWarning)]
    assert len(texts) == len(set(texts)) <= 2
    assert all(row.verdict.kind == "identical" for row in found)


def test_long_resampling_tells_how_far_it_is(models):
    told = []
    recsys.compare(
        models,
        baseline="old",
        metrics=["ndcg@5"],
        test="studentised",
        n_resamples=1000,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told[-1] == (1000, 1000)


def test_every_row_says_it_in_words(models):
    row = recsys.compare(models, baseline="old", metrics=["ndcg@5"])["new", "ndcg@5"]
    word, rest = str(row.verdict).split(": ", 1)
    assert word == "better"
    assert rest.startswith(f"{100 * row.relative:+.1f}% [")
    assert f"d_z {row.effect.value:.2f}, p_holm" in rest  # no word for its size
    assert "p_holm < 0.0001" in rest
    assert row.wins + row.ties + row.losses == N


def test_a_row_plans_the_next_test(models):
    row = recsys.compare(models, baseline="old", metrics=["ndcg@5"])["odd", "ndcg@5"]
    gaps = models["odd"].values_of("ndcg@5") - models["old"].values_of("ndcg@5")
    assert row.standard_error == pytest.approx(stats.sem(gaps), rel=1e-12)
    found = row.minimal_effect(power=0.9)
    assert recsys.stats.power(found, N, sd=gaps.std(ddof=1)) == pytest.approx(0.9)
    needed = row.users_needed(found, power=0.9)
    assert abs(needed - N) <= 1
    with pytest.warns(ZeroVarianceWarning):
        same = recsys.compare({"a": models["old"], "b": models["old"]}, metrics=["ndcg@5"])
    with pytest.raises(NotDefinedError, match="nothing to plan"):
        same["b", "ndcg@5"].minimal_effect()
    assert "standard_error" in recsys.compare(models).to_frame().columns


def test_not_worse_is_a_verdict_of_its_own(models):
    ask = {"baseline": "old", "metrics": ["ndcg@5", "gini@5"], "no_worse_than": 0.05}
    found = recsys.compare(models, **ask)
    row = found["odd", "ndcg@5"]
    d = recsys.stats.pair(models["odd"].values_of("ndcg@5"), models["old"].values_of("ndcg@5"))
    expected, by_t = (recsys.stats.non_inferiority(d, 0.05, **known) for known in ({"bounds": (-1, 1)}, {}))
    assert row.non_inferiority.p_value == pytest.approx(expected.p_value, rel=1e-12)
    assert by_t.p_value < expected.p_value < by_t.p_value + 0.005
    assert str(row.verdict).startswith("not worse: ")
    assert "by less than 0.05" in str(row.verdict)
    assert found["new", "ndcg@5"].verdict.kind == "better"
    # Gini is better when lower: being higher by 0.05 is what must be ruled out.
    assert found["odd", "gini@5"].non_inferiority.margin == (-math.inf, 0.05)
    with pytest.raises(InputError, match="margin must be positive"):
        recsys.compare(models, no_worse_than=0.0)


def test_parts_of_a_result_have_the_intervals_of_the_whole(models):
    lists = lists_of(1, 0.3)
    parts = [
        recsys.evaluate(
            {u: x for u, x in lists.items() if u % 3 == part},
            {u: x for u, x in TRUTH.items() if u % 3 == part},
            list(models["old"]),
            catalogue=1500,
        )
        for part in range(3)
    ]
    merged = parts[0].merge(*parts[1:]).intervals()
    for metric, found in models["old"].intervals().items():
        assert merged[metric].value == pytest.approx(found.value, rel=1e-12)
        assert merged[metric].standard_error == pytest.approx(found.standard_error, rel=1e-9), metric


@pytest.mark.parametrize("n", [1, 2, 3, 20])
def test_hardly_any_user_is_answered_with_a_note(n):
    few = recsys.evaluate(
        {u: [u, u + 1] for u in range(n)}, {u: {u} for u in range(n)}, ["coverage@2", "gini@2"]
    )
    found = few.intervals()
    assert found["coverage@2"].interval.low <= few["coverage@2"] <= found["coverage@2"].interval.high
    assert any("rough" in str(note) for note in found["gini@2"].notes)


@pytest.mark.filterwarnings("ignore::recsys.stats.results.ZeroVarianceWarning")
@pytest.mark.parametrize("rules", [{}, {"average": "pooled", "f1_of": "means"}])
def test_every_interval_is_about_the_number_reported(rules):
    """The interval of every kind of metric (mean, ratio, of the catalogue) contains the value shown."""
    rng = np.random.default_rng(3)
    scores = rng.random((300, 40))
    truth = {u: {int(i): float(1 + i % 3) for i in rng.permutation(40)[: 1 + u % 5]} for u in range(300)}
    train = {u: rng.permutation(40)[:6].tolist() for u in range(300)}
    known = {
        "train": train,
        "items": {"category": {i: "abcd"[i % 4] for i in range(40)}},
        "embeddings": rng.normal(size=(40, 5)),
        "reference": list(range(10)),
    }
    checked = 0
    for name, metric in METRICS.items():
        request = name if metric.at_k == "never" else f"{name}@10"
        try:
            found = recsys.evaluate(recsys.Scores(scores), truth, [request], conventions=rules, **known)
        except RecsysError:
            continue  # it needs what this world does not have
        if math.isnan(found[request]):
            continue
        one = found.intervals()[request]
        assert one.value == pytest.approx(found[request], rel=1e-9, abs=1e-12), name
        assert one.interval.low <= one.value + 1e-12, name
        assert one.value <= one.interval.high + 1e-12, name
        checked += 1
    assert checked > 25


def test_ratings_have_intervals_of_what_they_report():
    rng = np.random.default_rng(0)
    user, actual = rng.integers(0, 200, 3000), rng.integers(1, 6, 3000)
    frame = {"user": user, "rating": actual, "prediction": actual + rng.normal(0, 1, 3000)}
    found = recsys.evaluate_ratings(pd.DataFrame(frame))
    for metric, one in found.intervals().items():
        assert one.value == pytest.approx(found[metric], rel=1e-9), metric
        assert one.interval.low < found[metric] < one.interval.high


def test_ranks_of_the_omnibus_know_which_way_is_better():
    rng = np.random.default_rng(4)
    truth = {u: {int(rng.integers(0, 30))} for u in range(120)}
    right = np.zeros((120, 30))
    for user, items in truth.items():
        right[user, list(items)] = 1.0
    models = {
        name: recsys.evaluate(recsys.Scores(share * right + rng.random((120, 30))), truth, ["average_rank"])
        for name, share in (("poor", 0.0), ("fair", 0.3), ("good", 0.9))
    }
    whole = recsys.compare(models, baseline="poor").omnibus["average_rank"]
    assert list(np.argsort(whole.mean_ranks)) == [0, 1, 2]


@pytest.mark.parametrize("clusters", [False, True])
def test_the_lift_leaves_out_zero_exactly_when_the_test_rejects(clusters):
    """Verdict and interval cannot contradict each other, however skewed the ratio is."""
    rng = np.random.default_rng(9)
    rejected = 0
    for world in range(200):
        n = 50 if world % 5 == 0 else 150
        base = rng.random(n) * (rng.random(n) < 0.2)
        model = np.where(rng.random(n) < 0.5, base, rng.random(n) * (rng.random(n) < 0.3))
        groups = np.arange(n) // 2 if clusters else None
        tables = {m: PerCase(np.arange(n), {"m": x}, groups) for m, x in (("base", base), ("model", model))}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            row = compare_tables(tables, baseline="base").rows[0]
        if math.isinf(row.relative_interval.low):
            continue
        assert (0.0 not in row.relative_interval) == (row.p_value < 0.05)
        rejected += row.p_value < 0.05
    assert 10 < rejected < 150


def test_a_lift_over_hardly_anything_is_unbounded_and_told_in_units():
    base, model = np.zeros(100), np.zeros(100)
    base[0], model[:30] = 0.5, 0.6
    tables = {n: PerCase(np.arange(100), {"m": x}) for n, x in (("base", base), ("model", model))}
    row = compare_tables(tables, baseline="base").rows[0]
    assert row.relative > 10
    assert row.relative_interval.high == math.inf
    assert str(row.verdict).startswith("better: +0.175 [")


def test_one_user_proves_nothing_about_the_catalogue():
    truth = {0: [0, 1, 2]}
    sides = {
        "old": recsys.evaluate({0: [0]}, truth, ["coverage@5"]),
        "new": recsys.evaluate({0: [5, 1]}, truth, ["coverage@5"]),
    }
    row = recsys.compare(sides, baseline="old")["new", "coverage@5"]
    assert row.verdict.kind == "no_difference"
    assert math.isnan(row.p_value)
    assert (row.interval.low, row.interval.high) == (-math.inf, math.inf)
    found = sides["new"].intervals()["coverage@5"].interval
    assert (found.low, found.high) == (0.0, 1.0)


def test_a_few_users_have_as_many_degrees_of_freedom_as_groups_they_fill():
    lists = {user: [user, 99] for user in range(6)}
    result = recsys.evaluate(lists, lists, ["coverage@2"], catalogue=200)
    found = result.intervals()["coverage@2"]
    half = stats.t.ppf(0.975, 4) * found.standard_error
    assert found.interval.high - found.value == pytest.approx(half)


def test_a_gap_no_user_changes_is_a_gap_and_catalogues_that_differ_are_said():
    truth = {user: [0] for user in range(300)}
    sides = {
        "narrow": recsys.evaluate(dict.fromkeys(truth, (9,)), truth, ["coverage@1"]),
        "wide": recsys.evaluate(dict.fromkeys(truth, (0,)), truth, ["coverage@1"]),
    }
    found = recsys.compare(sides, baseline="narrow")
    assert str(found["wide", "coverage@1"].verdict).startswith("better: +0.5 [")
    shown = "higher: +0.5 ["  # more coverage is no merit as such
    assert shown in repr(found)
    assert found.to_frame()["verdict"][0].startswith(shown)
    assert json.loads(found.to_json())["rows"][0]["verdict"].startswith(shown)
    caution = next(one for one in found.cautions if one.code == "catalogues_differ")
    assert caution.sentence.startswith("catalogues differ (narrow 2, wide 1 items), so that coverage@1 ")
    assert str(caution) in repr(found)
    same = {name: evaluated(seed, 0.3, ["coverage@5"]) for name, seed in (("a", 1), ("b", 2))}
    assert "catalogues differ" not in repr(recsys.compare(same))


@pytest.mark.parametrize("given", [{}, [], {"a": None}, {"a": {"x": 1}, "b": {"x": 2}}, {"a": 3, "b": 4}])
def test_what_cannot_be_compared_is_an_error_that_says_so(given):
    with pytest.raises(InputError, match=r"at least two models|\{name: recsys\.evaluate\(lists"):
        recsys.compare(given)


def test_answers_to_margins_and_ropes_are_in_the_table(models):
    frame = recsys.compare(
        models, baseline="old", metrics=["ndcg@5", "coverage@5"], margin=0.1, no_worse_than=0.1, rope=0.01
    ).to_frame()
    assert frame["equivalence_p"].between(0, 1).all()
    assert frame["non_inferiority_p"].between(0, 1).all()
    means = frame[frame["metric"] == "ndcg@5"]
    assert np.allclose(means[["p_worse", "p_equal", "p_better"]].sum(axis=1), 1.0)
    assert frame[frame["metric"] == "coverage@5"]["p_better"].isna().all()
    assert (frame["relative_low"] < frame["relative"]).all()
    assert "equivalence_p" not in recsys.compare(models, baseline="old", metrics=["ndcg@5"]).to_frame()


def test_missing_users_are_named_as_they_were_typed():
    truth = {user: [1] for user in range(40)}
    some = {user: [1] for user in range(2, 40)}
    sides = {"a": recsys.evaluate(truth, truth, ["hit@1"]), "b": recsys.evaluate(some, some, ["hit@1"])}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        recsys.compare(sides)
    assert "b lacks 2 (first: 0)" in str(next(w.message for w in said if w.category is UnpairedWarning))


@pytest.mark.parametrize("n", [40, 200])
def test_one_user_too_many_is_a_note(n):
    truth = {user: [user % 3] for user in range(n + 1)}
    sides = {
        "a": recsys.evaluate({user: [0] for user in truth}, truth, ["hit@1"]),
        "b": recsys.evaluate({u: [1] for u in range(n)}, {u: [u % 3] for u in range(n)}, ["hit@1"]),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnpairedWarning)
        result = recsys.compare(sides)
    assert f"of {n + 1} cases, b lacks 1 (first: {n})" in str(result)


def test_more_users_do_not_settle_a_metric_of_the_catalogue(models):
    row = recsys.compare(models, baseline="old", metrics=["coverage@5"])["new", "coverage@5"]
    assert row.minimal_effect() > 0
    with pytest.raises(NotDefinedError, match="is not a mean over users"):
        row.users_needed(0.01)


def test_metrics_are_named_once_and_at_all(models):
    found = recsys.compare(models, baseline="old", metrics=["ndcg@5", "ndcg@5"])
    assert found.family == "2 pairs of models on ndcg@5, holm"
    with pytest.raises(UnknownNameError, match="at least one metric"):
        recsys.compare(models, metrics=[])
    with pytest.raises(UnknownNameError, match="lower_is_better"):
        recsys.compare(models, lower_is_better=frozenset())


def test_clusters_of_two_types_are_refused():
    with pytest.raises(IdTypeError, match="mixed"):
        evaluated(1, 0.3, clusters={user: user if user % 2 else str(user) for user in range(N)})


def test_one_metric_may_be_named_alone(models):
    assert list(models["old"].intervals(metrics="ndcg@5")) == ["ndcg@5"]


def test_rows_of_the_catalogue_are_corrected_for_folds_as_means_are():
    """Twice 5-fold is ten runs that each train on four fifths: n_test / n_train is 1/4 for every metric."""
    lists = {name: lists_of(seed, share) for name, seed, share in (("old", 1, 0.3), ("new", 2, 0.5))}
    parts = [range(j, N, 5) for j in range(5)] + np.array_split(np.arange(N), 5)

    def fold(name, part):
        users = {int(u) for u in part}
        mine = {u: one for u, one in lists[name].items() if u in users}
        truth = {u: one for u, one in TRUTH.items() if u in users}
        return recsys.evaluate(mine, truth, ["ndcg@5", "coverage@5"], catalogue=1500)

    runs = {name: [fold(name, part) for part in parts] for name in lists}
    found = recsys.compare(runs, baseline="old")
    for metric in ("ndcg@5", "coverage@5"):
        row = found["new", metric]
        gaps = [a[metric] - b[metric] for a, b in zip(runs["new"], runs["old"], strict=True)]
        t = np.mean(gaps) / np.sqrt((1 / 10 + 1 / 4) * np.var(gaps, ddof=1))
        assert row.p_value == pytest.approx(2 * stats.t.sf(abs(t), 9), rel=1e-9)
        assert row.runs.n_users == N
        assert "variance inflated by n_test / n_train = 0.25" in map(str, row.notes)
    told = recsys.compare(runs, baseline="old", test_over_train=0.5)["new", "coverage@5"]
    assert "variance inflated by n_test / n_train = 0.5" in map(str, told.notes)
    assert told.standard_error == pytest.approx(
        found["new", "coverage@5"].standard_error * np.sqrt(0.6 / 0.35), rel=1e-12
    )


def test_a_key_that_names_no_row_says_what_to_type(models):
    found = recsys.compare(models, baseline="old", metrics=["ndcg@5", "gini@5"])
    for alone in ("new", ("new",)):
        with pytest.raises(InputError, match=r"Write comparison\['new', 'ndcg@5'\]"):
            found[alone]
    with pytest.raises(InputError, match=r"Write comparison\['new', 'gini@5'\]"):
        found["gini@5"]
    for unknown in ("newest", ("new", "old", "ndcg@5", "t"), 1.5):
        with pytest.raises(UnknownNameError, match=r"comparison\[model, metric\]"):
            found[unknown]
    assert found[np.int64(0)] is found[0]
    assert len(found[:1]) == 1


def test_a_metric_no_user_counts_for_does_not_take_the_others_intervals_away() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = recsys.evaluate({1: [2], 2: [3]}, {1: [], 2: []}, ["hit@1", "coverage@1"]).intervals()
    assert math.isnan(found["hit@1"].value)
    assert (*map(str, found["hit@1"].notes),) == ("hit@1: no user counts",)
    assert found["coverage@1"].value == 1.0


def test_metrics_that_are_no_paired_differences_are_named_when_left_out() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"user": np.repeat(np.arange(40), 5), "item": np.tile(np.arange(5), 40)})
    rows["rating"] = rng.integers(1, 6, len(rows)).astype(float)
    models = {
        name: recsys.evaluate_ratings(rows.assign(prediction=rows["rating"] + noise), metrics=["rmse", "r2"])
        for name, noise in zip("ab", rng.normal(size=(2, len(rows))), strict=True)
    }
    compared = recsys.compare(models)
    assert [row.metric for row in compared] == ["rmse"]
    assert any(str(note).startswith("not compared: r2, ") for note in compared.table.notes)


GRADED = {user: {user: 1 + user % 3} for user in range(60)}


def graded(every, metrics, **more):
    lists = {user: [user if user % every == 0 else -1] for user in GRADED}
    return recsys.evaluate(lists, GRADED, metrics, **more)


@pytest.mark.filterwarnings("ignore::recsys.stats.ZeroVarianceWarning")
def test_only_decisions_that_the_compared_metrics_read_must_agree():
    """err fills in the highest grade, which no other metric reads."""
    one, two = graded(2, ["ndcg@1", "mrr"]), graded(3, ["ndcg@1", "mrr", "err"])
    assert one.conventions != two.conventions
    for metrics in (["ndcg@1"], None):
        found = recsys.compare({"one": one, "two": two}, "one", metrics)
        assert found["two", "ndcg@1"].value == two["ndcg@1"]
    assert recsys.gate(one, two, {"ndcg@1": 0.5}).passed
    doubled = graded(2, ["ndcg@1", "mrr"], conventions={"gain": "exp2"})
    assert recsys.compare({"one": one, "doubled": doubled}, metrics="mrr")["doubled", "mrr"].difference == 0
    for metrics in ("ndcg@1", None):
        with pytest.raises(
            ConventionError, match="differ in gain, so a difference in ndcg@1 would be theirs"
        ):
            recsys.compare({"one": one, "doubled": doubled}, metrics=metrics)
    with pytest.raises(ConventionError, match="differ in gain"):
        recsys.gate(doubled, one, {"ndcg@1": 0.5})
    # A request that names its own gain reads no other.
    fixed = [
        graded(n, ["ndcg(gain=binary)@1"], conventions={"gain": g}) for n, g in ((2, "exp2"), (3, "grade"))
    ]
    assert len(recsys.compare(fixed)) == 1
    with pytest.raises(ConventionError, match="differ in max_grade"):
        recsys.compare([graded(2, ["err"], conventions={"max_grade": 5}), graded(2, ["err"])])


@pytest.mark.parametrize(
    "metrics", [5, 2.5, np.datetime64("2020"), np.array(5), [5], [np.datetime64("2020")], [None]]
)
def test_metrics_that_are_no_names_are_refused(metrics):
    sides = {"one": graded(2, ["hit@1"]), "two": graded(3, ["hit@1"])}
    with pytest.raises(RecsysError, match=r"ndcg@10|unknown metric"):
        recsys.compare(sides, metrics=metrics)


def test_models_may_have_numbers_for_names():
    sides = {1: graded(2, ["hit@1"]), 2: graded(3, ["hit@1"])}
    assert recsys.compare(sides, baseline=1)[2, "hit@1"].model == 2
    with pytest.raises(UnknownNameError, match="Did you mean 1"):
        recsys.compare(sides, baseline="1")
    with pytest.raises(UnknownNameError, match="Known: 1, one"):
        recsys.compare({1: sides[1], "one": sides[2]}, baseline=7)


@pytest.mark.parametrize("wrong", [5, None, "ab", {"one": [], "two": []}, {"one": 5, "two": None}])
def test_what_is_no_result_is_refused(wrong):
    with pytest.raises(InputError):
        recsys.compare(wrong)
    with pytest.raises(InputError, match="got Evaluation"):
        recsys.compare(graded(2, ["hit@1"]))


@pytest.mark.filterwarnings("ignore::recsys.stats.ZeroVarianceWarning")
def test_two_models_that_found_nothing_are_not_called_identical():
    truth = {user: [user] for user in range(40)}
    vectors = {item: [1.0, 0.0] for item in (-1, -2, -5, -6)}
    a, b = (
        recsys.evaluate({u: [n, n - 1] for u in truth}, truth, ["hit@2", "ild@2"], embeddings=vectors)
        for n in (-1, -5)
    )
    found = recsys.compare({"a": a, "b": b}, "a")
    assert str(found["b", "hit@2"].verdict) == "both found nothing: the value is 0 for all 40 units"
    assert str(found["b", "ild@2"].verdict) == "identical in this sample: all 40 units have the same value"
    same = recsys.evaluate({u: [u] for u in truth}, truth, ["hit@1"])
    assert recsys.compare({"a": same, "b": same})["b", "hit@1"].verdict.kind == "identical"


@pytest.mark.filterwarnings("ignore::recsys.stats.StatisticsWarning")
def test_a_row_or_a_metric_that_is_not_there_is_named():
    lists, truth = {1: ["a", "b"], 2: ["b", "c"]}, {1: {"a"}, 2: {"c"}}
    one = recsys.evaluate(lists, truth, ["mrr", "hit@1"])
    other = recsys.evaluate({1: ["b", "a"], 2: ["c"]}, truth, ["mrr", "hit@1"])
    table = recsys.compare({"x": one, "y": other})
    assert table[-2].metric == "mrr"
    assert [row.metric for row in table[1:]] == ["hit@1"]
    for place in (2, -3):
        with pytest.raises(InputError, match=f"there is no row {place}: the comparison has 2"):
            table[place]
    third = recsys.evaluate(lists, truth, ["ndcg"])
    with pytest.raises(InputError, match="the evaluations share no metric"):
        recsys.compare({"x": one, "z": third})
    with pytest.raises(ColumnError, match="'x' has no metric 'ndcg'") as caught:
        recsys.compare({"x": one, "z": third}, metrics=["ndcg"])
    assert "It has: mrr, hit@1." in str(caught.value)


def test_the_lists_of_the_second_result_show_what_each_decision_moves():
    lists, truth = {1: ["b", "a"], 2: ["c"]}, {1: ["a"], 2: ["x"], 3: ["c"]}
    rules = {"no_list": "skip", "ap_over": "relevant"}
    result = recsys.evaluate(lists, truth, ["mrr"], conventions=rules)
    moved = {step.decision: step.moved for step in recsys.explain("default", result).steps}
    assert moved["no_list"] == {"mrr": (pytest.approx(1 / 6), 0.25)}
    assert moved["ap_over"] == {}


def test_results_of_users_with_other_kinds_of_ids_are_explained_without_counting_them():
    text = recsys.evaluate({"1": ["a"]}, {"1": ["a"]}, "mrr")
    numbers = recsys.evaluate({1: ["a"], 2: ["b"]}, {1: ["a"], 2: ["b"]}, "mrr")
    fewer = recsys.evaluate({1: ["a"]}, {1: ["a"]}, "mrr")
    words = "different users: 0 only in the first result, 1 only in the second"
    assert words in str(recsys.explain(fewer, numbers))
    assert "different users" not in str(recsys.explain(text, numbers))


def test_a_margin_that_no_model_can_fail_is_refused_or_noted():
    truth = {u: {0} for u in range(200)}

    def result(at):
        lists = {u: [*range(1, at + u % at), 0, *range(at + u % at, 40)] for u in truth}
        return recsys.evaluate(lists, truth, ["mrr", "average_rank"], full_ranking=True)

    results = {"old": result(3), "new": result(5)}
    for option in ("margin", "no_worse_than"):
        with pytest.raises(InputError, match=f"{option}=1 asks nothing of mrr: the value is 0.2"):
            recsys.compare(results, "old", ["mrr"], **{option: 1})
        both = recsys.compare(results, "old", **{option: 3})
        assert f"{option}=3 asks nothing of mrr" in str(both)
        assert f"{option}=3 asks nothing of average_rank" not in str(both)
        assert "asks nothing" not in str(recsys.compare(results, "old", ["mrr"], **{option: 0.1}))
