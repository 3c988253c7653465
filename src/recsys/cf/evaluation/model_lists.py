"""Recommendation lists of a model with `recommend(user, n=…)`, for the evaluator of document 001.

The model may have a batch method, may call the length something other than `n`, and may return pairs, arrays
or tensors. If it raises for one user, the error is kept and only that user has no list.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.ranks.sources import recommended

logger = logging.getLogger(__name__)

_BATCH_CALLS = ("recommend_batch", "batch_recommend", "recommend_many", "recommend_all")


def collect_lists(model: Any, users: list[Any], n: int) -> tuple[dict[Any, list[Any]], dict[Any, Exception]]:
    """{user: items, best first}, and {user: error} of the users for whom the model gave no list."""
    lists: dict[Any, list[Any]] = {}
    failures: dict[Any, Exception] = {}
    if not hasattr(model, "recommend") and _batch_method(model) is None:
        raise InputError(
            f"{type(model).__name__} has no recommend(user, n=…).",
            hint="Wrap the model, or pass its factors or lists to recsys.evaluate.",
        )
    batch_method = _batch_method(model)
    if batch_method is not None and _accepts_n(batch_method):
        try:
            answer = batch_method(users, n=n)
            pairs = answer.items() if isinstance(answer, Mapping) else zip(users, answer, strict=True)
            lists = {user: _items_of_answer(entries) for user, entries in pairs}
        except Exception as error:
            if not hasattr(model, "recommend"):
                raise
            # Asked one by one, only the users that fail are lost, and each error belongs to its user.
            logger.warning("The batch call failed (%r); users are asked one by one.", error)
            lists = {}
    for user in [] if lists else users:
        try:
            if _accepts_n(model.recommend):
                answer = model.recommend(user, n=n)
            else:  # the length has another name, such as k
                answer = recommended(model, [user], n)[user]
            lists[user] = _items_of_answer(answer)
        except Exception as error:  # noqa: BLE001 - whatever the model raises is reported, not swallowed
            failures[user] = error
    for user in users:
        if user not in lists and user not in failures:
            failures[user] = InputError("the batch call gave this user no list.", row=user)
    return {user: lists[user] for user in users if user in lists}, failures


def _accepts_n(call: Callable[..., Any]) -> bool:
    try:
        parameters = signature(call).parameters
    except (TypeError, ValueError):  # compiled without a signature
        return True
    return "n" in parameters or any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())


def _batch_method(model: Any) -> Callable[..., Any] | None:
    return next((getattr(model, name) for name in _BATCH_CALLS if callable(getattr(model, name, None))), None)


def _items_of_answer(answer: Any) -> list[Any]:
    """The items of one answer, best first: (item, score) pairs, rows of an array, or bare items."""
    if isinstance(answer, tuple) and len(answer) == 2 and all(_is_vector(array) for array in answer):
        answer = answer[0]  # (items, scores), as some libraries return them
    return [_item_of_entry(entry) for entry in answer]


def _is_vector(array: Any) -> bool:
    return hasattr(array, "__array__") and np.ndim(array) == 1


def _item_of_entry(entry: Any) -> Any:
    item = entry[0] if isinstance(entry, tuple | list) or np.ndim(entry) else entry
    item = item.item() if hasattr(item, "detach") else item  # a number still in its tensor
    # In an array of (item, score) rows the item is a float.
    return int(item) if isinstance(item, float | np.floating) and item == int(item) else item
