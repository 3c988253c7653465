"""Every format is read as it was written, every fault is an error that names the file and the line."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import pickle
import sys
import time
import zipfile
import zlib
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import recsys
from recsys.cli.app import cli
from recsys.errors import (
    ColumnError,
    FileError,
    FloatIdWarning,
    IdTypeError,
    InputError,
    MissingExtraError,
    RecsysError,
    UnknownNameError,
)
from recsys.inputs import read_interactions, read_lists
from recsys.inputs.files import FORMATS, read_file, write_bytes, write_text
from recsys.inputs.files.formats import Format, add_format
from recsys.inputs.files.reader import read_attributes, read_table, write_table
from recsys.records.read_facts import ReadFacts
from worlds.table_files import FAULTS, LISTS, READABLE


@pytest.fixture
def put(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def lists_of(lists):
    """{case: [items]} of Lists or Interactions."""
    items = lists.items.values[lists.codes].tolist()
    bounds = lists.indptr.tolist()
    return {case: items[bounds[i] : bounds[i + 1]] for i, case in enumerate(lists.cases.values.tolist())}


@pytest.mark.parametrize("name", READABLE)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
def test_each_format_keeps_ids_as_they_are_written(put, name, packed):
    content = READABLE[name].encode()
    path = put(name + ".gz" * packed, gzip.compress(content) if packed else content)
    assert lists_of(read_file(path)) == LISTS


@pytest.mark.parametrize("name", [n for n in READABLE if n.endswith((".csv", ".tsv", ".inter", ".run"))])
def test_without_arrow_nothing_changes(put, name, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert lists_of(read_file(put(name, READABLE[name]))) == LISTS


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_parquet(tmp_path, library, monkeypatch):
    path = tmp_path / "lists.parquet"
    frame = pd.DataFrame(
        {"userId": [7, 7, 8], "itemId": ["a", "b", "a"], "score": [0.1, 0.2, 0.3], "other": 1}
    )
    frame.to_parquet(path)
    if library == "polars":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert lists_of(read_file(path)) == {"7": ["b", "a"], "8": ["a"]}
    assert lists_of(read_file(path, ids="auto")) == {7: ["b", "a"], 8: ["a"]}
    with pytest.raises(IdTypeError, match="'a' is not a whole number"):
        read_file(path, ids="int")


@pytest.mark.parametrize("name", ["lists.parquet", "lists.arrow"])
def test_typed_ids_as_numbers(tmp_path, name):
    path = tmp_path / name
    write_table(path, pd.DataFrame({"user": ["12", "3"], "item": [5, 6]}))
    assert lists_of(read_file(path, ids="int")) == {3: [6], 12: [5]}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
@pytest.mark.parametrize("compression", ["uncompressed", "lz4"])
def test_arrow_files(tmp_path, packed, compression):
    feather = pytest.importorskip("pyarrow.feather")
    frame = pd.DataFrame(
        {"userId": [7, 7, 8], "itemId": ["a", "b", "a"], "score": [0.1, 0.2, 0.3], "other": [[1], [2], [3]]}
    )
    path = tmp_path / "lists.feather"
    feather.write_feather(frame, str(path), compression=compression)
    if packed:
        path = tmp_path / "packed"  # recognised by its first bytes
        path.write_bytes(gzip.compress((tmp_path / "lists.feather").read_bytes()))
    lists = read_file(path)
    assert lists_of(lists) == {"7": ["b", "a"], "8": ["a"]}
    assert lists.facts.format == "arrow"
    assert lists_of(read_file(path, ids="auto")) == {7: ["b", "a"], 8: ["a"]}
    table, roles = read_table(path, ids="auto")
    assert table["userId"].tolist() == [7, 7, 8]
    assert list(table) == list(frame)
    assert (roles["user"], roles["item"]) == ("userId", "itemId")
    with pytest.raises(ColumnError, match="nobody"):
        read_file(path, columns={"user": "nobody"})


def test_damaged_arrow_files_are_refused(tmp_path):
    path = tmp_path / "lists.arrow"
    write_table(path, pd.DataFrame({"user": ["a", "b"] * 50, "item": range(100)}))
    whole = path.read_bytes()
    for size in (7, 100, len(whole) // 2, len(whole) - 3):
        path.write_bytes(whole[:size])
        with pytest.raises(FileError, match="damaged or truncated Arrow file"):
            read_file(path)


def test_arrow_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    path = tmp_path / "lists.arrow"
    write_table(path, pd.DataFrame({"user": [1], "item": [2]}))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for read in (read_file, read_table):
        with pytest.raises(MissingExtraError, match=r"recsys-evaluation\[arrow\]"):
            read(path)


NAMES_THERE = {
    ".inter": {"user": "user_id:token", "item": "item_id:token", "rating": "rating:float"},
    ".qrels": {"rating": "grade"},
}


@pytest.mark.parametrize("suffix", [f.suffixes[0] for f in FORMATS.values() if f.write is not None])
def test_tables_come_back_as_they_were_written(tmp_path, suffix):
    ratings = [1.0, 2.0] if suffix == ".qrels" else [1.0, 2.5]
    frame = pd.DataFrame({"user": [7, 8], "item": ["a", "b"], "rating": ratings})
    write_table(tmp_path / f"t{suffix}", frame)
    frame = frame.rename(columns=NAMES_THERE.get(suffix, {}))
    pd.testing.assert_frame_equal(read_table(tmp_path / f"t{suffix}")[0], frame, check_dtype=False)
    with pytest.raises(UnknownNameError, match="ending"):
        write_table(tmp_path / "t.xls", frame)


IDS = st.text("aZ09_-.é/", min_size=1, max_size=4)
GRADES = st.dictionaries(IDS, st.dictionaries(IDS, st.integers(0, 4), min_size=1), min_size=1)
SCORES = st.dictionaries(IDS, st.dictionaries(IDS, st.floats(-9, 9), min_size=1), min_size=1)


@given(grades=GRADES, scores=SCORES)
def test_judgements_and_runs_come_back_from_trec_and_recbole_files(tmp_path_factory, grades, scores):
    folder = tmp_path_factory.mktemp("written")
    truth, lists = (
        read_interactions(grades),
        read_lists({user: [*rows.items()] for user, rows in scores.items()}),
    )
    for name, data, kind in (
        ("t.qrels", truth, "truth"), ("t.inter", truth, "truth"), ("t.run", lists, "lists"),
        ("t.trec", lists, "lists"), ("l.inter", lists, "lists"),
    ):  # fmt: skip
        write_table(folder / name, data)
        again = read_file(folder / name, kind)
        pd.testing.assert_frame_equal(again.to_frame(), data.to_frame(), check_dtype=False, check_exact=True)


def test_what_trec_and_recbole_programs_find_in_their_files(tmp_path):
    truth = pd.DataFrame({"uid": ["b", "a"], "item": [7, 8], "rating": [2, 0]})
    write_table(tmp_path / "t.qrels", truth)
    assert (tmp_path / "t.qrels").read_text() == "b 0 7 2\na 0 8 0\n"
    write_table(tmp_path / "one.qrel", truth.drop(columns="rating"))
    assert (tmp_path / "one.qrel").read_text() == "b 0 7 1\na 0 8 1\n"
    ranked = pd.DataFrame({"user": ["b", "a", "b"], "item": ["x", "y", "z"], "rank": [2, 1, 1]})
    write_table(tmp_path / "r.run", ranked)
    assert (tmp_path / "r.run").read_text() == "b Q0 z 1 2 recsys\nb Q0 x 2 1 recsys\na Q0 y 1 2 recsys\n"
    write_table(tmp_path / "s.run", ranked.assign(score=[0.1, 5.0, 1 / 3]))
    assert (tmp_path / "s.run").read_text().splitlines()[0] == "b Q0 z 1 0.3333333333333333 recsys"
    write_table(tmp_path / "t.inter", truth.assign(when=[1, 2], note=["p", "q r"], clicks=[1, 2]))
    header, first, _ = (tmp_path / "t.inter").read_text().splitlines()
    assert header == "user_id:token\titem_id:token\trating:float\twhen:float\tnote:token\tclicks:float"
    assert first == "b\t7\t2\t1\tp\t1"


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("t.qrels", {"user": ["a b", "c"]}, "'a b' cannot be written .* no blanks"),
        ("t.qrels", {"item": ["", "c"]}, "'' cannot be written .* empty"),
        ("t.qrels", {"user": ["#a", "c"]}, "begins with #"),
        ("t.qrels", {"item": [None, "c"]}, "'' cannot be written .* no empty ids"),
        ("t.qrels", {"grade": [0.5, 1]}, "grade 0.5 of item 'x' .* whole numbers"),
        ("t.qrels", {"time": [1, 2]}, "column 'time' has no place"),
        ("t.run", {}, "'grade' has no place"),
        ("t.run", {"grade": None}, "neither scores nor ranks"),
        ("t.run", {"grade": None, "score": [1.0, np.nan]}, "score nan cannot be written"),
        ("t.run", {"grade": None, "user": ["a", "a"], "rank": [1, 2], "score": [1, 2]}, "'a' disagree"),
        ("t.run", {"grade": None, "score": [1, 2], "item": ["a\u00a0b", "c"]}, "no blanks"),
        ("t.inter", {"user": ["", "c"]}, "'' cannot be written .* no empty ids"),
        ("t.inter", {"item": ["a\tb", "c"]}, "no tabs or line breaks"),
    ],
)  # fmt: skip
def test_what_a_format_cannot_hold_is_refused_and_nothing_is_written(tmp_path, name, change, words):
    rows = {"user": ["u", "v"], "item": ["x", "y"], "grade": [1, 2], **change}
    table = pd.DataFrame({column: cells for column, cells in rows.items() if cells is not None})
    with pytest.raises(FileError, match=words):
        write_table(tmp_path / name, table)
    assert not (tmp_path / name).exists()


def test_a_format_of_another_package_is_found_everywhere(put, tmp_path, monkeypatch):
    def read(source, options):
        pairs = [line.split("->") for line in source.data.decode().splitlines()[1:]]
        return options.finish({user: items.split() for user, items in pairs}, options.columns, source.name)

    entry = Format(
        "arrows",
        read=read,
        read_whole=lambda source, _: (pd.DataFrame({"bytes": [len(source.data)]}), {}),
        write=lambda frame, name: f"{name} {len(frame)}".encode(),
        suffixes=(".arr",),
        magic=b"Obj\x01",  # refused as Avro as long as nobody reads it
        recognises=lambda head: b"->" in head,
        help="arrows",
    )
    content = b"Obj\x01\n007->NA b\nnull->None\n"
    with pytest.raises(FileError, match="Avro"):
        read_file(put("lists", content))

    class EntryPoint:
        name, dist = "arrows", None

        @staticmethod
        def load():
            add_format(entry)

    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group: [EntryPoint] * (group == FORMATS.group)
    )
    monkeypatch.setattr(FORMATS, "_plugins_loaded", False)
    try:
        assert lists_of(read_file(put("lists.arr", b"#\n007->NA b\nnull->None\n"))) == LISTS
        assert lists_of(read_file(put("by-magic.csv", content))) == LISTS
        assert lists_of(read_file(put("by-content", b"#\n007->NA b\nnull->None\n"))) == LISTS
        assert read_table(put("t.arr", b"1->2"))[0]["bytes"].tolist() == [4]
        write_table(tmp_path / "out.arr", pd.DataFrame({"user": [1, 2]}))
        assert (tmp_path / "out.arr").read_text() == "out.arr 2"
        for verb in ("evaluate", "split"):
            assert "arrows" in CliRunner().invoke(cli, [verb, "--help"]).output
    finally:
        FORMATS.pop("arrows", None)


def test_the_documentation_lists_every_format():
    page = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
    for entry in FORMATS.values():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{entry.name}` |"))
        for text in (entry.help, entry.lists, entry.truth):
            assert text in row


def test_parquet_without_a_library_names_the_extra(tmp_path, monkeypatch):
    path = tmp_path / "lists.parquet"
    pd.DataFrame({"user": [1], "item": [2]}).to_parquet(path)
    for name in ("pyarrow", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"recsys-evaluation\[arrow\]"):
        read_file(path)


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(READABLE["comma.csv"].encode())

    monkeypatch.setattr(sys, "stdin", Stdin)
    lists = read_file("-")
    assert lists_of(lists) == LISTS
    assert lists.facts.file == "<stdin>"


def test_trec_orders_by_score_and_keeps_the_ties_for_the_conventions(put):
    run = put("a.run", "q Q0 d1 1 0.5 t\nq Q0 d2 2 0.9 t\nq Q0 d3 3 0.5 t\n")
    lists = read_file(run)
    assert lists_of(lists) == {"q": ["d2", "d1", "d3"]}
    assert lists.scores.tolist() == [0.9, 0.5, 0.5]


def test_negative_grades_are_kept_for_the_conventions_and_counted(put):
    truth = read_file(put("a.qrels", "# 2020\nq 0 d1 2\nq 0 d2 -1\nq 0 d3 0\nr 0 d1 -2\n"), "truth")
    assert lists_of(truth) == {"q": ["d1", "d2", "d3"], "r": ["d1"]}
    assert truth.grades.tolist() == [2.0, -1.0, 0.0, -2.0]
    assert (truth.facts.negative_grades, truth.facts.comments) == (2, 1)
    table = read_file(put("a.csv", "user,item,grade\nq,d1,-1\n"), "truth")
    assert table.facts.negative_grades == 1
    with pytest.raises(InputError, match="the grade -1 of item 'd1' for user 'q' is negative"):
        read_interactions(table)


def test_grades_and_times(put):
    truth = read_file(put("t.csv", "user,item,rating,timestamp\nu,b,2,20\nu,a,5,10\n"), "truth")
    assert (truth.grades.tolist(), truth.times.tolist()) == ([5.0, 2.0], [10, 20])
    dated = read_file(put("d.csv", "user,item,date\nu,b,2020-01-02\n"), "truth")
    assert dated.times.tolist() == ["2020-01-02"]


def test_columns_by_name(put):
    path = put("a.csv", "who,what,when\nu,b,1\n")
    assert lists_of(read_file(path, columns={"user": "who", "item": "what"})) == {"u": ["b"]}
    with pytest.raises(ColumnError, match="who, what, when"):
        read_file(path)


def test_cases_within_users(put):
    lists = read_file(put("a.csv", "case,user,item\nc1,u,a\nc2,u,b\n"))
    assert (lists.cases.values.tolist(), lists.clusters.tolist()) == (["c1", "c2"], ["u", "u"])


def test_ids_as_numbers(put):
    path = put("a.csv", "user,item\n10,3\n9,4\n")
    assert lists_of(read_file(path, ids="int")) == {9: [4], 10: [3]}
    assert lists_of(read_file(path, ids="auto")) == {"10": ["3"], "9": ["4"]}
    zeros = put("b.csv", "user,item\n010,3\n9,4\n")
    assert read_table(zeros)[0].to_dict("list") == {"user": ["010", "9"], "item": [3, 4]}
    assert lists_of(read_file(zeros, ids="int")) == {9: [4], 10: [3]}
    floats = put("d.csv", "user,item\n10.0,3\n-9.000,4\n")
    with pytest.warns(FloatIdWarning, match=r"user ids of .*d\.csv: '-9\.000' and others"):
        assert lists_of(read_file(floats, ids="int")) == {-9: [4], 10: [3]}
    for content, words in (
        ("1,3\n01,4\n", "two are the same"),
        ("1,3\n2.5,4\n", "line 3: '2.5' is not a whole number"),
        ("1,3\n2.,4\n", r"line 3: '2\.' is not a whole number"),
        ("1,3\n9007199254740992.0,4\n", r"2\^53 or more"),
        ("x,3\n", "line 2: 'x' is not"),
        ("9999999999999999999,1\n", "64 bits"),
    ):
        with pytest.raises(IdTypeError, match=words):
            read_file(put("c.csv", "user,item\n" + content), ids="int")


def test_a_saved_result_is_no_file_of_lists(tmp_path):
    recsys.evaluate({"u": ["a"]}, {"u": ["a"]}, "mrr").save(tmp_path / "als.json")
    with pytest.raises(FileError, match=r"als\.json is a result that recsys saved"):
        read_file(tmp_path / "als.json")


def test_json_ids(put):
    path = put("a.json", '{"1": [3, 4]}')
    assert lists_of(read_file(path)) == {"1": ["3", "4"]}
    assert lists_of(read_file(path, ids="auto")) == {"1": ["3", "4"]}
    assert lists_of(read_file(path, ids="int")) == {1: [3, 4]}
    assert lists_of(read_file(put("b.json", '{"1.0": ["3.00", "4"]}'), ids="int")) == {1: [3, 4]}


def test_two_files_of_different_formats_match_each_other(put, tmp_path):
    pd.DataFrame({"user": [1, 2], "item": [10, 20]}).to_parquet(tmp_path / "lists.parquet")
    truth = read_file(put("truth.json", '{"1": [10], "2": [30]}'), "truth")
    assert recsys.evaluate(recsys.read_file(tmp_path / "lists.parquet"), truth, "hit@1")["hit@1"] == 0.5


def test_other_encodings(put):
    path = put("a.csv", "user,item\nJosé,b\n".encode("latin-1"))
    with pytest.raises(FileError, match=r"a\.csv, line 2: byte 13 \(0xe9\) is not utf-8.*encoding='latin-1'"):
        read_file(path)
    assert lists_of(read_file(path, encoding="latin-1")) == {"José": ["b"]}
    wide = put("b.csv", "user,item\nu,b\n".encode("utf-16"))
    with pytest.raises(FileError, match="utf-16"):
        read_file(wide)
    assert lists_of(read_file(wide, encoding="utf-16")) == {"u": ["b"]}
    with pytest.raises(FileError, match="is empty"):
        read_file(put("c.csv", "\n".encode("utf-16")), encoding="utf-16")
    with pytest.raises(FileError, match="no encoding"):
        read_file(path, encoding="utf-88")


@pytest.mark.parametrize("arrow", [True, False], ids=["arrow", "csv"])
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_names_its_file_and_line(put, name, arrow, monkeypatch):
    content, words = FAULTS[name]
    if not arrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    kind = "truth" if "qrels" in name else "lists"
    with pytest.raises(InputError, match=words) as caught:
        read_file(put(name, content), kind)
    assert name in str(caught.value)
    assert caught.value.hint


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("a-pickle-was-opened",)


def pickles():
    for protocol in range(6):
        yield f"protocol {protocol}", pickle.dumps({"u": ["a", "b"]}, protocol=protocol)
        yield f"bomb {protocol}", pickle.dumps(Bomb(), protocol=protocol)
    yield "list", pickle.dumps(["a"], protocol=0)
    yield "joblib, zlib", zlib.compress(pickle.dumps(list(range(100))))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("archive/data.pkl", pickle.dumps(Bomb()))
    yield "torch", archive.getvalue()


@pytest.mark.parametrize("what", dict(pickles()))
def test_pickles_are_refused_by_content(put, what, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    content = dict(pickles())[what]
    for name in ("lists.csv", "lists.pt", "lists.json", "lists", "lists.csv.gz"):
        path = put(name, gzip.compress(content) if name.endswith("gz") else content)
        with pytest.raises(FileError, match=r"pickle.*run any code.*to_csv"):
            read_file(path)
    assert not Path("a-pickle-was-opened").exists()


def test_other_binaries_are_named(put):
    array = io.BytesIO()
    np.save(array, np.arange(3))
    packed = io.BytesIO()
    np.savez(packed, np.arange(3))
    for content, words in ((array, "NumPy"), (packed, "NumPy"), (io.BytesIO(b"BZh91AY"), "bzip2")):
        with pytest.raises(FileError, match=words):
            read_file(put("lists.csv", content.getvalue()))


def test_damaged_files(put, tmp_path):
    whole = gzip.compress(b"user,item\nu,a\n" * 100)
    with pytest.raises(FileError, match="truncated gzip"):
        read_file(put("a.csv.gz", whole[:-20]))
    frame = tmp_path / "a.parquet"
    pd.DataFrame({"user": [1], "item": [2]}).to_parquet(frame)
    with pytest.raises(FileError, match="truncated Parquet"):
        read_file(put("b.parquet", frame.read_bytes()[:-30]))


@pytest.mark.parametrize("name", ["nowhere.csv", "nowhere/table.csv", "nowhere*.csv"])
def test_a_missing_file_is_one_for_python_too(name, tmp_path):
    with pytest.raises(FileNotFoundError, match="no file") as caught:
        read_file(tmp_path / name)
    assert isinstance(caught.value, FileError)
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - it was made a line above
    assert (type(again), str(again)) == (type(caught.value), str(caught.value))
    assert "permissions" not in str(again)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (PermissionError(13, "Permission denied"), r"Permission denied\. Check its permissions\."),
        (OSError(5, "Input/output error"), r"Input/output error\. Check the path\."),
        (FileNotFoundError(2, "No such file or directory"), r"there is no file .* Check the path\."),
    ],
)
def test_permissions_are_named_where_they_are_the_reason(reason, words, tmp_path, monkeypatch):
    file = tmp_path / "table.csv"
    file.write_text("user,item\n1,2\n")

    def refuse(*_, **__):
        raise reason

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(FileError, match=words):
        read_file(file)


def test_missing_files(tmp_path, put):
    put("lists.csv", "user,item\nu,a\n")
    with pytest.raises(FileError, match=r"no file .*list\.csv.*Did you mean .*lists\.csv"):
        read_file(tmp_path / "list.csv")
    assert issubclass(FileError, OSError)


def test_unknown_options(put):
    path = put("a.csv", "user,item\nu,a\n")
    for options in ({"format": "xls"}, {"ids": "float"}, {"kind": "list"}):
        with pytest.raises(UnknownNameError):
            read_file(path, **options)


@pytest.mark.parametrize("encoding", ["\udcff", "a\0b", "undefined", "base64", "", "x" * 300])
def test_an_encoding_that_does_not_exist(put, encoding):
    with pytest.raises(FileError, match="there is no encoding"):
        read_file(put("a.csv", "user,item\né,a\n"), encoding=encoding)


def test_a_letter_outside_unicode_by_halves_is_one_letter(put):
    assert lists_of(read_file(put("a.json", '{"u": ["\\ud83d\\ude00"]}'))) == {"u": ["\U0001f600"]}


def test_what_pandas_noted_in_a_file_may_be_damaged(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({"user": [1], "item": [2]}).replace_schema_metadata({"pandas": '{"index_columns": 5}'})
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(FileError, match=r"a\.parquet"):
        read_table(tmp_path / "a.parquet")


def test_a_column_of_words_without_a_dictionary_is_missing(tmp_path):
    import pyarrow as pa

    words = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), pa.array([], pa.string()))
    with pytest.raises(InputError, match="item"):
        recsys.evaluate(pa.table({"user": [1, 2], "item": words}), {1: [2]}, "mrr")


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_rows_without_columns_are_no_table(put, name):
    with pytest.raises(InputError, match=name):
        read_table(put(name, "{}\n" if name == "a.jsonl" else "[{}]"))


def test_a_gzip_bomb_is_refused(put, monkeypatch):
    monkeypatch.setattr("recsys.inputs.files.formats._UNPACKED_BYTES", 1 << 20)
    with pytest.raises(FileError, match="times its size"):
        read_file(put("a.csv.gz", gzip.compress(b"a" * (1 << 24))))


@pytest.mark.parametrize(
    "content",
    ["a" * 3_000_000, "user,item\n" + "x" * 3_000_000 + ",a\n", '"' * 3_000_000, " " * 3_000_000 + "q"],
)
def test_huge_lines_do_not_hang(put, content):
    start = time.process_time()
    for name in ("a.csv", "a.run", "a.json", "a"):
        with contextlib.suppress(RecsysError):
            read_file(put(name, content))
    assert time.process_time() - start < 10


@given(
    st.binary(max_size=60),
    st.sampled_from(["a.csv", "a.run", "a.json", "a.jsonl", "a.inter", "a.parquet", "a"]),
)
def test_any_bytes_give_lists_or_a_typed_error(tmp_path_factory, content, name):
    path = tmp_path_factory.mktemp("any") / name
    path.write_bytes(content)
    _lists_or_typed_error(path, None)


@given(
    st.text(alphabet='user,item\n" \t{}[]:01', max_size=40),
    st.sampled_from(["csv", "trec", "json", "jsonl", "inter"]),
)
def test_any_text_gives_lists_or_a_typed_error(tmp_path_factory, text, form):
    path = tmp_path_factory.mktemp("any") / "a"
    path.write_text("user,item\n" + text if form == "csv" else text)
    _lists_or_typed_error(path, form)


def _lists_or_typed_error(path, form):
    try:
        read = read_file(path, format=form)
    except RecsysError as error:
        outcome = error.hint
    else:
        outcome = len(read.cases)
    assert outcome


def test_writing_replaces_the_whole_file(tmp_path):
    path = tmp_path / "out.txt"
    write_text(path, "one")
    path.chmod(0o600)
    write_text(path, "größer")
    assert path.read_text(encoding="utf-8") == "größer"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "out.bin"
    write_bytes(path, b"old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match=r"No space left.*Nothing was changed"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["out.bin"]


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    def stop(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        write_text(tmp_path / "out.txt", "new")
    assert list(tmp_path.iterdir()) == []


def test_links_and_folders_are_not_written_to(tmp_path):
    (tmp_path / "aim").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "aim")
    with pytest.raises(FileError, match="symbolic link"):
        write_text(tmp_path / "link", "new")
    with pytest.raises(FileError, match="not a regular file"):
        write_text(tmp_path, "new")
    with pytest.raises(FileError, match="no folder"):
        write_text(tmp_path / "none" / "out", "new")
    assert (tmp_path / "aim").read_text() == "old"


def test_notes_say_what_was_read(put):
    lists = read_file(put("a.csv", "user,item\nu, a\nu,b\n"))
    assert json.loads(json.dumps(lists.facts.to_notes())) == {
        "read": {"user_column": "user", "item_column": "item", "unused": [], "rows": "grouped"},
        "padded_item_ids": 1,
        "file": lists.facts.file,
        "format": "csv",
    }


@pytest.mark.parametrize(("users", "arrangement"), [("bbaa", "grouped"), ("baba", "interleaved")])
def test_notes_name_unused_columns_and_how_rows_stand(tmp_path, users, arrangement):
    table = pd.DataFrame({"user": list(users), "item": [1, 2, 1, 2], "title": list("wxyz")})
    numbers = table.assign(user=[ord(user) for user in users])
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "a.parquet")
    table.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    files = [read_file(tmp_path / name) for name in ("a.csv", "a.parquet", "a.jsonl")]
    expected = {"user_column": "user", "item_column": "item", "unused": ("title",), "rows": arrangement}
    for lists in [*files, read_lists(table), read_lists(numbers)]:
        assert lists.facts.to_notes()["read"] == expected
    assert read_lists(table.assign(score=1.0)).facts.arrangement is None
    assert read_interactions(table).facts.arrangement is None
    assert read_lists({1: [2]}).facts == ReadFacts()


def test_the_footnote_says_that_rows_gave_the_order(tmp_path):
    table = pd.DataFrame({"user": [1, 1, 2], "item": [1, 2, 1], "title": list("xyz")})
    result = recsys.evaluate(table, {1: [2], 2: [1]}, ["mrr"])
    assert "lists in the order of their rows" in str(result)
    assert "order of their rows" not in str(recsys.evaluate(table.iloc[[0, 2, 1]], {1: [2], 2: [1]}, ["mrr"]))
    result.save(tmp_path / "result.json")
    assert tuple(recsys.load(tmp_path / "result.json").notes["lists"]["read"]["unused"]) == ("title",)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_tables_that_are_read_again_are_written_exactly(tmp_path, suffix):
    """An apostrophe against formulas would be another id; what people open has it (see the command)."""
    frame = pd.DataFrame(
        {"user": ["=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(A1)", "'=x"], "item": ["-1.5"] * 5}
    )
    write_table(tmp_path / f"a{suffix}", frame)
    table, _ = read_table(tmp_path / f"a{suffix}", ids="str")
    assert table["user"].tolist() == frame["user"].tolist()
    assert table["item"].tolist() == frame["item"].tolist()


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet", "a.arrow", "a.jsonl"])
def test_a_score_of_another_name_is_not_passed_over(tmp_path, name):
    path = tmp_path / name

    def write(**columns):
        table = pd.DataFrame({"user": ["u", "u"], "item": ["a", "b"], **columns})
        if name == "a.jsonl":
            table.to_json(path, orient="records", lines=True)
        else:
            write_table(path, table)

    write(affinity=[0.25, 0.75])
    with pytest.raises(ColumnError, match="'affinity' holds numbers"):
        read_file(path)
    lists = read_file(path, columns={"score": "affinity"})
    assert lists.items.values[lists.codes].tolist() == ["b", "a"]
    for unused in ([1, 2], ["x", "0.5"]):
        write(affinity=unused)
        assert read_file(path).facts.unused == ("affinity",)


def test_attributes_have_ids_of_the_type_asked_for_and_numbers_where_all_are(tmp_path):
    (tmp_path / "items.csv").write_text("sku,title,price\n07,1984,2\n8,,\n")
    read = partial(read_attributes, tmp_path / "items.csv", "item", column="sku")
    frame, ids = read()
    assert (ids, [*frame]) == ("item", ["item", "title", "price"])
    assert frame["item"].tolist() == ["07", "8"]
    assert frame["price"].tolist()[0] == 2.0
    assert read(text=True)[0]["title"].tolist() == ["1984", ""]
    assert read(ids="int")[0]["item"].tolist() == [7, 8]
    (tmp_path / "items.txt").write_text("b\na\n\n")
    assert read_attributes(tmp_path / "items.txt", "item", column="sku")[0].to_dict("list") == {
        "item": ["b", "a"]
    }
    (tmp_path / "names.csv").write_text("name\nann\n")
    with pytest.raises(ColumnError, match="no column was recognised as the user"):
        read_attributes(tmp_path / "names.csv", "user")
