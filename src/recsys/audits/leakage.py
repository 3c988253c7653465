"""Checks for leaks: whether the training side knows something of the test."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from recsys.audits.check_registry import CheckResult, check
from recsys.audits.evidence import Evidence
from recsys.audits.findings import Finding
from recsys.errors import Phrase
from recsys.evaluation.evaluate import recommend
from recsys.records.arrays import Array, Float, Int, is_in, sorted_unique

_SAME_SHARE = 0.99  # of items with equal numbers, from which on a popularity is that count


@check("leakage", "times")
def test_before_train(e: Evidence) -> CheckResult:
    """Test events older than the newest training event of the same user."""
    early = e.times[1] < e.last_train_time[e.test.user]
    users = len(sorted_unique(e.test.user[early]))
    return e.finding_of_test(
        early,
        "error",
        "events",
        f"older than a training event of the same user ({users:,} users): the model has seen their future",
        todo="Split by time: recsys.splits.global_temporal, or recsys.splits.leave_last for each user.",
        users=users,
    )


@check("leakage", "times")
def test_before_border(e: Evidence) -> CheckResult:
    """Test events older than the newest training event of anyone."""
    train_time, test_time = e.times
    border = train_time.max()
    return e.finding_of_test(
        test_time < border,
        "warning",
        "events",
        f"older than the newest training event ({e.format_time(border)}): other users' later behaviour "
        "helps to predict them",
        todo="If the numbers should say how the model does when it is live, split at one time for everyone: "
        "recsys.splits.global_temporal.",
        border=str(border) if e.clock is None else e.clock.shown(border),
    )


@check("leakage", "times")
def items_from_the_future(e: Evidence) -> CheckResult:
    """Items of train that first appear after the test begins."""
    train_time, test_time = e.times
    start = test_time.min()
    latest = np.iinfo(np.int64).max if train_time.dtype.kind == "i" else np.inf
    first = np.full(e.n_items, latest, dtype=train_time.dtype)
    np.minimum.at(first, e.train.item, train_time)
    later = (first > start) & (e.train_counts > 0)
    n = int(later.sum())
    if n == 0:
        return None
    n_events = int(later[e.train.item].sum())
    return Finding(
        "warning",
        f"{n:,} items of train appear for the first time after the test begins "
        f"({e.format_time(start)}); they have "
        f"{n_events:,} training events and can be recommended before they exist",
        n,
        e.first_names(e.items, np.flatnonzero(later)),
        "Split at one time for everyone, or restrict candidates to what existed: "
        "recsys.splits.eligible_by_time.",
        {"events": n_events},
    )


@check("leakage", "times")
def ties_at_the_border(e: Evidence) -> CheckResult:
    """Users with a test event at the same time as their newest training event."""
    tied = e.times[1] == e.last_train_time[e.test.user]
    users = sorted_unique(e.test.user[tied])
    if len(users) == 0:
        return None
    newest = e.times[0] == e.last_train_time[e.train.user]
    n_left = int((newest & np.isin(e.train.user, users)).sum())
    return Finding(
        "warning",
        f"for {len(users):,} of {len(e.test_users):,} users a test event has the same time as their "
        f"newest training event ({int(tied.sum()):,} events, and {n_left:,} of the same times in train): "
        "which came first is not in the data",
        len(users),
        e.first_names(e.users, users),
        Phrase("Keep equal times together ({split.on_tie='together'}), or say how they are ordered."),
        {"events": int(tied.sum()), "left_in_train": n_left},
    )


@check("leakage")
def missing_times(e: Evidence) -> Iterator[Finding]:
    """Rows without a time in a table that has times."""
    for name, raw in e.raw.items():
        if raw.clock is not None and raw.clock.missing.any():
            n = int(raw.clock.missing.sum())
            yield Finding(
                "warning",
                f"{n:,} rows of {name} have no time, so nothing about time could be checked",
                n,
                (int(np.argmax(raw.clock.missing)),),
                "Fill them in or drop them before splitting.",
            )


@check("leakage")
def pairs_in_both(e: Evidence) -> CheckResult:
    """Pairs of user and item on both sides."""
    natural = e.repeats_are_natural
    return e.finding_of_test(
        e.seen(e.test),
        "warning" if natural else "error",
        "rows",
        "pairs of user and item that train holds too"
        + (" (users have items again within train as well)" if natural else ""),
        todo=Phrase("If users really have items again, do not filter seen items ({seen=None}); ")
        + "otherwise remove the pairs from one side.",
    )


@check("leakage")
def duplicate_rows(e: Evidence) -> Iterator[Finding]:
    """Rows that repeat user, item and time within a side."""
    for name, side in (("train", e.train), ("test", e.test)):
        rows = e.repeated_rows(side)
        n = int(rows.sum()) + side.repeated
        if n:
            yield Finding(
                "warning",
                f"{n:,} of {len(side) + side.repeated:,} rows of {name} repeat another row's user and item"
                + ("" if side.time is None or side.repeated else " and time"),
                n,
                e.examples(rows, side),
                "Drop them, unless an item may be had twice; counts and popularity are inflated by them.",
                {"side": name},
            )


@check("leakage", "popularity")
def popularity_knows_the_test(e: Evidence) -> CheckResult:
    """Whether the popularity= passed in was counted on the test as well."""
    if e.given_popularity is None:
        return None
    given, train, test = e.given_popularity, e.train_counts, e.test_counts
    used = (train + test) > 0
    in_test = test > 0  # only there do the counts differ
    if not in_test.any() or float((given == train)[used].mean()) >= _SAME_SHARE:
        return None
    for what, counts in (("train and test together", train + test), ("the test alone", test)):
        if float((given == counts)[in_test].mean()) >= _SAME_SHARE:
            return Finding(
                "error",
                f"the popularity is the count over {what}, so it knows what will be asked",
                int((given != train)[used].sum()),
                (),
                "Count popularity on train only.",
            )
    correlation = _partial_correlation(given[used], train[used], test[used])
    if correlation < 0.3 or int(used.sum()) < 50:
        return None
    return Finding(
        "warning",
        "the popularity follows the test counts beyond what train explains (partial correlation "
        f"{correlation:.2f})",
        int((given != train)[used].sum()),
        (),
        "Count popularity on train only.",
        {"partial_correlation": correlation},
    )


def _partial_correlation(given: Float, train: Int, test: Int) -> float:
    """Correlation of log popularity and log test counts, given log train counts."""
    x = np.column_stack([np.ones(len(given)), np.log1p(train)])

    def residual(values: Array) -> Array:
        y = np.log1p(np.maximum(values, 0))
        return np.asarray(y - x @ np.linalg.lstsq(x, y, rcond=None)[0])

    a, b = residual(given), residual(test)
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 1e-9 else 0.0


@check("leakage", "ready lists")
def lists_follow_test_popularity(e: Evidence) -> CheckResult:
    """Lists that are the most popular items of the test rather than of train."""
    shown = e.lists
    k = min(e.k, int(shown.place.max(initial=0)))
    listed_pairs = sorted_unique(e.pairs(shown)[(shown.place <= k) & shown.known])
    if len(listed_pairs) == 0:
        return None

    def share_of(counts: Int) -> float:
        best = recommend(e.popular(counts), k, seen=e.history)
        keys = (
            np.repeat(e.users.code_of(best.cases.values), best.sizes) * e.width
            + e.items.code_of(best.items.values)[best.codes]
        )
        personal = float(is_in(listed_pairs, sorted_unique(keys)).mean())
        # Popular items may also be recommended as the same list for everyone, seen or not; ties at place k
        # are included unless there are too many.
        top = np.flatnonzero(counts >= max(np.sort(counts)[-k:][0], 1))
        common = float(np.isin(listed_pairs % e.width, top).mean()) if len(top) <= 2 * k else 0.0
        return max(personal, common)

    counts = {"test": e.test_counts, "both": e.train_counts + e.test_counts}
    overlap = {name: share_of(of) for name, of in counts.items()}
    leak = max(overlap.values())
    if leak < 0.95:
        return None
    overlap = {"train": share_of(e.train_counts), **overlap}
    if overlap["train"] > min(0.9, leak - 0.05):
        return None
    return Finding(
        "error",
        f"{leak:.1%} of the list entries are the most popular items counted with the test, "
        f"{overlap['train']:.1%} those of train",
        int(leak * len(listed_pairs)),
        (),
        "Count popularity on train only.",
        overlap,
    )
