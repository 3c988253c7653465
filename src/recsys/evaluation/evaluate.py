"""The verbs evaluate and recommend. Wiring only; nothing is computed here.

Inputs are read once into Lists and Interactions, paired, judged, measured and summed up; each step
lives in the module named after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial as partial_of
from typing import Any

from recsys.conventions.decisions import AnyConventions, Conventions
from recsys.errors import CutoffError, InputError
from recsys.evaluation.bounds import Bounds, bounds_of
from recsys.evaluation.intake import (
    asked_of,
    history_if_given,
    history_of,
    list_length,
    ranked_of,
    reference_of,
)
from recsys.evaluation.options import EvaluationOptions, with_max_grade
from recsys.evaluation.results import Evaluation
from recsys.evaluation.run import judged_of, one_pass, until_clear
from recsys.evaluation.stopping import RaceEntry, StopWhen
from recsys.metrics.attributes import context_of
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
        full_ranking: another word for `complete`.
        clusters: user of each case, where a user has several cases.
        case_weights: weight of each user in the means.
        item_weights: weight of each relevant item (recall, hits, dcg, ndcg).
        never: items no user may be recommended (factors and scores).
        exclude: another word for `never`.
        eligible: the only items each user may be recommended, like `truth` (factors and scores).
        train: what each user had before, like `truth`: popularity, novelty, histories, strata.
        popularity: {item: how many users had it}, where there is no train.
        items: what is known about the items: a table with an item column, or {column: {item: value}}.
        users: what is known about the users: a table with a user column, or {column: {user: value}}.
        embeddings: a vector for each item: {item: vector}, (ids, matrix), or a matrix with a row an item.
        profiles: a vector for each user, likewise; the mean of what the user had in train without.
        reference: other lists to hold these against: like `lists`, or one list everybody would get.
        intents: what a relevant item is relevant for: a column of items, or {user: {item: [intents]}}.
        backend: "auto", "native" (compiled), "reference" (NumPy) or "cuda" (a GPU, through torch); the result
            has the same bits.
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
    never, complete = _excluded(never, exclude), complete or full_ranking
    ready = None if recommends(lists) else ranked_of(lists, columns)
    known = history_of(truth, "truth", columns)
    read = ready if ready is not None else ranked_of(asked_of(lists, known, requests), columns)
    shows = any("lists" in r.metric.needs for r in requests)
    judges = any("eligible" in r.metric.needs for r in requests)
    if isinstance(read, Lists) and (never is not None or eligible is not None) and not judges:
        raise InputError("never= and eligible= choose candidates, and ready lists have none.", table="lists")
    if not isinstance(read, Lists) and catalogue is not None:
        raise InputError(
            "the items of the model are the catalogue.", hint="Leave out catalogue=, or use never=."
        )
    asked = RankingOptions(
        seen=history_if_given(seen, "seen", columns),
        eligible=history_if_given(eligible, "eligible", columns),
        never=never,
        backend=backend,
        threads=threads,
        progress=progress,
        k=list_length(requests, read) if shows else None,
        deepest=max_place_read(requests),
    )
    options = EvaluationOptions(
        catalogue=catalogue,
        asked=asked,
        complete=complete,
        clusters=clusters,
        case_weights=case_weights,
        item_weights=item_weights,
        context=context_of(
            train=history_if_given(train, "train", columns),
            popularity=popularity,
            items=items,
            users=users,
            embeddings=embeddings,
            profiles=profiles,
            reference=None if reference is None else reference_of(reference, requests),
            intents=intents,
            eligible=asked.eligible,
            never=never,
        ),
        by=by,
    )

    # It is handed itself: a function that knew its own name would keep lists and truth in memory.
    def run(rerun: Callable[..., Evaluation], wanted: Conventions) -> Evaluation:
        under = with_max_grade(wanted, requests, known)
        notes = {"lists": dict(read.notes) if isinstance(read, Lists) else {}, "truth": dict(known.notes)}
        if stop_when is None:
            partial = one_pass(read, known, requests, under, options)
        else:
            partial, notes["stopped"] = until_clear(
                read, known, requests, under, options=options, stop_when=stop_when
            )

        def limits(values: Mapping[str, float]) -> Bounds:
            judged, context = judged_of(read, known, under, options)
            return bounds_of(judged, requests, values, rules=under, context=context, seen=asked.seen)

        again = partial_of(rerun, rerun)
        return Evaluation(partial, requests, under, notes=notes, reevaluate=again, compute_bounds=limits)

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
    asked = RankingOptions(
        seen=history_if_given(seen, "seen"),
        eligible=history_if_given(eligible, "eligible"),
        never=_excluded(never, exclude),
        backend=backend,
        threads=threads,
    )
    return ranked.top(users, int(k), asked)


def _excluded(never: Iterable[Any] | None, exclude: Iterable[Any] | None) -> Iterable[Any] | None:
    """`never` and `exclude` are two words for one thing."""
    if never is not None and exclude is not None:
        raise InputError("never= and exclude= mean the same, and both were given.", hint="Pass one of them.")
    return exclude if never is None else never
