"""Where the judged items landed, in two operations: `match_lists` for ready lists, `scan` for factors.

`rank_scores` is `scan` for scores that were computed elsewhere. A backend implements these; all give the same
arrays to the last bit. Where the compiled kernels are installed there are also three short cuts for what
surrounds them: `code_strings`, `place_rows` and `sum_slices`. They give None where they do not apply, and
otherwise what the NumPy code of the caller finds.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from recsys.kernels import native_scan, reference_match, reference_scan, reference_scores
from recsys.kernels.backend import BackendName, Backends, backends, n_threads, native_module
from recsys.kernels.float_state import exact_floats
from recsys.kernels.kernel_results import Int32s, Int64s, Matches, PlacedRows, ScanResult, closed_up
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

# Below this many entries a second thread costs more than it saves.
ENTRIES_PER_THREAD = 2_000_000
# Below this many rows or numbers NumPy is done before a short cut has begun.
WORTH_A_SHORT_CUT = 1 << 12
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
    likewise. Truth items must be ascending and unique within a case (the caller sees to it).

    >>> found = match_lists([0, 3, 5], [7, 2, 9, 4, 4], [0, 2, 3], [2, 9, 4])
    >>> found.at.tolist(), found.truth.tolist(), found.repeat.tolist()
    ([1, 2, 3, 4], [0, 1, 2, 2], [False, False, False, True])
    >>> found.n_repeated, found.first_repeated
    (1, 4)
    """
    lists = as_rows("lists", list_indptr, list_items)
    truth = as_rows("truth", truth_indptr, truth_items, n_cases=lists[0].size - 1)
    native = native_module(backend)
    if native is None:
        return reference_match.match_lists(*lists, *truth)
    wanted = _threads_for(lists[1].size, threads)
    at, found, case, repeat, n_repeated, first_repeated = native.match_lists(
        *lists, *truth, wanted, cpu_level or ""
    )
    return Matches(at, found, case, repeat.view(np.bool_), n_repeated, first_repeated)


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
    A case is a row of ``users``; with ``user_rows`` only the rows named there, in that order, uncopied.
    A candidate is an item that is not seen, not ``never`` and, where ``eligible`` is given, in its row.
    With ``deepest`` a truth item that has so many candidates above it is not counted any further: it gets a
    place of its own behind them, for whoever reads the first ``deepest`` places only.
    Equal scores go by ``item_rank`` (default: the index). No argument but these changes the result:
    threads, backend, memory_budget, prune and cpu_level only change the time it takes.

    >>> users, items = [[1.0, 0.0], [0.0, 1.0]], [[3.0, 1.0], [2.0, 2.0], [2.0, 5.0]]
    >>> found = scan(users, items, k=2, truth=([0, 1, 2], [1, 0]), seen=([0, 1, 1], [0]))
    >>> found.list_indptr.tolist(), found.list_items.tolist(), found.list_scores.tolist()
    ([0, 2, 4], [1, 2, 2, 1], [2.0, 2.0, 5.0, 2.0])
    >>> found.above.tolist(), found.tied.tolist(), found.n_candidates.tolist()
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

        found = cuda_scan.scan(problem, memory_budget=memory_budget)
    elif native is None:
        with exact_floats():
            found = reference_scan.scan(problem, memory_budget)
    else:
        found = native_scan.scan(
            native,
            problem,
            threads=n_threads(threads),
            memory_budget=memory_budget,
            prune=prune,
            cpu_level=cpu_level,
        )
    if deepest is not None and problem.truth is not None:
        place_beyond(deepest, problem.truth[0], found.above, found.tied, found.ahead)
    return found


def place_beyond(deepest: int, indptr: Int64s, above: Int64s, tied: Int64s, ahead: Int64s) -> None:
    """Give truth items with at least `deepest` above them places of their own behind, in the order given."""
    far = np.flatnonzero(above >= deepest)
    case = np.searchsorted(indptr, far, side="right") - 1
    above[far] = deepest + (far - indptr[case])
    tied[far], ahead[far] = 1, 0


def top_k(users: Any, items: Any, k: int, **options: Any) -> ScanResult:
    """The k best candidates of every case; options as in `scan`."""
    return scan(users, items, k=k, **options)


def count_ranks(users: Any, items: Any, truth: Any, **options: Any) -> ScanResult:
    """How many candidates stand above and level with each truth item; options as in `scan`."""
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
    """What `scan` finds, for scores that are there already: a row a case, a column an item.

    Scores of candidates are finite numbers of any type (the caller sees to it) and are compared as they are.
    Among equal ones the smaller `item_rank` goes first.

    >>> found = rank_scores([[3.0, 9.0, 9.0]], [[True, True, True]], k=2, truth=([0, 2], [0, 2]))
    >>> found.list_items.tolist(), found.above.tolist(), found.ahead.tolist()
    ([1, 2], [2, 0], [0, 1])
    """
    matrix, open_ = np.asarray(scores), np.ascontiguousarray(candidate, dtype=np.bool_)
    n_rows, n_items = matrix.shape
    indptr, judged = ([0] * (n_rows + 1), np.zeros(0, np.int32)) if truth is None else truth
    rows = as_rows("truth", indptr, judged, n_rows)
    rank = np.arange(n_items) if item_rank is None else np.ascontiguousarray(item_rank, dtype=np.int64)
    length = min(k or 0, n_items)
    native = native_module(backend)
    wide = _holding(matrix.dtype)
    if native is None or wide is None or not matrix.size:
        return reference_scores.rank_scores(matrix, open_, length, rows, rank)
    found = ScanResult(
        np.zeros(n_rows, np.int64),
        np.empty(n_rows * length, np.int32),
        np.empty(n_rows * length, np.float64),
        np.empty(rows[1].size, np.int64),
        np.empty(rows[1].size, np.int64),
        np.empty(rows[1].size, np.int64),
        np.empty(rows[1].size, np.float64),
        np.empty(n_rows, np.int64),
    )
    native.rank_scores(
        np.ascontiguousarray(matrix, dtype=wide), open_.view(np.uint8), rank, *rows, length, *found,
        _threads_for(matrix.size, threads), cpu_level or "",
    )  # fmt: skip
    return closed_up(found, length)


def _threads_for(n_entries: int, threads: int | None) -> int:
    """As many as asked for, or as many as the work is worth."""
    wanted = n_threads(threads)
    return wanted if threads is not None else min(wanted, 1 + n_entries // ENTRIES_PER_THREAD)


def _holding(dtype: Any) -> Any:
    """The float type of the kernels that holds every number of a type; None where neither does."""
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
    """Rows with whole numbers for ids in CSR order, in one or two passes; None where it takes more.

    It takes more where an item is negative or not below `limit`, where cases are neither in ascending groups
    nor within a range of `limit`, where the ranks of a case are not 1, 2, 3, … in some order, and where
    items to be put in ascending order repeat; rows.py then does it, or says what is wrong.
    """
    native = native_module("auto")
    if native is None or len(case) < WORTH_A_SHORT_CUT:
        return None
    columns = [None if c is None else np.ascontiguousarray(c, dtype=np.int64) for c in (case, item, rank)]
    items = np.empty(len(case), np.int32)
    placed = native.place_rows(*columns, ORDERS.index(order), limit, items, cpu_level or "")
    return None if placed is None else PlacedRows(placed[0], placed[1], items, placed[2])


def code_strings(values: Any) -> tuple[Int32s, Int64s] | None:
    """A code a string by sorted order, and the row where each different one first occurs; None otherwise.

    `values`: a NumPy array of objects, or (offsets, bytes) as Arrow keeps strings. None where NumPy does as
    well, or where an object is not a plain str. Text that is no Unicode is a UnicodeEncodeError.
    """
    native = native_module("auto")
    by_bytes = isinstance(values, tuple)
    n = len(values[0]) - 1 if by_bytes else len(values)
    if native is None or n < WORTH_A_SHORT_CUT:
        return None
    found: tuple[Int32s, Int64s] | None
    found = native.code_text(*values) if by_bytes else native.code_objects(np.ascontiguousarray(values))
    return found


def sum_slices(values: Any, first: float, second: float) -> tuple[float, float, bool] | None:
    """Sums of what two shifts cut off the top of each number, and whether anything is left below.

    A shift of 1.5 * 2^e cuts off what lies above 2^(e - 52). None where NumPy does it as well.
    """
    native = native_module("auto")
    if native is None or len(values) < WORTH_A_SHORT_CUT:
        return None
    found: tuple[float, float, bool] = native.sum_slices(np.ascontiguousarray(values), first, second)
    return found


def __dir__() -> list[str]:
    return __all__
