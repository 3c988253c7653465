"""Published formats are read as they are written; what is damaged or absent is said with what to do."""

from __future__ import annotations

import contextlib
import hashlib
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recsys
from recsys import datasets
from recsys.errors import ColumnError, FileError, RecsysError, UnknownNameError
from recsys.inputs.files.reader import read_table, write_table
from recsys.splits.datasets import dataset_readers

U_DATA = "196\t242\t3\t881250949\n186\t302\t3\t891717742\n22\t377\t1\t878887116\n"
U_ITEM = (
    "242|Kolya (1996)|24-Jan-1997||http://us.imdb.com/M/title-exact?Kolya%20(1996)|"
    + "|".join("1" if i == 5 else "0" for i in range(19))
    + "\n302|L.A. Confidential, \xe9 (1997)|01-Jan-1997||http://x|"
    + "|".join("1" if i in (6, 10) else "0" for i in range(19))
    + "\n"
)
U_USER = "196|49|M|writer|55105\n186|39|F|executive|00000\n"


@pytest.fixture
def hundred(tmp_path):
    folder = tmp_path / "ml-100k"
    folder.mkdir()
    (folder / "u.data").write_text(U_DATA)
    (folder / "u.item").write_bytes(U_ITEM.encode("latin-1"))
    (folder / "u.user").write_text(U_USER)
    return folder


def test_movielens_100k(hundred):
    dataset = datasets.movielens(hundred)
    assert dataset.interactions.to_dict("list") == {
        "user_id": [196, 186, 22], "item_id": [242, 302, 377], "rating": [3.0, 3.0, 1.0],
        "timestamp": [881250949, 891717742, 878887116],
    }  # fmt: skip
    assert dataset.items["title"].tolist() == ["Kolya (1996)", "L.A. Confidential, é (1997)"]
    assert dataset.items["genres"].tolist() == ["Comedy", "Crime|Film-Noir"]
    assert dataset.users["zip_code"].tolist() == ["55105", "00000"]
    assert dataset.roles == {"user": "user_id", "item": "item_id", "grade": "rating", "time": "timestamp"}
    assert dataset.notes["published_rows"] == 100_000
    facts = "3 rows (100,000 were published), 3 users, 3 items, with tables of items and users"
    assert facts in repr(dataset)


def test_movielens_with_colons(tmp_path):
    (tmp_path / "ratings.dat").write_text(
        "1::1193::5::978300760\n1::661::3::978302109\n2::1193::0.5::978302110\n"
    )
    (tmp_path / "movies.dat").write_bytes(
        '1193::"Quoted" One, A: B (1975)::Drama|War\n661::Caf\xe9::Comedy\n'.encode("latin-1")
    )
    (tmp_path / "users.dat").write_text("1::F::1::10::48067\n")
    dataset = datasets.movielens(tmp_path)
    assert dataset.interactions["item_id"].tolist() == [1193, 661, 1193]
    assert dataset.interactions["rating"].tolist() == [5.0, 3.0, 0.5]
    assert dataset.items["title"].tolist() == ['"Quoted" One, A: B (1975)', "Café"]
    assert dataset.users["gender"].tolist() == ["F"]


def test_movielens_with_a_header(tmp_path):
    (tmp_path / "ratings.csv").write_text(
        "userId,movieId,rating,timestamp\n1,31,2.5,1260759144\n1,1029,3.0,1260759179\n"
    )
    (tmp_path / "movies.csv").write_text('movieId,title,genres\n31,"Dangerous Minds, The",Drama\n')
    dataset = datasets.movielens(tmp_path)
    assert dataset.interactions["timestamp"].dtype == np.int64
    assert dataset.items["title"].tolist() == ["Dangerous Minds, The"]
    assert dataset.roles["item"] == "movieId"


def test_an_archive_is_read_without_unpacking_and_its_sum_is_checked(hundred, tmp_path, monkeypatch):
    path = tmp_path / "ml-100k.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in hundred.iterdir():
            archive.write(file, f"ml-100k/{file.name}")
    with pytest.raises(FileError, match=r"MD5.*grouplens"):
        datasets.read(path)
    found = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    monkeypatch.setitem(dataset_readers.ARCHIVES, "ml-100k.zip", found)
    dataset = datasets.read(path)
    assert len(dataset.interactions) == 3
    assert dataset.items is not None
    assert dataset.notes["md5"] == f"{found}, as published"
    (tmp_path / "other.zip").write_bytes(b"PK\x03\x04nonsense")
    with pytest.raises(FileError, match="not a zip archive"):
        datasets.read(tmp_path / "other.zip")


def test_ratings_outside_the_scale_are_a_damaged_file(hundred):
    (hundred / "u.data").write_text(U_DATA + "1\t2\t9\t881250949\n")
    with pytest.raises(FileError, match="row 4: the rating 9 is outside 1 to 5"):
        datasets.movielens(hundred)
    (hundred / "u.data").write_text(U_DATA + "1\t2\tnan\t881250949\n")
    with pytest.raises(FileError, match="outside"):
        datasets.movielens(hundred)
    (hundred / "u.data").write_text(U_DATA + "1\t2\tgood\t881250949\n")
    with pytest.raises(FileError, match="line 4: the grade 'good' is not a number"):
        datasets.movielens(hundred)
    (hundred / "u.data").write_text(U_DATA + "1\t2\t3\n")
    with pytest.raises(FileError, match="line 4: 3 columns, expected 4"):
        datasets.movielens(hundred)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ml-100k", "grouplens.org"),
        ("ratings_Books.csv", "jmcauley"),
        ("steam.inter", "recbole"),
        ("x", "downloaded"),
    ],
)
def test_what_is_not_there_is_told_where_to_get(tmp_path, name, words):
    with pytest.raises(FileError, match=words):
        datasets.read(tmp_path / name)


def test_a_folder_of_nothing_known(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(FileError, match="no data set of a known format"):
        datasets.read(tmp_path)
    with pytest.raises(FileError, match="not MovieLens"):
        datasets.movielens(tmp_path)


def test_recbole_atomic_files(tmp_path):
    (tmp_path / "x.inter").write_text(
        "user_id:token\titem_id:token\trating:float\ttimestamp:float\nu1\ti1\t4\t881250949.5\nu2\ti1\t3\t1\n"
    )
    (tmp_path / "x.item").write_text("item_id:token\tprice:float\ttags:token_seq\ni1\t1.5\ta b\n")
    dataset = datasets.read(tmp_path)
    assert list(dataset.interactions.columns) == ["user_id", "item_id", "rating", "timestamp"]
    assert dataset.interactions["timestamp"].tolist() == [881250949.5, 1.0]
    assert dataset.items["price"].tolist() == [1.5]
    assert dataset.items["tags"].tolist() == ["a b"]
    assert dataset.roles["time"] == "timestamp"
    assert len(datasets.read(tmp_path / "x.inter").interactions) == 2
    (tmp_path / "y.inter").write_text("user_id:token\titem_id:token\nu1\ti1\n")
    with pytest.raises(FileError, match=r"2 \.inter files"):
        datasets.recbole(tmp_path)


def test_amazon_in_both_orders(tmp_path):
    old = tmp_path / "ratings_Books.csv"
    old.write_text("A2CX7LUOHB2NDG,0321732944,5.0,1341100800\nA2NWSAGRHCP8N5,0439886341,1.0,1367193600\n")
    dataset = datasets.read(old)
    assert dataset.interactions["item_id"].tolist() == ["0321732944", "0439886341"]
    assert dataset.notes["order"] == "user_first"
    new = tmp_path / "Books.csv"
    new.write_text("0321732944,A2CX7LUOHB2NDG,5.0,1341100800\n0439886341,A2NWSAGRHCP8N5,1.0,1367193600\n")
    dataset = datasets.amazon(new)
    assert dataset.interactions["user_id"].tolist() == ["A2CX7LUOHB2NDG", "A2NWSAGRHCP8N5"]
    assert dataset.notes["order"] == "item_first"
    assert datasets.amazon(new, order="user_first").interactions["user_id"].tolist() == [
        "0321732944",
        "0439886341",
    ]
    with pytest.raises(UnknownNameError, match="item_first"):
        datasets.amazon(new, order="items_first")
    (tmp_path / "bad.csv").write_text("A2CX7LUOHB2NDG,0321732944,7.0,1341100800\n")
    with pytest.raises(FileError, match="outside 1 to 5"):
        datasets.amazon(tmp_path / "bad.csv")


def test_plain_tables_with_their_own_columns(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("when,who,what,note\n2026-01-01,007,a,x\n2026-01-02,008,NA,\n")
    with pytest.raises(ColumnError, match="recognised as the user"):
        datasets.table(path)
    dataset = datasets.table(path, columns={"user": "who", "item": "what", "time": "when"})
    assert dataset.interactions["who"].tolist() == ["007", "008"]
    assert dataset.interactions["what"].tolist() == ["a", "NA"]
    assert dataset.interactions["note"].tolist() == ["x", ""]
    parquet = tmp_path / "interactions.parquet"
    write_table(parquet, dataset.interactions)
    again = datasets.read(tmp_path, columns={"user": "who", "item": "what", "time": "when"})
    pd.testing.assert_frame_equal(again.interactions, dataset.interactions, check_dtype=False)
    assert (
        datasets.table(parquet, columns={"user": "who", "item": "what"}, ids="str").interactions["who"][0]
        == "007"
    )


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
def test_a_written_table_is_read_again_as_it_was(tmp_path, ending):
    frame = pd.DataFrame({"user": [3, 1], "item": ["x", "007"], "time": [5, 6], "rating": [0.5, 4.0]})
    write_table(tmp_path / f"t{ending}", frame)
    again, roles = read_table(tmp_path / f"t{ending}")
    pd.testing.assert_frame_equal(again, frame, check_dtype=False)
    assert roles == {"user": "user", "item": "item", "grade": "rating", "time": "time"}


def test_a_table_that_is_none(tmp_path):
    with pytest.raises(UnknownNameError, match=r"ending of a table's file '\.xlsx'"):
        write_table(tmp_path / "t.xlsx", pd.DataFrame({"a": [1]}))
    with pytest.raises(FileError, match="not a table"):
        write_table(tmp_path / "t.csv", 3)
    (tmp_path / "twice.csv").write_text("user,item,item\n1,2,3\n")
    with pytest.raises(FileError, match="occurs twice"):
        read_table(tmp_path / "twice.csv")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("u.data", U_DATA),
        ("ratings.dat", U_DATA.replace("\t", "::")),
        ("ratings.csv", U_DATA.replace("\t", ",")),
        ("ml-1m.train.rating", U_DATA),
        ("u1.base", U_DATA),
    ],
)
def test_read_file_knows_ratings_without_a_header(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    read = recsys.read_file(path, "truth", ids="int")
    assert read.cases.values.tolist() == [22, 186, 196]
    assert read.grades.tolist() == [1, 3, 3]
    assert read.times.tolist() == [878887116, 891717742, 881250949]
    assert read.facts.format == "ratings"


def test_judgements_stay_judgements(tmp_path):
    path = tmp_path / "qrels.txt"
    path.write_text("q1 0 d1 1\nq1 0 d2 0\n")
    assert recsys.read_file(path, "truth").facts.format == "trec"
    path.write_text("196\t0\t3\t1\n186\t0\t3\t2\n")
    assert recsys.read_file(path, "truth").facts.format == "trec"


@pytest.mark.shared
def test_a_folder_of_parquet_files(shared_dir):
    dataset = datasets.read(shared_dir / "data" / "ml-100k")
    assert repr(dataset) == (
        "Dataset(ml-100k: 100,000 rows, 943 users, 1,682 items, with tables of items and users)"
    )
    small = datasets.read(shared_dir / "data" / "ml-latest-small")
    assert len(small.items) == 9125


@pytest.mark.shared
def test_real_ratings_in_every_published_format(shared_dir, tmp_path):
    """ml-100k written in each format is the same data."""
    frame = pd.read_parquet(shared_dir / "data" / "ml-100k" / "interactions.parquet")
    frame.columns = ["user_id", "item_id", "rating", "timestamp"]
    (tmp_path / "ml-100k").mkdir()
    frame.to_csv(tmp_path / "ml-100k" / "u.data", sep="\t", header=False, index=False)
    (tmp_path / "ml-1m").mkdir()
    text = (tmp_path / "ml-100k" / "u.data").read_text()
    (tmp_path / "ml-1m" / "ratings.dat").write_text(text.replace("\t", "::"))
    (tmp_path / "ml-20m").mkdir()
    frame.to_csv(tmp_path / "ml-20m" / "ratings.csv", index=False)
    frame.rename(columns=lambda c: f"{c}:token").to_csv(tmp_path / "x.inter", sep="\t", index=False)
    for path in ("ml-100k", "ml-1m", "ml-20m", "x.inter"):
        dataset = datasets.read(tmp_path / path)
        pd.testing.assert_frame_equal(dataset.interactions.astype(np.int64), frame.astype(np.int64), obj=path)


CELLS = st.sampled_from(
    ["1", "196", "a", "", " ", "5", "nan", "1e400", "881250949", "-1", "é", '"', "::", "\x1f", "7.5", "\r"]
)
LINES = st.lists(st.lists(CELLS, max_size=6), max_size=6)


@given(
    LINES,
    st.sampled_from(["\t", "::", ",", "|", ";"]),
    st.sampled_from(["u.data", "ratings.dat", "ratings.csv", "x.inter", "ratings_x.csv"]),
)
def test_whatever_a_file_holds_it_is_read_or_refused(tmp_path_factory, lines, mark, name):
    folder = tmp_path_factory.mktemp("data")
    (folder / name).write_text("\n".join(mark.join(line) for line in lines))
    for path in (folder, folder / name):
        try:
            dataset = datasets.read(path)
        except RecsysError:
            continue
        assert len(dataset.interactions) > 0


@given(
    st.binary(max_size=200),
    st.sampled_from(["u.data", "ratings.csv", "x.inter", "ml-1m.zip", "interactions.parquet"]),
)
def test_bytes_are_read_or_refused(tmp_path_factory, content, name):
    path = tmp_path_factory.mktemp("data") / name
    path.write_bytes(content)
    with contextlib.suppress(RecsysError):
        datasets.read(path)


def test_files_that_are_not_what_they_are_read_as_are_told(hundred, tmp_path):
    write_table(tmp_path / "ratings.parquet", pd.DataFrame({"user": [1], "item": [2]}))
    with pytest.raises(FileError, match="is parquet, not user,item,rating,time"):
        datasets.amazon(tmp_path / "ratings.parquet")
    (tmp_path / "x.inter").write_text("user_id:token\titem_id:token\tx:token\tx:float\nu\ti\t1\t1\n")
    with pytest.raises(FileError, match=r"x\.inter: two columns differ only in their type"):
        datasets.recbole(tmp_path / "x.inter")
    (hundred / "u.user").write_text(U_USER + "22|49\n")
    with pytest.raises(FileError, match=r"u\.user"):
        datasets.movielens(hundred)


def test_a_glob_is_one_table_named_after_its_folder(tmp_path):
    folder = tmp_path / "days"
    folder.mkdir()
    for day in (1, 2):
        (folder / f"{day}.csv").write_text(f"user,item\nu{day},i\n")
    dataset = datasets.read(folder / "*.csv")
    assert dataset.interactions["user"].tolist() == ["u1", "u2"]
    assert dataset.name == "days"
