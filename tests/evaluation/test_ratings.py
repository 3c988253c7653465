"""Rating and click metrics against scikit-learn and plain loops, globally and per user."""

from __future__ import annotations

import itertools
import json
import math
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve

import recsys
from recsys import analysis
from recsys.cli.app import cli
from recsys.errors import (
    ColumnError,
    ConventionError,
    InputError,
    MergeError,
    NotDefinedError,
    RecsysError,
    UnknownNameError,
)
from recsys.evaluation.ratings import SETS, evaluate_ratings
from recsys.metrics import METRICS, RATINGS
from recsys.report import report_html
from recsys.report.model_tables import overview
from recsys.report.study import make_study
from recsys.stats import ZeroVarianceWarning

ERRORS = ("mse", "rmse", "mae", "r2", "explained_variance", "bias")
CLICKS = ("log_loss", "normalised_entropy", "auc", "ece", "mce")
EIGHTHS = st.integers(0, 40).map(lambda n: n / 8)
RATED = st.lists(st.tuples(st.integers(0, 4), EIGHTHS, EIGHTHS), min_size=2, max_size=40)
CLICKED = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 16).map(lambda n: n / 16)),
    min_size=2,
    max_size=40,
)


def table(rows, names=("user", "rating", "prediction")):
    return pd.DataFrame(rows, columns=list(names)).astype({names[0]: int})


def sklearn_errors(actual, predicted):
    constant = len(set(actual)) < 2
    return {
        "mse": sk.mean_squared_error(actual, predicted),
        "rmse": sk.root_mean_squared_error(actual, predicted),
        "mae": sk.mean_absolute_error(actual, predicted),
        "r2": math.nan if constant else sk.r2_score(actual, predicted),
        "explained_variance": math.nan if constant else sk.explained_variance_score(actual, predicted),
        "bias": float(np.mean(np.subtract(predicted, actual))),
    }


def plain_calibration(labels, chances, bins=10):
    gaps, sizes = [], []
    for b in range(bins):
        low, high = b / bins, (b + 1) / bins
        rows = [i for i, p in enumerate(chances) if low < p <= high or (b == 0 and p == 0)]
        if rows:
            gaps.append(abs(np.mean([chances[i] for i in rows]) - np.mean([labels[i] for i in rows])))
            sizes.append(len(rows))
    return float(np.dot(gaps, sizes) / len(labels)), max(gaps)


def sklearn_clicks(labels, chances):
    both = len(set(labels)) == 2
    loss = sk.log_loss(labels, np.asarray(chances, dtype=float), labels=[0, 1])
    share = np.mean(labels)
    entropy = -(share * math.log(share) + (1 - share) * math.log(1 - share)) if both else math.nan
    ece, mce = plain_calibration(labels, chances)
    return {
        "log_loss": loss,
        "normalised_entropy": loss / entropy if both else math.nan,
        "auc": sk.roc_auc_score(labels, chances) if both else math.nan,
        "ece": ece,
        "mce": mce,
    }


def per_user(rows, function):
    frame = table(rows)
    return {u: function(g.rating.tolist(), g.prediction.tolist()) for u, g in frame.groupby("user")}


@settings(max_examples=40)
@given(rows=RATED)
def test_errors_are_scikit_learns(rows):
    frame = table(rows)
    got = evaluate_ratings(frame, metrics=[*ERRORS, *(f"user_{m}" for m in ERRORS)])
    whole = sklearn_errors(frame.rating.tolist(), frame.prediction.tolist())
    users = per_user(rows, sklearn_errors)
    for name in ERRORS:
        assert got[name] == pytest.approx(whole[name], abs=1e-9, nan_ok=True), name
        values = [v[name] for v in users.values() if not math.isnan(v[name])]
        expected = np.mean(values) if values else math.nan
        assert got[f"user_{name}"] == pytest.approx(expected, abs=1e-9, nan_ok=True), name
        column = got.per_user[name]
        assert column.to_dict() == pytest.approx(
            {u: v[name] for u, v in users.items()}, abs=1e-9, nan_ok=True
        )


@settings(max_examples=40)
@given(rows=CLICKED)
def test_click_metrics_are_scikit_learns(rows):
    frame = table(rows)
    got = evaluate_ratings(frame, metrics=[*CLICKS, "user_auc", "user_log_loss"])
    whole = sklearn_clicks(frame.rating.tolist(), frame.prediction.tolist())
    for name in CLICKS:
        assert got[name] == pytest.approx(whole[name], rel=1e-9, abs=1e-9, nan_ok=True), name
    users = per_user(rows, sklearn_clicks)
    for name in ("auc", "log_loss"):
        values = [v[name] for v in users.values() if not math.isnan(v[name])]
        expected = np.mean(values) if values else math.nan
        assert got[f"user_{name}"] == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True)


@settings(max_examples=40)
@given(rows=CLICKED, weight=st.sampled_from(["impressions", "clicks"]))
def test_gauc_weighs_each_users_auc(rows, weight):
    frame = table(rows)
    total, weights = 0.0, 0.0
    for _, g in frame.groupby("user"):
        if g.rating.nunique() == 2:
            w = len(g) if weight == "impressions" else g.rating.sum()
            total += w * sk.roc_auc_score(g.rating, g.prediction)
            weights += w
    alike = evaluate_ratings(frame, metrics=["gauc(weight=users)", "user_auc"])
    assert alike["gauc(weight=users)"] == pytest.approx(alike["user_auc"], nan_ok=True)
    got = evaluate_ratings(frame, metrics=f"gauc(weight={weight})")
    assert list(got) == ["gauc" if weight == "impressions" else "gauc(weight=clicks)"]
    assert next(iter(got.values())) == pytest.approx(total / weights if weights else math.nan, nan_ok=True)


def plain_fcp(rows, over):
    """Concordant over all pairs of different ratings of one user, pair by pair."""
    right, wrong = {}, {}
    for (user, rating, said), (other, lower, said_lower) in itertools.permutations(rows, 2):
        if user == other and rating > lower:
            counts = right if said > said_lower else wrong
            counts[user] = counts.get(user, 0) + 1
    n_right, n_wrong = sum(right.values()), sum(wrong.values())
    if over == "users":
        n_right, n_wrong = n_right / max(len(right), 1), n_wrong / max(len(wrong), 1)
    return n_right / (n_right + n_wrong) if n_right + n_wrong else math.nan


@settings(max_examples=60)
@given(rows=RATED, over=st.sampled_from(["users", "pairs"]))
def test_fcp_counts_pairs_of_one_user(rows, over):
    got = evaluate_ratings(table(rows), metrics=[f"fcp(over={over})", "user_fcp", "fcp"])
    request = "fcp(over=pairs)" if over == "pairs" else "fcp"
    assert got[request] == pytest.approx(plain_fcp(rows, over), abs=1e-12, nan_ok=True)
    own = {u: plain_fcp([row for row in rows if row[0] == u], over) for u in {row[0] for row in rows}}
    assert got.per_user["fcp"].to_dict() == pytest.approx(own, abs=1e-12, nan_ok=True)
    values = [v for v in own.values() if not math.isnan(v)]
    assert got["user_fcp"] == pytest.approx(np.mean(values) if values else math.nan, nan_ok=True)


def test_fcp_of_many_ratings_of_one_user_and_of_other_words():
    rng = np.random.default_rng(0)
    rows = [(0, a, b) for a, b in zip(rng.integers(1, 6, 300), rng.integers(0, 40, 300), strict=True)]
    assert evaluate_ratings(table(rows), metrics=["fcp"])["fcp"] == pytest.approx(plain_fcp(rows, "users"))
    with pytest.raises(RecsysError, match="over='rows'"):
        evaluate_ratings(table(rows), metrics=["fcp(over=rows)"])


def test_calibration_bins_are_scikit_learns():
    rng = np.random.default_rng(0)
    chance = rng.random(2000).round(2)
    label = (rng.random(2000) < chance**1.5).astype(int)
    observed, said = calibration_curve(label, chance, n_bins=10)
    sizes = np.bincount(np.searchsorted(np.linspace(0, 1, 11)[1:-1], chance), minlength=10)
    got = evaluate_ratings(table(np.c_[label, label, chance]), metrics=["ece", "mce", "ece(bins=1)"])
    assert got["ece"] == pytest.approx(np.dot(np.abs(observed - said), sizes) / 2000)
    assert got["mce"] == pytest.approx(np.abs(observed - said).max())
    assert got["ece(bins=1)"] == pytest.approx(abs(label.mean() - chance.mean()))
    even = evaluate_ratings(table(np.c_[label, label, chance]), metrics="ece(binning=count)")
    assert 0 < next(iter(even.values())) < 0.2


def test_equal_counts_keep_equal_predictions_together():
    frame = table([(1, 1, 0.2), (1, 0, 0.2), (1, 1, 0.2), (1, 0, 0.9)])
    got = evaluate_ratings(frame, metrics="mce(binning=count, bins=2)")
    assert next(iter(got.values())) == pytest.approx(0.9)


@given(rows=RATED, seed=st.integers(0, 9))
def test_the_order_of_rows_changes_no_bit(rows, seed):
    frame = table(rows)
    again = frame.sample(frac=1, random_state=seed)
    first, second = (evaluate_ratings(f, metrics=SETS["ratings"]) for f in (frame, again))
    assert first == second
    assert repr(dict(first)) == repr(dict(second))


@given(rows=RATED)
def test_merged_parts_are_one_evaluation(rows):
    frame = table(rows)
    odd = frame.user % 2 == 1
    if odd.all() or not odd.any():
        return
    parts = [evaluate_ratings(f) for f in (frame[odd], frame[~odd])]
    assert repr(dict(parts[0].merge(parts[1]))) == repr(dict(evaluate_ratings(frame)))
    with pytest.raises(MergeError):
        parts[0].merge(parts[0])


def test_users_in_groups():
    frame = table([(1, 4, 3.0), (1, 2, 2.0), (2, 5, 1.0)])
    got = evaluate_ratings(frame, metrics=["rmse", "user_mae"], by={1: "a", 2: "b"})
    assert got.by == {"a": {"rmse": math.sqrt(0.5), "user_mae": 0.5}, "b": {"rmse": 4.0, "user_mae": 4.0}}
    assert len(got.to_frame()) == 6


def test_two_tables_are_joined_by_pair():
    said = pd.DataFrame({"user": ["a", "a", "b"], "item": [1, 2, 1], "score": [3.0, 2.0, 4.0]})
    seen = pd.DataFrame({"userId": ["b", "a"], "movieId": [1, 1], "rating": [5, 4]})
    got = evaluate_ratings(said, seen, ["mae"])
    assert got["mae"] == 1.0
    assert got.counts["without_rating"] == 1
    assert evaluate_ratings({"a": {1: 3.0}}, {"a": {1: 4}}, ["bias"])["bias"] == -1.0
    more = pd.concat([seen, pd.DataFrame({"userId": ["c"], "movieId": [9], "rating": [1]})])
    with pytest.raises(InputError, match="1 of 3 ratings have no prediction"):
        evaluate_ratings(said, more, ["mae"])
    skipped = evaluate_ratings(said, more, ["mae"], missing="skip")
    assert skipped["mae"] == 1.0
    assert skipped.counts["without_prediction"] == 1
    assert skipped.per_user.index.tolist() == ["a", "b"]
    assert "1 rating without a prediction" in str(skipped)
    with pytest.raises(InputError, match="user 'a', item 1 occurs more than once"):
        evaluate_ratings(pd.concat([said, said]), seen, ["mae"])


def test_the_scale_is_held():
    frame = table([(1, 4, 3.0), (2, 5, 6.0)])
    assert evaluate_ratings(frame, metrics="mae", scale=(1, 5))["mae"] == 1.0
    assert evaluate_ratings(frame, metrics="mae", scale=(1, 5)).counts["outside_scale"] == 1
    clipped = evaluate_ratings(frame, metrics="mae", scale=(1, 5), clip=True)
    assert clipped["mae"] == 0.5
    assert clipped.counts["clipped"] == 1
    with pytest.raises(InputError, match=r"rating 5 of user .* outside the scale from 1 to 4.* row 1"):
        evaluate_ratings(frame, scale=(1, 4))
    with pytest.raises(InputError, match="not a scale"):
        evaluate_ratings(frame, scale=(5, 1))


@pytest.mark.parametrize(
    ("rows", "metrics", "words"),
    [
        ([(1, math.nan, 3.0)], "rmse", "rating nan"),
        ([(1, 3.0, math.nan)], "rmse", "prediction nan"),
        ([(1, 3.0, math.inf)], "rmse", "prediction inf"),
        ([(1, 2, 0.5)], "log_loss", "label 2 is neither 0 nor 1"),
        ([(1, 1, 1.5)], "log_loss", "prediction 1.5 is not a probability"),
        ([(1, 1, -0.5)], "ece", "prediction -0.5 is not a probability"),
        ([(1, 3, 0.5)], "auc", "label 3"),
    ],
)
def test_numbers_that_cannot_be_scored_say_so(rows, metrics, words):
    with pytest.raises(InputError, match=words):
        evaluate_ratings(table(rows), metrics=metrics)


def test_columns_are_found_or_asked_for():
    surprise = pd.DataFrame({"uid": [1], "iid": [2], "r_ui": [4.0], "est": [3.0]})
    assert evaluate_ratings(surprise, metrics="mae")["mae"] == 1.0
    with pytest.raises(ColumnError, match="prediction"):
        evaluate_ratings(pd.DataFrame({"user": [1], "rating": [2]}))
    odd = pd.DataFrame({"who": [1], "stars": [2.0], "guess": [3.0]})
    named = {"user": "who", "actual": "stars", "prediction": "guess"}
    assert evaluate_ratings(odd, metrics="bias", columns=named)["bias"] == 1.0


def test_scores_of_any_size_have_an_auc_but_no_log_loss():
    frame = table([(1, 1, 7.0), (1, 0, -3.0)])
    assert evaluate_ratings(frame, metrics="auc")["auc"] == 1.0
    with pytest.raises(InputError, match="not a probability"):
        evaluate_ratings(frame, metrics=["auc", "log_loss"])


def test_certain_predictions_that_are_wrong_are_counted():
    got = evaluate_ratings(table([(1, 1, 0.0), (1, 0, 0.5)]), metrics="log_loss")
    assert got["log_loss"] == pytest.approx((52 * math.log(2) + math.log(2)) / 2)
    assert got.counts["certain_and_wrong"] == 1


def test_names_are_known_and_lists_have_none_of_them():
    frame = table([(1, 4, 3.0)])
    with pytest.raises(UnknownNameError, match="rmse"):
        evaluate_ratings(frame, metrics="rmsee")
    with pytest.raises(UnknownNameError, match=r"recsys\.evaluate"):
        evaluate_ratings(frame, metrics="ndcg")
    with pytest.raises(NotDefinedError, match="evaluate_ratings"):
        recsys.evaluate({1: [2]}, {1: [2]}, "rmse")
    with pytest.raises(KeyError, match="was not evaluated"):
        _ = evaluate_ratings(frame, metrics="rmse")["mae"]
    assert evaluate_ratings(frame, metrics="rmse")["RMSE"] == 1.0


def test_models_are_compared_on_pooled_and_on_user_metrics():
    rng = np.random.default_rng(0)
    user, actual = rng.integers(0, 200, 6000), rng.integers(1, 6, 6000)
    good, bad = (
        evaluate_ratings(table(np.c_[user, actual, actual + rng.normal(0, noise, 6000)]))
        for noise in (0.8, 1.0)
    )
    found = recsys.compare({"good": good, "bad": bad}, baseline="good")
    assert [row.metric for row in found] == ["mse", "rmse", "mae", "user_rmse", "user_mae"]
    for row in found:
        assert row.value == pytest.approx(bad[row.metric], rel=1e-9)
        assert row.verdict.kind == "worse"
    with pytest.raises(NotDefinedError, match="neither more nor less"):
        recsys.compare({"good": good, "bad": bad}, metrics=["bias"])
    with pytest.raises(NotDefinedError, match="user_r2"):
        recsys.compare({"good": good, "bad": bad}, metrics=["r2"])


def test_the_rating_registry_is_complete_and_apart():
    assert {*ERRORS, *CLICKS, "gauc", "fcp"} == {n for n in RATINGS if not n.startswith("user_")}
    assert not set(METRICS) & (set(RATINGS) - {"auc", "gauc"})
    for metric in RATINGS.values():
        assert metric.meaning
        assert metric.formula
        assert metric.reference
        assert metric.reads == ()


def test_results_export():
    got = evaluate_ratings(table([(1, 4, 3.0), (2, 2, 2.0)]))
    assert '"rmse"' in got.to_json()
    assert got.per_user_frame("polars").columns[0] == "user"
    assert "rmse" in got.to_markdown()


def test_results_of_sums_are_saved_and_compared_again(tmp_path):
    rng = np.random.default_rng(0)
    user, actual = rng.integers(0, 50, 900), rng.integers(0, 2, 900)
    made = {
        name: evaluate_ratings(
            table(np.c_[user, actual, np.clip(actual * w + rng.random(900) * (1 - w), 0, 1)]),
            metrics=["rmse", "mse", "mae", "log_loss", "gauc", "user_auc", "bias"],
        )
        for name, w in (("new", 0.5), ("old", 0.2))
    }
    for name, result in made.items():
        result.save(tmp_path / f"{name}.json")
    again = {name: recsys.load(tmp_path / f"{name}.json") for name in made}
    assert all(dict(again[name]) == dict(made[name]) for name in made)
    first, second = (recsys.compare(both, baseline="old") for both in (made, again))
    assert [row.verdict for row in first] == [row.verdict for row in second]
    with pytest.raises(RecsysError, match="r2, ece cannot be saved"):
        evaluate_ratings(table([(1, 1, 0.5)]), metrics=["rmse", "r2", "ece"]).save(tmp_path / "x.json")


def run(*arguments):
    return CliRunner().invoke(cli, ["ratings", *map(str, arguments)], prog_name="recsys")


def test_the_command(tmp_path):
    path = tmp_path / "said.csv"
    path.write_text("userId,rating,prediction\n007,4,3\n007,2,2\n8,5,3\n")
    done = run(path, "-m", "rmse", "-m", "user_rmse", "--per-user", tmp_path / "users.csv")
    assert done.exit_code == 0, done.output
    assert re.search(r"^rmse +1\.2910  \[0\.0000, \d\.\d{4}\] +2$", done.stdout, re.MULTILINE)
    assert (tmp_path / "users.csv").read_text().splitlines()[1].startswith("007,")
    assert json.loads(run(path, "--json").stdout)["result"]["metrics"][0]["metric"] == "mse"
    assert run(path, "-m", "mae", "--csv").stdout == "metric,value,cases\nmae,1.0,2\n"
    pd.read_csv(path).to_parquet(tmp_path / "said.parquet")
    assert "1.2910" in run(tmp_path / "said.parquet", "-m", "rmse").stdout


def test_the_command_names_what_is_wrong(tmp_path):
    path = tmp_path / "said.csv"
    path.write_text("who,rating,prediction\na,4,x\n")
    assert run(path).exit_code == 3
    assert "user" in run(path).stderr
    assert run(path, "--user", "who").exit_code == 3
    path.write_text("user,rating,prediction\na,4,\n")
    assert run(path).exit_code == 3
    path.write_text("user,rating,prediction\na,4,3\n")
    assert run(path, "--scale", "1", "3").exit_code == 3
    assert run(path, "-m", "rmsee").exit_code == 2
    assert run(path, "--json", "--csv").exit_code == 2
    assert run(tmp_path / "absent.csv").exit_code == 3
    assert run(path, "--per-user", tmp_path / "x.txt").exit_code == 2


@pytest.mark.shared
def test_ml_100k_with_item_means(shared_dir):
    data = pd.read_parquet(shared_dir / "data" / "ml-100k" / "interactions.parquet")
    data["prediction"] = data.groupby("item").rating.transform("mean")
    got = evaluate_ratings(
        data.rename(columns={"rating": "actual"}), metrics=[*ERRORS, "user_rmse"], scale=(1, 5)
    )
    whole = sklearn_errors(data.rating.to_numpy(), data.prediction.to_numpy())
    assert {n: got[n] for n in ERRORS} == pytest.approx(whole, abs=1e-9)
    users = data.assign(e=(data.prediction - data.rating) ** 2).groupby("user").e.mean() ** 0.5
    assert got["user_rmse"] == pytest.approx(users.mean())


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas, lambda f: f.convert_dtypes()])
def test_any_table_will_do(make):
    frame = table([(1, 4, 3.0), (1, 2, 2.5), (2, 5, 6.0)])
    assert evaluate_ratings(make(frame)) == evaluate_ratings(frame)


def test_labels_may_be_true_and_false():
    frame = pd.DataFrame({"user": [1, 1], "click": [True, False], "score": [0.9, 0.2]})
    assert evaluate_ratings(frame, metrics="auc")["auc"] == 1.0


def test_missing_values_of_any_kind_are_refused():
    frame = table([(1, 4, 3.0), (2, 2, 2.0)])
    holes = [
        frame.assign(rating=pd.array([4, None], dtype="Int64")),
        frame.assign(prediction=[3.0, None]),
        frame.assign(user=pd.array([1, None], dtype="Int64")),
        pl.from_pandas(frame).with_columns(pl.Series("prediction", [None, 1.0])),
        frame.assign(rating=["good", "bad"]),
        frame[:0],
    ]
    for frame_with_hole in holes:
        with pytest.raises(InputError):
            evaluate_ratings(frame_with_hole)
    with pytest.raises(InputError):
        evaluate_ratings([1, 2, 3])


def test_a_loaded_result_says_what_it_said(tmp_path):
    rows = table([(1, 4.0, 3.0), (1, 2.0, 6.0), (2, 5.0, 5.5)])
    made = evaluate_ratings(rows, metrics=["rmse", "user_mae"], scale=(1, 5), by={1: "a", 2: "b"})
    made.save(tmp_path / "one.json")
    assert str(recsys.load(tmp_path / "one.json")) == str(made)
    assert "3 rows of 2 users" in str(made)
    one = evaluate_ratings(rows[:1], metrics=["rmse"], scale=(1, 5))
    assert "1 row of 1 user" in str(one)


def test_the_gap_of_a_metric_whose_best_is_zero_is_between_distances_from_it():
    rows = table([(1, 3.0, 2.0), (2, 3.0, 3.1), (3, 3.0, 3.5)])
    gap = evaluate_ratings(rows, metrics=["bias"], by={1: "low", 2: "near", 3: "high"}).gaps()["bias"]
    assert (gap.best, gap.worst) == ("near", "low")
    assert (gap.difference, gap.ratio) == pytest.approx((0.9, 0.1))


def test_the_gap_of_a_number_of_all_rows_has_no_interval_of_user_means():
    rng = np.random.default_rng(0)
    rows = table([(u, float(rng.integers(1, 6)), rng.random() * 5) for u in range(60) for _ in range(4)])
    gaps = evaluate_ratings(rows, metrics=["r2", "user_r2"], by=lambda user: user % 2).gaps()
    assert gaps["r2"].interval is None
    assert gaps["user_r2"].interval is not None


def test_users_by_activity_have_their_own_pooled_numbers():
    rng = np.random.default_rng(1)
    rows = table(
        [(u, float(rng.integers(1, 6)), rng.random() * 5) for u in range(30) for _ in range(1 + u % 9)]
    )
    counts = {u: u for u in range(30)}
    bins = analysis.by_activity(
        evaluate_ratings(rows, metrics=["r2", "rmse"]), counts, bins=[(0, 15), (15, 30)]
    )
    low = rows[rows.user < 15]
    assert bins["0-15"]["r2"] == pytest.approx(sk.r2_score(low.rating, low.prediction))
    assert bins["0-15"]["rmse"] == pytest.approx(sk.root_mean_squared_error(low.rating, low.prediction))


def test_models_with_metrics_that_are_never_compared_still_have_a_report():
    rows = table([(u, float(1 + (u + i) % 5), 3.0 + i) for u in range(20) for i in range(3)])
    page = report_html({"a": evaluate_ratings(rows), "b": evaluate_ratings(rows.assign(prediction=3.0))})
    assert "explained_variance" in page


def test_the_report_marks_the_least_bias_and_has_intervals_of_numbers_of_all_rows():
    rng = np.random.default_rng(0)
    rows = table([(u, float(rng.integers(1, 6)), 0.0) for u in range(80) for _ in range(4)])
    near, far = (
        evaluate_ratings(rows.assign(prediction=rows.rating + off + rng.random(320)), metrics=["r2", "bias"])
        for off in (-0.6, 0.5)
    )
    assert near["bias"] < 0 < -near["bias"] < far["bias"]
    first, _ = overview(make_study({"near": near, "far": far}))
    r2, bias = (first.heads.index(name) for name in ("r2", "bias"))
    assert ["best" in row[bias].tone for row in first.rows] == [True, False]
    found = near.intervals()["r2"].interval
    assert f"[{found.low:.4f}, {found.high:.4f}]" in first.rows[0][r2].small


@pytest.mark.parametrize("scale", [("1", b"x"), (5, 1), (1,), (1, 3, 5), 5, "15", (1, None), {}, pd.NA])
def test_a_scale_is_two_rising_numbers(scale):
    with pytest.raises(InputError, match="lowest and highest"):
        evaluate_ratings(table([(1, 3.0, 3.0)]), scale=scale)
    with pytest.raises(InputError, match=r"scale=\(1, 5\)"):
        evaluate_ratings(table([(1, 3.0, 3.0)]), clip=True)


@pytest.mark.parametrize("missing", [pd.NA, None, ["skip"], "drop"])
def test_a_missing_prediction_is_an_error_or_skipped(missing):
    with pytest.raises(InputError, match="neither 'error' nor 'skip'"):
        evaluate_ratings({1: {5: 3.0}}, {1: {5: 4.0}}, missing=missing)


def test_predictions_and_truth_without_numbers_are_refused():
    """A list of items is no prediction, and must not be read as one of 1.0."""
    ratings = {1: {5: 4.0, 6: 2.0}}
    assert evaluate_ratings(ratings, ratings, "rmse")["rmse"] == 0
    with pytest.raises(InputError, match="predictions came without a prediction"):
        evaluate_ratings({1: [5, 6]}, ratings, "rmse")
    with pytest.raises(InputError, match="truth came without a rating"):
        evaluate_ratings(ratings, {1: [5, 6]}, "rmse")
    for metrics in (5, np.datetime64("2020")):
        with pytest.raises(InputError, match="metrics= came as"):
            evaluate_ratings(ratings, ratings, metrics)


@pytest.mark.parametrize("error", [0.0, 1e-7, 1e-160])
def test_a_root_of_hardly_anything_has_an_interval(error):
    """The slope of a root cannot be measured below 0."""
    rows = [(user, item, 3.0 + error * (user % 2), 3.0) for user in range(50) for item in range(3)]
    table = pd.DataFrame(rows, columns=["user", "item", "prediction", "rating"])
    result = recsys.evaluate_ratings(table, metrics=["rmse", "mae"])
    found = result.intervals()
    assert found["rmse"].value == result["rmse"]
    assert found["rmse"].interval.low <= result["rmse"] <= found["rmse"].interval.high
    with pytest.warns(ZeroVarianceWarning):
        recsys.compare({"same": result, "other": result}, baseline="same")


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("ece(bins=0)", "ece needs a whole number of at least 1 as bins, got 0.0"),
        ("ece(bins=2.5)", "ece needs a whole number of at least 1 as bins, got 2.5"),
        ("ece(binning=size)", "ece got binning='size'. Write ece(binning=width or count)"),
        ("gauc(weight=views)", "gauc got weight='views'"),
    ],
)
def test_a_parameter_that_cannot_be_says_what_can(metric, words):
    with pytest.raises(ConventionError, match=re.escape(words)) as caught:
        evaluate_ratings({1: {5: 0.4, 6: 0.2}}, {1: {5: 1.0, 6: 0.0}}, metric)
    assert f"Write {metric.partition('(')[0]}(" in str(caught.value)


def test_ratings_merge_with_ratings_of_the_same_metrics_alone():
    errors = evaluate_ratings({1: {5: 4.0}}, {1: {5: 3.0}}, "rmse")
    with pytest.raises(MergeError, match="merges with another one of ratings only"):
        errors.merge(recsys.evaluate({2: ["a"]}, {2: ["a"]}, "mrr"))
    with pytest.raises(MergeError, match="the parts hold different metrics"):
        errors.merge(evaluate_ratings({2: {5: 4.0}}, {2: {5: 3.0}}, "mae"))


def test_users_without_any_prediction_are_an_empty_table():
    with pytest.raises(InputError, match="predictions table has no rows"):
        recsys.evaluate_ratings({1: {}}, {1: {5: 3.0}}, ["rmse"])


@pytest.mark.filterwarnings("ignore::recsys.errors.RecsysWarning")
@pytest.mark.parametrize("name", RATINGS)
def test_wrong_certainty_is_counted_for_metrics_that_punish_it(name):
    rows = [(1, 0, 0.3), (1, 1, 0.8), (2, 0, 0.2), (2, 1, 0.7)]
    rare, never = (evaluate_ratings(table([(1, 1, p), *rows]), metrics=[name]) for p in (1e-3, 1e-6))
    assert (never[name] > rare[name] + 1) == ("certain_and_wrong" in rare.counts)
