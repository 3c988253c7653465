"""compare and gate of 100,000 users x 18 metrics, also against another installation of recsys.

    python benchmarks/comparison.py --against /path/to/other/bin/python

With --against, each round times both, in turns, so that a busy machine slows both; the ratio of CPU times is
what is printed, and no time is stored.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import recsys

METRICS = [
    f"{name}@{k}" for name in ("precision", "recall", "ndcg", "map", "mrr", "hit") for k in (5, 10, 20)
]


def workload(n_users: int) -> dict[str, Callable[[], Any]]:
    """The calls that are timed, on two models that agree on most users."""
    rng = np.random.default_rng(1)
    users, places = np.repeat(np.arange(n_users), 20), np.tile(np.arange(1, 21), n_users)
    truth = pd.DataFrame({"user": np.arange(n_users), "item": rng.integers(0, 1000, n_users)})
    results = []
    for _ in range(2):
        items = (np.repeat(truth["item"].to_numpy(), 20) + places) % 1000
        found = rng.random(n_users) < 0.3
        items[np.flatnonzero(found) * 20 + rng.integers(0, 20, n_users)[found]] = truth["item"][found]
        lists = pd.DataFrame({"user": users, "item": items, "rank": places})
        results.append(recsys.evaluate(lists, truth, METRICS))
    old, new = results
    return {
        "compare": lambda: recsys.compare({"old": old, "new": new}, baseline="old"),
        "gate": lambda: recsys.gate(new, old, dict.fromkeys(METRICS, "1%")),
    }


def serve(n_users: int) -> None:
    """Time the call that a line of the input names; answer with a line of CPU seconds."""
    calls = workload(n_users)
    for call in calls.values():
        call()
    print(json.dumps(list(calls)), flush=True)
    for line in sys.stdin:
        began = time.process_time()
        calls[line.strip()]()
        print(json.dumps(time.process_time() - began), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--against", help="the python of another installation")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.serve:
        serve(arguments.users)
        return
    pythons = [sys.executable, *([arguments.against] if arguments.against else [])]
    command = [__file__, "--serve", "--users", str(arguments.users)]
    workers = [
        subprocess.Popen([python, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for python in pythons
    ]
    names, *_ = [json.loads(worker.stdout.readline()) for worker in workers]
    for name in names:
        seconds: list[list[float]] = [[] for _ in workers]
        for _ in range(arguments.rounds):
            for worker, spent in zip(workers, seconds, strict=True):
                worker.stdin.write(f"{name}\n")
                worker.stdin.flush()
                spent.append(json.loads(worker.stdout.readline()))
        line = f"{name}: {statistics.median(seconds[0]):.3f} s of CPU time"
        if arguments.against:
            ratios = sorted(a / b for a, b in zip(*seconds, strict=True))
            line += f", {statistics.median(ratios):.2f} times the other ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        print(line)
    for worker in workers:
        worker.stdin.close()
        worker.wait()


if __name__ == "__main__":
    main()
