"""scan: every backend, CPU level and thread count gives what the definition gives, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from recsys import kernels
from recsys.errors import InputError
from recsys.kernels import native_backend
from worlds.kernels import LEVELS, assert_same, is_finite_world, oracle, to_rows, variants, worlds

VARIANTS = list(variants())


@settings(max_examples=300, deadline=None)
@given(world=worlds())
def test_equals_the_definition(world):
    users, items, options = world
    assume(is_finite_world(users, items))
    expected = oracle(users, items, options)
    for what, how in VARIANTS:
        assert_same(kernels.scan(users, items, **options, **how), expected, what)


def test_result_types():
    for _, how in VARIANTS:
        found = kernels.scan(
            np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32), k=2, truth=([0, 1, 1, 1], [2]), **how
        )
        assert [a.dtype for a in found] == [
            np.int64,
            np.int32,
            np.float64,
            np.int64,
            np.int64,
            np.int64,
            np.float64,
            np.int64,
        ]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("side", ["users", "items"])
def test_the_row_of_a_value_that_is_no_number_is_named(bad, side):
    factors = {"users": np.ones((4, 3)), "items": np.ones((5, 3))}
    factors[side][3, 1] = bad
    with pytest.raises(InputError, match=f"{side} .* row 3"):
        kernels.scan(factors["users"], factors["items"], k=2)


def test_scores_that_could_overflow_are_refused():
    with pytest.raises(InputError, match="overflow"):
        kernels.scan(np.full((1, 2), 1e200), np.full((1, 2), 1e200), k=1)
    with pytest.raises(InputError, match="overflow"):
        kernels.scan(np.ones((1, 2)), np.ones((1, 2)), k=1, item_bias=[1e308])


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"truth": ([0, 1], [9])}, "truth: item 9 of case 0"),
        ({"seen": ([0, 2], [2, 1])}, "ascending"),
        ({"seen": ([0, 1, 1], [0])}, "expected 2"),
        ({"item_bias": [1.0]}, "item_bias"),
        ({"never": [0, 1, 0]}, "bool"),
        ({"k": 0}, "k is 0"),
        ({"ties": "random"}, "ties"),
    ],
)
def test_wrong_arguments_are_named(options, word):
    with pytest.raises(ValueError, match=word):
        kernels.scan(np.ones((1, 2)), np.ones((3, 2)), **{"k": 1, **options})


def test_shapes_must_agree():
    with pytest.raises(InputError, match="factors"):
        kernels.scan(np.ones((1, 2)), np.ones((3, 4)), k=1)


def medium(seed, n_cases=97, n_items=1500, n_factors=24, dtype=np.float32):
    rng = np.random.default_rng(seed)
    norms = np.exp(rng.standard_normal(n_items))[:, None]
    users = rng.standard_normal((n_cases, n_factors)).astype(dtype)
    items = (rng.standard_normal((n_items, n_factors)) * norms).astype(dtype)

    def pick(most):
        return to_rows([np.unique(rng.integers(0, n_items, rng.integers(0, most))) for _ in range(n_cases)])

    return users, items, {"k": 20, "truth": pick(9), "seen": pick(60)}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_medium_world(dtype):
    users, items, options = medium(1, dtype=dtype)
    expected = oracle(users, items, {**options, "ties": "by_id"})
    for what, how in VARIANTS:
        assert_same(kernels.scan(users, items, **options, **how), expected, what)


@pytest.mark.parametrize(
    "kind", ["clones", "last bit", "zero users", "popularity", "one giant", "permuted factors"]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_adversarial_ties(kind, dtype):
    users, items, options = medium(2, n_cases=30, n_items=700, n_factors=16, dtype=dtype)
    rng = np.random.default_rng(3)
    if kind == "clones":
        items = items[rng.integers(0, 12, len(items))]
    elif kind == "last bit":
        items = np.nextafter(
            np.broadcast_to(items[:1], items.shape), rng.choice([-np.inf, np.inf], items.shape).astype(dtype)
        )
    elif kind == "zero users":
        users[::2] = 0
    elif kind == "popularity":
        users, items = np.ones((30, 1), dtype), np.floor(items[:, :1])
    elif kind == "one giant":
        items[5] *= 1e6
    else:
        base = items[0]
        items = np.stack([base[rng.permutation(base.size)] for _ in items])
        users = np.repeat(users[:, :1], base.size, axis=1)
    options["item_rank"] = rng.permutation(len(items)).astype(np.int32)
    expected = oracle(users, items, {**options, "ties": "by_id"})
    for what, how in VARIANTS:
        assert_same(kernels.scan(users, items, **options, **how), expected, what)


@settings(max_examples=60, deadline=None)
@given(world=worlds(), deepest=st.integers(1, 12))
def test_counting_may_stop_at_the_deepest_place_read(world, deepest):
    users, items, options = world
    assume(is_finite_world(users, items))
    assume("truth" in options)
    full = oracle(users, items, options)
    far = np.flatnonzero(full.above >= deepest)
    indptr = options["truth"][0]
    full.above[far] = deepest + far - indptr[np.searchsorted(indptr, far, side="right") - 1]
    full.tied[far], full.ahead[far] = 1, 0
    for what, how in VARIANTS:
        assert_same(kernels.scan(users, items, **options, **how, deepest=deepest), full, what)


@pytest.mark.parametrize("deepest", [1, 20, 300])
def test_stopping_early_in_a_medium_world(deepest):
    users, items, options = medium(8)
    del options["k"]
    full = kernels.scan(users, items, **options, backend="reference")
    near = full.above < deepest
    for what, how in VARIANTS:
        found = kernels.scan(users, items, **options, **how, deepest=deepest)
        assert (found.above[near] == full.above[near]).all(), what
        assert (found.tied[near] == full.tied[near]).all(), what
        assert (found.above[~near] >= deepest).all(), what
        assert (found.n_candidates == full.n_candidates).all(), what


@pytest.mark.parametrize("k", [1, 63, 64, 65, 500, 1499, 1500, 4000])
def test_any_cut_off(k):
    users, items, options = medium(4, n_cases=9)
    options["k"] = k
    expected = kernels.scan(users, items, **options, backend="reference")
    for what, how in VARIANTS:
        assert_same(kernels.scan(users, items, **options, **how), expected, what)


def test_memory_mapped_factors(tmp_path):
    users, items, options = medium(5)
    np.save(tmp_path / "users.npy", users)
    np.save(tmp_path / "items.npy", items)
    expected = kernels.scan(users, items, **options, backend="reference")
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("users", "items")]
    for what, how in VARIANTS:
        assert_same(kernels.scan(*mapped, **options, **how), expected, what)


def test_progress_is_reported_and_can_stop_the_scan():
    users, items, options = medium(6, n_cases=3000, n_items=300)

    class StoppedError(Exception):
        pass

    def stop(done, total):
        raise StoppedError

    calls = []

    def note(done, total):
        calls.append((done, total))

    for _, how in VARIANTS:
        calls.clear()
        kernels.scan(users, items, **options, **how, progress=note)
        assert calls[-1][0] == calls[-1][1]
        assert calls == sorted(calls)
        with pytest.raises(StoppedError):
            kernels.scan(users, items, **options, **how, progress=stop)


@pytest.mark.parametrize("norms", ["alike", "skewed", "one giant"])
@pytest.mark.parametrize("asked", ["list", "truth", "top of truth", "long list", "count"])
def test_many_users_whatever_the_kernel_decides_about_the_order_of_items(norms, asked):
    users, items, options = medium(9, n_cases=400, n_items=1200)
    if norms == "alike":
        items /= np.linalg.norm(items, axis=1, keepdims=True)
    elif norms == "one giant":
        items *= 1e-3
        items[7] *= 1e5
    users[::5] = 0
    how = {
        "list": {"k": 3},
        "truth": {"truth": options["truth"]},
        "top of truth": {"truth": options["truth"], "deepest": 5},
        "long list": {"k": 900, "truth": options["truth"], "seen": options["seen"]},
        "count": {"truth": to_rows([[]] * len(users))},
    }[asked]
    expected = kernels.scan(users, items, **how, backend="reference")
    near = expected.above < how.get("deepest", len(items))
    for level in LEVELS:
        found = kernels.scan(users, items, **how, backend="native", cpu_level=level, prune="auto")
        assert_same(
            found._replace(above=found.above[near], tied=found.tied[near], ahead=found.ahead[near]),
            expected._replace(
                above=expected.above[near], tied=expected.tied[near], ahead=expected.ahead[near]
            ),
            level,
        )
        assert (found.above[~near] >= how.get("deepest", 0)).all()


def test_more_than_the_kernels_can_count_is_refused():
    wide = np.ones((1, native_backend.MAX_FACTORS), dtype=np.float32)
    with pytest.raises(InputError, match="1048576 factors; the native scan takes fewer than 1048576"):
        kernels.scan(wide, wide)
    with pytest.raises(InputError, match=r"users must be a matrix \(rows x factors\); it has shape \(3,\)"):
        kernels.scan(np.ones(3), np.ones((2, 2)))
    beyond = np.array([0, 2**63], dtype=np.uint64)
    with pytest.raises(InputError, match="item: 9223372036854775808 does not fit int64"):
        kernels.place_rows(np.array([0, 0]), beyond, order="ascending", limit=2)


def test_text_and_rows_of_values_are_taken_as_they_are_described():
    with pytest.raises(
        InputError, match="strings must be int32 or int64 offsets and the bytes they point into"
    ):
        kernels.code_strings((np.array([0.0, 1.0]), np.zeros(1, np.uint8)))
    with pytest.raises(InputError, match="rows are <U1; expected numbers"):
        kernels.dict_rows(["a"], ["b"], np.array([["x"]]))
