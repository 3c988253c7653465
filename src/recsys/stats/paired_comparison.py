"""Compare models with a baseline, metric by metric: one row with all a reader needs to judge the difference.

A pure function over per-case tables: it pairs by id, resamples by cluster with one set of draws for all rows,
corrects p-values over the whole stated family, and puts the verdict into words.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from recsys.errors import InputError, UnknownNameError
from recsys.stats.comparison_rows import (
    adjusted_margin_p,
    compare_runs,
    jackknife_row,
    mean_row,
    model_and_baseline_units,
    with_adjustment,
    with_runs,
    with_verdict,
)
from recsys.stats.comparison_table import ComparisonTable, Options, Row, Triple
from recsys.stats.group_jackknife import Jackknife
from recsys.stats.inference_results import (
    Interval,
    TestResult,
    UnpairedWarning,
    caution,
    plural,
    t_interval,
    warn_once,
)
from recsys.stats.multiple_comparisons import adjust, step_down
from recsys.stats.paired_tests import (
    EXACT_FLIPS,
    flip_p,
    paired_t,
    sign_flip,
    sign_test,
    spread_notes,
    t_statistic,
    wilcoxon,
)
from recsys.stats.pairing import Aligned, Differences, align
from recsys.stats.resampling import (
    Resampler,
    Units,
    Words,
    collapse,
    replicate,
    seed_from_rng,
    unit_keys,
)
from recsys.stats.runs import merge_runs, run_layout
from recsys.stats.variance_reduction import (
    AdjustedSides,
    Adjustment,
    Covariates,
    adjusted_units,
    lookup_covariates,
    lookup_strata,
    variance_saved_share,
)
from recsys.types import Array, Float, PerCase

Runs = Mapping[str, list[PerCase]]
Grouped = Mapping[str, Mapping[str, Sequence[Jackknife]]]
_BOOTSTRAPS = ("studentised", "bca", "percentile")


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
        adjustment = _build_adjustment(settings, aligned.users)
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
        adjusted = _adjust_family(rows, mean_triples, max_t_p, settings.correction)
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


def _build_adjustment(options: Options, users: Array) -> Adjustment | None:
    """The adjustment the options ask for, looked up for these users; None if they ask for none."""
    if not options.adjusts:
        return None
    covariates, strata = Covariates((), np.empty((len(users), 0)), None, ()), None
    if options.covariates is not None:
        covariates = lookup_covariates(options.covariates, options.covariate_means, users)
    if options.strata is not None:
        strata = lookup_strata(options.strata, options.stratum_shares, users)
    return Adjustment(users, covariates, strata)


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
    tested_units = adjusted_units(units, adjusted)
    tests, max_t_p = _family_test(tested_units, values, options)
    counted_pairs = paired
    if counted is not None:
        counted_tables = _align_runs(
            _runs_by_model(counted), layout, list(dict.fromkeys(metric for *_, metric in triples))
        )
        counted_pairs = [_pair_models(counted_tables, triple, keys) for triple in triples]
    rows: dict[Triple, Row] = {}
    errors = tested_units.standard_errors().tolist()
    parts = zip(triples, paired, counted_pairs, tests, errors, strict=True)
    for triple, differences, counts, test, error in parts:
        row = mean_row(triple, differences, counts, options)
        rows[triple] = replace(
            row,
            interval=test.interval or row.interval,
            statistic=test.statistic,
            p_value=test.p_value,
            test=test.method,
            standard_error=error,
            notes=row.notes + tuple(note for note in test.notes if note not in row.notes),
        )
    for triple, sides in zip(triples, adjusted, strict=bool(adjusted)):
        rows[triple] = with_adjustment(rows[triple], sides, options)
    return rows, max_t_p


def _family_test(
    units: Units, paired: Sequence[Differences], options: Options
) -> tuple[list[TestResult], Float | None]:
    """Test every row of `units` with one set of draws; `paired` holds the same rows case by case.

    Returns the tests, each with the interval of the difference, and their p-values by max-T if it is the
    correction.
    """
    resampler = Resampler(
        units.keys, options.n_resamples, seed_from_rng(options.rng), options.scheme, progress=options.progress
    )
    max_t, interval_method = options.correction == "max-t", options.interval_method
    replicates = None
    if max_t or options.test in _BOOTSTRAPS or interval_method in _BOOTSTRAPS:
        replicates = replicate(units, resampler)
    tests = _single_tests(paired, options)
    if replicates is not None and options.test in _BOOTSTRAPS:
        label = f"{options.test} bootstrap ({resampler.n_resamples} {replicates.scheme} draws)"
        p_values = replicates.p_values(options.test).tolist()
        tests = [replace(test, method=label, p_value=p) for test, p in zip(tests, p_values, strict=True)]
    elif options.test == "permutation" and len(units.keys) > EXACT_FLIPS:
        label = f"sign-flip permutation ({resampler.n_resamples} draws)"
        p_values = [flip_p(*row) for row in zip(resampler.flipped(units.totals), units.totals, strict=True)]
        tests = [replace(test, method=label, p_value=p) for test, p in zip(tests, p_values, strict=True)]
    if replicates is not None and interval_method in _BOOTSTRAPS:
        intervals = [
            Interval(low, high, options.confidence, interval_method)
            for low, high in replicates.limits(interval_method, options.confidence).tolist()
        ]
    else:
        df = units.n_units() - 1.0 - np.array([d.spent for d in paired])
        if interval_method == "normal":
            df = np.full(len(paired), np.inf)
        columns = np.stack([units.estimates(), units.standard_errors(), df], axis=1)
        intervals = [
            replace(t_interval(value, error, row_df, options.confidence), method=interval_method)
            for value, error, row_df in columns.tolist()
        ]
    tests = [replace(test, interval=interval) for test, interval in zip(tests, intervals, strict=True)]
    if replicates is None or not max_t:
        return tests, None
    return tests, step_down(replicates.observed_t(), replicates.t_values())[1]


def _single_tests(paired: Sequence[Differences], options: Options) -> list[TestResult]:
    """Tests computed row by row; for a resampled test, only its t statistic."""
    if options.test == "wilcoxon":
        return [wilcoxon(d) for d in paired]
    if options.test == "sign":
        return [sign_test(d, dead_zone=options.tie) for d in paired]
    if options.test == "permutation" and len(paired[0].units().keys) <= EXACT_FLIPS:
        # The statistic of a row is t for every test of the mean, whatever p comes from.
        return [replace(sign_flip(d), statistic=_statistic_only(d).statistic) for d in paired]
    if options.test in _BOOTSTRAPS:
        return [_statistic_only(d) for d in paired]
    return [paired_t(d, confidence=options.confidence) for d in paired]


def _statistic_only(d: Differences) -> TestResult:
    """The t statistic without the cautions of the t-test, as the t distribution is not used."""
    values = d.units().linearised()
    mean, _, t = t_statistic(values)
    return TestResult("", mean, t, math.nan, len(values), notes=d.notes + spread_notes(values))


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


def _adjust_family(
    rows: Sequence[Row], in_draws: Sequence[Triple], max_t_p: Float | None, correction: str
) -> Float:
    """P-values adjusted over the family.

    For max-T, `max_t_p` holds the adjusted p-values of the rows `in_draws`. The other rows (metrics of the
    catalogue) are adjusted by Holm, and both parts are multiplied up to the size of the whole family, which
    is valid under any dependence.
    """
    p_values = np.array([row.p_value for row in rows])
    if correction != "max-t":
        return adjust(p_values, correction)
    index_in_draws = {triple: j for j, triple in enumerate(in_draws)}
    index = [index_in_draws.get((row.model, row.baseline, row.metric)) for row in rows]
    inside = np.array([j is not None for j in index])
    adjusted = np.empty(len(rows))
    if max_t_p is not None:
        adjusted[inside] = max_t_p[[j for j in index if j is not None]]
    adjusted[~inside] = adjust(p_values[~inside], "holm")
    for part in (inside, ~inside):
        if part.any():
            adjusted[part] = np.minimum(1.0, adjusted[part] * len(rows) / np.count_nonzero(part))
    # The draws may give a slightly smaller p than the chosen test; a correction must not lower p.
    at_least_raw: Float = np.maximum(adjusted, p_values)
    return at_least_raw


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
