"""What is known about items, read into our own types and looked up by the items of a list."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recsys
from recsys.errors import ColumnError, InputError, NotDefinedError, RecsysWarning
from recsys.metrics.attributes import (
    ItemFacts,
    align_labels,
    parse_labels,
    popular_head,
    read_context,
    read_intents,
    read_popularity,
    read_reference,
    read_table,
    read_vectors,
    row_norms,
    vector_rows,
)
from recsys.records.arrays import Ids

# Three users had a, two had b, one had c (twice); d is new.
TRAIN = pd.DataFrame({"user": [1, 2, 3, 1, 2, 3, 3], "item": [*"aaabbcc"]})
ITEMS = Ids(np.array([*"abcd"], dtype=object))


def facts(**known: object) -> ItemFacts:
    return ItemFacts(ITEMS, read_context(**known))


def test_popularity_counts_users_and_events_count_repeats():
    known = facts(train=TRAIN)
    assert known.popularity.tolist() == [3, 2, 1, 0]
    assert known.events.tolist() == [3, 2, 2, 0]
    assert known.n_users() == 3
    assert known.n_users(50) == 50
    assert known.n_events == 6
    assert sorted(known.all_popularities.tolist()) == [1, 2, 3]
    assert known.train.items.values.tolist() == [*"abc"]


def test_popularity_may_be_given():
    known = facts(popularity={"b": 5, "a": 1, "x": 2})
    assert known.popularity.tolist() == [1, 5, 0, 0]
    assert known.n_events == 8
    assert sorted(known.all_popularities.tolist()) == [1, 2, 5]
    with pytest.raises(NotDefinedError, match="how many users"):
        known.n_users()
    both = facts(train=TRAIN, popularity={"b": 5})
    assert both.popularity.tolist() == [0, 5, 0, 0]
    assert both.n_users() == 3


def test_the_percentile_of_popularity_is_the_middle_of_equals():
    known = facts(popularity={"a": 4, "b": 2, "c": 2, "d": 0})
    assert known.popularity_percentile.tolist() == pytest.approx([3 / 3, 1.5 / 3, 1.5 / 3, 0])


@pytest.mark.parametrize(
    ("head", "tail"),
    [(0.0, "bcd"), (0.3, "bcd"), (0.5, "bcd"), (0.6, "cd"), (0.8, "cd"), (0.9, "d"), (1.0, "d")],
)
def test_the_tail_lies_below_the_head(head, tail):
    # a has half of ten interactions, b three tenths, c a fifth
    known = facts(popularity={"a": 5, "b": 3, "c": 2})
    assert [item for item, outside in zip("abcd", known.in_tail(head), strict=True) if outside] == [*tail]


def test_nobody_had_anything():
    known = facts(train={1: []})
    assert known.popularity.tolist() == [0, 0, 0, 0]
    assert known.n_users() == 0
    assert known.n_events == 0
    assert known.popularity_percentile.tolist() == [0, 0, 0, 0]
    assert known.in_tail(0.8).all()
    assert facts().n_events == 0


def test_what_is_not_known_is_refused():
    nothing = facts()
    for ask in (
        lambda: nothing.train,
        lambda: nothing.popularity,
        lambda: nothing.events,
        nothing.n_users,
        lambda: nothing.rows,
        lambda: nothing.matrix,
        lambda: nothing.row_norms,
        lambda: nothing.number("price"),
        lambda: nothing.attribute("kind"),
        lambda: nothing.is_number("kind"),
    ):
        with pytest.raises(NotDefinedError):
            ask()


def test_columns_of_items_are_numbers_or_labels():
    known = facts(items={"price": {"a": 1, "c": 2.5}, "kind": {"a": "x|y", "b": ["y", "z"], "c": None}})
    np.testing.assert_array_equal(known.number("price"), [1.0, math.nan, 2.5, math.nan])
    assert known.is_number("price")
    assert not known.is_number("kind")
    kinds = known.attribute("kind")
    assert kinds.labels == ["x", "y", "z"]
    assert kinds.indptr.tolist() == [0, 2, 4, 4, 4]
    assert kinds.codes.tolist() == [0, 1, 1, 2]
    assert known.attribute("kind") is kinds
    for ask in (lambda: known.number("kind"), lambda: known.number("weight"), lambda: known.number(None)):
        with pytest.raises(ColumnError):
            ask()


def test_the_only_column_needs_no_name():
    known = facts(items={"a": 3, "b": 4})
    np.testing.assert_array_equal(known.number(None), [3.0, 4.0, math.nan, math.nan])
    np.testing.assert_array_equal(known.number("value"), known.number(None))


def test_a_table_has_one_column_of_ids():
    frame = pd.DataFrame({"item": ["b", "a"], "price": [2.0, 1.0]})
    for table in (frame, frame.set_index("item"), frame.rename(columns={"item": "Item_ID"})):
        read = read_table(table, table="items")
        assert read.ids.values.tolist() == ["a", "b"]
        assert read.columns["price"].tolist() == [1.0, 2.0]
        assert read_table(read, table="items") is read
    for wrong in (
        frame.rename(columns={"item": "thing"}),
        frame.assign(item_id=frame["item"]),
    ):
        with pytest.raises(ColumnError):
            read_table(wrong, table="items")
    for wrong in ({}, pd.concat([frame, frame]), 5):
        with pytest.raises(InputError):
            read_table(wrong, table="items")


def test_an_item_with_two_rows_is_named():
    with pytest.raises(InputError, match="several rows for 'c'"):
        read_table(pd.DataFrame({"item": [*"acbc"], "price": [1, 2, 3, 4]}), table="items")


def test_labels_in_one_cell():
    assert parse_labels(" a | b||a ") == ["a", "b"]
    assert parse_labels(math.nan) == parse_labels(None) == parse_labels(np.ma.masked) == []
    assert parse_labels(np.array(["b", "a"])) == ["a", "b"]
    assert parse_labels(np.array(5)) == ["5"]
    assert parse_labels({"x"}) == ["x"]
    assert parse_labels(2.5) == ["2.5"]
    with pytest.raises(InputError):
        parse_labels([np.zeros(2)])
    labels = align_labels(Ids(np.array([2, 5])), np.array(["q", "p"], dtype=object), Ids(np.array([1, 2, 5])))
    assert (labels.indptr.tolist(), labels.codes.tolist(), labels.labels) == (
        [0, 0, 1, 2],
        [1, 0],
        ["p", "q"],
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"a": -1},
        {"a": math.inf},
        {"a": math.nan},
        {"a": "3"},
        ["3", "4"],
        np.ones((2, 2)),
        {"a": None},
        {"a": [1]},
    ],
)
def test_popularity_is_a_number_of_users(wrong):
    with pytest.raises(InputError):
        read_popularity(wrong)


def test_popularity_in_every_form():
    table = read_popularity({"b": 0, "a": 2})
    assert (table.ids.values.tolist(), table.columns["popularity"].tolist()) == (["a", "b"], [2.0, 0.0])
    assert read_popularity(table) is table
    series = read_popularity(pd.Series([3, 1], index=["b", "a"]))
    assert (series.ids.values.tolist(), series.columns["popularity"].tolist()) == (["a", "b"], [1.0, 3.0])
    array = read_popularity(np.array([4, 0, 2]))
    assert (array.ids.values.tolist(), array.columns["popularity"].tolist()) == ([0, 1, 2], [4.0, 0.0, 2.0])
    with pytest.warns(RecsysWarning, match=r"holds 0\.5"):
        read_popularity({"a": 1, "b": 0.5})


def test_vectors_in_every_form():
    matrix = np.array([[3.0, 4.0], [0.0, 2.0]])
    frame = pd.DataFrame(matrix, index=["b", "a"])
    for came in ({"b": [3.0, 4.0], "a": [0.0, 2.0]}, (["b", "a"], matrix), frame):
        vectors = read_vectors(came, table="embeddings")
        assert vectors.ids.values.tolist() == ["a", "b"]
        assert vectors.matrix[vectors.rows].tolist() == [[0.0, 2.0], [3.0, 4.0]]
        assert vector_rows(vectors, Ids(np.array(["a", "x", "b"], dtype=object)), what="item").tolist() == [
            1,
            -1,
            0,
        ]
        assert read_vectors(vectors, table="embeddings") is vectors
    numbered = read_vectors(matrix, table="embeddings")
    assert numbered.ids.values.tolist() == [0, 1]
    assert row_norms(matrix).tolist() == [5.0, 2.0]
    assert row_norms(np.ones((70_000, 1), dtype=np.float32)).tolist() == [1.0] * 70_000
    assert row_norms(np.zeros((0, 3))).tolist() == []
    known = facts(embeddings=frame)
    assert known.rows.tolist() == [1, 0, -1, -1]
    assert known.row_norms.tolist() == [5.0, 2.0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"a": [1.0], "b": [1.0, 2.0]},
        (["a", "a"], np.ones((2, 2))),
        (["a"], np.ones((2, 2))),
        (["a", "b", "c"], np.ones((2, 2))),
        np.ones(3),
        np.array([["x"]]),
    ],
)
def test_vectors_have_one_id_and_one_length(wrong):
    with pytest.raises(InputError):
        read_vectors(wrong, table="embeddings")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_vector_that_is_not_finite_is_named(bad):
    with pytest.raises(InputError, match="the vector of 'b' holds"):
        read_vectors({"a": [1.0, 2.0], "b": [1.0, bad]}, table="embeddings")
    with pytest.raises(InputError, match="the vector of 1 holds"):
        read_vectors(np.array([[1.0, 2.0], [bad, 2.0], [bad, 1.0]]), table="embeddings")
    large = np.array([[1e308, 1e308], [1e308, 1e308]])  # whose sum is infinite
    assert read_vectors(large, table="embeddings").matrix is not None


def test_one_reference_list_is_for_everybody():
    one = read_reference(["b", "a"])
    assert (len(one.cases), one.indptr.tolist()) == (0, [0, 2])
    assert one.items.values[one.codes].tolist() == ["b", "a"]
    assert len(read_reference(np.array([3, 1])).cases) == 0
    assert read_reference({1: ["a"], 2: ["b"]}).cases.values.tolist() == [1, 2]
    assert read_reference([["a"], ["b"]]).cases.values.tolist() == [0, 1]
    assert read_reference(np.array([[1, 2], [2, 1]])).cases.values.tolist() == [0, 1]


def test_intents_are_a_column_or_a_table():
    assert read_intents("kind") == "kind"
    table = read_intents({2: {"a": ["x", "y"]}, 1: {"b": "z", "a": "x"}})
    assert table.ids.values.tolist() == [1, 2]
    assert table.columns["user"].tolist() == [1, 0, 0]
    assert table.columns["item"].tolist() == [0, 1, 0]
    assert table.columns["items"].tolist() == ["a", "b"]
    assert table.columns["labels"].tolist() == ["x|y", "z", "x"]
    for wrong in (5, ["kind"], {1: ["a"]}, {1: {"a": "x"}, 2: 3}):
        with pytest.raises(InputError):
            read_intents(wrong)


def test_a_number_beyond_every_float_is_refused():
    with pytest.raises(InputError, match="beyond the range of floats"):
        recsys.evaluate({1: [2]}, {1: {2}}, "value(of=price)@1", items={"price": {2: 10**400}})


@given(st.lists(st.integers(0, 6), max_size=30))
def test_the_head_is_the_cut_between_levels_nearest_to_a_fifth(counts):
    occur = [n for n in counts if n > 0]
    fifth = -(-len(occur) // 5)
    heads = [[n > 0 and n >= level for n in counts] for level in (*range(1, 7), math.inf)]
    nearest = min(heads, key=lambda head: (abs(sum(head) - fifth), sum(head)))
    got = popular_head(np.array(counts, dtype=np.int64))
    assert got.tolist() == nearest
    assert got.sum() <= 2 * fifth  # equal counts never swallow the catalogue


def test_no_id_decides_who_is_in_the_head():
    counts = np.array([5, 5, 5, 1, 1, 1, 1, 1, 1, 1])  # a fifth is two items; three are equally popular
    assert popular_head(counts).tolist() == [True] * 3 + [False] * 7
    assert popular_head(counts[::-1]).tolist() == [False] * 7 + [True] * 3
    assert not popular_head(np.full(10, 4)).any()
