"""Whether metrics were taken among a few sampled candidates, and what they would be among all."""

from __future__ import annotations

import numpy as np

from recsys.audit.check_registry import Found, check
from recsys.audit.evidence import Evidence, ListEntries, among
from recsys.audit.findings import Finding
from recsys.metrics.shown_items import distinct
from recsys.stats.sampled import estimate

_FULL = 0.95


@check("ready lists")
def sampled_candidates(e: Evidence) -> Found:
    """Lists that rank the relevant items among a few sampled others."""
    shown = e.lists
    if shown is None:
        return None
    sizes = e.ranked.sizes[e.ranked.sizes > 0]
    n_items = len(e.catalogue) if e.catalogue is not None else int((e.train_counts + e.test_counts > 0).sum())
    size = int(np.median(sizes)) if len(sizes) else 0
    truth = among(e.pairs(e.test), distinct(e.pairs(shown)[(shown.user >= 0) & (shown.item >= 0)]))
    listed = (np.bincount(shown.user[shown.user >= 0], minlength=e.n_users) > 0)[e.test.user]
    everything = float(truth[listed].mean()) if listed.any() else 0.0
    same_size = float((np.abs(sizes - size) <= 1).mean()) if len(sizes) else 0.0
    said = e.sampled is not None
    looks = everything >= _FULL and same_size >= _FULL and 2 <= size < n_items / 2 and len(sizes) >= 5
    if not said and not looks:
        return None
    n = size - 1 if e.sampled is None else e.sampled
    corrected = _corrected(e, shown, n, n_items)
    return Finding(
        "sampled_candidates",
        "warning",
        (
            "the candidates are sampled"
            if said
            else f"every list has {size:,} items and holds all of its user's relevant "
            "ones: the candidates look sampled"
        )
        + f" (about {n:,} negatives of {n_items:,} items). Sampled metrics are far too high and can "
        "rank models the "
        "wrong way round" + _corrected_words(corrected),
        len(sizes),
        (),
        "Rank all items (recsys.Factors, recsys.Scores); where only sampled ranks are left, correct them: "
        "recsys.sampled.estimate(ranks, n_negatives, n_items, metric).",
        {"n_negatives": n, "n_items": n_items, "truth_listed": everything, **corrected},
    )


def _corrected(
    e: Evidence, shown: ListEntries, n_negatives: int, n_items: int
) -> dict[str, dict[str, float]]:
    """Sampled and corrected NDCG and hit rate, where every user has one relevant item in a list."""
    hits = among(e.pairs(shown), e.test_pairs) & (shown.user >= 0) & (shown.item >= 0)
    one_each = len(hits) > 0 and int(np.bincount(shown.user[hits], minlength=1).max(initial=0)) == 1
    if not one_each or not 1 <= n_negatives < n_items:
        return {}
    ranks = np.minimum(shown.place[hits], n_negatives + 1)
    out = {}
    for metric in (f"ndcg@{e.k}", f"hit@{e.k}"):
        made = {m: estimate(ranks, n_negatives, n_items, metric, method=m) for m in ("uncorrected", "bv")}
        out[metric] = {"sampled": made["uncorrected"].value, "corrected": made["bv"].value,
                       "low": made["bv"].low, "high": made["bv"].high}  # fmt: skip
    return out


def _corrected_words(found: dict[str, dict[str, float]]) -> str:
    said = [
        f"{metric} {row['sampled']:.4f} is about {row['corrected']:.4f} on all items "
        f"[{row['low']:.4f}, {row['high']:.4f}]"
        for metric, row in found.items()
    ]
    return "; ".join(["", *said])
