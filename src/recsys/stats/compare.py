"""Models against a baseline, metric by metric: one row with all a reader needs to judge the difference.

A pure function over per-case tables: pairs by id, resamples by cluster with one set of draws for all rows,
corrects over the whole stated family, and says the verdict in words.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from recsys.errors import InputError, UnknownNameError
from recsys.stats.align import Aligned, Differences, Units, align, collapse
from recsys.stats.cautions import UnpairedWarning, caution
from recsys.stats.choices import EFFECTS, Options
from recsys.stats.corrections import adjust
from recsys.stats.effects import Effect
from recsys.stats.equivalence import BayesResult, EquivalenceResult, bayes_paired, equivalence
from recsys.stats.family import FamilyTest, adjusted_p, family_test
from recsys.stats.outcomes import Interval, t_interval
from recsys.stats.resample import Resampler, Words, seed_of, unit_keys
from recsys.stats.runs import RunsResult
from recsys.stats.several import between_runs, layout_of, merged_runs
from recsys.stats.wording import outcome, said_effect, said_gap, said_p
from recsys.types import Array, Float, PerCase

Triple = tuple[str, str, str]


@dataclass(frozen=True)
class Row:
    """One model against the baseline on one metric; `difference` is model minus baseline.

    `relative` is the lift over the baseline's mean. Wins, ties and losses count units; a win is better.
    """

    model: str
    baseline: str
    metric: str
    value: float
    baseline_value: float
    difference: float
    interval: Interval
    relative: float
    relative_interval: Interval
    statistic: float
    p_value: float
    adjusted_p: float
    effect: Effect
    wins: int
    ties: int
    losses: int
    n_cases: int
    n_units: int
    test: str
    verdict: str = ""
    equivalence: EquivalenceResult | None = None
    bayes: BayesResult | None = None
    runs: RunsResult | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ComparisonTable:
    """All rows, the family the correction is over, and who is missing where."""

    rows: tuple[Row, ...]
    family: str
    options: Options
    missing: Mapping[str, Array] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __getitem__(self, key: tuple[str, str]) -> Row:
        """The first row of (model, metric)."""
        for row in self.rows:
            if (row.model, row.metric) == key:
                return row
        raise UnknownNameError("model and metric", key, (f"{r.model}, {r.metric}" for r in self.rows))


def compare_tables(
    tables: Mapping[str, PerCase | Sequence[PerCase]],
    *,
    baseline: str | None = None,
    metrics: Sequence[str] | None = None,
    options: Options | None = None,
) -> ComparisonTable:
    """Compare every model with the baseline (all pairs without one) on every metric (the shared ones)."""
    chosen = options or Options()
    runs = {name: [t] if isinstance(t, PerCase) else list(t) for name, t in tables.items()}
    pairs = _pairs(list(runs), baseline)
    names = _metrics(runs, metrics)
    layout = layout_of(runs, chosen.runs)
    if layout and chosen.correction == "max-t":
        raise InputError(
            "max-T resamples users only and knows nothing of runs.", hint="Use correction='holm'."
        )
    aligned = align({name: merged_runs(one, layout, names) for name, one in runs.items()}, names)
    triples = [(model, base, metric) for model, base in pairs for metric in names]
    keys = unit_keys(aligned.ids)
    paired = [_paired(aligned, triple, keys) for triple in triples]
    tested = _tested(aligned, triples, paired, keys, options=chosen)
    rows = [_row(triple, d, chosen) for triple, d in zip(triples, paired, strict=True)]
    rows = [_with_test(row, tested, j) for j, row in enumerate(rows)]
    if layout:
        rows = [
            _with_runs(
                row,
                between_runs(runs[row.model], runs[row.baseline], row.metric, layout=layout, options=chosen),
            )
            for row in rows
        ]
    adjusted = adjusted_p(tested, np.array([row.p_value for row in rows]), chosen.correction)
    same = _equivalence_p(rows, chosen.correction)
    final = tuple(
        _worded(row, float(p), float(q), chosen) for row, p, q in zip(rows, adjusted, same, strict=True)
    )
    family = (
        f"{len(rows)} comparisons ({len(pairs)} pairs of models x {len(names)} metrics), {chosen.correction}"
    )
    gone = aligned.note()
    notes = (caution(UnpairedWarning, gone),) if gone else ()
    return ComparisonTable(final, family, chosen, aligned.missing, notes)


def _pairs(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    if len(names) < 2:
        raise InputError(f"a comparison needs at least two models, got {names}.")
    if baseline is None:
        return [(second, first) for first, second in itertools.combinations(names, 2)]
    if baseline not in names:
        raise UnknownNameError("baseline", baseline, names)
    return [(name, baseline) for name in names if name != baseline]


def _metrics(runs: Mapping[str, list[PerCase]], metrics: Sequence[str] | None) -> list[str]:
    if metrics is not None:
        return [metrics] if isinstance(metrics, str) else list(metrics)
    first, *others = [table for several in runs.values() for table in several]
    shared = [name for name in first.columns if all(name in table.columns for table in others)]
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


def _row(triple: Triple, d: Differences, options: Options) -> Row:
    """Everything about a row but its test."""
    sides = collapse(np.stack([d.first, d.second]), d.clusters, keys=d.keys, weights=d.weights)
    value, other = (float(mean) for mean in sides.estimates())
    gaps = d.unit_means()
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
        bayes=None if options.rope is None else bayes_paired(d, options.rope, confidence=options.confidence),
        notes=d.notes,
    )


def _relative(sides: Units, confidence: float) -> tuple[float, Interval]:
    """Lift of the first row over the second, with an interval by the delta method that keeps the pairing."""
    value, base = (float(mean) for mean in sides.estimates())
    if base <= 0:
        return math.nan, Interval(math.nan, math.nan, confidence, "delta")
    first, second = sides.residuals() / sides.weights.sum(axis=1)[:, None]
    pull = (first - value / base * second) / base
    n = int(sides.n_units()[0])
    error = math.sqrt(float((pull**2).sum()) * n / (n - 1)) if n > 1 else math.nan
    interval = t_interval(value / base - 1.0, error, n - 1, confidence)
    return value / base - 1.0, replace(interval, method="delta")


def _with_test(row: Row, tested: FamilyTest, j: int) -> Row:
    low, high = (float(limit) for limit in tested.limits[j])
    notes = row.notes + tuple(note for note in tested.notes[j] if note not in row.notes)
    return replace(
        row,
        interval=replace(row.interval, low=low, high=high, method=tested.interval_method),
        statistic=float(tested.statistics[j]),
        p_value=float(tested.p_values[j]),
        test=tested.label,
        notes=notes,
    )


def _with_runs(row: Row, runs: RunsResult) -> Row:
    """With several runs their spread belongs to the error, so test and interval are the runs'."""
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
        test=runs.method,
        runs=runs,
        notes=row.notes + runs.notes,
    )


def _equivalence_p(rows: Sequence[Row], correction: str) -> Float:
    """P-values of equivalence, corrected over the same family (by Holm where that is max-T)."""
    if rows[0].equivalence is None:
        return np.ones(len(rows))
    p = np.array([1.0 if row.equivalence is None else row.equivalence.p_value for row in rows])
    return adjust(p, "holm" if correction == "max-t" else correction)


def _worded(row: Row, adjusted: float, equivalent_p: float, options: Options) -> Row:
    alpha = 1.0 - options.confidence
    same = equivalent_p < alpha
    lower = row.metric in options.lower_is_better
    parts = [
        said_gap(row.difference, row.interval, row.relative, row.relative_interval),
        said_effect(row.effect),
        said_p(adjusted, options.correction),
    ]
    if row.runs is not None:
        parts.append(row.runs.says)
    word = outcome(row.difference, adjusted, alpha, lower_is_better=lower, equivalent=same)
    if word == "equivalent":
        parts.append(f"within {options.margin:g} by {said_p(equivalent_p, options.correction)}")
    said = f"{word}: {', '.join(parts)}"
    if row.n_units == row.ties and options.tie == 0:
        said = f"identical: all {row.n_units} units have the same value"
    return replace(row, adjusted_p=adjusted, verdict=said)
