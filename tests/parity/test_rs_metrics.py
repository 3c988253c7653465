"""rs_metrics: every user, to 1e-12."""

from __future__ import annotations

import pytest
from hypothesis import given

import recsys
from worlds.parity import SEEDS, THOROUGH, World, agree, make_world, peer, worlds

rs_metrics = peer("rs_metrics")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def compare(world: World, k: int) -> None:
    users = sorted(world.lists)
    truth = {user: world.truth[user] for user in users}
    wanted = {user: list(truth[user]) for user in users}
    listed = {user: [item for item, _ in world.lists[user]] for user in users}
    asked = {
        f"precision@{k}": rs_metrics.precision,
        f"recall@{k}": rs_metrics.recall,
        f"hit@{k}": rs_metrics.hitrate,
        f"mrr@{k}": rs_metrics.mrr,
        f"map@{k}": rs_metrics.mapr,
        f"ndcg@{k}": rs_metrics.ndcg,
    }
    result = recsys.evaluate(world.lists, truth, list(asked), conventions="rs_metrics")
    for request, metric in asked.items():
        values = metric(wanted, listed, k=k, apply_mean=False)
        agree(result, request, {user: float(v) for user, v in zip(users, values, strict=True)})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 5, 12])
def test_a_few_hundred_users(seed, k):
    compare(make_world(seed, levels=6), k)


@THOROUGH
@given(worlds(ties=True))
def test_small_worlds(world):
    compare(world, 3)
