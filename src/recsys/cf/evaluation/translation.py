"""From seed 000's words to the engine's, once for all of its faces.

A test set is a table with `u_idx` and `i_idx` or {user: items}, a history {user: items}; results are plain
dicts under the seed's keys that also carry the evaluation they come from.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import ColumnError, CutoffError, InputError
from recsys.evaluation.evaluate import evaluate, recommend
from recsys.evaluation.results import Evaluation
from recsys.inputs.frames import read_interactions
from recsys.ranks.sources import Factors, Scores
from recsys.types import Array, Interactions, Lists

USER, ITEM = "u_idx", "i_idx"


class Results(dict[str, Any]):
    """{result key: value} as the seed writes them; `evaluation` has the users and conventions behind it."""

    evaluation: Evaluation | None = None


class EvaluationData(NamedTuple):
    """A test set with the history and the item counts that go with it; unpacks in this order."""

    test_data: Any
    user_pos_train: Mapping[Any, Any]
    item_popularity: Array


def cutoff(k: Any) -> int:
    """A cut-off that is a positive whole number."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise CutoffError(f"k={k!r} is not a positive whole number.", hint="Use k >= 1, such as k=10.")
    return int(k)


def cutoffs(k_values: int | Iterable[int]) -> list[int]:
    """Distinct cut-offs, ascending."""
    given = [k_values] if isinstance(k_values, int | np.integer) else list(k_values)
    if not given:
        raise CutoffError("k_values is empty.", hint="Such as k_values=[10, 20].")
    return sorted({cutoff(k) for k in given})


def listed(ids: Iterable[Any]) -> list[Any]:
    """Ids as a plain list, whatever holds them: a list, a set, an array, a Series or a tensor."""
    plain: list[Any] = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    return plain


def _of_series(data: Any) -> Any:
    """A Series of collections, as groupby("u_idx")["i_idx"].apply(set) makes it, as {user: items}."""
    return data.to_dict() if hasattr(data, "to_dict") and not hasattr(data, "columns") else data


def truth_of(
    test_data: Any, user_col: str = USER, item_col: str = ITEM, rating_col: str | None = None
) -> Interactions:
    """The test set, from a table or {user: items}; grades only where asked for, or given as {item: grade}."""
    if isinstance(test_data, EvaluationData):
        test_data = test_data.test_data
    test_data = _of_series(test_data)
    if isinstance(test_data, Interactions | Mapping) or not hasattr(test_data, "columns"):
        return read_interactions(test_data)
    columns = {"user": user_col, "item": item_col} | ({} if rating_col is None else {"grade": rating_col})
    names = _columns_of(test_data)
    for name in columns.values():
        if name not in names:
            raise ColumnError(
                f"the test data has no column {name!r}; it has {', '.join(map(str, names))}.",
                table="test_data",
                column=name,
                hint="Name them: user_col=, item_col=.",
            )
    return read_interactions(_with_columns(test_data, list(columns.values())), columns=columns)


def _columns_of(table: Any) -> list[Any]:
    return list(getattr(table, "column_names", getattr(table, "columns", ())))


def _with_columns(table: Any, names: list[str]) -> Any:
    return table.select(names) if hasattr(table, "select") else table[names]


def history_of(user_pos_train: Any, user_col: str = USER, item_col: str = ITEM) -> Interactions | None:
    """What each user had already; None where there is nothing. A table by the columns of the test set."""
    user_pos_train = _of_series(user_pos_train)
    if user_pos_train is None or (isinstance(user_pos_train, Mapping) and not user_pos_train):
        return None
    columns = None
    if {user_col, item_col} <= set(_columns_of(user_pos_train)):
        columns = {"user": user_col, "item": item_col}
        user_pos_train = _with_columns(user_pos_train, [user_col, item_col])
    return read_interactions(user_pos_train, table="user_pos_train", columns=columns)


def brought(test_data: Any, user_pos_train: Any) -> Any:
    """The history that was given; without one, that of `load_test_data` if the test set came from there."""
    beside = test_data.user_pos_train if isinstance(test_data, EvaluationData) else None
    return beside if user_pos_train is None else user_pos_train


def by_index(ids: Array | None, values: Array, num_items: int | None, what: str = "item_popularity") -> Array:
    """One number an item index, zero where none was given."""
    if ids is None:
        if num_items is not None and num_items < len(values):
            raise InputError(f"{what} holds {len(values)} items, num_items says {num_items}.")
        ids = np.arange(len(values))
    if ids.dtype == object or ids[0] < 0 or (num_items is not None and ids[-1] >= num_items):
        wrong = ids[:1].tolist()[0] if ids.dtype == object or ids[0] < 0 else int(ids[-1])
        raise InputError(
            f"{what} names the item {wrong!r}; items are numbered from 0"
            f"{'' if num_items is None else f' to {num_items - 1}'}.",
            hint="Map item ids to indices first, or use recsys.baselines.popularity, which takes ids.",
        )
    out = np.zeros(int(ids[-1]) + 1 if num_items is None else int(num_items))
    out[ids] = values
    return out


def as_dict(rows: Lists | Interactions, kind: type = list) -> dict[Any, Any]:
    """{user: items} with plain ids, in the order of the rows."""
    items, ends = rows.items.values[rows.codes].tolist(), rows.indptr.tolist()
    users = rows.cases.values.tolist()
    return {user: kind(items[ends[at] : ends[at + 1]]) for at, user in enumerate(users)}


def in_order(lists: Mapping[Any, list[Any]], users: Iterable[Any]) -> dict[Any, list[Any]]:
    """The lists in the order the users were asked for; an empty one where there is none."""
    plain = (user.item() if isinstance(user, np.generic) else user for user in users)
    return {user: lists.get(user, []) for user in dict.fromkeys(plain)}


def top_lists(source: Factors | Scores, users: Any, history: Interactions | None, k: int) -> Lists:
    """The k best of each user a source knows; it has no list for the others."""
    known = np.isin(users, source.user_rows.ids.values)
    return recommend(source, k, users=users[known], seen=history)


def evaluated(
    ranked: Factors | Scores | Mapping[Any, Any],
    truth: Interactions,
    history: Interactions | None,
    k_values: Sequence[int],
    *,
    n_items: int | None = None,
) -> Results:
    """One pass over a source, under the seed's result keys; coverage is that of the longest lists.

    Ready lists need `n_items`; their MRR is over the lists as they are.
    """
    start = time.perf_counter()
    names = standard_names(k_values)
    size = n_items if isinstance(ranked, Mapping) else None
    result = evaluate(ranked, truth, [*names, f"coverage@{max(k_values)}"], seen=history, catalogue=size)
    made = Results({name: result[name] for name in names})
    made.evaluation = result
    covered = result[f"coverage@{max(k_values)}"]
    made["coverage"] = 0.0 if math.isnan(covered) else covered  # nobody was shown anything: no item either
    n_evaluated = min(result.n_cases[name] for name in names)
    made["num_users_evaluated"] = n_evaluated
    made["num_users_skipped"] = len(result.per_case) - n_evaluated
    made["evaluation_time_seconds"] = time.perf_counter() - start
    return made


def standard_names(k_values: Sequence[int]) -> list[str]:
    """The metrics every evaluation of the seed holds."""
    return [f"{name}@{k}" for name in ("recall", "ndcg", "precision", "map") for k in k_values] + ["mrr"]


def per_user_table(result: Evaluation | None) -> Any:
    """One row an evaluated user, indexed by id."""
    if result is None:
        raise InputError("nothing was evaluated yet.", hint="Call evaluate(test_data, user_pos_train) first.")
    return result.per_user.dropna(how="all")


def by_user(given: Any, what: str = "recommendations") -> Mapping[Any, Any]:
    """{user: items}, also of a Series by user; what has no users is an error that says so."""
    held = _of_series(given)
    if not isinstance(held, Mapping):
        shown = "[items, best first]" if what == "recommendations" else "items"
        raise InputError(
            f"{what} came as {type(given).__name__}.", table=what, hint=f"Pass {{user: {shown}}}."
        )
    return held


def any_order(recommendations: Any) -> dict[Any, list[Any]]:
    """{user: items} for what does not look at places, so that sets will do."""
    return {user: listed(items) for user, items in by_user(recommendations).items()}


def catalogue_coverage(recommendations: Mapping[Any, Any], num_total_items: int | None) -> float:
    """The share of the catalogue in at least one list."""
    if num_total_items is None or isinstance(num_total_items, bool) or num_total_items < 1:
        raise InputError(
            f"num_total_items={num_total_items!r} is not a number of items.", hint="Pass how many there are."
        )
    lists = any_order(recommendations)
    if not any(lists.values()):
        return 0.0
    nothing = dict.fromkeys(lists, ())
    return evaluate(lists, nothing, ["coverage"], catalogue=int(num_total_items))["coverage"]
