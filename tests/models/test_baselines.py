"""Baselines: their rankings, and the exact expectation of a random one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import recsys
from recsys import baselines, rerankers
from recsys.errors import InputError, UnknownNameError


def lists_of(source, k, **more):
    lists = recsys.recommend(source, k, **more)
    items, ends = lists.items.values[lists.codes].tolist(), lists.indptr.tolist()
    return {user: items[ends[at] : ends[at + 1]] for at, user in enumerate(lists.cases.values.tolist())}


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.data())
def test_popularity_ranks_by_number_then_by_id(counts, data):
    seen = data.draw(st.sets(st.integers(0, len(counts) - 1)))
    got = lists_of(baselines.popularity(counts, users=[7]), len(counts), seen={7: seen} if seen else None)
    expected = sorted((i for i in range(len(counts)) if i not in seen), key=lambda i: (-counts[i], i))
    assert got[7] == expected


class TestFallback:
    """Users with few interactions get what is popular."""

    users, items = (np.random.default_rng(0).standard_normal(shape) for shape in ((5, 3), (7, 3)))

    @property
    def train(self):
        return {0: [0, 1, 2], 1: [3], 2: [3, 4, 0], 3: [0, 3, 5], 6: [5]}

    def test_the_others_keep_the_ranking_of_the_model(self):
        model = recsys.Factors(self.users, self.items)
        mixed = baselines.with_fallback(model, self.train)
        own, got = lists_of(model, 7), lists_of(mixed, 7)
        assert {user for user in own if own[user] == got[user]} == {0, 2, 3}
        popular = [0, 3, 5, 1, 2, 4, 6]
        assert {user for user in got if got[user] == popular} == {1, 4, 5, 6}
        everyone = baselines.with_fallback(model, self.train, below=1)
        assert lists_of(everyone, 7)[1] == own[1]
        sold = baselines.with_fallback(model, self.train, fallback=np.arange(7.0))
        assert lists_of(sold, 3)[1] == [6, 5, 4]

    def test_it_is_what_two_evaluations_would_give(self):
        model = recsys.Factors(self.users, self.items)
        truth = {0: {5}, 1: {0}, 4: {3}}
        value = recsys.evaluate(baselines.with_fallback(model, self.train), truth, "mrr", seen=self.train)
        popular = baselines.popularity(
            baselines.training_counts(self.train, catalogue=range(7)), users=[1, 4]
        )
        own = {user: items for user, items in self.train.items() if user < 5}
        parts = recsys.evaluate(model, {0: {5}}, "mrr", seen=own)["mrr"]
        rest = recsys.evaluate(popular, {1: {0}, 4: {3}}, "mrr", seen=own)["mrr"]
        assert value["mrr"] == pytest.approx((parts + 2 * rest) / 3)

    def test_ids_biases_and_users_nobody_knows(self):
        ids, names = list("abcde"), [f"i{item}" for item in range(7)][::-1]
        bias = np.arange(7.0)
        model = recsys.Factors(self.users, self.items, user_ids=ids, item_ids=names, item_bias=bias)
        train = {"a": ["i0", "i1", "i2"], "b": ["i1"], "z": ["i1"]}
        mixed = baselines.with_fallback(model, train)
        assert lists_of(mixed, 7, users=["a"]) == lists_of(model, 7, users=["a"])
        assert lists_of(mixed, 2, users=["b", "z"]) == {"b": ["i1", "i0"], "z": ["i1", "i0"]}
        assert recsys.evaluate(mixed, {"new": {"i1"}}, "hit@1")["hit@1"] == 1.0
        with pytest.raises(InputError):
            baselines.with_fallback(recsys.Factors(self.users, self.items), train)


def test_popularity_takes_ids_and_keeps_ties_where_asked():
    series = pd.Series({"b": 3, "a": 3, "c": 9})
    assert lists_of(baselines.popularity(series, users=["u"]), 3)["u"] == ["c", "a", "b"]
    tied = baselines.popularity(series, users=["u"], break_ties=False)
    result = recsys.evaluate(tied, {"u": ["b"]}, ["recall@2"], conventions={"ties": "expected"})
    assert result["recall@2"] == 0.5


def test_popularity_refuses_missing_and_nested_numbers():
    with pytest.raises(InputError, match="missing or infinite"):
        baselines.popularity([1.0, float("nan")], users=[0])
    with pytest.raises(InputError, match="one number per item"):
        baselines.popularity([[1.0]], users=[0])
    with pytest.raises(InputError, match=r"shape \(2, 1\), expected one number per item"):
        baselines.popularity({1: [1.0], 2: [2.0]}, users=[0])
    with pytest.raises(InputError, match="without a number"):
        baselines.popularity([], users=[0])


def test_training_counts_count_events_and_age_them():
    events = pd.DataFrame({"user": [1, 1, 2], "item": [5, 5, 6], "timestamp": [0, 0, 30]})
    assert baselines.training_counts(events).values[[5, 6]].tolist() == [2, 1]
    aged = baselines.training_counts(events, half_life=10, now=40)
    assert dict(zip(aged.ids.tolist(), aged.values.tolist(), strict=True))[6] == 0.5
    full = baselines.training_counts({1: ["a"]}, catalogue=["b", "a"])
    assert (full.ids.tolist(), full.values.tolist()) == (["a", "b"], [1, 0])


def test_a_half_life_may_be_a_length_of_time():
    days = pd.to_datetime(["2026-01-01", "2026-01-08", "2026-01-15"])
    events = pd.DataFrame({"user": [1, 2, 3], "item": ["a", "b", "c"], "timestamp": days})
    assert baselines.training_counts(events, half_life="7d").values.tolist() == [0.25, 0.5, 1.0]
    assert baselines.training_counts(events, half_life=7 * 86400).values.tolist() == [0.25, 0.5, 1.0]
    numbers = events.assign(timestamp=days.astype("datetime64[ms]").astype("int64"))
    assert baselines.training_counts(numbers, half_life="1w", unit="ms").values.tolist() == [0.25, 0.5, 1.0]
    with pytest.raises(recsys.errors.SplitError, match=r"half_life='7d' is a length of time.*unit='s'"):
        baselines.training_counts(numbers, half_life="7d")
    with pytest.raises(recsys.errors.SplitError, match="not a length of time"):
        baselines.training_counts(events, half_life="soon")


@pytest.mark.parametrize(("half_life", "now"), [(0, None), (-1, None), (10, 5)])
def test_training_counts_refuse_an_impossible_clock(half_life, now):
    events = pd.DataFrame({"user": [1], "item": [5], "timestamp": [30]})
    with pytest.raises(InputError):
        baselines.training_counts(events, half_life=half_life, now=now)
    with pytest.raises(InputError, match="times"):
        baselines.training_counts({1: [2]}, half_life=3)


def test_a_draw_depends_on_seed_and_user_only():
    one = lists_of(baselines.shuffled(200, users=range(50), seed=1), 10)
    part = lists_of(baselines.shuffled(200, users=[49, 3], seed=1), 10)
    assert part == {3: one[3], 49: one[49]}
    assert one != lists_of(baselines.shuffled(200, users=range(50), seed=2), 10)
    assert len({tuple(items) for items in one.values()}) == 50


def test_draws_are_uniform_and_their_mean_is_the_expectation():
    users = list(range(4000))
    draw = baselines.shuffled(20, users=users, seed=5)
    first = np.bincount([items[0] for items in lists_of(draw, 1).values()], minlength=20)
    assert ((first - 200) ** 2 / 200).sum() < 45  # chi-squared, 19 degrees: p < 0.001 beyond
    truth, seen = {u: {u % 20, (u + 7) % 20} for u in users}, {u: [(u + 3) % 20] for u in users}
    metrics = ["recall@5", "ndcg@5", "map@5", "mrr", "hit@5", "precision@5"]
    drawn = recsys.evaluate(draw, truth, metrics, seen=seen)
    expected = baselines.random_expectation(truth, metrics, n_items=20, seen=seen)
    for name in metrics:
        error = drawn.values_of(name).std() / np.sqrt(len(users))
        assert abs(drawn[name] - expected[name]) < 4 * error
    assert expected["recall@5"] == pytest.approx(5 / 19)


@given(st.integers(0, 2**32 - 1))
def test_similar_items_by_matrix_and_by_embeddings_agree(seed):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((12, 3))
    history = {u: rng.choice(12, size=int(rng.integers(1, 5)), replace=False).tolist() for u in range(4)}
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosine = unit @ unit.T
    truth = {u: [int(rng.choice(sorted(set(range(12)) - set(history[u]))))] for u in range(4)}
    for how, reduce in (("mean", np.mean), ("sum", np.sum), ("max", np.max)):
        scores = recsys.Scores(np.stack([reduce(cosine[history[u]], axis=0) for u in range(4)]))
        expected = recsys.evaluate(scores, truth, ["mrr"], seen=history)["mrr"]
        for argument in ({"embeddings": rows}, {"similarity": cosine}, {"similarity": csr_array(cosine)}):
            source = baselines.similar_items(history, aggregation=how, **argument)
            got = recsys.evaluate(source, truth, ["mrr"], seen=history)["mrr"]
            assert got == pytest.approx(expected, abs=1e-9)


def test_similar_items_leave_out_who_has_no_usable_history():
    source = baselines.similar_items({1: [0], 2: [2]}, embeddings=[[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]])
    assert source.user_rows.ids.values.tolist() == [1]
    result = recsys.evaluate(source, {1: [1], 2: [1]}, ["recall@1"], seen={1: [0]})
    assert (result["recall@1"], result.counts["without_list"]) == (0.5, 1)


def test_similar_items_refuse_what_does_not_fit():
    with pytest.raises(InputError, match="one of the two"):
        baselines.similar_items({0: [0]})
    with pytest.raises(InputError, match="items x items"):
        baselines.similar_items({0: [0]}, similarity=np.ones((2, 3)))
    with pytest.raises(UnknownNameError):
        baselines.similar_items({0: [0]}, embeddings=np.ones((2, 3)), aggregation="median")


def test_profiles_weigh_by_grade_and_count_what_is_missing():
    rows = [[1.0, 0.0], [0.0, 1.0], [float("nan"), 1.0]]
    profiles = rerankers.user_profiles({"u": {0: 3, 1: 1, 2: 5}}, rows, weighted=True)
    assert profiles.vectors.tolist() == [[0.75, 0.25]]
    assert profiles.n_missing == 1
    named = rerankers.user_profiles({"u": ["x", "q"]}, rows, item_ids=["x", "y", "z"], aggregation="max")
    assert (named.vectors.tolist(), named.n_missing) == ([[1.0, 0.0]], 1)
    with pytest.raises(InputError, match="item_ids"):
        rerankers.user_profiles({"u": ["x"]}, rows)
    with pytest.raises(InputError, match="infinite"):
        rerankers.unit_rows([[np.inf, 0.0]])


@pytest.mark.parametrize("similarity", [[[1.0]], [[1.0, 0.2], [0.2, 1.0]], ((1, 0), (0, 1))])
def test_a_similarity_matrix_may_be_a_list_of_rows(similarity):
    source = baselines.similar_items({7: [0]}, similarity=similarity)
    expected = baselines.similar_items({7: [0]}, similarity=np.array(similarity, dtype=float))
    assert recsys.recommend(source, 2).codes.tolist() == recsys.recommend(expected, 2).codes.tolist()
    for wrong in ([[1.0], [1.0, 2.0]], [["a"]], [1.0, 2.0], 5, [[1.0, 2.0]]):
        with pytest.raises(InputError, match="items x items"):
            baselines.similar_items({7: [0]}, similarity=wrong)


def test_an_item_has_one_popularity():
    with pytest.raises(InputError, match="an item has two popularities"):
        baselines.popularity(pd.Series([3, 4], index=[7, 7]), users=[1])
