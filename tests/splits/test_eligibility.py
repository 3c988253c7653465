"""Who could be recommended what, when; against a plain double loop, and inside evaluate."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recsys
from recsys import splits
from recsys.errors import ColumnError, InputError, SplitError

times = st.one_of(st.none(), st.integers(0, 9))


@given(
    st.lists(st.tuples(times, times), min_size=1, max_size=8),
    st.dictionaries(st.integers(0, 20), st.integers(-1, 10), min_size=1),
)
def test_sets_are_those_of_a_double_loop(spans, moments):
    spans = [(a, b) if a is None or b is None or a <= b else (b, a) for a, b in spans]
    items = pd.DataFrame(
        {"item": range(len(spans)), "from": [a for a, _ in spans], "until": [b for _, b in spans]}
    )
    eligible = splits.eligible_by_time(items, moments)
    for user, moment in moments.items():
        expected = [
            i for i, (a, b) in enumerate(spans) if (a is None or a <= moment) and (b is None or moment < b)
        ]
        assert eligible.items_of(user).tolist() == expected
    assert eligible.n_sets <= min(len(moments), 2 * len(spans) + 1)


def test_a_table_of_moments_and_one_moment_for_all():
    items = pd.DataFrame(
        {"item_id": list("abc"), "released": pd.to_datetime(["2026-01-01", "2026-02-01", "2026-03-01"])}
    )
    test = pd.DataFrame(
        {
            "user": [1, 1, 2],
            "item": list("aba"),
            "timestamp": pd.to_datetime(["2026-01-05", "2026-02-05", "2026-01-05"]),
        }
    )
    eligible = splits.eligible_by_time(items, test)
    assert eligible.items_of(1).tolist() == ["a", "b"]
    assert eligible.items_of(2).tolist() == ["a"]
    everyone = splits.eligible_by_time(items, "2026-02-10", test)
    assert everyone.n_sets == 1
    assert len(everyone.codes) == 2
    assert everyone.excluded.tolist() == ["c"]
    assert splits.eligible_by_time(items, "2026-02-10", users=[1, 2, 3]).items_of(3).tolist() == ["a", "b"]


def test_moments_are_exact_to_the_tick():
    """Nanoseconds since 1970 do not fit a float; a moment of another resolution is compared exactly."""
    start = pd.Timestamp("2026-01-01T00:00:00.000000005")
    items = pd.DataFrame({"item": [1], "from": pd.Series([start], dtype="datetime64[ns]")})
    for shift, expected in ((-1, []), (0, [1])):
        moment = start + pd.Timedelta(shift, "ns")
        assert splits.eligible_by_time(items, {7: moment}).items_of(7).tolist() == expected
    for unit, text, expected in (
        ("us", "2026-01-01T00:00:00", []),
        ("us", "2026-01-01T00:00:00.000001", [1]),
    ):
        test = pd.DataFrame({"user": [7], "time": pd.Series([text]).astype(f"datetime64[{unit}]")})
        assert splits.eligible_by_time(items, test).items_of(7).tolist() == expected
    coarse = items.assign(**{"from": pd.Series(["2026-01-01T00:00:01"]).astype("datetime64[ms]")})
    for text, expected in (("2026-01-01T00:00:00.999999999", []), ("2026-01-01T00:00:01.000000001", [1])):
        test = pd.DataFrame({"user": [7], "time": pd.Series([text]).astype("datetime64[ns]")})
        assert splits.eligible_by_time(coarse, test).items_of(7).tolist() == expected


def test_evaluate_takes_it():
    rng = np.random.default_rng(0)
    users, factors = rng.standard_normal((6, 4)), rng.standard_normal((9, 4))
    items = pd.DataFrame({"item": range(9), "from": rng.integers(0, 5, 9), "until": rng.integers(6, 12, 9)})
    moments = {u: int(m) for u, m in enumerate(rng.integers(0, 11, 6))}
    eligible = splits.eligible_by_time(items, moments)
    plain = {u: eligible.items_of(u).tolist() for u in moments if len(eligible.items_of(u))}
    truth = {u: [own[0]] for u, own in plain.items()}
    source = recsys.Factors(users, factors)
    mine = recsys.evaluate(source, truth, ["ndcg@3", "mrr"], eligible=eligible)
    expected = recsys.evaluate(source, truth, ["ndcg@3", "mrr"], eligible=plain)
    assert dict(mine) == dict(expected)
    at = splits.eligible_by_time(items, 5, users=range(6))
    everyone = {u: at.items_of(u).tolist() for u in range(6)}
    first = {u: [own[0]] for u, own in everyone.items()}
    by_never = recsys.evaluate(source, first, ["ndcg@3"], exclude=at.excluded)
    assert dict(by_never) == dict(recsys.evaluate(source, first, ["ndcg@3"], eligible=everyone))


def test_many_users_share_few_sets():
    rng = np.random.default_rng(1)
    items = pd.DataFrame({"item": range(1000), "from": rng.integers(0, 50, 1000)})
    moments = pd.DataFrame({"user": np.arange(200_000), "time": rng.integers(0, 60, 200_000)})
    eligible = splits.eligible_by_time(items, moments)
    assert eligible.n_sets <= 51
    assert len(eligible.codes) <= 51 * 1000
    assert eligible.sizes.sum() > 50_000_000


def test_tables_that_say_nothing():
    items = pd.DataFrame({"item": [1, 2], "from": [3, 4], "until": [5, 1]})
    with pytest.raises(InputError, match="item 2 ends before it begins"):
        splits.eligible_by_time(items, 3, users=[1])
    with pytest.raises(ColumnError, match="from or until"):
        splits.eligible_by_time(items[["item"]], 3, users=[1])
    with pytest.raises(InputError, match="occurs twice"):
        splits.eligible_by_time(items.assign(item=1), 3, users=[1])
    with pytest.raises(InputError, match="needs users="):
        splits.eligible_by_time(items.iloc[:1], 3)
    with pytest.raises(SplitError, match="is a date"):
        splits.eligible_by_time(items.iloc[:1], "2026-01-01", users=[1])
    with pytest.raises(InputError, match="no user 9"):
        splits.eligible_by_time(items.iloc[:1], 3, users=[1]).items_of(9)


@pytest.mark.parametrize(
    ("items", "at", "options", "error", "words"),
    [
        ([1], 3, {}, InputError, "items came as list"),
        ({"x": [1], "from": [2]}, 3, {}, ColumnError, "no column was recognised as the item"),
        (
            {"item": [1], "from": [2], "until": ["2026-01-01"]},
            3,
            {},
            InputError,
            "from and until are times of different kinds",
        ),
        ({"item": [1], "from": [2]}, 3, {"begins": "frm"}, ColumnError, "there is no column 'frm'"),
        ({"item": [1], "from": [2]}, 3, {"ends": "til"}, ColumnError, "there is no column 'til'"),
        (
            {"item": [1], "from": [2]},
            pd.DataFrame({"user": [1, 2], "time": [1, None]}),
            {},
            InputError,
            "a time is missing",
        ),
        (
            {"item": [1], "from": [2]},
            pd.DataFrame({"user": [1], "time": ["2026-01-01"]}),
            {},
            InputError,
            "those of the items number",
        ),
    ],
)
def test_tables_that_do_not_fit_are_told(items, at, options, error, words):
    items = pd.DataFrame(items) if isinstance(items, dict) else items
    users = {} if isinstance(at, pd.DataFrame) else {"users": [1]}
    with pytest.raises(error, match=words):
        splits.eligible_by_time(items, at, **users, **options)


def test_columns_of_times_can_be_named():
    items = pd.DataFrame({"item": [1, 2, 3], "b": [3, 4, 0], "e": [9, 9, 3]})
    assert splits.eligible_by_time(items, 3, users=[1], begins="b", ends="e").items_of(1).tolist() == [1]
    assert splits.eligible_by_time(items, 3, users=[1], ends="e").items_of(1).tolist() == [1, 2]
