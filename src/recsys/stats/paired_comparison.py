"""Compare models with a baseline, metric by metric: one row with all a reader needs to judge the difference.

A pure function over per-case tables: it pairs by id, resamples by cluster with one set of draws for all rows,
corrects p-values over the whole stated family, and puts the verdict into words.

A metric that is not a mean over users has no value per user, so its rows come from the jackknife over groups
of users and have no wins, losses or effect size; they belong to the same family and correction as all others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from recsys.errors import InputError, UnknownNameError
from recsys.stats.comparison_table import (
    EFFECTS,
    RANK_TESTS,
    ComparisonTable,
    Options,
    Row,
    Triple,
    with_verdict,
)
from recsys.stats.effects import Effect
from recsys.stats.group_jackknife import Jackknife, mean_jackknife
from recsys.stats.inference_results import (
    Estimate,
    Interval,
    TestResult,
    fieller_lift,
    plural,
    t_interval,
    t_ratio,
    t_tail,
    warn_once,
)
from recsys.stats.multiple_comparisons import adjust, fit_for_max_t, join_parts, step_down
from recsys.stats.paired_sums import Paired, Pieces, SummedRows, SumsOfPieces
from recsys.stats.paired_tests import (
    EquivalenceResult,
    allow_for_unseen,
    bayes_from_estimate,
    difference_estimate,
    equivalence_from_estimate,
    flip_tests,
    paired_t,
    sign_test,
    spread_notes,
    tail_notes,
    too_sparse_note,
    wilcoxon,
)
from recsys.stats.pairing import Aligned, Differences, Sides, align, note_gaps, side_estimates, unpaired_notes
from recsys.stats.rare_values import (
    FEW,
    METHOD,
    differing_words,
    lift_bounds,
    mean_bounds,
    mean_p,
    units_needed,
)
from recsys.stats.resampling import (
    BOOTSTRAP_FROM,
    Resampler,
    Units,
    Words,
    collapse,
    replicate,
    seed_from_rng,
    unit_keys,
)
from recsys.stats.runs import RunsResult, compare_runs, folds_of_users, merge_runs, run_layout, run_result
from recsys.stats.spread import t_statistic
from recsys.stats.variance_reduction import (
    AdjustedSides,
    Adjustment,
    Covariates,
    lookup_covariates,
    lookup_strata,
    variance_saved_share,
)
from recsys.types import Array, Bool, Float, PerCase

Runs = Mapping[str, list[PerCase]]
Bounds = tuple[float, float]
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
    ranges: Mapping[str, Bounds] | None = None,
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
        ranges: {metric: the least and the greatest value of a case}, infinite if there is none. Where few
            units differ, the interval allows for all that lies between. Zeros and ones need no range; other
            values without one are taken to lie between those seen, and a note says so.

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
    for name in itertools.chain(*pairs):
        if name not in runs:
            raise UnknownNameError("model", name, runs)
    uncounted = [name for name in runs if counted is not None and name not in counted]
    if uncounted:
        raise InputError(f"counted= has no table of {uncounted[0]!r}.", hint="Pass one for every model.")
    names = _metric_names(runs, metrics, jackknife_metrics)
    if not pairs or not names:
        raise InputError("there is nothing to compare: no pair of models, or no metric.")
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
        mean_rows, max_t_p = _mean_rows(
            mean_triples, aligned, counted, adjustment, layout=layout, ranges=ranges or {}, options=settings
        )
        rows = []
        for model, base, metric in triples:
            if metric in jackknife_metrics:
                sides = jackknives[model][metric], jackknives[base][metric]
                ids = [run.ids for run in runs[model]]
                row = _jackknife_row((model, base, metric), *sides, ids, layout=layout, options=settings)
            else:
                row = mean_rows[model, base, metric]
                if layout:
                    row = _with_run_spread(
                        row, runs[model], runs[base], layout=layout, adjustment=adjustment, options=settings
                    )
            rows.append(row)
        adjusted = _adjust_family(rows, mean_triples, max_t_p, settings.correction)
        return _make_table(rows, adjusted, len(pairs), (aligned.missing, len(aligned.ids)), settings)


def compare_pieces(
    pieces: Pieces,
    models: Sequence[str],
    metrics: Sequence[str],
    *,
    baseline: str | None = None,
    options: Options | None = None,
    grouped: Grouped | None = None,
    centres: Mapping[str, Mapping[str, float]],
    has_terms: Collection[str] = (),
    ranges: Mapping[str, Bounds],
    make_sums: Callable[..., SumsOfPieces] = SumsOfPieces,
) -> ComparisonTable:
    """Compare as `compare_tables` does, without holding the values per case, which must have no weights.

    Args:
        pieces: a function of some metrics that gives their values piece by piece, as often as it is called.
        models: names of models in the pieces.
        metrics: names of metrics in the pieces and in `grouped`.
        baseline, grouped, ranges: as in `compare_tables`.
        options: the same, but tests and effects by ranks, permutations and adjustments need the values.
        centres: {model: {metric: about its mean}}.
        has_terms: metrics whose wins and losses are counted in other values than those that are averaged.
        make_sums: who adds up the pieces.

    Raises:
        NoRowsError: there are so many distinct values that only all of them together could tell.
    """
    settings = options or Options()
    pairs = _model_pairs(list(models), baseline)
    triples = [(model, base, metric) for model, base in pairs for metric in metrics]
    jackknives = grouped or {}
    mean_triples = [triple for triple in triples if triple[2] not in jackknives.get(triple[0], {})]
    with warn_once():
        mean_rows: dict[Triple, Row] = {}
        max_t_p: Float | None = None
        sums = make_sums(pieces, mean_triples, centres, has_terms, dead_zone=settings.tie)
        for triple, own in sums.values.items():
            if not own.n_cases:
                raise _no_pairs(triple)
            own.notes = unpaired_notes(own.n_unpaired)
        sums.look_again(
            wants_pairs=[
                triple
                for triple in mean_triples
                if sums.counted[triple].is_known and _few_differing(sums.counted[triple]) is not None
                if sums.values[triple].is_known and _is_rare(sums.values[triple])
            ]
        )
        if mean_triples:
            paired, counted = (
                [by_triple[t] for t in mean_triples] for by_triple in (sums.values, sums.counted)
            )
            few = [_few_differing(d) for d in counted]
            units = SummedRows(sums, mean_triples)
            mean_rows, max_t_p = _rows_of_pairs(
                mean_triples, (paired, counted, paired), few, units, ranges=ranges, options=settings
            )
        rows = []
        for model, base, metric in triples:
            row = mean_rows.get((model, base, metric))
            if row is None:
                sides = jackknives[model][metric], jackknives[base][metric]
                row = _jackknife_row((model, base, metric), *sides, [], layout="", options=settings)
            rows.append(row)
        adjusted = _adjust_family(rows, mean_triples, max_t_p, settings.correction)
        return _make_table(rows, adjusted, len(pairs), (sums.missing, sums.n_cases), settings)


def _make_table(
    rows: Sequence[Row],
    adjusted: Float,
    n_pairs: int,
    missing: tuple[Mapping[str, Any], int],
    settings: Options,
) -> ComparisonTable:
    """The table of rows and their adjusted p-values; `missing`: what each model lacks, of how many."""
    equivalence_p = _adjusted_margin_p([row.equivalence for row in rows], settings.correction)
    non_inferiority_p = _adjusted_margin_p([row.non_inferiority for row in rows], settings.correction)
    notes = note_gaps(*missing)
    final_rows = tuple(
        with_verdict(row, float(p), (float(q), float(r)), settings)
        for row, p, q, r in zip(rows, adjusted, equivalence_p, non_inferiority_p, strict=True)
    )
    family = (
        f"{plural(len(rows), 'comparison')} ({plural(n_pairs, 'pair')} of models x "
        f"{plural(len(rows) // n_pairs, 'metric')}), {settings.correction}"
    )
    return ComparisonTable(final_rows, family, settings, missing[0], notes)


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
    ranges: Mapping[str, Bounds],
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
    counted_pairs = paired
    if counted is not None:
        counted_tables = _align_runs(
            _runs_by_model(counted), layout, list(dict.fromkeys(metric for *_, metric in triples))
        )
        if not np.array_equal(counted_tables.ids, aligned.ids):
            raise InputError(
                f"counted= holds other cases ({len(counted_tables.ids):,}) than the tables that are compared "
                f"({len(aligned.ids):,}).",
                hint="Wins and losses are counted on the same cases: pass tables with the same ids.",
            )
        counted_pairs = [_pair_models(counted_tables, triple, keys) for triple in triples]
    few = [_few_differing(d) for d in counted_pairs]
    values = list(paired)
    adjusted: dict[Triple, AdjustedSides] = {}
    if adjustment is not None:
        # All rows share their draws, so the adjusted values take the places of the units they belong to.
        totals, weights = units.totals.copy(), units.weights.copy()
        for place, triple in enumerate(triples):
            if few[place] is None:
                present = units.weights[place] != 0
                sides = adjusted[triple] = adjustment.sides(paired[place], present)
                values[place] = sides.differences
                totals[place], weights[place] = 0.0, present
                totals[place, present] = sides.differences.values
        units = Units(units.keys, totals, weights)
    rows, max_t_p = _rows_of_pairs(
        triples, (paired, counted_pairs, values), few, units, ranges=ranges, options=options
    )
    for triple, sides in adjusted.items():
        rows[triple] = _with_adjustment(rows[triple], sides, options)
    return rows, max_t_p


def _rows_of_pairs(
    triples: Sequence[Triple],
    pairs: tuple[Sequence[Paired], Sequence[Paired], Sequence[Paired]],
    few: Sequence[int | None],
    units: Units | SummedRows,
    *,
    ranges: Mapping[str, Bounds],
    options: Options,
) -> tuple[dict[Triple, Row], Float | None]:
    """The rows, and their p-values by max-T if it is the correction.

    `pairs` are those of the values, those in which wins and losses are counted, and those that are tested,
    which are also the rows of `units`.
    """
    paired, counted_pairs, tested = pairs
    tests, intervals, max_t_p = _family_test(units, tested, np.array([n is not None for n in few]), options)
    rows: dict[Triple, Row] = {}
    errors = units.small_sample_errors().tolist()
    parts = zip(triples, paired, counted_pairs, few, tests, intervals, errors, strict=True)
    for triple, differences, counted, n_differing, test, interval, error in parts:
        model, baseline, metric = triple
        sides = differences.side_estimates()
        n_above, ties, n_below = counted.wins_ties_losses(options.tie)
        wins, losses = (n_below, n_above) if metric in options.lower_is_better else (n_above, n_below)
        lift, lift_interval = _relative_lift(sides, options.confidence)
        notes = differences.notes
        if not sides.second > 0:
            notes = (*notes, f"{metric}: no lift, {baseline} is not above 0")
        row = Row(
            model,
            baseline,
            metric,
            value=sides.first,
            baseline_value=sides.second,
            difference=sides.first - sides.second,
            interval=interval,
            relative=lift,
            relative_interval=lift_interval,
            statistic=test.statistic,
            p_value=test.p_value,
            adjusted_p=math.nan,
            effect=EFFECTS[options.effect](differences, confidence=options.confidence),
            wins=wins,
            ties=ties,
            losses=losses,
            n_cases=differences.n_cases,
            n_units=n_above + ties + n_below,
            test=test.method,
            standard_error=error,
            notes=notes + tuple(note for note in test.notes if note not in notes),
        )
        if not (options.margin is None and options.no_worse_than is None and options.rope is None):
            estimate = difference_estimate(differences, options.confidence)
            row = _with_margin_tests(row, estimate, differences.spread().df, options)
        if n_differing is not None or row.equivalence is not None or row.non_inferiority is not None:
            row = _allow_for_unseen(row, differences, n_differing, ranges.get(metric), options)
        if n_differing is None and row.wins + row.losses < FEW:
            words = differing_words(row.wins + row.losses, row.n_units)
            row = replace(row, notes=(*row.notes, f"{metric}: {words}, few for a test of their mean"))
        rows[triple] = row
    return rows, max_t_p


def _few_differing(d: Paired) -> int | None:
    """How many units differ, if most are alike and fewer than 20 are not; None if the mean is normal enough.

    Zeros and ones need no majority of ties, as their differences are -1, 0 or 1.
    """
    n_differing, n_uncommon = d.count_differing()
    if min(n_differing, n_uncommon) >= FEW:
        return None
    means, _, counts = d.levels()
    n = len(means) if counts is None else counts.sum()
    return n_differing if 2 * n_uncommon < n or np.isin(means, (-1.0, 0.0, 1.0)).all() else None


def _is_rare(d: Paired) -> bool:
    """Whether fewer than 20 units differ, or have another than the common difference."""
    return min(d.count_differing()) < FEW


def _allow_for_unseen(
    row: Row, d: Paired, n_differing: int | None, bounds: Bounds | None, options: Options
) -> Row:
    """The row with bounds that hold where few units differ.

    `bounds` is the range of a case's values. If it is not told, values of 0 and 1 have that range, and others
    are taken to lie between those seen, which a note says.
    """
    notes = row.notes
    interval = lift = Interval(-math.inf, math.inf, options.confidence, METHOD)
    unknown = Estimate(row.difference, math.nan, interval, row.n_units)
    if n_differing is not None and not _is_rare(d):
        # Values of the delta method all move if one unit differs.
        return replace(
            _with_margin_tests(row, unknown, row.n_units - 1, options),
            interval=interval,
            relative_interval=row.relative_interval if math.isnan(row.relative) else lift,
            p_value=math.nan,
            n_differing=n_differing,
            notes=(*notes, f"{row.metric}: no interval, it is not a plain mean over users"),
        )
    if bounds is None:
        seen = d.values_seen()
        bounds = (float(seen.min()), float(seen.max()))
        if np.isin(seen, (0.0, 1.0)).all():
            bounds = (0.0, 1.0)
        elif bounds[0] == bounds[1]:
            bounds = (-math.inf, math.inf)
        elif n_differing is not None:
            words = f"the interval takes all values to lie between {bounds[0]:.4g} and {bounds[1]:.4g}"
            notes = (*notes, f"{row.metric}: {words}, as those seen do")
    reach = bounds[1] - bounds[0]
    equivalent, no_worse = (
        None if result is None else allow_for_unseen(result, d, (-reach, reach), options.confidence)
        for result in (row.equivalence, row.non_inferiority)
    )
    row = replace(row, equivalence=equivalent, non_inferiority=no_worse)
    if n_differing is None:
        return row
    p_value, test, needed = row.p_value, row.test, None
    if math.isinf(reach):
        notes = (*notes, f"{row.metric}: no interval, the range of its values is not known")
    else:
        means, weights, counts = d.levels()
        first, second = d.pair_levels()
        interval = mean_bounds(means, -reach, reach, options.confidence, weights=weights, counts=counts)
        lift = lift_bounds(
            first.means, second.means, *bounds, options.confidence, weights=weights, counts=first.counts
        )
        if 0.0 in interval:
            alpha = 1.0 - options.confidence
            needed = units_needed(means, 0.0, -reach, reach, alpha=alpha, weights=weights, counts=counts)
        if n_differing >= FEW and options.test not in RANK_TESTS:
            p_value = mean_p(means, 0.0, -reach, reach, weights=weights, counts=counts)
            test = METHOD
    bayes = row.bayes
    if options.rope is not None:
        bayes = bayes_from_estimate(unknown, row.n_units - 1, options.rope, confidence=options.confidence)
    if options.adjusts:
        notes = (*notes, f"{row.metric}: not adjusted, too few users differ")
    return replace(
        row,
        interval=interval,
        relative_interval=row.relative_interval if math.isnan(row.relative) else lift,
        p_value=p_value,
        test=test,
        bayes=bayes,
        n_differing=n_differing,
        n_needed=needed,
        notes=notes,
    )


def _relative_lift(sides: Sides, confidence: float, spent: int = 0) -> tuple[float, Interval]:
    """Lift of the first side over the second, with the covariance of the pairs in its interval."""
    return fieller_lift(sides.first, sides.second, sides.variances, sides.df - spent, confidence)


def _with_adjustment(row: Row, adjusted: AdjustedSides, options: Options) -> Row:
    """The row with adjusted values, difference and lift; effect, wins and losses stay unadjusted."""
    sides = side_estimates(adjusted.sides)
    value, baseline_value = sides.first, sides.second
    spent, n = adjusted.differences.spent, adjusted.sides.totals.shape[1]
    lift, lift_interval = _relative_lift(sides, options.confidence, spent)
    estimate = Estimate(value - baseline_value, row.standard_error, row.interval, n)
    return replace(
        _with_margin_tests(row, estimate, n - 1 - spent, options),
        value=value,
        baseline_value=baseline_value,
        difference=value - baseline_value,
        relative=lift,
        relative_interval=lift_interval,
        test=f"{row.test.replace('exact', 'all flips')}, adjusted",
        variance_saved=adjusted.variance_saved,
    )


def _with_margin_tests(row: Row, estimate: Estimate, df: float, options: Options) -> Row:
    """The row with equivalence and non-inferiority of an estimate and, for a mean, its posterior."""
    confidence, lower_is_better = options.confidence, row.metric in options.lower_is_better
    equivalent = no_worse = bayes = None
    if options.margin is not None:
        equivalent = equivalence_from_estimate(estimate, df, options.margin, confidence=confidence)
    if options.no_worse_than is not None:
        margin = (-math.inf, options.no_worse_than) if lower_is_better else (-options.no_worse_than, math.inf)
        no_worse = equivalence_from_estimate(estimate, df, margin, confidence=confidence)
    if options.rope is not None and row.effect.name:
        bayes = bayes_from_estimate(estimate, df, options.rope, confidence=confidence)
        if lower_is_better:
            bayes = replace(bayes, p_worse=bayes.p_better, p_better=bayes.p_worse)
    return replace(row, equivalence=equivalent, non_inferiority=no_worse, bayes=bayes)


def _family_test(
    units: Units | SummedRows, paired: Sequence[Paired], few: Bool, options: Options
) -> tuple[list[TestResult], list[Interval], Float | None]:
    """Test every row of `units` with one set of draws; `paired` holds the same rows case by case.

    Rows with too few differences for a bootstrap, and those of the t-test in which `few` units differ, are
    tested by sign flips and have the t interval. Returns the tests, the intervals of the differences, and the
    p-values by max-T if it is the correction (NaN: the row is not part of the maximum).
    """
    seed = seed_from_rng(options.rng)
    resampler = Resampler(units.keys, options.n_resamples, seed, options.scheme, progress=options.progress)
    method, uses_max_t = options.interval_method, options.correction == "max-t"
    replicates = None
    if uses_max_t or options.test in _BOOTSTRAPS or method in _BOOTSTRAPS:
        replicates = (
            units.replicate(resampler) if isinstance(units, SummedRows) else replicate(units, resampler)
        )
    sparse = units.few_differ(BOOTSTRAP_FROM)
    few = few & (options.test == "t") & (units.n_differing() < FEW)
    tests = _single_tests(paired, few, options)
    by_flips = few | (options.test == "permutation")
    if replicates is not None and options.test in _BOOTSTRAPS:
        by_flips = sparse
        label = f"{options.test} bootstrap ({resampler.n_resamples} {replicates.scheme} draws)"
        p_values = replicates.p_values(options.test).tolist()
        tests = [replace(test, method=label, p_value=p) for test, p in zip(tests, p_values, strict=True)]
    if by_flips.any():
        rows = units.take_rows(by_flips)
        flips = flip_tests(rows, replace(resampler, keys=rows.keys))
        for j, (p, label) in zip(np.flatnonzero(by_flips).tolist(), flips, strict=True):
            tests[j] = replace(tests[j], method=label, p_value=p)
    df = units.degrees_of_freedom() - np.array([d.spent for d in paired])
    if method == "normal":
        df = np.full(len(paired), np.inf)
    columns = np.stack([units.estimates(), units.small_sample_errors(), df], axis=1)
    intervals = [
        replace(
            t_interval(value, error, row_df, options.confidence),
            method="t" if method in _BOOTSTRAPS else method,
        )
        for value, error, row_df in columns.tolist()
    ]
    if replicates is not None and method in _BOOTSTRAPS:
        limits = replicates.limits(method, options.confidence).tolist()
        for j in np.flatnonzero(~sparse).tolist():
            low, high = limits[j]
            intervals[j] = Interval(low, high, options.confidence, method)
    if {options.test, method} & set(_BOOTSTRAPS):
        for j in np.flatnonzero(sparse).tolist():
            tests[j] = replace(tests[j], notes=(*tests[j].notes, too_sparse_note(units, j)))
    if replicates is None or not uses_max_t:
        return tests, intervals, None
    observed = np.where(fit_for_max_t(units), replicates.observed_t(), np.nan)
    return tests, intervals, step_down(observed, replicates.t_values())[1]


def _single_tests(paired: Sequence[Paired], few: Bool, options: Options) -> list[TestResult]:
    """Tests computed row by row; for a resampled test, only its t statistic."""
    if options.test == "wilcoxon":
        return [wilcoxon(d) for d in paired]  # type: ignore[arg-type] # sums have no ranks, and do not get here
    if options.test == "sign":
        return [sign_test(d, dead_zone=options.tie) for d in paired]
    if options.test in _BOOTSTRAPS:
        return [_statistic_only(d) for d in paired]
    return [
        _statistic_only(d) if is_few else paired_t(d, confidence=options.confidence)
        for d, is_few in zip(paired, few, strict=True)
    ]


def _statistic_only(d: Paired) -> TestResult:
    """The t statistic without the caution of skewness, as the t distribution is not used."""
    spread = d.spread()
    mean, _, t = t_statistic(spread)
    notes = d.notes + spread_notes(spread) + tail_notes(spread)
    return TestResult("", mean, t, math.nan, spread.n, notes=notes)


def _with_run_spread(
    row: Row,
    model: Sequence[PerCase],
    baseline: Sequence[PerCase],
    *,
    layout: str,
    adjustment: Adjustment | None,
    options: Options,
) -> Row:
    """The row with test and interval over the runs, adjusted if there is an adjustment."""
    over_runs = partial(
        compare_runs,
        model,
        baseline,
        row.metric,
        layout=layout,
        test_over_train=options.test_over_train,
        confidence=options.confidence,
    )
    unadjusted, uneven = over_runs(), len(model) != len(baseline)
    if row.n_differing is not None and (row.n_differing < FEW or unadjusted.standard_error == 0):
        # The spread between runs adds to what was not seen, and no bound is known for both.
        unbounded = Interval(-math.inf, math.inf, options.confidence, "none")
        unknown = replace(unadjusted, standard_error=math.nan, interval=unbounded, p_value=math.nan)
        row = replace(_with_runs(row, unknown, options, layout=layout, uneven=uneven), n_needed=None)
        return replace(row, relative_interval=unbounded)
    row = replace(row, n_differing=None)
    if adjustment is None:
        return _with_runs(row, unadjusted, options, layout=layout, uneven=uneven)
    adjusted = over_runs(adjustment=adjustment)
    saved = variance_saved_share(adjusted.standard_error, unadjusted.standard_error)
    row = _with_runs(row, adjusted, options, layout=layout, uneven=uneven)
    return replace(row, variance_saved=saved, test=f"{row.test}, adjusted")


def _jackknife_row(
    triple: Triple,
    model: Sequence[Jackknife],
    baseline: Sequence[Jackknife],
    run_ids: Sequence[Array],
    *,
    layout: str,
    options: Options,
) -> Row:
    """One model against the baseline, from the metric's values without each group of users.

    `run_ids` holds the case ids of each run of the model.
    """
    n_runs = max(len(model), len(baseline))
    differences = [model[r % len(model)] - baseline[r % len(baseline)] for r in range(n_runs)]
    model_mean, baseline_mean = mean_jackknife(model), mean_jackknife(baseline)
    mean_difference = mean_jackknife(differences)
    estimate = mean_difference.estimate(options.confidence)
    t = t_ratio(estimate.value, estimate.standard_error)
    model_variance, baseline_variance = model_mean.variance(), baseline_mean.variance()
    covariance = (model_variance + baseline_variance - (model_mean - baseline_mean).variance()) / 2.0
    lift, lift_interval = fieller_lift(
        model_mean.value,
        baseline_mean.value,
        (model_variance, covariance, baseline_variance),
        model_mean.df,
        options.confidence,
    )
    notes = tuple(f"{triple[2]}: {note}" for note in estimate.notes)
    if options.adjusts:
        notes += (f"{triple[2]}: not adjusted, it is not a mean over users",)
    row = Row(
        *triple,
        value=model_mean.value,
        baseline_value=baseline_mean.value,
        difference=estimate.value,
        interval=estimate.interval,
        relative=lift,
        relative_interval=lift_interval,
        statistic=t,
        p_value=t_tail(t, mean_difference.df),
        adjusted_p=math.nan,
        effect=Effect("", math.nan, Interval(math.nan, math.nan, options.confidence, "none"), "undefined", 0),
        wins=0,
        ties=0,
        losses=0,
        n_cases=int(model_mean.sizes.sum()),
        n_units=len(model_mean.without),
        test=f"jackknife t ({len(model_mean.without)} groups)",
        standard_error=estimate.standard_error,
        notes=notes,
    )
    row = _with_margin_tests(row, estimate, mean_difference.df, options)
    if not layout:
        return row
    per_run = np.array([difference.value for difference in differences])
    baseline_per_run = np.array([baseline[r % len(baseline)].value for r in range(n_runs)])
    if layout == "folds":
        ids = [run_ids[r % len(run_ids)] for r in range(n_runs)]
        runs = folds_of_users(
            per_run.tolist(), baseline_per_run.tolist(), ids, options.test_over_train, options.confidence
        )
    else:
        # The variance between runs is added to that between users; their overlap counts twice, which is safe.
        shared = covariance - baseline_variance
        by_users = np.array([[mean_difference.variance(), shared], [shared, baseline_variance]])
        by_runs = np.cov(per_run, baseline_per_run) / n_runs
        runs = run_result(
            "users and runs added",
            per_run,
            [(by_users, mean_difference.df), (by_runs, n_runs - 1.0)],
            variances=(float(by_users[0, 0]), float(by_runs[0, 0])),
            n_users=row.n_cases,
            confidence=options.confidence,
        )
    return _with_runs(row, runs, options, layout=layout, uneven=len(model) != len(baseline))


def _with_runs(row: Row, runs: RunsResult, options: Options, *, layout: str, uneven: bool) -> Row:
    """The row with test and interval over several runs, whose spread is part of the error.

    Notes say which options several runs ignore; `uneven`: the two sides differ in their number of runs.
    """
    notes = runs.notes
    changed = {"test": options.test != "t", "interval": options.interval not in (None, "t")}
    for name in (name for name, is_changed in changed.items() if is_changed):
        notes += (
            f"{name}={getattr(options, name)!r} is for users alone; several runs use a t-test over both",
        )
    if layout == "seeds" and options.test_over_train is not None:
        notes += ("test_over_train is for folds; these runs share their users",)
    if layout == "seeds" and uneven:
        notes += ("one side has a single run, so its spread between runs is unknown and not counted",)
    runs = replace(runs, notes=notes)
    if row.metric in options.lower_is_better:
        runs = replace(runs, better_in=sum(gap < 0 for gap in runs.per_run))
    estimate = Estimate(runs.difference, runs.standard_error, runs.interval, runs.n_users)
    row = _with_margin_tests(row, estimate, runs.df, options)
    shared = runs.baseline_covariance + runs.baseline_variance
    variance = runs.standard_error**2 + runs.baseline_covariance + shared
    lift, lift_interval = fieller_lift(
        row.baseline_value + runs.difference,
        row.baseline_value,
        (variance, shared, runs.baseline_variance),
        runs.df,
        options.confidence,
    )
    return replace(
        row,
        difference=runs.difference,
        interval=runs.interval,
        relative=lift,
        relative_interval=lift_interval,
        statistic=runs.difference / runs.standard_error if runs.standard_error > 0 else math.nan,
        p_value=runs.p_value,
        standard_error=runs.standard_error,
        test=runs.method,
        runs=runs,
        notes=row.notes + runs.notes,
    )


def _adjusted_margin_p(results: Sequence[EquivalenceResult | None], correction: str) -> Float:
    """Corrected p-values of equivalence over the same family; max-T falls back to Holm."""
    if results[0] is None:
        return np.ones(len(results))
    p = np.array([1.0 if result is None else result.p_value for result in results])
    return adjust(p, "holm" if correction == "max-t" else correction)


def _adjust_family(
    rows: Sequence[Row], in_draws: Sequence[Triple], max_t_p: Float | None, correction: str
) -> Float:
    """P-values adjusted over the family.

    For max-T, `max_t_p` holds the adjusted p-values of the rows `in_draws`; `join_parts` adds the rows that
    are not part of the maximum (metrics of the catalogue, and rows in which few units differ).
    """
    p_values = np.array([row.p_value for row in rows])
    if correction != "max-t":
        return adjust(p_values, correction)
    drawn = {} if max_t_p is None else dict(zip(in_draws, max_t_p.tolist(), strict=True))
    in_draws_p = np.array([drawn.get((row.model, row.baseline, row.metric), math.nan) for row in rows])
    adjusted = join_parts(in_draws_p, p_values, ~np.isnan(in_draws_p) | np.isnan(p_values))
    # The draws may give a slightly smaller p than the chosen test; a correction must not lower p.
    at_least_raw: Float = np.maximum(adjusted, p_values)
    return at_least_raw


def _model_pairs(names: list[str], baseline: Any) -> list[tuple[str, str]]:
    if len(names) < 2:
        raise InputError(f"a comparison needs at least two models, got {names}.")
    if baseline is None:
        return [(second, first) for first, second in itertools.combinations(names, 2)]
    try:
        is_known = baseline in dict.fromkeys(names)
    except TypeError:  # nothing that can be a name
        is_known = False
    if not is_known:
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


def _no_pairs(triple: Triple) -> InputError:
    model, baseline, metric = triple
    return InputError(f"{model!r} and {baseline!r} have no case in common on {metric!r}.", column=metric)


def _pair_models(aligned: Aligned, triple: Triple, keys: Words) -> Differences:
    model, baseline, metric = triple
    values, baseline_values = aligned.tables[model][metric], aligned.tables[baseline][metric]
    both, n_unpaired = aligned.paired(*triple)
    if not both.any():
        raise _no_pairs(triple)
    notes = unpaired_notes(n_unpaired)
    clusters = None if aligned.clusters is None else aligned.clusters[both]
    weights = None if aligned.weights is None else aligned.weights[both]
    return Differences(values[both], baseline_values[both], clusters, keys[both], weights, notes)
