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
    """Lists without gaps, from lists of k places per case with their lengths in `list_indptr`."""
    lengths = result.list_indptr
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    if indptr[-1] == result.list_items.size:
        return result._replace(list_indptr=indptr)
    filled = (np.arange(k) < lengths[:, None]).ravel()
    return result._replace(
        list_indptr=indptr, list_items=result.list_items[filled], list_scores=result.list_scores[filled]
    )
