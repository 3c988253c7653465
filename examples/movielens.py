"""The MovieLens data of the examples: interactions by row number, split by time, and item embeddings.

The files are in the data folder beside the checkout (../shared, or RECSYS_SHARED=PATH). Each user's last five
interactions are the test set, the five before them the validation set; equal timestamps are ordered at random
with a fixed seed, so that every user has five. Settings are tuned on the validation set alone.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recsys import splits
from recsys.models import Pairs, als, bpr

SHARED = Path(os.environ.get("RECSYS_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "data"
N_LAST = 5
DATASETS = ("ml-100k", "ml-latest-small")
FIT_FUNCTIONS = {"als": als, "bpr": bpr}
# One thread: with more, the random numbers of implicit's BPR differ between runs.
GRID: dict[str, list[dict[str, Any]]] = {
    "als": [
        {"factors": factors, "regularization": reg, "alpha": 1.0, "iterations": 10, "num_threads": 1}
        for factors in (16, 32, 64)
        for reg in (1.0, 10.0, 30.0)
    ],
    "bpr": [
        {
            "factors": factors,
            "learning_rate": rate,
            "regularization": 0.01,
            "iterations": 50,
            "num_threads": 1,
        }
        for factors in (16, 32)
        for rate in (0.003, 0.01, 0.03)
    ],
}


@dataclass(frozen=True)
class Dataset:
    """Users and items are numbered from 0; `ids` are the original ids of the items."""

    name: str
    n_users: int
    ids: np.ndarray
    items: pd.DataFrame
    train: pd.DataFrame
    validation: pd.DataFrame
    test: pd.DataFrame
    embeddings: np.ndarray

    @property
    def n_items(self) -> int:
        """How many items there are, rated in training or not."""
        return len(self.ids)

    def pairs(self, frame: pd.DataFrame) -> Pairs:
        """The interactions as training pairs."""
        return Pairs.of(
            frame["user_id"].to_numpy(),
            frame["item_id"].to_numpy(),
            n_users=self.n_users,
            n_items=self.n_items,
        )

    def counts(self, frame: pd.DataFrame) -> np.ndarray:
        """How many users took each item."""
        return np.bincount(frame["item_id"], minlength=self.n_items)


def items_by_user(frame: pd.DataFrame) -> dict[int, set[int]]:
    """{user: items}."""
    return {int(user): set(items) for user, items in frame.groupby("user_id")["item_id"]}


def load_dataset(name: str) -> Dataset:
    """Read and split one of DATASETS."""
    folder = SHARED / name
    events = pd.read_parquet(folder / ("interactions.parquet" if name == "ml-100k" else "ratings.parquet"))
    items = pd.read_parquet(folder / ("items.parquet" if name == "ml-100k" else "movies.parquet"))
    items = items[items["item"].isin(events["item"])].sort_values("item", ignore_index=True)
    ids, users = items["item"].to_numpy(), np.unique(events["user"])
    rows = pd.DataFrame({
        "user_id": np.searchsorted(users, events["user"]),
        "item_id": np.searchsorted(ids, events["item"]),
        "timestamp": events["timestamp"],
    })  # fmt: skip
    split = splits.leave_last(rows, N_LAST, validation=N_LAST, on_tie="random", seed=0)
    vectors = _stored_embeddings(folder, ids) if name == "ml-100k" else _tfidf_embeddings(items)
    return Dataset(name, len(users), ids, items, split.train, split.validation, split.test, vectors)


def _stored_embeddings(folder: Path, ids: np.ndarray) -> np.ndarray:
    """Text embeddings stored with the data; three items have none, their rows are zeros."""
    with np.load(folder / "item_text_embeddings.npz") as file:
        return file["embedding"][np.searchsorted(file["item"], ids)]


def _tfidf_embeddings(items: pd.DataFrame) -> np.ndarray:
    """TF-IDF of genres and title words, reduced by a truncated SVD; tags would leak the ratings."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = (
        items["title"].str.replace(r"\(\d{4}\)", "", regex=True)
        + " "
        + 3 * (items["genres"].str.replace("|", " ").str.replace("-", "") + " ")
    )
    tfidf = TfidfVectorizer(stop_words="english", min_df=2).fit_transform(texts)
    return TruncatedSVD(64, random_state=0).fit_transform(tfidf).astype(np.float32)


def write_json(path: Path, results: dict[str, Any]) -> None:
    """Write results as JSON; NaN becomes null."""
    valid = json.loads(json.dumps(results, default=float), parse_constant=lambda _: None)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(valid, indent=2) + "\n", encoding="utf-8")


def tune(data: Dataset, kind: str) -> tuple[dict[str, Any], float]:
    """The settings with the best recall@10 on the validation set, trained on the training set alone."""
    import recsys

    seen, truth = data.train[["user_id", "item_id"]], data.validation[["user_id", "item_id"]]
    seen, truth = recsys.read_interactions(seen), recsys.read_interactions(truth)
    recalls = []
    for settings in GRID[kind]:
        model = FIT_FUNCTIONS[kind](data.pairs(data.train), seed=0, **settings)
        source = recsys.Factors(model.user_factors, model.item_factors)
        recalls.append(recsys.evaluate(source, truth, ["recall@10"], seen=seen)["recall@10"])
    best = int(np.argmax(recalls))
    return GRID[kind][best], recalls[best]


def fit_model(data: Dataset, kind: str, settings: dict[str, Any], frame: pd.DataFrame) -> Any:
    """Train a model with these settings on `frame`."""
    return FIT_FUNCTIONS[kind](data.pairs(frame), seed=0, **settings)
