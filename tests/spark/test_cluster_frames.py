"""Which DataFrames ask the same question, and what Spark cannot be asked; classic and Connect."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import recsys
import recsys.spark

LISTS = "user,item,score\n1, a,0.9\n1,b,0.5\n2, b,0.9\n2,c,0.1\n3,c,.9\n"
SCHEMA = "user string, item string, score double"


def write_files(session: Any, folder: Path) -> None:
    (folder / "lists.csv").write_text(LISTS)
    (folder / "truth.csv").write_text("user,item\n1,a\n2,b\n3,c\n")
    runs = [(f"run#{run}", str(u), f"{'ab'[u % run]}#{run}", 1.0) for run in (1, 2) for u in range(6)]
    session.createDataFrame(runs, f"model string, {SCHEMA}").write.parquet(str(folder / "runs"))
    truth = [(str(u), f"a#{run}") for run in (1, 2) for u in range(6)]
    session.createDataFrame(truth, "user string, item string").write.parquet(str(folder / "both"))


def check_questions(session: Any, folder: Path) -> None:
    """Tables with the same rows, in any order, ask the same question, made twice; others ask another."""
    from pyspark.sql import functions as F  # noqa: N812

    from recsys.evaluation.in_pieces.evaluator import Evaluator
    from recsys.spark.cluster_evaluation import ClusterEvaluation
    from recsys.spark.cluster_frames import UserFrame

    truth = session.read.csv(str(folder / "truth.csv"), header=True)

    def ask(lists: Any) -> str:
        tables = [UserFrame.open("lists", lists, None), UserFrame.open("truth", truth, None)]
        return ClusterEvaluation(tables, Evaluator(["mrr"]), {}).fingerprint()

    def read(**options: Any) -> Any:
        return session.read.csv(str(folder / "lists.csv"), header=True, schema=SCHEMA, **options)

    def run(model: str) -> Any:
        return session.read.parquet(str(folder / "runs")).filter(F.col("model") == model).drop("model")

    def without_a_score(user: str) -> Any:
        score = f"if(user = '{user}', null, score) score"
        return read(ignoreLeadingWhiteSpace=True).selectExpr("user", "item", score)

    makers = {
        "file": read,
        "blanks": lambda: read(ignoreLeadingWhiteSpace=True),
        "first run": lambda: run("run#1"),
        "second run": lambda: run("run#2"),
        "marked": lambda: run("run#1").withColumn("item", F.concat("item", F.lit("#1"))),
        "union": lambda: run("run#1").union(read()),
        "twice": lambda: read().union(read()),
        "one score is missing": lambda: without_a_score("1"),
        "another score is missing": lambda: without_a_score("2"),
    }
    asked = {name: ask(maker()) for name, maker in makers.items()}
    assert {name: ask(maker()) for name, maker in makers.items()} == asked
    assert len(set(asked.values())) == len(makers)
    assert ask(read().orderBy("item")) == asked["file"]
    read().createOrReplaceTempView("lists")
    before = ask(session.table("lists"))
    read(ignoreLeadingWhiteSpace=True).createOrReplaceTempView("lists")
    assert ask(session.table("lists")) != before == asked["file"]
    (folder / "lists.csv").write_text(LISTS + "4,a,1\n")
    assert ask(read()) != asked["file"]
    (folder / "lists.csv").write_text(LISTS)


def check_answers(session: Any, folder: Path) -> None:
    """A folder holds the answer of one question; another one is answered anew."""
    truth = session.read.csv(str(folder / "truth.csv"), header=True)
    out = folder / "out"

    def read(**options: Any) -> Any:
        return session.read.csv(str(folder / "lists.csv"), header=True, schema=SCHEMA, **options)

    def answer(lists: Any, truth: Any) -> float:
        return recsys.spark.evaluate(lists, truth, ["mrr"], per_user_path=out, partitions=1)["mrr"]

    assert answer(read(), truth) == pytest.approx(1 / 3)
    assert answer(read(ignoreLeadingWhiteSpace=True), truth) == 1.0
    kept = out.stat().st_ino
    assert answer(read(ignoreLeadingWhiteSpace=True), truth) == 1.0
    assert out.stat().st_ino == kept
    both = session.read.parquet(str(folder / "both"))
    runs = session.read.parquet(str(folder / "runs"))
    one, two = (runs.filter(f"model = 'run#{run}'").select("user", "item", "score") for run in (1, 2))
    assert answer(one, both) == 1.0
    assert answer(two, both) == 0.5


def check_errors(session: Any, folder: Path) -> None:
    """What Spark would refuse in its own words, and what it would do in silence, is ours to say."""
    lists = session.read.csv(str(folder / "lists.csv"), header=True, schema=SCHEMA)
    for number in (0, -1, 2.5, True, "8"):
        with pytest.raises(recsys.errors.InputError, match="is not a number of pieces") as caught:
            recsys.spark.evaluate(lists, lists, ["mrr"], partitions=number)
        assert caught.value.hint
        with pytest.raises(recsys.errors.InputError, match="is not a number of pieces"):
            recsys.spark.compare({"a": "b"}, session=session, partitions=number)
    twice = lists.selectExpr("user", "item AS User", "item", "score")
    with pytest.raises(recsys.errors.ColumnError, match="differ in capital letters only") as caught:
        recsys.spark.evaluate(twice, lists, ["mrr"])
    assert (caught.value.table, caught.value.column) == ("lists", "user")
    unused = lists.selectExpr("user", "item", "score", "item AS other", "item AS Other")
    assert recsys.spark.evaluate(unused, lists, ["mrr"])["mrr"] > 0
    session.stop()
    for attempt in (
        lambda: recsys.spark.evaluate(lists, lists, ["mrr"]),
        lambda: recsys.spark.compare({"a": "b"}, session=session),
    ):
        with pytest.raises(recsys.errors.InputError, match="has been stopped") as caught:
            attempt()
        assert caught.value.hint


def test_a_question_is_known_by_its_rows(spark, tmp_path):
    write_files(spark, tmp_path)
    check_questions(spark, tmp_path)
    check_answers(spark, tmp_path)


@pytest.mark.parametrize("mode", ["connect", "classic"])
def test_in_a_session_of_its_own(mode, spark, tmp_path):  # `spark` skips where there is no Java
    done = subprocess.run(
        [sys.executable, __file__, mode, tmp_path], capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    from pyspark.sql import SparkSession

    place = Path(sys.argv[2])
    builder = SparkSession.builder
    if sys.argv[1] == "connect":
        session = builder.remote("local[2]").getOrCreate()
    else:
        options = {"spark.driver.memory": "1g", "spark.ui.enabled": "false"}
        session = builder.master("local[2]").config(map=options).getOrCreate()
    write_files(session, place)
    if sys.argv[1] == "connect":
        check_questions(session, place)
        check_answers(session, place)
    check_errors(session, place)
