"""The registry on every kind of Spark session: `make nightly`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

WALK = Path(__file__).with_name("cluster_walk.py")


pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="no Java: Spark needs 17 or newer")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mode", ["local[2]", "connect", "local-cluster[2,1,1024]"])
def test_every_metric_has_the_bits_of_one_process(mode, tmp_path):
    pytest.importorskip("pyspark")
    done = subprocess.run(
        [sys.executable, str(WALK), mode, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines()[-1] == "all the same"


def test_workers_without_the_package_are_said_to_lack_it():
    pytest.importorskip("pyspark")
    code = """
import recsys.spark
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").getOrCreate()
rows = spark.sql("select 1L user, 2L item, 1 rank")
recsys.spark.evaluate(rows, rows.drop("rank"), "ndcg@5")
"""
    # The interpreter that this environment was made from has none of its packages.
    environment = {**os.environ, "PYSPARK_PYTHON": sys._base_executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    assert "MissingExtraError: Every worker needs the package" in done.stderr, done.stderr[-4000:]
