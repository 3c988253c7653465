"""Random hostile input against the readers, functions, verbs and kernels: only errors of ours may come out.

    python scripts/fuzz.py --seconds 300           every family, the one furthest from its goal first
    python scripts/fuzz.py --only sparse --cases 200000
    python scripts/fuzz.py --case files:170017     one case again, with how it ended
    python scripts/fuzz.py --walk "evaluate by"    every hostile value at the places whose name starts so
    python scripts/fuzz.py --seconds 3600 --table  writes its section of docs/reliability.md

The families: `files` damages the bytes and the structure of a file of every kind that is read
(worlds/hostile_files.py); `values` puts values of worlds/hostile.py, alone and nested, at its entry points;
`commands` calls every verb of the command with odd options and files (worlds/hostile_commands.py); `sparse`
evaluates sparse matrices with damaged indices and polars frames of odd types; `kernels` spoils the arguments
of small valid kernel calls; `alike` changes the files of the readers' tests (worlds/table_files.py), which
must come to the same in memory and with memory=, and one in ten on Spark, where there is Java. Of a changed
file, which may have two faults, either error counts as the same.

A process runs a batch of cases at a time and is replaced when it dies. A case is drawn from its number, the
seed and the cases before it in its batch: a damaged file that is refused at a new line of ours is damaged
further. Batches are kept in build/fuzz.jsonl with a hash of the sources, and the next run goes on after the
last one, until every family has reached its goal with the sources as they are. The exit status is 1 if a call
ended in anything but a result within its bounds or an error of recsys.errors, computed for five seconds or
took thirty, held more than 3 GiB or ended the process. scripts/sanitize.sh runs `sparse`, `kernels` and
`values` on its build.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import random
import re
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
from proofs import ROOT, Finished, read_lines, write_section

import recsys

sys.path.insert(0, str(ROOT / "tests"))
from worlds import hostile, hostile_commands, hostile_files, table_files

Case = Callable[[], Any]
METRICS = ["ndcg@3", "recall@3", "mrr"]
# Within a list or a table SciPy itself walks over a damaged matrix as soon as it is printed.
NESTED = [name for name in hostile.VALUES if not name.startswith(("CSR", "CSC", "COO"))]
OPTIONS = ("k", "seen", "train", "by", "catalogue", "clusters", "case_weights", "item_weights", "conventions")
FINISHED, DEFECTS = ROOT / "build/fuzz.jsonl", ROOT / "build/fuzz"
SOURCES = [
    ROOT / "src/recsys",
    *(ROOT / f"tests/worlds/{n}.py" for n in ("hostile", "hostile_files", "hostile_commands", "table_files")),
]
GOALS = {
    "files": 1_000_000,
    "values": 150_000,
    "commands": 50_000,
    "sparse": 50_000,
    "kernels": 100_000,
    "alike": 20_000,
}
BATCH = {"files": 20_000, "values": 500, "commands": 200, "sparse": 500, "kernels": 2000, "alike": 100}
LARGEST = 3 << 30  # bytes that a process may hold
LONGEST = 60  # seconds that a case may compute where no alarm reaches it; ten times as long asleep
IN_MEMORY = Path("/dev/shm")  # noqa: S108 - nothing is flushed to a disk there
ENDS = ("error", "result", "defect")
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")  # its address space has no useful limit


# --- values ---------------------------------------------------------------------------------------------


def draw_value(rng: random.Random, depth: int = 0) -> Any:
    """One hostile value, or a container of some."""
    kind = rng.choice(
        ("plain", "plain", "list", "dict", "lists", "objects", "table") if depth < 2 else ("plain",)
    )
    if kind == "plain":
        return hostile.VALUES[rng.choice(NESTED if depth else list(hostile.VALUES))]()
    parts = [draw_value(rng, depth + 1) for _ in range(rng.randint(1, 4))]
    if kind == "list":
        return parts
    if kind == "objects":
        array = np.empty(len(parts), dtype=object)
        array[:] = parts
        return array
    if kind == "table":
        names = rng.sample(["user", "item", "score", "rank", "grade", "time"], rng.randint(1, 4))
        printable = [part for part in parts if str(part) != "sNaN"]  # pandas cannot print a table with one
        return pd.DataFrame({name: [*printable] for name in names})
    keys = [rng.choice([1, 2, 3, "a", None, 2.0, True, (1, 2), -1, 2**63]) for _ in parts]
    return dict(zip(keys, ([p] for p in parts) if kind == "lists" else parts, strict=True))


def values_case(rng: random.Random) -> Case:
    """A random value at a random place, or random lists, truth and an option together."""
    if rng.random() < 0.8:
        where = rng.choice(list(hostile.ENTRIES))
        return named(hostile.ENTRIES[where](draw_value(rng)), where.split()[0])
    options = {rng.choice(OPTIONS): draw_value(rng)} if rng.random() < 0.5 else {}
    lists = draw_value(rng) if rng.random() < 0.6 else hostile.LISTS
    truth = draw_value(rng) if rng.random() < 0.6 else hostile.TRUTH
    return named(partial(recsys.evaluate, lists, truth, METRICS, **options), "evaluate")


def named(call: Case, what: str, data: bytes = b"", file: str = "") -> Case:
    """The call with the kind it is counted under, and a file to keep if it finds a defect."""
    call.what, call.data, call.file = what, data, file  # type: ignore[attr-defined]
    return call


# --- files ----------------------------------------------------------------------------------------------


class FileCases:
    """Damaged files; one that is refused at a line where none was before is damaged further."""

    def __init__(self, folder: Path) -> None:
        self.readers = hostile_files.readers()
        self.weights = [reader.weight for reader in self.readers]
        self.folders = [folder / str(number) for number in range(len(self.readers))]
        self.pool: list[list[bytes]] = [[] for _ in self.readers]
        self.seen: set[Any] = set()
        for reader, here in zip(self.readers, self.folders, strict=True):  # imports are no part of a case
            reader.put(here)
            reader.read(here)

    def case(self, rng: random.Random) -> Case:
        at = rng.choices(range(len(self.readers)), self.weights)[0]
        reader, folder, pool = self.readers[at], self.folders[at], self.pool[at]
        data = hostile_files.damaged(
            rng, reader, rng.choice(pool) if pool and rng.random() < 0.5 else reader.data
        )

        def call() -> Any:
            reader.put(folder, data)
            try:
                return reader.read(folder)
            except recsys.errors.RecsysError as error:
                line = (at, type(error.__cause__), _last_line(error))
                if line not in self.seen and len(data) < 20_000:
                    self.seen.add(line)
                    pool.append(data)
                raise

        return named(call, reader.what, data, reader.file)


def _last_line(error: BaseException) -> tuple[str, int]:
    """Where in the library an error was raised."""
    found, trace = ("", 0), error.__traceback__
    while trace is not None:
        if "/recsys/" in trace.tb_frame.f_code.co_filename:
            found = (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    return found


# --- sparse matrices and polars -------------------------------------------------------------------------


def draw_sparse(rng: random.Random) -> Any:
    """A small matrix, often with indices, pointers or lengths that do not fit."""
    shape = (rng.randint(1, 6), rng.randint(1, 8))
    matrix = sp.random(
        *shape, density=0.5, format=rng.choice(("csr", "csc", "coo")), rng=rng.randrange(1 << 30)
    )
    names = ("row", "col", "data") if matrix.format == "coo" else ("indices", "indptr", "data")
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        name = rng.choice(names)
        array = np.array(getattr(matrix, name))
        how = rng.randrange(4)
        if how == 0 and len(array):
            extreme = (
                (float("nan"), 1e308, -1.0) if name == "data" else (-1, -7, 2**31 - 1, 50, shape[1], shape[0])
            )
            array[rng.randrange(len(array))] = rng.choice(extreme)
        elif how == 1:
            array = array[: rng.randrange(len(array) + 1)]
        elif how == 2:
            array = np.concatenate([array, array[:1]])
        elif name != "data":
            array = array.astype(rng.choice((np.int64, np.float64, ">i4", np.uint8)))
        if matrix.format == "coo" and name != "data":
            rows, columns = matrix.coords
            matrix.coords = (array, columns) if name == "row" else (rows, array)
        else:
            setattr(matrix, name, array)
    return matrix


def draw_polars(rng: random.Random) -> Any:
    """A polars frame of users and items whose columns have odd types."""
    kinds = (pl.Int8, pl.UInt64, pl.Int128, pl.Float32, pl.String, pl.Categorical, pl.Binary, pl.Boolean)
    kinds += (
        pl.Date,
        pl.Datetime("ns"),
        pl.Duration,
        pl.Decimal(20, 3),
        pl.Null,
        pl.Object,
        pl.List(pl.Int64),
    )
    size = rng.randint(0, 6)
    columns = {}
    for name in ("user", "item", *rng.sample(["score", "rank", "grade", "time"], rng.randint(0, 2))):
        texts = [rng.choice(["1", "2", "3", "7", None]) for _ in range(size)]
        column = pl.Series(name, texts).cast(pl.Int64)
        if rng.random() < 0.5:
            column = column.cast(rng.choice(kinds), strict=False)
        columns[name] = column
    frame = pl.DataFrame(columns)
    return frame.lazy() if rng.random() < 0.1 else frame


def sparse_case(rng: random.Random) -> Case:
    """Damaged matrices and frames as lists, truth, history or scores, alone and together."""
    first, second = (draw_sparse(rng) if rng.random() < 0.6 else draw_polars(rng) for _ in range(2))
    how = rng.randrange(7)
    if how == 0:
        return partial(recsys.evaluate, first, second, METRICS)
    if how == 1:
        return partial(recsys.evaluate, hostile.LISTS, first, METRICS, seen=second)
    if how == 2:
        return partial(recsys.evaluate, first, hostile.TRUTH, ["novelty@2"], train=second)
    if how == 3:
        return lambda: recsys.evaluate(recsys.Scores(first), {0: [0]}, METRICS, seen=second)
    if how == 4:
        return partial(recsys.recommend, hostile.factors(), 2, seen=first, eligible=second)
    if how == 5:
        return partial(recsys.audit, first, second)
    return partial(recsys.split, first, "random_ratio")


# --- kernels --------------------------------------------------------------------------------------------


def kernels_case(rng: random.Random) -> Case:
    """One to three spoilt arguments of a small valid call, of the public kernels or of the compiled ones."""
    from kernels import test_fuzz as small_calls
    from recsys import kernels

    functions, calls = (kernels, small_calls.PUBLIC)
    if kernels.backends().native and rng.random() < 0.5:
        from recsys.kernels import _native

        functions, calls = (_native, small_calls.NATIVE)
    name = rng.choice(sorted(calls))
    arguments = {key: _copied(value) for key, value in calls[name].items()}
    for key in rng.sample(sorted(arguments), rng.choice((1, 1, 2, 3)) if len(arguments) > 2 else 1):
        arguments[key] = _spoilt(rng, arguments[key], small_calls)

    def call() -> Any:
        try:
            return getattr(functions, name)(**arguments) is None
        except small_calls.NATIVE_ERRORS as error:
            if functions is kernels and not isinstance(error, recsys.errors.RecsysError | UnicodeEncodeError):
                raise
            raise recsys.errors.InputError(type(error).__name__) from error

    return call


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _spoilt(rng: random.Random, value: Any, small_calls: Any) -> Any:
    """Something like the value that may be wrong: an array, a pair of arrays, a number or a word."""
    if isinstance(value, tuple):
        parts = list(value)
        at = rng.randrange(-1, len(parts))
        if at < 0:
            return rng.choice([parts[:1], (), parts[0], (*parts, parts[0]), None, "pair"])
        parts[at] = _spoilt(rng, parts[at], small_calls)
        return tuple(parts)
    if isinstance(value, dict):
        key = rng.choice([*value, "new", "\ud800", 7])
        old = value.get(key)
        inside = isinstance(old, dict) and rng.random() < 0.5
        return {**value, key: _spoilt(rng, old, small_calls) if inside else rng.choice(small_calls.SCALARS)}
    if isinstance(value, np.ndarray):
        try:
            if rng.random() < 0.5:
                return small_calls.with_value(value, rng.randrange(51), rng.choice(small_calls.VALUES))
            return rng.choice(small_calls.ARRAY_FAULTS)(value)
        except (TypeError, ValueError):  # no such array can be made of it
            return None
    return rng.choice(small_calls.SCALARS)


# --- two ways to read a file --------------------------------------------------------------------------


def alike_case(rng: random.Random, folder: Path) -> Case:
    """A file of the readers' tests, changed or not; what is text comes some bytes at a time, or whole."""
    from recsys.inputs.files import text

    name = rng.choice(list(table_files.CASES))
    files = dict(table_files.CASES[name])
    changed = rng.choice(list(files))
    content = files[changed]
    data = bytearray(content if isinstance(content, bytes) else content.encode())
    if not changed.endswith(".parquet"):  # pages of Parquet are not checked by DuckDB
        for _ in range(rng.choice((0, 1, 1, 2))):
            at, token = rng.randrange(len(data) + 1), rng.choice(hostile_files.TOKENS).encode(errors="ignore")
            data[at : at + rng.choice((0, 0, 1, 3))] = token
    is_changed, files[changed] = (
        data != (content if isinstance(content, bytes) else content.encode()),
        bytes(data),
    )
    kind, size = rng.choice(("lists", "truth")), rng.choice((17, 1 << 23))
    session = spark_session() if rng.random() < 0.1 else None
    other = "with memory=" if session is None else "on Spark"

    def call() -> Any:
        with tempfile.TemporaryDirectory(dir=folder) as own, mock.patch.object(text, "_BLOCK_BYTES", size):
            path = table_files.put(Path(own), name, files)
            inside, beyond = (
                table_files.read_alike(path, kind)
                if session is None
                else table_files.read_on_spark(path, kind, session)
            )
        if inside != beyond and not (is_changed and isinstance(inside, type) and isinstance(beyond, type)):
            raise AssertionError(f"{name} as {kind}: {inside} in memory, {beyond} {other}")
        return True

    return named(call, f"alike {other}", bytes(data), Path(changed).name)


@cache
def spark_session() -> Any:
    """A session of this process, or None without Java; its JVM may hold what it needs."""
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        return None
    from pyspark.sql import SparkSession

    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    try:
        builder = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", "2")
        for name in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
            builder = builder.config(name, "false")
        session = builder.config("spark.driver.memory", "512m").getOrCreate()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    session.sparkContext.setLogLevel("OFF")
    return session


# --- batches --------------------------------------------------------------------------------------------


def batch(family: str, seed: int, number: int, size: int, skip: set[int]) -> Iterator[tuple[int, Case]]:
    """Cases of a batch; those that another library refuses to build, and those to skip, are left out."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as name:
        folder = Path(name)
        make = {
            "files": lambda: FileCases(folder).case,
            "commands": lambda: hostile_commands.CommandCases(folder).case,
            "values": lambda: values_case,
            "sparse": lambda: sparse_case,
            "kernels": lambda: kernels_case,
            "alike": lambda: partial(alike_case, folder=folder),
        }[family]()
        for case in range(number * BATCH[family], number * BATCH[family] + size):
            rng = random.Random(f"{seed}:{family}:{case}")  # noqa: S311
            try:
                call = make(rng)
            except BaseException as error:  # a panic of polars is no Exception
                if isinstance(error, KeyboardInterrupt) or family == "files":
                    raise
                continue
            if case not in skip:
                yield case, call
        os.chdir(tempfile.gettempdir())


def run_batch(family: str, seed: int, number: int, size: int, skip: set[int], *, now: Any) -> dict[str, Any]:
    """How the cases of a batch ended; `now` always holds the number of the case that runs."""
    counts: dict[str, Counter[str]] = {}
    kinds: set[str] = set()
    defects: dict[str, str] = {}
    started = time.process_time()
    with contextlib.suppress(OSError):  # the peak of the batches before is none of this one
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    largest = largest_so_far()
    for case, call in batch(family, seed, number, size, skip):
        now.value = case
        how = hostile.ended(call)
        before, largest = largest, largest_so_far()
        if before <= LARGEST < largest:
            how = hostile.Defect(f"more than {LARGEST >> 30} GiB", "at its peak")
        what = getattr(call, "what", family)
        counts.setdefault(what, Counter())[how if isinstance(how, str) else "defect"] += 1
        if isinstance(how, hostile.Defect) and (alike := re.sub(r"\d+", "0", str(how))) not in kinds:
            kinds.add(alike)
            defects[f"{family}:{case}"] = f"{what}  {how.where}  {how.what}"
            if getattr(call, "data", b""):
                DEFECTS.mkdir(parents=True, exist_ok=True)
                (DEFECTS / f"{case}-{call.file}").write_bytes(call.data)  # type: ignore[attr-defined]
    return {
        "piece": f"{family}:{seed}:{number}",
        "counts": {what: [own[how] for how in ENDS] for what, own in counts.items()},
        "defects": defects,
        "seconds": round(time.process_time() - started, 2),
        "megabytes": largest >> 20,
    }


def largest_so_far() -> int:
    """Bytes that this process held at its peak."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def work(pipe: Any, now: Any) -> None:
    """One process: batches in, how they ended out."""
    os.chdir(tempfile.gettempdir())
    hostile.warm_up()
    memory = 1 << 50 if SANITIZED else hostile.MEMORY
    # The other end may be gone.
    with hostile.limited_memory(memory), hostile.quiet(), contextlib.suppress(EOFError):
        while True:
            pipe.send(run_batch(*pipe.recv(), now=now))


class Worker:
    """A process that runs batches, and is replaced by a new one when it dies, waits or grows without end."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.now = context.Value("q", -1, lock=False)
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, self.now), daemon=True)
        self.process.start()
        theirs.close()

    def run(self, family: str, seed: int, number: int, size: int) -> dict[str, Any]:
        """A batch; a case that ends the process is noted, and the batch is run again without it."""
        ended: dict[int, str] = {}
        while True:
            self.now.value = -1
            self.pipe.send((family, seed, number, size, set(ended)))
            problem = self.wait()
            try:
                found: dict[str, Any] = {} if problem else self.pipe.recv()
            except (EOFError, ConnectionError):
                self.process.join()
                problem = f"the process ended with {self.process.exitcode}"
            if problem is None:
                if ended:
                    found["counts"]["the process ended"] = [0, 0, len(ended)]
                found["defects"] |= {f"{family}:{case}": what for case, what in ended.items()}
                return found
            case = self.now.value
            print(f"{family}:{case}  {problem}", flush=True)
            if case in ended or case < 0:
                raise SystemExit(f"the processes end before a case begins ({problem})")
            ended[case] = problem
            self.process.kill()
            self.process.join()
            self.start()

    def wait(self) -> str | None:
        """Until the batch is done; what ended the process otherwise.

        A process that only waits for a processor, on a busy machine, is left alone.
        """
        case, since, began = -1, time.monotonic(), self.computed()[1]
        while not self.pipe.poll(1):
            if not self.process.is_alive():
                return f"the process ended with {self.process.exitcode}"
            is_running, seconds = self.computed()
            if self.now.value != case:
                case, since, began = self.now.value, time.monotonic(), seconds
            if is_running:
                since = time.monotonic()
            if case >= 0 and seconds - began > LONGEST:
                return f"it computes for more than {LONGEST} s"
            if time.monotonic() - since > 10 * LONGEST:
                return f"it sleeps for more than {10 * LONGEST} s"
            pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
            if pages * resource.getpagesize() > LARGEST:
                return f"more than {LARGEST >> 30} GiB"
        return None

    def computed(self) -> tuple[bool, float]:
        """Whether the process could run now, and the seconds that it computed."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return fields[0] == "R", (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fuzz(chosen: argparse.Namespace) -> int:
    """Run batches until the time or the number of cases is reached; print defects, then counts."""
    kept = FINISHED.with_name("fuzz-sanitize.jsonl") if SANITIZED else FINISHED
    finished = Finished(kept, [*SOURCES, Path(__file__)])
    every = {piece["piece"]: piece for piece in read_lines(kept)}
    if chosen.cases:  # the first ones, whatever ran before
        finished.done, every = {}, {}
    worker, started = Worker(), time.monotonic()
    goals = {family: chosen.cases or GOALS[family] for family in chosen.only or GOALS}
    while chosen.cases or time.monotonic() - started < chosen.seconds:
        counts = ends_of(finished.done.values())
        left = {family: goal - counts.get(family, Counter()).total() for family, goal in goals.items()}
        family = max(left, key=lambda name: left[name] / goals[name])
        number = next(n for n in range(len(every) + 1) if f"{family}:{chosen.seed}:{n}" not in every)
        size = min(BATCH[family], chosen.cases or BATCH[family])
        # Of a case that cannot be built nothing is counted.
        if left[family] <= 0 or (chosen.cases and number * size >= chosen.cases):
            break
        piece = worker.run(family, chosen.seed, number, size)
        every[piece["piece"]] = finished.done[piece["piece"]] = piece
        if not chosen.cases:
            finished.add(piece)
        for case, what in piece["defects"].items():
            print(f"{case}  {what}", flush=True)
    text = summary(finished.done.values(), every.values())
    if chosen.table:
        write_section("fuzz", text)
    else:
        print(text)
    return 1 if any(piece["defects"] for piece in finished.done.values()) else 0


def ends_of(pieces: Iterable[dict[str, Any]]) -> dict[str, Counter[str]]:
    """How many cases of each kind ended how, by family and by "family: kind"."""
    found: dict[str, Counter[str]] = {}
    for piece in pieces:
        family = piece["piece"].split(":")[0]
        for what, counts in piece["counts"].items():
            for name in (family, f"{family}: {what}"):
                found.setdefault(name, Counter()).update(dict(zip(ENDS, counts, strict=True)))
    return found


def summary(pieces: Collection[dict[str, Any]], every: Collection[dict[str, Any]]) -> str:
    """The tables of the page: families, then the kinds of each."""
    now, in_all = ends_of(pieces), ends_of(every)
    lines = [
        "| family | cases | errors of ours | results | defects | per CPU second | largest process | in all |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for family in GOALS:
        own = [piece for piece in pieces if piece["piece"].startswith(f"{family}:")]
        n, total = now.get(family, Counter()), in_all.get(family, Counter()).total()
        rate = n.total() / max(sum(piece["seconds"] for piece in own), 0.01)
        largest = max((piece["megabytes"] for piece in own), default=0)
        ends = " | ".join(f"{n[how]:,}" for how in ENDS)
        lines.append(f"| {family} | {n.total():,} | {ends} | {rate:,.0f} | {largest:,} MB | {total:,} |")
    lines += [
        "",
        '"In all" counts earlier states of the sources too. By what was read or called, refused and read:',
        "",
    ]
    for family in ("files", "commands", "values", "alike"):
        kinds = sorted(
            (name.partition(": ")[2], n) for name, n in now.items() if name.startswith(f"{family}: ")
        )
        shown = [f"{what} {n['error'] + n['defect']:,} + {n['result']:,}" for what, n in kinds]
        lines.append(f"- {family}: {', '.join(shown) or 'none'}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="how long, all families together")
    parser.add_argument("--cases", type=int, help="at least so many of each family, whatever the time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=list(GOALS), nargs="+")
    parser.add_argument("--case", help="one case again, such as values:17")
    parser.add_argument("--walk", metavar="PLACE", help="every value at the places whose name starts so")
    parser.add_argument("--table", action="store_true", help="write the section of docs/reliability.md")
    chosen = parser.parse_args()
    if chosen.walk is None and not chosen.case:
        return fuzz(chosen)
    hostile.warm_up()
    with hostile.limited_memory(), hostile.quiet():
        if chosen.case:
            family, _, wanted = chosen.case.partition(":")
            number, size = int(wanted) // BATCH[family], BATCH[family]
            for case, call in batch(family, chosen.seed, number, size, set()):
                if case == int(wanted):
                    print(hostile.problem_of(call()))
                    return 0
                hostile.ended(call)
            print("cannot be built")
            return 0
        return walk(chosen.walk)


def walk(place: str) -> int:
    """Every value at every place whose name starts so, and the defects by place in the code."""
    tried: Counter[str] = Counter()
    found: dict[hostile.Defect, list[str]] = {}
    for where, what in hostile.cells():
        if where.startswith(place):
            how = hostile.outcome(hostile.ENTRIES[where], hostile.VALUES[what])
            tried[how if isinstance(how, str) else "defect"] += 1
            if isinstance(how, hostile.Defect):
                found.setdefault(how, []).append(f"{where} <- {what}")
    for defect, at in sorted(found.items()):
        print(f"{defect.where}  {defect.what}\n    {len(at)}: {'; '.join(at[:6])}")
    ends = f"{tried['error']:,} errors of ours, {tried['result']:,} results, {tried['defect']:,} defects"
    print(f"{sum(tried.values()) - tried['no cell']:,} cells: {ends}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
