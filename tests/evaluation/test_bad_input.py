"""Wrong input is refused with a clear message, or counted if going on is right; never a wrong number.

Each row of a table is one mistake, the error it must become, and what its message has to name: where it was
found (column, row or id), what was expected, what to do.
"""

from __future__ import annotations

import inspect
import math
import pickle
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import recsys
from recsys import errors
from recsys.conventions.decisions import Conventions
from recsys.errors import (
    ColumnError,
    ConventionError,
    CutoffError,
    DuplicateError,
    FileError,
    FloatIdWarning,
    IdTypeError,
    InputError,
    MergeError,
    NotDefinedError,
    RecsysError,
    TieWarning,
    UnknownNameError,
)
from recsys.metrics.registry import METRICS

LISTS = {1: ["a", "b"], 2: ["b", "c"]}
TRUTH = {1: {"a"}, 2: {"c"}}


class Bad(NamedTuple):
    what: str
    call: Callable[[], Any]
    error: type[RecsysError]
    names: tuple[str, ...]


def run(lists: Any = LISTS, truth: Any = TRUTH, metrics: Any = "ndcg@10", **options: Any) -> Any:
    return recsys.evaluate(lists, truth, metrics=metrics, **options)


def lists_frame(**changes: Any) -> pd.DataFrame:
    columns = {"user": [1, 1, 2, 2], "item": ["a", "b", "b", "c"], "score": [2.0, 1.0, 2.0, 1.0], **changes}
    return pd.DataFrame({name: values for name, values in columns.items() if values is not None})


def truth_frame(**changes: Any) -> pd.DataFrame:
    columns = {"user": [1, 2], "item": ["a", "c"], "grade": [1.0, 2.0], **changes}
    return pd.DataFrame({name: values for name, values in columns.items() if values is not None})


EXPECTED = {"ties": "expected"}
NAN, INF = float("nan"), float("inf")

NAMES = [
    Bad("unknown metric", lambda: run(metrics="ndgc@10"), UnknownNameError, ("ndgc", "Did you mean", "ndcg")),
    Bad("unknown metric far from all", lambda: run(metrics="zzzz@10"), UnknownNameError, ("zzzz", "ndcg")),
    Bad("empty metric", lambda: run(metrics=""), UnknownNameError, ("metric", "ndcg@10")),
    Bad("no metrics", lambda: run(metrics=[]), UnknownNameError, ("metric", "ndcg@10")),
    Bad("a number as a metric", lambda: run(metrics=[10]), UnknownNameError, ("10", "ndcg@10")),
    Bad(
        "an open bracket", lambda: run(metrics="ndcg(gain=exp2@10"), UnknownNameError, ("ndcg(gain=exp2@10",)
    ),
    Bad("two cut-offs", lambda: run(metrics="ndcg@5@10"), UnknownNameError, ("ndcg@5@10",)),
    Bad(
        "unknown parameter",
        lambda: run(metrics="ndcg(gian=exp2)@10"),
        UnknownNameError,
        ("gian", "Did you mean", "gain", "ndcg"),
    ),
    Bad(
        "parameter of another",
        lambda: run(metrics="recall(gain=exp2)@10"),
        UnknownNameError,
        ("gain", "recall"),
    ),
    Bad("parameter without value", lambda: run(metrics="rbp(p)@10"), UnknownNameError, ("rbp", "name=value")),
    Bad("parameter twice", lambda: run(metrics="rbp(p=0.5, p=0.6)"), ConventionError, ("p", "rbp", "twice")),
    Bad(
        "unknown choice", lambda: run(metrics="ndcg(gain=exp)@10"), UnknownNameError, ("exp", "exp2", "gain")
    ),
    Bad("patience of 1", lambda: run(metrics="rbp(p=1)"), ConventionError, ("p", "rbp", "1")),
    Bad("patience in words", lambda: run(metrics="rbp(p=much)"), ConventionError, ("p", "rbp", "much")),
    Bad(
        "patience that is no number", lambda: run(metrics="rbp(p=nan)"), ConventionError, ("p", "rbp", "nan")
    ),
    Bad("negative beta", lambda: run(metrics="f(beta=-1)@5"), ConventionError, ("beta", "-1")),
    Bad("eps of 0", lambda: run(metrics="gmap(eps=0)"), ConventionError, ("eps", "0")),
    Bad(
        "unknown weight of gauc",
        lambda: run(metrics="gauc(weight=users)", full_ranking=True),
        RecsysError,
        ("gauc", "users", "candidates", "relevant"),
    ),
    Bad(
        "threshold in words",
        lambda: run(metrics="hit(relevant_from=x)@5"),
        ConventionError,
        ("relevant_from", "x"),
    ),
    Bad("unknown preset", lambda: run(conventions="trec_evil"), UnknownNameError, ("trec_evil", "trec_eval")),
    Bad(
        "unknown convention",
        lambda: run(conventions={"ap_ovr": "min"}),
        UnknownNameError,
        ("ap_ovr", "Did you mean", "ap_over"),
    ),
    Bad("unknown value", lambda: Conventions(ties="by_di"), UnknownNameError, ("by_di", "by_id", "ties")),
    Bad("conventions of a wrong kind", lambda: run(conventions=3), ConventionError, ("int", "preset")),
    Bad(
        "threshold nan",
        lambda: Conventions(relevant_from=NAN),
        ConventionError,
        ("relevant_from", "nan", "number"),
    ),
    Bad("negative gain", lambda: Conventions(gain={1: -1}), ConventionError, ("gain", "at least 0")),
    Bad("gain of a wrong kind", lambda: Conventions(gain=3), ConventionError, ("gain", "3")),
    Bad("empty discount", lambda: Conventions(discount=[]), ConventionError, ("discount",)),
    Bad("discount of a wrong kind", lambda: Conventions(discount=3), ConventionError, ("discount", "3")),
]

CUTOFFS = [
    Bad("k = 0", lambda: run(metrics="ndcg@0"), CutoffError, ("0", "ndcg", "k >= 1")),
    Bad("k < 0", lambda: run(metrics="ndcg@-3"), CutoffError, ("-3", "ndcg", "k >= 1")),
    Bad("k not whole", lambda: run(metrics="ndcg@2.5"), CutoffError, ("2.5", "whole")),
    Bad("k in words", lambda: run(metrics="ndcg@ten"), CutoffError, ("ten", "whole")),
    Bad("k beyond int64", lambda: run(metrics="ndcg@" + "9" * 30), CutoffError, ("999", "whole")),
    Bad("k=0 apart", lambda: run(metrics="ndcg", k=0), CutoffError, ("0", "k >= 1")),
    Bad("k not whole apart", lambda: run(metrics="ndcg", k=2.5), CutoffError, ("2.5", "whole")),
    Bad("bool k", lambda: run(metrics="ndcg", k=True), CutoffError, ("True", "whole")),
    Bad("numpy bool k", lambda: run(metrics="ndcg", k=[np.True_]), CutoffError, ("True", "whole")),
    Bad("nan k", lambda: run(metrics="ndcg", k=NAN), CutoffError, ("nan", "whole")),
    Bad("infinite k", lambda: run(metrics="ndcg", k=INF), CutoffError, ("inf", "whole")),
    Bad("k as text", lambda: run(metrics="ndcg", k="ten"), CutoffError, ("whole",)),
    Bad(
        "k of a metric without",
        lambda: run(metrics="r_precision@5"),
        CutoffError,
        ("r_precision", "5", "Write"),
    ),
    Bad("hit without k", lambda: run(metrics="accuracy", catalogue=9), CutoffError, ("accuracy", "@10")),
]

VALUES = [
    Bad(
        "nan score",
        lambda: run(lists_frame(score=[2.0, 1.0, NAN, 1.0]), truth_frame()),
        InputError,
        ("score", "2", "nan"),
    ),
    Bad(
        "infinite score",
        lambda: run(lists_frame(score=[2.0, INF, 2.0, 1.0]), truth_frame()),
        InputError,
        ("score", "1", "inf"),
    ),
    Bad("nan score in a dict", lambda: run({1: {"a": NAN}}), InputError, ("score", "nan")),
    Bad(
        "score in words", lambda: run(lists_frame(score=list("wxyz")), truth_frame()), InputError, ("score",)
    ),
    Bad("nan grade", lambda: run(truth=truth_frame(grade=[1.0, NAN])), InputError, ("grade", "1", "nan")),
    Bad(
        "infinite grade", lambda: run(truth=truth_frame(grade=[1.0, INF])), InputError, ("grade", "1", "inf")
    ),
    Bad(
        "negative grade",
        lambda: run(truth=truth_frame(grade=[1.0, -2.0])),
        InputError,
        ("grade", "-2", "user"),
    ),
    Bad("negative grade in a dict", lambda: run(truth={1: {"a": -2}}), InputError, ("grade", "-2")),
    Bad("nan grade in a dict", lambda: run(truth={1: {"a": NAN}}), InputError, ("grade", "nan")),
    Bad("grade in words", lambda: run(truth={1: {"a": "good"}}), InputError, ("grade",)),
    Bad(
        "grade in words in a frame",
        lambda: run(truth=truth_frame(grade=["good", "bad"])),
        InputError,
        ("grade",),
    ),
    Bad(
        "missing grade",
        lambda: run(truth=pl.DataFrame({"user": [1, 2], "item": ["a", "c"], "grade": [1.0, None]})),
        InputError,
        ("grade", "1"),
    ),
    Bad(
        "two items at one rank",
        lambda: run(lists_frame(score=None, rank=[1, 1, 1, 2]), truth_frame()),
        InputError,
        ("rank", "1"),
    ),
    Bad(
        "rank 0",
        lambda: run(lists_frame(score=None, rank=[0, 1, 1, 2]), truth_frame()),
        InputError,
        ("rank", "0"),
    ),
    Bad(
        "negative rank",
        lambda: run(lists_frame(score=None, rank=[-1, 1, 1, 2]), truth_frame()),
        InputError,
        ("rank", "-1"),
    ),
    Bad(
        "nan rank",
        lambda: run(lists_frame(score=None, rank=[1, NAN, 1, 2]), truth_frame()),
        InputError,
        ("rank", "1", "nan"),
    ),
    Bad(
        "rank not whole",
        lambda: run(lists_frame(score=None, rank=[1, 2.5, 1, 2]), truth_frame()),
        InputError,
        ("rank", "2.5"),
    ),
]

TABLES = [
    Bad(
        "empty frames",
        lambda: run(lists_frame().head(0), truth_frame().head(0)),
        InputError,
        ("lists", "no rows"),
    ),
    Bad("empty dicts", lambda: run({}, {}), InputError, ("empty",)),
    Bad("empty truth frame", lambda: run(truth=truth_frame().head(0)), InputError, ("truth", "no rows")),
    Bad("empty truth dict", lambda: run(truth={}), InputError, ("truth", "empty")),
    Bad("nothing", lambda: run(None, TRUTH), InputError, ("None", "lists")),
    Bad("a number", lambda: run(3, TRUTH), InputError, ("int", "lists")),
    Bad("a path of nothing", lambda: run("lists.csv", TRUTH), FileError, ("lists.csv", "path")),
    Bad(
        "no user column",
        lambda: run(lists_frame().rename(columns={"user": "who"})),
        ColumnError,
        ("user", "who", "item", "score"),
    ),
    Bad(
        "no item column",
        lambda: run(truth=truth_frame().rename(columns={"item": "what"})),
        ColumnError,
        ("item", "what", "user", "grade"),
    ),
    Bad(
        "no item column in polars",
        lambda: run(truth=pl.from_pandas(truth_frame().rename(columns={"item": "what"}))),
        ColumnError,
        ("item", "what", "user", "grade"),
    ),
    Bad(
        "no item column in arrow",
        lambda: run(truth=pa.Table.from_pandas(truth_frame().rename(columns={"item": "what"}))),
        ColumnError,
        ("item", "what", "user", "grade"),
    ),
    Bad(
        "two user columns",
        lambda: run(lists_frame().rename(columns={"user": "userId"}).assign(user_id=[1, 1, 2, 2])),
        ColumnError,
        ("userId", "user_id", "columns="),
    ),
    Bad(
        "two item columns",
        lambda: run(lists_frame().rename(columns={"item": "itemId"}).assign(doc=list("abbc"))),
        ColumnError,
        ("itemId", "doc", "columns="),
    ),
    Bad(
        "a column name twice",
        lambda: run(pd.concat([lists_frame(), lists_frame()[["item"]]], axis=1)),
        ColumnError,
        ("item",),
    ),
    Bad("three dimensions", lambda: run(np.zeros((2, 2, 2), dtype=int), [[1], [2]]), InputError, ("3", "2")),
    Bad("one dimension", lambda: run(np.array([1, 2, 3]), [[1], [2], [3]]), InputError, ("1", "2-D")),
    Bad("unequal lengths", lambda: run([[1, 2], [3, 4]], [[1], [2], [3]]), InputError, ("2", "3")),
    Bad(
        "unequal shapes",
        lambda: run(sp.csr_matrix(np.eye(2)), sp.csr_matrix(np.eye(3))),
        InputError,
        ("2", "3"),
    ),
    Bad("a set as a list", lambda: run({1: {"a", "b"}}), InputError, ("set", "order", "1")),
    Bad("a frozenset as a list", lambda: run({1: frozenset("ab")}), InputError, ("set", "order", "1")),
    Bad("sets in a list", lambda: run([{1, 2}, {3}], [[1], [3]]), InputError, ("set", "order", "0")),
    Bad("text as a list", lambda: run({1: "abc"}), InputError, ("user 1", "'abc'", "[item]")),
    Bad("a number as a list", lambda: run({1: 5}), InputError, ("user 1", "5", "[item]")),
    Bad("none for a list", lambda: run({1: None}), InputError, ("None", "1")),
    Bad("nothing as a truth", lambda: run(truth={1: None}), InputError, ("truth", "user 1", "None")),
    Bad("nan in a score matrix", lambda: run(sp.csr_matrix([[NAN, 1.0]]), [[1]]), InputError, ("nan",)),
]

IDS = [
    Bad("mixed ids in a list", lambda: run({1: ["a", 2]}), IdTypeError, ("item", "2", "str", "int")),
    Bad("mixed ids of cases", lambda: run({1: ["a"], "2": ["b"]}), IdTypeError, ("user", "str", "int")),
    Bad(
        "mixed ids in a column",
        lambda: run(lists_frame(item=pd.Series(["a", "b", 3, "c"], dtype=object)), truth_frame()),
        IdTypeError,
        ("item", "2", "3"),
    ),
    Bad("items of two types", lambda: run({1: [1, 2]}, {1: {"1"}}), IdTypeError, ("item", "int", "str")),
    Bad("cases of two types", lambda: run({"1": ["a"]}, {1: {"a"}}), IdTypeError, ("int", "str")),
    Bad("broken float ids", lambda: run({1: [1.5, 2.0]}, {1: [1]}), IdTypeError, ("1.5", "item")),
    Bad(
        "broken float ids in a column",
        lambda: run(lists_frame(user=[1.0, 1.0, 2.5, 2.0]), truth_frame()),
        IdTypeError,
        ("user", "2.5", "2"),
    ),
    Bad("missing id in a list", lambda: run({1: ["a", None]}), InputError, ("item", "missing", "1")),
    Bad(
        "missing id in a column",
        lambda: run(lists_frame(item=["a", None, "b", "c"]), truth_frame()),
        InputError,
        ("item", "1"),
    ),
    Bad(
        "missing id in polars",
        lambda: run(truth=pl.DataFrame({"user": [1, None], "item": ["a", "c"]})),
        InputError,
        ("user", "1"),
    ),
    Bad(
        "missing id in arrow",
        lambda: run(truth=pa.table({"user": [1, None], "item": ["a", "c"]})),
        InputError,
        ("user", "1"),
    ),
    Bad(
        "nan id in a column",
        lambda: run(lists_frame(user=[1.0, NAN, 2.0, 2.0]), truth_frame()),
        InputError,
        ("user", "1"),
    ),
    Bad("bool ids", lambda: run({1: [True, False]}, {1: [True]}), IdTypeError, ("bool", "item")),
    Bad(
        "bool ids in a column",
        lambda: run(lists_frame(item=[True, False, True, False]), truth_frame()),
        IdTypeError,
        ("bool", "item"),
    ),
    Bad("tuples as ids", lambda: run({(1, 2): ["a"]}, {(1, 2): {"a"}}), IdTypeError, ("tuple",)),
    Bad("bytes as ids", lambda: run({1: [b"a"]}, {1: [b"a"]}), IdTypeError, ("bytes", "item")),
    Bad("ids beyond int64", lambda: run({1: [2**64]}, {1: [1]}), IdTypeError, (str(2**64),)),
    Bad("half a character as an id", lambda: run({1: ["\ud800"]}), IdTypeError, ("item",)),
    Bad(
        "dates as ids",
        lambda: run(lists_frame(user=pd.to_datetime(["2024-01-01"] * 4)), truth_frame()),
        IdTypeError,
        ("user", "datetime"),
    ),
]

NOT_DEFINED = [
    *(
        Bad(
            f"{name} of a cut list",
            lambda name=name: run(metrics=name),
            NotDefinedError,
            (name.split("@")[0], "full_ranking=True"),
        )
        for name in ("auc", "gauc", "pauc@3", "average_rank", "percentile_rank")
    ),
    Bad("accuracy of nothing", lambda: run(metrics="accuracy@2"), RecsysError, ("accuracy", "catalogue")),
    Bad("mcc of nothing", lambda: run(metrics="mcc@2"), RecsysError, ("mcc", "catalogue")),
    *(
        Bad(
            f"expected {name}",
            lambda name=name: run(
                {1: [("a", 1.0), ("b", 1.0)]}, {1: {"a"}}, name, full_ranking=True, conventions=EXPECTED
            ),
            ConventionError,
            (name.split("@")[0], "tied", "best", "worst"),
        )
        for name in ("bpref", "pauc@3")
    ),
    Bad(
        "item weights of map",
        lambda: run(metrics="map", item_weights=dict.fromkeys("abc", 1.0)),
        RecsysError,
        ("map", "weight"),
    ),
]

RULES = [
    Bad(
        "duplicates are an error",
        lambda: run({1: ["a", "b", "a"]}, conventions={"duplicates": "error"}),
        DuplicateError,
        ("'a'", "1", "duplicates"),
    ),
    Bad(
        "no truth",
        lambda: run(truth={1: {"a"}}, conventions={"no_truth": "error"}),
        InputError,
        ("2", "no_truth"),
    ),
    Bad("no list", lambda: run({1: ["a"]}, conventions={"no_list": "error"}), InputError, ("2", "no_list")),
    Bad(
        "unknown items",
        lambda: run(catalogue=["a", "b"], conventions={"unknown_items": "error"}),
        InputError,
        ("'c'", "catalogue", "unknown_items"),
    ),
    Bad("empty catalogue", lambda: run(metrics="accuracy@2", catalogue=[]), RecsysError, ("catalogue",)),
    Bad("catalogue of 0", lambda: run(metrics="accuracy@2", catalogue=0), InputError, ("catalogue", "0")),
    Bad(
        "catalogue too small", lambda: run(metrics="accuracy@2", catalogue=1), RecsysError, ("catalogue", "1")
    ),
    Bad(
        "catalogue of True",
        lambda: run(metrics="accuracy@2", catalogue=True),
        InputError,
        ("catalogue", "True"),
    ),
    Bad(
        "catalogue of other ids",
        lambda: run(metrics="accuracy@2", catalogue=[1, 2]),
        IdTypeError,
        ("int", "str"),
    ),
    Bad("a negative weight", lambda: run(case_weights={1: -1.0, 2: 1.0}), InputError, ("weight", "-1")),
    Bad("a nan weight", lambda: run(case_weights={1: NAN, 2: 1.0}), InputError, ("weight", "nan")),
    Bad("weights of 0", lambda: run(case_weights={1: 0, 2: 0.0}), InputError, ("every weight", "0")),
    Bad("a case without weight", lambda: run(case_weights={1: 1.0}), InputError, ("weight", "2")),
    Bad(
        "a negative item weight",
        lambda: run(item_weights={"a": -1.0, "b": 1.0, "c": 1.0}),
        InputError,
        ("weight", "-1"),
    ),
    Bad("an item without weight", lambda: run(item_weights={"a": 1.0}), InputError, ("weight", "'c'")),
    Bad("a case without cluster", lambda: run(clusters={1: "x"}), InputError, ("cluster", "2")),
    Bad("clusters in a set", lambda: run(clusters=frozenset([1, 2])), InputError, ("clusters", "frozenset")),
    Bad("a weight of no date", lambda: run(item_weights={"a": pd.NaT}), InputError, ("item_weights", "NaT")),
    Bad("a weight that is text", lambda: run(case_weights={1: "x"}), InputError, ("case_weights", "'x'")),
    Bad("a weight past float64", lambda: run(case_weights={1: 10**400}), InputError, ("case_weights",)),
    Bad(
        "a case met twice",
        lambda: recsys.Evaluator("ndcg@10").update(LISTS, TRUTH).update(LISTS, TRUTH).result(),
        MergeError,
        ("user", "1", "two", "parts"),
    ),
    Bad("merge of one and the same", lambda: run().merge(run()), MergeError, ("user", "1", "two")),
    Bad(
        "merge of different requests",
        lambda: run({1: ["a"]}, {1: {"a"}}).merge(run({2: ["a"]}, {2: {"a"}}, metrics="ndcg@5")),
        MergeError,
        ("ndcg@10", "ndcg@5"),
    ),
    Bad(
        "merge of different conventions",
        lambda: run({1: ["a"]}, {1: {"a"}}).merge(run({2: ["a"]}, {2: {"a"}}, conventions="lenskit")),
        MergeError,
        ("conventions",),
    ),
    Bad(
        "score_list of a set", lambda: recsys.score_list({1, 2}, {1}, "ndcg@10"), InputError, ("set", "order")
    ),
    Bad(
        "score_list of an unknown",
        lambda: recsys.score_list([1], {1}, "ndgc@10"),
        UnknownNameError,
        ("ndcg",),
    ),
    Bad(
        "score_list of several metrics",
        lambda: recsys.score_list([1], {1}, ["ndcg@10", "mrr"]),
        UnknownNameError,
        ("ndcg@10", "evaluate"),
    ),
    Bad(
        "metrics with cut-offs as values",
        lambda: run(metrics={"ndcg": 10}),
        UnknownNameError,
        ("'ndcg': 10",),
    ),
    Bad("a gate of values", lambda: recsys.gate({}, {}, {"ndcg@10": 0}), InputError, ("dict", "evaluate")),
    Bad("score_list k = 0", lambda: recsys.score_list([1], {1}, "ndcg@0"), CutoffError, ("0", "k >= 1")),
    Bad(
        "score_list of mixed ids",
        lambda: recsys.score_list([1, "a"], {1}, "ndcg@3"),
        IdTypeError,
        ("str", "int"),
    ),
    Bad(
        "score_list of two types",
        lambda: recsys.score_list(["1"], {1}, "ndcg@3"),
        IdTypeError,
        ("str", "int"),
    ),
    Bad(
        "score_list nan grade",
        lambda: recsys.score_list([1], {1: NAN}, "ndcg@3"),
        InputError,
        ("grade", "nan"),
    ),
    Bad(
        "score_list grade < 0", lambda: recsys.score_list([1], {1: -1}, "ndcg@3"), InputError, ("grade", "-1")
    ),
]

ALL = [*NAMES, *CUTOFFS, *VALUES, *TABLES, *IDS, *NOT_DEFINED, *RULES]


@pytest.mark.parametrize("bad", ALL, ids=[bad.what for bad in ALL])
def test_a_mistake_is_named(bad):
    with pytest.raises(RecsysError) as caught:
        bad.call()
    assert isinstance(caught.value, bad.error), repr(caught.value)
    text = str(caught.value).lower()
    assert [word for word in bad.names if word.lower() not in text] == [], text
    assert caught.value.hint, f"no advice: {text}"


def test_the_table_has_no_row_twice():
    names = [bad.what for bad in ALL]
    assert len(set(names)) == len(names)


def test_every_error_is_ours():
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)]
    ours = [kind for kind in kinds if not issubclass(kind, Warning)]
    assert all(issubclass(kind, RecsysError) for kind in ours)
    assert all(issubclass(kind, errors.RecsysWarning) for kind in kinds if issubclass(kind, Warning))


def raised() -> dict[str, RecsysError]:
    """The error of every row that has one; a row without fails its own test."""
    caught: dict[str, RecsysError] = {}
    for bad in ALL:
        try:
            bad.call()
        except RecsysError as error:
            caught[bad.what] = error
        except Exception:  # noqa: BLE001, S112 - whatever leaks is named by the row's own test
            continue
    return caught


def test_errors_travel_between_processes():
    for error in raised().values():
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_ids_are_shown_as_they_were_typed():
    assert [what for what, error in raised().items() if "np.int64(" in str(error)] == []


def test_a_metric_that_was_not_asked_for_is_a_key_error_in_words():
    result = run()
    for name in ("recall@10", "ndgc@10", "ndcg@0"):
        assert name not in result
        assert result.get(name) is None
    with pytest.raises(KeyError, match=r"recall@10.*ndcg@10"):
        result["recall@10"]
    assert result["NDCG @ 10"] == result["ndcg@10"]


def test_users_on_one_side_only_are_counted():
    result = run({1: ["a"], 2: ["b"], 3: ["c"]}, {1: ["a"], 4: ["a"], 5: ["a"]}, "recall@1")
    assert result["recall@1"] == 1 / 3
    assert result.counts["cases"] == 5
    assert result.counts["without_truth"] == 2
    assert result.counts["without_list"] == 2
    assert result.per_case.ids.tolist() == [1, 2, 3, 4, 5]
    assert np.isnan(result.values_of("recall@1")).tolist() == [False, True, True, False, False]
    assert result.n_cases == {"recall@1": 3}
    assert "2" in repr(result)


def test_no_user_on_both_sides_is_refused():
    with pytest.raises(InputError, match=r"no user of the lists \(1.*occurs in the truth \(2"):
        run({1: ["a"]}, {2: ["a"]})


def test_ids_that_are_the_same_whole_numbers_are_named(tmp_path):
    words = "As whole numbers '2.0' and '2' are the same user: read both files with ids='int'"
    with pytest.raises(InputError, match=words):
        run({"2.0": ["a"], "3.0": ["a"]}, {"2": ["a"], "4": ["a"]})
    with pytest.raises(InputError, match="Check that both sides use the same user ids"):
        run({"2.5": ["a"]}, {"2": ["a"]})
    model = recsys.Factors(np.eye(1), np.eye(1), user_ids=["2"], item_ids=["a"])
    with pytest.raises(InputError, match=r"As whole numbers '2' and '2\.0' are the same user"):
        run(model, {"2.0": ["a"]})
    (tmp_path / "lists.csv").write_text("user,item\n2.0,7\n")
    (tmp_path / "truth.csv").write_text("user,item\n2,7\n")
    with pytest.warns(recsys.errors.FloatIdWarning, match=r"user ids of .*lists\.csv: '2\.0' and others"):
        assert recsys.evaluate(tmp_path / "lists.csv", tmp_path / "truth.csv", ["mrr"], ids="int")["mrr"] == 1


def test_repeats_in_a_list_are_counted():
    result = run({1: ["a", "b", "a", "a"], 2: ["c", "c"]}, metrics="hits@9")
    assert result["hits@9"] == 1
    assert result.counts["repeated_items"] == 3
    assert "3 items listed more than once" in repr(result)


def test_repeated_rows_of_the_truth_are_counted_and_the_best_grade_stays():
    twice = pd.DataFrame({"user": [1, 1, 1, 2], "item": list("aaba"), "grade": [1.0, 3.0, 1.0, 2.0]})
    result = run(truth=twice, metrics=["dcg@1", "recall@5"], conventions={"no_truth": "zero"})
    assert result.counts["repeated_rows"] == 1
    assert result.counts["conflicting_grades"] == 1
    assert result.values_of("dcg@1").tolist() == [3.0, 0.0]
    assert result.values_of("recall@5").tolist() == [1.0, 0.0]
    alike = run(truth={1: ["a", "a"], 2: ["c"]}, metrics="recall@5")
    assert alike["recall@5"] == 1.0
    assert alike.counts["repeated_rows"] == 1
    assert "conflicting_grades" not in alike.counts or not alike.counts["conflicting_grades"]


def test_items_outside_the_catalogue_are_counted():
    result = run(catalogue=["a", "b"], metrics="recall@2")
    assert result.counts["unknown_items"] == 1


@pytest.mark.parametrize("where", ["dict", "pandas", "polars"])
def test_whole_float_ids_are_read_as_integers_with_a_warning(where):
    if where == "dict":
        lists, truth = {1: [1.0, 2.0]}, {1: [2]}
    else:
        frame = pd.DataFrame({"user": [1, 1], "item": [1.0, 2.0], "rank": [1, 2]})
        lists = frame if where == "pandas" else pl.from_pandas(frame)
        truth = pd.DataFrame({"user": [1], "item": [2]})
    with pytest.warns(FloatIdWarning, match=r"lists.*item"):
        assert run(lists, truth, "mrr")["mrr"] == 0.5


def test_a_tie_that_matters_is_a_warning_with_its_share():
    with pytest.warns(TieWarning, match=r"1 of 1 .*100.*by_id.*expected"):
        run({1: [("a", 1.0), ("b", 1.0)]}, {1: {"a"}})


def test_a_tie_that_moves_nothing_is_only_counted():
    lists = {u: [("a", 2.0), ("b", 1.0)] for u in range(300)}
    with warnings.catch_warnings():
        warnings.simplefilter("error", TieWarning)
        result = run({**lists, 0: [("a", 1.0), ("b", 1.0)]}, {u: {"a"} for u in lists})
    assert result.counts["tied"] == 1
    assert "1 judged item found that shares its score" in str(result)


def test_counts_of_the_truth_are_of_judged_items():
    """A grade below relevant_from is judged, not relevant, and is counted all the same."""
    truth = {1: {"a": 5, "z": 1}, 2: {"a": 5}}
    lists = {1: ["a", "b"], 2: ["a", "b"]}
    rules = {"relevant_from": 4}
    result = recsys.evaluate(lists, truth, ["recall@2"], conventions=rules, catalogue=["a", "b"])
    assert result["recall@2"] == 1.0
    assert "1 judged item outside the catalogue" in str(result)


def test_ragged_rows_are_lists_of_their_own_length():
    rows = [[1, 2], [3]]
    array = np.empty(2, dtype=object)
    array[:] = rows
    expected = run({0: [1, 2], 1: [3]}, {0: [2], 1: [4]}, "mrr")["mrr"]
    assert run(rows, [[2], [4]], "mrr")["mrr"] == expected == 0.25
    assert run(array, [[2], [4]], "mrr")["mrr"] == expected


def test_ids_far_apart_cost_no_memory():
    far = [2**31 - 1, 2**40, 2**62]
    for ids in ([2**31 - 1], [2**62], far, [-(2**62), 2**62]):
        assert run({1: ids}, {1: ids[:1]}, "mrr")["mrr"] == 1
        assert run({i: [1] for i in ids}, {i: [1] for i in ids}, "mrr")["mrr"] == 1


EMPTY = {
    "both": ({1: ["a"]}, {1: {"a"}}),
    "truth only": ({1: []}, {1: {"a"}}),
    "lists only": ({1: ["a"]}, {1: set()}),
    "nothing": ({1: []}, {1: set()}),
    "partial": ({1: ["a"], 2: []}, {1: {"a"}, 2: {"b"}}),
}


ABOUT = {
    "train": {1: ["a", "b"], 2: ["b"]},
    "embeddings": {"a": [1.0, 0.0], "b": [0.0, 1.0]},
    "items": {"worth": {"a": 2.0, "b": 1.0}},
    "reference": {1: ["a", "b"], 2: ["b"]},
    "intents": "worth",
}


@pytest.mark.parametrize("name", sorted(METRICS))
@pytest.mark.parametrize("side", sorted(EMPTY))
def test_every_metric_of_every_emptiness(side, name):
    lists, truth = EMPTY[side]
    metric = METRICS[name]
    request = name if metric.at_k == "never" else f"{name}@2"
    result = run(lists, truth, request, full_ranking=True, catalogue=9, **ABOUT)
    (value,) = result.values()
    ranks = metric.empty is not None and math.isnan(metric.empty)
    assert result.counts["cases"] == len(lists)
    if metric.kind == "catalogue":
        assert math.isnan(value) == (side in ("truth only", "nothing"))
        return
    if metric.population == "listed":
        no_pair = name == "ils"  # of one item
        assert math.isnan(value) == (no_pair or (ranks and side in ("truth only", "nothing")))
        return
    if side in ("lists only", "nothing") or (side == "truth only" and ranks):
        assert math.isnan(value)
    elif name == "ee_l" and side != "both":  # all that the relevant item is due
        assert result.values_of(request)[0 if side == "truth only" else 1] == 1.0
    elif name == "accuracy" and side != "both":  # of 9 items one is relevant, and this user was shown none
        assert result.values_of(request)[0 if side == "truth only" else 1] == pytest.approx(8 / 9)
    elif side == "truth only":
        assert value == (1e-5 if name == "gmap" else 0.0) or value == pytest.approx(1e-5)
    else:
        first = result.values_of(request)[0]
        assert math.isnan(first) == (name in ("auc", "gauc", "pauc"))
        assert side == "both" or ranks or result.values_of(request)[1] == 0.0
