"""The tests of a whole family (models x metrics) at once, on one set of draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from recsys.stats.alignment import Differences, Units
from recsys.stats.bootstrap import Replicates, replicate
from recsys.stats.comparison_options import Options
from recsys.stats.comparison_table import Row, Triple
from recsys.stats.corrections import adjust
from recsys.stats.inference_results import TestResult, t_interval
from recsys.stats.omnibus_tests import step_down
from recsys.stats.resampling import Resampler
from recsys.stats.tests import (
    EXACT_FLIPS,
    flip_p,
    paired_t,
    sign_flip,
    sign_test,
    spread_notes,
    t_statistic,
    wilcoxon,
)
from recsys.types import Float

_BOOTSTRAPS = ("studentised", "bca", "percentile")


@dataclass(frozen=True, eq=False)
class FamilyTest:
    """Per row of the family: statistic, p, limits of the difference, and p adjusted by max-T if asked for."""

    statistics: Float
    p_values: Float
    errors: Float
    limits: Float
    labels: tuple[str, ...]
    interval_method: str
    adjusted: Float | None
    notes: tuple[tuple[str, ...], ...]


def family_test(
    units: Units, paired: Sequence[Differences], resampler: Resampler, options: Options
) -> FamilyTest:
    """Test every row of `units`; `paired` holds the same rows case by case."""
    max_t = options.correction == "max-t"
    drawn = None
    if max_t or options.test in _BOOTSTRAPS or options.interval_method in _BOOTSTRAPS:
        drawn = replicate(units, resampler)
    single = _single_tests(paired, options)
    statistics = np.array([one.statistic for one in single])
    p_values = np.array([one.p_value for one in single])
    labels = tuple(one.method for one in single)
    if drawn is not None and options.test in _BOOTSTRAPS:
        p_values = drawn.p_values(options.test)
        labels = (f"{options.test} bootstrap ({resampler.n_resamples} {drawn.scheme} draws)",) * len(single)
    elif options.test == "permutation" and len(units.keys) > EXACT_FLIPS:
        p_values = np.array(
            [flip_p(s, row) for s, row in zip(resampler.flipped(units.totals), units.totals, strict=True)]
        )
        labels = (f"sign-flip permutation ({resampler.n_resamples} draws)",) * len(single)
    limits = _limits(units, paired, drawn, options)
    adjusted = _max_t(drawn) if drawn is not None and max_t else None
    notes = tuple(one.notes for one in single)
    errors = units.standard_errors()
    return FamilyTest(statistics, p_values, errors, limits, labels, options.interval_method, adjusted, notes)


def _single_tests(paired: Sequence[Differences], options: Options) -> list[TestResult]:
    """What is computed row by row: the test itself, or the t statistic a resampled one goes with."""
    if options.test == "wilcoxon":
        return [wilcoxon(d) for d in paired]
    if options.test == "sign":
        return [sign_test(d, dead_zone=options.tie) for d in paired]
    if options.test == "permutation" and len(paired[0].units().keys) <= EXACT_FLIPS:
        # The statistic of a row is t for every test of the mean, however p was found.
        return [replace(sign_flip(d), statistic=_statistic_only(d).statistic) for d in paired]
    if options.test in _BOOTSTRAPS:
        return [_statistic_only(d) for d in paired]
    return [paired_t(d, confidence=options.confidence) for d in paired]


def _statistic_only(d: Differences) -> TestResult:
    """The t statistic without the cautions of the t-test, whose distribution is not used here."""
    values = d.units().linearised()
    mean, _, t = t_statistic(values)
    return TestResult("", mean, t, math.nan, len(values), notes=d.notes + spread_notes(values))


def _limits(units: Units, paired: Sequence[Differences], drawn: Replicates | None, options: Options) -> Float:
    if drawn is not None and options.interval_method in _BOOTSTRAPS:
        return drawn.limits(options.interval_method, options.confidence)
    df = units.n_units() - 1.0 - np.array([d.spent for d in paired])
    if options.interval_method == "normal":
        df = np.full(len(paired), np.inf)
    parts = zip(units.estimates(), units.standard_errors(), df, strict=True)
    found = [
        t_interval(float(value), float(error), float(free), options.confidence)
        for value, error, free in parts
    ]
    return np.array([(one.low, one.high) for one in found])


def _max_t(drawn: Replicates) -> Float:
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = drawn.estimates / drawn.standard_errors
    return step_down(observed, drawn.t_values())[1]


def family_adjusted(
    rows: Sequence[Row], in_draws: Sequence[Triple], drawn: Float | None, correction: str
) -> Float:
    """p-values adjusted over the family.

    Max-T has its own from the draws. Rows that are not in them (metrics of the catalogue) are then adjusted
    by Holm, and each part is charged for its share of the family, which holds for any dependence.
    """
    p_values = np.array([row.p_value for row in rows])
    if correction != "max-t":
        return adjust(p_values, correction)
    here = {triple: j for j, triple in enumerate(in_draws)}
    place = [here.get((row.model, row.baseline, row.metric)) for row in rows]
    inside = np.array([j is not None for j in place])
    adjusted = np.empty(len(rows))
    if drawn is not None:
        adjusted[inside] = drawn[[j for j in place if j is not None]]
    adjusted[~inside] = adjust(p_values[~inside], "holm")
    for part in (inside, ~inside):
        if part.any():
            adjusted[part] = np.minimum(1.0, adjusted[part] * len(rows) / np.count_nonzero(part))
    # The draws may fall a little below the p of the test that was asked for; a correction never helps.
    never_below: Float = np.maximum(adjusted, p_values)
    return never_below
