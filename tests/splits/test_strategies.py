"""Splits against a slow plain oracle, on real data, and what must hold of every one of them."""

from __future__ import annotations

import inspect
import math
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import get_args, get_overloads, get_type_hints

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import recsys
from oracles import splits as oracle
from recsys import splits
from recsys.benching.protocol import run_protocol
from recsys.errors import InputError, RecsysWarning, SplitError, UnknownNameError
from recsys.kernels.keyed_random import id_keys, pair_keys
from recsys.records.arrays import Ids

TIES = ("together", "train", "by_item", "random", "row_order")


def sides_of(split):
    """The part each row went to, as words."""
    sides = np.full(len(split._side), "", dtype=object)
    for name in [*split.names, "excluded"]:
        sides[split.mask(name)] = name
    return sides.tolist()


def draws(frame, seed=0):
    """The draw of each row, by the documented hash of user and item."""
    users, items = Ids(np.unique(frame["user"])), Ids(np.unique(frame["item"]))
    first = id_keys(users, seed, purpose="user")[users.code_of(frame["user"].to_numpy())]
    second = id_keys(items, seed, purpose="item")[items.code_of(frame["item"].to_numpy())]
    return [int(key) for key in pair_keys(first, second)]


@st.composite
def frames(draw, max_rows=40):
    """Small tables with many ties, repeated pairs and users of one row."""
    size = draw(st.integers(2, max_rows))
    column = lambda high: draw(st.lists(st.integers(0, high), min_size=size, max_size=size))  # noqa: E731
    return pd.DataFrame(
        {"user": column(6), "item": column(9), "timestamp": column(draw(st.sampled_from([2, 12, 10**12])))}
    )


def expected_or_error(make, sides, needed):
    """The oracle's sides, or an error of ours where one of them is empty."""
    if any(name not in sides for name in needed):
        with pytest.raises(SplitError):
            make()
        return
    assert sides_of(make()) == sides


@given(
    frames(),
    st.sampled_from(TIES),
    st.integers(1, 3),
    st.integers(0, 2),
    st.sampled_from(["exclude", "train", "test"]),
)
def test_leave_last_is_the_oracles(frame, on_tie, n, validation, short):
    key = draws(frame)
    breaker = {"by_item": frame["item"].tolist(), "random": key}.get(on_tie, range(len(frame)))
    if on_tie in ("by_item", "random") and frame.duplicated(["user", "item", "timestamp"]).any():
        return  # rows that differ in nothing have no order of their own
    sides = oracle.per_user(
        frame["user"].tolist(), n, validation, frame["timestamp"].tolist().__getitem__, on_tie=on_tie,
        breaker=breaker.__getitem__, short=short,
    )  # fmt: skip
    needed = ("train", "test", *(("validation",) if validation else ()))
    expected_or_error(
        lambda: splits.leave_last(frame, n, validation, on_tie=on_tie, short=short), sides, needed
    )


@given(frames(), st.sampled_from([0.1, 0.25, 0.5, 0.29]), st.sampled_from([0, 0.2]))
def test_per_user_shares_are_the_oracles(frame, test, validation):
    users, times, key = frame["user"].tolist(), frame["timestamp"].tolist(), draws(frame, 3)
    needed = ("train", "test", *(("validation",) if validation else ()))
    sides = oracle.per_user(users, test, validation, times.__getitem__)
    expected_or_error(lambda: splits.per_user_temporal(frame, test, validation), sides, needed)
    sides = oracle.per_user(users, test, validation, key.__getitem__)
    expected_or_error(lambda: splits.per_user_ratio(frame, test, validation, seed=3), sides, needed)


@given(frames(), st.sampled_from([0.1, 0.5, 1, 2]), st.sampled_from([0, 0.2, 1]), st.sampled_from(TIES))
def test_one_border_for_all_is_the_oracles(frame, test, validation, on_tie):
    asked = oracle.share(len(frame), test) + (oracle.share(len(frame), validation) if validation else 0)
    if asked >= len(frame):
        with pytest.raises(SplitError, match="leave none"):
            splits.random_ratio(frame, test, validation)
        return
    needed = ("train", "test", *(("validation",) if validation else ()))
    key = draws(frame)
    sides = oracle.whole(len(frame), test, validation, key.__getitem__)
    expected_or_error(lambda: splits.random_ratio(frame, test, validation), sides, needed)
    if on_tie in ("by_item", "random"):
        return  # across users equal items have no order
    sides = oracle.whole(
        len(frame), test, validation, frame["timestamp"].tolist().__getitem__, on_tie=on_tie, breaker=int
    )
    expected_or_error(lambda: splits.global_temporal(frame, test, validation, on_tie=on_tie), sides, needed)


@given(frames(), st.integers(0, 4), st.integers(0, 4), st.booleans())
def test_the_core_is_the_oracles(frame, user, item, iterative):
    rows = oracle.core(frame["user"].tolist(), frame["item"].tolist(), user, item, iterative=iterative)
    if not rows:
        with pytest.raises(SplitError, match="no row is left"):
            splits.min_interactions(frame, user, item, iterative=iterative)
        return
    selection = splits.min_interactions(frame, user, item, iterative=iterative)
    assert selection.kept.index.tolist() == rows
    assert len(selection.kept) + len(selection.excluded) == len(frame)
    assert selection.counts["kept"] == len(rows)


@given(frames(), st.integers(1, 3), st.integers(1, 5), st.sampled_from([0, 1]), st.sampled_from([None, 2]))
def test_windows_are_the_oracles(frame, n_windows, length, gap, reach):
    times = frame["timestamp"].tolist()
    begins = [max(times) + 1 - length * (at + 1) for at in range(n_windows)][::-1]
    options = {"gap": gap or None, "train": reach}
    if begins[0] <= min(times):
        with pytest.raises(SplitError, match="do not fit"):
            splits.rolling_windows(frame, length, n_windows, **options)
        return
    folds = splits.rolling_windows(frame, length, n_windows, **options)
    for at, sides in enumerate(oracle.windows(times, begins, length, gap, reach)):
        expected_or_error(lambda at=at: folds[at], sides, ("train", "test"))


@given(frames(), st.integers(2, 4), st.sampled_from(["rows", "user_rows", "users"]))
def test_every_row_is_tested_in_one_fold(frame, n_folds, by):
    pairs = frame[["user", "item"]].drop_duplicates()
    dealt = {"rows": len(pairs), "user_rows": len(pairs), "users": frame["user"].nunique()}[by]
    if dealt < n_folds:
        with pytest.raises(SplitError, match="cannot fill"):
            splits.k_fold(frame, n_folds, by=by)
        return
    folds = splits.k_fold(frame, n_folds, by=by)
    tested = np.zeros((n_folds, len(frame)), dtype=bool)
    for at in range(n_folds):
        try:
            tested[at] = folds[at].mask("test")
        except SplitError as error:  # one of the folds got all rows, or none
            tested[at] = "left for train" in str(error)
    assert (tested.sum(axis=0) == 1).all()
    fold = np.argmax(tested, axis=0)
    unit = {"rows": ["user", "item"], "user_rows": ["user", "item"], "users": ["user"]}[by]
    together = frame.assign(fold=fold).groupby(unit)["fold"]
    assert (together.min() == together.max()).all()
    dealt_to = frame.assign(fold=fold).drop_duplicates(unit)
    spread = dealt_to.groupby("user")["fold"].value_counts() if by == "user_rows" else None
    if spread is None:
        sizes = dealt_to["fold"].value_counts().reindex(range(n_folds), fill_value=0)
        assert sizes.max() - sizes.min() <= 1
    else:
        for _, own in dealt_to.groupby("user"):
            sizes = own["fold"].value_counts().reindex(range(n_folds), fill_value=0)
            assert sizes.max() - sizes.min() <= 1


@given(frames(), st.sampled_from([0.3, 1]), st.sampled_from([0, 1]), st.sampled_from(["random", "time"]))
def test_unseen_users_are_unseen(frame, test, validation, by):
    n_users = frame["user"].nunique()
    try:
        split = splits.unseen_users(frame, test, validation, known=0.6, by=by)
    except SplitError:
        return
    users = {name: set(frame["user"][split.mask(name)]) for name in split.names}
    assert users["test"] == users["known"]
    assert not users["train"] & users["test"]
    if validation:
        assert users["validation"] == users["validation_known"]
        assert not users["validation"] & (users["train"] | users["test"])
    left_out = set(frame["user"][split.mask("excluded")])
    assert len(users["test"]) <= oracle.share(n_users, test)
    assert (
        len(users["train"]) + sum(len(users[n]) for n in ("test", "validation") if n in users) + len(left_out)
        == n_users
    )
    if by == "time":
        for user in users["test"]:
            own = frame[frame["user"] == user]
            newest = own["timestamp"][split.mask("test")[own.index]].min()
            assert newest > own["timestamp"][split.mask("known")[own.index]].max()


@given(frames(), st.booleans(), st.booleans())
def test_warm_filters_exclude_what_is_not_in_train_and_nothing_else(frame, users, items):
    frame = frame.drop_duplicates(["user", "item"], ignore_index=True)
    if len(frame) < 4:
        return
    plain = splits.random_ratio(frame, 0.4, seed=1)
    known = {role: set(plain.train[role]) for role in ("user", "item")}
    cold = [
        side == "test" and ((users and u not in known["user"]) or (items and i not in known["item"]))
        for side, u, i in zip(sides_of(plain), frame["user"], frame["item"], strict=True)
    ]
    expected = ["excluded" if away else side for away, side in zip(cold, sides_of(plain), strict=True)]
    expected_or_error(
        lambda: splits.random_ratio(frame, 0.4, seed=1, warm_users=users, warm_items=items),
        expected,
        ("train", "test"),
    )


@given(frames(), st.sampled_from(["leave_last", "random_ratio", "unseen_users"]))
def test_pairs_that_train_has_are_excluded_and_counted(frame, how):
    try:
        plain = recsys.split(frame, how, validation=1)
    except SplitError:
        return
    expected = oracle.seen_pairs(sides_of(plain), list(zip(frame["user"], frame["item"], strict=True)))
    n_seen = expected.count("excluded") - sides_of(plain).count("excluded")
    expected_or_error(lambda: recsys.split(frame, how, validation=1, new_pairs=True), expected, plain.names)
    if all(name in expected for name in plain.names):
        split = recsys.split(frame, how, validation=1, new_pairs=True)
        assert split.reasons.get("user has the item in train", 0) == n_seen
        assert (split.new_pairs()._side == split._side).all()
        assert split.parameters["new_pairs"]


@pytest.mark.parametrize(("short", "sides"), [
    ("exclude", {"excluded": 1}), ("train", {"train": 1}), ("test", {"test": 1}),
])  # fmt: skip
def test_folds_of_last_rows_are_leave_last_of_what_came_before(short, sides):
    rows = [("ann", i, i) for i in range(5)] + [("bob", 0, 7), ("bob", 1, 8)]
    frame = pd.DataFrame(rows, columns=["user", "item", "time"])
    folds = splits.leave_last_folds(frame, 2, short=short)
    assert sides_of(folds[1]) == sides_of(splits.leave_last(frame))
    assert sides_of(folds[0])[:6] == ["train", "train", "train", "test", "excluded", *sides]
    assert folds[0].notes["users_too_short"] == 1
    assert "users_too_short" not in folds[1].notes  # each fold counts its own
    with pytest.raises(SplitError, match="for example 'bob'"):
        splits.leave_last_folds(frame, 2, short="error")[0]


# Options that strategies are called with; those that are not here get none. What must hold of a strategy is
# tested for everything in the registry.
OPTIONS = {
    "per_user_ratio": {"test": 0.3},
    "leave_one_out": {"which": "random"},
    "leave_last": {"on_tie": "by_item"},
    "leave_last_folds": {"on_tie": "by_item", "n": 2, "validation": 1},
    "global_temporal": {"test": 0.3},
    "rolling_windows": {"length": 300},
    "unseen_users": {"test": 0.3, "known": 0.5},
}


def made(data, how, **more):
    """The splits a strategy makes, one or several."""
    result = recsys.split(data, how, **OPTIONS.get(how, {}), **more)
    assert isinstance(result, splits.Folds) == (splits.STRATEGIES[how].makes == "several")
    return list(result) if isinstance(result, splits.Folds) else [result]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    size = 3000
    return pd.DataFrame(
        {
            "user_id": rng.integers(0, 150, size),
            "note": rng.choice(["a", "b", "c"], size),
            "item_id": np.array([f"i{n:03d}" for n in rng.integers(0, 200, size)], dtype=object),
            "rating": rng.integers(1, 6, size).astype(np.int8),
            "timestamp": rng.permutation(size).astype(np.int32),
            "weight": rng.random(size).astype(np.float32),
        },
        index=rng.permutation(size) + 10_000,
    ).drop_duplicates(["user_id", "item_id"])


@pytest.mark.parametrize("how", splits.STRATEGIES)
@pytest.mark.parametrize("tick", [1, 40])
def test_every_strategy_is_its_oracle(table, how, tick):
    """With times of their own, and with many rows of equal time."""
    frame = pd.DataFrame(
        {"user": table["user_id"], "item": table["item_id"], "timestamp": table["timestamp"] // tick}
    )
    users = Ids(np.unique(frame["user"]))
    user_draws = id_keys(users, 0, purpose="users")[users.code_of(frame["user"].to_numpy())]
    rows = [
        SimpleNamespace(user=user, item=item, time=time, draw=draw, user_draw=int(user_draw))
        for user, item, time, draw, user_draw in zip(
            frame["user"], frame["item"], frame["timestamp"], draws(frame), user_draws, strict=True
        )
    ]
    options = OPTIONS.get(how, {}) | ({"length": 300 // tick} if how == "rolling_windows" else {})
    expected = oracle.SIDES[how](rows, **options)
    result = recsys.split(frame, how, **options)
    found = list(result) if isinstance(result, splits.Folds) else [result]
    assert [sides_of(split) for split in found] == expected


@pytest.mark.parametrize("how", splits.STRATEGIES)
@pytest.mark.parametrize("warm", [False, True])
def test_parts_hold_every_row_once_in_order_with_index_and_types(table, how, warm):
    for split in made(table, how, warm_users=warm and how != "unseen_users", warm_items=warm):
        parts = [*split, split.excluded]
        assert sum(map(len, parts)) == len(table) == split.counts["rows"]["input"]
        for name in [*split.names, "excluded"]:
            part = getattr(split, name)
            pd.testing.assert_frame_equal(part, table[split.mask(name)])
            assert part.dtypes.equals(table.dtypes)
            assert len(part) == split.counts["rows"][name]
        assert len(split.reason_of_row) == len(split.excluded) == sum(split.reasons.values())


@pytest.mark.parametrize("how", splits.STRATEGIES)
def test_the_order_of_rows_decides_nothing(table, how):
    shuffled_table = table.sample(frac=1, random_state=2)
    for straight, shuffled in zip(made(table, how, seed=4), made(shuffled_table, how, seed=4), strict=True):
        for name in straight.names:
            assert set(getattr(straight, name).index) == set(getattr(shuffled, name).index)
        assert straight.manifest["parts"].keys() == shuffled.manifest["parts"].keys()
        for name, sums in straight.manifest["parts"].items():
            assert sums["content"] == shuffled.manifest["parts"][name]["content"]


@pytest.mark.parametrize("how", splits.STRATEGIES)
def test_all_kinds_of_tables_split_alike(table, how):
    for kind in (pl.from_pandas(table), pa.Table.from_pandas(table, preserve_index=False)):
        for plain, split in zip(made(table, how), made(kind, how), strict=True):
            assert type(split.train) is type(kind)
            np.testing.assert_array_equal(split._side, plain._side)
            assert split.train.schema == kind.schema
            assert split.manifest == plain.manifest


@pytest.mark.parametrize("how", splits.STRATEGIES)
def test_a_manifest_makes_every_split_again(table, how):
    for split in made(table, how, seed=3):
        assert (splits.rerun(split.manifest, table)._side == split._side).all()


@pytest.fixture
def newest_rows():
    """A strategy that another package might add, for as long as a test runs."""

    @splits.strategy("newest_rows", makes="one", help="the newest rows of all")
    def newest_rows(data, n_rows, share=0, **options):
        return splits.global_temporal(data, n_rows, share, **options)

    yield newest_rows
    del splits.STRATEGIES["newest_rows"]


def test_a_new_strategy_is_found_everywhere(newest_rows, table, tmp_path, monkeypatch, command):
    """By `split`, by the command with its help and options, and by protocol files."""
    assert len(recsys.split(table, "newest_rows", 7).test) == 7
    assert recsys.splits.newest_rows is newest_rows
    assert not hasattr(recsys.splits, "oldest_rows")
    with pytest.raises(UnknownNameError, match="newest_rows"):
        recsys.split(table, "newest_row")
    monkeypatch.chdir(tmp_path)
    table.to_csv("events.csv", index=False)
    shown = command("split", "--help").output
    assert "newest_rows        the newest rows of all" in shown
    assert "--n-rows VALUE" in shown
    done = command("split", "events.csv", "--how", "newest_rows", "--n-rows", "7", "-o", "parts")
    assert done.exit_code == 0, done.output
    assert len(pd.read_csv("parts/test.csv")) == 7
    assert "needs --n-rows" in command("split", "events.csv", "--how", "newest_rows", "-o", "more").stderr
    done = command("split", "events.csv", "--how", "k_fold", "--n-rows", "7", "-o", "x")
    assert "means nothing" in done.stderr
    protocol = """
        [data]
        interactions = "events.csv"
        [split]
        how = "newest_rows"
        n_rows = 9
        [metrics]
        names = ["hit@3"]
        [models.popular]
        baseline = "popularity"
        """
    Path("p.toml").write_text(protocol)
    assert run_protocol("p.toml").evaluations["popular"].counts["cases"] <= 9
    Path("p.toml").write_text(protocol.replace("n_rows", "n_cows"))
    with pytest.raises(UnknownNameError, match="option of newest_rows"):
        run_protocol("p.toml")


def test_without_an_oracle_a_strategy_fails(newest_rows, table):
    """The walk over the registry ends in an error for a strategy that nobody checks."""
    assert set(splits.STRATEGIES) - set(oracle.SIDES) == {"newest_rows"}
    with pytest.raises(KeyError, match="newest_rows"):
        test_every_strategy_is_its_oracle(table, "newest_rows", 1)


def test_every_strategy_has_its_row_in_the_documentation():
    page = (Path(__file__).parents[2] / "docs" / "protocols.md").read_text(encoding="utf-8")
    for name, strategy in splits.STRATEGIES.items():
        assert page.count(f"\n| `{name}(data") == 1, name
        assert strategy.function is getattr(splits, name)


def test_split_is_typed_as_the_strategies_are():
    """For a name with an overload an editor offers that strategy's parameters, and knows what comes back."""
    offered = {}
    for typed in get_overloads(splits.split):
        hints = get_type_hints(typed)
        parameters = list(inspect.signature(typed).parameters.values())[2:]
        for name in get_args(hints["how"]):
            offered[name] = [(p.name, p.kind, hints[p.name]) for p in parameters], hints["return"]
    assert set(offered) <= set(splits.STRATEGIES)
    for name, overload in offered.items():
        strategy = splits.STRATEGIES[name]
        hints = get_type_hints(strategy.function)
        _, *parameters = inspect.signature(strategy.function).parameters.values()
        assert overload == ([(p.name, p.kind, hints[p.name]) for p in parameters], hints["return"]), name
        assert hints["return"] is (splits.Folds if strategy.makes == "several" else splits.Split)


def test_another_seed_draws_other_rows_and_the_same_seed_the_same(table):
    first, again, other = (splits.random_ratio(table, seed=s) for s in (1, 1, 2))
    assert (first._side == again._side).all()
    assert (first._side != other._side).any()


def test_a_draw_does_not_depend_on_other_users():
    """Dropping one user leaves the held-out row of every other as it was."""
    frame = pd.DataFrame({"user": np.repeat(np.arange(20), 8), "item": np.tile(np.arange(8), 20)})
    whole = splits.leave_one_out(frame, "random").test
    fewer = splits.leave_one_out(frame[frame["user"] != 7], "random").test
    pd.testing.assert_frame_equal(whole[whole["user"] != 7], fewer)


def test_drawn_shares_are_uniform():
    """Each of a user's rows is held out as often as any other: a chi-square test over 5,000 users."""
    frame = pd.DataFrame({"user": np.repeat(np.arange(5000), 20), "item": np.tile(np.arange(20), 5000)})
    for split in (splits.per_user_ratio(frame, 0.25), splits.random_ratio(frame, 0.25)):
        counts = np.bincount(split.test["item"], minlength=20)
        assert counts.sum() == 5000 * 5
        statistic = float((((counts - 1250) ** 2) / (5000 * 0.25 * 0.75)).sum())
        assert statistic < 19 + 5 * math.sqrt(38)


@given(
    st.integers(2, 5000),
    st.sampled_from([0.01, 0.1, 0.15, 0.2, 0.29, 0.57, 1 / 3]),
    st.sampled_from(["down", "nearest", "up"]),
)
def test_shares_are_rounded_as_asked_and_exactly(size, test, rounding):
    wanted = oracle.share(size, Fraction(1, 3) if test == 1 / 3 else test, rounding)
    if wanted < size:
        split = splits.global_temporal(np.arange(size)[:, None], test, columns={"time": 0}, rounding=rounding)
        assert len(split.test) == wanted


def test_text_and_number_ids_are_both_drawn(table):
    text = table.assign(user_id=table["user_id"].astype(str))
    assert abs(len(splits.random_ratio(text).test) - len(table) // 5) <= 1


def test_unpacking(table):
    train, test = splits.leave_last(table)
    assert len(train) + len(test) <= len(table)
    train, validation, test = splits.per_user_temporal(table, 0.2, 0.2)
    assert min(map(len, (train, validation, test))) > 0


def test_containers_come_back_as_they_came(table):
    matrix = sp.csr_matrix((np.arange(1, 8), ([0, 0, 0, 1, 1, 2, 2], [0, 1, 4, 2, 3, 0, 4])), shape=(4, 5))
    train, test = splits.per_user_ratio(matrix, 1)
    assert isinstance(train, sp.csr_matrix)
    assert train.shape == test.shape == matrix.shape
    assert (train + test != matrix).nnz == 0
    assert np.diff(test.indptr).tolist() == [1, 1, 1, 0]
    ratings = {"ann": {"a": 5, "b": 3}, "bob": {"a": 1, "c": 2, "d": 4}}
    train, test = splits.per_user_ratio(ratings, 1)
    assert {u: {**train[u], **test[u]} for u in ratings} == ratings
    interactions = recsys.read_interactions(table)
    split = splits.leave_last(interactions)
    assert isinstance(split.train, recsys.Interactions)
    assert len(split.train.codes) + len(split.test.codes) + split.counts["rows"]["excluded"] == len(
        interactions.codes
    )
    array = np.array([[1, 10, 5], [1, 11, 6], [2, 10, 7], [2, 12, 9]])
    train, test = splits.global_temporal(array, test=1, columns={"time": 2})
    assert test.tolist() == [[2, 12, 9]]
    with pytest.raises(recsys.errors.ColumnError, match="the place of each column"):
        splits.random_ratio(array)


def test_a_split_needs_the_name_of_a_strategy(table):
    drawn = recsys.split(table, "random_ratio", seed=3)
    assert (drawn._side == splits.random_ratio(table, seed=3)._side).all()
    with pytest.raises(TypeError, match="how"):
        recsys.split(table, seed=3)


def test_sets_have_no_last(table):
    with pytest.raises(recsys.errors.ColumnError, match="time"):
        splits.leave_last({"ann": {"a", "b"}})


def test_unknown_words_are_refused_with_a_suggestion(table):
    with pytest.raises(UnknownNameError, match="leave_last"):
        recsys.split(table, "leave_lst")
    with pytest.raises(UnknownNameError, match="on_tie"):
        splits.leave_last(table, ontie="train")
    with pytest.raises(UnknownNameError, match="together"):
        splits.leave_last(table, on_tie="togeter")


def test_folds_are_made_when_asked_for_and_not_before(table):
    folds = splits.k_fold(table, 4, by="users")
    assert len(folds) == 4
    assert repr(folds[-1]) == repr(folds[3])
    assert [len(f.test) for f in folds[1:3]] == [len(folds[1].test), len(folds[2].test)]
    with pytest.raises(IndexError):
        folds[4]


def test_leave_one_out_matrices_hold_out_one_entry_a_user():
    rng = np.random.default_rng(0)
    dense = rng.integers(0, 3, (30, 12)) * (rng.random((30, 12)) < 0.3)
    folds = splits.leave_one_out_matrices(dense, seed=1)
    assert len(folds) == int(((dense != 0).sum(axis=1) >= 2).sum())
    for at, (train, test) in enumerate(folds):
        assert (train + test).toarray().tolist() == dense.tolist()
        assert test.nnz == 1
        assert test.toarray()[folds.users[at], folds.items[at]] != 0
        assert train.nnz == (dense != 0).sum() - 1
    again = splits.leave_one_out_matrices(sp.coo_array(dense), seed=1)
    assert again.held.tolist() == folds.held.tolist()
    assert splits.leave_one_out_matrices(dense, seed=2).held.tolist() != folds.held.tolist()


def test_entries_stored_twice_are_added_up_with_a_word():
    twice = sp.coo_array(([1.0, 2.0, 4.0], ([0, 0, 0], [1, 1, 2])), shape=(1, 3))
    with pytest.warns(RecsysWarning, match="1 entries of the matrix are stored again"):
        (train, test), *_ = splits.leave_one_out_matrices(twice)
    assert (train + test).toarray().tolist() == [[0.0, 3.0, 4.0]]


def test_two_borders_in_time_and_what_does_not_go_together():
    rows = pd.DataFrame({"user": [1, 1, 2, 2], "time": [1, 2, 3, 4]})
    split = splits.global_temporal(rows, at=4, validation_at=2)
    assert sides_of(split) == ["train", "validation", "validation", "test"]
    # Without a column of items only users are counted, and the other way round.
    assert split.counts["users"] == {"input": 2, "train": 1, "validation": 2, "test": 1}
    assert "items" not in split.counts
    assert "users" not in splits.global_temporal(rows.rename(columns={"user": "item"})).counts
    for options, words in (
        ({"at": 4, "test": 0.5}, "a border comes from at= or from test=, not from both"),
        ({"at": 4, "validation": 0.5}, "not from both"),
        ({"validation_at": 2}, "validation_at= needs at="),
        ({"at": 4, "validation_at": 4}, "validation_at=4 is not before at=4"),
    ):
        with pytest.raises(SplitError, match=words):
            splits.global_temporal(rows, **options)
    with pytest.raises(SplitError, match=r"there is no part 'tset'\. Parts are train, test, excluded"):
        splits.global_temporal(rows).mask("tset")


def test_dicts_of_single_items_and_of_arrays_come_back_as_they_came():
    users = {1: np.array([3, 4]), 2: np.array([3, 5, 6])}
    split = splits.leave_last(users)
    assert {user: part.tolist() for user, part in split.train.items()} == {1: [3], 2: [3, 5]}
    assert {user: (part.dtype, part.tolist()) for user, part in split.test.items()} == {
        1: (np.dtype(np.int64), [4]),
        2: (np.dtype(np.int64), [6]),
    }
    for single in ({1: "ab", 2: "b", 3: "c"}, {1: 5, 2: 6, 3: 7}):
        train, test = splits.random_ratio(single, 1)
        assert len(test) == 1
        assert train | test == single


def test_folds_of_matrices_can_be_sliced_and_must_be_of_a_matrix():
    folds = splits.leave_one_out_matrices(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]))
    (train, test), *more = folds[1:]
    assert (train.nnz, test.nnz, len(more)) == (5, 1, 1)
    assert test.toarray().sum(axis=1).tolist() == [0, 1, 0]
    assert (train + test).toarray().tolist() == [[1, 1, 0], [0, 1, 1], [1, 0, 1]]
    with pytest.raises(InputError, match="the matrix came as list"):
        splits.leave_one_out_matrices([1, 2])


def test_a_parameter_of_another_way_means_nothing_here_and_a_missing_one_is_named(table):
    with pytest.raises(SplitError, match=r"n_folds= means nothing to how='leave_last'\. It takes n=, valid"):
        recsys.split(table, "leave_last", n_folds=3)
    with pytest.raises(SplitError, match=r"how='rolling_windows' needs length=\."):
        recsys.split(table, "rolling_windows")
