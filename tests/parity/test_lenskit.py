"""LensKit: every user with a list, to 1e-12."""

from __future__ import annotations

import pytest
from hypothesis import given

import recsys
from worlds.parity import SEEDS, THOROUGH, World, agree, make_world, peer, worlds

metrics = peer("lenskit.metrics")
data = peer("lenskit.data")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def compare(world: World, k: int) -> None:
    asked = {
        f"precision@{k}": metrics.Precision(n=k),
        f"recall@{k}": metrics.Recall(n=k),
        f"hit@{k}": metrics.Hit(n=k),
        f"mrr@{k}": metrics.RecipRank(n=k),
        f"ndcg@{k}": metrics.NDCG(n=k),
        f"ndcg(gain=grade)@{k}": metrics.NDCG(n=k, gain="rating"),
        f"rbp(p=0.7)@{k}": metrics.RBP(n=k, patience=0.7),
    }
    pairs = {
        user: (
            data.ItemList(item_ids=[item for item, _ in rows], ordered=True),
            data.ItemList(
                item_ids=list(world.truth[user]),
                rating=[float(grade) for grade in world.truth[user].values()],
            ),
        )
        for user, rows in world.lists.items()
    }
    result = recsys.evaluate(world.lists, world.truth, list(asked), conventions="lenskit")
    for request, metric in asked.items():
        agree(result, request, {user: float(metric.measure_list(*pair)) for user, pair in pairs.items()})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 5, 12])
def test_a_few_hundred_users(seed, k):
    compare(make_world(seed, levels=6, without_list=0.1), k)


@THOROUGH
@given(worlds(ties=True))
def test_small_worlds(world):
    compare(world, 3)
