"""The functions evaluate and recommend: signatures and documentation; `run` does the work."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Unpack

from recsys.conventions.decisions import AnyConventions, Conventions
from recsys.errors import CutoffError, InputError, verb
from recsys.evaluation.evaluate_keywords import (
    OF_MODELS,
    ConventionsKeyword,
    LengthKeywords,
    MainKeywords,
    OptionalKeywords,
)
from recsys.evaluation.options import EvaluationOptions
from recsys.evaluation.reading import CommonInputs, exclude_items
from recsys.evaluation.results import Evaluation
from recsys.inputs.containers import open_history
from recsys.metrics.registry import Metrics
from recsys.ranks.rankings import RankingOptions
from recsys.records.arrays import Lists
from recsys.records.keywords import takes


@takes(ConventionsKeyword, LengthKeywords, MainKeywords, OptionalKeywords, elsewhere=OF_MODELS)
def evaluate(
    lists: Any,
    truth: Any,
    metrics: Metrics = None,
    *,
    k: int | Sequence[int] | None = None,
    conventions: AnyConventions = None,
    by: str | tuple[str, ...] | Mapping[Any, Any] | Callable[[Any], Any] | list[Any] | None = None,
    seen: Any = None,
    catalogue: int | Iterable[Any] | None = None,
    full_ranking: bool = False,
    train: Any = None,
    items: Any = None,
    users: Any = None,
    columns: Mapping[str, Any] | None = None,
    **options: Unpack[OptionalKeywords],
) -> Evaluation:
    """Score recommendations against what turned out to be relevant.

    >>> import recsys
    >>> lists = {"ann": ["a", "b", "c"], "bob": ["b", "d"]}
    >>> truth = {"ann": {"a", "c"}, "bob": {"d"}}
    >>> print(recsys.evaluate(lists, truth, ["recall@2", "ndcg@2"]))
    metric     value  users
    --------  ------  -----
    recall@2  0.7500      2
    ndcg@2    0.6220      2
    <BLANKLINE>
    2 users
    conventions: default

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
        options: further keywords. `help(recsys.evaluate)` and the page docs/keywords.md list all of them.
    """
    rules, more = Conventions.of(conventions), dict[str, Any](options)
    stop_when = more.pop("stop_when", None)
    storage = {name: more.pop(name, None) for name in ("memory", "per_user", "checkpoint")}
    asked = EvaluationOptions(
        k=k,
        by=by,
        seen=seen,
        catalogue=catalogue,
        full_ranking=full_ranking,
        train=train,
        items=items,
        users=users,
        columns=columns,
        **more,
    )
    tables = (lists, truth, seen, asked.eligible, train, asked.reference)
    if asked.ids is None and any(isinstance(table, str | os.PathLike) for table in tables):
        from recsys.inputs.files.reader import stored_ids

        # In memory, text is the default of files alone; ids of tables keep their type.
        stored = stored_ids(*tables)
        asked = asked.but(ids=stored if storage["memory"] is not None or stored == "auto" else None)
    if not any(place is not None for place in storage.values()):
        return CommonInputs(metrics, asked).run_of(lists, truth).evaluate(rules, stop_when)
    from recsys.evaluation.in_pieces.out_of_core import evaluate_beyond_memory

    if stop_when is not None:
        raise InputError("stop_when= draws from all users at once, and memory= takes them in order.")
    return evaluate_beyond_memory(lists, truth, metrics, rules, asked, **storage)


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
    from recsys.ranks.sources import from_model

    ranked = from_model(source)
    if type(k) is not int or k < 1:
        raise CutoffError(f"k={k!r} is not a positive whole number.", hint="Use k >= 1, such as k=10.")
    ranking_options = RankingOptions(
        seen=open_history(seen, "seen"),
        eligible=open_history(eligible, "eligible"),
        exclude=exclude_items(exclude),
        backend=backend,
        threads=threads,
    )
    return ranked.top(users, int(k), ranking_options)


if "IPython" in sys.modules:
    from recsys.evaluation.notebook_completion import complete_in_notebooks

    complete_in_notebooks()
