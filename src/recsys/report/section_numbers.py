"""What the sections of a report show, as plain numbers: values with intervals, curves, strata, shares.

Everything here is small, however many users there are; nothing draws or writes.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recsys.errors import RecsysError
from recsys.evaluation.results import Evaluation
from recsys.report.item_names import is_head, popularity
from recsys.report.report_data import ReportData
from recsys.stats.alignment import collapse
from recsys.stats.inference_results import Estimate
from recsys.stats.intervals import interval_of
from recsys.types import Array, Bool, Float, Ids, Int, Interactions, Lists

Triple = tuple[float, float, float]
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_CUTS = (1, 2, 3, 5, 10, 20, 50, 100)
_FEWEST_IN_GROUP = 5


@dataclass(frozen=True, eq=False)
class GroupValues:
    """A metric by group of users: one value with its interval a model and group, and the groups' sizes."""

    name: str
    title: str
    sizes: Mapping[str, int]
    values: Mapping[str, Mapping[str, Triple]]
    says: str


def valued(material: ReportData, name: str, metric: str) -> Triple:
    """A model's value and its 95% interval; NaN ends where there is none. Several sections ask for it."""
    if (name, metric) not in material.valued:
        material.valued[name, metric] = _valued(material, name, metric)
    return material.valued[name, metric]


def _valued(material: ReportData, name: str, metric: str) -> Triple:
    value = material.value(name, metric)
    if math.isnan(value):
        return value, math.nan, math.nan
    runs = material.models[name]
    if len(runs) > 1:
        rows = material.per_case[name]
        return (
            (value, *_reach(rows.columns[metric], rows.clusters, rows.weights, value))
            if (metric in material.per_case_metrics)
            else (value, math.nan, math.nan)
        )
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = runs[0].intervals(metrics=[metric])[metric]
    except RecsysError:
        return value, math.nan, math.nan
    return (value, *_ends(found, value))


def curves(material: ReportData) -> dict[str, dict[str, dict[int, Triple]]]:
    """{metric: {model: {k: value}}} of metrics at several cut-offs; made from the lists if none is."""
    families: dict[str, list[tuple[int, str]]] = {}
    for metric in material.metrics:
        k = material.requests[metric].k
        if k is not None:
            families.setdefault(metric.rsplit("@", 1)[0], []).append((k, metric))
    several = {f: sorted(ks) for f, ks in families.items() if len(ks) > 1}
    if several:
        return {
            f: {n: {k: valued(material, n, m) for k, m in ks} for n in material.names}
            for f, ks in several.items()
        }
    return _curves_of_lists(material, list(families))


def _curves_of_lists(
    material: ReportData, families: Sequence[str]
) -> dict[str, dict[str, dict[int, Triple]]]:
    from recsys.evaluation.evaluate import evaluate

    lead = material.metric.rsplit("@", 1)[0]
    wanted = [f for f in dict.fromkeys([lead, "recall", "precision"]) if f in families]
    if material.judged is None or set(material.lists) != set(material.names) or not wanted:
        return {}
    longest = max(int(lists.sizes.max(initial=0)) for lists in material.lists.values())
    cuts = [k for k in _CUTS if k <= longest]
    if len(cuts) < 2:
        return {}
    conventions = material.first(material.names[0]).conventions
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = {
                n: evaluate(held, material.judged, wanted, k=cuts, conventions=conventions)
                for n, held in material.lists.items()
            }
    except RecsysError:
        return {}  # a metric that needs more than lists and truth; the section says what it would need
    inside = ReportData({n: [e] for n, e in made.items()}, material.baseline, f"{wanted[0]}@{cuts[0]}", None)
    return {f: {n: {k: valued(inside, n, f"{f}@{k}") for k in cuts} for n in made} for f in wanted}


def coverage(material: ReportData) -> tuple[str, dict[str, float]] | None:
    """The coverage metric of the results, else the share of the catalogue in the models' first k places."""
    k = material.requests[material.metric].k or 10
    known_as = [m for m in material.metrics if material.requests[m].metric.name == "coverage"]
    if known_as:
        metric = min(known_as, key=lambda m: abs((material.requests[m].k or k) - k))
        return metric, {n: material.value(n, metric) for n in material.names}
    if set(material.lists) != set(material.names) or not material.lists:
        return None
    known = [held.items for held in material.lists.values()]
    known += [table.items for table in (material.train, material.truth) if table is not None]
    everything = known[0]
    for ids in known[1:]:
        everything = everything.union(ids, what="item")[0]
    shown = {n: len(np.unique(held.codes[places(held) < k])) for n, held in material.lists.items()}
    return f"coverage@{k}", {n: count / max(len(everything), 1) for n, count in shown.items()}


def spread(material: ReportData) -> dict[str, dict[str, float]]:
    """Mean, quantiles and the share of zeros of the headline metric, per model."""
    out = {}
    for name in material.names:
        column = material.per_case[name].columns[material.metric]
        kept = column[~np.isnan(column)]
        row = {"mean": float(kept.mean()), "share at 0": float((kept == 0).mean())}
        cuts = np.quantile(kept, QUANTILES).tolist()
        out[name] = row | {f"{q:.0%}": v for q, v in zip(QUANTILES, cuts, strict=True)}
    return out


def all_strata(material: ReportData) -> list[GroupValues]:
    """By activity, by how popular the wanted items are, cold and warm users, and the groups evaluated by."""
    if material.metric not in material.per_case_metrics:
        return []
    users = Ids(material.users)
    made = [_by_groups(material)]
    if material.train is not None:
        n_train = how_many(material.train, users)
        made.append(_stratified(material, "activity", "training interactions", *_ranges(n_train)))
        if (n_train == 0).any() and (n_train > 0).any():
            made.append(
                _stratified(material, "cold and warm users", "history in training",
                            np.where(n_train == 0, 0, 1), ["cold (none)", "warm (some)"])
            )  # fmt: skip
        made.append(_by_taste(material, users))
    if material.truth is not None:
        wanted = how_many(material.truth, Ids(material.aligned.ids))
        made.append(_stratified(material, "relevant items", "relevant items in the truth", *_ranges(wanted)))
    return [one for one in made if one is not None]


def head_and_tail(
    material: ReportData,
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]] | None:
    """Share of places given to head, tail and unseen items, and how many relevant ones of each were found."""
    if material.train is None or not material.lists:
        return None
    k = material.requests[material.metric].k or 10
    shares: dict[str, dict[str, float]] = {}
    found: dict[str, dict[str, float]] = {}
    if material.truth is not None:
        shares["(the truth)"] = _group_shares(material.train, material.truth.items, material.truth.codes)
    for name, held in material.lists.items():
        shares[name] = _group_shares(material.train, held.items, held.codes[places(held) < k])
        if material.truth is not None:
            found[name] = _found_by_group(material.train, material.truth, held, k)
    used = [g for g in _GROUPS if any(row.get(g, 0.0) > 0 for row in shares.values())]
    return {n: {g: row[g] for g in used} for n, row in shares.items()}, found


def places(lists: Lists) -> Int:
    """The place of each entry in its list, from 0."""
    return np.arange(len(lists.codes)) - np.repeat(lists.indptr[:-1], lists.sizes)


_GROUPS = ("head", "tail", "never seen")


def _group_of(train: Interactions, items: Ids) -> Int:
    counts = popularity(train, items)
    every = np.bincount(train.codes, minlength=len(train.items))
    least = every[is_head(every)].min(initial=np.iinfo(np.int64).max)
    return np.where(counts >= least, 0, np.where(counts > 0, 1, 2))


def _group_shares(train: Interactions, items: Ids, codes: Array) -> dict[str, float]:
    total = np.bincount(_group_of(train, items)[codes], minlength=3)
    return {g: float(n / max(total.sum(), 1)) for g, n in zip(_GROUPS, total.tolist(), strict=True)}


def _found_by_group(train: Interactions, truth: Interactions, lists: Lists, k: int) -> dict[str, float]:
    """Of the relevant pairs of each group, the share among the first k places."""
    case, item = truth.cases.code_of(lists.cases.values), truth.items.code_of(lists.items.values)
    width = len(truth.items)
    entry = np.repeat(np.arange(len(lists.cases)), lists.sizes)
    near = places(lists) < k
    at_case, at_item = case[entry[near]], item[lists.codes[near]]
    known = (at_case >= 0) & (at_item >= 0)
    shown = np.sort(at_case[known] * width + at_item[known])
    wanted = np.repeat(np.arange(len(truth.cases)), truth.sizes) * width + truth.codes
    group = _group_of(train, truth.items)[wanted % width]
    hit = np.searchsorted(shown, wanted, "right") > np.searchsorted(shown, wanted, "left")
    sizes, hits = np.bincount(group, minlength=3), np.bincount(group[hit], minlength=3)
    rows = zip(_GROUPS, hits.tolist(), sizes.tolist(), strict=True)
    return {g: h / n for g, h, n in rows if n}


def how_many(table: Interactions, cases: Ids) -> Int:
    """How many entries each of the cases has."""
    table.cases.same_kind(cases, what="user")
    at = table.cases.code_of(cases.values)
    return np.where(at >= 0, table.sizes[at], 0)


def _ranges(counts: Int) -> tuple[Int, list[str]]:
    """Groups of about equal size by how many, named by their ends, such as 1-12."""
    edges = np.unique(np.quantile(counts, [0.25, 0.5, 0.75], method="inverted_cdf").astype(np.int64))
    group = np.searchsorted(edges, counts, side="left")
    labels = []
    for g in range(len(edges) + 1):
        inside = counts[group == g]
        labels.append(f"{inside.min():,}–{inside.max():,}" if len(inside) else "")  # noqa: RUF001
    labels = [one.split("–")[0] if one and len(set(one.split("–"))) == 1 else one for one in labels]  # noqa: RUF001
    return group, labels


def _by_taste(material: ReportData, users: Ids) -> GroupValues | None:
    """Users in three equal groups by how popular, on average, the items they wanted are."""
    truth, train = material.truth, material.train
    if truth is None or train is None:
        return None
    counts = popularity(train, truth.items)
    entry = np.repeat(np.arange(len(truth.cases)), truth.sizes)
    weight = np.bincount(entry, weights=np.log1p(counts[truth.codes]), minlength=len(truth.cases))
    mean = np.where(truth.sizes > 0, weight / np.maximum(truth.sizes, 1), np.nan)
    at = truth.cases.code_of(material.aligned.ids if material.aligned.clusters is None else users.values)
    taste = np.where(at >= 0, mean[at], np.nan)
    kept = taste[~np.isnan(taste)]
    if not len(kept):
        return None
    edges = np.quantile(kept, [1 / 3, 2 / 3])
    group = np.where(np.isnan(taste), -1, np.searchsorted(edges, taste, side="left"))
    return _stratified(material, "popularity of what they want", "popularity of their relevant items", group,
                       ["niche", "mixed", "mainstream"])  # fmt: skip


def _by_groups(material: ReportData) -> GroupValues | None:
    values = evaluated_groups(material, material.metric)
    if not values:
        return None
    sizes = {str(g): n for g, n in material.first(material.names[0]).by_sizes.items()}
    says = f"{material.metric} by the groups of the evaluation."
    return GroupValues("group of the evaluation", "group", sizes, values, says)


def evaluated_groups(material: ReportData, metric: str) -> dict[str, dict[str, Triple]]:
    """The groups the evaluations were made by; the interval where the value is a mean over users."""
    first = material.first(material.names[0])
    if not first.by or any(list(material.first(n).by) != list(first.by) for n in material.names):
        return {}
    return {
        n: {str(g): _evaluated_group(material.first(n), g, metric) for g in first.by} for n in material.names
    }


def _evaluated_group(evaluation: Evaluation, group: Any, metric: str) -> Triple:
    value, rows = evaluation.by[group][metric], evaluation.per_case
    inside = evaluation.group_masks[group]
    column = rows.columns.get(metric)
    if column is None or (~np.isnan(column[inside])).sum() < _FEWEST_IN_GROUP:
        return value, math.nan, math.nan
    clusters, weights = (None if held is None else held[inside] for held in (rows.clusters, rows.weights))
    bounds = next(r.metric.bounds for r in evaluation.requests if str(r) == metric)
    return (value, *_cut(_reach(column[inside], clusters, weights, value), bounds))


def group_value(material: ReportData, model: str, metric: str, inside: Bool) -> Triple:
    """A model's mean over some of the cases, with its interval where they are not too few."""
    aligned = material.aligned
    column = aligned.tables[model][metric][inside]
    kept: Bool = ~np.isnan(column)
    if not kept.any():
        return math.nan, math.nan, math.nan
    weights = None if aligned.weights is None else aligned.weights[inside]
    value = float(np.average(column[kept], weights=None if weights is None else weights[kept]))
    if kept.sum() < _FEWEST_IN_GROUP:
        return value, math.nan, math.nan
    clusters = None if aligned.clusters is None else aligned.clusters[inside]
    bounds = material.requests[metric].metric.bounds
    return (value, *_cut(_reach(column, clusters, weights, value), bounds))


def _stratified(
    material: ReportData, name: str, title: str, group: Int, labels: Sequence[str]
) -> GroupValues | None:
    metric = material.metric
    # A group of users who are in nobody's mean has nothing to show.
    measured = np.any([~np.isnan(held[metric]) for held in material.aligned.tables.values()], axis=0)
    masks = {label: group == g for g, label in enumerate(labels) if label and measured[group == g].any()}
    if len(masks) < 2:
        return None
    sizes = {label: int(mask.sum()) for label, mask in masks.items()}
    values = {
        model: {label: group_value(material, model, metric, mask) for label, mask in masks.items()}
        for model in material.names
    }
    return GroupValues(name, title, sizes, values, f"{metric} by {title}.")


def _reach(column: Float, clusters: Array | None, weights: Float | None, value: float) -> tuple[float, float]:
    """The interval of a mean over users; NaN where the value is not that mean."""
    # Keys only decide draws, and the t interval draws nothing.
    keys = np.zeros(len(column), dtype=np.uint64)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = interval_of(collapse(column[None, :], clusters, keys=keys, weights=weights))
    return _ends(found, value)


def _cut(ends: tuple[float, float], bounds: tuple[float, float]) -> tuple[float, float]:
    """An interval within what the metric can be."""
    return max(ends[0], bounds[0]), min(ends[1], bounds[1])


def _ends(found: Estimate, value: float) -> tuple[float, float]:
    """Both ends of an interval around the value; NaN where it is around another one, or endless."""
    low, high = found.interval.low, found.interval.high
    same = math.isclose(found.value, value, rel_tol=1e-9, abs_tol=1e-12)
    return (low, high) if same and math.isfinite(low + high) else (math.nan, math.nan)
