"""One evaluation: read the inputs, rank the truth, measure, split by group; on all cases at once or on some.

An `EvaluationRun` holds what was read. It can be run again, under other conventions or case by case.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial as bind
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import CutoffError, Fix, IdTypeError, InputError, Phrase, UnknownNameError
from recsys.evaluation.asked import LISTS, Asked, case_keys
from recsys.evaluation.engine import measure, warn_of_ties
from recsys.evaluation.options import (
    EvaluationOptions,
    check_flag,
    check_ids,
    check_n_items,
    cluster_by_case,
    read_weight,
    refuse_no_weight,
    weight_by_case,
    weight_by_item,
)
from recsys.evaluation.results import Evaluation
from recsys.inputs import read_interactions, read_lists
from recsys.inputs.containers import as_array
from recsys.inputs.ids import ID_KINDS, IdKind, differing_ids_hint, encode, ids_to_array
from recsys.inputs.rows import refuse_negative_grades
from recsys.kernels import BACKENDS
from recsys.metrics.attributes import read_context, read_reference
from recsys.metrics.ranges import DataLimits, metric_range
from recsys.metrics.registry import Metrics, Request, largest_k, max_place_read, parse_all
from recsys.ranks.ranked_truth import RankedTruth, in_history, match_truth
from recsys.ranks.sources import RankingOptions, UsersByItems, is_model_path
from recsys.records.arrays import Array, Context, Ids, Int, Interactions, Lists, Partial, cached_property

if TYPE_CHECKING:
    from recsys.evaluation.bounds import Bounds
    from recsys.evaluation.stopping import SteppedEvaluation, StopWhen
    from recsys.ranks.sources import Source
    from recsys.records.facts import Caution

_Data = TypeVar("_Data", Lists, Interactions)
MODEL_ATTRIBUTES = ("user_factors", "get_user_representations", "predict", "state_dict")
_PAIRS_ONLY = ("seen", "eligible")  # only (user, item) pairs are read of these, which is much faster


@dataclass(frozen=True, eq=False)
class EvaluationRun:
    """Everything an evaluation reads, ready to be run under any conventions."""

    ranking: Lists | Source
    truth: Interactions
    requests: Sequence[Request]
    ranking_options: RankingOptions
    context: Context
    catalogue: Ids | None = None
    n_items: int | None = None
    complete: bool = False
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
    candidates: str = LISTS
    """What lists were chosen from, as `Asked` says it; a model knows its own."""

    def __post_init__(self) -> None:
        """Raise an error if a model without ids has no row for an id."""
        if not isinstance(self.ranking, UsersByItems):
            return
        options, context = self.ranking_options, self.context
        for table, data in (("truth", self.truth), ("seen", options.seen), ("eligible", options.eligible)):
            if data is not None:
                self.ranking.check_ids(data, table)
        if context.train is not None:
            self.ranking.check_ids(context.train, "train", users=self.cases_are_users)
        if context.embeddings is not None:
            self.ranking.item_rows.check_numbers(context.embeddings.ids, table="embeddings")
        if context.profiles is not None and self.cases_are_users:
            self.ranking.user_rows.check_numbers(context.profiles.ids, table="profiles")

    @property
    def cases_are_users(self) -> bool:
        """Whether each user has one case: then the rows of a model are those of the users of train."""
        return self.clusters is None and self.truth.clusters is None

    @classmethod
    def read(cls, lists: Any, truth: Any, metrics: Metrics, options: EvaluationOptions) -> EvaluationRun:
        """Read lists, truth and whatever else was given, each once."""
        return CommonInputs(metrics, options).run_of(lists, truth)

    def evaluate(self, conventions: Conventions, stop_when: float | StopWhen | None = None) -> Evaluation:
        """Return the result, over all cases or over as many as `stop_when` needs."""
        effective = self.effective(conventions)
        notes = self.notes
        if stop_when is None:
            partial = self.partial(effective)
        else:
            from recsys.evaluation.stopping import StopWhen, evaluate_until

            stop = StopWhen.of(stop_when)
            steps = self.steps(effective, stop)
            partial, notes["stopped"] = evaluate_until(steps, stop, self.ranking_options.progress)
        return Evaluation(
            partial,
            self.requests,
            effective,
            notes=notes,
            reevaluate=bind(self.evaluate, stop_when=stop_when),
            compute_bounds=bind(self.bounds, effective),
            cautions=bind(self.cautions, partial, effective),
            truth_keys=bind(self.truth_keys, partial),
            asked=bind(Asked.of, self, partial),
            ranges=bind(self.ranges, effective),
        )

    def effective(self, conventions: Conventions) -> Conventions:
        """Return the conventions with the highest grade of the truth."""
        grades = self.truth.grades
        if grades is None or not len(grades):
            return conventions
        return with_highest_grade(conventions, self.requests, lambda: float(grades.max()))

    def cautions(self, partial: Partial, conventions: Conventions) -> tuple[Caution, ...]:
        """Return where the result may answer another question than the one that was meant."""
        from recsys.evaluation.cautions import Question, find_cautions

        question = Question(self, partial, conventions)
        return (
            *find_cautions("evaluation", question, self.silenced),
            *find_cautions("evaluation", partial.counts, self.silenced, of_counts=True),
        )

    def truth_keys(self, partial: Partial) -> Array:
        """Return one number per case of the result that tells its relevant items and grades from others."""
        of_case = np.append(case_keys(self.truth, graded=True), np.uint64(0))  # 0 for cases without truth
        return of_case[self.truth.cases.code_of(partial.rows.ids)]

    def ranges(self, conventions: Conventions) -> dict[str, tuple[float, float]]:
        """Return the least and the greatest value that each metric can have for one case of this data."""
        ranking, largest = self.ranking, 1.0
        if self.item_weights is not None:
            largest = 0.0
            for item in self.truth.items.values[np.unique(self.truth.codes)].tolist():
                with contextlib.suppress(InputError):  # without a weight: the conventions leave it out
                    largest = max(largest, read_weight(self.item_weights, item, "item_weights"))
        n_places = int(ranking.sizes.max(initial=0)) if isinstance(ranking, Lists) else ranking.n_items
        data = DataLimits(self.truth, self.context, n_places, largest)
        per_case = [request for request in self.requests if request.metric.kind != "catalogue"]
        return {str(request): metric_range(request, conventions, data) for request in per_case}

    @property
    def notes(self) -> dict[str, Any]:
        """What was counted while lists and truth were read."""
        notes: dict[str, Any] = {
            "lists": dict(self.ranking.notes) if isinstance(self.ranking, Lists) else {},
            "truth": dict(self.truth.notes),
        }
        sides = [data for data in (self.truth, self.ranking) if isinstance(data, Lists | Interactions)]
        known = next((data for data in sides if len(data.codes)), self.truth)
        notes["ids"] = {"user": known.cases.kind, "item": known.items.kind}
        options = self.ranking_options
        name: Any = options.backend
        backend = BACKENDS.get(name) if isinstance(name, str) else None
        if backend is not None and backend.match_lists is None and isinstance(self.ranking, Lists):
            notes["backend"] = (
                f"backend={backend.name!r} ranks factors and scores; ready lists were matched on the CPU"
            )
        of_catalogue = any(request.metric.kind == "catalogue" for request in self.requests)
        if of_catalogue and self.n_items is None and isinstance(self.ranking, Lists):
            notes["catalogue_of"] = ["train"] * (self.context.train is not None) + ["lists", "truth"]
        given = options.seen is not None or options.eligible is not None or self.context.train is not None
        if not given and not isinstance(self.ranking, Lists):
            from recsys.ranks.sources import Scores

            unless = ", unless their score is -inf" if isinstance(self.ranking, Scores) else ""
            notes["seen"] = f"no seen items were given, so training items are ranked too{unless}"
        return notes

    def partial(self, conventions: Conventions) -> Partial:
        """Evaluate every request for every case of the lists and the truth, by group if `by` is set."""
        judged, context = self.rank_truth(conventions)
        partial = measure(judged, self.requests, conventions, context)
        if self.by is not None:
            from recsys.evaluation.groups import with_strata

            partial = with_strata(
                partial, judged, self.requests, conventions=conventions, context=context, by=self.by
            )
        return with_undecided(partial, judged, conventions)

    def rank_truth(self, conventions: Conventions) -> tuple[RankedTruth, Context]:
        """Return the places of the judged items, and the context of the metrics."""
        ranking, how = self.ranking, self.ranking_options
        catalogue = self.catalogue if isinstance(ranking, Lists) else ranking.catalogue
        truth, counts = apply_truth_rules(self.truth, catalogue, how.seen, conventions)
        if any(request.conventions(conventions).judged_only == "yes" for request in self.requests):
            how = replace(how, deepest=None)  # places among judged items need every place
        if self.clusters is not None:  # they stand for those of the tables
            truth = replace(truth, clusters=None)
            ranking = replace(ranking, clusters=None) if isinstance(ranking, Lists) else ranking
        judged: Any
        if isinstance(ranking, Lists):
            judged = match_truth(
                ranking,
                truth,
                complete=self.complete,
                backend=how.backend,
                threads=how.threads,
                shared=self.shared,
                rank_gaps=conventions.rank_gaps,
                counts=counts,
            )
        else:
            judged = ranking.judge(truth, how)
            if self.shared and len(truth.cases) and not judged.n_candidates.any():
                check_user_ids(ranking, truth)
            judged = replace(judged, counts={**judged.counts, **counts})
        if self.item_weights is not None:
            judged = replace(judged, item_weights=weight_by_item(judged, self.item_weights))
        if self.clusters is not None:
            judged = replace(judged, clusters=cluster_by_case(judged.cases, self.clusters))
        n_items = self.n_items
        if not isinstance(ranking, Lists):
            n_items = ranking.n_items
            catalogue = Ids(np.arange(n_items), is_range=True) if catalogue is None else catalogue
        weights = None if self.case_weights is None else weight_by_case(judged.cases, self.case_weights)
        if self.shared:
            refuse_no_weight(weights)
        context = replace(
            self.context,
            catalogue=catalogue,
            n_items=n_items,
            case_weights=weights,
            complete=self.complete or not isinstance(ranking, Lists),
        )
        negatives = negative_pairs(self.truth, conventions)
        if negatives is not None:
            context = replace(context, pooled=pooled_pairs(judged, negatives))
        return judged, context

    def bounds(self, conventions: Conventions, values: Mapping[str, float]) -> Bounds:
        """Compare the values with what lists could reach at best and what chance gives."""
        from recsys.evaluation.bounds.best_and_floor import bounds_of

        judged, context = self.rank_truth(conventions)
        seen = self.ranking_options.seen
        return bounds_of(judged, self.requests, values, rules=conventions, context=context, seen=seen)

    def of_cases(self, cases: Ids) -> EvaluationRun:
        """Return the same evaluation of some cases only."""
        from recsys.evaluation.stopping import restrict_to_cases

        ranking = self.ranking
        return replace(
            self,
            ranking=restrict_to_cases(ranking, cases) if isinstance(ranking, Lists) else ranking,
            truth=restrict_to_cases(self.truth, cases),
            ranking_options=replace(self.ranking_options, progress=None),
            shared=False,
        )

    def steps(
        self, conventions: Conventions, stop: StopWhen, *, with_truth: bool = False
    ) -> SteppedEvaluation:
        """Return the same evaluation, to be taken block by block of all cases, or of those with truth."""
        from recsys.evaluation.stopping import SteppedEvaluation

        cases, users, weights = self.truth.cases, self.truth.clusters, None
        if isinstance(self.ranking, Lists):
            judged = match_truth(self.ranking, self.truth)
            cases = cases if with_truth else judged.cases
            users = None if judged.clusters is None else judged.clusters[judged.cases.code_of(cases.values)]
        if self.clusters is not None:
            users = cluster_by_case(cases, self.clusters)
        if self.case_weights is not None:
            weights = weight_by_case(cases, self.case_weights)
        return SteppedEvaluation(
            cases,
            lambda block: self.of_cases(block).partial(conventions),
            self.requests,
            conventions,
            stop=stop,
            ranges=self.ranges(conventions),
            weights=weights,
            clusters=users,
        )


class CommonInputs:
    """What all users share: the metrics, and every input but lists and truth, read once when it is needed."""

    def __init__(self, metrics: Metrics, options: EvaluationOptions) -> None:
        if options.ids not in (None, *ID_KINDS):
            raise UnknownNameError("value of ids", options.ids, ID_KINDS)
        self.options = options
        self.requests = parse_all(metrics, options.k)
        if options.aggregate is not None:
            from recsys.stats.aggregates import Aggregate

            aggregate = Aggregate.of(options.aggregate)
            self.requests = [replace(request, aggregate=aggregate) for request in self.requests]
        self.exclude = exclude_items(options.exclude)
        self.candidates = LISTS

    @cached_property
    def seen(self) -> Interactions | None:
        """What each user had already."""
        options = self.options
        return load_optional_interactions(options.seen, "seen", options.columns, options.ids)

    @cached_property
    def eligible(self) -> Interactions | None:
        """The only items of each user."""
        options = self.options
        return load_optional_interactions(options.eligible, "eligible", options.columns, options.ids)

    @cached_property
    def context(self) -> Context:
        """What is known about items and users, but for the reference and what may come with the users."""
        options = self.options
        return read_context(
            train=load_optional_interactions(options.train, "train", options.columns, options.ids),
            popularity=options.popularity,
            items=options.items,
            users=options.users,
            embeddings=options.embeddings,
            profiles=options.profiles,
            intents=options.intents,
            never=self.exclude,
        )

    @cached_property
    def reference_model(self) -> Any:
        """The model that makes the reference lists, None if they are ready; its rows have the same ids."""
        reference = self.options.reference
        is_model = isinstance(reference, UsersByItems) or is_model_path(reference)
        if not is_model and not hasattr(reference, "item_factors"):
            return None
        return load_ranking(reference, ids=self.options.ids)

    @cached_property
    def reference(self) -> Lists | None:
        """The lists of another model, as long as the metrics read them."""
        model = self.reference_model
        if model is None:
            reference, ids = self.options.reference, self.options.ids
            if isinstance(reference, str | Path):
                return _read_lists_file(reference, "reference", self.options.columns, ids)
            return None if reference is None else _check_id_kind(read_reference(reference), "reference", ids)
        of_reference = [r for r in self.requests if "reference" in r.metric.needs]
        top: Lists = model.top(None, list_length(of_reference or self.requests, model), RankingOptions())
        return top

    @cached_property
    def catalogue(self) -> tuple[Ids | None, int | None]:
        """The ids of all items and their number."""
        return parse_catalogue(self.options.catalogue)

    @cached_property
    def by(self) -> Any:
        """The groups that a name stands for, or `by` as it was given."""
        if not isinstance(self.options.by, str):
            return self.options.by
        from recsys.evaluation.groups import groups_from_name

        return groups_from_name(self.options.by, self.context)

    @cached_property
    def silenced(self) -> frozenset[str]:
        """The codes of the suppressed cautions."""
        if self.options.cautions is None:
            return frozenset()
        from recsys.evaluation.cautions import silenced_codes

        return silenced_codes(self.options.cautions)

    @cached_property
    def complete(self) -> bool:
        """Whether each list ranks every candidate."""
        return check_flag("full_ranking", self.options.full_ranking)

    def read(self) -> None:
        """Read everything now."""
        _ = self.seen, self.eligible, self.context, self.reference, self.catalogue
        _ = self.silenced, self.complete, self.by

    def run_of(
        self,
        lists: Any,
        truth: Any,
        *,
        seen: Any = None,
        eligible: Any = None,
        is_batch: bool = False,
    ) -> EvaluationRun:
        """Return the evaluation of these users; those of a batch may be without rows, and on different sides.

        `seen` and `eligible` are of these users alone, where they were not given for all.
        """
        options, columns, ids = self.options, self.options.columns, self.options.ids
        can_recommend = not _is_data(lists) and callable(getattr(lists, "recommend", None))
        asks = can_recommend and not hasattr(lists, "user_factors")
        ranking = None if asks else load_ranking(lists, columns, ids=ids, allow_empty=is_batch)
        known = load_interactions(truth, "truth", columns, ids=ids, allow_empty=is_batch)
        if ranking is None:
            longest = largest_k(self.requests)
            if longest is None:
                raise CutoffError(
                    f"{type(lists).__name__} has to be asked for lists of some length, and a metric has no "
                    "cut-off.",
                    hint='Give every metric one, such as "mrr@10".',
                )
            from recsys.ranks.sources import lists_from_recommender

            asked = lists_from_recommender(lists, known.cases.values, longest)
            ranking = load_ranking(asked, columns, allow_empty=is_batch)
        needs = {need for request in self.requests for need in request.metric.needs}
        ready = isinstance(ranking, Lists)
        chosen = self.exclude is not None or options.eligible is not None or eligible is not None
        if ready and chosen and "eligible" not in needs:
            raise InputError(
                "exclude= and eligible= choose candidates, and ready lists have none.", table="lists"
            )
        if not ready and options.catalogue is not None:
            hint = Phrase("Leave out {catalogue=}, or use {exclude=}.")
            raise InputError("the items of the model are the catalogue.", hint=hint)
        ranking_options = RankingOptions(
            seen=self._of_users("seen", seen),
            eligible=self._of_users("eligible", eligible),
            exclude=self.exclude,
            backend=options.backend,
            threads=options.threads,
            progress=options.progress,
            k=list_length(self.requests, ranking) if "lists" in needs else None,
            deepest=max_place_read(self.requests),
        )
        context = self.context
        if self.reference_model is not None:
            try:
                self.reference_model.check_ids(known, "truth")
            except InputError as error:
                error.hint = Phrase("Give the reference its ids: {Factors.user_ids=}, {Factors.item_ids=}.")
                raise
        catalogue, n_items = self.catalogue
        histories = {"train": options.train, "seen": options.seen if seen is None else seen}
        pairs = [name for name, data in histories.items() if isinstance(data, list | tuple | np.ndarray)]
        if pairs:
            from recsys.evaluation.cautions import are_pairs

            pairs = [name for name in pairs if are_pairs(histories[name], known.cases.values)]
        return EvaluationRun(
            ranking,
            known,
            self.requests,
            ranking_options,
            replace(context, reference=self.reference, eligible=ranking_options.eligible),
            catalogue=catalogue,
            n_items=n_items,
            complete=self.complete,
            clusters=options.clusters,
            case_weights=options.case_weights,
            item_weights=options.item_weights,
            by=self.by,
            shared=not is_batch,
            silenced=self.silenced,
            pairs=tuple(pairs),
            candidates=self.candidates,
        )

    def _of_users(self, name: str, data: Any) -> Interactions | None:
        """Return what was given for all users, or with some of them."""
        for_all: Interactions | None = getattr(self, name)
        if data is None:
            return for_all
        if for_all is not None:
            raise InputError(
                f"{name}= was given for all users, and again with some of them.",
                table=name,
                hint=f"Pass {name}= once: to the Evaluator, or to each update.",
            )
        return load_interactions(data, name, self.options.columns, ids=self.options.ids, allow_empty=True)


def load_ranking(
    lists: Any,
    columns: Mapping[str, Any] | None = None,
    *,
    ids: IdKind | None = None,
    allow_empty: bool = False,
) -> Lists | Source:
    """Ready lists, or a source that ranks the catalogue."""
    if isinstance(lists, UsersByItems):
        return cast("Source", lists)
    if not _is_data(lists) and (callable(lists) or any(hasattr(lists, n) for n in MODEL_ATTRIBUTES)):
        from recsys.ranks.sources import from_model

        return from_model(lists)
    if is_model_path(lists):
        from recsys.ranks.sources import load_model

        return load_model(lists, ids=ids or "str")
    if isinstance(lists, str | Path):
        ready = _read_lists_file(lists, "lists", columns, ids)
    else:
        if hasattr(lists, "detach") or (isinstance(lists, np.ndarray) and lists.dtype.kind == "f"):
            values = as_array(lists)
            if values.dtype.kind == "f" and (np.isfinite(values) & (values != np.floor(values))).any():
                raise InputError(
                    f"lists came as {type(lists).__name__} of shape {values.shape} that holds fractions; "
                    "items are whole numbers or text.",
                    table="lists",
                    hint="Did you mean recsys.Scores(matrix)? It ranks all items by their scores.",
                )
        ready = read_lists(lists, columns=columns_for("lists", columns), allow_empty=allow_empty)
        _check_id_kind(ready, "lists", ids)
    return ready


def _read_lists_file(path: str | Path, table: str, columns: Any, ids: IdKind | None) -> Lists:
    from recsys.inputs.files import read_file

    return read_file(path, "lists", columns=columns_for(table, columns), ids=ids or "str")


def _check_id_kind(data: _Data, table: str, ids: IdKind | None) -> _Data:
    """Raise an error if data in memory has ids of another type than asked for: only files are converted."""
    for what, own in (("user", data.cases), ("item", data.items)):
        if ids in ("str", "int") and len(own) and own.kind != ids:
            raise IdTypeError(
                Phrase("{ids=} is for files, and the ", ids=ids)
                + f"{what} ids of data in memory are {own.kind}.",
                table=table,
                column=what,
                hint=Phrase("Convert them, for example with .astype({}), or leave out {ids=}.", ids),
            )
    return data


def _is_data(lists: Any) -> bool:
    """Return whether it is a container or a table, which may have a column of any name."""
    return isinstance(lists, np.ndarray | dict | list | tuple) or hasattr(lists, "__dataframe__")


def load_interactions(
    data: Any,
    table: str,
    columns: Mapping[str, Any] | None,
    *,
    ids: IdKind | None = None,
    allow_empty: bool = False,
) -> Interactions:
    """Return the items each user had; `table` is the name in errors and in `columns`."""
    if isinstance(data, str | Path):
        from recsys.inputs.files import read_file

        data = read_file(data, "truth", columns=columns_for(table, columns), ids=ids or "str")
    interactions = read_interactions(
        data,
        table=table,
        columns=columns_for(table, columns),
        pairs_only=table in _PAIRS_ONLY,
        allow_empty=allow_empty,
        negatives=table == "truth",
    )
    return _check_id_kind(interactions, table, ids)


def load_optional_interactions(
    data: Any, table: str, columns: Mapping[str, Any] | None = None, ids: IdKind | None = None
) -> Interactions | None:
    """Read a history, or return None without one; `seen={}` is a history in which no user had anything."""
    is_empty = table == "seen" and isinstance(data, Mapping) and not data
    return None if data is None else load_interactions(data, table, columns, ids=ids, allow_empty=is_empty)


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


def highest_of(low: float | None, high: float | None) -> float | None:
    """Return the highest grade, from the ends of a column.

    Return None where all are 1, as without grades, or where there is no grade.
    """
    is_graded = high is not None and math.isfinite(high) and not low == high == 1.0
    return float(high) if is_graded and high is not None else None


def columns_for(table: str, columns: Any) -> Any:
    """Return the column names of one table, if each table has its own."""
    per_table = isinstance(columns, Mapping) and any(isinstance(v, Mapping) for v in columns.values())
    return columns.get(table) if per_table else columns


def list_length(requests: Sequence[Request], ranked: Lists | Source) -> int:
    """Return the length the lists must have for the metrics about the items shown."""
    longest = largest_k(r for r in requests if "lists" in r.metric.needs)
    if longest is not None:
        return longest
    return 1 if isinstance(ranked, Lists) else ranked.n_items


def exclude_items(items: Iterable[Any] | None) -> Iterable[Any] | None:
    """Return the items of `exclude`, checked; a list where they can be read only once."""
    if items is not None:
        check_ids(items, "exclude", "item ids")
    return list(items) if isinstance(items, Iterator) else items  # they are read several times


def parse_catalogue(catalogue: int | Iterable[Any] | None) -> tuple[Ids | None, int | None]:
    """Return the ids of a catalogue and their number, or the number alone."""
    if catalogue is None or isinstance(catalogue, int | np.integer):
        return None, check_n_items(catalogue)
    check_ids(catalogue, "catalogue", "all item ids, or their number")
    values = ids_to_array(catalogue, table="catalogue", column="item")
    if len(values) == 0:
        raise InputError(
            "the catalogue is empty.", table="catalogue", hint="Pass all item ids, or their number."
        )
    ids, _ = encode(values, table="catalogue", column="item")
    return ids, len(ids)


def apply_truth_rules(
    truth: Interactions, catalogue: Ids | None, seen: Interactions | None, conventions: Conventions
) -> tuple[Interactions, dict[str, int]]:
    """Count truth items of a negative grade, outside the catalogue or already seen; drop or refuse them."""
    counts = {n: truth.notes[n] for n in ("repeated_rows", "conflicting_grades") if truth.notes.get(n)}
    negatives = negative_pairs(truth, conventions)
    if negatives is not None:
        counts["negative_grades"] = int(negatives.indptr[-1])
        truth = truth.kept(np.asarray(truth.grades) >= 0)
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


def negative_pairs(truth: Interactions, conventions: Conventions) -> Interactions | None:
    """Return the part of the truth with negative grades, None if there is none.

    Raise an error if they are refused.
    """
    if truth.grades is None or not truth.notes.get("negative_grades"):
        return None
    if conventions.negative_grades == "error":
        refuse_negative_grades(truth, "truth")
    return truth.kept(truth.grades < 0)


def pooled_pairs(judged: RankedTruth, negatives: Interactions) -> Int:
    """Pairs of a negative grade as metrics find them: the code of the case times all items, plus the item."""
    case = np.repeat(judged.cases.code_of(negatives.cases.values), negatives.sizes)
    item = judged.items.code_of(negatives.items.values)[negatives.codes]
    return np.asarray((case * len(judged.items) + item)[(case >= 0) & (item >= 0)])


def with_undecided(partial: Partial, judged: RankedTruth, conventions: Conventions) -> Partial:
    """Return the result with the number of judged items whose place depends on the order of equal scores."""
    _, undecided = (judged.of_judged() if conventions.judged_only == "yes" else judged).n_undecided()
    if not undecided:
        return partial
    counts = {**partial.counts, "tied": undecided}
    warn_of_ties(counts, conventions)
    return replace(partial, counts=counts)


def check_user_ids(ranked: Source, truth: Interactions) -> None:
    """Raise an error if no user of the truth is known to the model, so that the ids must differ."""
    rows = getattr(ranked, "user_rows", None)
    if rows is not None and rows.size and (rows.row_of(truth.cases.values) < 0).all():
        raise InputError(
            f"no user of the truth ({truth.cases.name(0)!r}, …) has a row in the model "
            f"({rows.ids.name(0)!r}, …).",
            column="user",
            hint=differing_ids_hint(rows.ids, truth.cases, "user"),
        )
