"""The compiled kernels: calls with keywords, results in arrays that NumPy owns.

In addition to the kernels of every backend, the compiled module has short cuts for the code around them:
`code_strings`, `place_rows`, `rank_dicts`, `hold_truth` and `sum_slices`. They return None where they do not
apply, and otherwise what the Python code of the caller computes. `dict_rows` has its own Python twin.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, Literal

import numpy as np

from recsys.errors import InputError, UnknownNameError
from recsys.kernels import reference_backend
from recsys.kernels.backend import (
    BACKENDS,
    PRUNE_MODES,
    Backend,
    Csr,
    DictRanks,
    DictSides,
    Execution,
    Int32s,
    Matches,
    PlacedRows,
    ScanProblem,
    ScanResult,
    ScoreProblem,
    as_readable,
    close_gaps,
    to_array,
    to_whole_numbers,
)
from recsys.records.checks import is_whole

MAX_FACTORS = 1 << 20
NO_LIMIT = 2**63 - 1
# With fewer rows or numbers NumPy is faster than a short cut.
SHORT_CUT_MIN_ROWS = 1 << 12
Order = Literal["given", "by_rank", "ascending"]
ORDERS: tuple[Order, ...] = ("given", "by_rank", "ascending")
MAX_LIMIT = 1 << 31
"""Items from here on do not fit int32."""


@cache
def load() -> tuple[Any, str]:
    """Return the compiled module, or None, and what to say about it."""
    try:
        module = import_module("recsys.kernels._native")
    except ImportError as error:
        return None, f"the compiled kernels cannot be imported ({error}), so NumPy does the work"
    return module, "the compiled kernels are installed"


def why_not() -> str | None:
    """Return why the compiled kernels cannot be used; None where they can."""
    module, why = load()
    return why if module is None else None


def level_of(cpu_level: str | None) -> str:
    """Return the CPU level by the name the compiled module knows; an empty name is the best one."""
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
    memory_budget, items = int(execution.memory_budget), problem.items
    if items.strides[1] != items.itemsize and items.nbytes <= memory_budget // 2:
        items = np.ascontiguousarray(items)  # exact scores read single rows
    columns = load()[0].scan(
        problem.users,
        items,
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
    dtype = problem.scores.dtype
    is_wide = dtype.kind in "iu" and dtype.itemsize == 8  # NumPy calls int64 to float64 a safe cast
    float_type = next((wide for wide in (np.float32, np.float64) if np.can_cast(dtype, wide)), None)
    if float_type is None or is_wide or not problem.scores.size:
        return reference_backend.rank_scores(problem, execution)
    cpu_level = level_of(execution.cpu_level)
    try:
        columns = load()[0].rank_scores(
            as_readable(problem.scores, float_type),
            problem.candidate.view(np.uint8),
            rank=problem.item_rank,
            truth=problem.truth,
            k=problem.k,
            threads=execution.n_threads(problem.scores.size),
            cpu_level=cpu_level,
        )
    except ValueError as error:  # the one thing left to find: a score that is NaN
        raise InputError(f"{error}.") from error
    return close_gaps(ScanResult(*columns), problem.k)


def place_rows(
    case: Any,
    item: Any,
    rank: Any = None,
    *,
    order: Order,
    limit: int,
    cpu_level: str | None = None,
) -> PlacedRows | None:
    """Put rows with whole numbers for ids in CSR order, in one or two passes; None if that is impossible.

    It is not if an item is negative or not below `limit`, if cases are neither in ascending groups nor within
    a range of `limit`, if the ranks of a case are not 1, 2, 3, … in some order, or if items to be put in
    ascending order repeat. `recsys.inputs.rows` then does it, or raises.
    """
    if str(order) not in ORDERS:
        raise UnknownNameError("order", order, ORDERS)
    most: Any = limit
    if not is_whole(most, 0):
        raise InputError(f"limit is {most!r}; expected a whole number from 0.")
    cases, items = to_whole_numbers("case", case), to_whole_numbers("item", item)
    ranks = None if rank is None else to_whole_numbers("rank", rank)
    if len(items) != len(cases) or (ranks is not None and len(ranks) != len(cases)):
        raise InputError(f"{len(cases)} cases, but {len(items)} items; columns must be equally long.")
    if ranks is None and order == "by_rank":
        raise InputError("order='by_rank' needs ranks.", table="rank")
    native, _ = load()
    if native is None or len(cases) < SHORT_CUT_MIN_ROWS:
        return None
    width = np.int32 if cases.dtype == items.dtype == np.int32 else np.int64
    placed = native.place_rows(
        as_readable(cases, width),
        as_readable(items, width),
        None if ranks is None else as_readable(ranks, np.int64),
        order=ORDERS.index(order),
        limit=min(int(most), MAX_LIMIT),
        cpu_level=level_of(cpu_level),
    )
    return None if placed is None else PlacedRows(*placed)


def code_strings(values: Any) -> tuple[Int32s, Any] | None:
    """Return a code per string by sorted order, and the distinct strings in it, as the kernel keeps them.

    Args:
        values: a NumPy array of objects or of strings, or (offsets, bytes) as Arrow stores strings.

    Returns:
        None where NumPy is as fast, or if an object is not a plain str.

    Raises:
        UnicodeEncodeError: a text is not valid Unicode.
        InputError: values of another type or shape, or offsets beyond the bytes.
    """
    native, _ = load()
    coded: tuple[Int32s, Any] | None
    if not isinstance(values, tuple):
        texts = to_array("strings", values)
        if texts.ndim != 1 or texts.dtype.kind not in "OU":
            raise InputError(f"strings are {texts.dtype} of shape {texts.shape}; expected a column of text.")
        if native is None or len(texts) < SHORT_CUT_MIN_ROWS:
            return None
        coded = native.code_objects(as_readable(texts, object))
        return coded
    offsets, text = (to_array("strings", part) for part in (*values, None, None)[:2])
    is_offsets = offsets.dtype in (np.int32, np.int64) and offsets.ndim == 1 and offsets.size > 0
    if len(values) != 2 or not is_offsets or text.dtype != np.uint8 or text.ndim != 1:
        raise InputError("strings must be int32 or int64 offsets and the bytes they point into, as in Arrow.")
    if native is None or len(offsets) <= SHORT_CUT_MIN_ROWS:
        return None
    try:
        coded = native.code_text(
            as_readable(offsets, offsets.dtype.newbyteorder("=")), as_readable(text, np.uint8)
        )
    except ValueError as error:
        raise InputError(f"strings: {error}.") from error
    return coded


def rank_dicts(
    run: Any, truth: Any, *, shared: bool = False, keep: bool = False, float32: bool = False
) -> DictRanks | None:
    """Rank the judged items of {case: {item: grade}} among the scores of {case: {item: score}}.

    Args:
        run: the scores.
        truth: the grades, or what `hold_truth` made of them, with `shared` and without `keep`.
        shared: leave out the cases that are on one side only.
        keep: keep what was read, for what else the caller may need of it.
        float32: round scores to 32 bits, as trec_eval does; of NumPy only float64 is taken then.

    Returns:
        None where anything is not plain: ids other than str, or not valid Unicode; numbers that are not
        finite, whole from 2^53 on, or neither of Python nor of a common type of NumPy; containers
        other than dict and defaultdict.
    """
    native, _ = load()
    if native is None:
        return None
    ranks = native.rank_dicts(run, truth, shared=bool(shared), keep=bool(keep), float32=bool(float32))
    if ranks is None:
        return None
    found = DictRanks(*ranks)
    return found if found.read is None else found._replace(read=DictSides(*found.read))


def hold_truth(truth: Any) -> Any:
    """Hold {case: {item: whole grade}} as it is now for calls of `rank_dicts`; None where it is not plain.

    Cases without items are left out; `dicts()` of the result gives the rest back.
    """
    native, _ = load()
    return None if native is None else native.hold_truth(truth)


def dict_rows(names: Any, keys: Any, rows: Any) -> dict[str, dict[str, float]]:
    """Return {name: {key: value}} of a matrix with a row for each name and a column for each key.

    >>> dict_rows(["q1", "q2"], ["map", "mrr"], [[0.5, 1.0], [0.25, 0.5]])
    {'q1': {'map': 0.5, 'mrr': 1.0}, 'q2': {'map': 0.25, 'mrr': 0.5}}
    """
    values = to_array("rows", rows)
    if not isinstance(names, list) or not isinstance(keys, list) or values.shape != (len(names), len(keys)):
        raise InputError(f"rows are of shape {values.shape}; expected a value for each name and each key.")
    if values.dtype.kind not in "fiub":
        raise InputError(f"rows are {values.dtype}; expected numbers.")
    native, _ = load()
    if native is None:
        pairs = zip(names, values.astype(np.float64).tolist(), strict=True)
        return {name: dict(zip(keys, row, strict=True)) for name, row in pairs}
    nested: dict[str, dict[str, float]] = native.dict_rows(names, keys, as_readable(values, np.float64))
    return nested


def sum_slices(values: Any, first: float, second: float) -> tuple[float, float, bool] | None:
    """Sums of the two slices that two shifts cut off the top of each number, and whether a rest is left.

    A shift of 1.5 * 2^e cuts off the bits above 2^(e - 52). None where NumPy is as fast.
    """
    numbers = to_array("values", values)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "fiub"):
        raise InputError(
            f"values are {numbers.dtype} of shape {numbers.shape}; expected a column of numbers."
        )
    if not all(isinstance(shift, float | int | np.floating) for shift in (first, second)):
        raise InputError(f"shifts are {first!r} and {second!r}; expected two numbers.")
    native, _ = load()
    if native is None or len(numbers) < SHORT_CUT_MIN_ROWS:
        return None
    sums: tuple[float, float, bool] = native.sum_slices(
        as_readable(numbers, np.float64), float(first), float(second)
    )
    return sums


BACKENDS["native"] = Backend(
    "native", why_not, match_lists=match_lists, scan=scan, rank_scores=rank_scores, preference=2
)
