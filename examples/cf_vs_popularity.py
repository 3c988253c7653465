"""Does collaborative filtering beat popularity? ALS and BPR on MovieLens, with the statistics to say so.

    python examples/cf_vs_popularity.py             # prints the tables, writes examples/results/

Settings are tuned on the validation set alone; the chosen model is trained on the training and validation
sets, and the test set is evaluated once.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from movielens import DATASETS, Dataset, fit_model, items_by_user, load_dataset, tune, write_json

import recsys
from recsys.analysis import by_activity, failure_cases, losing_users
from recsys.cf.evaluation import (
    ItemSimilarityBaseline,
    ModelComparator,
    ModelEvaluator,
    PopularityBaseline,
    RandomBaseline,
    paired_t_test,
)

OUT = Path(__file__).parent / "results" / "cf_vs_popularity.json"
K_VALUES = [5, 10, 20, 50]
MIN_LIFT, LEVEL, MAX_SECONDS = 20.0, 0.05, 30.0


def evaluate_models(data: Dataset) -> dict[str, Any]:
    """Evaluate all models on the test set, print the table, and return the numbers."""
    known = pd.concat([data.train, data.validation])
    train, test = items_by_user(known), data.test.rename(columns={"user_id": "u_idx", "item_id": "i_idx"})
    comparator, out = ModelComparator(LEVEL), {}
    for kind in ("als", "bpr"):
        settings, on_validation = tune(data, kind)
        model = fit_model(data, kind, settings, known)
        evaluator = ModelEvaluator(model.user_factors, model.item_factors, K_VALUES)
        results = evaluator.evaluate(test, train)
        comparator.add_model_results(kind, results)
        strata = by_activity(results.evaluation, {u: len(items) for u, items in train.items()})
        out[kind] = {
            "settings": settings,
            "recall@10 on the validation": on_validation,
            "results": dict(results),
            "by activity": {name: row["recall@10"] for name, row in strata.items()},
        }
    recent = recsys.baselines.training_counts(known, half_life=90 * 86400)
    baselines = {
        "popularity": PopularityBaseline(data.counts(known), data.n_items),
        "recent popularity": PopularityBaseline(recent, data.n_items),
        "item similarity": ItemSimilarityBaseline(item_embeddings=data.embeddings),
        "random": RandomBaseline(data.n_items, random_seed=0),
    }
    for name, baseline in baselines.items():
        results = baseline.evaluate(test, train, K_VALUES)
        comparator.add_baseline_results(name, results)
        out[name] = {"results": {key: value for key, value in results.items() if key != "baseline_name"}}
    ranking = [name for name in results if "@" in name or name == "mrr"]
    truth = items_by_user(data.test)
    expected = recsys.baselines.random_expectation(truth, ranking, n_items=data.n_items, seen=train)
    out["random, expected"] = {"results": dict(expected)}
    shown = ["recall@10", "ndcg@10", "mrr", "coverage"]
    print(f"\n{data.name}: {data.n_users} users, {data.n_items} items, {len(known):,} training interactions")
    print(
        pd.DataFrame({name: values["results"] for name, values in out.items()})
        .T[shown]
        .astype(float)
        .round(4)
        .to_string()
    )
    out["tests"] = compare_with_popularity(comparator)
    out["failures"] = summarise_failures(data, comparator, known)
    return out


def compare_with_popularity(comparator: ModelComparator) -> dict[str, Any]:
    """Lift, p-value and verdict of ALS and BPR against popularity."""
    rows = comparator.get_improvement_summary("popularity", ["recall@10", "ndcg@10"])
    out = {}
    for row in rows.itertuples(index=False):
        model, popularity = (
            group[name].per_user()[row.metric]
            for group, name in (
                (comparator.model_results, row.model),
                (comparator.baseline_results, "popularity"),
            )
        )
        p = paired_t_test(model, popularity, "greater")["p_value"]
        print(f"{row.model} against popularity, {row.metric}: {row.verdict}; t-test p = {p:.1e}")
        out[f"{row.model} {row.metric}"] = {
            "lift in percent": row.relative_percent,
            "p, one-sided t-test": p,
            "p, corrected": row.adjusted_p_value,
            "verdict": row.verdict,
        }
    return out


def summarise_failures(data: Dataset, comparator: ModelComparator, known: pd.DataFrame) -> dict[str, Any]:
    """The users that ALS serves worst, and how often it loses to popularity."""
    als = comparator.model_results["als"].evaluation
    popularity = comparator.baseline_results["popularity"].evaluation
    columns = ["user_id", "item_id"]
    cases = failure_cases(als, known[columns], data.test[columns], metric="recall@10", most=5)
    lost = losing_users(als, popularity, "recall@10", counts=known[columns], most=5)
    print("worst users:", "; ".join(f"{user}: {reason}" for user, reason in cases.worst["reason"].items()))
    print(f"ALS loses to popularity on {lost.attrs['lost']} users, wins on {lost.attrs['won']}")
    return {"summary": cases.summary, "won, tied, lost": [lost.attrs[n] for n in ("won", "tied", "lost")]}


def time_evaluation(n_users: int = 12_000, n_items: int = 2231, n_factors: int = 64) -> float:
    """Seconds to evaluate a random model of this size, all metrics at four cut-offs."""
    rng = np.random.default_rng(0)
    users = rng.standard_normal((n_users, n_factors))
    items = rng.standard_normal((n_items, n_factors))
    items_taken = rng.integers(0, n_items, (n_users, 30))
    train = {user: set(row[:20].tolist()) for user, row in enumerate(items_taken)}
    test = {user: set(row[20:].tolist()) for user, row in enumerate(items_taken)}
    start = time.perf_counter()
    ModelEvaluator(users, items, K_VALUES).evaluate(test, train)
    return time.perf_counter() - start


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument(
        "--dataset", "--world", choices=DATASETS, action="append", help="one of them (default: both)"
    )
    arguments.add_argument("--output", type=Path, default=OUT)
    options = arguments.parse_args()
    out: dict[str, Any] = {name: evaluate_models(load_dataset(name)) for name in options.dataset or DATASETS}
    out["seconds for 12,000 users"] = time_evaluation()
    print("\ncriteria")
    criteria_met = []
    for name in options.dataset or DATASETS:
        row = out[name]["tests"]["als recall@10"]
        good = row["lift in percent"] >= MIN_LIFT and row["p, corrected"] < LEVEL
        lift, p = row["lift in percent"], row["p, corrected"]
        print(
            f"[{'x' if good else ' '}] {name}: recall@10 {lift:+.1f} % over popularity, corrected p = {p:.1e}"
        )
        criteria_met.append(good)
    quick = out["seconds for 12,000 users"] < MAX_SECONDS
    print(f"[{'x' if quick else ' '}] 12,000 users evaluated in {out['seconds for 12,000 users']:.2f} s")
    out["criteria met"] = bool(all(criteria_met) and quick)
    out["recsys"] = recsys.__version__
    write_json(options.output, out)


if __name__ == "__main__":
    main()
