"""Models against a baseline, metric by metric: one row with all a reader needs to judge the difference.

A pure function over per-case tables: pairs by id, resamples by cluster with one set of draws for all rows,
corrects over the whole stated family, and says the verdict in words.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from recsys.errors import InputError, UnknownNameError
from recsys.stats.align import Aligned, Differences, Units, align, collapse
from recsys.stats.catalogue import Jackknife
from recsys.stats.cautions import UnpairedWarning, caution, said_once
from recsys.stats.choices import EFFECTS, Options, worse_by
from recsys.stats.corrections import adjust
from recsys.stats.equivalence import (
    BayesResult,
    EquivalenceResult,
    bayes_of,
    bayes_paired,
    equivalence,
    equivalence_of,
)
from recsys.stats.family import FamilyTest, family_adjusted, family_test
from recsys.stats.grouped import grouped_row
from recsys.stats.outcomes import Estimate, Interval, lift_of
from recsys.stats.resample import Resampler, Words, seed_of, unit_keys
from recsys.stats.runs import RunsResult
from recsys.stats.several import between_runs, layout_of, merged_runs
from recsys.stats.table import ComparisonTable, Row, Triple
from recsys.stats.wording import outcome, said_effect, said_gap, said_p
from recsys.types import Float, PerCase

__all__ = ["ComparisonTable", "Grouped", "Row", "compare_tables"]

Runs = Mapping[str, list[PerCase]]
Grouped = Mapping[str, Mapping[str, Sequence[Jackknife]]]


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
    """Compare every model with the baseline (all pairs without one) on every metric (the shared ones).

    Args:
        tables: {model: per-case values}, or a list of them, one a run.
        baseline: the model the others are held against.
        pairs: (model, baseline) pairs instead, where there are several baselines.
        metrics: names of columns, and of what `grouped` holds.
        options: test, interval, correction, effect.
        grouped: {model: {metric: jackknife of each run}} for numbers that are no means over cases.
        counted: the same tables as they are to be counted for wins and losses, where that differs.
    """
    chosen = options or Options()
    runs = _listed(tables)
    apart = {name: dict(found) for name, found in (grouped or {}).items()}
    shared = [m for m in next(iter(apart.values()), {}) if all(m in found for found in apart.values())]
    pairs = _pairs(list(runs), baseline) if pairs is None else list(pairs)
    names = _metrics(runs, metrics, shared)
    layout = layout_of(runs, chosen.runs)
    if layout and chosen.correction == "max-t":
        raise InputError(
            "max-T resamples users only and knows nothing of runs.", hint="Use correction='holm'."
        )
    triples = [(model, base, metric) for model, base in pairs for metric in names]
    means = [triple for triple in triples if triple[2] not in shared]
    with said_once():
        aligned = _aligned(runs, layout, [metric for metric in names if metric not in shared])
        found, in_draws = _mean_rows(means, aligned, counted, layout=layout, options=chosen)
        if layout:
            for triple, row in found.items():
                sides = runs[row.model], runs[row.baseline]
                between = between_runs(*sides, row.metric, layout=layout, options=chosen)
                found[triple] = _with_runs(row, between, chosen)
        for triple in triples:
            if triple[2] in shared:
                one, other = (apart[side][triple[2]] for side in triple[:2])
                row = grouped_row(triple, one, other, layout, chosen)
                found[triple] = row if row.runs is None else _with_runs(row, row.runs, chosen)
        rows = [found[triple] for triple in triples]
        adjusted = family_adjusted(rows, means, in_draws, chosen.correction)
        same = _margin_p([row.equivalence for row in rows], chosen.correction)
        no_worse = _margin_p([row.non_inferiority for row in rows], chosen.correction)
        gone = aligned.note()
        notes = (caution(UnpairedWarning, gone),) if gone else ()
    final = tuple(
        _worded(row, float(p), (float(q), float(r)), chosen)
        for row, p, q, r in zip(rows, adjusted, same, no_worse, strict=True)
    )
    family = (
        f"{_counted(len(rows), 'comparison')} ({_counted(len(pairs), 'pair')} of models x "
        f"{_counted(len(names), 'metric')}), {chosen.correction}"
    )
    return ComparisonTable(final, family, chosen, aligned.missing, notes)


def _listed(tables: Mapping[str, PerCase | Sequence[PerCase]]) -> dict[str, list[PerCase]]:
    return {name: [t] if isinstance(t, PerCase) else list(t) for name, t in tables.items()}


def _aligned(runs: Runs, layout: str, metrics: Sequence[str]) -> Aligned:
    return align({name: merged_runs(one, layout, metrics) for name, one in runs.items()}, metrics)


def _mean_rows(
    triples: Sequence[Triple],
    aligned: Aligned,
    counted: Mapping[str, PerCase | Sequence[PerCase]] | None,
    *,
    layout: str,
    options: Options,
) -> tuple[dict[Triple, Row], Float | None]:
    """Rows of means over cases, and their p adjusted by max-T where that was asked for."""
    if not triples:
        return {}, None
    keys = unit_keys(aligned.ids)
    paired = [_paired(aligned, triple, keys) for triple in triples]
    tested = _tested(aligned, triples, paired, keys, options=options)
    judged = paired
    if counted is not None:
        plain = _aligned(_listed(counted), layout, list(dict.fromkeys(metric for *_, metric in triples)))
        judged = [_paired(plain, triple, keys) for triple in triples]
    rows = {
        triple: _with_test(_row(triple, d, c, options), tested, j)
        for j, (triple, d, c) in enumerate(zip(triples, paired, judged, strict=True))
    }
    return rows, tested.adjusted


def _pairs(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    if len(names) < 2:
        raise InputError(f"a comparison needs at least two models, got {names}.")
    if baseline is None:
        return [(second, first) for first, second in itertools.combinations(names, 2)]
    if baseline not in names:
        raise UnknownNameError("baseline", baseline, names)
    return [(name, baseline) for name in names if name != baseline]


def _metrics(runs: Runs, metrics: Sequence[str] | None, apart: Sequence[str]) -> list[str]:
    if metrics is not None:
        return [metrics] if isinstance(metrics, str) else list(metrics)
    first, *others = [table for several in runs.values() for table in several]
    shared = [name for name in first.columns if all(name in table.columns for table in others)]
    shared += [name for name in apart if name not in shared]
    if not shared:
        raise InputError("the tables share no metric.", hint="Evaluate all models with the same metrics.")
    return shared


def _tested(
    aligned: Aligned,
    triples: Sequence[Triple],
    paired: Sequence[Differences],
    keys: Words,
    *,
    options: Options,
) -> FamilyTest:
    gaps = np.stack([aligned.differences(*triple) for triple in triples])
    units = collapse(gaps, aligned.clusters, keys=keys, weights=aligned.weights)
    resampler = Resampler(
        units.keys, options.n_resamples, seed_of(options.rng), options.scheme, progress=options.progress
    )
    return family_test(units, paired, resampler, options)


def _paired(aligned: Aligned, triple: Triple, keys: Words) -> Differences:
    model, base, metric = triple
    a, b = aligned.tables[model][metric], aligned.tables[base][metric]
    here, there = ~np.isnan(a), ~np.isnan(b)
    both = here & there
    if not both.any():
        raise InputError(f"{model!r} and {base!r} have no case in common on {metric!r}.", column=metric)
    alone = int(np.count_nonzero(here != there))
    notes = (f"{alone} cases count for one side only and are not paired",) if alone else ()
    clusters = None if aligned.clusters is None else aligned.clusters[both]
    weights = None if aligned.weights is None else aligned.weights[both]
    return Differences(a[both], b[both], clusters, keys[both], weights, notes)


def _row(triple: Triple, d: Differences, counted: Differences, options: Options) -> Row:
    """Everything about a row but its test; wins and losses are those of `counted`."""
    sides = collapse(np.stack([d.first, d.second]), d.clusters, keys=d.keys, weights=d.weights)
    value, other = (float(mean) for mean in sides.estimates())
    gaps = counted.unit_means()
    up, down = int(np.count_nonzero(gaps > options.tie)), int(np.count_nonzero(gaps < -options.tie))
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


def _relative(sides: Units, confidence: float) -> tuple[float, Interval]:
    """Lift of the first row over the second; the pairing is kept."""
    value, base = (float(mean) for mean in sides.estimates())
    first, second = sides.residuals() / sides.weights.sum(axis=1)[:, None]
    n = int(sides.n_units()[0])
    grown = n / (n - 1) if n > 1 else math.nan
    products = (first @ first, first @ second, second @ second)
    spread, shared, base_spread = (grown * float(one) for one in products)
    return lift_of(value, base, (spread, shared, base_spread), n - 1, confidence)


def _with_test(row: Row, tested: FamilyTest, j: int) -> Row:
    low, high = (float(limit) for limit in tested.limits[j])
    notes = row.notes + tuple(note for note in tested.notes[j] if note not in row.notes)
    return replace(
        row,
        interval=replace(row.interval, low=low, high=high, method=tested.interval_method),
        statistic=float(tested.statistics[j]),
        p_value=float(tested.p_values[j]),
        test=tested.label,
        standard_error=float(tested.errors[j]),
        notes=notes,
    )


def _turned(found: BayesResult, metric: str, options: Options) -> BayesResult:
    """Where lower is better, what lies above the ROPE is worse."""
    if metric not in options.lower_is_better:
        return found
    return replace(found, p_worse=found.p_better, p_better=found.p_worse)


def _with_margins(row: Row, found: Estimate, df: float, options: Options) -> Row:
    """Whatever was asked of the difference besides its test, from an estimate that knows of runs."""
    sure = options.confidence
    same, no_worse, bayes = row.equivalence, row.non_inferiority, row.bayes
    if same is not None:
        same = equivalence_of(found, df, same.margin, confidence=sure)
    if no_worse is not None:
        no_worse = equivalence_of(found, df, no_worse.margin, confidence=sure)
    if bayes is not None:
        bayes = _turned(bayes_of(found, df, bayes.rope, confidence=sure), row.metric, options)
    return replace(row, equivalence=same, non_inferiority=no_worse, bayes=bayes)


def _with_runs(row: Row, runs: RunsResult, options: Options) -> Row:
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


def _margin_p(found: Sequence[EquivalenceResult | None], correction: str) -> Float:
    """P-values of equivalence, corrected over the same family (by Holm where that is max-T)."""
    if found[0] is None:
        return np.ones(len(found))
    p = np.array([1.0 if one is None else one.p_value for one in found])
    return adjust(p, "holm" if correction == "max-t" else correction)


def _worded(row: Row, adjusted: float, margin_p: tuple[float, float], options: Options) -> Row:
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


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
