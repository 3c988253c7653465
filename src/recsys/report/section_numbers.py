"""The numbers behind the sections of a report: values with intervals, curves, strata, shares.

Their size does not grow with the number of users. Nothing here draws or writes.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recsys.errors import InputError, RecsysError, hush
from recsys.inputs.frames import detect_columns
from recsys.metrics.attributes import popular_head, read_vectors
from recsys.metrics.registry import metric_set
from recsys.records.arrays import (
    Array,
    Bool,
    Float,
    Ids,
    Int,
    Interactions,
    Lists,
    PerCase,
    Vectors,
    count_entries,
)
from recsys.stats.bootstrap import collapse
from recsys.stats.comparison_table import Row
from recsys.stats.corrections import flips_together
from recsys.stats.mean_inference import infer_mean
from recsys.stats.pairing import Aligned, Differences
from recsys.stats.results import Estimate
from recsys.stats.sums import CaseValues

if TYPE_CHECKING:
    from recsys.report.study import ItemNames, Study

Triple = tuple[float, float, float]  # value, low and high end of its interval
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_GROUPS = ("head", "tail", "never seen")
_CUTS = (1, 2, 3, 5, 10, 20, 50, 100)
_MIN_USERS_FOR_INTERVAL = 5
_MIN_USERS_IN_GROUP, _ALPHA = 20, 0.05


@dataclass(frozen=True, eq=False)
class GroupValues:
    """A metric by group of users: a value with its interval per model and group.

    Sizes are of the cases in the means; those without relevant items are in none. `phrases` say who is in a
    group, such as "with 2-7 training interactions"; by default its name does.
    """

    name: str
    title: str
    sizes: Mapping[str, int]
    values: Mapping[str, Mapping[str, Triple]]
    caption: str
    masks: Mapping[str, Bool]  # of the cases of `Study.aligned`; empty where these are other cases
    phrases: Mapping[str, str] = field(default_factory=dict)

    def who(self, label: str) -> str:
        """Return the users of a group, as a phrase that follows their noun."""
        return self.phrases.get(label, f"of the group {label}")


class GroupRow(NamedTuple):
    """One model against another within a group; p-value and confidence hold for all groups together."""

    pair: Differences
    adjusted_p: float
    confidence: float
    wins: int
    ties: int
    losses: int


def value_with_interval(study: Study, name: str, metric: str) -> Triple:
    """Return a model's value and the ends of its 95% interval, NaN where there is none."""
    value, runs = study.value(name, metric), study.runs[name]
    ends = math.nan, math.nan
    if len(runs) > 1 and metric in study.per_case_metrics:
        rows, bounds = study.per_case[name], study.requests[metric].metric.bounds
        if not math.isnan(value):
            ends = _mean_interval(rows.columns[metric], rows.clusters, rows.weights, value, bounds)
    elif len(runs) == 1 and not math.isnan(value):
        with contextlib.suppress(RecsysError), hush(Warning), np.errstate(all="ignore"):
            ends = _interval_ends(runs[0].intervals(metrics=[metric])[metric], value)
    return (value, *ends)


def lifts_or_differences(rows: Mapping[str, Row]) -> tuple[dict[str, Triple], str]:
    """Return the lifts of a comparison and the unit "%".

    Where one is not defined, return the differences and no unit.
    """
    lifts = {n: (r.relative, r.relative_interval.low, r.relative_interval.high) for n, r in rows.items()}
    if all(math.isfinite(sum(lift)) for lift in lifts.values()):
        return lifts, "%"
    return {n: (r.difference, r.interval.low, r.interval.high) for n, r in rows.items()}, ""


def main_metrics(study: Study) -> list[str]:
    """List the headline metric, then each other metric once, at the cut-off nearest to the headline's.

    Metrics of what is shown, relevant or not, come last.
    """
    k = study.requests[study.headline].k or 10
    nearest: dict[str, str] = {}
    for metric in study.metrics:
        family = study.requests[metric].family
        distance = abs((study.requests[metric].k or k) - k)
        known = nearest.get(family)
        if known is None or distance < abs((study.requests[known].k or k) - k):
            nearest[family] = metric
    rest = [m for m in nearest.values() if m != study.headline]
    return [study.headline, *sorted(rest, key=study.is_beyond_accuracy)]


def curves(study: Study) -> dict[str, dict[str, dict[int, Triple]]]:
    """Return {metric: {model: {k: value}}} of metrics at several cut-offs.

    Without any, they are evaluated from the lists.
    """
    families: dict[str, list[tuple[int, str]]] = {}
    for metric in study.metrics:
        k = study.requests[metric].k
        if k is not None:
            families.setdefault(study.requests[metric].family, []).append((k, metric))
    cut_offs = {family: sorted(pairs) for family, pairs in families.items() if len(pairs) > 1}
    if cut_offs:
        return {
            family: {n: {k: study.intervals[n, m] for k, m in pairs} for n in study.names}
            for family, pairs in cut_offs.items()
        }
    return _curves_of_lists(study, list(families))


def _curves_of_lists(study: Study, families: Sequence[str]) -> dict[str, dict[str, dict[int, Triple]]]:
    from recsys.evaluation.evaluate import evaluate

    lead = study.requests[study.headline].family
    names = [lead, *(m.name for m in metric_set("curves"))]
    metrics = [name for name in dict.fromkeys(names) if name in families]
    if study.test is None or set(study.lists) != set(study.names) or not metrics:
        return {}
    longest = max(int(lists.sizes.max(initial=0)) for lists in study.lists.values())
    cuts = [k for k in _CUTS if k <= longest]
    if len(cuts) < 2:
        return {}
    conventions = study.first(study.names[0]).conventions
    try:
        with hush(Warning):
            results = {
                name: evaluate(study.lists[name], study.test, metrics, k=cuts, conventions=conventions)
                for name in study.names
            }
    except RecsysError:
        return {}  # a metric that needs more than lists and truth; the section says what it would need
    models = {name: [result] for name, result in results.items()}
    evaluated = replace(study, runs=models, headline=f"{metrics[0]}@{cuts[0]}", compared=None)
    return {
        metric: {n: {k: value_with_interval(evaluated, n, f"{metric}@{k}") for k in cuts} for n in models}
        for metric in metrics
    }


def coverage(study: Study) -> tuple[str, dict[str, float]] | None:
    """Return the coverage of the results, else the share of the catalogue in the first k places."""
    k = study.requests[study.headline].k or 10
    coverage_metrics = [m for m in study.metrics if study.requests[m].metric.measures_coverage]
    if coverage_metrics:
        metric = min(coverage_metrics, key=lambda m: abs((study.requests[m].k or k) - k))
        return metric, {n: study.value(n, metric) for n in study.names}
    if set(study.lists) != set(study.names) or not study.lists:
        return None
    item_ids = [lists.items for lists in study.lists.values()]
    item_ids += [table.items for table in (study.history, study.truth) if table is not None]
    catalogue = item_ids[0]
    for ids in item_ids[1:]:
        catalogue = catalogue.union(ids, what="item")[0]
    n_shown = {n: len(np.unique(lists.codes[places(lists) < k])) for n, lists in study.lists.items()}
    return f"coverage@{k}", {n: count / max(len(catalogue), 1) for n, count in n_shown.items()}


def hit_shares(study: Study) -> dict[str, tuple[float, float, float]] | None:
    """By model, the shares of users with no, one and more relevant items in the first k; from their lists."""
    if study.truth is None or set(study.lists) != set(study.names) or not len(study.truth.codes):
        return None
    k = study.requests[study.headline].k or 10
    owner = np.repeat(np.arange(len(study.truth.cases)), study.truth.sizes)
    shares = {}
    for name in study.names:
        found = _found(study.truth, study.lists[name], k)
        hits = np.bincount(owner[found], minlength=len(study.truth.cases))[study.truth.sizes > 0]
        shares[name] = (float((hits == 0).mean()), float((hits == 1).mean()), float((hits > 1).mean()))
    return shares


def spread(study: Study) -> dict[str, dict[str, float]]:
    """Mean, quantiles and the share of zeros of the headline metric, per model."""
    rows = {}
    for name in study.names:
        rows_of_model = study.per_case[name]
        known = ~np.isnan(rows_of_model.columns[study.headline])
        values = rows_of_model.columns[study.headline][known]
        weights = None if rows_of_model.weights is None else rows_of_model.weights[known]
        mean = float(np.average(values, weights=weights))
        row = {"mean": mean, "share at 0": float((values == 0).mean())}
        quantiles = CaseValues.of(values, weights).quantiles(QUANTILES)  # as `aggregate=` states them
        rows[name] = row | {f"{q:.0%}": v for q, v in zip(QUANTILES, quantiles, strict=True)}
    return rows


def find_strata(study: Study) -> Iterator[GroupValues]:
    """Yield groups of the evaluation, activity, cold and warm, popularity and number of relevant items."""
    if study.headline in study.per_case_metrics:
        yield from filter(None, _strata(study))


def _strata(study: Study) -> Iterator[GroupValues | None]:
    users, measured = Ids(study.users), measured_cases(study, study.headline)
    for grouping, (values, sizes) in evaluated_groups(study, study.headline).items():
        first = study.first(study.names[0])
        is_aligned = np.array_equal(first.per_case.ids, study.aligned.ids)
        own = [group for group in first.values_by_group if group.grouping == grouping] if is_aligned else []
        masks = {str(group.label): first.group_masks[group] for group in own}
        name, caption = f"{grouping} of the evaluation", f"{study.headline} by {grouping}, as evaluated."
        yield GroupValues(name, grouping, sizes, values, caption, masks)
    if study.history is not None:
        n_train = count_entries(study.history, users)
        group, labels = _ranges(n_train, measured)
        words = _with_so_many(labels, "training interaction")
        yield _values_by_group(study, "activity", "training interactions", group, labels, phrases=words)
        if (n_train == 0).any() and (n_train > 0).any():
            group = np.where(n_train == 0, 0, 1)
            words = {"cold (none)": "who are cold in training", "warm (some)": "who are warm in training"}
            title = "history in training"
            yield _values_by_group(study, "cold and warm users", title, group, list(words), phrases=words)
        yield _by_item_popularity(study, users)
    if study.truth is not None:
        n_relevant = count_entries(study.truth, Ids(study.aligned.ids))
        group, labels = _ranges(n_relevant, measured)
        title, words = "relevant items in the truth", _with_so_many(labels, "relevant item")
        yield _values_by_group(study, "relevant items", title, group, labels, phrases=words)


def _with_so_many(labels: Sequence[str], noun: str) -> dict[str, str]:
    return {label: f"with {label} {noun}{'' if label == '1' else 's'}" for label in labels}


def head_and_tail(
    study: Study,
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]] | None:
    """By model: the share of places given to head, tail and unseen items, and the share found of each."""
    if study.history is None or not study.lists:
        return None
    k = study.requests[study.headline].k or 10
    shares: dict[str, dict[str, float]] = {}
    found: dict[str, dict[str, float]] = {}
    if study.truth is not None:
        shares["(the truth)"] = _group_shares(study.history, study.truth.items, study.truth.codes)
    for name in [n for n in study.names if n in study.lists]:
        lists = study.lists[name]
        shares[name] = _group_shares(study.history, lists.items, lists.codes[places(lists) < k])
        if study.truth is not None:
            found[name] = _found_by_group(study.history, study.truth, lists, k)
    used = [g for g in _GROUPS if any(row.get(g, 0.0) > 0 for row in shares.values())]
    return {n: {g: row[g] for g in used} for n, row in shares.items()}, found


def places(lists: Lists) -> Int:
    """Return the place of each entry in its list, from 0."""
    return np.arange(len(lists.codes)) - np.repeat(lists.indptr[:-1], lists.sizes)


def popularity(train: Interactions, items: Ids) -> Int:
    """Return the number of users of each item in train."""
    train.items.same_kind(items, what="item")
    codes = train.items.code_of(items.values)
    return np.where(codes >= 0, train.item_counts[codes] if len(train.items) else 0, 0)


def _popularity_group(train: Interactions, items: Ids) -> Int:
    """Return the place in _GROUPS of each item."""
    in_head = popular_head(train.item_counts)
    least = train.item_counts[in_head].min() if in_head.any() else np.iinfo(np.int64).max
    counts = popularity(train, items)
    return np.where(counts >= least, 0, np.where(counts > 0, 1, 2))


def _group_shares(train: Interactions, items: Ids, codes: Array) -> dict[str, float]:
    total = np.bincount(_popularity_group(train, items)[codes], minlength=3)
    return {g: float(n / max(total.sum(), 1)) for g, n in zip(_GROUPS, total.tolist(), strict=True)}


def _found_by_group(train: Interactions, truth: Interactions, lists: Lists, k: int) -> dict[str, float]:
    """Of the relevant pairs of each group, the share among the first k places."""
    hit = _found(truth, lists, k)
    group = _popularity_group(train, truth.items)[truth.codes]
    sizes, hits = np.bincount(group, minlength=3), np.bincount(group[hit], minlength=3)
    rows = zip(_GROUPS, hits.tolist(), sizes.tolist(), strict=True)
    return {g: h / n for g, h, n in rows if n}


def _found(truth: Interactions, lists: Lists, k: int) -> Bool:
    """Return whether each entry of the truth is among the first k places of its case."""
    case_codes, item_codes = truth.cases.code_of(lists.cases.values), truth.items.code_of(lists.items.values)
    width = len(truth.items)
    owner = np.repeat(np.arange(len(lists.cases)), lists.sizes)
    in_top = places(lists) < k
    case, item = case_codes[owner[in_top]], item_codes[lists.codes[in_top]]
    known = (case >= 0) & (item >= 0)
    shown = np.sort(case[known] * width + item[known])
    relevant = np.repeat(np.arange(len(truth.cases)), truth.sizes) * width + truth.codes
    return np.searchsorted(shown, relevant, "right") > np.searchsorted(shown, relevant, "left")


def _ranges(counts: Int, measured: Bool) -> tuple[Int, list[str]]:
    """Return the group of each count and the names of the groups.

    The groups are quarters, named by their ends, such as 1-12.

    Quarters and ends are those of the measured cases.
    """
    if not measured.any():
        return np.zeros(len(counts), dtype=np.int64), []
    quarters = np.quantile(counts[measured], [0.25, 0.5, 0.75], method="inverted_cdf")
    edges = np.unique(quarters.astype(np.int64))
    group = np.searchsorted(edges, counts, side="left")
    labels = []
    for g in range(len(edges) + 1):
        members = counts[measured & (group == g)]
        if len(members) == 0:
            labels.append("")
        elif members.min() == members.max():
            labels.append(f"{members.min():,}")
        else:
            labels.append(f"{members.min():,}–{members.max():,}")  # noqa: RUF001
    return group, labels


def _by_item_popularity(study: Study, users: Ids) -> GroupValues | None:
    """Users in three equal groups by the mean log popularity of their relevant items."""
    truth, train = study.truth, study.history
    if truth is None or train is None:
        return None
    counts = popularity(train, truth.items)
    owner = np.repeat(np.arange(len(truth.cases)), truth.sizes)
    total = np.bincount(owner, weights=np.log1p(counts[truth.codes]), minlength=len(truth.cases))
    mean = np.where(truth.sizes > 0, total / np.maximum(truth.sizes, 1), np.nan)
    at = truth.cases.code_of(study.aligned.ids if study.aligned.clusters is None else users.values)
    by_user = np.where(at >= 0, mean[at], np.nan)
    known = by_user[~np.isnan(by_user)]
    if not len(known):
        return None
    edges = np.quantile(known, [1 / 3, 2 / 3])
    group = np.where(np.isnan(by_user), -1, np.searchsorted(edges, by_user, side="left"))
    words = {label: f"whose relevant items are {label}" for label in ("niche", "mixed", "mainstream")}
    name, title = "popularity of what they want", "popularity of their relevant items"
    return _values_by_group(study, name, title, group, list(words), phrases=words)


def evaluated_groups(
    study: Study, metric: str
) -> dict[str, tuple[dict[str, dict[str, Triple]], dict[str, int]]]:
    """Return {grouping: ({model: {group: value}}, how many cases are in these means)} of the evaluations.

    Without the groupings that some evaluation lacks.
    """
    first = study.first(study.names[0])
    groups = list(first.values_by_group)
    if not groups or any(list(study.first(n).values_by_group) != groups for n in study.names):
        return {}
    bounds = study.requests[metric].metric.bounds
    column = first.per_case.columns.get(metric)
    found: dict[str, tuple[dict[str, dict[str, Triple]], dict[str, int]]] = {}
    for grouping in dict.fromkeys(group.grouping for group in groups):
        own = [group for group in groups if group.grouping == grouping]
        values: dict[str, dict[str, Triple]] = {}
        for name in study.names:
            evaluation = study.first(name)
            values[name] = {
                str(group.label): _group_interval(
                    evaluation.values_by_group[group][metric], evaluation.per_case.columns.get(metric),
                    evaluation.per_case, evaluation.group_masks[group], bounds,
                )
                for group in own
            }  # fmt: skip
        inside = [
            first.group_masks[g] if column is None else first.group_masks[g] & ~np.isnan(column) for g in own
        ]
        found[grouping] = values, {str(g.label): int(m.sum()) for g, m in zip(own, inside, strict=True)}
    return found


def group_values(
    study: Study, metric: str, masks: Mapping[str, Bool]
) -> tuple[dict[str, dict[str, Triple]], dict[str, int]]:
    """Return {model: {group: value over the cases of its mask}}, and how many cases are in these values."""
    aligned, request = study.aligned, study.requests[metric]
    bounds, average = request.metric.bounds, request.aggregate or np.average
    values: dict[str, dict[str, Triple]] = {}
    for name in study.names:
        column = aligned.tables[name][metric]
        values[name] = {}
        for group, inside in masks.items():
            present = inside & ~np.isnan(column)
            weights = None if aligned.weights is None else aligned.weights[present]
            value = math.nan
            if present.any():
                value = float(average(column[present], weights=weights))
            values[name][group] = _group_interval(value, column, aligned, inside, bounds)
    measured = measured_cases(study, metric)
    return values, {group: int((inside & measured).sum()) for group, inside in masks.items()}


def measured_cases(study: Study, metric: str) -> Bool:
    """Return which cases of `Study.aligned` are in a mean: those of which some model has a value."""
    columns = [table[metric] for table in study.aligned.tables.values()]
    measured: Bool = np.any(~np.isnan(columns), axis=0)
    return measured


def _values_by_group(
    study: Study, name: str, title: str, group: Int, labels: Sequence[str], *, phrases: Mapping[str, str]
) -> GroupValues | None:
    """Return the headline metric by group; None with fewer than two groups."""
    metric = study.headline
    # A group is left out if none of its users has a value.
    measured = measured_cases(study, metric)
    masks = {label: group == g for g, label in enumerate(labels) if label and measured[group == g].any()}
    if len(masks) < 2:
        return None
    values, sizes = group_values(study, metric, masks)
    return GroupValues(name, title, sizes, values, f"{metric} by {title}.", masks, phrases)


def compare_in_groups(study: Study, baseline: str) -> dict[tuple[str, str, str], GroupRow]:
    """Return each model against one on the headline metric within each group, by (model, stratum, group).

    All of them are one family, so that p-values and intervals hold for every group and model at once. Groups
    in which fewer than 20 users are paired are left out.
    """
    aligned, step = study.aligned, -1 if study.lower_is_better(study.headline) else 1
    pairs: dict[tuple[str, str, str], tuple[Differences, tuple[int, ...]]] = {}
    groups = [(one.name, *labelled) for one in study.strata for labelled in one.masks.items()]
    for name, label, mask in groups:
        for model in (n for n in study.names if n != baseline):
            pair = aligned.pair((model, baseline, study.headline), mask)
            counts = pair.sample.wins_ties_losses()[::step]
            if sum(counts) >= _MIN_USERS_IN_GROUP:
                pairs[model, name, label] = pair, counts
    adjusted, level = flips_together([pair for pair, _ in pairs.values()])
    return {
        key: GroupRow(pair, p, level, *counts)
        for (key, (pair, counts)), p in zip(pairs.items(), adjusted, strict=True)
    }


def ahead_in_group(study: Study, stratum: GroupValues, label: str) -> str | None:
    """Return the best model of a group among those that are ahead of the best of all users beyond chance."""
    metric, rows = study.headline, study.group_rows[study.best]
    if study.requests[metric].metric.better == "zero":  # a difference of means does not say who is nearer
        return None
    found = {n: rows.get((n, stratum.name, label)) for n in study.names}
    differ = {n: row.pair.sample.mean for n, row in found.items() if row and row.adjusted_p <= _ALPHA}
    ahead = [n for n, difference in differ.items() if study.sign(metric) * difference > 0]
    return max(ahead, key=lambda n: study.merit(stratum.values[n][label][0], metric), default=None)


def _mean_interval(
    column: Float, clusters: Array | None, weights: Float | None, value: float, bounds: tuple[float, float]
) -> tuple[float, float]:
    """Return the interval of a mean over users; NaN where the value is not that mean."""
    # Keys only matter for resampling, and the t interval does not resample.
    keys = np.zeros(len(column), dtype=np.uint64)
    with hush(Warning), np.errstate(all="ignore"):
        units = collapse(column[None, :], clusters, keys=keys, weights=weights)
        estimate = infer_mean(units, bounds=bounds).estimate
    return _interval_ends(estimate, value)


def _group_interval(
    value: float, column: Float | None, rows: PerCase | Aligned, inside: Bool, bounds: tuple[float, float]
) -> Triple:
    """Return the value of the cases of a mask with its interval, cut to the bounds.

    There is no interval for very few.
    """
    if column is None or (~np.isnan(column[inside])).sum() < _MIN_USERS_FOR_INTERVAL:
        return value, math.nan, math.nan
    clusters = None if rows.clusters is None else rows.clusters[inside]
    weights = None if rows.weights is None else rows.weights[inside]
    low, high = _mean_interval(column[inside], clusters, weights, value, bounds)
    return value, max(low, bounds[0]), min(high, bounds[1])


def _interval_ends(estimate: Estimate, value: float) -> tuple[float, float]:
    """Return the ends of an interval; NaN where they are infinite, or the estimate is not of this value."""
    low, high = estimate.interval.low, estimate.interval.high
    same = math.isclose(estimate.value, value, rel_tol=1e-9, abs_tol=1e-12)
    return (low, high) if same and math.isfinite(low + high) else (math.nan, math.nan)


def coordinates_of(embeddings: Any, names: ItemNames, max_items: int) -> tuple[list[Any], Float, int]:
    """Item ids, their coordinates in the plane, and how many items there are.

    Columns x and y of a table are coordinates, and so are two columns of any kind; more are projected. An
    array follows the order of `names`. Beyond `max_items`, a random sample. Items whose vector is zero or has
    NaN are left out.
    """
    data = embeddings
    if hasattr(data, "columns") and hasattr(data, "set_index"):
        roles = detect_columns([str(c) for c in data.columns], ("item",), None, "embeddings")
        data = data.set_index(roles["item"]) if "item" in roles else data
        data = data[["x", "y"]] if {"x", "y"} <= set(data.columns) else data
    elif names.ids and not isinstance(data, Mapping | tuple | Vectors):
        data = (names.ids, data)
    vectors = read_vectors(data, table="embeddings")
    if vectors.matrix.shape[1] < 2:
        raise InputError("embeddings have one column; a map needs two or more.", table="embeddings")
    matrix = vectors.matrix[vectors.rows].astype(np.float64)
    rows = np.flatnonzero(np.isfinite(matrix).all(axis=1) & matrix.any(axis=1))
    if len(rows) > max_items:
        rows = np.sort(np.random.default_rng(0).permutation(rows)[:max_items])
    places = matrix[rows]
    if matrix.shape[1] > 2:
        from recsys.analysis import item_map

        places = item_map(places, method="pca")[["x", "y"]].to_numpy()
    return [vectors.ids.name(code) for code in rows.tolist()], places, len(matrix)
