"""What a kernel takes and gives, whatever runs it: checked inputs, named results, the registry of backends.

Checks run in NumPy once per call, so that all backends refuse the same inputs with the same messages.
A backend is one file that makes a `Backend` and puts it into `BACKENDS`; another package names such a module
as an entry point in the group "recsys.backends". All backends give the same arrays to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys.errors import CutoffError, InputError, RecsysError, UnknownNameError, check_choice
from recsys.records.checks import is_whole
from recsys.records.registry import Registry

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]
Bools = NDArray[np.bool_]
Factors = NDArray[Any]
Csr = tuple[Int64s, Int32s]
Ties = Literal["by_id", "by_id_desc"]
Progress = Callable[[int, int], object]

# More threads would only wait for each other; the number must also fit a C int.
MAX_THREADS = 1 << 10
MAX_MEMORY_BUDGET = 1 << 62
# With fewer entries a second thread costs more than it saves.
ENTRIES_PER_THREAD = 2_000_000
PRUNE_MODES: dict[bool | str, int] = {False: 0, True: 1, "auto": 2}
# Places of lists that are moved at once when gaps are closed.
PLACES_PER_STEP = 1 << 20
# A block that is read twice should still be in the cache the second time.
BYTES_PER_CHECK = 1 << 20
ENTRIES_PER_CHECK = 1 << 22
NUMBERS = (int, float, np.integer, np.floating)
# Arrays with one value per item: the dtype kinds that are accepted, and the word for a value.
PER_ITEM_KINDS = {np.bool_: ("b", "bool"), np.int64: ("iu", "whole number"), np.float64: ("fiub", "number")}


class Matches(NamedTuple):
    """Every list entry that is a judged item of its case, in list order."""

    at: Int64s
    """Flat position in the list items, ascending."""
    truth: Int64s
    """Flat position of the same item in the truth items."""
    case: Int32s
    """The case it belongs to."""
    repeat: Bools
    """Whether the item already occurred earlier in the list of this case."""
    n_repeated: int
    """List entries, judged or not, that repeat an earlier entry of their case."""
    first_repeated: int
    """Flat position of the first of them, -1 if there is none."""


class PlacedRows(NamedTuple):
    """A table in CSR order: the items of each case next to each other, in the requested order."""

    case_ids: Int64s
    """The cases that occur, ascending."""
    indptr: Int64s
    """Where each of them starts."""
    items: Int32s
    highest: int
    """The highest item."""


class DictRanks(NamedTuple):
    """The judged items of two nested dicts among the scores of their cases, the cases in the order of ids.

    Judged items of a negative grade are in `n_negative`, `lowest` and `read` alone.
    """

    cases: list[str]
    """In the order they were met: those of the run, then those of the truth alone."""
    codes: Int32s
    """The place of each of them in the order of ids."""
    n_of_run: int
    n_listed: Int64s
    truth_indptr: Int64s
    truth_grade: Float64s
    """Of each case, highest first."""
    case: Int32s
    """Of each judged item that was found, by place in a case."""
    grade: Float64s
    above: Int64s
    """How many scores are above its own."""
    ties: tuple[Int64s, Int64s, Int64s] | None
    """How many scores equal it, its own among them, and how many of these go first by id and as they were
    given; None if it is the only one of its score throughout."""
    has_ties: bool
    """Whether any two items of a case share a score."""
    n_negative: int
    lowest: float
    highest: float
    """Of all grades."""
    read: DictSides | None
    """What was read, if it was to be kept."""


class DictSides(NamedTuple):
    """What two nested dicts held, case after case in the order they were met."""

    list_sizes: Int64s
    listed: list[str]
    scores: Float64s
    in_truth: Any
    """Whether each case is one of the truth, which may say nothing of it."""
    truth_sizes: Int64s
    judged: list[str]
    grades: Float64s


class ScanResult(NamedTuple):
    """Lists, rank counts or both, found in one pass over users x items."""

    list_indptr: Int64s
    """Where the list of each case starts; all zeros if no lists were requested."""
    list_items: Int32s
    """The best candidates of each case, best first."""
    list_scores: Float64s
    """Their exact scores."""
    above: Int64s
    """Per truth item: candidates that score strictly higher, -1 if it is not a candidate itself."""
    tied: Int64s
    """Per truth item: candidates with the same score, itself included; 0 if it is not a candidate."""
    ahead: Int64s
    """Per truth item: candidates with the same score that are ordered before it."""
    truth_scores: Float64s
    """Per truth item: its exact score, candidate or not."""
    n_candidates: Int64s
    """Per case: items that could have been recommended."""


def close_gaps(result: ScanResult, k: int) -> ScanResult:
    """Lists without gaps, from new arrays of k places per case, the lengths of lists in `list_indptr`."""
    lengths = result.list_indptr
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    if indptr[-1] == result.list_items.size:
        return result._replace(list_indptr=indptr)
    # In place, since lists may be most of the memory.
    for places in (result.list_items, result.list_scores):
        step, end = max(1, PLACES_PER_STEP // k), 0
        for start in range(0, lengths.size, step):
            is_filled = np.arange(k) < lengths[start : start + step, None]
            part = places[start * k : (start + step) * k][is_filled.ravel()]
            places[end : end + part.size] = part
            end += part.size
        places.resize(end, refcheck=False)
    return result._replace(list_indptr=indptr)


@dataclass(frozen=True, eq=False)
class ScoreProblem:
    """Inputs of one ranking of given scores: types and shapes are known, values are in range."""

    scores: Factors
    """One row per case, one column per item."""
    candidate: Bools
    k: int
    """Places of a list; 0 for no lists."""
    truth: Csr
    item_rank: Int64s
    """Among equal scores the smaller rank comes first."""


@dataclass(frozen=True)
class ScanProblem:
    """Inputs of one scan: types and shapes are known, values are in range."""

    users: Factors
    user_rows: Int64s | None
    """The row of users of each case; None for all rows in order."""
    items: Factors
    k: int | None
    truth: Csr | None
    seen: Csr | None
    eligible: Csr | None
    bias: Float64s | None
    never: Bools | None
    tie_key: NDArray[np.int64]
    """Among equal scores the smaller key comes first."""
    largest: float
    """The largest magnitude of all item factors and biases."""
    progress: Progress | None
    deepest: int | None = None
    """Truth items with this many candidates above them need no exact count."""

    @property
    def n_cases(self) -> int:
        return int(self.users.shape[0] if self.user_rows is None else self.user_rows.size)

    @property
    def n_items(self) -> int:
        return int(self.items.shape[0])

    def users_of(self, start: int, stop: int) -> Factors:
        """Return the factors of some cases."""
        return rows_between(self.users, self.user_rows, start, stop)


@dataclass(frozen=True)
class Execution:
    """How a kernel runs; the result does not depend on it."""

    threads: int | None = None
    """None for as many as pay off."""
    memory_budget: float = 64 << 20
    """Bytes of working memory, besides inputs and results."""
    prune: bool | Literal["auto"] = "auto"
    cpu_level: str | None = None

    def __post_init__(self) -> None:
        threads: Any = self.threads
        if threads is not None and not is_whole(threads, 1):
            raise InputError(
                f"threads is {threads!r}.", hint="Give a whole number from 1, or None for all cores."
            )
        budget: Any = self.memory_budget
        is_number = isinstance(budget, NUMBERS)
        if not (is_number and 0 <= budget <= MAX_MEMORY_BUDGET):
            raise InputError(f"memory_budget is {budget!r}.", hint="Give a number of bytes.")
        prune: Any = self.prune
        if not isinstance(prune, bool | str) or prune not in PRUNE_MODES:
            raise UnknownNameError("prune", prune, ("True", "False", "auto"))
        if self.cpu_level is not None and not isinstance(self.cpu_level, str):
            raise InputError(f"cpu_level is {self.cpu_level!r}; expected a name, or None for the best one.")

    def n_threads(self, n_entries: int | None = None) -> int:
        """Return the given number of threads, or one per core of this process if so many entries pay off."""
        if self.threads is not None:
            return min(int(self.threads), MAX_THREADS)
        if n_entries is not None and n_entries < ENTRIES_PER_THREAD:
            return 1
        try:
            n_cores = max(1, len(os.sched_getaffinity(0)))
        except AttributeError:
            n_cores = max(1, os.cpu_count() or 1)
        return n_cores if n_entries is None else min(n_cores, 1 + n_entries // ENTRIES_PER_THREAD)


@dataclass(frozen=True, eq=False)
class Backend:
    """One way to run the kernels. A kernel it does not have is run by the backend that "auto" stands for."""

    name: str
    why_not: Callable[[], str | None]
    """Why it cannot be used on this machine; None where it can."""
    match_lists: Callable[[Csr, Csr, Execution], Matches] | None = None
    scan: Callable[[ScanProblem, Execution], ScanResult] | None = None
    rank_scores: Callable[[ScoreProblem, Execution], ScanResult] | None = None
    preference: int = 0
    """"auto" stands for the usable backend with the highest one; 0: only on demand."""


BACKENDS: Registry[Backend] = Registry("backend", "recsys.backends")


def kernel_of(name: Any, kernel: Literal["match_lists", "scan", "rank_scores"]) -> Callable[..., Any]:
    """Return the function that runs a kernel on the backend of this name; "auto" stands for one of them."""
    if not isinstance(name, str) or name != "auto":
        if not isinstance(name, str) or (name not in BACKENDS and name not in BACKENDS.load_plugins()):
            raise UnknownNameError("backend", name, ("auto", *BACKENDS))
        if reason := BACKENDS[name].why_not():
            raise RecsysError(
                f"backend={name!r} was asked for, but {reason}.",
                hint="Use backend='auto'; the result is the same bits everywhere.",
            )
        chosen: Callable[..., Any] | None = getattr(BACKENDS[name], kernel)
        if chosen is not None:
            return chosen
    usable = [b for b in BACKENDS.values() if b.preference > 0 and b.why_not() is None]
    best = max((b for b in usable if getattr(b, kernel)), key=attrgetter("preference"))
    preferred: Callable[..., Any] = getattr(best, kernel)
    return preferred


def to_array(name: str, values: Any) -> Any:
    """Return an array-like as a NumPy array; raise an error if it is not one."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be read as an array: {error}.", table=name) from error


def as_readable(array: Any, dtype: Any) -> Any:
    """Contiguous and aligned, as a kernel reads it; copied only if it must be."""
    if array.dtype == dtype and array.flags.c_contiguous and array.flags.aligned:
        return array  # np.require takes several times as long to see it
    return np.require(array, dtype, ("C", "A"))


def is_positive_whole(value: Any) -> bool:
    """Return whether the value is a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, NUMBERS):
        return False
    number: Any = value
    return bool(number >= 1 and number == number // 1)


def to_whole_numbers(name: str, values: Any) -> Any:
    """Return a column of whole numbers; raise an error at other types and shapes, or beyond int64."""
    array = to_array(name, values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(
            f"{name} is {array.dtype} of shape {array.shape}; expected a column of whole numbers.", table=name
        )
    if array.size and array.dtype == np.uint64 and int(array.max()) >= 2**63:
        raise InputError(f"{name}: {array.max()} does not fit int64.", table=name)
    return array


def as_rows(name: str, indptr: Any, items: Any, n_cases: int | None = None) -> Csr:
    """Return CSR rows as contiguous (int64 indptr, int32 items); errors name a wrong type or shape."""
    starts = to_array(name, indptr)
    if starts.size and starts.dtype.kind not in "iu":
        raise InputError(f"{name}: indptr is {starts.dtype}, expected int64.", table=name)
    codes = to_array(name, items)
    if codes.dtype != np.int32:
        if codes.size and codes.dtype.kind not in "iu":
            raise InputError(f"{name}: items are {codes.dtype}, expected int32 codes.", table=name)
        limits = np.iinfo(np.int32)
        if codes.size and (codes.min() < limits.min or codes.max() > limits.max):
            raise InputError(f"{name}: an item code does not fit int32.", table=name)
        codes = codes.astype(np.int32)
    if starts.ndim != 1 or codes.ndim != 1 or starts.size == 0:
        raise InputError(
            f"{name}: indptr and items must be one-dimensional, indptr with n + 1 entries.", table=name
        )
    starts, codes = as_readable(starts, np.int64), as_readable(codes, np.int32)
    if n_cases is not None and starts.size != n_cases + 1:
        raise InputError(
            f"{name}: indptr has {starts.size} entries for {n_cases} cases, expected {n_cases + 1}.",
            table=name,
        )
    if starts[0] != 0 or starts[-1] != codes.size or (starts[1:] < starts[:-1]).any():
        raise InputError(
            f"{name}: indptr must rise from 0 to the number of items ({codes.size}); "
            f"it runs from {starts[0]} to {starts[-1]}.",
            table=name,
        )
    return starts, codes


def as_item_rows(name: str, rows: Any, n_cases: int, n_items: int) -> Csr:
    """Check CSR rows, given as (indptr, items), of items from 0 to n_items."""
    if not isinstance(rows, tuple | list) or len(rows) != 2:
        raise InputError(f"{name} is {type(rows).__name__}; expected (indptr, items).", table=name)
    indptr, items = as_rows(name, rows[0], rows[1], n_cases)
    if items.size and (int(items.min()) < 0 or int(items.max()) >= n_items):
        at = int(np.flatnonzero((items < 0) | (items >= n_items))[0])
        case = int(np.searchsorted(indptr, at, side="right")) - 1
        raise InputError(
            f"{name}: item {items[at]} of case {case} is not one of the {n_items} items.",
            table=name,
            row=case,
        )
    return indptr, items


def as_per_item(name: str, values: Any, n_items: int, dtype: Any) -> Any:
    """Return one value per item; None stays None."""
    if values is None:
        return None
    array = to_array(name, values)
    kinds, noun = PER_ITEM_KINDS[dtype]
    if array.dtype.kind not in kinds and array.size:
        raise InputError(f"{name} is {array.dtype}; expected one {noun} per item.", table=name)
    if array.shape != (n_items,):
        raise InputError(f"{name} has shape {array.shape}, expected ({n_items},).", table=name)
    return as_readable(array, dtype)


def as_problem(
    users: Any,
    items: Any,
    *,
    user_rows: Any = None,
    k: int | None,
    truth: Any,
    seen: Any,
    eligible: Any,
    item_bias: Any,
    never: Any,
    item_rank: Any,
    ties: str,
    progress: Progress | None,
    deepest: int | None = None,
) -> ScanProblem:
    """Check and convert the inputs of a scan; factors are copied only if their type must change."""
    x, y = _check_matrix("users", users), _check_matrix("items", items)
    if x.shape[1] != y.shape[1]:
        raise InputError(f"users have {x.shape[1]} factors, items {y.shape[1]}; they must be equal.")
    if k is not None and not is_positive_whole(k):
        raise CutoffError(f"k is {k!r}; give a whole number from 1, or None for no lists.")
    if deepest is not None and not is_positive_whole(deepest):
        raise CutoffError(f"deepest is {deepest!r}; give a whole number from 1, or None.")
    if progress is not None and not callable(progress):
        raise InputError(f"progress is {progress!r}; expected a function of (done, total), or None.")
    chosen: Int64s | None = None
    if user_rows is not None:
        array = to_array("user_rows", user_rows)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise InputError(
                f"user_rows is {array.dtype} of shape {array.shape}; expected one row of users per case.",
                table="users",
            )
        outside = (array < 0) | (array >= x.shape[0])
        if outside.any():
            raise InputError(
                f"user_rows: {array[outside.argmax()]} is not one of the {x.shape[0]} rows of users.",
                table="users",
            )
        chosen = as_readable(array, np.int64)
    n_cases, n_items = x.shape[0] if chosen is None else chosen.size, y.shape[0]
    if n_items >= 2**31:
        raise InputError(f"{n_items} items; the kernels count items in int32.")
    bias = as_per_item("item_bias", item_bias, n_items, np.float64)
    user_max, item_max = _largest_magnitude("users", x, chosen), _largest_magnitude("items", y)
    largest = check_overflow(x.shape[1], user_max, item_max, bias)
    check_choice("ties", ties, ("by_id", "by_id_desc"))
    tie_key = as_per_item("item_rank", item_rank, n_items, np.int64)
    if tie_key is None:
        tie_key = np.arange(n_items, dtype=np.int64)
    if chosen is not None and not _is_ready(x):
        x, chosen = x[chosen], None  # only the chosen rows are converted
    return ScanProblem(
        users=_as_float(x),
        user_rows=chosen,
        items=_as_float(y),
        k=None if k is None else min(int(k), n_items),
        truth=_check_rows("truth", truth, n_cases, n_items),
        seen=_check_rows("seen", seen, n_cases, n_items),
        eligible=_check_rows("eligible", eligible, n_cases, n_items),
        bias=bias,
        never=as_per_item("never", never, n_items, np.bool_),
        tie_key=~tie_key if ties == "by_id_desc" else tie_key,  # -tie_key may overflow
        largest=largest,
        progress=progress,
        deepest=None if deepest is None else int(deepest),
    )


def rows_between(array: Factors, chosen: Int64s | None, start: int, stop: int) -> Factors:
    """Return the rows from start to stop, of all rows or of the chosen ones."""
    return array[start:stop] if chosen is None else array[chosen[start:stop]]


def _check_matrix(name: str, values: Any) -> Factors:
    array: Factors = to_array(name, values)
    if array.ndim != 2:
        raise InputError(f"{name} must be a matrix (rows x factors); it has shape {array.shape}.", table=name)
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise InputError(f"{name} are {array.dtype}; expected float32 or float64.", table=name)
    return array


def _is_ready(array: Factors) -> bool:
    """Return whether the kernels can read the array without a copy, whatever its strides."""
    is_float = array.dtype in (np.float32, np.float64) and array.dtype.isnative
    return is_float and array.flags.aligned and all(s % array.itemsize == 0 for s in array.strides)


def _as_float(array: Factors) -> Factors:
    """Convert to float32 if it holds every value of the type, else float64; ready arrays are not copied."""
    if _is_ready(array):
        return array
    wide: Factors = array.astype(float_type(array.dtype))
    return wide


def float_type(dtype: Any) -> type[np.float32 | np.float64]:
    """Return the type in which the kernels read factors of this type."""
    return np.float32 if np.can_cast(dtype, np.float32) else np.float64


def block_magnitude(name: str, block: Factors, rows: Sequence[int] | Int64s) -> float:
    """Return the largest magnitude in some rows; the error for a NaN or an infinity names its row."""
    if not block.size:
        return 0.0
    high, low = float(block.max()), float(block.min())
    if not (np.isfinite(high) and np.isfinite(low)):
        is_bad = ~np.isfinite(block.reshape(block.shape[0], -1)).all(axis=1)
        row = int(rows[int(is_bad.argmax())])
        raise InputError(
            f"{name} has a NaN or infinite value in row {row}.",
            table=name,
            row=row,
            hint="Such a row often means that training diverged: correct it, or leave the row out.",
        )
    return max(high, -low)


def _largest_magnitude(name: str, array: Factors, chosen: Int64s | None = None) -> float:
    """Return the largest magnitude of an array or of its chosen rows."""
    n_rows = array.shape[0] if chosen is None else chosen.size
    step = max(1, BYTES_PER_CHECK * len(array) // max(1, array.nbytes))
    largest = 0.0
    for start in range(0, n_rows if array.size else 0, step):
        rows = range(start, start + step) if chosen is None else chosen[start : start + step]
        block = rows_between(array, chosen, start, start + step)
        largest = max(largest, block_magnitude(name, block, rows))
    return largest


def check_overflow(n_factors: int, user_max: float, item_max: float, bias: Float64s | None) -> float:
    """Return the largest magnitude of item factors and biases; raise an error if scores may overflow."""
    bias_max = 0.0 if bias is None else _largest_magnitude("item_bias", bias)
    with np.errstate(over="ignore"):
        bound = np.float64(max(n_factors, 1)) * user_max * item_max
    if bound >= 2.0**1023 or bound + bias_max >= 2.0**1023:
        raise InputError(
            f"scores may overflow: {n_factors} factors up to {user_max:g} times {item_max:g} "
            f"plus biases up to {bias_max:g} reach 2^1023.",
            hint="Scale the factors down; the order of scores does not change.",
        )
    return max(item_max, bias_max)


def _check_rows(name: str, rows: Any, n_cases: int, n_items: int) -> Csr | None:
    """Return checked CSR rows; those of seen and eligible items ascend."""
    if rows is None:
        return None
    indptr, items = as_item_rows(name, rows, n_cases, n_items)
    for start in range(1, 0 if name == "truth" else items.size, ENTRIES_PER_CHECK):
        stop = min(start + ENTRIES_PER_CHECK, items.size)
        is_descent = items[start:stop] < items[start - 1 : stop - 1]
        first, last = np.searchsorted(indptr, (start, stop))
        is_descent[indptr[first:last] - start] = False  # the first entry of a row may be lower
        if is_descent.any():
            case = int(np.searchsorted(indptr, start + is_descent.argmax(), side="right")) - 1
            raise InputError(
                f"{name}: the items of case {case} are not in ascending order.", table=name, row=case
            )
    return indptr, items
