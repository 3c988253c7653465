"""The ranks of the judged items: `match_lists` for ready lists, `scan` for factors, `rank_scores` for scores.

All backends give the same arrays to the last bit. `code_strings`, `place_rows`, `rank_dicts`, `hold_truth`
and `sum_slices` are short cuts of the compiled module, which return None where they do not apply; see
`native_backend`.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from recsys.errors import CutoffError, InputError
from recsys.kernels import cuda, native_backend  # these register their backends, and the reference
from recsys.kernels.backend import (
    BACKENDS,
    Backend,
    DictRanks,
    Execution,
    Int64s,
    Matches,
    PlacedRows,
    Progress,
    ScanResult,
    ScoreProblem,
    Ties,
    as_item_rows,
    as_per_item,
    as_problem,
    as_readable,
    as_rows,
    is_positive_whole,
    kernel_of,
    to_array,
)
from recsys.kernels.native_backend import (
    Order,
    code_strings,
    dict_rows,
    hold_truth,
    place_rows,
    rank_dicts,
    sum_slices,
)
from recsys.kernels.reference_backend import exact_floats

__all__ = [
    "BACKENDS",
    "Backend",
    "Backends",
    "DictRanks",
    "Matches",
    "Order",
    "PlacedRows",
    "ScanResult",
    "backends",
    "code_strings",
    "dict_rows",
    "hold_truth",
    "match_lists",
    "place_beyond",
    "place_rows",
    "rank_dicts",
    "rank_scores",
    "scan",
    "show_backends",
    "sum_slices",
]

MEMORY_BUDGET = 64 << 20


class Backends(NamedTuple):
    """The backend in use, and why."""

    in_use: str
    native: bool
    cpu_level: str | None
    cpu_levels: tuple[str, ...]
    why: str
    gpu: str

    def __str__(self) -> str:
        levels = f"\nCPU levels: {', '.join(self.cpu_levels)}" if self.cpu_levels else ""
        return f"in use: {self.in_use}, because {self.why}{levels}\ncuda: {self.gpu}"

    def __repr__(self) -> str:
        return str(self)


def backends() -> Backends:
    """Say which backend `auto` stands for on this machine, and why."""
    module, why = native_backend.load()
    reason = cuda.why_no_gpu()
    gpu = f"not usable, because {reason}" if reason else "usable; ask for it with backend='cuda'"
    if module is None:
        return Backends("reference", False, None, (), why, gpu)
    levels = tuple(module.cpu_levels())
    return Backends("native", True, levels[-1], levels, f"{why}; this CPU runs the {levels[-1]} tile", gpu)


show_backends = backends


def match_lists(
    list_indptr: Any,
    list_items: Any,
    truth_indptr: Any,
    truth_items: Any,
    *,
    threads: int | None = None,
    backend: str = "auto",
    cpu_level: str | None = None,
) -> Matches:
    """Find every list entry that is a judged item of its case, and every repeated entry.

    Rows are CSR: the list of case c is ``list_items[list_indptr[c]:list_indptr[c + 1]]``, its truth
    likewise. Truth items must be ascending and unique within a case; the caller ensures it.

    >>> result = match_lists([0, 3, 5], [7, 2, 9, 4, 4], [0, 2, 3], [2, 9, 4])
    >>> result.at.tolist(), result.truth.tolist(), result.repeat.tolist()
    ([1, 2, 3, 4], [0, 1, 2, 2], [False, False, False, True])
    >>> result.n_repeated, result.first_repeated
    (1, 4)
    """
    execution = Execution(threads, cpu_level=cpu_level)
    lists = as_rows("lists", list_indptr, list_items)
    truth = as_rows("truth", truth_indptr, truth_items, n_cases=lists[0].size - 1)
    result: Matches = kernel_of(backend, "match_lists")(lists, truth, execution)
    return result


def scan(
    users: Any,
    items: Any,
    *,
    user_rows: Any = None,
    k: int | None = None,
    truth: Any = None,
    deepest: int | None = None,
    seen: Any = None,
    item_bias: Any = None,
    never: Any = None,
    eligible: Any = None,
    item_rank: Any = None,
    ties: Ties = "by_id",
    threads: int | None = None,
    backend: str = "auto",
    memory_budget: float = MEMORY_BUDGET,
    prune: bool | Literal["auto"] = "auto",
    progress: Progress | None = None,
    cpu_level: str | None = None,
) -> ScanResult:
    """Rank all items for every case in one pass that never holds users x items scores.

    The score of a pair is the float64 sum of its products in factor order, plus ``item_bias``. With
    ``k`` the best candidates are listed, with ``truth`` each truth item's place is counted. ``truth``,
    ``seen`` and ``eligible`` are (indptr, items) with one row per case; seen and eligible ascending.
    A case is a row of ``users``; with ``user_rows`` only these rows, in this order, without a copy.
    A candidate is an item that is not seen, not ``never`` and, if ``eligible`` is passed, in its row.
    With ``deepest`` a truth item with that many candidates above it is not counted further: it gets a place
    of its own behind them, for callers that read the first ``deepest`` places only.
    Equal scores are ordered by ``item_rank`` (default: the index). No other argument changes the result:
    threads, backend, memory_budget, prune and cpu_level change the time it takes only.

    >>> users, items = [[1.0, 0.0], [0.0, 1.0]], [[3.0, 1.0], [2.0, 2.0], [2.0, 5.0]]
    >>> result = scan(users, items, k=2, truth=([0, 1, 2], [1, 0]), seen=([0, 1, 1], [0]))
    >>> result.list_indptr.tolist(), result.list_items.tolist(), result.list_scores.tolist()
    ([0, 2, 4], [1, 2, 2, 1], [2.0, 2.0, 5.0, 2.0])
    >>> result.above.tolist(), result.tied.tolist(), result.n_candidates.tolist()
    ([0, 2], [2, 1], [2, 3])
    """
    run = kernel_of(backend, "scan")
    execution = Execution(threads, memory_budget, prune, cpu_level)
    with exact_floats():
        problem = as_problem(
            users,
            items,
            user_rows=user_rows,
            k=k,
            truth=truth,
            seen=seen,
            eligible=eligible,
            item_bias=item_bias,
            never=never,
            item_rank=item_rank,
            ties=ties,
            progress=progress,
            deepest=deepest,
        )
    result: ScanResult = run(problem, execution)
    if problem.deepest is not None and problem.truth is not None:
        place_beyond(problem.deepest, problem.truth[0], result.above, result.tied, result.ahead)
    return result


def place_beyond(deepest: int, indptr: Int64s, above: Any, tied: Any, ahead: Any) -> None:
    """Give truth items with at least `deepest` candidates above them places behind these, in place."""
    if not is_positive_whole(deepest):
        raise CutoffError(f"deepest is {deepest!r}; give a whole number from 1.")
    for name, counts in (("above", above), ("tied", tied), ("ahead", ahead)):
        is_column = isinstance(counts, np.ndarray) and counts.dtype == np.int64 and counts.ndim == 1
        if not (is_column and counts.flags.writeable and counts.shape == above.shape):
            raise InputError(f"{name} must be int64 counts, as many as there are truth items.", table=name)
    starts, _ = as_rows("truth", indptr, np.broadcast_to(np.int32(0), above.shape))
    if deepest > np.iinfo(np.int64).max:
        return  # no count reaches it
    beyond = np.flatnonzero(above >= deepest)
    case = np.searchsorted(starts, beyond, side="right") - 1
    above[beyond] = int(deepest) + (beyond - starts[case])
    tied[beyond], ahead[beyond] = 1, 0


def rank_scores(
    scores: Any,
    candidate: Any,
    *,
    k: int | None = None,
    truth: Any = None,
    item_rank: Any = None,
    threads: int | None = None,
    backend: str = "auto",
    cpu_level: str | None = None,
) -> ScanResult:
    """Return the result of `scan` for given scores: one row per case, one column per item.

    Scores of candidates are finite numbers of any type (the caller ensures it), compared as they are. Among
    equal scores the smaller `item_rank` goes first, among equal ranks the smaller index.

    >>> result = rank_scores([[3.0, 9.0, 9.0]], [[True, True, True]], k=2, truth=([0, 2], [0, 2]))
    >>> result.list_items.tolist(), result.above.tolist(), result.ahead.tolist()
    ([1, 2], [2, 0], [0, 1])
    """
    run = kernel_of(backend, "rank_scores")
    execution = Execution(threads, cpu_level=cpu_level)
    matrix, is_candidate = to_array("scores", scores), to_array("candidate", candidate)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise InputError(
            f"scores are {matrix.dtype} of shape {matrix.shape}; expected numbers, one row per case.",
            table="scores",
        )
    if is_candidate.shape != matrix.shape or is_candidate.dtype.kind not in "biu":
        raise InputError(
            f"candidate is {is_candidate.dtype} of shape {is_candidate.shape}; "
            f"expected a bool per score, of shape {matrix.shape}.",
            table="candidate",
        )
    if k is not None and not is_positive_whole(k):
        raise CutoffError(f"k is {k!r}; give a whole number from 1, or None for no lists.")
    n_rows, n_items = matrix.shape
    if n_items >= 2**31:
        raise InputError(f"{n_items} items; the kernels count items in int32.")
    rank = as_per_item("item_rank", item_rank, n_items, np.int64)
    if rank is None:
        rank = np.arange(n_items)
    elif (np.diff(np.sort(rank)) == 0).any():
        rank = np.argsort(np.argsort(rank, kind="stable"))  # without equal ranks
    no_truth = np.zeros(n_rows + 1, np.int64), np.zeros(0, np.int32)
    problem = ScoreProblem(
        matrix,
        as_readable(is_candidate, np.bool_),
        0 if k is None else min(int(k), n_items),
        no_truth if truth is None else as_item_rows("truth", truth, n_rows, n_items),
        rank,
    )
    result: ScanResult = run(problem, execution)
    return result


def __dir__() -> list[str]:
    return __all__
