"""Paired bootstrap and permutation of many columns at once against a loop of scipy.stats.bootstrap.

Workload: 5 models x 20 metrics x 12,000 users, 10,000 resamples. Ours does all 100 columns, studentised;
SciPy does a few columns one by one (percentile, its cheapest) and is scaled to 100. A million users follow,
with fewer columns and resamples, to show that memory stays bounded.
"""

from __future__ import annotations

import argparse
import json
import resource
from pathlib import Path
from typing import Any

import numpy as np
from measuring import machine, timed
from scipy import stats

from recsys.stats.bootstrap import Resampler, Units, replicate, unit_keys


def world(n_users: int, n_columns: int) -> Units:
    """Differences of zero-inflated metrics, one row per model and metric."""
    rng = np.random.default_rng(1)
    moved = rng.random((n_columns, n_users)) < 0.3
    rows = np.where(moved, rng.normal(0.01, 0.3, size=moved.shape), 0.0)
    return Units(unit_keys(np.arange(n_users)), rows, np.ones_like(rows))


def ours(units: Units, n_resamples: int) -> np.ndarray:
    drawn = replicate(units, Resampler(units.keys, n_resamples))
    return np.concatenate([drawn.limits("studentised", 0.95), drawn.p_values("studentised")[:, None]], axis=1)


def scipys(units: Units, n_columns: int, n_resamples: int) -> None:
    for row in units.totals[:n_columns]:
        stats.bootstrap((row,), np.mean, n_resamples=n_resamples, batch=200, method="percentile", rng=1)


def million(n_columns: int, n_resamples: int) -> dict[str, float]:
    units = world(1_000_000, n_columns)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = timed(lambda: ours(units, n_resamples), 1)
    found["extra_memory_mb"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return found | {"columns": n_columns, "resamples": n_resamples}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=12_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--scipy-columns", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "bootstrap.json")
    args = parser.parse_args()
    units = world(args.users, args.columns)
    report: dict[str, Any] = {
        "machine": machine("numpy", "scipy"),
        "workload": {"users": args.users, "columns": args.columns, "resamples": args.resamples},
        "studentised bootstrap": timed(lambda: ours(units, args.resamples), args.rounds),
        "permutation": timed(
            lambda: Resampler(units.keys, args.resamples).flipped(units.totals), args.rounds
        ),
    }
    peer = timed(lambda: scipys(units, args.scipy_columns, args.resamples), 1)
    scaled = {name: seconds * args.columns / args.scipy_columns for name, seconds in peer.items()}
    report["scipy.stats.bootstrap loop"] = scaled | {"measured_columns": args.scipy_columns}
    mine = report["studentised bootstrap"]
    report["times faster"] = {name: scaled[name] / mine[name] for name in ("wall_s", "cpu_s")}
    report["a million users"] = million(4, 1000)
    args.out.parent.mkdir(exist_ok=True)
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
