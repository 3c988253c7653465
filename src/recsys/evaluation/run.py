"""One evaluation: rank the truth, measure, split by group; on all cases at once or on some.

An `EvaluationRun` holds what `reading.py` read. It can be run again, under other conventions or case by case.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import Fix, InputError, Phrase
from recsys.evaluation.engine import as_decided, measure, summarise, warn_of_ties
from recsys.evaluation.options import (
    cluster_by_case,
    read_weight,
    refuse_no_weight,
    weight_by_case,
    weight_by_item,
)
from recsys.evaluation.results import Evaluation
from recsys.inputs.rows import refuse_negative_grades
from recsys.metrics.ranges import DataLimits, Range, metric_range
from recsys.metrics.registry import Request
from recsys.ranks.ranked_truth import RankedTruth, in_history
from recsys.ranks.rankings import Ranking, RankingOptions
from recsys.records.arrays import (
    Array,
    Context,
    Ids,
    Interactions,
    Lists,
    Partial,
    cached_property,
    changed,
    restrict_to_cases,
)
from recsys.records.read_facts import NOTHING_READ

if TYPE_CHECKING:
    from recsys.evaluation.asked import Asked
    from recsys.evaluation.bounds import Bounds
    from recsys.evaluation.result_facts import ResultFacts, StopFacts
    from recsys.evaluation.stopping import SteppedEvaluation, StopWhen
    from recsys.ranks.sources import UsersByItems
    from recsys.records.facts import Caution


@dataclass(frozen=True, eq=False)
class EvaluationRun:
    """Everything an evaluation reads, ready to be run under any conventions."""

    ranking: Ranking
    truth: Interactions
    requests: Sequence[Request]
    ranking_options: RankingOptions
    context: Context
    clusters: Mapping[Any, Any] | None = None
    case_weights: Mapping[Any, float] | None = None
    item_weights: Mapping[Any, float] | None = None
    by: Any = None
    shared: bool = True
    """Whether some user must occur on both sides; a block of users need not have one."""
    silenced: frozenset[str] = frozenset()
    """The codes of the suppressed cautions."""
    pairs: tuple[str, ...] = ()
    """The histories that came as [[user, item], …] and were read as lists of items."""
    of_entries: EvaluationRun | None = None
    """The evaluation of lists as they came, if several items have one entry: as if entries were the items."""

    def __post_init__(self) -> None:
        """Raise an error if the inputs do not fit the ranking."""
        self.ranking.check_inputs(
            self.truth,
            self.ranking_options,
            self.context,
            cases_are_users=self.cases_are_users,
            needs={need for request in self.requests for need in request.metric.needs},
        )

    @property
    def cases_are_users(self) -> bool:
        """Whether each user has one case: then the rows of a model are those of the users of train."""
        return self.clusters is None and self.truth.clusters is None

    def evaluate(
        self,
        conventions: Conventions,
        stop_when: float | StopWhen | None = None,
        ranked: tuple[RankedTruth, Context] | None = None,
    ) -> Evaluation:
        """Return the result, over all cases or as many as `stop_when` needs; `ranked` where that is done."""
        effective, stopped = self.effective(conventions), None
        if ranked is not None:
            partial = self._measure(*ranked, effective)
        elif stop_when is None:
            partial = self.partial(effective)
        else:
            from recsys.evaluation.stopping import StopWhen, evaluate_until

            stop = StopWhen.of(stop_when)
            steps = self.steps(effective, stop)
            partial, stopped = evaluate_until(steps, stop, self.ranking_options.progress)
        origin = RunOrigin(self, partial, effective, stop_when, stopped)
        return Evaluation(partial, self.requests, effective, origin=origin)

    def evaluate_with_lists(self, conventions: Conventions, length: int) -> Listed:
        """Return the result of a model, and its lists for the users it knows, of one ranking."""
        began, how, model = time.perf_counter(), self.ranking_options, cast("UsersByItems", self.ranking)
        how = replace(how, k=max(length, how.k or 0), with_scores=True)
        ranked = replace(self, ranking_options=how).rank_truth(self.effective(conventions))
        top: Lists = cast("Any", ranked[0]).top
        known = top.cases.values[model.user_rows.row_of(top.cases.values) >= 0]
        lists, seconds = restrict_to_cases(top, Ids(known)), time.perf_counter() - began
        return Listed(self.evaluate(conventions, ranked=ranked), lists, seconds)

    def effective(self, conventions: Conventions) -> Conventions:
        """Return the conventions with the highest grade of the truth."""
        return with_highest_grade(conventions, self.requests, lambda: self.truth.highest_grade)

    def partial(self, conventions: Conventions) -> Partial:
        """Evaluate every request for every case of the lists and the truth, by group if `by` is set."""
        places_only = reads_places_only(self.requests, conventions, self.truth.n_negative)
        return self._measure(*self.rank_truth(conventions, places_only=places_only), conventions)

    def _measure(self, judged: RankedTruth, context: Context, conventions: Conventions) -> Partial:
        partial = measure(judged, self.requests, conventions, context)
        if self.by is not None:
            from recsys.evaluation.groups import with_strata

            partial = with_strata(
                partial, judged, self.requests, conventions=conventions, context=context, by=self.by
            )
        return with_undecided(partial, judged, conventions)

    def values(self, conventions: Conventions) -> dict[str, float]:
        """Return the values over all cases."""
        effective = self.effective(conventions)
        return summarise(self.partial(effective), self.requests, conventions=effective)

    def rank_truth(
        self, conventions: Conventions, *, places_only: bool = False
    ) -> tuple[RankedTruth, Context]:
        """Return the places of the judged items, and the context of the metrics.

        `places_only`: nothing else of the ranking is read.
        """
        ranking, truth = self.ranking, self.truth
        how = changed(
            self.ranking_options,
            shared=self.shared,
            rank_gaps=conventions.rank_gaps,
            places_only=places_only
            and self.by is None
            and self.item_weights is None
            and self.clusters is None,
            own_clusters=self.clusters is None,
        )
        if any(request.conventions(conventions).judged_only == "yes" for request in self.requests):
            how = replace(how, deepest=None)  # places among judged items need every place
        truth, counts = apply_truth_rules(truth, ranking.catalogue, how.seen, conventions)
        judged: Any = ranking.rank(truth if how.own_clusters else replace(truth, clusters=None), how)
        known: dict[str, Any] = {"truth_counts": {**judged.truth_counts, **counts}} if counts else {}
        if self.item_weights is not None:
            known["item_weights"] = weight_by_item(judged, self.item_weights)
        if self.clusters is not None:
            known["clusters"] = cluster_by_case(judged.cases, self.clusters)
        judged = replace(judged, **known) if known else judged
        weights = None if self.case_weights is None else weight_by_case(judged.cases, self.case_weights)
        if self.shared:
            refuse_no_weight(weights)
        context = changed(
            self.context,
            catalogue=ranking.catalogue,
            n_items=ranking.n_items,
            case_weights=weights,
            complete=ranking.complete,
        )
        if any(request.metric.truth.reads_pool for request in self.requests):
            context = with_pooled(context, judged, self.truth)
        return judged, context

    def of_cases(self, cases: Ids, *, first: bool = True) -> EvaluationRun:
        """Return the same evaluation of some cases only.

        What was noticed while the truth was read is about all cases: only the `first` part has it.
        """
        truth = restrict_to_cases(self.truth, cases)
        return replace(
            self,
            ranking=self.ranking.of_cases(cases),
            of_entries=None,
            truth=truth if first else replace(truth, facts=NOTHING_READ),
            ranking_options=replace(self.ranking_options, progress=None),
            shared=False,
        )

    def steps(
        self, conventions: Conventions, stop: StopWhen, *, with_truth: bool = False
    ) -> SteppedEvaluation:
        """Return the same evaluation, to be taken block by block of all cases, or of those with truth."""
        from recsys.evaluation.stopping import SteppedEvaluation

        weights = None
        cases, users = self.ranking.cases_with(self.truth)
        if with_truth:
            users = None if users is None else users[cases.code_of(self.truth.cases.values)]
            cases = self.truth.cases
        if self.clusters is not None:
            users = cluster_by_case(cases, self.clusters)
        if self.case_weights is not None:
            weights = weight_by_case(cases, self.case_weights)
        steps = SteppedEvaluation(
            cases,
            lambda block: self.of_cases(block, first=not steps.parts).partial(conventions),
            self.requests,
            conventions,
            stop=stop,
            ranges=ranges_of(self, conventions),
            weights=weights,
            clusters=users,
        )
        return steps


@dataclass(frozen=True, eq=False)
class RunOrigin:
    """What can be asked of the result of a run: `partial`, under conventions that hold the highest grade."""

    run: EvaluationRun
    partial: Partial
    conventions: Conventions
    stop_when: float | StopWhen | None = None
    stopped: StopFacts | None = None
    has_lists: ClassVar[bool] = True

    @cached_property
    def facts(self) -> ResultFacts:
        """What was noticed while lists and truth were read and ranked."""
        from recsys.evaluation.result_facts import IdKinds, ResultFacts

        run, how = self.run, self.run.ranking_options
        lists, of_ranking = run.ranking.lists, run.ranking.facts(how, run.context)
        kinds = next(filter(None, (data.id_kinds for data in (run.truth, lists))), None)
        ids = kinds or (run.truth.cases.kind, run.truth.items.kind)
        of_catalogue = any(request.metric.kind == "catalogue" for request in run.requests)
        sources = ("train",) * (run.context.train is not None) + ("lists", "truth")
        return ResultFacts(
            lists=lists.facts,
            truth=run.truth.facts,
            ids=IdKinds(*ids),
            backend=of_ranking.backend,
            catalogue_of=sources if of_catalogue and run.ranking.n_items is None else None,
            training_items=of_ranking.training_items,
            stopped=self.stopped,
            of_entries=None if run.of_entries is None else run.of_entries.values(self.conventions),
        )

    def under(self, conventions: Conventions) -> Evaluation:
        """Return the same lists and truth under other conventions."""
        return self.run.evaluate(conventions, self.stop_when)

    def bounds(self, values: Mapping[str, float]) -> Bounds:
        """Compare the values with what lists could reach at best and what chance gives."""
        from recsys.evaluation.bounds.best_and_floor import bounds_of

        run, rules = self.run, self.conventions
        judged, context = run.rank_truth(rules)
        judged = judged.without_repeats() if rules.duplicates == "collapse" else judged
        seen = run.ranking_options.seen
        return bounds_of(judged, run.requests, values, rules=rules, context=context, seen=seen)

    @cached_property
    def cautions(self) -> tuple[Caution, ...]:
        """Where the result may answer another question than the one that was meant."""
        from recsys.evaluation.cautions import find_cautions

        of_counts = find_cautions("evaluation", self.partial.counts, self.run.silenced, of_counts=True)
        return (*self.cautions_of_data, *of_counts)

    @property
    def cautions_of_data(self) -> Sequence[Caution]:
        """The cautions about more than counts, which pieces of the users do not add up to."""
        from recsys.evaluation.cautions import Question, find_cautions

        question = Question(self.run, self.partial, self.conventions)
        return find_cautions("evaluation", question, self.run.silenced)

    @cached_property
    def truth_keys(self) -> Array:
        """One number per case of the result that tells its relevant items and grades from others."""
        from recsys.evaluation.asked import case_keys

        truth = self.run.truth
        of_case = np.append(case_keys(truth, graded=True), np.uint64(0))  # 0 for cases without truth
        return of_case[truth.cases.code_of(self.partial.rows.ids)]

    @cached_property
    def asked(self) -> Asked:
        """What decided what was ranked and how it was judged."""
        from recsys.evaluation.asked import Asked

        return Asked.of(self.run, self.partial)

    @cached_property
    def ranges(self) -> dict[str, Range]:
        """The least and the greatest value that each metric can have for one case of this data."""
        return ranges_of(self.run, self.conventions)


def ranges_of(run: EvaluationRun, conventions: Conventions) -> dict[str, Range]:
    """Return the least and the greatest value that each metric can have for one case of this data."""
    largest = 1.0
    if run.item_weights is not None:
        largest = 0.0
        for item in run.truth.items.values[np.unique(run.truth.codes)].tolist():
            with contextlib.suppress(InputError):  # without a weight: the conventions leave it out
                largest = max(largest, read_weight(run.item_weights, item, "item_weights"))
    data = DataLimits(run.truth, run.context, run.ranking.n_places, largest)
    per_case = [request for request in run.requests if request.metric.kind != "catalogue"]
    return {str(request): metric_range(request, conventions, data) for request in per_case}


class Listed(NamedTuple):
    """A result, the lists that it is of, with scores, and the seconds that ranking took."""

    evaluation: Evaluation
    lists: Lists
    seconds: float


def with_highest_grade(
    conventions: Conventions, requests: Sequence[Request], highest: Callable[[], float | None]
) -> Conventions:
    """Set the highest grade of a graded truth in the conventions, if a metric reads it and it is unset.

    It stays unset where no grade is above 0: then nothing is relevant, and no value depends on it.
    """
    if conventions.max_grade is not None:
        return conventions
    if not any("max_grade" in request.metric.conventions for request in requests):
        return conventions
    grade = highest()
    return conventions if grade is None or grade <= 0 else conventions.but(max_grade=grade)


def reads_places_only(requests: Sequence[Request], conventions: Conventions, n_negative: int) -> bool:
    """Return whether the places of the judged items among all items are everything that metrics read."""
    return conventions.judged_only == "no" and not any(
        request.metric.needs
        or request.metric.kind == "catalogue"
        or (n_negative and request.metric.truth.reads_pool)
        or request.conventions(conventions).judged_only == "yes"
        for request in requests
    )


def highest_of(low: float | None, high: float | None) -> float | None:
    """Return the highest grade, from the ends of a column.

    Return None where all are 1, as without grades, or where there is no grade.
    """
    is_graded = high is not None and math.isfinite(high) and not low == high == 1.0
    return float(high) if is_graded and high is not None else None


def apply_truth_rules(
    truth: Interactions, catalogue: Ids | None, seen: Interactions | None, conventions: Conventions
) -> tuple[Interactions, dict[str, int]]:
    """Count truth items of a negative grade, outside the catalogue or already seen; drop or refuse them."""
    facts = truth.facts
    merged = {"repeated_rows": facts.repeated_rows, "conflicting_grades": facts.conflicting_grades}
    counts = {name: n for name, n in merged.items() if n}
    if truth.n_negative:
        if conventions.negative_grades == "error":
            refuse_negative_grades(truth, "truth")
        counts["negative_grades"] = truth.n_negative
        truth = truth.without_negatives()
    for name, reference in (("unknown_items", catalogue), ("seen_truth", seen)):
        if reference is None:
            continue
        if isinstance(reference, Ids):
            reference.same_kind(truth.items, what="item")
            marks = (reference.code_of(truth.items.values) < 0)[truth.codes]
        else:
            marks = in_history(truth, reference)
        rule, n_marked = getattr(conventions, name), int(marks.sum())
        if rule == "error" and n_marked:
            item = truth.items.name(truth.codes[np.argmax(marks)])
            why = "outside the catalogue" if name == "unknown_items" else "seen by the user before"
            raise InputError(
                f"{n_marked} judged items are {why}, {item!r} for one.",
                table="truth",
                hint=Phrase("Use {} or {}.", Fix(name, "miss"), Fix(name, "drop")),
            )
        if rule == "drop" and n_marked:
            truth = truth.kept(~marks)
        if n_marked:
            counts[name] = n_marked
    return truth, counts


def with_pooled(context: Context, judged: RankedTruth, truth: Interactions) -> Context:
    """Return the context with the pairs of a negative grade: the case times all items, plus the item."""
    if truth.grades is None or not truth.n_negative:
        return context
    negatives = truth.kept(truth.grades < 0)
    case = np.repeat(judged.cases.code_of(negatives.cases.values), negatives.sizes)
    item = judged.items.code_of(negatives.items.values)[negatives.codes]
    pairs = (case * len(judged.items) + item)[(case >= 0) & (item >= 0)]
    return replace(context, pooled=np.asarray(pairs))


def with_undecided(partial: Partial, judged: RankedTruth, conventions: Conventions) -> Partial:
    """Return the result with the number of judged items whose place depends on the order of equal scores."""
    _, undecided = as_decided(judged, conventions).n_undecided()
    if not undecided:
        return partial
    counts = {**partial.counts, "tied": undecided}
    warn_of_ties(counts, conventions)
    return replace(partial, counts=counts)
