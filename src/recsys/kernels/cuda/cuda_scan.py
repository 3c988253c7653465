"""One scan on a GPU: pack the items, then block by block the fast pass and the second look."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from recsys.errors import RecsysError
from recsys.kernels import native_scan, reference_scan
from recsys.kernels.backend import n_threads, native_module, why_no_gpu
from recsys.kernels.cuda.block import UserBlock, capacity_for
from recsys.kernels.cuda.packed_rows import PackedItems, pack_items
from recsys.kernels.kernel_results import Csr, Int64s, ScanResult, closed_up
from recsys.kernels.scan_problem import ScanProblem

CASES_PER_BLOCK, ENTRIES_PER_BLOCK = 32_768, 1 << 25
# Cases whose buffer did not suffice are tried once more with one so many times as long.
MORE_ROOM = 16
# Up to here a truth item's place is read off a list; beyond, counting costs less than longer lists would.
LISTED_PLACES = 128


def scan(problem: ScanProblem, *, memory_budget: int, device: str = "cuda") -> ScanResult:
    """Lists and rank counts of all cases; `device="cpu"` runs the same steps without kernels of their own."""
    if device == "cuda" and (reason := why_no_gpu()):
        raise RecsysError(
            f"backend='cuda' was asked for, but {reason}.",
            hint="Use backend='auto'; the result is the same bits everywhere.",
        )
    if problem.eligible is not None or not (problem.n_cases and problem.n_items and problem.items.shape[1]):
        return _on_cpu(problem, memory_budget)
    try:
        return _scan(problem, memory_budget, device)
    except RuntimeError as error:
        if "out of memory" not in str(error):
            raise
        raise RecsysError(
            f"the GPU has too little memory for {problem.n_items:,} x {problem.items.shape[1]} item factors.",
            hint="Use backend='native'; the result is the same bits.",
        ) from error


def _scan(problem: ScanProblem, memory_budget: int, device: str) -> ScanResult:
    torch: Any = import_module("torch")
    kernels: Any = import_module(
        f"recsys.kernels.cuda.{'triton_kernels' if device == 'cuda' else 'torch_pass'}"
    )
    counts = problem.truth is not None and (problem.deepest is None or problem.deepest > LISTED_PLACES)
    catalogue = pack_items(torch, problem, torch.device(device), split=counts)
    if not catalogue.n:
        return _on_cpu(problem, memory_budget)
    capacity = capacity_for(max(problem.k or 0, problem.deepest or 0), counts=counts)
    tools = torch, kernels
    answers, given_up = _pass(tools, problem, catalogue, capacity, counts=counts)
    if given_up.size:
        part = _only(problem, given_up)
        found, again = _pass(tools, part, catalogue, capacity * MORE_ROOM, counts=counts)
        _put(problem, answers, given_up, closed_up(found, part.k or 0))
        given_up = given_up[again]
    if given_up.size:
        # Cases with more near-ties than any buffer holds: the CPU's exact pass decides.
        _put(problem, answers, given_up, _on_cpu(_only(problem, given_up), memory_budget))
    return closed_up(answers, problem.k or 0)


def _pass(
    tools: tuple[Any, Any], problem: ScanProblem, catalogue: PackedItems, capacity: int, *, counts: bool
) -> tuple[ScanResult, Int64s]:
    """All cases block by block, with gaps in the lists; the cases whose buffers did not suffice are named."""
    answers = _empty(problem)
    n_at_once = max(1, min(CASES_PER_BLOCK, ENTRIES_PER_BLOCK // capacity))
    starts = range(0, problem.n_cases, n_at_once)
    given_up: list[Int64s] = [np.empty(0, np.int64)]
    for done, start in enumerate(starts):
        cases = range(start, min(start + n_at_once, problem.n_cases))
        block = UserBlock(tools, problem, catalogue, cases, counts=counts)
        given_up.append(block.run(answers, capacity))
        if problem.progress is not None:
            problem.progress(done + 1, len(starts))
    return answers, np.concatenate(given_up)


def _empty(problem: ScanProblem) -> ScanResult:
    """Room for the answers; lists have k places a case until the gaps are closed."""
    n_truth = 0 if problem.truth is None else problem.truth[1].size
    n_places = problem.n_cases * (problem.k or 0)
    return ScanResult(
        np.zeros(problem.n_cases, np.int64),
        np.zeros(n_places, np.int32),
        np.zeros(n_places, np.float64),
        np.full(n_truth, -1, np.int64),
        np.zeros(n_truth, np.int64),
        np.zeros(n_truth, np.int64),
        np.zeros(n_truth, np.float64),
        np.zeros(problem.n_cases, np.int64),
    )


def _put(problem: ScanProblem, answers: ScanResult, cases: Int64s, found: ScanResult) -> None:
    """The answers of some cases into those of all."""
    k = problem.k or 0
    answers.n_candidates[cases] = found.n_candidates
    lengths = np.diff(found.list_indptr)
    answers.list_indptr[cases] = lengths
    place = np.arange(found.list_items.size) - np.repeat(found.list_indptr[:-1], lengths)
    to = np.repeat(cases * k, lengths) + place
    answers.list_items[to], answers.list_scores[to] = found.list_items, found.list_scores
    if problem.truth is not None:
        to = _entries_of(problem.truth, cases)
        for name in ("above", "tied", "ahead", "truth_scores"):
            getattr(answers, name)[to] = getattr(found, name)


def _only(problem: ScanProblem, cases: Int64s) -> ScanProblem:
    def rows(given: Csr | None) -> Csr | None:
        if given is None:
            return None
        lengths = np.diff(given[0])[cases]
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]), given[1][
            _entries_of(given, cases)
        ]

    chosen = cases if problem.user_rows is None else problem.user_rows[cases]
    return replace(
        problem, user_rows=chosen, truth=rows(problem.truth), seen=rows(problem.seen), progress=None
    )


def _entries_of(rows: Csr, cases: Int64s) -> Int64s:
    """Where the entries of these cases stand, case after case."""
    lengths = np.diff(rows[0])[cases]
    first = np.repeat(rows[0][cases] - (np.cumsum(lengths) - lengths), lengths)
    entries: Int64s = first + np.arange(lengths.sum())
    return entries


def _on_cpu(problem: ScanProblem, memory_budget: int) -> ScanResult:
    native = native_module("auto")
    if native is None:
        return reference_scan.scan(problem, memory_budget)
    return native_scan.scan(
        native,
        problem,
        threads=n_threads(None),
        memory_budget=memory_budget,
        prune="auto",
        cpu_level=None,
    )
