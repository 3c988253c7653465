"""Values that no careful caller passes, the places where a caller could pass them, and how such a call ended.

A cell is one value at one place. It ends well as an error of recsys.errors with a short message, or as a
result that can be printed and whose metrics are within their bounds. Anything else is a defect: another
exception, a number out of bounds, a message without end, a call that does not return.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import math
import resource
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp

import recsys
from recsys.errors import RecsysError

Value = Callable[[], Any]
Entry = Callable[[Any], Callable[[], Any]]

LONGEST_MESSAGE = 4000
LONGEST_SECONDS = 5  # of computing
LONGEST_WAIT = 120  # seconds of a clock; the machine may be busy with others
MEMORY = 4 << 30  # bytes beyond what the process has already

# --- values ---------------------------------------------------------------------------------------------


class _Thing:
    def __init__(self, *_: Any) -> None:
        pass


class _Number(IntEnum):
    ONE = 1


class _Text(str):
    __slots__ = ()


class _Whole(int):
    pass


def _corrupt(data: list[float], indices: list[int], indptr: list[int], kind: Any = sp.csr_matrix) -> Any:
    """A sparse matrix of 3 x 5 whose indices SciPy has not looked at."""
    matrix = kind((3, 5))
    matrix.data = np.array(data)
    matrix.indices = np.array(indices, dtype=np.int32)
    matrix.indptr = np.array(indptr, dtype=np.int32)
    return matrix


def _corrupt_coo() -> Any:
    matrix = sp.coo_matrix(([0.9, 0.5], ([0, 1], [1, 2])), shape=(3, 5))
    matrix.coords = (np.array([0, 7], dtype=np.int32), np.array([1, -2], dtype=np.int32))
    return matrix


def _corrupt_arrow() -> Any:
    """Text whose offsets point beyond its bytes."""
    offsets = pa.py_buffer(np.array([0, 2, 90], dtype=np.int32).tobytes())
    texts = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"ab")])
    return pa.table({"user": pa.array([1, 2]), "item": texts})


def _own_tail() -> list[Any]:
    loop: list[Any] = [1]
    loop.append(loop)
    return loop


def _deep() -> list[Any]:
    value: list[Any] = [1]
    for _ in range(200):
        value = [value]
    return value


def _ragged_objects() -> Any:
    array = np.empty(2, dtype=object)
    array[:] = [[1, 2], [3]]
    return array


def _table(**columns: Any) -> Any:
    return pd.DataFrame(columns)


VALUES: dict[str, Value] = {
    "None": lambda: None,
    "True": lambda: True,
    "0": lambda: 0,
    "1": lambda: 1,
    "-1": lambda: -1,
    "2^31": lambda: 2**31,
    "2^63-1": lambda: 2**63 - 1,
    "2^63": lambda: 2**63,
    "-2^63-1": lambda: -(2**63) - 1,
    "10^400": lambda: 10**400,
    "2^1100": lambda: 2**1100,
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "-inf": lambda: -math.inf,
    "1.5": lambda: 1.5,
    "1e308": lambda: 1e308,
    "5e-324": lambda: 5e-324,
    "float32 nan": lambda: np.float32("nan"),
    "Decimal": lambda: Decimal("1.5"),
    "Decimal NaN": lambda: Decimal("NaN"),
    "Decimal sNaN": lambda: Decimal("sNaN"),
    "Decimal 1e999": lambda: Decimal("1e999"),
    "Fraction": lambda: Fraction(1, 3),
    "Fraction beyond float": lambda: Fraction(10**400, 3),
    "complex": lambda: 1 + 2j,
    "IntEnum": lambda: _Number.ONE,
    "int subclass": lambda: _Whole(1),
    "text": lambda: "abc",
    "text nan": lambda: "nan",
    "text 1_0": lambda: "1_0",
    "no text": lambda: "",
    "NUL": lambda: "a\0",
    "lone surrogate": lambda: "\ud800",
    "str subclass": lambda: _Text("abc"),
    "commas": lambda: "a," * 50_000,
    "blanks": lambda: " " * 100_000,
    "brackets": lambda: "(" * 50_000,
    "huge text": lambda: "x" * 100_000,
    "bytes": lambda: b"abc",
    "memoryview": lambda: memoryview(b"abc"),
    "[]": list,
    "{}": dict,
    "()": lambda: (),
    "set()": set,
    "empty array": lambda: np.zeros(0),
    "ragged": lambda: [[1, 2], [3]],
    "ragged floats": lambda: [[1.0, 2.0], (3.0,), 4.0],
    "nested": lambda: [[[1, 2], [3, 4]]],
    "deep": _deep,
    "own tail": _own_tail,
    "list of None": lambda: [None, None],
    "list of text": lambda: ["a", "b"],
    "mixed list": lambda: [1, "a", None, 2.5],
    "{1: None}": lambda: {1: None},
    "{None: 1}": lambda: {None: 1},
    "{1: {1: {1: 1}}}": lambda: {1: {1: {1: 1}}},
    "object array": lambda: np.array([1, "a", None], dtype=object),
    "ragged objects": _ragged_objects,
    "0-d": lambda: np.array(3),
    "0-d object": lambda: np.array(None, dtype=object),
    "3-d": lambda: np.ones((2, 2, 2)),
    "masked": lambda: np.ma.masked_equal([[1, 2], [3, 4]], 1),
    "all masked": lambda: np.ma.masked_all((2, 2)),
    "masked constant": lambda: np.ma.masked,
    "float matrix": lambda: np.array([[0.1, 0.9], [0.5, 0.2], [0.3, 0.3]]),
    "NaT": lambda: np.datetime64("NaT", "s"),
    "pandas NaT": lambda: pd.NaT,
    "pandas NA": lambda: pd.NA,
    "datetime64": lambda: np.datetime64("2020-01-01"),
    "timedelta64": lambda: np.timedelta64(5, "D"),
    "datetime array": lambda: np.array(["2020-01-01", "NaT"], dtype="datetime64[s]"),
    "datetime": lambda: dt.datetime(9999, 12, 31),  # noqa: DTZ001
    "Timestamp": lambda: pd.Timestamp("2020-01-01", tz="UTC"),
    "generator": lambda: (n for n in (1, 2)),
    "iterator": lambda: iter([(1, 2), (3,)]),
    "{1, 2}": lambda: {1, 2},
    "frozenset": lambda: frozenset({1, "a"}),
    "range": lambda: range(3),
    "class": lambda: _Thing,
    "object": object,
    "Ellipsis": lambda: ...,
    "module": lambda: math,
    "function": lambda: lambda *_: None,
    "CSR index beyond": lambda: _corrupt([0.9, 0.5], [7, 1], [0, 1, 2, 2]),
    "CSR index -1": lambda: _corrupt([0.9, 0.5], [-1, 1], [0, 1, 2, 2]),
    "CSR indptr falls": lambda: _corrupt([0.9, 0.5], [1, 2], [0, 9, 1, 2]),
    "CSR indptr short": lambda: _corrupt([0.9, 0.5], [1, 2], [0, 2]),
    "CSR indptr huge": lambda: _corrupt([0.9, 0.5], [1, 2], [0, 2**31 - 1, 2**31 - 1, 2**31 - 1]),
    "CSR data short": lambda: _corrupt([0.9], [1, 2, 3], [0, 1, 2, 3]),
    "CSC corrupt": lambda: _corrupt([0.9, 0.5], [8, -3], [0, 1, 2, 2, 2, 2], sp.csc_matrix),
    "COO corrupt": _corrupt_coo,
    "CSR complex": lambda: sp.csr_matrix(np.array([[1 + 2j, 0], [0, 1]])),
    "CSR nan": lambda: sp.csr_matrix(np.array([[math.nan, 0], [0, math.inf]])),
    "big-endian ints": lambda: np.array([[1, 2], [3, 4]], dtype=">i8"),
    "big-endian floats": lambda: np.array([0.5, 1.5], dtype=">f4"),
    "float16": lambda: np.array([[2049, 2048.0], [1, np.nan]], dtype=np.float16),
    "longdouble": lambda: np.array([1, 2], dtype=np.longdouble) / 3,
    "complex array": lambda: np.array([[1j, 2], [3, 4]]),
    "structured": lambda: np.array([(1, 2.0)], dtype=[("user", "i4"), ("item", "f8")]),
    "void": lambda: np.zeros(2, dtype="V8"),
    "S array": lambda: np.array([b"a", b"b"]),
    "uint64 array": lambda: np.array([2**64 - 1, 1], dtype=np.uint64),
    "Series": lambda: pd.Series([1, 2], index=[1, 2]),
    "Series of NA": lambda: pd.Series([1, pd.NA], dtype="Int64"),
    "Categorical": lambda: pd.Categorical([1.0, None, 2.0]),
    "table": lambda: _table(user=[1, 2], item=[1, 3]),
    "table of None": lambda: _table(user=[1, None], item=[None, 3]),
    "table of lists": lambda: _table(user=[1, 2], item=[[1], [2, 3]]),
    "table of scores nan": lambda: _table(user=[1, 2], item=[1, 3], score=[math.nan, 1.0]),
    "table of ranks": lambda: _table(user=[1, 2], item=[1, 3], rank=[2**63 - 1, 2**63 - 1]),
    "table of ranks 0": lambda: _table(user=[1, 2], item=[1, 3], rank=[0, -5]),
    "table twice named": lambda: pd.DataFrame([[1, 2, 3]], columns=["user", "item", "item"]),
    "table of levels": lambda: pd.DataFrame(
        [[1, 2]], columns=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])
    ),
    "table without rows": lambda: _table(user=[], item=[]),
    "table without columns": pd.DataFrame,
    "table of number names": lambda: pd.DataFrame({0: [1], 1: [2]}),
    "polars lists": lambda: pl.DataFrame({"user": [1], "item": [[1, 2]]}),
    "polars null": lambda: pl.DataFrame({"user": [None], "item": [None]}),
    "polars Decimal": lambda: pl.DataFrame({"user": [1], "item": [Decimal("1.5")]}),
    "polars Int128": lambda: pl.DataFrame({"user": [1], "item": pl.Series([2**100], dtype=pl.Int128)}),
    "polars duration": lambda: pl.DataFrame({"user": [1], "item": [dt.timedelta(1)]}),
    "polars struct": lambda: pl.DataFrame({"user": [1], "item": [{"a": 1}]}),
    "polars binary": lambda: pl.DataFrame({"user": [1], "item": [b"\xff"]}),
    "polars object": lambda: pl.DataFrame({"user": [1], "item": pl.Series([object()], dtype=pl.Object)}),
    "polars lazy": lambda: pl.LazyFrame({"user": [1, 2], "item": [1, 3]}),
    "polars scores": lambda: pl.DataFrame({"user": [1, 1], "item": [1, 3], "score": [math.inf, math.nan]}),
    "Arrow null": lambda: pa.table({"user": pa.nulls(2), "item": pa.nulls(2)}),
    "Arrow dictionary": lambda: pa.table(
        {"user": pa.array([1, 2]), "item": pa.array(["a", None]).dictionary_encode()}
    ),
    "Arrow decimal": lambda: pa.table(
        {"user": [1], "item": pa.array([Decimal(10) ** 60], pa.decimal256(70))}
    ),
    "Arrow map": lambda: pa.table(
        {"user": [1], "item": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8()))}
    ),
    "Arrow corrupt": _corrupt_arrow,
    "Arrow array": lambda: pa.array([1, None]),
    "tensor": lambda: _torch().tensor([[0.1, 0.9], [0.5, 0.2], [0.3, 0.3]]),
    "tensor bfloat16": lambda: _torch().tensor([[1.0, 2.0]], dtype=_torch().bfloat16),
    "tensor with gradient": lambda: _torch().ones(2, 2, requires_grad=True),
    "tensor sparse": lambda: _torch().eye(2).to_sparse(),
    "tensor complex": lambda: _torch().ones(2, dtype=_torch().complex64),
    "Evaluation": lambda: result(0),
}


def _torch() -> Any:
    import torch

    return torch


# --- entry points ---------------------------------------------------------------------------------------

LISTS = {1: [1, 2, 3], 2: [2, 3, 4]}
TRUTH = {1: {1: 2.0}, 2: {3: 1.0, 4: 3.0}}
METRICS = ["ndcg@2", "recall@2", "mrr"]
TRAIN = {1: [2, 5], 2: [5, 1]}
VECTORS = {1: [1.0, 0.0], 2: [0.5, 1.0], 3: [1.0, 1.0], 4: [0.0, 2.0], 5: [1.0, 3.0]}
RATINGS = {
    "user": [1, 1, 2, 2],
    "item": [1, 2, 1, 3],
    "rating": [1.0, 2.0, 3.0, 5.0],
    "prediction": [1.5, 2.0, 2.0, 4.0],
}
LOG = {"action": ["a", "b", "a", "b"], "reward": [1.0, 0.0, 0.5, 1.0], "propensity": [0.5, 0.5, 0.4, 0.6]}
EVENTS = {"user": [1, 1, 1, 2, 2, 2], "item": [1, 2, 3, 1, 2, 4], "time": [1, 2, 3, 4, 5, 6]}
CASES = [(0, 1, [0, 2]), (1, 2, [0, 1])]


@cache
def result(shift: int = 0) -> Any:
    """An ordinary result of twelve users, to compare with."""
    lists = {user: [1, 2, 3][shift:] + [4, 5][: user % 3] for user in range(12)}
    return recsys.evaluate(lists, {user: {1 + user % 4} for user in range(12)}, METRICS)


@cache
def grouped(shift: int = 0) -> Any:
    """The same with two groups of users."""
    lists = {user: [1, 2, 3][shift:] + [4, 5][: user % 3] for user in range(12)}
    by = {user: "ab"[user % 2] for user in range(12)}
    return recsys.evaluate(lists, {user: {1 + user % 4} for user in range(12)}, METRICS, by=by)


def factors(**changes: Any) -> Any:
    """A model of three users and six items."""
    return recsys.Factors(**{"users": np.eye(3), "items": np.arange(18.0).reshape(6, 3), **changes})


def changed(values: Mapping[str, list[Any]], column: str, value: Any, table: Any = pd.DataFrame) -> Any:
    """A table whose first cell of a column is the value."""
    return table({**values, column: [value, *values[column][1:]]})


def _evaluate(lists: Any = LISTS, truth: Any = TRUTH, metrics: Any = METRICS, **options: Any) -> Any:
    return partial(recsys.evaluate, lists, truth, metrics, **options)


def _option(name: str, metrics: Any = METRICS, **others: Any) -> Entry:
    return lambda v: _evaluate(metrics=metrics, **others, **{name: v})


def _option_by_id(name: str, metrics: Any = METRICS, ids: Any = (1, 2, 3, 4, 5), **others: Any) -> Entry:
    return lambda v: _evaluate(metrics=metrics, **others, **{name: dict.fromkeys(ids, v)})


def _then(make: Callable[..., Any], *arguments: Any, **options: Any) -> Callable[[], Any]:
    """Make a model and evaluate it."""
    return lambda: recsys.evaluate(make(*arguments, **options), {0: {1: 2.0}, 1: {2: 1.0}}, METRICS)


def _of_scalars(table: Any, columns: Mapping[str, list[Any]]) -> Any:
    """A table of polars or Arrow, whose own readers end the process for some cells that hold others."""
    for cell in (cell for cells in columns.values() for cell in cells):
        holds_others = hasattr(cell, "__len__") and not isinstance(cell, str | bytes)
        if holds_others or isinstance(cell, Decimal | sp.sparray | sp.spmatrix):
            raise TypeError("not a cell of a table")
    return table(columns)


def _frame_entries() -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    pair = {"user": [1, 1, 2], "item": [1, 2, 3]}
    tables = {
        "pandas": pd.DataFrame,
        "polars": partial(_of_scalars, partial(pl.DataFrame, strict=False)),
        "Arrow": partial(_of_scalars, pa.table),
    }
    for kind, table in tables.items():
        for column, extra in (
            ("user", {}),
            ("item", {}),
            ("score", {"score": [0.5, 0.25, 1.0]}),
            ("rank", {"rank": [1, 2, 1]}),
        ):
            entries[f"evaluate lists {kind} {column}"] = lambda v, c=column, e=extra, t=table: _evaluate(
                changed({**pair, **e}, c, v, t)
            )
        for column, extra in (("grade", {"grade": [1.0, 2.0, 1.0]}), ("time", {"time": [1, 2, 3]})):
            entries[f"evaluate truth {kind} {column}"] = lambda v, c=column, e=extra, t=table: _evaluate(
                truth=changed({**pair, **e}, c, v, t)
            )
        entries[f"split {kind} time"] = lambda v, t=table: partial(
            recsys.split, changed(EVENTS, "time", v, t), "leave_last"
        )
    return entries


EVALUATE: dict[str, Entry] = {
    "evaluate lists": lambda v: _evaluate(lists=v),
    "evaluate lists of a user": lambda v: _evaluate({1: v, 2: [2, 3]}),
    "evaluate lists item": lambda v: _evaluate({1: [v, 2], 2: [2, 3]}),
    "evaluate lists user": lambda v: _evaluate({v: [1, 2], 2: [2, 3]}),
    "evaluate lists score": lambda v: _evaluate({1: [(1, v), (2, 0.5)]}),
    "evaluate lists pair": lambda v: _evaluate({1: [v, (2, 0.5)]}),
    "evaluate lists rows": lambda v: _evaluate([[1, 2], v]),
    "evaluate truth": lambda v: _evaluate(truth=v),
    "evaluate truth of a user": lambda v: _evaluate(truth={1: v, 2: {3}}),
    "evaluate truth item": lambda v: _evaluate(truth={1: {v}, 2: {3}}),
    "evaluate truth user": lambda v: _evaluate(truth={v: {1}, 2: {3}}),
    "evaluate truth grade": lambda v: _evaluate(truth={1: {1: v, 2: 1.0}}),
    "evaluate truth grade of dcg": lambda v: _evaluate(truth={1: {1: v, 2: v}}, metrics=["dcg@3", "err@3"]),
    "evaluate metrics": lambda v: _evaluate(metrics=v),
    "evaluate metric": lambda v: _evaluate(metrics=[v]),
    "evaluate metric parameter": lambda v: _evaluate(
        metrics=[f"rbp(p={v if isinstance(v, str) else repr(v)})"]
    ),
    "evaluate k": lambda v: _evaluate(metrics="ndcg", k=v),
    "evaluate one k": lambda v: _evaluate(metrics="ndcg", k=[v]),
    "evaluate conventions": _option("conventions"),
    "evaluate seen": _option("seen"),
    "evaluate seen of a user": _option_by_id("seen", ids=(1,)),
    "evaluate train": _option("train", ["novelty@2", "tail_share@2"]),
    "evaluate train of a user": _option_by_id("train", ["novelty@2", "tail_share@2"], ids=(1,)),
    "evaluate by": _option("by"),
    "evaluate by label": _option_by_id("by"),
    "evaluate by function": lambda v: _evaluate(by=lambda _: v),
    "evaluate by column": lambda v: _evaluate(users={"g": {1: v, 2: "x"}}, by="g"),
    "evaluate columns": _option("columns"),
    "evaluate column": lambda v: _evaluate(columns={"user": v}),
    "evaluate column of a table": lambda v: _evaluate(_table(u=[1], item=[2]), columns={"user": v}),
    "evaluate catalogue": _option("catalogue", ["coverage@2", "accuracy@2"]),
    "evaluate catalogue item": lambda v: _evaluate(metrics=["coverage@2"], catalogue=[1, 2, 3, 4, v]),
    "evaluate full_ranking": _option("full_ranking", ["auc"]),
    "evaluate clusters": _option("clusters"),
    "evaluate cluster": _option_by_id("clusters"),
    "evaluate case_weights": _option("case_weights"),
    "evaluate case_weight": _option_by_id("case_weights"),
    "evaluate item_weights": _option("item_weights"),
    "evaluate item_weight": _option_by_id("item_weights"),
    "evaluate popularity": _option("popularity", ["novelty@2"]),
    "evaluate popularity of an item": _option_by_id("popularity", ["novelty@2"]),
    "evaluate items": _option("items", ["kinds(column=c)@2"]),
    "evaluate items cell": lambda v: _evaluate(
        metrics=["kinds(column=c)@2", "value(column=c)@2"],
        items={"c": {**dict.fromkeys((2, 3, 4), 1.0), 1: v}},
    ),
    "evaluate users": _option("users", by="g"),
    "evaluate embeddings": _option("embeddings", ["ild@2"]),
    "evaluate embedding": lambda v: _evaluate(metrics=["ild@2"], embeddings={**VECTORS, 1: v}),
    "evaluate embedding number": lambda v: _evaluate(metrics=["ild@2"], embeddings={**VECTORS, 1: [v, 1.0]}),
    "evaluate profiles": _option("profiles", ["alignment@2"], embeddings=VECTORS),
    "evaluate profile": _option_by_id("profiles", ["alignment@2"], embeddings=VECTORS),
    "evaluate reference": _option("reference", ["overlap@2"]),
    "evaluate intents": _option("intents", ["alpha_ndcg@2"]),
    "evaluate intents of a user": _option_by_id("intents", ["alpha_ndcg@2"]),
    "evaluate intent": lambda v: _evaluate(metrics=["alpha_ndcg@2"], intents={1: {1: [v]}, 2: {3: [1]}}),
    "evaluate items_of": lambda v: _evaluate({0: ["x"], 1: ["y"]}, {0: {1}}, items_of=v),
    "evaluate items_of item": lambda v: _evaluate({0: ["x"]}, {0: {1}}, items_of={"x": v, "y": 1}),
    "evaluate items_of items": lambda v: _evaluate({0: ["x"]}, {0: {1}}, items_of={"x": [v, 1]}),
    "evaluate items_of code": lambda v: _evaluate({0: [(1, 2)]}, {0: {1}}, items_of={(1, 2): [1, v]}),
    "evaluate items_of lists": lambda v: _evaluate({0: v, 1: [(1, 2)]}, {0: {1}}, items_of={(1, 2): 1}),
    "titles table": lambda v: partial(recsys.titles, v),
    "titles item": lambda v: partial(recsys.titles, {"a": v, "b": 1}),
    "titles rule": lambda v: partial(recsys.titles, {"a": 1}, rule=v),
    "titles threshold": lambda v: partial(recsys.titles, {"a": 1}, rule="tokens", threshold=v),
    "evaluate exclude": lambda v: _evaluate(factors(), {0: {1}}, exclude=v),
    "evaluate eligible": lambda v: _evaluate(factors(), {0: {1}}, eligible=v),
    "evaluate seen of factors": lambda v: _evaluate(factors(), {0: {1}}, seen=v),
    "evaluate backend": _option("backend"),
    "evaluate threads": _option("threads"),
    "evaluate progress": lambda v: _evaluate(factors(), {0: {1}}, progress=v),
    "evaluate stop_when": _option("stop_when"),
}

OPTIONS: dict[str, Entry] = {
    **{
        f"Conventions {name}": lambda v, name=name: (
            lambda: recsys.evaluate(LISTS, TRUTH, METRICS, conventions={name: v})
        )
        for name in (
            "ties",
            "relevant_from",
            "gain",
            "discount",
            "max_grade",
            "no_truth",
            "per_metric",
            "duplicates",
        )
    },
    **{
        f"StopWhen {name}": lambda v, name=name: (
            lambda: recsys.evaluate(
                LISTS, TRUTH, METRICS, stop_when=recsys.StopWhen(**{"half_width": 0.1, name: v})
            )
        )
        for name in ("half_width", "threshold", "against", "metrics", "confidence", "block", "rng", "about")
    },
}

LIST: dict[str, Entry] = {
    "score_list list": lambda v: partial(recsys.score_list, v, {3, 1}, "ndcg@10"),
    "score_list item": lambda v: partial(recsys.score_list, [v, 1], {3, 1}, "ndcg@10"),
    "score_list score": lambda v: partial(recsys.score_list, [(1, v), (2, 0.5)], {3, 1}, "ndcg@10"),
    "score_list relevant": lambda v: partial(recsys.score_list, [1, 2], v, "ndcg@10"),
    "score_list relevant item": lambda v: partial(recsys.score_list, [1, 2], {v}, "ndcg@10"),
    "score_list grade": lambda v: partial(recsys.score_list, [1, 2], {1: v, 2: 1.0}, "ndcg@10"),
    "score_list grade of err": lambda v: partial(recsys.score_list, [1, 2], {1: v, 3: 2.0}, "err@10"),
    "score_list grade of a miss": lambda v: partial(recsys.score_list, [1, 2], {1: 1.0, 3: v}, "dcg@10"),
    "score_list metric": lambda v: partial(recsys.score_list, [1, 2], {1}, v),
    "score_list conventions": lambda v: partial(recsys.score_list, [1, 2], {1}, "mrr", conventions=v),
    "score_list catalogue": lambda v: partial(recsys.score_list, [1, 2], {1}, "accuracy@2", catalogue=v),
    "score_list full_ranking": lambda v: partial(recsys.score_list, [1, 2], {1}, "auc", full_ranking=v),
    "Evaluator metrics": lambda v: lambda: recsys.Evaluator(v).update(LISTS, TRUTH).result(),
    "Evaluator conventions": lambda v: (
        lambda: recsys.Evaluator(METRICS, conventions=v).update(LISTS, TRUTH).result()
    ),
    "Evaluator k": lambda v: lambda: recsys.Evaluator("ndcg", k=v).update(LISTS, TRUTH).result(),
    "Evaluator catalogue": lambda v: (
        lambda: recsys.Evaluator(["coverage@2"], catalogue=v).update(LISTS, TRUTH).result()
    ),
    "Evaluator columns": lambda v: lambda: recsys.Evaluator(METRICS, columns=v).update(LISTS, TRUTH).result(),
    "Evaluator train": lambda v: (
        lambda: recsys.Evaluator(["novelty@2"], train=v).update(LISTS, TRUTH).result()
    ),
    "Evaluator lists": lambda v: lambda: recsys.Evaluator(METRICS).update(v, TRUTH).result(),
    "Evaluator truth": lambda v: lambda: recsys.Evaluator(METRICS).update(LISTS, v).result(),
    "Evaluator merge": lambda v: lambda: recsys.Evaluator(METRICS).merge(v),
}

MODELS: dict[str, Entry] = {
    "Factors users": lambda v: _then(factors, users=v),
    "Factors items": lambda v: _then(factors, items=v),
    "Factors number": lambda v: _then(factors, users=[[v, 1.0, 2.0], [1.0, 1.0, 1.0]]),
    "Factors user_ids": lambda v: _then(factors, user_ids=v),
    "Factors item_ids": lambda v: _then(factors, item_ids=v),
    "Factors item_id": lambda v: _then(factors, item_ids=[v, 1, 2, 3, 4, 5]),
    "Factors item_bias": lambda v: _then(factors, item_bias=v),
    "Factors one bias": lambda v: _then(factors, item_bias=[v, 0.0, 0.0, 0.0, 0.0, 0.0]),
    "Scores": lambda v: _then(recsys.Scores, v),
    "Scores number": lambda v: _then(recsys.Scores, [[v, 1.0, 2.0], [1.0, 2.0, 3.0]]),
    "Scores of a function": lambda v: _then(recsys.Scores, lambda _: v, n_users=2, n_items=3),
    "Scores n_users": lambda v: _then(
        recsys.Scores, lambda rows: np.ones((len(rows), 3)), n_users=v, n_items=3
    ),
    "Scores n_items": lambda v: _then(
        recsys.Scores, lambda rows: np.ones((len(rows), 3)), n_users=2, n_items=v
    ),
    "Scores item_ids": lambda v: _then(recsys.Scores, np.ones((2, 3)), item_ids=v),
    "from_model": lambda v: partial(recsys.from_model, v),
    "from_model n_items": lambda v: _then(recsys.from_model, lambda u, i: u * 1.0 + i, n_users=2, n_items=v),
    "from_model user_ids": lambda v: _then(
        recsys.from_model, lambda u, i: u * 1.0 + i, user_ids=v, n_items=3
    ),
    "recommend source": lambda v: partial(recsys.recommend, v, 2),
    "recommend k": lambda v: partial(recsys.recommend, factors(), v),
    "recommend users": lambda v: partial(recsys.recommend, factors(), 2, users=v),
    "recommend user": lambda v: partial(recsys.recommend, factors(), 2, users=[v]),
    "recommend seen": lambda v: partial(recsys.recommend, factors(), 2, seen=v),
    "recommend exclude": lambda v: partial(recsys.recommend, factors(), 2, exclude=v),
    "recommend eligible": lambda v: partial(recsys.recommend, factors(), 2, eligible=v),
    "recommend backend": lambda v: partial(recsys.recommend, factors(), 2, backend=v),
    "recommend threads": lambda v: partial(recsys.recommend, factors(), 2, threads=v),
    "evaluate_candidates model": lambda v: partial(recsys.evaluate_candidates, v, CASES),
    "evaluate_candidates score": lambda v: partial(
        recsys.evaluate_candidates, ([v, 0.5], [[0.1, 0.2], [0.3, 0.4]]), CASES
    ),
    "evaluate_candidates of a function": lambda v: partial(recsys.evaluate_candidates, lambda *_: v, CASES),
    "evaluate_candidates cases": lambda v: partial(recsys.evaluate_candidates, np.eye(2, 3), v),
    "evaluate_candidates case": lambda v: partial(recsys.evaluate_candidates, np.eye(2, 3), [v, CASES[1]]),
    "evaluate_candidates user": lambda v: partial(
        recsys.evaluate_candidates, np.eye(2, 3), [(v, 1, [0, 2]), CASES[1]]
    ),
    "evaluate_candidates positive": lambda v: partial(
        recsys.evaluate_candidates, np.eye(2, 3), [(0, v, [0, 2]), CASES[1]]
    ),
    "evaluate_candidates negatives": lambda v: partial(
        recsys.evaluate_candidates, np.eye(2, 3), [(0, 1, v), CASES[1]]
    ),
    **{
        f"evaluate_candidates {name}": lambda v, name=name: partial(
            recsys.evaluate_candidates, lambda u, i: u * 1.0 + i, CASES, **{name: v}
        )
        for name in ("metrics", "k", "conventions", "duplicates", "device", "autocast", "batch")
    },
}

COMPARISON: dict[str, Entry] = {
    "compare": lambda v: partial(recsys.compare, v),
    "compare of one": lambda v: partial(recsys.compare, {"a": result(), "b": v}),
    "compare name": lambda v: partial(recsys.compare, {v: result(), "b": result(1)}),
    **{
        f"compare {name}": lambda v, name=name: partial(
            recsys.compare, {"a": result(), "b": result(1)}, **{name: v}
        )
        for name in (
            "baseline",
            "metrics",
            "test",
            "interval",
            "effect",
            "confidence",
            "margin",
            "no_worse_than",
            "rope",
            "tie",
            "runs",
            "n_resamples",
            "rng",
            "covariates",
            "strata",
            "stratum_shares",
            "correction",
        )
    },
    "gate new": lambda v: partial(recsys.gate, v, result(), {"mrr": 0.1}),
    "gate against": lambda v: partial(recsys.gate, result(), v, {"mrr": 0.1}),
    "gate margins": lambda v: partial(recsys.gate, result(), result(1), v),
    "gate margin": lambda v: partial(recsys.gate, result(), result(1), {"mrr": v}),
    "gate metric": lambda v: partial(recsys.gate, result(), result(1), {v: 0.1}),
    "gate confidence": lambda v: partial(recsys.gate, result(), result(1), {"mrr": 0.1}, confidence=v),
    **{
        f"gate {name}": lambda v, name=name: partial(
            recsys.gate, grouped(), grouped(1), {"mrr": 0.1}, **{"groups": {"group": {"mrr": 0.1}}, name: v}
        )
        for name in ("groups", "small", "missing")
    },
    "intervals by": lambda v: partial(grouped().intervals, by=v),
    "rank results": lambda v: partial(recsys.rank, v),
    "rank result": lambda v: partial(recsys.rank, {"a": result(), "b": v}),
    "rank task": lambda v: partial(recsys.rank, {"one": {"a": result(), "b": result(1)}, "two": v}),
    **{
        f"rank {name}": lambda v, name=name: partial(
            recsys.rank, {"a": result(), "b": result(1)}, **{name: v}
        )
        for name in ("metric", "confidence", "lower_is_better", "columns", "n_resamples", "rng")
    },
    "explain": lambda v: partial(recsys.explain, result(), v),
    "race models": lambda v: partial(recsys.race, v, TRUTH, "mrr"),
    "race model": lambda v: partial(recsys.race, {"a": LISTS, "b": v}, TRUTH, "mrr"),
    "race truth": lambda v: partial(recsys.race, {"a": LISTS, "b": LISTS}, v, "mrr"),
    "race metrics": lambda v: partial(recsys.race, {"a": LISTS, "b": LISTS}, TRUTH, v),
    "race baseline": lambda v: partial(recsys.race, {"a": LISTS, "b": LISTS}, TRUTH, "mrr", baseline=v),
    "race stop_when": lambda v: partial(recsys.race, {"a": LISTS, "b": LISTS}, TRUTH, "mrr", stop_when=v),
    "history folder": lambda v: partial(recsys.history, v),
    "load": lambda v: partial(recsys.load, v),
    "report results": lambda v: partial(recsys.report.report_html, v),
}

DATA: dict[str, Entry] = {
    "read_file": lambda v: partial(recsys.read_file, v),
    "read_factors": lambda v: partial(recsys.read_factors, v, v),
    "read_lists": lambda v: partial(recsys.read_lists, v),
    "read_interactions": lambda v: partial(recsys.read_interactions, v),
    "split data": lambda v: partial(recsys.split, v, "leave_last"),
    "split how": lambda v: partial(recsys.split, pd.DataFrame(EVENTS), v),
    **{
        f"split {how} {name}": lambda v, how=how, name=name: partial(
            recsys.split,
            pd.DataFrame(EVENTS),
            how,
            **{"length": 2, name: v} if how == "rolling_windows" else {name: v},
        )
        for how, name in (
            ("random_ratio", "test"),
            ("random_ratio", "validation"),
            ("random_ratio", "seed"),
            ("k_fold", "n_folds"),
            ("k_fold", "by"),
            ("leave_last", "n"),
            ("leave_last", "columns"),
            ("leave_one_out", "which"),
            ("global_temporal", "test"),
            ("global_temporal", "at"),
            ("rolling_windows", "length"),
            ("rolling_windows", "n_windows"),
            ("rolling_windows", "step"),
            ("unseen_users", "known"),
        )
    },
    "audit train": lambda v: partial(recsys.audit, v, TRUTH),
    "audit test": lambda v: partial(recsys.audit, TRAIN, v),
    "audit lists": lambda v: partial(recsys.audit, TRAIN, TRUTH, v),
    "audit items": lambda v: partial(recsys.audit, TRAIN, TRUTH, LISTS, v),
    **{
        f"audit {name}": lambda v, name=name: partial(recsys.audit, TRAIN, TRUTH, LISTS, **{name: v})
        for name in (
            "models",
            "popularity",
            "sampled",
            "k",
            "metrics",
            "conventions",
            "checks",
            "examples",
            "columns",
        )
    },
    "negatives positives": lambda v: partial(recsys.negatives.sample, v, 1),
    "negatives n": lambda v: partial(recsys.negatives.sample, TRAIN, v),
    "negatives catalogue": lambda v: partial(recsys.negatives.sample, TRAIN, 1, catalogue=v),
    "popularity scores": lambda v: partial(recsys.baselines.popularity, v, users=[1]),
    "popularity score": lambda v: partial(recsys.baselines.popularity, {1: v, 2: 1.0}, users=[1]),
}

RATING: dict[str, Entry] = {
    "evaluate_ratings table": lambda v: partial(recsys.evaluate_ratings, v),
    "evaluate_ratings predictions": lambda v: partial(recsys.evaluate_ratings, v, [1.0, 2.0]),
    "evaluate_ratings prediction": lambda v: partial(recsys.evaluate_ratings, [v, 1.0], [1.0, 2.0]),
    "evaluate_ratings truth": lambda v: partial(recsys.evaluate_ratings, [1.0, 2.0], v),
    "evaluate_ratings rating": lambda v: partial(recsys.evaluate_ratings, changed(RATINGS, "rating", v)),
    "evaluate_ratings scale end": lambda v: partial(
        recsys.evaluate_ratings, [1.0, 2.0], [1.0, 3.0], scale=(1, v), clip=True
    ),
    **{
        f"evaluate_ratings {name}": lambda v, name=name: partial(
            recsys.evaluate_ratings, pd.DataFrame(RATINGS), **{name: v}
        )
        for name in ("metrics", "scale", "clip", "missing", "by", "columns")
    },
    **{
        f"sampled {name}": lambda v, name=name: partial(
            recsys.sampled.estimate,
            **{"ranks": [1, 5, 9], "n_negatives": 20, "n_items": 100, "metric": "ndcg@10", name: v},
        )
        for name in (
            "ranks",
            "n_negatives",
            "n_items",
            "metric",
            "method",
            "tied",
            "replacement",
            "gamma",
            "prior",
            "clusters",
            "confidence",
            "seed",
        )
    },
    "sampled rank": lambda v: partial(recsys.sampled.estimate, [v, 2], 20, 100),
    **{
        f"debias {name}": lambda v, name=name: partial(
            recsys.debias.evaluate, LISTS, TRUTH, **{"metrics": ["recall@2"], "train": TRAIN, name: v}
        )
        for name in (
            "metrics",
            "propensities",
            "train",
            "power",
            "clip",
            "n_relevant",
            "k",
            "estimators",
            "confidence",
        )
    },
    "debias propensity": lambda v: partial(
        recsys.debias.evaluate, LISTS, TRUTH, ["recall@2"], propensities=dict.fromkeys(range(6), v)
    ),
    "off_policy log": lambda v: partial(recsys.debias.off_policy, v, {"a": 0.5, "b": 0.5}),
    "off_policy policy": lambda v: partial(recsys.debias.off_policy, pd.DataFrame(LOG), v),
    "off_policy chance": lambda v: partial(recsys.debias.off_policy, pd.DataFrame(LOG), {"a": v, "b": 0.5}),
    "off_policy reward": lambda v: partial(
        recsys.debias.off_policy, changed(LOG, "reward", v), {"a": 0.5, "b": 0.5}
    ),
    "off_policy clip": lambda v: partial(
        recsys.debias.off_policy, pd.DataFrame(LOG), {"a": 0.5, "b": 0.5}, clip=v
    ),
}

RUN = {1: [(1, 0.9), (2, 0.5)], 2: [(3, 0.8), (4, 0.1)]}
VISITS = {"user": [*"abcdefgh"], "item": [*"xyxyxyxy"], "score": [1.0, 0.0, 2.0, 1.0, 0.0, 0.0, 1.0, 3.0]}

OTHERS: dict[str, Entry] = {
    "fuse runs": lambda v: partial(recsys.fuse, v),
    "fuse run": lambda v: partial(recsys.fuse, [RUN, v]),
    "fuse score": lambda v: partial(recsys.fuse, [RUN, {1: [(1, v), (2, 0.5)]}], "comb_sum"),
    **{
        f"fuse {name}": lambda v, name=name: partial(recsys.fuse, [RUN, LISTS], **{name: v})
        for name in ("method", "norm", "missing", "columns", "k")
    },
    "fuse weights": lambda v: partial(recsys.fuse, [RUN, LISTS], "wsum", weights=v),
    "fuse trained": lambda v: partial(recsys.fuse, [RUN, RUN], "mapfuse", map_scores=v),
    "fuse trained of a run": lambda v: partial(recsys.fuse, [RUN, RUN], "posfuse", probs=[v, v]),
    "tune_fusion runs": lambda v: partial(recsys.tune_fusion, v, TRUTH),
    "tune_fusion run": lambda v: partial(recsys.tune_fusion, [RUN, v], TRUTH),
    "tune_fusion truth": lambda v: partial(recsys.tune_fusion, [RUN, RUN], v, trials=[(0.5, 0.5)]),
    **{
        f"tune_fusion {name}": lambda v, name=name: partial(
            recsys.tune_fusion, [RUN, RUN], TRUTH, **{"trials": [(0.5, 0.5), (0.1, 0.9)], name: v}
        )
        for name in ("method", "metric", "norm", "conventions", "trials", "missing", "columns")
    },
    "ab frame": lambda v: partial(recsys.ab, v, unit="user", variant="item", metric="score"),
    **{
        f"ab of {column}": lambda v, column=column: partial(
            recsys.ab, changed(VISITS, column, v), unit="user", variant="item", metric="score"
        )
        for column in VISITS
    },
    **{
        f"ab {name}": lambda v, name=name: partial(
            recsys.ab,
            pd.DataFrame(VISITS),
            **{"unit": "user", "variant": "item", "metric": "score", name: v},
        )
        for name in (
            "unit",
            "variant",
            "metric",
            "control",
            "shares",
            "covariate",
            "sequential",
            "expected_effect",
            "correction",
            "confidence",
            "mixed",
        )
    },
    "conform implementation": lambda v: partial(recsys.conform, v, "mrr", decisions=[]),
    "conform answer": lambda v: partial(recsys.conform, lambda *_, **__: v, "mrr", decisions=[]),
    **{
        f"conform {name}": lambda v, name=name: partial(
            recsys.conform, lambda *_, **__: 0.5, **{"metrics": "mrr", "decisions": [], name: v}
        )
        for name in ("decisions", "tolerance", "timeout")
    },
    "conform metric": lambda v: partial(recsys.conform, lambda *_, **__: 0.5, [v], decisions=[]),
    "identify implementation": lambda v: partial(recsys.identify, v, "mrr"),
    "identify answer": lambda v: partial(recsys.identify, lambda *_, **__: v, "mrr"),
    "identify answers": lambda v: partial(recsys.identify, metric="mrr", answers=v),
    **{
        f"identify {name}": lambda v, name=name: partial(
            recsys.identify, lambda *_, **__: 0.5, **{"metric": "mrr", name: v}
        )
        for name in ("metric", "tolerance", "timeout")
    },
    "bench data": lambda v: partial(recsys.bench, v, baselines=["popularity"], trials=1),
    "bench model": lambda v: partial(
        recsys.bench, pd.DataFrame(EVENTS), models={"mine": v}, baselines=["popularity"], trials=1
    ),
    **{
        f"bench {name}": lambda v, name=name: partial(
            recsys.bench, pd.DataFrame(EVENTS), **{"baselines": ["popularity"], "trials": 1, name: v}
        )
        for name in (
            "models",
            "split",
            "baselines",
            "headline",
            "items",
            "trials",
            "relevant_from",
            "columns",
            "ids",
            "seed",
        )
    },
}

ENTRIES: dict[str, Entry] = {
    **EVALUATE,
    **OPTIONS,
    **_frame_entries(),
    **LIST,
    **MODELS,
    **COMPARISON,
    **DATA,
    **RATING,
    **OTHERS,
}

# --- how a call ended -----------------------------------------------------------------------------------


class Defect(NamedTuple):
    """A cell that ended badly: what happened, and the last line of ours it came through."""

    what: str
    where: str


class Hang(BaseException):
    """The call took too long; no `except Exception` may swallow it."""


def outcome(entry: Entry, value: Value) -> Defect | str:
    """How one cell ended: "error", "result" or a Defect; "no cell" if the value cannot be put there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call = entry(value())
        except Exception:  # noqa: BLE001 - another library refused to build such a value
            return "no cell"
        return ended(call)


def ended(call: Callable[[], Any]) -> Defect | str:
    """How a call ended."""
    try:
        with _alarms():
            problem = problem_of(call())
    except RecsysError as error:
        text = str(error)
        if len(text) > LONGEST_MESSAGE:
            return Defect(f"message of {len(text):,} letters", _place(error))
        return "error"
    except Hang as error:
        return Defect(str(error), _place(error))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of polars is no Exception
        return Defect(f"{type(error).__name__}: {str(error)[:80]!r}", _place(error))
    return Defect(problem, "result") if problem else "result"


def problem_of(answer: Any) -> str | None:
    """What is wrong with an answer: a metric that is not finite or out of bounds.

    A metric without a value is NaN: that of no case, or of none with a weight. A plain number is a metric of
    one list with something relevant, or a sum of them: finite, and at least 0.
    """
    if isinstance(answer, recsys.Evaluation):
        for request in answer.requests:
            value, (low, high) = answer.overall[str(request)], request.metric.bounds
            if math.isnan(value):
                column, weights = answer.per_case.columns.get(str(request)), answer.per_case.weights
                weighed = weights is None or np.nansum(weights) > 0  # without any weight there is no mean
                if column is not None and not np.isnan(column).all() and weighed:
                    return f"{request} is nan"
            elif not low <= value <= high or math.isinf(value):
                return f"{request} is {value!r}, outside {low} to {high}"
        repr(answer)
    elif isinstance(answer, float) and not 0 <= answer < math.inf:
        return f"the value is {answer!r}"
    else:
        repr(answer)
    return None


def _place(error: BaseException) -> str:
    """The last line of the library that an exception came through."""
    folder = f"{Path(recsys.__file__).parent}/"
    ours = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(folder)]
    if not ours:
        return "outside the library"
    return f"{ours[-1].filename.removeprefix(folder)}:{ours[-1].lineno}"


@contextlib.contextmanager
def _alarms() -> Iterator[None]:
    """A Hang where a call computes or waits too long; an alarm that ran before, as pytest's, runs on."""
    alarms = (
        (signal.SIGPROF, signal.ITIMER_PROF, LONGEST_SECONDS, time.process_time),
        (signal.SIGALRM, signal.ITIMER_REAL, LONGEST_WAIT, time.monotonic),
    )

    def ring(number: int, _: Any) -> None:
        computed = number == signal.SIGPROF
        raise Hang(
            f"computes more than {LONGEST_SECONDS} s" if computed else f"takes more than {LONGEST_WAIT} s"
        )

    before = [
        (signal.signal(number, ring), signal.setitimer(timer, seconds)[0], clock())
        for number, timer, seconds, clock in alarms
    ]
    try:
        yield
    finally:
        for (number, timer, _, clock), (handler, left, began) in zip(alarms, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)
            if left:
                signal.setitimer(timer, max(left - (clock() - began), 0.001))


@contextlib.contextmanager
def limited_memory(size: int = MEMORY) -> Iterator[None]:
    """At most so many bytes more than now, so that a hostile size cannot take the machine down."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = Path("/proc/self/statm")
    now = int(pages.read_text().split()[0]) * resource.getpagesize() if pages.exists() else 0
    if now:
        resource.setrlimit(resource.RLIMIT_AS, (now + size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without warnings, and without what polars prints about its panics."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def warm_up() -> None:
    """Import what a first call would: neither the alarm nor the limit on memory should meet an import."""
    _torch().tensor([1.0]).numpy()
    for entry in ("evaluate_candidates of a function", "evaluate by", "compare", "split data", "audit train"):
        outcome(ENTRIES[entry], VALUES["1"])
    pd.DataFrame(EVENTS).to_dict()


def cells() -> Iterator[tuple[str, str]]:
    """Every place with every value."""
    return product(ENTRIES, VALUES)
