"""RecTools, RePlay, Recommenders and RecPack hold out the same rows of real data as ours do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recsys import splits
from worlds.parity import peer

pytestmark = [pytest.mark.parity, pytest.mark.shared, pytest.mark.filterwarnings("ignore")]
COLD = {"filter_cold_users": False, "filter_cold_items": False, "filter_already_seen": False}


@pytest.fixture(scope="module")
def ratings(shared_dir):
    frame = pd.read_parquet(shared_dir / "data" / "ml-latest-small" / "ratings.parquet")
    return pd.DataFrame(
        {
            "user_id": frame["user"],
            "item_id": frame["item"],
            "weight": frame["rating"].astype(float),
            "datetime": pd.to_datetime(frame["timestamp"], unit="s"),
            "row": np.arange(len(frame)),
        }
    )


def same(split, train, test):
    assert set(split.rows("test").tolist()) == set(test)
    assert set(split.rows("train").tolist()) == set(train)


@pytest.mark.parametrize("n", [1, 3])
def test_rectools_last_n(ratings, n):
    selection, dataset = peer("rectools.model_selection"), peer("rectools.dataset")
    theirs = selection.LastNSplitter(n, 1, **COLD).split(dataset.Interactions(ratings.drop(columns="row")))
    train, test, _ = next(iter(theirs))
    same(splits.leave_last(ratings, n, on_tie="row_order", short="train"), train, test)


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("seen", [False, True])
def test_rectools_folds_of_last_n_and_its_filter_of_seen_pairs(ratings, n, seen):
    """Every other user comes back to an item at the end."""
    selection, dataset = peer("rectools.model_selection"), peer("rectools.dataset")
    last = ratings.drop_duplicates("user_id")[::2].assign(datetime=ratings["datetime"].max())
    again = pd.concat([ratings, last], ignore_index=True)
    options = {**COLD, "filter_already_seen": seen}
    theirs = selection.LastNSplitter(n, 3, **options).split(dataset.Interactions(again.drop(columns="row")))
    ours = splits.leave_last_folds(again, 3, n, on_tie="row_order", short="train", new_pairs=seen)
    for (train, test, _), split in zip(theirs, ours, strict=True):
        same(split, train, test)


@pytest.mark.parametrize("warm", [False, True])
def test_rectools_windows(ratings, warm):
    selection, dataset = peer("rectools.model_selection"), peer("rectools.dataset")
    days = ratings.assign(datetime=ratings["datetime"].dt.floor("D"))
    options = {**COLD, "filter_cold_users": warm, "filter_cold_items": warm}
    theirs = selection.TimeRangeSplitter("30D", 3, **options).split(
        dataset.Interactions(days.drop(columns="row"))
    )
    ours = splits.rolling_windows(days, "30d", 3, warm_users=warm, warm_items=warm)
    for (train, test, _), split in zip(theirs, ours, strict=True):
        same(split, train, test)


def test_replay_last_and_date(ratings):
    splitters = peer("replay.splitters")
    names = {"query_column": "user_id", "item_column": "item_id", "timestamp_column": "datetime",
             "drop_cold_users": False, "drop_cold_items": False}  # fmt: skip
    train, test = splitters.LastNSplitter(
        N=1, divide_column="user_id", strategy="interactions", **names
    ).split(ratings)
    same(splits.leave_last(ratings, on_tie="row_order"), train["row"], test["row"])
    train, test = splitters.TimeSplitter(time_threshold=pd.Timestamp("2014-01-01"), **names).split(ratings)
    same(splits.global_temporal(ratings, at="2014-01-01"), train["row"], test["row"])


def test_filters_of_one_round(ratings):
    theirs = peer("recommenders.datasets.split_utils").min_rating_filter_pandas(
        ratings, min_rating=30, filter_by="item", col_user="user_id", col_item="item_id"
    )
    ours = splits.min_interactions(ratings, 0, 30, iterative=False)
    assert set(ours.kept["row"]) == set(theirs["row"])
    theirs = peer("recpack.preprocessing.filters").MinItemsPerUser(50, "item_id", "user_id").apply(ratings)
    assert set(splits.min_interactions(ratings, 50, 0, iterative=False).kept["row"]) == set(theirs["row"])
