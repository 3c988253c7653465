"""Train GMF, MLP and NeuMF on the file of prepare.py; needs only PyTorch and NumPy.

Settings and the number of epochs are chosen on each user's second-to-last item. The chosen model is then
retrained on all training pairs for as many epochs. This script does not read the test cases.

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

# The settings tried for each model and the maximum number of epochs; the GPU recipe tries more.
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


class Experiment:
    """The data and the models trained so far."""

    def __init__(self, options: argparse.Namespace) -> None:
        with np.load(options.data, allow_pickle=False) as arrays:
            users, items = arrays["n_users_items"].tolist()
            self.pairs = Pairs.of(
                arrays["users"], arrays["items"], n_users=users, n_items=items, order=arrays["order"]
            )
            self.cases = Candidates.of(arrays["held_users"], arrays["held_items"], arrays["held_negatives"])
        self.recipe, self.device, self.seed = RECIPES[options.recipe], options.device, options.seed
        self.fitted_models: dict[str, Fitted] = {}

    def start(self, kind: str, setting: dict[str, Any], stage: str) -> Any:
        """An untrained network; NeuMF starts from the GMF and MLP of the same stage."""
        if kind == "neumf":
            return NeuMF.of(*(getattr(self.fitted_models[part], stage) for part in ("gmf", "mlp")))
        shape = {name: value for name, value in setting.items() if name not in TRAINING}
        return network(kind, self.pairs.n_users, self.pairs.n_items, seed=self.seed, **shape)

    def options(self, kind: str, setting: dict[str, Any]) -> dict[str, Any]:
        training_options = {name: value for name, value in setting.items() if name in TRAINING}
        seed = self.seed + sum(map(ord, kind))
        return training_options | {"batch": self.recipe["batch"], "device": self.device, "seed": seed}

    def try_setting(self, kind: str, setting: dict[str, Any]) -> Fitted:
        """Train one setting without the held-out items, which decide when to stop."""
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

    def choose_and_train(self, kind: str) -> dict[str, Any]:
        """Retrain the best setting on all pairs; return what was tried, for the log."""
        runs = [(self.try_setting(kind, setting), setting) for setting in self.recipe[kind]]
        best, setting = max(runs, key=lambda run: run[0].watch.best)
        final = self.start(kind, setting, "model")
        history = train(final, self.pairs, epochs=best.watch.best_epoch, **self.options(kind, setting))
        self.fitted_models[kind] = Fitted(final, best.tuned, best.watch, history)
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
    options = parser.parse_args()
    start_time = time.perf_counter()
    experiment = Experiment(options)
    options.target.mkdir(parents=True, exist_ok=True)
    log: dict[str, Any] = {"recipe": options.recipe, "seed": options.seed, "models": {}}
    for kind in ("gmf", "mlp", "neumf"):
        log["models"][kind] = experiment.choose_and_train(kind)
        save_model(options.target / f"{kind}.npz", experiment.fitted_models[kind].model)
    log["seconds"] = time.perf_counter() - start_time
    (options.target / "training.json").write_text(json.dumps(log, indent=1) + "\n")
    print(f"done in {log['seconds']:.0f} s")


if __name__ == "__main__":
    main()
