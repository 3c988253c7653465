"""Models that are trained by name: each against a slow and obviously right version, and their tuning."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recsys
from recsys.errors import InputError, UnknownNameError
from recsys.models import TRAINABLE, load_model, save_model, train_model, tune
from recsys.models import item_weights as item_weights_module
from recsys.models.baselines import shuffled
from recsys.models.item_weights import ease_bytes, ease_weights, knn_weights

NAMES = list(TRAINABLE)


@pytest.fixture(scope="module")
def events():
    """70 users in two tastes of 15 items; ids are numbers with gaps, times count on."""
    rng = np.random.default_rng(2)
    rows = []
    for user in range(70):
        taste = rng.permutation(15) + 15 * (user % 2)
        for item in [*taste[: rng.integers(3, 9)], *rng.integers(0, 30, 1)]:
            rows.append((3 + 2 * user, 100 + 7 * int(item), len(rows)))
    table = pd.DataFrame(rows, columns=["user", "item", "timestamp"])
    return table.drop_duplicates(["user", "item"], ignore_index=True)


@pytest.fixture(scope="module")
def history(events):
    return recsys.read_interactions(events)


def dense(events):
    """Users x items of ones, and the ids of both."""
    users, items = np.unique(events["user"]), np.unique(events["item"])
    matrix = np.zeros((len(users), len(items)))
    for user, item in zip(events["user"], events["item"], strict=True):
        matrix[np.searchsorted(users, user), np.searchsorted(items, item)] = 1.0
    return matrix, users, items


def all_scores(source):
    """Users x items, both in the order of their ids."""
    lists = recsys.recommend(source, source.n_items)
    out = np.full((len(lists.cases), source.n_items), np.nan)
    out[np.repeat(np.arange(len(lists.cases)), lists.sizes), lists.codes] = lists.scores
    return out


def fitted(name, history, **options):
    if not TRAINABLE[name].installed:
        pytest.skip(f"{name} needs {TRAINABLE[name].extra}")
    return train_model(name, history, **options)


def plain_knn(matrix, neighbours, weighting="cosine", shrinkage=0.0):
    """One loop per pair of items."""
    n_users, n_items = matrix.shape
    weight = [1.0] * n_users
    if weighting == "tf-idf":
        weight = [math.log(1 + n_items / matrix[user].sum()) for user in range(n_users)]
    columns = [[weight[user] * matrix[user, item] for user in range(n_users)] for item in range(n_items)]
    norm = [math.sqrt(sum(value * value for value in column)) for column in columns]
    out = np.zeros((n_items, n_items))
    for item in range(n_items):
        similar = {
            other: sum(a * b for a, b in zip(columns[item], columns[other], strict=True))
            / (norm[item] * norm[other] + shrinkage)
            for other in range(n_items)
            if other != item
        }
        for other in sorted(similar, key=lambda other: (-round(similar[other], 12), other))[:neighbours]:
            out[other, item] = similar[other]
    return out


@pytest.mark.parametrize(
    "settings",
    [
        {"neighbours": 3},
        {"neighbours": 1},
        {"neighbours": 500},
        {"neighbours": 4, "shrinkage": 2.5},
        {"neighbours": 5, "weighting": "tf-idf"},
    ],
)
def test_item_knn_sums_the_similarities_to_the_users_own_items(events, history, settings, monkeypatch):
    matrix, users, items = dense(events)
    expected = matrix @ plain_knn(matrix, **settings)
    source = train_model("item-knn", history, **settings)
    assert source.user_rows.ids.values.tolist() == users.tolist()
    assert source.catalogue.values.tolist() == items.tolist()
    np.testing.assert_allclose(all_scores(source), expected, rtol=1e-10, atol=1e-12)
    monkeypatch.setattr(item_weights_module, "_BLOCK_BYTES", 16 * len(items) * 4)  # four items at a time
    again = train_model("item-knn", history, **settings)
    assert np.array_equal(again.weights.toarray(), source.weights.toarray())


@pytest.mark.parametrize("threads", [1, 3, 64])
def test_item_knn_has_the_same_bits_with_any_number_of_threads(events, threads, monkeypatch):
    matrix, _, items = dense(events)
    every = knn_weights(matrix, neighbours=5, weighting="tf-idf", shrinkage=1.5)
    monkeypatch.setattr(item_weights_module, "_BLOCK_BYTES", 16 * len(items) * threads)  # one item at a time
    pools = []
    monkeypatch.setattr(
        item_weights_module, "ThreadPoolExecutor", lambda n: pools.append(n) or ThreadPoolExecutor(n)
    )
    some = knn_weights(matrix, neighbours=5, weighting="tf-idf", shrinkage=1.5, threads=threads)
    assert pools == [threads]
    for part in ("data", "indices", "indptr"):
        assert getattr(some, part).tobytes() == getattr(every, part).tobytes()


def test_equally_similar_items_are_taken_by_their_rows():
    # Items 1 to 3 have the same user as item 0.
    weights = knn_weights(np.array([[1.0, 1.0, 1.0, 1.0]]), neighbours=2).toarray()
    assert weights[:, 0].tolist() == [0.0, 1.0, 1.0, 0.0]
    assert weights[:, 3].tolist() == [1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("regularisation", [0.5, 20.0])
def test_ease_is_its_closed_form(events, history, regularisation, monkeypatch):
    matrix, _, items = dense(events)
    inverse = np.linalg.inv(matrix.T @ matrix + regularisation * np.eye(len(items)))
    expected = np.eye(len(items)) - inverse / np.diag(inverse)
    source = train_model("ease", history, regularisation=regularisation)
    np.testing.assert_allclose(source.weights, expected, rtol=1e-5, atol=1e-7)
    assert np.diag(source.weights).tolist() == [0.0] * len(items)
    np.testing.assert_allclose(all_scores(source), matrix @ expected, rtol=1e-4, atol=1e-6)
    monkeypatch.setattr(item_weights_module, "_BLOCK_BYTES", 16 * len(items) * 7)  # seven items at a time
    np.testing.assert_allclose(
        ease_weights(matrix, regularisation=regularisation), expected, rtol=1e-5, atol=1e-7
    )


@given(
    shape=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    regularisation=st.sampled_from([0.1, 1.0, 30.0, 1e4]),
    seed=st.integers(0, 99),
)
def test_ease_is_the_same_from_the_side_of_users_and_of_items(shape, regularisation, seed):
    matrix = (np.random.default_rng(seed).random(shape) < 0.4).astype(float)
    inverse = np.linalg.inv(matrix.T @ matrix + regularisation * np.eye(shape[1]))
    expected = np.eye(shape[1]) - inverse / np.diag(inverse)
    np.testing.assert_allclose(
        ease_weights(matrix, regularisation=regularisation), expected, rtol=1e-5, atol=1e-7
    )


def test_ease_is_the_best_linear_model_with_a_zero_diagonal(events):
    """No other weights of an item have a smaller regularised squared error: the gradient is 0."""
    matrix, _, items = dense(events)
    weights = ease_weights(matrix, regularisation=5.0).astype(np.float64)
    gradient = matrix.T @ (matrix @ weights - matrix) + 5.0 * weights
    np.testing.assert_allclose(gradient[~np.eye(len(items), dtype=bool)], 0, atol=1e-4)


def test_ease_says_what_memory_it_takes():
    assert TRAINABLE["ease"].memory(3706) == ease_bytes(3706) == 24 * 3706**2
    assert TRAINABLE["item-knn"].memory is None


def test_popularity_and_recent_count_events(events, history):
    counts = events.groupby("item")["user"].count()
    order = sorted(counts.index, key=lambda item: (-counts[item], item))
    lists = recsys.recommend(train_model("popularity", history), 5, users=[3]).to_frame()
    assert lists["item"].tolist() == order[:5]
    span = events["timestamp"].max() - events["timestamp"].min()
    weight = 0.5 ** ((events["timestamp"].max() - events["timestamp"]) / (0.2 * span))
    recent = weight.groupby(events["item"]).sum()
    order = sorted(recent.index, key=lambda item: (-recent[item], item))
    for settings in ({"share": 0.2}, {"half_life": 0.2 * span}):
        source = train_model("recent", history, **settings)
        assert recsys.recommend(source, 30, users=[3]).to_frame()["item"].tolist() == order
    with pytest.raises(InputError, match="needs times"):
        train_model("recent", {1: [2, 3]})
    with pytest.raises(InputError, match="share=0 is not"):
        train_model("recent", history, share=0)


def test_one_instant_is_no_reason_to_fail():
    table = pd.DataFrame({"user": [1, 2, 3], "item": [5, 5, 6], "timestamp": [9, 9, 9]})
    assert recsys.recommend(train_model("recent", table), 1).to_frame()["item"].tolist() == [5, 5, 5]


@pytest.mark.parametrize("name", ["als", "bpr"])
def test_factors_find_the_tastes(events, history, name):
    source = fitted(name, history, factors=8, iterations=60)
    lists = recsys.recommend(source, 3, seen=history).to_frame()
    taste = (lists["user"] - 3) // 2 % 2
    assert ((lists["item"] - 100) // 7 // 15 == taste).mean() > 0.8


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_scores(history, name):
    first, second = (all_scores(fitted(name, history, seed=4)) for _ in range(2))
    assert np.array_equal(first, second)
    if name in ("random", "bpr"):
        assert not np.array_equal(first, all_scores(train_model(name, history, seed=5)))


@pytest.mark.parametrize("name", NAMES)
def test_a_catalogue_adds_items_and_changes_no_order(events, history, name):
    catalogue = [1, 2, *np.unique(events["item"]).tolist()]
    source = fitted(name, history, catalogue=catalogue)
    assert source.catalogue.values.tolist() == sorted(catalogue)
    assert source.user_rows.ids.values.tolist() == np.unique(events["user"]).tolist()
    if name in ("item-knn", "ease", "als"):
        assert np.array_equal(all_scores(source)[:, :2], np.zeros((source.user_rows.size, 2)))
    if name in ("popularity", "recent", "random", "item-knn"):
        listed = [
            recsys.recommend(model, 40, exclude=[1, 2]).to_frame()["item"].tolist()
            for model in (source, train_model(name, history))
        ]
        assert listed[0] == listed[1]
    with pytest.raises(InputError, match="items of the history are not in the catalogue, 107 for one"):
        train_model(name, history, catalogue=[100])


@pytest.mark.parametrize("name", NAMES)
def test_who_has_no_history_gets_what_needs_none(events, history, name, tmp_path):
    source = fitted(name, history)
    known, strangers = [3, 5, 7], [1, 2, 1000]
    serves_anybody = name in ("popularity", "recent", "random")
    for model in (source, load_model(save_model(tmp_path / "m.npz", source))):
        truth = {user: [107] for user in known + strangers}
        result = recsys.evaluate(model, truth, ["average_rank", "hit@5", "auc"])
        assert result.counts["without_list"] == (0 if serves_anybody else 3)
        assert model.user_rows.size == history.sizes[history.sizes > 0].size
        if not serves_anybody:
            with pytest.raises(InputError, match="user 1 is unknown to the model"):
                recsys.recommend(model, 5, users=strangers)
            continue
        lists = recsys.recommend(model, 5, users=[*strangers, 3]).to_frame().groupby("user")["item"].agg(list)
        if name == "random":
            assert len({tuple(items) for items in lists}) == 4
            again = shuffled(users=strangers, item_ids=model.catalogue.values)
            assert recsys.recommend(again, 5).to_frame()["item"].tolist() == [
                item for items in lists[strangers] for item in items
            ]
        else:
            assert all(items == lists[3] for items in lists)


@pytest.mark.parametrize("name", NAMES)
def test_numbers_that_do_not_occur_are_no_items_and_no_users(name):
    source = fitted(name, pd.DataFrame({"user": [1, 1, 4], "item": [2, 7, 7], "timestamp": [1, 2, 3]}))
    assert source.catalogue.values.tolist() == [2, 7]
    assert source.user_rows.ids.values.tolist() == [1, 4]


@pytest.mark.parametrize("name", NAMES)
def test_text_ids_and_one_user_or_one_item(name):
    one_item = pd.DataFrame({"user": ["a", "b"], "item": ["x", "x"], "timestamp": [1, 2]})
    assert recsys.recommend(fitted(name, one_item), 5).to_frame()["item"].tolist() == ["x", "x"]
    one_user = pd.DataFrame({"user": ["a", "a"], "item": ["x", "y"], "timestamp": [1, 2]})
    assert sorted(recsys.recommend(fitted(name, one_user), 5).to_frame()["item"]) == ["x", "y"]


def test_what_cannot_be_trained_is_an_error(history):
    with pytest.raises(UnknownNameError, match="model to train 'eese'"):
        train_model("eese", history)
    with pytest.raises(UnknownNameError, match="setting of ease 'lambda'"):
        train_model("ease", history, **{"lambda": 3})
    with pytest.raises(InputError, match="not above 0"):
        train_model("ease", history, regularisation=-1)
    with pytest.raises(InputError, match="make no item-kNN"):
        train_model("item-knn", history, neighbours=0)
    with pytest.raises(InputError, match="nothing to learn from"):
        TRAINABLE["popularity"].fit(recsys.read_interactions({1: []}))
    if TRAINABLE["als"].installed:
        with pytest.raises(InputError, match="factors=0 makes no model"):
            train_model("als", history, factors=0)


@pytest.mark.parametrize("name", NAMES)
def test_trials_are_few_different_and_possible(name):
    entry = TRAINABLE[name]
    assert len(entry.trials) <= 8
    assert len({tuple(sorted(trial.items())) for trial in entry.trials}) == len(entry.trials)
    for trial in entry.trials:
        assert trial.keys() <= entry.settings.keys()
    assert entry.help.endswith(".")


@pytest.fixture(scope="module")
def parts(events):
    """Training and validation: each user's third item."""
    place = events.groupby("user").cumcount()
    return tuple(recsys.read_interactions(events[mask]) for mask in (place != 2, place == 2))


class TestTune:
    @pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
    def test_the_best_trial_is_that_of_a_plain_loop(self, parts):
        train, valid = parts
        tuned = tune("item-knn", train, valid, metric="mrr")
        values = [
            recsys.evaluate(train_model("item-knn", train, **trial), valid, ["mrr"], seen=train)["mrr"]
            for trial in TRAINABLE["item-knn"].trials
        ]
        assert [trial.value for trial in tuned.trials] == values
        assert tuned.value == max(values)
        assert tuned.settings == TRAINABLE["item-knn"].trials[int(np.argmax(values))]
        assert tuned.seconds == pytest.approx(sum(trial.seconds for trial in tuned.trials))
        assert min(trial.seconds for trial in tuned.trials) > 0

    def test_lower_is_better_where_it_is(self, parts):
        tuned = tune("ease", *parts, metric="average_rank", trials=3)
        assert len(tuned.trials) == 3
        assert tuned.value == min(trial.value for trial in tuned.trials)

    def test_what_has_no_settings_is_tried_once(self, parts):
        done = []
        tuned = tune("popularity", *parts, progress=lambda *step: done.append(step))
        assert (dict(tuned.settings), len(tuned.trials), done) == ({}, 1, [(1, 1)])

    def test_what_cannot_choose_is_an_error(self, parts):
        with pytest.raises(UnknownNameError):
            tune("popularity", *parts, metric="ndgc@10")
        with pytest.raises(InputError, match="trials=0"):
            tune("popularity", *parts, trials=0)


def test_ease_without_a_solution_asks_for_more_regularisation():
    alike = recsys.read_interactions({user: [5, 6] for user in range(1, 4)})
    with pytest.raises(
        InputError, match=r"EASE has no solution with regularisation=1e-300\. Use a larger one"
    ):
        train_model("ease", alike, regularisation=1e-300)
    with pytest.raises(InputError, match="EASE has no solution with regularisation=1e-12"):
        ease_weights(np.eye(2, 3), regularisation=1e-12)
