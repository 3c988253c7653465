"""The same model on a random and on a temporal split; which error is the optimistic one."""

from __future__ import annotations

from typing import Any

import pandas as pd

from recsys.cli.studies.setting import ERRORS, Setting, rating_errors, train_model
from recsys.cli.studies.study import Study
from recsys.splits import global_temporal, random_ratio

_MODELS = ("MF", "MF-bias")


def study(setting: Setting, seed: int) -> Study:
    """Train on 80 %, chosen at random and chosen by time, and compare the errors and what leaked."""
    parts = {
        "random": random_ratio(setting.frame, 0.2, seed=seed),
        "temporal": global_temporal(setting.frame, 0.2),
    }
    table: dict[str, list[Any]] = {
        name: []
        for name in ("model", "split", *ERRORS, "mse, known users", "test rows", "new users", "peeks ahead")
    }
    errors: dict[str, dict[str, float]] = {name: {} for name in _MODELS}
    for how, (train, test) in parts.items():
        known = test["user"].isin(train["user"]).to_numpy()
        for name in _MODELS:
            model = train_model(name, train, setting, seed)
            result = rating_errors(model, test)
            errors[name][how] = result["mse"]
            mse_known = rating_errors(model, test[known])["mse"] if known.any() else float("nan")
            row = {
                "model": name, "split": how, **result, "mse, known users": mse_known, "test rows": len(test),
                "new users": f"{1 - known.mean():.0%}",
                "peeks ahead": f"{_share_before_training(train, test):.0%}",
            }  # fmt: skip
            for column, cells in table.items():
                cells.append(row[column])
    return Study(
        "temporal-vs-random",
        "Which split gives the more optimistic error, and why?",
        str(setting),
        table,
        _answer(errors, parts),
        lambda: _figure(errors),
    )


def _share_before_training(train: pd.DataFrame, test: pd.DataFrame) -> float:
    """The share of test rows that are older than a training row of the same user."""
    newest = train.groupby("user")["timestamp"].max()
    return float((test["user"].map(newest) > test["timestamp"]).mean())


def _answer(errors: dict[str, dict[str, float]], parts: dict[str, Any]) -> list[str]:
    lines = []
    for name, by_split in errors.items():
        lower = min(by_split, key=lambda how: by_split[how])
        other = "temporal" if lower == "random" else "random"
        gap = by_split[other] / by_split[lower] - 1
        values = f"{by_split[lower]:.3f} against {by_split[other]:.3f}"
        lines.append(f"{name}: the {lower} split gives the lower MSE, {values} ({gap:+.1%} on the other).")
    shares = {how: _share_before_training(*split) for how, split in parts.items()}
    lines.append(
        "On the random split the model was trained on later ratings of the same user for "
        f"{shares['random']:.0%} of the test rows, on the temporal split for {shares['temporal']:.0%}."
    )
    train, test = parts["temporal"]
    new = 1 - float(test["user"].isin(train["user"]).mean())
    if all(by_split["random"] < by_split["temporal"] for by_split in errors.values()):
        lines.append(
            "Predicting the past from the future is easier, and no production system can do it"
            + (
                f"; and {new:.0%} of the later ratings come from users the model has never met."
                if new
                else "."
            )
        )
    else:
        lines.append(
            "The random split is not clearly the optimistic one here: tastes do not drift in this data"
            + (
                f", though {new:.0%} of the later ratings come from new users."
                if new
                else " and nobody is new."
            )
        )
    return lines


def _figure(errors: dict[str, dict[str, float]]) -> Any:
    from recsys.report import figures

    by_split = {how: {name: values[how] for name, values in errors.items()} for how in ("random", "temporal")}
    axes = figures.bars(by_split)
    axes.set_title("MSE by split")
    return axes
