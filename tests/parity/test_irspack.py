"""irspack: means over users with complete rankings, to 1e-12 (it returns no more)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import recsys
from worlds.parity import SEEDS, make_world, matrices, peer

irspack = peer("irspack")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("capped", [False, True])
def test_a_few_hundred_users(seed, k, capped):
    world = make_world(seed, length=(30, 30))
    _, _, scores, grades = matrices(world)
    judge = irspack.Evaluator(
        sparse.csr_matrix((grades > 0).astype(np.float64)), cutoff=k, n_threads=1, recall_with_cutoff=capped
    )
    theirs = judge.get_score_from_score_matrix(scores)
    recall = f"recall(over=min)@{k}" if capped else f"recall@{k}"
    asked = {
        "hit": f"hit@{k}",
        "recall": recall,
        "ndcg": f"ndcg@{k}",
        "map": f"map@{k}",
        "precision": f"precision@{k}",
    }
    result = recsys.evaluate(world.lists, world.truth, list(asked.values()), conventions="irspack")
    for measure, request in asked.items():
        assert result[request] == pytest.approx(theirs[measure], rel=0, abs=1e-12), request
