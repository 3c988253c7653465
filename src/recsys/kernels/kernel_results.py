"""The results of the kernels: named arrays, the same from every backend."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]
Bools = NDArray[np.bool_]
Factors = NDArray[Any]
Csr = tuple[Int64s, Int32s]

# Places of lists that are moved at once when gaps are closed.
PLACES_PER_STEP = 1 << 20


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


class ScanResult(NamedTuple):
    """Lists, rank counts or both, found in one pass over users x items."""

    list_indptr: Int64s
    """Where the list of each case starts; all zeros if no lists were requested."""
    list_items: Int32s
    """The best candidates of each case, best first."""
    list_scores: Float64s
    """Their exact scores."""
    above: Int64s
    """Per truth item: candidates that score strictly higher, -1 if it is no candidate itself."""
    tied: Int64s
    """Per truth item: candidates with the same score, itself included; 0 if it is no candidate."""
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
    if indptr[-1] != result.list_items.size:
        for places in (result.list_items, result.list_scores):
            _remove_empty_places(places, lengths, k)
    return result._replace(list_indptr=indptr)


def _remove_empty_places(places: NDArray[Any], lengths: Int64s, k: int) -> None:
    """In place, since lists may be most of the memory."""
    step, end = max(1, PLACES_PER_STEP // k), 0
    for start in range(0, lengths.size, step):
        is_filled = np.arange(k) < lengths[start : start + step, None]
        part = places[start * k : (start + step) * k][is_filled.ravel()]
        places[end : end + part.size] = part
        end += part.size
    places.resize(end, refcheck=False)
