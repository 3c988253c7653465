"""scikit-learn: NDCG and DCG with ties as expectations, and its metrics of complete rankings, to 1e-12."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import recsys
from worlds.parity import SEEDS, THOROUGH, World, agree, make_world, matrices, peer, worlds

metrics = peer("sklearn.metrics")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def graded(world: World) -> None:
    users, _, scores, grades = matrices(world)
    asked = {"ndcg@1": 1, "ndcg@5": 5, "ndcg": None}
    result = recsys.evaluate(world.lists, world.truth, list(asked), conventions={"ties": "expected"})
    for request, k in asked.items():
        rows = zip(users, grades, scores, strict=True)
        agree(result, request, {u: metrics.ndcg_score([g], [s], k=k) for u, g, s in rows})
    result = recsys.evaluate(world.lists, world.truth, ["dcg@5", "dcg"], conventions={"ties": "expected"})
    for request, k in {"dcg@5": 5, "dcg": None}.items():
        rows = zip(users, grades, scores, strict=True)
        agree(result, request, {u: metrics.dcg_score([g], [s], k=k) for u, g, s in rows})


def binary(world: World) -> None:
    """Pairs in the right order: AUC counts a tie half, the ranking loss counts it as wrong."""
    users, _, scores, grades = matrices(world)
    relevant = grades > 0
    result = recsys.evaluate(
        world.lists, world.truth, ["auc", "gauc"], conventions={"ties": "expected"}, full_ranking=True
    )
    rows = list(zip(users, relevant, scores, strict=True))
    aucs = {u: metrics.roc_auc_score(g, s) for u, g, s in rows}
    agree(result, "auc", aucs)
    assert result["gauc"] == pytest.approx(np.mean(list(aucs.values())), rel=0, abs=1e-12)
    worst = recsys.evaluate(
        world.lists, world.truth, ["auc"], conventions={"ties": "worst"}, full_ranking=True
    )
    agree(worst, "auc", {u: 1 - metrics.label_ranking_loss([g], [s]) for u, g, s in rows})


def without_ties(world: World) -> None:
    users, _, scores, grades = matrices(world)
    rows = list(zip(users, grades > 0, scores, strict=True))
    result = recsys.evaluate(world.lists, world.truth, ["map", "average_rank"], full_ranking=True)
    agree(result, "map", {u: metrics.average_precision_score(g, s) for u, g, s in rows})
    agree(result, "map", {u: metrics.label_ranking_average_precision_score([g], [s]) for u, g, s in rows})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("levels", [None, 4])
def test_a_few_hundred_users(seed, levels):
    world = make_world(seed, levels=levels, length=(30, 30))
    graded(world)
    binary(world)


@pytest.mark.parametrize("seed", SEEDS)
def test_average_precision_of_a_few_hundred_users(seed):
    without_ties(make_world(seed, length=(30, 30)))


@THOROUGH
@given(worlds(ties=True, full=True))
def test_small_worlds_with_ties(world):
    graded(world)
    binary(world)


@THOROUGH
@given(worlds(full=True))
def test_small_worlds_without_ties(world):
    without_ties(world)
