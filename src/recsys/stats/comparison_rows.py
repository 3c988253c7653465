"""Build one row of a comparison: its numbers from paired values, then its test, its runs and its verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from recsys.stats.adjustment import AdjustedSides
from recsys.stats.alignment import Differences, Units, collapse
from recsys.stats.comparison_options import EFFECTS, Options, non_inferiority_margin
from recsys.stats.comparison_table import Row, Triple
from recsys.stats.corrections import adjust
from recsys.stats.equivalence_tests import (
    BayesResult,
    EquivalenceResult,
    bayes_from_estimate,
    bayes_paired,
    equivalence,
    equivalence_from_estimate,
)
from recsys.stats.family_tests import FamilyTest
from recsys.stats.inference_results import Estimate, Interval, fieller_lift
from recsys.stats.runs import RunsResult
from recsys.stats.tests import count_wins_and_losses
from recsys.stats.verdicts import format_difference, format_effect, format_p, verdict
from recsys.types import Float


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


def with_test(row: Row, result: FamilyTest, j: int) -> Row:
    """The row with its result `j` of the test of the whole family."""
    low, high = (float(limit) for limit in result.limits[j])
    notes = row.notes + tuple(note for note in result.notes[j] if note not in row.notes)
    return replace(
        row,
        interval=replace(row.interval, low=low, high=high, method=result.interval_method),
        statistic=float(result.statistics[j]),
        p_value=float(result.p_values[j]),
        test=result.labels[j],
        standard_error=float(result.errors[j]),
        notes=notes,
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
    equivalent, no_worse = (p < alpha for p in margin_p)
    lower_is_better = row.metric in options.lower_is_better
    parts = [format_difference(row.difference, row.interval, row.relative, row.relative_interval)]
    if row.effect.name:
        parts.append(format_effect(row.effect))
    parts.append(format_p(adjusted_p, options.correction))
    if row.runs is not None:
        parts.append(row.runs.says)
    word = verdict(
        row.difference,
        adjusted_p,
        alpha,
        lower_is_better=lower_is_better,
        equivalent=equivalent,
        no_worse=no_worse,
    )
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
