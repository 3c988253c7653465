"""Where the judged items landed, in two operations: `match_lists` for ready lists, `scan` for factors.

A backend implements these two and nothing else; all give the same arrays to the last bit.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from recsys.kernels import native_scan, reference, reference_scan
from recsys.kernels.backend import BackendName, Backends, backends, n_threads, native_module
from recsys.kernels.checks import as_rows
from recsys.kernels.problem import Progress, Ties, as_problem
from recsys.kernels.results import Matches, Scanned

__all__ = [
    "Backends",
    "Matches",
    "Scanned",
    "backends",
    "count_ranks",
    "match_lists",
    "scan",
    "show_backends",
    "top_k",
]

show_backends = backends

# Below this many entries a second thread costs more than it saves.
ENTRIES_PER_THREAD = 2_000_000
MEMORY_BUDGET = 64 << 20


def match_lists(
    list_indptr: Any,
    list_items: Any,
    truth_indptr: Any,
    truth_items: Any,
    *,
    threads: int | None = None,
    backend: BackendName = "auto",
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
        return reference.match_lists(*lists, *truth)
    wanted = n_threads(threads)
    if threads is None:
        wanted = min(wanted, 1 + lists[1].size // ENTRIES_PER_THREAD)
    at, found, repeat, n_repeated, first_repeated = native.match_lists(*lists, *truth, wanted)
    return Matches(at, found, repeat.view(np.bool_), n_repeated, first_repeated)


def scan(
    users: Any,
    items: Any,
    *,
    k: int | None = None,
    truth: Any = None,
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
) -> Scanned:
    """Rank all items for every case in one pass that never holds users x items scores.

    The score of a pair is the float64 sum of its products in factor order, plus ``item_bias``. With
    ``k`` the best candidates are listed, with ``truth`` each truth item's place is counted. ``truth``,
    ``seen`` and ``eligible`` are (indptr, items) with one row per case; seen and eligible ascending.
    A candidate is an item that is not seen, not ``never`` and, where ``eligible`` is given, in its row.
    Equal scores go by ``item_rank`` (default: the index). No argument but these changes the result:
    threads, backend, memory_budget, prune and cpu_level only change the time it takes.

    >>> users, items = [[1.0, 0.0], [0.0, 1.0]], [[3.0, 1.0], [2.0, 2.0], [2.0, 5.0]]
    >>> found = scan(users, items, k=2, truth=([0, 1, 2], [1, 0]), seen=([0, 1, 1], [0]))
    >>> found.list_indptr.tolist(), found.list_items.tolist(), found.list_scores.tolist()
    ([0, 2, 4], [1, 2, 2, 1], [2.0, 2.0, 5.0, 2.0])
    >>> found.above.tolist(), found.tied.tolist(), found.n_candidates.tolist()
    ([0, 2], [2, 1], [2, 3])
    """
    problem = as_problem(
        users,
        items,
        k=k,
        truth=truth,
        seen=seen,
        eligible=eligible,
        item_bias=item_bias,
        never=never,
        item_rank=item_rank,
        ties=ties,
        progress=progress,
    )
    native = native_module(backend)
    if native is None:
        return reference_scan.scan(problem, memory_budget)
    return native_scan.scan(
        native,
        problem,
        threads=n_threads(threads),
        memory_budget=memory_budget,
        prune=prune,
        cpu_level=cpu_level,
    )


def top_k(users: Any, items: Any, k: int, **options: Any) -> Scanned:
    """The k best candidates of every case; options as in `scan`."""
    return scan(users, items, k=k, **options)


def count_ranks(users: Any, items: Any, truth: Any, **options: Any) -> Scanned:
    """How many candidates stand above and level with each truth item; options as in `scan`."""
    return scan(users, items, truth=truth, **options)
