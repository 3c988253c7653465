"""One scan on a GPU: pack the items, then for each block the fast pass and the exact scores."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from recsys.errors import RecsysError
from recsys.kernels.backend import Execution, kernel_of
from recsys.kernels.cuda.block import UserBlock, capacity_for
from recsys.kernels.cuda.packed_rows import PackedItems, pack_items
from recsys.kernels.kernel_results import Csr, Int64s, ScanResult, close_gaps
from recsys.kernels.scan_problem import ScanProblem

CASES_PER_BLOCK, ENTRIES_PER_BLOCK = 32_768, 1 << 25
# Cases whose buffer overflowed are tried once more with a buffer this many times as long.
RETRY_CAPACITY_FACTOR = 16
# Up to this place the place of a truth item is read from a list; beyond, counting is cheaper than long lists.
MAX_LISTED_PLACES = 128


def scan(problem: ScanProblem, execution: Execution, *, device: str = "cuda") -> ScanResult:
    """Lists and rank counts of all cases; `device="cpu"` runs the same steps in plain torch."""
    if problem.eligible is not None or not (problem.n_cases and problem.n_items and problem.items.shape[1]):
        return _on_cpu(problem, execution)
    try:
        return _scan_on_device(problem, execution, device)
    except RuntimeError as error:
        if "out of memory" not in str(error):
            raise
        raise RecsysError(
            f"the GPU has too little memory for {problem.n_items:,} x {problem.items.shape[1]} item factors.",
            hint="Use backend='native'; the result is the same bits.",
        ) from error


def _scan_on_device(problem: ScanProblem, execution: Execution, device: str) -> ScanResult:
    torch: Any = import_module("torch")
    kernels: Any = import_module(
        f"recsys.kernels.cuda.{'triton_kernels' if device == 'cuda' else 'torch_pass'}"
    )
    counts = problem.truth is not None and (problem.deepest is None or problem.deepest > MAX_LISTED_PLACES)
    catalogue = pack_items(torch, problem, torch.device(device), split=counts)
    if not catalogue.n:
        return _on_cpu(problem, execution)
    capacity = capacity_for(max(problem.k or 0, problem.deepest or 0), counts=counts)
    tools = torch, kernels
    results, undecided = _scan_blocks(tools, problem, catalogue, capacity, counts=counts)
    if undecided.size:
        part = _restrict_to_cases(problem, undecided)
        found, again = _scan_blocks(tools, part, catalogue, capacity * RETRY_CAPACITY_FACTOR, counts=counts)
        _write_results(problem, results, undecided, close_gaps(found, part.k or 0))
        undecided = undecided[again]
    if undecided.size:
        # Cases with more near-ties than a buffer holds are decided on the CPU.
        _write_results(
            problem, results, undecided, _on_cpu(_restrict_to_cases(problem, undecided), execution)
        )
    return close_gaps(results, problem.k or 0)


def _scan_blocks(
    tools: tuple[Any, Any], problem: ScanProblem, catalogue: PackedItems, capacity: int, *, counts: bool
) -> tuple[ScanResult, Int64s]:
    """All cases block by block, with gaps in the lists; and the cases whose buffers overflowed."""
    results = _empty_result(problem)
    n_per_block = max(1, min(CASES_PER_BLOCK, ENTRIES_PER_BLOCK // capacity))
    starts = range(0, problem.n_cases, n_per_block)
    undecided: list[Int64s] = [np.empty(0, np.int64)]
    for n_done, start in enumerate(starts, 1):
        cases = range(start, min(start + n_per_block, problem.n_cases))
        block = UserBlock(tools, problem, catalogue, cases, counts=counts)
        undecided.append(block.run(results, capacity))
        if problem.progress is not None:
            problem.progress(n_done, len(starts))
    return results, np.concatenate(undecided)


def _empty_result(problem: ScanProblem) -> ScanResult:
    """Arrays for the results; lists have k places per case until the gaps are closed."""
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


def _write_results(problem: ScanProblem, results: ScanResult, cases: Int64s, part: ScanResult) -> None:
    """Write the results of some cases into those of all."""
    k = problem.k or 0
    results.n_candidates[cases] = part.n_candidates
    lengths = np.diff(part.list_indptr)
    results.list_indptr[cases] = lengths
    place = np.arange(part.list_items.size) - np.repeat(part.list_indptr[:-1], lengths)
    target = np.repeat(cases * k, lengths) + place
    results.list_items[target], results.list_scores[target] = part.list_items, part.list_scores
    if problem.truth is not None:
        target = _entry_positions(problem.truth, cases)
        for name in ("above", "tied", "ahead", "truth_scores"):
            getattr(results, name)[target] = getattr(part, name)


def _restrict_to_cases(problem: ScanProblem, cases: Int64s) -> ScanProblem:
    """The same problem for some of its cases."""
    chosen = cases if problem.user_rows is None else problem.user_rows[cases]
    truth, seen = (
        None if rows is None else _rows_of_cases(rows, cases) for rows in (problem.truth, problem.seen)
    )
    return replace(problem, user_rows=chosen, truth=truth, seen=seen, progress=None)


def _rows_of_cases(rows: Csr, cases: Int64s) -> Csr:
    lengths = np.diff(rows[0])[cases]
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return indptr, rows[1][_entry_positions(rows, cases)]


def _entry_positions(rows: Csr, cases: Int64s) -> Int64s:
    """The positions of the entries of some cases, case after case."""
    lengths = np.diff(rows[0])[cases]
    first = np.repeat(rows[0][cases] - (np.cumsum(lengths) - lengths), lengths)
    entries: Int64s = first + np.arange(lengths.sum())
    return entries


def _on_cpu(problem: ScanProblem, execution: Execution) -> ScanResult:
    result: ScanResult = kernel_of("auto", "scan")(problem, execution)
    return result
