"""Calls the compiled scan; the results are allocated here, so that NumPy owns them."""

from __future__ import annotations

from typing import Any

import numpy as np

from recsys.errors import InputError, UnknownNameError
from recsys.kernels.kernel_results import Csr, Factors, Int64s, ScanResult
from recsys.kernels.scan_problem import ScanProblem

PRUNE_MODES: dict[bool | str, int] = {False: 0, True: 1, "auto": 2}
MAX_FACTORS = 1 << 20
NO_LIMIT = 2**63 - 1
PLACES_PER_STEP = 1 << 20


def scan(
    native: Any,
    problem: ScanProblem,
    *,
    threads: int,
    memory_budget: int,
    prune: Any,
    cpu_level: str | None,
) -> ScanResult:
    """Run the compiled scan, then close the gaps that lists shorter than k leave."""
    if problem.users.shape[1] >= MAX_FACTORS:
        raise InputError(f"{problem.users.shape[1]} factors; the native scan takes fewer than {MAX_FACTORS}.")
    k, n_cases = problem.k or 0, problem.n_cases
    n_truth = 0 if problem.truth is None else problem.truth[1].size
    listed, scores = np.empty(n_cases * k, np.int32), np.empty(n_cases * k, np.float64)
    lengths, n_candidates = np.zeros(n_cases, np.int64), np.zeros(n_cases, np.int64)
    above, tied, ahead = (np.zeros(n_truth, np.int64) for _ in range(3))
    truth_scores = np.zeros(n_truth, np.float64)
    native.scan(
        problem.users,
        problem.user_rows,
        _rows_contiguous(problem.items, memory_budget),
        k,
        NO_LIMIT if problem.deepest is None else problem.deepest,
        *_indptr_and_items(problem.truth),
        *_indptr_and_items(problem.seen),
        *_indptr_and_items(problem.eligible),
        problem.bias,
        None if problem.never is None else problem.never.view(np.uint8),
        problem.tie_key,
        problem.largest,
        listed,
        scores,
        lengths,
        above,
        tied,
        ahead,
        truth_scores,
        n_candidates,
        threads,
        memory_budget,
        _prune_mode(prune),
        cpu_level or "",
        problem.progress,
    )
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    if indptr[-1] != listed.size:
        listed, scores = _close_gaps(listed, lengths, k), _close_gaps(scores, lengths, k)
    return ScanResult(indptr, listed, scores, above, tied, ahead, truth_scores, n_candidates)


def _close_gaps(places: Any, lengths: Int64s, k: int) -> Any:
    """Remove the empty places of k per case; in place, since lists may be most of the memory."""
    step, end = max(1, PLACES_PER_STEP // k), 0
    for start in range(0, lengths.size, step):
        filled = np.arange(k) < lengths[start : start + step, None]
        part = places[start * k : (start + step) * k][filled.ravel()]
        places[end : end + part.size] = part
        end += part.size
    places.resize(end, refcheck=False)
    return places


def _prune_mode(prune: Any) -> int:
    if isinstance(prune, bool | str) and prune in PRUNE_MODES:
        return PRUNE_MODES[prune]
    raise UnknownNameError("prune", prune, ("True", "False", "auto"))


def _indptr_and_items(rows: Csr | None) -> tuple[Any, Any]:
    return (None, None) if rows is None else rows


def _rows_contiguous(items: Factors, memory_budget: int) -> Factors:
    """Items with contiguous rows, if a copy is small: exact scores read single rows."""
    if items.strides[1] != items.itemsize and items.nbytes <= memory_budget // 2:
        return np.ascontiguousarray(items)
    return items
