"""Checks for leaks: whether the training side knows something of the test."""

from __future__ import annotations

import numpy as np

from recsys.audit.check_registry import CheckResult, check
from recsys.audit.evidence import Evidence, SplitSide, contained_in
from recsys.audit.findings import Finding
from recsys.evaluation.evaluate import recommend
from recsys.metrics.shown_items import sorted_unique
from recsys.types import Array, Float, Int

_SAME_SHARE = 0.99  # of items with equal numbers, from which on a popularity is that count


@check("leakage", "times")
def test_before_train(e: Evidence) -> CheckResult:
    """Test events older than the newest training event of the same user."""
    last, time = e.last_train_time, e.test.time
    if last is None or time is None:
        return None
    early = time < last[e.test.user]
    n = int(early.sum())
    if n == 0:
        return None
    users = len(sorted_unique(e.test.user[early]))
    return Finding(
        "test_before_train",
        "error",
        f"{n:,} of {len(e.test):,} test events ({n / len(e.test):.1%}) are older than a training "
        f"event of the same user ({users:,} users): the model has seen their future",
        n,
        e.examples(early, e.test),
        "Split by time: recsys.splits.global_temporal, or recsys.splits.leave_last for each user.",
        {"users": users, "share": n / len(e.test)},
    )


@check("leakage", "times")
def test_before_border(e: Evidence) -> CheckResult:
    """Test events older than the newest training event of anyone."""
    if e.train.time is None or e.test.time is None:
        return None
    border = e.train.time.max()
    early = e.test.time < border
    n = int(early.sum())
    if n == 0:
        return None
    return Finding(
        "test_before_border",
        "warning",
        f"{n:,} of {len(e.test):,} test events ({n / len(e.test):.1%}) are older than the newest "
        f"training event ({e.format_time(border)}): other users' later behaviour helps to predict them",
        n,
        e.examples(early, e.test),
        "If the numbers should say how the model does when it is live, split at one time for everyone: "
        "recsys.splits.global_temporal.",
        {"border": e.format_time(border), "share": n / len(e.test)},
    )


@check("leakage", "times")
def items_from_the_future(e: Evidence) -> CheckResult:
    """Items of train that first appear after the test begins."""
    if e.train.time is None or e.test.time is None:
        return None
    start = e.test.time.min()
    latest = np.iinfo(np.int64).max if e.train.time.dtype.kind == "i" else np.inf
    first = np.full(e.n_items, latest, dtype=e.train.time.dtype)
    np.minimum.at(first, e.train.item, e.train.time)
    later = (first > start) & (e.train_counts > 0)
    rows = later[e.train.item]
    n = int(later.sum())
    if n == 0:
        return None
    return Finding(
        "items_from_the_future",
        "warning",
        f"{n:,} items of train appear for the first time after the test begins "
        f"({e.format_time(start)}); they have "
        f"{int(rows.sum()):,} training events and can be recommended before they exist",
        n,
        tuple(e.name_item(i) for i in np.flatnonzero(later)[: e.n_examples]),
        "Split at one time for everyone, or restrict candidates to what existed: "
        "recsys.splits.eligible_by_time.",
        {"events": int(rows.sum())},
    )


@check("leakage", "times")
def ties_at_the_border(e: Evidence) -> CheckResult:
    """Users with a test event at the same time as their newest training event."""
    last, time = e.last_train_time, e.test.time
    if last is None or time is None:
        return None
    tied = time == last[e.test.user]
    users = sorted_unique(e.test.user[tied])
    if len(users) == 0:
        return None
    return Finding(
        "ties_at_the_border",
        "warning",
        f"for {len(users):,} of {len(e.test_users):,} users a test event has the same time as their "
        f"newest training event ({int(tied.sum()):,} events): which came first is not in the data",
        len(users),
        tuple(e.name_user(u) for u in users[: e.n_examples]),
        "Keep equal times together (on_tie='together' in recsys.splits), or say how they are ordered.",
        {"events": int(tied.sum())},
    )


@check("leakage")
def missing_times(e: Evidence) -> CheckResult:
    """Rows without a time in a table that has times."""
    findings = []
    for name, raw in e.raw.items():
        if raw.clock is None or not raw.clock.missing.any():
            continue
        n = int(raw.clock.missing.sum())
        findings.append(
            Finding(
                "missing_times",
                "warning",
                f"{n:,} rows of {name} have no time, so nothing about time could be checked",
                n,
                (int(np.argmax(raw.clock.missing)),),
                "Fill them in or drop them before splitting.",
            )
        )
    return findings


@check("leakage")
def pairs_in_both(e: Evidence) -> CheckResult:
    """Pairs of user and item on both sides."""
    in_train = e.seen(e.test)
    n = int(in_train.sum())
    if n == 0:
        return None
    natural = e.repeats_are_natural
    return Finding(
        "pairs_in_both",
        "warning" if natural else "error",
        f"{n:,} of {len(e.test):,} test rows ({n / len(e.test):.1%}) are pairs of user and item "
        "that train holds too" + (" (users have items again within train as well)" if natural else ""),
        n,
        e.examples(in_train, e.test),
        "If users really have items again, do not filter seen items (seen=None); otherwise remove "
        "the pairs from one side.",
        {"share": n / len(e.test)},
    )


@check("leakage")
def duplicate_rows(e: Evidence) -> CheckResult:
    """Rows that repeat user, item and time within a side."""
    findings = []
    for name, side in (("train", e.train), ("test", e.test)):
        rows = _repeated_rows(e, side)
        n = int(rows.sum()) + side.repeated
        if n == 0:
            continue
        findings.append(
            Finding(
                "duplicate_rows",
                "warning",
                f"{n:,} of {len(side) + side.repeated:,} rows of {name} repeat another row's user and item"
                + ("" if side.time is None or side.repeated else " and time"),
                n,
                e.examples(rows, side),
                "Drop them, unless an item may be had twice; counts and popularity are inflated by them.",
                {"side": name},
            )
        )
    return findings


def _repeated_rows(e: Evidence, side: SplitSide) -> Array:
    """Rows that repeat the user and item of another, and its time if there are times."""
    if side.time is not None:
        return e.exact_repeats(side)
    key = e.pairs(side)
    order = np.argsort(key, kind="stable")
    rows = np.zeros(len(side), dtype=bool)
    rows[order[1:][key[order][1:] == key[order][:-1]]] = True
    return rows


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
                "popularity_knows_the_test",
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
        "popularity_knows_the_test",
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


def _top_share(items: Int, counts: Int, k: int) -> float:
    """The share of entries among the k items with the highest counts, ties included; 0 if too many tie."""
    top = np.flatnonzero(counts >= max(np.sort(counts)[-k:][0], 1))
    return float(np.isin(items, top).mean()) if len(top) <= 2 * k else 0.0


@check("leakage", "ready lists")
def lists_follow_test_popularity(e: Evidence) -> CheckResult:
    """Lists that are the most popular items of the test rather than of train."""
    shown = e.lists
    if shown is None:
        return None
    k = min(e.k, int(shown.place.max(initial=0)))
    inside = (shown.place <= k) & (shown.user >= 0)
    listed_pairs = sorted_unique(e.pairs(shown)[inside & (shown.item >= 0)])
    if len(listed_pairs) == 0:
        return None
    overlap = {}
    for what, counts in (
        ("train", e.train_counts),
        ("test", e.test_counts),
        ("both", e.train_counts + e.test_counts),
    ):
        best = recommend(e.popular(counts), k, seen=e.history)
        keys = (
            np.repeat(e.users.code_of(best.cases.values), best.sizes) * e.width
            + e.items.code_of(best.items.values)[best.codes]
        )
        # Popular items may also be recommended as the same list for everyone, seen or not.
        overlap[what] = max(
            float(contained_in(listed_pairs, sorted_unique(keys)).mean()),
            _top_share(listed_pairs % e.width, counts, k),
        )
    leak = max(overlap["test"], overlap["both"])
    if leak < 0.95 or overlap["train"] > 0.9 or overlap["train"] > leak - 0.05:
        return None
    return Finding(
        "lists_follow_test_popularity",
        "error",
        f"{leak:.1%} of the list entries are the most popular items counted with the test, "
        f"{overlap['train']:.1%} those of train",
        int(leak * len(listed_pairs)),
        (),
        "Count popularity on train only.",
        overlap,
    )
