"""Draws belong to ids: the same wherever and however they are asked for, and well mixed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys import negatives, splits
from recsys.errors import InputError
from recsys.kernels.keyed_random import (
    digest,
    id_keys,
    mix_bits,
    ordered_digest,
    pair_keys,
    text_keys,
    unit_floats,
)
from recsys.records.arrays import Ids
from recsys.records.checks import check_seed


@given(st.sets(st.integers(0, 2**64 - 1), min_size=1, max_size=50))
def test_mixing_is_a_bijection(values):
    assert len(np.unique(mix_bits(np.array(sorted(values), dtype=np.uint64)))) == len(values)


def test_mixing_is_splitmix64():
    """The published sequence from the state 1234567."""
    state = np.array([1234567 + step * 0x9E3779B97F4A7C15 for step in range(5)], dtype=object) % 2**64
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert mix_bits(state.astype(np.uint64)).tolist() == expected


@given(st.sets(st.integers(-(10**17), 10**17), min_size=1, max_size=20), st.integers(-5, 5))
def test_a_number_and_its_text_draw_alike(values, seed):
    ordered = sorted(values)
    numbers = id_keys(Ids(np.array(ordered, dtype=np.int64)), seed, purpose="x")
    texts = sorted(map(str, ordered))
    written = id_keys(Ids(np.array(texts, dtype=object)), seed, purpose="x")
    by_text = dict(zip(texts, written.tolist(), strict=True))
    assert [by_text[str(value)] for value in ordered] == numbers.tolist()


def test_texts_that_are_no_plain_numbers_differ_from_them():
    keys = text_keys(["7", "07", "+7", "7.0", " 7", "", "-0", "0"])
    assert len(set(keys.tolist())) == 8


def test_seeds_and_purposes_have_nothing_to_do_with_each_other():
    ids = Ids(np.arange(2000))
    draws = [unit_floats(id_keys(ids, seed, purpose=p)) for seed in (0, 1) for p in ("a", "b")]
    for at, one in enumerate(draws):
        assert abs(one.mean() - 0.5) < 5 / np.sqrt(12 * 2000)
        for other in draws[:at]:
            assert abs(np.corrcoef(one, other)[0, 1]) < 5 / np.sqrt(2000)


def test_pairs_have_an_order():
    a, b = np.array([1], dtype=np.uint64), np.array([2], dtype=np.uint64)
    assert pair_keys(a, b) != pair_keys(b, a)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=30), st.randoms(use_true_random=False))
def test_digests(values, random):
    keys = np.array(values, dtype=np.uint64)
    shuffled = values[:]
    random.shuffle(shuffled)
    other = np.array(shuffled, dtype=np.uint64)
    assert digest(keys) == digest(other)
    assert (ordered_digest(keys) == ordered_digest(other)) == (shuffled == values)
    more = np.append(keys, np.uint64(1))
    assert digest(more) != digest(keys)


@pytest.mark.parametrize("seed", [1.0, "1", None, True])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InputError, match="seed="):
        check_seed(seed)


def test_draws_are_the_same_in_every_version():
    """What a seed drew once it draws for ever: manifests written long ago still hold."""
    frame = pd.DataFrame(
        {"user": np.repeat(np.arange(6), 5), "item": np.tile([f"i{n}" for n in range(5)], 6)}
    )
    assert splits.random_ratio(frame, 0.2, seed=7).rows("test").tolist() == [8, 22, 23, 24, 27, 29]
    assert splits.leave_one_out(frame, "random", seed=7).rows("test").tolist() == [0, 8, 11, 19, 24, 27]
    dealt = [set(frame["user"].iloc[f.rows("test")]) for f in splits.k_fold(frame, 3, by="users", seed=7)]
    assert dealt == [{0, 5}, {1, 3}, {2, 4}]
    drawn = negatives.sample({1: {0}, 2: {1}}, 3, catalogue=range(10), seed=7)
    assert drawn.to_dict() == {1: [1, 7, 8], 2: [9, 4, 3]}
