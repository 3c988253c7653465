"""RecPack: every user in the truth, to 1e-12, where no scores are tied."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

import recsys
from worlds.parity import SEEDS, World, agree, make_world, matrices, peer, worlds

metrics = peer("recpack.metrics")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def compare(world: World, k: int) -> None:
    users, _, scores, grades = matrices(world)
    predicted = sparse.csr_matrix(np.where(np.isfinite(scores), scores, 0.0))
    truth = sparse.csr_matrix((grades > 0).astype(np.float64))
    asked = {
        f"precision@{k}": metrics.PrecisionK(k),
        f"recall@{k}": metrics.RecallK(k),
        f"hits@{k}": metrics.HitK(k),
        f"capped_recall@{k}": metrics.CalibratedRecallK(k),
        f"mrr@{k}": metrics.ReciprocalRankK(k),
        f"ndcg@{k}": metrics.NDCGK(k),
    }
    result = recsys.evaluate(world.lists, world.truth, list(asked), conventions="recpack")
    for request, metric in asked.items():
        metric.calculate(truth, predicted)
        table = metric.results.groupby("user_id")["score"].sum()
        agree(result, request, {users[row]: float(value) for row, value in table.items()})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 5, 12])
def test_a_few_hundred_users(seed, k):
    compare(make_world(seed, without_list=0.1), k)


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_small_worlds(world):
    compare(world, 3)
