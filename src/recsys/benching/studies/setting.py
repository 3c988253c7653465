"""The data a study runs on, the models it trains, and how both are evaluated; shared by all five.

Users and items are numbered once, so that networks, factors and truth share their row numbers. Ratings of
`RELEVANT_FROM` and more are relevant, NDCG has the gain 2^rating - 1 of document 004, and items rated in
training are left out of the ranking. Every study says so, with its split and its seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from recsys.conventions.decisions import Conventions
from recsys.errors import ColumnError
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.ratings import evaluate_ratings
from recsys.evaluation.results import Evaluation
from recsys.inputs.timestamps import to_seconds
from recsys.models import MF, BiasedMF, NeuMF
from recsys.models.baselines import popularity
from recsys.models.training import fit_ratings
from recsys.ranks.sources import Factors, Scores
from recsys.records.arrays import Array, Float, Int

RELEVANT_FROM = 4.0
RANKING = ("precision@10", "ndcg@10")
ERRORS = ("mse", "rmse", "mae")
LEARNED = ("MF", "MF-bias", "NCF")
CONVENTIONS = Conventions(relevant_from=RELEVANT_FROM, gain="exp2", ties="expected")
_RANKED = (
    "Ranking: every item the user did not rate in training; "
    f"ratings of {RELEVANT_FROM:g} and more are relevant, and NDCG has the gain 2^rating - 1."
)


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


def described(
    setting: Setting, split: str, seed: int, *, ranked: bool = True, more: str | None = None
) -> list[str]:
    """Return what a reader must know of the numbers of a study, one sentence or two per line.

    Args:
        setting: the data.
        split: how training and test rows were chosen.
        seed: of the split and of the models.
        ranked: whether there are ranking metrics among the numbers.
        more: what else there is to say of the data.
    """
    lines = [f"{setting} {more}" if more else str(setting), f"Split: {split}. Seed {seed}."]
    return lines + ([_RANKED, f"Conventions: {CONVENTIONS}."] if ranked else [])


@dataclass(frozen=True, eq=False)
class Predictor:
    """Predicts ratings and ranks items; `score` gives the order where it is not that of the predictions."""

    name: str
    predict: Callable[[Array, Array], Float]
    source: Factors | Scores
    score: Callable[[Array, Array], Float] | None = None


def setting_of(data: Any = None, *, seed: int = 0) -> Setting:
    """Return a data set by path, a table with user, item, rating and time, or the demo world."""
    if data is None:
        from recsys.splits.datasets.demo_world import demo_world

        return _number_ids("The demo world", demo_world(seed).events)
    if isinstance(data, Setting):
        return data
    if hasattr(data, "columns"):
        return _number_ids("The table", pd.DataFrame(data))
    from recsys.splits.datasets import read

    loaded = read(data)
    return _number_ids(str(data).rstrip("/").split("/")[-1], loaded.interactions)


def _number_ids(name: str, frame: pd.DataFrame) -> Setting:
    from recsys.inputs.frames import find_columns

    columns = find_columns(list(frame.columns), ("user", "item", "grade", "time"), None, name)
    for role in ("grade", "time"):
        if role not in columns:
            raise ColumnError(f"{name} has no column of {role}s, and the study needs one.", column=role)
    users, user = np.unique(frame[columns["user"]].to_numpy(), return_inverse=True)
    items, item = np.unique(frame[columns["item"]].to_numpy(), return_inverse=True)
    numbered = pd.DataFrame({
        "user": user,
        "item": item,
        "rating": frame[columns["grade"]].to_numpy(dtype=np.float64),
        "timestamp": to_seconds(frame[columns["time"]].to_numpy()),
    })  # fmt: skip
    return Setting(name, numbered, len(users), len(items))


def train_model(name: str, train: pd.DataFrame, setting: Setting, seed: int) -> Predictor:
    """MF, MF-bias or NCF, fitted to the ratings of `train`."""
    shape = (setting.n_users, setting.n_items)
    networks: dict[str, Callable[[], Any]] = {
        "MF": lambda: MF(*shape, factors=16, seed=seed),
        "MF-bias": lambda: BiasedMF(*shape, factors=16, seed=seed),
        "NCF": lambda: NeuMF(*shape, factors=8, layers=(32, 16, 8), seed=seed),
    }
    rows = [train[column].to_numpy() for column in ("user", "item", "rating")]
    model = fit_ratings(networks[name](), *rows, weight_decay=2e-5, seed=seed)
    if name != "NCF":
        return Predictor(name, model.predict, Factors(model.network.user_factors, model.network.item_factors))

    def score_block(rows: Int) -> Float:
        users, items = np.repeat(rows, setting.n_items), np.tile(np.arange(setting.n_items), len(rows))
        return model.predict(users, items).reshape(len(rows), setting.n_items)

    source = Scores(score_block, n_users=setting.n_users, n_items=setting.n_items)
    return Predictor(name, model.predict, source)


def popularity_model(by: str, train: pd.DataFrame, setting: Setting) -> Predictor:
    """Return the same list for everyone, by the number of ratings or by their mean.

    The predicted rating is the item's mean.
    """
    count = np.bincount(train["item"], minlength=setting.n_items)
    total = np.bincount(train["item"], weights=train["rating"], minlength=setting.n_items)
    overall_mean = float(train["rating"].mean())
    mean = np.where(count > 0, total / np.maximum(count, 1), overall_mean)
    item_scores = count.astype(np.float64) if by == "count" else np.where(count > 0, mean, 0.0)
    source = popularity(item_scores, users=range(setting.n_users))
    return Predictor(
        f"popular by {by}",
        lambda users, items: mean[np.asarray(items)] + 0 * users,
        source,
        score=lambda users, items: item_scores[np.asarray(items)] + 0 * users,
    )


def rating_errors(
    predictor: Predictor, test: pd.DataFrame, names: Any = ERRORS, *, by: Any = None
) -> Evaluation:
    """Rating errors on the test rows."""
    users, items = test["user"].to_numpy(), test["item"].to_numpy()
    table = pd.DataFrame({
        "user": users,
        "prediction": predictor.predict(users, items),
        "rating": test["rating"].to_numpy(),
    })  # fmt: skip
    return evaluate_ratings(table, metrics=list(names), by=by)


def ranking_metrics(
    source: Factors | Scores, train: pd.DataFrame, test: pd.DataFrame, names: Any = RANKING
) -> Evaluation:
    """Ranking metrics over the whole catalogue except what the user rated in training."""
    truth = test[["user", "item", "rating"]]
    seen = train[["user", "item"]]
    return evaluate(source, truth, list(names), seen=seen, conventions=CONVENTIONS)
