"""Items x items weights, learnt from who had what: item-kNN and EASE.

A user's score of an item is the sum of the weights between it and the items the user had, so one such matrix
is the whole model (`recsys.ranks.sources.HistoryScores`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from recsys.errors import InputError, check_choice
from recsys.records.arrays import Array, Float

WEIGHTINGS = ("cosine", "tf-idf")
_BLOCK_BYTES = 64 << 20
_LEAST_LEFT = 1e-9  # of regularisation * diag(P), which is a difference from 1: less is rounding


def knn_weights(
    history: Any,
    *,
    neighbours: int = 100,
    weighting: str = "cosine",
    shrinkage: float = 0.0,
    threads: int | None = None,
) -> Any:
    """Return the similarity of each item to its nearest, sparse; column i has the neighbours of item i.

    The similarity of two items is the cosine of the users who had them. Of equally similar items the one with
    the smaller row is nearer.

    Args:
        history: users x items, sparse, one 1 for each item a user had.
        neighbours: how many of the nearest items count; those that share no user never do.
        weighting: "cosine", or "tf-idf" where a user who had n of the N items counts log(1 + N / n).
        shrinkage: added to the product of the norms, so that items with few users are less similar.
        threads: how many threads; by default one for each core. The weights have the same bits with any.

    >>> from scipy.sparse import csr_array
    >>> knn_weights(csr_array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]), neighbours=1).toarray().round(2).tolist()
    [[0.0, 0.71, 0.71], [0.71, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    from scipy.sparse import csr_array, diags_array, vstack

    check_choice("weighting", weighting, WEIGHTINGS)
    if neighbours < 1 or not shrinkage >= 0:
        raise InputError(
            f"neighbours={neighbours} and shrinkage={shrinkage} make no item-kNN.",
            hint="Use at least 1 neighbour and a shrinkage of 0 or more.",
        )
    users: Any = csr_array(history, dtype=np.float64)
    n_items = users.shape[1]
    if weighting == "tf-idf":
        users = diags_array(np.log1p(n_items / np.maximum(np.diff(users.indptr), 1))) @ users
    items = csr_array(users.T)
    norms = np.sqrt(items.multiply(items).sum(axis=1))

    def nearest(some: slice) -> Any:
        block = csr_array(items[some] @ users)
        block.sort_indices()
        row = np.repeat(np.arange(some.start, some.stop), np.diff(block.indptr))
        block.data /= norms[row] * norms[block.indices] + shrinkage
        block.data[block.indices == row] = 0.0
        return _largest_of_rows(block, neighbours)

    n_threads = threads or os.cpu_count() or 1
    with ThreadPoolExecutor(n_threads) as pool:  # SciPy multiplies and sorts without the interpreter's lock
        blocks = list(pool.map(nearest, _blocks(n_items, n_items * n_threads)))
    return csr_array(vstack(blocks, format="csr").T) if blocks else csr_array((0, 0))


def _largest_of_rows(rows: Any, n: int) -> Any:
    """Return the n largest positive entries of each row of a CSR matrix; of equal ones the first."""
    for start, stop in zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True):
        if stop - start <= n:
            continue
        values = rows.data[start:stop]
        least = np.partition(values, stop - start - n)[stop - start - n]
        ties = np.flatnonzero(values == least)
        values[ties[n - int((values > least).sum()) :]] = 0.0
        values[values < least] = 0.0
    rows.eliminate_zeros()
    return rows


def ease_bytes(n_items: int) -> int:
    """Return the memory that fitting and using EASE on so many items takes, in bytes."""
    return 24 * n_items**2


def ease_weights(history: Any, *, regularisation: float = 100.0) -> Array:
    """Return the weights of EASE (Steck, 2019): least squares with a zero diagonal, in closed form; float32.

    With P the inverse of X'X + regularisation * I, the weights are I - P / diag(P). The smaller side is
    inverted, in float64: by Woodbury's identity, with K the inverse of XX' + regularisation * I,
    regularisation * P is I - X'KX.

    >>> from scipy.sparse import csr_array
    >>> ease_weights(csr_array([[1.0, 1.0], [1.0, 1.0]]), regularisation=2.0).tolist()
    [[0.0, 0.5], [0.5, 0.0]]
    """
    from scipy.sparse import csr_array

    if not regularisation > 0:
        raise InputError(f"regularisation={regularisation} is not above 0.", hint="Such as 100.")
    users = csr_array(history, dtype=np.float64)
    items, (n_users, n_items) = csr_array(users.T), users.shape
    weights = np.empty((n_items, n_items), dtype=np.float32)
    if n_users < n_items:
        inverse = _inverse_of_gram(users, items, regularisation)
        found = np.ascontiguousarray((items @ inverse).T)  # KX
        del inverse
        left = 1.0 - np.asarray(users.multiply(found).sum(axis=0))
        if left.min(initial=1.0) < _LEAST_LEFT:
            raise _unsolved(regularisation)
        scale = 1.0 / left
        for rows in _blocks(n_items, n_items):
            np.multiply(items[rows] @ found, scale, out=weights[rows], casting="same_kind")
    else:
        inverse = _inverse_of_gram(items, users, regularisation)
        scale = -1.0 / np.diagonal(inverse)
        for rows in _blocks(n_items, n_items):
            np.multiply(inverse[rows], scale, out=weights[rows], casting="same_kind")
    weights[np.diag_indices(n_items)] = 0.0
    return weights


def _inverse_of_gram(rows: Any, columns: Any, regularisation: float) -> Float:
    """Return the inverse of rows @ columns + regularisation * I; `columns` is `rows` transposed."""
    from scipy.linalg import lapack

    # LAPACK works in place on columns; the matrix is symmetric, so that rows can be filled as columns.
    n = rows.shape[0]
    inverse: Float = np.empty((n, n), order="F")
    for block in _blocks(n, n):
        inverse[:, block] = (rows[block] @ columns).toarray().T
    inverse[np.diag_indices(n)] += regularisation
    inverse, failed = lapack.dpotrf(inverse, lower=1, overwrite_a=1, clean=0)
    if not failed:
        inverse, failed = lapack.dpotri(inverse, lower=1, overwrite_c=1)
    if failed:
        raise _unsolved(regularisation)
    for block in _blocks(n, n):  # the lower triangle holds the inverse
        inverse[block, block] += np.tril(inverse[block, block], -1).T - np.triu(inverse[block, block], 1)
        inverse[block, block.stop :] = inverse[block.stop :, block].T
    return inverse.T


def _unsolved(regularisation: float) -> InputError:
    return InputError(f"EASE has no solution with regularisation={regularisation}.", hint="Use a larger one.")


def _blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield rows of a matrix that take 64 MB at most, in float64 with their places."""
    step = max(1, _BLOCK_BYTES // (16 * max(1, n_columns)))
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))
