"""The session that the tests of Spark share: Arrow batches go to Python workers of this environment."""

import sys

import pyarrow as pa


def test_rows_go_through_workers_of_this_environment(spark):
    def described(batches):
        import sys

        import pyarrow as pa

        import recsys

        for batch in batches:
            yield pa.record_batch(
                {
                    "rows": pa.array([batch.num_rows]),
                    "worker": pa.array([f"{sys.executable} {recsys.__version__}"]),
                }
            )

    import recsys

    rows = spark.range(250_000, numPartitions=2).mapInArrow(described, "rows long, worker string").collect()
    assert {row.worker for row in rows} == {f"{sys.executable} {recsys.__version__}"}
    assert sum(row.rows for row in rows) == 250_000
    assert max(row.rows for row in rows) == 100_000


def test_a_shuffle_by_user_keeps_every_user_whole(spark):
    users = pa.table({"user": [f"u{n % 500}" for n in range(5_000)], "item": range(5_000)})
    frame = spark.createDataFrame(users).repartition(3, "user")

    def counted(batches):
        import pyarrow as pa

        rows = pa.Table.from_batches(list(batches)).group_by("user").aggregate([("item", "count")])
        yield from rows.to_batches()

    found = frame.mapInArrow(counted, "user string, item_count long").collect()
    assert sorted((row.user, row.item_count) for row in found) == sorted((f"u{n}", 10) for n in range(500))
