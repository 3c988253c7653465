"""Negatives: never a positive, never twice, as likely as they should be, whatever n is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import recsys
from recsys import negatives
from recsys.errors import IdTypeError, InputError, SplitError, UnknownNameError
from recsys.inputs.files import read_ncf_files, write_ncf_files

histories = st.dictionaries(
    st.integers(0, 30), st.sets(st.integers(0, 14), min_size=1, max_size=9), min_size=1
)


def check(drawn, n, barred, catalogue):
    """Distinct, no positives, from the catalogue, as many as asked or all there are."""
    for user, items in drawn.to_dict().items():
        free = set(catalogue) - barred.get(user, set())
        assert len(set(items)) == len(items) == min(n, len(free))
        assert set(items) <= free


@given(
    histories,
    histories,
    st.integers(1, 16),
    st.sampled_from(["uniform", "popularity", "batch_free"]),
    st.integers(0, 3),
)
def test_any_number_without_positives_or_repeats(train, test, n, how, seed):
    drawn = negatives.sample(train, n, also=test, how=how, seed=seed, too_few="fewer", batch_size=2)
    seen = set().union(*train.values())
    catalogue = seen if how == "popularity" else seen | set().union(*test.values())
    barred = {user: train.get(user, set()) | test[user] for user in test}
    if how == "batch_free":
        order = sorted(test)
        barred = {
            user: barred[user] | set().union(*(test[o] for o in order[at // 2 * 2 : at // 2 * 2 + 2]))
            for at, user in enumerate(order)
        }
    assert drawn.users.tolist() == sorted(test)
    check(drawn, n, barred, catalogue)
    short = sum(len(catalogue - barred[user]) < n for user in test)
    assert drawn.counts.get("users_with_fewer", 0) == short
    if short:
        with pytest.raises(SplitError, match=f"{short} of {len(test)} users have fewer than {n} candidates"):
            negatives.sample(train, n, also=test, how=how, seed=seed, batch_size=2)


def test_uniform_draws_are_uniform():
    """4,000 users with the same two positives: how often each item is drawn, by a chi-square test."""
    train = {user: {0, 1} for user in range(4000)}
    for n in (3, 9, 16):  # few, more than half, nearly all: three ways of drawing
        drawn = negatives.sample(train, n, catalogue=range(20))
        counts = np.bincount(drawn.codes, minlength=20)
        assert counts[:2].tolist() == [0, 0]
        share = n / 18
        statistic = (((counts[2:] - 4000 * share) ** 2) / (4000 * share * (1 - share))).sum() * 17 / 18
        assert statistic < 17 + 5 * np.sqrt(34)
        first = np.bincount(drawn.codes[drawn.indptr[:-1]], minlength=20)[2:]
        assert (((first - 4000 / 18) ** 2) / (4000 / 18)).sum() < 17 + 5 * np.sqrt(34)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_popular_items_are_drawn_as_their_popularity_says(n):
    """Successive sampling: the share of each item among the draws of n, from all orders of drawing."""
    weights = np.array([1, 2, 3, 6], dtype=float)
    counts = {
        f"p{user}": {item}
        for item, w in enumerate(weights)
        for user in range(int(w) * 100 + item * 1000, int(w) * 200 + item * 1000)
    }
    users = [f"x{u}" for u in range(20_000)]
    drawn = negatives.sample(counts, n, users=users, how="popularity")
    expected = np.zeros(4)

    def walk(left, chance, taken):
        if taken == n:
            return
        total = sum(weights[i] for i in left)
        for i in left:
            expected[i] += chance * weights[i] / total
            walk([j for j in left if j != i], chance * weights[i] / total, taken + 1)

    walk(list(range(4)), 1.0, 0)
    found = np.bincount(drawn.codes, minlength=4) / len(users)
    assert np.abs(found - expected).max() < 5 * np.sqrt(0.25 / len(users))


def test_power_flattens_popularity():
    counts = {u: {0} for u in range(900)} | {1000 + u: {1} for u in range(100)}
    users = range(5000, 9000)
    share = [
        float((negatives.sample(counts, 1, users=users, how="popularity", power=p).codes == 0).mean())
        for p in (0, 0.5, 1)
    ]
    assert share == pytest.approx([0.5, 0.75, 0.9], abs=0.03)


def test_draws_belong_to_the_user():
    train = {user: {user % 7} for user in range(50)}
    whole = negatives.sample(train, 5, catalogue=range(100), seed=3).to_dict()
    part = negatives.sample(train, 5, users=[4, 11, 40], catalogue=range(100), seed=3).to_dict()
    assert part == {user: whole[user] for user in (4, 11, 40)}
    frame = pd.DataFrame([(u, i) for u, own in train.items() for i in own], columns=["user", "item"])
    shuffled = negatives.sample(frame.sample(frac=1, random_state=0), 5, catalogue=range(100), seed=3)
    assert shuffled.to_dict() == whole
    assert negatives.sample(train, 5, catalogue=range(100), seed=4).to_dict() != whole


def test_blocks_of_users_change_nothing(monkeypatch):
    train = {user: {user % 7, user % 11} for user in range(200)}
    whole = negatives.sample(train, 20, catalogue=range(60), too_few="fewer")
    monkeypatch.setattr(negatives, "_CELLS_PER_BLOCK", 64)
    assert negatives.sample(train, 20, catalogue=range(60), too_few="fewer").to_dict() == whole.to_dict()


def test_every_container_and_form():
    matrix = sp.csr_array(np.eye(4, 9))
    drawn = negatives.sample(matrix, 3, catalogue=range(9))
    assert drawn.matrix.shape == (4, 3)
    assert drawn.to_frame().groupby("user_id").size().tolist() == [3] * 4
    ragged = negatives.sample({1: {0, 1}, 2: {0}}, 2, catalogue=range(3), too_few="fewer")
    with pytest.raises(InputError, match="not a matrix"):
        _ = ragged.matrix
    items_not_drawn = negatives.sample({1: {0, 9}}, 3, catalogue=[2, 3, 4])
    assert set(items_not_drawn.matrix[0].tolist()) == {2, 3, 4}


def test_words_and_numbers_that_mean_nothing():
    train = {1: {1}, 2: {2}}
    with pytest.raises(UnknownNameError, match="uniform"):
        negatives.sample(train, 1, how="unifrom")
    with pytest.raises(UnknownNameError, match="fewer"):
        negatives.sample(train, 1, too_few="drop")
    for n in (0, -1, 1.5, True):
        with pytest.raises(SplitError, match="n="):
            negatives.sample(train, n)
    with pytest.raises(SplitError, match="power="):
        negatives.sample(train, 1, power=-1)
    with pytest.raises(InputError, match="seed="):
        negatives.sample(train, 1, seed="x")
    with pytest.raises(InputError, match="catalogue is empty"):
        negatives.sample(train, 1, catalogue=[])
    with pytest.raises(IdTypeError):
        negatives.sample(train, 1, users=["1"])
    with pytest.raises(IdTypeError):
        negatives.sample(train, 1, catalogue=["a"])


def test_the_files_of_the_ncf_paper(tmp_path):
    train, test = {0: {1, 2}, 1: {2, 3}}, {0: {5}, 1: {6}}
    drawn = negatives.sample(train, 3, also=test, catalogue=range(10))
    write_ncf_files(tmp_path / "x", drawn.users, [5, 6], drawn.matrix)
    read = read_ncf_files(tmp_path / "x.test.rating", tmp_path / "x.test.negative")
    assert read.negatives.tolist() == drawn.matrix.tolist()
    assert read.counts == {"positive_among_negatives": 0, "repeated_negatives": 0}


@pytest.mark.shared
def test_ml_1m_as_the_ncf_paper_samples_it(shared_dir):
    folder = shared_dir / "data" / "ml-1m"
    pairs = pd.read_parquet(folder / "interactions.parquet")[["user", "item"]]
    test = pd.read_parquet(folder / "ncf_test.parquet")[["user", "item"]]
    drawn = negatives.sample(recsys.read_interactions(pairs), 99, also=test)
    assert drawn.matrix.shape == (6040, 99)
    assert drawn.counts["candidates"] == 3706
    taken = set(zip(pairs["user"].tolist(), pairs["item"].tolist(), strict=True))
    cells = drawn.to_frame()
    assert not taken & set(zip(cells["user_id"].tolist(), cells["item_id"].tolist(), strict=True))
    assert not cells.duplicated().any()
