"""RePlay: every user in the truth, to 1e-12; ties by descending id, as its frames have them."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings

import recsys
from worlds.parity import SEEDS, World, agree, make_world, peer, worlds

metrics = peer("replay.metrics")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

NAMES = {
    "precision": "Precision",
    "recall": "Recall",
    "hit": "HitRate",
    "mrr": "MRR",
    "map": "MAP",
    "ndcg": "NDCG",
}
COLUMNS = {"query_column": "user", "item_column": "item", "rating_column": "score"}


def compare(world: World, *cuts: int) -> None:
    lists = pd.DataFrame(
        [(user, *row) for user, rows in world.lists.items() for row in rows],
        columns=["user", "item", "score"],
    )
    truth = pd.DataFrame(
        [(user, item) for user, wanted in world.truth.items() for item in wanted], columns=["user", "item"]
    )
    requests = [f"{name}@{k}" for name in NAMES for k in cuts]
    result = recsys.evaluate(world.lists, world.truth, requests, conventions="replay")
    for name, theirs in NAMES.items():
        metric = getattr(metrics, theirs)(list(cuts), mode=metrics.PerUser(), **COLUMNS)
        values = metric(lists, truth)
        for k in cuts:
            agree(result, f"{name}@{k}", values[f"{theirs}-PerUser@{k}"])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("levels", [None, 4])
def test_a_few_hundred_users(seed, levels):
    compare(make_world(seed, levels=levels, without_list=0.1), 1, 5, 12)


@settings(max_examples=100, deadline=None)
@given(worlds(ties=True))
def test_small_worlds(world):
    compare(world, 3)
