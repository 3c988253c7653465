"""What cannot be split as asked is a typed error that says what to do, or is excluded and counted."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys import splits
from recsys.errors import ColumnError, InputError, RecsysError, SplitError, UnknownNameError

BASE = {
    "user": [1, 1, 1, 2, 2, 3],
    "item": list("abcabd"),
    "timestamp": [1, 2, 3, 1, 5, 9],
    "rating": [1, 2, 3, 4, 5, 5],
}


def frame(**changes):
    return pd.DataFrame({**BASE, **changes})


def test_a_user_with_one_event_is_excluded_and_counted():
    split = splits.leave_one_out(frame())
    assert split.counts["rows"] == {"input": 6, "train": 3, "test": 2, "excluded": 1}
    assert split.reasons == {"user with too few rows to be on every side": 1}
    assert split.excluded["user"].tolist() == [3]
    assert split.counts["users_too_short"] == 1
    assert "excluded: 1 row, user with too few rows" in str(split)
    kept = splits.leave_one_out(frame(), short="train")
    assert 3 in kept.train["user"].tolist()
    with pytest.raises(SplitError, match=r"1 user has too few rows.*for example 3.*short='exclude'"):
        splits.leave_one_out(frame(), short="error")


def test_a_user_whose_events_share_one_time_has_no_last():
    tied = frame(timestamp=[7, 7, 7, 1, 5, 9])
    assert splits.leave_last(tied).excluded["user"].tolist() == [1, 1, 1, 3]
    assert splits.leave_last(tied, on_tie="by_item").test["item"].tolist() == ["c", "b"]
    with pytest.raises(SplitError, match="rows of equal time"):
        splits.leave_last(tied, on_tie="error")


def test_one_row_of_each_user_is_left_out_where_times_are_equal():
    tied = frame(timestamp=[7, 7, 7, 1, 5, 9])
    split = splits.leave_one_out(tied)
    assert split.test["item"].tolist() == [tied["item"][2], tied["item"][4]]
    assert split.counts["ties_at_border"] == 1
    again = splits.rerun(split.manifest, tied)
    assert again.test.equals(split.test)
    together = splits.leave_one_out(tied, on_tie="together")
    assert splits.rerun(together.manifest, tied).test.equals(together.test)
    assert len(splits.leave_one_out(tied, validation=1, short="train").rows("test")) == 1


def test_folds_need_a_user_with_enough_rows():
    with pytest.raises(
        SplitError, match=r"fold 1 of 3 has no row: no user has more than 2\. Use fewer folds"
    ):
        list(splits.leave_last_folds({"ann": ["a", "b"]}, 3, 1))


@pytest.mark.shared
def test_leave_one_out_leaves_out_one_row_of_each_user_of_ml_100k(shared_dir):
    data = pd.read_parquet(shared_dir / "data" / "ml-100k" / "interactions.parquet")
    split = splits.leave_one_out(data)
    assert (len(split.test), split.test["user"].nunique()) == (943, 943)
    newest = data.groupby("user")["timestamp"].transform("max").to_numpy()
    assert (data["timestamp"].to_numpy() == newest)[split.rows("test")].all()


@pytest.mark.parametrize("test", [0.0, 1.0, -0.1, 1.5, float("nan"), 0, -3, True, "0.2", None])
def test_fractions_out_of_range(test):
    for make in (splits.random_ratio, splits.per_user_ratio, splits.per_user_temporal, splits.unseen_users):
        with pytest.raises(SplitError, match="test="):
            make(frame(), test)


def test_shares_that_leave_nothing():
    with pytest.raises(SplitError, match="leave nothing to train on"):
        splits.random_ratio(frame(), 0.6, 0.4)
    with pytest.raises(SplitError, match="leave none of 6"):
        splits.random_ratio(frame(), 6)
    with pytest.raises(SplitError, match="validation="):
        splits.random_ratio(frame(), 0.2, -0.2)
    with pytest.raises(SplitError, match="leave none of 3"):
        splits.unseen_users(frame(), 3)


@pytest.mark.parametrize("missing", [[1, 2, None, 1, 5, 9], [1.0, 2.0, float("nan"), 1.0, 5.0, 9.0]])
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_missing_times(missing, kind):
    table = kind({**BASE, "timestamp": missing}, **({"strict": False} if kind is pl.DataFrame else {}))
    with pytest.raises(
        SplitError, match=r"1 of 6 rows are without a time.*bad_rows='exclude'.*'timestamp', row 2"
    ):
        splits.leave_last(table)
    split = splits.leave_last(table, bad_rows="exclude")
    assert split.reasons["without a time"] == 1
    assert sum(split.counts["rows"][n] for n in ("train", "test", "excluded")) == 6
    assert len(splits.random_ratio(table, 0.5).train) == 3  # nobody asked for the time


def test_missing_dates():
    dates = pd.to_datetime(["2026-01-01", None, "2026-01-03", "2026-01-01", "2026-01-05", "2026-01-09"])
    with pytest.raises(SplitError, match="without a time"):
        splits.leave_last(frame(timestamp=dates))
    assert splits.leave_last(frame(timestamp=dates), bad_rows="exclude").reasons["without a time"] == 1


def test_no_time_column():
    with pytest.raises(ColumnError, match=r"recognised as the time.*columns=\{'time': ...\}"):
        splits.leave_last(frame().drop(columns="timestamp"))


def test_rows_need_not_stand_in_order_of_time_and_users_where_they_do_not_are_counted():
    table = frame(timestamp=[3, 2, 1, 1, 5, 9])
    split = splits.leave_last(table)
    assert split.test["item"].tolist() == ["a", "b"]
    assert split.counts["users_not_in_time_order"] == 1
    assert "users_not_in_time_order" not in splits.leave_last(frame()).counts


def test_zoned_and_plain_times_do_not_mix():
    zone = dt.UTC
    mixed = [dt.datetime(2026, 1, d, tzinfo=zone if d == 2 else None) for d in range(1, 7)]
    with pytest.raises(InputError, match="some times have a time zone and some have none"):
        splits.leave_last(frame(timestamp=pd.Series(mixed, dtype=object)))
    texts = ["2026-01-01T00:00:00", "2026-01-02T00:00:00Z", *["2026-01-03T00:00:00"] * 4]
    with pytest.raises(InputError, match="some times have a time zone"):
        splits.leave_last(frame(timestamp=texts))


def test_borders_are_written_as_the_times_are():
    plain = pd.date_range("2026-01-01", periods=6)
    zoned = plain.tz_localize("Europe/Paris")
    assert len(splits.global_temporal(frame(timestamp=plain), at="2026-01-03").test) == 4
    assert len(splits.global_temporal(frame(timestamp=plain), at=dt.date(2026, 1, 3)).test) == 4
    with pytest.raises(SplitError, match="has a time zone and the times have none"):
        splits.global_temporal(frame(timestamp=plain), at="2026-01-03T00:00:00Z")
    with pytest.raises(SplitError, match="has no time zone and the times have one"):
        splits.global_temporal(frame(timestamp=zoned), at="2026-01-03")
    assert len(splits.global_temporal(frame(timestamp=zoned), at="2026-01-02T23:00:00Z").test) == 4
    with pytest.raises(SplitError, match=r"is a number, the times are dates"):
        splits.global_temporal(frame(timestamp=plain), at=5)
    with pytest.raises(SplitError, match=r"is a date, the times are numbers.*unit='s'"):
        splits.global_temporal(frame(), at="2026-01-01")
    seconds = [int(t.timestamp()) for t in plain.tz_localize("UTC")]
    assert len(splits.global_temporal(frame(timestamp=seconds), at="2026-01-03", unit="s").test) == 4
    with pytest.raises(SplitError, match="is not a date"):
        splits.global_temporal(frame(timestamp=plain), at="soon")
    with pytest.raises(SplitError, match="is not a unit"):
        splits.global_temporal(frame(), at=2, unit="hours")


@pytest.mark.parametrize(
    "times",
    [
        pd.date_range("2026-01-01", periods=6),
        pd.date_range("2026-01-01", periods=6).as_unit("s"),
        pd.date_range("2026-01-01", periods=6, tz="UTC"),
        [f"2026-01-0{d}" for d in range(1, 7)],
        [f"2026-01-0{d}T10:00:00+02:00" for d in range(1, 7)],
        [dt.date(2026, 1, d) for d in range(1, 7)],
        [str(d) for d in range(1, 7)],
        [d / 3 for d in range(1, 7)],
        np.arange(6, dtype=np.uint8),
    ],
    ids=lambda times: str(getattr(times, "dtype", type(times[0]).__name__ + str(times[0]))),
)
def test_times_of_every_kind_have_the_same_order(times):
    expected = splits.leave_last(frame(timestamp=range(6)))
    assert splits.leave_last(frame(timestamp=times)).test.index.tolist() == expected.test.index.tolist()
    half = splits.global_temporal(frame(timestamp=times), 3)
    assert half.test.index.tolist() == [3, 4, 5]


def test_times_that_are_none():
    with pytest.raises(InputError, match=r"the time 'yesterday' cannot be read.*row 1"):
        splits.leave_last(frame(timestamp=["2026-01-01", "yesterday", *["2026-01-01"] * 4]))
    with pytest.raises(ColumnError, match="mixture of"):
        splits.leave_last(frame(timestamp=pd.Series([1, "2026-01-01", 3, 4, 5, 6], dtype=object)))
    with pytest.raises(InputError, match="infinite"):
        splits.leave_last(frame(timestamp=[1.0, float("inf"), 3, 4, 5, 6]))


def test_ratings_outside_the_scale_and_missing_ones():
    with pytest.raises(SplitError, match=r"2 of 6 rows have a rating outside 1 to 4.*row 4"):
        splits.leave_last(frame(), scale=(1, 4))
    split = splits.leave_last(frame(), scale=(1, 4), bad_rows="exclude")
    assert split.reasons["rating outside 1 to 4"] == 2
    gaps = frame(rating=[1, 2, float("nan"), 4, 5, 5])
    with pytest.raises(SplitError, match="1 of 6 rows are without a rating"):
        splits.random_ratio(gaps)
    assert splits.random_ratio(gaps, 2, bad_rows="exclude").reasons == {"without a rating": 1}
    kept = splits.random_ratio(gaps, 2, bad_rows="keep", scale=(1, 4))
    assert kept.counts["rows"] == {"input": 6, "train": 4, "test": 2, "excluded": 0}
    for scale in ((4, 1), 3, ("a", "b")):
        with pytest.raises(SplitError, match="scale="):
            splits.random_ratio(frame(), scale=scale)
    with pytest.raises(ColumnError, match="recognised as the grade"):
        splits.random_ratio(frame().drop(columns="rating"), scale=(1, 5))


def test_empty_sides_after_filtering():
    with pytest.raises(SplitError, match="no row is left"):
        splits.random_ratio(frame(), min_user=5)
    with pytest.raises(SplitError, match=r"no row is left for test.*not in train"):
        splits.global_temporal(frame(), 1, warm_users=True)
    with pytest.raises(SplitError, match="no row is left for test"):
        splits.global_temporal(frame(), at=100)
    with pytest.raises(SplitError, match="no row is left for train"):
        splits.global_temporal(frame(), at=0)
    with pytest.raises(SplitError, match="no row is left"):
        splits.min_interactions(frame(), 4, 4)


def test_the_error_for_an_empty_part_says_what_helps_this_strategy():
    one_row = {"ann": ["a"]}
    with pytest.raises(SplitError) as caught:
        splits.leave_last(one_row)
    assert str(caught.value).startswith(
        "leave_last: no row is left for train "
        "(of 1 row; excluded: 1 row: user with too few rows to be on every side)."
    )
    assert caught.value.hint == "Pass data with more rows, or exclude fewer rows."
    for make, remedy in (
        (lambda: splits.leave_last(one_row, short="train"), "Pass data with more rows."),
        (lambda: splits.per_user_ratio(one_row), "or change test=."),
        (lambda: splits.global_temporal(frame(), at=100), "or move the border at=."),
    ):
        with pytest.raises(SplitError) as caught:
            make()
        assert caught.value.hint.endswith(remedy)


def test_a_core_and_warm_filters_are_accounted_for():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"user": rng.integers(0, 60, 400), "item": rng.integers(0, 60, 400), "timestamp": np.arange(400)}
    )
    split = splits.global_temporal(table, 0.3, min_user=5, min_item=5, warm_users=True, warm_items=True)
    core = splits.min_interactions(table, 5, 5)
    reason = "user with fewer than 5 or item with fewer than 5 rows"
    assert split.reasons[reason] == len(core.excluded)
    assert set(split.test["item"]) <= set(split.train["item"])
    assert set(split.test["user"]) <= set(split.train["user"])
    assert split.warm().counts["rows"] == split.counts["rows"]


def test_empty_and_strange_data():
    with pytest.raises(InputError, match="no rows"):
        splits.random_ratio(frame().iloc[:0])
    with pytest.raises(InputError, match="came as str"):
        splits.random_ratio("file.csv")
    with pytest.raises(InputError, match="user id is missing"):
        splits.random_ratio(frame(user=[1, 1, 1, 2, 2, None]))
    with pytest.raises(ColumnError, match="recognised as the user"):
        splits.leave_last(frame().rename(columns={"user": "wer"}))
    with pytest.raises(InputError, match="seed="):
        splits.random_ratio(frame(), seed=0.5)
    with pytest.raises(UnknownNameError, match="short"):
        splits.leave_last(frame(), short="drop")
    with pytest.raises(SplitError, match="n=0"):
        splits.leave_last(frame(), 0)
    with pytest.raises(SplitError, match="n_folds=1"):
        splits.k_fold(frame(), 1)


def test_windows_that_do_not_fit():
    with pytest.raises(SplitError, match="do not fit"):
        splits.rolling_windows(frame(), 5, 3)
    with pytest.raises(SplitError, match="length="):
        splits.rolling_windows(frame(), 0)
    with pytest.raises(SplitError, match="unit='s'"):
        splits.rolling_windows(frame(), "7d")
    dates = frame(timestamp=pd.date_range("2026-01-01", periods=6))
    folds = splits.rolling_windows(dates, "1d", 2, gap="1d", train="2d")
    assert [f.counts["rows"] for f in folds] == [
        {"input": 6, "train": 2, "test": 1, "excluded": 3},
        {"input": 6, "train": 2, "test": 1, "excluded": 3},
    ]
    assert folds[0].reasons == {"after the window": 1, "in the gap": 1, "before the training window": 1}
    starts = splits.rolling_windows(dates, "2d", start="2026-01-03", step="1d")
    assert [len(f.test) for f in starts] == [2, 2, 2, 1]


@given(
    st.lists(
        st.one_of(st.none(), st.integers(-3, 3), st.floats(), st.text(max_size=3), st.dates()),
        min_size=2,
        max_size=8,
    )
)
def test_any_column_of_times_splits_or_raises_ours(times):
    table = pd.DataFrame(
        {"user": [0] * len(times), "item": range(len(times)), "time": pd.Series(times, dtype=object)}
    )
    try:
        split = splits.leave_last(table, bad_rows="exclude", short="train")
    except RecsysError:
        return
    assert sum(map(len, [*split, split.excluded])) == len(table)
