"""The functions evaluate and recommend: signatures and documentation; `run` does the work."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, cast

from recsys.conventions.decisions import AnyConventions, Conventions
from recsys.errors import CutoffError, InputError, verb
from recsys.evaluation.options import EvaluationOptions
from recsys.evaluation.results import Evaluation
from recsys.evaluation.run import CommonInputs, exclude_items, load_optional_interactions
from recsys.inputs.ids import IdKind
from recsys.metrics.registry import Metrics
from recsys.ranks.sources import RankingOptions, UsersByItems
from recsys.records.arrays import Lists

if TYPE_CHECKING:
    from recsys.evaluation.stopping import StopWhen
    from recsys.ranks.sources import Source

_OPTION_NAMES = [field.name for field in fields(EvaluationOptions)]
_MANY_USERS = 32  # with fewer, reading nested dicts the general way takes no time


@verb
def evaluate(
    lists: Any,
    truth: Any,
    metrics: Metrics = None,
    *,
    k: int | Sequence[int] | None = None,
    conventions: AnyConventions = None,
    by: str | Mapping[Any, Any] | Callable[[Any], Any] | None = None,
    columns: Mapping[str, Any] | None = None,
    ids: IdKind | None = None,
    catalogue: int | Iterable[Any] | None = None,
    seen: Any = None,
    full_ranking: bool = False,
    clusters: Mapping[Any, Any] | None = None,
    case_weights: Mapping[Any, float] | None = None,
    item_weights: Mapping[Any, float] | None = None,
    aggregate: str | None = None,
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
    stop_when: float | StopWhen | None = None,
    cautions: str | Iterable[str] | None = None,
    memory: str | int | None = None,
    per_user: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Evaluation:
    """Score recommendations against what turned out to be relevant.

    Args:
        lists: who was recommended what, best first: {user: [items]}, {user: [(item, score)]}, a table with
            user and item columns (and rank or score), a 2-D array, a scipy sparse matrix of scores, Lists;
            the path of a file, of a folder of files or a glob ("recs/*.parquet"); what ranks the whole
            catalogue: Factors(U, V), Scores(matrix), a fitted model that from_model takes, the path of a
            model ("ease.npz"); or any model with recommend(user, k), called for the users of the truth. Rows
            of a model are users and items by their numbers, unless it was given user_ids= and item_ids=.
        truth: what was relevant: {user: {items}}, {user: {item: grade}}, a table (with a grade column if
            relevance is graded), a scipy sparse matrix, a path or glob as for lists, Interactions.
        metrics: names such as "ndcg@10" or "ndcg(gain=exp2)@10"; `recsys metrics` lists them.
        k: cut-offs for the metrics that name none.
        conventions: a preset's name ("trec_eval", "rectools", …), a dict of decisions, or Conventions.
        by: results per group: {user: group}, a function of the user id, "activity", "cold_user",
            "popularity", "cold_item", "item_age" (built from train), or a column of users or items.
        columns: column names if detection fails: {"user": "uid", "item": "sku"}, or one such mapping under
            "lists" and one under "truth".
        ids: how the ids of files are read: "str" as text, "int" as whole numbers, "auto" as the file stores
            them: numbers of Parquet and Arrow files stay numbers, ids of text files stay text. The default is
            "auto" where all files are Parquet or Arrow, otherwise "str", so that files always match.
            The ids of data in memory keep their type. `result.notes["ids"]` says what they are.
        catalogue: all item ids, or their number, for metrics and conventions that need them.
        seen: what each user had already: never recommended by factors and scores; with ready lists it only
            counts relevant items among it.
        full_ranking: True when each list ranks every candidate (needed by auc, average_rank, …).
        clusters: user of each case, if users have several cases.
        case_weights: weight of each user in the means.
        item_weights: weight of each relevant item (recall, hits, dcg, ndcg).
        aggregate: what makes one number of the values per user: "mean" (the default), "median", a percentile
            such as "p90", or "trimmed(0.1)", the mean without the lowest and the highest tenth. Metrics that
            are one number of all users stay as they are.
        exclude: items no user may be recommended (factors and scores).
        eligible: the only items each user may be recommended, like `truth` (factors and scores).
        train: what each user had before, like `truth`: popularity, novelty, histories, strata.
        popularity: {item: how many users had it}, if there is no train.
        items: attributes of the items: a table with an item column, or {column: {item: value}}.
        users: attributes of the users: a table with a user column, or {column: {user: value}}.
        embeddings: a vector for each item: {item: vector}, (ids, matrix), or a matrix with one row per item.
        profiles: a vector for each user, likewise; by default the mean of the user's items in train.
        reference: other lists to compare these with: like `lists`, or one list for everybody.
        intents: what a relevant item is relevant for: a column of items, or {user: {item: [intents]}}.
        backend: "auto", "native" (compiled), "reference" (NumPy) or "cuda" (a GPU, through torch; ready lists
            are matched on the CPU); the result has the same bits.
        threads: how many threads; the result is the same.
        progress: called with (blocks done, blocks in all) while factors or scores are ranked.
        stop_when: take users in random order and stop when the intervals are this narrow (0.01), or as a
            StopWhen says; the intervals are valid whenever it stops, and the share of work saved is printed.
        cautions: "ignore", or the codes of the cautions that are not to be printed (`result.cautions`).
        memory: how much memory the evaluation may take ("1GB") on top of what the process holds when it
            begins: users are then evaluated piece by piece. Lists, truth, seen and eligible are Parquet or
            CSV files (globs and folders, too), queries of DuckDB or its relations, and need not fit; or lists
            is a model, such as Factors of memory-mapped arrays.
        per_user: with memory=, a folder for the values per user, which are not kept otherwise;
            `recsys.load(folder)` opens it. Neither this folder nor that of checkpoint= is inside the other.
        checkpoint: with memory=, a folder for the pieces that are done: the same call goes on from there if
            it was stopped. It is removed at the end.

    >>> print(
    ...     evaluate(
    ...         {"ann": ["a", "b", "c"], "bob": ["b", "d"]},
    ...         {"ann": {"a", "c"}, "bob": {"d"}},
    ...         ["recall@2", "ndcg@2"],
    ...     )
    ... )
    metric     value  users
    --------  ------  -----
    recall@2  0.7500      2
    ndcg@2    0.6220      2
    <BLANKLINE>
    2 users
    conventions: default
    """
    given = locals()  # the keywords, before anything else has a name
    options = EvaluationOptions(**{name: given[name] for name in _OPTION_NAMES})
    tables = (lists, truth, seen, eligible, train, reference)
    if ids is None and any(isinstance(table, str | os.PathLike) for table in tables):
        from recsys.inputs.files.reader import stored_ids

        # In memory, text is the default of files alone; tables beside them keep their type.
        stored = stored_ids(*tables)
        options = replace(options, ids=stored if memory is not None or stored == "auto" else None)
    if memory is None and per_user is None and checkpoint is None:
        inputs = CommonInputs(metrics, options)
        if _are_nested_dicts(lists, truth):
            from recsys.evaluation.nested_dicts import read_dicts

            dicts = read_dicts(lists, truth, inputs)
            if dicts is not None:
                return dicts.evaluate(Conventions.of(conventions), stop_when)
        run = inputs.run_of(lists, truth)
        return run.evaluate(Conventions.of(conventions), stop_when)
    from recsys.evaluation.out_of_core import evaluate_beyond_memory

    if stop_when is not None:
        raise InputError("stop_when= draws from all users at once, and memory= takes them in order.")
    storage = {"memory": memory, "per_user": per_user, "checkpoint": checkpoint}
    return evaluate_beyond_memory(lists, truth, metrics, Conventions.of(conventions), options, **storage)


def _are_nested_dicts(lists: Any, truth: Any) -> bool:
    """Whether both are {user: {item: number}}, of enough users for a walk over them to pay."""
    return all(
        isinstance(side, dict) and len(side) >= _MANY_USERS and isinstance(next(iter(side.values())), dict)
        for side in (lists, truth)
    )


@verb
def recommend(
    source: Any,
    k: int,
    *,
    users: Iterable[Any] | None = None,
    seen: Any = None,
    exclude: Iterable[Any] | None = None,
    eligible: Any = None,
    backend: str = "auto",
    threads: int | None = None,
) -> Lists:
    """The exact k best candidates of each user, as Lists that evaluate takes; `to_frame()` makes a table.

    Args:
        source: Factors(U, V), Scores(matrix), a fitted model that from_model takes, or the path of a model.
        k: how many items.
        users: for whom; by default for every row of users.
        seen: what each user had already, which is left out.
        exclude: items no user may be recommended.
        eligible: the only items each user may be recommended.
        backend: "auto", "native", "reference" or "cuda", as for evaluate.
        threads: how many threads.

    >>> import recsys
    >>> model = recsys.Factors([[1.0, 0.0]], [[3.0, 1.0], [2.0, 2.0], [1.0, 5.0]])
    >>> lists = recommend(model, 2, seen={0: [0]})
    >>> lists
    Lists(1 case, 2 items, 2 rows, with scores)
    >>> lists.to_frame().to_dict("list")
    {'user': [0, 0], 'item': [1, 2], 'score': [2.0, 1.0]}
    """
    if isinstance(source, UsersByItems):
        ranked = cast("Source", source)
    else:
        from recsys.ranks.sources import from_model

        ranked = from_model(source)
    if type(k) is not int or k < 1:
        raise CutoffError(f"k={k!r} is not a positive whole number.", hint="Use k >= 1, such as k=10.")
    ranking_options = RankingOptions(
        seen=load_optional_interactions(seen, "seen"),
        eligible=load_optional_interactions(eligible, "eligible"),
        exclude=exclude_items(exclude),
        backend=backend,
        threads=threads,
    )
    return ranked.top(users, int(k), ranking_options)
