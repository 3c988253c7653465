"""One evaluation: read the inputs, rank the truth, measure, split by group; on all cases at once or on some.

An `EvaluationRun` holds what was read. It can be run again, under other conventions or case by case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial as bind
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import CutoffError, InputError, TieWarning, warn
from recsys.evaluation.engine import measure
from recsys.evaluation.options import EvaluationOptions, cluster_by_case, weight_by_case, weight_by_item
from recsys.evaluation.results import Evaluation
from recsys.inputs import read_interactions, read_lists
from recsys.inputs.ids import encode, ids_to_array
from recsys.metrics.attributes import read_context, read_reference
from recsys.metrics.registry import Metrics, Request, largest_k, max_place_read, parse_all
from recsys.ranks.ranked_truth import RankedTruth, match_truth
from recsys.ranks.sources import RankingOptions, UsersByItems
from recsys.types import Bool, Context, Ids, Interactions, Lists, Partial

if TYPE_CHECKING:
    from recsys.evaluation.bounds import Bounds
    from recsys.evaluation.stopping import SteppedEvaluation, StopWhen
    from recsys.ranks.sources import Source

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

    @classmethod
    def read(cls, lists: Any, truth: Any, metrics: Metrics, options: EvaluationOptions) -> EvaluationRun:
        """Read lists, truth and whatever else was given, each once."""
        requests = parse_all(metrics, options.k)
        columns, never = options.columns, exclude_items(options.never, options.exclude)
        is_data = isinstance(lists, np.ndarray | dict | list | tuple) or hasattr(lists, "__dataframe__")
        can_recommend = not is_data and callable(getattr(lists, "recommend", None))
        asks = can_recommend and not hasattr(lists, "user_factors")
        ranking = None if asks else load_ranking(lists, columns)
        known = load_interactions(truth, "truth", columns)
        if ranking is None:
            longest = largest_k(requests)
            if longest is None:
                raise CutoffError(
                    f"{type(lists).__name__} has to be asked for lists of some length, and a metric has no "
                    "cut-off.",
                    hint='Give every metric one, such as "mrr@10".',
                )
            from recsys.ranks.sources import lists_from_recommender

            ranking = load_ranking(lists_from_recommender(lists, known.cases.values, longest), columns)
        needs = {need for request in requests for need in request.metric.needs}
        ready = isinstance(ranking, Lists)
        if ready and (never is not None or options.eligible is not None) and "eligible" not in needs:
            raise InputError(
                "never= and eligible= choose candidates, and ready lists have none.", table="lists"
            )
        if not ready and options.catalogue is not None:
            raise InputError(
                "the items of the model are the catalogue.", hint="Leave out catalogue=, or use never=."
            )
        ranking_options = RankingOptions(
            seen=load_optional_interactions(options.seen, "seen", columns),
            eligible=load_optional_interactions(options.eligible, "eligible", columns),
            never=never,
            backend=options.backend,
            threads=options.threads,
            progress=options.progress,
            k=list_length(requests, ranking) if "lists" in needs else None,
            deepest=max_place_read(requests),
        )
        context = read_context(
            train=load_optional_interactions(options.train, "train", columns),
            popularity=options.popularity,
            items=options.items,
            users=options.users,
            embeddings=options.embeddings,
            profiles=options.profiles,
            reference=None if options.reference is None else _read_reference(options.reference, requests),
            intents=options.intents,
            eligible=ranking_options.eligible,
            never=never,
        )
        catalogue, n_items = parse_catalogue(options.catalogue)
        return cls(
            ranking,
            known,
            requests,
            ranking_options,
            context,
            catalogue=catalogue,
            n_items=n_items,
            complete=options.complete or options.full_ranking,
            clusters=options.clusters,
            case_weights=options.case_weights,
            item_weights=options.item_weights,
            by=options.by,
        )

    def evaluate(self, conventions: Conventions, stop_when: float | StopWhen | None = None) -> Evaluation:
        """The result, over all cases or over as many as `stop_when` needs."""
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
        )

    def effective(self, conventions: Conventions) -> Conventions:
        """The conventions with the highest grade of the truth, if a metric reads it and it was not set."""
        grades = self.truth.grades
        if conventions.max_grade is not None or grades is None or not len(grades):
            return conventions
        if not any("max_grade" in request.metric.conventions for request in self.requests):
            return conventions
        return conventions.but(max_grade=float(grades.max()))

    @property
    def notes(self) -> dict[str, Any]:
        """What was counted while lists and truth were read."""
        return {
            "lists": dict(self.ranking.notes) if isinstance(self.ranking, Lists) else {},
            "truth": dict(self.truth.notes),
        }

    def partial(self, conventions: Conventions) -> Partial:
        """Every request for every case of the lists and the truth, by group if `by` is set."""
        judged, context = self.rank_truth(conventions)
        partial = measure(judged, self.requests, conventions, context)
        if self.by is not None:
            from recsys.evaluation.groups import with_strata

            partial = with_strata(
                partial, judged, self.requests, conventions=conventions, context=context, by=self.by
            )
        found, undecided = judged.n_undecided()
        if not undecided:
            return partial
        if conventions.ties in ("by_id", "by_id_desc", "given"):
            warn(
                TieWarning,
                f"{undecided:,} of {found:,} judged items found ({undecided / found:.1%}) share their score "
                f"with another item, so the result depends on how ties are ordered (here: {conventions.ties})"
                ". ties='expected' gives the mean over all orders, ties='best' and ties='worst' the range.",
            )
        return replace(partial, counts={**partial.counts, "tied": undecided})

    def rank_truth(self, conventions: Conventions) -> tuple[RankedTruth, Context]:
        """The places of the judged items, and the context of the metrics."""
        ranking, how = self.ranking, self.ranking_options
        catalogue = self.catalogue if isinstance(ranking, Lists) else ranking.catalogue
        truth, counts = apply_truth_rules(self.truth, catalogue, how.seen, conventions)
        judged: Any
        if isinstance(ranking, Lists):
            judged = match_truth(
                ranking,
                truth,
                complete=self.complete,
                backend=how.backend,
                threads=how.threads,
                shared=self.shared,
                counts=counts,
            )
        else:
            judged = ranking.judge(truth, how)
            if self.shared and len(truth.cases) and not judged.n_candidates.any():
                _check_user_ids(ranking, truth)
            judged = replace(judged, counts={**judged.counts, **counts})
        if self.item_weights is not None:
            judged = replace(judged, item_weights=weight_by_item(judged, self.item_weights))
        if self.clusters is not None:
            judged = replace(judged, clusters=cluster_by_case(judged, self.clusters))
        n_items = self.n_items
        if not isinstance(ranking, Lists):
            n_items = ranking.n_items
            catalogue = Ids(np.arange(n_items), is_range=True) if catalogue is None else catalogue
        context = replace(
            self.context,
            catalogue=catalogue,
            n_items=n_items,
            case_weights=None if self.case_weights is None else weight_by_case(judged, self.case_weights),
            complete=self.complete or not isinstance(ranking, Lists),
        )
        return judged, context

    def bounds(self, conventions: Conventions, values: Mapping[str, float]) -> Bounds:
        """The values beside what lists could reach at best and what chance gives."""
        from recsys.evaluation.bounds.best_and_floor import bounds_of

        judged, context = self.rank_truth(conventions)
        seen = self.ranking_options.seen
        return bounds_of(judged, self.requests, values, rules=conventions, context=context, seen=seen)

    def of_cases(self, cases: Ids) -> EvaluationRun:
        """The same evaluation of some cases only."""
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
        """The same evaluation, to be taken block by block of all cases, or of those with truth."""
        from recsys.evaluation.stopping import SteppedEvaluation

        cases, weights = self.truth.cases, self.case_weights
        if isinstance(self.ranking, Lists):
            match_truth(self.ranking, self.truth)
            cases = cases if with_truth else self.ranking.cases.union(cases, what="user")[0]
        return SteppedEvaluation(
            cases,
            lambda block: self.of_cases(block).partial(conventions),
            self.requests,
            conventions,
            stop=stop,
            largest_weight=None if weights is None else max(map(float, weights.values()), default=None),
        )


def load_ranking(lists: Any, columns: Mapping[str, Any] | None = None) -> Lists | Source:
    """Ready lists, or a source that ranks the catalogue."""
    if isinstance(lists, UsersByItems):
        return cast("Source", lists)
    if hasattr(lists, "user_factors") and hasattr(lists, "item_factors"):
        from recsys.ranks.sources import from_model

        return from_model(lists)
    if isinstance(lists, str | Path):
        from recsys.inputs.files import read_file

        return read_file(lists, "lists", columns=_columns_for("lists", columns))
    return read_lists(lists, columns=_columns_for("lists", columns))


def load_interactions(data: Any, table: str, columns: Mapping[str, Any] | None) -> Interactions:
    """The items each user had; `table` is the name in errors and in `columns`."""
    if isinstance(data, str | Path):
        from recsys.inputs.files import read_file

        data = read_file(data, "truth", columns=_columns_for(table, columns))
    return read_interactions(
        data, table=table, columns=_columns_for(table, columns), bare=table in _PAIRS_ONLY
    )


def load_optional_interactions(
    data: Any, table: str, columns: Mapping[str, Any] | None = None
) -> Interactions | None:
    """The same, or None if there is no history."""
    return None if data is None else load_interactions(data, table, columns)


def _columns_for(table: str, columns: Any) -> Any:
    """The column names of one table, if each table has its own."""
    per_table = isinstance(columns, Mapping) and any(isinstance(v, Mapping) for v in columns.values())
    return columns.get(table) if per_table else columns


def _read_reference(reference: Any, requests: Sequence[Request]) -> Lists:
    """The lists of another model, as long as the metrics read them."""
    if isinstance(reference, UsersByItems) or hasattr(reference, "item_factors"):
        from recsys.ranks.sources import from_model

        ranked: Source = reference if isinstance(reference, UsersByItems) else from_model(reference)  # type: ignore[assignment]
        of_reference = [r for r in requests if "reference" in r.metric.needs]
        return ranked.top(None, list_length(of_reference or requests, ranked), RankingOptions())
    return read_reference(reference)


def list_length(requests: Sequence[Request], ranked: Lists | Source) -> int:
    """The length the lists must have for the metrics about the items shown."""
    longest = largest_k(r for r in requests if "lists" in r.metric.needs)
    if longest is not None:
        return longest
    return 1 if isinstance(ranked, Lists) else ranked.n_items


def exclude_items(never: Iterable[Any] | None, exclude: Iterable[Any] | None) -> Iterable[Any] | None:
    """The items of `never` or its other name `exclude`."""
    if never is not None and exclude is not None:
        raise InputError("never= and exclude= mean the same, and both were given.", hint="Pass one of them.")
    return exclude if never is None else never


def parse_catalogue(catalogue: int | Iterable[Any] | None) -> tuple[Ids | None, int | None]:
    """The ids of a catalogue and their number, or the number alone."""
    if isinstance(catalogue, float | str):
        raise InputError(
            f"catalogue={catalogue!r} is neither ids nor a number of items.", hint="Pass all item ids."
        )
    if catalogue is None or isinstance(catalogue, int | np.integer):
        if catalogue is not None and (isinstance(catalogue, bool) or catalogue < 1):
            raise InputError(
                f"catalogue={catalogue!r} is not a number of items.",
                hint="Pass all item ids, or their number.",
            )
        return None, None if catalogue is None else int(catalogue)
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
    """Count truth items outside the catalogue or already seen, and drop them if the conventions say so."""
    counts = {n: truth.notes[n] for n in ("repeated_rows", "conflicting_grades") if truth.notes.get(n)}
    for name, reference in (("unknown_items", catalogue), ("seen_truth", seen)):
        if reference is None:
            continue
        if isinstance(reference, Ids):
            reference.same_kind(truth.items, what="item")
            marks = (reference.code_of(truth.items.values) < 0)[truth.codes]
        else:
            marks = _in_history(truth, reference)
        rule, n_marked = getattr(conventions, name), int(marks.sum())
        if rule == "error" and n_marked:
            item = truth.items.name(truth.codes[np.argmax(marks)])
            why = "outside the catalogue" if name == "unknown_items" else "seen by the user before"
            raise InputError(
                f"{n_marked} relevant items are {why}, {item!r} for one.",
                table="truth",
                hint=f"Use {name}='miss' or {name}='drop'.",
            )
        if rule == "drop" and n_marked:
            truth = truth.kept(~marks)
        if n_marked:
            counts[name] = n_marked
    return truth, counts


def _in_history(truth: Interactions, seen: Interactions) -> Bool:
    seen.cases.same_kind(truth.cases, what="user")
    seen.items.same_kind(truth.items, what="item")
    width = max(len(seen.items), 1)
    seen_pairs = np.repeat(np.arange(len(seen.cases), dtype=np.int64), seen.sizes) * width + seen.codes
    case = np.repeat(seen.cases.code_of(truth.cases.values), truth.sizes)
    item = seen.items.code_of(truth.items.values)[truth.codes]
    known = (case >= 0) & (item >= 0)
    if len(seen_pairs) == 0:
        return np.zeros(len(known), dtype=bool)
    truth_pairs = case * width + item
    # The pairs of a history are sorted.
    at = np.minimum(np.searchsorted(seen_pairs, truth_pairs), len(seen_pairs) - 1)
    return np.asarray(known & (seen_pairs[at] == truth_pairs))


def _check_user_ids(ranked: Source, truth: Interactions) -> None:
    """Raise an error if no user of the truth is known to the model, so that the ids must differ."""
    rows = getattr(ranked, "user_rows", None)
    if rows is not None and rows.size and (rows.row_of(truth.cases.values, table="truth") < 0).all():
        raise InputError(
            f"no user of the truth ({truth.cases.name(0)!r}, …) has a row in the model "
            f"({rows.ids.name(0)!r}, …).",
            column="user",
            hint="Check that both sides use the same user ids.",
        )
