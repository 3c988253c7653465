"""Test a whole family of comparisons (models x metrics) at once, with one set of draws."""

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
    """Per row of the family: statistic, p, limits of the difference; `adjusted`: p by max-T, if chosen."""

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
    replicates = None
    if max_t or options.test in _BOOTSTRAPS or options.interval_method in _BOOTSTRAPS:
        replicates = replicate(units, resampler)
    row_tests = _single_tests(paired, options)
    statistics = np.array([test.statistic for test in row_tests])
    p_values = np.array([test.p_value for test in row_tests])
    labels = tuple(test.method for test in row_tests)
    if replicates is not None and options.test in _BOOTSTRAPS:
        p_values = replicates.p_values(options.test)
        labels = (f"{options.test} bootstrap ({resampler.n_resamples} {replicates.scheme} draws)",) * len(
            row_tests
        )
    elif options.test == "permutation" and len(units.keys) > EXACT_FLIPS:
        p_values = np.array(
            [flip_p(s, row) for s, row in zip(resampler.flipped(units.totals), units.totals, strict=True)]
        )
        labels = (f"sign-flip permutation ({resampler.n_resamples} draws)",) * len(row_tests)
    limits = _difference_limits(units, paired, replicates, options)
    adjusted = None
    if replicates is not None and max_t:
        with np.errstate(divide="ignore", invalid="ignore"):
            observed = replicates.estimates / replicates.standard_errors
        adjusted = step_down(observed, replicates.t_values())[1]
    notes = tuple(test.notes for test in row_tests)
    errors = units.standard_errors()
    return FamilyTest(statistics, p_values, errors, limits, labels, options.interval_method, adjusted, notes)


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


def _difference_limits(
    units: Units, paired: Sequence[Differences], replicates: Replicates | None, options: Options
) -> Float:
    if replicates is not None and options.interval_method in _BOOTSTRAPS:
        return replicates.limits(options.interval_method, options.confidence)
    df = units.n_units() - 1.0 - np.array([d.spent for d in paired])
    if options.interval_method == "normal":
        df = np.full(len(paired), np.inf)
    parts = zip(units.estimates(), units.standard_errors(), df, strict=True)
    intervals = [
        t_interval(float(value), float(error), float(df_of_row), options.confidence)
        for value, error, df_of_row in parts
    ]
    return np.array([(interval.low, interval.high) for interval in intervals])


def adjust_family(
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
