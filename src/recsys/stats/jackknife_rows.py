"""Rows of a comparison for metrics that are not means over users: the jackknife over groups of users.

Such metrics have no value per user, so their rows have no wins, losses or effect size; they belong to the
same family and correction as all others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from recsys.errors import InputError
from recsys.stats.catalogue_intervals import Jackknife
from recsys.stats.comparison_options import Options, non_inferiority_margin
from recsys.stats.comparison_table import Row, Triple
from recsys.stats.effects import Effect
from recsys.stats.equivalence_tests import equivalence_from_estimate
from recsys.stats.inference_results import Interval, fieller_lift, t_ratio, t_tail
from recsys.stats.run_tables import folds_result, ignored_option_notes
from recsys.stats.runs import RunsResult, run_result
from recsys.types import Array, Float


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
    lift, lift_interval = _relative_lift(model_mean, baseline_mean, options.confidence)
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
        effect=undefined_effect(options.confidence),
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
        runs = folds_result(per_run.tolist(), ids, options)
    else:
        runs = _add_run_variance(per_run, mean_difference, row, options)
    notes = runs.notes + ignored_option_notes(len(model), len(baseline), layout, options)
    return replace(row, runs=replace(runs, notes=notes))


def undefined_effect(confidence: float) -> Effect:
    """The effect of a row for which no effect size is defined."""
    return Effect("", math.nan, Interval(math.nan, math.nan, confidence, "none"), "undefined", 0)


def _mean_jackknife(runs: Sequence[Jackknife]) -> Jackknife:
    if not runs:
        raise InputError("a model has no run at all.")
    total = runs[0]
    for run in runs[1:]:
        total -= run.times(-1.0)
    return total if len(runs) == 1 else total.times(1.0 / len(runs))


def _relative_lift(model: Jackknife, baseline: Jackknife, confidence: float) -> tuple[float, Interval]:
    variance, baseline_variance, difference_variance = (
        model.variance(),
        baseline.variance(),
        (model - baseline).variance(),
    )
    covariance = (variance + baseline_variance - difference_variance) / 2.0
    return fieller_lift(
        model.value, baseline.value, (variance, covariance, baseline_variance), model.df, confidence
    )


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
