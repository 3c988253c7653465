"""Every layout of NCF test files is read; errors name what does not fit."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.errors import FileError, InputError
from recsys.inputs.files import read_ncf_files, write_ncf_files
from recsys.inputs.files.ncf import has_no_header, read_pairs

RATINGS = {
    "authors": "0\t25\t5\t978824351\n1\t133\t3\t978300174\n",
    "table": "UserID,ItemID,Rating,Timestamp\n0,25,5,978824351\n1,133,3,978300174\n",
    "other order": "item_id;timestamp;user_id;rating\n25;978824351;0;5\n133;978300174;1;3\n",
    "movielens": "0::25::5::978824351\n1::133::3::978300174\n",
    "windows": "UserID,ItemID,Rating,Timestamp\r\n0,25,5,978824351\r\n1,133,3,978300174\r\n\r\n",
}
NEGATIVES = {
    "authors": "(0,25)\t1064\t174\t2791\n(1,133)\t1072\t3154\t3368\n",
    "quoted list": 'UserID,ItemID,NegativeItems\n0,25,"[1064, 174, 2791]"\n1,133,"[1072, 3154, 3368]"\n',
    "bare list": "UserID,ItemID,NegativeItems\n0,25,[1064, 174, 2791]\n1,133,[1072, 3154, 3368]\n",
    "spaces": "user\titem\tnegatives\n0\t25\t1064 174 2791\n1\t133\t1072 3154 3368\n",
    "columns": "user,item,neg_1,neg_2,neg_3\n0,25,1064,174,2791\n1,133,1072,3154,3368\n",
    "no positives": 'user_id,negatives\n0,"1064|174|2791"\n1,"1072|3154|3368"\n',
    "one a row": "user,item,negative\n0,25,1064\n0,25,174\n1,133,1072\n0,25,2791\n1,133,3154\n1,133,3368\n",
    "long": "user,item\n0,1064\n0,174\n0,2791\n1,1072\n1,3154\n1,3368\n",
    "plain": "0,25,1064,174,2791\n1,133,1072,3154,3368\n",
    "other order": "(1,133)\t1072\t3154\t3368\n(0,25)\t1064\t174\t2791\n",
}


def files(tmp_path, rating, negative):
    (tmp_path / "a.rating").write_bytes(rating.encode())
    (tmp_path / "a.negative").write_bytes(negative.encode())
    return tmp_path / "a.rating", tmp_path / "a.negative"


@pytest.mark.parametrize("negative", NEGATIVES)
@pytest.mark.parametrize("rating", RATINGS)
def test_every_layout_says_the_same(tmp_path, rating, negative):
    test = read_ncf_files(*files(tmp_path, RATINGS[rating], NEGATIVES[negative]))
    assert test.users.tolist() == [0, 1]
    assert test.items.tolist() == [25, 133]
    assert test.negatives.tolist() == [[1064, 174, 2791], [1072, 3154, 3368]]
    assert test.ratings.tolist() == [5, 3]
    assert test.times.tolist() == [978824351, 978300174]
    assert test.counts == {"positive_among_negatives": 0, "repeated_negatives": 0}


@given(st.data())
def test_what_is_written_is_read(tmp_path_factory, data):
    n = data.draw(st.integers(1, 5))
    numbers = st.integers(0, 1 << 40)
    users = data.draw(st.lists(numbers, min_size=n, max_size=n, unique=True))
    items = data.draw(st.lists(numbers, min_size=n, max_size=n))
    rows = [data.draw(st.lists(numbers, min_size=1, max_size=4)) for _ in range(n)]
    stem = tmp_path_factory.mktemp("ncf") / "x"
    paths = write_ncf_files(stem, users, items, rows)
    assert [p.name for p in paths] == ["x.test.rating", "x.test.negative"]
    test = read_ncf_files(*paths)
    assert (test.users.tolist(), test.items.tolist()) == (users, items)
    assert [np.asarray(row).tolist() for row in test.negatives] == rows


def test_positives_among_negatives_and_repeats_are_counted(tmp_path):
    test = read_ncf_files(*files(tmp_path, "0\t5\n1\t6\n", "(0,5)\t5\t1\t1\n(1,6)\t1\t2\t3\n"))
    assert test.counts == {"positive_among_negatives": 1, "repeated_negatives": 1}
    assert test.ratings is None
    assert test.times is None


def test_gzipped_files_are_read(tmp_path):
    one, two = files(tmp_path, RATINGS["authors"], NEGATIVES["authors"])
    for path in (one, two):
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert len(read_ncf_files(one, two)) == 2


@pytest.mark.parametrize(
    ("rating", "negative", "words"),
    [
        ("0\t25\n2\t7\n", NEGATIVES["authors"], "no negatives for user 2 and item 7"),
        ("0\t25\n", NEGATIVES["authors"], "1 cases that are not in the test file"),
        ("0\t26\n1\t133\n", NEGATIVES["authors"], "user 0 and item 26"),
        (RATINGS["authors"], "(0,25)\t1064\n(1,133)\n", "line 2: no negative items"),
        (RATINGS["authors"], "(0,25)\t1064\n(1,133)\tx\n", "line 2: no whole number"),
        (RATINGS["authors"], "a,b\n1,2\n", "no user and negative items"),
        ("user,rating\n1,2\n", NEGATIVES["authors"], "no user and item"),
        ("0\t25\n1\tx\n", NEGATIVES["authors"], "line 2: no whole number in place 2"),
        ("0\t99999999999999999999\n", NEGATIVES["authors"], "too large"),
        ("\n\n", NEGATIVES["authors"], "empty"),
    ],
)
def test_what_does_not_fit_is_named_with_its_line(tmp_path, rating, negative, words):
    with pytest.raises(FileError, match=words):
        read_ncf_files(*files(tmp_path, rating, negative))


def test_writing_refuses_what_does_not_pair(tmp_path):
    with pytest.raises(InputError, match="do not pair"):
        write_ncf_files(tmp_path / "x", [0, 1], [2, 3], [[4]])


def test_training_files_without_a_header_are_told_from_tables(tmp_path):
    plain, table = tmp_path / "m.train.rating", tmp_path / "t.csv"
    plain.write_text("0\t32\t4\t978824330\n0\t34\t4\t978824331\n")
    table.write_text("user,item\n0,32\n")
    assert has_no_header(plain)
    assert not has_no_header(table)
    assert read_pairs(plain).items.tolist() == [32, 34]


@pytest.mark.shared
def test_the_authors_own_negatives_survive_a_round_trip(shared_dir, tmp_path):
    negatives = np.load(shared_dir / "data" / "ml-1m" / "ncf_negatives.npz")["negatives"]
    import pyarrow.parquet as pq

    test = pq.read_table(shared_dir / "data" / "ml-1m" / "ncf_test.parquet")
    users, items = test["user"].to_numpy().astype(int) - 1, test["ncf_item"].to_numpy().astype(int)
    read = read_ncf_files(*write_ncf_files(tmp_path / "ml-1m", users, items, negatives))
    assert np.array_equal(read.negatives, negatives)
    assert read.counts == {"positive_among_negatives": 156, "repeated_negatives": 0}


def test_a_quotation_mark_that_is_not_closed_ends_with_its_line(tmp_path):
    text = NEGATIVES["plain"].replace("0,25", '0,"25', 1)
    assert read_ncf_files(*files(tmp_path, RATINGS["authors"], text)).negatives.shape == (2, 3)
    for cell in ("x" * 200_000, "\0"):  # more than csv takes
        with pytest.raises(InputError):
            read_ncf_files(*files(tmp_path, RATINGS["authors"], NEGATIVES["plain"] + f"0,{cell},3\n"))
