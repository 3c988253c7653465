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
                side[r] = "excluded" if short == "exclude" else short
            continue
        for r in test_rows:
            side[r] = "test"
        for r in validation_rows:
            side[r] = "validation"
    return side


def last_folds(rows, n_folds=3, n=1, validation=0, on_tie="together"):
    """For each fold, one side per row: what the later folds test is left out, then the last n are tested."""
    order, breaker = _by_time(rows), [row.item for row in rows].__getitem__
    sides_by_fold = []
    for fold in range(n_folds):
        left = list(range(len(rows)))
        for user in {row.user for row in rows}:
            for _ in range(n_folds - 1 - fold):
                own = [at for at in left if rows[at].user == user]
                later = last_of(own, n, order, on_tie, breaker)
                left = [at for at in left if at not in later]
        inside = per_user(
            [rows[at].user for at in left], n, validation, lambda place, left=left: order(left[place]),
            on_tie=on_tie, breaker=lambda place, left=left: breaker(left[place]),
        )  # fmt: skip
        sides_by_fold.append(["excluded"] * len(rows))
        for at, side in zip(left, inside, strict=True):
            sides_by_fold[-1][at] = side
    return sides_by_fold


def seen_pairs(sides, pairs):
    """The sides with a held-out row excluded where train, or what is known, has its pair already."""
    had = {
        pair
        for side, pair in zip(sides, pairs, strict=True)
        if side in ("train", "known", "validation_known")
    }
    return [
        "excluded" if side in ("test", "validation") and pair in had else side
        for side, pair in zip(sides, pairs, strict=True)
    ]


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


def folds(rows, n_folds=5, by="rows"):
    """For each fold, one side per row: what is dealt out goes round the folds in the order of its draw."""
    units = [row.user if by == "users" else (row.user, row.item) for row in rows]
    draw = {u: row.user_draw if by == "users" else row.draw for u, row in zip(units, rows, strict=True)}
    turn = {}
    if by == "user_rows":
        for user in {row.user for row in rows}:
            own = sorted((u for u in draw if u[0] == user), key=draw.__getitem__)
            first = next(row.user_draw for row in rows if row.user == user) % n_folds
            turn |= {u: first + at for at, u in enumerate(own)}
    else:
        turn = {u: at for at, u in enumerate(sorted(draw, key=draw.__getitem__))}
    return [["test" if turn[u] % n_folds == fold else "train" for u in units] for fold in range(n_folds)]


def held_out_users(rows, test=0.2, validation=0, known=0.8, by="random"):
    """One side per row: the users drawn last are tested, those before validate, a share of each is known."""
    draw = {row.user: row.user_draw for row in rows}
    users = sorted(draw, key=draw.__getitem__)
    n_test = share(len(users), test)
    n_validation = share(len(users), validation) if validation else 0
    part = dict.fromkeys(users, "train")
    part |= dict.fromkeys(users[len(users) - n_test - n_validation :], "validation")
    part |= dict.fromkeys(users[len(users) - n_test :], "test")
    known_part = {"test": "known", "validation": "validation_known"}
    side = [part[row.user] for row in rows]
    for user in users:
        if part[user] == "train":
            continue
        own = [at for at, row in enumerate(rows) if row.user == user]
        order = [row.time if by == "time" else row.draw for row in rows].__getitem__
        judged = last_of(own, share(len(own), 1 - Fraction(str(known))), order, "together", None)
        for at in own:
            short = len(judged) == len(own)
            side[at] = "excluded" if short else part[user] if at in judged else known_part[part[user]]
    return side


def _one_per_user(rows, n, validation, order, **rules):
    return [per_user([row.user for row in rows], n, validation, order, **rules)]


def _by_time(rows):
    return [row.time for row in rows].__getitem__


def _by_draw(rows):
    return [row.draw for row in rows].__getitem__


def _later_windows(rows, length, n_windows=3):
    times = [row.time for row in rows]
    begins = [max(times) + 1 - length * (at + 1) for at in range(n_windows)][::-1]
    return windows(times, begins, length, 0, None)


# For every strategy: a function of rows (user, item, time, draw and user_draw) and its options that gives
# the side of each row, once for each split that is made.
SIDES = {
    "random_ratio": lambda rows, test=0.2, validation=0: [whole(len(rows), test, validation, _by_draw(rows))],
    "per_user_ratio": lambda rows, test=0.2, validation=0: _one_per_user(
        rows, test, validation, _by_draw(rows)
    ),
    "k_fold": folds,
    "leave_one_out": lambda rows, which="last", validation=0: _one_per_user(
        rows, 1, validation, _by_time(rows) if which == "last" else _by_draw(rows)
    ),
    "leave_last": lambda rows, n=1, validation=0, on_tie="together": _one_per_user(
        rows, n, validation, _by_time(rows), on_tie=on_tie, breaker=[row.item for row in rows].__getitem__
    ),
    "leave_last_folds": last_folds,
    "per_user_temporal": lambda rows, test=0.2, validation=0: _one_per_user(
        rows, test, validation, _by_time(rows)
    ),
    "global_temporal": lambda rows, test=0.2, validation=0: [
        whole(len(rows), test, validation, _by_time(rows))
    ],
    "rolling_windows": _later_windows,
    "unseen_users": lambda rows, **options: [held_out_users(rows, **options)],
}
