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

from recsys.callbacks import Fitted, fit
from recsys.candidates import Candidates
from recsys.models import NeuMF, Pairs, network, save_model

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
        "gmf": [{"factors": factors, "learning_rate": 3e-3} for factors in (16, 32, 64)],
        "mlp": [
            {"layers": [64, 32, 16, 8], "learning_rate": 3e-3},
            {"layers": [128, 64, 32, 16], "learning_rate": 3e-3},
            {"layers": [128, 64, 32, 16], "learning_rate": 3e-3, "dropout": 0.2},
        ],
        "neumf": [{"learning_rate": rate} for rate in (1e-4, 5e-4)],
    },
}
TRAINING = ("learning_rate", "weight_decay")


def tried(
    kind: str, setting: dict[str, Any], made: dict[str, Fitted], data: tuple[Pairs, Candidates], asked: Any
) -> Fitted:
    """One model with one setting; NeuMF starts from the GMF and MLP of the same stage."""
    pairs, cases = data
    recipe = RECIPES[asked.recipe]
    shape = {name: value for name, value in setting.items() if name not in TRAINING}

    def make(stage: str) -> Any:
        if kind == "neumf":
            parts = [getattr(made[part], "tuned" if stage == "tuned" else "model") for part in ("gmf", "mlp")]
            return NeuMF.of(*parts)
        return network(kind, pairs.n_users, pairs.n_items, seed=asked.seed, **shape)

    fitted = fit(
        make,
        pairs,
        cases=cases,
        epochs=recipe["epochs"][kind],
        patience=recipe["patience"],
        batch=recipe["batch"],
        device=asked.device,
        seed=asked.seed + sum(map(ord, kind)),
        **{name: value for name, value in setting.items() if name in TRAINING},
    )
    seconds = np.median([epoch.seconds for epoch in fitted.history.epochs])
    best, epoch = fitted.watch.best, fitted.watch.best_epoch
    print(
        f"{kind} {setting}: held-out NDCG@10 {best:.4f} at epoch {epoch}, {seconds:.2f} s an epoch",
        flush=True,
    )
    return fitted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("target", type=Path, help="folder for weights and log")
    parser.add_argument("--recipe", choices=RECIPES, default="cpu")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    began = time.perf_counter()
    with np.load(asked.data, allow_pickle=False) as held:
        n_users, n_items = held["n_users_items"].tolist()
        pairs = Pairs.of(held["users"], held["items"], n_users=n_users, n_items=n_items, order=held["order"])
        cases = Candidates.of(held["held_users"], held["held_items"], held["held_negatives"])
    asked.target.mkdir(parents=True, exist_ok=True)
    log: dict[str, Any] = {"recipe": asked.recipe, "seed": asked.seed, "models": {}}
    made: dict[str, Fitted] = {}
    for kind in ("gmf", "mlp", "neumf"):
        runs = [
            (tried(kind, setting, made, (pairs, cases), asked), setting)
            for setting in RECIPES[asked.recipe][kind]
        ]
        made[kind], setting = max(runs, key=lambda run: run[0].watch.best or 0.0)
        save_model(made[kind].model, asked.target / f"{kind}.npz")
        log["models"][kind] = {
            "setting": setting,
            "shape": made[kind].model.shape,
            "epochs": made[kind].watch.best_epoch,
            "held_out": made[kind].watch.history,
            "tried": [{"setting": s, "ndcg@10": f.watch.best, "epoch": f.watch.best_epoch} for f, s in runs],
            "seconds_per_epoch": float(np.median([e.seconds for e in made[kind].history.epochs])),
            "device": made[kind].history.device,
        }
    log["seconds"] = time.perf_counter() - began
    (asked.target / "training.json").write_text(json.dumps(log, indent=1) + "\n")
    print(f"done in {log['seconds']:.0f} s")


if __name__ == "__main__":
    main()
