"""The compiled kernels: calls with keywords, results in arrays that NumPy owns."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from recsys.errors import InputError, UnknownNameError
from recsys.kernels import reference_backend
from recsys.kernels.backend import BACKENDS, PRUNE_MODES, Backend, Execution, ScoreProblem
from recsys.kernels.kernel_results import Csr, Factors, Matches, ScanResult, close_gaps
from recsys.kernels.scan_problem import ScanProblem

MAX_FACTORS = 1 << 20
NO_LIMIT = 2**63 - 1


@cache
def load() -> tuple[Any, str]:
    """The compiled module, or None, and what to say about it."""
    try:
        module = import_module("recsys.kernels._native")
    except ImportError as error:
        return None, f"the compiled kernels cannot be imported ({error}), so NumPy does the work"
    return module, "the compiled kernels are installed"


def why_not() -> str | None:
    """Why the compiled kernels cannot be used; None where they can."""
    module, why = load()
    return why if module is None else None


def level_of(cpu_level: str | None) -> str:
    """The CPU level by the name the compiled module knows; an empty name is the best one."""
    if cpu_level and cpu_level not in (known := load()[0].cpu_levels()):
        raise UnknownNameError("cpu_level", cpu_level, known)
    return cpu_level or ""


def match_lists(lists: Csr, truth: Csr, execution: Execution) -> Matches:
    """Find every list entry that is in the truth of its case."""
    at, truth_at, case, repeat, n_repeated, first_repeated = load()[0].match_lists(
        lists, truth, threads=execution.n_threads(lists[1].size), cpu_level=level_of(execution.cpu_level)
    )
    return Matches(at, truth_at, case, repeat.view(np.bool_), n_repeated, first_repeated)


def scan(problem: ScanProblem, execution: Execution) -> ScanResult:
    """Lists and rank counts of all cases."""
    if problem.users.shape[1] >= MAX_FACTORS:
        raise InputError(f"{problem.users.shape[1]} factors; the native scan takes fewer than {MAX_FACTORS}.")
    memory_budget = int(execution.memory_budget)
    columns = load()[0].scan(
        problem.users,
        _with_contiguous_rows(problem.items, memory_budget),
        user_rows=problem.user_rows,
        k=problem.k or 0,
        deepest=NO_LIMIT if problem.deepest is None else min(problem.deepest, NO_LIMIT),
        truth=problem.truth,
        seen=problem.seen,
        eligible=problem.eligible,
        bias=problem.bias,
        never=None if problem.never is None else problem.never.view(np.uint8),
        tie_key=problem.tie_key,
        largest=problem.largest,
        threads=execution.n_threads(),
        memory_budget=memory_budget,
        prune=PRUNE_MODES[execution.prune],
        cpu_level=level_of(execution.cpu_level),
        progress=problem.progress,
    )
    return close_gaps(ScanResult(*columns), problem.k or 0)


def rank_scores(problem: ScoreProblem, execution: Execution) -> ScanResult:
    """Lists and counts of every row; in NumPy if no float type of the kernels represents all scores."""
    float_type = _float_type_for(problem.scores.dtype)
    if float_type is None or not problem.scores.size:
        return reference_backend.rank_scores(problem, execution)
    cpu_level = level_of(execution.cpu_level)
    try:
        columns = load()[0].rank_scores(
            np.require(problem.scores, float_type, ("C", "A")),
            problem.candidate.view(np.uint8),
            rank=problem.item_rank,
            truth=problem.truth,
            k=problem.k,
            threads=execution.n_threads(problem.scores.size),
            cpu_level=cpu_level,
        )
    except ValueError as error:  # the one thing left to find: a score that is no number
        raise InputError(f"{error}.") from error
    return close_gaps(ScanResult(*columns), problem.k)


def _float_type_for(dtype: Any) -> Any:
    """The float type of the kernels that represents every number of a type; None if there is none."""
    if dtype.kind not in "fiub" or (dtype.kind in "iu" and dtype.itemsize == 8):
        return None
    return next((wide for wide in (np.float32, np.float64) if np.can_cast(dtype, wide)), None)


def _with_contiguous_rows(items: Factors, memory_budget: int) -> Factors:
    """Items with contiguous rows, if a copy is small: exact scores read single rows."""
    if items.strides[1] != items.itemsize and items.nbytes <= memory_budget // 2:
        return np.ascontiguousarray(items)
    return items


BACKENDS["native"] = Backend(
    "native", why_not, match_lists=match_lists, scan=scan, rank_scores=rank_scores, preference=2
)
