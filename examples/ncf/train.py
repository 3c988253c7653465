"""Train GMF, MLP and NeuMF on the file of prepare.py; PyTorch and NumPy are all it needs.

Settings and the number of epochs are chosen on each user's second-to-last item. The chosen model is then
trained anew on all training pairs for as many epochs. The test cases are not read here at all.

    python examples/ncf/train.py ml1m.npz weights --recipe cpu
    python examples/ncf/train.py ml1m.npz weights --recipe gpu --device cuda
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from recsys.evaluation.candidates import Candidates
from recsys.models import NeuMF, Pairs, network, save_model, train
from recsys.models.callbacks import Fitted, fit

# What is tried for each model, and the most epochs; the GPU has time for more of it.
RECIPES: dict[str, dict[str, Any]] = {
    "cpu": {
        "batch": 4096,
        "epochs": {"gmf": 14, "mlp": 16, "neumf": 6},
        "patience": 2,
        "gmf": [{"factors": 16, "learning_rate": 3e-3}],
        "mlp": [{"layers": [64, 32, 16, 8], "learning_rate": 3e-3}],
        "neumf": [{"learning_rate": 5e-4}],
    },
    "gpu": {
        "batch": 8192,
        "epochs": {"gmf": 30, "mlp": 30, "neumf": 15},
        "patience": 3,
        "gmf": [
            {"factors": factors, "learning_rate": 3e-3, "weight_decay": decay}
            for factors in (16, 32, 64)
            for decay in (0.0, 1e-6)
        ],
        "mlp": [
            {"layers": layers, "learning_rate": 3e-3, "dropout": dropout}
            for layers in ([64, 32, 16, 8], [128, 64, 32, 16])
            for dropout in (0.0, 0.2)
        ],
        "neumf": [{"learning_rate": rate} for rate in (1e-4, 5e-4)],
    },
}
TRAINING = ("learning_rate", "weight_decay")


class Bench:
    """The data, and what has been trained on it so far."""

    def __init__(self, asked: argparse.Namespace) -> None:
        with np.load(asked.data, allow_pickle=False) as held:
            users, items = held["n_users_items"].tolist()
            self.pairs = Pairs.of(
                held["users"], held["items"], n_users=users, n_items=items, order=held["order"]
            )
            self.cases = Candidates.of(held["held_users"], held["held_items"], held["held_negatives"])
        self.recipe, self.device, self.seed = RECIPES[asked.recipe], asked.device, asked.seed
        self.made: dict[str, Fitted] = {}

    def start(self, kind: str, setting: dict[str, Any], stage: str) -> Any:
        """An untrained network; NeuMF starts from the GMF and MLP of the same stage."""
        if kind == "neumf":
            return NeuMF.of(*(getattr(self.made[part], stage) for part in ("gmf", "mlp")))
        shape = {name: value for name, value in setting.items() if name not in TRAINING}
        return network(kind, self.pairs.n_users, self.pairs.n_items, seed=self.seed, **shape)

    def options(self, kind: str, setting: dict[str, Any]) -> dict[str, Any]:
        own = {name: value for name, value in setting.items() if name in TRAINING}
        seed = self.seed + sum(map(ord, kind))
        return own | {"batch": self.recipe["batch"], "device": self.device, "seed": seed}

    def tried(self, kind: str, setting: dict[str, Any]) -> Fitted:
        """One setting, trained without the held-out items and stopped by them."""
        fitted = fit(
            lambda _: self.start(kind, setting, "tuned"),
            self.pairs,
            cases=self.cases,
            epochs=self.recipe["epochs"][kind],
            patience=self.recipe["patience"],
            refit=False,
            **self.options(kind, setting),
        )
        best, epoch = fitted.watch.best, fitted.watch.best_epoch
        print(f"{kind} {setting}: held-out NDCG@10 {best:.4f} at epoch {epoch}", flush=True)
        return fitted

    def chosen(self, kind: str) -> dict[str, Any]:
        """The best setting, trained anew on all pairs; what was tried, for the log."""
        runs = [(self.tried(kind, setting), setting) for setting in self.recipe[kind]]
        best, setting = max(runs, key=lambda run: run[0].watch.best)
        final = self.start(kind, setting, "model")
        history = train(final, self.pairs, epochs=best.watch.best_epoch, **self.options(kind, setting))
        self.made[kind] = Fitted(final, best.tuned, best.watch, history)
        return {
            "setting": setting,
            "shape": final.shape,
            "epochs": best.watch.best_epoch,
            "held_out": best.watch.history,
            "tried": [{"setting": s, "ndcg@10": f.watch.best, "epoch": f.watch.best_epoch} for f, s in runs],
            "seconds_per_epoch": float(np.median([epoch.seconds for epoch in history.epochs])),
            "device": history.device,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("target", type=Path, help="folder for weights and log")
    parser.add_argument("--recipe", choices=RECIPES, default="cpu")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    began = time.perf_counter()
    bench = Bench(asked)
    asked.target.mkdir(parents=True, exist_ok=True)
    log: dict[str, Any] = {"recipe": asked.recipe, "seed": asked.seed, "models": {}}
    for kind in ("gmf", "mlp", "neumf"):
        log["models"][kind] = bench.chosen(kind)
        save_model(bench.made[kind].model, asked.target / f"{kind}.npz")
    log["seconds"] = time.perf_counter() - began
    (asked.target / "training.json").write_text(json.dumps(log, indent=1) + "\n")
    print(f"done in {log['seconds']:.0f} s")


if __name__ == "__main__":
    main()
