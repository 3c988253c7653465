"""Metrics of the items shown: popularity in events, similarity within a list, the least item promoted."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import recsys
from worlds.parity import SEEDS, peer

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def events_and_lists(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Events in which users come back to items, and lists of five, some of items that nobody had."""
    rng = np.random.default_rng(seed)
    events = pd.DataFrame(
        {"user_id": rng.integers(0, 30, 400), "item_id": rng.integers(0, 20, 400) ** 2 // 20}
    )
    lists = [
        (user, item, place) for user in range(30) for place, item in enumerate(rng.permutation(24)[:5], 1)
    ]
    return events, pd.DataFrame(lists, columns=["user_id", "item_id", "rank"])


def by_user(lists: pd.DataFrame, request: str, **context: object) -> dict[int, float]:
    truth = {user: [0] for user in range(30)}
    result = recsys.evaluate(lists, truth, [request], **context)
    return dict(zip(result.per_case.ids.tolist(), result.values_of(request).tolist(), strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_popularity_of_rectools_counts_events(seed):
    theirs = peer("rectools.metrics")
    events, lists = events_and_lists(seed)
    expected = theirs.AvgRecPopularity(k=3).calc_per_user(lists, events)
    assert by_user(lists, "average_popularity(over=events)@3", train=events) == pytest.approx(dict(expected))


@pytest.mark.parametrize("seed", SEEDS)
def test_popularity_of_recbole_counts_events(seed, monkeypatch):
    for name, kind in (("float", np.float64), ("int", np.int64), ("bool", np.bool_), ("float_", np.float64)):
        monkeypatch.setattr(np, name, kind, raising=False)
    theirs = peer("recbole.evaluator.metrics")
    events, lists = events_and_lists(seed)
    metric = theirs.AveragePopularity({"topk": [3], "metric_decimal_place": 12})
    shown = lists.sort_values(["user_id", "rank"])["item_id"].to_numpy().reshape(30, 5)
    counts = metric.get_pop(shown, events["item_id"].value_counts().to_dict())
    expected = dict(enumerate(metric.metric_info(counts)[:, 2].tolist()))
    assert by_user(lists, "average_popularity(over=events)@3", train=events) == pytest.approx(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_similarity_within_a_list_of_recommenders(seed):
    theirs = peer("recommenders.evaluation.python_evaluation")
    _, lists = events_and_lists(seed)
    vectors = dict(enumerate(np.random.default_rng(seed).normal(size=(24, 4))))
    found = theirs.user_diversity(
        train_df=pd.DataFrame(
            {"user_id": [99], "item_id": [0]}
        ),  # not read, and may hold nothing of the lists
        reco_df=lists[["user_id", "item_id"]],
        item_feature_df=pd.DataFrame({"item_id": list(vectors), "features": list(vectors.values())}),
        item_sim_measure="item_feature_vector",
        col_item_features="features",
        col_user="user_id",
        col_item="item_id",
    )
    expected = {user: 1 - value for user, value in found.set_index("user_id")["user_diversity"].items()}
    assert by_user(lists, "ils", embeddings=vectors) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_least_item_promoted_of_lenskit(seed, monkeypatch):
    """A metric of the package in examples/plugin."""
    theirs, data = peer("lenskit.metrics.reranking"), peer("lenskit.data")
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[2] / "examples" / "plugin"), *sys.path])
    __import__("recsys_more_metrics")
    rng = np.random.default_rng(seed)
    before = {user: rng.permutation(40)[:12].tolist() for user in range(30)}
    after = {user: rng.permutation(items)[:6].tolist() for user, items in before.items()}
    as_list = partial(data.ItemList, ordered=True)
    expected = {
        user: float(
            theirs.least_item_promoted(as_list(item_ids=before[user]), as_list(item_ids=after[user]), n=3)
        )
        for user in before
    }
    assert by_user(after, "lip@3", reference=before) == pytest.approx(expected)
