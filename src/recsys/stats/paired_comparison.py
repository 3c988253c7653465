"""Compare models with a baseline, metric by metric: one row with all a reader needs to judge the difference.

A pure function over per-case tables: it pairs by id, resamples by cluster with one set of draws for all rows,
corrects p-values over the whole stated family, and puts the verdict into words.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from recsys.errors import InputError, UnknownNameError
from recsys.stats.adjustment import AdjustedSides, Adjustment, adjusted_units, build_adjustment
from recsys.stats.alignment import Aligned, Differences, align, collapse
from recsys.stats.catalogue_intervals import Jackknife
from recsys.stats.comparison_options import Options
from recsys.stats.comparison_rows import (
    adjusted_margin_p,
    mean_row,
    model_and_baseline_units,
    with_adjustment,
    with_runs,
    with_test,
    with_verdict,
)
from recsys.stats.comparison_table import ComparisonTable, Row, Triple
from recsys.stats.family_tests import adjust_family, family_test
from recsys.stats.jackknife_rows import jackknife_row
from recsys.stats.resampling import Resampler, Words, seed_from_rng, unit_keys
from recsys.stats.run_tables import compare_runs, merge_runs, run_layout
from recsys.stats.statistics_warnings import UnpairedWarning, caution, warn_once
from recsys.stats.variance_reduction import variance_saved_share
from recsys.stats.verdicts import plural
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
    """Compare every model with the baseline on every metric.

    Args:
        tables: {model: per-case values}, or for several runs {model: list of one table per run}.
        baseline: the model the others are compared with; by default all pairs are compared.
        pairs: (model, baseline) pairs instead, where there are several baselines.
        metrics: names of columns of `tables` and of metrics in `grouped`; by default those all models share.
        options: test, interval, correction, effect and the rest.
        grouped: {model: {metric: jackknife of each run}} for metrics that are not means over cases.
        counted: the tables in which wins and losses are counted, if not `tables`.

    Raises:
        InputError: if the options do not fit the runs, or no case can be paired.
        UnknownNameError: if the baseline is not one of the models.
    """
    settings = options or Options()
    runs = _runs_by_model(tables)
    jackknives = {model: dict(by_metric) for model, by_metric in (grouped or {}).items()}
    first_model = next(iter(jackknives.values()), {})
    jackknife_metrics = [m for m in first_model if all(m in by_metric for by_metric in jackknives.values())]
    pairs = _model_pairs(list(runs), baseline) if pairs is None else list(pairs)
    names = _metric_names(runs, metrics, jackknife_metrics)
    layout = run_layout(runs, settings.runs)
    if layout == "folds" and settings.adjusts:
        raise InputError(
            "folds are compared by their means, which covariates and strata of users do not adjust.",
            hint="Leave covariates= and strata= out, or compare one run of each model.",
        )
    if not layout and settings.test_over_train is not None:
        raise InputError(
            f"test_over_train={settings.test_over_train!r} is for folds, but every model has one run.",
            hint="Pass the folds as runs, {'new': [fold1, fold2, ...], ...}, or leave it out.",
        )
    if layout and settings.correction == "max-t":
        raise InputError(
            "max-T resamples users only and ignores the spread between runs.", hint="Use correction='holm'."
        )
    triples = [(model, base, metric) for model, base in pairs for metric in names]
    mean_triples = [triple for triple in triples if triple[2] not in jackknife_metrics]
    with warn_once():
        aligned = _align_runs(runs, layout, [metric for metric in names if metric not in jackknife_metrics])
        adjustment = build_adjustment(settings, aligned.users)
        rows_by_triple, max_t_p = _mean_rows(
            mean_triples, aligned, counted, adjustment, layout=layout, options=settings
        )
        if layout:
            rows_by_triple = {
                triple: _with_run_spread(row, runs, layout, adjustment, settings)
                for triple, row in rows_by_triple.items()
            }
        for triple in triples:
            if triple[2] in jackknife_metrics:
                model_runs, baseline_runs = (jackknives[side][triple[2]] for side in triple[:2])
                run_ids = [run.ids for run in runs[triple[0]]]
                row = jackknife_row(
                    triple, model_runs, baseline_runs, run_ids, layout=layout, options=settings
                )
                if settings.adjusts:
                    row = replace(
                        row, notes=(*row.notes, f"{row.metric}: not adjusted, it is not a mean over users")
                    )
                rows_by_triple[triple] = row if row.runs is None else with_runs(row, row.runs, settings)
        rows = [rows_by_triple[triple] for triple in triples]
        adjusted = adjust_family(rows, mean_triples, max_t_p, settings.correction)
        equivalence_p = adjusted_margin_p([row.equivalence for row in rows], settings.correction)
        non_inferiority_p = adjusted_margin_p([row.non_inferiority for row in rows], settings.correction)
        missing_note = aligned.note()
        notes = (caution(UnpairedWarning, missing_note),) if missing_note else ()
    final_rows = tuple(
        with_verdict(row, float(p), (float(q), float(r)), settings)
        for row, p, q, r in zip(rows, adjusted, equivalence_p, non_inferiority_p, strict=True)
    )
    family = (
        f"{plural(len(rows), 'comparison')} ({plural(len(pairs), 'pair')} of models x "
        f"{plural(len(names), 'metric')}), {settings.correction}"
    )
    return ComparisonTable(final_rows, family, settings, aligned.missing, notes)


def _runs_by_model(tables: Mapping[str, PerCase | Sequence[PerCase]]) -> dict[str, list[PerCase]]:
    return {name: [t] if isinstance(t, PerCase) else list(t) for name, t in tables.items()}


def _align_runs(runs: Runs, layout: str, metrics: Sequence[str]) -> Aligned:
    return align({name: merge_runs(tables, layout, metrics) for name, tables in runs.items()}, metrics)


def _mean_rows(
    triples: Sequence[Triple],
    aligned: Aligned,
    counted: Mapping[str, PerCase | Sequence[PerCase]] | None,
    adjustment: Adjustment | None,
    *,
    layout: str,
    options: Options,
) -> tuple[dict[Triple, Row], Float | None]:
    """Rows of metrics that are means over cases, and their p-values by max-T if it is the correction."""
    if not triples:
        return {}, None
    keys = unit_keys(aligned.ids)
    paired = [_pair_models(aligned, triple, keys) for triple in triples]
    units = collapse(
        np.stack([aligned.differences(*triple) for triple in triples]),
        aligned.clusters,
        keys=keys,
        weights=aligned.weights,
    )
    adjusted: list[AdjustedSides] = []
    if adjustment is not None:
        present = units.weights != 0
        adjusted = [
            adjustment.sides(model_and_baseline_units(differences), differences, units_present)
            for differences, units_present in zip(paired, present, strict=True)
        ]
    values = [sides.differences for sides in adjusted] or paired
    resampler = Resampler(
        units.keys, options.n_resamples, seed_from_rng(options.rng), options.scheme, progress=options.progress
    )
    tests = family_test(adjusted_units(units, adjusted), values, resampler, options)
    counted_pairs = paired
    if counted is not None:
        counted_tables = _align_runs(
            _runs_by_model(counted), layout, list(dict.fromkeys(metric for *_, metric in triples))
        )
        counted_pairs = [_pair_models(counted_tables, triple, keys) for triple in triples]
    rows = {
        triple: with_test(mean_row(triple, differences, counts, options), tests, j)
        for j, (triple, differences, counts) in enumerate(zip(triples, paired, counted_pairs, strict=True))
    }
    for triple, sides in zip(triples, adjusted, strict=bool(adjusted)):
        rows[triple] = with_adjustment(rows[triple], sides, options)
    return rows, tests.adjusted


def _with_run_spread(
    row: Row, runs: Runs, layout: str, adjustment: Adjustment | None, options: Options
) -> Row:
    """The row with test and interval over the runs, adjusted if there is an adjustment."""
    sides = runs[row.model], runs[row.baseline]
    unadjusted = compare_runs(*sides, row.metric, layout=layout, options=options)
    if adjustment is None:
        return with_runs(row, unadjusted, options)
    adjusted = compare_runs(*sides, row.metric, layout=layout, options=options, adjustment=adjustment)
    saved = variance_saved_share(adjusted.standard_error, unadjusted.standard_error)
    row_with_runs = with_runs(row, adjusted, options)
    return replace(row_with_runs, variance_saved=saved, test=f"{row_with_runs.test}, adjusted")


def _model_pairs(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    if len(names) < 2:
        raise InputError(f"a comparison needs at least two models, got {names}.")
    if baseline is None:
        return [(second, first) for first, second in itertools.combinations(names, 2)]
    if baseline not in names:
        raise UnknownNameError("baseline", baseline, names)
    return [(name, baseline) for name in names if name != baseline]


def _metric_names(runs: Runs, metrics: Sequence[str] | None, jackknife_metrics: Sequence[str]) -> list[str]:
    if metrics is not None:
        return [metrics] if isinstance(metrics, str) else list(metrics)
    first, *others = [table for tables in runs.values() for table in tables]
    shared = [name for name in first.columns if all(name in table.columns for table in others)]
    shared += [name for name in jackknife_metrics if name not in shared]
    if not shared:
        raise InputError("the tables share no metric.", hint="Evaluate all models with the same metrics.")
    return shared


def _pair_models(aligned: Aligned, triple: Triple, keys: Words) -> Differences:
    model, baseline, metric = triple
    values, baseline_values = aligned.tables[model][metric], aligned.tables[baseline][metric]
    has_value, has_baseline = ~np.isnan(values), ~np.isnan(baseline_values)
    both = has_value & has_baseline
    if not both.any():
        raise InputError(f"{model!r} and {baseline!r} have no case in common on {metric!r}.", column=metric)
    n_unpaired = int(np.count_nonzero(has_value != has_baseline))
    notes = (f"{n_unpaired} cases count for one side only and are not paired",) if n_unpaired else ()
    clusters = None if aligned.clusters is None else aligned.clusters[both]
    weights = None if aligned.weights is None else aligned.weights[both]
    return Differences(values[both], baseline_values[both], clusters, keys[both], weights, notes)
