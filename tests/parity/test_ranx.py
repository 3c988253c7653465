"""ranx: every user in the truth, to 1e-12. Its first call compiles for half a minute."""

from __future__ import annotations

import pytest

import recsys
from worlds.parity import SEEDS, World, agree, make_world, peer

ranx = peer("ranx")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

OF = {
    "precision@3": "precision@3",
    "precision@10": "precision@10",
    "recall@3": "recall@3",
    "recall@10": "recall@10",
    "f1@3": "f1@3",
    "f1@10": "f1@10",
    "hit_rate@3": "hit@3",
    "hits@10": "hits@10",
    "mrr@3": "mrr@3",
    "mrr": "mrr",
    "map@3": "map@3",
    "map@10": "map@10",
    "map": "map",
    "ndcg@3": "ndcg@3",
    "ndcg@10": "ndcg@10",
    "ndcg": "ndcg",
    "ndcg_burges@3": "ndcg(gain=exp2)@3",
    "dcg@3": "dcg@3",
    "dcg_burges@10": "dcg(gain=exp2)@10",
    "r-precision": "r_precision",
}


def compare(world: World, measures: dict[str, str]) -> None:
    run = ranx.Run({user: dict(rows) for user, rows in world.lists.items()})
    ranx.evaluate(ranx.Qrels(world.truth), run, list(measures), return_mean=False, make_comparable=True)
    result = recsys.evaluate(world.lists, world.truth, list(measures.values()), conventions="ranx")
    for measure, request in measures.items():
        agree(result, request, {user: float(value) for user, value in run.scores[measure].items()})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("levels", [None, 4])
def test_a_few_hundred_users(seed, levels):
    compare(make_world(seed, levels=levels, without_list=0.1), OF)


@pytest.mark.parametrize("seed", SEEDS)
def test_rbp(seed):
    compare(make_world(seed, grades=1, without_list=0.1), {"rbp.80": "rbp", "rbp.50": "rbp(p=0.5)"})
    graded = {"rbp.80": "graded_rbp", "rbp.50": "graded_rbp(p=0.5)"}
    compare(make_world(seed, grades=3, without_list=0.1), graded)


def test_its_rbp_of_graded_truth_passes_one_and_ours_does_not():
    items = [f"i{n:02}" for n in range(20)]
    truth = {"u": dict.fromkeys(items, 3)}
    run = {item: 1.0 - n / 100 for n, item in enumerate(items)}
    assert ranx.evaluate(ranx.Qrels(truth), ranx.Run({"u": run}), "rbp.80") > 1
    assert recsys.evaluate({"u": items}, truth, ["rbp"], conventions="ranx")["rbp"] < 1
