"""Every check of the audit: a world where it fires, one where it must not, and real splits."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import recsys
from recsys import splits
from recsys.audits import CHECKS, Audit, Finding
from recsys.audits.check_registry import check
from recsys.cli.app import cli
from recsys.errors import CutoffError, InputError, UnknownNameError
from recsys.inputs import read_lists

N_USERS, N_ITEMS = 60, 40


def events(seed=0, per_user=20):
    """Events of users who all were there from the start, with items that all were, one event a second."""
    rng = np.random.default_rng(seed)
    rows = [(u, i) for u in range(N_USERS) for i in rng.permutation(N_ITEMS)[:per_user]]
    order = rng.permutation(len(rows))
    return pd.DataFrame(
        [(rows[at][0], rows[at][1], time) for time, at in enumerate(order)],
        columns=["user", "item", "timestamp"],
    )


@pytest.fixture(scope="module")
def clean():
    """A split at one time for everyone, nobody and nothing cold."""
    data = events()
    return data[:900].reset_index(drop=True), data[900:].reset_index(drop=True)


def good_lists(train, test, k=10):
    """The users' own future first, then other unseen items: a model no audit should complain about."""
    truth, seen = (
        test.groupby("user").item.apply(set).to_dict(),
        train.groupby("user").item.apply(set).to_dict(),
    )
    rng = np.random.default_rng(1)
    out = {}
    for user in sorted(truth):
        rest = [i for i in rng.permutation(N_ITEMS) if i not in seen.get(user, ()) and i not in truth[user]]
        mine = sorted(truth[user])[:3]
        out[user] = [(int(i), 1.0 - place / 100) for place, i in enumerate([*mine, *rest][:k])]
    return out


def findings_of(name, *args, **kwargs):
    """The findings of one check."""
    return [f for f in recsys.audit(*args, checks=[name], **kwargs) if f.name == name]


def test_a_clean_split_with_a_good_model_has_nothing_to_answer_for(clean):
    train, test = clean
    report = recsys.audit(train, test, good_lists(train, test), items=range(N_ITEMS))
    assert report.passed
    assert {f.name for f in report} <= {"popularity_baseline", "head_and_tail"}
    assert all(f.severity == "info" for f in report)
    assert report.passes("warning")
    assert str(report).startswith("audit passed")


WORLDS = {}


def world(name):
    """A pair of calls: what makes the check `name` fire, and a severity it must have then."""

    def register(make):
        WORLDS[name] = make
        return make

    return register


@world("test_before_train")
def _(train, test):
    return "error", (test, train), {}


@world("test_before_border")
def _(train, test):
    late = train.timestamp >= 800
    return "warning", (train, test.assign(timestamp=np.where(late[: len(test)], 5, 850))), {}


@world("items_from_the_future")
def _(train, test):
    new = pd.DataFrame({"user": [1], "item": [99], "timestamp": [10_000]})
    return "warning", (pd.concat([train, new]), test), {}


@world("ties_at_the_border")
def _(train, test):
    return "warning", (train.assign(timestamp=7), test.assign(timestamp=7)), {}


@world("missing_times")
def _(train, test):
    return "warning", (train, test.assign(timestamp=[np.nan, *test.timestamp[1:]])), {}


@world("pairs_in_both")
def _(train, test):
    return "error", (train, pd.concat([test, train[:5].assign(timestamp=5000)])), {}


@world("duplicate_rows")
def _(train, test):
    return "warning", (pd.concat([train, train[:4]]), test), {}


@world("popularity_knows_the_test")
def _(train, test):
    return "error", (train, test), {"popularity": pd.concat([train, test]).item.value_counts().to_dict()}


@world("lists_follow_test_popularity")
def _(train, test):
    # Items 20 to 39 are popular in the test only.
    train = train.assign(item=np.where(train.item < 20, train.item, train.item - 20)).drop_duplicates(
        ["user", "item"]
    )
    test = test.assign(item=np.where(test.item >= 20, test.item, test.item + 20)).drop_duplicates(
        ["user", "item"]
    )
    popular = test.item.value_counts().sort_index().sort_values(ascending=False, kind="stable").index[:5]
    return "error", (train, test, {int(u): popular.tolist() for u in test.user.unique()}), {"k": 5}


@world("candidates_from_the_test")
def _(train, test):
    rng = np.random.default_rng(0)
    few = test[test.item < 15]
    return "error", (train, few, {int(u): rng.permutation(15)[:8].tolist() for u in few.user.unique()}), {}


@world("cold_users")
def _(train, test):
    return "warning", (train[train.user > 10], test), {}


@world("cold_items")
def _(train, test):
    return "warning", (train[train.item > 10], test), {}


@world("truth_outside_the_catalogue")
def _(train, test):
    return "warning", (train, test), {"items": range(20)}


@world("users_outside_the_model")
def _(train, test):
    return "warning", (train, test, recsys.Factors(np.ones((30, 2)), np.ones((N_ITEMS, 2)))), {}


@world("unknown_in_lists")
def _(train, test):
    return "warning", (train, test, {u: [1, 2, 777] for u in range(N_USERS)}), {}


@world("users_without_lists")
def _(train, test):
    return "warning", (train, test, {u: [1, 2, 3] for u in range(10)}), {}


@world("seen_in_lists")
def _(train, test):
    return "warning", (train, test, train.groupby("user").item.apply(list).to_dict()), {}


@world("repeats_in_lists")
def _(train, test):
    return "warning", (train, test, {u: [1, 2, 1] for u in range(N_USERS)}), {}


@world("constant_scores")
def _(train, test):
    return "error", (train, test, {u: [(1, 0.5), (2, 0.5), (3, 0.5)] for u in range(N_USERS)}), {}


@world("tied_scores")
def _(train, test):
    return "warning", (train, test, {u: [(1, 0.7), (2, 0.5), (3, 0.5)] for u in range(N_USERS)}), {"k": 2}


@world("sampled_candidates")
def _(train, test):
    rng = np.random.default_rng(0)
    last = test.drop_duplicates("user", keep="last")
    lists = {
        int(u): [int(i), *(int(j) for j in rng.permutation(200)[:9] + N_ITEMS)]
        for u, i in zip(last.user, last.item, strict=True)
    }
    return "warning", (train, last, lists), {"items": range(400)}


@world("popularity_baseline")
def _(train, test):
    return "warning", (train, test, {u: [777] for u in range(N_USERS)}), {}


@world("head_and_tail")
def _(train, test):
    skewed = pd.concat([train, *(train.assign(item=0, user=train.user + 100 * n) for n in range(1, 9))])
    skewed = skewed.drop_duplicates(["user", "item"])
    head = (
        skewed.item.value_counts().sort_index().sort_values(ascending=False, kind="stable").index[:8].tolist()
    )
    return "warning", (skewed, test, dict.fromkeys(range(N_USERS), head)), {}


@world("missing_not_at_random")
def _(train, test):
    everyone = pd.DataFrame({"user": range(4000), "item": 0})
    few = pd.DataFrame({"user": range(100), "item": range(1, 101)})
    data = pd.concat([few[::2], everyone[:2000], few[1::2], everyone[2000:]])
    return "warning", (data[:2050], data[2050:]), {}


@world("metric_disagreement")
def _(train, test):
    truth = test.groupby("user").item.apply(list).to_dict()
    one_early = {u: [items[0], *range(700, 719)] for u, items in truth.items()}
    many_late = {u: [*range(700, 715), *items[:5]] for u, items in truth.items()}
    return "warning", (train, test), {"models": {"early": one_early, "late": many_late}}


@world("whitespace_in_ids")
def _(train, test):
    return "warning", (train.astype({"item": str}), test.assign(item=[f"{i} " for i in test.item])), {}


@world("ids_like_floats")
def _(train, test):
    return "warning", (train.astype({"item": str}), test.assign(item=[f"{i}.0" for i in test.item])), {}


@world("misread_encoding")
def _(train, test):
    return (
        "warning",
        (train.assign(item=[f"caf\u00c3\u00a9{i}" for i in train.item]), test.astype({"item": str})),
        {},
    )


@world("ids_that_differ_in_spelling")
def _(train, test):
    return (
        "error",
        (train.assign(item=[f"i{i}" for i in train.item]), test.assign(item=[f"I{i}" for i in test.item])),
        {},
    )


@world("swapped_columns")
def _(train, test):
    names = {"user": "item", "item": "user"}
    wide = train.assign(user=train.user + 1000)
    return "error", (wide, test.assign(user=test.user + 1000).rename(columns=names)), {}


@world("swapped_factors")
def _(train, test):
    return "error", (train, test, recsys.Factors(np.ones((N_ITEMS, 2)), np.ones((N_USERS, 2)))), {}


@world("time_units_differ")
def _(train, test):
    later = 1_700_000_000
    milliseconds = (test.timestamp + later) * 1000
    return "error", (train.assign(timestamp=train.timestamp + later), test.assign(timestamp=milliseconds)), {}


@pytest.mark.parametrize("name", list(CHECKS))
def test_a_check_fires_where_it_must(name, clean):
    severity, args, kwargs = WORLDS[name](*clean)
    findings = findings_of(name, *args, **kwargs)
    assert findings, f"{name} saw nothing"
    assert findings[0].severity == severity
    assert findings[0].message
    assert findings[0].todo
    assert findings[0].count >= 1
    json.dumps(findings[0].to_dict())


@pytest.mark.parametrize("name", list(CHECKS))
def test_a_check_is_silent_where_nothing_is_wrong(name, clean):
    train, test = clean
    lists = good_lists(train, test)
    extra = {}
    if CHECKS[name].needs[:1] == ("factors",):
        lists = recsys.Factors(np.eye(N_USERS, 8), np.eye(N_ITEMS, 8))
    if name == "popularity_knows_the_test":
        extra["popularity"] = train.item.value_counts().to_dict()
    if name == "metric_disagreement":
        bad = {u: [777] for u in lists}
        extra["models"] = {"good": lists, "bad": bad}
    report = recsys.audit(train, test, lists, items=range(N_ITEMS), checks=[name], **extra)
    assert report.checked == [name], report.skipped
    assert all(f.severity == "info" for f in report), report


def test_text_ids_that_are_fine_raise_no_finding(clean):
    train, test = (side.assign(item=[f"item-{i}" for i in side.item]) for side in clean)
    names = ["whitespace_in_ids", "ids_like_floats", "misread_encoding", "ids_that_differ_in_spelling"]
    report = recsys.audit(train, test, checks=names)
    assert len(report) == 0
    assert report.checked == names


def test_float_ids_are_found_while_reading(clean):
    train, test = clean
    report = recsys.audit(train, test.assign(item=test.item.astype(float)), checks=["cold_items"])
    assert report["float_ids"].severity == "warning"
    assert "test" in report["float_ids"].message


def test_ids_of_different_kinds_stop_the_audit(clean):
    train, test = clean
    report = recsys.audit(train.astype({"user": str}), test)
    assert not report.passed
    assert report["ids_of_different_kinds"].values["column"] == "user"
    assert len(report) == 1


def test_places_in_a_row_are_no_units_of_time(clean):
    train, test = clean
    assert not findings_of("time_units_differ", train.assign(timestamp=1), test.assign(timestamp=1000))


def test_a_few_ids_that_differ_in_case_are_a_warning(clean):
    train, test = (side.assign(item=[f"i{i}" for i in side.item]) for side in clean)
    new = pd.DataFrame({"user": 1, "item": ["I3", *(f"new{n}" for n in range(30))], "timestamp": 9999})
    finding = findings_of("ids_that_differ_in_spelling", train, pd.concat([test, new]))[0]
    assert (finding.severity, finding.count) == ("warning", 1)
    assert finding.examples == ("'I3' and 'i3'",)


def test_times_that_cannot_be_compared_are_an_error(clean):
    train, test = clean
    dated = train.assign(timestamp=pd.to_datetime(train.timestamp, unit="s"))
    zoned = test.assign(timestamp=pd.to_datetime(test.timestamp, unit="s", utc=True))
    for sides in ((dated, zoned), (dated, test)):
        report = recsys.audit(*sides)
        assert report["times_of_different_kinds"].severity == "error"
        assert "time column" in report.skipped["test_before_train"]
    mixed = test.assign(timestamp=["2024-01-01T00:00:00", *["2024-01-01T00:00:00+01:00"] * (len(test) - 1)])
    assert recsys.audit(train, mixed)["times_cannot_be_read"].severity == "error"


def test_files_may_be_named_instead(clean, tmp_path):
    train, test = clean
    for name, side in (("train", train), ("test", test)):
        side.to_csv(tmp_path / f"{name}.csv", index=False)
    report = recsys.audit(tmp_path / "test.csv", tmp_path / "train.csv")
    assert report["test_before_train"].count == findings_of("test_before_train", test, train)[0].count


def test_repeats_that_are_natural_are_no_error(clean):
    train, test = clean
    shop = pd.concat([train, train.assign(timestamp=train.timestamp + 0.5)]).sort_values("timestamp")
    again = pd.concat([test, train[:50].assign(timestamp=5000)])
    assert findings_of("pairs_in_both", shop, again)[0].severity == "warning"


def test_own_test_items_only_is_flagged(clean):
    train, test = clean
    lists = test.groupby("user").item.apply(list).to_dict()
    finding = findings_of("candidates_from_the_test", train, test, lists)[0]
    assert "own test items" in finding.message


def test_checks_that_cannot_run_are_named(clean):
    train, test = clean
    report = recsys.audit(train[["user", "item"]], test[["user", "item"]])
    assert "time column" in report.skipped["test_before_train"]
    assert "lists" in report.skipped["seen_in_lists"]
    assert set(report.checked) | set(report.skipped) == set(CHECKS)
    assert "not checked:" in str(report)


@pytest.mark.parametrize(
    "both",
    [
        lambda f: f.groupby("user").item.apply(list).to_dict(),
        lambda f: recsys.read_interactions(f[["user", "item"]]),
        pl.from_pandas,
        pa.Table.from_pandas,
        lambda f: f.rename(columns={"user": "userId", "item": "movieId"}),
    ],
    ids=["dict", "interactions", "polars", "arrow", "names"],
)
def test_any_container_will_do(both, clean):
    train, test = clean
    report = recsys.audit(both(train[train.item > 3]), both(test))
    expected = recsys.audit(train[train.item > 3], test)
    assert report["cold_items"].count == expected["cold_items"].count


def test_dates_and_time_zones(clean):
    train, test = clean

    def dated(frame):
        return frame.assign(timestamp=pd.to_datetime(frame.timestamp, unit="s", utc=True))

    assert (
        findings_of("test_before_train", dated(test), dated(train))[0].count
        == findings_of("test_before_train", test, train)[0].count
    )
    assert not findings_of("test_before_train", dated(train), dated(test))


def test_results_in_every_form(clean):
    train, test = clean
    report = recsys.audit(test, train)
    assert isinstance(report, Audit)
    assert isinstance(report[0], Finding)
    assert report[0].severity == "error"
    assert len(report.to_frame()) == len(report)
    assert "test_before_train" in report
    assert "nothing" not in report
    document = json.loads(report.to_json())
    assert document["passed"] is False
    assert {f["name"] for f in document["findings"]} == {f.name for f in report}
    assert "| severity |" in report.to_markdown()
    assert "<table" in report._repr_html_()
    assert [f.severity for f in report] == sorted(
        (f.severity for f in report), key=["error", "warning", "info"].index
    )
    with pytest.raises(KeyError):
        _ = report["nothing"]
    with pytest.raises(UnknownNameError):
        report.passes("fatal")


def test_bad_arguments_say_so(clean):
    with pytest.raises(UnknownNameError, match="cold_items"):
        recsys.audit(*clean, checks=["cold_item"])
    with pytest.raises(CutoffError):
        recsys.audit(*clean, k=0)
    with pytest.raises(InputError):
        recsys.audit(clean[0], clean[1][:0])


def test_every_check_has_its_area():
    assert {check.area for check in CHECKS.values()} == {"ids", "leakage", "candidates", "sampling", "bias"}


def test_every_check_says_what_it_looks_for():
    assert all(check.meaning.endswith(".") for check in CHECKS.values())
    assert set(WORLDS) == set(CHECKS)


IDS = st.integers(0, 6)
ROWS = st.lists(st.tuples(IDS, IDS, st.integers(0, 9), st.integers(1, 5)), min_size=1, max_size=25)
LISTS = st.dictionaries(IDS, st.lists(st.tuples(IDS, st.integers(0, 3)), min_size=1, max_size=8), min_size=1)


@settings(max_examples=25)
@given(train=ROWS, test=ROWS, lists=LISTS, text=st.booleans(), columns=st.integers(2, 4))
def test_whatever_comes_the_audit_comes_to_an_end(train, test, lists, text, columns):
    names = ["user", "item", "timestamp", "rating"][:columns]
    sides = [pd.DataFrame([row[:columns] for row in rows], columns=names) for rows in (train, test)]
    if text:
        sides = [side.astype({"user": str, "item": str}) for side in sides]
        lists = {str(u): [(str(i), s) for i, s in entries] for u, entries in lists.items()}
    lists = {u: sorted(entries, key=lambda pair: -pair[1]) for u, entries in lists.items()}
    report = recsys.audit(*sides, lists, models={"a": lists, "b": {u: e[:1] for u, e in lists.items()}}, k=3)
    assert set(report.checked) | set(report.skipped) == set(CHECKS)
    json.loads(report.to_json())
    assert all(f.count >= 0 and f.message and f.severity in ("error", "warning", "info") for f in report)
    early = {row[0]: max(r[2] for r in train if r[0] == row[0]) for row in train} if columns > 2 else {}
    expected = sum(row[0] in early and row[2] < early[row[0]] for row in test)
    assert sum(f.count for f in report if f.name == "test_before_train") == expected
    pairs = {row[:2] for row in train}
    assert sum(f.count for f in report if f.name == "pairs_in_both") == sum(row[:2] in pairs for row in test)
    cold = {row[1] for row in test} - {row[1] for row in train}
    assert sum(f.count for f in report if f.name == "cold_items") == len(cold)


@pytest.fixture(scope="module")
def movies(shared_dir):
    return pd.read_parquet(shared_dir / "data" / "ml-100k" / "interactions.parquet")


@pytest.mark.shared
def test_a_random_split_of_ml_100k_shows_the_leak(movies):
    mask = np.random.default_rng(0).random(len(movies)) < 0.8
    report = recsys.audit(movies[mask], movies[~mask])
    assert not report.passed
    assert report["test_before_train"].values["share"] > 0.9
    assert report["test_before_train"].values["users"] > 900


@pytest.mark.shared
def test_honest_splits_of_ml_100k_pass(movies):
    for how in ("global_temporal", "leave_last"):
        train, test = recsys.split(movies, how)
        report = recsys.audit(train, test)
        assert report.passed, report
    assert "test_before_border" in report  # leave-last leaves the other users' future in train


@pytest.mark.shared
def test_ties_at_the_border_of_ml_100k(movies):
    train, test = splits.leave_last(movies, on_tie="row_order")
    newest = movies.groupby("user").timestamp.transform("max")
    shared = movies[movies.timestamp == newest].groupby("user").size()
    assert findings_of("ties_at_the_border", train, test)[0].count == (shared > 1).sum() == 415


@pytest.mark.shared
def test_swapped_columns_are_seen_where_both_count_from_one(movies):
    train, test = splits.leave_last(movies)
    swapped = test.rename(columns={"user": "item", "item": "user"})
    assert findings_of("swapped_columns", train, swapped)
    assert not findings_of("swapped_columns", train, test)
    for share in (0.2, 0.5, 0.8):  # most users are new after the border, and their numbers are items' numbers
        assert not findings_of("swapped_columns", *splits.global_temporal(movies, share))
    lists = {int(u): [int(i) for i in range(1, 11)] for u in test.user.unique()}
    turned = pd.DataFrame([(i, u, r) for u, row in lists.items() for r, i in enumerate(row, 1)],
                          columns=["user", "item", "rank"]).drop_duplicates(["user", "rank"])  # fmt: skip
    assert not findings_of("swapped_columns", train, test, lists)
    assert "lists" not in str(
        findings_of("swapped_columns", train, test, turned)
    )  # ten users: nothing to tell


@pytest.mark.shared
def test_candidates_of_the_test_set_are_told_from_the_catalogue(movies):
    mask = np.random.default_rng(0).random(len(movies)) < 0.8
    train, test = movies[mask], movies[~mask]
    rng = np.random.default_rng(1)
    users = test.user.unique().tolist()

    def lists(items):
        model = recsys.Scores(rng.random((len(users), len(items))), user_ids=users, item_ids=items.tolist())
        return recsys.recommend(model, 10, seen=train[["user", "item"]])

    narrow, wide = lists(np.unique(test.item)), lists(np.unique(movies.item))
    assert findings_of("candidates_from_the_test", train, test, narrow)[0].severity == "error"
    assert not findings_of("candidates_from_the_test", train, test, wide)
    popular = recsys.recommend(
        recsys.Scores(
            np.tile(train.item.value_counts().sort_index().to_numpy(float), (len(users), 1)),
            user_ids=users, item_ids=sorted(train.item.unique().tolist()),
        ),
        10, seen=train[["user", "item"]],
    )  # fmt: skip
    # Popular items are in any test set: no reason to suspect the candidates.
    assert not findings_of("candidates_from_the_test", train, test, popular)


@pytest.mark.shared
def test_ncf_candidates_of_ml_1m_look_sampled(shared_dir):
    folder = shared_dir / "data" / "ml-1m"
    test = pd.read_parquet(folder / "ncf_test.parquet")[["user", "item"]]
    everything = pd.read_parquet(folder / "interactions.parquet")[["user", "item"]]
    with np.load(folder / "ncf_negatives.npz") as stored:
        negatives, movie = stored["negatives"], stored["ncf_item_to_movie"]
    rng = np.random.default_rng(0)
    lists = {
        int(u): rng.permutation(list({int(i), *(int(movie[j]) for j in row)})).tolist()
        for u, i, row in zip(test.user, test.item, negatives[test.user - 1], strict=True)
    }
    train = everything.merge(test, how="left", indicator=True).query("_merge == 'left_only'")[
        ["user", "item"]
    ]
    report = recsys.audit(train, test, lists)
    values = report["sampled_candidates"].values
    assert values["n_negatives"] in (98, 99)
    # The lists are in random order: about one hit in ten among 100, one in 370 among all 3,706 items.
    assert values["hit@10"]["sampled"] == pytest.approx(0.1, abs=0.015)
    assert abs(values["hit@10"]["corrected"] - 10 / 3706) < 0.01
    assert "recsys.sampled.estimate" in report["sampled_candidates"].todo


@pytest.mark.shared
def test_the_swapped_checkpoint_is_recognised(shared_dir):
    with np.load(shared_dir / "data" / "cosmetics-factors" / "item_factors.npz") as stored:
        items = stored["als_item"]
    users = np.random.default_rng(0).standard_normal((26_050, items.shape[1])).astype(np.float32)
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"user": rng.integers(0, 26_050, 4000), "item": rng.integers(0, len(items), 4000)})
    data.loc[0] = [26_049, len(items) - 1]
    right, wrong = recsys.Factors(users, items), recsys.Factors(items, users)
    assert findings_of("swapped_factors", data[:3000], data[3000:], wrong)
    assert not findings_of("swapped_factors", data[:3000], data[3000:], right)


@pytest.fixture
def files(tmp_path, clean):
    train, test = clean
    train.to_csv(tmp_path / "train.csv", index=False)
    test.to_csv(tmp_path / "test.csv", index=False)
    rows = [(u, i, s) for u, pairs in good_lists(train, test).items() for i, s in pairs]
    pd.DataFrame(rows, columns=["user", "item", "score"]).to_csv(tmp_path / "lists.csv", index=False)
    pd.DataFrame({"item": range(N_ITEMS)}).to_csv(tmp_path / "items.csv", index=False)
    (tmp_path / "items.txt").write_text("\n".join(map(str, range(N_ITEMS))))
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli, ["audit", *map(str, arguments)], prog_name="recsys")


def test_the_command_passes_and_fails(files):
    done = run(
        files / "train.csv",
        files / "test.csv",
        "--lists",
        files / "lists.csv",
        "--items",
        files / "items.csv",
    )
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("audit passed")
    leak = run(files / "test.csv", files / "train.csv")
    assert leak.exit_code == 1
    assert "test_before_train" in leak.stdout
    assert run(files / "test.csv", files / "train.csv", "--only", "cold_items").exit_code == 0
    strict = run(files / "train.csv", files / "test.csv", "--items", files / "items.txt", "--fail-on", "info",
                 "--lists", files / "lists.csv")  # fmt: skip
    assert strict.exit_code == 1


def test_the_command_tells_its_options(files):
    plain = run(files / "train.csv", files / "test.csv")
    assert "pass --lists" in plain.stdout
    assert "pass --model with two or more" in plain.stdout
    graded = files / "graded.csv"
    pd.read_csv(files / "test.csv").assign(rating=1).to_csv(graded, index=False)
    done = run(files / "train.csv", graded, "--lists", files / "lists.csv", "--only", "popularity_baseline",
                "--set", "relevant_from=2")  # fmt: skip
    assert "recall@10 0.0000" in done.stdout
    assert run(files / "train.csv", files / "test.csv", "--set", "nonsense=1").exit_code == 2


def test_the_command_speaks_json_and_markdown(files):
    done = run(files / "test.csv", files / "train.csv", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["passed"] is False
    assert "| severity |" in run(files / "test.csv", files / "train.csv", "--markdown").stdout
    both = run(files / "train.csv", files / "test.csv", "--model", f"a={files / 'lists.csv'}", "--model",
               f"b={files / 'lists.csv'}", "--only", "metric_disagreement")  # fmt: skip
    assert "is best in all" in both.stdout


def test_the_command_names_what_is_wrong(files):
    assert run(files / "train.csv", files / "absent.csv").exit_code == 3
    assert run(files / "train.csv", files / "test.csv", "--only", "nothing").exit_code == 2
    assert run(files / "train.csv", files / "test.csv", "--model", "x").exit_code == 2
    assert run(files / "train.csv", files / "test.csv", "--json", "--markdown").exit_code == 2
    assert run(files / "train.csv", files / "test.csv", "--items", files / "absent.csv").exit_code == 3


def test_one_list_of_the_tests_popular_items_for_everyone():
    """With users who had some of these items already, so that no list of unseen items is like it."""
    rng = np.random.default_rng(0)
    train = pd.DataFrame({"user": np.repeat(np.arange(60), 12), "item": rng.integers(0, 30, 720)})
    test = pd.DataFrame({"user": np.repeat(np.arange(60), 6), "item": rng.zipf(1.6, 360) % 30})
    train, test = train.drop_duplicates(), test.drop_duplicates()
    for side, expected in ((test, 1), (train, 0)):
        top = side.item.value_counts().index[:5].tolist()
        lists = dict.fromkeys(range(60), top)
        assert len(findings_of("lists_follow_test_popularity", train, test, lists, k=5)) == expected


def test_ties_are_those_within_a_list_and_name_users_that_are_known(clean):
    """A list of somebody who is on neither side has no name, and two lists in a row are not one."""
    train, test = clean
    lists = {u: [(1, 0.9), (2, 0.5), (3, 0.4)] for u in range(N_USERS)}
    lists[3] = [(1, 0.7), (2, 0.5), (3, 0.5)]
    strangers = {9000: [(1, 0.6), (2, 0.3), (4, 0.3)], 9001: [(1, 0.3), (2, 0.2), (3, 0.1)]}
    (found,) = findings_of("tied_scores", train, test, lists | strangers, k=2)
    assert (found.count, found.examples) == (2, (3,))  # 0.3 ends one stranger's list and starts the next
    several = pd.DataFrame(
        {
            "user": [0, 0, 0, 0, 5, 5],
            "session": ["a", "a", "b", "b", "c", "c"],
            "item": [1, 2, 3, 4, 1, 2],
            "score": [0.9, 0.5, 0.5, 0.4, 0.3, 0.3],
        }
    )
    lists = read_lists(several, columns={"case": "session", "user": "user"})
    (found,) = findings_of("tied_scores", train, test, lists)
    assert (found.count, found.examples) == (1, (5,))


def test_a_finding_of_an_own_check_is_json_whatever_numbers_it_holds():
    values = {"share": np.float64("nan"), "plain": float("nan"), "n": np.int64(2), "rest": [np.float32(0.5)]}
    audit = Audit([Finding("info", "as found", 1, (np.int64(3), np.float32("nan")), "", values, name="own")])
    (found,) = json.loads(audit.to_json(), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))[
        "findings"
    ]
    assert found["examples"] == [3, None]
    assert found["values"] == {"share": None, "plain": None, "n": 2, "rest": [0.5]}


def test_a_check_is_of_a_known_area():
    with pytest.raises(UnknownNameError, match=r"'leaks'.*leakage"):
        check("leaks")


@pytest.mark.parametrize("column", ["popularity", "n_ratings", "NumRatings"])
def test_a_column_of_popularity_in_the_items_is_read(clean, column):
    train, test = clean
    items = pd.DataFrame({"item": range(N_ITEMS)})
    both = pd.concat([train, test]).item.value_counts()
    for counts, severities in ((both, ["error"]), (train.item.value_counts(), [])):
        table = items.assign(**{column: items["item"].map(counts).fillna(0)})
        found = findings_of("popularity_knows_the_test", train, test, items=table)
        assert [one.severity for one in found] == severities


def test_a_popularity_that_follows_the_test_beyond_train_is_a_warning():
    rng = np.random.default_rng(0)
    n_train, n_test = rng.integers(1, 9, 80), rng.integers(0, 9, 80)
    train, test = (
        pd.DataFrame({"user": np.arange(n.sum()) % 7, "item": np.repeat(np.arange(80), n)})
        for n in (n_train, n_test)
    )
    (found,) = findings_of(
        "popularity_knows_the_test", train, test, popularity=dict(enumerate((n_train + 3 * n_test).tolist()))
    )
    assert found.severity == "warning"
    assert "the popularity follows the test counts beyond what train explains (partial" in found.message
    few = {"train": train[train.item < 40], "test": test[test.item < 40]}
    assert not findings_of(
        "popularity_knows_the_test", **few, popularity=dict(enumerate((n_train + 3 * n_test)[:40].tolist()))
    )


def test_factors_with_ids_are_not_called_swapped_and_lack_ids_of_another_kind(clean):
    train, test = clean
    rng = np.random.default_rng(0)
    plain = recsys.Factors(rng.normal(size=(N_ITEMS, 3)), rng.normal(size=(N_USERS, 3)))
    named = recsys.Factors(plain.users, plain.items, user_ids=range(N_ITEMS), item_ids=range(N_USERS))
    assert len(findings_of("swapped_factors", train, test, plain)) == 1
    assert not findings_of("swapped_factors", train, test, named)
    texts = [side.astype({"user": str, "item": str}) for side in clean]
    assert not findings_of("swapped_factors", *texts, plain)


STATED = Path(__file__).with_name("findings.json")


def everything_found(name, clean):
    """What all checks say of the world of one of them, without what is exact to the last digit."""
    _, args, kwargs = WORLDS[name](*clean)
    found = recsys.audit(*args, **{key: value for key, value in kwargs.items() if key != "checks"})
    text = json.dumps([finding.to_dict() for finding in found] + [sorted(found.skipped)])
    return json.loads(re.sub(r"\d+\.\d{7,}", lambda number: f"{float(number[0]):.6g}", text))


@pytest.mark.parametrize("name", list(CHECKS))
def test_findings_are_those_that_are_stated(name, clean):
    """`findings.json` has every word of them. After an intended change: make restate."""
    assert everything_found(name, clean) == json.loads(STATED.read_text("utf-8"))[name]


if __name__ == "__main__":
    data = events()
    split = data[:900].reset_index(drop=True), data[900:].reset_index(drop=True)
    stated = {name: everything_found(name, split) for name in CHECKS}
    STATED.write_text(json.dumps(stated, indent=0) + "\n", encoding="utf-8")


def test_a_model_that_knows_no_user_of_the_test_is_an_error_and_the_rest_is_checked():
    model = recsys.Factors([[1.0]], [[1.0], [2.0], [3.0]], user_ids=["x"], item_ids=["a", "b", "c"])
    graded = {"u": {"b": 3.0}, "v": {"c": 2.0}}
    found = recsys.audit({"u": ["a"], "v": ["b"]}, graded, model)
    assert "users_outside_the_model" in {finding.name for finding in found if finding.severity == "error"}
    assert "cold_items" in found.checked


@pytest.mark.parametrize(
    ("times", "shown"),
    [
        ((893286637, 893286638, 893286630), "(1998-04-22 23:10:38, 893286638)"),
        ((893286637000, 893286638000, 893286630000), "(1998-04-22 23:10:38, 893286638000)"),
        ((7, 8, 3), "(8)"),
    ],
)
def test_seconds_since_1970_are_dates_in_findings(times, shown):
    first, second, early = times
    train = pd.DataFrame({"user": ["a", "a", "b"], "item": ["x", "y", "x"], "time": [first, second, first]})
    test = pd.DataFrame({"user": ["b"], "item": ["y"], "time": [early]})
    (found,) = [one for one in recsys.audit(train, test) if one.name == "test_before_border"]
    assert shown in found.message
