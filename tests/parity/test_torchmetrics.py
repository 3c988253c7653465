"""torchmetrics: every user, to the precision of the float32 it computes in."""

from __future__ import annotations

import pytest

import recsys
from worlds.parity import FLOAT32, SEEDS, World, agree, make_world, matrices, peer

torch = peer("torch")
retrieval = peer("torchmetrics.functional.retrieval")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def ways(k: int) -> dict[str, object]:
    return {
        f"precision@{k}": lambda s, g: retrieval.retrieval_precision(s, g > 0, top_k=k),
        f"precision(over=list)@{k}": lambda s, g: retrieval.retrieval_precision(
            s, g > 0, top_k=k, adaptive_k=True
        ),
        f"recall@{k}": lambda s, g: retrieval.retrieval_recall(s, g > 0, top_k=k),
        f"hit@{k}": lambda s, g: retrieval.retrieval_hit_rate(s, g > 0, top_k=k),
        f"mrr@{k}": lambda s, g: retrieval.retrieval_reciprocal_rank(s, g > 0, top_k=k),
        f"map@{k}": lambda s, g: retrieval.retrieval_average_precision(s, g > 0, top_k=k),
        f"ndcg@{k}": lambda s, g: retrieval.retrieval_normalized_dcg(s, g, top_k=k),
        f"ndcg(gain=binary)@{k}": lambda s, g: retrieval.retrieval_normalized_dcg(s, g > 0, top_k=k),
    }


def compare(world: World, asked: dict[str, object], **options: bool) -> None:
    """Every item is a row, so the lists are complete and nothing is retrieved that was not listed."""
    users, _, scores, grades = matrices(world)
    s, g = torch.tensor(scores, dtype=torch.float32), torch.tensor(grades, dtype=torch.int64)
    result = recsys.evaluate(world.lists, world.truth, list(asked), conventions="torchmetrics", **options)
    for request, way in asked.items():
        agree(result, request, {u: float(way(s[n], g[n])) for n, u in enumerate(users)}, FLOAT32)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_few_hundred_users(seed):
    world = make_world(seed, n_users=200, length=(30, 30))
    compare(world, {**ways(1), **ways(3), **ways(10), **ways(30)})
    compare(world, {"r_precision": lambda s, g: retrieval.retrieval_r_precision(s, g > 0)})
    compare(world, {"auc": lambda s, g: retrieval.retrieval_auroc(s, g > 0)}, full_ranking=True)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("levels", [1, 3])
def test_ndcg_is_the_expectation_over_ties(seed, levels):
    world = make_world(seed, n_users=200, length=(30, 30), levels=levels)
    compare(world, {request: way for request, way in ways(5).items() if request.startswith("ndcg")})
    compare(world, {"auc": lambda s, g: retrieval.retrieval_auroc(s, g > 0)}, full_ranking=True)
