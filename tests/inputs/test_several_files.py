"""A glob or a folder is one table: the rows of its files in the order of their names, or a plain error."""

from __future__ import annotations

import gzip
import json
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recsys
from recsys import Factors
from recsys.errors import FileError, IdTypeError, InputError, UnknownNameError
from recsys.inputs.files import read_file, split_text
from recsys.inputs.files.reader import read_table, write_table
from recsys.inputs.ids import encode_ints, range_limit
from recsys.records.arrays import MAX_IDS, Ids
from recsys.splits.datasets import table as read_dataset

ROWS = pd.DataFrame(
    {
        "user": ["1", "1", "1", "2", "2", "3"],
        "item": ["10", "9", "7", "9", "8", "7"],
        "score": [0.5, 0.9, 0.5, 0.75, 0.25, 0.125],
    }
)
TRUTH = pd.DataFrame({"user": [1, 2, 3], "item": [9, 8, 10]})
RATINGS = pd.DataFrame({"user": ROWS.user, "item": ROWS.item, "score": 1, "time": 900_000_000})
FORMATS = [
    "csv",
    "tsv",
    "inter",
    "csv.gz",
    "parquet",
    "arrow",
    "json",
    "jsonl",
    "users.json",
    "run",
    "ratings",
]


def write(path, rows):
    """The rows in the format of the name's ending."""
    form = path.name.split(".", 1)[1]
    if form == "csv.gz":
        path.write_bytes(gzip.compress(rows.to_csv(index=False).encode()))
    elif form in ("json", "jsonl"):
        path.write_text(rows.to_json(orient="records", lines=form == "jsonl"))
    elif form == "users.json":
        by_user = {user: dict(zip(own.item, own.score, strict=True)) for user, own in rows.groupby("user")}
        path.write_text(json.dumps(by_user))
    elif form == "run":
        lines = [f"{u} Q0 {i} 1 {s} tag" for u, i, s in rows.itertuples(index=False)]
        path.write_text("\n".join(["# a comment", *lines]) + "\n")
    elif form == "ratings":
        RATINGS.loc[rows.index].to_csv(path, sep="\t", index=False, header=False)
    else:
        write_table(path, rows)


def cut(folder, form, *places, rows=ROWS):
    """The rows in several files, as a job on a cluster leaves them."""
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.crc").write_bytes(b"\x00")
    ends = [0, *places, len(rows)]
    for at, (start, stop) in enumerate(pairwise(ends)):
        write(folder / f"part-{at}.{form}", rows[start:stop])
    return folder


def assert_same(found, expected):
    """The same ids, codes, scores and grades."""
    for name in ("cases", "items"):
        assert getattr(found, name).values.tolist() == getattr(expected, name).values.tolist()
    for name in ("indptr", "codes", "scores", "grades", "times"):
        if getattr(expected, name, None) is not None:
            assert getattr(found, name).tolist() == getattr(expected, name).tolist()


@pytest.mark.parametrize("form", FORMATS)
def test_the_files_of_a_folder_are_one_table(tmp_path, form):
    write(tmp_path / f"whole.{form}", ROWS)
    folder = cut(tmp_path / "parts", form, 3, 5)
    for kind in ("lists",) if form == "run" else ("lists", "truth"):
        whole = read_file(tmp_path / f"whole.{form}", kind)
        for path in (
            folder,
            str(folder),
            f"{folder}/*",
            f"{folder}/part-?.{form}",
            tmp_path / "par*" / "part-*",
        ):
            assert_same(found := read_file(path, kind), whole)
            assert (found.facts.file, found.facts.n_files) == (str(path), 3)
            assert found.facts.format == whole.facts.format
    if form not in ("run", "users.json"):
        assert read_table(folder)[0].equals(read_table(tmp_path / f"whole.{form}")[0])
    if form == "run":
        assert found.facts.comments == 3


@given(places=st.lists(st.integers(0, 6), max_size=4).map(sorted))
@settings(max_examples=25, deadline=None)
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("scored", [True, False])
def test_it_does_not_matter_where_a_table_is_cut(tmp_path_factory, form, scored, places):
    """Empty files too: a task without rows writes a header, or a schema."""
    rows = ROWS if scored else ROWS[["item", "user"]]
    folder = tmp_path_factory.mktemp("cuts")
    write(folder / f"whole.{form}", rows)
    assert_same(
        read_file(cut(folder / "parts", form, *places, rows=rows)), read_file(folder / f"whole.{form}")
    )


@pytest.mark.parametrize("arrow", [True, False])
def test_a_part_without_values_may_be_without_types(tmp_path, monkeypatch, arrow):
    """As pandas 2 writes the columns of an empty table."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    write(tmp_path / "whole.parquet", ROWS)
    folder, whole = cut(tmp_path / "parts", "parquet", 2), tmp_path / "whole.parquet"
    for name in ("part-0a", "part-9"):
        pq.write_table(pa.table({column: pa.nulls(0) for column in ROWS}), folder / f"{name}.parquet")
    if not arrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert_same(read_file(folder), read_file(whole))


@pytest.mark.parametrize("arrow", [True, False])
def test_columns_of_text_are_packed_by_arrow_where_it_is_installed(tmp_path, monkeypatch, arrow):
    write(tmp_path / "whole.csv", ROWS)
    expected = read_file(tmp_path / "whole.csv")
    folder = cut(tmp_path / "parts", "csv", 3, 5)
    write(folder / "part-3.csv.gz", ROWS[:0])
    if arrow:
        monkeypatch.setattr(split_text, "_ARROW_BYTES", 60)  # less than one of the files, more than another
    else:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert_same(read_file(folder), expected)


def test_polars_reads_several_parquet_files_without_arrow(tmp_path, monkeypatch):
    write(tmp_path / "whole.parquet", ROWS)
    folder, whole = cut(tmp_path / "parts", "parquet", 2), tmp_path / "whole.parquet"
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert_same(read_file(folder), read_file(whole))


def test_columns_may_stand_in_another_order_and_be_of_another_width(tmp_path):
    write(tmp_path / "whole.parquet", ROWS)
    for form, types_of_part in (("csv", {}), ("parquet", {"score": "float32", "user": "category"})):
        folder = cut(tmp_path / form, form, 3)
        write(folder / f"part-1.{form}", ROWS[3:].astype(types_of_part)[["score", "item", "user"]])
        assert_same(read_file(folder), read_file(tmp_path / "whole.parquet"))
    numbers = tmp_path / "numbers"
    numbers.mkdir()
    for width in ("int32", "int64"):
        TRUTH.astype(width).to_parquet(numbers / f"{width}.parquet")
    assert read_file(numbers, "truth", ids="auto").facts.repeated_rows == 3


def test_folders_within_a_glob_are_read_too(tmp_path):
    (tmp_path / "days").mkdir()
    cut(tmp_path / "days" / "day=1", "parquet", 1, rows=ROWS[:3])
    cut(tmp_path / "days" / "day=2", "parquet", 1, rows=ROWS[3:])
    write(tmp_path / "whole.parquet", ROWS)
    whole = read_file(tmp_path / "whole.parquet")
    (tmp_path / "days" / "_temporary").mkdir()
    write(tmp_path / "days" / "_temporary" / "part.parquet", ROWS)
    for pattern in ("days/day=*", "days/*/*", "days/**/*.parquet", "days/**"):
        assert_same(read_file(tmp_path / pattern), whole)
    write(tmp_path / "days" / "more.parquet", ROWS)
    with pytest.raises(FileError, match=r"days/\* matches files and the folder .*day=1"):
        read_file(tmp_path / "days/*")
    with pytest.raises(
        FileError, match=r"holds the folder day=1, .*by a glob, such as '.*days/\*/\*.parquet'"
    ):
        read_file(tmp_path / "days")


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path):
    write(tmp_path / "lists[1].csv", ROWS)
    write(tmp_path / "lists1.csv", ROWS[:1])
    assert len(read_file(tmp_path / "lists[1].csv").codes) == 6
    assert len(read_file(tmp_path / "lists[1-2].csv").codes) == 1


def test_names_that_begin_with_an_underscore_are_read_if_they_are_asked_for(tmp_path):
    write(tmp_path / "_a.csv", ROWS[:2])
    write(tmp_path / "_b.csv", ROWS[2:])
    assert len(read_file(tmp_path / "_*.csv").codes) == 6
    with pytest.raises(FileError, match="no file matches"):
        read_file(tmp_path / "*.csv")


def _different_columns(folder):
    (folder / "part-1.csv").write_text("user,item\n1,2\n")


def _different_format(folder):
    write(folder / "part-1.parquet", ROWS)


def _wrong_line(folder):
    (folder / "part-1.csv").write_text("user,item,score\n1,2,0.5\n1,3,high\n")


def _missing_id(folder):
    (folder / "part-1.csv").write_text("user,item,score\n1,2,0.5\n1,,0.25\n")


def _short_line(folder):
    (folder / "part-1.csv").write_text("user,item,score\n1,2\n")


def _empty_file(folder):
    (folder / "part-1.csv").touch()


def _pickle(folder):
    (folder / "part-1.csv").write_bytes(b"\x80\x04\x95")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_different_columns, r"part-1.csv has the columns user, item; .*part-0.csv has user, item, score"),
        (_different_format, r"different formats: .*part-0.csv is csv, .*part-1.parquet is parquet"),
        (_wrong_line, r"line 3 of .*part-1.csv: the score 'high' is not a number"),
        (_missing_id, r"line 3 of .*part-1.csv: the item id is missing"),
        (_short_line, r"part-1.csv, line 2: 2 columns, expected 3"),
        (_empty_file, r"part-1.csv is empty"),
        (_pickle, r"part-1.csv holds a pickle"),
    ],
)
def test_what_is_wrong_with_one_file_is_said_of_it(tmp_path, spoil, words):
    folder = cut(tmp_path / "parts", "csv")
    spoil(folder)
    with pytest.raises(FileError, match=words):
        read_file(folder)


def test_typed_files_of_different_types_and_rows_that_are_wrong(tmp_path):
    folder = cut(tmp_path / "parts", "parquet", 3)
    TRUTH.assign(score=1.0).to_parquet(folder / "part-2.parquet")
    with pytest.raises(
        FileError, match=r"'user' is String in .*part-0.parquet and Int64 in .*part-2.parquet"
    ):
        read_file(folder)
    ROWS.assign(user=[None, "2", "2", "2", "2", "2"]).to_parquet(folder / "part-2.parquet")
    with pytest.raises(InputError, match=r"row 0 of .*part-2.parquet: the user id is missing"):
        read_file(folder)
    (folder / "part-2.parquet").write_bytes(b"PAR1 cut off")
    with pytest.raises(FileError, match=r"part-2.parquet is a damaged or truncated Parquet file"):
        read_file(folder)


def test_json_files_that_do_not_go_together(tmp_path):
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    first.write_text('{"a": [1]}')
    for content, words in (
        ('{"b": [2], "a": [3]}', "2.json: the user 'a' occurs in a file before it"),
        ('[{"user": 1, "item": 2}]', "2.json holds JSON of another form than .*1.json"),
    ):
        second.write_text(content)
        with pytest.raises(FileError, match=words):
            read_file(tmp_path / "*.json")
    first.write_text('[{"user": 1, "item": 2, "score": 3}]')
    with pytest.raises(FileError, match=r"2.json has the columns user, item; .*1.json has user, item, score"):
        read_file(tmp_path / "*.json")


def test_folders_that_are_no_table(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "_SUCCESS").touch()
    for name, content in (("saved/manifest.json", "{}"), ("delta/_delta_log/0.json", "{}")):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(content)
        write((tmp_path / name.split("/", maxsplit=1)[0]) / "part.csv", ROWS)
    for name, words in (
        ("empty", "empty is a folder without files"),
        ("empty/*", r"no file matches .*empty/\*"),
        ("none/*.csv", r"no file matches .*none/\*.csv"),
        ("saved", "holds manifest.json, so it is a saved result or a split"),
        ("delta", "is a Delta table"),
        ("x*" * 300, "cannot be read: File name too long"),
    ):
        with pytest.raises(FileError, match=words):
            read_file(tmp_path / name)
    with pytest.raises(FileError, match="the path is empty"):
        read_file("")


def test_every_argument_of_evaluate_may_be_several_files(tmp_path):
    folder = cut(tmp_path / "recs", "parquet", 3)
    truth = cut(tmp_path / "truth", "csv", 1, rows=TRUTH)
    history = pd.DataFrame({"user": ["1", "2"], "item": ["9", "7"]})
    history.to_csv(tmp_path / "history.csv", index=False)
    metrics = ["ndcg@2", "novelty@2", "overlap@2"]
    expected = recsys.evaluate(
        ROWS, TRUTH.astype(str), metrics, seen=history, train=ROWS, reference=ROWS[::2]
    )
    write(tmp_path / "reference.tsv", ROWS[::2])
    found = recsys.evaluate(
        f"{folder}/*.parquet", truth, metrics, seen=tmp_path / "hist*", train=folder,
        reference=str(tmp_path / "refer*"),
    )  # fmt: skip
    assert dict(found) == dict(expected)
    assert found.counts == expected.counts
    assert found.counts["seen_truth"] == 1
    by_hand = Factors(np.eye(3), np.eye(3), user_ids=["1", "2", "3"], item_ids=["8", "9", "10"])
    assert recsys.evaluate(by_hand, truth, "mrr", eligible=f"{truth}/part*")["mrr"] == 1.0


def test_other_verbs_take_several_files(tmp_path):
    folder = cut(tmp_path / "train", "parquet", 3, rows=ROWS.drop(columns="score"))
    write(tmp_path / "whole.csv", ROWS.drop(columns="score"))
    found = recsys.audit(folder, f"{folder}/*.parquet", lists=str(folder))
    assert found.findings == recsys.audit(*[tmp_path / "whole.csv"] * 3).findings != ()
    assert len(read_dataset(f"{folder}/*").interactions) == len(read_dataset(folder).interactions) == 6
    assert (read_dataset(folder).name, read_dataset(f"{folder}/*.parquet").name) == ("train", "train")


def test_one_file_is_asked_for_where_several_make_no_table(tmp_path):
    folder = cut(tmp_path / "parts", "csv", 3)
    with pytest.raises(FileError, match="parts stands for 2 files, and one is read here"):
        recsys.files.read_ncf_files(folder, folder)


@pytest.fixture
def run(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "whole.csv", ROWS)
    TRUTH.to_csv(tmp_path / "truth.csv", index=False)
    cut(tmp_path / "recs", "csv", 3)
    cut(tmp_path / "relevant", "parquet", 1, rows=TRUTH)
    return command


def test_the_command_takes_globs_and_folders(run, tmp_path):
    expected = run("evaluate", "whole.csv", "truth.csv", "-m", "ndcg@2", "--seen", "whole.csv", "--json")
    assert expected.exit_code == 0, expected.output
    found = run("evaluate", "recs/*.csv", "relevant", "-m", "ndcg@2", "--seen", "recs", "--json")
    assert json.loads(found.stdout)["sha256"] == json.loads(expected.stdout)["sha256"], found.output
    compared = run("compare", "recs/*.csv", "whole.csv", "--truth", "relevant/", "-m", "mrr", "--csv")
    assert "recs" in compared.stdout, compared.output
    shown = [run("inspect", "1", lists, "--csv", "-q").stdout for lists in ("recs", "recs/*", "whole.csv")]
    assert shown[0] == shown[1] == shown[2] != ""
    assert run("audit", "recs", "relevant/*", "--json").stdout.startswith("{")
    done = run("split", "recs/part*", "--how", "random_ratio", "--test-share", "0.5", "-o", "made", "-q")
    assert done.exit_code == 0, done.output
    made = [pd.read_csv(tmp_path / "made" / f"{side}.csv", dtype=str) for side in ("train", "test")]
    assert sorted(map(tuple, pd.concat(made).to_numpy())) == sorted(map(tuple, ROWS.astype(str).to_numpy()))


def test_an_output_must_not_be_one_of_the_files_read(run):
    for lists in ("recs", "recs/*.csv"):
        done = run("evaluate", lists, "truth.csv", "--per-user", "recs/part-1.csv")
        assert done.exit_code == 2
        assert "--per-user recs/part-1.csv would overwrite an input file" in done.stderr
    done = run("evaluate", "nothing/*.csv", "truth.csv")
    assert (done.exit_code, "no file matches nothing/*.csv" in done.stderr) == (3, True)


def test_ids_of_files_are_read_as_asked(tmp_path):
    """Equal scores are ordered by id: as text "10" comes before "7", as numbers it does not."""
    cut(tmp_path / "text", "csv", 3)
    cut(tmp_path / "typed", "parquet", 3, rows=ROWS.astype({"user": int, "item": int}))
    TRUTH.to_parquet(tmp_path / "truth.parquet")
    TRUTH.to_csv(tmp_path / "truth.csv", index=False)
    metrics, by_id = ["ndcg@2", "mrr"], {"ties": "by_id"}
    by_text = recsys.evaluate(ROWS, TRUTH.astype(str), metrics, conventions=by_id)
    by_number = recsys.evaluate(
        ROWS.astype({"user": int, "item": int}), TRUTH, metrics, conventions=by_id, ids="auto"
    )

    def evaluate(lists, truth, ids):
        paths = tmp_path / lists, tmp_path / truth
        result = recsys.evaluate(*paths, metrics, conventions=by_id, ids=ids, seen=paths[1], train=paths[0])
        return result, result.notes["ids"]

    for lists, truth in (("text", "truth.csv"), ("typed", "truth.parquet"), ("text", "truth.parquet")):
        result, noted = evaluate(lists, truth, "str")
        assert dict(result) == dict(by_text)
        assert noted == {"user": "str", "item": "str"}
        stores_types = (lists, truth) == ("typed", "truth.parquet")
        result, noted = evaluate(lists, truth, None)
        assert dict(result) == dict(by_number if stores_types else by_text)
        assert set(noted.values()) == {"int" if stores_types else "str"}
        result, noted = evaluate(lists, truth, "int")
        assert dict(result) == dict(by_number)
        assert noted == {"user": "int", "item": "int"}
    assert dict(evaluate("text", "truth.csv", "auto")[0]) == dict(by_text)
    assert dict(evaluate("typed", "truth.parquet", "auto")[0]) == dict(by_number)
    with pytest.raises(IdTypeError, match="so none of them would match"):
        evaluate("typed", "truth.csv", "auto")
    with pytest.raises(UnknownNameError, match="'text'"):
        evaluate("typed", "truth.csv", "text")
    with pytest.raises(UnknownNameError, match="'text'"):
        recsys.evaluate(ROWS, TRUTH, ids="text")


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("ids", ["str", "int", "auto"])
def test_tables_of_users_have_the_ids_of_the_other_files(run, tmp_path, form, ids):
    numbers = ROWS.astype({"user": int, "item": int})
    ages = pd.DataFrame({"user": [1, 2, 3], "age": ["young", "young", "old"]})
    for name, rows in (("l", numbers), ("t", TRUTH), ("u", ages)):
        write(tmp_path / f"{name}.{form}", rows)
    files = [f"l.{form}", f"t.{form}", "--users", f"u.{form}"]
    done = run("evaluate", *files, "--ids", ids, "--by", "age", "-m", "mrr@2", "--csv")
    rows = sorted(done.stdout.splitlines())
    assert rows[1:] == ["old,mrr@2,0.0,1", "overall,mrr@2,0.5,3", "young,mrr@2,0.75,2"], done.output


def test_ids_of_data_in_memory_are_not_converted():
    numbers = {1: [2]}
    for ids in (None, "auto", "int"):
        assert recsys.evaluate(numbers, numbers, "hit@1", ids=ids).notes["ids"] == {
            "user": "int",
            "item": "int",
        }
    for lists, truth, more, words in (
        (numbers, numbers, {}, "the user ids of data in memory are int"),
        ({"a": ["b"]}, {"a": [1]}, {}, "the item ids of data in memory are int"),
        ({"a": ["b"]}, {"a": ["b"]}, {"seen": numbers}, "are int.*table 'seen'"),
        ({"a": ["b"]}, {"a": ["b"]}, {"reference": numbers}, "are int.*table 'reference'"),
    ):
        with pytest.raises(IdTypeError, match=f"ids='str' is for files.*{words}"):
            recsys.evaluate(lists, truth, "hit@1", ids="str", **more)


def test_a_saved_result_says_what_its_ids_are(tmp_path):
    for kind, lists in (("int", {1: [2]}), ("str", {"a": ["b"]})):
        result = recsys.evaluate(lists, lists, "hit@1")
        result.save(tmp_path / "result.json")
        assert recsys.load(tmp_path / "result.json").notes["ids"] == {"user": kind, "item": kind}
    mixed = recsys.evaluate({"a": [1]}, {"a": [1]}, "hit@1")
    assert mixed.notes["ids"] == {"user": "str", "item": "int"}


def test_more_ids_than_codes_are_an_error(monkeypatch):
    assert np.iinfo(np.int32).max == MAX_IDS
    assert range_limit(1 << 40) == MAX_IDS
    monkeypatch.setattr("recsys.records.arrays.MAX_IDS", 4)
    four = Ids(np.arange(4))
    assert len(four.union(Ids(np.arange(1, 4)), what="user")[0]) == 4
    words = "there are 5 different ids, and at most 4 go together"
    with pytest.raises(InputError, match=words):
        four.union(Ids(np.array([7])), what="user")
    with pytest.raises(InputError, match=words):
        encode_ints(np.array([3, 10**12, 5, -1, 9, 9]))
    with pytest.raises(InputError, match=words):
        recsys.evaluate({u: [1] for u in "abc"}, {u: [1] for u in "cde"}, "hit@1")
