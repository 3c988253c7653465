"""Does collaborative filtering beat popularity? ALS and BPR on MovieLens, with the statistics to say so.

    python examples/cf_vs_popularity.py             # prints the tables, writes examples/results/

Settings are tuned on the validation part alone; the chosen model is trained on training and validation, and
the test part is evaluated once.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from movielens import WORLDS, World, fitted, held, tuned, world, write

import recsys
from recsys.analysis import failure_cases, losing_users
from recsys.cf.evaluation import (
    ItemSimilarityBaseline,
    ModelComparator,
    ModelEvaluator,
    PopularityBaseline,
    RandomBaseline,
)

OUT = Path(__file__).parent / "results" / "cf_vs_popularity.json"
K_VALUES = [5, 10, 20, 50]
LIFT_WANTED, LEVEL, SECONDS_WANTED = 20.0, 0.05, 30.0


def compared(here: World) -> dict[str, Any]:
    """Everything evaluated on the test part, printed, and as plain numbers."""
    known = pd.concat([here.train, here.validation])
    train, test = held(known), here.test.rename(columns={"user_id": "u_idx", "item_id": "i_idx"})
    comparator, out = ModelComparator(LEVEL), {}
    for kind in ("als", "bpr"):
        settings, on_validation = tuned(here, kind)
        model = fitted(here, kind, settings, known)
        evaluator = ModelEvaluator(model.user_factors, model.item_factors, K_VALUES)
        results = evaluator.evaluate(test, train)
        comparator.add_model_results(kind, results)
        strata = evaluator.stratify_by_activity({u: len(items) for u, items in train.items()})
        out[kind] = {
            "settings": settings,
            "recall@10 on the validation": on_validation,
            "results": dict(results),
            "by activity": {name: row["recall@10"] for name, row in strata.items()},
        }
    recent = PopularityBaseline.from_interactions(known, here.n_items, half_life=90 * 86400)
    lines = {
        "popularity": PopularityBaseline(here.counts(known), here.n_items),
        "recent popularity": recent,
        "item similarity": ItemSimilarityBaseline(item_embeddings=here.embeddings),
        "random": RandomBaseline(here.n_items, random_seed=0),
    }
    for name, baseline in lines.items():
        results = baseline.evaluate(test, train, K_VALUES)
        comparator.add_baseline_results(name, results)
        out[name] = {"results": {key: value for key, value in results.items() if key != "baseline_name"}}
    expected = lines["random"].expectation(test, train, K_VALUES)
    out["random, expected"] = {"results": dict(expected)}
    shown = ["recall@10", "ndcg@10", "mrr", "coverage"]
    print(f"\n{here.name}: {here.n_users} users, {here.n_items} items, {len(known):,} training interactions")
    print(
        pd.DataFrame({n: held_["results"] for n, held_ in out.items()})
        .T[shown]
        .astype(float)
        .round(4)
        .to_string()
    )
    out["tests"] = tested(comparator)
    out["failures"] = failures(here, comparator, known)
    return out


def tested(comparator: ModelComparator) -> dict[str, Any]:
    """ALS and BPR against popularity: lift, p-value, verdict."""
    rows = comparator.get_improvement_summary("popularity", ["recall@10", "ndcg@10"])
    out = {}
    for row in rows.itertuples(index=False):
        one_sided = comparator.paired_t_test(row.model, "popularity", row.metric, alternative="greater")
        p = one_sided["p_value"]
        print(f"{row.model} against popularity, {row.metric}: {row.verdict}; t-test p = {p:.1e}")
        out[f"{row.model} {row.metric}"] = {
            "lift in percent": row.relative_percent,
            "p, one-sided t-test": p,
            "p, corrected": row.adjusted_p_value,
            "verdict": row.verdict,
        }
    return out


def failures(here: World, comparator: ModelComparator, known: pd.DataFrame) -> dict[str, Any]:
    """Who the better model fails, and on whom it loses to popularity."""
    als = comparator.model_results["als"].evaluation
    popularity = comparator.baseline_results["popularity"].evaluation
    columns = ["user_id", "item_id"]
    found = failure_cases(als, known[columns], here.test[columns], metric="recall@10", most=5)
    lost = losing_users(als, popularity, "recall@10", counts=known[columns], most=5)
    print("worst users:", "; ".join(f"{user}: {reason}" for user, reason in found.worst["reason"].items()))
    print(f"ALS loses to popularity on {lost.attrs['lost']} users, wins on {lost.attrs['won']}")
    return {"summary": found.summary, "won, tied, lost": [lost.attrs[n] for n in ("won", "tied", "lost")]}


def timed(n_users: int = 12_000, n_items: int = 2231, n_factors: int = 64) -> float:
    """Seconds to evaluate a made-up model of that size, all metrics at four cut-offs."""
    rng = np.random.default_rng(0)
    users = rng.standard_normal((n_users, n_factors))
    items = rng.standard_normal((n_items, n_factors))
    taken = rng.integers(0, n_items, (n_users, 30))
    train = {user: set(row[:20].tolist()) for user, row in enumerate(taken)}
    test = {user: set(row[20:].tolist()) for user, row in enumerate(taken)}
    start = time.perf_counter()
    ModelEvaluator(users, items, K_VALUES).evaluate(test, train)
    return time.perf_counter() - start


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--world", choices=WORLDS, action="append", help="one of them; both without")
    arguments.add_argument("--output", type=Path, default=OUT)
    options = arguments.parse_args()
    out: dict[str, Any] = {name: compared(world(name)) for name in options.world or WORLDS}
    out["seconds for 12,000 users"] = timed()
    print("\ncriteria")
    met = []
    for name in options.world or WORLDS:
        row = out[name]["tests"]["als recall@10"]
        good = row["lift in percent"] >= LIFT_WANTED and row["p, corrected"] < LEVEL
        lift, p = row["lift in percent"], row["p, corrected"]
        print(
            f"[{'x' if good else ' '}] {name}: recall@10 {lift:+.1f} % over popularity, corrected p = {p:.1e}"
        )
        met.append(good)
    quick = out["seconds for 12,000 users"] < SECONDS_WANTED
    print(f"[{'x' if quick else ' '}] 12,000 users evaluated in {out['seconds for 12,000 users']:.2f} s")
    out["criteria met"] = bool(all(met) and quick)
    out["recsys"] = recsys.__version__
    write(options.output, out)


if __name__ == "__main__":
    main()
