"""Whether the training side knows what the test is about to ask."""

from __future__ import annotations

import numpy as np

from recsys.audit.check_registry import Found, check
from recsys.audit.evidence import Evidence, SplitSide, among
from recsys.audit.findings import Finding
from recsys.evaluation.evaluate import recommend
from recsys.metrics.shown_items import distinct
from recsys.types import Array, Float, Int

_SAME = 0.99  # share of items whose number agrees, from which on a popularity is that count


@check("times")
def test_before_train(e: Evidence) -> Found:
    """Test events older than the newest training event of the same user."""
    last, time = e.last_train_time, e.test.time
    if last is None or time is None:
        return None
    early = time < last[e.test.user]
    n = int(early.sum())
    if n == 0:
        return None
    users = len(distinct(e.test.user[early]))
    return Finding(
        "test_before_train",
        "error",
        f"{n:,} of {len(e.test):,} test events ({n / len(e.test):.1%}) are older than a training "
        "event of the "
        f"same user ({users:,} users): the model has seen their future",
        n,
        e.examples(early, e.test),
        "Split by time: recsys.splits.global_temporal, or recsys.splits.leave_last for each user.",
        {"users": users, "share": n / len(e.test)},
    )


@check("times")
def test_before_border(e: Evidence) -> Found:
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
        "training event "
        f"({e.shown_time(border)}): other users' later behaviour helps to predict them",
        n,
        e.examples(early, e.test),
        "If the numbers shall say how the model does when it is live, split at one time for everyone: "
        "recsys.splits.global_temporal.",
        {"border": e.shown_time(border), "share": n / len(e.test)},
    )


@check("times")
def items_from_the_future(e: Evidence) -> Found:
    """Items that exist only after the test begins, and still are in train."""
    if e.train.time is None or e.test.time is None:
        return None
    start = e.test.time.min()
    first = _first_times(e.train, e.n_items)
    later = (first > start) & (e.train_counts > 0)
    rows = later[e.train.item]
    n = int(later.sum())
    if n == 0:
        return None
    return Finding(
        "items_from_the_future",
        "warning",
        f"{n:,} items of train appear for the first time after the test begins "
        f"({e.shown_time(start)}); they have "
        f"{int(rows.sum()):,} training events and can be recommended before they exist",
        n,
        tuple(e.name_item(i) for i in np.flatnonzero(later)[: e.n_examples]),
        "Split at one time for everyone, or restrict candidates to what existed: "
        "recsys.splits.eligible_by_time.",
        {"events": int(rows.sum())},
    )


def _first_times(side: SplitSide, n_items: int) -> Array:
    time = np.zeros(0) if side.time is None else side.time
    high = np.iinfo(np.int64).max if time.dtype.kind == "i" else np.inf
    first = np.full(n_items, high, dtype=time.dtype)
    np.minimum.at(first, side.item, time)
    return first


@check("times")
def ties_at_the_border(e: Evidence) -> Found:
    """Users whose newest training and oldest test event have the same time."""
    last, time = e.last_train_time, e.test.time
    if last is None or time is None:
        return None
    level = time == last[e.test.user]
    users = distinct(e.test.user[level])
    if len(users) == 0:
        return None
    return Finding(
        "ties_at_the_border",
        "warning",
        f"for {len(users):,} of {len(e.test_users):,} users a test event has the same time as their "
        f"newest training event ({int(level.sum()):,} events): which came first is not in the data",
        len(users),
        tuple(e.name_user(u) for u in users[: e.n_examples]),
        "Keep equal times together (on_tie='together' in recsys.splits), or say how they are ordered.",
        {"events": int(level.sum())},
    )


@check()
def missing_times(e: Evidence) -> Found:
    """Rows without a time in a table that has times."""
    out = []
    for name, raw in e.raw.items():
        if raw.clock is None or not raw.clock.missing.any():
            continue
        n = int(raw.clock.missing.sum())
        out.append(
            Finding(
                "missing_times",
                "warning",
                f"{n:,} rows of {name} have no time, so nothing about time could be checked",
                n,
                (int(np.argmax(raw.clock.missing)),),
                "Fill them in or drop them before splitting.",
            )
        )
    return out


@check()
def pairs_in_both(e: Evidence) -> Found:
    """Pairs of user and item on both sides."""
    again = e.seen(e.test)
    n = int(again.sum())
    if n == 0:
        return None
    natural = e.repeats_are_natural
    return Finding(
        "pairs_in_both",
        "warning" if natural else "error",
        f"{n:,} of {len(e.test):,} test rows ({n / len(e.test):.1%}) are pairs of user and item "
        "that train holds too" + (" (users have items again within train as well)" if natural else ""),
        n,
        e.examples(again, e.test),
        "If users really have items again, do not filter seen items (seen=None); otherwise remove "
        "the pairs from "
        "one side.",
        {"share": n / len(e.test)},
    )


@check()
def duplicate_rows(e: Evidence) -> Found:
    """Rows that repeat user, item and time within a side."""
    out = []
    for name, side in (("train", e.train), ("test", e.test)):
        rows = _repeats(e, side)
        n = int(rows.sum()) + side.repeated
        if n == 0:
            continue
        out.append(
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
    return out


def _repeats(e: Evidence, side: SplitSide) -> Array:
    """Rows after the first of their user and item, and time where there is one."""
    if side.time is not None:
        return e.same_again(side)
    key = e.pairs(side)
    order = np.argsort(key, kind="stable")
    rows = np.zeros(len(side), dtype=bool)
    rows[order[1:][key[order][1:] == key[order][:-1]]] = True
    return rows


@check("popularity")
def popularity_knows_the_test(e: Evidence) -> Found:
    """Whether a popularity that was handed over was counted on the test as well."""
    if e.given_popularity is None:
        return None
    return _popularity_finding(e.given_popularity, e.train_counts, e.test_counts)


def _popularity_finding(given: Float, train: Int, test: Int) -> Finding | None:
    judged = (train + test) > 0
    told = (test > 0) & judged  # only there do the counts differ
    if not told.any() or float((given == train)[judged].mean()) >= _SAME:
        return None
    for what, counts in (("train and test together", train + test), ("the test alone", test)):
        if float((given == counts)[told].mean()) >= _SAME:
            return Finding(
                "popularity_knows_the_test",
                "error",
                f"the popularity is the count over {what}, so it knows what will be asked",
                int((given != train)[judged].sum()),
                (),
                "Count popularity on train only.",
            )
    share = _partial_correlation(given[judged], train[judged], test[judged])
    if share < 0.3 or int(judged.sum()) < 50:
        return None
    return Finding(
        "popularity_knows_the_test",
        "warning",
        "the popularity follows the test counts beyond what train explains (partial correlation "
        f"{share:.2f})",
        int((given != train)[judged].sum()),
        (),
        "Count popularity on train only.",
        {"partial_correlation": share},
    )


def _partial_correlation(given: Float, train: Int, test: Int) -> float:
    """Correlation of log popularity and log test counts, both without what log train counts explain."""
    x = np.column_stack([np.ones(len(given)), np.log1p(train)])

    def rest(values: Array) -> Array:
        y = np.log1p(np.maximum(values, 0))
        return np.asarray(y - x @ np.linalg.lstsq(x, y, rcond=None)[0])

    a, b = rest(given), rest(test)
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 1e-9 else 0.0


def _top_share(items: Int, counts: Int, k: int) -> float:
    """How many entries are among the k items counted most, ties included; 0 where ties leave no top."""
    top = np.flatnonzero(counts >= max(np.sort(counts)[-k:][0], 1))
    return float(np.isin(items, top).mean()) if len(top) <= 2 * k else 0.0


@check("ready lists")
def lists_follow_test_popularity(e: Evidence) -> Found:
    """Lists that are the most popular items of the test rather than of train."""
    shown = e.lists
    if shown is None:
        return None
    k = min(e.k, int(shown.place.max(initial=0)))
    inside = (shown.place <= k) & (shown.user >= 0)
    have = distinct(e.pairs(shown)[inside & (shown.item >= 0)])
    if len(have) == 0:
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
        # The same list for everyone is one more way to recommend what is popular.
        overlap[what] = max(float(among(have, distinct(keys)).mean()), _top_share(have % e.width, counts, k))
    leak = max(overlap["test"], overlap["both"])
    if leak < 0.95 or overlap["train"] > 0.9 or overlap["train"] > leak - 0.05:
        return None
    return Finding(
        "lists_follow_test_popularity",
        "error",
        f"{leak:.1%} of the list entries are the most popular items counted with the test, "
        f"{overlap['train']:.1%} "
        "those of train",
        int(leak * len(have)),
        (),
        "Count popularity on train only.",
        overlap,
    )
