"""A manifest makes the same split again, to the byte, and names what is not the same."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recsys
from recsys import splits
from recsys.errors import ColumnError, FileError, ManifestError, MissingFileError, RecsysError, SplitError
from recsys.inputs.containers import read_interactions
from recsys.inputs.files.reader import read_table
from recsys.kernels.keyed_random import digest
from recsys.splits.manifest import row_keys
from recsys.splits.split_table import as_interaction_table

CASES = [
    ("random_ratio", {"test": 0.3, "validation": 0.1, "seed": 9}),
    ("per_user_ratio", {}),
    ("leave_one_out", {"which": "random", "seed": 2}),
    ("leave_last", {"n": 2, "on_tie": "random", "short": "train"}),
    ("per_user_temporal", {"min_user": 3, "min_item": 2}),
    ("global_temporal", {"at": "2026-01-20", "warm_users": True}),
    ("global_temporal", {"test": 0.25, "scale": (1, 5)}),
    ("unseen_users", {"test": 5, "validation": 3, "by": "time"}),
    ("k_fold", {"n_folds": 3}),
    ("rolling_windows", {"length": "3d", "n_windows": 2, "train": dt.timedelta(days=10)}),
]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "user": rng.integers(0, 30, 500),
            "item": rng.choice(["a", "b", "c", "d", "é", "f"], 500),
            "time": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 30 * 86400, 500), unit="s"),
            "rating": rng.integers(1, 6, 500),
        }
    )


@pytest.mark.parametrize(("how", "parameters"), CASES)
def test_a_manifest_makes_the_same_split_again(table, how, parameters, tmp_path):
    split = recsys.split(table, how, **parameters)
    split = split[1] if isinstance(split, splits.Folds) else split
    path = tmp_path / "manifest.json"
    path.write_text(splits.to_json(split.manifest))
    again = splits.rerun(path, table, ordered=True)
    for name in [*split.names, "excluded"]:
        assert getattr(split, name).to_csv() == getattr(again, name).to_csv()
    assert splits.to_json(again.manifest) == path.read_text()
    shuffled = table.sample(frac=1, random_state=1)
    if parameters.get("on_tie") != "row_order":
        assert set(splits.rerun(path, shuffled).test.index) == set(split.test.index)
    with pytest.raises(ManifestError, match="another order") as caught:
        splits.rerun(path, shuffled, ordered=True)
    assert caught.value.differs == ["order of the data"]


def test_what_differs_is_named(table):
    manifest = splits.leave_last(table).manifest
    changed = table.assign(rating=table["rating"].where(table.index != 3, 1 + table["rating"] % 5))
    with pytest.raises(ManifestError, match="the data is not what the manifest describes") as caught:
        splits.rerun(manifest, changed)
    assert caught.value.differs == ["the data"]
    for other in (table.iloc[1:], table.drop(columns="rating"), table.rename(columns={"rating": "stars"})):
        with pytest.raises(ManifestError):
            splits.rerun(manifest, other)
    forged = json.loads(json.dumps(manifest))
    forged["parts"]["test"]["content"] = "0" * 32
    with pytest.raises(ManifestError, match="the part test") as caught:
        splits.rerun(forged, table)
    assert caught.value.differs == ["the part test"]


def test_a_file_that_is_no_manifest(tmp_path, table):
    path = tmp_path / "m.json"
    for content, error in (("{", FileError), ("[]", RecsysError), ('{"format": "x"}', ManifestError)):
        path.write_text(content)
        with pytest.raises(error):
            splits.rerun(path, table)
    with pytest.raises(MissingFileError, match="there is no file"):
        splits.rerun(tmp_path / "none.json", table)
    path.write_text("[" * 100_000)
    with pytest.raises(FileError, match="is not JSON"):
        splits.rerun(path, table)


@pytest.mark.parametrize("name", ["parameters", "input", "parts"])
@pytest.mark.parametrize("value", [None, [], "text", 3])
def test_a_manifest_whose_tables_are_none_is_no_manifest(table, name, value):
    stored = splits.split(table, "leave_last").manifest
    with pytest.raises(ManifestError, match="not a manifest"):
        splits.rerun({**stored, name: value}, table)
    with pytest.raises(ManifestError, match="not a manifest"):
        splits.rerun({**stored, "parts": {**stored["parts"], "test": value}}, table)


@pytest.mark.parametrize("fold", [-1, 2, True, "1", 0.0])
def test_a_fold_that_does_not_exist_is_named(table, fold):
    stored = splits.split(table, "k_fold", n_folds=2)[0].manifest
    with pytest.raises(ManifestError, match="there is no fold"):
        splits.rerun({**stored, "parameters": {**stored["parameters"], "fold": fold}}, table)


def test_the_manifest_says_what_a_reader_needs(table):
    split = splits.leave_last(table, 1, 1, seed=7)
    manifest = split.manifest
    assert manifest["seed"] == 7
    assert manifest["parameters"] == {"n": 1, "validation": 1, "seed": 7}
    assert manifest["counts"]["rows"]["input"] == 500
    assert set(manifest["parts"]) >= {"train", "validation", "test"}
    assert manifest["columns"] == ["user", "item", "time", "rating"]
    json.loads(splits.to_json(manifest))


def test_values_count_not_types(table):
    plain = splits.leave_last(table).manifest
    for other in (
        table.astype({"user": np.int32, "rating": np.int8}),
        table.astype({"rating": np.float32}),
        table.assign(item=table["item"].astype("category")),
        table.assign(time=table["time"].astype("datetime64[ms]")),
        table[["rating", "time", "item", "user"]],
    ):
        assert splits.leave_last(other).manifest["input"] == plain["input"]
    assert splits.leave_last(pl.from_pandas(table)).manifest["input"] == plain["input"]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from("ab"), st.sampled_from([None, 1.5, 2.0])),
        min_size=1,
        max_size=8,
    ),
    st.randoms(use_true_random=False),
)
def test_the_hash_is_that_of_a_collection_of_rows(rows, random):
    def keys(some):
        frame = pl.DataFrame(some, schema=["user", "item", "x"], orient="row")
        return row_keys(as_interaction_table(frame, None))

    shuffled = rows[:]
    random.shuffle(shuffled)
    assert digest(keys(rows)) == digest(keys(shuffled))
    assert digest(keys([*rows, rows[0]])) != digest(keys(rows))
    distinct = {row: int(key) for row, key in zip(rows, keys(rows), strict=True)}
    assert len(set(distinct.values())) == len(distinct)


def test_columns_without_content_are_refused(table):
    strange = table.assign(thing=[object()] * len(table))
    with pytest.raises(RecsysError, match="no content to hash"):
        _ = splits.random_ratio(strange).manifest


def test_a_file_read_as_text_splits_as_the_table_in_memory(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"user": rng.integers(0, 30, 300), "item": rng.integers(0, 40, 300), "time": rng.integers(0, 9, 300),
         "weight": rng.random(300).round(3), "note": rng.choice(["a", "", "b"], 300)}
    )  # fmt: skip
    frame.to_csv(tmp_path / "x.csv", index=False)
    text = read_table(tmp_path / "x.csv", ids="str")[0]
    assert isinstance(text["user"][0], str)
    for how in ("random_ratio", "per_user_ratio", "leave_last"):
        straight, written = recsys.split(frame, how), recsys.split(text, how)
        assert straight.test.index.tolist() == written.test.index.tolist()
        assert straight.manifest == written.manifest
        assert repr(splits.rerun(written.manifest, pd.read_csv(tmp_path / "x.csv"))) == repr(straight)


def test_columns_that_could_be_several_matter_only_where_they_are_needed(table):
    both = table.assign(timestamp=1, label=0)
    assert len(splits.random_ratio(both).test) >= 100
    with pytest.raises(ColumnError, match="could all be the time"):
        splits.leave_last(both.rename(columns={"time": "date"}))
    assert len(splits.leave_last(both, columns={"time": "time"}).train) > 400
    with pytest.raises(ColumnError, match="no column 'nope'"):
        splits.random_ratio(both, columns={"grade": "nope"})
    with pytest.raises(ColumnError, match="names the role 'tme'"):
        splits.random_ratio(both, columns={"tme": "time"})


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_parts_are_saved_with_their_manifest(tmp_path, table, kind):
    data = table if kind is pd.DataFrame else pl.from_pandas(table)
    split = splits.leave_last(data, min_user=15)
    manifest = splits.save(split, tmp_path / "out")[0]
    for name in ("train", "test"):
        stored = pd.read_parquet(tmp_path / "out" / f"{name}.parquet")
        assert len(stored) == manifest["counts"]["rows"][name]
    excluded = pd.read_parquet(tmp_path / "out" / "excluded.parquet")
    assert set(excluded["excluded_because"]) == set(split.reasons)
    assert repr(splits.rerun(tmp_path / "out" / "manifest.json", data, ordered=True)) == repr(split)
    with pytest.raises(FileError, match="already exists"):
        splits.save(split, tmp_path / "out")
    splits.save(splits.k_fold(data, 2), tmp_path / "folds", ending=".csv")
    assert sorted(p.name for p in (tmp_path / "folds" / "fold-2").iterdir()) == [
        "manifest.json",
        "test.csv",
        "train.csv",
    ]


def test_nothing_is_left_of_a_folder_that_cannot_be_written(tmp_path, table):
    with pytest.raises(RecsysError):
        splits.save(splits.leave_last(table), tmp_path / "out", ending=".xlsx")
    with pytest.raises(FileError, match="not a table"):
        splits.save(splits.leave_last({"ann": ["a", "b"]}), tmp_path / "out")
    with pytest.raises(FileError, match="no folder"):
        splits.save(splits.leave_last(table), tmp_path / "no" / "out")
    with pytest.raises(FileError, match="not a table of 500 rows"):
        splits.save(splits.leave_last(table), tmp_path / "out", rows=table.iloc[1:])
    assert list(tmp_path.iterdir()) == []


def test_a_manifest_that_was_changed_is_told_what_does_not_fit(table):
    one, several = splits.leave_last(table).manifest, splits.k_fold(table, 2)[0].manifest
    without = {name: value for name, value in several["parameters"].items() if name != "fold"}
    with pytest.raises(SplitError, match="k_fold gives several splits"):
        splits.rerun({**several, "parameters": without}, table)
    with pytest.raises(SplitError, match="leave_last gives one split"):
        splits.rerun({**one, "parameters": {**one["parameters"], "fold": 0}}, table)
    with pytest.raises(ManifestError, match="the part validation is not made any more") as caught:
        splits.rerun({**one, "parts": {**one["parts"], "validation": one["parts"]["test"]}}, table)
    assert caught.value.differs == ["validation"]
    with pytest.raises(ManifestError, match=r"there is no fold 2 of 2\.") as caught:
        splits.rerun({**several, "parameters": {**several["parameters"], "fold": 2}}, table)
    assert caught.value.differs == ["fold"]


def test_columns_that_are_no_role_are_hashed_by_value_too(table):
    def of(frame):
        return splits.random_ratio(frame).manifest["input"]

    rows = table.drop(columns="time").head(4)
    days = [dt.date(2026, 1, n) for n in (1, 2, 3, 4)]
    moments = of(rows.assign(day=pd.to_datetime(pd.Series(days, index=rows.index))))
    assert of(pl.from_pandas(rows).with_columns(day=pl.Series(days))) == moments
    assert of(rows.assign(day=pd.Categorical(list("abab")))) == of(rows.assign(day=list("abab")))
    pairs = [[1, 2], [1, 3], [1, 2], [4]]
    arrays = pd.Series([np.array(pair) for pair in pairs], index=rows.index)
    assert of(rows.assign(day=arrays)) == of(rows.assign(day=pd.Series(pairs, index=rows.index)))
    mixed = pd.Series(["a", np.float64("nan"), np.int64(3), None], index=rows.index, dtype=object)
    assert of(rows.assign(day=mixed)) == of(rows.assign(day=pd.Series(["a", None, 3, ""], index=rows.index)))
    assert len({of(rows.assign(day=value))["content"] for value in (1, 2, "a", None)}) == 4


def test_data_that_is_no_table_is_hashed_by_value():
    entries = np.array([[1, 2, 10], [1, 3, 11], [2, 2, 12], [2, 4, 13]])
    columns = {"user": 0, "item": 1, "time": 2}
    named = pd.DataFrame(entries, columns=list(columns))
    whole = splits.leave_last(named).manifest["input"]
    for kind in (np.int32, object):
        assert splits.leave_last(entries.astype(kind), columns=columns).manifest["input"] == whole
    moments = named.assign(time=pd.to_datetime(named["time"], unit="s"))
    ours = splits.leave_last(read_interactions(moments))
    assert ours.manifest["input"] == splits.leave_last(moments).manifest["input"] != whole
    assert ours.manifest["columns"] == ["user", "item", "time"]


def test_parameters_of_any_type_are_written_as_json():
    rows = pd.DataFrame({"who": [1, 1, 2, 2], "item": [1, 2, 1, 3], "time": [1, 2, 3, 4]})
    made = splits.rolling_windows(rows, np.int64(1), n_windows=1, columns={"user": "who"})[0]
    stored = json.loads(splits.to_json(made.manifest))
    assert stored["parameters"]["columns"] == {"user": "who"}
    assert stored["parameters"]["length"] == 1
    assert repr(splits.rerun(stored, rows)) == repr(made)
