"""Cornac: every user with a hit in the list, to 1e-12; F1, whose divisor holds a constant, to 1e-6."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import recsys
from worlds.parity import SEEDS, THOROUGH, World, agree, make_world, matrices, peer, worlds

metrics = peer("cornac.metrics")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def compare(world: World, k: int) -> None:
    users, _, scores, grades = matrices(world)
    order = np.argsort(-scores, axis=1, kind="stable")
    wanted = [np.flatnonzero(row) for row in grades]
    asked = {
        f"precision@{k}": metrics.Precision(k),
        f"recall@{k}": metrics.Recall(k),
        f"f1@{k}": metrics.FMeasure(k),
        f"hit@{k}": metrics.HitRatio(k),
        f"ndcg@{k}": metrics.NDCG(k),
        "mrr": metrics.MRR(),
    }
    result = recsys.evaluate(world.lists, world.truth, list(asked), conventions="cornac")
    for request, metric in asked.items():
        theirs = {u: metric.compute(gt_pos=wanted[n], pd_rank=order[n]) for n, u in enumerate(users)}
        agree(result, request, theirs, 1e-6 if request.startswith("f1") else 1e-12)
    result = recsys.evaluate(
        world.lists, world.truth, ["map", "auc"], conventions="cornac", full_ranking=True
    )
    for request, metric in {"map": metrics.MAP(), "auc": metrics.AUC()}.items():
        theirs = {
            u: metric.compute(item_indices=np.arange(world.n_items), pd_scores=scores[n], gt_pos=wanted[n])
            for n, u in enumerate(users)
        }
        agree(result, request, theirs)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 5, 12])
def test_a_few_hundred_users(seed, k):
    compare(make_world(seed, length=(30, 30)), k)


@THOROUGH
@given(worlds(full=True))
def test_small_worlds(world):
    compare(world, 3)
