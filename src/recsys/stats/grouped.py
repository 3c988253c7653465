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
from recsys.stats.catalogue import Jackknife
from recsys.stats.choices import Options, worse_by
from recsys.stats.effects import Effect
from recsys.stats.equivalence import equivalence_of
from recsys.stats.outcomes import Interval, lift_of, t_tail
from recsys.stats.runs import RunsResult, folds, run_result
from recsys.stats.table import Row, Triple


def grouped_row(
    triple: Triple, model: Sequence[Jackknife], baseline: Sequence[Jackknife], layout: str, options: Options
) -> Row:
    """One model against the baseline, from what the number is without each group of users."""
    count = max(len(model), len(baseline))
    gaps = [model[r % len(model)] - baseline[r % len(baseline)] for r in range(count)]
    one, other = _mean(model), _mean(baseline)
    gap = _mean(gaps)
    found = gap.estimate(options.confidence)
    t = _statistic(found.value, found.standard_error)
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
    return row if not layout else _with_spread_of_runs(row, gaps, gap, layout, options)


def _statistic(gap: float, error: float) -> float:
    """Without any spread a gap is certain, as in the t-test of values that all differ by the same."""
    if error > 0:
        return gap / error
    return math.copysign(math.inf, gap) if error == 0 and gap != 0 else math.nan


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


def _with_spread_of_runs(
    row: Row, gaps: Sequence[Jackknife], gap: Jackknife, layout: str, options: Options
) -> Row:
    """The spread between runs beside that between users; what both count is left in, on the safe side."""
    per_run = np.array([one.value for one in gaps])
    runs: RunsResult
    if layout == "folds":
        runs = folds(
            per_run,
            test_over_train=options.test_over_train,
            confidence=options.confidence,
            n_users=row.n_cases,
        )
    else:
        users, between = gap.variance(), float(per_run.var(ddof=1)) / len(per_run)
        parts = users**2 / gap.df + between**2 / (len(per_run) - 1)
        runs = run_result(
            "users and runs added",
            per_run,
            variances=(users, between),
            error=math.sqrt(users + between),
            df=(users + between) ** 2 / parts if parts > 0 else float(gap.df),
            n_users=row.n_cases,
            confidence=options.confidence,
        )
    return replace(row, runs=runs)
