"""Checks for biases: towards popular items, towards observed items, towards the winner of one metric."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from recsys.audits.check_registry import CheckResult, check
from recsys.audits.evidence import Evidence
from recsys.audits.findings import Finding
from recsys.debias.propensities import YANG_POWER, inverse_propensity_weights, popularity_power
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.results import Evaluation
from recsys.metrics.registry import metric_set, set_requests
from recsys.models.baselines import popular_head
from recsys.ranks.rankings import Ranking
from recsys.records.arrays import Bool, Float, Interactions

_PRESETS = ("trec_eval", "rectools", "recbole", "lenskit")
_CUTS = (5, 10, 20)
_TIE = 1e-12
_SMALL_SAMPLE = 0.05  # effective share of the test below which it is a warning
_EVEN = 0.5  # observed so evenly that weighting would cost less than half the sample


@check("bias", "lists")
def popularity_baseline(e: Evidence) -> CheckResult:
    """The metrics of the lists next to those of the most popular unseen items."""
    lists, popular = _metric_values(e, e.ranked), _metric_values(e, e.popular(e.train_counts))
    not_better = [m for m in lists if not lists[m] > popular[m]]
    table = {m: {"yours": lists[m], "popularity": popular[m]} for m in lists}
    text = ", ".join(f"{m} {lists[m]:.4f} (popularity {popular[m]:.4f})" for m in lists)
    return Finding(
        "warning" if not_better else "info",
        text
        + (f"; not better than popularity in {', '.join(not_better)}" if not_better else "")
        + _sample_note(e),
        len(not_better),
        (),
        "Compare with recsys.compare({...}, baseline='popularity') to see whether the difference is real."
        if not not_better
        else "A model that does not beat the most popular items has not learnt what users differ in.",
        table,
    )


@check("bias", "lists")
def head_and_tail(e: Evidence) -> CheckResult:
    """Every metric on popular items of the test and on the others, separately."""
    head = popular_head(e.train_counts)
    in_head = head[e.truth.codes]
    if in_head.all() or not in_head.any():
        return None
    parts = {
        name: _metric_values(e, e.ranked, e.truth.kept(mask))
        for name, mask in (("head", in_head), ("tail", ~in_head))
    }
    share = float(in_head.mean())
    top = e.lists.item[(e.lists.place <= e.k) & (e.lists.item >= 0)]
    list_share = float(head[top].mean()) if len(top) else 0.0
    hardly_found = [m for m in parts["head"] if parts["tail"][m] < 0.1 * parts["head"][m]]
    text = ", ".join(f"{m} {parts['head'][m]:.4f} / {parts['tail'][m]:.4f}" for m in parts["head"])
    return Finding(
        "warning" if hardly_found else "info",
        f"the most popular {_share_of_items(e, head):.0%} of items are {share:.0%} of the test and "
        f"{list_share:.0%} of the top {e.k}; means over users, head / tail: {text}"
        + (f"; almost nothing of the tail is found ({', '.join(hardly_found)})" if hardly_found else "")
        + _sample_note(e),
        len(hardly_found),
        (),
        "Report head and tail apart; recsys.debias.evaluate weighs items by how likely they were to "
        "be observed.",
        {"head_share_of_test": share, "head_share_of_lists": list_share, **parts},
    )


@check("bias")
def missing_not_at_random(e: Evidence) -> CheckResult:
    """How unequally items were observed, and the effective size of the test once that is corrected."""
    used = np.flatnonzero((e.train_counts + e.test_counts) > 0)
    propensity = np.ones(e.n_items)
    propensity[used] = popularity_power(np.maximum(e.train_counts[used], 1), YANG_POWER)
    _, weights = inverse_propensity_weights(propensity[e.test.item], None)
    if weights.share >= _EVEN:
        return None
    head = popular_head(e.train_counts)
    head_share = float(e.train_counts[head].sum() / max(e.train_counts.sum(), 1))
    most_popular = f": the most popular {_share_of_items(e, head):.0%} have {head_share:.0%} of train"
    return Finding(
        "warning" if weights.share < _SMALL_SAMPLE else "info",
        f"items are observed very unequally{most_popular if head.any() else ''}. Weighted by 1 / propensity "
        f"(popularity to the power of {YANG_POWER:g}), the {weights.n:,} test rows are worth "
        f"{weights.effective:,.0f} ({weights.share:.1%}); propensities from {weights.lowest:.2g} to 1",
        weights.n,
        (),
        "Offline numbers favour what users were shown. recsys.debias.evaluate gives the metrics as if items "
        "had been observed equally often, with intervals.",
        {**weights.__dict__, "share": weights.share, "head_share_of_train": head_share},
    )


def _share_of_items(e: Evidence, head: Bool) -> float:
    """The head as a share of the items that occur in train."""
    return float(head.sum() / max((e.train_counts > 0).sum(), 1))


@check("bias", "models")
def metric_disagreement(e: Evidence) -> CheckResult:
    """Whether another metric, cut-off or convention has another winner."""
    # {metric under a preset: {model: value}}; the audit's own conventions first, without a name.
    metrics = list(e.metrics) or [f"{m.name}@{k}" for m in metric_set("audit") for k in _CUTS]
    columns: dict[str, dict[str, float]] = {}
    for name, lists in e.models.items():
        result = _evaluate(e, lists, e.truth, metrics)
        results = {"": result} | {preset: result.under(preset) for preset in _PRESETS}
        for preset, evaluation in results.items():
            for metric, value in evaluation.items():
                key = f"{metric} ({preset})" if preset else metric
                columns.setdefault(key, {})[name] = value if value == value else 0.0  # noqa: PLR0124 - NaN
    names = list(e.models)
    columns = {key: column for key, column in columns.items() if len(column) == len(names)}
    values = np.array([[column[name] for name in names] for column in columns.values()])
    winners = [
        frozenset(n for n, v in zip(names, row, strict=True) if v >= row.max() - _TIE) for row in values
    ]
    first = next(iter(columns))
    moved = [c for c, w in zip(columns, winners, strict=True) if not w & winners[0]]
    least, pair = _least_agreement(values, list(columns))
    text = f"{len(columns)} columns (metric, cut-off, convention) of {len(names)} models: "
    if not moved:
        text += f"{'/'.join(sorted(winners[0]))} is best in all; least rank correlation {least:.2f}"
        values_found = {"winner": sorted(winners[0]), "least_correlation": least, "columns": columns}
        return Finding("info", text, 0, pair if least < 1 else (), "", values_found)
    winners_by_column = {c: sorted(w) for c, w in zip(columns, winners, strict=True)}
    return Finding(
        "warning",
        text + f"{'/'.join(winners_by_column[first])} is best in {first}, but not in {len(moved)} others; "
        f"least rank correlation {least:.2f}",
        len(moved),
        tuple(f"{c}: {'/'.join(winners_by_column[c])}" for c in moved[: e.n_examples]),
        "Choose the metric by what the product needs before looking at results; say which "
        "conventions were used, and test differences with recsys.compare.",
        {"winners": winners_by_column, "least_correlation": least, "least_between": pair, "columns": columns},
    )


def _least_agreement(values: Float, names: list[str]) -> tuple[float, tuple[str, ...]]:
    """The lowest Kendall tau-b between two columns, and their names."""
    signs = [
        np.array([np.sign(row[i] - row[j]) for i, j in combinations(range(len(row)), 2)]) for row in values
    ]
    distinct: dict[bytes, int] = {}
    for column, sign in enumerate(signs):
        distinct.setdefault(sign.tobytes(), column)
    least, pair = 1.0, ("", "")
    for a, b in combinations(distinct.values(), 2):
        size = float(np.sqrt((signs[a] @ signs[a]) * (signs[b] @ signs[b])))
        tau = float(signs[a] @ signs[b]) / size if size else 1.0
        if tau < least:
            least, pair = tau, (names[a], names[b])
    return least, pair


def _metric_values(e: Evidence, ranked: Ranking, truth: Interactions | None = None) -> dict[str, float]:
    """The metrics of the audit for lists or a source; 0 for NaN."""
    metrics = list(e.metrics) or list(set_requests("popularity", e.k))
    result = _evaluate(e, ranked, e.truth if truth is None else truth, metrics)
    return {name: value if value == value else 0.0 for name, value in result.items()}  # noqa: PLR0124 - NaN


def _evaluate(e: Evidence, ranked: Ranking, truth: Interactions, metrics: list[str]) -> Evaluation:
    """An evaluation of a source, or of the lists of the sampled users."""
    seen = None if len(ranked.lists.codes) else e.history
    ranked = ranked.of_cases(e.truth.cases)  # other users have nothing to be compared with
    return evaluate(ranked, truth, metrics, seen=seen, conventions=e.conventions)


def _sample_note(e: Evidence) -> str:
    return f" (on {len(e.sample):,} evenly chosen users)" if e.is_sampled else ""
