"""A matrix of scores to exact top-20 lists and to 18 metrics, against what is usually written.

Every line leaves out the same seen items and starts from the same float32 matrix, which no line may change:
NumPy and torch copy it to set seen items to -inf. NumPy's lists come from argpartition and a sort of what it
found, torch's from topk; neither checks its input or orders ties, ours does both. The script first checks
that the lists agree. Medians of CPU time over the rounds, first round not counted, one thread.
Usage: python benchmarks/scores.py [--rounds 5] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measuring import machine

import recsys

K = 20
NAMES, CUTS = ("precision", "recall", "ndcg", "map", "mrr", "hit"), (5, 10, 20)
METRICS = [f"{name}@{k}" for name in NAMES for k in CUTS]
WORLDS = {"12,000 x 2,231": (12_000, 2_231), "4,000 x 27,000": (4_000, 27_000)}


def world(n_users: int, n_items: int) -> tuple[np.ndarray, Any, Any, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((n_users, n_items), dtype=np.float32)

    def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
        keys = np.unique(np.repeat(np.arange(n_users), n) * n_items + rng.integers(0, n_items, n_users * n))
        return keys // n_items, keys % n_items

    def table(pairs: tuple[np.ndarray, np.ndarray]) -> Any:
        return recsys.read_interactions(pd.DataFrame({"user": pairs[0], "item": pairs[1]}))

    seen = rows(30)
    return scores, table(rows(5)), table(seen), seen


def by_numpy(scores: np.ndarray, seen: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    masked = scores.copy()
    masked[seen] = -np.inf
    found = np.argpartition(masked, -K, axis=1)[:, -K:]
    order = np.argsort(-np.take_along_axis(masked, found, axis=1), axis=1)
    return np.take_along_axis(found, order, axis=1)


def by_torch(scores: np.ndarray, seen: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    import torch

    masked = torch.from_numpy(scores).clone()
    masked[torch.from_numpy(seen[0]), torch.from_numpy(seen[1])] = -torch.inf
    return torch.topk(masked, K, dim=1).indices.numpy()


def calls(n_users: int, n_items: int) -> dict[str, Callable[[], Any]]:
    scores, truth, seen, pairs = world(n_users, n_items)
    model = recsys.Scores(scores)
    ours = recsys.recommend(model, K, seen=seen, threads=1).codes.reshape(n_users, K)
    for theirs in (
        by_numpy(scores, pairs),
        by_torch(scores, pairs),
    ):
        listed = (np.take_along_axis(scores, found, axis=1) for found in (ours, theirs))
        np.testing.assert_array_equal(*listed)
    return {
        "recsys top-20": lambda: recsys.recommend(model, K, seen=seen, threads=1),
        "recsys 18 metrics": lambda: recsys.evaluate(model, truth, METRICS, seen=seen, threads=1),
        "recsys auc": lambda: recsys.evaluate(model, truth, ["auc"], seen=seen, threads=1),
        "NumPy argpartition top-20": lambda: by_numpy(scores, pairs),
        "torch topk top-20": lambda: by_torch(scores, pairs),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "scores.json")
    given = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    report: dict[str, Any] = {"machine": machine("numpy", "torch"), "worlds": {}}
    for name, shape in WORLDS.items():
        todo = calls(*shape)
        times: dict[str, list[float]] = {line: [] for line in todo}
        for turn in range(given.rounds + 1):
            for line, call in todo.items():
                start = time.process_time()
                call()
                if turn:
                    times[line].append(time.process_time() - start)
        report["worlds"][name] = {line: float(np.median(taken)) for line, taken in times.items()}
        for line, taken in report["worlds"][name].items():
            print(f"{name:16} {line:28} {taken:8.4f} s CPU")
    given.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
