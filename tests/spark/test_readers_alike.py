"""The rows of a file come to the same on Spark as in memory; scripts/fuzz.py goes through every case."""

from __future__ import annotations

import pytest

from worlds.table_files import put, read_on_spark

pytestmark = pytest.mark.filterwarnings("ignore::recsys.errors.RecsysWarning")
READ = [
    "user uint64 beyond.parquet",
    "item decimal.parquet",
    "score beyond.parquet",
    "score float32.parquet",
    "text beyond.csv",
    "text quotes later.csv",
    "text case.csv",
]
REFUSED = ["user fractions.parquet", "score missing.parquet"]


@pytest.mark.parametrize("case", [*READ, *REFUSED])
@pytest.mark.parametrize("kind", ["lists", "truth"])
def test_rows_of_a_file_are_read_alike(spark, tmp_path, case, kind):
    inside, cluster = read_on_spark(put(tmp_path, case), kind, spark)
    assert cluster == inside
    if case in REFUSED:
        assert isinstance(inside, type)
