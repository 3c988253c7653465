"""Splits that come in several: folds, windows in time, one matrix pair a user; each made when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Unpack

import numpy as np

from recsys.errors import InputError, SplitError, UnknownNameError
from recsys.kernels.keyed_random import fractions, id_keys, pair_keys
from recsys.splits.borders import draw_keys
from recsys.splits.filters import checked_whole
from recsys.splits.job import Job, SplitOptions
from recsys.splits.split_result import TEST, TRAIN, Folds, Side, Split, reason_code
from recsys.types import Ids, Int

_BY = {
    "rows": "all rows are dealt out",
    "user_rows": "each user's rows are dealt out",
    "users": "users are dealt out with all their rows",
}


def k_fold(data: Any, n_folds: int = 5, *, by: str = "rows", **options: Unpack[SplitOptions]) -> Folds:
    """Every row is in the test of exactly one fold.

    `by`: deal out "rows", "user_rows" (each user's rows) or "users" (with all their rows).

    >>> [sorted(f.test) for f in k_fold({"ann": ["a", "b"], "bob": ["c"], "eve": ["d"]}, 3, by="users")]
    [['bob'], ['eve'], ['ann']]
    """
    if by not in _BY:
        raise UnknownNameError("value of by", by, _BY)
    n_folds = checked_whole(n_folds, "n_folds", 2)
    job = Job("k_fold", data, {"n_folds": n_folds, "by": by}, options, timed=False)
    fold = _fold_of_row(job, n_folds, by)

    def make(at: int) -> Split:
        return job.finished(np.where(fold == at, TEST, TRAIN).astype(np.int8), fold=at)

    return Folds(make, n_folds)


def _fold_of_row(job: Job, n_folds: int, by: str) -> Int:
    ids, user = job.ids("user")
    if by == "users":
        present = np.flatnonzero(np.bincount(user, minlength=len(ids)))
        place = np.zeros(len(ids), dtype=np.int64)
        place[present[np.argsort(job.user_draws()[present], kind="stable")]] = np.arange(len(present))
        dealt, n_dealt = place[user], len(present)
    else:
        whole = by == "rows"
        keys = job.pair_draws if whole else draw_keys(job.pair_draws, user, len(ids))
        found, dealt = np.unique(keys, return_inverse=True)
        n_dealt = len(found)
        if (
            not whole
        ):  # each user starts at a fold of their own, so that short ones do not fill the first fold
            first = np.full(len(ids), n_dealt)
            np.minimum.at(first, user, dealt)
            offset = (job.user_draws() % np.uint64(n_folds)).astype(np.int64)
            dealt = dealt - first[user] + offset[user]
    if n_dealt < n_folds:
        raise SplitError(f"{n_dealt} {by} cannot fill {n_folds} folds.", hint="Use fewer folds.")
    return np.asarray(dealt % n_folds)


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
    """Test windows that move through time; what lies before each is its training part.

    Args:
        data: what is split.
        length: of a test window: "7d" for dates, a number for numeric times.
        n_windows: how many; 3 that end with the data, or with `start` as many as begin within it.
        step: from one window to the next; `length` unless said.
        train: how far training reaches back ("sliding"); to the beginning ("rolling") unless said.
        gap: between training and test, rows in it are excluded.
        start: where the first window begins; the last ends with the data unless said.
        options: as for every strategy.
    """
    parameters = {
        "length": length,
        "n_windows": n_windows,
        "step": step,
        "train": train,
        "gap": gap,
        "start": start,
    }
    given = {name: value for name, value in parameters.items() if value is not None}
    job = Job("rolling_windows", data, given, options, timed=True)
    clock = job.clock
    span = clock.length(length, what="length")
    move = span if step is None else clock.length(step, what="step")
    reach = None if train is None else clock.length(train, what="train")
    pause = 0 if gap is None else clock.length(gap, what="gap")
    begins = _begins(job, span, move, n_windows, start)

    def make(at: int) -> Split:
        begin = begins[at]
        side: Side = np.full(job.size, TRAIN, dtype=np.int8)
        side[job.times >= begin] = TEST
        side[job.times >= begin + span] = reason_code(job.reasons, "after the window")
        if pause:
            in_gap = (job.times >= begin - pause) & (job.times < begin)
            side[in_gap] = reason_code(job.reasons, "in the gap")
        if reach is not None:
            old = job.times < begin - pause - reach
            side[old] = reason_code(job.reasons, "before the training window")
        job.notes["window"] = f"{clock.shown(begin)} to {clock.shown(begin + span)}"
        return job.finished(side, window=at)

    return Folds(make, len(begins))


def _begins(job: Job, span: Any, move: Any, n_windows: int | None, start: Any) -> list[Any]:
    if n_windows is not None:
        checked_whole(n_windows, "n_windows", 1)
    oldest, last = job.times.min(), job.times.max()
    if start is None:
        end = np.nextafter(last, np.inf) if job.times.dtype.kind == "f" else int(last) + 1
        size = 3 if n_windows is None else n_windows
        begins = [end - span - move * at for at in range(size)][::-1]
    else:
        begin = job.clock.at(start, what="start")
        size = int((last - begin) // move) + 1 if n_windows is None else n_windows
        begins = [begin + move * at for at in range(max(size, 0))]
    if not begins or begins[0] <= oldest or begins[-1] > last:
        raise SplitError(
            f"{len(begins)} windows of {span} do not fit between {job.clock.shown(oldest)} and "
            f"{job.clock.shown(last)} with something to train on before the first.",
            hint="Use shorter or fewer windows, or another start.",
        )
    return begins


class LeaveOneOutMatrices(Sequence[tuple[Any, Any]]):
    """(train, test) of one held-out entry a user; the matrix is held once, a pair is made when asked for."""

    def __init__(self, matrix: Any, held: Int) -> None:
        self._matrix = matrix
        self.held = held
        """The place of each held-out entry among the stored ones, users ascending."""

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
        at, whole = int(self.held[index]), self._matrix
        user = int(np.searchsorted(whole.indptr, at, side="right")) - 1
        after = np.arange(len(whole.indptr)) > user
        kind = type(whole)
        train = kind(
            (np.delete(whole.data, at), np.delete(whole.indices, at), whole.indptr - after), shape=whole.shape
        )
        test = kind((whole.data[at : at + 1], whole.indices[at : at + 1], after.astype(whole.indptr.dtype)),
                    shape=whole.shape)  # fmt: skip
        return train, test

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return (self[i] for i in range(len(self)))


def leave_one_out_matrices(matrix: Any, *, seed: int = 0) -> LeaveOneOutMatrices:
    """One fold a user with two entries or more: a drawn entry is the test, all others are the training part.

    Takes a scipy sparse matrix or a dense one (entries that are not 0); gives CSR matrices of its shape.

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
    whole = matrix.tocsr().copy() if hasattr(matrix, "tocsr") else csr_array(matrix)
    whole.sum_duplicates()
    whole.eliminate_zeros()
    sizes = np.diff(whole.indptr)
    users = np.flatnonzero(sizes >= 2)
    keys = pair_keys(
        id_keys(Ids(np.arange(whole.shape[0])), seed, purpose="user"),
        id_keys(Ids(np.arange(whole.shape[0])), seed, purpose="entry"),
    )
    place = np.minimum((fractions(keys[users]) * sizes[users]).astype(np.int64), sizes[users] - 1)
    return LeaveOneOutMatrices(whole, whole.indptr[users].astype(np.int64) + place)
