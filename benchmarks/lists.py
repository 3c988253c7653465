"""Lists to 18 metrics against peers: equal work, one run, interleaved; medians of CPU and wall time.

Workload A: 100,000 users x top-20, 1-20 relevant of 50,000 items; B: 1,000,000 x top-10, integer ids only.
Precision, recall, ndcg, map, mrr and hit at 5, 10 and 20, from a pandas table, all input checks inside the
timed call. Peers that take more than a tenth of a millisecond a user are timed on some of the users and
scaled, which is said in the result. Run it where the peers are installed: `make bench`, or
python benchmarks/lists.py --worlds A B --rounds 7 [--peers rectools pytrec_eval ranx] [--slow-users 5000]
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from measuring import machine

NAMES = ("precision", "recall", "ndcg", "map", "mrr", "hit")
CUTS = (5, 10, 20)
METRICS = [f"{name}@{k}" for name in NAMES for k in CUTS]
WORLDS = {"A": (100_000, 20), "B": (1_000_000, 10)}
# Seconds a runner may have taken in the median before it sits out the later rounds.
PATIENCE = 2.0


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


def shapes(
    lists: pd.DataFrame, truth: pd.DataFrame
) -> dict[str, Callable[[], tuple[pd.DataFrame, pd.DataFrame]]]:
    """The same data grouped and shuffled, with integer and string ids; each made when it is asked for."""
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
        "grouped, int ids": lambda: (lists, truth),
        "shuffled, int ids": lambda: shuffled,
        "grouped, string ids": lambda: (text(lists), text(truth)),
        "shuffled, string ids": lambda: (text(shuffled[0]), text(shuffled[1])),
        "grouped, Arrow strings": lambda: (arrow(lists), arrow(truth)),
    }


def ours(backend: str) -> Callable[[pd.DataFrame, pd.DataFrame], dict[str, float]]:
    import recsys

    def run(lists: pd.DataFrame, truth: pd.DataFrame) -> dict[str, float]:
        return dict(recsys.evaluate(lists, truth, METRICS, backend=backend))

    return run


def numpy_only() -> Callable[[pd.DataFrame, pd.DataFrame], dict[str, float]]:
    """As it is where nothing could be compiled: reading and summing do without the kernels too."""
    run = ours("reference")
    absent = (None, "left out for this measurement")

    def plain(lists: pd.DataFrame, truth: pd.DataFrame) -> dict[str, float]:
        with mock.patch("recsys.kernels.native_backend.load", return_value=absent):
            return run(lists, truth)

    return plain


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


def ranx() -> Callable[[pd.DataFrame, pd.DataFrame], dict[str, float]]:
    peer = importlib.import_module("ranx")
    spelled = {"hit": "hit_rate"}
    names = [f"{spelled.get(name, name)}@{k}" for name in NAMES for k in CUTS]

    def texts(table: pd.DataFrame, score: Any) -> pd.DataFrame:
        ids = {"q_id": table["user_id"].astype(str), "doc_id": table["item_id"].astype(str)}
        return pd.DataFrame({**ids, "score": score})

    def run(lists: pd.DataFrame, truth: pd.DataFrame) -> dict[str, float]:
        judged = peer.Qrels.from_df(texts(truth, np.ones(len(truth), dtype=np.int64)))
        ranked = peer.Run.from_df(texts(lists, 1.0 / lists["rank"].to_numpy()))
        return peer.evaluate(judged, ranked, names, make_comparable=True, threads=1)

    return run


PEERS: dict[str, Callable[[], Any]] = {"rectools": rectools, "pytrec_eval": pytrec_eval, "ranx": ranx}
SLOW = ("ranx",)


def available(wanted: list[str]) -> dict[str, Callable[[pd.DataFrame, pd.DataFrame], dict[str, float]]]:
    found = {"recsys native": ours("native"), "recsys NumPy": numpy_only()}
    for name in wanted:
        make = PEERS[name]
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


def some_of(tables: tuple[pd.DataFrame, pd.DataFrame], n_users: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    return tuple(table[table["user_id"] < n_users] for table in tables)  # type: ignore[return-value]


def measure(
    runners: dict[str, Any], tables: tuple[pd.DataFrame, pd.DataFrame], rounds: int, slow_users: int
) -> dict[str, Any]:
    """Each runner once a round, the first not counted; a slow one sits out the later rounds."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in runners}
    n_users = tables[0]["user_id"].nunique()
    share = {name: min(1.0, slow_users / n_users) if name in SLOW else 1.0 for name in runners}
    given = {name: tables if share[name] == 1 else some_of(tables, slow_users) for name in runners}
    for turn in range(rounds + 1):
        for name, run in runners.items():
            if turn <= 1 or np.median([c for _, c in times[name]] or [0]) < PATIENCE:
                took = timed(lambda run=run, name=name: run(*given[name]))
                if turn:
                    times[name].append(took)
    return {
        name: {
            "wall_s": float(np.median([w for w, _ in t])) / share[name],
            "cpu_s": float(np.median([c for _, c in t])) / share[name],
            "n": len(t),
            "users_timed": round(n_users * share[name]),
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
    first = start("import recsys; recsys.evaluate({1: [3, 5]}, {1: [5]}, ['ndcg@10'])") - start(
        "import numpy"
    )
    scan = "import numpy as np, recsys; V = np.arange(200, dtype=np.float32).reshape(50, 4); "
    scan += "recsys.evaluate(recsys.Factors(V[:3], V), {1: [5]}, ['ndcg@10'])"
    return {
        "cold_lists_beyond_numpy_s": first,
        "cold_factors_beyond_numpy_s": start(scan) - start("import numpy"),
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


PACKAGES = ("recsys-evaluation", "numpy", "pandas", "pyarrow", "rectools", "pytrec-eval-terrier", "ranx")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", nargs="*", choices=list(WORLDS), default=["A"])
    parser.add_argument("--users", type=int, help="instead of the world's number of users")
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--slow-users", type=int, default=5_000, help="users that slow peers are timed on")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "lists.json")
    args = parser.parse_args()
    runners = available(args.peers)
    report: dict[str, Any] = {"machine": machine(*PACKAGES), "worlds": {}}
    for name in args.worlds:
        n_users, k = WORLDS[name]
        lists, truth = world(args.users or n_users, 50_000, k)
        check_equal(runners, (lists, truth))
        report["worlds"][name] = {"users": args.users or n_users, "k": k, "shapes": {}}
        for shape, make in shapes(lists, truth).items():
            if name == "B" and "int ids" not in shape:
                continue
            tables = make()
            once = shape == "grouped, int ids"  # peers that read no tables do the same work in every shape
            chosen = {n: r for n, r in runners.items() if once or n not in ("pytrec_eval", "ranx")}
            found = measure(chosen, tables, args.rounds, args.slow_users)
            report["worlds"][name]["shapes"][shape] = found
            for line, t in found.items():
                ratio = t["cpu_s"] / found["recsys native"]["cpu_s"]
                took = f"wall {t['wall_s']:8.3f} s  cpu {t['cpu_s']:8.3f} s"
                print(f"{name} {shape:22} {line:14} {took}  {ratio:7.1f}x")
        if name == "A":
            report["small"] = small_costs(lists, truth)
            print(json.dumps(report["small"], indent=1))
        args.out.parent.mkdir(exist_ok=True)
        args.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
