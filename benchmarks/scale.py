"""Tables beyond memory and on Spark: CPU of the whole process tree and peak memory, against the plain ways.

Data (scale_data.py): users x top-10 and about five relevant of 200,000 items each, as Parquet files that do
not match in users. Metrics: recall, ndcg, map, mrr, hit and precision at 10.

duckdb   recsys.evaluate(glob, glob, memory="1GB", per_user=FOLDER) against DuckDB's own SQL for the means of
         recall, ndcg and mrr alone (and, up to two million users, recsys.evaluate on tables in memory)
spark    recsys.spark.evaluate on local[2] against the same plan with a kernel in plain NumPy (one shuffle by
         user, mapInArrow, six metrics, rows per user written as Parquet, sums to the driver), and against
         Spark's floor: the same shuffle, batches counted. One warm session, turn by turn
replay   RePlay's OfflineMetrics, one call for all six and means only, on Spark frames of the same files once
         warm, and on Polars, against recsys.spark.evaluate
factors  1,000,000 users x 100,000 items x 64: recsys.spark.evaluate_factors on local[2] against one process
growth   the first line of `duckdb` for 1, 2, 5 and 10 million users, all grouped by user

Every line runs in a process of its own, in the environment of `make test`; RePlay asks for pandas 2, and runs
in one made by hand: python3 -m venv .venv-replay
                     .venv-replay/bin/pip install "replay-rec[spark]==0.22.0" pyspark==4.3.0
Usage: python benchmarks/scale.py duckdb --users 10_000_000 [--ids text] [--rounds 1]
       python benchmarks/scale.py                     # all of them, each at the size it is quoted for
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from measuring import machine
from scale_data import DATA, ROOT, SHUFFLED_UP_TO, K, factors, tables

METRICS = [f"{name}@{K}" for name in ("recall", "ndcg", "map", "mrr", "hit", "precision")]
FULL_RANKING = [*METRICS, "mrr"]  # uncut: every candidate above a relevant item is counted


# ---- what is measured: each runs in a process of its own and returns what it found

SQL_METRICS = ["recall@10", "ndcg@10", "mrr@10"]
SQL = """
with hits as (select l.user, l.rank from '{lists}' l join '{truth}' t using (user, item)),
 n as (select user, count(*) c from '{truth}' group by user),
 h as (select user, count(*) hits, sum(1 / log2(rank + 1)) dcg, min(rank) first
       from hits where rank <= 10 group by user),
 ideal as (select i, sum(1 / log2(i + 1)) over (order by i) v from range(1, 11) r(i))
select avg(coalesce(hits, 0) / n.c), avg(coalesce(dcg, 0) / ideal.v), avg(coalesce(1 / first, 0))
from n left join h using (user) join ideal on ideal.i = least(n.c, 10)"""


def duckdb_sql(folder: Path, memory: str) -> dict[str, float]:
    import duckdb

    with tempfile.TemporaryDirectory(dir=DATA) as spill:
        settings = {"memory_limit": memory, "threads": 2, "temp_directory": spill}
        with duckdb.connect(config={**settings, "preserve_insertion_order": False}) as connection:
            query = SQL.format(lists=parquet(folder, "lists"), truth=parquet(folder, "truth"))
            return dict(zip(SQL_METRICS, connection.sql(query).fetchall()[0], strict=True))


def out_of_core(folder: Path, memory: str) -> dict[str, float]:
    import recsys

    with tempfile.TemporaryDirectory(dir=DATA) as out:
        rows = Path(out, "per_user")
        lists, truth = parquet(folder, "lists"), parquet(folder, "truth")
        return dict(recsys.evaluate(lists, truth, METRICS, memory=memory, per_user=rows))


def in_memory(folder: Path) -> dict[str, float]:
    import pyarrow.parquet as pq

    import recsys

    return dict(recsys.evaluate(pq.read_table(folder / "lists"), pq.read_table(folder / "truth"), METRICS))


def parquet(folder: Path, what: str) -> str:
    return str(folder / what / "*.parquet")


def on_spark(folder: Path, lines: list[str], rounds: int, partitions: int) -> dict[str, Any]:
    """The plans turn by turn in one session; the first turn warms up and is not counted."""
    session = spark_session(partitions)
    lists, truth = session.read.parquet(str(folder / "lists")), session.read.parquet(str(folder / "truth"))

    def ours(out: str) -> dict[str, float]:
        import recsys.spark

        return dict(recsys.spark.evaluate(lists, truth, METRICS, per_user_path=out, partitions=partitions))

    def numpy(out: str) -> dict[str, float]:
        return numpy_plan(together(lists, truth, partitions), out)

    def floor(_: str) -> dict[str, float]:
        made = together(lists, truth, partitions).mapInArrow(counted, "rows long")
        return {"rows": float(sum(row.rows for row in made.collect()))}

    plans = {"recsys": ours, "numpy": numpy, "floor": floor}
    return turns({line: plans[line] for line in lines}, rounds)


def spark_session(partitions: int) -> Any:
    os.environ["SPARK_LOCAL_IP"], os.environ["PYSPARK_PYTHON"] = "127.0.0.1", sys.executable
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    from pyspark.sql import SparkSession

    options = {
        "spark.driver.memory": "1g",
        "spark.local.dir": DATA / "spark",
        "spark.sql.adaptive.coalescePartitions.enabled": False,
        "spark.sql.execution.arrow.maxRecordsPerBatch": 100_000,
        "spark.sql.shuffle.partitions": partitions,
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in options.items():
        builder = builder.config(name, str(value))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def together(lists: Any, truth: Any, partitions: int) -> Any:
    """Lists and truth in one frame, one shuffle by user; a row of truth has no rank."""
    from pyspark.sql import functions

    no_rank = functions.lit(None).cast("int").alias("rank")
    both = lists.select("user", "item", functions.col("rank").cast("int")).unionByName(
        truth.select("user", "item", no_rank)
    )
    return both.repartition(partitions, "user")


def counted(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    yield pa.record_batch({"rows": pa.array([sum(batch.num_rows for batch in batches)])})


def numpy_plan(frame: Any, out: str) -> dict[str, float]:
    """Rows per user to a folder of Parquet, and one row a partition with its sums, from the same job."""
    import numpy as np

    kind = dict(frame.dtypes)["user"]
    names = [name.replace("@", "_at_") for name in METRICS]
    schema = f"user {kind}, {', '.join(f'{name} double' for name in names)}, sums binary"
    frame.mapInArrow(numpy_kernel, schema).write.parquet(out)
    parts = frame.sparkSession.read.parquet(out).filter("sums is not null").select("sums").collect()
    totals = np.sum([np.frombuffer(row.sums) for row in parts], axis=0)
    return dict(zip(METRICS, (totals[1:] / totals[0]).tolist(), strict=True))


def numpy_kernel(batches: Iterator[Any]) -> Iterator[Any]:
    """Six metrics without a loop over users; (user, item, rank) must fit into one number, as it does here.

    Sorting what is looked up, too, makes the look-up three times as fast.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    held = list(batches)
    if not held:
        return
    table = pa.Table.from_batches(held)
    user, item, missing = (
        table["user"].to_numpy(),
        table["item"].to_numpy(),
        pc.is_null(table["rank"]).to_numpy(),
    )
    users, n_relevant = np.unique(user[missing], return_counts=True)
    if not len(users):
        return
    width = int(item.max()) + 1
    pair = user * width + item
    relevant = np.sort(pair[missing])
    listed = np.sort(pair[~missing] * 16 + np.minimum(table["rank"].drop_null().to_numpy(), 11))
    found = relevant[np.minimum(np.searchsorted(relevant, listed // 16), len(relevant) - 1)] == listed // 16
    hit = listed[found & (listed % 16 <= 10)]
    hit = np.sort(hit // 16 // width * 16 + hit % 16)
    code, rank = np.searchsorted(users, hit // 16), (hit % 16).astype(np.float64)
    n = len(users)
    hits = np.bincount(code, minlength=n)
    first = np.cumsum(hits) - hits
    so_far = np.arange(1, len(hit) + 1) - first[code]
    discounts = 1 / np.log2(np.arange(2, 12))
    cut = np.minimum(n_relevant, 10)
    reciprocal = np.zeros(n)
    reciprocal[hits > 0] = 1 / rank[first[hits > 0]]
    columns = [
        hits / n_relevant,
        np.bincount(code, 1 / np.log2(rank + 1), n) / np.cumsum(discounts)[cut - 1],
        np.bincount(code, so_far / rank, n) / cut,
        reciprocal,
        (hits > 0).astype(np.float64),
        hits / 10,
    ]
    names = ["user", *(f"{m}_at_10" for m in ("recall", "ndcg", "map", "mrr", "hit", "precision")), "sums"]
    rows = pa.record_batch([users, *columns, pa.nulls(n, pa.binary())], names=names)
    for start in range(0, n, 1 << 16):
        yield rows.slice(start, 1 << 16)
    sums = np.array([n, *(column.sum() for column in columns)]).tobytes()
    nothing = [pa.nulls(1, kind) for kind in rows.schema.types[:-1]]
    yield pa.record_batch([*nothing, pa.array([sums], pa.binary())], names=names)


def means_on_spark(folder: Path, rounds: int, partitions: int) -> dict[str, Any]:
    """What RePlay is asked for: means, no rows per user, after the same small call to warm up."""
    import recsys.spark

    session = spark_session(partitions)
    lists, truth = session.read.parquet(str(folder / "lists")), session.read.parquet(str(folder / "truth"))
    recsys.spark.evaluate(lists.filter("user < 2000"), truth.filter("user < 2000"), METRICS)

    def ours(_: str) -> dict[str, float]:
        return dict(recsys.spark.evaluate(lists, truth, METRICS, partitions=partitions))

    return turns({"recsys": ours}, rounds, warm=True)


def replay_on_spark(folder: Path, rounds: int, partitions: int) -> dict[str, Any]:
    from pyspark.sql import functions

    session = spark_session(partitions)
    lists, truth = session.read.parquet(str(folder / "lists")), session.read.parquet(str(folder / "truth"))
    lists = lists.select("user", "item", (-functions.col("rank")).cast("double").alias("rating"))
    replay_means(lists.filter("user < 2000"), truth.filter("user < 2000"))
    return turns({"replay on spark": lambda _: replay_means(lists, truth)}, rounds, warm=True)


def replay_on_polars(folder: Path) -> dict[str, float]:
    import polars as pl

    lists = pl.read_parquet(parquet(folder, "lists")).select("user", "item", rating=-pl.col("rank"))
    return replay_means(lists, pl.read_parquet(parquet(folder, "truth")))


def replay_means(lists: Any, truth: Any) -> dict[str, float]:
    from replay import metrics

    warnings.filterwarnings("ignore", "ground_truth contains queries that are not presented", UserWarning)
    kinds = {
        "recall": metrics.Recall,
        "ndcg": metrics.NDCG,
        "map": metrics.MAP,
        "mrr": metrics.MRR,
        "hit": metrics.HitRate,
        "precision": metrics.Precision,
    }
    columns = {"query_column": "user", "item_column": "item", "rating_column": "rating"}
    means = metrics.OfflineMetrics([kind(K) for kind in kinds.values()], **columns)(lists, truth)
    return {f"{name}@{K}": means[f"{kind.__name__}@{K}"] for name, kind in kinds.items()}


def factors_in_one_process(folder: Path) -> dict[str, float]:
    import numpy as np
    import pyarrow.parquet as pq

    import recsys

    model = recsys.Factors(np.load(folder / "users.npy"), np.load(folder / "items.npy"))
    return dict(recsys.evaluate(model, pq.read_table(folder / "truth.parquet"), FULL_RANKING))


def factors_on_spark(folder: Path, rounds: int, partitions: int) -> dict[str, Any]:
    import numpy as np

    import recsys.spark

    session = spark_session(partitions)
    users = session.read.parquet(str(folder / "users.parquet"))
    truth = session.read.parquet(str(folder / "truth.parquet"))
    items = np.load(folder / "items.npy")
    few = users.filter("user < 2000"), truth.filter("user < 2000")
    recsys.spark.evaluate_factors(few[0], items, few[1], FULL_RANKING)

    def ours(_: str) -> dict[str, float]:
        return dict(recsys.spark.evaluate_factors(users, items, truth, FULL_RANKING, partitions=partitions))

    return turns({"recsys": ours}, rounds, warm=True)


# ---- measuring


def turns(plans: dict[str, Callable[[str], Any]], rounds: int, *, warm: bool = False) -> dict[str, Any]:
    """Every plan once a turn, in an order that moves on; unless warm, the first turn is not counted."""
    taken: dict[str, list[dict[str, Any]]] = {name: [] for name in plans}
    for turn in range(1 if warm else 0, rounds + 1):
        names = list(plans)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            with tempfile.TemporaryDirectory(dir=DATA) as out:
                forget_peaks()
                began, spent = time.perf_counter(), tree_cpu()
                found = plans[name](str(Path(out, "per_user")))
                took = {"cpu_s": tree_cpu() - spent, "wall_s": time.perf_counter() - began, **peaks()}
            if turn:
                taken[name].append({**took, "found": found})
    return {name: middle(took) for name, took in taken.items()}


def middle(taken: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of every measure; of the rest, what the last one says."""
    measured = {part: [took[part] for took in taken] for part in taken[0] if part.endswith(("_s", "_gb"))}
    return {
        **taken[-1],
        **{part: statistics.median(values) for part, values in measured.items()},
        "cpu_s of each": measured["cpu_s"],
    }


def processes() -> dict[int, list[str]]:
    """The fields of /proc/PID/stat, from the state on, of this process and all below it."""
    fields = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
        except OSError:  # gone meanwhile
            continue
    mine = [os.getpid()]
    for pid in mine:
        mine += [child for child, found in fields.items() if int(found[1]) == pid]
    return {pid: fields[pid] for pid in mine}


def tree_cpu() -> float:
    """CPU seconds of the tree so far, with those of children that have ended."""
    ticks = sum(sum(map(int, found[11:15])) for found in processes().values())
    return ticks / os.sysconf("SC_CLK_TCK")


def forget_peaks() -> None:
    for pid in processes():
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_gb(pid: int | str = "self") -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024 / 1e9
    return 0.0


def peaks() -> dict[str, float]:
    """The largest JVM and the largest Python worker below this process, since peaks were forgotten."""
    found = {"jvm_gb": 0.0, "worker_gb": 0.0}
    for pid in processes():
        command = Path(f"/proc/{pid}/cmdline").read_text()
        part = "jvm_gb" if "java" in command.split("\0")[0] else "worker_gb"
        if pid != os.getpid():
            found[part] = max(found[part], peak_gb(pid))
    return found


WORKS = {
    work.__name__: work
    for work in (tables, factors, duckdb_sql, out_of_core, in_memory, on_spark, means_on_spark,
                 replay_on_spark, replay_on_polars, factors_in_one_process, factors_on_spark)
}  # fmt: skip
PACKAGES = ("recsys-evaluation", "numpy", "pandas", "polars", "pyarrow", "duckdb", "pyspark", "replay-rec")


def apart(work: Callable[..., Any], *arguments: Any, environment: str = ".venv") -> dict[str, Any]:
    """What a work finds in a process of its own, with the CPU of that process and its peak memory."""
    call = json.dumps([work.__name__, *arguments], default=str)
    python = ROOT / environment / "bin" / "python"
    began = time.perf_counter()
    with subprocess.Popen([python, __file__, "--work", call], stdout=subprocess.PIPE, text=True) as process:
        printed = process.stdout.read() if process.stdout else ""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{call} ended with {process.returncode}")
    took = {"cpu_s": used.ru_utime + used.ru_stime, "wall_s": time.perf_counter() - began}
    return {**took, **json.loads(printed.splitlines()[-1])}


def in_turn(lines: dict[str, Callable[[], dict[str, Any]]], rounds: int) -> dict[str, Any]:
    """Lines that are a process each, once a round."""
    taken = [{name: line() for name, line in lines.items()} for _ in range(rounds)]
    return {name: middle([took[name] for took in taken]) for name in lines}


def in_session(*call: Any, environment: str = ".venv") -> dict[str, Any]:
    """The lines that one process of `turns` measured."""
    made = apart(*call, environment=environment)
    return {name: {**row, "machine": made["machine"]} for name, row in made["found"].items()}


def work_here(call: str) -> None:
    """The other side of `apart`."""
    DATA.mkdir(parents=True, exist_ok=True)
    name, *arguments = json.loads(call)
    if name not in ("tables", "factors"):
        arguments[0] = Path(arguments[0])
    found = WORKS[name](*arguments)
    print(json.dumps({"found": found, "peak_gb": peak_gb(), "machine": machine(*PACKAGES)}, default=str))


def same_means(rows: dict[str, Any]) -> None:
    """Equal work gives equal numbers."""
    for name in METRICS:
        values = [row["found"][name] for row in rows.values() if name in row["found"]]
        if values and max(values) - min(values) > 1e-9:
            raise SystemExit(f"the lines disagree on {name}: {values}")


# ---- the command


def duckdb_lines(args: argparse.Namespace) -> dict[str, Any]:
    folder = apart(tables, args.users, args.ids, args.order)["found"]
    lines: dict[str, Callable[[], dict[str, Any]]] = {
        "recsys": lambda: apart(out_of_core, folder, args.memory),
        "sql": lambda: apart(duckdb_sql, folder, args.sql_memory),
    }
    if args.users <= SHUFFLED_UP_TO:
        lines["in memory"] = lambda: apart(in_memory, folder)
    return in_turn({name: line for name, line in lines.items() if wanted(args, name)}, args.rounds)


def spark_lines(args: argparse.Namespace) -> dict[str, Any]:
    folder = apart(tables, args.users, args.ids, args.order)["found"]
    lines = [line for line in ("recsys", "numpy", "floor") if wanted(args, line)]
    return in_session(on_spark, folder, lines, args.rounds, args.partitions)


def replay_lines(args: argparse.Namespace) -> dict[str, Any]:
    peer = ".venv-replay"
    if not (ROOT / peer).is_dir():
        print(f"RePlay is left out: there is no {peer}; the top of this script says how to make it")
        return {}
    folder = apart(tables, args.users, args.ids, args.order)["found"]
    rows: dict[str, Any] = {}
    if wanted(args, "recsys"):
        rows |= in_session(means_on_spark, folder, args.rounds, args.partitions)
    if wanted(args, "replay on spark"):
        rows |= in_session(replay_on_spark, folder, args.rounds, args.partitions, environment=peer)
    if wanted(args, "replay on polars"):
        line = {"replay on polars": lambda: apart(replay_on_polars, folder, environment=peer)}
        rows |= in_turn(line, args.rounds)
    return rows


def factor_lines(args: argparse.Namespace) -> dict[str, Any]:
    folder = apart(factors, args.users)["found"]
    rows: dict[str, Any] = {}
    if wanted(args, "recsys"):
        rows |= in_session(factors_on_spark, folder, args.rounds, args.partitions)
    if wanted(args, "one process"):
        rows |= in_turn({"one process": lambda: apart(factors_in_one_process, folder)}, args.rounds)
    return rows


def growth_lines(args: argparse.Namespace) -> dict[str, Any]:
    rows = {}
    for n_users in (1_000_000, 2_000_000, 5_000_000, 10_000_000):
        folder = apart(tables, n_users, args.ids, "grouped")["found"]
        line = {f"{n_users:,}": lambda folder=folder: apart(out_of_core, folder, args.memory)}
        rows |= in_turn(line, args.rounds)
        rows[f"{n_users:,}"]["users"] = n_users
    draw_growth(rows)
    return rows


def draw_growth(rows: dict[str, Any]) -> None:
    """The picture in docs/beyond-memory.md."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 2.9), layout="constrained")
    users = [row["users"] / 1e6 for row in rows.values()]
    for ax, part, title, text in (
        (axes[0], "cpu_s", "CPU time, seconds", "{:.0f} s"),
        (axes[1], "peak_gb", "peak memory of the process, GB", "{:.2f} GB"),
    ):
        values = [row[part] for row in rows.values()]
        ax.plot(users, values, marker="o", color="#2a6f97", linewidth=1.8, markersize=5)
        for number, (x, y) in enumerate(zip(users, values, strict=True)):
            place = (0, -15) if number % 2 == 0 and part == "peak_gb" else (0, 7)
            ax.annotate(text.format(y), (x, y), textcoords="offset points", xytext=place, ha="center")
        ax.set_title(title, loc="left", fontsize=10.5)
        ax.set(xlabel="million users x top-10", xlim=(0, 11), ylim=(0, 1.25 * max(values)), xticks=users)
        ax.spines[["top", "right"]].set_visible(False)
    axes[1].set_ylim(0, 1.15)
    axes[1].axhline(1.0, color="#999999", linewidth=1, linestyle="--")
    axes[1].annotate('memory="1GB"', (0.3, 1.02), color="#666666")
    figure.savefig(ROOT / "docs" / "images" / "growth.png", dpi=160)


def wanted(args: argparse.Namespace, line: str) -> bool:
    return not args.lines or line in args.lines


# What it compares, how many users unless told, and how many rounds.
PARTS: dict[str, tuple[Callable[[argparse.Namespace], dict[str, Any]], int, int]] = {
    "duckdb": (duckdb_lines, 10_000_000, 1),
    "spark": (spark_lines, 2_000_000, 3),
    "replay": (replay_lines, 200_000, 1),
    "factors": (factor_lines, 1_000_000, 1),
    "growth": (growth_lines, 10_000_000, 1),
}


def show(title: str, rows: dict[str, Any]) -> None:
    """Ratios are of CPU a user, to the first line."""
    print(title)
    first = next(iter(rows.values()))
    for name, row in rows.items():
        rate = row["users"] / row["cpu_s"]
        ratio = first["users"] / first["cpu_s"] / rate
        memory = ", ".join(f"{part[:-3]} {row[part]:.2f} GB" for part in row if part.endswith("_gb"))
        took = f"{row['cpu_s']:8.1f} s CPU {row['wall_s']:8.1f} s wall {rate:10,.0f} users per CPU s"
        print(f"  {name:16} {took} {ratio:6.2f}x  {memory}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="part", help="; ".join(PARTS))
    parser.add_argument("--users", type=int, help="instead of the number a part is quoted for")
    parser.add_argument("--ids", choices=["int", "text"], default="int")
    parser.add_argument("--order", choices=["shuffled", "grouped"], help="of the rows within a file")
    parser.add_argument("--lines", nargs="*", help="some lines of a part only")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--memory", default="1GB", help="what recsys.evaluate may take")
    parser.add_argument("--sql-memory", default="600MB", help="DuckDB's own limit; the process takes more")
    parser.add_argument("--partitions", type=int, help="on Spark; one for 125,000 users unless said")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "scale.json")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        work_here(args.work)
        return
    report = json.loads(args.json.read_text()) if args.json.exists() else {}
    for part in args.parts or PARTS:
        measure, users, rounds = PARTS[part]
        told = argparse.Namespace(**vars(args))
        told.users, told.rounds = args.users or users, args.rounds or rounds
        told.partitions = args.partitions or max(4, told.users // 125_000)
        rows = measure(told)
        for row in rows.values():
            row.setdefault("users", told.users)
        title = f"{part}, {told.users:,} users, {args.ids} ids"
        if part == "growth":
            title = f"growth, {args.ids} ids"
        else:
            same_means(rows)
        if rows:
            show(title, rows)
            report[title] = rows
        args.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
