"""The best attainable value and the floor of chance: against every ranking there is, and against drawing."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

import recsys
from recsys.errors import RecsysError
from recsys.metrics.registry import METRICS

RANKING = ["precision@2", "recall@2", "ndcg@2", "map@2", "mrr@2", "hit@2", "f1@2", "rbp@2", "dcg@2", "err@2"]
WHOLE = ["auc", "average_rank", "mrr", "ndcg", "map", "percentile_rank"]
TRUTH = {1: {"a": 2, "c": 1}, 2: {"b": 1}, 3: {"a": 1, "b": 3, "d": 1}}
RULES = {"max_grade": 3}


@pytest.mark.parametrize("complete", [True, False])
def test_no_ranking_beats_the_best_and_chance_is_the_mean_of_all(complete):
    asked = RANKING + (WHOLE if complete else [])
    options = {"catalogue": [*"abcd"], "complete": complete, "conventions": RULES}
    length = 4 if complete else 2
    orders = [list(order[:length]) for order in permutations("abcd")]
    runs = [recsys.evaluate(dict.fromkeys(TRUTH, order), TRUTH, asked, **options) for order in orders]
    columns = {m: np.array([run.values_of(m) for run in runs]) for m in asked}
    bounds = runs[0].bounds()
    for metric in asked:
        best = columns[metric].max(axis=0) if better(metric) == "higher" else columns[metric].min(axis=0)
        assert bounds[metric].best == pytest.approx(best.mean(), rel=1e-12), metric
        assert bounds[metric].floor == pytest.approx(columns[metric].mean(), rel=1e-12), metric
        assert bounds[metric].value == runs[0][metric]


def better(metric: str) -> str:
    name = metric.split("@", maxsplit=1)[0]
    return METRICS["f" if name == "f1" else name].better


def test_what_cannot_be_shown_cannot_be_reached():
    lists = {1: ["a", "b"], 2: ["b", "c"]}
    truth = {1: {"a", "z"}, 2: {"b", "c"}}
    plain = recsys.evaluate(lists, truth, "recall@2", catalogue=[*"abcd"]).bounds()["recall@2"]
    assert plain.best == pytest.approx((0.5 + 1.0) / 2)  # z is not in the catalogue
    seen = recsys.evaluate(lists, truth, "recall@2", catalogue=[*"abcd"], seen={2: ["c"]}).bounds()[
        "recall@2"
    ]
    assert seen.best == pytest.approx((0.5 + 0.5) / 2)
    assert seen.floor == pytest.approx((0.5 * 2 / 4 + 0.5 * 2 / 3) / 2)


def test_factors_and_their_lists_have_the_same_limits():
    rng = np.random.default_rng(0)
    model = recsys.Factors(rng.normal(size=(30, 4)), rng.normal(size=(20, 4)))
    truth = {u: rng.choice(20, 3, replace=False).tolist() for u in range(30)}
    seen = {u: rng.choice(20, 4, replace=False).tolist() for u in range(30)}
    asked = ["recall@5", "ndcg@5", "map@5", "mrr@5", "coverage@1", "novelty@5", "tail_share@5"]
    one = recsys.evaluate(model, truth, asked, seen=seen, train=seen).bounds()
    lists = recsys.recommend(model, 5, seen=seen)
    two = recsys.evaluate(lists, truth, asked, seen=seen, train=seen, catalogue=range(20)).bounds()
    for metric in asked:
        assert one[metric] == pytest.approx(two[metric], rel=1e-12), metric


def test_chance_is_what_drawing_gives():
    rng = np.random.default_rng(1)
    truth = {u: rng.choice(25, rng.integers(1, 6), replace=False).tolist() for u in range(40)}
    seen = {u: rng.choice(25, 4, replace=False).tolist() for u in range(40)}
    asked = ["recall@5", "ndcg@5", "map@5", "mrr", "coverage@1", "novelty@5"]
    runs = [
        recsys.evaluate(recsys.Scores(rng.random((40, 25))), truth, asked, seen=seen, train=seen)
        for _ in range(200)
    ]
    bounds = runs[0].bounds()
    for metric in asked:
        drawn = np.array([run[metric] for run in runs])
        off = abs(drawn.mean() - bounds[metric].floor)
        if (
            metric == "novelty@5"
        ):  # a user's own items are no candidates, so the catalogue's mean is near only
            assert off < 0.05
        else:
            assert off < 4 * drawn.std() / math.sqrt(len(drawn)), metric


def test_limits_of_the_items_shown():
    result = recsys.evaluate(
        {1: ["a"], 2: ["a"]}, {1: {"a"}}, ["coverage@1", "novelty@1", "gini@1", "bpref"],
        catalogue=[*"abcd"], train={1: ["a"], 2: ["a"], 3: ["b"], 4: ["a"]},
    )  # fmt: skip
    bounds = result.bounds()
    assert bounds["coverage@1"].best == 0.5
    assert bounds["coverage@1"].floor == pytest.approx(1 - (3 / 4) ** 2)
    assert bounds["novelty@1"].best == 2.0
    assert bounds["novelty@1"].floor == pytest.approx((math.log2(4 / 3) + 2 + 2 + 2) / 4)
    assert math.isnan(bounds["gini@1"].best)
    assert math.isnan(bounds["bpref"].floor)
    assert "floor" in repr(bounds)
    assert bounds.to_frame().columns.tolist() == ["metric", "value", "floor", "best", "reached"]


def test_a_result_without_its_lists_has_no_limits(tmp_path):
    result = recsys.evaluate({1: ["a"]}, {1: {"a"}}, "recall@1")
    result.save(tmp_path / "r.json")
    with pytest.raises(RecsysError, match="lists behind it are gone"):
        recsys.load(tmp_path / "r.json").bounds()
