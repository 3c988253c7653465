"""The ways to split: over all rows or within each user, by time or by draw.

Every strategy takes what holds interactions and gives parts of the same kind, rows in the order they came.
What goes where follows from ids, times and the seed, never from the place of a row (but for
on_tie="row_order").
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Unpack

import numpy as np

from recsys.errors import SplitError, UnknownNameError
from recsys.splits.borders import draw_keys, newest, time_keys
from recsys.splits.filters import checked_whole
from recsys.splits.job import Job, SplitOptions, checked_share, checked_together
from recsys.splits.split_result import KNOWN, TEST, TRAIN, VALIDATION, VALIDATION_KNOWN, Side, Split
from recsys.types import Codes


def random_ratio(
    data: Any, test: float = 0.2, validation: float = 0, **options: Unpack[SplitOptions]
) -> Split:
    """A share of all rows, drawn; rows of one user and item stay on one side.

    >>> train, test = random_ratio({"ann": ["a", "b", "c"], "bob": ["a", "d"]}, test=0.4, seed=1)
    >>> sum(map(len, train.values())), sum(map(len, test.values()))
    (3, 2)
    """
    wants = _shares(test, validation)
    job = Job("random_ratio", data, {"test": test, "validation": validation}, options, timed=False)
    group = np.zeros(job.size, dtype=np.int32)
    side = job.cut(draw_keys(job.pair_draws, group, 1), group, _rows(job, wants), drawn=True)
    return job.finished(side, *_also(wants))


def per_user_ratio(
    data: Any, test: float = 0.2, validation: float = 0, **options: Unpack[SplitOptions]
) -> Split:
    """A share of each user's rows (rounded down, at least one), or a number of them, drawn."""
    wants = _shares(test, validation)
    job = Job("per_user_ratio", data, {"test": test, "validation": validation}, options, timed=False)
    return _drawn_per_user(job, wants)


def leave_one_out(
    data: Any, which: str = "last", validation: int = 0, **options: Unpack[SplitOptions]
) -> Split:
    """One row a user: the last by time, or a drawn one; `validation=1` holds out one more.

    A user with a single row cannot be on both sides and is excluded and counted (`short=`).
    """
    if which not in ("last", "random"):
        raise UnknownNameError("value of which", which, ("last", "random"))
    parameters = {"which": which, "validation": validation}
    wants = (1, checked_share(validation, "validation", optional=True))
    job = Job("leave_one_out", data, parameters, options, timed=which == "last")
    return _last_per_user(job, wants) if which == "last" else _drawn_per_user(job, wants)


def leave_last(data: Any, n: int = 1, validation: int = 0, **options: Unpack[SplitOptions]) -> Split:
    """The last n rows of each user by time, the `validation` rows before them, and the rest.

    >>> train, test = leave_last({"ann": ["a", "b", "c"], "bob": ["a", "d"]})
    >>> train, test
    ({'ann': ['a', 'b'], 'bob': ['a']}, {'ann': ['c'], 'bob': ['d']})
    """
    n = checked_whole(n, "n", 1)
    wants = (n, checked_share(validation, "validation", optional=True))
    job = Job("leave_last", data, {"n": n, "validation": validation}, options, timed=True)
    return _last_per_user(job, wants)


def per_user_temporal(
    data: Any, test: float = 0.2, validation: float = 0, **options: Unpack[SplitOptions]
) -> Split:
    """The last share of each user's rows by time (rounded down, at least one).

    Users reach into each other's future: a test row of one may be older than a training row of another.
    """
    wants = _shares(test, validation)
    job = Job("per_user_temporal", data, {"test": test, "validation": validation}, options, timed=True)
    return _last_per_user(job, wants)


def global_temporal(
    data: Any,
    test: float | None = None,
    validation: float = 0,
    *,
    at: Any = None,
    validation_at: Any = None,
    **options: Unpack[SplitOptions],
) -> Split:
    """One border in time for everyone: the newest share of all rows (0.2 unless said), or what `at` begins.

    `validation_at` begins the validation part, which ends where the test begins.
    """
    if at is not None and (test is not None or validation):
        raise SplitError(
            "a border comes from at= or from test=, not from both.", hint="Leave one of them out."
        )
    if validation_at is not None and at is None:
        raise SplitError("validation_at= needs at=.", hint="Pass both borders.")
    wants = None if at is not None else _shares(0.2 if test is None else test, validation)
    parameters = {"test": test, "validation": validation, "at": at, "validation_at": validation_at}
    job = Job("global_temporal", data, _given(parameters), options, timed=True)
    if wants is not None:
        group = np.zeros(job.size, dtype=np.int32)
        side = job.cut(time_keys(job.times, group, 1), group, _rows(job, wants), drawn=False)
        return job.finished(side, *_also(wants))
    border = job.clock.at(at)
    side = np.where(job.times >= border, TEST, TRAIN).astype(np.int8)
    if validation_at is None:
        return job.finished(side)
    start = job.clock.at(validation_at, what="validation_at")
    if start >= border:
        raise SplitError(f"validation_at={validation_at!r} is not before at={at!r}.", hint="Exchange them.")
    side[(job.times >= start) & (side == TRAIN)] = VALIDATION
    return job.finished(side, VALIDATION)


def unseen_users(
    data: Any,
    test: float = 0.2,
    validation: float = 0,
    *,
    known: float = 0.8,
    by: str = "random",
    **options: Unpack[SplitOptions],
) -> Split:
    """Whole users are held out (strong generalisation): a share of them, or a number.

    Of each held-out user a share `known` may be looked at when recommending (part `known`), the rest is the
    test: the newest rows with by="time", drawn ones with by="random".
    """
    if by not in ("random", "time"):
        raise UnknownNameError("value of by", by, ("random", "time"))
    if not 0 < known < 1:
        raise SplitError(f"known={known!r} is not a share above 0 and below 1.", hint="Pass known=0.8.")
    wants = _shares(test, validation)
    parameters = {"test": test, "validation": validation, "known": known, "by": by}
    job = Job("unseen_users", data, parameters, options, timed=by == "time")
    ids, user = job.ids("user")
    of_user = _held_out_users(job, user, len(ids), wants)
    side: Side = np.full(job.size, TRAIN, dtype=np.int8)
    rows = np.flatnonzero(of_user[user] != TRAIN)
    own = user[rows]
    keys = (
        time_keys(job.times[rows], own, len(ids))
        if by == "time"
        else draw_keys(job.pair_draws[rows], own, len(ids))
    )
    judged = job.cut(keys, own, (_exact_rest(known), 0), drawn=by == "random", every=rows) == TEST
    side[rows] = of_user[own] - ~judged  # the known part of a user stands right before the judged one
    side = _without_halves(job, side, user, len(ids))
    return job.finished(side, KNOWN, *((VALIDATION_KNOWN, VALIDATION) if wants[1] else ()))


def _exact_rest(known: float) -> float:
    """1 - known without the dust of binary fractions: 1 - 0.8 is 0.2."""
    return float(1 - Fraction(known).limit_denominator(10**6))


def _held_out_users(job: Job, user: Codes, n_users: int, wants: tuple[Any, Any]) -> Side:
    """The part each user belongs to."""
    present = np.flatnonzero(np.bincount(user, minlength=n_users))
    of_user: Side = np.full(n_users, TRAIN, dtype=np.int8)
    pool, keys = present, (job.user_draws()[present] >> np.uint64(1)).view(np.int64)
    for code, want in zip((TEST, VALIDATION), _numbers(job, len(present), wants, "users"), strict=True):
        if not want:
            continue
        zero = np.zeros(len(pool), dtype=np.int32)
        chosen, _ = newest(keys, zero, np.array([want]), "together", lambda rows: rows)
        of_user[pool[chosen]] = code
        pool, keys = pool[~chosen], keys[~chosen]
    return of_user


def _without_halves(job: Job, side: Side, user: Codes, n_users: int) -> Side:
    """Held-out users need a known and a judged row; where one is missing they are short."""
    for judged, shown in ((TEST, KNOWN), (VALIDATION, VALIDATION_KNOWN)):
        rows = np.flatnonzero((side == judged) | (side == shown))
        if len(rows):
            side[rows] = job.settle_short(side[rows].copy(), user[rows], n_users, needed=(judged, shown))
    return side


def _last_per_user(job: Job, wants: tuple[Any, Any]) -> Split:
    ids, user = job.ids("user")
    side = job.cut(time_keys(job.times, user, len(ids)), user, wants, drawn=False)
    return _settled(job, side, user, len(ids), wants)


def _drawn_per_user(job: Job, wants: tuple[Any, Any]) -> Split:
    ids, user = job.ids("user")
    side = job.cut(draw_keys(job.pair_draws, user, len(ids)), user, wants, drawn=True)
    return _settled(job, side, user, len(ids), wants)


def _settled(job: Job, side: Side, user: Codes, n_users: int, wants: tuple[Any, Any]) -> Split:
    needed = (TRAIN, TEST, VALIDATION) if wants[1] else (TRAIN, TEST)
    return job.finished(job.settle_short(side, user, n_users, needed=needed), *_also(wants))


def _also(wants: tuple[Any, Any]) -> tuple[int, ...]:
    """Parts that were asked for beside train and test."""
    return (VALIDATION,) if wants[1] else ()


def _shares(test: Any, validation: Any) -> tuple[Any, Any]:
    wants = checked_share(test, "test"), checked_share(validation, "validation", optional=True)
    checked_together(*wants)
    return wants


def _rows(job: Job, wants: tuple[Any, Any]) -> tuple[int, int]:
    return _numbers(job, job.size, wants, "rows")


def _numbers(job: Job, size: int, wants: tuple[Any, Any], what: str) -> tuple[int, int]:
    """Shares of one whole as numbers; something has to be left."""
    made = [int(job.amount(want, np.array([size]))[0]) for want in wants]
    if sum(made) >= size:
        raise SplitError(
            f"{made[0]:,} {what} for test and {made[1]:,} for validation leave none of {size:,} to train on.",
            hint="Ask for less.",
        )
    return made[0], made[1]


def _given(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if value is not None}
