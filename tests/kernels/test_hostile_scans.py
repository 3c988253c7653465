"""scan on arrays nobody would choose: odd types and layouts, rows in any order, thousands of truth items."""

from __future__ import annotations

import time

import numpy as np
import pytest

from recsys import kernels
from recsys.errors import CutoffError, InputError, UnknownNameError
from worlds.kernels import assert_same, oracle, to_rows, variants

VARIANTS = list(variants())


def small(seed: int, n_users: int = 7, n_items: int = 90, n_factors: int = 5):
    rng = np.random.default_rng(seed)
    users = np.round(rng.standard_normal((n_users, n_factors)) * 4)
    items = np.round(rng.standard_normal((n_items, n_factors)) * 4)
    truth = to_rows([rng.integers(0, n_items, 6) for _ in range(n_users)])  # repeated and in no order
    return users, items, {"k": 10, "truth": truth, "ties": "by_id"}


def unaligned(array: np.ndarray) -> np.ndarray:
    odd = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype)
    odd[:] = array.ravel()
    return odd.reshape(array.shape)


LAYOUTS = {
    "float16": lambda a: a.astype(np.float16),
    "int8": lambda a: a.astype(np.int8),
    "int64": lambda a: a.astype(np.int64),
    "big-endian float32": lambda a: a.astype(">f4"),
    "big-endian float64": lambda a: a.astype(">f8"),
    "unaligned": lambda a: unaligned(a.astype(np.float32)),
    "backwards": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "every other": lambda a: np.repeat(np.repeat(a, 2, axis=0), 3, axis=1)[::2, ::3],
    "read-only": lambda a: np.frombuffer(a.tobytes()).reshape(a.shape),
    "a field of records": lambda a: np.rec.fromarrays([a, a.astype(np.int8)], names="a,b")["a"],
}


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_types_and_layouts_change_no_bit(layout):
    users, items, options = small(1)
    expected = oracle(users, items, options)
    arrange = LAYOUTS[layout]
    for what, how in VARIANTS:
        assert_same(kernels.scan(arrange(users), arrange(items), **options, **how), expected, what)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ">f4"])
def test_cases_may_be_any_rows_of_the_users(dtype):
    users, items, options = small(2)
    rows = np.array([6, 0, 0, 3, 6, 2])
    options["truth"] = to_rows([[4, 1], [], [8], [8, 8, 8], [0], [89, 3]])
    expected = oracle(users[rows], items, options)
    for what, how in VARIANTS:
        found = kernels.scan(users.astype(dtype), items, user_rows=rows, **options, **how)
        assert_same(found, expected, what)


def test_rows_of_the_users_are_checked_and_named():
    users, items, _ = small(3)
    users[5, 2] = np.nan
    kernels.scan(users, items, k=3, user_rows=[0, 1])  # nobody asked for row 5
    for dtype in (np.float64, np.float16):
        with pytest.raises(InputError, match="users has a NaN or infinite value in row 5"):
            kernels.scan(users.astype(dtype), items, k=3, user_rows=[1, 5])
    for rows in ([7], [-1], [[0]], [0.5]):
        with pytest.raises(InputError, match="user_rows"):
            kernels.scan(users, items, k=3, user_rows=rows)


@pytest.mark.parametrize("kind", ["zero users", "clones", "last bit", "plain"])
@pytest.mark.parametrize("deepest", [None, 3])
def test_many_truth_items_repeated_and_in_any_order(kind, deepest):
    """With zero users and clones every case is given up by the fast pass and decided by exact scores."""
    rng = np.random.default_rng(4)
    n_users, n_items = 5, 700
    users, items = rng.standard_normal((n_users, 6)), rng.standard_normal((n_items, 6))
    if kind == "zero users":
        users[::2] = 0
    if kind == "clones":
        items = items[rng.integers(0, 3, n_items)]
    if kind == "last bit":
        items = np.nextafter(np.broadcast_to(items[:1], items.shape), rng.choice([-9.0, 9.0], items.shape))
    options = {
        "k": 30,
        "truth": to_rows([rng.integers(0, n_items, 400) for _ in range(n_users)]),
        "seen": to_rows([np.unique(rng.integers(0, n_items, 90)) for _ in range(n_users)]),
        "item_rank": rng.integers(0, 4, n_items),
        "ties": "by_id_desc",
    }
    # The oracle's order of equal ranks is the index, as the kernels'.
    expected = oracle(users, items, {**options, "item_rank": places(options["item_rank"])})
    if deepest is not None:
        kernels.place_beyond(deepest, options["truth"][0], expected.above, expected.tied, expected.ahead)
    for what, how in VARIANTS:
        assert_same(kernels.scan(users, items, deepest=deepest, **options, **how), expected, what)
    everyone = to_rows([np.arange(n_items)] * n_users)
    for backend in ("auto", "reference"):
        found = kernels.scan(users, items, deepest=deepest, eligible=everyone, backend=backend, **options)
        assert_same(found, expected, f"eligible, {backend}")


def places(rank: np.ndarray) -> np.ndarray:
    """Different ranks that go down as by_id_desc reads them, and up by index among equal ones."""
    order = np.lexsort((np.arange(rank.size), -rank))
    out = np.empty(rank.size, np.int64)
    out[order] = np.arange(rank.size)[::-1]
    return out


def test_cases_given_up_take_no_longer_with_many_truth_items():
    """Each candidate was once compared with each truth item: 5 * 10^8 comparisons here, many seconds."""
    n_items, n_truth = 20_000, 10_000
    users, items = np.zeros((3, 4), np.float32), np.ones((n_items, 4), np.float32)
    truth = (np.arange(4) * n_truth, np.tile(np.arange(n_truth, dtype=np.int32), 3))
    began = time.process_time()
    found = kernels.scan(users, items, truth=truth)
    eligible = (np.arange(4) * n_items, np.tile(np.arange(n_items, dtype=np.int32), 3))
    if kernels.backends().native:
        assert_same(kernels.scan(users, items, truth=truth, eligible=eligible), found)
        assert time.process_time() - began < 2
    assert (found.above == 0).all()
    assert (found.tied == n_items).all()
    assert found.ahead.tolist() == truth[1].tolist()


def test_the_least_rank_there_is():
    least = np.array([np.iinfo(np.int64).min, 0, 1])
    for what, how in VARIANTS:
        found = kernels.scan(np.ones((1, 1)), np.ones((3, 1)), k=3, item_rank=least, ties="by_id_desc", **how)
        assert found.list_items.tolist() == [2, 1, 0], what


@pytest.mark.filterwarnings("error")
def test_lengths_that_overflow_leave_the_scores_alone():
    """Users and biases near 10^300: no score overflows, but the product of their lengths does."""
    rng = np.random.default_rng(5)
    users, items = rng.standard_normal((4, 3)) * 1e300, rng.standard_normal((50, 3)) * 1e-300
    options = {"k": 7, "item_bias": rng.standard_normal(50) * 1e300, "ties": "by_id"}
    expected = oracle(users, items, options)
    for what, how in VARIANTS:
        assert_same(kernels.scan(users, items, **options, **how), expected, what)


def test_subnormal_numbers_count_where_another_library_flushes_them():
    torch = pytest.importorskip("torch")
    users, items = np.full((2, 2), 1e-40, np.float32), np.arange(40, dtype=np.float32).reshape(20, 2)
    options = {"k": 9, "item_bias": np.arange(20, dtype=np.float32) % 7 * np.float32(1e-40), "ties": "by_id"}
    expected = oracle(users, items, options)
    flushes = torch.set_flush_denormal(True)  # not every CPU can
    try:
        found = [kernels.scan(users, items, **options, **how) for _, how in VARIANTS]
        still = np.float32(1e-40) * np.ones(1, np.float32)
    finally:
        torch.set_flush_denormal(False)
    for one, (what, _) in zip(found, VARIANTS, strict=True):
        assert_same(one, expected, what)
    assert (still[0] == 0) == flushes  # the thread was left as it was found


@pytest.mark.parametrize("budget", [0, 1000, 1e5, 64 << 20])
def test_memory_only_changes_the_time(budget):
    users, items, options = small(6, n_users=40)
    expected = oracle(users, items, options)
    for what, how in VARIANTS:
        assert_same(kernels.scan(users, items, **options, **{**how, "memory_budget": budget}), expected, what)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"k": float("nan")}, CutoffError, "k is nan"),
        ({"k": "a"}, CutoffError, "k is 'a'"),
        ({"k": 2.5}, CutoffError, "k is 2.5"),
        ({"deepest": 2.5}, CutoffError, "deepest is 2.5"),
        ({"threads": 1.5}, InputError, "threads is 1.5"),
        ({"threads": "2"}, InputError, "threads is '2'"),
        ({"item_rank": [0.5, 1, 2]}, InputError, "item_rank is float64; expected one whole number"),
        ({"item_bias": ["a", "b", "c"]}, InputError, "item_bias is <U1; expected one number"),
        ({"truth": ([0.0, 1.5], [1])}, InputError, "truth: indptr is float64"),
        ({"seen": ([0, 2], [2, 1])}, InputError, "the items of case 0 are not in ascending"),
    ],
)
def test_what_was_wrong_is_named(options, error, words):
    with pytest.raises(error, match=words):
        kernels.scan(np.ones((1, 2)), np.ones((3, 2)), **{"k": 1, **options})


@pytest.mark.skipif(not kernels.backends().native, reason="only the compiled kernels prune")
def test_an_unknown_way_to_prune_is_named():
    with pytest.raises(UnknownNameError, match=r"unknown prune 'never'\. Known: False, True, auto"):
        kernels.scan(np.ones((1, 2)), np.ones((3, 2)), k=1, prune="never")


def test_order_is_checked_across_the_pieces_it_is_checked_in(monkeypatch):
    from recsys.kernels import backend

    for step in (1, 2, 3, 100):
        monkeypatch.setattr(backend, "ENTRIES_PER_CHECK", step)
        users, items = np.ones((4, 1)), np.ones((9, 1))
        kernels.scan(users, items, k=1, seen=([0, 3, 3, 6, 6], [1, 5, 8, 0, 0, 7]))
        with pytest.raises(InputError, match="seen: the items of case 2 are not"):
            kernels.scan(users, items, k=1, seen=([0, 3, 3, 6, 6], [1, 5, 8, 0, 7, 0]))
