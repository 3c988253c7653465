"""Forms of lists and truth that few people hand over: each is read as what it says, or refused in words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import recsys
from recsys.errors import ColumnError, FileError, FloatIdWarning, IdTypeError, InputError, UnknownNameError
from recsys.inputs.files import read_ncf_files, write_ncf_files
from recsys.inputs.files.reader import read_table


class Pair(tuple):
    """What a named tuple is to a type check: a tuple, and not exactly one."""

    __slots__ = ()


def test_pairs_may_be_of_a_class_of_their_own():
    lists = recsys.read_lists({"ann": [Pair(("b", 1.0)), ("c", 2.0)]})
    assert lists.items.values[lists.codes].tolist() == ["c", "b"]
    assert lists.scores.tolist() == [2.0, 1.0]


@pytest.mark.parametrize(("row", "number"), [([1, -1, 2], 1), ([1, 2, -2], 1)], ids=["in the middle", "-2"])
def test_only_the_end_of_a_row_of_a_matrix_is_padding(row, number):
    with pytest.raises(InputError, match=f"row {number} holds a negative item before its end") as caught:
        recsys.read_lists(np.array([[4, 5, -1], row]))
    assert str(row) in str(caught.value)
    assert "use a dict of lists for ids below 0" in str(caught.value)
    lists = recsys.read_lists(np.array([[4, 5, -1], [1, -1, -1]]))
    assert lists.sizes.tolist() == [2, 1]


@pytest.mark.parametrize("shape", [(2, 3), (0, 3)])
def test_a_sparse_matrix_without_an_entry_is_refused(shape):
    with pytest.raises(InputError, match=r"the sparse truth of shape \(\d, 3\) stores nothing") as caught:
        recsys.read_interactions(sp.csr_array(shape))
    assert "Check the split." in str(caught.value)


def test_room_behind_the_entries_of_a_sparse_matrix_is_not_read():
    spare = sp.csr_array((np.ones(5), np.array([0, 2, 1, 0, 0]), np.array([0, 2, 3])), shape=(2, 3))
    truth = recsys.read_interactions(spare)
    assert truth.indptr.tolist() == [0, 2, 3]
    assert truth.codes.tolist() == [0, 2, 1]


def test_the_column_that_is_called_as_its_role_wins():
    both = {"user": [1, 1], "item_id": [8, 9], "item": [5, 7]}
    truth = recsys.read_interactions(pd.DataFrame(both))
    assert truth.items.values[truth.codes].tolist() == [5, 7]
    neither = pd.DataFrame(both).rename(columns={"item": "itemid"})
    with pytest.raises(ColumnError, match="the columns 'item_id', 'itemid' could all be the item") as caught:
        recsys.read_interactions(neither)
    assert "columns={'item': 'item_id'}" in str(caught.value)


CATEGORIES = {
    "pandas, numbers": (pd.DataFrame({"user": pd.Categorical([3, 1, 3]), "item": [4, 5, 6]}), [1, 3]),
    "Arrow, numbers": (
        pa.table({"user": pa.array([3, 1, 3]).dictionary_encode(), "item": [4, 5, 6]}),
        [1, 3],
    ),
    "polars, names": (
        pl.DataFrame({"user": pl.Series(["b", "a", "b"], dtype=pl.Categorical), "item": [4, 5, 6]}),
        ["a", "b"],
    ),
    "polars, an enum": (
        pl.DataFrame({"user": pl.Series(["b", "a", "b"], dtype=pl.Enum(["b", "a"])), "item": [4, 5, 6]}),
        ["a", "b"],
    ),
}


@pytest.mark.parametrize(("frame", "users"), CATEGORIES.values(), ids=CATEGORIES)
def test_categories_are_the_ids_they_stand_for(frame, users):
    truth = recsys.read_interactions(frame)
    assert truth.cases.values.tolist() == users
    first, second = truth.indptr[1:] - truth.indptr[:-1]
    assert (first, second) == (1, 2)
    assert truth.items.values[truth.codes].tolist() == [5, 4, 6]


def test_whole_floats_among_objects_are_ids_with_a_warning():
    users = np.array([2.0, np.float32(1)], dtype=object)
    with pytest.warns(FloatIdWarning):
        truth = recsys.read_interactions(pd.DataFrame({"user": users, "item": [4, 5]}))
    assert truth.cases.values.tolist() == [1, 2]
    mixed = pd.DataFrame({"user": pd.Categorical([3, "a", 3]), "item": [1, 2, 3]})
    with pytest.raises(IdTypeError, match="user ids are mixed: 3 is int, 'a' is str"):
        recsys.read_interactions(mixed)


def test_a_negative_grade_is_named_with_its_row():
    with pytest.raises(InputError, match=r"the grade -2 of user 'ann', item 'y' is negative"):
        recsys.read_interactions({"ann": {"x": 1.0, "y": -2.0}})


@pytest.mark.parametrize("read", [recsys.read_interactions, recsys.read_lists])
def test_a_case_of_two_users_is_refused(read):
    table = pd.DataFrame({"case": [7, 7], "user": [1, 2], "item": [1, 2], "score": [1.0, 0.5]})
    with pytest.raises(InputError, match="case 7 belongs to two users") as caught:
        read(table)
    assert "Each case must belong to one user." in str(caught.value)


def test_negatives_are_written_where_they_are_wanted_and_read_without_a_delimiter(tmp_path):
    wanted = tmp_path / "one", tmp_path / "two"
    assert write_ncf_files(wanted, [0, 1], [5, 6], [[1, 2], [3, 4]]) == wanted
    (tmp_path / "spaces").write_text("0 5\n\n1 6\n")
    test = read_ncf_files(tmp_path / "spaces", wanted[1])
    assert test.users.tolist() == [0, 1]
    assert test.items.tolist() == [5, 6]
    assert test.negatives.tolist() == [[1, 2], [3, 4]]
    (tmp_path / "blank").write_text("\u00a0\n", encoding="utf-8")
    with pytest.raises(FileError, match="blank is empty") as caught:
        read_ncf_files(tmp_path / "blank", wanted[1])
    assert "'(0,25)" in str(caught.value)


@pytest.mark.parametrize("name", ["npz", "zzz"])
def test_a_format_that_holds_no_table_is_named(tmp_path, name):
    (tmp_path / "pairs.csv").write_text("user,item\n1,2\n")
    with pytest.raises(UnknownNameError, match=f"unknown format of a table '{name}'") as caught:
        read_table(tmp_path / "pairs.csv", format=name)
    assert "parquet" in str(caught.value)


def test_tensors_without_values_are_refused():
    """The device "meta" knows shapes only: NumPy cannot have what is not there."""
    torch = pytest.importorskip("torch")
    empty, ids = torch.empty(3, 4, device="meta"), torch.zeros((3, 4), dtype=torch.long, device="meta")
    for attempt in (
        lambda: recsys.evaluate(recsys.Scores(empty), {0: [1]}, ["mrr"]),
        lambda: recsys.evaluate(recsys.Factors(empty, empty), {0: [1]}, ["mrr"]),
        lambda: recsys.evaluate(ids, {0: [1]}, ["mrr"]),
        lambda: recsys.evaluate({0: ids[0]}, {0: [1]}, ["mrr"]),
        lambda: recsys.evaluate({0: [1, 2]}, {0: [1]}, ["ild@2"], embeddings=empty),
    ):
        with pytest.raises(recsys.errors.InputError, match="on the device 'meta'") as caught:
            attempt()
        assert caught.value.hint
