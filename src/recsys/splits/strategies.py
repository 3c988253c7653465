"""The strategies: over all rows or within each user, by time or by draw, once or several times.

Every strategy takes interactions of any supported type and gives parts of the same type, with rows in their
original order. The side of a row depends on ids, times and the seed, never on its place in the data (except
with on_tie="row_order").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Literal, Unpack, overload

import numpy as np

from recsys.errors import InputError, Phrase, RecsysWarning, SplitError, check_choice, warn
from recsys.inputs.containers import as_csr
from recsys.kernels.keyed_random import id_keys, pair_keys, unit_floats
from recsys.records.arrays import Ids, Int
from recsys.splits.job import (
    STRATEGIES,
    Job,
    SplitOptions,
    check_amount,
    draw_keys,
    select_newest,
    strategy,
)
from recsys.splits.split_result import (
    KNOWN,
    TEST,
    TRAIN,
    VALIDATION,
    VALIDATION_KNOWN,
    Folds,
    Side,
    Split,
    reason_code,
)
from recsys.splits.split_table import check_whole_number

_MAX_WINDOWS = 1_000_000
_FOLD_UNITS = {
    "rows": "all rows are dealt out",
    "user_rows": "each user's rows are dealt out",
    "users": "users are dealt out with all their rows",
}


@strategy("random_ratio", makes="one", help="a share of all rows, drawn at random")
def random_ratio(
    data: Any, test: float = 0.2, validation: float = 0, **options: Unpack[SplitOptions]
) -> Split:
    """Hold out a drawn share of all rows, or a number of them; rows of the same user and item stay together.

    >>> train, test = random_ratio({"ann": ["a", "b", "c"], "bob": ["a", "d"]}, test=0.4, seed=1)
    >>> sum(map(len, train.values())), sum(map(len, test.values()))
    (3, 2)
    """
    job, amounts = _job_of_amounts("random_ratio", data, (test, validation), options)
    return _split_all_rows(job, amounts, by_time=False)


@strategy("per_user_ratio", makes="one", help="a share of each user's rows, drawn at random")
def per_user_ratio(
    data: Any, test: float = 0.2, validation: float = 0, **options: Unpack[SplitOptions]
) -> Split:
    """Hold out a drawn share of each user's rows (rounded down, at least one), or a number of them."""
    job, amounts = _job_of_amounts("per_user_ratio", data, (test, validation), options)
    return _split_per_user(job, amounts, by_time=False)


@strategy("k_fold", makes="several", help="every row tested once")
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
    check_choice("value of by", by, _FOLD_UNITS)
    n_folds = check_whole_number(n_folds, "n_folds", 2)
    job = Job("k_fold", data, {"n_folds": n_folds, "by": by}, options, timed=False)
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
    fold = turn % n_folds

    def make(at: int) -> Split:
        return job.build_split(np.where(fold == at, TEST, TRAIN).astype(np.int8), fold=at)

    return Folds(make, n_folds)


@strategy("leave_one_out", makes="one", help="one row of each user, the last or a drawn one")
def leave_one_out(
    data: Any, which: str = "last", validation: int = 0, **options: Unpack[SplitOptions]
) -> Split:
    """Hold out one row per user: the last by time, or a drawn one (which="random"); validation=1: one more.

    Here alone the default is on_tie="row_order": of rows of equal time the later row is the last, so that one
    row of each user is held out. What is tied with it stays in train; `recsys.audit` counts such rows. A user
    with a single row cannot be on both sides and is excluded and counted (`short=`).

    >>> data = np.array([[1, 7, 10], [1, 9, 20], [1, 8, 20]])
    >>> leave_one_out(data, columns={"user": 0, "item": 1, "time": 2}).test.tolist()
    [[1, 8, 20]]
    """
    check_choice("value of which", which, ("last", "random"))
    parameters: dict[str, Any] = {"which": which, "validation": validation}
    if which == "last":
        options = {"on_tie": "row_order", **options}
        parameters["on_tie"] = options["on_tie"]  # a manifest says it, whatever the default elsewhere
    amounts = (1, check_amount(validation, "validation", optional=True))
    job = Job("leave_one_out", data, parameters, options, timed=which == "last")
    return _split_per_user(job, amounts, by_time=which == "last")


@strategy("leave_last", makes="one", help="the last n rows of each user")
def leave_last(data: Any, n: int = 1, validation: int = 0, **options: Unpack[SplitOptions]) -> Split:
    """Make the last n rows of each user by time test, the `validation` rows before them validation.

    >>> train, test = leave_last({"ann": ["a", "b", "c"], "bob": ["a", "d"]})
    >>> train, test
    ({'ann': ['a', 'b'], 'bob': ['a']}, {'ann': ['c'], 'bob': ['d']})
    """
    n = check_whole_number(n, "n", 1)
    amounts = (n, check_amount(validation, "validation", optional=True))
    job = Job("leave_last", data, {"n": n, "validation": validation}, options, timed=True)
    return _split_per_user(job, amounts, by_time=True)


@strategy("leave_last_folds", makes="several", help="each user's last n rows, the n before, and so on")
def leave_last_folds(
    data: Any, n_folds: int = 3, n: int = 1, validation: int = 0, **options: Unpack[SplitOptions]
) -> Folds:
    """Make folds of `leave_last`: the last tests each user's last n rows, the one before it the n before.

    In each fold a user's older rows are train (and validation), and the newer ones are excluded: no model
    learns from what came after its test. `short` says what happens to users with too few rows left.

    >>> [fold.test for fold in leave_last_folds({"ann": ["a", "b", "c"], "bob": ["a", "d"]}, 2)]
    [{'ann': ['b']}, {'ann': ['c'], 'bob': ['d']}]
    """
    n_folds, n = check_whole_number(n_folds, "n_folds", 1), check_whole_number(n, "n", 1)
    amounts = (n, check_amount(validation, "validation", optional=True))
    parameters = {"n_folds": n_folds, "n": n, "validation": validation}
    job = Job("leave_last_folds", data, parameters, options, timed=True)
    ids, user = job.ids("user")

    def make(at: int) -> Split:
        rows, job.notes = np.arange(job.size), {}
        for _ in range(n_folds - 1 - at):
            rows = rows[job.cut(user[rows], len(ids), (n, 0), by_time=True, subset=rows) == TRAIN]
            if len(rows) == 0:
                raise SplitError(
                    f"fold {at + 1} of {n_folds} has no row: no user has more than {n * (n_folds - 1 - at)}.",
                    hint=f"Use fewer folds than {n_folds}, or a smaller n=.",
                )
        side: Side = np.full(job.size, reason_code(job.reasons, "after the fold"), dtype=np.int8)
        side[rows] = _cut_each_user(job, rows, amounts)
        return job.build_split(side, *_extra_parts(amounts), fold=at)

    return Folds(make, n_folds)


@strategy("per_user_temporal", makes="one", help="the last share of each user's rows")
def per_user_temporal(
    data: Any, test: float = 0.2, validation: float = 0, **options: Unpack[SplitOptions]
) -> Split:
    """Hold out the last share of each user's rows by time (rounded down, at least one), or a number of them.

    There is no common border in time: a test row of one user may be older than a training row of another.
    """
    job, amounts = _job_of_amounts("per_user_temporal", data, (test, validation), options, timed=True)
    return _split_per_user(job, amounts, by_time=True)


@strategy("global_temporal", makes="one", help=Phrase("one border in time for all, by share or {split.at=}"))
def global_temporal(
    data: Any,
    test: float | None = None,
    validation: float = 0,
    *,
    at: Any = None,
    validation_at: Any = None,
    **options: Unpack[SplitOptions],
) -> Split:
    """Split at one border in time for all users.

    Args:
        data: what is split.
        test: the newest share of all rows, or a number of them; by default 0.2.
        validation: the share or number of rows before them.
        at: the time at which the test part begins, instead of `test`.
        validation_at: the time at which the validation part begins; it ends where the test part begins.
        options: as for every strategy.
    """
    if at is not None and (test is not None or validation):
        raise SplitError(
            Phrase("a border comes from {split.at=} or from {split.test=}, not from both."),
            hint="Leave one of them out.",
        )
    if validation_at is not None and at is None:
        raise SplitError(Phrase("{split.validation_at=} needs {split.at=}."), hint="Pass both borders.")
    amounts = None if at is not None else _check_amounts(0.2 if test is None else test, validation)
    parameters = _given(test=test, validation=validation, at=at, validation_at=validation_at)
    job = Job("global_temporal", data, parameters, options, timed=True)
    if amounts is not None:
        return _split_all_rows(job, amounts, by_time=True)
    border = job.clock.at(at)
    side = np.where(job.times >= border, TEST, TRAIN).astype(np.int8)
    if validation_at is None:
        return job.build_split(side)
    start = job.clock.at(validation_at, what="validation_at")
    if start >= border:
        came = Phrase("{split.validation_at=} is not before {split.at=}.", validation_at=validation_at, at=at)
        raise SplitError(came, hint="Swap them.")
    side[(job.times >= start) & (side == TRAIN)] = VALIDATION
    return job.build_split(side, VALIDATION)


@strategy("rolling_windows", makes="several", help="test windows moving through time")
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
    parameters = _given(length=length, n_windows=n_windows, step=step, train=train, gap=gap, start=start)
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
    """Return the time at which each test window begins."""
    if n_windows is not None:
        check_whole_number(n_windows, "n_windows", 1)
    oldest, newest = job.times.min(), job.times.max()
    # One more than can fit, or than anybody wants: such a number is refused below.
    most = int(min((newest - oldest) // stride, _MAX_WINDOWS)) + 2
    if start is None:
        end = np.nextafter(newest, np.inf) if job.times.dtype.kind == "f" else int(newest) + 1
        n_starts = 3 if n_windows is None else n_windows
        starts = [end - span - stride * at for at in range(min(n_starts, most))][::-1]
    else:
        first_start = job.clock.at(start, what="start")
        n_fitting = int(min((newest - first_start) // stride, most)) + 1
        n_starts = n_fitting if n_windows is None else n_windows
        starts = [first_start + stride * at for at in range(min(max(n_starts, 0), most))]
    if not starts or starts[0] <= oldest or starts[-1] > newest or n_starts > most:
        raise SplitError(
            f"{max(n_starts, 0)} windows of {span} do not fit between {job.clock.shown(oldest)} and "
            f"{job.clock.shown(newest)} with something to train on before the first.",
            hint="Use shorter or fewer windows, or another start.",
        )
    return starts


@strategy("unseen_users", makes="one", help="whole users held out, part of their rows known")
def unseen_users(
    data: Any,
    test: float = 0.2,
    validation: float = 0,
    *,
    known: float = 0.8,
    by: str = "random",
    **options: Unpack[SplitOptions],
) -> Split:
    """Whole users are held out (strong generalisation).

    Args:
        data: what is split.
        test: the share or number of users that are tested.
        validation: the share or number of users that validate.
        known: the share of each held-out user's rows that a model may read when recommending (the part
            `known`); the rest is the test.
        by: the rest is the newest rows ("time") or drawn ones ("random").
        options: as for every strategy.
    """
    check_choice("value of by", by, ("random", "time"))
    share: Any = known
    if not isinstance(share, float | np.floating | Fraction) or not 0 < share < 1:
        came = Phrase("{split.known=} is not a share above 0 and below 1.", known=known)
        raise SplitError(came, hint=Phrase("Pass {split.known=0.8}."))
    amounts = _check_amounts(test, validation)
    parameters = {"test": test, "validation": validation, "known": known, "by": by}
    job = Job("unseen_users", data, parameters, options, timed=by == "time")
    ids, user = job.ids("user")
    present = np.flatnonzero(np.bincount(user, minlength=len(ids)))
    part_of_user: Side = np.full(len(ids), TRAIN, dtype=np.int8)
    pool, user_keys = present, (job.user_draws()[present] >> np.uint64(1)).view(np.int64)
    counts = _whole_amounts(job, len(present), amounts, "users")
    for code, count in zip((TEST, VALIDATION), counts, strict=True):
        if count:
            group = np.zeros(len(pool), dtype=np.int32)
            chosen, _ = select_newest(user_keys, group, np.array([count]), "together", lambda rows: rows)
            part_of_user[pool[chosen]] = code
            pool, user_keys = pool[~chosen], user_keys[~chosen]
    side: Side = np.full(job.size, TRAIN, dtype=np.int8)
    rows = np.flatnonzero(part_of_user[user] != TRAIN)
    user_of_row = user[rows]
    unknown = float(1 - Fraction(known).limit_denominator(10**6))  # exactly: 1 - 0.8 is 0.2
    cut = job.cut(user_of_row, len(ids), (unknown, 0), by_time=by == "time", subset=rows)
    is_judged = cut == TEST
    side[rows] = part_of_user[user_of_row] - ~is_judged  # a known part is coded one below its judged part
    for judged, shown in ((TEST, KNOWN), (VALIDATION, VALIDATION_KNOWN)):
        rows = np.flatnonzero((side == judged) | (side == shown))
        if len(rows):
            side[rows] = job.apply_short_rule(side[rows], user[rows], len(ids), needed=(judged, shown))
    return job.build_split(side, KNOWN, *((VALIDATION_KNOWN, VALIDATION) if amounts[1] else ()))


def _given(**parameters: Any) -> dict[str, Any]:
    """Return the parameters that are not None."""
    return {name: value for name, value in parameters.items() if value is not None}


def _job_of_amounts(
    how: str, data: Any, amounts: tuple[Any, Any], options: SplitOptions, *, timed: bool = False
) -> tuple[Job, tuple[Any, Any]]:
    """Make the job of a strategy with amounts of test and validation; return these, checked, too."""
    checked = _check_amounts(*amounts)
    return Job(
        how, data, dict(zip(("test", "validation"), amounts, strict=True)), options, timed=timed
    ), checked


def _split_all_rows(job: Job, amounts: tuple[Any, Any], *, by_time: bool) -> Split:
    """Hold out the newest or the drawn rows of all."""
    counts = _whole_amounts(job, job.size, amounts, "rows")
    side = job.cut(np.zeros(job.size, dtype=np.int32), 1, counts, by_time=by_time)
    return job.build_split(side, *_extra_parts(amounts))


def _split_per_user(job: Job, amounts: tuple[Any, Any], *, by_time: bool) -> Split:
    """Hold out the newest or the drawn rows of each user."""
    return job.build_split(_cut_each_user(job, None, amounts, by_time=by_time), *_extra_parts(amounts))


def _cut_each_user(job: Job, rows: Int | None, amounts: tuple[Any, Any], *, by_time: bool = True) -> Side:
    """Return the side of each active row, or of some of them, if each user's last ones are held out."""
    ids, user = job.ids("user")
    own = user if rows is None else user[rows]
    side = job.cut(own, len(ids), amounts, by_time=by_time, subset=rows)
    return job.apply_short_rule(side, own, len(ids), needed=(TRAIN, TEST, *_extra_parts(amounts)))


def _extra_parts(amounts: tuple[Any, Any]) -> tuple[int, ...]:
    """Return the parts besides train and test."""
    return (VALIDATION,) if amounts[1] else ()


def _check_amounts(test: Any, validation: Any) -> tuple[Any, Any]:
    """Return the amounts of test and validation, each a share or a number; validation may be 0."""
    amounts = check_amount(test, "test"), check_amount(validation, "validation", optional=True)
    if all(isinstance(amount, float) for amount in amounts) and sum(amounts) >= 1:
        raise SplitError(
            f"test={amounts[0]} and validation={amounts[1]} leave nothing to train on.",
            hint="Their sum must stay below 1.",
        )
    return amounts


def _whole_amounts(job: Job, size: int, amounts: tuple[Any, Any], noun: str) -> tuple[int, int]:
    """Amounts of `size` rows or users as whole numbers; an error if none are left to train on."""
    test, validation = (int(job.row_counts(amount, np.array([size]))[0]) for amount in amounts)
    if test + validation >= size:
        raise SplitError(
            f"{test:,} {noun} for test and {validation:,} for validation leave none of {size:,} to train on.",
            hint="Ask for less.",
        )
    return test, validation


@overload
def split(
    data: Any,
    how: Literal["random_ratio", "per_user_ratio", "per_user_temporal"],
    test: float = ...,
    validation: float = ...,
    **options: Unpack[SplitOptions],
) -> Split: ...


@overload
def split(
    data: Any,
    how: Literal["leave_last"],
    n: int = ...,
    validation: int = ...,
    **options: Unpack[SplitOptions],
) -> Split: ...


@overload
def split(
    data: Any,
    how: Literal["leave_last_folds"],
    n_folds: int = ...,
    n: int = ...,
    validation: int = ...,
    **options: Unpack[SplitOptions],
) -> Folds: ...


@overload
def split(
    data: Any,
    how: Literal["leave_one_out"],
    which: str = ...,
    validation: int = ...,
    **options: Unpack[SplitOptions],
) -> Split: ...


@overload
def split(
    data: Any,
    how: Literal["global_temporal"],
    test: float | None = ...,
    validation: float = ...,
    *,
    at: Any = ...,
    validation_at: Any = ...,
    **options: Unpack[SplitOptions],
) -> Split: ...


@overload
def split(
    data: Any,
    how: Literal["unseen_users"],
    test: float = ...,
    validation: float = ...,
    *,
    known: float = ...,
    by: str = ...,
    **options: Unpack[SplitOptions],
) -> Split: ...


@overload
def split(
    data: Any, how: Literal["k_fold"], n_folds: int = ..., *, by: str = ..., **options: Unpack[SplitOptions]
) -> Folds: ...


@overload
def split(
    data: Any,
    how: Literal["rolling_windows"],
    length: Any,
    n_windows: int | None = ...,
    *,
    step: Any = ...,
    train: Any = ...,
    gap: Any = ...,
    start: Any = ...,
    **options: Unpack[SplitOptions],
) -> Folds: ...


@overload
def split(data: Any, how: str, *arguments: Any, **parameters: Any) -> Split | Folds: ...


def split(data: Any, how: str, *arguments: Any, **parameters: Any) -> Split | Folds:
    """Split interactions by the name of a strategy.

    Args:
        data: a table, a sparse matrix, a dict, a 2-D array or `Interactions`.
        how: a name in `STRATEGIES`: "leave_last" and "global_temporal" go by time; with
            "random_ratio" a model learns from what came after the test.
        arguments: positional arguments of that strategy.
        parameters: keyword arguments of that strategy.

    Returns:
        A `Split`; `Folds` of several for "k_fold", "leave_last_folds" and "rolling_windows".

    Raises:
        UnknownNameError: there is no such strategy.

    >>> split({"ann": ["a", "b", "c"], "bob": ["a", "d"]}, "leave_last").test
    {'ann': ['c'], 'bob': ['d']}
    """
    return STRATEGIES.find(how)(data, *arguments, **parameters)


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
    """Return one fold per user with two entries or more: a drawn entry is the test part, all others train.

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
    stored = as_csr(matrix, table="matrix").copy() if hasattr(matrix, "tocsr") else csr_array(matrix)
    if stored.dtype.kind == "f" and np.isnan(stored.data).any():
        raise InputError("the matrix holds NaN.", table="matrix", hint="Write 0 where there is no entry.")
    n_stored = stored.nnz
    stored.sum_duplicates()
    if stored.nnz < n_stored:
        repeats = f"{n_stored - stored.nnz} entries of the matrix are stored again for the same user and item"
        warn(RecsysWarning, f"{repeats}; their values were added up.")
    stored.eliminate_zeros()
    sizes = np.diff(stored.indptr)
    users = np.flatnonzero(sizes >= 2)
    keys = pair_keys(
        id_keys(Ids(np.arange(stored.shape[0])), seed, purpose="user"),
        id_keys(Ids(np.arange(stored.shape[0])), seed, purpose="entry"),
    )
    place = np.minimum((unit_floats(keys[users]) * sizes[users]).astype(np.int64), sizes[users] - 1)
    return LeaveOneOutMatrices(stored, stored.indptr[users].astype(np.int64) + place)
