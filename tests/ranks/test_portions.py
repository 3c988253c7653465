"""Models are asked in portions that fit into memory, and answer as if they were asked at once."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys.errors import InputError
from recsys.ranks.sources import fitted_models, scores
from recsys.ranks.sources.fitted_models import from_model, lists_from_recommender, pair_scores, scoring

TABLE = np.random.default_rng(0).random((7, 5))
TRUTH = {user: {user % 5: 1.0, (user + 2) % 5: 1.0} for user in range(7)}


@pytest.mark.parametrize("users_at_once", [1, 2, 3, 7, 50])
def test_a_function_of_scores_is_asked_for_so_many_users_at_once(users_at_once, monkeypatch):
    asked = []

    def block(rows: np.ndarray) -> np.ndarray:
        asked.append(len(rows))
        return TABLE[rows]

    monkeypatch.setattr(scores, "_BLOCK_BYTES", 16 * 5 * users_at_once + 79)
    model = recsys.Scores(block, n_users=7, n_items=5)
    result = recsys.evaluate(model, TRUTH, ["ndcg", "mrr@2"])
    assert dict(result) == dict(recsys.evaluate(recsys.Scores(TABLE), TRUTH, ["ndcg", "mrr@2"]))
    assert max(asked) == min(users_at_once, 7)
    assert sum(asked) == 7


@pytest.mark.parametrize(
    ("wrong", "word"),
    [(TABLE[:, :4], "shape"), (TABLE[:6], "shape"), (np.full((7, 5), "a"), "numbers"), (TABLE[0], "shape")],
)
def test_scores_of_another_shape_are_refused(wrong, word):
    model = recsys.Scores(lambda rows: wrong, n_users=7, n_items=5)  # noqa: ARG005
    with pytest.raises(InputError, match=word):
        recsys.evaluate(model, TRUTH, ["mrr"])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_the_first_score_that_is_none_is_named(bad):
    table = TABLE.copy()
    table[4, 3] = table[5, 1] = bad
    with pytest.raises(InputError, match="user 4 and item 3"):
        recsys.evaluate(recsys.Scores(table), TRUTH, ["mrr"])


class Predicting:
    """A model with `predict`, which notes how many pairs it was asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def predict(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        self.asked.append(len(users))
        return TABLE[users, items]


@pytest.mark.parametrize(("batch", "wanted"), [(1, 5), (4, 4), (5, 5), (12, 10), (1 << 16, 35)])
def test_predict_is_asked_for_a_batch_of_pairs(batch, wanted):
    model = Predicting()
    source = from_model(model, n_users=7, n_items=5, batch=batch)
    assert dict(recsys.evaluate(source, TRUTH, ["ndcg"])) == dict(
        recsys.evaluate(recsys.Scores(TABLE), TRUTH, ["ndcg"])
    )
    assert max(model.asked) <= max(wanted, batch)
    assert sum(model.asked) == 35
    users, items = np.array([3, 3, 6]), np.array([0, 4, 2])
    assert pair_scores(Predicting(), users, items, batch=2).tolist() == TABLE[users, items].tolist()
    assert len(pair_scores(Predicting(), users[:0], items[:0])) == 0


def test_one_score_per_pair():
    with pytest.raises(InputError, match="gave 4 scores for 3 pairs"):
        pair_scores(lambda users, items: np.zeros(4), np.arange(3), np.arange(3))  # noqa: ARG005
    with pytest.raises(InputError, match="neither factors nor predict"):
        pair_scores(object(), np.arange(3), np.arange(3))


@pytest.mark.parametrize("pairs_at_once", [2, 3, 8])
def test_a_function_of_tensors_is_asked_for_so_many_pairs_at_once(pairs_at_once, monkeypatch):
    torch = pytest.importorskip("torch")
    asked = []

    def model(users, items):
        asked.append(len(users))
        return torch.as_tensor(TABLE)[users, items]

    monkeypatch.setattr(fitted_models, "_CPU_BYTES", 1024 * pairs_at_once + 1023)
    users, items = np.arange(7), np.arange(7) % 5
    with scoring(model) as score:
        assert score(users, items).tolist() == TABLE[users, items].tolist()
    assert max(asked) == min(pairs_at_once, 7)
    for batch in (0, -1, 2.5, "many"):
        with pytest.raises(InputError), scoring(model, batch=batch) as score:
            score(users, items)
    with scoring(model, batch=1) as score:
        assert score(users[:0], items[:0]).tolist() == []
        assert score(users, items).tolist() == TABLE[users, items].tolist()


@pytest.mark.parametrize(
    "answer",
    [
        ["a", "b", "c"],
        ("a", "b", "c"),
        [("a", 3.0), ("b", 2.0), ("c", 1.0)],
        np.array(["a", "b", "c"]),
        (np.array(["a", "b", "c"]), np.array([3.0, 2.0, 1.0])),
    ],
)
@pytest.mark.parametrize("name", ["k", "n", "N", "top_k", "anything"])
def test_a_recommender_may_give_more_than_it_was_asked_for(answer, name):
    asked = []
    scope: dict = {"asked": asked, "answer": answer}
    exec(f"def recommend(user, {name}):\n    asked.append((user, {name}))\n    return answer", scope)  # noqa: S102
    model = type("Model", (), {"recommend": staticmethod(scope["recommend"])})
    lists = lists_from_recommender(model, np.array([4, 9]), 2)
    assert lists == {4: ["a", "b"], 9: ["a", "b"]}
    assert asked == [(4, 2), (9, 2)]
    assert all(type(user) is int for user in lists)


def test_ids_in_rows_with_scores_are_whole_numbers():
    """NumPy makes ids floats where the scores next to them are; strings stay as they are."""

    class Model:
        def recommend(self, user, **options):
            rows = [[7, 0.5], [3, 0.25]] if user == 1 else [["a", "0.5"], ["b", "0.25"]]
            return np.array(rows)[: options["n"]]

    lists = lists_from_recommender(Model(), [1, 2], 2)
    assert lists == {1: [7, 3], 2: ["a", "b"]}
    assert all(type(item) is int for item in lists[1])


def test_a_recommender_that_needs_more_is_refused():
    class Needy:
        def recommend(self, user, k, matrix):
            raise AssertionError((user, k, matrix))

    class Odd:
        def recommend(self, user, k):
            return {user: k}

    with pytest.raises(InputError, match="needs matrix"):
        lists_from_recommender(Needy(), [1], 2)
    with pytest.raises(InputError, match="gave dict"):
        lists_from_recommender(Odd(), [1], 2)


def test_places_with_gaps_say_how_long_a_list_is():
    lists = pd.DataFrame({"user": [1, 1, 3], "item": ["a", "b", "c"], "rank": [2, 5, 4]})
    truth = {1: ["b"], 2: ["a"], 3: ["x"], 4: ["a"]}
    result = recsys.evaluate(lists, truth, ["count(what=listed)", "mrr"], conventions={"rank_gaps": "kept"})
    assert dict(zip(result.per_case.ids.tolist(), result.values_of("mrr").tolist(), strict=True)) == {
        1: 0.2, 2: 0.0, 3: 0.0, 4: 0.0,
    }  # fmt: skip
    listed = dict(
        zip(result.per_case.ids.tolist(), result.values_of("count(what=listed)").tolist(), strict=True)
    )
    assert listed == {1: 5.0, 2: 0.0, 3: 4.0, 4: 0.0}
