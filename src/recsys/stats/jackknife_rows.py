"""Rows of a comparison for numbers that are no means over users: the jackknife over groups of users.

There is nothing to count per user, so such a row has no wins, losses or effect size; it shares the family and
the correction with all others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from recsys.errors import InputError
from recsys.stats.catalogue_intervals import Jackknife
from recsys.stats.comparison_options import Options, worse_by
from recsys.stats.comparison_table import Row, Triple
from recsys.stats.effects import Effect
from recsys.stats.equivalence_tests import equivalence_of
from recsys.stats.inference_results import Interval, lift_of, t_of, t_tail
from recsys.stats.run_tables import in_vain, over_folds
from recsys.stats.runs import RunsResult, run_result
from recsys.types import Array, Float


def grouped_row(
    triple: Triple,
    model: Sequence[Jackknife],
    baseline: Sequence[Jackknife],
    tested: Sequence[Array],
    *,
    layout: str,
    options: Options,
) -> Row:
    """One model against the baseline, from what the number is without each group of users.

    `tested` holds the ids of each of the model's runs.
    """
    count = max(len(model), len(baseline))
    gaps = [model[r % len(model)] - baseline[r % len(baseline)] for r in range(count)]
    one, other = _mean(model), _mean(baseline)
    gap = _mean(gaps)
    found = gap.estimate(options.confidence)
    t = t_of(found.value, found.standard_error)
    lift, lift_interval = _lift(one, other, options.confidence)
    row = Row(
        *triple,
        value=one.value,
        baseline_value=other.value,
        difference=found.value,
        interval=found.interval,
        relative=lift,
        relative_interval=lift_interval,
        statistic=t,
        p_value=t_tail(t, gap.df),
        adjusted_p=math.nan,
        effect=no_effect(options.confidence),
        wins=0,
        ties=0,
        losses=0,
        n_cases=int(one.sizes.sum()),
        n_units=len(one.without),
        test=f"jackknife t ({len(one.without)} groups)",
        standard_error=found.standard_error,
        equivalence=None
        if options.margin is None
        else equivalence_of(found, gap.df, options.margin, confidence=options.confidence),
        non_inferiority=None
        if options.no_worse_than is None
        else equivalence_of(found, gap.df, worse_by(options, triple[2]), confidence=options.confidence),
        notes=(found.notes[0], *(f"{triple[2]}: {note}" for note in found.notes[1:])),
    )
    if not layout:
        return row
    per_run = np.array([one.value for one in gaps])
    ids = [tested[r % len(tested)] for r in range(count)]
    if layout == "folds":
        runs = over_folds(per_run.tolist(), ids, options)
    else:
        runs = _added(per_run, gap, row, options)
    notes = runs.notes + in_vain(len(model), len(baseline), layout, options)
    return replace(row, runs=replace(runs, notes=notes))


def no_effect(confidence: float) -> Effect:
    """What stands where no effect size is defined."""
    return Effect("", math.nan, Interval(math.nan, math.nan, confidence, "none"), "undefined", 0)


def _mean(several: Sequence[Jackknife]) -> Jackknife:
    if not several:
        raise InputError("a model has no run at all.")
    total = several[0]
    for one in several[1:]:
        total -= one.times(-1.0)
    return total if len(several) == 1 else total.times(1.0 / len(several))


def _lift(one: Jackknife, other: Jackknife, confidence: float) -> tuple[float, Interval]:
    spread, base_spread, apart = one.variance(), other.variance(), (one - other).variance()
    shared = (spread + base_spread - apart) / 2.0
    return lift_of(one.value, other.value, (spread, shared, base_spread), one.df, confidence)


def _added(per_run: Float, gap: Jackknife, row: Row, options: Options) -> RunsResult:
    """The spread between runs beside that between users; what both count is left in, on the safe side."""
    users, between = gap.variance(), float(per_run.var(ddof=1)) / len(per_run)
    parts = users**2 / gap.df + between**2 / (len(per_run) - 1)
    return run_result(
        "users and runs added",
        per_run,
        variances=(users, between),
        error=math.sqrt(users + between),
        df=(users + between) ** 2 / parts if parts > 0 else min(gap.df, len(per_run) - 1.0),
        n_users=row.n_cases,
        confidence=options.confidence,
    )
