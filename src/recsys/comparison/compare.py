"""compare(): is the new model really better? Evaluations in, a table with verdicts out.

Pairs by id, corrects over the whole family, and prints one line per model and metric; the arithmetic is in
recsys.stats, this module passes it the tables and presents the results.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, Unpack

import numpy as np

from recsys.comparison.by_group import ByGrouping, compare_groups
from recsys.comparison.compare_keywords import CompareOptions, PairOptions
from recsys.comparison.row_pieces import folder_of, row_pieces, why_in_memory
from recsys.display.cells import Columns
from recsys.errors import (
    ColumnError,
    Fix,
    InputError,
    NoRowsError,
    NotDefinedError,
    Phrase,
    UnknownNameError,
    notes_only,
)
from recsys.evaluation.cautions import comparison_cautions, silenced_codes
from recsys.evaluation.engine import summarise
from recsys.evaluation.results import Evaluation, Reported, evaluation_of
from recsys.evaluation.uncertainty import estimate, group_jackknife, mean_column, needs_jackknife
from recsys.metrics.registry import Request, check_same_decisions, parse_all
from recsys.records.arrays import PerCase, cached_property
from recsys.records.facts import Caution, Note, note
from recsys.records.json_values import json_rows
from recsys.records.keywords import takes
from recsys.stats.adjustment import read_user_tables
from recsys.stats.bootstrap import POISSON_FROM
from recsys.stats.comparison import compare_pairs, compare_tables
from recsys.stats.comparison_table import (
    ComparisonTable,
    Options,
    Row,
    columns_by_metric,
    display_columns,
    footnotes,
    number_columns,
)
from recsys.stats.corrections import FriedmanResult, omnibus
from recsys.stats.pair_pieces import PairsOfPieces
from recsys.stats.results import StoppedWarning, caution
from recsys.stats.runs import merge_runs
from recsys.stats.sign_flips import METHOD as FLIPS

_TWO_MODELS = "Such as recsys.compare({'old': old, 'new': new}, baseline='old')."
Result = Evaluation | str | os.PathLike[str]
Evaluations = Mapping[str, Result | Sequence[Result]] | Sequence[Result]
# Tests and intervals of differences that were added up; others look at ranks, or count equal resamples.
_BY_FORMULA = {"permutation", FLIPS, "t", "sign", "normal"}
_OF_SUMS = _BY_FORMULA | {"studentised", "percentile"}


class Comparison(Reported, Sequence[Row]):
    """One row per model and metric, each with its verdict; prints as a table."""

    def __init__(
        self,
        table: ComparisonTable,
        evaluations: Mapping[str, Sequence[Evaluation]] | None = None,
        *,
        silenced: frozenset[str] = frozenset(),
    ) -> None:
        self.table = table
        self.evaluations = dict(evaluations or {})
        self.silenced = silenced

    @cached_property
    def cautions(self) -> tuple[Caution, ...]:
        """Where it may answer another question than was meant: its own cautions, and those of the models."""
        if not self.evaluations:
            return ()
        return comparison_cautions(self.evaluations, (row.metric for row in self.rows), self.silenced)

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.table.rows

    @property
    def family(self) -> str:
        """The family of tests that the correction covers."""
        return self.table.family

    @property
    def missing(self) -> Mapping[str, Any]:
        """Users that other models have and a model lacks: {model: ids}."""
        return self.table.missing

    @cached_property
    def omnibus(self) -> dict[str, FriedmanResult]:
        """{metric: Friedman's test of all models at once, with Nemenyi's p for every pair}; 3 models or more.

        It uses ranks within each user: how often a model is ahead, not by how much.
        """
        if len(self.evaluations) < 3:
            raise InputError(
                f"Friedman's test is for 3 models or more, got {len(self.evaluations)}.",
                hint="The rows of the comparison answer for two.",
            )
        names = list(dict.fromkeys(row.metric for row in self.rows if row.effect.name))
        tables_by_model = {
            n: merge_runs([e.per_case for e in v], "folds", names) for n, v in self.evaluations.items()
        }
        lower = self.table.options.lower_is_better
        alpha = 1.0 - self.table.options.confidence
        return {m: omnibus(tables_by_model, m, alpha=alpha, lower_is_better=m in lower) for m in names}

    @property
    def headline(self) -> str:
        """The metric that decides: its rows are corrected without the others."""
        return self.table.options.headline or self.rows[0].metric

    @cached_property
    def by(self) -> ByGrouping:
        """{grouping: the same comparison within each group}, corrected over the groups.

        Of means over users; groups are those of the results (`evaluate(by=)`).
        """
        every = [one for of in self.evaluations.values() for one in of]
        named = [dict.fromkeys(group.grouping for group in one.values_by_group) for one in every]
        shared = [name for name in (named or [{}])[0] if all(name in one for one in named)]
        if not shared:
            hint = Phrase("Pass {by=} to evaluate, for every model.")
            raise NotDefinedError("the results have no groups in common.", hint=hint)
        metrics = {row.metric for row in self.rows if row.effect.name}
        plain = [replace(request, aggregate=None) for request in every[0].requests]
        requests = sorted(
            (r for r in plain if str(r) in metrics), key=lambda request: str(request) != self.headline
        )
        options: Any = {"options": self.table.options, "chosen": self.table.chosen}
        options["pairs"] = list(dict.fromkeys((row.model, row.baseline) for row in self.rows))
        return ByGrouping({n: compare_groups(self.evaluations, n, requests, **options) for n in shared})

    @takes(PairOptions)
    def pairs(self, correction: str = "max-t", **choices: Unpack[PairOptions]) -> Comparison:
        """Compare every pair of models on the same metrics, corrected over all pairs (by max-T by default).

        All pairs on the headline are one family, those on the other metrics another. Other choices default to
        those of this comparison.
        """
        return self._again({**choices, "correction": correction}, every_pair=True)

    def decided_by(self, headline: str, baseline: str | None = None) -> Comparison:
        """Return the same metrics and choices with this headline.

        Each model is compared with the baseline, or with the best.
        """
        own = self.table.options.correction
        correction = "holm" if own == "max-t" and baseline is None else own
        return self._again({"headline": headline, "correction": correction}, baseline)

    def _again(
        self, choices: Mapping[str, Any], baseline: str | None = None, *, every_pair: bool = False
    ) -> Comparison:
        names = [f.name for f in fields(Options) if f.init and f.name != "lower_is_better"]
        own: Any = {name: getattr(self.table.options, name) for name in names} | dict(choices)
        metrics = list(dict.fromkeys(row.metric for row in self.rows))
        return compare_results(
            self.evaluations, baseline, metrics, own, cautions=self.silenced, every_pair=every_pair
        )

    def __getitem__(self, key: Any) -> Any:
        """Return a row by place, by (model, metric), or by (model, baseline, metric) if there are several."""
        if isinstance(key, int | slice | np.integer):
            if not isinstance(key, slice) and not -len(self.rows) <= key < len(self.rows):
                raise InputError(f"there is no row {key}: the comparison has {len(self.rows)}.")
            return self.rows[key]
        if not isinstance(key, tuple) or len(key) not in (2, 3):
            name = key[0] if isinstance(key, tuple) and len(key) == 1 else key
            first = next((r for r in self.rows if str(name) in (str(r.model), r.metric)), None)
            if first is not None:
                raise InputError(
                    f"{name!r} alone does not name a row: a row is of one model and one metric.",
                    hint=f"Write comparison[{first.model!r}, {first.metric!r}].",
                )
            known = [f"{r.model}, {r.metric}" for r in self.rows]
            raise UnknownNameError("comparison", str(name), known, hint="Write comparison[model, metric].")
        model, *base, metric = key
        name = str(Request.parse(metric))
        matches = [
            r for r in self.rows if (r.model, r.metric) == (model, name) and base in ([], [r.baseline])
        ]
        if len(matches) == 1:
            return matches[0]
        known = [f"{r.model}, {r.baseline}, {r.metric}" for r in self.rows]
        if not matches:
            raise UnknownNameError("comparison", ", ".join(map(str, key)), known)
        raise InputError(
            f"{model!r} is compared with {', '.join(repr(r.baseline) for r in matches)} on {name}.",
            hint=f"Say which: comparison[{model!r}, {matches[0].baseline!r}, {name!r}].",
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return every number of every row, as values that JSON can hold."""
        return {
            "headline": self.headline,
            "family": self.family,
            "rows": json_rows(self._all_columns()),
            "missing": {n: len(v) for n, v in self.missing.items()},
            "cautions": [one.to_dict() for one in self.cautions],
        }

    def _all_columns(self) -> Columns:
        return number_columns(self.table)

    def _printed(self) -> tuple[Columns, Sequence[object], Sequence[str]]:
        """Return the table metric by metric, the best model first."""
        sections, columns = columns_by_metric(self.table)
        return columns, self._footnotes(), self._marked(sections)

    def _ipython_key_completions_(self) -> list[Any]:
        """Return (model, metric) of every row; with the baseline where that does not name one row."""
        pairs = [(row.model, row.metric) for row in self.rows]
        several = len(set(pairs)) < len(pairs)
        return [(r.model, r.baseline, r.metric) for r in self.rows] if several else pairs

    def _columns(self) -> Columns:
        columns = display_columns(self.table)
        return columns | {"metric": self._marked(columns["metric"])}

    def _marked(self, metrics: Sequence[str]) -> list[str]:
        """Return the metrics, each but the headline with the word that it is secondary."""
        return [metric if metric == self.headline else f"{metric} (secondary)" for metric in metrics]

    def _footnotes(self) -> list[object]:
        return [*footnotes(self.table), *self.cautions]


@takes(CompareOptions)
def compare(
    evaluations: Evaluations,
    baseline: str | None = None,
    metrics: str | Sequence[str] | None = None,
    *,
    cautions: str | Iterable[str] | None = None,
    **options: Unpack[CompareOptions],
) -> Comparison:
    """Test whether models differ, and estimate by how much, paired user by user.

    Results whose values per user lie in folders (`evaluate(..., per_user=)`) are compared piece by piece,
    without holding the values; a note says where they had to be read into memory. Means are compared, also of
    results with another aggregate; a note says so.

    The verdict on the headline metric is corrected over the models it is about: those compared with the
    baseline, or the others that the best is compared with. The other metrics are secondary and corrected over
    all of them; they never change it. The test is that of sign flips, exact where few users differ; a note
    says where losses that none of the users had could still outweigh the gain.

    Args:
        evaluations: {name: evaluation}, or {name: [run, run, …]} for several runs of a model, or a list; for
            an evaluation also the path where it was saved.
        baseline: the model that the others are compared with; by default the first of two, and of more the
            best on the headline metric is compared with each other (`comparison.pairs()` has every pair).
        metrics: which metrics; by default those that all evaluations share.
        cautions: "ignore", or the codes of the cautions that are not to be printed (`comparison.cautions`).
        options: the keywords below; covariates= and strata= lower the variance.

    >>> import recsys
    >>> truth = {u: {u} for u in range(300)}
    >>> old = recsys.evaluate({u: [u if u % 3 == 0 else -1] for u in truth}, truth, ["hit@1"])
    >>> new = recsys.evaluate({u: [u if u % 2 == 0 else -1] for u in truth}, truth, ["hit@1"])
    >>> str(compare({"old": old, "new": new}, baseline="old")["new", "hit@1"].verdict)
    'better: +50.0% [22.8, 85.9], d_z 0.24, p_holm < 0.0001'
    """
    return compare_results(evaluations, baseline, metrics, options, cautions=cautions)


def compare_results(
    evaluations: Evaluations,
    baseline: str | None,
    metrics: str | Sequence[str] | None,
    options: CompareOptions,
    *,
    cautions: str | Iterable[str] | None,
    every_pair: bool = False,
    make_pairs: Callable[..., PairsOfPieces] = PairsOfPieces,
) -> Comparison:
    """See `compare`; `make_pairs` adds up the values per user that lie in folders."""
    given: Any = evaluations
    is_one = isinstance(given, Evaluation | str | os.PathLike)
    if is_one or hasattr(given, "shape") or not isinstance(given, Iterable):
        raise InputError(f"a comparison got {type(given).__name__}.", hint=_TWO_MODELS)
    by_name = (
        evaluations
        if isinstance(evaluations, Mapping)
        else {f"model {number}": one for number, one in enumerate(evaluations, 1)}
    )
    if len(by_name) < 2:
        raise InputError(f"a comparison needs at least two models, got {list(by_name)}.", hint=_TWO_MODELS)
    runs, requests = read_results(by_name, metrics)
    lower = {str(r) for r in requests if r.metric.better == "lower"}
    if options.get("headline") is not None:
        options = {**options, "headline": str(Request.parse(str(options["headline"])))}
        requests.sort(key=lambda request: str(request) != options["headline"])
    choices = Options(lower_is_better=frozenset(lower), **read_user_tables(options))
    pairs = [(second, first) for first, second in itertools.combinations(runs, 2)] if every_pair else None
    table = _compare_rows(runs, requests, choices, baseline=baseline, pairs=pairs, make_pairs=make_pairs)
    old = [e for name, of in runs.items() if baseline in (None, name) for e in of]
    empty_margins = _margin_notes(old, requests, choices)
    notes = (*table.notes, *_notes(runs, named=metrics is not None), *empty_margins)
    finds = {str(r) for r in requests if r.metric.population == "relevant" and r.metric.better == "higher"}
    rows = tuple(
        replace(row, verdict=replace(row.verdict, kind="nothing_found"))
        if row.metric in finds and not (row.value or row.baseline_value) and row.verdict.kind == "identical"
        else row
        for row in table.rows
    )
    beyond = frozenset(str(r) for r in requests if r.metric.population == "listed")
    table = replace(table, rows=rows, notes=notes, beyond_accuracy=beyond)
    return Comparison(table, runs, silenced=silenced_codes(cautions))


def read_results(
    given: Mapping[str, Any], metrics: str | Sequence[str] | None
) -> tuple[dict[str, list[Evaluation]], list[Request]]:
    """Return the runs of each model, and the metrics they are compared on, without aggregates.

    Raises:
        InputError: if something is not a result, lacks its values per user or a metric, or was made under
            other conventions than the first.
    """
    runs = {
        name: [
            evaluation_of(one) for one in (e if isinstance(e, Sequence) and not isinstance(e, str) else [e])
        ]
        for name, e in given.items()
    }
    for name, model_runs in runs.items():
        if not model_runs:
            raise InputError(f"{name!r} has no run.", hint="Pass at least one evaluation of each model.")
        for result in model_runs:
            if not isinstance(result, Evaluation):
                raise InputError(
                    f"{name!r} is {type(result).__name__}, and results are compared.",
                    hint="Evaluate each first: recsys.compare({name: recsys.evaluate(lists, truth, metrics) "
                    "for name, lists in models.items()}).",
                )
            if result.partial.per_case is None:
                why = "" if result.missing_rows is None else result.missing_rows.why
                raise NoRowsError(f"comparing {name!r} with another result user by user", why)
    # Users are paired, and the mean difference is tested, whatever aggregate a result states.
    requests = [replace(request, aggregate=None) for request in _requests_to_compare(runs, metrics)]
    (first_name, first), *others = [(repr(name), e.conventions) for name, of in runs.items() for e in of]
    for other in others:
        check_same_decisions(requests, (first_name, first), other)
    return runs, requests


def _margin_notes(old: Sequence[Evaluation], requests: Sequence[Request], options: Options) -> list[Note]:
    """Return a note on each metric of which no model can fail a margin.

    Raise an error if that is so for all metrics.
    """
    notes = []
    margins = {"margin": options.margin, "no_worse_than": options.no_worse_than}
    for name, margin in margins.items():
        if margin is None:
            continue
        reasons = {
            str(request): [why_no_demand(margin, request, e, old) for e in old] for request in requests
        }
        found = [
            note("empty_margin", option=name, margin=margin, metric=metric, why=why[0])
            for metric, why in reasons.items()
            if all(why)
        ]
        if len(found) == len(reasons):
            raise InputError(str(found[0]) + ".", hint="It is in the metric's own units, such as 0.005.")
        notes += found
    return notes


def _compare_rows(
    runs: Mapping[str, list[Evaluation]],
    requests: Sequence[Request],
    options: Options,
    *,
    baseline: str | None,
    pairs: Sequence[tuple[str, str]] | None,
    make_pairs: Callable[..., PairsOfPieces],
) -> ComparisonTable:
    """Return the table of all rows.

    It is added up piece by piece if the rows are in folders, else from the rows in memory.
    """
    everything = [e for model_runs in runs.values() for e in model_runs]
    names = [str(r) for r in requests]
    has_terms = [name for name in names if any(name in e.partial.terms for e in everything)]
    grouped = {
        name: {
            str(r): [group_jackknife(e.partial, r, e.conventions) for e in model_runs]
            for r in requests
            if needs_jackknife(r)
        }
        for name, model_runs in runs.items()
    }
    shared: Any = {"baseline": baseline, "pairs": pairs, "options": options, "grouped": grouped}
    shared["ranges"] = value_ranges(requests, everything)
    notes: tuple[Note, ...] = ()
    if any(folder_of(e) is not None for e in everything):
        reason = _why_in_memory(runs, options)
        if not reason:
            results = {name: e for name, (e,) in runs.items()}
            means = {name: e.overall for name, e in results.items()}
            add_up = partial(make_pairs, row_pieces(results, requests), centres=means, has_terms=has_terms)
            means_of = lambda metric: {n: of[metric] for n, of in means.items()}  # noqa: E731
            return compare_pairs(add_up, list(means), names, means_of, **shared)
        notes = (note("in_memory", reason=reason),)
    averaged = {name: [mean_columns(e, requests) for e in model_runs] for name, model_runs in runs.items()}
    counted = {name: [e.per_case for e in model_runs] for name, model_runs in runs.items()}
    table = compare_tables(averaged, metrics=names, counted=counted if has_terms else None, **shared)
    return replace(table, notes=(*table.notes, *notes))


def _why_in_memory(runs: Mapping[str, list[Evaluation]], options: Options) -> str:
    """Return why the rows must be read into memory; empty if they can be added up piece by piece."""
    if any(len(model_runs) > 1 for model_runs in runs.values()) or options.test_over_train is not None:
        return "there are several runs of a model"
    if options.adjusts:
        return "covariates and strata need all users at once"
    for name, choice in (("test", options.test), ("interval", options.interval_method)):
        if choice not in _OF_SUMS:
            return Phrase("{} needs all values", Fix(name, choice, of="compare"))
    if options.effect != "d_z":
        return Phrase("{compare.effect=} needs all values", effect=options.effect)
    results = {name: e for name, (e,) in runs.items()}
    n_rows = max(len(e.per_case) for e in results.values())
    resamples = options.correction == "max-t" or {options.test, options.interval_method} - _BY_FORMULA
    is_poisson = options.scheme == "poisson" or (options.scheme == "auto" and n_rows >= POISSON_FROM)
    if resamples and not is_poisson:
        return "a bootstrap with replacement needs all users at once"
    return why_in_memory(results)


def _notes(runs: Mapping[str, list[Evaluation]], *, named: bool) -> Iterator[Note]:
    """Yield what a reader must know besides the table.

    These are other aggregates, early stops, and metrics without pairs.
    """
    yield from aggregate_notes(e for model_runs in runs.values() for e in model_runs)
    early = stopped_early(runs)
    if early:
        yield caution(StoppedWarning, "stopped_models", models=early)
    first, *others = [e for model_runs in runs.values() for e in model_runs]
    for request in () if named else first.requests:
        if request.metric.unpaired and all(str(request) in e.overall for e in others):
            yield note("not_compared", metric=str(request), why=request.metric.unpaired)


def aggregate_notes(results: Iterable[Evaluation]) -> Iterator[Note]:
    """Yield a note if results state another number than the means that are compared."""
    stated = dict.fromkeys(result.aggregate.words for result in results if result.aggregate is not None)
    if stated:
        yield note("other_aggregate", stated=[*stated])


def stopped_early(runs: Mapping[str, Sequence[Evaluation]]) -> list[str]:
    """Return the names of those with a result that was stopped before all users were seen."""
    return [name for name, results in runs.items() if any(e.facts.stopped_early for e in results)]


def _requests_to_compare(
    runs: Mapping[str, list[Evaluation]], metrics: str | Sequence[str] | None
) -> list[Request]:
    """Return the metrics to compare: those named, or those that every evaluation has."""
    first, *others = [e for model_runs in runs.values() for e in model_runs]
    available = {str(r): r for r in first.requests}
    if metrics is None:
        shared = [
            r
            for name, r in available.items()
            if all(name in e.overall for e in others) and not r.metric.unpaired
        ]
        if not shared:
            raise InputError(
                "the evaluations share no metric.", hint="Evaluate all models with the same metrics."
            )
        return shared
    names = [str(request) for request in parse_all(metrics, None)]
    for name in names:
        for model, model_runs in runs.items():
            if any(name not in e.overall for e in model_runs):
                raise ColumnError(
                    f"{model!r} has no metric {name!r}.",
                    table=model,
                    column=name,
                    hint=f"It has: {', '.join(model_runs[0].overall)}.",
                )
    for name in names:
        if available[name].metric.unpaired:
            raise NotDefinedError(
                f"models are not compared on {name}: {available[name].metric.unpaired}.",
                hint="Name other metrics, such as rmse, mae or user_auc.",
            )
    return [available[name] for name in names]


def mean_columns(evaluation: Evaluation, requests: Sequence[Request]) -> PerCase:
    """Values per case whose means are the reported numbers; pooled and derived ones by the delta method."""
    columns = {str(r): mean_column(evaluation.partial, r) for r in requests if not needs_jackknife(r)}
    return replace(evaluation.per_case, columns=columns)


def value_ranges(
    requests: Sequence[Request], evaluations: Sequence[Evaluation]
) -> dict[str, tuple[float, float]]:
    """Return {metric: the least and the greatest value of a case}.

    Both are infinite for values of the delta method.
    """
    ranges = {}
    for name in (str(r) for r in requests if not needs_jackknife(r)):
        lows, highs = zip(*(e.ranges[name] for e in evaluations), strict=True)
        is_value = not any(name in e.partial.terms for e in evaluations)
        ranges[name] = (min(lows), max(highs)) if is_value else (-math.inf, math.inf)
    return ranges


def why_no_demand(
    margin: float, request: Request, old: Evaluation, results: Sequence[Evaluation]
) -> str | None:
    """Return why no model can be worse than the old one by more than this, in the metric's units.

    None if one can.

    The old value is an estimate: the margin must cover all that the true value can lose, with 99.9%
    confidence. `results` give the range of the metric. An old value that is the worst possible does
    not count against the margin.
    """
    name, better = str(request), request.metric.better
    lows, highs = zip(*(e.ranges.get(name, request.metric.bounds) for e in results), strict=True)
    low, high = min(lows), max(highs)
    worst = low if better == "higher" else high
    if better == "zero" or math.isinf(worst) or low == high:
        return None
    value = summarise(old.partial, [request], conventions=old.conventions)[name]
    if margin < high - low:
        if value == worst or not margin >= abs(value - worst):
            return None
        with notes_only():
            found = estimate(old.partial, request, old.conventions, confidence=0.998, bounds=(low, high))
        end = found.interval.high if better == "higher" else found.interval.low
        if not margin >= abs(end - worst):
            return None
    return f"the value is {value:.4g} now, and the worst there is {worst:.4g}"
