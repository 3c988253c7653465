"""The functions evaluate and recommend: they read the inputs and connect the steps; nothing is computed here.

Inputs are read once into Lists and Interactions, matched, measured and summarised; each step lives in the
module named after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial as partial_of
from typing import Any

from recsys.conventions.decisions import AnyConventions, Conventions
from recsys.errors import CutoffError, InputError
from recsys.evaluation.bounds import Bounds, bounds_of
from recsys.evaluation.intake import (
    ask_model,
    list_length,
    load_interactions,
    load_optional_interactions,
    load_ranking,
    read_reference_lists,
)
from recsys.evaluation.options import EvaluationOptions, with_max_grade
from recsys.evaluation.results import Evaluation
from recsys.evaluation.run import rank_truth, run_once, run_until_clear
from recsys.evaluation.stopping import RaceEntry, StopWhen
from recsys.metrics.attributes import read_context
from recsys.metrics.requests import Metrics, max_place_read, parse_all
from recsys.ranks.sources import Factors, RankingOptions, Scores, from_model, recommends
from recsys.types import Lists


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
    full_ranking: bool = False,
    clusters: Mapping[Any, Any] | None = None,
    case_weights: Mapping[Any, float] | None = None,
    item_weights: Mapping[Any, float] | None = None,
    never: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
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
    stop_when: float | StopWhen | RaceEntry | None = None,
) -> Evaluation:
    """Score recommendations against what turned out to be relevant.

    Args:
        lists: who was recommended what, best first: {user: [items]}, {user: [(item, score)]}, a table with
            user and item columns (and rank or score), a 2-D array, a scipy sparse matrix of scores, Lists;
            a file's path; what ranks the whole catalogue: Factors(U, V), Scores(matrix), a factor model; or
            any model with recommend(user, k), which is called for the users of the truth.
        truth: what was relevant: {user: {items}}, {user: {item: grade}}, a table (with a grade column if
            relevance is graded), a scipy sparse matrix, a file's path, Interactions.
        metrics: names such as "ndcg@10" or "ndcg(gain=exp2)@10"; `recsys metrics` lists them.
        k: cut-offs for the metrics that name none.
        conventions: a preset's name ("trec_eval", "rectools", …), a dict of decisions, or Conventions.
        by: results per group: {user: group}, a function of the user id, "activity", "cold_user",
            "popularity", "cold_item", "item_age" (built from train), or a column of users or items.
        columns: column names if detection fails: {"user": "uid", "item": "sku"}, or one such mapping under
            "lists" and one under "truth".
        catalogue: all item ids, or their number, for metrics and conventions that need them.
        seen: what each user had already: never recommended by factors and scores; with ready lists it only
            counts relevant items among it.
        complete: True when each list ranks every candidate (needed by auc, average_rank, …).
        full_ranking: another name for `complete`.
        clusters: user of each case, if users have several cases.
        case_weights: weight of each user in the means.
        item_weights: weight of each relevant item (recall, hits, dcg, ndcg).
        never: items no user may be recommended (factors and scores).
        exclude: another name for `never`.
        eligible: the only items each user may be recommended, like `truth` (factors and scores).
        train: what each user had before, like `truth`: popularity, novelty, histories, strata.
        popularity: {item: how many users had it}, if there is no train.
        items: attributes of the items: a table with an item column, or {column: {item: value}}.
        users: attributes of the users: a table with a user column, or {column: {user: value}}.
        embeddings: a vector for each item: {item: vector}, (ids, matrix), or a matrix with one row per item.
        profiles: a vector for each user, likewise; by default the mean of the user's items in train.
        reference: other lists to compare these with: like `lists`, or one list for everybody.
        intents: what a relevant item is relevant for: a column of items, or {user: {item: [intents]}}.
        backend: "auto", "native" (compiled), "reference" (NumPy) or "cuda" (a GPU, through torch); the result
            has the same bits.
        threads: how many threads; the result is the same.
        progress: called with (blocks done, blocks in all) while factors or scores are ranked.
        stop_when: take users in random order and stop when the intervals are this narrow (0.01), or as a
            StopWhen says; the intervals are valid whenever it stops, and the share of work saved is printed.

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
    never, complete = _excluded_items(never, exclude), complete or full_ranking
    ready = None if recommends(lists) else load_ranking(lists, columns)
    known = load_interactions(truth, "truth", columns)
    ranking = ready if ready is not None else load_ranking(ask_model(lists, known, requests), columns)
    needs_lists = any("lists" in r.metric.needs for r in requests)
    needs_eligible = any("eligible" in r.metric.needs for r in requests)
    if isinstance(ranking, Lists) and (never is not None or eligible is not None) and not needs_eligible:
        raise InputError("never= and eligible= choose candidates, and ready lists have none.", table="lists")
    if not isinstance(ranking, Lists) and catalogue is not None:
        raise InputError(
            "the items of the model are the catalogue.", hint="Leave out catalogue=, or use never=."
        )
    ranking_options = RankingOptions(
        seen=load_optional_interactions(seen, "seen", columns),
        eligible=load_optional_interactions(eligible, "eligible", columns),
        never=never,
        backend=backend,
        threads=threads,
        progress=progress,
        k=list_length(requests, ranking) if needs_lists else None,
        deepest=max_place_read(requests),
    )
    options = EvaluationOptions(
        catalogue=catalogue,
        ranking_options=ranking_options,
        complete=complete,
        clusters=clusters,
        case_weights=case_weights,
        item_weights=item_weights,
        context=read_context(
            train=load_optional_interactions(train, "train", columns),
            popularity=popularity,
            items=items,
            users=users,
            embeddings=embeddings,
            profiles=profiles,
            reference=None if reference is None else read_reference_lists(reference, requests),
            intents=intents,
            eligible=ranking_options.eligible,
            never=never,
        ),
        by=by,
    )

    # The function receives itself: a closure over its own name would be a cycle that keeps lists in memory.
    def run(rerun: Callable[..., Evaluation], new_conventions: Conventions) -> Evaluation:
        effective = with_max_grade(new_conventions, requests, known)
        notes = {
            "lists": dict(ranking.notes) if isinstance(ranking, Lists) else {},
            "truth": dict(known.notes),
        }
        if stop_when is None:
            partial = run_once(ranking, known, requests, effective, options)
        else:
            partial, notes["stopped"] = run_until_clear(
                ranking, known, requests, effective, options=options, stop_when=stop_when
            )

        def compute_bounds(values: Mapping[str, float]) -> Bounds:
            judged, context = rank_truth(ranking, known, effective, options)
            return bounds_of(
                judged, requests, values, rules=effective, context=context, seen=ranking_options.seen
            )

        reevaluate = partial_of(rerun, rerun)
        return Evaluation(
            partial, requests, effective, notes=notes, reevaluate=reevaluate, compute_bounds=compute_bounds
        )

    return run(run, chosen)


def recommend(
    source: Any,
    k: int,
    *,
    users: Iterable[Any] | None = None,
    seen: Any = None,
    never: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
    eligible: Any = None,
    backend: str = "auto",
    threads: int | None = None,
) -> Lists:
    """The exact k best candidates of each user, as Lists that evaluate takes; `to_frame()` makes a table.

    >>> lists = recommend(Factors([[1.0, 0.0]], [[3.0, 1.0], [2.0, 2.0], [1.0, 5.0]]), 2, seen={0: [0]})
    >>> lists
    Lists(1 case, 2 items, 2 rows, with scores)
    >>> lists.to_frame().to_dict("list")
    {'user': [0, 0], 'item': [1, 2], 'score': [2.0, 1.0]}
    """
    ranked = source if isinstance(source, Factors | Scores) else from_model(source)
    if type(k) is not int or k < 1:
        raise CutoffError(f"k={k!r} is not a positive whole number.", hint="Use k >= 1, such as k=10.")
    ranking_options = RankingOptions(
        seen=load_optional_interactions(seen, "seen"),
        eligible=load_optional_interactions(eligible, "eligible"),
        never=_excluded_items(never, exclude),
        backend=backend,
        threads=threads,
    )
    return ranked.top(users, int(k), ranking_options)


def _excluded_items(never: Iterable[Any] | None, exclude: Iterable[Any] | None) -> Iterable[Any] | None:
    """The items of `never` or its other name `exclude`."""
    if never is not None and exclude is not None:
        raise InputError("never= and exclude= mean the same, and both were given.", hint="Pass one of them.")
    return exclude if never is None else never
