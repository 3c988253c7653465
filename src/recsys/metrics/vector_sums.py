"""Sums of vectors by case, in blocks within a memory budget; user profiles and similarities use them.

A case's sum is taken over its own entries in their order, so it does not depend on the block it is in.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from recsys.types import Array, Float, Int

_BLOCK_BYTES = 32 << 20
_WHOLE_BYTES = 256 << 20


def row_norms(matrix: Array) -> Float:
    """The Euclidean norm of each row, in float64."""
    out = np.empty(len(matrix))
    step = max(1, _BLOCK_BYTES // (8 * max(1, matrix.shape[1])))
    for start in range(0, len(matrix), step):
        block = matrix[start : start + step].astype(np.float64)
        out[start : start + step] = np.sqrt(np.einsum("nd,nd->n", block, block))
    return out


def sums_by_case(matrix: Array, case: Array, row: Array, weight: Float, borders: Int) -> Iterator[Float]:
    """For each block of cases between two borders, the sums of weight x vector: cases x factors."""
    from scipy.sparse import csr_array

    whole = matrix.astype(np.float64, copy=False) if _is_small(matrix) else None
    starts = np.searchsorted(case, borders)
    for first, last, low, high in zip(borders[:-1], borders[1:], starts[:-1], starts[1:], strict=True):
        sizes = np.bincount(case[low:high] - first, minlength=last - first)
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        used, vectors = row[low:high], whole
        if vectors is None:
            distinct, used = np.unique(used, return_inverse=True)
            vectors = matrix[distinct].astype(np.float64)
        block = csr_array((weight[low:high], used, indptr), shape=(last - first, len(vectors)))
        yield np.asarray(block @ vectors)


def borders_within(sizes: Int, *matrices: Array) -> Int:
    """Borders of blocks of cases whose sums, and vectors where they are copied, fit the memory budget."""
    width = max(1, *(matrix.shape[1] for matrix in matrices))
    copied = np.zeros(len(sizes), dtype=np.int64) if all(map(_is_small, matrices)) else sizes
    cost = np.cumsum((copied + 1) * 8 * width) // _BLOCK_BYTES
    cuts = np.flatnonzero(np.diff(cost)) + 1
    return np.concatenate([[0], cuts, [len(sizes)]]).astype(np.int64)


def _is_small(matrix: Array) -> bool:
    """Whether a float64 copy of the whole matrix is small enough."""
    return matrix.dtype == np.float64 or matrix.size * 8 <= _WHOLE_BYTES
