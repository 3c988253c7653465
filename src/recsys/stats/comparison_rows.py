"""Rows of a comparison: numbers from paired values or a jackknife, then test, adjustment, runs and verdict.

A metric that is not a mean over users has no value per user, so its rows come from the jackknife over groups
of users and have no wins, losses or effect size; they belong to the same family and correction as all others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from recsys.errors import InputError
from recsys.stats.comparison_table import EFFECTS, Options, Row, Triple, non_inferiority_margin
from recsys.stats.effects import Effect
from recsys.stats.equivalence_tests import (
    BayesResult,
    EquivalenceResult,
    bayes_from_estimate,
    bayes_paired,
    equivalence,
    equivalence_from_estimate,
)
from recsys.stats.group_jackknife import Jackknife
from recsys.stats.inference_results import (
    Estimate,
    Interval,
    fieller_lift,
    format_difference,
    format_p,
    t_ratio,
    t_tail,
)
from recsys.stats.multiple_comparisons import adjust
from recsys.stats.paired_tests import count_wins_and_losses
from recsys.stats.pairing import Differences, align
from recsys.stats.resampling import Units, collapse, unit_keys
from recsys.stats.runs import RunsResult, folds, run_result, seeds
from recsys.stats.variance_reduction import AdjustedSides, Adjustment
from recsys.types import Array, Float, PerCase


def mean_row(triple: Triple, d: Differences, counted: Differences, options: Options) -> Row:
    """A row without its test; wins and losses are counted on `counted`."""
    sides = model_and_baseline_units(d)
    value, baseline_value = (float(mean) for mean in sides.estimates())
    unit_differences = counted.unit_means()
    n_above, n_below = count_wins_and_losses(unit_differences, options.tie)
    wins, losses = (n_below, n_above) if triple[2] in options.lower_is_better else (n_above, n_below)
    lift, lift_interval = _relative_lift(sides, options.confidence)
    return Row(
        *triple,
        value=value,
        baseline_value=baseline_value,
        difference=value - baseline_value,
        interval=Interval(math.nan, math.nan, options.confidence, options.interval_method),
        relative=lift,
        relative_interval=lift_interval,
        statistic=math.nan,
        p_value=math.nan,
        adjusted_p=math.nan,
        effect=EFFECTS[options.effect](d, confidence=options.confidence),
        wins=wins,
        ties=len(unit_differences) - n_above - n_below,
        losses=losses,
        n_cases=len(d.first),
        n_units=len(unit_differences),
        test=options.test,
        equivalence=None
        if options.margin is None
        else equivalence(d, options.margin, confidence=options.confidence),
        non_inferiority=None
        if options.no_worse_than is None
        else equivalence(d, non_inferiority_margin(options, triple[2]), confidence=options.confidence),
        bayes=None
        if options.rope is None
        else _orient_bayes(bayes_paired(d, options.rope, confidence=options.confidence), triple[2], options),
        notes=d.notes
        + (() if baseline_value > 0 else (f"{triple[2]}: no lift, {triple[1]} is not above 0",)),
    )


def model_and_baseline_units(d: Differences) -> Units:
    """Both sides over the same units: row 0 is the model, row 1 the baseline."""
    return collapse(np.stack([d.first, d.second]), d.clusters, keys=d.keys, weights=d.weights)


def _relative_lift(sides: Units, confidence: float, spent: int = 0) -> tuple[float, Interval]:
    """Lift of the first row over the second, with the covariance of the pairs in its interval."""
    value, baseline_value = (float(mean) for mean in sides.estimates())
    model_residuals, baseline_residuals = sides.residuals() / sides.weights.sum(axis=1)[:, None]
    n = int(sides.n_units()[0])
    scale = n / (n - 1) if n > 1 else math.nan
    products = (
        model_residuals @ model_residuals,
        model_residuals @ baseline_residuals,
        baseline_residuals @ baseline_residuals,
    )
    variance, covariance, base_variance = (scale * float(product) for product in products)
    return fieller_lift(
        value, baseline_value, (variance, covariance, base_variance), n - 1 - spent, confidence
    )


def with_adjustment(row: Row, adjusted: AdjustedSides, options: Options) -> Row:
    """The row with adjusted values, difference and lift; effect, wins and losses stay unadjusted."""
    value, baseline_value = (float(mean) for mean in adjusted.sides.estimates())
    spent, n = adjusted.differences.spent, adjusted.sides.totals.shape[1]
    lift, lift_interval = _relative_lift(adjusted.sides, options.confidence, spent)
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


def _orient_bayes(result: BayesResult, metric: str, options: Options) -> BayesResult:
    """Swap better and worse for a metric where lower is better."""
    if metric not in options.lower_is_better:
        return result
    return replace(result, p_worse=result.p_better, p_better=result.p_worse)


def _with_margin_tests(row: Row, estimate: Estimate, df: float, options: Options) -> Row:
    """Equivalence, non-inferiority and Bayes, if requested, from an estimate over runs or an adjusted one."""
    confidence = options.confidence
    equivalent, no_worse, bayes = row.equivalence, row.non_inferiority, row.bayes
    if equivalent is not None:
        equivalent = equivalence_from_estimate(estimate, df, equivalent.margin, confidence=confidence)
    if no_worse is not None:
        no_worse = equivalence_from_estimate(estimate, df, no_worse.margin, confidence=confidence)
    if bayes is not None:
        bayes = _orient_bayes(
            bayes_from_estimate(estimate, df, bayes.rope, confidence=confidence), row.metric, options
        )
    return replace(row, equivalence=equivalent, non_inferiority=no_worse, bayes=bayes)


def jackknife_row(
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
    model_mean, baseline_mean = _mean_jackknife(model), _mean_jackknife(baseline)
    mean_difference = _mean_jackknife(differences)
    estimate = mean_difference.estimate(options.confidence)
    t = t_ratio(estimate.value, estimate.standard_error)
    lift, lift_interval = _jackknife_lift(model_mean, baseline_mean, options.confidence)
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
        equivalence=None
        if options.margin is None
        else equivalence_from_estimate(
            estimate, mean_difference.df, options.margin, confidence=options.confidence
        ),
        non_inferiority=None
        if options.no_worse_than is None
        else equivalence_from_estimate(
            estimate,
            mean_difference.df,
            non_inferiority_margin(options, triple[2]),
            confidence=options.confidence,
        ),
        notes=(estimate.notes[0], *(f"{triple[2]}: {note}" for note in estimate.notes[1:])),
    )
    if not layout:
        return row
    per_run = np.array([difference.value for difference in differences])
    ids = [run_ids[r % len(run_ids)] for r in range(n_runs)]
    if layout == "folds":
        runs = _folds_result(per_run.tolist(), ids, options)
    else:
        runs = _add_run_variance(per_run, mean_difference, row, options)
    notes = runs.notes + _ignored_option_notes(len(model), len(baseline), layout, options)
    return replace(row, runs=replace(runs, notes=notes))


def _jackknife_lift(model: Jackknife, baseline: Jackknife, confidence: float) -> tuple[float, Interval]:
    variance, baseline_variance, difference_variance = (
        model.variance(),
        baseline.variance(),
        (model - baseline).variance(),
    )
    covariance = (variance + baseline_variance - difference_variance) / 2.0
    return fieller_lift(
        model.value, baseline.value, (variance, covariance, baseline_variance), model.df, confidence
    )


def _mean_jackknife(runs: Sequence[Jackknife]) -> Jackknife:
    if not runs:
        raise InputError("a model has no run at all.")
    total = runs[0]
    for run in runs[1:]:
        total -= run.times(-1.0)
    return total if len(runs) == 1 else total.times(1.0 / len(runs))


def _add_run_variance(per_run: Float, difference: Jackknife, row: Row, options: Options) -> RunsResult:
    """Add the variance between runs to that between users; their overlap is counted twice, which is safe."""
    users_variance, runs_variance = difference.variance(), float(per_run.var(ddof=1)) / len(per_run)
    satterthwaite = users_variance**2 / difference.df + runs_variance**2 / (len(per_run) - 1)
    return run_result(
        "users and runs added",
        per_run,
        variances=(users_variance, runs_variance),
        error=math.sqrt(users_variance + runs_variance),
        df=(users_variance + runs_variance) ** 2 / satterthwaite
        if satterthwaite > 0
        else min(difference.df, len(per_run) - 1.0),
        n_users=row.n_cases,
        confidence=options.confidence,
    )


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
        means = []
        for a, b in pairs:
            aligned = align({"a": a, "b": b}, [metric])
            differences = aligned.differences("a", "b", metric)
            if np.isnan(differences).all():
                raise InputError(
                    f"a run of the two sides has no case in common on {metric!r}.", column=metric
                )
            fold = collapse(differences[None, :], keys=unit_keys(aligned.ids), weights=aligned.weights)
            means.append(float(fold.estimates()[0]))
        result = _folds_result(means, [a.ids for a, _ in pairs], options)
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
    notes = _ignored_option_notes(len(model), len(baseline), layout, options)
    return replace(result, notes=result.notes + notes)


def _ignored_option_notes(model: int, baseline: int, layout: str, options: Options) -> tuple[str, ...]:
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


def _folds_result(per_fold: Sequence[float], ids: Sequence[Array], options: Options) -> RunsResult:
    """The difference over folds, from the difference and the test ids of each fold.

    Unless options.test_over_train is given, n_test / n_train follows from the ids: users who are not tested
    in a fold train it. Repeated folds test the same users again.
    """
    n_users, mean_n_test = len(np.unique(np.concatenate(ids))), sum(map(len, ids)) / len(ids)
    ratio = options.test_over_train
    if ratio is None and mean_n_test < n_users:
        ratio = mean_n_test / (n_users - mean_n_test)
    return folds(per_fold, test_over_train=ratio, confidence=options.confidence, n_users=n_users)


def with_runs(row: Row, runs: RunsResult, options: Options) -> Row:
    """The row with test and interval over several runs, whose spread is part of the error."""
    if row.metric in options.lower_is_better:
        runs = replace(runs, better_in=sum(gap < 0 for gap in runs.per_run))
    estimate = Estimate(runs.difference, runs.standard_error, runs.interval, runs.n_users)
    row = _with_margin_tests(row, estimate, runs.df, options)
    baseline_value = row.baseline_value
    lift_interval = Interval(math.nan, math.nan, runs.interval.confidence, "runs")
    if baseline_value > 0:
        lift_interval = replace(
            lift_interval, low=runs.interval.low / baseline_value, high=runs.interval.high / baseline_value
        )
    return replace(
        row,
        difference=runs.difference,
        interval=runs.interval,
        relative=runs.difference / baseline_value if baseline_value > 0 else math.nan,
        relative_interval=lift_interval,
        statistic=runs.difference / runs.standard_error if runs.standard_error > 0 else math.nan,
        p_value=runs.p_value,
        standard_error=runs.standard_error,
        test=runs.method,
        runs=runs,
        notes=row.notes + runs.notes,
    )


def adjusted_margin_p(results: Sequence[EquivalenceResult | None], correction: str) -> Float:
    """Corrected p-values of equivalence over the same family; max-T falls back to Holm."""
    if results[0] is None:
        return np.ones(len(results))
    p = np.array([1.0 if result is None else result.p_value for result in results])
    return adjust(p, "holm" if correction == "max-t" else correction)


def with_verdict(row: Row, adjusted_p: float, margin_p: tuple[float, float], options: Options) -> Row:
    """The row with its adjusted p and its verdict; `margin_p`: p of equivalence, p of non-inferiority."""
    alpha = 1.0 - options.confidence
    word = "no clear difference"
    if adjusted_p < alpha and row.difference != 0:
        is_better = (row.difference > 0) != (row.metric in options.lower_is_better)
        word = "better" if is_better else "worse"
    elif margin_p[0] < alpha:
        word = "equivalent"
    elif margin_p[1] < alpha:
        word = "not worse"
    parts = [format_difference(row.difference, row.interval, row.relative, row.relative_interval)]
    if row.effect.name:
        parts.append(f"{row.effect.name} {row.effect.value:.2f} {row.effect.label}")
    parts.append(format_p(adjusted_p, options.correction))
    if row.runs is not None:
        parts.append(row.runs.says)
    if word == "equivalent":
        parts.append(f"within {options.margin:g} by {format_p(margin_p[0], options.correction)}")
    if word == "not worse":
        parts.append(f"by less than {options.no_worse_than:g}, {format_p(margin_p[1], options.correction)}")
    text = f"{word}: {', '.join(parts)}"
    if row.n_units == row.ties and options.tie == 0:
        text = f"identical: all {row.n_units} units have the same value"
    elif not row.effect.name and row.difference == 0 and row.standard_error == 0:
        text = "identical: the value is the same whoever is left out"
    return replace(row, adjusted_p=adjusted_p, verdict=text)
