"""Strategies that give several splits, each made on demand: folds, time windows, a matrix pair per user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Unpack

import numpy as np

from recsys.errors import InputError, SplitError, UnknownNameError
from recsys.kernels.keyed_random import id_keys, pair_keys, unit_floats
from recsys.splits.borders import draw_keys
from recsys.splits.filters import check_whole_number
from recsys.splits.job import Job, SplitOptions
from recsys.splits.split_result import TEST, TRAIN, Folds, Side, Split, reason_code
from recsys.types import Ids, Int

_FOLD_UNITS = {
    "rows": "all rows are dealt out",
    "user_rows": "each user's rows are dealt out",
    "users": "users are dealt out with all their rows",
}


def k_fold(data: Any, n_folds: int = 5, *, by: str = "rows", **options: Unpack[SplitOptions]) -> Folds:
    """Folds in which every row is in the test part of exactly one fold.

    Args:
        data: what is split.
        n_folds: the number of folds, at least 2.
        by: deal out "rows", "user_rows" (each user's rows) or "users" (with all their rows).
        options: as for every strategy.

    >>> [sorted(f.test) for f in k_fold({"ann": ["a", "b"], "bob": ["c"], "eve": ["d"]}, 3, by="users")]
    [['bob'], ['eve'], ['ann']]
    """
    if by not in _FOLD_UNITS:
        raise UnknownNameError("value of by", by, _FOLD_UNITS)
    n_folds = check_whole_number(n_folds, "n_folds", 2)
    job = Job("k_fold", data, {"n_folds": n_folds, "by": by}, options, timed=False)
    fold = _fold_of_row(job, n_folds, by)

    def make(at: int) -> Split:
        return job.build_split(np.where(fold == at, TEST, TRAIN).astype(np.int8), fold=at)

    return Folds(make, n_folds)


def _fold_of_row(job: Job, n_folds: int, by: str) -> Int:
    """The fold that tests each row."""
    ids, user = job.ids("user")
    if by == "users":
        present = np.flatnonzero(np.bincount(user, minlength=len(ids)))
        place = np.zeros(len(ids), dtype=np.int64)
        place[present[np.argsort(job.user_draws()[present], kind="stable")]] = np.arange(len(present))
        turn, n_units = place[user], len(present)
    else:
        keys = job.pair_draws if by == "rows" else draw_keys(job.pair_draws, user, len(ids))
        distinct_keys, turn = np.unique(keys, return_inverse=True)
        n_units = len(distinct_keys)
        if by == "user_rows":
            # Each user starts at a drawn fold, so that users with few rows do not all fill the first one.
            first_turn = np.full(len(ids), n_units)
            np.minimum.at(first_turn, user, turn)
            offset = (job.user_draws() % np.uint64(n_folds)).astype(np.int64)
            turn = turn - first_turn[user] + offset[user]
    if n_units < n_folds:
        raise SplitError(f"{n_units} {by} cannot fill {n_folds} folds.", hint="Use fewer folds.")
    return np.asarray(turn % n_folds)


def rolling_windows(
    data: Any,
    length: Any,
    n_windows: int | None = None,
    *,
    step: Any = None,
    train: Any = None,
    gap: Any = None,
    start: Any = None,
    **options: Unpack[SplitOptions],
) -> Folds:
    """Test windows that move through time; the rows before each window are its training part.

    Args:
        data: what is split.
        length: of a test window: "7d" for dates, a number for numeric times.
        n_windows: the number of windows; by default 3, or with `start` as many as begin within the data.
        step: from the start of one window to the next; by default `length`.
        train: how far training reaches back ("sliding"); by default to the beginning ("rolling").
        gap: the time between training and test; rows in it are excluded.
        start: where the first window begins; by default the last window ends with the data.
        options: as for every strategy.

    Raises:
        SplitError: the windows do not fit into the data.
    """
    parameters = {
        "length": length,
        "n_windows": n_windows,
        "step": step,
        "train": train,
        "gap": gap,
        "start": start,
    }
    parameters = {name: value for name, value in parameters.items() if value is not None}
    job = Job("rolling_windows", data, parameters, options, timed=True)
    clock = job.clock
    span = clock.length(length, what="length")
    stride = span if step is None else clock.length(step, what="step")
    reach = None if train is None else clock.length(train, what="train")
    gap_length = 0 if gap is None else clock.length(gap, what="gap")
    starts = _window_starts(job, span, stride, n_windows, start)

    def make(at: int) -> Split:
        window_start = starts[at]
        side: Side = np.full(job.size, TRAIN, dtype=np.int8)
        side[job.times >= window_start] = TEST
        side[job.times >= window_start + span] = reason_code(job.reasons, "after the window")
        if gap_length:
            in_gap = (job.times >= window_start - gap_length) & (job.times < window_start)
            side[in_gap] = reason_code(job.reasons, "in the gap")
        if reach is not None:
            old = job.times < window_start - gap_length - reach
            side[old] = reason_code(job.reasons, "before the training window")
        job.notes["window"] = f"{clock.shown(window_start)} to {clock.shown(window_start + span)}"
        return job.build_split(side, window=at)

    return Folds(make, len(starts))


def _window_starts(job: Job, span: Any, stride: Any, n_windows: int | None, start: Any) -> list[Any]:
    """The time at which each test window begins."""
    if n_windows is not None:
        check_whole_number(n_windows, "n_windows", 1)
    oldest, newest = job.times.min(), job.times.max()
    if start is None:
        end = np.nextafter(newest, np.inf) if job.times.dtype.kind == "f" else int(newest) + 1
        n_starts = 3 if n_windows is None else n_windows
        starts = [end - span - stride * at for at in range(n_starts)][::-1]
    else:
        first_start = job.clock.at(start, what="start")
        n_starts = int((newest - first_start) // stride) + 1 if n_windows is None else n_windows
        starts = [first_start + stride * at for at in range(max(n_starts, 0))]
    if not starts or starts[0] <= oldest or starts[-1] > newest:
        raise SplitError(
            f"{len(starts)} windows of {span} do not fit between {job.clock.shown(oldest)} and "
            f"{job.clock.shown(newest)} with something to train on before the first.",
            hint="Use shorter or fewer windows, or another start.",
        )
    return starts


class LeaveOneOutMatrices(Sequence[tuple[Any, Any]]):
    """(train, test) with one held-out entry per user; the matrix is stored once, pairs are made on demand."""

    def __init__(self, matrix: Any, held: Int) -> None:
        self._matrix = matrix
        self.held = held
        """The position of each held-out entry among the stored entries, users ascending."""

    def __len__(self) -> int:
        return len(self.held)

    @property
    def users(self) -> Int:
        """The row of each pair."""
        return np.searchsorted(self._matrix.indptr, self.held, side="right") - 1

    @property
    def items(self) -> Int:
        """The column of each held-out entry."""
        return np.asarray(self._matrix.indices[self.held], dtype=np.int64)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        position, matrix = int(self.held[index]), self._matrix
        user = int(np.searchsorted(matrix.indptr, position, side="right")) - 1
        after = np.arange(len(matrix.indptr)) > user
        kind = type(matrix)
        train = kind(
            (np.delete(matrix.data, position), np.delete(matrix.indices, position), matrix.indptr - after),
            shape=matrix.shape,
        )
        entry = slice(position, position + 1)
        test = kind(
            (matrix.data[entry], matrix.indices[entry], after.astype(matrix.indptr.dtype)), shape=matrix.shape
        )
        return train, test

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return (self[i] for i in range(len(self)))


def leave_one_out_matrices(matrix: Any, *, seed: int = 0) -> LeaveOneOutMatrices:
    """One fold per user with two entries or more: a drawn entry is the test part, all others train.

    Args:
        matrix: users x items, a scipy sparse matrix or a dense one (0 means no entry).
        seed: of the draws.

    Returns:
        A sequence of (train, test), CSR matrices of the same shape.

    >>> folds = leave_one_out_matrices(np.array([[1, 0, 1], [0, 2, 0]]))
    >>> [(train.sum(), test.sum()) for train, test in folds]
    [(np.int64(3), np.int64(1))]
    """
    from scipy.sparse import csr_array

    if not (hasattr(matrix, "tocsr") or getattr(matrix, "ndim", 0) == 2):
        raise InputError(
            f"the matrix came as {type(matrix).__name__}.",
            hint="Pass a users x items array or sparse matrix.",
        )
    stored = matrix.tocsr().copy() if hasattr(matrix, "tocsr") else csr_array(matrix)
    stored.sum_duplicates()
    stored.eliminate_zeros()
    sizes = np.diff(stored.indptr)
    users = np.flatnonzero(sizes >= 2)
    keys = pair_keys(
        id_keys(Ids(np.arange(stored.shape[0])), seed, purpose="user"),
        id_keys(Ids(np.arange(stored.shape[0])), seed, purpose="entry"),
    )
    place = np.minimum((unit_floats(keys[users]) * sizes[users]).astype(np.int64), sizes[users] - 1)
    return LeaveOneOutMatrices(stored, stored.indptr[users].astype(np.int64) + place)
