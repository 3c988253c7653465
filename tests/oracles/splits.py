"""Every way of splitting once more, one user and one row at a time; only the random draws are shared."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction


def share(size, wanted, rounding="down"):
    """How many of `size` rows: a whole number as it is, a share rounded, at least 1."""
    if isinstance(wanted, int):
        return wanted
    exact = Fraction(str(wanted)) * size
    return max(
        1,
        {"down": math.floor(exact), "up": math.ceil(exact), "nearest": math.floor(exact + Fraction(1, 2))}[
            rounding
        ],
    )


def last_of(rows, n, order, on_tie, breaker):
    """The last n of some rows; `order` is the time of a row, `breaker` orders rows of equal time."""
    n = min(n, len(rows))
    if n == 0:
        return []
    by_time = sorted(rows, key=order)
    border = order(by_time[-n])
    newer = [r for r in rows if order(r) > border]
    equal = [r for r in rows if order(r) == border]
    room = n - len(newer)
    if room == len(equal) or on_tie == "together":
        return newer + equal
    if on_tie == "train":
        return newer
    return newer + sorted(equal, key=breaker)[len(equal) - room :]


def per_user(users, test, validation, order, *, on_tie="together", breaker=None, short="exclude"):
    """One side per row: the last of each user to test, those before to validation."""
    groups = defaultdict(list)
    for row, user in enumerate(users):
        groups[user].append(row)
    side = ["train"] * len(users)
    for rows in groups.values():
        test_rows = last_of(rows, share(len(rows), test), order, on_tie, breaker)
        rest = [r for r in rows if r not in test_rows]
        validation_rows = (
            last_of(rest, share(len(rows), validation), order, on_tie, breaker) if validation else []
        )
        left = [r for r in rest if r not in validation_rows]
        if not left or not test_rows or (validation and not validation_rows):
            for r in rows:
                side[r] = "excluded" if short == "exclude" else "train"
            continue
        for r in test_rows:
            side[r] = "test"
        for r in validation_rows:
            side[r] = "validation"
    return side


def whole(size, test, validation, order, *, on_tie="together", breaker=None):
    """One side per row, with one border for all users."""
    rows = list(range(size))
    test_rows = last_of(rows, share(size, test), order, on_tie, breaker)
    rest = [r for r in rows if r not in test_rows]
    validation_rows = last_of(rest, share(size, validation), order, on_tie, breaker) if validation else []
    return ["test" if r in test_rows else "validation" if r in validation_rows else "train" for r in rows]


def core(users, items, least_user, least_item, *, iterative=True):
    """Rows left after repeatedly removing users and items with too few rows."""
    rows = list(range(len(users)))
    while True:
        remaining = [
            r
            for r in rows
            if sum(users[q] == users[r] for q in rows) >= least_user
            and sum(items[q] == items[r] for q in rows) >= least_item
        ]
        if remaining == rows or not iterative:
            return remaining
        rows = remaining


def windows(times, begins, span, gap, reach):
    """For each window, one side per row."""
    sides_by_window = []
    for begin in begins:
        sides = []
        for t in times:
            if t >= begin + span:
                sides.append("excluded")
            elif t >= begin:
                sides.append("test")
            elif (gap and t >= begin - gap) or (reach is not None and t < begin - gap - reach):
                sides.append("excluded")
            else:
                sides.append("train")
        sides_by_window.append(sides)
    return sides_by_window
