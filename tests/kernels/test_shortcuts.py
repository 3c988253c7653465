"""The compiled short cuts against the NumPy code they stand in for: same arrays, same errors, same bits."""

from __future__ import annotations

import copy
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recsys
from recsys import kernels
from recsys.errors import IdTypeError, RecsysError
from recsys.inputs import ids
from recsys.kernels import native_backend
from recsys.kernels.exact_sums import exact_sum
from recsys.records.arrays import Ids
from worlds.kernels import LEVELS

native = pytest.mark.skipif(not kernels.backends().native, reason="the compiled kernels are not installed")


@pytest.fixture
def shortcut(monkeypatch):
    """Runs something with every short cut however few the rows, and again with none."""

    def run(call):
        results = []
        for least in (0, 2**62):
            monkeypatch.setattr(native_backend, "SHORT_CUT_MIN_ROWS", least)
            try:
                results.append(call())
            except RecsysError as error:
                results.append((type(error), str(error)))
        return results

    return run


def same(a, b):
    if isinstance(a, tuple) or isinstance(b, tuple):
        assert a == b
        return
    for name in ("indptr", "codes"):
        mine, other = getattr(a, name), getattr(b, name)
        assert (mine.dtype, mine.tolist()) == (other.dtype, other.tolist()), name
    for name in ("cases", "items"):
        mine, other = getattr(a, name), getattr(b, name)
        assert (mine.values.dtype, mine.values.tolist()) == (other.values.dtype, other.values.tolist()), name
        assert mine.is_range == other.is_range
    assert a.facts == b.facts
    assert (getattr(a, "counts", None) is None) == (getattr(b, "counts", None) is None)


small = st.integers(0, 6)
wide = small | st.sampled_from([-1, 70_000, 2**31, 2**40, -(2**63), 2**63 - 1])
rows = st.lists(st.tuples(wide, wide, st.integers(1, 4)), min_size=1, max_size=25)
dense = st.lists(st.tuples(small, small, st.integers(1, 4)), min_size=1, max_size=25)

ARRANGED = ["as drawn", "grouped", "ranked", "ranked and grouped", "ranked and grouped, falling"]


@native
@settings(max_examples=200, suppress_health_check=[], deadline=None)
@given(data=rows | dense, arranged=st.sampled_from(ARRANGED))
def test_placed_rows_are_those_of_numpy(data, arranged):
    table = pd.DataFrame(data, columns=["user", "item", "rank"])
    if "ranked" in arranged:
        table["rank"] = table.groupby("user").cumcount() + 1
    if "grouped" in arranged:
        table = table.sort_values("user", kind="stable", ascending="falling" not in arranged)
    with pytest.MonkeyPatch.context() as patch:
        results: list[list[object]] = []
        for least in (0, 2**62):
            patch.setattr(native_backend, "SHORT_CUT_MIN_ROWS", least)
            results.append(
                [
                    _tried(lambda: recsys.read_lists(table)),
                    _tried(lambda: recsys.read_lists(table[["user", "item"]])),
                    _tried(lambda: recsys.read_interactions(table[["user", "item"]])),
                    _tried(lambda: recsys.read_lists(table.astype({"user": str, "item": str}))),
                    _tried(lambda: recsys.read_interactions(table[["user", "item"]].astype(str))),
                ]
            )
    for mine, other in zip(*results, strict=True):
        same(mine, other)


def _tried(call):
    try:
        return call()
    except RecsysError as error:
        return type(error), str(error)


@native
@pytest.mark.parametrize("kind", ["grouped", "shuffled"])
def test_a_large_table_takes_the_short_cut(kind, monkeypatch):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"user": np.repeat(np.arange(2_000), 5), "item": rng.integers(0, 900, 10_000), "rank": 0}
    )
    table["rank"] = table.groupby("user").cumcount() + 1
    if kind == "shuffled":
        table = table.sample(frac=1, random_state=0)
    taken = []
    real = kernels.place_rows

    def noted(*columns, **how):
        taken.append(real(*columns, **how))
        return taken[-1]

    monkeypatch.setattr(kernels, "place_rows", noted)
    read = recsys.read_lists(table)
    assert [placed is not None for placed in taken] == [True]
    assert read.indptr.tolist() == list(range(0, 10_001, 5))


def grouped_rows(sizes, seed):
    """Cases of these sizes one after the other, ranks from 1, items that rise within a case."""
    rng = np.random.default_rng(seed)
    case = np.repeat(np.cumsum(rng.integers(1, 4, len(sizes))), sizes)
    rank = np.arange(len(case)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
    item = rank * 7 + rng.integers(0, 7, len(case))
    return case, item, rank


SPOILT = {
    "nothing": lambda column, at: column[at],
    "smaller": lambda column, at: column[at] - 1,
    "larger": lambda column, at: column[at] + 1,
    "negative": lambda _column, _at: -1,
    "large": lambda _column, _at: 2**20,
    "huge": lambda _column, _at: 2**31,
    "wraps": lambda column, at: column[at] + 2**32,
}


@native
@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 9) | st.integers(1, 5_000), min_size=1, max_size=12),
    order=st.sampled_from(native_backend.ORDERS),
    how=st.sampled_from(sorted(SPOILT)),
    data=st.data(),
)
def test_every_level_places_rows_alike(level, sizes, order, how, data):
    columns = [column.astype(np.int64) for column in grouped_rows(np.array(sizes), len(sizes))]
    column = data.draw(st.sampled_from(columns))
    at = data.draw(st.integers(0, len(column) - 1))
    column[at] = SPOILT[how](column, at)
    case, item, rank = columns
    limit = 2**20
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native_backend, "SHORT_CUT_MIN_ROWS", 0)
        placed = kernels.place_rows(
            case, item, rank if order == "by_rank" else None, order=order, limit=limit, cpu_level=level
        )
    keys = {"given": (case,), "by_rank": (rank, case), "ascending": (item, case)}[order]
    by = np.lexsort(keys)
    ids, indptr = np.unique(case[by], return_index=True)
    places = np.arange(len(by)) - np.repeat(indptr, np.diff([*indptr, len(by)])) + 1
    again = (case[by][1:] == case[by][:-1]) & (item[by][1:] == item[by][:-1])
    refused = (
        item.min() < 0
        or item.max() >= limit
        or (order == "by_rank" and (rank[by] != places).any())
        or (order == "ascending" and again.any())
        or ((by != np.arange(len(by))).any() and int(case.max()) - int(case.min()) >= limit)
    )
    assert (placed is None) == refused
    if placed is not None:
        assert placed.case_ids.tolist() == ids.tolist()
        assert placed.indptr.tolist() == [*indptr.tolist(), len(by)]
        assert placed.items.tolist() == item[by].tolist()
        assert placed.highest == item.max()


text = st.text(max_size=12) | st.sampled_from(["a", "b", "aa", "u10", "u9", "ünïcode", "語", "\U0001f600x"])


@native
@settings(max_examples=200, deadline=None)
@given(words=st.lists(text, min_size=1, max_size=40), repeats=st.integers(1, 4), apart=st.booleans())
def test_strings_are_coded_by_their_sorted_order(words, repeats, apart):
    pa = pytest.importorskip("pyarrow")
    words = words * repeats if apart else [word for word in words for _ in range(repeats)]
    values = np.array(words, dtype=object)
    arrow = pa.array(["pad", *words]).slice(1)  # an array that does not start at its buffer's start
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native_backend, "SHORT_CUT_MIN_ROWS", 0)
        coded = [
            ids._encode_by_kernel(v)
            for v in (values, arrow, arrow.cast("large_string"), pa.chunked_array([arrow]))
        ]
    for found in coded:
        assert found is not None
        distinct, codes = found
        assert distinct.values.tolist() == sorted(set(words))
        assert codes.dtype == np.int32
        assert distinct.values[codes].tolist() == words


@native
def test_many_strings_of_every_length():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abé"), n)) for n in rng.integers(0, 30, 20_000)]
    found = kernels.code_strings(np.array(words, dtype=object))
    assert found is not None
    codes, texts = found
    distinct = texts.strings()
    assert distinct == sorted(set(words))
    assert [distinct[code] for code in codes.tolist()] == words


@native
@settings(max_examples=200, deadline=None)
@given(st.lists(text, min_size=1, max_size=30), st.lists(text, min_size=1, max_size=30))
def test_two_sets_of_text_are_united_as_ids_are(one, other):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native_backend, "SHORT_CUT_MIN_ROWS", 0)
        coded = [
            ids.encode(np.array(words, dtype=object), table="lists", column="item")[0]
            for words in (one, other)
        ]
    plain = [Ids(np.array(sorted(set(words)), dtype=object)) for words in (one, other)]
    mine, theirs = (a.union(b, what="item") for a, b in (coded, plain))
    assert isinstance(coded[0], ids.TextIds)
    assert mine[0].values.tolist() == theirs[0].values.tolist()
    for found, expected in zip(mine[1:], theirs[1:], strict=True):
        assert (found is None) == (expected is None)
        assert found is None or found.tolist() == expected.tolist()


@native
def test_ids_of_text_can_be_copied_and_meet_other_ids(monkeypatch):
    monkeypatch.setattr(native_backend, "SHORT_CUT_MIN_ROWS", 0)
    found, _ = ids.encode(np.array(["b", "é", "a"], dtype=object), table="lists", column="user")
    assert copy.deepcopy(found).values.tolist() == found.values.tolist() == ["a", "b", "é"]
    assert (found.kind, len(found), found.name(1)) == ("str", 3, "b")
    few = Ids(np.array(["b", "c"], dtype=object))
    assert found.union(few, what="user")[0].values.tolist() == ["a", "b", "c", "é"]
    assert few.union(found, what="user")[0].values.tolist() == ["a", "b", "c", "é"]
    with pytest.raises(IdTypeError):
        found.union(Ids(np.arange(3)), what="user")


@native
def test_arrow_text_that_is_no_utf8_is_refused_at_once(monkeypatch):
    pa = pytest.importorskip("pyarrow")
    monkeypatch.setattr(native_backend, "SHORT_CUT_MIN_ROWS", 0)
    damaged = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"a\xff")]
    )
    with pytest.raises(IdTypeError, match="not valid Unicode"):
        ids.encode_strings(damaged, table="lists", column="user")


@native
@pytest.mark.parametrize("order", native_backend.ORDERS)
@pytest.mark.parametrize("shuffled", [False, True])
def test_codes_are_placed_as_wider_numbers_are(order, shuffled):
    case, item, rank = grouped_rows(np.array([3, 1, 2000, 5, 4000]), 1)
    by = np.random.default_rng(0).permutation(len(case)) if shuffled else slice(None)
    columns = [column[by] for column in (case, item, rank)]
    wide = kernels.place_rows(*columns, order=order, limit=2**20)
    narrow = kernels.place_rows(
        *(c.astype(np.int32) for c in columns[:2]), columns[2], order=order, limit=2**20
    )
    assert wide is not None
    assert narrow is not None
    assert [part.tolist() for part in wide[:3]] == [part.tolist() for part in narrow[:3]]
    assert (wide[3], narrow[3], narrow.items.dtype) == (wide[3], wide[3], np.int32)
    below = [np.where(np.arange(len(case)) == 7, -1, c).astype(np.int32) for c in columns[1:2]]
    assert (
        kernels.place_rows(columns[0].astype(np.int32), *below, columns[2], order=order, limit=2**20) is None
    )


@native
@pytest.mark.parametrize("odd", [None, 3, float("nan"), True, b"x"])
def test_what_is_no_text_takes_the_way_that_names_it(odd, shortcut):
    values = np.array([f"u{i}" for i in range(20_000)], dtype=object)
    values[17_000] = odd
    assert kernels.code_strings(values) is None
    mine, other = shortcut(lambda: ids.encode(values, table="lists", column="user"))
    assert mine == other
    assert issubclass(mine[0], RecsysError)


@native
def test_text_that_is_no_unicode_is_named():
    values = np.array([f"u{i}" for i in range(20_000)], dtype=object)
    values[3] = "\ud800"
    with pytest.raises(IdTypeError, match="not valid Unicode"):
        ids.encode(values, table="lists", column="user")


floats = (
    st.floats(allow_nan=False, allow_infinity=False) | st.floats(0, 1) | st.sampled_from([1 / 3, 0.1, -0.0])
)


@settings(deadline=None)
@given(values=st.lists(floats, max_size=70), repeats=st.integers(1, 3))
def test_sums_are_exact_with_and_without_the_short_cut(values, repeats):
    array = np.array(values * repeats, dtype=np.float64)
    wanted = sum(map(Fraction, array.tolist()), Fraction(0))
    for least in (0, 2**62):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(native_backend, "SHORT_CUT_MIN_ROWS", least)
            assert exact_sum(array) == wanted
