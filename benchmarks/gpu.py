"""Factors to exact top-20 and exact places on a GPU, against torch's own product and top-k on the same GPU.

The peer is what is usually written: blocks of `users @ items.T` in float32 with seen items set to -inf, then
`torch.topk`; its lists are those of float32 sums in an order of their own, ours are the exact ones.
Everything lies in host memory before and after a call in both cases. A sample of the users is checked against
the NumPy reference, bit by bit. Medians of wall time over the rounds, first round not counted.
Usage: python benchmarks/gpu.py [--users 20000] [--items 1000000] [--factors 64] [--rounds 5] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from recsys import kernels

K, PLACES = 20, 5
Rows = tuple[np.ndarray, np.ndarray]


def rows_of(n: int, n_items: int, mean: int, rng: np.random.Generator) -> Rows:
    lengths = 1 + rng.poisson(mean - 1, n)
    keys = np.unique(np.repeat(np.arange(n), lengths) * n_items + rng.integers(0, n_items, lengths.sum()))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(keys // n_items, minlength=n))])
    return indptr, (keys % n_items).astype(np.int32)


def world(n_users: int, n_items: int, n_factors: int, *, skewed: bool) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    spectrum = (1.0 / np.sqrt(1 + np.arange(n_factors))).astype(np.float32)
    users = rng.standard_normal((n_users, n_factors), dtype=np.float32) * spectrum
    items = rng.standard_normal((n_items, n_factors), dtype=np.float32) * spectrum
    if skewed:
        lift = rng.permutation((np.arange(1, n_items + 1) ** -0.9) ** 0.35).astype(np.float32)
        items *= (lift / lift.mean())[:, None]
    seen, truth = rows_of(n_users, n_items, 50, rng), rows_of(n_users, n_items, PLACES, rng)
    return {"users": users, "items": items, "seen": seen, "truth": truth}


def plain(data: dict[str, Any]) -> None:
    """float32 product and torch.topk, block by block."""
    items = torch.from_numpy(data["items"]).cuda()
    indptr, seen = data["seen"]
    batch = max(256, min(4096, (4 << 30) // (4 * len(items))))
    for start in range(0, len(data["users"]), batch):
        users = torch.from_numpy(data["users"][start : start + batch]).cuda()
        scores = users @ items.T
        part = indptr[start : start + len(users) + 1]
        rows = torch.from_numpy(np.repeat(np.arange(len(users)), np.diff(part))).cuda()
        scores[rows, torch.from_numpy(seen[part[0] : part[-1]]).cuda().long()] = -torch.inf
        values, found = torch.topk(scores, K)
        values.cpu(), found.cpu()


def calls(data: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    common = {"seen": data["seen"], "backend": "cuda"}
    users, items, truth = data["users"], data["items"], data["truth"]
    return {
        "torch float32 matmul + topk": lambda: plain(data),
        "recsys top-20": lambda: kernels.scan(users, items, k=K, **common),
        "recsys 20 places": lambda: kernels.scan(users, items, truth=truth, deepest=K, **common),
        "recsys all places": lambda: kernels.scan(users, items, truth=truth, **common),
        "recsys top-20 and all places": lambda: kernels.scan(users, items, k=K, truth=truth, **common),
    }


def checked(data: dict[str, Any], n: int) -> int:
    """Users whose lists and places were compared with the reference; raises where they differ."""
    part = {name: (data[name][0][: n + 1], data[name][1][: data[name][0][n]]) for name in ("seen", "truth")}
    results = [
        kernels.scan(data["users"][:n], data["items"], k=K, **part, backend=backend)
        for backend in ("cuda", "reference")
    ]
    for name, ours, theirs in zip(results[0]._fields, *results, strict=True):
        if not np.array_equal(ours, theirs):
            raise AssertionError(f"{name} differs from the reference")
    return n


def measure(data: dict[str, Any], rounds: int) -> dict[str, float]:
    todo = calls(data)
    times: dict[str, list[float]] = {name: [] for name in todo}
    for turn in range(rounds + 1):
        for name, call in todo.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            call()
            torch.cuda.synchronize()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: float(np.median(taken)) for name, taken in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--factors", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", type=int, default=32)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    facts = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    report: dict[str, Any] = {"machine": facts, "users": given.users, "items": given.items, "worlds": {}}
    for n_factors in given.factors:
        for skewed in (False, True):
            data = world(given.users, given.items, n_factors, skewed=skewed)
            n_checked = checked(data, given.check)
            lines = measure(data, given.rounds)
            name = f"{n_factors} factors, {'skewed' if skewed else 'like'} norms"
            report["worlds"][name] = {"seconds": lines, "checked_users": n_checked}
            for line, seconds in lines.items():
                rate = given.users * given.items / seconds
                print(f"{name:28s} {line:32s} {seconds:8.3f} s  {rate:.2e} pairs/s", flush=True)
    if given.out:
        given.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
