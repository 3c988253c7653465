"""Arguments and result keys of document 000, translated to and from `recsys.evaluate`.

A test set is a table with `u_idx` and `i_idx` or {user: items}; a history is {user: items}. Results are dicts
under the keys of the document and also carry the evaluation they come from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import (
    CutoffError,
    Fix,
    InputError,
    RecsysError,
    RecsysWarning,
    TieWarning,
    UnknownNameError,
    hush,
    warn,
    worded,
)
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.results import Evaluation
from recsys.inputs import read_interactions
from recsys.inputs.containers import as_array
from recsys.inputs.ids import encode, ids_from_sequence
from recsys.metrics.registry import Request
from recsys.records.arrays import Array, Interactions, Lists
from recsys.records.checks import is_number, is_whole

USER, ITEM = "u_idx", "i_idx"
STANDARD = ("recall", "ndcg", "precision", "map")
K_VALUES = (10, 20)
TIMES = ("training_time", "evaluation_time_seconds")
_WARNED = frozenset({"truth_already_seen"})  # cautions after which no value of a result means anything


class Results(dict[str, Any]):
    """{result key: value} with the keys of the document; `evaluation` has the users and conventions.

    Its cautions follow when it is printed; what most likely makes all values wrong also warns.
    """

    evaluation: Evaluation

    @classmethod
    def of(cls, values: Mapping[str, Any], evaluation: Evaluation) -> Results:
        """The values, with the evaluation they come from."""
        results = cls(values)
        results.evaluation = evaluation
        for one in results.cautions:
            if one.code in _WARNED:
                warn(RecsysWarning, str(one))
        return results

    @property
    def cautions(self) -> tuple[Any, ...]:
        """Where the values may answer another question than was meant."""
        return self.evaluation.cautions

    def __str__(self) -> str:
        return "\n".join([repr(self), *map(str, self.cautions)])

    def per_user(self) -> Any:
        """A DataFrame with one row per evaluated user, indexed by id."""
        return self.evaluation.per_user.dropna(how="all")


class EvaluationData(NamedTuple):
    """A test set with the history and the item counts that go with it; unpacks in this order."""

    test_data: Any
    user_pos_train: Mapping[Any, Any]
    item_popularity: Array


def cutoff(k: Any, name: str = "k") -> int:
    """Return k as an int; CutoffError unless it is a positive whole number."""
    if not is_whole(k, 1):
        kind = "a number of 64 bits" if is_whole(k) and k > 0 else "a positive whole number"
        raise CutoffError(
            f"{name}={k!r} is not {kind}.",
            hint=f"Use {name} >= 1, such as {name}=10.",
        )
    return int(k)


def cutoff_list(k_values: int | Iterable[int], name: str = "k_values") -> list[int]:
    """One or several cut-offs in their order, each a positive whole number."""
    k_values = k_values.tolist() if hasattr(k_values, "tolist") else k_values
    if isinstance(k_values, str | Mapping) or not isinstance(k_values, Iterable):
        return [cutoff(k_values, name)]
    values = [cutoff(k, name) for k in k_values]
    if not values:
        raise CutoffError(f"{name} is empty.", hint=f"Use e.g. {name}=[10, 20].")
    return values


def cutoffs(k_values: int | Iterable[int]) -> list[int]:
    """Distinct cut-offs, ascending."""
    return sorted(set(cutoff_list(k_values)))


def id_list(ids: Iterable[Any], what: str = "items", *, ranked: bool = False) -> list[Any]:
    """Ids from a list, a set (unless they are ranked), an array, a Series or a tensor, as Python values."""
    if ranked and isinstance(ids, set | frozenset):
        raise InputError(f"the {what} came as a set, which has no order.", hint="Pass a list, best first.")
    values: Any = ids.tolist() if hasattr(ids, "tolist") else ids
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(
            f"the {what} came as {type(ids).__name__}.", hint=f"Pass a list of {what}, an array or a set."
        )
    return values if isinstance(values, list) else list(values)


def check_same_kind(ids: Iterable[Any], known: Iterable[Any], what: str) -> None:
    """IdTypeError if one side has numbers and the other texts, so that none would match."""
    sides = [
        encode(ids_from_sequence(list(one), table=what, column=what), table=what, column=what)[0]
        for one in (ids, known)
    ]
    sides[0].same_kind(sides[1], what=what)


def finite(value: float, name: str) -> float:
    """The value; InputError unless it is a finite number: every comparison with NaN is false."""
    if isinstance(value, bool) or not is_number(value) or not math.isfinite(value):
        raise InputError(f"{name}={value!r} is not a finite number.", hint=f"Pass a number as {name}=.")
    return value


def matrix_of(values: Any, what: str) -> Array:
    """A matrix as a NumPy array; InputError for anything of another shape."""
    matrix = as_array(values)
    if matrix.ndim != 2:
        raise InputError(f"{what} must be a matrix; got shape {matrix.shape}.", table=what)
    return matrix


def direction(name: str) -> str:
    """Whether "higher" or "lower" values of this result are better, or those near "zero"."""
    try:
        return Request.parse(name).metric.better
    except (InputError, UnknownNameError):
        return "lower" if name in TIMES else "higher"


def goodness(name: str, value: float) -> float:
    """A number that is higher for better values of this result.

    >>> goodness("recall@10", 0.2), goodness("rmse", 0.9), goodness("bias", 0.1)
    (0.2, -0.9, -0.1)
    """
    return {"higher": value, "lower": -value, "zero": -abs(value)}[direction(name)]


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
        truth = read_interactions(test_data, table="test_data")
        if isinstance(test_data, list) and test_data and all(isinstance(row, tuple) for row in test_data):
            warn(
                RecsysWarning,
                f"test_data came as a list of {len(test_data):,} tuples, which was read as the items of "
                "users 0, 1, 2 and so on; pass pairs of user and item as a table or {user: items}.",
            )
        return truth
    columns = {"user": user_col, "item": item_col} | ({} if rating_col is None else {"grade": rating_col})
    return read_interactions(_select(test_data, columns), table="test_data", columns=columns)


def _has_columns(table: Any, columns: Mapping[str, str]) -> bool:
    names = getattr(table, "column_names", getattr(table, "columns", ()))
    return set(columns.values()) <= set(names)


def _select(table: Any, columns: Mapping[str, str]) -> Any:
    """The table with these columns alone: others are not to be detected as grades or times."""
    names = list(columns.values())
    if not _has_columns(table, columns):
        return table
    return table.select(names) if hasattr(table, "select") else table[names]


def read_history(user_pos_train: Any, user_col: str = USER, item_col: str = ITEM) -> Interactions | None:
    """The training items of each user, None if there are none; a table has the columns of the test set."""
    user_pos_train = _series_to_dict(user_pos_train)
    if user_pos_train is None or (isinstance(user_pos_train, Mapping) and not user_pos_train):
        return None
    columns = {"user": user_col, "item": item_col}
    named = columns if _has_columns(user_pos_train, columns) else None
    return read_interactions(_select(user_pos_train, columns), table="user_pos_train", columns=named)


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
    if num_items is not None:
        num_items = cutoff(num_items, "num_items")
    if ids is None:
        ids = np.arange(len(values))
    if ids.dtype == object or ids[0] < 0 or (num_items is not None and ids[-1] >= num_items):
        invalid_id = ids[:1].tolist()[0] if ids.dtype == object or ids[0] < 0 else int(ids[-1])
        raise InputError(
            f"{what} names the item {invalid_id!r}; items are numbered from 0"
            f"{'' if num_items is None else f', below num_items={num_items}'}.",
            hint="Map item ids to indices first, or use recsys.baselines.popularity, which takes ids.",
        )
    size = int(ids[-1]) + 1 if num_items is None else num_items
    try:
        by_index = np.zeros(size)
    except (MemoryError, ValueError) as error:
        raise InputError(
            f"{what} would need {size:,} numbers, one for each item index.",
            hint="Map item ids to indices first, or use recsys.baselines.popularity, which takes ids.",
        ) from error
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


@contextmanager
def document_words(id_advice: str = "", **words: str) -> Iterator[None]:
    """Let errors speak of `test_data` and `user_pos_train`, as the caller does, not of truth and seen.

    Args:
        id_advice: what to do where an id is not a row number of the model.
        words: what the caller knows another parameter as: `catalogue="num_total_items"`.
    """
    try:
        with hush(TieWarning) as ties:
            yield
        for category, text in ties:
            warn(category, worded(text, lambda fix: f"results.evaluation.under({{'ties': {fix.example!r}}})"))
    except RecsysError as error:
        known = {"seen": "user_pos_train", **words}
        error.message = worded(error.message, lambda fix: known.get(fix.parameter, str(fix)))
        error.table = {"truth": "test_data", **known}.get(str(error.table), error.table)
        fixes = [part for part in getattr(error.hint, "parts", ()) if isinstance(part, Fix)]
        if id_advice and any(fix.of == "Factors" for fix in fixes):
            error.hint = f"Rows count from 0. {id_advice}"
        elif error.hint:
            error.hint = worded(
                error.hint, lambda fix: str(replace(fix, parameter=words.get(fix.parameter, fix.parameter)))
            )
        raise


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
    """The value of a metric that needs no truth, of lists or, without a cut-off, of sets; 0.0 of no item."""
    by_user = mapping_by_user(recommendations)
    lists = {user: id_list(items, ranked="@" in request) for user, items in by_user.items()}
    if not any(lists.values()):
        return 0.0
    result = evaluate(lists, dict.fromkeys(lists, ()), [request], **facts)
    return float(next(iter(result.values())))
