"""RMSE of users with few and with many training ratings, model by model.

Where a group is empty, as in every MovieLens set, a seeded third of the users keeps only 3 to 9 of their
training ratings, and the answer says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from recsys.cli.studies.setting import LEARNED, Setting, popularity_model, rating_errors, train_model
from recsys.cli.studies.study import Study
from recsys.splits import per_user_ratio

FEW, MANY = 10, 50
_ENOUGH_USERS = 30
_GROUPS = (f"fewer than {FEW}", f"{FEW} to {MANY}", f"more than {MANY}")


def study(setting: Setting, seed: int) -> Study:
    """Errors by activity: users with fewer than 10 and more than 50 ratings to learn from."""
    train, test = per_user_ratio(setting.frame, 0.2, seed=seed)
    train, remarks = _thin_out(train, seed)
    activity = train.groupby("user").size()
    group_of = {user: _activity_group(int(activity.get(user, 0))) for user in test["user"].unique().tolist()}
    models = [train_model(name, train, setting, seed) for name in LEARNED]
    models.append(popularity_model("mean", train, setting))
    table: dict[str, list[Any]] = {"training ratings": [], "users": []}
    results = {model.name: rating_errors(model, test, ["rmse"], by=group_of) for model in models}
    groups = [group for group in _GROUPS if group in next(iter(results.values())).by]
    for group in groups:
        table["training ratings"].append(group)
        table["users"].append(next(iter(results.values())).by_sizes[group])
    for name, result in results.items():
        table[name] = [result.by[group]["rmse"] for group in groups]
    return Study(
        "per-user",
        "Which users does each model serve better, those with few ratings or with many?",
        f"{setting} RMSE on a fifth of each user's ratings.",
        table,
        [*_answer(results, groups), *remarks],
        lambda: _figure(results, groups),
    )


def _activity_group(n_ratings: int) -> str:
    return _GROUPS[0] if n_ratings < FEW else _GROUPS[2] if n_ratings > MANY else _GROUPS[1]


def _thin_out(train: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, list[str]]:
    """Where few users have under ten ratings, thin out a third of all users; the sentence says so."""
    sizes = train.groupby("user").size()
    n_few = int((sizes < FEW).sum())
    if n_few >= _ENOUGH_USERS:
        return train, []
    rng = np.random.default_rng([seed, 4])
    users = np.sort(sizes.index.to_numpy())
    chosen = np.sort(rng.choice(users, len(users) // 3, replace=False))
    n_kept = dict(zip(chosen.tolist(), rng.integers(3, FEW, len(chosen)).tolist(), strict=True))
    order = rng.permutation(len(train))
    place = train.iloc[order].groupby("user").cumcount().sort_index()
    limit = train["user"].map(n_kept).fillna(np.inf)
    inside = place.reindex(train.index) < limit
    remark = (f"Only {n_few} users have fewer than {FEW} training ratings here, so a seeded third of all "
            f"({len(chosen):,}) was thinned to 3 to {FEW - 1}.")  # fmt: skip
    return train[inside], [remark]


def _answer(results: dict[str, Any], groups: list[str]) -> list[str]:
    low, high = groups[0], groups[-1]
    lines = []
    for name, result in results.items():
        few, many = result.by[low]["rmse"], result.by[high]["rmse"]
        better = high if many < few else low
        lines.append(f"{name} serves users with {better} ratings better: RMSE {min(few, many):.3f} against "
                     f"{max(few, many):.3f}.")  # fmt: skip
    best = {}
    for group in groups:
        values = {name: result.by[group]["rmse"] for name, result in results.items()}
        best[group] = min(values, key=values.__getitem__)
    lines.append("; ".join(f"best with {group} ratings: {name}" for group, name in best.items()) + ".")
    return lines


def _figure(results: dict[str, Any], groups: list[str]) -> Any:
    from recsys.report import figures

    values = {name: {group: result.by[group]["rmse"] for group in groups} for name, result in results.items()}
    return figures.strata(values, metric="RMSE", title="RMSE by number of training ratings")
