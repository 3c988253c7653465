"""How the cost of a scan grows: one thing at a time changed from a common base, ratios to the product alone.

Base: 4,000 users x 20,000 items x 64 factors, k = 20, one thread, medians of CPU time.
Usage: OPENBLAS_NUM_THREADS=1 python benchmarks/scaling.py
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from factors import floors, machine, synthetic

from recsys import kernels

BASE = {"users": 4_000, "items": 20_000, "factors": 64, "k": 20}
CHANGES: list[tuple[str, int]] = [
    ("users", 1_000), ("users", 8_000), ("items", 5_000), ("items", 60_000),
    ("factors", 16), ("factors", 128), ("factors", 256), ("k", 10), ("k", 100), ("k", 500),
]  # fmt: skip


def row(size: dict[str, int], rounds: int = 5) -> dict[str, float]:
    world = synthetic(size["users"], size["items"], size["factors"], 30, seed=7)
    common: dict[str, Any] = {"seen": world.seen, "threads": 1}
    calls = {
        "floor": next(iter(floors(world).values())),
        "top-k": lambda: kernels.scan(world.users, world.items, k=size["k"], prune=False, **common),
        "top-k, pruned": lambda: kernels.scan(world.users, world.items, k=size["k"], **common),
        "counting": lambda: kernels.scan(world.users, world.items, truth=world.truth, **common),
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 1):
        for name, call in calls.items():
            began = time.process_time()
            call()
            if turn:
                times[name].append(time.process_time() - began)
    return {name: float(np.median(t)) for name, t in times.items()}


def main() -> None:
    report: dict[str, Any] = {"machine": machine(), "base": BASE, "rows": {}}
    for name, value in [("base", 0), *CHANGES]:
        size = BASE if name == "base" else {**BASE, name: value}
        found = row(size)
        label = name if name == "base" else f"{name} {value:,}"
        report["rows"][label] = found
        cells = "  ".join(f"{n} {t:.3f} ({t / found['floor']:.2f})" for n, t in found.items())
        print(f"{label:14} {cells}")
    out = Path(__file__).parent / "results" / "scaling.json"
    out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
