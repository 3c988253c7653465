"""Compare models with a baseline, metric by metric: one row with all a reader needs to judge the difference.

A pure function over per-case tables: it pairs by id, resamples by cluster with one set of draws for all rows,
corrects p-values over the whole stated family, and gives a verdict.

A metric that is not a mean over users has no value per user, so its rows come from the jackknife over groups
of users and have no wins, losses or effect size; they belong to the same family and correction as all others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from recsys.display.number_words import plural
from recsys.errors import InputError, UnknownNameError
from recsys.records.arrays import Array, Float, PerCase
from recsys.records.facts import Kind, Verdict, note
from recsys.stats.adjustment import (
    Adjustment,
    Covariates,
    lookup_covariates,
    lookup_strata,
    variance_saved_share,
)
from recsys.stats.bootstrap import Replicates, Resampler, seed_from_rng
from recsys.stats.comparison_table import EFFECTS, OF_USERS, ComparisonTable, Options, Row, Triple
from recsys.stats.corrections import adjust, adjust_best, fit_for_max_t, join_parts, step_down
from recsys.stats.effects import Effect
from recsys.stats.gaffke import mean_p
from recsys.stats.group_jackknife import Jackknife, mean_jackknife
from recsys.stats.margins import (
    bayes_from_estimate,
    equivalence_from_estimate,
)
from recsys.stats.mean_inference import BOOTSTRAPS, Inference, infer_mean, spread_notes
from recsys.stats.pair_pieces import PairsInMemory, PairSource
from recsys.stats.pairing import Aligned, Differences, Paired, Sides, align, describe_missing, side_estimates
from recsys.stats.rank_tests import sign_test, wilcoxon
from recsys.stats.results import (
    Alternative,
    Bounds,
    Estimate,
    Interval,
    TestResult,
    difference_numbers,
    fieller_lift,
    t_ratio,
    t_tail,
    warn_once,
)
from recsys.stats.runs import RunsResult, compare_runs, folds_of_users, merge_runs, run_layout, run_result
from recsys.stats.samples import FEW, Sample

Runs = Mapping[str, list[PerCase]]
Grouped = Mapping[str, Mapping[str, Sequence[Jackknife]]]
# The statistic of each row in max-T as observed, NaN if it is not in the maximum, and as resampled.
_Draws = Mapping[Triple, tuple[float, Float]]


def compare_tables(
    tables: Mapping[str, PerCase | Sequence[PerCase]],
    *,
    baseline: str | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
    metrics: Sequence[str] | None = None,
    options: Options | None = None,
    grouped: Grouped | None = None,
    counted: Mapping[str, PerCase | Sequence[PerCase]] | None = None,
    ranges: Mapping[str, Bounds] | None = None,
    chosen: int = 0,
) -> ComparisonTable:
    """Compare every model with the baseline on every metric.

    Args:
        tables: {model: per-case values}, or for several runs {model: list of one table per run}.
        baseline: the model the others are compared with; by default the first of two models, and of more the
            best on the headline metric is compared with each other.
        pairs: (model, baseline) pairs instead, where there are several baselines.
        metrics: names of columns of `tables` and of metrics in `grouped`; by default those all models share.
        options: test, interval, correction, effect and the rest; with headline="" all metrics are one family,
            such as one metric in groups of users.
        grouped: {model: {metric: jackknife of each run}} for metrics that are not means over cases.
        counted: the tables in which wins and losses are counted, if not `tables`.
        ranges: {metric: the least and the greatest value of a case}, infinite if there is none. Margins allow
            for every value between them. Zeros and ones need no range; for other values without one, the
            range is that of the values seen, and a note says so.
        chosen: `pairs` are those of the best of so many models.

    Raises:
        InputError: if the options do not fit the runs, or no case can be paired.
        UnknownNameError: if the baseline is not one of the models.
    """
    settings = options or Options()
    runs = _runs_by_model(tables)
    jackknives = {model: dict(by_metric) for model, by_metric in (grouped or {}).items()}
    first_model = next(iter(jackknives.values()), {})
    jackknife_metrics = [m for m in first_model if all(m in by_metric for by_metric in jackknives.values())]
    for name in itertools.chain(*(pairs or ())):
        if name not in runs:
            raise UnknownNameError("model", name, runs)
    uncounted = [name for name in runs if counted is not None and name not in counted]
    if uncounted:
        raise InputError(f"counted= has no table of {uncounted[0]!r}.", hint="Pass one for every model.")
    names = _metric_names(runs, metrics, jackknife_metrics)
    if not names or (pairs is not None and not pairs):
        raise InputError("there is nothing to compare: no pair of models, or no metric.")
    layout = run_layout(runs, settings.runs)
    if layout == "folds" and settings.adjusts:
        raise InputError(
            "folds are compared by their means, which covariates and strata of users do not adjust.",
            hint="Leave covariates= and strata= out, or compare one run of each model.",
        )
    if not layout and settings.test_over_train is not None:
        raise InputError(
            f"test_over_train={settings.test_over_train!r} is for folds, but every model has one run.",
            hint="Pass the folds as runs, {'new': [fold1, fold2, ...], ...}, or leave it out.",
        )
    if layout and settings.correction == "max-t":
        raise InputError(
            "max-T resamples users only and ignores the spread between runs.", hint="Use correction='holm'."
        )
    metrics_of_users = [metric for metric in names if metric not in jackknife_metrics]
    with warn_once():
        aligned, counted_on = _align_runs(runs, layout, metrics_of_users), None
        if counted is not None and metrics_of_users:
            counted_on = _align_runs(_runs_by_model(counted), layout, metrics_of_users)
            if not np.array_equal(counted_on.ids, aligned.ids):
                raise InputError(
                    f"counted= holds other cases ({len(counted_on.ids):,}) than the tables that are compared "
                    f"({len(aligned.ids):,}).",
                    hint="Wins and losses are counted on the same cases: pass tables with the same ids.",
                )
        adjustment = _build_adjustment(settings, aligned.users) if settings.adjusts else None
        return compare_pairs(
            lambda _: PairsInMemory(aligned, counted_on), list(runs), names,
            lambda metric: _means(runs, jackknives, metric), baseline=baseline, pairs=pairs, options=settings,
            grouped=jackknives, ranges=ranges, runs=runs, layout=layout, adjustment=adjustment, chosen=chosen,
        )  # fmt: skip


def compare_pairs(
    pairs_of: Callable[[Sequence[Triple]], PairSource],
    models: Sequence[str],
    metrics: Sequence[str],
    means: Callable[[str], Mapping[str, float]],
    *,
    baseline: str | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
    options: Options | None = None,
    grouped: Grouped | None = None,
    ranges: Mapping[str, Bounds] | None = None,
    runs: Runs | None = None,
    layout: str = "",
    adjustment: Adjustment | None = None,
    chosen: int = 0,
) -> ComparisonTable:
    """Compare as `compare_tables` does, from pairs of values in memory or of pieces that were added up.

    Args:
        pairs_of: the values of some pairs of models and metrics. Pieces have no weights; tests and effects by
            ranks, bootstraps with replacement and adjustments need all values in memory.
        models: all of them, in order.
        metrics: names of metrics that have pairs, or are in `grouped`.
        means: gives the mean of each model on a metric, from which the best is chosen.
        baseline, pairs, options, grouped, ranges: as in `compare_tables`.
        runs: the tables of each model where it has several runs, whose `layout` is "seeds" or "folds".
        layout: how they relate.
        adjustment: for covariates or strata.
        chosen: as in `compare_tables`.
    """
    jackknives, settings = grouped or {}, options or Options()
    families = _families(
        metrics, settings, means, models=models, baseline=baseline, pairs=pairs, chosen=chosen
    )
    with warn_once():
        of_users = [t for t in families.triples if t[2] not in jackknives.get(t[0], {})]
        source = pairs_of(of_users)
        rows, draws = _rows_of_users(of_users, source, adjustment, ranges or {}, families)
        for triple in families.triples:
            model, base, metric = triple
            own_runs = (runs[model], runs[base]) if runs else ([], [])
            own = layout if max(map(len, own_runs)) > 1 else ""
            if triple not in rows:
                sides = jackknives[model][metric], jackknives[base][metric]
                rows[triple] = _row_of_groups(triple, *sides, own_runs[0], families, layout=own)
            elif own:
                rows[triple] = _row_of_runs(
                    rows[triple], *own_runs, families, layout=own, adjustment=adjustment
                )
        notes = describe_missing(source.missing, source.n_cases, warns=True)
    found = [rows[triple] for triple in families.triples]
    p_values = families.adjust([row.p_value for row in found], draws).tolist()
    margin_p = [
        families.adjust([math.nan if test is None else test.p_value for test in tests]).tolist()
        for tests in ([row.equivalence for row in found], [row.non_inferiority for row in found])
    ]
    concluded = (
        _concluded(row, p, *of_margins, options=settings)
        for row, p, *of_margins in zip(found, p_values, *margin_p, strict=True)
    )
    return ComparisonTable(
        tuple(concluded), families.says(), settings, source.missing, notes, chosen=families.chosen
    )


def _row(
    triple: Triple,
    found: Inference,
    sides: Sides,
    families: _Families,
    *,
    least: float = -math.inf,
    **others: Any,
) -> Row:
    """A row before it is corrected: `sides` are those whose lift is estimated, `least` the smallest lift."""
    alone, together = families.levels(triple[2])
    gap = found.interval if found.at is None or together == alone else found.at(together)
    lift, lifts = fieller_lift(sides.first, sides.second, sides.variances, gap, least)
    own: dict[str, Any] = {"value": sides.first, "baseline_value": sides.second, "interval": gap}
    own |= {"found": replace(found, at=None), "relative": lift, "relative_interval": lifts}
    return Row(*triple, family=families.name(triple[2]), **own | others)


def _concluded(row: Row, p: float, margin_p: float, no_worse_p: float, *, options: Options) -> Row:
    """The row with its adjusted p and its verdict, from the corrected p of its tests."""
    alpha, difference, metric = 1.0 - options.confidence, row.difference, row.metric
    gap, lifts = row.interval, row.relative_interval
    kind: Kind = "no_difference"
    numbers: dict[str, Any] = {}
    if p < alpha and difference != 0:
        gap, lifts = _without_zero(gap, difference), _without_zero(lifts, row.relative)
        kind = "better" if (difference > 0) != (metric in options.lower_is_better) else "worse"
    elif margin_p < alpha:
        kind, numbers = "equivalent", {"margin": options.margin, "margin_p": margin_p}
    elif no_worse_p < alpha:
        kind, numbers = "no_worse", {"margin": options.no_worse_than, "margin_p": no_worse_p}
    numbers |= difference_numbers(difference, gap, row.relative, lifts)
    numbers |= {"p": p, "correction": options.correction}
    if row.effect.name:
        numbers["effect"] = row.effect.name, row.effect.value
    if row.runs is not None:
        numbers |= {"better_in": row.runs.better_in, "n_runs": row.runs.n_runs}
    if row.n_units == row.ties and options.tie == 0:
        kind, numbers["n_units"] = "identical", row.n_units
    elif not row.effect.name and difference == 0 and row.standard_error == 0:
        kind = "identical"
    verdict = Verdict(kind, metric, numbers)
    return replace(row, adjusted_p=p, interval=gap, relative_interval=lifts, verdict=verdict)


def _without_zero(interval: Interval, value: float) -> Interval:
    """The interval without 0, which a later step of the correction excludes and it may not."""
    least = 1e-12 * value
    if not math.isfinite(interval.low + interval.high):
        return interval
    low = max(interval.low, least) if value > 0 else interval.low
    return replace(interval, low=low, high=min(interval.high, least) if value < 0 else interval.high)


@dataclass(frozen=True)
class _Families:
    """The rows of a comparison, and what each family of them is corrected over.

    `chosen`: the best of so many models is compared with the others, so a family covers every pair of them.
    """

    triples: Sequence[Triple]
    headline: str
    chosen: int
    options: Options

    def name(self, metric: str) -> str:
        return "headline" if self.headline in ("", metric) else "secondary"

    def size(self, metric: str) -> int:
        """How many comparisons the family of a metric covers."""
        own = [t for t in self.triples if self.name(t[2]) == self.name(metric)]
        return len(own) * self.chosen // 2 if self.chosen else len(own)

    def levels(self, metric: str) -> tuple[float, float]:
        """The confidence of an interval alone, and so that all of a family hold together.

        They are the same where the correction lets some be false.
        """
        alone, is_each = self.options.confidence, self.options.correction in ("none", "bh", "by")
        return alone, alone if is_each else 1.0 - (1.0 - alone) / self.size(metric)

    def adjust(self, found: Sequence[float], draws: _Draws | None = None) -> Float:
        """P-values of all rows, each corrected over its family; by Holm for max-T without draws."""
        correction = self.options.correction
        if correction == "max-t" and draws is None:
            correction = "holm"
        p_values = np.array(found, dtype=np.float64)
        adjusted = p_values.copy()
        names = np.array([self.name(metric) for *_, metric in self.triples])
        for family in dict.fromkeys(names.tolist()):
            own = np.flatnonzero(names == family)
            p, metrics = p_values[own], [self.triples[row][2] for row in own.tolist()]
            if correction == "max-t":
                # Rows that are not in the maximum are those of the catalogue, and those in which few differ.
                none = math.nan, np.zeros(self.options.n_resamples)
                drawn = [(draws or {}).get(self.triples[row], none) for row in own.tolist()]
                steps = step_down(*(np.array(part) for part in zip(*drawn, strict=True)))[1]
                # The draws may give a slightly smaller p than the chosen test, which must not lower it.
                adjusted[own] = np.maximum(join_parts(steps, p, ~np.isnan(steps) | np.isnan(p)), p)
            elif correction == "holm" and self.chosen:
                adjusted[own] = adjust_best(p, metrics)
            else:  # pairs that are not shown count as if nothing had been found
                hidden = np.ones(self.size(metrics[0]) - len(own))
                adjusted[own] = adjust(np.concatenate([p, hidden]), correction)[: len(own)]
        return adjusted

    def says(self) -> str:
        """What the families are."""
        pairs = list(dict.fromkeys((model, base) for model, base, _ in self.triples))
        n_metrics = len(dict.fromkeys(metric for *_, metric in self.triples))
        if self.chosen:
            who = f"the best of {self.chosen} models against each other"
        else:
            who = plural(len(pairs), "pair") + " of models"
        text = f"{who} on {self.headline}"
        if n_metrics > 1:
            others = plural(n_metrics - 1, "other metric")
            text += f"; secondary: the same on {others}, {plural(len(pairs) * (n_metrics - 1), 'comparison')}"
        return text


def _families(
    metrics: Sequence[str],
    options: Options,
    means: Callable[[str], Mapping[str, float]],
    *,
    models: Sequence[str],
    baseline: Any,
    pairs: Sequence[tuple[str, str]] | None,
    chosen: int = 0,
) -> _Families:
    """Whom to compare on what: `means` gives the mean of each model on a metric."""
    headline = metrics[0] if options.headline is None else options.headline
    if headline and headline not in metrics:
        raise UnknownNameError("headline metric", headline, metrics)
    if pairs is None:
        if baseline is None and len(models) > 2:
            chosen = len(models)
            if options.correction == "max-t":
                raise InputError(
                    "max-T is for pairs that were named beforehand, and the best model was not.",
                    hint="Name a baseline, or compare every pair: compare(...).pairs().",
                )
            sign = -1.0 if headline in options.lower_is_better else 1.0
            values = {name: sign * value for name, value in means(headline).items()}
            best = max(models, key=lambda name: -math.inf if math.isnan(values[name]) else values[name])
            pairs = [(best, name) for name in models if name != best]
        elif len(models) < 2:
            raise InputError(f"a comparison needs at least two models, got {[*models]}.")
        else:
            try:
                base = {name: name for name in models}[models[0] if baseline is None else baseline]
            except (KeyError, TypeError):
                raise UnknownNameError("baseline", baseline, models) from None
            pairs = [(name, base) for name in models if name is not base]
    return _Families([(*pair, metric) for pair in pairs for metric in metrics], headline, chosen, options)


def _means(runs: Runs, jackknives: Grouped, metric: str) -> dict[str, float]:
    """The mean of each model over its cases and runs."""
    means = {}
    for name, tables in runs.items():
        values = [run.value for run in jackknives.get(name, {}).get(metric, ())]
        for table in tables if not values else ():
            column = np.asarray(table.columns.get(metric, ()), dtype=np.float64)
            kept = ~np.isnan(column)
            sample = Sample.of(column[kept], None if table.weights is None else table.weights[kept])
            values += [sample.mean] if sample.n else []
        means[name] = float(np.mean(values)) if values else math.nan
    return means


def _runs_by_model(tables: Mapping[str, PerCase | Sequence[PerCase]]) -> dict[str, list[PerCase]]:
    return {name: [t] if isinstance(t, PerCase) else list(t) for name, t in tables.items()}


def _align_runs(runs: Runs, layout: str, metrics: Sequence[str]) -> Aligned:
    return align({name: merge_runs(tables, layout, metrics) for name, tables in runs.items()}, metrics)


def _build_adjustment(options: Options, users: Array) -> Adjustment:
    """The adjustment the options ask for, looked up for these users."""
    covariates, strata = Covariates((), np.empty((len(users), 0)), None, ()), None
    if options.covariates is not None:
        covariates = lookup_covariates(options.covariates, options.covariate_means, users)
    if options.strata is not None:
        strata = lookup_strata(options.strata, options.stratum_shares, users)
    return Adjustment(users, covariates, strata)


def _rows_of_users(
    triples: Sequence[Triple],
    pairs: PairSource,
    adjustment: Adjustment | None,
    ranges: Mapping[str, Bounds],
    families: _Families,
) -> tuple[dict[Triple, Row], _Draws]:
    """The differences of means over cases, and their draws if max-T is the correction."""
    options, adjusted = families.options, dict[Triple, tuple[Differences, float]]()
    if adjustment is not None and isinstance(pairs, PairsInMemory):
        for triple in triples:
            values, counted = pairs.of(triple)
            if values.n_cases and not counted.sample.few_decide:
                adjusted[triple] = adjustment.pairs(values)
    replicates: Replicates | None = None
    draws: _Draws = {}
    if triples and (
        options.correction == "max-t" or {options.test, options.interval_method} & set(BOOTSTRAPS)
    ):
        tested = [adjusted[t][0] if t in adjusted else pairs.of(t)[0] for t in triples]
        none, seed = np.empty(0, dtype=np.uint64), seed_from_rng(options.rng)
        resampler = Resampler(none, options.n_resamples, seed, options.scheme, progress=options.progress)
        replicates = pairs.replicate(triples, tested, resampler)
        if options.correction == "max-t":
            fit = fit_for_max_t([one.sample for one in tested])
            observed = np.where(fit, replicates.observed_t(), np.nan)
            draws = dict(zip(triples, zip(observed, replicates.t_values(), strict=True), strict=True))
        del tested  # the differences of all pairs
    rows = {}
    for place, triple in enumerate(triples):
        drawn = None if replicates is None else replicates.row(place)
        of_triple = triple, pairs.of(triple), families, ranges.get(triple[2])
        rows[triple] = _row_of_mean(*of_triple, adjusted=adjusted.get(triple), drawn=drawn)
    return rows, draws


def _row_of_mean(
    triple: Triple,
    pairs: tuple[Paired, Paired],
    families: _Families,
    known: Bounds | None,
    *,
    adjusted: tuple[Differences, float] | None,
    drawn: Replicates | None,
) -> Row:
    """One difference of means, from the pairs that are averaged and those that are counted."""
    (model, baseline, metric), (differences, counted), options = triple, pairs, families.options
    if not differences.n_cases:
        raise InputError(f"{model!r} and {baseline!r} have no case in common on {metric!r}.", column=metric)
    is_lower_better, alpha = metric in options.lower_is_better, 1.0 - options.confidence
    sample, ends = differences.sample, _bounds_of(differences, known)
    reach = ends[1] - ends[0]
    bounds = (-reach, reach) if math.isfinite(reach) else None
    tested, saved = (differences, math.nan) if adjusted is None else adjusted
    of_ranks: dict[str, Callable[[Any], TestResult]]
    of_ranks = {"wilcoxon": wilcoxon, "sign": partial(sign_test, dead_zone=options.tie)}
    found = infer_mean(
        tested.sample, test=of_ranks[options.test](tested) if options.test in of_ranks else options.test,
        method=options.interval_method, confidence=options.confidence, bounds=bounds, drawn=drawn,
        spent=tested.spent,
    )  # fmt: skip
    sides = differences.side_estimates()
    is_gain = (sides.first > sides.second) != is_lower_better
    n_above, ties, n_below = counted.sample.wins_ties_losses(options.tie)
    wins, losses = (n_below, n_above) if is_lower_better else (n_above, n_below)
    notes = differences.notes
    if not sides.second > 0:
        notes += (note("no_lift", metric, baseline=baseline),)
    if 0 < wins + losses < FEW:
        needed = math.ceil(1.0 - math.log2(alpha))  # all signs agree in two of 2^n flips
        facts = {"n_differing": wins + losses, "n": wins + ties + losses, "needed": needed}
        notes += (note("few_signs", metric, **facts, level=100 * alpha),)
    if options.adjusts and adjusted is None:
        notes += (note("not_adjusted", metric, is_mean=True),)
    notes += tuple(one for one in (*tested.notes, *found.notes) if one not in notes)
    if options.tests_margins and known is None and bounds is not None and ends != (0.0, 1.0):
        notes += (note("range_assumed", metric, low=ends[0], high=ends[1]),)
    if bounds is not None and found.p_value < alpha and not options.adjusts:
        alternative: Alternative = "greater" if sides.first > sides.second else "less"
        if mean_p(sample, 0.0, *bounds, alternative) > alpha / 2.0:
            what = "losses" if is_gain else "gains"
            notes += (note("not_excluded", metric, what=what, n=counted.sample.n),)
    margins, least = dict[str, Any](), -1.0 if ends[0] >= 0.0 else -math.inf
    if adjusted is not None:  # effect, wins and losses stay unadjusted
        sides, least = side_estimates(adjusted[0].sides), -math.inf
        found = replace(found, method=f"{found.method}, adjusted")
    estimate = replace(found.estimate, value=sides.first - sides.second, notes=notes)
    if adjusted is not None:
        margins = _margins(metric, replace(estimate, notes=()), found.df or math.nan, options)
    elif options.tests_margins:
        error = math.nan if counted.sample.few_decide else sample.error
        noted = differences.notes + spread_notes(sample)
        own = Estimate(sample.mean, error, found.interval, sample.n, noted)
        margins = _margins(metric, own, sample.df, options, seen=(sample, (-reach, reach)))
    return _row(
        triple, replace(found, estimate=estimate), sides, families, least=least, variance_saved=saved,
        effect=EFFECTS[options.effect](differences, confidence=options.confidence), wins=wins, ties=ties,
        losses=losses, n_cases=differences.n_cases, n_units=counted.sample.n, **margins,
    )  # fmt: skip


def _bounds_of(d: Paired, known: Bounds | None) -> Bounds:
    """The range of a case's values; where it is not known, that of 0 and 1 or of the values seen."""
    if known is not None:
        return known
    low, high = d.ends_seen()
    if {low, high} <= {0.0, 1.0}:
        return 0.0, 1.0
    return (low, high) if low < high else (-math.inf, math.inf)


def _margins(
    metric: str,
    estimate: Estimate,
    df: float,
    options: Options,
    *,
    is_mean: bool = True,
    seen: tuple[Sample, Bounds] | None = None,
) -> dict[str, Any]:
    """Equivalence and non-inferiority of an estimate and, for a mean, its posterior."""
    by_margin = partial(equivalence_from_estimate, estimate, df, confidence=options.confidence, seen=seen)
    lower_is_better = metric in options.lower_is_better
    equivalent = no_worse = bayes = None
    if options.margin is not None:
        equivalent = by_margin(options.margin)
    if options.no_worse_than is not None:
        no_worse = by_margin(
            (-math.inf, options.no_worse_than) if lower_is_better else (-options.no_worse_than, math.inf)
        )
    if options.rope is not None and is_mean:
        bayes = bayes_from_estimate(estimate, df, options.rope, confidence=options.confidence)
        if lower_is_better:
            bayes = replace(bayes, p_worse=bayes.p_better, p_better=bayes.p_worse)
    return {"equivalence": equivalent, "non_inferiority": no_worse, "bayes": bayes}


def _row_of_runs(
    row: Row,
    model: Sequence[PerCase],
    baseline: Sequence[PerCase],
    families: _Families,
    *,
    layout: str,
    adjustment: Adjustment | None,
) -> Row:
    """The same with test and interval over the runs, adjusted if there is an adjustment."""
    options, uneven = families.options, len(model) != len(baseline)
    over_runs = partial(
        compare_runs, model, baseline, row.metric, layout=layout, test_over_train=options.test_over_train
    )
    plain = over_runs(confidence=options.confidence)
    if row.wins + row.losses < FEW or plain.standard_error == 0:
        # The spread between runs adds to what was not seen, and no test is known for both.
        notes = (note("few_differ_in_runs", row.metric), *plain.notes)
        wide = Interval(-math.inf, math.inf, options.confidence, "none")
        plain = replace(plain, standard_error=math.nan, interval=wide, p_value=math.nan, notes=notes)
        return _over_runs(row, lambda **_: plain, layout, families, uneven=uneven)
    found = _over_runs(row, partial(over_runs, adjustment=adjustment), layout, families, uneven=uneven)
    if adjustment is None:
        return found
    saved = variance_saved_share(found.standard_error, plain.standard_error)
    adjusted = replace(found.found, method=f"{found.test}, adjusted")
    return replace(found, variance_saved=saved, found=adjusted)


def _row_of_groups(
    triple: Triple,
    model: Sequence[Jackknife],
    baseline: Sequence[Jackknife],
    runs: Sequence[PerCase],
    families: _Families,
    *,
    layout: str,
) -> Row:
    """One model against the baseline, from the metric's values without each group of users, by run.

    `runs` are those of the model.
    """
    options, n_runs = families.options, max(len(model), len(baseline))
    differences = [model[r % len(model)] - baseline[r % len(baseline)] for r in range(n_runs)]
    model_mean, baseline_mean = mean_jackknife(model), mean_jackknife(baseline)
    mean_difference = mean_jackknife(differences)
    estimate = mean_difference.estimate(options.confidence)
    t, df = t_ratio(estimate.value, estimate.standard_error), mean_difference.df
    model_variance, baseline_variance = model_mean.variance(), baseline_mean.variance()
    covariance = (model_variance + baseline_variance - (model_mean - baseline_mean).variance()) / 2.0
    sides = Sides(model_mean.value, baseline_mean.value, (model_variance, covariance, baseline_variance))
    notes = tuple(one.about(triple[2]) for one in estimate.notes)
    if options.adjusts:
        notes += (note("not_adjusted", triple[2], is_mean=False),)
    n, undefined = len(model_mean.without), Interval(math.nan, math.nan, options.confidence, "none")
    found = Inference(
        replace(estimate, notes=notes), f"jackknife t ({n} groups)", t_tail(t, df), t, df,
        at=lambda level: mean_difference.estimate(level).interval,
    )  # fmt: skip
    row = _row(
        triple, found, sides, families, effect=Effect("", math.nan, undefined, "undefined", 0), wins=0,
        ties=0, losses=0, n_cases=int(model_mean.sizes.sum()), n_units=n,
        **_margins(triple[2], estimate, df, options, is_mean=False),
    )  # fmt: skip
    if not layout:
        return row
    per_run = np.array([difference.value for difference in differences])
    baseline_per_run = np.array([baseline[r % len(baseline)].value for r in range(n_runs)])
    if layout == "folds":
        ids = [runs[r % len(runs)].ids for r in range(n_runs)]
        over_runs = partial(
            folds_of_users, per_run.tolist(), baseline_per_run.tolist(), ids, options.test_over_train
        )
    else:
        # The variance between runs is added to that between users; their overlap counts twice, which is safe.
        shared = covariance - baseline_variance
        by_users = np.array([[mean_difference.variance(), shared], [shared, baseline_variance]])
        by_runs = np.cov(per_run, baseline_per_run) / n_runs
        over_runs = partial(
            run_result, "users and runs added", per_run, [(by_users, df), (by_runs, n_runs - 1.0)],
            variances=(float(by_users[0, 0]), float(by_runs[0, 0])), n_users=row.n_cases,
        )  # fmt: skip
    return _over_runs(row, over_runs, layout, families, uneven=len(model) != len(baseline))


def _over_runs(
    row: Row, at: Callable[..., RunsResult], layout: str, families: _Families, *, uneven: bool
) -> Row:
    """The same with test and intervals over several runs, whose spread is part of the error.

    Notes say which options several runs ignore; `at` gives the runs at a confidence, `uneven`: the two sides
    differ in their number of runs.
    """
    options, runs = families.options, at(confidence=families.options.confidence)
    notes = runs.notes
    for name, usual in (("test", ("permutation", "t")), ("interval", (None, "t"))):
        if getattr(options, name) not in usual:
            notes += (note("users_only", option=name, value=getattr(options, name)),)
    if layout == "seeds" and options.test_over_train is not None:
        notes += (note("folds_only"),)
    if layout == "seeds" and uneven:
        notes += (note("single_run"),)
    better_in = runs.better_in
    if row.metric in options.lower_is_better:
        better_in = sum(gap < 0 for gap in runs.per_run)
    t = runs.value / runs.standard_error if runs.standard_error > 0 else math.nan
    found = Inference(
        replace(runs, notes=row.notes + notes), runs.method, runs.p_value, t, runs.df,
        at=lambda level: at(confidence=level).interval,
    )  # fmt: skip
    same = {name: getattr(row, name) for name in ("value", *OF_USERS)}
    margins = _margins(row.metric, replace(runs, notes=()), runs.df, options, is_mean=bool(row.effect.name))
    return _row(
        (row.model, row.baseline, row.metric), found, runs.sides(row.baseline_value), families,
        runs=replace(runs, notes=notes, better_in=better_in), **same, **margins,
    )  # fmt: skip


def _metric_names(runs: Runs, metrics: Sequence[str] | None, jackknife_metrics: Sequence[str]) -> list[str]:
    if metrics is not None:
        return [metrics] if isinstance(metrics, str) else list(metrics)
    first, *others = [table for tables in runs.values() for table in tables]
    shared = [name for name in first.columns if all(name in table.columns for table in others)]
    shared += [name for name in jackknife_metrics if name not in shared]
    if not shared:
        raise InputError("the tables share no metric.", hint="Evaluate all models with the same metrics.")
    return shared
