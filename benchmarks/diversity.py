"""Diversity of many lists from long vectors, and the other metrics about the items shown, in time and memory.

Workload: 100,000 users x top-20 of 20,000 items with 768 factors (float32). A plain loop over the users, one
matrix of cosines each, does a part of them and is scaled up.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import recsys

OTHERS = [
    "coverage@20", "gini@20", "entropy@20", "personalisation@20", "novelty@20", "average_popularity@20",
    "tail_share@20", "serendipity@20", "rbo@20", "overlap@20",
]  # fmt: skip


def world(n_users: int, n_items: int, n_factors: int, k: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    popular = rng.zipf(1.2, size=(n_users, 3 * k)) % n_items
    lists = np.argsort(rng.random((n_users, n_items)), axis=1)[:, :k] if n_users * n_items < 1 << 22 else None
    if lists is None:  # distinct items without a draw of the whole catalogue for every user
        start, step = (
            rng.integers(n_items, size=(n_users, 1)),
            rng.integers(1, n_items // k, size=(n_users, 1)),
        )
        lists = (start + step * np.arange(k)) % n_items
    return {
        "lists": lists,
        "truth": {user: [int(lists[user, 0])] for user in range(n_users)},
        "train": {user: popular[user].tolist() for user in range(n_users)},
        "embeddings": rng.normal(size=(n_items, n_factors)).astype(np.float32),
    }


def timed(work: Callable[[], object]) -> dict[str, float]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, spent = time.perf_counter(), time.process_time()
    work()
    return {
        "wall_s": time.perf_counter() - began,
        "cpu_s": time.process_time() - spent,
        "extra_memory_mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
    }


def loop(lists: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """One user after the other: the mean cosine of all pairs from one small matrix."""
    out = np.empty(len(lists))
    upper = np.triu_indices(lists.shape[1], 1)
    for user, items in enumerate(lists):
        rows = vectors[items].astype(np.float64)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        out[user] = 1.0 - (rows @ rows.T)[upper].mean()
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--factors", type=int, default=768)
    parser.add_argument("--loop-users", type=int, default=5_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "diversity.json")
    args = parser.parse_args()
    w = world(args.users, args.items, args.factors, 20)
    read = recsys.recommend(recsys.Scores(np.eye(2)), 1)  # the first call loads what the others share
    del read
    report: dict[str, Any] = {
        "machine": {
            "cpu": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "load": os.getloadavg(),
            "python": platform.python_version(),
            "versions": {name: importlib.metadata.version(name) for name in ("numpy", "scipy")},
        },
        "workload": {"users": args.users, "items": args.items, "factors": args.factors, "k": 20},
    }

    def asked(*metrics: str) -> recsys.Evaluation:
        known = {"embeddings": w["embeddings"]} if any("ild" in m for m in metrics) else {}
        known |= {"train": w["train"], "reference": w["lists"][:, ::-1]} if metrics == tuple(OTHERS) else {}
        return recsys.evaluate(w["lists"], w["truth"], list(metrics), **known)

    report["ild(distance=cosine)@20"] = timed(lambda: asked("ild@20"))
    report["ild(distance=euclidean)@20"] = timed(lambda: asked("ild(distance=euclidean)@20"))
    report["ten metrics without vectors"] = timed(lambda: asked(*OTHERS))
    part = w["lists"][: args.loop_users]
    values = asked("ild@20").values_of("ild@20")[: args.loop_users]
    found = timed(lambda: np.testing.assert_allclose(loop(part, w["embeddings"]), values, rtol=1e-9))
    scale = args.users / args.loop_users
    report["a loop over the users"] = {n: found[n] * scale for n in ("wall_s", "cpu_s")}
    args.out.parent.mkdir(exist_ok=True)
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
