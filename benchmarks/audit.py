"""How long an audit and the rating metrics take on a million rows.

Workload: a million interactions of 6,000 users and 4,000 items whose popularity follows a power law, split at
random (so that the leaks are there to be found), 20 recommendations per user with scores; then a million
predicted ratings, and a million predicted clicks.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measuring import machine, timed

import recsys


def events(n_rows: int, n_users: int, n_items: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    weight = 1.0 / np.arange(1, n_items + 1) ** 0.7
    drawn = int(1.4 * n_rows)
    table = pd.DataFrame({
        "user": rng.integers(0, n_users, drawn),
        "item": rng.choice(n_items, size=drawn, p=weight / weight.sum()),
        "timestamp": rng.integers(0, 10**8, drawn),
    })  # fmt: skip
    return table.drop_duplicates(["user", "item"])[:n_rows]


def lists(n_users: int, n_items: int) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    items = rng.integers(0, n_items, (n_users, 20))
    return pd.DataFrame({
        "user": np.repeat(np.arange(n_users), 20),
        "item": items.ravel(),
        "score": np.sort(rng.random((n_users, 20)), axis=1)[:, ::-1].ravel(),
    })  # fmt: skip


def predictions(n_rows: int, n_users: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(2)
    user, stars = rng.integers(0, n_users, n_rows), rng.integers(1, 6, n_rows)
    chance = rng.random(n_rows)
    rated = pd.DataFrame({"user": user, "rating": stars, "prediction": stars + rng.normal(0, 1, n_rows)})
    return rated, pd.DataFrame(
        {"user": user, "click": (rng.random(n_rows) < chance).astype(int), "prediction": chance}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--users", type=int, default=6_000)
    parser.add_argument("--items", type=int, default=4_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "audit.json")
    args = parser.parse_args()
    table, shown = events(args.rows, args.users, args.items), lists(args.users, args.items)
    held_out = np.random.default_rng(3).random(len(table)) < 0.2
    train, test = table[~held_out], table[held_out]
    rated, clicked = predictions(args.rows, args.users)
    report: dict[str, Any] = {
        "machine": machine("numpy", "pandas"),
        "workload": {"rows": len(table), "users": args.users, "items": args.items, "lists": args.users},
        "checks": len(recsys.audit(train, test, shown).checked),
        "audit without lists": timed(lambda: recsys.audit(train, test), args.rounds),
        "audit with lists": timed(lambda: recsys.audit(train, test, shown), args.rounds),
        "ratings": timed(lambda: recsys.evaluate_ratings(rated), args.rounds),
        "clicks": timed(lambda: recsys.evaluate_ratings(clicked, metrics="clicks"), args.rounds),
    }
    args.out.parent.mkdir(exist_ok=True)
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
