"""The data a study runs on, the models it trains, and how both are evaluated; shared by all five.

Users and items are numbered once, so a network's rows, the factors and the truth mean the same. Ratings from
`relevant_from` on count as relevant; everything rated in training is left out of the ranking.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from recsys.errors import ColumnError
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.ratings import evaluate_ratings
from recsys.evaluation.results import Evaluation
from recsys.inputs.timestamps import seconds_of
from recsys.models import MF, BiasedMF, NeuMF
from recsys.models.baselines import popularity
from recsys.models.rating_training import fit_ratings
from recsys.ranks.sources import Factors, Scores
from recsys.types import Array, Float, Int

RELEVANT_FROM = 4.0
RANKING = ("precision@10", "ndcg@10")
ERRORS = ("mse", "rmse", "mae")
LEARNED = ("MF", "MF-bias", "NCF")


@dataclass(frozen=True, eq=False)
class Setting:
    """Interactions with whole numbers for users and items: columns user, item, rating, timestamp."""

    name: str
    frame: pd.DataFrame
    n_users: int
    n_items: int

    def __str__(self) -> str:
        return (
            f"{self.name}: {len(self.frame):,} ratings of {self.n_users:,} users on {self.n_items:,} items."
        )


@dataclass(frozen=True, eq=False)
class Predictor:
    """Something that predicts ratings and ranks items; `score` ranks them, where predictions do not."""

    name: str
    predict: Callable[[Array, Array], Float]
    source: Factors | Scores
    score: Callable[[Array, Array], Float] | None = None


def setting_of(data: Any = None, *, seed: int = 0) -> Setting:
    """A data set by path, a table with user, item, rating and time, or the demo world."""
    if data is None:
        from recsys.splits.datasets.demo_world import demo_world

        return _numbered("The demo world", demo_world(seed).events)
    if isinstance(data, Setting):
        return data
    if hasattr(data, "columns"):
        return _numbered("The table", pd.DataFrame(data))
    from recsys.splits.datasets import read

    loaded = read(data)
    return _numbered(str(data).rstrip("/").split("/")[-1], loaded.interactions)


def _numbered(name: str, frame: pd.DataFrame) -> Setting:
    from recsys.inputs.frames import find_columns

    found = find_columns(list(frame.columns), ("user", "item", "grade", "time"), None, name)
    for role in ("grade", "time"):
        if role not in found:
            raise ColumnError(f"{name} has no column of {role}s, and the study needs one.", column=role)
    users, user = np.unique(frame[found["user"]].to_numpy(), return_inverse=True)
    items, item = np.unique(frame[found["item"]].to_numpy(), return_inverse=True)
    made = pd.DataFrame({
        "user": user,
        "item": item,
        "rating": frame[found["grade"]].to_numpy(dtype=np.float64),
        "timestamp": seconds_of(frame[found["time"]].to_numpy()),
    })  # fmt: skip
    return Setting(name, made, len(users), len(items))


def learned(name: str, train: pd.DataFrame, setting: Setting, seed: int) -> Predictor:
    """MF, MF-bias or NCF, fitted to the ratings of `train`."""
    shape = (setting.n_users, setting.n_items)
    networks: dict[str, Callable[[], Any]] = {
        "MF": lambda: MF(*shape, factors=16, seed=seed),
        "MF-bias": lambda: BiasedMF(*shape, factors=16, seed=seed),
        "NCF": lambda: NeuMF(*shape, factors=8, layers=(32, 16, 8), seed=seed),
    }
    rows = [train[column].to_numpy() for column in ("user", "item", "rating")]
    made = fit_ratings(networks[name](), *rows, weight_decay=2e-5, seed=seed)
    if name == "NCF":
        return Predictor(name, made.predict, _blocks(made.predict, *shape))
    return Predictor(name, made.predict, Factors(made.network.user_factors, made.network.item_factors))


def _blocks(predict: Callable[[Array, Array], Float], n_users: int, n_items: int) -> Scores:
    def block(rows: Int) -> Float:
        users = np.repeat(rows, n_items)
        return predict(users, np.tile(np.arange(n_items), len(rows))).reshape(len(rows), n_items)

    return Scores(block, n_users=n_users, n_items=n_items)


def most_popular(by: str, train: pd.DataFrame, setting: Setting) -> Predictor:
    """The same list for everyone, by the number of ratings or by their mean; predicts the item's mean."""
    count = np.bincount(train["item"], minlength=setting.n_items)
    total = np.bincount(train["item"], weights=train["rating"], minlength=setting.n_items)
    middle = float(train["rating"].mean())
    mean = np.where(count > 0, total / np.maximum(count, 1), middle)
    worth = count.astype(np.float64) if by == "count" else np.where(count > 0, mean, 0.0)
    source = popularity(worth, users=range(setting.n_users))
    return Predictor(
        f"popular by {by}",
        lambda users, items: mean[np.asarray(items)] + 0 * users,
        source,
        score=lambda users, items: worth[np.asarray(items)] + 0 * users,
    )


def errors_of(predictor: Predictor, test: pd.DataFrame, names: Any = ERRORS, *, by: Any = None) -> Evaluation:
    """Rating errors on the test rows."""
    users, items = test["user"].to_numpy(), test["item"].to_numpy()
    table = pd.DataFrame({
        "user": users,
        "prediction": predictor.predict(users, items),
        "rating": test["rating"].to_numpy(),
    })  # fmt: skip
    return evaluate_ratings(table, metrics=list(names), by=by)


def ranking_of(
    source: Factors | Scores, train: pd.DataFrame, test: pd.DataFrame, names: Any = RANKING
) -> Evaluation:
    """Ranking metrics over the whole catalogue without what the user rated in training."""
    truth = test[["user", "item", "rating"]]
    known = train[["user", "item"]]
    decisions = {"relevant_from": RELEVANT_FROM, "ties": "expected"}
    return evaluate(source, truth, list(names), seen=known, conventions=decisions)
