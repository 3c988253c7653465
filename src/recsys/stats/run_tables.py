"""Several runs of a model in a comparison: one table for the users, one result for the runs."""

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


def layout_of(runs: Mapping[str, list[PerCase]], wanted: str) -> str:
    """How runs relate: "" for one each, "seeds" over the same cases, "folds" over different ones."""
    longest = max(runs.values(), key=len)
    if len(longest) == 1:
        return ""
    if wanted != "auto":
        return wanted
    return "seeds" if len(np.intersect1d(longest[0].ids, longest[1].ids)) else "folds"


def merged_runs(runs: Sequence[PerCase], layout: str, metrics: Sequence[str]) -> PerCase:
    """One table for all runs: the mean over runs of each case (a case missing in a run is missing)."""
    if len(runs) == 1:
        return runs[0]
    if not runs:
        raise InputError("a model has no run at all.")
    aligned = align({str(r): run for r, run in enumerate(runs)}, metrics)
    stacked = {metric: np.stack([one[metric] for one in aligned.tables.values()]) for metric in metrics}
    if layout == "seeds":
        columns = {metric: values.mean(axis=0) for metric, values in stacked.items()}
    else:
        columns = {metric: _present_mean(values) for metric, values in stacked.items()}
    return PerCase(aligned.ids, columns, aligned.clusters, aligned.weights)


def _present_mean(values: Float) -> Float:
    counts = (~np.isnan(values)).sum(axis=0)
    sums = np.where(np.isnan(values), 0.0, values).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def between_runs(
    model: Sequence[PerCase],
    baseline: Sequence[PerCase],
    metric: str,
    *,
    layout: str,
    options: Options,
    adjustment: Adjustment | None = None,
) -> RunsResult:
    """Difference between two models over their runs, run by run; what was asked in vain is noted.

    Seeds may be adjusted for their users, who are the same in each.
    """
    found = _over_runs(model, baseline, metric, layout=layout, options=options, adjustment=adjustment)
    return replace(found, notes=found.notes + in_vain(len(model), len(baseline), layout, options))


def in_vain(model: int, baseline: int, layout: str, options: Options) -> tuple[str, ...]:
    """What was asked and several runs have no use for, or cannot tell; `model` and `baseline` count runs."""
    notes: tuple[str, ...] = ()
    named = {"test": options.test != "t", "interval": options.interval not in (None, "t")}
    for name in (name for name, given in named.items() if given):
        notes += (f"{name}={getattr(options, name)!r} is of users alone; several runs have a t-test of both",)
    if layout == "seeds" and options.test_over_train is not None:
        notes += ("test_over_train is of folds; these runs share their users",)
    if layout == "seeds" and model != baseline:
        notes += ("one side has a single run, whose spread between runs is not known and not counted",)
    return notes


def _over_runs(
    model: Sequence[PerCase],
    baseline: Sequence[PerCase],
    metric: str,
    *,
    layout: str,
    options: Options,
    adjustment: Adjustment | None,
) -> RunsResult:
    if len(model) != len(baseline) and 1 not in (len(model), len(baseline)):
        raise InputError(
            f"runs are compared one by one, but there are {len(model)} and {len(baseline)}.",
            hint="Give the same number of runs, or one for the baseline.",
        )
    count = max(len(model), len(baseline))
    pairs = [(model[r % len(model)], baseline[r % len(baseline)]) for r in range(count)]
    if layout == "folds":
        means = [_mean_gap(a, b, metric) for a, b in pairs]
        return over_folds(means, [a.ids for a, _ in pairs], options)
    tables = {
        f"{side}{r}": table for r, pair in enumerate(pairs) for side, table in zip("ab", pair, strict=True)
    }
    aligned = align(tables, [metric])
    table = np.stack([aligned.differences(f"a{r}", f"b{r}", metric) for r in range(count)])
    everywhere = ~np.isnan(table).any(axis=0)
    clusters = None if aligned.clusters is None else aligned.clusters[everywhere]
    weights = None if aligned.weights is None else aligned.weights[everywhere]
    units = collapse(table[:, everywhere], clusters, keys=unit_keys(aligned.ids[everywhere]), weights=weights)
    values = np.stack([units.linearised(r) for r in range(count)])
    if adjustment is not None:
        whose = aligned.ids[everywhere] if clusters is None else np.unique(clusters)
        values = adjustment.values(values, whose[units.weights[0] != 0])
    return seeds(values, confidence=options.confidence)


def over_folds(per_fold: Sequence[float], ids: Sequence[Array], options: Options) -> RunsResult:
    """The difference over folds, from that of each and who is tested in it.

    Whoever is not tested trains, which is n_test / n_train unless given; repeated folds meet the same users.
    """
    users, tested = len(np.unique(np.concatenate(ids))), sum(map(len, ids)) / len(ids)
    ratio = options.test_over_train
    if ratio is None and tested < users:
        ratio = tested / (users - tested)
    return folds(per_fold, test_over_train=ratio, confidence=options.confidence, n_users=users)


def _mean_gap(a: PerCase, b: PerCase, metric: str) -> float:
    """Mean difference of one run over the cases both sides have, weighted as the metric is."""
    aligned = align({"a": a, "b": b}, [metric])
    gap = aligned.differences("a", "b", metric)
    if np.isnan(gap).all():
        raise InputError(f"a run of the two sides has no case in common on {metric!r}.", column=metric)
    found = collapse(gap[None, :], keys=unit_keys(aligned.ids), weights=aligned.weights)
    return float(found.estimates()[0])
