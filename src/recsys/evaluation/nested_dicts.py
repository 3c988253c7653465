"""Nested dicts of text ids, {case: {item: number}}: the form of pytrec_eval, ranx and BEIR.

A compiled walk over the dicts gives the places of the judged items at once, without a code for every item.
Whatever needs more than places, and whatever the walk does not take, is read the general way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from recsys.conventions.decisions import AnyConventions, Conventions
from recsys.errors import InputError, NotDefinedError
from recsys.evaluation.asked import Asked
from recsys.evaluation.engine import measure
from recsys.evaluation.options import EvaluationOptions
from recsys.evaluation.reading import CommonInputs
from recsys.evaluation.results import Evaluation
from recsys.evaluation.run import EvaluationRun, with_highest_grade, with_undecided
from recsys.inputs.ids import ids_from_sequence, object_array
from recsys.kernels import DictRanks, rank_dicts
from recsys.metrics.registry import Request
from recsys.ranks.ties import TiedHits, count_undecided, rule_of_hits
from recsys.records.arrays import Array, Context, Float, Hits, Ids, Int, cached_property

if TYPE_CHECKING:
    from recsys.evaluation.stopping import StopWhen
    from recsys.kernels.backend import DictSides

NestedDicts = Mapping[str, Mapping[str, float]]
_FREE_OPTIONS = frozenset({"k", "aggregate", "cautions"})  # the walk serves whatever they are


def values_by_case(
    run: NestedDicts, truth: NestedDicts, metrics: Sequence[str], conventions: AnyConventions = None
) -> tuple[list[str], dict[str, Float]]:
    """Return the cases that are in both, in the order of `run`, and the values of each metric.

    NaN says that the conventions leave a case out of the mean of that metric. Equal scores cause no warning.

    >>> cases, values = values_by_case(
    ...     {"q2": {"d1": 0.5, "d2": 0.7}, "q1": {"d3": 0.1}}, {"q1": {"d3": 1}, "q2": {"d1": 1}}, ["mrr"]
    ... )
    >>> cases, values["mrr"].tolist()
    (['q2', 'q1'], [0.5, 1.0])
    """
    requests = {name: Request.parse(name) for name in metrics}
    for name, request in requests.items():
        if request.metric.kind == "catalogue":
            raise InputError(f"{name} is about all lists together and has no value per case.")
    found = plain_values(run, truth, metrics, conventions)
    if found is not None:
        return found
    cases, asked = [case for case in run if case in truth], list(requests.values())
    if not cases or not asked:
        return cases, {name: np.zeros(len(cases)) for name in requests}
    sides = ({case: side[case] for case in cases} for side in (run, truth))
    read = CommonInputs(asked, EvaluationOptions()).run_of(*sides)
    rules = read.effective(Conventions.of(conventions))
    judged, context = read.rank_truth(rules)
    rows = measure(judged, asked, rules, context).rows
    at = Ids(rows.ids).code_of(ids_from_sequence(cases, table="lists", column="user"))
    return cases, {name: rows.columns[str(request)][at] for name, request in requests.items()}


def plain_values(
    run: NestedDicts,
    truth: Any,
    metrics: Sequence[str],
    conventions: AnyConventions = None,
    *,
    float32: bool = False,
) -> tuple[list[str], dict[str, Float]] | None:
    """`values_by_case` where a walk over the dicts suffices, and None else.

    `truth` may be what `kernels.hold_truth` made of it. `float32` rounds scores to 32 bits first, and takes
    numbers of Python only.
    """
    requests = {name: Request.parse(name) for name in metrics}
    rules, asked = Conventions.of(conventions), list(requests.values())
    if not asked or not all(map(_reads_places, asked)):
        return None
    ranks = rank_dicts(run, truth, shared=True, float32=float32)
    if ranks is None or not _has_data(ranks) or not _covers(ranks, asked, rules):
        return None
    rows = measure(DictTruth(ranks), asked, _effective(ranks, asked, rules), Context()).rows
    return ranks.cases, {name: rows.columns[str(request)][ranks.codes] for name, request in requests.items()}


def read_dicts(lists: Any, truth: Any, inputs: CommonInputs) -> DictEvaluation | None:
    """Return the evaluation of two nested dicts.

    Return None where the walk does not take them or what was asked for.
    """
    if not _FREE_OPTIONS.issuperset(inputs.options.given) or not all(map(_reads_places, inputs.requests)):
        return None
    _ = inputs.silenced  # an unknown code of a caution is an error now
    ranks = rank_dicts(lists, truth, keep=True)
    return None if ranks is None or not _has_data(ranks) else DictEvaluation(ranks, inputs)


def _reads_places(request: Request) -> bool:
    """Return whether a metric needs nothing but the places of the judged items."""
    return not request.metric.needs and request.metric.kind != "catalogue"


def _has_data(ranks: DictRanks) -> bool:
    """Return whether there are items on both sides and a case of both.

    Where not, the general way explains why.
    """
    n_shared = (
        len(ranks.cases) if ranks.read is None else np.count_nonzero(ranks.read.in_truth[: ranks.n_of_run])
    )
    return bool(n_shared and ranks.n_listed.any() and ranks.truth_indptr[-1] + ranks.n_negative)


def _covers(ranks: DictRanks, requests: Sequence[Request], rules: Conventions) -> bool:
    """Return whether the conventions ask for these places: among all items, and without negative grades."""
    if ranks.n_negative and (
        rules.negative_grades == "error" or any(r.metric.truth.reads_pool for r in requests)
    ):
        return False
    return all(each.judged_only == "no" for each in (rules, *(r.conventions(rules) for r in requests)))


def _effective(ranks: DictRanks, requests: Sequence[Request], rules: Conventions) -> Conventions:
    """Return the conventions with the highest grade of the truth."""
    graded = not ranks.lowest == ranks.highest == 1.0
    return with_highest_grade(rules, requests, lambda: ranks.highest) if graded else rules


@dataclass(frozen=True, eq=False)
class DictTruth:
    """The judged items of nested dicts and their places; items have no codes, so no metric may read them."""

    ranks: DictRanks
    clusters = None
    item_weights = None
    restricted = False
    items = Ids(np.zeros(0, dtype=object))

    @cached_property
    def cases(self) -> Ids:
        values = np.empty(len(self.ranks.cases), dtype=object)
        values[self.ranks.codes] = np.fromiter(self.ranks.cases, dtype=object, count=len(values))
        return Ids(values)

    @cached_property
    def judged(self) -> Array:
        return np.zeros(int(self.truth_indptr[-1]), dtype=np.int32)

    @property
    def is_graded(self) -> bool:
        return not self.ranks.lowest == self.ranks.highest == 1.0

    @property
    def grades(self) -> Float | None:
        return self.ranks.truth_grade if self.is_graded else None

    @property
    def truth_indptr(self) -> Int:
        return self.ranks.truth_indptr

    @property
    def has_ties(self) -> bool:
        return self.ranks.has_ties

    @property
    def counts(self) -> Mapping[str, int]:
        negative = {"negative_grades": self.ranks.n_negative} if self.ranks.n_negative else {}
        return {**negative, "repeated_items": 0}

    def hits(self, ties: str, duplicates: str) -> Hits:
        """Hits under a rule for ties; `duplicates` has no effect, as a dict repeats nothing."""
        del duplicates
        ranks = self.ranks
        rank, tied, order = ranks.above + 1, None, None
        if ranks.ties is not None:
            equal, by_id, as_given = ranks.ties
            found = TiedHits(ranks.case, by_id, ranks.grade, ranks.above, equal, by_id, as_given)
            rank, tied, order = found.places(rule_of_hits(ties))
        elif ranks.has_ties and rule_of_hits(ties) == "expected":
            tied = np.ones(len(rank), dtype=np.int64)

        def ordered(values: Any) -> Any:
            return values if order is None or values is None else values[order]

        return Hits(
            n_cases=len(ranks.cases),
            case=ordered(ranks.case),
            item=np.zeros(len(rank), dtype=np.int32),
            rank=ordered(rank),
            grade=ordered(ranks.grade) if self.is_graded else None,
            n_listed=ranks.n_listed,
            truth_indptr=ranks.truth_indptr,
            truth_grade=self.grades,
            tied=ordered(tied),
        )

    def n_undecided(self) -> tuple[int, int]:
        return count_undecided(self.hits("expected", "first")) if self.has_ties else (0, 0)

    def shown(self, ties: str) -> NoReturn:
        raise NotDefinedError(f"the items of nested dicts have no codes here (ties={ties!r}).")

    def of_judged(self) -> NoReturn:
        raise NotDefinedError("places among judged items are found the general way.")


@dataclass(frozen=True, eq=False)
class DictEvaluation:
    """An evaluation of nested dicts as they were; items get codes if more than places is asked for."""

    ranks: DictRanks
    inputs: CommonInputs

    @cached_property
    def general(self) -> EvaluationRun:
        """The same evaluation, read the general way."""
        ranks, read = self.ranks, cast("DictSides", self.ranks.read)
        names, in_truth = object_array(ranks.cases), read.in_truth.astype(bool)
        lists = _nested(names[: ranks.n_of_run], read.list_sizes, read.listed, read.scores)
        truth = _nested(names[in_truth], read.truth_sizes[in_truth], read.judged, read.grades)
        return self.inputs.run_of(lists, truth)

    def evaluate(self, conventions: Conventions, stop_when: float | StopWhen | None = None) -> Evaluation:
        """Return the result, as `EvaluationRun.evaluate` gives it."""
        ranks, requests = self.ranks, self.inputs.requests
        if stop_when is not None or not _covers(ranks, requests, conventions):
            return self.general.evaluate(conventions, stop_when)
        rules = _effective(ranks, requests, conventions)
        judged = DictTruth(ranks)
        partial = with_undecided(measure(judged, requests, rules, self.inputs.context), judged, rules)
        negative = {"negative_grades": ranks.n_negative} if ranks.n_negative else {}
        return Evaluation(
            partial,
            requests,
            rules,
            notes={"lists": {}, "truth": negative, "ids": {"user": "str", "item": "str"}},
            reevaluate=self.evaluate,
            compute_bounds=lambda values: self.general.bounds(rules, values),
            cautions=lambda: self.general.cautions(partial, rules),
            truth_keys=lambda: self.general.truth_keys(partial),
            asked=lambda: Asked.of(self.general, partial),
            ranges=lambda: self.general.ranges(rules),
        )


def _nested(names: Array, sizes: Int, items: list[str], numbers: Float) -> dict[str, dict[str, float]]:
    """Return the entries of each case in a dict again."""
    ends, values = np.cumsum(sizes).tolist(), numbers.tolist()
    starts = [0, *ends]
    return {
        name: dict(zip(items[start:end], values[start:end], strict=True))
        for name, start, end in zip(names.tolist(), starts, ends, strict=False)
    }
