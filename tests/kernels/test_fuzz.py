"""Whatever is passed to a kernel, it answers rightly or raises a typed error; it never reads past an array.

Arguments are those of a small valid call, of which one to three are spoilt: another type, shape, size, sign,
range, order or layout. `scripts/sanitize.sh` runs this on a build that notices every stray read.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import kernels
from recsys.errors import RecsysError
from recsys.inputs import ids
from recsys.kernels import native_backend

FUNCTIONS = [name for name in kernels.__all__ if name[0].islower() and "backends" not in name]
needs_native = pytest.mark.skipif(not kernels.backends().native, reason="the compiled kernels are missing")
# What the binding raises for arguments it does not take.
NATIVE_ERRORS = (TypeError, ValueError, OverflowError, MemoryError)


def unaligned(array: np.ndarray) -> np.ndarray:
    memory = np.zeros(array.nbytes + 1, np.uint8)[1:]
    memory[:] = np.frombuffer(array.tobytes(), np.uint8)
    return memory.view(array.dtype).reshape(array.shape)


def with_value(array: np.ndarray, at: int, value: Any) -> np.ndarray:
    changed = array.copy()
    if changed.size:
        try:
            changed.reshape(-1)[at % changed.size] = value
        except (OverflowError, TypeError, ValueError):
            return changed
    return changed


ARRAY_FAULTS: list[Callable[[np.ndarray], Any]] = [
    lambda a: a[:-1],
    lambda a: a[:0],
    lambda a: np.concatenate([a, a, a]),
    lambda a: a[..., None],
    lambda a: a.reshape(-1)[0] if a.size else None,
    lambda a: a[::-1],
    lambda a: np.repeat(a, 2, axis=0)[::2],
    np.asfortranarray,
    lambda a: unaligned(a) if a.dtype != object else a,
    lambda a: a.astype(a.dtype.newbyteorder(">")),
    lambda a: np.broadcast_to(a.reshape(-1)[:1], (3 * len(a),)) if a.size else a,
    lambda a: a.tolist(),
    lambda a: [a.tolist(), 1],
    lambda a: bytes(a.tobytes()) if a.dtype != object else b"",
    *(
        lambda a, t=dtype: a.astype(t) if a.dtype != object else np.arange(1, 1 + a.size, dtype=np.int64)
        for dtype in (
            "int8",
            "int32",
            "int64",
            "uint64",
            "float16",
            "float32",
            "float64",
            "bool",
            "complex128",
        )
    ),
    lambda a: a.astype(str),
    lambda a: a.astype(object),
    lambda a: np.zeros(a.shape, "datetime64[s]"),
    lambda a: np.zeros(a.shape, "timedelta64[s]"),
    lambda a: np.zeros(a.shape, [("a", "O"), ("b", "i4")]),
    lambda a: (ctypes.py_object * len(a))(),
]
VALUES = [
    -1,
    0,
    1,
    7,
    10**6,
    2**31 - 1,
    2**31,
    2**62,
    2**63 - 1,
    -(2**63),
    np.nan,
    np.inf,
    -np.inf,
    1e308,
    "x",
    None,
]
SCALARS = [
    *VALUES,
    0.5,
    True,
    [],
    {},
    b"",
    object(),
    -0.0,
    2**70,
    "auto",
    "native",
    "reference",
    "avx9",
    "by_rank",
]


@st.composite
def spoilt(draw: st.DrawFn, value: Any) -> Any:
    """Something like the value that may be wrong: an array, a pair of arrays, a number or a word."""
    if isinstance(value, tuple):
        parts = list(value)
        at = draw(st.integers(-1, len(parts) - 1))
        if at < 0:
            return draw(st.sampled_from([parts[:1], (), parts[0], (*parts, parts[0]), None, "pair"]))
        parts[at] = draw(spoilt(parts[at]))
        return tuple(parts)
    if isinstance(value, dict):
        key, put = draw(st.sampled_from([*value, "new", "\ud800", 7])), draw(st.sampled_from(SCALARS))
        old = value.get(key)
        return {**value, key: draw(spoilt(old)) if isinstance(old, dict) and draw(st.booleans()) else put}
    if isinstance(value, np.ndarray):
        at, put, fault = (
            draw(st.integers(0, 50)),
            draw(st.sampled_from(VALUES)),
            draw(st.sampled_from(ARRAY_FAULTS)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return with_value(value, at, put) if draw(st.booleans()) else fault(value)
            except (TypeError, ValueError):  # no such array can be made of it
                return None
    return draw(st.sampled_from(SCALARS))


@st.composite
def spoilt_call(draw: st.DrawFn, arguments: dict[str, Any]) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(sorted(arguments)), min_size=1, max_size=3, unique=True))
    return arguments | {name: draw(spoilt(arguments[name])) for name in names}


def rows(n_cases: int, n_items: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    lengths = rng.integers(0, min(4, n_items) + 1, n_cases)
    items = [np.sort(rng.choice(n_items, n, replace=False)) for n in lengths]
    return np.concatenate([[0], np.cumsum(lengths)]), np.concatenate([[], *items]).astype(np.int32)


N_CASES, N_ITEMS = 5, 70
RNG = np.random.default_rng(0)
TRUTH, SEEN = rows(N_CASES, N_ITEMS, RNG), rows(N_CASES, N_ITEMS, RNG)
USERS, ITEMS = (RNG.standard_normal((n, 6)).astype(np.float32) for n in (N_CASES, N_ITEMS))
WORDS = np.array([f"w{i % 37}" for i in range(90)], dtype=object)
ENCODED = [word.encode() for word in WORDS]
OFFSETS = np.cumsum([0, *map(len, ENCODED)])
TEXT = np.frombuffer(b"".join(ENCODED), np.uint8)
RUN = {f"q{q}": {f"é{n}": float(n % 3) for n in range(q, 3 * q)} for q in range(25)}
JUDGED = {f"q{q}": {f"é{n}": n % 4 for n in range(2 * q)} for q in range(24, 0, -2)}
SCAN = {
    "users": USERS,
    "items": ITEMS,
    "user_rows": np.arange(N_CASES),
    "k": 4,
    "truth": TRUTH,
    "seen": SEEN,
    "eligible": None,
    "never": RNG.random(N_ITEMS) < 0.1,
    "threads": 1,
    "progress": None,
}
PUBLIC: dict[str, dict[str, Any]] = {
    "match_lists": {
        "list_indptr": SEEN[0],
        "list_items": SEEN[1],
        "truth_indptr": TRUTH[0],
        "truth_items": TRUTH[1],
        "threads": 2,
        "backend": "auto",
        "cpu_level": None,
    },
    "scan": SCAN
    | {"deepest": None, "item_bias": RNG.standard_normal(N_ITEMS), "item_rank": RNG.permutation(N_ITEMS)}
    | {"ties": "by_id", "backend": "auto", "memory_budget": 1 << 20, "prune": "auto", "cpu_level": None},
    "rank_scores": {
        "scores": RNG.standard_normal((N_CASES, N_ITEMS)),
        "candidate": RNG.random((N_CASES, N_ITEMS)) < 0.8,
        "k": 3,
        "truth": TRUTH,
        "item_rank": RNG.permutation(N_ITEMS),
        "threads": None,
        "backend": "auto",
        "cpu_level": None,
    },
    "place_beyond": {
        "deepest": 2,
        "indptr": TRUTH[0],
        **{name: RNG.integers(0, 9, TRUTH[1].size) for name in ("above", "tied", "ahead")},
    },
    "place_rows": {
        "case": np.repeat(np.arange(30), 3),
        "item": np.arange(90),
        "rank": np.tile([2, 1, 3], 30),
        "order": "by_rank",
        "limit": 1000,
        "cpu_level": None,
    },
    "code_strings": {"values": WORDS},
    "rank_dicts": {"run": RUN, "truth": JUDGED, "shared": False, "keep": True, "float32": False},
    "hold_truth": {"truth": JUDGED},
    "dict_rows": {"names": list("abc"), "keys": list("xy"), "rows": RNG.random((3, 2))},
    "sum_slices": {"values": RNG.random(90), "first": 1.5 * 2.0**23, "second": 1.5 * 2.0**-7},
}
NATIVE: dict[str, dict[str, Any]] = {
    "match_lists": {"lists": SEEN, "truth": TRUTH, "threads": 2, "cpu_level": ""},
    "scan": SCAN
    | {"never": PUBLIC["scan"]["never"].view(np.uint8), "bias": PUBLIC["scan"]["item_bias"], "deepest": 9}
    | {"tie_key": np.arange(N_ITEMS), "largest": 10.0, "memory_budget": 1 << 20, "prune": 2, "cpu_level": ""},
    "rank_scores": {
        "scores": PUBLIC["rank_scores"]["scores"],
        "candidate": PUBLIC["rank_scores"]["candidate"].view(np.uint8),
        "rank": PUBLIC["rank_scores"]["item_rank"],
        "truth": TRUTH,
        "k": 3,
        "threads": 1,
        "cpu_level": "",
    },
    "place_rows": {
        "cases": PUBLIC["place_rows"]["case"],
        "items": PUBLIC["place_rows"]["item"],
        "ranks": PUBLIC["place_rows"]["rank"],
        "order": 1,
        "limit": 1000,
        "cpu_level": "",
    },
    "code_text": {"offsets": OFFSETS, "bytes": TEXT},
    "code_objects": {"array": WORDS},
    "rank_dicts": {"run": RUN, "truth": JUDGED, "shared": False, "keep": True, "float32": False},
    "hold_truth": {"truth": JUDGED},
    "dict_rows": {"names": list("abc"), "keys": list("xy"), "rows": RNG.random((3, 2))},
    "sum_slices": {"values": RNG.random(90), "first": 1.5 * 2.0**23, "second": 1.5 * 2.0**-7},
}


def test_every_function_is_here():
    assert sorted(PUBLIC) == sorted(FUNCTIONS)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else bool(one == other)


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except RecsysError as error:
        return type(error)


@pytest.mark.parametrize("name", sorted(PUBLIC))
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_public_kernels_answer_as_the_reference_does_or_raise_a_typed_error(name, data):
    arguments = data.draw(spoilt_call(PUBLIC[name]))
    if name == "place_beyond":  # writes to what it is given
        arguments = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native_backend, "SHORT_CUT_MIN_ROWS", 0)
        try:
            found = outcome(lambda: getattr(kernels, name)(**arguments))
        except UnicodeEncodeError:
            assert name == "code_strings"
            return
    if "backend" not in arguments or arguments["backend"] != "auto" or isinstance(found, type):
        return
    truth = arguments["truth_items"] if name == "match_lists" else None
    if truth is not None and not np.array_equal(truth, TRUTH[1]):
        return  # the caller ensures that truth ascends
    expected = outcome(
        lambda: getattr(kernels, name)(**{**arguments, "backend": "reference", "cpu_level": None})
    )
    assert same(found, expected)


@needs_native
@pytest.mark.parametrize("name", sorted(NATIVE))
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_the_binding_checks_for_itself(name, data):
    from recsys.kernels import _native

    arguments = data.draw(spoilt_call(NATIVE[name]))
    try:
        getattr(_native, name)(**arguments)
    except NATIVE_ERRORS:
        return


@needs_native
@pytest.mark.parametrize("name", sorted(NATIVE))
def test_the_binding_takes_a_right_call(name):
    from recsys.kernels import _native

    assert getattr(_native, name)(**NATIVE[name]) is not None


@needs_native
@pytest.mark.parametrize("eligible", [False, True])
@pytest.mark.parametrize("threads", [1, 4])
def test_the_binding_stops_at_a_score_that_overflows_in_any_thread(threads, eligible):
    from recsys.kernels import _native

    users, items = np.ones((2000, 2)), np.full((9, 2), 1e200)
    users[1500] = 1e200
    rows = (np.arange(2001), np.zeros(2000, np.int32))
    given = {"eligible": rows} if eligible else {"truth": rows}
    with pytest.raises(ValueError, match="a score is NaN or infinite"):
        _native.scan(users, items, k=2, tie_key=np.arange(9), largest=1e200, threads=threads, **given)


# The calls that ended the process before the binding checked for itself.
DEADLY = {
    "numbers for strings": lambda: kernels.code_strings(np.arange(1, 9001)),
    "columns of different lengths": lambda: kernels.place_rows(
        np.zeros(5_000_000, int), np.zeros(10, int), order="given", limit=1 << 30
    ),
    "no ranks to order by": lambda: kernels.place_rows(
        np.zeros(9000, int), np.zeros(9000, int), order="by_rank", limit=1 << 30
    ),
    "offsets beyond the bytes": lambda: kernels.code_strings((np.arange(9001) * 1000, np.zeros(5, np.uint8))),
    "offsets that fall": lambda: kernels.code_strings((np.arange(9001)[::-1], np.zeros(9001, np.uint8))),
    "truth that is no item": lambda: kernels.rank_scores(
        np.ones((2, 3)), np.ones((2, 3), bool), truth=([0, 1, 2], [0, 10**8])
    ),
    "too few candidates": lambda: kernels.rank_scores(np.ones((2000, 3000)), np.ones((1, 3), bool), k=3),
    "too few ranks of items": lambda: kernels.rank_scores(
        np.ones((2, 3000)), np.ones((2, 3000), bool), k=3, item_rank=[0]
    ),
}


@pytest.mark.parametrize("what", sorted(DEADLY))
def test_what_was_deadly_is_an_error(what):
    with pytest.raises(RecsysError):
        DEADLY[what]()


@pytest.mark.parametrize("n", [10, 9000])
def test_plain_string_arrays_are_coded(n):
    words = np.array([f"u{i}" for i in range(n)])
    found, codes = ids.encode_strings(words, table="lists", column="user")
    assert found.values[codes].tolist() == words.tolist()
    assert found.kind == "str"


@pytest.mark.parametrize("backend", ["auto", "reference"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_score_of_a_candidate_that_is_no_number_is_named(backend, bad):
    scores, candidate = np.ones((3, 4)), np.ones((3, 4), bool)
    scores[1, 2] = bad
    with pytest.raises(RecsysError, match="row 1"):
        kernels.rank_scores(scores, candidate, k=2, backend=backend)
    candidate[1, 2] = False
    assert kernels.rank_scores(scores, candidate, k=2, backend=backend).n_candidates.tolist() == [4, 3, 4]


def test_a_backend_is_one_object_and_what_it_lacks_is_run_by_another(monkeypatch):
    calls = []

    def scan(problem, execution):
        calls.append(problem.n_cases)
        return kernels.BACKENDS["reference"].scan(problem, execution)

    monkeypatch.setitem(kernels.BACKENDS, "mine", kernels.Backend("mine", lambda: None, scan=scan))
    monkeypatch.setitem(kernels.BACKENDS, "broken", kernels.Backend("broken", lambda: "it is broken"))
    found = kernels.scan(USERS, ITEMS, k=3, backend="mine")
    assert calls == [N_CASES]
    assert same(found, kernels.scan(USERS, ITEMS, k=3))
    lists = kernels.match_lists(*SEEN, *TRUTH, backend="mine")
    assert same(lists, kernels.match_lists(*SEEN, *TRUTH))
    with pytest.raises(RecsysError, match="backend='broken' was asked for, but it is broken"):
        kernels.match_lists(*SEEN, *TRUTH, backend="broken")
