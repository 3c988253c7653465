"""Several runs of a model in a comparison: merge them into one table, or compare them run by run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from recsys.errors import InputError
from recsys.stats.adjustment import Adjustment
from recsys.stats.alignment import align, collapse
from recsys.stats.comparison_options import Options
from recsys.stats.resampling import unit_keys
from recsys.stats.runs import RunsResult, folds, seeds
from recsys.types import Array, Float, PerCase


def run_layout(runs: Mapping[str, list[PerCase]], requested: str) -> str:
    """How runs relate: "" if each model has one, "seeds" over the same cases, "folds" over different ones."""
    longest = max(runs.values(), key=len)
    if len(longest) == 1:
        return ""
    if requested != "auto":
        return requested
    return "seeds" if len(np.intersect1d(longest[0].ids, longest[1].ids)) else "folds"


def merge_runs(runs: Sequence[PerCase], layout: str, metrics: Sequence[str]) -> PerCase:
    """One table for all runs: each case has its mean over the runs.

    With seeds, a case that is missing in one run is missing; with folds, it has the mean of the other runs.
    """
    if len(runs) == 1:
        return runs[0]
    if not runs:
        raise InputError("a model has no run at all.")
    aligned = align({str(r): run for r, run in enumerate(runs)}, metrics)
    values_by_metric = {
        metric: np.stack([columns_of_run[metric] for columns_of_run in aligned.tables.values()])
        for metric in metrics
    }
    if layout == "seeds":
        columns = {metric: values.mean(axis=0) for metric, values in values_by_metric.items()}
    else:
        columns = {metric: _mean_without_missing(values) for metric, values in values_by_metric.items()}
    return PerCase(aligned.ids, columns, aligned.clusters, aligned.weights)


def _mean_without_missing(values: Float) -> Float:
    counts = (~np.isnan(values)).sum(axis=0)
    sums = np.where(np.isnan(values), 0.0, values).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def compare_runs(
    model: Sequence[PerCase],
    baseline: Sequence[PerCase],
    metric: str,
    *,
    layout: str,
    options: Options,
    adjustment: Adjustment | None = None,
) -> RunsResult:
    """The difference between two models over their runs, run by run, with notes on options that are ignored.

    Seeds may be adjusted for their users, who are the same in every run.
    """
    if len(model) != len(baseline) and 1 not in (len(model), len(baseline)):
        raise InputError(
            f"runs are compared one by one, but there are {len(model)} and {len(baseline)}.",
            hint="Give the same number of runs, or one for the baseline.",
        )
    n_runs = max(len(model), len(baseline))
    pairs = [(model[r % len(model)], baseline[r % len(baseline)]) for r in range(n_runs)]
    if layout == "folds":
        means = [_mean_difference(a, b, metric) for a, b in pairs]
        result = folds_result(means, [a.ids for a, _ in pairs], options)
    else:
        tables = {
            f"{side}{r}": table
            for r, pair in enumerate(pairs)
            for side, table in zip("ab", pair, strict=True)
        }
        aligned = align(tables, [metric])
        differences = np.stack([aligned.differences(f"a{r}", f"b{r}", metric) for r in range(n_runs)])
        complete = ~np.isnan(differences).any(axis=0)
        clusters = None if aligned.clusters is None else aligned.clusters[complete]
        weights = None if aligned.weights is None else aligned.weights[complete]
        keys = unit_keys(aligned.ids[complete])
        units = collapse(differences[:, complete], clusters, keys=keys, weights=weights)
        values = np.stack([units.linearised(r) for r in range(n_runs)])
        if adjustment is not None:
            users = aligned.ids[complete] if clusters is None else np.unique(clusters)
            values = adjustment.values(values, users[units.weights[0] != 0])
        result = seeds(values, confidence=options.confidence)
    notes = ignored_option_notes(len(model), len(baseline), layout, options)
    return replace(result, notes=result.notes + notes)


def ignored_option_notes(model: int, baseline: int, layout: str, options: Options) -> tuple[str, ...]:
    """Notes on options that several runs ignore and on spread they cannot show.

    `model` and `baseline` are numbers of runs.
    """
    notes: tuple[str, ...] = ()
    changed = {"test": options.test != "t", "interval": options.interval not in (None, "t")}
    for name in (name for name, is_changed in changed.items() if is_changed):
        notes += (
            f"{name}={getattr(options, name)!r} is for users alone; several runs use a t-test over both",
        )
    if layout == "seeds" and options.test_over_train is not None:
        notes += ("test_over_train is for folds; these runs share their users",)
    if layout == "seeds" and model != baseline:
        notes += ("one side has a single run, so its spread between runs is unknown and not counted",)
    return notes


def folds_result(per_fold: Sequence[float], ids: Sequence[Array], options: Options) -> RunsResult:
    """The difference over folds, from the difference and the test ids of each fold.

    Unless options.test_over_train is given, n_test / n_train follows from the ids: users who are not tested
    in a fold train it. Repeated folds test the same users again.
    """
    n_users, mean_n_test = len(np.unique(np.concatenate(ids))), sum(map(len, ids)) / len(ids)
    ratio = options.test_over_train
    if ratio is None and mean_n_test < n_users:
        ratio = mean_n_test / (n_users - mean_n_test)
    return folds(per_fold, test_over_train=ratio, confidence=options.confidence, n_users=n_users)


def _mean_difference(a: PerCase, b: PerCase, metric: str) -> float:
    """Mean difference of one run over the cases both sides have, with the weights of the metric."""
    aligned = align({"a": a, "b": b}, [metric])
    differences = aligned.differences("a", "b", metric)
    if np.isnan(differences).all():
        raise InputError(f"a run of the two sides has no case in common on {metric!r}.", column=metric)
    units = collapse(differences[None, :], keys=unit_keys(aligned.ids), weights=aligned.weights)
    return float(units.estimates()[0])
