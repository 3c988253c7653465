"""Every metric of the registry on one kind of Spark session, with the bits of one process.

python tests/nightly/cluster_walk.py "local[2]" FOLDER          a classic session
python tests/nightly/cluster_walk.py connect FOLDER             Spark Connect
python tests/nightly/cluster_walk.py "local-cluster[2,1,1024]" FOLDER    workers in processes of their own
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import recsys
import recsys.spark
from recsys.metrics.registry import METRICS

N_USERS, N_ITEMS = 60, 12
PARTITIONS = (1, 2, 3, 7, 20, 50)


def session_of(mode: str, folder: Path) -> Any:
    os.environ["SPARK_LOCAL_IP"], os.environ["PYSPARK_PYTHON"] = "127.0.0.1", sys.executable
    warnings.filterwarnings("ignore", category=FutureWarning)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    builder = builder.remote("local[2]") if mode == "connect" else builder.master(mode)
    options = {"spark.sql.warehouse.dir": folder / "warehouse", "spark.ui.enabled": False}
    if mode != "connect":
        options |= {"spark.driver.memory": "1g", "spark.local.dir": folder / "local"}
    for name, value in options.items():
        builder = builder.config(name, str(value))
    return builder.getOrCreate()


def world(*, text: bool) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Scored lists of all items with ties, graded truth, and whatever a metric needs."""
    rng = np.random.default_rng(11)
    users = [f"u{n}" if text else n * 1000 for n in range(N_USERS)]
    items = [f"é{n:02d}" if text else n for n in range(N_ITEMS)]
    lists = pd.DataFrame(
        [(u, i, float(rng.integers(0, 40))) for u in users[3:] for i in rng.permutation(items).tolist()],
        columns=["user", "item", "score"],
    )
    truth = pd.DataFrame(
        [
            (u, i, float(rng.integers(0, 4)))
            for u in users[:-4]
            for i in rng.permutation(items)[: rng.integers(1, 6)].tolist()
        ],
        columns=["user", "item", "grade"],
    )
    known = {
        "train": {u: rng.permutation(items)[:4].tolist() for u in users[5:]},
        "items": {"worth": {i: float(n % 3) for n, i in enumerate(items)}},
        "embeddings": {i: rng.normal(size=3) for i in items[:-1]},
        "reference": {u: rng.permutation(items)[:5].tolist() for u in users},
        "intents": "worth",
        "full_ranking": True,
        "catalogue": 1100,
    }
    return lists, truth, known


def requests(by: str | None) -> list[str]:
    """All metrics; those whose summary is no mean have none by group, nor reference lists by item."""
    found = []
    for name, metric in sorted(METRICS.items()):
        if by is not None and (
            metric.pooling.summary is not None or (by != "activity" and "reference" in metric.needs)
        ):
            continue
        found += [name] if metric.at_k != "required" else []
        found += [f"{name}@3"] if metric.at_k != "never" else []
    return found


def check(found: Any, expected: Any) -> None:
    assert {n: repr(v) for n, v in found.items()} == {n: repr(v) for n, v in expected.items()}
    assert repr(found.by) == repr(expected.by)
    assert found.counts == expected.counts
    np.testing.assert_array_equal(found.per_case.ids, expected.per_case.ids)
    for name, column in expected.per_case.columns.items():
        np.testing.assert_array_equal(found.per_case.columns[name].view("i8"), column.view("i8"), name)


def walk(spark: Any, folder: Path) -> None:
    """Every metric, by groups of users and of items, cut into any number of partitions."""
    for text in (False, True):
        lists, truth, known = world(text=text)
        frames = [spark.createDataFrame(frame) for frame in (lists, truth)]
        for number, partitions in enumerate(PARTITIONS):
            by = (None, "activity", "popularity", "worth")[number % 4]
            asked = {**known, "metrics": requests(by), "by": by}
            expected = recsys.evaluate(lists, truth, **asked)
            out = folder / f"{text}-{partitions}"
            check(
                recsys.spark.evaluate(*frames, **asked, per_user_path=out, partitions=partitions),
                expected,
            )
            check(recsys.load(out), expected)


def kill_a_worker(spark: Any, folder: Path) -> None:
    """A worker that dies in the middle changes nothing: Spark starts the partition again."""
    lists, truth, _ = world(text=False)
    frames = [spark.createDataFrame(frame) for frame in (lists, truth)]
    died = str(folder / "died")

    def group_of(user: int) -> str:
        if user == 17_000 and not os.path.exists(died):  # noqa: PTH110 - it runs in a worker
            with open(died, "w"):  # noqa: PTH123
                os.kill(os.getpid(), signal.SIGKILL)
        return "ab"[user % 7 > 3]

    Path(died).touch()
    asked = {"metrics": ["ndcg@3", "coverage@3"], "by": group_of}
    expected = recsys.evaluate(lists, truth, **asked)
    Path(died).unlink()
    found = recsys.spark.evaluate(*frames, **asked, per_user_path=folder / "killed", partitions=4)
    assert Path(died).exists()
    check(found, expected)
    assert len(list((folder / "killed").glob("*.parquet"))) == 4


def main() -> None:
    mode, folder = sys.argv[1], Path(sys.argv[2])
    warnings.filterwarnings("ignore", category=recsys.errors.TieWarning)
    spark = session_of(mode, folder)
    walk(spark, folder)
    if mode.startswith("local-cluster"):  # the others try nothing twice
        kill_a_worker(spark, folder)
    spark.stop()
    print("all the same")  # noqa: T201


if __name__ == "__main__":
    main()
