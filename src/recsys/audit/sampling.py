"""A check for sampled candidates, with an estimate of the metrics among all items."""

from __future__ import annotations

import numpy as np

from recsys.audit.check_registry import CheckResult, check
from recsys.audit.evidence import Evidence, ListEntries, contained_in
from recsys.audit.findings import Finding
from recsys.metrics.shown_items import sorted_unique
from recsys.stats.sampled import estimate

_NEARLY_ALL = 0.95


@check("ready lists")
def sampled_candidates(e: Evidence) -> CheckResult:
    """Lists that rank the relevant items among a few sampled ones."""
    shown = e.lists
    if shown is None:
        return None
    sizes = e.ranked.sizes[e.ranked.sizes > 0]
    n_items = len(e.catalogue) if e.catalogue is not None else int((e.train_counts + e.test_counts > 0).sum())
    size = int(np.median(sizes)) if len(sizes) else 0
    is_listed = contained_in(
        e.pairs(e.test), sorted_unique(e.pairs(shown)[(shown.user >= 0) & (shown.item >= 0)])
    )
    has_list = (np.bincount(shown.user[shown.user >= 0], minlength=e.n_users) > 0)[e.test.user]
    truth_listed = float(is_listed[has_list].mean()) if has_list.any() else 0.0
    same_size = float((np.abs(sizes - size) <= 1).mean()) if len(sizes) else 0.0
    looks_sampled = (
        truth_listed >= _NEARLY_ALL
        and same_size >= _NEARLY_ALL
        and 2 <= size < n_items / 2
        and len(sizes) >= 5
    )
    if e.sampled is None and not looks_sampled:
        return None
    n = size - 1 if e.sampled is None else e.sampled
    corrected = _corrected_metrics(e, shown, n, n_items)
    corrections = [
        f"; {metric} {row['sampled']:.4f} is about {row['corrected']:.4f} on all items "
        f"[{row['low']:.4f}, {row['high']:.4f}]"
        for metric, row in corrected.items()
    ]
    return Finding(
        "sampled_candidates",
        "warning",
        (
            "the candidates are sampled"
            if e.sampled is not None
            else f"every list has {size:,} items and holds all of its user's relevant "
            "ones: the candidates look sampled"
        )
        + f" (about {n:,} negatives of {n_items:,} items). Sampled metrics are far too high and can "
        "rank models the wrong way round" + "".join(corrections),
        len(sizes),
        (),
        "Rank all items (recsys.Factors, recsys.Scores); where only sampled ranks are left, correct them: "
        "recsys.sampled.estimate(ranks, n_negatives, n_items, metric).",
        {"n_negatives": n, "n_items": n_items, "truth_listed": truth_listed, **corrected},
    )


def _corrected_metrics(
    e: Evidence, shown: ListEntries, n_negatives: int, n_items: int
) -> dict[str, dict[str, float]]:
    """Sampled and corrected NDCG and hit rate, if every user has one relevant item in the list."""
    hits = contained_in(e.pairs(shown), e.test_pairs) & (shown.user >= 0) & (shown.item >= 0)
    one_each = len(hits) > 0 and int(np.bincount(shown.user[hits], minlength=1).max(initial=0)) == 1
    if not one_each or not 1 <= n_negatives < n_items:
        return {}
    ranks = np.minimum(shown.place[hits], n_negatives + 1)
    corrected = {}
    for metric in (f"ndcg@{e.k}", f"hit@{e.k}"):
        estimates = {
            m: estimate(ranks, n_negatives, n_items, metric, method=m) for m in ("uncorrected", "bv")
        }
        corrected[metric] = {"sampled": estimates["uncorrected"].value, "corrected": estimates["bv"].value,
                       "low": estimates["bv"].low, "high": estimates["bv"].high}  # fmt: skip
    return corrected
