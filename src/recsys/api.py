"""The verbs: evaluate, score_list, Evaluator. Wiring only; nothing is computed here.

Inputs are read once into Lists and Interactions, paired, judged, measured and summed up; each step
lives in the module named after it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recsys.conventions import Conventions
from recsys.engine import measure, merge
from recsys.errors import ConventionError, InputError, MergeError, TieWarning
from recsys.frames import read_interactions, read_lists
from recsys.judge import Paired, keep_truth, pair
from recsys.plan import Request, parse_all
from recsys.results import Evaluation
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
) -> Evaluation:
    """Score recommendation lists against what turned out to be relevant.

    Args:
        lists: who was recommended what, best first: {user: [items]}, {user: [(item, score)]}, a table with
            user and item columns (and rank or score), a 2-D array, a scipy sparse matrix of scores, Lists.
        truth: what was relevant: {user: {items}}, {user: {item: grade}}, a table (with a grade column if
            relevance is graded), a scipy sparse matrix, Interactions.
        metrics: names such as "ndcg@10" or "ndcg(gain=exp2)@10"; `recsys metrics` lists them.
        k: cut-offs for the metrics that name none.
        conventions: a preset's name ("trec_eval", "rectools", …), a dict of decisions, or Conventions.
        by: group of each user, as {user: group} or a function of the user id; results per group.
        columns: names where detection fails: {"user": "uid", "item": "sku"}, or one such mapping under
            "lists" and one under "truth".
        catalogue: all item ids, or how many there are, for metrics and conventions that need them.
        seen: training interactions, to count relevant items the user had already seen.
        complete: True when each list ranks every candidate (needed by auc, average_rank, …).
        clusters: user of each case, where a user has several cases.
        case_weights: weight of each user in the means.
        item_weights: weight of each relevant item (recall, hits, dcg, ndcg).

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
    read = read_lists(lists, columns=_columns_for("lists", columns))
    known = read_interactions(truth, columns=_columns_for("truth", columns))
    chosen = _with_max_grade(chosen, requests, known)
    history = (
        None if seen is None else read_interactions(seen, table="seen", columns=_columns_for("seen", columns))
    )
    options = _Options(
        catalogue=catalogue,
        seen=history,
        complete=complete,
        clusters=clusters,
        case_weights=case_weights,
        item_weights=item_weights,
    )

    def run(under: Conventions) -> Evaluation:
        partial = _partial(read, known, requests, under, options)
        groups = None if by is None else _groups(partial.per_case.ids, by)
        notes = {"lists": dict(read.notes), "truth": dict(known.notes)}
        return Evaluation(partial, requests, under, by=groups, notes=notes, again=run)

    return run(chosen)


class _Options:
    """What evaluate was told besides lists, truth and metrics."""

    def __init__(
        self,
        *,
        catalogue: int | Iterable[Any] | None = None,
        seen: Interactions | None = None,
        complete: bool = False,
        clusters: Mapping[Any, Any] | None = None,
        case_weights: Mapping[Any, float] | None = None,
        item_weights: Mapping[Any, float] | None = None,
    ) -> None:
        self.catalogue, self.n_items = _catalogue(catalogue)
        self.seen = seen
        self.complete = complete
        self.clusters = clusters
        self.case_weights = case_weights
        self.item_weights = item_weights


def _partial(
    lists: Lists,
    truth: Interactions,
    requests: Sequence[Request],
    conventions: Conventions,
    options: _Options,
) -> Partial:
    paired = pair(lists, truth, complete=options.complete)
    paired = _drop(paired, conventions, options)
    for name in ("repeated_rows", "conflicting_grades"):
        if truth.notes.get(name):
            paired.counts[name] = truth.notes[name]
    if options.item_weights is not None:
        paired = replace(paired, item_weights=_item_weights(paired, options.item_weights), _found={})
    if options.clusters is not None:
        labels = [_looked_up(options.clusters, i, "clusters") for i in paired.cases.values.tolist()]
        paired = replace(paired, clusters=np.asarray(labels, dtype=None if _all_int(labels) else object))
    weights = None if options.case_weights is None else _case_weights(paired, options.case_weights)
    context = Context(options.catalogue, options.n_items, weights, options.complete)
    partial = measure(paired, requests, conventions, context)
    return _warned_of_ties(partial, paired, conventions)


def _warned_of_ties(partial: Partial, paired: Paired, conventions: Conventions) -> Partial:
    found, undecided = paired.n_undecided()
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
        self._options = _Options(catalogue=catalogue, complete=complete)
        self._parts: list[Partial] = []

    def update(self, lists: Any, truth: Any) -> Evaluator:
        """Add users that no earlier batch held."""
        read = read_lists(lists, columns=_columns_for("lists", self._columns))
        known = read_interactions(truth, columns=_columns_for("truth", self._columns))
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
    return conventions.but(max_grade=float(max(truth.grades.max(), 1.0)))  # type: ignore[union-attr]


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
    ids, _ = encode(values, table="catalogue", column="item")
    return ids, len(ids)


def _drop(paired: Paired, conventions: Conventions, options: _Options) -> Paired:
    """Truth items outside the catalogue or already seen: counted, dropped where the conventions say so."""
    for name, marks in (("unknown_items", _unknown(paired, options)), ("seen_truth", _seen(paired, options))):
        if marks is None or not marks.any():
            continue
        rule = getattr(conventions, name)
        if rule == "error":
            item = paired.items.values[paired.judged[int(np.argmax(marks))]]
            why = "outside the catalogue" if name == "unknown_items" else "one the user had already seen"
            raise InputError(
                f"{int(marks.sum())} relevant items are {why}, {item!r} for one.",
                table="truth",
                hint=f"Use {name}='miss' or {name}='drop'.",
            )
        n_marked = int(marks.sum())
        if rule == "drop":
            paired = keep_truth(paired, ~marks)
        paired.counts[name] = n_marked
    return paired


def _unknown(paired: Paired, options: _Options) -> Bool | None:
    if options.catalogue is None:
        return None
    options.catalogue.same_kind(paired.items, what="item")
    known = options.catalogue.code_of(paired.items.values) >= 0
    return np.asarray(~known[paired.judged])


def _seen(paired: Paired, options: _Options) -> Bool | None:
    if options.seen is None:
        return None
    case, item = (
        options.seen.cases.code_of(paired.cases.values),
        options.seen.items.code_of(paired.items.values),
    )
    options.seen.items.same_kind(paired.items, what="item")
    width = max(len(options.seen.items), 1)
    rows = np.repeat(np.arange(len(options.seen.cases), dtype=np.int64), options.seen.sizes)
    have = rows * width + options.seen.codes
    of_truth = np.repeat(case, np.diff(paired.truth_indptr))
    want = of_truth * width + item[paired.judged]
    return np.asarray((of_truth >= 0) & (item[paired.judged] >= 0) & np.isin(want, have))


def _item_weights(paired: Paired, given: Mapping[Any, float]) -> Float:
    out = np.zeros(len(paired.items))
    for code in np.unique(paired.judged).tolist():
        out[code] = _weight(given, paired.items.values[code], "item_weights")
    return out


def _case_weights(paired: Paired, given: Mapping[Any, float]) -> Float:
    return np.array(
        [_weight(given, i, "case_weights") for i in paired.cases.values.tolist()], dtype=np.float64
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
