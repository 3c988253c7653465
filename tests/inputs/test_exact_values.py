"""Values that a conversion would change without a word: kept exactly, or refused."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import recsys
from recsys.errors import IdTypeError, InputError
from recsys.inputs import read_interactions, read_lists
from recsys.inputs.containers import as_array
from recsys.inputs.files.ncf import read_pairs
from recsys.inputs.ids import ids_from_sequence
from recsys.inputs.rows import Rows, to_lists
from recsys.records.arrays import Ids

BIG = 2**53
FORMATS = ["coo", "csr", "csc", "lil", "dok", "bsr", "dia"]
LARGE_SCORES = {
    "int64": np.array([BIG, BIG + 1, -BIG - 1, -BIG - 2, 3], dtype=np.int64),
    "uint64": np.array([2**64 - 2, 2**64 - 1, 2**64 - 1, 5, 4], dtype=np.uint64),
    "longdouble": np.array([1, 1, 0, -1, -1], dtype=np.longdouble)
    + np.array([0, 2, 0, 0, -1], dtype=np.longdouble) * np.finfo(np.longdouble).eps,
    "whole and decimal": np.array([BIG + 1, float(BIG), 0.5, Fraction(1, 3), Decimal("0.1")], dtype=object),
    "decimals": np.array([Decimal(1) + Decimal(n) / 10**20 for n in (3, 1, 2, 2, 0)], dtype=object),
    "whole numbers of Python": np.array([2**70, 2**70 + 1, 2**70, 7, -(2**80)], dtype=object),
}


@pytest.mark.parametrize("scores", LARGE_SCORES.values(), ids=LARGE_SCORES)
def test_scores_are_ordered_as_the_numbers_that_came(scores):
    n = len(scores)
    table = Ids(np.arange(n), is_range=True)
    case = np.zeros(n, dtype=np.int32)
    lists = to_lists(
        Rows("lists", Ids(np.array([1])), case, table, np.arange(n, dtype=np.int32), score=scores)
    )
    exact = [Fraction(value) if not isinstance(value, np.longdouble) else value for value in scores.tolist()]
    exact = list(scores) if scores.dtype == np.longdouble else exact
    ordered = sorted(range(n), key=lambda at: -exact[at])
    assert lists.codes.tolist() == ordered
    ties = [exact[a] == exact[b] for a, b in pairwise(ordered)]
    assert lists.scores is not None
    assert (lists.scores[1:] == lists.scores[:-1]).tolist() == ties
    assert lists.scores == pytest.approx([float(exact[at]) for at in ordered], rel=1e-14)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_integer_scores_beyond_53_bits_do_not_tie(make):
    lists = make({"user": [1, 1], "item": [11, 12], "score": [BIG, BIG + 1]})
    assert recsys.evaluate(lists, {1: [11]}, ["mrr"])["mrr"] == 0.5
    assert recsys.evaluate({1: {11: BIG, 12: BIG + 1}}, {1: [11]}, ["mrr"])["mrr"] == 0.5
    assert recsys.evaluate({1: {11: 0.5, 12: BIG + 1, 13: BIG}}, {1: [13]}, ["mrr"])["mrr"] == 0.5


@pytest.mark.parametrize("score", [BIG, 2**64, 0.5])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.run", "a.parquet", "a.jsonl", "a.json"])
def test_integer_scores_in_files_do_not_tie(tmp_path, name, score):
    scores = [BIG, BIG + 1, score if name != "a.parquet" else BIG]
    table = pd.DataFrame({"user": "u", "item": list("abc"), "score": pd.Series(scores, dtype=object)})
    path = tmp_path / name
    if name == "a.run":
        path.write_text("".join(f"u Q0 {item} 1 {s} tag\n" for item, s in zip("abc", scores, strict=True)))
    elif name == "a.parquet":
        table.astype({"score": "int64"}).to_parquet(path)
    elif name.startswith("a.json"):
        rows = [json.dumps(row) for row in table.to_dict("records")]
        path.write_text("\n".join(rows) if name == "a.jsonl" else f"[{', '.join(rows)}]")
    else:
        table.to_csv(path, index=False, sep="\t" if name == "a.tsv" else ",")
    lists = recsys.read_file(path)
    items = "".join(lists.items.values[lists.codes])
    assert items.index("b") < items.index("a")
    assert lists.scores[items.index("b")] > lists.scores[items.index("a")]


@pytest.mark.skipif(not hasattr(pl, "Int128"), reason="before polars 1.18")
def test_columns_of_128_bits_are_read():
    lists = pl.DataFrame({"user": [1, 1], "item": [11, 12], "score": [BIG, BIG + 1]})
    wide = lists.with_columns(pl.col("score").cast(pl.Int128), pl.col("item").cast(pl.Int128))
    assert recsys.evaluate(wide, {1: [11]}, ["mrr"])["mrr"] == 0.5
    with pytest.raises(IdTypeError, match="64 bits"):
        recsys.evaluate(wide.with_columns(pl.lit(2**100, dtype=pl.Int128).alias("item")), {1: [11]}, ["mrr"])


@pytest.mark.parametrize("form", FORMATS)
def test_sparse_formats_say_the_same(form):
    dense = np.array([[0, 2.0, 1.0], [0, 0, 0], [3.0, 0, 0.5]])
    truth = read_interactions(sp.coo_array(dense).asformat(form))
    stored = truth.codes if truth.grades is None else truth.codes[truth.grades > 0]
    assert stored.tolist() == [1, 2, 0, 2]


@pytest.mark.parametrize("form", ["coo", "csr", "csc"])
def test_entries_stored_twice_are_merged_and_counted(form):
    def twice(values, rows, columns, shape):
        if form == "coo":
            return sp.coo_matrix((values, (rows, columns)), shape=shape)
        minor, major = (columns, rows) if form == "csr" else (rows, columns)
        order = np.argsort(major, kind="stable")
        size = shape[0] if form == "csr" else shape[1]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(major, minlength=size))])
        kind = sp.csr_matrix if form == "csr" else sp.csc_matrix
        return kind((np.array(values)[order], np.array(minor)[order], indptr), shape=shape)

    truth = twice([1.0, 1.0, 1.0], [0, 0, 0], [1, 1, 2], (1, 3))
    result = recsys.evaluate({0: [2, 1]}, truth, ["ndcg@2"])
    assert result["ndcg@2"] == 1.0
    assert result.counts["repeated_rows"] == 1
    lists = twice([0.5, 0.5, 0.8], [0, 0, 0], [1, 1, 2], (1, 3))
    result = recsys.evaluate(lists, {0: [2]}, ["mrr"])
    assert result["mrr"] == 1.0
    assert result.counts["repeated_items"] == 1
    parts = recsys.split(twice([1.0] * 4, [0, 0, 0, 0], [1, 1, 2, 0], (1, 3)), "random_ratio", test=0.5)
    assert (parts.train.nnz + parts.test.nnz, (parts.train + parts.test).max()) == (4, 2)


def damaged(form: str, **parts: object):
    matrix = sp.coo_array(([0.9, 0.5], ([0, 1], [1, 2])), shape=(2, 3)).asformat(form)
    for name, value in parts.items():
        setattr(matrix, name, np.array(value) if name != "coords" else tuple(map(np.array, value)))
    return matrix


@pytest.mark.parametrize("matrix", [
    damaged("csr", indices=[7, 1]), damaged("csr", indices=[-1, 1]), damaged("csr", indptr=[0, 1, 9]),
    damaged("csr", indptr=[0, 5, 2]), damaged("csr", indptr=[1, 1, 2]), damaged("csr", indptr=[0, 2]),
    damaged("csr", indptr=[0.0, 1.0, 2.0]),
    damaged("csr", data=[0.5]), damaged("csr", indices=[0.5, 1.0]),
    damaged("csc", indices=[5, 1]), damaged("csc", indptr=[0, 0, 9, 2]), damaged("csc", indptr=[0, 2]),
    damaged("coo", coords=([0, 9], [1, 2])), damaged("coo", coords=([0, -1], [1, 2])),
    damaged("coo", coords=([0, 1], [1, 3])), damaged("coo", coords=([0], [1, 2])), damaged("coo", data=[1.0]),
    damaged("dia", offsets=[1, 99]), damaged("dia", offsets=[9]), damaged("dia", data=[1.0, 2.0]),
    sp.coo_array((np.ones(2), (np.array([0, 2]),)), shape=(3,)),
    sp.coo_array(([1.0], ([0], [2**40])), shape=(1, 2**41)),
])  # fmt: skip
@pytest.mark.parametrize("side", ["lists", "truth"])
def test_damaged_matrices_are_refused(matrix, side):
    good = {0: [1]}
    with pytest.raises(InputError, match="sparse"):
        recsys.evaluate(*((matrix, good) if side == "lists" else (good, matrix)), ["mrr"])
    with pytest.raises(InputError, match="sparse"):
        recsys.split(matrix, "random_ratio")


def test_masked_entries_are_refused():
    masked = np.ma.masked_equal([[1, 2], [3, 4]], 1)
    for call in (
        lambda: recsys.evaluate(masked, {0: {1}, 1: {3}}, ["recall@2"]),
        lambda: recsys.evaluate({0: [1]}, masked, ["recall@2"]),
        lambda: recsys.evaluate({0: masked[0], 1: masked[1]}, {0: {1}}, ["recall@2"]),
        lambda: recsys.evaluate({0: [1]}, {0: [1]}, ["coverage@1"], catalogue=masked[0]),
        lambda: recsys.evaluate({0: [1, 2]}, {0: [1]}, ["diversity@2"], embeddings=masked),
        lambda: recsys.evaluate({0: [0, 1]}, {0: [1]}, ["average_popularity@2"], popularity=masked[0]),
        lambda: recsys.Scores(masked.astype(float)),
        lambda: recsys.Factors(np.ones((2, 2)), np.ones((2, 2)), item_bias=masked[0].astype(float)),
        lambda: as_array(masked),
    ):
        with pytest.raises(InputError, match=r"mask|missing"):
            call()
    whole = np.ma.array([[1, 2], [3, 4]])
    assert recsys.evaluate(whole, {0: {1}, 1: {3}}, ["recall@2"])["recall@2"] == 1.0


@pytest.mark.parametrize(("dtype", "limit"), [("float16", 2**11), ("float32", 2**24), ("float64", 2**53)])
@pytest.mark.parametrize("way", ["table", "dict of arrays", "dict of numbers", "array", "catalogue"])
@pytest.mark.filterwarnings("ignore::recsys.errors.FloatIdWarning")
def test_ids_that_a_float_type_merges_are_refused(dtype, limit, way):
    def read(item):
        items = np.array([item, 1], dtype=dtype)
        if way == "table":
            return read_lists(pd.DataFrame({"user": [1, 1], "item": items}))
        if way == "dict of arrays":
            return read_lists({1: items})
        if way == "dict of numbers":
            return read_lists({1: list(items)})
        if way == "array":
            return read_lists(items[None])
        return recsys.evaluate({1: [1]}, {1: [1]}, ["coverage@1"], catalogue=items)

    read(limit // 2)
    with pytest.raises(IdTypeError, match=rf"{float(limit):.1f}"):
        read(limit)


def test_merged_ids_among_pairs_or_under_an_index_are_named():
    pairs = np.array([[1, 2], [4096, 1]], np.float16)
    for lists in ({0: [(1, 2.0)], 1: pairs}, {1: pd.Series([1, 4096], [7, 8], np.float16)}):
        with pytest.raises(IdTypeError, match=r"the item id 4096\.0") as caught:
            read_lists(lists)
        assert caught.value.row == 1


def test_a_type_of_arrow_that_nobody_else_has_is_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"user": [1], "item": [2], "score": pa.array([None], pa.decimal128(2, 5))})
    with pa.OSFile(str(tmp_path / "x.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as out:
        out.write_table(table)
    for lists in (table, tmp_path / "x.arrow"):
        # An older narwhals reads the type, and the missing score is refused.
        with pytest.raises(InputError, match=r"a column's type cannot be read: scale|score nan of user"):
            recsys.evaluate(lists, {1: [2]}, ["recall@1"])


def test_numbers_that_only_python_reads_are_refused():
    for text in ("1_0", "\uff11\uff10", b"1_0"):
        for table in (
            pd.DataFrame({"user": [1], "item": [2], "score": pd.Series([text], dtype=object)}),
            {1: {2: text}},
        ):
            with pytest.raises(InputError, match="not numbers"):
                read_lists(table)
    assert read_lists(pd.DataFrame({"user": [1], "item": [2], "score": ["10"]})).scores.tolist() == [10.0]


@pytest.mark.parametrize("text", ["1_0", "\uff11\uff10", "\u0661\u0660"])
def test_files_hold_plain_numbers_only(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text(f"user,item,score\nu,a,{text}\n", encoding="utf-8")
    with pytest.raises(InputError, match="is not a number"):
        recsys.read_file(path)
    path.write_text(f"user,item,time\nu,a,{text}\n", encoding="utf-8")
    assert recsys.read_file(path, "truth").times.tolist() == [text]
    path.write_text(f"{text}\t3\t5\t978824351\n", encoding="utf-8")
    with pytest.raises(InputError, match="whole number"):
        read_pairs(path)


@pytest.mark.filterwarnings("ignore::recsys.errors.FloatIdWarning")
def test_categories_of_numbers_are_numbers():
    def items(categories):
        lists = read_lists(pd.DataFrame({"user": 1, "item": pd.Categorical(categories)}))
        return lists.items.values[lists.codes].tolist()

    assert items([2.0, 1.0]) == [2, 1]
    assert items([2, 1]) == [2, 1]
    assert items(["2", "1"]) == ["2", "1"]
    for wrong in ([1.5, 2.0], [True, False], [1, "1"], [pd.Timestamp(0), pd.Timestamp(1)]):
        with pytest.raises(InputError):
            items(wrong)
    arrow = read_lists(pa.table({"user": [1, 1], "item": pa.array([30, 10]).dictionary_encode()}))
    assert arrow.items.values[arrow.codes].tolist() == [30, 10]


def test_a_nul_at_the_end_is_part_of_an_id():
    result = recsys.evaluate({1: ["a\0"]}, {1: ["a"]}, ["recall@1"])
    assert result["recall@1"] == 0.0
    table = pd.DataFrame({"user": [1], "item": ["a\0"]})
    assert recsys.evaluate(table, {1: ["a"]}, ["recall@1"])["recall@1"] == 0.0
    assert ids_from_sequence(["a\0"], table="t", column="c").tolist() == ["a\0"]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_vectors_without_a_number_name_their_id(bad, dtype):
    vectors = {i: np.array([1.0, i], dtype=dtype) for i in range(6)}
    vectors[4] = np.array([1.0, bad], dtype=dtype)
    named = {f"i{i}": v for i, v in vectors.items()}
    lists, truth = {0: [0, 1, 2], 1: [3, 4, 5]}, {0: {0}, 1: {3}}
    ways = [vectors, np.stack(list(vectors.values())), (list(vectors), list(vectors.values())),
            pd.DataFrame(vectors).T]  # fmt: skip
    for way in ways:
        with pytest.raises(InputError, match="4"):
            recsys.evaluate(lists, truth, ["diversity@3"], embeddings=way)
    text_lists = {0: ["i0", "i1", "i2"]}
    with pytest.raises(InputError, match="'i4'"):
        recsys.evaluate(text_lists, {0: ["i0"]}, ["diversity@3"], embeddings=named)
    with pytest.raises(InputError, match="profiles"):
        recsys.evaluate(lists, truth, ["diversity@3"], embeddings=np.ones((6, 2)), profiles=vectors)


def test_vectors_whose_sum_overflows_are_read():
    large = np.full((3, 2), 60_000, dtype=np.float16)
    assert recsys.evaluate({0: [0, 1, 2]}, {0: {0}}, ["diversity@3"], embeddings=large)["diversity@3"] == 0.0


@pytest.mark.parametrize(
    "wrong", [{1: "many"}, {1: None}, {1: float("inf")}, {1: [1, 2]}, [[1], [1, 2]], "ab"]
)
def test_popularity_that_is_no_count_is_refused(wrong):
    with pytest.raises(InputError, match="popularity"):
        recsys.evaluate({0: [1]}, {0: [1]}, ["novelty(users=9)@1"], popularity=wrong)


@pytest.mark.parametrize("entry", [np.array(5), int, list, np.ones((2, 2)), None, object()])
@pytest.mark.parametrize("place", [0, 1])
def test_an_entry_that_is_no_list_names_its_user(entry, place):
    lists = {0: [1, 2], 1: [3]}
    lists[place] = entry
    for call in (read_lists, read_interactions):
        with pytest.raises(InputError, match=rf"user {place}|missing|array|id"):
            call(lists)


@pytest.mark.parametrize(
    "numbers", [{1: (1, 2), 2: (3, 4)}, {1: (1, 2), 2: 3}, {1: [1], 2: 0.5}, {1: 2**1100}]
)
def test_scores_that_are_no_numbers_are_refused(numbers):
    for call in (read_lists, read_interactions):
        with pytest.raises(InputError, match="not numbers"):
            call({0: numbers})
    with pytest.raises(InputError, match="not numbers"):
        read_lists({0: list(numbers.items())})


def test_ranks_of_63_bits():
    last = 2**63 - 1
    table = pd.DataFrame({"user": [1, 2, 2], "item": [5, 6, 7], "rank": [1, last, 1]})
    for lists in (table, table.astype({"user": str}), table.astype({"rank": "uint64"})):
        assert read_lists(lists).codes.tolist() == read_lists({1: [5], 2: [7, 6]}).codes.tolist()
    with pytest.raises(InputError, match="rank"):
        read_lists(table.assign(rank=np.array([1, 2**64 - 1, 1], dtype=np.uint64)))


@pytest.mark.parametrize("dtype", [">i8", ">i4", ">u2", ">f8", ">u8"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.filterwarnings("ignore::recsys.errors.FloatIdWarning")
def test_big_endian_ids(dtype, sparse):
    n = 140_000
    factor = 10**11 if sparse and dtype in (">i8", ">f8", ">u8") else 1
    items = (np.arange(n) % 50_000 * factor).astype(dtype)
    users = np.repeat(np.arange(n // 20), 20)
    native = pd.DataFrame({"user": users, "item": items.astype(np.int64)})
    swapped = pd.DataFrame({"user": users.astype(">i8"), "item": items})
    ours, other = read_lists(swapped), read_lists(native)
    assert np.array_equal(ours.items.values[ours.codes], other.items.values[other.codes])
    assert ours.cases.values.dtype.isnative
    assert read_lists(items[:40].reshape(2, 20)).items.values.dtype.isnative


@pytest.mark.parametrize("value", [
    np.datetime64("NaT", "s"), np.datetime64("2020-01-01"), np.timedelta64(3, "s"), 1j, pd.NA,
    Decimal("sNaN"),
])  # fmt: skip
def test_objects_that_numpy_turns_into_numbers_are_no_scores(value):
    for call in (read_lists, read_interactions):
        with pytest.raises(InputError, match=r"score|grade"):
            call({0: {1: value, 2: 1.0}})


def test_ids_in_words_are_no_list_of_letters():
    with pytest.raises(InputError, match=r"ids"):
        recsys.evaluate(recsys.Scores(np.eye(2)), {1: [1]}, ["ndcg@1"], exclude="abc")
    with pytest.raises(InputError, match="not a path"):
        recsys.read_file(None)
    for columns in ({"score": 3}, {"user": pd.NA}):
        with pytest.raises(InputError, match="not text"):
            read_lists(pd.DataFrame({"user": [1], "item": [1]}), columns=columns)


def test_a_cell_with_several_values_is_no_id():
    lists = pl.DataFrame({"user": [1, 2], "item": pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int64, 2))})
    with pytest.raises(InputError, match="several values"):
        read_lists(lists)


def test_vectors_by_narrow_float_ids_are_refused():
    with pytest.raises(IdTypeError, match="float16"):
        recsys.evaluate(
            {1: [4096, 1]}, {1: [1]}, ["diversity@2"],
            embeddings=(np.array([4096, 1], dtype=np.float16), np.eye(2)),
        )  # fmt: skip
