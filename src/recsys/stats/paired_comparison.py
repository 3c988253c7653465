"""Compare models with a baseline, metric by metric: one row with all a reader needs to judge the difference.

A pure function over per-case tables: it pairs by id, resamples by cluster with one set of draws for all rows,
corrects p-values over the whole stated family, and gives a verdict.

A metric that is not a mean over users has no value per user, so its rows come from the jackknife over groups
of users and have no wins, losses or effect size; they belong to the same family and correction as all others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from recsys.display.number_words import plural
from recsys.errors import InputError, UnknownNameError
from recsys.records.arrays import Array, Float, PerCase
from recsys.records.facts import Note, note
from recsys.stats.comparison_table import (
    EFFECTS,
    ComparisonTable,
    Options,
    Row,
    Triple,
    with_verdict,
)
from recsys.stats.effects import Effect
from recsys.stats.gaffke import mean_p
from recsys.stats.group_jackknife import Jackknife, mean_jackknife
from recsys.stats.inference_results import (
    Alternative,
    Estimate,
    Interval,
    fieller_lift,
    t_ratio,
    t_tail,
    warn_once,
)
from recsys.stats.mean_inference import BOOTSTRAPS, DifferenceTest, sample_estimate
from recsys.stats.multiple_comparisons import adjust, adjust_best, fit_for_max_t, join_parts, step_down
from recsys.stats.pair_pieces import PairsInMemory, PairsOfPieces, PairSource, Pieces
from recsys.stats.paired_tests import (
    BayesResult,
    EquivalenceResult,
    allow_for_unseen,
    bayes_from_estimate,
    equivalence_from_estimate,
    sign_test,
    wilcoxon,
)
from recsys.stats.pairing import Aligned, Paired, Sides, align, describe_missing, side_estimates
from recsys.stats.resampling import (
    Replicates,
    Resampler,
    seed_from_rng,
)
from recsys.stats.runs import RunsResult, compare_runs, folds_of_users, merge_runs, run_layout, run_result
from recsys.stats.samples import FEW
from recsys.stats.variance_reduction import (
    AdjustedSides,
    Adjustment,
    Covariates,
    lookup_covariates,
    lookup_strata,
    variance_saved_share,
)

Runs = Mapping[str, list[PerCase]]
Bounds = tuple[float, float]
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
    ranges: Mapping[str, Bounds] | None = None,
) -> ComparisonTable:
    """Compare every model with the baseline on every metric.

    Args:
        tables: {model: per-case values}, or for several runs {model: list of one table per run}.
        baseline: the model the others are compared with; by default the first of two models, and of more the
            best on the headline metric is compared with each other.
        pairs: (model, baseline) pairs instead, where there are several baselines.
        metrics: names of columns of `tables` and of metrics in `grouped`; by default those all models share.
        options: test, interval, correction, effect and the rest.
        grouped: {model: {metric: jackknife of each run}} for metrics that are not means over cases.
        counted: the tables in which wins and losses are counted, if not `tables`.
        ranges: {metric: the least and the greatest value of a case}, infinite if there is none. Margins allow
            for all that lies between. Zeros and ones need no range; other values without one are taken to lie
            between those seen, and a note says so.

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
    families = _families(
        names, settings, lambda metric: _means(runs, jackknives, metric),
        models=list(runs), baseline=baseline, pairs=pairs,
    )  # fmt: skip
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
        adjustment = _build_adjustment(settings, aligned.users)
        pairs_found = PairsInMemory(aligned, counted_on)
        return _compare(
            pairs_found, families, jackknives, ranges or {}, settings,
            runs=runs, layout=layout, adjustment=adjustment,
        )  # fmt: skip


def compare_pieces(
    pieces: Pieces,
    models: Sequence[str],
    metrics: Sequence[str],
    *,
    baseline: str | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
    options: Options | None = None,
    grouped: Grouped | None = None,
    centres: Mapping[str, Mapping[str, float]],
    has_terms: Collection[str] = (),
    ranges: Mapping[str, Bounds],
    make_pairs: Callable[..., PairsOfPieces] = PairsOfPieces,
) -> ComparisonTable:
    """Compare as `compare_tables` does, without holding the values per case, which must have no weights.

    Args:
        pieces: a function of some metrics that gives their values piece by piece, as often as it is called.
        models: names of models in the pieces.
        metrics: names of metrics in the pieces and in `grouped`.
        baseline, pairs, grouped, ranges: as in `compare_tables`.
        options: the same, but tests and effects by ranks, permutations and adjustments need the values.
        centres: {model: {metric: about its mean}}.
        has_terms: metrics whose wins and losses are counted in other values than those that are averaged.
        make_pairs: who adds up the pieces.
    """
    settings, jackknives = options or Options(), grouped or {}
    families = _families(
        metrics, settings, lambda metric: {model: centres[model][metric] for model in models},
        models=list(models), baseline=baseline, pairs=pairs,
    )  # fmt: skip
    triples = [triple for triple in families.triples if triple[2] not in jackknives.get(triple[0], {})]
    with warn_once():
        found = make_pairs(pieces, triples, centres, has_terms)
        return _compare(found, families, jackknives, ranges, settings)


def _compare(
    pairs: PairSource,
    families: _Families,
    jackknives: Grouped,
    ranges: Mapping[str, Bounds],
    options: Options,
    *,
    runs: Runs | None = None,
    layout: str = "",
    adjustment: Adjustment | None = None,
) -> ComparisonTable:
    """The table of all rows: of pairs, or of metrics that are known without groups of users."""
    triples = [triple for triple in families.triples if triple[2] not in jackknives.get(triple[0], {})]
    means, draws = _found_of_means(
        triples, pairs, adjustment, ranges=ranges, families=families, options=options
    )
    rows = []
    for triple in families.triples:
        model, base, metric = triple
        own_runs = ([], []) if runs is None else (runs[model], runs[base])
        own, together = layout if max(map(len, own_runs)) > 1 else "", families.confidence(metric)
        if triple not in means:
            sides = jackknives[model][metric], jackknives[base][metric]
            ids = [run.ids for run in own_runs[0]]
            found = _found_by_jackknife(triple, *sides, ids, layout=own, together=together, options=options)
        else:
            found = means[triple]
            if own:
                found = _found_in_runs(
                    found, *own_runs, layout=own, adjustment=adjustment, together=together, options=options
                )
        rows.append(found.row())
    return _make_table(rows, families, draws, (pairs.missing, pairs.n_cases), options)


@dataclass(frozen=True)
class _Counts:
    """What a row has in addition to its difference."""

    effect: Effect
    wins: int
    ties: int
    losses: int
    n_cases: int
    n_units: int


class _Margins(NamedTuple):
    """The tests that options ask for in addition to that of the difference."""

    equivalence: EquivalenceResult | None = None
    non_inferiority: EquivalenceResult | None = None
    bayes: BayesResult | None = None


@dataclass(frozen=True)
class _Found:
    """The difference of two models on one metric, whether it is of users, of groups of users or of runs.

    `value` is the model's mean, `sides` are those whose lift is estimated; `together` is the interval that
    holds together with those of the family, and `least` is the smallest lift there can be.
    """

    triple: Triple
    value: float
    sides: Sides
    difference: float
    error: float
    own: Interval
    together: Interval
    statistic: float
    p_value: float
    test: str
    counts: _Counts
    margins: _Margins
    notes: tuple[Note, ...]
    least: float = -math.inf
    runs: RunsResult | None = None
    variance_saved: float = math.nan

    def row(self) -> Row:
        """The row, without its family, adjusted p-value and verdict."""
        first, second, variances = self.sides
        (lift, wide), (_, own) = (
            fieller_lift(first, second, variances, one, self.least) for one in (self.together, self.own)
        )
        model, baseline, metric = self.triple
        return Row(
            model,
            baseline,
            metric,
            value=self.value,
            baseline_value=second,
            difference=self.difference,
            interval=self.together,
            relative=lift,
            relative_interval=wide,
            own_interval=self.own,
            own_relative_interval=own,
            statistic=self.statistic,
            p_value=self.p_value,
            adjusted_p=math.nan,
            test=self.test,
            standard_error=self.error,
            runs=self.runs,
            variance_saved=self.variance_saved,
            notes=self.notes,
            **vars(self.counts),
            **self.margins._asdict(),
        )


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
        return "headline" if metric == self.headline else "secondary"

    def size(self, metric: str) -> int:
        """How many comparisons the family of a metric covers."""
        own = [t for t in self.triples if self.name(t[2]) == self.name(metric)]
        return len(own) * self.chosen // 2 if self.chosen else len(own)

    def confidence(self, metric: str) -> float:
        """That of each interval, so that they hold together unless the correction lets some be false."""
        options = self.options
        if options.correction in ("none", "bh", "by"):
            return options.confidence
        return 1.0 - (1.0 - options.confidence) / self.size(metric)

    def adjust(self, p_values: Float, correction: str, draws: _Draws | None = None) -> Float:
        """P-values of all rows, each corrected over its family."""
        adjusted = np.array(p_values, dtype=np.float64)
        names = np.array([self.name(metric) for *_, metric in self.triples])
        for family in dict.fromkeys(names.tolist()):
            own = np.flatnonzero(names == family)
            p, metrics = p_values[own], [self.triples[row][2] for row in own.tolist()]
            if correction == "max-t":
                adjusted[own] = _adjust_by_draws([self.triples[row] for row in own.tolist()], p, draws)
            elif correction == "holm" and self.chosen:
                adjusted[own] = adjust_best(p, metrics)
            else:  # pairs that are not shown count as if nothing had been found
                hidden = np.ones(self.size(metrics[0]) - len(own))
                adjusted[own] = adjust(np.concatenate([p, hidden]), correction)[: len(own)]
        return adjusted

    def says(self) -> str:
        """What is corrected over what."""
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
        return f"{text}, {self.options.correction}"


def _families(
    metrics: Sequence[str],
    options: Options,
    means: Callable[[str], Mapping[str, float]],
    *,
    models: Sequence[str],
    baseline: str | None,
    pairs: Sequence[tuple[str, str]] | None,
) -> _Families:
    """Whom to compare on what: `means` gives the mean of each model on a metric."""
    headline = metrics[0] if options.headline is None else options.headline
    if headline not in metrics:
        raise UnknownNameError("headline metric", headline, metrics)
    chosen = 0
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
        elif baseline is None and len(models) == 2:
            pairs = [(models[1], models[0])]
        else:
            pairs = _model_pairs(models, baseline)
    return _Families([(*pair, metric) for pair in pairs for metric in metrics], headline, chosen, options)


def _means(runs: Runs, jackknives: Grouped, metric: str) -> dict[str, float]:
    """The mean of each model over its cases and runs."""
    means = {}
    for name, tables in runs.items():
        jackknifed = jackknives.get(name, {}).get(metric)
        if jackknifed is not None:
            means[name] = mean_jackknife(jackknifed).value
            continue
        values = []
        for table in tables:
            weights = np.ones(len(table.ids)) if table.weights is None else table.weights
            column = np.asarray(table.columns[metric], dtype=np.float64) if metric in table.columns else None
            present = None if column is None else ~np.isnan(column)
            if column is not None and present is not None and weights[present].sum() > 0:
                values.append(float(np.average(column[present], weights=weights[present])))
        means[name] = float(np.mean(values)) if values else math.nan
    return means


def _make_table(
    rows: Sequence[Row],
    families: _Families,
    draws: _Draws | None,
    missing: tuple[Mapping[str, Any], int],
    settings: Options,
) -> ComparisonTable:
    """The table of rows with their adjusted p-values; `missing`: what each model lacks, of how many."""
    adjusted = families.adjust(np.array([row.p_value for row in rows]), settings.correction, draws)
    margins = "holm" if settings.correction == "max-t" else settings.correction
    equivalence_p, non_inferiority_p = (
        np.ones(len(rows))
        if getattr(rows[0], name) is None
        else families.adjust(np.array([getattr(row, name).p_value for row in rows]), margins)
        for name in ("equivalence", "non_inferiority")
    )
    notes = describe_missing(*missing, warns=True)
    final_rows = tuple(
        with_verdict(replace(row, family=families.name(row.metric)), float(p), (float(q), float(r)), settings)
        for row, p, q, r in zip(rows, adjusted, equivalence_p, non_inferiority_p, strict=True)
    )
    return ComparisonTable(final_rows, families.says(), settings, missing[0], notes)


def _runs_by_model(tables: Mapping[str, PerCase | Sequence[PerCase]]) -> dict[str, list[PerCase]]:
    return {name: [t] if isinstance(t, PerCase) else list(t) for name, t in tables.items()}


def _align_runs(runs: Runs, layout: str, metrics: Sequence[str]) -> Aligned:
    return align({name: merge_runs(tables, layout, metrics) for name, tables in runs.items()}, metrics)


def _build_adjustment(options: Options, users: Array) -> Adjustment | None:
    """The adjustment the options ask for, looked up for these users; None if they ask for none."""
    if not options.adjusts:
        return None
    covariates, strata = Covariates((), np.empty((len(users), 0)), None, ()), None
    if options.covariates is not None:
        covariates = lookup_covariates(options.covariates, options.covariate_means, users)
    if options.strata is not None:
        strata = lookup_strata(options.strata, options.stratum_shares, users)
    return Adjustment(users, covariates, strata)


def _found_of_means(
    triples: Sequence[Triple],
    pairs: PairSource,
    adjustment: Adjustment | None,
    *,
    ranges: Mapping[str, Bounds],
    families: _Families,
    options: Options,
) -> tuple[dict[Triple, _Found], _Draws | None]:
    """The differences of means over cases, and their draws if max-T is the correction."""
    adjusted = _adjust_sides(triples, pairs, adjustment)
    is_resampled = options.correction == "max-t" or {options.test, options.interval_method} & set(BOOTSTRAPS)
    replicates: Replicates | None = None
    draws: _Draws | None = None
    if is_resampled and triples:
        tested = [adjusted[t].differences if t in adjusted else pairs.of(t)[0] for t in triples]
        seed = seed_from_rng(options.rng)
        resampler = Resampler(
            np.empty(0, dtype=np.uint64), options.n_resamples, seed, options.scheme, progress=options.progress
        )
        replicates = pairs.replicate(triples, tested, resampler)
        if options.correction == "max-t":
            fit = fit_for_max_t([one.sample for one in tested])
            observed = np.where(fit, replicates.observed_t(), np.nan)
            draws = _Draws(triples, observed, replicates.t_values())
    found = {}
    for place, triple in enumerate(triples):
        values, counted = pairs.of(triple)
        if not values.n_cases:
            raise _no_pairs(triple)
        found[triple] = _found_of_mean(
            triple, values, counted, adjusted.get(triple),
            None if replicates is None else replicates.row(place),
            known=ranges.get(triple[2]), together=families.confidence(triple[2]), options=options,
        )  # fmt: skip
    return found, draws


def _adjust_sides(
    triples: Sequence[Triple], pairs: PairSource, adjustment: Adjustment | None
) -> dict[Triple, AdjustedSides]:
    """Both sides of all pairs in which enough users differ, adjusted."""
    adjusted: dict[Triple, AdjustedSides] = {}
    if adjustment is None or not isinstance(pairs, PairsInMemory):
        return adjusted
    for triple in triples:
        values, counted = pairs.of(triple)
        if values.n_cases and not counted.sample.few_decide:
            adjusted[triple] = adjustment.sides(values, pairs.present(triple))
    return adjusted


class _Draws(NamedTuple):
    """The statistics of rows as observed and as resampled; NaN as observed if a row is not in the maximum."""

    triples: Sequence[Triple]
    observed: Float
    resampled: Float


def _found_of_mean(
    triple: Triple,
    differences: Paired,
    counted: Paired,
    adjusted: AdjustedSides | None,
    drawn: Replicates | None,
    *,
    known: Bounds | None,
    together: float,
    options: Options,
) -> _Found:
    """One difference of means; at the confidence `together` the intervals of its family hold together."""
    _, baseline, metric = triple
    sample = differences.sample
    counted_sample = sample if counted is differences else counted.sample
    ends = _bounds_of(differences, known)
    tested = differences if adjusted is None else adjusted.differences
    test = DifferenceTest(
        sample if adjusted is None else tested.sample, options.test, options.interval_method,
        ends[1] - ends[0], tested.notes, adjusted is not None, tested.spent, drawn,
    )  # fmt: skip
    if options.test == "wilcoxon":
        result = test.with_sparse_note(wilcoxon(tested))  # type: ignore[arg-type] # of pairs in memory
    elif options.test == "sign":
        result = test.with_sparse_note(sign_test(tested, dead_zone=options.tie))
    else:
        result = test.result(options.confidence)
    own_interval = test.interval(options.confidence)
    interval = own_interval if together == options.confidence else test.interval(together)
    sides = differences.side_estimates()
    n_above, ties, n_below = counted_sample.wins_ties_losses(options.tie)
    wins, losses = (n_below, n_above) if metric in options.lower_is_better else (n_above, n_below)
    notes = differences.notes
    if not sides.second > 0:
        notes = (*notes, note("no_lift", metric, baseline=baseline))
    if 0 < wins + losses < FEW:
        n, alpha = n_above + ties + n_below, 1.0 - options.confidence
        needed = math.ceil(1.0 - math.log2(alpha))  # all signs agree in two of 2^n flips
        facts = {"n_differing": wins + losses, "n": n, "needed": needed, "level": 100 * alpha}
        notes = (*notes, note("few_signs", metric, **facts))
    if options.adjusts and adjusted is None:
        notes = (*notes, note("not_adjusted", metric, is_mean=True))
    notes += tuple(one for one in result.notes if one not in notes)
    reach, alpha, difference = ends[1] - ends[0], 1.0 - options.confidence, sides.first - sides.second
    if options.tests_margins and known is None and math.isfinite(reach) and ends != (0.0, 1.0):
        notes += (note("range_assumed", metric, low=ends[0], high=ends[1]),)
    if math.isfinite(reach) and result.p_value < alpha and not options.adjusts:
        alternative: Alternative = "greater" if difference > 0 else "less"
        if mean_p(sample, 0.0, -reach, reach, alternative) > alpha / 2.0:
            what = "losses" if (difference > 0) != (metric in options.lower_is_better) else "gains"
            notes += (note("not_excluded", metric, what=what, n=counted_sample.n),)
    effect = EFFECTS[options.effect](differences, confidence=options.confidence)
    counts = _Counts(effect, wins, ties, losses, differences.n_cases, counted_sample.n)
    found = _Found(
        triple, sides.first, sides, difference, test.sample.error, own_interval, interval, result.statistic,
        result.p_value, result.method, counts, _Margins(), notes, -1.0 if ends[0] >= 0.0 else -math.inf,
    )  # fmt: skip
    if adjusted is not None:  # effect, wins and losses stay unadjusted
        sides, n = side_estimates(adjusted.sides), adjusted.sides.totals.shape[1]
        estimate = Estimate(sides.first - sides.second, found.error, own_interval, n)
        return replace(
            found,
            value=sides.first,
            sides=sides,
            difference=estimate.value,
            test=f"{found.test}, adjusted",
            margins=_margins(metric, estimate, n - 1 - tested.spent, options),
            least=-math.inf,
            variance_saved=adjusted.variance_saved,
        )
    if not options.tests_margins:
        return found
    estimate = sample_estimate(sample, differences.notes, options.confidence)
    if counted_sample.few_decide:
        estimate = replace(estimate, standard_error=math.nan)
    margins = _margins(metric, estimate, sample.df, options)
    equivalent, no_worse = (
        None if one is None else allow_for_unseen(one, sample, (-reach, reach), options.confidence)
        for one in margins[:2]
    )
    return replace(found, margins=_Margins(equivalent, no_worse, margins.bayes))


def _bounds_of(d: Paired, known: Bounds | None) -> Bounds:
    """The range of a case's values; where it is not known, that of 0 and 1 or of the values seen."""
    if known is not None:
        return known
    low, high = d.ends_seen()
    if {low, high} <= {0.0, 1.0}:
        return 0.0, 1.0
    return (low, high) if low < high else (-math.inf, math.inf)


def _margins(
    metric: str, estimate: Estimate, df: float, options: Options, *, is_mean: bool = True
) -> _Margins:
    """Equivalence and non-inferiority of an estimate and, for a mean, its posterior."""
    confidence, lower_is_better = options.confidence, metric in options.lower_is_better
    equivalent = no_worse = bayes = None
    if options.margin is not None:
        equivalent = equivalence_from_estimate(estimate, df, options.margin, confidence=confidence)
    if options.no_worse_than is not None:
        margin = (-math.inf, options.no_worse_than) if lower_is_better else (-options.no_worse_than, math.inf)
        no_worse = equivalence_from_estimate(estimate, df, margin, confidence=confidence)
    if options.rope is not None and is_mean:
        bayes = bayes_from_estimate(estimate, df, options.rope, confidence=confidence)
        if lower_is_better:
            bayes = replace(bayes, p_worse=bayes.p_better, p_better=bayes.p_worse)
    return _Margins(equivalent, no_worse, bayes)


def _found_in_runs(
    found: _Found,
    model: Sequence[PerCase],
    baseline: Sequence[PerCase],
    *,
    layout: str,
    adjustment: Adjustment | None,
    together: float,
    options: Options,
) -> _Found:
    """The same with test and interval over the runs, adjusted if there is an adjustment."""
    metric, counts, uneven = found.triple[2], found.counts, len(model) != len(baseline)
    over_runs = partial(
        compare_runs, model, baseline, metric, layout=layout, test_over_train=options.test_over_train,
    )  # fmt: skip
    unadjusted = over_runs(confidence=options.confidence)
    if counts.wins + counts.losses < FEW or unadjusted.standard_error == 0:
        # The spread between runs adds to what was not seen, and no test is known for both.
        unbounded = Interval(-math.inf, math.inf, options.confidence, "none")
        unknown = replace(unadjusted, standard_error=math.nan, interval=unbounded, p_value=math.nan)
        found = replace(found, notes=(*found.notes, note("few_differ_in_runs", metric)))
        return _over_runs(found, unknown, unbounded, options, layout=layout, uneven=uneven)
    adjusted = over_runs(confidence=options.confidence, adjustment=adjustment)
    wide = over_runs(confidence=together, adjustment=adjustment).interval
    found = _over_runs(found, adjusted, wide, options, layout=layout, uneven=uneven)
    if adjustment is None:
        return found
    saved = variance_saved_share(adjusted.standard_error, unadjusted.standard_error)
    return replace(found, variance_saved=saved, test=f"{found.test}, adjusted")


def _found_by_jackknife(
    triple: Triple,
    model: Sequence[Jackknife],
    baseline: Sequence[Jackknife],
    run_ids: Sequence[Array],
    *,
    layout: str,
    together: float,
    options: Options,
) -> _Found:
    """One model against the baseline, from the metric's values without each group of users.

    `run_ids` holds the case ids of each run of the model.
    """
    n_runs = max(len(model), len(baseline))
    differences = [model[r % len(model)] - baseline[r % len(baseline)] for r in range(n_runs)]
    model_mean, baseline_mean = mean_jackknife(model), mean_jackknife(baseline)
    mean_difference = mean_jackknife(differences)
    estimate, wide = (mean_difference.estimate(level) for level in (options.confidence, together))
    t = t_ratio(estimate.value, estimate.standard_error)
    model_variance, baseline_variance = model_mean.variance(), baseline_mean.variance()
    covariance = (model_variance + baseline_variance - (model_mean - baseline_mean).variance()) / 2.0
    sides = Sides(model_mean.value, baseline_mean.value, (model_variance, covariance, baseline_variance))
    notes = tuple(one.about(triple[2]) for one in estimate.notes)
    if options.adjusts:
        notes += (note("not_adjusted", triple[2], is_mean=False),)
    n, undefined = len(model_mean.without), Interval(math.nan, math.nan, options.confidence, "none")
    effect = Effect("", math.nan, undefined, "undefined", 0)
    found = _Found(
        triple, sides.first, sides, estimate.value, estimate.standard_error, estimate.interval, wide.interval,
        t, t_tail(t, mean_difference.df), f"jackknife t ({n} groups)",
        _Counts(effect, 0, 0, 0, int(model_mean.sizes.sum()), n),
        _margins(triple[2], estimate, mean_difference.df, options, is_mean=False), notes,
    )  # fmt: skip
    if not layout:
        return found
    per_run = np.array([difference.value for difference in differences])
    baseline_per_run = np.array([baseline[r % len(baseline)].value for r in range(n_runs)])
    if layout == "folds":
        ids = [run_ids[r % len(run_ids)] for r in range(n_runs)]
        runs, over_runs = (
            folds_of_users(per_run.tolist(), baseline_per_run.tolist(), ids, options.test_over_train, level)
            for level in (options.confidence, together)
        )
    else:
        # The variance between runs is added to that between users; their overlap counts twice, which is safe.
        shared = covariance - baseline_variance
        by_users = np.array([[mean_difference.variance(), shared], [shared, baseline_variance]])
        by_runs = np.cov(per_run, baseline_per_run) / n_runs
        runs, over_runs = (
            run_result(
                "users and runs added",
                per_run,
                [(by_users, mean_difference.df), (by_runs, n_runs - 1.0)],
                variances=(float(by_users[0, 0]), float(by_runs[0, 0])),
                n_users=found.counts.n_cases,
                confidence=level,
            )
            for level in (options.confidence, together)
        )
    uneven = len(model) != len(baseline)
    return _over_runs(found, runs, over_runs.interval, options, layout=layout, uneven=uneven)


def _over_runs(
    found: _Found, runs: RunsResult, interval: Interval, options: Options, *, layout: str, uneven: bool
) -> _Found:
    """The same with test and intervals over several runs, whose spread is part of the error.

    Notes say which options several runs ignore; `interval` is that of the family, `uneven`: the two sides
    differ in their number of runs.
    """
    metric, base = found.triple[2], found.sides.second
    notes = runs.notes
    changed = {
        "test": options.test not in ("permutation", "t"),
        "interval": options.interval not in (None, "t"),
    }
    for name in (name for name, is_changed in changed.items() if is_changed):
        notes += (note("users_only", option=name, value=getattr(options, name)),)
    if layout == "seeds" and options.test_over_train is not None:
        notes += (note("folds_only"),)
    if layout == "seeds" and uneven:
        notes += (note("single_run"),)
    runs = replace(runs, notes=notes)
    if metric in options.lower_is_better:
        runs = replace(runs, better_in=sum(gap < 0 for gap in runs.per_run))
    estimate = Estimate(runs.difference, runs.standard_error, runs.interval, runs.n_users)
    shared = runs.baseline_covariance + runs.baseline_variance
    variance = runs.standard_error**2 + runs.baseline_covariance + shared
    return replace(
        found,
        sides=Sides(base + runs.difference, base, (variance, shared, runs.baseline_variance)),
        difference=runs.difference,
        error=runs.standard_error,
        own=runs.interval,
        together=interval,
        statistic=runs.difference / runs.standard_error if runs.standard_error > 0 else math.nan,
        p_value=runs.p_value,
        test=runs.method,
        margins=_margins(metric, estimate, runs.df, options, is_mean=bool(found.counts.effect.name)),
        notes=found.notes + runs.notes,
        least=-math.inf,
        runs=runs,
    )


def _adjust_by_draws(triples: Sequence[Triple], p_values: Float, draws: _Draws | None) -> Float:
    """P-values of a family adjusted by max-T.

    `join_parts` adds the rows that are not part of the maximum (metrics of the catalogue, and rows in which
    few units differ).
    """
    place = {} if draws is None else {triple: at for at, triple in enumerate(draws.triples)}
    drawn = np.array([triple in place for triple in triples])
    adjusted = np.full(len(triples), math.nan)
    if draws is not None and drawn.any():
        at = [place[triple] for triple in triples if triple in place]
        adjusted[drawn] = step_down(draws.observed[at], draws.resampled[at])[1]
    adjusted = join_parts(adjusted, p_values, ~np.isnan(adjusted) | np.isnan(p_values))
    # The draws may give a slightly smaller p than the chosen test; a correction must not lower p.
    at_least_raw: Float = np.maximum(adjusted, p_values)
    return at_least_raw


def _model_pairs(names: Sequence[str], baseline: Any) -> list[tuple[str, str]]:
    if len(names) < 2:
        raise InputError(f"a comparison needs at least two models, got {list(names)}.")
    try:
        is_known = baseline in dict.fromkeys(names)
    except TypeError:  # nothing that can be a name
        is_known = False
    if not is_known:
        raise UnknownNameError("baseline", baseline, names)
    return [(name, baseline) for name in names if name != baseline]


def _metric_names(runs: Runs, metrics: Sequence[str] | None, jackknife_metrics: Sequence[str]) -> list[str]:
    if metrics is not None:
        return [metrics] if isinstance(metrics, str) else list(metrics)
    first, *others = [table for tables in runs.values() for table in tables]
    shared = [name for name in first.columns if all(name in table.columns for table in others)]
    shared += [name for name in jackknife_metrics if name not in shared]
    if not shared:
        raise InputError("the tables share no metric.", hint="Evaluate all models with the same metrics.")
    return shared


def _no_pairs(triple: Triple) -> InputError:
    model, baseline, metric = triple
    return InputError(f"{model!r} and {baseline!r} have no case in common on {metric!r}.", column=metric)
