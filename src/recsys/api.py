"""The verbs: evaluate, recommend, Evaluator. Wiring only; nothing is computed here.

Inputs are read once into Lists and Interactions, paired, judged, measured and summed up; each step
lives in the module named after it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from recsys.conventions import Conventions
from recsys.counted import Judged
from recsys.engine import measure, merge
from recsys.errors import ConventionError, CutoffError, InputError, MergeError, TieWarning
from recsys.files import read_file
from recsys.frames import read_interactions, read_lists
from recsys.given import (
    Options,
    case_weights_of,
    clusters_of,
    groups_by,
    item_weights_of,
    settle_truth,
)
from recsys.judge import pair
from recsys.plan import Request, parse_all
from recsys.results import Evaluation
from recsys.sources import Asked, Factors, Scores, Source, from_model
from recsys.types import Context, Interactions, Lists, Partial

Metrics = str | Request | Iterable[str | Request] | None
AnyConventions = Conventions | str | Mapping[str, Any] | None


def evaluate(
    lists: Any,
    truth: Any,
    metrics: Metrics = None,
    *,
    k: int | Sequence[int] | None = None,
    conventions: AnyConventions = None,
    by: Mapping[Any, Any] | Callable[[Any], Any] | None = None,
    columns: Mapping[str, Any] | None = None,
    catalogue: int | Iterable[Any] | None = None,
    seen: Any = None,
    complete: bool = False,
    clusters: Mapping[Any, Any] | None = None,
    case_weights: Mapping[Any, float] | None = None,
    item_weights: Mapping[Any, float] | None = None,
    never: Iterable[Any] | None = None,
    eligible: Any = None,
    backend: str = "auto",
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Evaluation:
    """Score recommendations against what turned out to be relevant.

    Args:
        lists: who was recommended what, best first: {user: [items]}, {user: [(item, score)]}, a table with
            user and item columns (and rank or score), a 2-D array, a scipy sparse matrix of scores, Lists;
            a file's path; or what ranks the whole catalogue: Factors(U, V), Scores(matrix), a factor model.
        truth: what was relevant: {user: {items}}, {user: {item: grade}}, a table (with a grade column if
            relevance is graded), a scipy sparse matrix, a file's path, Interactions.
        metrics: names such as "ndcg@10" or "ndcg(gain=exp2)@10"; `recsys metrics` lists them.
        k: cut-offs for the metrics that name none.
        conventions: a preset's name ("trec_eval", "rectools", …), a dict of decisions, or Conventions.
        by: group of each user, as {user: group} or a function of the user id; results per group.
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
        backend: "auto", "native" or "reference"; the result is the same.
        threads: how many threads; the result is the same.
        progress: called with (blocks done, blocks in all) while factors or scores are ranked.

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
    read = _ranked(lists, columns)
    known = _history(truth, "truth", columns)
    chosen = _with_max_grade(chosen, requests, known)
    if isinstance(read, Lists) and (never is not None or eligible is not None):
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
    )
    options = Options(
        catalogue=catalogue,
        asked=asked,
        complete=complete,
        clusters=clusters,
        case_weights=case_weights,
        item_weights=item_weights,
    )

    def run(under: Conventions) -> Evaluation:
        partial = _partial(read, known, requests, under, options)
        groups = None if by is None else groups_by(partial.per_case.ids, by)
        notes = {"lists": dict(read.notes) if isinstance(read, Lists) else {}, "truth": dict(known.notes)}
        return Evaluation(partial, requests, under, by=groups, notes=notes, again=run)

    return run(chosen)


def _partial(
    ranked: Lists | Source,
    truth: Interactions,
    requests: Sequence[Request],
    conventions: Conventions,
    options: Options,
) -> Partial:
    catalogue = options.catalogue if isinstance(ranked, Lists) else ranked.catalogue
    truth, counts = settle_truth(truth, catalogue, options.asked.seen, conventions)
    judged: Judged
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
    partial = measure(judged, requests, conventions, Context(catalogue, n_items, weights, complete))
    return _warned_of_ties(partial, judged, conventions)


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
    ) -> None:
        self.requests = parse_all(metrics, k)
        self.conventions = Conventions.of(conventions)
        self._columns = columns
        self._options = Options(catalogue=catalogue, complete=complete, shared=False)
        self._parts: list[Partial] = []

    def update(self, lists: Any, truth: Any) -> Evaluator:
        """Add users that no earlier batch held."""
        read, known = _ranked(lists, self._columns), _history(truth, "truth", self._columns)
        if _with_max_grade(self.conventions, self.requests, known) != self.conventions:
            raise ConventionError(
                "err needs to know the highest grade, which a batch cannot tell.",
                hint="Pass conventions={'max_grade': 5} to the Evaluator.",
            )
        self._parts.append(_partial(read, known, self.requests, self.conventions, self._options))
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
