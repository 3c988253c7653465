"""Random hostile input against the public functions and file readers: only errors of ours may come out.

    python scripts/fuzz.py --seconds 300           all families in turn, until the time is up
    python scripts/fuzz.py --only sparse --cases 200000
    python scripts/fuzz.py --case files:17         one case again, with its traceback
    python scripts/fuzz.py --table "evaluate by"   every value at the places whose name starts so

A case is drawn from its number and the seed alone, so it can be repeated. The families: `values` puts values
of tests/worlds/hostile.py, alone and nested in each other, at its entry points; `files` damages files of
every format, bytes and structure; `sparse` evaluates sparse matrices with damaged indices and polars frames
of odd types. The exit status is 1 if a call ended in anything but a result within its bounds or an error of
recsys.errors, or ran longer than five seconds.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp

import recsys

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from worlds import hostile

Case = Callable[[], Any]
METRICS = ["ndcg@3", "recall@3", "mrr"]
# Within a list or a table SciPy itself walks over a damaged matrix as soon as it is printed.
NESTED = [name for name in hostile.VALUES if not name.startswith(("CSR", "CSC", "COO"))]
OPTIONS = ("k", "seen", "train", "by", "catalogue", "clusters", "case_weights", "item_weights", "conventions")


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
    if rng.random() < 0.7:
        return hostile.ENTRIES[rng.choice(list(hostile.ENTRIES))](draw_value(rng))
    options = {rng.choice(OPTIONS): draw_value(rng)} if rng.random() < 0.5 else {}
    lists = draw_value(rng) if rng.random() < 0.6 else hostile.LISTS
    truth = draw_value(rng) if rng.random() < 0.6 else hostile.TRUTH
    return partial(recsys.evaluate, lists, truth, METRICS, **options)


# --- files ----------------------------------------------------------------------------------------------

_TABLE = pd.DataFrame(
    {
        "user": [1, 1, 2, 2, 3],
        "item": [5, 6, 5, 7, 8],
        "score": [0.5, 0.25, 1.0, 0.125, 2.0],
        "time": [1, 2, 3, 4, 5],
    }
)
_NUMBERS = ["nan", "inf", "-1", "0", "1e999", "9223372036854775807", "18446744073709551616", "1_0"]
_TOKENS = [*_NUMBERS, "\0", ",", "\t", "\n", '"', "{}", "[]", "null", "true", "é", "user"]


@cache
def file_seeds() -> dict[str, bytes]:
    """One good file of every kind: its bytes by its name."""
    matrix = np.arange(12.0).reshape(4, 3)
    seeds = {
        "a.csv": _TABLE.to_csv(index=False).encode(),
        "a.tsv": _TABLE.to_csv(index=False, sep="\t").encode(),
        "a.inter": b"user_id:token\titem_id:token\trating:float\n1\t5\t0.5\n1\t6\t2\n2\t5\t1\n",
        "a.run": b"q1 Q0 d1 1 0.9 t\nq1 Q0 d2 2 0.5 t\nq2 Q0 d1 1 0.7 t\n",
        "a.qrels": b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 2\n",
        "u.data": b"196\t242\t3\t881250949\n186\t302\t3\t891717742\n22\t377\t1\t878887116\n",
        "a.json": json.dumps({"1": [5, 6], "2": {"5": 1.0, "7": 0.5}}).encode(),
        "rows.json": json.dumps(_TABLE.to_dict("records")).encode(),
        "a.jsonl": "".join(json.dumps(row) + "\n" for row in _TABLE.to_dict("records")).encode(),
    }
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        _TABLE.to_parquet(here / "a.parquet")
        _TABLE.to_feather(here / "a.arrow")
        np.save(here / "a.npy", matrix)
        np.savez(here / "a.npz", matrix)
        np.savez_compressed(here / "packed.npz", matrix)
        sp.save_npz(here / "sparse.npz", sp.csr_matrix(matrix))
        recsys.evaluate(hostile.LISTS, hostile.TRUTH, METRICS).save(here / "result.json")
        _save_tensors(here, matrix)
        for file in sorted(here.iterdir()):
            seeds[file.name] = file.read_bytes()
    seeds["a.csv.gz"] = gzip.compress(seeds["a.csv"], mtime=0)
    return seeds


def _save_tensors(here: Path, matrix: Any) -> None:
    try:
        import torch
        from safetensors.numpy import save_file
    except ImportError:
        return
    save_file({"m": matrix}, here / "a.safetensors")
    torch.save(torch.tensor(matrix), here / "a.pt")


def damage(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """The file with a few changes: bits, bytes, pieces, tokens, lines, lengths."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at, end = sorted(rng.randrange(len(out) + 1) for _ in range(2))
        how = rng.randrange(9)
        if how == 0 and out:
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
        elif how == 1 and out:
            out[rng.randrange(len(out))] = rng.choice((0, 1, 127, 128, 255, 10, 44, 34))
        elif how == 2:
            del out[at : min(end, at + rng.choice((1, 4, 64, 4096)))]
        elif how == 3:
            out[at:at] = out[at : min(end, at + 200)] * rng.choice((1, 2, 50))
        elif how == 4:
            out[at:at] = rng.choice(_TOKENS).encode()
        elif how == 5:
            del out[at:]
        elif how == 6:
            other = rng.choice(others)
            start = rng.randrange(len(other) + 1)
            out[at:at] = other[start : start + rng.choice((1, 16, 300))]
        elif how == 7:
            out[at : at + 8] = rng.choice((0, 1, 2**31 - 1, 2**63 - 1, 2**64 - 1)).to_bytes(8, "little")
        else:
            lines = bytes(out).split(b"\n")
            rng.shuffle(lines)
            out = bytearray(b"\n".join(lines))
    return bytes(out)


def files_case(rng: random.Random, folder: Path) -> Case:
    """A damaged file, read the way a file of its name would be."""
    seeds = file_seeds()
    name = rng.choice(sorted(seeds))
    data = damage(rng, seeds[name], list(seeds.values()))
    if name.endswith(".gz") and rng.random() < 0.5:
        data = gzip.compress(damage(rng, seeds["a.csv"], list(seeds.values())), mtime=0)
    if name == "result.json" and rng.random() < 0.5:
        data = json.dumps(_damaged_document(rng, json.loads(seeds[name]))).encode()
    file = folder / name
    file.write_bytes(data)
    if name == "result.json":
        return partial(recsys.load, file)
    if name.endswith((".npy", ".npz", ".safetensors", ".pt")):
        return partial(recsys.read_factors, file, file)
    return partial(recsys.read_file, file, rng.choice(("lists", "truth")))


def _damaged_document(rng: random.Random, document: Any) -> Any:
    """A JSON document with one value replaced by another of a random kind."""
    holder, key = document, rng.choice(list(document))
    while isinstance(holder[key], dict | list) and holder[key] and rng.random() < 0.9:
        holder = holder[key]
        key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
    holder[key] = rng.choice([None, -1, 1e400, 2**70, "", "nan", [], {}, [[1]], {"dtype": "<f8"}, True])
    return document


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


# --- the run --------------------------------------------------------------------------------------------


def cases(family: str, seed: int, folder: Path) -> Iterator[tuple[int, Case]]:
    """The cases of a family, without end; those that another library refuses to build are left out."""
    for number in count():
        case = one_case(family, seed, number, folder)
        if case is not None:
            yield number, case


def one_case(family: str, seed: int, number: int, folder: Path) -> Case | None:
    """One case; None where a value cannot be built."""
    rng = random.Random(f"{seed}:{family}:{number}")  # noqa: S311
    make: dict[str, Callable[[], Case]] = {
        "values": lambda: values_case(rng),
        "files": lambda: files_case(rng, folder),
        "sparse": lambda: sparse_case(rng),
    }
    if family != "files":
        try:
            return make[family]()
        except BaseException as error:  # a panic of polars is no Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            return None
    return make[family]()


FAMILIES = ("values", "files", "sparse")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="how long, all families together")
    parser.add_argument("--cases", type=int, help="how many of each family, whatever the time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=FAMILIES)
    parser.add_argument("--case", help="one case again, such as values:17")
    parser.add_argument("--skip", nargs="*", default=[], help="places in the code that are known already")
    parser.add_argument("--table", metavar="PLACE", help="every value at the places whose name starts so")
    chosen = parser.parse_args()
    hostile.warm_up()
    with hostile.limited_memory(), tempfile.TemporaryDirectory() as folder, hostile.quiet():
        if chosen.case:
            family, number = chosen.case.split(":")
            case = one_case(family, chosen.seed, int(number), Path(folder))
            print(hostile.problem_of(case()) if case else "cannot be built")
            return 0
        return fuzz(chosen, Path(folder)) if chosen.table is None else walk(chosen.table)


def fuzz(chosen: argparse.Namespace, folder: Path) -> int:
    """Run, print defects as they come and counts at the end."""
    families = [chosen.only] if chosen.only else list(FAMILIES)
    streams = {family: cases(family, chosen.seed, folder) for family in families}
    counts: Counter[tuple[str, str]] = Counter()
    places: Counter[hostile.Defect] = Counter()
    started, turn = time.monotonic(), 0
    while turn < chosen.cases if chosen.cases else time.monotonic() - started < chosen.seconds:
        for family, stream in streams.items():
            number, case = next(stream)
            how = hostile.ended(case)
            if isinstance(how, hostile.Defect) and how.where.startswith(tuple(chosen.skip)):
                how = "known"
            counts[family, how if isinstance(how, str) else "defect"] += 1
            if isinstance(how, hostile.Defect):
                places[how] += 1
                if places[how] == 1:
                    print(f"{family}:{number}  {how.where}  {how.what}", flush=True)
        turn += 1
    for family in families:
        n = {how: counts[family, how] for how in ("error", "result", "known", "defect")}
        ends = f"{n['error']:,} errors of ours, {n['result']:,} results, {n['defect']:,} defects"
        ends += f", {n['known']:,} known" if n["known"] else ""
        print(f"{family}: {sum(n.values()):,} cases, {ends}")
    return 1 if places else 0


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
