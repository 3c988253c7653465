"""RecBole: every user and every place at once from its matrix of hits, to 1e-12."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import recsys
from worlds.parity import SEEDS, THOROUGH, World, agree, make_world, matrices, peer, worlds

metrics = peer("recbole.evaluator.metrics")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

NAMES = {
    "recall": "Recall",
    "hit": "Hit",
    "mrr": "MRR",
    "map": "MAP",
    "ndcg": "NDCG",
    "precision": "Precision",
}


@pytest.fixture(autouse=True, scope="module")
def _numpy_as_recbole_knew_it():
    """RecBole uses np.float, which NumPy removed in 1.24."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "float", float, raising=False)
        yield


def compare(world: World) -> None:
    users, _, scores, grades = matrices(world)
    order = np.argsort(-scores, axis=1, kind="stable")
    found = np.take_along_axis(grades > 0, order, axis=1)
    wanted = (grades > 0).sum(axis=1)
    for name, theirs in NAMES.items():
        metric = getattr(metrics, theirs)({"metric_decimal_place": 12, "topk": [world.n_items]})
        inputs = (found,) if theirs in ("Hit", "MRR", "Precision") else (found, wanted)
        table = metric.metric_info(*inputs)
        requests = [f"{name}@{k}" for k in range(1, world.n_items + 1)]
        result = recsys.evaluate(world.lists, world.truth, requests, conventions="recbole")
        for k, request in enumerate(requests, start=1):
            agree(result, request, {user: float(table[row, k - 1]) for row, user in enumerate(users)})


@pytest.mark.parametrize("seed", SEEDS)
def test_a_few_hundred_users(seed):
    compare(make_world(seed, length=(30, 30)))


@THOROUGH
@given(worlds(full=True))
def test_small_worlds(world):
    compare(world)
