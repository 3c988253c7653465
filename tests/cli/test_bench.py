"""`recsys bench` and `recsys init`: what they read off a table, what they run, and what they say."""

import dataclasses
import json
import re
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

import recsys
from recsys import kernels
from recsys.benching import bench as bench_module
from recsys.benching import bench_plan
from recsys.benching.bench_plan import make_plan, plan_of_folder, read_ratings
from recsys.benching.protocol import run_protocol
from recsys.cli.app import cli
from recsys.cli.error_messages import as_option
from recsys.comparison import compare as compare_module
from recsys.display.text_tables import fitted
from recsys.errors import (
    ColumnError,
    FileError,
    InputError,
    ManifestError,
    MissingExtraError,
    MissingFileError,
    SplitError,
    UnknownNameError,
    worded,
)
from recsys.evaluation.run import EvaluationRun
from recsys.inputs.frames import as_frame
from recsys.models import save_model, trainable
from recsys.models.model_files import fingerprint
from recsys.models.trainable import TRAINABLE, Sizes, Trainable, train_model, tune
from recsys.ranks.sources import scores
from recsys.splits.split_table import FrameTable

FAST = ["item-knn", "recent", "random"]


def events(n_users=90, n_rows=12, n_items=40, seed=0, **columns):
    """Two tastes: users of one prefer the items of one half, the earlier numbers more; all at all times."""
    rng = np.random.default_rng(seed)
    rows = []
    for user in range(n_users):
        half = n_items // 2
        weights = 1.0 / np.arange(1, half + 1)
        liked = rng.choice(half, size=n_rows, replace=False, p=weights / weights.sum()) + half * (user % 2)
        rows += [(f"u{user}", f"i{item}") for item in liked]
    frame = pd.DataFrame(rows, columns=["user", "item"])
    frame["timestamp"] = rng.permutation(len(frame))
    return frame.assign(**columns)


def invoke(*arguments):
    return CliRunner().invoke(cli, ["bench", *map(str, arguments)], prog_name="recsys")


@pytest.fixture(scope="module")
def result():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return recsys.bench(events(), baselines=FAST, trials=3)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with ratings.csv."""
    monkeypatch.chdir(tmp_path)
    events().to_csv("ratings.csv", index=False)
    return tmp_path


class TestOnce:
    """Every model is ranked once, every part read once, all are compared and audited once."""

    # Of what the audit itself ranks by popularity: in train, in the test, in both.
    SCANS_OF_AUDIT = 3

    @pytest.fixture
    def calls(self, monkeypatch):
        calls = Counter()

        def counting(owner, name, what):
            original = getattr(owner, name)
            monkeypatch.setattr(
                owner, name, lambda *args, **named: calls.update([what]) or original(*args, **named)
            )

        counting(kernels, "scan", "scans")
        counting(scores, "rank_scores", "blocks of scores")
        counting(bench_plan, "read_interactions", "reads")
        counting(compare_module, "compare_results", "comparisons")
        counting(bench_module, "audit", "audits")
        return calls

    @pytest.mark.parametrize(
        "trials",
        [pytest.param(0, id="without tuning"), pytest.param({"item-knn": 2, "recent": 3}, id="tuned")],
    )
    def test_models_are_ranked_parts_read_and_all_compared_once(self, calls, trials):
        result = recsys.bench(events(), baselines=FAST, trials=trials)
        n = {name: trials.get(name, 0) if trials else 0 for name in result.runs}
        assert {name: training.trials for name, training in result.training.items()} == n
        assert calls == {
            "scans": 2 + n["recent"] + self.SCANS_OF_AUDIT,  # popularity and recent are factors
            "blocks of scores": 2 + n["item-knn"],
            "reads": 4 if trials else 3,  # all before the test, the test, validation; train for the trials
            "comparisons": 1,
            "audits": 1,
        }

    def test_showing_a_result_ranks_reads_and_compares_nothing(self, calls, tmp_path):
        result = recsys.bench(events(), baselines=FAST, trials=0)
        calls.clear()
        shown = [str(result), result._repr_html_(), json.dumps(result.to_dict()), str(result.methods())]
        shown.append(result.report(tmp_path / "bench.html").read_text("utf-8"))
        assert all(result.decision.heading in text for text in (*shown[:3], shown[-1]))
        assert str(result.cautions)
        assert calls == {}

    def test_lists_are_those_of_recommend(self, result):
        for name, training in result.training.items():
            model = train_model(name, result.history, **training.settings)
            again = recsys.recommend(model, 20, users=result.test.cases.values, seen=result.history)
            for part in ("indptr", "codes", "scores"):
                assert getattr(result.lists[name], part).tobytes() == getattr(again, part).tobytes()

    def test_a_result_cannot_be_changed(self, result):
        with pytest.raises(dataclasses.FrozenInstanceError):
            result.headline = "mrr@10"
        assert result.decision is result.decision
        assert result.comparison is result.compared


# What is shown


def test_the_decision_is_bold_and_the_verdicts_have_their_colours(result):
    plain = str(result)
    with fitted(None, colour=True):
        text = result.to_text()
    assert text.startswith(f"\x1b[1m{result.decision.heading}.\x1b[0m\n")
    assert "\x1b[31mworse -" in text
    assert re.sub(r"\x1b\[\d+m", "", text) == plain
    (against,) = (name for name in result.to_frame() if name.startswith("against"))
    assert '<b style="color:#d64545">worse</b> -' in result._repr_html_()
    assert result.to_frame()[against].iloc[-1].startswith("worse -")


# Kinds of events


def shop(seed=0):
    """Views, carts and purchases: of every fourth pair the view is followed by a purchase."""
    frame = events(seed=seed).rename(columns={"timestamp": "time"}).assign(event="view")
    later = frame.iloc[::4].assign(event="purchase", time=lambda rows: rows["time"] + 0.5)
    carts = frame.iloc[1::4].assign(event="cart", time=lambda rows: rows["time"] + 0.25)
    return pd.concat([frame, later, carts], ignore_index=True)


def test_only_the_kinds_that_are_named_are_relevant_and_the_strongest_event_counts():
    data = shop()
    plan = make_plan(data, relevant={"event": "purchase"})
    assert len(plan.table) == len(events())
    assert plan.n_left_out == len(data) - len(events())
    kinds = plan.table.frame.to_native()
    assert (kinds["event"] == "purchase").sum() == len(data[data["event"] == "purchase"])
    assert ((kinds["event"] == "purchase") == (kinds["relevance"] == 1.0)).all()
    assert plan.ratings.relevant_from == 1.0
    assert plan.ratings.why == "'event': purchase counts as relevant; cart, view: only learnt from."
    result = recsys.bench(data, baselines=["item-knn"], trials=1, relevant={"event": "purchase"})
    bought = kinds[plan.masks["test"] & (kinds["event"] == "purchase").to_numpy()]
    assert result.evaluations["item-knn"].n_cases["recall@10"] == bought["user"].nunique()
    assert len(result.history.codes) == (plan.masks["train"] | plan.masks["validation"]).sum()


def test_weights_of_kinds_are_grades():
    data = shop()
    plan = make_plan(data, relevant={"event": {"cart": 1, "purchase": 3}})
    assert sorted(set(plan.table.frame.to_native()["relevance"])) == [0.0, 1.0, 3.0]
    assert plan.ratings.relevant_from == 1.0
    assert "cart, purchase count as relevant; view: only learnt from." in plan.ratings.why
    assert make_plan(data, relevant={"event": ["cart", "purchase"]}).ratings == plan.ratings
    unnamed = data.assign(event=data["event"].where(data["event"] != "view"))
    assert "cart, purchase count as relevant; (none): only learnt from." in (
        make_plan(unnamed, relevant={"event": {"cart": 1, "purchase": 3}}).ratings.why
    )
    assert make_plan(unnamed, relevant={"event": None}).ratings.why.startswith("'event': (none) counts")
    strict = make_plan(data, relevant={"event": {"cart": 1, "purchase": 3}}, relevant_from=3)
    assert strict.ratings.why.startswith("'event': purchase counts as relevant; cart, view")


def test_kinds_count_in_parts_that_are_split_already_and_in_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shop().to_csv("shop.csv", index=False)
    options = ("--baselines", "item-knn", "--trials", "1", "--no-report", "--json")
    whole = json.loads(invoke("shop.csv", "--relevant", "event=purchase", *options).stdout)
    assert whole["relevant_from"] == 1.0
    assert invoke("shop.csv", "--relevant", "event=purchase", "--split-to", "parts").exit_code == 0
    again = json.loads(invoke("--split", "parts", "--relevant", "event=purchase", *options).stdout)
    assert again["models"] == whole["models"]
    weighted = invoke("shop.csv", "--relevant", "event=cart:1,purchase:3", *options)
    assert json.loads(weighted.stdout)["relevant_from"] == 1.0
    for wrong, words in (("event", "COLUMN=KIND"), ("event=cart:x,view:1", "weight for each kind")):
        done = invoke("shop.csv", "--relevant", wrong)
        assert done.exit_code == 2
        assert words in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("relevant", "error", "words"),
    [
        ({}, InputError, "the kinds in one column"),
        ("purchase", InputError, "the kinds in one column"),
        ({"kind": "purchase"}, ColumnError, "there is no column 'kind'"),
        ({"event": "purchas"}, UnknownNameError, "Did you mean 'purchase'"),
        ({"event": {"purchase": -1}}, InputError, "the weight of 'purchase' is -1"),
        ({"event": {"purchase": 0}}, InputError, "no kind has a weight above 0"),
    ],
)
def test_kinds_that_mean_nothing_are_refused(relevant, error, words):
    with pytest.raises(error, match=words):
        recsys.bench(shop(), relevant=relevant)


# What fits into the time


def slow(monkeypatch, **seconds):
    """Estimates of so many seconds for a fit."""
    for name, each in seconds.items():
        entry = TRAINABLE[name]
        monkeypatch.setitem(TRAINABLE, name, dataclasses.replace(entry, seconds=lambda _, each=each: each))


def test_minutes_leave_out_settings_of_the_slowest_and_then_the_slowest(monkeypatch):
    slow(monkeypatch, **{"item-knn": 20.0, "recent": 1000.0})
    result = recsys.bench(events(), baselines=FAST, minutes=1.5)
    assert result.left_out == {"recent": "it would take about 17 min."}
    assert list(result.training) == ["popularity", "random", "item-knn"]  # the cheap ones first
    assert result.training["item-knn"].trials == 2
    (time,) = (sentence for heading, sentence in result.notes if heading == "Time")
    again = "baselines=['popularity', 'random', 'item-knn'] trials={'item-knn': 2}"
    assert time == f"about 60 s of 2 min; again without a clock: {again}."
    again = recsys.bench(events(), baselines=["random", "item-knn"], trials={"item-knn": 2})
    assert {m: dict(e) for m, e in again.evaluations.items()} == {
        m: dict(e) for m, e in result.evaluations.items()
    }
    assert recsys.bench(events(), baselines=FAST, minutes=0.01).runs.keys() == {"popularity", "random"}


def test_a_plan_says_what_is_not_tuned_so_that_it_can_be_run_again(monkeypatch):
    slow(monkeypatch, **{"item-knn": 20.0})
    timed = recsys.bench(events(), baselines=["item-knn"], minutes=0.5)
    assert timed.training["item-knn"].trials == 0
    assert any("trials={'item-knn': 0}" in sentence for _, sentence in timed.notes)
    again = recsys.bench(events(), baselines=["item-knn"], trials={"item-knn": 0})
    assert dict(again.evaluations["item-knn"]) == dict(timed.evaluations["item-knn"])


def test_enough_minutes_change_nothing(result):
    timed = recsys.bench(events(), baselines=FAST, trials=3, minutes=60)
    assert {name: one.trials for name, one in timed.training.items()} == {
        name: one.trials for name, one in result.training.items()
    }
    assert all(dict(timed.evaluations[name]) == dict(result.evaluations[name]) for name in result.runs)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"minutes": 0}, "minutes is 0"),
        ({"minutes": "2"}, "minutes is '2'"),
        ({"minutes": float("nan")}, "minutes is nan"),
        ({"trials": {"ease": -1}}, "trials is {'ease': -1}"),
    ],
)
def test_what_is_no_time_and_no_trials_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        recsys.bench(events(), **options)


def test_trials_of_an_unknown_baseline_are_refused():
    with pytest.raises(UnknownNameError, match=r"baseline of trials 'eas'\. Did you mean 'ease'"):
        recsys.bench(events(), trials={"eas": 1})


def test_estimates_grow_with_the_data():
    small, large = (Sizes.of(recsys.read_interactions(events(n_users=n))) for n in (30, 90))
    assert small == Sizes(360, 30, 40, 30 * 12**2)
    for name in ("item-knn", "ease", "als", "bpr"):
        assert 0 < TRAINABLE[name].seconds(small) < TRAINABLE[name].seconds(large)


def test_an_interrupt_keeps_what_is_done(monkeypatch):
    def stop(history, **_):
        raise KeyboardInterrupt

    monkeypatch.setitem(TRAINABLE, "recent", Trainable(stop))
    result = recsys.bench(events(), baselines=["item-knn", "recent", "random"], trials=1)
    assert "recent" in result.left_out
    assert set(result.left_out.values()) == {"it was stopped."}
    assert set(result.runs) | set(result.left_out) == {"popularity", "item-knn", "recent", "random"}
    monkeypatch.setitem(TRAINABLE, "popularity", Trainable(stop))
    with pytest.raises(KeyboardInterrupt):
        recsys.bench(events(), baselines=["random"])


def test_the_command_takes_minutes_and_trials_of_each(place):
    done = invoke("ratings.csv", "--baselines", "random,item-knn", "--minutes", "5", "--no-report")
    words = "Time: about 1 s of 5 min; again without a clock: --baselines popularity,random,item-knn"
    assert words in " ".join(done.stdout.split())
    options = ("--baselines", "item-knn", "--no-report", "--json")
    named = invoke("ratings.csv", *options, "--trials", "item-knn=2")
    assert json.loads(named.stdout)["training"]["item-knn"]["trials"] == 2
    wrong = invoke("ratings.csv", "--trials", "item-knn=two")
    assert wrong.exit_code == 2
    assert "two" in wrong.stderr


# Parts that were split before


def test_parts_in_memory_are_evaluated_as_the_split_that_bench_makes(result):
    made = recsys.split(events(), result.plan.how, **result.plan.parameters)
    parts = (made.train, made.validation, made.test)
    options = {"baselines": FAST, "trials": 3}
    for split in (made, parts, tuple(pl.from_pandas(part) for part in parts)):
        again = recsys.bench(split=split, **options)
        assert again.runs.keys() == result.runs.keys()
        assert all(dict(again.evaluations[name]) == dict(result.evaluations[name]) for name in again.runs)
    assert again.plan.why == "as the parts were given."
    untuned = recsys.bench(pd.concat(parts[:2]), made.test, **options)
    assert dict(untuned.evaluations["random"]) == dict(result.evaluations["random"])
    assert ("Not tuned", "there is no validation part.") in untuned.plan.remarks
    assert "Models that were given" not in dict(untuned.notes)


def test_users_who_are_not_in_train_have_the_history_of_the_split(tmp_path):
    made = recsys.split(events(), "unseen_users", test=0.2, known=0.8)
    found = recsys.bench(split=made, baselines=["item-knn"], trials=1)
    assert len(found.test.cases) == made.test["user"].nunique() > 10
    recsys.splits.save(made, tmp_path / "parts")
    again = recsys.bench(split=tmp_path / "parts", baselines=["item-knn"], trials=1)
    assert dict(again.evaluations["item-knn"]) == dict(found.evaluations["item-knn"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": 5}, "split came as int"),
        ({"split": (events(),)}, "split came as tuple"),
        ({"split": (events(), [1, 2])}, "test came as list"),
        ({"data": events(), "split": "parts"}, "one of the three"),
        ({"test": events()}, "one of the three"),
        ({}, "one of the three"),
        ({"split": (events(), pl.from_pandas(events()))}, "not tables of one kind"),
    ],
)
def test_what_is_no_split_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        recsys.bench(**arguments)


def test_saved_results_are_those_that_compare_and_board_take(result, tmp_path):
    paths = result.save(tmp_path)
    assert list(paths) == list(result.runs)
    compared = recsys.compare(paths, headline="ndcg@10")
    assert [str(row.verdict) for row in compared] == [str(row.verdict) for row in result.comparison]
    assert {run.name for run in recsys.history(tmp_path)} == set(result.runs)
    events().to_csv(tmp_path / "events.csv", index=False)
    done = invoke(
        tmp_path / "events.csv", "--baselines", "random", "--no-report", "--save-to", tmp_path / "cli"
    )
    assert done.exit_code == 0
    assert "cli, 2 files" in done.stderr
    assert {run.name for run in recsys.history(tmp_path / "cli")} == {"random", "popularity"}
    several = recsys.bench(events(), baselines=["random"], trials=0, seeds=2).save(tmp_path / "seeds")
    assert set(several) == {"popularity", "random, seed 0", "random, seed 1"}


# What is read off a table


@pytest.mark.parametrize(
    ("names", "user", "item"),
    [
        (["reviewerID", "asin", "overall"], "reviewerID", "asin"),
        (["user_id", "parent_asin", "asin", "rating"], "user_id", "parent_asin"),
        (["ISBN", "User-ID", "Book-Rating"], "User-ID", "ISBN"),
        (["StockCode", "CustomerID"], "CustomerID", "StockCode"),
        (["artist_id", "track_id", "user_id"], "user_id", "track_id"),
        (["user_id", "app_id", "hours"], "user_id", "app_id"),
    ],
)
def test_the_names_that_public_data_sets_use_are_recognised(names, user, item):
    table = events().rename(columns={"user": user, "item": item})
    plan = make_plan(table.assign(**{name: 1.0 for name in names if name not in (user, item)}))
    assert (plan.columns["user"], plan.columns["item"]) == (user, item)


def test_one_border_in_time_where_users_survive_it():
    plan = make_plan(events())
    assert plan.how == "global_temporal"
    time = plan.table.column("timestamp").to_numpy()
    assert time[plan.masks["train"]].max() < time[plan.masks["validation"]].min()
    assert time[plan.masks["validation"]].max() < time[plan.masks["test"]].min()
    assert "nothing is learnt from the future" in str(plan.explain())


def test_users_and_items_that_training_does_not_know_are_counted():
    frame = events()
    late = [("new", "i1", 10**6), ("new", "i2", 10**6), ("u1", "never seen", 10**6)]
    frame = pd.concat([frame, pd.DataFrame(late, columns=frame.columns)], ignore_index=True)
    plan = make_plan(frame)
    text = str(plan.explain())
    assert "1 of " in text
    assert "users (2 rows); left out" in text
    assert "items (1 row); these count as misses" in text
    test = plan.held_out("test")
    assert "new" not in test.cases.values
    assert "never seen" in test.items.values


def test_each_users_last_rows_where_users_come_and_go():
    frame = events()
    frame["timestamp"] = np.arange(len(frame))  # one user after the other
    plan = make_plan(frame)
    assert plan.how == "leave_last"
    assert plan.parameters["n"] == 1
    assert "It leaks across users" in str(plan.explain())
    assert len(plan.held_out("test").codes) == 90


def test_long_histories_spare_five_rows():
    frame = events(n_users=40, n_rows=35, n_items=80)
    frame["timestamp"] = np.arange(len(frame))
    assert make_plan(frame).parameters["n"] == 5


def test_places_in_a_history_are_no_common_time():
    frame = events()
    frame["timestamp"] = frame.groupby("user").cumcount()
    plan = make_plan(frame)
    assert plan.how == "leave_last"
    assert "counts the rows of each user" in plan.why


def test_without_times_nothing_is_said_about_the_future():
    plan = make_plan(events().drop(columns="timestamp"))
    assert plan.how == "per_user_ratio"
    assert "Nothing can be known about the future" in plan.why
    assert plan.columns["time"] is None


@pytest.mark.parametrize(
    ("values", "relevant_from", "words"),
    [
        ([1, 2, 3, 4, 5, 5, 4], 4.0, "ratings 1 to 5: 4 and more"),
        ([0.5, 3.5, 4.0, 4.5, 5.0], 4.0, "ratings 0.5 to 5: 4 and more"),
        ([1, 7, 8, 9, 10], 8.0, "8 and more"),
        ([40, 70, 85, 90, 100], 85.0, "85 and more"),
        ([0, 1, 1, 0], 1.0, "ratings 0 to 1: 1 and more"),
        ([1, 1, 1, 1, 2, 3], None, "counts (1 to 3)"),
        ([1, 2, 5, 800], None, "counts (1 to 800)"),
        ([1.5, 20.25, 3600.0], None, "amounts"),
        ([3, 3, 3], None, "all ratings are 3"),
    ],
)
def test_what_ratings_mean(values, relevant_from, words):
    frame = pd.DataFrame({"user": range(len(values)), "item": range(len(values)), "rating": values})
    ratings = read_ratings(FrameTable(as_frame(frame), None), "rating")
    assert ratings.relevant_from == relevant_from
    assert words in ratings.why


@pytest.mark.parametrize("odd", [99, 11, 10])
def test_one_rating_beyond_the_scale_is_odd_and_changes_nothing(odd):
    frame = events(rating=np.arange(1080) % 5 + 1)
    frame.loc[7, "rating"] = odd
    plan = make_plan(frame)
    assert plan.ratings.relevant_from == 4.0
    assert plan.odd == [("Odd ratings", f"1 rating beyond 5, up to {odd}: the scale is read off the others.")]
    result = recsys.bench(frame, baselines=[])
    assert "odd ratings" in result.decision.tiles[-1].small.lower()
    assert "Odd ratings: 1 rating beyond 5" in str(result)


def test_a_scale_to_a_hundred_may_have_a_low_median():
    rng = np.random.default_rng(0)
    scale = np.append(rng.integers(0, 80, 1079), 100)
    assert make_plan(events(rating=scale)).ratings.relevant_from == 100.0
    counts = np.append(rng.geometric(0.1, 1079), 100)
    assert make_plan(events(rating=counts)).ratings.relevant_from is None


@pytest.mark.parametrize("share", [0.15, 0.6])
@pytest.mark.parametrize("newest", [9999999999, pd.Timestamp("9999-12-31")])
def test_a_time_that_stands_for_none_is_noticed(newest, share):
    frame = events()
    if not isinstance(newest, int):
        frame["timestamp"] = pd.to_datetime(frame["timestamp"], unit="s").astype("datetime64[us]")
    at = np.arange(len(frame)) % 20 < 20 * share
    frame.loc[at, "timestamp"] = newest
    plan = make_plan(frame)
    (odd,) = plan.odd
    shown = "9999999999" if isinstance(newest, int) else "9999-12-31 00:00:00"
    assert odd[0] == "Odd times"
    assert f"{at.sum()} rows ({share:.0%}) at the newest time, {shown}, as if it stood for none" in odd[1]
    if share < 0.5:
        assert (plan.how, len(plan.table)) == ("global_temporal", len(frame) - at.sum())
        assert "they are left out" in odd[1]
    else:
        assert (plan.how, len(plan.table)) == ("per_user_ratio", len(frame))
        assert "the column of times is not read" in odd[1]


def test_the_share_of_rows_at_coarse_times_is_said_as_it_is():
    frame = events()
    frame["timestamp"] = np.random.default_rng(0).permutation(np.arange(len(frame)) % 3)  # three days
    plan = make_plan(frame)
    assert plan.odd == []
    assert "counts the rows" not in plan.why
    shares = {part: f"{mask.mean():.0%}" for part, mask in plan.masks.items()}
    assert shares["test"] == "33%"
    assert "the newest 33% of the rows are the test, as much before them is validation (10% each" in plan.why
    usual = make_plan(events()).why
    assert "the newest 10% of the rows are the test, as much before them is validation; nothing" in usual


def test_last_rows_of_the_same_time_are_counted():
    frame = events()
    frame["timestamp"] = np.arange(len(frame)) // 7  # one user after the other, seven rows at a time
    plan = make_plan(frame)
    assert plan.how == "leave_last"
    n, n_users = plan.masks["test"].sum(), plan.table.frame["user"].to_native()[plan.masks["test"]].nunique()
    assert n > n_users
    words = f"Rows of the same time stay together, so the test has {n} rows of {n_users} users."
    assert words in plan.why
    one_by_one = events()
    one_by_one["timestamp"] = np.arange(len(one_by_one))
    assert "stay together" not in make_plan(one_by_one).why


@pytest.mark.parametrize("word", ["rating", "grade"])
def test_rating_is_another_word_for_grade_in_columns(word, tmp_path):
    frame = events(stars=np.arange(1080) % 5 + 1)
    frame.to_csv(tmp_path / "r.csv", index=False)
    columns = {word: "stars"}
    for data in (frame, tmp_path / "r.csv"):
        result = recsys.bench(data, columns=columns, baselines=[])
        assert result.plan.columns["grade"] == "stars"
    parts = recsys.split(frame, "leave_last", columns=columns)
    lists = {user: ["i0", "i1"] for user in frame["user"]}
    named = recsys.evaluate(lists, parts.test, "ndcg@2", columns={"truth": columns}, train=None)
    renamed = recsys.evaluate(lists, parts.test.rename(columns={"stars": "rating"}), "ndcg@2")
    assert named["ndcg@2"] == renamed["ndcg@2"]
    read = recsys.read_file(tmp_path / "r.csv", "truth", columns=columns)
    assert sorted(set(read.grades)) == [1, 2, 3, 4, 5]
    assert recsys.audit(parts.train, parts.test, columns=columns).checked


def test_ratings_that_grade_nothing_are_not_read():
    frame = events(rating=3.0)
    assert make_plan(frame).columns["grade"] is None
    assert make_plan(frame).held_out("test").grades is None


def test_a_border_can_be_asked_for():
    frame = events(rating=np.tile([1, 2, 3, 4, 5, 5], 180))
    plan = make_plan(frame, relevant_from=2)
    assert plan.ratings.relevant_from == 2.0
    assert "as asked for (83%)" in plan.ratings.why
    with pytest.raises(InputError, match="no rating is 6 or more"):
        make_plan(frame, relevant_from=6)
    with pytest.raises(InputError, match="needs ratings"):
        make_plan(events(), relevant_from=4)


def test_repeated_and_incomplete_rows_are_left_out_and_counted():
    frame = events().astype({"timestamp": float})
    later = frame.iloc[:7].assign(timestamp=1e6)
    frame = pd.concat([later, frame, frame.iloc[:2].assign(item="x", timestamp=np.nan)], ignore_index=True)
    plan = make_plan(frame)
    text = str(plan.explain())
    assert "7 rows of a user and an item that occurred before: the first counts" in text
    assert "2 rows without a time." in text
    assert plan.table.column("timestamp").to_numpy().max() < 1e6  # the first of each counts
    assert len(plan.table) == len(events())


def test_a_file_with_empty_ratings_is_read_as_its_table_is(place):
    rating = np.resize([2.0, 5.0, np.nan, 4.0, 5.0], 1080)
    events(rating=rating).to_csv("ratings.csv", index=False)
    done = invoke("ratings.csv", "--baselines", "random", "--json", "--no-report", "-q")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert "Left out: 216 rows without a rating." in document["notes"]
    in_python = recsys.bench(pd.read_csv("ratings.csv"), baselines=["random"])
    values = {name: dict(e) for name, e in in_python.evaluations.items()}
    assert document["models"] == values
    by_path = recsys.bench("ratings.csv", baselines=["random"])
    assert {name: dict(e) for name, e in by_path.evaluations.items()} == values
    text = Path("ratings.csv").read_text().replace(",5.0", ",good", 1)
    Path("ratings.csv").write_text(text)
    done = invoke("ratings.csv", "-q")
    assert done.exit_code == 3
    assert "ratings.csv: the grade 'good' is not a number. Fix the cell" in done.stderr


@pytest.mark.parametrize("equal", ["for all", "of each user"])
def test_times_that_order_nothing_are_not_read(equal):
    frame = events()
    frame["timestamp"] = 7 if equal == "for all" else frame["user"].str[1:].astype(int) * 1000
    plan = make_plan(frame)
    assert plan.how == "per_user_ratio"
    assert plan.columns["time"] is None
    assert "the column 'timestamp': its times do not order the rows of a user." in str(plan.explain())


def test_few_users_are_the_reason_for_a_split_by_user():
    plan = make_plan(events(n_users=10))
    assert plan.how == "leave_last"
    assert "too few users with a history (8 in the validation and 8 in the test; it takes 20)" in plan.why


@pytest.mark.parametrize("worst", [-1.0, 1e308, np.inf])
def test_ratings_that_are_no_grades_can_be_left_out(worst, place):
    frame = events(rating=np.resize([3.0, 4.0, worst], 1080))
    frame.to_csv("ratings.csv", index=False)
    done = invoke("ratings.csv", "--no-report")
    assert done.exit_code == 3
    assert "leave the ratings out: --grade none" in done.stderr
    assert "--set" not in done.stderr
    done = invoke("ratings.csv", "--grade", "None", "--baselines", "random", "--no-report", "-q")
    assert done.exit_code == 0, done.output
    assert "there are no ratings" in done.stdout
    with pytest.raises(InputError, match="'grade': None"):
        make_plan(frame)
    assert make_plan(frame, columns={"grade": None}).ratings.relevant_from is None


def test_two_columns_for_one_role_must_be_told_apart():
    frame = events()
    frame["date"] = frame["timestamp"]
    with pytest.raises(recsys.errors.ColumnError, match="could all be the time"):
        make_plan(frame)
    assert make_plan(frame, columns={"time": "date"}).columns["time"] == "date"


# What is run


def test_one_model_alone_has_the_cautions_of_its_evaluation():
    alone = recsys.bench(events(), baselines=["popularity"])
    assert alone.cautions == tuple(alone.evaluations["popularity"].cautions)
    assert "popularity" in alone.to_text()


def test_the_models_stand_by_merit_and_popularity_is_the_baseline(result):
    values = [e["ndcg@10"] for e in result.evaluations.values()]
    assert values == sorted(values, reverse=True)
    assert result.best == "item-knn"
    assert {row.model for row in result.comparison} == {result.best}
    assert {row.baseline for row in result.comparison} == {*result.evaluations} - {result.best}
    assert result.comparison.headline == "ndcg@10"
    assert set(result.evaluations) == {"popularity", *FAST}
    assert result.left_out == {}


def test_settings_are_chosen_on_validation_and_fitted_on_all_before_the_test(result):
    plan = result.plan
    chosen = tune("item-knn", plan.history("train"), plan.held_out("validation"), trials=3)
    training = result.training["item-knn"]
    assert training.settings == chosen.settings
    assert training.trials == 3
    history = plan.history("train", "validation")
    assert len(history.codes) == int((plan.masks["train"] | plan.masks["validation"]).sum())
    model = train_model("item-knn", history, **chosen.settings)
    again = recsys.evaluate(model, plan.held_out("test"), ["ndcg@10", "coverage@10"], seen=history)
    for metric in again:
        assert again[metric] == result.evaluations["item-knn"][metric]


def test_the_decision_comes_first_and_is_that_of_the_report(result, tmp_path):
    lines = str(result).splitlines()
    assert lines[0] == f"{result.decision.heading}."
    assert "item-knn" in lines[0]
    table = next(at for at, line in enumerate(lines) if line.startswith("model "))
    assert [line.split()[0] for line in lines[table + 2 :][: len(result.evaluations)]] == list(
        result.evaluations
    )
    assert "against item-knn" in lines[table]
    against = [line.split()[-3:-1] for line in lines[table + 2 :] if line.startswith("popularity ")]
    assert against[0][0] == "worse"
    page = result.report(tmp_path / "bench.html").read_text("utf-8")
    assert result.decision.heading in page
    assert "by ndcg@10 on validation" in page


def test_a_bench_has_the_paragraph_and_the_pictures_of_its_comparison(result):
    paragraph = str(result.methods(data="the shop"))
    assert "by the strategy global_temporal of recsys" in paragraph
    assert "the shop" in paragraph
    assert result.chart.forest().to_json() == result.comparison.chart.forest().to_json()


def test_relevance_reaches_every_number():
    rating = np.tile([1, 5, 5, 2, 4, 5], 180)
    result = recsys.bench(events(rating=rating), baselines=["item-knn"], trials=1)
    assert all(e.conventions.relevant_from == 4 for e in result.evaluations.values())
    test, history = result.test, result.history
    model = train_model("popularity", history)
    strict = recsys.evaluate(model, test, "recall@10", seen=history, conventions={"relevant_from": 4})
    assert result.evaluations["popularity"]["recall@10"] == strict["recall@10"]


def test_what_cannot_run_is_left_out_with_the_reason(monkeypatch):
    monkeypatch.setattr(trainable, "find_spec", lambda _: None)
    monkeypatch.setattr(bench_module, "free_memory", lambda: 2 * 24 * 40**2 - 2)
    frame = events().drop(columns="timestamp")
    result = recsys.bench(frame, trials=1)
    assert list(result.evaluations) == ["item-knn", "popularity", "random"]
    assert result.left_out["recent"] == "there are no times."
    assert "pip install" in result.left_out["als"]
    assert set(result.left_out) == {"recent", "ease", "als", "bpr"}
    assert result.left_out["ease"].startswith("40 items would take")
    text = str(result)
    assert all(f"Not run: {name}, as " in text for name in result.left_out)
    assert "Not run: als, as it needs" in text
    assert "(of 1 trial)" in text
    told = []
    recsys.bench(frame, trials=1, progress=lambda _, total, name: told.append((total, name.split(":")[0])))
    assert list(dict.fromkeys(told)) == [
        (4, name) for name in ("popularity", "random", "item-knn", "comparing")
    ]


def test_ease_runs_where_half_of_the_free_memory_suffices(monkeypatch):
    monkeypatch.setattr(bench_module, "free_memory", lambda: 2 * TRAINABLE["ease"].memory(40))
    assert "ease" in recsys.bench(events(), baselines=["ease"], trials=1).evaluations


def test_free_memory_is_a_plausible_number():
    free = bench_module.free_memory()
    assert free is None or 1 << 20 < free < 1 << 50


def test_a_container_has_its_limit_and_cached_files_are_free(tmp_path):
    for name, text in (("max", "5000"), ("current", "4500"), ("stat", "anon 1\ninactive_file 1200\n")):
        (tmp_path / f"memory.{name}").write_text(text)
    if bench_module.free_memory(tmp_path) is not None:  # without /proc nothing is known
        assert bench_module.free_memory(tmp_path) == 1700
        (tmp_path / "memory.max").write_text("max")
        assert bench_module.free_memory(tmp_path) > 5000


def test_memory_that_runs_out_leaves_a_model_out(monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setitem(TRAINABLE, "random", Trainable(fail))
    result = recsys.bench(events(), baselines=["random"])
    assert result.left_out == {"random": "the memory does not suffice."}
    monkeypatch.undo()
    rank, asked = EvaluationRun.evaluate_with_lists, []

    def fail_later(*given, **options):
        asked.append(given)
        return fail() if len(asked) == 2 else rank(*given, **options)

    monkeypatch.setattr(EvaluationRun, "evaluate_with_lists", fail_later)
    result = recsys.bench(events(), baselines=["random"])
    assert {*result.evaluations} == {*result.lists} == {"popularity", "random"} - result.left_out.keys()
    assert len(result.left_out) == 1
    monkeypatch.setattr(EvaluationRun, "evaluate_with_lists", fail)
    words = "no model to compare: popularity, as the memory does not suffice.; random, as the memory"
    with pytest.raises(InputError, match=words):
        recsys.bench(events(), baselines=["random"])


def test_another_recommender_of_the_registry_is_run(monkeypatch):
    monkeypatch.setitem(TRAINABLE, "mine", Trainable(TRAINABLE["popularity"].fit))
    result = recsys.bench(events(), baselines=["mine"])
    assert result.evaluations["mine"]["ndcg@10"] == result.evaluations["popularity"]["ndcg@10"]


def test_an_unknown_baseline_is_an_error():
    with pytest.raises(UnknownNameError, match="item-knn"):
        recsys.bench(events(), baselines=["item-kn"])


def test_own_models_stand_beside_the_baselines():
    frame = events()
    plan = make_plan(frame)
    test, history = plan.held_out("test"), plan.history("train", "validation")
    cheat = frame[plan.masks["test"]].groupby("user")["item"].agg(list).to_dict()
    result = recsys.bench(
        frame, models={"oracle": cheat, "copy": train_model("popularity", history)}, baselines=["random"]
    )
    assert result.best == "oracle"
    assert result.evaluations["oracle"]["recall@10"] == 1.0
    assert result.evaluations["copy"]["ndcg@10"] == result.evaluations["popularity"]["ndcg@10"]
    assert result.evaluations["oracle"].counts["cases"] == len(test.cases)
    assert "must not have learnt from the test" in str(result)
    with pytest.raises(InputError, match="called 'random', as a baseline is"):
        recsys.bench(frame, models={"random": cheat})


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (("train", "validation", "test"), "learnt from 1,080 rows, and 972 come before the test"),
        (("test",), "learnt from the rows of test"),
        (("train", "test"), "learnt from the rows of train and test"),
        (("train",), None),
        (("train", "validation"), None),
    ],
)
@pytest.mark.parametrize("given", ["model", "path"])
def test_a_model_that_learnt_from_the_test_is_an_error_of_the_audit(parts, words, given, tmp_path):
    frame = events()
    learnt = make_plan(frame).history(*parts)
    about = {"name": "item-knn", "data": fingerprint(learnt)}
    path = save_model(tmp_path / "mine.npz", train_model("item-knn", learnt), about)
    model = path if given == "path" else recsys.models.load_model(path)
    result = recsys.bench(frame, models={"mine": model}, baselines=["random"])
    errors = [finding.message for finding in result.audit.errors]
    if words is None:
        assert errors == []
        return
    assert errors == [f"mine {words}."]
    assert f"Leak: mine {words}." in " ".join(str(result).split())
    assert result.best != "mine" or result.decision.heading == "mine leads, but the audit found errors"
    assert re.search(r"^To be careful about: \d+ audit errors?\b", str(result), re.MULTILINE)
    assert json.loads(result.to_json())["audit"]["passed"] is False
    if parts == ("train", "validation", "test"):
        assert result.best == "mine"


def test_rows_that_are_left_out_are_no_leak(tmp_path):
    frame = events()
    plan = make_plan(frame)
    often = pd.concat([frame[plan.masks["train"]]] * 3)
    data = {"interactions": len(often), "pairs": "0"}
    model = train_model("popularity", plan.history("train"))
    path = save_model(tmp_path / "mine.npz", model, {"data": data})
    repeated = pd.concat([often, frame[~plan.masks["train"]]], ignore_index=True)
    assert not recsys.bench(repeated, models={"mine": path}, baselines=[]).findings
    assert recsys.bench(frame, models={"mine": path}, baselines=[]).findings


@pytest.mark.parametrize(
    ("parts", "n_others", "leaks"),
    [(("train", "validation", "test"), 1, True), (("train", "validation"), 30, False)],
    ids=["the test and one user more", "the rows of others"],
)
def test_rows_of_users_who_are_not_here_explain_no_more_than_users_have(parts, n_others, leaks):
    frame = events()
    rows = make_plan(frame).history(*parts).to_frame()[["user", "item"]]
    names = np.repeat([f"other {n}" for n in range(n_others)], 5)
    others = rows.iloc[: len(names)].assign(user=names).drop_duplicates()
    learnt = recsys.read_interactions(pd.concat([rows, others]))
    model = train_model("popularity", learnt)
    model.about = {"data": fingerprint(learnt)}
    result = recsys.bench(frame, models={"mine": model}, baselines=[])
    assert bool(result.audit.errors) == leaks


def test_another_metric_decides_and_chooses_the_settings(place):
    result = recsys.bench(events(), baselines=["item-knn"], trials=2, headline="recall@3")
    assert result.headline == "recall@3"
    plan = result.plan
    best = tune("item-knn", plan.history("train"), plan.held_out("validation"), metric="recall@3", trials=2)
    assert result.training["item-knn"].settings == best.settings
    values = [e["recall@3"] for e in result.evaluations.values()]
    assert values == sorted(values, reverse=True)
    assert "highest recall@3" in str(result)
    assert "by recall@3 on validation" in " ".join(str(result).split())
    down = recsys.bench(events(), baselines=["random"], headline="gini@10")
    assert list(down.evaluations) == ["random", "popularity"]  # the lower the better
    done = invoke(
        "ratings.csv", "--baselines", "item-knn", "--headline", "recall@3", "--json", "--no-report", "-q"
    )
    assert json.loads(done.stdout)["headline"] == "recall@3"
    assert invoke("ratings.csv", "--headline", "recal@3").exit_code == 2


def test_titles_and_what_is_known_of_the_split_reach_the_report(place):
    pd.DataFrame({"item": ["i0", "i1"], "title": ["First Film", "Second Film"]}).to_csv("items.csv")
    done = invoke("ratings.csv", "--baselines", "random", "--items", "items.csv", "-q", "-o", "r.html")
    assert done.exit_code == 0, done.output
    page = Path("r.html").read_text("utf-8")
    assert "First Film" in page
    methods = page.partition("Methods paragraph")[2].partition("</pre>")[0]
    assert "by the strategy global_temporal of recsys (test=0.1, validation=0.1, seed=0) into 864" in methods
    assert "without sampling, but for the items that the user had before the test." in methods
    assert methods.count("TO ADD") == 1  # the name of the data
    titles = {"i0": "First Film"}
    page = recsys.bench(events(), baselines=[], items=titles).report("t.html").read_text("utf-8")
    assert "First Film" in page


def test_an_own_model_may_lack_users_and_be_a_file(tmp_path):
    frame = events()
    frame["item"], frame["user"] = (frame[name].str[1:].astype(int) for name in ("item", "user"))
    plan = make_plan(frame)
    known = plan.history("train", "validation")
    half = known.cases.values[known.sizes > 0][::2]
    items = np.unique(frame["item"])
    mine = recsys.Scores(np.ones((len(half), 1)) * items, user_ids=half, item_ids=items)
    path = save_model(tmp_path / "mine.npz", mine)
    result = recsys.bench(frame, models={"mine": mine, "file": path}, baselines=[], ids="int")
    test = plan.held_out("test").cases.values
    assert result.lists["mine"].cases.values.tolist() == [user for user in test if user in set(half)]
    assert result.evaluations["mine"].counts["without_list"] == len(test) - len(result.lists["mine"].cases)
    assert dict(result.evaluations["file"]) == dict(result.evaluations["mine"])


def test_rows_of_factors_have_the_ids_of_their_file_or_are_numbers(place):
    frame = events()
    frame["item"], frame["user"] = (frame[name].str[1:].astype(int) + 1 for name in ("item", "user"))
    frame.to_csv("ratings.csv", index=False)
    rng = np.random.default_rng(0)
    n_users, n_items = (int(frame[name].max()) for name in ("user", "item"))
    matrices = {"user_factors": rng.normal(size=(n_users, 4)), "item_factors": rng.normal(size=(n_items, 4))}
    ids = {"user_ids": np.arange(1, n_users + 1), "item_ids": np.arange(1, n_items + 1)}
    mine = recsys.Factors(*matrices.values(), **ids)
    expected = dict(recsys.bench(frame, models={"mine": mine}, baselines=[]).evaluations["mine"])
    np.savez("mine.npz", **matrices)
    np.savez("named.npz", **matrices, **ids)
    for name, values in ids.items():
        Path(f"{name}.txt").write_text("".join(f"{value}\n" for value in values))
    files = ("--user-ids", "user_ids.txt", "--item-ids", "item_ids.txt")
    command = ("ratings.csv", "--baselines", "popularity", "--json", "--no-report", "-q", "--models")
    for name, options in (("named", ()), ("mine", files)):
        done = invoke(*command, f"{name}.npz", *options)
        assert json.loads(done.stdout)["models"][name] == expected, done.output
    done = invoke(*command, "mine.npz")
    assert done.exit_code == 3
    assert f"mine: user {n_users} of the truth does not exist in the model" in done.stderr
    assert "as an array user_ids, or give the model --user-ids" in done.stderr
    done = invoke(*command, "mine.npz", "named.npz", *files)
    assert (done.exit_code, "and --models has 2" in done.stderr) == (2, True)
    # One row more, so that every id is a row, and probably the wrong one.
    np.savez("mine.npz", **{name: np.vstack([matrix, matrix[:1]]) for name, matrix in matrices.items()})
    notes = json.loads(invoke(*command, "mine.npz").stdout)["notes"]
    assert any("mine: user ids cover" in note and "every row is one off" in note for note in notes)


def test_numbers_as_ids_are_not_a_range(monkeypatch):
    """Items that do not occur between the numbers that do are no part of the catalogue."""
    frame = events()
    frame["item"] = frame["item"].str[1:].astype(int) * 3
    frame["user"] = frame["user"].str[1:].astype(int)
    plan = make_plan(frame)
    history, test = plan.history("train", "validation"), plan.held_out("test")
    assert history.items.is_range
    lists = recsys.recommend(train_model("popularity", history), 10, users=test.cases.values, seen=history)
    monkeypatch.setattr(bench_module, "free_memory", lambda: 2 * TRAINABLE["ease"].memory(40))
    result = recsys.bench(frame, models={"copy": lists}, baselines=["ease"], trials=1)
    assert set(result.evaluations) == {"popularity", "ease", "copy"}
    values = [dict(result.evaluations[name]) for name in ("popularity", "copy")]
    assert values[0]["coverage@10"] == values[1]["coverage@10"]
    assert values[0]["ndcg@10"] == values[1]["ndcg@10"]


def test_progress_goes_from_the_first_step_to_the_last():
    steps = []
    recsys.bench(events(), baselines=["recent"], trials=2, progress=lambda *step: steps.append(step))
    done = [at for at, _, _ in steps]
    assert done == sorted(done)
    assert steps[0] == (0, 4, "popularity")
    assert steps[-1] == (4, 4, "comparing")
    names = {name.split(":")[0] for _, _, name in steps}
    assert names == {"popularity", "recent", "comparing"}
    assert any(re.fullmatch(r"recent: ndcg@10 0\.\d{4}", what) for _, _, what in steps)


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_tables_of_other_libraries_give_the_same(kind, result):
    library = pytest.importorskip(kind)
    frame = events()
    table = library.from_pandas(frame) if kind == "polars" else library.Table.from_pandas(frame)
    again = recsys.bench(table, baselines=FAST, trials=3)
    assert {n: dict(e) for n, e in again.evaluations.items()} == {
        n: dict(e) for n, e in result.evaluations.items()
    }


def test_a_path_is_read_and_a_dict_is_no_table(place):
    assert recsys.bench("ratings.csv", baselines=["random"]).plan.how == "global_temporal"
    with pytest.raises(InputError, match="came as dict"):
        recsys.bench({"ann": ["a"]})
    with pytest.raises(InputError, match="one of the three"):
        recsys.bench(events(), split="parts")


def test_when_nothing_is_found_it_says_so():
    frame = events(n_users=60)
    frame["timestamp"] = frame.groupby("user").cumcount()
    last = frame["timestamp"] == 11
    frame.loc[last, "item"] = [f"only {at}" for at in range(int(last.sum()))]
    result = recsys.bench(frame, baselines=["item-knn"], trials=1)
    assert result.decision.heading == "No model found anything"
    assert str(result).startswith("No model found anything.")
    assert "nan" not in str(result)


def test_few_users_get_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = recsys.bench(events(n_users=6), baselines=["random"])
        assert "too few to tell models apart" in str(result)


# What the command does with bad input


BAD = {
    "empty": ("", "is empty"),
    "header only": ("user,item,rating\n", "header and no rows"),
    "one user": ("user,item\n" + "".join(f"ann,{i}\n" for i in range(9)), "are of one user, 'ann'"),
    "one item": ("user,item\n" + "".join(f"{u},a\n" for u in range(9)), "are of one item, 'a'"),
    "times": ("user,item,time\na,x,monday\na,y,1\nb,x,2\n", "the time 'monday' cannot be read"),
    "ratings": ("user,item,rating\na,x,good\nb,y,3\n", "the grade 'good' is not a number"),
    "below 0": ("user,item,rating\na,x,-1\na,y,1\nb,y,1\n", "grades start at 0"),
    "too short": ("user,item\na,x\nb,y\nc,x\nc,y\n", "no user has enough rows"),
    "no user": ("who,item\na,x\nb,y\n", "no column was recognised as the user"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("verb", ["bench", "init"])
def test_bad_input_gets_a_clear_word(name, verb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content, words = BAD[name]
    Path("bad.csv").write_text(content)
    done = CliRunner().invoke(cli, [verb, "bad.csv"], prog_name="recsys")
    assert done.exit_code == 3, done.output
    assert words in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.drop(columns="timestamp"), "--time COLUMN"),
        (lambda frame: frame.assign(rating=5), "all ratings are 5"),
        (
            lambda frame: pd.concat([frame, frame.iloc[:3]]),
            "3 rows of a user and an item that occurred before",
        ),
        (lambda frame: frame.assign(rating=np.resize([1, 2, 3, 4, 5], len(frame))), "--relevant-from sets"),
    ],
)
def test_what_is_odd_but_usable_is_said(change, words, place):
    change(events()).to_csv("ratings.csv", index=False)
    done = invoke("ratings.csv", "--baselines", "random", "--no-report")
    assert done.exit_code == 0, done.output
    assert words in " ".join(done.stdout.split())
    assert not Path("recsys-report").exists()


# The command


def test_the_command_prints_the_decision_and_writes_the_report(place):
    done = invoke("ratings.csv", "--baselines", "item-knn,random", "--trials", 2)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0].endswith("item-knn.")
    assert "note: item-knn (step 2 of 5)" in done.stderr
    assert "note: comparing\n" in done.stderr
    assert "note: report recsys-report/bench.html" in done.stderr
    assert "Bench of ratings.csv" in Path("recsys-report/bench.html").read_text("utf-8")
    quiet = invoke("ratings.csv", "--baselines", "random", "-q", "-o", "other.html")
    assert quiet.stderr == ""
    assert Path("other.html").exists()


def test_json_has_every_value(place):
    done = invoke("ratings.csv", "--baselines", "item-knn", "--trials", 1, "--json", "--no-report", "-q")
    document = json.loads(done.stdout)
    assert list(document["models"]) == ["item-knn", "popularity"]
    assert document["split"]["how"] == "global_temporal"
    assert document["training"]["item-knn"]["trials"] == 1
    assert document["decision"]["heading"]


def test_train_on_the_parts_and_come_back(place):
    direct = invoke("ratings.csv", "--baselines", "random", "--no-report", "--json", "-q")
    done = invoke("ratings.csv", "--split-to", "parts")
    assert done.exit_code == 0, done.output
    assert "recsys bench --split parts --models MINE…" in done.stdout
    names = {"train.csv", "validation.csv", "test.csv", "manifest.json"}
    assert {path.name for path in Path("parts").iterdir()} == names
    before = pd.concat([pd.read_csv("parts/train.csv"), pd.read_csv("parts/validation.csv")])
    model = train_model("popularity", before)
    recsys.models.save_model("popularity.npz", model)
    test = pd.read_csv("parts/test.csv")
    recsys.recommend(model, 20, users=test["user"].unique(), seen=before).to_frame().to_csv("lists.csv")
    done = invoke(
        "--split", "parts", "--models", "popularity.npz", "lists.csv", "--baselines", "random", "--json",
        "--no-report", "-q",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    values = {name: e["ndcg@10"] for name, e in json.loads(done.stdout)["models"].items()}
    assert set(values) == {"popularity", "popularity.npz", "lists", "random"}
    assert values["popularity"] == values["popularity.npz"] == values["lists"]
    assert values["popularity"] == json.loads(direct.stdout)["models"]["popularity"]["ndcg@10"]
    again = invoke("ratings.csv", "--split-to", "parts")
    assert again.exit_code == 3
    assert "already exists" in again.stderr


def test_a_model_that_learnt_from_the_whole_file_is_told_apart(place):
    train = CliRunner().invoke(cli, ["train", "popularity", "ratings.csv", "-o", "mine.npz", "-q"])
    assert train.exit_code == 0, train.output
    invoke("ratings.csv", "--split-to", "parts", "-q")
    arguments = ["train", "popularity", "parts/train.csv", "-o", "fair.npz", "-q"]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    done = invoke(
        "--split", "parts", "--models", "mine.npz", "fair.npz", "--baselines", "random", "--no-report"
    )
    assert done.exit_code == 0, done.output
    assert "Leak: mine learnt from 1,080 rows, and 972 come before the test." in done.stdout
    assert "fair learnt" not in done.stdout


def test_parts_without_validation_are_not_tuned(place):
    recsys.splits.save(recsys.splits.global_temporal(events(), test=0.2), "parts", ending=".csv")
    plan = plan_of_folder("parts", ids="str")
    assert plan.held_out("validation") is None
    result = recsys.bench(split="parts", baselines=["item-knn"])
    assert result.training["item-knn"].trials == 0
    assert "no validation part" in str(result)
    Path("parts/manifest.json").unlink()
    Path("parts/test.csv").unlink()
    with pytest.raises(FileError, match="no file of the part 'test'"):
        plan_of_folder("parts")


@pytest.mark.parametrize(
    "stray", ["train.bak", "train.00.csv", "train.backup.csv", "train.tsv", "train.csv.gz"]
)
def test_the_parts_are_the_files_that_the_manifest_names(stray, place):
    invoke("ratings.csv", "--split-to", "parts", "-q")
    expected = plan_of_folder("parts", ids="str")
    Path("parts", stray).write_text(Path("parts/train.csv").read_text()[:999])
    found = plan_of_folder("parts", ids="str")
    assert {part: int(mask.sum()) for part, mask in found.masks.items()} == {
        part: int(mask.sum()) for part, mask in expected.masks.items()
    }


@pytest.mark.parametrize("part", ["train", "validation", "test"])
def test_a_part_that_has_changed_since_the_split_is_refused(part, place):
    invoke("ratings.csv", "--split-to", "parts", "-q")
    file = Path("parts", f"{part}.csv")
    file.write_text(file.read_text() + Path("parts/test.csv").read_text().splitlines()[1] + "\n")
    with pytest.raises(
        ManifestError, match=rf"parts/{part}\.csv is not the file that the split wrote"
    ) as caught:
        recsys.bench(split="parts")
    assert caught.value.differs == [file.name]
    assert caught.value.hint
    done = invoke("--split", "parts")
    assert done.exit_code == 3
    assert "its content has changed" in done.stderr
    file.unlink()
    with pytest.raises(MissingFileError, match=f"there is no file parts/{part}.csv"):
        plan_of_folder("parts")


def test_parts_without_a_manifest_are_found_by_their_exact_names(place):
    invoke("ratings.csv", "--split-to", "parts", "-q")
    expected = recsys.bench(split="parts", baselines=["random"], trials=0)
    Path("parts/manifest.json").unlink()
    Path("parts/train.bak").write_text("user,item\nu1,i1\n")
    found = recsys.bench(split="parts", baselines=["random"], trials=0)
    assert {name: dict(e) for name, e in found.evaluations.items()} == {
        name: dict(e) for name, e in expected.evaluations.items()
    }
    assert "as parts has it" in str(found)
    pd.read_csv("parts/train.csv").to_parquet("parts/train.parquet")
    with pytest.raises(FileError, match=r"several files of the part 'train': train\.csv, train\.parquet"):
        plan_of_folder("parts")
    with pytest.raises(FileError, match="there is no file"):
        plan_of_folder("nowhere")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name a FILE"),
        (("ratings.csv", "--split", "parts"), "not both"),
        (("--models", "a.csv", "ratings.csv"), "name a FILE"),
        (("--split-to", "x", "--split", "parts"), "--split-to writes the parts of a FILE"),
        (("ratings.csv", "--models"), "--models"),
        (("ratings.csv", "--baselines", "ndcg"), "ndcg"),
        (("ratings.csv", "-o", "report.txt"), ".html"),
        (("ratings.csv", "--models", "lists.csv", "lists.csv", "lists.csv"), "twice"),
    ],
)
def test_wrong_usage(arguments, words, place):
    Path("lists.csv").write_text("user,item\nu1,i1\n")
    done = invoke(*arguments)
    assert done.exit_code == 2, done.output
    assert words in done.stderr


def test_an_interrupt_leaves_no_half_file(place, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setitem(TRAINABLE, "popularity", Trainable(stop))
    done = invoke("ratings.csv", "--baselines", "random")
    assert done.exit_code == 130
    assert sorted(path.name for path in place.iterdir()) == ["ratings.csv"]


def test_an_interrupt_shows_what_is_done_and_ends_with_its_own_status(place, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setitem(TRAINABLE, "random", Trainable(stop))
    done = invoke("ratings.csv", "--baselines", "random", "--no-report")
    assert done.exit_code == 130
    assert "popularity" in done.stdout
    assert "Not run: random, as it was stopped." in done.stdout


def test_without_the_extra_report_the_rest_is_printed(place, monkeypatch):
    def missing(*_, **__):
        raise MissingExtraError("jinja2", "report", "The report")

    monkeypatch.setattr("recsys.report.page.write_report", missing)
    done = invoke("ratings.csv", "--baselines", "random")
    assert done.exit_code == 0
    assert "popularity" in done.stdout
    assert "recsys-evaluation[report]" in done.stderr


# A protocol from what is seen


def _short(frame):
    """A third of the users with two rows each."""
    is_short = frame["user"].str[1:].astype(int) < 30
    return pd.concat([frame[is_short].groupby("user").head(2), frame[~is_short]])


def _first_lacks_its_rating(frame):
    """Each pair twice: the first time without a rating now and then, the second time with one."""
    again = frame.assign(rating=5.0, timestamp=frame["timestamp"] + 3000)
    return pd.concat([frame.assign(rating=np.resize([np.nan, 4.0, 1.0], len(frame))), again])


def _in_order(frame):
    return frame.assign(timestamp=np.arange(len(frame)))


def _counts(frame):
    return frame.assign(rating=np.random.default_rng(1).geometric(0.5, len(frame)))


WORLDS = {
    "border in time": events,
    "last rows": lambda: _in_order(events()),
    "long histories": lambda: _in_order(events(60, 35, 120)),
    "few rows": lambda: _in_order(_short(events())),
    "few rows without times": lambda: _short(events()).drop(columns="timestamp"),
    "no times": lambda: events().drop(columns="timestamp"),
    "equal times": lambda: events(timestamp=5),
    "dates and stars": lambda: events(rating=np.resize([2, 5, 4, 3, 5], 1080)).assign(
        timestamp=lambda f: pd.Timestamp("2026-01-01") + pd.to_timedelta(f["timestamp"], unit="h")
    ),
    "half stars": lambda: events(rating=np.random.default_rng(1).integers(1, 11, 1080) / 2),
    "counts": lambda: _counts(events()),
    "counts, some missing": lambda: _counts(events()).assign(
        rating=lambda f: f["rating"].astype("Int64").mask(np.resize([True, False, False], len(f)))
    ),
    "stars, some missing": lambda: events(rating=np.resize([2.0, 5.0, np.nan, 3.0], 1080)),
    "no rating at all": lambda: events(rating=np.nan),
    "one rating": lambda: events(rating=3),
    "repeats": lambda: pd.concat(
        [
            events(),
            events().sample(frac=0.5, random_state=0).assign(timestamp=lambda f: 2000 + f["timestamp"]),
        ]
    ),
    "repeats, some without a rating": lambda: _first_lacks_its_rating(events()),
    "no time in some rows": lambda: events().assign(
        timestamp=lambda f: f["timestamp"].astype("Int64").mask(f["item"] == "i3")
    ),
}


@pytest.mark.parametrize("kind", WORLDS)
def test_init_and_run_are_bench_to_the_bit(kind, place):
    WORLDS[kind]().to_csv("ratings.csv", index=False)
    done = CliRunner().invoke(cli, ["init", "ratings.csv"], prog_name="recsys")
    assert done.exit_code == 0, done.output
    assert done.stdout == "protocol.toml\n"
    text = Path("protocol.toml").read_text("utf-8")
    untimed = "no times" in kind or "without times" in kind or kind == "equal times"
    assert ("[models.recent]" in text) == (not untimed)
    assert ("time = false" in text) == untimed
    assert ("every_row = true" in text) == ("stars" not in kind and kind != "repeats, some without a rating")
    # What takes long is tested with the rest of bench.
    for name in ("ease", "als", "bpr"):
        text = text.replace(f'[models.{name}]\nbaseline = "{name}"', "")
    Path("protocol.toml").write_text(text, "utf-8")
    outcome = run_protocol("protocol.toml")
    named = [name for name in FAST if name in outcome.evaluations]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        direct = recsys.bench("ratings.csv", baselines=named, trials=0)
    assert set(direct.evaluations) == set(outcome.evaluations) == {"popularity", *named}
    for name, evaluation in outcome.evaluations.items():
        expected = direct.evaluations[name]
        assert expected["ndcg@10"] > 0 or name == "random"
        assert {str(request) for request in evaluation} == {m for m in expected if m.endswith("@10")}
        np.testing.assert_array_equal([*evaluation.values()], [expected[m] for m in evaluation], name)
        np.testing.assert_array_equal(evaluation.values_of("ndcg@10"), expected.values_of("ndcg@10"))
    assert outcome.report.is_file()


def test_models_that_draw_are_trained_with_each_seed_and_the_others_once(place):
    done = CliRunner().invoke(cli, ["init", "ratings.csv", "--seeds", "2", "--seed", "3", "-q"])
    assert done.exit_code == 0, done.output
    text = Path("protocol.toml").read_text("utf-8")
    assert "seed = 3\nseeds = 2\n" in text
    for name in ("ease", "als", "bpr", "recent"):
        text = (
            text.partition(f"[models.{name}]")[0] + text.partition(f"[models.{name}]")[2].partition("\n\n")[2]
        )
    Path("protocol.toml").write_text(text.replace('report = "report.html"', ""), "utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = run_protocol("protocol.toml", cautions="ignore")
        found = recsys.bench("ratings.csv", baselines=["item-knn", "random"], trials=0, seed=3, seeds=2)
    assert {name: len(runs) for name, runs in found.runs.items()} == {
        "popularity": 1,
        "item-knn": 1,
        "random": 2,
    }
    direct = {"popularity": found.runs["popularity"][0], "item-knn": found.runs["item-knn"][0]}
    direct |= {f"random, seed {seed}": run for seed, run in zip((3, 4), found.runs["random"], strict=True)}
    assert direct.keys() == outcome.evaluations.keys()
    for name, run in direct.items():
        again = outcome.evaluations[name]
        np.testing.assert_array_equal(run.values_of("ndcg@10"), again.values_of("ndcg@10"), name)
        assert (
            run.run.get("seed") == again.run.get("seed") == recsys.load(outcome.paths[name]).run.get("seed")
        )
    first, second = (run["ndcg@10"] for run in found.runs["random"])
    assert first != second
    assert found.comparison[found.best, "random", "ndcg@10"].runs.n_runs == 2
    assert outcome.comparison[found.best, "random", "ndcg@10"].runs.n_runs == 2
    document = json.loads(found.to_json())
    assert document["models"]["random"]["ndcg@10"] == pytest.approx((first + second) / 2)
    assert [run["ndcg@10"] for run in document["runs"]["random"]] == [first, second]
    assert re.search(r"\bruns\b.*\n.*\n(.*\n)*random .* 2 ", found.to_text())


def test_one_seed_leaves_open_what_others_would_change(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, two = (recsys.bench(events(), baselines=["als"], trials=0, seeds=n) for n in (1, 2))
        page = one.report(tmp_path / "page.html").read_text("utf-8")
        texts = [one.to_text(), page, json.loads(one.to_json())["decision"]["says"]]
        several = two.to_text()
    words = (
        "als was trained with one seed: what others would change is open (recsys bench --seeds 5 tests it)."
    )
    for text in texts:
        assert words in " ".join(text.split())
    assert "one seed" not in several
    assert "the mean of 2 runs, over" in several


def test_which_baselines_draw_is_a_fact_of_theirs():
    assert {name for name, entry in TRAINABLE.items() if entry.draws} == {"random", "als", "bpr"}
    assert Trainable(lambda history: history).draws  # of others it is not known
    assert TRAINABLE["als"].runs(7, 2) == [{"seed": 7}, {"seed": 8}]
    assert TRAINABLE["ease"].runs(7, 2) == [{}]


@pytest.mark.parametrize("seeds", [0, 1.5, "5"])
def test_seeds_are_a_whole_number(seeds):
    with pytest.raises(InputError, match="seeds"):
        recsys.bench(events(), seeds=seeds)


def test_a_model_that_fails_with_its_second_seed_is_left_out(monkeypatch):
    fit, calls = TRAINABLE["random"].fit, []

    def failing(history, *, seed=0):
        calls.append(seed)
        if len(calls) > 1:
            raise MemoryError
        return fit(history, seed=seed)

    monkeypatch.setitem(TRAINABLE, "random", Trainable(failing))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = recsys.bench(events(), baselines=["random"], seeds=3)
    assert (list(found.runs), list(found.lists), list(found.training)) == (["popularity"],) * 3
    assert found.left_out == {"random": "the memory does not suffice."}


def test_the_command_says_what_it_reads_and_runs_the_protocol_of_init(place):
    assert CliRunner().invoke(cli, ["init", "ratings.csv", "-q"], prog_name="recsys").exit_code == 0
    ran = CliRunner().invoke(cli, ["run", "protocol.toml"], prog_name="recsys")
    assert ran.exit_code == 0, ran.output
    assert "note: Split: global_temporal, as was decided. Rows: 864 train, 108 validation, 108 test." in (
        " ".join(ran.stderr.split())
    )
    assert {"popularity", "ease"} <= {path.name.split("-")[1] for path in Path("results").iterdir()}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--grade", "none"), "grade = false"),
        (("--time", "none"), "time = false"),
        (("--relevant-from", "2"), "from = 2.0"),
        (("--encoding", "latin-1", "--format", "csv"), 'format = "csv"\nencoding = "latin-1"'),
    ],
)
def test_what_init_was_asked_for_is_in_the_protocol(options, words, place):
    frame = events(rating=np.resize([2, 5, 4, 3, 5], 1080))
    frame["item"] = frame["item"] + "é"
    frame.to_csv("ratings.csv", index=False, encoding="latin-1" if "latin-1" in options else "utf-8")
    done = CliRunner().invoke(cli, ["init", "ratings.csv", "-q", *options], prog_name="recsys")
    assert done.exit_code == 0, done.output
    assert words in Path("protocol.toml").read_text("utf-8")
    ran = CliRunner().invoke(cli, ["run", "protocol.toml", "--json", "-q"], prog_name="recsys")
    assert ran.exit_code == 0, ran.output
    arguments = ("ratings.csv", "--baselines", "random", "--no-report", "--json", "-q", *options)
    direct = json.loads(invoke(*arguments).stdout)["models"]["popularity"]["ndcg@10"]
    stored = recsys.load(next(Path("results").glob("*-popularity-*.json")))
    assert stored["ndcg@10"] == direct > 0


@pytest.mark.parametrize("name", ["note\x1b[31m", "a\x7fb\x85c", "two\u2028lines", '"quoted" \\'])
def test_names_that_toml_cannot_hold_as_they_are(name, place):
    frame = events(**{name: 1}).rename(columns={"item": f"item {name}"})
    frame.to_csv("ratings.csv", index=False)
    arguments = ["init", "ratings.csv", "-q", "--item", f"item {name}"]
    assert CliRunner().invoke(cli, arguments, prog_name="recsys").exit_code == 0
    done = CliRunner().invoke(cli, ["run", "protocol.toml", "-q"], prog_name="recsys")
    assert done.exit_code == 0, done.output


def test_init_says_what_run_needs(place, monkeypatch):
    done = CliRunner().invoke(cli, ["init", "ratings.csv", "-o", "a.toml"], prog_name="recsys")
    assert "pip install" not in done.stderr
    monkeypatch.setattr("recsys.cli.bench_verbs.find_spec", lambda _: None)
    done = CliRunner().invoke(cli, ["init", "ratings.csv", "-o", "b.toml"], prog_name="recsys")
    assert "recsys run b.toml executes it; it needs pip install 'recsys-evaluation[cli]'" in done.stderr


def test_init_names_the_file_from_its_own_folder_and_overwrites_nothing(place):
    Path("study").mkdir()
    done = CliRunner().invoke(cli, ["init", "ratings.csv", "-o", "study/p.toml", "-q"], prog_name="recsys")
    assert done.exit_code == 0, done.output
    assert 'interactions = "../ratings.csv"' in Path("study/p.toml").read_text("utf-8")
    checked = CliRunner().invoke(cli, ["run", "study/p.toml", "--check"], prog_name="recsys")
    assert checked.exit_code == 0, checked.output
    again = CliRunner().invoke(cli, ["init", "ratings.csv", "-o", "study/p.toml"], prog_name="recsys")
    assert again.exit_code == 2
    assert "already exists" in again.stderr


def test_a_protocol_trains_a_baseline_with_settings(place):
    CliRunner().invoke(cli, ["init", "ratings.csv", "-q"], prog_name="recsys")
    text = Path("protocol.toml").read_text("utf-8")
    changed = text.replace('baseline = "item-knn"', 'baseline = "item-knn"\nsettings = {neighbours = 1}')
    outcomes = {}
    for name, content in (("first", text), ("second", changed)):
        Path("protocol.toml").write_text(content, "utf-8")
        done = CliRunner().invoke(cli, ["run", "protocol.toml", "--json", "-q"], prog_name="recsys")
        assert done.exit_code == 0, done.output
        outcomes[name] = json.loads(done.stdout)["result"]["models"]
    assert outcomes["first"]["item-knn"] != outcomes["second"]["item-knn"]
    assert outcomes["first"]["popularity"] == outcomes["second"]["popularity"]
    Path("protocol.toml").write_text(changed.replace("neighbours", "neighbors"), "utf-8")
    done = CliRunner().invoke(cli, ["run", "protocol.toml"], prog_name="recsys")
    line = changed.splitlines().index("settings = {neighbours = 1}") + 1
    assert f"protocol.toml, line {line}" in done.stderr
    assert "neighbours" in done.stderr


def test_the_errors_of_a_plan_are_errors_of_the_package():
    with pytest.raises(SplitError, match="at least three rows"):
        make_plan(pd.DataFrame({"user": [1, 2, 2], "item": [1, 1, 2]}))


# What is handed over is judged as what is trained here


def numbered(seed=0, **options):
    """The events with whole-number ids, whose text and whose numbers have another order."""
    frame = events(seed=seed, **options)
    frame["item"], frame["user"] = (frame[name].str[1:].astype(int) + 5 for name in ("item", "user"))
    return frame


def own_lists(plan, name="item-knn", k=40, **options):
    """What a baseline ranks for the users of the test, with what they had before."""
    history = plan.history("train", "validation")
    return recsys.recommend(train_model(name, history), k, users=plan.test.cases.values, **options)


def test_lists_with_training_items_are_judged_without_them(place):
    plan = make_plan(numbered())
    numbered().to_csv("ratings.csv", index=False)
    history = plan.history("train", "validation")
    knn, whole = train_model("item-knn", history), own_lists(plan)
    whole.to_frame().to_csv("whole.csv", index=False)
    result = recsys.bench("ratings.csv", models={"model": knn, "whole": "whole.csv"}, baselines=[])
    assert dict(result.evaluations["whole"]) == dict(result.evaluations["model"])
    assert result.comparison.evaluations  # both stand in one comparison
    (finding,) = result.findings
    assert (finding.name, finding.severity) == ("training_items_in_lists", "warning")
    held = sum(len(set(items) & set(history_of(history, user))) for user, items in by_user(whole))
    assert finding.count == held > 0
    assert f"whole: {held:,} of {len(whole.codes):,} items were in training and were left out" in str(result)
    assert "training items in lists" in result.decision.tiles[-1].small
    short = own_lists(plan, k=10)
    result = recsys.bench("ratings.csv", models={"short": short}, baselines=[])
    assert re.search(r"; \d+ lists have fewer than 10 without them", result.findings[0].message)
    clean = own_lists(plan, k=10, seen=history)
    assert recsys.bench("ratings.csv", models={"clean": clean}, baselines=[]).findings == []


def by_user(lists):
    frame = lists.to_frame()
    return [(user, rows["item"].tolist()) for user, rows in frame.groupby("user")]


def history_of(history, user):
    at = history.cases.values.tolist().index(user)
    return history.items.values[history.codes[history.indptr[at] : history.indptr[at + 1]]].tolist()


def test_lists_for_few_users_and_tied_scores_are_on_the_card(place):
    plan = make_plan(numbered())
    lists = own_lists(plan, seen=plan.history("train", "validation")).to_frame()
    users = lists["user"].unique()
    few = lists[lists["user"].isin(users[: len(users) // 3])]
    constant = lists.assign(score=1.0)
    nearly = lists[lists["user"] != users[0]]
    models = {"few": few, "constant": constant, "nearly": nearly}
    result = recsys.bench(numbered(), models=models, baselines=[])
    found = {(one.message.partition(":")[0], one.name) for one in result.findings}
    assert found == {("few", "users_without_list"), ("constant", "tied_scores")}
    n = len(users)
    assert f"few: {n - n // 3} of the {n} users of the test have no list and count 0." in str(result)
    (ties,) = (one.message for one in result.findings if one.name == "tied_scores")
    assert ties.endswith("and ties='worst' the range.")
    assert worded(ties, as_option).endswith("and --set ties=worst the range.")
    small = result.decision.tiles[-1].small
    assert "users without list" in small
    assert "tied scores" in small


def test_a_protocol_judges_lists_without_training_items_and_for_few_users_too(place):
    numbered().to_csv("ratings.csv", index=False)
    plan = make_plan(numbered())
    whole = own_lists(plan).to_frame()
    whole.to_csv("whole.csv", index=False)
    users = whole["user"].unique()
    whole[whole["user"].isin(users[: len(users) // 3])].to_csv("few.csv", index=False)
    assert CliRunner().invoke(cli, ["init", "ratings.csv", "-o", "p.toml"]).exit_code == 0
    models = "".join(f'[models.{name}]\nlists = "{name}.csv"\n\n' for name in ("whole", "few"))
    Path("p.toml").write_text(Path("p.toml").read_text().replace("[compare]", models + "[compare]"))
    done = CliRunner().invoke(cli, ["run", "p.toml", "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    models = document["result"]["models"]
    assert models["whole"]["metrics"] == models["item-knn"]["metrics"]
    assert re.search(r"whole: [\d,]+ listed items were in training, and were left out", document["notes"][0])
    n = len(users)
    assert document["notes"][2:] == [
        f"few: {n - n // 3} of the {n} users of the test have no list and count 0"
    ]


@pytest.mark.parametrize("seed", [0, 1])
def test_a_path_and_a_table_give_the_same(place, seed):
    frame = numbered(seed)
    frame.to_csv("ratings.csv", index=False)
    results = [
        recsys.bench(data, baselines=["item-knn", "recent"], trials=2)
        for data in ("ratings.csv", frame, frame.astype({"user": str, "item": str}))
    ]
    values = [{name: dict(one) for name, one in result.evaluations.items()} for result in results]
    assert values[0] == values[1] == values[2]
    done = invoke("ratings.csv", "--baselines", "item-knn,recent", "--trials", "2", "--json", "--no-report")
    assert json.loads(done.stdout)["models"] == values[0]


def test_text_that_is_not_a_whole_number_stays_text(place):
    frame = numbered().astype({"item": str})
    frame["item"] = frame["item"].str.zfill(3)
    frame.to_csv("ratings.csv", index=False)
    plan = recsys.bench("ratings.csv", baselines=[], models={}).plan
    assert plan.test.items.kind == "str"
    assert plan.test.cases.kind == "int"
    titles = {"005": "First"}
    page = recsys.bench("ratings.csv", baselines=[], items=titles).report("r.html").read_text("utf-8")
    assert "First" in page


def test_titles_by_text_reach_items_that_are_numbers(place):
    numbered().to_csv("ratings.csv", index=False)
    pd.DataFrame({"item": ["5", "6"], "title": ["First Film", "Second Film"]}).to_csv("items.csv")
    done = invoke("ratings.csv", "--baselines", "random", "--items", "items.csv", "-q", "-o", "r.html")
    assert done.exit_code == 0, done.output
    assert "First Film" in Path("r.html").read_text("utf-8")


def test_rows_of_other_users_are_no_leak(tmp_path):
    frame = events()
    plan = make_plan(frame)
    others = events(n_users=60, seed=5).assign(user=lambda rows: "other " + rows["user"])
    history = pd.concat([frame[~plan.masks["test"]], others])[["user", "item"]]
    model = train_model("popularity", recsys.inputs.read_interactions(history))
    about = {"data": fingerprint(recsys.inputs.read_interactions(history))}
    path = save_model(tmp_path / "mine.npz", model, about)
    assert recsys.bench(frame, models={"mine": path}, baselines=[]).findings == []


def test_lists_that_were_made_here_are_not_sampled_candidates():
    """A good model finds everything in its first twenty places of all items."""
    order = np.random.default_rng(0).permuted(np.tile(np.arange(8), (300, 1)), axis=1)
    rows = [(u, 100 * (u % 30) + order[u, t], t) for u in range(300) for t in range(8)]
    frame = pd.DataFrame(rows, columns=["user", "item", "time"])
    result = recsys.bench(frame, baselines=["item-knn"], trials=1)
    assert result.best == "item-knn"
    assert result.evaluations["item-knn"]["recall@20"] == 1.0
    lists, history = result.lists["item-knn"], result.history
    assert "sampled_candidates" in [one.name for one in recsys.audit(history, result.test, lists)]
    assert "sampled_candidates" not in [one.name for one in result.audit]


def test_a_metric_of_training_items_may_decide():
    result = recsys.bench(events(), baselines=["item-knn"], trials=2, headline="novelty@10")
    assert result.headline == "novelty@10"
    assert len(result.training["item-knn"].settings) > 0
