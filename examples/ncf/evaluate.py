"""The trained models on the test: among 100 candidates, among all items, and the second told by the first.

Every model ranks each user's test item twice: among the authors' 99 negatives, and among all items the user
has no training pair with. Beside both stand the estimates of the second from the first, and a model that
knows nothing but popularity. The test cases are read here and nowhere else.

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
from recsys.models import load_model
from recsys.stats.sampled import negatives_needed, winner_probability

METRICS = ("hit@10", "ndcg@10", "map", "auc")
MODELS = ("gmf", "mlp", "neumf")


class Popularity:
    """How many training pairs an item has: a model without a user."""

    def __init__(self, users: np.ndarray, items: np.ndarray, n_users: int, n_items: int) -> None:
        del users
        counts = np.bincount(items, minlength=n_items).astype(np.float32)
        self.user_factors, self.item_factors = np.ones((n_users, 1), dtype=np.float32), counts[:, None]

    def __call__(self, users: Any, items: Any) -> Any:
        del users
        return self.item_factors[items.cpu().numpy(), 0]


def full_ranking(model: Any, held: Any, train: recsys.Interactions) -> recsys.Evaluation:
    """The test item among all items the user has no training pair with; exact, ties by their expectation."""
    truth = {int(u): {int(i)} for u, i in zip(held["test_users"], held["test_items"], strict=True)}
    return recsys.evaluate(
        recsys.from_model(model),
        truth,
        [*METRICS, "average_rank"],
        seen=train,
        conventions={"ties": "expected"},
    )


def row(model: Any, cases: Candidates, held: Any, train: recsys.Interactions) -> dict[str, Any]:
    """One model: sampled, full and estimated, with intervals."""
    evaluator = NCFEvaluator(model, cases, top_k=10, device="cpu")
    began = time.perf_counter()
    sampled = evaluator.evaluate_all([*METRICS, "average_rank"])
    middle = time.perf_counter()
    full = full_ranking(model, held, train)
    end = time.perf_counter()
    n_items = int(held["n_users_items"][1]) - np.bincount(held["users"], minlength=len(cases))
    estimates = evaluator.estimate_full(n_items, METRICS, methods=("rank", "cls", "bv", "mle"))
    return {
        "sampled": sampled,
        "full": full,
        "estimates": estimates,
        "counted": evaluator._counted(),  # noqa: SLF001 - the ranks themselves, for the winner's probability
        "seconds": {"sampled": middle - began, "full": end - middle},
    }


def written(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """Plain numbers of one model, for the JSON."""
    sampled, full = found["sampled"], found["full"]
    table = {}
    for metric in METRICS:
        methods = {m: [e.value, e.low, e.high] for m, e in found["estimates"][metric].items()}
        interval = {
            side: [result.intervals(metrics=[metric])[metric].interval.low,
                   result.intervals(metrics=[metric])[metric].interval.high]
            for side, result in (("sampled", sampled), ("full", full))
        }  # fmt: skip
        table[metric] = {
            "sampled": sampled[metric], "sampled_interval": interval["sampled"],
            "full": full[metric], "full_interval": interval["full"], "estimates": methods,
        }  # fmt: skip
    return {"model": name, "metrics": table, "seconds": found["seconds"], "counts": dict(sampled.counts)}


def shown(name: str, found: dict[str, Any]) -> str:
    cells = []
    for metric in ("hit@10", "ndcg@10"):
        estimates = found["estimates"][metric]
        cells += [found["sampled"][metric], found["full"][metric]]
        cells += [estimates[m].value for m in ("cls", "bv", "mle")]
    return f"{name:<11}" + "".join(f"{cell:>9.4f}" for cell in cells)


def differences(results: dict[str, dict[str, Any]], side: str) -> list[dict[str, Any]]:
    """Every pair of models, paired by user and corrected over the family."""
    table = recsys.compare({name: r[side] for name, r in results.items()}, metrics=["hit@10", "ndcg@10"])
    return [
        {"model": r.model, "against": r.baseline, "metric": r.metric, "verdict": r.verdict}
        for r in table.rows
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("weights", type=Path, help="folder that train.py wrote")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    with np.load(asked.data, allow_pickle=False) as packed:
        held = {name: packed[name] for name in packed.files}
    n_users, n_items = held["n_users_items"].tolist()
    pairs: dict[int, list[int]] = {user: [] for user in range(n_users)}
    for user, item in zip(held["users"].tolist(), held["items"].tolist(), strict=True):
        pairs[user].append(item)
    train = recsys.read_interactions(pairs)
    cases = Candidates.of(held["test_users"], held["test_items"], held["test_negatives"])
    models: dict[str, Any] = {"popularity": Popularity(held["users"], held["items"], n_users, n_items)}
    models |= {name: load_model(asked.weights / f"{name}.npz") for name in MODELS}
    results = {name: row(model, cases, held, train) for name, model in models.items()}

    print(
        f"{'':<11}{'HR@10':>9}{'full':>9}{'cls':>9}{'bv':>9}{'mle':>9}{'NDCG@10':>9}{'full':>9}{'cls':>9}{'bv':>9}{'mle':>9}"
    )
    for name, found in results.items():
        print(shown(name, found))
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
    training = asked.weights / "training.json"
    document = {
        "data": "MovieLens 1M as split by the authors of NCF, with their 99 negatives a user",
        "models": [written(name, found) for name, found in results.items()],
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
    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
