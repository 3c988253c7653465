"""recsys.spark.evaluate: the bits of one process, whatever the cut."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recsys
import recsys.spark

SIX = ["recall@10", "ndcg@10", "map@10", "mrr@10", "hit@10", "precision@10"]
CATALOGUE = ["coverage@10", "gini@10", "entropy@5", "distinct_items@10", "personalisation@10"]


def tables(n_users: int = 300, *, text: bool = False, seed: int = 0) -> dict[str, pd.DataFrame]:
    """Lists, graded truth and a history; some users have no list, some no truth, one has a long list."""
    rng = np.random.default_rng(seed)
    rows: dict[str, list[Any]] = {"lists": [], "truth": [], "seen": []}
    for user in range(n_users):
        n_items = 200 if user == 7 else 10
        for rank, item in enumerate(rng.permutation(250)[:n_items] if user % 11 else []):
            rows["lists"].append((user, int(item), rank + 1))
        for item in rng.permutation(60)[: rng.integers(1, 6)] if user % 13 else []:
            rows["truth"].append((user, int(item), float(rng.integers(0, 4))))
        rows["seen"] += [(user, int(item)) for item in rng.permutation(250)[:3]]
    columns = ["user", "item", "value"]
    made = {name: pd.DataFrame(cells, columns=columns[: len(cells[0])]) for name, cells in rows.items()}
    made["lists"] = made["lists"].rename(columns={"value": "rank"})
    made["truth"] = made["truth"].rename(columns={"value": "grade"})
    for frame in made.values():
        if text:
            frame["user"], frame["item"] = "u" + frame["user"].astype(str), "é" + frame["item"].astype(str)
    return {name: frame.sample(frac=1, random_state=1) for name, frame in made.items()}


def frames(spark: Any, made: dict[str, pd.DataFrame]) -> dict[str, Any]:
    import pyarrow as pa

    return {
        name: spark.createDataFrame(pa.Table.from_pandas(frame, preserve_index=False))
        for name, frame in made.items()
    }


def assert_same(found: Any, expected: Any) -> None:
    """The same numbers to the last bit: overall, by group, counts, intervals."""
    assert {n: repr(v) for n, v in found.overall.items()} == {n: repr(v) for n, v in expected.overall.items()}
    assert repr(found.by) == repr(expected.by)
    assert found.counts == expected.counts
    assert found.n_cases == expected.n_cases
    assert json.loads(found.to_json())["sha256"] == json.loads(expected.to_json())["sha256"]
    theirs = expected.intervals()
    for name, estimate in found.intervals().items():
        np.testing.assert_allclose(
            [estimate.standard_error, estimate.interval.low, estimate.interval.high],
            [theirs[name].standard_error, theirs[name].interval.low, theirs[name].interval.high],
            rtol=1e-12,
            err_msg=name,
        )


def assert_same_rows(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(found.per_case.ids, expected.per_case.ids)
    for name, column in expected.per_case.columns.items():
        np.testing.assert_array_equal(
            found.per_case.columns[name].view("i8"), column.view("i8"), err_msg=name
        )


@pytest.mark.parametrize(("text", "partitions"), [(False, 1), (True, 7)])
def test_values_are_those_of_one_process(spark, tmp_path, text, partitions):
    made = tables(text=text)
    data = frames(spark, made)
    expected = recsys.evaluate(made["lists"], made["truth"], SIX, seen=made["seen"])
    found = recsys.spark.evaluate(
        data["lists"],
        data["truth"],
        SIX,
        seen=data["seen"],
        per_user_path=tmp_path / "out",
        partitions=partitions,
    )
    assert_same(found, expected)
    assert_same_rows(found, expected)
    loaded = recsys.load(tmp_path / "out")
    assert_same(loaded, expected)
    assert_same_rows(loaded, expected)


@pytest.mark.filterwarnings("ignore::recsys.stats.results.ZeroVarianceWarning")
@pytest.mark.parametrize("aggregate", ["median", "trimmed(0.1)"])
def test_an_aggregate_is_that_of_one_process(spark, aggregate):
    made = tables(text=False)
    data = frames(spark, made)
    expected = recsys.evaluate(made["lists"], made["truth"], SIX, aggregate=aggregate)
    found = recsys.spark.evaluate(data["lists"], data["truth"], SIX, aggregate=aggregate, partitions=5)
    assert_same(found, expected)
    assert found.aggregate == expected.aggregate


def test_lists_without_their_unjudged_items_are_those_of_one_process(spark, tmp_path):
    """User 7 has 200 items, and judged ones far below place 10."""
    made = tables(text=True)
    data = frames(spark, made)
    asked = [*SIX[:2], "ndcg(judged_only=yes)@2", "mrr(judged_only=yes)", "coverage(judged_only=yes)@2"]
    for metrics, rules in ((asked, None), ([*SIX, *CATALOGUE], {"judged_only": "yes"})):
        expected = recsys.evaluate(made["lists"], made["truth"], metrics, conventions=rules)
        found = recsys.spark.evaluate(
            data["lists"],
            data["truth"],
            metrics,
            conventions=rules,
            partitions=5,
            per_user_path=tmp_path / "out",
            overwrite=True,
        )
        assert_same(found, expected)
        assert_same_rows(found, expected)


@pytest.mark.parametrize(("given", "by"), [(None, "user"), (400, "item"), ("ids", "item")])
def test_catalogue_metrics_and_groups_are_those_of_one_process(spark, given, by):
    made = tables(text=given is None)
    data = frames(spark, made)
    users, items = sorted(set(made["lists"]["user"])), sorted(set(made["lists"]["item"]))
    asked = {
        "users": {"side": {user: "ab"[at % 2] for at, user in enumerate(users)}},
        "items": {"shelf": {item: "xyz"[at % 3] for at, item in enumerate(items)}},
        "by": "side" if by == "user" else "shelf",
        "catalogue": items if given == "ids" else given,
    }
    metrics = [*SIX[:2], *CATALOGUE]
    expected = recsys.evaluate(made["lists"], made["truth"], metrics, **asked)
    assert_same(recsys.spark.evaluate(data["lists"], data["truth"], metrics, partitions=5, **asked), expected)


def test_weights_scores_and_cases_of_users(spark, tmp_path):
    rng = np.random.default_rng(3)
    lists = pd.DataFrame({"case": np.repeat(np.arange(200), 5), "item": np.tile(np.arange(20), 50)})
    lists["user"], lists["score"] = lists["case"] // 3, rng.integers(0, 9, len(lists)).astype(float)
    truth = pd.DataFrame({"case": np.arange(200), "user": np.arange(200) // 3, "item": np.arange(200) % 7})
    data = frames(spark, {"lists": lists, "truth": truth})
    asked = {
        "case_weights": {case: float(case % 4) for case in range(200)},
        "item_weights": {item: 1.0 + item for item in range(20)},
        "conventions": {"ties": "expected"},
    }
    metrics = ["ndcg@3", "recall@3", "dcg@2"]
    expected = recsys.evaluate(lists, truth, metrics, **asked)
    for keywords in ({}, {"per_user_path": tmp_path / "out"}):
        found = recsys.spark.evaluate(
            data["lists"], data["truth"], metrics, partitions=3, **asked, **keywords
        )
        assert_same(found, expected)
    assert_same_rows(found, expected)
    np.testing.assert_array_equal(found.per_case.clusters, expected.per_case.clusters)


def test_ids_may_be_read_as_text_and_context_may_be_frames(spark):
    made = tables(100)
    data = frames(spark, made)
    as_text = {name: frame.astype({"user": str, "item": str}) for name, frame in made.items()}
    metrics = ["recall@10", "novelty@10", "err@10", "unseen@10"]
    expected = recsys.evaluate(as_text["lists"], as_text["truth"], metrics, train=as_text["seen"])
    history = data["seen"].selectExpr("string(user) user", "string(item) item")
    found = recsys.spark.evaluate(data["lists"], data["truth"], metrics, train=history, ids="str")
    assert_same(found, expected)
    assert found.conventions.max_grade == 3.0


def test_notes_cautions_and_warnings_arrive(spark):
    made = tables(60)
    lists = made["lists"].rename(columns={"rank": "score"}).assign(score=1.0, extra=0)
    data = frames(spark, {**made, "lists": lists})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", recsys.errors.RecsysWarning)
        found = recsys.spark.evaluate(data["lists"], data["truth"], "ndcg@10", partitions=4)
    with pytest.warns(recsys.errors.TieWarning) as expected_words:
        expected = recsys.evaluate(lists, made["truth"], "ndcg@10")
    assert [str(one.message) for one in said] == [str(one.message) for one in expected_words]
    assert found["ndcg@10"] == expected["ndcg@10"]
    assert found.notes["lists"]["read"] == expected.notes["lists"]["read"]
    assert [one.code for one in found.cautions] == [one.code for one in expected.cautions]


@pytest.mark.parametrize("kind", ["tinyint", "int", "bigint", "double"])
def test_ranks_of_every_type_stay_apart_from_rows_without_one(spark, kind):
    made = tables(40)
    made["lists"] = made["lists"][made["lists"]["rank"] <= 100]
    data = frames(spark, made)
    lists = data["lists"].withColumn("rank", data["lists"]["rank"].cast(kind))
    expected = recsys.evaluate(made["lists"], made["truth"], SIX, seen=made["seen"])
    assert_same(recsys.spark.evaluate(lists, data["truth"], SIX, seen=data["seen"]), expected)
    lowest = "-128" if kind == "tinyint" else str(-(2**31)) if kind == "int" else str(-(2**63))
    for cell, words in (
        ("null", "the rank nan"),
        ("0", "the rank 0"),
        ("-5", "the rank -5"),
        (lowest, "the rank -"),
    ):
        wrong = lists.selectExpr(
            "user", "item", f"if(user = 7 and rank = 2, cast({cell} as {kind}), rank) rank"
        )
        with pytest.raises(recsys.errors.InputError, match=words) as caught:
            recsys.spark.evaluate(wrong, data["truth"], SIX)
        assert caught.value.table == "lists"
        assert "user 7" in str(caught.value)


def test_errors_arrive_typed_and_name_user_and_item(spark):
    made = tables(40)
    twice = pd.concat([made["lists"], pd.DataFrame({"user": [5], "item": [999], "rank": [1]})])
    lost = made["truth"].astype({"item": "Int64"}).copy()
    lost.iloc[3, 1] = None
    data = frames(spark, {"lists": made["lists"], "twice": twice, "truth": made["truth"], "lost": lost})
    with pytest.raises(recsys.errors.DuplicateError, match="user 5") as caught:
        recsys.spark.evaluate(data["twice"], data["truth"], SIX)
    assert caught.value.table == "lists"
    assert "item 999" in caught.value.row or "item" in caught.value.row
    with pytest.raises(recsys.errors.InputError, match="missing") as caught:
        recsys.spark.evaluate(data["lists"], data["lost"], SIX)
    assert caught.value.row.startswith(f"user {int(lost.iloc[3, 0])}, item None")
    with pytest.raises(recsys.errors.InputError, match="case_weights has no entry for"):
        recsys.spark.evaluate(data["lists"], data["truth"], SIX, case_weights={0: 1.0})
    with pytest.raises(recsys.errors.InputError, match="the truth table has no rows"):
        recsys.spark.evaluate(data["lists"], data["truth"].filter("user < 0"), SIX)
    with pytest.raises(recsys.errors.InputError, match="no user of the lists"):
        recsys.spark.evaluate(data["lists"].selectExpr("user + 1000 user", "item", "rank"), data["truth"])


def test_equal_scores_have_no_given_order(spark):
    made = tables(40)
    made["lists"]["score"] = -(made["lists"].pop("rank") // 3)
    given = frames(spark, {name: made[name] for name in ("lists", "truth")})
    with pytest.raises(recsys.errors.InputError, match=r"equal scores .* on a cluster rows have none"):
        recsys.spark.evaluate(**given, metrics=["recall@10"], conventions={"ties": "given"})


def test_what_cannot_be_asked_is_refused_before_the_job(spark, monkeypatch):
    monkeypatch.setattr("recsys.spark.cluster_frames.MOST_ROWS", 10)
    data = frames(spark, tables(20))
    lists, truth = data["lists"], data["truth"]
    for error, match, arguments, keywords in (
        (recsys.errors.ColumnError, "no rank and no score", (lists.drop("rank"), truth), {}),
        (recsys.errors.InputError, "lists came as dict", ({1: [2]}, truth), {}),
        (
            recsys.errors.IdTypeError,
            "user ids are bigint in lists and string",
            (lists, truth.selectExpr("string(user) user", "item")),
            {},
        ),
        (
            recsys.errors.IdTypeError,
            "of type double",
            (lists.selectExpr("double(user) user", "item", "rank"), truth),
            {},
        ),
        (
            recsys.errors.FileError,
            "not a path of a file system",
            (lists, truth),
            {"per_user_path": "s3://a/b"},
        ),
        (recsys.errors.NoRowsError, "gmap", (lists, truth, "gmap"), {}),
        (recsys.errors.UnknownNameError, "stopwhen", (lists, truth), {"stopwhen": 0.1}),
        (recsys.errors.InputError, "more than 10 rows", (lists, truth), {"train": data["seen"]}),
    ):
        with pytest.raises(error, match=match):
            recsys.spark.evaluate(*arguments, **keywords)


def test_a_finished_job_is_recognised(spark, tmp_path):
    made = tables(50)
    for name, frame in frames(spark, made).items():
        frame.write.parquet(str(tmp_path / name))
    lists, truth = (spark.read.parquet(str(tmp_path / name)) for name in ("lists", "truth"))
    out = tmp_path / "out"

    def evaluate(lists: Any, metrics: Any = SIX, **keywords: Any) -> tuple[Any, bool]:
        before = out.stat().st_ino if out.exists() else None
        found = recsys.spark.evaluate(lists, truth, metrics, per_user_path=out, partitions=2, **keywords)
        return found, out.stat().st_ino != before

    first, ran = evaluate(lists)
    assert ran
    again, ran = evaluate(lists)
    assert not ran
    assert again == first
    assert evaluate(lists, overwrite=True)[1]
    assert evaluate(lists, SIX[:2])[1]
    assert evaluate(lists.filter("user < 30"))[1]


def test_a_user_with_many_rows_and_partitions_without_any(spark):
    sizes = [100_000, *[3] * 39]
    lists = pd.DataFrame(
        {"user": np.repeat(np.arange(40), sizes), "item": np.concatenate([*map(np.arange, sizes)])}
    )
    lists["score"] = -np.arange(len(lists), dtype=float)
    truth = pd.DataFrame({"user": np.arange(50), "item": np.arange(50) % 5})
    data = frames(spark, {"lists": lists, "truth": truth})
    metrics = ["mrr", "recall@10", "coverage@5"]
    found = recsys.spark.evaluate(data["lists"], data["truth"], metrics, partitions=40)
    assert_same(found, recsys.evaluate(lists, truth, metrics))


def test_workers_without_the_package_are_said_to_lack_it():
    from pyspark.errors import PythonException

    from recsys.spark.cluster_evaluation import clear_errors

    with pytest.raises(recsys.errors.MissingExtraError, match="Every worker needs"), clear_errors():
        raise PythonException("…\nModuleNotFoundError: No module named 'recsys'\n")
    with pytest.raises(PythonException, match="ZeroDivisionError"), clear_errors():
        raise PythonException("…\nZeroDivisionError: division by zero")
