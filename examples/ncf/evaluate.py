"""Evaluate the trained models among 100 candidates and among all items, with estimates of the latter.

Every model ranks each user's test item twice: among the authors' 99 negatives, and among all items the user
has no training pair with. The output also has estimates of the second result from the first, and a popularity
model. Only this script reads the test cases.

    python examples/ncf/evaluate.py ml1m.npz weights --out examples/ncf/results/cpu.json
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import recsys
from recsys.cf.evaluation import NCFEvaluator
from recsys.evaluation.candidates import Candidates
from recsys.models import load_network
from recsys.stats.sampled import negatives_needed, winner_probability

METRICS = ("hit@10", "ndcg@10", "map", "auc")
MODELS = ("gmf", "mlp", "neumf")


class Popularity:
    """Scores an item by its number of training pairs, the same for every user."""

    def __init__(self, users: np.ndarray, items: np.ndarray, n_users: int, n_items: int) -> None:
        del users
        counts = np.bincount(items, minlength=n_items).astype(np.float32)
        self.user_factors, self.item_factors = np.ones((n_users, 1), dtype=np.float32), counts[:, None]

    def __call__(self, users: Any, items: Any) -> Any:
        del users
        return self.item_factors[items.cpu().numpy(), 0]


def full_ranking(model: Any, arrays: Any, train: recsys.Interactions) -> recsys.Evaluation:
    """Rank the test item among all items the user has no training pair with; ties by expectation."""
    truth = {int(u): {int(i)} for u, i in zip(arrays["test_users"], arrays["test_items"], strict=True)}
    return recsys.evaluate(
        recsys.from_model(model),
        truth,
        [*METRICS, "average_rank"],
        seen=train,
        conventions={"ties": "expected"},
    )


def evaluate_model(model: Any, cases: Candidates, arrays: Any, train: recsys.Interactions) -> dict[str, Any]:
    """Sampled, full and estimated results of one model."""
    evaluator = NCFEvaluator(model, cases, top_k=10, device="cpu")
    start = time.perf_counter()
    sampled = evaluator.evaluate_all([*METRICS, "average_rank"])
    sampled_done = time.perf_counter()
    full = full_ranking(model, arrays, train)
    end = time.perf_counter()
    n_items = int(arrays["n_users_items"][1]) - np.bincount(arrays["users"], minlength=len(cases))
    estimates = evaluator.estimate_full(n_items, METRICS, methods=("rank", "cls", "bv", "mle"))
    return {
        "sampled": sampled,
        "full": full,
        "estimates": estimates,
        "counted": evaluator._count_ranks(),  # noqa: SLF001 - the ranks themselves, for the winner's probability
        "seconds": {"sampled": sampled_done - start, "full": end - sampled_done},
    }


def json_row(name: str, result: dict[str, Any]) -> dict[str, Any]:
    """The numbers of one model, for the JSON file."""
    sampled, full = result["sampled"], result["full"]
    table = {}
    for metric in METRICS:
        methods = {m: [e.value, e.low, e.high] for m, e in result["estimates"][metric].items()}
        interval = {
            side: [result.intervals(metrics=[metric])[metric].interval.low,
                   result.intervals(metrics=[metric])[metric].interval.high]
            for side, result in (("sampled", sampled), ("full", full))
        }  # fmt: skip
        table[metric] = {
            "sampled": sampled[metric], "sampled_interval": interval["sampled"],
            "full": full[metric], "full_interval": interval["full"], "estimates": methods,
        }  # fmt: skip
    return {"model": name, "metrics": table, "seconds": result["seconds"], "counts": dict(sampled.counts)}


def table_row(name: str, result: dict[str, Any]) -> str:
    cells = []
    for metric in ("hit@10", "ndcg@10"):
        estimates = result["estimates"][metric]
        cells += [result["sampled"][metric], result["full"][metric]]
        cells += [estimates[m].value for m in ("cls", "bv", "mle")]
    return f"{name:<11}" + "".join(f"{cell:>9.4f}" for cell in cells)


def differences(results: dict[str, dict[str, Any]], side: str) -> list[dict[str, Any]]:
    """Every pair of models, paired by user and corrected over the family."""
    table = recsys.compare({name: r[side] for name, r in results.items()}, metrics=["hit@10", "ndcg@10"])
    table = table.pairs("holm")
    return [
        {"model": r.model, "against": r.baseline, "metric": r.metric, "verdict": str(r.verdict)}
        for r in table.rows
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("weights", type=Path, help="folder that train.py wrote")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with np.load(options.data, allow_pickle=False) as packed:
        arrays = {name: packed[name] for name in packed.files}
    n_users, n_items = arrays["n_users_items"].tolist()
    pairs: dict[int, list[int]] = {user: [] for user in range(n_users)}
    for user, item in zip(arrays["users"].tolist(), arrays["items"].tolist(), strict=True):
        pairs[user].append(item)
    train = recsys.read_interactions(pairs)
    cases = Candidates.of(arrays["test_users"], arrays["test_items"], arrays["test_negatives"])
    models: dict[str, Any] = {"popularity": Popularity(arrays["users"], arrays["items"], n_users, n_items)}
    models |= {name: load_network(options.weights / f"{name}.npz") for name in MODELS}
    results = {name: evaluate_model(model, cases, arrays, train) for name, model in models.items()}

    print(
        f"{'':<11}{'HR@10':>9}{'full':>9}{'cls':>9}{'bv':>9}{'mle':>9}{'NDCG@10':>9}{'full':>9}{'cls':>9}{'bv':>9}{'mle':>9}"
    )
    for name, result in results.items():
        print(table_row(name, result))
    ranks = results["neumf"]["full"].values_of("average_rank")
    needed = {
        metric: negatives_needed(metric, n_items, ranks=np.round(ranks).astype(int), n_cases=n_users)
        for metric in ("hit@10", "ndcg@10")
    }
    winners = {
        f"{a} and {b}": winner_probability(
            results[a]["counted"], results[b]["counted"], None, n_items, "ndcg@10"
        )
        for a, b in (("neumf", "gmf"), ("neumf", "mlp"), ("gmf", "mlp"), ("gmf", "popularity"))
    }
    training = options.weights / "training.json"
    document = {
        "data": "MovieLens 1M as split by the authors of NCF, with their 99 negatives per user",
        "models": [json_row(name, result) for name, result in results.items()],
        "sampled differences": differences(results, "sampled"),
        "full differences": differences(results, "full"),
        "negatives needed for an error of 0.01": needed,
        "probability that the sampled winner is the true one": winners,
        "training": json.loads(training.read_text()) if training.exists() else None,
    }
    for side in ("sampled", "full"):
        for line in document[f"{side} differences"]:
            print(f"{side}: {line['model']} against {line['against']}, {line['metric']}: {line['verdict']}")
    print(needed, winners)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
