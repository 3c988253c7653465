"""The verbs: evaluate, recommend, Evaluator. Wiring only; nothing is computed here.

Inputs are read once into Lists and Interactions, paired, judged, measured and summed up; each step
lives in the module named after it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial as partial_of
from pathlib import Path
from typing import Any

import numpy as np

from recsys.attributes import context_of, read_reference
from recsys.conventions import Conventions
from recsys.counted import Counted, Judged
from recsys.engine import measure, merge
from recsys.errors import ConventionError, CutoffError, InputError, MergeError, TieWarning
from recsys.files import read_file
from recsys.frames import read_interactions, read_lists
from recsys.given import (
    Options,
    case_weights_of,
    clusters_of,
    item_weights_of,
    settle_truth,
)
from recsys.judge import Paired, pair
from recsys.limits import Bounds, bounds_of
from recsys.plan import Request, deepest, largest_k, parse_all
from recsys.results import Evaluation
from recsys.sources import Asked, Factors, Scores, Source, from_model, recommended, recommends
from recsys.stopping import Lane, Steps, StopWhen, only, until
from recsys.strata import with_strata
from recsys.types import Context, Ids, Interactions, Lists, Partial

Metrics = str | Request | Iterable[str | Request] | None
AnyConventions = Conventions | str | Mapping[str, Any] | None


def evaluate(
    lists: Any,
    truth: Any,
    metrics: Metrics = None,
    *,
    k: int | Sequence[int] | None = None,
    conventions: AnyConventions = None,
    by: str | Mapping[Any, Any] | Callable[[Any], Any] | None = None,
    columns: Mapping[str, Any] | None = None,
    catalogue: int | Iterable[Any] | None = None,
    seen: Any = None,
    complete: bool = False,
    clusters: Mapping[Any, Any] | None = None,
    case_weights: Mapping[Any, float] | None = None,
    item_weights: Mapping[Any, float] | None = None,
    never: Iterable[Any] | None = None,
    eligible: Any = None,
    train: Any = None,
    popularity: Any = None,
    items: Any = None,
    users: Any = None,
    embeddings: Any = None,
    profiles: Any = None,
    reference: Any = None,
    intents: Any = None,
    backend: str = "auto",
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    stop_when: float | StopWhen | Lane | None = None,
) -> Evaluation:
    """Score recommendations against what turned out to be relevant.

    Args:
        lists: who was recommended what, best first: {user: [items]}, {user: [(item, score)]}, a table with
            user and item columns (and rank or score), a 2-D array, a scipy sparse matrix of scores, Lists;
            a file's path; what ranks the whole catalogue: Factors(U, V), Scores(matrix), a factor model; or
            any model with recommend(user, k), which is asked for the users of the truth.
        truth: what was relevant: {user: {items}}, {user: {item: grade}}, a table (with a grade column if
            relevance is graded), a scipy sparse matrix, a file's path, Interactions.
        metrics: names such as "ndcg@10" or "ndcg(gain=exp2)@10"; `recsys metrics` lists them.
        k: cut-offs for the metrics that name none.
        conventions: a preset's name ("trec_eval", "rectools", …), a dict of decisions, or Conventions.
        by: results per group: {user: group}, a function of the user id, "activity", "cold_user",
            "popularity", "cold_item", "item_age" (made of train), or a column of users or items.
        columns: names where detection fails: {"user": "uid", "item": "sku"}, or one such mapping under
            "lists" and one under "truth".
        catalogue: all item ids, or how many there are, for metrics and conventions that need them.
        seen: what each user had already: never recommended by factors and scores; with ready lists it only
            counts relevant items among it.
        complete: True when each list ranks every candidate (needed by auc, average_rank, …).
        clusters: user of each case, where a user has several cases.
        case_weights: weight of each user in the means.
        item_weights: weight of each relevant item (recall, hits, dcg, ndcg).
        never: items no user may be recommended (factors and scores).
        eligible: the only items each user may be recommended, like `truth` (factors and scores).
        train: what each user had before, like `truth`: popularity, novelty, histories, strata.
        popularity: {item: how many users had it}, where there is no train.
        items: what is known about the items: a table with an item column, or {column: {item: value}}.
        users: what is known about the users: a table with a user column, or {column: {user: value}}.
        embeddings: a vector for each item: {item: vector}, (ids, matrix), or a matrix with a row an item.
        profiles: a vector for each user, likewise; the mean of what the user had in train without.
        reference: other lists to hold these against: like `lists`, or one list everybody would get.
        intents: what a relevant item is relevant for: a column of items, or {user: {item: [intents]}}.
        backend: "auto", "native" or "reference"; the result is the same.
        threads: how many threads; the result is the same.
        progress: called with (blocks done, blocks in all) while factors or scores are ranked.
        stop_when: take users in random order and stop when the intervals are this narrow (0.01), or as a
            StopWhen says; they hold at whatever time it stops, and the share of work saved is shown.

    >>> print(
    ...     evaluate(
    ...         {"ann": ["a", "b", "c"], "bob": ["b", "d"]},
    ...         {"ann": {"a", "c"}, "bob": {"d"}},
    ...         ["recall@2", "ndcg@2"],
    ...     )
    ... )
    metric     value  cases
    --------  ------  -----
    recall@2  0.7500      2
    ndcg@2    0.6220      2
    <BLANKLINE>
    2 users
    conventions: default
    """
    requests = parse_all(metrics, k)
    chosen = Conventions.of(conventions)
    ready = None if recommends(lists) else _ranked(lists, columns)
    known = _history(truth, "truth", columns)
    read = ready if ready is not None else _ranked(_asked_for(lists, known, requests), columns)
    chosen = _with_max_grade(chosen, requests, known)
    shows = any("lists" in r.metric.needs for r in requests)
    judges = any("eligible" in r.metric.needs for r in requests)
    if isinstance(read, Lists) and (never is not None or eligible is not None) and not judges:
        raise InputError("never= and eligible= choose candidates, and ready lists have none.", table="lists")
    if not isinstance(read, Lists) and catalogue is not None:
        raise InputError(
            "the items of the model are the catalogue.", hint="Leave out catalogue=, or use never=."
        )
    asked = Asked(
        seen=None if seen is None else _history(seen, "seen", columns),
        eligible=None if eligible is None else _history(eligible, "eligible", columns),
        never=never,
        backend=backend,
        threads=threads,
        progress=progress,
        k=_list_length(requests, read) if shows else None,
        deepest=deepest(requests),
    )
    options = Options(
        catalogue=catalogue,
        asked=asked,
        complete=complete,
        clusters=clusters,
        case_weights=case_weights,
        item_weights=item_weights,
        context=context_of(
            train=None if train is None else _history(train, "train", columns),
            popularity=popularity,
            items=items,
            users=users,
            embeddings=embeddings,
            profiles=profiles,
            reference=None if reference is None else _reference(reference, requests),
            intents=intents,
            eligible=asked.eligible,
            never=never,
        ),
        by=by,
    )

    # It is handed itself: a function that knew its own name would keep lists and truth in memory.
    def run(rerun: Callable[..., Evaluation], under: Conventions) -> Evaluation:
        notes = {"lists": dict(read.notes) if isinstance(read, Lists) else {}, "truth": dict(known.notes)}
        if stop_when is None:
            partial = _partial(read, known, requests, under, options)
        else:
            partial, notes["stopped"] = _until(
                read, known, requests, under, options=options, stop_when=stop_when
            )

        def limits(values: Mapping[str, float]) -> Bounds:
            judged, context = _judged(read, known, under, options)
            return bounds_of(judged, requests, values, rules=under, context=context, seen=asked.seen)

        again = partial_of(rerun, rerun)
        return Evaluation(partial, requests, under, notes=notes, again=again, limits=limits)

    return run(run, chosen)


def _until(
    ranked: Lists | Source,
    truth: Interactions,
    requests: Sequence[Request],
    conventions: Conventions,
    *,
    options: Options,
    stop_when: float | StopWhen | Lane,
) -> tuple[Partial, dict[str, Any]]:
    """The result of as many cases as it takes, and what is to be said about that."""
    cases, each = truth.cases, copy(options)
    if isinstance(ranked, Lists):
        pair(ranked, truth)
        cases = ranked.cases.union(truth.cases, what="user")[0]
    each.shared, each.asked = False, replace(options.asked, progress=None)

    def partial(block: Ids) -> Partial:
        lists = only(ranked, block) if isinstance(ranked, Lists) else ranked
        return _partial(lists, only(truth, block), requests, conventions, each)

    weights = options.case_weights
    largest = None if weights is None else max(map(float, weights.values()), default=None)
    steps = Steps(cases, truth.cases, partial, requests, conventions, largest)
    if isinstance(stop_when, Lane):
        return stop_when.begin(steps)
    return until(steps, StopWhen.of(stop_when), options.asked.progress)


def _partial(
    ranked: Lists | Source,
    truth: Interactions,
    requests: Sequence[Request],
    conventions: Conventions,
    options: Options,
) -> Partial:
    judged, context = _judged(ranked, truth, conventions, options)
    partial = measure(judged, requests, conventions, context)
    if options.by is not None:
        partial = with_strata(
            partial, judged, requests, conventions=conventions, context=context, by=options.by
        )
    return _warned_of_ties(partial, judged, conventions)


def _judged(
    ranked: Lists | Source, truth: Interactions, conventions: Conventions, options: Options
) -> tuple[Paired | Counted, Context]:
    """Where the judged items landed, and all that is known besides."""
    catalogue = options.catalogue if isinstance(ranked, Lists) else ranked.catalogue
    truth, counts = settle_truth(truth, catalogue, options.asked.seen, conventions)
    judged: Paired | Counted
    if isinstance(ranked, Lists):
        asked = options.asked
        judged = pair(
            ranked,
            truth,
            complete=options.complete,
            backend=asked.backend,
            threads=asked.threads,
            shared=options.shared,
        )
    else:
        judged = ranked.judge(truth, options.asked)
    judged.counts.update(counts)
    if options.item_weights is not None:
        judged = replace(judged, item_weights=item_weights_of(judged, options.item_weights), _found={})
    if options.clusters is not None:
        judged = replace(judged, clusters=clusters_of(judged, options.clusters))
    weights = None if options.case_weights is None else case_weights_of(judged, options.case_weights)
    n_items = options.n_items if isinstance(ranked, Lists) else ranked.n_items
    complete = options.complete or not isinstance(ranked, Lists)
    if catalogue is None and not isinstance(ranked, Lists):
        catalogue = Ids(np.arange(ranked.n_items), is_range=True)
    context = replace(
        options.context, catalogue=catalogue, n_items=n_items, case_weights=weights, complete=complete
    )
    return judged, context


def _warned_of_ties(partial: Partial, judged: Judged, conventions: Conventions) -> Partial:
    found, undecided = judged.n_undecided()
    if not undecided:
        return partial
    if conventions.ties in ("by_id", "by_id_desc", "given"):
        warnings.warn(
            f"{undecided:,} of {found:,} judged items found ({undecided / found:.1%}) share their score with "
            f"another item, so the result depends on how ties are ordered (here: {conventions.ties}). "
            "ties='expected' gives the mean over all orders, ties='best' and ties='worst' the range.",
            TieWarning,
            stacklevel=5,
        )
    return replace(partial, counts={**partial.counts, "tied": undecided})


class Evaluator:
    """Evaluates users batch by batch; memory holds one row a user, never the lists.

    `known` is what metrics about the items shown need, as for evaluate: train=, popularity=, items=, users=,
    embeddings=, profiles=, reference=, intents=.

    >>> evaluator = Evaluator(["recall@2"])
    >>> _ = evaluator.update({1: [3, 4]}, {1: [3]}).update({2: [5, 6]}, {2: [7]})
    >>> evaluator.result()["recall@2"]
    0.5
    """

    def __init__(
        self,
        metrics: Metrics = None,
        *,
        k: int | Sequence[int] | None = None,
        conventions: AnyConventions = None,
        columns: Mapping[str, Any] | None = None,
        catalogue: int | Iterable[Any] | None = None,
        complete: bool = False,
        **known: Any,
    ) -> None:
        self.requests = parse_all(metrics, k)
        self.conventions = Conventions.of(conventions)
        self._columns = columns
        context = context_of(**known)
        self._options = Options(catalogue=catalogue, complete=complete, shared=False, context=context)
        self._parts: list[Partial] = []

    def update(self, lists: Any, truth: Any) -> Evaluator:
        """Add users that no earlier batch held."""
        read, known = _ranked(lists, self._columns), _history(truth, "truth", self._columns)
        options = copy(self._options)
        if any("lists" in r.metric.needs for r in self.requests):
            options.asked = replace(options.asked, k=_list_length(self.requests, read))
        if _with_max_grade(self.conventions, self.requests, known) != self.conventions:
            raise ConventionError(
                "err needs to know the highest grade, which a batch cannot tell.",
                hint="Pass conventions={'max_grade': 5} to the Evaluator.",
            )
        self._parts.append(_partial(read, known, self.requests, self.conventions, options))
        return self

    def merge(self, other: Evaluator) -> Evaluator:
        """Take over the users of another Evaluator of the same metrics and conventions."""
        if not isinstance(other, Evaluator):
            raise MergeError(f"an Evaluator merges with another one, not with {type(other).__name__}.")
        if [*map(str, other.requests)] != [*map(str, self.requests)] or other.conventions != self.conventions:
            raise MergeError("the two evaluators differ in metrics or conventions.")
        self._parts.extend(other._parts)
        return self

    def reset(self) -> Evaluator:
        """Forget all users."""
        self._parts = []
        return self

    def result(self) -> Evaluation:
        """The evaluation of all users so far; equal to evaluating them at once."""
        if not self._parts:
            raise InputError("nothing was evaluated yet.", hint="Call update(lists, truth) first.")
        self._parts = [merge(self._parts)]
        return Evaluation(self._parts[0], self.requests, self.conventions)


def recommend(
    source: Any,
    k: int,
    *,
    users: Iterable[Any] | None = None,
    seen: Any = None,
    never: Iterable[Any] | None = None,
    eligible: Any = None,
    backend: str = "auto",
    threads: int | None = None,
) -> Lists:
    """The exact k best candidates of each user, as Lists that evaluate takes.

    >>> lists = recommend(Factors([[1.0, 0.0]], [[3.0, 1.0], [2.0, 2.0], [1.0, 5.0]]), 2, seen={0: [0]})
    >>> lists.codes.tolist(), lists.scores.tolist()
    ([1, 2], [2.0, 1.0])
    """
    ranked = source if isinstance(source, Factors | Scores) else from_model(source)
    if type(k) is not int or k < 1:
        raise CutoffError(f"k={k!r} is not a positive whole number.", hint="Use k >= 1, such as k=10.")
    asked = Asked(
        seen=None if seen is None else _history(seen, "seen", None),
        eligible=None if eligible is None else _history(eligible, "eligible", None),
        never=never,
        backend=backend,
        threads=threads,
    )
    return ranked.top(users, int(k), asked)


def _list_length(requests: Sequence[Request], ranked: Lists | Source) -> int:
    """How long the lists have to be for the metrics about the items shown."""
    longest = largest_k(r for r in requests if "lists" in r.metric.needs)
    if longest is not None:
        return longest
    return 1 if isinstance(ranked, Lists) else ranked.n_items


def _reference(reference: Any, requests: Sequence[Request]) -> Lists:
    """The lists of another model, as long as the metrics read them."""
    if isinstance(reference, Factors | Scores) or hasattr(reference, "item_factors"):
        ranked = reference if isinstance(reference, Factors | Scores) else from_model(reference)
        wanted = [r for r in requests if "reference" in r.metric.needs]
        return ranked.top(None, _list_length(wanted or requests, ranked), Asked())
    return read_reference(reference)


def _asked_for(lists: Any, truth: Interactions, requests: Sequence[Request]) -> Any:
    """What a model recommends to the users of the truth, where lists are all that it gives."""
    longest = largest_k(requests)
    if longest is None:
        raise CutoffError(
            f"{type(lists).__name__} has to be asked for lists of some length, and a metric has no cut-off.",
            hint='Give every metric one, such as "mrr@10".',
        )
    return recommended(lists, truth.cases.values, longest)


def _ranked(lists: Any, columns: Mapping[str, Any] | None) -> Lists | Source:
    if isinstance(lists, Factors | Scores):
        return lists
    if hasattr(lists, "user_factors") and hasattr(lists, "item_factors"):
        return from_model(lists)
    if isinstance(lists, str | Path):
        return read_file(lists, "lists", columns=_columns_for("lists", columns))
    return read_lists(lists, columns=_columns_for("lists", columns))


def _history(data: Any, table: str, columns: Mapping[str, Any] | None) -> Interactions:
    if isinstance(data, str | Path):
        data = read_file(data, "truth", columns=_columns_for(table, columns))
    return read_interactions(data, table=table, columns=_columns_for(table, columns))


def _columns_for(table: str, columns: Any) -> Any:
    if (
        columns is None
        or not isinstance(columns, Mapping)
        or not any(isinstance(v, Mapping) for v in columns.values())
    ):
        return columns
    return columns.get(table)


def _with_max_grade(
    conventions: Conventions, requests: Sequence[Request], truth: Interactions
) -> Conventions:
    graded = truth.grades is not None and len(truth.grades) > 0
    if (
        conventions.max_grade is not None
        or not graded
        or not any("max_grade" in r.metric.conventions for r in requests)
    ):
        return conventions
    return conventions.but(max_grade=float(truth.grades.max()))  # type: ignore[union-attr]
