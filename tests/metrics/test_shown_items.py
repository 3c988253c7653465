"""Metrics about the items shown: sources, hostile tables, missing data, intervals, streaming."""

from __future__ import annotations

import math
import operator
from functools import reduce
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

import recsys
from recsys.cli.app import cli
from recsys.errors import (
    ColumnError,
    ConventionError,
    IdTypeError,
    InputError,
    NotDefinedError,
    OutOfBoundsError,
    RecsysWarning,
    UnknownNameError,
)
from recsys.metrics.registry import METRICS, Request

SHOWN = sorted(name for name, metric in METRICS.items() if "lists" in metric.needs)
LISTS = {1: ["a", "b"], 2: ["b", "c"], 3: ["c", "d"]}
TRUTH = {1: {"a"}, 2: {"c"}, 3: {"a"}}


def world(n_users: int = 60, n_items: int = 40, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    pick = lambda size: rng.choice(n_items, size, replace=False).tolist()  # noqa: E731
    return {
        "users": rng.normal(size=(n_users, 5)),
        "items": rng.normal(size=(n_items, 5)),
        "truth": {u: pick(4) for u in range(n_users)},
        "seen": {u: pick(6) for u in range(n_users)},
        "about": {
            "train": {u: pick(8) for u in range(n_users)},
            "embeddings": rng.normal(size=(n_items, 6)),
            "items": {"kind": {i: "xyz"[i % 3] for i in range(n_items)}},
            "reference": {u: pick(5) for u in range(n_users)},
            "intents": "kind",
        },
    }


def all_requests(k: int) -> list[str]:
    return [f"{n}@{k}" for n in SHOWN if n not in ("value", "shown_value")]


@pytest.mark.parametrize("backend", ["reference", "auto"])
@pytest.mark.parametrize("kind", ["factors", "scores"])
def test_a_model_and_its_lists_have_the_same_numbers(kind, backend):
    w = world()
    model = recsys.Factors(w["users"], w["items"])
    lists = recsys.recommend(model, 7, seen=w["seen"])
    source = model if kind == "factors" else recsys.Scores(w["users"] @ w["items"].T)
    asked = [*all_requests(3), *all_requests(7), "ndcg@7"]
    mine = recsys.evaluate(source, w["truth"], asked, seen=w["seen"], backend=backend, **w["about"])
    theirs = recsys.evaluate(
        lists, w["truth"], asked, seen=w["seen"], catalogue=range(len(w["items"])), **w["about"]
    )
    assert dict(mine) == pytest.approx(dict(theirs), rel=1e-12, nan_ok=True)


def test_a_model_whose_rows_have_ids_in_any_order():
    w = world()
    order = np.random.default_rng(1).permutation(40)
    names = np.array([f"i{n:02d}" for n in order], dtype=object)
    model = recsys.Factors(w["users"], w["items"][order], item_ids=names)
    asked = ["coverage@5", "gini@5", "ild@5"]
    plain = recsys.evaluate(
        recsys.Factors(w["users"], w["items"]), w["truth"], asked, embeddings=w["about"]["embeddings"]
    )
    truth = {u: [f"i{i:02d}" for i in items] for u, items in w["truth"].items()}
    vectors = {f"i{i:02d}": v for i, v in enumerate(w["about"]["embeddings"])}
    named = recsys.evaluate(model, truth, asked, embeddings=vectors)
    assert dict(named) == pytest.approx(dict(plain), rel=1e-12)


def test_users_without_truth_count_in_metrics_that_ask_for_none():
    result = recsys.evaluate({1: ["a"], 2: ["b"]}, {1: {"a"}}, ["coverage@1", "user_coverage@1", "recall@1"],
                             catalogue=[*"abcd"])  # fmt: skip
    assert result["coverage@1"] == 0.5
    assert result.n_cases == {"coverage@1": 2, "user_coverage@1": 2, "recall@1": 1}


@pytest.mark.parametrize("name", SHOWN)
def test_a_missing_need_is_named_with_its_keyword(name):
    needs = set(METRICS[name].needs) - {"lists", "eligible"}
    if not needs:
        recsys.evaluate(LISTS, TRUTH, f"{name}@2")
        return
    with pytest.raises(
        NotDefinedError, match=r"(train|popularity|items|embeddings|profiles|reference|intents)="
    ):
        recsys.evaluate(LISTS, TRUTH, f"{name}@2")


@pytest.mark.parametrize("name", SHOWN)
def test_one_list_alone_has_no_catalogue(name):
    with pytest.raises(NotDefinedError):
        recsys.score_list([1, 2], {1}, f"{name}@2")


def test_missing_data_are_counted_and_reported():
    result = recsys.evaluate(
        LISTS, TRUTH, ["ild@2", "shown_value(of=price)@2"],
        embeddings={"a": [1.0, 0.0], "b": [0.0, 0.0]}, items={"price": {"a": 2.0, "c": None}},
    )  # fmt: skip
    assert result.counts["without_vector"] == 3
    assert result.counts["without_facts"] == 5
    assert "3 items shown that have no vector" in repr(result)
    assert result.per_user["ild@2"].tolist() == [1.0, 0.0, 0.0]  # zeros are at right angles to everything


def test_vectors_come_in_many_forms():
    matrix = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    lists, truth = {1: [0, 1, 2]}, {1: {0}}
    forms = [
        matrix,
        matrix.astype(np.float32),
        matrix.astype(np.float16),
        matrix.astype(int),
        (range(3), matrix),
        ([2, 0, 1], matrix[[2, 0, 1]]),
        dict(enumerate(matrix)),
        {i: row.tolist() for i, row in enumerate(matrix)},
        pd.DataFrame(matrix, index=[0, 1, 2]),
    ]
    values = [recsys.evaluate(lists, truth, "ild@3", embeddings=form)["ild@3"] for form in forms]
    assert values == pytest.approx([values[0]] * len(values), rel=1e-12)
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(matrix, requires_grad=True)
    assert recsys.evaluate(lists, truth, "ild@3", embeddings=tensor)["ild@3"] == values[0]


@pytest.mark.parametrize(
    ("embeddings", "error", "words"),
    [
        ({"a": [1.0], "b": [1.0, 2.0]}, InputError, "length"),
        (np.zeros(3), InputError, "shape"),
        ((["a", "a"], np.zeros((2, 2))), InputError, "ids"),
        ((["a"], np.zeros((2, 2))), InputError, "ids"),
        ({1: [1.0]}, IdTypeError, "item"),
        ({"a": ["x"]}, InputError, "numbers"),
    ],
)
def test_broken_vectors_are_refused(embeddings, error, words):
    with pytest.raises(error, match=words):
        recsys.evaluate(LISTS, TRUTH, "ild@2", embeddings=embeddings)


def test_tables_come_in_many_forms():
    frame = pd.DataFrame({"item_id": ["a", "b", "c", "d"], "kind": ["x", "x|y", "y", None]})
    forms = [
        frame,
        pl.from_pandas(frame),
        frame.set_index("item_id"),
        {"kind": {"a": "x", "b": ["y", "x"], "c": {"y"}}},
        {"a": "x", "b": ("x", "y"), "c": "y"},
    ]
    asked = {"train": {1: ["a", "b"], 2: ["c"]}, "metrics": ["calibration_js@2"]}
    values = [recsys.evaluate(LISTS, TRUTH, items=form, **asked)["calibration_js@2"] for form in forms]
    assert values == pytest.approx([values[0]] * len(forms))


@pytest.mark.parametrize(
    ("items", "error", "words"),
    [
        (pd.DataFrame({"kind": ["x"]}), ColumnError, "item"),
        (pd.DataFrame({"item": ["a", "a"], "kind": ["x", "y"]}), InputError, "several rows for 'a'"),
        ({}, InputError, "empty"),
        (3, InputError, "int"),
        ({1: "x"}, IdTypeError, "item"),
    ],
)
def test_broken_tables_are_refused(items, error, words):
    with pytest.raises(error, match=words):
        recsys.evaluate(LISTS, TRUTH, "exposure_gap@2", items=items)


def test_columns_must_be_named_where_there_are_several():
    items = {"kind": {"a": "x"}, "price": {"a": 1.0}}
    with pytest.raises(ColumnError, match="one must be named"):
        recsys.evaluate(LISTS, TRUTH, "exposure_gap@2", items=items)
    with pytest.raises(ColumnError, match=r"\(of=kind\)"):
        recsys.evaluate(LISTS, TRUTH, "value@2", items=items)
    with pytest.raises(ColumnError, match="not 'colour'"):
        recsys.evaluate(LISTS, TRUTH, "exposure_gap(by=colour)@2", items=items)
    with pytest.raises(ColumnError, match="no numbers"):
        recsys.evaluate(LISTS, TRUTH, "value(of=kind)@2", items=items)


def test_popularity_may_come_alone_and_as_counts():
    counts = {"a": 8, "b": 4, "c": 2, "d": 0}
    forms = [counts, pd.Series(counts)]
    for form in forms:
        result = recsys.evaluate(LISTS, TRUTH, "novelty(users=16)@2", popularity=form)
        assert result["novelty(users=16)@2"] == pytest.approx(((1 + 2) / 2 + (2 + 3) / 2 + (3 + 4) / 2) / 3)
    numbered = recsys.evaluate({1: [0, 1]}, {1: {0}}, "novelty(users=16)@2", popularity=np.array([8, 4]))
    assert numbered["novelty(users=16)@2"] == 1.5
    for metric in ("novelty", "surprisal", "epc"):
        with pytest.raises(NotDefinedError, match=rf"Write {metric}\(users=1000\)"):
            recsys.evaluate(LISTS, TRUTH, f"{metric}@2", popularity=counts)
        with pytest.raises(ConventionError, match=rf"8 users.*Write {metric}\(users=N\)"):
            recsys.evaluate(LISTS, TRUTH, f"{metric}(users=4)@2", popularity=counts)
    with pytest.raises(NotDefinedError, match=r"counted over\. Pass train=\.$"):
        recsys.evaluate(LISTS, TRUTH, "average_popularity(over=users)@2", popularity=counts)
    with pytest.warns(RecsysWarning, match="logarithm"):
        recsys.evaluate(LISTS, TRUTH, "novelty(users=9)@2", popularity={"a": 2.3})
    with pytest.raises(InputError, match="at least 0"):
        recsys.evaluate(LISTS, TRUTH, "novelty(users=9)@2", popularity={"a": -1})


def test_one_list_for_everybody_and_a_model_as_reference():
    asked = ["overlap@2", "serendipity@2", "rbo@2"]
    flat = recsys.evaluate(LISTS, TRUTH, asked, reference=["b", "a"])
    by_user = recsys.evaluate(LISTS, TRUTH, asked, reference={u: ["b", "a"] for u in LISTS})
    assert dict(flat) == pytest.approx(dict(by_user))
    w = world()
    model = recsys.Factors(w["users"], w["items"])
    same = recsys.evaluate(model, w["truth"], "overlap@5", reference=model)
    assert same["overlap@5"] == 1.0


def test_items_that_may_not_be_shown():
    lists = {1: ["a", "a", "z", "b"], 2: ["c", "d"]}
    asked = {"catalogue": [*"abcd"], "exclude": ["b"], "eligible": {1: ["a", "b"], 2: ["c"]}}
    result = recsys.evaluate(lists, {1: {"a"}, 2: {"c"}}, "valid@4", **asked)
    assert result.per_user["valid@4"].tolist() == [0.25, 0.5]
    with pytest.raises(InputError, match="ready lists have none"):
        recsys.evaluate(lists, {1: {"a"}}, "recall@2", exclude=["b"])


def test_a_catalogue_too_small_for_what_was_shown_is_refused():
    with pytest.raises(InputError, match="4 items were shown"):
        recsys.evaluate(LISTS, TRUTH, "coverage@2", catalogue=3)
    assert recsys.evaluate(LISTS, TRUTH, "coverage@2", catalogue=["a", "b"])["coverage@2"] == 1.0


@pytest.mark.parametrize("name", ["gini@1", "personalisation@1", "entropy@1"])
def test_one_user_and_one_item_are_as_even_and_as_alike_as_can_be(name):
    assert recsys.evaluate({1: [3]}, {1: {3}}, name, catalogue=[3])[name] == 0.0


def test_the_catalogue_is_reported():
    assert "catalogue: 4 items (those of lists and truth)" in repr(recsys.evaluate(LISTS, TRUTH, "gini@2"))
    assert "catalogue: 5 items (those of train, lists and truth)" in repr(
        recsys.evaluate(LISTS, TRUTH, "gini@2", train={1: ["a", "z"]})
    )
    assert "catalogue: 9 items\n" in repr(recsys.evaluate(LISTS, TRUTH, "gini@2", catalogue=9))
    assert "catalogue" not in repr(recsys.evaluate(LISTS, TRUTH, "recall@2"))


def test_odd_parameters_are_refused():
    about = {"train": {1: ["a"]}, "embeddings": {"a": [1.0]}, "items": {"k": {"a": "x"}}, "reference": ["a"],
             "intents": "k"}  # fmt: skip
    for request in (
        "gini(weight=heavy)@2", "entropy(base=1)@2", "novelty(cold=maybe)@2", "ild(distance=far)@2",
        "serendipity(expected=no)@2", "overlap(over=all)@2", "rbo(p=1)@2", "miscalibration(divergence=tv)@2",
        "exposure_gap(merit=none)@2", "tail_share(head=2)@2", "alpha_dcg(alpha=3)@2",
    ):  # fmt: skip
        with pytest.raises(ConventionError):
            recsys.evaluate(LISTS, TRUTH, request, **about)
    with pytest.raises(UnknownNameError):
        Request.of("ild@2", weight=3)


def test_sparse_and_table_forms_of_train_agree():
    frame = pd.DataFrame({"user": [0, 0, 1], "item": [0, 1, 1]})
    matrix = sp.csr_matrix(np.array([[1, 1, 0], [0, 1, 0]]))
    forms = [frame, matrix, {0: [0, 1], 1: [1]}, pl.from_pandas(frame)]
    values = [
        recsys.evaluate({0: [0, 1], 1: [2, 1]}, {0: {0}, 1: {2}}, "novelty@2", train=form)["novelty@2"]
        for form in forms
    ]
    assert values == [values[0]] * 4


def test_a_model_streams_user_by_user():
    w = world()
    model = recsys.Factors(w["users"], w["items"])
    asked = [*all_requests(5), "mrr", "auc"]
    stream = recsys.Evaluator(asked, **w["about"])
    for half in (range(30), range(30, 60)):
        stream.update(model, {u: w["truth"][u] for u in half})
    whole = recsys.evaluate(model, w["truth"], asked, **w["about"])
    assert [repr(v) for v in stream.result().values()] == [repr(v) for v in whole.values()]


def test_metrics_of_the_catalogue_have_intervals_that_hold_the_value():
    w = world(400)
    names = ["coverage@3", "gini@3", "entropy@3", "exposure_gap(by=kind)@3", "cold_coverage(below=70)@3"]
    result = recsys.evaluate(recsys.Factors(w["users"], w["items"]), w["truth"], names, **w["about"])
    for name, estimate in result.intervals().items():
        assert estimate.value == result[name]
        assert estimate.interval.low <= estimate.value <= estimate.interval.high
    counts, ids = result.exposure("gini@3")
    assert counts.shape == (64, len(ids))
    assert counts.sum() == 400 * 3
    assert result.statistic("gini@3")(counts.sum(axis=0)) == result["gini@3"]
    with pytest.raises(NotDefinedError, match="mean over users"):
        recsys.evaluate(LISTS, TRUTH, "recall@2").exposure("recall@2")


def test_the_command_reads_everything_from_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame([(u, i, 9 - at) for u, row in LISTS.items() for at, i in enumerate(row)],
                 columns=["user", "item", "score"]).to_csv("lists.csv", index=False)  # fmt: skip
    pd.DataFrame([(u, i) for u, row in TRUTH.items() for i in row], columns=["user", "item"]).to_csv(
        "truth.csv", index=False
    )
    Path("train.csv").write_text("user,item\n1,b\n2,a\n2,b\n")
    Path("items.csv").write_text("item_id,kind,price\na,x,1\nb,x|y,2.5\nc,y,\n")
    names = ["novelty@2", "value(of=price)@2", "calibration_js(by=kind)@2", "overlap@2"]
    asked = [word for name in names for word in ("-m", name)]
    options = ["--train", "train.csv", "--items", "items.csv", "--reference", "lists.csv", "--by", "kind"]
    result = CliRunner().invoke(cli, ["evaluate", "lists.csv", "truth.csv", *asked, *options, "--bounds"])
    assert result.exit_code == 0, result.output
    assert "best" in result.stdout
    train = {"1": ["b"], "2": ["a", "b"]}
    items = {"kind": {"a": "x", "b": "x|y", "c": "y"}, "price": {"a": 1.0, "b": 2.5}}
    lists = {str(u): row for u, row in LISTS.items()}
    truth = {str(u): row for u, row in TRUTH.items()}
    expected = recsys.evaluate(lists, truth, names, train=train, items=items, reference=lists)
    for name in names:
        assert f"{name:<25}  {expected[name]:.4f}" in result.stdout


def test_intents_by_user_differ_from_user_to_user():
    lists, truth = {1: ["a", "b"], 2: ["a", "b"]}, {1: ["a", "b"], 2: ["a", "b"]}
    intents = {1: {"a": ["x"], "b": ["x"]}, 2: {"a": ["x"], "b": ["y"]}}
    result = recsys.evaluate(lists, truth, ["alpha_dcg(alpha=1)@2", "strec@1"], intents=intents)
    assert result.per_user["subtopic_recall@1"].tolist() == [1.0, 0.5]
    assert result.per_user["alpha_dcg(alpha=1)@2"].tolist() == pytest.approx(
        [1.0, (1 + 1 / math.log2(3)) / 2]
    )
    with pytest.raises(InputError, match="intents came as"):
        recsys.evaluate(lists, truth, "strec@1", intents=[1, 2])


def test_a_metric_of_the_catalogue_that_leaves_its_range_is_not_shown(monkeypatch):
    broken = METRICS["coverage"]
    monkeypatch.setattr(type(broken), "body", property(lambda _: lambda *_a, **_k: 2.0), raising=False)
    with pytest.raises(OutOfBoundsError):
        recsys.evaluate(LISTS, TRUTH, "coverage@2")


def test_vectors_are_multiplied_and_added_step_by_step():
    """The bits of plain Python: a processor that multiplies and adds at once would change them."""
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=(30, 7))
    lists = {u: rng.choice(30, 3, replace=False).tolist() for u in range(80)}
    train = {u: dict(zip(rng.choice(30, 5, replace=False).tolist(), range(1, 6), strict=True)) for u in lists}
    asked = ["ild", "ild(distance=euclidean)", "alignment", "unexpectedness"]
    found = recsys.evaluate(lists, {u: [0] for u in lists}, asked, embeddings=vectors, train=train).per_case

    def add(numbers):  # sum() of a newer Python adds more precisely
        return reduce(operator.add, numbers, 0.0)

    def total(terms):
        return [add(column) for column in zip(*terms, strict=True)]

    def dot(a, b):
        return add(x * y for x, y in zip(a, b, strict=True))

    rows = [row.tolist() for row in vectors]
    units = [[x * (1.0 / math.sqrt(dot(row, row))) for x in row] for row in rows]
    for at, user in enumerate(found.ids.tolist()):
        items, had = lists[user], train[user]
        shown, gone = (total(units[i] for i in held) for held in (items, sorted(had)))
        liked = total([weight * x for x in rows[i]] for i, weight in sorted(had.items()))
        gaps = [np.subtract(rows[i], rows[j]).tolist() for i, j in combinations(items, 2)]
        wanted = [
            1.0 - (dot(shown, shown) - 3) / 6,
            add(math.sqrt(dot(gap, gap)) for gap in gaps) / 3,
            dot(shown, liked) / math.sqrt(dot(liked, liked)) / 3,
            1.0 - dot(shown, gone) / 15,
        ]
        assert [found.columns[name][at] for name in asked] == wanted, user
