"""The strategies: over all rows or within each user, by time or by draw.

Every strategy takes interactions of any supported type and gives parts of the same type, with rows in their
original order. The side of a row depends on ids, times and the seed, never on its place in the data (except
with on_tie="row_order").
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Unpack

import numpy as np

from recsys.errors import SplitError, UnknownNameError
from recsys.splits.borders import draw_keys, select_newest, time_keys
from recsys.splits.filters import check_whole_number
from recsys.splits.job import Job, SplitOptions, check_amount, check_shares
from recsys.splits.split_result import KNOWN, TEST, TRAIN, VALIDATION, VALIDATION_KNOWN, Side, Split
from recsys.types import Codes


def random_ratio(
    data: Any, test: float = 0.2, validation: float = 0, **options: Unpack[SplitOptions]
) -> Split:
    """A drawn share of all rows, or a number of them; rows of the same user and item stay together.

    >>> train, test = random_ratio({"ann": ["a", "b", "c"], "bob": ["a", "d"]}, test=0.4, seed=1)
    >>> sum(map(len, train.values())), sum(map(len, test.values()))
    (3, 2)
    """
    amounts = _check_amounts(test, validation)
    job = Job("random_ratio", data, {"test": test, "validation": validation}, options, timed=False)
    group = np.zeros(job.size, dtype=np.int32)
    counts = _whole_amounts(job, job.size, amounts, "rows")
    side = job.cut(draw_keys(job.pair_draws, group, 1), group, counts, drawn=True)
    return job.build_split(side, *_extra_parts(amounts))


def per_user_ratio(
    data: Any, test: float = 0.2, validation: float = 0, **options: Unpack[SplitOptions]
) -> Split:
    """A drawn share of each user's rows (rounded down, at least one), or a number of them."""
    amounts = _check_amounts(test, validation)
    job = Job("per_user_ratio", data, {"test": test, "validation": validation}, options, timed=False)
    return _split_per_user(job, amounts, by_time=False)


def leave_one_out(
    data: Any, which: str = "last", validation: int = 0, **options: Unpack[SplitOptions]
) -> Split:
    """One row per user: the last by time, or a drawn one (which="random"); validation=1 holds out one more.

    A user with a single row cannot be on both sides and is excluded and counted (`short=`).
    """
    if which not in ("last", "random"):
        raise UnknownNameError("value of which", which, ("last", "random"))
    parameters = {"which": which, "validation": validation}
    amounts = (1, check_amount(validation, "validation", optional=True))
    job = Job("leave_one_out", data, parameters, options, timed=which == "last")
    return _split_per_user(job, amounts, by_time=which == "last")


def leave_last(data: Any, n: int = 1, validation: int = 0, **options: Unpack[SplitOptions]) -> Split:
    """The last n rows of each user by time are test, the `validation` rows before them are validation.

    >>> train, test = leave_last({"ann": ["a", "b", "c"], "bob": ["a", "d"]})
    >>> train, test
    ({'ann': ['a', 'b'], 'bob': ['a']}, {'ann': ['c'], 'bob': ['d']})
    """
    n = check_whole_number(n, "n", 1)
    amounts = (n, check_amount(validation, "validation", optional=True))
    job = Job("leave_last", data, {"n": n, "validation": validation}, options, timed=True)
    return _split_per_user(job, amounts, by_time=True)


def per_user_temporal(
    data: Any, test: float = 0.2, validation: float = 0, **options: Unpack[SplitOptions]
) -> Split:
    """The last share of each user's rows by time (rounded down, at least one), or a number of them.

    There is no common border in time: a test row of one user may be older than a training row of another.
    """
    amounts = _check_amounts(test, validation)
    job = Job("per_user_temporal", data, {"test": test, "validation": validation}, options, timed=True)
    return _split_per_user(job, amounts, by_time=True)


def global_temporal(
    data: Any,
    test: float | None = None,
    validation: float = 0,
    *,
    at: Any = None,
    validation_at: Any = None,
    **options: Unpack[SplitOptions],
) -> Split:
    """One border in time for all users.

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
            "a border comes from at= or from test=, not from both.", hint="Leave one of them out."
        )
    if validation_at is not None and at is None:
        raise SplitError("validation_at= needs at=.", hint="Pass both borders.")
    amounts = None if at is not None else _check_amounts(0.2 if test is None else test, validation)
    parameters = {"test": test, "validation": validation, "at": at, "validation_at": validation_at}
    parameters = {name: value for name, value in parameters.items() if value is not None}
    job = Job("global_temporal", data, parameters, options, timed=True)
    if amounts is not None:
        group = np.zeros(job.size, dtype=np.int32)
        counts = _whole_amounts(job, job.size, amounts, "rows")
        side = job.cut(time_keys(job.times, group, 1), group, counts, drawn=False)
        return job.build_split(side, *_extra_parts(amounts))
    border = job.clock.at(at)
    side = np.where(job.times >= border, TEST, TRAIN).astype(np.int8)
    if validation_at is None:
        return job.build_split(side)
    start = job.clock.at(validation_at, what="validation_at")
    if start >= border:
        raise SplitError(f"validation_at={validation_at!r} is not before at={at!r}.", hint="Exchange them.")
    side[(job.times >= start) & (side == TRAIN)] = VALIDATION
    return job.build_split(side, VALIDATION)


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
    if by not in ("random", "time"):
        raise UnknownNameError("value of by", by, ("random", "time"))
    if not 0 < known < 1:
        raise SplitError(f"known={known!r} is not a share above 0 and below 1.", hint="Pass known=0.8.")
    amounts = _check_amounts(test, validation)
    parameters = {"test": test, "validation": validation, "known": known, "by": by}
    job = Job("unseen_users", data, parameters, options, timed=by == "time")
    ids, user = job.ids("user")
    part_of_user = _part_of_user(job, user, len(ids), amounts)
    side: Side = np.full(job.size, TRAIN, dtype=np.int8)
    rows = np.flatnonzero(part_of_user[user] != TRAIN)
    user_of_row = user[rows]
    keys = (
        time_keys(job.times[rows], user_of_row, len(ids))
        if by == "time"
        else draw_keys(job.pair_draws[rows], user_of_row, len(ids))
    )
    unknown = float(1 - Fraction(known).limit_denominator(10**6))  # exactly: 1 - 0.8 is 0.2
    is_judged = job.cut(keys, user_of_row, (unknown, 0), drawn=by == "random", subset=rows) == TEST
    side[rows] = part_of_user[user_of_row] - ~is_judged  # a known part is coded one below its judged part
    for judged, shown in ((TEST, KNOWN), (VALIDATION, VALIDATION_KNOWN)):
        rows = np.flatnonzero((side == judged) | (side == shown))
        if len(rows):
            side[rows] = job.apply_short_rule(side[rows], user[rows], len(ids), needed=(judged, shown))
    return job.build_split(side, KNOWN, *((VALIDATION_KNOWN, VALIDATION) if amounts[1] else ()))


def _part_of_user(job: Job, user: Codes, n_users: int, amounts: tuple[Any, Any]) -> Side:
    """The part each user belongs to: train, validation or test."""
    present = np.flatnonzero(np.bincount(user, minlength=n_users))
    part_of_user: Side = np.full(n_users, TRAIN, dtype=np.int8)
    pool, keys = present, (job.user_draws()[present] >> np.uint64(1)).view(np.int64)
    counts = _whole_amounts(job, len(present), amounts, "users")
    for code, count in zip((TEST, VALIDATION), counts, strict=True):
        if not count:
            continue
        group = np.zeros(len(pool), dtype=np.int32)
        chosen, _ = select_newest(keys, group, np.array([count]), "together", lambda rows: rows)
        part_of_user[pool[chosen]] = code
        pool, keys = pool[~chosen], keys[~chosen]
    return part_of_user


def _split_per_user(job: Job, amounts: tuple[Any, Any], *, by_time: bool) -> Split:
    """Hold out the newest or the drawn rows of each user."""
    ids, user = job.ids("user")
    keys = time_keys(job.times, user, len(ids)) if by_time else draw_keys(job.pair_draws, user, len(ids))
    side = job.cut(keys, user, amounts, drawn=not by_time)
    extra_parts = _extra_parts(amounts)
    side = job.apply_short_rule(side, user, len(ids), needed=(TRAIN, TEST, *extra_parts))
    return job.build_split(side, *extra_parts)


def _extra_parts(amounts: tuple[Any, Any]) -> tuple[int, ...]:
    """The parts beside train and test."""
    return (VALIDATION,) if amounts[1] else ()


def _check_amounts(test: Any, validation: Any) -> tuple[Any, Any]:
    """The amounts of test and validation, each a share or a number; validation may be 0."""
    amounts = check_amount(test, "test"), check_amount(validation, "validation", optional=True)
    check_shares(*amounts)
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
