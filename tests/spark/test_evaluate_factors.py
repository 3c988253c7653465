"""recsys.spark.evaluate_factors: the bits of Factors in one process, also from shards of the catalogue."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import recsys
import recsys.spark

pytestmark = pytest.mark.filterwarnings("ignore:.*share their score:recsys.errors.TieWarning")
METRICS = ["ndcg@10", "recall@5", "hit@10", "coverage@10"]


@pytest.fixture(scope="module")
def world(spark) -> dict[str, Any]:
    """Factors with equal scores across items, users without a row, without truth, and a history."""
    rng = np.random.default_rng(5)
    users, items = rng.integers(-3, 4, (120, 6)), rng.integers(-3, 4, (400, 6))
    items[200:300] = items[:100]
    users, items = users.astype(np.float32), items.astype(np.float32)
    truth = pd.DataFrame({"user": np.repeat(np.arange(10, 130), 4), "item": rng.integers(0, 400, 480)})
    seen = pd.DataFrame({"user": np.repeat(np.arange(120), 5), "item": rng.integers(0, 400, 600)})
    frames = {
        "users": pa.table({"id": np.arange(120), "features": list(users)}),
        "items": pa.table({"id": np.arange(400), "features": list(items)}),
        "truth": pa.Table.from_pandas(truth),
        "seen": pa.Table.from_pandas(seen),
    }
    frames = {name: spark.createDataFrame(table) for name, table in frames.items()}
    return {"U": users, "V": items, "own_truth": truth, "own_seen": seen, **frames}


def expected(world: dict[str, Any], metrics: Any) -> Any:
    model = recsys.Factors(world["U"], world["V"], user_ids=np.arange(120), item_ids=np.arange(400))
    return recsys.evaluate(model, world["own_truth"], metrics, seen=world["own_seen"])


def assert_same(found: Any, wanted: Any, metrics: Any) -> None:
    np.testing.assert_array_equal(found.per_case.ids, wanted.per_case.ids)
    for name, column in wanted.per_case.columns.items():
        np.testing.assert_array_equal(
            found.per_case.columns[name].view("i8"), column.view("i8"), err_msg=name
        )
    assert {name: repr(found[name]) for name in metrics} == {name: repr(wanted[name]) for name in metrics}


def test_factors_have_the_bits_of_one_process(spark, world, tmp_path):
    metrics = [*METRICS, "mrr", "auc", "ndcg(judged_only=yes)@2", "auc(judged_only=yes)"]
    np.save(tmp_path / "V.npy", world["V"])
    wanted = expected(world, metrics)
    for number, items in enumerate((world["items"], str(tmp_path / "V.npy"))):
        found = recsys.spark.evaluate_factors(
            world["users"],
            items,
            world["truth"],
            metrics,
            seen=world["seen"],
            per_user_path=tmp_path / str(number),
            partitions=5,
        )
        assert_same(found, wanted, metrics)
        assert found.counts == wanted.counts
        assert found.asked == wanted.asked


def test_shards_merge_to_the_lists_of_the_whole_catalogue(spark, world, tmp_path):
    found = recsys.spark.evaluate_factors(
        world["users"],
        world["V"],
        world["truth"],
        METRICS,
        seen=world["seen"],
        shards=3,
        per_user_path=tmp_path / "out",
        partitions=2,
    )
    whole = expected(world, METRICS)
    assert_same(found, whole, METRICS)
    assert found.asked.parts == whole.asked.parts


def test_what_factors_cannot_do_is_refused(spark, world, monkeypatch):
    users, truth = world["users"], world["truth"]
    with pytest.raises(recsys.errors.NotDefinedError, match="every candidate"):
        recsys.spark.evaluate_factors(users, world["V"], truth, "auc", shards=2)
    with pytest.raises(recsys.errors.NotDefinedError, match="judged_only='yes' reads places below the first"):
        recsys.spark.evaluate_factors(users, world["V"], truth, "mrr(judged_only=yes)@5", shards=2)
    with pytest.raises(recsys.errors.ColumnError, match="arrays of numbers"):
        recsys.spark.evaluate_factors(truth, world["V"], truth, "mrr@5")
    with pytest.raises(recsys.errors.FileError, match="cannot be read as a matrix"):
        recsys.spark.evaluate_factors(users, "nowhere.npy", truth, "mrr@5")
    with pytest.raises(recsys.errors.InputError, match="no user of the"):
        recsys.spark.evaluate_factors(
            users, world["V"], truth.selectExpr("user + 1000 user", "item"), "mrr@5"
        )
    monkeypatch.setattr("recsys.spark.item_factors.MOST_BYTES", 100)
    with pytest.raises(recsys.errors.InputError, match=r"np\.save them"):
        recsys.spark.evaluate_factors(users, world["V"], truth, "mrr@5")


def test_an_error_about_a_shard_arrives_typed_and_names_the_user(spark, world):
    broken = spark.createDataFrame(
        pa.table({"id": [17, 18], "features": [[1.0] * 6, [1.0, float("nan"), 1.0, 1.0, 1.0, 1.0]]})
    )
    with pytest.raises(recsys.errors.InputError, match="not an array of 6 finite numbers") as error:
        recsys.spark.evaluate_factors(broken, world["V"], world["truth"], "ndcg@5", shards=2)
    assert "id 18" in str(error.value.row)
