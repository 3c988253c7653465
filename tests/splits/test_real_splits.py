"""Splits of real data: ties, exact counts, and agreement with plain pandas."""

from __future__ import annotations

import pandas as pd
import pytest

from recsys import splits

pytestmark = pytest.mark.shared


def table(shared_dir, name, file="interactions"):
    return pd.read_parquet(shared_dir / "data" / name / f"{file}.parquet")


@pytest.mark.parametrize(
    ("name", "file", "tied", "users"),
    [
        ("ml-100k", "interactions", 415, 943),
        ("ml-latest-small", "ratings", 127, 671),
        ("amazon-grocery", "interactions", 5321, 14681),
    ],
)
def test_users_whose_newest_time_is_shared(shared_dir, name, file, tied, users):
    frame = table(shared_dir, name, file)
    newest = frame.groupby("user")["timestamp"].transform("max") == frame["timestamp"]
    n_newest = newest.groupby(frame["user"]).sum()
    assert (n_newest > 1).sum() == tied
    split = splits.leave_last(frame)
    assert split.counts["ties_at_border"] == tied
    # every row of the newest time is held out, unless nothing would be left to train on
    whole = (n_newest == frame.groupby("user").size()).reindex(frame["user"]).to_numpy()
    assert split.mask("test").tolist() == (newest & ~whole).tolist()
    assert split.mask("excluded").tolist() == whole.tolist()
    assert split.counts["rows"]["excluded"] + len(split.train) + len(split.test) == len(frame)
    exact = splits.leave_last(frame, on_tie="by_item", short="train")
    assert (exact.test.groupby("user").size() == 1).all()
    assert len(exact.test) == (frame.groupby("user").size() > 1).sum()
    expected = frame.sort_values(["user", "timestamp", "item"]).groupby("user").tail(1)
    expected = expected[expected["user"].map(frame.groupby("user").size()) > 1]
    assert sorted(exact.test.index) == sorted(expected.index)
    assert frame["user"].nunique() == users


def test_global_time_on_ml_100k(shared_dir):
    frame = table(shared_dir, "ml-100k")
    split = splits.global_temporal(frame, 0.2)
    border = frame["timestamp"].sort_values().iloc[80_000]
    assert split.test["timestamp"].min() == border
    assert split.train["timestamp"].max() < border
    assert len(split.test) == 20_001
    by_date = splits.global_temporal(frame, at="1998-03-01", unit="s")
    assert len(by_date.test) == (frame["timestamp"] >= pd.Timestamp("1998-03-01").timestamp()).sum()


def test_the_core_of_ml_latest_small(shared_dir):
    frame = table(shared_dir, "ml-latest-small", "ratings")
    left = frame
    while True:
        users, items = left["user"].value_counts(), left["item"].value_counts()
        fewer = left[left["user"].map(users).ge(20) & left["item"].map(items).ge(10)]
        if len(fewer) == len(left):
            break
        left = fewer
    selection = splits.min_interactions(frame, 20, 10)
    assert selection.kept.index.tolist() == left.index.tolist()
    assert selection.counts["rounds"] > 2


def test_the_order_of_the_file_is_the_last_item_where_asked(shared_dir):
    """The NCF paper's held-out item is not the last by position for about a quarter of the users of ml-1m."""
    frame = table(shared_dir, "ml-1m")
    frame = frame[frame["position"] >= 0]
    split = splits.leave_last(frame, columns={"time": "position"})
    assert len(split.test) == frame["user"].nunique() == 6040
    ncf = table(shared_dir, "ml-1m", "ncf_test").set_index("user")["item"]
    assert int((split.test.set_index("user")["item"] == ncf).sum()) == 4369


def test_folds_and_shares_of_ml_100k(shared_dir):
    frame = table(shared_dir, "ml-100k")
    folds = splits.k_fold(frame, 5)
    assert [len(f.test) for f in folds] == [20_000] * 5
    tested = pd.concat([f.test for f in folds])
    pd.testing.assert_frame_equal(tested.sort_index(), frame)
    held = splits.unseen_users(frame, 100, by="time")
    assert held.test["user"].nunique() == 100
    assert not set(held.train["user"]) & set(held.test["user"])


def test_hashes_are_the_same_in_every_version(shared_dir):
    frame = table(shared_dir, "ml-100k")
    drawn = splits.random_ratio(frame).manifest
    assert drawn["input"]["content"] == "10ac77bf4590a14ca273cdb777780350"
    assert drawn["parts"]["test"]["content"] == "89af375775f6a65e49a8050a1b4f1716"
    assert splits.leave_last(frame).manifest["parts"]["test"]["content"] == "b942962460b558106260ebd64a530b2e"
