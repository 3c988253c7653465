"""backend="cuda" gives the bits of the other backends.

Without a GPU the same steps run on the CPU, the fast pass by its twin in plain torch; what is tested then is
everything but the two Triton kernels. With a GPU the kernels themselves are tested.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import recsys
from recsys import errors, kernels
from recsys.kernels.backend import Execution, as_problem
from recsys.kernels.cuda import cuda_scan, torch_pass, why_no_gpu
from recsys.kernels.cuda.packed_rows import pack_items, pack_users

torch = pytest.importorskip("torch")
DEVICE = "cpu" if why_no_gpu() else "cuda"
KINDS = ("normal", "skewed", "whole", "clones", "huge", "short", "zero", "tiny", "last bit")


def kernel_module() -> ModuleType:
    if DEVICE == "cpu":
        return torch_pass
    from recsys.kernels.cuda import triton_kernels

    return triton_kernels


def factors(kind: str, n: int, f: int, rng: np.random.Generator, dtype: type) -> np.ndarray:
    rows = rng.standard_normal((n, f))
    if kind == "skewed":
        rows *= rng.pareto(1.0, n)[:, None] + 1e-3
    if kind == "whole":
        rows = np.round(rows)
    if kind == "clones":
        rows = rows[rng.integers(0, min(4, n), n)]
    if kind == "huge":
        rows *= 1e30
    if kind == "short":
        rows[n // 2 :] *= 1e-12
    if kind == "zero":
        rows[:: 2 if n > 1 else 1] = 0.0
    if kind == "tiny":
        rows *= 1e-30 if dtype is np.float32 else 1e-290
    rows = rows.astype(dtype)
    if kind == "last bit" and n > 1:
        rows[1::2] = np.nextafter(rows[: (n // 2) * 2 : 2], dtype(np.inf))
    return rows


def rows_of(n: int, n_items: int, most: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.minimum(rng.integers(0, most + 1, n), n_items)
    items = [np.sort(rng.choice(n_items, length, replace=False)) for length in lengths]
    return np.concatenate([[0], np.cumsum(lengths)]), np.concatenate([[], *items]).astype(np.int32)


def assert_same_bits(ours: Any, theirs: Any) -> None:
    for name, one, other in zip(ours._fields, ours, theirs, strict=True):
        assert one.dtype == other.dtype, name
        np.testing.assert_array_equal(one, other, err_msg=name)


def scan_on_device(users: np.ndarray, items: np.ndarray, **asked: Any) -> Any:
    none = dict.fromkeys(("k", "truth", "seen", "eligible", "item_bias", "never", "item_rank", "progress"))
    problem = as_problem(users, items, **(none | {"ties": "by_id"} | asked))
    found = cuda_scan.scan(problem, Execution(), device=DEVICE)
    if problem.deepest is not None and problem.truth is not None:
        kernels.place_beyond(problem.deepest, problem.truth[0], found.above, found.tied, found.ahead)
    return found


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    user_kind=st.sampled_from(("normal", "whole", "zero", "tiny")),
    shape=st.tuples(st.integers(1, 9), st.integers(1, 300), st.integers(1, 20)),
    dtype=st.sampled_from((np.float32, np.float64)),
    k=st.sampled_from((None, 1, 5, 400)),
    deepest=st.sampled_from((None, 1, 7, 200)),
    extras=st.booleans(),
)
@example(
    seed=0,
    kind="last bit",
    user_kind="normal",
    shape=(5, 200, 16),
    dtype=np.float32,
    k=5,
    deepest=None,
    extras=True,
)
def test_any_world_gives_the_bits_of_the_reference(
    seed: int, kind: str, user_kind: str, shape: tuple[int, int, int], dtype: type, k: int | None,
    deepest: int | None, extras: bool,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    n_users, n_items, n_factors = shape
    users = factors(user_kind, n_users, n_factors, rng, dtype)
    items = factors(kind, n_items, n_factors, rng, dtype)
    truth, seen = rows_of(n_users, n_items, 12, rng), rows_of(n_users, n_items, 30, rng)
    asked: dict[str, Any] = {"k": k, "truth": truth, "seen": seen, "deepest": deepest}
    if extras:
        asked |= {"item_bias": rng.standard_normal(n_items), "never": rng.random(n_items) < 0.3}
        asked |= {"item_rank": rng.permutation(n_items), "ties": "by_id_desc"}
    theirs = kernels.scan(users, items, backend="reference", **asked)
    assert_same_bits(scan_on_device(users, items, **asked), theirs)


@pytest.mark.parametrize("asked", [{"k": 20}, {"deepest": 20}, {"k": 3, "deepest": None}])
@pytest.mark.parametrize("kind", ["normal", "skewed", "whole"])
def test_several_stages_and_blocks(kind: str, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    monkeypatch.setattr(cuda_scan, "FIRST_TILES", 1)
    monkeypatch.setattr(cuda_scan, "GROWTH", 2)
    monkeypatch.setattr(cuda_scan, "CASES_PER_BLOCK", 16)
    users, items = factors("normal", 40, 12, rng, np.float32), factors(kind, 2000, 12, rng, np.float32)
    truth, seen = rows_of(40, 2000, 15, rng), rows_of(40, 2000, 60, rng)
    calls: list[tuple[int, int]] = []
    asked = asked | {"seen": seen} | ({"truth": truth} if "deepest" in asked else {})
    found = scan_on_device(users, items, progress=lambda done, of: calls.append((done, of)), **asked)
    assert_same_bits(found, kernels.scan(users, items, backend="reference", **asked))
    assert calls == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("more_room", [1, 400])
def test_rows_whose_buffers_overflow_are_tried_again_then_decided_on_the_cpu(
    more_room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    monkeypatch.setattr(cuda_scan, "MIN_CAPACITY", 2)
    monkeypatch.setattr(cuda_scan, "RETRY_CAPACITY_FACTOR", more_room)
    on_cpu: list[int] = []
    decide = cuda_scan._on_cpu
    monkeypatch.setattr(
        cuda_scan,
        "_on_cpu",
        lambda part, execution: (on_cpu.append(part.n_cases), decide(part, execution))[1],
    )
    users, items = factors("normal", 12, 4, rng, np.float32), factors("clones", 900, 4, rng, np.float32)
    truth, seen = rows_of(12, 900, 9, rng), rows_of(12, 900, 9, rng)
    for asked in ({"k": 5}, {"k": None}, {"k": 5, "deepest": 7}):
        theirs = kernels.scan(users, items, truth=truth, seen=seen, backend="reference", **asked)
        assert_same_bits(scan_on_device(users, items, truth=truth, seen=seen, **asked), theirs)
    assert bool(on_cpu) == (more_room == 1)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [1, 6])
def test_any_layout_and_rows_in_any_order(n: int) -> None:
    """A single row keeps the negative stride of a matrix turned round, and torch takes none."""
    rng = np.random.default_rng(8)
    users, items = factors("whole", n, 4, rng, np.float32)[::-1], factors("whole", n, 4, rng, np.float32)
    items.flags.writeable = False
    truth = np.arange(n + 1), np.arange(n, dtype=np.int32)
    for asked in ({"k": 3}, {"k": 3, "truth": truth}, {"truth": truth, "user_rows": np.arange(n)[::-1]}):
        theirs = kernels.scan(users, items[::-1, ::-1], backend="reference", **asked)
        assert_same_bits(scan_on_device(users, items[::-1, ::-1], **asked), theirs)


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("kind", ["normal", "alike", "alternating", "skewed"])
@pytest.mark.parametrize("n_factors", [7, 64, 128, 300])
def test_fast_scores_stay_within_a_tenth_of_their_bound(kind: str, n_factors: int, split: bool) -> None:
    """Rounding to half precision reaches its bound on single factors only; sums of many stay far below."""
    rng = np.random.default_rng(n_factors)
    users, items = (np.abs(rng.standard_normal((n, n_factors))) for n in (64, 1024))
    if kind == "normal":
        users, items = (rng.standard_normal(x.shape) for x in (users, items))
    if kind == "alternating":
        users[:, ::2] *= -1
    if kind == "skewed":
        items = factors("skewed", 1024, n_factors, rng, np.float64)
    worst = worst_error(users.astype(np.float32), items.astype(np.float32), split=split)
    assert 0 < worst < (1.0 if n_factors < 16 else 0.5)


def worst_error(users: np.ndarray, items: np.ndarray, *, split: bool) -> float:
    """The largest share of its bound that a fast score is off by; every score is made to be an entry."""
    none = dict.fromkeys(("k", "truth", "seen", "eligible", "item_bias", "never", "item_rank", "progress"))
    catalogue = pack_items(
        torch, as_problem(users, items, ties="by_id", **none), torch.device(DEVICE), split=split
    )
    mine = torch.from_numpy(users).to(DEVICE)
    rows, exponents = pack_users(torch, mine, has_bias=False, split=split)
    n, error_bound = len(users), catalogue.error_bound
    found = torch_pass.PassOutputs(
        torch.zeros((0, n), dtype=torch.int32, device=DEVICE),
        torch.zeros((n, catalogue.n_tiles * 128), dtype=torch.int32, device=DEVICE),
        torch.zeros((n, catalogue.n_tiles * 128), dtype=torch.float32, device=DEVICE),
        torch.zeros(n, dtype=torch.int32, device=DEVICE),
    )
    asked = torch_pass.PassInputs(
        rows,
        torch.empty((0, n), dtype=torch.float32, device=DEVICE),
        torch.zeros(n, dtype=torch.int32, device=DEVICE),
        torch.full((n,), -torch.inf, device=DEVICE),
        torch.full((n,), catalogue.n_tiles, dtype=torch.int32, device=DEVICE),
        True,
    )
    kernel_module().sweep(torch, asked, catalogue, found, (0, catalogue.n_tiles))
    assert (found.n == len(items)).all()
    at = found.at[:, : len(items)].long()
    tile = at // 128
    exact = users.astype(np.float64) @ items.astype(np.float64).T
    scale = catalogue.scale.double()[tile].cpu().numpy()
    exponent = (exponents.cpu().numpy() + catalogue.exponent).astype(np.float64)[:, None]
    true = np.take_along_axis(exact, catalogue.item_at[at].cpu().numpy(), axis=1) * scale * 2.0**-exponent
    norms = rows.norm[:, None] * catalogue.rows.norm[tile]
    sums = rows.norm_1[:, None] + catalogue.rows.norm_1[tile]
    bound = (error_bound.c * norms + error_bound.a * sums + error_bound.e).double().cpu().numpy()
    off = np.abs(found.score[:, : len(items)].double().cpu().numpy() - true)
    return float((off / bound).max())


def test_evaluate_takes_the_backend_or_says_why_no_gpu() -> None:
    """Lists and scores are ranked on the CPU, but without a GPU they say so too."""
    factors_ = np.array(
        [[1.0, 0.2, 0.1], [0.3, 1.0, 0.2], [0.1, 0.4, 1.0]]
    )  # no two scores of a user are equal
    model = recsys.Factors(factors_, factors_)
    lists = {0: [0, 1], 1: [2, 1], 2: [1, 0]}
    truth = {0: [0], 1: [1], 2: [0]}
    for predictions in (model, recsys.Scores(factors_ @ factors_.T), lists):
        asked = ["mrr@2", "ndcg@2"] if predictions is lists else ["mrr", "ndcg@2", "auc"]
        if why_no_gpu() is None:
            ours, theirs = (
                recsys.evaluate(predictions, truth, asked, backend=b) for b in ("cuda", "reference")
            )
            assert dict(ours.overall) == dict(theirs.overall)
            continue
        with pytest.raises(errors.RecsysError, match="backend='cuda' was asked for, but "):
            recsys.evaluate(predictions, truth, asked, backend="cuda")
    assert ("cuda: not usable" in str(recsys.show_backends())) == (why_no_gpu() is not None)
