"""The verbs: evaluate, score_list, Evaluator. Wiring only; nothing is computed here.

Inputs are read once into Lists and Interactions, paired, judged, measured and summed up; each step
lives in the module named after it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from recsys.conventions import Conventions
from recsys.counted import Judged
from recsys.engine import measure, merge
from recsys.errors import ConventionError, CutoffError, InputError, MergeError, TieWarning
from recsys.files import read_file
from recsys.frames import read_interactions, read_lists
from recsys.judge import pair
from recsys.plan import Request, parse_all
from recsys.results import Evaluation
from recsys.sources import Asked, Factors, Scores, Source, from_model
from recsys.types import Array, Bool, Context, Float, Ids, Interactions, Lists, Partial

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
    asked = Asked(
        seen=None if seen is None else _history(seen, "seen", columns),
        eligible=None if eligible is None else _history(eligible, "eligible", columns),
        never=never,
        backend=backend,
        threads=threads,
        progress=progress,
    )
    options = _Options(
        catalogue=catalogue,
        asked=asked,
        complete=complete,
        clusters=clusters,
        case_weights=case_weights,
        item_weights=item_weights,
    )

    def run(under: Conventions) -> Evaluation:
        partial = _partial(read, known, requests, under, options)
        groups = None if by is None else _groups(partial.per_case.ids, by)
        notes = {"lists": dict(read.notes) if isinstance(read, Lists) else {}, "truth": dict(known.notes)}
        return Evaluation(partial, requests, under, by=groups, notes=notes, again=run)

    return run(chosen)


class _Options:
    """What evaluate was told besides lists, truth and metrics."""

    def __init__(
        self,
        *,
        catalogue: int | Iterable[Any] | None = None,
        asked: Asked | None = None,
        shared: bool = True,
        complete: bool = False,
        clusters: Mapping[Any, Any] | None = None,
        case_weights: Mapping[Any, float] | None = None,
        item_weights: Mapping[Any, float] | None = None,
    ) -> None:
        self.catalogue, self.n_items = _catalogue(catalogue)
        self.asked = asked or Asked()
        self.shared = shared
        self.complete = complete
        self.clusters = clusters
        self.case_weights = case_weights
        self.item_weights = item_weights


def _partial(
    ranked: Lists | Source,
    truth: Interactions,
    requests: Sequence[Request],
    conventions: Conventions,
    options: _Options,
) -> Partial:
    catalogue = options.catalogue if isinstance(ranked, Lists) else ranked.catalogue
    truth, counts = _settle_truth(truth, catalogue, options.asked.seen, conventions)
    judged: Judged
    if isinstance(ranked, Lists):
        asked = options.asked
        judged = pair(ranked, truth, complete=options.complete, backend=asked.backend, threads=asked.threads)
    else:
        judged = ranked.judge(truth, options.asked)
    judged.counts.update(counts)
    if options.item_weights is not None:
        judged = replace(judged, item_weights=_item_weights(judged, options.item_weights), _found={})
    if options.clusters is not None:
        judged = replace(judged, clusters=_clusters(judged, options.clusters))
    weights = None if options.case_weights is None else _case_weights(judged, options.case_weights)
    n_items = options.n_items if catalogue is None else len(catalogue)
    complete = options.complete or not isinstance(ranked, Lists)
    partial = measure(judged, requests, conventions, Context(catalogue, n_items, weights, complete))
    return _warned_of_ties(partial, judged, conventions)


def _clusters(judged: Judged, given: Mapping[Any, Any]) -> Array:
    labels = [_looked_up(given, i, "clusters") for i in judged.cases.values.tolist()]
    out = np.empty(len(labels), dtype=np.int64 if _all_int(labels) else object)
    out[:] = labels
    return out


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
        self._options = _Options(catalogue=catalogue, complete=complete, shared=False)
        self._parts: list[Partial] = []

    def update(self, lists: Any, truth: Any) -> Evaluator:
        """Add users that no earlier batch held."""
        read, known = _ranked(lists, self._columns), _history(truth, "truth", self._columns)
        if _with_max_grade(self.conventions, self.requests, known) != self.conventions:
            raise ConventionError(
                "err needs to know the highest grade, and a batch cannot tell.",
                hint="Pass conventions={'max_grade': 5} to the Evaluator.",
            )
        self._parts.append(_partial(read, known, self.requests, self.conventions, self._options))
        return self

    def merge(self, other: Evaluator) -> Evaluator:
        """Take over the users of another Evaluator of the same metrics and conventions."""
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
    if isinstance(k, bool) or k != int(k) or k < 1:
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


def _columns_for(table: str, columns: Mapping[str, Any] | None) -> Mapping[str, str] | None:
    if columns is None or not any(isinstance(v, Mapping) for v in columns.values()):
        return columns
    return columns.get(table)


def _with_max_grade(
    conventions: Conventions, requests: Sequence[Request], truth: Interactions
) -> Conventions:
    graded = truth.grades is not None and len(truth.grades) > 0
    if conventions.max_grade is not None or not graded or not any(r.metric.name == "err" for r in requests):
        return conventions
    return conventions.but(max_grade=float(truth.grades.max()))  # type: ignore[union-attr]


def _catalogue(given: int | Iterable[Any] | None) -> tuple[Ids | None, int | None]:
    if given is None or isinstance(given, int | np.integer):
        if given is not None and (isinstance(given, bool) or given < 1):
            raise InputError(
                f"catalogue={given!r} is not a number of items.", hint="Pass all item ids, or their number."
            )
        return None, None if given is None else int(given)
    from recsys.ids import encode, of_sequence

    values = (
        given if isinstance(given, np.ndarray) else of_sequence(list(given), table="catalogue", column="item")
    )
    if len(values) == 0:
        raise InputError(
            "the catalogue is empty.", table="catalogue", hint="Pass all item ids, or their number."
        )
    ids, _ = encode(values, table="catalogue", column="item")
    return ids, len(ids)


def _settle_truth(
    truth: Interactions, catalogue: Ids | None, seen: Interactions | None, conventions: Conventions
) -> tuple[Interactions, dict[str, int]]:
    """Truth items outside the catalogue or already seen: counted, dropped where the conventions say so."""
    counts = {n: truth.notes[n] for n in ("repeated_rows", "conflicting_grades") if truth.notes.get(n)}
    for name, outside in (("unknown_items", catalogue), ("seen_truth", seen)):
        if outside is None:
            continue
        marks = _unknown(truth, outside) if isinstance(outside, Ids) else _seen(truth, outside)
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


def _unknown(truth: Interactions, catalogue: Ids) -> Bool:
    catalogue.same_kind(truth.items, what="item")
    known = catalogue.code_of(truth.items.values) >= 0
    return np.asarray(~known[truth.codes])


def _seen(truth: Interactions, seen: Interactions) -> Bool:
    seen.cases.same_kind(truth.cases, what="user")
    seen.items.same_kind(truth.items, what="item")
    width = max(len(seen.items), 1)
    have = np.repeat(np.arange(len(seen.cases), dtype=np.int64), seen.sizes) * width + seen.codes
    case = np.repeat(seen.cases.code_of(truth.cases.values), truth.sizes)
    item = seen.items.code_of(truth.items.values)[truth.codes]
    known = (case >= 0) & (item >= 0)
    if len(have) == 0:
        return np.zeros(len(known), dtype=bool)
    want = case * width + item
    at = np.minimum(np.searchsorted(have, want), len(have) - 1)  # pairs of a history stand in order
    return np.asarray(known & (have[at] == want))


def _item_weights(judged: Judged, given: Mapping[Any, float]) -> Float:
    out = np.zeros(len(judged.items))
    for code in np.unique(judged.judged).tolist():
        out[code] = _weight(given, judged.items.values[code], "item_weights")
    return out


def _case_weights(judged: Judged, given: Mapping[Any, float]) -> Float:
    return np.array(
        [_weight(given, i, "case_weights") for i in judged.cases.values.tolist()], dtype=np.float64
    )


def _weight(given: Mapping[Any, float], name: Any, what: str) -> float:
    value = float(_looked_up(given, name, what))
    if not 0 <= value < float("inf"):
        raise InputError(
            f"{what} holds {value!r} for {name!r}.", hint="Weights are finite numbers of at least 0."
        )
    return value


def _looked_up(given: Mapping[Any, Any], name: Any, what: str) -> Any:
    key = name.item() if isinstance(name, np.generic) else name
    try:
        return given[key]
    except (KeyError, IndexError):
        raise InputError(
            f"{what} has no entry for {key!r}.", row=key, hint=f"Give {what} for every id."
        ) from None


def _groups(ids: Array, by: Mapping[Any, Any] | Callable[[Any], Any]) -> dict[Any, Bool]:
    look = by if callable(by) and not hasattr(by, "items") else (lambda i: _looked_up(by, i, "by"))  # type: ignore[arg-type]
    labels = [look(i) for i in ids.tolist()]
    masks = {label: np.zeros(len(labels), dtype=bool) for label in sorted(set(labels), key=_sortable)}
    for at, label in enumerate(labels):
        masks[label][at] = True
    return masks


def _sortable(label: Any) -> tuple[str, Any]:
    number = isinstance(label, int | float)
    return ("", label) if number else (type(label).__name__, str(label))


def _all_int(labels: list[Any]) -> bool:
    return all(isinstance(x, int | np.integer) for x in labels)
