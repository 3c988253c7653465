"""Whom the numbers favour: popular items, observed items, or one metric's winner."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any

import numpy as np

from recsys.audit.check_registry import Found, check
from recsys.audit.evidence import Evidence
from recsys.audit.evidence_reader import lists_of
from recsys.audit.findings import Finding
from recsys.debias.propensities import YANG, powered, weights_of
from recsys.errors import RecsysWarning
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.results import Evaluation
from recsys.ranks.sources import Factors, Scores
from recsys.types import Bool, Float, Interactions

HEAD = 0.2  # the most popular fifth of the items
_PRESETS = ("default", "trec_eval", "rectools", "recbole", "lenskit")
_CUTS = (5, 10, 20)
_FAMILY = ("precision", "recall", "ndcg", "map", "mrr", "hit")
_SAME = 1e-12
_LITTLE = 0.05
_EVEN = 0.5  # observed so evenly that weighting would cost less than half the sample


@check("lists")
def popularity_baseline(e: Evidence) -> Found:
    """What recommending the most popular unseen items to everyone would score, beside the lists."""
    yours, floor = _scored(e, e.ranked), _scored(e, e.popular(e.train_counts))
    names = list(yours)
    worse = [m for m in names if not yours[m] > floor[m]]
    table = {m: {"yours": yours[m], "popularity": floor[m]} for m in names}
    said = ", ".join(f"{m} {yours[m]:.4f} (popularity {floor[m]:.4f})" for m in names)
    return Finding(
        "popularity_baseline",
        "warning" if worse else "info",
        said + (f"; not better than popularity in {', '.join(worse)}" if worse else "") + _sample_words(e),
        len(worse),
        (),
        "Compare with recsys.compare({...}, baseline='popularity') to see whether the difference is real."
        if not worse
        else "A model that does not beat the most popular items has not learnt what users differ in.",
        table,
    )


@check("lists")
def head_and_tail(e: Evidence) -> Found:
    """Every metric on the test's popular items and on its others, apart."""
    order = np.argsort(-e.train_counts, kind="stable")
    n_head = max(1, int(np.ceil(HEAD * int((e.train_counts > 0).sum()))))
    head = np.zeros(e.n_items, dtype=bool)
    head[order[:n_head]] = True
    in_head = head[e.truth.codes]
    if in_head.all() or not in_head.any():
        return None
    parts = {
        name: _scored(e, e.ranked, e.truth.kept(mask))
        for name, mask in (("head", in_head), ("tail", ~in_head))
    }
    share = float(in_head.mean())
    shown = e.lists
    top = (
        np.zeros(0, dtype=np.int64) if shown is None else shown.item[(shown.place <= e.k) & (shown.item >= 0)]
    )
    listed = float(head[top].mean()) if len(top) else 0.0
    lost = [m for m in parts["head"] if parts["tail"][m] < 0.1 * parts["head"][m]]
    said = ", ".join(f"{m} {parts['head'][m]:.4f} / {parts['tail'][m]:.4f}" for m in parts["head"])
    return Finding(
        "head_and_tail",
        "warning" if lost else "info",
        f"the most popular {HEAD:.0%} of items are {share:.0%} of the test and {listed:.0%} of the "
        f"top {e.k}; head / "
        f"tail: {said}"
        + (f"; almost nothing of the tail is found ({', '.join(lost)})" if lost else "")
        + _sample_words(e),
        len(lost),
        (),
        "Report head and tail apart; recsys.debias.evaluate weighs items by how likely they were to "
        "be observed.",
        {"head_share_of_test": share, "head_share_of_lists": listed, **parts},
    )


@check()
def missing_not_at_random(e: Evidence) -> Found:
    """How unequally items were observed, and what is left of the test once that is undone."""
    used = np.flatnonzero((e.train_counts + e.test_counts) > 0)
    chance = np.ones(e.n_items)
    chance[used] = powered(np.maximum(e.train_counts[used], 1), YANG)
    _, weighed = weights_of(chance[e.test.item], None)
    if weighed.share >= _EVEN:
        return None
    counted = np.sort(e.train_counts[used])[::-1]
    head = float(counted[: max(1, int(HEAD * len(used)))].sum() / max(counted.sum(), 1))
    return Finding(
        "missing_not_at_random",
        "warning" if weighed.share < _LITTLE else "info",
        f"items are observed very unequally: the most popular {HEAD:.0%} have {head:.0%} of train. Weighted "
        f"by 1 / propensity (popularity to the power of {YANG:g}), the {weighed.n:,} test rows are worth "
        f"{weighed.effective:,.0f} ({weighed.share:.1%}); propensities from {weighed.lowest:.2g} to 1",
        weighed.n,
        (),
        "Offline numbers favour what users were shown. recsys.debias.evaluate gives the metrics as if items "
        "had been observed alike, with intervals.",
        {**weighed.__dict__, "share": weighed.share, "head_share_of_train": head},
    )


@check("models")
def metric_disagreement(e: Evidence) -> Found:
    """Whether another metric, cut-off or convention would rank the models otherwise."""
    columns = _columns(e)
    names = list(e.models)
    values = np.array([[column[name] for name in names] for column in columns.values()])
    winners = [
        frozenset(n for n, v in zip(names, row, strict=True) if v >= row.max() - _SAME) for row in values
    ]
    first = next(iter(columns))
    moved = [c for c, w in zip(columns, winners, strict=True) if not w & winners[0]]
    least, pair = _least_agreement(values, list(columns))
    said = f"{len(columns)} columns (metric, cut-off, convention) of {len(names)} models: "
    if not moved:
        return Finding(
            "metric_disagreement",
            "info",
            said + f"{'/'.join(sorted(winners[0]))} is best in all; least rank correlation {least:.2f}",
            0,
            pair if least < 1 else (),
            "",
            {"winner": sorted(winners[0]), "least_correlation": least, "columns": columns},
        )
    who = {c: sorted(w) for c, w in zip(columns, winners, strict=True)}
    return Finding(
        "metric_disagreement",
        "warning",
        said + f"{'/'.join(who[first])} is best in {first}, but not in {len(moved)} others; least rank "
        "correlation "
        f"{least:.2f}",
        len(moved),
        tuple(f"{c}: {'/'.join(who[c])}" for c in moved[: e.n_examples]),
        "Choose the metric by what the product needs before looking at results; say which "
        "conventions were used, and "
        "test differences with recsys.compare.",
        {"winners": who, "least_correlation": least, "least_between": pair, "columns": columns},
    )


def _columns(e: Evidence) -> dict[str, dict[str, float]]:
    """{metric under a convention: {model: value}}."""
    wanted = [f"{m}@{k}" for m in _FAMILY for k in _CUTS] if not e.metrics else list(e.metrics)
    presets = [p for p in _PRESETS if p != "default"]
    out: dict[str, dict[str, float]] = {}
    for name, lists in e.models.items():
        result = _evaluated(e, lists_of(lists), e.truth, wanted)
        for label, again in {"": result, **{p: _quiet_under(result, p) for p in presets}}.items():
            for metric, value in again.items():
                key = f"{metric} ({label})" if label else metric
                out.setdefault(key, {})[name] = value if value == value else 0.0  # noqa: PLR0124 - NaN
    return {key: column for key, column in out.items() if len(column) == len(e.models)}


def _quiet_under(result: Evaluation, preset: str) -> Evaluation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecsysWarning)
        return result.under(preset)


def _least_agreement(values: Float, names: list[str]) -> tuple[float, tuple[str, ...]]:
    """The least Kendall tau-b of two columns, and which they are."""
    signs = [
        np.array([np.sign(row[i] - row[j]) for i, j in combinations(range(len(row)), 2)]) for row in values
    ]
    distinct: dict[bytes, int] = {}
    for at, sign in enumerate(signs):
        distinct.setdefault(sign.tobytes(), at)
    least, pair = 1.0, ("", "")
    for a, b in combinations(distinct.values(), 2):
        size = float(np.sqrt((signs[a] @ signs[a]) * (signs[b] @ signs[b])))
        tau = float(signs[a] @ signs[b]) / size if size else 1.0
        if tau < least:
            least, pair = tau, (names[a], names[b])
    return least, pair


def _scored(e: Evidence, ranked: Any, truth: Interactions | None = None) -> dict[str, float]:
    wanted = list(e.metrics) or [f"recall@{e.k}", f"ndcg@{e.k}"]
    found = _evaluated(e, ranked, e.truth if truth is None else truth, wanted)
    return {name: value if value == value else 0.0 for name, value in found.items()}  # noqa: PLR0124 - NaN


def _evaluated(e: Evidence, ranked: Any, truth: Interactions, metrics: list[str]) -> Evaluation:
    """Metrics of lists or of a source for the users of the audit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecsysWarning)
        if isinstance(ranked, Factors | Scores):
            return evaluate(ranked, truth, metrics, seen=e.history, conventions=e.conventions)
        return evaluate(_of_sample(e, ranked), truth, metrics, conventions=e.conventions)


def _of_sample(e: Evidence, lists: Any) -> Any:
    """The lists of the users that are evaluated; those of others have no truth to be held against."""
    from dataclasses import replace

    from recsys.types import Ids

    keep: Bool = e.truth.cases.code_of(lists.cases.values) >= 0
    if keep.all():
        return lists
    sizes = lists.sizes
    rows = np.repeat(keep, sizes)
    return replace(
        lists,
        cases=Ids(lists.cases.values[keep]),
        indptr=np.concatenate([[0], np.cumsum(sizes[keep])]),
        codes=lists.codes[rows],
        scores=None if lists.scores is None else lists.scores[rows],
        clusters=None if lists.clusters is None else lists.clusters[keep],
    )


def _sample_words(e: Evidence) -> str:
    return f" (on {len(e.sample):,} evenly chosen users)" if e.is_sampled else ""
