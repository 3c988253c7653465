"""Factors to exact top-20 and rank counts, against peers and against the matrix product alone.

The floor is the product by NumPy's BLAS, blocked into a reused buffer, nothing else; every other line also
leaves out seen items and selects. One thread each, interleaved, medians of CPU and wall time: on a shared
machine CPU time is the one to trust. Ours also matches the lists with the truth, which peers are
spared; the lines "+ 18 metrics" are whole calls of recsys.evaluate.
"Counting, 20 places" stops counting a truth item once 20 candidates stand above it, as evaluate does when no
metric looks further; how much that saves depends on how many truth items are that far down.
Usage: OPENBLAS_NUM_THREADS=1 python benchmarks/factors.py [--interactions ml-1m.parquet] [--only C D-als]
       [--users-d 140000] [--users-e 20000] [--rounds 3] [--lines floor "recsys top-20" implicit]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import recsys
from recsys import kernels
from recsys.records.arrays import Ids

K = 20
METRICS = [f"{n}@{k}" for n in ("precision", "recall", "ndcg", "map", "mrr", "hit") for k in (5, 10, 20)]
Rows = tuple[np.ndarray, np.ndarray]
Runner = Callable[[], Any]


class World(NamedTuple):
    """Factors, what each user has seen, and what is held out."""

    users: np.ndarray
    items: np.ndarray
    seen: Rows
    truth: Rows


def rows_of(lengths: np.ndarray, bounds: np.ndarray, rng: np.random.Generator) -> Rows:
    """Per user distinct items drawn by popularity."""
    n_items = bounds.size
    drawn = np.minimum(np.searchsorted(bounds, rng.random(int(lengths.sum()))), n_items - 1)
    keys = np.unique(np.repeat(np.arange(lengths.size), lengths) * n_items + drawn)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(keys // n_items, minlength=lengths.size))])
    return indptr, (keys % n_items).astype(np.int32)


def with_history(users: np.ndarray, items: np.ndarray, mean_seen: int, rng: np.random.Generator) -> World:
    n_users, n_items = len(users), len(items)
    popularity = rng.permutation(1.0 / np.arange(1, n_items + 1) ** 0.9)
    bounds = np.cumsum(popularity / popularity.sum())
    most = max(20, n_items // 8)
    n_seen = np.minimum(1 + (rng.pareto(1.5, n_users) * mean_seen / 2).astype(np.int64), most)
    n_truth = np.minimum(1 + (rng.pareto(1.5, n_users) * 2.5).astype(np.int64), 200)
    return World(users, items, rows_of(n_seen, bounds, rng), rows_of(n_truth, bounds, rng))


def synthetic(n_users: int, n_items: int, n_factors: int, mean_seen: int, seed: int) -> World:
    """Decaying spectrum, item norms that grow with popularity."""
    rng = np.random.default_rng(seed)
    spectrum = (1.0 / np.sqrt(1 + np.arange(n_factors))).astype(np.float32)
    users = rng.standard_normal((n_users, n_factors), dtype=np.float32) * spectrum
    items = rng.standard_normal((n_items, n_factors), dtype=np.float32) * spectrum
    lift = rng.permutation((np.arange(1, n_items + 1) ** -0.9) ** 0.35).astype(np.float32)
    items *= (lift / lift.mean())[:, None]
    return with_history(users, items, mean_seen, rng)


def trained(path: Path, kind: str, n_users: int, n_items: int, seed: int) -> World:
    """Rows resampled from factors implicit trained on real interactions, directions jittered, norms kept."""
    import pandas as pd
    from implicit.als import AlternatingLeastSquares
    from implicit.bpr import BayesianPersonalizedRanking

    table = pd.read_parquet(path)
    user, item = (pd.factorize(table[table.columns[i]])[0] for i in (0, 1))
    matrix = sparse.csr_matrix((np.ones(len(table), np.float32), (user, item)))
    model = AlternatingLeastSquares(factors=128, random_state=seed, num_threads=1)
    if kind == "bpr":
        model = BayesianPersonalizedRanking(factors=127, random_state=seed, num_threads=1)
    model.fit(matrix, show_progress=False)
    rng = np.random.default_rng(seed)

    def resampled(rows: np.ndarray, n: int) -> np.ndarray:
        rows = np.asarray(rows, np.float32)[rng.integers(0, len(rows), n)]
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        noise = (
            rng.standard_normal(rows.shape, dtype=np.float32) * norms * np.float32(0.3 / rows.shape[1] ** 0.5)
        )
        moved = rows + noise
        return moved * (norms / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), np.float32(1e-30)))

    return with_history(
        resampled(model.user_factors, n_users), resampled(model.item_factors, n_items), 70, rng
    )


def flat(n_users: int, n_items: int, n_factors: int, seed: int) -> World:
    """Items of one length: nothing can be pruned, so trying must cost next to nothing."""
    rng = np.random.default_rng(seed)
    users = rng.standard_normal((n_users, n_factors), dtype=np.float32)
    items = rng.standard_normal((n_items, n_factors), dtype=np.float32)
    items /= np.linalg.norm(items, axis=1, keepdims=True)
    return with_history(users, items, 70, rng)


def floors(world: World) -> dict[str, Runner]:
    def product(rows: int, columns: int) -> Runner:
        out = np.empty((rows, columns), np.float32)

        def run() -> None:
            for i in range(0, len(world.users), rows):
                x = world.users[i : i + rows]
                for j in range(0, len(world.items), columns):
                    y = world.items[j : j + columns]
                    np.matmul(x, y.T, out=out[: len(x), : len(y)])

        return run

    return {
        f"floor {rows}x{columns}": product(rows, columns) for rows, columns in ((1024, 512), (2048, 2048))
    }


def ours(world: World) -> dict[str, Runner]:
    common: dict[str, Any] = {"seen": world.seen, "threads": 1, "backend": "native"}

    def listed(**options: Any) -> None:
        found = kernels.scan(world.users, world.items, k=K, **common, **options)
        kernels.match_lists(found.list_indptr, found.list_items, *world.truth, threads=1)

    def counted(**options: Any) -> None:
        kernels.scan(world.users, world.items, truth=world.truth, **common, **options)

    model = recsys.Factors(world.users, world.items)
    truth, seen = interactions(world.truth, world), interactions(world.seen, world)

    def from_lists() -> None:
        lists = recsys.recommend(model, K, seen=seen, threads=1)
        quietly(lambda: recsys.evaluate(lists, truth, METRICS, threads=1))

    def from_counts() -> None:
        quietly(lambda: recsys.evaluate(model, truth, METRICS, seen=seen, threads=1))

    return {
        "recsys top-20 + 18 metrics": from_lists,
        "recsys counting + 18 metrics": from_counts,
        "recsys top-20": listed,
        "recsys top-20, prune=False": lambda: listed(prune=False),
        "recsys top-20, prune=True": lambda: listed(prune=True),
        "recsys top-20, AVX2": lambda: listed(cpu_level="avx2", prune=False),
        "recsys counting": counted,
        "recsys counting, prune=False": lambda: counted(prune=False),
        "recsys counting, 20 places": lambda: counted(deepest=K),
        "recsys both": lambda: listed(truth=world.truth),
    }


def interactions(rows: Rows, world: World) -> recsys.Interactions:
    """Rows as evaluate takes them, so that both ways start from the same arrays."""
    cases, items = (
        Ids(np.arange(len(world.users)), is_range=True),
        Ids(np.arange(len(world.items)), is_range=True),
    )
    return recsys.Interactions(cases, items, rows[0].astype(np.int64), rows[1])


def quietly(call: Runner) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()


def implicit_topk(world: World) -> Runner:
    from implicit.cpu.topk import topk

    shape = (len(world.users), len(world.items))
    seen = sparse.csr_matrix(
        (np.ones(world.seen[1].size, np.float32), world.seen[1], world.seen[0]), shape=shape
    )
    return lambda: topk(world.items, world.users, K, filter_query_items=seen, num_threads=1)


def torch_topk(world: World) -> Runner:
    import torch

    torch.set_num_threads(1)
    users, items = torch.from_numpy(world.users), torch.from_numpy(world.items)
    batch = max(64, min(1000, 100_000_000 // len(items)))

    def run() -> None:
        for start in range(0, len(users), batch):
            scores = users[start : start + batch] @ items.T
            indptr = world.seen[0][start : start + batch + 1]
            rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
            scores[
                torch.from_numpy(rows), torch.from_numpy(world.seen[1][indptr[0] : indptr[-1]]).long()
            ] = -torch.inf
            torch.topk(scores, K)

    return run


def faiss_search(world: World) -> Runner:
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(world.items.shape[1])
    index.add(world.items)
    lengths = np.diff(world.seen[0])
    order = np.argsort(lengths, kind="stable")

    def run() -> None:
        for start in range(0, order.size, 512):
            part = order[start : start + 512]
            wanted = min(len(world.items), K + int(lengths[part].max()))
            _, found = index.search(world.users[part], wanted)
            for row, user in enumerate(part):
                seen = world.seen[1][world.seen[0][user] : world.seen[0][user + 1]]
                found[row][~np.isin(found[row], seen)][:K]

    return run


def rectools_rank(world: World) -> Runner:
    """RecTools from factors to the 18 metrics: its ranker, a table, calc_metrics."""
    import pandas as pd
    from rectools import metrics as m
    from rectools.models.rank import Distance, ImplicitRanker

    kinds = {"precision": m.Precision, "recall": m.Recall, "ndcg": m.NDCG, "map": m.MAP, "mrr": m.MRR}
    kinds["hit"] = m.HitRate
    wanted = {name: kinds[name.split("@")[0]](int(name.split("@")[1])) for name in METRICS}
    shape = (len(world.users), len(world.items))
    seen = sparse.csr_matrix(
        (np.ones(world.seen[1].size, np.float32), world.seen[1], world.seen[0]), shape=shape
    )
    users = np.repeat(np.arange(shape[0]), np.diff(world.truth[0]))
    truth = pd.DataFrame({"user_id": users, "item_id": world.truth[1]})

    def run() -> None:
        ranker = ImplicitRanker(Distance.DOT, world.users, world.items, num_threads=1)
        found, items, _ = ranker.rank(np.arange(shape[0]), k=K, filter_pairs_csr=seen)
        lists = pd.DataFrame({"user_id": found, "item_id": items})
        lists["rank"] = lists.groupby("user_id").cumcount() + 1
        m.calc_metrics(wanted, lists, truth)

    return run


PEERS = {
    "implicit topk": implicit_topk,
    "torch matmul + topk": torch_topk,
    "faiss over-fetch": faiss_search,
    "RecTools + 18 metrics": rectools_rank,
}


def runners(world: World) -> dict[str, Runner]:
    found = {**floors(world), **ours(world)}
    for name, make in PEERS.items():
        try:
            found[name] = make(world)
        except ImportError:
            print(f"{name} is not installed and is left out", file=sys.stderr)
    return found


def measure(world: World, rounds: int, wanted: list[str] | None = None) -> dict[str, Any]:
    """Every runner once a round; the first round is not counted."""
    if {world.users.dtype, world.items.dtype} != {np.dtype(np.float32)}:
        raise TypeError("a float64 world would be compared with a float64 product: make it float32")
    calls = runners(world)
    if wanted:
        calls = {
            n: c for n, c in calls.items() if n.startswith("floor") or any(n.startswith(w) for w in wanted)
        }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for turn in range(rounds + 1):
        for name, call in calls.items():
            wall, cpu = time.perf_counter(), time.process_time()
            call()
            if turn:
                times[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    lines = {
        name: {"wall_s": float(np.median([w for w, _ in t])), "cpu_s": float(np.median([c for _, c in t]))}
        for name, t in times.items()
    }
    floor = min(line["cpu_s"] for name, line in lines.items() if name.startswith("floor"))
    for line in lines.values():
        line["x_floor"] = line["cpu_s"] / floor
    return lines


def memory(world: World) -> dict[str, float]:
    """Peak memory of a scan above what was there before it, in MB; a fresh process tells best."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kernels.scan(world.users, world.items, k=K, truth=world.truth, seen=world.seen)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"growth_mb": (after - before) / 1024, "packed_mb": world.items.nbytes / 2**20}


def machine() -> dict[str, Any]:
    names = ("numpy", "scipy", "implicit", "torch", "faiss-cpu", "rectools")
    versions = {}
    for name in names:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = None
    cpu = (
        next(
            (
                line.split(":")[1].strip()
                for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")
            ),
            "",
        )
        if Path("/proc/cpuinfo").exists()
        else platform.processor()
    )
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "backend": str(kernels.backends()),
        "packages": versions,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--interactions", type=Path, help="Parquet whose first two columns are user and item")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--users-d", type=int, default=4_000, help="users of D; ML-20M has 140,000")
    parser.add_argument("--users-e", type=int, default=1_000, help="users of E; 20,000 in full")
    parser.add_argument("--lines", nargs="*", help="only lines that begin so, beside the floor")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "factors.json")
    given = parser.parse_args()
    users_d, users_e = given.users_d, given.users_e
    worlds: dict[str, Callable[[], World]] = {
        "C": lambda: synthetic(12_000, 2_231, 64, 10, 3),
        "D": lambda: synthetic(users_d, 27_000, 128, 70, 4),
        "D-flat": lambda: flat(users_d, 27_000, 128, 7),
        "E": lambda: synthetic(users_e, 1_000_000, 64, 50, 5),
    }
    if given.interactions:
        worlds["D-als"] = lambda: trained(given.interactions, "als", users_d, 27_000, 6)
        worlds["D-bpr"] = lambda: trained(given.interactions, "bpr", users_d, 27_000, 6)
    results = json.loads(given.out.read_text()) if given.out.exists() else {}
    for name, make in worlds.items():
        if given.only and name not in given.only:
            continue
        world = make()
        used = memory(world)
        lines = measure(world, given.rounds, given.lines)
        results[name] = {
            "users": list(world.users.shape),
            "items": list(world.items.shape),
            "dtype": str(world.items.dtype),
            "k": K,
            "rounds": given.rounds,
            "machine": machine(),
            "memory": used,
            "lines": lines,
        }
        show(name, world, lines)
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(results, indent=1) + "\n")


def show(name: str, world: World, lines: dict[str, Any]) -> None:
    print(f"{name}: users {world.users.shape}, items {world.items.shape}, {world.items.dtype}")
    for line, values in lines.items():
        print(
            f"  {line:32} {values['cpu_s']:8.3f} s CPU {values['wall_s']:8.3f} s wall "
            f"{values['x_floor']:6.2f} x floor"
        )


if __name__ == "__main__":
    main()
