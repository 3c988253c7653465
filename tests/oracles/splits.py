"""Every way of splitting again, a user and a row at a time; shares nothing with the library but the draws."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction


def share(size, wanted, rounding="down"):
    """A whole number as it is; a share rounded, at least 1."""
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
    """Which of some rows are their last n; `order` is the time of a row, `breaker` parts equal ones."""
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
    """A side a row: the last of each user to test, those before to validation."""
    groups = defaultdict(list)
    for row, user in enumerate(users):
        groups[user].append(row)
    side = ["train"] * len(users)
    for rows in groups.values():
        held = last_of(rows, share(len(rows), test), order, on_tie, breaker)
        rest = [r for r in rows if r not in held]
        tuned = last_of(rest, share(len(rows), validation), order, on_tie, breaker) if validation else []
        left = [r for r in rest if r not in tuned]
        if not left or not held or (validation and not tuned):
            for r in rows:
                side[r] = "excluded" if short == "exclude" else "train"
            continue
        for r in held:
            side[r] = "test"
        for r in tuned:
            side[r] = "validation"
    return side


def whole(size, test, validation, order, *, on_tie="together", breaker=None):
    """A side a row, one border for all."""
    rows = list(range(size))
    held = last_of(rows, share(size, test), order, on_tie, breaker)
    rest = [r for r in rows if r not in held]
    tuned = last_of(rest, share(size, validation), order, on_tie, breaker) if validation else []
    return ["test" if r in held else "validation" if r in tuned else "train" for r in rows]


def core(users, items, least_user, least_item, *, iterative=True):
    """Rows left when users and items with too few rows are taken away, again and again."""
    rows = list(range(len(users)))
    while True:
        kept = [
            r
            for r in rows
            if sum(users[q] == users[r] for q in rows) >= least_user
            and sum(items[q] == items[r] for q in rows) >= least_item
        ]
        if kept == rows or not iterative:
            return kept
        rows = kept


def windows(times, begins, span, gap, reach):
    """A side a row for each window."""
    made = []
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
        made.append(sides)
    return made
