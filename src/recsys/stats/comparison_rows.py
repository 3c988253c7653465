"""One row of a comparison: its numbers from paired values, then its test, its runs, its verdict in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from recsys.stats.adjustment import AdjustedSides
from recsys.stats.alignment import Differences, Units, collapse
from recsys.stats.comparison_options import EFFECTS, Options, worse_by
from recsys.stats.comparison_table import Row, Triple
from recsys.stats.corrections import adjust
from recsys.stats.equivalence_tests import (
    BayesResult,
    EquivalenceResult,
    bayes_of,
    bayes_paired,
    equivalence,
    equivalence_of,
)
from recsys.stats.family_tests import FamilyTest
from recsys.stats.inference_results import Estimate, Interval, lift_of
from recsys.stats.runs import RunsResult
from recsys.stats.tests import ups_and_downs
from recsys.stats.verdicts import outcome, said_effect, said_gap, said_p
from recsys.types import Float


def mean_row(triple: Triple, d: Differences, counted: Differences, options: Options) -> Row:
    """Everything about a row but its test; wins and losses are those of `counted`."""
    sides = sides_of(d)
    value, other = (float(mean) for mean in sides.estimates())
    gaps = counted.unit_means()
    up, down = ups_and_downs(gaps, options.tie)
    wins, losses = (down, up) if triple[2] in options.lower_is_better else (up, down)
    relative, relative_interval = _relative(sides, options.confidence)
    return Row(
        *triple,
        value=value,
        baseline_value=other,
        difference=value - other,
        interval=Interval(math.nan, math.nan, options.confidence, options.interval_method),
        relative=relative,
        relative_interval=relative_interval,
        statistic=math.nan,
        p_value=math.nan,
        adjusted_p=math.nan,
        effect=EFFECTS[options.effect](d, confidence=options.confidence),
        wins=wins,
        ties=len(gaps) - up - down,
        losses=losses,
        n_cases=len(d.first),
        n_units=len(gaps),
        test=options.test,
        equivalence=None
        if options.margin is None
        else equivalence(d, options.margin, confidence=options.confidence),
        non_inferiority=None
        if options.no_worse_than is None
        else equivalence(d, worse_by(options, triple[2]), confidence=options.confidence),
        bayes=None
        if options.rope is None
        else _turned(bayes_paired(d, options.rope, confidence=options.confidence), triple[2], options),
        notes=d.notes + (() if other > 0 else (f"{triple[2]}: no lift, {triple[1]} is not above 0",)),
    )


def sides_of(d: Differences) -> Units:
    """Both sides over the same units: the first row the model, the second the baseline."""
    return collapse(np.stack([d.first, d.second]), d.clusters, keys=d.keys, weights=d.weights)


def _relative(sides: Units, confidence: float, spent: int = 0) -> tuple[float, Interval]:
    """Lift of the first row over the second; the pairing is kept."""
    value, base = (float(mean) for mean in sides.estimates())
    first, second = sides.residuals() / sides.weights.sum(axis=1)[:, None]
    n = int(sides.n_units()[0])
    grown = n / (n - 1) if n > 1 else math.nan
    products = (first @ first, first @ second, second @ second)
    spread, shared, base_spread = (grown * float(one) for one in products)
    return lift_of(value, base, (spread, shared, base_spread), n - 1 - spent, confidence)


def with_test(row: Row, tested: FamilyTest, j: int) -> Row:
    """With what the test of the whole family says of this row."""
    low, high = (float(limit) for limit in tested.limits[j])
    notes = row.notes + tuple(note for note in tested.notes[j] if note not in row.notes)
    return replace(
        row,
        interval=replace(row.interval, low=low, high=high, method=tested.interval_method),
        statistic=float(tested.statistics[j]),
        p_value=float(tested.p_values[j]),
        test=tested.labels[j],
        standard_error=float(tested.errors[j]),
        notes=notes,
    )


def with_adjustment(row: Row, found: AdjustedSides, options: Options) -> Row:
    """With both values, their difference and the lift adjusted; effect, wins and losses are of the users."""
    value, other = (float(mean) for mean in found.sides.estimates())
    spent, n = found.differences.spent, found.sides.totals.shape[1]
    relative, relative_interval = _relative(found.sides, options.confidence, spent)
    estimate = Estimate(value - other, row.standard_error, row.interval, n)
    return replace(
        _with_margins(row, estimate, n - 1 - spent, options),
        value=value,
        baseline_value=other,
        difference=value - other,
        relative=relative,
        relative_interval=relative_interval,
        test=f"{row.test.replace('exact', 'all flips')}, adjusted",
        variance_saved=found.variance_saved,
    )


def _turned(found: BayesResult, metric: str, options: Options) -> BayesResult:
    """Where lower is better, what lies above the ROPE is worse."""
    if metric not in options.lower_is_better:
        return found
    return replace(found, p_worse=found.p_better, p_better=found.p_worse)


def _with_margins(row: Row, found: Estimate, df: float, options: Options) -> Row:
    """Whatever was asked of the difference besides its test, from an estimate over runs or adjusted."""
    sure = options.confidence
    same, no_worse, bayes = row.equivalence, row.non_inferiority, row.bayes
    if same is not None:
        same = equivalence_of(found, df, same.margin, confidence=sure)
    if no_worse is not None:
        no_worse = equivalence_of(found, df, no_worse.margin, confidence=sure)
    if bayes is not None:
        bayes = _turned(bayes_of(found, df, bayes.rope, confidence=sure), row.metric, options)
    return replace(row, equivalence=same, non_inferiority=no_worse, bayes=bayes)


def with_runs(row: Row, runs: RunsResult, options: Options) -> Row:
    """With several runs their spread belongs to the error, so test and interval are the runs'."""
    if row.metric in options.lower_is_better:
        runs = replace(runs, better_in=sum(gap < 0 for gap in runs.per_run))
    found = Estimate(runs.difference, runs.standard_error, runs.interval, runs.n_users)
    row = _with_margins(row, found, runs.df, options)
    base = row.baseline_value
    scaled = Interval(math.nan, math.nan, runs.interval.confidence, "runs")
    if base > 0:
        scaled = replace(scaled, low=runs.interval.low / base, high=runs.interval.high / base)
    return replace(
        row,
        difference=runs.difference,
        interval=runs.interval,
        relative=runs.difference / base if base > 0 else math.nan,
        relative_interval=scaled,
        statistic=runs.difference / runs.standard_error if runs.standard_error > 0 else math.nan,
        p_value=runs.p_value,
        standard_error=runs.standard_error,
        test=runs.method,
        runs=runs,
        notes=row.notes + runs.notes,
    )


def margin_p(found: Sequence[EquivalenceResult | None], correction: str) -> Float:
    """P-values of equivalence, corrected over the same family (by Holm where that is max-T)."""
    if found[0] is None:
        return np.ones(len(found))
    p = np.array([1.0 if one is None else one.p_value for one in found])
    return adjust(p, "holm" if correction == "max-t" else correction)


def worded(row: Row, adjusted: float, margin_p: tuple[float, float], options: Options) -> Row:
    """With the adjusted p and the verdict; `margin_p` are those of equivalence and non-inferiority."""
    alpha = 1.0 - options.confidence
    same, no_worse = (p < alpha for p in margin_p)
    lower = row.metric in options.lower_is_better
    parts = [said_gap(row.difference, row.interval, row.relative, row.relative_interval)]
    if row.effect.name:
        parts.append(said_effect(row.effect))
    parts.append(said_p(adjusted, options.correction))
    if row.runs is not None:
        parts.append(row.runs.says)
    word = outcome(row.difference, adjusted, alpha, lower_is_better=lower, equivalent=same, no_worse=no_worse)
    if word == "equivalent":
        parts.append(f"within {options.margin:g} by {said_p(margin_p[0], options.correction)}")
    if word == "not worse":
        parts.append(f"by less than {options.no_worse_than:g}, {said_p(margin_p[1], options.correction)}")
    said = f"{word}: {', '.join(parts)}"
    if row.n_units == row.ties and options.tie == 0:
        said = f"identical: all {row.n_units} units have the same value"
    elif not row.effect.name and row.difference == 0 and row.standard_error == 0:
        said = "identical: the value is the same whoever is left out"
    return replace(row, adjusted_p=adjusted, verdict=said)
