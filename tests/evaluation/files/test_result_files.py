"""Result files: an evaluation is read back whole; changed, truncated or invented files are refused."""

from __future__ import annotations

import base64
import json
import zlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import recsys
from recsys.errors import FileError, MissingFileError
from recsys.evaluation.files.result_files import fingerprint, pack, unpack
from recsys.records.arrays import Ids

LISTS = {"ann": ["a", "b", "c"], "bob": ["b", "d"], "eve": []}
TRUTH = {"ann": {"a": 1, "c": 3}, "bob": {"d": 2}, "eve": {"a": 1}, "zoe": {"b": 1}}


@pytest.fixture
def result():
    return recsys.evaluate(
        LISTS, TRUTH, ["ndcg@2", "precision(average=pooled)@2", "f1@2", "mrr"], by=lambda user: user < "c",
        conventions={"gain": "exp2", "no_truth": "zero"},
    )  # fmt: skip


def test_everything_comes_back(result, tmp_path):
    result.save(tmp_path / "als.json", commit="1f3a")
    back = recsys.load(tmp_path / "als.json")
    assert back == result
    assert back.conventions == result.conventions
    assert (back.by, back.by_sizes, dict(back.counts)) == (result.by, result.by_sizes, dict(result.counts))
    assert str(back) == str(result)
    assert (back.name, back.run["commit"]) == ("als", "1f3a")
    assert json.loads(back.to_json())["sha256"] == json.loads(result.to_json())["sha256"]


def test_ids_of_text_from_tables_come_back(tmp_path):
    """The kernel may keep them; a file holds them as names."""
    n = 40_000
    users, items = [f"user {row // 10}" for row in range(n)], [f"item {row % 37}" for row in range(n)]
    lists = pd.DataFrame({"user": users, "item": items, "score": np.arange(n, 0.0, -1.0)})
    truth = pd.DataFrame({"user": users[::7], "item": items[::7]})
    catalogued = recsys.evaluate(lists, truth, ["ndcg@5", "coverage@5", "gini@5"])
    assert isinstance(catalogued.per_case.cases, Ids)
    catalogued.save(tmp_path / "text.json")
    back = recsys.load(tmp_path / "text.json")
    assert back == catalogued
    assert back.per_user.equals(catalogued.per_user)


@pytest.mark.parametrize("preset", ["default", "recbole", "trec_eval", "rectools", "replay"])
def test_conventions_of_every_kind_come_back(tmp_path, preset):
    result = recsys.evaluate(LISTS, TRUTH, ["ndcg@2", "map@2"], conventions=preset)
    result.save(tmp_path / "r.json")
    assert recsys.load(tmp_path / "r.json").conventions == result.conventions


def test_loaded_results_merge_and_compare(result, tmp_path):
    result.save(tmp_path / "r.json")
    back = recsys.load(tmp_path / "r.json")
    other = recsys.evaluate({"new": ["a"]}, {"new": {"a": 1}}, list(result), conventions=result.conventions)
    assert back.merge(other) == result.merge(other)
    with pytest.raises(recsys.errors.RecsysError, match="read from a file"):
        back.under("trec_eval")


def test_saving_again_under_another_name_leaves_the_result_as_it_was(result, tmp_path):
    result.save(tmp_path / "first.json", commit="1f3a")
    back = recsys.load(tmp_path / "first.json")
    back.save(tmp_path / "second.json", commit="77b0")
    assert (back.run["name"], back.run["commit"]) == ("first", "1f3a")
    again = recsys.load(tmp_path / "second.json")
    assert (again.name, again.run["commit"], again == back) == ("second", "77b0", True)


def changed(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(FileError) as caught:
        recsys.load(path)
    return str(caught.value)


def test_what_was_changed_is_refused(result, tmp_path):
    path = tmp_path / "r.json"

    def fresh(change):
        result.save(path)
        return changed(path, change)

    def column(document):
        rows = dict(document["cases"]["map"])["partial"]["fields"]["per_case"]["fields"]
        return dict(rows["columns"]["map"])["ndcg@2"]

    def other_values(document):
        held = column(document)
        raw = np.full(4, 0.5).tobytes()
        held["zlib"] = base64.b64encode(zlib.compress(raw)).decode()

    def consistent_lie(document):
        import hashlib

        other_values(document)
        column(document)["sha256"] = hashlib.sha256(np.full(4, 0.5).tobytes()).hexdigest()
        document["cases_sha256"] = fingerprint(document["cases"])

    def another_user(document):
        rows = dict(document["cases"]["map"])["partial"]["fields"]["per_case"]["fields"]
        rows["ids"]["names"][0] = "zed"

    assert "checksum" in fresh(other_values)
    assert "do not give the result" in fresh(consistent_lie)
    assert "do not give the result" in fresh(lambda d: d["result"]["metrics"][0].update(value=0.9))
    assert "checksum" in fresh(another_user)
    assert "not a result" in fresh(lambda d: d.pop("cases"))
    assert "not a result" in fresh(lambda d: d.update(run=5))
    for nonsense in ({"tuple": 5}, {"names": 5}, {"map": [[{"map": []}, 1]]}, {"type": []}):
        assert "not a result" in fresh(lambda d, held=nonsense: d.update(cases=held))
    assert "unknown here" in fresh(lambda d: dict(d["cases"]["map"])["partial"].update(type="Popen"))


def test_a_bomb_is_not_unpacked():
    bomb = pack(np.zeros(10)) | {"zlib": base64.b64encode(zlib.compress(bytes(50_000_000))).decode()}
    with pytest.raises(FileError, match="checksum"):
        unpack(bomb)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"result": 1}', "\x00"])
def test_no_result_at_all(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(FileError):
        recsys.load(tmp_path / "x.json")


def test_no_file(tmp_path):
    with pytest.raises(MissingFileError, match=r"there is no file .*x\.json"):
        recsys.load(tmp_path / "x.json")


@given(
    arrays.arrays(
        st.sampled_from([np.float64, np.int64, np.int32, np.bool_]),
        arrays.array_shapes(min_side=0, max_dims=2),
    )
)
def test_arrays_come_back_bit_for_bit(array):
    back = unpack(json.loads(json.dumps(pack({"x": (array, None, float("inf"), "é")}))))["x"]
    assert back[1:] == (None, float("inf"), "é")
    assert (back[0].dtype, back[0].shape, back[0].tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_what_has_no_form_is_refused():
    with pytest.raises(FileError, match="cannot be kept"):
        pack({1, 2})
    endless = {"dtype": "<f8", "shape": [2**62, 2**62], "zlib": "", "sha256": ""}
    for wrong in ({"a": 1}, [1], {"dtype": "|O", "shape": [1]}, {"float": "1e5"}, {"map": [1]}, endless):
        with pytest.raises(FileError):
            unpack(wrong)


def test_a_name_that_cannot_be_written_is_refused_and_nothing_is_left(tmp_path):
    result = recsys.evaluate({1: [2]}, {1: {2}}, "mrr")
    with pytest.raises(FileError, match="half of a letter"):
        result.save(tmp_path / "result.json", name="\ud800")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "notes", [{"lists": 3}, {"lists": {"read": [1]}}, {"truth": {"read": 2}}, {"stopped": {"says": 1}}, 7]
)
def test_notes_of_another_shape_are_no_result(tmp_path, notes):
    path = tmp_path / "result.json"
    recsys.evaluate({1: [2]}, {1: {2}}, "mrr").save(path)
    document = json.loads(path.read_text())
    rows = document["cases"]["map"]
    rows[[name for name, _ in rows].index("notes")][1] = pack(notes)
    document["cases_sha256"] = fingerprint(document["cases"])
    path.write_text(json.dumps(document))
    with pytest.raises(FileError, match="is not a result that recsys saved"):
        recsys.load(path)


def test_half_a_letter_in_a_file_has_a_checksum_like_any_other():
    assert fingerprint({"a": "\ud800"}) != fingerprint({"a": "\ud801"})
