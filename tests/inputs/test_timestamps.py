"""Times keep their order, whatever they are written as and however far away they lie."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

import recsys
from recsys.errors import ColumnError, InputError, SplitError
from recsys.inputs.timestamps import read_times
from recsys.splits.eligibility import eligible_by_time

# The last day is what many tables write for "no end".
DAYS = [dt.date(*day) for day in ((1, 1, 1), (1600, 1, 1), (1969, 12, 31), (2020, 1, 1), (9999, 12, 31))]
FAR_TIMES = {
    "text": [day.isoformat() for day in DAYS],
    "text with a zone": [f"{day.isoformat()}T12:00:00+00:00" for day in DAYS],
    "dates": DAYS,
    "datetimes": [dt.datetime.combine(day, dt.time()) for day in DAYS],
    "datetimes with a zone": [dt.datetime.combine(day, dt.time(), dt.UTC) for day in DAYS],
    "datetime64 objects": [np.datetime64(day) for day in DAYS],
    "seconds": np.array(DAYS, dtype="datetime64[s]"),
    "days": np.array(DAYS, dtype="datetime64[D]"),
}


PANDAS_2 = pd.__version__.startswith("2.")  # gives nanoseconds to whatever it reads
reads_far = pytest.mark.skipif(PANDAS_2, reason="pandas 2 reads 1677 to 2262 only")


@reads_far
@pytest.mark.parametrize("times", FAR_TIMES.values(), ids=FAR_TIMES)
def test_far_dates_keep_their_order(times):
    column = times if isinstance(times, np.ndarray) else np.array([*times, None], dtype=object)[:-1]
    shuffled = [3, 0, 4, 2, 1]
    clock = read_times(column[shuffled], "time")
    assert np.argsort(clock.values).tolist() == np.argsort(shuffled).tolist()
    assert clock.shown(clock.values[2]).startswith("9999-12-31")


@pytest.mark.skipif(not PANDAS_2, reason="of pandas 2")
@pytest.mark.parametrize("name", ["text", "text with a zone", "dates", "datetimes", "datetime64 objects"])
def test_pandas_2_refuses_far_dates(name):
    with pytest.raises(InputError, match=r"outside 1677 to 2262.*install pandas 3"):
        read_times(np.array([*FAR_TIMES[name], None], dtype=object), "time")


@reads_far
@pytest.mark.parametrize("name", ["text", "datetimes"])
def test_a_split_puts_the_last_day_last(name):
    table = pd.DataFrame({"user": 1, "item": range(5), "timestamp": pd.Series(FAR_TIMES[name], dtype=object)})
    assert recsys.split(table, "leave_last").test["item"].tolist() == [4]
    parts = recsys.split(table, "global_temporal", at="2021-01-01")
    assert parts.test["item"].tolist() == [4]
    assert recsys.split(table, "leave_last").train["item"].tolist() == [0, 1, 2, 3]


@reads_far
def test_the_audit_sees_training_data_of_the_far_future():
    train = pd.DataFrame({"user": [1, 2], "item": [1, 2], "timestamp": ["2020-01-01", "9999-12-31"]})
    test = pd.DataFrame({"user": [1, 2], "item": [3, 4], "timestamp": ["2021-01-01", "2021-01-02"]})
    assert "test_before_train" in {finding.name for finding in recsys.audit(train, test)}
    # One side in nanoseconds, which cannot hold the other.
    test["timestamp"] = pd.to_datetime(test["timestamp"]).astype("datetime64[ns]")
    with pytest.raises(InputError, match="9999-12-31"):
        recsys.audit(train, test)


def test_nanoseconds_beside_a_far_date_are_refused():
    column = np.array(["2020-01-01T00:00:00.000000001", "9999-12-31"], dtype=object)
    with pytest.raises(InputError, match="'9999-12-31' lies outside 1677 to 2262"):
        read_times(column, "time")


def test_nanoseconds_and_microseconds_are_compared_in_one_unit():
    items = pd.DataFrame({
        "item": [1], "from": ["2020-01-01T00:00:00.000000001"], "until": ["2021-01-01"],
    })  # fmt: skip
    assert eligible_by_time(items, "2020-06-01", users=[7]).sizes.tolist() == [1]
    assert eligible_by_time(items, "2019-06-01", users=[7]).sizes.tolist() == [0]


def test_a_border_beyond_the_clock_is_beyond_all_times():
    clock = read_times(np.array(["2020-01-01T00:00:00.5"], dtype="datetime64[ns]"), "time")
    assert clock.at("9999-12-31") == np.iinfo(np.int64).max
    assert clock.at("0001-01-01") == np.iinfo(np.int64).min
    assert clock.at("2020-01-01T00:00:00.5") == clock.values[0]


def test_a_border_of_numpy_is_not_rounded():
    assert read_times(np.arange(3), "time").at(np.int64(1596000000000000001)) == 1596000000000000001
    assert read_times(np.arange(3), "time").length(np.int64(1596000000000000001), what="span") % 10 == 1
    with pytest.raises(SplitError, match="64 bits"):
        read_times(np.arange(3), "time").length(float("inf"), what="span")


@pytest.mark.parametrize("word", ["nan", "NaN", " NAN ", "NaT", "nat", ""])
@pytest.mark.parametrize("others", [["5.5", "7.5"], ["5", "7"], ["2020-01-01", "2021-01-01"]])
def test_text_that_means_missing_is_no_time(word, others):
    clock = read_times(np.array([others[0], word, others[1]], dtype=object), "time")
    assert clock.missing.tolist() == [False, True, False]
    table = pd.DataFrame({"user": 1, "item": [1, 2, 3], "timestamp": [others[0], word, others[1]]})
    with pytest.raises(InputError, match="without a time"):
        recsys.split(table, "leave_last")


def test_text_stamps_of_19_digits_are_exact():
    stamps = [str(1596000000000000000 + n) for n in (3, 1, 2)]
    assert read_times(np.array(stamps, dtype=object), "time").values.tolist() == [int(s) for s in stamps]
    table = pd.DataFrame({"user": 1, "item": [1, 2, 3], "timestamp": stamps})
    assert recsys.split(table, "leave_last").test["item"].tolist() == [1]


@pytest.mark.parametrize("wrong", [
    ["9223372036854775808"], [2**63], ["99999999999999999999999"], ["1_0", "2_0"], ["\uff11\uff12"],
    ["inf", "1.5"],
    [2**60 + 1, 0.5], ["1152921504606846977", "0.5"], ["now", "2020-01-01"], ["2020-01-01", "TODAY"],
    np.array(["1970-01-01T00:00:00.000000000001"], dtype="datetime64[ps]"),
    np.array([400_000], dtype="datetime64[Y]"),
])  # fmt: skip
def test_times_that_cannot_be_kept_exactly_are_refused(wrong):
    column = wrong if isinstance(wrong, np.ndarray) else np.array(wrong, dtype=object)
    with pytest.raises(InputError):
        read_times(column, "time")


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_columns_of_polars_keep_their_unit(unit):
    last = dt.datetime.combine(dt.date(2261 if unit == "ns" else 9999, 12, 31), dt.time())
    series = pl.Series([last, last.replace(year=2020)], dtype=pl.Datetime(unit))
    frame = pl.DataFrame({"user": [1, 1], "item": [1, 2], "timestamp": series})
    assert recsys.split(frame, "leave_last").test["item"].to_list() == [1]


@pytest.mark.parametrize("kind", [pl.Date, pl.Categorical, pl.Enum(["2020-01-03", "2020-01-01"])])
def test_days_and_categories_of_text_are_times(kind):
    days = ["2020-01-03", "2020-01-01"]
    if kind is pl.Date:
        column = pl.Series([dt.date.fromisoformat(day) for day in days])
    else:
        column = pl.Series(days, dtype=kind)
    clock = read_times(column, "time")
    assert clock.kind == "plain"
    assert clock.tick == 1000
    assert np.diff(clock.values).tolist() == [-2 * 86_400 * 10**6]
    assert not clock.missing.any()


@pytest.mark.parametrize("values", [np.array([True, False]), np.array([1j, 2j])])
def test_flags_and_complex_numbers_are_no_times(values):
    with pytest.raises(ColumnError, match=f"times came as {values.dtype}.") as caught:
        read_times(values, "time")
    assert "ISO text such as 2026-01-31" in str(caught.value)


def test_a_length_without_a_unit_does_not_cut_dates():
    frame = pd.DataFrame({"user": [1, 1], "item": [1, 2], "timestamp": ["2020-01-01", "2020-02-01"]})
    with pytest.raises(SplitError, match="length=5 is a number, the times are dates") as caught:
        recsys.split(frame, "rolling_windows", length=5)
    assert "Pass length='7d'" in str(caught.value)
