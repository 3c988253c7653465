"""What was handed over is guessed in one place, and everything becomes a Ranking."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys.errors import InputError
from recsys.ranks.open_ranking import open_ranking, ranking_kind, ranks_catalogue
from recsys.ranks.rankings import ListRanking

FACTORS = recsys.Factors([[1.0]], [[1.0], [2.0]])
LISTS = {1: ["a", "b"], 2: ["b"]}


def recommend(user, n):
    return ["a", "b"][:n]


HANDED_OVER = {
    "dict": (LISTS, "table"),
    "array": (np.array([[0, 1]]), "table"),
    "table with a column named predict": (pd.DataFrame({"user": [1], "item": [2], "predict": [3]}), "table"),
    "lists": (recsys.read_lists(LISTS), "table"),
    "something else": (object(), "table"),
    "file": ("lists.csv", "file"),
    "file of factors": ("model.npz", "model file"),
    "factors": (FACTORS, "ranking"),
    "opened before": (ListRanking(recsys.read_lists(LISTS)), "ranking"),
    "function": (recommend, "model"),
    "fitted factors": (SimpleNamespace(user_factors=[[1.0]], item_factors=[[1.0]]), "model"),
    "factors that recommend": (
        SimpleNamespace(user_factors=[[1.0]], item_factors=[[1.0]], recommend=recommend),
        "model",
    ),
    "only recommends": (SimpleNamespace(recommend=recommend), "recommender"),
    "recommends and predicts": (SimpleNamespace(recommend=recommend, predict=max), "recommender"),
}


@pytest.mark.parametrize("name", HANDED_OVER)
def test_each_kind_is_told_from_the_others(name):
    data, kind = HANDED_OVER[name]
    assert ranking_kind(data) == kind
    assert ranks_catalogue(data) == (kind in ("model", "model file") or data is FACTORS)


def test_a_ranking_is_opened_as_it_is():
    opened = open_ranking(LISTS)
    assert open_ranking(opened) is opened
    assert open_ranking(FACTORS) is FACTORS
    assert opened.given is opened.lists
    assert FACTORS.given is FACTORS
    assert len(FACTORS.lists.codes) == 0


def test_a_recommender_is_asked_for_the_users_that_are_named():
    model = SimpleNamespace(recommend=recommend)
    opened = open_ranking(model, asks=lambda: ([3, 4], 1))
    assert opened.lists.cases.values.tolist() == [3, 4]
    assert opened.n_places == 1
    with pytest.raises(InputError, match="SimpleNamespace"):
        open_ranking(model)


def test_evaluate_takes_a_ranking():
    truth = {1: {"b"}, 2: {"b"}}
    expected = recsys.evaluate(LISTS, truth, ["mrr"])
    assert dict(recsys.evaluate(open_ranking(LISTS), truth, ["mrr"])) == dict(expected)
