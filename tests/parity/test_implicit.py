"""implicit: pooled precision, MAP, NDCG and the AUC of a top k, as means to 1e-12 (it returns no more)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

import recsys
from worlds.parity import SEEDS, THOROUGH, World, make_world, matrices, peer, worlds

evaluation = peer("implicit.evaluation")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


class Ranked:
    """A model that has already ranked everything; implicit asks it for the first n."""

    def __init__(self, order: np.ndarray) -> None:
        self.order = order

    def recommend(self, users, _user_items, N, **_options):  # noqa: N803 - implicit's name
        items = self.order[users, :N].astype(np.int32)
        return items, np.ones(items.shape, dtype=np.float32)


def compare(world: World, k: int) -> None:
    users, items, scores, grades = matrices(world)
    order = np.argsort(-scores, axis=1, kind="stable")
    test = sparse.csr_matrix(grades.astype(np.float32))
    nothing = sparse.csr_matrix(test.shape, dtype=np.float32)
    theirs = evaluation.ranking_metrics_at_k(Ranked(order), nothing, test, K=k, show_progress=False)
    lists = {u: [items[i] for i in order[n]] for n, u in enumerate(users)}
    asked = {"precision": f"precision@{k}", "map": f"map@{k}", "ndcg": f"ndcg@{k}"}
    result = recsys.evaluate(lists, world.truth, list(asked.values()), conventions="implicit")
    for measure, request in asked.items():
        assert result[request] == pytest.approx(theirs[measure], rel=0, abs=1e-12), request
    below = {
        u: [(item, float(max(k - place, 0))) for place, item in enumerate(rows)] for u, rows in lists.items()
    }
    rules = recsys.Conventions.named("implicit").but(ties="expected")
    auc = recsys.evaluate(below, world.truth, ["auc"], conventions=rules, full_ranking=True)["auc"]
    assert auc == pytest.approx(theirs["auc"], rel=0, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 5, 12])
def test_a_few_hundred_users(seed, k):
    compare(make_world(seed, length=(30, 30)), k)


@THOROUGH
@given(worlds(full=True))
def test_small_worlds(world):
    compare(world, 2)
