"""Checks of what was ranked: candidates, all or sampled, cold and seen items, missing users, ties."""

from __future__ import annotations

import numpy as np

from recsys.audits.check_registry import CheckResult, check
from recsys.audits.evidence import Evidence, has_row
from recsys.audits.findings import Finding
from recsys.errors import Phrase
from recsys.metrics.registry import set_requests
from recsys.records.arrays import Bool, Int, is_in, sorted_unique
from recsys.stats.sampled import estimate

_MIN_EXPECTED = 7.0  # expected number of missing items: none by chance has a probability of exp(-7)
_SMALL_SHARE = 0.01
_NEARLY_ALL = 0.95


@check("candidates", "lists")
def candidates_from_the_test(e: Evidence) -> CheckResult:
    """Lists that hold items of the test only, as if candidates had been taken from it."""
    shown = e.lists
    known, own = shown.known, e.hits
    share = float(own.mean()) if known.any() else 0.0
    n_lists = int((np.bincount(shown.user[known], minlength=e.n_users) > 0).sum())
    if share >= _NEARLY_ALL and n_lists >= 5 and int(known.sum()) >= 2 * n_lists:
        return Finding(
            "error",
            f"{share:.0%} of the list entries are test items of the same user: each user's own test "
            "items were ranked, which measures the order of known items, not recommendation",
            int(own.sum()),
            e.examples(own, shown),
            "Rank the whole catalogue, or report the numbers as re-ranking of the users' own items.",
            {"share": share},
        )
    listed = np.flatnonzero(np.bincount(shown.item[shown.item >= 0], minlength=e.n_items))
    in_train, in_test = e.train_counts > 0, e.test_counts > 0
    # The chance of an item to be outside the test: the share outside among items with a similar train count.
    level = np.floor(np.log2(np.maximum(e.train_counts, 1))).astype(np.int64)
    n = np.bincount(level[in_train], minlength=int(level.max(initial=0)) + 1)
    n_outside = np.bincount(level[in_train & ~in_test], minlength=len(n))
    chance = np.where(in_train, (n_outside / np.maximum(n, 1))[level], 0.0)
    expected = chance[listed].sum()
    if not in_test[listed].all() or expected < _MIN_EXPECTED:
        return None
    unused = int((in_train & ~in_test).sum())
    return Finding(
        "error",
        f"all {len(listed):,} different items in the lists occur in the test, though {unused:,} "
        "items of train do not, "
        f"and about {expected:.0f} of those as popular would be expected: candidates look restricted "
        "to the test set",
        len(listed),
        (),
        "Rank the whole catalogue (items of train), or say that the numbers hold for these candidates only.",
        {"expected_outside": float(expected), "train_items_outside_test": unused},
    )


@check("candidates")
def cold_users(e: Evidence) -> CheckResult:
    """Test users that are not in train."""
    cold = np.bincount(e.train.user, minlength=e.n_users)[e.test.user] == 0
    return _cold_finding(
        e,
        cold,
        "users",
        "Report them apart (by=), or leave them out with recsys.splits.min_interactions or a warm filter.",
    )


@check("candidates")
def cold_items(e: Evidence) -> CheckResult:
    """Test items that are not in train."""
    cold = e.train_counts[e.test.item] == 0
    return _cold_finding(
        e,
        cold,
        "items",
        "A model of interactions cannot find them: count them apart, or drop them (unknown_items='drop').",
    )


def _cold_finding(e: Evidence, cold: Bool, what: str, todo: str) -> Finding | None:
    if not cold.any():
        return None
    codes, ids = (e.test.user, e.users) if what == "users" else (e.test.item, e.items)
    cold_codes, n_all = sorted_unique(codes[cold]), len(sorted_unique(codes))
    share = float(cold.mean())
    return Finding(
        "info" if share < _SMALL_SHARE else "warning",
        f"{len(cold_codes):,} of {n_all:,} test {what} are not in train "
        f"({int(cold.sum()):,} test rows, {share:.1%})",
        len(cold_codes),
        e.first_names(ids, cold_codes),
        todo,
        {"rows": int(cold.sum()), "share": share},
    )


@check("candidates", "items")
def truth_outside_the_catalogue(e: Evidence) -> CheckResult:
    """Test items that cannot be recommended."""
    known = np.ones(e.n_items, dtype=bool)
    if e.catalogue is not None:
        known &= e.catalogue.code_of(e.items.values) >= 0
    if e.is_source:
        known &= has_row(e.ranked.item_rows, e.items)
    return e.finding_of_test(
        ~known[e.test.item],
        "warning",
        "rows",
        "items outside the catalogue: they can only be missed",
        todo="Add them to the catalogue, or take them out of the truth "
        + Phrase("with {unknown_items='drop'} and say so."),
    )


@check("candidates", "factors")
def users_outside_the_model(e: Evidence) -> CheckResult:
    """Test users without a row in the model."""
    unknown = ~has_row(e.ranked.user_rows, e.users)[e.test.user]
    return _missing_users_finding(
        e,
        sorted_unique(e.test.user[unknown]),
        "have no row in the model",
        Phrase("Give the rows their ids with {Factors.user_ids=}, or leave out such users and say so."),
    )


def _missing_users_finding(e: Evidence, users: Int, fault: str, todo: str) -> Finding | None:
    if len(users) == 0:
        return None
    n_all = len(e.test_users)
    return Finding(
        "error" if len(users) == n_all else "warning",
        f"{len(users):,} of {n_all:,} test users {fault}",
        len(users),
        e.first_names(e.users, users),
        todo,
    )


@check("candidates", "ready lists")
def unknown_in_lists(e: Evidence) -> CheckResult:
    """Recommended items that occur neither in train or test nor in the catalogue."""
    if e.ranked.lists.items.kind != e.items.kind:
        return None
    names = e.ranked.lists.items.values[np.unique(e.ranked.lists.codes)]
    known = e.items.code_of(names) >= 0
    if e.catalogue is not None and e.catalogue.kind == e.ranked.lists.items.kind:
        known |= e.catalogue.code_of(names) >= 0
    n = int((~known).sum())
    if n == 0:
        return None
    all_unknown = n == len(names)
    return Finding(
        "error" if all_unknown else "warning",
        f"{n:,} of {len(names):,} recommended items occur nowhere in train, test or catalogue"
        + (": the ids do not match" if all_unknown else ""),
        n,
        tuple(names[~known][: e.n_examples].tolist()),
        "Check that lists use the same item ids as the interactions, not row numbers or another table's.",
    )


@check("candidates", "ready lists")
def users_without_lists(e: Evidence) -> CheckResult:
    """Test users without a list."""
    has_list = np.bincount(e.lists.user[e.lists.user >= 0], minlength=e.n_users) > 0
    return _missing_users_finding(
        e,
        e.test_users[~has_list[e.test_users]],
        "have no list",
        "Recommend to every test user, or decide what a missing list means: "
        + Phrase("{no_list='empty'} or {no_list='skip'}."),
    )


@check("candidates", "ready lists")
def seen_in_lists(e: Evidence) -> CheckResult:
    """Recommended items that the user has in train."""
    shown = e.lists
    top = shown.place <= e.k
    seen = e.seen(shown) & top
    n = int(seen.sum())
    if n == 0:
        return None
    n_users, n_top = len(sorted_unique(shown.user[seen])), int(top.sum())
    can_be_relevant = bool(e.seen(e.test).any())
    return Finding(
        "info" if can_be_relevant else "warning",
        f"{n:,} of {n_top:,} places of the top {e.k} ({n / n_top:.1%}, {n_users:,} users) hold items the "
        "user has in train" + ("" if can_be_relevant else ", none of which is ever right in the test"),
        n,
        e.examples(seen, shown),
        Phrase("Take seen items out before cutting the list ({seen=} for factors and scores), ")
        + "unless users have items again.",
        {"users": n_users, "share": n / n_top},
    )


@check("candidates", "ready lists")
def repeats_in_lists(e: Evidence) -> CheckResult:
    """An item twice in one list."""
    case = np.repeat(np.arange(len(e.ranked.lists.cases)), e.ranked.lists.sizes)
    key = np.sort(case * max(len(e.ranked.lists.items), 1) + e.ranked.lists.codes)
    n = int((key[1:] == key[:-1]).sum())
    if n == 0:
        return None
    return Finding(
        "warning",
        f"{n:,} list entries repeat an item of the same list",
        n,
        (),
        "Drop them; libraries disagree on what a repeat is worth (duplicates= decides here).",
    )


@check("candidates", "scores")
def constant_scores(e: Evidence) -> CheckResult:
    """Users whose listed items all have the same score."""
    flat, several = _users_with_one_score(e)
    n = int(flat.sum())
    if n == 0:
        return None
    share = n / max(int(several.sum()), 1)
    return Finding(
        "error" if share > 0.5 else "warning",
        f"{n:,} users ({share:.1%}) have the same score for every listed item: their order is arbitrary",
        n,
        e.first_names(e.users, np.flatnonzero(flat)),
        "Look for a model that was not trained, or scores that overflowed; "
        + Phrase("evaluate with {ties='expected'}."),
        {"share": share},
    )


def _users_with_one_score(e: Evidence) -> tuple[Bool, Bool]:
    """Which users have the same score for several listed items, and which have several at all."""
    known = e.lists.user >= 0
    user, score = e.lists.user[known], e.scores[known]
    low, high = np.full(e.n_users, np.inf), np.full(e.n_users, -np.inf)
    np.minimum.at(low, user, score)
    np.maximum.at(high, user, score)
    several = np.bincount(user, minlength=e.n_users) > 1
    return (low == high) & several, several


@check("candidates", "scores")
def tied_scores(e: Evidence) -> CheckResult:
    """Equal scores in a row; across the cut-off, chance decides which items are in the list."""
    user, score = e.lists.user[1:], e.scores
    # A user may have several lists, and users who occur on neither side all have the code -1.
    same_list = e.lists.place[1:] > 1
    tied = same_list & (score[1:] == score[:-1])
    across = tied & (e.lists.place[:-1] == e.k)
    n = int(tied.sum())
    if n == 0 or _users_with_one_score(e)[0].all():
        return None
    share = n / max(int(same_list.sum()), 1)
    return Finding(
        "info" if share < _SMALL_SHARE and not across.any() else "warning",
        f"{n:,} neighbours in the lists ({share:.1%}) have equal scores; for {int(across.sum()):,} "
        f"users a tie crosses the cut at {e.k}",
        n,
        e.first_names(e.users, sorted_unique(user[tied & (user >= 0)])),
        Phrase("Evaluate with {ties='expected'}, which does not depend on the order, or give the range ")
        + Phrase("with {ties='best'} and {ties='worst'}."),
        {"share": share, "across_the_cut": int(across.sum())},
    )


@check("sampling", "ready lists")
def sampled_candidates(e: Evidence) -> CheckResult:
    """Lists that rank the relevant items among a few sampled ones."""
    shown = e.lists
    sizes = e.ranked.lists.sizes[e.ranked.lists.sizes > 0]
    n_items = len(e.catalogue) if e.catalogue is not None else int((e.train_counts + e.test_counts > 0).sum())
    size = int(np.median(sizes)) if len(sizes) else 0
    is_listed = is_in(e.pairs(e.test), sorted_unique(e.pairs(shown)[shown.known]))
    has_list = (np.bincount(shown.user[shown.user >= 0], minlength=e.n_users) > 0)[e.test.user]
    truth_listed = float(is_listed[has_list].mean()) if has_list.any() else 0.0
    same_size = float((np.abs(sizes - size) <= 1).mean()) if len(sizes) else 0.0
    uniform = min(truth_listed, same_size) >= _NEARLY_ALL
    looks_sampled = uniform and 2 <= size < n_items / 2 and len(sizes) >= 5
    if e.sampled is None and not looks_sampled:
        return None
    n = size - 1 if e.sampled is None else e.sampled
    corrected = _corrected_metrics(e, n, n_items)
    corrections = [
        f"; {metric} {row['sampled']:.4f} is about {row['corrected']:.4f} on all items "
        f"[{row['low']:.4f}, {row['high']:.4f}]"
        for metric, row in corrected.items()
    ]
    found = "the candidates are sampled"
    if e.sampled is None:
        found = (
            f"every list has {size:,} items and holds all of its user's relevant ones: the candidates look "
        )
        found += "sampled"
    return Finding(
        "warning",
        f"{found} (about {n:,} negatives of {n_items:,} items). Sampled metrics are far too high and can "
        "rank models the wrong way round" + "".join(corrections),
        len(sizes),
        (),
        "Rank all items (recsys.Factors, recsys.Scores); where only sampled ranks are left, correct them: "
        "recsys.sampled.estimate(ranks, n_negatives, n_items, metric).",
        {"n_negatives": n, "n_items": n_items, "truth_listed": truth_listed, **corrected},
    )


def _corrected_metrics(e: Evidence, n_negatives: int, n_items: int) -> dict[str, dict[str, float]]:
    """Sampled and corrected NDCG and hit rate, if every user has one relevant item in the list."""
    hits = e.hits
    one_each = int(np.bincount(e.lists.user[hits]).max(initial=0)) == 1
    if not one_each or not 1 <= n_negatives < n_items:
        return {}
    ranks = np.minimum(e.lists.place[hits], n_negatives + 1)
    corrected = {}
    for metric in set_requests("sampling", e.k):
        sampled, on_all = (
            estimate(ranks, n_negatives, n_items, metric, method=method) for method in ("uncorrected", "bv")
        )
        corrected[metric] = {
            "sampled": sampled.value, "corrected": on_all.value, "low": on_all.low, "high": on_all.high
        }  # fmt: skip
    return corrected
