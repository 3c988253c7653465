"""Every way of splitting on 20 million rows, against plain pandas on fewer; and negatives for many users.

Workload: 138,000 users and 27,000 items in shuffled rows of int32, times that tie now and then, the shape of
MovieLens 20M. A split is timed until train and test are there. The pandas lines are what people write: a
group a user, sorted and cut in Python, or sort_values with cumcount, on fewer rows. All must agree.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measuring import machine

import recsys
from recsys import negatives, splits

WAYS: dict[str, dict[str, Any]] = {
    "random_ratio": {},
    "per_user_ratio": {},
    "leave_one_out": {"which": "random"},
    "leave_last": {},
    "per_user_temporal": {},
    "global_temporal": {},
    "unseen_users": {},
    "rolling_windows": {"length": 10_000_000},
    "k_fold": {},
}


def world(n_rows: int, n_users: int | None = None, n_items: int | None = None, seed: int = 1) -> pd.DataFrame:
    """As many rows per user and per item as MovieLens 20M has."""
    n_users, n_items = n_users or max(n_rows // 145, 1), n_items or max(n_rows // 740, 1)
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "user": (rng.random(n_rows) ** 2 * n_users).astype(np.int32),
        "item": (rng.random(n_rows) ** 3 * n_items).astype(np.int32),
        "timestamp": rng.integers(800_000_000, 1_400_000_000, n_rows, dtype=np.int32),
    })  # fmt: skip


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    began, spent = time.perf_counter(), time.process_time()
    made = work()
    return made, {"wall_s": time.perf_counter() - began, "cpu_s": time.process_time() - spent}


def ours(frame: pd.DataFrame, how: str, **parameters: Any) -> Any:
    made = recsys.split(frame, how, **parameters)
    one = made[0] if isinstance(made, splits.Folds) else made
    return one.train, one.test


def by_groups(frame: pd.DataFrame) -> pd.Index:
    """The last row of each user, a group at a time."""
    return pd.Index(
        [group.sort_values(["timestamp", "item"]).index[-1] for _, group in frame.groupby("user")]
    )


def by_cumcount(frame: pd.DataFrame) -> pd.Index:
    """The same without a loop: everything sorted, then counted from the end."""
    ordered = frame.sort_values(["user", "timestamp", "item"], kind="stable")
    return ordered.index[ordered.groupby("user").cumcount(ascending=False) == 0]


def against_pandas(n_rows: int) -> dict[str, Any]:
    frame = world(n_rows)
    (_, test), mine = timed(lambda: ours(frame, "leave_last", on_tie="by_item", short="train"))
    found, sorted_ = timed(lambda: by_cumcount(frame))
    looped, groups = timed(lambda: by_groups(frame))
    several = frame["user"].map(frame["user"].value_counts()) > 1
    if set(found) != set(looped) or set(test.index) != set(found[several.loc[found]]):
        raise SystemExit("leave_last and pandas disagree")
    return {"rows": n_rows, "ours": mine, "sort_values and cumcount": sorted_, "one group per user": groups}


def sampled(n_users: int, n_items: int, n_rows: int) -> dict[str, Any]:
    pairs = recsys.read_interactions(world(n_rows, n_users, n_items)[["user", "item"]])
    made = {}
    for how in negatives.HOW:
        drawn, made[how] = timed(lambda how=how: negatives.sample(pairs, 99, how=how, too_few="fewer"))
        made[how]["drawn"] = len(drawn.codes)
    return {"users": n_users, "items": n_items, "interactions": n_rows, **made}


def on_all(n_rows: int) -> dict[str, Any]:
    frame, report = world(n_rows), {}
    for how, parameters in WAYS.items():
        _, report[how] = timed(lambda how=how, p=parameters: ours(frame, how, **p))
        print(f"{how:20} {report[how]['cpu_s']:6.2f} s CPU", flush=True)
    _, report["min_interactions"] = timed(lambda: splits.min_interactions(frame, 50, 50).kept)
    made = splits.leave_last(frame)
    _, report["manifest"] = timed(lambda: made.manifest)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--pandas-rows", type=int, default=2_000_000)
    parser.add_argument("--many-users", type=int, default=200_000)
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "splits.json")
    args = parser.parse_args()
    report: dict[str, Any] = {
        "machine": machine("numpy", "pandas", "scipy"),
        "rows": args.rows,
        "splits": on_all(args.rows),
    }
    report["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    report["against pandas"] = against_pandas(args.pandas_rows)
    report["negatives, ml-1m's size"] = sampled(6040, 3706, 1_000_000)
    report["negatives, many users"] = sampled(args.many_users, 50_000, args.many_users * 20)
    args.json.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
