"""Arguments and result keys of document 000, translated to and from `recsys.evaluate`.

A test set is a table with `u_idx` and `i_idx` or {user: items}; a history is {user: items}. Results are dicts
under the keys of the document and also carry the evaluation they come from.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import ColumnError, CutoffError, InputError
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.results import Evaluation
from recsys.inputs import read_interactions
from recsys.ranks.sources import Factors, Scores
from recsys.types import Array, Interactions, Lists

USER, ITEM = "u_idx", "i_idx"
STANDARD = ("recall", "ndcg", "precision", "map")
K_VALUES = (10, 20)


class Results(dict[str, Any]):
    """{result key: value} with the keys of document 000; `evaluation` has the users and conventions."""

    evaluation: Evaluation

    def per_user(self) -> Any:
        """A DataFrame with one row per evaluated user, indexed by id."""
        return self.evaluation.per_user.dropna(how="all")


class EvaluationData(NamedTuple):
    """A test set with the history and the item counts that go with it; unpacks in this order."""

    test_data: Any
    user_pos_train: Mapping[Any, Any]
    item_popularity: Array


def cutoff(k: Any) -> int:
    """Return k as an int; CutoffError unless it is a positive whole number."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise CutoffError(f"k={k!r} is not a positive whole number.", hint="Use k >= 1, such as k=10.")
    return int(k)


def cutoffs(k_values: int | Iterable[int]) -> list[int]:
    """Distinct cut-offs, ascending."""
    values = [k_values] if isinstance(k_values, int | np.integer) else list(k_values)
    if not values:
        raise CutoffError("k_values is empty.", hint="Use e.g. k_values=[10, 20].")
    return sorted({cutoff(k) for k in values})


def id_list(ids: Iterable[Any]) -> list[Any]:
    """Ids from a list, a set, an array, a Series or a tensor, as a list of Python values."""
    values: list[Any] = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    return values


def _series_to_dict(data: Any) -> Any:
    """A Series of collections, such as groupby("u_idx")["i_idx"].apply(set), as {user: items}."""
    return data.to_dict() if hasattr(data, "to_dict") and not hasattr(data, "columns") else data


def read_truth(
    test_data: Any, user_col: str = USER, item_col: str = ITEM, rating_col: str | None = None
) -> Interactions:
    """The test set of a table or {user: items}; graded with `rating_col` or {user: {item: grade}}."""
    if isinstance(test_data, EvaluationData):
        test_data = test_data.test_data
    test_data = _series_to_dict(test_data)
    if isinstance(test_data, Interactions | Mapping) or not hasattr(test_data, "columns"):
        return read_interactions(test_data)
    columns = {"user": user_col, "item": item_col} | ({} if rating_col is None else {"grade": rating_col})
    names = _column_names(test_data)
    for name in columns.values():
        if name not in names:
            raise ColumnError(
                f"the test data has no column {name!r}; it has {', '.join(map(str, names))}.",
                table="test_data",
                column=name,
                hint="Name them: user_col=, item_col=.",
            )
    return read_interactions(_select_columns(test_data, list(columns.values())), columns=columns)


def _column_names(table: Any) -> list[Any]:
    return list(getattr(table, "column_names", getattr(table, "columns", ())))


def _select_columns(table: Any, names: list[str]) -> Any:
    return table.select(names) if hasattr(table, "select") else table[names]


def read_history(user_pos_train: Any, user_col: str = USER, item_col: str = ITEM) -> Interactions | None:
    """The training items of each user, None if there are none; a table has the columns of the test set."""
    user_pos_train = _series_to_dict(user_pos_train)
    if user_pos_train is None or (isinstance(user_pos_train, Mapping) and not user_pos_train):
        return None
    columns = None
    if {user_col, item_col} <= set(_column_names(user_pos_train)):
        columns = {"user": user_col, "item": item_col}
        user_pos_train = _select_columns(user_pos_train, [user_col, item_col])
    return read_interactions(user_pos_train, table="user_pos_train", columns=columns)


def read_test_set(
    test_data: Any,
    user_pos_train: Any,
    user_col: str = USER,
    item_col: str = ITEM,
    rating_col: str | None = None,
) -> tuple[Interactions, Interactions | None]:
    """The test items and the training items, by default those `load_test_data` loaded with the test set."""
    if user_pos_train is None and isinstance(test_data, EvaluationData):
        user_pos_train = test_data.user_pos_train
    truth = read_truth(test_data, user_col, item_col, rating_col)
    return truth, read_history(user_pos_train, user_col, item_col)


def values_by_index(
    ids: Array | None, values: Array, num_items: int | None, what: str = "item_popularity"
) -> Array:
    """One number per item index, zero for items without one."""
    if ids is None:
        if num_items is not None and num_items < len(values):
            raise InputError(f"{what} holds {len(values)} items, num_items says {num_items}.")
        ids = np.arange(len(values))
    if ids.dtype == object or ids[0] < 0 or (num_items is not None and ids[-1] >= num_items):
        invalid_id = ids[:1].tolist()[0] if ids.dtype == object or ids[0] < 0 else int(ids[-1])
        raise InputError(
            f"{what} names the item {invalid_id!r}; items are numbered from 0"
            f"{'' if num_items is None else f' to {num_items - 1}'}.",
            hint="Map item ids to indices first, or use recsys.baselines.popularity, which takes ids.",
        )
    by_index = np.zeros(int(ids[-1]) + 1 if num_items is None else int(num_items))
    by_index[ids] = values
    return by_index


def items_by_user(rows: Lists | Interactions, kind: type = list) -> dict[Any, Any]:
    """{user: items} with ids as Python values, in the order of the rows."""
    items, ends = rows.items.values[rows.codes].tolist(), rows.indptr.tolist()
    users = rows.cases.values.tolist()
    return {user: kind(items[ends[row] : ends[row + 1]]) for row, user in enumerate(users)}


def lists_for_users(lists: Lists, users: Iterable[Any]) -> dict[Any, list[Any]]:
    """{user: items} in the order of `users`; an empty list for users without one."""
    by_user = items_by_user(lists)
    ids = (user.item() if isinstance(user, np.generic) else user for user in users)
    return {user: by_user.get(user, []) for user in dict.fromkeys(ids)}


def standard_names(k_values: Sequence[int]) -> list[str]:
    """The metrics in every result of document 000."""
    return [f"{name}@{k}" for name in STANDARD for k in k_values] + ["mrr"]


class StandardEvaluator(ABC):
    """What ModelEvaluator and the baselines share: read a test set, rank, measure; and the last results."""

    num_items: int
    _last_results: Results | None = None

    @abstractmethod
    def _lists_or_source(
        self, truth: Interactions, history: Interactions | None, k: int
    ) -> Factors | Scores | Mapping[Any, Any]:
        """What `recsys.evaluate` measures: the lists of the test users, or what ranks all items."""

    def get_per_user_metrics(self) -> Any:
        """A DataFrame by user id, one column per metric, evaluated users only."""
        return self._results().per_user()

    def _results(self) -> Results:
        """The last results; an error if there are none."""
        if self._last_results is None:
            raise InputError(
                "nothing was evaluated yet.", hint="Call evaluate(test_data, user_pos_train) first."
            )
        return self._last_results

    def _evaluate_test_set(
        self, test_data: Any, user_pos_train: Any, k_values: Sequence[int], **columns: Any
    ) -> Results:
        """The results of document 000 from one call of `recsys.evaluate`.

        Coverage is that of the longest lists. The MRR of {user: items} is over the lists as they are.
        """
        truth, history = read_test_set(test_data, user_pos_train, **columns)
        ranked = self._lists_or_source(truth, history, max(k_values))
        start = time.perf_counter()
        names, coverage = standard_names(k_values), f"coverage@{max(k_values)}"
        size = self.num_items if isinstance(ranked, Mapping) else None
        evaluation = evaluate(ranked, truth, [*names, coverage], seen=history, catalogue=size)
        results = Results({name: evaluation[name] for name in names})
        results.evaluation = evaluation
        covered = evaluation[coverage]
        results["coverage"] = 0.0 if math.isnan(covered) else covered  # no list holds an item
        n_evaluated = min(evaluation.n_cases[name] for name in names)
        results["num_users_evaluated"] = n_evaluated
        results["num_users_skipped"] = len(evaluation.per_case) - n_evaluated
        results["evaluation_time_seconds"] = time.perf_counter() - start
        self._last_results = results
        return results


def mapping_by_user(data: Any, what: str = "recommendations") -> Mapping[Any, Any]:
    """{user: items}, also from a Series by user; an error if the data have no users."""
    by_user = _series_to_dict(data)
    if not isinstance(by_user, Mapping):
        expected = "[items, best first]" if what == "recommendations" else "items"
        raise InputError(
            f"{what} came as {type(data).__name__}.", table=what, hint=f"Pass {{user: {expected}}}."
        )
    return by_user


def value_of_lists(recommendations: Any, request: str, **facts: Any) -> float:
    """The value of a metric that needs no truth, of lists or of sets; 0.0 if none holds an item."""
    lists = {user: id_list(items) for user, items in mapping_by_user(recommendations).items()}
    if not any(lists.values()):
        return 0.0
    result = evaluate(lists, dict.fromkeys(lists, ()), [request], **facts)
    return float(next(iter(result.values())))


def json_value(value: Any) -> Any:
    """The value as JSON can hold it: NumPy numbers and arrays as Python's, NaN as null."""
    if isinstance(value, Mapping):
        return {str(name): json_value(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_value(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic):
        return json_value(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
