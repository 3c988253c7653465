"""One ranking of a model serves its metrics and its lists."""

from __future__ import annotations

import numpy as np
import pytest

import recsys
from recsys.conventions.decisions import Conventions
from recsys.evaluation.options import EvaluationOptions
from recsys.evaluation.reading import CommonInputs

USERS, ITEMS = [30, 10, 20, 50], ["d", "a", "c", "b", "f", "e"]
TRUTH = {
    10: {"a": 1, "zz": 1},
    20: {"b": 2},
    40: {"c": 1},
    50: {"e": 1},
}  # 40 and zz are unknown to the models
SEEN = {10: ["d"], 50: ITEMS}


def factors():
    rng = np.random.default_rng(3)
    return recsys.Factors(rng.normal(size=(4, 2)), rng.normal(size=(6, 2)), user_ids=USERS, item_ids=ITEMS)


def scores():
    rng = np.random.default_rng(4)
    matrix = rng.integers(0, 3, size=(4, 6)).astype(np.float32)
    return recsys.Scores(matrix, user_ids=USERS, item_ids=ITEMS)


@pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
@pytest.mark.parametrize("make", [factors, scores])
@pytest.mark.parametrize("metrics", [["ndcg@2", "mrr"], ["ndcg@3", "coverage@3"]], ids=["places", "lists"])
@pytest.mark.parametrize("length", [2, 4, 9])
def test_the_lists_of_an_evaluation_are_those_of_recommend(make, metrics, length):
    model = make()
    run = CommonInputs(metrics, EvaluationOptions(seen=SEEN)).run_of(model, TRUTH)
    found = run.evaluate_with_lists(Conventions(), length)
    expected = recsys.evaluate(model, TRUTH, metrics, seen=SEEN)
    assert dict(found.evaluation) == dict(expected)
    assert found.evaluation.counts == expected.counts
    assert found.evaluation.under("trec_eval").overall == expected.under("trec_eval").overall
    lists = recsys.recommend(
        model, max(length, 3 if "coverage@3" in metrics else 0), users=[10, 20, 50], seen=SEEN
    )
    assert found.lists.cases.values.tolist() == [10, 20, 50]
    for part in ("indptr", "codes", "scores"):
        assert getattr(found.lists, part).tobytes() == getattr(lists, part).tobytes()
    assert found.lists.items.values.tolist() == lists.items.values.tolist()
    assert found.seconds > 0
