"""recometrics: every user, scores from factors, to 1e-12."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import recsys
from worlds.parity import SEEDS, agree, make_world, matrices, peer

recometrics = peer("recometrics")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 5, 12])
def test_a_few_hundred_users(seed, k):
    world = make_world(seed, length=(30, 30))
    users, _, scores, grades = matrices(world)
    table = recometrics.calc_reco_metrics(
        None, sparse.csr_matrix(grades), scores, np.eye(world.n_items), k=k, all_metrics=True, nthreads=1
    )
    asked = {
        f"P@{k}": f"precision@{k}",
        f"TP@{k}": f"precision(over=min)@{k}",
        f"R@{k}": f"recall@{k}",
        f"AP@{k}": f"map@{k}",
        f"TAP@{k}": f"map(over=min)@{k}",
        f"NDCG@{k}": f"ndcg@{k}",
        f"Hit@{k}": f"hit@{k}",
        f"RR@{k}": f"mrr@{k}",
        "ROC_AUC": "auc",
    }
    result = recsys.evaluate(
        world.lists, world.truth, list(asked.values()), conventions="recometrics", full_ranking=True
    )
    for column, request in asked.items():
        agree(result, request, dict(zip(users, table[column], strict=True)))
