"""What other libraries return becomes lists and truth, or an error that says what does not fit."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from recsys.errors import InputError
from recsys.evaluation import adapters


class AlwaysTheSame:
    def recommend(self, user, k):
        del user
        return ["a", "b", "c"][:k]


@pytest.mark.parametrize("rows", [[[1, 2]], [1, 2]], ids=["one row for two users", "no matrix"])
def test_implicit_gives_one_row_per_user(rows):
    with pytest.raises(InputError, match=r"2 users came with item numbers of shape \((1, 2|2,)\)"):
        adapters.from_implicit(["ann", "bob"], rows)


def test_a_prediction_of_surprise_without_a_rating_is_in_the_lists_alone():
    guess = SimpleNamespace(uid="ann", iid="x", est=3, r_ui=None)
    rated = SimpleNamespace(uid="ann", iid="y", est=2, r_ui=4)
    lists, truth = adapters.from_surprise([guess, rated])
    assert lists == {"ann": [("x", 3.0), ("y", 2.0)]}
    assert truth == {"ann": {"y": 4.0}}


def test_recbole_rows_are_named_by_the_tokens_of_the_dataset():
    def tokens(field, numbers):
        return [f"{field}{number}" for number in numbers]

    dataset = SimpleNamespace(uid_field="u", iid_field="i", id2token=tokens)
    assert adapters.from_recbole([1], [[3, 2]], dataset=dataset) == {"u1": ["i3", "i2"]}
    with pytest.raises(InputError, match="2 users came with 1 rows of items"):
        adapters.from_recbole([1, 2], [[3]])


def test_a_scorer_says_what_does_not_fit():
    with pytest.raises(InputError, match=r"y_true has shape \(1, 3\) and y_score \(1, 2\)"):
        adapters.score_function("ndcg@2")([[1, 0, 0]], [[1.0, 2.0]])
    score = adapters.scorer("mrr", k=2)
    with pytest.raises(InputError, match="X holds the users to recommend to, one per row"):
        score(AlwaysTheSame(), {1: ["b"]}, {1: ["b"]})
    assert score(AlwaysTheSame(), [1], {1: ["b"]}) == 0.5
    assert score(AlwaysTheSame(), [1], {1: ["c"]}) == 0.0
