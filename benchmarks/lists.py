"""Lists to 18 metrics against peers: equal work, one run, interleaved; medians of CPU and wall time.

Workload: 100,000 users x top-20, 1-20 relevant of 50,000 items; precision, recall, ndcg, map, mrr and hit at
5, 10 and 20, from a pandas table, all input checks inside the timed call. Run it where the peers are
installed: `make bench`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

NAMES = ("precision", "recall", "ndcg", "map", "mrr", "hit")
CUTS = (5, 10, 20)
METRICS = [f"{name}@{k}" for name in NAMES for k in CUTS]


def world(n_users: int, n_items: int, k: int, seed: int = 1) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Long-tailed lists and truth as tables, grouped by user and ranked; no pair twice."""
    rng = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, n_items + 1) ** 0.8
    bounds = np.cumsum(rng.permutation(weights / weights.sum()))

    def draw(shape: tuple[int, ...]) -> np.ndarray:
        return np.minimum(np.searchsorted(bounds, rng.random(shape)), n_items - 1)

    sizes = np.minimum(rng.zipf(1.6, n_users), 20)
    pairs = np.unique(np.repeat(np.arange(n_users), sizes) * n_items + draw((int(sizes.sum()),)))
    truth = pd.DataFrame({"user_id": pairs // n_items, "item_id": pairs % n_items})
    lists = draw((n_users, k))
    first = truth.groupby("user_id")["item_id"].first()
    lucky = rng.random(n_users) < 0.6
    at = (rng.random(n_users) ** 1.5 * k).astype(int)
    rows = np.flatnonzero(lucky)
    lists[rows, at[rows]] = first.to_numpy()[rows]
    for row in np.flatnonzero((np.diff(np.sort(lists, axis=1), axis=1) == 0).any(axis=1)):
        kept = list(dict.fromkeys(lists[row].tolist()))
        fill = (i for i in range(n_items) if i not in kept)
        lists[row] = kept + [next(fill) for _ in range(k - len(kept))]
    table = pd.DataFrame(
        {
            "user_id": np.repeat(np.arange(n_users), k),
            "item_id": lists.ravel(),
            "rank": np.tile(np.arange(1, k + 1), n_users),
        }
    )
    return table, truth


def shapes(lists: pd.DataFrame, truth: pd.DataFrame) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """The same data grouped and shuffled, with integer and string ids."""
    rng = np.random.default_rng(0)
    shuffled = (
        lists.iloc[rng.permutation(len(lists))].reset_index(drop=True),
        truth.iloc[rng.permutation(len(truth))].reset_index(drop=True),
    )

    def text(table: pd.DataFrame) -> pd.DataFrame:
        return table.assign(
            user_id="u" + table["user_id"].astype(str), item_id="i" + table["item_id"].astype(str)
        )

    def arrow(table: pd.DataFrame) -> pd.DataFrame:
        return text(table).astype({"user_id": "string[pyarrow]", "item_id": "string[pyarrow]"})

    return {
        "grouped, int ids": (lists, truth),
        "shuffled, int ids": shuffled,
        "grouped, string ids": (text(lists), text(truth)),
        "shuffled, string ids": (text(shuffled[0]), text(shuffled[1])),
        "grouped, Arrow strings": (arrow(lists), arrow(truth)),
    }


def ours(backend: str) -> Callable[[pd.DataFrame, pd.DataFrame], dict[str, float]]:
    import recsys

    def run(lists: pd.DataFrame, truth: pd.DataFrame) -> dict[str, float]:
        return dict(recsys.evaluate(lists, truth, METRICS, backend=backend))

    return run


def rectools() -> Callable[[pd.DataFrame, pd.DataFrame], dict[str, float]]:
    from rectools import metrics as m

    kinds = {
        "precision": m.Precision,
        "recall": m.Recall,
        "ndcg": lambda k: m.NDCG(k, divide_by_achievable=True),
        "map": m.MAP,
        "mrr": m.MRR,
        "hit": m.HitRate,
    }
    wanted = {f"{name}@{k}": kinds[name](k) for name in NAMES for k in CUTS}

    def run(lists: pd.DataFrame, truth: pd.DataFrame) -> dict[str, float]:
        return m.calc_metrics(wanted, lists, truth)

    return run


def pytrec_eval() -> Callable[[pd.DataFrame, pd.DataFrame], dict[str, float]]:
    peer = importlib.import_module("pytrec_eval")
    cuts = ",".join(map(str, CUTS))
    names = {f"{n}.{cuts}" for n in ("P", "recall", "ndcg_cut", "map_cut", "success")} | {"recip_rank"}

    def nested(table: pd.DataFrame, values: Any) -> dict[str, dict[str, Any]]:
        out: dict[str, dict[str, Any]] = {}
        for user, item, value in zip(
            table["user_id"].astype(str), table["item_id"].astype(str), values.tolist(), strict=True
        ):
            out.setdefault(user, {})[item] = value
        return out

    def run(lists: pd.DataFrame, truth: pd.DataFrame) -> dict[str, float]:
        judge = peer.RelevanceEvaluator(nested(truth, np.ones(len(truth), dtype=int)), names)
        rows = judge.evaluate(nested(lists, 1.0 / lists["rank"].to_numpy()))
        return {
            name: float(np.mean([row[name] for row in rows.values()])) for name in next(iter(rows.values()))
        }

    return run


def available() -> dict[str, Callable[[pd.DataFrame, pd.DataFrame], dict[str, float]]]:
    found = {"recsys native": ours("native"), "recsys NumPy": ours("reference")}
    for name, make in (("rectools", rectools), ("pytrec_eval", pytrec_eval)):
        try:
            found[name] = make()
        except ImportError:
            print(f"{name} is not installed and is left out", file=sys.stderr)
    return found


def timed(call: Callable[[], Any]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def check_equal(runners: dict[str, Any], tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """Equal work gives equal numbers; average precision is left out, its divisors differ by design."""
    mine = runners["recsys native"](*tables)
    theirs = runners["rectools"](*tables) if "rectools" in runners else {}
    for name in METRICS:
        if name in theirs and not name.startswith("map") and abs(mine[name] - theirs[name]) > 1e-9:
            raise SystemExit(f"{name}: {mine[name]} here, {theirs[name]} in RecTools")


def measure(
    runners: dict[str, Any], tables: tuple[pd.DataFrame, pd.DataFrame], rounds: int
) -> dict[str, Any]:
    """Each runner once a round; a slow one sits out the later rounds."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in runners}
    for turn in range(rounds + 1):
        for name, run in runners.items():
            if turn <= 1 or np.median([c for _, c in times[name]] or [0]) < 2:
                took = timed(lambda run=run: run(*tables))
                if turn:
                    times[name].append(took)
    return {
        name: {
            "wall_s": float(np.median([w for w, _ in t])),
            "cpu_s": float(np.median([c for _, c in t])),
            "n": len(t),
        }
        for name, t in times.items()
    }


def small_costs(lists: pd.DataFrame, truth: pd.DataFrame) -> dict[str, float]:
    """score_list, the price of one more metric, and of the import."""
    import timeit

    import recsys

    one = min(
        timeit.repeat(lambda: recsys.score_list([1, 5, 3, 8, 2], {3, 8, 10}, "ndcg@10"), number=500, repeat=9)
    )
    turns = [
        [timed(lambda m=m: recsys.evaluate(lists, truth, m))[1] for m in (["recall@10"], METRICS)]
        for _ in range(9)
    ]
    few, many = np.median(turns, axis=0)

    def start(code: str) -> float:
        return min(timed_process(code) for _ in range(7))

    base, whole = start("import numpy, scipy.sparse"), start("import recsys")
    return {
        "score_list_us": one / 500 * 1e6,
        "one_more_metric_ms": float(many - few) / (len(METRICS) - 1) * 1e3,
        "import_recsys_s": whole,
        "import_numpy_scipy_sparse_s": base,
        "import_ratio": whole / base,
    }


def timed_process(code: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - began


def machine() -> dict[str, Any]:
    def version(name: str) -> str:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return "absent"

    packages = ("recsys-evaluation", "numpy", "pandas", "scipy", "rectools", "pytrec-eval-terrier")
    return {
        "cpu": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "lists.json")
    args = parser.parse_args()
    lists, truth = world(args.users, 50_000, 20)
    runners = available()
    check_equal(runners, (lists, truth))
    report: dict[str, Any] = {"machine": machine(), "users": args.users, "shapes": {}}
    for shape, tables in shapes(lists, truth).items():
        chosen = (
            runners
            if shape == "grouped, int ids"
            else {n: r for n, r in runners.items() if n != "pytrec_eval"}
        )
        found = measure(chosen, tables, args.rounds)
        report["shapes"][shape] = found
        for name, t in found.items():
            ratio = t["cpu_s"] / found["recsys native"]["cpu_s"]
            print(f"{shape:22} {name:14} wall {t['wall_s']:8.3f} s  cpu {t['cpu_s']:8.3f} s  {ratio:7.1f}x")
    report["small"] = small_costs(lists, truth)
    print(json.dumps(report["small"], indent=1))
    args.out.parent.mkdir(exist_ok=True)
    args.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
