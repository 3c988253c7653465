"""recsys.spark.compare: the numbers and verdicts of recsys.compare, from sums that the workers make."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import recsys
import recsys.spark

pytestmark = pytest.mark.filterwarnings("ignore::recsys.stats.results.UnpairedWarning")
METRICS = ["ndcg@10", "recall@5", "f1@10", "hit@1", "coverage@10"]


@pytest.fixture(scope="module")
def folders(spark, tmp_path_factory):
    """Two models of users with text ids; each has users that the other lacks."""
    place = tmp_path_factory.mktemp("compared")
    rng = np.random.default_rng(2)
    truth = pd.DataFrame({"user": np.repeat(np.arange(400), 3), "item": rng.integers(0, 40, 1200)})
    truth["grade"] = rng.integers(1, 4, 1200).astype(float)
    made = {}
    for name, users in (("old", range(390)), ("new", range(10, 400))):
        rows = [
            (u, int(i), at)
            for u in users
            for at, i in enumerate(rng.permutation(60 if name == "old" else 45)[:10], 1)
        ]
        lists = pd.DataFrame(rows, columns=["user", "item", "rank"])
        frames = [
            spark.createDataFrame(pa.Table.from_pandas(frame.astype({"user": str})))
            for frame in (lists, truth[truth["user"].isin(users)])
        ]
        recsys.spark.evaluate(*frames, METRICS, catalogue=60, per_user_path=place / name, partitions=3)
        made[name] = str(place / name)
    return made


def test_a_comparison_on_the_cluster_is_that_on_the_driver(spark, folders):
    expected = recsys.compare(folders, baseline="old")
    found = recsys.spark.compare(folders, baseline="old", partitions=4)
    assert [row.verdict for row in found.table.rows] == [row.verdict for row in expected.table.rows]
    for mine, theirs in zip(found.table.rows, expected.table.rows, strict=True):
        assert (mine.model, mine.metric) == (theirs.model, theirs.metric)
        for name, value in vars(theirs).items():
            if isinstance(value, float):
                assert getattr(mine, name) == pytest.approx(value, rel=1e-10, nan_ok=True), name
    assert str(found) == str(expected)
    assert "into memory" not in str(found)


@pytest.mark.parametrize("levels", [4, 1 << 16])  # distinct differences that are counted
def test_bootstraps_and_values_that_must_be_read_are_those_of_the_driver(spark, folders, monkeypatch, levels):
    monkeypatch.setattr("recsys.stats.samples.MOST_DISTINCT", levels)
    asked = {
        "baseline": "old",
        "metrics": ["ndcg@10", "f1@10"],
        "n_resamples": 200,
        "rng": 0,
        "scheme": "poisson",
    }
    for test in ("t", "studentised"):
        found = recsys.spark.compare(folders, test=test, partitions=3, **asked)
        assert str(found) == str(recsys.compare(folders, test=test, **asked))
        assert "into memory" not in str(found)
