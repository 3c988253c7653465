"""RecTools: every user in the truth, to 1e-12, with each option it names."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings

import recsys
from worlds.parity import SEEDS, World, agree, make_world, peer, worlds

metrics = peer("rectools.metrics")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def ways(k: int) -> dict[str, object]:
    return {
        f"precision@{k}": metrics.Precision(k),
        f"precision(over=min)@{k}": metrics.Precision(k, r_precision=True),
        f"recall@{k}": metrics.Recall(k),
        f"f1@{k}": metrics.F1Beta(k),
        f"f(beta=2)@{k}": metrics.F1Beta(k, beta=2.0),
        f"hit@{k}": metrics.HitRate(k),
        f"mrr@{k}": metrics.MRR(k),
        f"map@{k}": metrics.MAP(k),
        f"map(over=k)@{k}": metrics.MAP(k, divide_by_k=True),
        f"ndcg@{k}": metrics.NDCG(k),
        f"ndcg(ideal=reachable)@{k}": metrics.NDCG(k, divide_by_achievable=True),
    }


def frames(world: World) -> tuple[pd.DataFrame, pd.DataFrame]:
    lists = [
        (user, item, r) for user, rows in world.lists.items() for r, (item, _) in enumerate(rows, start=1)
    ]
    truth = [(user, item) for user, wanted in world.truth.items() for item in wanted]
    return (
        pd.DataFrame(lists, columns=["user_id", "item_id", "rank"]),
        pd.DataFrame(truth, columns=["user_id", "item_id"]),
    )


def compare(world: World, *cuts: int) -> None:
    lists, truth = frames(world)
    asked = {request: metric for k in cuts for request, metric in ways(k).items()}
    result = recsys.evaluate(world.lists, world.truth, list(asked), conventions="rectools")
    for request, metric in asked.items():
        agree(result, request, metric.calc_per_user(lists, truth).to_dict())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("levels", [None, 4])
def test_a_few_hundred_users(seed, levels):
    compare(make_world(seed, levels=levels, without_list=0.1), 1, 3, 10)


@settings(max_examples=150, deadline=None)
@given(worlds(ties=True))
def test_small_worlds(world):
    compare(world, 4)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shortest", [1, 10])
def test_accuracy_and_mcc(seed, shortest):
    """A shorter list than k is one of k places there, and so it is for a user without a list."""
    world = make_world(seed, length=(shortest, 15), without_list=0.1)
    lists, truth = frames(world)
    catalogue = [f"i{i:03}" for i in range(world.n_items)]
    asked = {
        "accuracy@3": metrics.Accuracy(3),
        "accuracy@10": metrics.Accuracy(10),
        "mcc@3": metrics.MCC(3),
        "mcc@10": metrics.MCC(10),
    }
    result = recsys.evaluate(
        world.lists, world.truth, list(asked), conventions="rectools", catalogue=catalogue
    )
    for request, metric in asked.items():
        agree(result, request, metric.calc_per_user(lists, truth, catalogue).to_dict())


@pytest.mark.parametrize("seed", SEEDS)
def test_gaps_in_the_rank_column_are_empty_places(seed):
    lists, truth = frames(make_world(seed, n_users=50))
    lists = lists[~lists["rank"].isin([1, 3]) | (lists["user_id"] < "u0025")]
    asked = {request: metric for k in (3, 10) for request, metric in ways(k).items()}
    result = recsys.evaluate(lists, truth, list(asked), conventions="rectools")
    for request, metric in asked.items():
        agree(result, request, metric.calc_per_user(lists, truth).to_dict())


@pytest.mark.parametrize("seed", SEEDS)
def test_partial_auc_of_complete_rankings(seed):
    world = make_world(seed, length=(30, 30), grades=1)
    lists, truth = frames(world)
    result = recsys.evaluate(
        world.lists, world.truth, ["pauc@3", "pauc@10"], conventions="rectools", full_ranking=True
    )
    for k in (3, 10):
        agree(result, f"pauc@{k}", metrics.PartialAUC(k).calc_per_user(lists, truth).to_dict())
