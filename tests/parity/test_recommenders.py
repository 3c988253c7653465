"""Microsoft recommenders: means over users, to 1e-12 (it returns no more)."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings

import recsys
from worlds.parity import SEEDS, World, make_world, peer, worlds

evaluation = peer("recommenders.evaluation.python_evaluation")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def compare(world: World, k: int) -> None:
    lists = pd.DataFrame(
        [(user, *row) for user, rows in world.lists.items() for row in rows],
        columns=["user", "item", "score"],
    )
    truth = pd.DataFrame(
        [(user, item, grade) for user, wanted in world.truth.items() for item, grade in wanted.items()],
        columns=["user", "item", "rating"],
    )
    if lists.merge(truth, on=["user", "item"]).empty:
        return  # without a single hit it returns 0 before it looks at anything
    options = {
        "col_user": "user",
        "col_item": "item",
        "col_rating": "rating",
        "col_prediction": "score",
        "relevancy_method": "top_k",
        "k": k,
    }
    asked = {
        f"precision@{k}": evaluation.precision_at_k(truth, lists, **options),
        f"recall@{k}": evaluation.recall_at_k(truth, lists, **options),
        f"map@{k}": evaluation.map_at_k(truth, lists, **options),
        f"map(over=relevant)@{k}": evaluation.map(truth, lists, **options),
        f"ndcg@{k}": evaluation.ndcg_at_k(truth, lists, **options),
        f"ndcg(gain=grade)@{k}": evaluation.ndcg_at_k(truth, lists, score_type="raw", **options),
        f"ndcg(gain=exp2)@{k}": evaluation.ndcg_at_k(truth, lists, score_type="exp", **options),
    }
    result = recsys.evaluate(world.lists, world.truth, list(asked), conventions="microsoft")
    for request, theirs in asked.items():
        assert result[request] == pytest.approx(theirs, rel=0, abs=1e-12), request


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 5, 12])
def test_a_few_hundred_users(seed, k):
    compare(make_world(seed, without_list=0.1), k)


@settings(max_examples=100, deadline=None)
@given(worlds())
def test_small_worlds(world):
    compare(world, 3)
