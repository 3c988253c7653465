"""Models against a baseline, metric by metric: one row with all a reader needs to judge the difference.

A pure function over per-case tables: pairs by id, resamples by cluster with one set of draws for all rows,
corrects over the whole stated family, and says the verdict in words.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from recsys.errors import InputError, UnknownNameError
from recsys.stats.adjustment import AdjustedSides, Adjustment, adjusted_units, adjustment_of
from recsys.stats.alignment import Aligned, Differences, Units, align, collapse
from recsys.stats.catalogue_intervals import Jackknife
from recsys.stats.comparison_options import Options
from recsys.stats.comparison_rows import (
    margin_p,
    mean_row,
    sides_of,
    with_adjustment,
    with_runs,
    with_test,
    worded,
)
from recsys.stats.comparison_table import ComparisonTable, Row, Triple
from recsys.stats.family_tests import FamilyTest, family_adjusted, family_test
from recsys.stats.jackknife_rows import grouped_row
from recsys.stats.resampling import Resampler, Words, seed_of, unit_keys
from recsys.stats.run_tables import between_runs, layout_of, merged_runs
from recsys.stats.statistics_warnings import UnpairedWarning, caution, said_once
from recsys.stats.variance_reduction import saved
from recsys.stats.verdicts import counted_as
from recsys.types import Float, PerCase

__all__ = ["ComparisonTable", "Grouped", "Row", "compare_tables"]

Runs = Mapping[str, list[PerCase]]
Grouped = Mapping[str, Mapping[str, Sequence[Jackknife]]]


def compare_tables(
    tables: Mapping[str, PerCase | Sequence[PerCase]],
    *,
    baseline: str | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
    metrics: Sequence[str] | None = None,
    options: Options | None = None,
    grouped: Grouped | None = None,
    counted: Mapping[str, PerCase | Sequence[PerCase]] | None = None,
) -> ComparisonTable:
    """Compare every model with the baseline (all pairs without one) on every metric (the shared ones).

    Args:
        tables: {model: per-case values}, or a list of them, one a run.
        baseline: the model the others are held against.
        pairs: (model, baseline) pairs instead, where there are several baselines.
        metrics: names of columns, and of what `grouped` holds.
        options: test, interval, correction, effect.
        grouped: {model: {metric: jackknife of each run}} for numbers that are no means over cases.
        counted: the same tables as they are to be counted for wins and losses, where that differs.
    """
    chosen = options or Options()
    runs = _listed(tables)
    apart = {name: dict(found) for name, found in (grouped or {}).items()}
    shared = [m for m in next(iter(apart.values()), {}) if all(m in found for found in apart.values())]
    pairs = _pairs(list(runs), baseline) if pairs is None else list(pairs)
    names = _metrics(runs, metrics, shared)
    layout = layout_of(runs, chosen.runs)
    if layout == "folds" and chosen.adjusts:
        raise InputError(
            "folds are compared by their means, which covariates and strata of users do not adjust.",
            hint="Leave covariates= and strata= out, or compare one run of each model.",
        )
    if not layout and chosen.test_over_train is not None:
        raise InputError(
            f"test_over_train={chosen.test_over_train!r} is of folds, and every model has one run.",
            hint="Pass the folds as runs, {'new': [fold1, fold2, ...], ...}, or leave it out.",
        )
    if layout and chosen.correction == "max-t":
        raise InputError(
            "max-T resamples users only and knows nothing of runs.", hint="Use correction='holm'."
        )
    triples = [(model, base, metric) for model, base in pairs for metric in names]
    means = [triple for triple in triples if triple[2] not in shared]
    with said_once():
        aligned = _aligned(runs, layout, [metric for metric in names if metric not in shared])
        adjustment = adjustment_of(chosen, aligned.users)
        found, in_draws = _mean_rows(means, aligned, counted, adjustment, layout=layout, options=chosen)
        if layout:
            found = {
                triple: _over_runs(row, runs, layout, adjustment, chosen) for triple, row in found.items()
            }
        for triple in triples:
            if triple[2] in shared:
                one, other = (apart[side][triple[2]] for side in triple[:2])
                tested = [run.ids for run in runs[triple[0]]]
                row = grouped_row(triple, one, other, tested, layout=layout, options=chosen)
                if chosen.adjusts:
                    row = replace(
                        row, notes=(*row.notes, f"{row.metric}: not adjusted, it is no mean over users")
                    )
                found[triple] = row if row.runs is None else with_runs(row, row.runs, chosen)
        rows = [found[triple] for triple in triples]
        adjusted = family_adjusted(rows, means, in_draws, chosen.correction)
        same = margin_p([row.equivalence for row in rows], chosen.correction)
        no_worse = margin_p([row.non_inferiority for row in rows], chosen.correction)
        gone = aligned.note()
        notes = (caution(UnpairedWarning, gone),) if gone else ()
    final = tuple(
        worded(row, float(p), (float(q), float(r)), chosen)
        for row, p, q, r in zip(rows, adjusted, same, no_worse, strict=True)
    )
    family = (
        f"{counted_as(len(rows), 'comparison')} ({counted_as(len(pairs), 'pair')} of models x "
        f"{counted_as(len(names), 'metric')}), {chosen.correction}"
    )
    return ComparisonTable(final, family, chosen, aligned.missing, notes)


def _listed(tables: Mapping[str, PerCase | Sequence[PerCase]]) -> dict[str, list[PerCase]]:
    return {name: [t] if isinstance(t, PerCase) else list(t) for name, t in tables.items()}


def _aligned(runs: Runs, layout: str, metrics: Sequence[str]) -> Aligned:
    return align({name: merged_runs(one, layout, metrics) for name, one in runs.items()}, metrics)


def _mean_rows(
    triples: Sequence[Triple],
    aligned: Aligned,
    counted: Mapping[str, PerCase | Sequence[PerCase]] | None,
    adjustment: Adjustment | None,
    *,
    layout: str,
    options: Options,
) -> tuple[dict[Triple, Row], Float | None]:
    """Rows of means over cases, and their p adjusted by max-T where that was asked for."""
    if not triples:
        return {}, None
    keys = unit_keys(aligned.ids)
    paired = [_paired(aligned, triple, keys) for triple in triples]
    units = collapse(
        np.stack([aligned.differences(*triple) for triple in triples]),
        aligned.clusters,
        keys=keys,
        weights=aligned.weights,
    )
    adjusted: list[AdjustedSides] = []
    if adjustment is not None:
        present = units.weights != 0
        adjusted = [adjustment.sides(sides_of(d), d, here) for d, here in zip(paired, present, strict=True)]
    values = [one.differences for one in adjusted] or paired
    tested = _tested(adjusted_units(units, adjusted), values, options)
    judged = paired
    if counted is not None:
        plain = _aligned(_listed(counted), layout, list(dict.fromkeys(metric for *_, metric in triples)))
        judged = [_paired(plain, triple, keys) for triple in triples]
    rows = {
        triple: with_test(mean_row(triple, d, c, options), tested, j)
        for j, (triple, d, c) in enumerate(zip(triples, paired, judged, strict=True))
    }
    for triple, one in zip(triples, adjusted, strict=bool(adjusted)):
        rows[triple] = with_adjustment(rows[triple], one, options)
    return rows, tested.adjusted


def _over_runs(row: Row, runs: Runs, layout: str, adjustment: Adjustment | None, options: Options) -> Row:
    """The row with the spread between runs in its error."""
    sides = runs[row.model], runs[row.baseline]
    plain = between_runs(*sides, row.metric, layout=layout, options=options)
    if adjustment is None:
        return with_runs(row, plain, options)
    found = between_runs(*sides, row.metric, layout=layout, options=options, adjustment=adjustment)
    share = saved(found.standard_error, plain.standard_error)
    made = with_runs(row, found, options)
    return replace(made, variance_saved=share, test=f"{made.test}, adjusted")


def _pairs(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    if len(names) < 2:
        raise InputError(f"a comparison needs at least two models, got {names}.")
    if baseline is None:
        return [(second, first) for first, second in itertools.combinations(names, 2)]
    if baseline not in names:
        raise UnknownNameError("baseline", baseline, names)
    return [(name, baseline) for name in names if name != baseline]


def _metrics(runs: Runs, metrics: Sequence[str] | None, apart: Sequence[str]) -> list[str]:
    if metrics is not None:
        return [metrics] if isinstance(metrics, str) else list(metrics)
    first, *others = [table for several in runs.values() for table in several]
    shared = [name for name in first.columns if all(name in table.columns for table in others)]
    shared += [name for name in apart if name not in shared]
    if not shared:
        raise InputError("the tables share no metric.", hint="Evaluate all models with the same metrics.")
    return shared


def _tested(units: Units, paired: Sequence[Differences], options: Options) -> FamilyTest:
    resampler = Resampler(
        units.keys, options.n_resamples, seed_of(options.rng), options.scheme, progress=options.progress
    )
    return family_test(units, paired, resampler, options)


def _paired(aligned: Aligned, triple: Triple, keys: Words) -> Differences:
    model, base, metric = triple
    a, b = aligned.tables[model][metric], aligned.tables[base][metric]
    here, there = ~np.isnan(a), ~np.isnan(b)
    both = here & there
    if not both.any():
        raise InputError(f"{model!r} and {base!r} have no case in common on {metric!r}.", column=metric)
    alone = int(np.count_nonzero(here != there))
    notes = (f"{alone} cases count for one side only and are not paired",) if alone else ()
    clusters = None if aligned.clusters is None else aligned.clusters[both]
    weights = None if aligned.weights is None else aligned.weights[both]
    return Differences(a[both], b[both], clusters, keys[both], weights, notes)
