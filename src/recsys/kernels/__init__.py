"""The ranks of the judged items: `match_lists` for ready lists, `scan` for factors, `rank_scores` for scores.

All backends give the same arrays to the last bit. The compiled kernels also have three short cuts for the
code around them: `code_strings`, `place_rows` and `sum_slices`. They return None where they do not apply, and
otherwise what the NumPy code of the caller computes.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from recsys.kernels import native_scan, reference_match, reference_scan, reference_scores
from recsys.kernels.backend import BackendName, Backends, backends, n_threads, native_module
from recsys.kernels.float_state import exact_floats
from recsys.kernels.kernel_results import Int32s, Int64s, Matches, PlacedRows, ScanResult, close_gaps
from recsys.kernels.preconditions import as_rows
from recsys.kernels.scan_problem import Progress, Ties, as_problem

__all__ = [
    "Backends",
    "Matches",
    "Order",
    "PlacedRows",
    "ScanResult",
    "backends",
    "code_strings",
    "count_ranks",
    "match_lists",
    "place_beyond",
    "place_rows",
    "rank_scores",
    "scan",
    "show_backends",
    "sum_slices",
    "top_k",
]

show_backends = backends

# With fewer entries a second thread costs more than it saves.
ENTRIES_PER_THREAD = 2_000_000
# With fewer rows or numbers NumPy is faster than a short cut.
SHORT_CUT_MIN_ROWS = 1 << 12
Order = Literal["given", "by_rank", "ascending"]
ORDERS: tuple[Order, ...] = ("given", "by_rank", "ascending")
MEMORY_BUDGET = 64 << 20


def match_lists(
    list_indptr: Any,
    list_items: Any,
    truth_indptr: Any,
    truth_items: Any,
    *,
    threads: int | None = None,
    backend: BackendName = "auto",
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
    lists = as_rows("lists", list_indptr, list_items)
    truth = as_rows("truth", truth_indptr, truth_items, n_cases=lists[0].size - 1)
    native = native_module(backend)
    if native is None:
        return reference_match.match_lists(*lists, *truth)
    n_workers = _threads_for(lists[1].size, threads)
    at, truth_at, case, repeat, n_repeated, first_repeated = native.match_lists(
        *lists, *truth, n_workers, cpu_level or ""
    )
    return Matches(at, truth_at, case, repeat.view(np.bool_), n_repeated, first_repeated)


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
    backend: BackendName = "auto",
    memory_budget: int = MEMORY_BUDGET,
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
    memory_budget = int(memory_budget)
    native = native_module("auto" if backend == "cuda" else backend)
    if backend == "cuda":
        from recsys.kernels.cuda import cuda_scan

        result = cuda_scan.scan(problem, memory_budget=memory_budget)
    elif native is None:
        with exact_floats():
            result = reference_scan.scan(problem, memory_budget)
    else:
        result = native_scan.scan(
            native,
            problem,
            threads=n_threads(threads),
            memory_budget=memory_budget,
            prune=prune,
            cpu_level=cpu_level,
        )
    if deepest is not None and problem.truth is not None:
        place_beyond(deepest, problem.truth[0], result.above, result.tied, result.ahead)
    return result


def place_beyond(deepest: int, indptr: Int64s, above: Int64s, tied: Int64s, ahead: Int64s) -> None:
    """Give truth items with at least `deepest` candidates above them places behind these, in place."""
    beyond = np.flatnonzero(above >= deepest)
    case = np.searchsorted(indptr, beyond, side="right") - 1
    above[beyond] = deepest + (beyond - indptr[case])
    tied[beyond], ahead[beyond] = 1, 0


def top_k(users: Any, items: Any, k: int, **options: Any) -> ScanResult:
    """The k best candidates of every case; options as in `scan`."""
    return scan(users, items, k=k, **options)


def count_ranks(users: Any, items: Any, truth: Any, **options: Any) -> ScanResult:
    """The number of candidates above and level with each truth item; options as in `scan`."""
    return scan(users, items, truth=truth, **options)


def rank_scores(
    scores: Any,
    candidate: Any,
    *,
    k: int | None = None,
    truth: Any = None,
    item_rank: Any = None,
    threads: int | None = None,
    backend: BackendName = "auto",
    cpu_level: str | None = None,
) -> ScanResult:
    """The result of `scan` for given scores: one row per case, one column per item.

    Scores of candidates are finite numbers of any type (the caller ensures it), compared as they are. Among
    equal scores the smaller `item_rank` goes first.

    >>> result = rank_scores([[3.0, 9.0, 9.0]], [[True, True, True]], k=2, truth=([0, 2], [0, 2]))
    >>> result.list_items.tolist(), result.above.tolist(), result.ahead.tolist()
    ([1, 2], [2, 0], [0, 1])
    """
    matrix, is_candidate = np.asarray(scores), np.ascontiguousarray(candidate, dtype=np.bool_)
    n_rows, n_items = matrix.shape
    indptr, judged = ([0] * (n_rows + 1), np.zeros(0, np.int32)) if truth is None else truth
    rows = as_rows("truth", indptr, judged, n_rows)
    rank = np.arange(n_items) if item_rank is None else np.ascontiguousarray(item_rank, dtype=np.int64)
    n_places = min(k or 0, n_items)
    native = native_module(backend)
    float_type = _float_type_for(matrix.dtype)
    if native is None or float_type is None or not matrix.size:
        return reference_scores.rank_scores(matrix, is_candidate, n_places, rows, rank)
    result = ScanResult(
        np.zeros(n_rows, np.int64),
        np.empty(n_rows * n_places, np.int32),
        np.empty(n_rows * n_places, np.float64),
        np.empty(rows[1].size, np.int64),
        np.empty(rows[1].size, np.int64),
        np.empty(rows[1].size, np.int64),
        np.empty(rows[1].size, np.float64),
        np.empty(n_rows, np.int64),
    )
    native.rank_scores(
        np.ascontiguousarray(matrix, dtype=float_type), is_candidate.view(np.uint8), rank, *rows, n_places,
        *result, _threads_for(matrix.size, threads), cpu_level or "",
    )  # fmt: skip
    return close_gaps(result, n_places)


def _threads_for(n_entries: int, threads: int | None) -> int:
    """The given number of threads, or as many as pay off for this many entries."""
    n_workers = n_threads(threads)
    return n_workers if threads is not None else min(n_workers, 1 + n_entries // ENTRIES_PER_THREAD)


def _float_type_for(dtype: Any) -> Any:
    """The float type of the kernels that represents every number of a type; None if there is none."""
    if dtype.kind not in "fiub" or (dtype.kind in "iu" and dtype.itemsize == 8):
        return None
    return next((wide for wide in (np.float32, np.float64) if np.can_cast(dtype, wide)), None)


def place_rows(
    case: Any,
    item: Any,
    rank: Any = None,
    *,
    order: Order,
    limit: int,
    cpu_level: str | None = None,
) -> PlacedRows | None:
    """Rows with whole numbers for ids in CSR order, in one or two passes; None if that is not possible.

    It is not if an item is negative or not below `limit`, if cases are neither in ascending groups nor within
    a range of `limit`, if the ranks of a case are not 1, 2, 3, … in some order, or if items to be put in
    ascending order repeat. `recsys.inputs.rows` then does it, or raises.
    """
    native = native_module("auto")
    if native is None or len(case) < SHORT_CUT_MIN_ROWS:
        return None
    columns = [None if c is None else np.ascontiguousarray(c, dtype=np.int64) for c in (case, item, rank)]
    items = np.empty(len(case), np.int32)
    placed = native.place_rows(*columns, ORDERS.index(order), limit, items, cpu_level or "")
    return None if placed is None else PlacedRows(placed[0], placed[1], items, placed[2])


def code_strings(values: Any) -> tuple[Int32s, Int64s] | None:
    """One code per string by sorted order, and the row where each distinct string first occurs.

    Args:
        values: a NumPy array of objects, or (offsets, bytes) as Arrow stores strings.

    Returns:
        None where NumPy is as fast, or if an object is not a plain str.

    Raises:
        UnicodeEncodeError: a text is not valid Unicode.
    """
    native = native_module("auto")
    is_arrow = isinstance(values, tuple)
    n = len(values[0]) - 1 if is_arrow else len(values)
    if native is None or n < SHORT_CUT_MIN_ROWS:
        return None
    coded: tuple[Int32s, Int64s] | None
    coded = native.code_text(*values) if is_arrow else native.code_objects(np.ascontiguousarray(values))
    return coded


def sum_slices(values: Any, first: float, second: float) -> tuple[float, float, bool] | None:
    """Sums of the two slices that two shifts cut off the top of each number, and whether a rest is left.

    A shift of 1.5 * 2^e cuts off the bits above 2^(e - 52). None where NumPy is as fast.
    """
    native = native_module("auto")
    if native is None or len(values) < SHORT_CUT_MIN_ROWS:
        return None
    sums: tuple[float, float, bool] = native.sum_slices(np.ascontiguousarray(values), first, second)
    return sums


def __dir__() -> list[str]:
    return __all__
